//! Recorded chains: compressed, plain, cut short and damaged.

use crate::support::fake_node::FakeNode;
use proptest::prelude::{ProptestConfig, any, proptest};
use quarry::model::Bundle;
use quarry::node::recorded::{LineError, RecordedChain, RecordedError, parse_line};
use std::io::Cursor;

fn read(bytes: Vec<u8>) -> Result<Vec<Bundle>, RecordedError> {
    RecordedChain::from_reader(Cursor::new(bytes))?
        .map(|line| line?.parse())
        .collect()
}

fn chain() -> (String, Vec<Bundle>) {
    let fake = FakeNode::start(31);
    fake.mine(12);
    let mut bundles = fake.bundles();
    bundles.remove(0);
    (fake.recorded(), bundles)
}

#[test]
fn plain_and_compressed_lines_give_the_chain() {
    let (text, bundles) = chain();
    assert_eq!(read(text.clone().into_bytes()).unwrap(), bundles);
    assert_eq!(
        read(zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap(),
        bundles
    );
    // Frames one after the other, as from appending to a file.
    let (first, second) = text.split_at(text.find('\n').unwrap() + 1);
    let mut frames = zstd::encode_all(first.as_bytes(), 3).unwrap();
    frames.extend(zstd::encode_all(second.as_bytes(), 3).unwrap());
    assert_eq!(read(frames).unwrap(), bundles);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chain.jsonl.zst");
    std::fs::write(&path, zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
    assert_eq!(RecordedChain::open(&path).unwrap().count(), bundles.len());
    let error = RecordedChain::open(directory.path().join("none")).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
}

#[test]
fn blank_lines_and_empty_files_are_no_blocks() {
    let (text, bundles) = chain();
    let spaced = text.replace('\n', "\r\n\n");
    assert_eq!(read(spaced.into_bytes()).unwrap(), bundles);
    assert_eq!(read(text.trim_end().as_bytes().to_vec()).unwrap(), bundles);
    assert!(read(Vec::new()).unwrap().is_empty());
    assert!(read(b"\n".to_vec()).unwrap().is_empty());
}

#[test]
fn a_file_cut_short_is_an_error_that_names_the_line() {
    let (text, bundles) = chain();
    let cut = text.get(..text.len() - 40).unwrap().as_bytes().to_vec();
    let error = read(cut).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("recorded chain line {}: ", bundles.len())),
        "{error}"
    );
    let compressed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    for end in (5..compressed.len()).step_by(compressed.len() / 50) {
        assert!(
            read(compressed.get(..end).unwrap().to_vec()).is_err(),
            "cut at {end}"
        );
    }
}

#[test]
fn the_reader_ends_after_an_error() {
    let mut lines = RecordedChain::from_reader(Cursor::new(b"{}\n\xff\xfe\n{}\n".to_vec())).unwrap();
    assert!(lines.next().unwrap().is_ok());
    assert!(matches!(
        lines.next(),
        Some(Err(RecordedError::Read { line: 2, .. }))
    ));
    assert!(lines.next().is_none());
}

#[test]
fn receipts_may_be_absent_only_from_empty_blocks() {
    let (text, bundles) = chain();
    for (line, bundle) in text.lines().zip(&bundles) {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        value["receipts"] = serde_json::Value::Null;
        value["other"] = serde_json::json!("ignored");
        match parse_line(&value.to_string()) {
            Ok(read) => assert!(read.block.transactions.is_empty()),
            Err(error) => {
                let (number, transactions) = (bundle.block.number(), bundle.block.transactions.len());
                assert_eq!(error, LineError::NoReceipts { number, transactions });
            }
        }
    }
    assert_eq!(parse_line("{}"), Err(LineError::NoBlock));
}

#[test]
fn call_traces_serve_where_traces_are_absent_and_uncles_come_along() {
    let (text, bundles) = chain();
    let at = bundles
        .iter()
        .position(|bundle| bundle.block.transactions.len() > 1)
        .unwrap();
    let mut value: serde_json::Value = serde_json::from_str(text.lines().nth(at).unwrap()).unwrap();
    value["traces"] = serde_json::Value::Null;
    assert_eq!(parse_line(&value.to_string()).unwrap().traces, None);
    value["callTraces"] = crate::support::render::calls(&bundles[at]).into();
    let miner = bundles[0].block.header.beneficiary;
    value["uncleHeaders"] = serde_json::json!([[miner, 7], value["block"]]);
    let read = parse_line(&value.to_string()).unwrap();
    let traces = read.traces.unwrap();
    for (found, expected) in traces.iter().zip(bundles[at].traces.iter().flatten()) {
        assert_eq!(quarry::node::traces::differences(found, expected), []);
    }
    assert_eq!(read.block.uncle_headers[0].beneficiary, miner);
    assert_eq!(read.block.uncle_headers[0].number, 7);
    assert_eq!(read.block.uncle_headers[1], read.block.header);
}

#[test]
fn the_same_seed_gives_the_same_chain() {
    let (first, _) = chain();
    let (second, _) = chain();
    assert_eq!(first, second);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in any::<Vec<u8>>(), magic in 0_u8..3) {
        if magic == 1 {
            bytes.splice(..0, [0x28, 0xb5, 0x2f, 0xfd]);
        }
        if magic == 2 {
            bytes = zstd::encode_all(bytes.as_slice(), 1).unwrap();
        }
        let _ = read(bytes);
    }
}
