//! How much is known of a contract, and what of it gives way to what.

use super::code::{names_metadata, names_several};
use super::fit::OnChain;
use crate::model::{ContractFacts, MatchKind};

/// How much is known of a contract; less never takes the place of more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    Abi,
    /// Sources for which only the operator speaks.
    Stated,
    Sources(MatchKind),
}

impl Worth {
    /// A full match is never the operator's word: there `stated` is a mark, of which [`is_doubtful`] tells.
    pub(super) const fn of(facts: &ContractFacts) -> Self {
        if facts.sources.is_empty() {
            return Self::Abi;
        }
        match facts.match_kind {
            MatchKind::Partial if facts.stated => Self::Stated,
            kind => Self::Sources(kind),
        }
    }

    /// The same of what is there already. What was taken before there was code is a claim that the code did not confirm
    /// yet, and cannot where it names no metadata: what matches the code partially takes its place. What is in doubt is no more
    /// than the operator's word.
    pub(super) fn of_known(facts: &ContractFacts, on_chain: &OnChain) -> Self {
        let worth = Self::of(facts);
        if is_doubtful(facts, on_chain) {
            return worth.min(Self::Stated);
        }
        if on_chain.has_code() && (!facts.checked || names_metadata(&on_chain.code).is_none()) {
            return worth.min(Self::Sources(MatchKind::Partial));
        }
        worth
    }
}

/// Whether what is known may be of a contract that this one makes: a full match of creation code that names several
/// metadata, which an earlier version took for one of them.
///
/// Such a match is kept now only where compiled code or a claim told it, and its row says `stated`, which no other full match
/// does. Earlier versions wrote no mark, and read it as less worth, not as damage.
pub(super) fn is_doubtful(known: &ContractFacts, on_chain: &OnChain) -> bool {
    let is_full = Worth::of(known) == Worth::Sources(MatchKind::Full);
    is_full && known.checked && !known.stated && names_several(&on_chain.code)
}

/// Whether facts are of the same contract of the same sources as those that are known; a name that is not told is any.
pub(super) fn is_of_same(known: &ContractFacts, facts: &ContractFacts) -> bool {
    let is_any = |told: &Option<String>, known: &Option<String>| told.is_none() || told == known;
    is_any(&facts.name, &known.name) && is_any(&facts.main, &known.main) && facts.sources == known.sources
}
