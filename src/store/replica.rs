//! A replica: a process that serves a store which another process writes, and follows it.
//!
//! RocksDB's secondary instances know no snapshots: an instance that catches up changes under its readers. So there are several
//! of them. Readers have one that stands still; another one, which nobody reads any more, catches up; when it is
//! whole it takes the place of the first (decision 0032). Nothing is written where the store lies.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::caches::Caches;
use super::flat::Former;
use super::open::{Store, identity_of};
use super::presence::holds_database;
use super::secondary::{Caught, Secondary};
use super::stand::{Home, Mark};
use super::{OpenOptions, StoreError, live_files, migrate, options};
use crate::clock;
use crate::model::B256;

/// Instances at most. While all but the newest are read, by answers that are taken slowly, nothing newer is shown.
const INSTANCES_MAX: usize = 6;
/// Instances that one look takes: the first may be spent.
const TRIES: usize = 3;
const OPEN_PAUSE: Duration = Duration::from_millis(50);
/// Tables that were replaced and hold no news are let go after this long.
const RELEASE_AFTER: Duration = Duration::from_secs(5);
/// Memtables hold what was read from logs, and are never flushed here: this only says how large their filters are.
const MEMTABLE_BYTES: usize = 4 << 20;

/// Whether no view is left over an instance: a view holds the database.
fn is_free(instance: &Secondary) -> bool {
    let free = Arc::strong_count(instance.db()) == 1;
    // What its last reader did lies before what is done to it now.
    fence(Ordering::Acquire);
    free
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
    home: Home,
    /// Whether another store lies there than the one that was shown last.
    replaced: bool,
    caches: Caches,
    instances: Vec<Secondary>,
    shown: Option<Shown>,
    /// What of the arrays was compared by the store that was shown last.
    compared: Vec<Former>,
    chain: (u64, [u8; 32]),
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica")
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// What came of looking with one instance.
enum Found {
    Same,
    Newer(Arc<Store>),
    Moving,
    Spent,
}

impl Replica {
    /// Begins to follow the store in a directory.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open(options: &OpenOptions) -> Result<(Self, Arc<Store>), StoreError> {
        let database = options.directory.join("rocksdb");
        if !holds_database(&database, &options.directory)? {
            return Err(StoreError::Absent {
                path: options.directory.clone(),
            });
        }
        let mut replica = Self {
            options: OpenOptions {
                read_only: true,
                ..options.clone()
            },
            home: Home::of(&database)?,
            database,
            replaced: false,
            caches: Caches::new(options.cache_bytes),
            instances: Vec::new(),
            shown: None,
            compared: Vec::new(),
            chain: Default::default(),
        };
        let began = clock::now();
        loop {
            match replica.look() {
                Ok(Look::Newer(store) | Look::Replaced(store)) => {
                    let identity = store.identity();
                    replica.chain = (identity.chain_id, identity.genesis_hash);
                    return Ok((replica, store));
                }
                // A file went away while it was opened, or the writer is in the middle of something.
                Err(error) if is_passing(&error) && clock::now() - began < RELEASE_AFTER => {}
                Err(error) => return Err(error.met_opening(&options.directory)),
                Ok(_) if clock::now() - began < 2 * RELEASE_AFTER => {}
                Ok(_) => {
                    return Err(StoreError::Busy {
                        path: options.directory.clone(),
                    });
                }
            }
            std::thread::sleep(OPEN_PAUSE);
        }
    }

    fn instance(&self) -> Result<Secondary, StoreError> {
        migrate::check_before_opening(&self.options.directory, &self.database)?;
        let tables =
            options::tables(&self.caches.blocks, MEMTABLE_BYTES, options::Filters::InParts).collect();
        let database = options::database(MEMTABLE_BYTES, options::ALL_TABLES_OPEN);
        Secondary::open(&self.database, database, tables)
    }

    /// An instance that may catch up: one that nobody reads, or a new one. `None` where there are enough.
    fn free(&mut self) -> Result<Option<usize>, StoreError> {
        let shown = self.shown.as_ref().map(|shown| shown.place);
        let all = self.instances.iter().enumerate();
        let free = all.filter(|(place, instance)| Some(*place) != shown && is_free(instance));
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
        if !self.home.is_at(&self.database)? {
            // Views over the old one go on until they are dropped.
            self.instances.clear();
            self.shown = None;
            self.compared.clear();
            self.home = Home::of(&self.database)?;
            self.replaced = true;
            self.caches.leave_rows(self.options.cache_bytes);
        }
        // A writer that was started again has another manifest: who followed the old one is of no use any more.
        let shown = self.shown.as_ref().map(|shown| shown.place);
        for place in (0..self.instances.len()).rev() {
            if Some(place) != shown
                && let Some(instance) = self.instances.get(place)
                && is_free(instance)
                && instance.is_left()?
            {
                self.forget(place);
            }
        }
        for _ in 0..TRIES {
            let Some(place) = self.free()? else {
                return Ok(Look::Held);
            };
            let looked = self.look_with(place);
            if matches!(looked, Err(_) | Ok(Found::Spent)) {
                self.forget(place);
            }
            match looked? {
                Found::Spent => {}
                Found::Moving => break,
                Found::Same => return Ok(Look::Same),
                Found::Newer(store) if std::mem::take(&mut self.replaced) => {
                    return Ok(Look::Replaced(store));
                }
                Found::Newer(store) => return Ok(Look::Newer(store)),
            }
        }
        Ok(Look::Moving)
    }

    fn look_with(&mut self, place: usize) -> Result<Found, StoreError> {
        let Some(instance) = self.instances.get(place) else {
            return Ok(Found::Moving);
        };
        let mark = match instance.catch_up()? {
            Caught::Whole(mark) => mark,
            Caught::Moving => return Ok(Found::Moving),
            Caught::Spent => return Ok(Found::Spent),
        };
        let sequence = instance.db().latest_sequence_number();
        if let Some(shown) = &self.shown {
            let rests = shown.mark == mark || clock::now() - shown.since < RELEASE_AFTER;
            if shown.sequence == sequence && rests {
                return Ok(Found::Same);
            }
        }
        let identity = identity_of(instance.db(), &self.options.directory)?
            .ok_or_else(|| live_files::without_identity(&self.database, &self.options.directory))?;
        if self.chain != Default::default() && self.chain != (identity.chain_id, identity.genesis_hash) {
            let named = |(id, genesis): (u64, [u8; 32])| {
                format!("chain id {id} with genesis {}", B256::from(genesis))
            };
            return Err(StoreError::Exchanged {
                path: self.options.directory.clone(),
                found: named((identity.chain_id, identity.genesis_hash)),
                served: named(self.chain),
            });
        }
        let store = Store::assemble(
            Arc::clone(instance.db()),
            &self.options,
            self.caches.clone(),
            identity,
            options::Filters::InParts,
            Some(&self.compared),
        )?;
        store.view().check_parts()?;
        // Arrays were opened by their names.
        if !self.home.is_at(&self.database)? {
            return Ok(Found::Moving);
        }
        self.shown = Some(Shown {
            place,
            sequence,
            mark,
            since: clock::now(),
        });
        self.compared = store.view().compared();
        Ok(Found::Newer(store))
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
