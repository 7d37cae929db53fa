//! JSON text read in one pass, straight into values.
//!
//! Answers of a node are megabytes of hex in strings. A reader goes through them once: a value is decoded where it
//! stands, and what nobody asks for is passed over by eight bytes at a time. What is rare (escapes, numbers that are no
//! plain integers, unknown values) is left to `serde_json`, from the place where it stands; nothing is taken that it
//! would refuse, but for what [`Reader::extent`] measures, which is read later.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::fmt;

/// Why a text is not read: what is wrong, and where.
#[derive(Debug)]
pub(super) struct Fault(Box<str>);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Fault {
    /// A fault in words.
    #[cold]
    pub(super) fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string().into())
    }

    /// The same, found in this field or at this place.
    #[cold]
    pub(super) fn within(self, place: impl fmt::Display) -> Self {
        Self::new(format_args!("{place}: {self}"))
    }
}

/// What can be read.
pub(super) trait FromJson<'a>: Sized {
    /// Reads the value that comes next.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault>;
}

/// `null` is nothing.
impl<'a, T: FromJson<'a>> FromJson<'a> for Option<T> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        if reader.null() {
            return Ok(None);
        }
        T::read(reader).map(Some)
    }
}

/// Reads a text that is one value.
pub(super) fn read<'a, T: FromJson<'a>>(text: &'a str) -> Result<T, Fault> {
    let mut reader = Reader::new(text);
    let value = T::read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// What items of lists may take for each byte of the text, and at least.
const ROOM_PER_BYTE: usize = 16;
const ROOM_LEAST: usize = 64 << 10;

/// Where reading stands in a text.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How many levels of a recursive value are being read.
    pub(super) level: u32,
    /// Bytes that items of lists may still take in memory: a short text must not become a large value.
    pub(super) room: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        let (at, level) = (0, 0);
        let room = ROOM_LEAST.saturating_add(text.len().saturating_mul(ROOM_PER_BYTE));
        Self {
            text,
            at,
            level,
            room,
        }
    }

    /// What is left of the text.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Goes on by so many bytes that were looked at.
    pub(super) const fn pass(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// The byte that the next token begins with.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    /// A fault at the next token.
    #[cold]
    pub(super) fn fault(&mut self, expected: &str) -> Fault {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(b'{') => "an object".to_owned(),
            Some(b'[') => "an array".to_owned(),
            Some(b'"') => "a string".to_owned(),
            Some(b't' | b'f' | b'n') => "a word".to_owned(),
            Some(b'-' | b'0'..=b'9') => "a number".to_owned(),
            // Not shown: an answer that is no JSON may tell the URL that it was asked at.
            Some(_) => "something else".to_owned(),
        };
        Fault::new(format_args!(
            "expected {expected}, found {found} at byte {}",
            self.at
        ))
    }

    /// Takes this byte if the next token begins with it.
    #[inline]
    fn takes(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Nothing may follow.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("the end")),
        }
    }

    /// Takes a `null`.
    #[inline]
    pub(super) fn null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.literal(b"null")
    }

    fn literal(&mut self, literal: &[u8]) -> bool {
        let found = self.rest().starts_with(literal);
        self.at += if found { literal.len() } else { 0 };
        found
    }

    /// Takes `true` or `false`.
    pub(super) fn boolean(&mut self) -> Option<bool> {
        match self.peek() {
            Some(b't') if self.literal(b"true") => Some(true),
            Some(b'f') if self.literal(b"false") => Some(false),
            _ => None,
        }
    }

    /// An object, each value of which is read by `field`.
    #[inline]
    pub(super) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &str) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if !self.takes(b'{') {
            return Err(self.fault("an object"));
        }
        if self.takes(b'}') {
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.fault("a key"));
            }
            let key = self.string()?;
            if !self.takes(b':') {
                return Err(self.fault("`:`"));
            }
            field(self, &key)?;
            if self.takes(b'}') {
                return Ok(());
            }
            if !self.takes(b',') {
                return Err(self.fault("`,` or `}`"));
            }
        }
    }

    /// An array, each item of which is read by `item`; errors name its place.
    #[inline]
    pub(super) fn array(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if !self.takes(b'[') {
            return Err(self.fault("an array"));
        }
        if self.takes(b']') {
            return Ok(());
        }
        let mut place = 0_usize;
        loop {
            item(self).map_err(|fault| fault.within(format_args!("[{place}]")))?;
            place += 1;
            if self.takes(b']') {
                return Ok(());
            }
            if !self.takes(b',') {
                return Err(self.fault("`,` or `]`"));
            }
        }
    }

    /// A string, which is copied only where it has escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("a string"));
        }
        let begin = self.at + 1;
        if self.takes_plain_string() {
            let text = self.text.get(begin..self.at - 1);
            return Ok(Cow::Borrowed(text.unwrap_or_default()));
        }
        self.by_serde::<String>().map(Cow::Owned)
    }

    /// A value as `serde_json` reads it.
    #[cold]
    pub(super) fn by_serde<T: Deserialize<'a>>(&mut self) -> Result<T, Fault> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<T>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => Err(Fault::new(format_args!("{error}, counted from byte {}", self.at))),
            None => Err(self.fault("a value")),
        }
    }

    /// An integer from 0 on that is written plainly; `None` leaves any other value where it is.
    pub(super) fn integer(&mut self) -> Option<u64> {
        self.peek();
        let rest = self.rest();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let goes_on = matches!(rest.get(digits), Some(b'.' | b'e' | b'E'));
        if digits == 0 || goes_on || (1 < digits && rest.first() == Some(&b'0')) {
            return None;
        }
        let number = std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()?;
        self.at += digits;
        Some(number)
    }

    /// Passes over a value, which must be one.
    pub(super) fn skip(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'"') if self.takes_plain_string() => Ok(()),
            _ if self.null() || self.boolean().is_some() => Ok(()),
            // Half of a surrogate pair is no text, and passed over all the same.
            _ => self.by_serde::<IgnoredAny>().map(drop),
        }
    }

    /// The text of the value that comes next, of which only strings and brackets are looked at: whoever reads it finds
    /// what is wrong with it.
    pub(super) fn extent(&mut self) -> Result<&'a str, Fault> {
        let (first, begin) = (self.peek(), self.at);
        match first {
            Some(b'"') => self.pass_string()?,
            Some(b'{' | b'[') => self.pass_brackets()?,
            Some(_) => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                self.at += self.rest().iter().take_while(|byte| !is_end(byte)).count();
            }
            None => return Err(self.fault("a value")),
        }
        let text = self.text.get(begin..self.at).unwrap_or_default();
        if text.is_empty() {
            return Err(self.fault("a value"));
        }
        Ok(text)
    }

    /// Takes a string without escapes; its opening quote comes next.
    fn takes_plain_string(&mut self) -> bool {
        let length = 1 + plain_length(self.rest().get(1..).unwrap_or_default());
        let is_plain = self.rest().get(length) == Some(&b'"');
        self.at += if is_plain { length + 1 } else { 0 };
        is_plain
    }

    fn pass_string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            self.at += plain_length(self.rest());
            match self.rest().first() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                // The character after it may be a quote; it is one byte in any case that is right.
                Some(b'\\') if self.rest().get(1).is_some_and(u8::is_ascii) => self.at += 2,
                Some(_) => return Err(Fault::new(format_args!("a string is broken at byte {}", self.at))),
                None => return Err(self.fault("the end of a string")),
            }
        }
    }

    fn pass_brackets(&mut self) -> Result<(), Fault> {
        let mut depth = 0_usize;
        loop {
            match self.rest().first() {
                Some(b'"') => {
                    self.pass_string()?;
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') => depth = depth.saturating_sub(1),
                Some(_) => {}
                None => return Err(self.fault("the end of a value")),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

const ONES: u64 = u64::MAX / 255;
const HIGHS: u64 = ONES << 7;

/// How many bytes there are before the first that ends a string or is more than itself in it: a quote, a backslash, a
/// control character. Found by words of eight bytes.
fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & HIGHS;
        let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        // What is found too much stands behind what is found rightly: a borrow goes upwards.
        let found = is(b'"') | is(b'\\') | below(word, 0x20);
        if found != 0 {
            return place * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    let stops = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let before = rest.iter().position(stops).unwrap_or(rest.len());
    words.len() * 8 + before
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
