//! Every block read back whole: hash chain, roots, arrays, look-ups by hash; and what the tables must hold for it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::days::DaySums;
use super::expected::{self, Dense, Known};
use super::facts::{self, Facts};
use super::native::{self, Native};
use super::sums::{Sums, fingerprint};
use super::token_moves::{self, Moves};
use super::{Audit, Check, Tally, arrays};
use crate::machine;
use crate::model::Bundle;
use crate::sync::verify::verify;

/// Blocks that a thread takes at a time.
const BLOCKS: u64 = 64;

/// What bodies call for, to be held against the tables one after the other: 32 bytes a block.
pub(super) struct Bodies<'a> {
    pub(super) lists: Sums,
    pub(super) facts: Facts<'a>,
    pub(super) native: Native<'a>,
    pub(super) moves: Moves,
    pub(super) days: DaySums,
}

impl<'a> Bodies<'a> {
    pub(super) fn new(audit: &'a Audit<'a>) -> Self {
        Self {
            lists: Sums::new(audit.range),
            facts: Facts::new(audit),
            native: Native::new(audit),
            moves: Moves::new(audit),
            days: DaySums::default(),
        }
    }
}

/// What a thread remembers from block to block.
struct Thread<'d> {
    terms: Known<'d>,
    tokens: token_moves::Known,
    accounts: facts::Known,
}

pub(super) fn run(audit: &Audit<'_>, bodies: &Bodies<'_>) -> Vec<Check> {
    let (first, last) = (audit.range.first(), audit.range.last());
    let chain = audit.tally("hash chain, roots and blooms", "blocks", last - first + 1);
    // Goes along with the blocks, and so does its progress.
    let lookups = Tally::new("look-ups by hash, arrays", "transactions", audit.observer);
    // Without them all pairs are wrong, and the reason is told.
    let dense: Dense = chain
        .read(first, audit.view.dense_terms())
        .into_iter()
        .flatten()
        .collect();
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..machine::cores() {
            scope.spawn(|| {
                let mut thread = Thread {
                    terms: Known::new(&dense),
                    tokens: token_moves::Known::default(),
                    accounts: facts::Known::default(),
                };
                loop {
                    let begin = next.fetch_add(BLOCKS, Ordering::Relaxed);
                    if begin > last {
                        break;
                    }
                    for number in begin..=last.min(begin + (BLOCKS - 1)) {
                        if let Some(bundle) = block(audit, number, &chain, &lookups) {
                            add(audit, &bundle, bodies, &mut thread, &chain);
                        }
                    }
                }
            });
        }
    });
    vec![chain.done(), lookups.done()]
}

/// Reads a block back and looks at what it says by itself.
fn block(audit: &Audit<'_>, number: u64, chain: &Tally<'_>, lookups: &Tally<'_>) -> Option<Bundle> {
    chain.items(1);
    let Some(bundle) = chain.read(number, audit.reader.bundle(number))? else {
        chain.wrong(Some(number), "it is not stored");
        return None;
    };
    if bundle.block.number() != number {
        chain.wrong(
            Some(number),
            format!("its row is that of block {}", bundle.block.number()),
        );
        return None;
    }
    let parent = match number.checked_sub(1) {
        Some(before) if before >= audit.view.first_block() => chain
            .read(number, audit.view.block(before))
            .map(|block| block.hash),
        _ => None,
    };
    if let Err(error) = verify(&bundle, parent, &audit.rules) {
        chain.wrong(Some(number), error.to_string());
    }
    if audit.is_traced(number) && bundle.traces.is_none() {
        chain.wrong(Some(number), "its frames are not stored");
    }
    lookups.read(number, arrays::check(audit, &bundle, lookups));
    Some(bundle)
}

/// Adds what a block calls for.
fn add(audit: &Audit<'_>, bundle: &Bundle, bodies: &Bodies<'_>, thread: &mut Thread<'_>, chain: &Tally<'_>) {
    let number = bundle.block.number();
    let mut item = |term, ordinal| bodies.lists.add(number, fingerprint((term, ordinal)));
    chain.read(
        number,
        expected::postings(audit, bundle, &mut thread.terms, &mut item),
    );
    bodies.days.add(bundle);
    let moved = bodies.moves.add(&audit.view, bundle, &mut thread.tokens);
    chain.read(number, moved);
    let coins = chain.read(number, native::coins_of(audit, bundle)).flatten();
    if let Some(coins) = &coins {
        bodies.native.add(bundle, coins);
    }
    bodies.facts.add(bundle, coins.as_ref(), &mut thread.accounts);
}
