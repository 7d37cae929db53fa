//! Room for bundles that are being fetched, so that what a node sends stays within the memory that it may take.
//!
//! A bundle gets room by the size of recent answers before anything is asked for. Where its answers are longer than that they
//! take more as they come, and are not read on while there is none: the node waits. Only the bundle that has been waited
//! for longest is always read, for those after it are of no use before it, and its room comes back once it is taken.

use super::recent::Recent;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Bytes in flight are counted in units of this size.
const UNIT: u64 = 1024;

/// Longer answers take room by this much at a time.
const STEP_UNITS: u64 = 1024;

/// Answers may be so many times as long as those before them without a word: sizes vary.
const USUAL_FACTOR: u64 = 2;

/// All the room there is.
#[derive(Debug)]
pub(super) struct Room {
    units: Arc<Semaphore>,
    all: u64,
    line: Mutex<Line>,
    /// Some of it has come back.
    freed: Notify,
}

/// Who holds some, by number; who came first has the lowest.
#[derive(Debug, Default)]
struct Line {
    next: u64,
    holders: BTreeSet<u64>,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        let most = Semaphore::MAX_PERMITS.min(u32::MAX as usize) as u64;
        let all = (bytes as u64 / UNIT).clamp(1, most);
        Self {
            units: Arc::new(Semaphore::new(usize::try_from(all).unwrap_or(usize::MAX))),
            all,
            line: Mutex::default(),
            freed: Notify::new(),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for one more bundle, in the order of asking.
    pub(super) async fn reserve(self: Arc<Self>, recent: &Recent) -> Reservation {
        let number = {
            let mut line = self.line();
            line.next += 1;
            line.next
        };
        let units = (recent.bundle_bytes() / UNIT).clamp(1, self.all);
        let permits = u32::try_from(units).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.units).acquire_many_owned(permits).await.ok();
        self.line().holders.insert(number);
        Reservation {
            number,
            held: Mutex::new(Held {
                permit,
                units,
                bytes: 0,
            }),
            room: self,
        }
    }
}

/// Room for one bundle among the bytes in flight; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    room: Arc<Room>,
    number: u64,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    permit: Option<OwnedSemaphorePermit>,
    units: u64,
    /// What was read of answers.
    bytes: u64,
}

impl Reservation {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes that are about to be kept; waits while there is no room for them.
    pub(super) async fn take(&self, bytes: usize) {
        self.held().bytes += bytes as u64;
        loop {
            let mut freed = std::pin::pin!(self.room.freed.notified());
            // Registered before looking, so that no room that comes back in between is missed.
            freed.as_mut().enable();
            if self.has_room() || self.is_first() {
                return;
            }
            freed.await;
        }
    }

    /// Bytes that were taken for an answer that came to nothing.
    pub(super) fn give_back(&self, bytes: usize) {
        let mut held = self.held();
        held.bytes = held.bytes.saturating_sub(bytes as u64);
    }

    /// All answers came to nothing and are asked for again. What room was taken for them stays.
    pub(super) fn begin_again(&self) {
        self.held().bytes = 0;
    }

    /// Whether what was read fits, with what more can be had at once.
    fn has_room(&self) -> bool {
        let mut held = self.held();
        loop {
            let lacking = (held.bytes / UNIT).saturating_sub(held.units.saturating_mul(USUAL_FACTOR));
            if lacking == 0 {
                return true;
            }
            let step = lacking.min(STEP_UNITS);
            let permits = u32::try_from(step).unwrap_or(u32::MAX);
            let Ok(more) = Arc::clone(&self.room.units).try_acquire_many_owned(permits) else {
                return false;
            };
            held.units += step;
            match &mut held.permit {
                Some(permit) => permit.merge(more),
                none => *none = Some(more),
            }
        }
    }

    fn is_first(&self) -> bool {
        self.room.line().holders.first() == Some(&self.number)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.room.line().holders.remove(&self.number);
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(held.permit.take());
        self.room.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::pace::RequestClass;
    use futures_util::FutureExt as _;

    const MIB: usize = 1 << 20;

    fn recent(bytes: usize) -> Recent {
        let recent = Recent::empty();
        recent.weighed(RequestClass::Receipts, bytes);
        recent
    }

    async fn reserve(room: &Arc<Room>, recent: &Recent) -> Reservation {
        Arc::clone(room).reserve(recent).await
    }

    #[tokio::test]
    async fn answers_as_long_as_usual_are_read_and_others_while_there_is_room() {
        let (room, recent) = (Arc::new(Room::new(8 * MIB)), recent(MIB));
        let first = reserve(&room, &recent).await;
        let second = reserve(&room, &recent).await;
        assert!(second.take(2 * MIB).now_or_never().is_some(), "twice as long");
        assert!(second.take(4 * MIB).now_or_never().is_some(), "there is room");
        assert!(second.take(16 * MIB).now_or_never().is_none(), "there is none");
        assert!(first.take(100 * MIB).now_or_never().is_some(), "it is waited for");
        drop(first);
        assert!(
            second.take(100 * MIB).now_or_never().is_some(),
            "now it is the first"
        );
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_room_comes_back() {
        let (room, recent) = (Arc::new(Room::new(8 * MIB)), recent(MIB));
        let (first, second) = (reserve(&room, &recent).await, reserve(&room, &recent).await);
        let third = reserve(&room, &recent).await;
        first.take(7 * MIB).await;
        let mut waits = std::pin::pin!(third.take(12 * MIB));
        assert!(waits.as_mut().now_or_never().is_none());
        // One that is read in vain keeps its room for the next attempt, and needs no more for it.
        first.begin_again();
        assert!(first.take(7 * MIB).now_or_never().is_some());
        drop(second);
        drop(first);
        waits.await;
        third.give_back(12 * MIB);
        assert!(third.take(12 * MIB).now_or_never().is_some());
    }

    #[tokio::test]
    async fn all_of_it_is_there_again_at_the_end() {
        let (room, recent) = (Arc::new(Room::new(8 * MIB)), recent(3 * MIB));
        for _ in 0..5 {
            let both = (reserve(&room, &recent).await, reserve(&room, &recent).await);
            both.0.take(20 * MIB).await;
            drop(both);
            assert_eq!(room.units.available_permits() as u64, room.all);
            assert!(room.line().holders.is_empty());
        }
    }
}
