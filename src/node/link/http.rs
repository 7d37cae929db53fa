//! Requests over HTTP, one POST each.
//!
//! The transport is ours and not alloy's: that one takes a body whole before anybody can say how long it may
//! be, follows redirects to wherever they lead, and does not compare the id of an answer with that of its
//! request.

use super::reply::Reply;
use super::secret::Secret;
use super::{Passed, Question, ResultText, chain, parsed};
use crate::clock;
use crate::node::error::{NodeError, head};
use crate::node::reader::read;
use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Of a body that comes with a failure no more than this is read: it is shown, or it is a JSON-RPC error.
const FAILURE_BYTES_MAX: usize = 64 << 10;

/// Room made for a body on the word of its `Content-Length`.
const RESERVED_MAX: usize = 1 << 20;

/// A node behind an HTTP URL.
pub(in crate::node) struct Http {
    client: Client,
    url: Url,
    /// What no text may show.
    secret: Secret,
    last_id: AtomicU64,
}

/// A client for `url`. That of https knows the system's root certificates; without any it would trust nobody, and no waiting
/// mends that.
pub(super) fn client(url: &Url) -> Result<Client, NodeError> {
    // Proxies of the environment would get the URL with its key, and answer for a node on loopback.
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    let client = match url.scheme() {
        "https" => client,
        // The certificates are looked for all the same, and none are an error.
        _ => client.tls_certs_only([]),
    };
    client.build().map_err(|error| {
        NodeError::Url(format!(
            "https needs the root certificates of this system, and they cannot be loaded: install the package ca-certificates, or name a file of them in SSL_CERT_FILE ({})",
            chain(&error.without_url())
        ))
    })
}

/// Why a body was not read to its end.
enum Unread {
    TooLarge(usize),
    Broken(reqwest::Error),
}

impl Http {
    /// What no text may show.
    pub(super) const fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(super) fn new(url: &str) -> Result<Self, NodeError> {
        let parsed = parsed(url)?;
        Ok(Self {
            client: client(&parsed)?,
            url: parsed,
            secret: Secret::of(url),
            last_id: AtomicU64::new(0),
        })
    }

    /// Asks once, and takes as many seconds as the node does.
    pub(super) async fn ask(&self, question: Question<'_>) -> Result<Passed<ResultText>, NodeError> {
        let Question { method, params, .. } = question;
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let sent = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(request)
            .send()
            .await;
        let mut response = sent.map_err(|error| transport(method, &error, &self.secret))?;
        if !response.status().is_success() {
            return self.failure(method, id, response).await;
        }
        match body(&mut response, question.bytes_max).await {
            Ok(body) => reply(method, id, body, &self.secret),
            Err(Unread::TooLarge(bytes)) => Err(NodeError::ResponseTooLarge {
                method,
                bytes,
                bytes_max: question.bytes_max,
            }),
            Err(Unread::Broken(error)) => Err(transport(method, &error, &self.secret)),
        }
    }

    /// What an answer without success says: the node's own error where its body is one, else the status.
    async fn failure(
        &self,
        method: &'static str,
        id: u64,
        mut response: Response,
    ) -> Result<Passed<ResultText>, NodeError> {
        let status = response.status();
        if status.is_redirection() {
            let location = response.headers().get(LOCATION);
            let to = location.and_then(|to| to.to_str().ok()).unwrap_or_default();
            let to = match to.contains("://") {
                true => crate::model::shown_url(to),
                false => "another path".to_owned(),
            };
            return Err(NodeError::HttpStatus {
                method,
                status: status.as_u16(),
                body: format!(
                    "a redirect to {to}, which is not followed: configure the URL that answers itself"
                ),
            });
        }
        let retry_after = retry_after(&response);
        let body = match body(&mut response, FAILURE_BYTES_MAX).await {
            Ok(body) => body,
            Err(Unread::TooLarge(bytes)) => format!("<{bytes} bytes or more>").into_bytes(),
            Err(Unread::Broken(_)) => b"<the body was broken off>".to_vec(),
        };
        let error = std::str::from_utf8(&body)
            .ok()
            .and_then(|body| read::<Reply<'_>>(body).ok())
            .filter(|reply| reply.answers(id) || reply.names_no_request())
            .and_then(|reply| reply.error);
        let text = self.secret.hide(&String::from_utf8_lossy(&body));
        if status == StatusCode::TOO_MANY_REQUESTS
            || (status == StatusCode::SERVICE_UNAVAILABLE && retry_after.is_some())
        {
            return Err(NodeError::RateLimited {
                method,
                message: head(&error.map_or(text, |error| self.secret.hide(&error.message))),
                retry_after,
            });
        }
        match error {
            Some(error) => Ok(error.passed(&self.secret)),
            None => Err(NodeError::HttpStatus {
                method,
                status: status.as_u16(),
                body: head(&text),
            }),
        }
    }
}

/// A body of at most so many bytes; a longer one is not read to its end.
async fn body(response: &mut Response, bytes_max: usize) -> Result<Vec<u8>, Unread> {
    let stated = response
        .content_length()
        .map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if bytes_max < stated {
        return Err(Unread::TooLarge(stated));
    }
    let mut body = Vec::with_capacity(stated.min(RESERVED_MAX));
    while let Some(piece) = response.chunk().await.map_err(Unread::Broken)? {
        if bytes_max - body.len() < piece.len() {
            return Err(Unread::TooLarge(body.len() + piece.len()));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// What a body with a status of success says.
fn reply(
    method: &'static str,
    id: u64,
    body: Vec<u8>,
    secret: &Secret,
) -> Result<Passed<ResultText>, NodeError> {
    let malformed = |why: &str, body: &[u8]| NodeError::Malformed {
        method,
        reason: format!(
            "{} in {} bytes: {}",
            head(&secret.hide(why)),
            body.len(),
            head(&secret.hide(&String::from_utf8_lossy(body.get(..1024).unwrap_or(body))))
        ),
    };
    let body = String::from_utf8(body)
        .map_err(|error| malformed(&error.utf8_error().to_string(), error.as_bytes()))?;
    let malformed = |why: &str| malformed(why, body.as_bytes());
    let reply: Reply<'_> = read(&body).map_err(|fault| malformed(&fault.to_string()))?;
    let is_ours = reply.answers(id) || (reply.names_no_request() && reply.error.is_some());
    if !is_ours {
        return Err(malformed("the answer to another request"));
    }
    let answers = reply.answers(id);
    match (reply.result, reply.error) {
        (Some(result), None) => {
            let begin = result.as_ptr().addr() - body.as_ptr().addr();
            let place = begin..begin + result.len();
            // Little of much is worth a copy.
            Ok(Passed::Result(match result.len() < body.capacity() / 2 {
                true => ResultText::within(result.to_owned(), 0..result.len()),
                false => ResultText::within(body, place),
            }))
        }
        // Servers in the manner of JSON-RPC 1 say both, and that the result is nothing.
        (Some(result), Some(_)) if result != "null" => Err(malformed("both a result and an error")),
        (_, Some(error)) if answers || !error.speaks_of_a_call(method) => Ok(error.passed(secret)),
        (_, Some(_)) => Err(malformed("an error without the id of the request")),
        (None, None) => Err(malformed("neither a result nor an error")),
    }
}

/// `Retry-After`: a number of seconds, or a date, which gateways send too.
fn retry_after(response: &Response) -> Option<Duration> {
    rest(response.headers().get(RETRY_AFTER)?.to_str().ok()?, clock::wall())
}

fn rest(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let seconds = value.parse().ok().map(Duration::from_secs);
    seconds.or_else(|| {
        let date = httpdate::parse_http_date(value).ok()?;
        Some(date.duration_since(now).unwrap_or_default())
    })
}

fn transport(method: &'static str, error: &reqwest::Error, secret: &Secret) -> NodeError {
    NodeError::Transport {
        method,
        reason: secret.hide(&chain(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Tue, 14 Nov 2023 22:13:20 GMT").unwrap();
        let after = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(rest("7", now), after(7));
        assert_eq!(rest(" 0 ", now), after(0));
        assert_eq!(rest("Tue, 14 Nov 2023 22:13:50 GMT", now), after(30));
        assert_eq!(rest("Tue, 14 Nov 2023 22:13:10 GMT", now), after(0));
        for nothing in ["", "-1", "soon", "Tue, 14 Nov"] {
            assert_eq!(rest(nothing, now), None, "{nothing}");
        }
    }

    fn said(body: &str) -> Result<Passed<ResultText>, NodeError> {
        reply(
            "eth_call",
            7,
            body.as_bytes().to_vec(),
            &Secret::of("http://node"),
        )
    }

    #[test]
    fn an_answer_is_that_of_its_request() {
        for body in [
            r#"{"jsonrpc":"2.0","id":7,"result":null}"#,
            r#"{"result":"0x1","id":7}"#,
            r#"{"id":7,"result":"0x1","error":null}"#,
            r#"{"id":7,"error":{"code":3,"message":"execution reverted","data":"0x"}}"#,
            r#"{"id":7,"error":{"code":-32000}}"#,
            r#"{"id":"7","result":"0x1"}"#,
            r#"{"id":7.0,"result":"0x1"}"#,
            r#"{"id":null,"error":{"code":-32700,"message":"parse error"}}"#,
            r#"{"error":{"code":-32005,"message":"rate limit exceeded"}}"#,
        ] {
            assert!(said(body).is_ok(), "{body}: {:?}", said(body));
        }
        for body in [
            r#"{"id":8,"result":"0x1"}"#,
            r#"{"id":"8","result":"0x1"}"#,
            r#"{"id":7.5,"result":"0x1"}"#,
            r#"{"id":null,"result":"0x1"}"#,
            r#"{"jsonrpc":"2.0","result":"0x1"}"#,
            r#"{"id":8,"error":{"code":-32005,"message":"rate limit exceeded"}}"#,
            r#"{"id":null,"error":{"code":3,"message":"execution reverted"}}"#,
            r#"{"id":7,"result":"0x1","error":{"code":3}}"#,
            r#"{"id":7}"#,
            r#"[{"id":7,"result":"0x1"}]"#,
            "",
        ] {
            let error = said(body).err();
            assert!(
                matches!(error, Some(NodeError::Malformed { .. })),
                "{body}: {error:?}"
            );
        }
    }

    #[test]
    fn an_error_is_one_whatever_its_shape() {
        for (error, code, message) in [
            (r#"{"code":-32001,"message":"no block"}"#, -32001, "no block"),
            (r#"{"code":"-32001","message":"no block"}"#, -32001, "no block"),
            (
                r#"{"code":"UNSUPPORTED","message":"not here"}"#,
                -32603,
                "UNSUPPORTED: not here",
            ),
            (r#"{"code":"UNSUPPORTED"}"#, -32603, "UNSUPPORTED"),
            (r#"{"code":-32000,"message":null}"#, -32000, ""),
            (r#"{"code":-32000,"message":{"why":7}}"#, -32000, r#"{"why":7}"#),
            (r#"{"message":"no \"block\""}"#, -32603, r#"no "block""#),
            (r#""upstream\nfailed""#, -32603, "upstream\nfailed"),
            ("7", -32603, "7"),
            ("{}", -32603, ""),
        ] {
            let told = said(&format!(r#"{{"id":7,"error":{error}}}"#));
            let Ok(Passed::Error {
                code: found,
                message: words,
                ..
            }) = told
            else {
                panic!("{error}: {told:?}");
            };
            assert_eq!((found, words.as_str()), (code, message), "{error}");
        }
    }

    #[test]
    fn a_result_is_given_as_it_stands_and_looked_through_for_clients() {
        let result = |body| match said(body) {
            Ok(Passed::Result(text)) => text,
            other => panic!("{body}: {other:?}"),
        };
        for (body, expected) in [
            (
                r#" { "jsonrpc" : "2.0" , "id" : 7 , "result" : [ {"a":"}\"]"} ] } "#,
                r#"[ {"a":"}\"]"} ]"#,
            ),
            (
                r#"{"result":{"a":[{}]},"more":{"result":8},"id":7}"#,
                r#"{"a":[{}]}"#,
            ),
            (r#"{"id":7,"result":"\u0030x1"}"#, r#""\u0030x1""#),
            (r#"{"\u0069d":7,"result":-1.5e3}"#, "-1.5e3"),
            (r#"{"id":7,"result":null}"#, "null"),
        ] {
            let text = result(body);
            assert_eq!(text.get(), expected, "{body}");
            assert_eq!(text.checked("eth_call").unwrap().get(), expected, "{body}");
        }
        // Whoever reads it finds what is wrong with it.
        for body in [r#"{"id":7,"result":{"a":}}"#, r#"{"id":7,"result":[1 2]}"#] {
            let text = result(body);
            assert!(
                text.checked("eth_call").is_err() && text.check("eth_call").is_err(),
                "{body}"
            );
            assert!(crate::node::wire::block(text.get()).is_err(), "{body}");
        }
        for body in [
            &br#"{"id":7,"result":"0x1"#[..],
            br#"{"id":7,"result":{"a":"}}"#,
            br#"{"id":7,"result":nil}"#,
            br#"{"id":7,"result":{"a":[}}"#,
            br#"{"id":7,"result":"0x1","result":"0x2"}"#,
            br#"{"id":7,"id":7,"result":"0x1"}"#,
            br#"{"id":7,"result":"0x1"}{}"#,
            b"{\"id\":7,\"result\":\"\xff\"}",
        ] {
            let error = reply("eth_call", 7, body.to_vec(), &Secret::of("http://node"));
            assert!(matches!(error, Err(NodeError::Malformed { .. })), "{error:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_answer_does_not_show_where_it_was_asked() {
        let secret = Secret::of("http://node/v3/0123456789abcdef");
        for body in [
            "/v3/0123456789abcdef is over its limit",
            r#"{"id":7,"result":/v3/0123456789abcdef}"#,
        ] {
            let error = reply("eth_call", 7, body.as_bytes().to_vec(), &secret).unwrap_err();
            assert!(!error.to_string().contains("0123456789"), "{error}");
        }
        let refused = r#"{"id":7,"error":"no more for /v3/0123456789abcdef"}"#;
        let told = reply("eth_call", 7, refused.as_bytes().to_vec(), &secret);
        let Ok(Passed::Error { message, .. }) = told else {
            panic!("{told:?}");
        };
        assert!(!message.contains("0123456789"), "{message}");
        let broken = format!(
            r#"{{"id":7,"result":{{/v3/0123456789abcdef{}}}}}"#,
            " ".repeat(100)
        );
        let told = reply("eth_getBlockByNumber", 7, broken.into_bytes(), &secret);
        let Ok(Passed::Result(text)) = told else {
            panic!("{told:?}");
        };
        let error = crate::node::wire::block(text.get()).unwrap_err();
        assert!(!error.to_string().contains("0123456789"), "{error}");
    }
}
