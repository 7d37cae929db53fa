//! One life: a chain that grows and is reorganised, a node that fails and lies, a store that is killed and loses power,
//! questions and imports in between. After every step the store is that of an undisturbed run, and answers follow from
//! the chain.

use crate::answers;
use crate::faults;
use crate::rig::Rig;
use crate::supplied::Supplied;
use crate::support::build::INTRINSIC_GAS;
use crate::support::chain::ChainSpec;
use crate::support::fake_node::{Fault, Methods};
use crate::support::index::until;
use crate::twin::Twin;
use crate::watch::{Cut, History};
use fastrand::Rng;
use quarry::model::{B256, Bundle};
use quarry::store::{Point, Step};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::time::{Duration, Instant};

const STEPS: u32 = 30;
/// The node's head is reached within this, whatever is in the way.
const REACH_MAX: Duration = Duration::from_secs(300);
/// A store is compared with a really fresh one at every so manyth step, and at the end.
const FRESH_EVERY: u32 = 10;

/// What happened in lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    steps: u64,
    blocks: u64,
    reorgs: u64,
    deepest: u64,
    faults: u64,
    restarts: u64,
    imports: u64,
    kills: BTreeMap<(Step, Point), u64>,
    power_cuts: BTreeMap<(Step, Point), u64>,
}

impl Tally {
    pub(crate) fn with(mut self, other: &Self) -> Self {
        for (sum, more) in [
            (&mut self.steps, other.steps),
            (&mut self.blocks, other.blocks),
            (&mut self.reorgs, other.reorgs),
            (&mut self.faults, other.faults),
            (&mut self.restarts, other.restarts),
            (&mut self.imports, other.imports),
        ] {
            *sum += more;
        }
        self.deepest = self.deepest.max(other.deepest);
        for (sums, more) in [
            (&mut self.kills, &other.kills),
            (&mut self.power_cuts, &other.power_cuts),
        ] {
            for (stage, count) in more {
                *sums.entry(*stage).or_default() += count;
            }
        }
        self
    }

    /// Kills and power cuts.
    pub(crate) fn cuts(&self) -> u64 {
        self.kills.values().chain(self.power_cuts.values()).sum()
    }

    /// How often the writer was cut off at which stage.
    pub(crate) fn cuts_by_stage(&self) -> String {
        let named = |name: &str, cuts: &BTreeMap<(Step, Point), u64>| {
            let each = cuts
                .iter()
                .map(|((step, point), count)| format!("{step:?}/{point:?} {count}"));
            format!("{name}: {}", each.collect::<Vec<_>>().join(", "))
        };
        format!(
            "{}\n{}",
            named("kills", &self.kills),
            named("power cuts", &self.power_cuts)
        )
    }
}

impl Display for Tally {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} steps, {} blocks, {} reorgs (deepest {}), {} faults, {} restarts, {} imports, {} kills, {} power cuts",
            self.steps,
            self.blocks,
            self.reorgs,
            self.deepest,
            self.faults,
            self.restarts,
            self.imports,
            self.kills.values().sum::<u64>(),
            self.power_cuts.values().sum::<u64>(),
        )
    }
}

pub(crate) struct Life {
    seed: u64,
    genesis: B256,
    rng: Rng,
    rig: Rig,
    twin: Twin,
    spec: ChainSpec,
    /// All blocks that the node ever had.
    history: History,
    /// Blocks up to this one are not reorganised any more.
    floor: u64,
    /// The node has the call tracer only.
    call_tracer: bool,
    /// The node names final blocks.
    tags: bool,
    supplied: Supplied,
    tally: Tally,
}

impl Life {
    pub(crate) async fn live(seed: u64) -> Tally {
        let mut life = Self::new(seed);
        for step in 0..STEPS {
            life.step(step).await;
        }
        life.end().await;
        life.tally
    }

    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut rig = Rig::new(seed);
        // Some flush and compact at every block.
        rig.memtable_bytes = if rng.u8(..8) == 0 { 512 << 10 } else { 64 << 20 };
        rig.options.batch_bytes_max = [20 << 10, 200 << 10][rng.usize(..2)];
        let tags = rng.u8(..5) > 0;
        let methods = Methods {
            block_receipts: rng.u8(..5) > 0,
            trace_block: rng.u8(..4) > 0,
            debug_trace: true,
            debug_by_hash: seed.is_multiple_of(2),
            tags,
        };
        rig.fake.set_methods(methods);
        if rng.u8(..4) == 0 {
            rig.use_ipc();
        }
        if rng.u8(..6) == 0 {
            rig.first_block = 9;
        }
        let twin = Twin::new(rig.fake.head_hash(), rig.first_block);
        // What was held before the first block is asked for once.
        let floor = rig.first_block;
        Self {
            seed,
            genesis: rig.fake.head_hash(),
            twin,
            spec: ChainSpec::new(seed),
            history: rig
                .fake
                .bundles()
                .into_iter()
                .map(|bundle| (bundle.block.hash, bundle))
                .collect(),
            call_tracer: !methods.trace_block,
            rng,
            rig,
            floor,
            tags,
            supplied: Supplied::default(),
            tally: Tally::default(),
        }
    }

    async fn step(&mut self, step: u32) {
        let what = format!("seed {} step {step}", self.seed);
        if step == 0 {
            // Fewer are no backfill.
            self.mine(40..160);
            self.set_final();
            self.arm_backfill();
            self.rig.start().await;
        } else {
            if self.rng.u8(..3) > 0 {
                self.arm(None);
            }
            for _ in 0..self.rng.u8(1..=3) {
                self.act(&what).await;
                if self.rng.bool() {
                    tokio::time::sleep(Duration::from_millis(self.rng.u64(..40))).await;
                }
            }
        }
        self.reach(&what).await;
        self.compare(&what).await;
        if (step + 1).is_multiple_of(FRESH_EVERY) {
            self.twin.is_fresh(&self.chain(), &what).await;
        }
        self.tally.steps += 1;
    }

    fn mine(&mut self, count: std::ops::Range<u64>) {
        let count = self.rng.u64(count);
        self.rig.fake.mine(count);
        self.tally.blocks += count;
        self.note(count);
    }

    /// Blocks as this node tells of them.
    fn as_told(&self, mut bundles: Vec<Bundle>) -> Vec<Bundle> {
        if self.call_tracer {
            // It states the intrinsic gas of the top call too.
            for trace in bundles.iter_mut().flat_map(|bundle| &mut bundle.traces).flatten() {
                trace.frames[0].gas += INTRINSIC_GAS;
                trace.frames[0].gas_used += INTRINSIC_GAS;
            }
        }
        bundles
    }

    fn chain(&self) -> Vec<Bundle> {
        self.as_told(self.rig.fake.bundles())
    }

    /// Remembers the newest blocks.
    fn note(&mut self, count: u64) {
        for bundle in self.as_told(self.rig.fake.newest(count)) {
            self.history.insert(bundle.block.hash, bundle);
        }
        if !self.tags {
            let depth = self.rig.options.finality_depth;
            self.floor = self.floor.max(self.rig.fake.head().saturating_sub(depth));
        }
    }

    fn set_final(&mut self) {
        let head = self.rig.fake.head();
        // Mostly far enough back for deep reorgs.
        let lag = [0, 8, 64, 70][self.rng.usize(..4)];
        let (from, to) = (self.rig.fake.finalized(), head.saturating_sub(lag));
        if from < to {
            self.rig.fake.set_finalized(self.rng.u64(from..=to));
        }
        if self.tags {
            self.floor = self.floor.max(self.rig.fake.finalized());
        }
    }

    fn reorg(&mut self) {
        let head = self.rig.fake.head();
        let most = if self.rng.u8(..3) == 0 { 64 } else { 9 };
        let depth = self.rng.u64(1..=most).min(head - self.floor);
        if depth == 0 {
            return;
        }
        // Also to a shorter chain.
        let count = self.rng.u64(depth.saturating_sub(2).max(1)..depth + 5);
        let left = self.rig.fake.newest(depth);
        self.rig.fake.reorg(depth, count);
        self.note(count);
        self.tally.reorgs += 1;
        self.tally.deepest = self.tally.deepest.max(depth);
        if self.rng.bool() {
            // Word of the branch that was left comes late.
            self.rig.fake.announce(&left);
        }
    }

    fn arm(&mut self, step: Option<Step>) {
        let steps = [
            Step::Final,
            Step::Unfinal,
            Step::Finalize,
            Step::Unwind,
            Step::Settle,
        ];
        let points = [Point::Begun, Point::Grown, Point::Synced, Point::Written];
        let step = step.or_else(|| self.rng.bool().then(|| steps[self.rng.usize(..steps.len())]));
        let arrays = matches!(step, Some(Step::Final | Step::Finalize));
        let point = arrays.then(|| points[self.rng.usize(..points.len())]);
        let after = if step.is_some() {
            self.rng.u64(..3)
        } else {
            self.rng.u64(..20)
        };
        self.rig.arm(Cut {
            step,
            point,
            after,
            power: self.rng.bool(),
            seed: self.rng.u64(..),
        });
    }

    /// Cuts the writer off while it writes final blocks, or settles them.
    fn arm_backfill(&mut self) {
        let step = [Step::Final, Step::Settle, Step::Finalize][self.rng.usize(..3)];
        self.arm(Some(step));
    }

    fn fault(&mut self) {
        let mut all = faults::all();
        if self.rig.uses_ipc() {
            // The others are of HTTP, or leave a socket in the middle of an answer.
            let status = |fault: &Fault| {
                matches!(
                    fault,
                    Fault::Truncated
                        | Fault::Garbage
                        | Fault::TooManyRequests(_)
                        | Fault::ServerError
                        | Fault::Hangup
                )
            };
            all.retain(|fault| !status(fault));
        }
        let fault = all[self.rng.usize(..all.len())].clone();
        self.rig.fake.fault(fault, self.rng.u64(1..4));
        self.tally.faults += 1;
    }

    async fn act(&mut self, what: &str) {
        match self.rng.u8(..24) {
            0..=5 => self.mine(1..8),
            6 => self.mine(20..70),
            7..=11 => self.reorg(),
            12..=14 => self.set_final(),
            15..=18 => {
                self.fault();
                self.mine(1..4);
            }
            19 => self.stall(what).await,
            20 => {
                self.rig.stop().await.unwrap();
                if self.rng.bool() {
                    // Meanwhile the chain goes on, and much of it becomes final.
                    self.mine(20..90);
                    self.set_final();
                    self.arm_backfill();
                }
                self.restart().await;
            }
            21 => {
                self.rig.drop_engine().await;
                self.restart().await;
            }
            22 => self.announce(),
            _ => self.import().await,
        }
    }

    async fn restart(&mut self) {
        self.tally.restarts += 1;
        self.start().await;
    }

    /// Faults wait while the node is probed: what it seems to lack then, it lacks for a long time.
    async fn start(&mut self) {
        let faults = self.rig.fake.swap_faults(Vec::new());
        self.rig.start_after(|fake| drop(fake.swap_faults(faults))).await;
    }

    /// The node does not answer for a while; what is stored is answered all the same.
    async fn stall(&mut self, what: &str) {
        self.reach(what).await;
        let chain = self.chain();
        self.rig.fake.stall(true);
        self.mine(0..3);
        if self.rng.bool() {
            until("the node is missed", || !self.rig.status().node_up()).await;
        }
        answers::check(
            &self.rig.reader(),
            &chain,
            self.rig.first_block,
            &self.spec,
            &mut self.rng,
        );
        self.rig.fake.stall(false);
    }

    /// Heads in any order, some twice, some that are none any more.
    fn announce(&mut self) {
        let mut heads = self.rig.fake.newest(6);
        heads.extend_from_within(..heads.len() / 2);
        self.rng.shuffle(&mut heads);
        self.rig.fake.announce(&heads);
        self.rig.fake.fault(Fault::HeadBack(self.rng.u64(1..9)), 1);
        self.mine(1..3);
    }

    async fn import(&mut self) {
        // What a cut takes away of an import under way is tried with the real program.
        if self.rig.disarm().is_some() {
            return;
        }
        let before = self.rig.reader();
        self.supplied.check(&before, &mut self.rng);
        let store = std::sync::Arc::clone(self.rig.store());
        let file = self.rig.home().join("import");
        if self.rng.bool() {
            let tokens: Vec<_> = (0..2).map(|index| self.spec.contract(index)).collect();
            let times = (
                self.spec.genesis_time,
                self.rig.fake.head() * self.spec.block_seconds,
            );
            let span = (times.0, times.0 + times.1);
            self.supplied.prices(&store, &file, &tokens, span, &mut self.rng);
        } else {
            let token = self.spec.contract(self.rng.u64(..self.spec.contracts));
            self.supplied.token(&store, &file, token, &mut self.rng);
        }
        let revision = before.facts_revision();
        until("the import is seen", || {
            self.rig.reader().facts_revision() != revision
        })
        .await;
        self.supplied.check(&self.rig.reader(), &mut self.rng);
        self.tally.imports += 1;
    }

    /// Waits for the node's head, through all cuts on the way.
    async fn reach(&mut self, what: &str) {
        loop {
            // Long: where the machine has no time, answers of the node come too late, again and again.
            let began = Instant::now();
            while self.rig.left().is_none() && !self.rig.is_synced() {
                assert!(
                    began.elapsed() < REACH_MAX,
                    "{what}: the store does not get to block {}, has {}: {}",
                    self.rig.fake.head(),
                    self.rig.next_block(),
                    self.rig.status().message()
                );
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let Some(left) = self.rig.left() else { return };
            let tally = if left.power {
                &mut self.tally.power_cuts
            } else {
                &mut self.tally.kills
            };
            *tally.entry((left.step, left.point)).or_default() += 1;
            self.rig.go_on_from(&left).await;
            left.check(&self.history, self.genesis, self.rig.first_block, what)
                .await;
            if self.rng.u8(..3) == 0 {
                // Again, in what follows.
                self.arm(None);
            }
            self.start().await;
        }
    }

    async fn compare(&mut self, what: &str) {
        let chain = self.chain();
        self.twin.follow(&chain, self.floor).await;
        self.twin.equals(self.rig.store(), what);
        let reader = self.rig.reader();
        answers::check(&reader, &chain, self.rig.first_block, &self.spec, &mut self.rng);
        self.supplied.check(&reader, &mut self.rng);
    }

    async fn end(&mut self) {
        let what = format!("seed {} at the end", self.seed);
        self.rig.fake.clear_faults();
        self.mine(1..2);
        self.reach(&what).await;
        self.compare(&what).await;
        self.twin.is_fresh(&self.chain(), &what).await;
        self.rig.stop().await.unwrap();
        self.rig.start().await;
        self.reach(&what).await;
        self.compare(&what).await;
        self.rig.stop().await.unwrap();
    }
}
