//! Block 0 and the fork schedule, from a geth-style genesis file or from what is known of a genesis hash.

mod forks;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use alloy_genesis::Genesis;
use alloy_trie::{EMPTY_ROOT_HASH, root::state_root_ref_unhashed};
use serde::{Deserialize, de::IgnoredAny};

pub use forks::from_config;

use super::encoding::{bare_block_size, header_hash, ommers_hash};
use crate::model::{Address, B64, B256, Block, Bytes, ForkRules, Header, U256};

/// Base fee of a genesis that starts in London and names none (EIP-1559).
const INITIAL_BASE_FEE: u64 = 1_000_000_000;
/// Gas limit of a genesis that states 0, as geth has it.
const DEFAULT_GAS_LIMIT: u64 = 4_712_388;
/// Hash of an empty list of requests, the SHA-256 of nothing (EIP-7685).
const EMPTY_REQUESTS_HASH: B256 =
    alloy_primitives::b256!("0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");

/// What a genesis file says of its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainGenesis {
    /// Block 0 as `eth_getBlockByNumber` would give it.
    pub block: Block,
    /// The fork schedule, with the chain id.
    pub forks: ForkRules,
    /// The accounts that the chain starts with, by address.
    pub accounts: Vec<GenesisAccount>,
}

/// Whether block 0 states the root of an empty state, as development nodes do whatever accounts they begin with: no genesis
/// file with accounts has its hash.
#[must_use]
pub fn states_no_accounts(header: &Header) -> bool {
    header.state_root == EMPTY_ROOT_HASH
}

/// An account that exists in block 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenesisAccount {
    /// Address.
    pub address: Address,
    /// Balance in wei.
    pub balance: U256,
    /// Nonce.
    pub nonce: u64,
    /// Code; empty for an account without.
    pub code: Bytes,
}

/// Why a genesis file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GenesisError {
    /// The file cannot be read.
    #[error("cannot read the genesis file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What the file says cannot be used.
    #[error("{}: {reason}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: Box<Self>,
    },
    /// It is not JSON, or a value in it is not what the format asks for.
    #[error("the genesis file is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A part that every genesis file has is absent.
    #[error(
        "the genesis file has no `{field}`: a geth-style genesis with config, alloc, gasLimit and difficulty is expected"
    )]
    Missing {
        /// The part, as a path.
        field: &'static str,
    },
    /// Block 0 falls under a fork whose header this version does not know.
    #[error(
        "the genesis file starts in the {fork} fork, whose block header this version of quarry does not know"
    )]
    UnknownFork {
        /// Name of the fork.
        fork: &'static str,
    },
    /// A number is too large for its field.
    #[error("the genesis file states a `{field}` of {found}, which is more than a block header can hold")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// The number.
        found: u128,
    },
}

/// Reads a genesis file.
///
/// # Errors
///
/// When the file cannot be read or is not a geth-style genesis; each names the file.
pub fn load(path: &Path) -> Result<ChainGenesis, GenesisError> {
    let text = fs::read_to_string(path).map_err(|source| GenesisError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    parse(&text).map_err(|reason| GenesisError::In {
        path: path.to_path_buf(),
        reason: Box::new(reason),
    })
}

/// Reads the text of a genesis file.
///
/// # Errors
///
/// When the text is not a geth-style genesis.
pub fn parse(text: &str) -> Result<ChainGenesis, GenesisError> {
    // The library reads an empty object as mainnet before its first fork: insist on the parts that matter.
    let outline: Outline = serde_json::from_str(text)?;
    for (field, present) in outline.parts() {
        if !present {
            return Err(GenesisError::Missing { field });
        }
    }
    let genesis: Genesis = serde_json::from_str(text)?;
    let forks = from_config(&genesis.config)?;
    let block = block(&genesis, &forks)?;
    let accounts = genesis
        .alloc
        .into_iter()
        .map(|(address, account)| GenesisAccount {
            address,
            balance: account.balance,
            nonce: account.nonce.unwrap_or(0),
            code: account.code.unwrap_or_default(),
        })
        .collect();
    Ok(ChainGenesis {
        block,
        forks,
        accounts,
    })
}

/// The parts that a genesis file must have.
#[derive(Deserialize)]
struct Outline {
    config: Option<ConfigOutline>,
    alloc: Option<IgnoredAny>,
    #[serde(rename = "gasLimit")]
    gas_limit: Option<IgnoredAny>,
    difficulty: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ConfigOutline {
    #[serde(rename = "chainId")]
    chain_id: Option<IgnoredAny>,
}

impl Outline {
    fn parts(&self) -> [(&'static str, bool); 5] {
        let chain_id = self
            .config
            .as_ref()
            .is_some_and(|config| config.chain_id.is_some());
        [
            ("config", self.config.is_some()),
            ("config.chainId", chain_id),
            ("alloc", self.alloc.is_some()),
            ("gasLimit", self.gas_limit.is_some()),
            ("difficulty", self.difficulty.is_some()),
        ]
    }
}

fn block(genesis: &Genesis, forks: &ForkRules) -> Result<Block, GenesisError> {
    let number = genesis.number.unwrap_or(0);
    let reached = |fork: Option<u64>| fork.is_some_and(|first| first <= number);
    let london = reached(forks.london);
    let active = |fork: Option<u64>| london && fork.is_some_and(|time| time <= genesis.timestamp);
    if active(genesis.config.amsterdam_time) {
        return Err(GenesisError::UnknownFork { fork: "Amsterdam" });
    }
    let base_fee = match genesis.base_fee_per_gas {
        None => INITIAL_BASE_FEE,
        Some(stated) => u64::try_from(stated).map_err(|_| GenesisError::TooLarge {
            field: "baseFeePerGas",
            found: stated,
        })?,
    };
    let (shanghai, cancun) = (active(forks.shanghai_time), active(forks.cancun_time));
    let mut buffer = Vec::new();
    let header = Header {
        parent_hash: genesis.parent_hash.unwrap_or_default(),
        ommers_hash: ommers_hash(&[], &mut buffer),
        beneficiary: genesis.coinbase,
        state_root: state_root_ref_unhashed(&genesis.alloc),
        transactions_root: EMPTY_ROOT_HASH,
        receipts_root: EMPTY_ROOT_HASH,
        difficulty: genesis.difficulty,
        number,
        gas_limit: if genesis.gas_limit == 0 {
            DEFAULT_GAS_LIMIT
        } else {
            genesis.gas_limit
        },
        timestamp: genesis.timestamp,
        extra_data: genesis.extra_data.clone(),
        mix_hash: genesis.mix_hash,
        nonce: B64::from(genesis.nonce),
        base_fee_per_gas: london.then_some(base_fee),
        withdrawals_root: shanghai.then_some(EMPTY_ROOT_HASH),
        blob_gas_used: cancun.then(|| genesis.blob_gas_used.unwrap_or(0)),
        excess_blob_gas: cancun.then(|| genesis.excess_blob_gas.unwrap_or(0)),
        parent_beacon_block_root: cancun.then_some(B256::ZERO),
        requests_hash: active(forks.prague_time).then_some(EMPTY_REQUESTS_HASH),
        ..Header::default()
    };
    let mut block = Block {
        hash: header_hash(&header, &mut buffer),
        withdrawals: shanghai.then(Vec::new),
        header,
        ..Block::default()
    };
    block.size = Some(bare_block_size(&block));
    Ok(block)
}
