//! Asking for the balances of tokens that are not exact: of holders that moved, and of all of them in rounds.
//!
//! Of one holder a node may refuse to speak for ever, for what its contract does there. So the answers that came are kept, whoever else
//! is asked for again; and who was asked for often enough while the node spoke of the token at all is left to what events say, for now.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt;

use super::Tools;
use super::asking::{By, Turn, is_of_block};
use super::job::ATTEMPTS_MAX;
use super::perform::{Failure, Outcome, is_answered};
use crate::model::{Address, BlockId, U256};
use crate::node::{NodeError, Told};
use crate::query::{Reader, is_on, stands};
use crate::store::ToldBalance;

/// Accounts asked for at one time, of those that were touched.
const IN_FLIGHT_MAX: usize = 16;
/// Accounts of a round asked for in one job.
const ROUND_STEP: usize = 32;
/// Where the node refuses so many accounts before it told of any, it does not have the block, and the others are not asked for.
const REFUSED_MAX: usize = 4;

/// How accounts are asked for.
#[derive(Clone, Copy, Debug)]
struct Manner {
    turn: Turn,
    /// How often the job came to nothing before.
    attempts: u32,
}

impl Manner {
    /// Whether whom the node never tells of is given up after this.
    const fn is_last(self) -> bool {
        ATTEMPTS_MAX <= self.attempts.saturating_add(1)
    }
}

/// What came of asking for accounts.
pub(super) struct Refreshed {
    /// After which block.
    pub(super) block: BlockId,
    pub(super) supply: Option<U256>,
    /// Accounts that are still to be asked for, and why.
    left: Option<(Vec<Address>, Failure)>,
}

impl Refreshed {
    /// Fails unless all were asked for.
    fn whole(self) -> Result<Self, Failure> {
        match self.left {
            Some((_, failure)) => Err(failure),
            None => Ok(self),
        }
    }
}

/// What a contract said of accounts, and of whom the node did not tell.
#[derive(Default)]
struct Heard {
    said: Vec<(Address, Told<U256>)>,
    refused: Vec<(Address, NodeError)>,
    /// The way to the node failed, so that nobody else was asked for.
    failure: Option<NodeError>,
}

impl Tools {
    /// Asks for accounts that were touched; those that are left are what the job is about from then on.
    pub(super) async fn refresh_touched(
        self: &Arc<Self>,
        token: Address,
        accounts: &mut Vec<Address>,
        attempts: u32,
    ) -> Result<Outcome, Failure> {
        let turn = Turn::Urgent;
        let asked = self.refresh(token, accounts, Manner { turn, attempts }).await?;
        match asked.and_then(|asked| asked.left) {
            Some((left, failure)) => {
                *accounts = left;
                Err(failure)
            }
            None => Ok(Outcome::Done),
        }
    }

    /// Asks for accounts and for the supply; fails unless all were answered.
    pub(super) async fn refresh_all(
        self: &Arc<Self>,
        token: Address,
        accounts: &[Address],
        attempts: u32,
    ) -> Result<Option<Refreshed>, Failure> {
        let turn = Turn::Ordinary;
        let asked = self.refresh(token, accounts, Manner { turn, attempts }).await?;
        asked.map(Refreshed::whole).transpose()
    }

    /// Asks for accounts, as far as that leads to anything.
    async fn hear(&self, token: Address, accounts: &[Address], head: BlockId, manner: Manner) -> Heard {
        let turn = manner.turn;
        let in_flight = match turn {
            Turn::Ordinary => 1,
            Turn::Urgent => IN_FLIGHT_MAX,
        };
        let mut heard = Heard::default();
        let asked = futures_util::stream::iter(accounts.to_vec()).map(|holder| async move {
            let asked = self.balance_in(token, holder, head, By::Hash, turn).await;
            (holder, asked)
        });
        let mut asked = std::pin::pin!(asked.buffered(in_flight));
        while let Some((holder, asked)) = asked.next().await {
            match asked {
                Ok(said) => heard.said.push((holder, said)),
                Err(error) if is_answered(&error) => {
                    // The last time all are asked for, unless it is plain that this is in vain.
                    let may_end = !manner.is_last() || is_of_block(&error);
                    heard.refused.push((holder, error));
                    if may_end && heard.said.is_empty() && REFUSED_MAX <= heard.refused.len() {
                        break;
                    }
                }
                Err(error) => {
                    heard.failure = Some(error);
                    break;
                }
            }
        }
        heard
    }

    /// Asks for balances of a token that is not exact, and for its supply. What the contract does not tell is what events say: so lists hold
    /// everybody, and say the same whenever it was asked.
    async fn refresh(
        self: &Arc<Self>,
        token: Address,
        accounts: &[Address],
        manner: Manner,
    ) -> Result<Option<Refreshed>, Failure> {
        let Some(head) = self.store.view().head() else {
            return Ok(None);
        };
        let heard = self.hear(token, accounts, head, manner).await;
        let Heard {
            said,
            mut refused,
            mut failure,
        } = heard;
        let is_last = manner.is_last();
        let mut supply = None;
        if failure.is_none() {
            match self.supply(token, head, By::Hash).await {
                Ok(told) => supply = Some(told),
                Err(error) if is_last && !said.is_empty() && is_of_contract(&error) => {
                    supply = Some(Told::Nothing(error.to_string()));
                }
                Err(error) => failure = Some(error),
            }
        }
        let has_spoken = !said.is_empty() || supply.is_some();
        let (mut told, mut silent) = (Vec::with_capacity(said.len()), Vec::new());
        for (holder, said) in said {
            match said {
                Told::Value(balance) => told.push(ToldBalance {
                    holder,
                    balance,
                    block: head.number,
                }),
                Told::Nothing(_) => silent.push(holder),
            }
        }
        if is_last && has_spoken {
            let never = refused.extract_if(.., |(_, error)| is_of_contract(error));
            silent.extend(never.map(|(holder, _)| holder));
        }
        let done: HashSet<_> = told
            .iter()
            .map(|one| one.holder)
            .chain(silent.iter().copied())
            .collect();
        let mut left: Vec<_> = accounts
            .iter()
            .copied()
            .filter(|holder| !done.contains(holder))
            .collect();
        if left.is_empty() && failure.is_some() {
            // The supply is asked for again, and somebody with it: so it is known whether the node speaks of the token at all.
            left.extend(accounts.first());
        }
        let why = failure.or_else(|| refused.pop().map(|(_, error)| error));
        if has_spoken {
            self.keep_told(token, head, told, silent, manner.turn).await?;
        }
        let supply = supply.map(|told| told.value());
        if let Some(supply) = supply
            && let Some(mut verdict) = self.observed.verdict(&token)
            && !verdict.exact
            && (self.hashes.are_taken() || supply.is_some())
        {
            verdict.supply = supply;
            self.observed.put_verdict(&token, &verdict);
        }
        self.check_on(head)?;
        Ok(Some(Refreshed {
            block: head,
            supply: supply.flatten(),
            left: why.map(|error| {
                // A node that speaks of the token has not failed.
                let is_behind = has_spoken && is_answered(&error);
                let failure = match self.of_head::<()>(Err(error), By::Hash) {
                    Err(failure) if !is_behind => failure,
                    _ => Failure::Behind,
                };
                (left, failure)
            }),
        }))
    }

    /// Keeps what was told of holders after a block; of those of whom nothing is told, what events say.
    async fn keep_told(
        self: &Arc<Self>,
        token: Address,
        head: BlockId,
        mut told: Vec<ToldBalance>,
        mut silent: Vec<Address>,
        turn: Turn,
    ) -> Result<(), Failure> {
        let block = head.number;
        // What stood in orphaned blocks alone is no holder, whatever the contract says of it. Rounds ask for holders of the ledger.
        let some = told.iter().filter(|one| !one.balance.is_zero());
        let some: Vec<_> = some.map(|one| one.holder).collect();
        if turn == Turn::Urgent && !some.is_empty() {
            let strangers = self.read(move |reader, _| match reader.token(&token)? {
                Some(ledger) => reader.ledger_never_saw(&ledger, some),
                None => Ok(Vec::new()),
            });
            let strangers = strangers.await?;
            for one in told.iter_mut().filter(|one| strangers.contains(&one.holder)) {
                one.balance = U256::ZERO;
            }
        }
        // By a number, whoever answers may lack the contract: then its silence takes nothing away that was told.
        let is_sure = self.hashes.are_taken();
        if !silent.is_empty() {
            let by_events = move |_: &Reader, tools: &Self| {
                let reader = tools.informed();
                let mut found = Vec::with_capacity(silent.len());
                if let Some(ledger) = reader.token(&token)? {
                    // Of which standard it would tell is not known yet.
                    if ledger.is_mixed() && reader.token_metadata_told(&token)?.is_none() {
                        return Ok(None);
                    }
                    silent.retain(|holder| is_sure || tools.observed.balance(&token, holder).is_none());
                    for holder in silent {
                        found.push(ToldBalance {
                            holder,
                            balance: reader.balance_by_events(&ledger, &holder, block)?,
                            block,
                        });
                    }
                }
                Ok(Some(found))
            };
            told.extend(self.read(by_events).await?.ok_or(Failure::Behind)?);
        }
        // Noted first: where the block is orphaned from here on, whoever finds that looks for what was told after it.
        self.valued.note(&self.store.view(), head, token);
        self.check_on(head)?;
        self.observed.put_balances(&token, &told, None);
        Ok(())
    }

    /// Fails where a block is no longer of the chain.
    pub(super) fn check_on(&self, block: BlockId) -> Result<(), Failure> {
        if is_on(&self.store.view(), block) {
            Ok(())
        } else {
            Err(Failure::Moved)
        }
    }

    /// Asks for the next accounts out of all that ever had some of a token that is not exact.
    pub(super) async fn round(self: &Arc<Self>, token: Address, attempts: u32) -> Result<Outcome, Failure> {
        let verdict = self.observed.verdict(&token);
        if verdict.is_none_or(|verdict| verdict.exact || !stands(&self.store.view(), &verdict)) {
            // Nobody would keep up what was told. A verdict that falls begins with another round.
            return Ok(Outcome::Done);
        }
        self.sweep(token).await?;
        let is_begun = self.observed.refreshed(&token).after.is_some();
        if !is_begun || !self.samples.has(&token) {
            self.begin_sample(token, is_begun, attempts).await?;
        }
        let accounts = self
            .read(move |reader, tools| {
                let Some(ledger) = reader.token(&token)? else {
                    return Ok(Vec::new());
                };
                let after = tools.observed.refreshed(&token).after;
                reader.ledger_holders_ever(&ledger, after.as_ref(), ROUND_STEP)
            })
            .await?;
        let over = accounts.len() < ROUND_STEP;
        let after = accounts.last().copied().filter(|_| !over);
        let mut asked = accounts;
        if over {
            // No event need name it for it to hold some.
            asked.push(Address::ZERO);
        }
        self.refresh_all(token, &asked, attempts).await?;
        self.observed.put_balances(&token, &[], Some((after, over)));
        if !over {
            return Ok(Outcome::Goes);
        }
        // Whatever changed since it began may be of a holder that was asked for before. So may what changed since an earlier process began
        // it, of which there is no sample. One that fails comes again.
        Ok(match self.samples.ends_one_of_before(&token) {
            true => Outcome::Fell,
            false => self.sample(token, attempts).await.unwrap_or(Outcome::Done),
        })
    }
}

/// Whether an answer in place of a value is of what the contract does, as far as can be seen, and not of a block that the node lacks.
fn is_of_contract(error: &NodeError) -> bool {
    is_answered(error) && !is_of_block(error)
}
