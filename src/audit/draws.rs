//! Whom samples are drawn from: all of few, parties of what happened, and which tokens a ledger may be asked about.

use super::{Audit, Ordinals};
use crate::codec::transaction_row::TransactionSlice;
use crate::codec::value::FrameRow;
use crate::codec::{keys, tokens};
use crate::model::{Address, BlockRange, TokenKind};
use crate::query::{Exactness, QueryError, Token};
use crate::store::{Table, Units};

/// All of few, each as often as any other; nothing of many.
#[derive(Debug)]
pub(super) struct Walk<T> {
    all: Vec<T>,
    next: usize,
    rounds: u64,
}

impl<T: Copy> Walk<T> {
    pub(super) fn of(mut all: Vec<T>, random: &mut fastrand::Rng) -> Self {
        // Where the samples end before all were drawn no corner is left out.
        random.shuffle(&mut all);
        Self {
            all,
            next: 0,
            rounds: 0,
        }
    }

    /// Whether some were not drawn yet and are at most so many.
    pub(super) fn is_owed(&self, samples: usize) -> bool {
        self.rounds == 0 && !self.all.is_empty() && self.all.len() <= samples
    }

    pub(super) fn next(&mut self) -> Option<T> {
        let drawn = self.all.get(self.next).copied();
        self.next += 1;
        if self.next >= self.all.len() {
            (self.next, self.rounds) = (0, self.rounds + 1);
        }
        drawn
    }
}

/// The accounts of the ledger, where they are at most so many.
pub(super) fn accounts(audit: &Audit<'_>, most: usize) -> Result<Vec<Address>, QueryError> {
    let mut all = Vec::new();
    let mut scan = audit.view.scan_all(Table::Accounts)?;
    while let Some((key, _)) = scan.item()? {
        if all.len() == most {
            return Ok(Vec::new());
        }
        if let Some(account) = key.first_chunk::<20>() {
            all.push(Address::from(*account));
        }
        scan.step()?;
    }
    Ok(all)
}

/// Everybody who ever had some of these tokens, where they are at most so many.
pub(super) fn holders(
    audit: &Audit<'_>,
    tokens: &[u32],
    most: usize,
) -> Result<Vec<(u32, Address)>, QueryError> {
    let mut all = Vec::new();
    let mut scan = audit.view.scan_all(Table::TokenBalances)?;
    for &id in tokens {
        let mut from = tokens::token(id).to_vec();
        while let Some((key, _)) = scan.seek(&from)? {
            let Some((of, holder)) = key.split_first_chunk::<4>().and_then(|(of, rest)| {
                Some((u32::from_be_bytes(*of), Address::from(*rest.first_chunk::<20>()?)))
            }) else {
                break;
            };
            if of != id {
                break;
            }
            if all.len() == most {
                return Ok(Vec::new());
            }
            all.push((id, holder));
            from = tokens::balance(id, &holder, u64::MAX).to_vec();
            from.push(0);
        }
    }
    Ok(all)
}

/// Tokens by what may be asked of them.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// The ledger speaks for them.
    pub(super) exact: Vec<u32>,
    /// The service asks the node for them until they are judged.
    pub(super) unjudged: Vec<u32>,
    /// Their ledgers are known not to be what the contracts say.
    pub(super) inexact: u64,
    /// The store lacks their beginning.
    pub(super) older: u64,
    /// ERC-1155: no call tells a balance or a supply of all ids.
    pub(super) multi: u64,
}

impl Census {
    pub(super) fn of(audit: &Audit<'_>) -> Result<Self, QueryError> {
        let mut census = Self::default();
        for id in 0..audit.view.checkpoint().tokens {
            let address = audit.view.token_address(id)?;
            let Some(token) = audit.reader.token(&address)? else {
                continue;
            };
            if token.kind() == TokenKind::Erc1155 {
                census.multi += 1;
            } else if !token.is_whole() {
                census.older += 1;
            } else {
                match token.verdict.exactness {
                    Exactness::Exact => census.exact.push(id),
                    Exactness::Unjudged => census.unjudged.push(id),
                    Exactness::Inexact => census.inexact += 1,
                }
            }
        }
        Ok(census)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.unjudged.is_empty()
    }
}

/// A token that may be asked about: what its ledger is known to be wrong of is the node's anyway.
pub(super) fn asked(audit: &Audit<'_>, address: &Address) -> Result<Option<Token>, QueryError> {
    let token = audit.reader.token(address)?;
    Ok(token.filter(|token| {
        token.verdict.exactness != Exactness::Inexact
            && matches!(token.kind(), TokenKind::Erc20 | TokenKind::Erc721)
    }))
}

/// Who took part in what happened in the audited blocks: who acts often is drawn often, wherever his address lies.
#[derive(Debug)]
pub(super) struct Parties<'a> {
    audit: &'a Audit<'a>,
    ordinals: Ordinals,
    transactions: Units<'a>,
    frames: Units<'a>,
}

/// Of so many parties one is of a block itself: its fee recipient, or an account of its withdrawals.
const OF_BLOCKS: u8 = 8;

impl<'a> Parties<'a> {
    pub(super) fn new(audit: &'a Audit<'a>) -> Result<Self, QueryError> {
        Ok(Self {
            audit,
            ordinals: Ordinals::of(&audit.view, audit.range)?,
            transactions: Units::new(&audit.view, Table::Transactions),
            frames: Units::new(&audit.view, Table::Frames),
        })
    }

    /// A party of a random transaction, frame or block.
    pub(super) fn account(&mut self, random: &mut fastrand::Rng) -> Result<Option<Address>, QueryError> {
        let Ordinals {
            transactions, frames, ..
        } = self.ordinals.clone();
        let parties = if random.u8(..OF_BLOCKS) == 0 || (transactions.is_empty() && frames.is_empty()) {
            self.of_block(random)?
        } else if !frames.is_empty() && (transactions.is_empty() || random.bool()) {
            let row = self.frames.row(random.u64(frames))?;
            let block = row.block;
            let row = FrameRow::decode(row.bytes())
                .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Frames.name()))?;
            let index = u64::from(row.transaction_index());
            match row {
                FrameRow::Whole(frame) => [Some(frame.from), frame.to].into_iter().flatten().collect(),
                FrameRow::OfTransaction(_) => {
                    let first = self.audit.view.first_transaction(block)?;
                    self.of_transaction(first + index)?
                }
            }
        } else {
            self.of_transaction(random.u64(transactions))?
        };
        Ok(random.choice(parties))
    }

    fn of_transaction(&mut self, ordinal: u64) -> Result<Vec<Address>, QueryError> {
        let row = TransactionSlice::decode(self.transactions.row(ordinal)?.bytes())
            .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Transactions.name()))?;
        let parties = [Some(row.from), row.to, row.created()];
        Ok(parties.into_iter().flatten().collect())
    }

    fn of_block(&self, random: &mut fastrand::Rng) -> Result<Vec<Address>, QueryError> {
        let range = self.audit.range;
        let number = random.u64(range.first()..=range.last());
        let Some(entry) = self.audit.reader.block(number, false)? else {
            return Ok(Vec::new());
        };
        let mut parties = vec![entry.block.header.beneficiary];
        parties.extend(entry.block.withdrawals.iter().flatten().map(|paid| paid.address));
        Ok(parties)
    }

    /// A token and a party of one of its events, in the block of a random log.
    pub(super) fn holder(
        &self,
        random: &mut fastrand::Rng,
    ) -> Result<Option<(Address, Address)>, QueryError> {
        let logs = self.ordinals.logs.clone();
        if logs.is_empty() {
            return Ok(None);
        }
        let (block, _) = self.audit.view.block_of_log(random.u64(logs))?;
        let Some(blocks) = BlockRange::new(block, block) else {
            return Ok(None);
        };
        let Some(touch) = random.choice(self.audit.reader.token_touches(blocks)?) else {
            return Ok(None);
        };
        let holder = random.choice(touch.accounts).filter(|holder| !holder.is_zero());
        Ok(holder.map(|holder| (touch.token, holder)))
    }
}

/// How far behind a random block the change of an account is looked for that is taken.
const STEPS_MAX: u8 = 8;

/// The block of one of an account's rows; `None` where it has none.
pub(super) fn own_block(
    audit: &Audit<'_>,
    random: &mut fastrand::Rng,
    account: &Address,
    near: u64,
) -> Result<Option<u64>, QueryError> {
    let corrupt = |corrupt| QueryError::Corrupt(corrupt, Table::Balances.name());
    let block_of = |key: &[u8]| keys::decode_account_at(key).map(|(_, block)| block);
    let (from, to) = (keys::account_at(account, 0), keys::account_at(account, u64::MAX));
    let mut scan = audit.view.scan(Table::Balances, from.to_vec(), to.to_vec())?;
    let mut found = match scan.seek(&keys::account_at(account, near))? {
        Some((key, _)) => block_of(key).map_err(corrupt)?,
        None => {
            let last = scan.seek_back(&to)?;
            return last.map(|(key, _)| block_of(key)).transpose().map_err(corrupt);
        }
    };
    for _ in 0..random.u8(..STEPS_MAX) {
        let Some((key, _)) = scan.step()? else { break };
        found = block_of(key).map_err(corrupt)?;
    }
    Ok(Some(found))
}
