//! Transactions with their receipts, and the lists of their accounts.

use super::narrow;
use crate::codec::chunk::UnitBuilder;
use crate::codec::keys::{self, PostingKind, Term};
use crate::codec::transaction_row::{TRANSACTION_UNIT_BYTES_MAX, encode_transaction, signature};
use crate::codec::value::Creation;
use crate::model::{Bundle, TransactionTrace, created_contract};
use crate::store::{Batch, StoreError, Table};

pub(super) fn derive(
    bundle: &Bundle,
    traces: Option<&[TransactionTrace]>,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let mut units = UnitBuilder::new(bundle.block.number(), TRANSACTION_UNIT_BYTES_MAX);
    let mut next = batch.checkpoint().transactions;
    let mut first_log_index = 0;
    let mut put = |batch: &mut Batch, unit: Option<(u64, &[u8])>| {
        if let Some((count, value)) = unit {
            next += count;
            batch.row(Table::Transactions, &keys::number(next - 1), value)?;
        }
        Ok::<_, StoreError>(())
    };
    let mut row = Vec::with_capacity(512);
    for (index, (transaction, receipt)) in bundle.block.transactions.iter().zip(&bundle.receipts).enumerate()
    {
        let ordinal = batch.transaction(&transaction.hash, &signature(transaction), receipt.status);
        row.clear();
        let logs = first_log_index..first_log_index + narrow(receipt.logs.len(), "number of logs")?;
        encode_transaction(transaction, receipt, &logs, &mut row);
        put(batch, units.push(&row))?;
        first_log_index = logs.end;
        batch.posting(
            Term::account(PostingKind::AccountSent, &transaction.from),
            ordinal,
        );
        // Nodes name the address that a failed creation would have had.
        // Before Byzantium only the trace tells whether it did.
        let traced = || Some(traces?.get(index)?.top()?.error.is_none());
        let is_success = receipt.status.or_else(traced);
        let created =
            created_contract(transaction.to, receipt.contract_address).filter(|_| is_success != Some(false));
        if let Some(contract) = created.filter(|_| receipt.status == Some(true)) {
            let creation = Creation {
                frame: None,
                factory: None,
            };
            batch.row(
                Table::Creations,
                &keys::account_at(&contract, ordinal),
                &creation.encode(),
            )?;
        }
        let parties = [Some(transaction.from), transaction.to, created];
        for account in parties.iter().flatten() {
            batch.posting(Term::account(PostingKind::AccountTransactions, account), ordinal);
        }
    }
    put(batch, units.finish())?;
    Ok(())
}
