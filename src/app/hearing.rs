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

/// Nor is more than this waited for its chain, two questions: it has answered by then, and is not silent.
const TELLS_CHAIN_WITHIN: Duration = Duration::from_secs(20);

/// What is said of a silent one.
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
        let answered = match shutdown.unless(Box::pin(head(&node, &store))).await {
            None => return,
            Some(Some(Ok(head))) => {
                // What the sync has heard since it was asked is newer.
                if status.head_word() == word {
                    status.set_node_up(true);
                    if let Some(head) = head {
                        status.set_node_head(head);
                    }
                }
                // What the sync has said since of what it waits for stays.
                if is_own(&status.message()) {
                    status.went_on();
                }
                true
            }
            Some(None) => {
                match node.resting() {
                    Some(left) => tell_rest(&status, left),
                    None => {
                        tracing::debug!("the node does not tell its head in time");
                        status.set_node_up(false);
                        // The sync says so itself, and why, once its own question has waited for long enough.
                        say(&status, SILENT.to_owned());
                    }
                }
                false
            }
            Some(Some(Err(error))) => {
                tracing::debug!(%error, "the node does not tell its head");
                status.set_node_up(error.is_answer());
                error.is_answer()
            }
        };
        // Whatever it said: it may have told no head that is of use here.
        if answered {
            heard = (status.head_word(), Some(clock::now()));
        }
    }
}

/// The node's head, if it says that it is of the store's chain: by now it may be another node, and the sync may find that out later, or have
/// stopped by it. `None` where it does not tell its head in time.
async fn head(node: &Node, store: &Store) -> Option<Result<Option<u64>, NodeError>> {
    let head = match tokio::time::timeout(ANSWERS_WITHIN, node.head()).await.ok()? {
        Ok(head) => head,
        Err(error) => return Some(Err(error)),
    };
    let chain = tokio::time::timeout(TELLS_CHAIN_WITHIN, node.chain()).await;
    let is_ours = |(chain_id, genesis)| store.check_chain(chain_id, genesis).is_ok();
    Some(chain.map_or(Ok(None), |told| told.map(|chain| is_ours(chain).then_some(head))))
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::model::B256;
    use crate::node::NodeConfig;
    use crate::shutdown;
    use crate::store::OpenOptions;

    /// Answers what is asked on a connection, each question after `pause`; counts those for the head.
    async fn answer(stream: TcpStream, chain_id: u64, pause: Duration, asked: Arc<AtomicUsize>) {
        let (mut stream, mut length) = (BufReader::new(stream), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = said.trim().parse().unwrap();
            }
            if !line.trim().is_empty() {
                continue;
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            let question: Value = serde_json::from_slice(&body).unwrap();
            let result = match question["method"].as_str().unwrap() {
                "eth_blockNumber" => {
                    asked.fetch_add(1, Ordering::SeqCst);
                    json!("0x7")
                }
                "eth_chainId" => json!(format!("{chain_id:#x}")),
                _ => json!({ "number": "0x0", "hash": B256::repeat_byte(9), "parentHash": B256::ZERO }),
            };
            tokio::time::sleep(pause).await;
            let body = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }).to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
            let answer = format!("{head} {}\r\n\r\n{body}", body.len());
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// What is heard in eleven seconds of a node beside a sync that hears nothing, and how often the node is asked for its head.
    async fn heard(chain_id: u64, pause: Duration) -> (Arc<ChainStatus>, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, chain_id, pause, Arc::clone(&counted)));
            }
        });
        let node = Node::connect(NodeConfig::new(url)).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        let open = OpenOptions::new(home.path());
        let store = Store::open_or_create(&open, 61, B256::repeat_byte(9), None).unwrap();
        let (status, (trigger, shutdown)) = (Arc::new(ChainStatus::default()), shutdown::pair());
        let hearing = tokio::spawn(keep_hearing(node, store, Arc::clone(&status), shutdown));
        tokio::time::sleep(Duration::from_secs(11)).await;
        trigger.fire();
        hearing.await.unwrap();
        serving.abort();
        (status, asked.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn a_slow_node_is_not_silent_and_a_foreign_one_is_asked_as_seldom() {
        let (slow, foreign) = tokio::join!(
            heard(61, Duration::from_millis(1900)),
            heard(62, Duration::from_millis(1))
        );
        let (status, asked) = slow;
        assert!(status.node_up(), "{}", status.message());
        assert_eq!((status.node_head(), asked), (Some(7), 1));
        assert_ne!(status.message(), SILENT);
        let (status, asked) = foreign;
        assert!(status.node_up());
        assert_eq!((status.node_head(), asked), (None, 1));
    }
}
