//! `/health`, `/ready`, `/status`: how the service and its chains are.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde::Serialize;

use crate::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, VARY,
};
use crate::http::{HttpError, Request, Response, StatusCode, Traffic, json_response, prefers};
use crate::machine;
use crate::model::ChainName;
use crate::query::Reader;
use crate::status::{ReplicaState, TokenFigures};

use super::docs_page::docs_page;
use super::openapi::render_openapi;
use super::requests::{RequestsReport, SlowReport};
use super::web_page::{WebPage, status_page};
use super::withheld::{Withheld, withheld};
use crate::desk::context::{Chains, Settings};

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
    verified: Vec<StoredRange>,
    trusted: Vec<StoredRange>,
    store_bytes: u64,
    traces: bool,
    node_up: bool,
    following: bool,
    message: String,
    disk_full: bool,
    stopped: bool,
    reorgs: u64,
    verification_failures: u64,
    tokens: Option<TokenReport>,
    replica: Option<ReplicaReport>,
    native_ledger: String,
    withheld: Vec<Withheld>,
}

/// How far a replica is behind its writer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReplicaReport {
    writer_indexed: Option<u64>,
    behind: Option<u64>,
    seen_seconds_ago: f64,
    writer_seconds_ago: Option<f64>,
}

impl ReplicaReport {
    fn of(state: &ReplicaState, next: u64) -> Self {
        // Milliseconds are enough.
        let rounded = |seconds: f64| (seconds * 1000.0).round() / 1000.0;
        Self {
            writer_indexed: state.writer_indexed,
            behind: state.writer_indexed.map(|writer| missing(next, writer)),
            seen_seconds_ago: rounded(state.seen_ago()),
            writer_seconds_ago: state.writer_ago().map(rounded),
        }
    }
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

/// Blocks that are stored; both ends included.
#[derive(Debug, Serialize)]
struct StoredRange {
    from: u64,
    to: u64,
}

impl From<RangeInclusive<u64>> for StoredRange {
    fn from(blocks: RangeInclusive<u64>) -> Self {
        let (from, to) = blocks.into_inner();
        Self { from, to }
    }
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
struct ReadyReport {
    status: &'static str,
    chains: BTreeMap<&'static str, Readiness>,
}

/// What `/status` says: the chains, and what was asked of the service.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceReport {
    status: &'static str,
    chains: BTreeMap<&'static str, ChainReport>,
    version: &'static str,
    uptime_seconds: u64,
    memory_bytes: Option<u64>,
    requests: RequestsReport,
    slow: SlowReport,
}

/// The process answers.
pub(super) fn health() -> Response {
    json_response(StatusCode::OK, br#"{"status":"ok"}"#.to_vec())
}

/// The media type of pages for people.
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// Said of a chain whose report lacks what could not be read.
const UNREAD: &str =
    "not all of what this store holds and withholds is told here: reading it failed, the log says where";

/// Where things are, for programs and for those who ask without a browser.
const WAYS: &str = concat!(
    r#"{"name":"quarry","docs":"/docs","openapi":"/openapi.json","status":"/status","#,
    r#""health":"/health","ready":"/ready","metrics":"/metrics"}"#
);

/// `/`: a page where a browser asks, else where things are.
pub(super) fn home(request: &Request) -> Response {
    let mut response = if prefers(request.headers(), "text/html", "application/json") {
        page(status_page())
    } else {
        json_response(StatusCode::OK, WAYS.as_bytes().to_vec())
    };
    response
        .headers_mut()
        .append(VARY, HeaderValue::from_static("accept"));
    response
}

/// A page, with what keeps it from loading and running anything but itself.
fn page(page: &'static WebPage) -> Response {
    let mut response = json_response(StatusCode::OK, page.text());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    if let Ok(policy) = HeaderValue::from_str(page.policy()) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let options = HeaderName::from_static("x-content-type-options");
    headers.insert(options, HeaderValue::from_static("nosniff"));
    response
}

/// The endpoint list for programs.
pub(super) fn openapi() -> Response {
    static BODY: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(render_openapi().to_string()));
    json_response(StatusCode::OK, BODY.clone())
}

/// The endpoint list for people.
pub(super) fn docs() -> Response {
    page(docs_page())
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
    let mut response = render(code, &ReadyReport { status, chains })?;
    if !ready {
        let seconds = crate::http::header_number(HttpError::RETRY_AFTER_SECONDS);
        response
            .headers_mut()
            .insert(crate::http::header::RETRY_AFTER, seconds);
    }
    Ok(response)
}

/// All that is known of every configured chain, and what was asked of the service.
pub(super) fn status(chains: &dyn Chains, traffic: &Traffic) -> Result<Response, HttpError> {
    let mut reports = BTreeMap::new();
    for chain in ChainName::ALL {
        let reader = chains.reader(chain);
        let Some(mut report) = chain_report(chains, chain, reader.as_ref()) else {
            continue;
        };
        if let Some(reader) = reader.filter(|reader| !reader.is_empty()) {
            let has_node = chains.has_node(chain);
            // Nothing is claimed of what cannot be read.
            let ranges = reader.provenance().map(|told| {
                report.verified = told.verified.into_iter().map(StoredRange::from).collect();
                report.trusted = told.trusted.into_iter().map(StoredRange::from).collect();
            });
            let all = withheld(&reader, has_node, &mut report.withheld);
            if let Err(error) = ranges.and(all) {
                tracing::warn!(%chain, %error, "the status does not tell all that is in the store");
                if !report.message.is_empty() {
                    report.message.push_str("; ");
                }
                report.message.push_str(UNREAD);
            }
        }
        reports.insert(chain.as_str(), report);
    }
    let figures = traffic.figures();
    let report = ServiceReport {
        status: "ok",
        chains: reports,
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: figures.age.as_secs(),
        memory_bytes: machine::process_memory("VmRSS"),
        requests: RequestsReport::of(&figures),
        slow: SlowReport::of(&figures),
    };
    render(StatusCode::OK, &report)
}

fn render(code: StatusCode, report: &impl Serialize) -> Result<Response, HttpError> {
    let body = serde_json::to_vec(report).map_err(|error| HttpError::internal(format!("render: {error}")))?;
    Ok(json_response(code, body))
}

fn readiness(chains: &dyn Chains, chain: ChainName, settings: &Settings) -> Option<Readiness> {
    let report = chain_report(chains, chain, chains.reader(chain).as_ref())?;
    let lag = report.lag.filter(|_| report.indexed.is_some());
    // A node that has not been heard of yet could be anywhere; what nothing syncs is as far as it will be.
    let near = match chains.status(chain) {
        None => report.indexed.is_some(),
        Some(_) => lag.is_some_and(|lag| lag <= settings.ready_lag_blocks_max),
    };
    // A replica that sees nothing new any more says so, whatever it knew last.
    let sees = report
        .replica
        .is_none_or(|replica| replica.seen_seconds_ago <= settings.replica_unseen_max.as_secs_f64());
    Some(Readiness {
        // One that ended by itself is not followed by being near the head once.
        ready: sees && !report.stopped && near,
        indexed: report.indexed,
        node_head: report.node_head,
        lag,
    })
}

fn chain_report(chains: &dyn Chains, chain: ChainName, reader: Option<&Reader>) -> Option<ChainReport> {
    let status = chains.status(chain);
    if reader.is_none() && status.is_none() {
        return None;
    }
    let mut report = ChainReport::default();
    let next = next_block(reader);
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
        }
    }
    if let Some(status) = &status {
        report.node_head = status.node_head();
        report.rate = status.blocks_per_second();
        report.node_up = status.node_up();
        report.following = status.following();
        report.message = status.message();
        report.disk_full = status.disk_full();
        report.stopped = status.stopped();
        report.reorgs = status.reorgs();
        report.verification_failures = status.verification_failures();
        match status.replica() {
            Some(state) => report.replica = Some(ReplicaReport::of(&state, next)),
            None => report.tokens = Some(TokenReport::of(status.tokens())),
        }
    }
    report.lag = report.node_head.map(|head| missing(next, head));
    // The head stands still while call frames of stored blocks are filled in, and the rate is theirs.
    let filling = match (reader, status.as_ref().and_then(|status| status.filling_to())) {
        (Some(reader), Some(last)) => missing(reader.next_traced(), last),
        _ => 0,
    };
    report.eta_seconds = report
        .lag
        .and_then(|lag| eta_seconds(lag.saturating_add(filling), report.rate));
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
        None => match reader.native_differs() {
            Some(differs) => format!("differs: {}; balances are asked of the node", differs.reason),
            None => "kept".to_owned(),
        },
    }
}

/// The block after the last indexed one; of an empty store the one that it begins with.
pub(super) fn next_block(reader: Option<&Reader>) -> u64 {
    reader.map_or(0, |reader| match reader.is_empty() {
        true => reader.first_block(),
        false => reader.head().number.saturating_add(1),
    })
}

/// How many blocks there are from `next` to `last`.
pub(super) const fn missing(next: u64, last: u64) -> u64 {
    last.saturating_add(1).saturating_sub(next)
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
