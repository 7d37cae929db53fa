//! What may be said of an answer that is none.

use super::client::Node;
use super::error::{NodeError, head};

impl Node {
    /// An answer that is JSON and none to `method`: counted as a failure of the node, as one that is no JSON is when it comes.
    pub(super) fn malformed(&self, method: &'static str, reason: &dyn std::fmt::Display) -> NodeError {
        let error = self.shown(NodeError::Malformed {
            method,
            reason: reason.to_string(),
        });
        self.count_failure(&error);
        error
    }

    /// The error on one short line, without what no log may tell: it may repeat an answer in its own words, and a gateway's have the URL.
    pub(super) fn shown(&self, error: NodeError) -> NodeError {
        match error {
            NodeError::Malformed { method, reason } => NodeError::Malformed {
                method,
                reason: head(&self.link().hide(&reason)),
            },
            error => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeConfig;

    #[tokio::test]
    async fn an_answer_that_repeats_the_url_is_told_without_its_key() {
        let config = NodeConfig::new("http://127.0.0.1:1/v3/0123456789abcdef");
        let node = Node::connect(config).await.unwrap();
        let words = format!(
            "not traced: no plan\n for /v3/0123456789abcdef {}",
            "x".repeat(999)
        );
        let error = node.malformed("trace_block", &words).to_string();
        assert!(error.contains("not traced: no plan for"), "{error}");
        assert!(!error.contains("0123456789abcdef"), "{error}");
        assert!(error.len() < 300, "{error}");
    }
}
