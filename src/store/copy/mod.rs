//! A copy of a whole store, made beside its writer and brought to rest.
//!
//! The copy of the tables is opened once by RocksDB itself, which replays the logs and writes what they hold into tables,
//! as it does after a crash; then the arrays are copied up to the records that these tables speak of. They are there:
//! the writer forces arrays to disk before the row that counts them is written, and never changes a record.

pub(super) mod database;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocksdb::{Cache, ColumnFamilyDescriptor, DB, Options};

use super::flat::{ARRAYS, FlatArray};
use super::flats::sync_directory;
use super::open::{FINALITY, identity_of};
use super::presence::holds_database;
use super::schema::Table;
use super::view::family;
use super::{
    Imported, Observed, OpenOptions, Store, StoreError, View, imported, live_files, migrate, observed,
    options, torn,
};
use crate::codec::value::Finality;

/// How often a copy is begun anew when a file went away under it.
const TRIES_MAX: usize = 200;
const TRY_PAUSE: std::time::Duration = std::time::Duration::from_millis(25);

/// The directories of a store, each with its files in it and nothing deeper.
pub const PARTS: [&str; 4] = ["rocksdb", "flat", "imports", "observed"];

/// Whether a file of this name may lie in a part of a store and belongs to a copy of it.
#[must_use]
pub fn is_part_of_copy(part: &str, name: &str) -> bool {
    match part {
        "flat" => FlatArray::ALL
            .iter()
            .any(|array| name.strip_suffix(".flat") == Some(array.name())),
        "rocksdb" | "imports" | "observed" => database::kind_of(name).is_some(),
        _ => false,
    }
}

/// A store that was copied and is at rest.
#[derive(Debug)]
pub struct Copied {
    /// The copy as it opens.
    pub store: Arc<Store>,
    /// Whether there are imports beside it.
    pub imports: bool,
    /// Whether there is a side store beside it.
    pub observed: bool,
}

/// Copies the store in `from` into the new directory `to`, whoever writes it meanwhile, and answers what was copied.
/// Both on one file system: tables are linked.
///
/// # Errors
/// [`StoreError::Absent`] without a store, [`StoreError::Schema`] for another layout, [`StoreError::Stopped`] when
/// `stopped` says so.
pub fn copy_store(from: &Path, to: &Path, stopped: &dyn Fn() -> bool) -> Result<Copied, StoreError> {
    let source = from.join("rocksdb");
    if !holds_database(&source, from)? {
        return Err(StoreError::Absent {
            path: from.to_path_buf(),
        });
    }
    migrate::check_before_opening(from, &source)?;
    live_files::check_before_writing(&source, from, live_files::Layout::Ours)?;
    let target = to.join("rocksdb");
    let finality = copy_database(&source, &target, stopped, || settle(from, &target))?;
    let records: [u64; ARRAYS] =
        finality.flat_records.as_slice().try_into().map_err(|_| {
            StoreError::corrupt(Table::Meta.name(), FINALITY)(crate::codec::Corrupt("finality"))
        })?;
    let flats = to.join("flat");
    std::fs::create_dir_all(&flats).map_err(failed("make", &flats))?;
    for (array, records) in FlatArray::ALL.into_iter().zip(records) {
        if stopped() {
            return Err(StoreError::Stopped);
        }
        let name = format!("{}.flat", array.name());
        let (from, to) = (from.join("flat").join(&name), flats.join(&name));
        database::copy_first(&from, &to, records * array.width() as u64).map_err(failed("copy", &from))?;
    }
    let directory = Imported::directory_of(from);
    let is_of_chain = |db: &DB| imported::check_identity(db, &directory);
    let imports = imported::are_there(&directory)?;
    if imports {
        beside(from, to, "imports", &imported::options(), &is_of_chain, stopped)
            .map_err(|error| imported::damaged(error, &directory))?;
    }
    let copied = match observed::is_there(&Observed::directory_of(from)) {
        Ok(true) => beside(from, to, "observed", &observed::options(), &|_| Ok(()), stopped).map(|()| true),
        there => there,
    };
    let observed = match copied {
        Ok(copied) => copied,
        Err(StoreError::Stopped) => return Err(StoreError::Stopped),
        Err(error) => {
            tracing::warn!(%error, "the side store is left out of the copy; what it holds is asked of the node again");
            let left = Observed::directory_of(to);
            let _ = std::fs::remove_dir_all(left);
            false
        }
    };
    for part in PARTS {
        let part = to.join(part);
        if part.exists() {
            sync_directory(&part)?;
        }
    }
    let store = open_copy(to)?;
    Ok(Copied {
        store,
        imports,
        observed,
    })
}

/// Opens a copy for reading and holds its parts against each other.
///
/// # Errors
/// Those of [`Store::open`], and [`StoreError::Missing`] where parts do not belong together.
pub fn open_copy(directory: &Path) -> Result<Arc<Store>, StoreError> {
    let store = Store::open(&OpenOptions {
        read_only: true,
        cache_bytes: 8 << 20,
        ..OpenOptions::new(directory)
    })?;
    store.view().check_parts()?;
    Ok(store)
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |source| match source.kind() {
        io::ErrorKind::Interrupted => StoreError::Stopped,
        _ => StoreError::io(doing, path)(source),
    }
}

/// Copies a database until it opens: a file may go away while it is copied.
fn copy_database<T>(
    from: &Path,
    to: &Path,
    stopped: &dyn Fn() -> bool,
    open: impl Fn() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut tries = 0;
    loop {
        if stopped() {
            return Err(StoreError::Stopped);
        }
        let gone = match database::copy(from, to, stopped) {
            Ok(()) => {
                let ours = database::list(to).map_err(failed("read", to))?;
                match open() {
                    // A table that the manifest names was removed before it was linked.
                    Err(error) if error.to_string().contains("No such file") => {
                        database::keep_tables(to, &ours).map_err(failed("clear", to))?;
                        error
                    }
                    opened => return opened,
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => failed("copy", from)(error),
            Err(error) => return Err(failed("copy", from)(error)),
        };
        tries += 1;
        if tries == TRIES_MAX {
            return Err(gone);
        }
        tracing::debug!(error = %gone, "the writer moved on, copying again");
        std::thread::sleep(TRY_PAUSE);
    }
}

/// Has an opening look at every table that the manifest names: with a limit on open files RocksDB looks at sixteen of them, and
/// one that is missing shows when it is read.
fn every_table(options: &mut Options) {
    options.set_max_open_files(options::ALL_TABLES_OPEN);
}

/// Opens the copied tables as their writer would after a crash, so that what the logs hold becomes tables.
fn settle(from: &Path, database: &Path) -> Result<Finality, StoreError> {
    torn::mend(database)?;
    let cache = Cache::new_lru_cache(8 << 20);
    let descriptors =
        options::tables(&cache, 16 << 20, options::Filters::InParts).map(|(name, mut options)| {
            options.set_disable_auto_compactions(true);
            ColumnFamilyDescriptor::new(name, options)
        });
    let mut opening = options::database(32 << 20, options::OPEN_TABLES_MAX);
    every_table(&mut opening);
    let db = DB::open_cf_descriptors(&opening, database, descriptors)
        .map_err(|source| StoreError::of_opening(source, from))?;
    let identity = identity_of(&db, from)?.ok_or_else(|| live_files::without_identity(database, from))?;
    let value = db
        .get_cf(family(&db, Table::Meta)?, FINALITY)
        .map_err(StoreError::rocks_at(Table::Meta.name(), FINALITY))?;
    match value {
        Some(bytes) => Finality::decode(&bytes).map_err(StoreError::corrupt(Table::Meta.name(), FINALITY)),
        None => Ok(Finality {
            next_unfinal: identity.first_block,
            flat_records: vec![0; ARRAYS],
        }),
    }
}

/// Copies a database that lies beside the chain's, and has `check` look at the copy.
fn beside(
    from: &Path,
    to: &Path,
    part: &str,
    options: &Options,
    check: &dyn Fn(&DB) -> Result<(), StoreError>,
    stopped: &dyn Fn() -> bool,
) -> Result<(), StoreError> {
    let (from, to): (PathBuf, PathBuf) = (from.join(part), to.join(part));
    let mut options = options.clone();
    options.create_if_missing(false);
    options.set_disable_auto_compactions(true);
    every_table(&mut options);
    copy_database(&from, &to, stopped, || {
        torn::mend(&to)?;
        let opened = DB::open(&options, &to);
        check(&opened.map_err(|source| StoreError::of_opening(source, &from))?)
    })
}

impl View {
    /// Whether tables and arrays are of one moment: each array has as many records as the tables speak of.
    pub(super) fn check_parts(&self) -> Result<(), StoreError> {
        let checkpoint = self.checkpoint();
        let blocks = checkpoint.next_block - self.first_block();
        let traced = checkpoint.next_traced - self.first_block();
        for (array, wanted) in [
            (FlatArray::Blocks, blocks),
            (FlatArray::BlockEarnings, blocks),
            (FlatArray::BlockFrames, traced),
            (FlatArray::TransactionHashes, checkpoint.transactions),
            (FlatArray::TransactionStatuses, checkpoint.transactions),
            (FlatArray::TransactionSignatures, checkpoint.transactions),
            (FlatArray::LogEmitters, checkpoint.logs),
            (FlatArray::LogSignatures, checkpoint.logs),
            (FlatArray::Emitters, u64::from(checkpoint.emitters)),
            (FlatArray::Signatures, u64::from(checkpoint.signatures)),
            (FlatArray::Tokens, u64::from(checkpoint.tokens)),
            (FlatArray::MultiTransfers, checkpoint.multi_transfers),
        ] {
            if self.array_len(array) != wanted {
                return Err(Self::missing(array, "record", self.array_len(array).min(wanted)));
            }
        }
        match self.head() {
            Some(head) if self.block(head.number)?.hash != head.hash => {
                Err(Self::missing(FlatArray::Blocks, "hash of block", head.number))
            }
            _ => Ok(()),
        }
    }
}
