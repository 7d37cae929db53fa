//! Rows of call frames.

use bincode::{BorrowDecode, Encode};

use super::super::Corrupt;
use super::{CONFIG, Trimmed, decode, encode_into, trim};
use crate::model::{Address, Bytes, Frame, FrameKind, U256};

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

/// Appends a frame's row, with the position of its transaction in the block.
pub fn encode_frame(transaction_index: u32, frame: &Frame, out: &mut Vec<u8>) {
    let value = frame.value.to_be_bytes::<32>();
    let value = FrameValue {
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
    };
    encode_into(&value, out);
}

/// Reads a frame's row: the position of its transaction, and the frame.
pub fn decode_frame(bytes: &[u8]) -> Result<(u32, Frame), Corrupt> {
    let slice = FrameSlice::decode(bytes)?;
    Ok((
        slice.transaction_index,
        Frame {
            kind: slice.kind,
            path: slice.path,
            from: slice.from,
            to: slice.to,
            value: slice.value,
            gas: slice.gas,
            gas_used: slice.gas_used,
            input: Bytes::copy_from_slice(slice.input),
            output: Bytes::copy_from_slice(slice.output),
            error: slice.error.map(str::to_owned),
            reverted: slice.reverted,
        },
    ))
}

/// Reads the position of a frame's transaction and nothing else.
pub fn decode_frame_place(bytes: &[u8]) -> Result<u32, Corrupt> {
    bincode::decode_from_slice(bytes, CONFIG)
        .map(|(place, _)| place)
        .map_err(|_| Corrupt("frame"))
}

/// A frame's row with what is long borrowed; see [`Frame`].
#[derive(Clone, Debug)]
pub struct FrameSlice<'a> {
    /// Position of the transaction in the block.
    pub transaction_index: u32,
    /// What it does.
    pub kind: FrameKind,
    /// Place in the call tree.
    pub path: Vec<u32>,
    /// Caller.
    pub from: Address,
    /// Callee, created contract or beneficiary.
    pub to: Option<Address>,
    /// Value in wei.
    pub value: U256,
    /// Gas given.
    pub gas: u64,
    /// Gas used.
    pub gas_used: u64,
    /// Call data, or init code.
    pub input: &'a [u8],
    /// Return data, or code.
    pub output: &'a [u8],
    /// Error text.
    pub error: Option<&'a str>,
    /// Whether it or any ancestor failed.
    pub reverted: bool,
}

impl<'a> FrameSlice<'a> {
    /// Reads a frame's row.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        let value: FrameValue<'a> = decode(bytes, "frame")?;
        let kind = *FrameKind::ALL
            .get(usize::from(value.kind))
            .ok_or(Corrupt("frame"))?;
        Ok(Self {
            transaction_index: value.transaction_index,
            kind,
            path: value.path,
            from: Address::from(value.from),
            to: value.to.map(Address::from),
            value: value.value.number()?,
            gas: value.gas,
            gas_used: value.gas_used,
            input: value.input,
            output: value.output,
            error: value.error,
            reverted: value.reverted,
        })
    }
}
