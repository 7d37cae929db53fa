//! Primitives: each appends one JSON value (or a piece of one) to a buffer that the caller reuses.

use crate::model::U256;
use uuid::Uuid;

/// Hex is made in pieces of this many bytes on the stack, so that short values cost no zero-filling.
const PIECE: usize = 64;

/// Appends `null`.
#[inline]
pub fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"null");
}

/// Appends `true` or `false`.
#[inline]
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true".as_slice() } else { b"false" });
}

/// Appends a JSON integer.
///
/// Digits are made eight at a time in one register and appended as a piece of fixed length that is then cut:
/// numbers of a row are short, and a copy of unknown length costs more than the digits.
#[inline]
pub fn integer(out: &mut Vec<u8>, value: u64) {
    if value < EIGHT_DIGITS {
        let (text, len) = leading_digits(value);
        let end = out.len() + len;
        out.extend_from_slice(&text);
        out.truncate(end);
    } else {
        long_integer(out, value);
    }
}

pub(super) const EIGHT_DIGITS: u64 = 100_000_000;

#[inline(never)]
fn long_integer(out: &mut Vec<u8>, value: u64) {
    let (first, rest) = (value / EIGHT_DIGITS, value % EIGHT_DIGITS);
    integer(out, first);
    out.extend_from_slice(&eight_digits_text(rest));
}

/// Eight times `0`.
const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// A number below 10^8 without leading zeros, and how long it is.
#[inline(always)]
pub(super) const fn leading_digits(value: u64) -> ([u8; 8], usize) {
    let digits = eight_digits(value);
    let zeros = digits.trailing_zeros() / 8;
    let zeros = if zeros > 7 { 7 } else { zeros };
    let text = (digits | ASCII_ZEROS) >> (8 * zeros);
    (text.to_le_bytes(), 8 - zeros as usize)
}

/// A number below 10^8 with its leading zeros.
#[inline(always)]
pub(super) const fn eight_digits_text(value: u64) -> [u8; 8] {
    (eight_digits(value) | ASCII_ZEROS).to_le_bytes()
}

/// The eight digits of a number below 10^8, one in each byte, the first digit in the lowest one.
///
/// Divides two halves by 100, then four quarters by 10, all at once; the multipliers are exact reciprocals in
/// their range.
#[inline]
const fn eight_digits(value: u64) -> u64 {
    let halves = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let quarters = hundreds + ((halves - 100 * hundreds) << 16);
    let tens = ((quarters * 103) >> 10) & 0x000f_000f_000f_000f;
    tens + ((quarters - 10 * tens) << 8)
}

/// Appends decimal text: `"123"`.
#[inline]
pub fn decimal(out: &mut Vec<u8>, value: u64) {
    out.push(b'"');
    integer(out, value);
    out.push(b'"');
}

/// Appends decimal text of an amount: `"1000000000000000000"`.
pub fn decimal_u256(out: &mut Vec<u8>, value: &U256) {
    /// 10^19, the greatest power of ten below 2^64.
    const CHUNK: u64 = 10_000_000_000_000_000_000;
    const CHUNK_DIGITS: usize = 19;
    if let Ok(small) = u128::try_from(*value) {
        return quoted(out, itoa::Buffer::new().format(small).as_bytes());
    }
    // Chunks of 19 digits, the lowest first; a U256 has at most 78 digits, so five chunks.
    let mut chunks = [0_u64; 5];
    let mut used = 0;
    let mut rest = *value;
    for chunk in &mut chunks {
        let (quotient, remainder) = rest.div_rem(U256::from(CHUNK));
        *chunk = remainder.as_limbs()[0];
        used += 1;
        rest = quotient;
        if rest.is_zero() {
            break;
        }
    }
    out.push(b'"');
    for (place, chunk) in chunks.iter().take(used).rev().enumerate() {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(*chunk);
        if place > 0 {
            out.resize(out.len() + CHUNK_DIGITS - digits.len(), b'0');
        }
        out.extend_from_slice(digits.as_bytes());
    }
    out.push(b'"');
}

/// Appends a JSON string, escaping quotes, backslashes and control characters.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escaped(out, text);
    out.push(b'"');
}

/// Appends the inside of a JSON string: `text` with its escapes, without quotes.
pub fn escaped(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    let mut start = 0;
    for (place, &byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            0..=0x1f => b'u',
            _ => continue,
        };
        out.extend_from_slice(&bytes[start..place]);
        start = place + 1;
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(b"00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    out.extend_from_slice(&bytes[start..]);
}

/// Appends bytes as hex text: `"0x00ff"`.
#[inline]
pub fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"\"0x");
    hex_digits(out, bytes);
    out.push(b'"');
}

/// Appends bytes as hex text, or `null`.
#[inline]
pub fn hex_or_null(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => hex(out, bytes),
        None => null(out),
    }
}

/// Appends the lower-case hex digits of `bytes`, without prefix or quotes.
#[inline]
pub fn hex_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() <= PIECE {
        let mut digits = [0_u8; 2 * PIECE];
        let digits = &mut digits[..2 * bytes.len()];
        encode(bytes, digits);
        out.extend_from_slice(digits);
    } else {
        let start = out.len();
        out.resize(start + 2 * bytes.len(), 0);
        encode(bytes, &mut out[start..]);
    }
}

/// The hex digits of `bytes` into `digits`, which is twice as long.
#[inline]
fn encode(bytes: &[u8], digits: &mut [u8]) {
    let result = const_hex::encode_to_slice(bytes, digits);
    debug_assert!(result.is_ok(), "room for the digits is twice the bytes");
}

/// The hex digits of 32 bytes.
#[inline(always)]
pub(super) fn hex_word(bytes: &[u8; 32]) -> [u8; 64] {
    let mut digits = [0; 64];
    encode(bytes, &mut digits);
    digits
}

/// Appends a JSON-RPC quantity of up to 128 bits: `"0x1f"`, zero as `"0x0"`.
pub fn quantity(out: &mut Vec<u8>, value: impl Into<u128>) {
    quantity_bytes(out, &value.into().to_be_bytes());
}

/// Appends a JSON-RPC quantity of 256 bits.
pub fn quantity_u256(out: &mut Vec<u8>, value: &U256) {
    quantity_bytes(out, &value.to_be_bytes::<32>());
}

fn quantity_bytes<const N: usize>(out: &mut Vec<u8>, big_endian: &[u8; N]) {
    let first = big_endian.iter().position(|&byte| byte != 0).unwrap_or(N - 1);
    let significant = &big_endian[first..];
    let mut digits = [0_u8; 2 * PIECE];
    let digits = &mut digits[..2 * significant.len()];
    encode(significant, digits);
    out.extend_from_slice(b"\"0x");
    out.extend_from_slice(digits.strip_prefix(b"0").unwrap_or(digits));
    out.push(b'"');
}

/// Appends a UUID as text.
pub fn uuid(out: &mut Vec<u8>, id: Uuid) {
    let mut text = Uuid::encode_buffer();
    quoted(out, id.hyphenated().encode_lower(&mut text).as_bytes());
}

/// Appends a JSON object of fields that a node gave and we do not know (`extra` of the model) to an object
/// that is being written and has a field already; text that is no object is left out.
pub fn extra_fields(out: &mut Vec<u8>, extra: Option<&str>) {
    let inside = extra
        .and_then(|text| text.trim().strip_prefix('{')?.strip_suffix('}'))
        .map(str::trim)
        .filter(|inside| !inside.is_empty());
    if let Some(inside) = inside {
        out.push(b',');
        out.extend_from_slice(inside.as_bytes());
    }
}

#[inline]
fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quantities_have_no_leading_zeros() {
        assert_eq!(written(|out| quantity(out, 0_u64)), "\"0x0\"");
        assert_eq!(written(|out| quantity(out, 31_u64)), "\"0x1f\"");
        assert_eq!(written(|out| quantity(out, 0x100_u64)), "\"0x100\"");
        assert_eq!(written(|out| quantity_u256(out, &U256::ZERO)), "\"0x0\"");
    }

    #[test]
    fn extra_fields_are_joined_to_the_object() {
        assert_eq!(written(|out| extra_fields(out, Some(" {\"a\":1} "))), ",\"a\":1");
        for nothing in [None, Some("{}"), Some("{ }"), Some("[1]"), Some("")] {
            assert_eq!(written(|out| extra_fields(out, nothing)), "");
        }
    }

    proptest! {
        #[test]
        fn strings_read_back(text in any::<String>()) {
            let json = written(|out| string(out, &text));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn control_characters_read_back(text in "[\\x00-\\x22\\\\]*") {
            let json = written(|out| string(out, &text));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn hex_is_the_reference_hex(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let json = written(|out| hex(out, &bytes));
            prop_assert_eq!(json, format!("\"{}\"", const_hex::encode_prefixed(&bytes)));
        }

        #[test]
        fn numbers_are_the_reference_numbers(limbs in any::<[u64; 4]>(), shift in 0_usize..256) {
            let value = U256::from_limbs(limbs) >> shift;
            prop_assert_eq!(written(|out| decimal_u256(out, &value)), format!("\"{value}\""));
            prop_assert_eq!(written(|out| quantity_u256(out, &value)), format!("\"{value:#x}\""));
            let low = limbs[0] >> (shift % 64);
            prop_assert_eq!(written(|out| decimal(out, low)), format!("\"{low}\""));
            prop_assert_eq!(written(|out| integer(out, low)), format!("{low}"));
            prop_assert_eq!(written(|out| quantity(out, low)), format!("\"{low:#x}\""));
        }
    }

    #[test]
    fn integers_keep_their_zeros() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        for value in (0..=20_000)
            .chain(powers.flat_map(|one| [one - 1, one, one + 1]))
            .chain([u64::MAX])
        {
            assert_eq!(written(|out| integer(out, value)), value.to_string());
        }
    }

    #[test]
    fn decimal_chunks_keep_their_zeros() {
        for power in 0..=77_usize {
            let value = U256::from(10).pow(U256::from(power));
            assert_eq!(written(|out| decimal_u256(out, &value)), format!("\"{value}\""));
        }
        assert_eq!(
            written(|out| decimal_u256(out, &U256::MAX)),
            format!("\"{}\"", U256::MAX)
        );
    }
}
