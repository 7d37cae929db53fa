//! Reading a node's JSON: what is kept, what is refused, what is put right.

use crate::support::chain::{Chain, ChainSpec};
use crate::support::render;
use proptest::prelude::{ProptestConfig, any, proptest};
use quarry::model::{Address, Bloom, Bundle, FrameKind, U256};
use quarry::node::traces::{QuietPrecompiles, error_text, normalise};
use quarry::node::wire::{self, WireError};
use serde_json::{Value, json};

/// A block with at least three transactions, with traces of every kind in the chain around it.
pub(crate) fn sample() -> Bundle {
    let mut chain = Chain::new(ChainSpec::new(21));
    chain.mine(20);
    let busy = |bundle: &&Bundle| bundle.block.transactions.len() > 2;
    chain.bundles().iter().find(busy).unwrap().clone()
}

#[test]
fn receipts_are_put_in_order_and_must_be_complete() {
    let bundle = sample();
    let mut list = render::receipts(&bundle);
    list.reverse();
    let read = |list: &[Value]| wire::receipts(&json!(list).to_string(), &bundle.block);
    assert_eq!(read(&list), Ok(bundle.receipts.clone()));
    let one = list.pop().unwrap();
    assert_eq!(
        read(&list),
        Err(WireError::MissingItem {
            what: "receipt",
            index: 0
        })
    );
    list.push(list[0].clone());
    assert!(matches!(read(&list), Err(WireError::SurplusItem { .. })));
    list.pop();
    let mut other = one.clone();
    other["transactionHash"] = json!(bundle.block.hash);
    list.push(other);
    assert!(matches!(
        read(&list),
        Err(WireError::OtherTransaction { index: 0, .. })
    ));
    list.pop();
    let mut far = one;
    far["transactionIndex"] = json!("0xffffffffffffffff");
    list.push(far);
    assert_eq!(
        read(&list),
        Err(WireError::SurplusItem {
            what: "receipt",
            index: u64::MAX
        })
    );
}

#[test]
fn what_a_receipt_says_of_nothing_is_nothing() {
    let bundle = sample();
    let mut list = render::receipts(&bundle);
    let read = |list: &[Value]| wire::receipts(&json!(list).to_string(), &bundle.block);
    for root in ["0x01", "0x", "", "0x1"] {
        list[0]["root"] = json!(root);
        assert_eq!(read(&list), Ok(bundle.receipts.clone()), "{root}");
    }
    list[0]["root"] = json!(bundle.block.hash);
    assert_eq!(read(&list).unwrap()[0].root, Some(bundle.block.hash));
    list[0]["root"] = Value::Null;
    let mut without = bundle.receipts.clone();
    (without[0].logs, without[0].logs_bloom) = (Vec::new(), Bloom::ZERO);
    list[0]["logs"] = Value::Null;
    for bloom in [json!(Bloom::ZERO), Value::Null] {
        list[0]["logsBloom"] = bloom;
        assert_eq!(read(&list), Ok(without.clone()));
    }
    // The filter is that of some logs.
    list[0]["logsBloom"] = json!(Bloom::repeat_byte(1));
    assert!(matches!(
        read(&list),
        Err(WireError::MissingField { field: "logs", .. })
    ));
}

#[test]
fn free_calls_of_precompiles_are_known_by_what_they_give() {
    let mut block = sample().block;
    block.transactions.truncate(1);
    let call = |to: u8, output: &str, calls: Value| {
        json!({"type": "CALL", "from": Address::with_last_byte(1), "to": Address::with_last_byte(to), "gas": "0x1",
            "gasUsed": "0x0", "output": output, "calls": calls})
    };
    let none = || json!([]);
    // BLAKE2F of no rounds, MODEXP of short numbers before Berlin, and accounts that are not precompiles yet.
    let below = json!([
        call(9, &format!("0x{}", "ab".repeat(64)), none()),
        call(9, "0x", none()),
        call(5, "0x01", none()),
        call(10, "0x", none()),
    ]);
    let told = json!([{"result": call(0xbb, "0x", below)}]).to_string();
    let traces = wire::call_traces(&told, &block).unwrap();
    let kept = traces[0]
        .frames
        .iter()
        .skip(1)
        .map(|frame| (frame.to, frame.path[0]));
    let of = |to: u8, place: u32| (Some(Address::with_last_byte(to)), place);
    assert_eq!(kept.collect::<Vec<_>>(), [of(9, 0), of(10, 1)]);
}

#[test]
fn a_receipt_without_its_place_is_known_by_its_hash() {
    let bundle = sample();
    let mut list = render::receipts(&bundle);
    for receipt in &mut list {
        receipt.as_object_mut().unwrap().remove("transactionIndex");
    }
    let read = |list: &[Value]| wire::receipts(&json!(list).to_string(), &bundle.block);
    assert_eq!(read(&list), Ok(bundle.receipts.clone()));
    list.reverse();
    assert_eq!(read(&list), Ok(bundle.receipts.clone()));
    list[0]["transactionHash"] = json!(bundle.block.hash);
    assert!(matches!(
        read(&list),
        Err(WireError::MissingField {
            field: "transactionIndex",
            ..
        })
    ));
}

#[test]
fn a_receipt_without_bloom_or_type_gets_them_from_what_is_known() {
    let bundle = sample();
    let mut list = json!(render::receipts(&bundle));
    for receipt in list.as_array_mut().unwrap() {
        receipt
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key != "logsBloom" && key != "type");
    }
    assert_eq!(
        wire::receipts(&list.to_string(), &bundle.block),
        Ok(bundle.receipts.clone())
    );
}

#[test]
fn unknown_fields_are_kept_and_derivable_ones_are_not() {
    let bundle = sample();
    let mut block = render::block(&bundle.block, true);
    assert_eq!(wire::block(&block.to_string()), Ok(bundle.block));
    block["l1BlockNumber"] = json!("0x1");
    block["arbitrary"] = json!({"b": [1, "x y"]});
    block["nothing"] = Value::Null;
    block["transactions"][1]["sourceHash"] = json!("0x02");
    block["transactions"][1]["blockTimestamp"] = json!("0x02");
    let read = wire::block(&block.to_string()).unwrap();
    assert_eq!(
        read.extra.as_deref(),
        Some("{\"arbitrary\":{\"b\":[1,\"x y\"]},\"l1BlockNumber\":\"0x1\"}")
    );
    assert_eq!(
        read.transactions[1].extra.as_deref(),
        Some("{\"sourceHash\":\"0x02\"}")
    );
    assert_eq!(read.transactions[0].extra, None);
}

/// Of a block on the OP Stack after Jovian: without blobs it is the footprint of the data.
#[test]
fn blob_gas_of_what_has_no_blobs_is_kept_aside() {
    let bundle = sample();
    let mut list = render::receipts(&bundle);
    let (footprint, price) = (json!("0x9c40"), json!("0x1"));
    for (receipt, kind) in list.iter_mut().zip([2, 3, 2]) {
        receipt["type"] = json!(format!("{kind:#x}"));
        receipt["blobGasUsed"] = footprint.clone();
        receipt["blobGasPrice"] = price.clone();
    }
    list[0]["daFootprintGasScalar"] = json!("0x190");
    // What says nothing is dropped.
    list[2]["blobGasUsed"] = json!("0x0");
    let read = wire::receipts(&json!(list).to_string(), &bundle.block).unwrap();
    let told = |of: usize| {
        (
            read[of].blob_gas_used,
            read[of].blob_gas_price,
            read[of].extra.as_deref(),
        )
    };
    let extra = "{\"blobGasUsed\":\"0x9c40\",\"daFootprintGasScalar\":\"0x190\"}";
    assert_eq!(told(0), (None, None, Some(extra)));
    assert_eq!(told(1), (Some(40_000), Some(1), None));
    assert_eq!(told(2), (None, None, None));
}

/// Of zksync-era: `error` is for what halts, and of a revert there is the reason alone.
#[test]
fn a_reason_to_revert_is_a_failure() {
    let mut block = sample().block;
    block.transactions.truncate(1);
    let frame = |error: Value, reason: Value, below: Value| {
        json!({"type": "Call", "from": Address::with_last_byte(1), "to": Address::with_last_byte(0xbb), "gas": "0x9",
            "gasUsed": "0x5", "value": "0x0", "input": "0x", "output": "0xab", "error": error, "revertReason": reason,
            "calls": below})
    };
    let none = || json!([]);
    let below = json!([
        frame(
            Value::Null,
            json!("Unknown revert reason"),
            json!([frame(Value::Null, Value::Null, none())])
        ),
        frame(Value::Null, json!(" "), none()),
        frame(json!("out of gas"), json!("why"), none()),
        frame(json!(""), json!("why"), none()),
    ]);
    let told = |reason: Value| {
        let told = json!([{"result": frame(Value::Null, reason, below.clone())}]).to_string();
        let traces = wire::call_traces(&told, &block).unwrap();
        let frames = traces[0].frames.iter();
        frames
            .map(|frame| {
                (
                    frame.error.clone().unwrap_or_default(),
                    frame.reverted,
                    frame.output.len(),
                )
            })
            .collect::<Vec<_>>()
    };
    let (reverted, out_of_gas, fine) = ("reverted".to_owned(), "out of gas".to_owned(), String::new());
    assert_eq!(
        told(Value::Null),
        [
            (fine.clone(), false, 1),
            (reverted.clone(), true, 1),
            (fine.clone(), true, 1),
            (fine, false, 1),
            (out_of_gas, true, 0),
            (reverted.clone(), true, 1),
        ]
    );
    let failed = told(json!("the reason"));
    assert_eq!(failed[0], (reverted, true, 1));
    assert!(failed.iter().all(|(_, reverted, _)| *reverted));
}

#[test]
fn an_error_names_the_field_and_the_place() {
    let bundle = sample();
    let good = render::block(&bundle.block, true);
    for field in [
        "hash",
        "parentHash",
        "number",
        "timestamp",
        "miner",
        "gasLimit",
        "gasUsed",
        "stateRoot",
    ] {
        let mut block = good.clone();
        block[field] = Value::Null;
        let error = wire::block(&block.to_string()).unwrap_err();
        assert!(
            matches!(error, WireError::MissingField { field: named, .. } if named == field),
            "{error}"
        );
        block[field] = json!("0xzz");
        let error = wire::block(&block.to_string()).unwrap_err().to_string();
        assert!(error.contains(&format!("`{field}`")), "{error}");
    }
    let mut block = good.clone();
    block["transactions"][2]["from"] = Value::Null;
    let error = wire::block(&block.to_string()).unwrap_err().to_string();
    assert_eq!(error, "malformed transaction: field `from` is missing (item 2)");
    let mut block = good;
    block["transactions"][2]["gas"] = json!("0x-1");
    let error = wire::block(&block.to_string()).unwrap_err().to_string();
    assert!(
        error.contains("`transactions`: [2]: `gas`: expected a quantity"),
        "{error}"
    );
    assert!(wire::block("null").is_err());
    assert!(wire::block("[]").is_err());
}

#[test]
fn a_call_tree_as_deep_as_the_machine_allows_is_read_without_recursion() {
    let bundle = sample();
    let mut block = bundle.block;
    block.transactions.truncate(1);
    let frame = "\"type\":\"CALL\",\"from\":\"0x00000000000000000000000000000000000000aa\",\
                 \"to\":\"0x00000000000000000000000000000000000000bb\",\"gas\":\"0x1\"";
    let deep = |depth: usize| {
        let open = format!("{{{frame},\"calls\":[").repeat(depth);
        format!("[{{\"result\":{open}{{{frame}}}{}}}]", "]}".repeat(depth))
    };
    let traces = wire::call_traces(&deep(1_024), &block).unwrap();
    assert_eq!(traces[0].frames.len(), 1_025);
    assert_eq!(traces[0].frames[1_024].path, vec![0; 1_024]);
    assert!(wire::call_traces(&deep(5_000), &block).is_err());
}

#[test]
fn a_short_text_does_not_become_a_large_value() {
    let block = sample().block;
    let many = |item: &str, count: usize| vec![item; count].join(",");
    let empty = many("{}", 200_000);
    let frame = r#""type":"CALL","from":"0x00000000000000000000000000000000000000aa""#;
    let calls = format!(r#"[{{"result":{{{frame},"calls":[{empty}]}}}}]"#);
    for (name, error) in [
        (
            "receipts",
            wire::receipts(&format!("[{empty}]"), &block).unwrap_err(),
        ),
        (
            "logs",
            wire::receipts(&format!(r#"[{{"logs":[{empty}]}}]"#), &block).unwrap_err(),
        ),
        (
            "frames",
            wire::told_traces(&format!("[{empty}]"), &block).unwrap_err(),
        ),
        (
            "traces",
            wire::call_traces(&format!("[{empty}]"), &block).unwrap_err(),
        ),
        ("calls", wire::call_traces(&calls, &block).unwrap_err()),
        (
            "transactions",
            wire::block(&format!(r#"{{"transactions":[{empty}]}}"#)).unwrap_err(),
        ),
    ] {
        let error = error.to_string();
        assert!(
            error.contains("more items than so short a text can be about"),
            "{name}: {error}"
        );
    }
    // Paths of small calls, far down: each is as long as it lies deep.
    let open = format!("{{{frame},\"calls\":[").repeat(900);
    let leaves = many(&format!("{{{frame}}}"), 5_000);
    let deep = format!("[{{\"result\":{open}{leaves}{}}}]", "]}".repeat(900));
    let error = wire::call_traces(&deep, &block).unwrap_err().to_string();
    assert!(
        error.contains("calls nest deeper than so short a text can be about"),
        "{error}"
    );
    // What it says in its own words is not repeated at any length.
    let long = format!(r#"[{{"error":"{}"}}]"#, "x".repeat(1 << 20));
    let error = wire::call_traces(&long, &block).unwrap_err().to_string();
    assert!(
        error.contains("not traced: xxx") && error.len() < 5_000,
        "{}",
        error.len()
    );
}

#[test]
fn error_texts_are_the_same_for_both_methods() {
    for (a, b, text) in [
        ("Reverted", "execution reverted", "reverted"),
        ("Out of gas", "out of gas", "out of gas"),
        (
            "Out of gas",
            "contract creation code storage out of gas",
            "out of gas",
        ),
        ("Out of gas", "gas uint64 overflow", "out of gas"),
        ("Bad instruction", "invalid opcode: INVALID", "invalid opcode"),
        (
            "Bad instruction",
            "invalid opcode: opcode 0xfe not defined",
            "invalid opcode",
        ),
        (
            "Bad jump destination",
            "invalid jump destination",
            "invalid jump destination",
        ),
        ("Stack underflow", "stack underflow (0 <=> 2)", "stack underflow"),
        (
            "Out of stack",
            "stack limit reached 1024 (1023)",
            "stack overflow",
        ),
        (
            "Mutable Call In Static Context",
            "write protection",
            "write protection",
        ),
        ("Illegal state change", "write protection", "write protection"),
        (
            "Code is too large",
            "max code size exceeded",
            "max code size exceeded",
        ),
        (
            "Code is invalid",
            "invalid code: must not begin with 0xef",
            "invalid code",
        ),
        (
            "Access violation",
            "return data out of bounds",
            "return data out of bounds",
        ),
        (
            "Not enough balance",
            "insufficient balance for transfer",
            "insufficient balance",
        ),
        (
            "OutOfFunds",
            "insufficient balance for transfer",
            "insufficient balance",
        ),
        (
            "CreateCollision",
            "contract address collision",
            "contract address collision",
        ),
        (
            "CreateContractSizeLimit",
            "max code size exceeded",
            "max code size exceeded",
        ),
        ("CallTooDeep", "max call depth exceeded", "call depth exceeded"),
    ] {
        assert_eq!(error_text(a, false).as_deref(), Some(text));
        assert_eq!(error_text(b, false).as_deref(), Some(text));
    }
    assert_eq!(
        error_text("Built-in failed", true),
        error_text("bad elliptic curve pairing", true)
    );
    // The callee has no part in these.
    for (said, text) in [
        ("insufficient balance for transfer", "insufficient balance"),
        ("max call depth exceeded", "call depth exceeded"),
    ] {
        assert_eq!(error_text(said, true).as_deref(), Some(text));
    }
    assert_eq!(error_text("", false), None);
    assert_eq!(
        error_text(&"Odd ".repeat(50), false).map(|text| text.len()),
        Some(64)
    );
}

/// One transaction's frames by `trace_block`: (path, more of the entry).
fn parity(entries: &[(&[u32], Value)]) -> Result<Vec<quarry::model::Frame>, WireError> {
    told(entries).map(|mut told| told.traces.remove(0).frames)
}

/// All that these tell.
fn told(entries: &[(&[u32], Value)]) -> Result<wire::ToldTraces, WireError> {
    let mut block = sample().block;
    block.transactions.truncate(1);
    let list: Vec<Value> = entries
        .iter()
        .map(|(path, more)| {
            let mut entry = json!({
                "type": "call", "traceAddress": path, "transactionPosition": 0,
                "action": {"from": Address::with_last_byte(0xaa), "to": Address::with_last_byte(0xbb),
                    "gas": "0x64", "value": "0x5", "callType": "call", "input": "0x"},
                "result": {"gasUsed": "0x1", "output": "0x01"},
            });
            merge(&mut entry, more);
            entry
        })
        .collect();
    wire::told_traces(&json!(list).to_string(), &block)
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

#[test]
fn quiet_precompiles_stay_where_trace_block_tells_them() {
    let quiet = json!({"action": {"to": Address::with_last_byte(4), "value": "0x0"}});
    let paid = json!({"action": {"to": Address::with_last_byte(4), "value": "0x1"}});
    let new = json!({"action": {"to": Address::left_padding_from(&[1, 0]), "value": "0x0"}});
    let none = json!({});
    let frames = parity(&[
        (&[], none.clone()),
        (&[0], quiet.clone()),
        (&[1], none.clone()),
        (&[1, 0], quiet),
        (&[1, 1], none),
        (&[2], new),
        (&[3], paid),
    ])
    .unwrap();
    let paths: Vec<_> = frames.iter().map(|frame| frame.path.clone()).collect();
    let all = [vec![], vec![0], vec![1], vec![1, 0], vec![1, 1], vec![2], vec![3]];
    assert_eq!(paths, all);
}

#[test]
fn failures_reach_all_below_and_use_all_gas() {
    let frames = parity(&[
        (&[], json!({})),
        (&[0], json!({"error": "Out of gas", "result": null})),
        (&[0, 0], json!({})),
        (&[1], json!({"type": "create", "error": "Reverted", "result": {"address": Address::with_last_byte(7)}})),
        (&[2], json!({"action": {"callType": "delegatecall"}})),
        (&[3], json!({"type": "suicide", "result": null, "action": {
            "address": Address::with_last_byte(8), "refundAddress": Address::with_last_byte(9), "balance": "0x7"}})),
    ])
    .unwrap();
    let reverted: Vec<_> = frames.iter().map(|frame| frame.reverted).collect();
    assert_eq!(reverted, [false, true, true, true, false, false]);
    assert_eq!(
        (frames[1].gas_used, frames[1].error.as_deref()),
        (100, Some("out of gas"))
    );
    assert_eq!(frames[2].error, None);
    assert_eq!(
        (frames[3].kind, frames[3].to, frames[3].gas_used),
        (FrameKind::Create, None, 1)
    );
    assert_eq!(
        (frames[4].kind, frames[4].value),
        (FrameKind::DelegateCall, U256::ZERO)
    );
    assert_eq!(
        (frames[5].kind, frames[5].value, frames[5].gas),
        (FrameKind::SelfDestruct, U256::from(7), 0)
    );
    assert_eq!(frames[5].from, Address::with_last_byte(8));
    assert_eq!(frames[5].to, Some(Address::with_last_byte(9)));
}

#[test]
fn frames_that_form_no_tree_are_refused() {
    let none = json!({});
    assert!(parity(&[(&[0], none.clone())]).is_err(), "no top call");
    assert!(
        parity(&[(&[], none.clone()), (&[0, 0], none.clone())]).is_err(),
        "an orphan"
    );
    assert!(
        parity(&[(&[], none.clone()), (&[], none.clone())]).is_err(),
        "two tops"
    );
    assert!(
        parity(&[(&[1], none.clone()), (&[], none.clone()), (&[0], none)]).is_ok(),
        "any order"
    );
    assert!(normalise(Vec::new(), QuietPrecompiles::Keep).is_err());
}

#[test]
fn frames_that_contradict_themselves_are_refused() {
    let (none, says) = (json!({}), |count: u64| json!({ "subtraces": count }));
    let create = |more: Value| {
        let mut create = json!({"type": "create", "result": {"address": Address::with_last_byte(7)}});
        merge(&mut create, &more);
        create
    };
    let gap = |entries: &[(&[u32], Value)]| told(entries).unwrap().gap.map(|gap| gap.to_string());
    let whole = [
        (&[][..], says(2)),
        (&[0], create(says(1))),
        (&[0, 0], says(0)),
        (&[1], none.clone()),
    ];
    assert_eq!(gap(&whole), None);
    // Frames that were lost on the way leave their caller's word for it.
    let without = |lost: &[usize]| {
        let kept = whole.iter().enumerate().filter(|(at, _)| !lost.contains(at));
        gap(&kept.map(|(_, frame)| frame.clone()).collect::<Vec<_>>())
    };
    for lost in [&[3][..], &[2], &[1, 2], &[1, 2, 3]] {
        let said = without(lost).unwrap();
        assert!(
            said.contains("are directly below it, and there are"),
            "{lost:?}: {said}"
        );
    }
    let mut turned = whole.clone();
    turned.reverse();
    assert_eq!(gap(&turned), None);
    let more = [(&[][..], says(0)), (&[0], none.clone())];
    assert!(gap(&more).unwrap().contains("there are 1"));
    // Old clients have one word for calls and creations.
    let old =
        json!({"action": {"to": null, "init": "0x60"}, "result": {"address": Address::with_last_byte(7)}});
    let frames = parity(&[(&[], none.clone()), (&[0], old)]).unwrap();
    assert_eq!(frames[1].kind, FrameKind::Create);
    for (wrong, why) in [
        (
            json!({"transactionPosition": null, "transactionHash": sample().block.transactions[0].hash}),
            "transactionPosition",
        ),
        (json!({"result": null}), "`result` is missing"),
        (json!({"action": {"to": null}}), "`to` is missing"),
        (create(json!({"result": null})), "`result` is missing"),
        (
            create(json!({"result": {"address": null}})),
            "`address` is missing",
        ),
    ] {
        let said = parity(&[(&[], none.clone()), (&[0], wrong.clone())])
            .unwrap_err()
            .to_string();
        assert!(said.contains(why), "{wrong}: {said}");
    }
    // Some clients have words of their own for the same kinds.
    let mut block = sample().block;
    block.transactions.truncate(1);
    let call = |kind: &str, below: Value| {
        json!({"type": kind, "from": Address::with_last_byte(1), "to": Address::with_last_byte(0xbb), "gas": "0x1",
            "calls": below})
    };
    let below = json!([call("delegateCall", json!([])), call("create", json!([]))]);
    let told = json!([{"result": call("Call", below)}]).to_string();
    let kinds: Vec<_> = wire::call_traces(&told, &block).unwrap()[0]
        .frames
        .iter()
        .map(|frame| frame.kind)
        .collect();
    assert_eq!(
        kinds,
        [FrameKind::Call, FrameKind::DelegateCall, FrameKind::Create]
    );
    // Before its fork a precompile is an account like others, whose call costs nothing.
    let quiet = |to: u8, used: &str, error: Value| {
        json!({"type": "STATICCALL", "from": Address::with_last_byte(1), "to": Address::with_last_byte(to), "gas": "0x9",
            "gasUsed": used, "error": error})
    };
    let below = json!([
        quiet(4, "0xf", Value::Null),
        quiet(10, "0x0", Value::Null),
        quiet(10, "0x9", json!("out of gas"))
    ]);
    let told = json!([{"result": call("CALL", below)}]).to_string();
    let traces = wire::call_traces(&told, &block).unwrap();
    let kept: Vec<_> = traces[0]
        .frames
        .iter()
        .skip(1)
        .map(|frame| (frame.to, frame.path.clone()))
        .collect();
    assert_eq!(kept, [(Some(Address::with_last_byte(10)), vec![0])]);
    // A transaction without gas is the chain's own, which some nodes do not trace.
    assert!(wire::parity_traces("[]", &block).is_err() && wire::call_traces("[]", &block).is_err());
    block.transactions[0].gas = 0;
    for traces in [wire::parity_traces("[]", &block), wire::call_traces("[]", &block)] {
        let traces = traces.unwrap();
        let (top, of) = (&traces[0].frames[0], &block.transactions[0]);
        assert_eq!((traces.len(), traces[0].frames.len()), (1, 1));
        assert_eq!(
            (top.from, top.to, top.value, &top.input),
            (of.from, of.to, of.value, &of.input)
        );
    }
    // What a chain calls itself is no transaction's.
    let own = json!({"transactionPosition": null});
    assert_eq!(parity(&[(&[], none), (&[0], own)]).unwrap().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let block = quarry::model::Block::default();
        let _ = wire::block(&text);
        let _ = wire::block_id(&text);
        let _ = wire::uncle_header(&text);
        let _ = wire::receipts(&text, &block);
        let _ = wire::parity_traces(&text, &block);
        let _ = wire::call_traces(&text, &block);
        let _ = error_text(&text, text.len() % 2 == 0);
    }

    /// Valid JSON in which one value has been replaced by something odd.
    #[test]
    fn odd_values_never_panic(seed in any::<u64>(), odd in 0_usize..9) {
        let odds = [json!(null), json!(-1), json!(1.5), json!("0x"), json!("0xg"), json!([[]]), json!({}),
            json!("\u{e9}\u{e9}"), json!(true)];
        let bundle = sample();
        let mut rng = fastrand::Rng::with_seed(seed);
        let spoilt = |mut value: Value| {
            spoil(&mut value, &mut rng, &odds[odd]);
            value.to_string()
        };
        let texts: Vec<String> = [
            render::block(&bundle.block, true),
            json!(render::receipts(&bundle)),
            json!(render::parity(&bundle)),
            json!(render::calls(&bundle)),
        ].into_iter().map(spoilt).collect();
        let _ = wire::block(&texts[0]);
        let _ = wire::receipts(&texts[1], &bundle.block);
        let _ = wire::parity_traces(&texts[2], &bundle.block);
        let _ = wire::call_traces(&texts[3], &bundle.block);
    }
}

/// Replaces one value somewhere in the tree.
fn spoil(value: &mut Value, rng: &mut fastrand::Rng, odd: &Value) {
    let inner: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => Vec::new(),
    };
    if inner.is_empty() {
        *value = odd.clone();
        return;
    }
    let place = rng.usize(..inner.len());
    if let Some(value) = inner.into_iter().nth(place) {
        spoil(value, rng, odd);
    }
}
