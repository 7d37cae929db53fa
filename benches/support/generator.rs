//! A synthetic chain with the skews of measurements.md section 0, made quickly and the same for the same seed.
//!
//! Hashes come from the random stream, roots and blooms are not those of the contents: the chain is for
//! reading without verification. A block links to its parent.

use super::draw::{Random, word};
use super::logs::{Counts, Draft, Logs, Named};
use quarry::model::{
    Address, B256, Block, Bundle, Bytes, Frame, FrameKind, Header, Log, Receipt, Transaction,
    TransactionTrace, U256,
};

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeneratorConfig {
    /// Number of the first block.
    pub(crate) first_block: u64,
    /// How many blocks.
    pub(crate) blocks: u64,
    /// Logs in a block on average; neighbouring blocks have up to half more and half less.
    pub(crate) logs_per_block: u32,
    /// Logs of the medium emitter in the whole chain.
    pub(crate) medium_logs: u64,
    /// Logs of the rare emitter in the whole chain.
    pub(crate) rare_logs: u64,
    /// Share of all logs, in thousandths, of one more emitter.
    pub(crate) share_permille: u64,
    /// Logs that have the named wallet as topic1.
    pub(crate) wallet_logs: u64,
    /// Whether bundles have traces: a top call, in 30 % one nested call with value, and below calls of contracts
    /// one or two frames that move nothing.
    pub(crate) traces: bool,
}

impl Default for GeneratorConfig {
    fn default() -> Self {
        Self {
            first_block: 1,
            blocks: 10_000,
            logs_per_block: 200,
            medium_logs: 20_000,
            rare_logs: 50,
            share_permille: 10,
            wallet_logs: 300,
            traces: false,
        }
    }
}

/// The chain, block after block.
#[derive(Debug)]
pub(crate) struct Generator {
    config: GeneratorConfig,
    random: Random,
    logs: Logs,
    made: u64,
    parent: B256,
}

impl Generator {
    pub(crate) fn new(seed: u64, config: GeneratorConfig) -> Self {
        let total = config.blocks.saturating_mul(u64::from(config.logs_per_block));
        let counts = Counts {
            total,
            // On a chain that is too short for what is asked, at most a tenth each.
            medium: config.medium_logs.min(total / 10),
            rare: config.rare_logs.min(total / 10),
            share_permille: config.share_permille,
            wallet: config.wallet_logs.min(total / 10),
        };
        let logs = Logs::new(seed, counts);
        Self {
            config,
            random: Random::new(seed),
            logs,
            made: 0,
            parent: word(seed, 6, 0),
        }
    }

    /// The addresses, wallets and topics that query benches ask for.
    pub(crate) const fn named(&self) -> &Named {
        self.logs.named()
    }

    /// The block with the number; blocks are made in order, so it must be the next one.
    pub(crate) fn bundle(&mut self, number: u64) -> Bundle {
        assert_eq!(
            number,
            self.config.first_block + self.made,
            "blocks are made in order"
        );
        self.next().expect("a block of the chain")
    }

    /// How many logs the next block has: pairs of blocks have twice the average.
    fn log_count(&self) -> usize {
        let average = u64::from(self.config.logs_per_block);
        let spread = word(average, 7, self.made / 2)[0] as u64 * average / 512;
        let last_alone = self.made + 1 == self.config.blocks && self.made.is_multiple_of(2);
        let count = match (last_alone, self.made.is_multiple_of(2)) {
            (true, _) => average,
            (false, true) => average + spread,
            (false, false) => average - spread,
        };
        count as usize
    }

    fn make(&mut self) -> Bundle {
        let number = self.config.first_block + self.made;
        let log_count = self.log_count();
        // 0.84 transactions a log, about 40 % of them without one.
        let transactions = (log_count * 84).div_ceil(100).max(1);
        let with_logs = (transactions * 6).div_ceil(10);
        let mut logs_of = vec![0_u32; transactions];
        for log in 0..log_count {
            let place = if log < with_logs {
                log
            } else {
                self.random.below(with_logs as u64) as usize
            };
            // The transactions with logs lie evenly among the others.
            logs_of[place * transactions / with_logs] += 1;
        }
        let drafts: Vec<Draft> = (0..log_count).map(|_| self.logs.next(&mut self.random)).collect();
        let data = self.data(&drafts);

        let mut bundle = Bundle {
            block: Block {
                hash: self.random.word(),
                header: self.header(number),
                size: Some(1_000 + 300 * transactions as u64),
                transactions: Vec::with_capacity(transactions),
                ..Block::default()
            },
            receipts: Vec::with_capacity(transactions),
            traces: self.config.traces.then(|| Vec::with_capacity(transactions)),
            openings: None,
        };
        let (mut rest, mut offset) = (drafts.as_slice(), 0);
        for count in logs_of {
            let (of_this, others) = rest.split_at(count as usize);
            rest = others;
            let to = of_this
                .first()
                .map_or_else(|| self.logs.wallet(&mut self.random), |log| log.address);
            let transaction = self.transaction(to, !of_this.is_empty());
            let logs = of_this
                .iter()
                .map(|draft| log(draft, &data, &mut offset))
                .collect();
            let used = transaction.gas - transaction.gas / 4;
            bundle.block.header.gas_used += used;
            bundle.receipts.push(Receipt {
                transaction_hash: transaction.hash,
                kind: transaction.kind,
                // A failed transaction has no logs.
                status: Some(!of_this.is_empty() || !self.random.permille(50)),
                cumulative_gas_used: bundle.block.header.gas_used,
                gas_used: used,
                effective_gas_price: transaction.gas_price,
                logs,
                ..Receipt::default()
            });
            if let Some(traces) = &mut bundle.traces {
                traces.push(self.trace(&transaction, used));
            }
            bundle.block.transactions.push(transaction);
        }
        self.parent = bundle.block.hash;
        self.made += 1;
        bundle
    }

    /// The data of all logs of a block in one buffer: words that are mostly zeros, as amounts are.
    fn data(&mut self, drafts: &[Draft]) -> Bytes {
        let mut data = vec![0; drafts.iter().map(|draft| draft.data_len).sum()];
        for word in data.chunks_exact_mut(32) {
            let number = self.random.next();
            word[24..].copy_from_slice(&(number >> (number % 40)).to_be_bytes());
        }
        data.into()
    }

    fn header(&mut self, number: u64) -> Header {
        Header {
            parent_hash: self.parent,
            ommers_hash: B256::repeat_byte(0x1d),
            beneficiary: self.logs.wallet(&mut self.random),
            state_root: self.random.word(),
            transactions_root: self.random.word(),
            receipts_root: self.random.word(),
            number,
            gas_limit: 60_000_000,
            timestamp: 1_600_000_000 + 12 * number,
            base_fee_per_gas: Some(10_000_000_000 + self.random.below(5_000_000_000)),
            ..Header::default()
        }
    }

    fn transaction(&mut self, to: Address, is_call: bool) -> Transaction {
        let random = &mut self.random;
        let kind = if random.permille(700) { 2 } else { 0 };
        let price = 15_000_000_000 + u128::from(random.below(5_000_000_000));
        let dynamic = (kind == 2).then_some(());
        let mut input = Vec::new();
        if is_call {
            input.resize(68, 0);
            input[..4].copy_from_slice(&(random.below(2_000) as u32 | 0xa000_0000).to_be_bytes());
            input[60..].copy_from_slice(&random.next().to_be_bytes());
        }
        let value = if is_call && random.permille(800) {
            0
        } else {
            random.below(10_000_000_000_000_000_000)
        };
        Transaction {
            hash: random.word(),
            kind,
            nonce: random.below(1_000),
            to: Some(to),
            value: U256::from(value),
            gas: 21_000 + random.below(200_000),
            gas_price: Some(price),
            max_fee_per_gas: dynamic.map(|()| price + 1_000_000_000),
            max_priority_fee_per_gas: dynamic.map(|()| 1_000_000_000),
            access_list: dynamic.map(|()| Vec::new()),
            input: input.into(),
            chain_id: Some(1),
            v: Some(if kind == 2 { 0 } else { 37 }),
            r: U256::from_be_bytes(random.word().0),
            s: U256::from_be_bytes(random.word().0),
            y_parity: dynamic.map(|()| 0),
            from: self.logs.wallet(&mut self.random),
            ..Transaction::default()
        }
    }

    fn trace(&mut self, transaction: &Transaction, used: u64) -> TransactionTrace {
        let top = Frame {
            from: transaction.from,
            to: transaction.to,
            value: transaction.value,
            gas: transaction.gas,
            gas_used: used,
            input: transaction.input.clone(),
            ..Frame::default()
        };
        let mut frames = vec![top];
        if self.random.permille(300) {
            frames.push(Frame {
                kind: FrameKind::Call,
                path: vec![0],
                from: transaction.to.unwrap_or_default(),
                to: Some(self.logs.wallet(&mut self.random)),
                value: U256::from(1 + self.random.below(1_000_000_000_000_000_000)),
                gas: 2_300,
                ..Frame::default()
            });
        }
        if !transaction.input.is_empty() {
            let first = frames.len() as u32 - 1;
            for (step, kind) in [FrameKind::StaticCall, FrameKind::DelegateCall]
                .into_iter()
                .enumerate()
            {
                if kind == FrameKind::StaticCall || self.random.permille(500) {
                    frames.push(Frame {
                        kind,
                        path: vec![first + step as u32],
                        from: transaction.to.unwrap_or_default(),
                        to: Some(self.logs.named().share),
                        gas: 50_000,
                        gas_used: 2_600,
                        input: transaction.input.clone(),
                        output: Bytes::from_static(&[7; 32]),
                        ..Frame::default()
                    });
                }
            }
        }
        TransactionTrace { frames }
    }
}

impl Iterator for Generator {
    type Item = Bundle;

    fn next(&mut self) -> Option<Bundle> {
        (self.made < self.config.blocks).then(|| self.make())
    }
}

/// The log of a draft, whose data starts at `offset`.
fn log(draft: &Draft, data: &Bytes, offset: &mut usize) -> Log {
    let end = *offset + draft.data_len;
    let data = if draft.data_len == 0 {
        Bytes::new()
    } else {
        data.slice(*offset..end)
    };
    *offset = end;
    Log {
        address: draft.address,
        topics: draft.topics,
        data,
    }
}
