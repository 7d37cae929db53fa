//! S2: the price of the native coin.

use serde::Serialize;

use crate::http::HttpError;
use crate::model::Asset;

use super::answer::{Answer, Plan};
use super::caching::Reach;
use super::faults::{PRICE_NOT_AVAILABLE, query_failed};
use super::input::Input;

/// Seconds of a day.
const DAY: u64 = 86_400;

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
        let before = match head.checked_sub(DAY) {
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
