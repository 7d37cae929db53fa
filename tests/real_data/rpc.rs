//! JSON-RPC over the execution-apis chain: each recorded exchange of a node, and the uncles of the chain.

use serde_json::{Value, json};

use super::binary::{Server, number, text};
use super::data::shared;
use super::uncles::uncle_headers;
use super::{Imported, RE_EXECUTED, altered, exchanges, serve, take_outcomes};

/// Methods that are answered from the store, each with its `.io` files.
const METHODS: [&str; 16] = [
    "eth_blockNumber",
    "eth_chainId",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByHash",
    "eth_getBlockTransactionCountByNumber",
    "eth_getLogs",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_syncing",
    "net_version",
];

/// A range that ends above the head is answered as far as the chain goes, as by every other list here; that node refuses it.
const ABOVE_THE_HEAD: &str = "filter-error-future-block-range.io";

fn assert_same_receipt(file: &str, mut expected: Value, mut found: Value) {
    take_outcomes(file, &mut expected, &mut found);
    assert_eq!(found, expected, "{file}");
}

/// Each answer is the node's, to the last field.
pub(crate) fn check_exchanges(server: &Server) {
    let mut asked = 0;
    for method in METHODS {
        for (file, request, answer) in exchanges(method) {
            let params = request.get("params").cloned().unwrap_or_else(|| json!([]));
            asked += 1;
            match (server.rpc(method, params), &answer) {
                (Ok(found), _) if file == ABOVE_THE_HEAD => {
                    assert!(answer["error"].is_object() && !found.as_array().unwrap().is_empty());
                }
                (Err(found), answer) => assert_eq!(found["code"], answer["error"]["code"], "{file}: {found}"),
                (Ok(found), answer) if RE_EXECUTED.contains(&(method, file.as_str())) => {
                    assert_same_receipt(&file, answer["result"].clone(), found);
                }
                // Block 1 is one of these.
                (Ok(found), answer)
                    if method == "eth_getBlockReceipts" && answer["result"][0]["root"].is_string() =>
                {
                    let expected = answer["result"].as_array().unwrap();
                    let found = found.as_array().unwrap();
                    assert_eq!(found.len(), expected.len(), "{file}");
                    for (found, expected) in found.iter().zip(expected) {
                        assert_same_receipt(&file, expected.clone(), found.clone());
                    }
                }
                (Ok(found), answer) => assert_eq!(found, answer["result"], "{file}"),
            }
        }
    }
    assert_eq!(asked, 66, "the .io files of the methods that are answered");
}

fn header(header: &alloy_consensus::Header) -> Value {
    let quantity = |number: u64| format!("0x{number:x}");
    let mut value = json!({
        "hash": header.hash_slow(),
        "parentHash": header.parent_hash,
        "sha3Uncles": header.ommers_hash,
        "miner": header.beneficiary,
        "stateRoot": header.state_root,
        "transactionsRoot": header.transactions_root,
        "receiptsRoot": header.receipts_root,
        "logsBloom": header.logs_bloom,
        "difficulty": format!("0x{:x}", header.difficulty),
        "number": quantity(header.number),
        "gasLimit": quantity(header.gas_limit),
        "gasUsed": quantity(header.gas_used),
        "timestamp": quantity(header.timestamp),
        "extraData": header.extra_data,
        "mixHash": header.mix_hash,
        "nonce": header.nonce,
    });
    if let Some(fee) = header.base_fee_per_gas {
        value["baseFeePerGas"] = quantity(fee).into();
    }
    value
}

/// Uncles by number and by hash. The recording knows who mined them and their numbers, which are no header; with their headers
/// from the chain's own file they are told to the last field.
pub(crate) fn check_uncles(server: &Server, chain: &Imported) {
    let rlp = std::fs::read(shared("dev-chains/execution-apis/tests/chain.rlp").unwrap()).unwrap();
    let headers = uncle_headers(&rlp);
    let headers: Vec<Vec<Value>> = headers
        .iter()
        .map(|uncles| uncles.iter().map(header).collect())
        .collect();
    // The file may begin with block 0.
    let headers = &headers[headers.len() - chain.lines.len()..];
    let lines: Vec<String> = chain
        .lines
        .iter()
        .zip(headers)
        .map(|(line, headers)| altered(line, |line| line["uncleHeaders"] = json!(headers)))
        .collect();
    let directory = tempfile::tempdir().unwrap();
    chain.import(&lines, directory.path(), &[]).succeeded();
    let whole = serve(directory.path());
    let mut uncles = 0;
    for (line, headers) in lines.iter().zip(headers) {
        let line: Value = serde_json::from_str(line).unwrap();
        let block = &line["block"];
        let named = block["uncles"].as_array().unwrap();
        assert_eq!(named.len(), headers.len());
        uncles += named.len();
        for (suffix, at) in [("Number", &block["number"]), ("Hash", &block["hash"])] {
            let count = format!("eth_getUncleCountByBlock{suffix}");
            let by_index = format!("eth_getUncleByBlock{suffix}AndIndex");
            for server in [server, &whole] {
                let count = server.rpc(&count, json!([at])).unwrap();
                assert_eq!(number(&count), named.len() as u64);
                let past = json!([at, format!("0x{:x}", named.len())]);
                assert_eq!(server.rpc(&by_index, past), Ok(Value::Null));
            }
            for (index, (hash, header)) in named.iter().zip(headers).enumerate() {
                let params = json!([at, format!("0x{index:x}")]);
                let refused = server.rpc(&by_index, params.clone()).unwrap_err();
                assert_eq!(refused["code"], -32002, "{refused}");
                let found = whole.rpc(&by_index, params).unwrap();
                assert_eq!((&found["hash"], &found["uncles"]), (hash, &json!([])));
                for (field, value) in header.as_object().unwrap() {
                    assert_eq!(&found[field], value, "{field} of {}", text(hash));
                }
            }
        }
    }
    assert_eq!(uncles, 18);
    whole.stop();
}
