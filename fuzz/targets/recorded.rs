//! A recorded chain as it lies in a file, plain or compressed: every line is a block or refused.

use std::io::Cursor;

use quarry::node::recorded::RecordedChain;
use quarry::sync::verify::{Rules, verify};

/// Lines that are looked at: a few bytes can unpack to very many.
const LINES_MAX: usize = 64;

/// Reads `data`.
pub(crate) fn run(data: &[u8]) {
    let Ok(chain) = RecordedChain::from_reader(Cursor::new(data.to_vec())) else {
        return;
    };
    let mut parent = None;
    for line in chain.take(LINES_MAX) {
        let Ok(line) = line else { return };
        if let Ok(bundle) = line.parse() {
            std::hint::black_box(verify(&bundle, parent, &Rules::default()).is_ok());
            parent = Some(bundle.block.hash);
        }
    }
}
