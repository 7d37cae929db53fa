//! Dated prices, as CSV or JSON.
//!
//! CSV has the header `time,asset,usd`; JSON is an array of objects with these names. `time` is Unix seconds, or
//! `yyyy-MM-dd`, which is that day's first second in UTC; `asset` is `native`, `stable` or the address of a token; `usd` is an
//! exact decimal. A price holds from its time until the next one. Of several prices of an asset and a time the last one
//! stays.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::reading::{Form, ReadSeek, Source, scalar};
use super::words::{json_fault_within, short};
use super::{ImportError, Report, Target, Watcher};
use crate::codec::imported::prices::{encode_price, price_key};
use crate::model::{AddressFault, Asset, Day, Usd, written_address};
use crate::store::ImportWriter;

/// Entries looked up at once.
const BATCH: usize = 20_000;
/// Of these, how many may wait for more before they are written: one that stands in the file again, further on, is then written
/// once, or not at all where it is there already.
const WAITING: usize = BATCH / 2;
/// The last second of the year 9999; later numbers are milliseconds by mistake.
const TIME_MAX: u64 = 253_402_300_799;
/// The columns.
const HEADER: [&str; 3] = ["time", "asset", "usd"];
/// What is said of a line with a carriage return inside: what stands behind it would be taken for another line's.
const CARRIAGE_RETURN: &str = "a carriage return stands in it: lines end with LF or CRLF";

/// Imports a file of prices.
///
/// # Errors
/// A file that is broken as a whole: nothing is written then. Entries that are refused are told to the watcher.
pub fn prices(target: &Target, path: &Path, watcher: &dyn Watcher) -> Result<Report, ImportError> {
    let mut file = File::open(path).map_err(ImportError::read(path))?;
    prices_of(target, path, &mut file, watcher)
}

/// Imports prices out of what is open already; `path` is what messages call it.
pub fn prices_of(
    target: &Target,
    path: &Path,
    file: &mut dyn ReadSeek,
    watcher: &dyn Watcher,
) -> Result<Report, ImportError> {
    let source = Source::look(path, file)?;
    let all = Some(2 * source.size);
    // The first reading only shows that the file is whole.
    read(&source, file, &|done| watcher.progress(done, all), &mut |_, _| {
        stop_if_asked(watcher)
    })?;
    let mut report = Report::default();
    let mut batch = BTreeMap::new();
    let progress = |done| watcher.progress(source.size + done, all);
    let outcome = read(&source, file, &progress, &mut |place, entry| {
        match entry {
            Ok(Price { asset, time, usd }) => {
                report.taken += 1;
                batch.insert(price_key(asset, time), Some(encode_price(usd)));
            }
            Err(reason) => {
                report.rejected += 1;
                watcher.rejected(&place(), &reason);
            }
        }
        if batch.len() >= BATCH {
            report.changed += write(&target.writer, &mut batch, WAITING)?;
            stop_if_asked(watcher)?;
        }
        Ok(())
    });
    // What was taken before it was stopped stays.
    if matches!(outcome, Ok(()) | Err(ImportError::Interrupted)) {
        report.changed += write(&target.writer, &mut batch, 0)?;
    }
    outcome.map(|()| report)
}

fn stop_if_asked(watcher: &dyn Watcher) -> Result<(), ImportError> {
    if watcher.stopped() {
        return Err(ImportError::Interrupted);
    }
    Ok(())
}

/// Writes what is not there already, where that is more than `waiting`; else it stays in the batch.
fn write(
    writer: &ImportWriter,
    batch: &mut BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    waiting: usize,
) -> Result<u64, ImportError> {
    let rows: Vec<_> = std::mem::take(batch).into_iter().collect();
    let news = writer.are_news(&rows)?;
    let news = rows.into_iter().zip(news).filter(|(_, is_news)| *is_news);
    let news: Vec<_> = news.map(|(row, _)| row).collect();
    if news.len() > waiting {
        return Ok(writer.put(&news)? as u64);
    }
    batch.extend(news);
    Ok(0)
}

/// An entry that is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Price {
    asset: Asset,
    time: u64,
    usd: Usd,
}

/// Takes an entry: what names its place, and the entry or what is wrong with it.
type Each<'a> = &'a mut dyn FnMut(&dyn Fn() -> String, Result<Price, String>) -> Result<(), ImportError>;

fn read(
    source: &Source<'_>,
    file: &mut dyn ReadSeek,
    progress: &dyn Fn(u64),
    each: Each<'_>,
) -> Result<(), ImportError> {
    match source.form {
        Form::Json => {
            let mut entry =
                |number, element: &RawValue| each(&|| format!("entry {number}"), of_json(element));
            source.elements(file, None, progress, &mut entry).map(drop)
        }
        Form::Csv => {
            let mut fields = Fields::default();
            let mut header_seen = false;
            source.lines(file, progress, |number, line| {
                let record = fields.split(line);
                if !header_seen {
                    header_seen = true;
                    return match record {
                        Ok(HEADER) => Ok(()),
                        Err(reason) if reason == CARRIAGE_RETURN => {
                            Err(source.malformed(format!("line {number}: {reason}")))
                        }
                        _ => {
                            Err(source.malformed(format!("line {number} is not the header `time,asset,usd`")))
                        }
                    };
                }
                let price = record.and_then(|[time, asset, usd]| price(time, asset, usd));
                each(&|| format!("line {number}"), price)
            })?;
            if header_seen {
                Ok(())
            } else {
                Err(source.malformed("it is empty"))
            }
        }
    }
}

fn price(time: &str, asset: &str, usd: &str) -> Result<Price, String> {
    Ok(Price {
        time: time_of(time)?,
        asset: asset_of(asset)?,
        usd: usd
            .parse()
            .map_err(|reason| format!("usd `{}`: {reason}", short(usd)))?,
    })
}

fn time_of(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let time = if digits {
        // As in JSON, there are no leading zeros.
        text.parse()
            .ok()
            .filter(|_| text == "0" || !text.starts_with('0'))
    } else {
        let day = text.parse::<Day>().ok();
        day.and_then(|day| u64::try_from(day.start()).ok())
    };
    time.filter(|&time| time <= TIME_MAX).ok_or_else(|| {
        format!(
            "time `{}` is neither yyyy-MM-dd from 1970 on nor Unix seconds up to the year 9999",
            short(text)
        )
    })
}

fn asset_of(text: &str) -> Result<Asset, String> {
    match text {
        "native" => Ok(Asset::Native),
        "stable" => Ok(Asset::Stable),
        _ => written_address(text)
            .map(Asset::Token)
            .map_err(|fault| match fault {
                AddressFault::Form => format!(
                    "asset `{}` is neither `native` nor `stable` nor an address",
                    short(text)
                ),
                AddressFault::Checksum(_) => format!("asset `{}` {fault}", short(text)),
            }),
    }
}

/// An entry of JSON.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    time: &'a RawValue,
    #[serde(borrow)]
    asset: &'a RawValue,
    #[serde(borrow)]
    usd: &'a RawValue,
}

fn of_json(element: &RawValue) -> Result<Price, String> {
    if !element.get().starts_with('{') {
        return Err("it is no object".to_owned());
    }
    let entry: Entry<'_> = serde_json::from_str(element.get()).map_err(|error| json_fault_within(&error))?;
    let text =
        |name: &str, value| scalar(value).ok_or_else(|| format!("{name} is neither text nor a number"));
    price(
        text("time", entry.time)?.trim(),
        text("asset", entry.asset)?.trim(),
        text("usd", entry.usd)?.trim(),
    )
}

/// Splits lines of CSV into their three fields.
struct Fields {
    reader: csv_core::Reader,
    text: Vec<u8>,
    ends: [usize; 4],
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            reader: csv_core::Reader::new(),
            text: Vec::new(),
            ends: [0; 4],
        }
    }
}

impl Fields {
    /// The fields of a line, without blanks around them.
    fn split(&mut self, line: &str) -> Result<[&str; 3], String> {
        const NOT_THREE: &str = "there are not three fields";
        if !line
            .bytes()
            .filter(|&byte| byte == b'"')
            .count()
            .is_multiple_of(2)
        {
            return Err("a quote is not closed: an entry is one line".to_owned());
        }
        if line.contains('\r') {
            return Err(CARRIAGE_RETURN.to_owned());
        }
        self.reader.reset();
        // Nothing grows by being unquoted; the end asks for room too.
        self.text.resize(line.len() + 1, 0);
        let (_, _, written, ended) = self
            .reader
            .read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        let (text, ends) = (
            self.text.get_mut(written..).unwrap_or_default(),
            self.ends.get_mut(ended..).unwrap_or_default(),
        );
        // The end of the line is the end of the record.
        let (_, _, more, last) = self.reader.read_record(&[], text, ends);
        if ended + last != 3 {
            return Err(NOT_THREE.to_owned());
        }
        let ends = self.ends;
        let field = |from: usize, to: usize| {
            let bytes = self.text.get(from..to.min(written + more)).unwrap_or_default();
            std::str::from_utf8(bytes)
                .map(str::trim)
                .map_err(|_| NOT_THREE.to_owned())
        };
        Ok([
            field(0, ends[0])?,
            field(ends[0], ends[1])?,
            field(ends[1], ends[2])?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Address;
    use std::io::Cursor;

    const TOKEN: &str = "0xABABABABABABABABABABABABABABABABABABABAB";

    /// The place of an entry, and what it is read as.
    type Placed = (String, Result<Price, String>);

    /// What a text is read as: entries in order with their places, or why it is broken.
    fn read_text(text: &[u8]) -> Result<Vec<Placed>, String> {
        let path = Path::new("file");
        let mut file = Cursor::new(text);
        let source = Source::look(path, &mut file).unwrap();
        let mut entries = Vec::new();
        read(&source, &mut file, &|_| {}, &mut |place, entry| {
            entries.push((place(), entry));
            Ok(())
        })
        .map_err(|error| error.to_string())?;
        Ok(entries)
    }

    fn good(asset: Asset, time: u64, usd: &str) -> Result<Price, String> {
        Ok(Price {
            asset,
            time,
            usd: usd.parse().unwrap(),
        })
    }

    #[test]
    fn csv_in_all_its_manners() {
        let text = format!(
            "\u{feff}time,asset,usd\r\n2024-02-29,native,3000.50\r\n\r\n  \n1709164801 , stable , 1e0\n\"0\",\"{TOKEN}\",\"0.00\"\n253402300799,native,7"
        );
        let entries = read_text(text.as_bytes()).unwrap();
        let token = Asset::Token(Address::repeat_byte(0xab));
        let expected = [
            ("line 2", good(Asset::Native, 1_709_164_800, "3000.5")),
            ("line 5", good(Asset::Stable, 1_709_164_801, "1")),
            ("line 6", good(token, 0, "0")),
            ("line 7", good(Asset::Native, 253_402_300_799, "7")),
        ];
        for (entry, (place, expected)) in entries.iter().zip(expected) {
            assert_eq!(*entry, (place.to_owned(), expected));
        }
        assert_eq!(entries.len(), 4);
    }

    #[test]
    fn lines_that_are_refused() {
        for (line, why) in [
            ("2024-02-30,native,1", "time `2024-02-30`"),
            ("1969-12-31,native,1", "time `1969-12-31`"),
            ("1709164800000,native,1", "time `1709164800000`"),
            ("99999999999999999999999,native,1", "time `9999"),
            ("-5,native,1", "time `-5`"),
            ("00012,native,1", "time `00012`"),
            (",native,1", "time ``"),
            ("0,Native,1", "asset `Native`"),
            ("0,eth,1", "asset `eth`"),
            ("0,0xab,1", "asset `0xab`"),
            ("0,,1", "asset ``"),
            (
                "0,0xAbabababababababababababababababababABAB,1",
                "has a wrong checksum (EIP-55): with the right one it is 0xABaBaB",
            ),
            ("0,native,00012", "usd `00012`: the price has leading zeros"),
            ("0,native,-1", "negative"),
            ("0,native,", "not a decimal number"),
            ("0,native,\"1,5\"", "not a decimal number"),
            ("0,native,1e400", "more than 38"),
            ("0,native", "three fields"),
            ("0,native,1,2", "three fields"),
            ("0,native,1,2,3,4,5,6", "three fields"),
            ("# a comment", "three fields"),
            ("0,native,5\r86400,native,6", "a carriage return stands in it"),
            ("0,native,7\rrubbish", "a carriage return stands in it"),
            ("0,native,\"7\r\"", "a carriage return stands in it"),
            ("\"0,native,1", "quote"),
            ("0,native,\"1", "quote"),
        ] {
            let text = format!("time,asset,usd\n{line}\n0,native,5\n");
            let entries = read_text(text.as_bytes()).unwrap();
            assert_eq!(entries.len(), 2, "{line}");
            let reason = entries[0].1.clone().unwrap_err();
            assert!(
                reason.contains(why) && entries[0].0 == "line 2",
                "{line}: {reason}"
            );
            assert_eq!(entries[1], ("line 3".to_owned(), good(Asset::Native, 0, "5")));
        }
    }

    #[test]
    fn json_in_all_its_manners() {
        let text = format!(
            r#" [ {{"time": 1709164800, "asset": "native", "usd": 3000.50, "more": [1, {{}}]}},
              {{"usd": "0.1", "time": "2024-02-29", "asset": "{TOKEN}"}},
              {{"usd": 1.5E-7, "time": "7", "asset": "st\u0061ble"}},
              {{"usd": 123456789012345678901234567890.12, "time": 7, "asset": "stable"}} ] "#
        );
        let entries = read_text(text.as_bytes()).unwrap();
        let token = Asset::Token(Address::repeat_byte(0xab));
        let expected = [
            good(Asset::Native, 1_709_164_800, "3000.5"),
            good(token, 1_709_164_800, "0.1"),
            good(Asset::Stable, 7, "0.00000015"),
            good(Asset::Stable, 7, "123456789012345678901234567890.12"),
        ];
        for (number, (entry, expected)) in (1..).zip(entries.iter().zip(expected)) {
            assert_eq!(*entry, (format!("entry {number}"), expected));
        }
        assert_eq!(entries.len(), 4);
        assert_eq!(read_text(b"[]"), Ok(Vec::new()));
        for (entry, why) in [
            ("5", "it is no object"),
            ("null", "it is no object"),
            ("[]", "it is no object"),
            ("[1,\"native\",1]", "it is no object"),
            (r#"{"time":1,"asset":"native","usd":"00012"}"#, "leading zeros"),
            ("{}", "missing field `time`"),
            (
                r#"{"time":1,"time":1,"asset":"native","usd":1}"#,
                "duplicate field `time`",
            ),
            (r#"{"time":null,"asset":"native","usd":1}"#, "time is neither"),
            (r#"{"time":1.0,"asset":"native","usd":1}"#, "time `1.0`"),
            (r#"{"time":1,"asset":5,"usd":1}"#, "asset `5`"),
            (r#"{"time":1,"asset":"native","usd":{}}"#, "usd is neither"),
            (r#"{"time":1,"asset":"native","usd":-1}"#, "negative"),
        ] {
            let entries = read_text(format!("[{entry}]").as_bytes()).unwrap();
            let reason = entries[0].1.clone().unwrap_err();
            assert!(reason.contains(why), "{entry}: {reason}");
        }
    }

    #[test]
    fn files_that_are_broken() {
        let long = |open: &str| [open.as_bytes(), &vec![b'x'; 3 << 20]].concat();
        for (text, why) in [
            (b"".to_vec(), "empty"),
            (b"\n\n".to_vec(), "empty"),
            (b"asset,time,usd\n".to_vec(), "line 1 is not the header"),
            (b"0,native,1\n".to_vec(), "line 1 is not the header"),
            (
                b"time,asset,usd\r0,native,5\r".to_vec(),
                "line 1: a carriage return stands in it",
            ),
            (b"\xff\xfet\0i\0".to_vec(), "not UTF-8"),
            (
                b"time,asset,usd\n0,native,1\n0,\xff,1\n".to_vec(),
                "line 3 is not UTF-8",
            ),
            (long("time,asset,usd\n"), "line 2 is longer"),
            (b"{}".to_vec(), "where an array belongs"),
            (b"[{\"time\":1,".to_vec(), "EOF"),
            (b"[1 2]".to_vec(), "expected"),
            (b"[] x".to_vec(), "trailing"),
            (b"[\"\xff\"]".to_vec(), "not UTF-8"),
            (long("[\""), "longer than"),
            (
                long("[")
                    .iter()
                    .map(|&byte| if byte == b'x' { b'[' } else { byte })
                    .collect(),
                "longer than",
            ),
        ] {
            let error = read_text(&text).unwrap_err();
            assert!(error.contains(why), "{why}: {error}");
        }
    }
}
