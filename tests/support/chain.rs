//! A seeded chain of valid blocks: hashes, roots and blooms as Ethereum computes them.
//!
//! Signatures are made up, everything else adds up: nonces, native balances (fees, internal value,
//! withdrawals; no block reward), balances of ERC-20 tokens and owners of ERC-721 ids. The same seed and
//! the same calls give the same chain.

use super::build::BlockBuilder;
use alloy_consensus::proofs::{
    calculate_receipt_root, calculate_transaction_root, calculate_withdrawals_root,
};
use alloy_consensus::{
    EMPTY_OMMER_ROOT_HASH, Eip658Value, ReceiptEnvelope, ReceiptWithBloom, SignableTransaction, TxEip1559,
    TxEnvelope, TxLegacy,
};
use alloy_primitives::{Signature, TxKind, keccak256};
use quarry::model::{
    Address, B256, Block, Bloom, Bundle, Bytes, Header, Log, Receipt, Transaction, U256, Withdrawal,
};
use std::collections::BTreeMap;

/// What a chain is like.
#[derive(Clone, Debug)]
pub struct ChainSpec {
    /// The seed of everything random.
    pub seed: u64,
    /// Chain id.
    pub chain_id: u64,
    /// Most transactions in a block; some blocks are empty.
    pub transactions_max: u64,
    /// Time between blocks; a large one lets a short chain span many days.
    pub block_seconds: u64,
    /// Time of block 0.
    pub genesis_time: u64,
    /// Externally owned accounts, each with a large balance in block 0.
    pub accounts: u64,
    /// Contracts that exist from block 0 on: a third ERC-20 tokens, a third ERC-721 tokens.
    pub contracts: u64,
}

impl ChainSpec {
    /// A small busy chain.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            chain_id: 1337,
            transactions_max: 8,
            // A day has a few blocks.
            block_seconds: 7_001,
            genesis_time: 1_700_000_000,
            accounts: 24,
            contracts: 12,
        }
    }

    /// The address of account `index`.
    pub fn account(&self, index: u64) -> Address {
        Address::from_word(keccak256(format!("account {} {index}", self.seed)))
    }

    /// The address of contract `index`.
    pub fn contract(&self, index: u64) -> Address {
        Address::from_word(keccak256(format!("contract {} {index}", self.seed)))
    }
}

/// All that a node would know after a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Native balances.
    pub balances: BTreeMap<Address, U256>,
    /// Nonces of senders and contracts.
    pub nonces: BTreeMap<Address, u64>,
    /// ERC-20: (token, holder) to balance.
    pub tokens: BTreeMap<(Address, Address), U256>,
    /// ERC-721: (token, id) to owner.
    pub owners: BTreeMap<(Address, U256), Address>,
    /// Next ERC-721 id.
    pub next_id: u64,
    /// Next withdrawal index.
    pub next_withdrawal: u64,
}

impl World {
    /// Moves `value` from `from` to `to`.
    #[track_caller]
    pub fn pay(&mut self, from: Address, to: Address, value: U256) {
        self.take(from, value);
        self.give(to, value);
    }

    /// Takes `value` away.
    #[track_caller]
    pub fn take(&mut self, from: Address, value: U256) {
        let balance = self.balances.entry(from).or_default();
        *balance = balance
            .checked_sub(value)
            .expect("the chain builder never overdraws");
    }

    /// Gives `value`.
    pub fn give(&mut self, to: Address, value: U256) {
        *self.balances.entry(to).or_default() += value;
    }

    /// The balance of `address`.
    pub fn balance(&self, address: Address) -> U256 {
        self.balances.get(&address).copied().unwrap_or_default()
    }
}

/// A chain and the world after each of its blocks.
#[derive(Clone, Debug)]
pub struct Chain {
    /// What it is like.
    pub spec: ChainSpec,
    bundles: Vec<Bundle>,
    worlds: Vec<World>,
    /// Raised by each reorganisation, so that the new blocks differ from the old.
    fork: u64,
}

/// A chain of `count` blocks that shares none with those of other seeds.
pub fn another(seed: u64, chain_id: Option<u64>, count: u64) -> Chain {
    let mut spec = ChainSpec::new(seed);
    spec.chain_id = chain_id.unwrap_or(spec.chain_id);
    let mut chain = Chain::new(spec);
    chain.mine(count);
    chain
}

impl Chain {
    /// A chain of block 0 only.
    pub fn new(spec: ChainSpec) -> Self {
        let mut world = World::default();
        for index in 0..spec.accounts {
            world.give(spec.account(index), U256::from(10).pow(U256::from(24)));
        }
        for index in 0..spec.contracts {
            world.nonces.insert(spec.contract(index), 1);
        }
        let mut chain = Self {
            spec,
            bundles: Vec::new(),
            worlds: Vec::new(),
            fork: 0,
        };
        let genesis = chain.seal(B256::ZERO, 0, Parts::default());
        chain.bundles.push(genesis);
        chain.worlds.push(world);
        chain
    }

    /// The blocks, by number.
    pub fn bundles(&self) -> &[Bundle] {
        &self.bundles
    }

    /// The number of the newest block.
    pub fn head(&self) -> u64 {
        self.bundles.len() as u64 - 1
    }

    /// Block `number`.
    pub fn bundle(&self, number: u64) -> Option<&Bundle> {
        self.bundles.get(usize::try_from(number).ok()?)
    }

    /// The world after block `number`.
    pub fn world(&self, number: u64) -> Option<&World> {
        self.worlds.get(usize::try_from(number).ok()?)
    }

    /// Appends `count` blocks.
    pub fn mine(&mut self, count: u64) {
        for _ in 0..count {
            let number = self.bundles.len() as u64;
            let parent = self.bundles.last().expect("block 0 is always there").block.hash;
            let mut world = self.worlds.last().expect("block 0 is always there").clone();
            let parts = BlockBuilder::new(&self.spec, self.fork, number, &mut world).build();
            let bundle = self.seal(parent, number, parts);
            self.bundles.push(bundle);
            self.worlds.push(world);
        }
    }

    /// Replaces the newest `depth` blocks by `count` others.
    pub fn reorg(&mut self, depth: u64, count: u64) {
        let keep = self
            .bundles
            .len()
            .saturating_sub(usize::try_from(depth).expect("a depth"))
            .max(1);
        self.bundles.truncate(keep);
        self.worlds.truncate(keep);
        self.fork += 1;
        self.mine(count);
    }

    fn seal(&self, parent_hash: B256, number: u64, parts: Parts) -> Bundle {
        let Parts {
            transactions,
            receipts,
            withdrawals,
            traces,
            beneficiary,
        } = parts;
        let envelopes: Vec<TxEnvelope> = transactions.iter().map(envelope).collect();
        let receipt_envelopes: Vec<_> = receipts.iter().map(receipt_envelope).collect();
        let alloy_withdrawals: Vec<_> = withdrawals.iter().map(alloy_withdrawal).collect();
        let logs_bloom = receipts
            .iter()
            .fold(Bloom::ZERO, |bloom, receipt| bloom | receipt.logs_bloom);
        let header = Header {
            parent_hash,
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            beneficiary,
            state_root: keccak256(format!("state {} {} {number}", self.spec.seed, self.fork)),
            transactions_root: calculate_transaction_root(&envelopes),
            receipts_root: calculate_receipt_root(&receipt_envelopes),
            logs_bloom,
            number,
            gas_limit: 30_000_000,
            gas_used: receipts.last().map_or(0, |receipt| receipt.cumulative_gas_used),
            timestamp: self.spec.genesis_time + number * self.spec.block_seconds,
            extra_data: Bytes::from(format!("seed {}", self.spec.seed).into_bytes()),
            base_fee_per_gas: Some(BASE_FEE),
            withdrawals_root: Some(calculate_withdrawals_root(&alloy_withdrawals)),
            ..Header::default()
        };
        let sealed = alloy_header(&header);
        let whole = alloy_consensus::Block {
            header: sealed.clone(),
            body: alloy_consensus::BlockBody {
                transactions: envelopes,
                ommers: Vec::<alloy_consensus::Header>::new(),
                withdrawals: Some(alloy_withdrawals.into()),
            },
        };
        let block = Block {
            hash: sealed.hash_slow(),
            header,
            size: Some(alloy_rlp::Encodable::length(&whole) as u64),
            total_difficulty: None,
            transactions,
            withdrawals: Some(withdrawals),
            ..Block::default()
        };
        Bundle {
            block,
            receipts,
            traces: Some(traces),
            openings: None,
        }
    }
}

/// Base fee of every block, in wei.
pub const BASE_FEE: u64 = 7_000_000_000;

/// What a block is made of.
#[derive(Debug, Default)]
pub struct Parts {
    /// Transactions.
    pub transactions: Vec<Transaction>,
    /// Receipts.
    pub receipts: Vec<Receipt>,
    /// Withdrawals.
    pub withdrawals: Vec<Withdrawal>,
    /// Traces.
    pub traces: Vec<quarry::model::TransactionTrace>,
    /// Fee recipient.
    pub beneficiary: Address,
}

/// The header as alloy has it.
pub fn alloy_header(header: &Header) -> alloy_consensus::Header {
    alloy_consensus::Header {
        parent_hash: header.parent_hash,
        ommers_hash: header.ommers_hash,
        beneficiary: header.beneficiary,
        state_root: header.state_root,
        transactions_root: header.transactions_root,
        receipts_root: header.receipts_root,
        logs_bloom: header.logs_bloom,
        difficulty: header.difficulty,
        number: header.number,
        gas_limit: header.gas_limit,
        gas_used: header.gas_used,
        timestamp: header.timestamp,
        extra_data: header.extra_data.clone(),
        mix_hash: header.mix_hash,
        nonce: header.nonce,
        base_fee_per_gas: header.base_fee_per_gas,
        withdrawals_root: header.withdrawals_root,
        blob_gas_used: header.blob_gas_used,
        excess_blob_gas: header.excess_blob_gas,
        parent_beacon_block_root: header.parent_beacon_block_root,
        requests_hash: header.requests_hash,
        ..alloy_consensus::Header::default()
    }
}

/// A transaction as alloy has it; only legacy and EIP-1559 ones are made here.
pub fn envelope(transaction: &Transaction) -> TxEnvelope {
    let to = transaction.to.map_or(TxKind::Create, TxKind::Call);
    let v = transaction.v.expect("made with a signature");
    if transaction.kind == 0 {
        let chain_id = transaction.chain_id.expect("made with a chain id");
        let signature = Signature::new(transaction.r, transaction.s, v - 35 - 2 * chain_id == 1);
        return TxLegacy {
            chain_id: Some(chain_id),
            nonce: transaction.nonce,
            gas_price: transaction.gas_price.expect("made with a price"),
            gas_limit: transaction.gas,
            to,
            value: transaction.value,
            input: transaction.input.clone(),
        }
        .into_signed(signature)
        .into();
    }
    TxEip1559 {
        chain_id: transaction.chain_id.expect("made with a chain id"),
        nonce: transaction.nonce,
        gas_limit: transaction.gas,
        max_fee_per_gas: transaction.max_fee_per_gas.expect("made with a fee"),
        max_priority_fee_per_gas: transaction.max_priority_fee_per_gas.expect("made with a tip"),
        to,
        value: transaction.value,
        access_list: Default::default(),
        input: transaction.input.clone(),
    }
    .into_signed(Signature::new(transaction.r, transaction.s, v == 1))
    .into()
}

/// A receipt as alloy has it, in the envelope of its type; legacy and EIP-1559 ones only.
pub fn receipt_envelope(receipt: &Receipt) -> ReceiptEnvelope {
    let inner = ReceiptWithBloom {
        receipt: alloy_consensus::Receipt {
            status: Eip658Value::Eip658(receipt.status == Some(true)),
            cumulative_gas_used: receipt.cumulative_gas_used,
            logs: receipt.logs.iter().map(alloy_log).collect(),
        },
        logs_bloom: receipt.logs_bloom,
    };
    if receipt.kind == 0 {
        ReceiptEnvelope::Legacy(inner)
    } else {
        ReceiptEnvelope::Eip1559(inner)
    }
}

fn alloy_log(log: &Log) -> alloy_primitives::Log {
    alloy_primitives::Log::new_unchecked(log.address, log.topics.to_vec(), log.data.clone())
}

fn alloy_withdrawal(withdrawal: &Withdrawal) -> alloy_eips::eip4895::Withdrawal {
    alloy_eips::eip4895::Withdrawal {
        index: withdrawal.index,
        validator_index: withdrawal.validator_index,
        address: withdrawal.address,
        amount: withdrawal.amount_gwei,
    }
}
