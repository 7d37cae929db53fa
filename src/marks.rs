//! What came once, remembered by a mark of it, so that what comes a second time is known. A leaf.

use std::sync::atomic::{AtomicU64, Ordering};

/// A bounded number of marks. Each has its place among them by its digest, and one that came later takes it from another one:
/// what comes again soon enough is known, what comes once takes eight bytes.
#[derive(Debug)]
pub struct Marks(Box<[AtomicU64]>);

impl Marks {
    /// Room for so many.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self((0..places).map(|_| AtomicU64::new(0)).collect())
    }

    /// Whether something with this digest came not long ago; it has come now.
    pub fn came_before(&self, digest: u64) -> bool {
        self.0
            .get(digest as usize % self.0.len().max(1))
            .is_some_and(|place| place.swap(digest, Ordering::Relaxed) == digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_is_known_until_another_takes_its_place() {
        let marks = Marks::new(8);
        assert_eq!(
            [1, 2, 1, 1].map(|digest| marks.came_before(digest)),
            [false, false, true, true]
        );
        assert!(!marks.came_before(9));
        assert!(!marks.came_before(1));
        assert!(marks.came_before(2));
        assert!(!Marks::new(0).came_before(1));
    }
}
