//! A result in the answer that it came in.

use crate::node::error::NodeError;
use crate::node::reader::Reader;
use serde_json::value::RawValue;
use std::ops::Range;

/// The text of a result, kept where it was received: results are megabytes, and a copy of each is a pass over it.
///
/// Brackets and strings of an object or an array are known to be paired; that all of it is JSON, whoever reads it finds.
#[derive(Clone, Debug)]
pub struct ResultText {
    answer: String,
    place: Range<usize>,
}

impl ResultText {
    /// The part of `answer` that is at `place`.
    pub(super) const fn within(answer: String, place: Range<usize>) -> Self {
        Self { answer, place }
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.answer.get(self.place.clone()).unwrap_or_default()
    }

    /// The text as JSON; fails where it is none.
    pub(in crate::node) fn checked(&self, method: &'static str) -> Result<Box<RawValue>, NodeError> {
        RawValue::from_string(self.get().to_owned()).map_err(|error| malformed(method, error))
    }

    /// Fails where the text is no JSON.
    pub(in crate::node) fn check(&self, method: &'static str) -> Result<(), NodeError> {
        let mut reader = Reader::new(self.get());
        let read = reader.skip().and_then(|()| reader.end());
        read.map_err(|fault| malformed(method, fault))
    }
}

fn malformed(method: &'static str, why: impl std::fmt::Display) -> NodeError {
    NodeError::Malformed {
        method,
        reason: why.to_string(),
    }
}

impl From<Box<RawValue>> for ResultText {
    fn from(value: Box<RawValue>) -> Self {
        let answer = String::from(Box::<str>::from(value));
        let place = 0..answer.len();
        Self { answer, place }
    }
}
