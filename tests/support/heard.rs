//! Takes down what an audit says.
#![allow(unreachable_pub, reason = "each test binary uses a part of it")]

use std::sync::Mutex;

use quarry::audit::{Audit, Mismatch, Observer};
use quarry::model::{B256, BlockRange};
use quarry::store::Store;
use quarry::sync::ChainRules;

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

/// What one check of an audit says of a store of a plain chain, whose blocks are not sealed, of which other checks complain.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub fn complaints(store: &Store, check: &str) -> Vec<String> {
    let heard = Heard::default();
    let rules = ChainRules::new(7, B256::repeat_byte(1), None, 0, true).verify;
    let range = BlockRange::new(0, store.view().head().unwrap().number).unwrap();
    let _ = Audit::new(store.view(), range, rules, &heard).run();
    let heard = heard.0.into_inner().unwrap().into_iter();
    let told = heard.filter(|mismatch| mismatch.check == check);
    told.map(|mismatch| mismatch.text).collect()
}
