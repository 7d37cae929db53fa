//! Asking contracts: `eth_call` with bounds, and the questions that every token is asked.
//!
//! A contract is nobody's friend: it may revert, burn gas, return nothing, something else or megabytes. All
//! that is the contract's answer ([`Told::Nothing`]) and told from a failure of the node, which is an error.

use super::client::{Node, Repeat};
use super::error::NodeError;
use super::pace::RequestClass;
use super::wire::{self, abi};
use crate::model::{Address, BlockId, TokenMetadata, U256};

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

/// After which block a contract is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAt {
    /// The node's newest.
    Newest,
    /// That of a number, whichever the answering node has there.
    Number(u64),
    /// This one and no other, named by its hash (EIP-1898). Not every node takes that.
    Block(BlockId),
}

impl From<u64> for CallAt {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<u64>> for CallAt {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Self::Newest, Self::Number)
    }
}

impl CallAt {
    /// The parameter, JSON.
    fn param(self) -> String {
        match self {
            Self::Newest => "\"latest\"".to_owned(),
            Self::Number(number) => format!("\"0x{number:x}\""),
            Self::Block(block) => format!("{{\"blockHash\":\"{:?}\"}}", block.hash),
        }
    }

    /// What is not known by a hash may be known by its number: such an error is for the caller to think about.
    const fn repeat(self) -> Repeat {
        match self {
            Self::Block(_) => Repeat::UnlessAnswered,
            Self::Newest | Self::Number(_) => Repeat::Always,
        }
    }
}

/// What a token says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// Its words.
    pub metadata: TokenMetadata,
    /// A call returned not one byte: for the node that answered there may have been no contract.
    pub is_bare: bool,
}

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
    /// Calls a contract as the chain stood after a block, with bounded gas.
    ///
    /// # Errors
    ///
    /// As the node fails; what the contract does wrong is none.
    pub async fn call_contract(
        &self,
        contract: Address,
        input: &[u8],
        at: impl Into<CallAt>,
    ) -> Result<Told<Vec<u8>>, NodeError> {
        let at = at.into();
        let params = format!(
            "[{{\"to\":\"{contract:?}\",\"gas\":\"0x{GAS:x}\",\"data\":\"0x{}\"}},{}]",
            const_hex::encode(input),
            at.param()
        );
        let asked = self.call(RequestClass::Call, METHOD, &params, at.repeat()).await;
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
            .map_err(|error| self.malformed(METHOD, &error))
    }

    /// Whether there is code at an address after a block (`eth_getCode`).
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn has_code(&self, contract: Address, at: impl Into<CallAt>) -> Result<bool, NodeError> {
        let at = at.into();
        let params = format!("[\"{contract:?}\",{}]", at.param());
        let text = self
            .call(RequestClass::Call, "eth_getCode", &params, at.repeat())
            .await?;
        Ok(!matches!(text.get(), "\"0x\"" | "\"\"" | "null"))
    }

    /// The native balance of an account after a block, also of one that is named by its hash.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn balance(&self, account: Address, at: impl Into<CallAt>) -> Result<U256, NodeError> {
        const METHOD: &str = "eth_getBalance";
        let at = at.into();
        let params = format!("[\"{account:?}\",{}]", at.param());
        let text = self
            .call(RequestClass::Light, METHOD, &params, at.repeat())
            .await?;
        wire::amount(text.get()).map_err(|error| self.malformed(METHOD, &error))
    }

    /// `totalSupply()` of a token after a block.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn token_supply(&self, token: Address, at: impl Into<CallAt>) -> Result<Told<U256>, NodeError> {
        let told = self.call_contract(token, &TOTAL_SUPPLY, at).await?;
        Ok(told.and_then(|returned| abi::number(returned), "number"))
    }

    /// `balanceOf(holder)` of a token after a block.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn token_balance(
        &self,
        token: Address,
        holder: Address,
        at: impl Into<CallAt>,
    ) -> Result<Told<U256>, NodeError> {
        let mut input = [0; 36];
        let (selector, word) = input.split_at_mut(4);
        selector.copy_from_slice(&BALANCE_OF);
        word.get_mut(12..)
            .unwrap_or_default()
            .copy_from_slice(holder.as_slice());
        let told = self.call_contract(token, &input, at).await?;
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

    /// `name()`, `symbol()` and `decimals()` of a token after a block, each `None` where the contract does not tell.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn token_metadata(
        &self,
        token: Address,
        at: impl Into<CallAt>,
    ) -> Result<Described, NodeError> {
        let at = at.into();
        let mut is_bare = false;
        let mut returned: [Option<Vec<u8>>; 3] = Default::default();
        for (selector, returned) in [NAME, SYMBOL, DECIMALS].iter().zip(&mut returned) {
            *returned = self.call_contract(token, selector, at).await?.value();
            is_bare |= returned.as_ref().is_some_and(Vec::is_empty);
        }
        let [name, symbol, decimals] = returned;
        Ok(Described {
            metadata: TokenMetadata {
                name: name.and_then(|returned| abi::text(&returned)),
                symbol: symbol.and_then(|returned| abi::text(&returned)),
                decimals: decimals.and_then(|returned| abi::decimals(&returned)),
            },
            is_bare,
        })
    }
}
