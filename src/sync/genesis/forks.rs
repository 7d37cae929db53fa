//! The fork schedule that a genesis file states.

use alloy_genesis::ChainConfig;
use alloy_primitives::U64;
use serde::Deserialize;

use crate::model::ForkRules;

/// Blocks of an era by ECIP-1017 where a file does not say how many.
const ECIP1017_ERA: u64 = 5_000_000;

/// The schedule of a geth-style `config`. A fork that it leaves out begins with the next one it names.
///
/// Files of Ethereum Classic may have the names of its clients: core-geth's are those of EIPs, Besu's those of Classic's own forks.
/// Where `ecip1017FBlock` stands is not read: the first era pays what was paid before it.
///
/// # Errors
///
/// When one of those names says what is no number.
pub fn from_config(config: &ChainConfig) -> Result<ForkRules, serde_json::Error> {
    let stated = |names: &[&str]| stated(config, names);
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
    let byzantium = or_next(
        config
            .byzantium_block
            .or(stated(&["eip658FBlock", "atlantisBlock"])?),
    );
    let empty_accounts = config
        .eip158_block
        .or(stated(&["eip161FBlock", "atlantisBlock"])?);
    let spurious_dragon = or_next(empty_accounts.or(config.eip155_block));
    let tangerine_whistle = or_next(config.eip150_block);
    let homestead = or_next(config.homestead_block);
    let [shanghai_time, cancun_time, prague_time, osaka_time] = times;
    let merged_at_start = config
        .terminal_total_difficulty
        .is_some_and(|total| total.is_zero());
    let has_eras = stated(&["ecip1017FBlock", "gothamBlock", "atlantisBlock"])?.map(|_| ECIP1017_ERA);
    let ecip1017_era = stated(&["ecip1017EraRounds"])?.or(has_eras);
    Ok(ForkRules {
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
        ecip1017_era: ecip1017_era.filter(|&blocks| blocks > 0),
        aura: config.extra_fields.contains_key("aura"),
        clique: config.clique.is_some(),
    })
}

/// What is stated under the first of these names that states something.
fn stated(config: &ChainConfig, names: &[&str]) -> Result<Option<u64>, serde_json::Error> {
    let mut values = names.iter().filter_map(|name| config.extra_fields.get(*name));
    let stated = values.find(|value| !value.is_null());
    let number = stated.map(|value| U64::deserialize(value).map(|number| number.to()));
    number.transpose()
}
