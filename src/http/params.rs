//! A reader of query strings that consumes.
//!
//! A parameter is taken out once, by its name and its form; the fault names the parameter. Keys that
//! the operation does not know are ignored, whatever they hold. An empty value is an absent one.

use std::borrow::Cow;
use std::collections::BTreeSet;

use alloy_primitives::{Address, B256};

use super::error::HttpError;
use super::parse::{Decimal, parse_address, parse_hash, parse_u64};

/// The query parameters of one request, restricted to the names its operation knows: at most two values of each, since of more
/// nothing else is said.
#[derive(Debug, Default)]
pub struct Params {
    pairs: Vec<(&'static str, Vec<u8>)>,
}

/// Raw value that does not decode: kept as a byte string no UTF-8 reader accepts.
const UNDECODABLE: &[u8] = &[0xff];

impl Params {
    /// Reads `query` (the part after `?`), keeping only the names in `known`.
    pub fn parse(query: &str, known: impl Fn(&str) -> Option<&'static str>) -> Self {
        let mut pairs = Vec::new();
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(key) = decode(key) else { continue };
            let Some(name) = std::str::from_utf8(&key).ok().and_then(&known) else {
                continue;
            };
            // What was given twice is a mistake, however often it comes after that. Nor is a long form then looked through for each of
            // its pairs.
            let given = |(other, _): &&(&str, Vec<u8>)| *other == name;
            if pairs.iter().filter(given).nth(1).is_some() {
                continue;
            }
            let value = decode(value).map_or_else(|| UNDECODABLE.to_vec(), Cow::into_owned);
            if !value.is_empty() {
                pairs.push((name, value));
            }
        }
        Self { pairs }
    }

    /// Adds the parameters of another query that are not given here.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        let given: BTreeSet<&str> = self.pairs.iter().map(|(name, _)| *name).collect();
        let more = other.pairs.into_iter().filter(|(name, _)| !given.contains(name));
        self.pairs.extend(more);
        self
    }

    /// Takes a parameter that may be given at most once.
    pub fn take(&mut self, name: &str) -> Result<Option<String>, HttpError> {
        self.take_or(name, || HttpError::invalid(name))
    }

    /// Whether a non-empty value was given and not taken yet.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.pairs.iter().any(|(key, _)| *key == name)
    }

    /// Takes a parameter that must be given exactly once.
    pub fn require(&mut self, name: &str) -> Result<String, HttpError> {
        self.take(name)?.ok_or_else(|| HttpError::missing(name))
    }

    /// Takes an unsigned decimal integer.
    pub fn take_u64(&mut self, name: &str) -> Result<Option<u64>, HttpError> {
        match self.take(name)? {
            None => Ok(None),
            Some(text) => parse_u64(&text).map(Some).ok_or_else(|| HttpError::invalid(name)),
        }
    }

    /// Takes an unsigned decimal integer that is said again.
    pub fn take_decimal(&mut self, name: &str) -> Result<Option<Decimal>, HttpError> {
        match self.take(name)? {
            None => Ok(None),
            Some(text) => Decimal::parse(&text)
                .map(Some)
                .ok_or_else(|| HttpError::invalid(name)),
        }
    }

    /// An unsigned decimal integer, left to be taken; `None` where something else is given, or nothing.
    #[must_use]
    pub fn decimal(&self, name: &str) -> Option<Decimal> {
        let (_, value) = self.pairs.iter().find(|(key, _)| *key == name)?;
        Decimal::parse(std::str::from_utf8(value).ok()?)
    }

    /// Takes an address; `fault` is the client text for a malformed one.
    pub fn take_address(&mut self, name: &str, fault: &'static str) -> Result<Option<Address>, HttpError> {
        self.take_parsed(name, fault, parse_address)
    }

    /// Takes a 32-byte hash; `fault` is the client text for a malformed one.
    pub fn take_hash(&mut self, name: &str, fault: &'static str) -> Result<Option<B256>, HttpError> {
        self.take_parsed(name, fault, parse_hash)
    }

    /// Takes comma-separated 32-byte hashes, blanks around commas allowed; empty when absent.
    pub fn take_hashes(&mut self, name: &str, fault: &'static str) -> Result<Vec<B256>, HttpError> {
        self.take_list(name, fault, parse_hash)
    }

    /// Takes comma-separated addresses, blanks around each allowed; empty when absent.
    pub fn take_addresses(&mut self, name: &str, fault: &'static str) -> Result<Vec<Address>, HttpError> {
        self.take_list(name, fault, |item| parse_address(item.trim_matches(' ')))
    }

    fn take_list<T>(
        &mut self,
        name: &str,
        fault: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, HttpError> {
        // Around the commas only: what stands before the first value or behind the last one is part of it.
        let list = |text: &str| {
            let last = text.matches(',').count();
            text.split(',')
                .enumerate()
                .map(|(place, item)| {
                    let item = if place > 0 {
                        item.trim_start_matches(' ')
                    } else {
                        item
                    };
                    parse(if place < last {
                        item.trim_end_matches(' ')
                    } else {
                        item
                    })
                })
                .collect::<Option<Vec<_>>>()
        };
        Ok(self.take_parsed(name, fault, list)?.unwrap_or_default())
    }

    /// Takes one of the named choices, exactly as spelled.
    pub fn take_choice<T: Copy>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, HttpError> {
        match self.take(name)? {
            None => Ok(None),
            Some(text) => choices
                .iter()
                .find(|(choice, _)| *choice == text)
                .map(|(_, value)| Some(*value))
                .ok_or_else(|| HttpError::invalid(name)),
        }
    }

    /// Takes `true` or `false`.
    pub fn take_bool(&mut self, name: &str) -> Result<Option<bool>, HttpError> {
        self.take_choice(name, &[("true", true), ("false", false)])
    }

    /// Takes a value by `parse`. Whatever is wrong with it is told by `fault`, undecodable bytes included.
    fn take_parsed<T>(
        &mut self,
        name: &str,
        fault: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, HttpError> {
        match self.take_or(name, || HttpError::bad_request(fault))? {
            None => Ok(None),
            Some(text) => parse(&text)
                .map(Some)
                .ok_or_else(|| HttpError::bad_request(fault)),
        }
    }

    /// Takes a value as text; `undecodable` is what is said of one that is none.
    pub fn take_or(
        &mut self,
        name: &str,
        undecodable: impl FnOnce() -> HttpError,
    ) -> Result<Option<String>, HttpError> {
        let Some(at) = self.pairs.iter().position(|(key, _)| *key == name) else {
            return Ok(None);
        };
        let (_, value) = self.pairs.remove(at);
        if self.contains(name) {
            return Err(HttpError::bad_request(format!("Duplicate parameter: {name}")));
        }
        String::from_utf8(value).map(Some).map_err(|_| undecodable())
    }
}

/// Percent-decodes a query component, `+` as a blank; `None` when an escape is malformed.
fn decode(text: &str) -> Option<Cow<'_, [u8]>> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let spaced = text.replace('+', " ");
    super::router::percent_decode(&spaced).map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["a", "b", "topic0", "flag"];

    fn params(query: &str) -> Params {
        Params::parse(query, |key| NAMES.into_iter().find(|name| *name == key))
    }

    fn text<T: std::fmt::Debug>(result: Result<T, HttpError>) -> String {
        result.unwrap_err().text().to_owned()
    }

    #[test]
    fn decodes_blanks_and_escapes() {
        assert_eq!(params("a=x+y%2Bz").take("a").unwrap().as_deref(), Some("x y+z"));
        assert_eq!(params("%61=1").take_u64("a").unwrap(), Some(1));
        assert_eq!(text(params("a=%ff").take("a")), "Invalid a parameter");
        assert_eq!(text(params("a=%4").take("a")), "Invalid a parameter");
        assert_eq!(text(params("a=%zz").take("a")), "Invalid a parameter");
    }

    #[test]
    fn empty_is_absent_and_unknown_is_ignored() {
        assert_eq!(params("a=&a&zz=%ff&%ff=1&&=").take("a").unwrap(), None);
        assert_eq!(text(params("a=").require("a")), "Missing required parameter: a");
    }

    #[test]
    fn duplicates_are_named() {
        assert_eq!(text(params("a=1&a=1").take("a")), "Duplicate parameter: a");
        assert_eq!(text(params("a=1&%61=2").take_u64("a")), "Duplicate parameter: a");
        assert_eq!(params("a=1&zz=1&zz=2").take_u64("a").unwrap(), Some(1));
    }

    #[test]
    fn what_is_given_over_and_over_is_kept_twice() {
        let long = ["a=1&", "b=2&flag=true&", "topic0=%ff&a=&"]
            .map(|pairs| pairs.repeat(10_000))
            .concat();
        let kept = |params: &Params| params.pairs.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        let mut given = params(&long);
        assert_eq!(
            kept(&given),
            ["a", "a", "b", "flag", "b", "flag", "topic0", "topic0"]
        );
        for name in NAMES {
            assert_eq!(text(given.take(name)), format!("Duplicate parameter: {name}"));
        }
        let both = params("b=3").or(params(&long));
        assert_eq!(kept(&both), ["b", "a", "a", "flag", "flag", "topic0", "topic0"]);
        // Nothing counts for nothing, however often it comes.
        assert_eq!(params("a=&a=&a=&a=1&a=").take_u64("a").unwrap(), Some(1));
    }

    #[test]
    fn what_is_given_wins_over_another_query() {
        let mut both = params("a=1").or(params("a=2&b=3&b=4"));
        assert_eq!(both.take_u64("a").unwrap(), Some(1));
        assert_eq!(text(both.take("b")), "Duplicate parameter: b");
    }

    #[test]
    fn typed_values() {
        assert_eq!(params("flag=true").take_bool("flag").unwrap(), Some(true));
        assert_eq!(
            text(params("flag=TRUE").take_bool("flag")),
            "Invalid flag parameter"
        );
        assert_eq!(params("a=99999999999999999999").take_u64("a"), Ok(Some(u64::MAX)));
        assert_eq!(text(params("a=1.5").take_u64("a")), "Invalid a parameter");
        let one = format!("0x{}", "11".repeat(32));
        let two = format!("0x{}", "22".repeat(32));
        let query = format!("topic0={one}+,+{two}");
        assert_eq!(params(&query).take_hashes("topic0", "bad").unwrap().len(), 2);
        for blank in [
            format!("+{one}"),
            format!("{one}+"),
            format!("{one},{two}+"),
            format!("+{one},{two}"),
        ] {
            assert_eq!(
                text(params(&format!("topic0={blank}")).take_hashes("topic0", "bad")),
                "bad"
            );
        }
        let address = format!("+0x{}+", "11".repeat(20));
        let given = params(&format!("a={address},{address}")).take_addresses("a", "bad");
        assert_eq!(given.unwrap().len(), 2);
        assert_eq!(
            text(params(&format!("topic0={one},")).take_hashes("topic0", "bad")),
            "bad"
        );
    }
}
