//! The JSON-RPC subset of the specification, and uncles, answered from the store.

use crate::http::{HttpError, parse_quantity};
use crate::json::rpc;
use crate::model::{Address, B256, TransactionEntry};
use crate::query::{Nonce, QueryError};

use super::answer::{Answer, Extra, LEDGER, NODE, Plan, Question, Snapshot, X_NONCE_SOURCE};
use super::caching::Reach;
use super::faults::{needs_uncles, never_indexed, no_node, query_failed};

/// A block as JSON-RPC names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Latest,
    Earliest,
    Safe,
    Finalized,
    Number(u64),
}

impl Tag {
    /// Parses a tag of JSON-RPC.
    pub(crate) fn parse(text: &str) -> Result<Self, HttpError> {
        match text {
            "latest" => Ok(Self::Latest),
            "earliest" => Ok(Self::Earliest),
            "safe" => Ok(Self::Safe),
            "finalized" => Ok(Self::Finalized),
            _ => parse_quantity(text).map(Self::Number).ok_or_else(invalid_tag),
        }
    }

    /// The number meant; `None` when nothing was ever said about such a block.
    ///
    /// The node's safe and finalized blocks can lie above the indexed head while it catches up; every
    /// indexed block is then safe, so the head is the newest of them that can be shown.
    pub(crate) fn number(self, snapshot: &Snapshot) -> Option<u64> {
        let head = snapshot.reader.head().number;
        let status = snapshot.status.as_deref();
        let finalized = || {
            snapshot
                .reader
                .finalized()
                .or_else(|| status.and_then(|status| status.finalized()))
        };
        match self {
            Self::Latest => Some(head),
            Self::Earliest => Some(0),
            Self::Number(number) => Some(number),
            // What the node called safe last may lie below what is final by now.
            Self::Safe => status
                .map_or(snapshot.safe_heard, |status| status.safe())
                .max(finalized())
                .map(|number| number.min(head)),
            Self::Finalized => finalized().map(|number| number.min(head)),
        }
    }

    /// What an answer about the block meant speaks of: words mean other blocks as time goes by.
    pub(crate) const fn reach(self, number: u64) -> Reach {
        match self {
            Self::Number(_) | Self::Earliest => Reach::UpTo(number),
            Self::Latest | Self::Safe | Self::Finalized => Reach::Head,
        }
    }

    /// The indexed block meant; `None` is the `null` of JSON-RPC.
    pub(crate) fn indexed(self, snapshot: &Snapshot) -> Result<Option<u64>, HttpError> {
        let first = snapshot.reader.first_block();
        match self.number(snapshot) {
            Some(number) if number > snapshot.reader.head().number => Ok(None),
            // "No such block" would be untrue of one that only this store lacks.
            Some(number) if number < first => Err(never_indexed()),
            number => Ok(number),
        }
    }
}

/// 400: no tag.
pub(crate) fn invalid_tag() -> HttpError {
    HttpError::invalid("tag")
}

/// What stands before a result.
const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":"#;

/// The result of an answer of this file without its envelope, for a dialect that has ids of its own.
pub(crate) fn bare(answer: Answer) -> Answer {
    match answer {
        Answer::Whole(body, extra) => {
            let end = body.len().saturating_sub(1);
            Answer::Whole(body.slice(HEAD.len().min(end)..end), extra)
        }
        Answer::AskNode(question) => Answer::AskNode(question.map(bare)),
        begun @ Answer::Begun(..) => begun,
    }
}

/// The envelope around what `render` writes.
fn result(reach: Reach, render: impl FnOnce(&mut Vec<u8>)) -> Answer {
    let extra = Extra {
        reach,
        ..Extra::default()
    };
    result_with(extra, render)
}

fn result_with(extra: Extra, render: impl FnOnce(&mut Vec<u8>)) -> Answer {
    let mut body = Vec::with_capacity(1024);
    body.extend_from_slice(HEAD);
    render(&mut body);
    body.push(b'}');
    Answer::Whole(body.into(), extra)
}

fn null() -> Answer {
    result(Reach::Head, |body| body.extend_from_slice(b"null"))
}

fn quantity(number: u64, reach: Reach) -> Answer {
    result(reach, |body| write_quantity(body, number))
}

fn write_quantity(body: &mut Vec<u8>, number: u64) {
    body.extend_from_slice(format!("\"0x{number:x}\"").as_bytes());
}

/// The answer to a transaction count, wherever it came from.
fn nonce(nonce: u64, source: &'static str, reach: Reach) -> Answer {
    let extra = Extra {
        source: Some((X_NONCE_SOURCE, source)),
        reach,
        ..Extra::default()
    };
    result_with(extra, |body| write_quantity(body, nonce))
}

/// `eth_blockNumber`.
pub(crate) fn block_number() -> Plan {
    Plan::quick(|snapshot| Ok(quantity(snapshot.reader.head().number, Reach::Head)))
}

/// `eth_getBlockByNumber`.
pub(crate) fn block_by_number(tag: Tag, full: bool) -> Plan {
    let work = move |snapshot: &Snapshot| {
        let Some(number) = tag.indexed(snapshot)? else {
            return Ok(null());
        };
        let entry = snapshot
            .reader
            .block(number, full)
            .map_err(query_failed)?
            .ok_or_else(|| HttpError::internal(format!("indexed block {number} is missing")))?;
        Ok(result(tag.reach(number), |body| rpc::block(body, &entry, full)))
    };
    // All transactions of a block are many rows.
    if full {
        Plan::point(work)
    } else {
        Plan::quick_object(work)
    }
}

/// `eth_getBlockTransactionCountByNumber`.
pub(crate) fn block_transaction_count(tag: Tag) -> Plan {
    Plan::quick(move |snapshot| {
        let Some(number) = tag.indexed(snapshot)? else {
            return Ok(null());
        };
        let counts = snapshot
            .reader
            .block_counts(number)
            .map_err(query_failed)?
            .ok_or_else(|| HttpError::internal(format!("indexed block {number} has no counts")))?;
        Ok(quantity(counts.transactions, tag.reach(number)))
    })
}

/// `eth_getUncleByBlockNumberAndIndex`. 503 where the block came without its uncles' headers.
pub(crate) fn uncle(tag: Tag, index: u64) -> Plan {
    Plan::point(move |snapshot| {
        let Some(number) = tag.indexed(snapshot)? else {
            return Ok(null());
        };
        let uncles = snapshot.reader.uncles(number).map_err(query_failed)?;
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(uncle) = uncles.get(place) else {
            return Ok(null());
        };
        let header = uncle.header.as_ref().ok_or_else(needs_uncles)?;
        Ok(result(tag.reach(number), |body| {
            rpc::uncle(body, &uncle.hash, header);
        }))
    })
}

/// `eth_getTransactionByHash`.
pub(crate) fn transaction_by_hash(hash: B256) -> Plan {
    Plan::quick_object(move |snapshot| {
        shown(snapshot.reader.transaction(&hash), rpc::transaction, Reach::UpTo)
    })
}

/// `eth_getTransactionByBlockNumberAndIndex`.
pub(crate) fn transaction_by_position(tag: Tag, index: u64) -> Plan {
    Plan::quick_object(move |snapshot| {
        let Some(number) = tag.indexed(snapshot)? else {
            return Ok(null());
        };
        let found = snapshot.reader.transaction_at(number, index);
        shown(found, rpc::transaction, |number| tag.reach(number))
    })
}

/// `eth_getTransactionReceipt`.
pub(crate) fn transaction_receipt(hash: B256) -> Plan {
    Plan::quick_object(move |snapshot| shown(snapshot.reader.receipt(&hash), rpc::receipt, Reach::UpTo))
}

/// `eth_getTransactionCount`.
pub(crate) fn transaction_count(address: Address, tag: Tag) -> Plan {
    Plan::quick(move |snapshot| {
        let Some(block) = tag.number(snapshot) else {
            return Ok(null());
        };
        if block > snapshot.reader.head().number {
            return Err(invalid_tag());
        }
        let found = if block < snapshot.reader.first_block() {
            Nonce::AskNode
        } else {
            snapshot.reader.nonce(address, block).map_err(query_failed)?
        };
        let unless = match found {
            Nonce::Exact(count) => return Ok(nonce(count, LEDGER, tag.reach(block))),
            Nonce::Likely(count) => Ok(nonce(count, LEDGER, Reach::Head)),
            Nonce::AskNode => Err(no_node()),
        };
        Ok(Answer::AskNode(Question::after(
            snapshot,
            block,
            unless,
            move |node| {
                Box::pin(async move {
                    let count = node.transaction_count(address, block).await?;
                    Ok(Ok(nonce(count, NODE, Reach::Head)))
                })
            },
        )?))
    })
}

fn shown(
    found: Result<Option<TransactionEntry>, QueryError>,
    render: fn(&mut Vec<u8>, &TransactionEntry),
    reach: impl FnOnce(u64) -> Reach,
) -> Result<Answer, HttpError> {
    Ok(match found.map_err(query_failed)? {
        None => null(),
        Some(entry) => result(reach(entry.block.number), |body| render(body, &entry)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags() {
        assert_eq!(Tag::parse("0x10"), Ok(Tag::Number(16)));
        assert_eq!(Tag::parse("finalized"), Ok(Tag::Finalized));
        for text in ["16", "0x", "0xg", "pending", "LATEST", " latest", "-0x1"] {
            assert_eq!(Tag::parse(text), Err(invalid_tag()), "{text:?}");
        }
    }

    #[test]
    fn envelope() {
        let Answer::Whole(body, extra) = nonce(255, NODE, Reach::Head) else {
            panic!("a whole body was expected");
        };
        assert_eq!(&body[..], br#"{"jsonrpc":"2.0","id":1,"result":"0xff"}"#);
        assert_eq!(extra.source, Some((X_NONCE_SOURCE, "node")));
    }
}
