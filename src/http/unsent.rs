//! How much memory answers hold that were made and are not sent yet. Clients that ask for long ones and take nothing of them would
//! make it grow until they are cut off; so no list is begun while there is more of it than may be, nor is another long answer given to
//! who has one already.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use super::error::HttpError;
use super::vitals::Vitals;

/// Shorter bodies are not counted over HTTP/1.1, where a connection has one at a time and takes as much itself.
const COUNTED_FROM: usize = 64 << 10;
/// The same where requests come beside each other: what a stream takes itself.
pub(super) const COUNTED_FROM_OF_MANY: usize = 1 << 10;

/// Once half of the room is taken one connection has a part in so many of it, or two of them could hold all.
const CONNECTION_SHARE: usize = 16;
/// Where all of it is taken short answers, too, are refused to a connection that holds one part in so many.
const SHORT_SHARE: usize = 128;

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

/// What is held for a request, counted for its connection, too, until it is dropped.
#[derive(Debug)]
pub struct Holding {
    held: Held,
    vitals: Option<Arc<Vitals>>,
}

impl Holding {
    /// Nothing yet.
    pub(super) fn new(unsent: &Unsent, vitals: Option<Arc<Vitals>>) -> Self {
        let held = unsent.hold(0);
        Self { held, vitals }
    }

    /// It is so much now.
    pub fn change(&mut self, bytes: usize) {
        if let Some(vitals) = &self.vitals {
            vitals.holds(self.held.bytes, bytes);
        }
        self.held.change(bytes);
    }

    /// Counts a frame apart from this, until it was sent.
    #[must_use]
    pub fn count_apart(&self, frame: Bytes) -> Bytes {
        self.held.unsent.hold_body(frame)
    }

    /// What its connection holds, this and all else.
    #[must_use]
    pub fn of_connection(&self) -> usize {
        self.vitals.as_ref().map_or(0, |vitals| vitals.held())
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.change(0);
    }
}

/// A body that many answers share. However many are under way it takes its memory once, and counts once.
#[derive(Clone, Debug)]
pub struct SharedBody {
    bytes: Bytes,
    /// What counts it while any answer holds it.
    out: Arc<Mutex<Weak<Held>>>,
}

impl From<Bytes> for SharedBody {
    fn from(bytes: Bytes) -> Self {
        let out = Arc::default();
        Self { bytes, out }
    }
}

impl SharedBody {
    /// The bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes for one more answer.
    pub(super) fn hand_out(self, unsent: &Unsent) -> Bytes {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let held = out.upgrade().unwrap_or_else(|| {
            let held = Arc::new(unsent.hold(self.bytes.len()));
            *out = Arc::downgrade(&held);
            held
        });
        drop(out);
        let bytes = self.bytes;
        Bytes::from_owner(Body { bytes, _held: held })
    }
}

/// A body that is counted until its last part is dropped.
struct Body<H> {
    bytes: Bytes,
    _held: H,
}

impl<H> AsRef<[u8]> for Body<H> {
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

    /// From which length on a body counts.
    pub(super) const fn counted_from(is_multiplexed: bool) -> usize {
        if is_multiplexed {
            COUNTED_FROM_OF_MANY
        } else {
            COUNTED_FROM
        }
    }

    /// Counts a body of which nobody else holds the memory, until it was sent.
    #[must_use]
    pub fn hold_body(&self, bytes: Bytes) -> Bytes {
        let _held = self.hold(bytes.len());
        Bytes::from_owner(Body { bytes, _held })
    }

    /// Whether as much is held as may be.
    pub(super) fn is_full(&self) -> bool {
        self.bytes() >= self.0.most
    }

    /// Whether a connection that holds so many bytes has its part, of a room of which half is taken.
    pub(super) fn is_spent_by(&self, connection: usize) -> bool {
        let most = self.0.most;
        self.bytes() >= most / 2 && connection >= most / CONNECTION_SHARE
    }

    /// Refuses an answer that was made, of so many bytes: a long one where a list would be refused, unless its connection holds nothing
    /// (so that figures and single blocks are to be had whatever others do), and a short one where the room is full and its connection
    /// holds many of them.
    ///
    /// # Errors
    /// 503.
    pub(super) fn refuse_made(&self, bytes: usize, connection: usize) -> Result<(), HttpError> {
        let least = if bytes >= COUNTED_FROM {
            1
        } else if bytes >= COUNTED_FROM_OF_MANY && self.is_full() {
            self.0.most / SHORT_SHARE
        } else {
            return Ok(());
        };
        if connection < least.max(1) {
            return Ok(());
        }
        self.refuse_when_full(connection)
    }

    /// Refuses a list while more is held than may be, or half of that and a sixteenth of it by the connection that asks, which
    /// holds so many bytes.
    ///
    /// # Errors
    /// 503.
    pub fn refuse_when_full(&self, connection: usize) -> Result<(), HttpError> {
        let text = if self.is_full() {
            "Too many long answers are being sent"
        } else if self.is_spent_by(connection) {
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
    fn bodies_count_until_their_last_part_is_gone() {
        let unsent = Unsent::new(1 << 20);
        let mut body = unsent.hold_body(Bytes::from(vec![2; 5000]));
        assert_eq!(unsent.bytes(), 5000);
        let part = body.split_off(10);
        drop(body);
        assert_eq!(unsent.bytes(), 5000);
        assert!(part.len() == 4990 && part.iter().all(|&byte| byte == 2));
        drop(part);
        assert_eq!(unsent.bytes(), 0);
    }

    #[test]
    fn a_shared_body_counts_once_while_anybody_holds_it() {
        let unsent = Unsent::new(1 << 20);
        let shared = SharedBody::from(Bytes::from(vec![3; 5000]));
        let mut out: Vec<Bytes> = (0..3).map(|_| shared.clone().hand_out(&unsent)).collect();
        assert_eq!((unsent.bytes(), out[2].as_ref()), (5000, shared.bytes().as_ref()));
        drop(shared.clone());
        out.truncate(1);
        assert_eq!(unsent.bytes(), 5000);
        out.clear();
        assert_eq!(unsent.bytes(), 0);
        // Others come for it later, also when it is kept no more.
        let late = shared.clone().hand_out(&unsent);
        drop(shared);
        assert_eq!((unsent.bytes(), late.len()), (5000, 5000));
    }

    #[test]
    fn what_was_made_is_refused_to_who_holds_something_already() {
        let unsent = Unsent::new(1 << 20);
        let (long, short, tiny) = (COUNTED_FROM, COUNTED_FROM - 1, COUNTED_FROM_OF_MANY - 1);
        let mut held = unsent.hold((1 << 19) - 1);
        for (bytes, connection) in [(long, 1 << 20), (short, 1 << 20)] {
            unsent.refuse_made(bytes, connection).unwrap();
        }
        // Half of the room: who holds a sixteenth gets nothing long.
        held.change(1 << 19);
        unsent.refuse_made(long, (1 << 16) - 1).unwrap();
        unsent.refuse_made(long, 1 << 16).unwrap_err();
        unsent.refuse_made(short, 1 << 16).unwrap();
        // All of it.
        held.change(1 << 20);
        unsent.refuse_made(long, 0).unwrap();
        unsent.refuse_made(long, 1).unwrap_err();
        unsent.refuse_made(short, (1 << 13) - 1).unwrap();
        unsent.refuse_made(short, 1 << 13).unwrap_err();
        unsent.refuse_made(tiny, 1 << 20).unwrap();
    }
}
