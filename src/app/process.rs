//! The process: log, signals, words for the terminal.

use std::io::{Error, Write as _};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tracing_subscriber::EnvFilter;

use super::{AppError, stderr};
use crate::cli::LogFormat;
use crate::clock;
use crate::machine;
use crate::shutdown::{Shutdown, Trigger, pair};
use crate::store::Store;
use crate::tasks;

/// How long files of a bulk load are waited for, and how often they are looked at.
const MERGING_MAX: Duration = Duration::from_secs(120);
const MERGING_LOOK: Duration = Duration::from_millis(50);

/// A process that is to end at once waits so long for whoever reads its log.
const AT_ONCE: Duration = Duration::from_millis(200);

/// A signal that comes so soon after the first one is the same: `timeout` sends its own to the process, and to the group that it is in.
const SAME_SIGNAL: Duration = Duration::from_millis(200);

/// Waits until the files that a bulk load left are merged, for a while: questions to them cost up to half as much again
/// before. Nothing is lost where it ends early.
pub(super) async fn merged(store: &Store, shutdown: &mut Shutdown) {
    let began = clock::now();
    if store.is_merging() {
        tracing::info!("all is stored; files are merged, which may be interrupted");
    }
    while store.is_merging() && clock::now() - began < MERGING_MAX {
        if shutdown.unless(tokio::time::sleep(MERGING_LOOK)).await.is_none() {
            return;
        }
    }
}

/// Begins to log to standard error.
pub(super) fn init_log(filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = read_filter(filter)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr::Log)
        .log_internal_errors(false)
        .with_ansi(stderr::is_coloured());
    stderr::start();
    // A second initialisation (tests in one process) keeps the first.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    Ok(())
}

/// The levels, most silent first.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Reads a filter. A word that is no level would be a part of the program by tracing's syntax, and would silence all the
/// others: only parts of this one may stand alone. The client libraries `alloy` and `tungstenite` are silent unless the filter names
/// them.
fn read_filter(filter: &str) -> Result<EnvFilter, String> {
    let wrong = |reason: &str| {
        format!(
            "log: `{}` is not a filter such as `info` or `info,quarry::sync=debug`: {reason}",
            filter.escape_debug()
        )
    };
    let word = |directive: &str| {
        let is_word = directive
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':');
        let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(directive))
            || directive.parse().is_ok_and(|number: u8| number <= 5);
        !is_level && (!is_word || directive.split("::").next() != Some("quarry"))
    };
    let mut directives = filter
        .split(',')
        .map(str::trim)
        .filter(|directive| !directive.is_empty());
    if let Some(directive) = directives.find(|directive| !directive.contains(['=', '[']) && word(directive)) {
        let shown = directive.escape_debug();
        return Err(wrong(&format!("`{shown}` is none of {}", LEVELS.join(", "))));
    }
    let mut read = EnvFilter::try_new(filter).map_err(|error| wrong(&error.to_string()))?;
    // What its lines report is reported by `node` once; they come for each request while a node is down. The lines of
    // its WebSocket show the node's URL with the keys in it.
    for silent in ["alloy", "tungstenite"] {
        if !filter.contains(silent)
            && let Ok(silence) = format!("{silent}=off").parse()
        {
            read = read.add_directive(silence);
        }
    }
    Ok(read)
}

/// What could not be written to standard output.
static LOST: OnceLock<Error> = OnceLock::new();

/// Writes to standard output. A closed pipe is no reason to fail; what is lost for another one is told at the end of the command
/// ([`check_output`]).
pub(super) fn print(text: &[u8]) {
    if stderr::takes_output(text) {
        return;
    }
    let mut output = std::io::stdout().lock();
    if let Err(error) = output.write_all(text).and_then(|()| output.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

/// Writes a line to standard output, as [`print`] does.
pub(super) fn say(line: &str) {
    print(format!("{line}\n").as_bytes());
}

/// Whether all of the output was written.
pub(super) fn check_output() -> Result<(), AppError> {
    match LOST.get() {
        None => Ok(()),
        Some(error) => {
            // The same once more, in the system's words where it has a number there.
            let number = error.raw_os_error().map(Error::from_raw_os_error);
            let again = number.unwrap_or_else(|| error.kind().into());
            Err(AppError::io("write to standard output")(again))
        }
    }
}

/// The exit code of a command that failed.
const FAILED: u8 = 1;

/// Says why the command failed.
pub(super) fn fail(sentence: &str) -> u8 {
    stderr::say(&format!("quarry: {sentence}"));
    FAILED
}

/// Runs work that blocks off the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AppError> + Send + 'static,
) -> Result<T, AppError> {
    tasks::blocking(work)
        .await
        .unwrap_or_else(|error| Err(AppError::died(&error)))
}

/// A shutdown that SIGINT and SIGTERM fire, of which a second one ends the process at once; and SIGHUP, which a terminal sends
/// when it is closed, once or twice. Under `nohup` it stays ignored.
pub(super) fn on_signals() -> Result<(Trigger, Shutdown), AppError> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(AppError::io("listen for signals"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let mut hang_up = match ignores_hang_up() {
        true => None,
        false => Some(listen(SignalKind::hangup())?),
    };
    // A write beyond `ulimit -f` fails, and says so, where the signal is listened to; it would end the process without a word.
    drop(listen(SignalKind::from_raw(libc::SIGXFSZ))?);
    let (trigger, shutdown) = pair();
    let fire = trigger.clone();
    tokio::spawn(async move {
        let mut began = None;
        loop {
            let hung_up = async {
                match &mut hang_up {
                    Some(signal) => signal.recv().await,
                    None => std::future::pending().await,
                }
            };
            let is_asked = tokio::select! {
                _ = interrupt.recv() => true,
                _ = terminate.recv() => true,
                _ = hung_up => false,
            };
            match meaning(began, is_asked, clock::now()) {
                Meaning::Stop => {
                    tracing::info!("stopping; a second signal stops at once");
                    fire.fire();
                    began = Some(clock::now());
                }
                Meaning::EndAtOnce => end_at_once(130),
                Meaning::Nothing => {}
            }
        }
    });
    Ok((trigger, shutdown))
}

/// What a signal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Stop,
    EndAtOnce,
    Nothing,
}

/// What a signal says `now`, where the first one came when the end `began`; `is_asked` is not so for one of a terminal that was closed.
fn meaning(began: Option<Instant>, is_asked: bool, now: Instant) -> Meaning {
    match began {
        None => Meaning::Stop,
        Some(began) if is_asked && now.saturating_duration_since(began) >= SAME_SIGNAL => Meaning::EndAtOnce,
        Some(_) => Meaning::Nothing,
    }
}

/// Ends the process as it stands, once its log is written or nobody took it for so long. What `exit` runs first would take RocksDB to
/// pieces under threads that still read or close a store, which then abort.
#[expect(
    unsafe_code,
    reason = "a call that does not come back, of a function without conditions"
)]
pub(super) fn end(code: i32, patience: Duration) -> ! {
    stderr::flush(patience);
    unsafe { libc::_exit(code) }
}

fn end_at_once(code: i32) -> ! {
    end(code, AT_ONCE)
}

/// Has SIGINT and SIGTERM end a command that does not listen to them by itself, also as the first process of a container: what a signal
/// does by default it does not do there (pid_namespaces(7)).
pub(super) fn end_on_signals() -> Result<(), AppError> {
    use tokio::signal::unix::{SignalKind, signal};
    if std::process::id() != 1 {
        return Ok(());
    }
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let mut listened = signal(kind).map_err(AppError::io("listen for signals"))?;
        tokio::spawn(async move {
            listened.recv().await;
            // As a shell says it of who dies of a signal.
            end_at_once(128 + kind.as_raw_value())
        });
    }
    Ok(())
}

/// Whether whoever started the process wants SIGHUP ignored, as `nohup` does.
fn ignores_hang_up() -> bool {
    let status = machine::text("/proc/self/status");
    // A bit for each signal, from 1, which is SIGHUP.
    machine::stated(&status, "SigIgn")
        .is_some_and(|mask| u64::from_str_radix(mask, 16).is_ok_and(|mask| mask & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_is_one_that_comes_later() {
        let first = clock::now();
        let after = |millis: u64, is_asked: bool| {
            let now = first + Duration::from_millis(millis);
            meaning(Some(first), is_asked, now)
        };
        for is_asked in [true, false] {
            assert_eq!(meaning(None, is_asked, first), Meaning::Stop);
        }
        for millis in [0, 1, 199] {
            assert_eq!(after(millis, true), Meaning::Nothing, "{millis}");
        }
        for millis in [200, 1_000, 100_000] {
            assert_eq!(after(millis, true), Meaning::EndAtOnce, "{millis}");
            assert_eq!(after(millis, false), Meaning::Nothing, "{millis}");
        }
    }

    #[test]
    fn filters() {
        for filter in [
            "info",
            "WARN",
            "off",
            "3",
            "",
            "quarry",
            "quarry::http",
            "info,quarry::sync=debug",
            "hyper=trace, info",
            "quarry[span]=info",
        ] {
            assert!(read_filter(filter).is_ok(), "{filter}");
        }
        for (filter, is_silent) in [
            ("info", true),
            ("", true),
            ("trace", true),
            ("info,alloy=error", false),
        ] {
            let shown = read_filter(filter).unwrap().to_string();
            assert_eq!(shown.contains("alloy=off"), is_silent, "{filter}: {shown}");
        }
        for (filter, why) in [
            ("inf", "`inf` is none of off, error, warn, info, debug, trace"),
            ("info debug", "`info debug` is none of"),
            ("quarry=lots", "expected one of"),
            ("info,hyper", "`hyper` is none of"),
            ("9", "`9` is none of"),
            ("[[", "invalid filter directive"),
        ] {
            let sentence = read_filter(filter).unwrap_err();
            assert!(
                sentence.contains(why) && sentence.starts_with("log: `"),
                "{filter}: {sentence}"
            );
        }
    }
}
