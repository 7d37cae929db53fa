//! The synthetic chain with the hashes, roots and blooms that its contents have, so that it verifies.

use alloy_consensus::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::proofs::{calculate_receipt_root, calculate_transaction_root};
use quarry::model::{B256, Bloom, Bundle};

use super::chain::{alloy_header, envelope, receipt_envelope};

/// The blocks of another iterator, sealed one after the other.
pub(crate) struct Sealed<I> {
    blocks: I,
    parent: Option<B256>,
}

impl<I> Sealed<I> {
    pub(crate) const fn new(blocks: I) -> Self {
        Self { blocks, parent: None }
    }
}

impl<I: Iterator<Item = Bundle>> Iterator for Sealed<I> {
    type Item = Bundle;

    fn next(&mut self) -> Option<Bundle> {
        let mut bundle = self.blocks.next()?;
        let block = &mut bundle.block;
        let header = &mut block.header;
        header.logs_bloom = Bloom::ZERO;
        for (transaction, receipt) in block.transactions.iter_mut().zip(&mut bundle.receipts) {
            transaction.hash = *envelope(transaction).tx_hash();
            receipt.transaction_hash = transaction.hash;
            receipt.logs_bloom = Bloom::ZERO;
            for log in &receipt.logs {
                receipt.logs_bloom.accrue_raw_log(log.address, &log.topics);
            }
            header.logs_bloom.accrue_bloom(&receipt.logs_bloom);
        }
        let transactions: Vec<_> = block.transactions.iter().map(envelope).collect();
        let receipts: Vec<_> = bundle.receipts.iter().map(receipt_envelope).collect();
        header.transactions_root = calculate_transaction_root(&transactions);
        header.receipts_root = calculate_receipt_root(&receipts);
        header.ommers_hash = EMPTY_OMMER_ROOT_HASH;
        header.parent_hash = self.parent.unwrap_or(header.parent_hash);
        block.hash = alloy_header(header).hash_slow();
        self.parent = Some(block.hash);
        Some(bundle)
    }
}
