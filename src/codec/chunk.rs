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
        put_varint(&mut self.done, self.block);
        put_varint(&mut self.done, self.first_index);
        put_varint(&mut self.done, count);
        self.done.extend_from_slice(&self.rows);
        self.rows.clear();
        self.first_index += count;
        count
    }
}

/// Reads a unit row by row.
#[derive(Clone, Copy, Debug)]
pub struct UnitReader<'a> {
    header: Header,
    next: u64,
    reader: Reader<'a>,
}

/// Where a reader stands in its unit, without holding the bytes.
#[derive(Clone, Copy, Debug)]
pub struct UnitMark {
    header: Header,
    next: u64,
    offset: usize,
}

impl UnitMark {
    /// What stands before the rows.
    #[must_use]
    pub const fn header(&self) -> Header {
        self.header
    }

    /// The place in the unit of the row that comes next.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.next
    }
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

    /// Goes on where a reader of the same `bytes`, which hold `what`, stood.
    pub fn resume(bytes: &'a [u8], mark: UnitMark, what: &'static str) -> Result<Self, Corrupt> {
        let rest = bytes.get(mark.offset..).ok_or(Corrupt(what))?;
        Ok(Self {
            header: mark.header,
            next: mark.next,
            reader: Reader::new(rest, what),
        })
    }

    /// Where the reader stands in `bytes`, which it reads.
    #[must_use]
    pub const fn mark(&self, bytes: &[u8]) -> UnitMark {
        UnitMark {
            header: self.header,
            next: self.next,
            offset: bytes.len() - self.reader.rest().len(),
        }
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

    /// The row at `position` in the unit, counted from the one that comes next onwards.
    pub fn row_at(&mut self, position: u64) -> Result<&'a [u8], Corrupt> {
        while self.next < position {
            if self.next_row()?.is_none() {
                break;
            }
        }
        if self.next != position {
            return Err(self.reader.corrupt());
        }
        self.next_row()?.ok_or(self.reader.corrupt())
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
                if let Some(last) = count.checked_sub(1) {
                    prop_assert_eq!(reader.clone().row_at(last).unwrap(), &rows[back.len() + last as usize][..]);
                }
                // Taken up again before each row.
                let mut mark = reader.mark(value);
                loop {
                    reader = UnitReader::resume(value, mark, "test").unwrap();
                    let Some(row) = reader.next_row().unwrap() else { break };
                    back.push(row.to_vec());
                    mark = reader.mark(value);
                }
            }
            prop_assert_eq!(back, rows);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(mut reader) = UnitReader::new(&bytes, "test") {
                while let Ok(Some(_)) = reader.next_row() {}
            }
        }
    }
}
