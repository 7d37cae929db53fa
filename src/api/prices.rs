//! S2 and S3: prices of the native and the stable coin.

use serde::Serialize;

use crate::http::HttpError;
use crate::model::{Asset, Day};
use crate::query::Prices;

use super::answer::{Answer, Plan};
use super::caching::Reach;
use super::days::DayRange;
use super::faults::{PRICE_NOT_AVAILABLE, query_failed};
use super::input::Input;

#[derive(Serialize)]
struct TokenPrice {
    chain: &'static str,
    symbol: String,
    #[serde(rename = "priceUSD")]
    price_usd: String,
    #[serde(rename = "change24h_Percent")]
    change_24h_percent: Option<String>,
    timestamp: String,
    source: &'static str,
}

/// S2.
pub(super) fn token_price(_: &mut Input<'_>) -> Result<Plan, HttpError> {
    Ok(Plan::point(move |snapshot| {
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
        let body = TokenPrice {
            chain: snapshot.chain.as_str(),
            symbol: reader.price_feeds().symbol.clone(),
            price_usd: now.usd.to_string(),
            change_24h_percent: before.and_then(|before| now.usd.change_percent_from(before.usd)),
            timestamp: now.time.to_string(),
            source: now.source.as_str(),
        };
        Answer::json(&body, Reach::Head)
    }))
}

#[derive(Serialize)]
struct DayPrices {
    #[serde(rename = "nativeCoinPrice_USD")]
    native: Option<String>,
    #[serde(rename = "stableCoinPrice_USD")]
    stable: Option<String>,
}

/// S3: a day's price is the last one known at its end; there is no limit of days, and each costs a seek a feed.
pub(super) fn historical(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let range = DayRange::take(input)?;
    Ok(Plan::scan(move |snapshot| {
        let reader = &snapshot.reader;
        let mut covered = range.cover(snapshot)?;
        // An import may change any day.
        covered.reach = Reach::Head;
        let mut native = reader.prices(Asset::Native).map_err(query_failed)?;
        let mut stable = reader.prices(Asset::Stable).map_err(query_failed)?;
        let at = |prices: &mut Prices<'_>, time| {
            let known = prices.at(time).map_err(query_failed)?;
            Ok::<_, HttpError>(known.map(|known| known.usd.to_string()))
        };
        if at(&mut native, u64::MAX)?.is_none() && at(&mut stable, u64::MAX)?.is_none() {
            return Err(HttpError::not_found(PRICE_NOT_AVAILABLE));
        }
        range.answer(snapshot, covered, |day: Day| {
            // The day's last second.
            let end = u64::try_from(day.next().start() - 1).unwrap_or(0);
            Ok(DayPrices {
                native: at(&mut native, end)?,
                stable: at(&mut stable, end)?,
            })
        })
    }))
}
