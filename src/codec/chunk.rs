//! Units of rows: several rows of one block in one value, each with its length before it.
//!
//! ```text
//! | block varint | place of the first row in the block varint | count varint | (length varint, row)* |
//! ```
//!
//! Used for logs by block, transactions and frames; the key is the ordinal of the last row, so that a
//! seek by ordinal lands in the right unit. Units never span blocks.

use super::Corrupt;
use super::bytes::{Reader, put_varint};

/// What stands before the rows of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Block number.
    pub block: u64,
    /// Place in the block of the first row.
    pub first_index: u64,
    /// Number of rows.
    pub count: u64,
}

/// Collects the rows of one block into units of at most `bytes_max` (one row may be larger by itself).
#[derive(Debug)]
pub struct UnitBuilder {
    block: u64,
    bytes_max: usize,
    first_index: u64,
    count: u64,
    rows: Vec<u8>,
    /// The unit that was given back last.
    done: Vec<u8>,
}

impl UnitBuilder {
    /// A builder for the rows of `block`.
    #[must_use]
    pub const fn new(block: u64, bytes_max: usize) -> Self {
        Self {
            block,
            bytes_max,
            first_index: 0,
            count: 0,
            rows: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Adds a row. Where it does not fit, the unit before it is given back: (rows in it, value).
    pub fn push(&mut self, row: &[u8]) -> Option<(u64, &[u8])> {
        let full = self.count > 0 && self.rows.len() + row.len() > self.bytes_max;
        let done = full.then(|| self.end_unit());
        put_varint(&mut self.rows, row.len() as u64);
        self.rows.extend_from_slice(row);
        self.count += 1;
        done.map(|count| (count, self.done.as_slice()))
    }

    /// Gives back the unit under construction, if it has rows.
    pub fn finish(&mut self) -> Option<(u64, &[u8])> {
        (self.count > 0).then(|| (self.end_unit(), self.done.as_slice()))
    }

    /// Moves the rows into `done`, as a unit; answers how many they are.
    fn end_unit(&mut self) -> u64 {
        let count = std::mem::take(&mut self.count);
        self.done.clear();
        let header = Header {
            block: self.block,
            first_index: self.first_index,
            count,
        };
        put_header(&mut self.done, header);
        self.done.extend_from_slice(&self.rows);
        self.rows.clear();
        self.first_index += count;
        count
    }
}

fn put_header(out: &mut Vec<u8>, header: Header) {
    put_varint(out, header.block);
    put_varint(out, header.first_index);
    put_varint(out, header.count);
}

/// The unit of one row, the one at `index` of `block`.
#[must_use]
pub fn unit_of_row(block: u64, index: u64, row: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.len() + 16);
    let header = Header {
        block,
        first_index: index,
        count: 1,
    };
    put_header(&mut out, header);
    put_varint(&mut out, row.len() as u64);
    out.extend_from_slice(row);
    out
}

/// Reads a unit row by row.
#[derive(Clone, Copy, Debug)]
pub struct UnitReader<'a> {
    header: Header,
    next: u64,
    reader: Reader<'a>,
}

impl<'a> UnitReader<'a> {
    /// Reads the unit in `bytes`, which holds `what`.
    pub fn new(bytes: &'a [u8], what: &'static str) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes, what);
        let header = Header {
            block: reader.varint()?,
            first_index: reader.varint()?,
            count: reader.varint()?,
        };
        if header.count == 0 {
            return Err(reader.corrupt());
        }
        Ok(Self {
            header,
            next: 0,
            reader,
        })
    }

    /// What stands before the rows.
    #[must_use]
    pub const fn header(&self) -> Header {
        self.header
    }

    /// The next row; `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<&'a [u8]>, Corrupt> {
        if self.next == self.header.count {
            self.reader.end()?;
            return Ok(None);
        }
        let len = self.reader.varint_usize()?;
        self.next += 1;
        self.reader.take(len).map(Some)
    }
}

/// Where the rows of a unit begin, as far as they were reached: rows are found again, and those after them.
#[derive(Debug, Default)]
pub struct UnitStarts {
    /// Before the length of each row that was reached, and of the one that comes next; empty without a unit.
    starts: Vec<u32>,
}

impl UnitStarts {
    /// Begins with the unit in `bytes`, which hold `what`; answers what stands before its rows.
    pub fn begin(&mut self, bytes: &[u8], what: &'static str) -> Result<Header, Corrupt> {
        self.starts.clear();
        let unit = UnitReader::new(bytes, what)?;
        // Values are below 4 GiB: RocksDB takes no larger ones.
        self.starts.push(unit.reader.position() as u32);
        Ok(unit.header)
    }

    /// The row at `place` of the same unit, which must have it.
    #[inline(always)]
    pub fn row<'a>(
        &mut self,
        bytes: &'a [u8],
        place: usize,
        what: &'static str,
    ) -> Result<Reader<'a>, Corrupt> {
        let mut reached = place.min(self.starts.len().saturating_sub(1));
        loop {
            let start = *self.starts.get(reached).ok_or(Corrupt(what))?;
            let mut reader = Reader::of_part(bytes, start as usize..bytes.len(), what)?;
            let len = reader.varint_usize()?;
            let row = reader.take_reader(len, what)?;
            reached += 1;
            if reached == self.starts.len() {
                self.starts.push(reader.position() as u32);
            }
            if reached > place {
                return Ok(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn units_give_their_rows_back(
            rows in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..50),
            max in 1usize..200,
        ) {
            let mut builder = UnitBuilder::new(9, max);
            let mut units = Vec::new();
            for row in &rows {
                units.extend(builder.push(row).map(|(count, value)| (count, value.to_vec())));
            }
            units.extend(builder.finish().map(|(count, value)| (count, value.to_vec())));
            prop_assert!(builder.finish().is_none());
            let mut back = Vec::new();
            for (count, value) in &units {
                let mut reader = UnitReader::new(value, "test").unwrap();
                prop_assert_eq!(reader.header(), Header { block: 9, first_index: back.len() as u64, count: *count });
                prop_assert!(value.len() <= max + 60 + 12 + 2 * usize::try_from(*count).unwrap());
                let mut starts = UnitStarts::default();
                prop_assert_eq!(starts.begin(value, "test").unwrap(), reader.header());
                // One far behind, and then from the first on.
                for place in std::iter::once(*count as usize / 2).chain(0..*count as usize) {
                    let row = starts.row(value, place, "test").unwrap();
                    prop_assert_eq!(row.rest(), &rows[back.len() + place][..]);
                }
                prop_assert!(starts.row(value, *count as usize, "test").is_err());
                while let Some(row) = reader.next_row().unwrap() {
                    back.push(row.to_vec());
                }
            }
            prop_assert_eq!(back, rows);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(mut reader) = UnitReader::new(&bytes, "test") {
                while let Ok(Some(_)) = reader.next_row() {}
                let mut starts = UnitStarts::default();
                starts.begin(&bytes, "test").unwrap();
                let _ = starts.row(&bytes, 3, "test");
            }
        }
    }
}
