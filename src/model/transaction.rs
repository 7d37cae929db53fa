//! Transactions, receipts and logs.

use super::{Address, B256, Bloom, Bytes, U256};

/// One entry of an access list (EIP-2930).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessListItem {
    /// Account.
    pub address: Address,
    /// Storage slots of the account.
    pub storage_keys: Vec<B256>,
}

/// A signed authorization tuple (EIP-7702).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorization {
    /// Chain the tuple is valid on; 0 for any.
    pub chain_id: U256,
    /// The code's address.
    pub address: Address,
    /// Nonce of the authority.
    pub nonce: u64,
    /// Signature parity.
    pub y_parity: u8,
    /// Signature r.
    pub r: U256,
    /// Signature s.
    pub s: U256,
}

/// A transaction as `eth_getTransactionByHash` states it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Transaction hash.
    pub hash: B256,
    /// EIP-2718 type; 0 for legacy.
    pub kind: u8,
    /// Sender's nonce.
    pub nonce: u64,
    /// Sender.
    pub from: Address,
    /// Recipient; `None` for a creation.
    pub to: Option<Address>,
    /// Value in wei.
    pub value: U256,
    /// Gas limit.
    pub gas: u64,
    /// `gasPrice` as the node states it: for EIP-1559 types the effective price, in wei.
    pub gas_price: Option<u128>,
    /// `maxFeePerGas`, wei.
    pub max_fee_per_gas: Option<u128>,
    /// `maxPriorityFeePerGas`, wei.
    pub max_priority_fee_per_gas: Option<u128>,
    /// `maxFeePerBlobGas`, wei.
    pub max_fee_per_blob_gas: Option<u128>,
    /// Access list; `None` where the type has none.
    pub access_list: Option<Vec<AccessListItem>>,
    /// Blob versioned hashes; `None` where the type has none.
    pub blob_versioned_hashes: Option<Vec<B256>>,
    /// Authorization list; `None` where the type has none.
    pub authorization_list: Option<Vec<Authorization>>,
    /// Call data or init code.
    pub input: Bytes,
    /// Chain id, where stated.
    pub chain_id: Option<u64>,
    /// Signature `v` as stated (EIP-155 included for legacy); equals the parity for typed transactions.
    pub v: Option<u64>,
    /// Signature r.
    pub r: U256,
    /// Signature s.
    pub s: U256,
    /// `yParity`, where stated.
    pub y_parity: Option<u8>,
    /// Fields that we do not know, as the JSON object the node gave (roll-up deposits).
    pub extra: Option<String>,
}

impl Transaction {
    /// The last of Ethereum's types (EIP-7702).
    pub const LAST_KIND: u8 = 4;

    /// Types of transactions that a bridge or the chain itself makes, signed by nobody: Arbitrum's deposits, contracts' messages,
    /// retryables and blocks' starts, the OP Stack's deposits, Polygon's state sync, zkSync's upgrades of its protocol and priority operations.
    const MADE_KINDS: [u8; 9] = [0x64, 0x66, 0x68, 0x69, 0x6a, 0x7e, 0x7f, 0xfe, 0xff];

    /// Whether a bridge or the chain itself made it, by its type or for it has no gas: its nonce need not be its sender's.
    #[must_use]
    pub fn is_made_by_chain(&self) -> bool {
        Self::is_of_chain(self.kind, self.gas)
    }

    /// The same by its type and gas limit.
    #[must_use]
    pub fn is_of_chain(kind: u8, gas: u64) -> bool {
        gas == 0 || Self::MADE_KINDS.contains(&kind)
    }

    /// Whether its fee is paid in a token, by the fields ([`Self::extra`]) that Ethereum's transactions do not have: Celo's name it
    /// in `feeCurrency`, and the prices they state are in it.
    #[must_use]
    pub fn is_paid_in_token(extra: Option<&str>) -> bool {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Extra {
            fee_currency: Option<serde::de::IgnoredAny>,
        }
        // Most have no such field, and need not be parsed.
        extra
            .filter(|extra| extra.contains("\"feeCurrency\""))
            .and_then(|extra| serde_json::from_str::<Extra>(extra).ok())
            .is_some_and(|extra| extra.fee_currency.is_some())
    }
}

/// The contract that a transaction to `to` made, where it did not fail, of what its receipt names: some nodes name whom a call went to.
#[must_use]
pub fn created_contract(to: Option<Address>, named: Option<Address>) -> Option<Address> {
    named.filter(|named| to != Some(*named))
}

/// Up to four topics of a log, held inline.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Topics {
    len: u8,
    words: [B256; 4],
}

impl Topics {
    /// The topics of `words`; `None` when there are more than four.
    #[must_use]
    pub fn new(words: &[B256]) -> Option<Self> {
        let mut topics = Self::default();
        for &word in words {
            topics.push(word)?;
        }
        Some(topics)
    }

    /// Appends a topic; `None` when there are four already.
    pub fn push(&mut self, word: B256) -> Option<()> {
        *self.words.get_mut(usize::from(self.len))? = word;
        self.len += 1;
        Some(())
    }

    /// Makes it `len` topics and gives those after the first to be written; `None` for more than four. Each stays
    /// what it was until then.
    pub fn rest_of(&mut self, len: usize) -> Option<&mut [B256]> {
        let rest = self.words.get_mut(len.min(1)..len)?;
        self.len = len as u8;
        Some(rest)
    }

    /// Puts the first topic, where there are any.
    pub const fn set_first(&mut self, topic: B256) {
        self.words[0] = topic;
    }

    /// The topics as a slice.
    #[must_use]
    pub fn as_slice(&self) -> &[B256] {
        self.words.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

impl std::ops::Deref for Topics {
    type Target = [B256];

    fn deref(&self) -> &[B256] {
        self.as_slice()
    }
}

impl std::fmt::Debug for Topics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// An event log. Its index in the block is its place among the logs of the receipts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Emitting contract.
    pub address: Address,
    /// Topics.
    pub topics: Topics,
    /// Data.
    pub data: Bytes,
}

/// A transaction receipt (`eth_getBlockReceipts`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Hash of the transaction, as the receipt states it.
    pub transaction_hash: B256,
    /// EIP-2718 type of the transaction.
    pub kind: u8,
    /// `status` (EIP-658), where stated.
    pub status: Option<bool>,
    /// Intermediate state root before Byzantium, where stated.
    pub root: Option<B256>,
    /// Gas used in the block up to and including this transaction.
    pub cumulative_gas_used: u64,
    /// Gas used by this transaction.
    pub gas_used: u64,
    /// Price paid per gas, wei.
    pub effective_gas_price: Option<u128>,
    /// The created contract of a creation, or what the node names ([`created_contract`]).
    pub contract_address: Option<Address>,
    /// Logs in order.
    pub logs: Vec<Log>,
    /// Bloom filter over `logs`, as stated.
    pub logs_bloom: Bloom,
    /// Blob gas used (EIP-4844).
    pub blob_gas_used: Option<u64>,
    /// Price paid per blob gas, wei.
    pub blob_gas_price: Option<u128>,
    /// Fields that we do not know, as the JSON object the node gave (roll-up fees).
    pub extra: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_chain_makes_is_told_by_its_type_or_for_it_has_no_gas() {
        let is_made = |kind| Transaction::is_of_chain(kind, 21_000);
        for kind in [0x64, 0x66, 0x68, 0x69, 0x6a, 0x7e, 0x7f, 0xfe, 0xff] {
            assert!(is_made(kind), "{kind:#x}");
        }
        // Ethereum's, and zkSync's own that accounts sign.
        for kind in [0, 1, 2, 3, 4, 0x71] {
            assert!(!is_made(kind), "{kind:#x}");
        }
        assert!(Transaction::is_of_chain(0, 0));
    }

    #[test]
    fn whom_a_call_went_to_is_not_created() {
        let [a, b] = [1, 2].map(|byte| Some(Address::repeat_byte(byte)));
        assert_eq!(created_contract(None, a), a);
        assert_eq!(created_contract(a, a), None);
        // A contract of the chain itself makes others.
        assert_eq!(created_contract(a, b), b);
        assert_eq!(created_contract(a, None), None);
    }
}
