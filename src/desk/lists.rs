//! What all lists share: which page is meant, and the shape of their text.

use std::str::FromStr;

use serde::Serialize;

use crate::http::header::HeaderValue;
use crate::http::{Decimal, HttpError, Params, Request, percent_decode, prefers};
use crate::json::object::Object;
use crate::model::{BlockRange, ChainName};
use crate::query::{KeyPart, ListQuery, Page, RowCursor};

use super::answer::{Answer, Extra, Snapshot, X_BALANCE_SOURCE};
use super::caching::Reach;
use super::frames::{ListFrames, RowSource};

/// Most rows of a page, and what an absent `offset` means.
pub(crate) const OFFSET_MAX: u64 = 10_000;

/// Most rows of a short page.
const SHORT_MAX: u64 = 100;

/// How a list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A JSON object with the list under a name.
    Object,
    /// One item a line, without the object (`application/x-ndjson`).
    Lines,
}

impl Shape {
    /// What the client accepts.
    pub(crate) fn wanted(request: &Request) -> Self {
        if prefers(request.headers(), "application/x-ndjson", "application/json") {
            Self::Lines
        } else {
            Self::Object
        }
    }
}

/// The answer that is a list at hand, never long: `body` whole, or the `items` in it alone.
pub(crate) fn whole_list<T: Serialize>(
    shape: Shape,
    body: &impl Serialize,
    items: &[T],
    extra: Extra,
) -> Result<Answer, HttpError> {
    let mut out = Vec::new();
    let written = match shape {
        Shape::Object => serde_json::to_writer(&mut out, body),
        Shape::Lines => items.iter().try_for_each(|item| {
            serde_json::to_writer(&mut out, item)?;
            out.push(b'\n');
            Ok(())
        }),
    };
    written.map_err(|error| HttpError::internal(format!("render: {error}")))?;
    let extra = Extra {
        total: Some(items.len() as u64),
        shape: Some(shape),
        ..extra
    };
    Ok(Answer::Whole(out.into(), extra))
}

/// Which page of a list is meant, in which order and form.
#[derive(Clone, Debug)]
pub(crate) struct ListParams {
    /// From 1.
    pub(crate) page: Decimal,
    /// Rows of a page, where it is given.
    pub(crate) offset: Option<u64>,
    pub(crate) descending: bool,
    pub(crate) cursor: Option<RowCursor>,
    pub(crate) shape: Shape,
    /// The request's address, ready for `cursor=...` to be appended; empty where no address asks for the same, as of a form in a body.
    pub(crate) next_page_stem: String,
}

impl ListParams {
    /// Takes `cursor`: which part of a list in the order of its keys is meant.
    pub(crate) fn take_key_part<C: FromStr>(&self, params: &mut Params) -> Result<KeyPart<C>, HttpError> {
        let part = self.part(None);
        Ok(KeyPart {
            skip: part.skip,
            limit: part.limit,
            after: take_cursor(params)?,
        })
    }

    /// Writes which page it is.
    pub(crate) fn echo(&self, object: &mut Object<'_>) {
        object.integer_text("page", &self.page.to_string());
        object.integer("offset", self.offset());
    }

    /// Writes in which order.
    pub(crate) fn echo_sort(&self, object: &mut Object<'_>) {
        object.string("sort", if self.descending { "desc" } else { "asc" });
    }

    /// The same, where an absent `offset` means the whole list.
    pub(crate) fn whole_by_default(mut self) -> Self {
        self.offset.get_or_insert(u64::MAX);
        self
    }

    fn offset(&self) -> u64 {
        self.offset.unwrap_or(OFFSET_MAX)
    }

    /// Whether so few rows are meant that making them takes little longer than handing the work on.
    pub(crate) fn is_short(&self) -> bool {
        self.offset.is_some_and(|offset| offset <= SHORT_MAX)
    }

    /// Which part of the list is meant; the blocks are those of `range`, where they matter.
    pub(crate) fn part(&self, range: Option<BlockRange>) -> ListQuery {
        // No list is as long as u64::MAX rows, so a page that far on is empty like any other past the
        // end. A cursor says where to go on by itself.
        let skip = if self.cursor.is_some() {
            0
        } else {
            (self.page.number() - 1).saturating_mul(self.offset())
        };
        ListQuery {
            first_block: range.map_or(0, BlockRange::first),
            last_block: range.map_or(0, BlockRange::last),
            descending: self.descending,
            skip,
            limit: usize::try_from(self.offset()).unwrap_or(usize::MAX),
            cursor: self.cursor,
        }
    }

    /// The answer without rows.
    pub(crate) fn empty(&self, envelope: Envelope) -> Answer {
        let body = match self.shape {
            Shape::Object => [envelope.0.as_slice(), TAIL].concat(),
            Shape::Lines => Vec::new(),
        };
        Answer::Whole(body.into(), self.extra(Found::last(Some(0), Reach::Head)))
    }

    /// What stands beside the body.
    pub(crate) fn extra(&self, found: Found) -> Extra {
        Extra {
            total: found.total,
            link: found
                .next
                .filter(|_| !self.next_page_stem.is_empty())
                .and_then(|cursor| link(&self.next_page_stem, &cursor)),
            shape: Some(self.shape),
            reach: found.reach,
            source: found.balance_source.map(|told| (X_BALANCE_SOURCE, told)),
        }
    }

    /// The answer with the rows of `source`.
    pub(crate) fn answer(
        &self,
        snapshot: &Snapshot,
        envelope: Envelope,
        found: Found,
        source: impl RowSource,
    ) -> Result<Answer, HttpError> {
        let extra = self.extra(found);
        let (first, frames) = ListFrames::begin(source, snapshot.buffers.clone(), self.shape, envelope)?;
        Ok(match frames {
            None => Answer::Whole(first, extra),
            Some(frames) => Answer::Begun(first, Box::new(frames), extra),
        })
    }
}

/// Takes `cursor`, in the form of the list.
pub(crate) fn take_cursor<C: FromStr>(params: &mut Params) -> Result<Option<C>, HttpError> {
    let Some(text) = params.take("cursor")? else {
        return Ok(None);
    };
    let cursor = text.parse().map_err(|_| HttpError::invalid("cursor"))?;
    Ok(Some(cursor))
}

/// This request's own address without `page` and `cursor`, ready for `cursor=...` to be appended.
pub(crate) fn next_page_stem(path: &str, query: &str) -> String {
    let mut stem = format!("{path}?");
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let key = pair.split('=').next().and_then(percent_decode);
        let is_of_this_page =
            |key: &[u8]| key.eq_ignore_ascii_case(b"page") || key.eq_ignore_ascii_case(b"cursor");
        if !key.as_deref().is_some_and(is_of_this_page) {
            stem.push_str(pair);
            stem.push('&');
        }
    }
    stem
}

fn link(stem: &str, cursor: &str) -> Option<HeaderValue> {
    let mut text = format!("<{stem}cursor=");
    for byte in cursor.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text.push_str(">; rel=\"next\"");
    HeaderValue::try_from(text).ok()
}

/// What is known of a page before its rows are written.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Rows of the whole list, where that is known.
    pub(crate) total: Option<u64>,
    /// Where the next page begins: the text of its cursor.
    pub(crate) next: Option<String>,
    /// What the page speaks of.
    pub(crate) reach: Reach,
    /// Where its balances come from, where it has any.
    pub(crate) balance_source: Option<&'static str>,
}

impl Found {
    /// A page that no address goes on from.
    pub(crate) const fn last(total: Option<u64>, reach: Reach) -> Self {
        Self {
            total,
            next: None,
            reach,
            balance_source: None,
        }
    }

    /// A page of a list in the order of its keys.
    pub(crate) fn keyed(
        total: Option<u64>,
        next: Option<impl ToString>,
        balance_source: Option<&'static str>,
    ) -> Self {
        Self {
            total,
            next: next.map(|place| place.to_string()),
            reach: Reach::Head,
            balance_source,
        }
    }

    /// The same page, of which it is known that it speaks of no more than `reach`.
    pub(crate) fn within(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }
}

impl From<&Page> for Found {
    fn from(page: &Page) -> Self {
        Self {
            total: page.total(),
            next: page.next_cursor().map(|cursor| cursor.to_string()),
            reach: Reach::Head,
            balance_source: None,
        }
    }
}

/// The text of an answer up to and with the bracket before its first item.
#[derive(Debug)]
pub(crate) struct Envelope(pub(crate) Vec<u8>);

/// What ends the text of a list.
pub(crate) const TAIL: &[u8] = b"]}";

impl Envelope {
    /// The fields that `fields` writes, then the list under `name`.
    pub(crate) fn new(name: &str, fields: impl FnOnce(&mut Object<'_>)) -> Self {
        let mut out = Vec::with_capacity(200);
        let mut object = Object::begin(&mut out);
        fields(&mut object);
        // The brace is closed after the items.
        object.key(name).push(b'[');
        Self(out)
    }

    /// The fields that most lists have: those of `fields`, then chain, page, offset and sort.
    pub(crate) fn paged(
        name: &str,
        chain: ChainName,
        list: &ListParams,
        fields: impl FnOnce(&mut Object<'_>),
    ) -> Self {
        Self::new(name, |object| {
            fields(object);
            object.string("chain", chain.as_str());
            list.echo(object);
            list.echo_sort(object);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_pages_keep_the_other_parameters() {
        assert_eq!(
            next_page_stem("/p", "a=%20&Page=2&b=1&c%75rsor=x&cursor=y"),
            "/p?a=%20&b=1&"
        );
        assert_eq!(next_page_stem("/p", ""), "/p?");
    }

    #[test]
    fn links_are_relative_and_encoded() {
        let value = link("/api/logs/get-logs?address=0x1&", "a+b").unwrap();
        assert_eq!(
            value,
            "</api/logs/get-logs?address=0x1&cursor=a%2Bb>; rel=\"next\""
        );
    }
}
