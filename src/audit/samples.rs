//! What ledgers say of random accounts, holders and tokens at random blocks: to be held against the node.

use super::Audit;
use crate::codec::tokens;
use crate::model::{Address, TokenKind, U256};
use crate::query::QueryError;
use crate::store::Table;

/// A question that a ledger and the node both answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// `eth_getBalance`.
    Native {
        /// Whose.
        account: Address,
    },
    /// `balanceOf`.
    Token {
        /// The token's contract.
        token: Address,
        /// Whose.
        holder: Address,
    },
    /// `totalSupply`.
    Supply {
        /// The token's contract.
        token: Address,
    },
}

/// A question, and what the ledger answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What is asked.
    pub question: Question,
    /// After which block.
    pub block: u64,
    /// The ledger's answer, in smallest units.
    pub stored: U256,
}

/// Draws samples, in thirds: accounts, holders of tokens, supplies. A ledger that is not kept, or tokens that are not
/// exact, give none.
#[derive(Debug)]
pub struct Sampler<'a> {
    audit: &'a Audit<'a>,
    random: fastrand::Rng,
}

/// Draws that may miss in a row: a token that is not exact is no sample.
const MISSES_MAX: u32 = 64;

impl<'a> Sampler<'a> {
    /// Draws by `seed` from what is audited.
    #[must_use]
    pub fn new(audit: &'a Audit<'a>, seed: u64) -> Self {
        Self {
            audit,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// The next sample; `None` where the ledgers have nothing to ask for.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub fn draw(&mut self) -> Result<Option<Sample>, QueryError> {
        for _ in 0..MISSES_MAX {
            let range = self.audit.range;
            let block = self.random.u64(range.first()..=range.last());
            let drawn = match self.random.u8(..3) {
                0 => self.native(block)?,
                1 => self.holder(block)?,
                _ => self.supply(block)?,
            };
            if drawn.is_some() {
                return Ok(drawn);
            }
        }
        Ok(None)
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.random.u8(..))
    }

    fn native(&mut self, block: u64) -> Result<Option<Sample>, QueryError> {
        let near = Address::from(self.bytes::<20>());
        let found = self.audit.reader.some_native_balance(&near, block)?;
        Ok(found.map(|(account, stored)| Sample {
            question: Question::Native { account },
            block,
            stored,
        }))
    }

    fn holder(&mut self, block: u64) -> Result<Option<Sample>, QueryError> {
        let view = &self.audit.view;
        let tokens = view.checkpoint().tokens;
        if tokens == 0 {
            return Ok(None);
        }
        let id = self.random.u32(..tokens);
        let near = tokens::balance(id, &Address::from(self.bytes::<20>()), 0);
        let mut scan = view.scan_all(Table::TokenBalances)?;
        let Some(key) = scan.seek(&near)?.map(|(key, _)| key.to_vec()) else {
            return Ok(None);
        };
        let Some((id, holder)) = key.split_first_chunk::<4>().and_then(|(id, rest)| {
            Some((u32::from_be_bytes(*id), Address::from(*rest.first_chunk::<20>()?)))
        }) else {
            return Ok(None);
        };
        let Some(token) = self.exact(id)? else {
            return Ok(None);
        };
        let stored = self.audit.reader.token_balance_at(&token, &holder, block)?;
        let question = Question::Token {
            token: token.address,
            holder,
        };
        Ok(Some(Sample {
            question,
            block,
            stored,
        }))
    }

    fn supply(&mut self, block: u64) -> Result<Option<Sample>, QueryError> {
        let tokens = self.audit.view.checkpoint().tokens;
        if tokens == 0 {
            return Ok(None);
        }
        let id = self.random.u32(..tokens);
        let Some(token) = self.exact(id)? else {
            return Ok(None);
        };
        let stored = self.audit.reader.token_supply(&token, block)?;
        let question = Question::Supply { token: token.address };
        Ok(Some(Sample {
            question,
            block,
            stored,
        }))
    }

    /// A token whose contract answers `balanceOf(address)` and whose ledger is held to be exact.
    fn exact(&self, id: u32) -> Result<Option<crate::query::Token>, QueryError> {
        let token = self.audit.reader.token(&self.audit.view.token_address(id)?)?;
        Ok(token
            .filter(|token| token.is_exact() && matches!(token.kind(), TokenKind::Erc20 | TokenKind::Erc721)))
    }
}
