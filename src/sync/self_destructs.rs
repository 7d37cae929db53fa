//! Contracts that end in favour of themselves and live on, as nodes on revm (anvil, reth) tell of them.
//!
//! From Cancun on such an end moves nothing (EIP-6780), so revm's journal has no entry of it, and its inspector tells the
//! last entry there is: the payment before. Where the contract itself made that payment the frame looks like an
//! end in favour of whoever was paid, and only balances tell the two apart. So where a trace may be one of these,
//! which is seldom, the node is asked what both sides held before and after the block (`eth_getBalance`), and a frame
//! that moved nothing becomes what it was: in favour of itself, of no value. Where another account's code runs the frame
//! tells by itself that it is none.

use std::collections::BTreeMap;

use super::derive::native::{NativeRules, flows_of, whose_code};
use super::error::SyncError;
use super::held::{Held, held_around};
use crate::model::{Address, Bundle, Frame, FrameKind, U256};
use crate::node::Node;

/// Which frames moved nothing is looked for in so many steps. What a block of ordinary contracts needs is a handful.
const STEPS_MAX: u32 = 1 << 18;

/// A self-destruct that repeats a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt {
    transaction: usize,
    frame: usize,
    contract: Address,
    heir: Address,
    value: U256,
}

/// Asks the node about the doubtful frames of a bundle, where there are any, and puts right those that moved nothing.
pub(super) async fn settle(
    node: &Node,
    mut bundle: Bundle,
    rules: &NativeRules,
) -> Result<Bundle, SyncError> {
    let doubts = doubts(&bundle);
    if doubts.is_empty() {
        return Ok(bundle);
    }
    let block = bundle.block.number();
    let sides = doubts.iter().flat_map(|doubt| [doubt.contract, doubt.heir]);
    // Where the node has forgotten the state, the trace is all there is.
    let Some(held) = held_around(node, block, bundle.block.hash, sides).await? else {
        return Ok(bundle);
    };
    if let Some(moved_nothing) = explanation(&bundle, &doubts, &held, rules) {
        put_right(&mut bundle, &moved_nothing);
    } else {
        tracing::warn!(
            block,
            doubts = doubts.len(),
            "balances do not tell which contracts ended in favour of themselves: traces are taken at their word"
        );
    }
    Ok(bundle)
}

/// The frames of a bundle that repeat a payment of the same transaction.
fn doubts(bundle: &Bundle) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if bundle.block.header.blob_gas_used.is_none() {
        return doubts;
    }
    for (transaction, trace) in bundle.traces.iter().flatten().enumerate() {
        let is_end = |frame: &&Frame| frame.kind == FrameKind::SelfDestruct;
        if !trace.frames.iter().any(|frame| is_end(&frame)) {
            continue;
        }
        let mut before: Vec<&Frame> = Vec::new();
        for (place, frame) in trace.frames.iter().enumerate() {
            if frame.reverted {
                continue;
            }
            let Some(heir) = frame.to else { continue };
            let repeats = is_end(&frame)
                && !frame.value.is_zero()
                && heir != frame.from
                && whose_code(&trace.frames, &frame.path) == Some(frame.from)
                // What is made in the same transaction ends for good, and is told of as it is.
                && !before.iter().any(|made| made.kind.is_creation() && made.to == Some(frame.from))
                // Whatever moved coins is the newest entry of the journal: a call, a creation, an end.
                && before.iter().any(|paid| {
                    (paid.from, paid.to, paid.value) == (frame.from, frame.to, frame.value)
                });
            if repeats {
                doubts.push(Doubt {
                    transaction,
                    frame: place,
                    contract: frame.from,
                    heir,
                    value: frame.value,
                });
            }
            before.push(frame);
        }
    }
    doubts
}

/// Which of the doubtful frames moved nothing, by what both sides held; where that cannot be (somebody's balance was set
/// by hand) by what the contracts held. `None` where nothing explains either.
fn explanation(bundle: &Bundle, doubts: &[Doubt], held: &[Held], rules: &NativeRules) -> Option<Vec<Doubt>> {
    let contracts: Vec<Held> = held
        .iter()
        .copied()
        .filter(|held| doubts.iter().any(|doubt| doubt.contract == held.account))
        .collect();
    [held, contracts.as_slice()].into_iter().find_map(|held| {
        let chosen = Search::new(bundle, doubts, held, rules).run()?;
        // A side that ended in the same block holds less than what it was given.
        let mut tried = bundle.clone();
        put_right(&mut tried, &chosen);
        let left = missing(&tried, held, rules);
        left.iter().all(U256::is_zero).then_some(chosen)
    })
}

/// What each account held more after the block than the bundle explains, modulo 2^256.
fn missing(bundle: &Bundle, held: &[Held], rules: &NativeRules) -> Vec<U256> {
    let flows = flows_of(bundle, held.iter().map(|held| held.account), rules);
    let pairs = held.iter().zip(flows);
    pairs
        .map(|(held, (into, out))| {
            let explained = held.before.wrapping_add(into).wrapping_sub(out);
            held.after.wrapping_sub(explained)
        })
        .collect()
}

/// Frames that move the same between the same two, of which it does not matter for balances which moved nothing.
struct Alike {
    doubts: Vec<Doubt>,
    /// The places of both sides among the accounts, where their balances count.
    contract: Option<usize>,
    heir: Option<usize>,
}

/// Looks for how many frames of each kind moved nothing.
struct Search {
    kinds: Vec<Alike>,
    /// What is not explained yet, by account.
    missing: Vec<U256>,
    /// The accounts that no kind after this one moves.
    settled: Vec<Vec<usize>>,
    /// Frames of each kind that moved nothing.
    counts: Vec<usize>,
    steps: u32,
}

impl Search {
    fn new(bundle: &Bundle, doubts: &[Doubt], held: &[Held], rules: &NativeRules) -> Self {
        let mut alike: BTreeMap<(Address, Address, U256), Vec<Doubt>> = BTreeMap::new();
        for doubt in doubts {
            let kind = (doubt.contract, doubt.heir, doubt.value);
            alike.entry(kind).or_default().push(*doubt);
        }
        let place = |account: Address| held.iter().position(|held| held.account == account);
        let kinds: Vec<Alike> = alike
            .into_iter()
            .map(|((contract, heir, _), doubts)| Alike {
                doubts,
                contract: place(contract),
                heir: place(heir),
            })
            .collect();
        let mut settled = vec![Vec::new(); kinds.len()];
        for account in 0..held.len() {
            let moves = |kind: &Alike| kind.contract == Some(account) || kind.heir == Some(account);
            if let Some(last) = kinds.iter().rposition(moves)
                && let Some(of_last) = settled.get_mut(last)
            {
                of_last.push(account);
            }
        }
        Self {
            counts: vec![0; kinds.len()],
            kinds,
            missing: missing(bundle, held, rules),
            settled,
            steps: STEPS_MAX,
        }
    }

    fn run(mut self) -> Option<Vec<Doubt>> {
        if !self.from(0) {
            return None;
        }
        let kinds = self.kinds.iter().zip(&self.counts);
        let chosen = kinds.flat_map(|(kind, &count)| kind.doubts.iter().rev().take(count));
        let mut chosen: Vec<Doubt> = chosen.copied().collect();
        chosen.sort_unstable_by_key(|doubt| (doubt.transaction, doubt.frame));
        Some(chosen)
    }

    /// Chooses for this kind and those after it: as few as will do.
    fn from(&mut self, at: usize) -> bool {
        let Some(kind) = self.kinds.get(at) else {
            return true;
        };
        let (contract, heir, most) = (kind.contract, kind.heir, kind.doubts.len());
        let value = kind.doubts.first().map_or(U256::ZERO, |doubt| doubt.value);
        let before = self.missing.clone();
        for count in 0..=most {
            let Some(left) = self.steps.checked_sub(1) else {
                return false;
            };
            self.steps = left;
            let settled = self.settled.get(at).is_none_or(|accounts| {
                accounts
                    .iter()
                    .all(|&account| self.missing.get(account).is_none_or(U256::is_zero))
            });
            if let Some(chosen) = self.counts.get_mut(at) {
                *chosen = count;
            }
            if settled && self.from(at + 1) {
                return true;
            }
            // One more of them moved nothing: the contract held more, its heir less.
            if let Some(missing) = contract.and_then(|place| self.missing.get_mut(place)) {
                *missing = missing.wrapping_sub(value);
            }
            if let Some(missing) = heir.and_then(|place| self.missing.get_mut(place)) {
                *missing = missing.wrapping_add(value);
            }
        }
        self.missing = before;
        false
    }
}

/// Puts right the frames that tell by themselves that they are no ends in favour of whom they name: code of another account
/// ran than the one that they say ended.
pub(super) fn set_who_ended(bundle: &mut Bundle) {
    for trace in bundle.traces.iter_mut().flatten() {
        let ends = |frame: &Frame| frame.kind == FrameKind::SelfDestruct;
        if !trace.frames.iter().any(ends) {
            continue;
        }
        let places = 0..trace.frames.len();
        let wrong: Vec<(usize, Address)> = places
            .filter_map(|place| {
                let frame = trace.frames.get(place).filter(|frame| ends(frame))?;
                let ended = whose_code(&trace.frames, &frame.path)?;
                (ended != frame.from).then_some((place, ended))
            })
            .collect();
        for (place, ended) in wrong {
            if let Some(frame) = trace.frames.get_mut(place) {
                (frame.from, frame.to, frame.value) = (ended, Some(ended), U256::ZERO);
            }
        }
    }
}

fn put_right(bundle: &mut Bundle, moved_nothing: &[Doubt]) {
    let Some(traces) = &mut bundle.traces else { return };
    for doubt in moved_nothing {
        let trace = traces.get_mut(doubt.transaction);
        if let Some(frame) = trace.and_then(|trace| trace.frames.get_mut(doubt.frame)) {
            frame.to = Some(frame.from);
            frame.value = U256::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Block, Header, Receipt, Transaction, TransactionTrace};

    const CONTRACT: Address = Address::repeat_byte(1);
    const PAID: Address = Address::repeat_byte(2);
    const OTHER: Address = Address::repeat_byte(3);

    fn frame(kind: FrameKind, path: &[u32], from: Address, to: Address, value: u64) -> Frame {
        Frame {
            kind,
            path: path.to_vec(),
            from,
            to: Some(to),
            value: U256::from(value),
            ..Frame::default()
        }
    }

    /// One transaction to the contract with these frames below it.
    fn bundle(frames: Vec<Frame>) -> Bundle {
        let mut all = vec![frame(FrameKind::Call, &[], OTHER, CONTRACT, 0)];
        all.extend(frames);
        Bundle {
            block: Block {
                header: Header {
                    number: 7,
                    blob_gas_used: Some(0),
                    excess_blob_gas: Some(0),
                    ..Header::default()
                },
                transactions: vec![Transaction {
                    from: OTHER,
                    to: Some(CONTRACT),
                    gas_price: Some(0),
                    ..Transaction::default()
                }],
                ..Block::default()
            },
            receipts: vec![Receipt::default()],
            traces: Some(vec![TransactionTrace { frames: all }]),
            ..Bundle::default()
        }
    }

    fn paid(value: u64) -> Frame {
        frame(FrameKind::Call, &[0], CONTRACT, PAID, value)
    }

    fn ended(place: u32, value: u64) -> Frame {
        frame(FrameKind::SelfDestruct, &[place], CONTRACT, PAID, value)
    }

    /// Which frames of the doubtful ones moved nothing when the contract held so much before and after.
    fn told(bundle: &Bundle, before: u64, after: u64) -> Option<Vec<usize>> {
        // The heir's balance is left out of it: what it got is not what is asked here.
        let held = [Held {
            account: CONTRACT,
            before: U256::from(before),
            after: U256::from(after),
        }];
        let found = explanation(bundle, &doubts(bundle), &held, &NativeRules::default())?;
        Some(found.into_iter().map(|doubt| doubt.frame).collect())
    }

    #[test]
    fn only_what_repeats_a_payment_is_in_doubt() {
        let count = |frames| doubts(&bundle(frames)).len();
        assert_eq!(count(vec![paid(5), ended(1, 5)]), 1);
        assert_eq!(count(vec![paid(5), ended(1, 6)]), 0);
        assert_eq!(count(vec![ended(0, 5), paid(5)]), 0);
        let reverted = Frame {
            reverted: true,
            ..paid(5)
        };
        assert_eq!(count(vec![reverted, ended(1, 5)]), 0);
        let made = frame(FrameKind::Create, &[0], OTHER, CONTRACT, 5);
        assert_eq!(count(vec![made, paid(5), ended(1, 5)]), 0);
        let mut before_cancun = bundle(vec![paid(5), ended(1, 5)]);
        before_cancun.block.header.blob_gas_used = None;
        assert_eq!(doubts(&before_cancun), []);
    }

    #[test]
    fn balances_tell_them_apart() {
        let once = bundle(vec![paid(5), ended(1, 5)]);
        // It had ten and ended for good in favour of who was paid; it kept five; it had no more than five.
        assert_eq!(told(&once, 10, 0), Some(vec![]));
        assert_eq!(told(&once, 10, 5), Some(vec![2]));
        assert_eq!(told(&once, 5, 0), Some(vec![2]));
        assert_eq!(told(&once, 10, 7), None);
        let twice = bundle(vec![paid(5), ended(1, 5), ended(2, 5)]);
        assert_eq!(told(&twice, 10, 5), Some(vec![2, 3]));
        assert_eq!(told(&twice, 10, 0).map(|found| found.len()), Some(1));
    }

    #[test]
    fn both_sides_tell_which_of_two_it_was() {
        let third = Address::repeat_byte(4);
        let to_third = |kind, place| frame(kind, &[place], CONTRACT, third, 5);
        let frames = vec![
            paid(5),
            ended(1, 5),
            frame(FrameKind::Call, &[2], OTHER, CONTRACT, 5),
            to_third(FrameKind::Call, 3),
            to_third(FrameKind::SelfDestruct, 4),
        ];
        let bundle = bundle(frames);
        let held = |account, before: u64, after: u64| Held {
            account,
            before: U256::from(before),
            after: U256::from(after),
        };
        let chosen = |paid: u64, third_got: u64| {
            let held = [
                held(CONTRACT, 10, 0),
                held(PAID, 0, paid),
                held(third, 0, third_got),
            ];
            let found = explanation(&bundle, &doubts(&bundle), &held, &NativeRules::default())?;
            Some(found.into_iter().map(|doubt| doubt.frame).collect::<Vec<_>>())
        };
        assert_eq!(chosen(10, 5), Some(vec![5]));
        assert_eq!(chosen(5, 10), Some(vec![2]));
    }

    #[test]
    fn many_alike_are_counted_and_an_end_repeats_an_end() {
        let mut frames = vec![paid(5)];
        frames.extend((1..=12).map(|place| ended(place, 5)));
        let many = bundle(frames);
        assert_eq!(told(&many, 100, 95).map(|found| found.len()), Some(12));
        assert_eq!(told(&many, 100, 85).map(|found| found.len()), Some(10));
        let twice = bundle(vec![ended(0, 5), ended(1, 5)]);
        assert_eq!(told(&twice, 5, 0), Some(vec![2]));
    }

    #[test]
    fn code_of_another_account_did_not_end_it() {
        let mut bundle = bundle(vec![frame(FrameKind::SelfDestruct, &[0], OTHER, CONTRACT, 5)]);
        set_who_ended(&mut bundle);
        let ended = &bundle.traces.as_ref().unwrap()[0].frames[1];
        assert_eq!(
            (ended.from, ended.to, ended.value),
            (CONTRACT, Some(CONTRACT), U256::ZERO)
        );
        let before = bundle.clone();
        set_who_ended(&mut bundle);
        assert_eq!(bundle, before);
    }

    #[test]
    fn what_moved_nothing_is_in_favour_of_itself() {
        let mut bundle = bundle(vec![paid(5), ended(1, 5)]);
        let doubts = doubts(&bundle);
        put_right(&mut bundle, &doubts);
        let frame = &bundle.traces.unwrap()[0].frames[2];
        assert_eq!(
            (frame.from, frame.to, frame.value),
            (CONTRACT, Some(CONTRACT), U256::ZERO)
        );
    }
}
