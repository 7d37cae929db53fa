//! One value out of flag, environment, file and default, and where it came from.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::Value;

use super::{ByteSize, ConfigError};
use crate::cli::{Given, LogFormat};
use crate::model::{Address, StaticRewards};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A flag: `--cache-size`.
    Flag(String),
    /// A variable: `QUARRY_CACHE_SIZE`.
    Environment(String),
    /// The configuration file.
    File(PathBuf),
    /// Nobody said anything.
    Default,
}

impl Origin {
    /// Which kind it is, in a word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Flag(_) => "flag",
            Self::Environment(_) => "environment",
            Self::File(_) => "file",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Environment(name) => f.write_str(name),
            // Nothing that ends a line gets into a comment.
            Self::File(path) => write!(f, "{}", path.to_string_lossy().escape_debug()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value as it is in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name in the file, with its section: `cache_size`, `mainnet.prices.native`.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// A value as a file says it.
pub(super) trait InFile {
    fn in_file(&self) -> Value;
}

/// Numbers beyond what TOML can say are bounds that nothing reaches.
macro_rules! number_in_file {
    ($($number:ty),*) => {$(
        impl InFile for $number {
            fn in_file(&self) -> Value {
                Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
    )*};
}
number_in_file!(u32, u64, usize);

impl InFile for bool {
    fn in_file(&self) -> Value {
        Value::Boolean(*self)
    }
}

impl InFile for String {
    fn in_file(&self) -> Value {
        Value::String(self.clone())
    }
}

impl InFile for PathBuf {
    fn in_file(&self) -> Value {
        Value::String(self.to_string_lossy().into_owned())
    }
}

impl InFile for LogFormat {
    fn in_file(&self) -> Value {
        Value::String(self.as_str().to_owned())
    }
}

macro_rules! text_in_file {
    ($($shown:ty),*) => {$(
        impl InFile for $shown {
            fn in_file(&self) -> Value {
                Value::String(self.to_string())
            }
        }
    )*};
}
text_in_file!(SocketAddr, ByteSize, StaticRewards);

impl InFile for Vec<Address> {
    fn in_file(&self) -> Value {
        let texts = self.iter().map(|address| Value::String(format!("{address:#x}")));
        Value::Array(texts.collect())
    }
}

/// An option that can be given outside the file: its id, and what flag or environment gave.
pub(super) type Flag<T> = (&'static str, Option<T>);

/// Merges values and remembers where each came from.
pub(super) struct Merge<'a> {
    given: &'a Given,
    file: Option<&'a Path>,
    settings: Vec<Setting>,
}

impl<'a> Merge<'a> {
    /// `given` tells the environment from flags, `file` is the configuration file's name.
    pub(super) const fn new(given: &'a Given, file: Option<&'a Path>) -> Self {
        Self {
            given,
            file,
            settings: Vec::new(),
        }
    }

    /// What tells the environment from flags.
    pub(super) const fn given(&self) -> &'a Given {
        self.given
    }

    /// All values in force, in the order in which they were merged.
    pub(super) fn into_settings(self) -> Vec<Setting> {
        self.settings
    }

    /// Flag or environment, then file; `None` where neither says anything.
    pub(super) fn choose<T>(&self, flag: Flag<T>, file: Option<T>) -> (Option<T>, Origin) {
        let in_file = || {
            self.file
                .map_or(Origin::Default, |path| Origin::File(path.to_owned()))
        };
        match (flag, file) {
            ((id, Some(value)), _) if self.given.is_environment(id) => {
                (Some(value), Origin::Environment(crate::cli::variable(id)))
            }
            ((id, Some(value)), _) => (Some(value), Origin::Flag(crate::cli::flag(id))),
            ((_, None), Some(value)) => (Some(value), in_file()),
            ((_, None), None) => (None, Origin::Default),
        }
    }

    /// Takes note of a value in force.
    pub(super) fn note(&mut self, key: impl Into<String>, value: &impl InFile, origin: Origin) {
        self.settings.push(Setting {
            key: key.into(),
            value: value.in_file(),
            origin,
        });
    }

    /// A value that is always there.
    pub(super) fn value<T, U: InFile>(
        &mut self,
        key: impl Into<String>,
        flag: Flag<T>,
        file: Option<T>,
        default: T,
        read: impl FnOnce(T) -> Result<U, String>,
    ) -> Result<U, ConfigError> {
        let key = key.into();
        let (chosen, origin) = self.choose(flag, file);
        let value = read(chosen.unwrap_or(default)).map_err(|reason| fault(&key, reason, &origin))?;
        self.note(key, &value, origin);
        Ok(value)
    }

    /// A value that may be absent.
    pub(super) fn optional<T, U: InFile>(
        &mut self,
        key: impl Into<String>,
        flag: Flag<T>,
        file: Option<T>,
        read: impl FnOnce(T) -> Result<U, String>,
    ) -> Result<Option<U>, ConfigError> {
        let key = key.into();
        let (chosen, origin) = self.choose(flag, file);
        let value = chosen.map(read).transpose();
        let value = value.map_err(|reason| fault(&key, reason, &origin))?;
        if let Some(value) = &value {
            self.note(key, value, origin);
        }
        Ok(value)
    }

    /// A value of the file that has no flag.
    pub(super) fn in_file<T, U: InFile>(
        &mut self,
        key: impl Into<String>,
        file: Option<T>,
        read: impl FnOnce(T) -> Result<U, String>,
    ) -> Result<Option<U>, ConfigError> {
        self.optional(key, ("", None), file, read)
    }
}

/// A wrong value by its key; of a flag by the flag, which is what was typed.
pub(super) fn fault(key: &str, reason: String, origin: &Origin) -> ConfigError {
    let (name, place) = match origin {
        Origin::Flag(flag) => (flag.trim_start_matches('-').to_owned(), String::new()),
        Origin::Default => (key.to_owned(), String::new()),
        Origin::Environment(_) | Origin::File(_) => (key.to_owned(), format!(" (from {origin})")),
    };
    let reason = reason + &place;
    ConfigError::Value { name, reason }
}

/// Nothing is to be read.
pub(super) const fn as_is<T>(value: T) -> Result<T, String> {
    Ok(value)
}

/// A number within bounds.
pub(super) fn between<T: PartialOrd + fmt::Display>(
    least: T,
    most: T,
) -> impl FnOnce(T) -> Result<T, String> {
    move |value| {
        if value < least || value > most {
            return Err(format!("`{value}` is not between {least} and {most}"));
        }
        Ok(value)
    }
}
