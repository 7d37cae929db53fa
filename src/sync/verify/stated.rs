//! What a node states although it follows from what is hashed: the price paid per gas (of a receipt, and `gasPrice` of a
//! mined transaction of EIP-1559's and later types) and the blob gas used. It is computed, so that a node that states it
//! wrongly (some clients did, after London) is neither believed nor waited for. The created contract of a creation is not
//! among it: it follows from the sender, which is itself only stated; where there are traces, theirs and the receipt's must
//! be the same.

use crate::codec::value::{FeeRow, blob_gas_used};
use crate::model::{Bundle, Receipt, Transaction};

/// Puts what follows in the place of what is stated, and answers of how many transactions something else was stated. What a
/// node leaves out stays left out.
pub(in crate::sync) fn set_what_follows(bundle: &mut Bundle) -> usize {
    let base_fee = bundle.block.header.base_fee_per_gas;
    let pairs = bundle.block.transactions.iter_mut().zip(&mut bundle.receipts);
    pairs
        .map(|(transaction, receipt)| usize::from(set_of(transaction, receipt, base_fee)))
        .sum()
}

fn set_of(transaction: &mut Transaction, receipt: &mut Receipt, base_fee: Option<u64>) -> bool {
    let mut differs = false;
    let mut set = |stated: &mut u128, follows: u128| {
        differs |= follows != *stated;
        *stated = follows;
    };
    let price = price(transaction, base_fee);
    // Before, `gasPrice` is signed.
    if let Some(stated) = transaction.gas_price.as_mut().filter(|_| transaction.kind >= 2) {
        set(stated, price);
    }
    if let Some(stated) = &mut receipt.effective_gas_price {
        set(stated, price);
    }
    if let (Some(stated), Some(blobs)) = (&mut receipt.blob_gas_used, &transaction.blob_versioned_hashes) {
        let used = blob_gas_used(None, blobs.len());
        differs |= used != *stated;
        *stated = used;
    }
    differs
}

/// The price paid per gas by the signed fields alone (EIP-1559), wei.
fn price(transaction: &Transaction, base_fee: Option<u64>) -> u128 {
    // Of a transaction of an earlier type the fields of EIP-1559 are not signed, should a node state them.
    let bids = (2 <= transaction.kind).then_some(transaction);
    let signed = FeeRow {
        gas_price: transaction.gas_price,
        max_fee_per_gas: bids.and_then(|of| of.max_fee_per_gas),
        max_priority_fee_per_gas: bids.and_then(|of| of.max_priority_fee_per_gas),
        ..FeeRow::default()
    };
    signed.price(base_fee)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, Block, Header};

    fn bundle(transaction: Transaction, receipt: Receipt) -> Bundle {
        Bundle {
            block: Block {
                header: Header {
                    base_fee_per_gas: Some(100),
                    ..Header::default()
                },
                transactions: vec![transaction],
                ..Block::default()
            },
            receipts: vec![receipt],
            ..Bundle::default()
        }
    }

    fn dynamic() -> Transaction {
        Transaction {
            kind: 2,
            to: Some(Address::repeat_byte(7)),
            gas_price: Some(130),
            max_fee_per_gas: Some(150),
            max_priority_fee_per_gas: Some(30),
            ..Transaction::default()
        }
    }

    fn set_both(transaction: Transaction, receipt: Receipt) -> (usize, Transaction, Receipt) {
        let mut bundle = bundle(transaction, receipt);
        let differing = set_what_follows(&mut bundle);
        let transaction = bundle.block.transactions.remove(0);
        (differing, transaction, bundle.receipts.remove(0))
    }

    fn set(transaction: Transaction, receipt: Receipt) -> (usize, Receipt) {
        let (differing, _, receipt) = set_both(transaction, receipt);
        (differing, receipt)
    }

    fn priced(price: u128) -> Receipt {
        Receipt {
            status: Some(true),
            effective_gas_price: Some(price),
            ..Receipt::default()
        }
    }

    #[test]
    fn a_price_is_that_of_the_signed_fields() {
        assert_eq!(set(dynamic(), priced(130)), (0, priced(130)));
        assert_eq!(set(dynamic(), priced(131)), (1, priced(130)));
        let capped = Transaction {
            gas_price: Some(150),
            max_priority_fee_per_gas: Some(80),
            ..dynamic()
        };
        assert_eq!(set(capped, priced(180)), (1, priced(150)));
        let legacy = Transaction {
            kind: 0,
            gas_price: Some(170),
            max_fee_per_gas: None,
            max_priority_fee_per_gas: None,
            ..dynamic()
        };
        assert_eq!(set(legacy.clone(), priced(171)), (1, priced(170)));
        // Nobody signed these.
        let adorned = Transaction {
            max_fee_per_gas: Some(150),
            max_priority_fee_per_gas: Some(30),
            ..legacy
        };
        assert_eq!(set(adorned, priced(130)), (1, priced(170)));
        let silent = Receipt {
            effective_gas_price: None,
            ..priced(0)
        };
        assert_eq!(set(dynamic(), silent.clone()), (0, silent));
    }

    #[test]
    fn the_gas_price_of_a_mined_transaction_is_the_price_paid() {
        let stating = |kind, gas_price| Transaction {
            kind,
            gas_price,
            ..dynamic()
        };
        let (right, capped) = (stating(2, Some(130)), stating(2, Some(150)));
        for kind in 2..=4 {
            let right = stating(kind, Some(130));
            for (stated, differing) in [(130, 0), (150, 1), (999, 1)] {
                let set = set_both(stating(kind, Some(stated)), priced(130));
                assert_eq!(set, (differing, right.clone(), priced(130)));
            }
        }
        // Both are wrong: one transaction.
        assert_eq!(set_both(capped, priced(150)), (1, right, priced(130)));
        let silent = stating(2, None);
        assert_eq!(set_both(silent.clone(), priced(130)), (0, silent, priced(130)));
        // What is signed stays, for its hash to tell.
        let signed = stating(1, Some(999));
        assert_eq!(set_both(signed.clone(), priced(999)), (0, signed, priced(999)));
    }

    #[test]
    fn blob_gas_is_that_of_the_blobs() {
        let blobs = Transaction {
            blob_versioned_hashes: Some(vec![crate::model::B256::ZERO; 3]),
            ..dynamic()
        };
        let of = |blob_gas_used| Receipt {
            blob_gas_used: Some(blob_gas_used),
            ..priced(130)
        };
        assert_eq!(set(blobs.clone(), of(393_216)), (0, of(393_216)));
        assert_eq!(set(blobs, of(1)), (1, of(393_216)));
    }
}
