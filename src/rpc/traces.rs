//! `trace_*`: the call frames that the store keeps, as localized traces. Rewards are not among them.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::args::{Args, BlockRef, read_address, read_number, read_some};
use super::blocks::of_block;
use super::fault::Fault;
use super::lists::{ArrayFrame, Items, array};
use super::logs::{check_order, resolve};
use super::methods::{Work, null, store, text};
use crate::clock;
use crate::desk::answer::{Answer, Plan, Snapshot};
use crate::desk::faults::query_failed;
use crate::desk::logs::WALK_TIME_MAX;
use crate::desk::proxy::Tag;
use crate::http::{HttpError, Lane};
use crate::json::object;
use crate::json::rpc::{self, TracePlace};
use crate::model::{Address, B256, Frame};
use crate::query::{QueryError, Reader, TracedTransaction};

/// Most addresses on one side of a filter.
const ADDRESSES_MAX: usize = 100;

/// How long traces are looked through for one frame of those that pass.
const FRAME_TIME: Duration = Duration::from_secs(1);

/// Transactions that are looked up at once.
const LOOKED_UP: usize = 256;

/// What a failed look-up of traces becomes: a store without them says so.
pub(super) fn traces_failed(error: QueryError) -> HttpError {
    match error {
        QueryError::NeedsTraces => {
            HttpError::unavailable("Traces are not stored: the node that blocks came from offers none")
        }
        error => query_failed(error),
    }
}

fn place(traced: &TracedTransaction) -> TracePlace {
    TracePlace {
        block: traced.block,
        transaction: traced.hash,
        position: traced.index,
    }
}

/// `trace_block`.
pub(super) fn block(args: &mut Args) -> Result<Work, Fault> {
    let block = args.block("block")?;
    let plan = of_block(block, |snapshot, number| {
        let reader = &snapshot.reader;
        // An error also where the block has no transactions: a list without traces would say that there were none.
        if lacks_traces(reader, number)? {
            return Err(traces_failed(QueryError::NeedsTraces));
        }
        let range = reader.transactions_of(number, number).map_err(query_failed)?;
        array(snapshot, Traces::all(reader, range))
    });
    Ok(store(Plan {
        lane: Lane::Scan,
        ..plan
    }))
}

/// Whether the frames of an indexed block are not stored.
fn lacks_traces(reader: &Reader, number: u64) -> Result<bool, HttpError> {
    let counts = reader.block_counts(number).map_err(query_failed)?;
    Ok(counts.is_none_or(|counts| counts.internal_transactions.is_none()))
}

/// A transaction with its frames; `None` where it is not indexed.
pub(super) fn traced(snapshot: &Snapshot, hash: &B256) -> Result<Option<TracedTransaction>, HttpError> {
    let ordinal = snapshot.reader.transaction_ordinal(hash).map_err(query_failed)?;
    let traced = ordinal.map(|ordinal| snapshot.reader.traced(ordinal));
    traced.transpose().map_err(traces_failed)
}

/// `trace_transaction`.
pub(super) fn transaction(args: &mut Args) -> Result<Work, Fault> {
    let hash = args.hash("hash")?;
    Ok(store(Plan::scan(move |snapshot| {
        let Some(traced) = traced(snapshot, &hash)? else {
            return Ok(null());
        };
        let children = rpc::subtraces(&traced.frames);
        let pairs = traced.frames.iter().zip(children);
        Ok(text(|out| {
            object::array(out, pairs, |out, (frame, children)| {
                rpc::trace(out, frame, children, &place(&traced));
            });
        }))
    })))
}

/// `trace_get`: the trace at a place in the tree of calls.
pub(super) fn get(args: &mut Args) -> Result<Work, Fault> {
    let hash = args.hash("hash")?;
    let path = args.take().ok_or_else(|| Fault::missing("indices"))?;
    let path = read_some("indices", &path, 1024, read_number)?;
    Ok(store(Plan::scan(move |snapshot| {
        let Some(traced) = traced(snapshot, &hash)? else {
            return Ok(null());
        };
        let children = rpc::subtraces(&traced.frames);
        let is_there = |frame: &Frame| {
            frame.path.len() == path.len() && frame.path.iter().zip(&path).all(|(a, b)| u64::from(*a) == *b)
        };
        let found = traced.frames.iter().zip(children);
        let found = found.into_iter().find(|(frame, _)| is_there(frame));
        Ok(found.map_or_else(null, |(frame, children)| {
            text(|out| rpc::trace(out, frame, children, &place(&traced)))
        }))
    })))
}

/// Which traces of a filter pass.
#[derive(Clone, Debug, Default)]
struct Matcher {
    from: Vec<Address>,
    to: Vec<Address>,
    /// Both sides must match where both are given.
    both: bool,
}

impl Matcher {
    fn passes(&self, frame: &Frame) -> bool {
        let from = self.from.contains(&frame.from);
        // What an ancestor undid made nothing either, and is in no list of the address that it had.
        let is_undone = frame.kind.is_creation() && frame.reverted;
        let to = frame.to.filter(|_| !is_undone && !rpc::made_nothing(frame));
        let to = to.is_some_and(|to| self.to.contains(&to));
        match (self.from.is_empty(), self.to.is_empty()) {
            (true, true) => true,
            (false, true) => from,
            (true, false) => to,
            (false, false) if self.both => from && to,
            (false, false) => from || to,
        }
    }
}

/// `trace_filter`.
pub(super) fn filter(args: &mut Args) -> Result<Work, Fault> {
    let filter = args.take().ok_or_else(|| Fault::missing("filter"))?;
    let Value::Object(filter) = filter else {
        return Err(Fault::invalid("filter", "an object"));
    };
    let given = |key: &str| filter.get(key).filter(|value| !value.is_null());
    let addresses = |name: &str| match given(name) {
        Some(value) => read_some(name, value, ADDRESSES_MAX, read_address),
        None => Ok(Vec::new()),
    };
    let number = |name: &str| given(name).map(|value| read_number(name, value)).transpose();
    let end = |name: &str, default| match given(name).map(|value| BlockRef::read(name, value)) {
        None => Ok(default),
        Some(Ok(BlockRef::Tag(tag))) => Ok(tag),
        Some(_) => Err(Fault::invalid(
            name,
            "a hex number, latest, earliest, safe or finalized",
        )),
    };
    let both = match given("mode").map(Value::as_str) {
        None | Some(Some("union")) => false,
        Some(Some("intersection")) => true,
        Some(_) => return Err(Fault::invalid("mode", "union or intersection")),
    };
    let matcher = Matcher {
        from: addresses("fromAddress")?,
        to: addresses("toAddress")?,
        both,
    };
    let (from, to) = (end("fromBlock", Tag::Earliest)?, end("toBlock", Tag::Latest)?);
    check_order(from, to)?;
    let (after, count) = (number("after")?.unwrap_or(0), number("count")?);
    Ok(store(Plan::scan(move |snapshot| {
        let Some(range) = resolve(snapshot, from, to)? else {
            return Ok(text(|out| out.extend_from_slice(b"[]")));
        };
        filtered(snapshot, matcher, (range.first(), range.last()), after, count)
    })))
}

fn filtered(
    snapshot: &Snapshot,
    matcher: Matcher,
    (first, last): (u64, u64),
    after: u64,
    count: Option<u64>,
) -> Result<Answer, HttpError> {
    let reader = &snapshot.reader;
    if lacks_traces(reader, last)? {
        return Err(traces_failed(QueryError::NeedsTraces));
    }
    let range = reader.transactions_of(first, last).map_err(query_failed)?;
    let accounts: Vec<_> = matcher.from.iter().chain(&matcher.to).copied().collect();
    let (mut rest, mut skip) = (range, after);
    if accounts.is_empty() && after > 0 {
        // Every frame passes, so their numbers tell where to begin.
        let found = reader.frame_after((first, last), after).map_err(traces_failed)?;
        (rest.start, skip) = found.unwrap_or((rest.end, 0));
    }
    array(
        snapshot,
        Traces {
            accounts,
            matcher,
            skip,
            left: count.unwrap_or(u64::MAX),
            ..Traces::all(reader, rest)
        },
    )
}

/// How long the next trace is looked for. What passes between two frames does not count.
struct Search {
    since: Instant,
    left: Duration,
}

impl Search {
    fn new() -> Self {
        Self {
            since: clock::now(),
            left: WALK_TIME_MAX,
        }
    }

    /// A frame begins.
    const fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// It ends without what is looked for.
    fn pause(&mut self, now: Instant) {
        self.left = self.deadline().saturating_duration_since(now);
    }

    /// The next one is looked for from here on.
    const fn found(&mut self, now: Instant) {
        (self.since, self.left) = (now, WALK_TIME_MAX);
    }

    fn deadline(&self) -> Instant {
        self.since + self.left
    }

    fn check(&self, now: Instant) -> Result<(), HttpError> {
        match now < self.deadline() {
            true => Ok(()),
            false => Err(query_failed(QueryError::TimedOut)),
        }
    }
}

/// Traces of transactions, looked up some at a time.
struct Traces {
    reader: Reader,
    /// Those of which one took part; all transactions where there are none.
    accounts: Vec<Address>,
    matcher: Matcher,
    /// Transactions that were not looked at.
    rest: Range<u64>,
    /// Those that were looked up.
    known: VecDeque<u64>,
    /// The transaction whose traces are being written, and how many were.
    open: Option<(TracedTransaction, usize)>,
    /// Traces to leave out.
    skip: u64,
    /// Traces to give at most.
    left: u64,
    search: Search,
}

impl Traces {
    fn all(reader: &Reader, rest: Range<u64>) -> Self {
        Self {
            reader: reader.clone(),
            accounts: Vec::new(),
            matcher: Matcher::default(),
            rest,
            known: VecDeque::new(),
            open: None,
            skip: 0,
            left: u64::MAX,
            search: Search::new(),
        }
    }

    /// The transaction that comes next.
    fn next(&mut self) -> Result<Option<u64>, HttpError> {
        if self.accounts.is_empty() {
            return Ok(self.rest.next());
        }
        if self.known.is_empty() {
            let found = self.reader.involving(
                &self.accounts,
                self.rest.clone(),
                (false, LOOKED_UP),
                Some(self.search.deadline()),
            );
            self.known = found.map_err(traces_failed)?.into();
            self.rest.start = match self.known.back() {
                Some(last) => last + 1,
                None => self.rest.end,
            };
        }
        Ok(self.known.pop_front())
    }
}

impl Items for Traces {
    fn write(&mut self, frame: &mut ArrayFrame<'_>) -> Result<bool, HttpError> {
        let begun = clock::now();
        let until = begun + FRAME_TIME;
        self.search.begin(begun);
        while self.left > 0 {
            let now = clock::now();
            self.search.check(now)?;
            if now > until {
                self.search.pause(now);
                frame.pause();
                return Ok(true);
            }
            let Some((traced, written)) = &mut self.open else {
                let Some(ordinal) = self.next()? else {
                    return Ok(false);
                };
                self.open = Some((self.reader.traced(ordinal).map_err(traces_failed)?, 0));
                continue;
            };
            let place = place(traced);
            let children = rpc::subtraces(&traced.frames);
            let mut room = true;
            for (call, children) in traced.frames.iter().zip(children).skip(*written) {
                *written += 1;
                if !self.matcher.passes(call) {
                    continue;
                }
                if self.skip > 0 {
                    self.skip -= 1;
                    continue;
                }
                room = frame.item(|out| rpc::trace(out, call, children, &place));
                self.search.found(clock::now());
                self.left -= 1;
                if !room || self.left == 0 {
                    break;
                }
            }
            if *written >= traced.frames.len() {
                self.open = None;
            }
            if !room {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::ErrorStatus;
    use crate::model::FrameKind;

    #[test]
    fn what_is_looked_for_in_vain_is_given_up() {
        let begun = clock::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut search = Search::new();
        search.begin(at(0));
        assert_eq!(search.check(at(19)), Ok(()));
        let late = search.check(at(20)).unwrap_err();
        assert_eq!(late.status(), ErrorStatus::Unavailable);
        // What is found gives as much time again.
        search.found(at(19));
        assert_eq!(search.check(at(38)), Ok(()));
        // Until the next frame nobody looks for anything.
        search.pause(at(24));
        search.begin(at(100));
        assert_eq!(search.check(at(114)), Ok(()));
        assert!(search.check(at(115)).is_err());
        search.pause(at(130));
        search.begin(at(200));
        assert!(search.check(at(200)).is_err());
    }

    #[test]
    fn filters_join_or_intersect() {
        let [a, b, c] = [1, 2, 3].map(Address::repeat_byte);
        let frame = |from, to| Frame {
            from,
            to: Some(to),
            ..Frame::default()
        };
        let matcher = |from: &[Address], to: &[Address], both| Matcher {
            from: from.to_vec(),
            to: to.to_vec(),
            both,
        };
        let passes =
            |matcher: &Matcher| [frame(a, b), frame(b, a), frame(a, c)].map(|frame| matcher.passes(&frame));
        assert_eq!(passes(&matcher(&[], &[], false)), [true, true, true]);
        assert_eq!(passes(&matcher(&[a], &[], false)), [true, false, true]);
        assert_eq!(passes(&matcher(&[], &[a, c], false)), [false, true, true]);
        assert_eq!(passes(&matcher(&[b], &[b], false)), [true, true, false]);
        assert_eq!(passes(&matcher(&[a], &[b], true)), [true, false, false]);
    }

    #[test]
    fn a_creation_that_was_undone_has_no_recipient() {
        let [a, b] = [1, 2].map(Address::repeat_byte);
        let mut frame = Frame {
            kind: FrameKind::Create,
            from: a,
            to: Some(b),
            ..Frame::default()
        };
        let [to, both] = [(Vec::new(), false), (vec![a], true)].map(|(from, both)| Matcher {
            from,
            to: vec![b],
            both,
        });
        assert!(to.passes(&frame) && both.passes(&frame));
        frame.reverted = true;
        assert!(!to.passes(&frame) && !both.passes(&frame));
        // A call was made all the same.
        frame.kind = FrameKind::Call;
        assert!(to.passes(&frame) && both.passes(&frame));
    }
}
