//! Threads for work that may block on disk, in two lanes.
//!
//! Point look-ups go before scans, and one thread at least never takes a scan, so that long lists
//! cannot starve short answers. Queues are bounded: a full one is told to the caller at once.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock;
use crate::machine;
use crate::metrics::{Histogram, Page};

use super::error::HttpError;
use super::lately::Lately;
use super::unsent::{Held, Unsent};

/// How often a thread without work yields and looks again before it sleeps. Waking a sleeper costs
/// more than the look-up that it is woken for (`docs/decisions/0001-runtime.md`).
const LOOKS: usize = 40;

/// How much the threads of the pool stand back (`nice`): behind the threads that own sockets, which answer look-ups
/// from memory themselves, and behind a node on the same machine.
const NICE: i32 = 5;

/// Parts of a body that are made at once, at most: each is a frame of memory (`docs/decisions/0015-account-lists.md`).
const PARTS_MAX: usize = 4;

/// Of a single body so many parts for each core, made or waiting for their thread: one is there when a thread is free, and
/// whoever sends them need not be fast (`docs/decisions/0053-long-frames.md`).
const PARTS_A_CORE: usize = 2;

/// Bodies whose frames are made by the threads that send them, for each core (`docs/decisions/0041-frames-at-once.md`).
const BODIES_A_CORE: usize = 2;

/// Threads that were asked nothing else for so long are taken for free, and make long pages.
const QUIET: Duration = Duration::from_millis(250);

/// With more bodies than this for each core no frame waits for its turn: clients that take nothing would hold it.
const CROWD_A_CORE: usize = 8;

/// What a body holds beside its frames, about: where its rows lie.
const BODY_BYTES: usize = 160 << 10;

/// Which queue a piece of work waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A few seeks: one row, one block, one count.
    Point,
    /// One frame of a list.
    Scan,
}

impl Lane {
    const ALL: [Self; 2] = [Self::Point, Self::Scan];

    const fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Scan => "scan",
        }
    }
}

/// What became of the work of a lane.
#[derive(Debug, Default)]
struct LaneCounts {
    wait: Histogram,
    refused: AtomicU64,
    expired: AtomicU64,
}

/// Bounds of a [`Pool`].
#[derive(Clone, Debug)]
pub struct PoolLimits {
    /// Threads.
    pub threads: usize,
    /// Scans running at once; below `threads`, so that one thread is always there for points.
    pub scans_max: usize,
    /// Threads that frames may be made on ahead of their turn: cores. With none, no frame is; beyond them one client's second
    /// frame is another's first.
    pub ahead_below: usize,
    /// Point look-ups waiting.
    pub points_waiting_max: usize,
    /// First frames of lists waiting.
    pub scans_waiting_max: usize,
    /// Work that waited longer is not begun: its caller has most likely gone.
    pub wait_max: Duration,
    /// Bytes of answers that were made and are not sent yet: with more of them no list is begun.
    pub unsent_bytes_max: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        // Threads mostly wait for the disk, hence more of them than cores.
        let cores = machine::cores();
        let threads = (2 * cores).max(4);
        Self {
            threads,
            scans_max: threads - 1,
            ahead_below: cores,
            points_waiting_max: 8192,
            scans_waiting_max: 512,
            wait_max: Duration::from_secs(10),
            unsent_bytes_max: 512 << 20,
        }
    }
}

/// Why work was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The queue is full.
    #[error("the queue is full")]
    Full,
    /// It waited longer than `wait_max`.
    #[error("the work waited too long")]
    Expired,
    /// It panicked, or the pool was dropped.
    #[error("the work panicked or its thread ended")]
    Lost,
}

impl From<PoolError> for HttpError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Full | PoolError::Expired => {
                Self::unavailable("Server is busy").with_detail(error.to_string())
            }
            PoolError::Lost => Self::internal(error.to_string()),
        }
    }
}

/// Work in a queue; it is given what its thread belongs to.
type Job = Box<dyn FnOnce(&Shared) + Send>;

#[derive(Default)]
struct State {
    points: VecDeque<Job>,
    scans: VecDeque<Job>,
    scans_running: usize,
    idle: usize,
    /// A thread was called and has not looked at the queues yet. Calling another meanwhile costs a
    /// system call and a switch and wins nothing: the called one passes the call on if work is left.
    calling: bool,
    /// A thread that ran out of work is still looking, so nobody need be called.
    looking: bool,
    closed: bool,
}

impl State {
    /// Whether the caller should notify, once the lock is released.
    fn call(&mut self) -> bool {
        let call = self.idle > 0 && !self.calling && !self.looking;
        self.calling |= call;
        call
    }
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    /// Jobs in both queues, for looking without the lock. A hint: the queues are the truth.
    queued: AtomicUsize,
    /// Scans that wait or run: not those whose outcome was sent, though their thread may not have ended them yet.
    scans_open: AtomicUsize,
    /// Bodies whose frames come from here.
    bodies_open: AtomicUsize,
    /// When something else than a long page was asked.
    others: Lately,
    unsent: Unsent,
    limits: PoolLimits,
    counts: [LaneCounts; Lane::ALL.len()],
}

struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

/// A handle on the threads; they end when the last handle is dropped.
#[derive(Clone)]
pub struct Pool(Arc<Owner>);

/// A body whose frames come from the pool.
pub(super) struct BodyGuard {
    pool: Pool,
    held: Held,
}

impl BodyGuard {
    /// What it holds beside its frames, bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// It holds so many bytes more.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.held.change(self.held.bytes() + bytes);
    }
}

impl std::ops::Deref for BodyGuard {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}

impl Drop for BodyGuard {
    fn drop(&mut self) {
        self.pool.0.0.bodies_open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a submitted piece of work will answer.
pub(super) type Outcome<T> = oneshot::Receiver<Result<T, PoolError>>;

impl Pool {
    /// Starts the threads.
    pub fn new(limits: PoolLimits) -> std::io::Result<Self> {
        let threads = limits.threads.max(2);
        let limits = PoolLimits {
            threads,
            scans_max: limits.scans_max.clamp(1, threads - 1),
            ..limits
        };
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            queued: AtomicUsize::new(0),
            scans_open: AtomicUsize::new(0),
            bodies_open: AtomicUsize::new(0),
            others: Lately::new(QUIET),
            unsent: Unsent::new(limits.unsent_bytes_max),
            limits,
            counts: Default::default(),
        });
        let pool = Self(Arc::new(Owner(Arc::clone(&shared))));
        for number in 0..threads {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name(format!("store-{number}"))
                .spawn(move || {
                    // On Linux this is the thread's own. Where it is refused the thread goes on as it is.
                    let _ = rustix::process::setpriority_process(None, NICE);
                    shared.run();
                })?;
        }
        Ok(pool)
    }

    /// Runs `work` on a thread of the pool. Dropping the future takes back what has not begun.
    pub async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let outcome = self.submit(lane, false, work)?;
        outcome.await.unwrap_or(Err(PoolError::Lost))
    }

    /// Queues the next frame of a body that has begun. Those are as many as there are connections
    /// and cutting one off costs the client the whole list, so the bounds do not apply.
    pub(super) fn resume<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Outcome<T>, PoolError> {
        self.submit(lane, true, work)
    }

    /// Whether so few scans run and wait, and so few bodies are being sent, that a frame may be made ahead of its
    /// turn. Several bodies keep the cores busy by themselves: two sources for each cost a twentieth of the rate.
    pub(super) fn has_room(&self) -> bool {
        let (shared, below) = (&self.0.0, self.0.0.limits.ahead_below);
        shared.scans_open.load(Ordering::Relaxed) < PARTS_A_CORE * below
            && 2 * shared.bodies_open.load(Ordering::Relaxed) <= below
    }

    /// Whether so few bodies are being sent, and nothing else was asked for a while, that their frames may be made by the threads
    /// that send them: those answer look-ups, too, which wait for the frames then.
    pub fn makes_at_once(&self) -> bool {
        let shared = &self.0.0;
        shared.bodies_open.load(Ordering::Relaxed) <= BODIES_A_CORE * shared.limits.ahead_below
            && !shared.others.happened()
    }

    /// Whether so many bodies are being sent that others' frames are made while one's are on their way.
    pub(super) fn is_crowded(&self) -> bool {
        let shared = &self.0.0;
        shared.bodies_open.load(Ordering::Relaxed) > CROWD_A_CORE * shared.limits.ahead_below.max(1)
    }

    /// Says that something was asked that should not wait for long pages.
    pub fn asked_else(&self) {
        self.0.0.others.note();
    }

    /// Counts a body until the guard is dropped.
    pub(super) fn body(&self) -> BodyGuard {
        self.0.0.bodies_open.fetch_add(1, Ordering::Relaxed);
        BodyGuard {
            pool: self.clone(),
            held: self.unsent().hold(BODY_BYTES),
        }
    }

    /// What answers hold that are not sent yet.
    #[must_use]
    pub fn unsent(&self) -> &Unsent {
        &self.0.0.unsent
    }

    /// Parts of one body that are made at once, at most.
    pub(super) fn parts_max(&self) -> usize {
        (PARTS_A_CORE * self.0.0.limits.ahead_below).min(PARTS_MAX)
    }

    /// Tells how long the queues are and what became of the work.
    pub fn measure(&self, page: &mut Page) {
        let shared = &self.0.0;
        let state = shared.lock();
        let (points, scans, running) = (state.points.len(), state.scans.len(), state.scans_running);
        drop(state);
        let help = "Frames of lists being made.";
        page.gauge("quarry_pool_scans_running", help, &[], running as f64);
        let help = "Threads of the pool.";
        page.gauge("quarry_pool_threads", help, &[], shared.limits.threads as f64);
        let help = "Memory of answers that were made and are not sent yet.";
        let bytes = shared.unsent.bytes() as f64;
        page.gauge("quarry_http_unsent_bytes", help, &[], bytes);
        for (lane, queued) in Lane::ALL.into_iter().zip([points, scans]) {
            let (counts, label) = (shared.counts(lane), [("lane", lane.name())]);
            let help = "Work waiting for a thread.";
            page.gauge("quarry_pool_queued", help, &label, queued as f64);
            let help = "How long work waited for a thread.";
            page.histogram("quarry_pool_wait_seconds", help, &label, &counts.wait);
            for (name, help, count) in [
                (
                    "quarry_pool_refused",
                    "Work turned away because its queue was full.",
                    &counts.refused,
                ),
                (
                    "quarry_pool_expired",
                    "Work that waited too long and was not begun.",
                    &counts.expired,
                ),
            ] {
                page.counter(name, help, &label, count.load(Ordering::Relaxed));
            }
        }
    }

    fn submit<T: Send + 'static>(
        &self,
        lane: Lane,
        unbounded: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Outcome<T>, PoolError> {
        let shared = &self.0.0;
        let (sender, receiver) = oneshot::channel();
        let submitted = clock::now();
        let job: Job = Box::new(move |shared| {
            let ended = || {
                if lane == Lane::Scan {
                    shared.scans_open.fetch_sub(1, Ordering::Relaxed);
                }
            };
            if sender.is_closed() {
                return ended();
            }
            let (waited, counts) = (clock::now() - submitted, shared.counts(lane));
            counts.wait.observe(waited);
            let outcome = if !unbounded && waited > shared.limits.wait_max {
                counts.expired.fetch_add(1, Ordering::Relaxed);
                Err(PoolError::Expired)
            } else {
                catch_unwind(AssertUnwindSafe(work)).map_err(|_| PoolError::Lost)
            };
            ended();
            // The caller may have gone meanwhile; its answer is of no use to anyone else.
            drop(sender.send(outcome));
        });
        let mut state = shared.lock();
        let (queue, bound) = match lane {
            Lane::Point => (&mut state.points, shared.limits.points_waiting_max),
            Lane::Scan => (&mut state.scans, shared.limits.scans_waiting_max),
        };
        if !unbounded && queue.len() >= bound {
            drop(state);
            shared.counts(lane).refused.fetch_add(1, Ordering::Relaxed);
            return Err(PoolError::Full);
        }
        if lane == Lane::Scan {
            shared.scans_open.fetch_add(1, Ordering::Relaxed);
        }
        queue.push_back(job);
        shared.queued.fetch_add(1, Ordering::Relaxed);
        let call = state.call();
        drop(state);
        if call {
            shared.work.notify_one();
        }
        Ok(receiver)
    }
}

impl Shared {
    fn counts(&self, lane: Lane) -> &LaneCounts {
        let [point, scan] = &self.counts;
        match lane {
            Lane::Point => point,
            Lane::Scan => scan,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding the lock; were it poisoned all the same, the queues are still sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        let mut looked = 0;
        loop {
            if let Some((lane, job)) = self.next(&mut state) {
                looked = 0;
                let call = self.has_runnable(&state) && state.call();
                drop(state);
                if call {
                    self.work.notify_one();
                }
                // The job fences panics itself; this fence is for panics in destructors.
                drop(catch_unwind(AssertUnwindSafe(|| job(self))));
                state = self.lock();
                if lane == Lane::Scan {
                    state.scans_running -= 1;
                }
            } else if state.closed {
                return;
            } else if looked < LOOKS && !state.looking {
                state.looking = true;
                drop(state);
                // At least once: what is queued may be scans that have to wait for a running one.
                loop {
                    looked += 1;
                    std::thread::yield_now();
                    if looked >= LOOKS || self.queued.load(Ordering::Relaxed) > 0 {
                        break;
                    }
                }
                state = self.lock();
                state.looking = false;
            } else {
                looked = 0;
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                state.calling = false;
            }
        }
    }

    fn has_runnable(&self, state: &State) -> bool {
        !state.points.is_empty() || (!state.scans.is_empty() && state.scans_running < self.limits.scans_max)
    }

    fn next(&self, state: &mut State) -> Option<(Lane, Job)> {
        if let Some(job) = state.points.pop_front() {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            return Some((Lane::Point, job));
        }
        if state.scans_running < self.limits.scans_max
            && let Some(job) = state.scans.pop_front()
        {
            state.scans_running += 1;
            self.queued.fetch_sub(1, Ordering::Relaxed);
            return Some((Lane::Scan, job));
        }
        None
    }
}

#[cfg(test)]
mod tests;
