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
use super::supervisor::{Supervisor, load_genesis, open_options};
use super::{AppError, progress};
use crate::api::Settings;
use crate::cli::SyncTo;
use crate::config::{BackfillMemory, Config, ServiceConfig};
use crate::http::{Limits, Pool, PoolLimits};
use crate::machine;
use crate::model::ChainName;
use crate::node::NodeConfig;
use crate::shutdown::Shutdown;
use crate::store::{Heartbeat, Observed, Store, StoreError};

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

fn nothing_configured() -> AppError {
    AppError::Usage(
        "no node is configured: pass --mainnet-rpc URL (or --testnet-rpc URL), or try `quarry demo`"
            .to_owned(),
    )
}

/// Whether each chain's URL leads somewhere at all; nothing is sent.
pub(super) fn check_nodes(config: &Config) -> Result<(), AppError> {
    for settings in &config.chains {
        if let Some(rpc) = settings.rpc.as_deref() {
            let checked = NodeConfig::new(rpc).check();
            checked.map_err(|error| AppError::Usage(format!("{}: {error}", settings.name)))?;
        }
    }
    Ok(())
}

/// Says so where caches and backfill are given more memory than the process may have: the system ends it once they are full.
fn check_memory(config: &Config) {
    let chains = config.chains.len() as u64;
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

fn supervisors(config: &Config, stop_at: Option<Option<u64>>) -> Result<Vec<Supervisor>, AppError> {
    files::check_writing()?;
    if config.chains.is_empty() {
        return Err(nothing_configured());
    }
    check_nodes(config)?;
    check_memory(config);
    let (mut all, mut refused) = (Vec::new(), Vec::new());
    for settings in &config.chains {
        let genesis = load_genesis(config.genesis_of(settings.name))?;
        let chain = Chain::synced(settings.name, Stated::of(config, settings.name));
        let open = open_options(config, settings.name, config.chains.len());
        // What is stored is served at once, also while the node is down.
        match Store::open(&open).and_then(|store| Ok((store.is_blank()?, store))) {
            Ok((false, store)) => {
                let observed = Observed::open(store.directory(), store.identity(), false);
                chain.remember(Heartbeat::read(store.directory()));
                chain.set_store(store, observed);
            }
            Ok(_) | Err(StoreError::Absent { .. }) => {}
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
    std::fs::create_dir_all(&config.data_dir).map_err(AppError::io(doing))?;
    Ok(all)
}

/// Syncs and serves until stopped. One chain's trouble does not stop the other, nor the service.
pub(super) async fn run(config: Config) -> Result<(), AppError> {
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
        watchers.spawn(progress::watch(Arc::clone(&chain), shutdown.clone()));
        let shutdown = shutdown.clone();
        let span = span_of(&chain, chains.len());
        let sync = async move {
            let ended = Box::pin(supervisor.run(shutdown)).await;
            if let Err(error) = &ended {
                tracing::error!(chain = %chain.name, %error, "sync stopped; what is stored is still served");
                if let Some(status) = &chain.status {
                    status.stop(error);
                }
            }
            (chain.name, ended)
        };
        syncs.spawn(sync.instrument(span));
    }
    serve_chains(listener, chains, &config.service, shutdown).await?;
    trigger.fire();
    let mut outcome = Ok(());
    while let Some(ended) = syncs.join_next().await {
        if let Ok((name, Err(AppError::Sync(error)))) = ended
            && error.is_of_writing()
        {
            outcome = Err(AppError::Unwritten(name, error));
        }
    }
    while watchers.join_next().await.is_some() {}
    tracing::info!("stopped");
    outcome
}

/// Names the chain in the lines of its sync, where there are others; of whatever level they are.
fn span_of(chain: &Chain, several: usize) -> tracing::Span {
    if several > 1 {
        tracing::error_span!("chain", chain = %chain.name)
    } else {
        tracing::Span::none()
    }
}

/// Syncs up to a block, then exits.
pub(super) async fn sync(config: Config, to: SyncTo) -> Result<(), AppError> {
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
        watchers.spawn(progress::watch(Arc::clone(&chain), shutdown.clone()));
        let shutdown = shutdown.clone();
        let sync = async move { (Arc::clone(&chain), Box::pin(supervisor.run(shutdown)).await) };
        syncs.spawn(sync.instrument(span));
    }
    let mut outcome = Ok(());
    while let Some(ended) = syncs.join_next().await {
        let (chain, result) = ended.map_err(|error| AppError::Usage(format!("a worker died: {error}")))?;
        match result {
            Ok(()) => {
                let head = chain.store().and_then(|store| store.view().head());
                let reached = stop_at.zip(head).is_some_and(|(stop, head)| stop <= head.number);
                let head = head.map_or_else(|| "nothing".to_owned(), |head| format!("block {}", head.number));
                say(&format!("{}: {head} indexed", chain.name));
                if let Some(store) = chain.store() {
                    merged(&store, &mut shutdown.clone()).await;
                }
                // Whoever waits for the block must not take an interrupted sync for a whole one.
                if shutdown.is_fired() && !reached {
                    outcome = outcome.and(Err(AppError::Interrupted(chain.name)));
                }
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
    for name in ChainName::ALL {
        let mut open = open_options(&config, name, ChainName::ALL.len());
        open.read_only = true;
        match Store::open(&open) {
            Ok(store) => {
                let observed = Observed::open(store.directory(), store.identity(), true);
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
