//! Pages out of a node's rows.

use serde_json::json;

use super::{LogFilter, Page, Row, differences, ends, rows};
use crate::model::{Address, PlacedLog};

fn row(block_number: u64) -> Row {
    Row {
        log: PlacedLog {
            block_number,
            ..PlacedLog::default()
        },
        ..Row::default()
    }
}

#[test]
fn a_row_that_the_service_lacks_is_missed_wherever_it_lies() {
    let all: Vec<_> = (1..=20).map(row).collect();
    let lacks = |page: u64, offset: u64, given: &[u64], is_whole| {
        let filter = LogFilter::of(Address::ZERO, offset).page(page);
        // The page before is as it should be.
        let before = all.get(..filter.skip() as usize).and_then(ends);
        let page = Page {
            filter: &filter,
            before: before.map(|(_, last)| last),
            rows: given.iter().copied().map(row).collect(),
        };
        differences(&page.rows, &page.out_of(&all, (1, 20), is_whole)).told
    };
    let nothing: [String; 0] = [];
    let missing = |block: u64| [format!("block {block}, log 0: the service does not have it")];
    assert_eq!(lacks(1, 4, &[1, 2, 3, 4], true), nothing);
    // In its middle, and as what a page that is full begins with.
    assert_eq!(lacks(1, 4, &[1, 3, 4, 5], true), missing(2));
    assert_eq!(lacks(1, 4, &[2, 3, 4, 5], true), missing(1));
    // The last of a page that is not full, of any page.
    let most: Vec<_> = (1..20).collect();
    assert_eq!(lacks(1, 100, &most, true), missing(20));
    assert_eq!(lacks(3, 9, &[19], true), missing(20));
    assert_eq!(lacks(3, 9, &[19, 20], true), nothing);
    assert_eq!(lacks(2, 4, &[5, 6, 7, 8], true), nothing);
    assert_eq!(lacks(2, 4, &[5, 7, 8, 9], true), missing(6));
    // The first of a later page; and another page in its place.
    assert_eq!(lacks(2, 4, &[6, 7, 8, 9], true), missing(5));
    assert_eq!(lacks(3, 4, &[1, 2, 3, 4], true).len(), 4);
    // Rows out of order, and of blocks that were not asked for.
    let told = lacks(1, 4, &[4, 3, 2, 1], true);
    assert!(told.len() == 1 && told[0].contains("out of order"), "{told:?}");
    let page = Page {
        filter: &LogFilter::of(Address::ZERO, 2),
        before: None,
        rows: vec![row(1), row(2)],
    };
    let theirs = [row(1), row(2), row(9)];
    assert_eq!(
        differences(&page.rows, &page.out_of(&theirs, (0, 2), true)).told,
        missing(9)
    );
    // Nothing where there is something, and nothing where there is nothing.
    assert_eq!(lacks(2, 19, &[], true), missing(20));
    assert_eq!(lacks(3, 10, &[], true), nothing);
    // Where only the blocks of its rows were asked for, nothing is said of the others.
    assert_eq!(lacks(1, 100, &[2, 4, 5], false), missing(3));
}

#[test]
fn what_a_log_lacks_or_garbles_is_not_taken_for_equal() {
    let word = format!("0x{}", "11".repeat(32));
    let log = json!({
        "address": format!("0x{}", "22".repeat(20)), "topics": [word], "data": "0x", "blockNumber": "0x1",
        "transactionHash": word, "logIndex": "0x0", "removed": false,
        "blockHash": word, "transactionIndex": "0x2", "blockTimestamp": "0x3",
    });
    let read = |log: &serde_json::Value| rows(&json!([log]).to_string());
    let row = read(&log).unwrap().remove(0);
    assert_eq!((row.transaction_index, row.timestamp), (Some(2), Some(3)));
    let with = |name: &str, value: serde_json::Value| {
        let mut other = log.clone();
        other[name] = value;
        read(&other)
    };
    assert_eq!(with("blockTimestamp", json!(null)).unwrap()[0].timestamp, None);
    for (name, value) in [
        ("blockTimestamp", json!(3)),
        ("blockTimestamp", json!("3")),
        ("transactionIndex", json!("2")),
        ("transactionIndex", json!(null)),
        ("blockHash", json!(null)),
    ] {
        assert!(with(name, value.clone()).is_err(), "{name} {value}");
    }
}
