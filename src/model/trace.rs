//! Call frames of a transaction, whichever trace method the node offers.

use super::{Address, Bytes, U256};

/// What a frame does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FrameKind {
    /// `CALL`.
    #[default]
    Call,
    /// `DELEGATECALL` (EIP-7).
    DelegateCall,
    /// `STATICCALL` (EIP-214).
    StaticCall,
    /// `CALLCODE`.
    CallCode,
    /// `CREATE`, or a creation by a transaction.
    Create,
    /// `CREATE2` (EIP-1014).
    Create2,
    /// `SELFDESTRUCT`.
    SelfDestruct,
}

impl FrameKind {
    /// All kinds; the position is the stored code.
    pub const ALL: [Self; 7] = [
        Self::Call,
        Self::DelegateCall,
        Self::StaticCall,
        Self::CallCode,
        Self::Create,
        Self::Create2,
        Self::SelfDestruct,
    ];

    /// The text of an internal transaction's `type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::DelegateCall => "delegatecall",
            Self::StaticCall => "staticcall",
            Self::CallCode => "callcode",
            Self::Create => "create",
            Self::Create2 => "create2",
            Self::SelfDestruct => "selfdestruct",
        }
    }

    /// Whether the frame creates a contract.
    #[must_use]
    pub const fn is_creation(self) -> bool {
        matches!(self, Self::Create | Self::Create2)
    }
}

/// One call frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// What it does.
    pub kind: FrameKind,
    /// Place in the call tree: empty for the top call, `[0, 1]` for the second call of its first call.
    pub path: Vec<u32>,
    /// Caller; for a self-destruct the contract that ends.
    pub from: Address,
    /// Callee, created contract (`None` when the creation failed) or beneficiary.
    pub to: Option<Address>,
    /// Value in wei; 0 for delegate and static calls.
    pub value: U256,
    /// Gas given to the frame; 0 for a self-destruct. Of a top call: without the intrinsic gas when the
    /// node offers `trace_block`, with it when it offers `callTracer`; not comparable between the two.
    pub gas: u64,
    /// Gas used; all of `gas` for a failed frame that states none; 0 for a self-destruct.
    pub gas_used: u64,
    /// Call data, or init code of a creation; empty for a self-destruct.
    pub input: Bytes,
    /// Return data, or code of a creation; empty for a self-destruct.
    pub output: Bytes,
    /// Normalised error text (`reverted`, `out of gas`, [`Frame::INSUFFICIENT_BALANCE`], ...), the same for either trace method;
    /// `None` on success.
    pub error: Option<String>,
    /// Whether it or any ancestor failed, so that it moved nothing.
    pub reverted: bool,
}

impl Frame {
    /// The error text of a frame whose caller has less than its value: it is not entered.
    pub const INSUFFICIENT_BALANCE: &'static str = "insufficient balance";
    /// The error text of a frame that lies too deep: it is not entered.
    pub const CALL_DEPTH_EXCEEDED: &'static str = "call depth exceeded";

    /// Whether a creation failed before it cost its creator a nonce. By a word of either text, for frames that came without a node may
    /// say more.
    #[must_use]
    pub fn failed_before_nonce(&self) -> bool {
        let error = self.error.as_deref().unwrap_or_default();
        error.contains("balance") || error.contains("depth")
    }

    /// Whether the frame is in the default set of internal transactions (answers.md section 4): nested, and a
    /// call that carries value, a creation or a self-destruct. Failed ones are in it.
    #[must_use]
    pub fn is_internal_transaction(&self) -> bool {
        !self.path.is_empty()
            && match self.kind {
                FrameKind::Call => !self.value.is_zero(),
                FrameKind::Create | FrameKind::Create2 | FrameKind::SelfDestruct => true,
                FrameKind::DelegateCall | FrameKind::StaticCall | FrameKind::CallCode => false,
            }
    }
}

/// The frames of one transaction, in the order of execution (pre-order); the first is the top call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionTrace {
    /// Frames.
    pub frames: Vec<Frame>,
}

impl TransactionTrace {
    /// Its top call; `None` of a transaction that ran nothing of its own.
    #[must_use]
    pub fn top(&self) -> Option<&Frame> {
        self.frames.first().filter(|frame| frame.path.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_creation_lacks_before_it_costs_a_nonce_is_told_by_its_error() {
        let failed = |error: Option<&str>| {
            let frame = Frame {
                kind: FrameKind::Create,
                error: error.map(str::to_owned),
                ..Frame::default()
            };
            frame.failed_before_nonce()
        };
        for early in [
            Frame::INSUFFICIENT_BALANCE,
            Frame::CALL_DEPTH_EXCEEDED,
            "insufficient balance for transfer",
            "max call depth exceeded",
        ] {
            assert!(failed(Some(early)), "{early}");
        }
        for late in [
            None,
            Some("reverted"),
            Some("out of gas"),
            Some("contract address collision"),
        ] {
            assert!(!failed(late), "{late:?}");
        }
    }
}
