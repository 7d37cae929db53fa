//! T1, T2, T4, T8, T9: supplies, balances and numbers of holders of tokens.

use std::sync::Arc;

use serde::Serialize;

use crate::http::HttpError;
use crate::model::{Address, U256};
use crate::query::{QueryError, Token};

use super::amounts::Unit;
use super::answer::{Answer, LEDGER, NODE, Plan, Question, Snapshot};
use super::balances::sourced;
use super::bounds::take_block;
use super::caching::Reach;
use super::context::{Upstream, UpstreamError, UpstreamFuture};
use super::faults::{
    SUPPLY_FAILED, TOKEN_NOT_FOUND, UPSTREAM_FAILED, query_failed, still_indexing, upstream_failed_with,
};
use super::input::Input;
use super::token_lists;

/// The token at an address, or 404 with this text.
pub(super) fn find(snapshot: &Snapshot, address: &Address, text: &'static str) -> Result<Token, HttpError> {
    let found = snapshot.reader.token(address).map_err(query_failed)?;
    found.ok_or_else(|| HttpError::not_found(text))
}

/// The same where the store has all of its logs; of others lists would be short and counts low.
pub(super) fn find_whole(snapshot: &Snapshot, address: &Address) -> Result<Token, HttpError> {
    let token = find(snapshot, address, TOKEN_NOT_FOUND)?;
    if token.is_whole() {
        Ok(token)
    } else {
        Err(still_indexing())
    }
}

/// How an amount of a token is answered: as a body in the unit that was asked for.
struct Amount<R> {
    unit: Unit,
    decimals: Option<u8>,
    /// The text of a node that fails.
    failure: &'static str,
    /// Makes the answer of the amount's text and its source.
    render: R,
}

impl<R> Amount<R>
where
    R: Fn(String, &'static str) -> Result<Answer, HttpError> + Send + 'static,
{
    fn new(
        snapshot: &Snapshot,
        token: &Token,
        unit: Unit,
        failure: &'static str,
        render: R,
    ) -> Result<Self, HttpError> {
        let decimals = match unit {
            Unit::Base => None,
            Unit::Coin => {
                let metadata = snapshot.reader.token_metadata(&token.address);
                metadata.map_err(query_failed)?.decimals
            }
        };
        // Said before anybody is asked.
        unit.token(U256::ZERO, decimals)?;
        Ok(Self {
            unit,
            decimals,
            failure,
            render,
        })
    }

    fn answer(&self, amount: U256, source: &'static str) -> Result<Answer, HttpError> {
        (self.render)(self.unit.token(amount, self.decimals)?, source)
    }

    /// Answers by the ledger for a token that it is right about, and for what was before the contract. Of any other
    /// only its contract can tell, by the node.
    fn found(
        self,
        snapshot: &Snapshot,
        token: &Token,
        block: u64,
        ledger: impl FnOnce() -> Result<U256, QueryError>,
        ask: impl FnOnce(Arc<dyn Upstream>) -> UpstreamFuture<'static, U256> + Send + 'static,
    ) -> Result<Answer, HttpError> {
        if token.is_exact() {
            return self.answer(ledger().map_err(query_failed)?, LEDGER);
        }
        let reader = &snapshot.reader;
        if token.is_whole() && reader.predates(token, block).map_err(query_failed)? {
            return self.answer(U256::ZERO, LEDGER);
        }
        let failure = self.failure;
        let nobody = UpstreamError::Failed(format!(
            "the events of token {} do not explain it, and there is no node to ask",
            token.address
        ));
        let question = Question::new(Err(upstream_failed_with(failure, &nobody)), move |node| {
            Box::pin(async move {
                let amount = ask(node).await?;
                Ok(self.answer(amount, NODE))
            })
        });
        Ok(Answer::AskNode(question.failing_with(failure)))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Supply {
    address: String,
    chain: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    total_supply: String,
}

/// T1.
pub(super) fn supply(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.contract()?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let token = find(snapshot, &address, SUPPLY_FAILED)?;
        let (chain, block) = (snapshot.chain.as_str(), snapshot.reader.head().number);
        let render = move |total_supply, source| {
            let body = Supply {
                address: const_hex::encode_prefixed(address),
                chain,
                block: None,
                total_supply,
            };
            sourced(&body, source, Reach::Head)
        };
        Amount::new(snapshot, &token, unit, SUPPLY_FAILED, render)?.found(
            snapshot,
            &token,
            block,
            || Ok(token.supply()),
            move |node| Box::pin(async move { node.token_supply(address, block).await }),
        )
    }))
}

/// T8.
pub(super) fn supply_at(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.contract()?;
    let asked = take_block(&mut input.params, "block")?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let block = asked.indexed(snapshot.extent())?;
        let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
        let chain = snapshot.chain.as_str();
        let render = move |total_supply, source| {
            let body = Supply {
                address: const_hex::encode_prefixed(address),
                chain,
                block: Some(block),
                total_supply,
            };
            // The verdict on a token may be another one later, also of a block that is final.
            sourced(&body, source, Reach::Head)
        };
        Amount::new(snapshot, &token, unit, UPSTREAM_FAILED, render)?.found(
            snapshot,
            &token,
            block,
            || snapshot.reader.token_supply(&token, block),
            move |node| Box::pin(async move { node.token_supply(address, block).await }),
        )
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Balance {
    address: String,
    contract_address: String,
    chain: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    balance: String,
}

/// What makes the answer of T2 and T9.
fn balance_body(
    snapshot: &Snapshot,
    account: Address,
    token: Address,
    block: Option<u64>,
) -> impl Fn(String, &'static str) -> Result<Answer, HttpError> + Send + 'static {
    let chain = snapshot.chain.as_str();
    move |balance, source| {
        let body = Balance {
            address: const_hex::encode_prefixed(account),
            contract_address: const_hex::encode_prefixed(token),
            chain,
            block,
            balance,
        };
        sourced(&body, source, Reach::Head)
    }
}

/// T2 where there is an account, else T3.
pub(super) fn balance(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    // The two share a path, and so their parameters: each is looked at, also where it says nothing.
    if !input.params.contains("address") {
        Unit::take(&mut input.params)?;
        return token_lists::holders(input);
    }
    for pages in ["page", "offset", "cursor"] {
        input.params.take(pages)?;
    }
    let account = input.require_account()?;
    let address = input.require_contract()?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
        let block = snapshot.reader.head().number;
        let render = balance_body(snapshot, account, address, None);
        Amount::new(snapshot, &token, unit, UPSTREAM_FAILED, render)?.found(
            snapshot,
            &token,
            block,
            || snapshot.reader.token_balance(&token, &account),
            move |node| Box::pin(async move { node.token_balance(address, account, block).await }),
        )
    }))
}

/// T9.
pub(super) fn balance_at(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let address = input.require_contract()?;
    let asked = take_block(&mut input.params, "block")?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let block = asked.indexed(snapshot.extent())?;
        let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
        let render = balance_body(snapshot, account, address, Some(block));
        Amount::new(snapshot, &token, unit, UPSTREAM_FAILED, render)?.found(
            snapshot,
            &token,
            block,
            || snapshot.reader.token_balance_at(&token, &account, block),
            move |node| Box::pin(async move { node.token_balance(address, account, block).await }),
        )
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HolderCount {
    contract_address: String,
    chain: &'static str,
    holder_count: u64,
}

/// T4.
pub(super) fn holder_count(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.require_contract()?;
    Ok(Plan::point(move |snapshot| {
        let token = find_whole(snapshot, &address)?;
        let (holder_count, by_ledger) = snapshot.reader.holder_count(&token).map_err(query_failed)?;
        let body = HolderCount {
            contract_address: const_hex::encode_prefixed(address),
            chain: snapshot.chain.as_str(),
            holder_count,
        };
        sourced(&body, source(by_ledger), Reach::Head)
    }))
}

/// The text of `X-Balance-Source`.
pub(super) const fn source(by_ledger: bool) -> &'static str {
    if by_ledger { LEDGER } else { NODE }
}
