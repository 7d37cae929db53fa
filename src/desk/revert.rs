//! Why a call reverted, in words.
//!
//! Revert data is whatever a contract hands back: it may lie about its offsets, be no text at all, or be
//! megabytes long. Everything here is bounded, and what cannot be read is shown in hex.

use std::fmt::Write as _;

use super::custom_error;
use crate::model::{CustomError, U256};

/// Longest reason, characters.
const TEXT_MAX: usize = 1024;
/// Longest part of revert data that is shown in hex, bytes.
const BYTES_MAX: usize = 256;

/// `Error(string)`: what `revert("text")` and `require` hand back.
const ERROR: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];
/// `Panic(uint256)`: what code that the compiler inserts hands back.
const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71];

/// Panic codes and their meaning (Solidity documentation, "Panic via assert and Error via require").
const PANICS: [(u64, &str); 10] = [
    (0x00, "panic inserted by the compiler"),
    (0x01, "assertion failed"),
    (0x11, "arithmetic overflow or underflow"),
    (0x12, "division or modulo by zero"),
    (0x21, "conversion of an out-of-range value to an enum"),
    (0x22, "incorrectly encoded storage byte array"),
    (0x31, "pop on an empty array"),
    (0x32, "array index out of bounds"),
    (0x41, "too much memory allocated"),
    (0x51, "call of an uninitialized function"),
];

/// What a failed transaction's answer says: the trace's error, and what the revert data says.
/// `known` is what an ABI says of the custom error that it begins with.
pub(crate) fn describe(error: &str, output: &[u8], known: Option<&CustomError>) -> String {
    // A failed transaction is never without a word.
    let error = if error.is_empty() { "failed" } else { error };
    match known
        .and_then(|known| custom_error::render(known, output.get(4..)?))
        .or_else(|| reason(output))
    {
        Some(reason) => format!("{error}: {reason}"),
        None => error.to_owned(),
    }
}

/// What revert data begins with where it is a custom error.
pub(crate) fn custom_selector(output: &[u8]) -> Option<[u8; 4]> {
    let selector = *output.first_chunk::<4>()?;
    (selector != ERROR && selector != PANIC).then_some(selector)
}

/// What revert data says; `None` for none.
fn reason(output: &[u8]) -> Option<String> {
    if output.is_empty() {
        return None;
    }
    let Some((selector, arguments)) = output.split_first_chunk::<4>() else {
        return Some(hex(output));
    };
    let known = match *selector {
        ERROR => error_text(arguments),
        PANIC => panic_text(arguments),
        _ => None,
    };
    Some(known.unwrap_or_else(|| {
        let mut text = format!("custom error {}", hex(selector));
        if !arguments.is_empty() {
            let _ = write!(text, " with data {}", hex(arguments));
        }
        text
    }))
}

/// The text of `Error(string)`; `None` where the arguments do not hold one.
fn error_text(arguments: &[u8]) -> Option<String> {
    let text = arguments.get(number(arguments)?..)?;
    let length = number(text)?;
    let text = text.get(32..)?.get(..length)?;
    // Four bytes are the most that a character takes, and the bytes after them need not be looked at.
    let text = text.get(..4 * (TEXT_MAX + 1)).unwrap_or(text);
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(TEXT_MAX).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    // An empty text is `revert("")`: there is no more to say than that it reverted.
    Some(if shown.is_empty() {
        "\"\"".to_owned()
    } else {
        shown
    })
}

fn panic_text(arguments: &[u8]) -> Option<String> {
    let code = word(arguments)?;
    let meaning = PANICS
        .iter()
        .find(|(known, _)| U256::from(*known) == code)
        .map(|(_, meaning)| *meaning);
    // Two digits, as the documentation writes them.
    let code = format!("panic {code:#04x}");
    Some(match meaning {
        Some(meaning) => format!("{code} ({meaning})"),
        None => code,
    })
}

fn word(bytes: &[u8]) -> Option<U256> {
    bytes.first_chunk::<32>().map(|word| U256::from_be_bytes(*word))
}

/// The word at the start of `bytes`, where it fits a place in memory.
fn number(bytes: &[u8]) -> Option<usize> {
    usize::try_from(word(bytes)?).ok()
}

fn hex(bytes: &[u8]) -> String {
    match bytes.get(..BYTES_MAX) {
        Some(shown) if shown.len() < bytes.len() => {
            format!("{}... ({} bytes)", const_hex::encode_prefixed(shown), bytes.len())
        }
        _ => const_hex::encode_prefixed(bytes),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(selector: [u8; 4], words: &[u64], tail: &[u8]) -> Vec<u8> {
        let mut bytes = selector.to_vec();
        for &word in words {
            bytes.extend_from_slice(&U256::from(word).to_be_bytes::<32>());
        }
        bytes.extend_from_slice(tail);
        bytes
    }

    /// As a compiler encodes it, padding included.
    fn error(text: &[u8]) -> Vec<u8> {
        let mut bytes = data(ERROR, &[32, text.len() as u64], text);
        bytes.resize(bytes.len().next_multiple_of(32) + 4, 0);
        bytes
    }

    #[test]
    fn reasons_are_told() {
        let told = |output: &[u8]| describe("reverted", output, None);
        assert_eq!(describe("out of gas", &[], None), "out of gas");
        assert_eq!(describe("", &[], None), "failed");
        assert_eq!(told(&[]), "reverted");
        assert_eq!(told(&error(b"no funds")), "reverted: no funds");
        assert_eq!(told(&error("gr\u{fc}n".as_bytes())), "reverted: gr\u{fc}n");
        assert_eq!(told(&error(b"")), "reverted: \"\"");
        assert_eq!(
            told(&data(PANIC, &[0x11], &[])),
            "reverted: panic 0x11 (arithmetic overflow or underflow)"
        );
        assert_eq!(
            told(&data(PANIC, &[1], &[])),
            "reverted: panic 0x01 (assertion failed)"
        );
        assert_eq!(told(&data(PANIC, &[0x99], &[])), "reverted: panic 0x99");
        assert_eq!(told(&[0xab, 0xcd]), "reverted: 0xabcd");
        assert_eq!(
            told(&[0x12, 0x34, 0x56, 0x78]),
            "reverted: custom error 0x12345678"
        );
        assert_eq!(
            told(&data([1, 2, 3, 4], &[], &[0xff; 3])),
            "reverted: custom error 0x01020304 with data 0xffffff"
        );
    }

    #[test]
    fn what_lies_is_shown_as_it_is() {
        // A length beyond the data, offsets beyond everything, a panic without a code.
        for hostile in [
            data(ERROR, &[32, 100], b"short"),
            data(ERROR, &[u64::MAX, 5], b"short"),
            data(ERROR, &[32, u64::MAX], b"short"),
            data(ERROR, &[], &[0xff; 64]),
            data(ERROR, &[32], &[]),
            data(PANIC, &[], &[0; 31]),
            ERROR.to_vec(),
        ] {
            let told = reason(&hostile).unwrap();
            let selector = const_hex::encode_prefixed(&hostile[..4]);
            assert!(told.starts_with(&format!("custom error {selector}")), "{told}");
        }
        assert_eq!(reason(&error(&[0xff, b'a'])).unwrap(), "\u{fffd}a");
        // An offset that points elsewhere is followed while it stays inside.
        let moved = data(ERROR, &[64, 7, 2], b"ok");
        assert_eq!(reason(&moved).unwrap(), "ok");
    }

    #[test]
    fn what_is_long_is_cut() {
        let long = "\u{1f600}".repeat(3_000_000 / 4);
        let told = reason(&error(long.as_bytes())).unwrap();
        assert_eq!(told.chars().count(), TEXT_MAX + 3);
        let whole = "x".repeat(TEXT_MAX);
        assert_eq!(reason(&error(whole.as_bytes())).unwrap(), whole);
        let told = reason(&vec![7; 1 << 20]).unwrap();
        assert!(told.len() < 3 * BYTES_MAX, "{}", told.len());
        assert!(told.ends_with("... (1048572 bytes)"), "{told}");
    }

    proptest! {
        #[test]
        fn arbitrary_data_is_bounded(
            selector in prop_oneof![Just(ERROR), Just(PANIC), any::<[u8; 4]>()],
            words in proptest::collection::vec(prop_oneof![0u64..200, any::<u64>()], 0..4),
            tail in proptest::collection::vec(any::<u8>(), 0..6000),
            cut in 0usize..7000,
        ) {
            let mut output = data(selector, &words, &tail);
            output.truncate(cut);
            let told = describe("reverted", &output, None);
            prop_assert!(told.starts_with("reverted"));
            prop_assert!(told.len() <= 20 + 4 * (TEXT_MAX + 3), "{}", told.len());
        }

        #[test]
        fn texts_come_back(text in "\\PC{0,300}") {
            let told = reason(&error(text.as_bytes())).unwrap();
            prop_assert_eq!(told, if text.is_empty() { "\"\"".to_owned() } else { text });
        }
    }
}
