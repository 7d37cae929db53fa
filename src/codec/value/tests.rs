//! Golden bytes: what bincode writes is part of the store's layout.

use super::*;
use crate::model::{Frame, FrameKind};

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
    assert_eq!(Identity::decode(&identity.encode()), Ok(identity));
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
    encode_frame(3, &frame, &mut row);
    assert_eq!(hex(&row), wanted);
    assert_eq!(decode_frame(&row), Ok((3, frame)));
}

#[test]
fn bytes_left_over_are_corrupt() {
    let mut bytes = Tail::default().encode();
    bytes.push(0);
    assert_eq!(Tail::decode(&bytes), Err(Corrupt("tail")));
}
