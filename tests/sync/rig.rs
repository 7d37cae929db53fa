//! An engine over a fake node and a store in a temporary directory.

use crate::support::chain::Chain;
use crate::support::fake_node::{FakeNode, IpcServer};
use crate::support::image;
use crate::support::index::{self, fresh_digest, until};
use crate::support::pace::at_most;
use crate::support::scratch;
use crate::watch::{Cut, Left, Watch};
use quarry::model::Bundle;
use quarry::node::{Capabilities, Node, NodeConfig};
use quarry::query::Reader;
use quarry::shutdown::{Trigger, pair};
use quarry::status::ChainStatus;
use quarry::store::{Imported, OpenOptions, Store};
use quarry::sync::{ChainRules, Engine, SyncError, SyncOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// The rules of a chain whose genesis file is given.
pub(crate) fn rules_with_genesis(chain: &Chain) -> ChainRules {
    let mut rules = index::rules(chain.bundles()[0].block.hash, 0);
    let world = chain.world(0).unwrap();
    let of = |(account, value): (&_, &_)| (*account, *value);
    rules.nonces.native.allocation = Some(world.balances.iter().map(of).collect());
    rules.nonces.genesis_nonces = world
        .nonces
        .iter()
        .map(|(&account, &nonce)| (account, nonce))
        .collect();
    rules
}

pub(crate) struct Rig {
    pub(crate) fake: FakeNode,
    pub(crate) first_block: u64,
    /// Whether the operator gives the genesis file.
    pub(crate) knows_genesis: bool,
    /// Whether blocks are taken at the word of the node.
    pub(crate) trusts_node: bool,
    pub(crate) options: SyncOptions,
    pub(crate) config: NodeConfig,
    /// Bound on the store's memtables, bytes.
    pub(crate) memtable_bytes: usize,
    home: tempfile::TempDir,
    /// The store's directory in it: another one after each cut.
    directory: PathBuf,
    cuts: u64,
    cut: Option<Cut>,
    ipc: Option<IpcServer>,
    running: Option<Running>,
}

struct Running {
    watch: Watch,
    imported: Arc<Imported>,
    store: Arc<Store>,
    status: Arc<ChainStatus>,
    trigger: Trigger,
    task: JoinHandle<Result<(), SyncError>>,
}

impl Rig {
    pub(crate) fn new(seed: u64) -> Self {
        let fake = FakeNode::start(seed);
        let home = scratch::directory();
        Self {
            config: NodeConfig {
                request_timeout: Duration::from_millis(700),
                light_timeout: Duration::from_millis(700),
                deadline: Duration::from_secs(2),
                attempts_max: 4,
                backoff_first: Duration::from_millis(2),
                backoff_max: Duration::from_millis(20),
                poll_interval: Duration::from_millis(10),
                ..NodeConfig::new(fake.url())
            },
            fake,
            first_block: 0,
            knows_genesis: false,
            trusts_node: false,
            options: SyncOptions {
                stop_at: None,
                finality_depth: 64,
                contradiction_wait: Duration::from_secs(1),
                batch_bytes_max: 200 << 10,
                window: 16,
            },
            memtable_bytes: 64 << 20,
            directory: home.path().join("0"),
            home,
            cuts: 0,
            cut: None,
            ipc: None,
            running: None,
        }
    }

    /// Speaks to the node over a Unix socket, and is told of heads.
    pub(crate) fn use_ipc(&mut self) {
        let path = self.home.path().join("node.ipc");
        self.ipc = Some(self.fake.serve_ipc(&path));
        self.config.url = path.to_str().unwrap().to_owned();
    }

    pub(crate) fn uses_ipc(&self) -> bool {
        self.ipc.is_some()
    }

    /// The directory of everything.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Connects, opens the store and lets an engine run.
    pub(crate) async fn start(&mut self) {
        self.start_after(|_| {}).await;
    }

    /// The same, with something done to the node after it was probed.
    pub(crate) async fn start_after(&mut self, before: impl FnOnce(&FakeNode)) {
        let (node, capabilities) = self.connect().await;
        let genesis = capabilities.genesis_hash;
        let began = Instant::now();
        let (store, watch) = loop {
            // A dropped engine's last work may still be ending.
            let to = self.home.path().join((self.cuts + 1).to_string());
            let watch = Watch::new(&self.directory, to, self.cut);
            let options = OpenOptions {
                memtable_bytes: self.memtable_bytes,
                observer: Some(watch.observer()),
                ..index::options(&self.directory)
            };
            match index::open_with(&options, genesis, self.first_block) {
                Ok(store) => break (store, watch),
                Err(error) if began.elapsed() > index::DEADLINE => panic!("cannot open: {error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        self.cut = None;
        watch.opened(store.view().checkpoint().next_block);
        let imported = Imported::follow(&self.directory, &store.identity());
        let writer = store.writer().expect("the one writer");
        let status = Arc::new(ChainStatus::default());
        let mut rules = match self.knows_genesis {
            true => rules_with_genesis(&self.fake.chain()),
            false => index::rules(genesis, self.first_block),
        };
        rules.verify = rules.verify.trusting_node(self.trusts_node);
        let engine = Engine::new(
            node,
            capabilities,
            writer,
            Arc::clone(&status),
            rules,
            self.options.clone(),
        );
        let (trigger, shutdown) = pair();
        before(&self.fake);
        let task = tokio::spawn(engine.run(shutdown));
        self.running = Some(Running {
            watch,
            imported,
            store,
            status,
            trigger,
            task,
        });
    }

    async fn connect(&self) -> (Node, Capabilities) {
        let began = Instant::now();
        let node = Node::connect(self.config.clone()).await.unwrap();
        loop {
            match node.probe().await {
                Ok(capabilities) => return (node, capabilities),
                Err(error) => assert!(began.elapsed() < index::DEADLINE, "cannot probe: {error}"),
            }
        }
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("started")
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.running().store
    }

    pub(crate) fn status(&self) -> &ChainStatus {
        &self.running().status
    }

    pub(crate) fn reader(&self) -> Reader {
        let imported = Arc::clone(&self.running().imported);
        imported.look();
        Reader::new(self.store().view()).with_imported(imported)
    }

    /// Cuts the writer off at a stage; a store that is opened later too, if this one does not come to it.
    pub(crate) fn arm(&mut self, cut: Cut) {
        match &self.running {
            Some(running) => running.watch.arm(cut),
            None => self.cut = Some(cut),
        }
    }

    /// Waits for no cut any more; answers what one left that came before.
    pub(crate) fn disarm(&mut self) -> Option<Left> {
        self.cut = None;
        self.running().watch.disarm();
        self.left()
    }

    /// What a cut left, once it came.
    pub(crate) fn left(&self) -> Option<Left> {
        self.running().watch.left()
    }

    /// Goes on from what a cut left, in place of the store; the engine is not running.
    pub(crate) async fn go_on_from(&mut self, left: &Left) {
        self.drop_engine().await;
        let _ = std::fs::remove_dir_all(&self.directory);
        self.directory.clone_from(&left.directory);
        self.cuts += 1;
    }

    /// The block that comes next in what a kill would leave now.
    pub(crate) fn left_by_a_kill(&self) -> u64 {
        let to = self.home.path().join("killed");
        image::take(&self.directory, &to);
        let identity = self.store().identity();
        let left = index::open(&to, identity.genesis_hash.into(), identity.first_block).unwrap();
        left.view().checkpoint().next_block
    }

    pub(crate) fn next_block(&self) -> u64 {
        self.store().view().checkpoint().next_block
    }

    /// Stops the engine and closes the store.
    pub(crate) async fn stop(&mut self) -> Result<(), SyncError> {
        let running = self.running.take().expect("started");
        self.cut = running.watch.armed();
        running.trigger.fire();
        let began = Instant::now();
        let result = running.task.await.unwrap();
        assert!(
            began.elapsed() < at_most(Duration::from_secs(3)),
            "stopping took {:?}",
            began.elapsed()
        );
        result
    }

    /// Waits until the engine ends by itself; the store stays open.
    pub(crate) async fn ended(&mut self) -> Result<(), SyncError> {
        let task = &mut self.running.as_mut().expect("started").task;
        let ended = tokio::time::timeout(index::DEADLINE, task).await;
        ended.expect("the engine ends by itself").unwrap()
    }

    /// Drops the engine where it stands.
    pub(crate) async fn drop_engine(&mut self) {
        let running = self.running.take().expect("started");
        self.cut = running.watch.armed();
        running.task.abort();
        if !running.task.is_finished() {
            let _ = running.task.await;
        }
    }

    /// Waits until the store has the node's head.
    pub(crate) async fn synced(&self) {
        until("the store gets to the node's head", || self.is_synced()).await;
    }

    pub(crate) fn is_synced(&self) -> bool {
        let running = self.running();
        let ended = running.task.is_finished();
        let head = running.store.view().head();
        let there = head.is_some_and(|head| head.hash == self.fake.head_hash());
        assert!(there || !ended, "the engine ended: {}", running.status.message());
        there
    }

    /// Waits for the node's head, then compares the store with a fresh index of the node's chain.
    pub(crate) async fn check(&self, what: &str) {
        self.synced().await;
        self.equals(&self.fake.bundles(), what).await;
    }

    /// Compares the store with a fresh index of a chain.
    pub(crate) async fn equals(&self, chain: &[Bundle], what: &str) {
        let found = self.store().view().digest().unwrap();
        let expected = fresh_digest(chain, self.first_block).await;
        assert_eq!(found, expected, "{what}: the store is not that of a fresh index");
    }
}
