//! What a node can do, found by asking.

use super::client::{BlockTag, Node, Repeat};
use super::error::NodeError;
use super::pace::RequestClass;
use super::wire;
use crate::model::B256;

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
    /// `debug_traceBlockByNumber` with `callTracer`.
    DebugCallTracer,
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
            Self::DebugCallTracer => "debug_traceBlockByNumber",
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
    /// What is missing and what suffers from it, in one sentence; `None` when nothing is.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.traces == TraceMethod::None {
            let why = if self.traces_refused.is_empty() {
                "it offers neither"
            } else {
                self.traces_refused.as_str()
            };
            parts.push(format!(
                "it gives no traces by `trace_block` or `debug_traceBlockByNumber` ({why}), so internal \
                 transactions, their count in a block, balances moved by them and the status of transactions \
                 before Byzantium are unavailable"
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
    /// A method counts as missing when the node says so, or when it refuses the newest block and the one
    /// before in its own words; an empty list is an answer. Failures of the way to the node are errors,
    /// so that a bad moment is not taken for a missing method.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn probe(&self) -> Result<Capabilities, NodeError> {
        let chain_id = self.quantity("eth_chainId", "[]").await?;
        let genesis = self.block_id(0).await?.ok_or_else(|| NodeError::NullResult {
            method: "eth_getBlockByNumber",
            what: "block 0".to_owned(),
        })?;
        let client_version = self.client_version().await?;
        let head = self.head().await?;
        let finalized_tag = self.tagged(BlockTag::Finalized).await?.is_some();
        let safe_tag = self.tagged(BlockTag::Safe).await?.is_some();
        let receipts = match self
            .offers(RequestClass::Receipts, "eth_getBlockReceipts", "", head)
            .await?
        {
            Ok(()) => ReceiptMethod::Block,
            Err(_) => ReceiptMethod::Transaction,
        };
        let (traces, traces_refused) = self.trace_method(head).await?;
        Ok(Capabilities {
            chain_id,
            genesis_hash: genesis.hash,
            client_version,
            head,
            finalized_tag,
            safe_tag,
            receipts,
            traces,
            traces_refused,
        })
    }

    async fn client_version(&self) -> Result<String, NodeError> {
        const METHOD: &str = "web3_clientVersion";
        match self
            .call(RequestClass::Light, METHOD, "[]", Repeat::UnlessAnswered)
            .await
        {
            Ok(text) => Ok(wire::text(text.get()).unwrap_or_default()),
            Err(error) if error.is_answer() => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    async fn trace_method(&self, head: u64) -> Result<(TraceMethod, String), NodeError> {
        let mut refusals = Vec::new();
        for (method, more) in [
            (TraceMethod::TraceBlock, ""),
            (
                TraceMethod::DebugCallTracer,
                ",{\"tracer\":\"callTracer\",\"timeout\":\"60s\"}",
            ),
        ] {
            match self
                .offers(RequestClass::Traces, method.as_str(), more, head)
                .await?
            {
                Ok(()) => return Ok((method, String::new())),
                Err(refusal) => refusals.push(refusal.to_string()),
            }
        }
        Ok((TraceMethod::None, refusals.join(", ")))
    }

    /// Whether `method` answers for the newest block or the one before; else why it does not.
    async fn offers(
        &self,
        class: RequestClass,
        method: &'static str,
        more: &str,
        head: u64,
    ) -> Result<Result<(), NodeError>, NodeError> {
        let mut refusal = None;
        let second = (0 < head).then(|| head - 1);
        for number in std::iter::once(head).chain(second) {
            let params = format!("[\"0x{number:x}\"{more}]");
            match self.call(class, method, &params, Repeat::UnlessAnswered).await {
                Ok(text) if text.get() != "null" => return Ok(Ok(())),
                Ok(_) => {
                    refusal = Some(NodeError::NullResult {
                        method,
                        what: format!("block {number}"),
                    });
                }
                Err(error @ NodeError::MethodNotFound { .. }) => return Ok(Err(error)),
                // A young chain: nodes that trace refuse the first block, which executes nothing.
                Err(NodeError::Rpc { .. }) if number == 0 => return Ok(Ok(())),
                // The newest blocks are too much for one answer, which shows that the method is there.
                Err(NodeError::ResponseTooLarge { .. }) => return Ok(Ok(())),
                Err(error) if error.is_answer() => refusal = Some(error),
                Err(error) => return Err(error),
            }
        }
        Ok(Err(refusal.unwrap_or_else(|| NodeError::NullResult {
            method,
            what: format!("block {head}"),
        })))
    }
}
