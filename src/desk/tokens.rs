//! Supplies and balances of tokens (T1, T2, T8, T9): by the ledger where it is right, else by their contracts.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::http::HttpError;
use crate::model::{Address, TokenMetadata, TokenProject, U256, Usd};
use crate::query::{ContractCreation, Created, QueryError, Token, TokenStory};

use super::amounts::Unit;
use super::answer::{Answer, LEDGER, NODE, Question, Snapshot};
use super::bounds::AskedBlock;
use super::context::{NodeReply, Upstream, UpstreamError, UpstreamFuture};
use super::faults::{
    SUPPLY_FAILED, TOKEN_NOT_FOUND, UPSTREAM_FAILED, query_failed, still_indexing, upstream_failed_with,
};
use super::prices;

/// The token at an address, or 404 with this text.
pub(crate) fn find(snapshot: &Snapshot, address: &Address, text: &'static str) -> Result<Token, HttpError> {
    let found = snapshot.reader.token(address).map_err(query_failed)?;
    found.ok_or_else(|| HttpError::not_found(text))
}

/// The same where the store has all of its logs; of others lists would be short and counts low.
pub(crate) fn find_whole(snapshot: &Snapshot, address: &Address) -> Result<Token, HttpError> {
    let token = find(snapshot, address, TOKEN_NOT_FOUND)?;
    if token.is_whole() {
        Ok(token)
    } else {
        Err(still_indexing())
    }
}

/// Refuses what is held, all of it, of a store that does not begin at block 0: what was held before its first block, and
/// not moved since, no row tells of.
pub(crate) fn check_holdings(snapshot: &Snapshot) -> Result<(), HttpError> {
    match snapshot.reader.first_block() {
        0 => Ok(()),
        _ => Err(still_indexing()),
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
        let predates = match token.is_whole() {
            true => reader.predates(token, block).map_err(query_failed)?,
            false => Some(false),
        };
        if predates == Some(true) {
            return self.answer(U256::ZERO, LEDGER);
        }
        let (failure, address) = (self.failure, token.address);
        let nobody = UpstreamError::Failed(format!(
            "the events of token {} do not explain it, and there is no node to ask",
            token.address
        ));
        let unless = Err(upstream_failed_with(failure, &nobody));
        let question = Question::after(snapshot, block, unless, move |node| {
            Box::pin(async move {
                let amount = match ask(Arc::clone(&node)).await {
                    Err(UpstreamError::Failed(_))
                        if predates.is_none() && has_no_code(&node, address, block).await =>
                    {
                        U256::ZERO
                    }
                    told => told?,
                };
                Ok(self.answer(amount, NODE))
            })
        });
        Ok(Answer::AskNode(question.failing_with(failure)))
    }
}

/// Whether the node says that there was no contract at an address after a block (`eth_getCode`).
async fn has_no_code(node: &Arc<dyn Upstream>, address: Address, block: u64) -> bool {
    let Ok(params) = RawValue::from_string(format!("[\"{address}\",\"{block:#x}\"]")) else {
        return false;
    };
    let told = node.call("eth_getCode", params).await;
    matches!(told, Ok(NodeReply::Result(code)) if code.get() == "\"0x\"")
}

/// The supply of a token now (T1). `render` is given its text and its source.
pub(crate) fn supply(
    snapshot: &Snapshot,
    address: Address,
    unit: Unit,
    render: impl Fn(String, &'static str) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let token = find(snapshot, &address, SUPPLY_FAILED)?;
    let block = snapshot.reader.head().number;
    Amount::new(snapshot, &token, unit, SUPPLY_FAILED, render)?.found(
        snapshot,
        &token,
        block,
        || Ok(token.supply()),
        move |node| Box::pin(async move { node.token_supply(address, block).await }),
    )
}

/// The supply of a token after a block (T8), which `render` is given first.
pub(crate) fn supply_at(
    snapshot: &Snapshot,
    address: Address,
    asked: AskedBlock,
    unit: Unit,
    render: impl Fn(u64, String, &'static str) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let block = asked.indexed(snapshot.extent())?;
    let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
    let render = move |text, source| render(block, text, source);
    Amount::new(snapshot, &token, unit, UPSTREAM_FAILED, render)?.found(
        snapshot,
        &token,
        block,
        || snapshot.reader.token_supply(&token, block),
        move |node| Box::pin(async move { node.token_supply(address, block).await }),
    )
}

/// What an account holds of a token now (T2).
pub(crate) fn balance(
    snapshot: &Snapshot,
    account: Address,
    address: Address,
    unit: Unit,
    render: impl Fn(String, &'static str) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
    let block = snapshot.reader.head().number;
    Amount::new(snapshot, &token, unit, UPSTREAM_FAILED, render)?.found(
        snapshot,
        &token,
        block,
        || snapshot.reader.token_balance(&token, &account),
        move |node| Box::pin(async move { node.token_balance(address, account, block).await }),
    )
}

/// What an account held of a token after a block (T9), which `render` is given first.
pub(crate) fn balance_at(
    snapshot: &Snapshot,
    account: Address,
    address: Address,
    asked: AskedBlock,
    unit: Unit,
    render: impl Fn(u64, String, &'static str) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let block = asked.indexed(snapshot.extent())?;
    let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
    let render = move |text, source| render(block, text, source);
    Amount::new(snapshot, &token, unit, UPSTREAM_FAILED, render)?.found(
        snapshot,
        &token,
        block,
        || snapshot.reader.token_balance_at(&token, &account, block),
        move |node| Box::pin(async move { node.token_balance(address, account, block).await }),
    )
}

/// The text of `X-Balance-Source`.
pub(crate) const fn source(by_ledger: bool) -> &'static str {
    if by_ledger { LEDGER } else { NODE }
}

/// What is known of a token (T5).
pub(crate) struct TokenInfo {
    pub(crate) token: Token,
    /// Told by the contract, else by an imported list.
    pub(crate) metadata: TokenMetadata,
    pub(crate) story: TokenStory,
    pub(crate) supply: U256,
    pub(crate) holders: u64,
    pub(crate) source: &'static str,
    pub(crate) created: Option<ContractCreation>,
    pub(crate) project: TokenProject,
    pub(crate) price: Option<Usd>,
}

/// Looks up what is known of a token.
pub(crate) fn info(snapshot: &Snapshot, address: &Address) -> Result<TokenInfo, HttpError> {
    let reader = &snapshot.reader;
    let token = find_whole(snapshot, address)?;
    let metadata = reader.token_metadata(address).map_err(query_failed)?;
    let mut story = reader.token_story(&token).map_err(query_failed)?;
    let (holders, by_ledger) = reader.holder_count(&token).map_err(query_failed)?;
    let created = match std::mem::replace(&mut story.created, Created::Unknown) {
        Created::Known(creation) => Some(creation),
        Created::Unknown | Created::NeedsTraces => None,
    };
    let mut project = reader.token_project(address).map_err(query_failed)?;
    let head = reader.head_time().map_err(query_failed)?;
    let price = prices::of_token(reader, *address, head)?;
    Ok(TokenInfo {
        supply: reader.token_supply_known(&token).map_err(query_failed)?,
        metadata: TokenMetadata {
            name: metadata.name.or(project.name.take()),
            symbol: metadata.symbol.or(project.symbol.take()),
            decimals: metadata.decimals.or(project.decimals),
        },
        token,
        story,
        holders,
        source: source(by_ledger),
        created,
        project,
        price,
    })
}
