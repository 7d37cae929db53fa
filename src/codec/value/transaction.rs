//! Rows of transactions as layouts up to 8 had them, for those who bring such stores up to ours.

use bincode::BorrowDecode;

use super::super::Corrupt;
use super::super::transaction_row::TransactionRow;
use super::{Trimmed, decode};
use crate::model::{AccessListItem, Address, Authorization, B256, Bytes, Receipt, Transaction};

/// Address, storage keys.
type AccessValue = ([u8; 20], Vec<[u8; 32]>);

#[derive(BorrowDecode)]
#[cfg_attr(test, derive(bincode::Encode))]
struct AuthorizationValue<'a> {
    chain_id: Trimmed<'a>,
    address: [u8; 20],
    nonce: u64,
    y_parity: u8,
    r: Trimmed<'a>,
    s: Trimmed<'a>,
}

/// What only some types of transactions have.
#[derive(BorrowDecode)]
#[cfg_attr(test, derive(bincode::Encode))]
struct TypedValue<'a> {
    max_fee_per_gas: Option<u128>,
    max_priority_fee_per_gas: Option<u128>,
    max_fee_per_blob_gas: Option<u128>,
    access_list: Option<Vec<AccessValue>>,
    blob_versioned_hashes: Option<Vec<[u8; 32]>>,
    authorization_list: Option<Vec<AuthorizationValue<'a>>>,
    y_parity: Option<u8>,
    blob_gas_used: Option<u64>,
    blob_gas_price: Option<u128>,
    transaction_extra: Option<&'a str>,
    receipt_extra: Option<&'a str>,
}

#[derive(BorrowDecode)]
#[cfg_attr(test, derive(bincode::Encode))]
struct TransactionValue<'a> {
    kind: u8,
    status: Option<bool>,
    nonce: u64,
    from: [u8; 20],
    to: Option<[u8; 20]>,
    value: Trimmed<'a>,
    gas: u64,
    gas_price: Option<u128>,
    chain_id: Option<u64>,
    v: Option<u64>,
    r: Trimmed<'a>,
    s: Trimmed<'a>,
    cumulative_gas_used: u64,
    gas_used: u64,
    effective_gas_price: Option<u128>,
    contract_address: Option<[u8; 20]>,
    root: Option<[u8; 32]>,
    receipt_kind: u8,
    first_log_index: u32,
    logs: u32,
    typed: Option<TypedValue<'a>>,
    input: &'a [u8],
}

/// Reads a transaction's row of such a store: with the signature, which lies in an array since.
pub fn decode_bincode_transaction(bytes: &[u8]) -> Result<TransactionRow, Corrupt> {
    let value: TransactionValue<'_> = decode(bytes, "transaction")?;
    let mut transaction = Transaction {
        kind: value.kind,
        nonce: value.nonce,
        from: Address::from(value.from),
        to: value.to.map(Address::from),
        value: value.value.number()?,
        gas: value.gas,
        gas_price: value.gas_price,
        input: Bytes::copy_from_slice(value.input),
        chain_id: value.chain_id,
        v: value.v,
        r: value.r.number()?,
        s: value.s.number()?,
        ..Transaction::default()
    };
    let mut receipt = Receipt {
        kind: value.receipt_kind,
        status: value.status,
        root: value.root.map(B256::from),
        cumulative_gas_used: value.cumulative_gas_used,
        gas_used: value.gas_used,
        effective_gas_price: value.effective_gas_price,
        contract_address: value.contract_address.map(Address::from),
        ..Receipt::default()
    };
    if let Some(typed) = value.typed {
        transaction.max_fee_per_gas = typed.max_fee_per_gas;
        transaction.max_priority_fee_per_gas = typed.max_priority_fee_per_gas;
        transaction.max_fee_per_blob_gas = typed.max_fee_per_blob_gas;
        transaction.access_list = typed.access_list.map(|list| {
            list.into_iter()
                .map(|(address, keys)| AccessListItem {
                    address: Address::from(address),
                    storage_keys: keys.into_iter().map(B256::from).collect(),
                })
                .collect()
        });
        transaction.blob_versioned_hashes = typed
            .blob_versioned_hashes
            .map(|list| list.into_iter().map(B256::from).collect());
        transaction.authorization_list = typed
            .authorization_list
            .map(|list| {
                list.into_iter()
                    .map(|a| {
                        Ok(Authorization {
                            chain_id: a.chain_id.number()?,
                            address: Address::from(a.address),
                            nonce: a.nonce,
                            y_parity: a.y_parity,
                            r: a.r.number()?,
                            s: a.s.number()?,
                        })
                    })
                    .collect::<Result<Vec<_>, Corrupt>>()
            })
            .transpose()?;
        transaction.y_parity = typed.y_parity;
        transaction.extra = typed.transaction_extra.map(str::to_owned);
        receipt.blob_gas_used = typed.blob_gas_used;
        receipt.blob_gas_price = typed.blob_gas_price;
        receipt.extra = typed.receipt_extra.map(str::to_owned);
    }
    Ok(TransactionRow {
        transaction,
        receipt,
        logs: value.first_log_index..value.first_log_index.saturating_add(value.logs),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::transaction_row::tests::{receipt, transaction};
    use super::super::{encode_into, trim};
    use super::*;

    /// Appends a row as layout 8 had it.
    fn encode(transaction: &Transaction, receipt: &Receipt, logs: u32, out: &mut Vec<u8>) {
        let value = transaction.value.to_be_bytes::<32>();
        let (r, s) = (
            transaction.r.to_be_bytes::<32>(),
            transaction.s.to_be_bytes::<32>(),
        );
        let authorizations: Option<Vec<_>> = transaction.authorization_list.as_ref().map(|list| {
            list.iter()
                .map(|a| {
                    (
                        a.chain_id.to_be_bytes::<32>(),
                        a.r.to_be_bytes::<32>(),
                        a.s.to_be_bytes::<32>(),
                        a,
                    )
                })
                .collect()
        });
        let typed =
            (transaction.kind != 0 || transaction.extra.is_some() || receipt.extra.is_some()).then(|| {
                TypedValue {
                    max_fee_per_gas: transaction.max_fee_per_gas,
                    max_priority_fee_per_gas: transaction.max_priority_fee_per_gas,
                    max_fee_per_blob_gas: transaction.max_fee_per_blob_gas,
                    access_list: transaction.access_list.as_ref().map(|list| {
                        list.iter()
                            .map(|item| {
                                (
                                    item.address.into_array(),
                                    item.storage_keys.iter().map(|key| key.0).collect(),
                                )
                            })
                            .collect()
                    }),
                    blob_versioned_hashes: transaction
                        .blob_versioned_hashes
                        .as_ref()
                        .map(|list| list.iter().map(|hash| hash.0).collect()),
                    authorization_list: authorizations.as_ref().map(|list| {
                        list.iter()
                            .map(|(chain_id, r, s, a)| AuthorizationValue {
                                chain_id: trim(chain_id),
                                address: a.address.into_array(),
                                nonce: a.nonce,
                                y_parity: a.y_parity,
                                r: trim(r),
                                s: trim(s),
                            })
                            .collect()
                    }),
                    y_parity: transaction.y_parity,
                    blob_gas_used: receipt.blob_gas_used,
                    blob_gas_price: receipt.blob_gas_price,
                    transaction_extra: transaction.extra.as_deref(),
                    receipt_extra: receipt.extra.as_deref(),
                }
            });
        let row = TransactionValue {
            kind: transaction.kind,
            status: receipt.status,
            nonce: transaction.nonce,
            from: transaction.from.into_array(),
            to: transaction.to.map(Address::into_array),
            value: trim(&value),
            gas: transaction.gas,
            gas_price: transaction.gas_price,
            chain_id: transaction.chain_id,
            v: transaction.v,
            r: trim(&r),
            s: trim(&s),
            cumulative_gas_used: receipt.cumulative_gas_used,
            gas_used: receipt.gas_used,
            effective_gas_price: receipt.effective_gas_price,
            contract_address: receipt.contract_address.map(Address::into_array),
            root: receipt.root.map(|root| root.0),
            receipt_kind: receipt.kind,
            first_log_index: 7,
            logs,
            typed,
            input: &transaction.input,
        };
        encode_into(&row, out);
    }

    #[test]
    fn rows_of_layout_8_are_read() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..1_000 {
            let (mut sent, mut got) = (transaction(&mut random), receipt(&mut random));
            let logs = random.u32(..300);
            let mut bytes = Vec::new();
            encode(&sent, &got, logs, &mut bytes);
            let row = decode_bincode_transaction(&bytes).unwrap();
            // Of the oldest type nothing was said that others have.
            if sent.kind == 0 && sent.extra.is_none() && got.extra.is_none() {
                (got.blob_gas_used, got.blob_gas_price) = (None, None);
                sent = Transaction {
                    max_fee_per_gas: None,
                    max_priority_fee_per_gas: None,
                    max_fee_per_blob_gas: None,
                    access_list: None,
                    blob_versioned_hashes: None,
                    authorization_list: None,
                    y_parity: None,
                    ..sent
                };
            }
            assert_eq!((row.transaction, row.receipt, row.logs), (sent, got, 7..7 + logs));
        }
    }
}
