//! What is said of traces that are fetched after their blocks were stored.

use crate::engine::stored_without_traces;
use crate::rig::Rig;
use crate::support::fake_node::Methods;

/// Runs to block 80, the last final one, and leaves no word of a fill.
async fn ends_at_80_without_a_word(rig: &mut Rig) {
    rig.options.stop_at = Some(80);
    rig.start().await;
    rig.ended().await.unwrap();
    assert_eq!((rig.next_block(), rig.store().view().has_traces()), (81, true));
    assert_eq!(rig.status().filling_to(), None);
    let message = rig.status().message();
    assert!(!message.contains("traces"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fill_that_is_over_is_not_told_of() {
    let mut rig = Rig::new(78);
    stored_without_traces(&mut rig).await;
    ends_at_80_without_a_word(&mut rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_fill_is_told_of_where_all_final_blocks_have_traces() {
    let mut rig = Rig::new(79);
    rig.fake.mine(80);
    rig.fake.set_finalized(80);
    rig.start().await;
    rig.check("with traces").await;
    rig.stop().await.unwrap();
    rig.fake.set_methods(Methods {
        trace_block: false,
        debug_trace: false,
        ..Methods::default()
    });
    rig.fake.mine(20);
    rig.start().await;
    rig.synced().await;
    assert_eq!(rig.store().view().checkpoint().next_traced, 81);
    rig.stop().await.unwrap();
    rig.fake.set_methods(Methods::default());
    ends_at_80_without_a_word(&mut rig).await;
}
