//! Names of functions and errors by imported ABIs: of the contract that is called, and of what stands behind a proxy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{QueryError, Reader};
use crate::model::{Address, ContractNames, CustomError};

/// Names of what is called, looked up once a contract.
#[derive(Debug)]
pub struct CallNames {
    /// `None` where no ABI is imported: then nothing is looked up.
    reader: Option<Reader>,
    known: Mutex<HashMap<Address, Arc<Callee>>>,
}

/// The names of one contract.
#[derive(Debug, Default)]
struct Callee {
    own: Option<ContractNames>,
    /// Looked up where its own names do not do: that reads its code and its logs.
    implementation: OnceLock<Option<ContractNames>>,
}

impl CallNames {
    /// Names on the reader's snapshot, and by what was imported up to now.
    pub fn new(reader: &Reader) -> Result<Self, QueryError> {
        let any = match reader.imported() {
            Some(imported) => imported.has_contract_names()?,
            None => false,
        };
        Ok(Self {
            reader: any.then(|| reader.clone()),
            known: Mutex::default(),
        })
    }

    /// What `find` finds among the names of a contract, or of what stands behind it.
    fn find<T>(
        &self,
        contract: &Address,
        find: impl Fn(&ContractNames) -> Option<T>,
    ) -> Result<Option<T>, QueryError> {
        let Some((reader, imported)) = self
            .reader
            .as_ref()
            .and_then(|reader| Some((reader, reader.imported()?)))
        else {
            return Ok(None);
        };
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let callee = known().get(contract).map(Arc::clone);
        let callee = match callee {
            Some(callee) => callee,
            None => {
                let callee = Arc::new(Callee {
                    own: imported.contract_names(contract)?,
                    implementation: OnceLock::new(),
                });
                known().insert(*contract, Arc::clone(&callee));
                callee
            }
        };
        if let Some(found) = callee.own.as_ref().and_then(&find) {
            return Ok(Some(found));
        }
        let behind = match callee.implementation.get() {
            Some(behind) => behind,
            None => {
                let behind = match reader.proxy(contract)?.implementation() {
                    Some(behind) => imported.contract_names(&behind)?,
                    None => None,
                };
                callee.implementation.get_or_init(|| behind)
            }
        };
        Ok(behind.as_ref().and_then(find))
    }

    /// The function that a call means, such as `transfer(address to, uint256 value)`; empty where no ABI tells.
    pub fn of_call(&self, to: Option<Address>, input: &[u8]) -> Result<String, QueryError> {
        let (Some(to), Some(selector)) = (to, input.first_chunk::<4>()) else {
            return Ok(String::new());
        };
        let named = self.find(&to, |names| names.function(*selector).map(str::to_owned))?;
        Ok(named.unwrap_or_default())
    }

    /// The custom error that a contract's revert data begins with.
    pub fn error(&self, contract: &Address, selector: [u8; 4]) -> Result<Option<CustomError>, QueryError> {
        self.find(contract, |names| names.error(selector).cloned())
    }
}
