//! What can go wrong with a store, each with a sentence that says the way out where there is one.

use std::path::{Path, PathBuf};

use super::room;
use crate::codec::Corrupt;

/// The system's words for a full disk.
const NO_ROOM: &str = "No space left";

fn at(key: &[u8]) -> String {
    match key {
        [] => String::new(),
        key => format!(" at key 0x{}", const_hex::encode(key)),
    }
}

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// RocksDB failed.
    #[error("store failed in table `{table}`{}: {source}", at(key))]
    Rocks {
        /// The table, or `database`.
        table: &'static str,
        /// The key that was read, or the one that was sought before; empty where there is none.
        key: Vec<u8>,
        /// RocksDB's words.
        source: rocksdb::Error,
    },
    /// Bytes that cannot be what was written.
    #[error("{corrupt} in table `{table}` at key 0x{key}")]
    Corrupt {
        /// The table or array.
        table: &'static str,
        /// The key in hex.
        key: String,
        /// What was being read.
        corrupt: Corrupt,
    },
    /// A row that other rows promise is not there.
    #[error("missing row in `{table}`: {what} {number}")]
    Missing {
        /// The table or array.
        table: &'static str,
        /// What the number counts.
        what: &'static str,
        /// Which.
        number: u64,
    },
    /// A file operation failed.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The directory holds a store of another version.
    #[error(
        "the store in `{}` has layout version {found}, this quarry writes version {wanted}: {way_out}",
        path.display()
    )]
    Schema {
        /// The store's directory.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        wanted: u32,
        /// What to do.
        way_out: &'static str,
    },
    /// The directory holds another chain.
    #[error(
        "the store in `{}` holds {what} {found}, the node has {wanted}: point --data-dir elsewhere, or the URL at the node of that chain",
        path.display()
    )]
    OtherChain {
        /// The store's directory.
        path: PathBuf,
        /// `chain id` or `the chain with genesis hash`.
        what: &'static str,
        /// In the store.
        found: String,
        /// At the node.
        wanted: String,
    },
    /// Another chain's store lies where a replica followed one.
    #[error(
        "another store lies in `{}` now, of {found}, and this process serves that of {served}: start it again to serve this one, or put the other one back",
        path.display()
    )]
    Exchanged {
        /// The store's directory.
        path: PathBuf,
        /// The chain in the store now.
        found: String,
        /// The one that was followed.
        served: String,
    },
    /// The store begins at another block than asked.
    #[error(
        "the store in `{}` begins at block {found}, --start-block asks for {wanted}: leave --start-block out, or use a new --data-dir",
        path.display()
    )]
    OtherStart {
        /// The store's directory.
        path: PathBuf,
        /// Its first block.
        found: u64,
        /// The block asked for.
        wanted: u64,
    },
    /// Another process has the store open.
    #[error(
        "the store in `{}` is in use by another process: stop it first, or pass another --data-dir",
        path.display()
    )]
    Busy {
        /// The store's directory.
        path: PathBuf,
    },
    /// Another process writes so fast that the store does not hold still for being opened.
    #[error(
        "the store in `{}` is written by another process faster than it can be opened: try again, or follow it with `quarry serve --secondary`",
        path.display()
    )]
    Restless {
        /// The store's directory.
        path: PathBuf,
    },
    /// The files of a store cannot be written.
    #[error(
        "the store in `{}` cannot be written ({words}): mount it for writing and own it, or only read it with `quarry serve`",
        path.display()
    )]
    NotWritable {
        /// The store's directory.
        path: PathBuf,
        /// RocksDB's words, or the system's.
        words: String,
    },
    /// The disk has no room for what opening a store for writing writes.
    #[error(
        "the store in `{}` cannot be opened for writing, its disk is full ({words}): make room, or only read it with `quarry serve`",
        path.display()
    )]
    NoRoom {
        /// The store's directory.
        path: PathBuf,
        /// RocksDB's words, or the system's.
        words: String,
    },
    /// The files of a store cannot be read.
    #[error(
        "the store in `{}` cannot be read ({words}): let the user that quarry runs as read all of its files",
        path.display()
    )]
    NotReadable {
        /// The store's directory.
        path: PathBuf,
        /// RocksDB's words.
        words: String,
    },
    /// The system gives the process no more files.
    #[error(
        "the store in `{}` has more files than may be open ({words}): raise the limit (ulimit -n, LimitNOFILE=, --ulimit nofile=)",
        path.display()
    )]
    TooManyFiles {
        /// The store's directory.
        path: PathBuf,
        /// RocksDB's words.
        words: String,
    },
    /// A file lies where a store's directory would.
    #[error("`{}` is a file, not the directory of a store: pass another --data-dir, or move the file away", path.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
    },
    /// RocksDB does not recognise its own files, or arrays are not whole.
    #[error(
        "the store in `{}` is damaged ({words}): restore a checkpoint with `quarry checkpoint restore`, or remove the directory and sync again",
        path.display()
    )]
    Damaged {
        /// The store's directory.
        path: PathBuf,
        /// RocksDB's words, or what is missing.
        words: String,
    },
    /// A part of an array's file does not have the sum of what was written.
    #[error(
        "{0}: the store is damaged; restore a checkpoint with `quarry checkpoint restore`, or remove the directory and sync again"
    )]
    DamagedArray(String),
    /// What was imported beside a store is damaged.
    #[error(
        "the imports in `{}` are damaged ({words}): remove the directory and import again",
        path.display()
    )]
    DamagedImports {
        /// The directory of the imports.
        path: PathBuf,
        /// RocksDB's words, or what is missing.
        words: String,
    },
    /// What nodes told beside a store is damaged.
    #[error(
        "the side store in `{}` is damaged ({words}): `quarry run` and `quarry sync` make it anew, and ask the node again what it held",
        path.display()
    )]
    DamagedObserved {
        /// The directory of the side store.
        path: PathBuf,
        /// RocksDB's words, or what is missing.
        words: String,
    },
    /// A log of RocksDB's ends in what its reader does not get past; whoever opens the store for writing mends it.
    #[error(
        "the store in `{}` was cut off from power and its log `{}` ends in garbage: open it for writing once, with `quarry run` or `quarry sync`, which leaves that out",
        path.display(),
        log.file_name().unwrap_or_default().display()
    )]
    Torn {
        /// The store's directory.
        path: PathBuf,
        /// The log.
        log: PathBuf,
    },
    /// What was imported beside a store is of another chain or version.
    #[error(
        "the imports in `{}` are of another chain or version: remove the directory and import again",
        path.display()
    )]
    OtherImports {
        /// The directory of the imports.
        path: PathBuf,
    },
    /// There is no store to open.
    #[error("there is no store in `{}`: fill one with `quarry run`, `quarry sync` or `quarry import chain`", path.display())]
    Absent {
        /// The directory.
        path: PathBuf,
    },
    /// Unwinding would go below the finalized block.
    #[error("cannot unwind block {block}: it is final (finalized block {finalized})")]
    Final {
        /// The block to unwind.
        block: u64,
        /// The last final block.
        finalized: u64,
    },
    /// A block was added out of order; a bug in the caller.
    #[error("block {found} was added where block {wanted} comes next")]
    OutOfOrder {
        /// The block that was given.
        found: u64,
        /// The block that comes next.
        wanted: u64,
    },
    /// The end was asked for.
    #[error("stopped before the end")]
    Stopped,
    /// A commit panicked, and took how the store stands with it.
    #[error(
        "a write to the store broke off by a panic, which the log tells; what was committed before it is there: start again"
    )]
    WriterLost,
    /// An id or position does not fit its field.
    #[error("{0} does not fit its field")]
    Overflow(&'static str),
}

impl StoreError {
    /// `what` of an [`StoreError::OtherChain`] whose chain id is the store's.
    pub(super) const OTHER_GENESIS: &'static str = "the chain with genesis hash";

    /// Whether a node of the store's chain id has another block 0.
    #[must_use]
    pub fn is_other_genesis(&self) -> bool {
        matches!(self, Self::OtherChain { what, .. } if *what == Self::OTHER_GENESIS)
    }

    /// A failure to make a directory of a store, in the words of one to open it.
    pub(super) fn of_making(directory: &Path) -> impl Fn(std::io::Error) -> Self {
        use std::io::ErrorKind;

        move |source| {
            let (path, words) = (directory.to_path_buf(), source.to_string());
            match source.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    Self::NotWritable { path, words }
                }
                ErrorKind::StorageFull => Self::NoRoom { path, words },
                _ => Self::io("make", directory)(source),
            }
        }
    }

    /// A file operation that failed.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io {
            doing,
            path: path.to_path_buf(),
            source,
        }
    }

    /// A RocksDB failure in a table.
    pub(super) const fn rocks(table: &'static str) -> impl Fn(rocksdb::Error) -> Self {
        Self::rocks_at(table, &[])
    }

    /// A RocksDB failure to open a store, which may be another process that has it.
    pub(super) fn of_opening(source: rocksdb::Error, directory: &Path) -> Self {
        use rocksdb::ErrorKind;

        let (path, words) = (directory.to_path_buf(), source.to_string());
        let says = |words_of: &[&str]| words_of.iter().any(|part| words.contains(part));
        match source.kind() {
            ErrorKind::IOError if says(&[NO_ROOM]) => Self::NoRoom { path, words },
            // Why it could not be written RocksDB does not say.
            ErrorKind::IOError if says(&["Unable to persist Options file"]) && room::is_scarce(directory) => {
                Self::NoRoom { path, words }
            }
            ErrorKind::IOError
                if says(&["Permission denied"])
                    && says(&["for random read:", "for sequentially reading:", "opendir"]) =>
            {
                Self::NotReadable { path, words }
            }
            ErrorKind::IOError if says(&["Read-only file system", "Permission denied"]) => {
                Self::NotWritable { path, words }
            }
            ErrorKind::IOError if says(&["Too many open files"]) => Self::TooManyFiles { path, words },
            ErrorKind::IOError if says(&["/LOCK:"]) => Self::Busy { path },
            ErrorKind::Corruption => Self::Damaged { path, words },
            // A manifest that lost its end names less than was made.
            ErrorKind::InvalidArgument if says(&["Column family not found"]) => Self::Damaged { path, words },
            ErrorKind::IOError if says(&["No such file"]) => Self::Damaged { path, words },
            _ => Self::rocks("database")(source),
        }
    }

    /// The same failure, met while the store in `directory` was opened: rows that opening needs and that do not read are damage of the
    /// store.
    pub(super) fn met_opening(self, directory: &Path) -> Self {
        let is_damage = match &self {
            Self::Rocks { source, .. } => source.kind() == rocksdb::ErrorKind::Corruption,
            Self::Corrupt { .. } | Self::Missing { .. } => true,
            _ => false,
        };
        if !is_damage {
            return self;
        }
        Self::Damaged {
            path: directory.to_path_buf(),
            words: self.to_string(),
        }
    }

    /// A RocksDB failure in a table at a key, or on the way from it.
    pub(super) const fn rocks_at(table: &'static str, key: &[u8]) -> impl Fn(rocksdb::Error) -> Self {
        move |source| {
            // What a read says that must not wait.
            if source.kind() == rocksdb::ErrorKind::Incomplete {
                super::memory::miss();
            }
            Self::Rocks {
                table,
                key: key.to_vec(),
                source,
            }
        }
    }

    /// A decoding failure at a key.
    pub(crate) fn corrupt(table: &'static str, key: &[u8]) -> impl Fn(Corrupt) -> Self {
        move |corrupt| Self::Corrupt {
            table,
            key: const_hex::encode(key),
            corrupt,
        }
    }

    /// Whether the disk is full: sync waits, reads go on.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == std::io::ErrorKind::StorageFull,
            Self::Rocks { source, .. } => source.to_string().contains(NO_ROOM),
            Self::NoRoom { .. } => true,
            _ => false,
        }
    }
}
