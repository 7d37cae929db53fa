//! What a power cut may leave at the end of RocksDB's own logs, told before RocksDB reads them.
//!
//! RocksDB knows garbage behind what was forced to disk by its checksum, and stops reading there. One kind it does not get past: a
//! record whose type is one of logs that are written over (`kRecyclableFullType` and its like), in a log that did not begin with such
//! a one. Its reader finds that record bad without going past it, and finds it again for ever (RocksDB 11.8,
//! `log::Reader::ReadPhysicalRecord`; RocksDB's issue 13333): the store would never open. Logs of a store are never written over, so
//! such a type stands in none of their records; it is made that of a whole record, which fails its checksum as all other garbage does.
//! What is read of the log is the same.
//!
//! Format: blocks of 32 KiB, in them records of checksum u32, length u16 (both little-endian), type u8 and so many bytes; fewer than
//! seven bytes at the end of a block are padding (RocksDB's wiki, "Write Ahead Log File Format").

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::copy::database::{Kind, list};

const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;
/// Where in a header the type stands.
const TYPE_AT: usize = 6;
/// A record in one piece.
const FULL: u8 = 1;

/// Types of records of logs that are written over.
const fn is_of_rewritten_log(kind: u8) -> bool {
    matches!(kind, 5..=8 | 11 | 131)
}

/// Where in a log types stand that its reader does not get past.
fn traps(file: &File) -> std::io::Result<Vec<u64>> {
    let mut found = Vec::new();
    let mut block = vec![0; BLOCK_BYTES];
    let mut start = 0;
    loop {
        let bytes = read(file, &mut block, start)?;
        let block = block.get(..bytes).unwrap_or(&[]);
        let mut at = 0;
        // All records that RocksDB comes to in this block are among these: it lets go of the rest of a block where one is bad.
        while let Some([_, _, _, _, low, high, kind]) = block.get(at..).and_then(<[u8]>::first_chunk) {
            if is_of_rewritten_log(*kind) {
                if start == 0 && at == 0 {
                    // A log that is written over, and read as one.
                    return Ok(found);
                }
                found.push(start + (at + TYPE_AT) as u64);
                break;
            }
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            if length == 0 && *kind == 0 {
                break;
            }
            at += HEADER_BYTES + length;
        }
        if bytes < BLOCK_BYTES {
            return Ok(found);
        }
        start += BLOCK_BYTES as u64;
    }
}

/// Fills `block` from `start` on as far as the file goes.
fn read(file: &File, block: &mut [u8], start: u64) -> std::io::Result<usize> {
    let mut bytes = 0;
    while let Some(rest) = block.get_mut(bytes..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, start + bytes as u64) {
            Ok(0) => break,
            Ok(more) => bytes += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// RocksDB's logs in a directory with such records, and where their types stand: of writes, and of which files there are.
fn torn(database: &Path) -> Result<Vec<(PathBuf, Vec<u64>)>, StoreError> {
    let mut torn = Vec::new();
    let files = match list(database) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(torn),
        files => files.map_err(StoreError::io("list", database))?,
    };
    for (name, _) in files
        .iter()
        .filter(|(_, kind)| matches!(kind, Kind::Log(_) | Kind::Manifest))
    {
        let path = database.join(name);
        let file = match File::open(&path) {
            // RocksDB removes logs that it needs no more.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            file => file.map_err(StoreError::io("open", &path))?,
        };
        let traps = traps(&file).map_err(StoreError::io("read", &path))?;
        if !traps.is_empty() {
            torn.push((path, traps));
        }
    }
    Ok(torn)
}

/// Makes RocksDB's logs in a directory such that it can read past garbage at their ends; for whoever opens it for writing.
pub(super) fn mend(database: &Path) -> Result<(), StoreError> {
    for (path, traps) in torn(database)? {
        let io = |doing| StoreError::io(doing, &path);
        let file = OpenOptions::new().write(true).open(&path).map_err(io("open"))?;
        for at in &traps {
            file.write_all_at(&[FULL], *at).map_err(io("mend"))?;
        }
        file.sync_data().map_err(io("sync"))?;
        tracing::warn!(log = %path.display(), at = ?traps, "garbage in RocksDB's log, as a power cut leaves it: it is left out");
    }
    Ok(())
}

/// Refuses to read a directory whose logs RocksDB would not get past; `store` is the store that it is part of.
pub(super) fn refuse(database: &Path, store: &Path) -> Result<(), StoreError> {
    match torn(database)?.first() {
        None => Ok(()),
        Some((log, _)) => Err(StoreError::Torn {
            path: store.to_path_buf(),
            log: log.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    fn record(kind: u8, length: u16) -> Vec<u8> {
        let [low, high] = length.to_le_bytes();
        let mut record = vec![9, 9, 9, 9, low, high, kind];
        record.resize(HEADER_BYTES + usize::from(length), 5);
        record
    }

    #[test]
    fn only_headers_are_looked_at() {
        // What a record holds is full of fives, which is such a type.
        let whole: Vec<u8> = [record(1, 100), record(2, 0), record(4, 7)].concat();
        assert_eq!(traps(&log(&whole)).unwrap(), [0_u64; 0]);
        for kind in 0..=255 {
            let found = traps(&log(&[whole.clone(), record(kind, 4_000)].concat())).unwrap();
            let wanted = [5, 6, 7, 8, 11, 131].contains(&kind);
            assert_eq!(!found.is_empty(), wanted, "{kind}");
            assert!(!wanted || found == [(whole.len() + TYPE_AT) as u64], "{found:?}");
            // One that began so is read so.
            let rewritten = [record(kind, 3), record(5, 10)].concat();
            assert_eq!(traps(&log(&rewritten)).unwrap().is_empty(), wanted, "{kind}");
        }
    }

    #[test]
    fn every_block_is_looked_at() {
        // A record to six bytes before the end of its block, zeros, one that is longer than its block, and one in the third.
        let mut bytes = record(1, u16::try_from(BLOCK_BYTES - HEADER_BYTES - 6).unwrap());
        bytes.resize(BLOCK_BYTES, 0);
        bytes.extend(record(1, 0));
        bytes.extend([0; 20]);
        bytes.extend(record(5, 1));
        bytes.resize(2 * BLOCK_BYTES, 0);
        bytes.extend(record(1, 0));
        bytes.extend(record(131, 0));
        let found = traps(&log(&bytes)).unwrap();
        assert_eq!(
            found,
            [(2 * BLOCK_BYTES + HEADER_BYTES + TYPE_AT) as u64],
            "zeros end a block"
        );
        // Cut anywhere, it is read to its end.
        for end in (0..bytes.len()).step_by(997) {
            traps(&log(&bytes[..end])).unwrap();
        }
    }
}
