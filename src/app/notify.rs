//! What a supervisor such as systemd is told (sd_notify(3)): how the process is, and that it still is.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use sd_notify::NotifyState;

use crate::tasks;

/// Tells a supervisor, where one listens (`NOTIFY_SOCKET`), how the process is. That it cannot be told is no reason to fail.
pub(super) fn notify(state: NotifyState<'_>, status: &str) {
    if let Err(error) = send(&[state, NotifyState::Status(status)]) {
        tracing::warn!(%error, "the supervisor at NOTIFY_SOCKET cannot be told");
    }
}

/// Tells a supervisor that wants it (`WatchdogSec=`) that the process is alive, as long as the threads that all work of it is given to
/// by the clock do what they are given. Never comes back.
pub(super) async fn keep_alive() -> Infallible {
    let Some(within) = sd_notify::watchdog_enabled().filter(|within| !within.is_zero()) else {
        return std::future::pending().await;
    };
    tracing::debug!(?within, "the supervisor wants to hear that this process is alive");
    // Twice in the time that it waits, as sd_watchdog_enabled(3) wants it.
    let mut ticks = tokio::time::interval(within / 2);
    let mut is_told = true;
    loop {
        ticks.tick().await;
        // Elsewhere: one that reads nothing may hold up who writes to it.
        let Ok(sent) = tasks::blocking(|| send(&[NotifyState::Watchdog])).await else {
            continue;
        };
        if let Err(error) = &sent
            && is_told
        {
            tracing::warn!(%error, "the supervisor cannot be told that this process is alive");
        }
        is_told = sent.is_ok();
    }
}

fn send(states: &[NotifyState<'_>]) -> io::Result<()> {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(());
    };
    let text: String = states.iter().map(|state| format!("{state}\n")).collect();
    UnixDatagram::unbound()?
        .send_to_addr(text.as_bytes(), &address(&socket)?)
        .map(drop)
}

/// The address of a socket. An `@` stands before a name that is none of the file system (unix(7), "abstract").
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = socket.as_bytes().strip_prefix(b"@") {
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(socket)
}
