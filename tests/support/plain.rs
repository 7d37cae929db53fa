//! A seeded chain of plain values for tests of the store and of queries: no roots, no valid hashes, but
//! few addresses and topics, so that lists overlap and expressions hit.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use quarry::model::{
    Address, B256, Block, Bundle, Bytes, Frame, FrameKind, Header, Log, Receipt, Topics, Transaction,
    TransactionTrace, U256, Withdrawal,
};
use quarry::sync::derive::native::NativeRules;

/// A small deterministic generator (SplitMix64).
#[derive(Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Skewed: small numbers are much more frequent.
    pub fn skewed(&mut self, bound: u64) -> u64 {
        let a = self.below(bound) + 1;
        self.below(a)
    }

    pub fn hash(&mut self) -> B256 {
        let mut bytes = [0u8; 32];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_be_bytes());
        }
        B256::from(bytes)
    }
}

pub fn account(n: u64) -> Address {
    let mut bytes = [0xaa; 20];
    bytes[12..].copy_from_slice(&n.to_be_bytes());
    Address::from(bytes)
}

/// Topics are shared between positions.
pub fn topic(n: u64) -> B256 {
    if n.is_multiple_of(2) {
        B256::left_padding_from(account(n).as_slice())
    } else {
        B256::repeat_byte(n as u8)
    }
}

pub struct ChainConfig {
    pub logs_per_block: u64,
    pub emitters: u64,
    pub topics: u64,
    pub traces: bool,
}

impl Default for ChainConfig {
    fn default() -> Self {
        Self {
            logs_per_block: 20,
            emitters: 12,
            topics: 10,
            traces: true,
        }
    }
}

/// One block on top of `parent`; `fork` tells branches apart.
pub fn block(seed: u64, number: u64, parent: B256, fork: u64, config: &ChainConfig) -> Bundle {
    let mut rng =
        Rng(seed ^ number.wrapping_mul(0x1234_5678_9abc_def1) ^ fork.wrapping_mul(0xdead_beef_cafe));
    let hash = rng.hash();
    let transactions = if number == 0 { 0 } else { rng.below(6) };
    let mut bundle = Bundle {
        block: Block {
            hash,
            header: Header {
                parent_hash: parent,
                number,
                // Some blocks share a time; some days have one or none.
                timestamp: 1_000_000 + number / 3 * 36 + number / 7 * 30_000 + number / 21 * 200_000,
                beneficiary: account(rng.below(3)),
                gas_limit: 30_000_000,
                gas_used: 21_000 * transactions,
                base_fee_per_gas: (number > 5).then_some(7),
                difficulty: U256::from(rng.below(1000)),
                extra_data: Bytes::from_static(b"test"),
                ..Header::default()
            },
            size: Some(1000 + number),
            withdrawals: (number % 2 == 1).then(|| {
                vec![Withdrawal {
                    index: number,
                    validator_index: 1,
                    address: account(5),
                    amount_gwei: 17,
                }]
            }),
            ..Block::default()
        },
        receipts: Vec::new(),
        traces: None,
        openings: None,
    };
    let mut traces = Vec::new();
    let mut logs_left = if transactions == 0 {
        0
    } else {
        rng.below(2 * config.logs_per_block)
    };
    for index in 0..transactions {
        let (from, to) = (account(rng.below(8)), account(rng.below(8)));
        let creates = rng.below(7) == 0;
        let transaction = Transaction {
            hash: rng.hash(),
            kind: (rng.below(3)) as u8,
            nonce: number * 10 + index,
            from,
            to: (!creates).then_some(to),
            value: U256::from(rng.next()),
            gas: 100_000,
            gas_price: Some(10),
            input: Bytes::from(vec![7u8; rng.below(80) as usize]),
            v: Some(27),
            r: U256::from_be_bytes(rng.hash().0),
            s: U256::from(3),
            ..Transaction::default()
        };
        let logs_here = if index + 1 == transactions {
            logs_left
        } else {
            rng.below(logs_left + 1)
        };
        logs_left -= logs_here;
        let logs = (0..logs_here)
            .map(|_| {
                let topics: Vec<B256> = (0..rng.below(5))
                    .map(|_| topic(rng.skewed(config.topics)))
                    .collect();
                let len = [0, 32, 64, 33, 5, 320][rng.below(6) as usize];
                Log {
                    address: account(100 + rng.skewed(config.emitters)),
                    topics: Topics::new(&topics).unwrap(),
                    data: (0..len)
                        .map(|i| if i % 32 > 24 { rng.next() as u8 } else { 0 })
                        .collect::<Vec<_>>()
                        .into(),
                }
            })
            .collect();
        bundle.receipts.push(Receipt {
            transaction_hash: transaction.hash,
            kind: transaction.kind,
            status: Some(rng.below(5) > 0),
            cumulative_gas_used: 21_000 * (index + 1),
            gas_used: 21_000,
            effective_gas_price: Some(10),
            contract_address: creates.then(|| account(1000 + number)),
            logs,
            ..Receipt::default()
        });
        let mut frames = vec![Frame {
            from,
            to: Some(to),
            gas: 50_000,
            gas_used: 100,
            ..Frame::default()
        }];
        for child in 0..rng.below(3) as u32 {
            frames.push(Frame {
                kind: FrameKind::ALL[rng.below(7) as usize],
                path: vec![child],
                from: to,
                to: Some(account(rng.below(8))),
                value: U256::from(rng.below(2)),
                ..Frame::default()
            });
        }
        traces.push(TransactionTrace { frames });
        bundle.block.transactions.push(transaction);
    }
    bundle.traces = config.traces.then_some(traces);
    bundle
}

/// What accounts hold in block 0: enough for all that the chain does.
pub fn native_rules() -> NativeRules {
    let rich = U256::from(10).pow(U256::from(24));
    NativeRules {
        allocation: Some((0..8).map(|number| (account(number), rich)).collect()),
        ..NativeRules::default()
    }
}

/// Blocks `0..len` of the chain with a seed.
pub fn chain(seed: u64, len: u64, config: &ChainConfig) -> Vec<Bundle> {
    let mut bundles: Vec<Bundle> = Vec::new();
    extend(&mut bundles, seed, len, 0, config);
    bundles
}

/// Appends blocks of a branch up to `len`.
pub fn extend(bundles: &mut Vec<Bundle>, seed: u64, len: u64, fork: u64, config: &ChainConfig) {
    for number in bundles.len() as u64..len {
        let parent = bundles.last().map_or(B256::ZERO, |bundle| bundle.block.hash);
        bundles.push(block(seed, number, parent, fork, config));
    }
}
