//! C3: how contracts came to be.

use serde::Serialize;

use crate::http::HttpError;
use crate::model::Address;
use crate::query::{ContractCreation, Created};

use super::answer::{Answer, Plan};
use super::caching::Reach;
use super::faults::{
    CONTRACT_NOT_FOUND, INVALID_CONTRACT_ADDRESS, TOO_MANY_CONTRACTS, needs_traces, query_failed,
};
use super::input::Input;

/// Most contracts of one request.
const CONTRACTS_MAX: usize = 5;

#[derive(Serialize)]
struct Creations {
    chain: &'static str,
    contracts: Vec<Contract>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Contract {
    contract_address: String,
    contract_creator: String,
    contract_factory: Option<String>,
    tx_hash: String,
    block_number: String,
    timestamp: String,
    creation_bytecode: String,
}

impl Contract {
    fn new(contract: &Address, creation: &ContractCreation) -> Self {
        Self {
            contract_address: const_hex::encode_prefixed(contract),
            contract_creator: const_hex::encode_prefixed(creation.creator),
            contract_factory: creation.factory.map(const_hex::encode_prefixed),
            tx_hash: const_hex::encode_prefixed(creation.transaction_hash),
            block_number: creation.block.to_string(),
            timestamp: creation.timestamp.to_string(),
            creation_bytecode: const_hex::encode_prefixed(&creation.init_code),
        }
    }
}

pub(super) fn creation(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let name = "contractaddresses";
    let given = input.params.take_addresses(name, INVALID_CONTRACT_ADDRESS)?;
    if given.len() > CONTRACTS_MAX {
        return Err(HttpError::bad_request(TOO_MANY_CONTRACTS));
    }
    let mut wanted: Vec<Address> = Vec::with_capacity(given.len());
    for contract in given {
        if !wanted.contains(&contract) {
            wanted.push(contract);
        }
    }
    if wanted.is_empty() {
        return Err(HttpError::missing(name));
    }
    Ok(Plan::point(move |snapshot| {
        let mut contracts = Vec::with_capacity(wanted.len());
        for contract in &wanted {
            let created = snapshot.reader.contract_creation(contract);
            match created.map_err(query_failed)? {
                Created::Known(creation) => contracts.push(Contract::new(contract, &creation)),
                Created::Unknown => {}
                Created::NeedsTraces => return Err(needs_traces()),
            }
        }
        if contracts.is_empty() {
            return Err(HttpError::not_found(CONTRACT_NOT_FOUND));
        }
        let answer = Creations {
            chain: snapshot.chain.as_str(),
            contracts,
        };
        // One that was left out may yet be made, and one that was destroyed may be made again.
        Answer::json(&answer, Reach::Head)
    }))
}
