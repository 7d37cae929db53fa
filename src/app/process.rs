//! The process: log, signals, words for the terminal.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use super::AppError;
use crate::cli::LogFormat;
use crate::shutdown::{Shutdown, Trigger, pair};

/// Begins to log to standard error.
pub(super) fn init_log(filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        format!("log: `{filter}` is not a filter such as `info` or `quarry=debug`: {error}")
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // A second initialisation (tests in one process) keeps the first.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    Ok(())
}

/// Writes a line to standard output. A closed pipe is no reason to fail.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Says why the command failed.
pub(super) fn fail(sentence: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr().lock(), "quarry: {sentence}");
    ExitCode::FAILURE
}

/// Runs work that blocks off the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AppError> + Send + 'static,
) -> Result<T, AppError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(AppError::Usage(format!("a worker died: {error}"))),
    }
}

/// A shutdown that SIGINT and SIGTERM fire; a second signal ends the process at once.
pub(super) fn on_signals() -> Result<(Trigger, Shutdown), AppError> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(AppError::io("listen for signals"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let (trigger, shutdown) = pair();
    let fire = trigger.clone();
    tokio::spawn(async move {
        for last in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if last {
                std::process::exit(130);
            }
            tracing::info!("stopping; a second signal stops at once");
            fire.fire();
        }
    });
    Ok((trigger, shutdown))
}
