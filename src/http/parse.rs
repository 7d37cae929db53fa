//! Text into types: the few forms that parameters and path segments take.

use std::fmt;

use alloy_primitives::{Address, B256};

/// Unsigned decimal: ASCII digits only; `None` for a sign, a blank or nothing. What a `u64` does not hold is above every
/// block, time and page as much as the largest that it holds, which is given for it.
#[must_use]
pub fn parse_u64(text: &str) -> Option<u64> {
    // `u64::from_str` takes a leading plus sign, hence the look at every byte.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Unsigned decimal that is said again in the answer: what it counts for, and what was given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal {
    number: u64,
    /// Its digits without leading zeros, where a `u64` does not hold it; their count first, to compare by.
    beyond: Option<(usize, Box<str>)>,
}

impl Decimal {
    /// As [`parse_u64`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = parse_u64(text)?;
        let digits = text.trim_start_matches('0');
        let beyond = number == u64::MAX && digits.parse() != Ok(number);
        Some(Self {
            number,
            beyond: beyond.then(|| (digits.len(), digits.into())),
        })
    }

    /// What it counts for: itself, or the largest `u64`.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Self {
        Self { number, beyond: None }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.beyond {
            Some((_, digits)) => f.write_str(digits),
            None => self.number.fmt(f),
        }
    }
}

/// A JSON-RPC quantity: `0x` and 1 or more hex digits; larger ones as [`parse_u64`] does.
#[must_use]
pub fn parse_quantity(text: &str) -> Option<u64> {
    let digits = strip_prefix(text)?;
    let hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| u64::from_str_radix(digits, 16).unwrap_or(u64::MAX))
}

/// `0x` and 40 hex digits of any case.
#[must_use]
pub fn parse_address(text: &str) -> Option<Address> {
    decode(text).map(Address::new)
}

/// `0x` and 64 hex digits of any case.
#[must_use]
pub fn parse_hash(text: &str) -> Option<B256> {
    decode(text).map(B256::new)
}

fn strip_prefix(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = strip_prefix(text)?;
    // With the digits that are wanted a second prefix, which const-hex would take, leaves too few.
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    const_hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_digits_and_nothing_else() {
        assert_eq!(parse_u64("18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64("18446744073709551616"), Some(u64::MAX));
        assert_eq!(parse_u64(&"9".repeat(500)), Some(u64::MAX));
        assert_eq!(parse_u64("007"), Some(7));
        for text in ["", "+1", "-1", " 1", "1 ", "1.0", "0x1", "1e3", "\u{0661}"] {
            assert_eq!(parse_u64(text), None, "{text:?}");
        }
    }

    #[test]
    fn decimals_are_said_again_as_they_were_given() {
        for (text, said) in [
            ("0", "0"),
            ("000", "0"),
            ("007", "7"),
            ("18446744073709551615", "18446744073709551615"),
            ("018446744073709551615", "18446744073709551615"),
            ("18446744073709551616", "18446744073709551616"),
            ("00099999999999999999999999", "99999999999999999999999"),
        ] {
            let decimal = Decimal::parse(text).unwrap();
            assert_eq!(decimal.to_string(), said);
            assert_eq!(Some(decimal.number()), parse_u64(text));
        }
        assert_eq!(Decimal::parse("+1"), None);
        let ascending = [
            "9",
            "10",
            "18446744073709551615",
            "18446744073709551616",
            "20000000000000000000",
            "100000000000000000000",
        ];
        assert!(
            ascending
                .map(|text| Decimal::parse(text).unwrap())
                .is_sorted_by(|a, b| a < b)
        );
        assert_eq!(Decimal::from(7).to_string(), "7");
    }

    #[test]
    fn quantities_are_hex() {
        assert_eq!(parse_quantity("0x0"), Some(0));
        assert_eq!(parse_quantity("0xFf"), Some(255));
        assert_eq!(parse_quantity("0xffffffffffffffff"), Some(u64::MAX));
        assert_eq!(parse_quantity("0x10000000000000000"), Some(u64::MAX));
        for text in ["", "1", "0x", "0xg", "0x+1", "0x-1", "x1"] {
            assert_eq!(parse_quantity(text), None, "{text:?}");
        }
    }

    #[test]
    fn addresses_and_hashes_have_one_length() {
        let mixed = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2";
        assert_eq!(parse_address(mixed), parse_address(&mixed.to_lowercase()));
        assert!(parse_address(mixed).is_some());
        for text in [
            "",
            "0x",
            "0x00",
            "c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2",
            "0x0x2aaa39b223fe8d0a0e5c4f27ead9083c756cc2",
        ] {
            assert_eq!(parse_address(text), None, "{text:?}");
        }
        assert!(parse_hash(&format!("0x{}", "aB".repeat(32))).is_some());
        for prefix in ["0x", "0X"] {
            assert_eq!(parse_hash(&format!("0x{prefix}{}", "ab".repeat(31))), None);
            assert_eq!(parse_hash(&format!("0x{prefix}{}", "ab".repeat(32))), None);
        }
        // No digit, and characters of two bytes.
        for foreign in ["g", " ", "\u{e9}"] {
            let digits = format!("{foreign}{}", "a".repeat(64 - foreign.len()));
            assert_eq!(parse_hash(&format!("0x{digits}")), None, "{digits}");
        }
        assert_eq!(parse_hash(&format!("0x{}", "aB".repeat(31))), None);
        assert_eq!(parse_hash(&format!("0x{}", "ab".repeat(33))), None);
    }
}
