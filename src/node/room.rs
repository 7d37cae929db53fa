//! Room for bundles that are being fetched, so that what a node sends stays within the memory that it may take.
//!
//! A bundle gets room by the size of recent answers before anything is asked for. An answer that is longer than all of that is
//! not read on, and asked for again when there is room for it. Only the bundle that has been waited for longest is always read:
//! those after it are of no use before it, and its room comes back once it is taken.

use super::recent::Recent;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Bytes in flight are counted in units of this size.
const UNIT: u64 = 1024;

/// Longer answers take room by this much at a time.
const STEP_UNITS: u64 = 1024;

/// An answer is taken to have so many times what is known of it: most do not state their length, and were given up early.
const LENGTH_FACTOR: u64 = 2;

/// Numbers from here on are of bundles that all others come before.
const ASIDE: u64 = 1 << 63;

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
        self.hold(recent, 0).await
    }

    /// The same for a bundle that nobody after it waits for: it comes first only while it is alone.
    pub(super) async fn reserve_aside(self: Arc<Self>, recent: &Recent) -> Reservation {
        self.hold(recent, ASIDE).await
    }

    async fn hold(self: Arc<Self>, recent: &Recent, behind: u64) -> Reservation {
        let number = {
            let mut line = self.line();
            line.next += 1;
            behind + line.next
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
                kept: 0,
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
    /// Bytes of answers that are kept until others of their kind are there.
    kept: u64,
}

impl Reservation {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long an answer may be that is at most `bytes_max`: as all answers about a block together usually are, less what is kept.
    pub(super) fn bound(&self, bytes_max: usize) -> usize {
        if self.is_first() {
            return bytes_max;
        }
        let held = self.held();
        let left = held.units.saturating_mul(UNIT).saturating_sub(held.kept);
        bytes_max.min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Begins to keep answers that come one by one.
    pub(super) const fn keep(&self) -> Kept<'_> {
        Kept(self)
    }

    /// Waits for room for an answer of which `bytes` are known, beside what is kept.
    pub(super) async fn wait_for(&self, bytes: usize) {
        let long = (bytes as u64).saturating_mul(LENGTH_FACTOR);
        let units = self.held().kept.saturating_add(long).div_ceil(UNIT);
        loop {
            let mut freed = std::pin::pin!(self.room.freed.notified());
            // Registered before looking, so that no room that comes back in between is missed.
            freed.as_mut().enable();
            if self.is_first() || self.has(units) {
                return;
            }
            freed.await;
        }
    }

    /// Whether there is room for so much, with what more can be had at once.
    fn has(&self, units: u64) -> bool {
        let mut held = self.held();
        while held.units < units {
            let step = (units - held.units).min(STEP_UNITS);
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
        true
    }

    fn is_first(&self) -> bool {
        self.room.line().holders.first() == Some(&self.number)
    }
}

/// Answers that are kept until all of their kind are there, and take of the room together until this is dropped.
#[derive(Debug)]
pub(super) struct Kept<'a>(&'a Reservation);

impl Kept<'_> {
    /// Takes one more; the bytes of all then, or `None` where there is no room for it.
    pub(super) fn take(&self, bytes: usize) -> Option<usize> {
        let all = self.0.held().kept.saturating_add(bytes as u64);
        if !self.0.is_first() && !self.0.has(all.div_ceil(UNIT)) {
            return None;
        }
        self.0.held().kept = all;
        Some(usize::try_from(all).unwrap_or(usize::MAX))
    }

    /// Waits for room for one that was not taken.
    pub(super) async fn wait_for(&self, bytes: usize) {
        self.0.wait_for(bytes).await;
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.0.held().kept = 0;
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
        assert_eq!(first.bound(100 * MIB), 100 * MIB, "it is waited for");
        assert_eq!(second.bound(100 * MIB), MIB);
        assert_eq!(second.bound(1), 1);
        assert!(second.wait_for(2 * MIB).now_or_never().is_some(), "there is room");
        assert_eq!(second.bound(100 * MIB), 4 * MIB);
        assert!(second.wait_for(6 * MIB).now_or_never().is_none(), "there is none");
        drop(first);
        assert!(second.wait_for(100 * MIB).now_or_never().is_some());
        assert_eq!(second.bound(100 * MIB), 100 * MIB, "now it is the first");
    }

    #[tokio::test]
    async fn who_looks_aside_is_in_nobodys_way() {
        let (room, recent) = (Arc::new(Room::new(8 * MIB)), recent(2 * MIB));
        let aside = Arc::clone(&room).reserve_aside(&recent).await;
        assert_eq!(aside.bound(100 * MIB), 100 * MIB, "it is alone");
        let first = reserve(&room, &recent).await;
        assert_eq!(first.bound(100 * MIB), 100 * MIB);
        assert_eq!(aside.bound(100 * MIB), 2 * MIB);
        drop(first);
        assert_eq!(aside.bound(100 * MIB), 100 * MIB, "it is alone again");
    }

    #[tokio::test]
    async fn answers_that_are_kept_take_room_together() {
        let (room, recent) = (Arc::new(Room::new(8 * MIB)), recent(2 * MIB));
        let first = reserve(&room, &recent).await;
        let second = reserve(&room, &recent).await;
        let kept = second.keep();
        assert_eq!(kept.take(MIB), Some(MIB));
        assert_eq!(second.bound(100 * MIB), MIB);
        assert_eq!(kept.take(4 * MIB), Some(5 * MIB), "there is more room");
        assert_eq!(second.bound(100 * MIB), 0);
        assert_eq!(kept.take(2 * MIB), None);
        assert!(kept.wait_for(2 * MIB).now_or_never().is_none());
        drop(first);
        assert!(kept.wait_for(2 * MIB).now_or_never().is_some());
        assert_eq!(kept.take(100 * MIB), Some(105 * MIB), "now it is the first");
        drop(kept);
        assert_eq!(second.keep().take(1), Some(1));
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_room_comes_back() {
        let (room, recent) = (Arc::new(Room::new(8 * MIB)), recent(MIB));
        let (first, second) = (reserve(&room, &recent).await, reserve(&room, &recent).await);
        let third = reserve(&room, &recent).await;
        assert!(second.wait_for(3 * MIB).now_or_never().is_some());
        let mut waits = std::pin::pin!(third.wait_for(3 * MIB));
        assert!(waits.as_mut().now_or_never().is_none());
        drop(second);
        assert!(waits.now_or_never().is_some());
        assert_eq!(third.bound(100 * MIB), 6 * MIB);
        drop(first);
    }

    #[tokio::test]
    async fn all_of_it_is_there_again_at_the_end() {
        let (room, recent) = (Arc::new(Room::new(8 * MIB)), recent(3 * MIB));
        for _ in 0..5 {
            let both = (reserve(&room, &recent).await, reserve(&room, &recent).await);
            both.0.wait_for(20 * MIB).await;
            assert!(both.1.wait_for(20 * MIB).now_or_never().is_none());
            drop(both);
            assert_eq!(room.units.available_permits() as u64, room.all);
            assert!(room.line().holders.is_empty());
        }
    }
}
