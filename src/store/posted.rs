//! Postings of a batch: gathered as blocks come, sorted when the batch becomes rows.
//!
//! Terms that are ids are few and their lists long: each keeps its list. Accounts and topics are many, and most
//! have one or two postings: a map of them misses the processor's caches with every posting, so they are
//! written one after the other, by kind and without padding, and sorted once, which takes a third of the time and can
//! be done beside the next batch (`docs/decisions/0034-sorted-postings.md`).

use std::ops::Range;

use alloy_primitives::map::HashMap;

use super::batch::with_room;
use crate::codec::keys::{PostingKind, Term, TermId};

/// What a posting of an id, and one of anything else, takes in memory, about.
const ID_POSTING_BYTES: usize = 12;
const POSTING_BYTES: usize = 64;

/// For each kind, postings of terms that begin with the zeros before an account, and of those that do not.
const COLUMNS: usize = 2 * PostingKind::ALL.len();

/// Room that a batch needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    ids: usize,
    columns: [usize; COLUMNS],
}

impl Default for Room {
    fn default() -> Self {
        Self {
            ids: 0,
            columns: [0; COLUMNS],
        }
    }
}

/// New postings, in the order in which they came.
#[derive(Debug)]
pub(super) struct Posted {
    ids: HashMap<TermId, Vec<u64>>,
    columns: [Column; COLUMNS],
}

impl Default for Posted {
    fn default() -> Self {
        Self::with_room(Room::default())
    }
}

/// Postings of a kind, whose terms have equally many zeros before them.
#[derive(Debug)]
struct Column {
    kind: PostingKind,
    zeros: usize,
    /// The terms, without the zeros, one after the other.
    terms: Vec<u8>,
    ordinals: Vec<u64>,
}

impl Posted {
    pub(super) fn with_room(room: Room) -> Self {
        Self {
            ids: with_room(room.ids),
            // In the order of terms: of a kind those with zeros come first.
            columns: std::array::from_fn(|place| {
                let zeros = if place % 2 == 0 { Term::ZEROS } else { 0 };
                Column::with_room(PostingKind::ALL[place / 2], zeros, room.columns[place])
            }),
        }
    }

    pub(super) fn room(&self) -> Room {
        Room {
            ids: self.ids.len(),
            columns: self.columns.each_ref().map(|column| column.ordinals.len()),
        }
    }

    /// Adds a posting; the ordinals of a term ascend. Answers about how many bytes it takes. Inlined, so that what is known of a
    /// term where it is made need not be found out here.
    #[inline]
    pub(super) fn push(&mut self, term: Term, ordinal: u64) -> usize {
        if let Some(id) = term.id() {
            self.ids.entry(id).or_default().push(ordinal);
            return ID_POSTING_BYTES;
        }
        let zeros = term.zeros();
        let place = 2 * term.kind() as usize + usize::from(zeros == 0);
        if let Some(column) = self.columns.get_mut(place) {
            let bytes = term.term_bytes().get(zeros..).unwrap_or(&[]);
            column.terms.extend_from_slice(bytes);
            column.ordinals.push(ordinal);
        }
        POSTING_BYTES
    }

    /// Lists of ids, and lists of the other terms by kind, in the order of terms.
    pub(super) fn sorted(self) -> Vec<Sorted> {
        let mut ids: Vec<_> = self.ids.into_iter().collect();
        ids.sort_unstable_by_key(|(term, _)| *term);
        let mut of_ids = Listed::default();
        for (term, ordinals) in ids {
            of_ids.push(term.into(), ordinals.into_iter());
        }
        let mut order = Vec::new();
        let others = self.columns.into_iter();
        let others = others.filter(|column| !column.ordinals.is_empty());
        std::iter::once(of_ids.into())
            .chain(others.map(|column| column.sorted(&mut order)))
            .collect()
    }
}

impl Column {
    fn with_room(kind: PostingKind, zeros: usize, room: usize) -> Self {
        let mut column = Self {
            kind,
            zeros,
            terms: Vec::new(),
            ordinals: Vec::with_capacity(room),
        };
        column.terms.reserve_exact(room * column.width());
        column
    }

    /// Bytes of a term.
    const fn width(&self) -> usize {
        self.kind.term_len().saturating_sub(self.zeros)
    }

    /// The bytes of the term at a place.
    fn bytes(&self, place: usize) -> &[u8] {
        let start = place * self.width();
        self.terms.get(start..start + self.width()).unwrap_or(&[])
    }

    fn term(&self, place: usize) -> Option<Term> {
        Term::after_zeros(self.kind, self.zeros, self.bytes(place))
    }

    /// Its postings by term; those of a term keep their order. `order` is memory for the places of all postings.
    fn sorted(self, order: &mut Vec<(u64, u32)>) -> Sorted {
        order.clear();
        // A batch has far fewer postings than 2^32: each takes 28 bytes and more of its memory.
        order.extend((0..self.ordinals.len()).map(|place| (leading_word(self.bytes(place)), place as u32)));
        order.sort_unstable();
        let (mut column, mut lists) = (self.in_order(order), Lists::default());
        lists.ordinals.reserve_exact(order.len());
        let mut start = 0;
        for alike in order.chunk_by(|a, b| a.0 == b.0) {
            column.settle(start..start + alike.len());
            start += alike.len();
        }
        let (mut start, mut kept) = (0, 0);
        while start < order.len() {
            let others = start + 1..order.len();
            let same = others.take_while(|&place| column.bytes(place) == column.bytes(start));
            let end = start + 1 + same.count();
            lists.push(column.ordinals.get(start..end).unwrap_or(&[]).iter().copied());
            column.keep(start, kept);
            (start, kept) = (end, kept + 1);
        }
        column.terms.truncate(kept * column.width());
        column.ordinals = Vec::new();
        Sorted {
            terms: Terms::Column(column),
            lists,
        }
    }

    /// The same with the postings at these places, in this order. Their terms lie anywhere in memory: they are read here, where no
    /// read waits for another one, and one after the other from here on.
    fn in_order(self, order: &[(u64, u32)]) -> Self {
        let mut terms = Vec::with_capacity(self.terms.len());
        for &(_, place) in order {
            terms.extend_from_slice(self.bytes(place as usize));
        }
        let ordinals = order.iter();
        let ordinals = ordinals.filter_map(|&(_, place)| self.ordinals.get(place as usize).copied());
        Self {
            ordinals: ordinals.collect(),
            terms,
            ..self
        }
    }

    /// Sorts postings by all of their terms, which begin alike; those of a term keep their order.
    fn settle(&mut self, places: Range<usize>) {
        let (start, width) = (places.start, self.width());
        let first = self.bytes(start);
        if places.clone().all(|place| self.bytes(place) == first) {
            return;
        }
        let mut order: Vec<usize> = places.collect();
        order.sort_by_key(|&place| self.bytes(place));
        let terms: Vec<u8> = order
            .iter()
            .flat_map(|&place| self.bytes(place))
            .copied()
            .collect();
        let ordinals = order.iter().filter_map(|&place| self.ordinals.get(place));
        let ordinals: Vec<u64> = ordinals.copied().collect();
        if let Some(target) = self.terms.get_mut(start * width..start * width + terms.len()) {
            target.copy_from_slice(&terms);
        }
        if let Some(target) = self.ordinals.get_mut(start..start + ordinals.len()) {
            target.copy_from_slice(&ordinals);
        }
    }

    /// Puts the term at one place where another one is.
    fn keep(&mut self, place: usize, target: usize) {
        if place != target {
            let width = self.width();
            self.terms
                .copy_within(place * width..(place + 1) * width, target * width);
        }
    }
}

/// The first bytes of a term as a word.
fn leading_word(term: &[u8]) -> u64 {
    u64::from_be_bytes(term.first_chunk().copied().unwrap_or_default())
}

/// New postings by term, in the order of keys.
#[derive(Debug)]
pub(super) struct Sorted {
    terms: Terms,
    lists: Lists,
}

/// The terms of lists.
#[derive(Debug)]
enum Terms {
    Listed(Vec<Term>),
    /// Those of a column, each once, whose ordinals are in lists by now.
    Column(Column),
}

impl Terms {
    fn get(&self, list: usize) -> Option<Term> {
        match self {
            Self::Listed(terms) => terms.get(list).copied(),
            Self::Column(column) => column.term(list),
        }
    }
}

/// Lists of ordinals, one after the other.
#[derive(Debug, Default)]
struct Lists {
    /// Where each ends.
    ends: Vec<u32>,
    ordinals: Vec<u64>,
}

impl Lists {
    /// Adds a list, each ordinal once.
    fn push(&mut self, ordinals: impl Iterator<Item = u64>) {
        let mut last = None;
        for ordinal in ordinals {
            if last != Some(ordinal) {
                self.ordinals.push(ordinal);
                last = Some(ordinal);
            }
        }
        self.ends.push(self.ordinals.len() as u32);
    }

    fn get(&self, list: usize) -> &[u64] {
        let end_of = |list: usize| self.ends.get(list).map_or(0, |end| *end as usize);
        let start = list.checked_sub(1).map_or(0, end_of);
        self.ordinals.get(start..end_of(list)).unwrap_or(&[])
    }
}

/// Lists being listed, in the order of keys.
#[derive(Debug, Default)]
pub(super) struct Listed {
    terms: Vec<Term>,
    lists: Lists,
}

impl Listed {
    /// Adds a list whose term comes after those before it.
    pub(super) fn push(&mut self, term: Term, ordinals: impl Iterator<Item = u64>) {
        self.terms.push(term);
        self.lists.push(ordinals);
    }
}

impl From<Listed> for Sorted {
    fn from(listed: Listed) -> Self {
        Self {
            terms: Terms::Listed(listed.terms),
            lists: listed.lists,
        }
    }
}

impl Sorted {
    /// The terms, `most` at a time.
    pub(super) fn groups(&self, most: usize) -> impl Iterator<Item = Group<'_>> {
        let all = Group {
            sorted: self,
            start: 0,
            end: self.lists.ends.len(),
        };
        all.parts(most)
    }
}

/// Some terms in the order of keys, with their new postings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group<'s> {
    sorted: &'s Sorted,
    start: usize,
    end: usize,
}

impl<'s> Group<'s> {
    /// The same, `most` terms at a time.
    pub(super) fn parts(self, most: usize) -> impl Iterator<Item = Self> {
        (self.start..self.end).step_by(most).map(move |start| Self {
            start,
            end: self.end.min(start.saturating_add(most)),
            ..self
        })
    }

    /// Terms.
    pub(super) const fn len(&self) -> usize {
        self.end - self.start
    }

    /// Each term with its new postings, which ascend.
    pub(super) fn iter(self) -> impl Iterator<Item = (Term, &'s [u64])> {
        (self.start..self.end)
            .filter_map(move |list| Some((self.sorted.terms.get(list)?, self.sorted.lists.get(list))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::codec::keys::PostingKind;
    use crate::model::{Address, B256};

    /// Terms of every width, with beginnings that differ late, or in what a topic that is an account has in front.
    fn term(kind: usize, place: usize, byte: u8) -> Term {
        let mut word = [0u8; 32];
        word[place % 32] = byte;
        let account = Address::from_slice(&word[12..]);
        let id = u32::from(byte);
        match PostingKind::ALL[kind % PostingKind::ALL.len()] {
            PostingKind::LogAddress => Term::log_address(id),
            PostingKind::Topic0 => Term::topic0(id),
            PostingKind::Topic1 => Term::topic(1, &B256::from(word)).unwrap(),
            PostingKind::Topic2 => Term::topic(2, &B256::from(word)).unwrap(),
            PostingKind::Topic3 => Term::topic(3, &B256::from(word)).unwrap(),
            PostingKind::LogAddressTopic0 => Term::log_address_topic0(id, id / 2),
            kind @ (PostingKind::TokenTransfers | PostingKind::TokenMultiTransfers) => Term::token(kind, id),
            kind @ (PostingKind::TokenAccountErc20
            | PostingKind::TokenAccountErc721
            | PostingKind::TokenAccountErc1155) => Term::token_account(kind, id / 3, &account),
            kind @ (PostingKind::Internal | PostingKind::Calls) => Term::whole(kind),
            kind @ (PostingKind::Topic1LogAddress
            | PostingKind::Topic2LogAddress
            | PostingKind::Topic3LogAddress) => {
                let position = kind as usize - PostingKind::Topic1LogAddress as usize + 1;
                Term::dense_topic_with_emitter((position, u64::from(id / 2)), id).unwrap()
            }
            kind @ (PostingKind::Topic1Topic0 | PostingKind::Topic2Topic0 | PostingKind::Topic3Topic0) => {
                let position = kind as usize - PostingKind::Topic1Topic0 as usize + 1;
                Term::dense_topic_with_signature((position, u64::from(id)), id / 2).unwrap()
            }
            kind @ (PostingKind::Topic1Topic2 | PostingKind::Topic1Topic3 | PostingKind::Topic2Topic3) => {
                let (low, high) = match kind {
                    PostingKind::Topic1Topic2 => (1, 2),
                    PostingKind::Topic1Topic3 => (1, 3),
                    _ => (2, 3),
                };
                Term::dense_topics((low, u64::from(id / 3)), (high, u64::from(id))).unwrap()
            }
            kind => Term::account(kind, &account),
        }
    }

    proptest! {
        #[test]
        fn postings_come_out_by_term_and_each_once(
            pushed in proptest::collection::vec((0usize..PostingKind::ALL.len(), 0usize..32, 0u8..4, 0u64..2), 0..300)
        ) {
            let mut posted = Posted::default();
            let mut model: BTreeMap<Term, Vec<u64>> = BTreeMap::new();
            let mut ordinal = 0;
            for (kind, place, byte, step) in pushed {
                ordinal += step;
                let term = term(kind, place, byte);
                posted.push(term, ordinal);
                let list = model.entry(term).or_default();
                if list.last() != Some(&ordinal) {
                    list.push(ordinal);
                }
            }
            let sorted = posted.sorted();
            let mut lists = Vec::new();
            for sorted in &sorted {
                let whole: Vec<(Term, Vec<u64>)> = sorted
                    .groups(7)
                    .flat_map(|group| group.parts(2))
                    .flat_map(Group::iter)
                    .map(|(term, list)| (term, list.to_vec()))
                    .collect();
                prop_assert!(whole.is_sorted());
                lists.extend(whole);
            }
            lists.sort();
            prop_assert_eq!(lists, model.into_iter().collect::<Vec<_>>());
        }
    }
}
