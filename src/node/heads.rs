//! News of the head: by subscription where there is one, by asking where there is none.

use super::client::Node;
use super::tag::BlockTag;
use super::wire::{self, BlockId};
use std::time::Duration;
use tokio::sync::watch;

use crate::tasks;

/// How many poll intervals a subscription may be silent before the head is asked for all the same. A
/// node that dropped the subscription, or a connection that died without a word, is noticed so.
const SILENT_POLLS_MAX: u32 = 8;

/// The pause before a subscription that ended with its connection is made anew.
const RENEWAL_PAUSE: Duration = Duration::from_secs(1);

/// The newest block as it changes; ends the watching when dropped.
#[derive(Debug)]
pub struct Heads {
    receiver: watch::Receiver<Option<BlockId>>,
}

impl Heads {
    /// Waits for a head that differs from the last one given (also one with a lower or the same number:
    /// the chain was reorganised). Heads that came and went in between are skipped. `None` when the
    /// runtime is shutting down.
    pub async fn next(&mut self) -> Option<BlockId> {
        loop {
            self.receiver.changed().await.ok()?;
            if let Some(head) = *self.receiver.borrow_and_update() {
                return Some(head);
            }
        }
    }
}

impl Node {
    /// Watches the head from now on; the first value is the head of now. Failures are waited out, for as
    /// long as they last, so this never ends by itself.
    #[must_use]
    pub fn heads(&self) -> Heads {
        let (sender, receiver) = watch::channel(None);
        let node = self.clone();
        tasks::beside(async move {
            tokio::select! {
                () = sender.closed() => {}
                () = node.watch_head(&sender) => {}
            }
        });
        Heads { receiver }
    }

    async fn watch_head(&self, sender: &watch::Sender<Option<BlockId>>) {
        let interval = self.config().poll_interval;
        loop {
            self.poll_head(sender).await;
            let mut pause = interval;
            if self.can_subscribe() && self.follow_subscription(sender, interval).await {
                pause = interval.min(RENEWAL_PAUSE);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Follows a subscription until it ends, as it does with its connection; whether another is worth asking for
    /// soon, which it is not where the node itself refused it.
    async fn follow_subscription(&self, sender: &watch::Sender<Option<BlockId>>, interval: Duration) -> bool {
        let mut subscription = match self.subscribe_heads().await {
            Ok(subscription) => subscription,
            Err(error) => {
                tracing::debug!(%error, "no subscription to heads, asking instead");
                return !error.is_answer();
            }
        };
        loop {
            match tokio::time::timeout(interval * SILENT_POLLS_MAX, subscription.next()).await {
                Ok(Some(header)) => match wire::block_id(header.get()) {
                    Ok(head) => tell(sender, head),
                    Err(error) => {
                        tracing::debug!(%error, "odd header in a subscription");
                        self.poll_head(sender).await;
                    }
                },
                Ok(None) => return true,
                Err(_) => self.poll_head(sender).await,
            }
        }
    }

    async fn poll_head(&self, sender: &watch::Sender<Option<BlockId>>) {
        match self.tagged(BlockTag::Latest).await {
            Ok(Some(head)) => tell(sender, head),
            Ok(None) => tracing::debug!("the node names no latest block"),
            Err(error) => tracing::debug!(%error, "head not learnt"),
        }
    }
}

fn tell(sender: &watch::Sender<Option<BlockId>>, head: BlockId) {
    sender.send_if_modified(|told| {
        let changed = *told != Some(head);
        *told = Some(head);
        changed
    });
}
