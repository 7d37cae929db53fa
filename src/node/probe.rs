//! What a node can do, found by asking.

use super::client::{Node, Repeat};
use super::error::{NodeError, head};
use super::pace::RequestClass;
use super::tag::BlockTag;
use super::wire;
use crate::model::B256;

/// How far below the newest block a method is asked about, one try after the other. The last ones are on every node
/// behind a balancer, and no further away than a node without old states remembers.
const DEPTHS: [u64; 5] = [0, 1, 8, 32, 64];

/// So many unanswered tries end a probe: each may take a whole `request_timeout`.
const LATE_MAX: u32 = 2;

/// A method that may be missing, and how it is asked.
struct Question {
    class: RequestClass,
    method: &'static str,
    /// By the block's hash; by its number without.
    by_hash: bool,
    /// Parameters after the block.
    more: &'static str,
}

/// What is known of a method after a probe.
enum Offer {
    Yes,
    /// In the node's words.
    No(NodeError),
}

const RECEIPTS: Question = Question {
    class: RequestClass::Receipts,
    method: "eth_getBlockReceipts",
    by_hash: false,
    more: "",
};

/// What follows the block in requests of the call tracer.
pub(super) const CALL_TRACER: &str = ",{\"tracer\":\"callTracer\",\"timeout\":\"60s\"}";

/// How receipts are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiptMethod {
    /// `eth_getBlockReceipts`.
    #[default]
    Block,
    /// `eth_getTransactionReceipt`, once for each transaction: slower by as much.
    Transaction,
}

/// How traces are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceMethod {
    /// `trace_block`.
    TraceBlock,
    /// `debug_traceBlockByHash` with `callTracer`: a trace of no other block can come back.
    DebugByHash,
    /// `debug_traceBlockByNumber` with `callTracer`, whose answers state no block.
    DebugByNumber,
    /// The node traces nothing.
    #[default]
    None,
}

impl TraceMethod {
    /// The name of the JSON-RPC method.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TraceBlock => "trace_block",
            Self::DebugByHash => "debug_traceBlockByHash",
            Self::DebugByNumber => "debug_traceBlockByNumber",
            Self::None => "none",
        }
    }
}

/// What a node is and can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Chain id.
    pub chain_id: u64,
    /// Hash of block 0.
    pub genesis_hash: B256,
    /// `web3_clientVersion`, empty when the node does not say.
    pub client_version: String,
    /// Number of the newest block when asked.
    pub head: u64,
    /// Whether the `finalized` tag names a block.
    pub finalized_tag: bool,
    /// Whether the `safe` tag names a block.
    pub safe_tag: bool,
    /// How receipts are asked for.
    pub receipts: ReceiptMethod,
    /// How traces are asked for.
    pub traces: TraceMethod,
    /// Why there are no traces, in the node's words; empty when there are.
    pub traces_refused: String,
}

impl Capabilities {
    /// Whether another look is worth while: a node that was just starting, or another one behind a balancer, may
    /// have what was not there.
    #[must_use]
    pub fn lacks(&self) -> bool {
        let traced = matches!(self.traces, TraceMethod::TraceBlock | TraceMethod::DebugByHash);
        !traced || !self.finalized_tag || self.receipts == ReceiptMethod::Transaction
    }

    /// Adds what another look has found. What was there before stays: one node behind a balancer that lacks it
    /// must not cost the traces.
    #[must_use]
    pub fn joined(&self, found: Self) -> Self {
        Self {
            finalized_tag: self.finalized_tag || found.finalized_tag,
            safe_tag: self.safe_tag || found.safe_tag,
            receipts: match self.receipts {
                ReceiptMethod::Block => ReceiptMethod::Block,
                ReceiptMethod::Transaction => found.receipts,
            },
            traces: match (self.traces, found.traces) {
                (TraceMethod::None | TraceMethod::DebugByNumber, TraceMethod::None) => self.traces,
                (TraceMethod::None | TraceMethod::DebugByNumber, found) => found,
                (before, _) => before,
            },
            ..found
        }
    }

    /// Whether blocks are fetched by this method, which not every node offers.
    #[must_use]
    pub fn asks(&self, method: &str) -> bool {
        let by_number =
            self.traces == TraceMethod::DebugByHash && method == TraceMethod::DebugByNumber.as_str();
        match method {
            "eth_getBlockReceipts" => self.receipts == ReceiptMethod::Block,
            method => method == self.traces.as_str() || by_number,
        }
    }

    /// Takes what another look has found in the place of a method that is refused again and again; how it is asked now,
    /// in words. `None` where the look found the same, which another node behind a balancer may offer. Traces are done
    /// without only where `gives_up` says so.
    pub fn replace(&mut self, method: &str, found: &Self, gives_up: bool) -> Option<String> {
        if method == RECEIPTS.method {
            let moved = self.receipts != found.receipts;
            self.receipts = found.receipts;
            return moved.then(|| "receipts are asked for one by one".to_owned());
        }
        if found.traces == self.traces || (found.traces == TraceMethod::None && !gives_up) {
            return None;
        }
        self.traces = found.traces;
        self.traces_refused.clone_from(&found.traces_refused);
        Some(match self.traces {
            TraceMethod::None => format!("there are no traces ({})", self.traces_refused),
            traces => format!("traces are asked for by {}", traces.as_str()),
        })
    }

    /// What is missing and what suffers from it, in one sentence; `None` when nothing is.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.traces == TraceMethod::None {
            let why = if self.traces_refused.is_empty() {
                "it offers none"
            } else {
                self.traces_refused.as_str()
            };
            parts.push(format!(
                "it gives no traces by `trace_block`, `debug_traceBlockByHash` or `debug_traceBlockByNumber` \
                 ({why}), so internal transactions, their count in a block, balances moved by them and the \
                 status of transactions before Byzantium are unavailable"
            ));
        }
        if self.receipts == ReceiptMethod::Transaction {
            parts.push(
                "it lacks `eth_getBlockReceipts`, so receipts are asked for one by one and indexing is slower"
                    .to_owned(),
            );
        }
        if !self.finalized_tag {
            parts.push(
                "it names no `finalized` block, so finality is taken from a fixed number of confirmations"
                    .to_owned(),
            );
        }
        if parts.is_empty() {
            return None;
        }
        let who = if self.client_version.is_empty() {
            "the node"
        } else {
            self.client_version.as_str()
        };
        Some(format!("{who}: {}", parts.join("; ")))
    }
}

impl Node {
    /// Asks what the node is and can do.
    ///
    /// A method counts as missing when the node says so of the method. What else it says (a block is not there, a
    /// state is forgotten, nothing at all) is asked again about lower blocks, which a node behind a balancer that
    /// lags has too. One that refuses all of them does without the method until it is looked for again
    /// ([`Capabilities::lacks`]): providers refuse what a plan does not have in words of their own.
    ///
    /// # Errors
    ///
    /// As the way to the node fails.
    pub async fn probe(&self) -> Result<Capabilities, NodeError> {
        let (chain_id, genesis_hash) = self.chain().await?;
        let client_version = self.client_version().await?;
        let head = self.head().await?;
        let finalized_tag = self.tagged(BlockTag::Finalized).await?.is_some();
        let safe_tag = self.tagged(BlockTag::Safe).await?.is_some();
        let receipts = match self.offers(&RECEIPTS, head).await? {
            Offer::Yes => ReceiptMethod::Block,
            Offer::No(_) => ReceiptMethod::Transaction,
        };
        let (traces, traces_refused) = self.trace_method(head).await?;
        Ok(Capabilities {
            chain_id,
            genesis_hash,
            client_version,
            head,
            finalized_tag,
            safe_tag,
            receipts,
            traces,
            traces_refused,
        })
    }

    /// `web3_clientVersion`, empty when the node does not say.
    ///
    /// # Errors
    ///
    /// As the way to the node fails.
    pub async fn client_version(&self) -> Result<String, NodeError> {
        const METHOD: &str = "web3_clientVersion";
        match self
            .call(RequestClass::Light, METHOD, "[]", Repeat::UnlessAnswered)
            .await
        {
            Ok(text) => Ok(head(&wire::text(text.get()).unwrap_or_default())),
            // Nothing depends on it.
            Err(error) if error.is_answer() || error.is_refusal() => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    async fn trace_method(&self, head: u64) -> Result<(TraceMethod, String), NodeError> {
        let mut refusals = Vec::new();
        for method in [
            TraceMethod::TraceBlock,
            TraceMethod::DebugByHash,
            TraceMethod::DebugByNumber,
        ] {
            let question = Question {
                class: RequestClass::Traces,
                method: method.as_str(),
                by_hash: method == TraceMethod::DebugByHash,
                more: match method {
                    TraceMethod::TraceBlock | TraceMethod::None => "",
                    TraceMethod::DebugByHash | TraceMethod::DebugByNumber => CALL_TRACER,
                },
            };
            match self.offers(&question, head).await? {
                Offer::Yes => return Ok((method, String::new())),
                Offer::No(refusal) => refusals.push(refusal.to_string()),
            }
        }
        Ok((TraceMethod::None, refusals.join(", ")))
    }

    /// Whether a method answers for one of the newest blocks.
    async fn offers(&self, question: &Question, head: u64) -> Result<Offer, NodeError> {
        let mut late = 0;
        let mut last = None;
        for (tried, depth) in (0..).zip(DEPTHS) {
            if 0 < tried {
                tokio::time::sleep(self.config().backoff(tried)).await;
            }
            // Nodes that trace refuse block 0, which executes nothing: only a chain of one block is asked about it.
            let number = head.saturating_sub(depth).max(head.min(1));
            let error = match self.answers(question, number).await {
                Ok(()) => return Ok(Offer::Yes),
                Err(error) => error,
            };
            match &error {
                // Other methods were answered: it is this one that may not be asked.
                error if error.is_refusal() => return Ok(Offer::No(error.clone())),
                NodeError::Rpc { .. } | NodeError::NullResult { .. } if number == 0 => return Ok(Offer::Yes),
                // Too much for one answer, which shows that the method is there.
                NodeError::ResponseTooLarge { .. } => return Ok(Offer::Yes),
                NodeError::Timeout { .. } => {
                    late += 1;
                    if LATE_MAX <= late {
                        return Err(error);
                    }
                }
                error if error.is_answer() => {}
                _ => return Err(error),
            }
            tracing::debug!(%error, number, "a probe was not answered");
            last = Some(error);
        }
        let none = || NodeError::null_block(question.method, head);
        Ok(Offer::No(last.unwrap_or_else(none)))
    }

    /// One try. `null` is no answer: so speak nodes of blocks that they do not have.
    async fn answers(&self, question: &Question, number: u64) -> Result<(), NodeError> {
        let Question { class, method, .. } = *question;
        let null = |method| NodeError::null_block(method, number);
        let block = if question.by_hash {
            let named = self
                .block_id_of(&format!("0x{number:x}"), Repeat::UnlessAnswered)
                .await?;
            let id = named.ok_or_else(|| null("eth_getBlockByNumber"))?;
            format!("{:?}", id.hash)
        } else {
            format!("0x{number:x}")
        };
        let params = format!("[\"{block}\"{}]", question.more);
        let text = self
            .call(class, method, &params, Repeat::UnlessAnsweredOrLate)
            .await?;
        if text.get() == "null" {
            return Err(null(method));
        }
        text.check(method)
    }
}
