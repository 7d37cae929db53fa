//! Varints, trimmed words and a reader that never runs past its end.

use super::Corrupt;

/// Appends `value` as a LEB128 varint (1 to 10 bytes).
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The length of `value` as a varint, in bytes.
#[must_use]
pub const fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// A cursor over stored bytes. Every read past the end is [`Corrupt`].
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which hold `what` (named in the error).
    #[must_use]
    pub const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, what }
    }

    /// The error that names what was being read.
    #[must_use]
    pub const fn corrupt(&self) -> Corrupt {
        Corrupt(self.what)
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What is left.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Corrupt> {
        let (&first, rest) = self.bytes.split_first().ok_or(Corrupt(self.what))?;
        self.bytes = rest;
        Ok(first)
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Corrupt> {
        let (head, rest) = self.bytes.split_at_checked(len).ok_or(Corrupt(self.what))?;
        self.bytes = rest;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (head, rest) = self.bytes.split_first_chunk::<N>().ok_or(Corrupt(self.what))?;
        self.bytes = rest;
        Ok(*head)
    }

    /// The next varint.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Corrupt> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                break;
            }
            value |= low << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Corrupt(self.what))
    }

    /// The next varint as a length or a small number.
    #[inline]
    pub fn varint_usize(&mut self) -> Result<usize, Corrupt> {
        usize::try_from(self.varint()?).map_err(|_| Corrupt(self.what))
    }

    /// The next varint as a `u32`.
    #[inline]
    pub fn varint_u32(&mut self) -> Result<u32, Corrupt> {
        u32::try_from(self.varint()?).map_err(|_| Corrupt(self.what))
    }

    /// Insists that nothing is left.
    pub fn end(&self) -> Result<(), Corrupt> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(Corrupt(self.what))
        }
    }
}

/// Marks a word whose zeros are on the right (text, bytes4) rather than on the left (numbers, addresses).
const RIGHT_PADDED: u8 = 0x40;

/// Appends a 32-byte word without its longer run of zeros at either end: one length byte and the rest.
pub fn put_word(out: &mut Vec<u8>, word: &[u8; 32]) {
    let left = word.iter().take_while(|&&byte| byte == 0).count();
    let right = word.iter().rev().take_while(|&&byte| byte == 0).count();
    if right > left && left < 32 {
        let kept = word.get(..32 - right).unwrap_or(&[]);
        out.push(RIGHT_PADDED | kept.len() as u8);
        out.extend_from_slice(kept);
    } else {
        let kept = word.get(left..).unwrap_or(&[]);
        out.push(kept.len() as u8);
        out.extend_from_slice(kept);
    }
}

/// Reads a word written by [`put_word`].
#[inline]
pub fn read_word(reader: &mut Reader<'_>) -> Result<[u8; 32], Corrupt> {
    let mut room = [0u8; 64];
    read_word_into(reader, &mut room)?;
    Ok(*room.first_chunk::<32>().ok_or(reader.corrupt())?)
}

/// Appends `count` words written by [`put_word`].
#[inline]
pub fn read_words(reader: &mut Reader<'_>, count: usize, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    // Each word is at least its tag, so this bounds what is made room for.
    if count > reader.rest().len() {
        return Err(reader.corrupt());
    }
    let start = out.len();
    out.resize(start + count * 32 + 32, 0);
    let mut rooms = out.get_mut(start..).unwrap_or(&mut []);
    for _ in 0..count {
        let room = rooms.first_chunk_mut::<64>().ok_or(reader.corrupt())?;
        read_word_into(reader, room)?;
        rooms = rooms.get_mut(32..).unwrap_or(&mut []);
    }
    out.truncate(start + count * 32);
    Ok(())
}

/// Reads a word written by [`put_word`] into the first half of `room`; what the second half holds then says
/// nothing.
///
/// Words are most of a log, and a copy of unknown length costs more than the rest of this: so 32 bytes are copied
/// whatever the length, where the bytes after the word allow it.
#[inline]
fn read_word_into(reader: &mut Reader<'_>, room: &mut [u8; 64]) -> Result<(), Corrupt> {
    let tag = reader.byte()?;
    let len = usize::from(tag & 0x3f);
    let right_padded = tag & RIGHT_PADDED != 0;
    if len > 32 {
        return Err(reader.corrupt());
    }
    let zeros = if right_padded { 0 } else { 32 - len };
    if let Some(source) = reader.bytes.first_chunk::<32>() {
        room[..32].fill(0);
        room[zeros..zeros + 32].copy_from_slice(source);
        if right_padded {
            room[len..len + 32].fill(0);
        }
        reader.take(len)?;
    } else {
        let kept = reader.take(len)?;
        room[..32].fill(0);
        room[zeros..zeros + len].copy_from_slice(kept);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_round_trip(values in proptest::collection::vec(any::<u64>(), 0..20)) {
            let mut out = Vec::new();
            let mut expected_len = 0;
            for &value in &values {
                put_varint(&mut out, value);
                expected_len += varint_len(value);
            }
            prop_assert_eq!(out.len(), expected_len);
            let mut reader = Reader::new(&out, "test");
            for &value in &values {
                prop_assert_eq!(reader.varint().unwrap(), value);
            }
            reader.end().unwrap();
        }

        #[test]
        fn words_round_trip(mut word in any::<[u8; 32]>(), left in 0usize..33, right in 0usize..33) {
            word[..left].fill(0);
            word[32 - right..].fill(0);
            let mut out = Vec::new();
            put_word(&mut out, &word);
            prop_assert!(out.len() <= 1 + 32 - left.max(right));
            let mut reader = Reader::new(&out, "test");
            prop_assert_eq!(read_word(&mut reader).unwrap(), word);
            reader.end().unwrap();
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader::new(&bytes, "test");
            while reader.varint().is_ok() {}
            let mut reader = Reader::new(&bytes, "test");
            while read_word(&mut reader).is_ok() {}
        }
    }

    #[test]
    fn an_overlong_varint_is_corrupt() {
        let mut reader = Reader::new(&[0xff; 11], "test");
        assert_eq!(reader.varint(), Err(Corrupt("test")));
    }
}
