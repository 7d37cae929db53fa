//! What an answer carries.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::stream::StreamBody;
use super::unsent::SharedBody;

/// Why a body was aborted after it had begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Its source failed.
    #[error("the body failed: {0}")]
    Failed(String),
    /// It took longer than a body may.
    #[error("the body took too long")]
    TimedOut,
}

/// The body of an answer.
pub enum Body {
    /// Nothing (more).
    Empty,
    /// Bytes at hand; the length is known.
    Full(Bytes),
    /// The same, held by others as well.
    Shared(SharedBody),
    /// Frames to come; the length is not known.
    Stream(StreamBody),
}

impl Body {
    /// The bytes at hand; `None` where there are none, or others to come.
    #[must_use]
    pub const fn whole(&self) -> Option<&Bytes> {
        match self {
            Self::Full(bytes) => Some(bytes),
            Self::Shared(shared) => Some(shared.bytes()),
            Self::Empty | Self::Stream(_) => None,
        }
    }

    /// Whether a frame of this length that it gives is counted with what is not sent: a whole body is, and long frames as they are made.
    pub(super) const fn counts(&self, frame: usize) -> bool {
        match self {
            Self::Stream(stream) => stream.counts(frame),
            Self::Empty | Self::Full(_) | Self::Shared(_) => true,
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Full(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Full(Bytes::from(bytes))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                if bytes.is_empty() {
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Self::Shared(shared) => {
                *self = Self::Full(shared.bytes().clone());
                self.poll_frame(cx)
            }
            Self::Stream(stream) => stream
                .poll_next(cx)
                .map(|next| next.map(|frame| frame.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Stream(stream) => stream.is_done(),
            body => body.whole().is_none_or(Bytes::is_empty),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Stream(_) => SizeHint::default(),
            body => SizeHint::with_exact(body.whole().map_or(0, Bytes::len) as u64),
        }
    }
}
