//! What the rows of the stores beside a chain's share: whose they are, and texts.

use super::Corrupt;
use super::bytes::{Reader, put_varint};

/// The longest text that is read back: what is longer was never written.
const TEXT_MAX: usize = 64 << 20;

/// The format of a store, and the chain that it is of.
pub(super) fn identity(format: u8, chain_id: u64, genesis: &[u8; 32]) -> Vec<u8> {
    let mut out = vec![format];
    put_varint(&mut out, chain_id);
    out.extend_from_slice(genesis);
    out
}

/// Appends a text behind its length.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Reads a text behind its length.
pub(super) fn read_text(reader: &mut Reader<'_>) -> Result<String, Corrupt> {
    let len = reader.varint_usize()?;
    if len > TEXT_MAX {
        return Err(Corrupt("length of a text"));
    }
    let text = std::str::from_utf8(reader.take(len)?).map_err(|_| Corrupt("text"))?;
    Ok(text.to_owned())
}

/// Reads whether something follows: 0 or 1.
pub(super) fn read_some(reader: &mut Reader<'_>) -> Result<bool, Corrupt> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(reader.corrupt()),
    }
}

/// Appends 0, or 1 and a text.
pub(super) fn put_optional_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_text(out, text);
    }
}

/// Reads 0, or 1 and a text.
pub(super) fn read_optional_text(reader: &mut Reader<'_>) -> Result<Option<String>, Corrupt> {
    read_some(reader)?.then(|| read_text(reader)).transpose()
}
