//! Log rows, kept twice: by block (canonical) and by emitter (in runs, transaction hash inlined).
//!
//! ```text
//! body             | shape u8 | signature varint (if topics) | topics 1.. as words | data |
//! row by block     | transaction index varint | emitter varint | body |
//! row by emitter   | ordinal gap varint | block gap varint | transaction index * 2 + same varint
//!                  | transaction hash (unless same as the row before) | body |
//! ```
//!
//! `shape` holds the number of topics and whether the data is whole words. Words lose the longer run of
//! zeros at either end ([`put_word`]); other data stands as it is.

use super::Corrupt;
use super::bytes::{Reader, put_varint, put_word, read_word, read_words, varint_len};
use crate::model::{B256, Log, Topics};

const WORDS: u8 = 0x08;
/// What a row is called where it is damaged.
pub const ROW: &str = "log row";

/// Appends the body of a log; `signature` is the id of topic 0.
pub fn encode_body(log: &Log, signature: u32, out: &mut Vec<u8>) {
    let topics = log.topics.as_slice();
    let words = log.data.len().is_multiple_of(32);
    out.push(topics.len() as u8 | if words { WORDS } else { 0 });
    if let Some((_, rest)) = topics.split_first() {
        put_varint(out, u64::from(signature));
        for topic in rest {
            put_word(out, &topic.0);
        }
    }
    if words {
        let (words, _) = log.data.as_chunks::<32>();
        put_varint(out, words.len() as u64);
        for word in words {
            put_word(out, word);
        }
    } else {
        put_varint(out, log.data.len() as u64);
        out.extend_from_slice(&log.data);
    }
}

/// Reads a body to the end of `reader`: topics after the first go into `topics`, the data into `data` (cleared first).
/// Answers the id of topic 0 where there is one; in `topics` the first stays what it was.
#[inline]
pub fn decode_body(
    reader: &mut Reader<'_>,
    topics: &mut Topics,
    data: &mut Vec<u8>,
) -> Result<Option<u32>, Corrupt> {
    let shape = reader.byte()?;
    let count = usize::from(shape & 0x07);
    let rest = topics.rest_of(count).ok_or(reader.corrupt())?;
    let mut signature = None;
    if count > 0 {
        signature = Some(reader.varint_u32()?);
        for slot in rest {
            read_word(reader, &mut slot.0)?;
        }
    }
    data.clear();
    let len = reader.varint_usize()?;
    if shape & WORDS == 0 {
        data.extend_from_slice(reader.take(len)?);
    } else {
        read_words(reader, len, data)?;
    }
    reader.end()?;
    Ok(signature)
}

/// What a row by block says besides its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// Position of the transaction in the block.
    pub transaction_index: u32,
    /// Emitter id.
    pub emitter: u32,
}

/// Appends a row by block around an encoded body.
pub fn encode_block_row(row: BlockRow, body: &[u8], out: &mut Vec<u8>) {
    put_varint(out, u64::from(row.transaction_index));
    put_varint(out, u64::from(row.emitter));
    out.extend_from_slice(body);
}

/// Reads the head of a row by block; the reader then stands before the body.
#[inline(always)]
pub fn decode_block_row(reader: &mut Reader<'_>) -> Result<BlockRow, Corrupt> {
    reader.holds(ROW);
    Ok(BlockRow {
        transaction_index: reader.varint_u32()?,
        emitter: reader.varint_u32()?,
    })
}

/// Where a log of a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunRow {
    /// Log ordinal.
    pub ordinal: u64,
    /// Block number.
    pub block: u64,
    /// Position of the transaction in the block.
    pub transaction_index: u32,
    /// Transaction hash.
    pub transaction_hash: B256,
}

/// What stands before the rows of a run.
///
/// ```text
/// | rank | count | first ordinal | first block | ordinals to the last | blocks to the last
/// | last transaction index | (length, row)* |                         all varints but the rows
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunHeader {
    /// Logs of the emitter before this run.
    pub rank: u64,
    /// Logs in the run.
    pub count: u64,
    /// Ordinal of the first.
    pub first_ordinal: u64,
    /// Block of the first.
    pub first_block: u64,
    /// Ordinal of the last.
    pub last_ordinal: u64,
    /// Block of the last.
    pub last_block: u64,
    /// Transaction index of the last.
    pub last_transaction_index: u32,
}

/// A run under construction, new or taken up again from its stored bytes.
#[derive(Clone, Debug, Default)]
pub struct RunBuilder {
    header: RunHeader,
    rows: Vec<u8>,
}

impl RunBuilder {
    /// An empty run with `rank` logs of the emitter before it.
    #[must_use]
    pub fn new(rank: u64) -> Self {
        Self {
            header: RunHeader {
                rank,
                ..RunHeader::default()
            },
            rows: Vec::new(),
        }
    }

    /// Takes up a stored run.
    pub fn resume(bytes: &[u8]) -> Result<Self, Corrupt> {
        let run = RunReader::new(bytes)?;
        Ok(Self {
            header: run.header,
            rows: run.reader.rest().to_vec(),
        })
    }

    /// What stands before the rows.
    #[must_use]
    pub const fn header(&self) -> &RunHeader {
        &self.header
    }

    /// Bytes held, for accounting.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.rows.len()
    }

    /// Appends a log around its encoded body.
    pub fn push(&mut self, row: &RunRow, body: &[u8]) {
        let header = &mut self.header;
        if header.count == 0 {
            header.first_ordinal = row.ordinal;
            header.first_block = row.block;
            header.last_ordinal = row.ordinal;
            header.last_block = row.block;
        }
        let same = header.count > 0
            && header.last_block == row.block
            && header.last_transaction_index == row.transaction_index;
        let ordinal_gap = row.ordinal - header.last_ordinal;
        let block_gap = row.block - header.last_block;
        let place = u64::from(row.transaction_index) * 2 + u64::from(same);
        let hash_len = if same { 0 } else { 32 };
        let len = varint_len(ordinal_gap) + varint_len(block_gap) + varint_len(place) + hash_len + body.len();
        put_varint(&mut self.rows, len as u64);
        put_varint(&mut self.rows, ordinal_gap);
        put_varint(&mut self.rows, block_gap);
        put_varint(&mut self.rows, place);
        if !same {
            self.rows.extend_from_slice(row.transaction_hash.as_slice());
        }
        self.rows.extend_from_slice(body);
        header.count += 1;
        header.last_ordinal = row.ordinal;
        header.last_block = row.block;
        header.last_transaction_index = row.transaction_index;
    }

    /// Appends the logs of a run that follows; the bytes are those of pushing them one by one. One that does not follow is
    /// damaged.
    pub fn append(&mut self, next: &Self) -> Result<(), Corrupt> {
        let mut rows = next.reader();
        let Some((row, mut body)) = rows.next_row()? else {
            return Ok(());
        };
        let follows = row.ordinal >= self.header.last_ordinal && row.block >= self.header.last_block;
        let ends = next.header.last_ordinal >= row.ordinal && next.header.last_block >= row.block;
        let count = self.header.count.checked_add(next.header.count);
        let (Some(count), true) = (count, ends && (follows || self.header.count == 0)) else {
            return Err(body.corrupt());
        };
        // Only the first row leans on what stands before it.
        let bytes = body.take(body.rest().len())?;
        self.push(&row, bytes);
        self.rows.extend_from_slice(rows.reader.rest());
        self.header.count = count;
        self.header.last_ordinal = next.header.last_ordinal;
        self.header.last_block = next.header.last_block;
        self.header.last_transaction_index = next.header.last_transaction_index;
        Ok(())
    }

    /// Reads the run as far as it is.
    #[must_use]
    pub fn reader(&self) -> RunReader<'_> {
        RunReader::of(self.header, Reader::new(&self.rows, "run of logs"))
    }

    /// The run as it is stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.rows.len() + 32);
        self.encode_into(&mut out);
        out
    }

    /// Appends the run as it is stored.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let header = &self.header;
        put_varint(out, header.rank);
        put_varint(out, header.count);
        put_varint(out, header.first_ordinal);
        put_varint(out, header.first_block);
        put_varint(out, header.last_ordinal - header.first_ordinal);
        put_varint(out, header.last_block - header.first_block);
        put_varint(out, u64::from(header.last_transaction_index));
        out.extend_from_slice(&self.rows);
    }
}

/// A log of a run where it is stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredRow<'a> {
    /// Log ordinal.
    pub ordinal: u64,
    /// Block number.
    pub block: u64,
    /// Position of the transaction in the block.
    pub transaction_index: u32,
    /// Transaction hash.
    pub transaction_hash: &'a [u8; 32],
    /// Stands before its body, which ends where it does.
    pub body: Reader<'a>,
}

/// Reads a run row by row.
#[derive(Clone, Debug)]
pub struct RunReader<'a> {
    header: RunHeader,
    ordinal: u64,
    block: u64,
    /// The hash that was read last.
    hash: Option<&'a [u8; 32]>,
    next: u64,
    reader: Reader<'a>,
}

impl<'a> RunReader<'a> {
    /// Reads the run in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes, "run of logs");
        let mut header = RunHeader {
            rank: reader.varint()?,
            count: reader.varint()?,
            first_ordinal: reader.varint()?,
            first_block: reader.varint()?,
            ..RunHeader::default()
        };
        let (ordinals, blocks) = (reader.varint()?, reader.varint()?);
        let last = |first: u64, more| first.checked_add(more).ok_or(reader.corrupt());
        header.last_ordinal = last(header.first_ordinal, ordinals)?;
        header.last_block = last(header.first_block, blocks)?;
        header.last_transaction_index = reader.varint_u32()?;
        // A row has bytes, and no list has so many logs that one more could not be counted.
        if header.count > reader.rest().len() as u64 || header.rank > u64::MAX / 2 {
            return Err(reader.corrupt());
        }
        Ok(Self::of(header, reader))
    }

    fn of(header: RunHeader, reader: Reader<'a>) -> Self {
        Self {
            header,
            ordinal: header.first_ordinal,
            block: header.first_block,
            hash: None,
            next: 0,
            reader,
        }
    }

    /// What stands before the rows.
    #[must_use]
    pub const fn header(&self) -> &RunHeader {
        &self.header
    }

    /// The next log and a reader that stands before its body; `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<(RunRow, Reader<'a>)>, Corrupt> {
        let stored = self.next_stored()?;
        Ok(stored.map(|stored| {
            let row = RunRow {
                ordinal: stored.ordinal,
                block: stored.block,
                transaction_index: stored.transaction_index,
                transaction_hash: B256::from(stored.transaction_hash),
            };
            (row, stored.body)
        }))
    }

    /// The next log where it is stored; `None` at the end.
    #[inline]
    pub fn next_stored(&mut self) -> Result<Option<StoredRow<'a>>, Corrupt> {
        if self.next == self.header.count {
            self.reader.end()?;
            return Ok(None);
        }
        let len = self.reader.varint_usize()?;
        let mut row = self.reader.take_reader(len, ROW)?;
        self.ordinal = self.ordinal.wrapping_add(row.varint()?);
        self.block = self.block.wrapping_add(row.varint()?);
        let place = row.varint()?;
        let transaction_index = u32::try_from(place / 2).map_err(|_| row.corrupt())?;
        if place & 1 == 0 {
            let hash = row.take(32)?;
            self.hash = hash.first_chunk();
        }
        self.next += 1;
        Ok(Some(StoredRow {
            ordinal: self.ordinal,
            block: self.block,
            transaction_index,
            // The first row of a run has one.
            transaction_hash: self.hash.ok_or(row.corrupt())?,
            body: row,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..150)) {
            let (mut topics, mut data) = (Topics::default(), Vec::new());
            if let Ok(mut run) = RunReader::new(&bytes) {
                while let Ok(Some((_, mut row))) = run.next_row() {
                    let _ = decode_body(&mut row, &mut topics, &mut data);
                }
            }
            let mut row = Reader::new(&bytes, ROW);
            if decode_block_row(&mut row).is_ok() {
                let _ = decode_body(&mut row, &mut topics, &mut data);
            }
        }
    }
}
