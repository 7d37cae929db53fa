//! Token transfers of an account (A7, A8 and their like of ERC-1155), and of a token.

use std::hint::black_box;
use std::time::Instant;

use alloy_primitives::map::{Entry, HashMap};

use super::foreign;
use crate::codec::Corrupt;
use crate::codec::keys::{PostingKind, Term};
use crate::codec::tokens::MIXED;
use crate::codec::transaction_row::TransactionSlice;
use crate::model::{Address, BlockId, ListedTransfer, TokenEvent, TokenKind, TokenMetadata, U256};
use crate::query::accounts::price;
use crate::query::log_page::touched_log;
use crate::query::page::{ListQuery, Page, Paged, Rows};
use crate::query::{QueryError, Reader};
use crate::store::{Table, UnitRow, Units, View, Wanted, WholeLog};

/// The standard whose transfers are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// ERC-20 (A7).
    Erc20,
    /// ERC-721 (A8).
    Erc721,
    /// ERC-1155.
    Erc1155,
}

impl Standard {
    /// The lists of an account, and of its part in one token.
    const fn lists(self) -> (PostingKind, PostingKind) {
        match self {
            Self::Erc20 => (PostingKind::AccountErc20, PostingKind::TokenAccountErc20),
            Self::Erc721 => (PostingKind::AccountErc721, PostingKind::TokenAccountErc721),
            Self::Erc1155 => (PostingKind::AccountErc1155, PostingKind::TokenAccountErc1155),
        }
    }

    /// The kind of token that has such transfers.
    #[must_use]
    pub const fn kind(self) -> TokenKind {
        match self {
            Self::Erc20 => TokenKind::Erc20,
            Self::Erc721 => TokenKind::Erc721,
            Self::Erc1155 => TokenKind::Erc1155,
        }
    }

    pub(super) const fn rows(self) -> Rows {
        match self {
            Self::Erc20 | Self::Erc721 => Rows::Logs,
            Self::Erc1155 => Rows::MultiTransfers,
        }
    }

    /// The list of a token of this standard.
    const fn list(self) -> PostingKind {
        match self {
            Self::Erc20 | Self::Erc721 => PostingKind::TokenTransfers,
            Self::Erc1155 => PostingKind::TokenMultiTransfers,
        }
    }
}

/// A page of token transfers.
#[derive(Debug)]
pub struct TransferPage {
    page: Page,
    standard: Standard,
    reader: Reader,
    /// Where rows are read, from frame to frame.
    logs: Option<Units<'static>>,
    transactions: Option<Units<'static>>,
    metadata: HashMap<Address, TokenMetadata>,
}

impl Reader {
    /// The transfers of one standard that an account sent or received, of one token where `token` is given (A7, A8).
    pub fn account_transfers(
        &self,
        account: &Address,
        standard: Standard,
        token: Option<&Address>,
        query: &ListQuery,
    ) -> Result<TransferPage, QueryError> {
        let (of_account, of_both) = standard.lists();
        let term = match token {
            None => Some(Term::account(of_account, account)),
            Some(token) => self
                .view
                .token(token)?
                .map(|token| Term::token_account(of_both, token, account)),
        };
        let page = Page::of_blocks(&self.view, term.as_slice(), standard.rows(), query)?;
        Ok(TransferPage::new(page, standard, self))
    }

    /// The transfers of one standard that a token's contract emitted, whoever sent and received.
    ///
    /// Those of the token's own standard are one list, of which any page costs the same and the total is known. A
    /// contract that follows several standards has no list of the others: their transfers are found by a walk over
    /// its logs, which gives up at `deadline`, and the total is known where the walk saw all of them.
    pub fn token_transfers(
        &self,
        token: &Address,
        standard: Standard,
        query: &ListQuery,
        deadline: Option<Instant>,
    ) -> Result<TransferPage, QueryError> {
        let known = match self.view.token(token)? {
            Some(id) => Some((id, self.view.token_state(id)?)),
            None => None,
        };
        let page = match known {
            Some((_, state)) if state.kind != standard.kind() && state.flags & MIXED != 0 => {
                let selected = foreign::select(&self.view, token, standard, query, deadline)?;
                Page::of_rows(&self.view, selected, standard.rows())?
            }
            Some((id, state)) if state.kind == standard.kind() => {
                let term = Term::token(standard.list(), id);
                Page::of_blocks(&self.view, &[term], standard.rows(), query)?
            }
            _ => Page::of_blocks(&self.view, &[], standard.rows(), query)?,
        };
        Ok(TransferPage::new(page, standard, self))
    }
}

/// What a transfer's transaction says.
struct Around {
    nonce: u64,
    gas: u64,
    gas_price: u128,
    gas_used: u64,
    cumulative_gas_used: u64,
}

impl Paged for TransferPage {
    fn page(&self) -> &Page {
        &self.page
    }

    fn page_mut(&mut self) -> &mut Page {
        &mut self.page
    }

    fn again(&self) -> Self {
        Self::new(self.page.clone(), self.standard, &self.reader)
    }
}

/// The log of the transfer that was visited last: the items of a batch follow each other.
struct Log {
    ordinal: u64,
    token: Address,
    whole: WholeLog,
}

/// Reads what a transfer's log calls for: its transaction's row comes into the cache of blocks.
fn touch_transfer(view: &View, _: u64, row: UnitRow<'_>) {
    if let Some(transaction) = touched_log(view, row) {
        let _ = black_box(Units::new(view, Table::Transactions).row(transaction).is_ok());
    }
}

impl TransferPage {
    fn new(page: Page, standard: Standard, reader: &Reader) -> Self {
        Self {
            page,
            standard,
            reader: reader.clone(),
            logs: None,
            transactions: None,
            metadata: HashMap::default(),
        }
    }

    /// Visits the transfers that were not visited yet, until `visitor` answers that it has enough; answers whether
    /// transfers remain.
    pub fn visit(
        &mut self,
        visitor: &mut dyn FnMut(&ListedTransfer<'_>) -> bool,
    ) -> Result<bool, QueryError> {
        let view = self.page.view();
        let Self {
            page,
            standard,
            reader,
            logs,
            transactions,
            metadata,
        } = self;
        let logs = Units::opened(logs, &view, Table::LogsByBlock);
        let transactions = Units::opened(transactions, &view, Table::Transactions);
        let wrong = || QueryError::Corrupt(Corrupt("transfer"), Table::LogsByBlock.name());
        let mut data = Vec::new();
        let mut last: Option<Log> = None;
        let mut around: Option<(u64, Around)> = None;
        page.visit_with_rest(|ordinal, rest| {
            let (log, position) = match standard {
                Standard::Erc20 | Standard::Erc721 => (ordinal, 0),
                Standard::Erc1155 => view.multi_transfer(ordinal)?,
            };
            let alone = [log];
            let wanted = Wanted {
                // Those of ERC-1155 have ordinals of their own.
                ordinals: if log == ordinal { rest } else { &alone },
                touch: touch_transfer,
            };
            let log = match &last {
                Some(last) if last.ordinal == log => last,
                _ => {
                    let whole = logs.log_of(&view, wanted, &mut data)?;
                    last.insert(Log {
                        ordinal: log,
                        token: view.emitter_address(whole.emitter)?,
                        whole,
                    })
                }
            };
            let (token, log) = (log.token, &log.whole);
            let number = log.block;
            let event = TokenEvent::of(&token, &log.topics, &data).ok_or_else(wrong)?;
            let (from, to, id, value) = match event {
                TokenEvent::Fungible { from, to, value } => (from, to, None, value),
                TokenEvent::Unique { from, to, id } => (from, to, Some(id), U256::from(1)),
                TokenEvent::Multi { from, to, items } => {
                    let (id, value) = items.get(position as usize).ok_or_else(wrong)?;
                    (from, to, Some(id), value)
                }
                TokenEvent::Deposit { .. } | TokenEvent::Withdrawal { .. } => return Err(wrong()),
            };
            let block = view.block(number)?;
            let transaction = block.first_transaction + u64::from(log.transaction_index);
            // Transfers of one transaction follow each other.
            let around = match &around {
                Some((at, around)) if *at == transaction => around,
                _ => {
                    let row = transactions.row(transaction)?;
                    let slice = TransactionSlice::decode(row.bytes())
                        .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Transactions.name()))?;
                    let found = Around {
                        nonce: slice.nonce,
                        gas: slice.gas,
                        gas_price: price(&view, number, &slice.fees)?,
                        gas_used: slice.fees.gas_used,
                        cumulative_gas_used: slice.cumulative_gas_used,
                    };
                    &around.insert((transaction, found)).1
                }
            };
            let metadata = match metadata.entry(token) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(reader.token_metadata(&token)?),
            };
            Ok(visitor(&ListedTransfer {
                transaction_hash: view.transaction_hash(transaction)?,
                log_index: log.index,
                position,
                block: BlockId {
                    number,
                    hash: block.hash,
                },
                timestamp: block.timestamp,
                transaction_index: log.transaction_index,
                from,
                to,
                token,
                kind: standard.kind(),
                metadata,
                id,
                value,
                nonce: around.nonce,
                gas: around.gas,
                gas_price: around.gas_price,
                gas_used: around.gas_used,
                cumulative_gas_used: around.cumulative_gas_used,
            }))
        })
    }
}
