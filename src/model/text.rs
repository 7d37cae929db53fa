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
    matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Whether a node's URL looks like the path of a socket, and not like a host whose scheme was forgotten.
#[must_use]
pub fn is_path(url: &str) -> bool {
    url.starts_with(['/', '.', '~']) || url.ends_with(".ipc")
}

/// A node's URL as it may be shown: scheme, host and port, without user, path and query, which may hold a key. The path of
/// a socket is shown whole.
#[must_use]
pub fn shown_url(url: &str) -> String {
    let url = url.trim();
    let (scheme, rest) = match url.split_once("://") {
        Some(("file" | "ipc", _)) => return url.to_owned(),
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None if is_path(url) => return url.to_owned(),
        // A scheme was forgotten: what follows the host may hold a key all the same.
        None => (String::new(), url),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // What stands for a port and is none may be a password that holds a slash.
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    if port.bytes().all(|byte| byte.is_ascii_digit()) || host.ends_with(']') {
        scheme + host
    } else {
        scheme + "..."
    }
}

/// Why a text is no address; reads on behind the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    /// It does not look like one.
    #[error("is not an address: `0x` and 40 hex digits")]
    Form,
    /// Its letters are of both cases, which says a checksum, and the checksum is wrong. The right one.
    #[error("has a wrong checksum (EIP-55): with the right one it is {0}")]
    Checksum(String),
}

/// Chains whose checksums count the chain id in (EIP-1191).
const CHAINS_OF_EIP_1191: [u64; 2] = [30, 31];

/// An address as operators write it: `0x` and 40 hex digits, which are all lower case, all upper case, or of mixed case
/// with the checksum that this says.
pub fn written_address(text: &str) -> Result<Address, AddressFault> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_hex = |digits: &&str| {
        digits.len() == 2 * Address::len_bytes() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    // A second prefix would pass for a digit less.
    let digits = digits.filter(is_hex).ok_or(AddressFault::Form)?;
    let address: Address = digits.parse().map_err(|_| AddressFault::Form)?;
    let is_mixed = digits.bytes().any(|byte| byte.is_ascii_lowercase())
        && digits.bytes().any(|byte| byte.is_ascii_uppercase());
    let right = address.to_checksum(None);
    let says = |checksum: &str| checksum.ends_with(digits);
    let of_chain = |chain: u64| says(&address.to_checksum(Some(chain)));
    if is_mixed && !says(&right) && !CHAINS_OF_EIP_1191.into_iter().any(of_chain) {
        return Err(AddressFault::Checksum(right));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_turn_text_are_left_out() {
        let turning = [
            '\u{61c}', '\u{200e}', '\u{200f}', '\u{202e}', '\u{2066}', '\u{2069}',
        ];
        for char in turning {
            let text = format!("US{char}DC");
            assert_eq!(shown_text(text.as_bytes(), 10), "USDC", "{char:?}");
        }
        // A letter beside the mark stays.
        assert_eq!(
            shown_text("\u{627}\u{61c}\u{628}".as_bytes(), 10),
            "\u{627}\u{628}"
        );
    }

    #[test]
    fn addresses_of_any_case() {
        let address = Address::repeat_byte(0xab);
        let lower = format!("0x{}", "ab".repeat(20));
        let right = address.to_checksum(None);
        let of_rootstock = address.to_checksum(Some(30));
        let upper = format!("0X{}", "AB".repeat(20));
        assert!(of_rootstock != right && right != upper.replace('X', "x"));
        for text in [&lower, &right, &of_rootstock, &upper] {
            assert_eq!(written_address(text), Ok(address), "{text}");
        }
        // One letter of the other case is a checksum that is wrong.
        let wrong = lower.replacen("ab", "aB", 1);
        assert_eq!(written_address(&wrong), Err(AddressFault::Checksum(right)));
        for text in [
            "",
            "0x",
            &"ab".repeat(20),
            &format!("0x{}", "ab".repeat(19)),
            &format!("0x0x{}", "ab".repeat(19)),
        ] {
            assert_eq!(written_address(text), Err(AddressFault::Form), "{text}");
        }
    }
}
