//! Whether bytes are values as encoders of ABIs write them, from the first one to the last.
//!
//! Nothing is decoded into memory: places may lie, and point from everywhere to the same bytes. Encoders put what is not
//! named in place behind that, in order and without gaps; so each byte is looked at once.

use alloy_dyn_abi::DynSolType;

use crate::model::U256;

const WORD: usize = 32;

/// Whether these are values of these types, and nothing else.
pub(super) fn is_of(kinds: &[DynSolType], bytes: &[u8]) -> bool {
    let mut walk = Walk {
        bytes,
        end: 0,
        is_padded: false,
    };
    walk.parts(kinds).and_then(|()| walk.reach(bytes.len())).is_some()
}

/// Bytes of a value where it is named: a place, or the value.
fn head(kind: &DynSolType) -> Option<usize> {
    if kind.is_dynamic() {
        return Some(WORD);
    }
    kind.minimum_words().checked_mul(WORD)
}

struct Walk<'a> {
    bytes: &'a [u8],
    /// Where what was looked at ends.
    end: usize,
    /// It ends with an empty text, behind which some encoders write a word of padding.
    is_padded: bool,
}

impl Walk<'_> {
    fn number(&self, at: usize) -> Option<usize> {
        let word = self.bytes.get(at..)?.first_chunk::<WORD>()?;
        usize::try_from(U256::from_be_bytes(*word)).ok()
    }

    fn take(&mut self, len: usize) -> Option<()> {
        self.end = self.end.checked_add(len)?;
        self.is_padded = false;
        (self.end <= self.bytes.len()).then_some(())
    }

    fn take_number(&mut self) -> Option<usize> {
        let number = self.number(self.end)?;
        self.take(WORD)?;
        Some(number)
    }

    /// Whether what comes next begins at `place`.
    fn reach(&mut self, place: usize) -> Option<()> {
        if self.is_padded && place == self.end.checked_add(WORD)? && self.number(self.end) == Some(0) {
            self.end = place;
        }
        (place == self.end).then_some(())
    }

    /// Values of these types, named here in turn.
    fn parts(&mut self, kinds: &[DynSolType]) -> Option<()> {
        let base = self.end;
        let all = kinds
            .iter()
            .try_fold(0usize, |all, kind| all.checked_add(head(kind)?))?;
        self.take(all)?;
        let mut at = base;
        for kind in kinds {
            self.behind(kind, base, at)?;
            at += head(kind)?;
        }
        Some(())
    }

    /// So many values of one type.
    fn items(&mut self, kind: &DynSolType, count: usize) -> Option<()> {
        let base = self.end;
        self.take(head(kind)?.checked_mul(count)?)?;
        if kind.is_dynamic() {
            for item in 0..count {
                self.behind(kind, base, base + item * WORD)?;
            }
        }
        Some(())
    }

    /// What the place at `at` leads to, if the value lies elsewhere; places count from `base`.
    fn behind(&mut self, kind: &DynSolType, base: usize, at: usize) -> Option<()> {
        if !kind.is_dynamic() {
            return Some(());
        }
        self.reach(base.checked_add(self.number(at)?)?)?;
        match kind {
            DynSolType::Tuple(kinds) => self.parts(kinds),
            DynSolType::FixedArray(of, count) => self.items(of, *count),
            DynSolType::Array(of) => {
                let count = self.take_number()?;
                self.items(of, count)
            }
            _ => {
                let len = self.take_number()?;
                let text = self.end;
                self.take(len.checked_next_multiple_of(WORD)?)?;
                self.is_padded = len == 0;
                let padding = self.bytes.get(text + len..self.end)?;
                padding.iter().all(|&byte| byte == 0).then_some(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloy_dyn_abi::DynSolValue;

    use super::*;
    use crate::model::Address;

    fn kinds(types: &str) -> Vec<DynSolType> {
        match DynSolType::parse(types).unwrap() {
            DynSolType::Tuple(kinds) => kinds,
            kind => vec![kind],
        }
    }

    fn uint(value: u64) -> DynSolValue {
        DynSolValue::Uint(U256::from(value), 256)
    }

    fn text(len: usize) -> DynSolValue {
        DynSolValue::String("x".repeat(len))
    }

    #[test]
    fn what_an_encoder_writes_is_taken_and_nothing_around_it() {
        let bytes = |len: usize| DynSolValue::Bytes(vec![0xfe; len]);
        let address = DynSolValue::Address(Address::repeat_byte(0xbe));
        let pair = |len: usize| DynSolValue::Tuple(vec![uint(1), text(len)]);
        let orders = DynSolValue::Array(vec![pair(0), pair(40), pair(32)]);
        let fixed = DynSolValue::FixedArray(vec![text(3), text(64)]);
        let lists = DynSolValue::Array(vec![
            DynSolValue::Array(vec![uint(1), uint(2)]),
            DynSolValue::Array(vec![]),
        ]);
        let words = DynSolValue::FixedArray(vec![uint(1), uint(2), uint(3)]);
        for (types, values) in [
            ("(uint256,address)", vec![uint(7), address.clone()]),
            ("(string)", vec![text(5)]),
            ("(string,string)", vec![text(0), text(32)]),
            ("(uint256[3],bytes,uint8)", vec![words, bytes(33), uint(9)]),
            ("((uint256,string)[],address)", vec![orders, address]),
            ("(string[2],uint256[][])", vec![fixed, lists]),
            ("(address[],bytes)", vec![DynSolValue::Array(vec![]), bytes(1)]),
        ] {
            let kinds = kinds(types);
            let encoded = DynSolValue::Tuple(values).abi_encode_params();
            assert!(is_of(&kinds, &encoded), "{types}");
            for end in 0..encoded.len() {
                assert!(!is_of(&kinds, &encoded[..end]), "{types} {end}");
            }
            for code in [&b"\x60\x80\x60\x40\x52"[..], &[0x5b; 32], &[0; 32], &[0x60; 320]] {
                let around = [[code, &encoded].concat(), [encoded.as_slice(), code].concat()];
                // An empty text at the end may have a word of padding.
                let [before, behind] = around.map(|bytes| is_of(&kinds, &bytes));
                assert!(!before && !behind, "{types} {code:?}");
            }
        }
        assert!(is_of(&[], &[]) && !is_of(&[], &[0; 32]));
    }

    #[test]
    fn an_empty_text_may_have_a_word_of_padding() {
        let words = |words: &[u64]| -> Vec<u8> {
            let words = words.iter().map(|&word| U256::from(word).to_be_bytes::<32>());
            words.flatten().collect()
        };
        let two = kinds("(bytes,bytes)");
        assert!(is_of(&two, &words(&[64, 96, 0, 0])));
        assert!(is_of(&two, &words(&[64, 128, 0, 0, 0, 0])));
        assert!(!is_of(&two, &words(&[64, 128, 0, 7, 0, 0])));
        assert!(!is_of(&two, &words(&[64, 96, 0, 0, 0, 0])));
        // Padding is zero, places lead on, and nothing is told twice.
        let one = kinds("(bytes)");
        assert!(!is_of(&one, &words(&[32, 31, u64::MAX])));
        assert!(!is_of(&one, &words(&[0])) && !is_of(&one, &words(&[32, u64::MAX])));
        assert!(!is_of(&two, &words(&[64, 64, 0])));
        let deep = kinds("(uint8[][][][])");
        assert!(!is_of(&deep, &words(&[32, u64::MAX / 32])));
        let mut shared = words(&[32, 1000]);
        shared.extend(words(&[32_000; 1000]));
        assert!(!is_of(&deep, &shared));
    }
}
