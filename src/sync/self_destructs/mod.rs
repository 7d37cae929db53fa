//! Contracts that end in favour of themselves and live on, as nodes on revm (anvil, reth) tell of them.
//!
//! From Cancun on such an end moves nothing (EIP-6780), so revm's journal has no entry of it, and its inspector tells the
//! last entry there is: the payment before. Where the contract itself made that payment the frame looks like an
//! end in favour of whoever was paid, and only balances tell the two apart. So where a trace may be one of these,
//! which is seldom, the node is asked what both sides held before and after the block (`eth_getBalance`), and a frame
//! that moved nothing becomes what it was: in favour of itself, of no value. Where another account's code runs the frame
//! tells by itself that it is none.
//!
//! Other nodes tell of such an end as what it is, and state the contract's whole balance as its value, which did not move: it
//! becomes none as well, so that what is stored does not depend on the node.

mod search;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use search::{Kind, Search};

use super::derive::native::{Callers, NativeRules, flows_of};
use super::error::SyncError;
use super::held::{Held, held_around};
use crate::model::{Address, Bundle, Frame, FrameKind, U256};
use crate::node::Node;
use crate::tasks;

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
    let traces = bundle.traces.iter().flatten();
    if !may_live_on(&bundle) || !traces.flat_map(|trace| &trace.frames).any(is_end) {
        return Ok(bundle);
    }
    // What takes long in a block of many frames is done off the async threads.
    let doubtful;
    (bundle, doubtful) = tasks::blocking(move || {
        let doubtful = doubts(&bundle);
        (bundle, doubtful)
    })
    .await?;
    if doubtful.is_empty() {
        return Ok(bundle);
    }
    let block = bundle.block.number();
    // Where the node has forgotten the state, the trace is all there is.
    let Some(held) = held_around(node, block, bundle.block.hash, sides(&doubtful)).await? else {
        return Ok(bundle);
    };
    let rules = rules.clone();
    let told = tasks::blocking(move || {
        if !explain(&mut bundle, &doubtful, &held, &rules) {
            tracing::warn!(
                block,
                doubts = doubtful.len(),
                "balances do not tell which contracts ended in favour of themselves: traces are taken at their word"
            );
        }
        bundle
    });
    Ok(told.await?)
}

/// Puts right what nodes on revm (and its inspectors) tell wrongly of self-destructs, by what accounts `held` before and after
/// the block: as it is done with blocks of a node, which is asked for that. Answers whether balances explain the bundle.
pub fn tell_apart(
    bundle: &mut Bundle,
    rules: &NativeRules,
    mut held: impl FnMut(&Address) -> (U256, U256),
) -> bool {
    set_who_ended(bundle);
    let doubts = doubts(bundle);
    let around = |account| {
        let (before, after) = held(&account);
        Held {
            account,
            before,
            after,
        }
    };
    let held: Vec<Held> = sides(&doubts).into_iter().map(around).collect();
    doubts.is_empty() || explain(bundle, &doubts, &held, rules)
}

/// Whose balances tell.
fn sides(doubts: &[Doubt]) -> BTreeSet<Address> {
    doubts
        .iter()
        .flat_map(|doubt| [doubt.contract, doubt.heir])
        .collect()
}

fn is_end(frame: &Frame) -> bool {
    frame.kind == FrameKind::SelfDestruct
}

/// Before Cancun every end moves what it says. Chains that took EIP-6780 without blobs do not say since when: there frames are
/// taken at their word.
const fn may_live_on(bundle: &Bundle) -> bool {
    bundle.block.header.blob_gas_used.is_some()
}

/// The frames of a bundle that repeat a payment of the same transaction, in order.
fn doubts(bundle: &Bundle) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if !may_live_on(bundle) {
        return doubts;
    }
    for (transaction, trace) in bundle.traces.iter().flatten().enumerate() {
        if !trace.frames.iter().any(is_end) {
            continue;
        }
        let callers = Callers::of(&trace.frames);
        let (mut made, mut paid) = (HashSet::new(), HashSet::new());
        for (place, frame) in trace.frames.iter().enumerate() {
            if frame.reverted {
                continue;
            }
            let Some(heir) = frame.to else { continue };
            let payment = (frame.from, heir, frame.value);
            let repeats = is_end(frame)
                && !frame.value.is_zero()
                && heir != frame.from
                && callers.whose_code(&frame.path) == Some(frame.from)
                // What is made in the same transaction ends for good, and is told of as it is.
                && !made.contains(&frame.from)
                // Whatever moved coins is the newest entry of the journal: a call, a creation, an end.
                && paid.contains(&payment);
            if repeats {
                doubts.push(Doubt {
                    transaction,
                    frame: place,
                    contract: frame.from,
                    heir,
                    value: frame.value,
                });
            }
            if frame.kind.is_creation() {
                made.insert(heir);
            }
            paid.insert(payment);
        }
    }
    doubts
}

/// Puts right the doubtful frames that moved nothing, by what both sides held; where that cannot be (somebody's balance was set
/// by hand) by what the contracts held. Where neither explains the block nothing is changed.
fn explain(bundle: &mut Bundle, doubts: &[Doubt], held: &[Held], rules: &NativeRules) -> bool {
    let ending: HashSet<Address> = doubts.iter().map(|doubt| doubt.contract).collect();
    let of_contracts = held.iter().filter(|held| ending.contains(&held.account));
    let of_contracts: Vec<Held> = of_contracts.copied().collect();
    [held, &of_contracts].into_iter().any(|held| {
        let Some(chosen) = moved_nothing(bundle, doubts, held, rules) else {
            return false;
        };
        put_right(bundle, &chosen);
        // A side that ended in the same block holds less than what it was given.
        let explains = missing(bundle, held, rules).iter().all(U256::is_zero);
        if !explains {
            put_back(bundle, &chosen);
        }
        explains
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

/// Which of the doubtful frames moved nothing, as few as will do. Of frames that move the same between the same two it does not
/// matter for balances which they are: the last ones.
fn moved_nothing(
    bundle: &Bundle,
    doubts: &[Doubt],
    held: &[Held],
    rules: &NativeRules,
) -> Option<Vec<Doubt>> {
    let mut alike: BTreeMap<(Address, Address, U256), Vec<Doubt>> = BTreeMap::new();
    for doubt in doubts {
        let kind = (doubt.contract, doubt.heir, doubt.value);
        alike.entry(kind).or_default().push(*doubt);
    }
    let accounts = held.iter().map(|held| held.account);
    let places: HashMap<Address, usize> = accounts.zip(0..).collect();
    let kinds = alike.iter().map(|((contract, heir, value), doubts)| Kind {
        contract: places.get(contract).copied(),
        heir: places.get(heir).copied(),
        value: *value,
        most: doubts.len(),
    });
    let counts = Search::new(kinds.collect(), missing(bundle, held, rules)).run()?;
    let last = |(doubts, count): (Vec<Doubt>, usize)| doubts.into_iter().rev().take(count);
    let mut chosen: Vec<Doubt> = alike.into_values().zip(counts).flat_map(last).collect();
    chosen.sort_unstable_by_key(|doubt| (doubt.transaction, doubt.frame));
    Some(chosen)
}

/// Puts right the frames that tell by themselves that they moved nothing: code of another account ran than the one that they
/// say ended, or the contract lives on, and ended in favour of itself.
pub(super) fn set_who_ended(bundle: &mut Bundle) {
    let may_live_on = may_live_on(bundle);
    for trace in bundle.traces.iter_mut().flatten() {
        if !trace.frames.iter().any(is_end) {
            continue;
        }
        let callers = Callers::of(&trace.frames);
        let made = made(&trace.frames, &callers);
        let ends = trace.frames.iter().enumerate().filter(|(_, frame)| is_end(frame));
        let wrong = ends.filter_map(|(place, frame)| {
            let ended = callers.whose_code(&frame.path).unwrap_or(frame.from);
            let lives_on = may_live_on && frame.to == Some(ended) && !made.contains(&ended);
            (ended != frame.from || (lives_on && !frame.value.is_zero())).then_some((place, ended))
        });
        let wrong: Vec<(usize, Address)> = wrong.collect();
        for (place, ended) in wrong {
            if let Some(frame) = trace.frames.get_mut(place) {
                (frame.from, frame.to, frame.value) = (ended, Some(ended), U256::ZERO);
            }
        }
    }
}

/// The contracts that a transaction makes, whatever becomes of them. A failed creation does not name its own, but what its code
/// does is told as done by it.
fn made(frames: &[Frame], callers: &Callers<'_>) -> HashSet<Address> {
    let made = frames.iter().filter_map(|frame| {
        let within_failed = !frame.path.is_empty() && callers.whose_code(&frame.path).is_none();
        match frame.to {
            Some(contract) if frame.kind.is_creation() => Some(contract),
            _ => within_failed.then_some(frame.from),
        }
    });
    made.collect()
}

/// Makes of these frames ends in favour of the contracts themselves, which move nothing.
fn put_right(bundle: &mut Bundle, moved_nothing: &[Doubt]) {
    set(bundle, moved_nothing, |doubt| (doubt.contract, U256::ZERO));
}

/// Makes of them what they were.
fn put_back(bundle: &mut Bundle, put_right: &[Doubt]) {
    set(bundle, put_right, |doubt| (doubt.heir, doubt.value));
}

fn set(bundle: &mut Bundle, doubts: &[Doubt], moved: impl Fn(&Doubt) -> (Address, U256)) {
    let Some(traces) = &mut bundle.traces else { return };
    for doubt in doubts {
        let trace = traces.get_mut(doubt.transaction);
        if let Some(frame) = trace.and_then(|trace| trace.frames.get_mut(doubt.frame)) {
            let (heir, value) = moved(doubt);
            (frame.to, frame.value) = (Some(heir), value);
        }
    }
}

#[cfg(test)]
mod tests;
