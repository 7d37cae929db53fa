//! Buffers of frames, used again once their bytes were sent.
//!
//! A frame is made on one thread and freed on another, and the allocator gives memory of that size back to the
//! system in between: every page of every frame would be faulted in anew, which took a quarter of the time of a
//! long answer (`docs/decisions/0016-pages.md`).

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::unsent::{Held, Unsent};

/// Bytes after which a frame is handed on. A page of 10,000 logs ran at 0.42 of a static body of its size with
/// frames of 32 KiB, 0.56 with 128 KiB, 0.63 with 256 KiB, and 0.65 with 512 KiB and 1 MiB (decision 0016).
pub const FRAME_BYTES: usize = 256 * 1024;

/// Frames are so many times as long where a single body is made on several threads (decision 0053).
pub const LONG_FRAMES: usize = 2;

/// Room for the row that crosses the end of a frame; a longer one makes its buffer grow.
const ROW_BYTES: usize = 16 * 1024;
/// Shorter texts are copied out of their buffer, which is free again then.
pub(super) const COPIED_MAX: usize = 16 << 10;
/// Buffers kept while nobody uses them: 17 MB, and 34 where all of them held a long frame.
const KEPT_MAX: usize = 64;
/// What a buffer has room for once it grew for a long frame.
const KEPT_BYTES_MAX: usize = LONG_FRAMES * (FRAME_BYTES + ROW_BYTES);

/// Where frames get their buffers from; cheap to share.
#[derive(Clone, Debug)]
pub struct FrameBuffers(Arc<Home>);

#[derive(Debug)]
struct Home {
    kept: Mutex<Vec<Vec<u8>>>,
    unsent: Unsent,
}

impl FrameBuffers {
    /// Buffers that are counted there while they are used.
    #[must_use]
    pub fn new(unsent: Unsent) -> Self {
        let kept = Mutex::default();
        Self(Arc::new(Home { kept, unsent }))
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty buffer with room for a frame.
    #[must_use]
    pub fn take(&self) -> FrameBuffer {
        let kept = self.kept().pop();
        let bytes = kept.unwrap_or_else(|| Vec::with_capacity(FRAME_BYTES + ROW_BYTES));
        FrameBuffer {
            held: self.0.unsent.hold(bytes.capacity()),
            bytes,
            home: self.clone(),
        }
    }
}

/// A buffer that goes back where it came from when it is dropped, also as [`Bytes`].
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    held: Held,
    home: FrameBuffers,
}

impl Deref for FrameBuffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for FrameBuffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for FrameBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<FrameBuffer> for Bytes {
    fn from(mut buffer: FrameBuffer) -> Self {
        // A batch may hold a thousand of them.
        if buffer.bytes.len() <= COPIED_MAX {
            return Self::copy_from_slice(&buffer.bytes);
        }
        buffer.held.change(buffer.bytes.capacity());
        Self::from_owner(buffer)
    }
}

impl Drop for FrameBuffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        // One that a huge row made grow would never shrink again.
        if bytes.capacity() > KEPT_BYTES_MAX {
            return;
        }
        bytes.clear();
        let mut kept = self.home.kept();
        if kept.len() < KEPT_MAX {
            kept.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_empty_and_huge_ones_do_not() {
        let unsent = Unsent::new(usize::MAX);
        let buffers = FrameBuffers::new(unsent.clone());
        let mut buffer = buffers.take();
        buffer.extend_from_slice(&[b't'; COPIED_MAX]);
        let short = Bytes::from(buffer);
        assert_eq!((short.len(), unsent.bytes()), (COPIED_MAX, 0));
        let mut buffer = buffers.take();
        buffer.extend_from_slice(&[b't'; COPIED_MAX + 1]);
        let at = buffer.as_ptr();
        let bytes = Bytes::from(buffer);
        assert_eq!(bytes.len(), COPIED_MAX + 1);
        assert_eq!(unsent.bytes(), FRAME_BYTES + ROW_BYTES);
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_ne!(buffers.take().as_ptr(), at, "part of it is still held");
        drop(part);
        let mut again = buffers.take();
        assert!(again.is_empty());
        again.extend_from_slice(&[b' '; FRAME_BYTES + ROW_BYTES]);
        again.extend_from_slice(&[b' '; FRAME_BYTES]);
        let (long, at) = (again.capacity(), again.as_ptr());
        let long_bytes = Bytes::from(again);
        assert_eq!(unsent.bytes(), long);
        drop(long_bytes);
        assert_eq!(unsent.bytes(), 0);
        let mut again = buffers.take();
        assert_eq!((again.capacity(), again.as_ptr()), (long, at));
        again.reserve(3 * FRAME_BYTES);
        drop(again);
        assert!(buffers.take().capacity() < 3 * FRAME_BYTES);
    }
}
