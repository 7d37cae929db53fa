//! The store of imports: what the operator supplied beside the chain (prices, facts about tokens, sources of
//! contracts).
//!
//! It lies beside the chain's store in a database of its own. `quarry import` alone writes it and holds its lock while
//! it does; a service follows it as RocksDB's secondary instance, which reads the writer's files and never writes
//! them. So imports need no word with the service, and the service sees them within [`LOOK_EVERY`].

mod contracts;
mod prices;
mod tokens;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options, ReadOptions,
};

pub use contracts::ImportRow;
pub use writer::ImportWriter;

use super::options::{bound_log, filter};
use super::presence::{has_lost_its_beginning, holds_database, is_begun};
use super::secondary::{Learnt, Secondary};
use super::{StoreError, live_files, memory, torn};
use crate::clock;
use crate::codec::imported as codec;
use crate::codec::value::Identity;
use crate::metrics::visits;
use crate::model::ImportRecord;

/// A reader looks for new imports when it is asked for, at most this often.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What errors call it.
const NAME: &str = "imports";

/// What was imported for one chain, as a service follows it.
pub struct Imported {
    directory: PathBuf,
    /// The identity that its rows must be of.
    wanted: Vec<u8>,
    /// `None` while nothing was imported.
    db: RwLock<Option<Arc<Secondary>>>,
    looked: Mutex<Looked>,
    /// Changes with every import.
    revision: AtomicU64,
}

impl std::fmt::Debug for Imported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Imported")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// How looking went.
#[derive(Debug, Default)]
struct Looked {
    at: Option<Instant>,
    /// What failed last: it is said once.
    said: Option<String>,
}

pub(super) fn options() -> Options {
    let mut block = BlockBasedOptions::default();
    // Beside the store's cache: a page of source text is read once.
    block.set_block_cache(&Cache::new_lru_cache(16 << 20));
    block.set_cache_index_and_filter_blocks(true);
    filter(&mut block);
    let mut options = Options::default();
    options.set_block_based_table_factory(&block);
    // Mostly text.
    options.set_compression_type(DBCompressionType::Zstd);
    options.set_write_buffer_size(16 << 20);
    options.set_max_total_wal_size(32 << 20);
    bound_log(&mut options, 1);
    options
}

/// Whether there are imports in `directory`.
///
/// # Errors
/// [`StoreError::DamagedImports`] where what is there is no whole database.
pub(super) fn are_there(directory: &Path) -> Result<bool, StoreError> {
    holds_database(directory, directory).map_err(|error| damaged(error, directory))
}

/// What is wrong with the imports in `directory` in their own words: they are no part of the chain's store.
pub(super) fn damaged(error: StoreError, directory: &Path) -> StoreError {
    let path = directory.to_path_buf();
    match error {
        StoreError::Damaged { words, .. } => StoreError::DamagedImports { path, words },
        StoreError::NoDirectory { .. } => StoreError::DamagedImports {
            path,
            words: "it is no directory".to_owned(),
        },
        other => other,
    }
}

/// Whether imports tell which chain they are of.
pub(super) fn check_identity(db: &DB, directory: &Path) -> Result<(), StoreError> {
    match db.get_pinned(codec::IDENTITY).map_err(StoreError::rocks(NAME))? {
        None => without_identity(directory),
        Some(_) => Ok(()),
    }
}

/// The value of a row, if there is one.
fn decoded<T>(
    key: &[u8],
    value: Option<impl AsRef<[u8]>>,
    decode: impl FnOnce(&[u8]) -> Result<T, crate::codec::Corrupt>,
) -> Result<Option<T>, StoreError> {
    value
        .map(|value| decode(value.as_ref()))
        .transpose()
        .map_err(StoreError::corrupt(NAME, key))
}

/// What to say of imports that do not tell which chain they are of: their first row does, which is in a log before it is in a table.
fn without_identity(directory: &Path) -> Result<(), StoreError> {
    if has_lost_its_beginning(directory) {
        return Err(StoreError::DamagedImports {
            path: directory.to_path_buf(),
            words: "tables or logs are missing".to_owned(),
        });
    }
    // The writer is just making it.
    Ok(())
}

/// Reads tables as no instance does: of what it cannot read one shows what was there before, without a word, and a writer would begin anew
/// and delete the tables (see [`live_files`]).
///
/// # Errors
/// [`StoreError::DamagedImports`] with the reason.
fn check_tables(directory: &Path) -> Result<(), StoreError> {
    if !live_files::has_tables(directory) && !is_begun(directory) {
        return Ok(());
    }
    let opened = DB::open_for_read_only(&options(), directory, false);
    let db = opened.map_err(|source| damaged(StoreError::of_opening(source, directory), directory))?;
    check_identity(&db, directory)
}

impl Imported {
    /// Mends the logs of the imports beside the store in `store`, for whoever opens that for writing. What fails is said and no
    /// more: a store is served without its imports.
    pub(super) fn mend(store: &Path) {
        let directory = Self::directory_of(store);
        let mended = match are_there(&directory) {
            Ok(true) => torn::mend(&directory),
            // What is wrong is said by who follows them.
            Ok(false) | Err(_) => Ok(()),
        };
        if let Err(error) = mended {
            tracing::warn!(%error, "the logs of the imports are not looked at");
        }
    }

    /// The directory of the imports of the chain whose store lies in `store`.
    #[must_use]
    pub fn directory_of(store: &Path) -> PathBuf {
        store.join("imports")
    }

    /// Follows the imports of a chain beside its store in `store`, those that come later too.
    #[must_use]
    pub fn follow(store: &Path, identity: &Identity) -> Arc<Self> {
        let began = clock::unix_seconds(clock::wall());
        let imported = Arc::new(Self {
            directory: Self::directory_of(store),
            wanted: codec::encode_identity(identity.chain_id, &identity.genesis_hash),
            db: RwLock::new(None),
            looked: Mutex::default(),
            // The clock does: two runs must not give one number to two states.
            revision: AtomicU64::new((began * 1e6) as u64),
        });
        imported.look();
        imported
    }

    /// A number that changes whenever an answer made from here may change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Looks for what was imported since, where the last look was [`LOOK_EVERY`] ago. Reads a disk.
    pub fn look(&self) {
        // It may wait for a disk. Whoever must not, and whoever finds another looking, takes what is there.
        if memory::only() {
            return;
        }
        let Ok(mut looked) = self.looked.try_lock() else {
            return;
        };
        if looked.at.is_some_and(|at| clock::now() - at < LOOK_EVERY) {
            return;
        }
        looked.at = Some(clock::now());
        let said = self.catch_up().err().map(|error| error.to_string());
        if let Some(error) = said.as_ref().filter(|_| said != looked.said) {
            match self.followed() {
                Some(_) => {
                    tracing::warn!(%error, "imports cannot be followed; what was read before is still answered");
                }
                None => tracing::warn!(%error, "imports cannot be read; answers are given without them"),
            }
        }
        looked.said = said;
    }

    fn followed(&self) -> Option<Arc<Secondary>> {
        self.db.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn changed(&self) {
        self.revision.fetch_add(1, Ordering::AcqRel);
    }

    fn catch_up(&self) -> Result<(), StoreError> {
        let Some(followed) = self.followed() else {
            return self.open().map(drop);
        };
        match followed.learn() {
            Ok(Learnt::Nothing) => Ok(()),
            Ok(Learnt::Something) => {
                self.changed();
                Ok(())
            }
            // Each import is a writer of its own.
            Ok(Learnt::Spent) => self.open().map(drop),
            Err(error) => match self.open()? {
                true => Ok(()),
                false => Err(error),
            },
        }
    }

    /// Opens what lies there now; answers whether it is to be had.
    fn open(&self) -> Result<bool, StoreError> {
        if !are_there(&self.directory)? {
            return Ok(false);
        }
        let opened = Secondary::of_one_table(&self.directory, &options());
        let Some(followed) = opened.map_err(|error| damaged(error, &self.directory))? else {
            return Ok(false);
        };
        let identity = followed.db().get(codec::IDENTITY);
        let unread = |source| {
            let error = StoreError::rocks_at(NAME, &codec::IDENTITY)(source);
            damaged(error.met_opening(&self.directory), &self.directory)
        };
        match identity.map_err(unread)? {
            Some(found) if found == self.wanted => {
                *self.db.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(followed));
                self.changed();
                Ok(true)
            }
            None => check_tables(&self.directory).map(|()| false),
            Some(_) => Err(StoreError::OtherImports {
                path: self.directory.clone(),
            }),
        }
    }

    /// The row under a key, read by `decode`.
    pub(super) fn row<T>(
        &self,
        key: &[u8],
        decode: impl FnOnce(&[u8]) -> Result<T, crate::codec::Corrupt>,
    ) -> Result<Option<T>, StoreError> {
        let Some(followed) = self.followed().filter(|_| !memory::forbids()) else {
            return Ok(None);
        };
        visits::get();
        let value = followed
            .db()
            .get_pinned(key)
            .map_err(StoreError::rocks_at(NAME, key))?;
        decoded(key, value, decode)
    }

    /// Hands the rows from `from` to `to`, both included, in order or from the last one back, to `each` until it
    /// answers `false`.
    pub(super) fn rows(
        &self,
        from: &[u8],
        to: &[u8],
        backwards: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<bool, crate::codec::Corrupt>,
    ) -> Result<(), StoreError> {
        let Some(followed) = self.followed().filter(|_| !memory::forbids()) else {
            return Ok(());
        };
        let mut end = to.to_vec();
        end.push(0);
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(from.to_vec());
        options.set_iterate_upper_bound(end);
        let mode = if backwards {
            IteratorMode::From(to, Direction::Reverse)
        } else {
            IteratorMode::From(from, Direction::Forward)
        };
        for row in followed.db().iterator_opt(mode, options) {
            let (key, value) = row.map_err(StoreError::rocks(NAME))?;
            visits::row();
            if !each(&key, &value).map_err(StoreError::corrupt(NAME, &key))? {
                break;
            }
        }
        Ok(())
    }

    /// What was imported, by kind and source.
    pub fn records(&self) -> Result<Vec<ImportRecord>, StoreError> {
        let (from, to) = codec::record_range();
        let mut records = Vec::new();
        self.rows(&from, &to, false, |_, value| {
            records.push(codec::decode_record(value)?);
            Ok(true)
        })?;
        Ok(records)
    }
}
