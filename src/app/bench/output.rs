//! The files that reports go to: checked before anything is measured, written in the end.

use std::fs::{File, Metadata};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::app::AppError;

/// A file that will be written in the end. One that was made for it goes again unless it was written.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    file: File,
    goes: bool,
}

impl Output {
    /// Opens the files of the options `json` and `html`, so that one that cannot be written is known in the beginning.
    pub(super) fn open(options: [(&str, Option<&Path>); 2]) -> Result<[Option<Self>; 2], AppError> {
        let [first, second] = options.map(|(option, path)| {
            let opened = path.map(|path| Self::one(option, path));
            opened.transpose()
        });
        let (first, second) = (first?, second?);
        if let (Some(first), Some(second)) = (&first, &second)
            && first.is(&second.metadata()?)?
        {
            return Err(AppError::Usage(format!(
                "json and html: `{}` and `{}` are the same file: name one for each",
                first.path.display(),
                second.path.display()
            )));
        }
        Ok([first, second])
    }

    fn one(option: &str, path: &Path) -> Result<Self, AppError> {
        let refused = |why: &str| {
            AppError::Usage(format!(
                "{option}: `{}` {why}: name a file, the table goes to standard output",
                path.display()
            ))
        };
        if path == Path::new("-") {
            return Err(refused("is no file"));
        }
        let is_there = match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => return Err(refused("is no regular file")),
            found => found.is_ok(),
        };
        let open = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = open.map_err(AppError::io(format!("write `{}`", path.display())))?;
        let output = Self {
            path: path.to_owned(),
            file,
            goes: !is_there,
        };
        for stream in ["/proc/self/fd/1", "/proc/self/fd/2"] {
            if let Ok(stream) = std::fs::metadata(stream)
                && output.is(&stream)?
            {
                return Err(refused("is where the table or the log goes"));
            }
        }
        Ok(output)
    }

    fn metadata(&self) -> Result<Metadata, AppError> {
        let found = self.file.metadata();
        found.map_err(AppError::io(format!("look at `{}`", self.path.display())))
    }

    fn is(&self, other: &Metadata) -> Result<bool, AppError> {
        let own = self.metadata()?;
        Ok((own.dev(), own.ino()) == (other.dev(), other.ino()))
    }

    /// Replaces what the file holds; gives its path.
    pub(super) fn write(mut self, text: &str) -> Result<PathBuf, AppError> {
        let emptied = self.file.set_len(0);
        emptied
            .and_then(|()| self.file.write_all(text.as_bytes()))
            .map_err(AppError::io(format!("write `{}`", self.path.display())))?;
        self.goes = false;
        Ok(self.path.clone())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.goes {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_made_for_nothing_goes_and_another_stays_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let (new, old) = (directory.path().join("new"), directory.path().join("old"));
        std::fs::write(&old, "before").unwrap();
        let [one, other] = Output::open([("json", Some(&new)), ("html", Some(&old))]).unwrap();
        assert!(new.exists());
        drop((one, other));
        assert!(!new.exists());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "before");
        let [one, other] = Output::open([("json", Some(&new)), ("html", Some(&old))]).unwrap();
        one.unwrap().write("one").unwrap();
        other.unwrap().write("two").unwrap();
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "one");
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "two");
    }

    #[test]
    fn two_names_of_one_file_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (name, other) = (directory.path().join("r"), directory.path().join("s"));
        std::fs::write(&name, "before").unwrap();
        std::fs::hard_link(&name, &other).unwrap();
        let refused = Output::open([("json", Some(&name)), ("html", Some(&other))]).unwrap_err();
        assert!(refused.to_string().contains("the same file"), "{refused}");
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "before");
    }
}
