//! What a store cannot answer however long one waits, for `/status`: the answers themselves say 503 like those of blocks
//! that are still to come.

use serde::Serialize;

use crate::model::Day;
use crate::query::{QueryError, Reader, SupplyGap};

/// Operations that are not answered, or not for some days, blocks, accounts or tokens, and why.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(super) struct Withheld {
    operations: &'static str,
    because: String,
}

/// Series of days that are sums over blocks, and the one of prices, which are read from logs.
const DAILY: &str = "S3, S4, S6, S7, B4, B5, B6, B7, G1, G2, G3";

/// Adds all that is withheld of an index that holds blocks; `has_node` says whether there is a node to ask. What is known without what
/// cannot be read is added all the same.
pub(super) fn withheld(reader: &Reader, has_node: bool, all: &mut Vec<Withheld>) -> Result<(), QueryError> {
    let mut tell = |operations, because: String| all.push(Withheld { operations, because });
    let first_block = reader.first_block();
    let ledger_ended = if reader.native_fault().is_some() {
        Some("the ledger of native balances ended, see nativeLedger")
    } else if reader.native_differs().is_some() {
        Some("the ledger of native balances is wrong, see nativeLedger")
    } else {
        None
    };
    let gap = reader.supply_gap();
    let supply = match gap {
        None if !has_node => reader.coin_supply(),
        _ => Ok(None),
    };
    if let Some(gap) = gap {
        tell(
            "S1",
            match gap {
                SupplyGap::LedgerEnded | SupplyGap::LedgerDiffers => {
                    ledger_ended.unwrap_or_default().to_owned()
                }
                SupplyGap::BeginsLater => format!("the store begins at block {first_block}"),
                SupplyGap::NoAllocation => {
                    "what block 0 allocated is not known: fill a new store with --genesis".to_owned()
                }
            },
        );
    } else if !has_node
        && let Ok(Some(supply)) = &supply
        && let Some(account) = supply.untouched.first()
    {
        tell(
            "S1",
            format!(
                "what block 0 gave to {account}, which does not circulate, is not known, and there is no node to ask: fill a new store \
                 with --genesis"
            ),
        );
    }
    if let Some(ended) = ledger_ended {
        tell(
            "A10",
            format!("{ended}: accounts whose first inflow it does not have"),
        );
    } else if first_block > 0 && !has_node && reader.has_traces() {
        tell(
            "A1, A2, A11",
            format!(
                "the store begins at block {first_block}, and there is no node to ask: accounts that nothing happened to since"
            ),
        );
    }
    let days = reader.day_span();
    if first_block > 0 {
        tell(
            "S5",
            format!("the store begins at block {first_block}: who took part before is not known"),
        );
        tell(
            "A10, T3, T4, T5, T10",
            format!("the store begins at block {first_block}: accounts and tokens that are older"),
        );
        tell(
            "T6, T7, erc1155-holdings",
            format!("the store begins at block {first_block}: what accounts held before is not known"),
        );
        tell(
            "B1, B2, B3",
            format!("the store begins at block {first_block}: blocks and times before it"),
        );
        if let Ok((first, _)) = &days {
            tell(
                DAILY,
                format!("{first}: the store begins within this day, at block {first_block}"),
            );
        }
    }
    if !reader.has_traces() {
        let untraced = reader.next_traced();
        let why = format!(
            "blocks from {untraced} on have no call frames, which are filled in once the node tells them"
        );
        let of_all = match reader.supply_gap() {
            Some(_) => "A4, A5, A6, A10, B1, S5",
            None => "A4, A5, A6, A10, B1, S1, S5",
        };
        tell(of_all, why.clone());
        tell(
            "A1, A2, A3, C3, X1, X2",
            format!(
                "{why}: accounts that no transaction names, statuses before Byzantium, contracts that contracts made, and why \
                 transactions failed"
            ),
        );
        tell(
            "T5",
            format!("{why}: creator and createdBlock, null until then, of tokens that contracts made"),
        );
    }
    supply?;
    let (first, last) = days?;
    let (mut sizes, mut uncles) = (Untold::default(), Untold::default());
    for (day, row) in reader.days(first, last)? {
        sizes.count(day, row.unsized_blocks > 0);
        uncles.count(day, row.sealed_blocks > 0 && !row.tells_uncles());
    }
    if let Some(days) = sizes.days() {
        tell(
            "B4",
            format!("{days}: the source of blocks did not tell their size"),
        );
    }
    if let Some(days) = uncles.days() {
        tell(
            "B3, B6",
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
