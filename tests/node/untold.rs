//! Transactions whose own call a node does not tell.

use super::client::ready;
use super::wire::sample;
use crate::support::fake_node::{FakeNode, Fault, Methods};
use crate::support::render;
use quarry::model::{Address, Bundle, Bytes, Frame, FrameKind, U256};
use quarry::node::recorded::parse_line;
use quarry::node::{TraceMethod, wire};
use quarry::sync::verify::{Rules, verify};
use serde_json::{Value, json};

/// A block of one transaction that pays somebody, and used this much gas.
fn payment(gas_used: u64, succeeded: bool) -> Bundle {
    let mut bundle = sample();
    bundle.block.transactions.truncate(1);
    bundle.receipts.truncate(1);
    bundle.traces = None;
    let transaction = &mut bundle.block.transactions[0];
    transaction.to = Some(Address::with_last_byte(0xbb));
    transaction.value = U256::from(7);
    transaction.gas = 90_000;
    transaction.input = Bytes::new();
    let receipt = &mut bundle.receipts[0];
    (receipt.gas_used, receipt.status) = (gas_used, Some(succeeded));
    receipt.contract_address = None;
    bundle
}

/// The frames of the transaction by the call tracer's answer and its receipt.
fn frames(mut bundle: Bundle, told: &Value) -> Result<Vec<Frame>, String> {
    let told = wire::told_calls(&told.to_string(), &bundle.block).map_err(|error| error.to_string())?;
    bundle.traces = Some(told.traces);
    wire::settle(&mut bundle, &told.untold).map_err(|error| error.to_string())?;
    Ok(bundle.traces.unwrap().remove(0).frames)
}

/// The call of a payment as its transaction and its receipt tell it.
fn alone(bundle: &Bundle) -> Frame {
    let (transaction, receipt) = (&bundle.block.transactions[0], &bundle.receipts[0]);
    let failed = receipt.status == Some(false);
    Frame {
        kind: FrameKind::Call,
        from: transaction.from,
        to: Some(Address::with_last_byte(0xbb)),
        value: U256::from(7),
        gas: 90_000,
        gas_used: receipt.gas_used,
        error: failed.then(|| "failed".to_owned()),
        reverted: failed,
        ..Frame::default()
    }
}

/// Of Optimism's block 0x660473A, and with the accounts that later versions of its client state.
#[test]
fn a_machine_that_was_never_entered_is_the_failed_call_of_the_transaction() {
    let mut stop = json!([{"result": {"from": "0x0000000000000000000000000000000000000000", "gas": "0x0",
        "gasUsed": "0x520c", "input": "0x", "type": "STOP"}}]);
    for to in [Value::Null, json!(Address::ZERO)] {
        stop[0]["result"]["to"] = to;
        let failed = payment(21_004, false);
        assert_eq!(frames(failed.clone(), &stop), Ok(vec![alone(&failed)]));
        let mut creation = failed;
        creation.block.transactions[0].to = None;
        let expected = Frame {
            kind: FrameKind::Create,
            to: None,
            ..alone(&creation)
        };
        assert_eq!(frames(creation, &stop), Ok(vec![expected]));
        // It may have run something: that is not what the word is for.
        let refused = Err("malformed traces: transaction 0: unknown type `STOP`".to_owned());
        assert_eq!(frames(payment(21_004, true), &stop), refused);
        let mut untold = payment(21_004, true);
        untold.receipts[0].status = None;
        assert_eq!(frames(untold, &stop), refused);
        let block = payment(21_004, false).block;
        let without_receipts = wire::call_traces(&stop.to_string(), &block);
        assert_eq!(
            without_receipts.map_err(|error| error.to_string()).map(drop),
            refused.map(drop)
        );
    }
    let nested = json!([{"result": {"type": "CALL", "from": Address::ZERO, "calls": [stop[0]["result"]]}}]);
    let error = frames(payment(21_004, false), &nested).unwrap_err();
    assert!(error.contains("unknown type `STOP`"), "{error}");
}

/// As Hedera's relay says of calls of its system contracts.
#[test]
fn a_frame_of_an_odd_type_between_the_transactions_accounts_is_its_own_call() {
    let bundle = payment(60_000, true);
    let from = bundle.block.transactions[0].from;
    let system = json!([{"result": {"type": "SYSTEM", "from": from, "to": Address::with_last_byte(0xbb), "value": "0x7",
        "gas": "0x100", "gasUsed": "0x80", "input": "0x", "output": "0x16", "calls": [
            {"type": "CALL", "from": Address::with_last_byte(0xbb), "to": Address::with_last_byte(0xcc)}]}}]);
    let frames = frames(bundle.clone(), &system).unwrap();
    let top = Frame {
        gas: 0x100,
        gas_used: 0x80,
        output: vec![0x16].into(),
        ..alone(&bundle)
    };
    assert_eq!((frames.len(), &frames[0]), (2, &top));
    assert_eq!(frames[1].to, Some(Address::with_last_byte(0xcc)));
}

/// As Hedera's relay says of transactions that call nothing.
#[test]
fn no_result_is_believed_of_what_ran_no_code() {
    let null = json!([{"result": null}]);
    for succeeded in [true, false] {
        let bundle = payment(21_000, succeeded);
        assert_eq!(frames(bundle.clone(), &null), Ok(vec![alone(&bundle)]));
    }
    let refused = Err("malformed traces: transaction 0: not traced: field `result` is missing".to_owned());
    assert_eq!(frames(payment(21_001, true), &null), refused);
    // Why it failed would be lost.
    assert_eq!(frames(payment(30_000, false), &null), refused);
    let mut creation = payment(21_000, true);
    creation.block.transactions[0].to = None;
    assert_eq!(frames(creation, &null), refused);
    let mut with_data = payment(21_000, true);
    with_data.block.transactions[0].input = vec![1].into();
    assert_eq!(frames(with_data, &null), refused);
    let error = json!([{"result": null, "error": "execution timeout"}]);
    let refused = Err("malformed traces: transaction 0: not traced: execution timeout".to_owned());
    assert_eq!(frames(payment(21_000, true), &error), refused);
}

#[test]
fn a_transaction_without_gas_that_failed_did_not_pay() {
    for succeeded in [true, false] {
        let mut bundle = payment(0, succeeded);
        bundle.block.transactions[0].gas = 0;
        let expected = Frame {
            gas: 0,
            ..alone(&bundle)
        };
        let stop =
            json!({"type": "STOP", "from": Address::ZERO, "gas": "0x0", "gasUsed": "0x0", "input": "0x"});
        for told in [
            json!([]),
            json!([{"result": null}]),
            json!([{"result": stop.clone()}]),
        ] {
            assert_eq!(
                frames(bundle.clone(), &told),
                Ok(vec![expected.clone()]),
                "{told}"
            );
        }
        // It ran something: that is not what the word is for.
        let mut nested = json!([{"result": stop}]);
        nested[0]["result"]["calls"] =
            json!([{"type": "CALL", "from": Address::ZERO, "to": Address::with_last_byte(0xcc)}]);
        assert_eq!(frames(bundle.clone(), &nested).is_ok(), !succeeded);
        let told = wire::told_traces("[]", &bundle.block).unwrap();
        bundle.traces = Some(told.traces);
        wire::settle(&mut bundle, &told.untold).unwrap();
        assert_eq!(bundle.traces.unwrap()[0].frames, [expected]);
    }
}

/// A node may take the traces of a block by its number alone, as another behind a balancer lacks the method for the hash.
#[tokio::test]
async fn what_is_refused_is_named_by_the_method_that_told_it() {
    let fake = FakeNode::start(35);
    fake.mine(30);
    let runs_code = |bundle: &&Bundle| bundle.receipts.iter().any(|receipt| 50_000 < receipt.gas_used);
    let bundles = fake.bundles();
    let number = bundles.iter().find(runs_code).expect("a call").block.number();
    fake.set_methods(Methods {
        trace_block: false,
        ..Methods::default()
    });
    let (node, capabilities) = ready(&fake).await;
    assert_eq!(capabilities.traces, TraceMethod::DebugByHash);
    fake.fault(
        Fault::Refuses("debug_traceBlockByHash", -32601, "method not found"),
        u64::MAX,
    );
    fake.fault(Fault::Untraced, u64::MAX);
    let error = node
        .bundle(number, &capabilities)
        .await
        .map(drop)
        .unwrap_err()
        .to_string();
    let expected = [
        "debug_traceBlockByNumber",
        "not traced: field `result` is missing",
    ];
    assert!(expected.iter().all(|word| error.contains(word)), "{error}");
}

/// Of a node, however it tells receipts, and of a recording; with nothing believed that can be checked.
#[tokio::test]
async fn a_block_with_a_call_that_was_not_told_is_whole() {
    let fake = FakeNode::start(34);
    fake.mine(30);
    let failed = |bundle: &Bundle| {
        let mut receipts = bundle.receipts.iter();
        receipts.position(|receipt| receipt.status == Some(false))
    };
    let bundles = fake.bundles();
    let found = bundles.iter().find_map(|bundle| Some((bundle, failed(bundle)?)));
    let (known, at) = found.expect("a failed transaction");
    fake.fault(Fault::NeverEntered, u64::MAX);
    for block_receipts in [true, false] {
        fake.set_methods(Methods {
            block_receipts,
            trace_block: false,
            ..Methods::default()
        });
        let (node, capabilities) = ready(&fake).await;
        assert_eq!(capabilities.traces, TraceMethod::DebugByHash);
        let bundle = node
            .bundle(known.block.number(), &capabilities)
            .await
            .unwrap()
            .bundle;
        let (transaction, told) = (&known.block.transactions[at], &known.traces.as_ref().unwrap()[at]);
        let expected = Frame {
            gas: transaction.gas,
            gas_used: known.receipts[at].gas_used,
            output: Bytes::new(),
            error: Some("failed".to_owned()),
            ..told.frames[0].clone()
        };
        assert_eq!(bundle.traces.as_ref().unwrap()[at].frames, [expected]);
        verify(&bundle, None, &Rules::default()).unwrap();
        let mut calls = render::calls(known);
        calls[at]["result"] = json!({"from": Address::ZERO, "type": "STOP"});
        let line = json!({"block": render::block(&known.block, true), "receipts": render::receipts(known),
            "callTraces": calls});
        let recorded = parse_line(&line.to_string()).unwrap();
        assert_eq!(recorded.traces.unwrap()[at], bundle.traces.unwrap()[at]);
    }
}
