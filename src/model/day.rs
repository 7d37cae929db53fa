//! Days of the UTC calendar.

use std::fmt;
use std::str::FromStr;

/// Days of 400 years, after which the calendar repeats.
const DAYS_OF_CYCLE: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

/// A UTC day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// Seconds of a day.
    pub const SECONDS: u64 = 86_400;

    /// The day of a Unix time in seconds.
    #[must_use]
    pub const fn of(unix: u64) -> Self {
        // A 64-bit number of seconds has less than 2^48 days.
        Self((unix / Self::SECONDS) as i64)
    }

    /// The day so many days after 1970-01-01.
    #[must_use]
    pub const fn from_number(days: i64) -> Self {
        Self(days)
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Its first second, Unix time.
    #[must_use]
    pub const fn start(self) -> i64 {
        self.0.saturating_mul(Self::SECONDS as i64)
    }

    /// The day after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Year, month and day of the month in the Gregorian calendar, carried on before its time.
    ///
    /// Years are counted from March here, so that the day that may be missing is the last one.
    #[must_use]
    pub const fn civil(self) -> (i64, u32, u32) {
        let days = self.0.saturating_add(DAYS_TO_EPOCH);
        let (cycle, day) = (days.div_euclid(DAYS_OF_CYCLE), days.rem_euclid(DAYS_OF_CYCLE));
        let year = (day - day / 1460 + day / 36_524 - day / (DAYS_OF_CYCLE - 1)) / 365;
        let of_year = day - (365 * year + year / 4 - year / 100);
        let march_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        };
        let year = year + cycle * 400 + (month <= 2) as i64;
        (year, month as u32, day as u32)
    }

    /// The day of a date; `None` for one that does not exist, and outside the years 1 to 9999.
    #[must_use]
    pub fn from_civil(year: i64, month: u32, day: u32) -> Option<Self> {
        if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 {
            return None;
        }
        let march_month = i64::from((month + 9) % 12);
        let march_year = year - i64::from(month <= 2);
        let of_year = (153 * march_month + 2) / 5 + i64::from(day) - 1;
        let leaps = march_year.div_euclid(4) - march_year.div_euclid(100) + march_year.div_euclid(400);
        let found = Self(365 * march_year + leaps + of_year - DAYS_TO_EPOCH);
        // A day behind the end of its month is another date.
        (found.civil() == (year, month, day)).then_some(found)
    }
}

/// As `yyyy-MM-dd`.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// Exactly `yyyy-MM-dd`, a date that exists.
impl FromStr for Day {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |part: Option<&[u8]>| {
            part?.iter().try_fold(0u32, |number, digit| {
                digit
                    .is_ascii_digit()
                    .then(|| number * 10 + u32::from(digit - b'0'))
            })
        };
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
            return Err(());
        }
        let year = number(bytes.get(..4)).ok_or(())?;
        let month = number(bytes.get(5..7)).ok_or(())?;
        let day = number(bytes.get(8..)).ok_or(())?;
        Self::from_civil(i64::from(year), month, day).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calendar counted out day by day.
    #[test]
    fn every_day_of_ten_thousand_years() {
        let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let first = Day::from_civil(1, 1, 1).unwrap();
        assert_eq!(first.number(), -719_162);
        let mut number = first.number();
        for year in 1..=9999 {
            let february = if leap(year) { 29 } else { 28 };
            let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, days) in (1..).zip(months) {
                for day in 1..=days {
                    let expected = Day::from_number(number);
                    assert_eq!(Day::from_civil(year, month, day), Some(expected));
                    assert_eq!(expected.civil(), (year, month, day));
                    number += 1;
                }
                assert_eq!(Day::from_civil(year, month, days + 1), None);
            }
        }
        assert_eq!(Day::from_number(number).civil(), (10_000, 1, 1));
        assert_eq!(Day::from_civil(10_000, 1, 1), None);
        assert_eq!(Day::from_civil(0, 12, 31), None);
    }

    #[test]
    fn days_of_times() {
        assert_eq!(Day::of(0).to_string(), "1970-01-01");
        assert_eq!(Day::of(86_399).to_string(), "1970-01-01");
        assert_eq!(Day::of(86_400).to_string(), "1970-01-02");
        assert_eq!(Day::of(1_438_269_988).to_string(), "2015-07-30");
        assert_eq!(Day::of(1_709_164_800).to_string(), "2024-02-29");
        assert_eq!(Day::of(1_709_164_800).start(), 1_709_164_800);
        assert_eq!(Day::of(253_402_300_799).to_string(), "9999-12-31");
        assert!(Day::of(u64::MAX).civil().0 > 500_000_000_000);
        assert!(Day::of(u64::MAX).next() > Day::of(u64::MAX));
    }

    #[test]
    fn dates_are_strict() {
        for (text, number) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2024-02-29", 19_782),
            ("2000-02-29", 11_016),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(text.parse(), Ok(Day::from_number(number)), "{text}");
            assert_eq!(Day::from_number(number).to_string(), text);
        }
        for text in [
            "",
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-00-01",
            "2024-13-01",
            "2024-01-00",
            "2024-01-32",
            "0000-01-01",
            "2024-1-1",
            "24-01-01",
            "2024/01/01",
            "2024-01-01 ",
            " 2024-01-01",
            "2024-01-01T00:00:00Z",
            "10000-01-01",
            "+024-01-01",
            "2024-0a-01",
            "2024-01--1",
            "20240101",
            "\u{ff12}024-01-01",
        ] {
            assert_eq!(text.parse::<Day>(), Err(()), "{text:?}");
        }
    }
}
