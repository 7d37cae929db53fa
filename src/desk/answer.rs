//! What a handler gives back, and the snapshot it works on.

use std::sync::{Arc, OnceLock};

use crate::clock;
use crate::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LINK, VARY};
use bytes::Bytes;

use crate::http::{
    Body, FrameBuffers, FrameSource, HttpError, Lane, Pool, Response, StatusCode, header_number,
    json_response, stream_frames,
};
use crate::model::{BlockId, ChainName};
use crate::query::Reader;
use crate::status::ChainStatus;

use super::bounds::{Extent, WORD_FRESH_SECONDS, reachable};
use super::caching::Reach;
use super::context::{Upstream, UpstreamFuture};
use super::faults::{UPSTREAM_FAILED, never_indexed, query_failed, still_indexing};
use super::lists::Shape;

pub(crate) const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");
pub(crate) const X_BALANCE_SOURCE: HeaderName = HeaderName::from_static("x-balance-source");
pub(crate) const X_NONCE_SOURCE: HeaderName = HeaderName::from_static("x-nonce-source");
const X_INDEXED_BLOCK_NUMBER: HeaderName = HeaderName::from_static("x-indexed-block-number");
const X_INDEXED_BLOCK_HASH: HeaderName = HeaderName::from_static("x-indexed-block-hash");
const X_FINALIZED_BLOCK_NUMBER: HeaderName = HeaderName::from_static("x-finalized-block-number");

/// The pace of a chain is that of so many of its last blocks, or of all.
const RECENT_BLOCKS: u64 = 128;

/// One consistent view of a chain that is not empty.
pub(crate) struct Snapshot {
    pub(crate) chain: ChainName,
    pub(crate) reader: Reader,
    pub(crate) status: Option<Arc<ChainStatus>>,
    /// Of a chain without a status: the node's head as was heard when the store was filled.
    pub(crate) node_heard: Option<u64>,
    /// Its `safe` block in the same way.
    pub(crate) safe_heard: Option<u64>,
    /// Whether there is a node to ask, be it away.
    pub(crate) has_node: bool,
    /// How far index and node are, as it was when somebody first wanted to know: tag and body speak of the same.
    pub(crate) extent: OnceLock<Extent>,
    pub(crate) buffers: FrameBuffers,
}

impl Snapshot {
    /// How far the index and the node are. Without a node, the index is all there is, or what the node had when the store was filled.
    pub(crate) fn extent(&self) -> Extent {
        *self.extent.get_or_init(|| self.measured())
    }

    fn measured(&self) -> Extent {
        let (first, head) = (self.reader.first_block(), self.reader.head().number);
        let heard = self.node_heard.map_or(head, |heard| heard.max(head));
        let mut extent = Extent {
            first,
            head,
            node_head: heard,
            node_limit: heard,
        };
        let Some(status) = &self.status else { return extent };
        let now = clock::unix_now();
        let time = |number| self.reader.block_time(number).unwrap_or(0);
        let word = status.head_word();
        extent.node_head = word.map_or(head, |word| word.number.max(head));
        let elapsed = match word {
            Some(word) if status.node_head().is_some() => {
                let elapsed = now.saturating_sub(word.at);
                if elapsed <= WORD_FRESH_SECONDS {
                    extent.node_limit = extent.node_head;
                    return extent;
                }
                elapsed
            }
            // Of an earlier process: the chain went on since.
            Some(word) => now.saturating_sub(word.at),
            // Nobody ever heard of it: it was at the indexed head when that was made, where times tell.
            None => now.checked_sub(time(head)).unwrap_or(u64::MAX),
        };
        let pace = |from: u64| (head.saturating_sub(from), time(head).saturating_sub(time(from)));
        // Block 0 of many chains was made long before the others.
        let start = first.max(1).min(head);
        let paces = [pace(start), pace(head.saturating_sub(RECENT_BLOCKS).max(start))];
        extent.node_limit = reachable(extent.node_head, elapsed, &paces);
        extent
    }

    /// 503 for what only a node can tell: for good where there is none, while one that is away may come back.
    pub(crate) fn needs_node(&self) -> HttpError {
        match self.has_node {
            true => still_indexing(),
            false => never_indexed(),
        }
    }

    /// The block of this number, where a reorg may yet replace it. Nothing of one before the first: none is stored that the node's
    /// could be held against.
    fn unsettled(&self, number: u64) -> Result<Option<BlockId>, HttpError> {
        let is_final = self.reader.finalized().is_some_and(|last| number <= last);
        if is_final || number < self.reader.first_block() {
            return Ok(None);
        }
        let block = self.reader.view().block(number);
        let hash = block.map_err(|error| query_failed(error.into()))?.hash;
        Ok(Some(BlockId { number, hash }))
    }

    /// What the headers of the answer say about the snapshot.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            head: self.reader.head(),
            finalized: self.reader.finalized(),
        }
    }
}

/// The snapshot as the headers state it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    head: BlockId,
    finalized: Option<u64>,
}

impl Facts {
    /// Adds the headers.
    pub(crate) fn add_to(self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(X_INDEXED_BLOCK_NUMBER, header_number(self.head.number));
        let hash = const_hex::const_encode::<32, true>(&self.head.hash);
        if let Ok(hash) = HeaderValue::from_bytes(hash.as_bytes()) {
            headers.insert(X_INDEXED_BLOCK_HASH, hash);
        }
        if let Some(number) = self.finalized {
            headers.insert(X_FINALIZED_BLOCK_NUMBER, header_number(number));
        }
    }
}

/// What an operation does once its parameters are parsed.
pub(crate) struct Plan {
    pub(crate) lane: Lane,
    pub(crate) quick: Quick,
    pub(crate) work: Work,
}

/// Whether it is tried where it was asked for first, out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quick {
    No,
    Yes,
    /// Where the client wants it as it is: compressing it would take longer than handing it on does.
    AsItIs,
    /// The same where few bodies are being sent.
    AmongFew,
}

type Work = Box<dyn FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send>;

impl Plan {
    /// A few seeks.
    pub(crate) fn point(work: impl FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send + 'static) -> Self {
        Self {
            lane: Lane::Point,
            quick: Quick::No,
            work: Box::new(work),
        }
    }

    /// One or two rows by key and a body of a line. Where they are in memory it is done by the thread that owns the
    /// socket: handing it to another one and back costs more than the work (`docs/decisions/0024-reading.md`).
    pub(crate) fn quick(work: impl FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send + 'static) -> Self {
        Self {
            quick: Quick::Yes,
            ..Self::point(work)
        }
    }

    /// A few rows by key and a body of some kilobytes: as [`Plan::quick`], where it goes out as it is.
    pub(crate) fn quick_object(
        work: impl FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send + 'static,
    ) -> Self {
        Self {
            quick: Quick::AsItIs,
            ..Self::point(work)
        }
    }

    /// A list that one list of places drives, whose frames are made out of little: as [`Plan::quick`], bounded by a frame. One
    /// that is not short keeps its thread from others for longer.
    pub(crate) fn quick_scan(
        is_short: bool,
        work: impl FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send + 'static,
    ) -> Self {
        Self {
            quick: if is_short { Quick::AsItIs } else { Quick::AmongFew },
            ..Self::scan(work)
        }
    }

    /// Whether its answer takes so much more than to look for it among those that were kept.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        self.quick != Quick::Yes
    }

    /// A list.
    pub(crate) fn scan(work: impl FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send + 'static) -> Self {
        Self {
            lane: Lane::Scan,
            quick: Quick::No,
            work: Box::new(work),
        }
    }
}

/// The answer of an operation, before it is a response.
pub(crate) enum Answer {
    /// A whole body.
    Whole(Bytes, Extra),
    /// The first frame of a body and what gives the others.
    Begun(Bytes, Box<dyn FrameSource>, Extra),
    /// Only the node knows, and what it says is rendered by the operation.
    AskNode(Question),
}

/// What is asked of the node, and what is answered where there is none.
pub(crate) struct Question {
    /// The block that the answer speaks of, where a reorg may yet replace it: the node must have the same.
    pub(crate) block: Option<BlockId>,
    pub(crate) unless: Result<Box<Answer>, HttpError>,
    pub(crate) ask: Ask,
    /// Where the node fails, what is answered without one.
    pub(crate) or_else_alone: bool,
    /// What the client reads where the node fails.
    pub(crate) failure: &'static str,
}

/// What the node tells, rendered.
type Told = UpstreamFuture<'static, Result<Answer, HttpError>>;
type Ask = Box<dyn FnOnce(Arc<dyn Upstream>) -> Told + Send>;

impl Question {
    /// A question about whatever the node's chain is.
    pub(crate) fn new(
        unless: Result<Answer, HttpError>,
        ask: impl FnOnce(Arc<dyn Upstream>) -> Told + Send + 'static,
    ) -> Self {
        Self {
            block: None,
            unless: unless.map(Box::new),
            ask: Box::new(ask),
            failure: UPSTREAM_FAILED,
            or_else_alone: false,
        }
    }

    /// A question about the state after block `number` of a snapshot.
    ///
    /// # Errors
    ///
    /// When the store fails: nobody knows then which block the answer would speak of.
    pub(crate) fn after(
        snapshot: &Snapshot,
        number: u64,
        unless: Result<Answer, HttpError>,
        ask: impl FnOnce(Arc<dyn Upstream>) -> Told + Send + 'static,
    ) -> Result<Self, HttpError> {
        Ok(Self {
            block: snapshot.unsettled(number)?,
            ..Self::new(unless, ask)
        })
    }

    /// The same with `change` made to whatever is answered.
    pub(crate) fn map(self, change: fn(Answer) -> Answer) -> Self {
        let ask = self.ask;
        Self {
            unless: self.unless.map(|answer| Box::new(change(*answer))),
            ask: Box::new(move |node| Box::pin(async move { Ok(ask(node).await?.map(change)) })),
            ..self
        }
    }

    /// The same, answered without the node also where it fails: the store's own word is worth something.
    pub(crate) const fn or_else_alone(mut self) -> Self {
        self.or_else_alone = true;
        self
    }

    /// The same, with the operation's own words for a node that fails.
    pub(crate) fn failing_with(mut self, text: &'static str) -> Self {
        self.failure = text;
        self
    }
}

/// A header and what it says.
pub(crate) type Source = (HeaderName, &'static str);

/// The store told it.
pub(crate) const LEDGER: &str = "ledger";
/// The node told it.
pub(crate) const NODE: &str = "node";

/// Headers of particular operations, and what the answer speaks of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    pub(crate) total: Option<u64>,
    pub(crate) link: Option<HeaderValue>,
    /// The header that says who told it, and [`LEDGER`] or [`NODE`].
    pub(crate) source: Option<Source>,
    /// How the list is written, where the answer is one; `Accept` decides.
    pub(crate) shape: Option<Shape>,
    pub(crate) reach: Reach,
}

/// What an answer that goes on holds beside its first frame, about: what is looked up ahead, and a frame.
const BEGUN_BYTES: usize = 1 << 20;

impl Answer {
    /// About how much memory it holds.
    pub(crate) fn bytes_held(&self) -> usize {
        match self {
            Self::Whole(body, _) => body.len(),
            Self::Begun(first, ..) => first.len() + BEGUN_BYTES,
            Self::AskNode(_) => 0,
        }
    }

    /// The same with `change` made to what stands beside the body.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Extra)) -> Self {
        match &mut self {
            Self::Whole(_, extra) | Self::Begun(_, _, extra) => change(extra),
            Self::AskNode(_) => {}
        }
        self
    }

    /// The same with the header that says who told its balances: [`LEDGER`] or [`NODE`].
    pub(crate) fn balances_by(self, source: &'static str) -> Self {
        self.with(|extra| extra.source = Some((X_BALANCE_SOURCE, source)))
    }

    /// A body rendered by serde that speaks of no more than `reach`.
    pub(crate) fn json(value: &impl serde::Serialize, reach: Reach) -> Result<Self, HttpError> {
        let extra = Extra {
            reach,
            ..Extra::default()
        };
        serde_json::to_vec(value)
            .map(|body| Self::Whole(body.into(), extra))
            .map_err(|error| HttpError::internal(format!("render: {error}")))
    }
}

impl Extra {
    fn add_to(self, response: &mut Response) {
        let headers = response.headers_mut();
        if let Some(total) = self.total {
            headers.insert(X_TOTAL_COUNT, header_number(total));
        }
        if let Some(link) = self.link {
            headers.insert(LINK, link);
        }
        if let Some(shape) = self.shape {
            headers.append(VARY, HeaderValue::from_static("Accept"));
            if shape == Shape::Lines {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
            }
        }
        if let Some((name, source)) = self.source {
            headers.insert(name, HeaderValue::from_static(source));
        }
    }
}

/// A 200 with this body.
pub(crate) fn whole(body: Bytes, extra: Extra) -> Response {
    let mut response = json_response(StatusCode::OK, body);
    extra.add_to(&mut response);
    response
}

/// A 200 whose body goes on; `at_once` gives its frames without waiting, as long as it can.
pub(crate) fn begun(
    pool: &Pool,
    first: Bytes,
    source: Box<dyn FrameSource>,
    at_once: Option<Box<dyn FrameSource>>,
    extra: Extra,
) -> Response {
    let body: Body = stream_frames(pool, first, source, at_once);
    let mut response = json_response(StatusCode::OK, body);
    extra.add_to(&mut response);
    response
}
