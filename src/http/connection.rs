//! One accepted socket: its signs of life, and the bytes hyper reads and writes through it.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::clock;

use super::limits::Limits;
use super::rejection;

/// Signs of life of a connection, shared by its socket, its requests and its watchdog.
#[derive(Debug)]
pub(super) struct Vitals {
    began: Instant,
    /// Milliseconds after `began` at which something last moved.
    moved: AtomicU64,
    /// Bytes the client took since then.
    taken: AtomicUsize,
    /// Requests not wholly answered: when each began, the oldest first.
    requests: Mutex<VecDeque<Instant>>,
    /// Of those, how many wait for us and not for the client.
    ours: AtomicU32,
    /// The socket took nothing of the last write.
    blocked: AtomicBool,
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

/// How many times less long a client is waited for where there is no room for more answers.
const CRAMPED: u32 = 10;

impl Vitals {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            began: clock::now(),
            moved: AtomicU64::new(0),
            taken: AtomicUsize::new(0),
            requests: Mutex::default(),
            ours: AtomicU32::new(0),
            blocked: AtomicBool::new(false),
        })
    }

    fn requests(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where there is no room for more answers (`is_cramped`), one that is not taken is waited for a tenth as long.
    pub(super) fn verdict(&self, limits: &Limits, is_cramped: bool) -> Verdict {
        let patience = limits.write_timeout / if is_cramped { CRAMPED } else { 1 };
        let now = clock::now();
        let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
        let still = (now - self.began).saturating_sub(moved);
        let oldest = self.requests().front().copied();
        let waits_for_client = oldest.is_some() && self.ours.load(Ordering::Relaxed) == 0;
        // A body that nobody comes for is not asked whether its time is over.
        let request_timeout = limits.answer_timeout.saturating_add(limits.body_timeout);
        if oldest.is_some_and(|began| now - began > request_timeout) {
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

    fn touch(&self) {
        let now = u64::try_from((clock::now() - self.began).as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
    }

    fn wrote(&self, outcome: &Poll<io::Result<usize>>) {
        match outcome {
            Poll::Ready(written) => {
                self.blocked.store(false, Ordering::Relaxed);
                let written = written.as_ref().map_or(0, |&bytes| bytes);
                if self.taken.fetch_add(written, Ordering::Relaxed) + written >= TAKEN_MIN {
                    self.touch();
                }
            }
            // The clock runs from the first refusal of the socket, not from the last try, nor from the last little taken.
            Poll::Pending => {
                if !self.blocked.swap(true, Ordering::Relaxed) && self.taken.load(Ordering::Relaxed) == 0 {
                    self.touch();
                }
            }
        }
    }
}

/// Whose turn it is to move a request on.
#[derive(Debug)]
struct Turn {
    vitals: Arc<Vitals>,
    ours: AtomicBool,
}

impl Turn {
    fn set(&self, ours: bool) {
        if self.ours.swap(ours, Ordering::Relaxed) != ours {
            if ours {
                self.vitals.ours.fetch_add(1, Ordering::Relaxed);
            } else {
                self.vitals.ours.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.vitals.touch();
    }
}

/// Wakes whoever waits for a frame, and notes that it is the client's turn from now on: HTTP/2 may not come for
/// the frame before the client makes room.
struct FrameReady {
    turn: Arc<Turn>,
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
    turn: Arc<Turn>,
    began: Instant,
}

impl InFlight {
    pub(super) fn begin(vitals: &Arc<Vitals>) -> Self {
        let began = clock::now();
        vitals.requests().push_back(began);
        let turn = Turn {
            vitals: Arc::clone(vitals),
            ours: AtomicBool::new(false),
        };
        turn.set(true);
        Self {
            turn: Arc::new(turn),
            began,
        }
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
            turn: Arc::clone(&self.turn),
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
        self.turn.set(false);
        let mut requests = self.turn.vitals.requests();
        if let Some(place) = requests.iter().position(|&began| began == self.began) {
            requests.remove(place);
        }
    }
}

/// After a rejection: how long and how much of what the client still sends is read and thrown away.
/// Closing a socket with unread bytes resets it, and the reset can overtake our answer.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1 << 20;

struct Linger {
    until: Pin<Box<Sleep>>,
    read: usize,
}

/// A socket that notes its signs of life and speaks our words in hyper's rejections.
pub(super) struct Socket {
    stream: TcpStream,
    vitals: Arc<Vitals>,
    /// Nothing ended a line since we wrote last: what comes is a request's first line, its method and URI.
    in_first_line: bool,
    /// What is said in place of a rejection, and how much of it has gone out.
    instead: Option<(Vec<u8>, usize)>,
    linger: Option<Linger>,
}

impl Socket {
    pub(super) const fn new(stream: TcpStream, vitals: Arc<Vitals>) -> Self {
        Self {
            stream,
            vitals,
            in_first_line: true,
            instead: None,
            linger: None,
        }
    }

    fn poll_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some((answer, sent)) = &mut self.instead {
            let rest = answer.get(*sent..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let outcome = Pin::new(&mut self.stream).poll_write(cx, rest);
            self.vitals.wrote(&outcome);
            match ready!(outcome)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *sent += count,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes `buffer`, or takes it as the rejection that it is.
    fn poll_checked(&mut self, cx: &mut Context<'_>, buffer: &[u8]) -> Option<Poll<io::Result<usize>>> {
        let (start, answer) = rejection::find(buffer, self.in_first_line)?;
        if start > 0 {
            let outcome = Pin::new(&mut self.stream).poll_write(cx, buffer.get(..start)?);
            self.vitals.wrote(&outcome);
            return Some(outcome);
        }
        self.instead = Some((answer, 0));
        Some(match self.poll_instead(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // What is left goes out with the flush that follows.
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(buffer.len())),
        })
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let linger = self.linger.get_or_insert_with(|| Linger {
            until: Box::pin(tokio::time::sleep(LINGER)),
            read: 0,
        });
        let mut scratch = [0; 4096];
        loop {
            if linger.read > LINGER_BYTES_MAX || linger.until.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => linger.read += buffer.filled().len(),
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if self.in_first_line {
            let read = buffer.filled().get(before..).unwrap_or_default();
            self.in_first_line = !read.contains(&b'\n');
        }
        outcome
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(outcome) = self.poll_checked(cx, buffer) {
            return outcome;
        }
        self.in_first_line = true;
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buffer);
        self.vitals.wrote(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // A rejection has no body, so it comes as the only slice.
        if let [only] = buffers
            && let Some(outcome) = self.poll_checked(cx, only)
        {
            return outcome;
        }
        self.in_first_line = true;
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.vitals.wrote(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(cx))?;
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        if self.instead.is_some() {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    fn limits() -> Limits {
        Limits {
            write_timeout: TICK * 20,
            header_read_timeout: TICK * 20,
            answer_timeout: TICK * 30,
            body_timeout: TICK * 30,
            ..Limits::default()
        }
    }

    /// What is said at last of a client that takes so many bytes of a ready answer each tick.
    fn after(ticks: u32, bytes: usize) -> Verdict {
        let (vitals, limits) = (Vitals::new(), limits());
        let request = InFlight::begin(&vitals);
        request.answered();
        vitals.wrote(&Poll::Pending);
        for _ in 0..ticks {
            std::thread::sleep(TICK);
            vitals.wrote(&Poll::Ready(Ok(bytes)));
            vitals.wrote(&Poll::Pending);
            if vitals.verdict(&limits, false) != Verdict::Alive {
                break;
            }
        }
        vitals.verdict(&limits, false)
    }

    #[test]
    fn a_little_now_and_then_is_not_taking() {
        assert_eq!(after(40, 1), Verdict::Stalled);
        assert_eq!(after(40, 1 << 10), Verdict::Stalled);
        assert_eq!(after(40, 16 << 10), Verdict::Alive);
    }

    #[test]
    fn no_request_lasts_for_ever() {
        assert_eq!(after(45, 1 << 20), Verdict::Alive);
        assert_eq!(after(80, 1 << 20), Verdict::Stalled);
    }

    #[test]
    fn where_there_is_no_room_who_takes_nothing_has_a_tenth_of_the_time() {
        let (vitals, limits) = (Vitals::new(), limits());
        let request = InFlight::begin(&vitals);
        std::thread::sleep(TICK * 4);
        // It is our turn.
        assert_eq!(vitals.verdict(&limits, true), Verdict::Alive);
        request.answered();
        vitals.wrote(&Poll::Pending);
        std::thread::sleep(TICK * 4);
        assert_eq!(vitals.verdict(&limits, false), Verdict::Alive);
        assert_eq!(vitals.verdict(&limits, true), Verdict::Stalled);
        vitals.wrote(&Poll::Ready(Ok(TAKEN_MIN)));
        assert_eq!(vitals.verdict(&limits, true), Verdict::Alive);
    }

    #[test]
    fn requests_leave_as_they_end() {
        let (vitals, limits) = (Vitals::new(), limits());
        let requests: Vec<InFlight> = (0..3).map(|_| InFlight::begin(&vitals)).collect();
        assert_eq!(vitals.requests().len(), 3);
        drop(requests);
        assert_eq!(vitals.requests().len(), 0);
        assert_eq!(vitals.verdict(&limits, false), Verdict::Alive);
        std::thread::sleep(limits.header_read_timeout + TICK);
        assert_eq!(vitals.verdict(&limits, false), Verdict::Idle);
    }
}
