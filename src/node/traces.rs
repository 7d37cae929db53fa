//! One shape for the call frames of both trace methods.
//!
//! `trace_block` and `debug_traceBlockByHash` (or `debug_traceBlockByNumber`) with `callTracer` tell the same story with different
//! words. Here both become the same frames: pre-order, dense paths, the same error texts, the same
//! rules for what a frame that failed has moved. Two things remain different and are left as stated:
//! gas and gas used of the top call (`trace_block` leaves the intrinsic gas out), and `create2`, which
//! `trace_block` of some clients calls `create`.

use crate::model::{Address, Bytes, Frame, FrameKind, TransactionTrace, U256};
use std::collections::HashMap;

/// No call tree of a valid chain is deeper (1,024 calls and a self-destruct in the last).
pub const DEPTH_MAX: usize = 1_026;

/// A frame as a node states it: `frame.error` in the node's words, `frame.gas_used` and
/// `frame.reverted` not yet set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedFrame {
    /// The frame.
    pub frame: Frame,
    /// Gas used, where stated.
    pub gas_used: Option<u64>,
    /// How many frames are directly below it, where stated.
    pub subtraces: Option<u64>,
}

/// Why frames do not form one call tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// There is no top call.
    #[error("no top call")]
    NoTopCall,
    /// Two frames have the same path.
    #[error("two frames at path {0:?}")]
    Duplicate(Vec<u32>),
    /// The caller of a frame is not among the frames.
    #[error("no caller of the frame at path {0:?}")]
    Orphan(Vec<u32>),
    /// The path is longer than any call tree is deep.
    #[error("a path of {0} steps")]
    TooDeep(usize),
}

/// What is done with nested calls of precompiles that move nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuietPrecompiles {
    /// As the node says: most leave them out of `trace_block` themselves.
    Keep,
    /// `callTracer` tells them, and a store filled by it should equal one filled by `trace_block`.
    LeaveOut,
}

/// Turns the stated frames of one transaction, which are in pre-order, into its trace.
///
/// # Errors
///
/// When the paths do not form one tree.
pub fn normalise(stated: Vec<StatedFrame>, quiet: QuietPrecompiles) -> Result<TransactionTrace, ShapeError> {
    check_tree(&stated)?;
    let mut frames: Vec<Frame> = Vec::with_capacity(stated.len());
    // For each level: the new place of the frame last met there, whether it or an ancestor failed, and
    // how many of its children have been kept.
    let mut line: Vec<(u32, bool, u32)> = Vec::new();
    let mut rest = stated.into_iter().peekable();
    while let Some(stated) = rest.next() {
        let depth = stated.frame.path.len();
        let has_children = rest.peek().is_some_and(|next| depth < next.frame.path.len());
        let leave_out = quiet == QuietPrecompiles::LeaveOut;
        if leave_out && 0 < depth && !has_children && is_quiet_precompile(&stated) {
            continue;
        }
        line.truncate(depth);
        let (place, parent_failed) = match line.last_mut() {
            None => (0, false),
            Some((_, failed, children)) => {
                *children += 1;
                (*children - 1, *failed)
            }
        };
        let mut frame = settle(stated);
        frame.reverted = parent_failed || frame.error.is_some();
        line.push((place, frame.reverted, 0));
        frame.path.clear();
        frame.path.extend(line.iter().skip(1).map(|(place, ..)| *place));
        frames.push(frame);
    }
    Ok(TransactionTrace { frames })
}

fn check_tree(stated: &[StatedFrame]) -> Result<(), ShapeError> {
    let mut previous: Option<&[u32]> = None;
    for StatedFrame { frame, .. } in stated {
        let path = frame.path.as_slice();
        if DEPTH_MAX < path.len() {
            return Err(ShapeError::TooDeep(path.len()));
        }
        match (previous, path.split_last()) {
            (None, None) => {}
            (None, Some(_)) => return Err(ShapeError::NoTopCall),
            (Some(before), _) if before == path => return Err(ShapeError::Duplicate(path.to_vec())),
            // In pre-order the caller of a frame is on the line from the top to the frame before it.
            (Some(before), Some((_, caller))) if before.starts_with(caller) => {}
            (Some(_), _) => return Err(ShapeError::Orphan(path.to_vec())),
        }
        previous = Some(path);
    }
    if previous.is_none() {
        Err(ShapeError::NoTopCall)
    } else {
        Ok(())
    }
}

/// Puts frames into pre-order.
pub fn sort(stated: &mut [StatedFrame]) {
    if !stated.is_sorted_by(|a, b| a.frame.path <= b.frame.path) {
        stated.sort_by(|a, b| a.frame.path.cmp(&b.frame.path));
    }
}

/// A frame that says of how many frames lie directly below it something else than there are: some were lost on the way, or
/// the node counts those that it leaves out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame at path {path:?} says that {stated} are directly below it, and there are {found}")]
pub struct Gap {
    /// Its path.
    pub path: Vec<u32>,
    /// Frames directly below it by its own word.
    pub stated: u64,
    /// Those that are there.
    pub found: u64,
}

/// The first such frame of a transaction, whose frames are in pre-order.
#[must_use]
pub fn gap(stated: &[StatedFrame]) -> Option<Gap> {
    // The frames on the line from the top to the frame before, and how many are directly below each so far.
    let mut line: Vec<(&StatedFrame, u64)> = Vec::new();
    let differs = |(of, found): (&StatedFrame, u64)| {
        let stated = of.subtraces.filter(|&stated| stated != found)?;
        let path = of.frame.path.clone();
        Some(Gap { path, stated, found })
    };
    for of in stated {
        while of.frame.path.len() < line.len() {
            if let Some(gap) = line.pop().and_then(differs) {
                return Some(gap);
            }
        }
        if let Some((_, below)) = line.last_mut() {
            *below += 1;
        }
        line.push((of, 0));
    }
    line.into_iter().find_map(differs)
}

/// Applies the rules that a single frame can be judged by.
fn settle(stated: StatedFrame) -> Frame {
    let StatedFrame {
        mut frame, gas_used, ..
    } = stated;
    let precompile = frame.to.as_ref().is_some_and(is_precompile);
    frame.error = frame
        .error
        .as_deref()
        .and_then(|text| error_text(text, precompile));
    if frame.kind == FrameKind::SelfDestruct {
        frame.gas = 0;
        frame.gas_used = 0;
        frame.input = Bytes::new();
        frame.output = Bytes::new();
        return frame;
    }
    frame.gas_used = match (gas_used, &frame.error) {
        (Some(used), _) => used,
        // So it is where code halts. What a revert gave back is told by nobody: this is the most that it used.
        (None, Some(_)) => frame.gas,
        (None, None) => 0,
    };
    if matches!(frame.kind, FrameKind::DelegateCall | FrameKind::StaticCall) {
        frame.value = U256::ZERO;
    }
    if let Some(error) = &frame.error {
        if frame.kind.is_creation() {
            frame.to = None;
        }
        // Only a revert hands data back.
        if error != REVERTED {
            frame.output = Bytes::new();
        }
    }
    frame
}

/// Addresses 1 to 0x11 and 0x100 (EIP-7951).
fn is_precompile(address: &Address) -> bool {
    let (head, tail) = address.split_at(18);
    head.iter().all(|byte| *byte == 0) && matches!(tail, [0, 1..=0x11] | [1, 0])
}

/// A call of a precompile that moves nothing. Whether a fork has made it one by then its gas and its output tell: an account without
/// code is free and gives nothing back. Precompiles that are free give something (BLAKE2F of no rounds, MODEXP of short numbers before
/// Berlin), but for MODEXP before Berlin with a modulus of no bytes: that call is kept.
fn is_quiet_precompile(stated: &StatedFrame) -> bool {
    let frame = &stated.frame;
    if stated.gas_used == Some(0) && frame.output.is_empty() && !says_failed(frame.error.as_deref()) {
        return false;
    }
    let moves_nothing = match frame.kind {
        FrameKind::Call | FrameKind::CallCode => frame.value.is_zero(),
        FrameKind::DelegateCall | FrameKind::StaticCall => true,
        FrameKind::Create | FrameKind::Create2 | FrameKind::SelfDestruct => false,
    };
    moves_nothing && frame.to.as_ref().is_some_and(is_precompile)
}

/// The error of a call that its own code ended.
pub(super) const REVERTED: &str = "reverted";

/// What clients say, in the order in which it is looked for, and what we say. Both are lower case; a
/// text matches that contains all words of the left side.
const ERROR_TEXTS: &[(&[&str], &str)] = &[
    (&["revert"], REVERTED),
    (&["initcode"], "max initcode size exceeded"),
    (&["init code"], "max initcode size exceeded"),
    (&["code size"], "max code size exceeded"),
    (&["codesize"], "max code size exceeded"),
    (&["contract size"], "max code size exceeded"),
    (&["contractsize"], "max code size exceeded"),
    (&["code is too large"], "max code size exceeded"),
    (&["out of gas"], "out of gas"),
    (&["outofgas"], "out of gas"),
    (&["gas uint64 overflow"], "out of gas"),
    (&["oog"], "out of gas"),
    (&["invalid code"], "invalid code"),
    (&["code is invalid"], "invalid code"),
    (&["startingwithef"], "invalid code"),
    (&["invalid opcode"], "invalid opcode"),
    (&["bad instruction"], "invalid opcode"),
    (&["undefined instruction"], "invalid opcode"),
    (&["undefined opcode"], "invalid opcode"),
    (&["opcodenotfound"], "invalid opcode"),
    (&["invalidfeopcode"], "invalid opcode"),
    (&["notactivated"], "invalid opcode"),
    (&["invalid instruction"], "invalid opcode"),
    (&["invalid jump"], "invalid jump destination"),
    (&["bad jump"], "invalid jump destination"),
    (&["invalidjump"], "invalid jump destination"),
    (&["stack", "underflow"], "stack underflow"),
    (&["stack", "overflow"], "stack overflow"),
    (&["stack limit"], "stack overflow"),
    (&["out of stack"], "stack overflow"),
    (&["depth"], Frame::CALL_DEPTH_EXCEEDED),
    (&["calltoodeep"], Frame::CALL_DEPTH_EXCEEDED),
    (&["insufficient"], Frame::INSUFFICIENT_BALANCE),
    (&["not enough balance"], Frame::INSUFFICIENT_BALANCE),
    (&["out of funds"], Frame::INSUFFICIENT_BALANCE),
    (&["outoffunds"], Frame::INSUFFICIENT_BALANCE),
    (&["collision"], "contract address collision"),
    (&["write protection"], "write protection"),
    (&["static context"], "write protection"),
    (&["staticcall"], "write protection"),
    (&["static call"], "write protection"),
    (&["insidestatic"], "write protection"),
    (&["illegal state change"], "write protection"),
    (&["out of bounds"], "return data out of bounds"),
    (&["outofoffset"], "return data out of bounds"),
    (&["access violation"], "return data out of bounds"),
    (&["nonce", "overflow"], "nonce overflow"),
    (&["built-in"], "precompile failed"),
    (&["precompile"], "precompile failed"),
];

/// Whether what a node says of a frame's failure is anything.
#[must_use]
pub fn says_failed(stated: Option<&str>) -> bool {
    stated.is_some_and(|error| !error.trim().is_empty())
}

/// Whether a call may fail so whomever it calls.
fn is_of_any_call(text: &str) -> bool {
    matches!(
        text,
        "out of gas" | Frame::INSUFFICIENT_BALANCE | Frame::CALL_DEPTH_EXCEEDED | REVERTED
    )
}

/// The error text that stands for what a node says; `None` for an empty text.
///
/// A failed precompile has one text unless it ran out of gas or was never entered, for each client words its reasons in its
/// own way. What no rule knows is kept, in lower case and at most 64 characters.
#[must_use]
pub fn error_text(stated: &str, precompile: bool) -> Option<String> {
    let stated = stated.trim().to_lowercase();
    if stated.is_empty() {
        return None;
    }
    let known = ERROR_TEXTS
        .iter()
        .find(|(words, _)| words.iter().all(|word| stated.contains(word)))
        .map(|(_, text)| *text);
    Some(match known {
        Some(text) if !precompile || is_of_any_call(text) => text.to_owned(),
        _ if precompile => "precompile failed".to_owned(),
        _ => stated.chars().take(64).collect(),
    })
}

/// How two traces of the same transaction, one by each method, differ where they should not: the path
/// and the name of the field. Gas and gas used of the top call are not compared.
#[must_use]
pub fn differences(a: &TransactionTrace, b: &TransactionTrace) -> Vec<(Vec<u32>, &'static str)> {
    let of_b: HashMap<&[u32], &Frame> = b
        .frames
        .iter()
        .map(|frame| (frame.path.as_slice(), frame))
        .collect();
    let mut found = Vec::new();
    if a.frames.len() != b.frames.len() {
        found.push((Vec::new(), "frames"));
    }
    for x in &a.frames {
        let Some(y) = of_b.get(x.path.as_slice()) else {
            found.push((x.path.clone(), "path"));
            continue;
        };
        let nested = !x.path.is_empty();
        for (equal, field) in [
            (x.kind == y.kind, "kind"),
            (x.from == y.from, "from"),
            (x.to == y.to, "to"),
            (x.value == y.value, "value"),
            (!nested || x.gas == y.gas, "gas"),
            (!nested || x.gas_used == y.gas_used, "gas_used"),
            (x.input == y.input, "input"),
            (x.output == y.output, "output"),
            (x.error == y.error, "error"),
            (x.reverted == y.reverted, "reverted"),
        ] {
            if !equal {
                found.push((x.path.clone(), field));
            }
        }
    }
    found
}
