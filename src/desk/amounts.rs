//! Amounts as text, in the unit that was asked for.

use crate::http::{HttpError, Params};
use crate::model::U256;

/// Decimals of the native coin.
const COIN_DECIMALS: usize = 18;

/// The unit of an amount (`unit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The smallest: wei.
    Base,
    /// Whole coins, with an exact decimal fraction.
    Coin,
}

impl Unit {
    pub(crate) const NAMES: &'static [&'static str] = &["base", "coin"];

    pub(crate) fn take(params: &mut Params) -> Result<Self, HttpError> {
        let choices = [("base", Self::Base), ("coin", Self::Coin)];
        Ok(params.take_choice("unit", &choices)?.unwrap_or(Self::Base))
    }

    /// An amount of a token with `decimals`; whole coins of one that does not tell them are nothing to ask for.
    pub(crate) fn token(self, amount: U256, decimals: Option<u8>) -> Result<String, HttpError> {
        match (self, decimals) {
            (Self::Base, _) => Ok(amount.to_string()),
            (Self::Coin, Some(decimals)) => Ok(decimal(amount, usize::from(decimals))),
            (Self::Coin, None) => Err(HttpError::invalid("unit")),
        }
    }

    /// An amount of the native coin, given in wei.
    pub(crate) fn native(self, wei: U256) -> String {
        match self {
            Self::Base => wei.to_string(),
            Self::Coin => decimal(wei, COIN_DECIMALS),
        }
    }
}

/// `amount` over 10 to the power of `decimals`: exact, without trailing zeros.
pub(crate) fn decimal(amount: U256, decimals: usize) -> String {
    let digits = amount.to_string();
    let padded = format!("{digits:0>width$}", width = decimals + 1);
    let (whole, fraction) = padded.split_at(padded.len() - decimals);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

/// `sum` over `count`, rounded half up; `None` over nothing.
pub(crate) fn mean(sum: U256, count: U256) -> Option<U256> {
    let (whole, rest) = (sum.checked_div(count)?, sum.checked_rem(count)?);
    Some(if rest >= count - rest {
        whole + U256::ONE
    } else {
        whole
    })
}

/// `amount` over 10 to the power of `decimals`, with exactly so many decimals.
pub(crate) fn fixed(amount: U256, decimals: usize) -> String {
    let digits = format!(
        "{amount:0>width$}",
        amount = amount.to_string(),
        width = decimals + 1
    );
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    format!("{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded_half_up() {
        let text = |sum: u64, count: u64| mean(U256::from(sum), U256::from(count)).map(|mean| fixed(mean, 2));
        assert_eq!(text(0, 0), None);
        assert_eq!(text(5, 0), None);
        assert_eq!(text(0, 7).as_deref(), Some("0.00"));
        assert_eq!(text(4, 3).as_deref(), Some("0.01"));
        assert_eq!(text(3, 2).as_deref(), Some("0.02"));
        assert_eq!(text(5, 2).as_deref(), Some("0.03"));
        assert_eq!(text(7, 3).as_deref(), Some("0.02"));
        assert_eq!(text(10_000, 1).as_deref(), Some("100.00"));
        assert_eq!(text(123_456, 1).as_deref(), Some("1234.56"));
        assert_eq!(mean(U256::MAX, U256::MAX), Some(U256::ONE));
        assert_eq!(mean(U256::MAX - U256::ONE, U256::MAX), Some(U256::ONE));
        assert_eq!(mean(U256::MAX, U256::from(2)), Some((U256::MAX >> 1) + U256::ONE));
    }

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
