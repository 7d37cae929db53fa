//! Prices (S2, S3, T5): the answers of aggregators in the log index, then what was imported.

use super::{QueryError, Reader};
use crate::codec::keys::Term;
use crate::model::{Address, Asset, B256, PriceFeeds, PriceSource, U256, Usd};
use crate::store::{Direction, PostingCursor, Table, Units};

/// `AnswerUpdated(int256 indexed current, uint256 indexed roundId, uint256 updatedAt)`.
const ANSWER_UPDATED: B256 =
    alloy_primitives::b256!("0559884fd3a460db3073b7fc896cc77986f16e378210ded43186175bf646fc5f");

/// Decimals of an aggregator that nobody was asked about: what those of US dollars have.
const DECIMALS: u8 = 8;

/// Answers in a row that are no prices before it is given up: a feed answers below zero by a fault.
const BAD_ANSWERS_MAX: u32 = 10_000;

/// A price, and since when it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPrice {
    /// The price.
    pub usd: Usd,
    /// Unix time in seconds: of the answer's block, or the date in the file.
    pub time: u64,
    /// Who told it.
    pub source: PriceSource,
}

/// The answers of an aggregator.
struct Answers<'v> {
    list: PostingCursor<'v>,
    decimals: u8,
}

/// The prices of an asset on one snapshot. Each time that is asked for costs a seek in the list of each aggregator.
pub struct Prices<'r> {
    reader: &'r Reader,
    asset: Asset,
    head_time: u64,
    aggregators: Vec<Answers<'r>>,
    bodies: Option<Units<'static>>,
}

impl std::fmt::Debug for Prices<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prices")
            .field("asset", &self.asset)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// The feeds of native and stable coin, and what the native coin is called.
    #[must_use]
    pub fn price_feeds(&self) -> &PriceFeeds {
        &self.price_feeds
    }

    /// The time of the indexed head, Unix seconds.
    pub fn head_time(&self) -> Result<u64, QueryError> {
        Ok(self.view.block(self.head().number)?.timestamp)
    }

    /// The prices of an asset.
    pub fn prices(&self, asset: Asset) -> Result<Prices<'_>, QueryError> {
        let configured: &[Address] = match asset {
            Asset::Native => &self.price_feeds.native,
            Asset::Stable => &self.price_feeds.stable,
            Asset::Token(_) => &[],
        };
        let mut aggregators: Vec<(Address, Option<u8>)> = Vec::new();
        let mut add =
            |address, decimals: Option<u8>| match aggregators.iter_mut().find(|(known, _)| *known == address)
            {
                Some((_, known)) => *known = known.or(decimals),
                None => aggregators.push((address, decimals)),
            };
        for &feed in configured {
            let facts = self.token_facts.feed(&feed)?.unwrap_or_default();
            add(feed, facts.decimals);
            for aggregator in facts.aggregators {
                let own = self.token_facts.feed(&aggregator)?.and_then(|own| own.decimals);
                // Those that it stood for may have had others than a proxy has now; of one that does not tell nothing better is known.
                add(aggregator, own.or(facts.decimals));
            }
        }
        let signature = match aggregators.is_empty() {
            true => None,
            false => self.view.signature(&ANSWER_UPDATED)?,
        };
        let mut prices = Prices {
            reader: self,
            asset,
            head_time: self.head_time()?,
            aggregators: Vec::new(),
            bodies: None,
        };
        let Some(signature) = signature else {
            return Ok(prices);
        };
        for (address, decimals) in aggregators {
            let Some(emitter) = self.view.emitter(&address)? else {
                continue;
            };
            let term = Term::log_address_topic0(emitter, signature);
            let list = PostingCursor::open(&self.view, term, Direction::Backward)?;
            if list.count() > 0 {
                prices.aggregators.push(Answers {
                    list,
                    decimals: decimals.unwrap_or(DECIMALS),
                });
            }
        }
        Ok(prices)
    }
}

impl Prices<'_> {
    /// The last price known at a Unix time: by an aggregator up to the last block of that time, else by a file. Times
    /// behind the indexed head are the head's.
    pub fn at(&mut self, time: u64) -> Result<Option<KnownPrice>, QueryError> {
        let time = time.min(self.head_time);
        if let Some(answer) = self.answer(time)? {
            return Ok(Some(answer));
        }
        let Some(imported) = self.reader.imported() else {
            return Ok(None);
        };
        let found = imported.price(self.asset, time)?;
        Ok(found.map(|(time, usd)| KnownPrice {
            usd,
            time,
            source: PriceSource::File,
        }))
    }

    /// The last answer of any aggregator that is a price.
    fn answer(&mut self, time: u64) -> Result<Option<KnownPrice>, QueryError> {
        if self.aggregators.is_empty() {
            return Ok(None);
        }
        let view = self.reader.view();
        let Some((block, _)) = view.block_at_or_before(time)? else {
            return Ok(None);
        };
        let Some(last) = view.first_log(block + 1)?.checked_sub(1) else {
            return Ok(None);
        };
        for answers in &mut self.aggregators {
            answers.list.seek(last)?;
        }
        for _ in 0..BAD_ANSWERS_MAX {
            let newest = self
                .aggregators
                .iter_mut()
                .max_by_key(|answers| answers.list.current());
            let Some((answers, ordinal)) = newest.and_then(|answers| {
                let ordinal = answers.list.current()?;
                Some((answers, ordinal))
            }) else {
                return Ok(None);
            };
            let decimals = answers.decimals;
            answers.list.step()?;
            if let Some(usd) = self.read(ordinal, decimals)? {
                return Ok(Some(KnownPrice {
                    usd,
                    time: view.block_of_log(ordinal)?.1.timestamp,
                    source: PriceSource::Feed,
                }));
            }
        }
        Err(QueryError::TimedOut)
    }

    /// The price that a log tells; `None` where it is none: zero, below zero, beyond all bounds, or another event.
    fn read(&mut self, ordinal: u64, decimals: u8) -> Result<Option<Usd>, QueryError> {
        let bodies = Units::opened(&mut self.bodies, &self.reader.view, Table::LogsByBlock);
        let log = bodies.log(&self.reader.view, ordinal, &mut Vec::new())?;
        let &[_, answer, _] = log.topics.as_slice() else {
            return Ok(None);
        };
        let answer = U256::from_be_bytes(answer.0);
        // A set sign bit is below zero.
        Ok(Some(answer)
            .filter(|answer| !answer.is_zero() && !answer.bit(255))
            .and_then(|answer| Usd::of_answer(answer, decimals)))
    }
}
