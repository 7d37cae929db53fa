//! Doing jobs: questions to the node, answers into the side store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Tools;
use super::judge::{Answers, Conclusion, Plan, Sums, conclude, once_each};
use super::queue::{Ended, Job, Work};
use crate::model::{Address, BlockId, TokenKind, TokenVerdict, U256};
use crate::node::{ErrorClass, NodeError, Told};
use crate::query::{LedgerBalance, QueryError, Reader, Token, is_on, stands};
use crate::store::ToldBalance;

/// Accounts of a round asked for in one job.
const ROUND_STEP: usize = 32;

/// Why a job was not done.
pub(super) enum Failure {
    Node(NodeError),
    Store(QueryError),
    /// The chain moved under it.
    Moved,
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

/// What came of a job that was done.
enum Outcome {
    Done,
    Fell,
    Goes,
}

impl Tools {
    /// Does a job.
    pub(super) async fn perform(self: Arc<Self>, job: Job) -> Ended {
        let outcome = match &job.work {
            Work::Metadata => self.ask_metadata(job.token).await,
            Work::Judge(accounts) => self.judge(job.token, accounts.clone()).await,
            Work::Refresh(accounts) => self.refresh(job.token, accounts, None).await,
            Work::Round => self.round(job.token).await,
        };
        match outcome {
            Ok(Outcome::Done) => Ended::Done(job),
            Ok(Outcome::Fell) => Ended::Fell(job),
            Ok(Outcome::Goes) => Ended::Goes(job),
            Err(Failure::Moved) => Ended::Void(job),
            Err(Failure::Store(error)) => {
                tracing::warn!(token = ?job.token, %error, "a token cannot be looked at");
                Ended::Done(job)
            }
            Err(Failure::Node(error)) => {
                tracing::debug!(token = ?job.token, %error, "a question about a token is put off");
                let answered = matches!(
                    error.class(),
                    ErrorClass::Rpc | ErrorClass::Malformed | ErrorClass::NullResult
                );
                Ended::NodeFailed { job, answered }
            }
        }
    }

    /// Waits for the turn of a question, and counts it.
    pub(super) async fn turn(&self) {
        self.rate.turn().await;
        self.status.tokens().questions.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counted<T>(&self, result: Result<T, NodeError>) -> Result<T, NodeError> {
        if result.is_err() {
            self.status.tokens().errors.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    async fn supply(&self, token: Address, block: u64) -> Result<Told<U256>, NodeError> {
        self.turn().await;
        self.counted(self.node.token_supply(token, block).await)
    }

    async fn balance(&self, token: Address, holder: Address, block: u64) -> Result<Told<U256>, NodeError> {
        self.turn().await;
        self.counted(self.node.token_balance(token, holder, block).await)
    }

    async fn ask_metadata(&self, token: Address) -> Result<Outcome, Failure> {
        // Three questions.
        for _ in 0..3 {
            self.turn().await;
        }
        let metadata = self.counted(self.node.token_metadata(token).await)?;
        self.observed.put_metadata(&token, &metadata);
        Ok(Outcome::Done)
    }

    /// Reads the store where that may be done.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Reader, &Self) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Failure> {
        let tools = Arc::clone(self);
        let work = move || read(&Reader::new(tools.store.view()), &tools);
        match tokio::task::spawn_blocking(work).await {
            Ok(read) => read.map_err(Failure::Store),
            Err(_) => Err(Failure::Moved),
        }
    }

    /// Whether the node and the store still have `block` where it was.
    pub(super) async fn still(&self, block: BlockId) -> Result<bool, Failure> {
        self.turn().await;
        let asked = self.counted(self.node.block_id(block.number).await)?;
        let same = asked.is_some_and(|asked| asked.hash == block.hash);
        Ok(same && is_on(&self.store.view(), block))
    }

    async fn judge(self: &Arc<Self>, token: Address, accounts: Vec<Address>) -> Result<Outcome, Failure> {
        let Some((ledger, plan)) = self
            .read(move |reader, tools| plan(reader, tools, token, &accounts))
            .await?
        else {
            return Ok(Outcome::Done);
        };
        if ledger.kind() == TokenKind::Erc1155 {
            // It has no balance and no supply as a whole to compare.
            self.keep(&plan, &Conclusion::unasked(None), None);
            return Ok(Outcome::Done);
        }
        if ledger.is_doubted() {
            let supply = self.supply(token, plan.head.number).await?;
            let why = "its events contradict each other".to_owned();
            self.keep(&plan, &Conclusion::unasked(Some(why)), supply.value());
            return Ok(Outcome::Fell);
        }
        let mut answers = self.answers(&plan).await?;
        let mut conclusion = conclude(&plan, &answers);
        if conclusion.differs.is_some() {
            // A node on another branch, or an index that was unwound meanwhile, would condemn any token. One that came
            // back in between answers otherwise when it is asked once more.
            if !self.still(plan.head).await? {
                return Err(Failure::Moved);
            }
            answers = self.answers(&plan).await?;
            conclusion = conclude(&plan, &answers);
            if conclusion.differs.is_none() || !self.still(plan.head).await? {
                return Err(Failure::Moved);
            }
        }
        let fell = conclusion.differs.is_some();
        self.keep(&plan, &conclusion, answers.supply.value());
        Ok(if fell { Outcome::Fell } else { Outcome::Done })
    }

    /// What the contract says to a plan.
    async fn answers(&self, plan: &Plan) -> Result<Answers, Failure> {
        let (token, at) = (plan.token, plan.head.number);
        let supply = self.supply(token, at).await?;
        let zero = self.balance(token, Address::ZERO, at).await?;
        let mut balances = Vec::with_capacity(plan.balances.len());
        for sample in &plan.balances {
            let asked = self.balance(token, sample.holder, sample.block).await;
            balances.push(present_or_pruned(asked, sample.block == at)?);
        }
        let past = match plan.past {
            None => None,
            Some(past) => present_or_pruned(self.supply(token, past.block).await, false)?,
        };
        Ok(Answers {
            supply,
            zero,
            balances,
            past,
        })
    }

    /// Puts a verdict into the side store, on top of what stood before.
    fn keep(&self, plan: &Plan, conclusion: &Conclusion, supply: Option<U256>) {
        let (token, view) = (plan.token, self.store.view());
        let known = self.observed.verdict(&token);
        let before = known.clone().filter(|verdict| stands(&view, verdict));
        let exact = conclusion.differs.is_none() && before.as_ref().is_none_or(|before| before.exact);
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
            (Some(why), _) => why.clone(),
            (None, Some(before)) => before.reason.clone(),
            (None, None) => String::new(),
        };
        if !exact && kept.is_none() {
            tracing::info!(token = ?token, reason, "a token's events do not explain it, the node answers for it");
        }
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
        };
        self.observed.put_verdict(&token, &verdict);
    }

    /// Asks for balances of a token that is not exact, and for its supply.
    async fn refresh(
        &self,
        token: Address,
        accounts: &[Address],
        round: Option<(Option<Address>, bool)>,
    ) -> Result<Outcome, Failure> {
        let Some(head) = self.store.view().head() else {
            return Ok(Outcome::Done);
        };
        let mut told = Vec::with_capacity(accounts.len());
        for &holder in accounts {
            if let Told::Value(balance) = self.balance(token, holder, head.number).await? {
                told.push(ToldBalance {
                    holder,
                    balance,
                    block: head.number,
                });
            }
        }
        let supply = self.supply(token, head.number).await?;
        self.observed.put_balances(&token, &told, round);
        if let (Told::Value(supply), Some(mut verdict)) = (supply, self.observed.verdict(&token))
            && !verdict.exact
        {
            verdict.supply = Some(supply);
            self.observed.put_verdict(&token, &verdict);
        }
        Ok(Outcome::Done)
    }

    /// Asks for the next accounts out of all that ever had some of a token that is not exact.
    async fn round(self: &Arc<Self>, token: Address) -> Result<Outcome, Failure> {
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
        self.refresh(token, &asked, Some((after, over))).await?;
        Ok(if over { Outcome::Done } else { Outcome::Goes })
    }
}

/// What a node told of the present, or of a past that it may have no state of any more.
fn present_or_pruned<T>(asked: Result<T, NodeError>, present: bool) -> Result<Option<T>, NodeError> {
    match asked {
        Ok(told) => Ok(Some(told)),
        Err(error) if !present && error.is_answer() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What to compare of a token: balances that moved last, the largest, and some of the past. Much for a first
/// verdict, a little each time after. `None` for what is no token.
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
    let (largest, some) = match tools.observed.verdict(&token) {
        None => (3, 4),
        Some(_) => (1, 1),
    };
    let mut balances = Vec::new();
    for &holder in accounts {
        balances.push(LedgerBalance {
            holder,
            block: head.number,
            balance: reader.token_balance_at(&ledger, &holder, head.number)?,
        });
    }
    balances.extend(reader.ledger_largest(&ledger, largest)?);
    let mut past = None;
    for _ in 0..some {
        let at = Address::from(std::array::from_fn(|_| fastrand::u8(..)));
        let from = fastrand::u64(reader.first_block()..=head.number);
        if let Some(sample) = reader.ledger_some_balance(&ledger, &at, from)? {
            let (minted, to_zero) = reader.token_sums(&ledger, sample.block)?;
            past = Some(Sums {
                block: sample.block,
                minted,
                to_zero,
            });
            balances.push(LedgerBalance {
                block: head.number,
                balance: reader.token_balance_at(&ledger, &sample.holder, head.number)?,
                ..sample
            });
            balances.push(sample);
        }
    }
    let (minted, to_zero) = ledger.sums();
    let plan = Plan {
        token,
        head,
        present: Sums {
            block: head.number,
            minted,
            to_zero,
        },
        balances: once_each(balances),
        past,
    };
    Ok(Some((ledger, plan)))
}
