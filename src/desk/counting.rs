//! Counting what operations read, whichever thread reads it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::http::{FrameSource, HttpError, Traffic};
use crate::metrics::visits;
use crate::query::from_memory;

/// Does `work` and counts what it read from the store for the operation at `place`.
pub(crate) fn counted<T>(traffic: &Traffic, place: usize, work: impl FnOnce() -> T) -> T {
    // What other work on this thread left behind belongs to nobody.
    let _ = visits::take();
    let done = work();
    traffic.visited(place, visits::take());
    done
}

/// The same without waiting for a disk; `None`, and nothing counted, where that cannot be.
pub(crate) fn counted_from_memory<T>(traffic: &Traffic, place: usize, work: impl FnOnce() -> T) -> Option<T> {
    let _ = visits::take();
    let done = from_memory(work)?;
    traffic.visited(place, visits::take());
    Some(done)
}

/// Frames that are counted as they are made.
pub(crate) struct Counted {
    source: Box<dyn FrameSource>,
    traffic: Arc<Traffic>,
    place: usize,
}

impl Counted {
    pub(crate) fn new(source: Box<dyn FrameSource>, traffic: &Arc<Traffic>, place: usize) -> Self {
        let traffic = Arc::clone(traffic);
        Self {
            source,
            traffic,
            place,
        }
    }
}

impl FrameSource for Counted {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        counted(&self.traffic, self.place, || self.source.next_frame())
    }

    fn in_part(&self) -> bool {
        self.source.in_part()
    }

    fn take_part(&mut self) -> bool {
        self.source.take_part()
    }

    fn lengthen(&mut self) {
        self.source.lengthen();
    }

    fn again(&self) -> Option<Box<dyn FrameSource>> {
        let source = self.source.again()?;
        Some(Box::new(Self::new(source, &self.traffic, self.place)))
    }

    fn frame_at_once(&mut self) -> Option<Result<Option<Bytes>, HttpError>> {
        let _ = visits::take();
        let frame = self.source.frame_at_once()?;
        self.traffic.visited(self.place, visits::take());
        Some(frame)
    }

    fn rest(&mut self) -> Range<usize> {
        self.source.rest()
    }

    fn take_rest(&mut self, rest: Range<usize>) {
        self.source.take_rest(rest);
    }
}
