//! What imported lists of tokens tell.

use super::{ImportWriter, Imported, NAME};
use crate::codec::imported::tokens::{decode_token, token_key};
use crate::model::{Address, TokenProject};
use crate::store::StoreError;

impl Imported {
    /// What is told of a token.
    pub fn token(&self, token: &Address) -> Result<Option<TokenProject>, StoreError> {
        self.row(&token_key(token), decode_token)
    }
}

impl ImportWriter {
    /// What is told of a token so far.
    pub fn token(&self, token: &Address) -> Result<Option<TokenProject>, StoreError> {
        let key = token_key(token);
        let row = self.get(&key)?;
        row.map(|row| decode_token(&row))
            .transpose()
            .map_err(StoreError::corrupt(NAME, &key))
    }
}
