//! The items of lists, in frames: where they are, who writes them, and how a page is dealt out.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::http::{FRAME_BYTES, FrameBuffers, FrameSource, HttpError, LONG_FRAMES};
use crate::query::{Page, QueryError, from_memory};

use super::faults::query_failed;
use super::lists::{Envelope, Shape, TAIL};

/// The items of a page by their places.
pub(crate) trait Places {
    /// Items of the page.
    fn count(&self) -> usize;

    /// Items that are still to be written.
    fn left(&self) -> usize;

    /// Chooses the items that are written next.
    fn set_part(&mut self, part: Range<usize>);
}

impl Places for Page {
    fn count(&self) -> usize {
        self.len()
    }

    fn left(&self) -> usize {
        self.left()
    }

    fn set_part(&mut self, part: Range<usize>) {
        self.set_part(part);
    }
}

/// Items that are all known before the first is written.
pub(crate) struct Known<T, W> {
    rows: Arc<[T]>,
    rest: Range<usize>,
    write: W,
}

impl<T, W: Fn(&mut Vec<u8>, &T)> Known<T, W> {
    /// `rows`, each written by `write`.
    pub(crate) fn new(rows: Vec<T>, write: W) -> Self {
        Self {
            rest: 0..rows.len(),
            rows: rows.into(),
            write,
        }
    }
}

impl<T, W> Places for Known<T, W> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn left(&self) -> usize {
        self.rest.len()
    }

    fn set_part(&mut self, part: Range<usize>) {
        self.rest = part;
    }
}

impl<T, W> RowSource for Known<T, W>
where
    T: Send + Sync + 'static,
    W: Fn(&mut Vec<u8>, &T) + Clone + Send + 'static,
{
    fn places(&mut self) -> &mut dyn Places {
        self
    }

    fn again(&self) -> Self {
        Self {
            rows: Arc::clone(&self.rows),
            rest: self.rest.clone(),
            write: self.write.clone(),
        }
    }

    fn write(&mut self, frame: &mut ListFrame<'_>) -> Result<bool, QueryError> {
        while let Some(row) = self.rest.next().and_then(|place| self.rows.get(place)) {
            if !frame.item(|out| (self.write)(out, row)) {
                break;
            }
        }
        Ok(!self.rest.is_empty())
    }
}

/// Gives the items of a list.
pub(crate) trait RowSource: Send + 'static {
    /// Whether items take so little, where all that they are made of is in memory, that a frame of them may be made
    /// by the thread that sends it.
    const IS_QUICK: bool = false;

    /// Which items there are, and which are still to be written.
    fn places(&mut self) -> &mut dyn Places;

    /// The same items, given by itself: on another thread, at another place.
    fn again(&self) -> Self
    where
        Self: Sized;

    /// Writes the items that were not written yet until the frame has enough; answers whether items remain.
    fn write(&mut self, frame: &mut ListFrame<'_>) -> Result<bool, QueryError>;
}

/// A frame that is being written.
pub(crate) struct ListFrame<'a> {
    out: &'a mut Vec<u8>,
    shape: Shape,
    /// Items were written before, here or in another frame.
    begun: &'a mut bool,
    /// Bytes after which it has enough.
    enough: usize,
}

impl ListFrame<'_> {
    /// The text so far.
    pub(crate) const fn text(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Appends an item; answers whether there is room for more.
    #[inline]
    pub(crate) fn item(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.shape == Shape::Object && *self.begun {
            self.out.push(b',');
        }
        *self.begun = true;
        write(self.out);
        if self.shape == Shape::Lines {
            self.out.push(b'\n');
        }
        self.out.len() < self.enough
    }
}

/// The list as frames of about [`FRAME_BYTES`] or a multiple of it, in parts of about a frame.
pub(crate) struct ListFrames<R> {
    source: R,
    buffers: FrameBuffers,
    shape: Shape,
    /// What stands before the first item, until it is written.
    envelope: Option<Envelope>,
    begun: bool,
    parts: Arc<Parts>,
    /// The part has items left.
    in_part: bool,
    /// Where the part ends.
    part_end: usize,
    /// Its frames are so many times [`FRAME_BYTES`] long, and its parts by as much.
    length: usize,
}

/// A frame that is made where it is sent: it stays in a core's cache until it went out.
const AT_ONCE_BYTES: usize = 128 * 1024;

/// Items of a part where the first frame has so few that they say little of those behind them: frames of one item each hardly shrink when
/// they are compressed. The first is for a single one, which was longer than a frame.
const PARTS_AFTER_FEW: [usize; 2] = [64, 16];

/// Items of a part, by those that a frame has room for. A little less than a frame, so that a part seldom leaves a few items to a frame of
/// their own.
fn part(written: usize) -> usize {
    let [after_one, after_few] = PARTS_AFTER_FEW;
    match written {
        0 | 1 => after_one,
        _ => (written - written / 16).max(after_few),
    }
}

/// How a page is dealt out.
struct Parts {
    /// Items of the page.
    rows: usize,
    /// Items of a part.
    part: usize,
    /// The first item that nobody took.
    next: AtomicUsize,
}

impl<R: RowSource> ListFrames<R> {
    /// The first frame, and what gives the others where there are any.
    pub(crate) fn begin(
        source: R,
        buffers: FrameBuffers,
        shape: Shape,
        envelope: Envelope,
    ) -> Result<(Bytes, Option<Self>), HttpError> {
        let mut frames = Self {
            source,
            buffers,
            shape,
            envelope: Some(envelope),
            begun: false,
            parts: Arc::new(Parts {
                rows: 0,
                part: 0,
                next: AtomicUsize::new(0),
            }),
            in_part: true,
            part_end: 0,
            length: 1,
        };
        let first = frames.render(FRAME_BYTES)?;
        if !frames.in_part {
            return Ok((first, None));
        }
        let places = frames.source.places();
        let rows = places.count();
        let written = rows - places.left();
        frames.parts = Arc::new(Parts {
            rows,
            part: part(written),
            next: AtomicUsize::new(written),
        });
        frames.in_part = false;
        Ok((first, Some(frames)))
    }

    fn render(&mut self, enough: usize) -> Result<Bytes, HttpError> {
        let mut out = self.buffers.take();
        if let Some(Envelope(text)) = self.envelope.take()
            && self.shape == Shape::Object
        {
            out.extend_from_slice(&text);
        }
        let mut frame = ListFrame {
            out: &mut out,
            shape: self.shape,
            begun: &mut self.begun,
            enough,
        };
        self.in_part = self.source.write(&mut frame).map_err(query_failed)?;
        if !self.in_part && self.part_end == self.parts.rows && self.shape == Shape::Object {
            out.extend_from_slice(TAIL);
        }
        Ok(out.into())
    }
}

impl<R: RowSource> FrameSource for ListFrames<R> {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        if !self.in_part && !self.take_part() {
            return Ok(None);
        }
        self.render(self.length * FRAME_BYTES).map(Some)
    }

    fn in_part(&self) -> bool {
        self.in_part
    }

    fn take_part(&mut self) -> bool {
        let Parts { rows, part, ref next } = *self.parts;
        let part = self.length * part;
        let first = next.fetch_add(part, Ordering::Relaxed);
        if first >= rows {
            return false;
        }
        self.take_rest(first..rows.min(first + part));
        true
    }

    fn lengthen(&mut self) {
        self.length = LONG_FRAMES;
    }

    fn frame_at_once(&mut self) -> Option<Result<Option<Bytes>, HttpError>> {
        if !R::IS_QUICK {
            return None;
        }
        from_memory(|| self.render(AT_ONCE_BYTES).map(Some))
    }

    fn rest(&mut self) -> Range<usize> {
        self.part_end - self.source.places().left()..self.part_end
    }

    fn take_rest(&mut self, rest: Range<usize>) {
        self.part_end = rest.end;
        self.in_part = !rest.is_empty();
        self.source.places().set_part(rest);
    }

    fn again(&self) -> Option<Box<dyn FrameSource>> {
        Some(Box::new(Self {
            source: self.source.again(),
            buffers: self.buffers.clone(),
            shape: self.shape,
            envelope: None,
            begun: true,
            parts: Arc::clone(&self.parts),
            in_part: false,
            part_end: 0,
            length: self.length,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Unsent;

    #[test]
    fn a_first_item_longer_than_a_frame_leaves_the_others_long_ones() {
        let lengths: Vec<usize> = std::iter::once(FRAME_BYTES + 1)
            .chain(std::iter::repeat_n(100, 1_000))
            .collect();
        let write = |out: &mut Vec<u8>, &length: &usize| out.resize(out.len() + length, b'1');
        let all: usize = lengths.iter().sum();
        let (rows, begin) = (lengths.len(), Envelope(b"{\"all\":[".to_vec()));
        let expected = begin.0.len() + all + rows - 1 + TAIL.len();
        let buffers = FrameBuffers::new(Unsent::new(1 << 30));
        let (first, rest) =
            ListFrames::begin(Known::new(lengths, write), buffers, Shape::Object, begin).unwrap();
        let (mut rest, mut frames) = (rest.unwrap(), vec![first]);
        while let Some(frame) = rest.next_frame().unwrap() {
            frames.push(frame);
        }
        assert_eq!(frames.iter().map(Bytes::len).sum::<usize>(), expected);
        assert_eq!(frames.len(), 1 + (rows - 1).div_ceil(part(1)));
        // Of items of one length parts are about a frame, so that several threads have their share.
        assert_eq!((part(3), part(40), part(400)), (16, 38, 375));
    }
}
