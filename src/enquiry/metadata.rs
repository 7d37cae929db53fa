//! Names, symbols and decimals: asked after a block of the index, which is kept with them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Tools;
use super::asking::By;
use super::job::Job;
use super::look::LAG_MAX;
use super::perform::{Failure, Outcome};
use crate::model::{Address, BlockId, ToldMetadata};
use crate::node::{CallAt, Described, NodeError};
use crate::query::is_told_on;
use crate::store::View;

/// A contract that returns nothing at all, though there is none at its address any more, is believed after so many times.
const BARE_MAX: u32 = 3;

/// What a contract said of itself, and whether it is sure that it spoke of the block it was asked about.
struct Said {
    described: Described,
    is_sure: bool,
}

impl Tools {
    /// Whether it is known what the contract that stands at an address on a chain says of itself.
    pub(super) fn is_described(&self, view: &View, token: &Address) -> bool {
        let told = self.observed.metadata(token);
        told.is_some_and(|told| is_told_on(view, &told))
    }

    pub(super) async fn ask_metadata(self: &Arc<Self>, job: &Job) -> Result<Outcome, Failure> {
        let token = job.token;
        let found = self.read(move |reader, _| {
            let Some(ledger) = reader.token(&token)? else {
                return Ok(None);
            };
            let head = reader.head();
            let before = reader.predates(&ledger, head.number.saturating_sub(LAG_MAX))?;
            Ok(Some((head, before != Some(false))))
        });
        let Some((head, is_young)) = found.await? else {
            return Ok(Outcome::Done);
        };
        let node_head = self.status.node_head().unwrap_or(head.number);
        let is_far = LAG_MAX < node_head.saturating_sub(head.number);
        let said = self.describe(token, head, is_far).await?;
        if !said.is_sure {
            if !self.still(head).await? {
                return Err(Failure::Behind);
            }
            if said.described.is_bare {
                self.turn().await;
                let has_code = self.counted(self.node.has_code(token, head.number).await)?;
                // For a node that lags behind a balancer there is no contract yet where another one has it.
                let enough = match (has_code, is_young && !is_far) {
                    (true, _) => 1,
                    (false, true) => u32::MAX,
                    (false, false) => BARE_MAX,
                };
                if job.attempts < enough {
                    return Err(Failure::Behind);
                }
            }
        }
        let told = ToldMetadata {
            metadata: said.described.metadata,
            anchor: Some(head),
        };
        // Noted first: where the block is orphaned from here on, whoever finds that has it asked again.
        self.described.note(&self.store.view(), head, token);
        self.observed.put_metadata(&token, &told);
        self.check_on(head)?;
        Ok(Outcome::Done)
    }

    /// Asks after a block, three questions at a time. A node that keeps the newest states only is asked for its newest
    /// while the index is far behind: what differs then is not the contract, which has stood for long.
    async fn describe(&self, token: Address, head: BlockId, is_far: bool) -> Result<Said, Failure> {
        let is_pruned = is_far && self.is_pruned.load(Ordering::Relaxed);
        if !is_pruned
            && let Some(asked) = self.by_hash(head, |at| self.described(token, at)).await
            && !(is_far && asked.as_ref().is_err_and(NodeError::is_answer))
        {
            return Ok(Said {
                described: self.of_head(asked, By::Hash)?,
                is_sure: true,
            });
        }
        let mut at = CallAt::Newest;
        if !is_pruned {
            at = CallAt::Number(head.number);
        }
        let mut asked = self.described(token, at).await;
        if is_far && !is_pruned && asked.as_ref().is_err_and(NodeError::is_answer) {
            self.is_pruned.store(true, Ordering::Relaxed);
            asked = self.described(token, CallAt::Newest).await;
        }
        Ok(Said {
            described: self.counted(asked)?,
            is_sure: false,
        })
    }

    async fn described(&self, token: Address, at: CallAt) -> Result<Described, NodeError> {
        for _ in 0..3 {
            self.turn().await;
        }
        self.node.token_metadata(token, at).await
    }
}
