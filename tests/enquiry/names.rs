//! Names, which wait for nothing, and are all that is asked of tokens that are older than the store.

use crate::branches::exact_at;
use crate::support::index::until;
use crate::support::played::{demo_bundles, true_tokens};
use crate::{Desk, eager, fill, named};
use quarry::enquiry::EnquiryOptions;
use quarry::model::token::TRANSFER;
use quarry::model::{Address, B256, Log, TokenVerdict, Topics, U256};
use quarry::query::Reader;
use quarry::store::Refreshed;
use std::time::Duration;

/// More than the jobs that may wait.
const MANY: u64 = 2_100;

/// While the index is far behind its node nothing is compared; all names are asked for.
#[tokio::test(flavor = "multi_thread")]
async fn names_do_not_wait_for_verdicts() {
    let mut bundles = demo_bundles();
    let last = bundles.iter().rposition(|bundle| !bundle.receipts.is_empty());
    let mut newest = bundles.split_off(last.unwrap());
    let many: Vec<Address> = (1..=MANY)
        .map(|number| Address::repeat_byte(0x70).into_word() ^ B256::from(U256::from(number)))
        .map(Address::from_word)
        .collect();
    let minted = many.iter().map(|token| Log {
        address: *token,
        topics: Topics::new(&[TRANSFER, B256::ZERO, token.into_word()]).unwrap(),
        data: U256::from(5).to_be_bytes_vec().into(),
    });
    newest[0].receipts[0].logs.extend(minted);
    let mut desk = Desk::up_to(Some(bundles.len() - 1), Some(20)).await;
    fill(&desk.store, newest, bundles.len() as u64 - 20).await;
    desk.status.set_node_head(desk.head() + 1_000);
    desk.start(eager()).await;
    until("all names are asked for", || {
        let mut many = many.iter();
        many.all(|token| desk.observed.metadata(token).is_some())
    })
    .await;
    let tokens = true_tokens();
    let coin = &named(&tokens, "coin").address;
    assert_eq!(desk.observed.verdict(coin), None);
    desk.status.set_node_head(desk.head());
    until("it is compared", || desk.observed.verdict(coin).is_some()).await;
    desk.stop().await;
}

/// A token that the store has not all logs of is asked for its name alone, also where an earlier version formed a verdict: no answer is made of anything
/// else that its contract says.
#[tokio::test(flavor = "multi_thread")]
async fn of_tokens_older_than_the_store_names_alone_are_asked() {
    const FIRST: usize = 14;
    let bundles = demo_bundles();
    let (tail, middle) = (20, bundles.len() - 60);
    let mut desk = Desk::between(FIRST, Some(middle), Some(tail)).await;
    let tokens = true_tokens();
    let reader = Reader::new(desk.store.view());
    let (young, old): (Vec<_>, Vec<_>) = tokens
        .iter()
        .filter_map(|truth| reader.token(&truth.address).unwrap())
        .partition(|token| token.is_whole());
    assert!(3 <= young.len() && 3 <= old.len(), "{young:?} {old:?}");
    let toll = named(&tokens, "toll").address;
    let of_before = TokenVerdict {
        exact: false,
        ..exact_at(desk.store.view().head().unwrap())
    };
    desk.observed.put_verdict(&toll, &of_before);
    desk.start(EnquiryOptions {
        round_pause: Duration::from_millis(50),
        ..eager()
    })
    .await;
    let is_asked = |desk: &Desk| {
        let mut all = young.iter().chain(&old);
        all.all(|token| desk.observed.metadata(&token.address).is_some())
            && (young.iter()).all(|token| desk.observed.verdict(&token.address).is_some())
    };
    until("all are asked", || is_asked(&desk)).await;
    // They move.
    let moved = &bundles[middle + 1..];
    let touches = |token: &Address| {
        let mut logs = moved.iter().flat_map(|bundle| &bundle.receipts);
        logs.any(|receipt| receipt.logs.iter().any(|log| log.address == *token))
    };
    assert!(touches(&toll) && old.iter().filter(|token| touches(&token.address)).count() > 1);
    fill(
        &desk.store,
        moved.to_vec(),
        (bundles.len() - tail as usize) as u64,
    )
    .await;
    // Twenty rounds over all tokens.
    tokio::time::sleep(Duration::from_secs(1)).await;
    desk.stop().await;
    for token in &old {
        let address = &token.address;
        assert_eq!(desk.node.calls_of(address), 3, "{address}");
        assert_eq!(desk.observed.refreshed(address), Refreshed::default());
        assert_eq!(desk.observed.verdict(address).is_some(), *address == toll);
    }
}
