//! The log of a service that runs on the test's own thread.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// The log, as text.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// What this thread writes from now on, down to `level`, while the guard lives.
    pub(crate) fn of_this_thread(level: Level) -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_max_level(level)
            .with_writer(move || writer.clone());
        let guard = tracing::subscriber::set_default(subscriber.finish());
        (log, guard)
    }

    /// The lines with this message, each an object.
    pub(crate) fn lines(&self, message: &str) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .filter(|line| line["fields"]["message"] == message)
            .collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
