//! Who counts as one that takes its answers.

use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;

use super::{COUNTED_FROM_OF_MANY, InFlight, Limits, Unsent, Verdict, Vitals, cramped_patience};

const LEAST: usize = COUNTED_FROM_OF_MANY;
const TICK: Duration = Duration::from_millis(10);

fn limits() -> Limits {
    Limits {
        write_timeout: TICK * 20,
        header_read_timeout: TICK * 20,
        answer_timeout: TICK * 30,
        body_timeout: TICK * 30,
        ..Limits::default()
    }
}

/// What is said at last of a client that takes so many bytes of a ready answer each tick.
fn after(ticks: u32, bytes: usize) -> Verdict {
    let (vitals, limits) = (Vitals::new(), limits());
    let mut now = vitals.began;
    let request = InFlight::begin_at(&vitals, now);
    request.turn.set_at(false, now);
    vitals.wrote_at(&Poll::Pending, || now);
    for _ in 0..ticks {
        now += TICK;
        vitals.wrote_at(&Poll::Ready(Ok(bytes)), || now);
        vitals.wrote_at(&Poll::Pending, || now);
        if vitals.verdict_at(&limits, false, now) != Verdict::Alive {
            break;
        }
    }
    vitals.verdict_at(&limits, false, now)
}

#[test]
fn a_little_now_and_then_is_not_taking() {
    assert_eq!(after(40, 1), Verdict::Stalled);
    assert_eq!(after(40, 1 << 10), Verdict::Stalled);
    assert_eq!(after(40, 16 << 10), Verdict::Alive);
}

#[test]
fn no_request_lasts_for_ever() {
    assert_eq!(after(45, 1 << 20), Verdict::Alive);
    assert_eq!(after(80, 1 << 20), Verdict::Stalled);
}

#[test]
fn where_there_is_no_room_who_takes_nothing_has_a_third_of_the_time() {
    let limits = Limits {
        write_timeout: Duration::from_secs(6),
        ..Limits::default()
    };
    assert_eq!(cramped_patience(limits.write_timeout), Duration::from_secs(2));
    assert_eq!(cramped_patience(Duration::from_secs(1)), Duration::from_secs(1));
    assert_eq!(
        cramped_patience(Duration::from_secs(3600)),
        Duration::from_secs(10)
    );
    let vitals = Vitals::new();
    vitals.note_multiplexed();
    let mut now = vitals.began;
    let mut request = InFlight::begin_at(&vitals, now);
    request.weigh(1000);
    now += Duration::from_millis(2_200);
    // It is our turn.
    assert_eq!(vitals.verdict_at(&limits, true, now), Verdict::Alive);
    request.turn.set_at(false, now);
    now += Duration::from_millis(2_200);
    // Others come and go meanwhile.
    let mut other = InFlight::begin_at(&vitals, now);
    other.end(now);
    drop(other);
    assert_eq!(vitals.verdict_at(&limits, false, now), Verdict::Alive);
    assert_eq!(vitals.verdict_at(&limits, true, now), Verdict::Stalled);
    request.end(now);
    drop(request);
    assert_eq!(vitals.verdict_at(&limits, true, now), Verdict::Alive);
    assert_eq!(vitals.held(), 0);
}

#[test]
fn frames_that_are_kept_after_their_request_count_until_they_go() {
    let limits = Limits {
        write_timeout: Duration::from_secs(1),
        ..Limits::default()
    };
    let vitals = Vitals::new();
    vitals.note_multiplexed();
    let request = InFlight::begin(&vitals);
    assert_eq!(
        request.hand_over(Bytes::from(vec![1; LEAST - 1]), None).len(),
        LEAST - 1
    );
    assert_eq!(vitals.held(), 0);
    let unsent = Unsent::new(usize::MAX);
    let frame = request.hand_over(Bytes::from(vec![1; LEAST]), Some(&unsent));
    drop(request);
    assert_eq!(
        (vitals.held(), frame.len(), unsent.bytes()),
        (LEAST, LEAST, LEAST)
    );
    std::thread::sleep(Duration::from_millis(2_200));
    // Others come and go meanwhile.
    let other = InFlight::begin(&vitals);
    drop(other.hand_over(Bytes::from(vec![1; LEAST]), None));
    drop(other);
    assert_eq!(vitals.verdict(&limits, false), Verdict::Alive);
    assert_eq!(vitals.verdict(&limits, true), Verdict::Stalled);
    // Whether there is room or not, nothing is kept for ever.
    let limits = Limits {
        answer_timeout: Duration::from_secs(1),
        body_timeout: Duration::from_secs(1),
        ..limits
    };
    assert_eq!(vitals.verdict(&limits, false), Verdict::Stalled);
    drop(frame);
    assert_eq!((vitals.held(), unsent.bytes()), (0, 0));
    assert_eq!(vitals.verdict(&limits, true), Verdict::Alive);
}

#[test]
fn requests_leave_as_they_end() {
    let (vitals, limits) = (Vitals::new(), limits());
    let requests: Vec<InFlight> = (0..3).map(|_| InFlight::begin(&vitals)).collect();
    assert_eq!(vitals.requests().len(), 3);
    drop(requests);
    assert_eq!(vitals.requests().len(), 0);
    // Since the last of them left.
    let now = vitals.began + Duration::from_millis(vitals.moved.load(Ordering::Relaxed));
    assert_eq!(vitals.verdict_at(&limits, false, now), Verdict::Alive);
    let now = now + limits.header_read_timeout + TICK;
    assert_eq!(vitals.verdict_at(&limits, false, now), Verdict::Idle);
}
