//! Doing jobs: questions to the node, answers into the side store.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Tools;
use super::asking::By;
use super::job::{Ended, Job, Work};
use super::judge::{Answers, Conclusion, Differs, Plan, Sums, Suspect, SuspectAnswers, conclude, once_each};
use crate::model::{Address, Difference, TokenKind, TokenVerdict, U256};
use crate::node::{ErrorClass, NodeError};
use crate::query::{LedgerBalance, ObservedFacts, QueryError, Reader, Token, is_on, stands};
use crate::tasks;

/// Why a job was not done.
pub(super) enum Failure {
    Node(NodeError),
    Store(QueryError),
    /// The chain moved under it.
    Moved,
    /// The node that answered does not have the block (yet).
    Behind,
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

/// What came of a job that was done.
pub(super) enum Outcome {
    Done,
    Fell,
    Goes,
}

impl Tools {
    /// Does a job.
    pub(super) async fn perform(self: Arc<Self>, mut job: Job) -> Ended {
        match self.outcome(&mut job).await {
            Ok(Outcome::Done) => Ended::Done(job),
            Ok(Outcome::Fell) => Ended::Fell(job),
            Ok(Outcome::Goes) => Ended::Goes(job),
            Err(Failure::Moved) => Ended::Void(job),
            Err(Failure::Behind) => Ended::Later(job),
            Err(Failure::Store(error)) => {
                tracing::warn!(token = ?job.token, %error, "a token cannot be looked at");
                Ended::Done(job)
            }
            Err(Failure::Node(error)) => {
                tracing::debug!(token = ?job.token, %error, "a question about a token is put off");
                let answered = is_answered(&error);
                Ended::NodeFailed { job, answered }
            }
        }
    }

    async fn outcome(self: &Arc<Self>, job: &mut Job) -> Result<Outcome, Failure> {
        let (token, attempts) = (job.token, job.attempts);
        if job.work != Work::Metadata && !self.is_whole(token).await? {
            // It is older than the store: no answer is made of more than its name.
            return Ok(Outcome::Done);
        }
        match &mut job.work {
            Work::Metadata => self.ask_metadata(job).await,
            Work::Judge(accounts) => self.judge(token, accounts.clone()).await,
            Work::Refresh(accounts) => self.refresh_touched(token, accounts, attempts).await,
            Work::Round => self.round(token, attempts).await,
            Work::Anew => {
                self.observed.put_balances(&token, &[], Some((None, false)));
                self.round(token, attempts).await
            }
            Work::Sample => self.sample(token, attempts).await,
        }
    }

    /// Whether the stored blocks hold all of a token's logs.
    async fn is_whole(self: &Arc<Self>, token: Address) -> Result<bool, Failure> {
        self.read(move |reader, _| Ok(reader.token(&token)?.is_some_and(|token| token.is_whole())))
            .await
    }

    /// Reads the store where that may be done.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Reader, &Self) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Failure> {
        let tools = Arc::clone(self);
        let work = move || read(&Reader::new(tools.store.view()), &tools);
        match tasks::blocking(work).await {
            Ok(read) => read.map_err(Failure::Store),
            Err(_) => Err(Failure::Moved),
        }
    }

    /// A reader that knows what was told: which standard a `balanceOf` speaks of follows from it. Others know nothing, or what
    /// is compared would be what was compared before.
    pub(super) fn informed(&self) -> Reader {
        let view = self.store.view();
        let facts = ObservedFacts::new(Arc::clone(&self.observed), Arc::clone(&view), true);
        Reader::new(view).with_token_facts(Arc::new(facts))
    }

    async fn judge(self: &Arc<Self>, token: Address, accounts: Vec<Address>) -> Result<Outcome, Failure> {
        let read = move |reader: &Reader, tools: &Self| {
            let Some((ledger, plan)) = plan(reader, tools, token, &accounts)? else {
                return Ok(None);
            };
            let standard = tools.informed().standard_of_balances(&ledger)?;
            Ok(Some((ledger, standard, plan)))
        };
        let Some((ledger, standard, plan)) = self.read(read).await? else {
            return Ok(Outcome::Done);
        };
        if standard == TokenKind::Erc1155 {
            // It has no balance and no supply as a whole to compare.
            self.keep(&plan, &Conclusion::unasked(None), None)?;
            return Ok(Outcome::Done);
        }
        if ledger.is_flagged() {
            let supply = self.of_head(self.supply(token, plan.head, By::Hash).await, By::Hash)?;
            let why = "its events contradict each other";
            self.keep(&plan, &Conclusion::unasked(Some(why)), supply.value())?;
            return Ok(Outcome::Fell);
        }
        let mut answers = self.answers(&plan, By::Hash).await?;
        let by_hash = self.hashes.are_taken();
        let mut conclusion = conclude(&plan, &answers);
        if conclusion.differs.is_some() {
            // A node on another branch, or an index that was unwound meanwhile, would condemn any token. One that came
            // back in between answers otherwise when it is asked once more. By number then: some take a hash and look at
            // something else.
            if !self.still(plan.head).await? {
                return Err(Failure::Moved);
            }
            answers = self.answers(&plan, By::Number).await?;
            conclusion = conclude(&plan, &answers);
            if !self.still(plan.head).await? {
                return Err(Failure::Moved);
            }
            if conclusion.differs.is_none() {
                if by_hash {
                    self.hashes.doubt();
                }
                return Err(Failure::Moved);
            }
        } else if let (true, Some(suspect)) = (conclusion.is_cleared, &plan.suspect)
            && !(self.still(plan.head).await? && self.still(plan.block(suspect.sums.block)).await?)
        {
            // Nor does such a node clear any.
            return Err(Failure::Moved);
        }
        let fell = self.keep(&plan, &conclusion, answers.supply.value())?;
        Ok(match fell || conclusion.differs.is_some() {
            true => Outcome::Fell,
            false => Outcome::Done,
        })
    }

    /// What the contract says to a plan.
    async fn answers(&self, plan: &Plan, by: By) -> Result<Answers, Failure> {
        let (token, head) = (plan.token, plan.head);
        let supply = self.of_head(self.supply(token, head, by).await, by)?;
        let zero = self.of_head(self.balance(token, Address::ZERO, head, by).await, by)?;
        let mut suspect = SuspectAnswers::default();
        if let Some(Suspect { sums, balance }) = plan.suspect {
            let at = plan.block(sums.block);
            suspect.supply = or_pruned(self.supply(token, at, by).await)?;
            suspect.zero = or_pruned(self.balance(token, Address::ZERO, at, by).await)?;
            if let Some(balance) = balance {
                suspect.balance = or_pruned(self.balance(token, balance.holder, at, by).await)?;
            }
        }
        let mut balances = Vec::with_capacity(plan.balances.len());
        for sample in &plan.balances {
            let at = plan.block(sample.block);
            let asked = self.balance(token, sample.holder, at, by).await;
            balances.push(if sample.block == head.number {
                Some(self.of_head(asked, by)?)
            } else {
                or_pruned(asked)?
            });
        }
        let past = match plan.past {
            None => None,
            Some(past) => or_pruned(self.supply(token, plan.block(past.block), by).await)?,
        };
        Ok(Answers {
            supply,
            zero,
            balances,
            past,
            suspect,
        })
    }

    /// Puts a verdict into the side store, on top of what stood before; whether the contract has to be asked from now on. Fails where its block
    /// is no longer of the chain.
    fn keep(&self, plan: &Plan, conclusion: &Conclusion, supply: Option<U256>) -> Result<bool, Failure> {
        let (token, view) = (plan.token, self.store.view());
        let known = self.observed.verdict(&token);
        let before = known.clone().filter(|verdict| stands(&view, verdict));
        let exact = conclusion.differs.is_none()
            && match &plan.suspect {
                Some(_) => conclusion.is_cleared,
                None => before.as_ref().is_none_or(|before| before.exact),
            };
        let kept = before.as_ref().filter(|before| before.exact == exact);
        let anchor = kept.and_then(|before| {
            let is_final = view.finalized().is_some_and(|last| before.checked.number <= last);
            let checked = Some(before.checked).filter(|&block| is_on(&view, block));
            let anchor = before.anchor.filter(|&block| is_on(&view, block));
            if is_final {
                checked.or(anchor)
            } else {
                anchor.or(checked)
            }
        });
        let reason = match (&conclusion.differs, kept) {
            (Some(differs), _) => differs.why.clone(),
            (None, Some(before)) => before.reason.clone(),
            (None, None) => String::new(),
        };
        let fell = !exact && kept.is_none();
        if fell {
            tracing::info!(token = ?token, reason, "a token's events do not explain it, the node answers for it");
        }
        let rose = exact && known.as_ref().is_some_and(|known| !known.exact);
        if rose {
            tracing::info!(token = ?token, "a token's events explain it after all, the ledger answers for it");
        }
        if fell || rose {
            // What its holders were said to have is of the time before, or of another branch and maybe of another contract.
            self.observed.begin_round(&token);
            self.swept.forget_one(&token);
        }
        let is_void = known.is_some() && before.is_none();
        let earlier = known.as_ref().and_then(|known| known.differed);
        let differed = difference(plan, conclusion.differs.as_ref(), earlier);
        self.status
            .tokens()
            .verdict(known.map(|known| known.exact), exact);
        let verdict = TokenVerdict {
            exact,
            zero_address: conclusion.zero_address,
            checked: plan.head,
            anchor,
            compared: before.as_ref().map_or(0, |before| before.compared) + conclusion.compared,
            reason,
            supply: supply.filter(|_| !exact),
            differed: differed.filter(|_| !exact),
        };
        // Noted first: where the block is orphaned from here on, whoever finds that has the token compared again.
        self.judged.note(&view, plan.head, token);
        if !exact {
            self.valued.note(&view, plan.head, token);
        }
        self.observed.put_verdict(&token, &verdict);
        if is_void {
            // It counts again, though it may say what it said.
            self.observed.changed();
        }
        self.check_on(plan.head)?;
        Ok(fell)
    }
}

/// Whether the node answered, so that it may be this very question that it cannot do.
pub(super) const fn is_answered(error: &NodeError) -> bool {
    matches!(
        error.class(),
        ErrorClass::Rpc | ErrorClass::Malformed | ErrorClass::NullResult | ErrorClass::MethodNotFound
    )
}

/// What a node told of a past that it may have no state of any more.
fn or_pruned<T>(asked: Result<T, NodeError>) -> Result<Option<T>, NodeError> {
    match asked {
        Ok(told) => Ok(Some(told)),
        Err(error) if error.is_answer() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What differed, as it is kept: looked at once more than before where it was looked at again.
fn difference(plan: &Plan, differs: Option<&Differs>, earlier: Option<Difference>) -> Option<Difference> {
    let earlier = earlier.filter(|_| plan.suspect.is_some());
    let trials = earlier.map_or(0, |earlier| earlier.trials.saturating_add(1));
    match differs {
        Some(differs) => Some(Difference {
            at: plan.block(differs.block?),
            holder: differs.holder,
            trials,
        }),
        None => earlier.map(|earlier| Difference { trials, ..earlier }),
    }
}

/// What to compare of a token: balances that moved last, the largest, and some of the past. Much for a first verdict, a
/// little each time after, and much again where one that is not exact is looked at anew. `None` for what is no token.
fn plan(
    reader: &Reader,
    tools: &Tools,
    token: Address,
    accounts: &[Address],
) -> Result<Option<(Token, Plan)>, QueryError> {
    let Some(ledger) = reader.token(&token)? else {
        return Ok(None);
    };
    let head = reader.head();
    let known = tools.observed.verdict(&token);
    let (largest, some) = match &known {
        Some(known) if known.exact && stands(reader.view(), known) => (1, 1),
        _ => (3, 4),
    };
    let sums = |block: u64| -> Result<Sums, QueryError> {
        let (minted, to_zero) = reader.token_sums(&ledger, block)?;
        Ok(Sums {
            block,
            minted,
            to_zero,
        })
    };
    let of = |holder: Address, block: u64| -> Result<LedgerBalance, QueryError> {
        Ok(LedgerBalance {
            holder,
            block,
            balance: reader.token_balance_at(&ledger, &holder, block)?,
        })
    };
    let differed = known.and_then(|known| known.differed);
    let suspect = match differed.filter(|differed| is_on(reader.view(), differed.at)) {
        None => None,
        Some(Difference { at, holder, .. }) => Some(Suspect {
            sums: sums(at.number)?,
            balance: holder.map(|holder| of(holder, at.number)).transpose()?,
        }),
    };
    let mut balances = Vec::new();
    for &holder in accounts {
        balances.push(of(holder, head.number)?);
    }
    balances.extend(reader.ledger_largest(&ledger, largest)?);
    let mut past = None;
    for _ in 0..some {
        let at = Address::from(std::array::from_fn(|_| fastrand::u8(..)));
        let from = fastrand::u64(reader.first_block()..=head.number);
        if let Some(sample) = reader.ledger_some_balance(&ledger, &at, from)? {
            past = Some(sums(sample.block)?);
            balances.push(of(sample.holder, head.number)?);
            balances.push(sample);
        }
    }
    let (minted, to_zero) = ledger.sums();
    let balances = once_each(balances);
    let numbers = balances.iter().map(|sample| sample.block);
    let numbers = numbers.chain(past.map(|past| past.block));
    let mut hashes = BTreeMap::from([(head.number, head.hash)]);
    for number in numbers.chain(suspect.map(|suspect| suspect.sums.block)) {
        hashes.insert(number, reader.view().block(number)?.hash);
    }
    let plan = Plan {
        token,
        head,
        present: Sums {
            block: head.number,
            minted,
            to_zero,
        },
        balances,
        past,
        suspect,
        hashes,
    };
    Ok(Some((ledger, plan)))
}
