//! Text into types: the few forms that parameters and path segments take.

use alloy_primitives::{Address, B256};

/// Unsigned decimal: ASCII digits only; `None` for a sign, a blank or nothing. What a `u64` does not hold is above every
/// block, time and page as much as the largest that it holds, which is given for it.
#[must_use]
pub fn parse_u64(text: &str) -> Option<u64> {
    // `u64::from_str` takes a leading plus sign, hence the look at every byte.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
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
    // const-hex would take a second prefix.
    if digits.len() != 2 * N || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
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
        assert_eq!(parse_hash(&format!("0x{}", "aB".repeat(31))), None);
        assert_eq!(parse_hash(&format!("0x{}", "ab".repeat(33))), None);
    }
}
