//! What a chain's sync is doing, shared between those who do it and whoever reports it: no knowledge of nodes, stores or HTTP.

mod doing;
mod tokens;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use tokens::TokenFigures;

use crate::clock;
use doing::Doing;

/// Progress and health of one chain: written by its sync, by who hears its node or follows its writer beside that, and by who asks about
/// tokens; read by the service.
///
/// Numbers of blocks are `u64::MAX` until they are known.
#[derive(Debug)]
pub struct ChainStatus {
    /// The node's head, and when it was said.
    heard: Mutex<Option<HeadWord>>,
    /// The head that an earlier process heard of, and when.
    remembered: Mutex<Option<HeadWord>>,
    safe: AtomicU64,
    finalized: AtomicU64,
    blocks_per_second_milli: AtomicU64,
    reorgs: AtomicU64,
    reorged_blocks: AtomicU64,
    reorg_depth_max: AtomicU64,
    verification_failures: AtomicU64,
    node_up: AtomicBool,
    finality_broken: AtomicBool,
    contradicted: AtomicBool,
    doing: Mutex<Doing>,
    tokens: TokenFigures,
    replica: Mutex<Option<ReplicaState>>,
}

/// What a node once said of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadWord {
    /// Number of its newest block.
    pub number: u64,
    /// When it said so, Unix seconds.
    pub at: u64,
}

/// How a replica stands to the writer that it follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaState {
    /// When everything that the writer had on disk was last seen, Unix seconds.
    pub seen: f64,
    /// When the writer last gave a sign of life, Unix seconds; none where it never did.
    pub writer_seen: Option<f64>,
    /// The last block that the writer showed then.
    pub writer_indexed: Option<u64>,
}

impl ReplicaState {
    /// A writer says something twice a second: one that is silent for longer, seconds, is taken for gone.
    pub const SILENCE_MAX: f64 = 5.0;

    /// Seconds since everything that the writer had on disk was last seen.
    pub fn seen_ago(&self) -> f64 {
        ago(self.seen)
    }

    /// Seconds since the writer's last sign of life; none where it never gave one.
    pub fn writer_ago(&self) -> Option<f64> {
        self.writer_seen.map(ago)
    }

    /// Whether somebody writes the store, and tells what its node says.
    pub fn has_writer(&self) -> bool {
        self.writer_ago().is_some_and(|ago| ago <= Self::SILENCE_MAX)
    }
}

/// A clock that was set back is no reason to go below zero.
fn ago(then: f64) -> f64 {
    (clock::unix_seconds(clock::wall()) - then).max(0.0)
}

impl Default for ChainStatus {
    fn default() -> Self {
        Self {
            heard: Mutex::default(),
            remembered: Mutex::default(),
            safe: AtomicU64::new(u64::MAX),
            finalized: AtomicU64::new(u64::MAX),
            blocks_per_second_milli: AtomicU64::new(0),
            reorgs: AtomicU64::new(0),
            reorged_blocks: AtomicU64::new(0),
            reorg_depth_max: AtomicU64::new(0),
            verification_failures: AtomicU64::new(0),
            node_up: AtomicBool::new(false),
            finality_broken: AtomicBool::new(false),
            contradicted: AtomicBool::new(false),
            doing: Mutex::default(),
            tokens: TokenFigures::default(),
            replica: Mutex::new(None),
        }
    }
}

fn known(value: u64) -> Option<u64> {
    (value != u64::MAX).then_some(value)
}

impl ChainStatus {
    /// The node's head as last seen; `None` before the first answer, or when there is no node.
    pub fn node_head(&self) -> Option<u64> {
        Some(self.heard()?.number)
    }

    fn doing(&self) -> MutexGuard<'_, Doing> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self) -> Option<HeadWord> {
        *self.heard.lock().ok()?
    }

    /// Records the node's head, said now.
    pub fn set_node_head(&self, number: u64) {
        self.set_node_head_at(number, clock::unix_now());
    }

    /// Records the node's head, as somebody heard it at a time, Unix seconds.
    pub fn set_node_head_at(&self, number: u64, at: u64) {
        if let Ok(mut heard) = self.heard.lock() {
            *heard = Some(HeadWord { number, at });
        }
    }

    /// Records what an earlier process heard of the node's head: until the node speaks, that is how far it was.
    pub fn remember_node_head(&self, word: HeadWord) {
        if let Ok(mut remembered) = self.remembered.lock() {
            *remembered = Some(word);
        }
    }

    /// The last that was heard of the node's head, by this process or an earlier one.
    pub fn head_word(&self) -> Option<HeadWord> {
        self.heard().or_else(|| *self.remembered.lock().ok()?)
    }

    /// The node's `safe` block as last seen.
    pub fn safe(&self) -> Option<u64> {
        known(self.safe.load(Ordering::Relaxed))
    }

    /// Records the node's `safe` block.
    pub fn set_safe(&self, number: u64) {
        self.safe.store(number, Ordering::Relaxed);
    }

    /// The node's `finalized` block as last seen (the store keeps its own, which is never above its head).
    pub fn finalized(&self) -> Option<u64> {
        known(self.finalized.load(Ordering::Relaxed))
    }

    /// Records the node's `finalized` block.
    pub fn set_finalized(&self, number: u64) {
        self.finalized.store(number, Ordering::Relaxed);
    }

    /// Blocks a second over the last while.
    pub fn blocks_per_second(&self) -> f64 {
        // Precision beyond thousandths is of no use here.
        self.blocks_per_second_milli.load(Ordering::Relaxed) as f64 / 1000.0
    }

    /// Records the rate.
    pub fn set_blocks_per_second(&self, rate: f64) {
        self.blocks_per_second_milli
            .store((rate * 1000.0) as u64, Ordering::Relaxed);
    }

    /// Reorgs seen since the start.
    pub fn reorgs(&self) -> u64 {
        self.reorgs.load(Ordering::Relaxed)
    }

    /// Blocks unwound by reorgs since the start.
    pub fn reorged_blocks(&self) -> u64 {
        self.reorged_blocks.load(Ordering::Relaxed)
    }

    /// Blocks unwound by the deepest reorg since the start.
    pub fn reorg_depth_max(&self) -> u64 {
        self.reorg_depth_max.load(Ordering::Relaxed)
    }

    /// Counts a reorg that unwound `depth` blocks, and says so.
    pub fn unwound(&self, depth: u64) {
        self.set_message(format!("unwound {depth} blocks of a reorg"));
        self.reorgs.fetch_add(1, Ordering::Relaxed);
        self.reorged_blocks.fetch_add(depth, Ordering::Relaxed);
        self.reorg_depth_max.fetch_max(depth, Ordering::Relaxed);
    }

    /// Blocks that did not verify since the start.
    pub fn verification_failures(&self) -> u64 {
        self.verification_failures.load(Ordering::Relaxed)
    }

    /// Counts a block that did not verify.
    pub fn count_verification_failure(&self) {
        self.verification_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the node answered last time; in a replica, whether its writer says so.
    pub fn node_up(&self) -> bool {
        self.node_up.load(Ordering::Relaxed)
    }

    /// Records whether the node answers.
    pub fn set_node_up(&self, up: bool) {
        self.node_up.store(up, Ordering::Relaxed);
    }

    /// Whether backfill is over and the tip is followed block by block.
    pub fn following(&self) -> bool {
        self.doing().following
    }

    /// Records whether the tip is followed.
    pub fn set_following(&self, following: bool) {
        self.doing().following = following;
    }

    /// Records that the tip is followed, and says so.
    pub fn follow_tip(&self) {
        let mut doing = self.doing();
        (doing.following, doing.troubled) = (true, false);
        doing.say(None);
    }

    /// Records that there is nothing to store before the `source` comes to block `first`, and says so.
    pub fn await_first(&self, source: &str, first: u64) {
        let mut doing = self.doing();
        (doing.following, doing.troubled) = (false, false);
        doing.say(Some(format!(
            "waiting for the {source} to reach block {first}, the first one to store"
        )));
    }

    /// Records that many blocks are missing up to the tip, and says so; what keeps the next block away is said on.
    pub fn backfill(&self) {
        let mut doing = self.doing();
        doing.following = false;
        doing.say_unless_waiting(None);
    }

    /// Records that a few blocks are missing, from `first` to `last`, and says so unless the tip is followed.
    pub fn fetch(&self, first: u64, last: u64) {
        let mut doing = self.doing();
        if !doing.following {
            doing.say_unless_waiting(Some(format!("fetching blocks {first} to {last}")));
        }
    }

    /// Records that traces of stored blocks are fetched, from `first` to `last`, and says so.
    pub fn fill(&self, first: u64, last: u64) {
        let mut doing = self.doing();
        (doing.following, doing.filling) = (false, Some((first, last)));
        doing.say_unless_waiting(None);
    }

    /// Records that no traces of stored blocks are fetched; where they were, that is not said any more.
    pub fn ends_filling(&self) {
        let mut doing = self.doing();
        if doing.filling.take().is_some() {
            doing.say_unless_waiting(None);
        }
    }

    /// The last block whose traces are fetched after it was stored, while they are.
    pub fn filling_to(&self) -> Option<u64> {
        self.doing().filling.map(|(_, last)| last)
    }

    /// Says what is waited out, until the sync goes on.
    pub fn trouble(&self, text: impl Into<String>) {
        let mut doing = self.doing();
        doing.troubled = true;
        doing.say(Some(text.into()));
    }

    /// Whether the sync waits for something to pass, or ended by itself.
    pub fn is_troubled(&self) -> bool {
        let doing = self.doing();
        doing.troubled || doing.disk_full() || doing.stopped
    }

    /// Records that the sync goes on after whatever was waited out.
    pub fn went_on(&self) {
        let mut doing = self.doing();
        if std::mem::take(&mut doing.troubled) {
            doing.say_unless_waiting(None);
        }
    }

    /// Whether the sync waits for room on the disk.
    pub fn disk_full(&self) -> bool {
        self.doing().disk_full()
    }

    /// Records that the disk is full and says so, with what tells it.
    pub fn wait_for_room(&self, told_by: &dyn std::fmt::Display) {
        let told_by = told_by.to_string();
        self.doing().wait_for_room(told_by);
    }

    /// Records that the disk is not full.
    pub fn has_room(&self) {
        self.doing().has_room();
    }

    /// Records whether writing waits for tables that are flushed and merged, and says so until anything else is said.
    pub fn wait_for_merges(&self, waits: bool) {
        self.doing().wait_for_merges(waits);
    }

    /// Whether the sync ended by itself, for a reason that waiting cannot mend; in a replica, whether its writer says so.
    pub fn stopped(&self) -> bool {
        self.doing().stopped
    }

    /// Records, in a replica, whether its writer says that the sync ended by itself.
    pub fn set_stopped(&self, stopped: bool) {
        self.doing().stopped = stopped;
    }

    /// Records that the sync ended by itself, and says why.
    pub fn stop(&self, reason: &dyn std::fmt::Display) {
        let why = format!("sync stopped: {reason}");
        let mut doing = self.doing();
        (doing.following, doing.stopped) = (false, true);
        doing.say(Some(why));
    }

    /// Whether the node named another block where ours is final.
    pub fn finality_broken(&self) -> bool {
        self.finality_broken.load(Ordering::Relaxed)
    }

    /// Records that the node did.
    pub fn set_finality_broken(&self) {
        self.finality_broken.store(true, Ordering::Relaxed);
    }

    /// Whether the node contradicts what cannot change, and may come to its senses yet: until then nothing that it
    /// says is of this chain for certain.
    pub fn contradicted(&self) -> bool {
        self.contradicted.load(Ordering::Relaxed)
    }

    /// Records whether the node does.
    pub fn set_contradicted(&self, contradicted: bool) {
        self.contradicted.store(contradicted, Ordering::Relaxed);
    }

    /// What is found out about the chain's tokens.
    pub const fn tokens(&self) -> &TokenFigures {
        &self.tokens
    }

    /// How it stands to the writer that it follows; `None` in the writer itself.
    pub fn replica(&self) -> Option<ReplicaState> {
        self.replica.lock().ok()?.clone()
    }

    /// Records that.
    pub fn set_replica(&self, state: ReplicaState) {
        if let Ok(mut replica) = self.replica.lock() {
            *replica = Some(state);
        }
    }

    /// One sentence on what the sync is doing or why it stopped.
    pub fn message(&self) -> String {
        self.doing().message()
    }

    /// Records that sentence.
    pub fn set_message(&self, text: impl Into<String>) {
        self.doing().say(Some(text.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_the_time_at_which_it_was_said() {
        let status = ChainStatus::default();
        std::thread::scope(|scope| {
            let said = scope.spawn(|| (0..1_000_000).for_each(|at| status.set_node_head_at(at, at)));
            while !said.is_finished() {
                assert!(status.head_word().is_none_or(|word| word.number == word.at));
            }
        });
    }
}
