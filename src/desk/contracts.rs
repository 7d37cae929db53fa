//! Contracts: how they came to be (C3), and what stands behind a proxy (C2).

use crate::http::{HttpError, Params};
use crate::model::{Address, B256};
use crate::query::{ContractCreation, Created, Proxy};

use super::answer::{Answer, Question, Snapshot};
use super::context::{Upstream, UpstreamError};
use super::distinct;
use super::faults::{
    CONTRACT_NOT_FOUND, CONTRACTS_MAX, INVALID_CONTRACT_ADDRESS, TOO_MANY_CONTRACTS, needs_traces,
    query_failed,
};

/// Takes the contracts that are asked about, each once.
pub(crate) fn take_several(params: &mut Params) -> Result<Vec<Address>, HttpError> {
    let name = "contractaddresses";
    let given = params.take_addresses(name, INVALID_CONTRACT_ADDRESS)?;
    distinct(given, name, CONTRACTS_MAX, TOO_MANY_CONTRACTS)
}

/// How each of `wanted` came to be, in order, unknown ones left out; 404 where that is all of them.
pub(crate) fn creations(
    snapshot: &Snapshot,
    wanted: &[Address],
) -> Result<Vec<(Address, ContractCreation)>, HttpError> {
    let mut contracts = Vec::with_capacity(wanted.len());
    for contract in wanted {
        let created = snapshot.reader.contract_creation(contract);
        match created.map_err(query_failed)? {
            Created::Known(creation) => contracts.push((*contract, creation)),
            Created::Unknown => {}
            Created::NeedsTraces => return Err(needs_traces()),
        }
    }
    if contracts.is_empty() {
        return Err(HttpError::not_found(CONTRACT_NOT_FOUND));
    }
    Ok(contracts)
}

/// Finds out what stands behind a contract, where the store cannot tell by the node; `answer` is given that.
pub(crate) fn behind(
    snapshot: &Snapshot,
    contract: Address,
    mut answer: impl FnMut(Proxy) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let proxy = snapshot.reader.proxy(&contract).map_err(query_failed)?;
    let alone = answer(proxy);
    if matches!(proxy, Proxy::Fixed(_) | Proxy::Never) {
        return alone;
    }
    let head = snapshot.reader.head().number;
    let question = Question::after(snapshot, head, alone, move |node| {
        Box::pin(async move {
            let told = ask(&*node, contract, head).await?;
            // Proxies from before EIP-1967 keep the address elsewhere and tell of it in logs all the same.
            Ok(answer(told.unwrap_or(proxy)))
        })
    })?;
    Ok(Answer::AskNode(question.or_else_alone()))
}

/// Where a proxy keeps its implementation: `keccak256("eip1967.proxy.implementation") - 1`.
const IMPLEMENTATION: B256 =
    alloy_primitives::b256!("360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc");
/// Where it keeps its beacon: `keccak256("eip1967.proxy.beacon") - 1`.
const BEACON: B256 =
    alloy_primitives::b256!("a3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50");

/// What the node says of a contract's slots; `None` where both are empty.
async fn ask(node: &dyn Upstream, contract: Address, head: u64) -> Result<Option<Proxy>, UpstreamError> {
    let slot = async |slot| {
        let word = node.storage(contract, slot, head).await?;
        Ok((word != B256::ZERO).then(|| Address::from_word(word)))
    };
    if let Some(implementation) = slot(IMPLEMENTATION).await? {
        return Ok(Some(Proxy::Told(Some(implementation))));
    }
    let Some(beacon) = slot(BEACON).await? else {
        return Ok(None);
    };
    let implementation = node.beacon_implementation(beacon, head).await?;
    Ok(Some(Proxy::Told(Some(implementation))))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::*;
    use crate::model::U256;

    #[test]
    fn slots() {
        for (slot, name) in [
            (IMPLEMENTATION, "eip1967.proxy.implementation"),
            (BEACON, "eip1967.proxy.beacon"),
        ] {
            let hash = U256::from_be_bytes(keccak256(name).0);
            assert_eq!(slot, B256::from(hash - U256::ONE));
        }
    }
}
