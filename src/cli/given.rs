//! What came from the environment, which clap merges with the command line.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use super::{Cli, Command, Import, NodeArgs};

/// What every variable's name begins with.
const PREFIX: &str = "QUARRY_";

/// Which options came from the environment (the others came from the command line), and what of it no option of the command is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Ids of options, as the fields of their structs are called.
    environment: BTreeSet<String>,
    /// Variables that look like ours and name no option.
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
            unknown: unknown(&Cli::command(), std::env::vars_os().map(|(name, _)| name)),
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

    /// Variables of the environment that look like ours and name no option.
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

/// Reads the command line and the environment; ends the process where they are not understood.
pub(super) fn read() -> Cli {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let given = as_read(Cli::command(), &is_empty).try_get_matches();
    let mut matches = given.unwrap_or_else(|error| end(&error));
    let given = Given::of(&matches);
    match Cli::from_arg_matches_mut(&mut matches) {
        Ok(mut cli) => {
            match &mut cli.command {
                Command::Config(args) => args.given = given,
                Command::Verify(args) => args.given = given,
                Command::Serve(args) => args.given = given,
                Command::Import(Import::Chain(args)) => args.given = given,
                _ => {}
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
    fn the_command_line_wins_over_the_environment() {
        // The environment of a test's process is everybody's: the program's own is tested in tests/operator.rs.
        let matches = Cli::command().get_matches_from(["quarry", "config", "--listen", "127.0.0.1:1"]);
        assert!(!Given::of(&matches).is_environment("listen"));
    }
}
