//! A walk over a repository of sources, contract by contract; nothing of it is kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::ImportError;
use crate::model::{Address, AddressFault, written_address};

/// What a repository says of how its sources match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Claim {
    /// They match byte by byte.
    Full,
    /// They give the code.
    Partial,
    /// It says nothing, and somebody made a repository of it.
    None,
    /// It is a file, for which nobody but the operator speaks.
    #[default]
    File,
}

/// One thing met on the walk.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The directory of a contract.
    Contract(PathBuf, Address, Claim),
    /// Contracts of another chain.
    OtherChain(u64),
    /// Something that is no part of a repository, and why.
    Rejected(PathBuf, String),
}

/// What is known of a directory from those above it.
#[derive(Clone, Copy, Debug)]
struct Place {
    claim: Claim,
    chain: Option<u64>,
}

/// Nothing is known.
const NOWHERE: Place = Place {
    claim: Claim::None,
    chain: None,
};

/// Directories inside of one another: `contracts/full_match/1/0x...`, and one more for what holds it.
const DEPTH_MAX: usize = 6;

fn claim(name: &str) -> Option<Claim> {
    match name {
        "full_match" => Some(Claim::Full),
        "partial_match" => Some(Claim::Partial),
        _ => None,
    }
}

fn chain(name: &str) -> Option<u64> {
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| name.parse().ok()).flatten()
}

/// What the names of a directory and those above it say.
fn place_of(directory: &Path) -> Place {
    let mut place = NOWHERE;
    let names = directory
        .ancestors()
        .filter_map(|path| path.file_name()?.to_str())
        .skip_while(|name| written_address(name) != Err(AddressFault::Form));
    for name in names.take(2) {
        match (chain(name), claim(name)) {
            (Some(number), _) if place.chain.is_none() => place.chain = Some(number),
            (_, Some(claim)) => {
                place.claim = claim;
                break;
            }
            _ => break,
        }
    }
    place
}

/// Walks over `root`: a repository, the directory of one chain, or that of one contract, whose address is `given` where
/// its name does not tell. Full matches come first. `each` answers whether to go on.
pub(super) fn walk(
    root: &Path,
    chain_id: u64,
    given: Option<Address>,
    each: Each<'_>,
) -> Result<(), ImportError> {
    let real = root.canonicalize().map_err(ImportError::read(root))?;
    let malformed = |reason: &str| ImportError::Malformed {
        path: root.to_path_buf(),
        reason: reason.to_owned(),
    };
    let place = place_of(&real);
    if real.join("metadata.json").exists() {
        let name = real
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let contract = match (given, written_address(name)) {
            (Some(given), _) => given,
            (None, Ok(named)) => named,
            (None, Err(fault @ AddressFault::Checksum(_))) => {
                return Err(malformed(&format!("its name {fault}")));
            }
            (None, Err(AddressFault::Form)) => {
                return Err(malformed("it does not tell its contract: pass --address"));
            }
        };
        if place.chain.is_some_and(|chain| chain != chain_id) && given.is_none() {
            return each(Step::OtherChain(1));
        }
        return each(Step::Contract(real, contract, place.claim));
    }
    if given.is_some() {
        return Err(malformed(
            "--address is for one contract, and it holds no metadata.json",
        ));
    }
    visit(&real, place, chain_id, 0, each)
}

/// Takes what is met.
type Each<'a> = &'a mut dyn FnMut(Step) -> Result<(), ImportError>;

/// Tells of what is no part of a repository; below the directory of another chain nothing has to be one.
fn reject(path: PathBuf, reason: &str, other_chain: bool, each: Each<'_>) -> Result<(), ImportError> {
    if other_chain {
        return Ok(());
    }
    each(Step::Rejected(path, reason.to_owned()))
}

/// Tells of what cannot be read: one directory of many, unless it is the root.
fn unread(
    path: &Path,
    error: io::Error,
    depth: usize,
    other_chain: bool,
    each: Each<'_>,
) -> Result<(), ImportError> {
    if depth == 0 {
        return Err(ImportError::read(path)(error));
    }
    let reason = format!("it cannot be read: {error}");
    reject(path.to_path_buf(), &reason, other_chain, each)
}

fn visit(
    directory: &Path,
    place: Place,
    chain_id: u64,
    depth: usize,
    each: Each<'_>,
) -> Result<(), ImportError> {
    let other_chain = place.chain.is_some_and(|chain| chain != chain_id);
    let mut below: Vec<(PathBuf, Place)> = Vec::new();
    let mut contracts = 0;
    let mut entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return unread(directory, error, depth, other_chain, each),
    };
    loop {
        let entry = match entries.next() {
            Some(Ok(entry)) => entry,
            Some(Err(error)) => {
                unread(directory, error, depth, other_chain, each)?;
                break;
            }
            None => break,
        };
        let path = entry.path();
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) => {
                unread(&path, error, depth + 1, other_chain, each)?;
                continue;
            }
        };
        if kind.is_file() {
            continue;
        }
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            reject(path, "its name is no text", other_chain, each)?;
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        if kind.is_symlink() {
            reject(path, "it is a symbolic link", other_chain, each)?;
            continue;
        }
        match written_address(name) {
            Ok(_) | Err(AddressFault::Checksum(_)) if other_chain => {
                contracts += 1;
                continue;
            }
            Ok(contract) => {
                each(Step::Contract(path, contract, place.claim))?;
                continue;
            }
            Err(fault @ AddressFault::Checksum(_)) => {
                each(Step::Rejected(path, format!("its name {fault}")))?;
                continue;
            }
            Err(AddressFault::Form) => {}
        }
        if depth == DEPTH_MAX {
            reject(path, "it lies too deep", other_chain, each)?;
        } else if let Some(claim) = claim(name) {
            below.push((path, Place { claim, ..place }));
        } else if let chain @ Some(_) = chain(name) {
            below.push((path, Place { chain, ..place }));
        } else if name == "contracts" || name == "repository" {
            below.push((path, place));
        } else {
            let reason = "it is named after no chain, no contract and no kind of match";
            reject(path, reason, other_chain, each)?;
        }
    }
    if contracts > 0 {
        each(Step::OtherChain(contracts))?;
    }
    // Full matches before partial ones, else in the order of their names.
    below.sort_by_key(|(path, place)| (place.claim != Claim::Full, path.clone()));
    for (path, place) in below {
        visit(&path, place, chain_id, depth + 1, each)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0x00000000000000000000000000000000000000AA";
    const B: &str = "0x00000000000000000000000000000000000000bb";

    fn contract(root: &Path, path: &str) -> PathBuf {
        let directory = root.join(path);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("metadata.json"), "{}").unwrap();
        directory
    }

    fn steps(root: &Path, given: Option<Address>) -> Result<Vec<String>, ImportError> {
        let real = root.canonicalize().unwrap();
        let shown = |path: PathBuf| path.strip_prefix(&real).unwrap().display().to_string();
        let mut steps = Vec::new();
        walk(root, 5, given, &mut |step| {
            steps.push(match step {
                Step::Contract(path, address, claim) => {
                    format!("{} {claim:?} {:x}", shown(path), address.0.0[19])
                }
                Step::OtherChain(count) => format!("other {count}"),
                Step::Rejected(path, reason) => format!("{}: {reason}", shown(path)),
            });
            Ok(())
        })?;
        Ok(steps)
    }

    #[test]
    fn layouts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        contract(root, &format!("contracts/partial_match/5/{A}"));
        contract(root, &format!("contracts/full_match/5/{A}"));
        contract(root, &format!("contracts/full_match/1/{A}"));
        contract(root, &format!("contracts/full_match/1/{B}"));
        fs::write(root.join("stats.json"), "{}").unwrap();
        fs::create_dir_all(root.join("contracts/full_match/5/strange")).unwrap();
        std::os::unix::fs::symlink(root, root.join("contracts/full_match/5").join(B)).unwrap();
        let wrong = "0x5fBDB2315678afecb367f032d93F642f64180aa3";
        contract(root, &format!("contracts/full_match/5/{wrong}"));
        let mut all = steps(root, None).unwrap();
        assert_eq!(
            all.last().unwrap(),
            &format!("contracts/partial_match/5/{A} Partial aa")
        );
        all.sort();
        let reason = "it is named after no chain, no contract and no kind of match";
        assert_eq!(
            all,
            [
                format!("contracts/full_match/5/{A} Full aa"),
                format!("contracts/full_match/5/{B}: it is a symbolic link"),
                format!(
                    "contracts/full_match/5/{wrong}: its name has a wrong checksum (EIP-55): with the right one it is \
                     0x5FbDB2315678afecb367f032d93F642f64180aa3"
                ),
                format!("contracts/full_match/5/strange: {reason}"),
                format!("contracts/partial_match/5/{A} Partial aa"),
                "other 2".to_owned(),
            ]
        );
        // A chain's directory and a contract's say the same of themselves.
        let chain = root.join("contracts/partial_match/5");
        assert_eq!(steps(&chain, None).unwrap(), [format!("{A} Partial aa")]);
        let one = chain.join(A);
        assert_eq!(steps(&one, None).unwrap(), [" Partial aa"]);
        assert_eq!(
            steps(&one, Some(Address::repeat_byte(9))).unwrap(),
            [" Partial 9"]
        );
        assert_eq!(
            steps(&root.join("contracts/full_match/1"), None).unwrap(),
            ["other 2"]
        );
        assert_eq!(
            steps(&root.join(format!("contracts/full_match/1/{A}")), None).unwrap(),
            ["other 1"]
        );
    }

    #[test]
    fn bare_layouts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        contract(root, &format!("5/{A}"));
        contract(root, &format!("6/{A}"));
        let mut all = steps(root, None).unwrap();
        all.sort();
        assert_eq!(all, [format!("5/{A} None aa"), "other 1".to_owned()]);
        let odd = contract(root, "7/mine");
        assert!(steps(&odd, None).unwrap_err().to_string().contains("--address"));
        assert_eq!(steps(&odd, Some(Address::repeat_byte(3))).unwrap(), [" None 3"]);
        assert!(steps(root, Some(Address::ZERO)).is_err());
        assert!(walk(&root.join("absent"), 5, None, &mut |_| Ok(())).is_err());
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_a_bad_entry_and_the_others_are_walked_over() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        contract(root, &format!("full_match/5/{A}"));
        contract(root, &format!("partial_match/5/{A}"));
        contract(root, &format!("5/{B}"));
        // Gone before it is come to: the names below the root are known by then.
        let mut seen = Vec::new();
        walk(root, 5, None, &mut |step| {
            match step {
                Step::Contract(_, address, claim) => {
                    let _ = fs::remove_dir_all(root.join("5"));
                    seen.push(format!("{claim:?} {:x}", address.0.0[19]));
                }
                Step::Rejected(path, reason) => {
                    assert!(
                        path.ends_with("5") && reason.starts_with("it cannot be read: "),
                        "{reason}"
                    );
                    seen.push("rejected".to_owned());
                }
                Step::OtherChain(_) => seen.push("other".to_owned()),
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, ["Full aa", "rejected", "Partial aa"]);
    }

    #[test]
    fn nothing_is_refused_below_another_chain() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        contract(root, &format!("full_match/5/{A}"));
        let other = root.join("full_match/1");
        contract(&other, A);
        for odd in [
            "strange",
            "0x5fBDB2315678afecb367f032d93F642f64180aa3",
            "a/b/c/d/e/f/g",
        ] {
            fs::create_dir_all(other.join(odd)).unwrap();
        }
        let link = |name: &std::ffi::OsStr| std::os::unix::fs::symlink(root, other.join(name)).unwrap();
        link("link".as_ref());
        link(std::os::unix::ffi::OsStrExt::from_bytes(b"\xff"));
        let deep = other.join("full_match/contracts/contracts/contracts/contracts/contracts");
        fs::create_dir_all(deep).unwrap();
        let mut all = steps(root, None).unwrap();
        all.sort();
        assert_eq!(all, [format!("full_match/5/{A} Full aa"), "other 2".to_owned()]);
    }
}
