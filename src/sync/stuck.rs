//! A block that cannot be had, asked for again and again.

use std::sync::Arc;
use std::time::Duration;

use super::engine::WAIT_MAX;
use super::error::SyncError;
use super::verify::VerifyError;
use crate::node::{Capabilities, NodeError, ReceiptMethod, TraceMethod};

/// After so many failures at one block that block alone is asked for: what comes after it would be asked for in vain, too.
const ALONE_AFTER: u32 = 2;
/// After so many the message says what may be wrong.
const TOLD_AFTER: u32 = 3;
/// After so many it is asked for in another way, where there is one, every second time.
const OTHERWISE_AFTER: u32 = 3;
/// The same of `callTracer` in place of `trace_block`, at the tip and in a backfill: it tells the gas of top calls in another way, so that a node that is
/// well again soon is waited for.
pub(super) const CALLS_AFTER: u32 = 9;
/// The same where traces are fetched later, which is tried seldom.
pub(super) const CALLS_AFTER_FILL: u32 = 3;
/// After so many that the node said it is waited for longer than for a node that is away.
const LONG_AFTER: u32 = 5;
const WAIT_LONG_MAX: Duration = Duration::from_secs(60);
/// A block less far below the node's head may not be there yet.
const OLD: u64 = 128;

/// The block that the node has failed at again and again, whatever it, a gateway before it or the way to it said.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    /// After how many failures `callTracer` takes the place of `trace_block`.
    calls_after: u32,
    block: Option<u64>,
    times: u32,
    /// How many of them the node said.
    said: u32,
    /// What is asked for by other methods.
    otherwise: Otherwise,
    /// What was wrong when the block was asked for as usual.
    usual: Option<Usual>,
}

/// What is wrong with a block that is asked for as usual.
#[derive(Clone, Debug)]
enum Usual {
    Node(NodeError),
    Verify(VerifyError),
}

/// The parts of a block that failed, which another method may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Otherwise {
    receipts: bool,
    traces: bool,
}

impl Otherwise {
    /// Adds what may be had by another method after this.
    fn hear(&mut self, wrong: &Usual) {
        let (receipts, traces) = match wrong {
            Usual::Node(source) => match source.method() {
                Some("eth_getBlockReceipts") => (true, false),
                Some("trace_block" | "debug_traceBlockByHash") => (false, true),
                // The block's own, or another method's already.
                _ => (false, false),
            },
            Usual::Verify(source) => (!source.is_of_traces(), source.is_of_traces()),
        };
        self.receipts |= receipts;
        self.traces |= traces;
    }
}

impl Stuck {
    /// Nothing is stuck; `callTracer` is asked in place of `trace_block` after so many failures.
    pub(super) fn new(calls_after: u32) -> Self {
        Self {
            calls_after,
            ..Self::default()
        }
    }

    /// Hears why a round failed that had the node's head, so that the node is not away; whether it counts.
    pub(super) fn hear(&mut self, error: &SyncError) -> bool {
        let (block, is_said, wrong) = match error {
            // Who asks for a rest says nothing of the block.
            SyncError::Node {
                source: NodeError::RateLimited { .. } | NodeError::Url(_),
                ..
            } => return false,
            SyncError::Node { block, source } => {
                let is_said = source.is_said() || source.refused().is_some();
                (*block, is_said, Usual::Node(source.clone()))
            }
            SyncError::Verify { block, source } => (*block, true, Usual::Verify(source.clone())),
            _ => return false,
        };
        if self.block != Some(block) {
            self.went_on();
            self.block = Some(block);
        }
        self.times = self.times.saturating_add(1);
        self.said = self.said.saturating_add(u32::from(is_said));
        self.otherwise.hear(&wrong);
        if !is_odd_one(self.times - 1) {
            self.usual = Some(wrong);
        }
        true
    }

    /// Hears that blocks came.
    pub(super) fn went_on(&mut self) {
        *self = Self::new(self.calls_after);
    }

    /// Whether one block at a time is asked for.
    pub(super) const fn is_alone(&self) -> bool {
        ALONE_AFTER <= self.times
    }

    /// How blocks are asked for now. A node may fail one block by one method for good (a timeout, a damaged table) and have it by another one:
    /// receipts one by one, traces by `callTracer` in place of `trace_block`, or by number in place of by hash.
    pub(super) fn ways(&self, known: &Arc<Capabilities>) -> Arc<Capabilities> {
        if !is_odd_one(self.times) {
            return Arc::clone(known);
        }
        let receipts = match known.receipts {
            ReceiptMethod::Block if self.otherwise.receipts => ReceiptMethod::Transaction,
            usual => usual,
        };
        let traces = match known.traces {
            // Where the node refuses it by hash it is asked by number, too.
            TraceMethod::TraceBlock if self.otherwise.traces && self.calls_after <= self.times => {
                TraceMethod::DebugByHash
            }
            TraceMethod::DebugByHash if self.otherwise.traces => TraceMethod::DebugByNumber,
            usual => usual,
        };
        Arc::new(Capabilities {
            receipts,
            traces,
            ..Capabilities::clone(known)
        })
    }

    /// Whether the next time it is asked for in another way.
    pub(super) fn has_another_way(&self, known: &Arc<Capabilities>) -> bool {
        self.ways(known) != *known
    }

    /// The longest wait before it is asked for again.
    pub(super) const fn wait_max(&self) -> Duration {
        if LONG_AFTER <= self.said {
            WAIT_LONG_MAX
        } else {
            WAIT_MAX
        }
    }

    /// The error with the likely reason and the way out where the node has not told an old block for long. That it lacks another method, which
    /// was tried in vain, is nothing that anybody must mend: what was wrong in the usual way is told. A store may take what a genesis file says,
    /// or have blocks already that were made without it.
    pub(super) fn explained(
        &self,
        error: SyncError,
        head: Option<u64>,
        known: &Capabilities,
        takes_genesis: bool,
    ) -> SyncError {
        let error = match error {
            SyncError::Node { block, source }
                if self.block == Some(block)
                    && source.refused().is_some_and(|method| !known.asks(method)) =>
            {
                match self.usual.clone() {
                    Some(Usual::Node(source)) => SyncError::Node { block, source },
                    Some(Usual::Verify(source)) => SyncError::Verify { block, source },
                    None => SyncError::Node { block, source },
                }
            }
            error => error,
        };
        match error {
            SyncError::Node { block, source } if TOLD_AFTER <= self.times => {
                let is_old = head.is_some_and(|head| is_old(block, head));
                match way_out(&source, is_old, takes_genesis) {
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

/// Whether a node with this head has had the block for long, unless it has dropped it.
pub(super) const fn is_old(block: u64, head: u64) -> bool {
    OLD <= head.saturating_sub(block)
}

/// Whether a block may be asked for in another way after so many failures.
const fn is_odd_one(times: u32) -> bool {
    OTHERWISE_AFTER <= times && !times.is_multiple_of(2)
}

/// Whether the node says that the chain has no block of this number and never will (Filecoin).
fn is_null_round(source: &NodeError) -> bool {
    matches!(source, NodeError::Rpc { message, .. } if message.contains("null round"))
}

/// What may be wrong and what to do; nothing of a block that is not old, which may not be there yet.
fn way_out(source: &NodeError, is_old: bool, takes_genesis: bool) -> Option<&'static str> {
    if is_null_round(source) {
        return Some("the chain has heights without blocks, and such chains cannot be stored");
    }
    let (NodeError::Rpc { method, .. }
    | NodeError::NullResult { method, .. }
    | NodeError::Incomplete { method, .. }) = source
    else {
        return None;
    };
    Some(match *method {
        // What accounts held before the first block: the node has it from the beginning on or not at all.
        "eth_getBalance" if takes_genesis => {
            "the node has no state of the block before the first one, which native balances begin with: give the genesis file \
             (--genesis), use an archive node, or fill a new store from the first block whose state this one still has \
             (--start-block)"
        }
        "eth_getBalance" => {
            "the node has no state of the block before the first one, which native balances begin with: use an archive node, or \
             fill a new --data-dir, either from block 0 with the genesis file (--genesis) or from the first block whose state this node \
             still has (--start-block)"
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
        let mut stuck = Stuck::new(CALLS_AFTER);
        let mut alone = Vec::new();
        for _ in 0..6 {
            stuck.hear(&failed(7, "trace_block"));
            alone.push((stuck.is_alone(), stuck.wait_max() > WAIT_MAX));
        }
        let (f, t) = (false, true);
        assert_eq!(alone, [(f, f), (t, f), (t, f), (t, f), (t, t), (t, t)]);
        // A node that asks for a rest says nothing of the block.
        let rest = NodeError::RateLimited {
            method: "trace_block",
            message: "too many requests".to_owned(),
            retry_after: None,
        };
        assert!(!stuck.hear(&SyncError::Node {
            block: 8,
            source: rest,
        }));
        assert!(stuck.is_alone());
        stuck.hear(&failed(8, "trace_block"));
        assert!(!stuck.is_alone() && stuck.wait_max() == WAIT_MAX);
        stuck.hear(&failed(8, "trace_block"));
        stuck.went_on();
        assert!(!stuck.is_alone());
    }

    /// How the block is asked for, time after time, by a node that fails it by one method.
    fn asked(known: &Capabilities, method: &'static str) -> Vec<(ReceiptMethod, TraceMethod)> {
        let known = Arc::new(known.clone());
        let mut stuck = Stuck::new(CALLS_AFTER_FILL);
        let mut ways = Vec::new();
        for _ in 0..6 {
            ways.push((stuck.ways(&known).receipts, stuck.ways(&known).traces));
            stuck.hear(&failed(7, method));
        }
        stuck.went_on();
        assert_eq!(stuck.ways(&known), known);
        ways
    }

    #[test]
    fn a_block_that_one_method_fails_is_asked_for_by_another_in_turn() {
        for (traces, method, other) in [
            (
                TraceMethod::DebugByHash,
                "eth_getBlockReceipts",
                (ReceiptMethod::Transaction, TraceMethod::DebugByHash),
            ),
            (
                TraceMethod::DebugByHash,
                "debug_traceBlockByHash",
                (ReceiptMethod::Block, TraceMethod::DebugByNumber),
            ),
            (
                TraceMethod::TraceBlock,
                "trace_block",
                (ReceiptMethod::Block, TraceMethod::DebugByHash),
            ),
            // Nothing else has it.
            (
                TraceMethod::TraceBlock,
                "eth_getBlockByNumber",
                (ReceiptMethod::Block, TraceMethod::TraceBlock),
            ),
        ] {
            let known = Capabilities {
                traces,
                ..Capabilities::default()
            };
            let usual = (ReceiptMethod::Block, traces);
            let expected = [usual, usual, usual, other, usual, other];
            assert_eq!(asked(&known, method), expected, "{method}");
        }
    }

    /// A node that traces by `trace_block`.
    fn by_trace_block() -> Arc<Capabilities> {
        Arc::new(Capabilities {
            traces: TraceMethod::TraceBlock,
            ..Capabilities::default()
        })
    }

    #[test]
    fn call_tracer_is_tried_late_where_blocks_are_fetched() {
        let known = by_trace_block();
        let mut stuck = Stuck::new(CALLS_AFTER);
        for times in 1..=11 {
            stuck.hear(&failed(7, "trace_block"));
            let by_calls = stuck.ways(&known).traces == TraceMethod::DebugByHash;
            assert_eq!(by_calls, matches!(times, 9 | 11), "{times}");
            assert_eq!(stuck.has_another_way(&known), by_calls);
        }
    }

    #[test]
    fn a_node_that_does_not_answer_is_waited_for_no_longer_than_one_that_is_away() {
        let silent = |after| SyncError::Node {
            block: 7,
            source: NodeError::Timeout {
                method: "trace_block",
                after: Duration::from_secs(after),
            },
        };
        let mut stuck = Stuck::new(CALLS_AFTER);
        for _ in 0..20 {
            assert!(stuck.hear(&silent(60)));
        }
        assert!(stuck.is_alone() && stuck.wait_max() == WAIT_MAX);
    }

    #[test]
    fn a_method_tried_in_vain_is_not_what_is_told() {
        let known = by_trace_block();
        let refused = SyncError::Node {
            block: 7,
            source: NodeError::MethodNotFound {
                method: "debug_traceBlockByNumber",
                message: "no such method".to_owned(),
            },
        };
        let mut stuck = Stuck::new(CALLS_AFTER_FILL);
        for _ in 0..3 {
            stuck.hear(&failed(7, "trace_block"));
        }
        assert_eq!(stuck.ways(&known).traces, TraceMethod::DebugByHash);
        stuck.hear(&refused);
        let told = stuck.explained(refused, None, &known, true).to_string();
        assert!(told.contains("trace_block: rpc error -32000"), "{told}");
    }

    #[test]
    fn the_way_out_is_told_of_old_blocks_after_a_while() {
        let mut stuck = Stuck::new(CALLS_AFTER);
        let known = Capabilities::default();
        let told = |stuck: &Stuck, method, head, takes_genesis| {
            let explained = stuck.explained(failed(7, method), head, &known, takes_genesis);
            explained.to_string()
        };
        for _ in 0..3 {
            assert!(!told(&stuck, "trace_block", Some(1000), true).contains("--start-block"));
            stuck.hear(&failed(7, "trace_block"));
        }
        let of_state = told(&stuck, "trace_block", Some(1000), true);
        assert!(
            of_state.contains("states") && of_state.contains("--start-block"),
            "{of_state}"
        );
        let of_receipts = told(&stuck, "eth_getBlockReceipts", Some(1000), true);
        assert!(of_receipts.contains("receipts so old"), "{of_receipts}");
        // It may not be there yet.
        for head in [Some(100), None] {
            assert!(!told(&stuck, "trace_block", head, true).contains("--start-block"));
        }
        // What the chain does not have comes from no node, however new it is.
        for head in [Some(1000), Some(8), None] {
            let source = NodeError::Rpc {
                method: "eth_getBlockByNumber",
                code: 12,
                message: "requested epoch was a null round (7)".to_owned(),
            };
            let null_round = SyncError::Node { block: 7, source };
            let told = stuck.explained(null_round, head, &known, true).to_string();
            assert!(
                told.contains("heights without blocks") && !told.contains("archive"),
                "{told}"
            );
        }
        // What was held before the first block does not come later.
        let of_opening = told(&stuck, "eth_getBalance", Some(8), true);
        assert!(of_opening.contains("give the genesis file"), "{of_opening}");
        // Nor does a file help blocks that are stored without it.
        let of_opening = told(&stuck, "eth_getBalance", Some(8), false);
        assert!(
            of_opening.contains("new --data-dir") && !of_opening.contains("give the genesis file"),
            "{of_opening}"
        );
    }
}
