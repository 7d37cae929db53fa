//! Completions of shells and manual pages, made from the options themselves.

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::Cli;

/// The program's name.
const NAME: &str = "quarry";

/// What stands at the end of every page.
const MORE: &str = r#".SH "CONFIGURATION"
A value comes from the flag, else from the environment, else from the file that \fB\-\-config\fR or QUARRY_CONFIG names,
else it is the default. \fBquarry config\fR prints the values in force and where each came from. No file is read unless named.
.SH "EXIT STATUS"
.TP
\fB0\fR
Done, or stopped by a signal after everything was written.
.TP
\fB1\fR
Failed, or something is wrong with what was looked at; one sentence on standard error.
.TP
\fB2\fR
The command line was not understood.
.TP
\fB130\fR
A second signal during shutdown, 0.2 seconds after the first one or later.
"#;

/// The completions of a shell.
#[must_use]
pub fn completions(shell: Shell) -> Vec<u8> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut out);
    out
}

/// The manual page of the program.
///
/// # Errors
///
/// None that memory gives.
pub fn man_page() -> std::io::Result<Vec<u8>> {
    page(built())
}

/// The pages of the program and of each command, by the name of their file.
///
/// # Errors
///
/// None that memory gives.
pub fn man_pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = Vec::new();
    collect(built(), &mut pages)?;
    Ok(pages)
}

fn built() -> clap::Command {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

fn page(command: clap::Command) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let source = format!("{NAME} {}", env!("CARGO_PKG_VERSION"));
    Man::new(command)
        .manual("Quarry")
        .source(source)
        .render(&mut out)?;
    out.extend_from_slice(MORE.as_bytes());
    Ok(out)
}

/// A command that was built names itself with what stands before it: `quarry-import-chain`.
fn collect(command: clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    for deeper in command.get_subcommands() {
        collect(deeper.clone(), pages)?;
    }
    let name = command.get_display_name().unwrap_or(NAME).to_owned();
    pages.push((format!("{name}.1"), page(command)?));
    Ok(())
}
