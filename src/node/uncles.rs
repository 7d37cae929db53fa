//! Headers of uncles, which no block states and some nodes refuse to tell.

use super::bundle::{Failure, not_null};
use super::client::{Node, Repeat};
use super::error::NodeError;
use super::link::ResultText;
use super::pace::RequestClass;
use super::wire;
use crate::model::Block;
use std::sync::atomic::{AtomicBool, Ordering};

const UNCLE: &str = "eth_getUncleByBlockNumberAndIndex";

/// So often in a row a node that never told an uncle must refuse before it counts as one that tells none: one of several
/// behind a balancer may, and a block without their headers is stored for good.
const REFUSALS_MAX: u32 = 4;

/// What is known of a node that was asked for uncles.
#[derive(Debug, Default)]
pub(super) struct Uncles {
    /// It told one: it is not taken for a node that lacks them any more.
    told: AtomicBool,
    /// It tells none.
    lacking: AtomicBool,
}

impl Node {
    /// Asks for the headers of the uncles. Of a node that does not offer them they are left out, all of them.
    pub(super) async fn add_uncles(&self, block: &mut Block) -> Result<usize, Failure> {
        let number = block.number();
        let mut bytes = 0;
        for (index, &uncle) in block.uncles.iter().enumerate() {
            let Some(text) = self.uncle(number, index).await? else {
                block.uncle_headers.clear();
                return Ok(bytes);
            };
            let text = not_null(text, UNCLE, || format!("uncle {index} of block {number}"))?;
            bytes += text.get().len();
            // Asked for by the block's number: one of another block states another hash.
            if let Ok(found) = wire::block_id(text.get()) {
                NodeError::unless_same_block(UNCLE, number, uncle, found.hash).map_err(Failure::Content)?;
            }
            let header = wire::uncle_header(text.get())
                .map_err(|error| Failure::Content(NodeError::of_wire(UNCLE, number, error)))?;
            block.uncle_headers.push(header);
        }
        Ok(bytes)
    }

    /// Asks for one uncle; `None` where the node does not offer it.
    async fn uncle(&self, number: u64, index: usize) -> Result<Option<ResultText>, Failure> {
        let params = format!("[\"0x{number:x}\",\"0x{index:x}\"]");
        let known = self.uncles();
        let mut refusals = 0;
        loop {
            let asked = self.call(RequestClass::Light, UNCLE, &params, Repeat::Always);
            let error = match asked.await {
                Ok(text) => {
                    known.told.store(true, Ordering::Relaxed);
                    return Ok(Some(text));
                }
                Err(error) if error.is_refusal() => error,
                Err(error) => return Err(Failure::Request(error)),
            };
            if known.lacking.load(Ordering::Relaxed) && !known.told.load(Ordering::Relaxed) {
                return Ok(None);
            }
            refusals += 1;
            if refusals < REFUSALS_MAX {
                tokio::time::sleep(self.config().backoff(refusals)).await;
                continue;
            }
            // A gateway that refuses everything by now says nothing of uncles.
            let answered = self.block_id(number).await.map_err(Failure::Request)?;
            if answered.is_none() || known.told.load(Ordering::Relaxed) {
                return Err(Failure::Request(error));
            }
            if !known.lacking.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    number,
                    %error,
                    "the node tells no uncles: blocks that have some are stored without their headers, for good; native \
                     balances are not kept from the first of them on, and what uncles brought (B3, B6, \
                     eth_getUncleByBlockNumberAndIndex) is not answered there; a new store from a node that offers \
                     eth_getUncleByBlockNumberAndIndex has them"
                );
            }
            return Ok(None);
        }
    }
}
