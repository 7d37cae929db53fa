//! `quarry import prices`, `tokens` and `contracts`: beside a running service too, which follows what is written.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use indicatif::ProgressBar;

use super::process::{blocking, on_signals, say};
use super::progress::{LINE_EVERY, Lines};
use super::supervisor::open_stored;
use super::{AppError, stderr};
use crate::cli::{ImportContractsArgs, ImportFactsArgs};
use crate::clock;
use crate::import::{self, ImportError, Report, Target, Watcher};
use crate::model::{ImportKind, written_address};
use crate::store::{ImportWriter, Store};

/// Refused entries and fields that are shown one by one; the others are counted.
const SHOWN_MAX: u64 = 1000;

/// Imports what `path` holds into the store of imports beside `store`, by `work`.
pub(super) fn into_store(
    store: &Store,
    kind: ImportKind,
    path: &Path,
    watcher: &dyn Watcher,
    work: impl FnOnce(&Target, &Path, &dyn Watcher) -> Result<Report, ImportError>,
) -> Result<Report, AppError> {
    let target = Target {
        view: store.view(),
        writer: ImportWriter::open(store.directory(), &store.identity())?,
    };
    let report = work(&target, path, watcher)?;
    target.writer.finish(&report.record(kind, path))?;
    Ok(report)
}

/// One import as a command.
pub(super) async fn command(
    args: ImportFactsArgs,
    kind: ImportKind,
    work: impl FnOnce(&Target, &Path, &dyn Watcher) -> Result<Report, ImportError> + Send + 'static,
) -> Result<(), AppError> {
    let (_trigger, mut shutdown) = on_signals()?;
    let terminal = Arc::new(Terminal::new());
    let watched = Arc::clone(&terminal);
    tokio::spawn(async move {
        shutdown.fired().await;
        watched.stopped.store(true, Ordering::Relaxed);
    });
    blocking(move || {
        let store = open_stored(&args.store, args.chain)?;
        let began = clock::now();
        let report = into_store(&store, kind, &args.path, &*terminal, work);
        terminal.bar.finish_and_clear();
        let report = report?;
        let shown = terminal.shown();
        if shown > SHOWN_MAX {
            say(&format!("... and {} more like these", shown - SHOWN_MAX));
        }
        let more = [
            (report.left_out, "fields left out"),
            (report.directories, "subdirectories not looked into"),
        ];
        let more = more.iter().filter(|(count, _)| *count > 0);
        let more: String = more.map(|(count, of)| format!(", {count} {of}")).collect();
        say(&format!(
            "{}: {} {} taken ({} new or changed) in {:.1} s, {} of other chains skipped, {} refused{more}",
            args.chain,
            report.taken,
            kind.name(),
            report.changed,
            (clock::now() - began).as_secs_f64(),
            report.skipped,
            report.rejected,
        ));
        if report.taken == 0 {
            return Err(AppError::Usage(format!(
                "nothing was imported from `{}`",
                args.path.display()
            )));
        }
        if args.strict && report.rejected > 0 {
            return Err(AppError::Usage(format!(
                "{} entries of `{}` were refused, and --strict was given; the others are taken",
                report.rejected,
                args.path.display()
            )));
        }
        Ok(())
    })
    .await
}

/// `quarry import contracts PATH`.
pub(super) async fn contracts(args: ImportContractsArgs) -> Result<(), AppError> {
    let given = args
        .address
        .map(|text| {
            written_address(text.trim())
                .map_err(|fault| AppError::NotUnderstood(format!("--address: `{text}` {fault}")))
        })
        .transpose()?;
    command(args.facts, ImportKind::Contracts, move |target, path, watcher| {
        import::contracts(target, path, given, watcher)
    })
    .await
}

/// A bar on a terminal, lines elsewhere; refused entries as lines.
struct Terminal {
    bar: ProgressBar,
    lines: Lines,
    /// Refused entries and fields so far.
    told: AtomicU64,
    stopped: AtomicBool,
}

impl Terminal {
    fn new() -> Self {
        Self {
            bar: stderr::bar("importing {bar:30} {pos}/{len} {eta}"),
            lines: Lines::new(LINE_EVERY),
            told: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Refused entries and fields so far.
    fn shown(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    fn show(&self, line: &str) {
        if self.told.fetch_add(1, Ordering::Relaxed) < SHOWN_MAX {
            say(line);
        }
    }
}

impl Watcher for Terminal {
    fn progress(&self, done: u64, of: Option<u64>) {
        if let Some(of) = of {
            self.bar.set_length(of);
        }
        self.bar.set_position(done);
        if self.lines.are_due(&self.bar) {
            tracing::info!(done, of, "importing");
        }
    }

    fn rejected(&self, entry: &str, reason: &str) {
        self.show(&format!("refused: {entry}: {reason}"));
    }

    fn left_out(&self, entry: &str, field: &str, reason: &str) {
        self.show(&format!("left out: {entry}, {field}: {reason}"));
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
