//! Bodies whose sources take their time: what is sent, and what is made when.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use http_body_util::BodyExt as _;

use super::*;
use crate::http::pool::PoolLimits;

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
async fn among_many_bodies_a_frame_is_made_when_it_is_asked_for() {
    let limits = PoolLimits {
        ahead_below: 1,
        ..PoolLimits::default()
    };
    let pool = Pool::new(limits).unwrap();
    pool.asked_else();
    for (others, ahead) in [(7, 1), (8, 0)] {
        let others: Vec<_> = (0..others).map(|_| pool.body()).collect();
        let source = Parted::default();
        let first = Bytes::from_static(b"first");
        let mut body = stream_frames(&pool, first, Box::new(source.clone()), None);
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let made = || source.next.load(Ordering::SeqCst);
        let comes = async {
            while made() < ahead {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), comes)
            .await
            .unwrap();
        // And no more than that.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(made(), ahead, "{}", others.len());
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!([first, rest].concat(), all_parts());
    }
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
