//! The sentences of the contract, and what the read side's failures become.

use std::time::{Duration, Instant};

use crate::clock;
use crate::http::{ErrorStatus, HttpError};
use crate::model::ChainName;
use crate::query::QueryError;

use super::context::UpstreamError;

pub(crate) const INVALID_ADDRESS: &str = "Invalid address format";
pub(crate) const INVALID_CONTRACT_ADDRESS: &str = "Invalid contract address format";
pub(crate) const INVALID_HASH: &str = "Invalid transaction hash format";
pub(crate) const INVALID_TOPIC: &str = "Invalid topic format";
pub(crate) const TOPIC_REQUIRED: &str = "At least one topic is required";
pub(crate) const INVALID_RANGE: &str = "Invalid block range";
pub(crate) const REVERSED_DATES: &str = "endDate is before startDate";
pub(crate) const BLOCK_NOT_FOUND: &str = "Block not found";
pub(crate) const TRANSACTION_NOT_FOUND: &str = "Transaction not found";
pub(crate) const CONTRACT_NOT_FOUND: &str = "Contract not found";
pub(crate) const NOT_VERIFIED: &str = "Contract source code not verified";
pub(crate) const TOKEN_NOT_FOUND: &str = "Token not found";
pub(crate) const SUPPLY_FAILED: &str = "Failed to fetch token total supply";
pub(crate) const UPSTREAM_FAILED: &str = "Upstream node error";
pub(crate) const INVALID_OFFSET: &str = "offset must be one of 10, 15, 30, 45";
/// Most contracts of one request.
pub(crate) const CONTRACTS_MAX: usize = 5;
pub(crate) const TOO_MANY_CONTRACTS: &str = "At most 5 contract addresses are allowed";
pub(crate) const TWO_FILTERS: &str = "Duplicate parameter: contractaddress";
pub(crate) const TOO_MANY_TRANSFERS: &str = "The account has too many transfers to add up in time";
pub(crate) const TOO_MANY_TOKENS: &str = "The account holds too many tokens to look through in time";
pub(crate) const TOO_FAR: &str =
    "The page is too far into the list to be reached in time, go on from the page before by its cursor";
pub(crate) const TOO_MANY_TRANSFERS_OF_ALL: &str =
    "The account has too many transfers to add up in time, ask for one token by contractaddress";

pub(crate) const PRICE_NOT_AVAILABLE: &str = "Price data not available";
pub(crate) const ADDRESS_NOT_FOUND: &str = "Address not found";
/// Most accounts of one request.
pub(crate) const ADDRESSES_MAX: usize = 100;
pub(crate) const TOO_MANY_ADDRESSES: &str = "At most 100 addresses are allowed";

/// 503: what was asked for is on the chain and not in the store yet.
pub(crate) fn still_indexing() -> HttpError {
    HttpError::unavailable("Data for the requested range is still being indexed")
}

/// Seconds until it makes sense to ask again for what this store never gets: only an operator can change that.
const RETRY_AFTER_NEVER_SECONDS: u64 = 3600;

/// 503 in the same words: this store never gets what was asked for.
pub(crate) fn never_indexed() -> HttpError {
    still_indexing().with_retry_after(RETRY_AFTER_NEVER_SECONDS)
}

/// 503: what nobody can tell. In an operation's own words, but where those are of a node, which is not asked.
pub(crate) fn never_told(text: &'static str) -> HttpError {
    match text {
        UPSTREAM_FAILED => never_indexed(),
        own => HttpError::unavailable(own).with_retry_after(RETRY_AFTER_NEVER_SECONDS),
    }
}

/// Seconds until it makes sense to ask again for what needs traces that the node did not tell: they are filled in once it does.
const RETRY_AFTER_TRACES_SECONDS: u64 = 60;

/// 503: the store was filled without traces and this needs them.
pub(crate) fn needs_traces() -> HttpError {
    still_indexing().with_retry_after(RETRY_AFTER_TRACES_SECONDS)
}

/// 503: the block came from a source that does not say who sealed its uncles.
pub(crate) fn needs_uncles() -> HttpError {
    never_indexed()
}

/// 503: a block came from a source that does not say how large it is.
pub(crate) fn needs_sizes() -> HttpError {
    never_indexed()
}

/// 503: nothing is served under this name.
pub(crate) fn not_configured(chain: ChainName) -> HttpError {
    HttpError::unavailable(format!("Chain {chain} is not configured"))
}

/// 400: no chain has this name.
pub(crate) fn invalid_chain() -> HttpError {
    HttpError::bad_request("Invalid chain")
}

/// 400: the operation speaks of mainnet only.
pub(crate) fn unsupported(chain: ChainName) -> HttpError {
    HttpError::bad_request(format!("Chain {chain} is not supported for this operation"))
}

/// What a walk becomes that is not through in time, where it has no words of its own.
pub(crate) const TOOK_TOO_LONG: &str = "The query took too long, narrow its block range";

/// What a failed read becomes. A store that cannot be read is our fault; a cursor is the client's.
pub(crate) fn query_failed(error: QueryError) -> HttpError {
    if matches!(error, QueryError::CursorOrphaned) {
        HttpError::bad_request("Invalid cursor parameter")
    } else if matches!(error, QueryError::TimedOut) {
        HttpError::unavailable(TOOK_TOO_LONG)
    } else if matches!(error, QueryError::NeedsTraces) {
        needs_traces()
    } else {
        HttpError::internal(error.to_string())
    }
}

/// What `look` finds until so long from now; 503 with this text where that is too short.
pub(crate) fn in_time<T>(
    max: Duration,
    text: &'static str,
    look: impl FnOnce(Instant) -> Result<T, QueryError>,
) -> Result<T, HttpError> {
    look(clock::now() + max).map_err(|error| late(text, error, query_failed))
}

/// What a read becomes that may be late: 503 with this text where it is, else what `failed` makes of it.
pub(crate) fn late(
    text: &'static str,
    error: QueryError,
    failed: impl FnOnce(QueryError) -> HttpError,
) -> HttpError {
    match error {
        QueryError::TimedOut => HttpError::unavailable(text),
        error => failed(error),
    }
}

/// What a node that did not answer becomes.
pub(crate) fn upstream_failed(error: &UpstreamError) -> HttpError {
    upstream_failed_with(UPSTREAM_FAILED, error)
}

/// The same in an operation's own words.
pub(crate) fn upstream_failed_with(text: &'static str, error: &UpstreamError) -> HttpError {
    let (bad, late) = (ErrorStatus::BadGateway, ErrorStatus::GatewayTimeout);
    let said = error.to_string();
    match error {
        UpstreamError::Failed(_) => HttpError::new(bad, text).with_detail(said),
        UpstreamError::TimedOut => HttpError::new(late, text).with_detail(said),
        UpstreamError::Untold(_) => HttpError::new(bad, text).with_reason(said),
    }
}

/// What a question to the node becomes where there is no node: to the client as if it failed.
pub(crate) fn no_node() -> HttpError {
    upstream_failed(&UpstreamError::Untold("no node is configured".to_owned()))
}

/// Writes to the log what only it may know of a refusal: our faults as errors, the node's as warnings, and what nobody can tell where
/// everything is told.
pub(crate) fn log_refusal(request_id: &str, path: &str, error: &HttpError) {
    match error.status() {
        _ if error.detail().is_none() => {}
        ErrorStatus::Internal => tracing::error!(target: "quarry::api", request_id, path, %error, "refused"),
        _ if error.is_fault() => tracing::warn!(target: "quarry::api", request_id, path, %error, "refused"),
        _ => tracing::debug!(target: "quarry::api", request_id, path, %error, "refused"),
    }
}
