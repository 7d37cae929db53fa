//! Golden bytes: what bincode writes is part of the store's layout.

use super::*;
use crate::model::{Frame, FrameKind, StaticRewards, Transaction};

fn hex(bytes: &[u8]) -> String {
    const_hex::encode(bytes)
}

#[test]
fn records_are_these_bytes() {
    let identity = Identity {
        schema: 1,
        chain_id: 31_337,
        genesis_hash: [0xab; 32],
        first_block: 7,
        static_rewards: Some(vec![(0, 5), (9, 3)]),
    };
    assert_eq!(
        hex(&identity.encode()),
        format!("01fb697a{}07010200050903", "ab".repeat(32))
    );
    assert_eq!(Identity::decode(&identity.encode()).as_ref(), Ok(&identity));
    // Eras are no step to who knows of none.
    for (text, wanted) in [("ecip1017:300", "02fb2c01"), ("300:7", "0101fb2c0107")] {
        let rewards: StaticRewards = text.parse().unwrap();
        let stated = Identity {
            static_rewards: Some(rewards.steps().to_vec()),
            ..identity.clone()
        };
        assert_eq!(
            hex(&stated.encode()),
            format!("01fb697a{}07{wanted}", "ab".repeat(32))
        );
        let read = Identity::decode(&stated.encode()).unwrap();
        assert_eq!((read.rewards(), &read), (rewards, &stated));
    }
    let unstated = Identity {
        static_rewards: None,
        ..identity
    };
    assert_eq!(
        hex(&unstated.encode()),
        format!("01fb697a{}0700", "ab".repeat(32))
    );
    assert_eq!(Identity::decode(&unstated.encode()), Ok(unstated));
    let checkpoint = Checkpoint {
        next_block: 250,
        hash: [1; 32],
        transactions: 251,
        logs: 65_536,
        frames: 1 << 32,
        emitters: 3,
        signatures: 2,
        next_traced: 250,
        native: NativeState {
            allocated: true,
            fault: Some(NativeFault {
                block: 300,
                reason: NativeFaultReason::Supply,
            }),
        },
        tokens: 4,
        multi_transfers: 5,
    };
    let wanted = format!(
        "fa{}fbfb00fc00000100fd00000000010000000302fa0101fb2c01010405",
        "01".repeat(32)
    );
    assert_eq!(hex(&checkpoint.encode()), wanted);
    assert_eq!(Checkpoint::decode(&checkpoint.encode()), Ok(checkpoint));
    let finality = Finality {
        next_unfinal: 9,
        flat_records: vec![1, 2, 300],
    };
    assert_eq!(hex(&finality.encode()), "09030102fb2c01");
    let undo = Undo {
        rows: vec![(6, vec![1, 2], None), (0, vec![3], Some(vec![4, 5]))],
    };
    assert_eq!(
        hex(&undo.encode()),
        "020602010200000103010204 05".replace(' ', "")
    );
    assert_eq!(Undo::decode(&undo.encode()), Ok(undo));
    let tail = Tail {
        arrays: vec![vec![], vec![7]],
    };
    assert_eq!(hex(&tail.encode()), "02000107");
    let creation = Creation {
        frame: Some(5),
        factory: None,
    };
    assert_eq!(hex(&creation.encode()), "010500");
}

#[test]
fn rows_are_these_bytes_and_read_back() {
    let frame = Frame {
        kind: FrameKind::ALL[0],
        path: vec![0, 2],
        from: Address::repeat_byte(1),
        to: Some(Address::repeat_byte(2)),
        value: U256::from(256),
        gas: 21_000,
        gas_used: 7,
        input: Bytes::from_static(&[9]),
        output: Bytes::new(),
        error: None,
        reverted: false,
    };
    let (from, to) = ("01".repeat(20), "02".repeat(20));
    let wanted = format!("0300020002{from}01{to}020100fb08520700000109 00").replace(' ', "");
    let mut row = Vec::new();
    encode_frame(&FrameSlice::of(3, &frame), None, &mut row);
    assert_eq!(hex(&row), wanted);
    let read = FrameRow::decode(&row).and_then(FrameRow::nested).unwrap();
    assert_eq!((read.transaction_index, read.into_frame()), (3, frame));
}

#[test]
fn top_calls_leave_out_what_their_transactions_say() {
    let to = Some(Address::repeat_byte(2));
    let transaction = Transaction {
        from: Address::repeat_byte(1),
        to,
        value: U256::from(256),
        input: Bytes::from_static(&[9; 5]),
        ..Transaction::default()
    };
    let call = CallOf::from(&transaction);
    let top = Frame {
        kind: FrameKind::Call,
        path: Vec::new(),
        from: transaction.from,
        to,
        value: transaction.value,
        gas: 21_000,
        gas_used: 7,
        input: transaction.input.clone(),
        output: Bytes::from_static(&[8]),
        error: Some("no".to_owned()),
        reverted: true,
    };
    let row_of = |frame: &Frame, call: &CallOf<'_>| {
        let mut row = Vec::new();
        encode_frame(&FrameSlice::of(3, frame), Some(call), &mut row);
        let read = FrameRow::decode(&row).unwrap();
        assert!(read.is_top() == frame.path.is_empty() && read.transaction_index() == 3);
        assert_eq!(read.outcome(), (&frame.output[..], frame.error.as_deref()));
        assert_eq!(read.with(call).into_frame(), *frame);
        hex(&row)
    };
    assert_eq!(row_of(&top, &call), "038000fb08520701026e6f010108");
    // A contract that was made is in no transaction.
    let creating = CallOf { to: None, ..call };
    let made = Frame {
        kind: FrameKind::Create,
        to: Some(Address::repeat_byte(7)),
        error: None,
        reverted: false,
        ..top.clone()
    };
    let wanted = format!(
        "03{:02x}01{}fb0852070000 0108",
        0x80 | FrameKind::Create as u8,
        "07".repeat(20)
    );
    assert_eq!(row_of(&made, &creating), wanted.replace(' ', ""));
    // Whatever differs from the transaction is said whole.
    let whole = |change: fn(&mut Frame)| {
        let mut frame = top.clone();
        change(&mut frame);
        let row = row_of(&frame, &call);
        assert!(row.len() > 80 && !row.starts_with("0380"), "{row}");
    };
    whole(|frame| frame.path = vec![0]);
    whole(|frame| frame.from = Address::repeat_byte(3));
    whole(|frame| frame.to = None);
    whole(|frame| frame.value = U256::ZERO);
    whole(|frame| frame.input = Bytes::new());
    whole(|frame| frame.kind = FrameKind::CallCode);
    whole(|frame| frame.kind = FrameKind::Create);
    for (kind, created) in [
        (FrameKind::Call, true),
        (FrameKind::DelegateCall, false),
        (FrameKind::Create2, true),
    ] {
        let created = if created {
            format!("01{}", "07".repeat(20))
        } else {
            "00".to_owned()
        };
        let row = format!("03{:02x}{created}fb085207000000", 0x80 | kind as u8);
        assert!(
            FrameRow::decode(&const_hex::decode(row).unwrap()).is_err(),
            "{kind:?}"
        );
    }
}

#[test]
fn bytes_left_over_are_corrupt() {
    let mut bytes = Tail::default().encode();
    bytes.push(0);
    assert_eq!(Tail::decode(&bytes), Err(Corrupt("tail")));
}

#[test]
fn ranges_say_of_each_block_what_was_last_said_of_it() {
    let mut random = fastrand::Rng::with_seed(20);
    for _ in 0..200 {
        let (mut said, mut model) = (Unverified::default(), Vec::new());
        for _ in 0..random.usize(..12) {
            let from = random.usize(..=model.len());
            let end = from + random.usize(..6);
            let at_its_word = random.bool();
            model.truncate(from);
            model.resize(end, at_its_word);
            said = said.after((from as u64, end as u64), at_its_word);
            let holds = |block: u64| {
                let ranges = &mut said.ranges.iter();
                ranges.any(|&(first, next)| (first..next).contains(&block))
            };
            let found: Vec<bool> = (0..end as u64).map(holds).collect();
            assert_eq!(found, model);
            assert_eq!(Unverified::decode(&said.encode()).unwrap(), said);
        }
    }
    let damaged = |ranges: &[(u64, u64)]| {
        let ranges = ranges.to_vec();
        Unverified::decode(&Unverified { ranges }.encode()).is_err()
    };
    assert!(damaged(&[(5, 5)]) && damaged(&[(0, 3), (3, 4)]) && damaged(&[(7, 9), (1, 2)]));
    assert!(!damaged(&[(0, 3), (4, u64::MAX)]));
}
