//! What ledgers say of accounts, holders and tokens after blocks: to be held against the node.
//!
//! No way of drawing is fair alone. A random address finds the next account after it, and so hardly ever one of a
//! cluster; who takes part in what happens is drawn as often as he does; and where there are few, all of them are drawn.

use super::Audit;
use super::draws::{self, Census, Parties, Walk};
use crate::model::{Address, BlockRange, U256};
use crate::query::{Balance, QueryError, Token};

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
    /// Whether the service answers by the ledger. Of a token without a verdict it asks the node until there is one.
    pub judged: bool,
}

/// Draws samples, in thirds: accounts, holders of tokens, supplies. A ledger that is not kept, or tokens that are not
/// exact, give none.
#[derive(Debug)]
pub struct Sampler<'a> {
    audit: &'a Audit<'a>,
    random: fastrand::Rng,
    /// Samples in all.
    count: usize,
    /// Blocks that the ledger of native balances speaks of.
    natives: Option<BlockRange>,
    accounts: Walk<Address>,
    tokens: Census,
    holders: Walk<(u32, Address)>,
    parties: Parties<'a>,
}

/// Draws that may miss in a row: an account of which nothing is told is no sample.
const MISSES_MAX: u32 = 64;
/// All are gone through first where they are at most this part of the samples: less than the third that they get.
const WALKED_FIRST: usize = 4;
/// Of so many samples of tokens one is of a token without a verdict, while others have one.
const UNJUDGED: u8 = 4;

/// How somebody is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// At or after a random address.
    Seek,
    /// A party of what happened.
    Party,
    /// The next one of all.
    Walk,
}

impl<'a> Sampler<'a> {
    /// Draws some `count` samples by `seed` from what is audited.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub fn new(audit: &'a Audit<'a>, seed: u64, count: usize) -> Result<Self, QueryError> {
        let mut random = fastrand::Rng::with_seed(seed);
        let natives = audit.native_blocks();
        let accounts = match natives {
            Some(_) => draws::accounts(audit, count)?,
            None => Vec::new(),
        };
        let tokens = Census::of(audit)?;
        let ids: Vec<u32> = [tokens.exact.as_slice(), &tokens.unjudged].concat();
        let holders = draws::holders(audit, &ids, count)?;
        Ok(Self {
            audit,
            count,
            natives,
            accounts: Walk::of(accounts, &mut random),
            tokens,
            holders: Walk::of(holders, &mut random),
            parties: Parties::new(audit)?,
            random,
        })
    }

    /// The next sample; `None` where the ledgers have nothing to ask for.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub fn draw(&mut self) -> Result<Option<Sample>, QueryError> {
        let kinds = match (self.natives, self.tokens.is_empty()) {
            (Some(_), false) => 0..3,
            (Some(_), true) => 0..1,
            (None, false) => 1..3,
            (None, true) => return Ok(None),
        };
        for _ in 0..MISSES_MAX {
            let drawn = match self.random.u8(kinds.clone()) {
                0 => self.native()?,
                1 => self.holder()?,
                _ => self.supply()?,
            };
            if drawn.is_some() {
                return Ok(drawn);
            }
        }
        Ok(None)
    }

    /// Why no balance or supply of a token is asked for, or which tokens are left out; `None` where nothing is to be said.
    #[must_use]
    pub fn token_silence(&self) -> Option<String> {
        let Census {
            exact,
            unjudged,
            inexact,
            older,
            multi,
        } = &self.tokens;
        if !exact.is_empty() && *older == 0 {
            return None;
        }
        let unjudged = unjudged.len() as u64;
        let parts = [
            (
                *older,
                "began before the store, so that their ledgers are not kept",
            ),
            (*inexact, "are known to differ from their ledgers"),
            (unjudged, "are not judged yet"),
            (*multi, "are ERC-1155, whose balances are of ids"),
        ];
        // Where ledgers are asked, only what the store lacks is worth a word.
        let shown = if exact.is_empty() { 4 } else { 1 };
        let parts = parts.iter().take(shown).filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        Some(if parts.is_empty() {
            "the store has no tokens".to_owned()
        } else {
            format!("tokens left out: {}", parts.join("; "))
        })
    }

    fn address(&mut self) -> Address {
        Address::from(std::array::from_fn(|_| self.random.u8(..)))
    }

    fn way(&mut self, owed: bool) -> Way {
        match self.random.u8(..3) {
            _ if owed => Way::Walk,
            0 => Way::Seek,
            1 => Way::Party,
            _ => Way::Walk,
        }
    }

    /// A block to ask about: half of them any, half where it matters: after a change that `own` finds near a block, before
    /// one, and the last.
    fn block(
        &mut self,
        range: BlockRange,
        own: impl FnOnce(&mut fastrand::Rng, u64) -> Result<Option<u64>, QueryError>,
    ) -> Result<u64, QueryError> {
        let any = self.random.u64(range.first()..=range.last());
        let block = match self.random.u8(..6) {
            0..=2 => any,
            3 => range.last(),
            which => {
                let changed = own(&mut self.random, any)?.unwrap_or(any);
                if which == 4 {
                    changed
                } else {
                    changed.saturating_sub(1)
                }
            }
        };
        Ok(block.clamp(range.first(), range.last()))
    }

    fn native(&mut self) -> Result<Option<Sample>, QueryError> {
        let Some(range) = self.natives else {
            return Ok(None);
        };
        let audit = self.audit;
        let owed = self.accounts.is_owed(self.count / WALKED_FIRST);
        let account = match self.way(owed) {
            Way::Seek => None,
            Way::Party => self.parties.account(&mut self.random)?,
            Way::Walk => self.accounts.next(),
        };
        let account = match account {
            Some(account) => account,
            None => {
                let near = self.address();
                match audit.reader.some_native_balance(&near, range.last())? {
                    Some((account, _)) => account,
                    None => return Ok(None),
                }
            }
        };
        let block = self.block(range, |random, near| {
            draws::own_block(audit, random, &account, near)
        })?;
        Ok(match audit.reader.balance(&account, block)? {
            Balance::Exact(stored) => Some(Sample {
                question: Question::Native { account },
                block,
                stored,
                judged: true,
            }),
            Balance::Unmet | Balance::AskNode => None,
        })
    }

    fn holder(&mut self) -> Result<Option<Sample>, QueryError> {
        let (audit, range) = (self.audit, self.audit.range);
        let owed = self.holders.is_owed(self.count / WALKED_FIRST);
        let drawn = match self.way(owed) {
            Way::Seek => None,
            Way::Party => self.parties.holder(&mut self.random)?,
            Way::Walk => match self.holders.next() {
                Some((id, holder)) => Some((audit.view.token_address(id)?, holder)),
                None => None,
            },
        };
        let found = match drawn {
            Some((token, holder)) => draws::asked(audit, &token)?.map(|token| (token, holder)),
            None => match self.token()? {
                Some(token) => {
                    let near = self.address();
                    let found = audit.reader.ledger_some_balance(&token, &near, 0)?;
                    found.map(|found| (token, found.holder))
                }
                None => None,
            },
        };
        let Some((token, holder)) = found else {
            return Ok(None);
        };
        let block = self.block(range, |_, near| {
            let found = audit.reader.ledger_some_balance(&token, &holder, near)?;
            let own = found.filter(|found| found.holder == holder);
            Ok(own.map(|found| found.block))
        })?;
        Ok(Some(Sample {
            question: Question::Token {
                token: token.address,
                holder,
            },
            block,
            stored: audit.reader.token_balance_at(&token, &holder, block)?,
            judged: token.is_exact(),
        }))
    }

    fn supply(&mut self) -> Result<Option<Sample>, QueryError> {
        let Some(token) = self.token()? else {
            return Ok(None);
        };
        let block = self.block(self.audit.range, |_, _| Ok(None))?;
        Ok(Some(Sample {
            question: Question::Supply { token: token.address },
            block,
            stored: self.audit.reader.token_supply(&token, block)?,
            judged: token.is_exact(),
        }))
    }

    /// A token that may be asked about.
    fn token(&mut self) -> Result<Option<Token>, QueryError> {
        let Census { exact, unjudged, .. } = &self.tokens;
        let others = exact.is_empty() || self.random.u8(..UNJUDGED) == 0;
        let pool = if others && !unjudged.is_empty() {
            unjudged
        } else {
            exact
        };
        match self.random.choice(pool) {
            Some(&id) => draws::asked(self.audit, &self.audit.view.token_address(id)?),
            None => Ok(None),
        }
    }
}

impl Audit<'_> {
    /// Blocks, of those that are audited, that the ledger of native balances answers for.
    fn native_blocks(&self) -> Option<BlockRange> {
        if self.native_silence().is_some() {
            return None;
        }
        let last = self.view.checkpoint().next_traced.checked_sub(1)?;
        BlockRange::new(self.range.first(), self.range.last().min(last))
    }

    /// Why no native balance is asked for: the ledger is known to be wrong, or is not kept. Whoever answers by it then asks
    /// the node.
    #[must_use]
    pub fn native_silence(&self) -> Option<String> {
        if let Some(differs) = self.native_differs() {
            return Some(differs);
        }
        if let Some(fault) = self.reader.native_fault() {
            let (block, why) = (fault.block, fault.reason.sentence());
            return Some(format!(
                "the ledger is not kept since block {block}: {why}; {BY_NODE}"
            ));
        }
        let untraced = !self.is_traced(self.range.first());
        untraced.then(|| format!("the frames of these blocks are not stored; {BY_NODE}"))
    }

    /// What a node showed to be wrong with the ledger of native balances, if anything.
    #[must_use]
    pub fn native_differs(&self) -> Option<String> {
        let differs = self.reader.native_differs()?;
        let (block, reason) = (differs.block, differs.reason);
        Some(format!(
            "the ledger is known to differ from the node, found after block {block}: {reason}; {BY_NODE}"
        ))
    }
}

/// What the service does about a ledger of native balances that does not answer.
const BY_NODE: &str = "the service answers from the node (and refuses without one), so its answers are right";
