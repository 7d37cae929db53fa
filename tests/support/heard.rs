//! Takes down what an audit says.
#![allow(unreachable_pub, reason = "each test binary uses a part of it")]

use std::sync::Mutex;

use quarry::audit::{Mismatch, Observer};

/// The mismatches that were told.
#[derive(Default)]
pub struct Heard(pub Mutex<Vec<Mismatch>>);

impl Observer for Heard {
    fn begins(&self, _: &'static str, _: u64) {}
    fn advances(&self, _: u64) {}
    fn mismatch(&self, mismatch: &Mismatch) {
        self.0.lock().unwrap().push(mismatch.clone());
    }
}
