//! Reading without waiting for a disk.
//!
//! Handing a look-up to another thread and taking its answer back costs more than a look-up whose blocks lie in
//! the cache. So it may be tried where it was asked for: reads under [`from_memory`] end where they would have to
//! wait, and nothing of such an attempt is used.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::IoSliceMut;
use std::num::NonZero;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use crate::clock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Reads wait for the disk.
    Disk,
    /// Reads are answered out of memory or not at all.
    Memory,
    /// The same, and something was not in memory.
    Missed,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Disk) };
    /// When the attempt of this thread began, in [`TICK`]s of the thread.
    static BEGAN: Cell<Option<NonZero<u32>>> = const { Cell::new(None) };
    /// When this thread made its first attempt.
    static FIRST: OnceCell<Instant> = const { OnceCell::new() };
}

/// Does `work` without waiting for a disk; `None` where it needed something that is not in memory. What became of
/// the work is then dropped: failures of its reads may have been taken for absence, so no part of it counts.
pub fn from_memory<T>(work: impl FnOnce() -> T) -> Option<T> {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            MODE.set(Mode::Disk);
            BEGAN.set(None);
        }
    }
    // Also where the work panics.
    let _restore = Restore;
    MODE.set(Mode::Memory);
    BEGAN.set(Some(tick()));
    let done = work();
    (MODE.get() == Mode::Memory).then_some(done)
}

/// Gives such an attempt up: what is not done at its end would be done later, by reads that still end where they would have to
/// wait.
pub fn give_up() {
    miss();
}

/// Whether reads of this thread must not wait, for they are such an attempt's.
#[inline]
#[must_use]
pub fn is_from_memory() -> bool {
    only()
}

/// Whether reads of this thread must not wait.
#[inline]
pub(super) fn only() -> bool {
    MODE.get() != Mode::Disk
}

/// Whether something that was read on this thread was not in memory and had to be.
pub(super) fn has_missed() -> bool {
    MODE.get() == Mode::Missed
}

/// Whether a read that may wait is out of the question; it then counts as a miss.
#[inline]
pub(super) fn forbids() -> bool {
    if only() {
        miss();
    }
    only()
}

/// Notes that something is not in memory. Nothing follows of it where reads may wait.
#[cold]
pub(super) fn miss() {
    if only() {
        MODE.set(Mode::Missed);
    }
}

/// Longer records are asked for by their first bytes.
const ASKED_MAX: usize = 64;

/// How finely time is told to pages.
const TICK: Duration = Duration::from_millis(16);

/// A page that was in the system's cache is taken to be there for so many ticks, four seconds: it is next to never gone so soon, and
/// where it is one read waits for it.
const FRESH_TICKS: u32 = 256;

const PAGE_BYTES: u64 = 4096;

/// Pages that a thread remembers, by the low bits of what names them: a page of 10,000 logs reads some 300 of four arrays, and look-ups of
/// random transactions one of all.
const PAGES: usize = 16_384;

/// A page by its file and number, and the tick at which it was there.
type SeenPage = (u64, Option<NonZero<u32>>);

thread_local! {
    static SEEN: RefCell<Vec<SeenPage>> = const { RefCell::new(Vec::new()) };
}

/// Now, for pages; from 1.
fn tick() -> NonZero<u32> {
    let now = clock::now();
    let passed = FIRST.with(|first| now.saturating_duration_since(*first.get_or_init(|| now)));
    NonZero::<u32>::MIN.saturating_add((passed.as_millis() / TICK.as_millis()) as u32)
}

/// Whether a read of a file's bytes would not wait. A list reads many records of few pages, and asking costs a system
/// call: a page that was there a moment ago is not asked for again.
pub(super) fn is_cached(file: &File, start: u64, bytes: usize) -> bool {
    let (first, last) = (start / PAGE_BYTES, (start + bytes.max(1) as u64 - 1) / PAGE_BYTES);
    let Some(now) = BEGAN.get().filter(|_| first == last) else {
        return is_cached_now(file, start, bytes);
    };
    let name = (file.as_raw_fd() as u64) << 40 ^ first;
    SEEN.with_borrow_mut(|seen| {
        if seen.is_empty() {
            seen.resize(PAGES, (0, None));
        }
        // Pages of a file follow each other; those of several files are strewn.
        let place = (first ^ (file.as_raw_fd() as u64).wrapping_mul(0x9e37_79b9) >> 8) as usize % PAGES;
        let Some(place) = seen.get_mut(place) else {
            return is_cached_now(file, start, bytes);
        };
        let is_fresh = |at: NonZero<u32>| now.get().wrapping_sub(at.get()) < FRESH_TICKS;
        if place.0 == name && place.1.is_some_and(is_fresh) {
            return true;
        }
        let cached = is_cached_now(file, start, bytes);
        *place = (name, cached.then_some(now));
        cached
    })
}

/// Asks: `preadv2` with `RWF_NOWAIT`, which a map cannot tell.
#[cfg(target_os = "linux")]
fn is_cached_now(file: &File, start: u64, bytes: usize) -> bool {
    let mut room = [0; ASKED_MAX];
    let (asked, _) = room.split_at_mut(bytes.min(ASKED_MAX));
    let length = asked.len();
    let read = rustix::io::preadv2(
        file,
        &mut [IoSliceMut::new(asked)],
        start,
        rustix::io::ReadWriteFlags::NOWAIT,
    );
    read == Ok(length)
}

#[cfg(not(target_os = "linux"))]
fn is_cached_now(_: &File, _: u64, _: usize) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_missed_is_dropped_and_nothing_lingers() {
        assert_eq!(from_memory(|| 1), Some(1));
        let missing = from_memory(|| {
            assert!(only());
            miss();
            2
        });
        assert_eq!(missing, None);
        assert!(!only());
        assert!(!is_from_memory());
        assert_eq!(from_memory(is_from_memory), Some(true));
        assert_eq!(from_memory(give_up), None);
        give_up();
        assert_eq!(from_memory(|| 3), Some(3));
        assert!(std::panic::catch_unwind(|| from_memory(|| panic!("inside"))).is_err());
        assert!(!only());
    }

    #[test]
    fn what_was_just_written_is_in_memory() {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 10_000], 0).unwrap();
        assert!(
            [0, 4_090, 9_936]
                .into_iter()
                .all(|start| is_cached(&file, start, 64))
        );
        // No byte of this is there to be read.
        assert!(!is_cached(&file, 10_000, 1));
    }
}
