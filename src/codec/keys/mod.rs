//! Every key of the store: fixed-length, big-endian, so that byte order is the order of the values.
//!
//! A key is a type here: its drawing, width, encoding and decoding stand together. `docs/SCHEMA.md`
//! repeats the drawings and a test keeps the two equal.

mod kind;
mod term;

pub use kind::PostingKind;
pub use term::{Term, TermId};

use super::Corrupt;
use crate::model::{Address, B256};

/// The last-ordinal part of the key of what is open: the open chunk of a term, the open piece of an emitter.
pub const OPEN: u64 = u64::MAX;
/// The last-ordinal part of the key of an emitter's open run, which stands before the open piece.
pub const OPEN_RUN: u64 = u64::MAX - 1;

/// The key of rows by number: a block number, or the last ordinal of a unit.
///
/// ```text
/// | number u64 |
/// ```
#[must_use]
pub const fn number(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Reads a key written by [`number`].
pub fn decode_number(key: &[u8]) -> Result<u64, Corrupt> {
    Ok(u64::from_be_bytes(
        key.try_into().map_err(|_| Corrupt("number key"))?,
    ))
}

/// The key of a run of one emitter's logs.
///
/// ```text
/// | emitter u32 | last log ordinal u64; ff..fe: the open run, ff..ff: the open piece |
/// ```
#[must_use]
pub fn emitter_run(emitter: u32, last: u64) -> [u8; 12] {
    let mut key = [0u8; 12];
    let (head, tail) = key.split_at_mut(4);
    head.copy_from_slice(&emitter.to_be_bytes());
    tail.copy_from_slice(&last.to_be_bytes());
    key
}

/// Reads a key written by [`emitter_run`].
pub fn decode_emitter_run(key: &[u8]) -> Result<(u32, u64), Corrupt> {
    let (emitter, last) = key.split_first_chunk::<4>().ok_or(Corrupt("emitter run key"))?;
    let last = last.try_into().map_err(|_| Corrupt("emitter run key"))?;
    Ok((u32::from_be_bytes(*emitter), u64::from_be_bytes(last)))
}

/// What a hash prefix names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HashKind {
    /// A block hash -> block number.
    Block = 0,
    /// A transaction hash -> transaction ordinal.
    Transaction = 1,
}

/// The key of a hash: its first 8 bytes. Collisions share a row.
///
/// ```text
/// | kind u8 | hash[0..8] |
/// ```
#[must_use]
pub fn hash(kind: HashKind, hash: &B256) -> [u8; 9] {
    let mut key = [0u8; 9];
    let (head, tail) = key.split_at_mut(1);
    head.fill(kind as u8);
    if let Some(prefix) = hash.0.first_chunk::<8>() {
        tail.copy_from_slice(prefix);
    }
    key
}

/// The key of an account's row at a number: (account, block) or (contract, creating transaction ordinal).
///
/// ```text
/// | account 20 bytes | number u64 |
/// ```
#[must_use]
pub fn account_at(account: &Address, number: u64) -> [u8; 28] {
    let mut key = [0u8; 28];
    let (head, tail) = key.split_at_mut(20);
    head.copy_from_slice(account.as_slice());
    tail.copy_from_slice(&number.to_be_bytes());
    key
}

/// What a row of the table `days` counts; the code leads its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DayKind {
    /// Sums over the blocks of the day.
    Blocks = 0,
    /// Addresses that first took part on the day; known once frames are stored.
    NewAddresses = 1,
}

/// A day since 1970-01-01.
#[must_use]
pub fn day(kind: DayKind, number: u64) -> [u8; 9] {
    let mut key = [kind as u8; 9];
    let (_, tail) = key.split_at_mut(1);
    tail.copy_from_slice(&number.to_be_bytes());
    key
}

/// Reads a key written by [`day`].
pub fn decode_day(key: &[u8]) -> Result<(DayKind, u64), Corrupt> {
    const WHAT: Corrupt = Corrupt("day key");
    let (kind, number) = key.split_first().ok_or(WHAT)?;
    let kind = match kind {
        0 => DayKind::Blocks,
        1 => DayKind::NewAddresses,
        _ => return Err(WHAT),
    };
    let number = number.try_into().map_err(|_| WHAT)?;
    Ok((kind, u64::from_be_bytes(number)))
}

/// Reads a key written by [`account_at`].
pub fn decode_account_at(key: &[u8]) -> Result<(Address, u64), Corrupt> {
    let (account, number) = key.split_first_chunk::<20>().ok_or(Corrupt("account key"))?;
    let number = number.try_into().map_err(|_| Corrupt("account key"))?;
    Ok((Address::from(*account), u64::from_be_bytes(number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emitter_and_account_keys_sort_as_their_values(
            a in any::<(u32, u64)>(), b in any::<(u32, u64)>(), p in any::<[u8; 20]>(), q in any::<[u8; 20]>(),
        ) {
            prop_assert_eq!(a.cmp(&b), emitter_run(a.0, a.1).cmp(&emitter_run(b.0, b.1)));
            prop_assert_eq!(decode_emitter_run(&emitter_run(a.0, a.1)).unwrap(), a);
            let (p, q) = (Address::from(p), Address::from(q));
            prop_assert_eq!((p, a.1).cmp(&(q, b.1)), account_at(&p, a.1).cmp(&account_at(&q, b.1)));
            prop_assert_eq!(decode_account_at(&account_at(&p, a.1)).unwrap(), (p, a.1));
            for kind in [DayKind::Blocks, DayKind::NewAddresses] {
                prop_assert_eq!(decode_day(&day(kind, a.1)).unwrap(), (kind, a.1));
                prop_assert_eq!(a.1.cmp(&b.1), day(kind, a.1).cmp(&day(kind, b.1)));
            }
            prop_assert_eq!(a.1.cmp(&b.1), number(a.1).cmp(&number(b.1)));
        }

        #[test]
        fn arbitrary_keys_never_panic(key in proptest::collection::vec(any::<u8>(), 0..50)) {
            let _ = (Term::decode(&key), Term::decode_piece(&key), decode_emitter_run(&key), decode_account_at(&key), decode_number(&key), decode_day(&key));
        }
    }
}
