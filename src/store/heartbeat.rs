//! What a writer says of itself for those who follow its store: a small file, written anew twice a second.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

/// How a writer stood when it wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
const UNTOLD: &str = "-";

fn path(store: &Path) -> PathBuf {
    store.join("writer.beat")
}

fn word(number: Option<u64>) -> String {
    number.map_or_else(|| UNTOLD.to_owned(), |number| number.to_string())
}

impl Heartbeat {
    /// Writes it beside a store, in one piece. A disk that has no room for it is no reason for anything; answers whether the directory is
    /// there at all.
    #[must_use]
    pub fn write(&self, store: &Path) -> bool {
        let (to, from) = (path(store), store.join("writer.beat.new"));
        match std::fs::write(&from, self.render()) {
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
        Self::parse(&std::fs::read_to_string(path(store)).ok()?)
    }

    /// Words are added at the end only: an earlier version reads those that it knows.
    fn render(&self) -> String {
        format!(
            "{:.3} {} {} {} {} {} {}\n",
            self.time,
            word(self.indexed),
            word(self.node_head),
            word(self.node_heard),
            word(self.safe),
            match self.node_up {
                Some(true) => UP,
                Some(false) => DOWN,
                None => UNTOLD,
            },
            if self.stopped { STOPPED } else { GOES_ON }
        )
    }

    fn parse(text: &str) -> Option<Self> {
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
        let beat = Heartbeat {
            time: 1.5,
            indexed: Some(7),
            node_up: Some(false),
            stopped: true,
            ..Heartbeat::default()
        };
        assert!(!beat.write(&home.path().join("gone")));
        assert!(beat.write(home.path()));
        assert_eq!(Heartbeat::read(home.path()), Some(beat));
        assert_eq!(beat.render(), "1.500 7 - - - down stopped\n");
        assert_eq!(
            [9, 8, 7, 0].map(|next| beat.lost(next)),
            [None, None, Some((7, 7)), Some((0, 7))]
        );
        let beat = Heartbeat {
            time: 2.25,
            node_head: Some(9),
            node_heard: Some(1234),
            safe: Some(8),
            node_up: Some(true),
            ..Heartbeat::default()
        };
        assert_eq!(beat.render(), "2.250 - 9 1234 8 up on\n");
        for node_up in [beat.node_up, None] {
            let beat = Heartbeat { node_up, ..beat };
            assert_eq!(Heartbeat::parse(&beat.render()), Some(beat));
        }
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
