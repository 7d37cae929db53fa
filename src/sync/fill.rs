//! Traces for blocks that were stored without them.
//!
//! Only final blocks are filled: the blocks above are unwound first and come again with their frames, so
//! that frame ordinals stay in chain order and the bytes are those of a store that had traces all along. One list is not made again:
//! before Byzantium only a trace tells that a creation failed, and the transaction stays in the list of the address that it named.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument as _;

use super::derive::{NonceRules, derive_traces};
use super::error::SyncError;
use super::pipeline::Source;
use super::stuck::{CALLS_AFTER_FILL, Stuck};
use crate::clock;
use crate::model::Bundle;
use crate::node::{Capabilities, Node, NodeError, TraceMethod};
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::{View, Writer};
use crate::tasks;

/// Blocks that share a commit at most, so that progress shows.
const BLOCKS_MAX: usize = 512;

/// How long the tip is followed before traces that could not be had are asked for again: as long as two looks at what the node offers are apart.
const PAUSE_PROBES: u32 = 2;

/// When and how the traces that stored blocks lack are asked for.
#[derive(Debug)]
pub(super) struct Filling {
    /// From this time on.
    after: Instant,
    pub(super) first_look: FirstLook,
    /// A block whose traces cannot be had, between which the tip goes on.
    pub(super) stuck: Stuck,
    /// Whether this round fetches them.
    pub(super) is_under_way: bool,
}

impl Filling {
    pub(super) fn new() -> Self {
        Self {
            after: clock::now(),
            first_look: FirstLook::default(),
            stuck: Stuck::new(CALLS_AFTER_FILL),
            is_under_way: false,
        }
    }

    /// How they are asked for now, where some are missing, it is time, and a look has found that the node has the first of them: this
    /// round fetches them then.
    pub(super) fn ways(
        &mut self,
        view: &View,
        node: &Node,
        known: &Arc<Capabilities>,
    ) -> Result<Option<Arc<Capabilities>>, SyncError> {
        if view.has_traces() || known.traces == TraceMethod::None || clock::now() < self.after {
            return Ok(None);
        }
        let ways = self.stuck.ways(known);
        let Some(looked) = self.first_look.take(view, node, Arc::clone(&ways)) else {
            return Ok(None);
        };
        self.is_under_way = true;
        looked.map(|()| Some(ways))
    }

    /// Hears why a round of it failed; answers what is known of the block by then.
    pub(super) fn hear(
        &mut self,
        error: &SyncError,
        known: &Arc<Capabilities>,
        probe_pause: Duration,
    ) -> &Stuck {
        // A node that has pruned old traces must not keep the tip waiting; another method may have the block at once.
        let is_counted = self.stuck.hear(error);
        if !(is_counted && self.stuck.has_another_way(known)) {
            self.after = clock::now() + PAUSE_PROBES * probe_pause;
        }
        &self.stuck
    }
}

/// Says that the traces of stored blocks from `next` to before `end` are fetched, if there are any.
pub(super) fn tell_fill(status: &ChainStatus, next: u64, end: u64) {
    match end.checked_sub(1).filter(|&last| next <= last) {
        Some(last) => status.fill(next, last),
        None => status.ends_filling(),
    }
}

/// Whether the node has the first traces that are missing, asked before anything is taken off and beside the tip: a node that traces recent
/// blocks only must not cost us that.
#[derive(Debug, Default)]
pub(super) struct FirstLook {
    /// At most one.
    looks: JoinSet<Result<(), SyncError>>,
    /// With when it was found.
    found: Option<(Instant, Result<(), SyncError>)>,
}

/// How long it counts what a look has found.
const FOUND_AGE_MAX: Duration = Duration::from_secs(60);

impl FirstLook {
    /// What a look has found; begins one where none is under way.
    pub(super) fn take(
        &mut self,
        view: &View,
        node: &Node,
        ways: Arc<Capabilities>,
    ) -> Option<Result<(), SyncError>> {
        self.hear();
        let found = self.fresh();
        if found.is_none() && self.looks.is_empty() {
            let checkpoint = view.checkpoint();
            // Block 0 executes nothing as a rule, and tells nothing.
            let block = checkpoint
                .next_traced
                .max(1)
                .min(checkpoint.next_block.saturating_sub(1));
            self.looks
                .spawn(look(node.clone(), block, ways).in_current_span());
        }
        found
    }

    /// What was found lately: a node may have dropped the traces since, or be well again.
    fn fresh(&mut self) -> Option<Result<(), SyncError>> {
        let (at, found) = self.found.take()?;
        is_fresh(at).then_some(found)
    }

    /// What was found holds for the next time too.
    pub(super) fn stands(&mut self) {
        self.found = Some((clock::now(), Ok(())));
    }

    /// Whether one is under way, or what it found was not taken yet.
    pub(super) fn is_pending(&mut self) -> bool {
        self.hear();
        !self.looks.is_empty() || self.found.as_ref().is_some_and(|&(at, _)| is_fresh(at))
    }

    fn hear(&mut self) {
        if let Some(ended) = self.looks.try_join_next() {
            self.keep(ended);
        }
    }

    /// Waits for the end of the one that is under way; without end where none is.
    pub(super) async fn ended(&mut self) {
        match self.looks.join_next().await {
            Some(ended) => self.keep(ended),
            None => std::future::pending().await,
        }
    }

    fn keep(&mut self, ended: Result<Result<(), SyncError>, JoinError>) {
        self.found = Some((clock::now(), ended.unwrap_or_else(|died| Err(died.into()))));
    }
}

fn is_fresh(at: Instant) -> bool {
    clock::now() - at <= FOUND_AGE_MAX
}

async fn look(node: Node, block: u64, ways: Arc<Capabilities>) -> Result<(), SyncError> {
    let fetched = node.bundle(block, &ways).await.and_then(|fetched| {
        let traces = fetched.bundle.traces.map(drop);
        traces.ok_or_else(|| NodeError::null_block("trace_block", block))
    });
    fetched.map_err(|source| SyncError::Node { block, source })
}

/// Commits the frames of the bundles of `source`, which begin with the first block without frames; `told` hears which one is the first by then.
pub(super) async fn fill(
    writer: Writer,
    source: impl Source,
    (rules, batch_bytes_max): (NonceRules, usize),
    told: impl Fn(u64),
    shutdown: &mut Shutdown,
) -> (Option<Writer>, Result<(), SyncError>) {
    let mut writer = Some(writer);
    let mut groups = source.ready_chunks(BLOCKS_MAX);
    while let Some(Some(group)) = shutdown.unless(groups.next()).await {
        let Some(mut own) = writer.take() else {
            return (None, Err(SyncError::Worker("the writer is gone".to_owned())));
        };
        let rules = rules.clone();
        let committed = tasks::blocking(move || {
            let result = commit(&mut own, group, &rules, batch_bytes_max);
            (own, result)
        });
        match committed.await {
            Ok((own, Ok(()))) => {
                told(own.checkpoint().next_traced);
                writer = Some(own);
            }
            Ok((own, Err(error))) => return (Some(own), Err(error)),
            Err(died) => return (None, Err(died.into())),
        }
    }
    (writer, Ok(()))
}

fn commit(
    writer: &mut Writer,
    group: Vec<Result<Bundle, SyncError>>,
    rules: &NonceRules,
    batch_bytes_max: usize,
) -> Result<(), SyncError> {
    let view = writer.store().view();
    let mut batch = writer.batch();
    let mut failed = Ok(());
    for bundle in group {
        let bundle = match bundle {
            Ok(bundle) => bundle,
            Err(error) => {
                failed = Err(error);
                break;
            }
        };
        let number = bundle.block.number();
        let stored = view.block(number)?;
        if stored.hash != bundle.block.hash {
            // The node has our head: it contradicts itself.
            failed = Err(SyncError::Moved {
                block: number,
                found: bundle.block.hash,
                stored: stored.hash,
            });
            break;
        }
        let Some(traces) = bundle.traces.as_deref() else {
            failed = Err(SyncError::Node {
                block: number,
                source: NodeError::null_block("trace_block", number),
            });
            break;
        };
        derive_traces(
            &bundle,
            traces,
            (&view, stored.first_transaction),
            rules,
            &mut batch,
        )?;
        if batch.bytes() >= batch_bytes_max {
            writer.commit_final(batch)?;
            batch = writer.batch();
        }
    }
    // Where the first one failed there is nothing that all tables should be flushed for.
    if *batch.checkpoint() != writer.checkpoint() {
        writer.commit_final(batch)?;
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_long_ago_counts_no_more() {
        let mut look = FirstLook::default();
        for (seconds, counts) in [(0, true), (50, true), (70, false)] {
            let at = clock::now().checked_sub(Duration::from_secs(seconds));
            look.found = Some((at.unwrap(), Ok(())));
            assert_eq!(look.fresh().is_some(), counts, "{seconds}");
            assert!(look.fresh().is_none(), "it counts once");
        }
    }
}
