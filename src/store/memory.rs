//! Reading without waiting for a disk.
//!
//! Handing a look-up to another thread and taking its answer back costs more than a look-up whose blocks lie in
//! the cache. So it may be tried where it was asked for: reads under [`from_memory`] end where they would have to
//! wait, and nothing of such an attempt is used.

use std::cell::Cell;

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
}

/// Does `work` without waiting for a disk; `None` where it needed something that is not in memory. What became of
/// the work is then dropped: failures of its reads may have been taken for absence, so no part of it counts.
pub fn from_memory<T>(work: impl FnOnce() -> T) -> Option<T> {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            MODE.set(Mode::Disk);
        }
    }
    // Also where the work panics.
    let _restore = Restore;
    MODE.set(Mode::Memory);
    let done = work();
    (MODE.get() == Mode::Memory).then_some(done)
}

/// Whether reads of this thread must not wait.
#[inline]
pub(super) fn only() -> bool {
    MODE.get() != Mode::Disk
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
        miss();
        assert_eq!(from_memory(|| 3), Some(3));
        assert!(std::panic::catch_unwind(|| from_memory(|| panic!("inside"))).is_err());
        assert!(!only());
    }
}
