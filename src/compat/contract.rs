//! The module `contract`.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::desk::answer::Plan;
use crate::desk::caching::Reach;
use crate::desk::contracts::{behind, creations, take_several};
use crate::desk::faults::{NOT_VERIFIED, query_failed};
use crate::http::{ErrorStatus, HttpError};
use crate::model::{ContractFacts, MatchKind};
use crate::query::{ContractSources, Proxy};

use super::ask::Ask;
use super::envelope::{items, no_data, ok};

/// `getabi`.
pub(super) fn abi(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let contract = ask.address()?;
    Ok(Plan::point(move |snapshot| {
        let abi = snapshot.reader.contract_abi(&contract).map_err(query_failed)?;
        let abi = abi.ok_or_else(|| HttpError::not_found(NOT_VERIFIED))?;
        ok(&abi, Reach::Head)
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Source {
    source_code: String,
    #[serde(rename = "ABI")]
    abi: String,
    contract_name: String,
    compiler_version: String,
    compiler_type: String,
    optimization_used: String,
    runs: String,
    constructor_arguments: String,
    #[serde(rename = "EVMVersion")]
    evm_version: String,
    library: String,
    contract_file_name: String,
    license_type: String,
    proxy: &'static str,
    implementation: String,
    swarm_source: String,
    similar_match: String,
}

impl Source {
    /// Of a contract that nobody verified.
    fn none() -> Self {
        Self {
            source_code: String::new(),
            abi: NOT_VERIFIED.to_owned(),
            contract_name: String::new(),
            compiler_version: String::new(),
            compiler_type: String::new(),
            optimization_used: "0".to_owned(),
            runs: "0".to_owned(),
            constructor_arguments: String::new(),
            evm_version: "Default".to_owned(),
            library: String::new(),
            contract_file_name: String::new(),
            license_type: "Unknown".to_owned(),
            proxy: "0",
            implementation: String::new(),
            swarm_source: String::new(),
            similar_match: String::new(),
        }
    }

    fn of(found: ContractSources) -> Self {
        let settings = settings(&found.facts);
        let (source_code, library) = (source_code(&found, &settings), library(&settings));
        let facts = found.facts;
        let vyper = facts
            .language
            .as_ref()
            .is_some_and(|language| language.eq_ignore_ascii_case("vyper"));
        let version = facts.compiler_version.unwrap_or_default();
        Self {
            source_code,
            abi: found.abi,
            contract_name: facts.name.unwrap_or_default(),
            compiler_version: match version.as_str() {
                "" => version,
                _ if vyper => format!("vyper:{}", version.trim_start_matches('v')),
                text if text.starts_with('v') => version,
                _ => format!("v{version}"),
            },
            compiler_type: if vyper { "vyper" } else { "solc" }.to_owned(),
            optimization_used: if facts.optimizer == Some(true) { "1" } else { "0" }.to_owned(),
            runs: facts.runs.unwrap_or(200).to_string(),
            constructor_arguments: facts
                .constructor_arguments
                .map(const_hex::encode)
                .unwrap_or_default(),
            evm_version: facts.evm_version.unwrap_or_else(|| "Default".to_owned()),
            library,
            contract_file_name: facts.main.unwrap_or_default(),
            license_type: facts.license.unwrap_or_else(|| "Unknown".to_owned()),
            similar_match: match facts.match_kind {
                MatchKind::Full => "",
                MatchKind::Partial => "partial",
            }
            .to_owned(),
            ..Self::none()
        }
    }
}

/// What the sources were compiled with, as a standard-JSON input has it; of an import that kept none, what facts tell.
fn settings(facts: &ContractFacts) -> Value {
    let kept = facts.settings.as_deref().map(serde_json::from_str);
    if let Some(Ok(settings)) = kept {
        return settings;
    }
    let mut settings = json!({
        "optimizer": {
            "enabled": facts.optimizer.unwrap_or(false),
            "runs": facts.runs.unwrap_or(200),
        },
    });
    if let (Some(version), Some(settings)) = (&facts.evm_version, settings.as_object_mut()) {
        settings.insert("evmVersion".to_owned(), json!(version));
    }
    settings
}

/// `Name:address;Name:address`, the addresses without `0x`.
fn library(settings: &Value) -> String {
    let files = settings.get("libraries").and_then(Value::as_object);
    let named = files
        .into_iter()
        .flatten()
        .filter_map(|(_, names)| names.as_object())
        .flatten()
        .filter_map(|(name, place)| {
            let place = place.as_str()?;
            Some(format!("{name}:{}", place.trim_start_matches("0x")))
        });
    named.collect::<Vec<_>>().join(";")
}

/// One file as it is; several as standard JSON in one more pair of braces.
fn source_code(found: &ContractSources, settings: &Value) -> String {
    match found.texts.as_slice() {
        [] => String::new(),
        [(_, text)] => text.clone(),
        texts => {
            let facts = &found.facts;
            let sources: Map<String, Value> = texts
                .iter()
                .map(|(path, text)| (path.clone(), json!({ "content": text })))
                .collect();
            let input = json!({
                "language": facts.language.as_deref().unwrap_or("Solidity"),
                "sources": sources,
                "settings": settings,
            });
            format!("{{{input}}}")
        }
    }
}

/// `getsourcecode`: also of a contract that nobody verified.
pub(super) fn source(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let contract = ask.address()?;
    Ok(Plan::point(move |snapshot| {
        let reader = &snapshot.reader;
        let found = reader.contract_sources(&contract).map_err(query_failed)?;
        let mut source = match found {
            Some(found) => Source::of(found),
            None => match reader.contract_abi(&contract).map_err(query_failed)? {
                // An ABI without sources.
                Some(abi) => Source {
                    abi,
                    ..Source::none()
                },
                None => return ok(&[Source::none()], Reach::Head),
            },
        };
        behind(snapshot, contract, move |proxy| {
            let is_proxy = matches!(proxy, Proxy::Fixed(_) | Proxy::Told(_));
            source.proxy = if is_proxy { "1" } else { "0" };
            source.implementation = proxy
                .implementation()
                .map(const_hex::encode_prefixed)
                .unwrap_or_default();
            ok(&[&source], Reach::Head)
        })
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Creation {
    contract_address: String,
    contract_creator: String,
    tx_hash: String,
    block_number: String,
    timestamp: String,
    contract_factory: String,
    creation_bytecode: String,
}

/// `getcontractcreation`.
pub(super) fn creation(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let wanted = take_several(&mut ask.params)?;
    Ok(Plan::point(move |snapshot| {
        let found = match creations(snapshot, &wanted) {
            Err(error) if error.status() == ErrorStatus::NotFound => return no_data(),
            found => found?,
        };
        let found: Vec<_> = found
            .iter()
            .map(|(contract, creation)| Creation {
                contract_address: const_hex::encode_prefixed(contract),
                contract_creator: const_hex::encode_prefixed(creation.creator),
                tx_hash: const_hex::encode_prefixed(creation.transaction_hash),
                block_number: creation.block.to_string(),
                timestamp: creation.timestamp.to_string(),
                contract_factory: creation
                    .factory
                    .map(const_hex::encode_prefixed)
                    .unwrap_or_default(),
                creation_bytecode: const_hex::encode_prefixed(&creation.init_code),
            })
            .collect();
        items(&found, Reach::Head)
    }))
}
