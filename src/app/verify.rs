//! `quarry verify`: the store against itself and, with a node, against the node; mismatches as they are found, then a table of what was checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use indicatif::ProgressBar;

use super::process::{self, say};
use super::run::check_node;
use super::supervisor::{load_genesis, open_stored, stored_range};
use super::verify_node::{COMPARED, against, compared};
use super::{AppError, stderr};
use crate::audit::samples::{Sample, Sampler};
use crate::audit::{Audit, Check, Mismatch, NATIVE, Observer};
use crate::cli::VerifyArgs;
use crate::config::Config;
use crate::model::Address;
use crate::node::{Node, NodeConfig};
use crate::query::{ObservedFacts, QueryError};
use crate::store::{Observed, Store};
use crate::sync::{ChainRules, SyncError};

/// Tokens without a verdict that are named.
pub(super) const NAMED_MAX: usize = 20;

/// A line of the table.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) check: Check,
    /// What is to be known beside it; where nothing was looked at, why.
    pub(super) note: Option<String>,
    /// Items that could not be compared with the node, and why not the first of them.
    unasked: u64,
    failed: Option<String>,
}

impl Line {
    pub(super) const fn new(check: Check, note: Option<String>) -> Self {
        Self {
            check,
            note,
            unasked: 0,
            failed: None,
        }
    }

    /// Takes note of items that could not be compared.
    pub(super) fn fail(&mut self, items: u64, why: &str) {
        self.unasked += items;
        self.failed.get_or_insert_with(|| why.to_owned());
    }
}

/// What the ledgers have for a node.
pub(super) struct Drawn {
    pub(super) samples: Vec<Sample>,
    /// Why there is nothing of native balances, and what is left out of tokens.
    pub(super) native: Option<String>,
    pub(super) tokens: Option<String>,
}

/// `quarry verify`.
pub(super) async fn verify(args: VerifyArgs) -> Result<(), AppError> {
    let config = Config::of_chain(args.chain, &args.settings())?;
    let settings = config.chain(args.chain);
    settings.map_or(Ok(()), check_node)?;
    let genesis = load_genesis(config.genesis_of(args.chain))?;
    let store = open_stored(&args.store, args.chain)?;
    let view = store.view();
    let range = stored_range(&view, args.from, args.to)?;
    let identity = store.identity();
    let rules = ChainRules::new(
        identity.chain_id,
        identity.genesis_hash.into(),
        genesis.as_ref(),
        identity.first_block,
        config.trusts_node(args.chain),
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
    let (mut lines, drawn, differs) = process::blocking(move || {
        let observed = Observed::open(store.directory(), &store.identity(), true);
        let facts = ObservedFacts::new(observed, Arc::clone(&audited), with_node);
        let audit = Audit::new(audited, range, rules, &*told).with_token_facts(Arc::new(facts));
        let lines = audited_lines(&audit);
        let drawn = with_node.then(|| draw(&audit, seed, count));
        Ok((lines, drawn, audit.native_differs()))
    })
    .await?;
    let drawn = drawn.map(|drawn| drawn.unwrap_or_else(|error| undrawn(&error, &terminal, &mut lines)));
    let mut unjudged = Unjudged::default();
    if let Some((node, drawn)) = node.zip(drawn) {
        tracing::info!(seed, "samples are drawn by this seed (--seed)");
        lines.extend(against(&node, &view, range, drawn, &terminal, &mut unjudged).await);
    } else if differs.is_some() {
        lines.push(Line::new(compared(COMPARED.first()), differs));
    }
    terminal.bar.finish_and_clear();
    report(&lines, &unjudged)
}

/// The store against itself. A ledger that is not kept is not to look like one that is sound.
fn audited_lines(audit: &Audit<'_>) -> Vec<Line> {
    let line = |check: Check| {
        let is_idle = check.name == NATIVE && check.items == 0;
        Line::new(check, audit.native_silence().filter(|_| is_idle))
    };
    audit.run().into_iter().map(line).collect()
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
    lines.push(Line::new(check, None));
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

/// Samples of tokens that no verdict speaks for, and samples of which the node cannot speak.
#[derive(Debug, Default)]
pub(super) struct Unjudged {
    /// Of blocks that the node does not have, or has others for.
    pub(super) elsewhere: u64,
    pub(super) samples: u64,
    pub(super) differing: u64,
    /// Samples that differ, by token.
    pub(super) tokens: BTreeMap<Address, u64>,
}

/// Prints what was checked; an error where anything is wrong or was not compared, for the exit code.
fn report(lines: &[Line], unjudged: &Unjudged) -> Result<(), AppError> {
    let row = |name: &str, items: &str, unit: &str, mismatches: &str| {
        say(&format!("{name:<44} {items:>14} {unit:<14} {mismatches:>10}"));
    };
    say("");
    row("check", "looked at", "", "mismatches");
    for line in lines {
        let check = &line.check;
        let failed = line.failed.as_ref();
        let failed = failed.map(|why| format!("{} could not be compared: {why}", line.unasked));
        let notes: Vec<&String> = line.note.iter().chain(&failed).collect();
        // What was not looked at is not to look like what passed.
        let (items, mismatches, why) = match check.items {
            0 if check.mismatches == 0 && !notes.is_empty() => {
                ("-".to_owned(), "-".to_owned(), "not checked: ")
            }
            items => (items.to_string(), check.mismatches.to_string(), ""),
        };
        row(check.name, &items, check.unit, &mismatches);
        for note in notes {
            say(&format!("    {why}{note}"));
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
    verdict(lines)
}

/// What the process ends with.
fn verdict(lines: &[Line]) -> Result<(), AppError> {
    let mismatches: u64 = lines.iter().map(|line| line.check.mismatches).sum();
    let unasked = lines.iter().filter(|line| line.unasked > 0);
    let unasked: Vec<String> = unasked
        .map(|Line { check, unasked, .. }| format!("{} ({unasked} {})", check.name, check.unit))
        .collect();
    match (mismatches, lines.iter().find_map(|line| line.failed.as_ref())) {
        (0, None) => Ok(()),
        (mismatches, None) => Err(AppError::Mismatches(mismatches)),
        (mismatches, Some(why)) => {
            let found = match mismatches {
                0 => String::new(),
                mismatches => format!("{}; ", AppError::Mismatches(mismatches)),
            };
            let unasked = unasked.join(", ");
            Err(AppError::Uncompared(format!(
                "{found}not compared: {unasked}: {why}"
            )))
        }
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
pub(super) struct Terminal {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &'static str, mismatches: u64, failed: Option<(u64, &str)>) -> Line {
        let check = Check {
            name,
            unit: "accounts",
            items: 5,
            mismatches,
        };
        let mut line = Line::new(check, None);
        if let Some((items, why)) = failed {
            line.fail(items, why);
            line.fail(1, "what came later");
        }
        line
    }

    #[test]
    fn what_was_not_compared_is_no_success() {
        let said = |lines: &[Line]| verdict(lines).map_err(|error| error.to_string());
        assert_eq!(said(&[line("a", 0, None)]), Ok(()));
        let wrong = said(&[line("a", 2, None), line("b", 1, None)]);
        assert_eq!(wrong, Err("3 mismatches".to_owned()));
        let silent = [
            line("a", 0, None),
            line("b", 0, Some((6, "no answer"))),
            line("c", 0, Some((1, "gone"))),
        ];
        assert_eq!(
            said(&silent),
            Err("not compared: b (7 accounts), c (2 accounts): no answer".to_owned())
        );
        let both = said(&[line("a", 2, Some((1, "no answer")))]);
        assert_eq!(
            both,
            Err("2 mismatches; not compared: a (2 accounts): no answer".to_owned())
        );
    }
}
