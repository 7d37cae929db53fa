//! A node asked as the service is: over a connection of its own, what comes counted and dropped.

use std::time::Duration;

use super::Refusal;
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
        let of = |why: String| Refusal::of(format!("the node: {why}"));
        let Ok(got) = asked else {
            return Err(Refusal {
                why: format!(
                    "the node: {method}: no answer within {} ms",
                    self.time.as_millis()
                ),
                is_late: true,
            });
        };
        let got = got.map_err(|error| Refusal {
            is_late: true,
            ..of(error.to_string())
        })?;
        let begin = String::from_utf8_lossy(&begin);
        let is_result = begin.contains("\"result\"") || !begin.contains("\"error\"");
        match got.status {
            StatusCode::OK if is_result => Ok(got.bytes),
            status => Err(of(format!(
                "status {} while it was timed: {begin}",
                status.as_u16()
            ))),
        }
    }
}
