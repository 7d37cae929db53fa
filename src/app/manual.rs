//! `quarry completions` and `quarry man`.

use std::io::Write as _;
use std::path::Path;

use super::AppError;
use super::process::say;
use crate::cli;

/// `quarry completions`.
pub(super) fn completions(args: cli::CompletionsArgs) -> Result<(), AppError> {
    print(&cli::completions(args.shell))
}

/// `quarry man`.
pub(super) fn man(directory: Option<&Path>) -> Result<(), AppError> {
    let Some(directory) = directory else {
        return print(&cli::man_page().map_err(AppError::io("render the manual page"))?);
    };
    let pages = cli::man_pages().map_err(AppError::io("render the manual pages"))?;
    std::fs::create_dir_all(directory).map_err(AppError::io(format!("make `{}`", directory.display())))?;
    for (name, page) in &pages {
        let path = directory.join(name);
        std::fs::write(&path, page).map_err(AppError::io(format!("write `{}`", path.display())))?;
    }
    say(&format!("{} pages in {}", pages.len(), directory.display()));
    Ok(())
}

/// Writes to standard output. A closed pipe is no reason to fail.
fn print(text: &[u8]) -> Result<(), AppError> {
    match std::io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(AppError::io("write to standard output")(error))
        }
        _ => Ok(()),
    }
}
