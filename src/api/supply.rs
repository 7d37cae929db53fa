//! S1: the supply of the native coin.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::http::HttpError;
use crate::model::U256;

use super::input::Input;
use crate::desk::amounts::Unit;
use crate::desk::answer::{Answer, Plan};
use crate::desk::balances;
use crate::desk::caching::Reach;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Supply {
    total_supply: Box<RawValue>,
    circulating_supply: Box<RawValue>,
    chain: &'static str,
}

/// S1.
pub(super) fn coin_supply(_: &mut Input<'_>) -> Result<Plan, HttpError> {
    Ok(Plan::point(|snapshot| {
        let chain = snapshot.chain.as_str();
        balances::coins_in_circulation(snapshot, move |total, circulating| {
            let answer = Supply {
                total_supply: coins(total)?,
                circulating_supply: coins(circulating)?,
                chain,
            };
            Answer::json(&answer, Reach::Head)
        })
    }))
}

/// An amount as a JSON number in whole coins: exact, which no float is.
fn coins(wei: U256) -> Result<Box<RawValue>, HttpError> {
    RawValue::from_string(Unit::Coin.native(wei))
        .map_err(|error| HttpError::internal(format!("an amount is no number: {error}")))
}
