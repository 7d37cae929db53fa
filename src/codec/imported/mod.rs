//! Keys and values of the store of imports: what the operator supplied beside the chain.
//!
//! ```text
//! 00                        -> format 1, chain id varint, genesis hash 32
//! 01 | kind 1 | source hash 32 -> record of an import: source text, time varint, taken varint, rejected varint
//! ```
//!
//! The kinds of rows from 02 on have a file each.

pub mod contracts;
pub mod prices;
pub mod tokens;

use super::Corrupt;
use super::beside::{identity, put_text, read_text};
use super::bytes::{Reader, put_varint};
use crate::model::{ImportKind, ImportRecord};

/// The version of this layout; a store of imports of another one is refused.
pub const FORMAT: u8 = 1;

/// The key of the row that says whose imports they are.
pub const IDENTITY: [u8; 1] = [0];

const RECORD: u8 = 1;

/// Whose imports they are.
#[must_use]
pub fn encode_identity(chain_id: u64, genesis: &[u8; 32]) -> Vec<u8> {
    identity(FORMAT, chain_id, genesis)
}

/// The key of the record of an import: one a kind and source, so that the same import again is one record.
#[must_use]
pub fn record_key(kind: ImportKind, source: &str) -> [u8; 34] {
    let mut key = [0; 34];
    let [first, second, hash @ ..] = &mut key;
    (*first, *second) = (RECORD, kind as u8);
    hash.copy_from_slice(alloy_primitives::keccak256(source).as_slice());
    key
}

/// The first and the last key that a record can have.
#[must_use]
pub const fn record_range() -> ([u8; 1], [u8; 35]) {
    let mut end = [0xff; 35];
    end[0] = RECORD;
    ([RECORD], end)
}

/// The record of an import.
#[must_use]
pub fn encode_record(record: &ImportRecord) -> Vec<u8> {
    let mut out = vec![record.kind as u8];
    put_text(&mut out, &record.source);
    put_varint(&mut out, record.time);
    put_varint(&mut out, record.taken);
    put_varint(&mut out, record.rejected);
    out
}

/// Reads the record of an import.
pub fn decode_record(bytes: &[u8]) -> Result<ImportRecord, Corrupt> {
    let mut reader = Reader::new(bytes, "record of an import");
    let kind = ImportKind::from_code(reader.byte()?).ok_or(Corrupt("kind of an import"))?;
    let record = ImportRecord {
        kind,
        source: read_text(&mut reader)?,
        time: reader.varint()?,
        taken: reader.varint()?,
        rejected: reader.varint()?,
    };
    reader.end()?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_lie_in_their_range() {
        for kind in ImportKind::ALL {
            let record = ImportRecord {
                kind,
                source: "prices 2026 \u{e9}.csv".to_owned(),
                time: 1_700_000_000,
                taken: 3,
                rejected: 0,
            };
            let bytes = encode_record(&record);
            assert_eq!(decode_record(&bytes).unwrap(), record);
            assert!((0..bytes.len()).all(|len| decode_record(&bytes[..len]).is_err()));
            let key = record_key(kind, &record.source);
            let (from, to) = record_range();
            assert!(from.as_slice() <= key.as_slice() && key.as_slice() <= to.as_slice());
        }
    }
}
