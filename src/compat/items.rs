//! Items of Etherscan's lists: every number is text, what is absent is an empty text.

use crate::json::{UuidSpace, writer};
use crate::model::{
    Address, InternalTransaction, ListedTransaction, ListedTransfer, LogEntry, MinedBlock, U256,
};
use crate::query::GasPaid;

/// An item that is being written.
struct Item<'a> {
    out: &'a mut Vec<u8>,
    begun: bool,
}

impl<'a> Item<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, begun: false }
    }

    #[inline]
    fn key(&mut self, name: &str) -> &mut Vec<u8> {
        let before: &[u8] = if self.begun { b",\"" } else { b"\"" };
        self.begun = true;
        self.out.extend_from_slice(before);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    #[inline]
    fn number(&mut self, name: &str, value: u64) {
        writer::decimal(self.key(name), value);
    }

    #[inline]
    fn amount(&mut self, name: &str, value: &U256) {
        writer::decimal_u256(self.key(name), value);
    }

    #[inline]
    fn hex(&mut self, name: &str, value: &[u8]) {
        writer::hex(self.key(name), value);
    }

    /// Hex, nothing as an empty text.
    #[inline]
    fn bytes(&mut self, name: &str, value: &[u8]) {
        if value.is_empty() {
            self.text(name, "");
        } else {
            self.hex(name, value);
        }
    }

    fn address(&mut self, name: &str, address: Option<&Address>) {
        match address {
            Some(address) => self.hex(name, address.as_slice()),
            None => self.text(name, ""),
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        writer::string(self.key(name), text);
    }

    fn flag(&mut self, name: &str, flag: bool) {
        self.text(name, if flag { "1" } else { "0" });
    }

    #[inline]
    fn quantity(&mut self, name: &str, value: impl Into<u128>) {
        writer::quantity(self.key(name), value);
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

/// Blocks from one to the indexed head, both counted.
const fn confirmations(head: u64, block: u64) -> u64 {
    head.saturating_sub(block) + 1
}

/// `account/txlist`.
pub(super) fn transaction(out: &mut Vec<u8>, row: &ListedTransaction<'_>, head: u64, function: &str) {
    let mut item = Item::begin(out);
    item.number("blockNumber", row.block.number);
    item.hex("blockHash", row.block.hash.as_slice());
    item.number("timeStamp", row.timestamp);
    item.hex("hash", row.hash.as_slice());
    item.number("nonce", row.nonce);
    item.number("transactionIndex", u64::from(row.transaction_index));
    item.hex("from", row.from.as_slice());
    item.address("to", row.to.as_ref());
    item.amount("value", &row.value);
    item.number("gas", row.gas);
    item.amount("gasPrice", &U256::from(row.gas_price));
    item.hex("input", row.input);
    item.hex("methodId", row.input.get(..4).unwrap_or_default());
    item.text("functionName", function);
    item.address("contractAddress", row.contract_address.as_ref());
    item.number("cumulativeGasUsed", row.cumulative_gas_used);
    item.flag("txreceipt_status", row.success);
    item.number("gasUsed", row.gas_used);
    item.number("confirmations", confirmations(head, row.block.number));
    item.flag("isError", !row.success);
    item.end();
}

/// `account/txlistinternal`.
pub(super) fn internal(
    out: &mut Vec<u8>,
    _: &UuidSpace,
    trace_id: &mut String,
    row: &InternalTransaction<'_>,
) {
    crate::json::trace_id(trace_id, row.path);
    let creation = row.kind.is_creation();
    let made = row.to.as_ref().filter(|_| creation && !row.reverted);
    let mut item = Item::begin(out);
    item.number("blockNumber", row.block.number);
    item.number("timeStamp", row.timestamp);
    item.hex("hash", row.transaction_hash.as_slice());
    item.hex("from", row.from.as_slice());
    item.address("to", row.to.as_ref().filter(|_| !creation));
    item.amount("value", &row.value);
    item.address("contractAddress", made);
    item.bytes("input", row.input);
    item.text("type", row.kind.as_str());
    item.number("gas", row.gas);
    item.number("gasUsed", row.gas_used);
    item.text("traceId", trace_id);
    item.flag("isError", row.reverted);
    item.text("errCode", row.error.unwrap_or_default());
    item.end();
}

/// `account/getminedblocks`.
pub(super) fn mined(out: &mut Vec<u8>, row: &MinedBlock) {
    let mut item = Item::begin(out);
    item.number("blockNumber", row.block.number);
    item.number("timeStamp", row.timestamp);
    item.amount("blockReward", &row.reward);
    item.end();
}

fn begin_transfer(item: &mut Item<'_>, row: &ListedTransfer<'_>) {
    item.number("blockNumber", row.block.number);
    item.number("timeStamp", row.timestamp);
    item.hex("hash", row.transaction_hash.as_slice());
    item.number("nonce", row.nonce);
    item.hex("blockHash", row.block.hash.as_slice());
    item.hex("from", row.from.as_slice());
    item.hex("contractAddress", row.token.as_slice());
    item.hex("to", row.to.as_slice());
}

fn end_transfer(mut item: Item<'_>, row: &ListedTransfer<'_>, head: u64) {
    item.number("transactionIndex", u64::from(row.transaction_index));
    item.number("gas", row.gas);
    item.amount("gasPrice", &U256::from(row.gas_price));
    item.number("gasUsed", row.gas_used);
    item.number("cumulativeGasUsed", row.cumulative_gas_used);
    item.text("input", "deprecated");
    item.number("confirmations", confirmations(head, row.block.number));
    item.end();
}

fn described(item: &mut Item<'_>, row: &ListedTransfer<'_>) {
    item.text("tokenName", row.metadata.name.as_deref().unwrap_or_default());
    item.text("tokenSymbol", row.metadata.symbol.as_deref().unwrap_or_default());
}

/// `account/tokentx`.
pub(super) fn erc20(out: &mut Vec<u8>, _: &UuidSpace, row: &ListedTransfer<'_>, head: u64) {
    let mut item = Item::begin(out);
    begin_transfer(&mut item, row);
    item.amount("value", &row.value);
    described(&mut item, row);
    match row.metadata.decimals {
        Some(decimals) => item.number("tokenDecimal", u64::from(decimals)),
        None => item.text("tokenDecimal", ""),
    }
    end_transfer(item, row, head);
}

/// `account/tokennfttx`.
pub(super) fn erc721(out: &mut Vec<u8>, _: &UuidSpace, row: &ListedTransfer<'_>, head: u64) {
    let mut item = Item::begin(out);
    begin_transfer(&mut item, row);
    item.amount("tokenID", &row.id.unwrap_or_default());
    described(&mut item, row);
    item.number(
        "tokenDecimal",
        u64::from(row.metadata.decimals.unwrap_or_default()),
    );
    end_transfer(item, row, head);
}

/// `account/token1155tx`.
pub(super) fn erc1155(out: &mut Vec<u8>, _: &UuidSpace, row: &ListedTransfer<'_>, head: u64) {
    let mut item = Item::begin(out);
    begin_transfer(&mut item, row);
    item.amount("tokenID", &row.id.unwrap_or_default());
    item.amount("tokenValue", &row.value);
    described(&mut item, row);
    end_transfer(item, row, head);
}

/// `logs/getLogs`: numbers are hex, zero as `0x0`.
pub(super) fn log(out: &mut Vec<u8>, row: &LogEntry<'_>, paid: GasPaid) {
    let mut item = Item::begin(out);
    item.hex("address", row.address.as_slice());
    crate::json::object::array(item.key("topics"), row.topics.iter(), |out, topic| {
        writer::hex(out, topic.as_slice());
    });
    item.hex("data", row.data);
    item.quantity("blockNumber", row.block_number);
    item.hex("blockHash", row.block_hash.as_slice());
    item.quantity("timeStamp", row.timestamp);
    item.quantity("gasPrice", paid.price);
    item.quantity("gasUsed", paid.used);
    item.quantity("logIndex", row.log_index);
    item.hex("transactionHash", row.transaction_hash.as_slice());
    item.quantity("transactionIndex", row.transaction_index);
    item.end();
}
