//! S2 and S3: prices of the native and the stable coin.

use serde::Serialize;

use crate::desk::answer::{Answer, Plan};
use crate::desk::caching::Reach;
use crate::desk::prices;
use crate::http::HttpError;

use super::days::{series_answer, take_days};
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
        let (now, before) = prices::now(snapshot)?;
        let body = TokenPrice {
            chain: snapshot.chain.as_str(),
            symbol: snapshot.reader.price_feeds().symbol.clone(),
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

/// S3: there is no limit of days.
pub(super) fn historical(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let asked = take_days(input)?;
    Ok(Plan::scan(move |snapshot| {
        let (covered, days) = prices::by_day(snapshot, asked.range)?;
        series_answer(snapshot, asked, covered, days, |(native, stable)| DayPrices {
            native: native.map(|usd| usd.to_string()),
            stable: stable.map(|usd| usd.to_string()),
        })
    }))
}
