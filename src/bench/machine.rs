//! The machine that a run was measured on.

use serde::Serialize;

use super::figures::count;
use crate::machine;

/// The machine that it ran on.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// What the processor calls itself.
    pub processor: String,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// The system.
    pub system: String,
    /// Processes that ran or waited on average in the last minute, when the run began and when it ended.
    pub load: [f64; 2],
}

impl Machine {
    /// What it has, in words; nothing of what the system does not tell.
    pub(super) fn in_words(&self) -> String {
        let memory =
            (self.memory_bytes > 0).then(|| format!("{}B of memory", count(self.memory_bytes as f64)));
        let parts = [
            format!("{} cores", self.cores),
            self.processor.clone(),
            memory.unwrap_or_default(),
            self.system.trim().to_owned(),
        ];
        let told: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        told.join(", ")
    }

    /// This machine; what the system does not tell stays empty.
    #[must_use]
    pub fn here() -> Self {
        let processors = machine::text("/proc/cpuinfo");
        let processor = machine::stated(&processors, "model name").unwrap_or_default();
        Self {
            cores: machine::cores(),
            processor: processor.to_owned(),
            memory_bytes: machine::memory().unwrap_or_default(),
            system: format!(
                "{} {}",
                std::env::consts::OS,
                machine::text("/proc/sys/kernel/osrelease").trim()
            ),
            load: [load(), 0.0],
        }
    }

    /// Notes the load at the end.
    pub fn ended(&mut self) {
        self.load[1] = load();
    }
}

fn load() -> f64 {
    let text = machine::text("/proc/loadavg");
    let first = text.split(' ').next().and_then(|text| text.parse().ok());
    first.unwrap_or_default()
}
