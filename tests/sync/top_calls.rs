//! Top calls that are not those of their transactions: refused by either trace method, never stored, asked for again.

use crate::rig::Rig;
use crate::support::build::INTRINSIC_GAS;
use crate::support::fake_node::{Fault, Methods};
use crate::support::fault::Wrong;
use crate::support::index::until;
use quarry::model::Bundle;

/// Whether a block has a transaction of which this can be said wrongly.
fn concerns(wrong: Wrong, bundle: &Bundle) -> bool {
    let outcomes = || bundle.receipts.iter().map(|receipt| receipt.status);
    match wrong {
        Wrong::Value | Wrong::Input => !bundle.receipts.is_empty(),
        Wrong::Failed => outcomes().any(|status| status == Some(true)),
        Wrong::Succeeded => outcomes().any(|status| status == Some(false)),
    }
}

async fn refuses(wrong: Wrong, trace_block: bool, reason: &str) {
    let what = format!("{wrong:?}, trace_block: {trace_block}");
    let mut rig = Rig::new(77);
    rig.fake.set_methods(Methods {
        trace_block,
        ..Methods::default()
    });
    rig.fake.mine(10);
    rig.start().await;
    rig.synced().await;
    rig.fake.fault(Fault::WrongTop(wrong), u64::MAX);
    rig.fake.mine(30);
    let of_node = rig.fake.bundles();
    let mut new = of_node[11..].iter();
    let first = new.find(|bundle| concerns(wrong, bundle)).expect("such a block");
    let first = first.block.number();
    until("the block before is stored", || rig.next_block() == first).await;
    // It is looked at again, and again.
    until("it is refused", || {
        rig.status().verification_failures() > 2 && rig.status().message().contains(reason)
    })
    .await;
    let said = rig.status().message();
    assert!(
        said.contains(&format!("block {first} does not verify")),
        "{what}: {said}"
    );
    assert_eq!(rig.next_block(), first, "{what}");
    let mut chain = of_node.clone();
    if !trace_block {
        // The call tracer states the intrinsic gas of the top call too.
        for trace in chain
            .iter_mut()
            .flat_map(|bundle| bundle.traces.iter_mut().flatten())
        {
            trace.frames[0].gas += INTRINSIC_GAS;
            trace.frames[0].gas_used += INTRINSIC_GAS;
        }
    }
    rig.equals(&chain[..first as usize], &what).await;
    rig.fake.clear_faults();
    rig.synced().await;
    rig.equals(&chain, &what).await;
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_top_call_that_is_not_its_transaction_is_refused() {
    for trace_block in [true, false] {
        for (wrong, reason) in [
            (Wrong::Value, "is of a call with the value 30487"),
            (Wrong::Input, "with another input"),
            (
                Wrong::Failed,
                "that failed (reverted), but its receipt has the status 1",
            ),
            (
                Wrong::Succeeded,
                "that succeeded, but its receipt has the status 0",
            ),
        ] {
            refuses(wrong, trace_block, reason).await;
        }
    }
}
