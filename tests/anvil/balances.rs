//! Native balances (A1, A2, A11) against `eth_getBalance`.

use super::*;

/// Everybody that the chain names.
fn everybody(anvil: &Anvil, model: &Model) -> BTreeSet<String> {
    let mut accounts: BTreeSet<String> = anvil
        .accounts
        .iter()
        .map(|account| account.to_lowercase())
        .collect();
    for recorded in &model.blocks {
        accounts.insert(text(&recorded.block["miner"]).to_owned());
        for trace in recorded.traces.iter().flatten() {
            let action = &trace["action"];
            let places = [
                &action["to"],
                &action["from"],
                &action["address"],
                &action["refundAddress"],
                &trace["result"]["address"],
            ];
            accounts.extend(places.into_iter().filter_map(Value::as_str).map(str::to_owned));
        }
    }
    accounts
}

fn amount(quantity: &Value) -> String {
    let wei = text(quantity).parse::<quarry::model::U256>().unwrap();
    wei.to_string()
}

#[track_caller]
fn same(server: &Server, anvil: &Anvil, chain: &str, account: &str, block: u64) {
    let target = format!("/api/account/{account}/balance-history?chain={chain}&block={block}");
    let reply = server.get(&target);
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    let node = anvil.ask("eth_getBalance", json!([account, format!("0x{block:x}")]));
    assert_eq!(reply.json()["balance"], amount(&node).as_str(), "{target}");
    assert!(reply.header("x-balance-source").is_some());
}

/// Everybody's balance at several blocks and now.
#[track_caller]
pub(super) fn compare(server: &Server, anvil: &Anvil, model: &Model) {
    let (chain, head) = (model.name, anvil.head());
    let kept = &status(server, chain)["nativeLedger"];
    assert_eq!(kept, "kept");
    let accounts = everybody(anvil, model);
    let mut by_ledger = 0;
    for (turn, account) in accounts.iter().enumerate() {
        for block in [head / 3, head - turn as u64 % 7, head] {
            same(server, anvil, chain, account, block);
        }
        let now = server.get(&format!("/api/account/{account}/balance?chain={chain}"));
        if now.status == 404 {
            continue;
        }
        let node = anvil.ask("eth_getBalance", json!([account, format!("0x{head:x}")]));
        assert_eq!(now.json()["balance"], amount(&node).as_str(), "{account}");
        by_ledger += usize::from(now.header("x-balance-source") == Some("ledger"));
    }
    assert!(by_ledger > 5, "{by_ledger} of {}", accounts.len());
    let first: Vec<&str> = accounts.iter().take(100).map(String::as_str).collect();
    let target = format!(
        "/api/account/balance-multi?chain={chain}&address={}",
        first.join(",")
    );
    for (account, found) in first.iter().zip(list(&server.json(&target)["balances"])) {
        let node = anvil.ask("eth_getBalance", json!([account, format!("0x{head:x}")]));
        assert_eq!(found["balance"], amount(&node).as_str(), "{account}");
    }
}

/// Init code that leaves this code behind.
fn deploying(code: &str) -> String {
    format!("0x60{:02x}80600b6000396000f3{code}", code.len() / 2)
}

/// `call(gas, to, value, 0, input bytes, 0, 0)`.
fn calling(to: &str, value: u8, input: u8) -> String {
    format!(
        "6000600060{input:02x}600060{value:02x}73{}5af150",
        to.trim_start_matches("0x")
    )
}

/// Contracts that end, to others and to themselves, and are sent something afterwards: before EIP-6780 and since.
#[test]
fn contracts_that_end_leave_what_the_node_says() {
    for (turn, fork) in ["london", "shanghai", "cancun", "prague"].into_iter().enumerate() {
        let Some(anvil) = Anvil::start_with(31_340 + turn as u64, &["--hardfork", fork]) else {
            return;
        };
        let from = anvil.accounts[0].clone();
        let send = |more: Value| {
            let mut transaction = json!({"from": from, "gas": "0x80000"});
            transaction
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            transaction
        };
        // Without input: ends, to the caller or to itself. With input: takes what it is sent.
        let codes = ["36600657 33ff 5b00", "36600657 30ff 5b00"].map(|code| code.replace(' ', ""));
        let deploy = |value: &str| {
            anvil.block_of(codes.iter().map(|code| send(json!({"data": deploying(code)}))));
            let receipts = anvil.ask("eth_getBlockReceipts", json!(["latest"]));
            let contracts: Vec<String> = list(&receipts)
                .iter()
                .map(|receipt| text(&receipt["contractAddress"]).to_owned())
                .collect();
            let gift = |to: &String| send(json!({"to": to, "value": value, "data": "0x01"}));
            anvil.block_of(contracts.iter().map(gift));
            contracts
        };
        let alone = deploy("0x64");
        let visited = deploy("0xc8");
        // Ended by a transaction.
        anvil.block_of(alone.iter().map(|to| send(json!({"to": to, "value": "0x5"}))));
        // Ended, and sent something in the same transaction.
        anvil.block_of(visited.iter().map(|to| {
            let code = format!("0x{}{}00", calling(to, 1, 0), calling(to, 3, 1));
            send(json!({"data": code, "value": "0x9"}))
        }));
        // Ended, and all of it taken back.
        anvil.block_of(visited.iter().map(|to| {
            let code = format!("0x{}60006000fd", calling(to, 2, 0));
            send(json!({"data": code, "value": "0x9"}))
        }));
        // Made and ended in one transaction: to the sender, and to itself.
        anvil.block_of(["0x32ff", "0x30ff"].map(|code| send(json!({"data": code, "value": "0x7"}))));
        anvil.mine(3);
        let directory = tempfile::tempdir().unwrap();
        let later = tempfile::tempdir().unwrap();
        let url = anvil.http();
        let model = anvil.model("mainnet");
        for (path, start) in [(directory.path(), 0), (later.path(), 4)] {
            let first = start.to_string();
            let path = path.to_str().unwrap();
            // Anvil hashes the block 0 of early forks as one of a later fork.
            let args = ["run", "--trust-node", "--mainnet-rpc", &url, "--data-dir", path];
            let server = Server::start(args.into_iter().chain(["--start-block", &first]));
            ready(&server);
            caught_up(&server, &anvil, "mainnet", SOON);
            for account in everybody(&anvil, &model) {
                for block in start..=anvil.head() {
                    same(&server, &anvil, "mainnet", &account, block);
                }
            }
            assert_eq!(
                status(&server, "mainnet")["nativeLedger"],
                "kept",
                "{fork} from {start}"
            );
            server.stop();
        }
    }
}

/// A contract that pays somebody and then ends in favour of itself lives on, and a node on revm tells of its end as of another such
/// payment. Whatever it held, the ledger goes on and tells what the node does.
#[test]
fn an_end_that_moves_nothing_is_no_payment() {
    for (turn, fork) in ["cancun", "prague", "osaka"].into_iter().enumerate() {
        let Some(anvil) = Anvil::start_with(31_350 + turn as u64, &["--hardfork", fork]) else {
            return;
        };
        let from = anvil.accounts[0].clone();
        let paid = anvil.accounts[4].to_lowercase();
        let send = |more: Value| {
            let mut transaction = json!({"from": from, "gas": "0x80000"});
            transaction
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            transaction
        };
        // Without input: pays 5 and ends, in favour of itself or of who was paid. With input: takes what it is sent.
        let ending = |heir: &str| {
            let work = format!("{}{heir}ff", calling(&paid, 5, 0));
            format!("3660{:02x}57{work}5b00", work.len() / 2 + 4)
        };
        let (own, theirs) = (
            ending("30"),
            ending(&format!("73{}", paid.trim_start_matches("0x"))),
        );
        let holding = [
            (&own, 5),
            (&own, 10),
            (&own, 15),
            (&own, 100),
            (&theirs, 5),
            (&theirs, 10),
            (&theirs, 15),
        ];
        anvil.block_of(
            holding
                .iter()
                .map(|(code, _)| send(json!({"data": deploying(code)}))),
        );
        let receipts = anvil.ask("eth_getBlockReceipts", json!(["latest"]));
        let contracts: Vec<String> = list(&receipts)
            .iter()
            .map(|receipt| text(&receipt["contractAddress"]).to_owned())
            .collect();
        let gifts = contracts
            .iter()
            .zip(holding)
            .map(|(to, (_, held))| send(json!({"to": to, "value": format!("0x{held:x}"), "data": "0x01"})));
        anvil.block_of(gifts);
        // All of them in one block, and again: those that live on and hold enough pay once more.
        anvil.block_of(contracts.iter().map(|to| send(json!({"to": to}))));
        anvil.block_of(contracts.iter().map(|to| send(json!({"to": to}))));
        // Ends in favour of who is paid without input, of itself with two bytes, takes what it is sent with one; and ends
        // twice in one transaction, first truly.
        let either = format!(
            "3615600d5736600214602457005b73{}ff5b30ff",
            paid.trim_start_matches("0x")
        );
        // Ends in favour of itself, whoever pays it.
        let alone = "30ff".to_owned();
        anvil.block_of([&either, &alone].map(|code| send(json!({"data": deploying(code)}))));
        let made = anvil.ask("eth_getBlockReceipts", json!(["latest"]));
        let made: Vec<String> = list(&made)
            .iter()
            .map(|receipt| text(&receipt["contractAddress"]).to_owned())
            .collect();
        anvil.block_of([send(json!({"to": made[0], "value": "0xa", "data": "0x01"}))]);
        let again = format!("0x{}{}00", calling(&made[0], 0, 0), calling(&made[0], 0, 2));
        anvil.block_of([send(json!({"data": again}))]);
        anvil.block_of([send(json!({"to": made[1], "value": "0x5"}))]);
        // Twice in one transaction.
        let twice = format!(
            "0x{}{}00",
            calling(&contracts[3], 0, 0),
            calling(&contracts[3], 0, 0)
        );
        anvil.block_of([send(json!({"data": twice}))]);
        anvil.mine(2);
        let model = anvil.model("mainnet");
        let told = model
            .blocks
            .iter()
            .flat_map(|recorded| recorded.traces.iter().flatten());
        let repeated = told.filter(|trace| {
            trace["type"] == "suicide"
                && trace["action"]["refundAddress"] == paid.as_str()
                && contracts[..4]
                    .iter()
                    .any(|own| trace["action"]["address"] == own.as_str())
        });
        // Should the node mend it, this test is of no use any more.
        assert!(
            repeated.count() >= 4,
            "{fork}: the node tells no end as a payment"
        );
        let directory = tempfile::tempdir().unwrap();
        let url = anvil.http();
        let args = [
            "run",
            "--trust-node",
            "--mainnet-rpc",
            &url,
            "--data-dir",
            directory.path().to_str().unwrap(),
        ];
        let server = Server::start(args);
        ready(&server);
        caught_up(&server, &anvil, "mainnet", SOON);
        for account in everybody(&anvil, &model).iter().chain(&contracts) {
            for block in 0..=anvil.head() {
                same(&server, &anvil, "mainnet", account, block);
            }
        }
        assert_eq!(status(&server, "mainnet")["nativeLedger"], "kept", "{fork}");
        // Listed as what it was.
        let target = format!("/api/account/{}/tx-list-internal?chain=mainnet", contracts[3]);
        let found = server.json(&target);
        let ends: Vec<&Value> = list(&found["internalTransactions"])
            .iter()
            .filter(|item| item["type"] == "selfdestruct")
            .collect();
        assert!(ends.len() >= 2, "{found}");
        for end in ends {
            assert_eq!(
                (&end["to"], &end["value"]),
                (&json!(contracts[3]), &json!("0")),
                "{found}"
            );
        }
        let target = format!("/api/account/{}/tx-list-internal?chain=mainnet", made[1]);
        let found = server.json(&target);
        let end = &list(&found["internalTransactions"])[0];
        let (own, nothing) = (json!(made[1]), json!("0"));
        assert_eq!(
            (&end["from"], &end["to"], &end["value"]),
            (&own, &own, &nothing),
            "{found}"
        );
        server.stop();
    }
}

/// What no block shows only the node can: a balance that was set by hand is found when the account next moves, and from then on
/// the node answers for native balances, also after a restart.
#[test]
fn a_node_that_has_other_balances_answers_for_them() {
    let Some(anvil) = Anvil::start(31_360) else { return };
    let mut scenario = Scenario::new(&anvil, 5);
    scenario.blocks(12);
    let directory = tempfile::tempdir().unwrap();
    let url = anvil.http();
    let args = [
        "run",
        "--mainnet-rpc",
        &url,
        "--data-dir",
        directory.path().to_str().unwrap(),
    ];
    let server = Server::start(args);
    ready(&server);
    caught_up(&server, &anvil, "mainnet", SOON);
    let account = anvil.accounts[0].to_lowercase();
    let source = |server: &Server| {
        let reply = server.get(&format!("/api/account/{account}/balance?chain=mainnet"));
        reply.header("x-balance-source").map(str::to_owned)
    };
    let verdict = directory.path().join("mainnet");
    assert!(verdict.exists());
    // Some comparisons that find nothing.
    for _ in 0..3 {
        scenario.blocks(1);
        caught_up(&server, &anvil, "mainnet", SOON);
        std::thread::sleep(Duration::from_millis(1200));
    }
    assert_eq!(source(&server).as_deref(), Some("ledger"));
    assert_eq!(status(&server, "mainnet")["nativeLedger"], "kept");
    anvil.ask("anvil_setBalance", json!([account, "0x3635c9adc5dea000000"]));
    anvil.block_of([json!({"from": account, "to": anvil.accounts[1], "value": "0x1"})]);
    eventually("the difference is found", SOON, || {
        let ledger = status(&server, "mainnet")["nativeLedger"].clone();
        ledger
            .as_str()
            .is_some_and(|text| text.starts_with("differs: "))
            .then_some(())
    });
    let check = |server: &Server| {
        assert_eq!(source(server).as_deref(), Some("node"));
        for account in &anvil.accounts {
            for block in [3, anvil.head() - 1, anvil.head()] {
                same(server, &anvil, "mainnet", account, block);
            }
        }
        let metrics = server.get("/metrics").text();
        assert!(
            metrics.contains("quarry_native_ledger_kept{chain=\"mainnet\"} 0"),
            "{metrics}"
        );
    };
    check(&server);
    server.stop();
    let server = Server::start(args);
    ready(&server);
    eventually("the node is asked", SOON, || {
        (source(&server).as_deref() == Some("node")).then_some(())
    });
    check(&server);
    // What differed outlives the block at which it was found.
    anvil.ask("anvil_reorg", json!([1, []]));
    scenario.blocks(1);
    caught_up(&server, &anvil, "mainnet", SOON);
    for account in &anvil.accounts {
        same(&server, &anvil, "mainnet", account, anvil.head());
    }
    server.stop();
}

/// Who gets the base fees of some chains is named by no block: its balance is asked for at first.
#[test]
fn who_takes_fees_without_a_word_is_asked_for() {
    let Some(anvil) = Anvil::start(31_361) else { return };
    let mut scenario = Scenario::new(&anvil, 6);
    scenario.blocks(12);
    let vault = "0x4200000000000000000000000000000000000019";
    anvil.block_of([json!({"from": anvil.accounts[0], "to": vault, "value": "0x1"})]);
    anvil.ask("anvil_setBalance", json!([vault, "0xde0b6b3a7640000"]));
    scenario.blocks(1);
    let directory = tempfile::tempdir().unwrap();
    let url = anvil.http();
    let data = directory.path().to_str().unwrap();
    let server = Server::start(["run", "--mainnet-rpc", &url, "--data-dir", data]);
    ready(&server);
    caught_up(&server, &anvil, "mainnet", SOON);
    let differs = format!("differs: {vault} holds 1000000000000000000 after block ");
    eventually("the difference is found", SOON, || {
        let ledger = status(&server, "mainnet")["nativeLedger"].clone();
        ledger
            .as_str()
            .is_some_and(|text| text.starts_with(&differs))
            .then_some(())
    });
    same(&server, &anvil, "mainnet", vault, anvil.head());
    server.stop();
}
