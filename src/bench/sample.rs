//! Reading the statistics of a store: a sample of its rows, spread evenly and the same for the same seed, and the
//! exact length of the lists of whatever was met. The work is bounded, however long the chain.

use std::collections::BTreeSet;
use std::time::Duration;

use super::statistics::{
    Counted, Placed, Statistics, StoreFacts, hottest, longest_first, may_be_account, thinned,
};
use crate::clock;
use crate::model::{Address, B256, ChainName};
use crate::query::{Listed, LogQuery, QueryError, Reader};

/// Logs that are read.
const LOGS: u64 = 4_000;
/// Logs whose contract is looked up, which is one record of an array.
const EMITTERS_OF_LOGS: u64 = 20_000;
/// Contracts and topics 0 drawn alike, whatever they have: the rare ones.
const DRAWN_ALIKE: u64 = 2_000;
/// Topics 1 to 3 whose lists are looked up.
const WALLETS: usize = 4_000;
const POSITIONS: usize = 3;
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

/// Draws from a range in equal strides, a place at random within each: sorted, and every place of a short range.
fn spread(random: &mut fastrand::Rng, end: u64, count: u64) -> Vec<u64> {
    if end <= count {
        return (0..end).collect();
    }
    let stride = |place: u64| u64::try_from(u128::from(place) * u128::from(end) / u128::from(count));
    let places = (0..count).filter_map(|place| {
        let (from, to) = (stride(place).ok()?, stride(place + 1).ok()?);
        (from < to).then(|| random.u64(from..to))
    });
    places.collect()
}

/// Reads the statistics of a store; `bytes` is what it takes on disk.
///
/// # Errors
///
/// As the store fails.
pub fn statistics(
    reader: &Reader,
    chain: ChainName,
    bytes: u64,
    seed: u64,
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
            bytes,
            days: None,
        },
        ..Statistics::default()
    };
    if reader.is_empty() {
        return Ok(found);
    }
    found.store.days = Some(reader.day_span()?);
    let mut random = fastrand::Rng::with_seed(seed);
    let sample = Sample::draw(reader, &mut random)?;
    found.emitters = count(reader, sample.emitters.iter().copied(), Listed::LogsOf)?;
    found.signatures = count(reader, sample.signatures.iter().copied(), |topic| {
        Listed::LogsWith(0, topic)
    })?;
    if let Some(hot) = hottest(&found.signatures) {
        found.middle = middle(reader, hot)?;
    }
    let with = |(position, topic): Placed| Listed::LogsWith(position, topic);
    let mut wallets = Vec::new();
    for position in 1..=POSITIONS {
        let here = |&(at, topic): &Placed| at == position && may_be_account(&topic).is_some();
        let here: Vec<_> = sample.topics.iter().copied().filter(here).collect();
        wallets.extend(thinned(&here, WALLETS / POSITIONS));
    }
    found.wallets = count(reader, wallets.into_iter(), with)?;
    if let Some(hot) = hottest(&found.emitters) {
        let met = of_contract(reader, hot.what, hot.count, &mut random)?;
        found.of_hot = count(reader, met.into_iter(), |(_, placed)| with(placed))?;
    }
    pair(reader, &mut found)?;
    // Who is a side of a transaction that was read has more of them than most.
    let others: Vec<_> = sample.accounts.difference(&sample.sides).copied().collect();
    let mut accounts = sample.sides;
    let left = ACCOUNTS.saturating_sub(accounts.len());
    accounts.extend(thinned(&others, left));
    let accounts = || accounts.iter().copied();
    found.by_transactions = count(reader, accounts(), Listed::Transactions)?;
    found.by_erc20 = count(reader, accounts(), Listed::Erc20)?;
    if found.store.traces {
        found.by_internal = count(reader, accounts(), Listed::Internal)?;
    }
    found.by_mined = count(reader, sample.sealers.iter().copied(), Listed::Mined)?;
    for emitter in found.emitters.iter().take(TOKENS) {
        if let Some(token) = reader.token(&emitter.what)? {
            let (holders, _) = reader.holder_count(&token)?;
            found.tokens.push(Counted {
                what: emitter.what,
                count: holders,
            });
        }
    }
    longest_first(&mut found.tokens);
    found.transactions = sample.transactions;
    found.blocks = sample.blocks;
    Ok(found)
}

/// What was met in the rows that were read; each once.
#[derive(Default)]
struct Sample {
    emitters: BTreeSet<Address>,
    signatures: BTreeSet<B256>,
    topics: BTreeSet<Placed>,
    accounts: BTreeSet<Address>,
    /// Senders and recipients of transactions.
    sides: BTreeSet<Address>,
    sealers: BTreeSet<Address>,
    transactions: Vec<B256>,
    blocks: Vec<u64>,
}

impl Sample {
    fn draw(reader: &Reader, random: &mut fastrand::Rng) -> Result<Self, QueryError> {
        let contents = reader.contents();
        let mut sample = Self::default();
        for ordinal in spread(random, contents.logs, EMITTERS_OF_LOGS) {
            sample.emitters.insert(reader.emitter_of_log(ordinal)?);
        }
        let place = |place: u64| u32::try_from(place).unwrap_or(u32::MAX);
        for emitter in spread(random, u64::from(contents.emitters), DRAWN_ALIKE) {
            sample.emitters.insert(reader.emitter_at(place(emitter))?);
        }
        for signature in spread(random, u64::from(contents.signatures), DRAWN_ALIKE) {
            sample.signatures.insert(reader.signature_at(place(signature))?);
        }
        reader
            .logs_at(spread(random, contents.logs, LOGS))?
            .visit(&mut |log| {
                for (position, topic) in log.topics.iter().enumerate() {
                    match position {
                        0 => drop(sample.signatures.insert(*topic)),
                        _ => drop(sample.topics.insert((position, *topic))),
                    }
                    sample.accounts.extend(may_be_account(topic));
                }
                true
            })?;
        for ordinal in spread(random, contents.transactions, TRANSACTIONS) {
            let hash = reader.transaction_hash_at(ordinal)?;
            if let Some(entry) = reader.transaction(&hash)? {
                sample.sides.insert(entry.transaction.from);
                sample.sides.extend(entry.transaction.to);
                sample.transactions.push(hash);
            }
        }
        let stored = reader.head().number - reader.first_block() + 1;
        for place in spread(random, stored, BLOCKS) {
            let number = reader.first_block() + place;
            if let Some(block) = reader.block(number, false)? {
                sample.sealers.insert(block.block.header.beneficiary);
                sample.blocks.push(number);
            }
        }
        Ok(sample)
    }
}

fn count<T: Copy>(
    reader: &Reader,
    things: impl Iterator<Item = T>,
    list: impl Fn(T) -> Listed,
) -> Result<Vec<Counted<T>>, QueryError> {
    let mut counted = Vec::new();
    for what in things {
        let count = reader.count(list(what))?;
        if count > 0 {
            counted.push(Counted { what, count });
        }
    }
    longest_first(&mut counted);
    Ok(counted)
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

/// Topics 1 to 3 of some logs of a contract, with their topic 0.
fn of_contract(
    reader: &Reader,
    contract: Address,
    logs: u64,
    random: &mut fastrand::Rng,
) -> Result<BTreeSet<(B256, Placed)>, QueryError> {
    let mut met = BTreeSet::new();
    let pages = logs.div_ceil(HOT_ROWS as u64);
    for page in spread(random, pages, HOT_PAGES) {
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
    }
    Ok(met)
}

/// Which of the longest lists of topic 0 and of topic 1 share a log and which share none, and which of the longest lists
/// of contracts and of topic 0 share none.
fn pair(reader: &Reader, found: &mut Statistics) -> Result<(), QueryError> {
    let until = clock::now() + PAIRING_TIME;
    let firsts: Vec<_> = found
        .wallets
        .iter()
        .filter(|wallet| wallet.what.0 == 1)
        .take(PAIRED.1)
        .copied()
        .collect();
    for signature in found.signatures.iter().take(PAIRED.0) {
        for wallet in &firsts {
            if clock::now() > until {
                break;
            }
            let pair = Counted {
                what: (signature.what, wallet.what.1),
                count: signature.count.min(wallet.count),
            };
            found.paired += 1;
            let query = LogQuery {
                topics: [vec![pair.what.0], vec![pair.what.1], Vec::new(), Vec::new()],
                ..LogQuery::default()
            };
            match meet(reader, query)? {
                Some(true) => found.meeting.push(pair),
                Some(false) => found.apart.push(pair),
                None => {}
            }
        }
    }
    let until = clock::now() + PAIRING_TIME;
    for emitter in found.emitters.iter().take(PAIRED.0) {
        for signature in found.signatures.iter().take(PAIRED.0) {
            if clock::now() > until {
                break;
            }
            let query = LogQuery {
                address: Some(emitter.what),
                topics: [vec![signature.what], Vec::new(), Vec::new(), Vec::new()],
                ..LogQuery::default()
            };
            if meet(reader, query)? == Some(false) {
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

/// Whether a log has all that is asked for; `None` where that is not found out in time.
fn meet(reader: &Reader, query: LogQuery) -> Result<Option<bool>, QueryError> {
    let query = LogQuery {
        first_block: reader.first_block(),
        last_block: reader.head().number,
        limit: 1,
        deadline: Some(clock::now() + WALK_TIME),
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
    use super::{spread, thinned};

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

    #[test]
    fn samples_are_spread_and_repeatable() {
        let draw = |seed| spread(&mut fastrand::Rng::with_seed(seed), 1_000_000, 100);
        let drawn = draw(1);
        assert_eq!((drawn.len(), draw(1)), (100, drawn.clone()));
        assert_ne!(draw(2), drawn);
        // One of each hundredth, in order.
        for (place, ordinal) in drawn.into_iter().enumerate() {
            assert_eq!(ordinal / 10_000, place as u64);
        }
        assert_eq!(spread(&mut fastrand::Rng::with_seed(1), 3, 100), [0, 1, 2]);
        assert_eq!(
            spread(&mut fastrand::Rng::with_seed(1), 0, 100),
            Vec::<u64>::new()
        );
    }
}
