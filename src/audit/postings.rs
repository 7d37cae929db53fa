//! The lists: every chunk in order, ranks and cuts as they should be, and the postings those that bodies call for.

use std::collections::HashSet;
use std::ops::Range;

use super::expected::{self, Dense, Known};
use super::sums::{Sums, fingerprint};
use super::{Audit, Check, Ordinals, Tally};
use crate::codec::keys::{self, PostingKind, Term};
use crate::codec::open_postings::{Cut, PIECE_POSTINGS};
use crate::codec::posting::{self, CHUNK_POSTINGS};
use crate::model::BlockRange;
use crate::query::QueryError;
use crate::store::{StoreError, Table, View};

/// Blocks that are taken apart when their sums do not balance; the others are named only.
const DETAILED: usize = 20;

/// `sums` hold what the bodies of the audited blocks call for.
pub(super) fn run(audit: &Audit<'_>, sums: &Sums) -> Check {
    let rows = audit.view.checkpoint().logs * 4 + audit.view.checkpoint().transactions * 3;
    let tally = audit.tally("lists against bodies, ranks", "postings", rows);
    let walked = walk(audit, sums, &tally);
    tally.ended(walked)
}

fn walk(audit: &Audit<'_>, sums: &Sums, tally: &Tally<'_>) -> Result<(), QueryError> {
    let mut places = Places::new(&audit.view, audit.range)?;
    scan(audit, &mut places, tally, &mut |term, ordinal, block| {
        sums.take(block, fingerprint((term, ordinal)));
    })?;
    let unbalanced = sums.unbalanced();
    if let Some(detailed) = unbalanced
        .get(..unbalanced.len().min(DETAILED))
        .filter(|some| !some.is_empty())
    {
        take_apart(audit, detailed, &mut places, tally)?;
        for &block in unbalanced.iter().skip(DETAILED) {
            tally.wrong(Some(block), "lists and bodies differ");
        }
    }
    Ok(())
}

/// A list under the scan, as far as it was read.
#[derive(Default)]
struct List {
    term: Option<Term>,
    /// Postings that were read, and the last of them.
    count: u64,
    last: Option<u64>,
    /// Postings in its open chunk.
    in_chunk: usize,
    /// Whether its open piece was read, which ends it.
    ended: bool,
}

impl List {
    /// Says what is wrong about a list that ends here.
    fn end(&self, tally: &Tally<'_>) {
        if let Some(term) = self.term.filter(|_| !self.ended) {
            tally.wrong(None, format!("{term:?}: the list has no open piece"));
        }
    }
}

/// Which row of a list: a chunk, with what its key calls its last posting, or the open piece.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Chunk(u64),
    Piece,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Chunk(keys::OPEN) => f.write_str("the open chunk"),
            Self::Chunk(last) => write!(f, "the chunk that ends with {last}"),
            Self::Piece => f.write_str("the open piece"),
        }
    }
}

/// Hands the postings of the audited blocks to `visit`, list by list, and checks how they are stored.
fn scan(
    audit: &Audit<'_>,
    places: &mut Places<'_>,
    tally: &Tally<'_>,
    visit: &mut dyn FnMut(Term, u64, u64),
) -> Result<(), StoreError> {
    let mut chunks = audit.view.scan_all(Table::Postings)?;
    let mut pieces = audit.view.scan_all(Table::OpenPostings)?;
    let mut postings = Vec::with_capacity(CHUNK_POSTINGS);
    let mut list = List::default();
    loop {
        // The chunks of a list, then its piece: the key of a chunk is that of the piece and eight bytes more.
        let is_chunk = match (chunks.item()?, pieces.item()?) {
            (Some((chunk, _)), Some((piece, _))) => {
                chunk.get(..chunk.len().saturating_sub(8)).unwrap_or(&[]) <= piece
            }
            (chunk, None) => chunk.is_some(),
            (None, Some(_)) => false,
        };
        let from = if is_chunk { &mut chunks } else { &mut pieces };
        let Some((key, value)) = from.item()? else { break };
        let place = if is_chunk {
            keys::Term::decode(key).map(|(term, last)| (term, Part::Chunk(last)))
        } else {
            keys::Term::decode_piece(key).map(|term| (term, Part::Piece))
        };
        match place.and_then(|place| Ok((place, posting::decode(value, &mut postings)?))) {
            Ok(((term, part), header)) => {
                check(&mut list, (term, part), &header, (&postings, value), tally);
                let range = places.range(term.kind());
                let (first, end) = places.stored(term.kind());
                let ends = [postings.first(), postings.last()].into_iter().flatten();
                for ordinal in ends.filter(|&&ordinal| ordinal < first || ordinal >= end) {
                    tally.wrong(None, format!("{term:?} lists {ordinal}, which is not stored"));
                }
                for &ordinal in &postings {
                    if range.contains(&ordinal)
                        && let Some(block) = places.block_of(term.kind(), ordinal)?
                    {
                        visit(term, ordinal, block);
                    }
                }
                tally.items(postings.len() as u64);
            }
            Err(corrupt) => tally.wrong(
                None,
                format!("the postings at key 0x{}: {corrupt}", const_hex::encode(key)),
            ),
        }
        from.step()?;
    }
    list.end(tally);
    Ok(())
}

/// Checks a row of a list, as it was read and as it is stored, against what the list has before it.
fn check(
    list: &mut List,
    (term, part): (Term, Part),
    header: &posting::Header,
    (postings, value): (&[u64], &[u8]),
    tally: &Tally<'_>,
) {
    if list.term != Some(term) {
        list.end(tally);
        *list = List {
            term: Some(term),
            ..List::default()
        };
    }
    let wrong = |text: String| tally.wrong(None, format!("{term:?}: {text}"));
    if header.rank != list.count {
        wrong(format!(
            "{part} says {} postings before it, there are {}",
            header.rank, list.count
        ));
    }
    if list.last >= postings.first().copied() {
        wrong(format!("the postings of {part} do not ascend"));
    }
    list.count = header.rank + header.count as u64;
    list.last = postings.last().copied();
    let whole = match part {
        Part::Chunk(keys::OPEN) => {
            list.in_chunk = postings.len();
            postings.len().is_multiple_of(PIECE_POSTINGS)
        }
        Part::Chunk(last) => postings.len() == CHUNK_POSTINGS && list.last == Some(last),
        Part::Piece => {
            list.ended = true;
            let cut = Cut::of(list.count);
            (cut.chunk, cut.piece) == (list.in_chunk, postings.len())
        }
    };
    if !whole {
        wrong(format!("{part} does not hold what it should"));
    }
    let mut again = Vec::with_capacity(value.len());
    posting::encode(header.rank, postings, &mut again);
    if again != value {
        wrong(format!("{part} is not as it is written"));
    }
}

/// Says of each of `blocks`, row by row, what its lists lack and what they have too much.
fn take_apart(
    audit: &Audit<'_>,
    blocks: &[u64],
    places: &mut Places<'_>,
    tally: &Tally<'_>,
) -> Result<(), QueryError> {
    let mut wanted = HashSet::new();
    let dense: Dense = audit.view.dense_terms()?.into_iter().collect();
    for &number in blocks {
        let mut known = Known::new(&dense);
        if let Some(bundle) = audit.reader.bundle(number)? {
            expected::postings(audit, &bundle, &mut known, &mut |term, ordinal| {
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

    /// The first ordinal that a kind counts, and the one after the last.
    fn stored(&self, kind: PostingKind) -> (u64, u64) {
        let checkpoint = self.view.checkpoint();
        match counted(kind) {
            None => (self.view.first_block(), checkpoint.next_block),
            Some(0) => (0, checkpoint.transactions),
            Some(1) => (0, checkpoint.logs),
            Some(2) => (0, checkpoint.frames),
            Some(_) => (0, checkpoint.multi_transfers),
        }
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
