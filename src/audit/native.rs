//! The ledger of native balances: history against the present, against what blocks move, and against the supply.

use std::sync::{Mutex, PoisonError};

use super::coins::{self, Coins};
use super::sums::{Sums, fingerprint, residue, times, weighed};
use super::{Audit, Check, Tally};
use crate::codec::amount::read_amount;
use crate::codec::value::{AccountRow, Funded, FundingKind, FundingRow, SupplyRow};
use crate::codec::{Corrupt, keys};
use crate::model::{Address, BlockRange, Bundle, Header, U256};
use crate::query::QueryError;
use crate::store::{Scan, StoreError, Table};

/// The name of this check, which looks at nothing where the ledger is not kept.
pub const NATIVE: &str = "native balances, supply of every block";

/// The check under way: what blocks move is added while they are read.
pub(super) struct Native<'a> {
    audit: &'a Audit<'a>,
    /// What blocks move, less what histories say.
    moved: Sums,
    /// Blocks that do not say all that they move.
    unsaid: Mutex<Vec<u64>>,
    tally: Tally<'a>,
}

/// What a block does to holders; `None` where its frames are not stored.
pub(super) fn coins_of(audit: &Audit<'_>, bundle: &Bundle) -> Result<Option<Coins>, StoreError> {
    let block = &bundle.block;
    let number = block.number();
    let Some(traces) = bundle.traces.as_deref().filter(|_| audit.is_traced(number)) else {
        return Ok(None);
    };
    let is_kept = number < audit.native_end();
    let rewards = &audit.static_rewards;
    // What cannot be read is told where the supply is looked at.
    let told = supplies(audit, number).ok().flatten().filter(|_| is_kept);
    let told = told.map(|(before, after)| after.issued.wrapping_sub(before.issued));
    let each = told.map_or_else(
        || rewards.of_block(number, block.header.difficulty),
        |told| coins::static_reward(block, rewards, told),
    );
    let first = audit.view.first_transaction(number)?;
    Ok(Some(Coins::of(bundle, traces, first, is_kept, (each, rewards))))
}

/// The sums of the supply before and after a block, where both are there.
fn supplies(audit: &Audit<'_>, number: u64) -> Result<Option<(SupplyRow, SupplyRow)>, StoreError> {
    let before = match number.checked_sub(1) {
        Some(before) if number > audit.view.first_block() => audit.view.supply(before)?,
        _ => Some(SupplyRow::default()),
    };
    Ok(before.zip(audit.view.supply(number)?))
}

impl<'a> Native<'a> {
    pub(super) fn new(audit: &'a Audit<'a>) -> Self {
        Self {
            audit,
            moved: Sums::new(audit.range),
            unsaid: Mutex::default(),
            tally: Tally::new(NATIVE, "balances", audit.observer),
        }
    }

    /// The first block that is not looked at: of a ledger that ended, all.
    fn end(&self) -> u64 {
        let checkpoint = self.audit.view.checkpoint();
        match checkpoint.native.fault {
            Some(_) => 0,
            None => checkpoint.next_traced,
        }
    }

    /// Adds what a block moves, and holds its part of the supply against it.
    pub(super) fn add(&self, bundle: &Bundle, coins: &Coins) {
        let number = bundle.block.number();
        if number == 0 || number >= self.end() {
            return;
        }
        if self.is_of_dao(&bundle.block.header) {
            self.unsaid
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(number);
        } else {
            for (account, flow) in &coins.accounts {
                let weight = fingerprint(account);
                self.moved.add(number, weighed(flow.into, weight));
                self.moved.take(number, weighed(flow.out, weight));
            }
        }
        // A missing row is told with the others.
        let supplies = self.tally.read(number, supplies(self.audit, number)).flatten();
        if let Some((before, after)) = supplies {
            let burnt = |row: &SupplyRow| row.base_fees_burnt.wrapping_add(row.blob_fees_burnt);
            let parts = |row: &SupplyRow| [row.issued, burnt(row), row.destroyed];
            let called_for = [coins.issued, coins.burnt, coins.destroyed];
            let mut all = parts(&before).into_iter().zip(parts(&after)).zip(called_for);
            if all.any(|((before, after), by)| before.wrapping_add(by) != after) {
                let text = "what its supply says was issued, burnt or destroyed is not what it says itself";
                self.tally.wrong(Some(number), text);
            }
        }
    }

    /// Whether a block is the one that moved the balances of the DAO, which it does not say itself.
    fn is_of_dao(&self, header: &Header) -> bool {
        // The mark of ten blocks, of which it is the first (EIP-779).
        const MARK: &[u8] = b"dao-hard-fork";
        let is_marked = |header: &Header| header.extra_data.as_ref() == MARK;
        if !is_marked(header) {
            return false;
        }
        let before = header.number.checked_sub(1);
        let before = before.and_then(|before| self.audit.reader.block(before, false).ok().flatten());
        !before.is_some_and(|before| is_marked(&before.block.header))
    }

    /// History by account: its last row is the account's balance, and what it got before the first block or in the genesis
    /// allocation is what funded it; by block, what its rows add up to is what the block moves and what the supply gained.
    /// Without a ledger nothing is looked at.
    pub(super) fn run(self) -> Check {
        let transactions = self.audit.view.checkpoint().transactions;
        self.audit.observer.begins(self.tally.name, transactions * 2);
        let walked = self.walk();
        self.tally.ended(walked)
    }

    fn walk(&self) -> Result<(), QueryError> {
        let (view, end) = (&self.audit.view, self.end());
        let last = end.checked_sub(1);
        let Some(kept) = last.and_then(|last| BlockRange::new(view.first_block(), last)) else {
            return Ok(());
        };
        let mut histories = Histories {
            native: self,
            end,
            gained: Sums::new(kept),
            opening: U256::ZERO,
            held: U256::ZERO,
        };
        let mut accounts = view.scan_all(Table::Accounts)?;
        let mut balances = view.scan_all(Table::Balances)?;
        let mut inflows = view.scan_all(Table::Funding)?;
        loop {
            let heads = [
                head(&accounts, Table::Accounts)?,
                head(&balances, Table::Balances)?,
                head(&inflows, Table::Funding)?,
            ];
            let Some(account) = heads.into_iter().flatten().min() else {
                break;
            };
            let [has_row, has_history, has_inflow] = heads.map(|head| head == Some(account));
            let row = take(&mut accounts, Table::Accounts, has_row, AccountRow::decode)?;
            let funding = take(&mut inflows, Table::Funding, has_inflow, FundingRow::decode)?;
            let history = if has_history {
                histories.read(&mut balances, &account)?
            } else {
                History::default()
            };
            histories.judge(&account, row, &history, funding);
        }
        histories.supply(kept)?;
        let unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        for block in self
            .moved
            .unbalanced()
            .into_iter()
            .filter(|block| !unsaid.contains(block))
        {
            let text = "balances did not change as its transactions and frames say";
            self.tally.wrong(Some(block), text);
        }
        Ok(())
    }
}

fn corrupt(table: Table) -> impl Fn(Corrupt) -> QueryError {
    move |corrupt| QueryError::Corrupt(corrupt, table.name())
}

/// The account that a scan stands at.
fn head(scan: &Scan<'_>, table: Table) -> Result<Option<Address>, QueryError> {
    let Some((key, _)) = scan.item()? else {
        return Ok(None);
    };
    let account = key.first_chunk::<20>().ok_or(Corrupt("account key"));
    account
        .map(|account| Some(Address::from(*account)))
        .map_err(corrupt(table))
}

/// The row that a scan stands at, where it is the one that is looked for.
fn take<T>(
    scan: &mut Scan<'_>,
    table: Table,
    is_there: bool,
    decode: impl FnOnce(&[u8]) -> Result<T, Corrupt>,
) -> Result<Option<T>, QueryError> {
    let Some((_, value)) = scan.item()?.filter(|_| is_there) else {
        return Ok(None);
    };
    let row = decode(value).map_err(corrupt(table))?;
    scan.step()?;
    Ok(Some(row))
}

/// What the rows of one account say.
#[derive(Default)]
struct History {
    /// What it held before the first block, where that was something.
    opening: Option<U256>,
    last: Option<U256>,
}

/// Reads the history of balances, account by account.
struct Histories<'a> {
    native: &'a Native<'a>,
    /// The first block that has no rows.
    end: u64,
    /// What accounts gained in each block.
    gained: Sums,
    /// What accounts held before the first block, and now; sums wrap.
    opening: U256,
    held: U256,
}

impl Histories<'_> {
    fn read(&mut self, balances: &mut Scan<'_>, account: &Address) -> Result<History, QueryError> {
        let Native {
            audit, moved, tally, ..
        } = self.native;
        let first = audit.view.first_block();
        let weight = fingerprint(account);
        let mut history = History::default();
        let mut before = 0;
        while let Some((key, value)) = balances.item()? {
            let (of, block) = keys::decode_account_at(key).map_err(corrupt(Table::Balances))?;
            if of != *account {
                break;
            }
            let balance = read_amount(value).map_err(corrupt(Table::Balances))?;
            let after = residue(balance);
            if history.last.unwrap_or_default() == balance {
                let text = format!("a row of {account} says again what the one before says");
                tally.wrong(Some(block), text);
            }
            if block < first || block == 0 {
                if block != first.saturating_sub(1) {
                    let text = format!("{account} has a row before the first block");
                    tally.wrong(Some(block), text);
                }
                self.opening = self.opening.wrapping_add(balance);
                history.opening = Some(balance);
            } else if block < self.end {
                self.gained.add(block, after);
                self.gained.take(block, before);
                moved.take(block, times(after, weight));
                moved.add(block, times(before, weight));
            } else {
                let text = format!("{account} has a row of a block that the ledger does not follow");
                tally.wrong(Some(block), text);
            }
            (history.last, before) = (Some(balance), after);
            tally.items(1);
            balances.step()?;
        }
        self.held = self.held.wrapping_add(history.last.unwrap_or_default());
        Ok(history)
    }

    /// What is known of an account now, against its history.
    fn judge(
        &self,
        account: &Address,
        row: Option<AccountRow>,
        history: &History,
        funding: Option<FundingRow>,
    ) {
        let tally = &self.native.tally;
        let Some(row) = row else {
            let text = format!("{account} has a history or was funded, and has no row");
            return tally.wrong(None, text);
        };
        let balance = history.last.unwrap_or_default();
        if row.balance != balance {
            let now = row.balance;
            tally.wrong(
                None,
                format!("{account} holds {now}, its history ends with {balance}"),
            );
        }
        let from_genesis = self.native.audit.view.first_block() == 0;
        let sound = match (row.funded, funding, history.opening) {
            (Funded::Never, None, None) => true,
            (Funded::Before, None, Some(_)) => !from_genesis,
            (Funded::Here, Some(how), None) => how.kind != FundingKind::Genesis,
            (Funded::Here, Some(how), Some(value)) => {
                let (kind, block, by) = (FundingKind::Genesis, 0, None);
                let wanted = FundingRow {
                    kind,
                    block,
                    by,
                    value,
                };
                from_genesis && how == wanted
            }
            _ => false,
        };
        if !sound {
            let text =
                format!("{account}: its row, its funding and its history disagree on whether it was funded");
            tally.wrong(None, text);
        }
    }

    /// The sums of the supply against what accounts gained.
    fn supply(&self, kept: BlockRange) -> Result<(), QueryError> {
        let Native { audit, tally, .. } = self.native;
        let (view, opening) = (&audit.view, self.opening);
        let mut before = SupplyRow::default();
        for block in kept.first()..=kept.last() {
            let Some(supply) = view.supply(block)? else {
                tally.wrong(Some(block), "its row of the supply is missing");
                continue;
            };
            let gained = |row: &SupplyRow| {
                let lost = [row.base_fees_burnt, row.blob_fees_burnt, row.destroyed];
                (residue(row.issued), lost.map(residue))
            };
            let ((issued, lost), (issued_before, lost_before)) = (gained(&supply), gained(&before));
            self.gained.take(block, issued);
            self.gained.add(block, issued_before);
            for (lost, lost_before) in lost.into_iter().zip(lost_before) {
                self.gained.add(block, lost);
                self.gained.take(block, lost_before);
            }
            let parts = |row: &SupplyRow| {
                let burnt = [row.base_fees_burnt, row.blob_fees_burnt, row.destroyed];
                [[row.opening, row.issued].as_slice(), &burnt].concat()
            };
            if parts(&supply)
                .iter()
                .zip(parts(&before))
                .any(|(now, before)| *now < before)
            {
                tally.wrong(
                    Some(block),
                    "a sum of its supply is less than that of the block before",
                );
            }
            // The allocation was known from the first block on; openings that a node told come as they are met.
            let is_new = block == kept.first() || supply.opening != before.opening;
            if view.checkpoint().native.allocated && is_new && supply.opening != opening {
                let text = format!(
                    "its supply opened with {}, accounts with {opening}",
                    supply.opening
                );
                tally.wrong(Some(block), text);
            }
            before = supply;
        }
        for block in self.gained.unbalanced() {
            tally.wrong(
                Some(block),
                "balances did not change by what was issued less what was burnt",
            );
        }
        let held = self.held;
        if before.opening != opening || before.total() != Some(held) {
            let text = format!(
                "accounts hold {held} and opened with {opening}, the supply says {} and {}",
                before.total().unwrap_or_default(),
                before.opening
            );
            tally.wrong(Some(kept.last()), text);
        }
        Ok(())
    }
}
