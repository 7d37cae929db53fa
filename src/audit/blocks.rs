//! Every block read back whole: hash chain, roots, arrays, look-ups by hash; and what the lists must hold for it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::days::DaySums;
use super::expected::{self, Dense, Known};
use super::sums::{Sums, fingerprint};
use super::{Audit, Check, Tally, arrays, tokens};
use crate::machine;
use crate::model::Bundle;
use crate::sync::verify::verify;

/// Blocks that a thread takes at a time.
const BLOCKS: u64 = 64;

pub(super) fn run(audit: &Audit<'_>, sums: &Sums, moves: &Sums, days: &DaySums) -> Vec<Check> {
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
                let mut terms = Known::new(&dense);
                let mut known = tokens::Known::new();
                loop {
                    let begin = next.fetch_add(BLOCKS, Ordering::Relaxed);
                    if begin > last {
                        break;
                    }
                    for number in begin..=last.min(begin + (BLOCKS - 1)) {
                        let bundle = block(audit, number, sums, &mut terms, &chain, &lookups);
                        if let Some(bundle) = bundle {
                            days.add(&bundle);
                            chain.read(number, tokens::moves(&audit.view, &bundle, &mut known, moves));
                        }
                    }
                }
            });
        }
    });
    vec![chain.done(), lookups.done()]
}

fn block(
    audit: &Audit<'_>,
    number: u64,
    sums: &Sums,
    terms: &mut Known<'_>,
    chain: &Tally<'_>,
    lookups: &Tally<'_>,
) -> Option<Bundle> {
    chain.items(1);
    let bundle = chain.read(number, audit.reader.bundle(number))??;
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
    let mut item = |term, ordinal| sums.add(number, fingerprint((term, ordinal)));
    chain.read(number, expected::postings(audit, &bundle, terms, &mut item));
    Some(bundle)
}
