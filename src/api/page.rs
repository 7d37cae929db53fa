//! What all lists share: their parameters, the shape of their text, and the frames in which it goes out.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::http::header::HeaderValue;
use crate::http::{FRAME_BYTES, FrameBuffers, FrameSource, HttpError, prefers};
use crate::json::object::Object;
use crate::model::{BlockRange, ChainName};
use crate::query::{ListQuery, Page, QueryError, RowCursor};

use super::answer::{Answer, Extra, Snapshot};
use super::bounds::{Bound, Bounds};
use super::caching::Reach;
use super::faults::query_failed;
use super::input::Input;

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
        let cursor = match params.take("cursor")? {
            None => None,
            Some(text) => Some(
                text.parse::<RowCursor>()
                    .map_err(|_| HttpError::invalid("cursor"))?,
            ),
        };
        Ok(Self {
            page,
            offset,
            descending: sort.unwrap_or(false),
            cursor,
            shape: if lines { Shape::Lines } else { Shape::Object },
            next_page_stem,
        })
    }

    /// Takes `page` and `offset` of a list that has one order and no cursor; `offset` is what was made of the
    /// parameter already, where it is not any number.
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

    /// Rows before the page, and rows of it.
    pub(super) fn span(&self) -> (u64, usize) {
        let part = self.part(None);
        (part.skip, part.limit)
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
            link: found
                .next
                .and_then(|cursor| link(&self.next_page_stem, &cursor.to_string())),
            shape: Some(self.shape),
            reach: found.reach,
            balance_source: found.balance_source,
            ..Extra::default()
        };
        let (first, frames) = ListFrames::begin(source, snapshot.buffers.clone(), self.shape, envelope)?;
        Ok(match frames {
            None => Answer::Whole(first, extra),
            Some(frames) => Answer::Begun(first, Box::new(frames), extra),
        })
    }
}

fn take_between(params: &mut crate::http::Params, name: &str, most: u64) -> Result<Option<u64>, HttpError> {
    match params.take_u64(name)? {
        Some(value) if value == 0 || value > most => Err(HttpError::invalid(name)),
        value => Ok(value),
    }
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Rows of the whole list, where that is known.
    pub(super) total: Option<u64>,
    /// Where the next page begins.
    pub(super) next: Option<RowCursor>,
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
            next: page.next_cursor(),
            reach: Reach::Head,
            balance_source: None,
        }
    }
}

/// The text of an answer up to and with the bracket before its first item.
#[derive(Debug)]
pub(super) struct Envelope(Vec<u8>);

const TAIL: &[u8] = b"]}";

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

/// The items of a page by their places.
pub(super) trait Places {
    /// Items of the page.
    fn count(&self) -> usize;

    /// Items that are still to be written.
    fn left(&self) -> usize;

    /// Chooses the items that are written next.
    fn set_part(&mut self, part: Range<usize>);
}

impl Places for Page {
    fn count(&self) -> usize {
        self.len()
    }

    fn left(&self) -> usize {
        self.left()
    }

    fn set_part(&mut self, part: Range<usize>) {
        self.set_part(part);
    }
}

/// Items that are all known before the first is written.
pub(super) struct Known<T, W> {
    rows: Arc<[T]>,
    rest: Range<usize>,
    write: W,
}

impl<T, W: Fn(&mut Vec<u8>, &T)> Known<T, W> {
    /// `rows`, each written by `write`.
    pub(super) fn new(rows: Vec<T>, write: W) -> Self {
        Self {
            rest: 0..rows.len(),
            rows: rows.into(),
            write,
        }
    }
}

impl<T, W> Places for Known<T, W> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn left(&self) -> usize {
        self.rest.len()
    }

    fn set_part(&mut self, part: Range<usize>) {
        self.rest = part;
    }
}

impl<T, W> RowSource for Known<T, W>
where
    T: Send + Sync + 'static,
    W: Fn(&mut Vec<u8>, &T) + Clone + Send + 'static,
{
    fn places(&mut self) -> &mut dyn Places {
        self
    }

    fn again(&self) -> Self {
        Self {
            rows: Arc::clone(&self.rows),
            rest: self.rest.clone(),
            write: self.write.clone(),
        }
    }

    fn write(&mut self, frame: &mut Frame<'_>) -> Result<bool, QueryError> {
        while let Some(row) = self.rest.next().and_then(|place| self.rows.get(place)) {
            if !frame.item(|out| (self.write)(out, row)) {
                break;
            }
        }
        Ok(!self.rest.is_empty())
    }
}

/// Gives the items of a list.
pub(super) trait RowSource: Send + 'static {
    /// Which items there are, and which are still to be written.
    fn places(&mut self) -> &mut dyn Places;

    /// The same items, given by itself: on another thread, at another place.
    fn again(&self) -> Self
    where
        Self: Sized;

    /// Writes the items that were not written yet until the frame has enough; answers whether items remain.
    fn write(&mut self, frame: &mut Frame<'_>) -> Result<bool, QueryError>;
}

/// A frame that is being written.
pub(super) struct Frame<'a> {
    out: &'a mut Vec<u8>,
    shape: Shape,
    /// Items were written before, here or in another frame.
    begun: &'a mut bool,
}

impl Frame<'_> {
    /// The text so far.
    pub(super) const fn text(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Appends an item; answers whether there is room for more.
    #[inline]
    pub(super) fn item(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.shape == Shape::Object && *self.begun {
            self.out.push(b',');
        }
        *self.begun = true;
        write(self.out);
        if self.shape == Shape::Lines {
            self.out.push(b'\n');
        }
        self.out.len() < FRAME_BYTES
    }
}

/// The list as frames of about [`FRAME_BYTES`], in parts of about a frame.
struct ListFrames<R> {
    source: R,
    buffers: FrameBuffers,
    shape: Shape,
    /// What stands before the first item, until it is written.
    envelope: Option<Envelope>,
    begun: bool,
    parts: Arc<Parts>,
    /// The part has items left.
    in_part: bool,
    /// The part holds the last item of the list.
    is_last: bool,
}

/// How a page is dealt out.
struct Parts {
    /// Items of the page.
    rows: usize,
    /// Items of a part.
    part: usize,
    /// The first item that nobody took.
    next: AtomicUsize,
}

impl<R: RowSource> ListFrames<R> {
    /// The first frame, and what gives the others where there are any.
    fn begin(
        source: R,
        buffers: FrameBuffers,
        shape: Shape,
        envelope: Envelope,
    ) -> Result<(Bytes, Option<Self>), HttpError> {
        let mut frames = Self {
            source,
            buffers,
            shape,
            envelope: Some(envelope),
            begun: false,
            parts: Arc::new(Parts {
                rows: 0,
                part: 0,
                next: AtomicUsize::new(0),
            }),
            in_part: true,
            is_last: true,
        };
        let first = frames.render()?;
        if !frames.in_part {
            return Ok((first, None));
        }
        let places = frames.source.places();
        let rows = places.count();
        let written = rows - places.left();
        frames.parts = Arc::new(Parts {
            rows,
            // A little less than a frame, so that a part seldom leaves a few items to a frame of their own.
            part: (written - written / 16).max(1),
            next: AtomicUsize::new(written),
        });
        frames.in_part = false;
        Ok((first, Some(frames)))
    }

    fn render(&mut self) -> Result<Bytes, HttpError> {
        let mut out = self.buffers.take();
        if let Some(Envelope(text)) = self.envelope.take()
            && self.shape == Shape::Object
        {
            out.extend_from_slice(&text);
        }
        let mut frame = Frame {
            out: &mut out,
            shape: self.shape,
            begun: &mut self.begun,
        };
        self.in_part = self.source.write(&mut frame).map_err(query_failed)?;
        if !self.in_part && self.is_last && self.shape == Shape::Object {
            out.extend_from_slice(TAIL);
        }
        Ok(out.into())
    }
}

impl<R: RowSource> FrameSource for ListFrames<R> {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        if !self.in_part && !self.take_part() {
            return Ok(None);
        }
        self.render().map(Some)
    }

    fn in_part(&self) -> bool {
        self.in_part
    }

    fn take_part(&mut self) -> bool {
        let Parts { rows, part, ref next } = *self.parts;
        let first = next.fetch_add(part, Ordering::Relaxed);
        if first >= rows {
            return false;
        }
        let end = rows.min(first + part);
        self.source.places().set_part(first..end);
        self.in_part = true;
        self.is_last = end == rows;
        true
    }

    fn again(&self) -> Option<Box<dyn FrameSource>> {
        Some(Box::new(Self {
            source: self.source.again(),
            buffers: self.buffers.clone(),
            shape: self.shape,
            envelope: None,
            begun: true,
            parts: Arc::clone(&self.parts),
            in_part: false,
            is_last: false,
        }))
    }
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
