//! How soon a service that nobody tuned knows what moved.

use crate::branches::exact_at;
use crate::support::played::{demo_bundles, true_tokens};
use crate::{Desk, fill, named};
use quarry::enquiry::EnquiryOptions;
use quarry::model::{Address, TokenVerdict, U256};
use quarry::query::Reader;
use quarry::store::ToldBalance;
use std::time::{Duration, Instant};

/// What `--token-checks` is where it is not given.
const PER_SECOND: u32 = 100;
/// As answers.md has it of a chain that is quiet after the transfer.
const WITHIN: Duration = Duration::from_secs(15);

/// Holders of a token that is not exact are asked for again as soon as blocks touch them, however far the next round is.
#[tokio::test(flavor = "multi_thread")]
async fn holders_that_moved_are_known_in_time() {
    const LAST: u64 = 340;
    let tokens = true_tokens();
    let toll = named(&tokens, "toll");
    let mut desk = Desk::up_to(Some(LAST as usize), Some(20)).await;
    let newest = demo_bundles().split_off(LAST as usize + 1);
    let end = LAST + newest.len() as u64;
    let moved = |holder: &&Address| toll.balance(holder, LAST) != toll.balance(holder, end);
    let holders: Vec<Address> = toll.balances.iter().map(|(holder, _)| *holder).collect();
    assert!(holders.iter().filter(moved).count() > 2);
    let verdict = TokenVerdict {
        exact: false,
        reason: "it takes a fee".to_owned(),
        ..exact_at(desk.store.view().head().unwrap())
    };
    desk.observed.put_verdict(&toll.address, &verdict);
    let told: Vec<ToldBalance> = holders
        .iter()
        .map(|&holder| ToldBalance {
            holder,
            balance: toll.balance(&holder, LAST),
            block: LAST,
        })
        .collect();
    desk.observed
        .put_balances(&toll.address, &told, Some((None, true)));

    desk.start(EnquiryOptions::new(PER_SECOND)).await;
    // What it asks for at its start would tell of these, too.
    let mut calls = 0;
    while calls == 0 || calls != desk.node.calls() {
        calls = desk.node.calls();
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    fill(&desk.store, newest, end - 20).await;
    let began = Instant::now();
    let late = |desk: &Desk| {
        let reader = Reader::new(desk.store.view());
        let token = reader.token(&toll.address).unwrap().unwrap();
        let mut known = reader.ledger_holders_ever(&token, None, 10_000).unwrap();
        known.retain(|holder| {
            let told = desk.observed.balance(&toll.address, holder);
            told.map_or(U256::ZERO, |(balance, _)| balance) != toll.balance(holder, end)
        });
        known
    };
    loop {
        let late = late(&desk);
        if late.is_empty() {
            break;
        }
        assert!(began.elapsed() < WITHIN, "in vain: {late:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    desk.stop().await;
}
