//! Hearing of the node's head while the sync does not.

use std::sync::Arc;
use std::time::Duration;

use crate::clock;
use crate::node::{Node, NodeError};
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::Store;

/// The sync hears of the node's head before each piece of work. One that takes long, or a sync that stopped by itself,
/// hears nothing more: then the node is asked this often.
const HEARD_EVERY: Duration = Duration::from_secs(10);

/// A node that does not tell its head within this does not answer, whatever becomes of the question.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// What is said of such a node.
const SILENT: &str = "the node does not tell its head in time, waiting for it";

/// How it begins what is said of one that has asked for a rest, and is asked nothing for so long.
const RESTS: &str = "the node asked to be left alone";

/// Keeps the node's head in the status true while the sync does not. What a node of another chain than the store's has is no head of ours.
pub(super) async fn keep_hearing(
    node: Node,
    store: Arc<Store>,
    status: Arc<ChainStatus>,
    mut shutdown: Shutdown,
) {
    // By a clock that nobody sets: after a jump of the day's nothing would be asked until that has caught up.
    let mut heard = (status.head_word(), None);
    while shutdown
        .unless(tokio::time::sleep(HEARD_EVERY / 3))
        .await
        .is_some()
    {
        let (word, now) = (status.head_word(), clock::now());
        if word != heard.0 {
            heard = (word, Some(now));
        }
        if heard.1.is_some_and(|at| now - at < HEARD_EVERY) {
            continue;
        }
        if let Some(left) = node.resting() {
            tell_rest(&status, left);
            continue;
        }
        match shutdown
            .unless(tokio::time::timeout(ANSWERS_WITHIN, head(&node, &store)))
            .await
        {
            None => return,
            Some(Ok(Ok(head))) => {
                status.set_node_up(true);
                if let Some(head) = head {
                    status.set_node_head(head);
                }
                // What the sync has said since of what it waits for stays.
                if is_own(&status.message()) {
                    status.went_on();
                }
            }
            Some(Err(_)) => match node.resting() {
                Some(left) => tell_rest(&status, left),
                None => {
                    tracing::debug!("the node does not tell its head in time");
                    status.set_node_up(false);
                    // The sync says so itself, and why, once its own question has waited for long enough.
                    say(&status, SILENT.to_owned());
                }
            },
            Some(Ok(Err(error))) => {
                tracing::debug!(%error, "the node does not tell its head");
                status.set_node_up(error.is_answer());
            }
        }
    }
}

/// The node's head, if it is of the store's chain: by now it may be another node, and the sync may find that out later, or have stopped by it.
async fn head(node: &Node, store: &Store) -> Result<Option<u64>, NodeError> {
    let head = node.head().await?;
    let (chain_id, genesis) = node.chain().await?;
    Ok(store.check_chain(chain_id, genesis).is_ok().then_some(head))
}

/// A node that has asked for it is not silent.
fn tell_rest(status: &ChainStatus, left: Duration) {
    say(status, format!("{RESTS} for {:.0} s", left.as_secs_f64().ceil()));
}

/// Says what is waited for, unless the sync itself does.
fn say(status: &ChainStatus, text: String) {
    if !status.is_troubled() || is_own(&status.message()) {
        status.trouble(text);
    }
}

fn is_own(message: &str) -> bool {
    message == SILENT || message.starts_with(RESTS)
}
