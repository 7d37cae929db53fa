//! Signals that end the program, and how often they are sent.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::log::serving;

/// `quarry serve` with a request whose body does not come, to which the shell sends `signals`.
fn signalled(signals: &str) -> Output {
    let data = tempfile::tempdir().unwrap();
    let (child, address) = serving(data.path(), Stdio::piped());
    let mut waiting = TcpStream::connect(address).unwrap();
    let request = b"POST /rpc HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{";
    waiting.write_all(request).unwrap();
    // Its connection is dealt to a thread.
    std::thread::sleep(Duration::from_millis(200));
    let line = signals.replace("PID", &child.id().to_string());
    let sent = Command::new("sh").args(["-c", &line]).status();
    assert!(sent.unwrap().success(), "{line}");
    child.wait_with_output().unwrap()
}

/// GNU's `timeout` sends its signal to the process and to its group at once. Of two kinds, so that the system does not make one of them.
#[test]
fn signals_that_come_together_are_one() {
    let output = signalled("kill -TERM PID; kill -INT PID");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("stopping; a second signal stops at once"), "{said}");
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let output = signalled("kill -TERM PID; sleep 0.5; kill -TERM PID");
    assert_eq!(output.status.code(), Some(130));
}
