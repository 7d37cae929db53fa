//! Real data: every line parses, headers hash to their hash, both trace methods tell the same story.

use crate::support::data::shared;
use quarry::model::{B256, Bundle, Header};
use quarry::node::recorded::{RecordedChain, parse_line};
use quarry::node::{traces, wire};
use serde_json::value::RawValue;

fn each_line(name: &str, mut with: impl FnMut(&str, Bundle)) -> Option<u64> {
    let path = shared(name)?;
    let mut lines = 0;
    for line in RecordedChain::open(path).unwrap() {
        let line = line.unwrap();
        with(&line.text, line.parse().unwrap());
        lines += 1;
    }
    Some(lines)
}

/// The hash of a header, computed by alloy-consensus.
fn header_hash(header: &Header) -> B256 {
    alloy_consensus::Header {
        parent_hash: header.parent_hash,
        ommers_hash: header.ommers_hash,
        beneficiary: header.beneficiary,
        state_root: header.state_root,
        transactions_root: header.transactions_root,
        receipts_root: header.receipts_root,
        logs_bloom: header.logs_bloom,
        difficulty: header.difficulty,
        number: header.number,
        gas_limit: header.gas_limit,
        gas_used: header.gas_used,
        timestamp: header.timestamp,
        extra_data: header.extra_data.clone(),
        mix_hash: header.mix_hash,
        nonce: header.nonce,
        base_fee_per_gas: header.base_fee_per_gas,
        withdrawals_root: header.withdrawals_root,
        blob_gas_used: header.blob_gas_used,
        excess_blob_gas: header.excess_blob_gas,
        parent_beacon_block_root: header.parent_beacon_block_root,
        requests_hash: header.requests_hash,
        ..alloy_consensus::Header::default()
    }
    .hash_slow()
}

#[test]
fn dev_chains_parse_and_hash() {
    for (name, blocks, transactions, logs) in [
        ("dev-chains/execution-apis/chain-complete.jsonl.zst", 54, 249, 383),
        ("dev-chains/geth-ethtest/chain-complete.jsonl.zst", 600, 603, 813),
    ] {
        let (mut sum_transactions, mut sum_logs) = (0, 0);
        let Some(lines) = each_line(name, |_, bundle| {
            assert_eq!(
                header_hash(&bundle.block.header),
                bundle.block.hash,
                "block {}",
                bundle.block.number()
            );
            assert_eq!(bundle.block.extra, None);
            assert!(
                bundle
                    .block
                    .transactions
                    .iter()
                    .all(|transaction| transaction.extra.is_none())
            );
            assert!(bundle.receipts.iter().all(|receipt| receipt.extra.is_none()));
            assert_eq!(bundle.traces.unwrap().len(), bundle.block.transactions.len());
            assert_eq!(bundle.block.uncles.len(), bundle.block.uncle_headers.len());
            sum_transactions += bundle.block.transactions.len();
            sum_logs += bundle
                .receipts
                .iter()
                .map(|receipt| receipt.logs.len())
                .sum::<usize>();
        }) else {
            continue;
        };
        assert_eq!(
            (lines, sum_transactions, sum_logs),
            (blocks, transactions, logs),
            "{name}"
        );
    }
}

#[test]
fn mainnet_blocks_parse_and_hash() {
    let (mut transactions, mut logs) = (0, 0);
    let Some(lines) = each_line("mainnet-blocks/complete.jsonl.zst", |_, bundle| {
        assert_eq!(
            header_hash(&bundle.block.header),
            bundle.block.hash,
            "block {}",
            bundle.block.number()
        );
        transactions += bundle.block.transactions.len();
        logs += bundle
            .receipts
            .iter()
            .map(|receipt| receipt.logs.len())
            .sum::<usize>();
    }) else {
        return;
    };
    assert_eq!((lines, transactions, logs), (119, 22_935, 49_240));
}

#[test]
fn frontier_headers_are_whole_and_then_bare() {
    let mut bare = 0;
    let Some(lines) = each_line("mainnet-frontier/blocks-000001-060000.jsonl.zst", |_, bundle| {
        let header = &bundle.block.header;
        if header.state_root.is_zero() {
            assert!(16_383 < header.number);
            bare += 1;
        } else {
            assert_eq!(header_hash(header), bundle.block.hash, "block {}", header.number);
        }
    }) else {
        return;
    };
    assert_eq!((lines, bare), (60_000, 60_000 - 16_383));
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Both<'a> {
    #[serde(borrow)]
    traces: Option<&'a RawValue>,
    #[serde(borrow)]
    call_traces: Option<&'a RawValue>,
}

/// Gas and gas used of the top call apart, nothing differs in any frame.
#[test]
fn both_trace_methods_give_the_same_frames() {
    let (mut compared, mut frames) = (0, 0);
    for name in [
        "mainnet-blocks/complete.jsonl.zst",
        "dev-chains/execution-apis/chain-complete.jsonl.zst",
        "dev-chains/geth-ethtest/chain-complete.jsonl.zst",
    ] {
        each_line(name, |text, bundle| {
            let both: Both<'_> = serde_json::from_str(text).unwrap();
            let (Some(parity), Some(calls)) = (both.traces, both.call_traces) else {
                return;
            };
            let (parity, calls) = (parity.get(), calls.get());
            if parity == "null" || calls == "null" {
                return;
            }
            let parity = wire::parity_traces(parity, &bundle.block).unwrap();
            let calls = wire::call_traces(calls, &bundle.block).unwrap();
            assert_eq!(parity.len(), calls.len());
            for (index, (a, b)) in parity.iter().zip(&calls).enumerate() {
                let found = traces::differences(a, b);
                assert!(
                    found.is_empty(),
                    "block {} transaction {index}: {found:?}",
                    bundle.block.number()
                );
                compared += 1;
                frames += a.frames.len();
            }
        });
    }
    if 0 < compared {
        println!("{compared} transactions, {frames} frames");
        assert!(14_000 < compared, "{compared}");
    }
}

/// Recorded lines that have been tampered with are refused with a reason, never taken.
#[test]
fn damaged_lines_are_refused() {
    let Some(path) = shared("mainnet-blocks/complete.jsonl.zst") else {
        return;
    };
    let line = RecordedChain::open(path)
        .unwrap()
        .map(Result::unwrap)
        .find(|line| {
            let bundle = line.parse().unwrap();
            let block = &bundle.block;
            2_000_000 < block.number()
                && (2..20).contains(&block.transactions.len())
                && bundle.traces.is_some()
        })
        .unwrap()
        .text;
    let mut refused = 0;
    for end in (0..line.len()).step_by(line.len() / 300 + 1) {
        let Some(head) = line.get(..end) else { continue };
        parse_line(head).unwrap_err();
        refused += 1;
    }
    assert!(100 < refused);
    let (head, block) = line.split_at(line.find("\"block\":").unwrap());
    for field in [
        "hash",
        "parentHash",
        "miner",
        "stateRoot",
        "number",
        "gasUsed",
        "extraData",
        "transactions",
    ] {
        let block = block.replacen(&format!("\"{field}\":"), "\"x\":", 1);
        let error = parse_line(&format!("{head}{block}")).unwrap_err().to_string();
        assert!(
            error.contains(&format!("`{field}`")) || error.contains("block"),
            "{field}: {error}"
        );
    }
}
