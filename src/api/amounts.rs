//! Amounts as text, in the unit that was asked for.

use crate::http::{HttpError, Params};
use crate::model::U256;

/// Decimals of the native coin.
const COIN_DECIMALS: usize = 18;

/// The unit of an amount (`unit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// The smallest: wei.
    Base,
    /// Whole coins, with an exact decimal fraction.
    Coin,
}

impl Unit {
    pub(super) const NAMES: &'static [&'static str] = &["base", "coin"];

    pub(super) fn take(params: &mut Params) -> Result<Self, HttpError> {
        let choices = [("base", Self::Base), ("coin", Self::Coin)];
        Ok(params.take_choice("unit", &choices)?.unwrap_or(Self::Base))
    }

    /// An amount of the native coin, given in wei.
    pub(super) fn native(self, wei: U256) -> String {
        match self {
            Self::Base => wei.to_string(),
            Self::Coin => decimal(wei, COIN_DECIMALS),
        }
    }
}

/// `amount` over 10 to the power of `decimals`: exact, without trailing zeros.
pub(super) fn decimal(amount: U256, decimals: usize) -> String {
    let digits = amount.to_string();
    let padded = format!("{digits:0>width$}", width = decimals + 1);
    let (whole, fraction) = padded.split_at(padded.len() - decimals);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let text = |amount: u64, decimals| decimal(U256::from(amount), decimals);
        assert_eq!(text(0, 18), "0");
        assert_eq!(text(1, 18), "0.000000000000000001");
        assert_eq!(text(1_500_000_000_000_000_000, 18), "1.5");
        assert_eq!(text(2_000_000_000_000_000_000, 18), "2");
        assert_eq!(text(1200, 2), "12");
        assert_eq!(text(1230, 2), "12.3");
        assert_eq!(text(7, 0), "7");
        let all = "115792089237316195423570985008687907853269984665640564039457.584007913129639935";
        assert_eq!(decimal(U256::MAX, 18), all);
    }
}
