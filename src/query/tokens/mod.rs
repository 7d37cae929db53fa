//! Tokens: what the ledger of their logs says, and what is known of them from elsewhere.

mod audit;
mod by_ledger;
mod facts;
mod foreign;
mod held_rows;
mod holders;
mod holdings;
mod ids;
mod multi_holdings;
mod observed;
mod places;
mod transfers;

pub use audit::{LedgerBalance, Touch};
pub use facts::{Exactness, NativeDiffers, NoTokenFacts, TokenFacts, Verdict, ZeroAddress};
pub use holders::HolderPage;
pub use holdings::{Held, HoldingPage};
pub use ids::NftPage;
pub use multi_holdings::{HeldId, HeldIdPage};
pub use observed::{ObservedFacts, is_on, is_told_on, stands};
pub use places::{HeldIdCursor, HolderCursor, IdCursor, KeyCursor, KeyPart, TokenCursor};
pub use transfers::{Standard, TransferPage};

use super::{Created, QueryError, Reader};
use crate::codec::keys::{PostingKind, Term};
use crate::codec::tokens::{DOUBTS, MIXED, TokenState, WRAPPED};
use crate::model::{Address, TokenKind, TokenMetadata, TokenProject, U256};
use crate::store::{Direction, KnownToken, PostingCursor};

/// A token of one snapshot.
#[derive(Clone, Debug)]
pub struct Token {
    /// Its contract.
    pub address: Address,
    /// What is held of it.
    pub verdict: Verdict,
    id: u32,
    state: TokenState,
    /// Its contract came to be in the stored blocks, so that they hold all of its logs.
    whole: bool,
}

impl Token {
    /// The standard of its first transfer.
    #[must_use]
    pub const fn kind(&self) -> TokenKind {
        self.state.kind
    }

    /// Whether it is a coin's, which deposits and withdrawals move beside transfers.
    #[must_use]
    pub const fn is_wrapped(&self) -> bool {
        self.state.flags & WRAPPED != 0
    }

    /// Whether the ledger itself says that it cannot be what the contract says.
    #[must_use]
    pub const fn is_flagged(&self) -> bool {
        self.state.flags & DOUBTS != 0
    }

    /// Whether it moved by another standard than its own, too.
    #[must_use]
    pub const fn is_mixed(&self) -> bool {
        self.state.flags & MIXED != 0
    }

    /// Whether the stored blocks hold all of its logs. Else lists of it would be short, and its ledger is not exact.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether the ledger answers for it; else the contract must be asked.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.verdict.exactness == Exactness::Exact
    }

    /// Whether the ledger alone cannot be right about it: it says so itself, or lacks some of its logs.
    #[must_use]
    pub const fn is_doubted(&self) -> bool {
        self.is_flagged() || !self.whole
    }

    /// What was minted and what was sent to the zero address, by the ledger, now.
    #[must_use]
    pub const fn sums(&self) -> (U256, U256) {
        (self.state.minted, self.state.to_zero)
    }

    /// The supply by the ledger, now.
    #[must_use]
    pub fn supply(&self) -> U256 {
        self.verdict.zero.supply(self.state.minted, self.state.to_zero)
    }
}

/// What the chain tells of a token besides its balances (T5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenStory {
    /// Transfers of whatever standard; those of an ERC-1155 batch count each. Of a contract of several standards with many of them it is
    /// about as many.
    pub transfers: u64,
    /// How its contract came to be.
    pub created: Created,
}

impl Reader {
    /// The token at an address; `None` where none emitted a transfer.
    pub fn token(&self, address: &Address) -> Result<Option<Token>, QueryError> {
        let known = self.view.known_token(address, || {
            let Some(id) = self.view.token(address)? else {
                return Ok(None);
            };
            let state = self.view.token_state(id)?;
            let whole = self.holds_all_of(address)?;
            Ok::<_, QueryError>(Some(KnownToken { id, state, whole }))
        })?;
        let Some(KnownToken { id, state, whole }) = known else {
            return Ok(None);
        };
        if state.kind == TokenKind::Unknown {
            return Ok(None);
        }
        let doubted = state.flags & DOUBTS != 0 || !whole;
        let mut verdict = self.token_facts.verdict(address, doubted)?;
        if verdict.exactness == Exactness::Exact
            && verdict.zero == ZeroAddress::Untold
            && !state.to_zero.is_zero()
        {
            // Compared before anything reached the zero address: which of the two it does is not known yet.
            verdict.exactness = Exactness::Unjudged;
        }
        let mut token = Token {
            address: *address,
            verdict,
            id,
            state,
            whole,
        };
        if state.kind == TokenKind::Erc1155
            && !token.is_exact()
            && self.standard_of_balances(&token)? == TokenKind::Erc1155
        {
            // It has no balance and no supply as a whole that its contract could be asked for: the ledger answers, or nobody.
            token.verdict.exactness = Exactness::Exact;
        }
        Ok(Some(token))
    }

    /// What was minted of a token and what was sent to the zero address up to a block, by the ledger.
    pub fn token_sums(&self, token: &Token, block: u64) -> Result<(U256, U256), QueryError> {
        Ok(self.view.token_supply(token.id, block)?)
    }

    /// The supply of a token after a block, by the ledger (T8); 0 before its first transfer.
    pub fn token_supply(&self, token: &Token, block: u64) -> Result<U256, QueryError> {
        let (minted, to_zero) = self.token_sums(token, block)?;
        Ok(token.verdict.zero.supply(minted, to_zero))
    }

    /// What an account holds of a token now, by the ledger (T2).
    pub fn token_balance(&self, token: &Token, holder: &Address) -> Result<U256, QueryError> {
        if holder.is_zero() {
            return Ok(token.verdict.zero.zero_holds(token.state.to_zero));
        }
        self.holding(token, holder, token.kind())
    }

    /// What an account holds of a token by a standard, by the ledger, now; the zero address has no such row.
    fn holding(&self, token: &Token, holder: &Address, kind: TokenKind) -> Result<U256, QueryError> {
        if holder.is_zero() {
            return Ok(U256::ZERO);
        }
        let under = match kind == token.kind() {
            true => token.state.held_under(),
            false => kind,
        };
        Ok(self.view.holding(holder, under, &token.address)?)
    }

    /// What an account held of a token after a block, by the ledger (T9).
    pub fn token_balance_at(&self, token: &Token, holder: &Address, block: u64) -> Result<U256, QueryError> {
        if holder.is_zero() {
            let (_, to_zero) = self.token_sums(token, block)?;
            return Ok(token.verdict.zero.zero_holds(to_zero));
        }
        Ok(self.view.token_balance(token.id, holder, block)?)
    }

    /// The supply of a token, by what its contract said last where the ledger is not right about it; `None` where the ledger cannot
    /// tell it and nobody else did. The second says whether it is the ledger's word.
    pub fn token_supply_known(&self, token: &Token) -> Result<(Option<U256>, bool), QueryError> {
        if !token.is_exact()
            && let Some(supply) = self.token_facts.supply(&token.address)?
        {
            return Ok((Some(supply), false));
        }
        Ok((token.supply_told(), true))
    }

    /// What a token's contract says of itself; empty while it was not asked.
    pub fn token_metadata(&self, token: &Address) -> Result<TokenMetadata, QueryError> {
        Ok(self.token_metadata_told(token)?.unwrap_or_default())
    }

    /// The same; `None` while it was not asked.
    pub fn token_metadata_told(&self, token: &Address) -> Result<Option<TokenMetadata>, QueryError> {
        Ok(self.token_facts.metadata(token)?)
    }

    /// What imported lists of tokens tell of a token; empty where they tell nothing.
    pub fn token_project(&self, token: &Address) -> Result<TokenProject, QueryError> {
        let told = match self.imported() {
            Some(imported) => imported.token(token)?,
            None => None,
        };
        Ok(told.unwrap_or_default())
    }

    fn list_count(&self, term: Term) -> Result<u64, QueryError> {
        Ok(PostingCursor::open(&self.view, term, Direction::Forward)?.count())
    }

    /// The standard that `balanceOf` of a token speaks of. Of a contract of several it is ERC-20 where it moves by that, but for one
    /// of ids that tells no decimals, as ERC-721 has none: a single log that looks like another standard's changes nothing there.
    pub fn standard_of_balances(&self, token: &Token) -> Result<TokenKind, QueryError> {
        let own = token.kind();
        if own == TokenKind::Erc20 || !token.is_mixed() {
            return Ok(own);
        }
        let told = self.token_metadata_told(&token.address)?;
        let counts_coins = told.map_or(own != TokenKind::Erc721, |told| told.decimals.is_some());
        if counts_coins && self.view.moved_by(token.id, TokenKind::Erc20)? {
            return Ok(TokenKind::Erc20);
        }
        if own == TokenKind::Erc1155 && self.view.moved_by(token.id, TokenKind::Erc721)? {
            return Ok(TokenKind::Erc721);
        }
        Ok(own)
    }

    /// What an account held after a block by events, of what `balanceOf` speaks of; now, where that is another standard than
    /// the token's own.
    pub fn balance_by_events(&self, token: &Token, holder: &Address, block: u64) -> Result<U256, QueryError> {
        match self.standard_of_balances(token)? {
            own if own == token.kind() => self.token_balance_at(token, holder, block),
            other => self.holding(token, holder, other),
        }
    }

    /// What the chain tells of a token besides its balances (T5).
    pub fn token_story(&self, token: &Token) -> Result<TokenStory, QueryError> {
        let kind = match token.kind() {
            TokenKind::Erc1155 => PostingKind::TokenMultiTransfers,
            _ => PostingKind::TokenTransfers,
        };
        let own = self.list_count(Term::token(kind, token.id))?;
        let others = match token.is_mixed() {
            false => 0,
            true => foreign::count(&self.view, &token.address, token.kind(), own)?,
        };
        Ok(TokenStory {
            transfers: own + others,
            created: self.contract_creation(&token.address)?,
        })
    }

    /// Whether there was no such token yet after a block: it lies before the creation of the contract, and before the first
    /// transfer (an earlier one than the creation of a contract that was made again). `None` before that transfer where the creation
    /// is not known: a contract of the genesis block, or of another contract in a store without traces.
    pub fn predates(&self, token: &Token, block: u64) -> Result<Option<bool>, QueryError> {
        let first = token.state.first_transfer.unwrap_or(0);
        if block >= self.view.block_of_log(first)?.0 {
            return Ok(Some(false));
        }
        Ok(match self.contract_creation(&token.address)? {
            Created::Known(creation) => Some(block < creation.block),
            Created::Unknown | Created::NeedsTraces => None,
        })
    }

    /// Whether an account sent or received a token, by the transfers of the store's blocks (A1).
    pub fn took_part_in_transfers(&self, account: &Address) -> Result<bool, QueryError> {
        for kind in [
            PostingKind::AccountErc20,
            PostingKind::AccountErc721,
            PostingKind::AccountErc1155,
        ] {
            if self.list_count(Term::account(kind, account))? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
