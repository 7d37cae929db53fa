//! Whether a block is what its hash says it is.
//!
//! Pure: it sees one bundle, the hash of the block before and the rules of the chain. What the hash of a
//! block does not cover stays unverified: the sender of a transaction (it would take a signature recovery
//! for each), the size of the block, and all of the traces but their top calls ([`top_calls`]). What is stated although
//! it follows from the rest is computed before ([`stated`]).

mod bloom;
mod error;
mod rules;
pub(super) mod stated;
mod top_calls;
mod trie;

use std::cell::RefCell;

pub use error::VerifyError;
pub use rules::Rules;

use self::bloom::BloomCache;
use self::top_calls::check_top_calls;
use self::trie::Items;
use super::encoding::{
    Outcome, TransactionFault, header_hash, ommers_hash, put_receipt, put_transaction, put_withdrawal,
};
use crate::model::{B256, Block, Bloom, Bundle, Header, Receipt, Transaction, Withdrawal};

/// Verifies one bundle. `expected_parent` is the hash of the block before, where it is known.
///
/// Each thread keeps a [`Verifier`]: a new one for each block would hash every address and topic anew and
/// clear 300 kB of tables before.
///
/// # Errors
///
/// The first thing found wrong.
pub fn verify(bundle: &Bundle, expected_parent: Option<B256>, rules: &Rules) -> Result<(), VerifyError> {
    thread_local! {
        static KEPT: RefCell<Verifier> = RefCell::default();
    }
    KEPT.with_borrow_mut(|verifier| {
        verifier.rules = *rules;
        verifier.verify(bundle, expected_parent)
    })
}

/// Verifies bundles one after another, in any order.
#[derive(Debug, Default)]
pub struct Verifier {
    rules: Rules,
    buffer: Vec<u8>,
    items: Items,
    blooms: BloomCache,
}

impl Verifier {
    /// A verifier of blocks of one chain.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Verifies one bundle. `expected_parent` is the hash of the block before, where it is known.
    ///
    /// # Errors
    ///
    /// The first thing found wrong.
    pub fn verify(&mut self, bundle: &Bundle, expected_parent: Option<B256>) -> Result<(), VerifyError> {
        let Bundle {
            block,
            receipts,
            traces,
            ..
        } = bundle;
        let transactions = &block.transactions;
        check_parent(block, expected_parent)?;
        check_receipt_order(transactions, receipts)?;
        if let Some(traces) = traces {
            expect(transactions.len(), traces.len(), |expected, found| {
                VerifyError::TraceCount { expected, found }
            })?;
        }
        if self.rules.trust_node {
            return Ok(());
        }
        self.check_header(block)?;
        self.check_transactions(block)?;
        self.check_ommers(block)?;
        self.check_withdrawals(block)?;
        check_gas(block, receipts)?;
        self.check_blooms(block, receipts)?;
        self.check_receipts(block, receipts)?;
        let has_status = self.rules.has_status(block.number());
        check_created(transactions, receipts, has_status)?;
        traces.as_deref().map_or(Ok(()), |traces| {
            check_top_calls(transactions, receipts, traces, has_status)
        })
    }

    fn check_header(&mut self, block: &Block) -> Result<(), VerifyError> {
        if self.rules.aura && !block.header.difficulty.is_zero() {
            return Ok(());
        }
        check_header_fields(&block.header)?;
        let unknown_fields = block.extra.is_some();
        expect(
            block.hash,
            header_hash(&block.header, &mut self.buffer),
            |expected, found| VerifyError::BlockHash {
                expected,
                found,
                unknown_fields,
            },
        )
    }

    fn check_transactions(&mut self, block: &Block) -> Result<(), VerifyError> {
        self.items.clear();
        let transactions = block.transactions.iter();
        let fault = transactions.clone().enumerate().find_map(|(transaction, tx)| {
            let encoded = self.items.put(|out| put_transaction(tx, out));
            encoded.err().map(|fault| (transaction, tx.kind, fault))
        });
        // A wrong hash before a transaction that has none is what is found first.
        let whole = fault.map_or(transactions.len(), |(transaction, ..)| transaction);
        let pairs = transactions.zip(self.items.hashes()).take(whole);
        for (transaction, (tx, hash)) in pairs.enumerate() {
            expect(tx.hash, *hash, |expected, found| VerifyError::TransactionHash {
                transaction,
                expected,
                found,
            })?;
        }
        match fault {
            None => {}
            Some((transaction, kind, TransactionFault::UnsupportedType)) => {
                return Err(VerifyError::UnsupportedTransactionType { transaction, kind });
            }
            Some((transaction, kind, TransactionFault::Missing(field))) => {
                return Err(VerifyError::MissingTransactionField {
                    transaction,
                    kind,
                    field,
                });
            }
        }
        expect(
            block.header.transactions_root,
            self.items.root(),
            |expected, found| VerifyError::TransactionsRoot { expected, found },
        )?;
        check_parities(&block.transactions)
    }

    /// The uncles are checked against the header where their headers are there and whole; else only whether
    /// there should be any.
    fn check_ommers(&mut self, block: &Block) -> Result<(), VerifyError> {
        let Block {
            header,
            uncles,
            uncle_headers,
            ..
        } = block;
        let buffer = &mut self.buffer;
        if !uncle_headers.is_empty() {
            expect(uncles.len(), uncle_headers.len(), |expected, found| {
                VerifyError::OmmerCount { expected, found }
            })?;
        }
        // Some recordings tell only who mined an uncle and its number; that is nothing to hash.
        if uncle_headers.iter().any(Header::is_partial) || uncle_headers.is_empty() {
            let none = header.ommers_hash == ommers_hash(&[], buffer);
            return if none == uncles.is_empty() {
                Ok(())
            } else {
                Err(VerifyError::OmmersPresence {
                    expected: header.ommers_hash,
                    found: uncles.len(),
                })
            };
        }
        for (uncle, (hash, header)) in uncles.iter().zip(uncle_headers).enumerate() {
            expect(*hash, header_hash(header, buffer), |expected, found| {
                VerifyError::OmmerHash {
                    uncle,
                    expected,
                    found,
                }
            })?;
        }
        expect(
            header.ommers_hash,
            ommers_hash(uncle_headers, buffer),
            |expected, found| VerifyError::OmmersHash { expected, found },
        )
    }

    fn check_withdrawals(&mut self, block: &Block) -> Result<(), VerifyError> {
        let found = block
            .withdrawals
            .as_deref()
            .map(|withdrawals| self.withdrawals_root(withdrawals));
        expect(block.header.withdrawals_root, found, |expected, found| {
            VerifyError::WithdrawalsRoot { expected, found }
        })
    }

    fn withdrawals_root(&mut self, withdrawals: &[Withdrawal]) -> B256 {
        self.items.clear();
        for withdrawal in withdrawals {
            self.items.put(|out| put_withdrawal(withdrawal, out));
        }
        self.items.root()
    }

    fn check_blooms(&mut self, block: &Block, receipts: &[Receipt]) -> Result<(), VerifyError> {
        let mut of_block = Bloom::ZERO;
        let blooms = self.blooms.blooms(receipts);
        for (transaction, (receipt, of_receipt)) in receipts.iter().zip(blooms).enumerate() {
            if receipt.logs_bloom != of_receipt {
                let (expected, found) = (Box::new(receipt.logs_bloom), Box::new(of_receipt));
                return Err(VerifyError::ReceiptBloom {
                    transaction,
                    expected,
                    found,
                });
            }
            if !receipt.logs.is_empty() {
                of_block |= of_receipt;
            }
        }
        if block.header.logs_bloom == of_block {
            return Ok(());
        }
        let (expected, found) = (Box::new(block.header.logs_bloom), Box::new(of_block));
        Err(VerifyError::LogsBloom { expected, found })
    }

    fn check_receipts(&mut self, block: &Block, receipts: &[Receipt]) -> Result<(), VerifyError> {
        self.items.clear();
        let has_status = self.rules.has_status(block.number());
        for (transaction, receipt) in receipts.iter().enumerate() {
            let outcome = if has_status {
                Outcome::Status(receipt.status.ok_or(VerifyError::MissingStatus { transaction })?)
            } else if let Some(root) = receipt.root {
                Outcome::Root(root)
            } else {
                // Without the state root after each transaction the receipts root cannot be computed.
                return Ok(());
            };
            self.items.put(|out| put_receipt(receipt, outcome, out));
        }
        expect(
            block.header.receipts_root,
            self.items.root(),
            |expected, found| VerifyError::ReceiptsRoot {
                expected,
                found,
                early_forks: !self.rules.forks_known && block.header.base_fee_per_gas.is_none(),
            },
        )
    }
}

/// `Ok` when both are the same, else the error made of both.
fn expect<T: PartialEq>(
    expected: T,
    found: T,
    error: impl FnOnce(T, T) -> VerifyError,
) -> Result<(), VerifyError> {
    if expected == found {
        Ok(())
    } else {
        Err(error(expected, found))
    }
}

/// Each fork's fields came on top of those of the forks before. An absent number before a present field would be hashed
/// as zero is.
fn check_header_fields(header: &Header) -> Result<(), VerifyError> {
    let fields = [
        ("baseFeePerGas", header.base_fee_per_gas.is_some()),
        ("withdrawalsRoot", header.withdrawals_root.is_some()),
        ("blobGasUsed", header.blob_gas_used.is_some()),
        ("excessBlobGas", header.excess_blob_gas.is_some()),
        ("parentBeaconBlockRoot", header.parent_beacon_block_root.is_some()),
        ("requestsHash", header.requests_hash.is_some()),
    ];
    let last = fields.iter().rposition(|&(_, present)| present).unwrap_or(0);
    let absent = fields.iter().take(last).find(|(_, present)| !present);
    match (absent, fields.get(last)) {
        (Some(&(field, _)), Some(&(with, _))) => Err(VerifyError::MissingHeaderField { field, with }),
        _ => Ok(()),
    }
}

/// What a receipt says of a created contract, held against its transaction: no hash covers it, but it follows from the sender
/// and the nonce.
fn check_created(
    transactions: &[Transaction],
    receipts: &[Receipt],
    has_status: bool,
) -> Result<(), VerifyError> {
    for (transaction, (tx, receipt)) in transactions.iter().zip(receipts).enumerate() {
        let (expected, found) = match (tx.to, receipt.contract_address) {
            (Some(_), None) => continue,
            (Some(_), found) => (None, found),
            // Of a failed creation some nodes name it and others do not.
            (None, None) if receipt.status != Some(true) || !has_status => continue,
            (None, found) => (Some(tx.from.create(tx.nonce)), found),
        };
        expect(expected, found, |expected, found| VerifyError::CreatedContract {
            transaction,
            expected,
            found,
        })?;
    }
    Ok(())
}

fn check_parent(block: &Block, expected_parent: Option<B256>) -> Result<(), VerifyError> {
    expected_parent.map_or(Ok(()), |expected| {
        expect(expected, block.header.parent_hash, |expected, found| {
            VerifyError::ParentHash { expected, found }
        })
    })
}

fn check_receipt_order(transactions: &[Transaction], receipts: &[Receipt]) -> Result<(), VerifyError> {
    expect(transactions.len(), receipts.len(), |expected, found| {
        VerifyError::ReceiptCount { expected, found }
    })?;
    for (transaction, (tx, receipt)) in transactions.iter().zip(receipts).enumerate() {
        expect(tx.hash, receipt.transaction_hash, |expected, found| {
            VerifyError::ReceiptOrder {
                transaction,
                expected,
                found,
            }
        })?;
    }
    Ok(())
}

/// The hash of a typed transaction covers `yParity`, which `v` says again.
fn check_parities(transactions: &[Transaction]) -> Result<(), VerifyError> {
    let typed = transactions.iter().enumerate().filter(|(_, tx)| tx.kind != 0);
    for (transaction, tx) in typed {
        if let (Some(parity), Some(v)) = (tx.y_parity, tx.v) {
            expect(u64::from(parity), v, |expected, found| {
                VerifyError::TransactionParity {
                    transaction,
                    expected,
                    found,
                }
            })?;
        }
    }
    Ok(())
}

fn check_gas(block: &Block, receipts: &[Receipt]) -> Result<(), VerifyError> {
    let mut cumulative = 0u64;
    for (transaction, receipt) in receipts.iter().enumerate() {
        let expected = cumulative.saturating_add(receipt.gas_used);
        cumulative = receipt.cumulative_gas_used;
        expect(expected, cumulative, |expected, found| {
            VerifyError::CumulativeGas {
                transaction,
                expected,
                found,
            }
        })?;
    }
    expect(block.header.gas_used, cumulative, |expected, found| {
        VerifyError::GasUsed { expected, found }
    })
}
