//! Pages by rank, out of one list or of several that share no ordinal: no row before the page is looked at.

use std::ops::Range;

use super::QueryError;
use super::limit::Limit;
use super::page::{ListQuery, Selected};
use crate::store::{Direction, PostingCursor};

/// Selects a page out of lists that share no ordinal and move in the direction of the query, as if they were one. There may be so many
/// that each move of one is a step of the time.
pub(super) fn select(
    lists: &mut [PostingCursor<'_>],
    range: Range<u64>,
    query: &ListQuery,
    limit: &mut Limit,
) -> Result<Selected, QueryError> {
    let first_rank = rank_of(lists, range.start, limit)?;
    let end_rank = rank_of(lists, range.end, limit)?;
    // The ranks that are left after the cursor's row and the skipped ones.
    let (mut low, mut high) = (first_rank, end_rank);
    if query.cursor.is_some() {
        let rest = query.rest(range.clone());
        if query.descending {
            high = rank_of(lists, rest.end, limit)?.min(high);
        } else {
            low = rank_of(lists, rest.start, limit)?.max(low);
        }
    }
    let left = high.saturating_sub(low).saturating_sub(query.skip);
    let count = usize::try_from(left).unwrap_or(usize::MAX).min(query.limit);
    let mut selected = Selected {
        hits: Vec::with_capacity(count),
        total: Some(end_rank.saturating_sub(first_rank)),
        more: left > count as u64,
    };
    if count > 0 {
        let rank = if query.descending {
            high - 1 - query.skip
        } else {
            low + query.skip
        };
        go_to(
            lists,
            rank,
            (range.start, first_rank),
            (range.end, end_rank),
            limit,
        )?;
        take(lists, count, query.direction(), &mut selected.hits, limit)?;
    }
    Ok(selected)
}

/// Postings before `target` in all lists.
fn rank_of(lists: &mut [PostingCursor<'_>], target: u64, limit: &mut Limit) -> Result<u64, QueryError> {
    let mut rank = 0;
    for list in lists {
        limit.spend(1)?;
        rank += list.rank_of(target)?;
    }
    Ok(rank)
}

/// Ranks that are walked over one by one: about what is decoded anyway.
const WALK_MAX: u64 = 256;

/// Moves the lists to the posting with `rank` postings before it in all of them. `low` and `high` are ordinals
/// with their ranks; the posting lies in `low..high`.
fn go_to(
    lists: &mut [PostingCursor<'_>],
    rank: u64,
    (mut low, mut low_rank): (u64, u64),
    (mut high, mut high_rank): (u64, u64),
    limit: &mut Limit,
) -> Result<(), QueryError> {
    if let [only] = lists {
        only.select(rank)?;
        return Ok(());
    }
    // Interpolation and halving in turn: lists are mostly even, and where they are not halving ends it.
    let mut halve = false;
    while rank - low_rank > WALK_MAX && high - low > 1 {
        let span = high - low;
        let guess = if halve {
            low + span / 2
        } else {
            let ranks = high_rank.saturating_sub(low_rank).max(1);
            let share = u128::from(span) * u128::from(rank - low_rank - WALK_MAX / 2) / u128::from(ranks);
            low + u64::try_from(share).unwrap_or(span).clamp(1, span - 1)
        };
        let found = rank_of(lists, guess, limit)?;
        if found <= rank {
            (low, low_rank) = (guess, found);
        } else {
            (high, high_rank) = (guess, found);
        }
        halve = !halve;
    }
    for list in lists.iter_mut() {
        limit.spend(1)?;
        list.seek_forward(low)?;
    }
    let mut at = low;
    for _ in low_rank..=rank {
        limit.spend(1)?;
        let nearest = lists
            .iter_mut()
            .filter_map(|list| Some((list.current()?, list)))
            .min_by_key(|(posting, _)| *posting);
        let Some((posting, list)) = nearest else { break };
        at = posting;
        list.seek_forward(posting + 1)?;
    }
    for list in lists {
        limit.spend(1)?;
        list.seek(at)?;
    }
    Ok(())
}

/// Takes the next `count` postings of all lists in their order.
fn take(
    lists: &mut [PostingCursor<'_>],
    count: usize,
    direction: Direction,
    hits: &mut Vec<u64>,
    limit: &mut Limit,
) -> Result<(), QueryError> {
    if let ([only], Direction::Forward) = (&mut *lists, direction) {
        while let Some(&last) = only.window().last() {
            let room = count - hits.len();
            hits.extend(only.window().iter().take(room));
            if hits.len() == count {
                break;
            }
            only.seek(last + 1)?;
        }
        return Ok(());
    }
    while hits.len() < count {
        let standing = lists.iter_mut().filter_map(|list| Some((list.current()?, list)));
        let next = match direction {
            Direction::Forward => standing.min_by_key(|(posting, _)| *posting),
            Direction::Backward => standing.max_by_key(|(posting, _)| *posting),
        };
        let Some((posting, list)) = next else { break };
        limit.spend(1)?;
        hits.push(posting);
        list.step()?;
    }
    Ok(())
}
