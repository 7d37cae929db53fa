//! What all lists share: their parameters, and the shape of their text.

use std::str::FromStr;

use crate::http::header::HeaderValue;
use crate::http::{HttpError, Params, prefers};
use crate::json::object::Object;
use crate::model::{BlockRange, ChainName};
use crate::query::{KeyPart, ListQuery, Page, RowCursor};

use super::answer::{Answer, Extra, Snapshot, X_BALANCE_SOURCE};
use super::bounds::{Bound, Bounds};
use super::caching::Reach;
use super::frames::ListFrames;
use super::input::Input;

pub(super) use super::frames::{Frame, Known, Places, RowSource};

/// Most rows of a page, and what an absent `offset` means.
pub(super) const OFFSET_MAX: u64 = 10_000;

/// How a list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A JSON object with the list under a name.
    Object,
    /// One item a line, without the object (`application/x-ndjson`).
    Lines,
}

/// The parameters that every list takes.
#[derive(Clone, Debug)]
pub(super) struct ListParams {
    page: u64,
    /// Rows of a page, where it is given.
    offset: Option<u64>,
    descending: bool,
    cursor: Option<RowCursor>,
    shape: Shape,
    next_page_stem: String,
}

impl ListParams {
    /// Takes `page`, `offset`, `sort` and `cursor`.
    pub(super) fn take(input: &mut Input<'_>) -> Result<Self, HttpError> {
        let lines = prefers(
            input.request.headers(),
            "application/x-ndjson",
            "application/json",
        );
        let next_page_stem = input.next_page_stem();
        let params = &mut input.params;
        let page = take_between(params, "page", u64::MAX)?.unwrap_or(1);
        let offset = take_between(params, "offset", OFFSET_MAX)?;
        let sort = params.take_choice("sort", &[("asc", false), ("desc", true)])?;
        let cursor = take_cursor(params)?;
        Ok(Self {
            page,
            offset,
            descending: sort.unwrap_or(false),
            cursor,
            shape: if lines { Shape::Lines } else { Shape::Object },
            next_page_stem,
        })
    }

    /// Takes `page` and `offset` of a list that has one order, that of its keys; `offset` is what was made of the
    /// parameter already, where it is not any number. Its cursor is taken by [`take_cursor`].
    pub(super) fn take_pages(input: &mut Input<'_>, offset: Option<u64>) -> Result<Self, HttpError> {
        let lines = prefers(
            input.request.headers(),
            "application/x-ndjson",
            "application/json",
        );
        let next_page_stem = input.next_page_stem();
        let page = take_between(&mut input.params, "page", u64::MAX)?.unwrap_or(1);
        let offset = match offset {
            Some(offset) => Some(offset),
            None => take_between(&mut input.params, "offset", OFFSET_MAX)?,
        };
        Ok(Self {
            page,
            offset,
            descending: false,
            cursor: None,
            shape: if lines { Shape::Lines } else { Shape::Object },
            next_page_stem,
        })
    }

    /// Which part of a list in the order of its keys is meant.
    pub(super) fn key_part<C>(&self, after: Option<C>) -> KeyPart<C> {
        let part = self.part(None);
        KeyPart {
            skip: part.skip,
            limit: part.limit,
            after,
        }
    }

    /// Writes which page it is.
    pub(super) fn echo(&self, object: &mut Object<'_>) {
        object.integer("page", self.page);
        object.integer("offset", self.offset());
    }

    /// Writes in which order.
    pub(super) fn echo_sort(&self, object: &mut Object<'_>) {
        object.string("sort", if self.descending { "desc" } else { "asc" });
    }

    /// The same, where an absent `offset` means the whole list.
    pub(super) fn whole_by_default(mut self) -> Self {
        self.offset.get_or_insert(u64::MAX);
        self
    }

    fn offset(&self) -> u64 {
        self.offset.unwrap_or(OFFSET_MAX)
    }

    /// Which part of the list is meant; the blocks are those of `range`, where they matter.
    pub(super) fn part(&self, range: Option<BlockRange>) -> ListQuery {
        // No list is as long as u64::MAX rows, so a page that far on is empty like any other past the
        // end. A cursor says where to go on by itself.
        let skip = if self.cursor.is_some() {
            0
        } else {
            (self.page - 1).saturating_mul(self.offset())
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
    pub(super) fn empty(&self, envelope: Envelope) -> Answer {
        let body = match self.shape {
            Shape::Object => [envelope.0.as_slice(), TAIL].concat(),
            Shape::Lines => Vec::new(),
        };
        let extra = Extra {
            total: Some(0),
            shape: Some(self.shape),
            ..Extra::default()
        };
        Answer::Whole(body.into(), extra)
    }

    /// The answer with the rows of `source`.
    pub(super) fn answer(
        &self,
        snapshot: &Snapshot,
        envelope: Envelope,
        found: Found,
        source: impl RowSource,
    ) -> Result<Answer, HttpError> {
        let extra = Extra {
            total: found.total,
            link: found.next.and_then(|cursor| link(&self.next_page_stem, &cursor)),
            shape: Some(self.shape),
            reach: found.reach,
            source: found.balance_source.map(|told| (X_BALANCE_SOURCE, told)),
        };
        let (first, frames) = ListFrames::begin(source, snapshot.buffers.clone(), self.shape, envelope)?;
        Ok(match frames {
            None => Answer::Whole(first, extra),
            Some(frames) => Answer::Begun(first, Box::new(frames), extra),
        })
    }
}

fn take_between(params: &mut Params, name: &str, most: u64) -> Result<Option<u64>, HttpError> {
    match params.take_u64(name)? {
        Some(value) if value == 0 || value > most => Err(HttpError::invalid(name)),
        value => Ok(value),
    }
}

/// Takes `cursor`, in the form of the list.
pub(super) fn take_cursor<C: FromStr>(params: &mut Params) -> Result<Option<C>, HttpError> {
    let Some(text) = params.take("cursor")? else {
        return Ok(None);
    };
    let cursor = text.parse().map_err(|_| HttpError::invalid("cursor"))?;
    Ok(Some(cursor))
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
pub(super) struct Found {
    /// Rows of the whole list, where that is known.
    pub(super) total: Option<u64>,
    /// Where the next page begins: the text of its cursor.
    pub(super) next: Option<String>,
    /// What the page speaks of.
    pub(super) reach: Reach,
    /// Where its balances come from, where it has any.
    pub(super) balance_source: Option<&'static str>,
}

impl Found {
    /// The same page, of which it is known that it speaks of no more than `reach`.
    pub(super) fn within(mut self, reach: Reach) -> Self {
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
pub(super) struct Envelope(pub(super) Vec<u8>);

/// What ends the text of a list.
pub(super) const TAIL: &[u8] = b"]}";

impl Envelope {
    /// The fields that `fields` writes, then the list under `name`.
    pub(super) fn new(name: &str, fields: impl FnOnce(&mut Object<'_>)) -> Self {
        let mut out = Vec::with_capacity(200);
        let mut object = Object::begin(&mut out);
        fields(&mut object);
        // The brace is closed after the items.
        object.key(name).push(b'[');
        Self(out)
    }

    /// The fields that most lists have: those of `fields`, then chain, page, offset and sort.
    pub(super) fn paged(
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

/// What a range says of itself where it is echoed: a number as given, a word as the block it stands for.
pub(super) fn echoed(bounds: Bounds, head: u64) -> (u64, u64) {
    let number = |bound: Option<Bound>, absent: u64| match bound {
        None => absent,
        Some(Bound::Latest) => head,
        Some(Bound::Number(number)) => number,
    };
    (number(bounds.from, 0), number(bounds.to, head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative_and_encoded() {
        let value = link("/api/logs/get-logs?address=0x1&", "a+b").unwrap();
        assert_eq!(
            value,
            "</api/logs/get-logs?address=0x1&cursor=a%2Bb>; rel=\"next\""
        );
    }
}
