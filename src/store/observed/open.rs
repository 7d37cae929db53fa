//! Opening the side store, which always succeeds, but where the disk is full and that may be waited out.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock};

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Env, ErrorKind, Options};

use super::Observed;
use crate::codec::observed::{IDENTITY, encode_identity};
use crate::codec::value::Identity;
use crate::store::options::{bound_log, filter};
use crate::store::secondary::{Learnt, Secondary};
use crate::store::{StoreError, live_files, torn};

/// A file of this name in its directory says that the side store is to be made anew.
pub(in crate::store) const DAMAGED: &str = "DAMAGED";

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
            open_for_reading(&directory, &wanted)
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
    /// is none yet, or none of this chain.
    #[must_use]
    pub fn follow(store: &Path, identity: &Identity) -> Option<Arc<Self>> {
        let directory = Self::directory_of(store);
        if !directory.join("CURRENT").exists() || directory.join(DAMAGED).exists() {
            return None;
        }
        let wanted = encode_identity(identity.chain_id, &identity.genesis_hash);
        let followed = Secondary::of_one_table(&directory, &options()).ok()??;
        if !is_of(followed.db(), &wanted).ok()? {
            return None;
        }
        let mut observed = Self::over(Some(Arc::clone(followed.db())), None);
        observed.followed = Some(followed);
        Some(Arc::new(observed))
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

fn is_of(db: &DB, wanted: &[u8]) -> Result<bool, rocksdb::Error> {
    let found = db.get_pinned(IDENTITY)?;
    Ok(found.is_some_and(|found| found.as_ref() == wanted))
}

fn open_for_reading(directory: &Path, wanted: &[u8]) -> Option<DB> {
    if !directory.join("CURRENT").exists() || directory.join(DAMAGED).exists() {
        return None;
    }
    if let Err(error) = torn::refuse(directory, directory) {
        tracing::warn!(%error, "the side store cannot be read");
        return None;
    }
    let opened = DB::open_for_read_only(&options(), directory, false);
    match opened.and_then(|db| Ok((is_of(&db, wanted)?, db))) {
        Ok((true, db)) => Some(db),
        Ok((false, _)) => None,
        Err(error) => {
            tracing::warn!(%error, "the side store cannot be read");
            None
        }
    }
}

fn tell_unkept(error: &StoreError) {
    tracing::warn!(%error, "the side store cannot be opened: what nodes tell of tokens is kept in memory");
}

fn open_or_make(directory: &Path, wanted: &[u8]) -> Result<DB, StoreError> {
    let not_opened = |error| StoreError::of_opening(error, directory);
    let marked = directory.join(DAMAGED).exists();
    let begin_anew = match (marked, try_open(directory)) {
        (false, Ok(db)) => match (is_of(&db, wanted), live_files::check(&db, directory, directory)) {
            (Ok(true), Ok(())) => return Ok(db),
            (Ok(_), Err(error)) => error.to_string(),
            // A new one has no rows at all.
            (Ok(false), Ok(())) if db.iterator(rocksdb::IteratorMode::Start).next().is_none() => {
                return begin(db, wanted).map_err(not_opened);
            }
            (Ok(false), Ok(())) => "it is of another chain or version".to_owned(),
            (Err(error), _) => error.to_string(),
        },
        (true, _) => "it was found damaged".to_owned(),
        (false, Err(error)) if is_damage(&error) => error.to_string(),
        (false, Err(error)) => return Err(not_opened(error)),
    };
    tracing::warn!(why = begin_anew, "the side store is made anew");
    std::fs::remove_dir_all(directory).map_err(StoreError::io("remove", directory))?;
    let made = try_open(directory).and_then(|db| begin(db, wanted));
    made.map_err(not_opened)
}

fn try_open(directory: &Path) -> Result<DB, rocksdb::Error> {
    // A failure shows when the database is opened.
    let _ = std::fs::create_dir_all(directory);
    if let Err(error) = torn::mend(directory) {
        tracing::warn!(%error, "the side store's logs are not looked at");
    }
    DB::open(&options(), directory)
}

fn begin(db: DB, wanted: &[u8]) -> Result<DB, rocksdb::Error> {
    db.put(IDENTITY, wanted)?;
    Ok(db)
}

/// Whether an error of opening speaks of its files and not of the disk, of rights or of another process.
fn is_damage(error: &rocksdb::Error) -> bool {
    match error.kind() {
        ErrorKind::Corruption | ErrorKind::InvalidArgument | ErrorKind::NotSupported => true,
        ErrorKind::IOError => error.to_string().contains("No such file"),
        _ => false,
    }
}
