//! What was imported of a contract whose block was not final, before and after reorgs.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use alloy_primitives::keccak256;
use quarry::http::Limits;
use quarry::import::{Watcher, contracts};
use quarry::model::{Address, B256, Bundle, Bytes, Frame, FrameKind};
use serde_json::{Value, json};

use crate::mined::Mined;
use crate::plain::{self, ChainConfig, account};

/// The selector of `f()`.
const F: [u8; 4] = [0x26, 0x12, 0x1f, 0xf0];

/// Keeps reasons.
#[derive(Default)]
struct Watch(Mutex<Vec<String>>);

impl Watcher for Watch {
    fn progress(&self, _: u64, _: Option<u64>) {}
    fn rejected(&self, _: &str, reason: &str) {
        self.0.lock().unwrap().push(reason.to_owned());
    }
    fn left_out(&self, _: &str, _: &str, _: &str) {}
}

/// Writes the directory of a contract; answers what a compiler writes behind its code.
fn write_sources(directory: &Path) -> Vec<u8> {
    let source = "contract A { function f() external {} }";
    let metadata = json!({
        "compiler": {"version": "0.5.8"},
        "language": "Solidity",
        "output": {"abi": [{"type": "function", "name": "f", "inputs": [], "outputs": [],
                            "stateMutability": "nonpayable"}]},
        "settings": {"compilationTarget": {"A.sol": "A"}},
        "sources": {"A.sol": {"keccak256": keccak256(source).to_string(), "content": source}},
    });
    let metadata = metadata.to_string();
    std::fs::write(directory.join("metadata.json"), &metadata).unwrap();
    // Swarm's first hash of a text that fits into one chunk.
    assert!(metadata.len() <= 4096);
    let length = (metadata.len() as u64).to_le_bytes();
    let hash = keccak256([length.as_slice(), metadata.as_bytes()].concat());
    [b"\xa1\x65bzzr0\x58\x20".as_slice(), hash.as_slice(), &[0, 0x29]].concat()
}

/// A block in which the first transaction may create the contract and the second one calls it.
fn block(parent: B256, number: u64, runtime: Option<&[u8]>, contract: Address) -> Bundle {
    let fork = runtime.map_or(1, |code| 2 + u64::from(code[1])) << 32;
    let config = ChainConfig::default();
    let mut blocks = (fork..).map(|fork| plain::block(11, number, parent, fork, &config));
    let mut bundle = blocks
        .find(|bundle| bundle.block.transactions.len() >= 2)
        .unwrap();
    let traces = bundle.traces.as_mut().unwrap();
    let of_block = bundle.block.transactions.iter_mut().zip(&mut bundle.receipts);
    for (at, ((transaction, receipt), trace)) in of_block.zip(traces).take(2).enumerate() {
        (receipt.status, receipt.contract_address) = (Some(true), None);
        let mut frame = Frame::default();
        if let (0, Some(runtime)) = (at, runtime) {
            transaction.input = [b"\x60\x40\xf3", runtime].concat().into();
            transaction.to = None;
            receipt.contract_address = Some(contract);
            frame.kind = FrameKind::Create;
            frame.output = Bytes::copy_from_slice(runtime);
        } else {
            transaction.input = F.to_vec().into();
            transaction.to = Some(contract);
        }
        if at == 0 && runtime.is_none() {
            (transaction.from, transaction.to) = (contract, Some(account(1)));
        }
        (frame.from, frame.to) = (transaction.from, transaction.to.or(Some(contract)));
        frame.input = transaction.input.clone();
        trace.frames = vec![frame];
    }
    bundle
}

/// C1's status, C2's kind of match, and A3's name of the call.
async fn shown(mined: &Mined, contract: Address) -> (u16, Option<String>, String) {
    let read = async |path: String| {
        let reply = mined.server.get(&path).await;
        let body: Value = serde_json::from_str(&reply.whole_body()).unwrap();
        (reply.status, body)
    };
    let (abi, _) = read(format!("/api/contract/{contract}/abi")).await;
    let (_, source) = read(format!("/api/contract/{contract}/source-code")).await;
    let (_, list) = read(format!("/api/account/{contract}/tx-list")).await;
    let rows = list["transactions"].as_array().unwrap();
    let called = rows
        .iter()
        .find(|row| row["to"] == format!("{contract:#x}"))
        .unwrap();
    let name = called["functionName"].as_str().unwrap().to_owned();
    (abi, source["matchType"].as_str().map(str::to_owned), name)
}

async fn eventually_shown(mined: &Mined, contract: Address, expected: &(u16, Option<String>, String)) {
    for _ in 0..100 {
        if shown(mined, contract).await == *expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(shown(mined, contract).await, *expected);
}

#[tokio::test]
async fn what_was_held_against_code_that_a_reorg_took_away_is_not_shown() {
    let mut mined = Mined::start(5, Limits::default()).await;
    let directory = tempfile::tempdir().unwrap();
    let trailer = write_sources(directory.path());
    let contract = account(1_234_567);
    let number = mined.head() + 1;
    let parent = mined.bundles.last().unwrap().block.hash;
    let ours = block(
        parent,
        number,
        Some(&[b"\x60\x01".as_slice(), &trailer].concat()),
        contract,
    );
    let other = block(parent, number, Some(b"\x60\x02\x00"), contract);
    let sending = block(parent, number, None, contract);
    let import = |mined: &Mined| {
        let watch = Watch::default();
        let target = mined.target();
        let report = contracts(&target, directory.path(), Some(contract), &watch).unwrap();
        let held = target.writer.unfinal_code(&contract).unwrap();
        let reasons = watch.0.into_inner().unwrap();
        ((report.taken, report.changed), held.is_some(), reasons)
    };
    let full = (200, Some("full".to_owned()), "f()".to_owned());
    let nothing = (404, None, String::new());

    mined.mine_this(ours.clone());
    assert_eq!(import(&mined), ((1, 1), true, Vec::new()));
    assert_eq!(import(&mined), ((1, 0), true, Vec::new()));
    eventually_shown(&mined, contract, &full).await;
    mined.unwind();
    mined.mine_this(other);
    assert_eq!(shown(&mined, contract).await, nothing);
    // The same code again is what it was.
    mined.unwind();
    mined.mine_this(ours.clone());
    assert_eq!(shown(&mined, contract).await, full);

    // Where there is none any more, an import forgets what was taken.
    mined.unwind();
    mined.mine_this(sending);
    assert_eq!(shown(&mined, contract).await, nothing);
    let (taken, held, reasons) = import(&mined);
    assert_eq!((taken, held), ((0, 0), false));
    assert!(
        reasons[0].contains("sends transactions")
            && reasons[0].ends_with("what was taken of its contract while there was code is forgotten"),
        "{reasons:?}"
    );
    mined.unwind();
    mined.mine_this(ours);
    tokio::time::sleep(2 * quarry::store::LOOK_EVERY).await;
    assert_eq!(shown(&mined, contract).await, nothing);

    // What is final stays.
    assert_eq!(import(&mined), ((1, 1), true, Vec::new()));
    mined.finalize(number);
    assert_eq!(import(&mined), ((1, 0), false, Vec::new()));
    eventually_shown(&mined, contract, &full).await;
}
