//! `quarry export chain`: what is stored, as a recorded chain that imports to the same bytes.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::process::{blocking, on_signals, say};
use super::progress::{LINE_EVERY, Lines};
use super::supervisor::{open_stored, stored_range};
use super::{AppError, stderr};
use crate::checkpoint::Place;
use crate::cli::ExportChainArgs;
use crate::json::rpc;
use crate::model::BlockRange;
use crate::query::Reader;
use crate::store::sync_names;

/// The level of compression: a recording is written once and read often, but not for hours.
const ZSTD_LEVEL: i32 = 9;

/// `quarry export chain FILE`.
pub(super) async fn chain(args: ExportChainArgs) -> Result<(), AppError> {
    let (_trigger, mut shutdown) = on_signals()?;
    let stopped = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stopped);
    tokio::spawn(async move {
        shutdown.fired().await;
        told.store(true, Ordering::Relaxed);
    });
    blocking(move || export(&args, &stopped)).await
}

fn export(args: &ExportChainArgs, stopped: &AtomicBool) -> Result<(), AppError> {
    let store = open_stored(&args.store, args.chain)?;
    let view = store.view();
    let range = stored_range(&view, args.from, args.to)?;
    if let Some(sentence) = not_final(range, view.finalized()) {
        tracing::warn!("{sentence}");
    }
    let reader = Reader::new(view);
    let recording = Recording {
        reader: &reader,
        range,
        stopped,
    };
    let shown = args.file.display();
    let done = format!(
        "{}: blocks {} to {} written to",
        args.chain,
        range.first(),
        range.last()
    );
    if args.file == Path::new("-") {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            return Err(AppError::Usage(
                "a recording is not written to a terminal: send it to a file or a pipe, or name a file"
                    .to_owned(),
            ));
        }
        let name = "standard output";
        recording
            .write(stdout.lock(), name)?
            .flush()
            .map_err(failed(name))?;
        // Standard output is the recording.
        tracing::info!("{done} {name}");
        return Ok(());
    }
    recording.write_file(&args.file)?;
    say(&format!("{done} {shown}"));
    Ok(())
}

/// What is to be known of blocks in a recording that a reorg may still take off their chain.
fn not_final(range: BlockRange, finalized: Option<u64>) -> Option<String> {
    let (first, last) = (range.first(), range.last());
    let after = finalized.map_or(0, |finalized| finalized.saturating_add(1));
    let begins = first.max(after);
    let way_out = match finalized {
        _ if begins > last => return None,
        Some(finalized) if first <= finalized => format!("`--to {finalized}` leaves them out"),
        Some(finalized) => format!("the last final one is {finalized}"),
        None => "none is yet".to_owned(),
    };
    Some(format!(
        "blocks {begins} to {last} of the recording are not final, and `quarry import chain` makes them so for good: {way_out}"
    ))
}

fn failed(name: &str) -> impl Fn(io::Error) -> AppError {
    let doing = format!("write `{name}`");
    move |source| AppError::Io {
        doing: doing.clone(),
        source,
    }
}

/// What is written.
struct Recording<'a> {
    reader: &'a Reader,
    range: BlockRange,
    stopped: &'a AtomicBool,
}

impl Recording<'_> {
    /// Writes a new file, which gets its name when it is whole and on the disk.
    fn write_file(&self, path: &Path) -> Result<(), AppError> {
        let shown = path.display().to_string();
        let making = || AppError::io(format!("make `{shown}`"));
        let taken = || AppError::Usage(format!("`{shown}` exists already: name a file that does not"));
        let name = path
            .file_name()
            .ok_or_else(|| AppError::Usage(format!("`{shown}` is no name of a file")))?;
        if path.symlink_metadata().is_ok() {
            return Err(taken());
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = Some(parent).filter(|parent| !parent.as_os_str().is_empty());
        match directory.map(Path::metadata).transpose() {
            Ok(about) if about.as_ref().is_none_or(fs::Metadata::is_dir) => {}
            Ok(_) => {
                return Err(AppError::Usage(format!(
                    "`{}` is not a directory",
                    parent.display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(AppError::Usage(format!(
                    "there is no directory `{}`",
                    parent.display()
                )));
            }
            Err(error) => return Err(making()(error)),
        }
        let place = Place::begin(parent, &format!(".{}.partial-", name.to_string_lossy()))?;
        let partial: PathBuf = place.path().join("recording");
        let file = File::create_new(&partial).map_err(making())?;
        let file = self.write(file, &shown)?;
        file.sync_all().map_err(failed(&shown))?;
        // A link takes the place of nothing; where there are none a name that came meanwhile is looked for.
        match fs::hard_link(&partial, path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(taken()),
            Err(_) if path.symlink_metadata().is_ok() => return Err(taken()),
            Err(_) => fs::rename(&partial, path).map_err(making())?,
        }
        drop(place);
        sync_names(directory.unwrap_or(Path::new("."))).map_err(failed(&shown))
    }

    /// Writes the blocks to `out`, which errors call `name`.
    fn write<W: Write>(&self, out: W, name: &str) -> Result<W, AppError> {
        let mut encoder = zstd::Encoder::new(out, ZSTD_LEVEL).map_err(failed(name))?;
        // What changes on the way is found out when it is read again.
        encoder.include_checksum(true).map_err(failed(name))?;
        let bar = stderr::bar("{bar:30} {pos}/{len} {eta}");
        bar.set_length(self.range.last() - self.range.first() + 1);
        let lines = Lines::new(LINE_EVERY);
        let mut line = Vec::new();
        for number in self.range.first()..=self.range.last() {
            if self.stopped.load(Ordering::Relaxed) {
                bar.finish_and_clear();
                return Err(AppError::Usage(format!(
                    "interrupted before block {number}: nothing of it is left that could be taken for a recording"
                )));
            }
            let missing = || AppError::Usage(format!("block {number} is not stored"));
            let bundle = self.reader.bundle(number)?.ok_or_else(missing)?;
            line.clear();
            rpc::bundle(&mut line, &bundle);
            line.push(b'\n');
            encoder.write_all(&line).map_err(failed(name))?;
            bar.inc(1);
            if lines.are_due(&bar) {
                tracing::info!(block = number, to = self.range.last(), "exporting");
            }
        }
        bar.finish_and_clear();
        encoder.finish().map_err(failed(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_not_final_are_named_with_the_way_out() {
        let told = |first, last, finalized| not_final(BlockRange::new(first, last).unwrap(), finalized);
        let words = " of the recording are not final, and `quarry import chain` makes them so for good: ";
        assert_eq!(
            told(0, 38, Some(30)),
            Some(format!("blocks 31 to 38{words}`--to 30` leaves them out"))
        );
        assert_eq!(
            told(35, 38, Some(30)),
            Some(format!("blocks 35 to 38{words}the last final one is 30"))
        );
        assert_eq!(
            told(5, 38, None),
            Some(format!("blocks 5 to 38{words}none is yet"))
        );
        for (first, last) in [(0, 30), (30, 30), (0, 0)] {
            assert_eq!(told(first, last, Some(30)), None);
        }
    }
}
