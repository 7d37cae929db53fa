//! The verified sources that ship with the demo: imported at its start, as an operator would.

use std::path::Path;

use super::AppError;
use super::demo::Log;
use super::import_facts::into_store;
use crate::import;
use crate::model::{Address, ImportKind};
use crate::store::Store;

/// A tree as Sourcify keeps it.
const TREE: [(&str, &str); 5] = [
    (
        "full_match/31337/0x5FbDB2315678afecb367f032d93F642f64180aa3/metadata.json",
        include_str!(
            "../../demo/contracts/full_match/31337/0x5FbDB2315678afecb367f032d93F642f64180aa3/metadata.json"
        ),
    ),
    (
        "full_match/31337/0x5FbDB2315678afecb367f032d93F642f64180aa3/sources/Coin.sol",
        include_str!(
            "../../demo/contracts/full_match/31337/0x5FbDB2315678afecb367f032d93F642f64180aa3/sources/Coin.sol"
        ),
    ),
    (
        "full_match/31337/0x663F3ad617193148711d28f5334eE4Ed07016602/metadata.json",
        include_str!(
            "../../demo/contracts/full_match/31337/0x663F3ad617193148711d28f5334eE4Ed07016602/metadata.json"
        ),
    ),
    (
        "full_match/31337/0x663F3ad617193148711d28f5334eE4Ed07016602/sources/Coin.sol",
        include_str!(
            "../../demo/contracts/full_match/31337/0x663F3ad617193148711d28f5334eE4Ed07016602/sources/Coin.sol"
        ),
    ),
    (
        "full_match/31337/0x663F3ad617193148711d28f5334eE4Ed07016602/sources/OddCoins.sol",
        include_str!(
            "../../demo/contracts/full_match/31337/0x663F3ad617193148711d28f5334eE4Ed07016602/sources/OddCoins.sol"
        ),
    ),
];

/// An ABI and a standard-JSON input, which has none, of one contract.
const FILES: [(&str, &str); 2] = [
    (
        "Signals.abi.json",
        include_str!("../../demo/contracts/Signals.abi.json"),
    ),
    (
        "Signals.standard.json",
        include_str!("../../demo/contracts/Signals.standard.json"),
    ),
];
/// Their contract.
const SIGNALS: Address = alloy_primitives::address!("0xe7f1725e7734ce288f8367e1bb143e90bb3f0512");

/// Imports the sources in the binary beside `store`, by way of files in `directory`.
pub(super) fn import_sources(store: &Store, directory: &Path) -> Result<(), AppError> {
    let directory = directory.join("demo-sources");
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text))
            .map_err(AppError::io(format!("write `{}`", path.display())))?;
        Ok::<_, AppError>(path)
    };
    for (name, text) in TREE {
        write(name, text)?;
    }
    let mut paths = vec![(directory.join("full_match"), None)];
    for (name, text) in FILES {
        paths.push((write(name, text)?, Some(SIGNALS)));
    }
    for (path, given) in paths {
        into_store(
            store,
            ImportKind::Contracts,
            &path,
            &Log,
            |target, path, watcher| import::contracts(target, path, given, watcher),
        )?;
    }
    // What was imported lies in the store now.
    let _ = std::fs::remove_dir_all(&directory);
    Ok(())
}
