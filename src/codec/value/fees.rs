//! What a transaction paid, without the rest of its row.

use crate::model::{Receipt, Transaction};

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
