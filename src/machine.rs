//! What this machine has, and what this process takes of it, as Linux tells in files (proc(5), cgroups(7)). A leaf.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Cores that this process may use, as when it was asked first; two where the system does not tell.
#[must_use]
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(2, usize::from))
}

/// The text of a file of the system's, empty where there is none.
#[must_use]
pub fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// What a text of lines such as `MemTotal:  33554432 kB` states under a name.
#[must_use]
pub fn stated<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (named, value) = line.split_once(':')?;
        (named.trim_end() == name).then(|| value.trim())
    })
}

/// The same where it is a number of kilobytes, as bytes.
fn stated_bytes(text: &str, name: &str) -> Option<u64> {
    let kilobytes = stated(text, name)?.strip_suffix("kB")?;
    Some(kilobytes.trim().parse::<u64>().ok()? << 10)
}

/// Memory that the machine has, bytes; `None` where the system does not tell.
#[must_use]
pub fn memory() -> Option<u64> {
    stated_bytes(&text("/proc/meminfo"), "MemTotal")
}

/// The same, or what a control group leaves this process where that is less.
#[must_use]
pub fn memory_allowed() -> Option<u64> {
    allowed(Path::new("/"))
}

/// Memory of this process that the system counts under a name of `/proc/self/status`, bytes: `VmRSS`, `RssAnon`, `VmHWM`.
#[must_use]
pub fn process_memory(name: &str) -> Option<u64> {
    stated_bytes(&text("/proc/self/status"), name)
}

/// Bytes that this process had the disk read so far; `None` where the system does not tell.
#[must_use]
pub fn disk_bytes() -> Option<u64> {
    stated(&text("/proc/self/io"), "read_bytes")?.parse().ok()
}

/// Bytes that were written to a socket and that its other end has not acknowledged (ioctl SIOCOUTQ, tcp(7)); `None` where it is none.
#[must_use]
pub fn unacknowledged(socket: std::os::fd::RawFd) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    #[expect(unsafe_code, reason = "a question to the kernel that writes one integer")]
    // SAFETY: the request (on sockets the same as TIOCOUTQ) writes one `int` to where the pointer points, which outlives the call; a
    // descriptor that is none, or of another kind, is an error.
    let asked = unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut bytes) };
    (asked == 0).then(|| u64::try_from(bytes).ok()).flatten()
}

/// Another process that has a file under a directory mapped into its memory, where there is one and it may be looked at.
#[must_use]
pub fn who_maps(directory: &Path) -> Option<u32> {
    let directory = fs::canonicalize(directory).ok()?;
    // A blank stands before the path.
    let wanted = format!(" {}/", directory.to_str()?);
    let ids = fs::read_dir("/proc").ok()?;
    let ids = ids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|&id| id != std::process::id())
        .find(|id| text(&format!("/proc/{id}/maps")).contains(&wanted))
}

/// Files lie under `root`.
fn allowed(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let machine = stated_bytes(&read("proc/meminfo"), "MemTotal");
    let groups = read("proc/self/cgroup");
    let groups = groups.lines().filter_map(|line| bound(root, line));
    machine.into_iter().chain(groups).min()
}

/// What a control group and those around it leave their processes; `group` is a line of `/proc/self/cgroup` (cgroups(7)):
/// `0::/path` in version 2, `9:memory:/path` in version 1.
fn bound(root: &Path, group: &str) -> Option<u64> {
    let (_, named) = group.split_once(':')?;
    let (controllers, path) = named.split_once(':')?;
    let (home, names): (_, &[&str]) = if controllers.is_empty() {
        // Over the second the system slows the group down.
        ("sys/fs/cgroup", &["memory.max", "memory.high"])
    } else if controllers.split(',').any(|name| name == "memory") {
        ("sys/fs/cgroup/memory", &["memory.limit_in_bytes"])
    } else {
        return None;
    };
    // In a container the path may be the host's: what it names is not there, but the container's own group is the root.
    let around = Path::new(path.trim_start_matches('/')).ancestors();
    let groups = around.map(|group: &Path| -> PathBuf { root.join(home).join(group) });
    let files = groups.flat_map(|group| names.iter().map(move |name| group.join(name)));
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
    fn whoever_maps_a_file_of_a_directory_is_found() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(who_maps(directory.path()), None);
        // A program that is run is mapped; what lies beside it under a longer name is not in it.
        let program = directory.path().join("sleep");
        fs::copy("/bin/sleep", &program).unwrap();
        fs::create_dir(directory.path().join("s")).unwrap();
        let mut sleeper = loop {
            match std::process::Command::new(&program).arg("60").spawn() {
                Ok(sleeper) => break sleeper,
                // Another thread's child may hold the file that was just written.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        };
        // The child is there a moment before its program is.
        for _ in 0..1_000 {
            if who_maps(directory.path()).is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let found = (who_maps(directory.path()), who_maps(&directory.path().join("s")));
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!(found, (Some(sleeper.id()), None));
        assert_eq!(who_maps(directory.path()), None);
        assert_eq!(who_maps(Path::new("/no such directory")), None);
    }

    #[test]
    fn the_tightest_group_around_the_process_counts() {
        let meminfo = ("proc/meminfo", "MemTotal:       33554432 kB\nMemFree: 1 kB\n");
        let told = |files: &[(&str, &str)]| allowed(system(files).path());
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
        let high = "sys/fs/cgroup/system.slice/quarry.service/memory.high";
        let told_high = [
            meminfo,
            group,
            slice,
            (unit, "4294967296\n"),
            (high, "3221225472\n"),
        ];
        assert_eq!(told(&told_high), Some(3 * GIB));
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
        assert!(memory() > Some(64 << 20) && memory() >= memory_allowed());
        assert!(memory_allowed() > Some(1 << 20));
        assert!(process_memory("VmRSS") > Some(1 << 20) && process_memory("VmRSS") <= memory());
        assert_eq!(process_memory("Vm"), None);
        assert!(disk_bytes().is_some());
        assert!(cores() > 0);
    }
}
