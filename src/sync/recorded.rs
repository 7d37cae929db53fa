//! Blocks of a recording, parsed and verified ahead of whoever takes them.

use std::sync::Arc;

use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};

use super::error::SyncError;
use super::pipeline::{Source, settle};
use super::rules::ChainRules;
use crate::model::{B256, Bundle};
use crate::node::recorded::{RecordedChain, RecordedError, RecordedLine};
use crate::store::StoreError;
use crate::tasks;

/// Lines are handed to a thread in groups of about this many bytes, so that small blocks share a hop.
const LINES_BYTES: usize = 1 << 20;
const LINES_MAX: usize = 256;

/// The bundles of a recorded chain from block `next` on, parsed and verified on `parallel` threads. Blocks
/// before `next` are compared with `stored` and left out.
///
/// They are made ahead of the writer by up to about `ahead_bytes` of text, at least one group of lines for each
/// thread: while a batch is written nothing is taken, and the threads go on.
pub fn recorded(
    chain: RecordedChain,
    rules: ChainRules,
    next: u64,
    stored: impl Fn(u64) -> Result<Option<B256>, StoreError> + Send + Sync + Clone + 'static,
    parallel: usize,
    ahead_bytes: usize,
) -> impl Source {
    let ahead = permits(ahead_bytes.max(parallel * LINES_BYTES));
    let room = Arc::new(Semaphore::new(ahead as usize));
    let handle = Handle::current();
    let (to_parse, lines) = mpsc::channel(1);
    let reader = tasks::blocking(move || {
        let mut chain = chain;
        while let (bytes, Some(group)) = next_lines(&mut chain) {
            // Groups are let in in order: those before this one give their room back without it.
            let room = Arc::clone(&room).acquire_many_owned(permits(bytes).min(ahead));
            let Ok(held) = handle.block_on(room) else { break };
            if to_parse.blocking_send((group, held)).is_err() {
                break;
            }
        }
    });
    let parsed =
        futures_util::stream::unfold(
            lines,
            |mut lines| async move { Some((lines.recv().await?, lines)) },
        );
    let parsed = parsed.map(move |(lines, held): (Vec<_>, _)| {
        let (rules, stored) = (rules.clone(), stored.clone());
        let parsed = tasks::blocking(move || {
            let read = |line: Result<RecordedLine, _>| parse_and_verify(line?, &rules, next, &stored);
            lines
                .into_iter()
                .filter_map(|line| read(line).transpose())
                .collect::<Vec<_>>()
        });
        async move { (parsed.await, held) }
    });
    let (sender, receiver) = mpsc::unbounded_channel();
    // A task of its own, so that groups are begun also while nobody asks for the next bundle. It ends when the
    // source is dropped, which gives back the room that the reader may wait for.
    tasks::beside(async move {
        let mut parsed = Box::pin(parsed.buffered(parallel));
        while let Some((group, held)) = parsed.next().await {
            if sender.send((group, Some(held))).is_err() {
                return;
            }
        }
        if let Err(died) = reader.await {
            drop(sender.send((Err(died), None)));
        }
    });
    let groups = futures_util::stream::unfold(receiver, |mut groups| async move {
        Some((groups.recv().await?, groups))
    });
    Box::pin(groups.flat_map(|(group, held)| {
        let group = group.unwrap_or_else(|died| vec![Err(died.into())]);
        futures_util::stream::iter(group.into_iter().inspect(move |_| {
            // The room of a group is held until its last bundle is taken.
            let _held = &held;
        }))
    }))
}

/// The next lines for one thread and their bytes; `None` at the end.
fn next_lines(chain: &mut RecordedChain) -> (usize, Option<Vec<Result<RecordedLine, RecordedError>>>) {
    let mut lines = Vec::new();
    let mut bytes = 0;
    while bytes < LINES_BYTES && lines.len() < LINES_MAX {
        let Some(line) = chain.next() else { break };
        bytes += line.as_ref().map_or(0, |line| line.text.len());
        lines.push(line);
    }
    (bytes, (!lines.is_empty()).then_some(lines))
}

/// How much room so many bytes take, in KiB.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX >> 3)
}

/// The bundle of a line; `None` of a block before `next`, which is compared.
fn parse_and_verify(
    line: RecordedLine,
    rules: &ChainRules,
    next: u64,
    stored: &impl Fn(u64) -> Result<Option<B256>, StoreError>,
) -> Result<Option<Bundle>, SyncError> {
    let bundle = line.parse()?;
    let block = bundle.block.number();
    if block < next {
        return match stored(block)? {
            Some(stored) if stored != bundle.block.hash => Err(SyncError::OtherBranch {
                block,
                found: bundle.block.hash,
                stored,
            }),
            _ => Ok(None),
        };
    }
    settle(block, bundle, &rules.verify).map(Some)
}
