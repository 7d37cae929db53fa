//! Where the handlers get their chains from. Implemented by whoever wires the service.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::metrics::Page;
use crate::model::{Address, B256, BlockId, ChainName, TokenMetadata, U256};
use crate::query::Reader;
use crate::status::ChainStatus;

/// The chains being served.
pub trait Chains: Send + Sync {
    /// A snapshot of the chain's store; `None` when the chain is not configured. May block.
    fn reader(&self, chain: ChainName) -> Option<Reader>;

    /// What the chain's sync is doing; `None` when the chain is not configured or nothing syncs it.
    fn status(&self, chain: ChainName) -> Option<Arc<ChainStatus>>;

    /// The node's head as whoever filled the store heard of it last, of a chain without a status; `None` where nobody did.
    fn node_heard(&self, _chain: ChainName) -> Option<u64> {
        None
    }

    /// The node's `safe` block in the same way.
    fn safe_heard(&self, _chain: ChainName) -> Option<u64> {
        None
    }

    /// The chain's node, for the few answers that need it; `None` when there is none.
    fn upstream(&self, chain: ChainName) -> Option<Arc<dyn Upstream>>;

    /// Whether the chain has a node, be it away.
    fn has_node(&self, chain: ChainName) -> bool {
        self.upstream(chain).is_some()
    }

    /// Bytes the chain's store takes on disk. May block.
    fn store_bytes(&self, chain: ChainName) -> u64;

    /// Figures of the chain's store and node for `/metrics`, beyond what the others tell. May block.
    fn measure(&self, _chain: ChainName, _page: &mut Page) {}

    /// Figures of the process around the service for `/metrics`.
    fn measure_process(&self, _page: &mut Page) {}
}

/// An answer of the node in the making.
pub type UpstreamFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, UpstreamError>> + Send + 'a>>;

/// What is asked of a node on behalf of a client.
pub trait Upstream: Send + Sync {
    /// `eth_getTransactionCount` of `address` after `block`.
    fn transaction_count(&self, address: Address, block: u64) -> UpstreamFuture<'_, u64>;

    /// `totalSupply()` of a token after `block`; a contract that does not tell is a failure.
    fn token_supply(&self, token: Address, block: u64) -> UpstreamFuture<'_, U256>;

    /// `balanceOf(holder)` of a token after `block`, likewise.
    fn token_balance(&self, token: Address, holder: Address, block: u64) -> UpstreamFuture<'_, U256>;

    /// What a token's contract says of itself after `block`; one that returns nothing at all is a failure. What stands in for
    /// a node need not know it.
    fn token_metadata(&self, _token: Address, _block: u64) -> UpstreamFuture<'_, TokenMetadata> {
        Box::pin(async { Err(UpstreamError::Failed("names are not known".to_owned())) })
    }

    /// `eth_getBalance` of `address` after `block`, wei.
    fn balance(&self, address: Address, block: u64) -> UpstreamFuture<'_, U256>;

    /// Whether there is code at `address` after `block` (`eth_getCode`). What stands in for a node is asked by [`Upstream::call`].
    fn has_code(&self, address: Address, block: u64) -> UpstreamFuture<'_, bool> {
        let params = format!("[\"{address:#x}\",\"{block:#x}\"]");
        Box::pin(async move {
            let params =
                RawValue::from_string(params).map_err(|error| UpstreamError::Failed(error.to_string()))?;
            match self.call("eth_getCode", params).await? {
                NodeReply::Result(code) => Ok(!matches!(code.get(), "\"0x\"" | "\"\"" | "null")),
                NodeReply::Error { message, .. } => Err(UpstreamError::Failed(message)),
            }
        })
    }

    /// Whether the node's chain has this block. What stands in for a node has no other branch.
    fn holds(&self, _block: BlockId) -> UpstreamFuture<'_, bool> {
        Box::pin(async { Ok(true) })
    }

    /// A word of a contract's storage after `block`. What stands in for a node need not know it.
    fn storage(&self, _contract: Address, _slot: B256, _block: u64) -> UpstreamFuture<'_, B256> {
        Box::pin(async { Err(UpstreamError::Failed("storage is not known".to_owned())) })
    }

    /// `implementation()` of a proxy's beacon after `block`, likewise; a contract that does not tell is a failure.
    fn beacon_implementation(&self, _beacon: Address, _block: u64) -> UpstreamFuture<'_, Address> {
        Box::pin(async { Err(UpstreamError::Failed("beacons are not known".to_owned())) })
    }

    /// Asks `method` with `params`, a JSON array, and gives the node's own result or error; a failure is one of the way to
    /// it. The method is one that the caller knows by name, and it neither writes nor administers. Bounded in number, time
    /// and bytes. What stands in for a node need not know it.
    fn call(&self, method: &'static str, params: Box<RawValue>) -> UpstreamFuture<'_, NodeReply> {
        Box::pin(async move {
            drop(params);
            Err(UpstreamError::Failed(format!("{method} is not known")))
        })
    }
}

/// What a node said to a question that was passed on as it is.
#[derive(Clone, Debug)]
pub enum NodeReply {
    /// Its result, JSON.
    Result(Box<RawValue>),
    /// Its error object.
    Error {
        /// The code.
        code: i64,
        /// The message.
        message: String,
        /// What else it says, JSON.
        data: Option<Box<RawValue>>,
    },
}

/// Why the node gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// It could not be reached or answered an error.
    #[error("the node failed: {0}")]
    Failed(String),
    /// It did not answer in time.
    #[error("the node did not answer in time")]
    TimedOut,
    /// Nobody can tell, and nobody failed: the contract does not say, or there is no node to ask.
    #[error("{0}")]
    Untold(String),
}

/// Choices of the operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `/ready` says yes while every configured chain is at most this many blocks behind its node.
    pub ready_lag_blocks_max: u64,
    /// And while a replica has seen all that its writer has on disk within this time.
    pub replica_unseen_max: Duration,
    /// How long a client waits for an answer of the node.
    pub upstream_timeout: Duration,
    /// Whether methods of state (`eth_call` and its like) are passed on to the node.
    pub rpc_passthrough: bool,
    /// How long one batch of calls may take before the rest of it is refused.
    pub batch_time_max: Duration,
    /// So many bytes of answers to one batch are held before the rest of it is refused.
    pub batch_bytes_max: usize,
    /// Bytes of short answers that are kept to be given again; 0 for none.
    pub kept_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ready_lag_blocks_max: 5,
            replica_unseen_max: Duration::from_secs(10),
            upstream_timeout: Duration::from_secs(10),
            rpc_passthrough: false,
            batch_time_max: Duration::from_secs(20),
            batch_bytes_max: 32 << 20,
            kept_bytes: 16 << 20,
        }
    }
}
