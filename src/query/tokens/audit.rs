//! What the token ledger says, for whoever compares it with the contracts: plain sums of events, whatever
//! was found out about the token.

use std::collections::BTreeSet;

use super::super::{QueryError, Reader};
use super::Token;
use crate::codec::amount::read_amount;
use crate::codec::bytes;
use crate::codec::keys::{PostingKind, Term};
use crate::codec::tokens as keys;
use crate::codec::transaction_row::TransactionSlice;
use crate::codec::value::FrameRow;
use crate::model::{Address, BlockRange, FrameKind, TokenEvent, TokenKind, U256};
use crate::store::{Direction, Participants, PostingCursor, Scan, Table, Units};

/// What an account has of a token after a block, by the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerBalance {
    /// Whose.
    pub holder: Address,
    /// After which block.
    pub block: u64,
    /// How much: smallest units, or ids of an ERC-721 token.
    pub balance: U256,
}

/// A token event and the accounts that it speaks of, the zero address apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The token.
    pub token: Address,
    /// The accounts, twice the same where there is only one.
    pub accounts: [Address; 2],
}

impl Reader {
    /// The largest holders of a token now.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn ledger_largest(&self, token: &Token, limit: usize) -> Result<Vec<LedgerBalance>, QueryError> {
        let block = self.head().number;
        let holders = self.holders_past(token.id, 0, limit)?.into_iter();
        Ok(holders
            .map(|(holder, balance)| LedgerBalance {
                holder,
                block,
                balance,
            })
            .collect())
    }

    /// A balance of a token out of its past: that of the account at or after `at` in the order of addresses, after
    /// the first block from `from_block` on in which it changed, or the one at its last change.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn ledger_some_balance(
        &self,
        token: &Token,
        at: &Address,
        from_block: u64,
    ) -> Result<Option<LedgerBalance>, QueryError> {
        let id = token.id;
        let table = Table::TokenBalances;
        let mut scan = self.view.scan_token(table, id)?;
        let start = keys::balance(id, at, 0);
        let first = match scan.seek(&start)?.map(|(key, _)| balance_place(key)) {
            Some(place) => Some(place?),
            // Beyond the last account: the first one.
            None => scan
                .seek(&keys::token(id))?
                .map(|(key, _)| balance_place(key))
                .transpose()?,
        };
        let Some((holder, _)) = first else {
            return Ok(None);
        };
        let mut found = scan.seek(&keys::balance(id, &holder, from_block))?;
        let of_holder = |key: &[u8]| balance_place(key).is_ok_and(|(other, _)| other == holder);
        if !found.is_some_and(|(key, _)| of_holder(key)) {
            found = scan.seek_back(&keys::balance(id, &holder, u64::MAX))?;
        }
        let Some((key, value)) = found else {
            return Ok(None);
        };
        let (holder, block) = balance_place(key)?;
        Ok(Some(LedgerBalance {
            holder,
            block,
            balance: amount(value)?,
        }))
    }

    /// Accounts that ever had some of a token, by address, after `after`.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn ledger_holders_ever(
        &self,
        token: &Token,
        after: Option<&Address>,
        limit: usize,
    ) -> Result<Vec<Address>, QueryError> {
        let mut ever = EverHeld::of(self, token)?;
        let last = Address::repeat_byte(0xff);
        let mut found: Vec<Address> = Vec::new();
        let mut after = after.copied();
        while found.len() < limit && after != Some(last) {
            let next = after.map_or(Address::with_last_byte(1), |after| next_address(&after));
            let Some(holder) = ever.at_or_after(&next)? else {
                break;
            };
            found.push(holder);
            after = Some(holder);
        }
        Ok(found)
    }

    /// Those of some accounts, the zero address apart, that never had any of a token and took no part in its transfers. None where that is
    /// not known: of a token that is older than the store, and of one that is wrapped, whose withdrawals from nothing leave no row.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn ledger_never_saw(
        &self,
        token: &Token,
        accounts: impl IntoIterator<Item = Address>,
    ) -> Result<Vec<Address>, QueryError> {
        let mut strangers = Vec::new();
        if !token.is_whole() || token.is_wrapped() {
            return Ok(strangers);
        }
        let mut ever = EverHeld::of(self, token)?;
        for account in accounts {
            if !account.is_zero() && ever.at_or_after(&account)? != Some(account) {
                strangers.push(account);
            }
        }
        Ok(strangers)
    }

    /// Whether transfers of a token (of ERC-20 or ERC-721) lie in the blocks after `before` and up to `until`: of one holder, or of anybody.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn moved_between(
        &self,
        token: &Token,
        holder: Option<&Address>,
        (before, until): (u64, u64),
    ) -> Result<bool, QueryError> {
        let start = self.view.first_log(before.saturating_add(1))?;
        let end = self.view.first_log(until.saturating_add(1))?;
        let terms = match holder {
            None => vec![Term::token(PostingKind::TokenTransfers, token.id)],
            Some(holder) => [PostingKind::TokenAccountErc20, PostingKind::TokenAccountErc721]
                .map(|kind| Term::token_account(kind, token.id, holder))
                .into(),
        };
        for term in terms {
            let mut list = PostingCursor::open(&self.view, term, Direction::Forward)?;
            if list.seek(start)?.is_some_and(|at| at < end) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a contract spoke or was called, in transactions or in frames that are stored, in the blocks after `before` and up to
    /// `until`. Static calls count, which change nothing: the lists do not tell them apart.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn was_active(&self, contract: &Address, (before, until): (u64, u64)) -> Result<bool, QueryError> {
        let view = &self.view;
        let (first, end) = (before.saturating_add(1), until.saturating_add(1));
        let is_in = |term: Term, (from, to): (u64, u64)| -> Result<bool, QueryError> {
            let mut list = PostingCursor::open(view, term, Direction::Forward)?;
            Ok(from < to && list.seek(from)?.is_some_and(|at| at < to))
        };
        if let Some(emitter) = view.emitter(contract)?
            && is_in(
                Term::log_address(emitter),
                (view.first_log(first)?, view.first_log(end)?),
            )?
        {
            return Ok(true);
        }
        let transactions = Term::account(PostingKind::AccountTransactions, contract);
        if is_in(
            transactions,
            (view.first_transaction(first)?, view.first_transaction(end)?),
        )? {
            return Ok(true);
        }
        // Those of blocks without frames come last: there are none yet.
        let frames = (view.first_frame(first)?, view.first_frame(end)?);
        let calls = Term::account(PostingKind::AccountCalls, contract);
        let paid = Term::account(PostingKind::AccountInternal, contract);
        Ok(is_in(calls, frames)? || is_in(paid, frames)?)
    }

    /// The token events of blocks, in their order.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn token_touches(&self, blocks: BlockRange) -> Result<Vec<Touch>, QueryError> {
        let last = blocks.last().min(self.head().number);
        if last < blocks.first() {
            return Ok(Vec::new());
        }
        let first = self.view.block(blocks.first())?.first_log;
        let end = self.view.first_log(last + 1)?;
        let mut units = Units::new(&self.view, Table::LogsByBlock);
        let (mut data, mut found) = (Vec::new(), Vec::new());
        for ordinal in first..end {
            let log = units.log(&self.view, ordinal, &mut data)?;
            let token = self.view.emitter_address(log.emitter)?;
            let Some(event) = TokenEvent::of(&token, &log.topics, &data) else {
                continue;
            };
            let accounts = match event {
                TokenEvent::Fungible { from, to, .. }
                | TokenEvent::Unique { from, to, .. }
                | TokenEvent::Multi { from, to, .. } => [from, to],
                TokenEvent::Deposit { account, .. } | TokenEvent::Withdrawal { account, .. } => {
                    [account, account]
                }
            };
            found.push(Touch { token, accounts });
        }
        Ok(found)
    }
}

impl Reader {
    /// Who was called or created in these blocks, each once: by transactions that did not fail, and by frames of theirs that may change
    /// something. Where frames are not stored, by transactions alone.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn callees(&self, blocks: BlockRange) -> Result<BTreeSet<Address>, QueryError> {
        let corrupt = |table: Table| move |corrupt| QueryError::Corrupt(corrupt, table.name());
        let mut found = BTreeSet::new();
        let last = blocks.last().min(self.head().number);
        if last < blocks.first() {
            return Ok(found);
        }
        let mut units = Units::new(&self.view, Table::Transactions);
        for ordinal in self.view.first_transaction(blocks.first())?..self.view.first_transaction(last + 1)? {
            let row = TransactionSlice::decode(units.row(ordinal)?.bytes())
                .map_err(corrupt(Table::Transactions))?;
            if row.status != Some(false) {
                found.extend(row.to.or(row.contract_address));
            }
        }
        if self.view.block_frames(last)?.is_none() {
            return Ok(found);
        }
        let mut units = Units::new(&self.view, Table::Frames);
        for ordinal in self.view.first_frame(blocks.first())?..self.view.first_frame(last + 1)? {
            let row = FrameRow::decode(units.row(ordinal)?.bytes()).map_err(corrupt(Table::Frames))?;
            // Whom transactions call was looked at above.
            let FrameRow::Whole(frame) = row else { continue };
            let may_change = matches!(
                frame.kind,
                FrameKind::Call | FrameKind::CallCode | FrameKind::Create | FrameKind::Create2
            );
            if may_change && !frame.reverted {
                found.extend(frame.to);
            }
        }
        Ok(found)
    }
}

/// The accounts that ever had some of a token. Who sent what the ledger never saw coming has no row of a balance, but is in the
/// lists of transfers.
struct EverHeld<'v> {
    token: u32,
    balances: Scan<'v>,
    lists: Vec<Participants<'v>>,
}

impl<'v> EverHeld<'v> {
    fn of(reader: &'v Reader, token: &Token) -> Result<Self, QueryError> {
        let kinds: &[TokenKind] = match token.is_mixed() {
            false => &[token.kind()],
            true => &[TokenKind::Erc20, TokenKind::Erc721, TokenKind::Erc1155],
        };
        let (view, id) = (&*reader.view, token.id);
        let lists = kinds.iter().map(|kind| view.participants(id, *kind));
        Ok(Self {
            token: id,
            balances: view.scan_token(Table::TokenBalances, id)?,
            lists: lists.collect::<Result<_, _>>()?,
        })
    }

    /// The first of them by address, from one on.
    fn at_or_after(&mut self, from: &Address) -> Result<Option<Address>, QueryError> {
        let mut nearest = match self.balances.seek(&keys::balance(self.token, from, 0))? {
            Some((key, _)) => Some(balance_place(key)?.0),
            None => None,
        };
        for list in &mut self.lists {
            let listed = list.at_or_after(from)?;
            nearest = [nearest, listed].into_iter().flatten().min();
        }
        Ok(nearest)
    }
}

/// The address that comes next; the last one is its own.
fn next_address(address: &Address) -> Address {
    let mut bytes = address.0.0;
    for byte in bytes.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return Address::from(bytes);
        }
    }
    *address
}

fn amount(value: &[u8]) -> Result<U256, QueryError> {
    read_amount(value).map_err(|corrupt| QueryError::Corrupt(corrupt, Table::TokenBalances.name()))
}

/// The account and the block of a key of balances.
fn balance_place(key: &[u8]) -> Result<(Address, u64), QueryError> {
    let mut reader = bytes::Reader::new(key, "token balance key");
    let place = reader.take(4).and_then(|_| {
        let holder = Address::from(reader.array::<20>()?);
        Ok((holder, u64::from_be_bytes(reader.array::<8>()?)))
    });
    place.map_err(|corrupt| QueryError::Corrupt(corrupt, Table::TokenBalances.name()))
}
