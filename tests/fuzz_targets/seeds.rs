//! Good inputs of each target, out of what ships: the demo chain, its files, and the examples of the endpoint list.

use std::io::Cursor;
use std::path::PathBuf;

use quarry::api::endpoints;
use quarry::codec::log_row::{BlockRow, RunBuilder, RunRow, encode_block_row, encode_body};
use quarry::codec::transaction_row::encode_transaction;
use quarry::codec::value::{
    AccountRow, CallOf, Checkpoint, DayRow, Finality, FrameSlice, FundingRow, SupplyRow, encode_block,
    encode_frame,
};
use quarry::codec::{chunk, keys, observed, posting, tokens};
use quarry::model::{Address, Bundle, U256};
use quarry::node::recorded::RecordedChain;
use serde_json::{Value, json};

use crate::{codecs, imports, postings};

fn demo(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("demo").join(name)
}

/// Lines of the demo chain, short ones: what there is of each kind, and not all of it.
fn lines() -> Vec<String> {
    let chain = RecordedChain::open(demo("chain.jsonl.zst")).unwrap();
    let lines = chain.map(|line| line.unwrap().text);
    lines
        .filter(|line| line.len() < 24_000)
        .step_by(4)
        .take(60)
        .collect()
}

fn bundles() -> Vec<Bundle> {
    let parse = |line: String| quarry::node::recorded::parse_line(&line).unwrap();
    lines().into_iter().map(parse).collect()
}

/// Behind a first byte.
fn of_kind(kind: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    [&[kind], bytes.as_ref()].concat()
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

pub(crate) fn codecs() -> Vec<Vec<u8>> {
    let account = Address::repeat_byte(0xab);
    let mut seeds = Vec::new();
    for bundle in bundles() {
        seeds.push(of_kind(9, encode_block(&bundle.block)));
        for (transaction, receipt) in bundle.block.transactions.iter().zip(&bundle.receipts) {
            let row = written(|out| encode_transaction(transaction, receipt, &(3..5), out));
            seeds.push(of_kind(4, row));
        }
        let traces = bundle.traces.iter().flatten().zip(&bundle.block.transactions);
        for (trace, transaction) in traces {
            let call = CallOf::from(transaction);
            for frame in &trace.frames {
                let frame = FrameSlice::of(1, frame);
                seeds.push(of_kind(7, written(|out| encode_frame(&frame, Some(&call), out))));
            }
        }
    }
    seeds.truncate(400);
    let day = DayRow::default();
    seeds.extend([
        of_kind(0, keys::Term::log_address(7).key(1 << 40)),
        of_kind(0, keys::emitter_run(7, 9)),
        of_kind(0, keys::account_at(&account, 12)),
        of_kind(0, tokens::holder(3, &U256::from(5), &account)),
        of_kind(0, observed::order_key(&account, U256::from(5), &account)),
        of_kind(3, [0x20; 64]),
        of_kind(11, day.encode()),
        of_kind(12, AccountRow::default().encode()),
        of_kind(14, SupplyRow::default().encode()),
        of_kind(16, Checkpoint::default().encode()),
        of_kind(17, Finality::default().encode()),
        of_kind(21, tokens::TokenState::default().encode()),
        of_kind(22, observed::Refreshed::default().encode()),
        of_kind(26, observed::encode_balance(U256::MAX, 9)),
    ]);
    let funding = FundingRow::decode(&[0; 8]).map(|row| row.encode());
    seeds.extend(funding.ok().map(|row| of_kind(13, row)));
    seeds.extend((0..codecs::KINDS).map(|kind| of_kind(kind, [0; 40])));
    seeds
}

pub(crate) fn postings() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let lists: [Vec<u64>; 4] = [
        vec![7],
        (0..20).map(|n| n * 1_000_003).collect(),
        (0..1024).map(|n| n * 37).collect(),
        (0..1024).map(|n| n + n / 9).collect(),
    ];
    for list in lists {
        seeds.push(of_kind(0, written(|out| posting::encode(5, &list, out))));
    }
    seeds.push(of_kind(1, [3, 0, 5, 200, 1, 0, 0, 9]));
    let mut run = RunBuilder::new(2);
    let mut ordinal = 0;
    for bundle in bundles() {
        let block = bundle.block.number();
        let mut unit = chunk::UnitBuilder::new(block, 1 << 16);
        for (place, (receipt, transaction)) in
            (0u32..).zip(bundle.receipts.iter().zip(&bundle.block.transactions))
        {
            for log in &receipt.logs {
                let body = written(|out| encode_body(log, 1, out));
                seeds.push(of_kind(5, &body));
                run.push(
                    &RunRow {
                        ordinal,
                        block,
                        transaction_index: place,
                        transaction_hash: transaction.hash,
                    },
                    &body,
                );
                ordinal += 3;
                let row = BlockRow {
                    transaction_index: place,
                    emitter: 2,
                };
                unit.push(&written(|out| encode_block_row(row, &body, out)));
            }
        }
        if let Some((_, bytes)) = unit.finish() {
            seeds.push(of_kind(2, bytes));
        }
    }
    seeds.truncate(300);
    let run = run.encode();
    seeds.push(of_kind(3, &run));
    let mut short = RunBuilder::new(0);
    short.push(&RunRow::default(), &[0; 30]);
    let short = short.encode();
    seeds.push(of_kind(4, [short.clone(), short].concat()));
    assert!(seeds.iter().all(|seed| seed[0] < postings::KINDS));
    seeds
}

/// The same with every number of a block replaced by 1, the one that is derived.
fn as_first(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if matches!(name.as_str(), "number" | "blockNumber") && value.is_string() {
                    *value = Value::from("0x1");
                } else if name == "blockNumber" {
                    *value = Value::from(1);
                } else {
                    as_first(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(as_first),
        _ => {}
    }
}

pub(crate) fn node_json() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for line in lines() {
        let mut value: Value = serde_json::from_str(&line).unwrap();
        as_first(&mut value);
        let field = |name: &str| value.get(name).map_or_else(|| "[]".to_owned(), Value::to_string);
        let traces = if value.get("traces").is_some() {
            "traces"
        } else {
            "callTraces"
        };
        seeds.push(
            [field("block"), field("receipts"), field(traces)]
                .join("\n")
                .into_bytes(),
        );
    }
    seeds.push(self_destructs());
    seeds.extend(["\"0x1\"", "\"0x00ff\"", "\"a \\u00e9\""].map(|text| text.as_bytes().to_vec()));
    seeds
}

/// A block of one transaction, whose contract pays somebody more and more and ends in favour of itself after each payment, as nodes on revm tell
/// of it.
fn self_destructs() -> Vec<u8> {
    let block = lines().into_iter().find_map(|line| {
        let mut value: Value = serde_json::from_str(&line).unwrap();
        as_first(&mut value);
        let block = value.get("block")?;
        let is_alone = block.get("transactions")?.as_array()?.len() == 1;
        (is_alone && block.get("blobGasUsed").is_some()).then_some(value)
    });
    let block = block.expect("a block of one transaction since Cancun");
    let (contract, paid) = (format!("0x{}", "c0".repeat(20)), format!("0x{}", "77".repeat(20)));
    let entry = |kind: &str, path: Vec<u32>, below: u32, action: Value| {
        json!({
            "type": kind, "action": action, "result": {"gasUsed": "0x0", "output": "0x"}, "traceAddress": path, "subtraces": below,
            "transactionPosition": 0,
        })
    };
    let call = |from: &str, to: &str, value: String| json!({"callType": "call", "from": from, "to": to, "value": value, "gas": "0x1", "input": "0x"});
    let mut traces = vec![entry("call", vec![], 6, call(&paid, &contract, "0x0".to_owned()))];
    for at in 0..3 {
        let value = format!("{:#x}", at + 1);
        let end = json!({"address": contract, "refundAddress": paid, "balance": value});
        traces.push(entry(
            "call",
            vec![2 * at],
            0,
            call(&contract, &paid, value.clone()),
        ));
        traces.push(entry("suicide", vec![2 * at + 1], 0, end));
    }
    [
        block["block"].to_string(),
        block["receipts"].to_string(),
        Value::from(traces).to_string(),
    ]
    .join("\n")
    .into_bytes()
}

pub(crate) fn recorded() -> Vec<Vec<u8>> {
    let lines = lines();
    let mut seeds: Vec<Vec<u8>> = lines.iter().map(|line| line.clone().into_bytes()).collect();
    let two = lines.iter().filter(|line| line.len() < 4_000).take(2);
    let two = two.map(|line| format!("{line}\n")).collect::<String>();
    seeds.push(zstd::encode_all(Cursor::new(&two), 3).unwrap());
    seeds.push(two.into_bytes());
    seeds
}

pub(crate) fn requests() -> Vec<Vec<u8>> {
    let examples = endpoints().iter().filter(|endpoint| !endpoint.example.is_empty());
    let mut seeds: Vec<Vec<u8>> = examples
        .map(|endpoint| {
            format!("{}\naccept: */*\nif-none-match: \"a\", W/\"b\"", endpoint.example).into_bytes()
        })
        .collect();
    seeds.extend(
        [
            "/api/logs/get-logs?address=0xAb&topic0=%30x&sort=desc&page=2\naccept: application/x-ndjson;q=0.5, */*",
            "http://test/health?x=1;y=2",
            "*",
        ]
        .map(|text| text.as_bytes().to_vec()),
    );
    seeds
}

pub(crate) fn imports() -> Vec<Vec<u8>> {
    let read = |name: &str| std::fs::read(demo(name)).unwrap();
    let prices = read("prices.csv");
    let few: Vec<u8> = prices
        .split_inclusive(|&byte| byte == b'\n')
        .take(20)
        .flatten()
        .copied()
        .collect();
    let mut seeds = vec![
        of_kind(0, few),
        of_kind(
            0,
            "time,asset,usd\n\"2024-02-29\", native ,1.5e-7\r\n1,0xabababababababababababababababababababab,0",
        ),
        of_kind(
            0,
            r#"[{"time":"2024-01-01","asset":"stable","usd":1},{"time":9,"asset":"native","usd":"2.5"}]"#,
        ),
        of_kind(1, read("token-list.json")),
        of_kind(
            1,
            r#"{"address":"0xabababababababababababababababababababab","symbol":"X","name":"Y","decimals":18,
            "website":"https://test","logo":{"src":"https://test/a.png"},"social":{"twitter":"x"},"support":{"email":"a@b"}}"#,
        ),
        of_kind(2, read("contracts/Signals.standard.json")),
        of_kind(
            2,
            r#"[{"type":"function","name":"f","inputs":[{"type":"uint256[]","name":"a"}]}]"#,
        ),
        of_kind(
            2,
            r#"{"language":"Solidity","sources":{"A.sol":{"content":"contract A {}"}},"settings":{"optimizer":{"enabled":true,"runs":200}},
            "compilerVersion":"0.8.1","contractName":"A","output":{"contracts":{"A.sol":{"A":{"abi":[],"metadata":"{}"}}}}}"#,
        ),
    ];
    assert!(seeds.iter().all(|seed| seed[0] < imports::KINDS));
    seeds.retain(|seed| seed.len() < 60_000);
    seeds
}
