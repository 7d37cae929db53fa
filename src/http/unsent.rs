//! How much memory answers hold that were made and are not sent yet. Clients that ask for long ones and take nothing of them would
//! make it grow until they are cut off; so no list is begun while there is more of it than may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::error::HttpError;

/// Shorter bodies are not counted: a request and its connection take as much.
const COUNTED_FROM: usize = 64 << 10;

/// Once half of the room is taken one connection has a part in so many of it, or two of them could hold all.
const CONNECTION_SHARE: usize = 16;

#[derive(Debug)]
struct Account {
    bytes: AtomicUsize,
    most: usize,
}

/// The account of a service; cheap to share.
#[derive(Clone, Debug)]
pub struct Unsent(Arc<Account>);

/// Some of it, until it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    unsent: Unsent,
    bytes: usize,
}

impl Held {
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// It is so much now.
    pub(super) fn change(&mut self, bytes: usize) {
        let all = &self.unsent.0.bytes;
        all.fetch_add(bytes, Ordering::Relaxed);
        all.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.change(0);
    }
}

/// A body that is counted until its last part is dropped.
struct Body {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Unsent {
    /// An account of which lists may fill so many bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let bytes = AtomicUsize::new(0);
        Self(Arc::new(Account { bytes, most }))
    }

    /// Bytes held now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Counts so many bytes until the guard is dropped. Whoever has begun is not refused.
    pub(super) fn hold(&self, bytes: usize) -> Held {
        let unsent = self.clone();
        let mut held = Held { unsent, bytes: 0 };
        held.change(bytes);
        held
    }

    /// Counts a body of which nobody else holds the memory, until it was sent.
    #[must_use]
    pub fn hold_body(&self, bytes: Bytes) -> Bytes {
        if bytes.len() < COUNTED_FROM {
            return bytes;
        }
        let _held = self.hold(bytes.len());
        Bytes::from_owner(Body { bytes, _held })
    }

    /// Whether as much is held as may be.
    pub(super) fn is_full(&self) -> bool {
        self.bytes() >= self.0.most
    }

    /// Refuses a list while more is held than may be, or half of that and a sixteenth of it by the connection that asks, which
    /// holds so many bytes.
    ///
    /// # Errors
    /// 503.
    pub fn refuse_when_full(&self, connection: usize) -> Result<(), HttpError> {
        let (all, most) = (self.bytes(), self.0.most);
        let text = if self.is_full() {
            "Too many long answers are being sent"
        } else if all >= most / 2 && connection >= most / CONNECTION_SHARE {
            "Too many long answers are being sent on this connection"
        } else {
            return Ok(());
        };
        Err(HttpError::unavailable(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back() {
        let unsent = Unsent::new(1 << 20);
        let mut held = unsent.hold(1000);
        held.change(1 << 20);
        assert_eq!(unsent.bytes(), 1 << 20);
        unsent.refuse_when_full(0).unwrap_err();
        held.change(10);
        assert_eq!(unsent.bytes(), 10);
        unsent.refuse_when_full(1 << 20).unwrap();
        held.change(1 << 19);
        unsent.refuse_when_full((1 << 16) - 1).unwrap();
        unsent.refuse_when_full(1 << 16).unwrap_err();
        drop(held);
        assert_eq!(unsent.bytes(), 0);
    }

    #[test]
    fn long_bodies_count_until_their_last_part_is_gone() {
        let unsent = Unsent::new(1 << 20);
        let short = unsent.hold_body(Bytes::from(vec![1; COUNTED_FROM - 1]));
        assert_eq!(unsent.bytes(), 0);
        let mut long = unsent.hold_body(Bytes::from(vec![2; COUNTED_FROM]));
        assert_eq!(unsent.bytes(), COUNTED_FROM);
        let part = long.split_off(10);
        drop((short, long));
        assert_eq!(unsent.bytes(), COUNTED_FROM);
        assert!(part.len() == COUNTED_FROM - 10 && part.iter().all(|&byte| byte == 2));
        drop(part);
        assert_eq!(unsent.bytes(), 0);
    }
}
