//! Names of functions and errors by imported ABIs: of the contract that is called, and of what stands behind a proxy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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
    implementation: Option<ContractNames>,
}

impl Callee {
    fn all(&self) -> impl Iterator<Item = &ContractNames> {
        [&self.own, &self.implementation].into_iter().flatten()
    }
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

    fn callee(&self, contract: &Address) -> Result<Arc<Callee>, QueryError> {
        let Some((reader, imported)) = self
            .reader
            .as_ref()
            .and_then(|reader| Some((reader, reader.imported()?)))
        else {
            return Ok(Arc::default());
        };
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(callee) = known().get(contract) {
            return Ok(Arc::clone(callee));
        }
        let behind = reader.proxy(contract)?.implementation();
        let callee = Arc::new(Callee {
            own: imported.contract_names(contract)?,
            implementation: match behind {
                Some(behind) => imported.contract_names(&behind)?,
                None => None,
            },
        });
        known().insert(*contract, Arc::clone(&callee));
        Ok(callee)
    }

    /// The function that a call means, such as `transfer(address to, uint256 value)`; empty where no ABI tells.
    pub fn of_call(&self, to: Option<Address>, input: &[u8]) -> Result<String, QueryError> {
        let (Some(to), Some(selector), Some(_)) = (to, input.first_chunk::<4>(), &self.reader) else {
            return Ok(String::new());
        };
        let callee = self.callee(&to)?;
        let named = callee.all().find_map(|names| names.function(*selector));
        Ok(named.unwrap_or_default().to_owned())
    }

    /// The custom error that a contract's revert data begins with.
    pub fn error(&self, contract: &Address, selector: [u8; 4]) -> Result<Option<CustomError>, QueryError> {
        let callee = self.callee(contract)?;
        let named = callee.all().find_map(|names| names.error(selector));
        Ok(named.cloned())
    }
}
