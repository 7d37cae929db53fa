//! `/v2/chainlist`: the chains that are served.

use serde::Serialize;

use crate::desk::Desk;
use crate::http::{HttpError, Request};
use crate::model::ChainName;

#[derive(Serialize)]
struct Chains {
    comments: &'static str,
    totalcount: usize,
    result: Vec<Chain>,
}

#[derive(Serialize)]
struct Chain {
    chainname: String,
    chainid: String,
    blockexplorer: &'static str,
    apiurl: String,
    status: u8,
    comment: String,
}

/// Names of chains that are well known.
fn known_name(id: u64) -> Option<&'static str> {
    Some(match id {
        1 => "Ethereum Mainnet",
        11_155_111 => "Sepolia Testnet",
        17_000 => "Holesky Testnet",
        560_048 => "Hoodi Testnet",
        10 => "OP Mainnet",
        56 => "BNB Smart Chain Mainnet",
        100 => "Gnosis",
        137 => "Polygon Mainnet",
        8453 => "Base Mainnet",
        42_161 => "Arbitrum One Mainnet",
        43_114 => "Avalanche C-Chain",
        31_337 => "Anvil",
        _ => return None,
    })
}

/// The chain id of each chain that has a store, by name. May block.
pub(super) fn ids(desk: &Desk) -> Vec<(u64, ChainName)> {
    let chains = ChainName::ALL.into_iter();
    chains
        .filter_map(|name| Some((desk.chains().reader(name)?.chain_id(), name)))
        .collect()
}

/// The body. May block.
pub(super) fn body(desk: &Desk, request: &Request) -> Result<Vec<u8>, HttpError> {
    let origin = request.origin();
    let result: Vec<_> = ids(desk)
        .into_iter()
        .map(|(id, name)| Chain {
            chainname: known_name(id).map_or_else(|| format!("Chain {id}"), str::to_owned),
            chainid: id.to_string(),
            blockexplorer: "",
            apiurl: format!("{origin}/v2/api?chainid={id}"),
            status: 1,
            comment: format!("chain={name}"),
        })
        .collect();
    let body = Chains {
        comments: "status: 0=offline, 1=ok, 2=degraded",
        totalcount: result.len(),
        result,
    };
    serde_json::to_vec(&body).map_err(|error| HttpError::internal(format!("render: {error}")))
}
