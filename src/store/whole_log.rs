//! Logs as they were emitted, read out of units by block.

use super::{StoreError, Table, Units, View, Wanted};
use crate::codec::keys;
use crate::codec::log_row::{decode_block_row, decode_body};
use crate::model::Topics;

/// A log but for its data.
#[derive(Clone, Debug)]
pub struct WholeLog {
    /// Number of its block.
    pub block: u64,
    /// Place in the block.
    pub index: u32,
    /// Place of its transaction in the block.
    pub transaction_index: u32,
    /// Id of the contract that emitted it.
    pub emitter: u32,
    /// Its topics.
    pub topics: Topics,
}

impl Units<'_> {
    /// The log with an ordinal, of the units by block; its data goes into `data` (cleared first).
    pub fn log(&mut self, view: &View, ordinal: u64, data: &mut Vec<u8>) -> Result<WholeLog, StoreError> {
        self.log_of(view, Wanted::only(&[ordinal]), data)
    }

    /// The same of the first of the wanted rows.
    pub fn log_of(
        &mut self,
        view: &View,
        wanted: Wanted<'_>,
        data: &mut Vec<u8>,
    ) -> Result<WholeLog, StoreError> {
        let corrupt = |corrupt| {
            let key = keys::number(wanted.first());
            StoreError::corrupt(Table::LogsByBlock.name(), &key)(corrupt)
        };
        let row = self.row_of(wanted)?;
        let (block, index) = (row.block, row.index as u32);
        let mut body = row.reader;
        let place = decode_block_row(&mut body).map_err(corrupt)?;
        let mut topics = Topics::default();
        let signature = decode_body(&mut body, &mut topics, data).map_err(corrupt)?;
        if let Some(signature) = signature {
            topics.set_first(view.signature_topic(signature)?);
        }
        Ok(WholeLog {
            block,
            index,
            transaction_index: place.transaction_index,
            emitter: place.emitter,
            topics,
        })
    }
}
