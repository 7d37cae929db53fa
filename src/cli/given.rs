//! Which options came from the environment: clap merges it with the command line.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use super::{Cli, Command};

/// What every variable's name begins with.
const PREFIX: &str = "QUARRY_";

/// Which options came from the environment; the others came from the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Ids of options, as the fields of their structs are called.
    environment: BTreeSet<String>,
    /// Variables that look like ours and name no option.
    unknown: Vec<String>,
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
        }
    }

    /// Whether the option with this id came from the environment.
    #[must_use]
    pub fn is_environment(&self, id: &str) -> bool {
        self.environment.contains(id)
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

/// Reads the command line and the environment; ends the process where they are not understood.
pub(super) fn read() -> Cli {
    let mut matches = Cli::command().get_matches();
    let given = Given::of(&matches);
    match Cli::from_arg_matches_mut(&mut matches) {
        Ok(mut cli) => {
            if let Command::Config(args) = &mut cli.command {
                args.given = given;
            }
            cli
        }
        Err(error) => error.format(&mut Cli::command()).exit(),
    }
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
