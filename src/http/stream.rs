//! Bodies made frame by frame on the pool.
//!
//! The next frame is computed only when the one before was taken, so a body in flight holds at most
//! one frame beyond what the socket's buffer holds, and a slow client holds no thread.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::clock;

use super::body::{Body, BodyError};
use super::encoding::{Coding, EncodedFrames};
use super::error::HttpError;
use super::pool::{Lane, Outcome, Pool};

/// Gives the frames of a body, in order. Calls may block; they come from the pool, one at a time.
pub trait FrameSource: Send {
    /// The next frame; `None` when the body is complete. After `None` or a fault it is not called again.
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError>;
}

/// A body that begins with `first` and goes on with the frames of `source`.
pub fn stream_frames(pool: &Pool, first: Bytes, source: Box<dyn FrameSource>) -> Body {
    Body::Stream(StreamBody {
        pool: pool.clone(),
        state: State::Ready(first, source),
        began: clock::now(),
        body_timeout: Duration::MAX,
    })
}

type Computed = (Box<dyn FrameSource>, Result<Option<Bytes>, HttpError>);

enum State {
    Ready(Bytes, Box<dyn FrameSource>),
    Computing(Outcome<Computed>),
    Done,
}

/// A body whose frames come from the pool.
pub struct StreamBody {
    pool: Pool,
    state: State,
    began: Instant,
    body_timeout: Duration,
}

impl StreamBody {
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.body_timeout = timeout;
    }

    /// The same body in a coding. Compresses the first frame, hence belongs on the pool.
    pub(super) fn encode(mut self, coding: Coding) -> Result<Self, HttpError> {
        if let State::Ready(first, source) = std::mem::replace(&mut self.state, State::Done) {
            let (first, source) = EncodedFrames::begin(coding, &first, source)?;
            self.state = State::Ready(first, Box::new(source));
        }
        Ok(self)
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let (frame, source) = match std::mem::replace(&mut self.state, State::Done) {
            State::Done => return Poll::Ready(None),
            State::Ready(frame, source) => (frame, source),
            State::Computing(mut outcome) => match Pin::new(&mut outcome).poll(cx) {
                Poll::Pending => {
                    self.state = State::Computing(outcome);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(Ok((source, Ok(Some(frame)))))) => (frame, source),
                Poll::Ready(Ok(Ok((_, Ok(None))))) => return Poll::Ready(None),
                Poll::Ready(Ok(Ok((_, Err(error))))) => return fail(BodyError::Failed(error.to_string())),
                Poll::Ready(Ok(Err(error))) => return fail(BodyError::Failed(error.to_string())),
                Poll::Ready(Err(_)) => return fail(BodyError::Failed("the pool ended".to_owned())),
            },
        };
        if clock::now() - self.began > self.body_timeout {
            return fail(BodyError::TimedOut);
        }
        match self.compute(source) {
            Ok(outcome) => self.state = State::Computing(outcome),
            Err(error) => return fail(error),
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn compute(&self, mut source: Box<dyn FrameSource>) -> Result<Outcome<Computed>, BodyError> {
        self.pool
            .resume(Lane::Scan, move || {
                let frame = source.next_frame();
                (source, frame)
            })
            .map_err(|error| BodyError::Failed(error.to_string()))
    }
}

fn fail(error: BodyError) -> Poll<Option<Result<Bytes, BodyError>>> {
    // The status has gone out already: the log and a broken body are all that is left to tell it.
    tracing::error!(target: "quarry::http", %error, "body aborted");
    Poll::Ready(Some(Err(error)))
}
