//! The service over real sockets: transport behaviour, what is decided before a store is read, and the
//! built operations over a real store.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests, which clippy does not take for tests"
)]

#[path = "http/accounts.rs"]
mod accounts;
#[path = "http/balances.rs"]
mod balances;
#[path = "http/branches.rs"]
mod branches;
#[path = "http/caching.rs"]
mod caching;
#[path = "http/chain.rs"]
mod chain;
#[path = "http/client.rs"]
mod client;
#[path = "http/compat.rs"]
mod compat;
#[path = "http/contracts.rs"]
mod contracts;
#[path = "http/crowded.rs"]
mod crowded;
#[path = "http/days.rs"]
mod days;
#[path = "http/documentation.rs"]
mod documentation;
#[path = "http/encoding.rs"]
mod encoding;
#[path = "http/ends.rs"]
mod ends;
#[path = "http/imported.rs"]
mod imported;
#[path = "http/kept.rs"]
mod kept;
#[path = "support/ledger.rs"]
mod ledger;
#[path = "support/lists.rs"]
mod lists;
#[path = "http/log.rs"]
mod log;
#[path = "http/long_lists.rs"]
mod long_lists;
#[path = "http/malformed.rs"]
mod malformed;
#[path = "http/metrics.rs"]
mod metrics;
#[path = "http/mined.rs"]
mod mined;
#[path = "http/multi_tokens.rs"]
mod multi_tokens;
#[path = "support/pace.rs"]
mod pace;
#[path = "http/parameters.rs"]
mod parameters;
#[path = "support/participants.rs"]
mod participants;
#[path = "http/passed_on.rs"]
mod passed_on;
#[path = "support/plain.rs"]
mod plain;
#[path = "http/prices.rs"]
mod prices;
#[path = "http/rewards.rs"]
mod rewards;
#[path = "http/rpc.rs"]
mod rpc;
#[path = "http/scattered_lists.rs"]
mod scattered_lists;
#[path = "http/short_lists.rs"]
mod short_lists;
#[path = "support/skipped.rs"]
mod skipped;
#[path = "http/token_lists.rs"]
mod token_lists;
#[path = "http/topics.rs"]
mod topics;
#[path = "http/transport.rs"]
mod transport;
#[path = "http/uploads.rs"]
mod uploads;
#[path = "http/verdicts.rs"]
mod verdicts;
