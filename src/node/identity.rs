//! Which chain a node is of.

use super::client::{Node, Repeat};
use super::error::NodeError;
use super::pace::RequestClass;
use super::wire::{self, BlockId};
use crate::model::{B256, U256};

impl Node {
    /// The chain id.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn chain_id(&self) -> Result<u64, NodeError> {
        const METHOD: &str = "eth_chainId";
        let asked = self.call(RequestClass::Light, METHOD, "[]", Repeat::Always);
        let text = asked.await?;
        wire::quantity(text.get()).map_err(|error| match wire::amount(text.get()) {
            Ok(told) if told > U256::from(u64::MAX) => NodeError::ChainId { told },
            _ => self.malformed(METHOD, &error),
        })
    }

    /// The chain id and the hash of block 0.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn chain(&self) -> Result<(u64, B256), NodeError> {
        const METHOD: &str = "eth_getBlockByNumber";
        let chain_id = self.chain_id().await?;
        match self.block_id_of("0x0", Repeat::Always).await? {
            None => Err(NodeError::null_block(METHOD, 0)),
            Some(BlockId { number: 0, hash, .. }) => Ok((chain_id, hash)),
            Some(other) => Err(NodeError::other_block(METHOD, 0, other.number)),
        }
    }
}
