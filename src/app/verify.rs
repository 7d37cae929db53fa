//! `quarry verify`: the store against itself and, with a node, against the node; mismatches as they are found, then a table of what was checked.

use std::sync::Arc;

use futures_util::StreamExt as _;
use indicatif::ProgressBar;

use super::process::{self, say};
use super::supervisor::{load_genesis, open_stored};
use super::{AppError, progress};
use crate::audit::samples::{Question, Sample, Sampler};
use crate::audit::{Audit, Check, Mismatch, Observer};
use crate::cli::{ListenArgs, VerifyArgs};
use crate::config::Config;
use crate::model::{BlockRange, U256};
use crate::node::{Node, NodeConfig, NodeError, Told};
use crate::query::ObservedFacts;
use crate::store::{Observed, Store, View};
use crate::sync::{ChainRules, SyncError};

/// Samples that are asked of the node at a time.
const ASKED_AT_ONCE: usize = 32;

/// `quarry verify`.
pub(super) async fn verify(args: VerifyArgs) -> Result<(), AppError> {
    let config = Config::merge(&args.store, &args.node, &ListenArgs::default())?;
    let settings = config.chains.iter().find(|chain| chain.name == args.chain);
    let genesis = args
        .node
        .genesis
        .as_deref()
        .or(settings.and_then(|chain| chain.genesis.as_deref()));
    let genesis = load_genesis(genesis)?;
    let store = open_stored(&args.store, args.chain)?;
    let view = store.view();
    let range = range(&view, &args)?;
    let identity = store.identity();
    let rules = ChainRules::new(
        identity.chain_id,
        identity.genesis_hash.into(),
        genesis.as_ref(),
        identity.first_block,
        args.node
            .trust_node
            .unwrap_or_else(|| settings.is_some_and(|chain| chain.trust_node)),
    );
    let node = match settings.and_then(|settings| settings.rpc.as_deref()) {
        Some(url) => Some(connect(NodeConfig::new(url), &store).await?),
        None => None,
    };
    say(&format!(
        "{}: blocks {} to {}",
        args.chain,
        range.first(),
        range.last()
    ));
    let terminal = Arc::new(Terminal::new());
    let told = Arc::clone(&terminal);
    let (rules, count, seed) = (
        rules.verify,
        args.samples,
        args.seed.unwrap_or_else(|| fastrand::u64(..)),
    );
    let with_node = node.is_some();
    let (mut checks, samples) = process::blocking(move || {
        let observed = Observed::open(store.directory(), store.identity(), true);
        let facts = ObservedFacts::new(observed, Arc::clone(&view), false);
        let audit = Audit::new(view, range, rules, &*told).with_token_facts(Arc::new(facts));
        let checks = audit.run()?;
        let mut samples = Vec::new();
        let mut sampler = Sampler::new(&audit, seed);
        while with_node && samples.len() < count {
            let Some(sample) = sampler.draw()? else { break };
            samples.push(sample);
        }
        Ok((checks, samples))
    })
    .await?;
    if let Some(node) = node {
        tracing::info!(seed, "samples are drawn by this seed (--seed)");
        checks.extend(compare(&node, samples, &terminal).await?);
    }
    terminal.bar.finish_and_clear();
    report(&checks)
}

/// The node of the chain that is stored.
pub(super) async fn connect(config: NodeConfig, store: &Store) -> Result<Node, AppError> {
    let node = Node::connect(config).await.map_err(SyncError::from)?;
    let capabilities = node.probe().await.map_err(SyncError::from)?;
    store.check_chain(capabilities.chain_id, capabilities.genesis_hash)?;
    Ok(node)
}

/// What ledgers say against what the node says, by kind of question.
async fn compare(node: &Node, samples: Vec<Sample>, terminal: &Terminal) -> Result<Vec<Check>, AppError> {
    const NAMES: [(&str, &str); 3] = [
        ("native balances against the node", "accounts"),
        ("token balances against the node", "holders"),
        ("token supplies against the node", "tokens"),
    ];
    let mut checks = NAMES.map(|(name, unit)| Check {
        name,
        unit,
        ..Check::default()
    });
    terminal.begins("ledgers against the node", samples.len() as u64);
    let asked =
        futures_util::stream::iter(samples).map(|sample| async move { (sample, ask(node, &sample).await) });
    let mut asked = asked.buffer_unordered(ASKED_AT_ONCE);
    while let Some((sample, answer)) = asked.next().await {
        terminal.advances(1);
        let (place, what) = match sample.question {
            Question::Native { account } => (0, account.to_string()),
            Question::Token { token, holder } => (1, format!("{holder} of {token}")),
            Question::Supply { token } => (2, format!("the supply of {token}")),
        };
        let Some(check) = checks.get_mut(place) else {
            continue;
        };
        check.items += 1;
        let found = match answer.map_err(SyncError::from)? {
            Told::Value(found) if found == sample.stored => continue,
            Told::Value(found) => format!("the node says {found}"),
            // A contract that does not exist yet, or no more, has nothing to say.
            Told::Nothing(_) if sample.stored.is_zero() => continue,
            Told::Nothing(why) => format!("the contract does not say: {why}"),
        };
        check.mismatches += 1;
        terminal.mismatch(&Mismatch {
            check: check.name,
            block: Some(sample.block),
            text: format!("{what}: the ledger says {}, {found}", sample.stored),
        });
    }
    drop(asked);
    Ok(checks.into())
}

async fn ask(node: &Node, sample: &Sample) -> Result<Told<U256>, NodeError> {
    match sample.question {
        Question::Native { account } => node.balance(account, sample.block).await.map(Told::Value),
        Question::Token { token, holder } => node.token_balance(token, holder, sample.block).await,
        Question::Supply { token } => node.token_supply(token, sample.block).await,
    }
}

/// The blocks to look at.
fn range(view: &View, args: &VerifyArgs) -> Result<BlockRange, AppError> {
    let Some(head) = view.head() else {
        return Err(AppError::Usage("the store holds no blocks yet".to_owned()));
    };
    let (first, last) = (view.first_block(), head.number);
    let (from, to) = (args.from.unwrap_or(first), args.to.unwrap_or(last));
    BlockRange::new(from, to)
        .filter(|_| from >= first && to <= last)
        .ok_or_else(|| {
            AppError::Usage(format!(
                "blocks {from} to {to} are not a range of the stored blocks {first} to {last}"
            ))
        })
}

/// Prints what was checked; an error where anything is wrong, for the exit code.
fn report(checks: &[Check]) -> Result<(), AppError> {
    say(&format!(
        "\n{:<44} {:>14} {:<14} {:>10}",
        "check", "looked at", "", "mismatches"
    ));
    for check in checks {
        say(&format!(
            "{:<44} {:>14} {:<14} {:>10}",
            check.name, check.items, check.unit, check.mismatches
        ));
    }
    match checks.iter().map(|check| check.mismatches).sum() {
        0 => Ok(()),
        mismatches => Err(AppError::Mismatches(mismatches)),
    }
}

/// A bar on a terminal; mismatches as lines.
struct Terminal {
    bar: ProgressBar,
}

impl Terminal {
    fn new() -> Self {
        Self {
            bar: progress::bar("{prefix:44} {bar:30} {pos}/{len} {eta}"),
        }
    }
}

impl Observer for Terminal {
    fn begins(&self, check: &'static str, items: u64) {
        tracing::info!(items, "checking {check}");
        self.bar.reset();
        self.bar.set_prefix(check);
        self.bar.set_length(items);
    }

    fn advances(&self, items: u64) {
        self.bar.inc(items);
    }

    fn mismatch(&self, mismatch: &Mismatch) {
        let place = mismatch
            .block
            .map_or_else(String::new, |block| format!("block {block}: "));
        self.bar
            .suspend(|| say(&format!("mismatch: {}: {place}{}", mismatch.check, mismatch.text)));
    }
}
