//! Counting, and the page that `/metrics` shows. A leaf.
//!
//! Counters are atomics where things happen; nothing is looked up by name there. The page is put together
//! when it is asked for, from whoever has something to tell.

mod histogram;
mod page;
pub mod visits;

pub use histogram::Histogram;
pub use page::{Label, Page};
