//! One accepted socket: its signs of life, and the bytes hyper reads and writes through it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
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
    /// Requests not wholly answered.
    requests: AtomicU32,
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
    /// An answer is ready and the client does not take it: cut it off.
    Stalled,
}

/// HTTP/2 pings and acknowledgements, alone or two together: 17 and 9 bytes. They go out to a client that takes
/// nothing of its answers too, and would hide it.
const PING_BYTES_MAX: usize = 40;

impl Vitals {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            began: clock::now(),
            moved: AtomicU64::new(0),
            requests: AtomicU32::new(0),
            ours: AtomicU32::new(0),
            blocked: AtomicBool::new(false),
        })
    }

    pub(super) fn verdict(&self, limits: &Limits) -> Verdict {
        let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
        let still = (clock::now() - self.began).saturating_sub(moved);
        let requests = self.requests.load(Ordering::Relaxed);
        let waits_for_client = requests > 0 && self.ours.load(Ordering::Relaxed) == 0;
        if self.blocked.load(Ordering::Relaxed) || waits_for_client {
            if still > limits.write_timeout {
                Verdict::Stalled
            } else {
                Verdict::Alive
            }
        } else if requests == 0 && still > limits.header_read_timeout {
            Verdict::Idle
        } else {
            Verdict::Alive
        }
    }

    fn touch(&self) {
        let now = u64::try_from((clock::now() - self.began).as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
    }

    fn wrote(&self, outcome: &Poll<io::Result<usize>>) {
        match outcome {
            Poll::Ready(written) => {
                self.blocked.store(false, Ordering::Relaxed);
                if !written.as_ref().is_ok_and(|&bytes| bytes <= PING_BYTES_MAX) {
                    self.touch();
                }
            }
            // The clock runs from the first refusal of the socket, not from the last try.
            Poll::Pending => {
                if !self.blocked.swap(true, Ordering::Relaxed) {
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
pub(super) struct InFlight(Arc<Turn>);

impl InFlight {
    pub(super) fn begin(vitals: &Arc<Vitals>) -> Self {
        vitals.requests.fetch_add(1, Ordering::Relaxed);
        let turn = Turn {
            vitals: Arc::clone(vitals),
            ours: AtomicBool::new(false),
        };
        turn.set(true);
        Self(Arc::new(turn))
    }

    /// Notes that an answer, or its head, is there for the client to take.
    pub(super) fn answered(&self) {
        self.0.set(false);
    }

    /// Polls for what the client came for. It is our turn until that is there, whether the client takes it or not.
    pub(super) fn poll<T>(
        &self,
        cx: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.0.set(true);
        let waker = Waker::from(Arc::new(FrameReady {
            turn: Arc::clone(&self.0),
            waker: cx.waker().clone(),
        }));
        let next = poll(&mut Context::from_waker(&waker));
        if next.is_ready() {
            self.0.set(false);
        }
        next
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.set(false);
        self.0.vitals.requests.fetch_sub(1, Ordering::Relaxed);
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
    /// What is said in place of a rejection, and how much of it has gone out.
    instead: Option<(Vec<u8>, usize)>,
    linger: Option<Linger>,
}

impl Socket {
    pub(super) const fn new(stream: TcpStream, vitals: Arc<Vitals>) -> Self {
        Self {
            stream,
            vitals,
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
        let (start, answer) = rejection::find(buffer)?;
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
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(outcome) = self.poll_checked(cx, buffer) {
            return outcome;
        }
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
