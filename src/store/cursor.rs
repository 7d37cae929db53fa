//! Cursors over the postings of a term.

use std::sync::Arc;

use super::StoreError;
use super::scan::{Item, Scan};
use super::schema::Table;
use super::view::View;
use crate::codec::keys::{self, Term};
use crate::codec::posting::{self, CHUNK_POSTINGS};
use crate::metrics::visits;

/// Which way a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending ordinals.
    Forward,
    /// Descending ordinals.
    Backward,
}

/// The place of a list's open piece among its chunks.
const PIECE: u64 = u64::MAX;

/// A decoded chunk of a list, or its open piece.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    rank: u64,
    postings: Vec<u64>,
}

impl Chunk {
    fn first(&self) -> Option<u64> {
        self.postings.first().copied()
    }

    fn last(&self) -> Option<u64> {
        self.postings.last().copied()
    }
}

/// The ascending ordinals of one term, read chunk by chunk.
///
/// A cursor stands on a posting or past an end. `seek` and `step` may be called at any time, also past
/// an end and with targets that lie behind; near targets cost a search in the decoded chunk, far ones one
/// seek in the table.
pub struct PostingCursor<'v> {
    view: &'v View,
    term: Term,
    scan: Option<Scan<'v>>,
    /// The open piece, which a point look-up found; empty when the term does not occur.
    piece: Arc<Chunk>,
    /// The chunk that was decoded last, sealed or open, or one that is known.
    chunk: Arc<Chunk>,
    /// Whether the scan stands at it.
    is_scanned: bool,
    in_piece: bool,
    position: usize,
    direction: Direction,
    /// No posting lies at or before this, as far as one was looked for: who asks for several lists at each place of another one asks a list
    /// that begins later again and again.
    none_to: Option<u64>,
    /// Chunks decoded, for figures.
    chunks_read: u64,
}

impl std::fmt::Debug for PostingCursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostingCursor")
            .field("term", &self.term)
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl<'v> PostingCursor<'v> {
    /// A cursor over the postings of `term`, past the end until it is moved.
    pub fn open(view: &'v View, term: Term, direction: Direction) -> Result<Self, StoreError> {
        let piece = match view.known_chunk(term, PIECE) {
            Some(piece) => piece,
            None => Self::read_piece(view, term)?,
        };
        let position = usize::MAX;
        Ok(Self {
            view,
            term,
            scan: None,
            piece,
            chunk: Arc::default(),
            is_scanned: false,
            in_piece: true,
            position,
            direction,
            none_to: None,
            chunks_read: 1,
        })
    }

    fn read_piece(view: &View, term: Term) -> Result<Arc<Chunk>, StoreError> {
        let key = term.piece_key();
        let Some(bytes) = view.get(Table::OpenPostings, &key)? else {
            return Ok(Arc::default());
        };
        let mut piece = Chunk::default();
        piece.rank = posting::decode(&bytes, &mut piece.postings)
            .map_err(StoreError::corrupt(Table::OpenPostings.name(), &key))?
            .rank;
        let piece = Arc::new(piece);
        view.know_chunk(term, PIECE, &piece);
        Ok(piece)
    }

    /// How many postings the term has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.piece.rank + self.piece.postings.len() as u64
    }

    /// Chunks decoded so far.
    #[must_use]
    pub const fn chunks_read(&self) -> u64 {
        self.chunks_read
    }

    fn here(&self) -> &Chunk {
        if self.in_piece { &self.piece } else { &self.chunk }
    }

    /// The posting under the cursor; `None` past an end.
    #[must_use]
    #[inline]
    pub fn current(&self) -> Option<u64> {
        self.here().postings.get(self.position).copied()
    }

    /// How many postings lie before the one under the cursor; the count of all past an end.
    #[must_use]
    pub fn rank(&self) -> u64 {
        match self.current() {
            Some(_) => self.here().rank + self.position as u64,
            None => self.count(),
        }
    }

    /// The direction in which the cursor moves.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// The postings of the current chunk that lie at or beyond the cursor in its direction, ascending; empty
    /// past an end. For loops that take many at once.
    #[must_use]
    pub fn window(&self) -> &[u64] {
        let postings = &self.here().postings;
        match self.direction {
            Direction::Forward => postings.get(self.position..),
            Direction::Backward => self.position.checked_add(1).and_then(|end| postings.get(..end)),
        }
        .unwrap_or(&[])
    }

    /// Moves to a place of the open piece, or of the chunk.
    fn stand(&mut self, in_piece: bool, place: u64) -> Option<u64> {
        self.in_piece = in_piece;
        self.position = usize::try_from(place).unwrap_or(usize::MAX);
        self.current()
    }

    /// Stands nowhere, as a cursor that was opened just now.
    pub fn leave(&mut self) {
        self.past_end();
    }

    fn past_end(&mut self) -> Option<u64> {
        self.position = usize::MAX;
        None
    }

    /// Moves to the first posting at or after `target` (forward) or the last at or before it (backward).
    #[inline]
    pub fn seek(&mut self, target: u64) -> Result<Option<u64>, StoreError> {
        match self.direction {
            Direction::Forward => self.seek_forward(target),
            Direction::Backward => self.seek_backward(target),
        }
    }

    /// Moves one posting on in the cursor's direction; stays past the end once there.
    #[inline]
    pub fn step(&mut self) -> Result<Option<u64>, StoreError> {
        let Some(current) = self.current() else {
            return Ok(None);
        };
        match self.direction {
            Direction::Forward => {
                self.position += 1;
                if let Some(next) = self.current() {
                    return Ok(Some(next));
                }
                match current.checked_add(1) {
                    Some(target) => self.seek_forward(target),
                    None => Ok(self.past_end()),
                }
            }
            Direction::Backward => {
                if let Some(position) = self.position.checked_sub(1) {
                    self.position = position;
                    return Ok(self.current());
                }
                match current.checked_sub(1) {
                    Some(target) => self.seek_backward(target),
                    None => Ok(self.past_end()),
                }
            }
        }
    }

    /// The place of the first posting at or after `target` in a sorted list, looked for near `from` first.
    #[inline]
    fn place(list: &[u64], from: usize, target: u64) -> usize {
        let from = if list.get(from).is_some_and(|&posting| posting < target) {
            from
        } else {
            0
        };
        // Gallop: leapfrogging mostly moves a few postings.
        let mut step = 1;
        let mut low = from;
        while list.get(low + step).is_some_and(|&posting| posting < target) {
            low += step;
            step *= 2;
        }
        let high = (low + step + 1).min(list.len());
        low + list
            .get(low..high)
            .map_or(0, |part| part.partition_point(|&posting| posting < target))
    }

    /// Moves to the first posting at or after `target`, whatever the cursor's direction.
    pub fn seek_forward(&mut self, target: u64) -> Result<Option<u64>, StoreError> {
        let here = self.here();
        if here.first().is_some_and(|first| first <= target) && here.last().is_some_and(|last| target <= last)
        {
            self.position = Self::place(&here.postings, self.position, target);
            return Ok(self.current());
        }
        let Some(piece_first) = self.piece.first() else {
            return Ok(self.past_end());
        };
        let before_piece = self.piece.rank > 0 && target < piece_first;
        if before_piece {
            self.load_chunk(target, false)?;
            if let Some(last) = self.chunk.last()
                && last >= target
            {
                self.in_piece = false;
                self.position = self.chunk.postings.partition_point(|&posting| posting < target);
                return Ok(self.current());
            }
        }
        self.in_piece = true;
        self.position = self.piece.postings.partition_point(|&posting| posting < target);
        Ok(self.current())
    }

    /// How many postings of a sorted list lie at or before `target`, looked for near `from` first where that lies after it; wherever it
    /// lies the answer is the same.
    #[inline]
    fn place_back(list: &[u64], from: usize, target: u64) -> usize {
        let (mut high, mut step) = (list.len(), list.len());
        if list.get(from).is_some_and(|&posting| target < posting) {
            (high, step) = (from, 1);
            while let Some(&posting) = high.checked_sub(step).and_then(|low| list.get(low))
                && target < posting
            {
                high -= step;
                step *= 2;
            }
        }
        let low = high.saturating_sub(step);
        low + list
            .get(low..high)
            .map_or(0, |part| part.partition_point(|&posting| posting <= target))
    }

    /// Moves to the last posting at or before `target`.
    fn seek_backward(&mut self, target: u64) -> Result<Option<u64>, StoreError> {
        if self.none_to.is_some_and(|none| target <= none) {
            return Ok(self.past_end());
        }
        let Some(piece_first) = self.piece.first() else {
            return Ok(self.past_end());
        };
        if piece_first <= target {
            self.in_piece = true;
        } else if self.piece.rank == 0 {
            return Ok(self.past_end());
        } else {
            let here = !self.in_piece
                && self.chunk.first().is_some_and(|first| first <= target)
                && self.chunk.last().is_some_and(|last| target <= last);
            if !here {
                self.load_chunk(target, true)?;
            }
            self.in_piece = false;
        }
        let after = Self::place_back(&self.here().postings, self.position, target);
        match after.checked_sub(1) {
            Some(position) => {
                self.position = position;
                Ok(self.current())
            }
            None => {
                self.none_to = Some(target);
                Ok(self.past_end())
            }
        }
    }

    /// Decodes the first sealed chunk that ends at or after `target`, or else the open one; with `before`, the
    /// one before it where that one begins after `target`. Leaves `chunk` empty where there is none.
    fn load_chunk(&mut self, target: u64, before: bool) -> Result<(), StoreError> {
        let scan = match &mut self.scan {
            Some(scan) => scan,
            none => {
                // The open chunk stands at the last key.
                let mut end = self.term.key(keys::OPEN);
                end.push(0);
                none.insert(self.view.scan(Table::Postings, self.term.key(0), end)?)
            }
        };
        let name = Table::Postings.name();
        let begins_after = |(key, bytes): Item<'_>| {
            let header = posting::header(bytes).map_err(StoreError::corrupt(name, key))?;
            Ok::<_, StoreError>(target < header.first)
        };
        let wanted = self.term.key(target);
        // The scan stands at the chunk that was decoded last. A list that is walked goes on with the one beside it, and to step there
        // takes a part of what a seek does.
        let ends = self
            .chunk
            .first()
            .zip(self.chunk.last())
            .filter(|_| self.is_scanned);
        // One that others have, too, is left to them.
        if Arc::get_mut(&mut self.chunk).is_none() {
            self.chunk = Arc::default();
        }
        let chunk = Arc::make_mut(&mut self.chunk);
        chunk.postings.clear();
        let is_near = |gap: u64, (first, last): (u64, u64)| gap <= last.saturating_sub(first).max(1);
        let beside = match ends {
            Some(ends) if !before && ends.1 < target && is_near(target - ends.1, ends) => {
                scan.step()?.filter(|(key, _)| &wanted[..] <= *key)
            }
            Some(ends) if before && target < ends.0 && is_near(ends.0 - target, ends) => {
                match scan.step_back()? {
                    Some(item) if !begins_after(item)? => Some(item),
                    _ => None,
                }
            }
            _ => None,
        };
        let found = match beside {
            Some(item) => Some(item),
            None => match scan.seek(&wanted)? {
                Some(item) if before && begins_after(item)? => scan.step_back()?,
                None if before => scan.seek_back(&wanted)?,
                found => found,
            },
        };
        self.is_scanned = true;
        if let Some((key, bytes)) = found {
            chunk.rank = posting::decode(bytes, &mut chunk.postings)
                .map_err(StoreError::corrupt(name, key))?
                .rank;
            self.chunks_read += 1;
            visits::chunk();
        }
        Ok(())
    }

    /// Postings before `target`.
    pub fn rank_of(&mut self, target: u64) -> Result<u64, StoreError> {
        // Whole-chain pages ask for the start: nothing to look up.
        if target == 0 {
            return Ok(0);
        }
        self.seek_forward(target)?;
        Ok(self.rank())
    }

    /// Moves to the posting with `rank` postings before it: a search over the chunks, interpolated where
    /// that helps, halving where it does not.
    pub fn select(&mut self, rank: u64) -> Result<Option<u64>, StoreError> {
        if rank >= self.count() {
            return Ok(self.past_end());
        }
        if let Some(place) = rank.checked_sub(self.piece.rank) {
            return Ok(self.stand(true, place));
        }
        let place = rank / CHUNK_POSTINGS as u64;
        if let Some(chunk) = self.view.known_chunk(self.term, place)
            && let Some(position) = rank.checked_sub(chunk.rank)
            && position < chunk.postings.len() as u64
        {
            (self.chunk, self.is_scanned) = (chunk, false);
            return Ok(self.stand(false, position));
        }
        // Invariant: the chunk sought ends within [low, high]; ranks before them are known.
        let (mut low, mut low_rank) = (0u64, 0u64);
        let (mut high, mut high_rank) = (self.piece.first().unwrap_or(0), self.piece.rank);
        let mut halve = false;
        loop {
            let span = high - low;
            let guess = if halve || high_rank == low_rank {
                low + span / 2
            } else {
                let share = u128::from(rank - low_rank) * u128::from(span) / u128::from(high_rank - low_rank);
                low + u64::try_from(share).unwrap_or(span).min(span)
            };
            self.load_chunk(guess, false)?;
            // The chunk sought ends before the guess where the one found comes after it, or where none ends
            // at or after the guess.
            let ends = self.chunk.first().zip(self.chunk.last());
            let end = self.chunk.rank + self.chunk.postings.len() as u64;
            match ends {
                Some((_, last)) if end <= rank => {
                    low = last + 1;
                    low_rank = end;
                }
                Some(_) if self.chunk.rank <= rank => {
                    self.view.know_chunk(self.term, place, &self.chunk);
                    return Ok(self.stand(false, rank - self.chunk.rank));
                }
                found => {
                    let before = found.map_or(guess, |(first, _)| first.min(guess)).checked_sub(1);
                    let Some(before) = before.filter(|&before| low <= before) else {
                        return Ok(self.past_end());
                    };
                    high = before;
                    if found.is_some() {
                        high_rank = self.chunk.rank;
                    }
                }
            }
            // A guess that hardly narrowed the span was misled by the distribution.
            halve = high.saturating_sub(low) > span / 2;
            if low > high {
                return Ok(self.past_end());
            }
        }
    }
}
