//! Reading the statistics of a store: a sample of its rows, spread evenly and the same for the same seed, and the
//! exact length of the lists of whatever was met. The work is bounded, however long the chain, and so is its time: what
//! there is no time for is left out, whatever it is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::look::{ALWAYS, Budget, Look, spread};
use super::statistics::{
    Counted, Placed, Statistics, StoreFacts, hottest, longest_first, may_be_account, thinned,
};
use crate::clock;
use crate::model::{Address, B256, ChainName};
use crate::query::{KeyPart, Listed, LogQuery, QueryError, Reader, Token};

/// Logs that are read.
const LOGS: u64 = 4_000;
/// Logs whose contract is looked up, which is one record of an array.
const EMITTERS_OF_LOGS: u64 = 20_000;
/// Contracts and topics 0 drawn alike, whatever they have: the rare ones.
const DRAWN_ALIKE: u64 = 2_000;
/// Topics 1 to 3 whose lists are looked up.
const WALLETS: usize = 4_000;
const POSITIONS: usize = 3;
/// Topics 1 that are no accounts, of those that were met most, whose lists are looked up: to be paired.
const OTHER_FIRSTS: usize = 100;
/// Transactions and blocks that are read.
const TRANSACTIONS: u64 = 500;
const BLOCKS: u64 = 200;
/// Pages of the hot contract that are read, and their rows.
const HOT_PAGES: u64 = 20;
const HOT_ROWS: usize = 100;
/// Accounts whose lists are looked up.
const ACCOUNTS: usize = 4_000;
/// Contracts that are looked at for being tokens.
const TOKENS: usize = 1_000;
/// Lists of each kind that are paired, and how long may be looked for pairs.
const PAIRED: (usize, usize) = (8, 12);
const PAIRING_TIME: Duration = Duration::from_secs(5);
/// A pair is walked so long before it counts as neither.
const WALK_TIME: Duration = Duration::from_secs(1);
/// Holders that are read of the token with the most, in so many pages, of so many largest ones.
const HOLDERS: u64 = 1_000;
const HOLDER_PAGES: u64 = 20;
const HOLDERS_WITHIN: u64 = 20_000;
/// Logs that are read at a time.
const LOGS_AT_ONCE: usize = 250;
/// Reads the statistics of a store, as far as there is time; `bytes` is what it takes on disk.
///
/// # Errors
///
/// As the store fails.
pub fn statistics(
    reader: &Reader,
    chain: ChainName,
    bytes: u64,
    seed: u64,
    budget: Budget<'_>,
) -> Result<Statistics, QueryError> {
    let contents = reader.contents();
    let mut found = Statistics {
        store: StoreFacts {
            chain,
            chain_id: reader.chain_id(),
            first_block: reader.first_block(),
            head: reader.head().number,
            head_hash: reader.head().hash,
            logs: contents.logs,
            transactions: contents.transactions,
            emitters: contents.emitters,
            signatures: contents.signatures,
            traces: reader.has_traces(),
            balances: reader.keeps_balances(reader.head().number),
            bytes,
            days: None,
        },
        ..Statistics::default()
    };
    if reader.is_empty() {
        return Ok(found);
    }
    found.store.days = Some(reader.day_span()?);
    let mut look = Look {
        reader,
        random: fastrand::Rng::with_seed(seed),
        budget,
    };
    let sample = Sample::draw(&mut look)?;
    found.emitters = look.count_met(sample.emitters, Listed::LogsOf)?;
    found.signatures = look.count_met(sample.signatures, |topic| Listed::LogsWith(0, topic))?;
    if let Some(hot) = hottest(&found.signatures) {
        found.middle = middle(reader, hot)?;
    }
    let with = |(position, topic): Placed| Listed::LogsWith(position, topic);
    let mut wallets = Vec::new();
    for position in 1..=POSITIONS {
        let here = |&(at, topic): &Placed| at == position && may_be_account(&topic).is_some();
        let here: Vec<_> = sample.topics.keys().copied().filter(here).collect();
        wallets.extend(thinned(&here, WALLETS / POSITIONS));
    }
    found.wallets = look.count(wallets, with)?;
    if let Some(hot) = hottest(&found.emitters) {
        let met = look.of_contract(hot.what, hot.count)?;
        found.of_hot = look.count(met, |(_, placed)| with(placed))?;
    }
    let firsts = look.count_met(other_firsts(&sample.topics), |topic| Listed::LogsWith(1, topic))?;
    look.pair(&mut found, firsts)?;
    // Who is a side of a transaction that was read has more of them than most.
    let others: Vec<_> = sample.accounts.difference(&sample.sides).copied().collect();
    let mut accounts = sample.sides;
    let left = ACCOUNTS.saturating_sub(accounts.len());
    accounts.extend(thinned(&others, left));
    let accounts = || accounts.iter().copied();
    found.by_transactions = look.count(accounts(), Listed::Transactions)?;
    found.by_erc20 = look.count(accounts(), Listed::Erc20)?;
    if found.store.traces {
        found.by_internal = look.count(accounts(), Listed::Internal)?;
    }
    found.by_mined = look.count(sample.sealers.iter().copied(), Listed::Mined)?;
    look.tokens(&mut found)?;
    found.transactions = sample.transactions.into_values().collect();
    found.blocks = sample.blocks.into_iter().collect();
    found.is_cut = look.budget.is_cut;
    Ok(found)
}

/// What was met in the rows that were read.
#[derive(Default)]
struct Sample {
    /// With how often they were met in logs.
    emitters: BTreeMap<Address, u32>,
    signatures: BTreeMap<B256, u32>,
    topics: BTreeMap<Placed, u32>,
    accounts: BTreeSet<Address>,
    /// Senders and recipients of transactions.
    sides: BTreeSet<Address>,
    sealers: BTreeSet<Address>,
    /// Hashes by ordinal.
    transactions: BTreeMap<u64, B256>,
    blocks: BTreeSet<u64>,
}

impl Sample {
    fn draw(look: &mut Look<'_>) -> Result<Self, QueryError> {
        let reader = look.reader;
        let contents = reader.contents();
        let mut sample = Self::default();
        look.drawn(contents.logs, EMITTERS_OF_LOGS, |ordinal| {
            *sample
                .emitters
                .entry(reader.emitter_of_log(ordinal)?)
                .or_default() += 1;
            Ok(())
        })?;
        let place = |place: u64| u32::try_from(place).unwrap_or(u32::MAX);
        look.drawn(u64::from(contents.emitters), DRAWN_ALIKE, |emitter| {
            sample
                .emitters
                .entry(reader.emitter_at(place(emitter))?)
                .or_default();
            Ok(())
        })?;
        look.drawn(u64::from(contents.signatures), DRAWN_ALIKE, |signature| {
            sample
                .signatures
                .entry(reader.signature_at(place(signature))?)
                .or_default();
            Ok(())
        })?;
        let mut logs = spread(&mut look.random, contents.logs, LOGS);
        look.random.shuffle(&mut logs);
        let logs = logs.chunks_mut(LOGS_AT_ONCE).collect();
        look.each(logs, 1, |logs: &mut [u64]| {
            logs.sort_unstable();
            reader.logs_at(logs.to_vec())?.visit(&mut |log| {
                for (position, topic) in log.topics.iter().enumerate() {
                    match position {
                        0 => *sample.signatures.entry(*topic).or_default() += 1,
                        _ => *sample.topics.entry((position, *topic)).or_default() += 1,
                    }
                    sample.accounts.extend(may_be_account(topic));
                }
                true
            })?;
            Ok(())
        })?;
        look.drawn(contents.transactions, TRANSACTIONS, |ordinal| {
            let hash = reader.transaction_hash_at(ordinal)?;
            if let Some(entry) = reader.transaction(&hash)? {
                sample.sides.insert(entry.transaction.from);
                sample.sides.extend(entry.transaction.to);
                sample.transactions.insert(ordinal, hash);
            }
            Ok(())
        })?;
        let stored = reader.head().number - reader.first_block() + 1;
        look.drawn(stored, BLOCKS, |place| {
            let number = reader.first_block() + place;
            if let Some(block) = reader.block(number, false)? {
                sample.sealers.insert(block.block.header.beneficiary);
                sample.blocks.insert(number);
            }
            Ok(())
        })?;
        Ok(sample)
    }
}

/// Topics 1 that are no accounts, with how often they were met, those first that were met most.
fn other_firsts(topics: &BTreeMap<Placed, u32>) -> Vec<(B256, u32)> {
    let firsts = topics.range((1, B256::ZERO)..(2, B256::ZERO));
    let others = firsts.filter(|((_, topic), _)| may_be_account(topic).is_none());
    let mut others: Vec<_> = others.map(|(&(_, topic), &met)| (topic, met)).collect();
    others.sort_by_key(|&(_, met)| std::cmp::Reverse(met));
    others.truncate(OTHER_FIRSTS);
    others
}

/// The block of the middle one of the logs with a topic 0.
fn middle(reader: &Reader, signature: Counted<B256>) -> Result<Option<u64>, QueryError> {
    let query = LogQuery {
        topics: [vec![signature.what], Vec::new(), Vec::new(), Vec::new()],
        first_block: reader.first_block(),
        last_block: reader.head().number,
        skip: signature.count / 2,
        limit: 1,
        ..LogQuery::default()
    };
    let mut found = None;
    reader.logs(&query)?.visit(&mut |log| {
        found = Some(log.block_number);
        false
    })?;
    Ok(found)
}

impl Look<'_> {
    /// Topics 1 to 3 of some logs of a contract, with their topic 0.
    fn of_contract(&mut self, contract: Address, logs: u64) -> Result<BTreeSet<(B256, Placed)>, QueryError> {
        let (reader, mut met) = (self.reader, BTreeSet::new());
        self.drawn(logs.div_ceil(HOT_ROWS as u64), HOT_PAGES, |page| {
            let query = LogQuery {
                address: Some(contract),
                first_block: reader.first_block(),
                last_block: reader.head().number,
                skip: page * HOT_ROWS as u64,
                limit: HOT_ROWS,
                ..LogQuery::default()
            };
            reader.logs(&query)?.visit(&mut |log| {
                if let Some((signature, others)) = log.topics.split_first() {
                    let placed = others
                        .iter()
                        .enumerate()
                        .map(|(place, topic)| (place + 1, *topic));
                    met.extend(placed.map(|placed| (*signature, placed)));
                }
                true
            })?;
            Ok(())
        })?;
        Ok(met)
    }

    /// Which of the longest lists of topic 0 and of topic 1, accounts and others, share a log and which share none, and which of
    /// the longest lists of contracts and of topic 0 share none.
    fn pair(&mut self, found: &mut Statistics, others: Vec<Counted<B256>>) -> Result<(), QueryError> {
        let wallets = found.wallets.iter().filter(|wallet| wallet.what.0 == 1);
        let wallets = wallets.map(|wallet| Counted {
            what: wallet.what.1,
            count: wallet.count,
        });
        let mut firsts: Vec<_> = wallets.chain(others).collect();
        longest_first(&mut firsts);
        firsts.truncate(PAIRED.1);
        let until = self.pairing();
        let signatures: Vec<_> = found.signatures.iter().take(PAIRED.0).copied().collect();
        for signature in signatures {
            for first in &firsts {
                if self.budget.ends(until) {
                    break;
                }
                let pair = Counted {
                    what: (signature.what, first.what),
                    count: signature.count.min(first.count),
                };
                let query = LogQuery {
                    topics: [vec![pair.what.0], vec![pair.what.1], Vec::new(), Vec::new()],
                    ..LogQuery::default()
                };
                let is_meeting = meet(self.reader, query, until)?;
                found.pairs(pair, is_meeting);
            }
        }
        let until = self.pairing();
        for emitter in found.emitters.iter().take(PAIRED.0) {
            for signature in found.signatures.iter().take(PAIRED.0) {
                if self.budget.ends(until) {
                    break;
                }
                let query = LogQuery {
                    address: Some(emitter.what),
                    topics: [vec![signature.what], Vec::new(), Vec::new(), Vec::new()],
                    ..LogQuery::default()
                };
                if meet(self.reader, query, until)? == Some(false) {
                    found.silent.push(Counted {
                        what: (emitter.what, signature.what),
                        count: signature.count.min(emitter.count),
                    });
                }
            }
        }
        longest_first(&mut found.meeting);
        longest_first(&mut found.apart);
        longest_first(&mut found.silent);
        Ok(())
    }

    /// Until when pairs are looked for.
    fn pairing(&mut self) -> Instant {
        self.budget.part().min(clock::now() + PAIRING_TIME)
    }

    /// Which of the contracts with the most logs are tokens, and some holders of the one with the most.
    fn tokens(&mut self, found: &mut Statistics) -> Result<(), QueryError> {
        let reader = self.reader;
        let contracts = found.emitters.iter().take(TOKENS).map(|one| one.what).collect();
        // Those that the ledger answers for need no node.
        let (mut tokens, mut doubtful) = (Vec::new(), Vec::new());
        self.each(contracts, ALWAYS, |what| {
            // Of others there are no lists.
            if let Some(token) = reader.token(&what)?.filter(Token::is_whole) {
                let (count, _) = reader.holder_count(&token)?;
                let of = if token.is_exact() {
                    &mut tokens
                } else {
                    &mut doubtful
                };
                of.push(Counted { what, count });
            }
            Ok(())
        })?;
        if tokens.is_empty() {
            tokens = doubtful;
        }
        tokens.sort_unstable_by_key(|one| (std::cmp::Reverse(one.count), one.what));
        found.tokens = tokens;
        let Some(token) = hottest(&found.tokens).map(|one| one.what) else {
            return Ok(());
        };
        let Some(token) = reader.token(&token)? else {
            return Ok(());
        };
        let (count, _) = reader.holder_count(&token)?;
        let rows = HOLDERS / HOLDER_PAGES;
        let mut holders = BTreeSet::new();
        self.drawn(count.min(HOLDERS_WITHIN).div_ceil(rows), HOLDER_PAGES, |page| {
            let part = KeyPart::skipping(page * rows, rows as usize);
            let page = reader.holders(&token, &part, None)?;
            holders.extend(page.holders.into_iter().map(|(holder, _)| holder));
            Ok(())
        })?;
        found.holders = holders.into_iter().collect();
        Ok(())
    }
}

/// Whether a log has all that is asked for; `None` where that is not found out in time.
fn meet(reader: &Reader, query: LogQuery, until: Instant) -> Result<Option<bool>, QueryError> {
    let query = LogQuery {
        first_block: reader.first_block(),
        last_block: reader.head().number,
        limit: 1,
        deadline: Some(until.min(clock::now() + WALK_TIME)),
        ..query
    };
    match reader.logs(&query) {
        Ok(page) => Ok(Some(!crate::query::Paged::page(&page).is_empty())),
        Err(QueryError::TimedOut) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, OTHER_FIRSTS, other_firsts, thinned};
    use crate::model::{Address, B256};

    #[test]
    fn topics_that_are_no_accounts_are_paired_too_the_commonest_first() {
        let account = Address::repeat_byte(0x11).into_word();
        let id = |byte| B256::repeat_byte(byte);
        let mut topics = BTreeMap::from([
            ((1, account), 900),
            ((1, id(0xff)), 7),
            ((1, B256::ZERO), 5),
            ((1, id(1)), 30),
            ((2, id(2)), 800),
        ]);
        let others = [(id(1), 30), (id(0xff), 7), (B256::ZERO, 5)];
        assert_eq!(other_firsts(&topics), others);
        for number in 0..OTHER_FIRSTS {
            topics.insert(
                (1, B256::left_padding_from(&(number as u64 + 1).to_be_bytes())),
                6,
            );
        }
        let found = other_firsts(&topics);
        assert_eq!(
            (found.len(), found[0], found[1]),
            (OTHER_FIRSTS, others[0], others[1])
        );
        assert!(found[2..].iter().all(|&(_, met)| met == 6));
    }

    #[test]
    fn what_is_left_of_a_sample_is_of_all_of_it() {
        let all: Vec<u32> = (0..10_000).collect();
        let left = thinned(&all, 1_000);
        assert_eq!(left.len(), 1_000);
        assert!(
            left.iter()
                .enumerate()
                .all(|(place, one)| *one as usize / 10 == place)
        );
        assert_eq!(thinned(&all, 20_000), all);
        assert_eq!(thinned(&all, 0), [] as [u32; 0]);
    }
}
