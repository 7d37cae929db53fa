//! The dialect of Etherscan's clients (answers.md section 11): `/api?module=...&action=...`, `/v2/api?chainid=...` and
//! `/v2/chainlist`.
//!
//! Each action reads its parameters and writes its result; what lies between is found where the other dialects find it
//! (`desk`, `query`). Answers stand in an envelope of `status`, `message` and `result`, which says no as well: the HTTP
//! status is 200 for everything but 429 and 503.

mod account;
mod actions;
mod ask;
mod block;
mod chainlist;
mod contract;
mod envelope;
mod gas;
mod items;
mod logs;
mod proxy;
mod service;
mod stats;
mod token;
mod transaction;

pub use actions::{Action, actions};
pub use service::{Compat, PATHS};
