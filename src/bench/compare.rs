//! Two lists of logs, row by row.

use std::collections::BTreeMap;

use crate::model::{B256, PlacedLog};

/// Differences that are told of one comparison; the others are counted.
const TOLD_MAX: usize = 5;

/// A row of an answer, as far as it can be held against that of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What every side gives.
    pub log: PlacedLog,
    /// The block's hash, where the side gives it.
    pub block_hash: Option<B256>,
    /// The transaction's place in the block, where the side gives it.
    pub transaction_index: Option<u64>,
    /// The block's time, Unix seconds, where the side gives it.
    pub timestamp: Option<u64>,
}

impl Row {
    /// Block and log index.
    pub(super) const fn place(&self) -> (u64, u64) {
        (self.log.block_number, self.log.log_index)
    }
}

/// What is different between two lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Rows that differ or that one side lacks, and lists that are out of order.
    pub count: u64,
    /// The first of them in words.
    pub told: Vec<String>,
}

/// Compares by place (block, log index), each row with all fields that both sides give; every question asks for the oldest
/// first, so each list must ascend.
#[must_use]
pub fn differences(ours: &[Row], theirs: &[Row]) -> Differences {
    let mut found = Differences::default();
    let mut tell = |text: String| {
        found.count += 1;
        if found.told.len() < TOLD_MAX {
            found.told.push(text);
        }
    };
    for (whose, rows) in [("the service's", ours), ("the other's", theirs)] {
        if let Some((before, after)) = disorder(rows) {
            let (block, index) = before.place();
            let (next_block, next_index) = after.place();
            tell(format!(
                "{whose} rows are out of order: block {next_block}, log {next_index} after block {block}, log {index}"
            ));
        }
    }
    let mut by_place: BTreeMap<_, (Vec<&Row>, Vec<&Row>)> = BTreeMap::new();
    for row in ours {
        by_place.entry(row.place()).or_default().0.push(row);
    }
    for row in theirs {
        by_place.entry(row.place()).or_default().1.push(row);
    }
    for ((block, index), (ours, theirs)) in by_place {
        let at = format!("block {block}, log {index}");
        match (ours.as_slice(), theirs.as_slice()) {
            ([ours], [theirs]) => {
                let differ = fields(ours, theirs);
                if !differ.is_empty() {
                    tell(format!("{at}: other {}", differ.join(", ")));
                }
            }
            ([_], []) => tell(format!("{at}: only the service has it")),
            ([], [_]) => tell(format!("{at}: the service does not have it")),
            (ours, theirs) => tell(format!(
                "{at}: {} times at the service, {} times there",
                ours.len(),
                theirs.len()
            )),
        }
    }
    found
}

/// The first two neighbours of which the later one belongs before the other.
fn disorder(rows: &[Row]) -> Option<(&Row, &Row)> {
    rows.iter()
        .zip(rows.iter().skip(1))
        .find(|(before, after)| before.place() > after.place())
}

/// The rows that one or both of two lists have, in order: what both have is one row, what one list has twice stays twice.
/// Lists that are out of order are left as they are, one after the other, so that it shows.
#[must_use]
pub fn united(mut one: Vec<Row>, other: Vec<Row>) -> Vec<Row> {
    let are_in_order = disorder(&one).is_none() && disorder(&other).is_none();
    let mut unmatched: BTreeMap<_, Vec<Row>> = BTreeMap::new();
    for row in &one {
        unmatched.entry(row.place()).or_default().push(row.clone());
    }
    for row in other {
        let alike = unmatched.get_mut(&row.place());
        let matched = alike.and_then(|alike| {
            let place = alike.iter().position(|found| *found == row)?;
            Some(alike.swap_remove(place))
        });
        if matched.is_none() {
            one.push(row);
        }
    }
    if are_in_order {
        one.sort_by_key(Row::place);
    }
    one
}

/// Which fields of two rows differ, of those that both have.
fn fields(ours: &Row, theirs: &Row) -> Vec<&'static str> {
    fn same<T: PartialEq>(ours: Option<&T>, theirs: Option<&T>) -> bool {
        ours.zip(theirs).is_none_or(|(ours, theirs)| ours == theirs)
    }
    let (one, other) = (&ours.log, &theirs.log);
    let named = [
        ("transaction hash", one.transaction_hash == other.transaction_hash),
        ("address", one.address == other.address),
        ("topics", one.topics == other.topics),
        ("data", one.data == other.data),
        (
            "block hash",
            same(ours.block_hash.as_ref(), theirs.block_hash.as_ref()),
        ),
        (
            "transaction index",
            same(ours.transaction_index.as_ref(), theirs.transaction_index.as_ref()),
        ),
        (
            "timestamp",
            same(ours.timestamp.as_ref(), theirs.timestamp.as_ref()),
        ),
    ];
    let differ = named.iter().filter(|(_, same)| !same);
    differ.map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, Bytes};

    fn row(block_number: u64, log_index: u64) -> Row {
        Row {
            log: PlacedLog {
                block_number,
                log_index,
                ..PlacedLog::default()
            },
            ..Row::default()
        }
    }

    #[test]
    fn a_list_that_does_not_ascend_differs_whoever_gave_it() {
        let (ascending, other) = ([row(1, 0), row(2, 0)], [row(2, 0), row(1, 0)]);
        assert_eq!(differences(&ascending, &ascending), Differences::default());
        let found = differences(&other, &ascending);
        let told = "the service's rows are out of order: block 1, log 0 after block 2, log 0";
        assert_eq!((found.count, found.told), (1, vec![told.to_owned()]));
        let found = differences(&ascending, &other);
        assert!(found.told[0].starts_with("the other's rows are out of order"));
    }

    #[test]
    fn every_kind_of_difference_is_told() {
        let mut other = row(1, 0);
        other.log.address = Address::repeat_byte(1);
        other.log.data = Bytes::from_static(&[1]);
        let found = differences(
            &[row(1, 0), row(2, 0), row(4, 0)],
            &[other, row(3, 7), row(4, 0), row(4, 0)],
        );
        assert_eq!(found.count, 4);
        assert_eq!(
            found.told,
            [
                "block 1, log 0: other address, data",
                "block 2, log 0: only the service has it",
                "block 3, log 7: the service does not have it",
                "block 4, log 0: 1 times at the service, 2 times there",
            ]
        );
    }

    #[test]
    fn fields_are_compared_where_both_sides_have_them() {
        let full = Row {
            block_hash: Some(B256::repeat_byte(1)),
            transaction_index: Some(1),
            timestamp: Some(1),
            ..row(1, 0)
        };
        let other = Row {
            block_hash: Some(B256::repeat_byte(2)),
            transaction_index: Some(2),
            timestamp: Some(2),
            ..row(1, 0)
        };
        assert_eq!(differences(std::slice::from_ref(&full), &[row(1, 0)]).count, 0);
        let found = differences(&[full], &[other]);
        assert_eq!(
            found.told,
            ["block 1, log 0: other block hash, transaction index, timestamp"]
        );
    }

    #[test]
    fn a_union_takes_what_both_lists_have_once_and_hides_no_duplicate() {
        let union = united(vec![row(1, 0), row(3, 0)], vec![row(1, 0), row(2, 0)]);
        assert_eq!(union, [row(1, 0), row(2, 0), row(3, 0)]);
        // Twice in one list is twice.
        let union = united(vec![row(1, 0), row(1, 0)], vec![row(1, 0)]);
        assert_eq!(union, [row(1, 0), row(1, 0)]);
        let union = united(vec![row(1, 0)], vec![row(1, 0), row(1, 0)]);
        assert_eq!(union, [row(1, 0), row(1, 0)]);
        // What was out of order stays so.
        let union = united(vec![row(2, 0), row(1, 0)], vec![row(3, 0)]);
        assert_eq!(union, [row(2, 0), row(1, 0), row(3, 0)]);
    }

    #[test]
    fn many_differences_are_counted() {
        let ours: Vec<_> = (0..100).map(|block| row(block, 0)).collect();
        let found = differences(&ours, &[]);
        assert_eq!((found.count, found.told.len()), (100, TOLD_MAX));
    }
}
