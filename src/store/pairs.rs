//! Lists of pairs of dense terms: what a batch adds to them (see [`super::dense`]).
//!
//! Which logs of a batch have two dense terms is known when its lists are rendered, for then it is known how long each list was. Only
//! postings of dense topics are looked at; contract and signature of their logs are in arrays.

use std::collections::HashMap;

use alloy_primitives::map::DefaultHashBuilder;

use super::StoreError;
use super::dense::DENSE;
use super::posted::{Listed, Sorted};
use crate::codec::keys::Term;

/// A term whose list is dense once its new postings are in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DenseTerm<'b> {
    pub(super) term: Term,
    /// Postings in its list before.
    pub(super) before: u64,
    /// New ones, ascending.
    pub(super) new: &'b [u64],
}

impl<'b> DenseTerm<'b> {
    /// A contract's or a topic's with so many postings, if it is dense.
    pub(super) fn of(term: Term, before: u64, new: &'b [u64]) -> Option<Self> {
        let dense = Self { term, before, new };
        (term.kind().is_paired() && DENSE <= before + new.len() as u64).then_some(dense)
    }

    /// The same as [`Pairs`] take it. `since` tells of a topic that was dense before since when it is.
    pub(super) fn part(
        &self,
        since: impl Fn(Term) -> Result<u64, StoreError>,
    ) -> Result<DensePart<'b>, StoreError> {
        let first = (DENSE - 1).saturating_sub(self.before);
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let postings = self.new.get(first..).unwrap_or(&[]);
        let since = match postings.first() {
            Some(&since) if self.before < DENSE => since,
            _ if self.term.number().is_some() => 0,
            _ => since(self.term)?,
        };
        Ok(DensePart {
            term: self.term,
            since,
            postings,
        })
    }
}

/// A dense term among the logs that are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct DensePart<'b> {
    pub(super) term: Term,
    /// Since when it is; of a contract or a signature anything that comes before will do.
    pub(super) since: u64,
    /// Its postings since then, ascending; of a contract or a signature none are needed.
    pub(super) postings: &'b [u64],
}

/// New logs and the dense terms among those of theirs.
pub(super) struct Pairs<'b> {
    /// The first new log, and how many there are.
    first: u64,
    logs: usize,
    /// Ids, with the first log of which a pair is listed.
    emitters: HashMap<u32, u64, DefaultHashBuilder>,
    signatures: HashMap<u32, u64, DefaultHashBuilder>,
    /// By position - 1, by since when they are dense.
    topics: [Vec<DensePart<'b>>; 3],
}

/// Postings as they are sorted: above the other term, below the place of the log among the new ones.
type Word = u64;

const fn word(other: u32, place: u64) -> Word {
    // A batch has far fewer logs than 2^32.
    ((other as u64) << 32) | place
}

impl<'b> Pairs<'b> {
    /// Of so many logs from `first` on.
    pub(super) fn new((first, logs): (u64, usize), parts: impl Iterator<Item = DensePart<'b>>) -> Self {
        let mut pairs = Self {
            first,
            logs,
            emitters: HashMap::default(),
            signatures: HashMap::default(),
            topics: Default::default(),
        };
        for part in parts {
            let position = part.term.topic_position();
            if let Some(id) = part.term.number() {
                let ids = match position {
                    None => &mut pairs.emitters,
                    Some(_) => &mut pairs.signatures,
                };
                ids.insert(id, part.since);
            } else if let Some(position) = position
                && let Some(topics) = pairs.topics.get_mut(position - 1)
            {
                topics.push(part);
            }
        }
        for topics in &mut pairs.topics {
            topics.sort_unstable_by_key(|topic| topic.since);
        }
        pairs
    }

    /// Hands the lists and what is new in them to `each`, kind by kind. `ids` tells contract and signature of a log.
    pub(super) fn lists(
        &self,
        ids: impl Fn(u64) -> Result<(u32, u32), StoreError>,
        mut each: impl FnMut(Sorted) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut places: [Vec<u32>; 3] = Default::default();
        for (places, topics) in places.iter_mut().zip(&self.topics) {
            if !topics.is_empty() {
                places.resize(self.logs, 0);
            }
            for (topic, number) in topics.iter().zip(1..) {
                for &posting in topic.postings {
                    if let Some(place) = places.get_mut((posting - self.first) as usize) {
                        *place = number;
                    }
                }
            }
        }
        let (mut words, mut others) = (Vec::new(), Vec::new());
        for (topics, position) in self.topics.iter().zip(1..) {
            let (mut of_emitters, mut of_signatures) = (Listed::default(), Listed::default());
            for topic in topics {
                words.clear();
                others.clear();
                for &posting in topic.postings {
                    let (emitter, signature) = ids(posting)?;
                    for (ids, id, words) in [
                        (&self.emitters, emitter, &mut words),
                        (&self.signatures, signature, &mut others),
                    ] {
                        if ids.get(&id).is_some_and(|&from| from <= posting) {
                            words.push(word(id, posting - self.first));
                        }
                    }
                }
                let place = (position, topic.since);
                self.list(&mut words, &mut of_emitters, |emitter| {
                    Term::dense_topic_with_emitter(place, emitter)
                });
                self.list(&mut others, &mut of_signatures, |signature| {
                    Term::dense_topic_with_signature(place, signature)
                });
            }
            each(of_emitters.into())?;
            each(of_signatures.into())?;
        }
        for (low, high) in [(0, 1), (0, 2), (1, 2)] {
            let mut of_both = Listed::default();
            for topic in &self.topics[low] {
                words.clear();
                words.extend(topic.postings.iter().filter_map(|posting| {
                    let place = posting - self.first;
                    let other = places[high].get(place as usize).copied();
                    other.filter(|&other| other > 0).map(|other| word(other, place))
                }));
                self.list(&mut words, &mut of_both, |other| {
                    let other = self.topics[high].get(other as usize - 1)?;
                    Term::dense_topics((low + 1, topic.since), (high + 1, other.since))
                });
            }
            each(of_both.into())?;
        }
        Ok(())
    }

    /// Adds lists of pairs of which one term is the same.
    fn list(&self, words: &mut [Word], listed: &mut Listed, term: impl Fn(u32) -> Option<Term>) {
        words.sort_unstable();
        for pair in words.chunk_by(|a, b| a >> 32 == b >> 32) {
            if let Some(term) = pair.first().and_then(|first| term((first >> 32) as u32)) {
                let ordinals = pair.iter().map(|word| self.first + (word & u64::from(u32::MAX)));
                listed.push(term, ordinals);
            }
        }
    }
}
