//! The end of an emitter's list of logs: the open run and, after it, the open piece.
//!
//! ```text
//! sealed runs of about 12 KB | open run, grows by pieces | open piece, grows by logs
//! ```
//!
//! Every commit rewrites the open piece of each emitter that it touches, so the piece is small. A full piece is
//! folded into the open run, which is rewritten only then. A run that would overflow is sealed under the
//! ordinal of its last log, and the piece takes its place. Nothing is ever deleted, and the bytes follow from
//! the logs alone, wherever the work was cut.

use super::Corrupt;
use super::log_row::{RunBuilder, RunRow};

/// A run is sealed before it would grow beyond this. About 12 KB, the prototype's size: a page of 10,000 logs
/// is some 80 reads, and one scattered hit does not unpack much.
pub const RUN_BYTES_MAX: usize = 12 * 1024;

/// A piece is folded before it would grow beyond this (decision 0013).
pub const PIECE_BYTES_MAX: usize = 1536;

/// What a row takes beside its body, at most.
const ROW_BYTES: usize = 44;

/// The end of a list, new or taken up from its stored piece; the open run is taken up when it is needed.
#[derive(Clone, Debug, Default)]
pub struct OpenList {
    piece: RunBuilder,
    run: Option<RunBuilder>,
}

impl OpenList {
    /// Takes up the end of a list from its stored piece; `None` begins a list.
    pub fn resume(piece: Option<&[u8]>) -> Result<Self, Corrupt> {
        let piece = piece.map(RunBuilder::resume).transpose()?;
        Ok(Self {
            piece: piece.unwrap_or_default(),
            run: None,
        })
    }

    /// Whether the stored open run must be taken up before a log with this body is appended.
    #[must_use]
    pub fn wants_run(&self, body: &[u8]) -> bool {
        // Logs stand before the piece: then there is an open run, and they end in it.
        self.is_full(body) && self.run.is_none() && self.piece.header().rank > 0
    }

    /// Takes up the stored open run.
    pub fn take_up(&mut self, run: &[u8]) -> Result<(), Corrupt> {
        self.run = Some(RunBuilder::resume(run)?);
        Ok(())
    }

    /// Appends a log around its encoded body. Answers the run that was sealed for it: (its last ordinal, its
    /// value).
    pub fn push(&mut self, row: &RunRow, body: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Corrupt> {
        let sealed = if self.is_full(body) { self.fold()? } else { None };
        self.piece.push(row, body);
        Ok(sealed)
    }

    fn is_full(&self, body: &[u8]) -> bool {
        self.piece.header().count > 0 && self.piece.len_bytes() + body.len() + ROW_BYTES > PIECE_BYTES_MAX
    }

    fn fold(&mut self) -> Result<Option<(u64, Vec<u8>)>, Corrupt> {
        let header = self.piece.header();
        let next = RunBuilder::new(header.rank + header.count);
        let piece = std::mem::replace(&mut self.piece, next);
        let Some(run) = &mut self.run else {
            if piece.header().rank > 0 {
                return Err(Corrupt("end of a list whose open run was not taken up"));
            }
            self.run = Some(piece);
            return Ok(None);
        };
        if run.len_bytes() + piece.len_bytes() > RUN_BYTES_MAX {
            let sealed = (run.header().last_ordinal, run.encode());
            *run = piece;
            return Ok(Some(sealed));
        }
        run.append(&piece)?;
        Ok(None)
    }

    /// The open piece.
    #[must_use]
    pub const fn piece(&self) -> &RunBuilder {
        &self.piece
    }

    /// The open run, where it was taken up or made: then it has changed.
    #[must_use]
    pub const fn run(&self) -> Option<&RunBuilder> {
        self.run.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::keys;
    use crate::codec::log_row::{RunReader, decode_body, encode_body};
    use crate::model::{Address, B256, Log, Topics};
    use proptest::prelude::*;

    /// A list as it is stored, and its end while it is open.
    #[derive(Default)]
    struct Stored {
        piece: Option<Vec<u8>>,
        run: Option<Vec<u8>>,
        list: Option<OpenList>,
    }

    impl Stored {
        fn write(&mut self) {
            if let Some(list) = self.list.take() {
                self.piece = Some(list.piece().encode());
                self.run = list.run().map(RunBuilder::encode).or(self.run.take());
            }
        }
    }

    fn logs() -> impl Strategy<Value = Vec<(u64, u64, u32, Log)>> {
        let word = (any::<[u8; 32]>(), 0usize..33).prop_map(|(mut word, zeros)| {
            word[..zeros].fill(0);
            B256::from(word)
        });
        let topics = proptest::collection::vec(word, 0..5);
        let data = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..100),
            proptest::collection::vec(Just(0u8), 64),
            (1usize..8).prop_map(|n| (0..n * 32).map(|i| (i % 5) as u8).collect()),
        ];
        let log = (topics, data).prop_map(|(topics, data)| Log {
            address: Address::ZERO,
            topics: Topics::new(&topics).unwrap(),
            data: data.into(),
        });
        proptest::collection::vec((1u64..5, 0u64..3, 0u32..3, log), 1..300).prop_map(|rows| {
            let (mut ordinal, mut block) = (100, 7);
            rows.into_iter()
                .map(|(gap, blocks, index, log)| {
                    ordinal += gap;
                    block += blocks;
                    (ordinal, block, index, log)
                })
                .collect()
        })
    }

    fn hash(block: u64, index: u32) -> B256 {
        B256::left_padding_from(&(block * 100 + u64::from(index)).to_be_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn lists_give_their_logs_back_wherever_they_are_resumed(logs in logs(), every in 1usize..50) {
            let (mut values, mut whole_values) = (Vec::new(), Vec::new());
            let mut stored = Stored::default();
            let mut whole = OpenList::default();
            for (place, (ordinal, block, index, log)) in logs.iter().enumerate() {
                let row = RunRow { ordinal: *ordinal, block: *block, transaction_index: *index, transaction_hash: hash(*block, *index) };
                let mut body = Vec::new();
                encode_body(log, 3, &mut body);
                if place % every == 0 {
                    stored.write();
                }
                let list = stored.list.get_or_insert_with(|| OpenList::resume(stored.piece.as_deref()).unwrap());
                if list.wants_run(&body) {
                    list.take_up(stored.run.as_deref().unwrap()).unwrap();
                }
                values.extend(list.push(&row, &body).unwrap());
                prop_assert!(!whole.wants_run(&body));
                whole_values.extend(whole.push(&row, &body).unwrap());
            }
            stored.write();
            whole_values.extend(whole.run().map(|run| (keys::OPEN_RUN, run.encode())));
            whole_values.push((keys::OPEN, whole.piece().encode()));
            values.extend(stored.run.map(|run| (keys::OPEN_RUN, run)));
            values.extend(stored.piece.map(|piece| (keys::OPEN, piece)));
            prop_assert_eq!(&values, &whole_values, "bytes do not depend on where the work was cut");
            let mut seen = 0usize;
            for (key, value) in &values {
                let mut run = RunReader::new(value).unwrap();
                let max = if *key == keys::OPEN { PIECE_BYTES_MAX } else { RUN_BYTES_MAX };
                prop_assert!(value.len() < max + 300);
                prop_assert_eq!(run.header().rank, seen as u64);
                if *key < keys::OPEN_RUN {
                    prop_assert_eq!(run.header().last_ordinal, *key);
                    prop_assert!(value.len() > RUN_BYTES_MAX - PIECE_BYTES_MAX - 300);
                }
                let (mut topics, mut data) = (crate::model::Topics::default(), Vec::new());
                while let Some((row, mut reader)) = run.next_row().unwrap() {
                    let (ordinal, block, index, log) = &logs[seen];
                    prop_assert_eq!(row, RunRow { ordinal: *ordinal, block: *block, transaction_index: *index, transaction_hash: hash(*block, *index) });
                    decode_body(&mut reader, &mut topics, &mut data).unwrap();
                    prop_assert_eq!(topics.len(), log.topics.len());
                    prop_assert_eq!(&data[..], &log.data[..]);
                    prop_assert_eq!(topics.get(1..), log.topics.get(1..));
                    seen += 1;
                }
            }
            prop_assert_eq!(seen, logs.len());
        }

        #[test]
        fn a_run_that_is_appended_gives_the_bytes_of_its_rows(logs in logs(), cut in 0usize..300) {
            let cut = cut.min(logs.len());
            let (mut one, mut two, mut whole) = (RunBuilder::new(5), RunBuilder::new(5 + cut as u64), RunBuilder::new(5));
            for (place, (ordinal, block, index, log)) in logs.iter().enumerate() {
                let row = RunRow { ordinal: *ordinal, block: *block, transaction_index: *index, transaction_hash: hash(*block, *index) };
                let mut body = Vec::new();
                encode_body(log, 3, &mut body);
                if place < cut { one.push(&row, &body) } else { two.push(&row, &body) }
                whole.push(&row, &body);
            }
            one.append(&two).unwrap();
            prop_assert_eq!(one.encode(), whole.encode());
        }
    }

    #[test]
    fn logs_larger_than_a_run_stand_alone() {
        let mut list = OpenList::default();
        let mut sealed = Vec::new();
        for ordinal in 0..5 {
            let row = RunRow {
                ordinal,
                block: ordinal,
                ..RunRow::default()
            };
            sealed.extend(list.push(&row, &[0; 20_000]).unwrap());
        }
        assert_eq!(
            sealed.iter().map(|(last, _)| *last).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        assert_eq!(
            list.run().map(|run| (run.header().rank, run.header().count)),
            Some((3, 1))
        );
        assert_eq!((list.piece().header().rank, list.piece().header().count), (4, 1));
    }
}
