//! Real chains pass verification, and each kind of damage to them is named for what it is. What `quarry verify` asks a
//! node is drawn fairly, and what it does not ask is said.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;
#[path = "support/ledger.rs"]
mod ledger;
#[path = "support/slow_parse.rs"]
mod slow_parse;
mod support;
#[path = "support/uncles.rs"]
mod uncles;

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    path::Path,
    sync::Arc,
};

use binary::{Outcome, demo, quarry};
use ledger::{Blocks, call};
use quarry::{
    audit::{
        Audit, Mismatch, Observer,
        samples::{Question, Sample, Sampler},
    },
    model::{
        Address, B256, BlockId, BlockRange, Bloom, Bundle, ForkRules, Frame, FrameKind, Header, NATIVE_COIN,
        TokenVerdict, Topics, TransactionTrace, U256, ZeroAddress,
    },
    store::{Observed, Store},
    sync::{
        authority::authority,
        derive::derive,
        genesis::{self, ChainGenesis},
        verify::{Rules, Verifier, VerifyError, verify},
    },
};
use serde_json::Value;
use slow_parse::{bundle, call_traces, lines, shared};
use support::{
    fake_node::{FakeNode, Fault, Methods},
    index, scratch,
};
use uncles::uncle_headers;

const MAINNET: &str = "mainnet-blocks/complete.jsonl.zst";
const EXECUTION_APIS: &str = "dev-chains/execution-apis";
const ETHTEST: &str = "dev-chains/geth-ethtest";

fn mainnet_rules() -> Rules {
    let genesis = "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3"
        .parse()
        .unwrap();
    Rules::well_known(1, genesis).unwrap()
}

#[test]
fn every_mainnet_block_verifies() {
    let Some(path) = shared(MAINNET) else { return };
    let mut verifier = Verifier::new(mainnet_rules());
    // Blocks before Byzantium that the node states with roots are checked in full; count the others.
    let (mut blocks, mut transactions, mut without_roots) = (0, 0, 0);
    for line in lines(path) {
        let bundle = bundle(&line);
        let number = bundle.block.number();
        let parent = bundle.block.header.parent_hash;
        verifier
            .verify(&bundle, Some(parent))
            .unwrap_or_else(|error| panic!("block {number}: {error}"));
        if let Some(traces) = call_traces(&line) {
            let bundle = Bundle {
                traces: Some(traces),
                ..bundle.clone()
            };
            verifier
                .verify(&bundle, None)
                .unwrap_or_else(|error| panic!("block {number}: {error}"));
        }
        blocks += 1;
        transactions += bundle.block.transactions.len();
        without_roots += usize::from(number < 4_370_000 && bundle.receipts.iter().any(|r| r.root.is_none()));
    }
    assert_eq!((blocks, transactions), (119, 22_935));
    println!("{without_roots} of {blocks} blocks lie before Byzantium and lack intermediate state roots");
}

fn header(theirs: alloy_consensus::Header) -> Header {
    Header {
        parent_hash: theirs.parent_hash,
        ommers_hash: theirs.ommers_hash,
        beneficiary: theirs.beneficiary,
        state_root: theirs.state_root,
        transactions_root: theirs.transactions_root,
        receipts_root: theirs.receipts_root,
        logs_bloom: theirs.logs_bloom,
        difficulty: theirs.difficulty,
        number: theirs.number,
        gas_limit: theirs.gas_limit,
        gas_used: theirs.gas_used,
        timestamp: theirs.timestamp,
        extra_data: theirs.extra_data,
        mix_hash: theirs.mix_hash,
        nonce: theirs.nonce,
        base_fee_per_gas: theirs.base_fee_per_gas,
        ..Header::default()
    }
}

/// A chain with its genesis, and its bundles from block 1 on with what they lack in the recorded lines.
struct DevChain {
    genesis: ChainGenesis,
    blocks: Vec<(Bundle, Vec<TransactionTrace>)>,
}

impl DevChain {
    fn load(folder: &str, genesis: &str, rlp: &str) -> Option<Self> {
        let genesis = genesis::load(&shared(&format!("{folder}/{genesis}"))?).unwrap();
        let uncles = uncle_headers(&fs::read(shared(&format!("{folder}/{rlp}"))?).unwrap());
        let lines: Vec<Value> = lines(shared(&format!("{folder}/chain-complete.jsonl.zst"))?).collect();
        let uncles = uncles[uncles.len() - lines.len()..].to_vec();
        let mut blocks = Vec::new();
        for (line, uncles) in lines.iter().zip(uncles) {
            let mut bundle = bundle(line);
            bundle.block.uncle_headers = uncles.into_iter().map(header).collect();
            blocks.push((bundle, call_traces(line).unwrap()));
        }
        Some(Self { genesis, blocks })
    }

    fn execution_apis() -> Option<Self> {
        Self::load(EXECUTION_APIS, "tests/genesis.json", "tests/chain.rlp")
    }
}

fn assert_dev_chain_verifies(chain: DevChain, blocks: usize, uncles: usize) {
    let mut verifier = Verifier::new(Rules::from_forks(&chain.genesis.forks));
    let mut parent = chain.genesis.block.hash;
    let mut seen = (0, 0);
    for (mut bundle, call_traces) in chain.blocks {
        let number = bundle.block.number();
        verifier
            .verify(&bundle, Some(parent))
            .unwrap_or_else(|error| panic!("block {number}: {error}"));
        bundle.traces = Some(call_traces);
        verifier
            .verify(&bundle, Some(parent))
            .unwrap_or_else(|error| panic!("block {number}: {error}"));
        parent = bundle.block.hash;
        seen = (seen.0 + 1, seen.1 + bundle.block.uncle_headers.len());
    }
    assert_eq!(seen, (blocks, uncles));
}

#[test]
fn the_execution_apis_chain_verifies_from_its_genesis_on() {
    let Some(chain) = DevChain::execution_apis() else {
        return;
    };
    assert_dev_chain_verifies(chain, 54, 18);
}

#[test]
fn the_ethtest_chain_verifies_from_its_genesis_on() {
    let Some(chain) = DevChain::load(ETHTEST, "genesis.json", "chain.rlp") else {
        return;
    };
    assert_dev_chain_verifies(chain, 600, 0);
}

#[test]
fn block_0_is_what_geth_answers() {
    let Some(path) = shared(&format!(
        "{EXECUTION_APIS}/tests/eth_getBlockByNumber/get-genesis.io"
    )) else {
        return;
    };
    let Some(DevChain { genesis, .. }) = DevChain::execution_apis() else {
        return;
    };
    let text = fs::read_to_string(path).unwrap();
    let answer = text.lines().find_map(|line| line.strip_prefix("<< ")).unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    let line = serde_json::json!({ "block": answer["result"] });
    assert_eq!(genesis.block, bundle(&line).block);
    assert_eq!(genesis.block.size, Some(0x205));
    assert_eq!(
        (genesis.forks.spurious_dragon, genesis.forks.byzantium),
        (Some(6), Some(9))
    );
    assert_eq!(
        (genesis.forks.london, genesis.forks.prague_time),
        (Some(27), Some(450))
    );
    verify(&bundle(&line), None, &Rules::default()).unwrap();
}

#[test]
fn the_authority_of_the_set_code_transaction_is_found() {
    let Some(chain) = DevChain::execution_apis() else {
        return;
    };
    let hash = "0x99f7e58af4dd2735931a3262705fbe57ea2fcc79497668f74309cdeaf37cc223"
        .parse::<B256>()
        .unwrap();
    let mut transactions = chain
        .blocks
        .iter()
        .flat_map(|(bundle, _)| &bundle.block.transactions);
    let tx = transactions.find(|tx| tx.hash == hash).unwrap();
    let authorities: Vec<_> = tx.authorization_list.iter().flatten().map(authority).collect();
    let expected = "0xeda8645ba6948855e3b3cd596bbb07596d59c603"
        .parse::<Address>()
        .unwrap();
    assert_eq!(authorities, [Some(expected)]);
}

/// A damage: what it does, whether it can be done to a bundle (and then it is done), and the error it must give.
struct Damage {
    name: &'static str,
    apply: fn(&mut Bundle) -> Option<()>,
    named: fn(&VerifyError) -> bool,
}

macro_rules! damage {
    ($name:literal, |$bundle:ident| $apply:expr, $named:pat) => {
        Damage {
            name: $name,
            apply: |$bundle| {
                $apply;
                Some(())
            },
            named: |error| matches!(error, $named),
        }
    };
}

/// Reverses the first two logs of a receipt that differ; its bloom stays right.
fn swap_logs(bundle: &mut Bundle) -> Option<()> {
    let two = |logs: &[_]| logs.len() >= 2 && logs[0] != logs[1];
    bundle
        .receipts
        .iter_mut()
        .find(|receipt| two(&receipt.logs))?
        .logs
        .swap(0, 1);
    Some(())
}

/// The header changed, and the hash with it, so that only the commitments in it can tell.
fn reseal(bundle: &mut Bundle) {
    if let Err(VerifyError::BlockHash { found, .. }) = verify(bundle, None, &Rules::default()) {
        bundle.block.hash = found;
    }
}

#[rustfmt::skip]
const DAMAGES: &[Damage] = &[
    damage!("parent", |b| b.block.header.parent_hash.0[0] ^= 1, VerifyError::ParentHash { .. }),
    damage!("block hash", |b| b.block.hash.0[31] ^= 1, VerifyError::BlockHash { .. }),
    damage!("state root", |b| b.block.header.state_root.0[0] ^= 1, VerifyError::BlockHash { .. }),
    damage!("miner", |b| b.block.header.beneficiary.0[0] ^= 1, VerifyError::BlockHash { .. }),
    damage!("time", |b| b.block.header.timestamp += 1, VerifyError::BlockHash { .. }),
    damage!("number", |b| b.block.header.number += 1, VerifyError::BlockHash { .. }),
    damage!("gas used alone", |b| b.block.header.gas_used += 1, VerifyError::BlockHash { .. }),
    damage!("extra data", |b| b.block.header.extra_data = vec![1].into(), VerifyError::BlockHash { .. }),
    damage!("nonce", |b| b.block.header.nonce.0[0] ^= 1, VerifyError::BlockHash { .. }),
    damage!("base fee", |b| *b.block.header.base_fee_per_gas.as_mut()? += 1, VerifyError::BlockHash { .. }),
    damage!("base fee absent", |b| b.block.header.base_fee_per_gas.take()?,
        VerifyError::BlockHash { .. } | VerifyError::MissingHeaderField { field: "baseFeePerGas", .. }),
    damage!("withdrawals root absent", |b| b.block.header.withdrawals_root.take()?,
        VerifyError::BlockHash { .. } | VerifyError::MissingHeaderField { field: "withdrawalsRoot", .. }),
    damage!("blob gas used absent", |b| b.block.header.blob_gas_used.take()?,
        VerifyError::MissingHeaderField { field: "blobGasUsed", .. }),
    damage!("excess blob gas absent", |b| b.block.header.excess_blob_gas.take()?,
        VerifyError::MissingHeaderField { field: "excessBlobGas", .. }),
    damage!("blob gas", |b| *b.block.header.excess_blob_gas.as_mut()? += 1, VerifyError::BlockHash { .. }),
    damage!("requests", |b| b.block.header.requests_hash.as_mut()?.0[0] ^= 1, VerifyError::BlockHash { .. }),
    damage!("gas used, resealed", |b| { b.block.header.gas_used += 1; reseal(b) }, VerifyError::GasUsed { .. }),
    damage!("bloom, resealed", |b| { b.block.header.logs_bloom = Bloom::repeat_byte(0x11); reseal(b) },
        VerifyError::LogsBloom { .. }),
    damage!("uncles, resealed", |b| { b.block.header.ommers_hash.0[0] ^= 1; reseal(b) },
        VerifyError::OmmersPresence { .. } | VerifyError::OmmersHash { .. }),
    damage!("receipts root, resealed", |b| { b.block.header.receipts_root.0[0] ^= 1; reseal(b) },
        VerifyError::ReceiptsRoot { .. }),

    damage!("tx value", |b| b.block.transactions.first_mut()?.value += U256::ONE,
        VerifyError::TransactionHash { transaction: 0, .. }),
    damage!("tx nonce", |b| b.block.transactions.last_mut()?.nonce += 1, VerifyError::TransactionHash { .. }),
    damage!("tx to", |b| b.block.transactions.first_mut()?.to.as_mut()?.0[3] ^= 1,
        VerifyError::TransactionHash { transaction: 0, .. }),
    damage!("tx to absent", |b| b.block.transactions.first_mut()?.to.take()?,
        VerifyError::TransactionHash { transaction: 0, .. }),
    damage!("tx input", |b| b.block.transactions.first_mut()?.input = vec![1, 2, 3, 4, 5].into(),
        VerifyError::TransactionHash { transaction: 0, .. }),
    damage!("tx signature", |b| b.block.transactions.first_mut()?.s += U256::ONE,
        VerifyError::TransactionHash { transaction: 0, .. }),
    damage!("tx type", |b| b.block.transactions.last_mut()?.kind = 0x7e,
        VerifyError::UnsupportedTransactionType { kind: 0x7e, .. }),
    damage!("tx v absent", |b| {
        let legacy = b.block.transactions.iter_mut().find(|tx| tx.kind == 0)?;
        legacy.v = None;
    }, VerifyError::MissingTransactionField { field: "v", .. }),
    damage!("tx chain absent", |b| {
        let typed = b.block.transactions.iter_mut().find(|tx| tx.kind != 0)?;
        typed.chain_id = None;
    }, VerifyError::MissingTransactionField { field: "chainId", .. }),
    damage!("tx v of a typed one", |b| {
        let typed = b.block.transactions.iter_mut().find(|tx| tx.y_parity.is_some() && tx.kind != 0)?;
        typed.v = typed.v.map(|v| v ^ 1);
    }, VerifyError::TransactionParity { .. }),
    damage!("tx v of a typed one as legacy has it", |b| {
        let typed = b.block.transactions.iter_mut().find(|tx| tx.y_parity.is_some() && tx.kind != 0)?;
        typed.v = typed.v.map(|v| v + 27);
    }, VerifyError::TransactionParity { .. }),
    damage!("tx parity of a typed one", |b| {
        let typed = b.block.transactions.iter_mut().find(|tx| tx.y_parity.is_some() && tx.kind != 0)?;
        typed.y_parity = typed.y_parity.map(|parity| parity ^ 1);
    }, VerifyError::TransactionHash { .. }),
    damage!("tx list", |b| {
        let mut lists = b.block.transactions.iter_mut().filter_map(|tx| tx.access_list.as_mut());
        lists.find(|list| !list.is_empty())?.pop();
    }, VerifyError::TransactionHash { .. }),
    damage!("blob hashes", |b| {
        let mut lists = b.block.transactions.iter_mut().filter_map(|tx| tx.blob_versioned_hashes.as_mut());
        lists.next()?.pop();
    }, VerifyError::TransactionHash { .. }),
    damage!("authorizations", |b| {
        let mut lists = b.block.transactions.iter_mut().filter_map(|tx| tx.authorization_list.as_mut());
        lists.next()?.first_mut()?.nonce += 1;
    }, VerifyError::TransactionHash { .. }),
    damage!("two swapped with all that is theirs", |b| {
        if b.block.transactions.len() < 2 { return None; }
        b.block.transactions.swap(0, 1);
        b.receipts.swap(0, 1);
    }, VerifyError::TransactionsRoot { .. }),
    damage!("last tx dropped with all that is its", |b| {
        b.block.transactions.pop()?;
        b.receipts.pop()?;
        if let Some(traces) = b.traces.as_mut() { traces.pop()?; }
    }, VerifyError::TransactionsRoot { .. }),

    damage!("receipt dropped", |b| b.receipts.pop()?, VerifyError::ReceiptCount { .. }),
    damage!("receipt doubled", |b| b.receipts.push(b.receipts.last()?.clone()), VerifyError::ReceiptCount { .. }),
    damage!("receipts swapped", |b| {
        if b.receipts.len() < 2 { return None; }
        b.receipts.swap(0, 1);
    }, VerifyError::ReceiptOrder { transaction: 0, .. }),
    damage!("status", |b| { let status = b.receipts.last_mut()?.status.as_mut()?; *status = !*status },
        VerifyError::ReceiptsRoot { .. }),
    damage!("status absent", |b| b.receipts.last_mut()?.status.take()?, VerifyError::MissingStatus { .. }),
    damage!("receipt type", |b| b.receipts.first_mut()?.kind ^= 1, VerifyError::ReceiptsRoot { .. }),
    damage!("gas of one", |b| b.receipts.first_mut()?.gas_used += 1,
        VerifyError::CumulativeGas { transaction: 0, .. }),
    damage!("gas up to one", |b| b.receipts.first_mut()?.cumulative_gas_used -= 1,
        VerifyError::CumulativeGas { transaction: 0, .. }),
    damage!("gas of the last", |b| {
        let last = b.receipts.last_mut()?;
        last.gas_used -= 1;
        last.cumulative_gas_used -= 1;
    }, VerifyError::GasUsed { .. }),
    damage!("gas moved from one to the next", |b| {
        let [first, second, ..] = b.receipts.as_mut_slice() else { return None };
        first.gas_used -= 1;
        first.cumulative_gas_used -= 1;
        second.gas_used += 1;
    }, VerifyError::ReceiptsRoot { .. }),
    damage!("log address", |b| b.receipts.iter_mut().flat_map(|r| &mut r.logs).next()?.address.0[0] ^= 1,
        VerifyError::ReceiptBloom { .. }),
    damage!("log topic", |b| {
        let log = b.receipts.iter_mut().flat_map(|r| &mut r.logs).find(|log| !log.topics.is_empty())?;
        let mut words = log.topics.to_vec();
        words[0].0[0] ^= 1;
        log.topics = Topics::new(&words)?;
    }, VerifyError::ReceiptBloom { .. }),
    damage!("topics of a log swapped", |b| {
        let two = |words: &[B256]| words.len() > 1 && words[0] != words[1];
        let log = b.receipts.iter_mut().flat_map(|r| &mut r.logs).find(|log| two(&log.topics))?;
        let mut words = log.topics.to_vec();
        words.swap(0, 1);
        log.topics = Topics::new(&words)?;
    }, VerifyError::ReceiptsRoot { .. }),
    damage!("log data", |b| b.receipts.iter_mut().flat_map(|r| &mut r.logs).next()?.data = vec![7; 33].into(),
        VerifyError::ReceiptsRoot { .. }),
    damage!("log order", |b| swap_logs(b)?, VerifyError::ReceiptsRoot { .. }),
    damage!("log dropped", |b| b.receipts.iter_mut().find(|r| r.logs.len() == 1)?.logs.pop()?,
        VerifyError::ReceiptBloom { .. }),
    damage!("receipt bloom", |b| b.receipts.first_mut()?.logs_bloom = Bloom::repeat_byte(0x11),
        VerifyError::ReceiptBloom { transaction: 0, .. }),

    damage!("withdrawal amount", |b| b.block.withdrawals.as_mut()?.first_mut()?.amount_gwei += 1,
        VerifyError::WithdrawalsRoot { found: Some(_), .. }),
    damage!("withdrawal dropped", |b| b.block.withdrawals.as_mut()?.pop()?, VerifyError::WithdrawalsRoot { .. }),
    damage!("withdrawals absent", |b| b.block.withdrawals.take()?, VerifyError::WithdrawalsRoot { found: None, .. }),
    damage!("uncle header doubled", |b| b.block.uncle_headers.push(b.block.uncle_headers.first()?.clone()),
        VerifyError::OmmerCount { .. }),
    damage!("uncle header", |b| b.block.uncle_headers.first_mut()?.timestamp += 1, VerifyError::OmmerHash { .. }),
    damage!("uncle doubled", |b| {
        b.block.uncles.push(*b.block.uncles.first()?);
        b.block.uncle_headers.push(b.block.uncle_headers.first()?.clone());
    }, VerifyError::OmmersHash { .. }),
    damage!("uncles forgotten", |b| {
        b.block.uncles.pop()?;
        b.block.uncles.clear();
        b.block.uncle_headers.clear();
    }, VerifyError::OmmersPresence { .. }),

    damage!("trace dropped", |b| b.traces.as_mut()?.pop()?, VerifyError::TraceCount { .. }),
    damage!("trace empty", |b| *b.traces.as_mut()?.first_mut()? = TransactionTrace::default(),
        VerifyError::TraceTop { transaction: 0 }),
    damage!("trace sender", |b| b.traces.as_mut()?.first_mut()?.frames.first_mut()?.from.0[0] ^= 1,
        VerifyError::TraceSender { transaction: 0, .. }),
    damage!("trace recipient", |b| b.traces.as_mut()?.first_mut()?.frames.first_mut()?.to.as_mut()?.0[0] ^= 1,
        VerifyError::TraceRecipient { transaction: 0, .. }),
    damage!("trace kind", |b| {
        let top = b.traces.as_mut()?.first_mut()?.frames.first_mut()?;
        top.kind = if top.kind.is_creation() { FrameKind::Call }
            else { FrameKind::Create };
    }, VerifyError::TraceKind { transaction: 0, .. }),
    damage!("trace of a self-destruct", |b| top(b, |_| true)?.kind = FrameKind::SelfDestruct,
        VerifyError::TraceKind { found: FrameKind::SelfDestruct, .. }),
    damage!("trace value", |b| top(b, |_| true)?.value += U256::ONE,
        VerifyError::TraceValue { transaction: 0, .. }),
    damage!("trace without value", |b| top(b, |frame| !frame.value.is_zero())?.value = U256::ZERO,
        VerifyError::TraceValue { .. }),
    damage!("trace input", |b| top(b, |_| true)?.input = vec![1, 2, 3, 4, 5].into(),
        VerifyError::TraceInput { transaction: 0 }),
    damage!("trace of a creation without its code", |b| {
        top(b, |frame| frame.kind.is_creation())?.input = Vec::new().into();
    }, VerifyError::TraceInput { .. }),
    damage!("trace failed", |b| {
        let top = top(b, |frame| !frame.reverted)?;
        top.error = Some("reverted".to_owned());
        top.reverted = true;
    }, VerifyError::TraceOutcome { status: true, .. }),
    damage!("trace succeeded", |b| {
        let top = top(b, |frame| frame.reverted)?;
        top.error = None;
        top.reverted = false;
    }, VerifyError::TraceOutcome { status: false, .. }),
    damage!("trace moved nothing", |b| top(b, |frame| !frame.reverted)?.reverted = true,
        VerifyError::TraceOutcome { status: true, .. }),
    damage!("trace created nothing", |b| top(b, |frame| frame.kind.is_creation() && !frame.reverted)?.to = None,
        VerifyError::TraceRecipient { found: None, .. }),
    damage!("trace and receipt name no contract", |b| {
        let tops = b.traces.as_mut()?.iter_mut().map(|trace| &mut trace.frames[0]);
        let (top, receipt) = tops.zip(&mut b.receipts)
            .find(|(top, _)| top.kind.is_creation() && !top.reverted)?;
        (top.to, receipt.contract_address) = (None, None);
    }, VerifyError::CreatedContract { found: None, .. }),
    damage!("created contract absent", |b| {
        let of = |b: &Bundle| b.receipts.iter().position(|r| r.contract_address.is_some() && r.status == Some(true));
        let at = of(b)?;
        b.receipts[at].contract_address = None;
    }, VerifyError::CreatedContract { expected: Some(_), found: None, .. }),
    damage!("created contract", |b| {
        b.receipts.iter_mut().find_map(|r| r.contract_address.as_mut())?.0[0] ^= 1;
    }, VerifyError::CreatedContract { expected: Some(_), found: Some(_), .. }),
    damage!("created contract of a call", |b| {
        let at = b.block.transactions.iter().position(|tx| tx.to.is_some())?;
        b.receipts[at].contract_address = Some(Address::repeat_byte(7));
    }, VerifyError::CreatedContract { expected: None, found: Some(_), .. }),
    damage!("sender of a creation", |b| {
        let at = b.receipts.iter().position(|r| r.contract_address.is_some())?;
        b.block.transactions[at].from.0[0] ^= 1;
    }, VerifyError::CreatedContract { .. }),
];

/// The first top call of this sort.
fn top(bundle: &mut Bundle, is: fn(&Frame) -> bool) -> Option<&mut Frame> {
    let traces = bundle.traces.as_mut()?.iter_mut();
    traces
        .filter_map(|trace| trace.frames.first_mut())
        .find(|top| is(top))
}

/// Applies every damage to every block of a sample; adds the names of those that applied.
fn damage_all(sample: impl Iterator<Item = Bundle>, rules: &Rules, applied: &mut HashSet<&'static str>) {
    for whole in sample {
        let (number, parent) = (whole.block.number(), whole.block.header.parent_hash);
        verify(&whole, Some(parent), rules).unwrap();
        for damage in DAMAGES {
            let mut broken = whole.clone();
            if (damage.apply)(&mut broken).is_none() || broken == whole {
                continue;
            }
            let error = verify(&broken, Some(parent), rules).expect_err(damage.name);
            assert!(
                (damage.named)(&error),
                "block {number}, {}: {error:?}",
                damage.name
            );
            let sentence = error.to_string();
            assert!(
                sentence.len() > 20 && !sentence.ends_with('.') && !sentence.contains('\n'),
                "{sentence}"
            );
            applied.insert(damage.name);
        }
    }
}

#[test]
fn each_kind_of_damage_is_named() {
    let (Some(mainnet), Some(dev)) = (shared(MAINNET), DevChain::execution_apis()) else {
        return;
    };
    let mut applied = HashSet::new();
    let from_byzantium = lines(mainnet).filter(|line| line["number"].as_u64() >= Some(4_370_000));
    damage_all(
        from_byzantium.step_by(5).map(|line| bundle(&line)),
        &mainnet_rules(),
        &mut applied,
    );
    let byzantium = dev.genesis.forks.byzantium;
    let dev_from_byzantium = dev.blocks.into_iter().map(|(bundle, _)| bundle);
    let dev_from_byzantium = dev_from_byzantium.filter(|bundle| Some(bundle.block.number()) >= byzantium);
    damage_all(
        dev_from_byzantium,
        &Rules::from_forks(&dev.genesis.forks),
        &mut applied,
    );
    for damage in DAMAGES {
        assert!(
            applied.contains(damage.name),
            "`{}` applied to no block of the sample",
            damage.name
        );
    }
}

#[test]
fn receipts_before_byzantium_are_held_against_the_root_where_they_state_theirs() {
    let Some(path) = shared(MAINNET) else { return };
    let rules = mainnet_rules();
    let mut checked = 0;
    for line in lines(path).filter(|line| line["number"].as_u64() < Some(4_370_000)) {
        let mut bundle = bundle(&line);
        if bundle.receipts.is_empty() || bundle.receipts.iter().any(|receipt| receipt.root.is_none()) {
            continue;
        }
        checked += 1;
        bundle.receipts[0].root.as_mut().unwrap().0[0] ^= 1;
        let error = verify(&bundle, None, &rules).unwrap_err();
        assert!(matches!(error, VerifyError::ReceiptsRoot { .. }), "{error}");
        assert!(!error.to_string().contains("--genesis"), "{error}");
        // Of a chain of which nothing is known, whose node states a status all the same.
        for receipt in &mut bundle.receipts {
            receipt.status = Some(true);
        }
        let error = verify(&bundle, None, &Rules::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("use --genesis for a chain that reaches Byzantium after block 0"),
            "{error}"
        );
    }
    assert!(checked > 0);
}

/// Before Byzantium no hash covers a status, and a creation that could not pay for its code is told both ways.
#[test]
fn who_failed_before_byzantium_is_left_to_the_trace() {
    let Some(path) = shared(MAINNET) else { return };
    let rules = mainnet_rules();
    let mut checked = 0;
    for line in lines(path).filter(|line| line["number"].as_u64() < Some(4_370_000)) {
        let mut bundle = bundle(&line);
        let Some(top) = top(&mut bundle, |top| !top.reverted && !top.kind.is_creation()) else {
            continue;
        };
        top.error = Some("out of gas".to_owned());
        top.reverted = true;
        verify(&bundle, None, &rules).unwrap();
        self::top(&mut bundle, |_| true).unwrap().value += U256::ONE;
        let error = verify(&bundle, None, &rules).unwrap_err();
        assert!(matches!(error, VerifyError::TraceValue { .. }), "{error}");
        checked += 1;
    }
    assert!(checked > 0);
}

#[test]
fn a_trusted_node_is_held_to_counts_and_links_only() {
    let Some(path) = shared(MAINNET) else { return };
    let rules = mainnet_rules().trusting_node(true);
    for line in lines(path).step_by(10) {
        let mut bundle = bundle(&line);
        let parent = bundle.block.header.parent_hash;
        let Some(tx) = bundle.block.transactions.first_mut() else {
            continue;
        };
        tx.kind = 0x7e;
        bundle.block.hash.0[0] ^= 1;
        bundle.receipts[0].status = None;
        if let Some(top) = top(&mut bundle, |_| true) {
            top.value += U256::ONE;
            top.reverted = !top.reverted;
        }
        verify(&bundle, Some(parent), &rules).unwrap();
        let wrong_parent = verify(&bundle, Some(B256::ZERO), &rules);
        assert!(
            matches!(wrong_parent, Err(VerifyError::ParentHash { .. })),
            "{wrong_parent:?}"
        );
        bundle.receipts.pop();
        let short = verify(&bundle, Some(parent), &rules);
        assert!(
            matches!(short, Err(VerifyError::ReceiptCount { .. })),
            "{short:?}"
        );
    }
}

#[test]
fn well_known_chains_have_their_byzantium() {
    assert_eq!(mainnet_rules().byzantium_block, Some(4_370_000));
    for (hash, chain_id) in [
        (
            "0x25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9",
            11_155_111,
        ),
        (
            "0xb5f7f912443c940f21fd611f12828d75b534364ed9e95ca4e307729a4661bde4",
            17_000,
        ),
        (
            "0xbbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b",
            560_048,
        ),
        (
            "0x4f1dd23188aab3a76b463e4af801b52b1248ef073c648cbdc4c9333d3da79756",
            100,
        ),
        (
            "0xbf7e331f7f7c1dd2e05159666b3bf8bc7a8a3a9eb1d518969eab529dd9b88c1a",
            5,
        ),
    ] {
        let hash = hash.parse().unwrap();
        assert_eq!(
            Rules::well_known(chain_id, hash).unwrap().byzantium_block,
            Some(0)
        );
        assert_eq!(ForkRules::well_known(chain_id, hash).unwrap().chain_id, chain_id);
    }
    assert_eq!(Rules::well_known(1, B256::ZERO), None);
}

struct Nobody;

impl Observer for Nobody {
    fn begins(&self, _: &'static str, _: u64) {}
    fn advances(&self, _: u64) {}
    fn mismatch(&self, _: &Mismatch) {}
}

/// What is drawn of the native ledger of a chain that began with this and went on with these blocks.
fn drawn(
    allocation: &[(Address, u64)],
    blocks: &Blocks,
    count: usize,
    seed: u64,
) -> Vec<(Address, u64, u64)> {
    let directory = scratch::directory();
    let options = index::options(directory.path());
    let store = Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(0)).unwrap();
    let mut writer = store.writer().unwrap();
    let mut batch = writer.batch();
    for bundle in &blocks.0 {
        derive(bundle, &ledger::rules(allocation), &mut batch).unwrap();
    }
    writer.commit_final(batch).unwrap();
    let view = store.view();
    assert_eq!(view.checkpoint().native.fault, None);
    let range = BlockRange::new(0, view.head().unwrap().number).unwrap();
    let audit = Audit::new(view, range, Rules::default(), &Nobody);
    let mut sampler = Sampler::new(&audit, seed, count).unwrap();
    let samples = (0..count).map(|_| sampler.draw().unwrap().expect("the ledger is kept"));
    samples
        .map(|sample| match sample {
            Sample {
                question: Question::Native { account },
                block,
                stored,
                judged: true,
            } => (account, block, stored.to::<u64>()),
            other => panic!("there are no tokens: {other:?}"),
        })
        .collect()
}

fn low(number: u64) -> Address {
    Address::from_word(B256::from(U256::from(number)))
}

/// Neighbours with nothing between them, of whom a random address finds at most the first; and somebody far from them.
fn cluster() -> (Vec<Address>, Address, Vec<(Address, u64)>) {
    let cluster: Vec<Address> = (0x8800..=0x883b).map(low).collect();
    let far = Address::repeat_byte(0x77);
    let mut allocation: Vec<(Address, u64)> = cluster.iter().map(|&account| (account, 1000)).collect();
    allocation.push((far, 1_000_000));
    (cluster, far, allocation)
}

/// Of neighbours none is passed over where there are few accounts: all of them are gone through.
#[test]
fn a_wrong_balance_among_neighbours_is_found() {
    let (cluster, far, allocation) = cluster();
    let wrong = low(0x8810);
    let mut blocks = Blocks::new();
    for _ in 0..5 {
        blocks.push(vec![call(far, low(0x880f), 1)]);
    }
    for seed in 0..4 {
        let samples = drawn(&allocation, &blocks, 600, seed);
        let accounts: BTreeSet<Address> = samples.iter().map(|(account, ..)| *account).collect();
        for account in &cluster {
            assert!(
                accounts.contains(account),
                "seed {seed}: {account} was never drawn"
            );
        }
        // The node has one wei more of one of them, from block 2 on.
        let node = |account: Address, block: u64, held: u64| held + u64::from(account == wrong && block >= 2);
        let differs = |(account, block, held): &&(Address, u64, u64)| node(*account, *block, *held) != *held;
        assert!(samples.iter().any(|sample| differs(&sample)), "seed {seed}");
    }
}

/// Where there are more accounts than samples, whoever takes part in what happens is drawn.
#[test]
fn who_acts_is_drawn_wherever_his_address_lies() {
    let (cluster, far, allocation) = cluster();
    let acting = low(0x8820);
    let mut blocks = Blocks::new();
    for _ in 0..30 {
        blocks.push(vec![call(far, acting, 1)]);
    }
    let count = cluster.len() - 5;
    let mut times = 0;
    for seed in 0..8 {
        let samples = drawn(&allocation, &blocks, count, seed);
        times += samples.iter().filter(|(account, ..)| *account == acting).count();
    }
    // A third of some 440 samples, and of those half or so.
    assert!(times > 20, "{times}");
}

/// Half of the samples lie where balances change, and at the end.
#[test]
fn samples_are_drawn_where_balances_change() {
    let (far, once) = (Address::repeat_byte(0x77), Address::repeat_byte(0x22));
    let mut blocks = Blocks::new();
    for number in 1..=400 {
        blocks.push(match number {
            250 => vec![call(far, once, 5)],
            _ => Vec::new(),
        });
    }
    let samples = drawn(&[(far, 1_000_000), (once, 7)], &blocks, 400, 3);
    let at = |block: u64| {
        let found = samples
            .iter()
            .find(|(account, asked, _)| *account == once && *asked == block);
        found.map(|(.., held)| *held)
    };
    assert_eq!((at(249), at(250), at(400)), (Some(7), Some(12), Some(12)));
    let blocks: BTreeSet<u64> = samples.iter().map(|(_, block, _)| *block).collect();
    assert!(blocks.len() > 50, "half of them are anywhere: {}", blocks.len());
}

/// A store that was filled from a fake node, and `quarry verify` of it.
struct Filled {
    node: FakeNode,
    home: tempfile::TempDir,
}

impl Filled {
    fn new(first_block: u64) -> Self {
        let node = FakeNode::start(4);
        node.mine(38);
        node.set_finalized(30);
        let home = scratch::directory();
        let filled = Self { node, home };
        let first = first_block.to_string();
        let (data, url) = (filled.data(), filled.node.url());
        let sync = ["sync", "--to", "latest", "--start-block", &first];
        quarry([&sync[..], &["--data-dir", &data, "--mainnet-rpc", &url]].concat()).succeeded();
        // Whatever contracts are asked for, they say 7.
        filled
            .node
            .set_contracts(|_, _, _| Ok(U256::from(7).to_be_bytes::<32>().to_vec()));
        filled
    }

    fn data(&self) -> String {
        self.home.path().to_str().unwrap().to_owned()
    }

    fn verify(&self) -> Outcome {
        self.sampled("900")
    }

    fn sampled(&self, samples: &str) -> Outcome {
        let (data, url) = (self.data(), self.node.url());
        quarry([
            "verify",
            "--data-dir",
            &data,
            "--mainnet-rpc",
            &url,
            "--samples",
            samples,
            "--seed",
            "5",
        ])
    }

    /// What the service found out of a token, or of the native coin.
    fn judge(&self, token: &Address, exact: bool, reason: &str) {
        let directory = Path::new(&self.data()).join("mainnet");
        let genesis = self.node.bundles()[0].block.hash;
        let store = index::open(&directory, genesis, 0).unwrap();
        let observed: Arc<Observed> = Observed::open(&directory, &store.identity(), false);
        let verdict = TokenVerdict {
            exact,
            zero_address: ZeroAddress::Burns,
            checked: BlockId {
                number: self.node.head(),
                hash: self.node.head_hash(),
            },
            anchor: None,
            compared: 9,
            reason: reason.to_owned(),
            supply: None,
            differed: None,
        };
        observed.put_verdict(token, &verdict);
    }
}

/// The line of a check, in words.
#[track_caller]
fn line<'a>(outcome: &'a Outcome, check: &str) -> Vec<&'a str> {
    let line = outcome.stdout.lines().find(|line| line.starts_with(check));
    let line = line.unwrap_or_else(|| panic!("no `{check}`: {outcome:?}"));
    line[check.len()..].split_whitespace().collect()
}

#[test]
fn a_ledger_that_is_known_to_differ_is_no_check_that_passed() {
    const CHECK: &str = "native balances against the node";
    let filled = Filled::new(0);
    let sound = filled.verify().succeeded();
    let words = line(&sound, CHECK);
    let asked: u64 = words[0].parse().unwrap();
    assert!(asked > 100 && words[1..] == ["accounts", "0"], "{words:?}");
    assert!(!sound.stdout.contains("not checked: the ledger"), "{sound:?}");

    let reason =
        "0x00000000000000000000000000000000000000aa holds 5 after block 38 by the node, 4 by the ledger";
    filled.judge(&NATIVE_COIN, false, reason);
    let known = filled.verify().succeeded();
    assert_eq!(line(&known, CHECK), ["-", "accounts", "-"]);
    let said = line(
        &known,
        "    not checked: the ledger is known to differ from the node",
    )
    .join(" ");
    assert!(
        said.contains("found after block 38") && said.contains(reason),
        "{said}"
    );
    assert!(said.contains("the service answers from the node"), "{said}");
    // Also where no node is asked.
    let alone = quarry(["verify", "--data-dir", &filled.data()]).succeeded();
    assert_eq!(line(&alone, CHECK), ["-", "accounts", "-"]);
    assert!(alone.stdout.contains(reason), "{alone:?}");
}

#[test]
fn tokens_without_a_verdict_are_no_mismatches_of_the_store() {
    const UNJUDGED: &str = "tokens not judged yet: ";
    let filled = Filled::new(0);
    let token = filled.node.chain().spec.contract(0);
    let first = filled.verify().succeeded();
    assert!(!first.stdout.contains("mismatch: "), "{first:?}");
    let words = line(&first, UNJUDGED);
    let (differing, samples): (u64, u64) = (words[0].parse().unwrap(), words[3].parse().unwrap());
    assert_eq!((words[1], words[2], words[4]), ("differ", "of", "samples,"));
    assert!(100 < differing && differing <= samples, "{words:?}");
    assert!(words.join(" ").contains(&token.to_string()), "{words:?}");
    assert_eq!(
        line(&first, "token balances against the node"),
        ["-", "holders", "-"]
    );

    // Once the service answers by its ledger, the same is a mismatch.
    filled.judge(&token, true, "");
    let judged = filled.verify().refused(&["mismatches"]);
    let named = |line: &str| line.starts_with("mismatch: token ") && line.contains(&token.to_string());
    assert!(judged.stdout.lines().any(named), "{judged:?}");
    assert!(!line(&judged, UNJUDGED).join(" ").contains(&token.to_string()));

    // And where it is known to be wrong nobody asks.
    filled.judge(&token, false, "balances differ");
    let fallen = filled.verify().succeeded();
    assert!(!fallen.stdout.contains(&token.to_string()), "{fallen:?}");
}

#[test]
fn no_more_is_asked_at_a_time_than_the_operator_allows() {
    let filled = Filled::new(0);
    // Another node of the same chain, which nobody has asked for anything.
    let node = FakeNode::start(4);
    node.mine(38);
    node.set_finalized(30);
    node.set_contracts(|_, _, _| Ok(U256::from(7).to_be_bytes::<32>().to_vec()));
    node.set_latency(std::time::Duration::from_millis(3));
    let (data, url) = (filled.data(), node.url());
    let verify = ["verify", "--data-dir", &data, "--mainnet-rpc", &url];
    let samples = ["--samples", "60", "--seed", "5"];
    quarry([&verify[..], &samples, &["--rpc-concurrency", "1"]].concat()).succeeded();
    assert_eq!(node.in_flight_max(), 1);
    quarry([&verify[..], &samples].concat()).succeeded();
    assert!(node.in_flight_max() > 1);
}

#[test]
fn what_is_exported_and_not_final_is_told() {
    let filled = Filled::new(0);
    let (data, file) = (filled.data(), filled.home.path().join("chain.zst"));
    let file = file.to_str().unwrap();
    let export = |more: &[&str]| {
        let told = quarry([&["export", "chain", file, "--data-dir", &data], more].concat()).succeeded();
        std::fs::remove_file(file).unwrap();
        told
    };
    let told = export(&[]);
    assert!(told.stdout.contains("blocks 0 to 38 written to"), "{told:?}");
    let words = "blocks 31 to 38 of the recording are not final, and `quarry import chain` makes them so for good: \
                 `--to 30` leaves them out";
    assert!(told.stderr.contains(words), "{told:?}");
    let told = export(&["--to", "30"]);
    assert!(!told.stderr.contains("not final"), "{told:?}");
}

#[test]
fn a_store_that_begins_later_says_which_tokens_are_left_out() {
    let filled = Filled::new(10);
    let outcome = filled.verify().succeeded();
    for (check, unit) in [
        ("token balances against the node", "holders"),
        ("token supplies against the node", "tokens"),
    ] {
        assert_eq!(line(&outcome, check), ["-", unit, "-"]);
    }
    let said = line(&outcome, "    not checked: tokens left out:").join(" ");
    assert!(said.contains("began before the store"), "{said}");
}

#[test]
fn a_store_of_another_branch_is_told_from_one_whose_node_is_behind() {
    const CHECK: &str = "block hashes against the node";
    const LEFT_OUT: &str = "samples left out: ";
    let filled = Filled::new(0);
    // The first block, the last final one and the last one.
    let same = filled.verify().succeeded();
    assert_eq!(line(&same, CHECK), ["3", "blocks", "0"]);
    assert!(!same.stdout.contains(LEFT_OUT), "{same:?}");

    // A reorg of what is not final is nothing of the store's.
    filled.node.reorg(5, 6);
    let parted = filled.verify().succeeded();
    assert_eq!(line(&parted, CHECK), ["3", "blocks", "0"]);
    assert!(!parted.stdout.contains("mismatch: "), "{parted:?}");
    let said = line(&parted, "    block 38 is of another branch").join(" ");
    assert!(said.contains("not final"), "{said}");
    let left_out: u64 = line(&parted, LEFT_OUT)[0].parse().unwrap();
    assert!(left_out > 10, "{left_out}");

    // A node that does not have the store's end says nothing of it.
    filled.node.reorg(6, 2);
    assert!(filled.node.head() < 38, "{}", filled.node.head());
    let behind = filled.verify().succeeded();
    assert_eq!(line(&behind, CHECK), ["2", "blocks", "0"]);
    line(&behind, "    the node does not have block 38");
    assert!(line(&behind, LEFT_OUT)[0].parse::<u64>().unwrap() > 10);

    // What is final is another matter: no sync takes it off.
    filled.node.reorg(20, 40);
    let wrong = filled.verify().refused(&["mismatches"]);
    assert_eq!(line(&wrong, CHECK), ["3", "blocks", "1"]);
    let named = "mismatch: block hashes against the node: block 30: the store has 0x";
    assert!(wrong.stdout.contains(named), "{wrong:?}");
}

/// One question of many that the node does not answer is no reason to tell nothing of all the others.
#[test]
fn what_could_not_be_asked_is_counted_and_the_rest_is_told() {
    const CHECK: &str = "native balances against the node";
    const REASON: &str = "eth_getBalance: rpc error -32602: pruned";
    let filled = Filled::new(0);
    let fault = |method, times| filled.node.fault(Fault::Refuses(method, -32602, "pruned"), times);
    fault("eth_getBalance", 5);
    let some = filled
        .verify()
        .refused(&[&format!("quarry: not compared: {CHECK} (5 accounts): {REASON}")]);
    let words = line(&some, CHECK);
    let asked: u64 = words[0].parse().unwrap();
    assert!(asked > 100 && words[1..] == ["accounts", "0"], "{words:?}");
    line(&some, &format!("    5 could not be compared: {REASON}"));
    assert_eq!(line(&some, "block hashes against the node"), ["3", "blocks", "0"]);

    // What was found wrong comes first.
    filled.node.set_false_balances(true);
    fault("eth_getBalance", 5);
    filled
        .verify()
        .refused(&[" mismatches; not compared: native balances against the node (5 accounts)"]);
    filled.node.set_false_balances(false);

    // Without the node's head nothing of it is known.
    fault("eth_blockNumber", 1);
    let silent = filled.verify().refused(&[
        "quarry: not compared: block hashes against the node (3 blocks), native balances against the node (",
        "token supplies against the node (",
        "eth_blockNumber: rpc error",
    ]);
    for (check, unit) in [
        ("block hashes against the node", "blocks"),
        (CHECK, "accounts"),
        ("token balances against the node", "holders"),
    ] {
        assert_eq!(line(&silent, check), ["-", unit, "-"]);
    }
    let own = line(&silent, "native balances, supply of every block");
    assert!(own[0].parse::<u64>().unwrap() > 100 && own[2] == "0", "{own:?}");

    // One of the blocks that are looked at; it is asked for six times.
    filled
        .node
        .fault(Fault::FailsBlock("eth_getBlockByNumber", 30), 6);
    let blind = filled
        .sampled("0")
        .refused(&["not compared: block hashes against the node (1 blocks)"]);
    assert_eq!(
        line(&blind, "block hashes against the node"),
        ["2", "blocks", "0"]
    );
    filled.sampled("0").succeeded();
}

/// A node that answers nothing is given up: each question would be asked again for a while.
#[test]
fn a_node_that_answers_nothing_is_not_asked_every_question() {
    const METHODS: [&str; 2] = ["eth_getBalance", "eth_call"];
    let filled = Filled::new(0);
    for method in METHODS {
        filled
            .node
            .fault(Fault::Refuses(method, -32602, "pruned"), u64::MAX);
    }
    let asked = || {
        METHODS
            .iter()
            .map(|method| filled.node.asked(method))
            .sum::<u64>()
    };
    let before = asked();
    let silent = filled.verify().refused(&["rpc error -32602: pruned"]);
    let asked = asked() - before;
    assert!((32..120).contains(&asked), "{asked}");
    let left: Vec<&str> = silent
        .stdout
        .lines()
        .filter_map(|line| line.trim().strip_prefix("not checked: "))
        .filter_map(|line| line.split_once(" could not be compared"))
        .map(|(count, _)| count)
        .collect();
    let left: u64 = left.iter().map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(left, 900, "{silent:?}");
}

/// With and without a node: what was not looked at is not to look like what is sound.
#[test]
fn a_ledger_that_is_not_kept_is_no_check_that_passed() {
    const OWN: &str = "native balances, supply of every block";
    let home = scratch::directory();
    let data = home.path().to_str().unwrap();
    // Nobody tells what accounts begin with.
    let chain = demo("chain.jsonl.zst");
    quarry(["import", "chain", &chain, "--data-dir", data]).succeeded();
    let ended = quarry(["verify", "--data-dir", data]).succeeded();
    assert_eq!(line(&ended, OWN), ["-", "balances", "-"]);
    let said = line(&ended, "    not checked: the ledger is not kept since block").join(" ");
    assert!(said.contains("the service answers from the node"), "{said}");

    let node = FakeNode::start(4);
    node.mine(12);
    node.set_finalized(10);
    node.set_methods(Methods {
        trace_block: false,
        debug_trace: false,
        debug_by_hash: false,
        ..Methods::default()
    });
    node.set_contracts(|_, _, _| Ok(U256::from(7).to_be_bytes::<32>().to_vec()));
    let home = scratch::directory();
    let (data, url) = (home.path().to_str().unwrap(), node.url());
    let there = ["--mainnet-rpc", url.as_str()];
    let sync = ["sync", "--to", "latest", "--data-dir", data];
    quarry(sync.iter().chain(&there)).succeeded();
    let verify = ["verify", "--data-dir", data];
    for more in [&[][..], &there] {
        let untraced = quarry(verify.iter().chain(more)).succeeded();
        assert_eq!(line(&untraced, OWN), ["-", "balances", "-"]);
        line(
            &untraced,
            "    not checked: the frames of these blocks are not stored",
        );
    }
}

/// A store is for good by the rewards that it was filled by.
#[test]
fn a_sync_keeps_the_rewards_that_it_was_told() {
    let node = FakeNode::start(4);
    node.mine(5);
    let url = node.url();
    let told = |variable: bool| {
        let home = scratch::directory();
        let data = home.path().to_str().unwrap();
        let mut sync = binary::command(["sync", "--to", "5", "--data-dir", data, "--mainnet-rpc", &url]);
        if variable {
            sync.env("QUARRY_STATIC_REWARD", "0:5,3:2");
        } else {
            sync.args(["--static-reward", "0:5,3:2"]);
        }
        let output = sync.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let key = ["inspect", "--data-dir", data, "--key", "meta", "identity"];
        quarry(key).succeeded().stdout
    };
    for variable in [false, true] {
        let identity = told(variable);
        assert!(
            identity.contains("static rewards Some([(0, 5), (3, 2)])"),
            "{identity}"
        );
    }
}
