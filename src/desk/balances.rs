//! Native balances, from the ledger or from the node (A1, A2, A11), and how an account was funded first (A10).

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use serde::Serialize;

use crate::http::HttpError;
use crate::model::{Address, U256};
use crate::query::{Balance, CoinSupply, FirstFunding, Funding, FundingKind};

use super::answer::{Answer, LEDGER, NODE, Question, Snapshot};
use super::bounds::AskedBlock;
use super::caching::Reach;
use super::context::{Upstream, UpstreamError};
use super::distinct;
use super::faults::{
    ADDRESS_NOT_FOUND, ADDRESSES_MAX, TOO_MANY_ADDRESSES, needs_traces, never_indexed, no_node, query_failed,
};

/// Questions to the node in flight for one request.
const IN_FLIGHT_MAX: usize = 8;

/// 404: the account never took part in anything.
pub(crate) fn not_found() -> HttpError {
    HttpError::not_found(ADDRESS_NOT_FOUND)
}

/// The accounts of a question about several, each once: at least one, at most [`ADDRESSES_MAX`].
pub(crate) fn several(given: Vec<Address>) -> Result<Vec<Address>, HttpError> {
    distinct(given, "address", ADDRESSES_MAX, TOO_MANY_ADDRESSES)
}

/// What is said without a node where the ledger does not tell a balance.
fn nobody_tells(snapshot: &Snapshot, unknown: Balance) -> HttpError {
    match unknown {
        // Zero would be a guess: the genesis allocation may have given the account anything.
        Balance::Unmet => no_node(),
        // That is no matter of indexing.
        Balance::AskNode if has_ended(snapshot) => no_node(),
        Balance::Exact(_) | Balance::AskNode => waits(snapshot),
    }
}

/// Whether blocks that are still to come bring nothing more into the ledger, or nothing that is right.
fn has_ended(snapshot: &Snapshot) -> bool {
    let reader = &snapshot.reader;
    reader.native_fault().is_some() || reader.native_differs().is_some()
}

/// 503 for what the ledger alone tells, where it does not: for good once it has ended.
pub(crate) fn untold_by_ledger(snapshot: &Snapshot) -> HttpError {
    match has_ended(snapshot) {
        true => never_indexed(),
        false => waits(snapshot),
    }
}

/// The supply of the native coin, without what it takes to say how much of it circulates.
///
/// # Errors
///
/// 503 where the ledger does not tell it, not to be asked again soon where this store never will.
pub(crate) fn coin_supply(snapshot: &Snapshot) -> Result<CoinSupply, HttpError> {
    let supply = snapshot.reader.coin_supply().map_err(query_failed)?;
    supply.ok_or_else(|| match snapshot.reader.supply_gap() {
        Some(_) => never_indexed(),
        None => waits(snapshot),
    })
}

/// S1: the supply of the native coin, and how much of it circulates, which `answer` is given. The node is asked for what block 0 gave
/// to accounts that do not circulate, where no block touched them and the ledger does not know.
pub(crate) fn coins_in_circulation(
    snapshot: &Snapshot,
    answer: impl Fn(U256, U256) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let supply = coin_supply(snapshot)?;
    if supply.untouched.is_empty() {
        return answer(supply.total, supply.circulating(U256::ZERO));
    }
    let block = snapshot.reader.head().number;
    // Without a node this store never will tell: `/status` says so.
    let question = Question::after(snapshot, block, Err(snapshot.needs_node()), move |node| {
        Box::pin(async move {
            let asked = supply.untouched.iter().map(|&account| (account, Balance::Unmet));
            let told = ask_all(&node, asked.collect(), block).await?;
            let untouched = told
                .iter()
                .fold(U256::ZERO, |sum, (_, balance)| sum.saturating_add(*balance));
            Ok(answer(supply.total, supply.circulating(untouched)))
        })
    })?;
    Ok(Answer::AskNode(question))
}

/// 503 for what blocks do not tell without their frames, and with them never will.
fn waits(snapshot: &Snapshot) -> HttpError {
    match snapshot.reader.has_traces() {
        true => snapshot.needs_node(),
        false => needs_traces(),
    }
}

/// A body with the header that says where its balances come from.
pub(crate) fn sourced(
    value: &impl Serialize,
    source: &'static str,
    reach: Reach,
) -> Result<Answer, HttpError> {
    Ok(Answer::json(value, reach)?.balances_by(source))
}

/// What `account` holds. `answer` is given the balance, whether the account ever took part in anything, and the source.
pub(crate) fn of_account(
    snapshot: &Snapshot,
    account: Address,
    answer: impl Fn(U256, bool, &'static str) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let found = snapshot.reader.account(&account).map_err(query_failed)?;
    let known = found.known;
    let unless = match found.balance {
        Balance::Exact(balance) => return answer(balance, known, LEDGER),
        unknown => Err(nobody_tells(snapshot, unknown)),
    };
    let block = snapshot.reader.head().number;
    let begins_later = snapshot.extent().first > 0;
    let question = Question::after(snapshot, block, unless, move |node| {
        Box::pin(async move {
            let balance = node.balance(account, block).await?;
            // Of what went before the first stored block a nonce is left.
            let known = known
                || begins_later && balance.is_zero() && node.transaction_count(account, block).await? > 0;
            Ok(answer(balance, known, NODE))
        })
    })?;
    Ok(Answer::AskNode(question))
}

/// What `accounts` hold, in order.
pub(crate) fn of_accounts(
    snapshot: &Snapshot,
    accounts: Vec<Address>,
    answer: impl Fn(&[(Address, U256)], &'static str) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let mut found = Vec::with_capacity(accounts.len());
    for account in accounts {
        let balance = snapshot.reader.account(&account).map_err(query_failed)?.balance;
        found.push((account, balance));
    }
    let block = snapshot.reader.head().number;
    let alone: Result<Vec<_>, Balance> = found
        .iter()
        .map(|&(account, balance)| match balance {
            Balance::Exact(balance) => Ok((account, balance)),
            unknown => Err(unknown),
        })
        .collect();
    let unknown = match alone {
        Ok(balances) => return answer(&balances, LEDGER),
        Err(unknown) => unknown,
    };
    let question = Question::after(
        snapshot,
        block,
        Err(nobody_tells(snapshot, unknown)),
        move |node| {
            Box::pin(async move {
                let balances = ask_all(&node, found, block).await?;
                Ok(answer(&balances, NODE))
            })
        },
    )?;
    Ok(Answer::AskNode(question))
}

/// The balances after `block`, in order; those that the ledger does not have are asked for.
async fn ask_all(
    node: &Arc<dyn Upstream>,
    found: Vec<(Address, Balance)>,
    block: u64,
) -> Result<Vec<(Address, U256)>, UpstreamError> {
    let asked = found.into_iter().map(|(account, balance)| async move {
        Ok::<_, UpstreamError>(match balance {
            Balance::Exact(balance) => (account, balance),
            Balance::Unmet | Balance::AskNode => (account, node.balance(account, block).await?),
        })
    });
    futures_util::stream::iter(asked)
        .buffered(IN_FLIGHT_MAX)
        .try_collect()
        .await
}

/// What an answer by the ledger speaks of, where its blocks are `reach`: what a node may yet find wrong is none for good.
pub(crate) fn reach_of_ledger(snapshot: &Snapshot, reach: Reach) -> Reach {
    match snapshot.reader.native_is_judged() {
        true => reach,
        false => Reach::Head,
    }
}

/// What `account` held after a block. `answer` is given that block, the balance, its source and what it speaks of.
pub(crate) fn of_account_at(
    snapshot: &Snapshot,
    account: Address,
    asked: AskedBlock,
    answer: impl Fn(u64, U256, &'static str, Reach) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let block = asked.indexed(snapshot.extent())?;
    let found = snapshot.reader.balance(&account, block).map_err(query_failed)?;
    let unless = match found {
        Balance::Exact(balance) => {
            return answer(
                block,
                balance,
                LEDGER,
                reach_of_ledger(snapshot, asked.reach(block)),
            );
        }
        unknown => Err(nobody_tells(snapshot, unknown)),
    };
    let question = Question::after(snapshot, block, unless, move |node| {
        Box::pin(async move {
            let balance = node.balance(account, block).await?;
            Ok(answer(block, balance, NODE, Reach::Head))
        })
    })?;
    Ok(Answer::AskNode(question))
}

/// How `account` was funded first. `answer` is given that and the seconds from then to the indexed head.
pub(crate) fn first_funding(
    snapshot: &Snapshot,
    account: Address,
    answer: impl Fn(&Funding, u64) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    match snapshot.reader.funding(&account).map_err(query_failed)? {
        FirstFunding::Known(funding) => answer(&funding, age(snapshot, funding.timestamp)?),
        FirstFunding::Never => Err(not_found()),
        FirstFunding::Before => Err(never_indexed()),
        FirstFunding::Untold => Err(untold_by_ledger(snapshot)),
        FirstFunding::Unmet => ask_genesis(snapshot, account, answer),
        FirstFunding::Since(funding) => ask_before(snapshot, account, Some(funding), answer),
        FirstFunding::NotSince => ask_before(snapshot, account, None, answer),
    }
}

/// The first inflow that the store has of an account, or that it has none: whoever was funded before the first stored block has a balance,
/// a nonce or code after the one before it, so the node is asked for those. Where it does not tell, neither does the store.
fn ask_before(
    snapshot: &Snapshot,
    account: Address,
    funding: Option<Funding>,
    answer: impl Fn(&Funding, u64) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let before = snapshot.extent().first.saturating_sub(1);
    let seconds = match &funding {
        Some(funding) => age(snapshot, funding.timestamp)?,
        None => 0,
    };
    let question = Question::after(snapshot, before, Err(snapshot.needs_node()), move |node| {
        Box::pin(async move {
            let is_new = node.transaction_count(account, before).await? == 0
                && !node.has_code(account, before).await?
                && (funding.is_some() || node.balance(account, before).await?.is_zero());
            Ok(match (is_new, &funding) {
                (true, Some(funding)) => answer(funding, seconds),
                (true, None) => Err(not_found()),
                (false, _) => Err(never_indexed()),
            })
        })
    })?;
    Ok(Answer::AskNode(question.or_else_alone()))
}

fn age(snapshot: &Snapshot, timestamp: u64) -> Result<u64, HttpError> {
    let now = snapshot.reader.head_time().map_err(query_failed)?;
    Ok(now.saturating_sub(timestamp))
}

/// An account that the ledger never met: what it holds now, if anything, the genesis allocation gave it.
fn ask_genesis(
    snapshot: &Snapshot,
    account: Address,
    answer: impl Fn(&Funding, u64) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let genesis = snapshot.reader.view().block(0);
    let timestamp = genesis.map_err(|error| query_failed(error.into()))?.timestamp;
    let seconds = age(snapshot, timestamp)?;
    let block = snapshot.reader.head().number;
    let question = Question::after(snapshot, block, Err(no_node()), move |node| {
        Box::pin(async move {
            let value = node.balance(account, block).await?;
            if value.is_zero() {
                return Ok(Err(not_found()));
            }
            let funding = Funding {
                kind: FundingKind::Genesis,
                by: None,
                value,
                block: 0,
                timestamp,
            };
            Ok(answer(&funding, seconds))
        })
    })?;
    Ok(Answer::AskNode(question))
}

/// "1230 days 4 hrs".
pub(crate) fn age_text(seconds: u64) -> String {
    let hours = seconds / 3600;
    format!("{} days {} hrs", hours / 24, hours % 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        assert_eq!(age_text(0), "0 days 0 hrs");
        assert_eq!(age_text(4 * 3600 + 3599), "0 days 4 hrs");
        assert_eq!(age_text(1230 * 86_400 + 4 * 3600), "1230 days 4 hrs");
    }
}
