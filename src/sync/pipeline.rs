//! From verified bundles, in order, into the store: derive, batch, commit.

use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::derive::derive;
use super::error::SyncError;
use super::finality::FinalBlocks;
use super::rules::ChainRules;
use super::self_destructs::set_who_ended;
use super::verify::stated::set_what_follows;
use super::verify::{Rules, verify};
use crate::clock;
use crate::model::{B256, Bundle};
use crate::shutdown::Shutdown;
use crate::store::{Batch, StoreError, Writer};
use crate::tasks;

/// A batch is committed after this long even when it is small, so that progress shows, once the writer has to wait for blocks. While they
/// are ready it ends by its size.
const BATCH_AGE_MAX: Duration = Duration::from_secs(5);
/// Verified bundles that wait for the writer.
const WAITING_MAX: usize = 4;
/// How long whoever gave the blocks may take over the last question once the end is asked for, or it has failed.
const LAST_WORD_MAX: Duration = Duration::from_millis(500);

/// The bundle of this block once it is verified, which is done off the async threads.
pub(super) async fn verified(number: u64, bundle: Bundle, rules: Rules) -> Result<Bundle, SyncError> {
    tasks::blocking(move || settle(number, bundle, &rules)).await?
}

/// A bundle that verifies, with what follows from it in the place of what its node stated.
pub(super) fn settle(number: u64, mut bundle: Bundle, rules: &Rules) -> Result<Bundle, SyncError> {
    static SAID: Once = Once::new();
    set_who_ended(&mut bundle);
    if !rules.trust_node {
        let differing = set_what_follows(&mut bundle);
        if differing > 0 {
            tracing::debug!(
                block = number,
                transactions = differing,
                "the node states what does not follow"
            );
            SAID.call_once(|| {
                tracing::warn!(
                    block = number,
                    "the node states a price or blob gas that does not follow from what is signed: it is computed instead"
                );
            });
        }
    }
    verify(&bundle, None, rules).map_err(|source| SyncError::Verify {
        block: number,
        source,
    })?;
    Ok(bundle)
}

/// Bundles in chain order.
pub trait Source: Stream<Item = Result<Bundle, SyncError>> + Send + Unpin {}
impl<S: Stream<Item = Result<Bundle, SyncError>> + Send + Unpin> Source for S {}

/// Asks whoever gives the blocks for the hash of one of them, by its number.
pub(super) type Word = Arc<dyn Fn(u64) -> BoxFuture<'static, Result<B256, SyncError>> + Send + Sync>;

/// Takes bundles to the store.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The chain's rules.
    pub rules: ChainRules,
    /// Which blocks are final as they come.
    pub final_blocks: FinalBlocks,
    /// A batch is committed when it holds about this many bytes.
    pub batch_bytes_max: usize,
}

impl Pipeline {
    /// Commits the bundles of `source`, a chain that does not change, until it ends, fails, or the end is asked for. The
    /// writer comes back with what was committed until then, whatever happened.
    pub async fn run(
        &self,
        writer: Writer,
        source: impl Source,
        shutdown: &mut Shutdown,
    ) -> (Option<Writer>, Result<(), SyncError>) {
        self.run_by(writer, source, None, shutdown).await
    }

    /// The same of bundles that may be of several branches: final blocks are committed if who gave them has the last of them
    /// still, by its `word`. The source must get on while nothing is taken from it, or the answer never comes.
    pub(super) async fn run_by(
        &self,
        writer: Writer,
        mut source: impl Source,
        word: Option<Word>,
        shutdown: &mut Shutdown,
    ) -> (Option<Writer>, Result<(), SyncError>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let pipeline = self.clone();
        let asking = Asking {
            word,
            handle: Handle::current(),
            shutdown: shutdown.clone(),
            is_hurried: false,
        };
        let consumer = tasks::blocking(move || {
            let mut taking = Taking {
                pipeline,
                asking,
                writer,
                batch: None,
                held: None,
            };
            let result = taking.consume(receiver);
            let mut writer = taking.writer;
            // What became of the commit under way comes first: the rest went on from it.
            let waited = writer.wait().map_err(SyncError::from);
            (writer, waited.and(result))
        });
        let mut fetched = Ok(());
        loop {
            // A writer that gave up is not kept waiting for a source that stalls.
            let next = async {
                tokio::select! {
                    biased;
                    () = sender.closed() => None,
                    next = source.next() => next.map(Some).or(Some(None)),
                }
            };
            let Some(Some(next)) = shutdown.unless(next).await else {
                break;
            };
            let next = match next.transpose() {
                Ok(next) => next,
                Err(error) => {
                    fetched = Err(error);
                    break;
                }
            };
            let is_last = next.is_none();
            let sent = shutdown.unless(sender.send(next)).await;
            if is_last || !matches!(sent, Some(Ok(()))) {
                break;
            }
        }
        drop(sender);
        match consumer.await {
            // What the writer says comes first: the source may have failed because of it.
            Ok((writer, committed)) => (Some(writer), committed.and(fetched)),
            Err(died) => (None, Err(died.into())),
        }
    }
}

/// How the consumer of bundles asks who gave them.
struct Asking {
    /// Nobody where the blocks are of a chain that does not change.
    word: Option<Word>,
    handle: Handle,
    shutdown: Shutdown,
    /// No more blocks come, and the reason is told by who gave them: nobody waits long for an answer then.
    is_hurried: bool,
}

impl Asking {
    /// Whether blocks up to `number` may become final, of which the last one has this hash: who gave them may have left the branch, or be several
    /// of which one is on another. False where the end is asked for before the answer comes, or the source has failed and
    /// none comes soon.
    fn has(&self, number: u64, hash: B256) -> Result<bool, SyncError> {
        let Some(word) = &self.word else {
            return Ok(true);
        };
        let mut shutdown = self.shutdown.clone();
        let ended = async {
            if !self.is_hurried {
                shutdown.fired().await;
            }
            tokio::time::sleep(LAST_WORD_MAX).await;
        };
        let answer = self.handle.block_on(async {
            tokio::select! {
                answer = word(number) => Some(answer),
                () = ended => None,
            }
        });
        let answer = match answer {
            Some(Err(_)) if self.is_hurried => None,
            answer => answer.transpose()?,
        };
        match answer {
            Some(found) if found != hash => Err(SyncError::Moved {
                block: number,
                found,
                stored: hash,
            }),
            answer => Ok(answer.is_some()),
        }
    }
}

/// Takes bundles one by one, off the async threads.
struct Taking {
    pipeline: Pipeline,
    asking: Asking,
    writer: Writer,
    /// Final blocks that are not committed yet, and since when there are any.
    batch: Option<(Batch, Instant)>,
    /// A final block of a node waits here for the next one to name it: behind a balancer one node may be on a branch that the others left.
    held: Option<Bundle>,
}

/// Why there is no next bundle.
enum NoBundle {
    /// None has come, and the open batch is old enough to be committed.
    InTime,
    /// These were all.
    AllCame,
    /// Who gave them fails, or the end is asked for.
    BrokenOff,
}

impl Taking {
    /// Takes bundles until there are no more; `None` says that these were all.
    fn consume(&mut self, mut bundles: mpsc::Receiver<Option<Bundle>>) -> Result<(), SyncError> {
        self.writer
            .take_at_its_word(self.pipeline.rules.verify.trust_node)?;
        loop {
            let goes_on = match self.next_bundle(&mut bundles) {
                Ok(bundle) => self.take(bundle)?,
                Err(NoBundle::InTime) => self.commit()?,
                Err(NoBundle::AllCame) => return self.end(true),
                Err(NoBundle::BrokenOff) => return self.end(false),
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Waits for the next bundle, as long as the age of the open batch lets it.
    fn next_bundle(&self, bundles: &mut mpsc::Receiver<Option<Bundle>>) -> Result<Bundle, NoBundle> {
        let next = match &self.batch {
            None => bundles.blocking_recv(),
            Some((_, began)) => {
                let left = BATCH_AGE_MAX.saturating_sub(clock::now() - *began);
                let next = async { tokio::time::timeout(left, bundles.recv()).await };
                let next = self.asking.handle.block_on(next);
                next.map_err(|_| NoBundle::InTime)?
            }
        };
        next.ok_or(NoBundle::BrokenOff)?.ok_or(NoBundle::AllCame)
    }

    /// Takes the next bundle; whether to go on. It is dropped here, off the async threads: bundles hold many small allocations.
    fn take(&mut self, bundle: Bundle) -> Result<bool, SyncError> {
        self.check(&bundle)?;
        if let Some(named) = self.held.take()
            && !self.add_final(&named)?
        {
            return Ok(false);
        }
        let (number, final_blocks) = (bundle.block.number(), self.pipeline.final_blocks);
        if final_blocks.awaits_next(number) {
            self.held = Some(bundle);
            return Ok(true);
        }
        if final_blocks.has(number) {
            return self.add_final(&bundle);
        }
        let goes_on = self.commit()?;
        if goes_on {
            self.add_unfinal(&bundle)?;
        }
        Ok(goes_on)
    }

    /// Fails unless the bundle goes on from what was taken, and is the block that is named as final where it has its number.
    fn check(&mut self, bundle: &Bundle) -> Result<(), SyncError> {
        let checkpoint = self
            .batch
            .as_ref()
            .map_or_else(|| self.writer.checkpoint(), |(batch, _)| *batch.checkpoint());
        let before = self
            .held
            .as_ref()
            .map_or((checkpoint.next_block, checkpoint.hash.into()), |before| {
                (before.block.number() + 1, before.block.hash)
            });
        if let Err(error) = check_place(bundle, before, &self.writer) {
            // Of a chain that does not change all is kept that came before. Else it cannot be told which of the blocks are of the
            // branch that was left, however many of them name each other: none becomes final.
            if self.asking.word.is_none() {
                self.commit()?;
            }
            return Err(error);
        }
        let (block, stored) = (bundle.block.number(), bundle.block.hash);
        match self.pipeline.final_blocks.hash_of(block) {
            // The open batch is of a branch that the node left.
            Some(found) if found != stored => Err(SyncError::Moved { block, found, stored }),
            _ => Ok(()),
        }
    }

    /// Commits what is left when no more bundles come, `all` of them or not.
    fn end(&mut self, all: bool) -> Result<(), SyncError> {
        self.asking.is_hurried = !all;
        let goes_on = self.commit_by(Writer::begin_last_commit)?;
        match self.held.take() {
            // Where all came nobody is left who could name the last one.
            Some(unnamed) if goes_on && all => self.add_unfinal(&unnamed),
            _ => Ok(()),
        }
    }

    /// Adds a final block to the open batch, and has it committed when it is full; whether to go on.
    fn add_final(&mut self, bundle: &Bundle) -> Result<bool, SyncError> {
        let bytes_max = self.pipeline.batch_bytes_max;
        let (open, _) = self
            .batch
            .get_or_insert_with(|| (self.writer.batch_of(bytes_max), clock::now()));
        derive(bundle, &self.pipeline.rules.nonces, open)?;
        if open.bytes() < bytes_max {
            return Ok(true);
        }
        self.commit()
    }

    /// Commits a block that is not final.
    fn add_unfinal(&mut self, bundle: &Bundle) -> Result<(), SyncError> {
        let mut open = self.writer.batch();
        derive(bundle, &self.pipeline.rules.nonces, &mut open)?;
        Ok(self.writer.commit_unfinal(open)?)
    }

    /// Begins to commit the open batch; whatever comes after it waits for it, or goes on from it in memory. False where it
    /// was dropped because the end is asked for.
    fn commit(&mut self) -> Result<bool, SyncError> {
        self.commit_by(Writer::begin_commit)
    }

    /// The same in another way; the batch is dropped unless it is known that it may become final.
    fn commit_by(
        &mut self,
        begin: impl FnOnce(&mut Writer, Batch) -> Result<(), StoreError>,
    ) -> Result<bool, SyncError> {
        let Some((batch, _)) = self.batch.take() else {
            return Ok(true);
        };
        let checkpoint = batch.checkpoint();
        let last = checkpoint.next_block.saturating_sub(1);
        let may = self.asking.has(last, checkpoint.hash.into())?;
        if may {
            begin(&mut self.writer, batch)?;
        }
        Ok(may)
    }
}

/// A block comes next, by its number, and is the child of the one before it, by its hash.
fn check_place(bundle: &Bundle, (wanted, expected): (u64, B256), writer: &Writer) -> Result<(), SyncError> {
    let number = bundle.block.number();
    if number != wanted {
        return Err(SyncError::Gap {
            found: number,
            wanted,
            way_out: "its blocks must be in order, each of them once",
        });
    }
    let identity = writer.store().identity();
    let found = bundle.block.header.parent_hash;
    if number == identity.first_block {
        return check_beginning(bundle, identity.genesis_hash.into());
    }
    if expected == found {
        return Ok(());
    }
    Err(SyncError::Parent {
        block: number,
        expected,
        found,
    })
}

/// The first block is of the chain that begins with `genesis`, as far as it and that tell.
fn check_beginning(bundle: &Bundle, genesis: B256) -> Result<(), SyncError> {
    let found = match bundle.block.number() {
        0 => bundle.block.hash,
        1 => bundle.block.header.parent_hash,
        _ => return Ok(()),
    };
    if genesis.is_zero() || found == genesis {
        return Ok(());
    }
    Err(SyncError::OtherBeginning {
        found,
        expected: genesis,
    })
}
