//! Rows of what lists of tokens tell.
//!
//! ```text
//! 03 | token address 20 -> which varint, decimals 1 where told, texts in the order of `TokenProject::texts`
//! ```
//!
//! Bit 0 of `which` says that decimals are told, bit 1 + n that text n is. A text is a length and UTF-8.

use crate::codec::Corrupt;
use crate::codec::beside::{put_text, read_text};
use crate::codec::bytes::{Reader, put_varint};
use crate::model::{Address, TokenProject};

const TOKEN: u8 = 3;

/// The key of what is told of a token.
#[must_use]
pub fn token_key(token: &Address) -> [u8; 21] {
    let mut key = [TOKEN; 21];
    let [_, address @ ..] = &mut key;
    address.copy_from_slice(token.as_slice());
    key
}

/// What is told of a token.
#[must_use]
pub fn encode_token(project: &TokenProject) -> Vec<u8> {
    let texts = project.texts();
    let told = texts.iter().enumerate();
    let which = told.fold(u64::from(project.decimals.is_some()), |which, (place, text)| {
        which | u64::from(text.is_some()) << (1 + place)
    });
    let mut out = Vec::new();
    put_varint(&mut out, which);
    out.extend(project.decimals);
    for text in texts.into_iter().flatten() {
        put_text(&mut out, text);
    }
    out
}

/// Reads what is told of a token.
pub fn decode_token(bytes: &[u8]) -> Result<TokenProject, Corrupt> {
    let mut reader = Reader::new(bytes, "token of a list");
    let which = reader.varint()?;
    let mut project = TokenProject::default();
    if which & 1 == 1 {
        project.decimals = Some(reader.byte()?);
    }
    let texts = project.texts_mut();
    if which >> (1 + texts.len()) != 0 {
        return Err(Corrupt("fields of a token of a list"));
    }
    for (place, text) in texts.into_iter().enumerate() {
        if which >> (1 + place) & 1 == 1 {
            *text = Some(read_text(&mut reader)?);
        }
    }
    reader.end()?;
    Ok(project)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tokens_come_back_and_every_cut_is_corrupt(
            decimals in proptest::option::of(any::<u8>()),
            values in proptest::collection::vec(proptest::option::of(".{0,8}"), 13),
        ) {
            let mut project = TokenProject { decimals, ..TokenProject::default() };
            for (text, value) in project.texts_mut().into_iter().zip(values) {
                *text = value;
            }
            let bytes = encode_token(&project);
            prop_assert_eq!(decode_token(&bytes), Ok(project));
            prop_assert!((0..bytes.len()).all(|end| decode_token(&bytes[..end]).is_err()));
        }

        #[test]
        fn any_bytes_are_read_or_corrupt(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = decode_token(&bytes);
        }
    }
}
