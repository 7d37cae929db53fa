//! A copy of a RocksDB directory beside the process that writes it, as a crash at one moment would leave it.
//!
//! Nothing is asked of the writer. What makes it sound is how RocksDB writes: tables are whole and on disk before the
//! manifest names them and never change; logs and the manifest only grow; a log or a table goes away only after the
//! manifest says that it is not needed. So logs are copied first, in their order, then the manifest, then the tables that
//! it names. See decision 0031.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What a name in a database's directory means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) enum Kind {
    /// A table: written once.
    Table,
    /// A log: grows.
    Log(u64),
    /// Says which manifest counts.
    Current,
    /// Names the tables: grows.
    Manifest,
    /// The database's own name.
    About,
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// What a file is by its name; `None` for the diary, the lock, the options and whatever else is no part of a copy.
pub(in crate::store) fn kind_of(name: &str) -> Option<Kind> {
    match name {
        "CURRENT" => return Some(Kind::Current),
        "IDENTITY" => return Some(Kind::About),
        _ => {}
    }
    if let Some(rest) = name.strip_prefix("MANIFEST-") {
        return number(rest).map(|_| Kind::Manifest);
    }
    let (stem, ending) = name.split_once('.')?;
    let number = number(stem)?;
    match ending {
        "sst" => Some(Kind::Table),
        "log" => Some(Kind::Log(number)),
        _ => None,
    }
}

/// The files of a database's directory by name.
pub(in crate::store) fn list(directory: &Path) -> io::Result<BTreeMap<String, Kind>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        if let Ok(name) = entry?.file_name().into_string()
            && let Some(kind) = kind_of(&name)
        {
            found.insert(name, kind);
        }
    }
    Ok(found)
}

/// Copies the first `bytes` of a file; shares their blocks where the file system can.
pub(super) fn copy_first(from: &Path, to: &Path, bytes: u64) -> io::Result<()> {
    let mut taken = File::open(from)?.take(bytes);
    let mut made = File::create(to)?;
    let copied = io::copy(&mut taken, &mut made)?;
    if copied < bytes {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("only {copied} of {bytes} bytes are there"),
        ));
    }
    made.sync_data()
}

/// Copies what a growing file holds now.
fn copy_grown(from: &Path, to: &Path) -> io::Result<()> {
    copy_first(from, to, fs::metadata(from)?.len())
}

/// Whether files of one directory can be linked into the other: not across file systems, nor where links are unknown.
fn links(from: &Path, to: &Path) -> bool {
    let probe = to.join("link.tmp");
    let linked = fs::hard_link(from.join("CURRENT"), &probe).is_ok();
    let _ = fs::remove_file(probe);
    linked
}

/// Takes a table, by a link where there are links.
fn take(from: &Path, to: &Path, links: bool) -> io::Result<()> {
    if let Ok(ours) = fs::metadata(to) {
        let theirs = fs::metadata(from)?;
        let same = if links {
            (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino())
        } else {
            theirs.len() == ours.len() && theirs.modified()? <= ours.modified()?
        };
        if same {
            return Ok(());
        }
        // A writer that was killed and started again may have given the number once more.
        fs::remove_file(to)?;
    }
    if links {
        fs::hard_link(from, to)
    } else {
        copy_grown(from, to)
    }
}

/// Links all tables that are there now; those that go away meanwhile are no loss.
fn link_tables(from: &Path, to: &Path, stopped: &dyn Fn() -> bool) -> io::Result<()> {
    let links = links(from, to);
    for (name, _) in list(from)?.into_iter().filter(|(_, kind)| *kind == Kind::Table) {
        if stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match take(&from.join(&name), &to.join(&name), links) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The numbers of the logs, in order.
fn logs(directory: &Path) -> io::Result<Vec<u64>> {
    let mut logs: Vec<u64> = list(directory)?
        .into_values()
        .filter_map(|kind| match kind {
            Kind::Log(number) => Some(number),
            _ => None,
        })
        .collect();
    logs.sort_unstable();
    Ok(logs)
}

/// Removes tables that are not among `ours`: an opening that failed may have made some of logs.
pub(super) fn keep_tables(directory: &Path, ours: &BTreeMap<String, Kind>) -> io::Result<()> {
    for (name, kind) in list(directory)? {
        if kind == Kind::Table && !ours.contains_key(&name) {
            fs::remove_file(directory.join(name))?;
        }
    }
    Ok(())
}

/// One try: `to` then holds logs, a manifest and tables. Whether all tables are there that the manifest names, the
/// opening tells, if it opens each. `NotFound` where a file came or went away under our hands.
pub(super) fn copy(from: &Path, to: &Path, stopped: &dyn Fn() -> bool) -> io::Result<()> {
    fs::create_dir_all(to)?;
    // What an earlier try left, but for tables, which are still the same.
    for (name, kind) in list(to)? {
        if kind != Kind::Table {
            fs::remove_file(to.join(name))?;
        }
    }
    // Tables first: what is linked cannot go away any more, and only those that come now can be missed below.
    link_tables(from, to, stopped)?;
    let newest = logs(from)?.pop();
    // A listing may miss a name that comes while it is made and show a later one. What came before the second one began is in it.
    for number in logs(from)?.into_iter().filter(|number| Some(*number) <= newest) {
        let name = format!("{number:06}.log");
        // A later log is only begun when nothing is added to this one any more: in order, they are one prefix.
        match copy_grown(&from.join(&name), &to.join(&name)) {
            // What it held is in tables that the manifest below names.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    match copy_grown(&from.join("IDENTITY"), &to.join("IDENTITY")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => other?,
    }
    let current = fs::read_to_string(from.join("CURRENT"))?;
    let manifest = current.trim_end();
    if kind_of(manifest) != Some(Kind::Manifest) {
        return Err(io::Error::other(format!("CURRENT names `{manifest}`")));
    }
    copy_grown(&from.join(manifest), &to.join(manifest))?;
    fs::write(to.join("CURRENT"), current)?;
    // The manifest may speak of tables with rows of a later log than the copied ones. The last of these may be cut in the middle of
    // a record, and RocksDB does not open a database whose tables go on behind that.
    if logs(from)?.pop() != newest {
        return Err(io::Error::new(io::ErrorKind::NotFound, "a new log was begun"));
    }
    link_tables(from, to, stopped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_database() {
        for (name, kind) in [
            ("000012.sst", Some(Kind::Table)),
            ("000013.log", Some(Kind::Log(13))),
            ("CURRENT", Some(Kind::Current)),
            ("MANIFEST-000004", Some(Kind::Manifest)),
            ("IDENTITY", Some(Kind::About)),
            // It names directories, and is written anew by every opening.
            ("OPTIONS-000007", None),
            ("OPTIONS-000007.dbtmp", None),
            ("LOCK", None),
            ("LOG", None),
            ("LOG.old.17", None),
            ("12.sst.tmp", None),
            ("../1.sst", None),
            ("MANIFEST-", None),
            (".sst", None),
            ("+1.sst", None),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }

    #[test]
    fn a_table_whose_number_was_given_again_is_taken_anew() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("CURRENT"), b"MANIFEST-000001\n").unwrap();
        let (theirs, ours) = (from.path().join("000001.sst"), to.path().join("000001.sst"));
        fs::write(&theirs, b"old").unwrap();
        link_tables(from.path(), to.path(), &|| false).unwrap();
        link_tables(from.path(), to.path(), &|| false).unwrap();
        fs::remove_file(&theirs).unwrap();
        fs::write(&theirs, b"new").unwrap();
        link_tables(from.path(), to.path(), &|| false).unwrap();
        assert_eq!(fs::read(ours).unwrap(), b"new");
    }
}
