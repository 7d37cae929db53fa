//! C3: who made a contract, how, and with which code.

use super::{QueryError, Reader};
use crate::codec::keys;
use crate::codec::value::{Creation, FrameRow};
use crate::model::{Address, B256, Bytes};
use crate::store::{Table, Units};

/// How a contract came to be: its latest creation (C3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractCreation {
    /// The account that sent the creating transaction.
    pub creator: Address,
    /// The contract that made it; `None` where the transaction itself did.
    pub factory: Option<Address>,
    /// Hash of the creating transaction.
    pub transaction_hash: B256,
    /// Its block.
    pub block: u64,
    /// Unix time of the block, seconds.
    pub timestamp: u64,
    /// Init code.
    pub init_code: Bytes,
}

/// What the store knows of a contract's creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// This is the latest.
    Known(ContractCreation),
    /// There is none in the store's blocks.
    Unknown,
    /// Frames that are not stored could tell of one.
    NeedsTraces,
}

impl Reader {
    /// Whether the stored blocks hold all that a contract ever did: they are the whole chain, or made it.
    pub(super) fn holds_all_of(&self, contract: &Address) -> Result<bool, QueryError> {
        if self.first_block() == 0 {
            return Ok(true);
        }
        let (from, to) = (
            keys::account_at(contract, 0),
            keys::account_at(contract, u64::MAX),
        );
        let mut scan = self.view.scan(Table::Creations, from.to_vec(), to.to_vec())?;
        Ok(scan.seek(&from)?.is_some())
    }

    /// The row of the latest creation of a contract, and its transaction's ordinal.
    pub(super) fn latest_creation(&self, contract: &Address) -> Result<Option<(u64, Creation)>, QueryError> {
        let (from, to) = (
            keys::account_at(contract, 0),
            keys::account_at(contract, u64::MAX),
        );
        let mut scan = self.view.scan(Table::Creations, from.to_vec(), to.to_vec())?;
        let Some((key, value)) = scan.seek_back(&to)? else {
            return Ok(None);
        };
        let corrupt = |corrupt| QueryError::Corrupt(corrupt, Table::Creations.name());
        let (_, ordinal) = keys::decode_account_at(key).map_err(corrupt)?;
        Ok(Some((ordinal, Creation::decode(value).map_err(corrupt)?)))
    }

    /// The latest creation of a contract.
    pub fn contract_creation(&self, contract: &Address) -> Result<Created, QueryError> {
        let Some((ordinal, creation)) = self.latest_creation(contract)? else {
            return Ok(if self.has_traces() {
                Created::Unknown
            } else {
                Created::NeedsTraces
            });
        };
        // What a factory made it can make again, after a self-destruct; an account's nonce never comes again.
        if creation.factory.is_some() && !self.has_traces() {
            return Ok(Created::NeedsTraces);
        }
        let mut units = Units::new(&self.view, Table::Transactions);
        let (block, row) = Self::transaction_row(&mut units, ordinal)?;
        let init_code = match creation.frame {
            None => row.transaction.input,
            Some(frame) => {
                let mut units = Units::new(&self.view, Table::Frames);
                let frame = FrameRow::decode(units.row(frame)?.bytes())
                    .and_then(FrameRow::nested)
                    .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Frames.name()))?;
                Bytes::copy_from_slice(frame.input)
            }
        };
        Ok(Created::Known(ContractCreation {
            creator: row.transaction.from,
            factory: creation.factory.map(Address::from),
            transaction_hash: self.view.transaction_hash(ordinal)?,
            block,
            timestamp: self.view.block(block)?.timestamp,
            init_code,
        }))
    }
}
