//! Two lists of comparable length, met chunk by chunk.
//!
//! Leapfrogging pays a search for every posting of the rarer list; where the lists are about as long as
//! each other most searches move one place. Here the overlap of two decoded chunks is met in one tight loop instead
//! (0.2 M against 0.5 M postings without a hit: a fifth of the time), by a bitmap of the shorter part where it is
//! dense enough (a third of that; `docs/decisions/0050-dense-lists.md`).

use std::time::Instant;

use super::QueryError;
use super::walk::reached_before;
use crate::clock;
use crate::store::{Direction, PostingCursor};

/// Merging beats leapfrogging while one list is at most this many times as long as the other.
pub(super) const LENGTH_RATIO_MAX: u64 = 16;

/// So many ordinals of an overlap are met by a bitmap: its 16 KiB stay in a core's first cache.
const SPAN_MAX: u64 = 1 << 17;

/// Finds what two slices share. A merge waits with each step for the one before it; a bit that is looked up waits for nothing.
#[derive(Debug, Default)]
struct Meeting {
    /// A bit for each ordinal from the first posting of the shorter slice on.
    bits: Vec<u64>,
}

impl Meeting {
    /// Appends what two ascending slices share.
    fn intersect(&mut self, a: &[u64], b: &[u64], out: &mut Vec<u64>) {
        let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        let (Some(&first), Some(&last)) = (short.first(), short.last()) else {
            return;
        };
        if last - first >= SPAN_MAX {
            return merged(short, long, out);
        }
        self.bits.clear();
        self.bits.resize(((last - first) / 64 + 1) as usize, 0);
        let place = |posting: u64| (((posting - first) / 64) as usize, (posting - first) % 64);
        for &posting in short {
            let (word, bit) = place(posting);
            if let Some(word) = self.bits.get_mut(word) {
                *word |= 1 << bit;
            }
        }
        let long = within(long, first, last);
        let before = out.len();
        out.resize(before + long.len(), 0);
        // Each is written, and the next one over it where it is not shared: a branch would be anybody's guess.
        let shared = out.get_mut(before..).unwrap_or(&mut []);
        let mut count = 0;
        for &posting in long {
            let (word, bit) = place(posting);
            if let (Some(slot), Some(word)) = (shared.get_mut(count), self.bits.get(word)) {
                *slot = posting;
                count += (word >> bit & 1) as usize;
            }
        }
        out.truncate(before + count);
    }
}

/// Appends what two ascending slices share, however far apart their postings lie.
fn merged(a: &[u64], b: &[u64], out: &mut Vec<u64>) {
    let (mut i, mut j) = (0, 0);
    while let (Some(&x), Some(&y)) = (a.get(i), b.get(j)) {
        if x == y {
            out.push(x);
        }
        // Both steps without a branch: which list is behind is anybody's guess.
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
}

/// The part of an ascending slice within `low..=high`.
fn within(list: &[u64], low: u64, high: u64) -> &[u64] {
    let from = list.partition_point(|&posting| posting < low);
    let to = list.partition_point(|&posting| posting <= high);
    list.get(from..to).unwrap_or(&[])
}

/// Hands every posting that both lists have in `first..=last` to `hit`, in the cursors' direction, until it
/// says stop; answers whether the end was reached. Where it runs out of time it says how far it came: all before that ordinal
/// were handed over, or descending all from it on.
pub(super) fn meet(
    a: &mut PostingCursor<'_>,
    b: &mut PostingCursor<'_>,
    (first, last): (u64, u64),
    (deadline, reached): (Option<Instant>, &mut u64),
    mut hit: impl FnMut(u64) -> Result<bool, QueryError>,
) -> Result<bool, QueryError> {
    let direction = a.direction();
    let start = if direction == Direction::Forward {
        first
    } else {
        last
    };
    a.seek(start)?;
    b.seek(start)?;
    let (mut meeting, mut hits) = (Meeting::default(), Vec::new());
    loop {
        let ends = |list: &[u64]| Some((*list.first()?, *list.last()?));
        let (Some((a_low, a_high)), Some((b_low, b_high))) = (ends(a.window()), ends(b.window())) else {
            return Ok(true);
        };
        let (low, high) = (a_low.max(b_low), a_high.min(b_high));
        if low > high {
            // The chunks lie apart: the one that is behind goes to where the other begins.
            match direction {
                Direction::Forward if low > last => return Ok(true),
                Direction::Backward if high < first => return Ok(true),
                Direction::Forward if a_high < b_low => a.seek(b_low)?,
                Direction::Forward => b.seek(a_low)?,
                Direction::Backward if a_low > b_high => a.seek(b_high)?,
                Direction::Backward => b.seek(a_high)?,
            };
        } else {
            hits.clear();
            let (low_wanted, high_wanted) = (low.max(first), high.min(last));
            meeting.intersect(
                within(a.window(), low_wanted, high_wanted),
                within(b.window(), low_wanted, high_wanted),
                &mut hits,
            );
            if direction == Direction::Backward {
                hits.reverse();
            }
            for &at in &hits {
                match hit(at) {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(error) => {
                        // Those before it were handed over.
                        *reached = reached_before(at, direction);
                        return Err(error);
                    }
                }
            }
            let beyond = match direction {
                Direction::Forward if high >= last => None,
                Direction::Forward => high.checked_add(1),
                Direction::Backward if low <= first => None,
                Direction::Backward => low.checked_sub(1),
            };
            let Some(beyond) = beyond else { return Ok(true) };
            let (a_done, b_done) = match direction {
                Direction::Forward => (a_high == high, b_high == high),
                Direction::Backward => (a_low == low, b_low == low),
            };
            // The other cursor's window still begins before the overlap; that part is cut off above.
            if a_done {
                a.seek(beyond)?;
            }
            if b_done {
                b.seek(beyond)?;
            }
        }
        if deadline.is_some_and(|deadline| clock::now() >= deadline) {
            if a.window().is_empty() || b.window().is_empty() {
                return Ok(true);
            }
            // Neither list has a posting between where the one stands that is farther and what was met.
            let stands = [a.current(), b.current()].into_iter().flatten();
            *reached = match direction {
                Direction::Forward => stands.max().map_or(*reached, |at| at.max(*reached)),
                Direction::Backward => stands
                    .min()
                    .map_or(*reached, |at| at.saturating_add(1).min(*reached)),
            };
            // One that stands outside of what was asked for says nothing of it.
            *reached = (*reached).clamp(first, last.saturating_add(1));
            return Err(QueryError::TimedOut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn slices_share_what_sets_share(
            a in proptest::collection::btree_set(0u64..200, 0..90),
            b in proptest::collection::btree_set(0u64..200, 0..90),
            low in 0u64..200,
            high in 0u64..200,
            start in 0u64..=u64::MAX - 200,
            gap in proptest::sample::select(vec![1, 63, 64, 1_000, SPAN_MAX]),
        ) {
            // Dense ones and, with all gaps as much longer, some that no bitmap is made for.
            let start = start.min(u64::MAX - 200 * gap);
            let at = |set: &BTreeSet<u64>| set.iter().map(|place| start + place * gap).collect::<Vec<_>>();
            let both: BTreeSet<u64> = a.intersection(&b).copied().collect();
            let mut meeting = Meeting::default();
            let mut out = vec![7];
            for _ in 0..2 {
                meeting.intersect(&at(&a), &at(&b), &mut out);
                prop_assert_eq!(&out[1..], &at(&both));
                out.truncate(1);
            }
            merged(&at(&a), &at(&b), &mut out);
            prop_assert_eq!(&out[1..], &at(&both));
            let x: Vec<_> = a.iter().copied().collect();
            if low <= high {
                let expected: BTreeSet<u64> = a.range(low..=high).copied().collect();
                prop_assert_eq!(within(&x, low, high), &expected.into_iter().collect::<Vec<_>>()[..]);
            }
        }
    }
}
