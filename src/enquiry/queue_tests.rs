//! Who is asked for when, and how often.

use super::*;
use crate::enquiry::job::ROUND;
use crate::model::{BlockId, Difference, ZeroAddress};

#[test]
fn trials_grow_further_apart() {
    let block = BlockId {
        number: 1_000,
        ..BlockId::default()
    };
    let verdict = |exact, trials| TokenVerdict {
        exact,
        zero_address: ZeroAddress::Burns,
        checked: block,
        anchor: None,
        compared: 1,
        reason: String::new(),
        supply: None,
        differed: Some(Difference {
            at: block,
            holder: None,
            trials,
        }),
    };
    let options = EnquiryOptions::new(1);
    let due = |trials| trial_due(&verdict(false, trials), &options).unwrap() - 1_000;
    assert_eq!(
        [0, 1, 2, 5, 6, 400].map(due),
        [50, 200, 800, 50_000, 50_000, 50_000]
    );
    assert_eq!(trial_due(&verdict(true, 0), &options), None);
    let old = TokenVerdict {
        differed: None,
        ..verdict(false, 0)
    };
    assert_eq!(trial_due(&old, &options), None);
}

#[test]
fn names_and_verdicts_have_room_apart() {
    let mut queue = Queue::new(EnquiryOptions::new(1));
    let mut room_after = |work: Work, more: std::ops::Range<u64>| {
        for token in more.map(account) {
            queue.add(token, work.clone(), 0);
        }
        let room = queue.room();
        (room.names, room.verdicts)
    };
    let most = WAITING_MAX as u64;
    let judge = || Work::Judge(Vec::new());
    assert_eq!(room_after(judge(), 0..most - 1), (true, true));
    assert_eq!(room_after(Work::Round, 0..1), (true, false));
    assert_eq!(room_after(Work::Metadata, 0..most - 1), (true, false));
    assert_eq!(room_after(Work::Metadata, most - 1..most), (false, false));
}

fn account(number: u64) -> Address {
    Address::left_padding_from(&number.to_be_bytes())
}

#[test]
fn accounts_that_were_asked_for_in_vain_wait_by_themselves() {
    let mut queue = Queue::new(EnquiryOptions::new(1));
    queue.near = true;
    let token = Address::repeat_byte(9);
    queue.add(token, Work::Refresh(vec![account(2)]), 0);
    queue.add(token, Work::Refresh(vec![account(1)]), 2);
    for (asked, attempts) in [(1, 2), (2, 0)] {
        let job = queue.next().unwrap();
        let wanted = Job {
            token,
            work: Work::Refresh(vec![account(asked)]),
            attempts,
        };
        assert_eq!(job, wanted);
        assert_eq!(queue.next(), None, "one job of a token at a time");
        queue.busy.clear();
    }
    // Many take several jobs, each of which counts on.
    let many: Vec<_> = (0..300).map(account).collect();
    queue.add(token, Work::Refresh(many), 1);
    for count in [256, 44] {
        let job = queue.next().unwrap();
        assert_eq!((job.work.accounts(), job.attempts), (count, 1));
        assert_eq!(queue.refreshing[&token], count);
        queue.busy.clear();
    }
    assert_eq!(queue.next(), None);
}

#[test]
fn what_goes_first_is_the_job_that_waits_or_is_put_off() {
    let mut queue = Queue::new(EnquiryOptions::new(1));
    queue.near = true;
    let [one, two, three] = [1, 2, 3].map(account);
    for token in [one, two] {
        queue.add(token, Work::Anew, 0);
    }
    let put_off = Job {
        token: three,
        work: Work::Anew,
        attempts: 2,
    };
    queue
        .later
        .insert((three, Some(ROUND)), (clock::now(), put_off.clone()));
    for token in [three, two, account(4)] {
        queue.add_first(token, Work::Round);
    }
    assert!(queue.later.is_empty());
    let jobs: Vec<Job> = std::iter::from_fn(|| queue.next()).collect();
    let job = |token, work| Job {
        token,
        work,
        attempts: 0,
    };
    let wanted = [
        job(account(4), Work::Round),
        job(two, Work::Anew),
        put_off,
        job(one, Work::Anew),
    ];
    assert_eq!(jobs, wanted);
    assert!(queue.waiting.is_empty());
}
