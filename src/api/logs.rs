//! L1, L2, L3: event logs by address, by topics, by both.

use std::time::Duration;

use bytes::Bytes;

use crate::clock;
use crate::http::header::HeaderValue;
use crate::http::{FRAME_BYTES, FrameBuffers, FrameSource, HttpError};
use crate::json::{LogWriter, UuidSpace};
use crate::query::{LogCursor, LogPage, LogQuery, Operator};

use super::answer::{Answer, Extra, Plan, Snapshot};
use super::bounds::Bounds;
use super::faults::{INVALID_ADDRESS, INVALID_TOPIC, TOPIC_REQUIRED, query_failed};
use super::input::Input;

/// The pair operators and the topics they combine, in the specification's order.
pub(super) const OPERATORS: [(&str, usize, usize); 6] = [
    ("topic0_1_opr", 0, 1),
    ("topic1_2_opr", 1, 2),
    ("topic2_3_opr", 2, 3),
    ("topic0_2_opr", 0, 2),
    ("topic0_3_opr", 0, 3),
    ("topic1_3_opr", 1, 3),
];
const TOPICS: [&str; 4] = ["topic0", "topic1", "topic2", "topic3"];

/// Most rows of a page, and what an absent `offset` means.
pub(super) const OFFSET_MAX: u64 = 10_000;

/// How long an expression over several lists may be walked before the client is asked to narrow it.
const WALK_TIME_MAX: Duration = Duration::from_secs(20);

/// A parsed request; block numbers are resolved against a snapshot.
struct LogsRequest {
    query: LogQuery,
    bounds: Bounds,
    next_page_stem: String,
}

pub(super) fn get_logs(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let request = LogsRequest::parse(input)?;
    Ok(Plan::scan(move |snapshot| request.answer(snapshot)))
}

impl LogsRequest {
    fn parse(input: &mut Input<'_>) -> Result<Self, HttpError> {
        let next_page_stem = input.next_page_stem();
        let params = &mut input.params;
        let address = params.take_address("address", INVALID_ADDRESS)?;
        let mut topics: [Vec<_>; 4] = Default::default();
        for (name, values) in TOPICS.into_iter().zip(&mut topics) {
            *values = params.take_hashes(name, INVALID_TOPIC)?;
        }
        let given = topics.each_ref().map(|values| !values.is_empty());
        if address.is_none() && !given.contains(&true) {
            return Err(HttpError::bad_request(TOPIC_REQUIRED));
        }
        let mut operators = Vec::new();
        for (name, left, right) in OPERATORS {
            let choices = [("and", Operator::And), ("or", Operator::Or)];
            if let Some(operator) = params.take_choice(name, &choices)? {
                if !(given.get(left) == Some(&true) && given.get(right) == Some(&true)) {
                    let text = format!("Operator {name} names a topic that is not given");
                    return Err(HttpError::bad_request(text));
                }
                operators.push((left, right, operator));
            }
        }
        let bounds = Bounds::take(params, "fromblock", "toblock")?;
        let page =
            between(params.take_u64("page")?, 1, u64::MAX, 1).ok_or_else(|| HttpError::invalid("page"))?;
        let offset = between(params.take_u64("offset")?, 1, OFFSET_MAX, OFFSET_MAX)
            .ok_or_else(|| HttpError::invalid("offset"))?;
        let sort = params.take_choice("sort", &[("asc", false), ("desc", true)])?;
        let cursor = match params.take("cursor")? {
            None => None,
            Some(text) => Some(
                text.parse::<LogCursor>()
                    .map_err(|_| HttpError::invalid("cursor"))?,
            ),
        };
        // No list is as long as u64::MAX rows, so a page that far on is empty like any other past the
        // end. A cursor says where to go on by itself.
        let skip = if cursor.is_some() {
            0
        } else {
            (page - 1).saturating_mul(offset)
        };
        Ok(Self {
            query: LogQuery {
                address,
                topics,
                operators,
                first_block: 0,
                last_block: 0,
                descending: sort.unwrap_or(false),
                skip,
                limit: usize::try_from(offset).unwrap_or(usize::MAX),
                cursor,
                deadline: None,
            },
            bounds,
            next_page_stem,
        })
    }

    fn answer(mut self, snapshot: &Snapshot) -> Result<Answer, HttpError> {
        let Some(range) = self.bounds.resolve(snapshot.extent())? else {
            let extra = Extra {
                total: Some(0),
                ..Extra::default()
            };
            return Ok(Answer::Whole(Bytes::from_static(br#"{"logs":[]}"#), extra));
        };
        self.query.first_block = range.first();
        self.query.last_block = range.last();
        self.query.deadline = Some(clock::now() + WALK_TIME_MAX);
        let page = snapshot.reader.logs(&self.query).map_err(query_failed)?;
        let extra = Extra {
            total: page.total(),
            link: page
                .next_cursor()
                .and_then(|cursor| link(&self.next_page_stem, &cursor.to_string())),
            nonce_source: None,
        };
        let mut frames = LogFrames {
            page,
            text: LogWriter::new(UuidSpace::new(snapshot.reader.chain_id())),
            buffers: snapshot.buffers.clone(),
            rows: 0,
            begun: false,
            done: false,
        };
        let first = frames.render()?;
        if frames.done {
            return Ok(Answer::Whole(first, extra));
        }
        Ok(Answer::Begun(first, Box::new(frames), extra))
    }
}

fn between(given: Option<u64>, least: u64, most: u64, default: u64) -> Option<u64> {
    let value = given.unwrap_or(default);
    (least <= value && value <= most).then_some(value)
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

/// The list as frames of about [`FRAME_BYTES`].
struct LogFrames {
    page: LogPage,
    text: LogWriter,
    buffers: FrameBuffers,
    rows: u64,
    begun: bool,
    done: bool,
}

impl LogFrames {
    fn render(&mut self) -> Result<Bytes, HttpError> {
        let mut out = self.buffers.take();
        if !self.begun {
            out.extend_from_slice(br#"{"logs":["#);
            self.begun = true;
        }
        let (text, rows) = (&mut self.text, &mut self.rows);
        let more = self.page.visit(&mut |log| {
            if *rows > 0 {
                out.push(b',');
            }
            *rows += 1;
            text.entry(&mut out, log);
            out.len() < FRAME_BYTES
        });
        self.text.finish(&mut out);
        if !more.map_err(query_failed)? {
            out.extend_from_slice(b"]}");
            self.done = true;
        }
        Ok(out.into())
    }
}

impl FrameSource for LogFrames {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        if self.done {
            return Ok(None);
        }
        self.render().map(Some)
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
