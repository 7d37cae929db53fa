//! C1: a contract's ABI. C2: its sources, and what stands behind a proxy.

use serde::ser::{Serialize, SerializeMap as _, Serializer};

use crate::desk::answer::{Answer, Plan, Snapshot};
use crate::desk::caching::Reach;
use crate::desk::contracts::behind;
use crate::desk::faults::{NOT_VERIFIED, query_failed};
use crate::http::HttpError;
use crate::model::{Address, ContractFacts};
use crate::query::{ContractSources, Proxy, QueryError};

use super::input::Input;

#[derive(serde::Serialize)]
struct Abi {
    abi: String,
}

/// C1.
pub(super) fn abi(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let contract = input.contract()?;
    Ok(Plan::point(move |snapshot| {
        let abi = snapshot.reader.contract_abi(&contract).map_err(query_failed)?;
        let abi = abi.ok_or_else(|| HttpError::not_found(NOT_VERIFIED))?;
        // Another may be imported.
        Answer::json(&Abi { abi }, Reach::Head)
    }))
}

/// Texts by path.
#[derive(Clone)]
struct Texts(Vec<(String, String)>);

impl Serialize for Texts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (path, text) in &self.0 {
            map.serialize_entry(path, text)?;
        }
        map.end()
    }
}

#[derive(Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceCode {
    contract_address: String,
    chain: &'static str,
    contract_name: Option<String>,
    language: Option<String>,
    compiler_version: Option<String>,
    optimization_used: Option<bool>,
    runs: Option<u64>,
    evm_version: Option<String>,
    constructor_arguments: Option<String>,
    license_type: Option<String>,
    source_code: Option<String>,
    sources: Texts,
    abi: String,
    proxy: bool,
    implementation: Option<String>,
    match_type: &'static str,
}

impl SourceCode {
    /// What was imported of the contract; `None` where that is no source.
    fn find(snapshot: &Snapshot, contract: &Address) -> Result<Option<Self>, QueryError> {
        let reader = &snapshot.reader;
        let Some(ContractSources { facts, abi, texts }) = reader.contract_sources(contract)? else {
            return Ok(None);
        };
        let ContractFacts {
            match_kind,
            name,
            language,
            compiler_version,
            optimizer,
            runs,
            evm_version,
            license,
            main,
            constructor_arguments,
            ..
        } = facts;
        let source_code = texts
            .iter()
            .find(|(path, _)| Some(path) == main.as_ref())
            .map(|(_, text)| text.clone());
        Ok(Some(Self {
            contract_address: const_hex::encode_prefixed(contract),
            chain: snapshot.chain.as_str(),
            contract_name: name,
            language,
            compiler_version,
            optimization_used: optimizer,
            runs,
            evm_version,
            constructor_arguments: constructor_arguments.map(const_hex::encode_prefixed),
            license_type: license,
            source_code,
            sources: Texts(texts),
            abi,
            proxy: false,
            implementation: None,
            match_type: match_kind.as_str(),
        }))
    }

    fn answer(&mut self, proxy: Proxy) -> Result<Answer, HttpError> {
        self.proxy = matches!(proxy, Proxy::Fixed(_) | Proxy::Told(_));
        self.implementation = proxy.implementation().map(const_hex::encode_prefixed);
        Answer::json(self, Reach::Head)
    }
}

/// C2.
pub(super) fn source_code(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let contract = input.contract()?;
    Ok(Plan::point(move |snapshot| {
        let found = SourceCode::find(snapshot, &contract).map_err(query_failed)?;
        let mut body = found.ok_or_else(|| HttpError::not_found(NOT_VERIFIED))?;
        behind(snapshot, contract, move |proxy| body.answer(proxy))
    }))
}
