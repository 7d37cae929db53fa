//! Who takes part in a block, and on which day it lies.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::collections::BTreeSet;

use quarry::model::{Address, Bundle, Day, FrameKind};

/// The UTC day of a block.
pub fn day(bundle: &Bundle) -> Day {
    Day::of(bundle.block.header.timestamp)
}

/// Everybody who takes part in a block (answers.md section 6, S5).
pub fn participants(bundle: &Bundle) -> BTreeSet<Address> {
    let mut all = BTreeSet::new();
    if bundle.block.number() == 0 {
        return all;
    }
    all.insert(bundle.block.header.beneficiary);
    for withdrawal in bundle.block.withdrawals.iter().flatten() {
        all.insert(withdrawal.address);
    }
    for transaction in &bundle.block.transactions {
        all.insert(transaction.from);
        all.extend(transaction.to);
    }
    let frames = bundle.traces.iter().flatten().flat_map(|trace| &trace.frames);
    for frame in frames.filter(|frame| !frame.reverted) {
        let moves = !frame.value.is_zero();
        match frame.kind {
            FrameKind::Call | FrameKind::SelfDestruct if moves => {
                all.insert(frame.from);
                all.extend(frame.to);
            }
            FrameKind::Create | FrameKind::Create2 => {
                all.extend(frame.to);
                all.extend(Some(frame.from).filter(|_| moves));
            }
            _ => {}
        }
    }
    all
}
