//! A block that cannot be had, asked for again and again.

use std::sync::Arc;
use std::time::Duration;

use super::engine::WAIT_MAX;
use super::error::SyncError;
use crate::node::{Capabilities, NodeError, ReceiptMethod, TraceMethod};

/// After so many failures at one block that block alone is asked for: what comes after it would be asked for in vain, too.
const ALONE_AFTER: u32 = 2;
/// After so many the message says what may be wrong.
const TOLD_AFTER: u32 = 3;
/// After so many it is asked for in another way, where there is one, every second time.
const OTHERWISE_AFTER: u32 = 3;
/// After so many it is waited for longer than for a node that is away.
const LONG_AFTER: u32 = 5;
const WAIT_LONG_MAX: Duration = Duration::from_secs(60);
/// A block less far below the node's head may not be there yet.
const OLD: u64 = 128;

/// The block that the node has failed at, each time by what it or a gateway before it said.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    block: Option<u64>,
    times: u32,
}

impl Stuck {
    /// Hears why a round failed.
    pub(super) fn hear(&mut self, error: &SyncError) {
        let block = match error {
            SyncError::Node { block, source } if source.is_said() || source.refused().is_some() => *block,
            SyncError::Verify { block, .. } => *block,
            // A node that is away says nothing of the block.
            _ => return,
        };
        if self.block.replace(block) != Some(block) {
            self.times = 0;
        }
        self.times = self.times.saturating_add(1);
    }

    /// Hears that blocks came.
    pub(super) const fn went_on(&mut self) {
        self.block = None;
        self.times = 0;
    }

    /// Whether one block at a time is asked for.
    pub(super) const fn is_alone(&self) -> bool {
        ALONE_AFTER <= self.times
    }

    /// How blocks are asked for now. A node may fail one block by one method for good (a timeout, a damaged table) and have it by another one:
    /// receipts one by one, traces by number.
    pub(super) fn ways(&self, known: &Arc<Capabilities>) -> Arc<Capabilities> {
        let otherwise = OTHERWISE_AFTER <= self.times && !self.times.is_multiple_of(2);
        if !otherwise {
            return Arc::clone(known);
        }
        let traces = match known.traces {
            TraceMethod::DebugByHash => TraceMethod::DebugByNumber,
            usual => usual,
        };
        Arc::new(Capabilities {
            receipts: ReceiptMethod::Transaction,
            traces,
            ..Capabilities::clone(known)
        })
    }

    /// The longest wait before it is asked for again.
    pub(super) const fn wait_max(&self) -> Duration {
        if LONG_AFTER <= self.times {
            WAIT_LONG_MAX
        } else {
            WAIT_MAX
        }
    }

    /// The error with the likely reason and the way out where the node has not told an old block for long.
    pub(super) fn explained(&self, error: SyncError, head: Option<u64>) -> SyncError {
        match error {
            SyncError::Node { block, source } if TOLD_AFTER <= self.times => {
                let is_old = head.is_some_and(|head| OLD <= head.saturating_sub(block));
                match way_out(&source, is_old) {
                    Some(way_out) => SyncError::Withheld {
                        block,
                        source,
                        way_out,
                    },
                    None => SyncError::Node { block, source },
                }
            }
            other => other,
        }
    }
}

/// What may be wrong and what to do; nothing of a block that is not old, which may not be there yet.
fn way_out(source: &NodeError, is_old: bool) -> Option<&'static str> {
    let (NodeError::Rpc { method, .. }
    | NodeError::NullResult { method, .. }
    | NodeError::Incomplete { method, .. }) = source
    else {
        return None;
    };
    Some(match *method {
        // What accounts held before the first block: the node has it from the beginning on or not at all.
        "eth_getBalance" => {
            "the node has no state of the block before the first one, which native balances begin with: give the genesis file \
             (--genesis), use an archive node, or fill a new store from the first block whose state this one still has \
             (--start-block)"
        }
        _ if !is_old => return None,
        "eth_getBlockByNumber" | "eth_getBlockReceipts" | "eth_getTransactionReceipt" => {
            "the node seems to have dropped blocks or receipts so old (pruning, or expired history): use an archive node \
             with the whole history, or fill a new store from the first block that this one still has (--start-block)"
        }
        _ => {
            "the node seems to have dropped states so old (pruning): use an archive node, or fill a new store from the first \
             block whose state this one still has (--start-block)"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(block: u64, method: &'static str) -> SyncError {
        SyncError::Node {
            block,
            source: NodeError::Rpc {
                method,
                code: -32000,
                message: "required historical state unavailable".to_owned(),
            },
        }
    }

    #[test]
    fn a_block_that_cannot_be_had_is_asked_for_alone_and_seldom() {
        let mut stuck = Stuck::default();
        let mut alone = Vec::new();
        for _ in 0..6 {
            stuck.hear(&failed(7, "trace_block"));
            alone.push((stuck.is_alone(), stuck.wait_max() > WAIT_MAX));
        }
        let (f, t) = (false, true);
        assert_eq!(alone, [(f, f), (t, f), (t, f), (t, f), (t, t), (t, t)]);
        // A node that is away is looked for as often as ever, and says nothing of the block.
        let away = NodeError::Transport {
            method: "trace_block",
            reason: "refused".to_owned(),
        };
        stuck.hear(&SyncError::Node {
            block: 7,
            source: away,
        });
        assert!(stuck.is_alone());
        stuck.hear(&failed(8, "trace_block"));
        assert!(!stuck.is_alone() && stuck.wait_max() == WAIT_MAX);
        stuck.hear(&failed(8, "trace_block"));
        stuck.went_on();
        assert!(!stuck.is_alone());
    }

    #[test]
    fn a_block_that_one_method_fails_is_asked_for_by_another_in_turn() {
        let known = Arc::new(Capabilities {
            traces: TraceMethod::DebugByHash,
            ..Capabilities::default()
        });
        let mut stuck = Stuck::default();
        let mut ways = Vec::new();
        for _ in 0..6 {
            ways.push((stuck.ways(&known).receipts, stuck.ways(&known).traces));
            stuck.hear(&failed(7, "eth_getBlockReceipts"));
        }
        let usual = (ReceiptMethod::Block, TraceMethod::DebugByHash);
        let other = (ReceiptMethod::Transaction, TraceMethod::DebugByNumber);
        assert_eq!(ways, [usual, usual, usual, other, usual, other]);
        stuck.went_on();
        assert_eq!(stuck.ways(&known), known);
    }

    #[test]
    fn the_way_out_is_told_of_old_blocks_after_a_while() {
        let mut stuck = Stuck::default();
        let told = |stuck: &Stuck, method, head| stuck.explained(failed(7, method), head).to_string();
        for _ in 0..3 {
            assert!(!told(&stuck, "trace_block", Some(1000)).contains("--start-block"));
            stuck.hear(&failed(7, "trace_block"));
        }
        let of_state = told(&stuck, "trace_block", Some(1000));
        assert!(
            of_state.contains("states") && of_state.contains("--start-block"),
            "{of_state}"
        );
        let of_receipts = told(&stuck, "eth_getBlockReceipts", Some(1000));
        assert!(of_receipts.contains("receipts so old"), "{of_receipts}");
        // It may not be there yet.
        for head in [Some(100), None] {
            assert!(!told(&stuck, "trace_block", head).contains("--start-block"));
        }
        // What was held before the first block does not come later.
        let of_opening = told(&stuck, "eth_getBalance", Some(8));
        assert!(of_opening.contains("--genesis"), "{of_opening}");
    }
}
