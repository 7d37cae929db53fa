//! Hex scalars of the JSON-RPC wire, parsed by hand straight from the response text.
//!
//! Every type here deserializes from a borrowed `&str` (or from a short-lived one where the node
//! escaped characters), so that no text is copied on the way to a value. Quantities may carry leading
//! zeros and may be plain JSON numbers; some clients and some recorded files write both.

use crate::model::{Address, B64, B256, Bloom, Bytes, U256};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// A value that a JSON string or number can state.
pub(super) trait Scalar: Sized {
    /// What a reader of an error message should have found.
    const EXPECTED: &'static str;

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

struct ScalarVisitor<T>(PhantomData<T>);

impl<T: Scalar> Visitor<'_> for ScalarVisitor<T> {
    type Value = Wire<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        T::from_text(text).map(Wire).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        T::from_number(number).map(Wire).map_err(E::custom)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        T::from_bool(value).map(Wire).map_err(E::custom)
    }
}

impl<'de, T: Scalar> Deserialize<'de> for Wire<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor(PhantomData))
    }
}

/// A quantity of 256 bits that may also be a JSON number of any length, as some recorded files have it.
/// Such a number must be read as text, for as a number it would lose digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount(pub(super) U256);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        if text.starts_with('"') {
            return serde_json::from_str::<Wire<U256>>(text)
                .map(|wire| Self(wire.0))
                .map_err(D::Error::custom);
        }
        U256::from_str_radix(text, 10)
            .map(Self)
            .map_err(|_| D::Error::custom(wrong(<U256 as Scalar>::EXPECTED, text)))
    }
}

/// A JSON array whose errors name the place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List<T>(pub(super) Vec<T>);

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        loop {
            match seq.next_element() {
                Ok(Some(item)) => items.push(item),
                Ok(None) => return Ok(List(items)),
                Err(error) => return Err(A::Error::custom(format_args!("[{}]: {error}", items.len()))),
            }
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
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

macro_rules! quantity {
    ($($name:ty = $expected:literal),+ $(,)?) => {$(
        impl Scalar for $name {
            const EXPECTED: &'static str = $expected;

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

    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() || text == "0x" {
            return Ok(Self(None));
        }
        Address::from_text(text).map(|address| Self(Some(address)))
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
        serde_json::from_str::<Wire<T>>(json)
            .map(|wire| wire.0)
            .map_err(|error| error.to_string())
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
        let read = |json| serde_json::from_str::<Amount>(json).map(|amount| amount.0);
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
