//! `quarry completions` and `quarry man`.

use std::path::Path;

use super::AppError;
use super::process::{print, say};
use crate::cli;

/// `quarry completions`.
pub(super) fn completions(args: cli::CompletionsArgs) -> Result<(), AppError> {
    print(&cli::completions(args.shell));
    Ok(())
}

/// `quarry man`.
pub(super) fn man(directory: Option<&Path>) -> Result<(), AppError> {
    let Some(directory) = directory else {
        print(&cli::man_page().map_err(AppError::io("render the manual page"))?);
        return Ok(());
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
