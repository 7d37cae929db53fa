//! `quarry demo`: a recorded chain that ships in the binary.

use std::io::Cursor;
use std::sync::Arc;

use super::AppError;
use super::chains::Chain;
use super::demo_node::DemoNode;
use super::demo_sources::import_sources;
use super::import::ChainImport;
use super::process::{on_signals, say};
use super::run::{bind, serve_chains};
use crate::cli::{DemoArgs, NodeArgs, StoreArgs};
use crate::config::{Config, store_dir};
use crate::model::ChainName;
use crate::node::recorded::RecordedChain;
use crate::query::Reader;
use crate::store::{Observed, OpenOptions};
use crate::sync::genesis;

/// The recording; see docs/DEMO.md for what it holds and how it is made.
static RECORDING: &[u8] = include_bytes!("../../demo/chain.jsonl.zst");

/// Its genesis file.
static GENESIS: &str = include_str!("../../demo/genesis.json");

/// `quarry demo`.
pub(super) async fn demo(args: &DemoArgs) -> Result<(), AppError> {
    let config = Config::merge(&StoreArgs::default(), &NodeArgs::default(), &args.listen)?;
    let (_trigger, mut shutdown) = on_signals()?;
    let listener = bind(config.listen).await?;
    let temporary = match &args.data_dir {
        Some(_) => None,
        None => Some(TemporaryDirectory::new()?),
    };
    let data_dir = args
        .data_dir
        .clone()
        .or_else(|| temporary.as_ref().map(|dir| dir.0.clone()));
    let data_dir = data_dir.unwrap_or_default();
    let import = ChainImport {
        open: OpenOptions {
            cache_bytes: 64 << 20,
            memtable_bytes: 32 << 20,
            ..OpenOptions::new(store_dir(&data_dir, ChainName::Mainnet))
        },
        genesis: Some(genesis::parse(GENESIS)?),
        chain_id: None,
        trust_node: false,
        static_rewards: None,
        batch_bytes_max: 16 << 20,
        recording: Box::new(|| Ok(RecordedChain::from_reader(Cursor::new(RECORDING))?)),
    };
    let (store, _) = import.run(&mut shutdown).await?;
    import_sources(&store, &data_dir)?;
    let view = store.view();
    let observed = Observed::open(store.directory(), store.identity(), false);
    let node = DemoNode::load()?;
    node.tell(&observed, &Reader::new(Arc::clone(&view)))?;
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
        vec![Chain::recorded(
            ChainName::Mainnet,
            store,
            observed,
            Arc::new(node),
        )],
        shutdown,
    )
    .await
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

/// A directory of our own that goes when we go.
struct TemporaryDirectory(std::path::PathBuf);

impl TemporaryDirectory {
    fn new() -> Result<Self, AppError> {
        let path = std::env::temp_dir().join(format!("quarry-demo-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(AppError::io(format!("make `{}`", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // The store is closed by then; what cannot be removed is the system's to clean.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
