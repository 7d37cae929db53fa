//! `quarry checkpoint create`, `restore` and `verify`.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::ProgressBar;

use super::process::{blocking, on_signals, say};
use super::progress::{LINE_EVERY, Lines};
use super::{AppError, files, stderr};
use crate::checkpoint::{self, Manifest, Source, Watcher};
use crate::cli::{Checkpoint, CheckpointCreateArgs, CheckpointRestoreArgs, CheckpointVerifyArgs};
use crate::clock;
use crate::config::Config;

/// `quarry checkpoint ...`.
pub(super) async fn command(command: Checkpoint) -> Result<(), AppError> {
    let (_trigger, mut shutdown) = on_signals()?;
    let watch = Arc::new(Watch::new(&command));
    let watched = Arc::clone(&watch);
    tokio::spawn(async move {
        shutdown.fired().await;
        watched.stopped.store(true, Ordering::Relaxed);
    });
    blocking(move || {
        let done = match &command {
            Checkpoint::Create(args) => create(args, &watch),
            Checkpoint::Restore(args) => restore(args, &watch),
            Checkpoint::Verify(args) => verify(args, &watch),
        };
        watch.bar.finish_and_clear();
        done
    })
    .await
}

fn create(args: &CheckpointCreateArgs, watch: &Watch) -> Result<(), AppError> {
    let config = Config::of_store(&args.store)?;
    let (data_dir, store) = (config.data_dir.as_path(), config.store_dir(args.chain));
    let began = clock::now();
    if args.target == Path::new("-") {
        let stdout = std::io::stdout();
        if stdout.is_terminal() {
            return Err(AppError::Usage(
                "a checkpoint is not written to a terminal: send it to a file or a pipe, or name a directory"
                    .to_owned(),
            ));
        }
        let manifest = checkpoint::stream(data_dir, &store, args.chain, stdout.lock(), watch)?;
        // Standard output is the checkpoint.
        tracing::info!("{}: {}", args.chain, told(&manifest, "streamed", began));
        return Ok(());
    }
    let manifest = checkpoint::create(data_dir, &store, args.chain, &args.target, watch)?;
    let done = format!("checkpoint written to {}", args.target.display());
    say(&format!("{}: {}", args.chain, told(&manifest, &done, began)));
    Ok(())
}

fn restore(args: &CheckpointRestoreArgs, watch: &Watch) -> Result<(), AppError> {
    let config = Config::of_store(&args.store)?;
    files::check_writing()?;
    let store = config.store_dir(args.chain);
    let began = clock::now();
    let manifest = checkpoint::restore(source(&args.from)?, &config.data_dir, &store, args.chain, watch)?;
    let done = format!("restored to {}", store.display());
    say(&format!("{}: {}", args.chain, told(&manifest, &done, began)));
    Ok(())
}

fn verify(args: &CheckpointVerifyArgs, watch: &Watch) -> Result<(), AppError> {
    let began = clock::now();
    let manifest = checkpoint::verify(source(&args.from)?, watch)?;
    let done = told(&manifest, "every file is as it was written", began);
    say(&format!("{}: {done}", manifest.chain));
    Ok(())
}

fn source(from: &Path) -> Result<Source, AppError> {
    if from == Path::new("-") {
        let name = "standard input".to_owned();
        return Ok(Source::Stream(Box::new(std::io::stdin()), name));
    }
    Ok(Source::open(from)?)
}

/// One line on a checkpoint.
fn told(manifest: &Manifest, done: &str, began: std::time::Instant) -> String {
    let blocks = match &manifest.head {
        Some(head) => format!(
            "blocks {} to {} ({}), final to {}",
            manifest.first_block,
            head.number,
            head.hash,
            manifest
                .finalized
                .map_or_else(|| "-".to_owned(), |number| number.to_string()),
        ),
        None => "no blocks yet".to_owned(),
    };
    format!(
        "{done}: chain id {}, {blocks}, {} files, {} in {:.1} s",
        manifest.chain_id,
        manifest.files.len(),
        size(manifest.bytes()),
        (clock::now() - began).as_secs_f64(),
    )
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        1e9.. => format!("{:.1} GB", bytes / 1e9),
        1e6.. => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.1} kB", bytes / 1e3),
    }
}

/// A bar on a terminal, lines elsewhere.
struct Watch {
    bar: ProgressBar,
    lines: Lines,
    what: &'static str,
    stopped: AtomicBool,
}

impl Watch {
    fn new(command: &Checkpoint) -> Self {
        let what = match command {
            Checkpoint::Create(_) => "checkpoint",
            Checkpoint::Restore(_) => "restoring",
            Checkpoint::Verify(_) => "verifying",
        };
        Self {
            bar: stderr::bar("{bar:30} {bytes}/{total_bytes} {eta}"),
            lines: Lines::new(LINE_EVERY),
            what,
            stopped: AtomicBool::new(false),
        }
    }
}

impl Watcher for Watch {
    fn progress(&self, done: u64, of: Option<u64>) {
        if let Some(of) = of {
            self.bar.set_length(of);
        }
        self.bar.set_position(done);
        if self.lines.are_due(&self.bar) {
            tracing::info!(bytes = done, of, "{}", self.what);
        }
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
