//! What came from the environment, which clap merges with the command line.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use super::{Cli, Command, NodeArgs};

/// What every variable's name begins with.
const PREFIX: &str = "QUARRY_";

/// Which options came from the environment (the others came from the command line), and what of it no option of the command is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Ids of options, as the fields of their structs are called.
    environment: BTreeSet<String>,
    /// A sentence for each variable that looks like ours and names no option.
    unknown: Vec<String>,
    /// The nodes of `mainnet` and `testnet`.
    nodes: [Option<String>; 2],
}

impl Given {
    /// What clap knows of a command line.
    fn of(matches: &ArgMatches) -> Self {
        let mut deepest = matches;
        while let Some((_, deeper)) = deepest.subcommand() {
            deepest = deeper;
        }
        let ids = deepest.ids().map(clap::Id::as_str);
        let environment = ids
            .filter(|id| deepest.value_source(id) == Some(ValueSource::EnvVariable))
            .map(str::to_owned)
            .collect();
        Self {
            environment,
            unknown: unknown(&Cli::command(), std::env::vars_os().map(|(name, _)| name))
                .iter()
                .map(|name| told(name))
                .collect(),
            nodes: ["mainnet_rpc", "testnet_rpc"]
                .map(|id| std::env::var(variable(id)).ok().filter(|url| !url.is_empty())),
        }
    }

    /// Whether the option with this id came from the environment.
    #[must_use]
    pub fn is_environment(&self, id: &str) -> bool {
        self.environment.contains(id)
    }

    /// The nodes that the environment names, for commands that ask none: what variables say of one chain alone they say of the only one
    /// that has a node.
    #[must_use]
    pub(super) fn nodes(&self) -> NodeArgs {
        let [mainnet_rpc, testnet_rpc] = self.nodes.clone();
        NodeArgs {
            mainnet_rpc,
            testnet_rpc,
            ..NodeArgs::default()
        }
    }

    /// A sentence for each variable of the environment that looks like ours and names no option, without its value, which may be a key.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }
}

/// The flag of an option.
#[must_use]
pub(crate) fn flag(id: &str) -> String {
    format!("--{}", id.replace('_', "-"))
}

/// The variable of an option.
#[must_use]
pub(crate) fn variable(id: &str) -> String {
    format!("{PREFIX}{}", id.to_ascii_uppercase())
}

fn unknown(command: &clap::Command, names: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut known = BTreeSet::new();
    collect(command, &mut known);
    let mut unknown: Vec<String> = names
        .filter(|name| !known.contains(name))
        .map(|name| name.to_string_lossy().escape_debug().to_string())
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    unknown.sort();
    unknown
}

/// The sentence about a variable that names no option.
fn told(name: &str) -> String {
    let nearest = nearest(name).map(|near| format!("; {near} does, and is the nearest"));
    format!(
        "{name} is in the environment and names no option{}",
        nearest.unwrap_or_default()
    )
}

/// The variable that may be meant by one that names no option: as clap helps with a flag that is misspelt.
fn nearest(name: &str) -> Option<String> {
    let typed = flag(&name.strip_prefix(PREFIX)?.to_ascii_lowercase());
    let error = Cli::command()
        .try_get_matches_from(["quarry", "run", &typed])
        .err()?;
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(near) => Some(variable(&id_of(near)?)),
        _ => None,
    }
}

/// The id of an option by how clap shows it: `--cache-size <SIZE>`.
fn id_of(shown: &str) -> Option<String> {
    let flag = shown.split([' ', '[', '=']).next()?;
    Some(flag.strip_prefix("--")?.replace('-', "_"))
}

fn collect(command: &clap::Command, known: &mut BTreeSet<OsString>) {
    let variables = command.get_arguments().filter_map(|arg| arg.get_env());
    known.extend(variables.map(ToOwned::to_owned));
    for deeper in command.get_subcommands() {
        collect(deeper, known);
    }
}

/// The command line as it is read: variables that are `empty` say nothing, as ones that are not there, and no help shows what a variable
/// holds, which may be a key.
fn as_read(command: clap::Command, empty: &dyn Fn(&OsStr) -> bool) -> clap::Command {
    let command = command.mut_args(|arg| {
        let arg = arg.hide_env_values(true);
        match arg.get_env().is_some_and(empty) {
            true => arg.env(Resettable::Reset),
            false => arg,
        }
    });
    let names: Vec<String> = command
        .get_subcommands()
        .map(|deeper| deeper.get_name().to_owned())
        .collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |deeper| as_read(deeper, empty))
    })
}

/// Has an error about a value name the variable that holds it, where nobody typed the flag that clap names.
fn with_variable(mut error: clap::Error, typed: &[OsString], is_set: &dyn Fn(&str) -> bool) -> clap::Error {
    let is_of_value = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg).filter(|_| is_of_value) else {
        return error;
    };
    let Some(id) = id_of(shown) else {
        return error;
    };
    let (flag, variable) = (flag(&id), variable(&id));
    let is_typed = typed
        .iter()
        .any(|arg| arg.to_string_lossy().split('=').next() == Some(&flag));
    if !is_typed && is_set(&variable) {
        let named = ContextValue::String(format!("{shown} (from {variable})"));
        error.insert(ContextKind::InvalidArg, named);
    }
    error
}

/// Reads the command line and the environment; ends the process where they are not understood.
pub(super) fn read() -> Cli {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let given = as_read(Cli::command(), &is_empty).try_get_matches();
    let mut matches = given.unwrap_or_else(|error| {
        let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        end(&with_variable(error, &typed, &is_set))
    });
    let given = Given::of(&matches);
    match Cli::from_arg_matches_mut(&mut matches) {
        Ok(mut cli) => {
            cli.given.clone_from(&given);
            match &mut cli.command {
                Command::Demo(args) => args.given = given,
                Command::Health(args) => {
                    cli.config.clone_from(&args.config);
                    args.given = given;
                }
                command => {
                    if let Some(store) = command.store() {
                        cli.config.clone_from(&store.config);
                        store.given = given;
                    }
                }
            }
            cli
        }
        Err(error) => end(&error.format(&mut Cli::command())),
    }
}

/// Says what was asked for (help, the version) or is wrong, and ends. What cannot be written was not said; whoever closed the pipe has seen enough.
fn end(error: &clap::Error) -> ! {
    let is_lost = error
        .print()
        .and_then(|()| std::io::stdout().flush())
        .is_err_and(|lost| lost.kind() != std::io::ErrorKind::BrokenPipe);
    std::process::exit(if is_lost { 1 } else { error.exit_code() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flag_and_variable_follow_from_the_id() {
        fn check(command: &clap::Command) {
            for arg in command.get_arguments() {
                let id = arg.get_id().as_str();
                if let Some(variable_name) = arg.get_env() {
                    assert_eq!(variable_name.to_str(), Some(variable(id).as_str()));
                    assert_eq!(arg.get_long().map(|long| format!("--{long}")), Some(flag(id)));
                }
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn empty_variables_are_not_looked_at() {
        fn variables(command: &clap::Command, found: &mut Vec<OsString>) {
            let own = command.get_arguments().filter_map(|arg| arg.get_env());
            found.extend(own.map(ToOwned::to_owned));
            command
                .get_subcommands()
                .for_each(|deeper| variables(deeper, found));
        }
        let left = |is_empty: &dyn Fn(&OsStr) -> bool| {
            let mut found = Vec::new();
            variables(&as_read(Cli::command(), is_empty), &mut found);
            found
        };
        let all = left(&|_| false);
        assert!(all.len() > 20, "{all:?}");
        assert!(left(&|_| true).is_empty());
        let some = left(&|name| name == "QUARRY_LISTEN");
        assert!(some.len() < all.len() && !some.iter().any(|name| name == "QUARRY_LISTEN"));
        as_read(Cli::command(), &|_| true).debug_assert();
    }

    #[test]
    fn no_help_shows_what_a_variable_holds() {
        fn check(command: &clap::Command, seen: &mut usize) {
            for arg in command.get_arguments().filter(|arg| arg.get_env().is_some()) {
                assert!(arg.is_hide_env_values_set(), "{} of {command}", arg.get_id());
                *seen += 1;
            }
            command.get_subcommands().for_each(|deeper| check(deeper, seen));
        }
        let mut seen = 0;
        check(&as_read(Cli::command(), &|_| false), &mut seen);
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn variables_that_name_no_option() {
        let names = ["QUARRY_MAINET_RPC", "QUARRY_LISTEN", "HOME", "QUARRY_LOG"].map(OsString::from);
        assert_eq!(unknown(&Cli::command(), names.into_iter()), ["QUARRY_MAINET_RPC"]);
    }

    #[test]
    fn the_nearest_variable_is_named_where_there_is_one() {
        for (name, near) in [
            ("QUARRY_CACHESIZE", Some("QUARRY_CACHE_SIZE")),
            ("QUARRY_MAINET_RPC", Some("QUARRY_MAINNET_RPC")),
            ("QUARRY_LOGFORMAT", Some("QUARRY_LOG_FORMAT")),
            // What clap answers by itself, and what is no word.
            ("QUARRY_HELP", None),
            ("QUARRY_VERSION", None),
            ("QUARRY_", None),
            ("QUARRY_XYZ", None),
        ] {
            assert_eq!(nearest(name).as_deref(), near, "{name}");
        }
        let sentence = "QUARRY_XYZ is in the environment and names no option";
        assert_eq!(told("QUARRY_XYZ"), sentence);
    }

    #[test]
    fn an_error_about_a_value_names_the_variable_that_holds_it() {
        let said = |typed: &[&str], is_set: bool| {
            let args = ["quarry", "serve", "--max-connections=abc"];
            let error = Cli::command().try_get_matches_from(args).unwrap_err();
            let typed: Vec<OsString> = typed.iter().map(Into::into).collect();
            let is_set = |name: &str| is_set && name == "QUARRY_MAX_CONNECTIONS";
            with_variable(error, &typed, &is_set).to_string()
        };
        let from = "'abc' for '--max-connections <N> (from QUARRY_MAX_CONNECTIONS)'";
        assert!(said(&["serve"], true).contains(from));
        for typed in [&["--max-connections", "abc"][..], &["--max-connections=abc"]] {
            assert!(!said(typed, true).contains("from"), "{typed:?}");
        }
        assert!(!said(&["serve"], false).contains("from"));
    }

    #[test]
    fn every_switch_that_a_variable_may_hold_takes_the_same_words() {
        fn check(command: &clap::Command, seen: &mut usize) {
            for arg in command.get_arguments().filter(|arg| arg.get_env().is_some()) {
                let is_switch =
                    arg.get_value_parser().type_id() == clap::builder::ValueParser::bool().type_id();
                if !is_switch {
                    continue;
                }
                for word in ["true", "false", "yes", "no", "on", "off", "1", "0"] {
                    let id = arg.get_id().as_str();
                    let line = ["quarry".to_owned(), format!("{}={word}", flag(id))];
                    let taken = clap::Command::new("quarry")
                        .arg(arg.clone())
                        .try_get_matches_from(line);
                    assert!(taken.is_ok(), "{id} of {command}: {word}");
                }
                *seen += 1;
            }
            command.get_subcommands().for_each(|deeper| check(deeper, seen));
        }
        let mut seen = 0;
        check(&Cli::command(), &mut seen);
        assert!(seen > 5, "{seen}");
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        // The environment of a test's process is everybody's: the program's own is tested in tests/operator.rs.
        let matches = Cli::command().get_matches_from(["quarry", "config", "--listen", "127.0.0.1:1"]);
        assert!(!Given::of(&matches).is_environment("listen"));
    }
}
