//! Records of blocks that are not final: in pages, which the writer shares with the views that readers hold.
//!
//! A view is made for every block. In one piece all records would be copied for each of them, and a chain whose
//! blocks become final late has megabytes of them; so no more is copied than the page that grows.

use std::sync::Arc;

/// Records of a page.
const PAGE_RECORDS: usize = 512;

/// What an array holds after its file.
#[derive(Clone, Debug)]
pub(super) struct TailPages {
    /// All but the last are full.
    pages: Vec<Arc<Vec<u8>>>,
    /// Bytes of the first page that are in the file by now.
    gone: usize,
    bytes: usize,
    page_bytes: usize,
}

impl TailPages {
    /// Nothing, of records of `width` bytes.
    pub(super) const fn new(width: usize) -> Self {
        Self {
            pages: Vec::new(),
            gone: 0,
            bytes: 0,
            page_bytes: width * PAGE_RECORDS,
        }
    }

    /// Bytes of all records.
    pub(super) const fn len(&self) -> usize {
        self.bytes
    }

    /// `width` bytes from `start` on, which lie in one record.
    #[inline]
    pub(super) fn get(&self, start: usize, width: usize) -> Option<&[u8]> {
        let at = self.gone + start;
        let (page, at) = (at / self.page_bytes, at % self.page_bytes);
        self.pages.get(page)?.get(at..at + width)
    }

    /// All bytes, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(self.gone).chain(std::iter::repeat(0));
        self.pages
            .iter()
            .zip(starts)
            .map(|(page, start)| page.get(start..).unwrap_or(&[]))
    }

    /// Appends whole records.
    pub(super) fn push(&mut self, mut records: &[u8]) {
        self.bytes += records.len();
        while !records.is_empty() {
            let full = self.page_bytes;
            let page = match self.pages.last_mut() {
                Some(page) if page.len() < full => page,
                _ => self.pages.push_mut(Arc::default()),
            };
            // A view may hold the page: `make_mut` copies it then.
            let page = Arc::make_mut(page);
            let (now, later) = records.split_at(records.len().min(full - page.len()));
            page.extend_from_slice(now);
            records = later;
        }
    }

    /// Takes the last `bytes`, whole records, off.
    pub(super) fn pop(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        let end = self.gone + self.bytes;
        self.pages.truncate(end.div_ceil(self.page_bytes));
        if let Some(before) = self.pages.len().checked_sub(1)
            && let Some(last) = self.pages.last_mut()
        {
            Arc::make_mut(last).truncate(end - before * self.page_bytes);
        }
    }

    /// Forgets the first `bytes`, whole records, which are in the file.
    pub(super) fn forget(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.gone += bytes;
        let pages = self.gone / self.page_bytes;
        self.pages.drain(..pages.min(self.pages.len()));
        self.gone -= pages * self.page_bytes;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Pop(usize),
        Forget(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let records = 0..3 * PAGE_RECORDS;
        let step = prop_oneof![
            4 => records.clone().prop_map(Step::Push),
            1 => records.clone().prop_map(Step::Pop),
            2 => records.prop_map(Step::Forget),
        ];
        proptest::collection::vec(step, 1..24)
    }

    proptest! {
        #[test]
        fn pages_hold_what_one_piece_would(width in 1_usize..20, steps in steps()) {
            let (mut tail, mut model, mut next) = (TailPages::new(width), Vec::new(), 0_u64);
            let mut views = Vec::new();
            for step in steps {
                match step {
                    Step::Push(records) => {
                        let bytes = (0..records * width).map(|_| { next += 1; ((next * 31) >> 3) as u8 });
                        let bytes: Vec<u8> = bytes.collect();
                        tail.push(&bytes);
                        model.extend_from_slice(&bytes);
                    }
                    Step::Pop(records) => {
                        let bytes = (records * width).min(model.len());
                        tail.pop(bytes);
                        model.truncate(model.len() - bytes);
                    }
                    Step::Forget(records) => {
                        let bytes = (records * width).min(model.len());
                        tail.forget(bytes);
                        model.drain(..bytes);
                    }
                }
                views.push((tail.clone(), model.clone()));
            }
            // A view stays as it was made, whatever was done after.
            for (view, model) in views {
                prop_assert_eq!(view.len(), model.len());
                prop_assert_eq!(view.parts().collect::<Vec<_>>().concat(), model.clone());
                for (record, bytes) in model.chunks(width).enumerate() {
                    prop_assert_eq!(view.get(record * width, width), Some(bytes));
                }
                prop_assert_eq!(view.get(model.len(), width), None);
            }
        }
    }

    #[test]
    fn no_more_is_copied_than_the_page_that_grows() {
        let mut tail = TailPages::new(8);
        tail.push(&vec![7; 8 * PAGE_RECORDS * 3 + 8]);
        let view = tail.clone();
        tail.push(&[9; 8]);
        let shared = tail.pages.iter().zip(&view.pages);
        let shared: Vec<bool> = shared.map(|(ours, theirs)| Arc::ptr_eq(ours, theirs)).collect();
        assert_eq!(shared, [true, true, true, false]);
    }
}
