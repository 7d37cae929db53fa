//! What a transaction paid, without the rest of its row.

use crate::model::{Header, Receipt, Transaction, U256, blob_base_fee};

/// What of a transaction and its receipt says who was paid for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeeRow {
    /// Gas used.
    pub gas_used: u64,
    /// Price paid per gas as the receipt states it, wei.
    pub effective_gas_price: Option<u128>,
    /// `gasPrice` of the transaction, wei.
    pub gas_price: Option<u128>,
    /// `maxFeePerGas`, wei.
    pub max_fee_per_gas: Option<u128>,
    /// `maxPriorityFeePerGas`, wei.
    pub max_priority_fee_per_gas: Option<u128>,
    /// Blob gas used, by the receipt; else by the number of blobs (EIP-4844).
    pub blob_gas_used: u64,
    /// Price paid per blob gas as the receipt states it, wei.
    pub blob_gas_price: Option<u128>,
    /// Paid to the layer below (L1 fee of roll-ups), wei.
    pub below: U256,
}

/// Gas of a blob (EIP-4844).
const GAS_PER_BLOB: u64 = 1 << 17;

/// Blob gas used: what the receipt states, else by the number of blobs (EIP-4844).
#[must_use]
pub fn blob_gas_used(stated: Option<u64>, blobs: usize) -> u64 {
    stated.unwrap_or((blobs as u64).saturating_mul(GAS_PER_BLOB))
}

impl FeeRow {
    /// Of a transaction and its receipt.
    #[must_use]
    pub fn new(transaction: &Transaction, receipt: &Receipt) -> Self {
        let blobs = transaction.blob_versioned_hashes.as_ref().map_or(0, Vec::len);
        Self {
            gas_used: receipt.gas_used,
            effective_gas_price: receipt.effective_gas_price,
            gas_price: transaction.gas_price,
            max_fee_per_gas: transaction.max_fee_per_gas,
            max_priority_fee_per_gas: transaction.max_priority_fee_per_gas,
            blob_gas_used: blob_gas_used(receipt.blob_gas_used, blobs),
            blob_gas_price: receipt.blob_gas_price,
            below: receipt.extra.as_deref().and_then(l1_fee).unwrap_or_default(),
        }
    }
}

impl FeeRow {
    /// What was paid per gas: the receipt's word, else EIP-1559's rule, else the transaction's price.
    #[must_use]
    pub fn price(&self, base_fee: Option<u64>) -> u128 {
        let by_rule = || {
            let base_fee = u128::from(base_fee?);
            let tip = self.max_priority_fee_per_gas?;
            Some(self.max_fee_per_gas?.min(base_fee.saturating_add(tip)))
        };
        self.effective_gas_price
            .or_else(by_rule)
            .or(self.gas_price)
            .unwrap_or(0)
    }

    /// What was paid above the base fee, wei. A price below the base fee is that of a roll-up's deposit: it
    /// neither tips nor burns.
    #[must_use]
    pub fn tip(&self, base_fee: Option<u64>) -> u128 {
        let above = self
            .price(base_fee)
            .saturating_sub(u128::from(base_fee.unwrap_or(0)));
        u128::from(self.gas_used).saturating_mul(above)
    }
}

/// `l1Fee` of the receipts of OP Stack chains and Scroll.
pub(in crate::codec) fn l1_fee(extra: &str) -> Option<U256> {
    #[derive(serde::Deserialize)]
    struct Extra<'a> {
        #[serde(rename = "l1Fee", borrow)]
        l1_fee: Option<&'a str>,
    }
    let extra: Extra<'_> = serde_json::from_str(extra).ok()?;
    U256::from_str_radix(extra.l1_fee?.strip_prefix("0x")?, 16).ok()
}

/// The price of blob gas in a block by its header, wei, where it has one.
#[must_use]
pub fn blob_price(header: &Header) -> Option<U256> {
    let excess = header.excess_blob_gas?;
    Some(blob_base_fee(excess, header.requests_hash.is_some()))
}

/// What a transaction paid, by what became of it, wei.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// Per gas.
    pub price: u128,
    /// Above the base fee, to the block's fee recipient.
    pub tip: u128,
    /// The base fee, burnt (EIP-1559).
    pub base_fee_burnt: U256,
    /// The blob fee, burnt (EIP-4844).
    pub blob_fee_burnt: U256,
}

/// Takes apart what the transactions of one block paid.
#[derive(Clone, Debug)]
pub struct BlockFees<'h> {
    header: &'h Header,
    /// One price for the whole block: by the header, where a receipt does not state it.
    blob_price: Option<U256>,
}

impl<'h> BlockFees<'h> {
    /// Of the block with this header.
    #[must_use]
    pub const fn of(header: &'h Header) -> Self {
        Self {
            header,
            blob_price: None,
        }
    }

    /// What a transaction of the block paid. A price below the base fee is that of a roll-up's deposit.
    pub fn split(&mut self, fee: &FeeRow) -> Paid {
        let base_fee = self.header.base_fee_per_gas;
        let price = fee.price(base_fee);
        let burnt = price.min(u128::from(base_fee.unwrap_or(0)));
        let product = |gas: u64, price: U256| U256::from(gas).saturating_mul(price);
        let blob_fee_burnt = match (fee.blob_gas_used, fee.blob_gas_price) {
            (0, _) => U256::ZERO,
            (gas, Some(price)) => product(gas, U256::from(price)),
            (gas, None) => {
                let by_header = || blob_price(self.header).unwrap_or_default();
                product(gas, *self.blob_price.get_or_insert_with(by_header))
            }
        };
        Paid {
            price,
            tip: fee.tip(base_fee),
            base_fee_burnt: product(fee.gas_used, U256::from(burnt)),
            blob_fee_burnt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fees_of_the_layer_below() {
        assert_eq!(
            l1_fee(r#"{"l1GasUsed":"0x1","l1Fee":"0x1f","l1FeeScalar":"0.5"}"#),
            Some(U256::from(31))
        );
        for without in [
            "",
            "{}",
            r#"{"l1Fee":null}"#,
            r#"{"l1Fee":"31"}"#,
            r#"{"l1Fee":"0xzz"}"#,
        ] {
            assert_eq!(l1_fee(without), None, "{without}");
        }
    }
}
