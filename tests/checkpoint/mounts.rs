//! Two mounts of one file system, as a container has that gets two directories of one disk: nothing is renamed from one to
//! the other, though both are on one device.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use quarry::store::PARTS;

use crate::binary::{Outcome, command};
use crate::{demo_store, inspected, names, restore, verify};

/// Runs a program where `mounted` is a mount of its own; nobody else sees that.
fn beside_mount(mounted: &Path, program: &Command) -> Outcome {
    let mut run = Command::new("unshare");
    run.args(["-rm", "sh", "-c", "mount --bind \"$0\" \"$0\" && exec \"$@\""])
        .arg(mounted)
        .arg(program.get_program())
        .args(program.get_args())
        .stdin(Stdio::null());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => run.env(name, value),
            None => run.env_remove(name),
        };
    }
    let Ok(ended) = run.output() else {
        return Outcome {
            code: None,
            stdout: String::new(),
            stderr: "there is no `unshare`".to_owned(),
        };
    };
    Outcome {
        code: ended.status.code(),
        stdout: String::from_utf8_lossy(&ended.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&ended.stderr).into_owned(),
    }
}

/// Whether mounts can be made here; says so where not.
fn can_mount(directory: &Path) -> bool {
    let tried = beside_mount(directory, &Command::new("true"));
    if tried.code != Some(0) {
        crate::binary::skipped::skipped(&format!("no mount can be made: {}", tried.stderr.trim()));
    }
    tried.code == Some(0)
}

#[test]
fn onto_another_mount_of_the_same_file_system() {
    let home = tempfile::tempdir().unwrap();
    let [data, disk, back] = ["data", "disk", "back"].map(|name| home.path().join(name));
    std::fs::create_dir(&disk).unwrap();
    if !can_mount(&disk) {
        return;
    }
    demo_store(&data);
    let device = |path: &Path| path.metadata().unwrap().dev();
    assert_eq!(device(&data), device(&disk));
    let made = disk.join("made");
    let mut program = command(["checkpoint", "create"]);
    program.arg(&made).arg("--data-dir").arg(&data);
    beside_mount(&disk, &program).succeeded();
    assert_eq!(names(&disk), ["made"]);
    assert_eq!(names(&data), ["mainnet"]);
    let belongs = |name: &String| name == "checkpoint.json" || PARTS.contains(&name.as_str());
    assert!(names(&made).iter().all(belongs), "{:?}", names(&made));
    verify(&made).succeeded();
    restore(&made, &back).succeeded();
    assert_eq!(inspected(&back), inspected(&data));
}

#[test]
fn a_store_is_not_restored_to_a_mount_point() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let store = data.join("mainnet");
    std::fs::create_dir_all(&store).unwrap();
    if !can_mount(&store) {
        return;
    }
    // No checkpoint at all: what is refused before anything is read is not refused for that.
    let nothing = home.path().join("nothing");
    std::fs::create_dir(&nothing).unwrap();
    let mut program = command(["checkpoint", "restore"]);
    program.arg(&nothing).arg("--data-dir").arg(&data);
    let shown = format!("`{}` is a mount point", store.display());
    beside_mount(&store, &program).refused(&[&shown, "mount the file system at --data-dir itself"]);
    assert_eq!(names(&data), ["mainnet"]);
    assert_eq!(names(&store), [""; 0]);
}
