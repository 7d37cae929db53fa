//! Prices of the native and the stable coin (S2, S3), and of tokens.

use crate::http::HttpError;
use crate::model::{Address, Asset, Day, Usd};
use crate::query::{KnownPrice, Prices, Reader};

use super::answer::Snapshot;
use super::caching::Reach;
use super::days::{Covered, DayRange};
use super::faults::{PRICE_NOT_AVAILABLE, query_failed};

/// The price of the native coin at the indexed head, and the one known a day before.
pub(crate) fn now(snapshot: &Snapshot) -> Result<(KnownPrice, Option<KnownPrice>), HttpError> {
    let reader = &snapshot.reader;
    let head = reader.head_time().map_err(query_failed)?;
    let mut prices = reader.prices(Asset::Native).map_err(query_failed)?;
    let now = prices
        .at(head)
        .map_err(query_failed)?
        .ok_or_else(|| HttpError::not_found(PRICE_NOT_AVAILABLE))?;
    let before = match head.checked_sub(Day::SECONDS) {
        Some(before) => prices.at(before).map_err(query_failed)?,
        None => None,
    };
    Ok((now, before))
}

/// The price of a token at a time.
pub(crate) fn of_token(reader: &Reader, token: Address, time: u64) -> Result<Option<Usd>, HttpError> {
    let mut prices = reader.prices(Asset::Token(token)).map_err(query_failed)?;
    let known = prices.at(time).map_err(query_failed)?;
    Ok(known.map(|known| known.usd))
}

/// Prices of the native and the stable coin, in dollars.
pub(crate) type DayPrices = (Option<Usd>, Option<Usd>);

/// A day's prices are the last ones known at its end; each day costs a seek a feed.
pub(crate) fn by_day(
    snapshot: &Snapshot,
    range: DayRange,
) -> Result<(Covered, Vec<(Day, DayPrices)>), HttpError> {
    let reader = &snapshot.reader;
    let mut covered = range.cover(snapshot)?;
    // An import may change any day.
    covered.reach = Reach::Head;
    let mut native = reader.prices(Asset::Native).map_err(query_failed)?;
    let mut stable = reader.prices(Asset::Stable).map_err(query_failed)?;
    let at = |prices: &mut Prices<'_>, time| {
        let known = prices.at(time).map_err(query_failed)?;
        Ok::<_, HttpError>(known.map(|known| known.usd))
    };
    if at(&mut native, u64::MAX)?.is_none() && at(&mut stable, u64::MAX)?.is_none() {
        return Err(HttpError::not_found(PRICE_NOT_AVAILABLE));
    }
    let days = range.each(&covered, |day: Day| {
        // The day's last second.
        let end = u64::try_from(day.next().start() - 1).unwrap_or(0);
        Ok((at(&mut native, end)?, at(&mut stable, end)?))
    })?;
    Ok((covered, days))
}
