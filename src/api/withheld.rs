//! What a store cannot answer however long one waits, for `/status`: the answers themselves say 503 like those of blocks
//! that are still to come.

use serde::{Serialize, Serializer};

use crate::model::Day;
use crate::query::{QueryError, Reader, SupplyGap};

/// Operations by their ids in the endpoint list.
type Ids = &'static [&'static str];

/// Operations that are not answered, or not for some days, blocks, accounts or tokens, and why.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(super) struct Withheld {
    #[serde(serialize_with = "in_words")]
    operations: Ids,
    because: String,
}

fn in_words<S: Serializer>(ids: &Ids, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&ids.join(", "))
}

const SUPPLY: Ids = &["S1"];
const FIRST_FUNDING: Ids = &["A10"];
/// What accounts have.
const ACCOUNTS: Ids = &["A1", "A2", "A11"];
const PARTICIPANTS: Ids = &["S5"];
/// What is told of accounts and tokens from their beginning on.
const FROM_THE_BEGINNING: Ids = &["A10", "T3", "T4", "T5", "T10"];
const HOLDINGS: Ids = &["T6", "T7", "erc1155-holdings"];
/// Single blocks, by number and by time.
const BLOCKS: Ids = &["B1", "B2", "B3"];
/// Series of days that are sums over blocks, and the one of prices, which are read from logs.
const DAILY: Ids = &["S3", "S4", "S6", "S7", "B4", "B5", "B6", "B7", "G1", "G2", "G3"];
/// What is made of call frames, and the same where the supply is withheld for good.
const OF_FRAMES: Ids = &["A4", "A5", "A6", "A10", "B1", "S1", "S5"];
const OF_FRAMES_BUT_SUPPLY: Ids = &["A4", "A5", "A6", "A10", "B1", "S5"];
/// What call frames tell of some accounts, contracts and transactions.
const IN_PART_OF_FRAMES: Ids = &["A1", "A2", "A3", "C3", "X1", "X2"];
const TOKEN: Ids = &["T5"];
const SIZES: Ids = &["B4"];
const UNCLES: Ids = &["B3", "B6"];

#[cfg(test)]
const ALL: [Ids; 14] = [
    SUPPLY,
    FIRST_FUNDING,
    ACCOUNTS,
    PARTICIPANTS,
    FROM_THE_BEGINNING,
    HOLDINGS,
    BLOCKS,
    DAILY,
    OF_FRAMES,
    OF_FRAMES_BUT_SUPPLY,
    IN_PART_OF_FRAMES,
    TOKEN,
    SIZES,
    UNCLES,
];

/// Adds all that is withheld of an index that holds blocks; `has_node` says whether there is a node to ask. What is known without what
/// cannot be read is added all the same.
pub(super) fn withheld(reader: &Reader, has_node: bool, all: &mut Vec<Withheld>) -> Result<(), QueryError> {
    let mut tell = |operations, because: String| all.push(Withheld { operations, because });
    let supply = by_ledger(reader, has_node, &mut tell);
    let days = reader.day_span();
    let first_day = days.as_ref().ok().map(|(first, _)| *first);
    before_the_first_block(reader, first_day, &mut tell);
    without_frames(reader, &mut tell);
    supply?;
    of_days(reader, days?, &mut tell)
}

/// What the ledger of native balances does not tell: the supply, and accounts.
fn by_ledger(reader: &Reader, has_node: bool, tell: &mut impl FnMut(Ids, String)) -> Result<(), QueryError> {
    let first_block = reader.first_block();
    let ended = if reader.native_fault().is_some() {
        Some("the ledger of native balances ended, see nativeLedger")
    } else if reader.native_differs().is_some() {
        Some("the ledger of native balances is wrong, see nativeLedger")
    } else {
        None
    };
    let supply = match reader.supply_gap() {
        Some(gap) => {
            let because = match gap {
                SupplyGap::LedgerEnded | SupplyGap::LedgerDiffers => ended.unwrap_or_default().to_owned(),
                SupplyGap::BeginsLater => format!("the store begins at block {first_block}"),
                SupplyGap::NoAllocation => {
                    "what block 0 allocated is not known: fill a new store with --genesis".to_owned()
                }
            };
            tell(SUPPLY, because);
            Ok(None)
        }
        None if has_node => Ok(None),
        None => reader.coin_supply(),
    };
    if let Ok(Some(supply)) = &supply
        && let Some(account) = supply.untouched.first()
    {
        tell(
            SUPPLY,
            format!(
                "what block 0 gave to {account}, which does not circulate, is not known, and there is no node to ask: fill a new store \
                 with --genesis"
            ),
        );
    }
    if let Some(ended) = ended {
        tell(
            FIRST_FUNDING,
            format!("{ended}: accounts whose first inflow it does not have"),
        );
    } else if first_block > 0 && !has_node && reader.has_traces() {
        tell(
            ACCOUNTS,
            format!(
                "the store begins at block {first_block}, and there is no node to ask: accounts that nothing happened to since"
            ),
        );
    }
    supply.map(|_| ())
}

/// What lies before the first block of a store that begins later, within a day that may be known.
fn before_the_first_block(reader: &Reader, first_day: Option<Day>, tell: &mut impl FnMut(Ids, String)) {
    let first_block = reader.first_block();
    if first_block == 0 {
        return;
    }
    let since = |what: &str| format!("the store begins at block {first_block}: {what}");
    tell(PARTICIPANTS, since("who took part before is not known"));
    tell(FROM_THE_BEGINNING, since("accounts and tokens that are older"));
    tell(HOLDINGS, since("what accounts held before is not known"));
    tell(BLOCKS, since("blocks and times before it"));
    if let Some(day) = first_day {
        tell(
            DAILY,
            format!("{day}: the store begins within this day, at block {first_block}"),
        );
    }
}

/// What call frames would tell, where blocks have none.
fn without_frames(reader: &Reader, tell: &mut impl FnMut(Ids, String)) {
    if reader.has_traces() {
        return;
    }
    let untraced = reader.next_traced();
    let why = format!(
        "blocks from {untraced} on have no call frames, which are filled in once the node tells them"
    );
    let of_all = match reader.supply_gap() {
        Some(_) => OF_FRAMES_BUT_SUPPLY,
        None => OF_FRAMES,
    };
    tell(of_all, why.clone());
    tell(
        IN_PART_OF_FRAMES,
        format!(
            "{why}: accounts that no transaction names, statuses before Byzantium, contracts that contracts made, and why \
             transactions failed"
        ),
    );
    tell(
        TOKEN,
        format!("{why}: creator and createdBlock, null until then, of tokens that contracts made"),
    );
}

/// What the source of blocks did not tell of some days.
fn of_days(
    reader: &Reader,
    (first, last): (Day, Day),
    tell: &mut impl FnMut(Ids, String),
) -> Result<(), QueryError> {
    let (mut sizes, mut uncles) = (Untold::default(), Untold::default());
    for (day, row) in reader.days(first, last)? {
        sizes.count(day, row.unsized_blocks > 0);
        uncles.count(day, row.sealed_blocks > 0 && !row.tells_uncles());
    }
    if let Some(days) = sizes.days() {
        tell(
            SIZES,
            format!("{days}: the source of blocks did not tell their size"),
        );
    }
    if let Some(days) = uncles.days() {
        tell(
            UNCLES,
            format!("{days}: the source of blocks did not tell their uncles"),
        );
    }
    Ok(())
}

/// Days of which something was not told.
#[derive(Default)]
struct Untold {
    count: u64,
    span: Option<(Day, Day)>,
}

impl Untold {
    fn count(&mut self, day: Day, untold: bool) {
        if untold {
            self.count += 1;
            self.span = Some((self.span.map_or(day, |(first, _)| first), day));
        }
    }

    fn days(&self) -> Option<String> {
        let (first, last) = self.span?;
        Some(match self.count {
            1 => first.to_string(),
            count => format!("{count} days from {first} to {last}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::endpoints;

    #[test]
    fn what_is_withheld_is_in_the_endpoint_list() {
        for id in ALL.into_iter().flatten() {
            let is_there = endpoints().iter().any(|endpoint| endpoint.ids.contains(id));
            assert!(is_there, "{id}");
        }
    }

    #[test]
    fn operations_are_told_in_one_text() {
        let withheld = Withheld {
            operations: HOLDINGS,
            because: "of this".to_owned(),
        };
        let told = serde_json::to_string(&withheld).unwrap();
        assert_eq!(
            told,
            r#"{"operations":"T6, T7, erc1155-holdings","because":"of this"}"#
        );
    }
}
