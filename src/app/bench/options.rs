//! What `quarry bench` was given, checked before anything is opened, and the command line as it may be shown.

use std::time::Duration;

use crate::app::AppError;
use crate::bench::against::postgres;
use crate::bench::question::Only;
use crate::bench::set::published;
use crate::cli::BenchArgs;
use crate::node::NodeConfig;

/// The checked values.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) seconds: Duration,
    pub(super) limit: Duration,
    /// Host and port of the service to ask.
    pub(super) authority: Option<String>,
    /// The questions that are asked.
    pub(super) only: Only,
    /// The command line without what URLs may hide.
    pub(super) command: String,
}

impl Options {
    pub(super) fn check(args: &BenchArgs) -> Result<Self, AppError> {
        if args.list && (args.json.is_some() || args.html.is_some()) {
            return Err(AppError::NotUnderstood(
                "list: prints the questions and measures nothing: leave json and html out".to_owned(),
            ));
        }
        let only = Only::of(&args.only);
        if only.is_empty() && !args.only.is_empty() {
            return Err(AppError::NotUnderstood(
                "only: names nothing: leave it out to ask all questions, --list names them".to_owned(),
            ));
        }
        if let Some(unknown) = only.unknown(&published().collect::<Vec<_>>()) {
            return Err(AppError::NotUnderstood(format!(
                "only: no question's name contains `{unknown}`, and no group is called so; --list names them"
            )));
        }
        if let Some(url) = &args.against_postgres {
            postgres::shown(url).map_err(|error| AppError::NotUnderstood(error.to_string()))?;
        }
        if let Some(url) = &args.against_node {
            let node = NodeConfig::new(url.as_str());
            node.check()
                .map_err(|error| AppError::NotUnderstood(format!("against-node: {error}")))?;
        }
        Ok(Self {
            seconds: Duration::from_secs_f64(args.seconds),
            limit: Duration::from_secs_f64(args.limit),
            authority: args.url.as_deref().map(authority).transpose()?,
            only,
            command: command(std::env::args_os().map(|arg| arg.to_string_lossy().into_owned())),
        })
    }
}

/// Host and port of `http://HOST:PORT`.
fn authority(url: &str) -> Result<String, AppError> {
    let wrong = |why: &str| {
        let shown = NodeConfig::new(url).shown_url();
        AppError::NotUnderstood(format!(
            "url: `{shown}` {why}: expected the service itself, such as http://127.0.0.1:8080"
        ))
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("is no URL"))?;
    if scheme != "http" {
        return Err(wrong("is not plain http"));
    }
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.is_empty() || authority.contains(['/', '?', '#', '@']) {
        return Err(wrong("has more than host and port (a user, a path or a query)"));
    }
    // The colons of an IPv6 address are in brackets.
    let behind_address = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    match behind_address.rsplit_once(':') {
        None => Ok(format!("{authority}:80")),
        Some((_, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(authority.to_owned()),
        Some(_) => Err(wrong("has a port that is none")),
    }
}

/// A command line with its URLs as they may be shown.
fn command(args: impl Iterator<Item = String>) -> String {
    let mut shown = vec!["quarry".to_owned()];
    let mut is_database = false;
    for arg in args.skip(1) {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (format!("{name}="), value.to_owned()),
            _ => (String::new(), arg.clone()),
        };
        if is_database || name == "--against-postgres=" {
            let url = postgres::shown(&value).unwrap_or_else(|_| "postgres://".to_owned());
            shown.push(name + &url);
        } else if value.contains("://") {
            shown.push(name + &NodeConfig::new(value).shown_url());
        } else {
            shown.push(arg.clone());
        }
        is_database = arg == "--against-postgres";
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_the_command_line_are_not_shown() {
        let given = [
            "/usr/bin/quarry",
            "bench",
            "--against-node",
            "https://node.example/v3/key",
            "--against-postgres",
            "postgres://me:se/cret@db.example/logs",
            "--url=http://127.0.0.1:8080/?k=key",
            "--against-postgres=postgres://me:secret@db.example",
            "--seconds",
            "0.5",
        ];
        let shown = command(given.iter().map(ToString::to_string));
        assert_eq!(
            shown,
            "quarry bench --against-node https://node.example --against-postgres postgres://db.example:5432 \
             --url=http://127.0.0.1:8080 --against-postgres=postgres://db.example:5432 --seconds 0.5"
        );
    }

    #[test]
    fn a_service_is_host_and_port() {
        assert_eq!(authority("http://127.0.0.1:8080/").unwrap(), "127.0.0.1:8080");
        assert_eq!(authority("http://localhost").unwrap(), "localhost:80");
        assert_eq!(authority("http://[::1]").unwrap(), "[::1]:80");
        assert_eq!(authority("http://[::1]:8080").unwrap(), "[::1]:8080");
        for url in [
            "https://localhost",
            "localhost:80",
            "http://localhost/api",
            "http://me@localhost",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:0",
            "http://127.0.0.1:",
            "http://",
        ] {
            assert!(authority(url).is_err(), "{url}");
        }
    }
}
