//! B3: what a block brought to those who sealed it and its uncles.

use serde::Serialize;

use crate::desk::answer::{Answer, Plan};
use crate::desk::blocks;
use crate::desk::caching::Reach;
use crate::http::{HttpError, parse_u64};
use crate::query::{BlockReward, UncleReward};

use super::input::Input;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rewards {
    block_number: String,
    timestamp: String,
    chain: &'static str,
    block_miner: Option<String>,
    block_reward: String,
    static_reward: String,
    transaction_fees: String,
    burnt_fees: String,
    uncle_inclusion_reward: String,
    rewards: Vec<Reward>,
}

#[derive(Serialize)]
struct Reward {
    address: String,
    #[serde(rename = "type")]
    kind: &'static str,
    position: Option<usize>,
    reward: String,
}

pub(super) fn block_rewards(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let number = input.segment(0, parse_u64, || HttpError::invalid("blockNumber"))?;
    // Every transaction of the block is looked at.
    Ok(Plan::scan(move |snapshot| {
        let (reward, uncles) = blocks::reward(snapshot, number)?;
        let answer = Rewards {
            block_number: number.to_string(),
            timestamp: reward.timestamp.to_string(),
            chain: snapshot.chain.as_str(),
            block_miner: reward.miner.map(const_hex::encode_prefixed),
            block_reward: reward.total().to_string(),
            static_reward: reward.static_reward.to_string(),
            transaction_fees: reward.transaction_fees.to_string(),
            burnt_fees: reward.burnt().to_string(),
            uncle_inclusion_reward: reward.uncle_inclusion_reward.to_string(),
            rewards: list(&reward, &uncles),
        };
        // The static reward of a chain that is not well known is the operator's word, who may change it.
        Answer::json(&answer, Reach::Head)
    }))
}

fn list(reward: &BlockReward, uncles: &[UncleReward]) -> Vec<Reward> {
    let block = reward.miner.map(|miner| Reward {
        address: const_hex::encode_prefixed(miner),
        kind: "block",
        position: None,
        reward: reward.total().to_string(),
    });
    let uncles = uncles.iter().enumerate().map(|(position, uncle)| Reward {
        address: const_hex::encode_prefixed(uncle.miner),
        kind: "uncle",
        position: Some(position),
        reward: uncle.reward.to_string(),
    });
    block.into_iter().chain(uncles).collect()
}
