//! Two lists of logs, row by row.

use std::collections::BTreeMap;

use crate::model::PlacedLog;

/// Differences that are told of one comparison; the others are counted.
const TOLD_MAX: usize = 5;

/// What is different between two lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Rows that differ or that one side lacks.
    pub count: u64,
    /// The first of them in words.
    pub told: Vec<String>,
}

/// Compares by place (block, log index), whatever the order: each row with all of its fields.
#[must_use]
pub fn differences(ours: &[PlacedLog], theirs: &[PlacedLog]) -> Differences {
    let mut found = Differences::default();
    let mut tell = |text: String| {
        found.count += 1;
        if found.told.len() < TOLD_MAX {
            found.told.push(text);
        }
    };
    let place = |log: &PlacedLog| (log.block_number, log.log_index);
    let mut by_place: BTreeMap<_, (Vec<&PlacedLog>, Vec<&PlacedLog>)> = BTreeMap::new();
    for log in ours {
        by_place.entry(place(log)).or_default().0.push(log);
    }
    for log in theirs {
        by_place.entry(place(log)).or_default().1.push(log);
    }
    for ((block, index), (ours, theirs)) in by_place {
        let at = format!("block {block}, log {index}");
        match (ours.as_slice(), theirs.as_slice()) {
            ([ours], [theirs]) if ours == theirs => {}
            ([ours], [theirs]) => tell(format!("{at}: {}", fields(ours, theirs))),
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

/// Which fields of two logs differ.
fn fields(ours: &PlacedLog, theirs: &PlacedLog) -> String {
    let named = [
        (
            "transaction hash",
            ours.transaction_hash == theirs.transaction_hash,
        ),
        ("address", ours.address == theirs.address),
        ("topics", ours.topics == theirs.topics),
        ("data", ours.data == theirs.data),
    ];
    let differ: Vec<_> = named
        .iter()
        .filter(|(_, same)| !same)
        .map(|(name, _)| *name)
        .collect();
    format!("other {}", differ.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, Bytes};

    fn log(block_number: u64, log_index: u64) -> PlacedLog {
        PlacedLog {
            block_number,
            log_index,
            ..PlacedLog::default()
        }
    }

    #[test]
    fn the_order_does_not_matter() {
        let (one, two) = (log(1, 0), log(2, 0));
        let found = differences(&[one.clone(), two.clone()], &[two, one]);
        assert_eq!(found, Differences::default());
    }

    #[test]
    fn every_kind_of_difference_is_told() {
        let other = PlacedLog {
            address: Address::repeat_byte(1),
            data: Bytes::from_static(&[1]),
            ..log(1, 0)
        };
        let found = differences(
            &[log(1, 0), log(2, 0), log(4, 0)],
            &[other, log(3, 7), log(4, 0), log(4, 0)],
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
    fn many_differences_are_counted() {
        let ours: Vec<_> = (0..100).map(|block| log(block, 0)).collect();
        let found = differences(&ours, &[]);
        assert_eq!((found.count, found.told.len()), (100, TOLD_MAX));
    }
}
