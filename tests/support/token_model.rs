//! Token logs for a seeded chain, hostile ones included, and a naive ledger of them.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::U512;
use quarry::model::token::{DEPOSIT, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE, WITHDRAWAL};
use quarry::model::{Address, B256, Bundle, Bytes, Log, TokenKind, Topics, U256};

use crate::plain::{Rng, account};

/// The contract with a number; what it emits depends on it.
pub fn contract(n: u64) -> Address {
    account(100 + n)
}

pub const CONTRACTS: u64 = 7;
/// Accounts that take part, and the zero address.
pub fn holder(n: u64) -> Address {
    if n == 0 { Address::ZERO } else { account(n) }
}
pub const HOLDERS: u64 = 9;

fn word(n: U256) -> [u8; 32] {
    n.to_be_bytes()
}

fn small(n: u64) -> [u8; 32] {
    word(U256::from(n))
}

fn log(address: Address, topics: &[B256], data: Vec<u8>) -> Log {
    let mut all = Topics::default();
    for topic in topics {
        all.push(*topic);
    }
    Log {
        address,
        topics: all,
        data: Bytes::from(data),
    }
}

fn token_log(rng: &mut Rng) -> Vec<Log> {
    let n = rng.below(CONTRACTS);
    let address = contract(n);
    let (from, to) = (
        holder(rng.below(HOLDERS)).into_word(),
        holder(rng.below(HOLDERS)).into_word(),
    );
    let value = match rng.below(60) {
        0 => U256::MAX,
        1 => U256::from(1u64) << 255,
        _ => U256::from(rng.below(50)),
    };
    let id = U256::from(rng.below(12));
    let other = account(3).into_word();
    // Each contract mostly emits what its standard says, now and then something else.
    let form = if rng.below(25) == 0 { rng.below(7) } else { n };
    let one = match form {
        // Mostly mints, so that balances last.
        0 | 1 => {
            let from = if rng.below(3) == 0 { from } else { B256::ZERO };
            let value = if n == 0 { value.min(U256::from(50)) } else { value };
            log(address, &[TRANSFER, from, to], word(value).to_vec())
        }
        2 => log(address, &[TRANSFER, from, to, B256::from(word(id))], Vec::new()),
        3 => {
            let data = [from.0, to.0, word(id)].concat();
            log(address, &[TRANSFER], data)
        }
        4 if rng.below(2) == 0 => {
            let data = [word(id), word(value)].concat();
            log(address, &[TRANSFER_SINGLE, other, from, to], data)
        }
        4 => {
            let count = rng.below(4);
            let mut data = [small(64), small(64 + 32 * (count + 1))].concat();
            for _ in 0..2 {
                data.extend(small(count));
                for _ in 0..count {
                    data.extend(small(rng.below(20)));
                }
            }
            log(address, &[TRANSFER_BATCH, other, from, to], data)
        }
        5 => match rng.below(4) {
            0 | 1 => {
                let deposit = log(address, &[DEPOSIT, to], word(value).to_vec());
                // Some tell of it twice.
                if rng.below(3) == 0 {
                    let told = log(address, &[TRANSFER, B256::ZERO, to], word(value).to_vec());
                    return vec![deposit, told];
                }
                deposit
            }
            2 => log(address, &[WITHDRAWAL, from], word(value).to_vec()),
            _ => log(address, &[TRANSFER, from, to], word(value).to_vec()),
        },
        // Nothing of this is an event.
        _ => match rng.below(5) {
            0 => log(address, &[TRANSFER, from, to], vec![1; rng.below(32) as usize]),
            1 => log(address, &[TRANSFER, from], [to.0, word(value)].concat()),
            2 => log(
                address,
                &[TRANSFER_SINGLE, from, to],
                [small(1), small(1)].concat(),
            ),
            3 => log(
                address,
                &[TRANSFER_BATCH, other, from, to],
                [small(64), small(1 << 40)].concat(),
            ),
            _ => log(address, &[DEPOSIT, B256::repeat_byte(9)], small(1).to_vec()),
        },
    };
    vec![one]
}

/// Adds token logs to the transactions of blocks, the same to the same block.
pub fn add_logs(bundles: &mut [Bundle], most: u64) {
    for bundle in bundles {
        let seed = bundle
            .block
            .hash
            .0
            .first_chunk::<8>()
            .map_or(0, |b| u64::from_be_bytes(*b));
        let mut rng = Rng(seed);
        for receipt in &mut bundle.receipts {
            for _ in 0..rng.below(most) {
                let logs = token_log(&mut rng);
                // Between the others.
                let at = rng.below(receipt.logs.len() as u64 + 1) as usize;
                receipt.logs.splice(at..at, logs);
            }
        }
    }
}

/// A transfer as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub block: u64,
    pub hash: B256,
    pub log_index: u32,
    pub position: u32,
    pub from: Address,
    pub to: Address,
    pub token: Address,
    pub id: Option<U256>,
    pub value: U256,
    pub kind: TokenKind,
}

#[derive(Clone, Debug, Default)]
pub struct Token {
    pub kind: TokenKind,
    pub doubted: bool,
    pub wrapped: bool,
    pub minted: U256,
    pub burnt: U256,
    pub balances: BTreeMap<Address, U256>,
    pub owners: BTreeMap<U256, Address>,
    /// What is held by other standards than its own.
    pub others: BTreeMap<(TokenKind, Address), U256>,
    /// Ids that were sent to the zero address; some were made again since.
    pub buried: BTreeSet<U256>,
    /// Units by holder and id, of ERC-1155.
    pub units: BTreeMap<(Address, U256), U256>,
    /// Of whatever standard.
    pub transfers: u64,
}

/// All that is known after a block.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub tokens: BTreeMap<Address, Token>,
    pub transfers: Vec<Transfer>,
}

fn is_address(word: &[u8]) -> bool {
    word.len() == 32 && word[..12].iter().all(|&byte| byte == 0)
}

/// Words of data, where it is whole ones.
fn words(data: &[u8]) -> Option<Vec<U256>> {
    data.len()
        .is_multiple_of(32)
        .then(|| data.chunks(32).map(|word| U256::from_be_slice(word)).collect())
}

/// What a block does to one holder: sums of 512 bits, which never overflow here.
#[derive(Clone, Copy, Default)]
struct Moved {
    incoming: U512,
    outgoing: U512,
    /// Of the zero address: what was minted and is no more.
    unwrapped: U512,
}

/// A token, and the standard by which it is moved where that is not its own.
type Of = (Address, Option<TokenKind>);
/// What a block moves, by token, standard and holder.
type AllMoved = BTreeMap<(Address, Option<TokenKind>, Address), Moved>;

fn add(sum: &mut U512, value: U256) {
    *sum += U512::from(value);
}

/// What is there after a block, or what is nearest to that, and whether it is that.
fn after(before: U256, incoming: U512, outgoing: U512) -> (U256, bool) {
    match (U512::from(before) + incoming).checked_sub(outgoing) {
        None => (U256::ZERO, false),
        Some(left) if left > U512::from(U256::MAX) => (U256::MAX, false),
        Some(left) => (left.to(), true),
    }
}

impl Ledger {
    /// Takes up a block.
    pub fn apply(&mut self, bundle: &Bundle) {
        let number = bundle.block.number();
        let mut moved = AllMoved::new();
        let mut index = 0;
        for (transaction, receipt) in bundle.block.transactions.iter().zip(&bundle.receipts) {
            // Mints and burns that a deposit or withdrawal of the same transaction may tell of too.
            let mut told: Vec<(Address, Address, U256, bool)> = Vec::new();
            for log in &receipt.logs {
                if let ([TRANSFER, from, to], 32) = (log.topics.as_slice(), log.data.len())
                    && is_address(&from.0)
                    && is_address(&to.0)
                {
                    let value = U256::from_be_slice(&log.data);
                    let (from, to) = (Address::from_word(*from), Address::from_word(*to));
                    if from.is_zero() {
                        told.push((log.address, to, value, true));
                    }
                    if to.is_zero() {
                        told.push((log.address, from, value, false));
                    }
                }
            }
            for log in &receipt.logs {
                let at = (number, transaction.hash, index);
                self.log(log, at, &mut told, &mut moved);
                index += 1;
            }
        }
        for ((address, other, who), moved) in moved {
            let token = self.tokens.get_mut(&address).unwrap();
            if let Some(kind) = other {
                if !who.is_zero() {
                    let held = token.others.entry((kind, who)).or_default();
                    *held = after(*held, moved.incoming, moved.outgoing).0;
                }
                continue;
            }
            if who.is_zero() {
                for (sum, came, went) in [
                    (&mut token.minted, moved.outgoing, moved.unwrapped),
                    (&mut token.burnt, moved.incoming, U512::ZERO),
                ] {
                    let (left, is_so) = after(*sum, came, went);
                    *sum = left;
                    token.doubted |= !is_so;
                }
                token.doubted |= token.burnt > token.minted;
                continue;
            }
            let balance = token.balances.entry(who).or_default();
            let (left, is_so) = after(*balance, moved.incoming, moved.outgoing);
            *balance = left;
            token.doubted |= !is_so;
        }
        self.move_units(number);
        for token in self.tokens.values_mut() {
            token.balances.retain(|_, balance| !balance.is_zero());
            token.others.retain(|_, balance| !balance.is_zero());
            token.doubted |= token.wrapped && matches!(token.kind, TokenKind::Erc721 | TokenKind::Erc1155);
        }
    }

    /// Applies what a block moved of ids of ERC-1155.
    fn move_units(&mut self, block: u64) {
        let moved = self.transfers.iter().filter(|row| row.block == block);
        let mut units: BTreeMap<(Address, Address, U256), Moved> = BTreeMap::new();
        for row in moved.filter(|row| row.kind == TokenKind::Erc1155) {
            let id = row.id.unwrap();
            let sender = units.entry((row.token, row.from, id)).or_default();
            add(&mut sender.outgoing, row.value);
            let recipient = units.entry((row.token, row.to, id)).or_default();
            add(&mut recipient.incoming, row.value);
        }
        for ((token, who, id), moved) in units.into_iter().filter(|((_, who, _), _)| !who.is_zero()) {
            let token = self.tokens.get_mut(&token).unwrap();
            let held = token.units.entry((who, id)).or_default();
            *held = after(*held, moved.incoming, moved.outgoing).0;
        }
    }

    fn log(
        &mut self,
        log: &Log,
        (block, hash, log_index): (u64, B256, u32),
        told: &mut Vec<(Address, Address, U256, bool)>,
        moved: &mut AllMoved,
    ) {
        let topics = log.topics.as_slice();
        let words = words(&log.data);
        let as_words = words.as_deref();
        let word = |at: usize| topics.get(at).map_or(&[][..], |topic| &topic.0[..]);
        let mut items: Vec<(Address, Address, Option<U256>, U256)> = Vec::new();
        let party = |word: &[u8]| Address::from_slice(&word[12..]);
        let kind = match (topics.first().copied(), topics.len(), as_words) {
            (Some(TRANSFER), 3, Some([value])) if is_address(word(1)) && is_address(word(2)) => {
                items.push((party(word(1)), party(word(2)), None, *value));
                TokenKind::Erc20
            }
            (Some(TRANSFER), 4, _) if is_address(word(1)) && is_address(word(2)) => {
                let id = U256::from_be_slice(word(3));
                items.push((party(word(1)), party(word(2)), Some(id), U256::from(1)));
                TokenKind::Erc721
            }
            (Some(TRANSFER), 1, Some([from, to, id])) => {
                let (from, to) = (word_of(from), word_of(to));
                if !is_address(&from) || !is_address(&to) {
                    return;
                }
                items.push((party(&from), party(&to), Some(*id), U256::from(1)));
                TokenKind::Erc721
            }
            (Some(TRANSFER_SINGLE), 4, Some([id, value])) if is_address(word(2)) && is_address(word(3)) => {
                items.push((party(word(2)), party(word(3)), Some(*id), *value));
                TokenKind::Erc1155
            }
            (Some(TRANSFER_BATCH), 4, Some(words)) if is_address(word(2)) && is_address(word(3)) => {
                let list = |at: usize| -> Option<Vec<U256>> {
                    let start = usize::try_from(*words.get(at)?).ok()? / 32;
                    let count = usize::try_from(*words.get(start)?).ok()?;
                    Some(words.get(start + 1..start + 1 + count)?.to_vec())
                };
                let (Some(ids), Some(values)) = (list(0), list(1)) else {
                    return;
                };
                if ids.len() != values.len() {
                    return;
                }
                for (id, value) in ids.into_iter().zip(values) {
                    items.push((party(word(2)), party(word(3)), Some(id), value));
                }
                TokenKind::Erc1155
            }
            (Some(DEPOSIT | WITHDRAWAL), 2, Some([value])) if is_address(word(1)) => {
                let (who, minted) = (party(word(1)), topics[0] == DEPOSIT);
                let token = self.tokens.entry(log.address).or_default();
                if matches!(token.kind, TokenKind::Erc721 | TokenKind::Erc1155) {
                    return;
                }
                token.wrapped = true;
                let same = (log.address, who, *value, minted);
                if let Some(at) = told.iter().position(|told| *told == same) {
                    told.remove(at);
                    return;
                }
                if minted {
                    shift(moved, (log.address, None), Address::ZERO, who, *value);
                } else {
                    let zero = moved.entry((log.address, None, Address::ZERO)).or_default();
                    add(&mut zero.unwrapped, *value);
                    if !who.is_zero() {
                        add(
                            &mut moved.entry((log.address, None, who)).or_default().outgoing,
                            *value,
                        );
                    }
                }
                return;
            }
            _ => return,
        };
        let token = self.tokens.entry(log.address).or_default();
        if token.kind == TokenKind::Unknown {
            token.kind = kind;
        }
        let own = token.kind == kind;
        token.doubted |= !own;
        for (position, (from, to, id, value)) in items.into_iter().enumerate() {
            self.transfers.push(Transfer {
                block,
                hash,
                log_index,
                position: position as u32,
                from,
                to,
                token: log.address,
                id,
                value,
                kind,
            });
            let token = self.tokens.get_mut(&log.address).unwrap();
            token.transfers += 1;
            let of = (log.address, Some(kind).filter(|_| !own));
            if kind != TokenKind::Erc721 {
                shift(moved, of, from, to, value);
                continue;
            }
            let id = id.unwrap();
            let owner = token.owners.remove(&id);
            token.doubted |= owner.unwrap_or(Address::ZERO) != from;
            if to.is_zero() {
                token.buried.insert(id);
            }
            // Who is known to own it loses it; supply follows what the log says.
            if from.is_zero() {
                shift_one(moved, of, Address::ZERO, false);
            }
            if to.is_zero() {
                shift_one(moved, of, Address::ZERO, true);
            }
            if let Some(owner) = owner {
                shift_one(moved, of, owner, false);
            }
            if !to.is_zero() {
                token.owners.insert(id, to);
                shift_one(moved, of, to, true);
            }
        }
    }

    /// Accounts and contracts that are worth asking for.
    pub fn asked(&self) -> (BTreeSet<Address>, BTreeSet<Address>) {
        (
            (0..=HOLDERS).map(holder).collect(),
            (0..CONTRACTS).map(contract).chain([account(77)]).collect(),
        )
    }
}

fn word_of(number: &U256) -> [u8; 32] {
    number.to_be_bytes()
}

fn shift_one(moved: &mut AllMoved, (token, other): Of, who: Address, gains: bool) {
    let moved = moved.entry((token, other, who)).or_default();
    let sum = if gains {
        &mut moved.incoming
    } else {
        &mut moved.outgoing
    };
    add(sum, U256::from(1));
}

fn shift(moved: &mut AllMoved, (token, other): Of, from: Address, to: Address, value: U256) {
    add(
        &mut moved.entry((token, other, from)).or_default().outgoing,
        value,
    );
    add(&mut moved.entry((token, other, to)).or_default().incoming, value);
}
