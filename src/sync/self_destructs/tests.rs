//! Which self-destructs are in doubt, and what balances tell of them.

use serde_json::json;

use super::*;
use crate::model::{Block, Header, Receipt, Transaction, TransactionTrace};
use crate::node::wire::{call_traces, parity_traces};

const CONTRACT: Address = Address::repeat_byte(1);
const PAID: Address = Address::repeat_byte(2);
const OTHER: Address = Address::repeat_byte(3);

fn frame(kind: FrameKind, path: &[u32], from: Address, to: Address, value: u64) -> Frame {
    Frame {
        kind,
        path: path.to_vec(),
        from,
        to: Some(to),
        value: U256::from(value),
        ..Frame::default()
    }
}

/// One transaction to the contract with these frames below it.
fn bundle(frames: Vec<Frame>) -> Bundle {
    let mut all = vec![frame(FrameKind::Call, &[], OTHER, CONTRACT, 0)];
    all.extend(frames);
    Bundle {
        block: Block {
            header: Header {
                number: 7,
                blob_gas_used: Some(0),
                excess_blob_gas: Some(0),
                ..Header::default()
            },
            transactions: vec![Transaction {
                from: OTHER,
                to: Some(CONTRACT),
                gas_price: Some(0),
                ..Transaction::default()
            }],
            ..Block::default()
        },
        receipts: vec![Receipt::default()],
        traces: Some(vec![TransactionTrace { frames: all }]),
        ..Bundle::default()
    }
}

fn paid(value: u64) -> Frame {
    frame(FrameKind::Call, &[0], CONTRACT, PAID, value)
}

fn ended(place: u32, value: u64) -> Frame {
    frame(FrameKind::SelfDestruct, &[place], CONTRACT, PAID, value)
}

/// Which frames of the doubtful ones moved nothing by what accounts held.
fn chosen(bundle: &Bundle, held: &[Held]) -> Option<Vec<usize>> {
    let (mut right, doubts) = (bundle.clone(), doubts(bundle));
    if !explain(&mut right, &doubts, held, &NativeRules::default()) {
        assert_eq!(&right, bundle, "what is not explained is left alone");
        return None;
    }
    let frame = |bundle: &Bundle, doubt: &Doubt| {
        bundle.traces.as_ref().unwrap()[doubt.transaction].frames[doubt.frame].clone()
    };
    let changed = doubts
        .iter()
        .filter(|doubt| frame(&right, doubt) != frame(bundle, doubt));
    Some(changed.map(|doubt| doubt.frame).collect())
}

/// The same when the contract held so much before and after.
fn told(bundle: &Bundle, before: u64, after: u64) -> Option<Vec<usize>> {
    // The heir's balance is left out of it: what it got is not what is asked here.
    let held = [Held {
        account: CONTRACT,
        before: U256::from(before),
        after: U256::from(after),
    }];
    chosen(bundle, &held)
}

#[test]
fn only_what_repeats_a_payment_is_in_doubt() {
    let count = |frames| doubts(&bundle(frames)).len();
    assert_eq!(count(vec![paid(5), ended(1, 5)]), 1);
    assert_eq!(count(vec![paid(5), ended(1, 6)]), 0);
    assert_eq!(count(vec![ended(0, 5), paid(5)]), 0);
    let reverted = Frame {
        reverted: true,
        ..paid(5)
    };
    assert_eq!(count(vec![reverted, ended(1, 5)]), 0);
    let made = frame(FrameKind::Create, &[0], OTHER, CONTRACT, 5);
    assert_eq!(count(vec![made, paid(5), ended(1, 5)]), 0);
    let mut before_cancun = bundle(vec![paid(5), ended(1, 5)]);
    before_cancun.block.header.blob_gas_used = None;
    assert_eq!(doubts(&before_cancun), []);
}

#[test]
fn balances_tell_them_apart() {
    let once = bundle(vec![paid(5), ended(1, 5)]);
    // It had ten and ended for good in favour of who was paid; it kept five; it had no more than five.
    assert_eq!(told(&once, 10, 0), Some(vec![]));
    assert_eq!(told(&once, 10, 5), Some(vec![2]));
    assert_eq!(told(&once, 5, 0), Some(vec![2]));
    assert_eq!(told(&once, 10, 7), None);
    let twice = bundle(vec![paid(5), ended(1, 5), ended(2, 5)]);
    assert_eq!(told(&twice, 10, 5), Some(vec![2, 3]));
    assert_eq!(told(&twice, 10, 0).map(|found| found.len()), Some(1));
}

#[test]
fn both_sides_tell_which_of_two_it_was() {
    let third = Address::repeat_byte(4);
    let to_third = |kind, place| frame(kind, &[place], CONTRACT, third, 5);
    let frames = vec![
        paid(5),
        ended(1, 5),
        frame(FrameKind::Call, &[2], OTHER, CONTRACT, 5),
        to_third(FrameKind::Call, 3),
        to_third(FrameKind::SelfDestruct, 4),
    ];
    let bundle = bundle(frames);
    let held = |account, before: u64, after: u64| Held {
        account,
        before: U256::from(before),
        after: U256::from(after),
    };
    let told = |paid: u64, third_got: u64| {
        let held = [
            held(CONTRACT, 10, 0),
            held(PAID, 0, paid),
            held(third, 0, third_got),
        ];
        chosen(&bundle, &held)
    };
    assert_eq!(told(10, 5), Some(vec![5]));
    assert_eq!(told(5, 10), Some(vec![2]));
}

#[test]
fn many_alike_are_counted_and_an_end_repeats_an_end() {
    let mut frames = vec![paid(5)];
    frames.extend((1..=12).map(|place| ended(place, 5)));
    let many = bundle(frames);
    assert_eq!(told(&many, 100, 95).map(|found| found.len()), Some(12));
    assert_eq!(told(&many, 100, 85).map(|found| found.len()), Some(10));
    let twice = bundle(vec![ended(0, 5), ended(1, 5)]);
    assert_eq!(told(&twice, 5, 0), Some(vec![2]));
}

#[test]
fn code_of_another_account_did_not_end_it() {
    let mut bundle = bundle(vec![frame(FrameKind::SelfDestruct, &[0], OTHER, CONTRACT, 5)]);
    set_who_ended(&mut bundle);
    let ended = &bundle.traces.as_ref().unwrap()[0].frames[1];
    assert_eq!(
        (ended.from, ended.to, ended.value),
        (CONTRACT, Some(CONTRACT), U256::ZERO)
    );
    let before = bundle.clone();
    set_who_ended(&mut bundle);
    assert_eq!(bundle, before);
}

/// Ends in favour of the contracts themselves as the two trace methods of nodes other than those on revm tell of them: with
/// their whole balances. Of one that lives on that is no value: alone, under a revert, and with one made beside it. One that is made here
/// is told with what goes with it, also where its creation fails.
#[test]
fn an_end_in_favour_of_itself_moves_nothing_whichever_way_it_is_told() {
    let made = Address::repeat_byte(4);
    let failed = Address::repeat_byte(5);
    let empty = bundle(Vec::new());
    let block = &empty.block;
    let call = |path: &[u32], below: usize, from: Address, to: Address, error: Option<&str>| {
        json!({
            "type": "call", "traceAddress": path, "transactionPosition": 0, "subtraces": below, "error": error,
            "action": {"callType": "call", "from": from, "to": to, "value": "0x0", "gas": "0x64", "input": "0x"},
            "result": {"gasUsed": "0x1", "output": "0x"},
        })
    };
    let create = |path: &[u32], address: Option<Address>, error: Option<&str>| {
        json!({
            "type": "create", "traceAddress": path, "transactionPosition": 0, "subtraces": 1, "error": error,
            "action": {"creationMethod": "create2", "from": CONTRACT, "value": "0x0", "gas": "0x64", "init": "0x"},
            "result": {"address": address, "code": "0x", "gasUsed": "0x1"},
        })
    };
    let suicide = |path: &[u32], of: Address, balance: &str| {
        json!({
            "type": "suicide", "traceAddress": path, "transactionPosition": 0, "subtraces": 0, "result": null,
            "action": {"address": of, "refundAddress": of, "balance": balance},
        })
    };
    let parity = json!([
        call(&[], 4, OTHER, CONTRACT, None),
        suicide(&[0], CONTRACT, "0x46"),
        call(&[1], 1, CONTRACT, PAID, Some("Reverted")),
        suicide(&[1, 0], PAID, "0x5"),
        create(&[2], Some(made), None),
        suicide(&[2, 0], made, "0x3c"),
        create(&[3], None, Some("Reverted")),
        suicide(&[3, 0], failed, "0x9"),
    ]);
    let frame_of = |kind: &str, from: Address, to: Address, value: &str| {
        json!({
            "type": kind, "from": from, "to": to, "value": value, "gas": "0x64", "gasUsed": "0x1", "input": "0x",
        })
    };
    let with = |mut frame: serde_json::Value, error: Option<&str>, below: serde_json::Value| {
        frame["calls"] = below;
        if let Some(error) = error {
            frame["error"] = json!(error);
        }
        frame
    };
    let end = |of: Address, value: &str| frame_of("SELFDESTRUCT", of, of, value);
    let calls = json!([{"result": with(
        frame_of("CALL", OTHER, CONTRACT, "0x0"),
        None,
        json!([
            end(CONTRACT, "0x46"),
            with(frame_of("CALL", CONTRACT, PAID, "0x0"), Some("execution reverted"), json!([end(PAID, "0x5")])),
            with(frame_of("CREATE2", CONTRACT, made, "0x0"), None, json!([end(made, "0x3c")])),
            with(
                frame_of("CREATE2", CONTRACT, failed, "0x0"),
                Some("execution reverted"),
                json!([end(failed, "0x9")]),
            ),
        ]),
    )}]);
    let told = [
        parity_traces(&parity.to_string(), block).unwrap(),
        call_traces(&calls.to_string(), block).unwrap(),
    ];
    let settled = told.map(|traces| {
        let mut bundle = Bundle {
            traces: Some(traces),
            ..empty.clone()
        };
        set_who_ended(&mut bundle);
        bundle
    });
    let [one, other] = &settled;
    assert_eq!(one, other);
    let ends = |bundle: &Bundle| {
        let frames = bundle.traces.as_ref().unwrap()[0].frames.iter();
        let ends = frames.filter(|frame| is_end(frame));
        ends.map(|end| (end.from, end.to, end.value.to::<u64>()))
            .collect::<Vec<_>>()
    };
    let expected = [(CONTRACT, 0), (PAID, 0), (made, 60), (failed, 9)];
    assert_eq!(ends(one), expected.map(|(of, value)| (of, Some(of), value)));
    // Which is what is made of the words of a node on revm, that tells the payment before.
    let mut by_revm = bundle(vec![paid(5), ended(1, 5)]);
    let mut by_geth = bundle(vec![
        paid(5),
        frame(FrameKind::SelfDestruct, &[1], CONTRACT, CONTRACT, 70),
    ]);
    let held = |account: &Address| match *account {
        CONTRACT => (U256::from(75), U256::from(70)),
        _ => (U256::ZERO, U256::from(5)),
    };
    for bundle in [&mut by_revm, &mut by_geth] {
        assert!(tell_apart(bundle, &NativeRules::default(), held));
    }
    assert_eq!(by_revm, by_geth);
    // Before Cancun, and where headers do not tell, all of it goes.
    let mut before = by_geth;
    before.block.header.blob_gas_used = None;
    before.traces.as_mut().unwrap()[0].frames[2].value = U256::from(70);
    let as_told = before.clone();
    set_who_ended(&mut before);
    assert_eq!(before, as_told);
}

#[test]
fn what_moved_nothing_is_in_favour_of_itself() {
    let mut bundle = bundle(vec![paid(5), ended(1, 5)]);
    let doubts = doubts(&bundle);
    let before = bundle.clone();
    put_right(&mut bundle, &doubts);
    let mut back = bundle.clone();
    put_back(&mut back, &doubts);
    assert_eq!(back, before);
    let frame = &bundle.traces.unwrap()[0].frames[2];
    assert_eq!(
        (frame.from, frame.to, frame.value),
        (CONTRACT, Some(CONTRACT), U256::ZERO)
    );
}

/// Many contracts that each pay somebody and end in favour of themselves, told as if they had paid twice.
fn crowd(contracts: u32) -> (Bundle, impl Fn(&Address) -> (U256, U256)) {
    let contract = |at: u32| Address::from_word(U256::from(at + 1_000).into());
    let mut frames = Vec::new();
    for at in 0..contracts {
        let value = u64::from(at + 1);
        frames.push(frame(FrameKind::Call, &[at], CONTRACT, contract(at), 0));
        frames.push(frame(FrameKind::Call, &[at, 0], contract(at), PAID, value));
        frames.push(frame(
            FrameKind::SelfDestruct,
            &[at, 1],
            contract(at),
            PAID,
            value,
        ));
    }
    let all = U256::from(u64::from(contracts) * u64::from(contracts + 1) / 2);
    let rich = U256::from(u128::MAX);
    let held = move |account: &Address| match *account {
        PAID => (U256::ZERO, all),
        contract => (
            rich,
            rich - (U256::from_be_bytes(contract.into_word().0) - U256::from(999)),
        ),
    };
    (bundle(frames), held)
}

#[test]
fn a_crowd_of_contracts_is_told_apart() {
    let (mut many, held) = crowd(20_000);
    assert!(tell_apart(&mut many, &NativeRules::default(), held));
    let frames = &many.traces.as_ref().unwrap()[0].frames;
    let mut ends = frames.iter().filter(|frame| is_end(frame));
    assert!(ends.all(|end| end.to == Some(end.from) && end.value.is_zero()));
}

/// A contract that pays so many sums, and lets code that ends in favour of itself run after each.
fn of_many_sums(sums: u32) -> Bundle {
    let mut frames = Vec::new();
    for at in 0..sums {
        let delegated = frame(FrameKind::DelegateCall, &[2 * at + 1], CONTRACT, OTHER, 0);
        let value = u64::from(at + 1);
        frames.push(frame(FrameKind::Call, &[2 * at], CONTRACT, PAID, value));
        frames.push(delegated);
        frames.push(frame(
            FrameKind::SelfDestruct,
            &[2 * at + 1, 0],
            CONTRACT,
            PAID,
            value,
        ));
    }
    bundle(frames)
}

#[test]
fn what_takes_too_many_steps_is_taken_at_its_word() {
    let mut many = of_many_sums(20_000);
    assert_eq!(doubts(&many).len(), 20_000);
    let told = many.clone();
    let all = U256::from(20_000_u64 * 20_001 / 2);
    let rich = U256::from(u128::MAX);
    let held = |account: &Address| match *account {
        PAID => (U256::ZERO, all),
        _ => (rich, rich - all),
    };
    assert!(!tell_apart(&mut many, &NativeRules::default(), held));
    assert_eq!(many, told);
}
