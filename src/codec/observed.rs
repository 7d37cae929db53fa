//! Keys and values of the side store: what a node told outside of blocks.
//!
//! ```text
//! 00                                          -> format 1, chain id varint, genesis hash 32
//! 01 | token 20                               -> metadata
//! 02 | token 20                               -> verdict; of ee x 20 (EIP-7528) that on native balances
//! 03 | token 20 | holder 20                   -> block varint, balance trimmed
//! 04 | token 20 | !balance 32 | holder 20     -> nothing; largest balance first
//! 05 | holder 20 | token 20                   -> nothing
//! 06 | token 20                               -> holders varint, whole 1, the holder after which to go on 0 or 20
//! 07 | feed 20                                -> decimals (0, or 1 and a byte), aggregators 20 each
//! ```
//!
//! Rows of kind 3 are of tokens that are not exact; 4 and 5 have those of them that are not zero.

use super::Corrupt;
use super::amount::{put_sized_amount, read_sized_amount};
use super::beside::{identity, put_optional_text, read_optional_text, read_some};
use super::bytes::{Reader, put_varint};
use crate::model::{
    Address, B256, BlockId, Difference, FeedFacts, TokenMetadata, TokenVerdict, ToldMetadata, U256,
    ZeroAddress,
};

/// The version of this layout; a side store of another one is made anew.
pub const FORMAT: u8 = 1;

/// The key of the row that says whose side store it is.
pub const IDENTITY: [u8; 1] = [0];

const METADATA: u8 = 1;
const VERDICT: u8 = 2;
const BALANCE: u8 = 3;
const ORDER: u8 = 4;
const HELD: u8 = 5;
const REFRESH: u8 = 6;
const FEED: u8 = 7;

const ADDRESS: usize = 20;
const WORD: usize = 32;

fn key<const N: usize>(kind: u8, parts: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    let mut rest = out.as_mut_slice();
    for part in std::iter::once([kind].as_slice()).chain(parts.iter().copied()) {
        let (head, tail) = rest.split_at_mut(part.len().min(rest.len()));
        head.copy_from_slice(part.get(..head.len()).unwrap_or_default());
        rest = tail;
    }
    out
}

/// The address that a key ends in, behind so many bytes.
fn last_address(key: &[u8], before: usize, what: &'static str) -> Result<Address, Corrupt> {
    let mut reader = Reader::new(key, what);
    reader.take(before)?;
    let address = Address::from(reader.array::<ADDRESS>()?);
    reader.end()?;
    Ok(address)
}

/// The key of a token's metadata.
#[must_use]
pub fn metadata_key(token: &Address) -> [u8; 1 + ADDRESS] {
    key(METADATA, &[token.as_slice()])
}

/// The key of a token's verdict.
#[must_use]
pub fn verdict_key(token: &Address) -> [u8; 1 + ADDRESS] {
    key(VERDICT, &[token.as_slice()])
}

/// What all keys of verdicts begin with.
pub const VERDICTS: [u8; 1] = [VERDICT];

/// Reads the token out of the key of its verdict.
pub fn decode_verdict_key(key: &[u8]) -> Result<Address, Corrupt> {
    last_address(key, 1, "verdict")
}

/// The key of how far a token's holders are refreshed.
#[must_use]
pub fn refresh_key(token: &Address) -> [u8; 1 + ADDRESS] {
    key(REFRESH, &[token.as_slice()])
}

/// The key of what a contract of a price feed is.
#[must_use]
pub fn feed_key(feed: &Address) -> [u8; 1 + ADDRESS] {
    key(FEED, &[feed.as_slice()])
}

/// What a contract of a price feed is.
#[must_use]
pub fn encode_feed(facts: &FeedFacts) -> Vec<u8> {
    let mut out = vec![u8::from(facts.decimals.is_some())];
    out.extend(facts.decimals);
    for aggregator in &facts.aggregators {
        out.extend_from_slice(aggregator.as_slice());
    }
    out
}

/// Reads what a contract of a price feed is.
pub fn decode_feed(bytes: &[u8]) -> Result<FeedFacts, Corrupt> {
    let mut reader = Reader::new(bytes, "price feed");
    let decimals = read_some(&mut reader)?.then(|| reader.byte()).transpose()?;
    let mut aggregators = Vec::new();
    while !reader.is_empty() {
        aggregators.push(Address::from(reader.array::<ADDRESS>()?));
    }
    Ok(FeedFacts {
        decimals,
        aggregators,
    })
}

/// The key of what a holder has.
#[must_use]
pub fn balance_key(token: &Address, holder: &Address) -> [u8; 1 + 2 * ADDRESS] {
    key(BALANCE, &[token.as_slice(), holder.as_slice()])
}

/// What all keys of what a token's holders have begin with.
#[must_use]
pub fn balance_prefix(token: &Address) -> [u8; 1 + ADDRESS] {
    key(BALANCE, &[token.as_slice()])
}

/// Reads the holder out of such a key.
pub fn decode_balance_key(key: &[u8]) -> Result<Address, Corrupt> {
    last_address(key, 1 + ADDRESS, "balance told")
}

/// The key that puts a holder into its place among a token's holders.
#[must_use]
pub fn order_key(token: &Address, balance: U256, holder: &Address) -> [u8; 1 + 2 * ADDRESS + WORD] {
    let complement = (!balance).to_be_bytes::<WORD>();
    key(ORDER, &[token.as_slice(), &complement, holder.as_slice()])
}

/// What all keys of a token's order begin with.
#[must_use]
pub fn order_prefix(token: &Address) -> [u8; 1 + ADDRESS] {
    key(ORDER, &[token.as_slice()])
}

/// Reads the balance and the holder out of a key of a token's order.
pub fn decode_order_key(key: &[u8]) -> Result<(U256, Address), Corrupt> {
    let mut reader = Reader::new(key, "holder in order");
    reader.take(1 + ADDRESS)?;
    let complement = U256::from_be_bytes(reader.array::<WORD>()?);
    let holder = Address::from(reader.array::<ADDRESS>()?);
    reader.end()?;
    Ok((!complement, holder))
}

/// The key of a token that a holder has some of.
#[must_use]
pub fn held_key(holder: &Address, token: &Address) -> [u8; 1 + 2 * ADDRESS] {
    key(HELD, &[holder.as_slice(), token.as_slice()])
}

/// What all keys of a holder's tokens begin with.
#[must_use]
pub fn held_prefix(holder: &Address) -> [u8; 1 + ADDRESS] {
    key(HELD, &[holder.as_slice()])
}

/// Reads the token out of such a key.
pub fn decode_held_key(key: &[u8]) -> Result<Address, Corrupt> {
    last_address(key, 1 + ADDRESS, "token held")
}

/// Whose side store it is.
#[must_use]
pub fn encode_identity(chain_id: u64, genesis: &[u8; 32]) -> Vec<u8> {
    identity(FORMAT, chain_id, genesis)
}

/// What metadata begins with whose block was kept. A name begins with 0 or 1.
const ANCHORED: u8 = 2;

/// Metadata: 2 and the block after which it was told, where that was kept; name, symbol (0, or 1 and a length and UTF-8),
/// decimals (0, or 1 and a byte).
#[must_use]
pub fn encode_metadata(told: &ToldMetadata) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(anchor) = told.anchor {
        out.push(ANCHORED);
        put_block(&mut out, anchor);
    }
    let metadata = &told.metadata;
    put_optional_text(&mut out, metadata.name.as_deref());
    put_optional_text(&mut out, metadata.symbol.as_deref());
    out.push(u8::from(metadata.decimals.is_some()));
    out.extend(metadata.decimals);
    out
}

/// Reads metadata.
pub fn decode_metadata(bytes: &[u8]) -> Result<ToldMetadata, Corrupt> {
    let mut reader = Reader::new(bytes, "token metadata");
    let mut anchor = None;
    if bytes.first() == Some(&ANCHORED) {
        reader.byte()?;
        anchor = Some(read_block(&mut reader)?);
    }
    let metadata = TokenMetadata {
        name: read_optional_text(&mut reader)?,
        symbol: read_optional_text(&mut reader)?,
        decimals: read_some(&mut reader)?.then(|| reader.byte()).transpose()?,
    };
    reader.end()?;
    Ok(ToldMetadata { metadata, anchor })
}

fn put_block(out: &mut Vec<u8>, block: BlockId) {
    put_varint(out, block.number);
    out.extend_from_slice(block.hash.as_slice());
}

fn read_block(reader: &mut Reader<'_>) -> Result<BlockId, Corrupt> {
    Ok(BlockId {
        number: reader.varint()?,
        hash: B256::from(reader.array::<32>()?),
    })
}

/// A verdict: a byte of bits (1 exact, 2 the zero address holds, 4 an anchor, 8 a supply, 16 whether it holds is
/// untold, 32 a difference), then block checked,
/// anchor, values compared, reason, supply, difference: its block, the holder (0, or 1 and the address), trials.
#[must_use]
pub fn encode_verdict(verdict: &TokenVerdict) -> Vec<u8> {
    let bits = [
        verdict.exact,
        verdict.zero_address == ZeroAddress::Holds,
        verdict.anchor.is_some(),
        verdict.supply.is_some(),
        verdict.zero_address == ZeroAddress::Untold,
        verdict.differed.is_some(),
    ];
    let bits = bits
        .iter()
        .enumerate()
        .fold(0, |bits, (at, &set)| bits | u8::from(set) << at);
    let mut out = vec![bits];
    put_block(&mut out, verdict.checked);
    if let Some(anchor) = verdict.anchor {
        put_block(&mut out, anchor);
    }
    put_varint(&mut out, verdict.compared);
    put_optional_text(&mut out, Some(&verdict.reason));
    if let Some(supply) = verdict.supply {
        put_sized_amount(&mut out, &supply);
    }
    if let Some(differed) = &verdict.differed {
        put_block(&mut out, differed.at);
        out.push(u8::from(differed.holder.is_some()));
        out.extend(differed.holder.iter().flatten());
        put_varint(&mut out, differed.trials.into());
    }
    out
}

fn read_difference(reader: &mut Reader<'_>) -> Result<Difference, Corrupt> {
    Ok(Difference {
        at: read_block(reader)?,
        holder: read_some(reader)?
            .then(|| reader.array::<ADDRESS>().map(Address::from))
            .transpose()?,
        trials: reader.varint_u32()?,
    })
}

/// Reads a verdict.
pub fn decode_verdict(bytes: &[u8]) -> Result<TokenVerdict, Corrupt> {
    let mut reader = Reader::new(bytes, "verdict");
    let bits = reader.byte()?;
    if bits > 63 {
        return Err(reader.corrupt());
    }
    let has = |bit: u8| bits & bit != 0;
    let verdict = TokenVerdict {
        exact: has(1),
        zero_address: match (has(2), has(16)) {
            (true, _) => ZeroAddress::Holds,
            (false, true) => ZeroAddress::Untold,
            (false, false) => ZeroAddress::Burns,
        },
        checked: read_block(&mut reader)?,
        anchor: has(4).then(|| read_block(&mut reader)).transpose()?,
        compared: reader.varint()?,
        reason: read_optional_text(&mut reader)?.unwrap_or_default(),
        supply: has(8).then(|| read_sized_amount(&mut reader)).transpose()?,
        differed: has(32).then(|| read_difference(&mut reader)).transpose()?,
    };
    reader.end()?;
    Ok(verdict)
}

/// A balance and the block after which it was asked for.
#[must_use]
pub fn encode_balance(balance: U256, block: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, block);
    put_sized_amount(&mut out, &balance);
    out
}

/// Reads a balance and its block.
pub fn decode_balance(bytes: &[u8]) -> Result<(U256, u64), Corrupt> {
    let mut reader = Reader::new(bytes, "balance told");
    let block = reader.varint()?;
    let balance = read_sized_amount(&mut reader)?;
    reader.end()?;
    Ok((balance, block))
}

/// How far a token's holders are refreshed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Holders that have some.
    pub holders: u64,
    /// Whether every holder was asked for at least once.
    pub whole: bool,
    /// The holder after which the others are to be asked for.
    pub after: Option<Address>,
}

impl Refreshed {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.holders);
        out.push(u8::from(self.whole));
        out.extend_from_slice(self.after.as_ref().map_or(&[], |after| after.as_slice()));
        out
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes, "refreshed holders");
        let (holders, whole) = (reader.varint()?, read_some(&mut reader)?);
        let after = (!reader.is_empty())
            .then(|| reader.array::<ADDRESS>())
            .transpose()?;
        reader.end()?;
        Ok(Self {
            holders,
            whole,
            after: after.map(Address::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_every_cut_is_corrupt() {
        let words = TokenMetadata {
            name: Some("caf\u{e9}".to_owned()),
            symbol: None,
            decimals: Some(18),
        };
        let block = |number| BlockId {
            number,
            hash: B256::repeat_byte(7),
        };
        let verdict = TokenVerdict {
            exact: false,
            zero_address: ZeroAddress::Holds,
            checked: block(300),
            anchor: Some(block(2)),
            compared: 900,
            reason: "supply".to_owned(),
            supply: Some(U256::MAX),
            differed: Some(Difference {
                at: block(299),
                holder: Some(Address::repeat_byte(4)),
                trials: 200,
            }),
        };
        let refreshed = Refreshed {
            holders: 3,
            whole: true,
            after: Some(Address::repeat_byte(1)),
        };
        let metadata = ToldMetadata {
            metadata: words.clone(),
            anchor: Some(block(300)),
        };
        for told in [
            metadata.clone(),
            words.into(),
            TokenMetadata::default().into(),
            ToldMetadata {
                metadata: TokenMetadata::default(),
                anchor: Some(block(0)),
            },
        ] {
            assert_eq!(decode_metadata(&encode_metadata(&told)), Ok(told));
        }
        // As rows were written before blocks were kept.
        let before = decode_metadata(&[1, 1, b'a', 0, 1, 6]).unwrap();
        assert_eq!((before.anchor, before.metadata.decimals), (None, Some(6)));
        assert_eq!(decode_verdict(&encode_verdict(&verdict)), Ok(verdict.clone()));
        let supply = TokenVerdict {
            differed: Some(Difference {
                at: block(1),
                holder: None,
                trials: 0,
            }),
            ..verdict.clone()
        };
        assert_eq!(decode_verdict(&encode_verdict(&supply)), Ok(supply));
        let plain = TokenVerdict {
            differed: None,
            ..verdict.clone()
        };
        assert_eq!(decode_verdict(&encode_verdict(&plain)), Ok(plain));
        assert_eq!(Refreshed::decode(&refreshed.encode()), Ok(refreshed));
        assert_eq!(
            decode_balance(&encode_balance(U256::ZERO, 9)),
            Ok((U256::ZERO, 9))
        );
        let (metadata, verdict) = (encode_metadata(&metadata), encode_verdict(&verdict));
        for end in 0..metadata.len() {
            assert!(decode_metadata(&metadata[..end]).is_err());
        }
        for end in 0..verdict.len() {
            assert!(decode_verdict(&verdict[..end]).is_err());
        }
        for facts in [
            FeedFacts::default(),
            FeedFacts {
                decimals: Some(8),
                aggregators: vec![Address::repeat_byte(1), Address::repeat_byte(2)],
            },
        ] {
            let bytes = encode_feed(&facts);
            assert_eq!(decode_feed(&bytes), Ok(facts));
            assert!(decode_feed(&[bytes.as_slice(), &[0]].concat()).is_err());
        }
        assert!(decode_feed(&[]).is_err() && decode_feed(&[1]).is_err() && decode_feed(&[2]).is_err());
        assert!(decode_balance(&[1, 33]).is_err());
        assert_eq!(encode_balance(U256::from(258), 9), [9, 2, 1, 2]);
        assert!(decode_balance(&[9, 3, 0, 1, 2]).is_err());
    }

    #[test]
    fn holders_sort_by_amount_then_address() {
        let token = Address::repeat_byte(9);
        let holders = [
            (U256::MAX, Address::repeat_byte(5)),
            (U256::from(7), Address::repeat_byte(1)),
            (U256::from(7), Address::repeat_byte(2)),
            (U256::from(1), Address::ZERO),
        ];
        let keys = holders.map(|(amount, holder)| order_key(&token, amount, &holder));
        assert!(keys.is_sorted());
        for (key, holder) in keys.iter().zip(holders) {
            assert!(key.starts_with(&order_prefix(&token)));
            assert_eq!(decode_order_key(key), Ok(holder));
        }
        let key = held_key(&Address::repeat_byte(3), &token);
        assert!(key.starts_with(&held_prefix(&Address::repeat_byte(3))));
        assert_eq!(decode_held_key(&key), Ok(token));
    }
}
