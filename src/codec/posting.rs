//! Posting chunks: up to [`CHUNK_POSTINGS`] ascending ordinals with the count of those before them.
//!
//! ```text
//! | rank varint | count - 1 varint | first varint | form u8 | rest, by form |
//! ```
//!
//! A single posting ends after `first`, so that a term that occurs once costs little more than its
//! key. The form is chosen by size alone, so that equal postings are equal bytes:
//!
//! * 0, varints of the gaps less one: short lists, and spans beyond 32 bits;
//! * 1, bit-packed: blocks of 128 gaps, each with its width in bits, the rest packed likewise;
//! * 2, a bitmap over the span: dense lists (measured: roaring is larger for all but these).

use bitpacking::{BitPacker, BitPacker4x};

use super::Corrupt;
use super::bytes::{Reader, put_varint, varint_len};

/// Postings in a full chunk. A list's chunks are cut at multiples of it, whatever the order of commits.
pub const CHUNK_POSTINGS: usize = 1024;

const FORM_VARINT: u8 = 0;
const FORM_PACKED: u8 = 1;
const FORM_BITMAP: u8 = 2;
/// Below this many postings, packing saves nothing.
const PACK_FROM: usize = 16;
const BLOCK: usize = BitPacker4x::BLOCK_LEN;
const WHAT: &str = "posting chunk";

/// What stands before the postings of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Postings of the term before this chunk.
    pub rank: u64,
    /// Postings in the chunk, at least one.
    pub count: usize,
    /// The first posting.
    pub first: u64,
}

/// Appends a chunk of `postings`, ascending and not empty, with `rank` postings before it.
pub fn encode(rank: u64, postings: &[u64], out: &mut Vec<u8>) {
    let Some((&first, rest)) = postings.split_first() else {
        return;
    };
    debug_assert!(postings.is_sorted_by(|a, b| a < b), "postings ascend");
    debug_assert!(postings.len() <= CHUNK_POSTINGS, "a chunk is not overfull");
    put_varint(out, rank);
    put_varint(out, rest.len() as u64);
    put_varint(out, first);
    let Some(&last) = rest.last() else { return };
    let span = last - first;
    if postings.len() < PACK_FROM || span > u64::from(u32::MAX) {
        encode_varints(first, rest, out);
        return;
    }
    let bitmap_len = 1 + varint_len(span) + (span as usize).div_ceil(8);
    let start = out.len();
    encode_packed(first, rest, out);
    if bitmap_len < out.len() - start {
        out.truncate(start);
        encode_bitmap(first, rest, span, out);
    }
}

fn encode_varints(first: u64, rest: &[u64], out: &mut Vec<u8>) {
    out.push(FORM_VARINT);
    let mut before = first;
    for &posting in rest {
        put_varint(out, posting - before - 1);
        before = posting;
    }
}

fn encode_packed(first: u64, rest: &[u64], out: &mut Vec<u8>) {
    out.push(FORM_PACKED);
    let packer = BitPacker4x::new();
    let mut before = 0u32;
    let mut blocks = rest.chunks_exact(BLOCK);
    let mut offsets = [0u32; BLOCK];
    let mut packed = [0u8; BLOCK * 4];
    for block in &mut blocks {
        for (offset, &posting) in offsets.iter_mut().zip(block) {
            *offset = (posting - first) as u32;
        }
        let bits = packer.num_bits_strictly_sorted(Some(before), &offsets);
        let len = packer.compress_strictly_sorted(Some(before), &offsets, &mut packed, bits);
        out.push(bits);
        out.extend_from_slice(packed.get(..len).unwrap_or(&[]));
        before = offsets.last().copied().unwrap_or(before);
    }
    let remainder = blocks.remainder();
    if remainder.is_empty() {
        return;
    }
    let mut widest = 0u32;
    let mut previous = before;
    for &posting in remainder {
        let offset = (posting - first) as u32;
        widest |= offset - previous - 1;
        previous = offset;
    }
    let bits = 32 - widest.leading_zeros();
    out.push(bits as u8);
    let (mut pending, mut filled) = (0u64, 0u32);
    let mut previous = before;
    for &posting in remainder {
        let offset = (posting - first) as u32;
        pending |= u64::from(offset - previous - 1) << filled;
        filled += bits;
        previous = offset;
        while filled >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(pending as u8);
    }
}

fn encode_bitmap(first: u64, rest: &[u64], span: u64, out: &mut Vec<u8>) {
    out.push(FORM_BITMAP);
    put_varint(out, span);
    let start = out.len();
    out.resize(start + (span as usize).div_ceil(8), 0);
    for &posting in rest {
        // Bit 0 stands for `first + 1`; `first` itself is in the header.
        let bit = (posting - first - 1) as usize;
        if let Some(byte) = out.get_mut(start + bit / 8) {
            *byte |= 1 << (bit % 8);
        }
    }
}

/// Reads what stands before the postings.
pub fn header(bytes: &[u8]) -> Result<Header, Corrupt> {
    read_header(&mut Reader::new(bytes, WHAT))
}

fn read_header(reader: &mut Reader<'_>) -> Result<Header, Corrupt> {
    let rank = reader.varint()?;
    let count = reader.varint_usize()?.saturating_add(1);
    let first = reader.varint()?;
    if count > CHUNK_POSTINGS {
        return Err(reader.corrupt());
    }
    Ok(Header { rank, count, first })
}

/// Reads a chunk: its header, and its postings into `out` (cleared first).
pub fn decode(bytes: &[u8], out: &mut Vec<u64>) -> Result<Header, Corrupt> {
    let mut reader = Reader::new(bytes, WHAT);
    let header = read_header(&mut reader)?;
    out.clear();
    out.reserve(header.count);
    out.push(header.first);
    if header.count > 1 {
        match reader.byte()? {
            FORM_VARINT => decode_varints(&mut reader, &header, out)?,
            FORM_PACKED => decode_packed(&mut reader, &header, out)?,
            FORM_BITMAP => decode_bitmap(&mut reader, &header, out)?,
            _ => return Err(reader.corrupt()),
        }
    }
    reader.end()?;
    Ok(header)
}

fn decode_varints(reader: &mut Reader<'_>, header: &Header, out: &mut Vec<u64>) -> Result<(), Corrupt> {
    let mut before = header.first;
    for _ in 1..header.count {
        let gap = reader.varint()?;
        before = before
            .checked_add(gap)
            .and_then(|x| x.checked_add(1))
            .ok_or(reader.corrupt())?;
        out.push(before);
    }
    Ok(())
}

fn decode_packed(reader: &mut Reader<'_>, header: &Header, out: &mut Vec<u64>) -> Result<(), Corrupt> {
    let packer = BitPacker4x::new();
    let mut offsets = [0u32; BLOCK];
    let mut before = 0u32;
    let mut left = header.count - 1;
    while left >= BLOCK {
        let bits = reader.byte()?;
        if bits > 32 {
            return Err(reader.corrupt());
        }
        let packed = reader.take(BLOCK * usize::from(bits) / 8)?;
        packer.decompress_strictly_sorted(Some(before), packed, &mut offsets, bits);
        out.extend(
            offsets
                .iter()
                .map(|&offset| header.first.wrapping_add(u64::from(offset))),
        );
        before = offsets.last().copied().unwrap_or(before);
        left -= BLOCK;
    }
    if left > 0 {
        let bits = u32::from(reader.byte()?);
        if bits > 32 {
            return Err(reader.corrupt());
        }
        let packed = reader.take((left * bits as usize).div_ceil(8))?;
        let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        // So that eight bytes can be read wherever a gap begins; no reading waits for the one before it.
        let mut padded = [0u8; (BLOCK - 1) * 4 + 8];
        if let Some(start) = padded.get_mut(..packed.len()) {
            start.copy_from_slice(packed);
        }
        out.extend((0..left).map(|index| {
            let at = index * bits as usize;
            let word = padded.get(at / 8..).and_then(<[u8]>::first_chunk);
            let gap = word.map_or(0, |word| u64::from_le_bytes(*word)) >> (at % 8) & mask;
            before = before.wrapping_add(gap as u32).wrapping_add(1);
            header.first.wrapping_add(u64::from(before))
        }));
    }
    Ok(())
}

fn decode_bitmap(reader: &mut Reader<'_>, header: &Header, out: &mut Vec<u64>) -> Result<(), Corrupt> {
    let span = reader.varint_usize()?;
    let bitmap = reader.take(span.div_ceil(8))?;
    let base = header.first.wrapping_add(1);
    for (index, word) in bitmap.chunks(8).enumerate() {
        let mut bits = match word.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => word
                .iter()
                .rev()
                .fold(0, |bits, &byte| (bits << 8) | u64::from(byte)),
        };
        while bits != 0 {
            let bit = index * 64 + bits.trailing_zeros() as usize;
            out.push(base.wrapping_add(bit as u64));
            bits &= bits - 1;
        }
    }
    if out.len() == header.count {
        Ok(())
    } else {
        Err(reader.corrupt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn postings(gap_bits: u32) -> impl Strategy<Value = (u64, Vec<u64>)> {
        let gaps = proptest::collection::vec(0u64..(1 << gap_bits), 1..=CHUNK_POSTINGS);
        (any::<u32>(), 0u64..1 << 40, gaps).prop_map(|(rank, first, gaps)| {
            let mut postings = Vec::with_capacity(gaps.len());
            let mut next = first;
            for gap in gaps {
                postings.push(next);
                next += gap + 1;
            }
            (u64::from(rank), postings)
        })
    }

    fn round_trip(rank: u64, postings: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(rank, postings, &mut bytes);
        let mut decoded = vec![7];
        let header = decode(&bytes, &mut decoded).unwrap();
        assert_eq!(decoded, postings);
        assert_eq!(
            header,
            Header {
                rank,
                count: postings.len(),
                first: postings[0]
            }
        );
        assert_eq!(super::header(&bytes).unwrap(), header);
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn dense_lists_round_trip((rank, list) in postings(1)) { round_trip(rank, &list); }
        #[test]
        fn ordinary_lists_round_trip((rank, list) in postings(9)) { round_trip(rank, &list); }
        #[test]
        fn sparse_lists_round_trip((rank, list) in postings(33)) { round_trip(rank, &list); }

        #[test]
        fn cut_or_changed_bytes_never_panic((rank, list) in postings(4), cut in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = Vec::new();
            encode(rank, &list, &mut bytes);
            let at = cut.index(bytes.len());
            let mut out = Vec::new();
            prop_assert!(decode(&bytes[..at], &mut out).is_err() || at == 0);
            bytes[at] = byte;
            let _ = decode(&bytes, &mut out);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, &mut Vec::new());
        }
    }

    /// Bit by bit, as docs/SCHEMA.md draws it.
    #[test]
    fn packed_gaps_lie_as_they_are_drawn() {
        let next = |at: &mut u64, place: u64| {
            *at += 1 + place * place * 7919 % 5003;
            Some(*at)
        };
        let list: Vec<u64> = (0..1024).scan(77, next).collect();
        let bytes = round_trip(0, &list);
        let mut reader = Reader::new(&bytes, WHAT);
        let header = read_header(&mut reader).unwrap();
        assert_eq!(reader.byte(), Ok(FORM_PACKED));
        let mut gaps = Vec::new();
        while gaps.len() + 1 < header.count {
            let count = (header.count - 1 - gaps.len()).min(BLOCK);
            let width = usize::from(reader.byte().unwrap());
            let packed = reader.take((count * width).div_ceil(8)).unwrap();
            // Four lanes take turns by words of 32 bits; the rest is one.
            let lanes = if count == BLOCK { 4 } else { 1 };
            gaps.extend((0..count).map(|place| {
                let bits = (0..width).map(|bit| {
                    let in_lane = place / lanes * width + bit;
                    let at = (in_lane / 32 * lanes + place % lanes) * 32 + in_lane % 32;
                    u64::from(packed[at / 8] >> (at % 8) & 1) << bit
                });
                bits.sum::<u64>()
            }));
        }
        reader.end().unwrap();
        let wanted: Vec<u64> = list.windows(2).map(|two| two[1] - two[0] - 1).collect();
        assert_eq!(gaps, wanted);
    }

    #[test]
    fn forms_are_chosen_by_size() {
        let single = round_trip(0, &[1_000_000]);
        assert_eq!(single.len(), 5, "rank, count and the ordinal");
        let all: Vec<u64> = (5..1029).collect();
        assert!(round_trip(3, &all).len() < 20, "all gaps are one: zero bits each");
        let half: Vec<u64> = (0..1024).map(|i| i * 2 + (i % 3 / 2)).collect();
        assert!(round_trip(3, &half).len() < 300, "dense: a bitmap");
        let spread: Vec<u64> = (0..1024).map(|i| i * 1000).collect();
        assert!(round_trip(3, &spread).len() < 1024 * 11 / 8);
    }
}
