//! How many frames of each kind moved nothing, so that balances come out: a search for some numbers of which sums are known.
//!
//! The worst case is exponential (a contract that pays many sums of which any may be the ones that are missing), and whoever
//! sends a transaction can make one. So the search ends after a number of steps; each takes the same time, and what it holds grows with
//! the kinds alone.

use crate::model::U256;

/// How often a number of frames is tried. What a block of ordinary contracts needs is a handful; each kind takes one at least.
pub(super) const STEPS_MAX: u32 = 1 << 18;

/// Frames that move the same between the same two, of which it does not matter for balances which moved nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// The places of both sides among the accounts, where their balances count.
    pub(super) contract: Option<usize>,
    pub(super) heir: Option<usize>,
    /// What each of the frames says that it moved.
    pub(super) value: U256,
    /// How many there are.
    pub(super) most: usize,
}

/// Looks for how many frames of each kind moved nothing.
#[derive(Debug)]
pub(super) struct Search {
    kinds: Vec<Kind>,
    /// What is not explained yet, by account.
    missing: Vec<U256>,
    /// The accounts that no kind after this one moves.
    settled: Vec<Vec<usize>>,
    /// Frames of each kind that moved nothing.
    counts: Vec<usize>,
    /// Steps that are left.
    steps: u32,
}

impl Search {
    pub(super) fn new(kinds: Vec<Kind>, missing: Vec<U256>) -> Self {
        let mut last = vec![None; missing.len()];
        for (at, kind) in kinds.iter().enumerate() {
            for account in [kind.contract, kind.heir].into_iter().flatten() {
                if let Some(last) = last.get_mut(account) {
                    *last = Some(at);
                }
            }
        }
        let mut settled = vec![Vec::new(); kinds.len()];
        for (account, last) in last.into_iter().enumerate() {
            if let Some(of_last) = last.and_then(|last| settled.get_mut(last)) {
                of_last.push(account);
            }
        }
        Self {
            counts: vec![0; kinds.len()],
            kinds,
            missing,
            settled,
            steps: STEPS_MAX,
        }
    }

    /// The number of each kind, as few of the first ones as will do; `None` where none explain, or the steps ran out.
    pub(super) fn run(mut self) -> Option<Vec<usize>> {
        let mut at = 0;
        while at < self.kinds.len() {
            self.steps = self.steps.checked_sub(1)?;
            if self.is_settled(at) {
                at += 1;
                continue;
            }
            // The next number of this kind, or of the last one before it that has another.
            while !self.one_more(at) {
                self.none(at);
                at = at.checked_sub(1)?;
            }
        }
        Some(self.counts)
    }

    /// Whether all is explained of the accounts that no kind after this one moves.
    fn is_settled(&self, at: usize) -> bool {
        let is_explained = |account: &usize| self.missing.get(*account).is_none_or(U256::is_zero);
        self.settled
            .get(at)
            .is_none_or(|accounts| accounts.iter().all(is_explained))
    }

    /// One more of this kind moved nothing, where there is one.
    fn one_more(&mut self, at: usize) -> bool {
        let (Some(kind), Some(count)) = (self.kinds.get(at).copied(), self.counts.get_mut(at)) else {
            return false;
        };
        if *count == kind.most {
            return false;
        }
        *count += 1;
        self.hold(kind, kind.value);
        true
    }

    /// None of this kind moved nothing.
    fn none(&mut self, at: usize) {
        let (Some(kind), Some(count)) = (self.kinds.get(at).copied(), self.counts.get_mut(at)) else {
            return;
        };
        let moved = kind.value.wrapping_mul(U256::from(std::mem::take(count)));
        self.hold(kind, moved.wrapping_neg());
    }

    /// So much less moved: the contract held more, its heir less.
    fn hold(&mut self, kind: Kind, more: U256) {
        if let Some(missing) = kind.contract.and_then(|place| self.missing.get_mut(place)) {
            *missing = missing.wrapping_sub(more);
        }
        if let Some(missing) = kind.heir.and_then(|place| self.missing.get_mut(place)) {
            *missing = missing.wrapping_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stack on which nothing may recurse once for each kind.
    const STACK: usize = 128 << 10;
    const MANY: usize = 50_000;

    fn on_a_short_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(work);
        thread.unwrap().join().unwrap()
    }

    /// What is found in so many steps.
    fn found(kinds: Vec<Kind>, missing: Vec<U256>, steps: u32) -> Option<Vec<usize>> {
        let mut search = Search::new(kinds, missing);
        search.steps = steps;
        search.run()
    }

    #[test]
    fn contracts_that_tell_each_by_itself_take_two_steps_each_whatever_their_number() {
        // All have the same heir, which tells something only in the end.
        let value = |at: usize| U256::from(at + 1);
        let kinds = (0..MANY).map(|at| Kind {
            contract: Some(at),
            heir: Some(MANY),
            value: value(at),
            most: 1,
        });
        let kinds: Vec<Kind> = kinds.collect();
        let mut missing: Vec<U256> = (0..MANY).map(value).collect();
        let all = missing.iter().fold(U256::ZERO, |all, one| all.wrapping_add(*one));
        missing.push(all.wrapping_neg());
        let steps = 2 * MANY as u32;
        on_a_short_stack(move || {
            assert_eq!(found(kinds.clone(), missing.clone(), steps), Some(vec![1; MANY]));
            assert_eq!(found(kinds, missing, steps - 1), None);
        });
    }

    #[test]
    fn a_contract_that_pays_many_sums_ends_the_search_after_its_steps() {
        let kinds = (0..MANY).map(|at| Kind {
            contract: Some(0),
            heir: Some(1),
            value: U256::from(at + 1),
            most: 1,
        });
        let kinds: Vec<Kind> = kinds.collect();
        let all = U256::from(MANY * (MANY + 1) / 2);
        assert_eq!(
            on_a_short_stack(move || Search::new(kinds, vec![all, all.wrapping_neg()]).run()),
            None
        );
    }

    /// The first numbers in their order that explain all accounts that anything moves.
    fn first_of_all(kinds: &[Kind], missing: &[U256]) -> Option<Vec<usize>> {
        let moved: Vec<usize> = kinds
            .iter()
            .flat_map(|kind| [kind.contract, kind.heir])
            .flatten()
            .collect();
        let mut counts = vec![0; kinds.len()];
        loop {
            let mut left = missing.to_vec();
            for (kind, count) in kinds.iter().zip(&counts) {
                let moved = kind.value.wrapping_mul(U256::from(*count));
                kind.contract
                    .iter()
                    .for_each(|&at| left[at] = left[at].wrapping_sub(moved));
                kind.heir
                    .iter()
                    .for_each(|&at| left[at] = left[at].wrapping_add(moved));
            }
            if moved.iter().all(|&account| left[account].is_zero()) {
                return Some(counts);
            }
            // Counts on as a number is written, the last place first.
            let next = (0..kinds.len()).rev().find(|&at| counts[at] < kinds[at].most)?;
            counts[next] += 1;
            counts[next + 1..].fill(0);
        }
    }

    prop_compose! {
        fn kind()(
            contract in prop::option::of(0usize..3),
            heir in prop::option::of(3usize..6),
            value in 1u64..6,
            most in 1usize..4,
        ) -> Kind {
            Kind { contract, heir, value: U256::from(value), most }
        }
    }

    proptest! {
        #[test]
        fn the_first_numbers_that_explain_are_found(
            kinds in prop::collection::vec(kind(), 0..6),
            drawn in prop::collection::vec(0usize..4, 6),
            off in 0u64..2,
        ) {
            // What so many of each leave to explain, or a little else.
            let mut missing = vec![U256::from(off); 6];
            for (kind, count) in kinds.iter().zip(drawn) {
                let moved = kind.value.wrapping_mul(U256::from(count.min(kind.most)));
                kind.contract.iter().for_each(|&at| missing[at] = missing[at].wrapping_add(moved));
                kind.heir.iter().for_each(|&at| missing[at] = missing[at].wrapping_sub(moved));
            }
            let expected = first_of_all(&kinds, &missing);
            prop_assert!(off > 0 || expected.is_some());
            prop_assert_eq!(found(kinds, missing, STEPS_MAX), expected);
        }
    }
}
