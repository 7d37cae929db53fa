//! What was asked of the service, for `/status`: rates, operations, slow requests.

use std::time::Duration;

use serde::Serialize;

use crate::clock;
use crate::http::{OperationFigures, SLOW, SlowRequest, TrafficFigures};

/// Operations that are shown.
const OPERATIONS_MAX: usize = 15;

/// Counts since the start, and rates.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestsReport {
    answered: u64,
    failed: u64,
    per_second1m: f64,
    per_second5m: f64,
    failed_per_second1m: f64,
    failed_per_second5m: f64,
    underway: usize,
    connections: usize,
    by_operation: Vec<OperationReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationReport {
    operation: String,
    answered: u64,
    failed: u64,
    mean_ms: f64,
    median_ms: f64,
    p99_ms: f64,
}

/// Requests that took long.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SlowReport {
    over_ms: u128,
    count: u64,
    latest: Vec<SlowLine>,
    longest: Vec<SlowLine>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SlowLine {
    operation: String,
    request: String,
    status: u16,
    ms: f64,
    whole_ms: f64,
    bytes: u64,
    at: u64,
}

impl RequestsReport {
    pub(super) fn of(figures: &TrafficFigures) -> Self {
        let mut operations: Vec<&OperationFigures> = figures.operations.iter().collect();
        // Those first that the service was busy with longest.
        operations.sort_by(|one, other| other.sum.total_cmp(&one.sum));
        operations.truncate(OPERATIONS_MAX);
        Self {
            answered: figures.answered,
            failed: figures.failed,
            per_second1m: rounded(figures.minute.answered),
            per_second5m: rounded(figures.five_minutes.answered),
            failed_per_second1m: rounded(figures.minute.failed),
            failed_per_second5m: rounded(figures.five_minutes.failed),
            underway: figures.underway,
            connections: figures.connections,
            by_operation: operations.into_iter().map(OperationReport::of).collect(),
        }
    }
}

impl OperationReport {
    fn of(figures: &OperationFigures) -> Self {
        Self {
            operation: figures.name.clone(),
            answered: figures.answered,
            failed: figures.failed,
            mean_ms: rounded(1000.0 * figures.sum / figures.answered.max(1) as f64),
            median_ms: rounded(1000.0 * figures.median),
            p99_ms: rounded(1000.0 * figures.p99),
        }
    }
}

impl SlowReport {
    pub(super) fn of(figures: &TrafficFigures) -> Self {
        let lines = |kept: &[SlowRequest]| kept.iter().map(SlowLine::of).collect();
        Self {
            over_ms: SLOW.as_millis(),
            count: figures.slow,
            latest: lines(&figures.slow_latest),
            longest: lines(&figures.slow_longest),
        }
    }
}

impl SlowLine {
    fn of(request: &SlowRequest) -> Self {
        Self {
            operation: request.operation.clone(),
            request: request.target.clone(),
            status: request.status,
            ms: milliseconds(request.own),
            whole_ms: milliseconds(request.whole),
            bytes: request.bytes,
            // Whole seconds are exact.
            at: clock::unix_seconds(request.at) as u64,
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1000.0)
}

/// To thousandths: more is noise.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
