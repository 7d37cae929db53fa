//! Cursors over the postings of a term.

use super::StoreError;
use super::scan::Scan;
use super::schema::Table;
use super::view::View;
use crate::codec::keys::{self, Term};
use crate::codec::posting;
use crate::metrics::visits;

/// Which way a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending ordinals.
    Forward,
    /// Descending ordinals.
    Backward,
}

/// A decoded chunk of a list.
#[derive(Debug, Default)]
struct Chunk {
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
    /// The open chunk, which a point look-up found; empty when the term does not occur.
    open: Chunk,
    /// The sealed chunk that was decoded last.
    sealed: Chunk,
    in_open: bool,
    position: usize,
    direction: Direction,
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
        let key = term.key(keys::OPEN);
        let mut open = Chunk::default();
        if let Some(bytes) = view.get(Table::Postings, &key)? {
            open.rank = posting::decode(&bytes, &mut open.postings)
                .map_err(StoreError::corrupt(Table::Postings.name(), &key))?
                .rank;
        }
        let position = usize::MAX;
        Ok(Self {
            view,
            term,
            scan: None,
            open,
            sealed: Chunk::default(),
            in_open: true,
            position,
            direction,
            chunks_read: 1,
        })
    }

    /// How many postings the term has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.open.rank + self.open.postings.len() as u64
    }

    /// Chunks decoded so far.
    #[must_use]
    pub const fn chunks_read(&self) -> u64 {
        self.chunks_read
    }

    fn chunk(&self) -> &Chunk {
        if self.in_open { &self.open } else { &self.sealed }
    }

    /// The posting under the cursor; `None` past an end.
    #[must_use]
    #[inline]
    pub fn current(&self) -> Option<u64> {
        self.chunk().postings.get(self.position).copied()
    }

    /// How many postings lie before the one under the cursor; the count of all past an end.
    #[must_use]
    pub fn rank(&self) -> u64 {
        match self.current() {
            Some(_) => self.chunk().rank + self.position as u64,
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
        let postings = &self.chunk().postings;
        match self.direction {
            Direction::Forward => postings.get(self.position..),
            Direction::Backward => self.position.checked_add(1).and_then(|end| postings.get(..end)),
        }
        .unwrap_or(&[])
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
        let chunk = self.chunk();
        if chunk.first().is_some_and(|first| first <= target)
            && chunk.last().is_some_and(|last| target <= last)
        {
            self.position = Self::place(&chunk.postings, self.position, target);
            return Ok(self.current());
        }
        let Some(open_first) = self.open.first() else {
            return Ok(self.past_end());
        };
        let last_sealed_before_open = self.open.rank == 0 || target >= open_first;
        if !last_sealed_before_open {
            self.load_sealed(target, false)?;
            if let Some(last) = self.sealed.last()
                && last >= target
            {
                self.in_open = false;
                self.position = self.sealed.postings.partition_point(|&posting| posting < target);
                return Ok(self.current());
            }
        }
        self.in_open = true;
        self.position = self.open.postings.partition_point(|&posting| posting < target);
        Ok(self.current())
    }

    fn seek_backward(&mut self, target: u64) -> Result<Option<u64>, StoreError> {
        let Some(open_first) = self.open.first() else {
            return Ok(self.past_end());
        };
        if open_first <= target {
            self.in_open = true;
        } else if self.open.rank == 0 {
            return Ok(self.past_end());
        } else {
            let here = !self.in_open
                && self.sealed.first().is_some_and(|first| first <= target)
                && self.sealed.last().is_some_and(|last| target <= last);
            if !here {
                self.load_sealed(target, true)?;
            }
            self.in_open = false;
        }
        let chunk = self.chunk();
        let after = chunk.postings.partition_point(|&posting| posting <= target);
        match after.checked_sub(1) {
            Some(position) => {
                self.position = position;
                Ok(self.current())
            }
            None => Ok(self.past_end()),
        }
    }

    /// Decodes the first sealed chunk that ends at or after `target`; with `before`, the one before it
    /// where that one begins after `target`. Leaves `sealed` empty where there is none.
    fn load_sealed(&mut self, target: u64, before: bool) -> Result<(), StoreError> {
        let scan = match &mut self.scan {
            Some(scan) => scan,
            none => {
                // The open chunk stands at the last key, which the upper bound leaves out.
                none.insert(
                    self.view
                        .scan(Table::Postings, self.term.key(0), self.term.key(keys::OPEN))?,
                )
            }
        };
        let name = Table::Postings.name();
        self.sealed.postings.clear();
        let mut found = scan.seek(&self.term.key(target))?;
        if before {
            let begins_after = match found {
                Some((key, bytes)) => {
                    posting::header(bytes)
                        .map_err(StoreError::corrupt(name, key))?
                        .first
                        > target
                }
                None => true,
            };
            if begins_after {
                found = if found.is_some() {
                    scan.step_back()?
                } else {
                    scan.seek_back(&self.term.key(target))?
                };
            }
        }
        if let Some((key, bytes)) = found {
            self.sealed.rank = posting::decode(bytes, &mut self.sealed.postings)
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
        if let Some(place) = rank.checked_sub(self.open.rank) {
            self.in_open = true;
            self.position = usize::try_from(place).unwrap_or(usize::MAX);
            return Ok(self.current());
        }
        // Invariant: the chunk sought ends within [low, high]; ranks before them are known.
        let (mut low, mut low_rank) = (0u64, 0u64);
        let (mut high, mut high_rank) = (self.open.first().unwrap_or(0), self.open.rank);
        let mut halve = false;
        loop {
            let span = high - low;
            let guess = if halve || high_rank == low_rank {
                low + span / 2
            } else {
                let share = u128::from(rank - low_rank) * u128::from(span) / u128::from(high_rank - low_rank);
                low + u64::try_from(share).unwrap_or(span).min(span)
            };
            self.load_sealed(guess, false)?;
            // The chunk sought ends before the guess where the one found comes after it, or where none ends
            // at or after the guess.
            let ends = self.sealed.first().zip(self.sealed.last());
            let end = self.sealed.rank + self.sealed.postings.len() as u64;
            match ends {
                Some((_, last)) if end <= rank => {
                    low = last + 1;
                    low_rank = end;
                }
                Some(_) if self.sealed.rank <= rank => {
                    self.in_open = false;
                    self.position = usize::try_from(rank - self.sealed.rank).unwrap_or(usize::MAX);
                    return Ok(self.current());
                }
                found => {
                    let before = found.map_or(guess, |(first, _)| first.min(guess)).checked_sub(1);
                    let Some(before) = before.filter(|&before| low <= before) else {
                        return Ok(self.past_end());
                    };
                    high = before;
                    if found.is_some() {
                        high_rank = self.sealed.rank;
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
