//! A chain of tokens with many holders: their contracts are made, what they hold is minted, then some of it moves.

use super::draw::{Random, address, word};
use super::emitters::CommonSignatures;
use super::filled::SEED;
use quarry::model::{Address, B256, Block, Bundle, Bytes, Header, Log, Receipt, Topics, Transaction, U256};

/// Logs of a block.
const PER_BLOCK: u64 = 1_000;
/// Logs of a transaction.
const PER_TRANSACTION: u64 = 200;
/// Holders of the small token.
pub(crate) const FEW: u64 = 1_000;

/// The tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// Many holders of amounts of all lengths.
    Spread,
    /// As many holders of one amount: an airdrop.
    Equal,
    /// A thousand holders.
    Small,
}

impl Token {
    pub(crate) const ALL: [Self; 3] = [Self::Spread, Self::Equal, Self::Small];

    /// Its contract.
    pub(crate) fn contract(self) -> Address {
        address(SEED, 20, self as u64)
    }

    /// What a holder gets: never less than what it sends later.
    fn amount(self, holder: u64) -> U256 {
        match self {
            Self::Equal => U256::from(400_000_000_000_000_000_000_u128),
            Self::Spread | Self::Small => {
                let mut random = Random::new(holder ^ (self as u64) << 32);
                let units = (u128::from(random.next()) << 30) >> random.below(50);
                U256::from(units | 1 << 24)
            }
        }
    }
}

/// The holder with a number; the small token has the first ones.
pub(crate) fn holder(number: u64) -> Address {
    address(SEED, 21, number)
}

/// The chain with `many` holders: mints of all tokens, then half as many transfers of one unit of the one with
/// spread amounts.
pub(crate) fn chain(many: u64) -> impl Iterator<Item = Bundle> {
    let mints = (0..many).flat_map(move |number| {
        let large = [Token::Spread, Token::Equal].into_iter();
        let tokens = large.chain((number < FEW).then_some(Token::Small));
        tokens.map(move |token| (token, Address::ZERO, holder(number), token.amount(number)))
    });
    let mut random = Random::new(SEED);
    let moves = (0..many / 2).map(move |_| {
        let mut one = || holder(random.below(many));
        (Token::Spread, one(), one(), U256::from(1))
    });
    let transfer = CommonSignatures::new().transfer;
    let mut logs = mints.chain(moves).map(move |(token, from, to, amount)| Log {
        address: token.contract(),
        topics: Topics::new(&[transfer, from.into_word(), to.into_word()]).expect("three topics"),
        data: Bytes::from(amount.to_be_bytes_vec()),
    });
    let mut parent = B256::ZERO;
    (1..).map_while(move |number| {
        let of_block: Vec<Log> = logs.by_ref().take(PER_BLOCK as usize).collect();
        let hash = word(SEED, 22, number);
        let parent = std::mem::replace(&mut parent, hash);
        (!of_block.is_empty()).then(|| {
            let mut bundle = bundle(number, hash, parent, of_block);
            if number == 1 {
                create(&mut bundle);
            }
            bundle
        })
    })
}

/// Makes the contracts in a block: without that the store does not know that it holds all of their logs.
fn create(bundle: &mut Bundle) {
    for token in Token::ALL {
        let transaction_hash = word(SEED, 24, token as u64);
        let gas_used = 1_000_000;
        let transaction = Transaction {
            hash: transaction_hash,
            from: holder(0),
            nonce: token as u64,
            gas: gas_used,
            ..Transaction::default()
        };
        let receipt = Receipt {
            contract_address: Some(token.contract()),
            ..Receipt::default()
        };
        push(bundle, transaction, receipt);
    }
}

/// Adds a transaction that used all of its gas, with what its receipt says besides.
fn push(bundle: &mut Bundle, transaction: Transaction, receipt: Receipt) {
    const GAS_PRICE: u128 = 1_000_000_000;
    bundle.block.header.gas_used += transaction.gas;
    bundle.receipts.push(Receipt {
        transaction_hash: transaction.hash,
        status: Some(true),
        cumulative_gas_used: bundle.block.header.gas_used,
        gas_used: transaction.gas,
        effective_gas_price: Some(GAS_PRICE),
        ..receipt
    });
    bundle.block.transactions.push(Transaction {
        gas_price: Some(GAS_PRICE),
        ..transaction
    });
}

fn bundle(number: u64, hash: B256, parent_hash: B256, logs: Vec<Log>) -> Bundle {
    let mut bundle = Bundle {
        block: Block {
            hash,
            header: Header {
                number,
                parent_hash,
                timestamp: 1_600_000_000 + 12 * number,
                gas_limit: 60_000_000,
                ..Header::default()
            },
            ..Block::default()
        },
        ..Bundle::default()
    };
    for (place, logs) in logs.chunks(PER_TRANSACTION as usize).enumerate() {
        let transaction_hash = word(SEED, 23, number << 8 | place as u64);
        let gas_used = 30_000 * logs.len() as u64;
        let transaction = Transaction {
            hash: transaction_hash,
            to: logs.first().map(|log| log.address),
            from: holder(place as u64),
            gas: gas_used,
            ..Transaction::default()
        };
        let receipt = Receipt {
            logs: logs.to_vec(),
            ..Receipt::default()
        };
        push(&mut bundle, transaction, receipt);
    }
    bundle
}
