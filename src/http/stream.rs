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
    })
}

type Computed = (Box<dyn FrameSource>, Result<Option<Bytes>, HttpError>);

enum State {
    /// The first frame, what gives the others, and what does so without waiting where that was made before.
    Ready(Bytes, Box<dyn FrameSource>, Option<Box<dyn FrameSource>>),
    AtOnce(AtOnce),
    Computing(Making),
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
}

impl StreamBody {
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.body_timeout = timeout;
    }

    /// The same body in a coding. Compresses the first frame, hence belongs on the pool.
    pub(super) fn encode(mut self, coding: Coding) -> Result<Self, HttpError> {
        if let State::Ready(first, source, _) = std::mem::replace(&mut self.state, State::Done) {
            let (first, source) = EncodedFrames::begin(coding, &first, source)?;
            self.state = State::Ready(first, Box::new(source), None);
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
                    Ok(Some(frame)) => self.go_on(making, source).map(|making| (frame, making.into())),
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
    // The status has gone out already: the log and a broken body are all that is left to tell it.
    tracing::error!(target: "quarry::http", %error, "body aborted");
    Poll::Ready(Some(Err(error)))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
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
        /// The part whose second frame cannot be made at once; without one, none can.
        waits: Option<u8>,
        /// Frames that were made at once.
        at_once: Arc<AtomicUsize>,
        is_long: bool,
        /// Sources whose frames are long.
        long: Arc<AtomicUsize>,
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

        fn lengthen(&mut self) {
            assert!(!self.in_part(), "a part was taken as it is");
            self.is_long = true;
            self.long.fetch_add(1, Ordering::SeqCst);
        }

        fn again(&self) -> Option<Box<dyn FrameSource>> {
            self.sources.fetch_add(1, Ordering::SeqCst);
            self.long.fetch_add(usize::from(self.is_long), Ordering::SeqCst);
            Some(Box::new(Self {
                left: 0,
                ..self.clone()
            }))
        }

        fn frame_at_once(&mut self) -> Option<Result<Option<Bytes>, HttpError>> {
            let waits = self.waits?;
            let frame = self.next_frame();
            if self.part == waits && self.left == 0 {
                return None;
            }
            self.at_once.fetch_add(1, Ordering::SeqCst);
            Some(frame)
        }

        fn rest(&mut self) -> Range<usize> {
            let end = 2 * (usize::from(self.part) + 1);
            end - usize::from(self.left)..end
        }

        fn take_rest(&mut self, rest: Range<usize>) {
            self.part = (rest.end / 2 - 1) as u8;
            self.left = rest.len() as u8;
        }
    }

    fn all_parts() -> Vec<u8> {
        let mut expected = b"first".to_vec();
        expected.extend((0..PARTS).flat_map(|part| [part, 1, part, 0]));
        expected
    }

    #[tokio::test]
    async fn frames_are_made_at_once_until_one_cannot_be() {
        for waits in [None, Some(0), Some(7), Some(PARTS - 1), Some(PARTS)] {
            let limits = PoolLimits {
                ahead_below: 1,
                ..PoolLimits::default()
            };
            let pool = Pool::new(limits).unwrap();
            let source = Parted {
                waits,
                ..Parted::default()
            };
            let begin = |source: &Parted| {
                let first = Bytes::from_static(b"first");
                stream_frames(&pool, first, Box::new(source.clone()), None)
            };
            let body = begin(&source).collect().await.unwrap().to_bytes();
            assert_eq!(body, all_parts(), "{waits:?}");
            let whole_parts = waits.map_or(0, usize::from);
            let last = usize::from(waits.is_some_and(|waits| waits < PARTS));
            assert_eq!(source.at_once.load(Ordering::SeqCst), 2 * whole_parts + last);
            let by_pool = async || {
                let source = Parted {
                    waits,
                    ..Parted::default()
                };
                let body = begin(&source).collect().await.unwrap().to_bytes();
                assert_eq!(body, all_parts());
                assert_eq!(source.at_once.load(Ordering::SeqCst), 0);
            };
            // Two bodies a core: a third is made by the pool.
            let others = [(); 2].map(|()| pool.body());
            by_pool().await;
            drop(others);
            // And all of them while something else is asked.
            pool.asked_else();
            by_pool().await;
        }
    }

    /// Frames of a quarter of what is made before others have their turn; the one that cannot be made at last panics.
    #[derive(Clone)]
    struct Endless(Arc<AtomicUsize>);

    impl FrameSource for Endless {
        fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
            Ok(None)
        }

        fn in_part(&self) -> bool {
            false
        }

        fn take_part(&mut self) -> bool {
            true
        }

        fn again(&self) -> Option<Box<dyn FrameSource>> {
            Some(Box::new(self.clone()))
        }

        fn frame_at_once(&mut self) -> Option<Result<Option<Bytes>, HttpError>> {
            assert!(self.0.fetch_add(1, Ordering::SeqCst) < 20, "the last frame");
            Some(Ok(Some(Bytes::from(vec![0; AT_ONCE_BYTES / 4]))))
        }
    }

    #[tokio::test]
    async fn others_have_their_turn_and_panics_are_fenced() {
        let limits = PoolLimits {
            ahead_below: 1,
            ..PoolLimits::default()
        };
        let pool = Pool::new(limits).unwrap();
        let made = Arc::new(AtomicUsize::new(0));
        let source = Endless(Arc::clone(&made));
        let mut body = stream_frames(&pool, Bytes::from_static(b"first"), Box::new(source), None);
        let taking = tokio::spawn(async move {
            let mut frames = 0;
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(_) => frames += 1,
                    Err(error) => return (frames, Some(error)),
                }
            }
            (frames, None)
        });
        // On the one thread of this runtime.
        let mut turns = 0;
        while !taking.is_finished() {
            assert!(made.load(Ordering::SeqCst) <= 4 * (turns + 1));
            turns += 1;
            tokio::task::yield_now().await;
        }
        let (frames, error) = taking.await.unwrap();
        assert_eq!(frames, 21);
        assert!(matches!(error, Some(BodyError::Failed(_))), "{error:?}");
        assert!(turns >= 5);
    }

    #[tokio::test]
    async fn parts_are_made_at_once_where_there_is_room_and_sent_in_order() {
        for (ahead_below, others, long) in [(0, 0, 0), (2, 3, 4), (8, 3, 4)] {
            let limits = PoolLimits {
                threads: 5,
                scans_max: 4,
                ahead_below,
                ..PoolLimits::default()
            };
            let pool = Pool::new(limits).unwrap();
            let source = Parted::default();
            let body = stream_frames(
                &pool,
                Bytes::from_static(b"first"),
                Box::new(source.clone()),
                None,
            );
            assert_eq!(body.collect().await.unwrap().to_bytes(), all_parts());
            assert_eq!(source.sources.load(Ordering::SeqCst), others);
            assert_eq!(source.long.load(Ordering::SeqCst), long);
            let most = source.most.load(Ordering::SeqCst);
            assert!((2.min(others + 1)..=others + 1).contains(&most), "{most} at once");
        }
    }
}
