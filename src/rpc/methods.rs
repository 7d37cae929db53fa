//! Which methods there are, and what answers them.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::args::{Args, BlockRef};
use super::fault::Fault;
use super::message::Call;
use super::{blocks, logs, otterscan, state, traces, transactions};
use crate::desk::answer::{Answer, Extra, Plan};
use crate::desk::proxy::{Tag, bare};

/// A method that is answered from the store.
#[derive(Clone, Copy)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    parse: fn(&mut Args) -> Result<Work, Fault>,
}

/// What a call asks for. Answers are the JSON text of results.
pub(super) enum Work {
    /// To be looked up.
    Store {
        plan: Plan,
        /// What it finds is the text of the whole response.
        is_response: bool,
    },
    /// Known already.
    Known(Bytes),
    /// The node's own answer.
    Node {
        method: &'static str,
        params: Box<RawValue>,
    },
}

const fn method(name: &'static str, parse: fn(&mut Args) -> Result<Work, Fault>) -> Method {
    Method { name, parse }
}

/// The methods answered from the store.
pub const METHODS: &[Method] = &[
    method("eth_chainId", blocks::chain_id),
    method("net_version", blocks::net_version),
    method("web3_clientVersion", blocks::client_version),
    method("eth_accounts", blocks::accounts),
    method("eth_syncing", blocks::syncing),
    method("eth_blockNumber", blocks::block_number),
    method("eth_getBlockByNumber", blocks::block),
    method("eth_getBlockByHash", blocks::block),
    method("eth_getHeaderByNumber", blocks::header),
    method("eth_getHeaderByHash", blocks::header),
    method("erigon_getHeaderByNumber", blocks::header),
    method("eth_getBlockTransactionCountByNumber", blocks::transaction_count),
    method("eth_getBlockTransactionCountByHash", blocks::transaction_count),
    method("eth_getUncleCountByBlockNumber", blocks::uncle_count),
    method("eth_getUncleCountByBlockHash", blocks::uncle_count),
    method("eth_getUncleByBlockNumberAndIndex", blocks::uncle),
    method("eth_getUncleByBlockHashAndIndex", blocks::uncle),
    method("eth_getTransactionByHash", transactions::by_hash),
    method(
        "eth_getTransactionByBlockNumberAndIndex",
        transactions::by_position,
    ),
    method("eth_getTransactionByBlockHashAndIndex", transactions::by_position),
    method("eth_getTransactionReceipt", transactions::receipt),
    method("eth_getBlockReceipts", transactions::block_receipts),
    method("eth_getLogs", logs::logs),
    method("eth_getBalance", state::balance),
    method("eth_getTransactionCount", state::transaction_count),
    method("trace_block", traces::block),
    method("trace_transaction", traces::transaction),
    method("trace_get", traces::get),
    method("trace_filter", traces::filter),
    method("ots_getApiLevel", otterscan::api_level),
    method("ots_getBlockDetails", otterscan::block_details),
    method("ots_getBlockDetailsByHash", otterscan::block_details),
    method("ots_getBlockTransactions", otterscan::block_transactions),
    method("ots_getTransactionError", otterscan::transaction_error),
    method("ots_traceTransaction", otterscan::trace),
    method("ots_getInternalOperations", otterscan::internal_operations),
    method("ots_hasCode", state::has_code),
    method("ots_searchTransactionsBefore", otterscan::search_before),
    method("ots_searchTransactionsAfter", otterscan::search_after),
    method(
        "ots_getTransactionBySenderAndNonce",
        transactions::by_sender_and_nonce,
    ),
    method("ots_getContractCreator", otterscan::contract_creator),
];

/// The methods that go to the node as they are, where the operator lets them. None of them writes, administers, or has
/// the node trace.
pub const PASSED_ON: &[&str] = &[
    "eth_call",
    "eth_estimateGas",
    "eth_createAccessList",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_getProof",
    "eth_gasPrice",
    "eth_maxPriorityFeePerGas",
    "eth_blobBaseFee",
    "eth_feeHistory",
    "eth_getRawTransactionByHash",
    "eth_getRawTransactionByBlockNumberAndIndex",
    "eth_getRawTransactionByBlockHashAndIndex",
];

/// The place of a method among the operations that are counted: those of the store, those that are passed on.
pub(super) fn place_of(name: &str) -> Option<usize> {
    let stored = METHODS.iter().position(|method| method.name == name);
    stored.or_else(|| {
        let passed = PASSED_ON.iter().position(|passed| *passed == name);
        passed.map(|place| METHODS.len() + place)
    })
}

/// Reads a call into what it asks for.
pub(super) fn read(id: &RawValue, call: &Call, passes_on: bool) -> Result<Work, Fault> {
    let name = call.method.as_str();
    if let Some(method) = METHODS.iter().find(|method| method.name == name) {
        let mut args = Args::read(id, call.params.as_deref())?;
        let work = (method.parse)(&mut args)?;
        args.end(name)?;
        return Ok(work);
    }
    match PASSED_ON.iter().find(|passed| **passed == name) {
        Some(method) if passes_on => {
            // An object would be the node's to judge; a number is not.
            Args::read(id, call.params.as_deref())?;
            let none = || RawValue::from_string("[]".to_owned());
            let params = match &call.params {
                Some(params) if params.get() != "null" => Ok(params.clone()),
                _ => none(),
            };
            Ok(Work::Node {
                method,
                params: params.map_err(|_| Fault::params("Invalid params"))?,
            })
        }
        Some(_) => Err(Fault::no_method(format!(
            "The method {name} is not served: it needs the node (--rpc-passthrough)"
        ))),
        None => Err(Fault::no_method(format!(
            "The method {} does not exist or is not served",
            shown(name)
        ))),
    }
}

/// The head of a name, which is the client's own text.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

pub(super) const fn store(plan: Plan) -> Work {
    Work::Store {
        plan,
        is_response: false,
    }
}

/// A result that `write` appends.
pub(super) fn text(write: impl FnOnce(&mut Vec<u8>)) -> Answer {
    let mut out = Vec::with_capacity(256);
    write(&mut out);
    // It may lie there for long, with all that it has room for.
    Answer::Whole(out.into_boxed_slice().into(), Extra::default())
}

pub(super) fn null() -> Answer {
    text(crate::json::writer::null)
}

/// What another dialect answers.
pub(super) fn shared(plan: Plan) -> Work {
    let Plan { lane, quick, work } = plan;
    store(Plan {
        lane,
        quick,
        work: Box::new(|snapshot| work(snapshot).map(bare)),
    })
}

/// What another dialect answers about a block that is named in any way.
pub(super) fn at_block(block: BlockRef, plan: impl Fn(Tag) -> Plan + Send + 'static) -> Work {
    if let BlockRef::Tag(tag) = block {
        return shared(plan(tag));
    }
    // As quick as about any block.
    let Plan { lane, quick, .. } = plan(Tag::Latest);
    store(Plan {
        lane,
        quick,
        work: Box::new(move |snapshot| match block.indexed(snapshot)? {
            Some(number) => (plan(Tag::Number(number)).work)(snapshot).map(bare),
            None => Ok(null()),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_distinct_and_nothing_writes() {
        let stored = METHODS.iter().map(|method| method.name);
        let all: Vec<&str> = stored.chain(PASSED_ON.iter().copied()).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for (place, name) in all.iter().enumerate() {
            assert_eq!(place_of(name), Some(place));
            let space = name.split('_').next().unwrap();
            assert!(
                ["eth", "net", "web3", "trace", "ots", "erigon"].contains(&space),
                "{name}"
            );
            let lower = name.to_lowercase();
            for verb in [
                "send",
                "sign",
                "submit",
                "set",
                "filter_",
                "new",
                "mine",
                "subscribe",
            ] {
                assert!(!lower.contains(&format!("_{verb}")), "{name}");
            }
        }
    }

    #[test]
    fn what_needs_the_node_is_refused_without_leave() {
        let code = |method: &str, passes_on: bool| {
            let call = Call {
                method: method.to_owned(),
                params: None,
            };
            read(RawValue::NULL, &call, passes_on)
                .map(drop)
                .map_err(|fault| fault.code)
        };
        assert_eq!(code("eth_call", false), Err(-32601));
        assert_eq!(code("eth_call", true), Ok(()));
        assert_eq!(code("eth_blockNumber", false), Ok(()));
        for name in [
            "eth_sendRawTransaction",
            "eth_sendTransaction",
            "personal_unlockAccount",
            "admin_addPeer",
            "debug_setHead",
            "miner_start",
            "txpool_content",
            "anvil_setBalance",
            "hardhat_reset",
            "evm_mine",
            "eth_Call",
            "",
        ] {
            assert_eq!(code(name, true), Err(-32601), "{name}");
        }
    }
}
