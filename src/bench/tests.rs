//! The set over statistics that are made up.

use super::filter::{Far, LogFilter};
use super::pick::as_far;
use super::question::{Group, Only};
use super::set::{published, questions};
use super::statistics::{Counted, Statistics, StoreFacts};
use crate::model::{Address, B256, ChainName, Day};

pub(super) fn facts() -> StoreFacts {
    StoreFacts {
        chain_id: 1,
        first_block: 100,
        head: 10_099,
        logs: 1_000_000,
        transactions: 400_000,
        traces: true,
        balances: true,
        days: Some((Day::from_number(19_000), Day::from_number(19_200))),
        ..StoreFacts::default()
    }
}

fn counted<T>(what: T, count: u64) -> Counted<T> {
    Counted { what, count }
}

fn word(byte: u8) -> B256 {
    Address::repeat_byte(byte).into_word()
}

pub(super) fn only(part: &str) -> Only {
    Only::of([part])
}

pub(super) fn statistics() -> Statistics {
    let account = Address::repeat_byte;
    Statistics {
        store: facts(),
        emitters: vec![
            counted(account(1), 130_000),
            counted(account(2), 11_000),
            counted(account(3), 60),
            counted(account(4), 2),
        ],
        signatures: vec![counted(word(0x51), 500_000), counted(word(0x52), 38_000)],
        middle: None,
        wallets: vec![counted((1, word(0x61)), 90_000), counted((2, word(0x62)), 280)],
        of_hot: vec![
            counted((word(0x51), (1, word(0x63))), 310),
            counted((word(0x51), (2, word(0x63))), 340),
        ],
        meeting: vec![counted((word(0x51), word(0x61)), 90_000)],
        apart: vec![counted((word(0x52), word(0x61)), 38_000)],
        paired: 2,
        silent: vec![counted((account(1), word(0x52)), 38_000)],
        by_transactions: (0..250)
            .map(|place| counted(account(place as u8), 1_000 - 2 * place))
            .collect(),
        by_internal: vec![counted(account(9), 12)],
        by_erc20: vec![counted(account(8), 900)],
        by_mined: vec![counted(account(7), 300)],
        tokens: vec![counted(account(1), 77)],
        holders: (0..=250).map(account).collect(),
        transactions: (0..500).map(|place| B256::with_last_byte(place as u8)).collect(),
        blocks: (100..300).collect(),
        is_cut: false,
    }
}

#[test]
fn every_question_of_the_set_is_picked_on_a_chain_that_has_everything() {
    let (asked, left_out) = questions(&statistics(), &only(""));
    assert_eq!(left_out.len(), 0, "{left_out:?}");
    assert_eq!(asked.len(), published().count());
    let named = |name: &str| asked.iter().find(|asked| asked.published.name == name).unwrap();
    let address = |byte: u8| format!("address={:#x}", Address::repeat_byte(byte));
    assert!(named("address-hot").targets[0].contains(&address(1)));
    assert!(named("address-medium").targets[0].contains(&address(2)));
    assert!(named("address-rare").targets[0].contains(&address(3)));
    // Nine tenths of 130,000 are 1,170 pages of 100.
    assert!(named("address-hot-deep").targets[0].ends_with("page=1171&offset=100"));
    assert!(named("topic-hot-page-100").targets[0].ends_with("page=100&offset=5000"));
    let short = LogFilter::of(Address::ZERO, 100);
    assert_eq!(as_far(&short, 130_000), (100, 1171));
    let long = LogFilter {
        offset: 10_000,
        far: Some(Far::Hundredth),
        ..short
    };
    assert_eq!(as_far(&long, 2_500_000), (10_000, 100));
    assert_eq!(as_far(&long, 500_000), (5_000, 100));
    assert_eq!(as_far(&long, 70), (1, 70));
    let range = |middle| {
        let statistics = Statistics {
            middle,
            ..statistics()
        };
        questions(&statistics, &only("topic-range"))
            .0
            .remove(0)
            .targets
            .remove(0)
    };
    assert!(range(None).contains("fromblock=4999&toblock=5198"));
    assert!(range(Some(7_000)).contains("fromblock=6900&toblock=7099"));
    assert!(range(Some(3)).contains("fromblock=100&toblock=299"));
    assert!(range(Some(10_090)).contains("fromblock=9900&toblock=10099"));
    // All others end at the head, which may move on while they are asked.
    assert!(named("address-hot").targets[0].contains("&toblock=10099&"));
    let no_hits: Vec<_> = asked
        .iter()
        .filter(|asked| asked.is_no_hit)
        .map(|asked| asked.published.name)
        .collect();
    assert_eq!(no_hits, ["topics-apart", "address-apart"]);
    let silent = &named("address-apart").targets[0];
    assert!(silent.contains(&address(1)) && silent.contains(&format!("topic0={}", word(0x52))));
    assert!(named("wallet-sparse").targets[0].contains(&format!("topic2={}", word(0x62))));
    assert!(named("address-and-either").targets[0].contains("topic1_2_opr=or"));
    assert!(named("topics-apart").targets[0].contains(&format!(
        "topic0={}&topic1={}",
        word(0x52),
        word(0x61)
    )));
    // A pair of which the signature was met with a rare topic 2.
    let either = &named("topics-either").targets[0];
    assert!(either.contains(&format!(
        "topic0={}&topic1={}&topic2={}",
        word(0x51),
        word(0x61),
        word(0x63)
    )));
    assert!(either.contains("topic1_2_opr=or"));
    assert_eq!(named("balance").targets.len(), 84);
    assert_eq!(named("balances-20").targets.len(), 5);
    assert_eq!(named("token-balance").targets.len(), 84);
    // What the store counts of a page, where it does.
    assert_eq!(named("address-hot").counted, Some(10_000));
    assert_eq!(named("address-rare").counted, Some(60));
    assert_eq!(named("topic-hot-page-100").counted, Some(5_000));
    assert_eq!(named("topics-apart").counted, Some(0));
    assert_eq!(named("topics-meeting").counted, None);
    // The first day may be a part of one, the last is not over: 90 days end at day 19,199.
    assert!(named("daily-transactions").targets[0].ends_with("startDate=2022-04-28&endDate=2022-07-26"));
    for asked in &asked {
        assert_eq!(
            asked.filter.is_some(),
            asked.published.group == Group::Logs,
            "{}",
            asked.published.name
        );
        assert!(!asked.targets.is_empty());
    }
}

#[test]
fn the_other_chain_is_named_in_every_path() {
    let mut statistics = statistics();
    statistics.store.chain = ChainName::Testnet;
    let (asked, _) = questions(&statistics, &only(""));
    for target in asked.iter().flat_map(|asked| &asked.targets) {
        assert!(target.contains("chain=testnet"), "{target}");
        assert_eq!(target.matches('?').count(), 1, "{target}");
    }
}

#[test]
fn a_chain_without_anything_leaves_every_question_out_with_a_reason() {
    let (asked, left_out) = questions(&Statistics::default(), &only(""));
    assert_eq!(asked.len(), 0);
    assert_eq!(left_out.len(), published().count());
    assert!(left_out.iter().all(|question| !question.reason.is_empty()));
}

#[test]
fn what_a_store_without_balances_cannot_answer_is_left_out() {
    let mut statistics = statistics();
    statistics.store.balances = false;
    let (asked, left_out) = questions(&statistics, &only("balance"));
    let names: Vec<_> = asked.iter().map(|asked| asked.published.name).collect();
    assert_eq!((names, left_out.len()), (vec!["token-balance"], 3));
}

#[test]
fn lists_of_accounts_end_at_the_head_that_they_were_picked_at() {
    let (asked, _) = questions(&statistics(), &only("lists"));
    for asked in asked.iter().filter(|asked| asked.published.name != "holders") {
        assert!(
            asked.targets[0].ends_with("&endblock=10099"),
            "{:?}",
            asked.targets
        );
    }
}

#[test]
fn why_a_pair_is_missing_is_told_as_it_is() {
    let reasons = |statistics: &Statistics| {
        let (_, left_out) = questions(statistics, &Only::of(["topics-meeting", "topics-apart"]));
        let reasons: Vec<_> = left_out.into_iter().map(|left_out| left_out.reason).collect();
        reasons
    };
    let few = reasons(&Statistics::default());
    assert_eq!(few.len(), 2);
    assert!(
        few.iter()
            .all(|reason| reason.starts_with("there are not enough common topics")),
        "{few:?}"
    );
    let all_meet = Statistics {
        apart: Vec::new(),
        ..statistics()
    };
    let [reason] = reasons(&all_meet).try_into().unwrap();
    assert!(
        reason.starts_with("each of the 2 pairs") && reason.contains("shares a log"),
        "{reason}"
    );
    let none_meet = Statistics {
        meeting: Vec::new(),
        ..statistics()
    };
    let [reason] = reasons(&none_meet).try_into().unwrap();
    assert!(reason.starts_with("none of the 2 pairs"), "{reason}");
}

#[test]
fn pairs_of_short_lists_are_told_of_as_none() {
    let mut one_log = Statistics::default();
    one_log.pairs(counted((word(0x51), word(0x61)), 1), Some(true));
    let (_, left_out) = questions(&one_log, &Only::of(["topics-meeting", "topics-apart"]));
    for left_out in &left_out {
        let reason = &left_out.reason;
        assert!(
            reason.contains("no topic 0 and topic 1 with 10 logs each were met"),
            "{reason}"
        );
    }
    let mut many = Statistics::default();
    many.pairs(counted((word(0x51), word(0x61)), 10), None);
    assert_eq!((left_out.len(), one_log.paired, many.paired), (2, 0, 1));
}

#[test]
fn accounts_that_are_not_taken_for_such_are_told_of() {
    let nobody = Statistics {
        by_erc20: Vec::new(),
        wallets: Vec::new(),
        ..statistics()
    };
    for (name, unit) in [("erc20-hot", "ERC-20 transfers"), ("wallet-sparse", "logs")] {
        let reason = questions(&nobody, &only(name)).1.remove(0).reason;
        let told = format!("{unit} (a topic below 2^96 may be any number, and is not taken for one)");
        assert!(reason.ends_with(&told), "{reason}");
    }
}

#[test]
fn lists_that_show_nothing_are_left_out() {
    let of = |count| {
        let pair = |other| vec![counted((word(0x51), word(other)), count)];
        let statistics = Statistics {
            meeting: pair(0x61),
            apart: pair(0x62),
            silent: vec![counted((Address::repeat_byte(1), word(0x52)), count)],
            wallets: vec![counted((1, word(0x61)), count)],
            ..statistics()
        };
        let names = ["topics-meeting", "topics-apart", "address-apart", "wallet-sparse"];
        names.map(|name| questions(&statistics, &only(name)).0.len())
    };
    assert_eq!(of(9), [0; 4]);
    assert_eq!(of(10), [1; 4]);
}

#[test]
fn a_page_has_what_the_pages_before_it_leave() {
    let page = |page| LogFilter::of(Address::ZERO, 100).page(page);
    assert_eq!(
        [1, 2, 3, 4].map(|number| page(number).rows_of(250)),
        [100, 100, 50, 0]
    );
}

#[test]
fn a_short_list_has_a_far_page_too() {
    let mut statistics = statistics();
    statistics.emitters = vec![counted(Address::repeat_byte(1), 12)];
    let (asked, _) = questions(&statistics, &only("address-hot-deep"));
    // One row a page: the eleventh of twelve.
    assert!(asked[0].targets[0].ends_with("page=11&offset=1"));
}

#[test]
fn the_far_page_of_a_part_of_a_short_list_lies_as_far_in_it() {
    let mut statistics = statistics();
    statistics.signatures = vec![counted(word(0x51), 5_000)];
    for (name, page, of_a_part) in [
        ("topic-hot-page-100", (50, 100), (20, 100)),
        ("topic-hot-deep", (100, 46), (100, 19)),
    ] {
        let (asked, _) = questions(&statistics, &only(name));
        let filter = asked[0].filter.as_ref().unwrap();
        assert_eq!((filter.offset, filter.page), page, "{name}");
        assert_eq!(as_far(filter, 2_000), of_a_part, "{name}");
    }
}

#[test]
fn the_first_paths_of_a_question_are_spread_over_the_chain() {
    let blocks = |name: &str, sign: &str, base: u32| -> Vec<u64> {
        let (asked, _) = questions(&statistics(), &only(name));
        let number = |target: &String| {
            let (_, rest) = target.split_once(sign).unwrap();
            let digits = rest.split('&').next().unwrap();
            u64::from_str_radix(digits, base).unwrap()
        };
        asked[0].targets.iter().map(number).collect()
    };
    // Blocks 100 to 299.
    let tenths = |blocks: &[u64]| -> std::collections::BTreeSet<u64> {
        blocks.iter().map(|block| (block - 100) / 20).collect()
    };
    let full = blocks("block-full", "tag=0x", 16);
    assert_eq!(full.len(), 100);
    assert_eq!(tenths(&full[..25]).len(), 10, "{full:?}");
    let history = blocks("balance-at", "block=", 10);
    assert_eq!(tenths(&history).len(), 10, "{history:?}");
    assert!(history.iter().max() >= Some(&280), "{history:?}");
    // The one with the most transactions comes first, and is asked at some block, as all are.
    assert_ne!(history[0], 100, "{history:?}");
    assert!(tenths(&history[..25]).len() >= 8, "{history:?}");
}

#[test]
fn only_chooses_by_a_part_of_the_name() {
    let (asked, _) = questions(&statistics(), &only("medium-100"));
    let names: Vec<_> = asked.iter().map(|asked| asked.published.name).collect();
    assert_eq!(names, ["address-medium-1000", "address-medium-100"]);
    let names = |parts: &[&str]| {
        let (asked, _) = questions(&statistics(), &Only::of(parts));
        asked.iter().map(|asked| asked.published.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["Days", "RECEIPT "]).len(), 4);
    assert_eq!(names(&["logs"]).len(), 20);
    assert_eq!(names(&["logs", " "]).len(), 20);
    let published_now: Vec<_> = published().collect();
    assert_eq!(
        Only::of(["logs", "reciept"]).unknown(&published_now),
        Some("reciept")
    );
    assert_eq!(Only::default().unknown(&published_now), None);
    let mut all: Vec<_> = published().map(|published| published.name).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "names are unique");
}
