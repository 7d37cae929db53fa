//! The files that reports go to: checked before anything is measured, written in the end.

use std::fs::{File, Metadata};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::app::AppError;
use crate::app::process::print;

/// A file that will be written in the end; until then there is none that was not there. Or standard output.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
}

/// Whether a path means standard output.
pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

impl Output {
    /// Checks the files of the options `json`, which may be standard output, and `html`, so that one that cannot be written is known in the
    /// beginning.
    pub(super) fn check([json, html]: [(&str, Option<&Path>); 2]) -> Result<[Option<Self>; 2], AppError> {
        let stdout = json.1.filter(|path| is_stdout(path));
        let file = (json.0, json.1.filter(|path| !is_stdout(path)));
        let [first, second] = [file, html].map(|(option, path)| {
            let opened = path.map(|path| Probe::open(option, path));
            opened.transpose()
        });
        let (first, second) = (first?, second?);
        if let (Some(first), Some(second)) = (&first, &second)
            && first.is(&second.metadata()?)?
        {
            return Err(AppError::NotUnderstood(format!(
                "json and html: `{}` and `{}` are the same file: name one for each",
                first.path.display(),
                second.path.display()
            )));
        }
        let path = |probe: Probe| Self {
            path: probe.path.clone(),
        };
        let stdout = stdout.map(|path| Self {
            path: path.to_owned(),
        });
        Ok([stdout.or(first.map(path)), second.map(path)])
    }

    /// Replaces what the file holds, all of it or nothing; gives its path, of standard output none.
    pub(super) fn write(self, text: &str) -> Result<Option<PathBuf>, AppError> {
        if is_stdout(&self.path) {
            print(text.as_bytes());
            return Ok(None);
        }
        // Behind all links, so that they stay.
        let target = std::fs::canonicalize(&self.path).unwrap_or_else(|_| linked(&self.path));
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = target.with_file_name(name);
        let made = File::options().write(true).create_new(true).open(&new);
        let written = match made {
            Ok(mut file) => {
                let as_before = std::fs::metadata(&target).map(|found| found.permissions());
                let _ = as_before.and_then(|permissions| file.set_permissions(permissions));
                let written = file.write_all(text.as_bytes());
                // What is mounted by itself, as into a container, cannot be replaced, but be written.
                let written = written
                    .and_then(|()| std::fs::rename(&new, &target).or_else(|_| std::fs::write(&target, text)));
                let _ = std::fs::remove_file(&new);
                written
            }
            // A directory in which nothing can be made may hold a file that can be written.
            Err(_) => std::fs::write(&self.path, text),
        };
        written.map_err(AppError::io(format!("write `{}`", self.path.display())))?;
        Ok(Some(self.path))
    }
}

/// Where a link leads that leads to no file yet.
fn linked(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many as the system follows.
    for _ in 0..40 {
        let Ok(to) = std::fs::read_link(&path) else { break };
        path = path
            .parent()
            .map_or_else(|| to.clone(), |parent| parent.join(&to));
    }
    path
}

/// A file that is open for a moment, to see what it is. One that was made for that goes again.
struct Probe {
    path: PathBuf,
    file: File,
    /// What was made, behind all links.
    made: Option<PathBuf>,
}

impl Probe {
    fn open(option: &str, path: &Path) -> Result<Self, AppError> {
        let refused = |why: &str| {
            AppError::NotUnderstood(format!(
                "{option}: `{}` {why}: name a file, the table goes to standard output",
                path.display()
            ))
        };
        if is_stdout(path) {
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
        let probe = Self {
            path: path.to_owned(),
            file,
            made: std::fs::canonicalize(path).ok().filter(|_| !is_there),
        };
        for stream in ["/proc/self/fd/1", "/proc/self/fd/2"] {
            if let Ok(stream) = std::fs::metadata(stream)
                && probe.is(&stream)?
            {
                return Err(refused("is where the table or the log goes"));
            }
        }
        Ok(probe)
    }

    fn metadata(&self) -> Result<Metadata, AppError> {
        let found = self.file.metadata();
        found.map_err(AppError::io(format!("look at `{}`", self.path.display())))
    }

    fn is(&self, other: &Metadata) -> Result<bool, AppError> {
        let own = self.metadata()?;
        Ok((own.dev(), own.ino()) == (other.dev(), other.ino()))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            let _ = std::fs::remove_file(made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_file_before_it_is_written_and_another_stays_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let (new, old) = (directory.path().join("new"), directory.path().join("old"));
        std::fs::write(&old, "longer before").unwrap();
        let check = || Output::check([("json", Some(&new)), ("html", Some(&old))]).unwrap();
        drop(check());
        let [one, other] = check();
        assert!(!new.exists());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "longer before");
        one.unwrap().write("one").unwrap();
        other.unwrap().write("two").unwrap();
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "one");
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "two");
    }

    #[test]
    fn it_is_written_in_one_piece_where_that_can_be() {
        let directory = tempfile::tempdir().unwrap();
        let old = directory.path().join("old");
        std::fs::write(&old, "before").unwrap();
        let [one, _] = Output::check([("json", Some(&old)), ("html", None)]).unwrap();
        // Nothing can be made where it would be made beside the old one.
        let new = directory.path().join(format!("old.{}.new", std::process::id()));
        std::fs::create_dir(&new).unwrap();
        std::fs::write(new.join("something"), "").unwrap();
        one.unwrap().write("after").unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "after");
        std::fs::remove_dir_all(&new).unwrap();
        let [one, _] = Output::check([("json", Some(&old)), ("html", None)]).unwrap();
        one.unwrap().write("again").unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "again");
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_link_to_no_file_yet_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (link, file) = (directory.path().join("link"), directory.path().join("file"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let [one, _] = Output::check([("json", Some(&link)), ("html", None)]).unwrap();
        assert!(link.is_symlink() && !file.exists());
        one.unwrap().write("one").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    }

    #[test]
    fn two_names_of_one_file_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (name, other) = (directory.path().join("r"), directory.path().join("s"));
        std::fs::write(&name, "before").unwrap();
        std::fs::hard_link(&name, &other).unwrap();
        let refused = Output::check([("json", Some(&name)), ("html", Some(&other))]).unwrap_err();
        assert!(refused.to_string().contains("the same file"), "{refused}");
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "before");
    }
}
