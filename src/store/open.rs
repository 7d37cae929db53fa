//! Opening a store, and refusing to.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rocksdb::{BottommostLevelCompaction, ColumnFamilyDescriptor, CompactOptions, DB, WriteOptions};

use super::beside::Stand;
use super::bulk::Bulk;
use super::caches::Caches;
use super::compare;
use super::directories::make_directory;
use super::flat::{ARRAYS, Former};
use super::flats::Flats;
use super::options::Filters;
use super::pen::State;
use super::presence::holds_database;
use super::schema::{SCHEMA_VERSION, Table};
use super::stages::Observer;
use super::view::{View, family};
use super::writer::Writer;
use super::{Imported, StoreError, filters, live_files, migrate, options, torn, unverified};
use crate::codec::keys;
use crate::codec::value::{Checkpoint, Finality, Identity, Tail};
use crate::model::{B256, StaticRewards};

pub(super) const IDENTITY: &[u8] = b"identity";
pub(super) const CHECKPOINT: &[u8] = b"checkpoint";
pub(super) const FINALITY: &[u8] = b"final";

/// How often a store that is being written is opened for reading while files of it go.
const OPENINGS_MAX: usize = 80;
/// And how long is waited before the next time.
const REOPENING_PAUSE: std::time::Duration = std::time::Duration::from_millis(25);

/// How to open a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The store's directory; made when absent (unless `read_only`).
    pub directory: PathBuf,
    /// Block cache, bytes (`--cache-size`); with 0 of them nothing is kept but what is being read.
    pub cache_bytes: usize,
    /// Bound on all memtables together, bytes (a part of `--backfill-memory`).
    pub memtable_bytes: usize,
    /// Open for reading only; another process may be writing.
    pub read_only: bool,
    /// Tables that may be open at once; a reader beside a writer opens all.
    pub open_tables_max: i32,
    /// Static rewards that a store which is made now remembers; else they follow from the genesis hash.
    pub static_rewards: Option<StaticRewards>,
    /// Is told where the writer stands; nobody in a service.
    pub observer: Option<Observer>,
}

impl OpenOptions {
    /// Defaults for a directory: 1 GiB of cache, 128 MiB of memtables.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            cache_bytes: 1 << 30,
            memtable_bytes: 128 << 20,
            read_only: false,
            open_tables_max: options::OPEN_TABLES_MAX,
            static_rewards: None,
            observer: None,
        }
    }
}

/// An open store: gives out views to readers and one writer.
pub struct Store {
    pub(super) db: Arc<DB>,
    pub(super) directory: PathBuf,
    pub(super) caches: Caches,
    pub(super) observer: Option<Observer>,
    /// The bound that RocksDB keeps memtables in use to, bytes.
    pub(super) memtable_bytes: usize,
    /// Whether the writer waits for memtables to be flushed.
    pub(super) waits: AtomicBool,
    /// Whether a bulk load ended and left files to be merged.
    pub(super) owes_merging: AtomicBool,
    read_only: bool,
    view: RwLock<Arc<View>>,
    writer: Mutex<Option<State>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// What one table may take of the memory of all memtables.
pub(super) const fn memtable_of_table(all: usize) -> usize {
    all / 2
}

impl Store {
    /// Opens the store in a directory that holds one; `Absent` otherwise.
    pub fn open(options: &OpenOptions) -> Result<Arc<Self>, StoreError> {
        Self::open_with(options, None)
    }

    /// Opens the store of a chain, making it when the directory holds none, or one that nothing was ever written to. A store
    /// of another chain, or one that begins at another block than `first_block` (where that is given), is refused.
    pub fn open_or_create(
        options: &OpenOptions,
        chain_id: u64,
        genesis_hash: B256,
        first_block: Option<u64>,
    ) -> Result<Arc<Self>, StoreError> {
        let store = Self::open_to_fill(options, chain_id, genesis_hash, first_block.unwrap_or(0))?;
        let found = store.identity().first_block;
        match first_block {
            Some(wanted) if wanted != found => Err(StoreError::OtherStart {
                path: options.directory.clone(),
                found,
                wanted,
            }),
            _ => Ok(store),
        }
    }

    /// The same, but one that is there may begin at any block: `first_block` is of one that is made.
    pub fn open_to_fill(
        options: &OpenOptions,
        chain_id: u64,
        genesis_hash: B256,
        first_block: u64,
    ) -> Result<Arc<Self>, StoreError> {
        let wanted = Identity {
            schema: SCHEMA_VERSION,
            chain_id,
            genesis_hash: genesis_hash.0,
            first_block,
            static_rewards: options
                .static_rewards
                .as_ref()
                .map(|rewards| rewards.steps().to_vec()),
        };
        let store = Self::open_with(options, Some(wanted))?;
        store.check_chain(chain_id, genesis_hash)?;
        Ok(store)
    }

    /// Whether nothing was ever written to it: whoever opens it to fill it says what chain it is.
    pub fn is_blank(&self) -> Result<bool, StoreError> {
        is_blank(&self.db)
    }

    /// Refuses when the store holds another chain.
    pub fn check_chain(&self, chain_id: u64, genesis_hash: B256) -> Result<(), StoreError> {
        let other = |what, found: String, wanted: String| StoreError::OtherChain {
            path: self.directory.clone(),
            what,
            found,
            wanted,
        };
        let identity = self.identity();
        if identity.chain_id != chain_id {
            return Err(other(
                "chain id",
                identity.chain_id.to_string(),
                chain_id.to_string(),
            ));
        }
        let found = B256::from(identity.genesis_hash);
        // A recorded chain that begins after its genesis does not tell it.
        if found != genesis_hash && !found.is_zero() && !genesis_hash.is_zero() {
            return Err(other(
                StoreError::OTHER_GENESIS,
                found.to_string(),
                genesis_hash.to_string(),
            ));
        }
        Ok(())
    }

    fn open_with(options: &OpenOptions, create: Option<Identity>) -> Result<Arc<Self>, StoreError> {
        Self::try_open(options, create).map_err(|error| error.met_opening(&options.directory))
    }

    fn try_open(options: &OpenOptions, create: Option<Identity>) -> Result<Arc<Self>, StoreError> {
        let path = options.directory.join("rocksdb");
        let is_there = holds_database(&path, &options.directory)?;
        if !is_there && (create.is_none() || options.read_only) {
            return Err(StoreError::Absent {
                path: options.directory.clone(),
            });
        }
        if is_there {
            if options.read_only {
                torn::refuse(&path, &options.directory)?;
            } else {
                torn::mend(&path)?;
                Imported::mend(&options.directory);
            }
            migrate::check_before_opening(&options.directory, &path)?;
            if !options.read_only {
                live_files::check_before_writing(&path, &options.directory, live_files::Layout::Ours)?;
            }
        }
        let flats = options.directory.join("flat");
        if !options.read_only && !flats.exists() {
            for directory in [&path, &flats] {
                make_directory(directory).map_err(StoreError::io("make", directory))?;
            }
        }
        let caches = Caches::new(options.cache_bytes);
        // The bound on all of them together is what flushes; a table alone seldom comes near it.
        let per_table = memtable_of_table(options.memtable_bytes);
        let database = options::database(
            options.memtable_bytes,
            if options.read_only {
                options::ALL_TABLES_OPEN
            } else {
                options.open_tables_max
            },
        );
        // Whoever only reads writes no file.
        let filters = if options.read_only {
            Filters::InParts
        } else {
            filters::of_database(&path, options.cache_bytes)
        };
        let open = || {
            let descriptors = options::tables(&caches.blocks, per_table, filters)
                .map(|(name, mut options)| {
                    options.set_write_buffer_size(per_table.min(options::FIRST_MEMTABLE_BYTES));
                    (name, options)
                })
                .chain(std::iter::once(options::unused()))
                .map(|(name, options)| ColumnFamilyDescriptor::new(name, options));
            if options.read_only {
                DB::open_cf_descriptors_read_only(&database, &path, descriptors, false)
            } else {
                DB::open_cf_descriptors(&database, &path, descriptors)
            }
        };
        let mut opened;
        let mut openings = 0;
        loop {
            let before = options.read_only.then(|| Stand::of(&path));
            opened = open();
            openings += 1;
            // Another process that writes may remove a file between our reading of its name and our opening it.
            let torn = before.is_some_and(|before| match &opened {
                Ok(_) => before.is_torn(&Stand::of(&path)),
                Err(error) => error.to_string().contains("No such file"),
            });
            if !torn {
                break;
            }
            if openings == OPENINGS_MAX {
                // A file that is never there is another matter, which RocksDB's error tells.
                if opened.is_err() {
                    break;
                }
                return Err(StoreError::Restless {
                    path: options.directory.clone(),
                });
            }
            drop(opened);
            std::thread::sleep(REOPENING_PAUSE);
        }
        let db = opened.map_err(|source| StoreError::of_opening(source, &options.directory))?;
        let found = identity_of(&db, &options.directory)?;
        // A store that nothing was written to is anybody's: it was made for a chain that never came.
        let found = match &create {
            Some(_) if !options.read_only && is_blank(&db)? => None,
            _ => found,
        };
        let identity = match (found, create) {
            (Some(identity), _) => identity,
            (None, Some(identity)) if !options.read_only => {
                put_identity(&db, &identity)?;
                identity
            }
            _ => return Err(live_files::without_identity(&path, &options.directory)),
        };
        Self::assemble(Arc::new(db), options, caches, identity, filters, None)
    }

    /// A store over an open database. `still`: of a replica, which stands still while it is read; what the one before it compared.
    pub(super) fn assemble(
        db: Arc<DB>,
        options: &OpenOptions,
        caches: Caches,
        identity: Identity,
        filters: Filters,
        still: Option<&[Former]>,
    ) -> Result<Arc<Self>, StoreError> {
        let meta = |key: &[u8]| {
            let value = db.get_cf(family(&db, Table::Meta)?, key);
            value.map_err(StoreError::rocks_at(Table::Meta.name(), key))
        };
        let corrupt = |key: &'static [u8]| StoreError::corrupt(Table::Meta.name(), key);
        let checkpoint = match meta(CHECKPOINT)? {
            Some(bytes) => Checkpoint::decode(&bytes).map_err(corrupt(CHECKPOINT))?,
            None => Checkpoint::begun(identity.first_block),
        };
        let finality = match meta(FINALITY)? {
            Some(bytes) => Finality::decode(&bytes).map_err(corrupt(FINALITY))?,
            None => Finality {
                next_unfinal: identity.first_block,
                flat_records: vec![0; ARRAYS],
            },
        };
        // A store of an older layout, which is being migrated, may have fewer arrays.
        let mut records = [0; ARRAYS];
        let counted = finality.flat_records.len();
        if counted > ARRAYS || (counted < ARRAYS && identity.schema == SCHEMA_VERSION) {
            return Err(corrupt(FINALITY)(crate::codec::Corrupt("finality")));
        }
        for (records, &counted) in records.iter_mut().zip(&finality.flat_records) {
            *records = counted;
        }
        let directory = options.directory.join("flat");
        let mut flats = Flats::open(&directory, &records, options.read_only)?;
        if !options.read_only {
            compare::take_up(&db, &directory, &mut flats)?;
        }
        flats.take_over(still.unwrap_or_default());
        for number in finality.next_unfinal..checkpoint.next_block {
            let tail = load_tail(&db, number)?;
            flats.push_tail(&tail.arrays);
        }
        let over = if still.is_some() { View::still } else { View::new };
        let view = over(
            &db,
            flats.view(),
            checkpoint,
            finality.clone(),
            Arc::new(identity),
        )
        .keeping(&caches);
        let state = State {
            flats,
            checkpoint,
            finality,
            unlogged: None,
            bulk: Bulk::default(),
            filters: filters::Watch::new(filters, options.cache_bytes),
            trust: unverified::Trust::of(meta(unverified::KEY)?.as_deref())?,
        };
        Ok(Arc::new(Self {
            db,
            directory: options.directory.clone(),
            caches,
            observer: options.observer.clone(),
            memtable_bytes: options.memtable_bytes,
            waits: AtomicBool::new(false),
            owes_merging: AtomicBool::new(false),
            read_only: options.read_only,
            view: RwLock::new(Arc::new(view)),
            writer: Mutex::new((!options.read_only).then_some(state)),
        }))
    }

    /// Which chain this is, as the last view says: nothing of it changes but the static rewards, which may be
    /// [stated](Writer::restate_rewards) later.
    #[must_use]
    pub fn identity(&self) -> Arc<Identity> {
        Arc::clone(self.view().identity())
    }

    /// The static rewards that were stated.
    #[must_use]
    pub fn static_rewards(&self) -> Option<StaticRewards> {
        self.identity()
            .static_rewards
            .clone()
            .map(StaticRewards::of_steps)
    }

    /// The store's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether it is open for reading only: it has no writer.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The store after the last commit.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn publish(&self, view: View) {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }

    /// The one writer; `None` when it was taken already or the store is open for reading only.
    #[must_use]
    pub fn writer(self: &Arc<Self>) -> Option<Writer> {
        let state = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        Some(Writer::new(Arc::clone(self), state))
    }

    pub(super) fn return_writer(&self, state: State) {
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    /// Bytes on disk: tables and arrays.
    #[must_use]
    pub fn bytes_on_disk(&self) -> u64 {
        let tables: u64 = Table::ALL
            .iter()
            .map(|&table| self.table_property(table, "rocksdb.total-sst-files-size"))
            .sum();
        let view = self.view();
        let arrays: u64 = super::FlatArray::ALL
            .iter()
            .map(|&array| view.array_len(array) * array.width() as u64)
            .sum();
        tables + arrays
    }

    /// A number that RocksDB keeps of a table (`rocksdb....`); 0 where it keeps none.
    #[must_use]
    pub fn table_property(&self, table: Table, property: &str) -> u64 {
        family(&self.db, table)
            .ok()
            .and_then(|family| self.db.property_int_value_cf(family, property).ok().flatten())
            .unwrap_or(0)
    }

    /// Bytes in the block cache.
    #[must_use]
    pub fn cache_bytes(&self) -> usize {
        self.caches.blocks.get_usage()
    }

    /// Rewrites every table into its final form (after a bulk load); the binding does not tell of one that fails, which stays as it was.
    pub fn compact(&self) -> Result<(), StoreError> {
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        for table in Table::ALL {
            let family = family(&self.db, table)?;
            self.db
                .compact_range_cf_opt(family, None::<&[u8]>, None::<&[u8]>, &options);
        }
        Ok(())
    }
}

/// Writes of which chain a database is, to the disk: whatever is written to tables later, there is never one without it.
pub(super) fn put_identity(db: &DB, identity: &Identity) -> Result<(), StoreError> {
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    db.put_cf_opt(family(db, Table::Meta)?, IDENTITY, identity.encode(), &synced)
        .map_err(StoreError::rocks_at(Table::Meta.name(), IDENTITY))
}

/// Which chain a database is of; `None` in one that was never begun.
///
/// # Errors
/// [`StoreError::Schema`] where it has another layout.
pub(super) fn identity_of(db: &DB, directory: &Path) -> Result<Option<Identity>, StoreError> {
    let value = db.get_cf(family(db, Table::Meta)?, IDENTITY);
    let Some(bytes) = value.map_err(StoreError::rocks_at(Table::Meta.name(), IDENTITY))? else {
        return Ok(None);
    };
    migrate::check(directory, migrate::version_of(&bytes))?;
    Identity::decode(&bytes)
        .map(Some)
        .map_err(StoreError::corrupt(Table::Meta.name(), IDENTITY))
}

fn is_blank(db: &DB) -> Result<bool, StoreError> {
    let checkpoint = db.get_pinned_cf(family(db, Table::Meta)?, CHECKPOINT);
    let checkpoint = checkpoint.map_err(StoreError::rocks_at(Table::Meta.name(), CHECKPOINT))?;
    Ok(checkpoint.is_none())
}

pub(super) fn load_tail(db: &DB, number: u64) -> Result<Tail, StoreError> {
    let key = keys::number(number);
    let value = db
        .get_cf(family(db, Table::Tail)?, key)
        .map_err(StoreError::rocks_at(Table::Tail.name(), &key))?
        .ok_or(StoreError::Missing {
            table: Table::Tail.name(),
            what: "block",
            number,
        })?;
    Tail::decode(&value).map_err(StoreError::corrupt(Table::Tail.name(), &key))
}
