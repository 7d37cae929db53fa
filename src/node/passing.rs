//! Questions of clients, passed on as they are: the node's answer or error is theirs to read.
//!
//! Which methods may be asked is for the caller to say. Here a question is bounded: few at a time, so that the blocks that
//! are being fetched do not wait for clients; sent once, because the client can repeat it; short.

use super::client::Node;
use super::error::NodeError;
use super::link::{Question, ResultText};
use super::pace::{Outcome, RequestClass};
use crate::tasks;
use serde_json::value::RawValue;
use std::sync::atomic::Ordering;

/// Most questions of clients in flight at a node.
pub(super) const IN_FLIGHT_MAX: usize = 16;

/// What a node said to a question that was passed on.
#[derive(Clone, Debug)]
pub enum Passed<T = Box<RawValue>> {
    /// Its result, JSON.
    Result(T),
    /// Its error object.
    Error {
        /// The code.
        code: i64,
        /// The message.
        message: String,
        /// What else it says, JSON: the bytes of a revert, as a rule.
        data: Option<Box<RawValue>>,
    },
}

impl Passed<ResultText> {
    /// The same for who must have JSON.
    fn checked(self, method: &'static str) -> Result<Passed, NodeError> {
        Ok(match self {
            Self::Result(text) => Passed::Result(text.checked(method)?),
            Self::Error { code, message, data } => Passed::Error { code, message, data },
        })
    }
}

impl Node {
    /// Asks on the runtime that the node was connected on: a connection that is made for a question is read by the runtime that
    /// asks it, and all who ask share it. `None` where the question panicked, or that runtime ended.
    pub fn at_home<F>(&self, question: F) -> impl Future<Output = Option<F::Output>> + Send + use<F>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        tasks::on(self.home(), question)
    }

    /// Asks `method` with `params`, a JSON array, once. Waits while too many such questions are in flight.
    ///
    /// # Errors
    ///
    /// As the way to the node fails; what the node itself says is an answer, errors too.
    pub async fn pass_on(&self, method: &'static str, params: &RawValue) -> Result<Passed, NodeError> {
        let class = RequestClass::Call;
        let _place = self.passing().acquire().await.ok();
        let node = self.for_clients();
        let slot = node.admit(class, method).await?;
        let stats = self.stats();
        stats.requests.fetch_add(1, Ordering::Relaxed);
        let question = Question {
            method,
            params,
            bytes_max: self.config().bytes_max(class),
            after: self.config().timeout(class),
        };
        let passed = self.link().pass_on(question).await;
        let passed = passed.and_then(|passed| passed.checked(method));
        let error = match passed {
            Ok(Passed::Error { code, message, data }) => {
                // A node that asks for fewer requests says so to the one who keeps the pace, too.
                let outcome = if NodeError::of_rpc(method, code, &message).is_push_back() {
                    Outcome::PushedBack
                } else {
                    Outcome::Answered
                };
                stats.answered(slot.end(outcome, 0), 0);
                return Ok(Passed::Error { code, message, data });
            }
            Ok(Passed::Result(text)) => {
                let bytes = text.get().len();
                stats.answered(slot.end(Outcome::Answered, bytes), bytes);
                return Ok(Passed::Result(text));
            }
            Err(error) => {
                let outcome = if error.is_push_back() {
                    Outcome::PushedBack
                } else {
                    Outcome::Failed
                };
                slot.end(outcome, 0);
                error
            }
        };
        self.obey(&error);
        self.count_failure(&error);
        Err(error)
    }
}
