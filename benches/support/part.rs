//! Chains of which parts are left away, so that differences tell what a part costs.
#![allow(clippy::panic, reason = "a bench that cannot go on stops")]

use quarry::model::{Bundle, TokenEvent, Topics};

/// How much of the chain is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Transactions,
    Logs,
    Tokens,
    All,
}

impl Part {
    pub(crate) fn of_environment() -> Self {
        match std::env::var("QUARRY_BENCH_PART").as_deref() {
            Err(_) | Ok("all") => Self::All,
            Ok("tokens") => Self::Tokens,
            Ok("logs") => Self::Logs,
            Ok("transactions") => Self::Transactions,
            Ok(other) => panic!("no part of the chain: {other}"),
        }
    }

    /// What is in the names of files of a chain of which a part is kept.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Transactions => "-transactions",
            Self::Logs => "-without-transfers",
            Self::Tokens => "-tokens",
            Self::All => "",
        }
    }

    /// Leaves away of a block what is not kept.
    pub(crate) fn cut(self, mut bundle: Bundle) -> Bundle {
        if self < Self::All {
            bundle.openings = None;
        }
        for log in bundle.receipts.iter_mut().flat_map(|receipt| &mut receipt.logs) {
            if self == Self::Logs && TokenEvent::of(&log.address, &log.topics, &log.data).is_some() {
                // Another signature, as long and as frequent.
                let mut topics = log.topics.to_vec();
                if let Some(first) = topics.first_mut() {
                    *first = !*first;
                }
                log.topics = Topics::new(&topics).expect("as many topics");
            }
        }
        if self == Self::Transactions {
            bundle
                .receipts
                .iter_mut()
                .for_each(|receipt| receipt.logs.clear());
        }
        bundle
    }
}
