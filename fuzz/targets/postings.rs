//! Chunks of postings, units of rows and runs of logs: any bytes are read to their end or refused, and lists that are
//! written are read back. The first byte chooses.

use quarry::codec::bytes::Reader;
use quarry::codec::chunk::{UnitReader, UnitStarts};
use quarry::codec::log_row::{RunBuilder, RunReader, RunRow, decode_block_row, decode_body};
use quarry::codec::open_list::OpenList;
use quarry::codec::posting;
use quarry::model::Topics;

/// What the first byte chooses of.
pub(crate) const KINDS: u8 = 6;

/// Bytes as a chunk.
fn chunk(bytes: &[u8]) {
    let mut out = Vec::new();
    let header = posting::header(bytes);
    if let Ok(read) = posting::decode(bytes, &mut out) {
        assert_eq!(header, Ok(read));
        assert_eq!(out.len(), read.count);
        assert_eq!(out.first(), Some(&read.first));
        // Damage that keeps the form is the checksums' business.
        if out.is_sorted_by(|a, b| a < b) {
            list(read.rank, &out);
        }
    }
}

/// A list, written and read back.
fn list(rank: u64, postings: &[u64]) {
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    posting::encode(rank, postings, &mut bytes);
    if postings.is_empty() {
        return;
    }
    let read = posting::decode(&bytes, &mut out).expect("what was written");
    assert_eq!((read.rank, out.as_slice()), (rank, postings));
}

/// Bytes as gaps of a list.
fn gaps(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "gaps");
    let (mut next, mut postings) = (0u64, Vec::new());
    let rank = reader.varint().unwrap_or_default();
    while postings.len() < posting::CHUNK_POSTINGS
        && let Ok(gap) = reader.varint()
    {
        let Some(at) = next.checked_add(gap) else { break };
        postings.push(at);
        let Some(after) = at.checked_add(1) else { break };
        next = after;
    }
    list(rank, &postings);
}

fn unit(bytes: &[u8]) {
    let Ok(mut unit) = UnitReader::new(bytes, "unit") else {
        return;
    };
    let mut starts = UnitStarts::default();
    assert_eq!(starts.begin(bytes, "unit"), Ok(unit.header()));
    let mut place = 0;
    while let Ok(Some(row)) = unit.next_row() {
        let again = starts.row(bytes, place, "unit").map(|row| row.rest());
        assert_eq!(again, Ok(row));
        place += 1;
        let mut log = Reader::new(row, "log");
        if decode_block_row(&mut log).is_ok() {
            body_of_log(&mut log);
        }
    }
}

fn body_of_log(body: &mut Reader<'_>) {
    let (mut topics, mut data) = (Topics::default(), Vec::new());
    if decode_body(body, &mut topics, &mut data).is_ok() {
        assert!(topics.len() <= 4);
    }
}

fn run_of_logs(bytes: &[u8]) {
    let Ok(mut run) = RunReader::new(bytes) else {
        return;
    };
    while let Ok(Some((_, mut body))) = run.next_row() {
        body_of_log(&mut body);
    }
    if let Ok(builder) = RunBuilder::resume(bytes) {
        assert_eq!(
            RunBuilder::resume(&builder.encode()).map(|again| again.encode()),
            Ok(builder.encode())
        );
    }
}

/// Two stored pieces of one list: what stands at its end is taken up and goes on.
fn pieces(bytes: &[u8]) {
    let half = bytes.len() / 2;
    let (first, second) = bytes.split_at(half);
    if let (Ok(mut before), Ok(after)) = (RunBuilder::resume(first), RunBuilder::resume(second)) {
        let _ = before.append(&after);
        let _ = before.encode();
    }
    if let Ok(mut list) = OpenList::resume(Some(first)) {
        let _ = list.take_up(second);
        let header = *list.piece().header();
        let (Some(ordinal), Some(block)) = (
            header.last_ordinal.checked_add(1),
            header.last_block.checked_add(1),
        ) else {
            return;
        };
        let row = RunRow {
            ordinal,
            block,
            ..RunRow::default()
        };
        let _ = list.push(&row, &[0; 2000]);
    }
}

/// Reads `data`.
pub(crate) fn run(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    match kind % KINDS {
        0 => chunk(bytes),
        1 => gaps(bytes),
        2 => unit(bytes),
        3 => run_of_logs(bytes),
        4 => pieces(bytes),
        _ => {
            body_of_log(&mut Reader::new(bytes, "log"));
            let mut log = Reader::new(bytes, "log");
            if decode_block_row(&mut log).is_ok() {
                body_of_log(&mut log);
            }
        }
    }
}
