//! Lists of an account: its transactions (A3) and the blocks it mined (A9).

use std::hint::black_box;

use super::hashes::Hashes;
use super::internal::TopFrames;
use super::page::{ListQuery, Page, Paged, Rows};
use super::{QueryError, Reader};
use crate::codec::keys::{PostingKind, Term};
use crate::codec::transaction_row::TransactionSlice;
use crate::codec::value::{FeeRow, blob_price};
use crate::model::{Address, BlockId, ListedTransaction, MinedBlock, U256};
use crate::store::{Table, UnitRow, Units, View, Wanted};

/// A page of transactions.
#[derive(Debug)]
pub struct TransactionPage {
    page: Page,
    /// Where the rows are read, from frame to frame; opened by the first of them.
    units: Option<Units<'static>>,
}

impl Reader {
    /// The transactions that an account sent, received or was created by (A3).
    pub fn account_transactions(
        &self,
        account: &Address,
        query: &ListQuery,
    ) -> Result<TransactionPage, QueryError> {
        let term = Term::account(PostingKind::AccountTransactions, account);
        let page = Page::of_blocks(&self.view, &[term], Rows::Transactions, query)?;
        if !self.has_traces() {
            // An answer that has begun cannot turn into a refusal, so look now.
            let traced = self.view.first_transaction(self.view.checkpoint().next_traced)?;
            for &ordinal in page.hits() {
                if ordinal >= traced && self.view.transaction_status(ordinal)?.is_none() {
                    return Err(QueryError::NeedsTraces);
                }
            }
        }
        Ok(TransactionPage { page, units: None })
    }
}

/// A page of blocks.
#[derive(Debug)]
pub struct MinedPage {
    page: Page,
    reader: Reader,
}

impl Reader {
    /// The blocks of which an account is the fee recipient (A9).
    pub fn account_mined(&self, account: &Address, query: &ListQuery) -> Result<MinedPage, QueryError> {
        let term = Term::account(PostingKind::AccountMined, account);
        let page = Page::of_blocks(&self.view, &[term], Rows::Blocks, query)?;
        Ok(MinedPage {
            page,
            reader: self.clone(),
        })
    }
}

impl Paged for MinedPage {
    fn page(&self) -> &Page {
        &self.page
    }

    fn page_mut(&mut self) -> &mut Page {
        &mut self.page
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.clone(),
            reader: self.reader.clone(),
        }
    }
}

impl MinedPage {
    /// Visits the blocks that were not visited yet, until `visitor` answers that it has enough; answers whether
    /// blocks remain.
    pub fn visit(&mut self, visitor: &mut dyn FnMut(&MinedBlock) -> bool) -> Result<bool, QueryError> {
        let view = self.page.view();
        let reader = &self.reader;
        self.page.visit(|number| {
            let block = view.block(number)?;
            Ok(visitor(&MinedBlock {
                block: BlockId {
                    number,
                    hash: block.hash,
                },
                timestamp: block.timestamp,
                reward: reader.block_reward_total(number)?,
                transactions: view.first_transaction(number + 1)? - block.first_transaction,
            }))
        })
    }
}

impl Paged for TransactionPage {
    fn page(&self) -> &Page {
        &self.page
    }

    fn page_mut(&mut self) -> &mut Page {
        &mut self.page
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.clone(),
            units: None,
        }
    }
}

impl TransactionPage {
    /// Visits the transactions that were not visited yet, until `visitor` answers that it has enough; answers
    /// whether transactions remain.
    pub fn visit(
        &mut self,
        visitor: &mut dyn FnMut(&ListedTransaction<'_>) -> bool,
    ) -> Result<bool, QueryError> {
        let view = self.page.view();
        let units = Units::opened(&mut self.units, &view, Table::Transactions);
        let mut top_frames = None;
        let mut hashes = Hashes::of(&self.page);
        let mut data = Vec::new();
        self.page.visit_with_rest(|_, ordinals| {
            let row = units.row_of(Wanted {
                ordinals,
                touch: touch_transaction,
            })?;
            let (number, index) = (row.block, row.index);
            let corrupt = |corrupt| QueryError::Corrupt(corrupt, Table::Transactions.name());
            let slice = TransactionSlice::decode(row.bytes()).map_err(corrupt)?;
            let block = view.block(number)?;
            let success = match slice.status {
                Some(success) => success,
                // Before Byzantium only the top frame tells.
                None => {
                    let frames = top_frames.get_or_insert_with(|| TopFrames::new(&view));
                    let top = frames.top_call(number, index)?;
                    top.success().ok_or(QueryError::NeedsTraces)?
                }
            };
            let (gas_price, fee) = price_and_fee(&view, number, &slice)?;
            let transaction = ListedTransaction {
                hash: hashes.next(&view)?,
                block: BlockId {
                    number,
                    hash: block.hash,
                },
                timestamp: block.timestamp,
                transaction_index: index as u32,
                from: slice.from,
                to: slice.to,
                contract_address: slice.created().filter(|_| success),
                value: slice.value,
                nonce: slice.nonce,
                kind: slice.kind,
                gas: slice.gas,
                gas_used: slice.fees.gas_used,
                cumulative_gas_used: slice.cumulative_gas_used,
                gas_price,
                max_fee_per_gas: slice.fees.max_fee_per_gas,
                max_priority_fee_per_gas: slice.fees.max_priority_fee_per_gas,
                fee,
                success,
                input: slice.input.bytes(&mut data).map_err(corrupt)?,
            };
            Ok(visitor(&transaction))
        })
    }
}

/// Reads what a transaction calls for.
fn touch_transaction(view: &View, ordinal: u64, row: UnitRow<'_>) {
    let _ = black_box((view.block(row.block), view.transaction_hash(ordinal)));
}

/// The price paid per gas; the header is looked at where the receipt does not say.
pub(super) fn price(view: &View, block: u64, fees: &FeeRow) -> Result<u128, QueryError> {
    let by_market = fees.effective_gas_price.is_none() && fees.max_fee_per_gas.is_some();
    let base_fee = if by_market {
        super::blocks::block_row(view, block)?.header.base_fee_per_gas
    } else {
        None
    };
    Ok(fees.price(base_fee))
}

/// The price paid per gas, and what was paid in all: for gas, for blobs (EIP-4844), and what a roll-up charges for
/// the layer below; nothing of what was paid in a token. The header is looked at where the receipt does not say.
fn price_and_fee(view: &View, block: u64, slice: &TransactionSlice<'_>) -> Result<(u128, U256), QueryError> {
    let fees = &slice.fees;
    let by_market = fees.effective_gas_price.is_none() && fees.max_fee_per_gas.is_some();
    let by_excess = fees.blob_gas_used > 0 && fees.blob_gas_price.is_none();
    let header = if by_market || by_excess {
        Some(super::blocks::block_row(view, block)?.header)
    } else {
        None
    };
    let price = fees.price(header.as_ref().and_then(|header| header.base_fee_per_gas));
    if fees.in_token {
        return Ok((price, U256::ZERO));
    }
    let product = |gas: u64, price: U256| U256::from(gas).saturating_mul(price);
    let blobs = match (fees.blob_gas_used, fees.blob_gas_price, &header) {
        (0, ..) => U256::ZERO,
        (gas, Some(price), _) => product(gas, U256::from(price)),
        (gas, None, header) => product(gas, header.as_ref().and_then(blob_price).unwrap_or_default()),
    };
    let fee = product(fees.gas_used, U256::from(price))
        .saturating_add(blobs)
        .saturating_add(fees.below);
    Ok((price, fee))
}
