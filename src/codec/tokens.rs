//! Keys and values of the token ledger. Amounts stand in keys and values without their leading zeros.

use super::Corrupt;
use super::amount::{put_sized_amount, read_sized_amount};
use super::bytes::{Reader, put_varint};
use crate::model::{Address, TokenKind, U256};

/// A balance or a supply fell below what was taken from it: the ledger counts 0 then.
pub const NEGATIVE: u8 = 1;
/// It emitted transfers of another standard than its first one; of that one the present alone is kept.
pub const MIXED: u8 = 2;
/// A sum passed 2^256 - 1 and stands there.
pub const OVERFLOWN: u8 = 4;
/// An id was moved by an account that did not own it.
pub const STRAY: u8 = 8;
/// Deposits or withdrawals moved balances.
pub const WRAPPED: u8 = 16;
/// The flags that say that the ledger cannot be what the contract says.
pub const DOUBTS: u8 = NEGATIVE | MIXED | OVERFLOWN | STRAY;

/// Beside the code of a kind, which it makes one that is no kind to whom it says nothing: holdings are
/// [unmoved](TokenState::unmoved).
const KEPT: u8 = 0x80;

/// A token as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenState {
    /// The standard of its first transfer.
    pub kind: TokenKind,
    /// Whether what is held of it stands under no kind for good: its first transfer would have moved too much.
    pub unmoved: bool,
    /// What is to be known of its ledger; see the constants.
    pub flags: u8,
    /// Log ordinal of its first transfer.
    pub first_transfer: Option<u64>,
    /// Accounts that hold some of it, the zero address apart.
    pub holders: u64,
    /// Sum of transfers from the zero address and of deposits, less that of withdrawals.
    pub minted: U256,
    /// Sum of transfers to the zero address.
    pub to_zero: U256,
}

impl TokenState {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(48);
        let kept = if self.unmoved { KEPT } else { 0 };
        out.extend_from_slice(&[self.kind as u8 | kept, self.flags]);
        put_varint(&mut out, self.first_transfer.map_or(0, |ordinal| ordinal + 1));
        put_varint(&mut out, self.holders);
        put_supply(&mut out, &self.minted, &self.to_zero);
        out
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes, "token state");
        let code = reader.byte()?;
        let unmoved = code & KEPT != 0;
        // Of no kind there is nowhere to move to.
        let kind = TokenKind::from_code(code & !KEPT)
            .filter(|kind| !unmoved || *kind != TokenKind::Unknown)
            .ok_or(reader.corrupt())?;
        let flags = reader.byte()?;
        let first_transfer = reader.varint()?.checked_sub(1);
        let holders = reader.varint()?;
        let (minted, to_zero) = read_supply(&mut reader)?;
        reader.end()?;
        Ok(Self {
            kind,
            unmoved,
            flags,
            first_transfer,
            holders,
            minted,
            to_zero,
        })
    }

    /// The kind under which what is held of it by its own standard stands.
    #[must_use]
    pub const fn held_under(&self) -> TokenKind {
        if self.unmoved {
            TokenKind::Unknown
        } else {
            self.kind
        }
    }
}

/// Appends what was minted and sent to the zero address, each behind its length.
pub fn put_supply(out: &mut Vec<u8>, minted: &U256, to_zero: &U256) {
    for amount in [minted, to_zero] {
        put_sized_amount(out, amount);
    }
}

/// Reads what [`put_supply`] wrote.
pub fn read_supply(reader: &mut Reader<'_>) -> Result<(U256, U256), Corrupt> {
    Ok((read_sized_amount(reader)?, read_sized_amount(reader)?))
}

fn joined<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut key = [0u8; N];
    let mut at = 0;
    for part in parts {
        if let Some(room) = key.get_mut(at..at + part.len()) {
            room.copy_from_slice(part);
        }
        at += part.len();
    }
    key
}

/// The key of a token's row.
///
/// ```text
/// | token u32 |
/// ```
#[must_use]
pub const fn token(token: u32) -> [u8; 4] {
    token.to_be_bytes()
}

/// The key of a token's supply after a block.
///
/// ```text
/// | token u32 | block u64 |
/// ```
#[must_use]
pub fn supply(token: u32, block: u64) -> [u8; 12] {
    joined(&[&token.to_be_bytes(), &block.to_be_bytes()])
}

/// The key of a holder's balance after a block.
///
/// ```text
/// | token u32 | holder 20 bytes | block u64 |
/// ```
#[must_use]
pub fn balance(token: u32, holder: &Address, block: u64) -> [u8; 32] {
    joined(&[&token.to_be_bytes(), holder.as_slice(), &block.to_be_bytes()])
}

/// The key of what an account holds of a token.
///
/// ```text
/// | holder 20 bytes | kind u8 | token address 20 bytes |
/// ```
#[must_use]
pub fn holding(holder: &Address, kind: TokenKind, token: &Address) -> [u8; 41] {
    joined(&[holder.as_slice(), &[kind as u8], token.as_slice()])
}

/// The token of a key written by [`holding`].
pub fn decode_holding(key: &[u8]) -> Result<Address, Corrupt> {
    match key.split_last_chunk::<20>() {
        Some((head, token)) if head.len() == 21 => Ok(Address::from(*token)),
        _ => Err(Corrupt("holding key")),
    }
}

/// The key that says that what is held of a token is [unmoved](TokenState::unmoved): a holding of the zero address, which has none
/// of its own, by no kind. The value is the token's kind.
#[must_use]
pub fn unmoved(token: &Address) -> [u8; 41] {
    holding(&Address::ZERO, TokenKind::Unknown, token)
}

/// The kind under a key written by [`unmoved`].
pub fn read_unmoved(value: &[u8]) -> Result<TokenKind, Corrupt> {
    let kind = match value {
        [code] => TokenKind::from_code(*code),
        _ => None,
    };
    kind.filter(|kind| *kind != TokenKind::Unknown)
        .ok_or(Corrupt("kind of unmoved holdings"))
}

/// An amount so that larger ones sort first and short ones are short: 32 less its length, and its bytes inverted.
fn put_descending(out: &mut Vec<u8>, amount: &U256) {
    let bytes = amount.to_be_bytes::<32>();
    let kept = bytes.get(32 - amount.byte_len()..).unwrap_or(&[]);
    out.push(32 - kept.len() as u8);
    out.extend(kept.iter().map(|byte| !byte));
}

/// The key of a holder of a token, in the order of T3.
///
/// ```text
/// | token u32 | 32 - length of the amount u8 | amount without leading zeros, inverted | holder 20 bytes |
/// ```
#[must_use]
pub fn holder(token: u32, amount: &U256, holder: &Address) -> Vec<u8> {
    let mut key = Vec::with_capacity(57);
    key.extend_from_slice(&token.to_be_bytes());
    put_descending(&mut key, amount);
    key.extend_from_slice(holder.as_slice());
    key
}

/// The amount and holder of a key written by [`holder`].
pub fn decode_holder(key: &[u8]) -> Result<(U256, Address), Corrupt> {
    const WHAT: Corrupt = Corrupt("holder key");
    let (key, holder) = key.split_last_chunk::<20>().ok_or(WHAT)?;
    let (&zeros, inverted) = key.get(4..).and_then(<[u8]>::split_first).ok_or(WHAT)?;
    if inverted.len() + usize::from(zeros) != 32 {
        return Err(WHAT);
    }
    let mut bytes = [0u8; 32];
    for (byte, inverted) in bytes.iter_mut().skip(usize::from(zeros)).zip(inverted) {
        *byte = !inverted;
    }
    Ok((U256::from_be_bytes(bytes), Address::from(*holder)))
}

/// The bucket that an amount above zero is counted in: the first two bytes of its code.
#[must_use]
pub fn bucket(amount: &U256) -> u16 {
    let len = amount.byte_len().max(1);
    let first = amount.byte(len - 1);
    u16::from_be_bytes([32 - len as u8, !first])
}

/// The key of the number of holders in a bucket.
///
/// ```text
/// | token u32 | first two bytes of the coded amount |
/// ```
#[must_use]
pub fn holder_count(token: u32, bucket: u16) -> [u8; 6] {
    joined(&[&token.to_be_bytes(), &bucket.to_be_bytes()])
}

/// The bucket of a key written by [`holder_count`].
pub fn decode_holder_count(key: &[u8]) -> Result<u16, Corrupt> {
    match key.split_last_chunk::<2>() {
        Some((head, bucket)) if head.len() == 4 => Ok(u16::from_be_bytes(*bucket)),
        _ => Err(Corrupt("holder count key")),
    }
}

/// The key of an id's owner.
///
/// ```text
/// | token u32 | id 32 bytes |
/// ```
#[must_use]
pub fn nft_owner(token: u32, id: &U256) -> [u8; 36] {
    joined(&[&token.to_be_bytes(), &id.to_be_bytes::<32>()])
}

/// The key of an id that an account owns.
///
/// ```text
/// | token u32 | owner 20 bytes | id 32 bytes |
/// ```
#[must_use]
pub fn nft_id(token: u32, owner: &Address, id: &U256) -> [u8; 56] {
    joined(&[&token.to_be_bytes(), owner.as_slice(), &id.to_be_bytes::<32>()])
}

/// The id of a key written by [`nft_id`].
pub fn decode_nft_id(key: &[u8]) -> Result<U256, Corrupt> {
    match key.split_last_chunk::<32>() {
        Some((head, id)) if head.len() == 24 => Ok(U256::from_be_bytes(*id)),
        _ => Err(Corrupt("nft id key")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::amount::amounts;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn holders_sort_largest_first_then_by_address(
            a in (amounts(), any::<[u8; 20]>()), b in (amounts(), any::<[u8; 20]>()), token in any::<u32>(),
        ) {
            let key = |(amount, address): (U256, [u8; 20])| holder(token, &amount, &Address::from(address));
            prop_assert_eq!(key(a).cmp(&key(b)), b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
            prop_assert_eq!(decode_holder(&key(a)).unwrap(), (a.0, Address::from(a.1)));
            if !a.0.is_zero() {
                prop_assert_eq!(&key(a)[4..6], &bucket(&a.0).to_be_bytes());
            }
        }

        #[test]
        fn states_read_back(
            kind in 0u8..4, unmoved in any::<bool>(), flags in any::<u8>(), first in proptest::option::of(0u64..u64::MAX - 1), holders in any::<u64>(),
            minted in amounts(), to_zero in amounts(),
        ) {
            let kind = TokenKind::from_code(kind).unwrap();
            let unmoved = unmoved && kind != TokenKind::Unknown;
            let state = TokenState { kind, unmoved, flags, first_transfer: first, holders, minted, to_zero };
            prop_assert_eq!(TokenState::decode(&state.encode()).unwrap(), state);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (TokenState::decode(&bytes), decode_holder(&bytes));
            let _ = (decode_holding(&bytes), decode_nft_id(&bytes), decode_holder_count(&bytes));
        }
    }

    #[test]
    fn rows_are_these_bytes() {
        let state = TokenState {
            kind: TokenKind::Erc721,
            unmoved: false,
            flags: STRAY,
            first_transfer: Some(299),
            holders: 5,
            minted: U256::from(256),
            to_zero: U256::ZERO,
        };
        assert_eq!(const_hex::encode(state.encode()), "0208ac020502010000");
        let unmoved = TokenState {
            unmoved: true,
            ..state
        };
        assert_eq!(const_hex::encode(unmoved.encode()), "8208ac020502010000");
        assert!(TokenState::decode(&[0x80, 0, 0, 0, 0, 0]).is_err());
        assert_eq!(
            const_hex::encode(holder(1, &U256::from(0x102), &Address::repeat_byte(7))),
            format!("000000011efefd{}", "07".repeat(20))
        );
    }
}
