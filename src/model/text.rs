//! Text that others wrote.

use super::Address;

/// The part of `bytes` that can be shown, at most `chars_max` characters: bytes that are not UTF-8, control characters
/// and those that turn the direction of text are left out.
#[must_use]
pub fn shown_text(bytes: &[u8], chars_max: usize) -> String {
    bytes
        .utf8_chunks()
        .flat_map(|chunk| chunk.valid().chars())
        .filter(|&char| !char.is_control() && !misleads(char))
        .take(chars_max)
        .collect()
}

/// Characters that show nothing themselves and change how others are shown.
const fn misleads(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// An address as operators write it: `0x` and 40 hex digits of any case.
#[must_use]
pub fn written_address(text: &str) -> Option<Address> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let hex = digits.len() == 2 * Address::len_bytes() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A second prefix would pass for a digit less.
    if hex { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_any_case() {
        let address = Address::repeat_byte(0xab);
        for text in [format!("0x{}", "aB".repeat(20)), format!("0X{}", "AB".repeat(20))] {
            assert_eq!(written_address(&text), Some(address), "{text}");
        }
        for text in [
            "",
            "0x",
            &"ab".repeat(20),
            &format!("0x{}", "ab".repeat(19)),
            &format!("0x0x{}", "ab".repeat(19)),
        ] {
            assert_eq!(written_address(text), None, "{text}");
        }
    }
}
