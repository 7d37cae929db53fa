//! The store that is measured: opened for reading, served from, and opened anew for cold answers.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use crate::api::{Chains, Upstream};
use crate::app::AppError;
use crate::app::chains::{Chain, Registry, Stated};
use crate::app::demo::{self, TemporaryDirectory};
use crate::app::demo_node::DemoNode;
use crate::app::supervisor::open_options;
use crate::bench::measure;
use crate::cli::BenchArgs;
use crate::config::{Config, store_dir};
use crate::metrics::Page;
use crate::model::ChainName;
use crate::query::Reader;
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::{Observed, OpenOptions, Store, evict};

/// How often it is looked whether anybody reads the store, and how long is waited in between.
const RESTING_MAX: usize = 400;
const RESTING_PAUSE: Duration = Duration::from_millis(5);

/// How often the store is opened before that fails, and how long is waited in between.
const OPENINGS_MAX: usize = 5;
const OPENING_PAUSE: Duration = Duration::from_millis(200);

/// Where the chain lies and how it is opened.
enum Place {
    Stored(Box<Config>),
    /// In a directory that goes with it, with recorded answers in the place of a node.
    Demo {
        node: Arc<DemoNode>,
        _directory: TemporaryDirectory,
    },
}

/// A chain for reading that can be taken away and opened anew.
pub(super) struct Bed {
    name: ChainName,
    place: Place,
    open: OpenOptions,
    /// `None` while it is being opened anew, and where that failed until somebody uses it.
    current: RwLock<Option<Current>>,
    /// Held by whoever closes and opens it.
    opening: Mutex<()>,
}

struct Current {
    registry: Registry,
    store: Arc<Store>,
}

impl Bed {
    /// The chain that is asked for. Making the demo's takes some seconds.
    pub(super) async fn make(args: &BenchArgs, shutdown: &mut Shutdown) -> Result<Arc<Self>, AppError> {
        let config = Config::of_store(&args.store)?;
        let mut open = open_options(&config, args.chain, 1);
        let place = if args.demo.0 {
            let directory = TemporaryDirectory::new()?;
            let Some((store, observed, node)) = demo::fill(&directory.path, shutdown).await? else {
                let stopped = "stopped before anything was measured, while the demo's store was made";
                return Err(AppError::Usage(stopped.to_owned()));
            };
            // It is opened for reading like any other.
            drop((store, observed));
            open.directory = store_dir(&directory.path, ChainName::Mainnet);
            Place::Demo {
                node: Arc::new(node),
                _directory: directory,
            }
        } else {
            Place::Stored(Box::new(config))
        };
        open.read_only = true;
        let bed = Self {
            name: args.chain,
            place,
            open,
            current: RwLock::new(None),
            opening: Mutex::new(()),
        };
        bed.reopen()?;
        Ok(Arc::new(bed))
    }

    fn reopen(&self) -> Result<(), AppError> {
        let store = Store::open(&self.open)?;
        let observed = Observed::open(store.directory(), &store.identity(), true);
        let chain = match &self.place {
            Place::Stored(config) => Chain::stored(
                self.name,
                Arc::clone(&store),
                observed,
                Stated::of(config, self.name),
            ),
            Place::Demo { node, .. } => demo::served(Arc::clone(&store), observed, Arc::clone(node)),
        };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Current {
            registry: Registry::new(vec![chain]),
            store,
        });
        Ok(())
    }

    /// Opens it, again where that fails: a live writer may have been in the middle of something. Blocks.
    fn reopen_patiently(&self) -> Result<(), AppError> {
        for _ in 1..OPENINGS_MAX {
            match self.reopen() {
                Ok(()) => return Ok(()),
                Err(error) => tracing::debug!(%error, "the store was not opened; once more"),
            }
            std::thread::sleep(OPENING_PAUSE);
        }
        self.reopen()
    }

    /// Opens it where an earlier attempt left it closed.
    fn ensure_open(&self) -> Result<(), AppError> {
        if self.peek(|_| ()).is_some() {
            return Ok(());
        }
        // Who opens it anew right now is waited for.
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.peek(|_| ()).is_some() {
            return Ok(());
        }
        self.reopen()
    }

    /// Reads it where it is open.
    fn peek<T>(&self, read: impl FnOnce(&Current) -> T) -> Option<T> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().map(read)
    }

    /// Reads it, opened before where it is closed.
    fn with<T>(&self, read: impl FnOnce(&Current) -> T) -> Option<T> {
        if let Err(error) = self.ensure_open() {
            tracing::warn!(%error, "the store is closed and cannot be opened");
        }
        self.peek(read)
    }

    /// The store as it is open now.
    pub(super) fn store(&self) -> Result<Arc<Store>, AppError> {
        self.ensure_open()?;
        let open = self.peek(|current| Arc::clone(&current.store));
        open.ok_or_else(|| AppError::Usage("the store is being opened anew: ask again".to_owned()))
    }

    /// Waits until nobody reads the store any more or opens it anew, a moment at most: what was asked last may still be read
    /// for on a thread of the service, a signal leaves a cold round in its middle, and the process must not end under either.
    pub(super) async fn rest(self: &Arc<Self>) {
        for _ in 0..RESTING_MAX {
            let readers = self.peek(|current| Arc::strong_count(&current.store.view()));
            // Who is left of the service, and whoever is told to open the store anew, holds the bed; the store's own view and
            // the one that asks are two.
            if Arc::strong_count(self) == 1 && readers.is_none_or(|readers| readers <= 2) {
                return;
            }
            tokio::time::sleep(RESTING_PAUSE).await;
        }
    }

    /// The directory of the store.
    pub(super) const fn directory(&self) -> &PathBuf {
        &self.open.directory
    }

    /// The size of its cache, for blocks and rows that are kept, bytes.
    pub(super) const fn cache_bytes(&self) -> usize {
        self.open.cache_bytes
    }
}

impl measure::Bed for Bed {
    fn chill(&self) -> Result<(), String> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        // Closed first: pages that are mapped cannot leave the cache.
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
        let evicted = evict(self.directory());
        self.reopen_patiently().map_err(|error| error.to_string())?;
        evicted.map_err(|error| error.to_string())?;
        // What opening has read goes again.
        evict(self.directory()).map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// The chain that the service is given.
pub(super) struct Lent(pub(super) Arc<Bed>);

impl Chains for Lent {
    fn reader(&self, name: ChainName) -> Option<Reader> {
        let reader = self.0.with(|current| current.registry.reader(name)).flatten();
        reader.map(Reader::walking_anew)
    }

    fn status(&self, name: ChainName) -> Option<Arc<ChainStatus>> {
        self.0.with(|current| current.registry.status(name)).flatten()
    }

    fn upstream(&self, name: ChainName) -> Option<Arc<dyn Upstream>> {
        self.0.with(|current| current.registry.upstream(name)).flatten()
    }

    fn store_bytes(&self, name: ChainName) -> u64 {
        self.0
            .with(|current| current.registry.store_bytes(name))
            .unwrap_or(0)
    }

    fn measure(&self, name: ChainName, page: &mut Page) {
        self.0.with(|current| current.registry.measure(name, page));
    }
}

#[cfg(test)]
mod tests {
    use super::measure::Bed as _;
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::shutdown::pair;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_store_that_could_not_be_opened_is_opened_by_the_next_use() {
        let given = ["quarry", "bench", "--demo"];
        let Command::Bench(args) = <Cli as clap::Parser>::parse_from(given).command else {
            panic!("no bench")
        };
        let (_trigger, mut shutdown) = pair();
        let bed = Bed::make(&args, &mut shutdown).await.unwrap();
        let lent = Lent(Arc::clone(&bed));
        let name = ChainName::Mainnet;
        assert!(lent.reader(name).is_some());
        let (there, away) = (bed.directory().clone(), bed.directory().with_extension("away"));

        // Gone in the middle of a round: it fails, and so does what is asked then.
        std::fs::rename(&there, &away).unwrap();
        bed.chill().unwrap_err();
        assert!(lent.reader(name).is_none());
        assert!(bed.store().is_err());

        // A request, the next round and whoever wants the store: each opens it.
        std::fs::rename(&away, &there).unwrap();
        assert!(lent.reader(name).is_some());
        std::fs::rename(&there, &away).unwrap();
        bed.chill().unwrap_err();
        std::fs::rename(&away, &there).unwrap();
        bed.chill().unwrap();
        assert!(bed.store().is_ok());
        std::fs::rename(&there, &away).unwrap();
        bed.chill().unwrap_err();
        std::fs::rename(&away, &there).unwrap();
        assert!(bed.store().is_ok());
        is_waited_for(&bed).await;
    }

    /// A store that is away for a moment only.
    async fn is_waited_for(bed: &Arc<Bed>) {
        let (there, away) = (bed.directory().clone(), bed.directory().with_extension("away"));
        std::fs::rename(&there, &away).unwrap();
        let back = std::thread::spawn(move || {
            std::thread::sleep(OPENING_PAUSE + OPENING_PAUSE / 2);
            std::fs::rename(&away, &there).unwrap();
        });
        let chilling = Arc::clone(bed);
        // What is told is that there was nothing to forget, if anything; the store is open.
        let _ = tokio::task::spawn_blocking(move || chilling.chill())
            .await
            .unwrap();
        assert!(bed.peek(|_| ()).is_some());
        back.join().unwrap();
    }
}
