//! Rows of call frames.

use bincode::{BorrowDecode, Encode};

use super::super::Corrupt;
use super::{Trimmed, decode, encode, trim};
use crate::model::{Address, Bytes, Frame, FrameKind};

#[derive(Encode, BorrowDecode)]
struct FrameValue<'a> {
    transaction_index: u32,
    kind: u8,
    path: Vec<u32>,
    from: [u8; 20],
    to: Option<[u8; 20]>,
    value: Trimmed<'a>,
    gas: u64,
    gas_used: u64,
    error: Option<&'a str>,
    reverted: bool,
    input: &'a [u8],
    output: &'a [u8],
}

/// A frame's row, with the position of its transaction in the block.
#[must_use]
pub fn encode_frame(transaction_index: u32, frame: &Frame) -> Vec<u8> {
    let value = frame.value.to_be_bytes::<32>();
    encode(&FrameValue {
        transaction_index,
        kind: frame.kind as u8,
        path: frame.path.clone(),
        from: frame.from.into_array(),
        to: frame.to.map(Address::into_array),
        value: trim(&value),
        gas: frame.gas,
        gas_used: frame.gas_used,
        error: frame.error.as_deref(),
        reverted: frame.reverted,
        input: &frame.input,
        output: &frame.output,
    })
}

/// Reads a frame's row: the position of its transaction, and the frame.
pub fn decode_frame(bytes: &[u8]) -> Result<(u32, Frame), Corrupt> {
    let value: FrameValue<'_> = decode(bytes, "frame")?;
    let kind = *FrameKind::ALL
        .get(usize::from(value.kind))
        .ok_or(Corrupt("frame"))?;
    Ok((
        value.transaction_index,
        Frame {
            kind,
            path: value.path,
            from: Address::from(value.from),
            to: value.to.map(Address::from),
            value: value.value.number()?,
            gas: value.gas,
            gas_used: value.gas_used,
            input: Bytes::copy_from_slice(value.input),
            output: Bytes::copy_from_slice(value.output),
            error: value.error.map(str::to_owned),
            reverted: value.reverted,
        },
    ))
}
