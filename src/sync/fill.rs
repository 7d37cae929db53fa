//! Traces for blocks that were stored without them.
//!
//! Only final blocks are filled: the blocks above are unwound first and come again with their frames, so
//! that frame ordinals stay in chain order and the bytes are those of a store that had traces all along. One list is not made again:
//! before Byzantium only a trace tells that a creation failed, and the transaction stays in the list of the address that it named.

use futures_util::StreamExt;

use super::derive::{NonceRules, derive_traces};
use super::error::SyncError;
use super::pipeline::Source;
use crate::model::Bundle;
use crate::node::NodeError;
use crate::shutdown::Shutdown;
use crate::store::Writer;
use crate::tasks;

/// Blocks that share a commit at most, so that progress shows.
const BLOCKS_MAX: usize = 512;

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
