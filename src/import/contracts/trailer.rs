//! What compilers write behind code: a CBOR map and its length, which names the metadata by its hash.

use super::hash::HashKind;
use crate::model::B256;

/// The trailer of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trailer<'a> {
    /// The map with its length behind it.
    pub(super) bytes: &'a [u8],
    /// The hash of the metadata, where one is named.
    pub(super) hash: Option<(HashKind, B256)>,
}

/// The longest map looked for.
const MAP_MAX: usize = 512;
/// Entries of a map.
const ENTRIES_MAX: usize = 16;

/// The trailer at the end of code.
pub(super) fn at_end(code: &[u8]) -> Option<Trailer<'_>> {
    let (_, length) = code.split_last_chunk::<2>()?;
    let length = usize::from(u16::from_be_bytes(*length));
    let start = code.len().checked_sub(length + 2)?;
    let bytes = code.get(start..)?;
    let (hash, end) = read(bytes)?;
    (end == length).then_some(Trailer { bytes, hash })
}

/// Every trailer inside of `code` that names a hash, from the first on; creation code holds them behind each
/// contract's code.
pub(super) fn within(code: &[u8]) -> impl Iterator<Item = (usize, Trailer<'_>)> {
    (0..code.len()).filter_map(move |start| {
        // A map of a few entries.
        let rest = code.get(start..)?;
        if !(0xa1..=0xa8).contains(rest.first()?) {
            return None;
        }
        let (hash, length) = read(rest.get(..rest.len().min(MAP_MAX))?)?;
        let stated = rest.get(length..length + 2)?;
        hash?;
        (stated == u16::try_from(length).ok()?.to_be_bytes()).then(|| {
            let bytes = rest.get(..length + 2).unwrap_or_default();
            (start, Trailer { bytes, hash })
        })
    })
}

/// One value.
enum Value<'a> {
    Bytes(&'a [u8]),
    Text(&'a [u8]),
    Other,
}

/// Reads a map with texts for keys; answers the hash that it names and where it ends.
fn read(bytes: &[u8]) -> Option<(Option<(HashKind, B256)>, usize)> {
    let mut at = 0;
    let (major, entries) = head(bytes, &mut at)?;
    if major != 5 || entries > ENTRIES_MAX {
        return None;
    }
    let mut hash = None;
    for _ in 0..entries {
        let Value::Text(key) = value(bytes, &mut at)? else {
            return None;
        };
        let named = match (key, value(bytes, &mut at)?) {
            (b"ipfs", Value::Bytes([0x12, 0x20, digest @ ..])) => Some((HashKind::Ipfs, digest)),
            (b"bzzr1", Value::Bytes(digest)) => Some((HashKind::Bzzr1, digest)),
            (b"bzzr0", Value::Bytes(digest)) => Some((HashKind::Bzzr0, digest)),
            _ => None,
        };
        if let Some((kind, digest)) = named {
            hash = Some((kind, B256::from(<[u8; 32]>::try_from(digest).ok()?)));
        }
    }
    Some((hash, at))
}

/// The kind of an item and its number.
fn head(bytes: &[u8], at: &mut usize) -> Option<(u8, usize)> {
    let first = *bytes.get(*at)?;
    *at += 1;
    let number = match first & 0x1f {
        small @ 0..=23 => usize::from(small),
        24 => {
            let number = *bytes.get(*at)?;
            *at += 1;
            usize::from(number)
        }
        25 => {
            let number = bytes.get(*at..)?.first_chunk::<2>()?;
            *at += 2;
            usize::from(u16::from_be_bytes(*number))
        }
        _ => return None,
    };
    Some((first >> 5, number))
}

fn value<'a>(bytes: &'a [u8], at: &mut usize) -> Option<Value<'a>> {
    let (major, number) = head(bytes, at)?;
    Some(match major {
        2 | 3 => {
            let end = at.checked_add(number)?;
            let text = bytes.get(*at..end)?;
            *at = end;
            if major == 2 {
                Value::Bytes(text)
            } else {
                Value::Text(text)
            }
        }
        // Numbers and the two truth values.
        0 | 7 => Value::Other,
        _ => return None,
    })
}

/// What solc appends to code whose metadata this is.
#[cfg(test)]
pub(super) fn of_solc(metadata: &[u8]) -> Vec<u8> {
    let mut out = b"\xa2\x64ipfs\x58\x22\x12\x20".to_vec();
    out.extend_from_slice(super::hash::digest(HashKind::Ipfs, metadata).as_slice());
    out.extend_from_slice(b"\x64solc\x43\x00\x08\x25");
    let length = out.len() as u16;
    out.extend_from_slice(&length.to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A map as solc writes it.
    fn map(key: &str, prefix: &[u8], digest: u8) -> Vec<u8> {
        let mut out = vec![0xa2, 0x60 + key.len() as u8];
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(&[0x58, 32 + prefix.len() as u8]);
        out.extend_from_slice(prefix);
        out.extend_from_slice(&[digest; 32]);
        out.extend_from_slice(b"\x64solc\x43\x00\x08\x25");
        let length = out.len() as u16;
        out.extend_from_slice(&length.to_be_bytes());
        out
    }

    #[test]
    fn trailers_are_read() {
        for (key, prefix, kind) in [
            ("ipfs", &[0x12, 0x20][..], HashKind::Ipfs),
            ("bzzr1", &[], HashKind::Bzzr1),
            ("bzzr0", &[], HashKind::Bzzr0),
        ] {
            let trailer = map(key, prefix, 7);
            let code = [b"\x60\x80code".as_slice(), &trailer].concat();
            let read = at_end(&code).unwrap();
            assert_eq!(read.bytes, trailer);
            assert_eq!(read.hash, Some((kind, B256::repeat_byte(7))));
            let creation = [b"init".as_slice(), &code, &map(key, prefix, 8), b"arguments"].concat();
            let found: Vec<_> = within(&creation)
                .map(|(_, found)| found.hash.unwrap().1)
                .collect();
            assert_eq!(found, [B256::repeat_byte(7), B256::repeat_byte(8)]);
        }
        // Experimental code says so, and no hash is none.
        let mut experimental = b"\xa1\x6cexperimental\xf5".to_vec();
        experimental.extend_from_slice(&[0, experimental.len() as u8]);
        assert_eq!(at_end(&experimental).unwrap().hash, None);
        assert_eq!(within(&experimental).count(), 0);
        for none in [&b""[..], b"\x00", b"\x60\x80\x60\x40", &[0xa2, 0, 1]] {
            assert_eq!(at_end(none), None);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_code_is_read_to_its_end(code in proptest::collection::vec(any::<u8>(), 0..2000)) {
            if let Some(found) = at_end(&code) {
                prop_assert!(code.ends_with(found.bytes));
            }
            for (start, found) in within(&code) {
                prop_assert_eq!(&code[start..start + found.bytes.len()], found.bytes);
            }
        }
    }
}
