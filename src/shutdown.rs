//! Telling everybody to stop, once. A leaf.

use tokio::sync::watch;

/// Asks for the end.
#[derive(Clone, Debug)]
pub struct Trigger(watch::Sender<bool>);

/// Learns of the end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// A trigger and what it tells.
#[must_use]
pub fn pair() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Trigger(sender), Shutdown(receiver))
}

impl Trigger {
    /// Asks everybody to stop. May be called again.
    pub fn fire(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Whether the end was asked for.
    #[must_use]
    pub fn is_fired(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the end is asked for, also when whoever could ask is gone.
    pub async fn fired(&mut self) {
        // An error means that the trigger was dropped: nothing is left to wait for.
        let _ = self.0.wait_for(|fired| *fired).await;
    }

    /// Runs `work` until it ends or the end is asked for; `None` then.
    pub async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.fired() => None,
            done = work => Some(done),
        }
    }
}
