//! Rows of imported prices.
//!
//! ```text
//! 02 | 0                    | time 8 -> price of the native coin from that time on
//! 02 | 1                    | time 8 -> price of the stable coin
//! 02 | 2 | token address 20 | time 8 -> price of a token
//! ```
//!
//! Time is Unix time in seconds, big-endian. A price is its places after the point in a byte, then its digits as an integer,
//! big-endian without leading zero bytes.

use crate::codec::Corrupt;
use crate::codec::bytes::Reader;
use crate::model::{Asset, Usd};

const PRICE: u8 = 2;

/// The key of an asset's price from a time on.
#[must_use]
pub fn price_key(asset: Asset, time: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(30);
    key.push(PRICE);
    match asset {
        Asset::Native => key.push(0),
        Asset::Stable => key.push(1),
        Asset::Token(token) => {
            key.push(2);
            key.extend_from_slice(token.as_slice());
        }
    }
    key.extend_from_slice(&time.to_be_bytes());
    key
}

/// The time of such a key.
pub fn price_time(key: &[u8]) -> Result<u64, Corrupt> {
    let (_, time) = key.split_last_chunk::<8>().ok_or(Corrupt("time of a price"))?;
    Ok(u64::from_be_bytes(*time))
}

/// A price.
#[must_use]
pub fn encode_price(price: Usd) -> Vec<u8> {
    let digits = price.mantissa().to_be_bytes();
    let zeros = digits.iter().take_while(|&&byte| byte == 0).count();
    let mut out = vec![price.places()];
    out.extend_from_slice(digits.get(zeros..).unwrap_or_default());
    out
}

/// Reads a price.
pub fn decode_price(bytes: &[u8]) -> Result<Usd, Corrupt> {
    let mut reader = Reader::new(bytes, "price");
    let places = reader.byte()?;
    let digits = bytes.get(1..).unwrap_or_default();
    let mut mantissa = [0; 16];
    let from = mantissa.len().checked_sub(digits.len()).ok_or(Corrupt("price"))?;
    mantissa
        .get_mut(from..)
        .unwrap_or_default()
        .copy_from_slice(digits);
    let price = Usd::new(u128::from_be_bytes(mantissa), u32::from(places)).ok_or(Corrupt("price"))?;
    // One form of each value.
    if digits.first() == Some(&0) || price.places() != places {
        return Err(Corrupt("price"));
    }
    Ok(price)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Address;
    use proptest::prelude::*;

    fn asset() -> impl Strategy<Value = Asset> {
        prop_oneof![
            Just(Asset::Native),
            Just(Asset::Stable),
            any::<[u8; 20]>().prop_map(|token| Asset::Token(Address::from(token))),
        ]
    }

    proptest! {
        #[test]
        fn prices_come_back(mantissa in 0u128..10u128.pow(38), places in 0u32..=36) {
            let price = Usd::new(mantissa, places).unwrap();
            prop_assert_eq!(decode_price(&encode_price(price)), Ok(price));
        }

        #[test]
        fn any_bytes_are_read_or_corrupt(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Ok(price) = decode_price(&bytes) {
                prop_assert_eq!(encode_price(price), bytes);
            }
        }

        #[test]
        fn keys_sort_by_asset_then_time(a in (asset(), any::<u64>()), b in (asset(), any::<u64>())) {
            let (x, y) = (price_key(a.0, a.1), price_key(b.0, b.1));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(price_time(&x), Ok(a.1));
        }
    }
}
