//! The random contents of one block of a seeded chain.

use super::chain::{BASE_FEE, ChainSpec, Parts, World, envelope};
use alloy_primitives::keccak256;
use fastrand::Rng;
use quarry::model::{
    Address, B256, Bloom, Bytes, Frame, FrameKind, Log, Receipt, Topics, Transaction, TransactionTrace, U256,
    Withdrawal,
};

const ETHER: u64 = 1_000_000_000_000_000_000;

/// Gas of a transaction before its first instruction.
pub const INTRINSIC_GAS: u64 = 21_000;

/// Fills one block.
pub struct BlockBuilder<'a> {
    spec: &'a ChainSpec,
    world: &'a mut World,
    rng: Rng,
    number: u64,
    parts: Parts,
    gas_used: u64,
}

impl<'a> BlockBuilder<'a> {
    /// A builder for block `number` on `world`.
    pub fn new(spec: &'a ChainSpec, fork: u64, number: u64, world: &'a mut World) -> Self {
        let seed = keccak256(format!("block {} {fork} {number}", spec.seed));
        let rng = Rng::with_seed(u64::from_be_bytes(seed[..8].try_into().expect("8 bytes")));
        Self {
            spec,
            world,
            rng,
            number,
            parts: Parts::default(),
            gas_used: 0,
        }
    }

    /// Fills it.
    pub fn build(mut self) -> Parts {
        self.parts.beneficiary = self.spec.account(self.number % 3);
        let count = if self.rng.u8(..8) == 0 {
            0
        } else {
            self.rng.u64(1..=self.spec.transactions_max)
        };
        for _ in 0..count {
            self.transaction();
        }
        for _ in 0..self.rng.u64(..3) {
            let withdrawal = Withdrawal {
                index: self.world.next_withdrawal,
                validator_index: self.rng.u64(..1000),
                address: self.account(),
                amount_gwei: self.rng.u64(1..10_000_000),
            };
            self.world.next_withdrawal += 1;
            let wei = U256::from(withdrawal.amount_gwei) * U256::from(1_000_000_000_u64);
            self.world.give(withdrawal.address, wei);
            self.parts.withdrawals.push(withdrawal);
        }
        self.parts
    }

    fn account(&mut self) -> Address {
        self.spec.account(self.skewed(self.spec.accounts))
    }

    fn contract(&mut self) -> Address {
        self.spec.contract(self.skewed(self.spec.contracts))
    }

    /// A number below `bound`, low ones far more often.
    fn skewed(&mut self, bound: u64) -> u64 {
        let (a, b) = (self.rng.u64(..bound), self.rng.u64(..bound));
        a * b / bound
    }

    fn wei(&mut self) -> U256 {
        U256::from(self.rng.u64(1..ETHER / 1000))
    }

    fn transaction(&mut self) {
        let from = self.account();
        let action = self.rng.u8(..16);
        let value = if action.is_multiple_of(3) {
            self.wei()
        } else {
            U256::ZERO
        };
        let (to, input) = match action {
            0..=3 => (Some(self.account()), Bytes::new()),
            4 => (None, self.bytes(40)),
            _ => (Some(self.contract()), self.bytes(68)),
        };
        let value = if action < 4 { self.wei() } else { value };
        let failed = action == 15;
        let gas_used = INTRINSIC_GAS
            + if action < 4 {
                0
            } else {
                self.rng.u64(10_000..200_000)
            };
        let transaction = self.signed(from, to, value, input, gas_used);
        let price = transaction.gas_price.expect("stated");
        let fee = U256::from(price) * U256::from(gas_used);
        let burnt = U256::from(BASE_FEE) * U256::from(gas_used);
        let beneficiary = self.parts.beneficiary;
        self.world.take(from, fee);
        self.world.give(beneficiary, fee - burnt);

        let created = to.is_none().then(|| from.create(transaction.nonce));
        let mut frames = vec![Frame {
            kind: if to.is_none() {
                FrameKind::Create
            } else {
                FrameKind::Call
            },
            from,
            to: to.or(created),
            value,
            gas: transaction.gas - INTRINSIC_GAS,
            gas_used: gas_used - INTRINSIC_GAS,
            input: transaction.input.clone(),
            ..Frame::default()
        }];
        let mut logs = Vec::new();
        if let Some(created) = created {
            self.world.nonces.insert(created, 1);
            frames[0].output = self.bytes(32);
        }
        if action >= 5 {
            self.nested(&mut frames);
            if !failed {
                logs = self.logs();
            }
        }
        if failed {
            frames[0].error = Some("reverted".to_owned());
            frames[0].output = self.bytes(4);
            for frame in &mut frames {
                frame.reverted = true;
            }
        }
        self.settle(&frames);
        self.receipt(&transaction, !failed, gas_used, created, logs);
        self.parts.transactions.push(transaction);
        self.parts.traces.push(TransactionTrace { frames });
    }

    fn signed(
        &mut self,
        from: Address,
        to: Option<Address>,
        value: U256,
        input: Bytes,
        gas_used: u64,
    ) -> Transaction {
        let nonce = self.world.nonces.entry(from).or_default();
        let kind = if self.rng.bool() { 2 } else { 0 };
        let tip = u128::from(self.rng.u64(1..3_000_000_000));
        let price = u128::from(BASE_FEE) + tip;
        let parity = self.rng.u64(..2);
        let mut transaction = Transaction {
            kind,
            nonce: *nonce,
            from,
            to,
            value,
            gas: gas_used + 50_000,
            gas_price: Some(price),
            max_fee_per_gas: (kind == 2).then_some(price * 2),
            max_priority_fee_per_gas: (kind == 2).then_some(tip),
            access_list: (kind == 2).then(Vec::new),
            input,
            chain_id: Some(self.spec.chain_id),
            v: Some(if kind == 2 {
                parity
            } else {
                self.spec.chain_id * 2 + 35 + parity
            }),
            r: U256::from(self.rng.u128(1..)),
            s: U256::from(self.rng.u128(1..)),
            y_parity: (kind == 2).then(|| u8::from(parity == 1)),
            ..Transaction::default()
        };
        *nonce += 1;
        transaction.hash = *envelope(&transaction).tx_hash();
        transaction
    }

    /// Appends nested frames: calls that pay, delegate and static calls, a creation that ends itself,
    /// and failures of their own.
    fn nested(&mut self, frames: &mut Vec<Frame>) {
        let contract = frames[0].to.expect("a call");
        let mut left = frames[0].value + self.world.balance(contract);
        for place in 0..self.rng.u32(..4) {
            let mut frame = Frame {
                path: vec![place],
                from: contract,
                to: Some(self.contract()),
                gas: self.rng.u64(20_000..40_000),
                gas_used: self.rng.u64(1_000..9_000),
                input: self.bytes(36),
                ..Frame::default()
            };
            match self.rng.u8(..6) {
                0 => frame.kind = FrameKind::DelegateCall,
                1 => {
                    frame.kind = FrameKind::StaticCall;
                    frame.output = self.bytes(32);
                }
                2 => {
                    frame.error = Some("out of gas".to_owned());
                    frame.gas_used = frame.gas;
                    frame.reverted = true;
                }
                3 if !left.is_zero() => {
                    let value = left / U256::from(2);
                    left -= value;
                    self.ephemeral(frames, frame, value);
                    continue;
                }
                _ => {
                    frame.to = Some(self.account());
                    frame.value = left / U256::from(3);
                    frame.input = Bytes::new();
                    left -= frame.value;
                }
            }
            frames.push(frame);
        }
    }

    /// A contract that is created with `value` and ends itself in favour of an account.
    fn ephemeral(&mut self, frames: &mut Vec<Frame>, frame: Frame, value: U256) {
        let salt = B256::from(U256::from(self.rng.u128(..)));
        let address = frame.from.create2(salt, keccak256(&frame.input));
        let mut path = frame.path.clone();
        path.push(0);
        frames.push(Frame {
            kind: FrameKind::Create2,
            to: Some(address),
            value,
            ..frame
        });
        frames.push(Frame {
            kind: FrameKind::SelfDestruct,
            path,
            from: address,
            to: Some(self.account()),
            value,
            ..Frame::default()
        });
    }

    /// Moves what the frames move.
    fn settle(&mut self, frames: &[Frame]) {
        for frame in frames {
            if frame.kind == FrameKind::Create2 && !frame.reverted {
                *self.world.nonces.entry(frame.from).or_default() += 1;
            }
            if !frame.reverted && !frame.value.is_zero() {
                self.world.pay(
                    frame.from,
                    frame.to.expect("a frame that moves has a target"),
                    frame.value,
                );
            }
        }
    }

    fn logs(&mut self) -> Vec<Log> {
        let mut logs = Vec::new();
        for _ in 0..self.rng.u64(..6) {
            let index = self.skewed(self.spec.contracts);
            let emitter = self.spec.contract(index);
            let log = match index % 3 {
                0 => self.fungible(emitter),
                1 => self.collectible(emitter),
                _ => self.other(emitter),
            };
            logs.push(log);
        }
        logs
    }

    fn fungible(&mut self, token: Address) -> Log {
        let (from, to) = (self.account(), self.account());
        let balance = self.world.tokens.get(&(token, from)).copied().unwrap_or_default();
        let (from, amount) = if balance.is_zero() {
            (Address::ZERO, self.wei())
        } else {
            (from, balance / U256::from(2))
        };
        if !from.is_zero() {
            *self.world.tokens.entry((token, from)).or_default() -= amount;
        }
        *self.world.tokens.entry((token, to)).or_default() += amount;
        let data = Bytes::from(amount.to_be_bytes::<32>());
        Log {
            address: token,
            topics: topics(&[transfer(), from.into_word(), to.into_word()]),
            data,
        }
    }

    fn collectible(&mut self, token: Address) -> Log {
        let to = self.account();
        let known = self
            .world
            .owners
            .iter()
            .find(|((of, _), _)| *of == token)
            .map(|(key, owner)| (key.1, *owner));
        let (id, from) = match known {
            Some(known) if self.rng.bool() => known,
            _ => {
                self.world.next_id += 1;
                (U256::from(self.world.next_id), Address::ZERO)
            }
        };
        self.world.owners.insert((token, id), to);
        let words = [transfer(), from.into_word(), to.into_word(), B256::from(id)];
        Log {
            address: token,
            topics: topics(&words),
            data: Bytes::new(),
        }
    }

    fn other(&mut self, address: Address) -> Log {
        let mut words = vec![keccak256(format!("Event{}()", self.skewed(20)))];
        for _ in 0..self.rng.u64(..4) {
            words.push(keccak256(format!("word {}", self.skewed(500))));
        }
        if self.rng.u8(..10) == 0 {
            words.clear();
        }
        let length = self.rng.usize(..100);
        Log {
            address,
            topics: topics(&words),
            data: self.bytes(length),
        }
    }

    fn receipt(
        &mut self,
        transaction: &Transaction,
        status: bool,
        gas_used: u64,
        created: Option<Address>,
        logs: Vec<Log>,
    ) {
        self.gas_used += gas_used;
        let mut logs_bloom = Bloom::ZERO;
        for log in &logs {
            logs_bloom.accrue_raw_log(log.address, &log.topics);
        }
        self.parts.receipts.push(Receipt {
            transaction_hash: transaction.hash,
            kind: transaction.kind,
            status: Some(status),
            cumulative_gas_used: self.gas_used,
            gas_used,
            effective_gas_price: transaction.gas_price,
            contract_address: created,
            logs,
            logs_bloom,
            ..Receipt::default()
        });
    }

    fn bytes(&mut self, length: usize) -> Bytes {
        let mut bytes = vec![0; length];
        self.rng.fill(&mut bytes);
        bytes.into()
    }
}

fn topics(words: &[B256]) -> Topics {
    Topics::new(words).expect("at most four")
}

/// `Transfer(address,address,uint256)`.
pub fn transfer() -> B256 {
    keccak256("Transfer(address,address,uint256)")
}
