//! The end of a term's list of postings while it grows: the open chunk and, after it, the open piece.
//!
//! ```text
//! sealed chunks of 1,024 | open chunk, grows by pieces | open piece, up to 64, grows by postings
//! ```
//!
//! Every commit rewrites the open piece of each term that it touches, so the piece is small, and lies in a table of
//! its own (decision 0038). A full piece is folded into the open chunk when more follows, and a full chunk is sealed
//! likewise, so that neither is ever empty once there is one. Nothing is ever deleted, and how many postings lie where
//! follows from their number alone ([`Cut`]), wherever the work was cut.

use super::Corrupt;
use super::posting::{self, CHUNK_POSTINGS};

/// Postings in a full open piece; a full chunk takes a whole number of them.
pub const PIECE_POSTINGS: usize = 64;

const _: () = assert!(CHUNK_POSTINGS.is_multiple_of(PIECE_POSTINGS));

/// Where the postings of a list lie: each is a number of postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// In sealed chunks, a multiple of [`CHUNK_POSTINGS`].
    pub sealed: u64,
    /// In the open chunk, a multiple of [`PIECE_POSTINGS`]; none only where the piece holds all.
    pub chunk: usize,
    /// In the open piece; none only where there is no list.
    pub piece: usize,
}

impl Cut {
    /// Of a list of `count` postings.
    #[must_use]
    pub const fn of(count: u64) -> Self {
        let piece = last_part(count, PIECE_POSTINGS);
        let folded = count - piece as u64;
        let chunk = last_part(folded, CHUNK_POSTINGS);
        Self {
            sealed: folded - chunk as u64,
            chunk,
            piece,
        }
    }
}

/// What is left of `count` when full parts are taken off as long as something follows them.
const fn last_part(count: u64, part: usize) -> usize {
    match count {
        0 => 0,
        count => ((count - 1) % part as u64) as usize + 1,
    }
}

/// Whether `new` postings more make a piece of `count`, which `rank` precede, be folded into an open chunk that is there
/// already.
#[must_use]
pub const fn wants_chunk(rank: u64, count: usize, new: usize) -> bool {
    rank > 0 && count + new > PIECE_POSTINGS
}

/// The end of a list, in buffers that serve one list after the other.
#[derive(Debug, Default)]
pub struct OpenPostings {
    /// Postings before those of the piece.
    rank: u64,
    /// The piece, with what came since.
    piece: Vec<u64>,
    /// Postings before those of the chunk.
    chunk_rank: u64,
    chunk: Vec<u64>,
    /// Whether something was folded into the chunk.
    folded: bool,
    value: Vec<u8>,
}

impl OpenPostings {
    /// Takes up a list from its stored piece; `None` begins one.
    pub fn resume(&mut self, piece: Option<&[u8]>) -> Result<(), Corrupt> {
        self.piece.clear();
        self.rank = 0;
        if let Some(piece) = piece {
            self.rank = posting::decode(piece, &mut self.piece)?.rank;
        }
        self.chunk.clear();
        self.chunk_rank = 0;
        self.folded = false;
        Ok(())
    }

    /// Postings in the list so far.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.rank + self.piece.len() as u64
    }

    /// Whether the stored open chunk must be taken up before `new` postings are appended.
    #[must_use]
    pub const fn wants_chunk(&self, new: usize) -> bool {
        wants_chunk(self.rank, self.piece.len(), new)
    }

    /// Takes up the stored open chunk: needed before [`Self::extend`] where [`Self::wants_chunk`] says so.
    pub fn take_up(&mut self, chunk: &[u8]) -> Result<(), Corrupt> {
        self.chunk_rank = posting::decode(chunk, &mut self.chunk)?.rank;
        Ok(())
    }

    /// Appends postings, which ascend, and folds what the piece cannot hold.
    pub fn extend(&mut self, postings: &[u64]) -> Result<(), Corrupt> {
        self.piece.extend_from_slice(postings);
        let cut = Cut::of(self.rank + self.piece.len() as u64);
        let folded = self.piece.len() - cut.piece.min(self.piece.len());
        if folded == 0 {
            return Ok(());
        }
        if self.chunk_rank + self.chunk.len() as u64 != self.rank {
            return Err(Corrupt("open chunk: it does not end where the open piece begins"));
        }
        self.chunk.extend(self.piece.drain(..folded));
        self.rank += folded as u64;
        self.folded = true;
        Ok(())
    }

    /// Hands on each chunk that changed: its last posting, `None` while it is open, and its value.
    pub fn chunks<E>(&mut self, mut each: impl FnMut(Option<u64>, &[u8]) -> Result<(), E>) -> Result<(), E> {
        if !std::mem::take(&mut self.folded) {
            return Ok(());
        }
        let mut left = self.chunk.as_slice();
        while left.len() > CHUNK_POSTINGS {
            let (sealed, rest) = left.split_at(CHUNK_POSTINGS);
            self.value.clear();
            posting::encode(self.chunk_rank, sealed, &mut self.value);
            each(sealed.last().copied(), &self.value)?;
            self.chunk_rank += CHUNK_POSTINGS as u64;
            left = rest;
        }
        self.value.clear();
        posting::encode(self.chunk_rank, left, &mut self.value);
        each(None, &self.value)
    }

    /// The value of the open piece.
    pub fn piece(&mut self) -> &[u8] {
        self.value.clear();
        posting::encode(self.rank, &self.piece, &mut self.value);
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::codec::posting::Header;

    /// A list as it is stored: chunks by their last posting, the open one at the end; and the piece.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Stored {
        chunks: BTreeMap<u64, Vec<u8>>,
        piece: Option<Vec<u8>>,
    }

    impl Stored {
        fn append(&mut self, open: &mut OpenPostings, new: &[u64]) {
            open.resume(self.piece.as_deref()).unwrap();
            if open.wants_chunk(new.len()) {
                open.take_up(&self.chunks[&u64::MAX]).unwrap();
            }
            open.extend(new).unwrap();
            open.chunks::<()>(|last, value| {
                self.chunks.insert(last.unwrap_or(u64::MAX), value.to_vec());
                Ok(())
            })
            .unwrap();
            self.piece = Some(open.piece().to_vec());
        }

        fn parts(&self) -> Vec<(u64, Header, Vec<u64>)> {
            let chunks = self.chunks.iter().map(|(last, value)| (*last, value));
            let parts = chunks.chain(self.piece.iter().map(|value| (u64::MAX, value)));
            parts
                .map(|(last, value)| {
                    let mut postings = Vec::new();
                    let header = posting::decode(value, &mut postings).unwrap();
                    (last, header, postings)
                })
                .collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn lists_are_the_same_wherever_they_are_resumed(
            steps in proptest::collection::vec((1usize..3000, 1u64..9), 1..12),
            small in proptest::collection::vec(1usize..70, 0..60),
        ) {
            let mut open = OpenPostings::default();
            let mut stored = Stored::default();
            let mut all = Vec::new();
            let steps = steps.into_iter().chain(small.into_iter().map(|count| (count, 3)));
            for (count, gap) in steps {
                let first = all.last().map_or(7, |last| last + 1);
                let new: Vec<u64> = (0..count as u64).map(|place| first + place * gap).collect();
                all.extend_from_slice(&new);
                stored.append(&mut open, &new);
            }
            let mut whole = Stored::default();
            whole.append(&mut OpenPostings::default(), &all);
            prop_assert_eq!(&stored, &whole);
            let cut = Cut::of(all.len() as u64);
            let parts = stored.parts();
            let mut seen = Vec::new();
            for (last, header, postings) in &parts {
                prop_assert_eq!(header.rank, seen.len() as u64);
                if *last != u64::MAX {
                    prop_assert_eq!(postings.len(), CHUNK_POSTINGS);
                    prop_assert_eq!(postings.last(), Some(last));
                }
                seen.extend_from_slice(postings);
            }
            prop_assert_eq!(seen, all);
            let open: Vec<usize> = parts.iter().filter(|part| part.0 == u64::MAX).map(|part| part.2.len()).collect();
            let wanted: Vec<usize> = [cut.chunk, cut.piece].into_iter().filter(|&part| part > 0).collect();
            prop_assert_eq!(open, wanted);
            prop_assert_eq!((parts.len() as u64 - wanted_len(&cut)) * CHUNK_POSTINGS as u64, cut.sealed);
        }
    }

    fn wanted_len(cut: &Cut) -> u64 {
        u64::from(cut.chunk > 0) + u64::from(cut.piece > 0)
    }

    #[test]
    fn a_list_is_cut_where_more_follows() {
        let cut = |count| {
            let Cut { sealed, chunk, piece } = Cut::of(count);
            assert_eq!(sealed + (chunk + piece) as u64, count);
            assert!(sealed.is_multiple_of(CHUNK_POSTINGS as u64) && chunk.is_multiple_of(PIECE_POSTINGS));
            (sealed, chunk, piece)
        };
        assert_eq!(cut(0), (0, 0, 0));
        assert_eq!(cut(1), (0, 0, 1));
        assert_eq!(cut(64), (0, 0, 64));
        assert_eq!(cut(65), (0, 64, 1));
        assert_eq!(cut(1024 + 64), (0, 1024, 64));
        assert_eq!(cut(1024 + 65), (1024, 64, 1));
        assert_eq!(cut(5 * 1024), (4 * 1024, 960, 64));
    }

    #[test]
    fn a_piece_does_not_go_on_where_another_chunk_ended() {
        let mut open = OpenPostings::default();
        let mut stored = Stored::default();
        stored.append(&mut open, &(0..130).collect::<Vec<_>>());
        open.resume(stored.piece.as_deref()).unwrap();
        let refused = open.extend(&(130..200).collect::<Vec<_>>());
        assert!(refused.is_err(), "the open chunk was not taken up");
    }
}
