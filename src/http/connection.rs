//! One accepted socket: the bytes hyper reads and writes through it.

use std::io::{self, IoSlice};
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::rejection;
use super::vitals::Vitals;

/// After a rejection, or a body that was refused: how long and how much of what the client still sends is read and thrown away.
/// Closing a socket with unread bytes resets it, and the reset can overtake our answer.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1 << 20;

struct Linger {
    until: Pin<Box<Sleep>>,
    read: usize,
}

/// Head and body of a short answer. The kernel takes one piece sooner than two, and to join them is next to nothing.
struct Joined {
    room: [u8; Self::BYTES_MAX],
    length: usize,
}

impl Joined {
    const BYTES_MAX: usize = 1536;

    /// What is to be written, where it is short.
    fn of(buffers: &[IoSlice<'_>]) -> Option<Self> {
        if buffers.iter().map(|buffer| buffer.len()).sum::<usize>() > Self::BYTES_MAX {
            return None;
        }
        let mut joined = Self {
            room: [0; Self::BYTES_MAX],
            length: 0,
        };
        for buffer in buffers {
            let end = joined.length + buffer.len();
            joined.room.get_mut(joined.length..end)?.copy_from_slice(buffer);
            joined.length = end;
        }
        Some(joined)
    }

    fn bytes(&self) -> &[u8] {
        self.room.get(..self.length).unwrap_or_default()
    }
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
    /// Whatever closes it before it is shut down resets it.
    resets: bool,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, vitals: Arc<Vitals>) -> Self {
        vitals.is_of(Some(stream.as_raw_fd()));
        Self {
            stream,
            vitals,
            in_first_line: true,
            instead: None,
            linger: None,
            resets: false,
        }
    }

    /// From the first byte of an answer that is over when the connection is closed until hyper shuts that down, when all of it is
    /// written: no other end may look like that one, not even where the system closes what a killed process had open.
    fn guard_end(&mut self) {
        if !self.resets && self.vitals.ends_by_closing() {
            let reset = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
            self.resets = reset.is_ok();
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

impl Drop for Socket {
    fn drop(&mut self) {
        self.vitals.is_of(None);
        // Otherwise megabytes would stay in the kernel for as long as the client keeps its end open.
        if self.vitals.is_cut_off() {
            drop(SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)));
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
        self.guard_end();
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
        self.guard_end();
        // A rejection has no body, so it comes as the only slice.
        if let [only] = buffers
            && let Some(outcome) = self.poll_checked(cx, only)
        {
            return outcome;
        }
        self.in_first_line = true;
        let outcome = match Joined::of(buffers) {
            Some(joined) => Pin::new(&mut self.stream).poll_write(cx, joined.bytes()),
            None => Pin::new(&mut self.stream).poll_write_vectored(cx, buffers),
        };
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
            if self.resets {
                SockRef::from(&self.stream).set_linger(None)?;
                self.resets = false;
            }
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        if self.instead.is_some() || self.vitals.has_refused_upload() {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_over_by_closing_is_reset_until_it_is_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let vitals = Vitals::new();
        let mut socket = Socket::new(accepted.unwrap().0, Arc::clone(&vitals));
        let linger = |socket: &Socket| SockRef::from(&socket.stream).linger().unwrap();
        socket.write_all(b"of a known length").await.unwrap();
        assert_eq!(linger(&socket), None);
        vitals.end_by_closing();
        socket.write_all(b"of another").await.unwrap();
        assert_eq!(linger(&socket), Some(Duration::ZERO));
        socket.shutdown().await.unwrap();
        assert_eq!(linger(&socket), None);
        drop(client);
    }
}
