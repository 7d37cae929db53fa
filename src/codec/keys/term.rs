//! Terms: what a list of postings is of, and the keys of its chunks and of its open piece.

use super::PostingKind;
use crate::codec::Corrupt;
use crate::model::{Address, B256};

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

    /// Logs that a dense topic at position 1, 2 or 3 and a dense emitter share. A dense topic is named by the ordinal since which it
    /// is dense, which no other topic of its position has. `None` for another position.
    #[must_use]
    pub fn dense_topic_with_emitter((position, since): (usize, u64), emitter: u32) -> Option<Self> {
        let kind = match position {
            1 => PostingKind::Topic1LogAddress,
            2 => PostingKind::Topic2LogAddress,
            3 => PostingKind::Topic3LogAddress,
            _ => return None,
        };
        Some(Self::of_dense(kind, since, emitter.to_be_bytes()))
    }

    /// Logs that a dense topic at position 1, 2 or 3 and a dense signature share; `None` for another position.
    #[must_use]
    pub fn dense_topic_with_signature((position, since): (usize, u64), signature: u32) -> Option<Self> {
        let kind = match position {
            1 => PostingKind::Topic1Topic0,
            2 => PostingKind::Topic2Topic0,
            3 => PostingKind::Topic3Topic0,
            _ => return None,
        };
        Some(Self::of_dense(kind, since, signature.to_be_bytes()))
    }

    /// Logs that two dense topics share, each with its position and since when it is dense; `None` where the positions are not two of 1, 2 and
    /// 3 in this order.
    #[must_use]
    pub fn dense_topics(low: (usize, u64), high: (usize, u64)) -> Option<Self> {
        let kind = match (low.0, high.0) {
            (1, 2) => PostingKind::Topic1Topic2,
            (1, 3) => PostingKind::Topic1Topic3,
            (2, 3) => PostingKind::Topic2Topic3,
            _ => return None,
        };
        Some(Self::of_dense(kind, low.1, high.1.to_be_bytes()))
    }

    fn of_dense<const N: usize>(kind: PostingKind, since: u64, other: [u8; N]) -> Self {
        let mut bytes = [0u8; 32];
        let (head, tail) = bytes.split_at_mut(8);
        head.copy_from_slice(&since.to_be_bytes());
        if let Some(target) = tail.get_mut(..N) {
            target.copy_from_slice(&other);
        }
        Self { kind, bytes }
    }

    /// The position of a topic, for lists of topics.
    #[must_use]
    pub const fn topic_position(&self) -> Option<usize> {
        match self.kind {
            PostingKind::Topic0 => Some(0),
            PostingKind::Topic1 => Some(1),
            PostingKind::Topic2 => Some(2),
            PostingKind::Topic3 => Some(3),
            _ => None,
        }
    }

    /// The id of an emitter or of a signature, for lists of one.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        let is_one = matches!(self.kind, PostingKind::LogAddress | PostingKind::Topic0);
        let id = self.bytes.first_chunk().filter(|_| is_one)?;
        Some(u32::from_be_bytes(*id))
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
    /// | kind u8 | term 0, 4, 8, 12, 16, 20, 24 or 32 bytes |
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
    /// | kind u8 | term 0, 4, 8, 12, 16, 20, 24 or 32 bytes | last ordinal u64, ff..ff while open |
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
        (0usize..PostingKind::ALL.len(), any::<[u8; 32]>()).prop_map(|(kind, bytes)| {
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
}
