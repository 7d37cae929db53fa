//! Kinds of requests.

/// Kinds of requests whose usual latency and size differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// Numbers and headers.
    Light,
    /// Blocks with transactions.
    Block,
    /// Receipts of a block.
    Receipts,
    /// Traces of a block.
    Traces,
    /// Calls of contracts.
    Call,
    /// One of a block's receipts.
    Receipt,
}

impl RequestClass {
    /// How many there are.
    pub const COUNT: usize = 6;

    pub(super) const fn is_small(self) -> bool {
        matches!(self, Self::Light | Self::Call)
    }

    /// Whether an answer tells what a bundle weighs. Calls are no part of one, and what they weigh is a contract's choice; receipts
    /// that come one by one weigh together.
    pub(super) const fn weighs(self) -> bool {
        !matches!(self, Self::Call | Self::Receipt)
    }
}
