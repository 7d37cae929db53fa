//! Varints, trimmed words and a reader that never runs past its end.

use std::ops::Range;

use super::Corrupt;
use crate::model::U256;

/// Appends `value` as a LEB128 varint (1 to 10 bytes).
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` likewise (1 to 19 bytes).
pub fn put_varint_u128(out: &mut Vec<u8>, mut value: u128) {
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
    /// What is read, and what stands before it: words are read by what lies around them.
    bytes: &'a [u8],
    /// Where the next byte stands; never behind the end.
    at: usize,
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which hold `what` (named in the error).
    #[must_use]
    pub const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, at: 0, what }
    }

    /// Reads a part of `bytes`, which hold `what`.
    pub fn of_part(bytes: &'a [u8], part: Range<usize>, what: &'static str) -> Result<Self, Corrupt> {
        let bytes = bytes
            .get(..part.end)
            .filter(|bytes| part.start <= bytes.len())
            .ok_or(Corrupt(what))?;
        let at = part.start;
        Ok(Self { bytes, at, what })
    }

    /// Names what is read from here on.
    pub const fn holds(&mut self, what: &'static str) {
        self.what = what;
    }

    /// The error that names what was being read.
    #[must_use]
    pub const fn corrupt(&self) -> Corrupt {
        Corrupt(self.what)
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Where it stands in the bytes that were given.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// What is left.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Corrupt> {
        let &byte = self.bytes.get(self.at).ok_or(Corrupt(self.what))?;
        self.at += 1;
        Ok(byte)
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Corrupt> {
        let taken = self.rest().get(..len).ok_or(Corrupt(self.what))?;
        self.at += len;
        Ok(taken)
    }

    /// A reader of the next `len` bytes, which hold `what`.
    #[inline]
    pub fn take_reader(&mut self, len: usize, what: &'static str) -> Result<Self, Corrupt> {
        let at = self.at;
        self.take(len)?;
        let bytes = self.bytes.get(..self.at).ok_or(Corrupt(self.what))?;
        Ok(Self { bytes, at, what })
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let taken = self.rest().first_chunk::<N>().ok_or(Corrupt(self.what))?;
        self.at += N;
        Ok(*taken)
    }

    /// The next varint.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Corrupt> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let second = self.byte()?;
        let value = u64::from(first & 0x7f) | u64::from(second & 0x7f) << 7;
        if second < 0x80 {
            return Ok(value);
        }
        self.longer_varint(value)
    }

    /// The rest of a varint whose first two bytes say `value`.
    fn longer_varint(&mut self, mut value: u64) -> Result<u64, Corrupt> {
        for shift in (14..64).step_by(7) {
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

    /// The next varint of up to 128 bits.
    #[inline]
    pub fn varint_u128(&mut self) -> Result<u128, Corrupt> {
        let mut value = 0;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let low = u128::from(byte & 0x7f);
            if shift == 126 && low > 3 {
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
        if self.is_empty() {
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
    let number = U256::from_be_bytes(*word);
    let (left, right) = (number.leading_zeros() / 8, number.trailing_zeros() / 8);
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

/// Which bytes of a word are kept, for every length: a window that ends in so many ones, or begins with them.
const KEPT: [u8; 96] = {
    let mut kept = [0; 96];
    let mut at = 32;
    while at < 64 {
        kept[at] = 0xff;
        at += 1;
    }
    kept
};

/// Reads a word written by [`put_word`] into `word`.
///
/// Words are most of a log, and a copy of unknown length costs more than the rest of this. So the 32 bytes that end
/// with the word are read (or begin with it), and what is not of it is cleared; near either end of the bytes it is copied.
#[inline(always)]
pub fn read_word(reader: &mut Reader<'_>, word: &mut [u8; 32]) -> Result<(), Corrupt> {
    let tag = reader.byte()?;
    let len = usize::from(tag & 0x3f);
    let start = reader.at;
    let end = start + len;
    if len > 32 || end > reader.bytes.len() {
        return Err(reader.corrupt());
    }
    reader.at = end;
    let (window, kept) = if tag & RIGHT_PADDED == 0 {
        (end.wrapping_sub(32), len)
    } else {
        (start, 64 - len)
    };
    let around = reader.bytes.get(window..).and_then(<[u8]>::first_chunk::<32>);
    let kept = KEPT.get(kept..).and_then(<[u8]>::first_chunk::<32>);
    if let (Some(around), Some(kept)) = (around, kept) {
        for ((byte, around), kept) in word.iter_mut().zip(around).zip(kept) {
            *byte = around & kept;
        }
    } else {
        let stored = reader.bytes.get(start..end).unwrap_or(&[]);
        copy_word(stored, tag & RIGHT_PADDED != 0, word);
    }
    Ok(())
}

/// Makes a word of at most 32 stored bytes.
#[cold]
fn copy_word(stored: &[u8], right_padded: bool, word: &mut [u8; 32]) {
    word.fill(0);
    let zeros = if right_padded { 0 } else { 32 - stored.len() };
    if let Some(kept) = word.get_mut(zeros..zeros + stored.len()) {
        kept.copy_from_slice(stored);
    }
}

/// Appends `count` words written by [`put_word`].
#[inline]
pub fn read_words(reader: &mut Reader<'_>, count: usize, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    // Each word is at least its tag, so this bounds what is made room for.
    if count > reader.rest().len() {
        return Err(reader.corrupt());
    }
    let start = out.len();
    out.resize(start + count * 32, 0);
    let (words, _) = out.get_mut(start..).unwrap_or(&mut []).as_chunks_mut::<32>();
    for word in words {
        read_word(reader, word)?;
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
        fn wide_varints_round_trip(value in any::<u128>(), bits in 0u32..128) {
            let value = value >> bits;
            let mut out = Vec::new();
            put_varint_u128(&mut out, value);
            let mut reader = Reader::new(&out, "test");
            prop_assert_eq!(reader.varint_u128(), Ok(value));
            reader.end().unwrap();
            if let Ok(value) = u64::try_from(value) {
                prop_assert_eq!(Reader::new(&out, "test").varint(), Ok(value));
            }
        }

        #[test]
        fn words_round_trip(mut word in any::<[u8; 32]>(), left in 0usize..33, right in 0usize..33) {
            word[..left].fill(0);
            word[32 - right..].fill(0);
            let mut out = Vec::new();
            put_word(&mut out, &word);
            prop_assert!(out.len() <= 1 + 32 - left.max(right));
            let mut reader = Reader::new(&out, "test");
            let mut read = [0xee; 32];
            read_word(&mut reader, &mut read).unwrap();
            prop_assert_eq!(read, word);
            reader.end().unwrap();
            // Something stands before it, and after it.
            let len = out.len();
            let around = [&[0xee; 40][..], &out, &[0xee; 40]].concat();
            for (before, after) in [(0, 0), (0, 40), (40, 0), (40, 40), (20, 20)] {
                let bytes = around.get(40 - before..40 + len + after).unwrap();
                let mut reader = Reader::of_part(bytes, before..bytes.len(), "test").unwrap();
                read.fill(0xee);
                read_word(&mut reader, &mut read).unwrap();
                prop_assert_eq!(read, word);
                prop_assert_eq!(reader.position(), before + len);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader::new(&bytes, "test");
            while reader.varint().is_ok() {}
            let mut reader = Reader::new(&bytes, "test");
            while reader.varint_u128().is_ok() {}
            let mut reader = Reader::new(&bytes, "test");
            while read_word(&mut reader, &mut [0; 32]).is_ok() {}
        }
    }

    #[test]
    fn an_overlong_varint_is_corrupt() {
        let mut reader = Reader::new(&[0xff; 11], "test");
        assert_eq!(reader.varint(), Err(Corrupt("test")));
        let mut reader = Reader::new(&[0xff; 20], "test");
        assert_eq!(reader.varint_u128(), Err(Corrupt("test")));
        let beyond = [&[0xff; 18][..], &[4]].concat();
        assert_eq!(Reader::new(&beyond, "test").varint_u128(), Err(Corrupt("test")));
    }
}
