//! Opening the side store, which always succeeds, but where the disk is full and that may be waited out.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock};

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Env, ErrorKind, IteratorMode, Options};

use super::Observed;
use crate::codec::observed::{IDENTITY, encode_identity};
use crate::codec::value::Identity;
use crate::store::options::{bound_log, filter};
use crate::store::presence::{has_lost_its_beginning, holds_database, lacks_logs};
use crate::store::secondary::{Learnt, Secondary};
use crate::store::{StoreError, live_files, torn};

/// A file of this name in its directory says that the side store is to be made anew.
pub(super) const DAMAGED: &str = "DAMAGED";

impl Observed {
    /// The directory of the side store of the chain whose store lies in `store`.
    #[must_use]
    pub fn directory_of(store: &Path) -> PathBuf {
        store.join("observed")
    }

    /// Opens the side store of a chain beside its store in `store`; made where there is none. A reader
    /// (`read_only`) sees what was written up to now and keeps what it learns itself in memory at most.
    #[must_use]
    pub fn open(store: &Path, identity: &Identity, read_only: bool) -> Arc<Self> {
        Self::open_with_room(store, identity, read_only).unwrap_or_else(|error| {
            tell_unkept(&error);
            Arc::new(Self::in_memory())
        })
    }

    /// The same for who can wait: what cannot be written since the disk is full is an error, and nothing else is.
    ///
    /// # Errors
    ///
    /// [`StoreError::is_disk_full`].
    pub fn open_with_room(
        store: &Path,
        identity: &Identity,
        read_only: bool,
    ) -> Result<Arc<Self>, StoreError> {
        let directory = Self::directory_of(store);
        let wanted = encode_identity(identity.chain_id, &identity.genesis_hash);
        let opened = if read_only {
            or_tell(open_for_reading(&directory, &wanted))
        } else {
            match open_or_make(&directory, &wanted) {
                Err(error) if error.is_disk_full() => return Err(error),
                opened => opened.inspect_err(tell_unkept).ok(),
            }
        };
        Ok(Arc::new(match opened {
            Some(db) => Self::over(Some(Arc::new(db)), Some(directory)),
            None => Self::in_memory(),
        }))
    }

    /// Follows the side store of a chain beside its store in `store`, which another process writes; `None` where there
    /// is none yet, or it is just being made.
    ///
    /// # Errors
    ///
    /// [`StoreError::DamagedObserved`], also where it is of another chain.
    pub fn follow(store: &Path, identity: &Identity) -> Result<Option<Arc<Self>>, StoreError> {
        let directory = Self::directory_of(store);
        if !is_there(&directory)? {
            return Ok(None);
        }
        let wanted = encode_identity(identity.chain_id, &identity.genesis_hash);
        let opened = Secondary::of_one_table(&directory, &options());
        let Some(followed) = opened.map_err(|error| damaged(error, &directory))? else {
            return Ok(None);
        };
        if !is_of(
            followed.db(),
            &directory,
            &wanted,
            has_lost_its_beginning(&directory),
        )? {
            return Ok(None);
        }
        let mut observed = Self::over(Some(Arc::clone(followed.db())), None);
        observed.followed = Some(followed);
        Ok(Some(Arc::new(observed)))
    }

    /// The same for a process that begins; what keeps it from following is said.
    #[must_use]
    pub fn follow_or_tell(store: &Path, identity: &Identity) -> Option<Arc<Self>> {
        or_tell(Self::follow(store, identity))
    }

    /// Learns what the writer was told since; answers whether it can go on to do so. Otherwise, and after an error, another
    /// one is to be followed.
    pub fn catch_up(&self) -> Result<bool, StoreError> {
        let Some(followed) = &self.followed else {
            return Ok(true);
        };
        let learnt = followed.learn()?;
        if learnt == Learnt::Something {
            self.forget_verdicts();
            self.changed();
        }
        Ok(learnt != Learnt::Spent)
    }

    /// A side store that ends with the process.
    #[must_use]
    pub fn in_memory() -> Self {
        let opened = Env::mem_env().and_then(|env| {
            let mut options = options();
            options.set_env(&env);
            DB::open(&options, "/observed")
        });
        let db = opened
            .inspect_err(|error| tracing::warn!(%error, "no side store: nothing of tokens is remembered"))
            .ok();
        Self::over(db.map(Arc::new), None)
    }

    fn over(db: Option<Arc<DB>>, directory: Option<PathBuf>) -> Self {
        // The clock does: two runs must not give one number to two states.
        let began = crate::clock::unix_seconds(crate::clock::wall());
        Self {
            db,
            directory,
            followed: None,
            revision: AtomicU64::new((began * 1e6) as u64),
            verdicts: RwLock::default(),
            writing: Mutex::new(()),
        }
    }
}

pub(in crate::store) fn options() -> Options {
    let mut block = BlockBasedOptions::default();
    // Beside the store's cache: rows are small and few, one read is one row.
    block.set_block_cache(&Cache::new_lru_cache(32 << 20));
    block.set_cache_index_and_filter_blocks(true);
    filter(&mut block);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&block);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(8 << 20);
    options.set_max_total_wal_size(16 << 20);
    options.set_max_open_files(256);
    bound_log(&mut options, 2);
    options
}

/// What is wrong with the side store in `directory` in its own words: it is no part of the chain's store.
fn damaged(error: StoreError, directory: &Path) -> StoreError {
    match error {
        StoreError::Damaged { words, .. } => lost(directory, words),
        other => other,
    }
}

fn lost(directory: &Path, words: impl Into<String>) -> StoreError {
    StoreError::DamagedObserved {
        path: directory.to_path_buf(),
        words: words.into(),
    }
}

/// Whether there is a side store in `directory`.
///
/// # Errors
/// [`StoreError::DamagedObserved`] where what is there is no whole database.
pub(in crate::store) fn is_there(directory: &Path) -> Result<bool, StoreError> {
    if directory.join(DAMAGED).exists() {
        return Err(lost(directory, "it was found damaged"));
    }
    holds_database(directory, directory).map_err(|error| damaged(error, directory))
}

/// Whether an open one tells this chain; not where it is just being made. `is_begun`: it was there long before.
fn is_of(db: &DB, directory: &Path, wanted: &[u8], is_begun: bool) -> Result<bool, StoreError> {
    let found = db.get_pinned(IDENTITY);
    match found.map_err(|error| lost(directory, error.to_string()))? {
        Some(found) if found.as_ref() == wanted => Ok(true),
        None if is_begun => Err(lost(
            directory,
            "tables or logs are missing or do not read: none tells the chain",
        )),
        // A new one has no rows at all.
        None if db.iterator(IteratorMode::Start).next().is_none() => Ok(false),
        _ => Err(lost(directory, "it is of another chain or version")),
    }
}

fn open_for_reading(directory: &Path, wanted: &[u8]) -> Result<Option<DB>, StoreError> {
    if !is_there(directory)? {
        return Ok(None);
    }
    torn::refuse(directory, directory)?;
    let opened = DB::open_for_read_only(&options(), directory, false);
    let db = opened.map_err(|error| damaged(StoreError::of_opening(error, directory), directory))?;
    if !is_of(&db, directory, wanted, has_lost_its_beginning(directory))? {
        return Ok(None);
    }
    tell_without_log(lacks_logs(directory));
    Ok(Some(db))
}

/// What is there for a process that does without where it cannot be read, and says so.
fn or_tell<T>(opened: Result<Option<T>, StoreError>) -> Option<T> {
    opened.unwrap_or_else(|error| {
        tracing::warn!(%error, "the side store cannot be read");
        None
    })
}

fn tell_unkept(error: &StoreError) {
    tracing::warn!(%error, "the side store cannot be opened: what nodes tell of tokens is kept in memory");
}

fn tell_without_log(lacks_logs: bool) {
    if lacks_logs {
        tracing::warn!("the side store lacks its log: what stood in it is asked again");
    }
}

fn open_or_make(directory: &Path, wanted: &[u8]) -> Result<DB, StoreError> {
    let why = match try_open(directory, wanted) {
        Err(StoreError::DamagedObserved { words, .. }) => words,
        opened => return opened,
    };
    tracing::warn!(why, "the side store is made anew");
    std::fs::remove_dir_all(directory).map_err(StoreError::io("remove", directory))?;
    try_open(directory, wanted)
}

/// Opens what is there, and begins what is not. What is damaged is left as it is.
fn try_open(directory: &Path, wanted: &[u8]) -> Result<DB, StoreError> {
    if let Err(error @ StoreError::DamagedObserved { .. }) = is_there(directory) {
        return Err(error);
    }
    // A failure shows when the database is opened.
    let _ = std::fs::create_dir_all(directory);
    if let Err(error) = torn::mend(directory) {
        tracing::warn!(%error, "the side store's logs are not looked at");
    }
    // Whoever opens it for writing begins another log.
    let (is_begun, lacks_logs) = (has_lost_its_beginning(directory), lacks_logs(directory));
    let db = DB::open(&options(), directory).map_err(|error| match is_damage(&error) {
        true => lost(directory, error.to_string()),
        false => StoreError::of_opening(error, directory),
    })?;
    live_files::check(&db, directory, directory).map_err(|error| lost(directory, words(error)))?;
    if is_of(&db, directory, wanted, is_begun)? {
        tell_without_log(lacks_logs);
    } else {
        db.put(IDENTITY, wanted)
            .map_err(|error| StoreError::of_opening(error, directory))?;
    }
    Ok(db)
}

fn words(error: StoreError) -> String {
    match error {
        StoreError::Damaged { words, .. } => words,
        other => other.to_string(),
    }
}

/// Whether an error of opening speaks of its files and not of the disk, of rights or of another process.
fn is_damage(error: &rocksdb::Error) -> bool {
    match error.kind() {
        ErrorKind::Corruption | ErrorKind::InvalidArgument | ErrorKind::NotSupported => true,
        ErrorKind::IOError => error.to_string().contains("No such file"),
        _ => false,
    }
}
