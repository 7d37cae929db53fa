//! Kinds of lists.

/// The lists of the store by what their term is; each holds ascending ordinals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PostingKind {
    /// Emitter -> logs.
    LogAddress = 0,
    /// Signature (topic 0) -> logs.
    Topic0 = 1,
    /// Topic 1 -> logs.
    Topic1 = 2,
    /// Topic 2 -> logs.
    Topic2 = 3,
    /// Topic 3 -> logs.
    Topic3 = 4,
    /// (Emitter, signature) -> logs.
    LogAddressTopic0 = 5,
    /// Account -> transactions it sent, received or was created by.
    AccountTransactions = 6,
    /// Account -> internal transactions (default set) by frame ordinal.
    AccountInternal = 7,
    /// Fee recipient -> blocks.
    AccountMined = 8,
    /// Account -> transactions it sent.
    AccountSent = 9,
    /// Account -> the other nested frames, which move nothing, by frame ordinal.
    AccountCalls = 10,
    /// All internal transactions (default set) by frame ordinal.
    Internal = 11,
    /// All other nested frames by frame ordinal.
    Calls = 12,
    /// Account -> ERC-20 transfers it sent or received.
    AccountErc20 = 13,
    /// Account -> ERC-721 transfers it sent or received.
    AccountErc721 = 14,
    /// (Token, account) -> ERC-20 transfers.
    TokenAccountErc20 = 15,
    /// (Token, account) -> ERC-721 transfers.
    TokenAccountErc721 = 16,
    /// Token -> its transfers, of ERC-20 and ERC-721.
    TokenTransfers = 17,
    /// Account -> ERC-1155 transfers, by their own ordinals.
    AccountErc1155 = 18,
    /// (Token, account) -> ERC-1155 transfers, by their own ordinals.
    TokenAccountErc1155 = 19,
    /// Token -> its ERC-1155 transfers, by their own ordinals.
    TokenMultiTransfers = 20,
    /// (Dense topic 1, dense emitter) -> logs.
    Topic1LogAddress = 21,
    /// (Dense topic 2, dense emitter) -> logs.
    Topic2LogAddress = 22,
    /// (Dense topic 3, dense emitter) -> logs.
    Topic3LogAddress = 23,
    /// (Dense topic 1, dense signature) -> logs.
    Topic1Topic0 = 24,
    /// (Dense topic 2, dense signature) -> logs.
    Topic2Topic0 = 25,
    /// (Dense topic 3, dense signature) -> logs.
    Topic3Topic0 = 26,
    /// (Dense topic 1, dense topic 2) -> logs.
    Topic1Topic2 = 27,
    /// (Dense topic 1, dense topic 3) -> logs.
    Topic1Topic3 = 28,
    /// (Dense topic 2, dense topic 3) -> logs.
    Topic2Topic3 = 29,
}

impl PostingKind {
    /// All kinds; the position is the stored code.
    pub const ALL: [Self; 30] = [
        Self::LogAddress,
        Self::Topic0,
        Self::Topic1,
        Self::Topic2,
        Self::Topic3,
        Self::LogAddressTopic0,
        Self::AccountTransactions,
        Self::AccountInternal,
        Self::AccountMined,
        Self::AccountSent,
        Self::AccountCalls,
        Self::Internal,
        Self::Calls,
        Self::AccountErc20,
        Self::AccountErc721,
        Self::TokenAccountErc20,
        Self::TokenAccountErc721,
        Self::TokenTransfers,
        Self::AccountErc1155,
        Self::TokenAccountErc1155,
        Self::TokenMultiTransfers,
        Self::Topic1LogAddress,
        Self::Topic2LogAddress,
        Self::Topic3LogAddress,
        Self::Topic1Topic0,
        Self::Topic2Topic0,
        Self::Topic3Topic0,
        Self::Topic1Topic2,
        Self::Topic1Topic3,
        Self::Topic2Topic3,
    ];

    /// The name used by `quarry inspect` and in docs/SCHEMA.md.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogAddress => "log address",
            Self::Topic0 => "topic 0",
            Self::Topic1 => "topic 1",
            Self::Topic2 => "topic 2",
            Self::Topic3 => "topic 3",
            Self::LogAddressTopic0 => "log address and topic 0",
            Self::AccountTransactions => "account transactions",
            Self::AccountInternal => "account internal transactions",
            Self::AccountMined => "account mined blocks",
            Self::AccountSent => "account sent transactions",
            Self::AccountCalls => "account other nested frames",
            Self::Internal => "internal transactions",
            Self::Calls => "other nested frames",
            Self::AccountErc20 => "account ERC-20 transfers",
            Self::AccountErc721 => "account ERC-721 transfers",
            Self::TokenAccountErc20 => "token and account ERC-20 transfers",
            Self::TokenAccountErc721 => "token and account ERC-721 transfers",
            Self::TokenTransfers => "token transfers",
            Self::AccountErc1155 => "account ERC-1155 transfers",
            Self::TokenAccountErc1155 => "token and account ERC-1155 transfers",
            Self::TokenMultiTransfers => "token ERC-1155 transfers",
            Self::Topic1LogAddress => "dense topic 1 and log address",
            Self::Topic2LogAddress => "dense topic 2 and log address",
            Self::Topic3LogAddress => "dense topic 3 and log address",
            Self::Topic1Topic0 => "dense topics 1 and 0",
            Self::Topic2Topic0 => "dense topics 2 and 0",
            Self::Topic3Topic0 => "dense topics 3 and 0",
            Self::Topic1Topic2 => "dense topics 1 and 2",
            Self::Topic1Topic3 => "dense topics 1 and 3",
            Self::Topic2Topic3 => "dense topics 2 and 3",
        }
    }

    /// Whether these are the logs of a contract or of a topic, of which pairs have lists too.
    #[must_use]
    pub const fn is_paired(self) -> bool {
        matches!(
            self,
            Self::LogAddress | Self::Topic0 | Self::Topic1 | Self::Topic2 | Self::Topic3
        )
    }

    /// The width of the term in bytes.
    #[must_use]
    pub const fn term_len(self) -> usize {
        match self {
            Self::LogAddress | Self::Topic0 | Self::TokenTransfers | Self::TokenMultiTransfers => 4,
            Self::Topic1 | Self::Topic2 | Self::Topic3 => 32,
            Self::LogAddressTopic0 => 8,
            Self::Topic1LogAddress
            | Self::Topic2LogAddress
            | Self::Topic3LogAddress
            | Self::Topic1Topic0
            | Self::Topic2Topic0
            | Self::Topic3Topic0 => 12,
            Self::Topic1Topic2 | Self::Topic1Topic3 | Self::Topic2Topic3 => 16,
            Self::AccountTransactions
            | Self::AccountInternal
            | Self::AccountMined
            | Self::AccountSent
            | Self::AccountCalls
            | Self::AccountErc20
            | Self::AccountErc721
            | Self::AccountErc1155 => 20,
            Self::TokenAccountErc20 | Self::TokenAccountErc721 | Self::TokenAccountErc1155 => 24,
            Self::Internal | Self::Calls => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_positions() {
        for (position, kind) in PostingKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, position);
        }
    }
}
