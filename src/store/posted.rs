//! Postings of a batch: gathered as blocks come, sorted when the batch becomes rows.
//!
//! Terms that are ids are few and their lists long: each keeps its list. Accounts and topics are many, and most
//! have one or two postings: a map of them misses the processor's caches with every posting, so they are
//! written one after the other and sorted once, which takes a third of the time and can be done beside the
//! next batch (`docs/decisions/0034-sorted-postings.md`).

use std::ops::Range;

use alloy_primitives::map::HashMap;

use super::batch::with_room;
use crate::codec::keys::Term;

/// Terms up to this width are ids of the store.
const ID_BYTES_MAX: usize = 8;
/// What a posting of an id, and one of anything else, takes in memory, about.
const ID_POSTING_BYTES: usize = 12;
const POSTING_BYTES: usize = 64;

/// Room that a batch needed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    ids: usize,
    others: usize,
}

/// New postings, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Posted {
    ids: HashMap<Term, Vec<u64>>,
    others: Vec<(Term, u64)>,
}

impl Posted {
    pub(super) fn with_room(room: Room) -> Self {
        Self {
            ids: with_room(room.ids),
            others: Vec::with_capacity(room.others),
        }
    }

    pub(super) fn room(&self) -> Room {
        Room {
            ids: self.ids.len(),
            others: self.others.len(),
        }
    }

    /// Adds a posting; the ordinals of a term ascend. Answers about how many bytes it takes.
    pub(super) fn push(&mut self, term: Term, ordinal: u64) -> usize {
        if term.term_bytes().len() > ID_BYTES_MAX {
            self.others.push((term, ordinal));
            return POSTING_BYTES;
        }
        self.ids.entry(term).or_default().push(ordinal);
        ID_POSTING_BYTES
    }

    /// Lists of ids, and lists of all other terms.
    pub(super) fn sorted(self) -> [Sorted; 2] {
        let mut ids: Vec<_> = self.ids.into_iter().collect();
        ids.sort_unstable_by_key(|(term, _)| *term);
        let mut of_ids = Sorted::with_room(ids.len(), 0);
        for (term, ordinals) in ids {
            of_ids.list(term, ordinals.into_iter());
        }
        [of_ids, sort(&self.others)]
    }
}

/// Sorts postings by term; those of a term keep their order.
fn sort(postings: &[(Term, u64)]) -> Sorted {
    let mut order: Vec<(u64, usize)> = postings
        .iter()
        .enumerate()
        .map(|(place, (term, _))| (term.leading_word(), place))
        .collect();
    order.sort_unstable();
    let at = |place: &(u64, usize)| postings.get(place.1).copied();
    let mut sorted = Sorted::with_room(postings.len() / 2, postings.len());
    for alike in order.chunk_by_mut(|a, b| a.0 == b.0) {
        let mut terms = alike.iter().filter_map(at).map(|(term, _)| term);
        let first = terms.next();
        if terms.any(|term| Some(term) != first) {
            // Different terms with the same beginning; a stable sort keeps the order within each.
            alike.sort_by_key(|place| at(place).map(|(term, _)| term));
        }
        for same in alike.chunk_by(|a, b| at(a).map(|(term, _)| term) == at(b).map(|(term, _)| term)) {
            if let Some((term, _)) = same.first().and_then(at) {
                sorted.list(term, same.iter().filter_map(at).map(|(_, ordinal)| ordinal));
            }
        }
    }
    sorted
}

/// New postings by term, in the order of keys.
#[derive(Debug)]
pub(super) struct Sorted {
    lists: Vec<(Term, Range<usize>)>,
    ordinals: Vec<u64>,
}

impl Sorted {
    fn with_room(lists: usize, ordinals: usize) -> Self {
        Self {
            lists: Vec::with_capacity(lists),
            ordinals: Vec::with_capacity(ordinals),
        }
    }

    /// Adds the list of the next term, each ordinal once.
    fn list(&mut self, term: Term, ordinals: impl Iterator<Item = u64>) {
        let start = self.ordinals.len();
        let mut last = None;
        for ordinal in ordinals {
            if last != Some(ordinal) {
                self.ordinals.push(ordinal);
                last = Some(ordinal);
            }
        }
        self.lists.push((term, start..self.ordinals.len()));
    }

    /// The terms, `most` at a time.
    pub(super) fn groups(&self, most: usize) -> impl Iterator<Item = Group<'_>> {
        self.lists.chunks(most).map(|lists| Group {
            lists,
            ordinals: &self.ordinals,
        })
    }
}

/// Some terms in the order of keys, with their new postings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group<'s> {
    lists: &'s [(Term, Range<usize>)],
    ordinals: &'s [u64],
}

impl<'s> Group<'s> {
    /// The same, `most` terms at a time.
    pub(super) fn parts(self, most: usize) -> impl Iterator<Item = Self> {
        self.lists.chunks(most).map(move |lists| Self { lists, ..self })
    }

    /// Each term with its new postings, which ascend.
    pub(super) fn iter(self) -> impl Iterator<Item = (&'s Term, &'s [u64])> {
        self.lists
            .iter()
            .map(move |(term, range)| (term, self.ordinals.get(range.clone()).unwrap_or(&[])))
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
            kind => Term::account(kind, &account),
        }
    }

    proptest! {
        #[test]
        fn postings_come_out_by_term_and_each_once(
            pushed in proptest::collection::vec((0usize..21, 0usize..32, 0u8..4, 0u64..2), 0..300)
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
                    .map(|(term, list)| (*term, list.to_vec()))
                    .collect();
                prop_assert!(whole.is_sorted());
                lists.extend(whole);
            }
            lists.sort();
            prop_assert_eq!(lists, model.into_iter().collect::<Vec<_>>());
        }
    }
}
