//! Hex scalars of the JSON-RPC wire, parsed by hand straight from the response text.
//!
//! What is written as nodes write it is decoded where it stands; anything else that means the same takes the way by its
//! text. Quantities may carry leading zeros and may be plain JSON numbers; some clients and some recorded files write both.

use crate::model::{Address, B64, B256, Bloom, Bytes, Topics, U256};
use crate::node::reader::{Fault, FromJson, Reader};
use serde_json::value::RawValue;

/// A value that a JSON string or number can state.
pub(super) trait Scalar: Sized {
    /// What a reader of an error message should have found.
    const EXPECTED: &'static str;

    /// Reads a string in its usual dress from what follows its opening quote; also says how many bytes it takes with its
    /// closing one. `None` leaves it to [`Self::from_text`].
    #[inline]
    fn plain(_text: &[u8]) -> Option<(Self, usize)> {
        None
    }

    /// Reads the text of a JSON string.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Reads a JSON number.
    fn from_number(number: u64) -> Result<Self, String> {
        Err(format!("expected {}, found the number {number}", Self::EXPECTED))
    }

    /// Reads a JSON boolean.
    fn from_bool(value: bool) -> Result<Self, String> {
        Err(format!("expected {}, found `{value}`", Self::EXPECTED))
    }
}

/// A [`Scalar`] on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wire<T>(pub(super) T);

impl<'a, T: Scalar> FromJson<'a> for Wire<T> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        if reader.peek() == Some(b'"') {
            if let Some((value, bytes)) = reader.rest().get(1..).and_then(T::plain) {
                reader.pass(1 + bytes);
                return Ok(Self(value));
            }
            let text = reader.string()?;
            return T::from_text(&text).map(Self).map_err(Fault::new);
        }
        if let Some(number) = reader.integer() {
            return T::from_number(number).map(Self).map_err(Fault::new);
        }
        match reader.boolean() {
            Some(value) => T::from_bool(value).map(Self).map_err(Fault::new),
            None => Err(reader.fault(T::EXPECTED)),
        }
    }
}

/// A quantity of 256 bits that may also be a JSON number of any length, as some recorded files have it.
/// Such a number must be read as text, for as a number it would lose digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount(pub(super) U256);

impl<'a> FromJson<'a> for Amount {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        if reader.peek() == Some(b'"') {
            return Wire::read(reader).map(|wire| Self(wire.0));
        }
        let text = reader.by_serde::<&RawValue>()?.get();
        let value = U256::from_str_radix(text, 10).map(Self);
        value.map_err(|_| Fault::new(wrong(<U256 as Scalar>::EXPECTED, text)))
    }
}

/// A JSON array whose errors name the place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<'a, T: FromJson<'a>> FromJson<'a> for List<T> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let mut items = Vec::new();
        reader.array(|reader| {
            let room = reader.room.checked_sub(size_of::<T>());
            reader.room = room.ok_or_else(|| Fault::new("more items than so short a text can be about"))?;
            items.push(T::read(reader)?);
            Ok(())
        })?;
        Ok(Self(items))
    }
}

/// The topics of a log: at most four.
impl<'a> FromJson<'a> for Topics {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let mut topics = Self::default();
        reader.array(|reader| {
            let topic = Wire::<B256>::read(reader)?;
            topics
                .push(topic.0)
                .ok_or_else(|| Fault::new("a log has more than 4 topics"))
        })?;
        Ok(topics)
    }
}

/// At most the first 40 characters of `text`, for an error message.
fn shown(text: &str) -> String {
    if text.chars().nth(40).is_none() {
        return format!("`{text}`");
    }
    let head: String = text.chars().take(40).collect();
    format!("`{head}...` ({} characters)", text.chars().count())
}

fn wrong(expected: &str, text: &str) -> String {
    format!("expected {expected}, found {}", shown(text))
}

/// The digits after `0x`, without leading zeros.
fn digits<'a>(text: &'a str, expected: &str) -> Result<&'a str, String> {
    let digits = text.strip_prefix("0x").ok_or_else(|| wrong(expected, text))?;
    Ok(digits.trim_start_matches('0'))
}

/// More digits than this are decoded all at once: signatures are 64 long, and most others below this.
const FEW_DIGITS: usize = 8;

/// Reads at most 64 hex digits.
fn hex(digits: &str) -> Option<U256> {
    if digits.len() <= FEW_DIGITS {
        let mut value = 0_u32;
        for byte in digits.bytes() {
            value = (value << 4) | char::from(byte).to_digit(16)?;
        }
        return Some(U256::from(value));
    }
    let mut text = [b'0'; 64];
    let start = text.len().checked_sub(digits.len())?;
    text.get_mut(start..)?.copy_from_slice(digits.as_bytes());
    let mut bytes = [0; 32];
    const_hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(U256::from_be_bytes(bytes))
}

/// Reads `0x` and at most 16 hex digits up to a closing quote, and says how many bytes these are.
#[inline]
fn few_digits(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (place, &byte) in text.strip_prefix(b"0x")?.iter().enumerate().take(17) {
        if byte == b'"' {
            return Some((value, place + 3));
        }
        // The 17th byte must be the quote: another digit would push the first one out.
        let digit = char::from(byte).to_digit(16).filter(|_| place < 16)?;
        value = (value << 4) | u64::from(digit);
    }
    None
}

macro_rules! quantity {
    ($($name:ty = $expected:literal),+ $(,)?) => {$(
        impl Scalar for $name {
            const EXPECTED: &'static str = $expected;

            #[inline]
            fn plain(text: &[u8]) -> Option<(Self, usize)> {
                let (value, bytes) = few_digits(text)?;
                Some((value.try_into().ok()?, bytes))
            }

            fn from_text(text: &str) -> Result<Self, String> {
                hex(digits(text, Self::EXPECTED)?)
                    .and_then(|value| Self::try_from(value).ok())
                    .ok_or_else(|| wrong(Self::EXPECTED, text))
            }

            fn from_number(number: u64) -> Result<Self, String> {
                Self::try_from(number).map_err(|_| wrong(Self::EXPECTED, &number.to_string()))
            }
        }
    )+};
}

quantity! {
    u8 = "a quantity of at most 8 bits (`0x...`)",
    u32 = "a quantity of at most 32 bits (`0x...`)",
    u64 = "a quantity of at most 64 bits (`0x...`)",
    u128 = "a quantity of at most 128 bits (`0x...`)",
}

impl Scalar for U256 {
    const EXPECTED: &'static str = "a quantity of at most 256 bits (`0x...`)";

    #[inline]
    fn plain(text: &[u8]) -> Option<(Self, usize)> {
        let (value, bytes) = few_digits(text)?;
        Some((Self::from(value), bytes))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        hex(digits(text, Self::EXPECTED)?).ok_or_else(|| wrong(Self::EXPECTED, text))
    }

    fn from_number(number: u64) -> Result<Self, String> {
        Ok(Self::from(number))
    }
}

/// A `status`: a quantity that is 0 or 1.
impl Scalar for bool {
    const EXPECTED: &'static str = "0 or 1 (`0x1`)";

    fn from_text(text: &str) -> Result<Self, String> {
        match digits(text, Self::EXPECTED)? {
            "" => Ok(false),
            "1" => Ok(true),
            _ => Err(wrong(Self::EXPECTED, text)),
        }
    }

    fn from_number(number: u64) -> Result<Self, String> {
        match number {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(wrong(Self::EXPECTED, &number.to_string())),
        }
    }

    fn from_bool(value: bool) -> Result<Self, String> {
        Ok(value)
    }
}

macro_rules! fixed {
    ($($name:ty = $expected:literal),+ $(,)?) => {$(
        impl Scalar for $name {
            const EXPECTED: &'static str = $expected;

            #[inline]
            fn plain(text: &[u8]) -> Option<(Self, usize)> {
                const DIGITS: usize = 2 * size_of::<$name>();
                let (digits, rest) = text.strip_prefix(b"0x")?.split_at_checked(DIGITS)?;
                let mut value = Self::ZERO;
                const_hex::decode_to_slice(digits, value.as_mut_slice()).ok()?;
                (rest.first() == Some(&b'"')).then_some((value, DIGITS + 3))
            }

            fn from_text(text: &str) -> Result<Self, String> {
                let digits = text.strip_prefix("0x").ok_or_else(|| wrong(Self::EXPECTED, text))?;
                let mut value = Self::ZERO;
                const_hex::decode_to_slice(digits, value.as_mut_slice())
                    .map_err(|_| wrong(Self::EXPECTED, text))?;
                Ok(value)
            }
        }
    )+};
}

fixed! {
    Address = "an address (`0x` and 40 hex digits)",
    B256 = "a word (`0x` and 64 hex digits)",
    B64 = "a nonce (`0x` and 16 hex digits)",
    Bloom = "a bloom filter (`0x` and 512 hex digits)",
}

/// An address that may be said to be absent by an empty text, as old clients do for creations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MaybeAddress(pub(super) Option<Address>);

impl Scalar for MaybeAddress {
    const EXPECTED: &'static str = Address::EXPECTED;

    #[inline]
    fn plain(text: &[u8]) -> Option<(Self, usize)> {
        Address::plain(text).map(|(address, bytes)| (Self(Some(address)), bytes))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() || text == "0x" {
            return Ok(Self(None));
        }
        Address::from_text(text).map(|address| Self(Some(address)))
    }
}

/// A word in the place of which some clients write another value where they have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MaybeWord(pub(super) Option<B256>);

impl Scalar for MaybeWord {
    const EXPECTED: &'static str = B256::EXPECTED;

    #[inline]
    fn plain(text: &[u8]) -> Option<(Self, usize)> {
        B256::plain(text).map(|(word, bytes)| (Self(Some(word)), bytes))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self(B256::from_text(text).ok()))
    }
}

impl Scalar for Bytes {
    const EXPECTED: &'static str = "bytes (`0x` and pairs of hex digits)";

    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::new());
        }
        let digits = text
            .strip_prefix("0x")
            .ok_or_else(|| wrong(Self::EXPECTED, text))?;
        if digits.is_empty() {
            return Ok(Self::new());
        }
        const_hex::decode(digits)
            .map(Self::from)
            .map_err(|_| wrong(Self::EXPECTED, text))
    }
}

/// Any text: names of kinds, error texts.
impl Scalar for String {
    const EXPECTED: &'static str = "a text";

    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<T: Scalar>(json: &str) -> Result<T, String> {
        crate::node::reader::read::<Wire<T>>(json)
            .map(|wire| wire.0)
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn quantities_take_leading_zeros_and_numbers() {
        assert_eq!(read::<u64>("\"0x0010\""), Ok(16));
        assert_eq!(read::<u64>("\"0x\""), Ok(0));
        assert_eq!(read::<u64>("17"), Ok(17));
        assert_eq!(read::<u64>("\"0xffffffffffffffff\""), Ok(u64::MAX));
        assert!(read::<u64>("\"0x10000000000000000\"").is_err());
        assert!(read::<u64>("\"16\"").is_err());
        assert!(read::<u64>("\"0x1g\"").is_err());
        assert!(read::<u64>("-1").is_err());
        assert!(read::<u8>("\"0x100\"").is_err());
        assert_eq!(read::<u64>("\"\\u0030x1\""), Ok(1));
    }

    #[test]
    fn words_of_256_bits_are_read_whole() {
        let text = format!("\"0x{}\"", "f".repeat(64));
        assert_eq!(read::<U256>(&text), Ok(U256::MAX));
        assert_eq!(
            read::<U256>("\"0x100000000000000000000000000000000\""),
            Ok(U256::from(1) << 128)
        );
        assert!(read::<U256>(&format!("\"0x1{}\"", "0".repeat(64))).is_err());
        assert!(read::<U256>(&format!("\"0x{}\"", "\u{e9}".repeat(20))).is_err());
    }

    proptest! {
        #[test]
        fn quantities_of_any_length_are_read_as_a_library_reads_them(
            words in any::<[u64; 4]>(),
            shift in 0_usize..256,
            wrong in (0_usize..64, proptest::char::any()),
            upper in any::<bool>(),
        ) {
            let value = U256::from_limbs(words) >> shift;
            let digits = if upper { format!("{value:X}") } else { format!("{value:x}") };
            let text = format!("\"0x{digits}\"");
            prop_assert_eq!(read::<U256>(&text), Ok(value));
            prop_assert_eq!(read::<u128>(&text).ok(), u128::try_from(value).ok());
            prop_assert_eq!(read::<u64>(&text).ok(), u64::try_from(value).ok());
            prop_assert_eq!(read::<u8>(&text).ok(), u8::try_from(value).ok());
            let (place, wrong) = (wrong.0 % digits.len(), wrong.1);
            let spoilt: String = digits.chars().take(place).chain([wrong]).chain(digits.chars().skip(place + 1)).collect();
            let text = serde_json::to_string(&format!("0x{spoilt}")).unwrap();
            prop_assert_eq!(read::<U256>(&text).ok(), U256::from_str_radix(&spoilt, 16).ok().filter(|_| wrong.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn amounts_are_texts_or_numbers_of_any_length() {
        let read = |json| crate::node::reader::read::<Amount>(json).map(|amount| amount.0);
        assert_eq!(
            read("28254036025557633000001").unwrap().to_string(),
            "28254036025557633000001"
        );
        assert_eq!(read("\"0x0a\"").unwrap(), U256::from(10));
        for odd in ["1.5", "-1", "1e3", "{}", "true", "\"10\""] {
            assert!(read(odd).is_err(), "{odd}");
        }
        assert!(read(&"9".repeat(90)).is_err());
    }

    #[test]
    fn an_error_shows_no_more_than_the_head_of_a_long_text() {
        let error = read::<B256>(&format!("\"0x{}\"", "0".repeat(4000))).unwrap_err();
        assert!(error.len() < 200, "{error}");
        assert!(error.contains("4002 characters"), "{error}");
    }

    #[test]
    fn a_status_is_zero_or_one_in_any_dress() {
        assert_eq!(read::<bool>("\"0x1\""), Ok(true));
        assert_eq!(read::<bool>("\"0x0\""), Ok(false));
        assert_eq!(read::<bool>("1"), Ok(true));
        assert_eq!(read::<bool>("true"), Ok(true));
        assert!(read::<bool>("\"0x2\"").is_err());
    }
}
