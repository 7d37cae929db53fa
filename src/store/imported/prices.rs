//! Imported prices.

use super::Imported;
use crate::codec::imported::prices::{decode_price, price_key, price_time};
use crate::model::{Asset, Usd};
use crate::store::StoreError;

impl Imported {
    /// The last price of an asset dated at or before a time, and its date.
    pub fn price(&self, asset: Asset, at: u64) -> Result<Option<(u64, Usd)>, StoreError> {
        let mut found = None;
        self.rows(&price_key(asset, 0), &price_key(asset, at), true, |key, value| {
            found = Some((price_time(key)?, decode_price(value)?));
            Ok(false)
        })?;
        Ok(found)
    }
}
