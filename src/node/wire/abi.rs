//! What contracts return, in the contract ABI: words and texts. Contracts may return anything at all.

use crate::model::{Address, U256, shown_text};

/// Bytes of an ABI word.
const WORD: usize = 32;

/// Characters of a text that are kept.
const TEXT_CHARS_MAX: usize = 256;

/// A number: the first word of what was returned; `None` when there is no whole word.
///
/// More than a word is no fault: that is how a caller that expects a number reads it.
#[must_use]
pub fn number(returned: &[u8]) -> Option<U256> {
    let word = returned.first_chunk::<WORD>()?;
    Some(U256::from_be_bytes(*word))
}

/// Digits after the point: 0 to 255, `None` for anything else.
#[must_use]
pub fn decimals(returned: &[u8]) -> Option<u8> {
    u8::try_from(number(returned)?).ok()
}

/// An address; `None` for anything else.
#[must_use]
pub fn address(returned: &[u8]) -> Option<Address> {
    let (zeros, address) = returned.first_chunk::<WORD>()?.split_at(WORD - 20);
    let short = zeros.iter().all(|&byte| byte == 0);
    short.then(|| Address::from_slice(address))
}

/// A text: an ABI `string` (or `bytes`), or the `bytes32` of early tokens; `None` when it is neither.
///
/// Only what can be shown is kept: bytes that are not UTF-8, control characters and those that turn the
/// direction of text are left out, and so is what follows 256 characters.
#[must_use]
pub fn text(returned: &[u8]) -> Option<String> {
    if let Some(bytes) = string_bytes(returned) {
        return Some(cleaned(bytes));
    }
    let word = returned.first_chunk::<WORD>()?;
    (returned.len() == WORD).then(|| {
        let end = word.iter().position(|&byte| byte == 0).unwrap_or(WORD);
        cleaned(word.get(..end).unwrap_or_default())
    })
}

/// The bytes of an ABI `string`: an offset, and there a length and as many bytes.
fn string_bytes(returned: &[u8]) -> Option<&[u8]> {
    let offset = usize::try_from(number(returned)?).ok()?;
    // The first word is the offset itself, so a text cannot begin before its end.
    let tail = returned.get(offset..).filter(|_| WORD <= offset)?;
    let length = usize::try_from(number(tail)?).ok()?;
    tail.get(WORD..)?.get(..length)
}

fn cleaned(bytes: &[u8]) -> String {
    shown_text(bytes, TEXT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(number: u64) -> Vec<u8> {
        U256::from(number).to_be_bytes::<32>().to_vec()
    }

    fn string(bytes: &[u8]) -> Vec<u8> {
        let mut out = [word(32), word(bytes.len() as u64), bytes.to_vec()].concat();
        out.resize(out.len().next_multiple_of(32), 0);
        out
    }

    #[test]
    fn texts_of_both_forms() {
        assert_eq!(text(&string(b"Coin")).as_deref(), Some("Coin"));
        assert_eq!(text(&string(b"")).as_deref(), Some(""));
        let mut early = b"MKR".to_vec();
        early.resize(32, 0);
        assert_eq!(text(&early).as_deref(), Some("MKR"));
        assert_eq!(text(&[b'x'; 32]).unwrap().len(), 32);
        // A text of 32 bytes whose bytes could be taken for an offset is still one word.
        assert_eq!(text(&word(32)).as_deref(), Some(""));
    }

    #[test]
    fn what_is_no_text() {
        for returned in [
            Vec::new(),
            vec![0; 31],
            // An offset beyond the end, within the first word, and one that overflows.
            [word(1 << 40), word(1)].concat(),
            [word(1), word(1)].concat(),
            [vec![0xff; 32], word(1)].concat(),
            // A length beyond the end, and one that overflows.
            [word(32), word(33), vec![b'x'; 32]].concat(),
            [word(32), vec![0xff; 32], vec![b'x'; 32]].concat(),
        ] {
            assert_eq!(text(&returned), None, "{}", const_hex::encode(&returned));
        }
    }

    #[test]
    fn texts_are_cleaned_and_bounded() {
        let hostile = b"a\0b\nc\xff\xfed\xe2\x80\xaee\xc3\xa9";
        assert_eq!(text(&string(hostile)).as_deref(), Some("abcde\u{e9}"));
        let long = "\u{e9}".repeat(100_000);
        let kept = text(&string(long.as_bytes())).unwrap();
        assert_eq!(kept.chars().count(), TEXT_CHARS_MAX);
    }

    #[test]
    fn numbers() {
        assert_eq!(number(&word(7)), Some(U256::from(7)));
        assert_eq!(number(&[word(7), word(9)].concat()), Some(U256::from(7)));
        assert_eq!(number(&[]), None);
        assert_eq!(number(&[1; 31]), None);
        assert_eq!(decimals(&word(255)), Some(255));
        assert_eq!(decimals(&word(256)), None);
        assert_eq!(decimals(&[0xff; 32]), None);
        assert_eq!(address(&word(7)), Some(Address::with_last_byte(7)));
        assert_eq!(address(&[1; 32]), None);
        assert_eq!(address(&[0; 31]), None);
    }
}
