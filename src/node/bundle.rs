//! Fetching all that one block brings, in one go.

use super::client::{Node, Repeat};
use super::error::NodeError;
use super::link::ResultText;
use super::pace::RequestClass;
use super::probe::{CALL_TRACER, Capabilities, ReceiptMethod, TraceMethod};
use super::room::{Kept, Reservation};
use super::tries::Tries;
use super::wire::{self, Untold};
use crate::model::{B256, Bundle};
use crate::tasks;
use futures_util::future::try_join_all;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Answers longer than this are parsed on a thread of their own, so that others keep running.
const PARSE_INLINE_BYTES_MAX: usize = 64 << 10;

/// Waits before traces that seem to lack frames are asked for once more.
const GAP_WAITS: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// A node that stood by so many blocks with fewer frames than it counts is one that leaves frames out; it is not waited for.
const GAPS_BELIEVED: u64 = 3;

/// A bundle and how much the node sent for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The bundle.
    pub bundle: Bundle,
    /// Bytes of JSON.
    pub bytes: usize,
}

/// Why an attempt failed.
pub(super) enum Failure {
    /// At a request, which has been repeated already.
    Request(NodeError),
    /// In what answers say.
    Content(NodeError),
    /// At a request about a block that the node may have left: the whole is asked for again.
    Left(NodeError),
}

/// The answers of one attempt.
struct Answers {
    number: u64,
    block: ResultText,
    receipts: Option<ResultText>,
    traces: Option<(TraceMethod, ResultText)>,
}

const BLOCK: &str = "eth_getBlockByNumber";
const RECEIPTS: &str = "eth_getBlockReceipts";
const RECEIPT: &str = "eth_getTransactionReceipt";

impl Node {
    /// Fetches block `number` with its receipts, and its traces where the node has them.
    ///
    /// The requests run at the same time, but for those whose answers do not say which block they are about: they
    /// wait for the block's hash. Parts that do not belong together (the chain moved in between), that lack
    /// something or that cannot be read are asked for again like failed requests. Those who keep room come before it.
    ///
    /// # Errors
    ///
    /// The last failure, when asking again does not help.
    pub async fn bundle(&self, number: u64, capabilities: &Capabilities) -> Result<Fetched, NodeError> {
        let reserved = self.reserve_aside().await;
        self.bundle_within(&reserved, number, capabilities).await
    }

    /// The same for a caller who keeps the room for it until the bundle is out of memory.
    ///
    /// # Errors
    ///
    /// As those of [`Self::bundle`].
    pub async fn bundle_within(
        &self,
        reserved: &Arc<Reservation>,
        number: u64,
        capabilities: &Capabilities,
    ) -> Result<Fetched, NodeError> {
        let node = self.within(reserved);
        let mut tries = Tries::default();
        loop {
            match node.bundle_once(reserved, number, capabilities).await {
                Ok(fetched) => return Ok(fetched),
                Err(Failure::Request(error)) => return Err(error),
                Err(Failure::Content(error)) => {
                    let error = self.shown(error);
                    self.count_failure(&error);
                    self.before_repetition(&mut tries, error).await?;
                }
                Err(Failure::Left(error)) => self.before_repetition(&mut tries, error).await?,
            }
        }
    }

    async fn bundle_once(
        &self,
        reserved: &Reservation,
        number: u64,
        capabilities: &Capabilities,
    ) -> Result<Fetched, Failure> {
        let method = capabilities.traces;
        let block = async {
            let params = format!("[\"0x{number:x}\",true]");
            let block = self.ask(RequestClass::Block, BLOCK, &params).await?;
            let traces = match method {
                TraceMethod::DebugByHash | TraceMethod::DebugByNumber if 0 < number => Some(
                    self.call_traces(method, number, told_hash(number, &block)?)
                        .await?,
                ),
                _ => None,
            };
            Ok((block, traces))
        };
        let receipts = async {
            match capabilities.receipts {
                ReceiptMethod::Block => {
                    let params = format!("[\"0x{number:x}\"]");
                    self.ask(RequestClass::Receipts, RECEIPTS, &params)
                        .await
                        .map(Some)
                }
                ReceiptMethod::Transaction => Ok(None),
            }
        };
        let traces = async {
            // The first block executes nothing as a rule, and some nodes refuse to trace it.
            if method != TraceMethod::TraceBlock || number == 0 {
                return Ok(None);
            }
            let text = self.block_traces(number).await?;
            Ok(Some((method, text)))
        };
        let ((block, call_traces), receipts, traces) = tokio::try_join!(block, receipts, traces)?;
        let traces = call_traces.or(traces);
        let answers = Answers {
            number,
            block,
            receipts,
            traces,
        };
        // Not always the one that was tried first.
        let answered = answers.traces.as_ref().map_or(method, |&(answered, _)| answered);
        let mut bytes = answers.bytes();
        let has_traces = method != TraceMethod::None;
        let parsed = off_thread(bytes, move || answers.parse(has_traces)).await?;
        let (mut bundle, mut untold, proven) = parsed;
        if !proven {
            bytes += self.trace_again(&mut bundle, &mut untold).await?;
        } else if number == 0 && has_traces && bundle.traces.is_none() {
            bytes += self.trace_first(&mut bundle, &mut untold, method).await?;
        }
        if capabilities.receipts == ReceiptMethod::Transaction {
            bytes += self.add_receipts(reserved, &mut bundle).await?;
        }
        wire::settle(&mut bundle, &untold)
            .map_err(|error| Failure::Content(NodeError::of_wire(answered.as_str(), number, error)))?;
        bytes += self.add_uncles(&mut bundle.block).await?;
        Ok(Fetched { bundle, bytes })
    }

    async fn ask(
        &self,
        class: RequestClass,
        method: &'static str,
        params: &str,
    ) -> Result<ResultText, Failure> {
        self.call(class, method, params, Repeat::Always)
            .await
            .map_err(Failure::Request)
    }

    async fn block_traces(&self, number: u64) -> Result<ResultText, Failure> {
        let (method, params) = (TraceMethod::TraceBlock.as_str(), format!("[\"0x{number:x}\"]"));
        self.ask(RequestClass::Traces, method, &params).await
    }

    /// Asks for the traces of the block that was told, by its hash where the node takes it.
    async fn call_traces(
        &self,
        method: TraceMethod,
        number: u64,
        hash: B256,
    ) -> Result<(TraceMethod, ResultText), Failure> {
        if method == TraceMethod::DebugByHash {
            let params = format!("[\"{hash:?}\"{CALL_TRACER}]");
            let asked = self.call(
                RequestClass::Traces,
                method.as_str(),
                &params,
                Repeat::UnlessAnswered,
            );
            match asked.await {
                Ok(text) => return Ok((method, text)),
                // Another node behind a balancer may lack it.
                Err(error) if error.is_refusal() => {}
                // One that has left the block for another does not find it: no use in asking for it again.
                Err(error) if error.is_answer() => return Err(Failure::Left(error)),
                Err(error) => return Err(Failure::Request(error)),
            }
        }
        let method = TraceMethod::DebugByNumber;
        let params = format!("[\"0x{number:x}\"{CALL_TRACER}]");
        let text = self.ask(RequestClass::Traces, method.as_str(), &params).await?;
        self.still(method, number, hash).await?;
        Ok((method, text))
    }

    /// Asks again for traces that did not state their block or seem to lack frames, between two looks at its hash.
    async fn trace_again(&self, bundle: &mut Bundle, untold: &mut Vec<Untold>) -> Result<usize, Failure> {
        let (number, method) = (bundle.block.number(), TraceMethod::TraceBlock);
        let mut waits = GAP_WAITS.iter();
        loop {
            self.still(method, number, bundle.block.hash).await?;
            let text = self.block_traces(number).await?;
            self.still(method, number, bundle.block.hash).await?;
            let told = wire::told_traces(text.get(), &bundle.block)
                .map_err(|error| Failure::Content(NodeError::of_wire(method.as_str(), number, error)))?;
            if let Some(gap) = told.gap {
                // One that lost frames on the way has them a moment later.
                if self.gaps().load(Ordering::Relaxed) < GAPS_BELIEVED
                    && let Some(&wait) = waits.next()
                {
                    tokio::time::sleep(wait).await;
                    continue;
                }
                // A node that counts what it leaves out says so each time; nothing else tells that frames are missing.
                self.gaps().fetch_add(1, Ordering::Relaxed);
                tracing::warn!(number, %gap, "trace_block says again and again that it lacks frames: taken as it is");
            }
            (bundle.traces, *untold) = (Some(told.traces), told.untold);
            return Ok(text.get().len());
        }
    }

    /// Asks for the traces of a first block that has transactions. A node that says it has none is believed.
    async fn trace_first(
        &self,
        bundle: &mut Bundle,
        untold: &mut Vec<Untold>,
        method: TraceMethod,
    ) -> Result<usize, Failure> {
        let asked = match method {
            TraceMethod::TraceBlock | TraceMethod::None => self.trace_again(bundle, untold).await,
            TraceMethod::DebugByHash | TraceMethod::DebugByNumber => {
                let asked = self.call_traces(method, 0, bundle.block.hash).await;
                asked.and_then(|(method, text)| {
                    let told = wire::told_calls(text.get(), &bundle.block)
                        .map_err(|error| Failure::Content(NodeError::of_wire(method.as_str(), 0, error)))?;
                    (bundle.traces, *untold) = (Some(told.traces), told.untold);
                    Ok(text.get().len())
                })
            }
        };
        match asked {
            Err(Failure::Request(error) | Failure::Left(error)) if error.is_answer() => {
                tracing::warn!(%error, "the node does not trace the first block, which has transactions: there are no traces");
                Ok(0)
            }
            asked => asked,
        }
    }

    /// Fails unless the node's block `number` is the one of `hash`, after an answer that does not say of which block
    /// it is.
    async fn still(&self, method: TraceMethod, number: u64, hash: B256) -> Result<(), Failure> {
        let same = match self.block_id(number).await.map_err(Failure::Request)? {
            Some(id) => NodeError::unless_same_block(method.as_str(), number, hash, id.hash),
            None => Err(NodeError::null_block(BLOCK, number)),
        };
        same.map_err(Failure::Content)
    }

    /// Asks for the receipts one by one. Together they may weigh what those of a block may that come at once.
    async fn add_receipts(&self, reserved: &Reservation, bundle: &mut Bundle) -> Result<usize, Failure> {
        let number = bundle.block.number();
        let kept = reserved.keep();
        let hashes = bundle.block.transactions.iter().map(|of| of.hash);
        let texts = try_join_all(hashes.map(|hash| self.receipt(&kept, number, hash))).await?;
        let bytes = texts.iter().map(|text| text.get().len()).sum();
        self.recent().weighed(RequestClass::Receipts, bytes);
        let texts: Vec<&str> = texts.iter().map(|text| text.get()).collect();
        bundle.receipts = wire::receipt_texts(&texts, &bundle.block)
            .map_err(|error| Failure::Content(NodeError::of_wire(RECEIPT, number, error)))?;
        Ok(bytes)
    }

    /// Asks for one receipt, again where there was no room for it beside those that came before.
    async fn receipt(&self, kept: &Kept<'_>, number: u64, hash: B256) -> Result<ResultText, Failure> {
        let params = format!("[\"{hash}\"]");
        let bytes_max = self.config().bytes_max(RequestClass::Receipts);
        loop {
            let text = self.ask(RequestClass::Receipt, RECEIPT, &params).await?;
            let bytes = text.get().len();
            match kept.take(bytes) {
                Some(all) if bytes_max < all => {
                    return Err(Failure::Request(NodeError::ResponseTooLarge {
                        method: RECEIPT,
                        bytes: all,
                        bytes_max,
                    }));
                }
                Some(_) => {
                    return not_null(text, RECEIPT, || format!("transaction {hash} of block {number}"));
                }
                None => drop(text),
            }
            kept.wait_for(bytes).await;
        }
    }
}

pub(super) fn not_null(
    text: ResultText,
    method: &'static str,
    what: impl FnOnce() -> String,
) -> Result<ResultText, Failure> {
    if text.get() == "null" {
        return Err(Failure::Content(NodeError::NullResult { method, what: what() }));
    }
    Ok(text)
}

/// The hash of a block that was told.
fn told_hash(number: u64, block: &ResultText) -> Result<B256, Failure> {
    if block.get() == "null" {
        return Err(Failure::Content(NodeError::null_block(BLOCK, number)));
    }
    let hash = wire::block_hash(block.get());
    hash.map_err(|error| Failure::Content(NodeError::of_wire(BLOCK, number, error)))
}

async fn off_thread<T: Send + 'static>(
    bytes: usize,
    parse: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<T, Failure> {
    if bytes <= PARSE_INLINE_BYTES_MAX {
        return parse().map_err(Failure::Content);
    }
    match tasks::blocking(parse).await {
        Ok(result) => result.map_err(Failure::Content),
        Err(error) => Err(Failure::Request(NodeError::Transport {
            method: BLOCK,
            reason: format!("parser ended: {error}"),
        })),
    }
}

impl Answers {
    fn bytes(&self) -> usize {
        let of = |text: &ResultText| text.get().len();
        of(&self.block)
            + self.receipts.as_ref().map_or(0, of)
            + self.traces.as_ref().map_or(0, |(_, text)| of(text))
    }

    /// The bundle, the transactions whose own calls were not told, and whether the traces are known to be of their block.
    fn parse(self, has_traces: bool) -> Result<(Bundle, Vec<Untold>, bool), NodeError> {
        let number = self.number;
        let null = |method| NodeError::null_block(method, number);
        if self.block.get() == "null" {
            return Err(null(BLOCK));
        }
        let block =
            wire::block(self.block.get()).map_err(|error| NodeError::of_wire(BLOCK, number, error))?;
        if block.number() != number {
            return Err(NodeError::other_block(BLOCK, number, block.number()));
        }
        let empty = block.transactions.is_empty();
        let receipts = match &self.receipts {
            None => Vec::new(),
            Some(text) if text.get() == "null" && empty => Vec::new(),
            Some(text) if text.get() == "null" => return Err(null(RECEIPTS)),
            Some(text) => wire::receipts(text.get(), &block)
                .map_err(|error| NodeError::of_wire(RECEIPTS, number, error))?,
        };
        let (mut proven, mut untold) = (true, Vec::new());
        let traces = match &self.traces {
            None => (has_traces && empty).then(Vec::new),
            Some((_, text)) if text.get() == "null" && empty => Some(Vec::new()),
            Some((method, text)) if text.get() == "null" => return Err(null(method.as_str())),
            Some((method, text)) => {
                let parsed = match method {
                    TraceMethod::DebugByHash | TraceMethod::DebugByNumber => {
                        wire::told_calls(text.get(), &block)
                    }
                    TraceMethod::TraceBlock | TraceMethod::None => wire::told_traces(text.get(), &block)
                        .inspect(|told| proven = told.state_block && told.gap.is_none()),
                };
                let told = parsed.map_err(|error| NodeError::of_wire(method.as_str(), number, error))?;
                untold = told.untold;
                Some(told.traces)
            }
        };
        let bundle = Bundle {
            block,
            receipts,
            traces,
            openings: None,
        };
        Ok((bundle, untold, proven))
    }
}
