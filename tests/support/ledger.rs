//! Small blocks made by hand, for the ledger of native balances: every amount in them can be followed on paper.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::sync::Arc;

use quarry::model::{
    Address, B256, Block, Bundle, Frame, FrameKind, Header, Receipt, Transaction, TransactionTrace, U256,
    Withdrawal,
};
use quarry::sync::derive::NonceRules;
use quarry::sync::derive::native::NativeRules;

/// Account `number`.
pub fn who(number: u64) -> Address {
    Address::from_word(B256::from(U256::from(0xa000 + number)))
}

/// Who seals.
pub fn sealer() -> Address {
    who(99)
}

/// Rules of a chain that starts with these balances.
pub fn rules(allocation: &[(Address, u64)]) -> NonceRules {
    let held = allocation
        .iter()
        .map(|&(account, wei)| (account, U256::from(wei)));
    NonceRules {
        chain_id: 7,
        from_genesis: true,
        native: NativeRules {
            allocation: Some(held.collect::<Arc<[_]>>()),
            ..NativeRules::default()
        },
        ..NonceRules::default()
    }
}

/// A transaction with its receipt and frames.
#[derive(Clone, Debug)]
pub struct Deed {
    pub transaction: Transaction,
    pub receipt: Receipt,
    pub frames: Vec<Frame>,
}

/// A successful call with a value; it uses 10 gas at 10 wei.
pub fn call(from: Address, to: Address, value: u64) -> Deed {
    let value = U256::from(value);
    Deed {
        transaction: Transaction {
            from,
            to: Some(to),
            value,
            gas: 50,
            gas_price: Some(10),
            ..Transaction::default()
        },
        receipt: Receipt {
            status: Some(true),
            gas_used: 10,
            effective_gas_price: Some(10),
            ..Receipt::default()
        },
        frames: vec![frame(FrameKind::Call, &[], from, to, value)],
    }
}

fn frame(kind: FrameKind, path: &[u32], from: Address, to: Address, value: U256) -> Frame {
    Frame {
        kind,
        path: path.to_vec(),
        from,
        to: Some(to),
        value,
        ..Frame::default()
    }
}

impl Deed {
    /// Adds a nested frame.
    pub fn with(mut self, kind: FrameKind, path: &[u32], from: Address, to: Address, value: u64) -> Self {
        self.frames.push(frame(kind, path, from, to, U256::from(value)));
        self
    }

    /// Lets the frame at `path` and all below it fail.
    pub fn failing(mut self, path: &[u32]) -> Self {
        for frame in self
            .frames
            .iter_mut()
            .filter(|frame| frame.path.starts_with(path))
        {
            frame.reverted = true;
            if frame.path == path {
                frame.error = Some("reverted".to_owned());
            }
        }
        if path.is_empty() {
            self.receipt.status = Some(false);
        }
        self
    }
}

/// A chain in the making.
#[derive(Clone, Debug, Default)]
pub struct Blocks(pub Vec<Bundle>);

impl Blocks {
    /// Block 0.
    pub fn new() -> Self {
        let mut blocks = Self::default();
        blocks.push(Vec::new());
        blocks
    }

    /// The next block with these transactions; gives it to be changed.
    pub fn push(&mut self, deeds: Vec<Deed>) -> &mut Bundle {
        let number = self.0.len() as u64;
        let parent_hash = self.0.last().map_or(B256::ZERO, |bundle| bundle.block.hash);
        let mut bundle = Bundle {
            block: Block {
                hash: B256::from(U256::from(0xb10c_0000 + number)),
                header: Header {
                    parent_hash,
                    number,
                    beneficiary: sealer(),
                    timestamp: 1_700_000_000 + number * 3600,
                    ..Header::default()
                },
                ..Block::default()
            },
            traces: Some(Vec::new()),
            ..Bundle::default()
        };
        for (index, mut deed) in deeds.into_iter().enumerate() {
            let id = (number << 16) + index as u64;
            deed.transaction.hash = B256::from(U256::from(0x7c00_0000_0000_u64 + id));
            deed.transaction.nonce = id;
            bundle.block.header.gas_used += deed.receipt.gas_used;
            deed.receipt.cumulative_gas_used = bundle.block.header.gas_used;
            deed.receipt.transaction_hash = deed.transaction.hash;
            deed.receipt.kind = deed.transaction.kind;
            bundle.block.transactions.push(deed.transaction);
            bundle.receipts.push(deed.receipt);
            let trace = TransactionTrace { frames: deed.frames };
            bundle.traces.as_mut().unwrap().push(trace);
        }
        self.0.push(bundle);
        self.0.last_mut().unwrap()
    }
}

/// A withdrawal of so many Gwei.
pub fn withdrawal(address: Address, amount_gwei: u64) -> Withdrawal {
    Withdrawal {
        address,
        amount_gwei,
        ..Withdrawal::default()
    }
}
