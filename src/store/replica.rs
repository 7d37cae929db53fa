//! A replica: a process that serves a store which another process writes, and follows it.
//!
//! RocksDB's secondary instances know no snapshots: an instance that catches up changes under its readers. So there are several
//! of them. Readers have one that stands still; another one, which nobody reads any more, catches up; when it is
//! whole it takes the place of the first (decision 0032). Nothing is written where the store lies.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use rocksdb::{Cache, ColumnFamilyDescriptor, DB};

use super::open::{Store, identity_of};
use super::schema::Table;
use super::{OpenOptions, StoreError, migrate, options};
use crate::clock;

/// Instances at most. While all but the newest are read, by answers that are taken slowly, nothing newer is shown.
const INSTANCES_MAX: usize = 6;
/// How often an instance catches up again when the writer changed its tables meanwhile.
const CATCH_UPS_MAX: usize = 40;
const CATCH_UP_PAUSE: Duration = Duration::from_millis(5);
/// Tables that were replaced and hold no news are let go after this long.
const RELEASE_AFTER: Duration = Duration::from_secs(5);

/// How the writer's manifest stands: as long as it is the same, no log and no table was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    manifest: String,
    bytes: u64,
}

impl Mark {
    fn of(database: &Path) -> Result<Self, StoreError> {
        let current = database.join("CURRENT");
        let manifest = std::fs::read_to_string(&current).map_err(StoreError::io("read", &current))?;
        let path = database.join(manifest.trim_end());
        let bytes = path.metadata().map_err(StoreError::io("read", &path))?.len();
        Ok(Self { manifest, bytes })
    }
}

/// A secondary instance and the directory of its diary.
struct Instance {
    db: Arc<DB>,
    scratch: PathBuf,
    /// The manifest that it follows. It is never led to another one: on the way RocksDB would keep tables that the first one
    /// dropped in words that it has not read yet, and rows that were deleted would come back.
    manifest: String,
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

impl Instance {
    /// Whether no view is left over it: a view holds the database.
    fn is_free(&self) -> bool {
        let free = Arc::strong_count(&self.db) == 1;
        // What its last reader did lies before what is done to it now.
        fence(Ordering::Acquire);
        free
    }

    /// Brings it to one moment of the writer; `None` where the writer would not stand still for it.
    fn catch_up(&self, database: &Path) -> Result<Option<Mark>, StoreError> {
        for _ in 0..CATCH_UPS_MAX {
            let before = Mark::of(database)?;
            if before.manifest != self.manifest {
                return Ok(None);
            }
            self.db
                .try_catch_up_with_primary()
                .map_err(StoreError::rocks("database"))?;
            // Manifest and logs are read one after the other: what moved in between from a log into a table, with the log
            // removed, would be in neither. Then the manifest has grown.
            if Mark::of(database)? == before {
                return Ok(Some(before));
            }
            std::thread::sleep(CATCH_UP_PAUSE);
        }
        Ok(None)
    }
}

/// What is shown at the moment.
struct Shown {
    /// Its place among the instances.
    place: usize,
    sequence: u64,
    mark: Mark,
    since: Instant,
}

/// What a look found.
#[derive(Debug)]
pub enum Look {
    /// What is shown is the newest.
    Same,
    /// The store as it is now.
    Newer(Arc<Store>),
    /// Another store lies there now, of the same chain: what lies beside it is another, too.
    Replaced(Arc<Store>),
    /// There is news, and every instance is still read.
    Held,
    /// The writer did not stand still; soon.
    Moving,
}

/// A follower of the store in a directory.
pub struct Replica {
    options: OpenOptions,
    database: PathBuf,
    /// Which directory it is, whatever its name.
    home: (u64, u64),
    cache: Cache,
    instances: Vec<Instance>,
    shown: Option<Shown>,
    chain: (u64, [u8; 32]),
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica")
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

fn home(database: &Path) -> Result<(u64, u64), StoreError> {
    let about = database.metadata().map_err(StoreError::io("read", database))?;
    Ok((about.dev(), about.ino()))
}

impl Replica {
    /// Begins to follow the store in a directory.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open(options: &OpenOptions) -> Result<(Self, Arc<Store>), StoreError> {
        let database = options.directory.join("rocksdb");
        if !database.join("CURRENT").exists() {
            return Err(StoreError::Absent {
                path: options.directory.clone(),
            });
        }
        let mut replica = Self {
            options: OpenOptions {
                read_only: true,
                ..options.clone()
            },
            home: home(&database)?,
            database,
            cache: Cache::new_hyper_clock_cache(options.cache_bytes, 0),
            instances: Vec::new(),
            shown: None,
            chain: Default::default(),
        };
        let began = clock::now();
        loop {
            match replica.look() {
                Ok(Look::Newer(store)) => {
                    let identity = store.identity();
                    replica.chain = (identity.chain_id, identity.genesis_hash);
                    return Ok((replica, store));
                }
                // A file went away while it was opened, or the writer is in the middle of something.
                Err(error) if is_passing(&error) && clock::now() - began < RELEASE_AFTER => {}
                Err(error) => return Err(error),
                Ok(_) if clock::now() - began < 2 * RELEASE_AFTER => {}
                Ok(_) => {
                    return Err(StoreError::Busy {
                        path: options.directory.clone(),
                    });
                }
            }
            std::thread::sleep(10 * CATCH_UP_PAUSE);
        }
    }

    fn instance(&self) -> Result<Instance, StoreError> {
        migrate::check_before_opening(&self.options.directory, &self.database)?;
        let scratch = std::env::temp_dir().join(format!(
            "quarry-replica-{}-{:08x}",
            std::process::id(),
            fastrand::u32(..)
        ));
        let per_table = self.options.memtable_bytes / 2;
        let descriptors = Table::ALL.iter().map(|&table| {
            ColumnFamilyDescriptor::new(table.name(), options::table(table, &self.cache, per_table))
        });
        let database = options::database(self.options.memtable_bytes, true);
        let manifest = Mark::of(&self.database)?.manifest;
        let opened = DB::open_cf_descriptors_as_secondary(
            &database,
            self.database.as_path(),
            scratch.as_path(),
            descriptors,
        );
        match opened {
            Ok(db) => Ok(Instance {
                db: Arc::new(db),
                scratch,
                manifest,
            }),
            Err(source) => {
                let _ = std::fs::remove_dir_all(scratch);
                Err(StoreError::rocks("database")(source))
            }
        }
    }

    /// An instance that may catch up: one that nobody reads, or a new one. `None` where there are enough.
    fn free(&mut self) -> Result<Option<usize>, StoreError> {
        let shown = self.shown.as_ref().map(|shown| shown.place);
        let all = self.instances.iter().enumerate();
        let free = all.filter(|(place, instance)| Some(*place) != shown && instance.is_free());
        let mut free = free.map(|(place, _)| place).collect::<Vec<_>>().into_iter();
        if let Some(place) = free.next() {
            // More are only needed while slow answers hold the others: they would keep tables that were removed.
            for more in free.rev() {
                self.forget(more);
            }
            return Ok(Some(place));
        }
        if self.instances.len() >= INSTANCES_MAX {
            return Ok(None);
        }
        let made = self.instance()?;
        self.instances.push(made);
        Ok(Some(self.instances.len() - 1))
    }

    /// Forgets an instance that failed; views over it go on.
    fn forget(&mut self, place: usize) {
        self.instances.remove(place);
        if let Some(shown) = &mut self.shown
            && shown.place > place
        {
            shown.place -= 1;
        }
    }

    /// Looks whether there is news, and answers the store as it is then.
    pub fn look(&mut self) -> Result<Look, StoreError> {
        let home = home(&self.database)?;
        let replaced = home != self.home;
        if replaced {
            // Views over the old one go on until they are dropped.
            self.instances.clear();
            self.shown = None;
            self.home = home;
        }
        // A writer that was started again has another manifest: who followed the old one is of no use any more.
        let manifest = Mark::of(&self.database)?.manifest;
        let shown = self.shown.as_ref().map(|shown| shown.place);
        for place in (0..self.instances.len()).rev() {
            let old = |instance: &Instance| instance.manifest != manifest && instance.is_free();
            if Some(place) != shown && self.instances.get(place).is_some_and(old) {
                self.forget(place);
            }
        }
        let Some(place) = self.free()? else {
            return Ok(Look::Held);
        };
        let looked = self.look_with(place);
        if looked.is_err() {
            self.forget(place);
        }
        Ok(match looked? {
            Some(store) if replaced => Look::Replaced(store),
            Some(store) => Look::Newer(store),
            None if self.shown.is_none() => Look::Moving,
            None => Look::Same,
        })
    }

    fn look_with(&mut self, place: usize) -> Result<Option<Arc<Store>>, StoreError> {
        let Some(instance) = self.instances.get(place) else {
            return Ok(None);
        };
        let Some(mark) = instance.catch_up(&self.database)? else {
            return Ok(None);
        };
        let sequence = instance.db.latest_sequence_number();
        if let Some(shown) = &self.shown {
            let rests = shown.mark == mark || clock::now() - shown.since < RELEASE_AFTER;
            if shown.sequence == sequence && rests {
                return Ok(None);
            }
        }
        let identity =
            identity_of(&instance.db, &self.options.directory)?.ok_or_else(|| StoreError::Absent {
                path: self.options.directory.clone(),
            })?;
        if self.chain != Default::default() && self.chain != (identity.chain_id, identity.genesis_hash) {
            return Err(StoreError::OtherChain {
                path: self.options.directory.clone(),
                what: "chain id",
                found: identity.chain_id.to_string(),
                wanted: self.chain.0.to_string(),
            });
        }
        let store = Store::assemble(
            Arc::clone(&instance.db),
            &self.options,
            self.cache.clone(),
            identity,
            true,
        )?;
        store.view().check_parts()?;
        self.shown = Some(Shown {
            place,
            sequence,
            mark,
            since: clock::now(),
        });
        Ok(Some(store))
    }

    /// Instances that are open.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.instances.len()
    }
}

/// Whether an error is of a moment: a file that the writer removed while it was opened.
fn is_passing(error: &StoreError) -> bool {
    error.to_string().contains("No such file")
}
