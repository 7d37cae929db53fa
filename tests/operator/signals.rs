//! Signals that end the program, and how often they are sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::binary::signal::{Signal, send};
use crate::binary::{command, eventually};
use crate::log::serving;

/// `quarry serve`, with a request whose body is waited for.
fn busy(data: &Path) -> (Child, TcpStream) {
    let (child, address) = serving(data, Stdio::piped());
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = b"POST /rpc HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 100\r\n\r\n";
    stream.write_all(request).unwrap();
    let told = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut said = [0; 25];
    stream.read_exact(&mut said).unwrap();
    assert_eq!(&said, told, "{}", String::from_utf8_lossy(&said));
    (child, stream)
}

/// GNU's `timeout` sends its signal to the process and to its group at once. Of two kinds, so that the system does not make one of them.
#[test]
fn signals_that_come_together_are_one() {
    let data = tempfile::tempdir().unwrap();
    let (child, _waiting) = busy(data.path());
    send(&child, Signal::TERM);
    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("stopping; a second signal stops at once"), "{said}");
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let data = tempfile::tempdir().unwrap();
    let (mut child, _waiting) = busy(data.path());
    send(&child, Signal::TERM);
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let stopping = log.find(|line| line.as_ref().unwrap().contains("stopping; a second signal"));
    assert!(stopping.is_some());
    // One that comes sooner is the same.
    std::thread::sleep(Duration::from_millis(300));
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Also where it is not yet filled: it was asked to end, and ends.
#[test]
fn a_demo_that_is_stopped_early_has_not_failed() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().join("mainnet");
    let mut demo = command(["demo", "--listen", "127.0.0.1:0", "--data-dir"]);
    let child = demo.arg(data.path()).spawn().unwrap();
    // It listens to signals before it makes its store.
    eventually("its store is begun", Duration::from_secs(60), || {
        store.exists().then_some(())
    });
    send(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
}
