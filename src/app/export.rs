//! `quarry export chain`: what is stored, as a recorded chain that imports to the same bytes.

use std::fs::{File, OpenOptions as FileOptions};
use std::io::Write;
use std::path::Path;

use super::AppError;
use super::process::say;
use super::supervisor::open_stored;
use crate::cli::ExportChainArgs;
use crate::json::rpc;
use crate::query::Reader;

/// The level of compression: a recording is written once and read often, but not for hours.
const ZSTD_LEVEL: i32 = 9;

/// `quarry export chain FILE`.
pub(super) fn chain(args: &ExportChainArgs) -> Result<(), AppError> {
    let store = open_stored(&args.store, args.chain)?;
    let reader = Reader::new(store.view());
    if reader.is_empty() {
        return Err(AppError::Usage("the store holds no blocks yet".to_owned()));
    }
    let from = args.from.unwrap_or(reader.first_block());
    let to = args.to.unwrap_or(reader.head().number);
    if from < reader.first_block() || to > reader.head().number || from > to {
        return Err(AppError::Usage(format!(
            "blocks {from} to {to} are not a range of the stored blocks {} to {}",
            reader.first_block(),
            reader.head().number
        )));
    }
    let shown = args.file.display();
    let file = FileOptions::new().write(true).create_new(true).open(&args.file);
    let file = file.map_err(AppError::io(format!("make `{shown}`")))?;
    let written = write(file, &reader, from, to, &args.file);
    if written.is_err() {
        // What is there is no recording, and its name is to be free for the next try.
        let _ = std::fs::remove_file(&args.file);
    }
    written?;
    say(&format!(
        "{}: blocks {from} to {to} written to {shown}",
        args.chain
    ));
    Ok(())
}

fn write(file: File, reader: &Reader, from: u64, to: u64, path: &Path) -> Result<(), AppError> {
    let shown = path.display();
    let failed = |source| AppError::Io {
        doing: format!("write `{shown}`"),
        source,
    };
    let mut encoder = zstd::Encoder::new(file, ZSTD_LEVEL).map_err(failed)?;
    // What changes on the way is found out when it is read again.
    encoder.include_checksum(true).map_err(failed)?;
    let mut line = Vec::new();
    for number in from..=to {
        let missing = || AppError::Usage(format!("block {number} is not stored"));
        let bundle = reader.bundle(number)?.ok_or_else(missing)?;
        line.clear();
        rpc::bundle(&mut line, &bundle);
        line.push(b'\n');
        encoder.write_all(&line).map_err(failed)?;
    }
    encoder.finish().and_then(|file| file.sync_all()).map_err(failed)
}
