//! Bodies made frame by frame: on the pool, or at once where they are taken.
//!
//! The next frame is computed only when the one before was taken, and where a source can be read in parts, as
//! many parts at once as cores without other work can make use of, four at most, in frames twice as long (`docs/decisions/0053-long-frames.md`). So a body in flight holds
//! at most so many frames beyond what the socket's buffer holds, and a slow client holds no thread.
//!
//! Where a few bodies keep the cores busy, frames that need not wait for a disk are made by the thread that sends
//! them: it finds them in its core's cache then, and nothing is handed from thread to thread
//! (`docs/decisions/0041-frames-at-once.md`).

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::clock;

use super::body::{Body, BodyError};
use super::buffers::{COPIED_MAX, FRAME_BYTES};
use super::encoding::{Coding, EncodedFrames};
use super::error::HttpError;
use super::frame_source::FrameSource;
use super::pool::{BodyGuard, Lane, Outcome, Pool};

/// So many bytes of a body are made at once, one after the other, before others have their turn.
const AT_ONCE_BYTES: usize = 256 << 10;

/// A body that begins with `first` and goes on with the frames of `source`; `at_once` is a source of the same body that
/// does not wait, where there is one already, and holds no part.
pub fn stream_frames(
    pool: &Pool,
    first: Bytes,
    source: Box<dyn FrameSource>,
    at_once: Option<Box<dyn FrameSource>>,
) -> Body {
    Body::Stream(StreamBody {
        pool: pool.body(),
        state: State::Ready(first, source, at_once),
        began: clock::now(),
        body_timeout: Duration::MAX,
        is_coded: false,
    })
}

type Computed = (Box<dyn FrameSource>, Result<Option<Bytes>, HttpError>);

enum State {
    /// The first frame, what gives the others, and what does so without waiting where that was made before.
    Ready(Bytes, Box<dyn FrameSource>, Option<Box<dyn FrameSource>>),
    AtOnce(AtOnce),
    Computing(Making),
    /// The next frame is made when it is asked for.
    Resting(Making, Box<dyn FrameSource>),
    Done,
}

/// Frames that are made where they are taken.
struct AtOnce {
    /// Does not wait.
    quick: Box<dyn FrameSource>,
    /// Goes on where it cannot.
    slow: Box<dyn FrameSource>,
    /// Bytes since others had their turn.
    bytes: usize,
}

/// Frames that are being made.
#[derive(Default)]
struct Making {
    /// In the order in which they are sent.
    frames: VecDeque<Outcome<Computed>>,
    /// Sources that hold no part.
    idle: Vec<Box<dyn FrameSource>>,
}

impl From<Making> for State {
    fn from(making: Making) -> Self {
        if making.frames.is_empty() {
            Self::Done
        } else {
            Self::Computing(making)
        }
    }
}

/// What came of making a frame at once.
enum Made {
    Frame(Bytes, AtOnce),
    /// It cannot be: the pool makes it.
    Handed(Making),
    /// There are no more.
    All,
}

/// A body made of frames.
pub struct StreamBody {
    pool: BodyGuard,
    state: State,
    began: Instant,
    body_timeout: Duration,
    is_coded: bool,
}

impl StreamBody {
    /// Whether frames of this length are counted by who makes them: those that lie in buffers are.
    pub(super) const fn counts(&self, frame: usize) -> bool {
        !self.is_coded && frame > COPIED_MAX
    }

    /// About what it holds while it is open, beside frames that are handed over.
    pub(super) const fn weight(&self) -> usize {
        self.pool.bytes() + 2 * FRAME_BYTES
    }

    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.body_timeout = timeout;
    }

    /// The same body in a coding. Compresses the first frame, hence belongs on the pool.
    pub(super) fn encode(mut self, coding: Coding) -> Result<Self, HttpError> {
        if let State::Ready(first, source, _) = std::mem::replace(&mut self.state, State::Done) {
            self.pool.grow(coding.memory());
            let (first, source) = EncodedFrames::begin(coding, &first, source)?;
            self.state = State::Ready(first, Box::new(source), None);
            self.is_coded = true;
        }
        Ok(self)
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let next = match std::mem::replace(&mut self.state, State::Done) {
            State::Done => return Poll::Ready(None),
            State::Ready(frame, source, quick) => self.begin(source, quick).map(|state| (frame, state)),
            State::AtOnce(at_once) if at_once.bytes >= AT_ONCE_BYTES => {
                self.state = State::AtOnce(AtOnce { bytes: 0, ..at_once });
                // Comes back once sockets were looked at: a waker that is woken here would come back before that.
                let turn = pin!(tokio::task::yield_now());
                let Poll::Pending = turn.poll(cx) else {
                    return self.poll_next(cx);
                };
                return Poll::Pending;
            }
            State::AtOnce(at_once) => match self.at_once(at_once) {
                Ok(Made::Frame(frame, at_once)) => Ok((frame, State::AtOnce(at_once))),
                Ok(Made::Handed(making)) => {
                    self.state = State::Computing(making);
                    return self.poll_next(cx);
                }
                Ok(Made::All) => return Poll::Ready(None),
                Err(error) => Err(error),
            },
            State::Resting(making, source) => match self.go_on(making, source) {
                Ok(making) => {
                    self.state = making.into();
                    return self.poll_next(cx);
                }
                Err(error) => Err(error),
            },
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
                    Ok(Some(frame)) => self.after(making, source).map(|state| (frame, state)),
                    Ok(None) => return Poll::Ready(None),
                    Err(error) => return fail(BodyError::Failed(error.to_string())),
                }
            }
        };
        let (frame, state) = match next {
            Ok(next) => next,
            Err(error) => return fail(error),
        };
        if clock::now() - self.began > self.body_timeout {
            return fail(BodyError::TimedOut);
        }
        self.state = state;
        Poll::Ready(Some(Ok(frame)))
    }

    /// Makes the next frame here, or hands what is left to the pool.
    fn at_once(&self, at_once: AtOnce) -> Result<Made, BodyError> {
        let AtOnce {
            mut quick,
            mut slow,
            bytes,
        } = at_once;
        if !quick.in_part() && !quick.take_part() {
            return Ok(Made::All);
        }
        let rest = quick.rest();
        let frame = if self.pool.makes_at_once() {
            // As the pool's threads fence it.
            catch_unwind(AssertUnwindSafe(|| quick.frame_at_once()))
                .map_err(|_| BodyError::Failed("a frame panicked".to_owned()))?
        } else {
            None
        };
        match frame {
            Some(Ok(Some(frame))) => {
                let bytes = bytes + frame.len();
                Ok(Made::Frame(frame, AtOnce { quick, slow, bytes }))
            }
            Some(Ok(None)) => Ok(Made::All),
            Some(Err(error)) => Err(BodyError::Failed(error.to_string())),
            None => {
                slow.take_rest(rest);
                self.go_on(Making::default(), slow).map(Made::Handed)
            }
        }
    }

    /// Sets the source to work, and others like it where threads are free; where they are not, it waits until frames
    /// cannot be made at once.
    fn begin(
        &self,
        mut source: Box<dyn FrameSource>,
        quick: Option<Box<dyn FrameSource>>,
    ) -> Result<State, BodyError> {
        let mut making = Making::default();
        if self.pool.has_room() {
            source.lengthen();
            making
                .idle
                .extend((1..self.pool.parts_max()).map_while(|_| source.again()));
        } else if self.pool.makes_at_once()
            && !source.in_part()
            && let Some(quick) = quick.or_else(|| source.again())
        {
            return Ok(State::AtOnce(AtOnce {
                quick,
                slow: source,
                bytes: 0,
            }));
        }
        self.after(making, source)
    }

    /// What comes after a frame: the next one is made while that is sent, or, among many bodies, of which some keep the cores busy and
    /// others may never be taken, once it was.
    fn after(&self, making: Making, source: Box<dyn FrameSource>) -> Result<State, BodyError> {
        if making.frames.is_empty() && self.pool.is_crowded() {
            return Ok(State::Resting(making, source));
        }
        self.go_on(making, source).map(State::from)
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
    // The status has gone out already: the log, where its request is known, and a broken body are all that is left to tell it.
    Poll::Ready(Some(Err(error)))
}

#[cfg(test)]
mod tests;
