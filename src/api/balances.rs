//! A1, A2, A11: native balances, from the ledger or from the node. A10: how an account was funded first.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use serde::Serialize;

use crate::http::HttpError;
use crate::model::{Address, ChainName, U256};
use crate::query::{Balance, FirstFunding, Funding, FundingKind};

use super::amounts::Unit;
use super::answer::{Answer, Extra, LEDGER, NODE, Plan, Question, Snapshot, X_BALANCE_SOURCE};
use super::bounds::take_block;
use super::caching::Reach;
use super::context::{Upstream, UpstreamError};
use super::faults::{ADDRESS_NOT_FOUND, INVALID_ADDRESS, TOO_MANY_ADDRESSES, query_failed, still_indexing};
use super::input::Input;

/// Most accounts of one request.
const ACCOUNTS_MAX: usize = 100;
/// Questions to the node in flight for one request.
const IN_FLIGHT_MAX: usize = 8;

#[derive(Serialize)]
struct AccountBalance {
    account: String,
    balance: String,
}

impl AccountBalance {
    fn new(account: &Address, balance: U256, unit: Unit) -> Self {
        Self {
            account: const_hex::encode_prefixed(account),
            balance: unit.native(balance),
        }
    }
}

fn not_found() -> HttpError {
    HttpError::not_found(ADDRESS_NOT_FOUND)
}

/// A body with the header that says where its balances come from.
pub(super) fn sourced(
    value: &impl Serialize,
    source: &'static str,
    reach: Reach,
) -> Result<Answer, HttpError> {
    Answer::json(value, reach).map(|answer| match answer {
        Answer::Whole(body, extra) => {
            let source = Some((X_BALANCE_SOURCE, source));
            Answer::Whole(body, Extra { source, ..extra })
        }
        other => other,
    })
}

/// A1.
pub(super) fn of_account(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let found = snapshot.reader.account(&account).map_err(query_failed)?;
        let known = found.known;
        // An address that holds something is somebody, whoever says it.
        let answer = move |balance: U256, source| {
            if !known && balance.is_zero() {
                return Err(not_found());
            }
            sourced(&AccountBalance::new(&account, balance, unit), source, Reach::Head)
        };
        let untouched = matches!(found.balance, Balance::Untouched(_));
        let unless = match found.balance {
            Balance::Exact(balance) => return answer(balance, LEDGER),
            Balance::Untouched(balance) => answer(balance, LEDGER),
            Balance::AskNode => Err(still_indexing()),
        };
        let block = snapshot.reader.head().number;
        let question = Question::new(unless, move |node| {
            Box::pin(async move { Ok(answer(node.balance(account, block).await?, NODE)) })
        });
        Ok(Answer::AskNode(alone_if(untouched, question)))
    }))
}

/// What no stored block touched is answered by the store's word also where the node fails.
fn alone_if(untouched: bool, question: Question) -> Question {
    if untouched {
        question.or_else_alone()
    } else {
        question
    }
}

#[derive(Serialize)]
struct Balances {
    chain: &'static str,
    balances: Vec<AccountBalance>,
}

/// A2.
pub(super) fn of_accounts(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let given = input.params.take_addresses("address", INVALID_ADDRESS)?;
    let unit = Unit::take(&mut input.params)?;
    if given.is_empty() {
        return Err(HttpError::missing("address"));
    }
    let mut accounts: Vec<Address> = Vec::with_capacity(given.len().min(ACCOUNTS_MAX));
    for account in given {
        if !accounts.contains(&account) {
            accounts.push(account);
        }
        if accounts.len() > ACCOUNTS_MAX {
            return Err(HttpError::bad_request(TOO_MANY_ADDRESSES));
        }
    }
    Ok(Plan::point(move |snapshot| {
        let chain = snapshot.chain;
        let mut found = Vec::with_capacity(accounts.len());
        for account in accounts {
            let balance = snapshot.reader.account(&account).map_err(query_failed)?.balance;
            found.push((account, balance));
        }
        let block = snapshot.reader.head().number;
        // Without a node: what the ledger says, where it says something of all.
        let alone: Option<Vec<_>> = found
            .iter()
            .map(|&(account, balance)| match balance {
                Balance::Exact(balance) | Balance::Untouched(balance) => Some((account, balance)),
                Balance::AskNode => None,
            })
            .collect();
        let untouched = alone.is_some();
        let unless = match alone {
            Some(balances) => list(chain, &balances, unit, LEDGER),
            None => Err(still_indexing()),
        };
        if found
            .iter()
            .all(|(_, balance)| matches!(balance, Balance::Exact(_)))
        {
            return unless;
        }
        let question = Question::new(unless, move |node| {
            Box::pin(async move {
                let balances = ask_all(&node, found, block).await?;
                Ok(list(chain, &balances, unit, NODE))
            })
        });
        Ok(Answer::AskNode(alone_if(untouched, question)))
    }))
}

fn list(
    chain: ChainName,
    balances: &[(Address, U256)],
    unit: Unit,
    source: &'static str,
) -> Result<Answer, HttpError> {
    let balances = balances.iter();
    let body = Balances {
        chain: chain.as_str(),
        balances: balances
            .map(|(account, balance)| AccountBalance::new(account, *balance, unit))
            .collect(),
    };
    sourced(&body, source, Reach::Head)
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
            Balance::Untouched(_) | Balance::AskNode => (account, node.balance(account, block).await?),
        })
    });
    futures_util::stream::iter(asked)
        .buffered(IN_FLIGHT_MAX)
        .try_collect()
        .await
}

#[derive(Serialize)]
struct PastBalance {
    account: String,
    chain: &'static str,
    block: u64,
    balance: String,
}

/// A11.
pub(super) fn of_account_at(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let asked = take_block(&mut input.params, "block")?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let block = asked.indexed(snapshot.extent())?;
        let chain = snapshot.chain.as_str();
        let answer = move |balance: U256, source, reach| {
            let body = PastBalance {
                account: const_hex::encode_prefixed(account),
                chain,
                block,
                balance: unit.native(balance),
            };
            sourced(&body, source, reach)
        };
        let found = snapshot.reader.balance(&account, block).map_err(query_failed)?;
        let untouched = matches!(found, Balance::Untouched(_));
        let unless = match found {
            Balance::Exact(balance) => return answer(balance, LEDGER, asked.reach(block)),
            Balance::Untouched(balance) => answer(balance, LEDGER, Reach::Head),
            Balance::AskNode => Err(still_indexing()),
        };
        let question = Question::new(unless, move |node| {
            Box::pin(async move { Ok(answer(node.balance(account, block).await?, NODE, Reach::Head)) })
        });
        Ok(Answer::AskNode(alone_if(untouched, question)))
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FundedBy {
    address: String,
    chain: &'static str,
    funding_address: Option<String>,
    funding_txn: Option<String>,
    kind: &'static str,
    value: String,
    block: u64,
    timestamp: String,
    age_seconds: u64,
    age: String,
}

/// A10.
pub(super) fn funded_by(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    Ok(Plan::point(move |snapshot| {
        match snapshot.reader.funding(&account).map_err(query_failed)? {
            FirstFunding::Known(funding) => funding_answer(&account, &funding, snapshot),
            FirstFunding::Never => Err(not_found()),
            FirstFunding::Untold => Err(still_indexing()),
            FirstFunding::Untouched => ask_genesis(account, snapshot),
        }
    }))
}

fn age(snapshot: &Snapshot, timestamp: u64) -> Result<u64, HttpError> {
    let head = snapshot.reader.head().number;
    let now = snapshot.reader.view().block(head);
    let now = now.map_err(|error| query_failed(error.into()))?.timestamp;
    Ok(now.saturating_sub(timestamp))
}

fn funding_answer(account: &Address, funding: &Funding, snapshot: &Snapshot) -> Result<Answer, HttpError> {
    let seconds = age(snapshot, funding.timestamp)?;
    let body = funding_body(account, funding, snapshot.chain, seconds);
    // It counts from the head.
    Answer::json(&body, Reach::Head)
}

/// An account that the chain never touched: what it holds now, if anything, the genesis allocation gave it.
fn ask_genesis(account: Address, snapshot: &Snapshot) -> Result<Answer, HttpError> {
    let genesis = snapshot.reader.view().block(0);
    let timestamp = genesis.map_err(|error| query_failed(error.into()))?.timestamp;
    let seconds = age(snapshot, timestamp)?;
    let (chain, block) = (snapshot.chain, snapshot.reader.head().number);
    let question = Question::new(Err(not_found()), move |node| {
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
            let body = funding_body(&account, &funding, chain, seconds);
            Ok(Answer::json(&body, Reach::Head))
        })
    });
    Ok(Answer::AskNode(question.or_else_alone()))
}

fn funding_body(account: &Address, funding: &Funding, chain: ChainName, seconds: u64) -> FundedBy {
    FundedBy {
        address: const_hex::encode_prefixed(account),
        chain: chain.as_str(),
        funding_address: funding.by.map(|(_, funder)| const_hex::encode_prefixed(funder)),
        funding_txn: funding.by.map(|(hash, _)| const_hex::encode_prefixed(hash)),
        kind: funding.kind.as_str(),
        value: funding.value.to_string(),
        block: funding.block,
        timestamp: funding.timestamp.to_string(),
        age_seconds: seconds,
        age: age_text(seconds),
    }
}

/// "1230 days 4 hrs".
fn age_text(seconds: u64) -> String {
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
