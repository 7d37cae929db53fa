//! Reading files of entries: however long the file is, one entry is in memory.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::ImportError;

/// The longest entry. Prices take less than a hundred bytes.
const ENTRY_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a read.
const BUFFER: usize = 128 << 10;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Csv,
    Json,
}

/// A file that may be read several times.
pub(super) struct Source<'a> {
    path: &'a Path,
    /// Where its text begins, behind a byte order mark.
    start: u64,
    pub(super) size: u64,
    pub(super) form: Form,
}

/// Anything that can be read twice.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

impl<'a> Source<'a> {
    /// Looks at the beginning of a file.
    pub(super) fn look(path: &'a Path, file: &mut dyn ReadSeek) -> Result<Self, ImportError> {
        let failed = ImportError::read(path);
        let look = |file: &mut dyn ReadSeek| {
            let size = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(0))?;
            let mut head = Vec::new();
            file.take(4096).read_to_end(&mut head)?;
            Ok((size, head))
        };
        let (size, head) = look(file).map_err(failed)?;
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
        let form = match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[' | b'{') => Form::Json,
            _ => Form::Csv,
        };
        Ok(Self {
            path,
            start: (head.len() - text.len()) as u64,
            size,
            form,
        })
    }

    /// The file is not what it should be.
    pub(super) fn malformed(&self, reason: impl Into<String>) -> ImportError {
        ImportError::Malformed {
            path: self.path.to_path_buf(),
            reason: reason.into(),
        }
    }

    fn rewind(&self, file: &mut dyn ReadSeek) -> Result<(), ImportError> {
        file.seek(SeekFrom::Start(self.start))
            .map(drop)
            .map_err(ImportError::read(self.path))
    }

    /// Hands every line that is not blank to `each`, with its number from 1 and without its end.
    pub(super) fn lines(
        &self,
        file: &mut dyn ReadSeek,
        progress: &dyn Fn(u64),
        mut each: impl FnMut(u64, &str) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.rewind(file)?;
        let mut reader = BufReader::with_capacity(BUFFER, file);
        let (mut line, mut number, mut read) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            number += 1;
            let len = (&mut reader)
                .take(ENTRY_BYTES_MAX)
                .read_until(b'\n', &mut line)
                .map_err(ImportError::read(self.path))?;
            if len == 0 {
                return Ok(());
            }
            if len as u64 == ENTRY_BYTES_MAX && line.last() != Some(&b'\n') {
                return Err(self.malformed(format!("line {number} is longer than {ENTRY_BYTES_MAX} bytes")));
            }
            read += len as u64;
            let text = std::str::from_utf8(&line)
                .map_err(|_| self.malformed(format!("line {number} is not UTF-8")))?
                .trim();
            progress(read);
            if !text.is_empty() {
                each(number, text)?;
            }
        }
    }

    /// Hands every element of the array that the file is to `each`, with its number from 1.
    pub(super) fn elements(
        &self,
        file: &mut dyn ReadSeek,
        progress: &dyn Fn(u64),
        each: &mut dyn FnMut(u64, &RawValue) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.rewind(file)?;
        let (read, since) = (Cell::new(0), Cell::new(0));
        let bounded = Bounded {
            file,
            read: &read,
            since: &since,
        };
        let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, bounded));
        let mut failed = None;
        let array = Array {
            each: &mut |number, element| {
                since.set(0);
                progress(read.get());
                each(number, element)
            },
            failed: &mut failed,
        };
        let outcome = array.deserialize(&mut json).and_then(|()| json.end());
        match (failed, outcome) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(()),
            (None, Err(error)) => match error.io_error_kind() {
                Some(io::ErrorKind::FileTooLarge) | None => Err(self.malformed(error.to_string())),
                Some(kind) => Err(ImportError::read(self.path)(kind.into())),
            },
        }
    }
}

/// Counts what is read, and ends with an error where no element ended for long.
struct Bounded<'a> {
    file: &'a mut dyn ReadSeek,
    read: &'a Cell<u64>,
    since: &'a Cell<u64>,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since.get() > ENTRY_BYTES_MAX {
            let reason = format!("an entry is longer than {ENTRY_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
        }
        let len = self.file.read(buffer)?;
        self.read.set(self.read.get() + len as u64);
        self.since.set(self.since.get() + len as u64);
        Ok(len)
    }
}

/// An array whose elements are handed out as they come.
struct Array<'a> {
    each: &'a mut dyn FnMut(u64, &RawValue) -> Result<(), ImportError>,
    failed: &'a mut Option<ImportError>,
}

impl<'de> DeserializeSeed<'de> for Array<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Array<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(element) = elements.next_element::<Box<RawValue>>()? {
            number += 1;
            if let Err(error) = (self.each)(number, &element) {
                *self.failed = Some(error);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

/// A scalar as it stands: text without its quotes, or the digits of a number; `None` for anything else.
pub(super) fn scalar(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'-' | b'0'..=b'9' => Some(value.get().to_owned()),
        _ => None,
    }
}
