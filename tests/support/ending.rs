//! Threads beside a test go on until it ends, however it ends.

use std::sync::atomic::{AtomicBool, Ordering};

/// Tells the threads of a scope to end when it goes: a scope waits for them, also where an assertion failed.
pub struct Ending<'a>(pub &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
