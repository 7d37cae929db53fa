//! Which blocks were stored at the word of their node (`--trust-node`).
//!
//! A row of `meta` names them, written together with the blocks. It is not of the undo records: blocks that are taken off leave it as it
//! is, and what comes in their place says what it is.

use std::ops::RangeInclusive;

use rocksdb::{DB, WriteBatch};

use super::StoreError;
use super::batch::Batch;
use super::schema::Table;
use super::view::{View, family};
use super::writer::Writer;
use crate::codec::value::Unverified;

/// The key of the row.
pub(super) const KEY: &[u8] = b"unverified";

/// Whether blocks are stored at the word of their node, and which of the stored ones were.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    stored: Unverified,
    at_its_word: bool,
}

impl Trust {
    /// As the row has it, if there is one.
    pub(super) fn of(row: Option<&[u8]>) -> Result<Self, StoreError> {
        Ok(Self {
            stored: decode(row)?,
            at_its_word: false,
        })
    }

    /// The same after a batch, whose write says so where it changes.
    pub(super) fn told(&self, db: &DB, batch: &Batch, write: &mut WriteBatch) -> Result<Self, StoreError> {
        let blocks = (batch.base.next_block, batch.checkpoint.next_block);
        let stored = self.stored.after(blocks, self.at_its_word);
        if stored != self.stored {
            write.put_cf(family(db, Table::Meta)?, KEY, stored.encode());
        }
        Ok(Self { stored, ..*self })
    }
}

/// What the row says; nothing where there is none.
fn decode(row: Option<&[u8]>) -> Result<Unverified, StoreError> {
    let stored = row.map(Unverified::decode).transpose();
    Ok(stored
        .map_err(StoreError::corrupt(Table::Meta.name(), KEY))?
        .unwrap_or_default())
}

impl Writer {
    /// States whether the blocks that are committed from now on are stored at the word of their node, or were verified.
    pub fn take_at_its_word(&mut self, at_its_word: bool) -> Result<(), StoreError> {
        self.step(|pen| {
            pen.state.trust.at_its_word = at_its_word;
            Ok(())
        })
    }
}

/// Ranges of the stored blocks by where they are from; ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Verified before they were stored.
    pub verified: Vec<RangeInclusive<u64>>,
    /// Stored at the word of their node.
    pub trusted: Vec<RangeInclusive<u64>>,
}

impl View {
    /// Which blocks were verified before they were stored, and which were not.
    pub fn provenance(&self) -> Result<Provenance, StoreError> {
        let mut told = Provenance::default();
        let Some(head) = self.head() else {
            return Ok(told);
        };
        let stored = decode(self.get(Table::Meta, KEY)?.as_deref())?;
        let mut next = self.first_block();
        for (first, end) in stored.ranges {
            // Blocks that were taken off since may stand in it, also before the first one: a store that lost all of them may begin
            // elsewhere.
            let (first, last) = (first.max(next), (end - 1).min(head.number));
            if first > last {
                continue;
            }
            if next < first {
                told.verified.push(next..=first - 1);
            }
            told.trusted.push(first..=last);
            next = last.saturating_add(1);
        }
        if next <= head.number {
            told.verified.push(next..=head.number);
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::B256;
    use crate::store::{BlockEarnings, OpenOptions, Store};

    fn commit(writer: &mut Writer, block: u64) {
        let mut batch = writer.batch();
        let hash = B256::with_last_byte(block as u8 + 1);
        let earnings = BlockEarnings::default();
        batch.begin_block(block, hash, 1, &earnings).unwrap();
        writer.commit_unfinal(batch).unwrap();
    }

    #[test]
    fn nothing_is_said_of_blocks_that_were_taken_off() {
        let home = tempfile::tempdir().unwrap();
        let open = || Store::open_or_create(&OpenOptions::new(home.path()), 1, B256::ZERO, None).unwrap();
        let told = |store: &Store| {
            let Provenance { verified, trusted } = store.view().provenance().unwrap();
            (verified, trusted)
        };
        let store = open();
        let mut writer = store.writer().unwrap();
        assert_eq!(told(&store), (vec![], vec![]));
        commit(&mut writer, 0);
        writer.take_at_its_word(true).unwrap();
        (1..5).for_each(|block| commit(&mut writer, block));
        assert_eq!(told(&store), (vec![0..=0], vec![1..=4]));
        writer.unwind(3).unwrap();
        assert_eq!(told(&store), (vec![0..=0], vec![1..=2]));
        writer.unwind(1).unwrap();
        assert_eq!(told(&store), (vec![0..=0], vec![]));
        drop(writer);
        drop(store);
        // Nor of what comes in their place after a restart.
        let store = open();
        let mut writer = store.writer().unwrap();
        (1..3).for_each(|block| commit(&mut writer, block));
        assert_eq!(told(&store), (vec![0..=2], vec![]));
    }

    #[test]
    fn nothing_is_said_of_blocks_of_a_store_that_began_elsewhere() {
        for (first, at_its_word) in [(200, false), (102, false), (50, false), (102, true), (104, true)] {
            let home = tempfile::tempdir().unwrap();
            let open = |first| {
                let options = OpenOptions::new(home.path());
                let store = Store::open_or_create(&options, 1, B256::ZERO, Some(first)).unwrap();
                let writer = store.writer().unwrap();
                (store, writer)
            };
            let (store, mut writer) = open(100);
            writer.take_at_its_word(true).unwrap();
            (100..104).for_each(|block| commit(&mut writer, block));
            writer.unwind(100).unwrap();
            drop((store, writer));
            let (store, mut writer) = open(first);
            writer.take_at_its_word(at_its_word).unwrap();
            (first..first + 3).for_each(|block| commit(&mut writer, block));
            let all = vec![first..=first + 2];
            let (verified, trusted) = if at_its_word { (vec![], all) } else { (all, vec![]) };
            let told = store.view().provenance().unwrap();
            assert_eq!(told, Provenance { verified, trusted }, "{first} {at_its_word}");
        }
    }
}
