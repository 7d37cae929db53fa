//! Changes of balances that no event names: of tokens that rebase, are made again, or mint in silence.
//!
//! Holders of a token that is not exact are asked for when an event names them, and all of them in rounds, which are minutes apart.
//! Whoever changes all balances at once is called for it. So after a call, and after an event, the largest holders and the supply are
//! held against what was told of them before: where they changed by something else than the events in between say, a round over all
//! holders begins at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Tools;
use super::asking::Turn;
use super::perform::{Failure, Outcome};
use crate::model::{Address, U256};

/// The largest holders that are asked for.
const HOLDERS: usize = 3;
/// Tokens whose supply is remembered; beyond these all are forgotten, which puts a find off by one look.
const TOKENS_MAX: usize = 1 << 16;

/// A supply as it was told, and what the ledger had minted and sent to the zero address by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Supply {
    told: U256,
    minted: U256,
    to_zero: U256,
}

impl Supply {
    /// Whether events explain what became of it, by either convention of the zero address.
    fn leads_to(self, now: Self) -> bool {
        let grown = now.told.wrapping_sub(self.told);
        let minted = now.minted.wrapping_sub(self.minted);
        let burnt = now.to_zero.wrapping_sub(self.to_zero);
        grown == minted || grown == minted.wrapping_sub(burnt)
    }
}

/// What was told of supplies last, by token.
#[derive(Debug, Default)]
pub(super) struct Supplies(Mutex<HashMap<Address, Supply>>);

impl Supplies {
    /// Keeps what is told now; what was kept before.
    fn replace(&self, token: Address, now: Supply) -> Option<Supply> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if TOKENS_MAX <= kept.len() && !kept.contains_key(&token) {
            kept.clear();
        }
        kept.insert(token, now)
    }
}

impl Tools {
    /// Asks for the largest holders of a token that is not exact and for its supply; [`Outcome::Fell`] where they changed by
    /// something that events do not say.
    pub(super) async fn sample(self: &Arc<Self>, token: Address) -> Result<Outcome, Failure> {
        let is_exact = self.observed.verdict(&token).is_none_or(|verdict| verdict.exact);
        // Until the first round is over, it comes to all of them.
        if is_exact || !self.observed.refreshed(&token).whole {
            return Ok(Outcome::Done);
        }
        let largest = self
            .read(move |_, tools| {
                let holders = tools
                    .observed
                    .holders(&token, 0, HOLDERS)
                    .unwrap_or_default()
                    .into_iter();
                let told = holders.filter_map(|(holder, _)| {
                    let (balance, block) = tools.observed.balance(&token, &holder)?;
                    Some((holder, balance, block))
                });
                Ok(told.collect::<Vec<_>>())
            })
            .await?;
        let asked: Vec<_> = largest.iter().map(|(holder, ..)| *holder).collect();
        self.refresh(token, &asked, Turn::Ordinary).await?;
        let is_explained = self
            .read(move |reader, tools| {
                let Some(ledger) = reader.token(&token)? else {
                    return Ok(true);
                };
                for (holder, before, told_at) in largest {
                    let Some((now, asked_at)) = tools.observed.balance(&token, &holder) else {
                        continue;
                    };
                    let of = |block| reader.token_balance_at(&ledger, &holder, block);
                    let by_events = of(asked_at)?.wrapping_sub(of(told_at)?);
                    if now.wrapping_sub(before) != by_events {
                        return Ok(false);
                    }
                }
                let Some(told) = tools.observed.verdict(&token).and_then(|verdict| verdict.supply) else {
                    return Ok(true);
                };
                let (minted, to_zero) = ledger.sums();
                let now = Supply {
                    told,
                    minted,
                    to_zero,
                };
                let before = tools.supplies.replace(token, now);
                Ok(before.is_none_or(|before| before.leads_to(now)))
            })
            .await?;
        Ok(match is_explained {
            true => Outcome::Done,
            false => Outcome::Fell,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supplies_are_explained_by_either_convention() {
        let supply = |told: u64, minted: u64, to_zero: u64| Supply {
            told: U256::from(told),
            minted: U256::from(minted),
            to_zero: U256::from(to_zero),
        };
        let before = supply(900, 1000, 0);
        assert!(before.leads_to(before));
        assert!(before.leads_to(supply(950, 1050, 0)), "minted");
        assert!(before.leads_to(supply(880, 1000, 20)), "burnt");
        assert!(before.leads_to(supply(900, 1000, 20)), "held by the zero address");
        assert!(!before.leads_to(supply(901, 1000, 0)), "grew in silence");
        assert!(!before.leads_to(supply(899, 1050, 20)));
        let supplies = Supplies::default();
        let token = Address::repeat_byte(1);
        assert_eq!(supplies.replace(token, before), None);
        assert_eq!(supplies.replace(token, supply(1, 1, 0)), Some(before));
    }
}
