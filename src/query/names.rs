//! Names of functions and errors by imported ABIs: of the contract that is called, and of the code that ran in its name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::contracts::Proxy;
use super::{QueryError, Reader};
use crate::model::{Address, B256, ContractNames, CustomError, ListedTransaction};

/// Names of what is called, looked up once a contract.
#[derive(Debug)]
pub struct CallNames {
    /// `None` where no ABI is imported: then nothing is looked up.
    reader: Option<Reader>,
    known: Mutex<HashMap<Address, Arc<Callee>>>,
}

/// What is known of one contract.
#[derive(Debug, Default)]
struct Callee {
    names: Option<ContractNames>,
    /// What it is as a proxy, by its code; looked up where its own names do not do.
    proxy: OnceLock<Proxy>,
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

    fn callee(&self, reader: &Reader, contract: &Address) -> Result<Arc<Callee>, QueryError> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(callee) = known().get(contract) {
            return Ok(Arc::clone(callee));
        }
        let callee = Arc::new(Callee {
            names: reader.contract_names(contract)?,
            proxy: OnceLock::new(),
        });
        known().insert(*contract, Arc::clone(&callee));
        Ok(callee)
    }

    /// The function that a transaction calls, such as `transfer(address to, uint256 value)`; empty where no ABI tells.
    ///
    /// Of a proxy it is a function of the code that ran in its name then: frames tell which; where they are not
    /// stored, the logs of upgrades up to the block do.
    pub fn of_call(&self, call: &ListedTransaction<'_>) -> Result<String, QueryError> {
        let (Some(reader), Some(to), Some(selector)) = (&self.reader, call.to, call.input.first_chunk::<4>())
        else {
            return Ok(String::new());
        };
        let callee = self.callee(reader, &to)?;
        let function = |callee: &Callee| Some(callee.names.as_ref()?.function(*selector)?.to_owned());
        if let Some(name) = function(&callee) {
            return Ok(name);
        }
        for behind in self.behind(reader, &to, &callee, call, *selector)? {
            if let Some(name) = function(&*self.callee(reader, &behind)?) {
                return Ok(name);
            }
        }
        Ok(String::new())
    }

    /// The contracts whose code may have run in a callee's name.
    fn behind(
        &self,
        reader: &Reader,
        to: &Address,
        callee: &Callee,
        call: &ListedTransaction<'_>,
        selector: [u8; 4],
    ) -> Result<Vec<Address>, QueryError> {
        let of_code = match callee.proxy.get() {
            Some(proxy) => *proxy,
            None => *callee.proxy.get_or_init({
                let proxy = reader.proxy_of_code(to)?;
                move || proxy
            }),
        };
        match of_code {
            Proxy::Never => return Ok(Vec::new()),
            Proxy::Fixed(implementation) => return Ok(vec![implementation]),
            Proxy::Told(_) | Proxy::Untold => {}
        }
        let place = (call.block.number, u64::from(call.transaction_index));
        if let Some(ran) = reader.ran_for(place, to, selector)? {
            return Ok(ran);
        }
        let told = reader.proxy_told(to, call.block.number)?;
        Ok(told.implementation().into_iter().collect())
    }

    /// The custom error that a failed transaction's revert data begins with, by the first contract that handed it on and
    /// knows it.
    pub fn error(
        &self,
        transaction: &B256,
        output: &[u8],
        selector: [u8; 4],
    ) -> Result<Option<CustomError>, QueryError> {
        let Some(reader) = &self.reader else {
            return Ok(None);
        };
        for contract in reader.reverters(transaction, output)? {
            let callee = self.callee(reader, &contract)?;
            if let Some(error) = callee.names.as_ref().and_then(|names| names.error(selector)) {
                return Ok(Some(error.clone()));
            }
        }
        Ok(None)
    }
}
