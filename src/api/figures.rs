//! `/metrics`: everything that is counted, as a page for Prometheus.

use std::sync::atomic::Ordering;

use crate::clock;
use crate::http::header::{CONTENT_TYPE, HeaderValue};
use crate::http::{HttpError, Response, StatusCode, json_response};
use crate::machine;
use crate::metrics::Page;
use crate::model::ChainName;
use crate::status::{ChainStatus, ReplicaState};

use super::reports::{missing, next_block};
use crate::desk::Desk;
use crate::desk::context::Chains;

/// The page. Blocks.
pub(super) fn metrics(desk: &Desk) -> Result<Response, HttpError> {
    let chains = desk.chains();
    let mut page = Page::default();
    process(&mut page);
    chains.measure_process(&mut page);
    desk.traffic().measure(&mut page);
    desk.pool().measure(&mut page);
    desk.measure(&mut page);
    for chain in ChainName::ALL {
        index(&mut page, chains, chain);
        if let Some(status) = chains.status(chain) {
            sync(&mut page, chain, &status);
        }
        chains.measure(chain, &mut page);
    }
    let text = page
        .render()
        .map_err(|error| HttpError::internal(format!("render: {error}")))?;
    let mut response = json_response(StatusCode::OK, text.into_bytes());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(Page::CONTENT_TYPE));
    Ok(response)
}

fn process(page: &mut Page) {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    page.gauge("quarry_build_info", "Always 1.", &version, 1.0);
    if let Some(bytes) = machine::process_memory("VmRSS") {
        let help = "Resident memory, mapped arrays included.";
        page.gauge("process_resident_memory_bytes", help, &[], bytes as f64);
    }
    let help = "Unix time of this page.";
    let now = clock::unix_seconds(clock::wall());
    page.gauge("quarry_time_seconds", help, &[], now);
}

/// How far the index is.
fn index(page: &mut Page, chains: &dyn Chains, chain: ChainName) {
    let label = [("chain", chain.as_str())];
    let reader = chains.reader(chain);
    let node_head = chains.status(chain).and_then(|status| status.node_head());
    if let Some(node_head) = node_head {
        let help = "Blocks by which the index is behind its node; before its first block all that it lacks.";
        let lag = missing(next_block(reader.as_ref()), node_head);
        page.gauge("quarry_lag_blocks", help, &label, lag as f64);
    }
    let Some(reader) = reader else {
        return;
    };
    let help = "Bytes of tables and arrays on disk.";
    let bytes = chains.store_bytes(chain);
    page.gauge("quarry_store_bytes", help, &label, bytes as f64);
    if reader.is_empty() {
        return;
    }
    let head = reader.head().number;
    page.gauge("quarry_head", "The indexed head.", &label, head as f64);
    if let Some(finalized) = reader.finalized() {
        let help = "The last final block that is indexed.";
        page.gauge("quarry_finalized", help, &label, finalized as f64);
    }
    let differs = reader.native_differs().map(|differs| differs.block);
    let fault = reader.native_fault().map(|fault| fault.block).or(differs);
    let help = "1 while native balances are kept; 0 where a block did not add up, the node has others or the source cannot tell them.";
    let kept = f64::from(u8::from(fault.is_none()));
    page.gauge("quarry_native_ledger_kept", help, &label, kept);
    if let Some(block) = fault {
        let help = "The first block that the ledger of native balances could not follow, or after which the node had others.";
        page.gauge("quarry_native_ledger_fault_block", help, &label, block as f64);
    }
}

/// What the sync is doing.
fn sync(page: &mut Page, chain: ChainName, status: &ChainStatus) {
    let label = [("chain", chain.as_str())];
    let node_head = status.node_head().map(|number| number as f64);
    let replica = status.replica();
    for (name, help, value) in [
        ("quarry_node_head", "The node's head as last seen.", node_head),
        (
            "quarry_sync_blocks_per_second",
            "Blocks indexed a second over the last while, or while call frames are filled in blocks that got theirs.",
            Some(status.blocks_per_second()),
        ),
        (
            "quarry_sync_following",
            "1 while the tip is followed block by block.",
            Some(f64::from(u8::from(status.following()))),
        ),
        (
            "quarry_sync_reorg_depth_max",
            "Blocks unwound by the deepest reorg since the start.",
            Some(status.reorg_depth_max() as f64),
        ),
        (
            "quarry_sync_disk_full",
            "1 while the sync waits for room on the disk.",
            Some(f64::from(u8::from(status.disk_full()))),
        ),
        (
            "quarry_sync_stopped",
            "1 when the sync ended for a reason that waiting cannot mend.",
            Some(f64::from(u8::from(status.stopped()))),
        ),
        (
            "quarry_sync_finality_broken",
            "1 when the sync ended because the node named another block where ours is final.",
            Some(f64::from(u8::from(status.finality_broken()))),
        ),
        (
            "quarry_node_up",
            "1 while the node answers.",
            // Where nobody asks it nobody knows.
            replica
                .as_ref()
                .is_none_or(ReplicaState::has_writer)
                .then(|| f64::from(u8::from(status.node_up()))),
        ),
        (
            "quarry_replica_seen_seconds",
            "Since a replica last saw everything that its writer had on the disk.",
            replica.as_ref().map(ReplicaState::seen_ago),
        ),
        (
            "quarry_replica_writer_seconds",
            "Since the last sign of life of a replica's writer.",
            replica.as_ref().and_then(ReplicaState::writer_ago),
        ),
    ] {
        if let Some(value) = value {
            page.gauge(name, help, &label, value);
        }
    }
    let tokens = status.tokens();
    for (name, help, value) in [
        (
            "quarry_tokens_known",
            "Contracts that emitted a token event.",
            tokens.known(),
        ),
        (
            "quarry_tokens_exact",
            "Tokens whose events explain them, as far as compared.",
            tokens.exact(),
        ),
        (
            "quarry_tokens_not_exact",
            "Tokens that the node answers for.",
            tokens.inexact(),
        ),
        (
            "quarry_token_checks_waiting",
            "Tokens that wait to be asked about.",
            tokens.waiting(),
        ),
    ] {
        page.gauge(name, help, &label, value as f64);
    }
    for (name, help, count) in [
        (
            "quarry_token_questions",
            "Questions about tokens asked of the node.",
            &tokens.questions,
        ),
        (
            "quarry_token_question_errors",
            "Questions about tokens that the node failed to answer.",
            &tokens.errors,
        ),
    ] {
        page.counter(name, help, &label, count.load(Ordering::Relaxed));
    }
    for (name, help, count) in [
        ("quarry_sync_reorgs", "Reorgs unwound.", status.reorgs()),
        (
            "quarry_sync_reorged_blocks",
            "Blocks unwound by reorgs.",
            status.reorged_blocks(),
        ),
        (
            "quarry_sync_verification_failures",
            "Blocks that did not verify.",
            status.verification_failures(),
        ),
    ] {
        page.counter(name, help, &label, count);
    }
}
