//! Call data: a selector, words without their zeros, and what is left; or the bytes as they are, where that is no longer.

use super::super::Corrupt;
use super::super::bytes::{Reader, put_varint, put_word, read_words};

/// Bytes of call data before its words.
const SELECTOR: usize = 4;

/// Call data or init code where it is stored.
#[derive(Clone, Copy, Debug)]
pub struct CallData<'a> {
    len: usize,
    pub(super) is_trimmed: bool,
    /// Ends where it does.
    stored: Reader<'a>,
}

impl<'a> CallData<'a> {
    pub(super) fn put(out: &mut Vec<u8>, input: &[u8]) {
        let start = out.len();
        let twice = (input.len() as u64) << 1;
        if let Some((selector, rest)) = input.split_first_chunk::<SELECTOR>() {
            put_varint(out, twice | 1);
            let data = out.len();
            out.extend_from_slice(selector);
            let (words, rest) = rest.as_chunks::<32>();
            for word in words {
                put_word(out, word);
            }
            out.extend_from_slice(rest);
            if out.len() - data < input.len() {
                return;
            }
            out.truncate(start);
        }
        put_varint(out, twice);
        out.extend_from_slice(input);
    }

    /// Reads the head; the data is the rest of `row`.
    #[inline]
    pub(super) fn read(mut row: Reader<'a>) -> Result<Self, Corrupt> {
        let head = row.varint()?;
        let len = usize::try_from(head >> 1).map_err(|_| row.corrupt())?;
        let is_trimmed = head & 1 != 0;
        let stored = row.rest().len();
        // A word is its tag at least.
        let fits = if is_trimmed {
            stored <= len && stored >= SELECTOR && (len - SELECTOR) / 32 <= stored
        } else {
            stored == len
        };
        if !fits {
            return Err(row.corrupt());
        }
        Ok(Self {
            len,
            is_trimmed,
            stored: row,
        })
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes; put into `room` where they are not stored as they are.
    #[inline]
    pub fn bytes<'r>(&self, room: &'r mut Vec<u8>) -> Result<&'r [u8], Corrupt>
    where
        'a: 'r,
    {
        let mut stored = self.stored;
        if !self.is_trimmed {
            return Ok(stored.rest());
        }
        room.clear();
        room.reserve(self.len);
        room.extend_from_slice(stored.take(SELECTOR)?);
        read_words(&mut stored, (self.len - SELECTOR) / 32, room)?;
        room.extend_from_slice(stored.rest());
        if room.len() == self.len {
            Ok(room)
        } else {
            Err(stored.corrupt())
        }
    }
}
