//! Asking the service, and reading its answers as rows.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::{Ends, Kept};
use super::compare::Row;
use super::statistics::Head;
use crate::http::{self, ClientError, Connection, Got, Handler, StatusCode, parse_quantity};
use crate::model::{Address, B256, Bytes, ChainName, PlacedLog, Topics, shown_text};

/// How long an answer is waited for, and how many bytes of one are kept: as many as the sync takes of a node.
const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(28),
    bytes: 512 << 20,
};

#[derive(Clone, Copy)]
struct Bounds {
    time: Duration,
    bytes: usize,
}

/// The name of the way over a socket.
pub(super) const OVER_HTTP: &str = "over HTTP";

/// A way to the service.
#[derive(Clone)]
pub enum Way {
    /// Its handler, in this process: what the sockets ask, without the sockets.
    InProcess(Arc<dyn Handler>),
    /// Host and port.
    Http(String),
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Way {
    /// The way's name in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InProcess(_) => "in process",
            Self::Http(_) => OVER_HTTP,
        }
    }

    /// Whether a failure is the service's saying that it does not have what is asked for: a store whose balances are not
    /// known answers so to questions of them, and its service is well. The one in this process has no node to ask either.
    #[must_use]
    pub fn withholds(&self, failure: &Failure) -> bool {
        let FailureKind::Refused(status, said) = &failure.kind else {
            return false;
        };
        match *status {
            // "The answer took too long" and "Too many requests" are 503 as well.
            StatusCode::SERVICE_UNAVAILABLE => said.as_deref() == Some(NOT_INDEXED),
            StatusCode::BAD_GATEWAY => matches!(self, Self::InProcess(_)),
            _ => false,
        }
    }

    /// A client that goes this way.
    ///
    /// # Errors
    ///
    /// When the service cannot be reached.
    pub async fn client(&self) -> Result<Client, ClientError> {
        Ok(match self {
            Self::InProcess(handler) => Client::InProcess(Arc::clone(handler)),
            Self::Http(authority) => Client::Http(Box::new(Connection::open(authority).await?)),
        })
    }
}

/// One client of the service, who asks one question at a time. An answer that has not come whole in 28 seconds is a failure.
pub enum Client {
    /// In this process.
    InProcess(Arc<dyn Handler>),
    /// Over a connection that is kept.
    Http(Box<Connection>),
}

impl Client {
    /// Asks, and counts the bytes of a 200.
    ///
    /// # Errors
    ///
    /// When the answer is no 200 or breaks off.
    pub async fn get(&mut self, target: &str) -> Result<u64, Failure> {
        self.visit(target, |_| {}).await
    }

    /// As [`get`](Self::get), with the body put into `body`, which is emptied before.
    ///
    /// # Errors
    ///
    /// When the answer is no 200 or breaks off.
    pub async fn keep(&mut self, target: &str, body: &mut Vec<u8>) -> Result<u64, Failure> {
        let mut kept = Kept::new(body, BOUNDS.bytes);
        let bytes = self.visit(target, |bytes| kept.take(bytes)).await?;
        let whole = kept.end().map(|()| bytes);
        whole.map_err(Failure::too_long)
    }

    async fn visit(&mut self, target: &str, mut visit: impl FnMut(&[u8])) -> Result<u64, Failure> {
        let mut ends = Ends::default();
        let visit = |bytes: &[u8]| {
            ends.take(bytes);
            visit(bytes);
        };
        match self.read(target, BOUNDS.time, visit).await {
            Ok(got) if got.status == StatusCode::OK && ends.are_of_object() => Ok(got.bytes),
            Ok(got) if got.status == StatusCode::OK => Err(Failure::unread(format!(
                "{NO_OBJECT}: its {} bytes do not begin with {{ and end with }}",
                got.bytes
            ))),
            Ok(got) => Err(Failure::refused(got.status, None)),
            Err(why) => Err(Failure::broken(why)),
        }
    }

    async fn read(&mut self, target: &str, time: Duration, visit: impl FnMut(&[u8])) -> Result<Got, String> {
        let reading = async {
            match self {
                Self::InProcess(handler) => http::ask(&**handler, target, visit).await,
                Self::Http(connection) => connection.get(target, visit).await,
            }
        };
        match tokio::time::timeout(time, reading).await {
            Ok(read) => read.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no whole answer within {:.1} s", time.as_secs_f64())),
        }
    }

    /// The body of a 200.
    ///
    /// # Errors
    ///
    /// When the answer is no 200 or breaks off, with what it says.
    pub async fn body(&mut self, target: &str) -> Result<Vec<u8>, Failure> {
        self.body_within(target, BOUNDS).await
    }

    async fn body_within(&mut self, target: &str, bounds: Bounds) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        let mut kept = Kept::new(&mut body, bounds.bytes);
        let got = self.read(target, bounds.time, |bytes| kept.take(bytes)).await;
        let got = got.map_err(Failure::broken)?;
        kept.end().map_err(Failure::too_long)?;
        if got.status == StatusCode::OK {
            return Ok(body);
        }
        #[derive(Deserialize)]
        struct Refusal {
            error: String,
        }
        let refusal = serde_json::from_slice::<Refusal>(&body).ok();
        Err(Failure::refused(got.status, refusal.map(|refusal| refusal.error)))
    }
}

/// The longest text of another's that is repeated, characters.
const SHOWN_MAX: usize = 300;

/// What a service or a node says, for a terminal: its beginning on one line, with nothing in it that a terminal obeys, and nothing that turns the
/// direction of text.
pub(super) fn shown(text: &str) -> String {
    let line: String = text
        .chars()
        .take(SHOWN_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    shown_text(line.as_bytes(), SHOWN_MAX)
}

/// What is said of an answer that is no object.
const NO_OBJECT: &str = "not a JSON object";

/// What a service says in a 503 of what it does not have.
const NOT_INDEXED: &str = "Data for the requested range is still being indexed";

/// A request without a 200 or a whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What came instead, one sentence.
    pub why: String,
    /// Which of these it was.
    pub kind: FailureKind,
}

/// What came in place of a whole 200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// No whole answer: the connection is of no use any more.
    Broken,
    /// Another status, and what the service says of it, where that was read.
    Refused(StatusCode, Option<String>),
    /// A 200 that is longer than is taken.
    TooLong,
    /// A 200 that is not the JSON that it must be.
    Unread,
}

impl Failure {
    pub(super) const fn broken(why: String) -> Self {
        let kind = FailureKind::Broken;
        Self { why, kind }
    }

    pub(super) const fn unread(why: String) -> Self {
        let kind = FailureKind::Unread;
        Self { why, kind }
    }

    const fn too_long(why: String) -> Self {
        let kind = FailureKind::TooLong;
        Self { why, kind }
    }

    fn refused(status: StatusCode, said: Option<String>) -> Self {
        let hint = match status {
            StatusCode::TOO_MANY_REQUESTS => {
                ": it limits the rate of its clients, `--rate-limit 0` lets it be measured"
            }
            _ => "",
        };
        let text = said.as_deref().map(|said| format!(": {}", shown(said)));
        Self {
            why: format!("status {}{}{hint}", status.as_u16(), text.unwrap_or_default()),
            kind: FailureKind::Refused(status, said),
        }
    }
}

/// The newest block that the service answers from; `None` where it does not tell.
pub async fn head(way: &Way, chain: ChainName) -> Option<Head> {
    let target = format!("/api/proxy?action=eth_getBlockByNumber&boolean=false&tag=latest&chain={chain}");
    let body = way.client().await.ok()?.body(&target).await.ok()?;
    #[derive(Deserialize)]
    struct Answer {
        result: Block,
    }
    #[derive(Deserialize)]
    struct Block {
        number: String,
        hash: B256,
    }
    let Answer { result } = serde_json::from_slice(&body).ok()?;
    Some(Head {
        number: parse_quantity(&result.number)?,
        hash: result.hash,
    })
}

/// How many rows an answer has: the items of its first list, or one where it is about one thing; none where its `result` is `null`.
///
/// # Errors
///
/// When it is not a JSON object.
pub fn rows(body: &[u8]) -> Result<u64, String> {
    #[derive(Deserialize)]
    struct Key<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);
    struct First(Option<u64>);
    impl<'de> Deserialize<'de> for First {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = First;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<First, A::Error> {
                    let mut first = None;
                    while let Some(Key(key)) = map.next_key()? {
                        let value: &RawValue = map.next_value()?;
                        if first.is_none() && key == "result" && value.get() == "null" {
                            first = Some(0);
                        }
                        if first.is_none() && value.get().starts_with('[') {
                            let items: Vec<serde::de::IgnoredAny> =
                                serde_json::from_str(value.get()).map_err(serde::de::Error::custom)?;
                            first = Some(items.len() as u64);
                        }
                    }
                    Ok(First(first))
                }
            }
            from.deserialize_map(Visitor)
        }
    }
    let First(first) = serde_json::from_slice(body).map_err(|error| format!("{NO_OBJECT}: {error}"))?;
    Ok(first.unwrap_or(1))
}

/// The logs of an answer of `/api/logs/get-logs`.
///
/// # Errors
///
/// When it is no such answer.
pub fn logs(body: &[u8]) -> Result<Vec<Row>, String> {
    #[derive(Deserialize)]
    struct Answer {
        logs: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        transaction_hash: B256,
        block_number: String,
        block_hash: B256,
        timestamp: String,
        transaction_index: u64,
        contract_address: Address,
        data: Bytes,
        topics: String,
        log_index: u64,
    }
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| format!("not a list of logs: {error}"))?;
    let placed = answer.logs.into_iter().map(|entry| {
        let topics: Vec<B256> =
            serde_json::from_str(&entry.topics).map_err(|error| format!("topics: {error}"))?;
        let number = |what: &str, text: &str| text.parse().map_err(|_| format!("{what} `{text}`"));
        Ok(Row {
            log: PlacedLog {
                block_number: number("block number", &entry.block_number)?,
                log_index: entry.log_index,
                transaction_hash: entry.transaction_hash,
                address: entry.contract_address,
                topics: Topics::new(&topics).ok_or("a log with more than 4 topics")?,
                data: entry.data,
            },
            block_hash: Some(entry.block_hash),
            transaction_index: Some(entry.transaction_index),
            timestamp: Some(number("timestamp", &entry.timestamp)?),
        })
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Handled, Request, json_response};

    /// Answers one path with five bytes and others never.
    struct Five;

    impl Handler for Five {
        fn handle(&self, request: Request) -> Handled {
            let is_answered = request.path() == "/five";
            Handled::later(async move {
                if !is_answered {
                    std::future::pending::<()>().await;
                }
                json_response(StatusCode::OK, b"[1,2]".to_vec())
            })
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_too_late_or_too_long_is_a_failure() {
        let mut client = Client::InProcess(Arc::new(Five));
        let time = Duration::from_millis(50);
        let mut ask = async |target, bytes| client.body_within(target, Bounds { time, bytes }).await;
        assert_eq!(ask("/five", 5).await, Ok(b"[1,2]".to_vec()));
        let why = ask("/five", 4).await.unwrap_err().why;
        assert_eq!(why, "an answer of 5 bytes, of which 4 are taken");
        let why = ask("/never", 5).await.unwrap_err().why;
        assert_eq!(why, "no whole answer within 0.1 s");
    }

    #[tokio::test]
    async fn an_answer_that_is_no_object_is_a_failure_and_told_from_others() {
        let mut client = Client::InProcess(Arc::new(Five));
        let failure = client.get("/five").await.unwrap_err();
        let told = "not a JSON object: its 5 bytes do not begin with { and end with }";
        assert_eq!(failure, Failure::unread(told.to_owned()));
    }

    #[test]
    fn rows_are_the_items_of_the_first_list() {
        assert_eq!(rows(br#"{"page":1,"logs":[{"a":[1,2,3]},{}],"more":[1]}"#), Ok(2));
        assert_eq!(rows(br#"{"logs":[]}"#), Ok(0));
        assert_eq!(
            rows(br#"{"account":"0x0","balance":"5","deep":{"list":[1,2]}}"#),
            Ok(1)
        );
        assert_eq!(rows(br#"{"jsonrpc":"2.0","id":1,"result":null}"#), Ok(0));
        assert_eq!(rows(br#"{"jsonrpc":"2.0","id":1,"result":{"a":null}}"#), Ok(1));
        assert!(rows(b"[1]").is_err());
        assert!(rows(b"{").is_err());
    }

    #[test]
    fn what_a_service_says_moves_no_terminal() {
        assert_eq!(shown("no\x1b[31m\r\n0 differ\u{9b}2J"), "no [31m  0 differ 2J");
        assert_eq!(shown("one\u{202e}two"), "onetwo");
        assert_eq!(shown(&"a".repeat(1000)).len(), SHOWN_MAX);
    }

    #[test]
    fn what_a_store_does_not_have_is_no_failure() {
        let (alone, other) = (Way::InProcess(Arc::new(Five)), Way::Http("other".to_owned()));
        let withheld = |failure: &Failure| (alone.withholds(failure), other.withholds(failure));
        let refused = |status: u16, said: &str| {
            let said = (!said.is_empty()).then(|| said.to_owned());
            Failure::refused(StatusCode::from_u16(status).unwrap(), said)
        };
        let indexed = refused(503, "Data for the requested range is still being indexed");
        assert_eq!(
            indexed.why,
            "status 503: Data for the requested range is still being indexed"
        );
        assert_eq!(withheld(&indexed), (true, true));
        assert_eq!(withheld(&refused(502, "Upstream node error")), (true, false));
        for failure in [
            refused(503, "Too many requests"),
            refused(503, ""),
            refused(500, "no"),
            refused(404, ""),
            Failure::broken("closed".to_owned()),
        ] {
            assert_eq!(withheld(&failure), (false, false), "{failure:?}");
        }
    }

    #[test]
    fn logs_of_an_answer() {
        let (address, word) = ("11".repeat(20), "22".repeat(32));
        let body = format!(
            r#"{{"logs":[{{"uuid":"u","transactionHash":"0x{word}","blockNumber":"17","blockHash":"0x{word}","timestamp":"1",
            "contractAddress":"0x{address}","data":"0x03","topics":"[\"0x{word}\"]","logIndex":4,"transactionIndex":0}}]}}"#
        );
        let found = logs(body.as_bytes()).unwrap();
        let expected = Row {
            log: PlacedLog {
                block_number: 17,
                log_index: 4,
                transaction_hash: B256::repeat_byte(0x22),
                address: Address::repeat_byte(0x11),
                topics: Topics::new(&[B256::repeat_byte(0x22)]).unwrap(),
                data: Bytes::from_static(&[3]),
            },
            block_hash: Some(B256::repeat_byte(0x22)),
            transaction_index: Some(0),
            timestamp: Some(1),
        };
        assert_eq!(found, [expected]);
        assert!(logs(br#"{"logs":[{}]}"#).is_err());
    }
}
