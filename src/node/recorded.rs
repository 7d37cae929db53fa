//! Recorded chains: JSON lines, one block a line, zstd-compressed or plain.
//!
//! A line is `{"block":...,"receipts":[...],"traces":[...]}`, each the node's own JSON. Also read:
//! `callTraces` (`[{"txHash","result"}]`, used when `traces` is absent or `null`) and `uncleHeaders`
//! (headers, or pairs `[miner, number]`). Other keys are passed over. Reading lines and parsing them are
//! two steps, so that parsing can be spread over threads.

use super::reader::{Fault, FromJson, Reader, read};
use super::wire::{self, WireError};
use crate::model::Bundle;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The first four bytes of a zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The first four bytes of a skippable zstd frame, the lowest half-byte of the first being free.
const ZSTD_SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// No block of any known chain comes near to it; a longer line is refused instead of filling the memory.
const LINE_BYTES_MAX: u64 = 1 << 30;

/// No more room than this is taken before a line is seen.
const ROOM_MAX: usize = 1 << 22;

/// Why a recorded chain cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// The file cannot be opened.
    #[error("cannot open recorded chain {path}: {source}", path = .path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The bytes end early or are damaged.
    #[error("recorded chain line {line}: {source}")]
    Read {
        /// Line number, from 1.
        line: u64,
        /// What reading said.
        source: io::Error,
    },
    /// A line is longer than any block.
    #[error("recorded chain line {line}: longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong {
        /// Line number, from 1.
        line: u64,
    },
    /// A line is not a recorded block.
    #[error("recorded chain line {line}: {reason}")]
    Line {
        /// Line number, from 1; 0 when parsed without a number.
        line: u64,
        /// What is wrong.
        reason: LineError,
    },
}

/// What is wrong with one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Not a JSON object.
    #[error("not a recorded block: {0}")]
    NotJson(String),
    /// `block` is absent or `null`.
    #[error("field `block` is missing")]
    NoBlock,
    /// `receipts` is absent or `null` though the block has transactions.
    #[error("block {number} has {transactions} transactions and no `receipts`")]
    NoReceipts {
        /// Block number.
        number: u64,
        /// Number of its transactions.
        transactions: usize,
    },
    /// Block, receipts or traces are malformed.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// The parts of a line, each of them still text; those that are `null` are absent.
#[derive(Default)]
struct LineWire<'a> {
    block: Option<&'a str>,
    receipts: Option<&'a str>,
    traces: Option<&'a str>,
    call_traces: Option<&'a str>,
    uncle_headers: Vec<&'a str>,
}

impl<'a> FromJson<'a> for LineWire<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let mut line = Self::default();
        reader.object(|reader, key| {
            let place = match key {
                "block" => &mut line.block,
                "receipts" => &mut line.receipts,
                "traces" => &mut line.traces,
                "callTraces" => &mut line.call_traces,
                "uncleHeaders" if !line.uncle_headers.is_empty() => {
                    return Err(Fault::new("two fields `uncleHeaders`"));
                }
                "uncleHeaders" if reader.null() => return Ok(()),
                "uncleHeaders" => {
                    return reader.array(|reader| {
                        line.uncle_headers.push(reader.extent()?);
                        Ok(())
                    });
                }
                _ => return reader.skip(),
            };
            if place.is_some() {
                return Err(Fault::new(format_args!("two fields `{key}`")));
            }
            if !reader.null() {
                *place = Some(reader.extent()?);
            }
            Ok(())
        })?;
        Ok(line)
    }
}

/// One line of a recorded chain, not yet parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedLine {
    /// Line number, from 1.
    pub number: u64,
    /// The text.
    pub text: String,
}

impl RecordedLine {
    /// Parses the line.
    ///
    /// # Errors
    ///
    /// When it is not a recorded block; the error names the line.
    pub fn parse(&self) -> Result<Bundle, RecordedError> {
        parse_line(&self.text).map_err(|reason| RecordedError::Line {
            line: self.number,
            reason,
        })
    }
}

/// Parses the text of one line.
///
/// # Errors
///
/// When it is not a recorded block.
pub fn parse_line(text: &str) -> Result<Bundle, LineError> {
    let line: LineWire<'_> = read(text).map_err(|fault| LineError::NotJson(fault.to_string()))?;
    let mut block = wire::block(line.block.ok_or(LineError::NoBlock)?)?;
    for header in line.uncle_headers {
        block.uncle_headers.push(wire::uncle_header(header)?);
    }
    let receipts = match line.receipts {
        Some(receipts) => wire::receipts(receipts, &block)?,
        None if block.transactions.is_empty() => Vec::new(),
        None => {
            return Err(LineError::NoReceipts {
                number: block.number(),
                transactions: block.transactions.len(),
            });
        }
    };
    let told = match (line.traces, line.call_traces) {
        (Some(traces), _) => Some(wire::told_traces(traces, &block)?),
        (None, Some(traces)) => Some(wire::told_calls(traces, &block)?),
        (None, None) => None,
    };
    let mut bundle = Bundle {
        block,
        receipts,
        traces: None,
        openings: None,
    };
    if let Some(told) = told {
        if let Some(gap) = told.gap {
            tracing::warn!(number = bundle.block.number(), %gap, "a recorded block seems to lack frames: taken as it is");
        }
        bundle.traces = Some(told.traces);
        wire::settle(&mut bundle, &told.untold)?;
    }
    Ok(bundle)
}

/// A recorded chain that is read line by line; an iterator that ends after the first error.
pub struct RecordedChain {
    lines: Box<dyn BufRead + Send>,
    number: u64,
    ended: bool,
    /// Bytes that the next line may be expected to have.
    room: usize,
}

impl std::fmt::Debug for RecordedChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordedChain")
            .field("line", &self.number)
            .finish_non_exhaustive()
    }
}

impl RecordedChain {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// When it cannot be opened or its first bytes cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RecordedError> {
        let path = path.as_ref();
        // It is read more than once, and opening a pipe that nobody writes would not end.
        let is_file = path.metadata().and_then(|about| match about.is_file() {
            true => Ok(()),
            false => Err(io::Error::other(
                "it is no regular file, and is read more than once",
            )),
        });
        is_file
            .and_then(|()| File::open(path))
            .and_then(Self::sniff)
            .map_err(|source| RecordedError::Open {
                path: path.to_owned(),
                source,
            })
    }

    /// Reads from any source of bytes, such as bytes that are part of the binary.
    ///
    /// # Errors
    ///
    /// When the first bytes cannot be read.
    pub fn from_reader(reader: impl Read + Send + 'static) -> Result<Self, RecordedError> {
        Self::sniff(reader).map_err(|source| RecordedError::Read { line: 1, source })
    }

    fn sniff(mut reader: impl Read + Send + 'static) -> io::Result<Self> {
        let mut head = Vec::with_capacity(ZSTD_MAGIC.len());
        reader
            .by_ref()
            .take(ZSTD_MAGIC.len() as u64)
            .read_to_end(&mut head)?;
        let skippable = matches!(head.as_slice(), [first, rest @ ..] if first & 0xf0 == ZSTD_SKIPPABLE[0]
            && *rest == ZSTD_SKIPPABLE[1..]);
        let compressed = head == ZSTD_MAGIC || skippable;
        let whole = io::Cursor::new(head).chain(reader);
        let lines: Box<dyn BufRead + Send> = if compressed {
            let mut decoder = zstd::Decoder::new(whole)?;
            // Long-distance matching of `zstd --ultra --long=31` needs as much.
            decoder.window_log_max(31)?;
            Box::new(BufReader::with_capacity(1 << 18, decoder))
        } else {
            Box::new(BufReader::with_capacity(1 << 18, whole))
        };
        Ok(Self {
            lines,
            number: 0,
            ended: false,
            room: 0,
        })
    }

    /// The next line that is not blank; `None` at the end.
    fn next_line(&mut self) -> Result<Option<RecordedLine>, RecordedError> {
        loop {
            self.number += 1;
            let line = self.number;
            // Lines of a chain are alike: room for the longest of late, lest it is copied as it grows.
            let mut bytes = Vec::with_capacity(self.room);
            let read = (&mut self.lines)
                .take(LINE_BYTES_MAX + 1)
                .read_until(b'\n', &mut bytes)
                .map_err(|source| RecordedError::Read { line, source })?;
            if read == 0 {
                return Ok(None);
            }
            if LINE_BYTES_MAX < bytes.len() as u64 {
                return Err(RecordedError::LineTooLong { line });
            }
            self.room = bytes.len().max(self.room - self.room / 8).min(ROOM_MAX);
            let mut text = String::from_utf8(bytes).map_err(|error| RecordedError::Read {
                line,
                source: io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()),
            })?;
            text.truncate(text.trim_end().len());
            if !text.is_empty() {
                return Ok(Some(RecordedLine { number: line, text }));
            }
        }
    }
}

impl Iterator for RecordedChain {
    type Item = Result<RecordedLine, RecordedError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let item = self.next_line().transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}
