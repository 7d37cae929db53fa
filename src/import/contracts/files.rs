//! Files of one contract: sources under the names that a repository gave them, and never one outside of its directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use alloy_primitives::keccak256;

use super::super::words::json_fault;
use super::metadata::{Metadata, SourceEntry};
use crate::model::B256;

/// The longest source, bytes.
pub(super) const SOURCE_MAX: u64 = 16 << 20;
/// All sources of a contract, bytes.
const SOURCES_MAX: usize = 64 << 20;
/// Files of a contract.
const FILES_MAX: usize = 10_000;

/// The text of a file of at most `most` bytes. It is nothing but a file: no device is waited for.
pub(super) fn read_text(path: &Path, most: u64) -> Result<String, String> {
    let facts = fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("it is no file".to_owned());
    }
    let too_long = || format!("it has more than {most} bytes");
    if facts.len() > most {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(too_long());
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// The directory of a contract.
pub(super) struct ContractDirectory {
    /// Without symbolic links.
    directory: PathBuf,
    /// Where sources lie that have another name than in the metadata.
    translation: BTreeMap<String, String>,
}

/// What came of looking for a file.
enum Looked {
    Found(String),
    Absent,
    Outside,
    Unreadable(String),
}

impl ContractDirectory {
    pub(super) fn open(directory: &Path) -> Result<Self, String> {
        let directory = directory.canonicalize().map_err(|error| error.to_string())?;
        let mut contract = Self {
            directory,
            translation: BTreeMap::new(),
        };
        if let Looked::Found(text) = contract.look(Path::new("path-translation.json"), SOURCE_MAX) {
            contract.translation = serde_json::from_str(&text)
                .map_err(|error| format!("path-translation.json cannot be read: {}", json_fault(&error)))?;
        }
        Ok(contract)
    }

    /// The text of `metadata.json`.
    pub(super) fn metadata(&self) -> Result<String, String> {
        match self.look(Path::new("metadata.json"), 2 * SOURCE_MAX) {
            Looked::Found(text) => Ok(text),
            Looked::Absent => Err("it has no metadata.json".to_owned()),
            Looked::Outside => Err("metadata.json lies outside of the contract's directory".to_owned()),
            Looked::Unreadable(why) => Err(format!("metadata.json: {why}")),
        }
    }

    /// What the repository kept of the constructor's arguments.
    pub(super) fn constructor_arguments(&self) -> Option<Vec<u8>> {
        match self.look(Path::new("constructor-args.txt"), SOURCE_MAX) {
            Looked::Found(text) => const_hex::decode(text.trim()).ok(),
            _ => None,
        }
    }

    fn look(&self, relative: &Path, most: u64) -> Looked {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if !relative.components().all(plain) {
            return Looked::Outside;
        }
        let path = self.directory.join(relative);
        let Ok(real) = path.canonicalize() else {
            return Looked::Absent;
        };
        if !real.starts_with(&self.directory) {
            return Looked::Outside;
        }
        match read_text(&real, most) {
            Ok(text) => Looked::Found(text),
            Err(why) => Looked::Unreadable(why),
        }
    }

    /// The text of one source: what lies in the directory, else what stands in the metadata, with the hash that the
    /// metadata states.
    fn source(&self, path: &str, entry: &SourceEntry) -> Result<(B256, String), String> {
        let stated = stated_hash(entry)?;
        let mut why = "is not there".to_owned();
        let names = [
            self.translation.get(path).cloned(),
            Some(sanitized(path)),
            Some(sanitized_of_old(path)),
        ];
        for name in names.into_iter().flatten() {
            match self.look(&Path::new("sources").join(&name), SOURCE_MAX) {
                Looked::Found(text) => {
                    let hash = keccak256(text.as_bytes());
                    if stated.is_none_or(|stated| stated == hash) {
                        return Ok((hash, text));
                    }
                    "has another hash than the metadata states".clone_into(&mut why);
                }
                Looked::Outside => "lies outside of the contract's directory".clone_into(&mut why),
                Looked::Unreadable(reason) => why = format!("cannot be taken: {reason}"),
                Looked::Absent => {}
            }
        }
        inline(entry, stated)?.ok_or(why)
    }

    /// The texts of all sources, by path.
    pub(super) fn sources(&self, metadata: &Metadata) -> Result<Vec<(String, B256, String)>, String> {
        collect(&metadata.sources, |path, entry| {
            if metadata.language.as_deref() == Some("Solidity") && entry.keccak256.is_none() {
                return Err("has no hash in the metadata".to_owned());
            }
            self.source(path, entry)
        })
    }
}

/// The texts of sources of which each is given by `text`, within bounds.
pub(super) fn collect(
    sources: &BTreeMap<String, SourceEntry>,
    mut text: impl FnMut(&str, &SourceEntry) -> Result<(B256, String), String>,
) -> Result<Vec<(String, B256, String)>, String> {
    if sources.len() > FILES_MAX {
        return Err(format!("it has {} sources, more than {FILES_MAX}", sources.len()));
    }
    let (mut all, mut bytes) = (Vec::with_capacity(sources.len()), 0usize);
    for (path, entry) in sources {
        let (hash, text) = text(path, entry).map_err(|why| format!("source `{path}` {why}"))?;
        bytes = bytes.saturating_add(text.len());
        if bytes > SOURCES_MAX {
            return Err(format!("its sources have more than {SOURCES_MAX} bytes"));
        }
        all.push((path.clone(), hash, text));
    }
    Ok(all)
}

/// Of the sources that a compiler was `given`, those that the metadata of one contract is of, which must have the hashes
/// that it states.
pub(super) fn of_metadata(
    metadata: &Metadata,
    given: Vec<(String, B256, String)>,
) -> Result<Vec<(String, B256, String)>, String> {
    let mut given: BTreeMap<String, (B256, String)> = given
        .into_iter()
        .map(|(path, hash, text)| (path, (hash, text)))
        .collect();
    collect(&metadata.sources, |path, entry| {
        let (hash, text) = given
            .remove(path)
            .ok_or("is in the metadata and not in the input")?;
        if stated_hash(entry)?.is_some_and(|stated| stated != hash) {
            return Err("has another hash than the metadata states".to_owned());
        }
        Ok((hash, text))
    })
}

/// The hash that is stated of a source.
fn stated_hash(entry: &SourceEntry) -> Result<Option<B256>, String> {
    let parse = |text: &String| text.parse::<B256>();
    let hash = entry.keccak256.as_ref().map(parse).transpose();
    hash.map_err(|_| "has a hash in the metadata that is none".to_owned())
}

/// The text that stands with a source's name, where one does.
pub(super) fn inline(entry: &SourceEntry, stated: Option<B256>) -> Result<Option<(B256, String)>, String> {
    let Some(text) = &entry.content else {
        return Ok(None);
    };
    let hash = keccak256(text.as_bytes());
    if stated.is_some_and(|stated| stated != hash) {
        return Err("has another hash than the metadata states".to_owned());
    }
    Ok(Some((hash, text.clone())))
}

/// The same, with the hash that is stated.
pub(super) fn inline_checked(entry: &SourceEntry) -> Result<Option<(B256, String)>, String> {
    inline(entry, stated_hash(entry)?)
}

/// Where Sourcify keeps the source of this name: without steps up, roots, doubled separators and line ends.
fn sanitized(path: &str) -> String {
    let path = path.replace('\n', "");
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Where it kept it at first: letters that file systems may not take are replaced too.
fn sanitized_of_old(path: &str) -> String {
    let plain: String = path
        .chars()
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | '/' | '-' => letter,
            _ => '_',
        })
        .collect();
    let parts: Vec<&str> = plain.split('/').collect();
    let is_dots = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte == b'.');
    match parts.iter().position(|part| is_dots(part)) {
        None => plain.trim_start_matches('/').to_owned(),
        Some(at) => {
            let (before, after) = (parts.get(..at), parts.get(at + 1..));
            let [before, after] = [before, after].map(|parts| parts.unwrap_or_default().join("/"));
            format!("{before}_{after}").trim_start_matches('/').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_files() {
        for (path, file) in [
            ("contracts/A.sol", "contracts/A.sol"),
            ("@openzeppelin/contracts/A.sol", "@openzeppelin/contracts/A.sol"),
            ("https://node.example/a/b/../C.sol", "https:/node.example/a/C.sol"),
            ("/absolute/A.sol", "absolute/A.sol"),
            ("../../up/A.sol", "up/A.sol"),
            ("./A.sol", "A.sol"),
            ("C:\\dir\\A.sol", "C:\\dir\\A.sol"),
            ("caf\u{e9}/\u{4e2d}.sol", "caf\u{e9}/\u{4e2d}.sol"),
            ("a\n.sol", "a.sol"),
        ] {
            assert_eq!(sanitized(path), file);
        }
        assert_eq!(sanitized_of_old("@a/b c.sol"), "_a/b_c.sol");
        assert_eq!(sanitized_of_old("a/../b.sol"), "a_b.sol");
        assert_eq!(sanitized_of_old("/a.sol"), "a.sol");
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn entry(text: &str) -> SourceEntry {
        SourceEntry {
            keccak256: Some(keccak256(text).to_string()),
            ..SourceEntry::default()
        }
    }

    #[test]
    fn sources_are_found_and_checked() {
        let root = tempfile::tempdir().unwrap();
        let contract = root.path().join("contract");
        for (name, text) in [
            ("contracts/A.sol", "a"),
            ("https:/node.example/B.sol", "b"),
            ("up/C.sol", "c"),
            ("moved.sol", "d"),
            ("_odd.sol", "e"),
        ] {
            write(&contract.join("sources").join(name), text);
        }
        write(
            &contract.join("path-translation.json"),
            r#"{"old name":"moved.sol","evil":"../../secret","absolute":"/etc/hostname"}"#,
        );
        write(&root.path().join("secret"), "s");
        let directory = ContractDirectory::open(&contract).unwrap();
        for (path, text) in [
            ("contracts/A.sol", "a"),
            ("https://node.example/B.sol", "b"),
            ("../../up/C.sol", "c"),
            ("old name", "d"),
            ("@odd.sol", "e"),
        ] {
            let found = directory.source(path, &entry(text));
            assert_eq!(found.map(|(_, text)| text).as_deref(), Ok(text), "{path}");
        }
        let outside = Err("lies outside of the contract's directory".to_owned());
        assert_eq!(directory.source("evil", &entry("s")), outside);
        assert_eq!(directory.source("absolute", &entry("s")), outside);
        let wrong = Err("has another hash than the metadata states".to_owned());
        assert_eq!(directory.source("contracts/A.sol", &entry("b")), wrong);
        let absent = Err("is not there".to_owned());
        assert_eq!(directory.source("nowhere.sol", &entry("s")), absent);
        assert_eq!(directory.source("../../secret", &entry("s")), absent);
        let mut inline = entry("s");
        inline.content = Some("s".to_owned());
        assert_eq!(directory.source("nowhere.sol", &inline).unwrap().1, "s");
        inline.content = Some("t".to_owned());
        assert_eq!(directory.source("nowhere.sol", &inline), wrong);
    }

    #[test]
    fn links_and_giants() {
        let root = tempfile::tempdir().unwrap();
        let contract = root.path().join("contract");
        write(&contract.join("sources/A.sol"), "a");
        write(&root.path().join("secret"), "s");
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, contract.join("sources").join(name));
        link("A.sol", "inside.sol").unwrap();
        link("../../secret", "outside.sol").unwrap();
        link("loop.sol", "loop.sol").unwrap();
        // A gigabyte that takes no room: nothing of it is read.
        let giant = File::create(contract.join("sources/giant.sol")).unwrap();
        giant.set_len(1 << 30).unwrap();
        fs::write(contract.join("sources/latin.sol"), b"\xff").unwrap();
        let directory = ContractDirectory::open(&contract).unwrap();
        let source = |path: &str, text: &str| directory.source(path, &entry(text)).map(|(_, text)| text);
        assert_eq!(source("inside.sol", "a").as_deref(), Ok("a"));
        assert!(source("outside.sol", "s").unwrap_err().contains("outside"));
        assert!(source("loop.sol", "s").unwrap_err().contains("not there"));
        assert!(
            source("giant.sol", "s")
                .unwrap_err()
                .contains("more than 16777216 bytes")
        );
        assert!(source("latin.sol", "s").unwrap_err().contains("UTF-8"));
    }

    proptest! {
        #[test]
        fn no_name_leaves_the_directory(path in "[a./\\\\\n~]{0,12}") {
            for name in [sanitized(&path), sanitized_of_old(&path)] {
                let up = Path::new(&name).components().any(|part| !matches!(part, Component::Normal(_)));
                prop_assert!(!up || name.is_empty() || name.contains(".."), "{name:?}");
                // What is left of steps up is refused when it is looked for.
                let directory = ContractDirectory { directory: "/nowhere".into(), translation: BTreeMap::new() };
                let looked = directory.look(Path::new(&name), 1);
                prop_assert!(matches!(looked, Looked::Absent | Looked::Outside));
            }
        }
    }
}
