//! Changes of balances that no event names: of tokens that rebase, are made again, or mint in silence.
//!
//! Holders of a token that is not exact are asked for when an event names them, and all of them in rounds, which are minutes apart.
//! Whoever changes all balances at once is called for it. So when a round begins some holders and the supply are asked for, and held against what
//! is told after each call and each event, and when the round is over: where some of them changed and no event of the blocks in between
//! names them, another round over all holders begins. An event excuses whom it names, the supply, and one other that takes the fee, so that tokens
//! that take fees are not asked for ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Tools;
use super::perform::{Failure, Outcome};
use super::refresh::Refreshed;
use crate::model::{Address, BlockId, U256};
use crate::query::{QueryError, Reader, Token, is_on};
use crate::store::View;

/// The largest holders that are asked for, and others anywhere among all.
const LARGEST: usize = 3;
const OTHERS: usize = 2;
/// Tokens that are remembered; beyond these all are forgotten, which puts a find off until the next round.
const TOKENS_MAX: usize = 1 << 16;

/// What a contract told of some holders and of its supply after a block, and what its events came to by then.
#[derive(Clone, Debug)]
struct Sample {
    block: BlockId,
    holders: Vec<(Address, U256)>,
    supply: Option<U256>,
    sums: (U256, U256),
}

/// The last sample of a token, and the last one before it whose block was final by then.
#[derive(Clone, Debug)]
struct Kept {
    last: Sample,
    earlier: Option<Sample>,
}

/// What a round over the holders of a token began with.
#[derive(Clone, Debug)]
struct Begun {
    /// `None` where changes in silence cannot be told.
    kept: Option<Kept>,
    /// An earlier process began it.
    is_of_before: bool,
}

/// The last samples, by token.
#[derive(Debug, Default)]
pub(super) struct Samples(Mutex<HashMap<Address, Begun>>);

impl Samples {
    fn all(&self) -> MutexGuard<'_, HashMap<Address, Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a token's round began with one, or with none that could be.
    pub(super) fn has(&self, token: &Address) -> bool {
        self.all().contains_key(token)
    }

    /// Whether the round of a token that is over now was begun by an earlier process.
    pub(super) fn ends_one_of_before(&self, token: &Address) -> bool {
        let mut all = self.all();
        let begun = all.get_mut(token);
        begun.is_some_and(|begun| std::mem::take(&mut begun.is_of_before))
    }

    /// The last one of a token whose block is of the chain; the first is whether there is any.
    fn get(&self, view: &View, token: &Address) -> (bool, Option<Sample>) {
        let kept = self.all().get(token).and_then(|begun| begun.kept.clone());
        let has_any = kept.is_some();
        let all = kept.into_iter().flat_map(|kept| [Some(kept.last), kept.earlier]);
        let on_chain = all.flatten().find(|sample| is_on(view, sample.block));
        (has_any, on_chain)
    }

    /// Begins anew with a sample.
    fn begin(&self, token: Address, sample: Option<Sample>, is_of_before: bool) {
        let mut all = self.all();
        if TOKENS_MAX <= all.len() && !all.contains_key(&token) {
            all.clear();
        }
        let begun = Begun {
            kept: sample.map(|last| Kept { last, earlier: None }),
            is_of_before,
        };
        all.insert(token, begun);
    }

    /// Replaces the last one by a later one of the same holders.
    fn go_on(&self, view: &View, token: Address, last: Sample) {
        if let Some(kept) = self.all().get_mut(&token).and_then(|begun| begun.kept.as_mut()) {
            let before = std::mem::replace(&mut kept.last, last);
            let is_final = view.finalized().is_some_and(|last| before.block.number <= last);
            if is_final && is_on(view, before.block) {
                kept.earlier = Some(before);
            }
        }
    }
}

/// Whether what was minted and what was sent to the zero address explain how a supply changed, by either convention.
fn explains(told: [U256; 2], [before, now]: [(U256, U256); 2]) -> bool {
    let [told_before, told_now] = told;
    let grown = told_now.wrapping_sub(told_before);
    let minted = now.0.wrapping_sub(before.0);
    let burnt = now.1.wrapping_sub(before.1);
    grown == minted || grown == minted.wrapping_sub(burnt)
}

/// Whether something changed between two samples that no event in between names.
fn changed_in_silence(
    reader: &Reader,
    ledger: &Token,
    before: &Sample,
    now: &Sample,
) -> Result<bool, QueryError> {
    let blocks = (before.block.number, now.block.number);
    let is_quiet = !reader.moved_between(ledger, None, blocks)?;
    let mut changed = 0;
    for (holder, was) in &before.holders {
        let Some((_, is)) = now.holders.iter().find(|(other, _)| other == holder) else {
            continue;
        };
        if is == was || reader.moved_between(ledger, Some(holder), blocks)? {
            continue;
        }
        // Deposits and withdrawals of a wrapped coin are in no list of transfers.
        let of = |block| reader.token_balance_at(ledger, holder, block);
        if is.wrapping_sub(*was) != of(blocks.1)?.wrapping_sub(of(blocks.0)?) {
            changed += 1;
        }
    }
    Ok(match (before.supply, now.supply) {
        // One alone may be who takes the fee of each transfer.
        _ if !is_quiet => changed > 1,
        _ if changed > 0 => true,
        (Some(was), Some(is)) => !explains([was, is], [before.sums, now.sums]),
        _ => false,
    })
}

impl Tools {
    /// Whether changes in silence of a token can be told from others: not where the contract speaks of another standard than the
    /// ledger, nor where the ledger of a wrapped coin does not know what was deposited.
    fn is_sampled(ledger: &Token) -> bool {
        !(ledger.is_mixed() || ledger.is_wrapped() && ledger.is_doubted())
    }

    /// Asks for some holders of a token that is not exact and for its supply, to hold later ones against; of a round that begins, or that
    /// an earlier process began.
    pub(super) async fn begin_sample(
        self: &Arc<Self>,
        token: Address,
        is_of_before: bool,
        attempts: u32,
    ) -> Result<(), Failure> {
        let picked = self
            .read(move |reader, tools| {
                let Some(ledger) = reader.token(&token)?.filter(Self::is_sampled) else {
                    return Ok(None);
                };
                let told = tools.observed.holders(&token, 0, LARGEST).unwrap_or_default();
                let mut picked: Vec<_> = told.into_iter().map(|(holder, _)| holder).collect();
                if picked.is_empty() {
                    let largest = reader.ledger_largest(&ledger, LARGEST)?.into_iter();
                    picked.extend(largest.map(|one| one.holder));
                }
                let anywhere = Address::from(std::array::from_fn(|_| fastrand::u8(..)));
                picked.extend(reader.ledger_holders_ever(&ledger, Some(&anywhere), OTHERS)?);
                picked.retain(|holder| !holder.is_zero());
                picked.sort_unstable();
                picked.dedup();
                Ok(Some(picked))
            })
            .await?;
        let sample = match picked {
            Some(picked) => self.ask_sample(token, &picked, attempts).await?,
            None => None,
        };
        self.samples.begin(token, sample, is_of_before);
        Ok(())
    }

    /// Asks for the same holders of a token that is not exact, and for its supply, once more: [`Outcome::Fell`] where something changed that no
    /// event names.
    pub(super) async fn sample(self: &Arc<Self>, token: Address, attempts: u32) -> Result<Outcome, Failure> {
        let verdict = self.observed.verdict(&token);
        if verdict.is_none_or(|verdict| verdict.exact) {
            return Ok(Outcome::Done);
        }
        let before = match self.samples.get(&self.store.view(), &token) {
            (_, Some(before)) => before,
            // What orphaned blocks said tells nothing: whatever changed since then is found by looking at all.
            (true, None) => return Ok(Outcome::Fell),
            // No round has begun yet; one begins with a sample.
            (false, None) => return Ok(Outcome::Done),
        };
        let asked: Vec<_> = before.holders.iter().map(|(holder, _)| *holder).collect();
        let Some(now) = self.ask_sample(token, &asked, attempts).await? else {
            return Ok(Outcome::Done);
        };
        let kept = now.clone();
        let changed = self.read(move |reader, _| match reader.token(&token)? {
            Some(ledger) => changed_in_silence(reader, &ledger, &before, &now),
            None => Ok(false),
        });
        let changed = changed.await?;
        self.samples.go_on(&self.store.view(), token, kept);
        Ok(match changed {
            true => Outcome::Fell,
            false => Outcome::Done,
        })
    }

    async fn ask_sample(
        self: &Arc<Self>,
        token: Address,
        holders: &[Address],
        attempts: u32,
    ) -> Result<Option<Sample>, Failure> {
        let Some(Refreshed { block, supply, .. }) = self.refresh_all(token, holders, attempts).await? else {
            return Ok(None);
        };
        let asked = holders.to_vec();
        let sample = self.read(move |reader, tools| {
            let Some(ledger) = reader.token(&token)? else {
                return Ok(None);
            };
            let told = asked.into_iter().filter_map(|holder| {
                let (balance, told_after) = tools.observed.balance(&token, &holder)?;
                (told_after == block.number).then_some((holder, balance))
            });
            Ok(Some(Sample {
                block,
                holders: told.collect(),
                supply,
                sums: reader.token_sums(&ledger, block.number)?,
            }))
        });
        sample.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supplies_are_explained_by_either_convention() {
        let number = U256::from::<u64>;
        let explained = |told: u64, minted: u64, to_zero: u64| {
            let before = (number(1000), number(0));
            explains(
                [number(900), number(told)],
                [before, (number(minted), number(to_zero))],
            )
        };
        assert!(explained(900, 1000, 0));
        assert!(explained(950, 1050, 0), "minted");
        assert!(explained(880, 1000, 20), "burnt");
        assert!(explained(900, 1000, 20), "held by the zero address");
        assert!(!explained(901, 1000, 0), "grew in silence");
        assert!(!explained(899, 1050, 20));
    }

    #[test]
    fn a_token_that_cannot_be_sampled_has_begun_all_the_same() {
        let samples = Samples::default();
        let token = Address::repeat_byte(1);
        assert!(!samples.has(&token) && !samples.ends_one_of_before(&token));
        samples.begin(token, None, true);
        assert!(samples.has(&token) && samples.ends_one_of_before(&token));
        assert!(samples.has(&token) && !samples.ends_one_of_before(&token), "once");
    }
}
