//! Checkpoints of stores that nobody writes.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use quarry::store::schema::SCHEMA_VERSION;
use serde_json::Value;

use crate::binary::{Server, demo, quarry};
use crate::support::fake_node::FakeNode;
use crate::{
    assert_sound, create, demo_store, digest, files, inspected, names, restore, stream, sync, verify,
};

/// Answers that tables, arrays and imports are needed for.
const ASKED: [&str; 4] = [
    "/api/stats/token-price",
    "/api/proxy?action=eth_getBlockByNumber&tag=0x169&boolean=true",
    "/api/logs/get-logs?topic0=0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef&offset=1000",
    "/api/stats/total-supply",
];

#[test]
fn the_demo_comes_back_whole() {
    let home = tempfile::tempdir().unwrap();
    let [data, made, packed, back, unpacked] =
        ["data", "made", "packed", "back", "unpacked"].map(|name| home.path().join(name));
    demo_store(&data);
    let before = inspected(&data);
    assert!(before.contains("import     prices from"), "{before}");
    let said = create(&data, &made).succeeded().stdout;
    assert!(said.contains("blocks 0 to 361 (0x970849a5"), "{said}");
    stream(&data, &packed);
    assert_eq!(names(&data), ["mainnet"], "something temporary is left");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(made.join("checkpoint.json")).unwrap()).unwrap();
    let about = &manifest["checkpoint"];
    assert_eq!(about["chainId"], 31337);
    assert_eq!(about["head"]["number"], 361);
    assert_eq!(about["layout"], SCHEMA_VERSION);
    assert_eq!(about["files"].as_array().unwrap().len() + 1, files(&made).len());
    for from in [&made, &packed] {
        verify(from).succeeded();
    }
    restore(&made, &back).succeeded();
    restore(&packed, &unpacked).succeeded();
    let first = Server::start(["serve".as_ref(), "--data-dir".as_ref(), data.as_os_str()]);
    for place in [&back, &unpacked] {
        assert_eq!(names(place), ["mainnet"], "something temporary is left");
        assert_eq!(inspected(place), before);
        assert_sound(place);
        let again = Server::start(["serve".as_ref(), "--data-dir".as_ref(), place.as_os_str()]);
        for asked in ASKED {
            let (one, other) = (first.get(asked), again.get(asked));
            assert_eq!(one.status, 200, "{asked}: {}", one.text());
            assert_eq!((one.status, &one.body), (other.status, &other.body), "{asked}");
        }
        again.stop();
        // It is a store like any other: what is imported again is there already, and it can be written.
        let chain = demo("chain.jsonl.zst");
        let said = quarry(["import", "chain", &chain, "--data-dir", place.to_str().unwrap()]);
        assert!(said.succeeded().stdout.contains(" 0 blocks added"));
    }
    // Other tools read the stream too, and what they unpack is a checkpoint.
    let status = std::process::Command::new("tar")
        .args(["--zstd", "-xf"])
        .arg(&packed)
        .arg("-C")
        .arg(home.path())
        .status();
    if status.is_ok_and(|status| status.success()) {
        verify(&home.path().join("quarry-checkpoint-1")).succeeded();
    }
}

#[test]
fn tables_are_linked_and_what_is_made_does_not_change() {
    let home = tempfile::tempdir().unwrap();
    let (data, made) = (home.path().join("data"), home.path().join("made"));
    let fake = FakeNode::start(4);
    fake.mine(120);
    fake.set_finalized(100);
    sync(&fake, &data).succeeded();
    create(&data, &made).succeeded();
    let of = |path: &Path| path.metadata().unwrap();
    let tables = files(&made)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "sst"));
    let linked = tables.filter(|path| of(path).nlink() == 2).count();
    assert!(linked > 0, "no table is shared with the store");
    let before: Vec<_> = files(&made)
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    // The store goes on, with other blocks in the place of those that were not final.
    fake.reorg(15, 60);
    fake.set_finalized(fake.head() - 5);
    sync(&fake, &data).succeeded();
    let after: Vec<_> = files(&made)
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    assert!(before == after, "the checkpoint changed with its store");
    // What is restored takes the new blocks as well, and unwinds the old ones.
    let back = home.path().join("back");
    restore(&made, &back).succeeded();
    sync(&fake, &back).succeeded();
    assert_eq!(digest(&back), digest(&data));
    assert_sound(&back);
}

#[test]
fn onto_another_file_system() {
    let home = tempfile::tempdir().unwrap();
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let device = |path: &Path| path.metadata().unwrap().dev();
    if device(home.path()) == device(memory.path()) {
        return;
    }
    let (data, made, back) = (
        home.path().join("data"),
        memory.path().join("made"),
        memory.path().join("back"),
    );
    demo_store(&data);
    create(&data, &made).succeeded();
    assert_eq!(names(memory.path()), ["made"]);
    assert_eq!(names(&data), ["mainnet"]);
    restore(&made, &back).succeeded();
    assert_eq!(inspected(&back), inspected(&data));
}

#[test]
fn to_a_name_that_is_no_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    demo_store(&data);
    let made = home.path().join(std::ffi::OsStr::from_bytes(b"of \xe9t\xe9"));
    create(&data, &made).succeeded();
    verify(&made).succeeded();
}

#[test]
fn nothing_is_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let [data, made, other] = ["data", "made", "other"].map(|name| home.path().join(name));
    demo_store(&data);
    create(&data, &made).succeeded();
    let shown = made.display().to_string();
    create(&data, &made).refused(&[&shown, "exists already", "name a directory that does not"]);
    let store = data.join("mainnet").display().to_string();
    restore(&made, &data).refused(&[&store, "overwrites nothing", "pass another --data-dir"]);
    // Anything there is something of somebody.
    std::fs::create_dir_all(other.join("mainnet")).unwrap();
    std::fs::write(other.join("mainnet/note"), b"mine").unwrap();
    restore(&made, &other).refused(&["overwrites nothing"]);
    assert_eq!(names(&other.join("mainnet")), ["note"]);
    std::fs::remove_file(other.join("mainnet/note")).unwrap();
    // An empty directory is nothing.
    restore(&made, &other).succeeded();
    assert_eq!(inspected(&other), inspected(&data));
    // Nor is what a link leads to, and the link stays; before anything is read or made.
    let linked = home.path().join("linked");
    std::fs::create_dir_all(linked.join("elsewhere")).unwrap();
    let link = linked.join("mainnet");
    for to in ["elsewhere", "nowhere"] {
        std::os::unix::fs::symlink(to, &link).unwrap();
        let shown = format!("`{}` is a link", link.display());
        restore(&made, &linked).refused(&[&shown, "remove it, or pass another --data-dir"]);
        assert_eq!(names(&linked), ["elsewhere", "mainnet"]);
        assert_eq!(names(&linked.join("elsewhere")), [""; 0]);
        std::fs::remove_file(&link).unwrap();
    }
    // Without a store there is nothing to copy.
    let nowhere = home.path().join("nowhere");
    create(&nowhere, &home.path().join("more")).refused(&["there is no store in", "quarry run"]);
    assert!(!nowhere.exists());
    verify(&nowhere).refused(&["cannot read", "nowhere"]);
    // Both names of the API are places for it.
    let text = other.to_str().unwrap();
    let second = quarry([
        "checkpoint",
        "restore",
        &shown,
        "--chain",
        "testnet",
        "--data-dir",
        text,
    ]);
    assert!(second.succeeded().stdout.starts_with("testnet: restored"));
    assert_eq!(names(&other), ["mainnet", "testnet"]);
}
