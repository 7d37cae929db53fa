//! What gives the frames of a body.

use std::ops::Range;

use bytes::Bytes;

use super::error::HttpError;

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

    /// Makes long frames from now on, and parts as long, here and in what [`Self::again`] gives: memory is there, and threads
    /// meet less often. A body of one part need not. It holds no part yet.
    fn lengthen(&mut self) {}

    /// Another source for parts of the same body, which holds none yet. Must not block.
    fn again(&self) -> Option<Box<dyn FrameSource>> {
        None
    }

    /// The next frame, shorter than others, of a part that was taken, without waiting for anything; `None` where
    /// that cannot be. The source is of no use then: another one gives what [`Self::rest`] said before.
    fn frame_at_once(&mut self) -> Option<Result<Option<Bytes>, HttpError>> {
        None
    }

    /// What is left of the part that was taken last.
    fn rest(&mut self) -> Range<usize> {
        0..0
    }

    /// Takes what is left of a part that another source had taken.
    fn take_rest(&mut self, _rest: Range<usize>) {}
}
