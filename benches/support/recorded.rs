//! The synthetic chain as a recorded-chain file, for benches of the backfill.

use quarry::json::rpc;
use quarry::model::Bundle;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Writes all blocks to `path` as zstd-compressed JSON lines; gives the bytes before compression.
pub(crate) fn write_chain(path: &Path, blocks: impl Iterator<Item = Bundle>) -> io::Result<u64> {
    let mut encoder = zstd::Encoder::new(File::create(path)?, 1)?;
    let mut line = Vec::new();
    let mut written = 0;
    for bundle in blocks {
        line.clear();
        rpc::bundle(&mut line, &bundle);
        line.push(b'\n');
        encoder.write_all(&line)?;
        written += line.len() as u64;
    }
    encoder.finish()?.sync_all()?;
    Ok(written)
}
