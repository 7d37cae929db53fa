//! Arrays of any length, made frame by frame: what was sent is forgotten, what is to come is not looked up yet.

use bytes::Bytes;

use crate::desk::answer::{Answer, Extra, Snapshot};
use crate::http::{FRAME_BYTES, FrameBuffers, FrameSource, HttpError};

/// Gives the items of an array.
pub(super) trait Items: Send + 'static {
    /// Appends items until the frame has enough; answers whether items may remain.
    fn write(&mut self, frame: &mut ArrayFrame<'_>) -> Result<bool, HttpError>;
}

/// A frame that is being written.
pub(super) struct ArrayFrame<'a> {
    out: &'a mut Vec<u8>,
    begun: &'a mut bool,
}

impl ArrayFrame<'_> {
    /// Appends an item; answers whether there is room for more.
    pub(super) fn item(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if *self.begun {
            self.out.push(b',');
        }
        *self.begun = true;
        write(self.out);
        self.has_room()
    }

    pub(super) fn has_room(&self) -> bool {
        self.out.len() < FRAME_BYTES
    }

    /// Ends a frame that is a while in the making: others have a turn, and the client sees that something is done. A blank
    /// between items says nothing.
    pub(super) fn pause(&mut self) {
        self.out.push(b' ');
    }
}

/// An array as frames.
struct ArrayFrames<I> {
    items: I,
    buffers: FrameBuffers,
    /// What stands behind the last item.
    tail: &'static [u8],
    /// An item was written.
    begun: bool,
    ended: bool,
}

impl<I: Items> ArrayFrames<I> {
    fn render(&mut self, head: &[u8]) -> Result<Bytes, HttpError> {
        let mut out = self.buffers.take();
        out.extend_from_slice(head);
        let mut frame = ArrayFrame {
            out: &mut out,
            begun: &mut self.begun,
        };
        self.ended = !self.items.write(&mut frame)?;
        if self.ended {
            out.extend_from_slice(self.tail);
        }
        Ok(out.into())
    }
}

impl<I: Items> FrameSource for ArrayFrames<I> {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        if self.ended {
            return Ok(None);
        }
        self.render(b"").map(Some)
    }
}

/// The answer with these items.
pub(super) fn array(snapshot: &Snapshot, items: impl Items) -> Result<Answer, HttpError> {
    array_between(snapshot, b"[", items, b"]")
}

/// The answer with these items between two texts.
pub(super) fn array_between(
    snapshot: &Snapshot,
    head: &[u8],
    items: impl Items,
    tail: &'static [u8],
) -> Result<Answer, HttpError> {
    let mut frames = ArrayFrames {
        items,
        buffers: snapshot.buffers.clone(),
        tail,
        begun: false,
        ended: false,
    };
    let first = frames.render(head)?;
    Ok(if frames.ended {
        Answer::Whole(first, Extra::default())
    } else {
        Answer::Begun(first, Box::new(frames), Extra::default())
    })
}
