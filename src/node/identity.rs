//! Which chain a node is of.

use super::client::{Node, Repeat};
use super::error::NodeError;
use super::pace::RequestClass;
use super::wire;
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
        let chain_id = self.chain_id().await?;
        let genesis = self.block_id(0).await?;
        let genesis = genesis.ok_or_else(|| NodeError::null_block("eth_getBlockByNumber", 0))?;
        Ok((chain_id, genesis.hash))
    }
}
