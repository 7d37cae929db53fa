//! Rows that are written once, of accounts and contracts: how contracts came to be, nonces, how accounts were funded first,
//! and since when they take part.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use alloy_primitives::map::AddressMap;

use super::coins::Coins;
use super::sums::{Sums, fingerprint};
use super::{Audit, Check, Nobody, Ordinals, Tally, native, nonces};
use crate::codec::value::{AccountRow, Creation, Funded, FundingKind, FundingRow};
use crate::codec::{Corrupt, keys};
use crate::model::{Address, Bundle, created_contract};
use crate::query::QueryError;
use crate::store::{StoreError, Table};

/// The tables that have them; of accounts, their first blocks.
const TABLES: [Table; 4] = [Table::Creations, Table::Nonces, Table::Funding, Table::Accounts];

/// Takes a row that a block calls for: its table, key and value.
type Item<'a> = dyn FnMut(Table, &[u8], &[u8]) + 'a;
/// Takes a row that is there, and the block that it is of.
type Visit<'a> = dyn FnMut(u64, Table, &[u8], &[u8]) + 'a;

/// Blocks that are taken apart when their sums do not balance; the others are named only.
const DETAILED: usize = 20;

/// What is known of accounts; of one thread, and of so many at a time.
#[derive(Default)]
pub(super) struct Known {
    accounts: AddressMap<Option<AccountRow>>,
    /// In which block they were funded first.
    funded: AddressMap<Option<u64>>,
}

const KNOWN_MAX: usize = 1 << 16;

fn once<T: Copy>(
    known: &mut AddressMap<T>,
    account: &Address,
    look_up: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    match known.entry(*account) {
        Entry::Occupied(known) => Ok(*known.get()),
        Entry::Vacant(place) => Ok(*place.insert(look_up()?)),
    }
}

impl Known {
    fn account(&mut self, audit: &Audit<'_>, account: &Address) -> Result<Option<AccountRow>, StoreError> {
        once(&mut self.accounts, account, || audit.view.account(account))
    }

    fn first_block(&mut self, audit: &Audit<'_>, account: &Address) -> Result<Option<u64>, StoreError> {
        Ok(self.account(audit, account)?.and_then(|row| row.first_block))
    }

    fn funded(&mut self, audit: &Audit<'_>, account: &Address) -> Result<Option<u64>, StoreError> {
        once(&mut self.funded, account, || {
            Ok(audit.view.funding(account)?.map(|row| row.block))
        })
    }
}

/// The check under way: what bodies call for is added while they are read.
pub(super) struct Facts<'a> {
    audit: &'a Audit<'a>,
    sums: Sums,
    tally: Tally<'a>,
}

fn print(table: Table, key: &[u8], value: &[u8]) -> u64 {
    fingerprint((table as u8, key, value))
}

impl<'a> Facts<'a> {
    pub(super) fn new(audit: &'a Audit<'a>) -> Self {
        Self {
            audit,
            sums: Sums::new(audit.range),
            tally: Tally::new(
                "creations, nonces, first inflows and blocks",
                "rows",
                audit.observer,
            ),
        }
    }

    /// Adds what a block calls for; `coins` are what it moves, where its frames are stored.
    pub(super) fn add(&self, bundle: &Bundle, coins: Option<&Coins>, known: &mut Known) {
        let number = bundle.block.number();
        let mut item = |table, key: &[u8], value: &[u8]| self.sums.add(number, print(table, key, value));
        let told = called_for(self.audit, bundle, coins, known, &self.tally, &mut item);
        self.tally.read(number, told);
    }

    /// Holds the tables against it.
    pub(super) fn run(self) -> Check {
        let checkpoint = self.audit.view.checkpoint();
        self.audit
            .observer
            .begins(self.tally.name, checkpoint.transactions);
        let walked = self.walk();
        self.tally.ended(walked)
    }

    fn walk(&self) -> Result<(), QueryError> {
        let Self { audit, sums, tally } = self;
        rows(audit, tally, &mut |block, table, key, value| {
            sums.take(block, print(table, key, value));
        })?;
        let unbalanced = sums.unbalanced();
        let (detailed, others) = unbalanced.split_at(unbalanced.len().min(DETAILED));
        if !detailed.is_empty() {
            take_apart(audit, detailed, tally)?;
        }
        for &block in others {
            let text = "rows of creations, nonces, funding or accounts are not what it calls for";
            tally.wrong(Some(block), text);
        }
        Ok(())
    }
}

/// Hands the rows that a block calls for to `item`, by table, key and value: all of them but those that other blocks called
/// for before. What accounts say against that is told at once.
pub(super) fn called_for(
    audit: &Audit<'_>,
    bundle: &Bundle,
    coins: Option<&Coins>,
    known: &mut Known,
    tally: &Tally<'_>,
    item: &mut Item<'_>,
) -> Result<(), StoreError> {
    creations(audit, bundle, item)?;
    nonces::called_for(audit, bundle, &mut |key, value| item(Table::Nonces, key, value))?;
    match coins {
        Some(coins) => accounts(audit, bundle.block.number(), coins, known, tally, item),
        None => Ok(()),
    }
}

fn creations(audit: &Audit<'_>, bundle: &Bundle, item: &mut Item<'_>) -> Result<(), StoreError> {
    let number = bundle.block.number();
    let first = audit.view.first_transaction(number)?;
    // Frames say more of what a receipt says, too.
    let mut made: HashMap<(Address, u64), Creation> = HashMap::new();
    let own = Creation {
        frame: None,
        factory: None,
    };
    let pairs = bundle.block.transactions.iter().zip(&bundle.receipts);
    for ((transaction, receipt), ordinal) in pairs.zip(first..) {
        let created = created_contract(transaction.to, receipt.contract_address);
        if let Some(contract) = created.filter(|_| receipt.status == Some(true)) {
            made.insert((contract, ordinal), own);
        }
    }
    if let Some(traces) = bundle.traces.as_deref().filter(|_| audit.is_traced(number)) {
        let frames = traces
            .iter()
            .zip(first..)
            .flat_map(|(trace, ordinal)| trace.frames.iter().map(move |frame| (frame, ordinal)));
        for ((frame, ordinal), place) in frames.zip(audit.view.first_frame(number)?..) {
            let is_made = frame.kind.is_creation() && !frame.reverted;
            let Some(contract) = frame.to.filter(|_| is_made) else {
                continue;
            };
            let creation = if frame.path.is_empty() {
                own
            } else {
                Creation {
                    frame: Some(place),
                    factory: Some(frame.from.into_array()),
                }
            };
            made.insert((contract, ordinal), creation);
        }
    }
    for ((contract, ordinal), creation) in made {
        let key = keys::account_at(&contract, ordinal);
        item(Table::Creations, &key, &creation.encode());
    }
    Ok(())
}

/// Since when accounts take part, and what funded them first: their rows tell of this block, or of one before.
fn accounts(
    audit: &Audit<'_>,
    number: u64,
    coins: &Coins,
    known: &mut Known,
    tally: &Tally<'_>,
    item: &mut Item<'_>,
) -> Result<(), StoreError> {
    let is_kept = number < audit.native_end();
    for (account, flow) in &coins.accounts {
        if flow.takes_part {
            match known.first_block(audit, account)? {
                Some(first) if first < number => {}
                Some(first) if first == number => item(Table::Accounts, account.as_slice(), &[]),
                _ => tally.wrong(
                    Some(number),
                    format!("{account} takes part, and by its row it did not until then"),
                ),
            }
        }
        // A ledger that ended follows no inflows.
        let Some(funding) = flow.funded.filter(|_| is_kept) else {
            continue;
        };
        match known.funded(audit, account)? {
            Some(first) if first < number => {}
            Some(first) if first == number => item(Table::Funding, account.as_slice(), &funding.encode()),
            None if known
                .account(audit, account)?
                .is_some_and(|row| row.funded == Funded::Before) => {}
            _ => tally.wrong(
                Some(number),
                format!("{account} gets something, and by its row of funding it did not until then"),
            ),
        }
    }
    for account in &coins.either {
        let takes_part = coins.accounts.get(account).is_some_and(|flow| flow.takes_part);
        if !takes_part && known.first_block(audit, account)? == Some(number) {
            item(Table::Accounts, account.as_slice(), &[]);
        }
    }
    Ok(())
}

/// Hands the rows that blocks call for to `visit`, by block, table, key and value. All that is there is read.
fn rows(audit: &Audit<'_>, tally: &Tally<'_>, visit: &mut Visit<'_>) -> Result<(), QueryError> {
    let view = &audit.view;
    let places = Places {
        audit,
        ordinals: Ordinals::of(view, audit.range)?.transactions,
    };
    for table in TABLES {
        let mut scan = view.scan_all(table)?;
        while let Some((key, value)) = scan.item()? {
            match places.block_of(table, key, value) {
                Ok(None) => {}
                Ok(Some(block)) if block >= view.first_block() && block < view.checkpoint().next_block => {
                    let value: &[u8] = if table == Table::Accounts { &[] } else { value };
                    visit(block, table, key, value);
                }
                Ok(Some(block)) => tally.wrong(
                    None,
                    format!(
                        "{}: the row 0x{} is of block {block}, which is not stored",
                        table.name(),
                        const_hex::encode(key)
                    ),
                ),
                Err(QueryError::Corrupt(corrupt, name)) => tally.wrong(
                    None,
                    format!("{name}: the row 0x{}: {corrupt}", const_hex::encode(key)),
                ),
                Err(error) => return Err(error),
            }
            tally.items(1);
            scan.step()?;
        }
    }
    Ok(())
}

struct Places<'a> {
    audit: &'a Audit<'a>,
    /// The transactions of the audited blocks.
    ordinals: Range<u64>,
}

impl Places<'_> {
    /// The block that calls for a row; `None` where none tells, or none of those that are audited.
    fn block_of(&self, table: Table, key: &[u8], value: &[u8]) -> Result<Option<u64>, QueryError> {
        let view = &self.audit.view;
        let corrupt = |corrupt| QueryError::Corrupt(corrupt, table.name());
        let account = || <&[u8; 20]>::try_from(key).map_err(|_| corrupt(Corrupt("account key")));
        match table {
            Table::Creations => {
                let (_, ordinal) = keys::decode_account_at(key).map_err(corrupt)?;
                Creation::decode(value).map_err(corrupt)?;
                if ordinal >= view.checkpoint().transactions {
                    return Err(corrupt(Corrupt("ordinal of a transaction that is not stored")));
                }
                if !self.ordinals.contains(&ordinal) {
                    return Ok(None);
                }
                Ok(Some(view.block_of_transaction(ordinal)?.0))
            }
            Table::Nonces => {
                let (_, block) = keys::decode_account_at(key).map_err(corrupt)?;
                nonces::decode(value).map_err(corrupt)?;
                let is_stored = block >= view.first_block() && block < view.checkpoint().next_block;
                Ok(Some(block).filter(|&block| !is_stored || nonces::are_told(self.audit, block)))
            }
            Table::Funding => {
                account()?;
                let row = FundingRow::decode(value).map_err(corrupt)?;
                // Those of the genesis allocation are held against balances.
                Ok(Some(row.block).filter(|_| row.kind != FundingKind::Genesis))
            }
            _ => {
                account()?;
                Ok(AccountRow::decode(value).map_err(corrupt)?.first_block)
            }
        }
    }
}

/// Says of each of `blocks`, row by row, what is missing and what does not belong there.
fn take_apart(audit: &Audit<'_>, blocks: &[u64], tally: &Tally<'_>) -> Result<(), QueryError> {
    let quiet = Tally::new(tally.name, tally.unit, &Nobody);
    let mut known = Known::default();
    let mut wanted: HashMap<(Table, Vec<u8>), (u64, Vec<u8>)> = HashMap::new();
    for &number in blocks {
        let Some(bundle) = audit.reader.bundle(number)? else {
            continue;
        };
        let coins = native::coins_of(audit, &bundle)?;
        called_for(
            audit,
            &bundle,
            coins.as_ref(),
            &mut known,
            &quiet,
            &mut |table, key, value| {
                wanted.insert((table, key.to_vec()), (number, value.to_vec()));
            },
        )?;
    }
    let blocks: HashSet<u64> = blocks.iter().copied().collect();
    let row = |table: Table, key: &[u8]| format!("{}: the row 0x{}", table.name(), const_hex::encode(key));
    rows(audit, &quiet, &mut |block, table, key, value| {
        if !blocks.contains(&block) {
            return;
        }
        let expected = match wanted.entry((table, key.to_vec())) {
            Entry::Occupied(expected) if expected.get().0 == block => Some(expected.remove().1),
            _ => None,
        };
        if expected.is_none_or(|expected| expected != value) {
            tally.wrong(
                Some(block),
                format!("{} is not what the block calls for", row(table, key)),
            );
        }
    })?;
    for ((table, key), (block, _)) in wanted {
        tally.wrong(Some(block), format!("{} is missing", row(table, &key)));
    }
    Ok(())
}
