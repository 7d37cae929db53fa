//! A node asked as the service is: over a connection of its own, what comes counted and dropped.

use std::time::Duration;

use super::{Refusal, said};
use crate::http::{Connection, StatusCode, plain_address};
use crate::node::NodeConfig;

/// So much of an answer's beginning tells whether it is an error.
const LOOKED_AT: usize = 256;

/// A connection to a node like that to the service: what comes is counted and dropped. The client of the sync also reads through the answer,
/// twice, and waits for its turn.
pub(super) struct Plain {
    connection: Connection,
    target: String,
    time: Duration,
}

/// How a node is timed, in words.
pub async fn timing(config: &NodeConfig) -> &'static str {
    match Plain::open(config).await {
        Some(_) => "its answers are counted and dropped in that time, as the service's are",
        None => {
            "its answers are read through by the client of the sync in that time, which the service's are not: only a URL of http:// without a \
             password is asked as the service is"
        }
    }
}

impl Plain {
    pub(super) async fn open(config: &NodeConfig) -> Option<Self> {
        let (authority, target) = plain_address(&config.url)?;
        Some(Self {
            connection: Connection::open(&authority).await.ok()?,
            target,
            time: config.light_timeout,
        })
    }

    /// Asks, and counts the bytes that come.
    pub(super) async fn ask(&mut self, method: &str, params: &str) -> Result<u64, Refusal> {
        self.visit(method, params, |_| {}).await
    }

    /// Asks, and gives all that comes.
    pub(super) async fn whole(&mut self, method: &str, params: &str) -> Result<Vec<u8>, Refusal> {
        let mut body = Vec::new();
        self.visit(method, params, |bytes| body.extend_from_slice(bytes))
            .await?;
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
        let asking = self.connection.post(&self.target, json.into(), |bytes| {
            let wanted = bytes.len().min(LOOKED_AT - begin.len());
            begin.extend_from_slice(bytes.get(..wanted).unwrap_or_default());
            visit(bytes);
        });
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
