//! What a generated chain looks like, to hold against measurements.md section 0.

use super::emitters::CommonSignatures;
use super::generator::Generator;
use quarry::model::{Address, B256};
use std::collections::BTreeMap;

/// Counts over a chain.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    pub(crate) blocks: u64,
    pub(crate) transactions: u64,
    pub(crate) without_log: u64,
    pub(crate) logs: u64,
    pub(crate) topics: u64,
    pub(crate) data_bytes: u64,
    /// Logs whose topic1 has no leading zeros: a random word.
    pub(crate) random_topics: u64,
    pub(crate) by_emitter: BTreeMap<Address, u64>,
    pub(crate) by_signature: BTreeMap<B256, u64>,
    /// Logs by named emitter: hot, medium, rare, share.
    pub(crate) named_emitters: [u64; 4],
    /// Logs with the named wallet as topic1; with the hot token's wallet as topic1, as topic2; with the hot one.
    pub(crate) named_wallets: [u64; 4],
}

impl Shares {
    pub(crate) fn of(generator: Generator) -> Self {
        let named = *generator.named();
        let mut shares = Self::default();
        for bundle in generator {
            shares.blocks += 1;
            shares.transactions += bundle.block.transactions.len() as u64;
            for receipt in &bundle.receipts {
                shares.without_log += u64::from(receipt.logs.is_empty());
                for log in &receipt.logs {
                    let topic = |place: usize| log.topics.get(place).copied();
                    shares.logs += 1;
                    shares.topics += log.topics.len() as u64;
                    shares.data_bytes += log.data.len() as u64;
                    shares.random_topics += u64::from(topic(1).is_some_and(|word| word[..12] != [0; 12]));
                    *shares.by_emitter.entry(log.address).or_default() += 1;
                    *shares
                        .by_signature
                        .entry(topic(0).unwrap_or_default())
                        .or_default() += 1;
                    let emitters = [named.hot, named.medium, named.rare, named.share];
                    for (count, emitter) in shares.named_emitters.iter_mut().zip(emitters) {
                        *count += u64::from(log.address == emitter);
                    }
                    let hits = [
                        topic(1) == Some(named.wallet),
                        topic(1) == Some(named.hot_token_wallet),
                        topic(2) == Some(named.hot_token_wallet),
                        topic(1) == Some(named.hot_wallet),
                    ];
                    for (count, hit) in shares.named_wallets.iter_mut().zip(hits) {
                        *count += u64::from(hit);
                    }
                }
            }
        }
        shares
    }

    fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.logs as f64
    }
}

impl std::fmt::Display for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let logs = self.logs as f64;
        writeln!(
            f,
            "{} blocks, {} logs ({:.1} a block)",
            self.blocks,
            self.logs,
            logs / self.blocks as f64
        )?;
        writeln!(
            f,
            "{:.3} transactions a log, {:.1} % of them without one",
            self.transactions as f64 / logs,
            100.0 * self.without_log as f64 / self.transactions as f64
        )?;
        writeln!(
            f,
            "{:.2} topics and {:.1} bytes of data a log; random topic1 in {:.1} %",
            self.topics as f64 / logs,
            self.data_bytes as f64 / logs,
            self.percent(self.random_topics)
        )?;
        writeln!(
            f,
            "{} emitters, {} signatures",
            self.by_emitter.len(),
            self.by_signature.len()
        )?;
        let common = CommonSignatures::new();
        for (name, signature) in [
            ("Transfer", common.transfer),
            ("Approval", common.approval),
            ("Swap v2", common.swap_v2),
            ("Sync", common.sync),
            ("Swap v3", common.swap_v3),
        ] {
            let count = self.by_signature.get(&signature).copied().unwrap_or_default();
            writeln!(f, "  {name} {:.1} %", self.percent(count))?;
        }
        let [hot, medium, rare, share] = self.named_emitters;
        writeln!(
            f,
            "hot {:.1} %, share {:.1} %",
            self.percent(hot),
            self.percent(share)
        )?;
        writeln!(f, "medium {medium}, rare {rare}")?;
        let [wallet, first, second, hot] = self.named_wallets;
        write!(
            f,
            "wallet {wallet}, hot token's wallet {first} + {second}, hot wallet {:.1} %",
            self.percent(hot)
        )
    }
}
