//! Logs, twice: by block and by emitter; and their postings.

use super::narrow;
use crate::codec::chunk::UnitBuilder;
use crate::codec::keys::{self, Term};
use crate::codec::log_row::{BlockRow, RunRow, encode_block_row, encode_body};
use crate::model::Bundle;
use crate::store::{Batch, StoreError, Table};

/// A unit of logs: about one disk block, so that a scattered hit unpacks little (measured: 16 KB units
/// halve scattered look-ups for a tenth fewer bytes).
const UNIT_BYTES_MAX: usize = 4000;

pub(super) fn derive(bundle: &Bundle, batch: &mut Batch) -> Result<(), StoreError> {
    let block = bundle.block.number();
    let mut units = UnitBuilder::new(block, UNIT_BYTES_MAX);
    let mut next = batch.checkpoint().logs;
    let mut put = |batch: &mut Batch, unit: Option<(u64, &[u8])>| {
        if let Some((count, value)) = unit {
            next += count;
            batch.row(Table::LogsByBlock, &keys::number(next - 1), value)?;
        }
        Ok::<_, StoreError>(())
    };
    let (mut body, mut row) = (Vec::with_capacity(256), Vec::with_capacity(256));
    for (index, (transaction, receipt)) in bundle.block.transactions.iter().zip(&bundle.receipts).enumerate()
    {
        let transaction_index = narrow(index, "transaction index")?;
        for log in &receipt.logs {
            let ordinal = batch.checkpoint().logs;
            let emitter = batch.emitter(&log.address)?;
            let topics = log.topics.as_slice();
            let signature = match topics.first() {
                Some(topic) => Some(batch.signature(topic)?),
                None => None,
            };
            body.clear();
            encode_body(log, signature.unwrap_or(0), &mut body);
            row.clear();
            encode_block_row(
                BlockRow {
                    transaction_index,
                    emitter,
                },
                &body,
                &mut row,
            );
            put(batch, units.push(&row))?;
            let place = RunRow {
                ordinal,
                block,
                transaction_index,
                transaction_hash: transaction.hash,
            };
            batch.log(emitter, signature, &place, &body);
            batch.posting(Term::log_address(emitter), ordinal);
            if let Some(signature) = signature {
                batch.posting(Term::topic0(signature), ordinal);
                batch.posting(Term::log_address_topic0(emitter, signature), ordinal);
            }
            for (position, topic) in topics.iter().enumerate().skip(1) {
                if let Some(term) = Term::topic(position, topic) {
                    batch.posting(term, ordinal);
                }
            }
        }
    }
    put(batch, units.finish())?;
    Ok(())
}
