//! `quarry demo`: a recorded chain that ships in the binary.

use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::address;

use super::AppError;
use super::chains::Chain;
use super::demo_node::DemoNode;
use super::demo_sources::import_sources;
use super::import::ChainImport;
use super::import_facts::into_store;
use super::process::{on_signals, say};
use super::run::{bind, serve_chains};
use crate::cli::DemoArgs;
use crate::config::{Config, store_dir};
use crate::import::{self, Target, Watcher};
use crate::model::{ChainName, ImportKind, StatedPrices};
use crate::node::recorded::RecordedChain;
use crate::query::Reader;
use crate::shutdown::Shutdown;
use crate::store::{Observed, OpenOptions, Store};
use crate::sync::genesis;

/// The recording; see docs/DEMO.md for what it holds and how it is made.
static RECORDING: &[u8] = include_bytes!("../../demo/chain.jsonl.zst");

/// Its genesis file.
static GENESIS: &str = include_str!("../../demo/genesis.json");

/// Prices of its coins and facts about its tokens, made up; imported as an operator's files are.
static PRICES: &[u8] = include_bytes!("../../demo/prices.csv");
static TOKENS: &[u8] = include_bytes!("../../demo/token-list.json");

/// `quarry demo`.
pub(super) async fn demo(args: &DemoArgs) -> Result<(), AppError> {
    let config = Config::run(&args.settings())?;
    let (_trigger, mut shutdown) = on_signals()?;
    let listener = bind(config.listen).await?;
    let temporary = match &args.data_dir {
        Some(_) => None,
        None => Some(TemporaryDirectory::new()?),
    };
    let data_dir = args
        .data_dir
        .clone()
        .or_else(|| temporary.as_ref().map(|dir| dir.path.clone()));
    let data_dir = data_dir.unwrap_or_default();
    let Some((store, observed, node)) = fill(&data_dir, &mut shutdown).await? else {
        return Ok(());
    };
    let view = store.view();
    let address = listener.local_addr().map_err(AppError::io("read the address"))?;
    let checkpoint = view.checkpoint();
    say(&format!(
        "quarry demo: {} blocks, {} transactions, {} logs on http://{address}\n\ntry:",
        checkpoint.next_block, checkpoint.transactions, checkpoint.logs
    ));
    for line in examples(&view)? {
        say(&format!(
            "  curl '{}'",
            line.replace("BASE", &format!("http://{address}"))
        ));
    }
    say("\nstop with ctrl-c");
    serve_chains(
        listener,
        vec![served(store, observed, Arc::new(node))],
        &config.service,
        shutdown,
    )
    .await
}

/// The demo's store below `data_dir`, filled, with what ships beside the recording; nothing where the end is asked for before it is.
pub(super) async fn fill(
    data_dir: &Path,
    shutdown: &mut Shutdown,
) -> Result<Option<(Arc<Store>, Arc<Observed>, DemoNode)>, AppError> {
    let import = ChainImport {
        name: ChainName::Mainnet,
        open: OpenOptions {
            cache_bytes: 64 << 20,
            memtable_bytes: 32 << 20,
            ..OpenOptions::new(store_dir(data_dir, ChainName::Mainnet))
        },
        genesis: Some(genesis::parse(GENESIS)?),
        chain_id: None,
        trust_node: false,
        static_rewards: None,
        batch_bytes_max: 16 << 20,
        recording: Box::new(|| Ok(RecordedChain::from_reader(Cursor::new(RECORDING))?)),
    };
    let imported = import.run(shutdown).await?;
    if imported.interrupted {
        return Ok(None);
    }
    let store = imported.store;
    import_sources(&store, data_dir)?;
    let observed = Observed::open(store.directory(), &store.identity(), false);
    let node = DemoNode::load()?;
    node.tell(&observed, &Reader::new(store.view()))?;
    import_facts(&store)?;
    Ok((!shutdown.is_fired()).then_some((store, observed, node)))
}

/// The demo's chain, as it is served.
pub(super) fn served(store: Arc<Store>, observed: Arc<Observed>, node: Arc<DemoNode>) -> Arc<Chain> {
    Chain::recorded(ChainName::Mainnet, store, observed, node, feeds())
}

/// The aggregators on its chain: the native coin has another one from day 60 on.
fn feeds() -> StatedPrices {
    StatedPrices {
        native: Some(vec![
            address!("9fe46736679d2d9a65f0992f2272de9f3c7fa6e0"),
            address!("40918ba7f132e0acba2ce4de4c4baf9bd2d7d849"),
        ]),
        stable: Some(vec![address!("dc64a140aa3e981100a9beca4e685f962f0cf6c9")]),
        symbol: None,
    }
}

/// Brings what ships beside the recording into the store of imports.
fn import_facts(store: &Store) -> Result<(), AppError> {
    let prices = |target: &Target, path: &Path, watcher: &dyn Watcher| {
        import::prices_of(target, path, &mut Cursor::new(PRICES), watcher)
    };
    into_store(
        store,
        ImportKind::Prices,
        Path::new("demo/prices.csv"),
        &Log,
        prices,
    )?;
    let tokens = |target: &Target, path: &Path, watcher: &dyn Watcher| {
        import::tokens_of(target, path, &mut Cursor::new(TOKENS), watcher)
    };
    into_store(
        store,
        ImportKind::Tokens,
        Path::new("demo/token-list.json"),
        &Log,
        tokens,
    )?;
    Ok(())
}

/// What ships and is refused is a bug of the demo: it is logged, and the demo goes on without it.
pub(super) struct Log;

impl Watcher for Log {
    fn progress(&self, _: u64, _: Option<u64>) {}

    fn rejected(&self, entry: &str, reason: &str) {
        tracing::error!(entry, reason, "what ships with the demo is refused");
    }

    fn left_out(&self, entry: &str, field: &str, reason: &str) {
        tracing::error!(entry, field, reason, "what ships with the demo is left out");
    }
}

/// Three requests that show something, from what the chain holds.
fn examples(view: &crate::store::View) -> Result<[String; 3], AppError> {
    let emitter = view.emitter_address(0)?;
    let topic = view.signature_topic(0)?;
    let last = view.transaction_hash(view.checkpoint().transactions.saturating_sub(1))?;
    Ok([
        format!(
            "BASE/api/logs/get-logs?address={}&offset=2",
            const_hex::encode_prefixed(emitter)
        ),
        format!("BASE/api/logs/get-logs?topic0={topic}&sort=desc&offset=2"),
        format!("BASE/api/proxy?action=eth_getTransactionReceipt&txhash={last}"),
    ])
}

/// A directory of our own that goes when we go; of killed processes, when the next one comes.
pub(super) struct TemporaryDirectory {
    pub(super) path: PathBuf,
    /// Held as long as the process lives; where there are no locks its number tells that it does.
    _lock: Option<File>,
}

/// What the name of such a directory begins with; the process and a number follow.
const TEMPORARY: &str = "quarry-demo-";

impl TemporaryDirectory {
    pub(super) fn new() -> Result<Self, AppError> {
        // A process may have several.
        static MADE: AtomicU64 = AtomicU64::new(0);
        let parent = std::env::temp_dir();
        sweep(&parent);
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = parent.join(format!("{TEMPORARY}{process}-{number}"));
        // What a process of this number left when it was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).map_err(AppError::io(format!("make `{}`", path.display())))?;
        let lock = File::open(&path).and_then(|lock| lock.lock().map(|()| lock));
        Ok(Self {
            path,
            _lock: lock.ok(),
        })
    }
}

/// Removes what killed processes left in `parent`: nobody holds its lock, and the process of its name is gone. What cannot be
/// removed is another user's.
fn sweep(parent: &Path) {
    let processes = Path::new("/proc");
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(TEMPORARY)?.split_once('-'))
            .filter(|(_, number)| number.parse::<u64>().is_ok())
            .and_then(|(process, _)| process.parse::<u32>().ok());
        let Some(process) = process else { continue };
        let is_gone = processes.join("self").exists() && !processes.join(process.to_string()).exists();
        if is_gone
            && let Ok(lock) = File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // The store is closed by then; what cannot be removed is the system's to clean.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shutdown::pair;

    #[tokio::test]
    async fn a_demo_that_is_stopped_while_it_fills_is_not_served() {
        let home = tempfile::tempdir().unwrap();
        let (trigger, mut shutdown) = pair();
        trigger.fire();
        assert!(fill(home.path(), &mut shutdown).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn nor_is_one_that_is_stopped_once_its_blocks_are_there() {
        let mut stopped = false;
        // On a busy machine the word may come when all is done.
        for _ in 0..5 {
            let home = tempfile::tempdir().unwrap();
            let (trigger, mut shutdown) = pair();
            let imports = home.path().join("mainnet/imports");
            let stopper = std::thread::spawn(move || {
                while !imports.exists() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                trigger.fire();
            });
            let filled = fill(home.path(), &mut shutdown).await.unwrap();
            stopper.join().unwrap();
            stopped |= filled.is_none();
            if stopped {
                break;
            }
        }
        assert!(stopped);
    }

    #[test]
    fn what_killed_demos_left_goes_and_what_the_living_have_stays() {
        let parent = tempfile::tempdir().unwrap();
        // No process has so high a number.
        let gone = [
            format!("{TEMPORARY}4294967295-0"),
            format!("{TEMPORARY}4294967295-7"),
        ];
        let kept = [
            format!("{TEMPORARY}{}-9", std::process::id()),
            format!("{TEMPORARY}4294967294-0"),
            format!("{TEMPORARY}4294967295"),
            format!("{TEMPORARY}4294967295-x"),
            "quarry-other-4294967295-0".to_owned(),
        ];
        for name in gone.iter().chain(&kept) {
            std::fs::create_dir_all(parent.path().join(name).join("mainnet")).unwrap();
        }
        // Its process is another machine's or container's, and lives.
        let held = File::open(parent.path().join(&kept[1])).unwrap();
        held.lock().unwrap();
        sweep(parent.path());
        for (names, there) in [(&gone[..], false), (&kept[..], true)] {
            for name in names {
                assert_eq!(parent.path().join(name).exists(), there, "{name}");
            }
        }
    }
}
