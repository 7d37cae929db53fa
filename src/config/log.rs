//! What is logged, and how.

use std::path::Path;

use super::merge::Merge;
use super::{ConfigError, ConfigFile};
use crate::cli::{Given, LogArgs, LogFormat};

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Which events, in tracing's filter syntax.
    pub filter: String,
    /// How.
    pub format: LogFormat,
}

/// A filter that names nothing would silence everything, and is mostly a variable of a script that is not set.
fn some_filter(text: String) -> Result<String, String> {
    match text.split(',').all(|directive| directive.trim().is_empty()) {
        true => Err("empty: leave it out, or give it a filter such as `info`; `off` is silence".to_owned()),
        false => Ok(text),
    }
}

impl LogConfig {
    /// Merges flags and environment with a file, which is read for that, and the defaults.
    pub fn merge(args: &LogArgs, path: Option<&Path>, given: &Given) -> Result<Self, ConfigError> {
        let file = path.map(ConfigFile::load).transpose()?.unwrap_or_default();
        Self::note(&mut Merge::new(given, path), args, &file)
    }

    pub(super) fn note(
        merge: &mut Merge<'_>,
        args: &LogArgs,
        file: &ConfigFile,
    ) -> Result<Self, ConfigError> {
        let format = args.log_format.map(|format| format.as_str().to_owned());
        Ok(Self {
            filter: merge.value(
                "log",
                ("log", args.log.clone()),
                file.log.clone(),
                "info".to_owned(),
                some_filter,
            )?,
            format: merge.value(
                "log_format",
                ("log_format", format),
                file.log_format.clone(),
                LogFormat::default().as_str().to_owned(),
                |text| text.parse(),
            )?,
        })
    }
}
