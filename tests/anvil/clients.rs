//! Real clients of Etherscan, unmodified, against a service that synced from a real node: what each call gives is what the
//! node says. What of each client's calls passes is docs/COMPATIBILITY.md.

use std::collections::BTreeMap;

use super::sources::{Deployed, compile, padded};
use super::*;

const NOBODY: &str = "0x00000000000000000000000000000000000000aa";
const PAYEE: &str = "0x00000000000000000000000000000000000000bb";
const MINER: &str = "0x00000000000000000000000000000000000000cc";
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// The chain that clients are shown, and a service beside it.
struct World {
    anvil: Anvil,
    server: Server,
    /// Addresses, hashes and numbers by name, as the clients read them.
    of: Value,
    abi: Value,
    _directory: tempfile::TempDir,
}

fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools")
}

fn clients(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clients")
        .join(file)
}

fn selector(signature: &str) -> String {
    const_hex::encode(&alloy_primitives::keccak256(signature)[..4])
}

impl World {
    fn make() -> Option<Self> {
        let source = |file: &str| json!({"content": std::fs::read_to_string(clients(file)).unwrap()});
        let built =
            compile(json!({"All.sol": source("Tokens.sol"), "Counting.sol": source("Counting.sol")}))?;
        let anvil = Anvil::start(1)?;
        anvil.ask("anvil_setCoinbase", json!([MINER]));
        let chain = Deployed {
            anvil: &anvil,
            built: &built,
        };
        let [sender, friend] = [&anvil.accounts[0], &anvil.accounts[1]].map(Clone::clone);
        let coin = chain.create("Coin", &[word(1_000_000)]);
        let deeds = chain.create("Deeds", &[]);
        let goods = chain.create("Goods", &[]);
        let payer = chain.create("Payer", &[]);
        chain.call(
            &coin,
            "transfer(address,uint256)",
            format!("{}{}", padded(&friend), word(1234)),
        );
        chain.call(
            &deeds,
            "mint(address,uint256)",
            format!("{}{}", padded(&friend), word(77)),
        );
        chain.call(
            &goods,
            "mint(address,uint256,uint256)",
            format!("{}{}{}", padded(&friend), word(5), word(60)),
        );
        let pay = format!("0x{}{}", selector("pay(address)"), padded(PAYEE));
        let receipt = chain.send(json!({"to": payer, "data": pay, "value": "0x309"}));
        let paid = text(&receipt["transactionHash"]).to_owned();
        let tag = text(&receipt["blockNumber"]).to_owned();
        let too_much = format!(
            "0x{}{}{}",
            selector("transfer(address,uint256)"),
            padded(&friend),
            word(9_000_000)
        );
        let failed = chain.send(json!({"to": coin, "data": too_much}));
        assert_eq!(failed["status"], "0x0");
        anvil.mine(3);
        let block = anvil.ask("eth_getBlockByNumber", json!([tag, false]));
        let time = number(&block["timestamp"]);
        let date = quarry::model::Day::of(time).to_string();

        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data").display().to_string();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let url = anvil.http();
        let server = Server::start(["run", "--mainnet-rpc", &url, "--data-dir", &data]);
        ready(&server);
        caught_up(&server, &anvil, "mainnet", SOON);
        std::fs::write(path("built.json"), built.to_string()).unwrap();
        for contract in [&coin, &deeds] {
            let file = path("built.json");
            let import = [
                "import",
                "contracts",
                &file,
                "--address",
                contract,
                "--data-dir",
                &data,
            ];
            binary::quarry(import).succeeded();
        }
        std::fs::write(path("prices.csv"), "time,asset,usd\n2020-01-01,native,2345.67\n").unwrap();
        binary::quarry(["import", "prices", &path("prices.csv"), "--data-dir", &data]).succeeded();
        eventually("what is imported is served", SOON, || {
            let is_there = |target: &str| server.get(target).status == 200;
            let both = is_there(&format!("/api/contract/{deeds}/abi")) && is_there("/api/stats/token-price");
            both.then_some(())
        });
        eventually("tokens have their names and a verdict", SOON, || {
            let asked = |query: String| server.json(&format!("/api?{query}&contractaddress={coin}"));
            let info = asked("module=token&action=tokeninfo".to_owned());
            let held = asked(format!("module=account&action=tokenbalance&address={friend}"));
            (info["result"][0]["symbol"] == "CLC" && held["status"] == "1").then_some(())
        });
        let of = json!({
            "chain": 1, "sender": sender.to_lowercase(), "friend": friend.to_lowercase(), "nobody": NOBODY,
            "payee": PAYEE, "miner": MINER, "coin": coin, "deeds": deeds, "goods": goods, "payer": payer,
            "paid": paid, "failed": failed["transactionHash"], "block": number(&json!(tag)), "tag": tag, "time": time,
            "date": date, "transfer": TRANSFER, "word": format!("0x{}", padded(&sender.to_lowercase())),
            "supply": format!("0x{}", selector("totalSupply()")), "too_much": too_much,
        });
        let abi = built["output"]["contracts"]["All.sol"]["Coin"]["abi"].clone();
        Some(Self {
            anvil,
            server,
            of,
            abi,
            _directory: directory,
        })
    }

    fn get(&self, name: &str) -> &str {
        text(&self.of[name])
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Runs a script of a client and gives what came of each call.
    fn calls(&self, program: &Path, script: &str) -> Calls {
        self.run(Command::new(program).arg(clients(script)))
    }

    fn run(&self, command: &mut Command) -> Calls {
        let output = direct(command)
            .env("QUARRY_URL", self.url())
            .env("QUARRY_TOOLS", tools())
            .env("QUARRY_WORLD", self.of.to_string())
            .env_remove("PYTHONPATH")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {said}\n{errors}");
        let line = |line: &str| {
            let mut line: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let name = text(&line["call"]).to_owned();
            let came = match line.get_mut("ok") {
                Some(value) => Ok(value.take()),
                None => Err(text(&line["error"]).to_owned()),
            };
            (name, came)
        };
        Calls(said.lines().map(line).collect())
    }

    /// The last block at or before the time that clients ask for.
    fn block_by_time(&self) -> u64 {
        let timestamp = |at: u64| {
            let block = self
                .anvil
                .ask("eth_getBlockByNumber", json!([format!("0x{at:x}"), false]));
            number(&block["timestamp"])
        };
        let time = self.of["time"].as_u64().unwrap();
        (0..=self.anvil.head())
            .rev()
            .find(|&at| timestamp(at) <= time)
            .unwrap()
    }

    fn balance(&self, account: &str) -> String {
        let wei = self.anvil.ask("eth_getBalance", json!([account, "latest"]));
        alloy_primitives::U256::from_str_radix(text(&wei).trim_start_matches("0x"), 16)
            .unwrap()
            .to_string()
    }
}

/// What came of each call of a client, by name; what is looked at is taken.
struct Calls(BTreeMap<String, Result<Value, String>>);

impl Calls {
    #[track_caller]
    fn take(&mut self, name: &str) -> Value {
        let came = self
            .0
            .remove(name)
            .unwrap_or_else(|| panic!("{name} was not called"));
        came.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[track_caller]
    fn refused(&mut self, name: &str, words: &str) {
        let came = self
            .0
            .remove(name)
            .unwrap_or_else(|| panic!("{name} was not called"));
        let error = came.expect_err(name);
        assert!(error.contains(words), "{name}: `{words}` is not in {error}");
    }

    /// Insists that a value has these fields.
    #[track_caller]
    fn has(&mut self, name: &str, fields: Value) -> Value {
        let found = self.take(name);
        for (field, expected) in fields.as_object().unwrap() {
            assert_eq!(&found[field], expected, "{name}: {field} of {found}");
        }
        found
    }

    /// Insists that a list has one item with these fields.
    #[track_caller]
    fn one(&mut self, name: &str, fields: Value) -> Value {
        let found = self.take(name);
        let items = list(&found);
        assert_eq!(items.len(), 1, "{name}: {found}");
        for (field, expected) in fields.as_object().unwrap() {
            assert_eq!(&items[0][field], expected, "{name}: {field} of {found}");
        }
        items[0].clone()
    }

    /// Insists that nothing is left unlooked at.
    #[track_caller]
    fn done(self) {
        let left: Vec<_> = self.0.keys().collect();
        assert!(left.is_empty(), "not looked at: {left:?}");
    }
}

#[test]
fn clients_of_etherscan_work_unmodified() {
    let Some(world) = World::make() else { return };
    with_javascript(&world);
    with_python(&world);
    with_cast(&world);
    with_rust(&world);
    world.server.stop();
}

/// Fields of what the client `prefix` gives for the same questions.
fn same_questions(calls: &mut Calls, world: &World, names: &[(&str, &str)]) {
    let name = |meant: &str| -> String {
        let found = names.iter().find(|(known, _)| *known == meant);
        found
            .unwrap_or_else(|| panic!("no name for {meant}"))
            .1
            .to_owned()
    };
    let balance = world.balance(world.get("sender"));
    assert_eq!(calls.take(&name("balance")), balance.as_str());
    let several = calls.take(&name("balances"));
    assert_eq!(
        several,
        json!([{"account": world.of["sender"], "balance": balance}, {"account": NOBODY, "balance": "0"}])
    );
    let sent = calls.take(&name("txlist"));
    assert_eq!(list(&sent).len(), 9, "{sent}");
    let receipt = world
        .anvil
        .ask("eth_getTransactionReceipt", json!([world.of["paid"]]));
    let paid = list(&sent)
        .iter()
        .find(|row| row["hash"] == world.of["paid"])
        .unwrap();
    assert_eq!(paid["to"], receipt["to"]);
    assert_eq!(paid["value"], "777");
    assert_eq!(paid["contractAddress"], "");
    assert_eq!(paid["gasUsed"], number(&receipt["gasUsed"]).to_string());
    assert_eq!(
        paid["gasPrice"],
        number(&receipt["effectiveGasPrice"]).to_string()
    );
    assert_eq!(
        (&paid["isError"], &paid["txreceipt_status"]),
        (&json!("0"), &json!("1"))
    );
    assert!(text(&paid["confirmations"]).parse::<u64>().unwrap() >= 4);
    let created = list(&sent)
        .iter()
        .find(|row| row["contractAddress"] == world.of["coin"])
        .unwrap();
    assert_eq!(created["to"], "");
    let failed = list(&sent)
        .iter()
        .find(|row| row["hash"] == world.of["failed"])
        .unwrap();
    assert_eq!(
        (&failed["isError"], &failed["txreceipt_status"]),
        (&json!("1"), &json!("0"))
    );
    for by in ["internal by address", "internal by hash"] {
        calls.one(
            &name(by),
            json!({
                "hash": world.of["paid"], "from": world.of["payer"], "to": PAYEE, "value": "777", "type": "call",
                "contractAddress": "", "traceId": "0", "isError": "0", "errCode": "", "input": "",
            }),
        );
    }
    let moved = json!({
        "contractAddress": world.of["coin"], "from": world.of["sender"], "to": world.of["friend"], "value": "1234",
        "tokenName": "Client Coin", "tokenSymbol": "CLC", "tokenDecimal": "6",
    });
    calls.one(&name("tokentx by address"), moved);
    let all = calls.take(&name("tokentx by contract"));
    assert_eq!(list(&all).len(), 2, "{all}");
    assert_eq!(
        list(&all)[0]["from"],
        "0x0000000000000000000000000000000000000000"
    );
    calls.one(
        &name("tokennfttx"),
        json!({"contractAddress": world.of["deeds"], "to": world.of["friend"], "tokenID": "77", "tokenSymbol": "CLD"}),
    );
    let mined = calls.take(&name("mined"));
    let numbers: Vec<u64> = list(&mined)
        .iter()
        .map(|block| text(&block["blockNumber"]).parse().unwrap())
        .collect();
    assert_eq!(
        numbers.first(),
        Some(&world.anvil.head()),
        "newest first: {mined}"
    );
    assert!(numbers.is_sorted_by(|a, b| a > b));
    let number = world.of["block"].to_string();
    calls.has(
        &name("block reward"),
        json!({"blockNumber": number, "blockMiner": MINER, "uncles": []}),
    );
    assert_eq!(
        calls.take(&name("block by time")),
        world.block_by_time().to_string()
    );
    let countdown = calls.take(&name("countdown"));
    assert_eq!(countdown["CountdownBlock"], "99999999");
    assert_eq!(countdown["CurrentBlock"], world.anvil.head().to_string());
    let served: Value = serde_json::from_str(text(&calls.take(&name("abi")))).unwrap();
    assert_eq!(served, world.abi);
    calls.has(&name("status"), json!({"isError": "1"}));
    calls.has(&name("receipt status"), json!({"status": "1"}));
    let oracle = calls.take(&name("oracle"));
    assert_eq!(oracle["LastBlock"], world.anvil.head().to_string());
    assert_eq!(text(&oracle["gasUsedRatio"]).split(',').count(), 5, "{oracle}");
    assert_eq!(calls.take(&name("supply of token")), "1000000");
    assert_eq!(calls.take(&name("balance of token")), "1234");
    calls.has(&name("price"), json!({"ethusd": "2345.67"}));
    let head = format!("0x{:x}", world.anvil.head());
    assert_eq!(calls.take(&name("block number")), head.as_str());
    for (meant, method, params) in [
        ("block", "eth_getBlockByNumber", json!([world.of["tag"], true])),
        (
            "block count",
            "eth_getBlockTransactionCountByNumber",
            json!([world.of["tag"]]),
        ),
        (
            "transaction",
            "eth_getTransactionByHash",
            json!([world.of["paid"]]),
        ),
        (
            "transaction at",
            "eth_getTransactionByBlockNumberAndIndex",
            json!([world.of["tag"], "0x0"]),
        ),
        (
            "transaction count",
            "eth_getTransactionCount",
            json!([world.of["sender"], "latest"]),
        ),
        ("receipt", "eth_getTransactionReceipt", json!([world.of["paid"]])),
        (
            "uncle",
            "eth_getUncleByBlockNumberAndIndex",
            json!([world.of["tag"], "0x0"]),
        ),
        (
            "call",
            "eth_call",
            json!([{"to": world.of["coin"], "data": world.of["supply"]}, "latest"]),
        ),
        ("code", "eth_getCode", json!([world.of["coin"], "latest"])),
        (
            "storage",
            "eth_getStorageAt",
            json!([world.of["coin"], "0x3", "latest"]),
        ),
        ("gas price", "eth_gasPrice", json!([])),
    ] {
        let found = calls.take(&name(meant));
        let mut expected = world.anvil.ask(method, params);
        if meant == "block" && found["transactions"][0].is_string() {
            // This client asks for hashes.
            expected = world.anvil.ask(method, json!([world.of["tag"], false]));
        }
        if expected.is_object() {
            // Anvil's own additions.
            for addition in ["blockTimestamp", "blobGasPrice"]
                .iter()
                .filter(|_| meant == "receipt")
            {
                expected.as_object_mut().unwrap().remove(*addition);
            }
            assert_like(meant, &expected, &found, &[]);
        } else {
            assert_eq!(found, expected, "{meant}");
        }
    }
    assert!(text(&calls.take(&name("estimate"))).starts_with("0x52"));
}

fn with_javascript(world: &World) {
    if !tools().join("node_modules/etherscan-api").is_dir() {
        crate::binary::skipped::skipped("no etherscan-api (run `tools/setup.sh npm`)");
        return;
    }
    let mut calls = world.calls(Path::new("node"), "with_javascript.mjs");
    let c = &mut calls;
    let names: Vec<(&str, String)> = [
        ("balance", "account.balance"),
        ("balances", "account.balance of several"),
        ("txlist", "account.txlist"),
        ("internal by address", "account.txlistinternal by address"),
        ("internal by hash", "account.txlistinternal by hash"),
        ("tokentx by address", "account.tokentx by address"),
        ("tokentx by contract", "account.tokentx by contract"),
        ("tokennfttx", "account.tokennfttx"),
        ("mined", "account.getminedblocks"),
        ("block reward", "block.getblockreward"),
        ("block by time", "block.getblocknobytime"),
        ("countdown", "block.getblockcountdown"),
        ("abi", "contract.getabi"),
        ("status", "transaction.getstatus"),
        ("receipt status", "transaction.gettxreceiptstatus"),
        ("oracle", "gastracker.gasoracle"),
        ("supply of token", "stats.tokensupply"),
        ("balance of token", "account.tokenbalance"),
        ("price", "stats.ethprice"),
        ("block number", "proxy.eth_blockNumber"),
        ("block", "proxy.eth_getBlockByNumber"),
        ("block count", "proxy.eth_getBlockTransactionCountByNumber"),
        ("transaction", "proxy.eth_getTransactionByHash"),
        ("transaction at", "proxy.eth_getTransactionByBlockNumberAndIndex"),
        ("transaction count", "proxy.eth_getTransactionCount"),
        ("receipt", "proxy.eth_getTransactionReceipt"),
        ("uncle", "proxy.eth_getUncleByBlockNumberAndIndex"),
        ("call", "proxy.eth_call"),
        ("code", "proxy.eth_getCode"),
        ("storage", "proxy.eth_getStorageAt"),
        ("gas price", "proxy.eth_gasPrice"),
        ("estimate", "proxy.eth_estimateGas"),
    ]
    .map(|(meant, name)| (meant, format!("etherscan-api {name}")))
    .into();
    let names: Vec<(&str, &str)> = names
        .iter()
        .map(|(meant, name)| (*meant, name.as_str()))
        .collect();
    same_questions(c, world, &names);
    let none = json!([]);
    assert_eq!(c.take("etherscan-api account.txlist of nobody"), none);
    assert_eq!(c.take("etherscan-api account.txsBeaconWithdrawal"), none);
    assert_eq!(c.take("etherscan-api log.getLogs without any"), none);
    c.one(
        "etherscan-api account.token1155tx",
        json!({"contractAddress": world.of["goods"], "tokenID": "5", "tokenValue": "60"}),
    );
    c.has(
        "etherscan-api account.fundedby",
        json!({"block": world.of["block"], "fundingTxn": world.of["paid"], "fundingAddress": world.of["payer"], "value": "777"}),
    );
    c.has(
        "etherscan-api block.getblocktxnscount",
        json!({"block": world.of["block"], "txsCount": 1, "internalTxsCount": 1, "erc20TxsCount": 0}),
    );
    c.refused(
        "etherscan-api contract.getabi unverified",
        "Contract source code not verified",
    );
    let deeds = c.one(
        "etherscan-api contract.getsourcecode",
        json!({"ContractName": "Deeds", "OptimizationUsed": "1", "Runs": "7", "EVMVersion": "cancun", "Proxy": "0"}),
    );
    let source = text(&deeds["SourceCode"]);
    let standard: Value = serde_json::from_str(&source[1..source.len() - 1]).unwrap();
    let files: Vec<_> = standard["sources"].as_object().unwrap().keys().collect();
    assert_eq!(files, ["All.sol", "Counting.sol"]);
    c.one(
        "etherscan-api contract.getsourcecode unverified",
        json!({"SourceCode": "", "ABI": "Contract source code not verified"}),
    );
    let made = c.take("etherscan-api contract.getcontractcreation");
    let made: Vec<_> = list(&made).iter().map(|row| &row["contractAddress"]).collect();
    assert_eq!(made, [&world.of["coin"], &world.of["deeds"]]);
    let logs = c.take("etherscan-api log.getLogs");
    let expected = world.anvil.ask(
        "eth_getLogs",
        json!([{"address": world.of["coin"], "fromBlock": "0x0", "topics": [TRANSFER]}]),
    );
    assert_eq!(list(&logs).len(), list(&expected).len());
    for (log, expected) in list(&logs).iter().zip(list(&expected)) {
        for field in [
            "address",
            "topics",
            "data",
            "blockNumber",
            "blockHash",
            "logIndex",
            "transactionHash",
            "transactionIndex",
        ] {
            assert_eq!(log[field], expected[field], "{field} of {log}");
        }
        let receipt = world
            .anvil
            .ask("eth_getTransactionReceipt", json!([log["transactionHash"]]));
        assert_eq!(
            (&log["gasUsed"], &log["gasPrice"]),
            (&receipt["gasUsed"], &receipt["effectiveGasPrice"])
        );
    }
    c.one(
        "etherscan-api log.getLogs with and",
        json!({"logIndex": "0x0", "transactionIndex": "0x0"}),
    );
    // What anvil's genesis block allocated nobody said.
    for withheld in ["stats.ethsupply", "stats.ethsupply2"] {
        c.refused(&format!("etherscan-api {withheld}"), "still being indexed");
    }
    for unknown in [
        "proxy.eth_sendRawTransaction",
        "gastracker.gasestimate",
        "stats.nodecount",
    ] {
        c.refused(
            &format!("etherscan-api {unknown}"),
            "Missing Or invalid Action name",
        );
    }
    c.one(
        "etherscan-api usage.chainlist",
        json!({"chainid": "1", "status": 1}),
    );

    let block = world.anvil.head();
    assert_eq!(c.take("ethers getBlockNumber"), block);
    assert_eq!(
        c.take("ethers getBalance"),
        world.balance(world.get("sender")).as_str()
    );
    let then = world
        .anvil
        .ask("eth_getBalance", json!([world.of["sender"], world.of["tag"]]));
    let then = u128::from_str_radix(text(&then).trim_start_matches("0x"), 16).unwrap();
    assert_eq!(c.take("ethers getBalance at a block"), then.to_string());
    assert_eq!(c.take("ethers getTransactionCount"), 9);
    let code = world
        .anvil
        .ask("eth_getCode", json!([world.of["coin"], "latest"]));
    assert_eq!(c.take("ethers getCode"), code);
    assert_eq!(c.take("ethers getStorage"), format!("0x{}", word(1_000_000)));
    let hash = world
        .anvil
        .ask("eth_getBlockByNumber", json!([world.of["tag"], false]))["hash"]
        .clone();
    c.has(
        "ethers getBlock",
        json!({"number": world.of["block"], "hash": hash}),
    );
    c.has(
        "ethers getTransaction",
        json!({"hash": world.of["paid"], "blockNumber": world.of["block"], "value": "777"}),
    );
    c.has(
        "ethers getTransactionReceipt",
        json!({"hash": world.of["paid"], "status": 1}),
    );
    assert_eq!(c.take("ethers call"), format!("0x{}", word(1234)));
    c.refused("ethers call that reverts", "too little");
    assert_eq!(c.take("ethers estimateGas"), "21000");
    assert_eq!(c.take("ethers getEtherPrice"), 2345.67);
    assert_eq!(c.take("ethers getContract, then balanceOf"), "1234");
    assert_eq!(c.take("ethers getContract unverified"), Value::Null);
    calls.done();
}

fn with_python(world: &World) {
    let python = tools().join("python/bin/python");
    if !python.is_file() {
        crate::binary::skipped::skipped("no etherscan-python (run `tools/setup.sh python`)");
        return;
    }
    let mut calls = world.calls(&python, "with_python.py");
    let c = &mut calls;
    let names: Vec<(&str, String)> = [
        ("balance", "eth_balance"),
        ("balances", "eth_balance_multiple"),
        ("txlist", "normal_txs_by_address"),
        ("internal by address", "internal_txs_by_address"),
        ("internal by hash", "internal_txs_by_txhash"),
        ("tokentx by address", "erc20_token_transfer_events_by_address"),
        (
            "tokentx by contract",
            "erc20_token_transfer_events_by_contract_address_paginated",
        ),
        ("tokennfttx", "erc721_token_transfer_events_by_address"),
        ("mined", "mined_blocks_by_address"),
        ("block reward", "block_reward_by_block_number"),
        ("block by time", "block_number_by_timestamp"),
        ("countdown", "est_block_countdown_time_by_block_number"),
        ("abi", "contract_abi"),
        ("status", "contract_execution_status"),
        ("receipt status", "tx_receipt_status"),
        ("oracle", "gas_oracle"),
        ("supply of token", "total_supply_by_contract_address"),
        ("balance of token", "acc_balance_by_token_and_contract_address"),
        ("price", "eth_last_price"),
        ("block number", "proxy_block_number"),
        ("block", "proxy_block_by_number"),
        ("block count", "proxy_block_transaction_count_by_number"),
        ("transaction", "proxy_transaction_by_hash"),
        ("transaction at", "proxy_transaction_by_block_number_and_index"),
        ("transaction count", "proxy_transaction_count"),
        ("receipt", "proxy_transaction_receipt"),
        ("uncle", "proxy_uncle_by_block_number_and_index"),
        ("call", "proxy_call"),
        ("code", "proxy_code_at"),
        ("storage", "proxy_storage_position_at"),
        ("gas price", "proxy_gas_price"),
        ("estimate", "proxy_est_gas"),
    ]
    .map(|(meant, name)| (meant, format!("etherscan-python get_{name}")))
    .into();
    let names: Vec<(&str, &str)> = names
        .iter()
        .map(|(meant, name)| (*meant, name.as_str()))
        .collect();
    let first = c.0["etherscan-python get_normal_txs_by_address"].clone();
    same_questions(c, world, &names);
    let named = |name: &str| format!("etherscan-python get_{name}");
    assert_eq!(c.0.remove(&named("normal_txs_by_address_paginated")), Some(first));
    c.one(
        &named("internal_txs_by_address_paginated"),
        json!({"value": "777"}),
    );
    c.one(
        &named("internal_txs_by_block_range_paginated"),
        json!({"value": "777", "hash": world.of["paid"]}),
    );
    c.one(
        &named("erc20_token_transfer_events_by_address_and_contract_paginated"),
        json!({"value": "1234"}),
    );
    for by in ["contract_address", "address_and_contract"] {
        c.one(
            &named(&format!("erc721_token_transfer_events_by_{by}_paginated")),
            json!({"tokenID": "77"}),
        );
    }
    let mined = c.take(&named("mined_blocks_by_address_paginated"));
    assert_eq!(list(&mined).len(), 10);
    c.one(&named("contract_source_code"), json!({"ContractName": "Coin"}));
    let then = world
        .anvil
        .ask("eth_getBalance", json!([world.of["sender"], world.of["tag"]]));
    let then = u128::from_str_radix(text(&then).trim_start_matches("0x"), 16).unwrap();
    assert_eq!(
        c.take(&named("hist_eth_balance_for_address_by_block_no")),
        then.to_string()
    );
    assert_eq!(
        c.take(&named(
            "hist_erc20_token_total_supply_by_contract_address_and_block_no"
        )),
        "1000000"
    );
    assert_eq!(
        c.take(&named(
            "hist_erc20_token_account_balance_for_token_contract_address_by_block_no"
        )),
        (1_000_000 - 1234).to_string()
    );
    c.one(
        &named("token_info_by_contract_address"),
        json!({"symbol": "CLC", "divisor": "6", "tokenType": "ERC20", "totalSupply": "1000000"}),
    );
    let blocks = world.anvil.head();
    for (name, field) in [
        ("daily_average_block_size", "blockSize_bytes"),
        ("daily_block_count_and_rewards", "blockCount"),
        ("daily_block_rewards", "blockRewards_Eth"),
        ("daily_average_block_time", "blockTime_sec"),
        ("daily_uncle_block_count_and_rewards", "uncleBlockCount"),
        ("daily_average_gas_limit", "gasLimit"),
        ("eth_daily_total_gas_used", "gasUsed"),
        ("eth_daily_average_gas_price", "avgGasPrice_Wei"),
        ("eth_daily_network_tx_fee", "transactionFee_Eth"),
        ("daily_new_address_count", "newAddressCount"),
        ("daily_network_utilization", "networkUtilization"),
        ("daily_tx_count", "transactionCount"),
        ("eth_hist_price", "value"),
    ] {
        let day = c.one(&named(name), json!({"UTCDate": world.of["date"]}));
        assert!(!day[field].is_null(), "{name}: {day}");
        match name {
            "daily_tx_count" => assert_eq!(day[field], 9),
            // Anvil's block 0 is of another day where it is.
            "daily_block_count_and_rewards" => {
                assert!([blocks, blocks + 1].contains(&day[field].as_u64().unwrap()))
            }
            "eth_hist_price" => assert_eq!(day[field], "2345.67"),
            _ => {}
        }
    }
    c.refused(&named("total_eth_supply"), "still being indexed");
    for unknown in [
        "est_confirmation_time",
        "eth_hist_daily_market_cap",
        "daily_average_network_hash_rate",
        "daily_average_network_difficulty",
        "eth_nodes_size",
    ] {
        c.refused(&named(unknown), "Missing Or invalid Action name");
    }
    assert_eq!(c.take("etherscan-python not called"), json!([]));
    calls.done();
}

fn with_cast(world: &World) {
    let cast = tools().join("node_modules/.bin/cast");
    if !cast.is_file() {
        crate::binary::skipped::skipped("no cast (run `tools/setup.sh npm`)");
        return;
    }
    // Its own file says where the explorer of a chain is; `source` has a parameter of its own for it.
    let explorer = format!("{}/v2/api?chainid=1", world.url());
    let file = format!("[etherscan]\nmainnet = {{ key = \"key\", chain = 1, url = \"{explorer}\" }}\n");
    std::fs::write(world._directory.path().join("foundry.toml"), file).unwrap();
    let run = |arguments: &[&str]| -> Result<String, String> {
        let output = direct(&mut Command::new(&cast))
            .args(arguments)
            .args(["--chain", "1"])
            .env("EXPLORER_API_URL", &explorer)
            .env("EXPLORER_URL", world.url())
            .env("HOME", world._directory.path())
            .env_remove("ETHERSCAN_API_KEY")
            .current_dir(world._directory.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            Ok(said)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    };
    let (coin, deeds, payer) = (world.get("coin"), world.get("deeds"), world.get("payer"));
    let source = run(&["source", coin]).unwrap();
    assert!(source.contains("contract Coin"), "{source}");
    let tree = world._directory.path().join("tree");
    run(&["source", deeds, "-d", &tree.display().to_string()]).unwrap();
    let written = std::fs::read_to_string(tree.join("Deeds/Counting.sol")).unwrap();
    assert_eq!(written, std::fs::read_to_string(clients("Counting.sol")).unwrap());
    let interface = run(&["interface", coin]).unwrap();
    assert!(
        interface.contains("function transfer(address to, uint256 value) external returns (bool);"),
        "{interface}"
    );
    let node = world.anvil.http();
    let code = run(&["creation-code", coin, "--rpc-url", &node]).unwrap();
    let created = world
        .anvil
        .ask("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", "0x0"]));
    assert_eq!(code.trim(), text(&created["input"]));
    let unverified = run(&["source", payer]).unwrap_err();
    assert!(unverified.to_lowercase().contains("not verified"), "{unverified}");
    let unverified = run(&["interface", payer]).unwrap_err();
    assert!(unverified.to_lowercase().contains("not verified"), "{unverified}");
}

fn with_rust(world: &World) {
    let Some(program) = std::env::var_os("QUARRY_EXPLORERS").filter(|path| Path::new(path).is_file()) else {
        crate::binary::skipped::skipped(
            "QUARRY_EXPLORERS names no program (`make test` builds it from tests/clients/explorers)",
        );
        return;
    };
    let mut calls = world.run(&mut Command::new(program));
    let c = &mut calls;
    let named = |name: &str| format!("foundry-block-explorers {name}");
    assert_eq!(
        c.take(&named("get_ether_balance_single")),
        world.balance(world.get("sender"))
    );
    for (name, expected) in [
        ("get_ether_balance_multi", json!(2)),
        ("get_transactions", json!(9)),
        ("get_internal_transactions by hash", json!("777")),
        ("get_internal_transactions by address", json!("777")),
        ("get_erc20_token_transfer_events by both", json!("1234")),
        ("get_erc20_token_transfer_events by contract", json!(2)),
        ("get_erc721_token_transfer_events", json!("77")),
        ("get_erc1155_token_transfer_events", json!(["5", "60"])),
        ("get_mined_blocks", json!(true)),
        ("get_block_by_timestamp", json!(world.block_by_time())),
        ("contract_abi", json!(true)),
        ("contract_source_code", json!(["Deeds", 2, true])),
        ("contract_creation_data", world.of["sender"].clone()),
        ("gas_oracle", json!(5)),
        ("check_contract_execution_status", json!(true)),
        ("check_transaction_receipt_status", json!(true)),
    ] {
        assert_eq!(c.take(&named(name)), expected, "{name}");
    }
    c.refused(
        &named("check_contract_execution_status of a failure"),
        "ExecutionFailed",
    );
    for unverified in ["contract_abi unverified", "contract_source_code unverified"] {
        c.refused(&named(unverified), "ContractCodeNotVerified");
    }
    calls.done();
}
