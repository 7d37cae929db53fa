//! Prices: exact decimals of US dollars, what they are of, and where they come from.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{U512, address};

use super::{Address, B256, ForkRules, U256};

/// Places after the point that are kept at most.
const PLACES_MAX: u32 = 36;

/// An exact decimal of US dollars, zero or more: at most 38 significant digits, at most 36 of them after the point.
///
/// There is one form of each value, so that equal prices are equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Usd {
    /// Without trailing zeros, unless `places` is 0.
    mantissa: u128,
    places: u8,
}

impl Usd {
    /// `mantissa` with the point `places` digits before its end; `None` where that is beyond the bounds.
    #[must_use]
    pub const fn new(mut mantissa: u128, mut places: u32) -> Option<Self> {
        if mantissa == 0 {
            return Some(Self {
                mantissa: 0,
                places: 0,
            });
        }
        while places > 0 && mantissa.is_multiple_of(10) {
            mantissa /= 10;
            places -= 1;
        }
        if places > PLACES_MAX || mantissa.ilog10() >= 38 {
            return None;
        }
        Some(Self {
            mantissa,
            places: places as u8,
        })
    }

    /// What an aggregator answered, with so many decimals; `None` where that is beyond the bounds.
    #[must_use]
    pub fn of_answer(mut answer: U256, decimals: u8) -> Option<Self> {
        let (mut places, ten) = (u32::from(decimals), U256::from(10));
        while places > 0 && !answer.is_zero() && (answer % ten).is_zero() {
            answer /= ten;
            places -= 1;
        }
        Self::new(u128::try_from(answer).ok()?, places)
    }

    /// The change from `then` to this price in percent, two decimals, half-up; `None` from nothing.
    #[must_use]
    pub fn change_percent_from(self, then: Self) -> Option<String> {
        let ten = U512::from(10);
        // Both in units of the smaller one's last place.
        let now_units = U512::from(self.mantissa) * ten.pow(U512::from(then.places));
        let then_units = U512::from(then.mantissa) * ten.pow(U512::from(self.places));
        if then_units.is_zero() {
            return None;
        }
        let falls = now_units < then_units;
        let moved = now_units.abs_diff(then_units) * U512::from(10_000);
        let hundredths = (moved * U512::from(2) + then_units) / (then_units * U512::from(2));
        let (whole, rest) = (hundredths / U512::from(100), hundredths % U512::from(100));
        let sign = if falls && !hundredths.is_zero() { "-" } else { "" };
        Some(format!("{sign}{whole}.{:02}", rest.to::<u8>()))
    }

    /// All digits as an integer.
    #[must_use]
    pub const fn mantissa(self) -> u128 {
        self.mantissa
    }

    /// How many of the digits lie after the point.
    #[must_use]
    pub const fn places(self) -> u8 {
        self.places
    }
}

/// Without trailing zeros and without an exponent.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = usize::from(self.places);
        let digits = format!("{:0width$}", self.mantissa, width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        f.write_str(whole)?;
        if places > 0 {
            write!(f, ".{fraction}")?;
        }
        Ok(())
    }
}

/// Decimal as written, also with an exponent (`1.5e-7`); the error says what is wrong.
impl FromStr for Usd {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const NO_NUMBER: &str = "the price is not a decimal number";
        const TOO_LONG: &str =
            "the price has more than 38 significant digits or more than 36 places after the point";
        if text.starts_with('-') {
            return Err("the price is negative");
        }
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => {
                let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(NO_NUMBER);
                }
                (number, exponent.parse::<i32>().map_err(|_| TOO_LONG)?)
            }
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let point = number.len() > whole.len();
        // As in JSON: `00012` is more likely cut off than meant.
        if whole.len() > 1 && whole.starts_with('0') {
            return Err("the price has leading zeros");
        }
        if whole.is_empty() || (point && fraction.is_empty()) {
            return Err(NO_NUMBER);
        }
        let (mut mantissa, mut places) = (0u128, -i64::from(exponent));
        // Zeros that may turn out to be trailing ones are held back.
        let mut zeros = 0u32;
        for (byte, after) in whole
            .bytes()
            .map(|byte| (byte, 0))
            .chain(fraction.bytes().map(|byte| (byte, 1)))
        {
            if !byte.is_ascii_digit() {
                return Err(NO_NUMBER);
            }
            places += after;
            if byte == b'0' {
                zeros += u32::from(mantissa > 0);
                continue;
            }
            let shift = 10u128.checked_pow(zeros + 1).ok_or(TOO_LONG)?;
            zeros = 0;
            mantissa = mantissa
                .checked_mul(shift)
                .and_then(|shifted| shifted.checked_add(u128::from(byte - b'0')))
                .ok_or(TOO_LONG)?;
        }
        if mantissa == 0 {
            return Self::new(0, 0).ok_or(TOO_LONG);
        }
        places -= i64::from(zeros);
        if places < 0 {
            let shift = u32::try_from(-places)
                .ok()
                .and_then(|more| 10u128.checked_pow(more));
            mantissa = shift
                .and_then(|shift| mantissa.checked_mul(shift))
                .ok_or(TOO_LONG)?;
            places = 0;
        }
        let places = u32::try_from(places).map_err(|_| TOO_LONG)?;
        Self::new(mantissa, places).ok_or(TOO_LONG)
    }
}

/// What a price is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asset {
    /// The chain's own coin.
    Native,
    /// The stable coin that the operator means.
    Stable,
    /// A token, by its contract.
    Token(Address),
}

/// Who told a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceSource {
    /// An aggregator's event on the chain.
    Feed,
    /// An imported file.
    File,
}

impl PriceSource {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::File => "file",
        }
    }
}

/// The contracts whose answers are the prices of native and stable coin, and what the native coin is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceFeeds {
    /// Symbol of the native coin.
    pub symbol: String,
    /// Aggregators of the native coin, or proxies of them.
    pub native: Vec<Address>,
    /// Those of the stable coin.
    pub stable: Vec<Address>,
}

impl Default for PriceFeeds {
    fn default() -> Self {
        Self {
            symbol: "ETH".to_owned(),
            native: Vec::new(),
            stable: Vec::new(),
        }
    }
}

impl PriceFeeds {
    /// The feeds of the chain with this id and genesis hash, where it is well known: Chainlink's ETH / USD and USDC / USD.
    ///
    /// Of Ethereum mainnet the aggregators behind the proxies are named too (`phaseAggregators(1)` and on), so
    /// that no node needs to be asked for them.
    #[must_use]
    pub fn well_known(chain_id: u64, genesis_hash: B256) -> Self {
        let known = ForkRules::well_known(chain_id, genesis_hash);
        let (native, stable) = match known.map(|forks| forks.chain_id) {
            Some(1) => (MAINNET_NATIVE, MAINNET_STABLE),
            Some(11_155_111) => (SEPOLIA_NATIVE, SEPOLIA_STABLE),
            _ => return Self::default(),
        };
        Self {
            native: native.to_vec(),
            stable: stable.to_vec(),
            ..Self::default()
        }
    }
}

/// ETH / USD: the proxy, then its aggregators of phases 1 to 7.
const MAINNET_NATIVE: &[Address] = &[
    address!("5f4ec3df9cbd43714fe2740f5e3616155c5b8419"),
    address!("f79d6afbb6da890132f9d7c355e3015f15f3406f"),
    address!("b103ede8acd6f0c106b7a5772e9d24e34f5ebc2c"),
    address!("00c7a37b03690fb9f41b5c5af8131735c7275446"),
    address!("d3fcd40153e56110e6eeae13e12530e26c9cb4fd"),
    address!("37bc7498f4ff12c19678ee8fe19d713b87f6a9e6"),
    address!("e62b71cf983019bff55bc83b48601ce8419650cc"),
    address!("7d4e742018fb52e48b08be73d041c18b21de6fb5"),
];

/// USDC / USD: the proxy, then its aggregators of phases 1 to 3.
const MAINNET_STABLE: &[Address] = &[
    address!("8fffffd4afb6115b954bd326cbe7b4ba576818f6"),
    address!("3b15a92872435c01c27201aae0968839fb45217d"),
    address!("789190466e21a8b78b8027866cbbdc151542a26c"),
    address!("c9e1a09622afdb659913fefe800feae5dbbfe9d7"),
];

const SEPOLIA_NATIVE: &[Address] = &[address!("694aa1769357215de4fac081bf1f309adc325306")];
const SEPOLIA_STABLE: &[Address] = &[address!("a2f78ab2355fe2f984d808b5cee7fd0a93d5270e")];

/// What the operator states of prices; what is `None` is as it is known of the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedPrices {
    /// Symbol of the native coin.
    pub symbol: Option<String>,
    /// Feeds of the native coin.
    pub native: Option<Vec<Address>>,
    /// Feeds of the stable coin.
    pub stable: Option<Vec<Address>>,
}

impl StatedPrices {
    /// The feeds of the chain with this id and genesis hash.
    #[must_use]
    pub fn on_chain(&self, chain_id: u64, genesis_hash: B256) -> PriceFeeds {
        let known = PriceFeeds::well_known(chain_id, genesis_hash);
        PriceFeeds {
            symbol: self.symbol.clone().unwrap_or(known.symbol),
            native: self.native.clone().unwrap_or(known.native),
            stable: self.stable.clone().unwrap_or(known.stable),
        }
    }
}

/// What a node told of a contract that is configured as a feed, or of an aggregator that such a one names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedFacts {
    /// Decimals of its answers.
    pub decimals: Option<u8>,
    /// The aggregators that it stands or stood for; none where it is one itself.
    pub aggregators: Vec<Address>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn usd(text: &str) -> Result<String, &'static str> {
        text.parse::<Usd>().map(|usd| usd.to_string())
    }

    #[test]
    fn decimals_are_exact_and_have_one_form() {
        for (text, expected) in [
            ("0", "0"),
            ("0.000", "0"),
            ("0e99999", "0"),
            ("1", "1"),
            ("1800.00", "1800"),
            ("1800", "1800"),
            ("0.1", "0.1"),
            ("1.5e-7", "0.00000015"),
            ("1.5E+3", "1500"),
            ("1e0", "1"),
            ("100e-2", "1"),
            (
                "0.000000000000000000000000000000000001",
                "0.000000000000000000000000000000000001",
            ),
            (
                "99999999999999999999999999999999999999",
                "99999999999999999999999999999999999999",
            ),
            // Zeros at the end cost nothing, however many.
            ("1.00000000000000000000000000000000000000000000000000", "1"),
        ] {
            assert_eq!(usd(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "-1",
            "-0",
            "+1",
            ".5",
            "5.",
            ".",
            "1.2.3",
            "000",
            "01.50",
            "00012",
            "00e5",
            "1,5",
            "1 000",
            "abc",
            "NaN",
            "inf",
            "0x10",
            "1e",
            "1e+",
            "1e1.5",
            "e5",
            "$5",
            "1_0",
            "\u{ff11}",
            "100000000000000000000000000000000000000",
            "0.0000000000000000000000000000000000001",
            "1e38",
            "1e-37",
            "1e999999999999",
            "123456789012345678901234567890.123456789",
        ] {
            assert!(usd(text).is_err(), "{text}");
        }
    }

    #[test]
    fn answers_of_aggregators() {
        let answer =
            |number: u64, decimals| Usd::of_answer(U256::from(number), decimals).map(|usd| usd.to_string());
        assert_eq!(answer(335_172_810_074, 8).as_deref(), Some("3351.72810074"));
        assert_eq!(answer(100_000_000, 8).as_deref(), Some("1"));
        assert_eq!(answer(7, 0).as_deref(), Some("7"));
        assert_eq!(answer(7, 255), None);
        assert_eq!(Usd::of_answer(U256::MAX, 8), None);
        let ether = U256::from(10).pow(U256::from(40));
        assert_eq!(
            Usd::of_answer(ether, 40).map(|usd| usd.to_string()).as_deref(),
            Some("1")
        );
    }

    #[test]
    fn changes_are_exact() {
        for (then, now, expected) in [
            ("100", "100", Some("0.00")),
            ("100", "101.005", Some("1.01")),
            ("100", "101.00499999999999999999", Some("1.00")),
            ("100", "98.995", Some("-1.01")),
            ("100", "99.995", Some("-0.01")),
            ("100", "99.9951", Some("0.00")),
            ("3", "1", Some("-66.67")),
            (
                "0.00000000000000000000000000000000001",
                "1",
                Some("9999999999999999999999999999999999900.00"),
            ),
            ("1", "0", Some("-100.00")),
            ("0", "1", None),
            ("0", "0", None),
        ] {
            let [then, now] = [then, now].map(|text| text.parse::<Usd>().unwrap());
            assert_eq!(now.change_percent_from(then).as_deref(), expected, "{then} {now}");
        }
        let [largest, smallest] = [Usd::new(10u128.pow(38) - 1, 0), Usd::new(1, 36)].map(Option::unwrap);
        assert!(largest.change_percent_from(smallest).is_some());
        assert_eq!(smallest.change_percent_from(largest).as_deref(), Some("-100.00"));
    }

    proptest! {
        #[test]
        fn texts_come_back(mantissa in 0u128..10u128.pow(38), places in 0u32..=36) {
            let usd = Usd::new(mantissa, places).unwrap();
            let text = usd.to_string();
            prop_assert_eq!(text.parse::<Usd>(), Ok(usd));
            prop_assert!(!text.contains('.') || !text.ends_with('0'), "{}", text);
            let padded = format!("{mantissa}e-{places}");
            prop_assert_eq!(padded.parse::<Usd>(), Ok(usd));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.eE+-]{0,50}") {
            if let Ok(usd) = text.parse::<Usd>() {
                prop_assert_eq!(usd.to_string().parse::<Usd>(), Ok(usd));
            }
        }
    }
}
