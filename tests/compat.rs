//! Etherscan's dialect of the real binary over the demo chain: every action, each against the operation of the
//! specification that it is the counterpart of, and the facts that clients depend on. Real clients: `tests/anvil`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;

use std::collections::BTreeMap;
use std::path::Path;

use binary::{Server, list, text};
use quarry::compat::actions;
use serde_json::{Map, Value, json};

const A: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const B: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
/// Has tokens with ids.
const C: &str = "0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc";
const NOBODY: &str = "0x00000000000000000000000000000000000000aa";
const COIN: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
const DEEDS: &str = "0x0116686e2291dbd5e317f47fadbfb43b599786ef";
const PAID: &str = "0xe317e22d0d58aeafff0d43a1c99dde3be757834f1265571554c3b93e331a1a64";
const SENT: &str = "0x51cb3aa31a203a4bfd8d87bfe27d9d113e31ad97f5bcc0675ab903901414913f";
const FAILED: &str = "0x52c474c9b4d22a38d10fff735c7cd372f1d23c09633311621e4e76cabe0ef74a";
const MINER: &str = "0x31df6c4bbcda9543fc4df24dc5cb894aefde7772";
const TOPIC: &str = "0x6dfc21ac0c8c2db036305d8bc6f887630d35e156f37d5a7e2275bc05bc004846";
const SIGNALS: &str = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512";
const DAYS: &str = "startdate=2024-03-08&enddate=2024-03-10";
const OUR_DAYS: &str = "startDate=2024-03-08&endDate=2024-03-10";

fn demo() -> Server {
    Server::start(["demo"])
}

/// What an action answers, whatever that is.
#[track_caller]
fn ask(server: &Server, query: &str) -> Value {
    let reply = server.get(&format!("/api?{query}"));
    assert_eq!(reply.status, 200, "{query}: {}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"), "{query}");
    reply.json()
}

/// The result of an action that succeeds.
#[track_caller]
fn result(server: &Server, query: &str) -> Value {
    let mut body = ask(server, query);
    let result = body["result"].take();
    assert_eq!(
        body,
        json!({"status": "1", "message": "OK", "result": null}),
        "{query}: {result}"
    );
    result
}

/// The text of a refusal.
#[track_caller]
fn refusal(server: &Server, query: &str) -> String {
    let body = ask(server, query);
    assert_eq!(
        (&body["status"], &body["message"]),
        (&json!("0"), &json!("NOTOK")),
        "{query}: {body}"
    );
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    text(&body["result"]).to_owned()
}

/// One request for each action that the demo chain answers.
fn requests() -> BTreeMap<(&'static str, &'static str), String> {
    let of_a = format!("address={A}");
    let coin = format!("contractaddress={COIN}");
    let mut all = BTreeMap::new();
    let mut add = |module, action, query: &str| {
        all.insert((module, action), query.to_owned());
    };
    add("account", "balance", &of_a);
    add("account", "balancemulti", &format!("address={A},{B}"));
    add("account", "balancehistory", &format!("{of_a}&blockno=28"));
    add("account", "txlist", &of_a);
    add("account", "txlistinternal", &format!("address={B}"));
    add("account", "tokentx", &of_a);
    add("account", "tokennfttx", &format!("address={C}"));
    add("account", "token1155tx", &format!("address={C}"));
    add("account", "getminedblocks", &format!("address={MINER}"));
    add("account", "txsBeaconWithdrawal", &of_a);
    add(
        "account",
        "fundedby",
        "address=0x02484cb50aac86eae85610d6f4bf026f30f6627d",
    );
    add("account", "tokenbalance", &format!("{of_a}&{coin}"));
    add(
        "account",
        "tokenbalancehistory",
        &format!("{of_a}&{coin}&blockno=28"),
    );
    add("account", "addresstokenbalance", &of_a);
    add("account", "addresstokennftbalance", &format!("address={C}"));
    add(
        "account",
        "addresstokennftinventory",
        &format!("address={C}&contractaddress={DEEDS}"),
    );
    add("contract", "getabi", &format!("address={COIN}"));
    add("contract", "getsourcecode", &format!("address={COIN}"));
    add(
        "contract",
        "getcontractcreation",
        &format!("contractaddresses={COIN},{SIGNALS}"),
    );
    add("transaction", "getstatus", &format!("txhash={FAILED}"));
    add("transaction", "gettxreceiptstatus", &format!("txhash={SENT}"));
    add("block", "getblockreward", "blockno=28");
    add("block", "getblockcountdown", "blockno=90000");
    add("block", "getblocknobytime", "timestamp=1710000000&closest=before");
    add("block", "getblocktxnscount", "blockno=28");
    add("logs", "getLogs", &format!("address={SIGNALS}&topic0={TOPIC}"));
    add("token", "tokenholderlist", &coin);
    add("token", "tokenholdercount", &coin);
    add("token", "topholders", &format!("{coin}&offset=3"));
    add("token", "tokeninfo", &coin);
    add("stats", "tokensupply", &coin);
    add("stats", "tokensupplyhistory", &format!("{coin}&blockno=28"));
    for plain in ["ethsupply", "ethsupply2", "ethprice"] {
        add("stats", plain, "");
    }
    for daily in [
        "ethdailyprice",
        "dailytx",
        "dailynewaddress",
        "dailytxnfee",
        "dailynetutilization",
        "dailyavgblocksize",
        "dailyblkcount",
        "dailyblockrewards",
        "dailyavgblocktime",
        "dailyuncleblkcount",
        "dailyavggasprice",
        "dailygasused",
        "dailyavggaslimit",
    ] {
        add("stats", daily, DAYS);
    }
    add("gastracker", "gasoracle", "");
    add("proxy", "eth_blockNumber", "");
    add("proxy", "eth_getBlockByNumber", "tag=0x4&boolean=true");
    add("proxy", "eth_getBlockTransactionCountByNumber", "tag=0x4");
    add("proxy", "eth_getTransactionByHash", &format!("txhash={SENT}"));
    add(
        "proxy",
        "eth_getTransactionByBlockNumberAndIndex",
        "tag=0x4&index=0x0",
    );
    add("proxy", "eth_getTransactionCount", &format!("{of_a}&tag=latest"));
    add("proxy", "eth_getTransactionReceipt", &format!("txhash={SENT}"));
    add(
        "proxy",
        "eth_call",
        &format!("to={COIN}&data=0x18160ddd&tag=latest"),
    );
    add("proxy", "eth_getCode", &format!("address={COIN}&tag=latest"));
    add(
        "proxy",
        "eth_getStorageAt",
        &format!("address={COIN}&position=0x0&tag=latest"),
    );
    add("proxy", "eth_gasPrice", "");
    add("proxy", "eth_estimateGas", &format!("to={A}&value=0x1"));
    add("proxy", "eth_getUncleByBlockNumberAndIndex", "tag=0x4&index=0x0");
    all
}

/// Asked of a node, which the demo does not have.
const OF_THE_NODE: [&str; 5] = [
    "eth_call",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_gasPrice",
    "eth_estimateGas",
];

#[test]
fn every_action_answers() {
    let server = demo();
    let requests = requests();
    let listed: Vec<_> = actions()
        .iter()
        .map(|action| (action.module, action.name))
        .collect();
    for known in requests.keys() {
        assert!(listed.contains(known), "{known:?} is no action");
    }
    for (module, action) in listed {
        let query = requests
            .get(&(module, action))
            .unwrap_or_else(|| panic!("{module}/{action} is not asked for"));
        let query = format!("module={module}&action={action}&{query}");
        if module == "proxy" {
            let body = ask(&server, &query);
            assert_eq!(
                (&body["jsonrpc"], &body["id"]),
                (&json!("2.0"), &json!(1)),
                "{query}"
            );
            if OF_THE_NODE.contains(&action) {
                assert_eq!(body["error"]["message"], "Upstream node error", "{query}: {body}");
            } else if action == "eth_getUncleByBlockNumberAndIndex" {
                // No block of the demo has one.
                assert_eq!(
                    body,
                    json!({"jsonrpc": "2.0", "id": 1, "result": null}),
                    "{query}"
                );
            } else {
                assert!(!body["result"].is_null(), "{query}: {body}");
            }
        } else if action == "txsBeaconWithdrawal" {
            let expected = json!({"status": "0", "message": "No transactions found", "result": []});
            assert_eq!(ask(&server, &query), expected);
        } else {
            let found = result(&server, &query);
            assert!(found.as_array().is_none_or(|items| !items.is_empty()), "{query}");
        }
    }
    server.stop();
}

/// A field of the specification's as Etherscan has it: numbers are text, nothing is an empty text.
fn as_text(value: &Value) -> Value {
    match value {
        Value::Null => json!(""),
        Value::Number(number) => json!(number.to_string()),
        other => other.clone(),
    }
}

/// The items of one of our lists with their fields renamed.
fn renamed(items: &Value, names: &[(&str, &str)]) -> Vec<Value> {
    let one = |item: &Value| {
        let fields: Map<String, Value> = names
            .iter()
            .map(|(theirs, ours)| ((*theirs).to_owned(), as_text(&item[ours])))
            .collect();
        Value::Object(fields)
    };
    list(items).iter().map(one).collect()
}

const TRANSACTION: &[(&str, &str)] = &[
    ("blockNumber", "blockNumber"),
    ("blockHash", "blockHash"),
    ("timeStamp", "timestamp"),
    ("hash", "hash"),
    ("nonce", "nonce"),
    ("transactionIndex", "transactionIndex"),
    ("from", "from"),
    ("to", "to"),
    ("value", "value"),
    ("gas", "gas"),
    ("gasPrice", "gasPrice"),
    ("input", "input"),
    ("methodId", "methodId"),
    ("functionName", "functionName"),
    ("contractAddress", "contractAddress"),
    ("cumulativeGasUsed", "cumulativeGasUsed"),
    ("txreceipt_status", "status"),
    ("gasUsed", "gasUsed"),
    ("confirmations", "confirmations"),
    ("isError", "isError"),
];

const INTERNAL: &[(&str, &str)] = &[
    ("blockNumber", "blockNumber"),
    ("timeStamp", "timestamp"),
    ("hash", "transactionHash"),
    ("from", "from"),
    ("to", "to"),
    ("value", "value"),
    ("contractAddress", "contractAddress"),
    ("input", "input"),
    ("type", "type"),
    ("gas", "gas"),
    ("gasUsed", "gasUsed"),
    ("traceId", "traceId"),
    ("isError", "isError"),
    ("errCode", "errCode"),
];

const TRANSFER: &[(&str, &str)] = &[
    ("blockNumber", "blockNumber"),
    ("timeStamp", "timestamp"),
    ("hash", "transactionHash"),
    ("nonce", "nonce"),
    ("blockHash", "blockHash"),
    ("from", "from"),
    ("contractAddress", "contractAddress"),
    ("to", "to"),
    ("tokenName", "tokenName"),
    ("tokenSymbol", "tokenSymbol"),
    ("transactionIndex", "transactionIndex"),
    ("gas", "gas"),
    ("gasPrice", "gasPrice"),
    ("gasUsed", "gasUsed"),
    ("cumulativeGasUsed", "cumulativeGasUsed"),
    ("confirmations", "confirmations"),
];

/// What is our list as theirs; of the kinds of transfers, with fields of their own.
fn transfers(items: &Value, more: &[(&str, &str)]) -> Vec<Value> {
    let mut all = renamed(items, &[TRANSFER, more].concat());
    for item in &mut all {
        item["input"] = json!("deprecated");
    }
    all
}

#[test]
fn lists_are_those_of_the_operations() {
    let server = demo();
    let accounts = [
        A,
        B,
        C,
        MINER,
        COIN,
        SIGNALS,
        "0x02484cb50aac86eae85610d6f4bf026f30f6627d",
    ];
    let mut compared = 0;
    for account in accounts {
        for (sort, page) in [
            ("asc", "page=1&offset=10000"),
            ("desc", "page=2&offset=3"),
            ("asc", "page=0&offset=2"),
        ] {
            let ours_page = page.replace("page=0", "page=1");
            let mut same = |action: &str, path: &str, name: &str, make: &dyn Fn(&Value) -> Vec<Value>| {
                let ours = server.json(&format!("/api/account/{account}/{path}?sort={sort}&{ours_page}"));
                let expected = make(&ours[name]);
                let query = format!("module=account&action={action}&address={account}&sort={sort}&{page}");
                let found = ask(&server, &query);
                if expected.is_empty() {
                    assert_eq!(
                        found,
                        json!({"status": "0", "message": "No transactions found", "result": []})
                    );
                } else {
                    assert_eq!(list(&found["result"]), expected, "{query}");
                    compared += expected.len();
                }
            };
            same("txlist", "tx-list", "transactions", &|items| {
                renamed(items, TRANSACTION)
            });
            same(
                "txlistinternal",
                "tx-list-internal",
                "internalTransactions",
                &|items| {
                    let mut all = renamed(items, INTERNAL);
                    for item in &mut all {
                        if item["input"] == "0x" {
                            item["input"] = json!("");
                        }
                    }
                    all
                },
            );
            same("getminedblocks", "mined-blocks", "blocks", &|items| {
                renamed(
                    items,
                    &[
                        ("blockNumber", "blockNumber"),
                        ("timeStamp", "timestamp"),
                        ("blockReward", "blockReward"),
                    ],
                )
            });
            same("tokentx", "token-tx", "transfers", &|items| {
                transfers(items, &[("value", "value"), ("tokenDecimal", "tokenDecimal")])
            });
            same("tokennfttx", "token-nft-tx", "transfers", &|items| {
                let mut all = transfers(items, &[("tokenID", "tokenId"), ("tokenDecimal", "tokenDecimal")]);
                for item in &mut all {
                    if item["tokenDecimal"] == "" {
                        item["tokenDecimal"] = json!("0");
                    }
                }
                all
            });
            same("token1155tx", "token-1155-tx", "transfers", &|items| {
                transfers(items, &[("tokenID", "tokenId"), ("tokenValue", "tokenValue")])
            });
        }
    }
    assert!(compared > 500, "{compared}");
    // By blocks and by hash.
    let ours = server.json("/api/account/tx-list-internal?startblock=10&endblock=60");
    let found = result(
        &server,
        "module=account&action=txlistinternal&startblock=10&endblock=60",
    );
    assert_eq!(list(&found).len(), list(&ours["internalTransactions"]).len());
    let ours = server.json(&format!("/api/account/tx-list-internal?hash={PAID}"));
    let found = result(
        &server,
        &format!("module=account&action=txlistinternal&txhash={PAID}"),
    );
    assert_eq!(list(&found).len(), list(&ours["internalTransactions"]).len());
    // A token's transfers are those of all accounts.
    let all = result(
        &server,
        &format!("module=account&action=tokentx&contractaddress={COIN}"),
    );
    for account in [A, B, C] {
        let of_account = |item: &&Value| item["from"] == account || item["to"] == account;
        let expected: Vec<_> = list(&all).iter().filter(of_account).cloned().collect();
        let found = ask(
            &server,
            &format!("module=account&action=tokentx&contractaddress={COIN}&address={account}"),
        );
        assert_eq!(list(&found["result"]), expected);
    }
    server.stop();
}

#[test]
fn logs_are_those_of_the_operations() {
    let server = demo();
    let hex = |value: &Value| match value {
        Value::Number(number) => format!("0x{:x}", number.as_u64().unwrap()),
        other => format!("0x{:x}", text(other).parse::<u64>().unwrap()),
    };
    for (theirs, ours) in [
        (format!("address={SIGNALS}"), format!("address={SIGNALS}")),
        (
            format!("topic0={TOPIC}&offset=5&page=2"),
            format!("topic0={TOPIC}&offset=5&page=2"),
        ),
        (
            format!("address={SIGNALS}&TOPIC0={TOPIC}&fromBlock=5&toBlock=99999999"),
            format!("address={SIGNALS}&topic0={TOPIC}&fromblock=5"),
        ),
    ] {
        let expected = server.json(&format!("/api/logs/get-logs?{ours}"));
        let found = result(&server, &format!("module=logs&action=getLogs&{theirs}"));
        assert_eq!(list(&found).len(), list(&expected["logs"]).len(), "{theirs}");
        for (found, expected) in list(&found).iter().zip(list(&expected["logs"])) {
            assert_eq!(found["address"], expected["contractAddress"]);
            assert_eq!(found["data"], expected["data"]);
            assert_eq!(found["transactionHash"], expected["transactionHash"]);
            assert_eq!(found["blockHash"], expected["blockHash"]);
            assert_eq!(found["blockNumber"], hex(&expected["blockNumber"]));
            assert_eq!(found["timeStamp"], hex(&expected["timestamp"]));
            let receipt = server.proxy(&format!(
                "action=eth_getTransactionReceipt&txhash={}",
                text(&found["transactionHash"])
            ));
            assert_eq!(found["gasUsed"], receipt["gasUsed"]);
            assert_eq!(found["gasPrice"], receipt["effectiveGasPrice"]);
            assert_eq!(found["transactionIndex"], receipt["transactionIndex"]);
            let logs = list(&receipt["logs"]).iter();
            let mut same = logs.filter(|log| log["logIndex"] == found["logIndex"]);
            assert_eq!(same.next().unwrap()["topics"], found["topics"]);
        }
    }
    let none = ask(&server, &format!("module=logs&action=getLogs&address={NOBODY}"));
    assert_eq!(
        none,
        json!({"status": "0", "message": "No records found", "result": []})
    );
    server.stop();
}

#[test]
fn values_are_those_of_the_operations() {
    let server = demo();
    let r = |query: &str| result(&server, query);
    let ours = |target: &str| server.json(target);
    let balance = ours(&format!("/api/account/{A}/balance"))["balance"].clone();
    assert_eq!(r(&format!("module=account&action=balance&address={A}")), balance);
    assert_eq!(
        r(&format!("module=account&action=balance&address={A}&tag=pending")),
        balance
    );
    let then = ours(&format!("/api/account/{A}/balance-history?block=28"))["balance"].clone();
    for query in [
        format!("action=balancehistory&address={A}&blockno=28"),
        format!("action=balance&address={A}&tag=0x1c"),
        format!("action=balance&address={A}&tag=28"),
    ] {
        assert_eq!(r(&format!("module=account&{query}")), then, "{query}");
    }
    assert_eq!(r(&format!("module=account&action=balance&address={NOBODY}")), "0");
    let coin = format!("contractaddress={COIN}");
    assert_eq!(
        r(&format!("module=stats&action=tokensupply&{coin}")),
        ours(&format!("/api/token/{COIN}/total-supply"))["totalSupply"]
    );
    assert_eq!(
        r(&format!("module=account&action=tokenbalance&address={B}&{coin}")),
        ours(&format!("/api/token/balance?address={B}&{coin}"))["balance"]
    );
    let info = r(&format!("module=token&action=tokeninfo&{coin}"));
    let expected = ours(&format!("/api/token/info?{coin}"));
    assert_eq!(info[0]["totalSupply"], expected["totalSupply"]);
    assert_eq!(info[0]["tokenName"], expected["tokenName"]);
    let count = ours(&format!("/api/token/holder-count?{coin}"))["holderCount"].to_string();
    assert_eq!(r(&format!("module=token&action=tokenholdercount&{coin}")), count);
    let holders = r(&format!("module=token&action=tokenholderlist&{coin}&offset=10"));
    let expected = ours(&format!("/api/token/holder-list?{coin}&offset=10"));
    for (found, expected) in list(&holders).iter().zip(list(&expected["holders"])) {
        assert_eq!(found["TokenHolderAddress"], expected["address"]);
        assert_eq!(found["TokenHolderQuantity"], expected["balance"]);
    }
    let price = r("module=stats&action=ethprice");
    assert_eq!(price["ethusd"], ours("/api/stats/token-price")["priceUSD"]);
    let supply = r("module=stats&action=ethsupply2");
    let wei = |name: &str| text(&supply[name]).parse::<u128>().unwrap();
    let total = r("module=stats&action=ethsupply");
    let sum = wei("EthSupply") + wei("Eth2Staking") - wei("BurntFees");
    assert_eq!(text(&total), sum.to_string());
    let status = r(&format!("module=transaction&action=getstatus&txhash={FAILED}"));
    let expected = ours(&format!("/api/transaction/{FAILED}/contract-status"));
    assert_eq!(
        status,
        json!({"isError": "1", "errDescription": expected["errDescription"]})
    );
    assert_eq!(
        r(&format!("module=transaction&action=getstatus&txhash={SENT}"))["isError"],
        "0"
    );
    let unknown = format!("0x{}", "12".repeat(32));
    assert_eq!(
        r(&format!(
            "module=transaction&action=gettxreceiptstatus&txhash={unknown}"
        )),
        json!({"status": ""})
    );
    let counts = r("module=block&action=getblocktxnscount&blockno=28");
    let expected = ours("/api/block/28/transaction-count");
    assert_eq!(counts["txsCount"], expected["txsCount"]);
    assert_eq!(counts["internalTxsCount"], expected["internalTxsCount"]);
    let reward = r("module=block&action=getblockreward&blockno=28");
    assert_eq!(
        reward["blockReward"],
        ours("/api/block/28/rewards")["blockReward"]
    );
    let source = r(&format!("module=contract&action=getsourcecode&address={COIN}"));
    let expected = ours(&format!("/api/contract/{COIN}/source-code"));
    assert_eq!(source[0]["ContractName"], expected["contractName"]);
    assert_eq!(source[0]["ABI"], expected["abi"]);
    assert!(text(&source[0]["CompilerVersion"]).starts_with('v'), "{source}");
    let made = r(&format!(
        "module=contract&action=getcontractcreation&contractaddresses={SIGNALS}"
    ));
    let expected = ours(&format!(
        "/api/contract/contract-creation?contractaddresses={SIGNALS}"
    ));
    assert_eq!(made[0]["txHash"], expected["contracts"][0]["txHash"]);
    assert_eq!(
        made[0]["creationBytecode"],
        expected["contracts"][0]["creationBytecode"]
    );
    for (action, path, theirs, mine) in [
        (
            "dailytx",
            "stats/daily-transaction-count",
            "transactionCount",
            "transactionCount",
        ),
        (
            "dailynewaddress",
            "stats/daily-unique-addresses",
            "newAddressCount",
            "newAddressCount",
        ),
        (
            "dailytxnfee",
            "stats/daily-transaction-fees",
            "transactionFee_Eth",
            "transactionFee_Coin",
        ),
        (
            "dailyavgblocksize",
            "block/daily-average-size",
            "blockSize_bytes",
            "blockSize_Bytes",
        ),
        (
            "dailyblkcount",
            "block/daily-count-and-rewards",
            "blockRewards_Eth",
            "blockRewards_Coin",
        ),
        (
            "dailyavgblocktime",
            "block/daily-average-block-time",
            "blockTime_sec",
            "blockTime_Sec",
        ),
        (
            "dailygasused",
            "gas-tracker/daily-total-gas-used",
            "gasUsed",
            "gasUsed",
        ),
        (
            "ethdailyprice",
            "stats/historical-price",
            "value",
            "nativeCoinPrice_USD",
        ),
    ] {
        let found = r(&format!("module=stats&action={action}&{DAYS}&sort=desc"));
        let expected = ours(&format!("/api/{path}?{OUR_DAYS}&sort=desc"));
        assert_eq!(list(&found).len(), 3, "{action}");
        for (found, expected) in list(&found).iter().zip(list(&expected["data"])) {
            assert_eq!(found["UTCDate"], expected["date"]);
            assert_eq!(found["unixTimeStamp"], as_text(&expected["unixTimeStamp"]));
            assert_eq!(found[theirs], expected[mine], "{action}");
        }
    }
    server.stop();
}

#[test]
fn what_clients_depend_on() {
    let server = demo();
    let balance = result(&server, &format!("module=account&action=balance&address={A}"));
    for query in [
        format!(
            "MODULE=Account&Action=BALANCE&Address={}&apikey=whatever&tag=latest",
            A.to_uppercase().replace("0X", "0x")
        ),
        format!("module=account&action=balance&address={A}&chainid=31337&apikey="),
        format!("chain=mainnet&module=account&action=balance&address={A}"),
    ] {
        assert_eq!(result(&server, &query), balance, "{query}");
    }
    // The second version names the chain.
    let v2 = |query: &str| server.get(&format!("/v2/api?{query}")).json();
    let asked = format!("module=account&action=balance&address={A}");
    assert_eq!(v2(&format!("chainid=31337&{asked}"))["result"], balance);
    for missing in ["", "chainid=&", "chainid=5&", "chainid=x&", "chain=mainnet&"] {
        let body = v2(&format!("{missing}{asked}"));
        assert_eq!(
            (&body["status"], &body["message"]),
            (&json!("0"), &json!("NOTOK"))
        );
        assert!(
            text(&body["result"]).starts_with("Missing or unsupported chainid parameter"),
            "{body}"
        );
    }
    let chains = server.json("/v2/chainlist");
    assert_eq!(
        (&chains["totalcount"], &chains["result"][0]["chainid"]),
        (&json!(1), &json!("31337"))
    );
    // A form does what a query does, and wins over it.
    let form = server.post("/api", &format!("module=account&action=balance&address={A}"));
    assert_eq!(form.json()["result"], balance);
    let both = server.post(
        "/v2/api?chainid=31337&module=account",
        &format!("chainid=31337&action=balance&address={A}"),
    );
    assert_eq!(both.json()["result"], balance);
    // Refusals.
    for (query, expected) in [
        ("", "Error! Missing Or invalid Module name"),
        (
            "module=nothing&action=balance",
            "Error! Missing Or invalid Module name",
        ),
        ("module=account", "Error! Missing Or invalid Action name"),
        (
            "module=contract&action=verifysourcecode",
            "Error! Missing Or invalid Action name",
        ),
        (
            "module=account&action=balance",
            "Error! Missing required parameter: address",
        ),
        (
            "module=account&action=balance&address=0x12",
            "Error! Invalid address format",
        ),
        (
            "module=account&action=tokenbalance&address=0x0000000000000000000000000000000000000001&contractaddress=1",
            "Error! Invalid contract address format",
        ),
        (
            "module=transaction&action=getstatus&txhash=0x12",
            "Error! Invalid transaction hash",
        ),
        (
            "module=account&action=txlist&address=0x0000000000000000000000000000000000000001&page=x",
            "Error! Invalid page parameter",
        ),
        (
            "module=account&action=txlist&address=0x0000000000000000000000000000000000000001&offset=10001",
            "Error! Invalid offset parameter",
        ),
        (
            "module=account&action=txlistinternal",
            "Error! Missing required parameter: txhash, address, or startblock and endblock",
        ),
        (
            "module=logs&action=getLogs",
            "Error! At least one topic is required",
        ),
        (
            "module=block&action=getblockcountdown&blockno=1",
            "Error! Block number already pass",
        ),
        (
            "module=block&action=getblockreward&blockno=9999999",
            "Error! Block not found",
        ),
        (
            "module=account&action=balance&chain=other&address=0x0000000000000000000000000000000000000001",
            "Error! Invalid chain",
        ),
    ] {
        assert_eq!(refusal(&server, query), expected, "{query}");
    }
    let unverified = format!("address={SIGNALS}ff").replace("ff", "");
    let unverified = unverified.replace(SIGNALS, "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0");
    assert_eq!(
        refusal(&server, &format!("module=contract&action=getabi&{unverified}")),
        "Contract source code not verified"
    );
    let source = result(
        &server,
        &format!("module=contract&action=getsourcecode&{unverified}"),
    );
    assert_eq!(
        (&source[0]["SourceCode"], &source[0]["ABI"]),
        (&json!(""), &json!("Contract source code not verified"))
    );
    let proxy = ask(&server, "module=proxy&action=eth_getBlockByNumber&tag=12");
    assert_eq!(
        proxy,
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Invalid tag parameter"}})
    );
    let proxy = ask(&server, "module=proxy&action=eth_sendRawTransaction&hex=0x00");
    assert_eq!(proxy["error"]["code"], -32601);
    // The rules of the transport.
    let reply = server.get(&format!("/api?{asked}"));
    assert!(reply.header("x-indexed-block-number").is_some());
    let tag = reply.header("etag").expect("a tag").to_owned();
    let again = server.get_with(&format!("/api?{asked}"), &format!("if-none-match: {tag}\r\n"));
    assert_eq!(again.status, 304);
    let total = server.get(&format!("/api?module=account&action=txlist&address={A}&offset=1"));
    let every = result(&server, &format!("module=account&action=txlist&address={A}"));
    assert_eq!(
        total.header("x-total-count"),
        Some(list(&every).len().to_string().as_str())
    );
    let next = server.get(&total.next().expect("a next page")).json();
    assert_eq!(next["result"][0], every[1]);
    server.stop();
}

/// What Etherscan passes over, and clients therefore send.
#[test]
fn what_says_nothing_is_passed_over() {
    let server = demo();
    // Operators between topics of which one is not given.
    let logs = format!("module=logs&action=getLogs&address={SIGNALS}&topic0={TOPIC}");
    let expected = result(&server, &logs);
    for loose in [
        "topic0_1_opr=and",
        "topic0_1_opr=and&topic0_2_opr=or&topic1_2_opr=and&topic0_3_opr=and&topic1_3_opr=and&topic2_3_opr=and",
        "topic2_3_opr=neither",
    ] {
        assert_eq!(result(&server, &format!("{logs}&{loose}")), expected, "{loose}");
    }
    // Between two that are given it counts as before, beside one that does not.
    let all = list(&expected).iter();
    let with_two: Vec<_> = all.filter(|log| list(&log["topics"]).len() > 1).collect();
    let second = text(&with_two[0]["topics"][1]);
    let both = format!("{logs}&topic1={second}&topic1_2_opr=and");
    let found = result(&server, &format!("{both}&topic0_1_opr=and"));
    let expected: Vec<_> = with_two
        .iter()
        .filter(|log| log["topics"][1] == second)
        .copied()
        .collect();
    assert_eq!(list(&found).iter().collect::<Vec<_>>(), expected);
    assert_eq!(
        refusal(&server, &format!("{both}&topic0_1_opr=xor")),
        "Error! Invalid topic0_1_opr parameter"
    );
    // An account and a range beside a hash.
    let by_hash = format!("module=account&action=txlistinternal&txhash={PAID}");
    let expected = result(&server, &by_hash);
    for beside in [
        "address=0x12",
        "startblock=x&endblock=y",
        "startblock=9&endblock=2",
        "address=0x12&startblock=-1",
    ] {
        assert_eq!(
            result(&server, &format!("{by_hash}&{beside}")),
            expected,
            "{beside}"
        );
    }
    server.stop();
}

/// What is nothing that is looked for is no mistake of who asks.
#[test]
fn what_is_not_there() {
    let server = demo();
    let creation = |contracts: &[&str]| {
        let contracts = contracts.join(",");
        format!("module=contract&action=getcontractcreation&contractaddresses={contracts}")
    };
    let none = json!({"status": "0", "message": "No data found", "result": null});
    assert_eq!(ask(&server, &creation(&[NOBODY])), none);
    assert_eq!(ask(&server, &creation(&[A, NOBODY])), none);
    let found = result(&server, &creation(&[NOBODY, COIN, NOBODY, COIN, COIN]));
    assert_eq!(list(&found).len(), 1);
    server.stop();
}

/// Where a proxy is believed it says by which scheme it was asked.
#[test]
fn the_list_of_chains_by_the_scheme_of_a_proxy() {
    for (option, expected) in [
        (None, ["http", "http", "http", "http"]),
        (Some("--trust-proxy"), ["http", "https", "http", "https"]),
    ] {
        let server = Server::start(["demo"].into_iter().chain(option));
        let lines = [
            "",
            "x-forwarded-proto: https\r\n",
            "x-forwarded-proto: http\r\n",
            "x-forwarded-proto: http, HTTPS\r\n",
        ];
        for (lines, scheme) in lines.into_iter().zip(expected) {
            let chains = server.get_with("/v2/chainlist", lines).json();
            let url = format!("{scheme}://test/v2/api?chainid=31337");
            assert_eq!(chains["result"][0]["apiurl"], url, "{lines}");
        }
        server.stop();
    }
}

/// Whatever the page, and where pages are gone on with.
#[test]
fn lists_say_how_long_they_are() {
    let server = demo();
    let lists = [
        ("account", "txlist"),
        ("account", "txlistinternal"),
        ("account", "tokentx"),
        ("account", "tokennfttx"),
        ("account", "token1155tx"),
        ("account", "getminedblocks"),
        ("account", "addresstokenbalance"),
        ("account", "addresstokennftbalance"),
        ("account", "addresstokennftinventory"),
        ("logs", "getLogs"),
        ("token", "tokenholderlist"),
    ];
    let requests = requests();
    for (module, action) in lists {
        let of = &requests[&(module, action)];
        let asked = format!("/api?module={module}&action={action}&{of}");
        let whole = server.get(&asked);
        let every = whole.json()["result"].take();
        let total = list(&every).len().to_string();
        assert_eq!(whole.header("x-total-count"), Some(total.as_str()), "{asked}");
        assert_eq!(whole.next(), None, "{asked}");
        let past = server.get(&format!("{asked}&page=999"));
        assert_eq!(
            past.header("x-total-count"),
            Some(total.as_str()),
            "{asked}&page=999"
        );
        assert_eq!(past.json()["message"].as_str().map(|told| &told[..2]), Some("No"));
        // A page at a time, as the answers themselves say.
        let (mut met, mut next) = (Vec::new(), Some(format!("{asked}&offset=1")));
        while let Some(path) = next {
            let page = server.get(&path);
            met.extend(list(&page.json()["result"]).iter().cloned());
            next = page.next();
            assert!(met.len() <= list(&every).len(), "{path}");
        }
        assert_eq!(json!(met), every, "{asked}");
    }
    // What has no pages.
    for (module, action, query) in [
        ("stats", "dailytx", DAYS.to_owned()),
        (
            "contract",
            "getcontractcreation",
            format!("contractaddresses={COIN},{SIGNALS}"),
        ),
    ] {
        let whole = server.get(&format!("/api?module={module}&action={action}&{query}"));
        let total = list(&whole.json()["result"]).len().to_string();
        assert_eq!(whole.header("x-total-count"), Some(total.as_str()), "{action}");
    }
    let top = server.get(&format!(
        "/api?module=token&action=topholders&contractaddress={COIN}&offset=1"
    ));
    let all = server.get(&format!(
        "/api?module=token&action=tokenholderlist&contractaddress={COIN}"
    ));
    assert_eq!(top.header("x-total-count"), all.header("x-total-count"));
    assert_eq!((list(&top.json()["result"]).len(), top.next()), (1, None));
    // An address has nothing of a form in a body.
    let form = format!("module=token&action=tokenholderlist&contractaddress={COIN}&offset=1");
    let posted = server.post("/api", &form);
    assert_eq!(posted.header("x-total-count"), all.header("x-total-count"));
    assert_eq!((list(&posted.json()["result"]).len(), posted.next()), (1, None));
    server.stop();
}

#[test]
fn who_asks_too_often_hears_it_in_their_words() {
    let server = Server::start(["demo", "--rate-limit", "1"]);
    let limited = (0..10).find_map(|_| {
        let reply = server.get("/api?module=proxy&action=eth_blockNumber");
        (reply.status == 429).then_some(reply)
    });
    let limited = limited.expect("ten requests at once are more than one a second");
    assert!(limited.header("retry-after").is_some());
    let expected = json!({"status": "0", "message": "NOTOK", "result": "Max rate limit reached"});
    assert_eq!(limited.json(), expected);
    server.stop();
}

/// Whatever is sent, there is one well-formed answer, and it is no fault of ours.
#[test]
fn nonsense_is_refused() {
    let server = demo();
    let seed = 11;
    let mut random = fastrand::Rng::with_seed(seed);
    let values = [
        "",
        "0",
        "-1",
        "1",
        "99999999999999999999",
        "0x",
        "0xg",
        "latest",
        "earliest",
        "%ff",
        "%",
        "a,b",
        A,
        COIN,
        SENT,
        "2024-02-30",
        "true",
        "%00",
        "%7B%22",
        "desc",
        "0x0",
        "0x1",
        "1e3",
        "+1",
        "%20",
        "null",
    ];
    let names = [
        "address",
        "contractaddress",
        "contractaddresses",
        "txhash",
        "startblock",
        "endblock",
        "fromBlock",
        "toBlock",
        "page",
        "offset",
        "sort",
        "cursor",
        "tag",
        "blockno",
        "blocktype",
        "timestamp",
        "closest",
        "startdate",
        "enddate",
        "topic0",
        "topic1",
        "topic0_1_opr",
        "boolean",
        "index",
        "position",
        "to",
        "from",
        "data",
        "value",
        "gas",
        "gasPrice",
        "chainid",
        "chain",
    ];
    let known = requests();
    for round in 0..3000 {
        let action = &actions()[random.usize(..actions().len())];
        let mut query = format!("module={}&action={}", action.module, action.name);
        if random.bool() {
            query.push('&');
            query.push_str(&known[&(action.module, action.name)]);
        }
        for _ in 0..random.usize(..4) {
            let (name, value) = (
                names[random.usize(..names.len())],
                values[random.usize(..values.len())],
            );
            query.push_str(&format!("&{name}={value}"));
        }
        let reply = if random.bool() {
            server.get(&format!("/api?{query}"))
        } else {
            server.post("/api", &query)
        };
        let what = format!(
            "seed {seed}, round {round}: {query}: {} {}",
            reply.status,
            reply.text()
        );
        assert!([200, 503].contains(&reply.status), "{what}");
        let body = reply.json();
        if body.get("jsonrpc").is_some() {
            assert_eq!(action.module, "proxy", "{what}");
        } else {
            let status = text(&body["status"]);
            assert!(
                ["0", "1"].contains(&status) && body["message"].is_string(),
                "{what}"
            );
            assert!(body.get("result").is_some(), "{what}");
        }
        assert!(!reply.text().contains("Internal server error"), "{what}");
    }
    assert!(!server.log().contains("ERROR"), "{}", server.log());
    server.stop();
}

/// The table of actions in docs/COMPATIBILITY.md (`QUARRY_BLESS=1` renders it anew).
#[test]
fn the_actions_in_the_documentation_are_these() {
    let (begin, end) = ("<!-- begin actions -->\n", "<!-- end actions -->");
    let mut table = String::from("\n| Module | Action | Operation |\n|---|---|---|\n");
    for action in actions() {
        table.push_str(&format!(
            "| `{}` | `{}` | {} |\n",
            action.module, action.name, action.operations
        ));
    }
    table.push('\n');
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/COMPATIBILITY.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(begin).expect("a table begins");
    let (found, tail) = rest.split_once(end).expect("and ends");
    if found != table && std::env::var_os("QUARRY_BLESS").is_some() {
        std::fs::write(&path, format!("{head}{begin}{table}{end}{tail}")).unwrap();
        return;
    }
    assert_eq!(found, table, "render it anew with QUARRY_BLESS=1");
}
