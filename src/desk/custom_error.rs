//! A custom error and its arguments in words.
//!
//! Revert data may lie about its places and lengths, and point from everywhere to the same bytes. So nothing is decoded
//! into memory: the text is written as the data is walked, and the walk ends with the text's room or its steps.

use std::fmt::Write as _;

use alloy_dyn_abi::DynSolType;

use crate::model::{Address, CustomError, U256};

/// Longest text, bytes.
const TEXT_MAX: usize = 2048;
/// Longest part of one value, bytes of it.
const VALUE_MAX: usize = 256;
/// Values visited.
const STEPS_MAX: usize = 1000;

/// `Name(name: value, name: value)`; `None` where the data is not what the error's types say.
pub(crate) fn render(error: &CustomError, arguments: &[u8]) -> Option<String> {
    let kinds = error.inputs.iter().map(|(kind, _)| DynSolType::parse(kind));
    let kinds: Vec<DynSolType> = kinds.collect::<Result<_, _>>().ok()?;
    let mut walk = Walk {
        data: arguments,
        out: format!("{}(", error.name),
        steps: 0,
    };
    let mut place = 0;
    for (at, (kind, (_, name))) in kinds.iter().zip(&error.inputs).enumerate() {
        if at > 0 {
            walk.out.push_str(", ");
        }
        if !name.is_empty() {
            let _ = write!(walk.out, "{name}: ");
        }
        match walk.value(kind, place, 0) {
            Ok(()) => {}
            Err(Stop::Malformed) => return None,
            Err(Stop::Full) => {
                walk.out.push_str("...");
                return Some(walk.out);
            }
        }
        place = place.checked_add(head_bytes(kind)?)?;
    }
    walk.out.push(')');
    Some(walk.out)
}

/// Whether values of a type lie elsewhere than where they are named.
fn is_dynamic(kind: &DynSolType) -> bool {
    match kind {
        DynSolType::Bytes | DynSolType::String | DynSolType::Array(_) => true,
        DynSolType::FixedArray(of, _) => is_dynamic(of),
        DynSolType::Tuple(parts) => parts.iter().any(is_dynamic),
        _ => false,
    }
}

/// Bytes of a value where it is named.
fn head_bytes(kind: &DynSolType) -> Option<usize> {
    match kind {
        kind if is_dynamic(kind) => Some(32),
        DynSolType::FixedArray(of, count) => head_bytes(of)?.checked_mul(*count),
        DynSolType::Tuple(parts) => parts
            .iter()
            .try_fold(0usize, |all, part| all.checked_add(head_bytes(part)?)),
        _ => Some(32),
    }
}

/// Why a walk ends early.
enum Stop {
    Malformed,
    Full,
}

struct Walk<'a> {
    data: &'a [u8],
    out: String,
    steps: usize,
}

impl Walk<'_> {
    fn word(&self, at: usize) -> Result<[u8; 32], Stop> {
        let word = self.data.get(at..).and_then(|rest| rest.first_chunk::<32>());
        word.copied().ok_or(Stop::Malformed)
    }

    fn number(&self, at: usize) -> Result<usize, Stop> {
        usize::try_from(U256::from_be_bytes(self.word(at)?)).map_err(|_| Stop::Malformed)
    }

    /// Writes the value that is named at `at`; places count from `base`.
    fn value(&mut self, kind: &DynSolType, at: usize, base: usize) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > STEPS_MAX || self.out.len() > TEXT_MAX {
            return Err(Stop::Full);
        }
        if !is_dynamic(kind) {
            return match kind {
                DynSolType::FixedArray(of, count) => self.items(of, *count, at, at, ['[', ']']),
                DynSolType::Tuple(parts) => self.parts(parts, at, at),
                kind => {
                    let word = self.word(at)?;
                    self.simple(kind, &word)
                }
            };
        }
        let place = base.checked_add(self.number(at)?).ok_or(Stop::Malformed)?;
        match kind {
            DynSolType::FixedArray(of, count) => self.items(of, *count, place, place, ['[', ']']),
            DynSolType::Tuple(parts) => self.parts(parts, place, place),
            kind => {
                let count = self.number(place)?;
                let start = place.checked_add(32).ok_or(Stop::Malformed)?;
                if let DynSolType::Array(of) = kind {
                    return self.items(of, count, start, start, ['[', ']']);
                }
                let end = start.checked_add(count).ok_or(Stop::Malformed)?;
                let bytes = self.data.get(start..end).ok_or(Stop::Malformed)?;
                let shown = bytes.get(..VALUE_MAX).unwrap_or(bytes);
                let more = if shown.len() < bytes.len() { "..." } else { "" };
                let _ = match kind {
                    DynSolType::String => write!(self.out, "{:?}{more}", String::from_utf8_lossy(shown)),
                    _ => write!(self.out, "{}{more}", const_hex::encode_prefixed(shown)),
                };
                Ok(())
            }
        }
    }

    fn items(
        &mut self,
        kind: &DynSolType,
        count: usize,
        mut at: usize,
        base: usize,
        around: [char; 2],
    ) -> Result<(), Stop> {
        let stride = head_bytes(kind).ok_or(Stop::Malformed)?;
        self.out.push(around[0]);
        for place in 0..count {
            if place > 0 {
                self.out.push_str(", ");
            }
            self.value(kind, at, base)?;
            at = at.checked_add(stride).ok_or(Stop::Malformed)?;
        }
        self.out.push(around[1]);
        Ok(())
    }

    fn parts(&mut self, parts: &[DynSolType], mut at: usize, base: usize) -> Result<(), Stop> {
        self.out.push('(');
        for (place, part) in parts.iter().enumerate() {
            if place > 0 {
                self.out.push_str(", ");
            }
            self.value(part, at, base)?;
            let head = head_bytes(part).ok_or(Stop::Malformed)?;
            at = at.checked_add(head).ok_or(Stop::Malformed)?;
        }
        self.out.push(')');
        Ok(())
    }

    fn simple(&mut self, kind: &DynSolType, word: &[u8; 32]) -> Result<(), Stop> {
        let number = U256::from_be_bytes(*word);
        let _ = match kind {
            DynSolType::Bool if number <= U256::ONE => write!(self.out, "{}", number == U256::ONE),
            DynSolType::Uint(bits) if number.bit_len() <= *bits => write!(self.out, "{number}"),
            DynSolType::Int(bits) => {
                let negative = number.bit(255);
                let size = if negative { !number + U256::ONE } else { number };
                // The sign's bit stands among the `bits`; the least number needs all of them.
                let least = negative && size == U256::ONE << (bits - 1);
                if size.bit_len() >= *bits && !least {
                    return Err(Stop::Malformed);
                }
                write!(self.out, "{}{size}", if negative { "-" } else { "" })
            }
            DynSolType::Address if number.bit_len() <= 160 => {
                let address = Address::from_word(U256::to_be_bytes::<32>(&number).into());
                write!(self.out, "{}", const_hex::encode_prefixed(address))
            }
            DynSolType::FixedBytes(count) => {
                let bytes = word.get(..*count).ok_or(Stop::Malformed)?;
                write!(self.out, "{}", const_hex::encode_prefixed(bytes))
            }
            DynSolType::Function => {
                let bytes = word.get(..24).ok_or(Stop::Malformed)?;
                write!(self.out, "{}", const_hex::encode_prefixed(bytes))
            }
            _ => return Err(Stop::Malformed),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloy_dyn_abi::DynSolValue;
    use proptest::prelude::*;

    use super::*;

    fn error(kinds: &[(&str, &str)]) -> CustomError {
        let inputs = kinds
            .iter()
            .map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned()));
        CustomError {
            selector: [0; 4],
            name: "Bad".to_owned(),
            inputs: inputs.collect(),
        }
    }

    fn encoded(values: Vec<DynSolValue>) -> Vec<u8> {
        DynSolValue::Tuple(values).abi_encode_params()
    }

    #[test]
    fn arguments_are_shown_with_their_names() {
        let of = error(&[
            ("address", "holder"),
            ("uint256", ""),
            ("string", "why"),
            ("(bool,bytes2)[]", "list"),
            ("int8", "i"),
        ]);
        let data = encoded(vec![
            DynSolValue::Address(Address::repeat_byte(0xab)),
            DynSolValue::Uint(U256::from(7), 256),
            DynSolValue::String("too \"low\"".to_owned()),
            DynSolValue::Array(vec![DynSolValue::Tuple(vec![
                DynSolValue::Bool(true),
                DynSolValue::FixedBytes(alloy_primitives::B256::repeat_byte(1), 2),
            ])]),
            DynSolValue::Int("-128".parse().unwrap(), 8),
        ]);
        assert_eq!(
            render(&of, &data).unwrap(),
            "Bad(holder: 0xabababababababababababababababababababab, 7, why: \"too \\\"low\\\"\", \
             list: [(true, 0x0101)], i: -128)"
        );
        assert_eq!(render(&error(&[]), &[]).unwrap(), "Bad()");
        assert_eq!(render(&of, &data[..data.len() - 33]), None);
        assert_eq!(render(&error(&[("uint8", "")]), &[0xff; 32]), None);
        assert_eq!(render(&error(&[("no type", "")]), &[0xff; 32]), None);
    }

    #[test]
    fn bombs_are_bounded() {
        // Every place points to its own list again.
        let word = |number: u64| U256::from(number).to_be_bytes::<32>();
        let mut bomb = word(32).to_vec();
        bomb.extend_from_slice(&word(64));
        for _ in 0..64 {
            bomb.extend_from_slice(&word(0));
        }
        let deep = error(&[("uint8[][][][][][][][]", "")]);
        assert!(render(&deep, &bomb).is_none_or(|text| text.len() < 2 * TEXT_MAX));
        let wide = error(&[("uint8[4294967295][4294967295][4294967295]", "")]);
        assert!(render(&wide, &[0; 64]).is_none_or(|text| text.len() < 2 * TEXT_MAX));
        let empty = error(&[("uint8[0][]", "")]);
        let data = [word(32), word(u64::MAX)].concat();
        assert!(render(&empty, &data).is_none_or(|text| text.ends_with("...")));
        let long = encoded(vec![DynSolValue::Bytes(vec![1; 100_000])]);
        let long = render(&error(&[("bytes", "")]), &long).unwrap();
        assert!(long.len() < 1000 && long.ends_with("...)"));
    }

    proptest! {
        #[test]
        fn arbitrary_data_is_bounded(
            kind in "(uint8|int16|bool|string|bytes|\\(string,uint8\\)|\\(bytes\\[\\],bool\\))(\\[[0-9]?\\]){0,3}",
            words in proptest::collection::vec(prop_oneof![0u64..300, any::<u64>()], 0..30),
        ) {
            let data: Vec<u8> = words.iter().flat_map(|word| U256::from(*word).to_be_bytes::<32>()).collect();
            if let Some(text) = render(&error(&[(&kind, "x")]), &data) {
                prop_assert!(text.len() < 3 * TEXT_MAX, "{}", text.len());
            }
        }

        #[test]
        fn what_was_encoded_is_read(number in any::<u64>(), text in "[a-z ]{0,40}", list in proptest::collection::vec(any::<bool>(), 0..5)) {
            let of = error(&[("uint64", ""), ("string", ""), ("bool[]", "")]);
            let data = encoded(vec![
                DynSolValue::Uint(U256::from(number), 64),
                DynSolValue::String(text.clone()),
                DynSolValue::Array(list.iter().map(|&on| DynSolValue::Bool(on)).collect()),
            ]);
            let list: Vec<_> = list.iter().map(ToString::to_string).collect();
            let expected = format!("Bad({number}, {text:?}, [{}])", list.join(", "));
            prop_assert_eq!(render(&of, &data), Some(expected));
        }
    }
}
