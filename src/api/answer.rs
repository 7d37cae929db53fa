//! What a handler gives back, and the snapshot it works on.

use std::sync::Arc;

use crate::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LINK, VARY};
use bytes::Bytes;

use crate::http::{
    Body, FrameBuffers, FrameSource, HttpError, Lane, Pool, Response, StatusCode, header_number,
    json_response, stream_frames,
};
use crate::model::{BlockId, ChainName};
use crate::query::Reader;
use crate::status::ChainStatus;

use super::bounds::Extent;
use super::caching::Reach;
use super::context::{Upstream, UpstreamFuture};
use super::faults::UPSTREAM_FAILED;
use super::page::Shape;

pub(super) const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");
pub(super) const X_BALANCE_SOURCE: HeaderName = HeaderName::from_static("x-balance-source");
pub(super) const X_NONCE_SOURCE: HeaderName = HeaderName::from_static("x-nonce-source");
const X_INDEXED_BLOCK_NUMBER: HeaderName = HeaderName::from_static("x-indexed-block-number");
const X_INDEXED_BLOCK_HASH: HeaderName = HeaderName::from_static("x-indexed-block-hash");
const X_FINALIZED_BLOCK_NUMBER: HeaderName = HeaderName::from_static("x-finalized-block-number");

/// One consistent view of a chain that is not empty.
pub(super) struct Snapshot {
    pub(super) chain: ChainName,
    pub(super) reader: Reader,
    pub(super) status: Option<Arc<ChainStatus>>,
    pub(super) buffers: FrameBuffers,
}

impl Snapshot {
    /// How far the index and the node are. Without a node, the index is all there is.
    pub(super) fn extent(&self) -> Extent {
        let head = self.reader.head().number;
        let node_head = self
            .status
            .as_ref()
            .map_or(Some(head), |status| status.node_head());
        Extent {
            first: self.reader.first_block(),
            head,
            node_head: node_head.unwrap_or(head).max(head),
            node_known: node_head.is_some(),
        }
    }

    /// What the headers of the answer say about the snapshot.
    pub(super) fn facts(&self) -> Facts {
        Facts {
            head: self.reader.head(),
            finalized: self.reader.finalized(),
        }
    }
}

/// The snapshot as the headers state it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    head: BlockId,
    finalized: Option<u64>,
}

impl Facts {
    /// Adds the headers.
    pub(super) fn add_to(self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(X_INDEXED_BLOCK_NUMBER, header_number(self.head.number));
        let mut hash = Vec::with_capacity(66);
        hash.extend_from_slice(b"0x");
        hash.extend_from_slice(const_hex::encode(self.head.hash).as_bytes());
        if let Ok(hash) = HeaderValue::from_maybe_shared(Bytes::from(hash)) {
            headers.insert(X_INDEXED_BLOCK_HASH, hash);
        }
        if let Some(number) = self.finalized {
            headers.insert(X_FINALIZED_BLOCK_NUMBER, header_number(number));
        }
    }
}

/// What an operation does once its parameters are parsed.
pub(super) struct Plan {
    pub(super) lane: Lane,
    /// Whether it is tried where it was asked for first, out of memory.
    pub(super) is_quick: bool,
    pub(super) work: Work,
}

type Work = Box<dyn FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send>;

impl Plan {
    /// A few seeks.
    pub(super) fn point(work: impl FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send + 'static) -> Self {
        Self {
            lane: Lane::Point,
            is_quick: false,
            work: Box::new(work),
        }
    }

    /// One or two rows by key and a body of a line. Where they are in memory it is done by the thread that owns the
    /// socket: handing it to another one and back costs more than the work (`docs/decisions/0024-reading.md`).
    pub(super) fn quick(work: impl FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send + 'static) -> Self {
        Self {
            is_quick: true,
            ..Self::point(work)
        }
    }

    /// A list.
    pub(super) fn scan(work: impl FnOnce(&Snapshot) -> Result<Answer, HttpError> + Send + 'static) -> Self {
        Self {
            lane: Lane::Scan,
            is_quick: false,
            work: Box::new(work),
        }
    }
}

/// The answer of an operation, before it is a response.
pub(super) enum Answer {
    /// A whole body.
    Whole(Bytes, Extra),
    /// The first frame of a body and what gives the others.
    Begun(Bytes, Box<dyn FrameSource>, Extra),
    /// Only the node knows, and what it says is rendered by the operation.
    AskNode(Question),
}

/// What is asked of the node, and what is answered where there is none.
pub(super) struct Question {
    pub(super) unless: Result<Box<Answer>, HttpError>,
    pub(super) ask: Ask,
    /// Where the node fails, what is answered without one.
    pub(super) or_else_alone: bool,
    /// What the client reads where the node fails.
    pub(super) failure: &'static str,
}

type Asked = UpstreamFuture<'static, Result<Answer, HttpError>>;
type Ask = Box<dyn FnOnce(Arc<dyn Upstream>) -> Asked + Send>;

impl Question {
    pub(super) fn new(
        unless: Result<Answer, HttpError>,
        ask: impl FnOnce(Arc<dyn Upstream>) -> Asked + Send + 'static,
    ) -> Self {
        Self {
            unless: unless.map(Box::new),
            ask: Box::new(ask),
            failure: UPSTREAM_FAILED,
            or_else_alone: false,
        }
    }

    /// The same, answered without the node also where it fails: the store's own word is worth something.
    pub(super) const fn or_else_alone(mut self) -> Self {
        self.or_else_alone = true;
        self
    }

    /// The same, with the operation's own words for a node that fails.
    pub(super) fn failing_with(mut self, text: &'static str) -> Self {
        self.failure = text;
        self
    }
}

/// A header and what it says.
pub(super) type Source = (HeaderName, &'static str);

/// The store told it.
pub(super) const LEDGER: &str = "ledger";
/// The node told it.
pub(super) const NODE: &str = "node";

/// Headers of particular operations, and what the answer speaks of.
#[derive(Debug, Default)]
pub(super) struct Extra {
    pub(super) total: Option<u64>,
    pub(super) link: Option<HeaderValue>,
    /// The header that says who told it, and [`LEDGER`] or [`NODE`].
    pub(super) source: Option<Source>,
    /// How the list is written, where the answer is one; `Accept` decides.
    pub(super) shape: Option<Shape>,
    pub(super) reach: Reach,
}

impl Answer {
    /// A body rendered by serde that speaks of no more than `reach`.
    pub(super) fn json(value: &impl serde::Serialize, reach: Reach) -> Result<Self, HttpError> {
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
pub(super) fn whole(body: Bytes, extra: Extra) -> Response {
    let mut response = json_response(StatusCode::OK, body);
    extra.add_to(&mut response);
    response
}

/// A 200 whose body goes on.
pub(super) fn begun(pool: &Pool, first: Bytes, source: Box<dyn FrameSource>, extra: Extra) -> Response {
    let body: Body = stream_frames(pool, first, source);
    let mut response = json_response(StatusCode::OK, body);
    extra.add_to(&mut response);
    response
}
