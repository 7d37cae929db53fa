//! hyper answers requests that it cannot parse by itself, with an empty body. This finds those
//! answers in what it writes, so that the connection can put our JSON body in their place.

use crate::clock;

use super::error::{ErrorStatus, HttpError};

/// hyper's own rejection is shorter than this: status line, three short headers.
const LENGTH_MAX: usize = 256;

/// Where in `written` a rejection by hyper begins, and what to say instead; `None` in the common case.
///
/// A rejection is the last thing written on a connection, an HTTP/1 head with `content-length: 0`;
/// no 4xx answer of ours has an empty body, so nothing else looks like it. hyper's bound is one for a whole head:
/// where it came to it `in_first_line`, the URI was too long.
pub(super) fn find(written: &[u8], in_first_line: bool) -> Option<(usize, Vec<u8>)> {
    if !written.ends_with(b"\r\n\r\n") {
        return None;
    }
    let from = written.len().saturating_sub(LENGTH_MAX);
    let start = from + rfind(written.get(from..)?, b"HTTP/1.")?;
    let head = std::str::from_utf8(written.get(start..)?).ok()?;
    let status = head.get(8..13)?;
    let uri_too_long = HttpError::new(ErrorStatus::UriTooLong, super::transport::URI_TOO_LONG);
    let error = match status {
        " 400 " => HttpError::bad_request("Bad request"),
        " 414 " => uri_too_long,
        " 431 " if in_first_line => uri_too_long,
        " 431 " => HttpError::new(ErrorStatus::HeadersTooLarge, super::transport::HEADERS_TOO_LARGE),
        _ => return None,
    };
    if !head.to_ascii_lowercase().contains("\r\ncontent-length: 0\r\n") {
        return None;
    }
    Some((start, closing_answer(&error)))
}

/// A whole HTTP/1.1 answer after which the connection is closed, for where hyper is not in charge.
pub(super) fn closing_answer(error: &HttpError) -> Vec<u8> {
    let body = error.body();
    let status = error.status().code();
    let retry = error
        .retry_after()
        .map_or_else(String::new, |seconds| format!("retry-after: {seconds}\r\n"));
    let id = super::request_id::RequestId::generate();
    let mut answer = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ndate: {}\r\n{retry}\
         cache-control: no-store\r\naccess-control-allow-origin: *\r\nx-request-id: {}\r\nconnection: close\r\n\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or("Error"),
        body.len(),
        httpdate::fmt_http_date(clock::wall()),
        id.as_str(),
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    answer
}

fn rfind(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .rposition(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_rejection_behind_an_earlier_answer() {
        let earlier = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        let rejection =
            b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n";
        let written = [&earlier[..], &rejection[..]].concat();
        let (start, answer) = find(&written, false).unwrap();
        assert_eq!(start, earlier.len());
        assert!(answer.ends_with(br#"{"error":"Bad request"}"#));
    }

    #[test]
    fn leaves_our_own_answers_alone() {
        for written in [
            &b"HTTP/1.1 400 Bad Request\r\ncontent-length: 30\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"5\r\nhello\r\n0\r\n\r\n",
            b"\r\n\r\n",
            b"",
        ] {
            assert_eq!(find(written, false), None);
        }
    }
}
