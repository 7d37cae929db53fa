//! Terms: what a list of postings is of, and the keys of its chunks and of its open piece.

use crate::codec::Corrupt;
use crate::model::{Address, B256};

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
}

impl PostingKind {
    /// All kinds; the position is the stored code.
    pub const ALL: [Self; 21] = [
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
        }
    }

    /// The width of the term in bytes.
    #[must_use]
    pub const fn term_len(self) -> usize {
        match self {
            Self::LogAddress | Self::Topic0 | Self::TokenTransfers | Self::TokenMultiTransfers => 4,
            Self::Topic1 | Self::Topic2 | Self::Topic3 => 32,
            Self::LogAddressTopic0 => 8,
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

/// A term of the postings: its kind and its bytes, padded to the widest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    kind: PostingKind,
    bytes: [u8; 32],
}

/// A term that is no wider than the ids of the store, in a quarter of the memory; ordered as terms are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId {
    kind: PostingKind,
    /// Its bytes as those of a number, zeros behind them.
    word: u64,
}

impl From<TermId> for Term {
    fn from(id: TermId) -> Self {
        Self::new(id.kind, id.word.to_be_bytes())
    }
}

/// Words, and no more of them than the term has: an audit hashes every posting, and hashing bytes of unknown length
/// costs a call.
impl std::hash::Hash for Term {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u8(self.kind as u8);
        let (words, _) = self.bytes.as_chunks::<8>();
        for word in words.iter().take(self.kind.term_len().div_ceil(8)) {
            state.write_u64(u64::from_ne_bytes(*word));
        }
    }
}

impl std::fmt::Debug for Term {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} 0x{}",
            self.kind.name(),
            const_hex::encode(self.term_bytes())
        )
    }
}

impl Term {
    #[inline]
    fn new<const N: usize>(kind: PostingKind, term: [u8; N]) -> Self {
        let mut bytes = [0u8; 32];
        if let Some(target) = bytes.get_mut(..N) {
            target.copy_from_slice(&term);
        }
        Self { kind, bytes }
    }

    /// Logs of an emitter.
    #[inline]
    #[must_use]
    pub fn log_address(emitter: u32) -> Self {
        Self::new(PostingKind::LogAddress, emitter.to_be_bytes())
    }

    /// Logs with a signature.
    #[inline]
    #[must_use]
    pub fn topic0(signature: u32) -> Self {
        Self::new(PostingKind::Topic0, signature.to_be_bytes())
    }

    /// Logs with a topic at position 1, 2 or 3; `None` for another position.
    #[inline]
    #[must_use]
    pub fn topic(position: usize, topic: &B256) -> Option<Self> {
        let kind = match position {
            1 => PostingKind::Topic1,
            2 => PostingKind::Topic2,
            3 => PostingKind::Topic3,
            _ => return None,
        };
        Some(Self::new(kind, topic.0))
    }

    /// Logs of an emitter with a signature.
    #[inline]
    #[must_use]
    pub fn log_address_topic0(emitter: u32, signature: u32) -> Self {
        let both = (u64::from(emitter) << 32) | u64::from(signature);
        Self::new(PostingKind::LogAddressTopic0, both.to_be_bytes())
    }

    /// A list of an account.
    #[inline]
    #[must_use]
    pub fn account(kind: PostingKind, account: &Address) -> Self {
        Self::new(kind, account.into_array())
    }

    /// A list of a token.
    #[inline]
    #[must_use]
    pub fn token(kind: PostingKind, token: u32) -> Self {
        Self::new(kind, token.to_be_bytes())
    }

    /// A list of an account's part in a token.
    #[inline]
    #[must_use]
    pub fn token_account(kind: PostingKind, token: u32, account: &Address) -> Self {
        let mut both = [0u8; 24];
        let (head, tail) = both.split_at_mut(4);
        head.copy_from_slice(&token.to_be_bytes());
        tail.copy_from_slice(account.as_slice());
        Self::new(kind, both)
    }

    /// The one list of a kind that has no term.
    #[inline]
    #[must_use]
    pub fn whole(kind: PostingKind) -> Self {
        Self::new(kind, [])
    }

    /// The kind.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> PostingKind {
        self.kind
    }

    /// The term as an id of the store; `None` where it is wider than ids are.
    #[inline]
    #[must_use]
    pub fn id(&self) -> Option<TermId> {
        let (word, _) = self.bytes.split_first_chunk()?;
        let word = u64::from_be_bytes(*word);
        (self.kind.term_len() <= size_of::<u64>()).then_some(TermId {
            kind: self.kind,
            word,
        })
    }

    /// Zeros before an account where a topic has room for 32 bytes.
    pub const ZEROS: usize = 12;

    /// How many zeros stand before an account here: [`Self::ZEROS`] in a topic that may be one, else none.
    #[inline]
    #[must_use]
    pub fn zeros(&self) -> usize {
        let is_topic = matches!(
            self.kind,
            PostingKind::Topic1 | PostingKind::Topic2 | PostingKind::Topic3
        );
        if is_topic && self.bytes.starts_with(&[0; Self::ZEROS]) {
            Self::ZEROS
        } else {
            0
        }
    }

    /// A term that is some zeros and then `bytes`; `None` where that is not as wide as terms of the kind are.
    #[must_use]
    pub fn after_zeros(kind: PostingKind, zeros: usize, bytes: &[u8]) -> Option<Self> {
        let mut term = [0u8; 32];
        let width = kind.term_len();
        let target = term.get_mut(zeros..width)?;
        (target.len() == bytes.len()).then(|| target.copy_from_slice(bytes))?;
        Some(Self { kind, bytes: term })
    }

    /// The term's own bytes.
    #[inline]
    #[must_use]
    pub fn term_bytes(&self) -> &[u8] {
        self.bytes.get(..self.kind.term_len()).unwrap_or(&[])
    }

    /// Appends the key of the chunk that ends with `last`.
    pub fn write_key(&self, last: u64, out: &mut Vec<u8>) {
        self.write_piece_key(out);
        out.extend_from_slice(&last.to_be_bytes());
    }

    /// Appends the key of the open piece.
    pub fn write_piece_key(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        out.extend_from_slice(self.term_bytes());
    }

    /// The key of the open piece.
    ///
    /// ```text
    /// | kind u8 | term 0, 4, 8, 20, 24 or 32 bytes |
    /// ```
    #[must_use]
    pub fn piece_key(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(33);
        self.write_piece_key(&mut out);
        out
    }

    /// The key of the chunk that ends with `last`.
    ///
    /// ```text
    /// | kind u8 | term 0, 4, 8, 20, 24 or 32 bytes | last ordinal u64, ff..ff while open |
    /// ```
    #[must_use]
    pub fn key(&self, last: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(41);
        self.write_key(last, &mut out);
        out
    }

    /// The term and last ordinal of a chunk's key.
    pub fn decode(key: &[u8]) -> Result<(Self, u64), Corrupt> {
        let (term, last) = key.split_last_chunk::<8>().ok_or(Corrupt("posting key"))?;
        Ok((Self::decode_piece(term)?, u64::from_be_bytes(*last)))
    }

    /// The term of an open piece's key.
    pub fn decode_piece(key: &[u8]) -> Result<Self, Corrupt> {
        const WHAT: Corrupt = Corrupt("posting key");
        let (&code, term) = key.split_first().ok_or(WHAT)?;
        let kind = *PostingKind::ALL.get(usize::from(code)).ok_or(WHAT)?;
        if term.len() != kind.term_len() {
            return Err(WHAT);
        }
        let mut bytes = [0u8; 32];
        bytes.get_mut(..term.len()).ok_or(WHAT)?.copy_from_slice(term);
        Ok(Self { kind, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms() -> impl Strategy<Value = Term> {
        (0usize..21, any::<[u8; 32]>()).prop_map(|(kind, bytes)| {
            let kind = PostingKind::ALL[kind];
            let mut term = Term { kind, bytes };
            term.bytes[kind.term_len()..].fill(0);
            term
        })
    }

    proptest! {
        #[test]
        fn posting_keys_sort_as_their_values(a in terms(), b in terms(), x in any::<u64>(), y in any::<u64>()) {
            prop_assert_eq!((a, x).cmp(&(b, y)), a.key(x).cmp(&b.key(y)));
            prop_assert_eq!(Term::decode(&a.key(x)).unwrap(), (a, x));
            prop_assert_eq!(a.cmp(&b), a.piece_key().cmp(&b.piece_key()));
            prop_assert_eq!(Term::decode_piece(&a.piece_key()).unwrap(), a);
        }
    }

    #[test]
    fn codes_are_positions() {
        for (position, kind) in PostingKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, position);
        }
    }
}
