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
        let number: usize = number.parse().map_err(|_| wrong())?;
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(wrong()),
        };
        number.checked_mul(1 << shift).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
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
    fn sizes_read_and_print() {
        for (text, bytes, printed) in [
            ("1GiB", 1 << 30, "1GiB"),
            ("512 mb", 512 << 20, "512MiB"),
            ("1000", 1000, "1000"),
            ("64k", 65536, "64KiB"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, printed));
        }
        for text in [
            "",
            "GiB",
            "-1",
            "1.5GiB",
            "1XiB",
            "99999999999999999999",
            "99999999999TiB",
        ] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }
}
