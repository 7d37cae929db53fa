//! The fork schedule that a genesis file states.

use alloy_genesis::ChainConfig;

use crate::model::ForkRules;

/// The schedule of a geth-style `config`. A fork that it leaves out begins with the next one it names.
#[must_use]
pub fn from_config(config: &ChainConfig) -> ForkRules {
    let times = [
        config.shanghai_time,
        config.cancun_time,
        config.prague_time,
        config.osaka_time,
    ];
    // Forks by time stand on all those by number.
    let mut next = times.iter().any(Option::is_some).then_some(0);
    let mut or_next = |stated: Option<u64>| {
        next = stated.or(next);
        next
    };
    let london = or_next(config.london_block);
    let berlin = or_next(config.berlin_block);
    let istanbul = or_next(config.istanbul_block);
    let petersburg = or_next(config.petersburg_block);
    let constantinople = config.constantinople_block.or(petersburg);
    let _ = or_next(constantinople);
    let byzantium = or_next(config.byzantium_block);
    let spurious_dragon = or_next(config.eip158_block.or(config.eip155_block));
    let tangerine_whistle = or_next(config.eip150_block);
    let homestead = or_next(config.homestead_block);
    let [shanghai_time, cancun_time, prague_time, osaka_time] = times;
    let merged_at_start = config
        .terminal_total_difficulty
        .is_some_and(|total| total.is_zero());
    ForkRules {
        chain_id: config.chain_id,
        homestead,
        dao: config.dao_fork_block.filter(|_| config.dao_fork_support),
        tangerine_whistle,
        spurious_dragon,
        byzantium,
        constantinople,
        istanbul,
        berlin,
        london,
        paris: merged_at_start.then_some(0),
        shanghai_time,
        cancun_time,
        prague_time,
        osaka_time,
        aura: config.extra_fields.contains_key("aura"),
        clique: config.clique.is_some(),
    }
}
