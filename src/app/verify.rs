//! `quarry verify`: the store against itself; mismatches as they are found, then a table of what was checked.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::AppError;
use super::process::say;
use super::supervisor::{load_genesis, open_stored};
use crate::audit::{Audit, Check, Mismatch, Observer};
use crate::cli::{ListenArgs, VerifyArgs};
use crate::config::Config;
use crate::model::BlockRange;
use crate::store::View;
use crate::sync::ChainRules;

/// `quarry verify`.
pub(super) fn verify(args: &VerifyArgs) -> Result<(), AppError> {
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
    let range = range(&view, args)?;
    let identity = store.identity();
    let rules = ChainRules::new(
        identity.chain_id,
        identity.genesis_hash.into(),
        genesis.as_ref(),
        identity.first_block,
        args.node.trust_node || settings.is_some_and(|chain| chain.trust_node),
    );
    say(&format!(
        "{}: blocks {} to {}",
        args.chain,
        range.first(),
        range.last()
    ));
    let terminal = Terminal::new();
    let checks = Audit::new(view, range, rules.verify, &terminal).run()?;
    terminal.bar.finish_and_clear();
    report(&checks)
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
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{prefix:44} {bar:30} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        Self { bar }
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
