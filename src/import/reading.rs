//! Reading files of entries: however long the file is, one entry is in memory.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::value::RawValue;

use super::ImportError;
use super::elements::{Elements, Names, Outline};
use super::words::json_fault;

/// The longest entry. Prices take less than a hundred bytes.
pub(super) const ENTRY_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a read, and between two words on how far it is.
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

    /// The parser's words alone do not tell what it took the file for.
    fn not_json(&self, error: &serde_json::Error) -> ImportError {
        let fault = json_fault(error);
        self.malformed(match error.is_syntax() || error.is_eof() {
            true => format!("it is not JSON: {fault}"),
            false => fault,
        })
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
        let (mut line, mut number, mut read, mut told) = (Vec::new(), 0, 0, 0);
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
            if read - told >= BUFFER as u64 {
                told = read;
                progress(read);
            }
            if !text.is_empty() {
                each(number, text)?;
            }
        }
    }

    /// Hands every entry of a JSON file to `each`, with its number from 1: the elements of an array, those of an array
    /// in an object, under a name, or an object as a whole. Answers which of these the file is.
    pub(super) fn elements(
        &self,
        file: &mut dyn ReadSeek,
        names: Option<Names>,
        progress: &dyn Fn(u64),
        each: Each<'_>,
    ) -> Result<Outline, ImportError> {
        self.rewind(file)?;
        let bounds = Bounds::default();
        let bounded = Bounded {
            file,
            bounds: &bounds,
            begun: Vec::new(),
        };
        let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, bounded));
        let (mut failed, mut told) = (None, 0);
        let elements = Elements {
            names,
            bounds: &bounds,
            each: &mut |number, element| {
                if bounds.read.get() > told {
                    told = bounds.read.get();
                    progress(told);
                }
                if element.get().len() as u64 > ENTRY_BYTES_MAX {
                    return Err(self.malformed(format!("entry {number} {TOO_LONG}")));
                }
                each(number, element)
            },
            failed: &mut failed,
        };
        let outcome = elements.read(&mut json).and_then(|outline| {
            json.end()?;
            Ok(outline)
        });
        let outline = match (failed, outcome) {
            (Some(error), _) => return Err(error),
            (None, Ok(outline)) => outline,
            (None, Err(error)) => {
                return Err(match error.io_error_kind() {
                    Some(io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidData) | None => {
                        self.not_json(&error)
                    }
                    Some(kind) => ImportError::read(self.path)(kind.into()),
                });
            }
        };
        if outline == Outline::Entry {
            self.whole(file, each)?;
        }
        Ok(outline)
    }

    /// Hands the whole file to `each` as its only entry.
    fn whole(&self, file: &mut dyn ReadSeek, each: Each<'_>) -> Result<(), ImportError> {
        self.rewind(file)?;
        let mut text = String::new();
        file.take(ENTRY_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(ImportError::read(self.path))?;
        if text.len() as u64 > ENTRY_BYTES_MAX {
            return Err(self.malformed(format!("its only entry {TOO_LONG}")));
        }
        let entry: &RawValue = serde_json::from_str(&text).map_err(|error| self.not_json(&error))?;
        each(1, entry)
    }
}

/// Takes an entry of JSON and its number.
type Each<'a> = &'a mut dyn FnMut(u64, &RawValue) -> Result<(), ImportError>;

/// What is said of an entry beyond the bound.
const TOO_LONG: &str = "is longer than 1048576 bytes";

/// How much was read, and how much of it may be held.
#[derive(Default)]
pub(super) struct Bounds {
    read: Cell<u64>,
    /// Read since the last entry ended.
    since: Cell<u64>,
    /// What is read now is not kept, and may be of any length.
    passing_over: Cell<bool>,
}

impl Bounds {
    /// An entry, or what stands between entries, begins or ends.
    pub(super) fn begin(&self, passing_over: bool) {
        self.since.set(0);
        self.passing_over.set(passing_over);
    }
}

/// Counts what is read, sees that it is UTF-8, and ends with an error where no entry ended for long.
struct Bounded<'a> {
    file: &'a mut dyn ReadSeek,
    bounds: &'a Bounds,
    /// A character whose end is not read yet.
    begun: Vec<u8>,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bounds = self.bounds;
        if bounds.since.get() > ENTRY_BYTES_MAX && !bounds.passing_over.get() {
            let reason = format!("an entry {TOO_LONG}");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
        }
        let len = self.file.read(buffer)?;
        bounds.read.set(bounds.read.get() + len as u64);
        bounds.since.set(bounds.since.get() + len as u64);
        if !is_text(&mut self.begun, buffer.get(..len).unwrap_or_default()) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"));
        }
        Ok(len)
    }
}

/// Whether `bytes` go on with UTF-8 behind the character in `begun`, which takes the one that they break off in.
fn is_text(begun: &mut Vec<u8>, mut bytes: &[u8]) -> bool {
    let breaks_off = |error: std::str::Utf8Error| error.error_len().is_none();
    while let (false, Some((first, rest))) = (begun.is_empty(), bytes.split_first()) {
        begun.push(*first);
        bytes = rest;
        match std::str::from_utf8(begun) {
            Ok(_) => begun.clear(),
            Err(error) if breaks_off(error) => {}
            Err(_) => return false,
        }
    }
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => {
            begun.extend_from_slice(bytes.get(error.valid_up_to()..).unwrap_or_default());
            breaks_off(error)
        }
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const NAMES: Names = Names {
        list: "tokens",
        entry: "address",
    };

    /// What kind of file a text is, and its entries.
    fn read(text: &[u8]) -> Result<(Outline, Vec<String>), String> {
        let mut file = Cursor::new(text);
        let source = Source::look(Path::new("file"), &mut file).unwrap();
        let mut entries = Vec::new();
        let outline = source
            .elements(&mut file, Some(NAMES), &|_| {}, &mut |number, entry| {
                entries.push(entry.get().to_owned());
                assert_eq!(number, entries.len() as u64);
                Ok(())
            })
            .map_err(|error| error.to_string())?;
        Ok((outline, entries))
    }

    #[test]
    fn entries_wherever_they_stand() {
        let two = vec!["{\"a\":1}".to_owned(), "5".to_owned()];
        for (text, outline, entries) in [
            ("\u{feff} [{\"a\":1}, 5]", Outline::Array, two.clone()),
            (
                "{\"tokens\": [{\"a\":1}, 5], \"tags\": {\"tokens\": [7]}, \"address\": 1}",
                Outline::List,
                two.clone(),
            ),
            (
                "{\"name\": \"x\", \"version\": {\"major\": [1]}, \"tokens\": [{\"a\":1}, 5]}",
                Outline::List,
                two,
            ),
            ("{\"tokens\": []}", Outline::List, Vec::new()),
            (
                "{\"symbol\": 1, \"address\": 2}",
                Outline::Entry,
                vec!["{\"symbol\": 1, \"address\": 2}".to_owned()],
            ),
            ("{\"a\": 1}", Outline::Neither, Vec::new()),
        ] {
            assert_eq!(read(text.as_bytes()), Ok((outline, entries)), "{text}");
        }
        for (text, why) in [
            (
                "{\"tokens\": [1], \"tokens\": [1]}",
                "`tokens` stands there twice",
            ),
            ("{\"tokens\": {}}", "an object stands where an array belongs"),
            ("{\"tokens\": 5}", "the number 5 stands where an array belongs"),
            ("5", "the number 5 stands where"),
            ("{\"tokens\": [1], ", "EOF"),
            ("{\"tokens\": [1]} x", "trailing"),
            // Not JSON at all.
            ("time,asset,usd\n", "it is not JSON: expected "),
            ("", "it is not JSON: EOF "),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn only_entries_are_bounded() {
        let (most, long) = (ENTRY_BYTES_MAX as usize, "x".repeat(3 << 20));
        // What is not kept may be of any length, before the list and behind it.
        let text = format!("{{\"a\": \"{long}\", \"tokens\": [1], \"b\": [\"{long}\"]}}");
        assert_eq!(read(text.as_bytes()), Ok((Outline::List, vec!["1".to_owned()])));
        // To the byte.
        let entry = |len: usize| format!("{{\"address\":\"{}\"}}", "x".repeat(len - 14));
        for (len, fits) in [(most, true), (most + 1, false)] {
            for text in [
                format!("[1, {}, 2]", entry(len)),
                format!("{{\"tokens\":[{}]}}", entry(len)),
                entry(len),
            ] {
                let outcome = read(text.as_bytes());
                assert_eq!(outcome.is_ok(), fits, "{len}");
                if let Err(error) = outcome {
                    assert!(error.contains("longer than 1048576 bytes"), "{error}");
                }
            }
        }
        // A name is kept while it is read.
        let error = read(format!("{{\"{long}\": 1}}").as_bytes()).unwrap_err();
        assert!(error.contains("longer than"), "{error}");
    }

    #[test]
    fn text_that_reads_break_apart() {
        let text = "a\u{e9}\u{20ac}\u{1f600}b".as_bytes();
        for step in 1..text.len() {
            let mut begun = Vec::new();
            assert!(text.chunks(step).all(|part| is_text(&mut begun, part)), "{step}");
            assert!(begun.is_empty());
        }
        for bad in [&b"\xff"[..], b"a\xe2\x28\xa1", b"\xc3("] {
            for step in 1..=bad.len() {
                let mut begun = Vec::new();
                assert!(!bad.chunks(step).all(|part| is_text(&mut begun, part)), "{bad:?}");
            }
        }
        // In a part that nobody keeps too.
        let error = read(b"{\"a\": \"\xff\", \"tokens\": []}").unwrap_err();
        assert!(error.contains("it is not UTF-8"), "{error}");
    }
}
