//! The objects against recorded answers of real nodes (`../shared/data`, skipped where absent).

use super::{block, bundle, parse, receipt, transaction};
use crate::model::{
    BlockEntry, BlockId, Bundle, Frame, FrameKind, Receipt, Transaction, TransactionEntry, TransactionTrace,
};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

fn data(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(path);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is absent", path.display());
    None
}

/// The lines of a recorded chain.
fn recorded(path: &str) -> Option<impl Iterator<Item = Value>> {
    let file = std::fs::File::open(data(path)?).unwrap();
    let lines = BufReader::new(zstd::Decoder::new(file).unwrap()).lines();
    Some(lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()))
}

fn bundle_of(line: &Value) -> Bundle {
    let receipts = line["receipts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(parse::receipt)
        .collect();
    Bundle {
        block: parse::block(&line["block"]),
        receipts,
        traces: None,
        openings: None,
    }
}

/// Request and answer of each `.io` file of a method.
fn answers(method: &str) -> Vec<(String, Value, Value)> {
    let Some(folder) = data(&format!("dev-chains/execution-apis/tests/{method}")) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let part = |mark: &str| -> Value {
            serde_json::from_str(text.lines().find_map(|line| line.strip_prefix(mark)).unwrap()).unwrap()
        };
        all.push((
            path.display().to_string(),
            part(">> "),
            part("<< ")["result"].clone(),
        ));
    }
    all
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut out = Vec::new();
    write(&mut out);
    serde_json::from_slice(&out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
}

fn development_chain() -> Vec<Bundle> {
    let lines = recorded("dev-chains/execution-apis/chain-complete.jsonl.zst");
    lines
        .map(|lines| lines.map(|line| bundle_of(&line)).collect())
        .unwrap_or_default()
}

/// The entry of the transaction with `hash`.
fn entry(chain: &[Bundle], hash: &str) -> TransactionEntry {
    for bundle in chain {
        let mut first_log_index = 0;
        for (index, found) in bundle.block.transactions.iter().enumerate() {
            if found.hash.to_string() == hash {
                return TransactionEntry {
                    transaction: found.clone(),
                    receipt: bundle.receipts[index].clone(),
                    block: BlockId {
                        number: bundle.block.number(),
                        hash: bundle.block.hash,
                    },
                    timestamp: bundle.block.header.timestamp,
                    base_fee_per_gas: bundle.block.header.base_fee_per_gas,
                    transaction_index: u32::try_from(index).unwrap(),
                    first_log_index,
                };
            }
            first_log_index += u32::try_from(bundle.receipts[index].logs.len()).unwrap();
        }
    }
    panic!("no transaction {hash}");
}

#[test]
fn blocks_are_those_of_the_node() {
    let chain = development_chain();
    let mut compared = 0;
    for (file, request, answer) in answers("eth_getBlockByNumber") {
        if answer.is_null() {
            continue;
        }
        let full = request["params"][1].as_bool().unwrap();
        let number = u64::from_str_radix(&answer["number"].as_str().unwrap()[2..], 16).unwrap();
        // The recorded chain starts at block 1: the genesis block is read from the answer itself.
        let block_of_chain = match number.checked_sub(1) {
            Some(place) => chain[usize::try_from(place).unwrap()].block.clone(),
            None => parse::block(&answer),
        };
        let hashes = block_of_chain.transactions.iter().map(|one| one.hash).collect();
        let mut entry = BlockEntry {
            block: block_of_chain,
            transaction_hashes: hashes,
        };
        assert_eq!(written(|out| block(out, &entry, full)), answer, "{file}");
        if !full {
            entry.transaction_hashes.clear();
            assert_eq!(
                written(|out| block(out, &entry, full)),
                answer,
                "{file}, without hashes"
            );
        }
        compared += 1;
    }
    assert!(chain.is_empty() || compared >= 9, "{compared} blocks compared");
}

#[test]
fn transactions_are_those_of_the_node() {
    let chain = development_chain();
    let mut compared = 0;
    for method in [
        "eth_getTransactionByHash",
        "eth_getTransactionByBlockNumberAndIndex",
        "eth_getTransactionByBlockHashAndIndex",
    ] {
        for (file, _, answer) in answers(method) {
            if let Some(hash) = answer["hash"].as_str() {
                let entry = entry(&chain, hash);
                assert_eq!(written(|out| transaction(out, &entry)), answer, "{file}");
                compared += 1;
            }
        }
    }
    assert!(
        chain.is_empty() || compared >= 9,
        "{compared} transactions compared"
    );
}

#[test]
fn receipts_are_those_of_the_node() {
    let chain = development_chain();
    let mut compared = 0;
    for method in ["eth_getTransactionReceipt", "eth_getBlockReceipts"] {
        for (file, _, answer) in answers(method) {
            let one = std::slice::from_ref(&answer);
            for answer in answer.as_array().map_or(one, Vec::as_slice) {
                let Some(hash) = answer["transactionHash"].as_str() else {
                    continue;
                };
                let mut entry = entry(&chain, hash);
                // The recorded chain states neither: it was made by executing the blocks again.
                let stated = parse::receipt(answer);
                entry.receipt.root = stated.root;
                entry.receipt.status = stated.status;
                entry.receipt.blob_gas_used = stated.blob_gas_used;
                entry.receipt.blob_gas_price = stated.blob_gas_price;
                assert_eq!(entry.receipt, stated, "{file}");
                assert_eq!(written(|out| receipt(out, &entry)), *answer, "{file}");
                compared += 1;
            }
        }
    }
    assert!(chain.is_empty() || compared >= 19, "{compared} receipts compared");
}

/// Fields of one node, or misspelt by a recorder: the model keeps them as `extra`, which this reader does not.
const UNKNOWN: [&str; 14] = [
    "author",
    "sealFields",
    "sourceHash",
    "isSystemTx",
    "condition",
    "creates",
    "publicKey",
    "raw",
    "standardV",
    "blockTimetsamp",
    "deposit_nonce",
    "blockTimestamp",
    "mint",
    "accessList",
];

/// `ours` states every known field of `theirs` with its value. Recorders of old answers write quantities as
/// JSON numbers or with leading zeros, and status for a node that had only a root; values count, not spelling.
#[track_caller]
fn assert_covers(ours: &Value, theirs: &Value, at: &str) {
    let same = |ours: &Value, theirs: &Value| {
        let spelt = ours
            .as_str()
            .is_some_and(|text| text.len() <= 66 && text.starts_with("0x"));
        ours == theirs || (spelt && parse::word(ours) == parse::word(theirs))
    };
    for (key, value) in theirs.as_object().unwrap() {
        if !UNKNOWN.contains(&key.as_str()) && (!value.is_null() || !ours[key].is_null()) {
            assert!(
                same(&ours[key], value),
                "{at}: {key}: {} is not {value}",
                ours[key]
            );
        }
    }
}

fn has_float(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_float),
        Value::Object(fields) => fields.values().any(has_float),
        other => other.is_f64(),
    }
}

#[test]
fn mainnet_blocks_and_receipts_keep_every_field() {
    let Some(lines) = recorded("mainnet-blocks/complete.jsonl.zst") else {
        return;
    };
    let mut compared = 0;
    for line in lines {
        let at = line["number"].to_string();
        if has_float(&line["block"]) {
            println!("skipped: block {at}, whose recorder rounded amounts to floats");
            continue;
        }
        let mut theirs = line["block"].clone();
        let Value::Array(their_transactions) = theirs["transactions"].take() else {
            panic!("{at}")
        };
        theirs.as_object_mut().unwrap().remove("transactions");
        let read = bundle_of(&line);
        let ours = written(|out| bundle(out, &read));
        assert_covers(&ours["block"], &theirs, &at);
        for (place, theirs) in their_transactions.iter().enumerate() {
            let ours = &ours["block"]["transactions"][place];
            assert_covers(ours, theirs, &format!("{at}, transaction {place}"));
        }
        for (place, theirs) in line["receipts"].as_array().unwrap().iter().enumerate() {
            let mut theirs = theirs.clone();
            let Value::Array(their_logs) = theirs["logs"].take() else {
                panic!("{at}")
            };
            theirs.as_object_mut().unwrap().remove("logs");
            let ours = &ours["receipts"][place];
            assert_covers(ours, &theirs, &format!("{at}, receipt {place}"));
            for (theirs, ours) in their_logs.iter().zip(ours["logs"].as_array().unwrap()) {
                assert_covers(ours, theirs, &format!("{at}, receipt {place}, a log"));
                compared += 1;
            }
        }
    }
    println!("{compared} logs compared");
}

/// The block's base fee is in coin, the prices of Celo's `feeCurrency` are not.
#[test]
fn a_base_fee_in_coin_makes_no_price_in_a_token() {
    let price_of = |extra: &str, stated: Option<u128>| {
        let mut read = Bundle::default();
        read.block.header.base_fee_per_gas = Some(5);
        read.block.transactions = vec![Transaction {
            kind: 0x7b,
            max_fee_per_gas: Some(9_000),
            max_priority_fee_per_gas: Some(2),
            extra: Some(extra.to_owned()),
            ..Transaction::default()
        }];
        read.receipts = vec![Receipt {
            effective_gas_price: stated,
            ..Receipt::default()
        }];
        let hash = read.block.transactions[0].hash.to_string();
        let entry = entry(&[read], &hash);
        let asked = written(|out| transaction(out, &entry));
        let paid = written(|out| receipt(out, &entry));
        [&asked["gasPrice"], &paid["effectiveGasPrice"]].map(|price| price.as_str().map(str::to_owned))
    };
    let text = |price: &str| Some(price.to_owned());
    let currency = r#"{"feeCurrency":"0x0e2a3e05bc9a16f5292a6170456a710cb89c6f72"}"#;
    assert_eq!(price_of(currency, None), [None, None]);
    assert_eq!(price_of(currency, Some(8_000)), [text("0x1f40"), text("0x1f40")]);
    assert_eq!(price_of("{}", None), [text("0x7"), text("0x7")]);
}

#[test]
fn recordings_have_what_was_stored_and_answers_what_is_missing() {
    let transaction_of = |kind, gas| Transaction {
        kind,
        gas,
        v: Some(1),
        max_fee_per_gas: Some(9),
        max_priority_fee_per_gas: Some(2),
        ..Transaction::default()
    };
    let mut read = Bundle::default();
    read.block.header.base_fee_per_gas = Some(5);
    read.block.transactions = vec![transaction_of(2, 21_000), transaction_of(2, 0)];
    read.receipts = vec![Receipt::default(); 2];
    let top = |kind| TransactionTrace {
        frames: vec![Frame {
            kind,
            ..Frame::default()
        }],
    };
    read.traces = Some(vec![top(FrameKind::SelfDestruct), top(FrameKind::Create)]);
    let recorded = written(|out| bundle(out, &read));
    let left_out = |object: &Value, fields: &[&str]| {
        for field in fields {
            assert!(object.get(field).is_none(), "{field}: {object}");
        }
    };
    left_out(
        &recorded["block"]["transactions"][0],
        &["accessList", "yParity", "gasPrice"],
    );
    left_out(&recorded["receipts"][0], &["effectiveGasPrice"]);
    // No node has a frame for the second one, which has no gas: whoever reads the line makes it again.
    let traced: Vec<&Value> = recorded["traces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trace| &trace["transactionPosition"])
        .collect();
    assert_eq!(traced, [&Value::from(0)]);

    let block_entry = BlockEntry {
        block: read.block.clone(),
        transaction_hashes: Vec::new(),
    };
    let asked = written(|out| block(out, &block_entry, true))["transactions"][0].take();
    assert_eq!(asked["accessList"], Value::Array(Vec::new()));
    assert_eq!(
        (&asked["yParity"], &asked["gasPrice"]),
        (&"0x1".into(), &"0x7".into())
    );
    let entry = entry(&[read], asked["hash"].as_str().unwrap());
    assert_eq!(written(|out| receipt(out, &entry))["effectiveGasPrice"], "0x7");
}
