//! The questions of measurements.md section 2, asked of the synthetic chain.

use super::generator::GeneratorConfig;
use super::logs::Named;
use quarry::model::U256;
use quarry::query::{LogQuery, Operator};
use std::sync::atomic::{AtomicU64, Ordering};

/// A question, and how many rows its answer has at most.
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) query: LogQuery,
}

impl Asked {
    /// Whether no walk over the same expression may be of use: what one over long lists finds is kept.
    pub(crate) fn is_asked_anew(&self) -> bool {
        self.name.starts_with("Q7") && !self.name.ends_with(", again")
    }
}

/// The same question as another expression: beside each value of topic 1 that is asked for, another one that no log has.
pub(crate) fn made_anew(query: &LogQuery) -> LogQuery {
    static TIMES: AtomicU64 = AtomicU64::new(1);
    let times = TIMES.fetch_add(1, Ordering::Relaxed);
    let mut query = query.clone();
    if let [_, wallets, ..] = &mut query.topics
        && !wallets.is_empty()
    {
        wallets.push(
            U256::from(times)
                .wrapping_mul(U256::from(0x9e37_79b9_7f4a_7c15_u64))
                .wrapping_add(U256::MAX / U256::from(3))
                .into(),
        );
    }
    query
}

/// All questions; `config` is the chain's.
pub(crate) fn questions(named: &Named, config: &GeneratorConfig) -> Vec<Asked> {
    let last = config.first_block + config.blocks - 1;
    let all = LogQuery {
        first_block: 0,
        last_block: last,
        limit: 10_000,
        ..LogQuery::default()
    };
    let by = |address| LogQuery {
        address: Some(address),
        ..all.clone()
    };
    let topics = |topics: [Option<_>; 4]| LogQuery {
        topics: topics.map(|topic: Option<_>| topic.into_iter().collect()),
        ..all.clone()
    };
    let signatures = named.signatures;
    let transfer = topics([Some(signatures.transfer), None, None, None]);
    // 200 blocks in the middle of the chain.
    let middle = config.first_block + config.blocks / 2;
    let ranged = |query: LogQuery| LogQuery {
        first_block: middle,
        last_block: middle + 199,
        ..query
    };
    let mut either = topics([
        None,
        Some(named.hot_token_wallet),
        Some(named.hot_token_wallet),
        None,
    ]);
    either.address = Some(named.hot);
    either.operators = vec![(1, 2, Operator::Or)];
    let mut both = topics([
        Some(signatures.transfer),
        Some(named.hot_token_wallet),
        None,
        None,
    ]);
    both.address = Some(named.hot);
    let page = |query: LogQuery, page: u64, limit: usize| LogQuery {
        skip: (page - 1) * limit as u64,
        limit,
        ..query
    };
    let apart = topics([Some(signatures.sync), Some(named.hot_wallet), None, None]);
    let swapped = topics([Some(signatures.swap_v3), Some(named.hot_wallet), None, None]);
    // One value with a list of pairs and one that has none.
    let mixed = |signature| LogQuery {
        operators: vec![(1, 2, Operator::Or)],
        ..topics([
            Some(signature),
            Some(named.hot_wallet),
            Some(named.hot_token_wallet),
            None,
        ])
    };
    let mut asked = vec![
        ("Q1 hot emitter, 10,000 rows", by(named.hot)),
        ("Q1 medium, 10,000 rows", by(named.medium)),
        ("Q1 medium, 1,000 rows", page(by(named.medium), 1, 1_000)),
        ("Q1 medium, 100 rows", page(by(named.medium), 1, 100)),
        ("Q1 rare, 50 rows", by(named.rare)),
        ("Q2 Transfer, page 1 x 10,000", page(transfer.clone(), 1, 10_000)),
        (
            "Q2 Transfer, page 100 x 10,000",
            page(transfer.clone(), 100, 10_000),
        ),
        ("Q2 Transfer, page 1 x 100", page(transfer.clone(), 1, 100)),
        (
            "Q2 Transfer, page 10,000 x 100",
            page(transfer.clone(), 10_000, 100),
        ),
        ("Q2 hot, page 1 x 10,000", page(by(named.hot), 1, 10_000)),
        ("Q2 hot, page 100 x 10,000", page(by(named.hot), 100, 10_000)),
        ("Q2 hot, page 1 x 100", page(by(named.hot), 1, 100)),
        ("Q2 hot, page 10,000 x 100", page(by(named.hot), 10_000, 100)),
        ("Q3 Transfer, 200 blocks", ranged(transfer)),
        (
            "Q3 Sync, 200 blocks",
            ranged(topics([Some(signatures.sync), None, None, None])),
        ),
        (
            "Q4 topic1 = wallet, whole chain",
            topics([None, Some(named.wallet), None, None]),
        ),
        ("Q5 address and topic0 and topic1", both),
        ("Q6 address and (topic1 or topic2)", either),
        ("Q7 Sync and hot wallet, no hit", apart.clone()),
        ("Q7 Sync and hot wallet, no hit, again", apart),
        ("Q7b Swap v3 and hot wallet", swapped.clone()),
        ("Q7b Swap v3 and hot wallet, again", swapped.clone()),
        (
            "Q7b Swap v3 and hot wallet, page 100 x 100",
            page(swapped.clone(), 100, 100),
        ),
        (
            "Q7b Swap v3 and hot wallet, page 100 x 100, again",
            page(swapped, 100, 100),
        ),
        ("Q7c Sync and (hot wallet or a rare one)", mixed(signatures.sync)),
        (
            "Q7c Swap v3 and (hot wallet or a rare one)",
            mixed(signatures.swap_v3),
        ),
        (
            "Q7c Swap v3 and (hot wallet or a rare one), page 100 x 100",
            page(mixed(signatures.swap_v3), 100, 100),
        ),
    ];
    // Only what a chain this long has.
    let hot = config.blocks * u64::from(config.logs_per_block) / 8;
    let transfers = config.blocks * u64::from(config.logs_per_block) * 45 / 100;
    asked.retain(|(name, query)| {
        let rows = if name.starts_with("Q2 hot") {
            hot
        } else {
            transfers
        };
        query.skip + query.limit as u64 <= rows
    });
    asked
        .into_iter()
        .map(|(name, query)| Asked {
            name: name.to_owned(),
            query,
        })
        .collect()
}
