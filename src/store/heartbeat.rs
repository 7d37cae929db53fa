//! What a writer says of itself for those who follow its store: a small file, written anew twice a second.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

use crate::clock;

/// How a writer stood when it wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heartbeat {
    /// When, Unix seconds.
    pub time: f64,
    /// The last block that it shows; none in an empty store.
    pub indexed: Option<u64>,
    /// Its node's head as last heard of.
    pub node_head: Option<u64>,
    /// When that was, Unix seconds.
    pub node_heard: Option<u64>,
    /// Its node's `safe` block as last heard of.
    pub safe: Option<u64>,
    /// Whether its node answered last time; none of a writer that does not tell.
    pub node_up: Option<bool>,
    /// Whether its sync ended by itself; a writer that does not tell is taken to have one that goes on.
    pub stopped: bool,
}

const UP: &str = "up";
const DOWN: &str = "down";
const STOPPED: &str = "stopped";
const GOES_ON: &str = "on";

fn path(store: &Path) -> PathBuf {
    store.join("writer.beat")
}

fn word(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

impl Heartbeat {
    /// Writes it beside a store, in one piece; `node` is its head as last heard of, and when, `safe` its block of that name, `node_up`
    /// whether it answers; `stopped` is whether the sync ended by itself. Words are added at the end only: an earlier version reads those that it
    /// knows. A disk that has no room for it is no reason for anything; answers whether the directory is there at all.
    pub fn write(
        store: &Path,
        indexed: Option<u64>,
        node: Option<(u64, u64)>,
        safe: Option<u64>,
        node_up: bool,
        stopped: bool,
    ) -> bool {
        let time = clock::unix_seconds(clock::wall());
        let (node_head, node_heard) = node.unzip();
        let text = format!(
            "{time:.3} {} {} {} {} {} {}\n",
            word(indexed),
            word(node_head),
            word(node_heard),
            word(safe),
            if node_up { UP } else { DOWN },
            if stopped { STOPPED } else { GOES_ON }
        );
        let (to, from) = (path(store), store.join("writer.beat.new"));
        match std::fs::write(&from, text) {
            Ok(()) => {
                let _ = std::fs::rename(from, to);
                true
            }
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// The blocks that the writer showed and that a store lacks which goes on with block `next`: the first and the last.
    #[must_use]
    pub fn lost(&self, next: u64) -> Option<(u64, u64)> {
        self.indexed.filter(|&last| next <= last).map(|last| (next, last))
    }

    /// Reads what the writer of a store said last; `None` where none ever did.
    #[must_use]
    pub fn read(store: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path(store)).ok()?;
        let mut words = text.split_ascii_whitespace();
        let beat = Self {
            time: words.next()?.parse().ok()?,
            indexed: words.next()?.parse().ok(),
            node_head: words.next()?.parse().ok(),
            node_heard: words.next().and_then(|word| word.parse().ok()),
            safe: words.next().and_then(|word| word.parse().ok()),
            node_up: words.next().and_then(|word| match word {
                UP => Some(true),
                DOWN => Some(false),
                _ => None,
            }),
            stopped: words.next() == Some(STOPPED),
        };
        beat.time.is_finite().then_some(beat)
    }
}

/// Whether another process writes the store in a directory: RocksDB holds its lock then (fcntl(2), `F_SETLK`). Where that cannot be told it
/// is taken for free.
#[must_use]
pub fn is_written(store: &Path) -> bool {
    let Ok(lock) = File::open(store.join("rocksdb").join("LOCK")) else {
        return false;
    };
    let tried = fcntl_lock(&lock, FlockOperation::NonBlockingLockShared);
    let is_held = matches!(tried, Err(Errno::AGAIN | Errno::ACCESS));
    let _ = fcntl_lock(&lock, FlockOperation::NonBlockingUnlock);
    is_held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Heartbeat::read(home.path()), None);
        let gone = home.path().join("gone");
        assert!(!Heartbeat::write(&gone, Some(7), None, None, true, false));
        assert!(Heartbeat::write(home.path(), Some(7), None, None, false, true));
        let beat = Heartbeat::read(home.path()).unwrap();
        assert_eq!(
            (beat.indexed, beat.node_head, beat.node_heard),
            (Some(7), None, None)
        );
        assert_eq!((beat.node_up, beat.stopped), (Some(false), true));
        assert!(beat.time > 1e9);
        assert_eq!(
            [9, 8, 7, 0].map(|next| beat.lost(next)),
            [None, None, Some((7, 7)), Some((0, 7))]
        );
        Heartbeat::write(home.path(), None, Some((9, 1234)), Some(8), true, false);
        let beat = Heartbeat::read(home.path()).unwrap();
        assert_eq!(
            (beat.indexed, beat.node_head, beat.node_heard, beat.safe),
            (None, Some(9), Some(1234), Some(8))
        );
        assert_eq!((beat.node_up, beat.stopped), (Some(true), false));
        // What older versions wrote; and what a newer one may.
        std::fs::write(path(home.path()), "1.5 7 9 1234 8\n").unwrap();
        let of_before = Heartbeat::read(home.path()).unwrap();
        assert_eq!((of_before.safe, of_before.node_up), (Some(8), None));
        std::fs::write(path(home.path()), "1.5 7 9 1234 8 down more\n").unwrap();
        assert_eq!(Heartbeat::read(home.path()).unwrap().node_up, Some(false));
        for (words, stopped) in [("", false), (" more", false), (" stopped more", true)] {
            std::fs::write(path(home.path()), format!("1.5 7 9 1234 8 down{words}\n")).unwrap();
            let beat = Heartbeat::read(home.path()).unwrap();
            assert_eq!((beat.node_up, beat.stopped), (Some(false), stopped), "{words}");
        }
        for (text, heard) in [("1.5 7 9\n", None), ("1.5 7 9 1234\n", Some(1234))] {
            std::fs::write(path(home.path()), text).unwrap();
            let of_before = Heartbeat::read(home.path()).unwrap();
            assert_eq!(
                (of_before.node_head, of_before.node_heard, of_before.safe),
                (Some(9), heard, None)
            );
        }
        for text in ["", "x 1 2", "inf 1 2", "1.0"] {
            std::fs::write(path(home.path()), text).unwrap();
            assert_eq!(Heartbeat::read(home.path()), None, "{text}");
        }
    }
}
