//! The pages against the code: what is rendered must be fresh, what is listed must be whole.
//!
//! `QUARRY_BLESS=1 cargo test --release --test docs` renders the parts between markers anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/section.rs"]
mod section;

use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory as _;
use quarry::api::{Group, endpoints};
use quarry::cli::Cli;
use quarry::config::ConfigFile;
use quarry::http::{Limits, PoolLimits};

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn the_schema_page_is_fresh() {
    section::check("docs/SCHEMA.md", "schema", &quarry::store::render_schema());
}

#[test]
fn the_operations_in_the_readme_are_fresh() {
    let mut table = String::from("| Operation | Route |\n|---|---|\n");
    for endpoint in endpoints() {
        let action = endpoint
            .action
            .map_or_else(String::new, |action| format!("?action={action}"));
        let ids = match endpoint.group {
            Group::Proxy | Group::Service => format!("`{}`", endpoint.ids.join("`, `")),
            _ => endpoint.ids.join(", "),
        };
        writeln!(table, "| {ids} | `GET {}{action}` |", endpoint.path).unwrap();
    }
    section::check("README.md", "operations", &table);
}

#[test]
fn the_commands_in_the_readme_are_fresh() {
    let mut table = String::from("| Command | Does |\n|---|---|\n");
    for command in Cli::command().get_subcommands() {
        let deeper: Vec<_> = command
            .get_subcommands()
            .map(|deeper| deeper.get_name())
            .collect();
        let names = if deeper.is_empty() {
            format!("`quarry {}`", command.get_name())
        } else {
            format!("`quarry {} {}`", command.get_name(), deeper.join("|"))
        };
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(table, "| {names} | {} |", about.trim_end_matches('.')).unwrap();
    }
    section::check("README.md", "commands", &table);
}

#[test]
fn the_questions_in_the_benchmarks_page_are_fresh() {
    let mut table = String::from("| Question | Asks for | Shows |\n|---|---|---|\n");
    for question in quarry::bench::set::published() {
        writeln!(
            table,
            "| `{}` | {} | {} |",
            question.name, question.about, question.shows
        )
        .unwrap();
    }
    section::check("docs/BENCHMARKS.md", "questions", &table);
}

#[test]
fn the_limits_in_the_operations_page_are_fresh() {
    let (limits, pool) = (Limits::default(), PoolLimits::default());
    let mut table = String::from("| Limit | Value | Option |\n|---|---|---|\n");
    let bytes = |count: usize| format!("{count} bytes");
    for (what, value, option) in [
        (
            "connections at once; one more is told 503 and closed",
            limits.connections_max.to_string(),
            "`--max-connections`",
        ),
        (
            "refusals being spoken at once; one more is closed without a word",
            limits.refusals_max.to_string(),
            "",
        ),
        (
            "requests a second of one client; one more is told 429",
            limits
                .rate
                .map_or_else(|| "no limit".to_owned(), |rate| rate.to_string()),
            "`--rate-limit`",
        ),
        (
            "length of a request target; a longer one is told 414",
            bytes(limits.uri_bytes_max),
            "",
        ),
        (
            "headers in total; more are told 431",
            bytes(limits.header_bytes_max),
            "",
        ),
        (
            "time to send a request's head; idle time of a kept connection",
            format!("{:?}", limits.header_read_timeout),
            "`--client-timeout`",
        ),
        (
            "a client takes less than 64 KiB of a ready answer",
            format!("{:?}", limits.write_timeout),
            "`--client-timeout`",
        ),
        (
            "requests being answered at once; one more is told 503",
            limits.requests_max.to_string(),
            "",
        ),
        (
            "from a request's head to the head of its answer; then 503",
            format!("{:?}", limits.answer_timeout),
            "",
        ),
        ("a body in all", format!("{:?}", limits.body_timeout), ""),
        (
            "streams of one HTTP/2 connection",
            limits.streams_max.to_string(),
            "",
        ),
        (
            "point look-ups waiting for a thread",
            pool.points_waiting_max.to_string(),
            "",
        ),
        (
            "lists waiting for a thread",
            pool.scans_waiting_max.to_string(),
            "",
        ),
        ("longest wait for a thread", format!("{:?}", pool.wait_max), ""),
    ] {
        writeln!(table, "| {what} | {value} | {option} |").unwrap();
    }
    section::check("docs/OPERATIONS.md", "limits", &table);
}

#[test]
fn the_example_configuration_has_every_option() {
    let text = page("quarry.example.toml");
    let _: ConfigFile = toml::from_str(&text).expect("as shipped");
    // An option that is commented out is `#name = value`; prose has a blank after the sign.
    let whole: String = text
        .lines()
        .map(|line| {
            line.strip_prefix('#')
                .filter(|rest| !rest.starts_with(' '))
                .unwrap_or(line)
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    let file: ConfigFile = toml::from_str(&whole).expect("with everything switched on");
    let shown = format!("{file:?}");
    assert!(
        !shown.contains("None"),
        "an option is not in the example: {shown}"
    );
}

#[test]
fn links_between_pages_lead_somewhere() {
    for name in [
        "README.md",
        "CHANGELOG.md",
        "docs/ARCHITECTURE.md",
        "docs/SCHEMA.md",
        "docs/OPERATIONS.md",
        "docs/RELIABILITY.md",
    ] {
        let folder = Path::new(name).parent().unwrap().to_owned();
        let text = page(name);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if !file.is_empty() && !file.contains("://") {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&folder).join(file);
                assert!(path.exists(), "{name}: {link} leads nowhere");
            }
        }
    }
}
