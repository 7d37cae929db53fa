//! Asking contracts: `eth_call` with bounds, and the questions that every token is asked.
//!
//! A contract is nobody's friend: it may revert, burn gas, return nothing, something else or megabytes. All
//! that is the contract's answer ([`Told::Nothing`]) and told from a failure of the node, which is an error.

use super::client::{Node, Repeat};
use super::error::NodeError;
use super::pace::RequestClass;
use super::wire::{self, abi};
use crate::model::{Address, TokenMetadata, U256};

const METHOD: &str = "eth_call";

/// Gas of a call. A balance costs 3,000 to 100,000, behind proxies and rebasing too; this also bounds what a
/// contract can return to about 700 KB.
const GAS: u64 = 1_000_000;

/// The longest answer looked at, characters of JSON. A text of 256 characters is 1 KB at most.
const RESULT_CHARS_MAX: usize = 64 << 10;

const NAME: [u8; 4] = [0x06, 0xfd, 0xde, 0x03];
const SYMBOL: [u8; 4] = [0x95, 0xd8, 0x9b, 0x41];
pub(super) const DECIMALS: [u8; 4] = [0x31, 0x3c, 0xe5, 0x67];
const TOTAL_SUPPLY: [u8; 4] = [0x18, 0x16, 0x0d, 0xdd];
const IMPLEMENTATION: [u8; 4] = [0x5c, 0x60, 0xda, 0x1b];
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];

/// What a contract told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told<T> {
    /// A value.
    Value(T),
    /// No usable answer, and why: the call failed, or it returned nothing, something else or too much.
    Nothing(String),
}

impl<T> Told<T> {
    /// The value, if there is one.
    #[must_use]
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Nothing(_) => None,
        }
    }

    pub(super) fn and_then<U>(self, read: impl FnOnce(&T) -> Option<U>, expected: &'static str) -> Told<U> {
        match self {
            Self::Value(value) => match read(&value) {
                Some(read) => Told::Value(read),
                None => Told::Nothing(format!("it returned no {expected}")),
            },
            Self::Nothing(why) => Told::Nothing(why),
        }
    }
}

impl Node {
    /// Calls a contract as the chain stood after block `block` (`None`: the node's newest), with bounded gas.
    ///
    /// # Errors
    ///
    /// As the node fails; what the contract does wrong is none.
    pub async fn call_contract(
        &self,
        contract: Address,
        input: &[u8],
        block: Option<u64>,
    ) -> Result<Told<Vec<u8>>, NodeError> {
        let at = block.map_or_else(|| "latest".to_owned(), |number| format!("0x{number:x}"));
        let params = format!(
            "[{{\"to\":\"{contract:?}\",\"gas\":\"0x{GAS:x}\",\"data\":\"0x{}\"}},\"{at}\"]",
            const_hex::encode(input)
        );
        let asked = self
            .call(RequestClass::Call, METHOD, &params, Repeat::Always)
            .await;
        let text = match asked {
            Ok(text) => text,
            Err(NodeError::Execution { message, .. }) => return Ok(Told::Nothing(message)),
            Err(error) => return Err(error),
        };
        let chars = text.get().len();
        if RESULT_CHARS_MAX < chars {
            return Ok(Told::Nothing(format!("it returned {chars} characters")));
        }
        wire::bytes(text.get())
            .map(Told::Value)
            .map_err(|error| NodeError::Malformed {
                method: METHOD,
                reason: error.to_string(),
            })
    }

    /// `totalSupply()` of a token after block `block`.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn token_supply(&self, token: Address, block: u64) -> Result<Told<U256>, NodeError> {
        let told = self.call_contract(token, &TOTAL_SUPPLY, Some(block)).await?;
        Ok(told.and_then(|returned| abi::number(returned), "number"))
    }

    /// `balanceOf(holder)` of a token after block `block`.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn token_balance(
        &self,
        token: Address,
        holder: Address,
        block: u64,
    ) -> Result<Told<U256>, NodeError> {
        let mut input = [0; 36];
        let (selector, word) = input.split_at_mut(4);
        selector.copy_from_slice(&BALANCE_OF);
        word.get_mut(12..)
            .unwrap_or_default()
            .copy_from_slice(holder.as_slice());
        let told = self.call_contract(token, &input, Some(block)).await?;
        Ok(told.and_then(|returned| abi::number(returned), "number"))
    }

    /// `implementation()` of a beacon (EIP-1967) after block `block`.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn beacon_implementation(
        &self,
        beacon: Address,
        block: u64,
    ) -> Result<Told<Address>, NodeError> {
        let told = self.call_contract(beacon, &IMPLEMENTATION, Some(block)).await?;
        let address = |returned: &Vec<u8>| {
            let word = abi::number(returned)?;
            (word.bit_len() <= 160).then(|| Address::from_word(word.into()))
        };
        Ok(told.and_then(address, "address"))
    }

    /// `name()`, `symbol()` and `decimals()` of a token now, each `None` where the contract does not tell.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn token_metadata(&self, token: Address) -> Result<TokenMetadata, NodeError> {
        let ask = async |selector: [u8; 4]| self.call_contract(token, &selector, None).await;
        Ok(TokenMetadata {
            name: ask(NAME).await?.value().and_then(|returned| abi::text(&returned)),
            symbol: ask(SYMBOL)
                .await?
                .value()
                .and_then(|returned| abi::text(&returned)),
            decimals: ask(DECIMALS)
                .await?
                .value()
                .and_then(|returned| abi::decimals(&returned)),
        })
    }
}
