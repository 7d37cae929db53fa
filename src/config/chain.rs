//! The settings of one chain.

use std::path::PathBuf;

use super::merge::{Merge, Origin, as_is, between};
use super::{ChainFile, ConfigError, prices};
use crate::cli::{NodeArgs, RunArgs};
use crate::model::{Address, ChainName, StatedPrices, StaticRewards, UNFINAL_BLOCKS_MAX, written_address};

/// Far more blocks than any chain has.
const START_BLOCK_MAX: u64 = 1 << 48;
/// A day: who waits longer looks at the node before.
const CONTRADICTION_WAIT_MAX: u64 = 86_400;

/// Settings of one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainConfig {
    /// Which of the two.
    pub name: ChainName,
    /// Node; `None` serves what is stored.
    pub rpc: Option<String>,
    /// First block; `None` takes the store's, or 0.
    pub start_block: Option<u64>,
    /// Most requests in flight.
    pub rpc_concurrency: usize,
    /// Questions a second about tokens; 0 asks none but those of clients.
    pub token_checks: u32,
    /// Depth that counts as final without a `finalized` tag, at most [`UNFINAL_BLOCKS_MAX`].
    pub finality_depth: u64,
    /// Seconds for which a node may contradict what is final before the sync stops.
    pub contradiction_wait: u64,
    /// Skip hashes and roots.
    pub trust_node: bool,
}

/// What is said of one chain.
pub(super) struct Stated {
    pub(super) chain: ChainConfig,
    pub(super) static_rewards: Option<StaticRewards>,
    pub(super) genesis: Option<PathBuf>,
    pub(super) excluded: Vec<Address>,
    pub(super) prices: StatedPrices,
}

/// The node of each chain, and where its URL came from.
pub(super) fn nodes(
    merge: &Merge<'_>,
    args: &NodeArgs,
    sections: [&ChainFile; 2],
) -> [(Option<String>, Origin); 2] {
    let [mainnet, testnet] = sections.map(|section| section.rpc.clone());
    let mainnet = merge.choose(("mainnet_rpc", args.mainnet_rpc.clone()), mainnet);
    let testnet = merge.choose(("testnet_rpc", args.testnet_rpc.clone()), testnet);
    // An empty URL of a flag or a file switches a chain off; an empty variable says nothing.
    [mainnet, testnet].map(|(rpc, origin)| (rpc.filter(|url| !url.trim().is_empty()), origin))
}

/// `meant`: whether an option of one chain alone, by its id, speaks of this one.
pub(super) fn merge(
    merge: &mut Merge<'_>,
    name: ChainName,
    section: &ChainFile,
    (rpc, origin): (Option<String>, Origin),
    meant: &dyn Fn(&str) -> bool,
    RunArgs { node, reward, .. }: &RunArgs,
) -> Result<Stated, ConfigError> {
    let key = |key: &str| format!("{name}.{key}");
    if let Some(rpc) = &rpc {
        merge.note(key("rpc"), rpc, origin);
    }
    let at_least_one = |count: usize| match count {
        0 => Err("at least one request must be allowed".to_owned()),
        _ => Ok(count),
    };
    // In the order in which `quarry config` shows them.
    let start_block = merge.optional(
        key("start_block"),
        ("start_block", node.start_block.filter(|_| meant("start_block"))),
        section.start_block,
        |block| match block {
            ..=START_BLOCK_MAX => Ok(block),
            _ => Err(format!("`{block}` is above the most, {START_BLOCK_MAX}")),
        },
    )?;
    let genesis = merge.optional(
        key("genesis"),
        ("genesis", node.genesis.clone().filter(|_| meant("genesis"))),
        section.genesis.clone(),
        as_is,
    )?;
    let chain = ChainConfig {
        name,
        rpc,
        start_block,
        rpc_concurrency: merge.value(
            key("rpc_concurrency"),
            ("rpc_concurrency", node.rpc_concurrency),
            section.rpc_concurrency,
            32,
            at_least_one,
        )?,
        token_checks: merge.value(
            key("token_checks"),
            ("token_checks", node.token_checks),
            section.token_checks,
            100,
            as_is,
        )?,
        finality_depth: merge.value(
            key("finality_depth"),
            ("finality_depth", node.finality_depth),
            section.finality_depth,
            64,
            // As it counts: what `quarry config` shows is in force.
            |depth| Ok(depth.min(UNFINAL_BLOCKS_MAX)),
        )?,
        contradiction_wait: merge.value(
            key("contradiction_wait"),
            ("contradiction_wait", node.contradiction_wait),
            section.contradiction_wait,
            15,
            between(0, CONTRADICTION_WAIT_MAX),
        )?,
        trust_node: merge.value(
            key("trust_node"),
            ("trust_node", node.trust_node),
            section.trust_node,
            false,
            as_is,
        )?,
    };
    let flag = reward.static_reward.clone().filter(|_| meant("static_reward"));
    let (rewards, origin) = merge.choose(("static_reward", flag), section.static_reward.clone());
    // An empty text says nothing, also where the file says something.
    let static_rewards = match rewards.filter(|text| !text.trim().is_empty()) {
        Some(text) => {
            let rewards: StaticRewards = text
                .parse()
                .map_err(|reason| super::merge::fault(&key("static_reward"), reason, &origin))?;
            merge.note(key("static_reward"), &rewards, origin);
            Some(rewards)
        }
        None => None,
    };
    let symbol = prices::symbol(merge, name, section)?;
    let excluded = merge.in_file(key("supply.excluded"), section.supply.excluded.clone(), accounts)?;
    let prices = prices::feeds(merge, name, section, symbol)?;
    Ok(Stated {
        chain,
        static_rewards,
        genesis,
        excluded: excluded.unwrap_or_default(),
        prices,
    })
}

/// The accounts of a list, each once.
fn accounts(texts: Vec<String>) -> Result<Vec<Address>, String> {
    let mut accounts: Vec<Address> = Vec::with_capacity(texts.len());
    for text in texts {
        let account =
            written_address(text.trim()).map_err(|fault| format!("`{}` {fault}", text.escape_debug()))?;
        if !accounts.contains(&account) {
            accounts.push(account);
        }
    }
    Ok(accounts)
}
