//! How much memory there is for this process.

use std::fs;
use std::path::{Path, PathBuf};

use super::ByteSize;

/// What backfill takes unless told: this part of the memory there is, in whole steps between the least and the most.
const PART: u64 = 8;
const STEP: u64 = 64 << 20;
const LEAST: u64 = 256 << 20;
const MOST: u64 = 4 << 30;
/// Where the system does not tell how much there is.
const UNTOLD: u64 = 1 << 30;

/// Memory of backfill for each chain, unless somebody says how much. With four times as much a chain of 10 M logs is filled in two thirds of the
/// time (`docs/decisions/0057-memory-of-the-machine.md`), and a machine that holds an archive node has it.
pub(super) fn backfill_memory() -> ByteSize {
    part_of(memory(Path::new("/")))
}

fn part_of(memory: Option<u64>) -> ByteSize {
    let part = memory.map_or(UNTOLD, |bytes| bytes / PART / STEP * STEP);
    let part = part.clamp(LEAST, MOST);
    ByteSize(usize::try_from(part).unwrap_or(usize::MAX))
}

/// The machine's memory, bytes, or what a control group leaves this process where that is less; `None` where the system
/// does not tell. Files lie under `root`.
fn memory(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let machine = read("proc/meminfo").lines().find_map(|line| {
        let kilobytes = line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?;
        Some(kilobytes.trim().parse::<u64>().ok()? << 10)
    });
    let groups = read("proc/self/cgroup");
    let groups = groups.lines().filter_map(|line| bound(root, line));
    machine.into_iter().chain(groups).min()
}

/// What a control group and those around it leave their processes; `group` is a line of `/proc/self/cgroup` (cgroups(7)):
/// `0::/path` in version 2, `9:memory:/path` in version 1.
fn bound(root: &Path, group: &str) -> Option<u64> {
    let (_, named) = group.split_once(':')?;
    let (controllers, path) = named.split_once(':')?;
    let (home, file) = if controllers.is_empty() {
        ("sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|name| name == "memory") {
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return None;
    };
    // In a container the path may be the host's: what it names is not there, but the container's own group is the root.
    let around = Path::new(path.trim_start_matches('/')).ancestors();
    let files = around.map(|group: &Path| -> PathBuf { root.join(home).join(group).join(file) });
    // A group without a bound says `max`.
    files
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// Writes files under a directory of their own.
    fn system(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        home
    }

    #[test]
    fn a_part_of_the_memory_is_taken_within_bounds() {
        for (memory, part) in [
            (None, "1GiB"),
            (Some(GIB / 2), "256MiB"),
            (Some(8 * GIB), "1GiB"),
            // What a machine of 16 GiB tells of itself.
            (Some(16 * GIB - (300 << 20)), "1984MiB"),
            (Some(512 * GIB), "4GiB"),
        ] {
            assert_eq!(part_of(memory).to_string(), part, "{memory:?}");
        }
    }

    #[test]
    fn the_tightest_group_around_the_process_counts() {
        let meminfo = ("proc/meminfo", "MemTotal:       33554432 kB\nMemFree: 1 kB\n");
        let told = |files: &[(&str, &str)]| memory(system(files).path());
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[("proc/meminfo", "MemTotal: some\n")]), None);
        assert_eq!(told(&[meminfo]), Some(32 * GIB));
        let slice = ("sys/fs/cgroup/system.slice/memory.max", "8589934592\n");
        let unit = "sys/fs/cgroup/system.slice/quarry.service/memory.max";
        let group = ("proc/self/cgroup", "0::/system.slice/quarry.service\n");
        assert_eq!(told(&[meminfo, group]), Some(32 * GIB));
        assert_eq!(told(&[meminfo, group, (unit, "max\n")]), Some(32 * GIB));
        assert_eq!(told(&[meminfo, group, slice, (unit, "max\n")]), Some(8 * GIB));
        assert_eq!(
            told(&[meminfo, group, slice, (unit, "4294967296\n")]),
            Some(4 * GIB)
        );
        // More than there is.
        assert_eq!(told(&[meminfo, group, (unit, "68719476736\n")]), Some(32 * GIB));
        // Version 1 in a container, whose path is the host's; a group without a bound has the largest number of pages.
        let group = (
            "proc/self/cgroup",
            "11:cpu,cpuacct:/docker/ab\n9:memory:/docker/ab\n",
        );
        let own = "sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(told(&[meminfo, group, (own, "2147483648\n")]), Some(2 * GIB));
        assert_eq!(
            told(&[meminfo, group, (own, "9223372036854771712\n")]),
            Some(32 * GIB)
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_tells() {
        assert!(memory(Path::new("/")).is_some_and(|bytes| bytes > 64 << 20));
    }
}
