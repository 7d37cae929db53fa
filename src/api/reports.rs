//! `/health`, `/ready`, `/status`: how the service and its chains are.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde::Serialize;

use crate::http::header::{CONTENT_TYPE, HeaderValue};
use crate::http::{HttpError, Response, StatusCode, json_response};
use crate::model::ChainName;
use crate::query::Reader;
use crate::status::TokenFigures;

use super::context::{Chains, Settings};
use super::docs_page::render_docs_page;
use super::faults::query_failed;
use super::openapi::render_openapi;
use super::withheld::{Withheld, withheld};

/// What is known of a chain at the moment of asking.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ChainReport {
    chain_id: Option<u64>,
    node_head: Option<u64>,
    indexed: Option<u64>,
    indexed_hash: Option<String>,
    finalized: Option<u64>,
    lag: Option<u64>,
    rate: f64,
    eta_seconds: Option<u64>,
    verified: Vec<VerifiedRange>,
    store_bytes: u64,
    traces: bool,
    node_up: bool,
    following: bool,
    message: String,
    reorgs: u64,
    verification_failures: u64,
    tokens: Option<TokenReport>,
    native_ledger: String,
    withheld: Vec<Withheld>,
}

/// What is found out about a chain's tokens.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenReport {
    known: u64,
    judged: u64,
    exact: u64,
    not_exact: u64,
    waiting: u64,
    questions: u64,
    errors: u64,
}

impl TokenReport {
    fn of(figures: &TokenFigures) -> Self {
        let (exact, not_exact) = (figures.exact(), figures.inexact());
        Self {
            known: figures.known(),
            judged: exact + not_exact,
            exact,
            not_exact,
            waiting: figures.waiting(),
            questions: figures.questions.load(Ordering::Relaxed),
            errors: figures.errors.load(Ordering::Relaxed),
        }
    }
}

/// Blocks that are stored, every one of them verified before it was; both ends included.
#[derive(Debug, Serialize)]
struct VerifiedRange {
    from: u64,
    to: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Readiness {
    ready: bool,
    indexed: Option<u64>,
    node_head: Option<u64>,
    lag: Option<u64>,
}

#[derive(Serialize)]
struct Report<T> {
    status: &'static str,
    chains: BTreeMap<&'static str, T>,
}

/// The process answers.
pub(super) fn health() -> Response {
    json_response(StatusCode::OK, br#"{"status":"ok"}"#.to_vec())
}

/// The media type of `/docs`.
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// The endpoint list for programs.
pub(super) fn openapi() -> Response {
    static BODY: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(render_openapi().to_string()));
    json_response(StatusCode::OK, BODY.clone())
}

/// The endpoint list for people.
pub(super) fn docs() -> Response {
    static BODY: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(render_docs_page()));
    let mut response = json_response(StatusCode::OK, BODY.clone());
    let html = HeaderValue::from_static(HTML);
    response.headers_mut().insert(CONTENT_TYPE, html);
    response
}

/// Every configured chain is near its node's head.
pub(super) fn ready(chains: &dyn Chains, settings: &Settings) -> Result<Response, HttpError> {
    let chains: BTreeMap<_, _> = ChainName::ALL
        .into_iter()
        .filter_map(|chain| Some((chain.as_str(), readiness(chains, chain, settings)?)))
        .collect();
    let ready = !chains.is_empty() && chains.values().all(|chain| chain.ready);
    let (code, status) = if ready {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready")
    };
    let mut response = render(code, &Report { status, chains })?;
    if !ready {
        let seconds = crate::http::header_number(HttpError::RETRY_AFTER_SECONDS);
        response
            .headers_mut()
            .insert(crate::http::header::RETRY_AFTER, seconds);
    }
    Ok(response)
}

/// All that is known of every configured chain.
pub(super) fn status(chains: &dyn Chains) -> Result<Response, HttpError> {
    let mut reports = BTreeMap::new();
    for chain in ChainName::ALL {
        let reader = chains.reader(chain);
        let Some(mut report) = chain_report(chains, chain, reader.as_ref()) else {
            continue;
        };
        if let Some(reader) = reader.filter(|reader| !reader.is_empty()) {
            report.withheld = withheld(&reader).map_err(query_failed)?;
        }
        reports.insert(chain.as_str(), report);
    }
    let report = Report {
        status: "ok",
        chains: reports,
    };
    render(StatusCode::OK, &report)
}

fn render<T: Serialize>(code: StatusCode, report: &Report<T>) -> Result<Response, HttpError> {
    let body = serde_json::to_vec(report).map_err(|error| HttpError::internal(format!("render: {error}")))?;
    Ok(json_response(code, body))
}

fn readiness(chains: &dyn Chains, chain: ChainName, settings: &Settings) -> Option<Readiness> {
    let report = chain_report(chains, chain, chains.reader(chain).as_ref())?;
    // A node that has not been heard of yet could be anywhere; no node at all is never ahead.
    let node_head = match report.node_head {
        None if chains.status(chain).is_none() => report.indexed,
        node_head => node_head,
    };
    let lag = report
        .indexed
        .zip(node_head)
        .map(|(indexed, head)| head.saturating_sub(indexed));
    Some(Readiness {
        ready: lag.is_some_and(|lag| lag <= settings.ready_lag_blocks_max),
        indexed: report.indexed,
        node_head,
        lag,
    })
}

fn chain_report(chains: &dyn Chains, chain: ChainName, reader: Option<&Reader>) -> Option<ChainReport> {
    let status = chains.status(chain);
    if reader.is_none() && status.is_none() {
        return None;
    }
    let mut report = ChainReport::default();
    if let Some(reader) = reader {
        report.chain_id = Some(reader.chain_id());
        report.traces = reader.has_traces();
        report.store_bytes = chains.store_bytes(chain);
        report.native_ledger = native_ledger(reader);
        if !reader.is_empty() {
            let head = reader.head();
            report.indexed = Some(head.number);
            report.indexed_hash = Some(const_hex::encode_prefixed(head.hash));
            report.finalized = reader.finalized();
            report.verified = vec![VerifiedRange {
                from: reader.first_block(),
                to: head.number,
            }];
        }
    }
    if let Some(status) = status {
        report.node_head = status.node_head();
        report.rate = status.blocks_per_second();
        report.node_up = status.node_up();
        report.following = status.following();
        report.message = status.message();
        report.reorgs = status.reorgs();
        report.verification_failures = status.verification_failures();
        report.tokens = Some(TokenReport::of(status.tokens()));
    }
    report.lag = report.node_head.map(|head| match report.indexed {
        Some(indexed) => head.saturating_sub(indexed),
        None => head.saturating_add(1),
    });
    report.eta_seconds = report.lag.and_then(|lag| eta_seconds(lag, report.rate));
    Some(report)
}

/// One sentence on the ledger of native balances.
fn native_ledger(reader: &Reader) -> String {
    match reader.native_fault() {
        Some(fault) => format!(
            "not kept since block {}: {}; balances are asked of the node",
            fault.block,
            fault.reason.sentence()
        ),
        None if !reader.has_traces() => "waits for traces".to_owned(),
        None => "kept".to_owned(),
    }
}

fn eta_seconds(lag: u64, rate: f64) -> Option<u64> {
    match lag {
        0 => Some(0),
        // Both are far from the bounds of either type for any chain that exists; `as` saturates.
        _ if rate > 0.0 => Some((lag as f64 / rate).ceil() as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates() {
        assert_eq!(eta_seconds(0, 0.0), Some(0));
        assert_eq!(eta_seconds(10, 0.0), None);
        assert_eq!(eta_seconds(10, 4.0), Some(3));
    }
}
