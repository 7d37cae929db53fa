//! The token ledger as one snapshot has it.

use crate::codec::amount::read_amount;
use crate::codec::bytes::Reader;
use crate::codec::tokens::{self, TokenState};
use crate::model::{Address, TokenKind, U256};
use crate::store::{FlatArray, Scan, StoreError, Table, View};

impl View {
    /// The id of a token; `None` for an address that emitted none of its logs.
    pub fn token(&self, address: &Address) -> Result<Option<u32>, StoreError> {
        self.id(Table::Tokens, address.as_slice())
    }

    /// A token as it is now.
    pub fn token_state(&self, token: u32) -> Result<TokenState, StoreError> {
        let key = tokens::token(token);
        let name = Table::TokenStates.name();
        let value = self.get(Table::TokenStates, &key)?.ok_or(StoreError::Missing {
            table: name,
            what: "token",
            number: u64::from(token),
        })?;
        TokenState::decode(&value).map_err(StoreError::corrupt(name, &key))
    }

    /// The rows of a token in a table whose keys begin with its id.
    pub fn scan_token(&self, table: Table, token: u32) -> Result<Scan<'_>, StoreError> {
        let end = match token.checked_add(1) {
            Some(next) => tokens::token(next).to_vec(),
            None => vec![0xff; 5],
        };
        self.scan(table, tokens::token(token).to_vec(), end)
    }

    /// What was minted and what was sent to the zero address up to a block.
    pub fn token_supply(&self, token: u32, block: u64) -> Result<(U256, U256), StoreError> {
        let (from, to) = (tokens::supply(token, 0), tokens::supply(token, block));
        let last = self.last_row(Table::TokenSupply, &from, &to, |value| {
            tokens::read_supply(&mut Reader::new(value, "token supply"))
        });
        Ok(last?.unwrap_or_default())
    }

    /// What a holder had after a block.
    pub fn token_balance(&self, token: u32, holder: &Address, block: u64) -> Result<U256, StoreError> {
        let (from, to) = (
            tokens::balance(token, holder, 0),
            tokens::balance(token, holder, block),
        );
        let last = self.last_row(Table::TokenBalances, &from, &to, read_amount);
        Ok(last?.unwrap_or_default())
    }

    /// What an account holds now of a token, where that stands under this kind.
    pub fn holding(&self, holder: &Address, kind: TokenKind, token: &Address) -> Result<U256, StoreError> {
        let key = tokens::holding(holder, kind, token);
        match self.get(Table::Holdings, &key)? {
            None => Ok(U256::ZERO),
            Some(value) => read_amount(&value).map_err(StoreError::corrupt(Table::Holdings.name(), &key)),
        }
    }

    /// The address of a token id.
    pub fn token_address(&self, token: u32) -> Result<Address, StoreError> {
        self.record(FlatArray::Tokens, "token", u64::from(token))
            .map(crate::store::flat::address)
    }

    /// Where an ERC-1155 transfer stands: the ordinal of its log, and its position there.
    pub fn multi_transfer(&self, ordinal: u64) -> Result<(u64, u32), StoreError> {
        let bytes = self.record(FlatArray::MultiTransfers, "ERC-1155 transfer", ordinal)?;
        let (log, rest) = bytes.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        let position = rest.first_chunk::<4>().unwrap_or(&[0; 4]);
        Ok((u64::from_be_bytes(*log), u32::from_be_bytes(*position)))
    }

    /// The first ERC-1155 transfer in the logs from `log` on.
    pub fn first_multi_transfer(&self, log: u64) -> Result<u64, StoreError> {
        let (mut low, mut high) = (0, self.checkpoint().multi_transfers);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.multi_transfer(middle)?.0 < log {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}
