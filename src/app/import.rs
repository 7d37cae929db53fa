//! `quarry import chain`: a recorded chain through the same verification, derivation and commit as a
//! node's blocks. A recording has no reorgs: its blocks are final.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::AppError;
use super::files;
use super::process::{blocking, merged, on_signals, say};
use super::progress::LINE_EVERY;
use super::supervisor::{load_genesis, open_options, rules_of, stated_rewards};
use crate::cli::ImportChainArgs;
use crate::clock;
use crate::config::{BackfillMemory, Config};
use crate::machine;
use crate::model::{B256, Bundle, ChainName, StaticRewards};
use crate::node::recorded::RecordedChain;
use crate::shutdown::Shutdown;
use crate::store::{OpenOptions, Store, StoreError, View, Writer};
use crate::sync::genesis::{self, ChainGenesis};
use crate::sync::{FinalBlocks, Pipeline, SyncError, recorded};

/// Lines that are looked at for the chain id before giving up.
const LINES_FOR_ID: usize = 10_000;

/// What a recording says of itself.
#[derive(Debug)]
struct Preview {
    first_block: u64,
    first_parent: B256,
    first_hash: B256,
    /// Block 0 of a development node.
    states_no_accounts: bool,
    chain_id: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatedId {
    chain_id: Option<u64>,
}

/// How a recording is opened; twice, once for the preview.
pub(super) type Opener = Box<dyn Fn() -> Result<RecordedChain, AppError> + Send>;

fn preview(open: &Opener) -> Result<Preview, AppError> {
    let mut found = None;
    for line in open()?.take(LINES_FOR_ID) {
        let line = line?;
        let bundle: Bundle = line.parse()?;
        let preview = found.get_or_insert_with(|| Preview {
            first_block: bundle.block.number(),
            first_parent: bundle.block.header.parent_hash,
            first_hash: bundle.block.hash,
            states_no_accounts: genesis::states_no_accounts(&bundle.block.header),
            chain_id: None,
        });
        let stated = serde_json::from_str::<StatedId>(&line.text)
            .ok()
            .and_then(|stated| stated.chain_id);
        preview.chain_id = stated.or_else(|| {
            let stated = bundle.block.transactions.iter().map(|transaction| {
                // EIP-155: v = chain id * 2 + 35 or 36.
                let by_v = transaction
                    .v
                    .filter(|_| transaction.kind == 0)
                    .and_then(|v| v.checked_sub(35));
                transaction.chain_id.or(by_v.map(|v| v / 2))
            });
            stated.flatten().next()
        });
        if preview.chain_id.is_some() {
            break;
        }
    }
    found.ok_or_else(|| AppError::Usage("the recording holds no block".to_owned()))
}

/// What to import, and where to.
pub(super) struct ChainImport {
    pub(super) name: ChainName,
    pub(super) open: OpenOptions,
    pub(super) genesis: Option<ChainGenesis>,
    pub(super) chain_id: Option<u64>,
    pub(super) trust_node: bool,
    /// What the operator states of rewards.
    pub(super) static_rewards: Option<StaticRewards>,
    pub(super) batch_bytes_max: usize,
    pub(super) recording: Opener,
}

/// What came of an import.
pub(super) struct ChainImported {
    pub(super) store: Arc<Store>,
    /// How many blocks were added.
    added: u64,
    /// Whether a signal came before the end of the recording; one that comes while files are merged ends nothing that is owed.
    pub(super) interrupted: bool,
}

impl ChainImport {
    /// Imports.
    pub(super) async fn run(self, shutdown: &mut Shutdown) -> Result<ChainImported, AppError> {
        files::check_writing()?;
        let preview = preview(&self.recording)?;
        let genesis = self.genesis.as_ref();
        let of_file = genesis.map(|genesis| genesis.forks.chain_id);
        if let (Some(of_file), Some(stated)) = (of_file, preview.chain_id)
            && of_file != stated
        {
            return Err(AppError::Usage(format!(
                "the genesis file is of chain id {of_file}, the recording of {stated}: it is another chain's file"
            )));
        }
        let told = of_file.or(preview.chain_id);
        if let (Some(given), Some(stated)) = (self.chain_id, told)
            && given != stated
        {
            return Err(AppError::Usage(format!(
                "the recording is of chain id {stated}, --chain-id says {given}: leave --chain-id out"
            )));
        }
        // Where both are there they are the same.
        let chain_id = told.or(self.chain_id).ok_or_else(|| {
            AppError::Usage(
                "the recording does not tell its chain id: pass --genesis FILE or --chain-id N".to_owned(),
            )
        })?;
        let genesis_hash = match (genesis, preview.first_block) {
            (_, 0) => preview.first_hash,
            (Some(genesis), _) => genesis.block.hash,
            (None, 1) => preview.first_parent,
            (None, _) => B256::ZERO,
        };
        let differs = genesis.filter(|genesis| genesis.block.hash != genesis_hash);
        if let Some(genesis) = differs.filter(|_| !preview.states_no_accounts) {
            let of_file = genesis.block.hash;
            tracing::warn!(
                "the genesis file gives block 0 the hash {of_file}, the recording has {genesis_hash}: it seems to be another \
                 chain's file, and then its balances are wrong here"
            );
        }
        let adds_genesis = genesis.is_some() && preview.first_block == 1;
        let first_block = if adds_genesis { 0 } else { preview.first_block };
        let mut open = self.open.clone();
        // What a new store remembers, so that it is served by the rules that it is filled by.
        open.static_rewards = stated_rewards(self.static_rewards.as_ref(), genesis);
        // A store that holds some of the recording already is gone on with.
        let opened = blocking(move || {
            Store::open_to_fill(&open, chain_id, genesis_hash, first_block).map_err(of_another_chain)
        });
        let store = opened.await?;
        let next = store.view().checkpoint().next_block;
        let (first_given, way_out) = (
            first_block,
            "import the part between first, or use a new --data-dir",
        );
        if first_given > next {
            return Err(SyncError::Gap {
                found: first_given,
                wanted: next,
                way_out,
            }
            .into());
        }
        let mut writer = store
            .writer()
            .ok_or_else(|| AppError::Usage("the store is being written".to_owned()))?;
        let told = (genesis, self.static_rewards.as_ref());
        let rules = rules_of(self.name, &mut writer, told, self.trust_node)?;
        let pipeline = Pipeline {
            rules: rules.clone(),
            final_blocks: FinalBlocks::All,
            batch_bytes_max: self.batch_bytes_max,
        };
        let writer = match genesis.filter(|_| adds_genesis && next == 0) {
            Some(genesis) => {
                let block = Bundle {
                    block: genesis.block.clone(),
                    receipts: Vec::new(),
                    traces: Some(Vec::new()),
                    openings: None,
                };
                let source = futures_util::stream::iter([Ok(block)]);
                finish(Box::pin(pipeline.run(writer, source, shutdown)).await)?
            }
            None => writer,
        };
        let stored = {
            let store = Arc::clone(&store);
            // A snapshot that is kept for the whole import keeps what it sees from being written over.
            move |number: u64| stored_hash(&store.view(), number)
        };
        let from = writer.checkpoint().next_block;
        let threads = machine::cores();
        let ahead = self.batch_bytes_max;
        let source = recorded((self.recording)()?, rules, from, stored, threads, ahead);
        let import = Box::pin(pipeline.run(writer, source, shutdown));
        let mut writer = finish(tokio::select! {
            done = import => done,
            never = report(&store) => match never {},
        })?;
        let interrupted = shutdown.is_fired();
        // Flushing may take a moment: not on an async thread. Nothing was imported that is not on disk.
        blocking(move || Ok(writer.settle()?)).await?;
        merged(&store, shutdown).await;
        let added = store.view().checkpoint().next_block - next;
        Ok(ChainImported {
            store,
            added,
            interrupted,
        })
    }
}

/// Of a store of another chain says what a recording, which no URL leads to, can do about it.
fn of_another_chain(error: StoreError) -> AppError {
    match error {
        StoreError::OtherChain {
            path,
            what,
            found,
            wanted,
        } => AppError::Usage(format!(
            "the store in `{}` holds {what} {found}, the recording has {wanted}: pass another --data-dir",
            path.display()
        )),
        other => other.into(),
    }
}

/// Says how far an import is, every few seconds, for ever.
async fn report(store: &Store) -> Infallible {
    let mut before = store.view().checkpoint().next_block;
    loop {
        tokio::time::sleep(LINE_EVERY).await;
        let view = store.view();
        let checkpoint = view.checkpoint();
        let rate = (checkpoint.next_block - before) as f64 / LINE_EVERY.as_secs_f64();
        before = checkpoint.next_block;
        tracing::info!(
            blocks = checkpoint.next_block - view.first_block(),
            transactions = checkpoint.transactions,
            logs = checkpoint.logs,
            rate = format!("{rate:.0}/s"),
            "importing"
        );
    }
}

/// The hash of a block that comes before the next one; `None` of one before the first, with which a recording may begin.
fn stored_hash(view: &View, number: u64) -> Result<Option<B256>, StoreError> {
    if number < view.first_block() {
        return Ok(None);
    }
    view.block(number).map(|block| Some(block.hash))
}

fn finish((writer, result): (Option<Writer>, Result<(), SyncError>)) -> Result<Writer, AppError> {
    result?;
    writer.ok_or_else(|| AppError::Died("the writer is gone".to_owned()))
}

fn opener(path: &Path) -> Opener {
    let path = path.to_path_buf();
    Box::new(move || Ok(RecordedChain::open(&path)?))
}

/// `quarry import chain FILE`.
pub(super) async fn chain(args: &ImportChainArgs) -> Result<(), AppError> {
    let (_trigger, mut shutdown) = on_signals()?;
    let config = Config::of_chain(args.chain, &args.settings())?;
    let import = ChainImport {
        name: args.chain,
        open: open_options(&config, args.chain, 1),
        genesis: load_genesis(config.genesis_of(args.chain))?,
        chain_id: args.chain_id,
        trust_node: config.trusts_node(args.chain),
        static_rewards: config.static_rewards_of(args.chain).cloned(),
        batch_bytes_max: BackfillMemory::of(config.backfill_memory).batch,
        recording: opener(&args.file),
    };
    let began = clock::now();
    let ChainImported {
        store,
        added,
        interrupted,
    } = import.run(&mut shutdown).await?;
    let view = store.view();
    let checkpoint = view.checkpoint();
    if interrupted {
        return Err(AppError::Usage(format!(
            "interrupted after {added} blocks; import again to go on"
        )));
    }
    say(&format!(
        "{}: {added} blocks added in {:.1} s, {} blocks with {} transactions and {} logs stored",
        args.chain,
        (clock::now() - began).as_secs_f64(),
        checkpoint.next_block - view.first_block(),
        checkpoint.transactions,
        checkpoint.logs,
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shutdown::pair;

    fn demo_import(home: &Path) -> ChainImport {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
        ChainImport {
            name: ChainName::Mainnet,
            open: OpenOptions::new(home.join("store")),
            genesis: load_genesis(Some(&demo.join("genesis.json"))).unwrap(),
            chain_id: None,
            trust_node: false,
            static_rewards: None,
            batch_bytes_max: 1 << 20,
            recording: opener(&demo.join("chain.jsonl.zst")),
        }
    }

    /// Only a signal before the end of the recording leaves something undone.
    #[tokio::test]
    async fn an_import_that_is_whole_stays_so_whatever_signal_comes() {
        let home = tempfile::tempdir().unwrap();
        let (trigger, mut shutdown) = pair();
        let whole = demo_import(home.path()).run(&mut shutdown).await.unwrap();
        trigger.fire();
        assert_eq!((whole.added, whole.interrupted), (362, false));

        let home = tempfile::tempdir().unwrap();
        let ended = demo_import(home.path()).run(&mut shutdown).await.unwrap();
        assert!(ended.interrupted && ended.added < 362, "{}", ended.added);
    }

    /// A recording may begin before the store does; of what comes then a block that cannot be read is no block that is not there.
    #[test]
    fn only_blocks_before_the_first_one_are_not_stored() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open_to_fill(&OpenOptions::new(home.path()), 1, B256::ZERO, 100).unwrap();
        let view = store.view();
        for number in [0, 99] {
            assert_eq!(stored_hash(&view, number).unwrap(), None);
        }
        assert!(matches!(stored_hash(&view, 100), Err(StoreError::Missing { .. })));
    }
}
