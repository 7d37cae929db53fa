//! Checkpoints that are damaged, cut off, of another version, or made to harm: each is refused by a sentence, and
//! nothing of it stays.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use quarry::store::schema::SCHEMA_VERSION;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

use crate::{copy, create, demo_store, files, names, restore, stream, verify};

/// A store of the demo, its checkpoint as a directory and as a stream.
struct Made {
    home: tempfile::TempDir,
    directory: PathBuf,
    packed: PathBuf,
}

impl Made {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let [data, directory, packed] = ["data", "made", "packed"].map(|name| home.path().join(name));
        demo_store(&data);
        create(&data, &directory).succeeded();
        stream(&data, &packed);
        Self {
            home,
            directory,
            packed,
        }
    }

    /// A copy of the directory to be harmed.
    fn harmed(&self) -> PathBuf {
        let to = self.home.path().join("harmed");
        let _ = std::fs::remove_dir_all(&to);
        copy(&self.directory, &to);
        to
    }

    /// Both commands refuse it with all of these words, and nothing is left.
    #[track_caller]
    fn refused(&self, from: &Path, words: &[&str]) {
        verify(from).refused(words);
        let back = self.home.path().join("back");
        restore(from, &back).refused(words);
        assert!(!back.exists() || names(&back).is_empty(), "{:?}", names(&back));
    }

    /// The manifest changed and sealed again, as somebody who knows how would.
    fn forge(&self, change: impl FnOnce(&mut Value)) -> PathBuf {
        let to = self.harmed();
        let path = to.join("checkpoint.json");
        // The order of fields counts for the seal: they are kept as text.
        let text = std::fs::read_to_string(&path).unwrap();
        let mut manifest: Value = serde_json::from_str(&text).unwrap();
        change(&mut manifest["checkpoint"]);
        std::fs::write(path, sealed(&manifest["checkpoint"])).unwrap();
        to
    }

    /// A stream of the whole directory, with more before the manifest.
    fn pack(&self, more: &[(Header, Vec<u8>)], root: &str) -> PathBuf {
        let to = self.home.path().join("forged");
        let mut out = zstd::Encoder::new(std::fs::File::create(&to).unwrap(), 1).unwrap();
        let mut add = |header: &Header, bytes: &[u8]| {
            out.write_all(header.as_bytes()).unwrap();
            out.write_all(bytes).unwrap();
            out.write_all(&vec![0; bytes.len().next_multiple_of(512) - bytes.len()])
                .unwrap();
        };
        let (said, parts) = files(&self.directory)
            .split_first()
            .map(|(said, rest)| (said.clone(), rest.to_vec()))
            .unwrap();
        let named = |path: &Path| format!("{root}{}", path.strip_prefix(&self.directory).unwrap().display());
        for path in &parts {
            let bytes = std::fs::read(path).unwrap();
            add(&header(&named(path), EntryType::Regular, bytes.len()), &bytes);
        }
        for (header, bytes) in more {
            add(header, bytes);
        }
        let bytes = std::fs::read(&said).unwrap();
        add(&header(&named(&said), EntryType::Regular, bytes.len()), &bytes);
        out.write_all(&[0; 1024]).unwrap();
        out.finish().unwrap();
        to
    }
}

/// The fields of a manifest in the order in which they are sealed.
const FIELDS: [&str; 11] = [
    "format",
    "layout",
    "quarry",
    "chain",
    "chainId",
    "genesisHash",
    "firstBlock",
    "head",
    "finalized",
    "taken",
    "files",
];

/// A manifest with the hash of itself.
fn sealed(checkpoint: &Value) -> String {
    let fields: Vec<String> = FIELDS
        .iter()
        .map(|name| {
            let text = match *name {
                "files" => {
                    let files = checkpoint["files"].as_array().unwrap().iter().map(|file| {
                        format!(
                            "{{\"name\":{},\"bytes\":{},\"sha256\":{}}}",
                            file["name"], file["bytes"], file["sha256"]
                        )
                    });
                    format!("[{}]", files.collect::<Vec<_>>().join(","))
                }
                "head" => format!(
                    "{{\"number\":{},\"hash\":{}}}",
                    checkpoint["head"]["number"], checkpoint["head"]["hash"]
                ),
                _ => checkpoint[name].to_string(),
            };
            format!("\"{name}\":{text}")
        })
        .collect();
    let text = format!("{{{}}}", fields.join(","));
    let hash = const_hex::encode(Sha256::digest(text.as_bytes()));
    format!("{{\"checkpoint\":{text},\"sha256\":\"{hash}\"}}")
}

/// A header of an archive with a name that no decent tool writes.
fn header(name: &str, kind: EntryType, length: usize) -> Header {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(length as u64);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

#[test]
fn a_forged_manifest_with_nothing_changed_is_taken() {
    // Or the refusals below would prove nothing.
    let made = Made::new();
    let same = made.forge(|_| {});
    verify(&same).succeeded();
    let same = made.pack(&[], "quarry-checkpoint-1/");
    verify(&same).succeeded();
    restore(&same, &made.home.path().join("taken")).succeeded();
}

#[test]
fn one_flipped_bit_anywhere() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let made = Made::new();
    let flip = |path: &Path, rng: &mut Rng| {
        let mut bytes = std::fs::read(path).unwrap();
        if bytes.is_empty() {
            return false;
        }
        let at = rng.usize(..bytes.len());
        bytes[at] ^= 1 << rng.u8(..8);
        // Tables are links: the file is replaced, not written to.
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, bytes).unwrap();
        true
    };
    let harmed = made.harmed();
    for file in files(&harmed) {
        let whole = std::fs::read(&file).unwrap();
        if !flip(&file, &mut rng) {
            continue;
        }
        let name = file.file_name().unwrap().to_str().unwrap();
        verify(&harmed).refused(&["checkpoint"]);
        if name != "checkpoint.json" {
            restore(&harmed, &made.home.path().join("back")).refused(&[name, "hash"]);
        }
        std::fs::write(&file, whole).unwrap();
    }
    verify(&harmed).succeeded();
    // The manifest, many times: blanks alone may differ.
    let said = harmed.join("checkpoint.json");
    let whole = std::fs::read(&said).unwrap();
    for _ in 0..60 {
        let mut bytes = whole.clone();
        let at = rng.usize(..bytes.len());
        bytes[at] ^= 1 << rng.u8(..7);
        if bytes[at].is_ascii_whitespace() && whole[at].is_ascii_whitespace() {
            continue;
        }
        std::fs::write(&said, &bytes).unwrap();
        let outcome = verify(&harmed);
        // A blank that became nothing a parser minds is none of our business; a changed word is.
        if outcome.code == Some(0) {
            let (one, other): (Value, Value) = (
                serde_json::from_slice(&whole).unwrap(),
                serde_json::from_slice(&bytes).unwrap(),
            );
            // Digits of a hash are the same in either case.
            let said = |value: &Value| {
                let mut said = value["checkpoint"].clone();
                for place in ["/genesisHash", "/head/hash"] {
                    let hash = said.pointer_mut(place).unwrap();
                    *hash = hash.as_str().unwrap().to_ascii_lowercase().into();
                }
                said
            };
            assert_eq!(said(&one), said(&other));
        } else {
            outcome.refused(&["checkpoint"]);
        }
    }
    // The stream: zstd says some things in more ways than one, such as how far back a zero stands among zeros.
    let unpacked = |path: &Path| zstd::decode_all(std::fs::File::open(path).unwrap()).ok();
    let whole = unpacked(&made.packed);
    for _ in 0..30 {
        let forged = made.home.path().join("forged");
        std::fs::copy(&made.packed, &forged).unwrap();
        flip(&forged, &mut rng);
        if unpacked(&forged) == whole {
            verify(&forged).succeeded();
        } else {
            made.refused(&forged, &["checkpoint"]);
        }
    }
}

#[test]
fn what_is_missing_or_cut_off() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let made = Made::new();
    let harmed = made.harmed();
    for file in files(&harmed) {
        let whole = std::fs::read(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::remove_file(&file).unwrap();
        verify(&harmed).refused(&[&name, "no whole checkpoint"]);
        if !whole.is_empty() && name != "checkpoint.json" {
            std::fs::write(&file, &whole[..rng.usize(..whole.len())]).unwrap();
            verify(&harmed).refused(&[&name, "bytes where", "are promised"]);
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::write(&file, whole).unwrap();
    }
    verify(&harmed).succeeded();
    let whole = std::fs::read(&made.packed).unwrap();
    let forged = made.home.path().join("forged");
    for length in (0..40)
        .map(|_| rng.usize(..whole.len()))
        .chain([0, 1, whole.len() - 1])
    {
        std::fs::write(&forged, &whole[..length]).unwrap();
        made.refused(&forged, &["no whole checkpoint"]);
    }
    // No archive at all.
    std::fs::write(&forged, b"PK\x03\x04 something else").unwrap();
    made.refused(&forged, &["no whole checkpoint"]);
    made.refused(&made.home.path().join("data"), &["it has no checkpoint.json"]);
}

#[test]
fn other_versions() {
    let made = Made::new();
    let newer = made.forge(|manifest| manifest["format"] = json!(2));
    made.refused(
        &newer,
        &["has format 2, this quarry reads 1", "use the newer quarry"],
    );
    let newer = made.forge(|manifest| manifest["layout"] = json!(SCHEMA_VERSION + 1));
    made.refused(
        &newer,
        &[
            &format!(
                "has layout version {}, this quarry reads {SCHEMA_VERSION}",
                SCHEMA_VERSION + 1
            ),
            "use the newer quarry",
        ],
    );
    let older = made.forge(|manifest| manifest["layout"] = json!(SCHEMA_VERSION - 1));
    made.refused(
        &older,
        &[
            &format!(
                "has layout version {}, this quarry reads {SCHEMA_VERSION}",
                SCHEMA_VERSION - 1
            ),
            "use the quarry that made it",
        ],
    );
    let newer = made.pack(&[], "quarry-checkpoint-2/");
    made.refused(
        &newer,
        &["has format 2, this quarry reads 1", "use the newer quarry"],
    );
}

#[test]
fn a_manifest_of_another_store() {
    let made = Made::new();
    let back = made.home.path().join("back");
    for (field, value) in [
        ("chainId", json!(1)),
        ("genesisHash", json!(format!("0x{}", "11".repeat(32)))),
        ("firstBlock", json!(7)),
        ("finalized", json!(360)),
        (
            "head",
            json!({"number": 360, "hash": format!("0x{}", "22".repeat(32))}),
        ),
    ] {
        let forged = made.forge(|manifest| manifest[field] = value);
        restore(&forged, &back).refused(&["its files hold another store than its manifest says"]);
        assert!(names(&back).is_empty());
    }
}

#[test]
fn names_that_lead_elsewhere() {
    let made = Made::new();
    let outside = made.home.path().join("outside");
    for (name, reason) in [
        ("../outside", "leads out of it"),
        ("rocksdb/../../outside", "leads out of it"),
        ("/outside", "an absolute path"),
        ("rocksdb/sub/000001.sst", "no file of a store"),
        ("rocksdb/LOCK", "no file of a store"),
        ("rocksdb/CURRENT\u{0}x", "no file of a store"),
        ("elsewhere/000001.sst", "no file of a store"),
        ("flat/other.flat", "no file of a store"),
        ("CURRENT", "no file of a store"),
        ("", "no file of a store"),
    ] {
        let forged = made.forge(|manifest| {
            let files = manifest["files"].as_array_mut().unwrap();
            files.push(json!({"name": name, "bytes": 0, "sha256": const_hex::encode(Sha256::digest(b""))}));
        });
        made.refused(&forged, &[reason, "nothing of it is used"]);
    }
    let root = "quarry-checkpoint-1/";
    for (name, kind, reason) in [
        (
            "../outside".to_owned(),
            EntryType::Regular,
            "no file of a checkpoint",
        ),
        (
            format!("{root}../../outside"),
            EntryType::Regular,
            "leads out of it",
        ),
        (
            format!("{root}rocksdb/../../../outside"),
            EntryType::Regular,
            "leads out of it",
        ),
        (
            outside.display().to_string(),
            EntryType::Regular,
            "an absolute path",
        ),
        (format!("{root}rocksdb/000001.sst"), EntryType::Symlink, "a link"),
        (format!("{root}rocksdb/000001.sst"), EntryType::Link, "a link"),
        (
            format!("{root}rocksdb/000001.sst"),
            EntryType::Fifo,
            "not a plain file",
        ),
        (
            format!("{root}rocksdb/000001.sst"),
            EntryType::Char,
            "not a plain file",
        ),
        (format!("{root}rocksdb"), EntryType::Directory, "not a plain file"),
        // They speak of the file after them, and may be as long as they like.
        (
            "././@LongLink".to_owned(),
            EntryType::GNULongName,
            "not a plain file",
        ),
        ("more".to_owned(), EntryType::XHeader, "not a plain file"),
        ("more".to_owned(), EntryType::XGlobalHeader, "not a plain file"),
    ] {
        let mut header = header(&name, kind, 0);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name(&outside).unwrap();
            header.set_cksum();
        }
        made.refused(
            &made.pack(&[(header, Vec::new())], root),
            &[reason, "nothing of it is used"],
        );
    }
    assert!(!outside.exists());
    // More than the manifest names, and the same twice.
    let more = header(&format!("{root}rocksdb/999999.sst"), EntryType::Regular, 3);
    made.refused(
        &made.pack(&[(more, b"abc".to_vec())], root),
        &["999999.sst is in it, and its manifest does not name it"],
    );
    let current = std::fs::read(made.directory.join("rocksdb/CURRENT")).unwrap();
    let twice = header(
        &format!("{root}rocksdb/CURRENT"),
        EntryType::Regular,
        current.len(),
    );
    made.refused(
        &made.pack(&[(twice, current)], root),
        &["rocksdb/CURRENT is in it twice"],
    );
}

#[test]
fn links_in_a_directory() {
    let made = Made::new();
    let harmed = made.harmed();
    let current = harmed.join("rocksdb/CURRENT");
    std::fs::remove_file(&current).unwrap();
    std::os::unix::fs::symlink(made.directory.join("rocksdb/CURRENT"), &current).unwrap();
    made.refused(&harmed, &["rocksdb/CURRENT", "a link"]);
    let harmed = made.harmed();
    std::fs::remove_dir_all(harmed.join("flat")).unwrap();
    std::os::unix::fs::symlink(made.directory.join("flat"), harmed.join("flat")).unwrap();
    made.refused(&harmed, &["behind a link"]);
}
