//! Rows of call frames.

use bincode::{BorrowDecode, Encode};

use super::super::Corrupt;
use super::{CONFIG, Trimmed, decode, encode_into, trim};
use crate::model::{Address, Bytes, Frame, FrameKind, Transaction, U256};

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

/// In the kind of a row: the frame is the call that its transaction makes.
const OF_TRANSACTION: u8 = 0x80;

/// What a row of such a frame says beside its transaction.
#[derive(Encode, BorrowDecode)]
struct TopValue<'a> {
    transaction_index: u32,
    kind: u8,
    created: Option<[u8; 20]>,
    gas: u64,
    gas_used: u64,
    error: Option<&'a str>,
    reverted: bool,
    output: &'a [u8],
}

/// A unit of frames; they carry call data and code, and are read transaction by transaction.
pub const FRAME_UNIT_BYTES_MAX: usize = 8000;

/// What a transaction says of the call that it makes.
#[derive(Clone, Copy, Debug)]
pub struct CallOf<'a> {
    /// Sender.
    pub from: Address,
    /// Recipient; `None` of a creation.
    pub to: Option<Address>,
    /// Value in wei.
    pub value: U256,
    /// Call data or init code.
    pub input: &'a [u8],
}

impl<'a> From<&'a Transaction> for CallOf<'a> {
    fn from(transaction: &'a Transaction) -> Self {
        Self {
            from: transaction.from,
            to: transaction.to,
            value: transaction.value,
            input: &transaction.input,
        }
    }
}

impl CallOf<'_> {
    /// Whether a frame is this call, so that its row need not repeat it.
    fn is(&self, frame: &FrameSlice<'_>) -> bool {
        let kind_and_callee = match frame.kind {
            FrameKind::Call => self.to.is_some() && frame.to == self.to,
            FrameKind::Create => self.to.is_none(),
            _ => false,
        };
        kind_and_callee
            && frame.path.is_empty()
            && frame.from == self.from
            && frame.value == self.value
            && frame.input == self.input
    }
}

/// Appends a frame's row, with the position of its transaction in the block. What the top call has of its transaction
/// (`call`) is not said again: half of the bytes of frames on Ethereum mainnet (decision 0047).
pub fn encode_frame(frame: &FrameSlice<'_>, call: Option<&CallOf<'_>>, out: &mut Vec<u8>) {
    if call.is_some_and(|call| call.is(frame)) {
        let top = TopValue {
            transaction_index: frame.transaction_index,
            kind: frame.kind as u8 | OF_TRANSACTION,
            created: frame
                .to
                .filter(|_| frame.kind.is_creation())
                .map(Address::into_array),
            gas: frame.gas,
            gas_used: frame.gas_used,
            error: frame.error,
            reverted: frame.reverted,
            output: frame.output,
        };
        return encode_into(&top, out);
    }
    let value = frame.value.to_be_bytes::<32>();
    let value = FrameValue {
        transaction_index: frame.transaction_index,
        kind: frame.kind as u8,
        path: frame.path.clone(),
        from: frame.from.into_array(),
        to: frame.to.map(Address::into_array),
        value: trim(&value),
        gas: frame.gas,
        gas_used: frame.gas_used,
        error: frame.error,
        reverted: frame.reverted,
        input: frame.input,
        output: frame.output,
    };
    encode_into(&value, out);
}

/// Reads the position of a frame's transaction and nothing else.
pub fn decode_frame_place(bytes: &[u8]) -> Result<u32, Corrupt> {
    bincode::decode_from_slice(bytes, CONFIG)
        .map(|(place, _)| place)
        .map_err(|_| Corrupt("frame"))
}

/// A frame with what is long borrowed; see [`Frame`].
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
    /// A frame of the transaction at a position of its block.
    #[must_use]
    pub fn of(transaction_index: u32, frame: &'a Frame) -> Self {
        Self {
            transaction_index,
            kind: frame.kind,
            path: frame.path.clone(),
            from: frame.from,
            to: frame.to,
            value: frame.value,
            gas: frame.gas,
            gas_used: frame.gas_used,
            input: &frame.input,
            output: &frame.output,
            error: frame.error.as_deref(),
            reverted: frame.reverted,
        }
    }

    /// The frame by itself.
    #[must_use]
    pub fn into_frame(self) -> Frame {
        Frame {
            kind: self.kind,
            path: self.path,
            from: self.from,
            to: self.to,
            value: self.value,
            gas: self.gas,
            gas_used: self.gas_used,
            input: Bytes::copy_from_slice(self.input),
            output: Bytes::copy_from_slice(self.output),
            error: self.error.map(str::to_owned),
            reverted: self.reverted,
        }
    }
}

/// A frame that is the call of its transaction: what only its row says of it.
#[derive(Clone, Copy, Debug)]
pub struct TopSlice<'a> {
    /// Position of the transaction in the block.
    pub transaction_index: u32,
    /// A call or a creation.
    pub kind: FrameKind,
    /// The contract that it created.
    pub created: Option<Address>,
    /// Gas given.
    pub gas: u64,
    /// Gas used.
    pub gas_used: u64,
    /// Return data, or code.
    pub output: &'a [u8],
    /// Error text.
    pub error: Option<&'a str>,
    /// Whether it failed.
    pub reverted: bool,
}

impl<'a> TopSlice<'a> {
    /// The whole frame.
    #[must_use]
    pub fn with(self, call: &CallOf<'a>) -> FrameSlice<'a> {
        FrameSlice {
            transaction_index: self.transaction_index,
            kind: self.kind,
            path: Vec::new(),
            from: call.from,
            to: if self.kind.is_creation() {
                self.created
            } else {
                call.to
            },
            value: call.value,
            gas: self.gas,
            gas_used: self.gas_used,
            input: call.input,
            output: self.output,
            error: self.error,
            reverted: self.reverted,
        }
    }
}

/// A frame's row.
#[derive(Clone, Debug)]
pub enum FrameRow<'a> {
    /// It says all of its frame.
    Whole(FrameSlice<'a>),
    /// Its transaction says the rest.
    OfTransaction(TopSlice<'a>),
}

impl<'a> FrameRow<'a> {
    /// Reads a frame's row.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        let ((_, marked), _): ((u32, u8), usize) =
            bincode::decode_from_slice(bytes, CONFIG).map_err(|_| Corrupt("frame"))?;
        let kind = |kind: u8| {
            FrameKind::ALL
                .get(usize::from(kind))
                .copied()
                .ok_or(Corrupt("frame"))
        };
        if marked & OF_TRANSACTION != 0 {
            let value: TopValue<'a> = decode(bytes, "frame")?;
            let kind = kind(value.kind & !OF_TRANSACTION)?;
            match (kind, value.created) {
                (FrameKind::Call, None) | (FrameKind::Create, _) => {}
                _ => return Err(Corrupt("frame")),
            }
            return Ok(Self::OfTransaction(TopSlice {
                transaction_index: value.transaction_index,
                kind,
                created: value.created.map(Address::from),
                gas: value.gas,
                gas_used: value.gas_used,
                output: value.output,
                error: value.error,
                reverted: value.reverted,
            }));
        }
        let value: FrameValue<'a> = decode(bytes, "frame")?;
        Ok(Self::Whole(FrameSlice {
            transaction_index: value.transaction_index,
            kind: kind(value.kind)?,
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
        }))
    }

    /// The frame of a row that is in a list, or was made by a contract: never the top call.
    pub fn nested(self) -> Result<FrameSlice<'a>, Corrupt> {
        match self {
            Self::Whole(frame) => Ok(frame),
            Self::OfTransaction(_) => Err(Corrupt("frame: a top call among the nested ones")),
        }
    }

    /// The whole frame, with what its transaction says of it where the row does not.
    #[must_use]
    pub fn with(self, call: &CallOf<'a>) -> FrameSlice<'a> {
        match self {
            Self::Whole(frame) => frame,
            Self::OfTransaction(top) => top.with(call),
        }
    }

    /// Position of the transaction in the block.
    #[must_use]
    pub const fn transaction_index(&self) -> u32 {
        match self {
            Self::Whole(frame) => frame.transaction_index,
            Self::OfTransaction(top) => top.transaction_index,
        }
    }

    /// Whether it is the top call of its transaction.
    #[must_use]
    pub fn is_top(&self) -> bool {
        match self {
            Self::Whole(frame) => frame.path.is_empty(),
            Self::OfTransaction(_) => true,
        }
    }

    /// What it handed back, and its error.
    #[must_use]
    pub const fn outcome(&self) -> (&'a [u8], Option<&'a str>) {
        match self {
            Self::Whole(frame) => (frame.output, frame.error),
            Self::OfTransaction(top) => (top.output, top.error),
        }
    }
}
