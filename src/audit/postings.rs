//! The lists: every chunk in order, ranks and cuts as they should be, and the postings those that bodies call for.

use std::collections::HashSet;
use std::ops::Range;

use super::expected::{self, Signatures};
use super::sums::{Sums, fingerprint};
use super::{Audit, Check, Ordinals, Tally};
use crate::codec::keys::{self, PostingKind, Term};
use crate::codec::posting::{self, CHUNK_POSTINGS};
use crate::model::BlockRange;
use crate::query::QueryError;
use crate::store::{StoreError, Table, View};

/// Blocks that are taken apart when their sums do not balance; the others are named only.
const DETAILED: usize = 20;

pub(super) fn run(audit: &Audit<'_>, sums: &Sums) -> Result<Check, QueryError> {
    let rows = audit.view.checkpoint().logs * 4 + audit.view.checkpoint().transactions * 3;
    let tally = audit.tally("lists against bodies, ranks", "postings", rows);
    let mut places = Places::new(&audit.view, audit.range)?;
    scan(audit, &mut places, &tally, &mut |term, ordinal, block| {
        sums.take(block, fingerprint((term, ordinal)));
    })?;
    let unbalanced = sums.unbalanced();
    if let Some(detailed) = unbalanced
        .get(..unbalanced.len().min(DETAILED))
        .filter(|some| !some.is_empty())
    {
        take_apart(audit, detailed, &mut places, &tally)?;
        for &block in unbalanced.iter().skip(DETAILED) {
            tally.wrong(Some(block), "lists and bodies differ");
        }
    }
    Ok(tally.done())
}

/// Hands the postings of the audited blocks to `visit`, list by list, and checks how they are stored.
fn scan(
    audit: &Audit<'_>,
    places: &mut Places<'_>,
    tally: &Tally<'_>,
    visit: &mut dyn FnMut(Term, u64, u64),
) -> Result<(), StoreError> {
    let mut scan = audit.view.scan_all(Table::Postings)?;
    let mut postings = Vec::with_capacity(CHUNK_POSTINGS);
    let mut again = Vec::new();
    // The list under the scan, and how many postings it had so far.
    let mut list: Option<(Term, u64)> = None;
    let mut last_of_list = None;
    while let Some((key, value)) = scan.item()? {
        let decoded = keys::Term::decode(key).and_then(|place| Ok((place, posting::header(value)?)));
        let Ok(((term, last), header)) = decoded else {
            tally.wrong(
                None,
                format!("the chunk at key 0x{} cannot be read", const_hex::encode(key)),
            );
            scan.step()?;
            continue;
        };
        let before = list.filter(|(of, _)| *of == term).map_or(0, |(_, count)| count);
        if before == 0 {
            last_of_list = None;
        }
        if header.rank != before {
            let text = format!(
                "{term:?}: a chunk says {} postings before it, there are {before}",
                header.rank
            );
            tally.wrong(None, text);
        }
        list = Some((term, header.rank + header.count as u64));
        postings.clear();
        if posting::decode(value, &mut postings).is_err() {
            tally.wrong(
                None,
                format!("{term:?}: the chunk that ends with {last} cannot be read"),
            );
            scan.step()?;
            continue;
        }
        let sealed = last != keys::OPEN;
        if sealed && (postings.len() != CHUNK_POSTINGS || postings.last() != Some(&last)) {
            tally.wrong(
                None,
                format!("{term:?}: the sealed chunk that ends with {last} is not whole"),
            );
        }
        again.clear();
        posting::encode(header.rank, &postings, &mut again);
        if again != value {
            tally.wrong(
                None,
                format!("{term:?}: the chunk that ends with {last} is not as it is written"),
            );
        }
        if last_of_list >= postings.first().copied() {
            tally.wrong(None, format!("{term:?}: postings do not ascend at {last}"));
        }
        last_of_list = postings.last().copied();
        let range = places.range(term.kind());
        for &ordinal in &postings {
            if range.contains(&ordinal)
                && let Some(block) = places.block_of(term.kind(), ordinal)?
            {
                visit(term, ordinal, block);
            }
        }
        tally.items(postings.len() as u64);
        scan.step()?;
    }
    Ok(())
}

/// Says of each of `blocks`, row by row, what its lists lack and what they have too much.
fn take_apart(
    audit: &Audit<'_>,
    blocks: &[u64],
    places: &mut Places<'_>,
    tally: &Tally<'_>,
) -> Result<(), QueryError> {
    let mut wanted = HashSet::new();
    for &number in blocks {
        let mut signatures = Signatures::new();
        if let Some(bundle) = audit.reader.bundle(number)? {
            expected::postings(audit, &bundle, &mut signatures, &mut |term, ordinal| {
                wanted.insert((term, ordinal, number));
            })?;
        }
    }
    let quiet = Tally::new(tally.name, tally.unit, &super::Nobody);
    scan(audit, places, &quiet, &mut |term, ordinal, block| {
        if blocks.contains(&block) && !wanted.remove(&(term, ordinal, block)) {
            tally.wrong(
                Some(block),
                format!("{term:?} lists {ordinal}, which does not belong there"),
            );
        }
    })?;
    for (term, ordinal, block) in wanted {
        tally.wrong(Some(block), format!("{term:?} does not list {ordinal}"));
    }
    Ok(())
}

/// Which blocks ordinals lie in. Neighbours share a look-up.
struct Places<'v> {
    view: &'v View,
    ordinals: Ordinals,
    blocks: Range<u64>,
    /// By what is counted: the ordinals of the block that was found last.
    last: [(Range<u64>, u64); 4],
}

/// What the postings of a kind count; blocks count themselves.
fn counted(kind: PostingKind) -> Option<usize> {
    Some(match kind {
        PostingKind::AccountTransactions | PostingKind::AccountSent => 0,
        PostingKind::AccountInternal
        | PostingKind::AccountCalls
        | PostingKind::Internal
        | PostingKind::Calls => 2,
        PostingKind::AccountErc1155 | PostingKind::TokenAccountErc1155 | PostingKind::TokenMultiTransfers => {
            3
        }
        PostingKind::AccountMined => return None,
        _ => 1,
    })
}

impl<'v> Places<'v> {
    fn new(view: &'v View, range: BlockRange) -> Result<Self, StoreError> {
        Ok(Self {
            view,
            ordinals: Ordinals::of(view, range)?,
            blocks: range.first()..range.last() + 1,
            last: std::array::from_fn(|_| (0..0, 0)),
        })
    }

    /// The audited ordinals that a kind counts.
    fn range(&self, kind: PostingKind) -> Range<u64> {
        match counted(kind) {
            None => self.blocks.clone(),
            Some(0) => self.ordinals.transactions.clone(),
            Some(1) => self.ordinals.logs.clone(),
            Some(2) => self.ordinals.frames.clone(),
            Some(_) => self.ordinals.multi_transfers.clone(),
        }
    }

    fn block_of(&mut self, kind: PostingKind, ordinal: u64) -> Result<Option<u64>, StoreError> {
        let Some(what) = counted(kind) else {
            return Ok(Some(ordinal));
        };
        let Some((range, block)) = self.last.get_mut(what) else {
            return Ok(None);
        };
        if !range.contains(&ordinal) {
            let view = self.view;
            let (found, ordinals) = match what {
                0 => {
                    let (found, facts) = view.block_of_transaction(ordinal)?;
                    (found, facts.first_transaction..view.first_transaction(found + 1)?)
                }
                1 => {
                    let (found, facts) = view.block_of_log(ordinal)?;
                    (found, facts.first_log..view.first_log(found + 1)?)
                }
                3 => {
                    let (found, facts) = view.block_of_log(view.multi_transfer(ordinal)?.0)?;
                    let first = view.first_multi_transfer(facts.first_log)?;
                    (
                        found,
                        first..view.first_multi_transfer(view.first_log(found + 1)?)?,
                    )
                }
                _ => {
                    let (found, _) = view.block_of_frame(ordinal)?;
                    (found, view.first_frame(found)?..view.first_frame(found + 1)?)
                }
            };
            (*range, *block) = (ordinals, found);
        }
        Ok(Some(*block))
    }
}
