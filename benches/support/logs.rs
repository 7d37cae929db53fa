//! One log of the synthetic chain, and the planted ones that query benches look for.

use super::draw::{Random, Zipf, address};
use super::emitters::{CommonSignatures, Contract, Emitters};
use quarry::model::{Address, B256, Topics};

/// How many wallets there are.
pub(crate) const WALLETS: u32 = 2_000_000;

/// A log whose data still lies in the block's shared buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    pub(crate) address: Address,
    pub(crate) topics: Topics,
    /// Bytes of data.
    pub(crate) data_len: usize,
}

/// The addresses, wallets and topics that query benches ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    /// The emitter of most logs (13 %), an ERC-20 token.
    pub(crate) hot: Address,
    /// A token with `medium_logs` logs spread evenly over the chain.
    pub(crate) medium: Address,
    /// A token with `rare_logs` logs.
    pub(crate) rare: Address,
    /// A token with a share of `share_permille` of all logs.
    pub(crate) share: Address,
    /// The wallet of most transfers (12 % of draws), as a topic.
    pub(crate) hot_wallet: B256,
    /// A wallet that is topic1 of `wallet_logs` logs, and nowhere else.
    pub(crate) wallet: B256,
    /// A wallet that in Transfer logs of `hot` is topic1 301 times and topic2 391 times, and nowhere else.
    pub(crate) hot_token_wallet: B256,
    /// The common signatures.
    pub(crate) signatures: CommonSignatures,
}

/// What a planted log shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plant {
    Medium,
    Rare,
    Share,
    Wallet,
    HotTokenTopic1,
    HotTokenTopic2,
}

/// Logs at even distances: the next one is due at `next`, the one after it `step` later (both in 1/2^32 logs).
#[derive(Clone, Copy, Debug)]
struct Schedule {
    plant: Plant,
    next: u128,
    step: u128,
    left: u64,
}

impl Schedule {
    fn new(plant: Plant, count: u64, total: u64) -> Self {
        let step = (u128::from(total) << 32) / u128::from(count.max(1));
        Self {
            plant,
            next: step / 2,
            step,
            left: count.min(total),
        }
    }

    fn take(&mut self, ordinal: u64) -> bool {
        let due = self.left > 0 && self.next >> 32 <= u128::from(ordinal);
        if due {
            self.next += self.step;
            self.left -= 1;
        }
        due
    }
}

/// How many logs are planted, of how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) total: u64,
    pub(crate) medium: u64,
    pub(crate) rare: u64,
    pub(crate) share_permille: u64,
    pub(crate) wallet: u64,
}

/// Draws logs one after the other.
#[derive(Debug)]
pub(crate) struct Logs {
    seed: u64,
    emitters: Emitters,
    wallets: Zipf,
    schedules: [Schedule; 6],
    named: Named,
    ordinal: u64,
    /// A pair emits its Swap right after its Sync.
    swap_due: Option<Address>,
}

impl Logs {
    pub(crate) fn new(seed: u64, counts: Counts) -> Self {
        let emitters = Emitters::new(seed);
        let total = counts.total;
        let share = u64::try_from(u128::from(total) * u128::from(counts.share_permille) / 1_000);
        let schedules = [
            Schedule::new(Plant::Rare, counts.rare, total),
            Schedule::new(Plant::Wallet, counts.wallet, total),
            Schedule::new(Plant::HotTokenTopic1, 301, total),
            Schedule::new(Plant::HotTokenTopic2, 391, total),
            Schedule::new(Plant::Medium, counts.medium, total),
            Schedule::new(Plant::Share, share.unwrap_or(u64::MAX), total),
        ];
        let named = Named {
            hot: emitters.get(0).0,
            medium: address(seed, 3, 0),
            rare: address(seed, 3, 1),
            share: address(seed, 3, 2),
            hot_wallet: address(seed, 4, 0).into_word(),
            wallet: address(seed, 5, 0).into_word(),
            hot_token_wallet: address(seed, 5, 1).into_word(),
            signatures: CommonSignatures::new(),
        };
        let wallets = Zipf::new(WALLETS, 1.1);
        Self {
            seed,
            emitters,
            wallets,
            schedules,
            named,
            ordinal: 0,
            swap_due: None,
        }
    }

    pub(crate) const fn named(&self) -> &Named {
        &self.named
    }

    /// The address of a random wallet.
    pub(crate) fn wallet(&self, random: &mut Random) -> Address {
        address(self.seed, 4, u64::from(self.wallets.draw(random)))
    }

    fn holder(&self, random: &mut Random) -> B256 {
        self.wallet(random).into_word()
    }

    /// The next log of the chain.
    pub(crate) fn next(&mut self, random: &mut Random) -> Draft {
        let ordinal = self.ordinal;
        self.ordinal += 1;
        if let Some(due) = self
            .schedules
            .iter_mut()
            .find_map(|one| one.take(ordinal).then_some(one.plant))
        {
            return self.planted(due, random);
        }
        if let Some(pair) = self.swap_due.take() {
            let topics = [
                self.named.signatures.swap_v2,
                self.holder(random),
                self.holder(random),
            ];
            return draft(pair, &topics, 128);
        }
        let (rank, address, contract) = self.emitters.draw(random);
        let signatures = self.named.signatures;
        match contract {
            Contract::Token => {
                let approval = random.permille(162);
                let signature = if approval {
                    signatures.approval
                } else {
                    signatures.transfer
                };
                draft(
                    address,
                    &[signature, self.holder(random), self.holder(random)],
                    32,
                )
            }
            Contract::Collection => {
                let mut id = B256::ZERO;
                id[28..].copy_from_slice(&(random.below(10_000) as u32).to_be_bytes());
                let topics = [signatures.transfer, self.holder(random), self.holder(random), id];
                draft(address, &topics, 0)
            }
            Contract::Pair => {
                self.swap_due = Some(address);
                draft(address, &[signatures.sync], 64)
            }
            Contract::Pool => draft(
                address,
                &[signatures.swap_v3, self.holder(random), self.holder(random)],
                160,
            ),
            Contract::Other => self.other(rank, address, random),
        }
    }

    fn other(&self, rank: u32, address: Address, random: &mut Random) -> Draft {
        let signature = Emitters::signature(self.seed, rank, random);
        // A third has an identifier of its own as topic1 (an order, a message): most terms of an index.
        let first = if random.permille(320) {
            random.word()
        } else {
            self.holder(random)
        };
        let topics = [signature, first, self.holder(random), self.holder(random)];
        let count = match random.below(100) {
            0..=4 => 1,
            5..=37 => 2,
            38..=79 => 3,
            _ => 4,
        };
        draft(address, &topics[..count], 32 * random.below(7) as usize)
    }

    fn planted(&self, plant: Plant, random: &mut Random) -> Draft {
        let named = &self.named;
        let emitter = match plant {
            Plant::Medium => named.medium,
            Plant::Rare => named.rare,
            Plant::Share => named.share,
            Plant::HotTokenTopic1 | Plant::HotTokenTopic2 => named.hot,
            // Any token but the planted ones, so that their counts stay as asked.
            Plant::Wallet => self.emitters.get(random.below(1_000) as u32).0,
        };
        let from = match plant {
            Plant::Wallet => named.wallet,
            Plant::HotTokenTopic1 => named.hot_token_wallet,
            Plant::Medium | Plant::Rare | Plant::Share | Plant::HotTokenTopic2 => self.holder(random),
        };
        let to = if plant == Plant::HotTokenTopic2 {
            named.hot_token_wallet
        } else {
            self.holder(random)
        };
        draft(emitter, &[named.signatures.transfer, from, to], 32)
    }
}

fn draft(address: Address, topics: &[B256], data_len: usize) -> Draft {
    Draft {
        address,
        topics: Topics::new(topics).expect("at most four topics"),
        data_len,
    }
}
