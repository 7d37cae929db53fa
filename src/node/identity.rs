//! Which chain a node is of.

use super::client::Node;
use super::error::NodeError;

impl Node {
    /// The chain id.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn chain_id(&self) -> Result<u64, NodeError> {
        self.quantity("eth_chainId", "[]").await
    }
}
