//! What is kept of a chain that this process writes, twice a second: the writer's sign of life, the rate, and what of the disk keeps the
//! sync from getting on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::chains::Chain;
use crate::clock;
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::{Heartbeat, Store, View};
use crate::tasks;

/// How often it is looked at.
pub(super) const TICK: Duration = Duration::from_millis(500);
/// A commit that waits this long for room on a full disk is said to, and so is one that waits for anything else of the disk.
const STUCK_AFTER: Duration = Duration::from_secs(2);
/// With less room than this RocksDB may wait for more without a word.
const LITTLE_ROOM: u64 = 256 << 20;
/// The rate is that of the last so many ticks.
const WINDOW: usize = 20;

/// Keeps the pulse of a chain until the end is asked for.
pub(super) async fn keep(chain: Arc<Chain>, mut shutdown: Shutdown) {
    let (mut rate, mut stall) = (Rate::default(), Stall::new());
    let (mut was_there, mut was_filling) = (true, false);
    while shutdown.unless(tokio::time::sleep(TICK)).await.is_some() {
        let (Some(status), Some(store)) = (&chain.status, chain.store()) else {
            continue;
        };
        let now = clock::now();
        let (indexed, course) = {
            let view = store.view();
            (view.head().map(|head| head.number), Course::of(&view, status))
        };
        let is_there = beat(&store, indexed, status).await;
        if !is_there && was_there {
            let directory = store.directory().display();
            tracing::error!(
                chain = %chain.name, %directory,
                "the store's directory is gone: what is written from now on is lost with this process"
            );
        }
        was_there = is_there;
        if course.is_filling != std::mem::replace(&mut was_filling, course.is_filling) {
            (rate, stall) = (Rate::default(), Stall::new());
        }
        status.set_blocks_per_second(rate.at(now, course.next));
        if stall.look(now, course, Disk::of(&store), status) {
            tracing::warn!(chain = %chain.name, "{}", status.message());
        }
    }
}

/// Gives a sign of life to those who follow the store; answers whether its directory is there.
async fn beat(store: &Store, indexed: Option<u64>, status: &ChainStatus) -> bool {
    let heard = status.head_word();
    let beat = Heartbeat {
        time: clock::unix_seconds(clock::wall()),
        indexed,
        node_head: heard.map(|word| word.number),
        node_heard: heard.map(|word| word.at),
        safe: status.safe(),
        node_up: Some(status.node_up()),
        stopped: status.stopped(),
    };
    let directory = store.directory().to_path_buf();
    // Off the async threads: a disk may be slow.
    tasks::blocking(move || beat.write(&directory))
        .await
        .unwrap_or(true)
}

/// How far a sync is with what it gets on with.
#[derive(Clone, Copy)]
pub(super) struct Course {
    /// The next block to store; while traces of stored blocks are fetched the head stands still, and this is the next one to get some.
    pub(super) next: u64,
    /// The block after the last one; `None` while the node's head is not known.
    pub(super) end: Option<u64>,
    is_filling: bool,
}

impl Course {
    pub(super) fn of(view: &View, status: &ChainStatus) -> Self {
        let (checkpoint, filling_to) = (view.checkpoint(), status.filling_to());
        let last = status.node_head().map(|head| filling_to.unwrap_or(head));
        Self {
            next: filling_to.map_or(checkpoint.next_block, |_| checkpoint.next_traced),
            end: last.map(|last| last.saturating_add(1)),
            is_filling: filling_to.is_some(),
        }
    }

    pub(super) fn missing(self) -> u64 {
        self.end.map_or(0, |end| end.saturating_sub(self.next))
    }
}

/// Blocks a second over the last while.
#[derive(Default)]
struct Rate {
    samples: VecDeque<(Instant, u64)>,
}

impl Rate {
    /// The rate at `now`, block `next` being the next one.
    fn at(&mut self, now: Instant, next: u64) -> f64 {
        // What a reorg has taken away is not counted from.
        self.samples.retain(|&(_, before)| before <= next);
        self.samples.push_back((now, next));
        if self.samples.len() > WINDOW {
            self.samples.pop_front();
        }
        match self.samples.front() {
            Some(&(then, before)) if now > then => {
                next.saturating_sub(before) as f64 / (now - then).as_secs_f64()
            }
            _ => 0.0,
        }
    }
}

/// What of the disk may keep the sync from getting on.
#[derive(Clone, Copy)]
struct Disk {
    free_bytes: Option<u64>,
    is_write_stopped: bool,
}

impl Disk {
    fn of(store: &Store) -> Self {
        Self {
            free_bytes: store.free_bytes(),
            is_write_stopped: store.is_write_stopped(),
        }
    }
}

/// Whether the sync gets on, and what is said where the disk keeps it from that.
struct Stall {
    /// Where it stood last, and since when.
    stands: (u64, Instant),
    /// Where it stood when its disk was found full.
    full_at: Option<u64>,
    /// Whether it was said, since it got on, that tables are waited for.
    told_merges: bool,
}

impl Stall {
    fn new() -> Self {
        Self {
            stands: (0, clock::now()),
            full_at: None,
            told_merges: false,
        }
    }

    /// Answers whether the writer was found to wait for room.
    fn look(&mut self, now: Instant, course: Course, disk: Disk, status: &ChainStatus) -> bool {
        // Nobody waits for anything, and why it stopped stays what is said.
        if status.stopped() {
            return false;
        }
        self.gets_on(now, course.next, status);
        if self.told_merges && !disk.is_write_stopped {
            self.told_merges = false;
            status.wait_for_merges(false);
        }
        if course.missing() == 0 || now - self.stands.1 < STUCK_AFTER || status.disk_full() {
            return false;
        }
        if !disk.is_write_stopped {
            return false;
        }
        // Of which RocksDB itself does not speak.
        let little = disk.free_bytes.filter(|free| *free < LITTLE_ROOM);
        if let Some(free) = little {
            status.wait_for_room(&format_args!("{free} bytes are left"));
        } else if !self.told_merges {
            self.told_merges = true;
            status.wait_for_merges(true);
        }
        little.is_some()
    }

    /// Takes back what was said once the sync has got on. There is room again then, whoever found the disk full: what found it may go on for
    /// days before it says anything else.
    fn gets_on(&mut self, now: Instant, next: u64, status: &ChainStatus) {
        if self.stands.0 != next {
            self.stands = (next, now);
            self.told_merges = false;
            status.wait_for_merges(false);
        }
        self.full_at = match self.full_at {
            _ if !status.disk_full() => None,
            Some(then) if then != next => {
                status.has_room();
                None
            }
            then => then.or(Some(next)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_of_until_the_store_gets_on() {
        let (status, mut stall) = (ChainStatus::default(), Stall::new());
        let mut look = |status: &ChainStatus, next| stall.gets_on(clock::now(), next, status);
        status.backfill();
        for (before, after) in [(7, 8), (8, 9), (9, 5)] {
            // The store got on until just before.
            look(&status, before - 1);
            status.wait_for_room(&"no space");
            look(&status, before);
            look(&status, before);
            // The sync tries again, and what it waited out before is over.
            status.backfill();
            status.fetch(7, 9);
            status.fill(7, 9);
            status.ends_filling();
            status.went_on();
            assert!(status.disk_full());
            assert_eq!(status.message(), "the disk is full, waiting for room: no space");
            look(&status, after);
            assert!(!status.disk_full());
            assert_eq!(status.message(), "backfilling");
        }
    }

    #[test]
    fn merges_are_told_of_until_the_store_gets_on() {
        let (status, mut stall) = (ChainStatus::default(), Stall::new());
        status.backfill();
        stall.gets_on(clock::now(), 7, &status);
        status.wait_for_merges(true);
        stall.gets_on(clock::now(), 7, &status);
        assert_ne!(status.message(), "backfilling");
        stall.gets_on(clock::now(), 8, &status);
        assert_eq!(status.message(), "backfilling");
    }

    /// A sync that ended says why, whatever the disk is like since.
    #[test]
    fn why_a_sync_stopped_stays_what_is_said() {
        let course = Course {
            next: 7,
            end: Some(9),
            is_filling: false,
        };
        let disk = |free_bytes, is_write_stopped| Disk {
            free_bytes: Some(free_bytes),
            is_write_stopped,
        };
        let (merges, full) = (disk(LITTLE_ROOM, true), disk(LITTLE_ROOM - 1, true));
        let began = clock::now();
        let later = began + STUCK_AFTER;
        for (disk, waits, said) in [
            (
                merges,
                false,
                "tables are flushed and merged, writing waits for them",
            ),
            (
                full,
                true,
                "the disk is full, waiting for room: 268435455 bytes are left",
            ),
        ] {
            for has_stopped in [false, true] {
                let (status, mut stall) = (ChainStatus::default(), Stall::new());
                status.backfill();
                assert!(!stall.look(began, course, disk, &status));
                if has_stopped {
                    status.stop(&"another chain");
                }
                assert_eq!(stall.look(later, course, disk, &status), waits && !has_stopped);
                let said = if has_stopped {
                    "sync stopped: another chain"
                } else {
                    said
                };
                assert_eq!(status.message(), said);
                assert_eq!(status.disk_full(), waits && !has_stopped);
            }
        }
        // Writes go on, and block 7 is still not there.
        let (status, mut stall) = (ChainStatus::default(), Stall::new());
        status.backfill();
        stall.look(began, course, merges, &status);
        stall.look(later, course, merges, &status);
        assert_ne!(status.message(), "backfilling");
        stall.look(later, course, disk(LITTLE_ROOM, false), &status);
        assert_eq!(status.message(), "backfilling");
    }

    #[test]
    fn a_rate_is_of_the_last_while_and_never_below_zero() {
        let began = clock::now();
        let mut rate = Rate::default();
        let mut told = |ticks: u32, next| rate.at(began + ticks * TICK, next);
        assert_eq!([told(0, 10), told(1, 20)], [0.0, 20.0]);
        // A reorg to before either.
        assert_eq!([told(2, 5), told(3, 6)], [0.0, 2.0]);
        for ticks in 4..=22 {
            told(ticks, 6);
        }
        assert_eq!(told(23, 6), 0.0);
    }
}
