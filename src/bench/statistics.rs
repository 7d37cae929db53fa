//! What a store holds, as far as questions are chosen by it, and how they are chosen.

use serde::Serialize;

use super::pick::ROWS_MIN;
use crate::model::{Address, B256, ChainName, Day};

/// Something that occurs, and how often over the whole chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<T> {
    /// What.
    pub what: T,
    /// Rows of its list.
    pub count: u64,
}

/// A topic at a position.
pub type Placed = (usize, B256);

/// What was found in a store: exact counts of things that were met in a sample of its rows. The lists are in the order
/// of their counts, longest first, each thing once.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// The store.
    pub store: StoreFacts,
    /// Contracts by their logs.
    pub emitters: Vec<Counted<Address>>,
    /// Topics 0 by their logs.
    pub signatures: Vec<Counted<B256>>,
    /// The block of the middle one of the logs with the commonest topic 0.
    pub middle: Option<u64>,
    /// Topics 1 to 3 that look like accounts, by their logs.
    pub wallets: Vec<Counted<Placed>>,
    /// Topics 1 to 3 of logs of the contract with the most logs, with the topic 0 that they were met with; the count is
    /// that of the topic over all contracts.
    pub of_hot: Vec<Counted<(B256, Placed)>>,
    /// Pairs of a topic 0 and a topic 1 that share a log; the count is that of the shorter list.
    pub meeting: Vec<Counted<(B256, B256)>>,
    /// Pairs that share none.
    pub apart: Vec<Counted<(B256, B256)>>,
    /// Pairs of a common topic 0 and a common topic 1 with as many logs as a question wants that were looked at, also those that took too
    /// long to tell.
    pub paired: u64,
    /// Contracts with many logs and common topics 0 that they never emit; the count is that of the shorter list.
    pub silent: Vec<Counted<(Address, B256)>>,
    /// Accounts by transactions.
    pub by_transactions: Vec<Counted<Address>>,
    /// Accounts by internal transactions.
    pub by_internal: Vec<Counted<Address>>,
    /// Accounts by ERC-20 transfers.
    pub by_erc20: Vec<Counted<Address>>,
    /// Accounts by blocks sealed.
    pub by_mined: Vec<Counted<Address>>,
    /// Tokens by holders now.
    pub tokens: Vec<Counted<Address>>,
    /// Some holders of the token with the most.
    pub holders: Vec<Address>,
    /// Hashes of transactions spread over the chain.
    pub transactions: Vec<B256>,
    /// Blocks spread over the chain.
    pub blocks: Vec<u64>,
    /// Whether there was no time for a part of the sample.
    pub is_cut: bool,
}

impl Statistics {
    /// Takes a pair of topics, and whether a log has both; `None` where that was not found out in time.
    pub(super) fn pairs(&mut self, pair: Counted<(B256, B256)>, is_meeting: Option<bool>) {
        self.paired += u64::from(pair.count >= ROWS_MIN);
        match is_meeting {
            Some(true) => self.meeting.push(pair),
            Some(false) => self.apart.push(pair),
            None => {}
        }
    }
}

/// The store in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreFacts {
    /// `mainnet` or `testnet`.
    #[serde(serialize_with = "as_text")]
    pub chain: ChainName,
    /// Chain id.
    pub chain_id: u64,
    /// First block.
    pub first_block: u64,
    /// Last block.
    pub head: u64,
    /// Its hash.
    #[serde(serialize_with = "as_text")]
    pub head_hash: B256,
    /// Logs.
    pub logs: u64,
    /// Transactions.
    pub transactions: u64,
    /// Contracts with a log.
    pub emitters: u32,
    /// Distinct topics 0.
    pub signatures: u32,
    /// Whether call frames are stored.
    pub traces: bool,
    /// Whether native balances are known up to the head.
    pub balances: bool,
    /// Bytes on disk.
    pub bytes: u64,
    /// Days of the first and the last block, where there are blocks.
    #[serde(skip)]
    pub days: Option<(Day, Day)>,
}

/// The newest block of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    /// Its number.
    pub number: u64,
    /// Its hash.
    #[serde(serialize_with = "as_text")]
    pub hash: B256,
}

fn as_text<S: serde::Serializer>(value: &impl std::fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// The one that occurs oftenest.
#[must_use]
pub fn hottest<T: Copy>(all: &[Counted<T>]) -> Option<Counted<T>> {
    all.iter().copied().max_by_key(|one| one.count)
}

/// The one whose count is nearest to `target` by ratio, among those that `fits` takes; the earlier of two alike. None
/// that does not occur is taken.
#[must_use]
pub fn nearest<T: Copy>(
    all: &[Counted<T>],
    target: u64,
    fits: impl Fn(&Counted<T>) -> bool,
) -> Option<Counted<T>> {
    let distance = |one: &Counted<T>| (one.count as f64 / target.max(1) as f64).ln().abs();
    let fitting = all.iter().filter(|one| one.count > 0 && fits(one));
    fitting
        .copied()
        .min_by(|one, other| distance(one).total_cmp(&distance(other)))
}

/// At most so many of them, evenly.
pub(super) fn thinned<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    let step = all.len().div_ceil(most.max(1)).max(1);
    all.iter().copied().step_by(step).take(most).collect()
}

/// In an order of which each beginning is spread over all of them, the first one first: by the golden ratio, which leaves no long gap.
pub(super) fn strewn<T>(all: Vec<T>) -> Vec<T> {
    let keys = (0_u64..).map(|place| place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut keyed: Vec<_> = keys.zip(all).collect();
    keyed.sort_unstable_by_key(|&(key, _)| key);
    keyed.into_iter().map(|(_, one)| one).collect()
}

/// In an order that tells nothing of the one before, the same each time.
pub(super) fn shuffled<T>(mut all: Vec<T>) -> Vec<T> {
    fastrand::Rng::with_seed(0).shuffle(&mut all);
    all
}

/// Sorts by count, longest first; what has the same count keeps its order.
pub(super) fn longest_first<T>(all: &mut [Counted<T>]) {
    all.sort_by_key(|one| std::cmp::Reverse(one.count));
}

/// Whether a topic may be an account: 20 bytes behind zeros, and more than a small number.
#[must_use]
pub fn may_be_account(topic: &B256) -> Option<Address> {
    let (zeros, rest) = topic.split_at(12);
    let (high, _) = rest.split_at(8);
    let is_one = zeros.iter().all(|&byte| byte == 0) && high.iter().any(|&byte| byte != 0);
    is_one.then(|| Address::from_slice(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counts: &[u64]) -> Vec<Counted<usize>> {
        let counted = counts
            .iter()
            .enumerate()
            .map(|(what, &count)| Counted { what, count });
        counted.collect()
    }

    #[test]
    fn nearness_is_a_ratio() {
        let all = counted(&[10, 100, 1_000, 0]);
        // 300 is 3.3 times from 1,000 and 3 times from 100, though 200 away from both in part.
        assert_eq!(nearest(&all, 300, |_| true).map(|one| one.what), Some(1));
        assert_eq!(nearest(&all, 400, |_| true).map(|one| one.what), Some(2));
        assert_eq!(
            nearest(&all, 300, |one| one.count > 100).map(|one| one.what),
            Some(2)
        );
        assert_eq!(nearest(&all, 1, |one| one.count == 0), None);
        assert_eq!(nearest::<usize>(&[], 300, |_| true), None);
    }

    #[test]
    fn the_hottest_has_the_longest_list() {
        assert_eq!(hottest(&counted(&[5, 90, 7])).map(|one| one.what), Some(1));
        assert_eq!(hottest::<usize>(&[]), None);
        let mut all = counted(&[5, 90, 90, 7]);
        longest_first(&mut all);
        assert_eq!(all.iter().map(|one| one.what).collect::<Vec<_>>(), [1, 2, 3, 0]);
    }

    #[test]
    fn each_beginning_of_what_is_strewn_is_spread_over_all_of_it() {
        for length in [0, 1, 2, 34, 84, 89, 100, 1_000] {
            let all: Vec<usize> = (0..length).collect();
            let order = strewn(all.clone());
            assert_eq!(order.first(), all.first());
            for begun in 1..=length {
                let mut places = order[..begun].to_vec();
                places.sort_unstable();
                let ends = [0].into_iter().chain(places.iter().copied());
                let gaps = ends.zip(places.iter().copied().chain([length]));
                let longest = gaps.map(|(from, to)| to - from).max().unwrap();
                assert!(longest * begun <= 3 * length, "{begun} of {length}: {longest}");
            }
            let mut sorted = order;
            sorted.sort_unstable();
            assert_eq!(sorted, all);
        }
    }

    #[test]
    fn small_numbers_are_no_accounts() {
        let account = Address::repeat_byte(0x11);
        assert_eq!(may_be_account(&account.into_word()), Some(account));
        assert_eq!(may_be_account(&B256::with_last_byte(7)), None);
        assert_eq!(may_be_account(&B256::repeat_byte(1)), None);
        assert_eq!(may_be_account(&B256::ZERO), None);
    }
}
