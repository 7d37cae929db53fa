//! Etherscan's dialect over connections of our own.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use quarry::model::token::{DEPOSIT, NATIVE_LOGS, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE};
use quarry::model::{Address, B256, Bundle, FrameKind, Log, Topics, U256};
use serde_json::{Value, json};

use crate::chain::{HEAD, World};
use crate::ledger::{Blocks, Deed, call, rules, who};
use crate::plain::{self, ChainConfig, Rng, account, topic};

/// A form has room for a hundred thousand parameters; those that it may have are read, whatever they are.
#[tokio::test]
async fn forms_of_too_many_pairs_are_refused() {
    let world = World::start(HEAD + 1, None).await;
    let target = format!("/api?apikey=1{}", "&tag=1".repeat(1_300));
    let asked = format!("module=account&action=balance&address={}", account(1));
    let refused =
        r#"{"status":"0","message":"NOTOK","result":"Error! At most 1000 parameters of a form are allowed"}"#;
    for pair in ["gas=1&", "zzz=1&", "a&", "&"] {
        let most = format!("{}{asked}", pair.repeat(997));
        let reply = world.server.post(&target, &most).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert!(reply.body.contains("Duplicate parameter: tag"), "{}", reply.body);
        for count in [998, 43_000] {
            let many = format!("{}{asked}", pair.repeat(count));
            let reply = world.server.post(&target, &many).await;
            assert_eq!((reply.status, reply.body.as_str()), (200, refused), "{pair}");
        }
    }
    // What a refusal looks like is of the module that the form named.
    for (module, begins) in [("proxy", r#"{"jsonrpc""#), ("account", r#"{"status":"0""#)] {
        for action in ["eth_getTransactionCount", "balance", "none"] {
            let form = format!("module={module}&action={action}&address=1&tag=1");
            let reply = world.server.post("/api", &form).await;
            assert!(reply.body.starts_with(begins), "{form}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn the_list_of_chains_says_where_its_client_found_it() {
    let world = World::start(HEAD + 1, None).await;
    let reply = world.server.get("/v2/chainlist").await;
    let url = |body: &str| {
        let list: Value = serde_json::from_str(body).unwrap();
        list["result"][0]["apiurl"].as_str().unwrap().to_owned()
    };
    assert_eq!(url(&reply.whole_body()), "http://test/v2/api?chainid=7");
    // Over HTTP/2 there is no header that says it.
    let io = hyper_util::rt::TokioIo::new(world.server.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::get("http://explorer.example:8080/v2/chainlist");
    let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert_eq!(url(&body), "http://explorer.example:8080/v2/api?chainid=7");
}

/// A form has room for thousands of topics, and each may call for a list in each of the operators.
#[tokio::test]
async fn forms_of_too_many_topics_are_refused() {
    let world = World::start(HEAD + 1, None).await;
    let ask = async |counts: [u64; 4], operators: &str| {
        let topics = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let topics = topics.map(|(position, &count)| {
            let values: Vec<String> = (0..count).map(|n| topic(n).to_string()).collect();
            format!("&topic{position}={}", values.join(","))
        });
        let form = format!(
            "module=logs&action=getLogs{}{operators}",
            topics.collect::<String>()
        );
        world.server.post("/api", &form).await.whole_body()
    };
    let or =
        "&topic0_1_opr=or&topic1_2_opr=or&topic2_3_opr=or&topic0_2_opr=or&topic0_3_opr=or&topic1_3_opr=or";
    for (counts, operators, refused) in [
        ([1_000, 1_000, 0, 0], "", None),
        (
            [0, 0, 1_001, 0],
            "",
            Some("At most 1000 values of topic2 are allowed"),
        ),
        // Each topic is in three of the six.
        ([341; 4], or, None),
        (
            [342; 4],
            or,
            Some("At most 4096 topic values are allowed, those of a topic once for each of its operators"),
        ),
        ([342; 4], &or.replace("or&", "and&"), None),
    ] {
        let body = ask(counts, operators).await;
        match refused {
            Some(text) => assert!(body.contains(text), "{counts:?}: {body}"),
            None => assert!(!body.contains("At most"), "{counts:?}: {body}"),
        }
    }
}

#[tokio::test]
async fn numbers_are_taken_and_said_as_they_are() {
    let world = World::start(HEAD + 1, None).await;
    let balance = format!("module=account&action=balance&address={}", account(1));
    for (id, is_taken) in [
        ("7", true),
        ("007", true),
        ("+7", true),
        ("%2B7", false),
        ("0x7", false),
    ] {
        let (_, body) = world.get(&format!("/v2/api?chainid={id}&{balance}")).await;
        assert_eq!(body["status"], if is_taken { "1" } else { "0" }, "{id}: {body}");
    }
    let beyond = "9".repeat(90);
    for (given, shown, remaining) in [
        ("0061", "61", Some("2")),
        (
            "18446744073709551615",
            "18446744073709551615",
            Some("18446744073709551556"),
        ),
        (
            "99999999999999999999",
            "99999999999999999999",
            Some("99999999999999999940"),
        ),
        (&*beyond, &*beyond, None),
    ] {
        let target = format!("/api?module=block&action=getblockcountdown&blockno={given}");
        let (_, body) = world.get(&target).await;
        let result = &body["result"];
        assert_eq!(result["CountdownBlock"], shown, "{body}");
        assert_eq!(result["CurrentBlock"], HEAD.to_string());
        if let Some(remaining) = remaining {
            assert_eq!(result["RemainingBlock"], remaining, "{body}");
        }
    }
}

/// The result of an action that succeeds.
async fn result(world: &World, query: &str) -> Value {
    let (reply, mut body) = world.get(&format!("/api?{query}")).await;
    let result = body["result"].take();
    let told = json!({"status": "1", "message": "OK", "result": null});
    assert_eq!((reply.status, body), (200, told), "{query}: {result}");
    result
}

/// The text of a refusal.
async fn refusal(world: &World, query: &str) -> String {
    let (reply, body) = world.get(&format!("/api?{query}")).await;
    let told = (reply.status, &body["status"], &body["message"]);
    assert_eq!(told, (200, &json!("0"), &json!("NOTOK")), "{query}: {body}");
    body["result"].as_str().unwrap().to_owned()
}

/// Wei in gwei, exact, without zeros at the end.
fn gwei(wei: u128) -> String {
    let (whole, rest) = (wei / 1_000_000_000, wei % 1_000_000_000);
    let text = format!("{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Sixty blocks of which prices can be told: those of the last 20 differ, block 40 gives nothing above the base fee, and what came before gives
/// much more.
fn priced(with_base_fee: bool) -> Vec<Bundle> {
    let chain = |seed| plain::chain(seed, HEAD + 1, &ChainConfig::default());
    let is_busy = |bundle: &Bundle| bundle.block.transactions.len() > 2;
    let mut chains = (1..).map(chain);
    let found = chains.find(|chain| is_busy(&chain[39]) && is_busy(&chain[40]));
    let mut bundles = found.unwrap();
    let mut rng = Rng(5);
    for bundle in &mut bundles {
        let header = &mut bundle.block.header;
        header.gas_limit = 30_000_000 + rng.below(1_000);
        header.gas_used = rng.below(header.gas_limit);
        header.base_fee_per_gas = with_base_fee.then(|| 1_000_000_000 + rng.below(20_000_000_000));
        let base = u128::from(header.base_fee_per_gas.unwrap_or(0));
        for (transaction, receipt) in bundle.block.transactions.iter_mut().zip(&mut bundle.receipts) {
            let tip = match header.number {
                40 => 0,
                ..40 => 900_000_000_000 + u128::from(rng.next() >> 40),
                41.. => u128::from(rng.below(5_000_000_000)),
            };
            let price = base + tip;
            receipt.effective_gas_price = Some(price);
            transaction.gas_price = Some(price);
            let more = u128::from(rng.below(1_000_000));
            let given = match rng.below(4) {
                0 | 1 if !with_base_fee => None,
                // Held down by what it would pay in all, and by the tip.
                0 => Some((price, tip + more)),
                1 => Some((price + more, tip)),
                _ => None,
            };
            transaction.max_fee_per_gas = given.map(|(most, _)| most);
            transaction.max_priority_fee_per_gas = given.map(|(_, tip)| tip);
            transaction.kind = if given.is_some() { 2 } else { rng.below(2) as u8 };
            receipt.kind = transaction.kind;
        }
    }
    bundles
}

/// What 35, 60 and 90 percent of the transactions of the last blocks gave above the base fee at most.
fn tips(bundles: &[Bundle], blocks: usize) -> [u128; 3] {
    let last = &bundles[bundles.len().saturating_sub(blocks)..];
    let of_block = |bundle: &Bundle| {
        let base = u128::from(bundle.block.header.base_fee_per_gas.unwrap_or(0));
        let prices = bundle
            .receipts
            .iter()
            .map(|receipt| receipt.effective_gas_price.unwrap());
        prices.map(|price| price - base).collect::<Vec<_>>()
    };
    let given: Vec<u128> = last.iter().flat_map(of_block).collect();
    [35, 60, 90].map(|percent| {
        let gave_at_most = |most: u128| given.iter().filter(|&&tip| tip <= most).count();
        let enough = |most: &u128| gave_at_most(*most) * 100 >= percent * given.len();
        given.iter().copied().filter(enough).min().unwrap_or(0)
    })
}

/// EIP-1559: an eighth at most, by how far half of the limit was missed.
fn next_base_fee(bundle: &Bundle) -> u128 {
    let header = &bundle.block.header;
    let Some(fee) = header.base_fee_per_gas.map(u128::from) else {
        return 0;
    };
    let (used, target) = (u128::from(header.gas_used), u128::from(header.gas_limit / 2));
    if used > target {
        fee + (fee * (used - target) / target / 8).max(1)
    } else {
        fee - fee * (target - used) / target / 8
    }
}

#[tokio::test]
async fn prices_of_gas_are_those_of_the_last_blocks() {
    let oracle = "module=gastracker&action=gasoracle";
    for (with_base_fee, blocks) in [(true, 60), (false, 60), (true, 59), (true, 3), (true, 1)] {
        let mut bundles = priced(with_base_fee);
        bundles.truncate(blocks);
        let newest = bundles.last_mut().unwrap();
        let half = newest.block.header.gas_limit / 2;
        // The base fee goes up once, and down.
        newest.block.header.gas_used = if blocks == 60 {
            half + 7_654_321
        } else {
            half - 1_234_567
        };
        let told = tips(&bundles, 20);
        if blocks == 60 {
            assert!(told[0] < told[1] && told[1] < told[2], "{told:?}");
            assert_ne!(told, tips(&bundles, 21));
            assert_ne!(told, tips(&bundles, 19));
        }
        let base = next_base_fee(bundles.last().unwrap());
        let ratios = bundles[blocks.saturating_sub(5)..].iter().map(|bundle| {
            let header = &bundle.block.header;
            let (used, limit) = (u128::from(header.gas_used), u128::from(header.gas_limit));
            let ratio = (2 * used * 1_000_000_000 + limit) / (2 * limit);
            format!("{}.{:09}", ratio / 1_000_000_000, ratio % 1_000_000_000)
        });
        let ratios: Vec<String> = ratios.collect();
        let [safe, proposed, fast] = told.map(|tip| gwei(base + tip));
        let expected = json!({
            "LastBlock": (blocks - 1).to_string(),
            "SafeGasPrice": safe,
            "ProposeGasPrice": proposed,
            "FastGasPrice": fast,
            "suggestBaseFee": gwei(base),
            "gasUsedRatio": ratios.join(","),
        });
        let world = World::over(bundles, None).await;
        assert_eq!(result(&world, oracle).await, expected, "{blocks} {with_base_fee}");
    }
}

/// Seconds until a block that is so far away, by the time that so many blocks took; tenths.
fn countdown(bundles: &[Bundle], blocks: u64, remaining: u64) -> String {
    let time = |bundle: &Bundle| bundle.block.header.timestamp;
    let (last, first) = (
        bundles.last().unwrap(),
        &bundles[bundles.len() - 1 - blocks as usize],
    );
    let tenths = (2 * 10 * (time(last) - time(first)) * remaining + blocks) / (2 * blocks);
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[tokio::test]
async fn a_block_to_come_is_told_by_the_pace_of_the_last_thousand() {
    let quiet = ChainConfig {
        logs_per_block: 0,
        traces: false,
        ..ChainConfig::default()
    };
    // Blocks of the chain, and of them those that the pace is taken from: block 0 may be much older than the others.
    for (blocks, counted) in [(1_101, 1_000), (1_002, 1_000), (60, 58), (3, 1)] {
        let mut bundles = plain::chain(5, blocks, &quiet);
        // No time between two is another's.
        for bundle in &mut bundles {
            let number = bundle.block.number();
            bundle.block.header.timestamp = if number == 0 {
                5
            } else {
                1_700_000_000 + number * number
            };
        }
        let head = blocks - 1;
        let world = World::over(bundles.clone(), None).await;
        for remaining in [1, 7, 12_345] {
            let number = head + remaining;
            let seconds = countdown(&bundles, counted, remaining);
            if counted > 2 {
                assert_ne!(seconds, countdown(&bundles, counted - 1, remaining));
                assert_ne!(seconds, countdown(&bundles, counted + 1, remaining));
            }
            let expected = json!({
                "CurrentBlock": head.to_string(),
                "CountdownBlock": number.to_string(),
                "RemainingBlock": remaining.to_string(),
                "EstimateTimeInSec": seconds,
            });
            let query = format!("module=block&action=getblockcountdown&blockno={number}");
            assert_eq!(result(&world, &query).await, expected, "{blocks}");
        }
        let past = format!("module=block&action=getblockcountdown&blockno={head}");
        assert_eq!(refusal(&world, &past).await, "Error! Block number already pass");
    }
    // Two blocks, of which one is block 0, have no pace.
    let world = World::over(plain::chain(5, 2, &quiet), None).await;
    let found = result(&world, "module=block&action=getblockcountdown&blockno=9").await;
    assert_eq!(
        (&found["RemainingBlock"], &found["EstimateTimeInSec"]),
        (&json!("8"), &json!(""))
    );
}

fn log(emitter: Address, topics: &[B256], words: &[U256]) -> Log {
    let data = words.iter().flat_map(|word| word.to_be_bytes::<32>());
    Log {
        address: emitter,
        topics: Topics::new(topics).unwrap(),
        data: data.collect::<Vec<_>>().into(),
    }
}

/// A transaction that creates a contract.
fn creating(contract: Address) -> Deed {
    let mut deed = call(who(1), contract, 0);
    deed.transaction.to = None;
    deed.receipt.contract_address = Some(contract);
    deed.frames[0].kind = FrameKind::Create;
    deed
}

#[tokio::test]
async fn the_largest_holders_are_a_thousand_and_what_they_are() {
    const TOKEN: u64 = 1_500;
    let mut blocks = Blocks::new();
    // By a transaction, by a factory, by neither as it failed, and by neither as what called for it did.
    blocks.push(vec![
        creating(who(3_001)),
        creating(who(TOKEN)).with(FrameKind::Create2, &[0], who(TOKEN), who(2_998), 0),
        creating(who(3_002)).failing(&[]),
        creating(who(1_501))
            .with(FrameKind::Call, &[0], who(1_501), who(TOKEN), 0)
            .with(FrameKind::Create, &[0, 0], who(TOKEN), who(2_997), 0)
            .failing(&[0]),
    ]);
    // Two have the same each.
    let mut holders: Vec<(u64, u64)> = (2_000..=3_002).map(|number| (number, 1 + number / 2)).collect();
    holders.push((TOKEN, 1_502));
    let mut minted = call(who(1), who(TOKEN), 0);
    let mint = |&(holder, balance): &(u64, u64)| {
        let topics = [TRANSFER, B256::ZERO, who(holder).into_word()];
        log(who(TOKEN), &topics, &[U256::from(balance)])
    };
    minted.receipt.logs = holders.iter().map(mint).collect();
    blocks.push(vec![minted]);
    let world = World::ruled(blocks.0, None, None, rules(&[(who(1), 1 << 60)])).await;

    holders.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let shown = |&(holder, balance): &(u64, u64)| {
        let is_contract = [3_001, 2_998, TOKEN].contains(&holder);
        json!({
            "TokenHolderAddress": const_hex::encode_prefixed(who(holder)),
            "TokenHolderQuantity": balance.to_string(),
            "TokenHolderAddressType": if is_contract { "C" } else { "E" },
        })
    };
    let expected: Vec<Value> = holders.iter().map(shown).collect();
    let types: String = expected[..8]
        .iter()
        .map(|one| one["TokenHolderAddressType"].as_str().unwrap())
        .collect();
    assert_eq!((types.as_str(), expected.len()), ("CEECCEEE", 1_004));
    let asked = format!(
        "module=token&action=topholders&contractaddress={}",
        const_hex::encode_prefixed(who(TOKEN))
    );
    for (offset, count) in [
        ("", 1_000),
        ("&offset=1000", 1_000),
        ("&offset=999", 999),
        ("&offset=8", 8),
    ] {
        let found = result(&world, &format!("{asked}{offset}")).await;
        assert_eq!(found.as_array().unwrap(), &expected[..count], "{offset}");
    }
    for offset in [1_001, 10_000, 10_001] {
        let refused = refusal(&world, &format!("{asked}&offset={offset}")).await;
        assert_eq!(refused, "Error! Invalid offset parameter", "{offset}");
    }
}

#[tokio::test]
async fn a_blocks_transfers_are_counted_by_standard() {
    let (coin, deeds, goods) = (who(11), who(12), who(13));
    let [from, to] = [who(1), who(2)].map(|account| account.into_word());
    let number = |number: u64| U256::from(number);
    let id = |id: u64| B256::from(U256::from(id));
    let sent = |emitter| log(emitter, &[TRANSFER, from, to], &[number(5)]);
    let mut first = call(who(1), who(2), 0).with(FrameKind::Call, &[0], who(2), who(3), 400);
    first.receipt.logs = vec![
        sent(coin),
        log(deeds, &[TRANSFER, from, to, id(1)], &[]),
        log(deeds, &[TRANSFER, from, to, id(2)], &[]),
        // No transfers: wrapping, the coin itself, and what no standard has.
        log(coin, &[DEPOSIT, to], &[number(5)]),
        sent(NATIVE_LOGS),
        log(coin, &[TRANSFER, from, to], &[]),
        log(deeds, &[TRANSFER, from, to, id(3)], &[]),
    ];
    let mut second = call(who(1), who(2), 0).with(FrameKind::StaticCall, &[0], who(2), who(3), 0);
    let (one, three) = (
        [TRANSFER_SINGLE, from, from, to],
        [TRANSFER_BATCH, from, from, to],
    );
    let batch = [64, 192, 3, 1, 2, 1, 3, 10, 20, 30].map(number);
    second.receipt.logs = vec![
        sent(coin),
        log(goods, &one, &[number(1), number(7)]),
        log(goods, &three, &batch),
        sent(who(14)),
    ];
    let early = [from, to, id(9)].map(|word| U256::from_be_bytes(word.0));
    second.receipt.logs.extend([
        log(who(15), &[TRANSFER], &early),
        log(deeds, &[TRANSFER, from, to, id(4)], &[]),
    ]);
    let mut blocks = Blocks::new();
    blocks.push(vec![first, second]);
    blocks.push(Vec::new());
    let world = World::ruled(
        blocks.0,
        None,
        None,
        rules(&[(who(1), 1 << 60), (who(2), 1 << 60)]),
    )
    .await;
    for (block, [txs, internal, erc20, erc721, erc1155]) in [(1, [2, 1, 3, 5, 4]), (2, [0; 5])] {
        let expected = json!({
            "block": block, "txsCount": txs, "internalTxsCount": internal, "erc20TxsCount": erc20,
            "erc721TxsCount": erc721, "erc1155TxsCount": erc1155,
        });
        let query = format!("module=block&action=getblocktxnscount&blockno={block}");
        assert_eq!(result(&world, &query).await, expected);
    }
}
