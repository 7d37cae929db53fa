//! Blocks, their counts, their uncles, and what is said of the chain as a whole.

use super::args::{Args, BlockRef};
use super::fault::Fault;
use super::methods::{Work, at_block, null, shared, store, text};
use crate::desk::answer::{Answer, Plan, Quick, Snapshot};
use crate::desk::faults::query_failed;
use crate::desk::proxy;
use crate::http::HttpError;
use crate::json::object::Object;
use crate::json::{rpc, writer};

pub(super) fn chain_id(_: &mut Args) -> Result<Work, Fault> {
    Ok(store(Plan::quick(|snapshot| {
        let id = snapshot.reader.chain_id();
        Ok(text(|out| writer::quantity(out, id)))
    })))
}

pub(super) fn net_version(_: &mut Args) -> Result<Work, Fault> {
    Ok(store(Plan::quick(|snapshot| {
        let id = snapshot.reader.chain_id();
        Ok(text(|out| writer::decimal(out, id)))
    })))
}

pub(super) fn client_version(_: &mut Args) -> Result<Work, Fault> {
    let version = concat!("\"quarry/v", env!("CARGO_PKG_VERSION"), "\"");
    Ok(Work::Known(version.into()))
}

pub(super) fn accounts(_: &mut Args) -> Result<Work, Fault> {
    Ok(Work::Known("[]".into()))
}

/// `false` at the tip: what is a block or two behind for a moment is not syncing.
pub(super) fn syncing(_: &mut Args) -> Result<Work, Fault> {
    Ok(store(Plan::quick(|snapshot| {
        let extent = snapshot.extent();
        Ok(text(|out| {
            // Nothing syncs a chain without a status, however far its node was.
            if snapshot.status.is_none() || !extent.is_known_to_be_behind() {
                return writer::boolean(out, false);
            }
            let mut object = Object::begin(out);
            object.quantity("startingBlock", extent.first);
            object.quantity("currentBlock", extent.head);
            object.quantity("highestBlock", extent.node_head);
            object.end();
        }))
    })))
}

pub(super) fn block_number(_: &mut Args) -> Result<Work, Fault> {
    Ok(shared(proxy::block_number()))
}

/// `eth_getBlockByNumber` and `eth_getBlockByHash`.
pub(super) fn block(args: &mut Args) -> Result<Work, Fault> {
    let block = args.block("block")?;
    let full = args.boolean("full")?;
    Ok(at_block(block, move |tag| proxy::block_by_number(tag, full)))
}

/// `eth_getBlockTransactionCountBy...`.
pub(super) fn transaction_count(args: &mut Args) -> Result<Work, Fault> {
    Ok(at_block(args.block("block")?, proxy::block_transaction_count))
}

/// Renders what `find` finds of an indexed block; `null` for any other.
pub(super) fn of_block(
    block: BlockRef,
    find: impl FnOnce(&Snapshot, u64) -> Result<Answer, HttpError> + Send + 'static,
) -> Plan {
    Plan::point(move |snapshot| match block.indexed(snapshot)? {
        Some(number) => find(snapshot, number),
        None => Ok(null()),
    })
}

/// `eth_getHeaderBy...` and `erigon_getHeaderByNumber`.
pub(super) fn header(args: &mut Args) -> Result<Work, Fault> {
    let block = args.block("block")?;
    let plan = of_block(block, |snapshot, number| {
        let found = snapshot.reader.block(number, false).map_err(query_failed)?;
        Ok(found.map_or_else(null, |entry| text(|out| rpc::headline(out, &entry.block))))
    });
    Ok(store(Plan {
        quick: Quick::AsItIs,
        ..plan
    }))
}

/// `eth_getUncleCountBy...`.
pub(super) fn uncle_count(args: &mut Args) -> Result<Work, Fault> {
    let block = args.block("block")?;
    Ok(store(of_block(block, |snapshot, number| {
        let uncles = snapshot.reader.uncles(number).map_err(query_failed)?;
        Ok(text(|out| writer::quantity(out, uncles.len() as u64)))
    })))
}

/// `eth_getUncleBy...AndIndex`.
pub(super) fn uncle(args: &mut Args) -> Result<Work, Fault> {
    let block = args.block("block")?;
    let index = args.number("index")?;
    Ok(at_block(block, move |tag| proxy::uncle(tag, index)))
}
