//! How long answers took: percentiles of all of them, none left out.

use std::time::Duration;

use serde::Serialize;

/// How long each of some answers took.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    nanoseconds: Vec<u64>,
}

/// Percentiles, milliseconds; each is a time that was measured (nearest rank). All zero where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half of the answers took at most this long.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
}

impl Latencies {
    /// Adds one.
    pub fn push(&mut self, took: Duration) {
        self.nanoseconds
            .push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds all of another.
    pub fn extend(&mut self, other: &Self) {
        self.nanoseconds.extend(&other.nanoseconds);
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.nanoseconds.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.nanoseconds.is_empty()
    }

    /// Their percentiles.
    #[must_use]
    pub fn percentiles(mut self) -> Percentiles {
        self.nanoseconds.sort_unstable();
        let count = self.nanoseconds.len();
        // The smallest time that so many of a hundred answers did not exceed.
        let at = |hundredths: usize| {
            let rank = (count * hundredths).div_ceil(100).max(1);
            let found = self.nanoseconds.get(rank - 1);
            found.map_or(0.0, |&nanoseconds| nanoseconds as f64 / 1e6)
        };
        Percentiles {
            p50: at(50),
            p90: at(90),
            p99: at(99),
            max: at(100),
        }
    }
}

/// A duration in the unit that suits it: `12.3 us`, `4.56 ms`, `1.23 s`; from milliseconds.
#[must_use]
pub fn duration(milliseconds: f64) -> String {
    // Three digits of what is shown in a unit are less than a thousand of it.
    let (figure, unit) = match milliseconds {
        ms if ms < 0.9995 => (ms * 1e3, "us"),
        ms if ms < 999.5 => (ms, "ms"),
        ms => (ms / 1e3, "s"),
    };
    format!("{} {unit}", three_digits(figure))
}

/// A rate or a count: `812`, `12.3 k`, `4.56 M`, `1.2 G`.
#[must_use]
pub fn count(figure: f64) -> String {
    match figure {
        figure if 0.0 < figure && figure < 9.95 && figure.fract() != 0.0 => format!("{figure:.1}"),
        figure if figure < 999.5 => format!("{figure:.0}"),
        figure if figure < 999.5e3 => format!("{} k", three_digits(figure / 1e3)),
        figure if figure < 999.5e6 => format!("{} M", three_digits(figure / 1e6)),
        figure => format!("{} G", three_digits(figure / 1e9)),
    }
}

/// So many of something: `1 row`, `2 rows`.
#[must_use]
pub fn so_many(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The same, and that they are others than expected: `1 row differs`, `2 rows differ`.
#[must_use]
pub fn differing(count: u64, what: &str) -> String {
    let verb = if count == 1 { "differs" } else { "differ" };
    format!("{} {verb}", so_many(count, what))
}

fn three_digits(figure: f64) -> String {
    match figure {
        figure if figure < 9.995 => format!("{figure:.2}"),
        figure if figure < 99.95 => format!("{figure:.1}"),
        figure => format!("{figure:.0}"),
    }
}

/// What is shown of a figure; `-` where there is none.
#[must_use]
pub fn or_none(figure: Option<f64>, show: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), show)
}

/// A ratio: `12.34`.
#[must_use]
pub fn ratio(figure: f64) -> String {
    format!("{figure:.2}")
}

/// The median of some figures; `None` of none.
#[must_use]
pub fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let upper = figures.len() / 2;
    let lower = figures.len().saturating_sub(1) / 2;
    match (figures.get(lower), figures.get(upper)) {
        (Some(lower), Some(upper)) => Some(f64::midpoint(*lower, *upper)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(milliseconds: impl IntoIterator<Item = u64>) -> Percentiles {
        let mut latencies = Latencies::default();
        for ms in milliseconds {
            latencies.push(Duration::from_millis(ms));
        }
        latencies.percentiles()
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        // In disorder, as they come.
        let found = of((1..=100).rev());
        let expected = Percentiles {
            p50: 50.0,
            p90: 90.0,
            p99: 99.0,
            max: 100.0,
        };
        assert_eq!(found, expected);
        // Of few, the slowest is the 99th percentile.
        let found = of([5, 1, 3]);
        assert_eq!((found.p50, found.p90, found.p99, found.max), (3.0, 5.0, 5.0, 5.0));
        assert_eq!(of([7]).p50, 7.0);
        assert_eq!(of([]), Percentiles::default());
    }

    #[test]
    fn one_outlier_of_a_thousand_is_the_maximum_only() {
        let found = of((0..999).map(|_| 1).chain([500]));
        assert_eq!((found.p99, found.max), (1.0, 500.0));
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(duration(0.0123), "12.3 us");
        assert_eq!(duration(4.5678), "4.57 ms");
        assert_eq!(duration(1234.0), "1.23 s");
        assert_eq!(count(812.4), "812");
        assert_eq!(count(12_345.0), "12.3 k");
        assert_eq!(count(4_560_000.0), "4.56 M");
        assert_eq!(count(123e9), "123 G");
        // Where they are rounded up.
        assert_eq!(duration(0.9996), "1.00 ms");
        assert_eq!(duration(0.9994), "999 us");
        assert_eq!(duration(999.7), "1.00 s");
        assert_eq!(duration(9.996), "10.0 ms");
        assert_eq!(count(999.7), "1.00 k");
        assert_eq!(count(999_600.0), "1.00 M");
        assert_eq!(count(99_960.0), "100 k");
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
        assert_eq!(or_none(median(Vec::new()), ratio), "-");
        assert_eq!(or_none(Some(0.5), ratio), "0.50");
    }
}
