//! What accounts held around a block, asked of a node that may leave the block's branch meanwhile.
//!
//! Balances are asked for by number, which not every node takes a hash in place of, and their answers state no block. So
//! the node is asked for the block's hash afterwards, and one that has another block there by then is not believed.

use futures_util::StreamExt;

use super::error::SyncError;
use crate::model::{Address, B256, U256};
use crate::node::{Node, NodeError};

/// Questions of one block in flight; the node's pace bounds those of all blocks.
pub(super) const IN_FLIGHT_MAX: usize = 16;

/// What an account held around a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) account: Address,
    pub(super) before: U256,
    pub(super) after: U256,
}

/// Who is asked.
pub(super) trait Witness: Sync {
    /// The native balance of `account` after block `number`.
    fn balance(&self, account: Address, number: u64) -> impl Future<Output = Result<U256, NodeError>> + Send;

    /// The hash of block `number`.
    fn hash(&self, number: u64) -> impl Future<Output = Result<Option<B256>, NodeError>> + Send;
}

impl Witness for Node {
    async fn balance(&self, account: Address, number: u64) -> Result<U256, NodeError> {
        Self::balance(self, account, number).await
    }

    async fn hash(&self, number: u64) -> Result<Option<B256>, NodeError> {
        Ok(self.block_id(number).await?.map(|id| id.hash))
    }
}

/// Fails unless block `number` of the node is the one of `hash`.
pub(super) async fn same_branch(witness: &impl Witness, number: u64, hash: B256) -> Result<(), SyncError> {
    let found = their_hash(witness, number).await?;
    is_same(number, hash, found)
}

/// The hash of the node's block `number`, which it must have.
pub(super) async fn their_hash(witness: &impl Witness, number: u64) -> Result<B256, SyncError> {
    let found = witness
        .hash(number)
        .await
        .and_then(|found| found.ok_or_else(|| NodeError::null_block("eth_getBlockByNumber", number)));
    found.map_err(|source| SyncError::Node {
        block: number,
        source,
    })
}

/// Fails unless balances around block `number` are told of the branch on which its hash is the one that was `expected`.
pub(super) fn is_same(number: u64, expected: B256, found: B256) -> Result<(), SyncError> {
    NodeError::unless_same_block("eth_getBalance", number, expected, found).map_err(|source| {
        SyncError::Node {
            block: number,
            source,
        }
    })
}

/// What accounts held before and after block `number`, which was told with `hash`. `None` where the node has
/// forgotten the state.
pub(super) async fn held_around(
    witness: &impl Witness,
    number: u64,
    hash: B256,
    accounts: impl IntoIterator<Item = Address> + Send,
) -> Result<Option<Vec<Held>>, SyncError> {
    let held = all_around(witness, number, accounts).await?;
    // Also of a node without the state: one that has left the branch may say so of a block that it does not have.
    same_branch(witness, number, hash).await?;
    Ok(held)
}

/// The same, of whatever branch. Ends with all its requests: those that nobody gets on with would keep their places in
/// flight from the next question.
async fn all_around(
    witness: &impl Witness,
    number: u64,
    accounts: impl IntoIterator<Item = Address> + Send,
) -> Result<Option<Vec<Held>>, SyncError> {
    let mut accounts: Vec<Address> = accounts.into_iter().collect();
    accounts.sort_unstable();
    accounts.dedup();
    let mut held = Vec::with_capacity(accounts.len());
    let asked = futures_util::stream::iter(accounts).map(|account| async move {
        let around = async {
            let before = witness.balance(account, number.saturating_sub(1)).await?;
            let after = witness.balance(account, number).await?;
            Ok::<_, NodeError>(Held {
                account,
                before,
                after,
            })
        };
        (account, around.await)
    });
    let mut asked = std::pin::pin!(asked.buffered(IN_FLIGHT_MAX));
    while let Some((account, around)) = asked.next().await {
        match around {
            Ok(around) => held.push(around),
            Err(error) if error.is_answer() => {
                tracing::warn!(block = number, %account, %error, "whether a contract ended in favour of itself cannot be told");
                return Ok(None);
            }
            Err(source) => {
                return Err(SyncError::Node {
                    block: number,
                    source,
                });
            }
        }
    }
    Ok(Some(held))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;
    use tokio::sync::Semaphore;

    const OURS: B256 = B256::repeat_byte(1);
    const OTHER: B256 = B256::repeat_byte(2);

    fn forgotten() -> NodeError {
        NodeError::Rpc {
            method: "eth_getBalance",
            code: -32000,
            message: "header not found".to_owned(),
        }
    }

    /// A node that leaves our branch after so many balances, and has none at all where `forgotten`.
    struct Fickle {
        left: AtomicU32,
        forgotten: bool,
    }

    impl Fickle {
        fn new(balances: u32, forgotten: bool) -> Self {
            Self {
                left: AtomicU32::new(balances),
                forgotten,
            }
        }
    }

    impl Witness for Fickle {
        async fn balance(&self, _: Address, number: u64) -> Result<U256, NodeError> {
            if self.forgotten {
                return Err(forgotten());
            }
            let left = self.left.load(Ordering::Relaxed);
            self.left.store(left.saturating_sub(1), Ordering::Relaxed);
            Ok(U256::from(number))
        }

        async fn hash(&self, _: u64) -> Result<Option<B256>, NodeError> {
            let ours = self.left.load(Ordering::Relaxed) > 0;
            Ok(Some(if ours { OURS } else { OTHER }))
        }
    }

    async fn asked(node: &Fickle) -> Result<Option<Vec<Held>>, SyncError> {
        let accounts = [Address::repeat_byte(7), Address::repeat_byte(7)];
        held_around(node, 9, OURS, accounts).await
    }

    #[tokio::test]
    async fn balances_of_another_branch_are_not_believed() {
        let held = asked(&Fickle::new(9, false)).await.unwrap().unwrap();
        assert_eq!(held.len(), 1, "the same account once");
        assert_eq!((held[0].before, held[0].after), (U256::from(8), U256::from(9)));
        assert!(asked(&Fickle::new(9, true)).await.unwrap().is_none());
        // It left the branch while it was asked, or before.
        for node in [Fickle::new(2, false), Fickle::new(1, false), Fickle::new(0, true)] {
            let error = asked(&node).await.unwrap_err();
            let reorged = matches!(
                error,
                SyncError::Node {
                    source: NodeError::Reorged { .. },
                    ..
                }
            );
            assert!(reorged && error.may_pass(), "{error}");
        }
    }
    /// A node without states that answers one question at a time; others wait in line.
    struct Narrow(Semaphore);

    impl Witness for Narrow {
        async fn balance(&self, _: Address, _: u64) -> Result<U256, NodeError> {
            let _place = self.0.acquire().await.unwrap();
            // The others get in line meanwhile.
            tokio::task::yield_now().await;
            Err(forgotten())
        }

        async fn hash(&self, _: u64) -> Result<Option<B256>, NodeError> {
            let _place = self.0.acquire().await.unwrap();
            Ok(Some(OURS))
        }
    }

    #[tokio::test]
    async fn accounts_that_are_not_waited_for_keep_no_place_from_the_next_question() {
        let node = Narrow(Semaphore::new(1));
        let accounts = (1..=5).map(Address::repeat_byte);
        let asked = held_around(&node, 9, OURS, accounts);
        let held = tokio::time::timeout(Duration::from_secs(10), asked).await;
        assert!(held.expect("an end").unwrap().is_none());
    }
}
