//! A node asked as the service is: over a connection of its own, what comes counted and dropped.

use std::time::Duration;

use super::{Refusal, said};
use crate::bench::body::Kept;
use crate::http::{Connection, StatusCode, plain_address};
use crate::node::NodeConfig;

/// So much of an answer's beginning tells whether it is an error.
const LOOKED_AT: usize = 256;

/// A connection to a node like that to the service: what comes is counted and dropped. The client of the sync also reads through the answer,
/// twice, and waits for its turn.
pub(super) struct Plain {
    authority: String,
    target: String,
    /// Opened by who asks first.
    connection: Option<Connection>,
    time: Duration,
    bytes_max: usize,
}

/// How a node is timed, in words.
pub fn timing(config: &NodeConfig) -> &'static str {
    match Plain::of(config) {
        Some(_) => "its answers are counted and dropped in that time, as the service's are",
        None => {
            "its answers are read through by the client of the sync in that time, which the service's are not: only a URL of http:// without a \
             password is asked as the service is"
        }
    }
}

impl Plain {
    /// Of a node that is asked by a URL of `http://` without a password; nothing is sent.
    pub(super) fn of(config: &NodeConfig) -> Option<Self> {
        let (authority, target) = plain_address(&config.url)?;
        Some(Self {
            authority,
            target,
            connection: None,
            time: config.light_timeout,
            bytes_max: config.response_bytes_max,
        })
    }

    /// Asks, and counts the bytes that come.
    pub(super) async fn ask(&mut self, method: &str, params: &str) -> Result<u64, Refusal> {
        self.visit(method, params, |_| {}).await
    }

    /// Asks, and gives all that comes, which is no longer than what the client of the sync takes.
    pub(super) async fn whole(&mut self, method: &str, params: &str) -> Result<Vec<u8>, Refusal> {
        let mut body = Vec::new();
        let mut kept = Kept::new(&mut body, self.bytes_max);
        self.visit(method, params, |bytes| kept.take(bytes)).await?;
        let whole = kept.end();
        whole.map_err(|why| Refusal::of(format!("the node: {method}: {why}")))?;
        Ok(body)
    }

    async fn visit(
        &mut self,
        method: &str,
        params: &str,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<u64, Refusal> {
        let json = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let mut begin = Vec::with_capacity(LOOKED_AT);
        let (connection, authority, target) = (&mut self.connection, &self.authority, &self.target);
        let asking = async {
            let connection = match connection {
                Some(connection) => connection,
                None => connection.insert(Connection::open(authority).await?),
            };
            let visit = |bytes: &[u8]| {
                let wanted = bytes.len().min(LOOKED_AT - begin.len());
                begin.extend_from_slice(bytes.get(..wanted).unwrap_or_default());
                visit(bytes);
            };
            connection.post(target, json.into(), visit).await
        };
        let asked = tokio::time::timeout(self.time, asking).await;
        let Ok(got) = asked else {
            return Err(Refusal::late(format!(
                "the node: {method}: no answer within {} ms",
                self.time.as_millis()
            )));
        };
        let got = got.map_err(|error| Refusal::late(format!("the node: {error}")))?;
        let begin = String::from_utf8_lossy(&begin);
        let is_result = begin.contains("\"result\"") || !begin.contains("\"error\"");
        match got.status {
            StatusCode::OK if is_result => Ok(got.bytes),
            status => Err(Refusal::of(format!(
                "the node: {}",
                refused(&self.target, status, &begin)
            ))),
        }
    }
}

/// A refusal in words. A node may repeat what it was asked with, and its URL may hold a key: what it says of one that has a path is not shown.
fn refused(target: &str, status: StatusCode, body: &str) -> String {
    let words = match target {
        "/" => said(body),
        _ => "its words are not shown, for its URL may hold a key".to_owned(),
    };
    format!("status {} while it was timed: {words}", status.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_says_while_it_is_timed_moves_no_terminal_and_tells_no_key() {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let body = "{\"error\":\"key 0123456789abcdef\u{1b}]0;x\u{7} is\r\n\u{202e}spent\"}";
        let told = refused("/", status, body);
        assert_eq!(
            told,
            "status 429 while it was timed: {\"error\":\"key 0123456789abcdef ]0;x  is  spent\"}"
        );
        for target in ["/v3/0123456789abcdef", "/?key=0123456789abcdef"] {
            let told = refused(target, status, body);
            assert!(told.starts_with("status 429 while it was timed: "), "{told}");
            assert!(!told.contains("0123456789abcdef"), "{told}");
        }
        assert!(refused("/", status, &"a".repeat(1_000)).len() < 400);
    }
}
