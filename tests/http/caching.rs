//! Tags and lifetimes as a cache in between sees them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use quarry::http::Limits;

use crate::mined::{Mined, header};
use crate::plain::account;

const IMMUTABLE: &str = "public, max-age=31536000, immutable";

struct Kept {
    tag: String,
    immutable: bool,
    body: Bytes,
}

/// A shared cache as RFC 9111 has it: keeps what it got, asks again unless that is for ever.
#[derive(Default)]
struct Proxy {
    kept: HashMap<String, Kept>,
    asked: usize,
    unchanged: usize,
}

impl Proxy {
    async fn get(&mut self, world: &Mined, target: &str) -> Bytes {
        if let Some(kept) = self.kept.get(target).filter(|kept| kept.immutable) {
            return kept.body.clone();
        }
        self.asked += 1;
        let tag = self.kept.get(target).map(|kept| kept.tag.clone());
        let conditions: Vec<(&str, &str)> = tag.iter().map(|tag| ("if-none-match", tag.as_str())).collect();
        let response = world.get(target, &conditions).await;
        if response.status() == 304 {
            self.unchanged += 1;
            assert!(response.body().is_empty());
            assert_eq!(header(&response, "content-type"), None);
            let kept = self.kept.get_mut(target).unwrap();
            assert_eq!(header(&response, "etag"), Some(kept.tag.as_str()));
            kept.immutable = header(&response, "cache-control") == Some(IMMUTABLE);
            return kept.body.clone();
        }
        assert_eq!(response.status(), 200, "{target}");
        let kept = Kept {
            tag: header(&response, "etag").unwrap().to_owned(),
            immutable: header(&response, "cache-control") == Some(IMMUTABLE),
            body: response.into_body(),
        };
        self.kept.insert(target.to_owned(), kept);
        self.kept[target].body.clone()
    }
}

/// The balance of an account that something happens to in every other block, in the dialect of Etherscan.
fn balance(tag: &str) -> String {
    let account = account(5);
    format!("/api?module=account&action=balance&address={account}&tag={tag}")
}

/// Every kind of answer: final and not, whole and in frames, by number, by hash and by word.
pub(crate) fn targets(world: &Mined) -> Vec<String> {
    let list = format!("/api/logs/get-logs?address={}", world.busiest());
    let last = world.head();
    let mut targets = vec![
        list.clone(),
        format!("{list}&toblock=20"),
        format!("{list}&toblock=20&offset=5"),
        format!("{list}&offset=5"),
        format!("{list}&toblock={last}"),
        format!("{list}&fromblock={last}&toblock=latest"),
        format!("{list}&toblock=99999999&sort=desc&offset=3"),
        "/api/proxy?action=eth_blockNumber".to_owned(),
        format!("/api/proxy?action=eth_getTransactionCount&address={}", account(1)),
        format!(
            "/api/proxy?action=eth_getTransactionCount&address={}&tag=0x9",
            account(1)
        ),
        "/health".to_owned(),
        // Not `/status`: it counts requests, and is never the same twice.
        "/ready".to_owned(),
        "/".to_owned(),
        "/docs".to_owned(),
    ];
    targets.extend(["finalized", "safe", "earliest", "0x5"].map(balance));
    for tag in [
        "latest",
        "earliest",
        "finalized",
        "safe",
        "0x5",
        "0x28",
        "0x29",
        "0xffff",
    ] {
        targets.push(format!("/api/proxy?action=eth_getBlockByNumber&tag={tag}"));
        targets.push(format!(
            "/api/proxy?action=eth_getBlockTransactionCountByNumber&tag={tag}"
        ));
    }
    for bundle in world
        .bundles
        .iter()
        .filter(|bundle| bundle.block.number() >= last - 3)
    {
        for transaction in bundle.block.transactions.iter().take(2) {
            targets.push(format!("/api/transaction/{}/status", transaction.hash));
            for action in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
                targets.push(format!("/api/proxy?action={action}&txhash={}", transaction.hash));
            }
        }
    }
    for number in [0, 20, last] {
        targets.push(format!("/api/block/{number}/transaction-count"));
        let time = world.bundles[number as usize].block.header.timestamp;
        for closest in ["before", "after"] {
            targets.push(format!(
                "/api/block/timestamp/{time}/block-number?closest={closest}"
            ));
        }
    }
    targets
}

#[tokio::test]
async fn a_cache_never_shows_what_the_service_would_not() {
    let mut world = Mined::start(40, Limits::default()).await;
    world.mine(0);
    let targets = targets(&world);
    let mut proxy = Proxy::default();
    for step in 0..8 {
        match step {
            // Asked again with nothing between.
            0 | 1 => {}
            2 | 3 => world.mine(0),
            4 => world.finalize(40),
            5 => world.mine(0),
            // The newest block is replaced by another of the same number.
            6 => {
                world.unwind();
                world.mine(9);
            }
            _ => world.finalize(41),
        }
        let (asked, unchanged) = (proxy.asked, proxy.unchanged);
        for target in &targets {
            let direct = world.get(target, &[]).await;
            let shown = proxy.get(&world, target).await;
            assert_eq!(direct.status(), 200, "{target}");
            assert_eq!(shown, *direct.body(), "step {step}: {target}");
        }
        let (asked, unchanged) = (proxy.asked - asked, proxy.unchanged - unchanged);
        match step {
            0 => assert_eq!((asked, unchanged), (targets.len(), 0)),
            // What is final is not asked for again; of the rest nothing changed.
            1 => assert!(asked == unchanged && asked < targets.len(), "{asked} {unchanged}"),
            _ => assert!(
                unchanged > 0 && unchanged <= asked,
                "step {step}: {asked} {unchanged}"
            ),
        }
    }
}

#[tokio::test]
async fn what_is_final_keeps_its_tag_and_what_counts_from_the_head_does_not() {
    let mut world = Mined::start(40, Limits::default()).await;
    let list = format!("/api/logs/get-logs?address={}", world.busiest());
    let (whole_chain, settled) = (list.clone(), format!("{list}&toblock=39"));
    let first = world.get(&settled, &[]).await;
    assert_eq!(
        header(&first, "transfer-encoding"),
        Some("chunked"),
        "several frames"
    );
    assert_eq!(header(&first, "cache-control"), Some(IMMUTABLE));
    let open = world.get(&whole_chain, &[]).await;
    assert_eq!(header(&open, "cache-control"), Some("public, no-cache"));
    assert_eq!(first.body(), open.body());
    assert_ne!(header(&first, "etag"), header(&open, "etag"));
    let (settled_tag, open_tag) = (header(&first, "etag").unwrap(), header(&open, "etag").unwrap());

    for tag in [
        open_tag.to_owned(),
        format!("\"x\", W/{open_tag}"),
        "*".to_owned(),
    ] {
        let again = world.get(&whole_chain, &[("if-none-match", &tag)]).await;
        assert_eq!((again.status().as_u16(), again.body().len()), (304, 0), "{tag}");
    }
    world.mine(0);
    let again = world.get(&whole_chain, &[("if-none-match", open_tag)]).await;
    assert_eq!(again.status(), 200);
    assert!(again.body().len() > open.body().len());
    let again = world.get(&settled, &[("if-none-match", settled_tag)]).await;
    assert_eq!(again.status(), 304);
    assert_eq!(header(&again, "cache-control"), Some(IMMUTABLE));
    assert_eq!(header(&again, "x-indexed-block-number"), Some("40"));
    // Other parameters, another answer.
    let other = format!("{settled}&sort=desc");
    assert_eq!(
        world
            .get(&other, &[("if-none-match", settled_tag)])
            .await
            .status(),
        200
    );

    // A block that is not final yet becomes so.
    let newest = "/api/block/40/transaction-count";
    let fresh = world.get(newest, &[]).await;
    assert_eq!(header(&fresh, "cache-control"), Some("public, no-cache"));
    world.finalize(40);
    assert_eq!(
        header(&world.get(newest, &[]).await, "cache-control"),
        Some(IMMUTABLE)
    );
}

/// A word means another block later: no cache keeps its answer for good, and no tag confirms it.
#[tokio::test]
async fn a_balance_by_a_word_is_asked_for_again() {
    let mut world = Mined::start(40, Limits::default()).await;
    world.mine(0);
    world.mine(0);
    let words = ["finalized", "safe", "latest", "pending"];
    let mut before = Vec::new();
    for word in words {
        let answer = world.get(&balance(word), &[]).await;
        assert_eq!(header(&answer, "x-balance-source"), Some("ledger"), "{word}");
        assert_eq!(
            header(&answer, "cache-control"),
            Some("public, no-cache"),
            "{word}"
        );
        before.push(answer);
    }
    assert_eq!(before[0].body(), world.get(&balance("39"), &[]).await.body());
    world.finalize(41);
    world.mine(0);
    world.mine(0);
    for (word, before) in words.into_iter().zip(&before) {
        let tag = header(before, "etag").unwrap();
        let answer = world.get(&balance(word), &[("if-none-match", tag)]).await;
        assert_eq!(answer.status(), 200, "{word}");
        assert_ne!(answer.body(), before.body(), "{word}");
    }
    for number in ["earliest", "0x0", "0x5", "5", "41"] {
        let answer = world.get(&balance(number), &[]).await;
        assert_eq!(header(&answer, "cache-control"), Some(IMMUTABLE), "{number}");
        let tag = header(&answer, "etag").unwrap();
        let again = world.get(&balance(number), &[("if-none-match", tag)]).await;
        assert_eq!(again.status(), 304, "{number}");
    }
    // Not final yet.
    let answer = world.get(&balance("42"), &[]).await;
    assert_eq!(header(&answer, "cache-control"), Some("public, no-cache"));
}

#[tokio::test]
async fn unchanged_lists_are_not_looked_up() {
    let world = Mined::start(40, Limits::default()).await;
    let rows = async |world: &Mined| {
        let page = world.get("/metrics", &[]).await;
        let page = String::from_utf8(page.into_body().to_vec()).unwrap();
        let line = "quarry_store_visits_total{operation=\"L1,L2,L3\",kind=\"rows\"} ";
        let found = page.lines().find_map(|text| text.strip_prefix(line));
        found.unwrap_or_else(|| panic!("{page}")).parse::<u64>().unwrap()
    };
    for end in ["", "&toblock=30"] {
        let list = format!("/api/logs/get-logs?address={}{end}", world.busiest());
        let before = rows(&world).await;
        let first = world.get(&list, &[]).await;
        let read = rows(&world).await;
        assert!(read > before + 100, "{before} {read}");
        let tag = header(&first, "etag").unwrap();
        let again = world.get(&list, &[("if-none-match", tag)]).await;
        assert_eq!(again.status(), 304);
        assert_eq!(rows(&world).await, read, "a 304 read rows");
    }
}

/// The node goes on and the index does not: what reaches above it was all there is, and is not any more.
#[tokio::test]
async fn a_list_that_is_refused_now_is_not_confirmed() {
    let world = Mined::start(40, Limits::default()).await;
    let head = world.head();
    world.node_head_is(head);
    let list = format!("/api/logs/get-logs?address={}", world.busiest());
    for (end, refused) in [
        (format!("&toblock={}", head + 3), true),
        (format!("&toblock=%34{}", head + 3 - 40), true),
        (format!("&toblock={:0>24}", head + 3), true),
        (format!("&toblock={}", head + 4), false),
        (format!("&toblock={head}"), false),
        (String::new(), false),
    ] {
        world.node_head_is(head);
        let target = format!("{list}{end}");
        let first = world.get(&target, &[]).await;
        assert_eq!(header(&first, "transfer-encoding"), Some("chunked"), "{target}");
        let tag = header(&first, "etag").unwrap();
        let again = async || {
            world
                .get(&target, &[("if-none-match", tag)])
                .await
                .status()
                .as_u16()
        };
        assert_eq!(again().await, 304, "{target}");
        world.node_head_is(head + 3);
        let now = world.get(&target, &[]).await.status();
        assert_eq!(now, if refused { 503 } else { 200 }, "{target}");
        assert_eq!(again().await, if refused { 503 } else { 304 }, "{target}");
    }
}

/// The node goes on while a list is made: its tag is of how far that was for its rows.
#[tokio::test]
async fn a_list_has_the_tag_of_what_it_was_made_of() {
    let world = Mined::start(40, Limits::default()).await;
    let head = world.head();
    let end = head + 3;
    let target = format!("/api/logs/get-logs?address={}&toblock={end}", world.busiest());
    world.node_head_is(head);
    let first = world.get(&target, &[]).await;
    let tag = header(&first, "etag").unwrap();
    let (status, is_over) = (Arc::clone(&world.status), Arc::new(AtomicBool::new(false)));
    let over = Arc::clone(&is_over);
    let node = std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            for number in [end, head] {
                status.set_node_head(number);
            }
        }
    });
    // A busy machine may leave the node's thread where it is for many requests.
    let mut tags = Vec::new();
    for asked in 0..30_000 {
        if asked >= 300 && tags.len() > 30 {
            break;
        }
        let reply = world.get(&target, &[("cache-control", "no-cache")]).await;
        if reply.status() == 200 {
            tags.push(header(&reply, "etag").unwrap().to_owned());
        }
    }
    is_over.store(true, Ordering::Relaxed);
    node.join().unwrap();
    assert!(tags.len() > 30, "{}", tags.len());
    assert!(tags.iter().all(|one| one == tag));
}

#[tokio::test]
async fn errors_are_not_kept() {
    let world = Mined::start(5, Limits::default()).await;
    for (target, status) in [
        ("/api/block/9/transaction-count", 404),
        ("/api/block/x/transaction-count", 400),
        ("/nowhere", 404),
        ("/api/proxy?action=eth_blockNumber&chain=testnet", 503),
    ] {
        let response = world.get(target, &[("if-none-match", "*")]).await;
        assert_eq!(response.status(), status, "{target}");
        assert_eq!(header(&response, "cache-control"), Some("no-store"), "{target}");
        assert_eq!(header(&response, "etag"), None, "{target}");
    }
}
