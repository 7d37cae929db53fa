//! Sizes of memory as people write them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes: `512MiB`, `1GiB`, `64k`, `1000000`. Units are powers of 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub usize);

impl ByteSize {
    /// The size, unless it is below `least`.
    pub(super) fn at_least(self, least: Self) -> Result<Self, String> {
        if self.0 < least.0 {
            return Err(format!(
                "{self} is below the least, {least}; a number without a unit counts bytes"
            ));
        }
        Ok(self)
    }

    /// The size, unless it is above `most`.
    pub(super) fn at_most(self, most: Self) -> Result<Self, String> {
        if self.0 > most.0 {
            return Err(format!(
                "{self} is above the most, {most}: no machine has that much memory"
            ));
        }
        Ok(self)
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a size such as 512MiB or 2GiB");
        let trimmed = text.trim();
        let digits = trimmed
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        if number.is_empty() {
            return Err(wrong());
        }
        // More than can be counted is more than any bound.
        let number: usize = number.parse().unwrap_or(usize::MAX);
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            "p" | "pb" | "pib" => 50,
            "e" | "eb" | "eib" => 60,
            _ => return Err(wrong()),
        };
        Ok(Self(number.saturating_mul(1 << shift)))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == usize::MAX {
            return f.write_str("more than can be counted");
        }
        for (shift, unit) in [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 > 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_without_its_unit_is_not_taken_for_little_memory() {
        let least = ByteSize(1 << 20);
        assert_eq!(ByteSize(1 << 20).at_least(least), Ok(least));
        assert_eq!(
            ByteSize(512).at_least(least),
            Err("512 is below the least, 1MiB; a number without a unit counts bytes".to_owned())
        );
    }

    #[test]
    fn no_size_is_above_what_machines_have() {
        let most = ByteSize(4 << 40);
        assert_eq!(most.at_most(most), Ok(most));
        assert_eq!(
            ByteSize(64 << 40).at_most(most),
            Err("64TiB is above the most, 4TiB: no machine has that much memory".to_owned())
        );
    }

    #[test]
    fn sizes_read_and_print() {
        for (text, bytes, printed) in [
            ("1GiB", 1 << 30, "1GiB"),
            ("512 mb", 512 << 20, "512MiB"),
            ("1000", 1000, "1000"),
            ("64k", 65536, "64KiB"),
            ("64 TiB", 64 << 40, "64TiB"),
            ("16PiB", 16 << 50, "16PiB"),
            ("16EiB", usize::MAX, "more than can be counted"),
            ("99999999999TiB", usize::MAX, "more than can be counted"),
            ("99999999999999999999", usize::MAX, "more than can be counted"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, printed));
        }
        for text in ["", "GiB", "-1", "1.5GiB", "1XiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }
}
