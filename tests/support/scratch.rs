//! Directories for stores of tests that are not about durability: in memory where there is a file system in memory.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where Linux keeps a file system in memory.
const MEMORY: &str = "/dev/shm";
/// What must be free there, KiB.
const ROOM_MIN: u64 = 3 << 20;

/// A new directory, removed when dropped. `QUARRY_SCRATCH` names another place.
pub fn directory() -> tempfile::TempDir {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    let place = PLACE.get_or_init(|| match std::env::var_os("QUARRY_SCRATCH") {
        Some(place) => place.into(),
        None if room(Path::new(MEMORY)) >= ROOM_MIN => MEMORY.into(),
        None => std::env::temp_dir(),
    });
    tempfile::tempdir_in(place).unwrap()
}

/// KiB free at a place; 0 where there is no such place.
pub fn room(place: &Path) -> u64 {
    let told = Command::new("df").arg("-Pk").arg(place).output();
    let told = told.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let free = told.ok().and_then(|text| {
        let line = text.lines().nth(1)?;
        line.split_whitespace().nth(3)?.parse().ok()
    });
    free.unwrap_or(0)
}
