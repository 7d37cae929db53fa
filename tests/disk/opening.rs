//! Stores that cannot be opened as they were left: no room for it, or a log that lost its end.

use std::time::Duration;

use crate::binary::{Server, eventually};
use crate::full::{PATIENCE, SmallDisk, ask, chain, digest, fresh, says_full, start, start_in, synced};
use crate::support::fake_node::FakeNode;

/// Waits until a service says that its disk is full, everywhere that it does.
fn told_full(server: &Server) {
    eventually("a full disk", PATIENCE, || says_full(server).then_some(()));
    assert_eq!(server.gauge("quarry_sync_disk_full").as_deref(), Some("1.0"));
    let now = chain(server);
    assert_eq!(
        (&now["diskFull"], &now["stopped"]),
        (&true.into(), &false.into()),
        "{now}"
    );
}

/// Makes room, and waits until the service has got on by itself.
fn goes_on(server: &Server, disk: &SmallDisk, fake: &FakeNode) {
    disk.empty();
    synced(server, fake);
    eventually("the sentence goes", PATIENCE, || {
        (!says_full(server)).then_some(())
    });
    assert_eq!(server.gauge("quarry_sync_disk_full").as_deref(), Some("0.0"));
    assert!(!server.log().contains("sync stopped"), "{}", server.log());
}

/// With some room left it is another file that finds none.
#[test]
fn a_new_store_on_a_full_disk_waits_for_room() {
    let Some(disk) = SmallDisk::new(220) else { return };
    let fake = FakeNode::start(43);
    fake.mine(100);
    fake.set_finalized(80);
    for room in [0, 8 << 10, 60 << 10, 200 << 10] {
        disk.fill(room);
        let server = start(&fake, &disk);
        told_full(&server);
        goes_on(&server, &disk, &fake);
        server.stop();
        assert_eq!(digest(disk.path()), fresh(&fake), "{room}");
        std::fs::remove_dir_all(disk.path().join("mainnet")).unwrap();
    }
}

/// What is stored is served meanwhile, as it is where the disk gets full later.
#[test]
fn a_store_on_a_full_disk_is_served_and_waits_for_room() {
    let Some(disk) = SmallDisk::new(220) else { return };
    let fake = FakeNode::start(44);
    fake.mine(300);
    fake.set_finalized(250);
    let server = start(&fake, &disk);
    synced(&server, &fake);
    let before = ask(&server, &fake, 300);
    server.stop();
    fake.mine(4);
    disk.fill(0);
    let server = start(&fake, &disk);
    assert_eq!(ask(&server, &fake, 300), before);
    told_full(&server);
    // The node is heard of, and not far ahead: who serves that is ready.
    eventually("the node's head", PATIENCE, || {
        (chain(&server)["nodeHead"] == 304).then_some(())
    });
    assert_eq!(chain(&server)["indexed"], 300);
    assert_eq!(server.get("/ready").status, 200);
    assert_eq!(ask(&server, &fake, 300), before);
    goes_on(&server, &disk, &fake);
    // However often that was tried, the node was met once.
    assert_eq!(server.log().matches("node found").count(), 1);
    assert_eq!(ask(&server, &fake, 300), before);
    server.stop();
    assert_eq!(digest(disk.path()), fresh(&fake));
}

/// What nodes told of tokens is not forgotten for as long as the process lives: its disk may be full alone.
#[test]
fn a_side_store_on_a_full_disk_waits_for_room() {
    let Some(disk) = SmallDisk::new(64) else { return };
    let fake = FakeNode::start(47);
    fake.mine(20);
    let home = tempfile::tempdir().unwrap();
    let (chain, kept) = (home.path().join("mainnet"), disk.path().join("observed"));
    std::fs::create_dir_all(&chain).unwrap();
    std::os::unix::fs::symlink(&kept, chain.join("observed")).unwrap();
    // Of a new store, then of one that is there.
    for _ in 0..2 {
        std::fs::create_dir(&kept).unwrap();
        disk.fill(0);
        let server = start_in(&fake, home.path(), "4MiB");
        told_full(&server);
        goes_on(&server, &disk, &fake);
        let log = server.stop_logged();
        assert!(!log.contains("kept in memory"), "{log}");
        assert!(kept.join("CURRENT").exists());
        std::fs::remove_dir_all(&kept).unwrap();
    }
}

/// A directory is a file without bytes: what it lacks on such a disk is a number.
#[test]
fn a_data_directory_that_cannot_be_made_waits_for_room() {
    let Some(disk) = SmallDisk::new(220) else { return };
    let fake = FakeNode::start(48);
    fake.mine(20);
    let remount = |files: u64| {
        let mounted = std::process::Command::new("mount")
            .args(["-o", &format!("remount,nr_inodes={files}")])
            .arg(disk.path())
            .status();
        assert!(mounted.unwrap().success());
    };
    remount(2);
    std::fs::write(disk.path().join("ballast"), []).unwrap();
    let data = disk.path().join("data");
    let full = std::fs::create_dir(&data).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let server = start_in(&fake, &data, "4MiB");
    told_full(&server);
    remount(10_000);
    goes_on(&server, &disk, &fake);
    server.stop();
    assert_eq!(digest(&data), fresh(&fake));
}

/// RocksDB says nothing of a log that is not there any more, or whose end is not.
#[test]
fn blocks_that_went_with_a_log_are_told_of() {
    const TOLD: &str = "the store lacks the last blocks that were shown of it";
    let home = tempfile::tempdir().unwrap();
    let fake = FakeNode::start(45);
    fake.mine(300);
    fake.set_finalized(250);
    let server = start_in(&fake, home.path(), "4MiB");
    synced(&server, &fake);
    let beat = home.path().join("mainnet/writer.beat");
    eventually("word of the last block", PATIENCE, || {
        let said = std::fs::read_to_string(&beat).ok()?;
        (said.split(' ').nth(1) == Some("300")).then_some(())
    });
    assert!(!server.log().contains(TOLD), "{}", server.log());
    server.kill();
    for file in std::fs::read_dir(home.path().join("mainnet/rocksdb")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            std::fs::write(path, []).unwrap();
        }
    }
    let server = start_in(&fake, home.path(), "4MiB");
    synced(&server, &fake);
    let log = server.stop_logged();
    let line = log
        .lines()
        .find(|line| line.contains(TOLD))
        .unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("last=300"), "{line}");
    assert_eq!(digest(home.path()), fresh(&fake));
}

/// The end of a sync does not say that something is served of which nothing is.
#[test]
fn a_chain_whose_store_cannot_be_opened_is_not_said_to_be_served() {
    let home = tempfile::tempdir().unwrap();
    let damaged = home.path().join("testnet/rocksdb");
    std::fs::create_dir_all(&damaged).unwrap();
    std::fs::write(damaged.join("CURRENT"), "nonsense").unwrap();
    let fake = FakeNode::start(46);
    fake.mine(5);
    let (url, data) = (fake.url(), home.path().display().to_string());
    let server = Server::start([
        "run",
        "--mainnet-rpc",
        &url,
        "--testnet-rpc",
        &url,
        "--data-dir",
        &data,
    ]);
    eventually("its end", Duration::from_secs(20), || {
        server
            .log()
            .contains("sync stopped; nothing of this chain is served")
            .then_some(())
    });
    assert!(!server.log().contains("still served"), "{}", server.log());
}

/// Names of tokens do not go away without a word.
#[test]
fn a_side_store_that_lost_files_is_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().display().to_string();
    let demo = || Server::start(["demo", "--data-dir", &data]);
    let serve = || Server::start(["serve", "--data-dir", &data]);
    let told = |server: Server, line: &str| {
        let log = server.stop_logged();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("side store")).collect();
        assert!(lines.iter().all(|found| found.contains(line)), "{log}");
        !lines.is_empty()
    };
    let observed = directory.path().join("mainnet/observed");
    let current = observed.join("CURRENT");
    assert!(!told(demo(), "the side store"));
    let removed = |ending: &str| {
        for file in std::fs::read_dir(&observed).unwrap() {
            let path = file.unwrap().path();
            if path.to_string_lossy().ends_with(ending) {
                std::fs::remove_file(path).unwrap();
            }
        }
        if current.exists() {
            let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
            let file = std::fs::File::options().write(true).open(&current).unwrap();
            file.set_modified(hour_ago).unwrap();
        }
    };
    for ending in ["CURRENT", ".log"] {
        assert!(!told(serve(), "the side store"), "{ending}");
        removed(ending);
        assert!(told(serve(), "the side store cannot be read"), "{ending}");
        assert!(told(demo(), "the side store is made anew"), "{ending}");
    }
    std::fs::write(&current, "").unwrap();
    assert!(told(serve(), "the side store cannot be read"));
    assert!(told(demo(), "the side store is made anew"));
    std::fs::remove_dir_all(&observed).unwrap();
    std::fs::write(&observed, "a file").unwrap();
    assert!(told(serve(), "the side store cannot be read"));
    std::fs::remove_file(&observed).unwrap();
    assert!(!told(serve(), "the side store"));
}
