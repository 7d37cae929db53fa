//! X2 and C3 over a seeded chain whose calls fail and whose contracts make contracts, against its plain values.

use std::collections::BTreeMap;

use quarry::model::{Address, B256, Bundle, Bytes, U256};
use serde_json::{Value, json};

use crate::chain::{HEAD, World};
use crate::plain::{self, ChainConfig, Rng, account};

const NEEDS_TRACES: &str = "Data for the requested range is still being indexed";

fn revert_data(selector: [u8; 4], words: &[u64], tail: &[u8]) -> Bytes {
    let mut bytes = selector.to_vec();
    for &word in words {
        bytes.extend_from_slice(&U256::from(word).to_be_bytes::<32>());
    }
    bytes.extend_from_slice(tail);
    bytes.into()
}

/// Ways to fail: error, what is handed back, and what is said of it.
fn failures() -> Vec<(&'static str, Bytes, &'static str)> {
    vec![
        ("out of gas", Bytes::new(), "out of gas"),
        ("reverted", Bytes::new(), "reverted"),
        (
            "reverted",
            revert_data([0x08, 0xc3, 0x79, 0xa0], &[32, 9], b"not today"),
            "reverted: not today",
        ),
        (
            "reverted",
            revert_data([0x4e, 0x48, 0x7b, 0x71], &[0x12], &[]),
            "reverted: panic 0x12 (division or modulo by zero)",
        ),
        (
            "reverted",
            revert_data([0xde, 0xad, 0xbe, 0xef], &[], &[7]),
            "reverted: custom error 0xdeadbeef with data 0x07",
        ),
    ]
}

/// Statuses and traces that agree; before block 10 receipts do not say the status.
fn chain(seed: u64) -> Vec<Bundle> {
    let mut bundles = plain::chain(seed, HEAD + 1, &ChainConfig::default());
    let mut rng = Rng(seed);
    let failures = failures();
    for bundle in &mut bundles {
        let number = bundle.block.number();
        let traces = bundle.traces.as_mut().unwrap();
        for (receipt, trace) in bundle.receipts.iter_mut().zip(traces) {
            let failed = receipt.status == Some(false);
            if number < 10 {
                receipt.status = None;
            }
            let creates = receipt.contract_address;
            for frame in &mut trace.frames {
                frame.reverted = failed || rng.below(6) == 0;
                frame.input = Bytes::from(rng.hash().to_vec());
            }
            let top = &mut trace.frames[0];
            top.reverted = failed;
            if let Some(created) = creates {
                top.kind = quarry::model::FrameKind::Create;
                top.to = (!failed).then_some(created);
            }
            if failed {
                let (error, output, _) = &failures[rng.below(failures.len() as u64) as usize];
                top.error = Some((*error).to_owned());
                top.output = output.clone();
            }
        }
    }
    bundles
}

fn without_traces(mut bundles: Vec<Bundle>) -> Vec<Bundle> {
    for bundle in &mut bundles {
        bundle.traces = None;
    }
    bundles
}

/// The latest creation of every contract, and whether traces alone tell of it.
fn creations(bundles: &[Bundle]) -> BTreeMap<Address, (Value, bool)> {
    let mut all = BTreeMap::new();
    for bundle in bundles {
        let traces = bundle.traces.as_ref().unwrap();
        let transactions = bundle.block.transactions.iter().zip(&bundle.receipts).zip(traces);
        for ((transaction, receipt), trace) in transactions {
            for frame in &trace.frames {
                let Some(created) = frame.to.filter(|_| frame.kind.is_creation() && !frame.reverted) else {
                    continue;
                };
                let nested = !frame.path.is_empty();
                let code = if nested { &frame.input } else { &transaction.input };
                let row = json!({
                    "contractAddress": format!("{created:#x}"),
                    "contractCreator": format!("{:#x}", transaction.from),
                    "contractFactory": nested.then(|| format!("{:#x}", frame.from)),
                    "txHash": transaction.hash.to_string(),
                    "blockNumber": bundle.block.number().to_string(),
                    "timestamp": bundle.block.header.timestamp.to_string(),
                    "creationBytecode": code.to_string(),
                });
                all.insert(created, (row, nested || receipt.status.is_none()));
            }
        }
    }
    all
}

fn ask(contracts: &[Address]) -> String {
    let list: Vec<String> = contracts
        .iter()
        .map(|contract| format!("{contract:#x}"))
        .collect();
    format!(
        "/api/contract/contract-creation?contractaddresses={}",
        list.join(",")
    )
}

fn status(hash: B256) -> String {
    format!("/api/transaction/{hash}/contract-status")
}

#[tokio::test]
async fn statuses_are_those_of_the_traces() {
    let failures = failures();
    for seed in [1, 2] {
        let world = World::of(chain(seed), None, None).await;
        let bare = World::of(without_traces(chain(seed)), None, None).await;
        let mut failed = 0;
        for bundle in &world.bundles {
            let traces = bundle.traces.as_ref().unwrap();
            let transactions = bundle.block.transactions.iter().zip(&bundle.receipts).zip(traces);
            for ((transaction, receipt), trace) in transactions {
                let top = &trace.frames[0];
                let said = match &top.error {
                    None => "",
                    Some(error) => {
                        let same = |(stated, output, _): &&(&str, Bytes, &str)| {
                            *stated == error.as_str() && *output == top.output
                        };
                        failures.iter().find(same).unwrap().2
                    }
                };
                failed += u32::from(top.error.is_some());
                let wanted = json!({
                    "hash": transaction.hash.to_string(), "chain": "mainnet",
                    "isError": u8::from(top.error.is_some()), "errDescription": said,
                });
                let target = status(transaction.hash);
                assert_eq!(world.json(&target).await, wanted);
                if receipt.status == Some(true) {
                    assert_eq!(bare.json(&target).await, wanted);
                } else {
                    bare.server.get(&target).await.assert_error(503, NEEDS_TRACES);
                }
            }
        }
        assert!(failed > 10, "{failed}");
    }
}

/// A node at whose word blocks are taken may have no frame of a transaction, which is no reason to wait for one.
#[tokio::test]
async fn statuses_of_what_has_no_frames() {
    let mut bundles = chain(1);
    for trace in bundles
        .iter_mut()
        .flat_map(|bundle| bundle.traces.iter_mut().flatten())
    {
        trace.frames.clear();
    }
    let world = World::of(bundles, None, None).await;
    let (mut stated, mut untold) = (0, 0);
    for bundle in &world.bundles {
        for (transaction, receipt) in bundle.block.transactions.iter().zip(&bundle.receipts) {
            let failed = receipt.status == Some(false);
            stated += u32::from(failed);
            untold += u32::from(receipt.status.is_none());
            let wanted = json!({
                "hash": transaction.hash.to_string(), "chain": "mainnet",
                "isError": u8::from(failed), "errDescription": if failed { "failed" } else { "" },
            });
            assert_eq!(world.json(&status(transaction.hash)).await, wanted);
            let listed = format!(
                "/api/account/{:#x}/tx-list?startblock={number}&endblock={number}",
                transaction.from,
                number = bundle.block.number()
            );
            let list = world.json(&listed).await;
            let mut rows = list["transactions"].as_array().unwrap().iter();
            let row = rows
                .find(|row| row["hash"] == transaction.hash.to_string())
                .unwrap();
            assert_eq!(
                (&row["isError"], &row["status"]),
                (&json!(u8::from(failed)), &json!(u8::from(!failed)))
            );
        }
    }
    assert!(stated > 5 && untold > 5, "{stated} {untold}");
}

#[tokio::test]
async fn statuses_that_cannot_be_answered() {
    let world = World::of(chain(1), None, None).await;
    let unknown = B256::repeat_byte(9);
    for (target, code, text) in [
        (status(unknown), 404, "Transaction not found"),
        (
            "/api/transaction/0x12/contract-status".to_owned(),
            400,
            "Invalid transaction hash format",
        ),
        (
            "/api/transaction/%ff/contract-status".to_owned(),
            400,
            "Invalid transaction hash format",
        ),
        (format!("{}?chain=x", status(unknown)), 400, "Invalid chain"),
        (
            format!("{}?chain=testnet", status(unknown)),
            503,
            "Chain testnet is not configured",
        ),
    ] {
        world.server.get(&target).await.assert_error(code, text);
    }
    // A receipt that says failed beside a trace that does not: it failed, and there is a word for it.
    let mut bundles = chain(1);
    let (bundle, at) = bundles
        .iter_mut()
        .find_map(|bundle| {
            let at = bundle
                .receipts
                .iter()
                .position(|receipt| receipt.status == Some(false))?;
            Some((bundle, at))
        })
        .unwrap();
    let top = &mut bundle.traces.as_mut().unwrap()[at].frames[0];
    (top.error, top.output) = (None, Bytes::new());
    let hash = bundle.block.transactions[at].hash;
    let world = World::of(bundles, None, None).await;
    let found = world.json(&status(hash)).await;
    assert_eq!(
        (&found["isError"], &found["errDescription"]),
        (&json!(1), &json!("failed"))
    );
}

#[tokio::test]
async fn creations_are_the_latest_of_each_contract() {
    for seed in [1, 2, 3] {
        let bundles = chain(seed);
        let known = creations(&bundles);
        let nested = known
            .values()
            .filter(|(row, _)| !row["contractFactory"].is_null());
        let nested = nested.count();
        assert!(
            nested > 3 && known.len() > nested + 3,
            "{nested} of {}",
            known.len()
        );
        let world = World::of(bundles.clone(), None, None).await;
        let bare = World::of(without_traces(bundles), None, None).await;
        let stranger = Address::repeat_byte(0x77);
        let contracts: Vec<Address> = known.keys().copied().collect();
        for chunk in contracts.chunks(3) {
            // Backwards, with one that nobody knows and one twice.
            let mut asked: Vec<Address> = chunk.iter().rev().copied().collect();
            let wanted: Vec<&Value> = asked.iter().map(|contract| &known[contract].0).collect();
            let wanted = json!({"chain": "mainnet", "contracts": wanted});
            asked.push(asked[0]);
            asked.insert(0, stranger);
            assert_eq!(world.json(&ask(&asked)).await, wanted);
        }
        for (contract, (row, by_traces)) in &known {
            let target = ask(&[*contract]);
            if *by_traces {
                // Where receipts tell of an earlier creation, that one is all that is known.
                let reply = bare.server.get(&target).await;
                if reply.status != 200 {
                    reply.assert_error(503, NEEDS_TRACES);
                }
            } else {
                assert_eq!(bare.json(&target).await["contracts"], json!([row]));
            }
        }
        bare.server
            .get(&ask(&[stranger]))
            .await
            .assert_error(503, NEEDS_TRACES);
        world
            .server
            .get(&ask(&[stranger, account(999)]))
            .await
            .assert_error(404, "Contract not found");
    }
}

#[tokio::test]
async fn lists_of_contracts() {
    let bundles = chain(1);
    let known = *creations(&bundles).keys().next().unwrap();
    let world = World::of(bundles, None, None).await;
    let path = "/api/contract/contract-creation";
    let one = format!("{known:#x}");
    let many = |count: u64| ask(&(0..count).map(|at| account(700 + at)).collect::<Vec<_>>());
    let malformed = "Invalid contract address format";
    for (target, code, text) in [
        (
            path.to_owned(),
            400,
            "Missing required parameter: contractaddresses",
        ),
        (
            format!("{path}?contractaddresses="),
            400,
            "Missing required parameter: contractaddresses",
        ),
        (format!("{path}?contractaddresses=0x12"), 400, malformed),
        (format!("{path}?contractaddresses={one},"), 400, malformed),
        (format!("{path}?contractaddresses=,{one}"), 400, malformed),
        (format!("{path}?contractaddresses={one}%20{one}"), 400, malformed),
        (format!("{path}?contractaddresses=%ff"), 400, malformed),
        (
            format!("{path}?contractaddresses={one}&contractaddresses={one}"),
            400,
            "Duplicate parameter: contractaddresses",
        ),
        (many(6), 400, "At most 5 contract addresses are allowed"),
        (many(5), 404, "Contract not found"),
        (format!("{}&chain=x", many(1)), 400, "Invalid chain"),
        (
            format!("{}&chain=testnet", many(1)),
            503,
            "Chain testnet is not configured",
        ),
    ] {
        world.server.get(&target).await.assert_error(code, text);
    }
    // Blanks around commas, any case, the same one many times.
    let spaced = format!(
        "{path}?contractaddresses=+{one}+,%20{},{one},{one},{one}",
        one.to_uppercase().replace("0X", "0x")
    );
    let found = world.json(&spaced).await;
    assert_eq!(found, world.json(&ask(&[known])).await);
    assert_eq!(found["contracts"].as_array().map(Vec::len), Some(1));
    let once_more = world.server.get(&format!("{spaced},{one}")).await;
    once_more.assert_error(400, "At most 5 contract addresses are allowed");
}
