//! Which chain a node is of.

use super::client::Node;
use super::error::NodeError;
use crate::model::B256;

impl Node {
    /// The chain id.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn chain_id(&self) -> Result<u64, NodeError> {
        self.quantity("eth_chainId", "[]").await
    }

    /// The chain id and the hash of block 0.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn chain(&self) -> Result<(u64, B256), NodeError> {
        let chain_id = self.chain_id().await?;
        let genesis = self.block_id(0).await?;
        let genesis = genesis.ok_or_else(|| NodeError::null_block("eth_getBlockByNumber", 0))?;
        Ok((chain_id, genesis.hash))
    }
}
