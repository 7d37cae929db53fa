//! What is left of a store's directory when its process is killed or the power fails.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fastrand::Rng;
use quarry::store::FlatArray;

/// Length and time of the last change of each file.
type Listing = BTreeMap<PathBuf, (u64, SystemTime)>;

const PAGE: usize = 4096;
/// An image that never comes out whole is a mistake of the test.
const TRIES_MAX: usize = 200;

/// Copies a directory; pages of zeros are left out, as in the files of arrays, which grow ahead of their records.
pub fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&source, &target)?;
        } else if kind.is_file() && !is_log(&source) {
            copy_file(&source, &target)?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    File::open(from)?.read_to_end(&mut bytes)?;
    let file = File::create(to)?;
    file.set_len(bytes.len() as u64)?;
    for (place, page) in bytes.chunks(PAGE).enumerate() {
        if page.iter().any(|byte| *byte != 0) {
            file.write_all_at(page, (place * PAGE) as u64)?;
        }
    }
    Ok(())
}

/// RocksDB's diary, which nobody reads back.
fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "LOG" || name.starts_with("LOG.old")
}

fn list(directory: &Path, found: &mut Listing) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let about = path.metadata()?;
        if about.is_dir() {
            list(&path, found)?;
        } else if !is_log(&path) {
            found.insert(path, (about.len(), about.modified()?));
        }
    }
    Ok(())
}

/// Copies a directory as it is at one moment, while threads of the store may be writing tables: what a killed process
/// leaves, whose pages in the cache outlive it.
pub fn take(from: &Path, to: &Path) {
    for _ in 0..TRIES_MAX {
        let _ = std::fs::remove_dir_all(to);
        let (mut before, mut after) = (Listing::new(), Listing::new());
        let taken = list(from, &mut before)
            .and_then(|()| copy(from, to))
            .and_then(|()| list(from, &mut after));
        match taken {
            Ok(()) if before == after => return,
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => panic!("cannot copy {}: {error}", from.display()),
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("{} does not stand still", from.display());
}

/// Lengths of RocksDB's logs.
pub fn logs(store: &Path) -> BTreeMap<String, u64> {
    let files = std::fs::read_dir(store.join("rocksdb")).into_iter().flatten();
    files
        .map_while(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let length = entry.metadata().ok()?.len();
            name.ends_with(".log").then_some((name, length))
        })
        .collect()
}

/// Takes from an image what was not forced to disk: of RocksDB's logs what lies behind `synced`, of the arrays what
/// lies behind so many `records`. Answers what was done.
pub fn cut_power(
    store: &Path,
    synced: &BTreeMap<String, u64>,
    records: &[u64; FlatArray::ALL.len()],
    rng: &mut Rng,
) -> String {
    let mut done = String::new();
    for name in logs(store).into_keys() {
        let kept = synced.get(&name).copied().unwrap_or(0);
        done += &lose(&store.join("rocksdb").join(name), kept, rng);
    }
    for (array, records) in FlatArray::ALL.iter().zip(records) {
        let path = store.join("flat").join(format!("{}.flat", array.name()));
        done += &lose(&path, records * array.width() as u64, rng);
    }
    done
}

/// Cuts a file somewhere behind `kept` bytes, or puts zeros or garbage there.
fn lose(path: &Path, kept: u64, rng: &mut Rng) -> String {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    if length <= kept {
        return String::new();
    }
    // Mostly near what was kept: an array's file has much room behind its records.
    let at = rng.u64(kept..=length.min(kept + 5000));
    let how = match rng.u8(..3) {
        0 => {
            file.set_len(at).unwrap();
            "cut"
        }
        1 => {
            file.set_len(at).unwrap();
            file.set_len(length).unwrap();
            "zeros"
        }
        _ => {
            let mut bytes = vec![0; usize::try_from((length - at).min(20_000)).unwrap()];
            rng.fill(&mut bytes);
            file.write_all_at(&bytes, at).unwrap();
            "garbage"
        }
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name} {how} from {at} of {length}; ")
}
