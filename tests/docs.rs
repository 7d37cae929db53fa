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

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory as _;
use quarry::api::{Group, endpoints};
use quarry::cli::{Cli, LogArgs, RunArgs};
use quarry::config::{Config, ConfigFile, Origin, Setting};
use quarry::http::{Limits, PoolLimits};

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn the_schema_page_is_fresh() {
    section::check("docs/SCHEMA.md", "schema", &quarry::store::render_schema());
}

#[test]
fn the_layout_in_the_upgrading_page_is_fresh() {
    let (release, layout) = (env!("CARGO_PKG_VERSION"), quarry::store::schema::SCHEMA_VERSION);
    let text = format!("This checkout is {release} and writes layout {layout}.");
    section::check("docs/UPGRADING.md", "layout", &text);
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
        // A bar ends a cell, also in code.
        let names = if deeper.is_empty() {
            format!("`quarry {}`", command.get_name())
        } else {
            format!("`quarry {} {}`", command.get_name(), deeper.join("\\|"))
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
            "a client takes less than 64 KiB of a ready answer; a third of that, 10s at most, while lists are refused for want of room, or where its connection holds so much that they would be",
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
        (
            "memory of answers that are made and not taken yet, and of uploads; a list or batch more is told 503, and over half of it one of a connection that holds a sixteenth",
            format!("{} MiB", pool.unsent_bytes_max >> 20),
            "half of `--cache-size`, at least 128 MiB",
        ),
    ] {
        writeln!(table, "| {what} | {value} | {option} |").unwrap();
    }
    section::check("docs/OPERATIONS.md", "limits", &table);
}

/// The example with its options switched on: those at their defaults, and with `examples` the others too.
fn example_switched_on(examples: bool) -> String {
    let text = page("quarry.example.toml");
    // An option that is commented out is `#name = value`; prose has a blank after the sign.
    let lines = text.lines().map(|line| {
        line.strip_prefix('#')
            .filter(|rest| !rest.starts_with(' '))
            .filter(|rest| examples || !rest.ends_with("# example"))
            .unwrap_or(line)
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// What keys a table may have, as the reader of files itself says when it meets one that it does not know.
#[track_caller]
fn known_keys(section: &str) -> Vec<String> {
    let header = if section.is_empty() {
        String::new()
    } else {
        format!("[{section}]\n")
    };
    let error = toml::from_str::<ConfigFile>(&format!("{header}no_such_key = 1")).unwrap_err();
    let message = error.message().to_owned();
    let (_, expected) = message.split_once("expected ").expect("a list of keys");
    expected
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The sections of the file, and whether they are a table's keys.
const SECTIONS: [&str; 7] = [
    "",
    "mainnet",
    "mainnet.supply",
    "mainnet.prices",
    "testnet",
    "testnet.supply",
    "testnet.prices",
];

fn all_keys() -> BTreeSet<String> {
    let keys = SECTIONS.iter().flat_map(|section| {
        let keys = known_keys(section);
        assert!(
            keys.len() > usize::from(!section.ends_with("supply")),
            "{section}"
        );
        let dot = if section.is_empty() { "" } else { "." };
        keys.into_iter().map(move |key| format!("{section}{dot}{key}"))
    });
    keys.filter(|key| !SECTIONS.contains(&key.as_str())).collect()
}

fn leaves(prefix: &str, value: &toml::Value, out: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let dot = if prefix.is_empty() { "" } else { "." };
                leaves(&format!("{prefix}{dot}{key}"), value, out);
            }
        }
        _ => {
            out.insert(prefix.to_owned());
        }
    }
}

#[test]
fn the_example_configuration_has_every_option() {
    let _: ConfigFile = toml::from_str(&page("quarry.example.toml")).expect("as shipped");
    let whole = example_switched_on(true);
    let _: ConfigFile = toml::from_str(&whole).expect("with everything switched on");
    let mut shown = BTreeSet::new();
    leaves("", &toml::from_str(&whole).unwrap(), &mut shown);
    assert_eq!(shown, all_keys());
}

#[test]
fn every_option_of_the_command_line_is_one_of_the_file() {
    let command = Cli::command();
    let keys = all_keys();
    let commands = command.get_subcommands().chain([&command]);
    let options = commands.flat_map(clap::Command::get_arguments);
    let options: Vec<&str> = options
        .filter(|arg| arg.get_env().is_some())
        .map(|arg| arg.get_id().as_str())
        .collect();
    assert!(options.len() > 15, "{options:?}");
    for option in options {
        // The one that names the file, and what a replica does not share with the writer that may have the same file.
        if ["config", "secondary"].contains(&option) {
            continue;
        }
        let key = option
            .replacen("mainnet_", "mainnet.", 1)
            .replacen("testnet_", "testnet.", 1);
        assert!(
            keys.contains(&key) || keys.contains(&format!("mainnet.{key}")),
            "no key of the file says what `{option}` says"
        );
    }
}

/// What `quarry run` would do with two nodes and this file.
fn in_force(file: Option<&str>) -> Vec<Setting> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quarry.toml");
    let mut args = RunArgs::default();
    if let Some(text) = file {
        std::fs::write(&path, text).unwrap();
        args.store.config = Some(path);
    }
    let node = Some("http://127.0.0.1:8545".to_owned());
    (args.node.mainnet_rpc, args.node.testnet_rpc) = (node.clone(), node);
    let report = Config::report(&args, &LogArgs::default()).unwrap();
    report.settings().to_vec()
}

#[test]
fn options_that_are_switched_off_in_the_example_are_at_their_defaults() {
    let defaults = in_force(None);
    let mut said = 0;
    for setting in in_force(Some(&example_switched_on(false))) {
        // Neither is in force: the one is given, the other says that nobody is excluded.
        if setting.key.ends_with(".rpc") || setting.key == "testnet.supply.excluded" {
            continue;
        }
        let default = defaults.iter().find(|default| default.key == setting.key);
        let default =
            default.unwrap_or_else(|| panic!("{} has no default: mark it `# example`", setting.key));
        assert_eq!(setting.value, default.value, "{}", setting.key);
        assert!(
            matches!(setting.origin, Origin::File(_)),
            "{} is not switched on",
            setting.key
        );
        said += 1;
    }
    assert_eq!(
        said,
        defaults.len() - 2,
        "every default is in the example, but for the nodes"
    );
}

#[test]
fn defaults_that_the_help_names_are_the_defaults() {
    let defaults = in_force(None);
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    let mut named = 0;
    for arg in run.get_arguments().chain(command.get_arguments()) {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let Some((_, rest)) = help.split_once("[default: ") else {
            continue;
        };
        let stated = rest.split(']').next().unwrap().trim_start_matches("./");
        let id = arg.get_id().as_str();
        // It is the store's, and that of a new one.
        if id == "start_block" {
            continue;
        }
        let found = defaults
            .iter()
            .find(|setting| setting.key == id || setting.key == format!("mainnet.{id}"));
        let value = &found
            .unwrap_or_else(|| panic!("`{id}` names a default and has none"))
            .value;
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        assert_eq!(shown, stated, "{id}");
        named += 1;
    }
    assert!(named > 9, "{named}");
}

/// Where a heading is found by a link, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for folder in ["docs", "docs/decisions"] {
        let files = std::fs::read_dir(root.join(folder)).unwrap();
        let files = files.map(|file| file.unwrap().path());
        pages.extend(files.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    let mut led = 0;
    for from in pages {
        let text = std::fs::read_to_string(&from).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            let path = if file.is_empty() {
                from.clone()
            } else {
                from.parent().unwrap().join(file)
            };
            let name = from.display();
            assert!(path.exists(), "{name}: {link} leads nowhere");
            if !place.is_empty() && path.extension().is_some_and(|end| end == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                assert!(
                    headings.any(|line| anchor(line) == place),
                    "{name}: {link} names no heading"
                );
            }
            led += 1;
        }
    }
    assert!(led > 100, "{led}");
}
