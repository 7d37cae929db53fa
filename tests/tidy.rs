//! The house rules, checked by reading the sources: who may import whom, which package stops where, the
//! one clock, sizes, words, and nothing of the machine it was written on.
//!
//! The rules are data; a rule that changes is changed here and in docs/ARCHITECTURE.md, whose table of
//! rooms is rendered from this file (`QUARRY_BLESS=1` renders it anew).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/section.rs"]
mod section;
#[path = "tidy/source.rs"]
mod source;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use source::{Source, tokens_before_path};

/// A room, what it is for, and which of our rooms it may name.
struct Room {
    name: &'static str,
    about: &'static str,
    may: &'static [&'static str],
}

/// From the street down. What is not listed here is refused, so that a new room is thought about once.
const ROOMS: &[Room] = &[
    Room {
        name: "main",
        about: "the process: arguments in, exit code out",
        may: &["app", "cli"],
    },
    Room {
        name: "app",
        about: "opens what the configuration names, runs it, stops it",
        may: ALL_BELOW_APP,
    },
    Room {
        name: "config",
        about: "flag, environment, file, default: merged and checked",
        may: &["cli", "model", "machine"],
    },
    Room {
        name: "cli",
        about: "what can be asked for, in clap's terms",
        may: &["model"],
    },
    Room {
        name: "bench",
        about: "measures the service, and holds its answers against a node's and a database's",
        may: &["http", "query", "node", "json", "model", "clock", "machine"],
    },
    Room {
        name: "api",
        about: "the endpoint list and the dialect of the specification",
        may: &[
            "desk", "http", "query", "json", "model", "status", "metrics", "clock", "machine",
        ],
    },
    Room {
        name: "compat",
        about: "the dialect of Etherscan's clients",
        may: &["desk", "http", "query", "json", "model", "clock"],
    },
    Room {
        name: "rpc",
        about: "the dialect of JSON-RPC clients",
        may: &["desk", "http", "query", "json", "model", "clock"],
    },
    Room {
        name: "desk",
        about: "what the dialects share: snapshots, plans, pages, questions to the node",
        may: &[
            "http", "query", "json", "model", "status", "metrics", "marks", "clock",
        ],
    },
    Room {
        name: "http",
        about: "transport: sockets, routing, parameters, errors, bodies; knows no chain",
        may: &["clock", "shutdown", "metrics", "machine"],
    },
    Room {
        name: "checkpoint",
        about: "copies of a store that are carried away, verified and restored",
        may: &["store", "model", "clock"],
    },
    Room {
        name: "enquiry",
        about: "asks the node what blocks do not tell, and compares ledgers with it",
        may: &[
            "query", "node", "store", "model", "status", "shutdown", "tasks", "clock",
        ],
    },
    Room {
        name: "audit",
        about: "the store against itself and against the node",
        may: &["query", "sync", "store", "codec", "model", "machine"],
    },
    Room {
        name: "import",
        about: "what the operator supplies beside the chain: files in, rows out",
        may: &["query", "store", "codec", "model", "clock"],
    },
    Room {
        name: "query",
        about: "read side: typed questions about one snapshot",
        may: &["store", "codec", "model", "clock"],
    },
    Room {
        name: "sync",
        about: "write side: fetch, verify, derive, commit, unwind",
        may: &[
            "node", "store", "codec", "model", "status", "shutdown", "tasks", "clock",
        ],
    },
    Room {
        name: "node",
        about: "JSON-RPC in, model out",
        may: &["model", "metrics", "tasks", "clock"],
    },
    Room {
        name: "store",
        about: "RocksDB: tables, flat arrays, batches, views, scans, postings, undo",
        may: &["codec", "model", "metrics", "marks", "clock", "machine"],
    },
    Room {
        name: "codec",
        about: "bytes: sortable keys, chunks, versioned values",
        may: &["model"],
    },
    Room {
        name: "json",
        about: "text: a JSON writer, and the JSON-RPC objects",
        may: &["model"],
    },
    Room {
        name: "model",
        about: "plain values",
        may: &[],
    },
    Room {
        name: "shutdown",
        about: "telling everybody to stop, once",
        may: &[],
    },
    Room {
        name: "tasks",
        about: "work beside the task that asks for it, with the chain named in its lines",
        may: &[],
    },
    Room {
        name: "status",
        about: "what a chain's sync is doing, between writer and reporter",
        may: &["clock"],
    },
    Room {
        name: "marks",
        about: "what came once, so that what comes again is known",
        may: &[],
    },
    Room {
        name: "metrics",
        about: "counting, and the page of figures",
        may: &[],
    },
    Room {
        name: "clock",
        about: "the one place that asks what time it is",
        may: &[],
    },
    Room {
        name: "machine",
        about: "what the machine has, and what this process takes of it",
        may: &[],
    },
];

const ALL_BELOW_APP: &[&str] = &[
    "config",
    "cli",
    "bench",
    "api",
    "compat",
    "rpc",
    "desk",
    "http",
    "checkpoint",
    "audit",
    "enquiry",
    "import",
    "query",
    "sync",
    "node",
    "store",
    "codec",
    "json",
    "model",
    "clock",
    "shutdown",
    "tasks",
    "status",
    "marks",
    "metrics",
    "machine",
];

/// A package (or a part of one, by path) and the rooms that may name it.
struct Fence {
    package: &'static str,
    rooms: &'static [&'static str],
}

/// For a path that several fences match, the longest one counts.
const FENCES: &[Fence] = &[
    // The client of a node.
    Fence {
        package: "alloy_provider",
        rooms: &["node"],
    },
    Fence {
        package: "alloy_rpc_client",
        rooms: &["node"],
    },
    Fence {
        package: "alloy_json_rpc",
        rooms: &["node"],
    },
    Fence {
        package: "alloy_pubsub",
        rooms: &["node"],
    },
    Fence {
        package: "tokio_tungstenite",
        rooms: &["node"],
    },
    Fence {
        package: "reqwest",
        rooms: &["node"],
    },
    // Consensus: what verification needs.
    Fence {
        package: "alloy_consensus",
        rooms: &["sync"],
    },
    Fence {
        package: "alloy_eips",
        rooms: &["sync"],
    },
    Fence {
        package: "alloy_genesis",
        rooms: &["sync"],
    },
    Fence {
        package: "alloy_rlp",
        rooms: &["sync"],
    },
    Fence {
        package: "alloy_trie",
        rooms: &["sync"],
    },
    // ABIs: names at import, values when they are shown.
    Fence {
        package: "alloy_json_abi",
        rooms: &["import"],
    },
    Fence {
        package: "alloy_dyn_abi",
        rooms: &["import", "desk"],
    },
    Fence {
        package: "sha2",
        rooms: &["checkpoint", "import", "api"],
    },
    // Storage.
    Fence {
        package: "rocksdb",
        rooms: &["store"],
    },
    Fence {
        package: "memmap2",
        rooms: &["store"],
    },
    Fence {
        package: "rustix",
        rooms: &["app", "http", "store"],
    },
    Fence {
        package: "self_cell",
        rooms: &["store"],
    },
    Fence {
        package: "percent_encoding",
        rooms: &["node"],
    },
    Fence {
        package: "bincode",
        rooms: &["codec"],
    },
    Fence {
        package: "bitpacking",
        rooms: &["codec"],
    },
    // Transport. Other rooms take status codes and headers from the http room, which passes hyper's on.
    Fence {
        package: "hyper",
        rooms: &["http"],
    },
    Fence {
        package: "hyper_util",
        rooms: &["http"],
    },
    Fence {
        package: "http_body",
        rooms: &["http"],
    },
    Fence {
        package: "http_body_util",
        rooms: &["http"],
    },
    // Waiting: the rooms below it are plain functions.
    Fence {
        package: "tokio",
        rooms: &[
            "app", "bench", "rpc", "desk", "http", "enquiry", "sync", "node", "shutdown", "tasks",
        ],
    },
    Fence {
        package: "tokio_postgres",
        rooms: &["bench"],
    },
    // The edges.
    Fence {
        package: "clap",
        rooms: &["cli"],
    },
    Fence {
        package: "clap_complete",
        rooms: &["cli"],
    },
    Fence {
        package: "clap_mangen",
        rooms: &["cli"],
    },
    Fence {
        package: "csv_core",
        rooms: &["import"],
    },
    Fence {
        package: "toml",
        rooms: &["config"],
    },
    Fence {
        package: "indicatif",
        rooms: &["app"],
    },
    Fence {
        package: "tracing_subscriber",
        rooms: &["app"],
    },
    Fence {
        package: "sd_notify",
        rooms: &["app"],
    },
    Fence {
        package: "mimalloc",
        rooms: &["main"],
    },
    Fence {
        package: "zstd",
        rooms: &["app", "checkpoint", "http", "node"],
    },
    Fence {
        package: "tar",
        rooms: &["checkpoint"],
    },
    Fence {
        package: "brotli",
        rooms: &["http"],
    },
    Fence {
        package: "flate2",
        rooms: &["http"],
    },
    Fence {
        package: "httpdate",
        rooms: &["http", "node"],
    },
    Fence {
        package: "prometheus_client",
        rooms: &["metrics"],
    },
    Fence {
        package: "uuid",
        rooms: &["json"],
    },
    Fence {
        package: "sha1",
        rooms: &["json"],
    },
];

/// The longest source file, lines.
const LINES_MAX: usize = 500;

/// Hosts that a tracked file may name: examples, and where packages and facts are described.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "localhost",
    "keepachangelog.com",
    "test",
    "a",
    "b",
    "ADDRESS",
    "HOST",
    "NODE",
    "node",
    "quarry",
];
const HOSTS_OF_LOCK_FILES: &[&str] = &[
    "github.com",
    "paulmillr.com",
    "www.buymeacoffee.com",
    "opencollective.com",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let all = source::load(root(), &["src"]);
    assert!(all.len() > 50, "the sources were not found");
    all
}

/// Fails with every offender at once.
#[track_caller]
fn none(rule: &str, offenders: Vec<String>) {
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

fn room(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

#[test]
fn rooms_import_downwards_only() {
    for (place, room) in ROOMS.iter().enumerate() {
        for below in room.may {
            let at = ROOMS.iter().position(|other| other.name == *below);
            assert!(
                at > Some(place),
                "{} may not name {below}: it lies above or is no room",
                room.name
            );
        }
    }
    let mut offenders = Vec::new();
    for source in sources() {
        if source.path == "src/lib.rs" {
            continue;
        }
        let Some(room) = room(&source.room) else {
            offenders.push(format!(
                "{}: the room `{}` is not in the list",
                source.path, source.room
            ));
            continue;
        };
        for (line, target) in source.rooms_named() {
            if target != source.room && !room.may.contains(&target.as_str()) {
                offenders.push(format!("{}:{line}: {} names {target}", source.path, room.name));
            }
        }
    }
    none("imports go down only", offenders);
}

#[test]
fn packages_stop_at_their_fences() {
    let mut offenders = Vec::new();
    for source in sources() {
        let tests = source.lines_of_tests();
        for fence in FENCES {
            let named = tokens_before_path(&source.code, fence.package);
            for (line, path) in named.into_iter().filter(|(line, _)| !tests.contains(line)) {
                let closest = FENCES
                    .iter()
                    .filter(|other| source::is_prefix(other.package, &path))
                    .max_by_key(|other| other.package.len());
                let allowed = closest.is_some_and(|fence| fence.rooms.contains(&source.room.as_str()));
                if !allowed {
                    offenders.push(format!("{}:{line}: `{path}` in {}", source.path, source.room));
                }
            }
        }
    }
    none("a package is named outside its rooms", offenders);
}

#[test]
fn one_file_asks_what_time_it_is() {
    let mut offenders = Vec::new();
    for source in sources().iter().filter(|source| source.path != "src/clock.rs") {
        for (line, text) in source.code_lines() {
            for call in ["SystemTime::now", "Instant::now", "UNIX_EPOCH", ".elapsed()"] {
                if text.contains(call) {
                    offenders.push(format!("{}:{line}: {call}", source.path));
                }
            }
        }
    }
    none("the time is asked for outside src/clock.rs", offenders);
}

#[test]
fn forbidden_words() {
    // Put together here, so that this file does not offend.
    let anywhere = [
        ["FIX", "ME"].concat(),
        ["TO", "DO"].concat(),
        ["HA", "CK"].concat(),
    ];
    let in_code = ["todo", "unimplemented", "dbg"].map(|word| format!("{word}!"));
    let mut offenders = Vec::new();
    for source in source::load(root(), &["src", "tests", "benches", "examples"]) {
        for (line, text) in source.text.lines().enumerate() {
            for word in &anywhere {
                if source::has_word(text, word) {
                    offenders.push(format!("{}:{}: {word}", source.path, line + 1));
                }
            }
        }
        for (line, text) in source.code_lines() {
            for word in &in_code {
                if text.contains(word.as_str()) {
                    offenders.push(format!("{}:{line}: {word}", source.path));
                }
            }
        }
    }
    for source in sources() {
        for (line, text) in source.code_lines_outside_tests() {
            if text.contains(".unwrap()") {
                offenders.push(format!("{}:{line}: .unwrap() outside tests", source.path));
            }
        }
    }
    none("forbidden words", offenders);
}

#[test]
fn no_glob_imports() {
    let mut offenders = Vec::new();
    for source in source::load(root(), &["src", "tests", "benches", "examples"]) {
        let tests: BTreeSet<usize> = source.lines_of_tests();
        for (line, text) in source.code_lines() {
            if !text.trim_start().starts_with("use ") && !text.trim_start().starts_with("pub use ") {
                continue;
            }
            // proptest's macros expect its prelude.
            let allowed = tests.contains(&line)
                && (text.contains("use super::*;") || text.contains("use proptest::prelude::*;"));
            if text.contains('*') && !allowed {
                offenders.push(format!("{}:{line}: {}", source.path, text.trim()));
            }
        }
    }
    none("glob imports hide where a name comes from", offenders);
}

#[test]
fn files_are_short_documented_and_plain() {
    let mut offenders = Vec::new();
    for source in source::load(root(), &["src", "tests", "benches", "examples"]) {
        if !source.text.starts_with("//! ") {
            offenders.push(format!("{}: does not begin with `//!`", source.path));
        }
        let lines = source.text.lines().count();
        if source.path.starts_with("src/") && lines > LINES_MAX {
            offenders.push(format!("{}: {lines} lines, more than {LINES_MAX}", source.path));
        }
        for (line, text) in source.text.lines().enumerate() {
            if !text.is_ascii() {
                offenders.push(format!(
                    "{}:{}: not ASCII: {}",
                    source.path,
                    line + 1,
                    text.trim()
                ));
            }
        }
    }
    none("files", offenders);
}

/// Every tracked text file: its path and its text.
fn tracked() -> Vec<(String, String)> {
    let listed = Command::new("git")
        .arg("-C")
        .arg(root())
        .args(["ls-files", "-z"])
        .output();
    let names: Vec<String> = match listed {
        Ok(listed) if listed.status.success() => String::from_utf8_lossy(&listed.stdout)
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        // Not a checkout (a source archive): everything that is there.
        _ => source::walk(root()),
    };
    assert!(names.len() > 50, "the tracked files were not found");
    names
        .into_iter()
        .filter_map(|name| Some((name.clone(), std::fs::read_to_string(root().join(name)).ok()?)))
        .collect()
}

#[test]
fn nothing_of_the_machine_is_tracked() {
    let folders = ["root", "work", "home"].map(|folder| format!("/{folder}"));
    let mut offenders = Vec::new();
    for (name, text) in tracked() {
        let lock = name.ends_with(".lock") || name.ends_with("-lock.json");
        for (line, text) in text.lines().enumerate() {
            let at = format!("{name}:{}", line + 1);
            for folder in &folders {
                if source::has_folder(text, folder) {
                    offenders.push(format!("{at}: {folder}"));
                }
            }
            for host in source::hosts(text) {
                // Names under `.example` are nobody's (RFC 2606).
                let reserved = host.ends_with(".example");
                let known =
                    reserved || HOSTS.contains(&host) || (lock && HOSTS_OF_LOCK_FILES.contains(&host));
                if !known {
                    offenders.push(format!("{at}: the host {host}"));
                }
            }
            // Put together here, so that this file does not offend.
            let registry = ["registry", "+"].concat();
            let index = [&registry, "https:", "//github.com/rust-lang/crates.io-index"].concat();
            if text.contains(&registry) && !text.contains(&index) {
                offenders.push(format!("{at}: another registry"));
            }
        }
    }
    none("machine paths and hosts", offenders);
}

#[test]
fn the_rooms_in_the_architecture_page_are_these() {
    let mut table = String::from("| Room | For | May name |\n|---|---|---|\n");
    for room in ROOMS {
        let may = match room.may {
            [] => "-".to_owned(),
            _ if room.may == ALL_BELOW_APP => "every room below".to_owned(),
            _ => room.may.join(", "),
        };
        table.push_str(&format!("| `{}` | {} | {may} |\n", room.name, room.about));
    }
    section::check("docs/ARCHITECTURE.md", "rooms", &table);
    let mut table = String::from("| Package | May be named in |\n|---|---|\n");
    for fence in FENCES {
        table.push_str(&format!("| `{}` | {} |\n", fence.package, fence.rooms.join(", ")));
    }
    section::check("docs/ARCHITECTURE.md", "fences", &table);
}
