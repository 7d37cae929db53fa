//! Imported contracts: facts, ABIs, names and texts of sources.

use super::{ImportWriter, Imported};
use crate::codec::Corrupt;
use crate::codec::imported::contracts as codec;
use crate::model::{Address, B256, ContractFacts, ContractNames};
use crate::store::StoreError;

/// A key and what is to lie under it; `None` deletes it.
pub type ImportRow = (Vec<u8>, Option<Vec<u8>>);

impl Imported {
    /// What was imported of a contract; `None` where nothing was.
    pub fn contract(&self, contract: &Address) -> Result<Option<ContractFacts>, StoreError> {
        self.row(&codec::facts_key(contract), codec::decode_facts)
    }

    /// The ABI of a contract: a JSON array.
    pub fn contract_abi(&self, contract: &Address) -> Result<Option<String>, StoreError> {
        self.row(&codec::abi_key(contract), codec::decode_whole_text)
    }

    /// The names in a contract's ABI.
    pub fn contract_names(&self, contract: &Address) -> Result<Option<ContractNames>, StoreError> {
        self.row(&codec::names_key(contract), codec::decode_names)
    }

    /// Whether there are names of any contract.
    pub fn has_contract_names(&self) -> Result<bool, StoreError> {
        let (from, to) = codec::names_range();
        let mut any = false;
        self.rows(&from, &to, false, |_, _| {
            any = true;
            Ok(false)
        })?;
        Ok(any)
    }

    /// The hash of the creation code that all of it was held against, where that was not in a final block then.
    pub fn unfinal_code(&self, contract: &Address) -> Result<Option<B256>, StoreError> {
        self.row(&codec::unfinal_key(contract), codec::decode_code_hash)
    }

    /// The text of a source by its Keccak-256.
    pub fn source_text(&self, hash: &B256) -> Result<Option<String>, StoreError> {
        self.row(&codec::source_key(hash), codec::decode_whole_text)
    }
}

impl ImportWriter {
    /// What was imported of a contract.
    pub fn contract(&self, contract: &Address) -> Result<Option<ContractFacts>, StoreError> {
        self.row(&codec::facts_key(contract), codec::decode_facts)
    }

    /// The ABI of a contract: a JSON array.
    pub fn contract_abi(&self, contract: &Address) -> Result<Option<String>, StoreError> {
        self.row(&codec::abi_key(contract), codec::decode_whole_text)
    }

    /// The hash of the creation code that all of it was held against, where that was not in a final block then.
    pub fn unfinal_code(&self, contract: &Address) -> Result<Option<B256>, StoreError> {
        self.row(&codec::unfinal_key(contract), codec::decode_code_hash)
    }

    fn row<T>(
        &self,
        key: &[u8],
        decode: impl FnOnce(&[u8]) -> Result<T, Corrupt>,
    ) -> Result<Option<T>, StoreError> {
        super::decoded(key, self.get(key)?, decode)
    }

    /// The rows that forget a contract; texts of its sources stay, for others may have them too.
    #[must_use]
    pub fn forgotten(contract: &Address) -> Vec<ImportRow> {
        let keys = [
            codec::facts_key(contract),
            codec::abi_key(contract),
            codec::names_key(contract),
            codec::unfinal_key(contract),
        ];
        keys.map(|key| (key.to_vec(), None)).into()
    }

    /// The row of the creation code that all of it was held against, where that is not in a final block.
    #[must_use]
    pub fn unfinal_row(contract: &Address, code: Option<B256>) -> ImportRow {
        let key = codec::unfinal_key(contract).to_vec();
        (key, code.map(|hash| hash.to_vec()))
    }

    /// The rows of a contract, and of the texts of its sources. A text that is there already, of whichever contract, is
    /// the same text.
    #[must_use]
    pub fn contract_rows(
        contract: &Address,
        facts: &ContractFacts,
        abi: Option<(&str, &ContractNames)>,
        texts: Vec<(B256, String)>,
    ) -> Vec<ImportRow> {
        let texts = texts
            .into_iter()
            .map(|(hash, text)| (codec::source_key(&hash).to_vec(), Some(text.into_bytes())));
        let mut rows: Vec<ImportRow> = texts.collect();
        rows.push((
            codec::facts_key(contract).to_vec(),
            Some(codec::encode_facts(facts)),
        ));
        let abi_text = abi.map(|(text, _)| text.as_bytes().to_vec());
        rows.push((codec::abi_key(contract).to_vec(), abi_text));
        let names = abi.map(|(_, names)| codec::encode_names(names));
        rows.push((codec::names_key(contract).to_vec(), names));
        rows
    }
}
