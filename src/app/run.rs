//! `quarry run`, `quarry sync`, `quarry serve`.

use std::net::SocketAddr;
use std::sync::Arc;

use sd_notify::NotifyState;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::chains::{Chain, Registry, Stated};
use super::files;
use super::front::front;
use super::notify::{keep_alive, notify};
use super::process::{merged, on_signals, say};
use super::supervisor::{Supervisor, load_genesis, open_options, open_served};
use super::{AppError, progress, pulse};
use crate::api::Settings;
use crate::cli::SyncTo;
use crate::config::{BackfillMemory, ChainConfig, Config, ServiceConfig};
use crate::http::{Limits, Pool, PoolLimits};
use crate::machine;
use crate::model::BlockId;
use crate::node::NodeConfig;
use crate::shutdown::Shutdown;
use crate::store::{Heartbeat, Observed, OpenOptions, Store, StoreError, make_directory};

/// Binds before anything else is done, so that a taken address is said at once.
pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, AppError> {
    TcpListener::bind(address)
        .await
        .map_err(AppError::io(format!("listen on {address}")))
}

/// Serves chains on a bound address until the end is asked for.
pub(super) async fn serve_chains(
    listener: TcpListener,
    chains: Vec<Arc<Chain>>,
    service: &ServiceConfig,
    mut shutdown: Shutdown,
) -> Result<(), AppError> {
    let pool_limits = PoolLimits {
        unsent_bytes_max: service.unsent_bytes,
        ..PoolLimits::default()
    };
    let pool = Pool::new(pool_limits).map_err(AppError::io("start the threads of the service"))?;
    let limits = Limits {
        connections_max: files::of_connections(service.max_connections),
        header_read_timeout: service.client_timeout,
        write_timeout: service.client_timeout,
        rate: service.rate_limit,
        trust_proxy: service.trust_proxy,
        drain_timeout: std::time::Duration::from_secs(2),
        ..Limits::default()
    };
    let settings = Settings {
        rpc_passthrough: service.rpc_passthrough,
        kept_bytes: service.kept_bytes,
        ..Settings::default()
    };
    let front = Arc::new(front(Arc::new(Registry::new(chains)), pool, settings));
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "serving");
        notify(NotifyState::Ready, &format!("serving on {address}"));
    }
    let stopping = async move {
        shutdown.fired().await;
        notify(NotifyState::Stopping, "writing what is in memory");
    };
    let cut = tokio::select! {
        cut = crate::http::serve(listener, front, limits, stopping) => cut,
        never = keep_alive() => match never {},
    };
    if cut > 0 {
        tracing::warn!(connections = cut, "connections were cut off at the end");
    }
    Ok(())
}

/// Whether each chain's URL leads somewhere at all; nothing is sent.
pub(super) fn check_nodes(config: &Config) -> Result<(), AppError> {
    config.chains.iter().try_for_each(check_node)
}

pub(super) fn check_node(settings: &ChainConfig) -> Result<(), AppError> {
    let Some(rpc) = settings.rpc.as_deref() else {
        return Ok(());
    };
    let checked = NodeConfig::new(rpc).check();
    checked.map_err(|error| AppError::NotUnderstood(format!("{}: {error}", settings.name)))
}

/// Whether there is a node to sync from. What no restart mends is told before anything that one may.
fn check_options(config: &Config) -> Result<(), AppError> {
    if config.synced().next().is_none() {
        return Err(AppError::NotUnderstood(
            "no node is configured: pass --mainnet-rpc URL (or --testnet-rpc URL), or try `quarry demo`"
                .to_owned(),
        ));
    }
    check_nodes(config)
}

/// Says so where caches and backfill are given more memory than the process may have: the system ends it once they are full.
fn check_memory(config: &Config) {
    let chains = config.synced().count() as u64;
    let given = config.cache_size.0 as u64 + chains * config.backfill_memory.0 as u64;
    let allowed = machine::memory_allowed().filter(|&allowed| allowed < given);
    if let Some(allowed) = allowed {
        tracing::warn!(
            cache_size = %config.cache_size,
            backfill_memory = %config.backfill_memory,
            allowed_mib = allowed >> 20,
            "caches and backfill are given more memory than this process may have: set --cache-size and --backfill-memory lower"
        );
    }
}

/// Says what is not checked of the blocks of chains whose node is trusted: whoever reads the log later must not take them for verified.
fn tell_trust(config: &Config) {
    for chain in config.synced().filter(|chain| chain.trust_node) {
        tracing::warn!(
            chain = %chain.name,
            "the node is trusted (--trust-node): hashes, roots, blooms and gas of blocks are stored as it says them, unchecked"
        );
    }
}

fn supervisors(config: &Config, stop_at: Option<Option<u64>>) -> Result<Vec<Supervisor>, AppError> {
    files::check_writing()?;
    check_memory(config);
    tell_trust(config);
    let (mut all, mut refused) = (Vec::new(), Vec::new());
    let chains = config.synced().count();
    for settings in config.synced() {
        let genesis = load_genesis(config.genesis_of(settings.name))?;
        let chain = Chain::synced(settings.name, Stated::of(config, settings.name));
        let open = open_options(config, settings.name, chains);
        // What is stored is served at once, also while the node is down.
        match serve_stored(&chain, &open) {
            Ok(()) | Err(StoreError::Absent { .. }) => {}
            Err(error) if error.is_disk_full() => serve_meanwhile(&chain, &open, &error),
            // The other chain is none the worse for it.
            Err(error) => refused.push((settings.name, error)),
        }
        let memory = BackfillMemory::of(config.backfill_memory);
        all.push(Supervisor {
            chain,
            settings: settings.clone(),
            genesis,
            open,
            memory,
            stop_at,
        });
    }
    if refused.len() == all.len()
        && let Some((_, error)) = refused.pop()
    {
        return Err(error.into());
    }
    for (chain, error) in refused {
        // Its sync says the same once it has met its node.
        tracing::error!(%chain, %error, "the store cannot be opened");
    }
    // Not before all that is given was looked at; a store is made in it only once its node was met.
    let doing = format!("make the data directory `{}`", config.data_dir.display());
    match make_directory(&config.data_dir) {
        // Waited out where the store is made, which makes this as well.
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {}
        made => made.map_err(AppError::io(doing))?,
    }
    Ok(all)
}

/// Opens a chain's store and gives it to the chain, unless nothing was ever written to it.
fn serve_stored(chain: &Chain, open: &OpenOptions) -> Result<(), StoreError> {
    let store = Store::open(open)?;
    let observed = if store.is_blank()? {
        None
    } else {
        let opened = Observed::open_with_room(store.directory(), &store.identity(), open.read_only);
        Some(opened?)
    };
    let beat = Heartbeat::read(store.directory());
    let next = store.view().checkpoint().next_block;
    if let Some((first, last)) = beat.and_then(|beat| beat.lost(next)) {
        tracing::warn!(
            chain = %chain.name, first, last,
            "the store lacks the last blocks that were shown of it: they are fetched again"
        );
    }
    if let Some(observed) = observed {
        chain.remember(beat);
        chain.set_store(store, observed);
    }
    Ok(())
}

/// Serves what is stored of a chain whose disk has no room for opening its store for writing; its sync tries that again.
fn serve_meanwhile(chain: &Chain, open: &OpenOptions, full: &StoreError) {
    tracing::warn!(chain = %chain.name, error = %full, "the disk is full, waiting for room");
    if let Some(status) = &chain.status {
        status.wait_for_room(full);
    }
    let reading = OpenOptions {
        read_only: true,
        ..open.clone()
    };
    match serve_stored(chain, &reading) {
        Ok(()) | Err(StoreError::Absent { .. }) => {}
        Err(error) => {
            tracing::error!(chain = %chain.name, %error, "what is stored cannot be served meanwhile");
        }
    }
}

/// Syncs and serves until stopped. One chain's trouble does not stop the other, nor the service.
pub(super) async fn run(config: Config) -> Result<(), AppError> {
    check_options(&config)?;
    let (trigger, shutdown) = on_signals()?;
    let listener = bind(config.listen).await?;
    let supervisors = supervisors(&config, None)?;
    let chains: Vec<Arc<Chain>> = supervisors
        .iter()
        .map(|supervisor| Arc::clone(&supervisor.chain))
        .collect();
    let (mut watchers, mut syncs) = (JoinSet::new(), JoinSet::new());
    for supervisor in supervisors {
        let chain = Arc::clone(&supervisor.chain);
        watch(&mut watchers, &chain, &shutdown);
        let shutdown = shutdown.clone();
        let span = span_of(&chain, chains.len());
        syncs.spawn(told(chain, supervisor.run(shutdown)).instrument(span));
    }
    serve_chains(listener, chains, &config.service, shutdown).await?;
    trigger.fire();
    let outcome = outcome_of(syncs).await;
    while watchers.join_next().await.is_some() {}
    tracing::info!("stopped");
    outcome
}

/// Runs a chain's sync beside the service, and tells of its end where nobody asked for it. An error where not all that it had taken in
/// is on the disk, or where a part of it panicked: that is the service's.
async fn told<T>(chain: Arc<Chain>, sync: impl Future<Output = Result<T, AppError>>) -> Result<(), AppError> {
    let fence = Fence(chain);
    let chain = &fence.0;
    let ended = Box::pin(sync).await;
    if let Err(error) = &ended {
        tell_end(chain, error);
    }
    match ended {
        Err(AppError::Sync(error)) if error.is_of_writing() => Err(AppError::Unwritten(chain.name, error)),
        Err(error @ AppError::Died(_)) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn tell_end(chain: &Chain, error: &dyn std::fmt::Display) {
    let served = match chain.store() {
        Some(_) => "what is stored is still served",
        None => "nothing of this chain is served",
    };
    tracing::error!(chain = %chain.name, %error, "sync stopped; {served}");
    if let Some(status) = &chain.status {
        status.stop(error);
    }
}

/// Tells the end of a sync that panicked: nobody else is left to.
struct Fence(Arc<Chain>);

impl Drop for Fence {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tell_end(&self.0, &"it panicked, which is quarry's fault: start it again");
        }
    }
}

/// What came of the syncs beside a service: the first error.
async fn outcome_of(mut syncs: JoinSet<Result<(), AppError>>) -> Result<(), AppError> {
    let mut outcome = Ok(());
    while let Some(ended) = syncs.join_next().await {
        outcome = outcome.and(ended.unwrap_or_else(|error| Err(AppError::died(&error))));
    }
    outcome
}

/// Keeps and shows how far a chain is.
fn watch(watchers: &mut JoinSet<()>, chain: &Arc<Chain>, shutdown: &Shutdown) {
    watchers.spawn(pulse::keep(Arc::clone(chain), shutdown.clone()));
    watchers.spawn(progress::watch(Arc::clone(chain), shutdown.clone()));
}

/// Names the chain in the lines of its sync, where there are others; of whatever level they are.
fn span_of(chain: &Chain, several: usize) -> tracing::Span {
    if several > 1 {
        tracing::error_span!("chain", chain = %chain.name)
    } else {
        tracing::Span::none()
    }
}

/// Whether a sync up to block `last` has come to its end; not where nobody knows yet which one that is.
fn is_reached(last: Option<u64>, head: Option<BlockId>) -> bool {
    last.zip(head).is_some_and(|(last, head)| last <= head.number)
}

/// Why a sync up to block `last`, which may be its node's head, never stores that block in a store that begins with block `first`.
fn never_stored(first: Option<u64>, last: Option<u64>, is_head: bool) -> Option<String> {
    let (first, last) = first.zip(last).filter(|(first, last)| last < first)?;
    Some(if is_head {
        format!(
            "the node's head is block {last}, and the store begins with block {first} (--start-block): there is nothing to store before \
             the node is there"
        )
    } else {
        format!("block {last} is never stored: the store begins with block {first} (--start-block)")
    })
}

/// Syncs up to a block, then exits.
pub(super) async fn sync(config: Config, to: SyncTo) -> Result<(), AppError> {
    check_options(&config)?;
    let (trigger, shutdown) = on_signals()?;
    let stop_at = match to {
        SyncTo::Number(number) => Some(number),
        SyncTo::Latest => None,
    };
    let mut watchers = JoinSet::new();
    let mut syncs = JoinSet::new();
    let supervisors = supervisors(&config, Some(stop_at))?;
    let several = supervisors.len();
    for supervisor in supervisors {
        let chain = Arc::clone(&supervisor.chain);
        let span = span_of(&chain, several);
        watch(&mut watchers, &chain, &shutdown);
        let shutdown = shutdown.clone();
        let sync = async move { (Arc::clone(&chain), Box::pin(supervisor.run(shutdown)).await) };
        syncs.spawn(sync.instrument(span));
    }
    let mut outcome = Ok(());
    while let Some(ended) = syncs.join_next().await {
        let (chain, result) = ended.map_err(|error| AppError::died(&error))?;
        match result {
            Ok(target) => {
                let view = chain.store().map(|store| store.view());
                let head = view.as_ref().and_then(|view| view.head());
                let (first, last) = (view.map(|view| view.first_block()), stop_at.or(target));
                let reached = is_reached(last, head);
                let head = head.map_or_else(|| "nothing".to_owned(), |head| format!("block {}", head.number));
                say(&format!("{}: {head} indexed", chain.name));
                if let Some(store) = chain.store() {
                    merged(&store, &mut shutdown.clone()).await;
                }
                // Whoever waits for the block must not take another end of the sync for its coming.
                outcome = outcome.and(match never_stored(first, last, stop_at.is_none()) {
                    Some(why) => Err(AppError::Usage(format!("{}: {why}", chain.name))),
                    None if reached => Ok(()),
                    None if shutdown.is_fired() => Err(AppError::Interrupted(chain.name)),
                    None => Err(AppError::Usage(format!(
                        "{}: the sync ended before the block that was asked for was stored",
                        chain.name
                    ))),
                });
            }
            Err(error) => {
                tracing::error!(chain = %chain.name, %error, "sync failed");
                outcome = Err(error);
            }
        }
    }
    trigger.fire();
    while watchers.join_next().await.is_some() {}
    outcome
}

/// Serves what is stored.
pub(super) async fn serve(config: Config) -> Result<(), AppError> {
    let (_trigger, shutdown) = on_signals()?;
    let listener = bind(config.listen).await?;
    let mut chains = Vec::new();
    for (name, mut open) in open_served(&config) {
        open.read_only = true;
        match Store::open(&open) {
            Ok(store) => {
                let observed = Observed::open(store.directory(), &store.identity(), true);
                let stated = Stated::of(&config, name);
                chains.push(Chain::stored(name, store, observed, stated));
            }
            Err(StoreError::Absent { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if chains.is_empty() {
        return Err(StoreError::Absent {
            path: config.data_dir,
        }
        .into());
    }
    serve_chains(listener, chains, &config.service, shutdown).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::process;
    use crate::model::{B256, ChainName};

    async fn panics() -> Result<(), AppError> {
        panic!("what nobody thought of")
    }

    #[tokio::test]
    async fn a_sync_that_panics_is_told_of_and_no_clean_end() {
        let chains = ChainName::ALL.map(|name| Chain::synced(name, Stated::default()));
        let [one, other] = &chains;
        let mut syncs = JoinSet::new();
        syncs.spawn(told(Arc::clone(one), panics()));
        syncs.spawn(told(Arc::clone(other), std::future::ready(Ok(()))));
        let ended = outcome_of(syncs).await.unwrap_err().to_string();
        assert!(ended.contains("a worker died: "), "{ended}");
        let told = |chain: &Chain| {
            let status = chain.status.as_ref().unwrap();
            (status.stopped(), status.message())
        };
        let (stopped, message) = told(one);
        assert!(
            stopped && message.starts_with("sync stopped: it panicked"),
            "{message}"
        );
        // The other chain is none the worse for it.
        assert_eq!(told(other), (false, String::new()));
    }

    #[tokio::test]
    async fn a_part_of_a_sync_that_panics_is_told_of_and_no_clean_end() {
        let chain = Chain::synced(ChainName::Mainnet, Stated::default());
        let opens = process::blocking(|| -> Result<(), AppError> { panic!("what nobody thought of") });
        let ended = told(Arc::clone(&chain), opens).await.unwrap_err();
        assert!(
            matches!(&ended, AppError::Died(why) if why.starts_with("a worker died: ")),
            "{ended}"
        );
        assert!(chain.status.as_ref().unwrap().stopped());
    }

    #[tokio::test]
    async fn a_sync_that_stops_by_itself_is_told_of_and_a_clean_end() {
        let chain = Chain::synced(ChainName::Mainnet, Stated::default());
        let mut syncs = JoinSet::new();
        let ends = std::future::ready(Err::<(), _>(AppError::Usage("the reason".to_owned())));
        syncs.spawn(told(Arc::clone(&chain), ends));
        outcome_of(syncs).await.unwrap();
        let status = chain.status.as_ref().unwrap();
        assert_eq!(
            (status.stopped(), status.message()),
            (true, "sync stopped: the reason".to_owned())
        );
    }

    /// A signal that comes when all is stored, while files are merged, leaves nothing undone.
    #[test]
    fn a_sync_to_the_latest_block_is_done_at_the_head_that_it_began_with() {
        let head = |number| {
            let hash = B256::ZERO;
            Some(BlockId { number, hash })
        };
        assert!(is_reached(Some(7), head(7)) && is_reached(Some(7), head(8)));
        assert!(!is_reached(Some(7), head(6)) && !is_reached(Some(7), None));
        // The node has not told its head.
        assert!(!is_reached(None, head(7)));
    }
}
