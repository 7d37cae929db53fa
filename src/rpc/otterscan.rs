//! `ots_*`: what Otterscan asks for, API level 8.

use super::args::Args;
use super::blocks::of_block;
use super::fault::Fault;
use super::methods::{Work, null, store, text};
use super::traces::{traced, traces_failed};
use crate::clock;
use crate::desk::answer::{Answer, Plan, Snapshot};
use crate::desk::blocks;
use crate::desk::faults::{late, needs_traces, query_failed};
use crate::desk::logs::WALK_TIME_MAX;
use crate::http::{HttpError, Lane};
use crate::json::object::array;
use crate::json::rpc::{self, BlockDetails};
use crate::json::writer;
use crate::model::{Address, B256, TransactionEntry, U256};
use crate::query::{Created, Execution, QueryError, Reader};

/// Most transactions of a page.
const PAGE_MAX: u64 = 500;

/// A page of a search ends with the block in which its text gets about as long, bytes.
const PAGE_BYTES_MAX: usize = 8 << 20;

const TOOK_PART_IN_TOO_MUCH: &str = "The account took part in too much to be searched in time";

/// Of a page: a transaction and its receipt without input and logs, and a log without its data.
const ENTRY_BYTES: usize = 3 << 10;
const LOG_BYTES: usize = 900;

fn page_size(args: &mut Args) -> Result<u64, Fault> {
    match args.number("pageSize")? {
        size @ 1..=PAGE_MAX => Ok(size),
        _ => Err(Fault::invalid("pageSize", "1 to 500")),
    }
}

/// `ots_getApiLevel`.
pub(super) fn api_level(_: &mut Args) -> Result<Work, Fault> {
    Ok(Work::Known("8".into()))
}

/// `ots_getBlockDetails` and `ots_getBlockDetailsByHash`.
pub(super) fn block_details(args: &mut Args) -> Result<Work, Fault> {
    let block = args.block("block")?;
    Ok(store(of_block(block, |snapshot, number| {
        let (reward, uncles) = blocks::reward(snapshot, number)?;
        let uncles = uncles.iter().map(|uncle| uncle.reward);
        let found = snapshot.reader.block(number, false).map_err(query_failed)?;
        let Some(entry) = found else {
            return Ok(null());
        };
        let details = BlockDetails {
            transactions: entry.transaction_hashes.len() as u64,
            block_reward: reward.static_reward.saturating_add(reward.uncle_inclusion_reward),
            uncle_reward: uncles.fold(U256::ZERO, U256::saturating_add),
            fees: reward.transaction_fees.saturating_add(reward.base_fees_burnt),
        };
        Ok(text(|out| rpc::block_details(out, &entry.block, &details)))
    })))
}

/// `ots_getBlockTransactions`: page 0 has the last transactions of the block.
pub(super) fn block_transactions(args: &mut Args) -> Result<Work, Fault> {
    let block = args.block("block")?;
    let page = args.number("pageNumber")?;
    let size = page_size(args)?;
    let plan = of_block(block, move |snapshot, number| {
        let found = snapshot.reader.block(number, false).map_err(query_failed)?;
        let Some(entry) = found else {
            return Ok(null());
        };
        let count = entry.transaction_hashes.len() as u64;
        let end = count.saturating_sub(page.saturating_mul(size));
        let places = end.saturating_sub(size)..end;
        let entries = snapshot.reader.block_entries(number, places, false);
        let mut entries = entries.map_err(query_failed)?;
        Ok(text(|out| {
            rpc::block_transactions(out, &entry.block, count, &mut entries);
        }))
    });
    Ok(store(Plan {
        lane: Lane::Scan,
        ..plan
    }))
}

/// `ots_getTransactionError`: what a failed transaction handed back.
pub(super) fn transaction_error(args: &mut Args) -> Result<Work, Fault> {
    let hash = args.hash("hash")?;
    Ok(store(Plan::point(move |snapshot| {
        Ok(match snapshot.reader.execution(&hash).map_err(query_failed)? {
            Execution::Unknown => null(),
            Execution::NeedsTraces => return Err(needs_traces()),
            Execution::Succeeded => text(|out| writer::hex(out, &[])),
            Execution::Failed { output, .. } => text(|out| writer::hex(out, &output)),
        })
    })))
}

/// `ots_traceTransaction`.
pub(super) fn trace(args: &mut Args) -> Result<Work, Fault> {
    let hash = args.hash("hash")?;
    Ok(store(Plan::scan(move |snapshot| {
        let Some(traced) = traced(snapshot, &hash)? else {
            return Ok(null());
        };
        let unmade = match traced.frames.first() {
            Some(top) if rpc::made_nothing(top) => would_be(snapshot, &hash)?,
            _ => Address::ZERO,
        };
        Ok(text(|out| {
            array(out, &traced.frames, |out, frame| {
                // Of a creation below the top call nothing tells the nonce, or the salt.
                let is_top = frame.path.is_empty();
                rpc::call(out, frame, if is_top { unmade } else { Address::ZERO });
            });
        }))
    })))
}

/// Where a transaction that creates would have put its contract.
fn would_be(snapshot: &Snapshot, hash: &B256) -> Result<Address, HttpError> {
    let found = snapshot.reader.transaction(hash).map_err(query_failed)?;
    Ok(found.map_or(Address::ZERO, |entry| {
        entry.transaction.from.create(entry.transaction.nonce)
    }))
}

/// `ots_getInternalOperations`.
pub(super) fn internal_operations(args: &mut Args) -> Result<Work, Fault> {
    let hash = args.hash("hash")?;
    Ok(store(Plan::scan(move |snapshot| {
        let found = traced(snapshot, &hash)?;
        Ok(found.map_or_else(null, |traced| {
            // A creation that made nothing moved nothing, and has no address.
            let operations = traced.frames.iter();
            let operations =
                operations.filter(|frame| frame.is_internal_transaction() && !rpc::made_nothing(frame));
            text(|out| array(out, operations, rpc::internal_operation))
        }))
    })))
}

/// `ots_getContractCreator`.
pub(super) fn contract_creator(args: &mut Args) -> Result<Work, Fault> {
    let contract = args.address("address")?;
    Ok(store(Plan::point(move |snapshot| {
        let created = snapshot.reader.contract_creation(&contract);
        Ok(match created.map_err(query_failed)? {
            Created::Unknown => null(),
            Created::NeedsTraces => return Err(needs_traces()),
            Created::Known(creation) => {
                let creator = creation.factory.unwrap_or(creation.creator);
                let hash = creation.transaction_hash;
                text(|out| rpc::contract_creator(out, hash.as_slice(), creator.as_slice()))
            }
        })
    })))
}

/// `ots_searchTransactionsBefore`: those below a block, or all where that is 0.
pub(super) fn search_before(args: &mut Args) -> Result<Work, Fault> {
    search(args, true)
}

/// `ots_searchTransactionsAfter`: those above a block.
pub(super) fn search_after(args: &mut Args) -> Result<Work, Fault> {
    search(args, false)
}

fn search(args: &mut Args, before: bool) -> Result<Work, Fault> {
    let account = args.address("address")?;
    let block = args.number("block")?;
    let size = usize::try_from(page_size(args)?).unwrap_or(usize::MAX);
    Ok(store(Plan::scan(move |snapshot| {
        let (first, head) = (snapshot.reader.first_block(), snapshot.reader.head().number);
        let blocks = match (before, block) {
            (true, 0) => Some((first, head)),
            (true, block) => Some((first, head.min(block - 1))),
            (false, 0) => Some((first, head)),
            (false, block) => block.checked_add(1).map(|next| (first.max(next), head)),
        };
        let blocks = blocks.filter(|(first, last)| first <= last);
        found(
            snapshot,
            account,
            blocks,
            size,
            Side {
                before,
                is_end: block == 0,
            },
        )
    })))
}

/// From which side a search comes.
#[derive(Clone, Copy)]
struct Side {
    before: bool,
    /// It begins at the end of the chain.
    is_end: bool,
}

/// About how long the text of a transaction with its receipt is, bytes.
fn text_bytes(entry: &TransactionEntry) -> usize {
    let logs = entry.receipt.logs.iter();
    let logs: usize = logs.map(|log| LOG_BYTES + 2 * log.data.len()).sum();
    ENTRY_BYTES + 2 * entry.transaction.input.len() + logs
}

/// The transactions at these places, and whether all: once their text gets long they end with a block.
fn whole_blocks(
    reader: &Reader,
    ordinals: Vec<u64>,
    bytes_max: usize,
) -> Result<(Vec<TransactionEntry>, bool), QueryError> {
    let mut entries: Vec<TransactionEntry> = Vec::with_capacity(ordinals.len());
    let mut bytes = 0;
    for ordinal in ordinals {
        if bytes >= bytes_max
            && let Some(last) = entries.last()
            && reader.block_of(ordinal)? != last.block.number
        {
            return Ok((entries, false));
        }
        let entry = reader.transaction_by_ordinal(ordinal)?;
        bytes += text_bytes(&entry);
        entries.push(entry);
    }
    Ok((entries, true))
}

/// A page of whole blocks with at least `size` transactions, or as many as make a long text, the newest first.
fn found(
    snapshot: &Snapshot,
    account: Address,
    blocks: Option<(u64, u64)>,
    size: usize,
    side: Side,
) -> Result<Answer, HttpError> {
    let reader = &snapshot.reader;
    let accounts = [account];
    let (mut ordinals, mut more) = (Vec::new(), false);
    let deadline = clock::now() + WALK_TIME_MAX;
    if let Some((first, last)) = blocks {
        let all = reader.transactions_of(first, last).map_err(query_failed)?;
        let involving = |range, limit| {
            let found = reader.involving(&accounts, range, (side.before, limit), Some(deadline));
            found.map_err(|error| late(TOOK_PART_IN_TOO_MUCH, error, traces_failed))
        };
        ordinals = involving(all.clone(), size)?;
        if let Some(&end) = ordinals.last() {
            // Blocks are not cut: the next page begins at a block.
            let block = reader.block_of(end).map_err(query_failed)?;
            let of_block = reader.transactions_of(block, block).map_err(query_failed)?;
            let (rest, beyond) = if side.before {
                (of_block.start..end, all.start..of_block.start)
            } else {
                (end + 1..of_block.end, of_block.end..all.end)
            };
            ordinals.extend(involving(rest, usize::MAX)?);
            more = !involving(beyond, 1)?.is_empty();
        }
    }
    // What the search comes upon first is kept: the next page goes on where this one ends.
    let (mut entries, are_all) = whole_blocks(reader, ordinals, PAGE_BYTES_MAX).map_err(query_failed)?;
    more |= !are_all;
    if !side.before {
        entries.reverse();
    }
    let (is_first, is_last) = if side.before {
        (side.is_end, !more)
    } else {
        (!more, side.is_end)
    };
    Ok(text(|out| rpc::found(out, &entries, is_first, is_last)))
}
