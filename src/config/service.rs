//! Bounds on clients of the service.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use super::{ConfigError, ConfigFile};
use crate::cli::ListenArgs;

/// Bounds on clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// Connections served at once.
    pub max_connections: usize,
    /// How long a client may be silent or take nothing.
    pub client_timeout: Duration,
    /// Requests a second of one client; `None`: no limit.
    pub rate_limit: Option<NonZeroU32>,
    /// Whether `X-Forwarded-For` names the client.
    pub trust_proxy: bool,
}

/// An hour: longer is no bound.
const CLIENT_TIMEOUT_MAX: u64 = 3600;

/// Far more than a kernel gives descriptors for.
const CONNECTIONS_MAX: usize = 1 << 24;

fn checked<T: PartialOrd + std::fmt::Display>(
    name: &'static str,
    value: T,
    least: T,
    most: T,
) -> Result<T, ConfigError> {
    if value < least || value > most {
        let reason = format!("`{value}` is not between {least} and {most}");
        return Err(ConfigError::Value { name, reason });
    }
    Ok(value)
}

impl ServiceConfig {
    /// Flag or environment, then file, then default.
    pub(super) fn merge(args: &ListenArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let connections = args.max_connections.or(file.max_connections).unwrap_or(4096);
        let timeout = args.client_timeout.or(file.client_timeout).unwrap_or(30);
        let timeout = checked("client-timeout", timeout, 1, CLIENT_TIMEOUT_MAX)?;
        Ok(Self {
            max_connections: checked("max-connections", connections, 1, CONNECTIONS_MAX)?,
            client_timeout: Duration::from_secs(timeout),
            rate_limit: NonZeroU32::new(args.rate_limit.or(file.rate_limit).unwrap_or(0)),
            trust_proxy: args.trust_proxy || file.trust_proxy.unwrap_or(false),
        })
    }

    /// As a file would say it.
    pub(super) fn write(&self, out: &mut String) {
        let rate = self.rate_limit.map_or(0, NonZeroU32::get);
        let _ = writeln!(out, "max_connections = {}", self.max_connections);
        let _ = writeln!(out, "client_timeout = {}", self.client_timeout.as_secs());
        let _ = writeln!(out, "rate_limit = {rate}");
        let _ = writeln!(out, "trust_proxy = {}", self.trust_proxy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_and_the_file_is_what_it_says_of_itself() {
        let file: ConfigFile =
            toml::from_str("max_connections = 7\nclient_timeout = 5\nrate_limit = 9\ntrust_proxy = true")
                .unwrap();
        let args = ListenArgs {
            max_connections: Some(8),
            rate_limit: Some(0),
            ..ListenArgs::default()
        };
        let config = ServiceConfig::merge(&args, &file).unwrap();
        assert_eq!(config.max_connections, 8);
        assert_eq!(config.client_timeout, Duration::from_secs(5));
        assert_eq!(config.rate_limit, None);
        assert!(config.trust_proxy);
        let mut text = String::new();
        config.write(&mut text);
        let again = ServiceConfig::merge(&ListenArgs::default(), &toml::from_str(&text).unwrap()).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn nonsense_is_named() {
        let error = |args: &ListenArgs| {
            ServiceConfig::merge(args, &ConfigFile::default())
                .unwrap_err()
                .to_string()
        };
        let none = ListenArgs {
            max_connections: Some(0),
            ..ListenArgs::default()
        };
        assert_eq!(error(&none), "max-connections: `0` is not between 1 and 16777216");
        for seconds in [0, 3601, u64::MAX] {
            let never = ListenArgs {
                client_timeout: Some(seconds),
                ..ListenArgs::default()
            };
            assert!(error(&never).starts_with("client-timeout: "), "{seconds}");
        }
    }
}
