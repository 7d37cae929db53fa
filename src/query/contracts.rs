//! What the chain itself knows of a contract's code and of what stands behind a proxy.

use alloy_primitives::{b256, hex, keccak256};

use super::internal::TopCall;
use super::{LogQuery, QueryError, Reader};
use crate::codec::Corrupt;
use crate::codec::value::FrameRow;
use crate::model::{Address, B256, Bytes, ContractFacts, ContractNames};
use crate::store::{Imported, StoreError, Table, Units};

/// The code of a contract, as far as its latest creation tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractCode {
    /// What was run to make it, with the arguments of its constructor.
    pub init: Option<Bytes>,
    /// What that left behind; only frames tell.
    pub runtime: Option<Bytes>,
}

impl ContractCode {
    /// The contract whose code this one runs for ever, where it is a minimal proxy (EIP-1167).
    #[must_use]
    pub fn minimal_proxy(&self) -> Option<Address> {
        match (self.known_runtime(), self.init.as_deref()) {
            (Some(runtime), _) => minimal_at(runtime),
            // A few instructions return what follows them. Further in it is what a factory makes.
            (None, Some(init)) => (0..=MINIMAL_INIT_MAX).find_map(|at| minimal_at(init.get(at..)?)),
            (None, None) => None,
        }
    }

    /// The Keccak-256 of what was run to make it.
    #[must_use]
    pub fn creation_hash(&self) -> Option<B256> {
        self.init.as_ref().map(keccak256)
    }

    fn known_runtime(&self) -> Option<&[u8]> {
        let runtime = self.runtime.as_ref().map(AsRef::as_ref);
        runtime.filter(|code: &&[u8]| !code.is_empty())
    }

    /// What it says of the contract as a proxy: `Fixed`, `Never`, or `Untold`.
    fn proxy(&self) -> Proxy {
        if let Some(implementation) = self.minimal_proxy() {
            return Proxy::Fixed(implementation);
        }
        // A beacon tells of upgrades too, and runs nobody's code.
        if self.known_runtime().is_some_and(|code| !delegates(code)) {
            return Proxy::Never;
        }
        Proxy::Untold
    }
}

/// What was imported of a contract that has sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractSources {
    /// But for the texts.
    pub facts: ContractFacts,
    /// A JSON array.
    pub abi: String,
    /// Texts by path, in the order of the facts.
    pub texts: Vec<(String, String)>,
}

/// What the store knows of a contract as a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// It is none: its code cannot run another's.
    Never,
    /// It is one of this contract for ever: the address stands in its code.
    Fixed(Address),
    /// It told of an implementation, or of a beacon; of that one's implementation nothing may be known.
    Told(Option<Address>),
    /// Nothing says that it is one.
    Untold,
}

impl Proxy {
    /// The contract whose code it runs, where that is known.
    #[must_use]
    pub const fn implementation(self) -> Option<Address> {
        match self {
            Self::Fixed(implementation) => Some(implementation),
            Self::Told(implementation) => implementation,
            Self::Never | Self::Untold => None,
        }
    }
}

/// `Upgraded(address)` (EIP-1967).
const UPGRADED: B256 = b256!("bc7cd75a20ee27fd9adebab32041f755214dbc6bffa90cc0225b39da2e5c2d3b");
/// `BeaconUpgraded(address)` (EIP-1967).
const BEACON_UPGRADED: B256 = b256!("1cf3b03a6cf19fa2baba4df148e9dcabedea7f8a5c07840e207e5c089be95d3e");

/// Minimal proxies (EIP-1167, and the same with other instructions): what stands before and behind the address.
const MINIMAL: [(&[u8], &[u8]); 3] = [
    (
        &hex!("363d3d373d3d3d363d73"),
        &hex!("5af43d82803e903d91602b57fd5bf3"),
    ),
    (
        &hex!("3d3d3d3d363d3d37363d73"),
        &hex!("5af43d3d93803e602a57fd5bf3"),
    ),
    (
        &hex!("365f5f375f5f365f73"),
        &hex!("5af43d5f5f3e5f3d91602a57fd5bf3"),
    ),
];

/// The longest code that is seen to make a minimal proxy.
const MINIMAL_INIT_MAX: usize = 20;

/// The address in a minimal proxy's code, which begins `code`.
fn minimal_at(code: &[u8]) -> Option<Address> {
    MINIMAL.iter().find_map(|(before, behind)| {
        let (address, rest) = code.strip_prefix(*before)?.split_first_chunk::<20>()?;
        rest.starts_with(behind).then(|| Address::from(*address))
    })
}

/// Whether code can run another's: it has the instruction outside of pushed bytes. Behind the code data may follow,
/// so that "yes" is a guess and "no" is certain.
fn delegates(code: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&instruction) = code.get(at) {
        match instruction {
            0xf4 => return true,
            push @ 0x60..=0x7f => at += usize::from(push - 0x5f),
            _ => {}
        }
        at += 1;
    }
    false
}

impl Reader {
    /// The imported ABI of a contract: a JSON array.
    pub fn contract_abi(&self, contract: &Address) -> Result<Option<String>, QueryError> {
        self.import_of(contract, Imported::contract_abi)
    }

    /// The names in the imported ABI of a contract.
    pub(super) fn contract_names(&self, contract: &Address) -> Result<Option<ContractNames>, QueryError> {
        self.import_of(contract, Imported::contract_names)
    }

    /// What was imported of a contract, but for what was held against code that a reorg took away since.
    fn import_of<T>(
        &self,
        contract: &Address,
        read: impl FnOnce(&Imported, &Address) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, QueryError> {
        let Some(imported) = self.imported() else {
            return Ok(None);
        };
        let Some(found) = read(imported, contract)? else {
            return Ok(None);
        };
        let is_there = match imported.unfinal_code(contract)? {
            Some(hash) => self.contract_code(contract)?.creation_hash() == Some(hash),
            None => true,
        };
        Ok(is_there.then_some(found))
    }

    /// What was imported of a contract with its sources; `None` where there are none. Whatever has sources has an ABI.
    pub fn contract_sources(&self, contract: &Address) -> Result<Option<ContractSources>, QueryError> {
        let Some(imported) = self.imported() else {
            return Ok(None);
        };
        let facts = self.import_of(contract, Imported::contract)?;
        let Some(facts) = facts.filter(|facts| !facts.sources.is_empty()) else {
            return Ok(None);
        };
        // None is imported without one; earlier versions did.
        let Some(abi) = imported.contract_abi(contract)? else {
            return Ok(None);
        };
        let mut texts = Vec::with_capacity(facts.sources.len());
        for (path, hash) in &facts.sources {
            let missing = QueryError::Corrupt(Corrupt("source without its text"), "imports");
            let text = imported.source_text(hash)?.ok_or(missing)?;
            texts.push((path.clone(), text));
        }
        Ok(Some(ContractSources { facts, abi, texts }))
    }

    /// Whether an account sent a transaction of the store's blocks.
    pub fn has_sent(&self, account: &Address) -> Result<bool, QueryError> {
        let end = self.view.checkpoint().transactions;
        Ok(self.view.sent_nonce(account, end)?.is_some())
    }

    /// Whether the block of a contract's latest creation is not final.
    pub fn is_created_unfinal(&self, contract: &Address) -> Result<bool, QueryError> {
        let latest = self.latest_creation(contract)?;
        Ok(latest.is_some_and(|(ordinal, _)| !self.view.is_final_transaction(ordinal)))
    }

    /// The code of a contract; nothing where its creation is not in the store's blocks.
    pub fn contract_code(&self, contract: &Address) -> Result<ContractCode, QueryError> {
        let Some((ordinal, creation)) = self.latest_creation(contract)? else {
            return Ok(ContractCode::default());
        };
        if let Some(frame) = creation.frame {
            let mut units = Units::new(&self.view, Table::Frames);
            let frame = FrameRow::decode(units.row(frame)?.bytes())
                .and_then(FrameRow::nested)
                .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Frames.name()))?;
            return Ok(ContractCode {
                init: Some(Bytes::copy_from_slice(frame.input)),
                runtime: Some(Bytes::copy_from_slice(frame.output)),
            });
        }
        let mut units = Units::new(&self.view, Table::Transactions);
        let (_, row) = Self::transaction_row(&mut units, ordinal)?;
        Ok(ContractCode {
            init: Some(row.transaction.input),
            runtime: match self.top_call(ordinal)? {
                TopCall::Ended(top) => Some(top.output),
                TopCall::Untold | TopCall::Absent => None,
            },
        })
    }

    /// Whether a contract is a proxy, and of what, by its code and its logs up to the indexed head.
    pub fn proxy(&self, contract: &Address) -> Result<Proxy, QueryError> {
        match self.proxy_of_code(contract)? {
            Proxy::Untold => self.proxy_told(contract, self.head().number),
            known => Ok(known),
        }
    }

    /// What a contract's code alone says of it as a proxy: `Fixed`, `Never`, or `Untold`.
    pub(super) fn proxy_of_code(&self, contract: &Address) -> Result<Proxy, QueryError> {
        Ok(self.contract_code(contract)?.proxy())
    }

    /// What a contract's logs up to a block say of it as a proxy: `Told`, or `Untold`.
    pub(super) fn proxy_told(&self, contract: &Address, last_block: u64) -> Result<Proxy, QueryError> {
        let upgraded = self.last_address(contract, UPGRADED, last_block)?;
        let beacon = self.last_address(contract, BEACON_UPGRADED, last_block)?;
        Ok(match (upgraded, beacon) {
            (None, None) => Proxy::Untold,
            (Some((ordinal, implementation)), beacon) if beacon.is_none_or(|(later, _)| later < ordinal) => {
                Proxy::Told(Some(implementation))
            }
            (_, Some((_, beacon))) => {
                let told = self.last_address(&beacon, UPGRADED, last_block)?;
                Proxy::Told(told.map(|(_, implementation)| implementation))
            }
            (Some((_, implementation)), None) => Proxy::Told(Some(implementation)),
        })
    }

    /// The address in a contract's last log of this signature up to a block, indexed or not, and which log that is.
    fn last_address(
        &self,
        contract: &Address,
        signature: B256,
        last_block: u64,
    ) -> Result<Option<(u64, Address)>, QueryError> {
        let mut query = LogQuery {
            address: Some(*contract),
            first_block: self.first_block(),
            last_block,
            descending: true,
            limit: 1,
            ..LogQuery::default()
        };
        let [first, ..] = &mut query.topics;
        first.push(signature);
        let mut found = None;
        self.logs(&query)?.visit(&mut |log| {
            let word = match (log.topics.get(1), log.data.first_chunk::<32>()) {
                (Some(topic), _) => Some(*topic),
                (None, Some(data)) => Some(B256::from(*data)),
                (None, None) => None,
            };
            found = word.map(|word| (log.ordinal, Address::from_word(word)));
            true
        })?;
        Ok(found.filter(|(_, address)| !address.is_zero()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures() {
        assert_eq!(UPGRADED, keccak256("Upgraded(address)"));
        assert_eq!(BEACON_UPGRADED, keccak256("BeaconUpgraded(address)"));
    }

    #[test]
    fn minimal_proxies_are_known_by_their_code() {
        let address = Address::repeat_byte(0xbe);
        for (before, behind) in MINIMAL {
            let code = [before, address.as_slice(), behind].concat();
            assert_eq!(minimal_at(&code), Some(address));
            let with_data = [code.as_slice(), b"immutable arguments"].concat();
            assert_eq!(minimal_at(&with_data), Some(address));
            assert_eq!(minimal_at(&code[..code.len() - 1]), None);
            let made = |before: &[u8]| ContractCode {
                init: Some([before, &code].concat().into()),
                runtime: None,
            };
            assert_eq!(made(&hex!("3d602d80600a3d3981f3")).minimal_proxy(), Some(address));
            assert_eq!(made(&[0x60; 100]).minimal_proxy(), None, "a factory has it too");
            assert_eq!(made(&hex!("3d602d80600a3d3981f3")).proxy(), Proxy::Fixed(address));
            // What makes others of it may be a proxy for all that is known.
            assert_eq!(made(&[0x60; 100]).proxy(), Proxy::Untold);
            assert!(delegates(&code));
        }
        assert_eq!(minimal_at(&[]), None);
    }

    #[test]
    fn pushed_bytes_are_no_instructions() {
        assert!(!delegates(&hex!("60f4 61f4f4 00 7f f4f4f4f4")));
        assert!(delegates(&hex!("60f4 f4")));
        assert!(!delegates(&[]));
    }
}
