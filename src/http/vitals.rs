//! Signs of life of a connection: what moves on it, what it waits for, and what it holds of answers that are not taken.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::{clock, machine};

use super::limits::Limits;
use super::unsent::{COUNTED_FROM_OF_MANY, Held, Unsent};

/// Signs of life of a connection, shared by its socket, its requests and its watchdog.
#[derive(Debug)]
pub(super) struct Vitals {
    began: Instant,
    /// Milliseconds after `began` at which something last moved.
    moved: AtomicU64,
    /// Bytes the kernel took for the client since then.
    taken: AtomicUsize,
    /// Its socket; -1 before and after.
    socket: AtomicI32,
    /// Bytes that were written to it in all.
    written: AtomicU64,
    /// Of them, how many the client had acknowledged when it was last seen to have taken enough.
    acknowledged: AtomicU64,
    /// Requests not wholly answered, the oldest first.
    requests: Mutex<VecDeque<Arc<Progress>>>,
    /// Of those, how many wait for us and not for the client.
    ours: AtomicU32,
    /// The socket took nothing of the last write.
    blocked: AtomicBool,
    /// Bytes of long answers that are open or handed over, and not sent.
    held: AtomicUsize,
    /// When each frame of them was handed over that was not let go yet, milliseconds, by number.
    handed: Mutex<BTreeMap<u64, u64>>,
    frames: AtomicU64,
    /// Bodies of its requests that are waited for.
    awaited: AtomicUsize,
    /// Requests come beside each other, over HTTP/2.
    multiplexed: AtomicBool,
    /// Its client is waited for no more.
    cut_off: AtomicBool,
    /// More of a body than is read may come yet.
    upload_refused: AtomicBool,
    /// Its last answer is over when it is closed.
    ends_by_closing: AtomicBool,
}

/// How far a request is.
#[derive(Debug)]
struct Progress {
    began: Instant,
    /// It waits for us and not for the client.
    ours: AtomicBool,
    /// Milliseconds, as in [`Vitals`], at which its turn changed last.
    moved: AtomicU64,
}

/// A frame that was handed over to be sent, until it was.
struct Handed {
    bytes: Bytes,
    number: u64,
    vitals: Arc<Vitals>,
    /// Where it is counted for all, unless it is there already.
    _held: Option<Held>,
}

impl AsRef<[u8]> for Handed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        self.vitals.handed().remove(&self.number);
        self.vitals.holds(self.bytes.len(), 0);
    }
}

/// What the watchdog should do about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Let it be.
    Alive,
    /// Nobody asked anything for long: say goodbye.
    Idle,
    /// An answer is ready and the client does not take it, or so little at a time that it never ends: cut it off.
    Stalled,
}

/// So much must a client take to count as one that takes its answers. Less may be HTTP/2's pings, or a byte now and
/// then to keep an answer waiting for ever.
const TAKEN_MIN: usize = 64 << 10;

/// How long a client is waited for where there is no room for more answers.
fn cramped_patience(usual: Duration) -> Duration {
    (usual / 3)
        .clamp(Duration::from_secs(2), Duration::from_secs(10))
        .min(usual)
}

impl Vitals {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            began: clock::now(),
            moved: AtomicU64::new(0),
            taken: AtomicUsize::new(0),
            socket: AtomicI32::new(-1),
            written: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            requests: Mutex::default(),
            ours: AtomicU32::new(0),
            blocked: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            handed: Mutex::default(),
            frames: AtomicU64::new(0),
            awaited: AtomicUsize::new(0),
            multiplexed: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            upload_refused: AtomicBool::new(false),
            ends_by_closing: AtomicBool::new(false),
        })
    }

    fn requests(&self) -> MutexGuard<'_, VecDeque<Arc<Progress>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handed(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that requests come beside each other.
    pub(super) fn note_multiplexed(&self) {
        self.multiplexed.store(true, Ordering::Relaxed);
    }

    /// Notes that its client is waited for no more: what the kernel still has to send is not waited for either.
    pub(super) fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Relaxed);
    }

    /// Notes that an upload was refused before its end: what still comes of it is to be read, or the answer may be lost.
    pub(super) fn refuse_upload(&self) {
        self.upload_refused.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_refused_upload(&self) -> bool {
        self.upload_refused.load(Ordering::Relaxed)
    }

    /// Notes an answer to HTTP/1.0 of a length that is not known: it has no chunks, and is over when the connection is closed. To close it
    /// earlier would make a shorter answer of it that looks whole.
    pub(super) fn end_by_closing(&self) {
        self.ends_by_closing.store(true, Ordering::Relaxed);
    }

    pub(super) fn ends_by_closing(&self) -> bool {
        self.ends_by_closing.load(Ordering::Relaxed)
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// How many bodies of its requests are waited for.
    pub(super) const fn awaited(&self) -> &AtomicUsize {
        &self.awaited
    }

    fn milliseconds_at(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }

    /// Bytes of long answers that this client has asked for and not taken.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Something of it is `now` bytes in place of `before`.
    pub(super) fn holds(&self, before: usize, now: usize) {
        self.held.fetch_add(now, Ordering::Relaxed);
        self.held.fetch_sub(before, Ordering::Relaxed);
    }

    /// Counts a frame until it was sent, or given up; for all, too, where `unsent` is given. A connection that has one answer at a time
    /// gives a frame to its socket and lets it go: there nothing is counted.
    pub(super) fn hand_over(self: &Arc<Self>, bytes: Bytes, unsent: Option<&Unsent>) -> Bytes {
        let length = bytes.len();
        if length < COUNTED_FROM_OF_MANY || !self.multiplexed.load(Ordering::Relaxed) {
            return bytes;
        }
        self.holds(0, length);
        let number = self.frames.fetch_add(1, Ordering::Relaxed);
        self.handed().insert(number, self.milliseconds_at(clock::now()));
        let vitals = Arc::clone(self);
        Bytes::from_owner(Handed {
            bytes,
            number,
            vitals,
            _held: unsent.map(|unsent| unsent.hold(length)),
        })
    }

    /// For how long the oldest frame that was handed over is not let go.
    fn oldest_handed(&self, now: Instant) -> Option<Duration> {
        let at = self.handed().first_key_value().map(|(_, &at)| at)?;
        Some(Duration::from_millis(
            self.milliseconds_at(now).saturating_sub(at),
        ))
    }

    /// Whether one of the answers that come beside each other waits for the client that long, whatever else goes to and fro.
    fn has_stalled_for(&self, patience: Duration, now: Instant) -> bool {
        if !self.multiplexed.load(Ordering::Relaxed) || self.held() == 0 {
            return false;
        }
        let since = |at: u64| Duration::from_millis(self.milliseconds_at(now).saturating_sub(at));
        let is_left = |request: &Arc<Progress>| {
            !request.ours.load(Ordering::Relaxed) && since(request.moved.load(Ordering::Relaxed)) > patience
        };
        // Of a frame some may be taken at a time, and one may be kept after its request has ended.
        let is_kept = self.oldest_handed(now).is_some_and(|age| age > 2 * patience);
        is_kept || self.requests().iter().any(is_left)
    }

    /// Where there is no room for more answers (`is_cramped`), one that is not taken is waited for a third as long, and each by itself.
    pub(super) fn verdict(&self, limits: &Limits, is_cramped: bool) -> Verdict {
        self.verdict_at(limits, is_cramped, clock::now())
    }

    fn verdict_at(&self, limits: &Limits, is_cramped: bool, now: Instant) -> Verdict {
        let patience = match is_cramped {
            true => cramped_patience(limits.write_timeout),
            false => limits.write_timeout,
        };
        if is_cramped && self.has_stalled_for(patience, now) {
            return Verdict::Stalled;
        }
        if self.blocked.load(Ordering::Relaxed) {
            self.see_taken(now);
        }
        let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
        let still = now.saturating_duration_since(self.began).saturating_sub(moved);
        let oldest = self.requests().front().map(|request| request.began);
        let waits_for_client = oldest.is_some() && self.ours.load(Ordering::Relaxed) == 0;
        // A body that nobody comes for is not asked whether its time is over.
        let request_timeout = limits.answer_timeout.saturating_add(limits.body_timeout);
        let is_over = |age: Duration| age > request_timeout;
        if oldest.is_some_and(|began| is_over(now - began)) || self.oldest_handed(now).is_some_and(is_over) {
            Verdict::Stalled
        } else if self.blocked.load(Ordering::Relaxed) || waits_for_client {
            if still > patience {
                Verdict::Stalled
            } else {
                Verdict::Alive
            }
        } else if oldest.is_none() && still > limits.header_read_timeout {
            Verdict::Idle
        } else {
            Verdict::Alive
        }
    }

    /// Notes its socket, by whose word it is seen what the client takes; none once that is closed.
    pub(super) fn is_of(&self, socket: Option<RawFd>) {
        self.socket.store(socket.unwrap_or(-1), Ordering::Relaxed);
    }

    /// Sees whether the client took enough since it last did. The kernel takes some hundred kilobytes at a time, long before the client
    /// does and long after.
    fn see_taken(&self, now: Instant) {
        let socket = self.socket.load(Ordering::Relaxed);
        let Some(left) = (socket >= 0).then(|| machine::unacknowledged(socket)).flatten() else {
            return;
        };
        let taken = self.written.load(Ordering::Relaxed).saturating_sub(left);
        if taken >= self.acknowledged.load(Ordering::Relaxed) + TAKEN_MIN as u64 {
            self.acknowledged.store(taken, Ordering::Relaxed);
            self.touch_at(self.milliseconds_at(now));
        }
    }

    fn touch_at(&self, milliseconds: u64) {
        self.moved.store(milliseconds, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
    }

    pub(super) fn wrote(&self, outcome: &Poll<io::Result<usize>>) {
        self.wrote_at(outcome, clock::now);
    }

    /// The same; most writes need not know the time.
    fn wrote_at(&self, outcome: &Poll<io::Result<usize>>, now: impl FnOnce() -> Instant) {
        match outcome {
            Poll::Ready(written) => {
                self.blocked.store(false, Ordering::Relaxed);
                let written = written.as_ref().map_or(0, |&bytes| bytes);
                self.written.fetch_add(written as u64, Ordering::Relaxed);
                if self.taken.fetch_add(written, Ordering::Relaxed) + written >= TAKEN_MIN {
                    self.touch_at(self.milliseconds_at(now()));
                }
            }
            // The clock runs from the first refusal of the socket, not from the last try, nor from the last little taken.
            Poll::Pending => {
                if !self.blocked.swap(true, Ordering::Relaxed) && self.taken.load(Ordering::Relaxed) == 0 {
                    self.touch_at(self.milliseconds_at(now()));
                }
            }
        }
    }
}

/// Whose turn it is to move a request on.
#[derive(Clone, Debug)]
struct Turn {
    vitals: Arc<Vitals>,
    progress: Arc<Progress>,
}

impl Turn {
    fn set(&self, ours: bool) {
        self.set_at(ours, clock::now());
    }

    fn set_at(&self, ours: bool, now: Instant) {
        let (progress, now) = (&self.progress, self.vitals.milliseconds_at(now));
        progress.moved.store(now, Ordering::Relaxed);
        if progress.ours.swap(ours, Ordering::Relaxed) != ours {
            if ours {
                self.vitals.ours.fetch_add(1, Ordering::Relaxed);
            } else {
                self.vitals.ours.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.vitals.touch_at(now);
    }
}

/// Wakes whoever waits for a frame, and notes that it is the client's turn from now on: HTTP/2 may not come for
/// the frame before the client makes room.
struct FrameReady {
    turn: Turn,
    waker: Waker,
}

impl Wake for FrameReady {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.turn.set(false);
        self.waker.wake_by_ref();
    }
}

/// One request in the vitals of its connection, from its head to the end of its body.
#[derive(Debug)]
pub(super) struct InFlight {
    turn: Turn,
    /// Counted in the connection's vitals as held.
    weight: usize,
    /// Its end was noted.
    ended: bool,
}

impl InFlight {
    pub(super) fn begin(vitals: &Arc<Vitals>) -> Self {
        Self::begin_at(vitals, clock::now())
    }

    fn begin_at(vitals: &Arc<Vitals>, began: Instant) -> Self {
        let progress = Arc::new(Progress {
            began,
            ours: AtomicBool::new(false),
            moved: AtomicU64::new(0),
        });
        let turn = Turn {
            vitals: Arc::clone(vitals),
            progress: Arc::clone(&progress),
        };
        turn.set_at(true, began);
        vitals.requests().push_back(progress);
        Self {
            turn,
            weight: 0,
            ended: false,
        }
    }

    /// Those of its connection.
    pub(super) fn vitals(&self) -> &Arc<Vitals> {
        &self.turn.vitals
    }

    /// When it began.
    pub(super) fn began(&self) -> Instant {
        self.turn.progress.began
    }

    /// Notes its end before it is dropped.
    pub(super) fn end(&mut self, now: Instant) {
        self.turn.set_at(false, now);
        self.ended = true;
    }

    /// Its answer holds so many bytes while it is open, beside the frames that are handed over.
    pub(super) fn weigh(&mut self, bytes: usize) {
        self.turn.vitals.holds(0, bytes);
        self.weight += bytes;
    }

    /// A frame of its answer goes out.
    pub(super) fn hand_over(&self, frame: Bytes, unsent: Option<&Unsent>) -> Bytes {
        self.turn.vitals.hand_over(frame, unsent)
    }

    /// Notes that an answer, or its head, is there for the client to take.
    pub(super) fn answered(&self) {
        self.turn.set(false);
    }

    /// Polls for what the client came for. It is our turn until that is there, whether the client takes it or not.
    pub(super) fn poll<T>(
        &self,
        cx: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.turn.set(true);
        let waker = Waker::from(Arc::new(FrameReady {
            turn: self.turn.clone(),
            waker: cx.waker().clone(),
        }));
        let next = poll(&mut Context::from_waker(&waker));
        if next.is_ready() {
            self.turn.set(false);
        }
        next
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.ended {
            self.turn.set(false);
        }
        let (vitals, progress) = (&self.turn.vitals, &self.turn.progress);
        vitals.holds(self.weight, 0);
        let mut requests = vitals.requests();
        if let Some(place) = requests.iter().position(|other| Arc::ptr_eq(other, progress)) {
            requests.remove(place);
        }
    }
}

#[cfg(test)]
#[path = "vitals_tests.rs"]
mod tests;
