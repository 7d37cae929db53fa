//! Traces of both methods, as lists of frames for `traces` to normalise.

use super::object::object;
use super::scalar::{List, MaybeAddress, Wire};
use super::untold::{Told, Untold, is_gasless, top_alone};
use super::{WireError, may, parse};
use crate::model::{Address, B256, Block, Bytes, Frame, FrameKind, Transaction, TransactionTrace, U256};
use crate::node::reader::{Fault, FromJson, Reader};
use crate::node::traces::{
    DEPTH_MAX, Gap, QuietPrecompiles, REVERTED, StatedFrame, gap, normalise, says_failed, sort,
};
use serde_json::value::RawValue;

object! {
    /// One entry of `trace_block`.
    ParityWire {
        kind: Wire<String> = "type",
        action: ActionWire = "action",
        result: ResultWire = "result",
        error: Wire<String> = "error",
        trace_address: List<Wire<u32>> = "traceAddress",
        subtraces: Wire<u64> = "subtraces",
        transaction_hash: Wire<B256> = "transactionHash",
        transaction_position: Wire<u64> = "transactionPosition",
        block_hash: Wire<B256> = "blockHash",
    } skip {} extra: dropped
}

object! {
    ActionWire {
        call_type: Wire<String> = "callType",
        creation_method: Wire<String> = "creationMethod",
        from: Wire<Address> = "from",
        to: Wire<MaybeAddress> = "to",
        value: Wire<U256> = "value",
        gas: Wire<u64> = "gas",
        input: Wire<Bytes> = "input",
        init: Wire<Bytes> = "init",
        address: Wire<Address> = "address",
        refund_address: Wire<MaybeAddress> = "refundAddress",
        balance: Wire<U256> = "balance",
    } skip {} extra: dropped
}

object! {
    ResultWire {
        gas_used: Wire<u64> = "gasUsed",
        output: Wire<Bytes> = "output",
        code: Wire<Bytes> = "code",
        address: Wire<MaybeAddress> = "address",
    } skip {} extra: dropped
}

object! {
    /// One entry of `debug_traceBlockByHash` or `debug_traceBlockByNumber`.
    TracedWire {
        tx_hash: Wire<B256> = "txHash",
        result: CallWire = "result",
        error: Wire<String> = "error",
    } skip {} extra: dropped
}

object! {
    /// One frame of the call tracer, its calls still as text.
    CallWire {
        kind: Wire<String> = "type",
        from: Wire<Address> = "from",
        to: Wire<MaybeAddress> = "to",
        value: Wire<U256> = "value",
        gas: Wire<u64> = "gas",
        gas_used: Wire<u64> = "gasUsed",
        input: Wire<Bytes> = "input",
        output: Wire<Bytes> = "output",
        error: Wire<String> = "error",
        revert_reason: Wire<String> = "revertReason",
        calls: Calls = "calls",
    } skip {} extra: dropped
}

/// How many levels of calls are read by recursion before the rest is set aside as text. A call tree may
/// be 1,024 deep; recursion that deep needs megabytes of stack, and `serde_json` refuses it.
const LEVELS_READ_AT_ONCE: u32 = 24;

/// The calls of a frame: read, or kept as text because they lie too deep to recurse further.
#[derive(Debug)]
pub(super) enum Calls {
    Read(Vec<CallWire>),
    Text(Box<RawValue>),
}

impl<'a> FromJson<'a> for Calls {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        if LEVELS_READ_AT_ONCE <= reader.level {
            return reader
                .by_serde::<&RawValue>()
                .map(|text| Self::Text(text.to_owned()));
        }
        reader.level += 1;
        let calls = List::read(reader).map(|list| Self::Read(list.0));
        reader.level -= 1;
        calls
    }
}

/// What a node told of the traces of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldTraces {
    /// One trace for each transaction.
    pub traces: Vec<TransactionTrace>,
    /// Whether each frame stated the hash of its block, which was the right one.
    pub state_block: bool,
    /// A frame below which others are than it says.
    pub gap: Option<Gap>,
    /// Transactions whose own call was not told: their traces end with their receipts ([`super::settle`]).
    pub untold: Vec<Untold>,
}

/// Reads the answer of `trace_block`: one trace for each transaction of `block`, frames in pre-order.
///
/// # Errors
///
/// When the text is no such answer, speaks of another block, or lacks the trace of a transaction.
pub fn parity_traces(json: &str, block: &Block) -> Result<Vec<TransactionTrace>, WireError> {
    told_traces(json, block).map(|told| told.traces)
}

/// The same, and whether the answer says which block it is about.
///
/// # Errors
///
/// As [`parity_traces`].
pub fn told_traces(json: &str, block: &Block) -> Result<ToldTraces, WireError> {
    let list: List<ParityWire> = parse("traces", json)?;
    let mut places: Vec<Vec<StatedFrame>> = vec![Vec::new(); block.transactions.len()];
    let mut state_block = true;
    for wire in list.0 {
        let stated = may(wire.block_hash.clone());
        if let Some(found) = stated
            && found != block.hash
        {
            return Err(WireError::OtherBlock {
                what: "traces",
                expected: block.hash,
                found,
            });
        }
        if wire.kind.as_ref().is_some_and(|kind| kind.0 == "reward") {
            continue;
        }
        let Some(index) = may(wire.transaction_position.clone()) else {
            // The calls a chain makes to itself belong to no transaction.
            match may(wire.transaction_hash) {
                None => continue,
                Some(of) => {
                    let reason = format_args!("a frame of transaction {of} lacks `transactionPosition`");
                    return Err(WireError::malformed("traces", reason));
                }
            }
        };
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let (Some(place), Some(transaction)) = (places.get_mut(at), block.transactions.get(at)) else {
            return Err(WireError::SurplusItem { what: "trace", index });
        };
        if let Some(found) = may(wire.transaction_hash.clone())
            && found != transaction.hash
        {
            return Err(other_transaction(at, transaction.hash, found));
        }
        state_block &= stated.is_some();
        place.push(parity_frame(wire, at)?);
    }
    let places = places.into_iter().enumerate();
    let (mut found, mut untold) = (None, Vec::new());
    let traces = places.map(|(index, mut frames)| match block.transactions.get(index) {
        Some(transaction) if frames.is_empty() && is_gasless(transaction) => {
            // That there is none is no frame's word.
            state_block = false;
            let told = Told::Nothing;
            untold.push(Untold { index, told });
            Ok(top_alone(transaction))
        }
        _ => {
            sort(&mut frames);
            found = found.take().or_else(|| gap(&frames));
            whole(frames, QuietPrecompiles::Keep, index)
        }
    });
    let traces = traces.collect::<Result<_, _>>()?;
    Ok(ToldTraces {
        traces,
        state_block,
        gap: found,
        untold,
    })
}

fn whole(
    frames: Vec<StatedFrame>,
    quiet: QuietPrecompiles,
    index: usize,
) -> Result<TransactionTrace, WireError> {
    if frames.is_empty() {
        return Err(WireError::MissingItem { what: "trace", index });
    }
    normalise(frames, quiet).map_err(|error| odd(index, error))
}

pub(super) fn odd(index: usize, reason: impl std::fmt::Display) -> WireError {
    WireError::malformed("traces", format_args!("transaction {index}: {reason}"))
}

fn other_transaction(index: usize, expected: B256, found: B256) -> WireError {
    WireError::OtherTransaction {
        what: "trace",
        index,
        expected,
        found,
    }
}

fn parity_frame(wire: ParityWire, index: usize) -> Result<StatedFrame, WireError> {
    let missing = |field: &str| odd(index, format_args!("field `{field}` is missing"));
    let kind = may(wire.kind).ok_or_else(|| missing("type"))?;
    let action = wire.action.ok_or_else(|| missing("action"))?;
    let path: Vec<u32> = wire
        .trace_address
        .ok_or_else(|| missing("traceAddress"))?
        .0
        .into_iter()
        .map(|place| place.0)
        .collect();
    let error = may(wire.error);
    let has_failed = says_failed(error.as_deref());
    let result = match wire.result {
        Some(result) => result,
        // Only what failed has none, and what ends a contract.
        None if has_failed || matches!(kind.as_str(), "suicide" | "selfdestruct") => ResultWire::default(),
        None => return Err(missing("result")),
    };
    let from = |address: Option<Wire<Address>>, field: &str| may(address).ok_or_else(|| missing(field));
    let callee = may(action.to).and_then(|to| to.0);
    let kind = match kind.as_str() {
        // Old clients have one word for both.
        "call" if callee.is_none() && action.init.is_some() => "create",
        kind => kind,
    };
    let mut frame = match kind {
        "suicide" | "selfdestruct" => Frame {
            kind: FrameKind::SelfDestruct,
            from: from(action.address, "address")?,
            to: may(action.refund_address).and_then(|to| to.0),
            value: may(action.balance).unwrap_or_default(),
            ..Frame::default()
        },
        "create" => Frame {
            kind: match may(action.creation_method).as_deref() {
                Some("create2") => FrameKind::Create2,
                _ => FrameKind::Create,
            },
            from: from(action.from, "from")?,
            to: match may(result.address).and_then(|to| to.0) {
                None if !has_failed => return Err(missing("address")),
                created => created,
            },
            value: may(action.value).unwrap_or_default(),
            gas: may(action.gas).ok_or_else(|| missing("gas"))?,
            input: may(action.init).or(may(action.input)).unwrap_or_default(),
            output: may(result.code).or(may(result.output)).unwrap_or_default(),
            ..Frame::default()
        },
        "call" => Frame {
            kind: match may(action.call_type).as_deref() {
                Some("delegatecall") => FrameKind::DelegateCall,
                Some("staticcall") => FrameKind::StaticCall,
                Some("callcode") => FrameKind::CallCode,
                _ => FrameKind::Call,
            },
            from: from(action.from, "from")?,
            to: Some(callee.ok_or_else(|| missing("to"))?),
            value: may(action.value).unwrap_or_default(),
            gas: may(action.gas).ok_or_else(|| missing("gas"))?,
            input: may(action.input).unwrap_or_default(),
            output: may(result.output).unwrap_or_default(),
            ..Frame::default()
        },
        other => return Err(odd(index, format_args!("unknown type `{other}`"))),
    };
    frame.path = path;
    frame.error = error;
    Ok(StatedFrame {
        frame,
        gas_used: may(result.gas_used),
        subtraces: may(wire.subtraces),
    })
}

/// Reads the answer of `debug_traceBlockByHash` or `debug_traceBlockByNumber` with `callTracer`, without the receipts: where they have to
/// tell what the node did not, it is refused.
///
/// # Errors
///
/// As [`told_calls`].
pub fn call_traces(json: &str, block: &Block) -> Result<Vec<TransactionTrace>, WireError> {
    let told = told_calls(json, block)?;
    match told.untold.iter().find(|of| !of.is_gasless()) {
        Some(of) => Err(of.refusal()),
        None => Ok(told.traces),
    }
}

/// Reads the same answer, and which transactions' own calls it does not tell.
///
/// # Errors
///
/// As [`parity_traces`]; also when the node says that it could not trace a transaction.
pub fn told_calls(json: &str, block: &Block) -> Result<ToldTraces, WireError> {
    let list: List<TracedWire> = parse("traces", json)?;
    let mut places: Vec<Option<TransactionTrace>> = vec![None; block.transactions.len()];
    let mut untold = Vec::new();
    let mut room = PATHS_LEAST.saturating_add(json.len().saturating_mul(PATHS_PER_BYTE));
    for (position, wire) in list.0.into_iter().enumerate() {
        // Older nodes leave the hash out and answer in the order of the transactions.
        let index = match may(wire.tx_hash) {
            None => position,
            Some(hash)
                if block
                    .transactions
                    .get(position)
                    .is_some_and(|given| given.hash == hash) =>
            {
                position
            }
            Some(hash) => block
                .transactions
                .iter()
                .position(|given| given.hash == hash)
                .ok_or_else(|| {
                    let expected = block
                        .transactions
                        .get(position)
                        .map_or(B256::ZERO, |given| given.hash);
                    other_transaction(position, expected, hash)
                })?,
        };
        let (Some(place @ None), Some(transaction)) = (places.get_mut(index), block.transactions.get(index))
        else {
            return Err(WireError::SurplusItem {
                what: "trace",
                index: index as u64,
            });
        };
        if let Some(error) = may(wire.error)
            && wire.result.is_none()
        {
            return Err(odd(index, format_args!("not traced: {error}")));
        }
        let (trace, told) = match wire.result {
            None if is_gasless(transaction) => (top_alone(transaction), Some(Told::Nothing)),
            None => (top_alone(transaction), Some(Told::Null)),
            Some(mut top) => {
                let told = lead_with(transaction, &mut top);
                let frames = flatten(top, index, &mut room)?;
                (whole(frames, QuietPrecompiles::LeaveOut, index)?, told)
            }
        };
        untold.extend(told.map(|told| Untold { index, told }));
        *place = Some(trace);
    }
    let mut traces = Vec::with_capacity(places.len());
    for ((index, place), transaction) in places.into_iter().enumerate().zip(&block.transactions) {
        traces.push(match place {
            Some(trace) => trace,
            None if is_gasless(transaction) => {
                let told = Told::Nothing;
                untold.push(Untold { index, told });
                top_alone(transaction)
            }
            None => return Err(WireError::MissingItem { what: "trace", index }),
        });
    }
    Ok(ToldTraces {
        traces,
        untold,
        ..ToldTraces::default()
    })
}

/// Makes a top frame whose type is no frame's word the transaction's own call, and answers what it was where it is between other accounts. What
/// it says of gas, output and error stays, and so does what lies below.
fn lead_with(transaction: &Transaction, top: &mut CallWire) -> Option<Told> {
    let Wire(word) = top.kind.as_mut()?;
    if kind_of(word).is_some() {
        return None;
    }
    let kind = match transaction.to {
        Some(_) => "CALL",
        None => "CREATE",
    };
    let word = std::mem::replace(word, kind.to_owned());
    let callee = top.to.as_ref().and_then(|to| to.0.0);
    let is_its_own = callee.is_some()
        && callee == transaction.to
        && top.from.as_ref().is_some_and(|from| from.0 == transaction.from);
    top.from = Some(Wire(transaction.from));
    top.to = Some(Wire(MaybeAddress(transaction.to)));
    top.value = Some(Wire(transaction.value));
    top.input = Some(Wire(transaction.input.clone()));
    (!is_its_own).then_some(Told::Frame(word))
}

/// How many places the paths of all frames may have for each byte of the text, and at least: small calls that nest deeply have paths that are
/// longer than they are.
const PATHS_PER_BYTE: usize = 8;
const PATHS_LEAST: usize = 16 << 10;

/// Lays a call tree out in pre-order without recursion; the paths take from `room`.
fn flatten(top: CallWire, index: usize, room: &mut usize) -> Result<Vec<StatedFrame>, WireError> {
    let mut frames = Vec::new();
    let mut waiting: Vec<(Vec<u32>, CallWire)> = vec![(Vec::new(), top)];
    while let Some((path, mut wire)) = waiting.pop() {
        if DEPTH_MAX < path.len() {
            return Err(odd(index, format_args!("calls nest deeper than {DEPTH_MAX}")));
        }
        let calls = match wire.calls.take() {
            None => Vec::new(),
            Some(Calls::Read(calls)) => calls,
            Some(Calls::Text(text)) => parse::<Option<List<CallWire>>>("traces", text.get())?
                .map(|list| list.0)
                .unwrap_or_default(),
        };
        for (place, call) in (0_u32..).zip(calls).collect::<Vec<_>>().into_iter().rev() {
            let left = room.checked_sub(path.len() + 1);
            *room = left.ok_or_else(|| odd(index, "calls nest deeper than so short a text can be about"))?;
            let mut path = path.clone();
            path.push(place);
            waiting.push((path, call));
        }
        frames.push(call_frame(wire, path, index)?);
    }
    Ok(frames)
}

/// The call tracer's words.
const KINDS: [(&str, FrameKind); 8] = [
    ("CALL", FrameKind::Call),
    ("STATICCALL", FrameKind::StaticCall),
    ("DELEGATECALL", FrameKind::DelegateCall),
    ("CREATE", FrameKind::Create),
    ("CREATE2", FrameKind::Create2),
    ("CALLCODE", FrameKind::CallCode),
    ("SELFDESTRUCT", FrameKind::SelfDestruct),
    ("SUICIDE", FrameKind::SelfDestruct),
];

fn kind_of(word: &str) -> Option<FrameKind> {
    // Some clients write `Call` or `delegateCall`.
    let mut kinds = KINDS.iter();
    kinds
        .find(|(name, _)| name.eq_ignore_ascii_case(word))
        .map(|&(_, kind)| kind)
}

fn call_frame(wire: CallWire, path: Vec<u32>, index: usize) -> Result<StatedFrame, WireError> {
    let missing = |field: &str| odd(index, format_args!("field `{field}` is missing"));
    let word = may(wire.kind).ok_or_else(|| missing("type"))?;
    let kind = kind_of(&word).ok_or_else(|| odd(index, format_args!("unknown type `{word}`")))?;
    let error = may(wire.error).filter(|error| says_failed(Some(error)));
    // Some say no more of a revert than its reason.
    let says_reverted = says_failed(may(wire.revert_reason).as_deref());
    let frame = Frame {
        kind,
        path,
        from: may(wire.from).ok_or_else(|| missing("from"))?,
        to: may(wire.to).and_then(|to| to.0),
        value: may(wire.value).unwrap_or_default(),
        gas: may(wire.gas).unwrap_or_default(),
        gas_used: 0,
        input: may(wire.input).unwrap_or_default(),
        output: may(wire.output).unwrap_or_default(),
        error: error.or_else(|| says_reverted.then(|| REVERTED.to_owned())),
        reverted: false,
    };
    Ok(StatedFrame {
        frame,
        gas_used: may(wire.gas_used),
        subtraces: None,
    })
}
