//! What a receipt states although it follows from what is hashed: the price paid per gas and the blob gas used. It is
//! computed, so that a node that states it wrongly (some clients did, after London) is neither believed nor waited
//! for. The created contract of a creation is not among it: it follows from the sender, which is itself only stated;
//! where there are traces, theirs and the receipt's must be the same.

use crate::codec::value::{FeeRow, blob_gas_used};
use crate::model::{Bundle, Receipt, Transaction};

/// Puts what follows in the place of what is stated, and answers how many receipts stated something else. What a node
/// leaves out stays left out.
pub(in crate::sync) fn set_what_follows(bundle: &mut Bundle) -> usize {
    let base_fee = bundle.block.header.base_fee_per_gas;
    let pairs = bundle.block.transactions.iter().zip(&mut bundle.receipts);
    pairs
        .map(|(transaction, receipt)| usize::from(set_of(transaction, receipt, base_fee)))
        .sum()
}

fn set_of(transaction: &Transaction, receipt: &mut Receipt, base_fee: Option<u64>) -> bool {
    let mut differs = false;
    if let Some(stated) = &mut receipt.effective_gas_price {
        let price = price(transaction, base_fee);
        differs |= price != *stated;
        *stated = price;
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
    let signed = FeeRow {
        gas_price: transaction.gas_price,
        max_fee_per_gas: transaction.max_fee_per_gas,
        max_priority_fee_per_gas: transaction.max_priority_fee_per_gas,
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
            // What nodes show there for a mined transaction is the price paid, which no hash covers.
            gas_price: Some(999),
            max_fee_per_gas: Some(150),
            max_priority_fee_per_gas: Some(30),
            ..Transaction::default()
        }
    }

    fn set(transaction: Transaction, receipt: Receipt) -> (usize, Receipt) {
        let mut bundle = bundle(transaction, receipt);
        let differing = set_what_follows(&mut bundle);
        (differing, bundle.receipts.remove(0))
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
        assert_eq!(set(legacy, priced(171)), (1, priced(170)));
        let silent = Receipt {
            effective_gas_price: None,
            ..priced(0)
        };
        assert_eq!(set(dynamic(), silent.clone()), (0, silent));
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
