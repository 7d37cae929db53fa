//! What transactions paid for gas, told one after the other.

use std::sync::Arc;

use super::accounts::price;
use super::{QueryError, Reader};
use crate::codec::transaction_row::TransactionSlice;
use crate::store::{Table, Units, View};

/// What a transaction paid for gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GasPaid {
    /// The price per gas, wei.
    pub price: u128,
    /// Gas used.
    pub used: u64,
}

/// Tells what transactions paid; those of one after the other are read once.
#[derive(Debug)]
pub struct GasTeller {
    view: Arc<View>,
    units: Option<Units<'static>>,
    last: Option<(u64, GasPaid)>,
}

impl GasTeller {
    /// Tells of the transactions that `reader` sees.
    #[must_use]
    pub fn new(reader: &Reader) -> Self {
        Self {
            view: Arc::clone(&reader.view),
            units: None,
            last: None,
        }
    }

    /// The same transactions, told by itself: on another thread.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            view: Arc::clone(&self.view),
            units: None,
            last: None,
        }
    }

    /// What the transaction at `index` of block `number` paid.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn of(&mut self, number: u64, index: u32) -> Result<GasPaid, QueryError> {
        let ordinal = self.view.block(number)?.first_transaction + u64::from(index);
        if let Some((_, paid)) = self.last.filter(|(last, _)| *last == ordinal) {
            return Ok(paid);
        }
        let units = Units::opened(&mut self.units, &self.view, Table::Transactions);
        let row = units.row(ordinal)?;
        let slice = TransactionSlice::decode(row.bytes())
            .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Transactions.name()))?;
        let paid = GasPaid {
            price: price(&self.view, number, &slice.fees)?,
            used: slice.fees.gas_used,
        };
        self.last = Some((ordinal, paid));
        Ok(paid)
    }
}
