//! Contracts that end in favour of themselves and live on, as nodes on revm (anvil, reth) tell of them.
//!
//! From Cancun on such an end moves nothing (EIP-6780), so revm's journal has no entry of it, and its inspector tells the
//! last entry there is: the payment before. Where the contract itself made that payment the frame looks like an
//! end in favour of whoever was paid, and only balances tell the two apart. So where a trace may be one of these,
//! which is seldom, the node is asked what the contract held before and after the block (`eth_getBalance`), and a frame
//! that moved nothing becomes what it was: in favour of itself, of no value.

use super::derive::native::{NativeRules, held_after, whose_code};
use super::error::SyncError;
use crate::model::{Address, Bundle, Frame, FrameKind, U256};
use crate::node::{Node, NodeError};

/// With more doubtful frames in a block only all and none of them are tried.
const TRIED_MAX: usize = 8;

/// A self-destruct that repeats a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt {
    transaction: usize,
    frame: usize,
    contract: Address,
}

/// What a contract held around a block.
#[derive(Clone, Copy, Debug)]
struct Held {
    contract: Address,
    before: U256,
    after: U256,
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
    let mut held: Vec<Held> = Vec::new();
    for doubt in &doubts {
        if held.iter().any(|held| held.contract == doubt.contract) {
            continue;
        }
        let around = async {
            let before = node.balance(doubt.contract, block.saturating_sub(1)).await?;
            Ok::<_, NodeError>((before, node.balance(doubt.contract, block).await?))
        };
        match around.await {
            Ok((before, after)) => held.push(Held {
                contract: doubt.contract,
                before,
                after,
            }),
            // One that has forgotten the state: the trace is all there is.
            Err(error) if error.is_answer() => {
                tracing::warn!(block, contract = %doubt.contract, %error, "whether a contract ended in favour of itself cannot be told");
                return Ok(bundle);
            }
            Err(source) => return Err(SyncError::Node { block, source }),
        }
    }
    if let Some(moved_nothing) = explanation(&bundle, &doubts, &held, rules) {
        put_right(&mut bundle, &moved_nothing);
    } else {
        tracing::debug!(
            block,
            doubts = doubts.len(),
            "balances do not tell which contracts ended in favour of themselves"
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
            let repeats = is_end(&frame)
                && !frame.value.is_zero()
                && frame.to != Some(frame.from)
                && whose_code(&trace.frames, &frame.path) == Some(frame.from)
                // What is made in the same transaction ends for good, and is told of as it is.
                && !before.iter().any(|made| made.kind.is_creation() && made.to == Some(frame.from))
                && before.iter().any(|paid| {
                    paid.kind == FrameKind::Call
                        && (paid.from, paid.to, paid.value) == (frame.from, frame.to, frame.value)
                });
            if repeats {
                doubts.push(Doubt {
                    transaction,
                    frame: place,
                    contract: frame.from,
                });
            }
            before.push(frame);
        }
    }
    doubts
}

/// Which of the doubtful frames moved nothing, by what their contracts held; `None` where nothing explains that.
fn explanation(bundle: &Bundle, doubts: &[Doubt], held: &[Held], rules: &NativeRules) -> Option<Vec<Doubt>> {
    let fits = |moved_nothing: &[Doubt]| {
        let mut tried = bundle.clone();
        put_right(&mut tried, moved_nothing);
        let before = held.iter().map(|held| (held.contract, held.before));
        let after = held_after(&tried, before, rules);
        held.iter().map(|held| Some(held.after)).eq(after)
    };
    let chosen = |mask: usize| -> Vec<Doubt> {
        let taken = |place: usize| mask >> place & 1 == 1;
        let places = doubts.iter().enumerate();
        places
            .filter(|(place, _)| taken(*place))
            .map(|(_, doubt)| *doubt)
            .collect()
    };
    if doubts.len() > TRIED_MAX {
        return [Vec::new(), doubts.to_vec()]
            .into_iter()
            .find(|tried| fits(tried));
    }
    (0..1 << doubts.len()).map(chosen).find(|tried| fits(tried))
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
        let held = [Held {
            contract: CONTRACT,
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
