//! `quarry verify`: the store against itself and, with a node, against the node; mismatches as they are found, then a table of what was checked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use indicatif::ProgressBar;

use super::process::{self, say};
use super::run::check_node;
use super::supervisor::{load_genesis, open_stored, stored_range};
use super::{AppError, stderr};
use crate::audit::samples::{Question, Sample, Sampler};
use crate::audit::{Audit, Check, Mismatch, Observer};
use crate::cli::{ListenArgs, VerifyArgs};
use crate::config::Config;
use crate::model::{Address, B256, BlockRange, U256};
use crate::node::{Node, NodeConfig, NodeError, Told};
use crate::query::{ObservedFacts, QueryError};
use crate::store::{Observed, Store, View};
use crate::sync::{ChainRules, SyncError};

/// Samples that are asked of the node at a time.
const ASKED_AT_ONCE: usize = 32;
/// Tokens without a verdict that are named.
const NAMED_MAX: usize = 20;

/// The check of the store's blocks against the node's, and what its items are.
const BRANCH: (&str, &str) = ("block hashes against the node", "blocks");
/// What is compared with a node, and what its items are.
const COMPARED: [(&str, &str); 3] = [
    ("native balances against the node", "accounts"),
    ("token balances against the node", "holders"),
    ("token supplies against the node", "tokens"),
];

/// A line of the table.
#[derive(Debug)]
struct Line {
    check: Check,
    /// What is to be known beside it; where nothing was looked at, why.
    note: Option<String>,
}

/// What the ledgers have for a node.
struct Drawn {
    samples: Vec<Sample>,
    /// Why there is nothing of native balances, and what is left out of tokens.
    native: Option<String>,
    tokens: Option<String>,
}

/// `quarry verify`.
pub(super) async fn verify(args: VerifyArgs) -> Result<(), AppError> {
    let config = Config::merge(&args.store, &args.node, &ListenArgs::default())?;
    let settings = config.chains.iter().find(|chain| chain.name == args.chain);
    settings.map_or(Ok(()), check_node)?;
    // What was typed is meant for the chain that was; a variable speaks of the chain that it speaks of with `quarry run`.
    let genesis = args.node.genesis.as_deref();
    let genesis = genesis.filter(|_| !args.given.is_environment("genesis"));
    let genesis = load_genesis(genesis.or(config.genesis_of(args.chain)))?;
    let store = open_stored(&args.store, args.chain)?;
    let view = store.view();
    let range = stored_range(&view, args.from, args.to)?;
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
    let asked = settings.and_then(|settings| {
        Some(NodeConfig {
            concurrency_max: settings.rpc_concurrency,
            ..NodeConfig::new(settings.rpc.as_deref()?)
        })
    });
    let node = match asked {
        Some(config) => Some(connect(config, &store).await?),
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
    let audited = Arc::clone(&view);
    let (checks, drawn, differs) = process::blocking(move || {
        let observed = Observed::open(store.directory(), store.identity(), true);
        let facts = ObservedFacts::new(observed, Arc::clone(&audited), with_node);
        let audit = Audit::new(audited, range, rules, &*told).with_token_facts(Arc::new(facts));
        let checks = audit.run();
        let drawn = with_node.then(|| draw(&audit, seed, count));
        Ok((checks, drawn, audit.native_differs()))
    })
    .await?;
    let mut lines: Vec<Line> = checks
        .into_iter()
        .map(|check| Line { check, note: None })
        .collect();
    let drawn = drawn.map(|drawn| drawn.unwrap_or_else(|error| undrawn(&error, &terminal, &mut lines)));
    let mut unjudged = Unjudged::default();
    if let Some((node, drawn)) = node.zip(drawn) {
        tracing::info!(seed, "samples are drawn by this seed (--seed)");
        let branch = Branch {
            node: &node,
            view: &view,
            node_head: node.head().await.map_err(SyncError::from)?,
        };
        lines.push(branch.check(range, &terminal).await?);
        lines.extend(compare(&branch, drawn, &terminal, &mut unjudged).await?);
    } else if differs.is_some() {
        let check = compared(COMPARED.first());
        lines.push(Line { check, note: differs });
    }
    terminal.bar.finish_and_clear();
    report(&lines, &unjudged)
}

fn draw(audit: &Audit<'_>, seed: u64, count: usize) -> Result<Drawn, QueryError> {
    let mut samples = Vec::new();
    let mut sampler = Sampler::new(audit, seed, count)?;
    while samples.len() < count {
        let Some(sample) = sampler.draw()? else { break };
        samples.push(sample);
    }
    Ok(Drawn {
        samples,
        native: audit.native_silence(),
        tokens: sampler.token_silence(),
    })
}

/// What is compared with the node of a store that samples cannot be drawn from, which is wrong by itself.
fn undrawn(error: &QueryError, terminal: &Terminal, lines: &mut Vec<Line>) -> Drawn {
    let check = Check {
        mismatches: 1,
        ..compared(Some(&("samples of the ledgers", "samples")))
    };
    terminal.mismatch(&Mismatch {
        check: check.name,
        block: None,
        text: format!("cannot be drawn: {error}"),
    });
    lines.push(Line { check, note: None });
    let note = Some("samples cannot be drawn".to_owned());
    Drawn {
        samples: Vec::new(),
        native: note.clone(),
        tokens: note,
    }
}

/// The node of the chain that is stored.
pub(super) async fn connect(config: NodeConfig, store: &Store) -> Result<Node, AppError> {
    let node = Node::connect(config).await.map_err(SyncError::from)?;
    let (chain_id, genesis_hash) = node.chain().await.map_err(SyncError::from)?;
    store.check_chain(chain_id, genesis_hash)?;
    Ok(node)
}

/// How a stored block stands to the node's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The node has it.
    Same,
    /// The node has another one, with this hash.
    Other(B256),
    /// The node has none of this number.
    Absent,
}

/// What came of asking the node about a sample.
enum Heard {
    /// It says what the ledger does, or says nothing where it need not.
    Same,
    /// It has left our branch since, or never had its end.
    Elsewhere,
    /// What it says.
    Differs(String),
}

/// The store's chain beside the node's.
struct Branch<'a> {
    node: &'a Node,
    view: &'a View,
    node_head: u64,
}

impl Branch<'_> {
    async fn standing(&self, number: u64) -> Result<Standing, AppError> {
        if number > self.node_head {
            return Ok(Standing::Absent);
        }
        let stored = self.view.block(number)?.hash;
        let theirs = self.node.block_id(number).await.map_err(SyncError::from)?;
        Ok(match theirs {
            Some(theirs) if theirs.hash == stored => Standing::Same,
            Some(theirs) => Standing::Other(theirs.hash),
            None => Standing::Absent,
        })
    }

    fn is_final(&self, number: u64) -> bool {
        self.view.finalized() >= Some(number)
    }

    /// Whether the node's state after block `number` says nothing of the store's: it does not have the block, or has
    /// another one that a reorg may still make ours, or ours theirs.
    async fn is_elsewhere(&self, number: u64) -> Result<bool, AppError> {
        Ok(match self.standing(number).await? {
            Standing::Same => false,
            Standing::Other(_) => !self.is_final(number),
            Standing::Absent => true,
        })
    }

    /// Asks the node about a sample, and where it says something else than the ledger, of which branch it spoke. Both belong where
    /// all who are in line for a place in flight are polled: a place that one of the others was given while only this was
    /// waited for came back to nobody.
    async fn hear(&self, sample: &Sample) -> Result<Heard, AppError> {
        // Verdicts do not ask for a supply either: ERC-721 need not tell one. And a contract that does not exist yet, or no
        // more, has nothing to say.
        let need_not_say = sample.stored.is_zero() || matches!(sample.question, Question::Supply { .. });
        let differs = match ask(self.node, sample).await {
            Ok(Told::Value(found)) if found == sample.stored => return Ok(Heard::Same),
            Ok(Told::Nothing(_)) if need_not_say => return Ok(Heard::Same),
            Ok(Told::Value(found)) => Ok(format!("the node says {found}")),
            Ok(Told::Nothing(why)) => Ok(format!("the contract does not say: {why}")),
            Err(error) if error.is_answer() => Err(error),
            Err(error) => return Err(SyncError::from(error).into()),
        };
        if self.is_elsewhere(sample.block).await? {
            return Ok(Heard::Elsewhere);
        }
        Ok(Heard::Differs(differs.map_err(SyncError::from)?))
    }

    /// The ends of `range`, the last final block and the last block: what is below hangs on them by parents' hashes.
    async fn check(&self, range: BlockRange, terminal: &Terminal) -> Result<Line, AppError> {
        let mut check = compared(Some(&BRANCH));
        let ends = [range.first(), range.last()].into_iter();
        let pinned = [self.view.finalized(), self.view.head().map(|head| head.number)];
        let blocks: BTreeSet<u64> = ends.chain(pinned.into_iter().flatten()).collect();
        terminal.begins(check.name, blocks.len() as u64);
        let mut notes = Vec::new();
        for number in blocks {
            terminal.advances(1);
            let standing = self.standing(number).await?;
            check.items += u64::from(standing != Standing::Absent);
            match standing {
                Standing::Same => {}
                Standing::Absent => notes.push(format!("the node does not have block {number}")),
                Standing::Other(_) if !self.is_final(number) => notes.push(format!(
                    "block {number} is of another branch than the node's, and not final: the sync takes it off"
                )),
                Standing::Other(theirs) => {
                    check.mismatches += 1;
                    terminal.mismatch(&Mismatch {
                        check: check.name,
                        block: Some(number),
                        text: format!(
                            "the store has {}, the node {theirs}: it follows another chain, or rewrote finality",
                            self.view.block(number)?.hash
                        ),
                    });
                }
            }
        }
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        Ok(Line { check, note })
    }
}

/// Samples of tokens that no verdict speaks for, and samples of which the node cannot speak.
#[derive(Debug, Default)]
struct Unjudged {
    /// Of blocks that the node does not have, or has others for.
    elsewhere: u64,
    samples: u64,
    differing: u64,
    /// Samples that differ, by token.
    tokens: BTreeMap<Address, u64>,
}

fn compared(named: Option<&(&'static str, &'static str)>) -> Check {
    let (name, unit) = named.copied().unwrap_or_default();
    Check {
        name,
        unit,
        ..Check::default()
    }
}

/// What ledgers say against what the node says, by kind of question.
async fn compare(
    branch: &Branch<'_>,
    drawn: Drawn,
    terminal: &Terminal,
    unjudged: &mut Unjudged,
) -> Result<Vec<Line>, AppError> {
    let Drawn {
        mut samples,
        native,
        tokens,
    } = drawn;
    let mut checks = COMPARED.each_ref().map(|named| compared(Some(named)));
    let known = samples.len();
    // Each such question would be asked again for a while: one node behind a balancer may have what another lacks.
    samples.retain(|sample| sample.block <= branch.node_head);
    unjudged.elsewhere += (known - samples.len()) as u64;
    terminal.begins("ledgers against the node", samples.len() as u64);
    let asked =
        futures_util::stream::iter(samples).map(|sample| async move { (sample, branch.hear(&sample).await) });
    let mut asked = asked.buffer_unordered(ASKED_AT_ONCE);
    while let Some((sample, heard)) = asked.next().await {
        terminal.advances(1);
        let (place, token, what) = match sample.question {
            Question::Native { account } => (0, None, account.to_string()),
            Question::Token { token, holder } => (1, Some(token), format!("{holder} of {token}")),
            Question::Supply { token } => (2, Some(token), format!("the supply of {token}")),
        };
        let Some(check) = checks.get_mut(place) else {
            continue;
        };
        let found = match heard? {
            Heard::Same => None,
            Heard::Elsewhere => {
                unjudged.elsewhere += 1;
                continue;
            }
            Heard::Differs(found) => Some(found),
        };
        if sample.judged {
            check.items += 1;
        } else {
            unjudged.samples += 1;
        }
        let Some(found) = found else { continue };
        let text = format!("{what}: the ledger says {}, {found}", sample.stored);
        if let Some(token) = token.filter(|_| !sample.judged) {
            unjudged.differing += 1;
            let differing = unjudged.tokens.entry(token).or_default();
            *differing += 1;
            if *differing == 1 && unjudged.tokens.len() <= NAMED_MAX {
                say(&format!("not judged yet: block {}: {text}", sample.block));
            }
            continue;
        }
        check.mismatches += 1;
        terminal.mismatch(&Mismatch {
            check: check.name,
            block: Some(sample.block),
            text,
        });
    }
    drop(asked);
    let notes = [native, tokens.clone(), tokens];
    let lines = checks.into_iter().zip(notes);
    Ok(lines.map(|(check, note)| Line { check, note }).collect())
}

async fn ask(node: &Node, sample: &Sample) -> Result<Told<U256>, NodeError> {
    match sample.question {
        Question::Native { account } => node.balance(account, sample.block).await.map(Told::Value),
        Question::Token { token, holder } => node.token_balance(token, holder, sample.block).await,
        Question::Supply { token } => node.token_supply(token, sample.block).await,
    }
}

/// Prints what was checked; an error where anything is wrong, for the exit code.
fn report(lines: &[Line], unjudged: &Unjudged) -> Result<(), AppError> {
    let row = |name: &str, items: &str, unit: &str, mismatches: &str| {
        say(&format!("{name:<44} {items:>14} {unit:<14} {mismatches:>10}"));
    };
    say("");
    row("check", "looked at", "", "mismatches");
    for Line { check, note } in lines {
        // What was not looked at is not to look like what passed.
        match note {
            Some(note) if check.items == 0 => {
                row(check.name, "-", check.unit, "-");
                say(&format!("    not checked: {note}"));
            }
            note => {
                let (items, mismatches) = (check.items.to_string(), check.mismatches.to_string());
                row(check.name, &items, check.unit, &mismatches);
                if let Some(note) = note {
                    say(&format!("    {note}"));
                }
            }
        }
    }
    if unjudged.elsewhere > 0 {
        say(&format!(
            "samples left out: {} of blocks that the node does not have, or has others for",
            unjudged.elsewhere
        ));
    }
    if unjudged.samples > 0 {
        say(&unjudged.sentence());
    }
    match lines.iter().map(|line| line.check.mismatches).sum() {
        0 => Ok(()),
        mismatches => Err(AppError::Mismatches(mismatches)),
    }
}

impl Unjudged {
    fn sentence(&self) -> String {
        let named = self.tokens.iter().take(NAMED_MAX);
        let mut named: Vec<String> = named
            .map(|(token, differing)| format!("{token} ({differing})"))
            .collect();
        if let Some(more) = self.tokens.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            named.push(format!("{more} more"));
        }
        let named = match named.as_slice() {
            [] => String::new(),
            named => format!(": {}", named.join(", ")),
        };
        format!(
            "tokens not judged yet: {} differ of {} samples, no mismatches of the store: the service asks the node for \
             these tokens until they are judged{named}",
            self.differing, self.samples
        )
    }
}

/// A bar on a terminal; mismatches as lines.
struct Terminal {
    bar: ProgressBar,
}

impl Terminal {
    fn new() -> Self {
        Self {
            bar: stderr::bar("{prefix:44} {bar:30} {pos}/{len} {eta}"),
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
        say(&format!("mismatch: {}: {place}{}", mismatch.check, mismatch.text));
    }
}
