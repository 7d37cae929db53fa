//! C3: how contracts came to be.

use serde::Serialize;

use crate::desk::answer::{Extra, Plan};
use crate::desk::caching::Reach;
use crate::desk::contracts::{creations, take_several};
use crate::desk::lists::{Shape, whole_list};
use crate::http::HttpError;
use crate::model::Address;
use crate::query::ContractCreation;

use super::input::Input;

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
    let wanted = take_several(&mut input.params)?;
    let shape = Shape::wanted(input.request);
    Ok(Plan::point(move |snapshot| {
        let contracts = creations(snapshot, &wanted)?;
        let contracts = contracts.iter();
        let answer = Creations {
            chain: snapshot.chain.as_str(),
            contracts: contracts
                .map(|(contract, creation)| Contract::new(contract, creation))
                .collect(),
        };
        // One that was left out may yet be made, and one that was destroyed may be made again.
        let extra = Extra {
            reach: Reach::Head,
            ..Extra::default()
        };
        whole_list(shape, &answer, &answer.contracts, extra)
    }))
}
