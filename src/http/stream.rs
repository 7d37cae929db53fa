//! Bodies made frame by frame on the pool.
//!
//! The next frame is computed only when the one before was taken, and where a source can be read in parts, as
//! many parts at once as there are cores without other work, four at most. So a body in flight holds
//! at most so many frames beyond what the socket's buffer holds, and a slow client holds no thread.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::clock;

use super::body::{Body, BodyError};
use super::encoding::{Coding, EncodedFrames};
use super::error::HttpError;
use super::pool::{BodyGuard, Lane, Outcome, Pool};

/// Gives the frames of a body, in order. Calls come one at a time.
///
/// A body may consist of parts, so that several sources can make it: whoever takes a part gives the frames of
/// that part, and parts are sent in the order in which they were taken. By default a body is one part.
pub trait FrameSource: Send {
    /// The next frame; `None` when the body is complete. After `None` or a fault it is not called again. May
    /// block; called on the pool.
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError>;

    /// Whether the part that was taken last has frames left.
    fn in_part(&self) -> bool {
        true
    }

    /// Takes the next part of the body; answers whether there was one. Must not block.
    fn take_part(&mut self) -> bool {
        false
    }

    /// Another source for parts of the same body, which holds none yet. Must not block.
    fn again(&self) -> Option<Box<dyn FrameSource>> {
        None
    }
}

/// A body that begins with `first` and goes on with the frames of `source`.
pub fn stream_frames(pool: &Pool, first: Bytes, source: Box<dyn FrameSource>) -> Body {
    Body::Stream(StreamBody {
        pool: pool.body(),
        state: State::Ready(first, source),
        began: clock::now(),
        body_timeout: Duration::MAX,
    })
}

type Computed = (Box<dyn FrameSource>, Result<Option<Bytes>, HttpError>);

enum State {
    Ready(Bytes, Box<dyn FrameSource>),
    Computing(Making),
    Done,
}

/// Frames that are being made.
#[derive(Default)]
struct Making {
    /// In the order in which they are sent.
    frames: VecDeque<Outcome<Computed>>,
    /// Sources that hold no part.
    idle: Vec<Box<dyn FrameSource>>,
}

/// A body whose frames come from the pool.
pub struct StreamBody {
    pool: BodyGuard,
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
        let next = match std::mem::replace(&mut self.state, State::Done) {
            State::Done => return Poll::Ready(None),
            State::Ready(frame, source) => self.begin(source).map(|making| (frame, making)),
            State::Computing(mut making) => {
                let Some(first) = making.frames.front_mut() else {
                    return Poll::Ready(None);
                };
                let Poll::Ready(outcome) = Pin::new(first).poll(cx) else {
                    self.state = State::Computing(making);
                    return Poll::Pending;
                };
                making.frames.pop_front();
                let (source, frame) = match outcome {
                    Ok(Ok(computed)) => computed,
                    Ok(Err(error)) => return fail(BodyError::Failed(error.to_string())),
                    Err(_) => return fail(BodyError::Failed("the pool ended".to_owned())),
                };
                match frame {
                    Ok(Some(frame)) => self.go_on(making, source).map(|making| (frame, making)),
                    Ok(None) => return Poll::Ready(None),
                    Err(error) => return fail(BodyError::Failed(error.to_string())),
                }
            }
        };
        let (frame, making) = match next {
            Ok(next) => next,
            Err(error) => return fail(error),
        };
        if clock::now() - self.began > self.body_timeout {
            return fail(BodyError::TimedOut);
        }
        if !making.frames.is_empty() {
            self.state = State::Computing(making);
        }
        Poll::Ready(Some(Ok(frame)))
    }

    /// Sets the source to work, and others like it where threads are free.
    fn begin(&self, source: Box<dyn FrameSource>) -> Result<Making, BodyError> {
        let mut making = Making::default();
        if self.pool.has_room() {
            making
                .idle
                .extend((1..self.pool.parts_max()).map_while(|_| source.again()));
        }
        self.go_on(making, source)
    }

    /// Lets a source that has given a frame go on with its part, and sets those without one to work: one in any
    /// case, the others while threads are free.
    fn go_on(&self, mut making: Making, source: Box<dyn FrameSource>) -> Result<Making, BodyError> {
        if source.in_part() {
            making.frames.push_front(self.compute(source)?);
        } else {
            making.idle.push(source);
        }
        while making.frames.is_empty() || self.pool.has_room() {
            let Some(mut source) = making.idle.pop() else {
                break;
            };
            if !source.take_part() {
                making.idle.clear();
                break;
            }
            making.frames.push_back(self.compute(source)?);
        }
        Ok(making)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

    use http_body_util::BodyExt as _;

    use super::super::pool::PoolLimits;
    use super::*;

    const PARTS: u8 = 20;

    /// Parts of two frames: the number of the part, and that with a mark. Even parts take their time.
    #[derive(Clone, Default)]
    struct Parted {
        next: Arc<AtomicU8>,
        sources: Arc<AtomicUsize>,
        /// Frames being made: now, and most at once.
        making: Arc<AtomicUsize>,
        most: Arc<AtomicUsize>,
        part: u8,
        left: u8,
    }

    impl FrameSource for Parted {
        fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
            if !self.in_part() && !self.take_part() {
                return Ok(None);
            }
            let making = self.making.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(making, Ordering::SeqCst);
            if self.part.is_multiple_of(2) {
                std::thread::sleep(Duration::from_millis(10));
            }
            self.making.fetch_sub(1, Ordering::SeqCst);
            self.left -= 1;
            Ok(Some(Bytes::from(vec![self.part, self.left])))
        }

        fn in_part(&self) -> bool {
            self.left > 0
        }

        fn take_part(&mut self) -> bool {
            self.part = self.next.fetch_add(1, Ordering::SeqCst);
            self.left = if self.part < PARTS { 2 } else { 0 };
            self.left > 0
        }

        fn again(&self) -> Option<Box<dyn FrameSource>> {
            self.sources.fetch_add(1, Ordering::SeqCst);
            Some(Box::new(Self {
                left: 0,
                ..self.clone()
            }))
        }
    }

    #[tokio::test]
    async fn parts_are_made_at_once_where_there_is_room_and_sent_in_order() {
        for (ahead_below, others) in [(0, 0), (2, 1)] {
            let limits = PoolLimits {
                threads: 5,
                scans_max: 4,
                ahead_below,
                ..PoolLimits::default()
            };
            let pool = Pool::new(limits).unwrap();
            let source = Parted::default();
            let body = stream_frames(&pool, Bytes::from_static(b"first"), Box::new(source.clone()));
            let mut expected = b"first".to_vec();
            expected.extend((0..PARTS).flat_map(|part| [part, 1, part, 0]));
            assert_eq!(body.collect().await.unwrap().to_bytes(), expected);
            assert_eq!(source.sources.load(Ordering::SeqCst), others);
            assert_eq!(source.most.load(Ordering::SeqCst), ahead_below.max(1));
        }
    }
}
