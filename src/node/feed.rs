//! Asking the contracts of price feeds what they are.

use super::client::Node;
use super::contract::{DECIMALS, Told};
use super::error::NodeError;
use super::wire::abi;
use crate::model::Address;

const PHASE_ID: [u8; 4] = [0x58, 0x30, 0x3b, 0x10];
const PHASE_AGGREGATORS: [u8; 4] = [0xc1, 0x59, 0x73, 0x04];
const AGGREGATOR: [u8; 4] = [0x24, 0x5a, 0x7b, 0xfc];

impl Node {
    /// `decimals()` of a feed.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn feed_decimals(&self, feed: Address) -> Result<Told<u8>, NodeError> {
        let told = self.call_contract(feed, &DECIMALS, None).await?;
        Ok(told.and_then(|returned| abi::decimals(returned), "decimals"))
    }

    /// `phaseId()` of a proxy: how many aggregators it has had.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn feed_phases(&self, feed: Address) -> Result<Told<u16>, NodeError> {
        let told = self.call_contract(feed, &PHASE_ID, None).await?;
        let phases = |returned: &Vec<u8>| u16::try_from(abi::number(returned)?).ok();
        Ok(told.and_then(phases, "phase"))
    }

    /// The aggregator of a proxy in a phase (`phaseAggregators(phase)`), or the present one (`aggregator()`).
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn feed_aggregator(
        &self,
        feed: Address,
        phase: Option<u16>,
    ) -> Result<Told<Address>, NodeError> {
        let input = match phase {
            None => AGGREGATOR.to_vec(),
            Some(phase) => {
                let mut input = PHASE_AGGREGATORS.to_vec();
                input.extend_from_slice(&[0; 30]);
                input.extend_from_slice(&phase.to_be_bytes());
                input
            }
        };
        let told = self.call_contract(feed, &input, None).await?;
        Ok(told.and_then(|returned| abi::address(returned), "address"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    #[test]
    fn selectors() {
        for (signature, selector) in [
            ("phaseId()", PHASE_ID),
            ("phaseAggregators(uint16)", PHASE_AGGREGATORS),
            ("aggregator()", AGGREGATOR),
            ("decimals()", DECIMALS),
        ] {
            assert_eq!(keccak256(signature)[..4], selector, "{signature}");
        }
    }
}
