//! Who took part in transfers of a token: the keys of its lists by account.

use super::{Scan, StoreError, Table, View};
use crate::codec::keys::{PostingKind, Term};
use crate::model::{Address, TokenKind};

/// The accounts that took part in transfers of a token by a standard, by address.
#[derive(Debug)]
pub struct Participants<'v> {
    /// Each list has an open piece.
    lists: Scan<'v>,
    kind: PostingKind,
    token: u32,
}

impl View {
    /// The accounts that took part in transfers of a token by a standard.
    pub fn participants(&self, token: u32, kind: TokenKind) -> Result<Participants<'_>, StoreError> {
        let kind = match kind {
            TokenKind::Erc721 => PostingKind::TokenAccountErc721,
            TokenKind::Erc1155 => PostingKind::TokenAccountErc1155,
            TokenKind::Erc20 | TokenKind::Unknown => PostingKind::TokenAccountErc20,
        };
        let list = |account: &Address| Term::token_account(kind, token, account).piece_key();
        let mut end = list(&Address::repeat_byte(0xff));
        end.push(0);
        let lists = self.scan(Table::OpenPostings, list(&Address::ZERO), end)?;
        Ok(Participants { lists, kind, token })
    }

    /// Whether a token ever moved by a standard.
    pub fn moved_by(&self, token: u32, kind: TokenKind) -> Result<bool, StoreError> {
        Ok(self
            .participants(token, kind)?
            .at_or_after(&Address::ZERO)?
            .is_some())
    }
}

impl Participants<'_> {
    /// The first of them at or after an address.
    pub fn at_or_after(&mut self, account: &Address) -> Result<Option<Address>, StoreError> {
        let key = Term::token_account(self.kind, self.token, account).piece_key();
        let found = self.lists.seek(&key)?;
        Ok(found
            .and_then(|(key, _)| key.get(5..)?.first_chunk::<20>())
            .map(|account| Address::from(*account)))
    }
}
