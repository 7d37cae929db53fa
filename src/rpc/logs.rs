//! `eth_getLogs`, over any range of blocks.

use serde_json::Value;

use super::answer::head;
use super::args::{Args, BlockRef, read_address, read_hash, read_some};
use super::fault::Fault;
use super::lists::{ArrayFrame, Items, array_between};
use super::methods::Work;
use crate::desk;
use crate::desk::answer::{Answer, Extra, Plan, Snapshot};
use crate::desk::bounds::{Bound, Bounds};
use crate::desk::faults::{BLOCK_NOT_FOUND, query_failed, still_indexing};
use crate::desk::frames::{ListFrame, ListFrames, Places, RowSource};
use crate::desk::lists::{Envelope, Shape, TAIL};
use crate::desk::proxy::Tag;
use crate::http::HttpError;
use crate::json::rpc;
use crate::model::{B256, BlockRange};
use crate::query::{LogPage, LogQuery, Paged as _, QueryError, Reader, give_up, is_from_memory};

/// Most values of an address or a topic.
const VALUES_MAX: usize = 1000;

/// Logs that are looked up at once: 8 bytes of memory each.
const LOOKED_UP: usize = 1 << 16;

/// Answers of more logs are not made by the thread that owns the socket.
const AT_HAND: usize = 128;

/// Which blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocks {
    Hash(B256),
    Range(Tag, Tag),
}

/// `eth_getLogs`.
pub(super) fn logs(args: &mut Args) -> Result<Work, Fault> {
    let filter = args.take().ok_or_else(|| Fault::missing("filter"))?;
    let Value::Object(filter) = filter else {
        return Err(Fault::invalid("filter", "an object"));
    };
    let given = |key: &str| filter.get(key).filter(|value| !value.is_null());
    let mut addresses = match given("address") {
        Some(value) => read_some("address", value, VALUES_MAX, read_address)?,
        None => Vec::new(),
    };
    addresses.dedup();
    let mut query = LogQuery {
        topics: topics(given("topics"))?,
        limit: LOOKED_UP,
        ..LogQuery::default()
    };
    if !addresses.is_empty() {
        query.address = Some(addresses.remove(0));
        query.others = addresses;
    }
    let blocks = blocks(given("fromBlock"), given("toBlock"), given("blockHash"))?;
    let mut head = head(args.id());
    head.push(b'[');
    let is_quick = query.is_driven_by_one_list();
    let work = move |snapshot: &Snapshot| {
        let Some(range) = blocks.resolve(snapshot)? else {
            head.extend_from_slice(TAIL);
            return Ok(Answer::Whole(head.into(), Extra::default()));
        };
        query.first_block = range.first();
        query.last_block = range.last();
        answer(snapshot, query, head)
    };
    let plan = if is_quick {
        Plan::quick_scan(true, work)
    } else {
        Plan::scan(work)
    };
    Ok(Work::Store {
        plan,
        is_response: true,
    })
}

/// The logs that match, in a response of which `head` is there.
fn answer(snapshot: &Snapshot, mut query: LogQuery, head: Vec<u8>) -> Result<Answer, HttpError> {
    let is_at_hand = is_from_memory();
    if is_at_hand {
        query.limit = AT_HAND;
    }
    let page = desk::logs::look_up(&snapshot.reader, &mut query)?;
    if page.page().next_cursor().is_some() {
        if is_at_hand {
            // Others wait for the thread that would write so many.
            give_up();
            return Err(still_indexing());
        }
        let logs = Logs {
            reader: snapshot.reader.clone(),
            query,
            page: Some(page),
        };
        return array_between(snapshot, &head, logs, TAIL);
    }
    let (first, rest) = ListFrames::begin(
        Rows(page),
        snapshot.buffers.clone(),
        Shape::Object,
        Envelope(head),
    )?;
    Ok(match rest {
        None => Answer::Whole(first, Extra::default()),
        Some(rest) => Answer::Begun(first, Box::new(rest), Extra::default()),
    })
}

fn topics(given: Option<&Value>) -> Result<[Vec<B256>; 4], Fault> {
    let mut topics: [Vec<B256>; 4] = Default::default();
    let Some(given) = given else {
        return Ok(topics);
    };
    let Value::Array(given) = given else {
        return Err(Fault::invalid("topics", "an array"));
    };
    if given.len() > topics.len() {
        return Err(Fault::invalid("topics", "at most 4 positions"));
    }
    for (position, (values, given)) in topics.iter_mut().zip(given).enumerate() {
        // A null among the values of a position lets anything pass, as alone.
        if given.as_array().is_some_and(|all| all.iter().any(Value::is_null)) {
            continue;
        }
        *values = read_some(&format!("topics[{position}]"), given, VALUES_MAX, read_hash)?;
        values.sort_unstable();
        values.dedup();
    }
    Ok(topics)
}

fn blocks(from: Option<&Value>, to: Option<&Value>, hash: Option<&Value>) -> Result<Blocks, Fault> {
    if let Some(hash) = hash {
        if from.is_some() || to.is_some() {
            return Err(Fault::params(
                "Invalid parameter blockHash: it cannot be combined with fromBlock and toBlock",
            ));
        }
        return read_hash("blockHash", hash).map(Blocks::Hash);
    }
    let end = |name: &str, value: Option<&Value>| match value.map(|value| BlockRef::read(name, value)) {
        None => Ok(Tag::Latest),
        Some(Ok(BlockRef::Tag(tag))) => Ok(tag),
        Some(_) => Err(Fault::invalid(
            name,
            "a hex number, latest, earliest, safe, finalized or pending",
        )),
    };
    let (from, to) = (end("fromBlock", from)?, end("toBlock", to)?);
    check_order(from, to)?;
    Ok(Blocks::Range(from, to))
}

/// Numbers the wrong way round are refused before anything is looked up.
pub(super) fn check_order(from: Tag, to: Tag) -> Result<(), Fault> {
    match (from, to) {
        (Tag::Number(from), Tag::Number(to)) if from > to => {
            Err(Fault::params("Invalid block range: fromBlock lies above toBlock"))
        }
        _ => Ok(()),
    }
}

impl Blocks {
    /// The indexed blocks meant; `None` where they all lie above the indexed head.
    fn resolve(self, snapshot: &Snapshot) -> Result<Option<BlockRange>, HttpError> {
        match self {
            Self::Hash(hash) => {
                let number = snapshot.reader.block_number(&hash).map_err(query_failed)?;
                let number = number.ok_or_else(|| HttpError::not_found(BLOCK_NOT_FOUND))?;
                Ok(BlockRange::new(number, number))
            }
            Self::Range(from, to) => resolve(snapshot, from, to),
        }
    }
}

/// The indexed blocks of a range by the rules of all dialects; `None` where they all lie above the indexed head.
pub(super) fn resolve(snapshot: &Snapshot, from: Tag, to: Tag) -> Result<Option<BlockRange>, HttpError> {
    let bound = |tag: Tag| match tag {
        Tag::Latest => Ok(Bound::Latest),
        tag => tag.number(snapshot).map(Bound::Number).ok_or_else(still_indexing),
    };
    let bounds = Bounds {
        from: Some(bound(from)?),
        to: Some(bound(to)?),
    };
    bounds.resolve(snapshot.extent())
}

/// Logs that were looked up at once.
struct Rows(LogPage);

impl RowSource for Rows {
    const IS_QUICK: bool = true;

    fn places(&mut self) -> &mut dyn Places {
        self.0.page_mut()
    }

    fn again(&self) -> Self {
        Self(self.0.again())
    }

    fn write(&mut self, frame: &mut ListFrame<'_>) -> Result<bool, QueryError> {
        self.0
            .visit(&mut |log| frame.item(|out| rpc::log_entry(out, log)))
    }
}

/// The logs that match, looked up some at a time.
struct Logs {
    reader: Reader,
    query: LogQuery,
    page: Option<LogPage>,
}

impl Logs {
    fn look_up(&mut self) -> Result<(), HttpError> {
        self.page = Some(desk::logs::look_up(&self.reader, &mut self.query)?);
        Ok(())
    }
}

impl Items for Logs {
    fn write(&mut self, frame: &mut ArrayFrame<'_>) -> Result<bool, HttpError> {
        while let Some(page) = &mut self.page {
            let more = page.visit(&mut |log| frame.item(|out| rpc::log_entry(out, log)));
            if more.map_err(query_failed)? {
                return Ok(true);
            }
            match page.page().next_cursor() {
                None => self.page = None,
                next => {
                    self.query.cursor = next;
                    self.look_up()?;
                    if !frame.has_room() {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn topics_are_single_or_many_or_anything() {
        let word = |byte: u8| B256::repeat_byte(byte);
        let hex = |byte: u8| word(byte).to_string();
        let read = |value: Value| topics(Some(&value)).map_err(|fault| fault.message.into_owned());
        let value = json!([hex(2), null, [hex(4), hex(3), hex(4)], []]);
        assert_eq!(
            read(value),
            Ok([vec![word(2)], vec![], vec![word(3), word(4)], vec![]])
        );
        assert_eq!(read(json!([[hex(1), null]])), Ok(Default::default()));
        let five = read(json!([null, null, null, null, null])).unwrap_err();
        assert_eq!(five, "Invalid parameter topics: expected at most 4 positions");
        for wrong in [json!("0x"), json!([7]), json!([["0x12"]]), json!([[[hex(1)]]])] {
            assert!(read(wrong).unwrap_err().contains("topics"));
        }
    }

    #[test]
    fn blocks_are_a_range_or_a_hash() {
        let read = |filter: Value| {
            let given = |key: &str| filter.get(key);
            blocks(given("fromBlock"), given("toBlock"), given("blockHash")).map_err(|fault| fault.code)
        };
        let hash = B256::repeat_byte(1);
        assert_eq!(read(json!({})), Ok(Blocks::Range(Tag::Latest, Tag::Latest)));
        assert_eq!(
            read(json!({"fromBlock": "earliest", "toBlock": "0x5"})),
            Ok(Blocks::Range(Tag::Earliest, Tag::Number(5)))
        );
        assert_eq!(
            read(json!({"blockHash": hash.to_string()})),
            Ok(Blocks::Hash(hash))
        );
        for wrong in [
            json!({"fromBlock": "0x5", "toBlock": "0x4"}),
            json!({"blockHash": hash.to_string(), "toBlock": "0x4"}),
            json!({"blockHash": "0x1"}),
            json!({"fromBlock": hash.to_string()}),
            json!({"toBlock": {}}),
        ] {
            assert_eq!(read(wrong.clone()), Err(-32602), "{wrong}");
        }
    }
}
