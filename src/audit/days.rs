//! Rows of days: blocks and accounts added up again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Audit, Check, Tally};
use crate::codec::keys::{self, DayKind};
use crate::codec::value::{AccountRow, DayRow, FeeRow, decode_new_addresses};
use crate::model::{Bundle, Day, StaticRewards, U256};
use crate::query::{BlockReward, QueryError};
use crate::store::Table;

/// Sums over the blocks that were read back, by day; shared by threads.
#[derive(Default)]
pub(super) struct DaySums(Mutex<BTreeMap<Day, DayRow>>);

impl DaySums {
    /// Adds a block.
    pub(super) fn add(&self, bundle: &Bundle) {
        let (block, header) = (&bundle.block, &bundle.block.header);
        let pairs = block.transactions.iter().zip(&bundle.receipts);
        let fees: Vec<FeeRow> = pairs
            .map(|(transaction, receipt)| FeeRow::new(transaction, receipt))
            .collect();
        let total = |of: &dyn Fn(&FeeRow) -> U256| fees.iter().fold(U256::ZERO, |sum, fee| sum + of(fee));
        let paid = BlockReward::of(block, fees.iter().copied(), &StaticRewards::default());
        let seals = header.number > 0 && !header.difficulty.is_zero();
        let uncles = if seals { block.uncles.len() } else { 0 };
        let mut eighths = [0; 9];
        if uncles == block.uncle_headers.len() {
            for uncle in &block.uncle_headers {
                let late = header.number - uncle.number.min(header.number);
                eighths[8 - late.min(8) as usize] += 1;
            }
        }
        let row = DayRow {
            first_block: header.number,
            last_block: header.number,
            first_time: header.timestamp,
            last_time: header.timestamp,
            blocks: 1,
            transactions: fees.len() as u64,
            size: block.size.unwrap_or_default(),
            unsized_blocks: u64::from(block.size.is_none()),
            sealed_blocks: u64::from(seals),
            uncles: uncles as u64,
            uncle_eighths: eighths,
            gas_used: U256::from(header.gas_used),
            gas_limit: U256::from(header.gas_limit),
            gas_prices: total(&|fee| match fee.in_token {
                true => U256::ZERO,
                false => U256::from(fee.price(header.base_fee_per_gas)),
            }),
            tips: paid.transaction_fees,
            base_fees_burnt: paid.base_fees_burnt,
            blob_fees_burnt: paid.blob_fees_burnt,
            fees_below: total(&|fee| fee.below),
            in_token: fees.iter().filter(|fee| fee.in_token).count() as u64,
        };
        let mut days = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        days.entry(Day::of(header.timestamp)).or_default().add(&row);
    }
}

/// The days that are audited whole.
struct Whole {
    first: Day,
    last: Day,
    /// Whether the first and the last of them have blocks outside of what is audited.
    cut: (bool, bool),
    /// Whether nothing lies before and nothing after.
    all: (bool, bool),
}

impl Whole {
    fn of(audit: &Audit<'_>) -> Result<Self, QueryError> {
        let view = &audit.view;
        let day = |block| view.block(block).map(|block| Day::of(block.timestamp));
        let (from, to) = (audit.range.first(), audit.range.last());
        let (first, last) = (day(from)?, day(to)?);
        let all = (from <= view.first_block(), to + 1 >= view.checkpoint().next_block);
        Ok(Self {
            first,
            last,
            cut: (!all.0 && day(from - 1)? == first, !all.1 && day(to + 1)? == last),
            all,
        })
    }

    fn has(&self, day: Day) -> bool {
        let after_start = if day < self.first {
            self.all.0
        } else {
            !(day == self.first && self.cut.0)
        };
        let before_end = if day > self.last {
            self.all.1
        } else {
            !(day == self.last && self.cut.1)
        };
        after_start && before_end
    }
}

/// The rows of days that are audited whole say what their blocks and accounts add up to.
pub(super) fn run(audit: &Audit<'_>, sums: DaySums) -> Check {
    let blocks = sums.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let tally = audit.tally("days", "rows", blocks.len() as u64 * 2);
    let walked = walk(audit, blocks, &tally);
    tally.ended(walked)
}

fn walk(audit: &Audit<'_>, mut blocks: BTreeMap<Day, DayRow>, tally: &Tally<'_>) -> Result<(), QueryError> {
    let view = &audit.view;
    let whole = Whole::of(audit)?;
    blocks.retain(|day, _| whole.has(*day));
    let mut addresses: BTreeMap<Day, u64> = BTreeMap::new();
    let mut accounts = view.scan_all(Table::Accounts)?;
    while let Some((_, value)) = accounts.item()? {
        // What cannot be read is told where the accounts themselves are looked at.
        if let Ok(AccountRow {
            first_block: Some(block),
            ..
        }) = AccountRow::decode(value)
            && block < view.checkpoint().next_block
        {
            let day = Day::of(view.block(block)?.timestamp);
            if whole.has(day) {
                *addresses.entry(day).or_default() += 1;
            }
        }
        accounts.step()?;
    }
    let mut rows = view.scan_all(Table::Days)?;
    while let Some((key, value)) = rows.item()? {
        match keys::decode_day(key) {
            Err(corrupt) => tally.wrong(None, corrupt.to_string()),
            Ok((kind, number)) => {
                let day = Day::from_number(i64::try_from(number).unwrap_or(i64::MAX));
                if whole.has(day) {
                    tally.items(1);
                    let sound = match kind {
                        DayKind::Blocks => Ok(blocks.remove(&day)) == DayRow::decode(value).map(Some),
                        DayKind::NewAddresses => {
                            Ok(addresses.remove(&day)) == decode_new_addresses(value).map(Some)
                        }
                    };
                    if !sound {
                        let what = match kind {
                            DayKind::Blocks => "its blocks",
                            DayKind::NewAddresses => "the accounts that are new on it",
                        };
                        tally.wrong(None, format!("the row of {day} is not the sum of {what}"));
                    }
                }
            }
        }
        rows.step()?;
    }
    for day in blocks.keys().chain(addresses.keys()) {
        tally.wrong(None, format!("a row of {day} is missing"));
    }
    Ok(())
}
