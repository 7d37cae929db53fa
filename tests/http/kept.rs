//! Answers that are given again: what is asked over and over is looked up once, and nobody sees an older answer for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quarry::http::Limits;

use crate::caching::targets;
use crate::metrics::figures;
use crate::mined::{Mined, header};

/// So long an answer is given again.
const KEPT_FOR: Duration = Duration::from_secs(1);

const NEW: (&str, &str) = ("cache-control", "max-age=0, No-Cache");

/// Headers without those that differ from answer to answer.
fn headers(response: &hyper::Response<Bytes>) -> BTreeMap<String, String> {
    let own = ["date", "x-request-id"];
    let all = response.headers().iter();
    all.filter(|(name, _)| !own.contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect()
}

/// Rows read for lists of logs, and answers given again.
async fn read_and_given(world: &Mined) -> (f64, f64) {
    let figures = figures(world).await;
    let rows = "quarry_store_visits_total{operation=\"L1,L2,L3\",kind=\"rows\"}";
    (figures[rows], figures["quarry_kept_answers_given_total"])
}

/// Asks as often as it takes for the answer to be one that was kept, and once more.
async fn ask(world: &Mined, target: &str, extra: &[(&str, &str)]) -> hyper::Response<Bytes> {
    for _ in 0..3 {
        world.get(target, extra).await;
    }
    world.get(target, extra).await
}

#[tokio::test]
async fn what_was_kept_is_what_would_be_made_anew() {
    let mut world = Mined::start(40, Limits::default()).await;
    world.mine(0);
    let mut targets = targets(&world);
    let list = format!("/api/logs/get-logs?address={}", world.busiest());
    for number in world.head()..world.head() + 8 {
        targets.push(format!(
            "{list}&fromblock={number}&toblock={}&offset=3",
            number + 1
        ));
    }
    targets.extend(
        [
            "sort=desc",
            "offset=7&page=2",
            "offset=3&sort=desc&toblock=latest",
        ]
        .map(|more| format!("{list}&{more}")),
    );
    for step in 0..9 {
        match step {
            0 => {}
            1 | 3 => world.mine(0),
            2 => world.finalize(40),
            // The node goes on, and the index does not.
            4 => world.node_head_is(world.head() + 3),
            5 => {
                world.unwind();
                world.mine(9);
            }
            6 => world.finalize(41),
            // What is safe moves on, and nothing is written.
            7 => world.safe_is(20),
            _ => world.safe_is(world.head()),
        }
        let (_, before) = read_and_given(&world).await;
        for target in &targets {
            let kept = ask(&world, target, &[]).await;
            let anew = world.get(target, &[NEW]).await;
            assert_eq!(kept.status(), anew.status(), "step {step}: {target}");
            // Refusals name the request.
            if anew.status() == 200 {
                assert_eq!(kept.body(), anew.body(), "step {step}: {target}");
                assert_eq!(headers(&kept), headers(&anew), "step {step}: {target}");
            }
        }
        let (_, after) = read_and_given(&world).await;
        assert!(after >= before + 20.0, "step {step}: {before} {after}");
    }
}

#[tokio::test]
async fn a_page_is_looked_up_once_for_all_who_ask_for_it() {
    let world = Mined::start(40, Limits::default()).await;
    let page = format!("/api/logs/get-logs?address={}&offset=20", world.busiest());
    let gzip = [("accept-encoding", "gzip")];
    // A machine that has much else to do may take longer than answers are kept for.
    let mut tries = 0;
    let (plain, after) = loop {
        let began = Instant::now();
        let plain = ask(&world, &page, &[]).await;
        let coded = ask(&world, &page, &gzip).await;
        assert_eq!(header(&coded, "content-encoding"), Some("gzip"));
        assert_eq!(header(&plain, "content-encoding"), None);
        let before = read_and_given(&world).await;
        for _ in 0..5 {
            let again = world.get(&page, &[]).await;
            assert_eq!((again.body(), headers(&again)), (plain.body(), headers(&plain)));
            let again = world.get(&page, &gzip).await;
            assert_eq!((again.body(), headers(&again)), (coded.body(), headers(&coded)));
        }
        let after = read_and_given(&world).await;
        if began.elapsed() < KEPT_FOR {
            assert_eq!(after, (before.0, before.1 + 10.0));
            break (plain, after);
        }
        tries += 1;
        assert!(tries < 20, "a dozen pages take longer than a second");
        tokio::time::sleep(KEPT_FOR).await;
    };
    let tag = header(&plain, "etag").unwrap().to_owned();
    // Who has it is told so, who wants it anew gets it anew, and HEAD has no body.
    let unchanged = world.get(&page, &[("if-none-match", &tag)]).await;
    assert_eq!(unchanged.status(), 304);
    let anew = world.get(&page, &[NEW]).await;
    assert_eq!(headers(&anew), headers(&plain));
    assert!(read_and_given(&world).await.0 > after.0);
    let head = world.ask("HEAD", &page, &[]).await;
    assert_eq!((head.status().as_u16(), head.body().len()), (200, 0));
    // Another form of the list is another answer.
    let lines = world.get(&page, &[("accept", "application/x-ndjson")]).await;
    assert_eq!(header(&lines, "content-type"), Some("application/x-ndjson"));
}
