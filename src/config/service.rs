//! Bounds on clients of the service.

use std::num::NonZeroU32;
use std::time::Duration;

use super::merge::{Merge, as_is, between};
use super::{ByteSize, ConfigError, ConfigFile};
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
    /// Whether JSON-RPC passes methods of state on to the node.
    pub rpc_passthrough: bool,
    /// Bytes of short answers that are kept to be given again: a share of `--cache-size`.
    pub kept_bytes: usize,
    /// Bytes of answers that clients have not taken yet, with which no list is begun: a share of `--cache-size`, too, beside it.
    pub unsent_bytes: usize,
}

/// An hour: longer is no bound.
const CLIENT_TIMEOUT_MAX: u64 = 3600;

/// Of the memory for what is read often, answers that are given again take one part in so many.
const KEPT_SHARE: usize = 32;

/// Beside that memory, answers that are made and not sent yet may take one part in so many, or this where that is more.
const UNSENT_SHARE: usize = 2;
const UNSENT_LEAST: usize = 128 << 20;

/// Far more than a kernel gives descriptors for.
const CONNECTIONS_MAX: usize = 1 << 24;

impl ServiceConfig {
    /// Flag or environment, then file, then default.
    pub(super) fn merge(
        merge: &mut Merge<'_>,
        args: &ListenArgs,
        file: &ConfigFile,
        cache_size: ByteSize,
    ) -> Result<Self, ConfigError> {
        let max_connections = merge.value(
            "max_connections",
            ("max_connections", args.max_connections),
            file.max_connections,
            4096,
            between(1, CONNECTIONS_MAX),
        )?;
        let client_timeout = merge.value(
            "client_timeout",
            ("client_timeout", args.client_timeout),
            file.client_timeout,
            30,
            between(1, CLIENT_TIMEOUT_MAX),
        )?;
        let rate_limit = merge.value(
            "rate_limit",
            ("rate_limit", args.rate_limit),
            file.rate_limit,
            0,
            as_is,
        )?;
        let trust_proxy = merge.value(
            "trust_proxy",
            ("trust_proxy", args.trust_proxy),
            file.trust_proxy,
            false,
            as_is,
        )?;
        let rpc_passthrough = merge.value(
            "rpc_passthrough",
            ("rpc_passthrough", args.rpc_passthrough),
            file.rpc_passthrough,
            false,
            as_is,
        )?;
        Ok(Self {
            max_connections,
            client_timeout: Duration::from_secs(client_timeout),
            rate_limit: NonZeroU32::new(rate_limit),
            trust_proxy,
            rpc_passthrough,
            kept_bytes: cache_size.0 / KEPT_SHARE,
            unsent_bytes: (cache_size.0 / UNSENT_SHARE).max(UNSENT_LEAST),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Given;

    fn merged(args: &ListenArgs, file: &ConfigFile) -> Result<ServiceConfig, ConfigError> {
        ServiceConfig::merge(
            &mut Merge::new(&Given::default(), None),
            args,
            file,
            ByteSize(1 << 30),
        )
    }

    #[test]
    fn flags_win_and_so_does_no() {
        let file: ConfigFile =
            toml::from_str(
                "max_connections = 7\nclient_timeout = 5\nrate_limit = 9\ntrust_proxy = true\nrpc_passthrough = true",
            )
            .unwrap();
        let args = ListenArgs {
            max_connections: Some(8),
            rate_limit: Some(0),
            ..ListenArgs::default()
        };
        let config = merged(&args, &file).unwrap();
        assert_eq!(config.max_connections, 8);
        assert_eq!(config.client_timeout, Duration::from_secs(5));
        assert_eq!(config.rate_limit, None);
        assert!(config.trust_proxy && config.rpc_passthrough);
        let no = ListenArgs {
            trust_proxy: Some(false),
            rpc_passthrough: Some(false),
            ..args
        };
        let config = merged(&no, &file).unwrap();
        assert!(!config.trust_proxy && !config.rpc_passthrough);
    }

    #[test]
    fn nonsense_is_named() {
        let error = |args: &ListenArgs| merged(args, &ConfigFile::default()).unwrap_err().to_string();
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
