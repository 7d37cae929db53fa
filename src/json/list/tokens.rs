//! Items of the lists of tokens (answers.md sections 3 and 4).

use alloy_primitives::U512;

use super::{ITEM_BYTES, amount, decimal, hex, text};
use crate::json::{UuidSpace, writer};
use crate::model::{Address, ListedTransfer, TokenKind, TokenMetadata, U256};

/// Appends a holder of a token (T3); `supply` is what its share is a share of.
pub fn holder(out: &mut Vec<u8>, address: &Address, balance: &U256, supply: &U256) {
    hex(out, "{\"address\":\"0x", &address.0.0);
    amount(out, "\",\"balance\":", balance);
    text(out, ",\"share\":");
    match share(balance, supply) {
        Some(share) => writer::string(out, &share),
        None => writer::null(out),
    }
    out.push(b'}');
}

/// A part as percent of a whole, four decimals, half up; `None` of nothing.
fn share(part: &U256, whole: &U256) -> Option<String> {
    let whole = U512::from(*whole);
    let twice = U512::from(*part) * U512::from(2_000_000) + whole;
    let units = twice.checked_div(whole * U512::from(2))?;
    let (percent, rest) = units.div_rem(U512::from(10_000));
    Some(format!("{percent}.{:04}", rest.to::<u64>()))
}

/// Appends a token that an account holds (T6, T7).
pub fn holding(out: &mut Vec<u8>, token: &Address, metadata: &TokenMetadata, balance: &U256) {
    hex(out, "{\"contractAddress\":\"0x", &token.0.0);
    text(out, "\"");
    described(out, metadata);
    amount(out, ",\"balance\":", balance);
    out.push(b'}');
}

/// Appends an id that an account owns (T10).
pub fn inventory_item(out: &mut Vec<u8>, token: &Address, id: &U256) {
    hex(out, "{\"contractAddress\":\"0x", &token.0.0);
    amount(out, "\",\"tokenId\":", id);
    out.push(b'}');
}

/// Appends units of an id that an account holds of an ERC-1155 token.
pub fn held_id(out: &mut Vec<u8>, token: &Address, metadata: &TokenMetadata, id: &U256, balance: &U256) {
    hex(out, "{\"contractAddress\":\"0x", &token.0.0);
    amount(out, "\",\"tokenId\":", id);
    amount(out, ",\"balance\":", balance);
    named(out, metadata);
    out.push(b'}');
}

/// Appends a token transfer (A7, A8, and those of ERC-1155); `head` is the last indexed block, from which confirmations count.
pub fn transfer(out: &mut Vec<u8>, ids: &UuidSpace, transfer: &ListedTransfer<'_>, head: u64) {
    out.reserve(ITEM_BYTES);
    let id = ids.transfer(&transfer.block.hash, transfer.log_index, transfer.position);
    text(out, "{\"uuid\":");
    writer::uuid(out, id);
    hex(out, ",\"transactionHash\":\"0x", &transfer.transaction_hash.0);
    decimal(out, "\",\"logIndex\":", u64::from(transfer.log_index));
    decimal(out, ",\"blockNumber\":\"", transfer.block.number);
    hex(out, "\",\"blockHash\":\"0x", &transfer.block.hash.0);
    decimal(out, "\",\"timestamp\":\"", transfer.timestamp);
    decimal(
        out,
        "\",\"transactionIndex\":",
        u64::from(transfer.transaction_index),
    );
    hex(out, ",\"from\":\"0x", &transfer.from.0.0);
    hex(out, "\",\"to\":\"0x", &transfer.to.0.0);
    hex(out, "\",\"contractAddress\":\"0x", &transfer.token.0.0);
    match &transfer.id {
        Some(id) => amount(out, "\",\"tokenId\":", id),
        None => amount(out, "\",\"value\":", &transfer.value),
    }
    if transfer.kind == TokenKind::Erc1155 {
        amount(out, ",\"tokenValue\":", &transfer.value);
    }
    described(out, transfer.metadata);
    decimal(out, ",\"nonce\":\"", transfer.nonce);
    decimal(out, "\",\"gas\":\"", transfer.gas);
    amount(out, "\",\"gasPrice\":", &U256::from(transfer.gas_price));
    decimal(out, ",\"gasUsed\":\"", transfer.gas_used);
    decimal(out, "\",\"cumulativeGasUsed\":\"", transfer.cumulative_gas_used);
    decimal(
        out,
        "\",\"confirmations\":",
        head.saturating_sub(transfer.block.number) + 1,
    );
    out.push(b'}');
}

/// What a contract says of itself, after other fields.
fn described(out: &mut Vec<u8>, metadata: &TokenMetadata) {
    named(out, metadata);
    text(out, ",\"tokenDecimal\":");
    match metadata.decimals {
        Some(decimals) => writer::integer(out, u64::from(decimals)),
        None => writer::null(out),
    }
}

/// Its names.
fn named(out: &mut Vec<u8>, metadata: &TokenMetadata) {
    for (name, value) in [
        (",\"tokenName\":", &metadata.name),
        (",\"tokenSymbol\":", &metadata.symbol),
    ] {
        text(out, name);
        match value {
            Some(value) => writer::string(out, value),
            None => writer::null(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_half_up() {
        let share = |part: u64, whole: u64| share(&U256::from(part), &U256::from(whole));
        assert_eq!(share(1, 3).as_deref(), Some("33.3333"));
        assert_eq!(share(2, 3).as_deref(), Some("66.6667"));
        assert_eq!(share(1, 2_000_000).as_deref(), Some("0.0001"));
        assert_eq!(share(1, 2_000_001).as_deref(), Some("0.0000"));
        assert_eq!(share(5, 5).as_deref(), Some("100.0000"));
        assert_eq!(share(5, 1).as_deref(), Some("500.0000"));
        assert_eq!(share(0, 1).as_deref(), Some("0.0000"));
        assert_eq!(share(1, 0), None);
        let most = super::share(&U256::MAX, &U256::MAX);
        assert_eq!(most.as_deref(), Some("100.0000"));
    }

    #[test]
    fn a_holding_of_an_odd_name() {
        let metadata = TokenMetadata {
            name: Some("a\"b".to_owned()),
            symbol: None,
            decimals: Some(18),
        };
        let mut out = Vec::new();
        holding(&mut out, &Address::ZERO, &metadata, &U256::from(7));
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            value,
            serde_json::json!({
                "contractAddress": format!("0x{}", "00".repeat(20)),
                "tokenName": "a\"b", "tokenSymbol": null, "tokenDecimal": 18, "balance": "7",
            })
        );
    }
}
