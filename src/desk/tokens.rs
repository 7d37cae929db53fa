//! Supplies and balances of tokens (T1, T2, T8, T9): by the ledger where it is right, else by their contracts.

use std::sync::Arc;
use std::time::Duration;

use crate::http::HttpError;
use crate::model::{Address, TokenKind, TokenMetadata, TokenProject, U256, Usd};
use crate::query::{
    ContractCreation, Created, HeldIdCursor, HeldIdPage, HolderCursor, HolderPage, HoldingPage, IdCursor,
    KeyPart, NftPage, QueryError, Token, TokenCursor, TokenStory,
};

use super::amounts::Unit;
use super::answer::{Answer, LEDGER, NODE, Question, Snapshot};
use super::bounds::AskedBlock;
use super::context::{Upstream, UpstreamError, UpstreamFuture};
use super::faults::{
    SUPPLY_FAILED, TOKEN_NOT_FOUND, TOO_FAR, TOO_MANY_TOKENS, TOO_MANY_TRANSFERS, TOO_MANY_TRANSFERS_OF_ALL,
    UPSTREAM_FAILED, in_time, needs_traces, never_indexed, never_told, query_failed, upstream_failed_with,
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
        Err(lacks_logs(snapshot))
    }
}

/// 503: the store lacks some of the logs of a token.
fn lacks_logs(snapshot: &Snapshot) -> HttpError {
    if snapshot.reader.has_traces() {
        never_indexed()
    } else {
        // Frames that are still to come may show that it was created later.
        needs_traces()
    }
}

/// Refuses what is held, all of it, of a store that does not begin at block 0: what was held before its first block, and
/// not moved since, no row tells of.
fn check_holdings(snapshot: &Snapshot) -> Result<(), HttpError> {
    match snapshot.reader.first_block() {
        0 => Ok(()),
        _ => Err(never_indexed()),
    }
}

/// The tokens of a kind that an account holds (T6, T7).
pub(crate) fn holdings(
    snapshot: &Snapshot,
    account: &Address,
    kind: TokenKind,
    part: &KeyPart<TokenCursor>,
) -> Result<HoldingPage, HttpError> {
    check_holdings(snapshot)?;
    in_time(SUM_TIME_MAX, TOO_MANY_TOKENS, |deadline| {
        snapshot.reader.holdings(account, kind, part, Some(deadline))
    })
}

/// The ids of ERC-1155 tokens that an account holds, of one token or of all.
pub(crate) fn multi_holdings(
    snapshot: &Snapshot,
    account: &Address,
    token: Option<&Address>,
    part: &KeyPart<HeldIdCursor>,
) -> Result<HeldIdPage, HttpError> {
    check_holdings(snapshot)?;
    let text = match token {
        Some(_) => TOO_MANY_TRANSFERS,
        None => TOO_MANY_TRANSFERS_OF_ALL,
    };
    in_time(SUM_TIME_MAX, text, |deadline| {
        let reader = &snapshot.reader;
        reader.multi_holdings(account, token, part, Some(deadline))
    })
}

/// The holders of a token (T3).
pub(crate) fn holders(
    snapshot: &Snapshot,
    token: &Token,
    part: &KeyPart<HolderCursor>,
) -> Result<HolderPage, HttpError> {
    in_time(SUM_TIME_MAX, TOO_FAR, |deadline| {
        snapshot.reader.holders(token, part, Some(deadline))
    })
}

/// How long the transfers of an account may be added up, its tokens looked through, or holders passed over.
const SUM_TIME_MAX: Duration = Duration::from_secs(20);

/// The ids of an ERC-721 token that an account owns.
pub(crate) fn nft_ids(
    snapshot: &Snapshot,
    token: &Token,
    account: &Address,
    part: &KeyPart<IdCursor>,
) -> Result<NftPage, HttpError> {
    in_time(SUM_TIME_MAX, TOO_MANY_TRANSFERS, |deadline| {
        snapshot.reader.nft_ids(token, account, part, Some(deadline))
    })
}

/// How an amount of a token is answered: as a body in the unit that was asked for.
struct Amount<R> {
    unit: Unit,
    decimals: Option<u8>,
    /// Whether the decimals are known, or were not asked for. Else the node is asked for them.
    is_described: bool,
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
        let told = match unit {
            Unit::Base => Some(TokenMetadata::default()),
            Unit::Coin => {
                let told = snapshot.reader.token_metadata_told(&token.address);
                told.map_err(query_failed)?
            }
        };
        let amount = Self {
            unit,
            decimals: told.as_ref().and_then(|told| told.decimals),
            is_described: told.is_some(),
            failure,
            render,
        };
        if amount.is_described {
            // Said before anybody is asked.
            unit.token(U256::ZERO, amount.decimals)?;
        }
        Ok(amount)
    }

    fn answer(&self, amount: U256, source: &'static str) -> Result<Answer, HttpError> {
        (self.render)(self.unit.token(amount, self.decimals)?, source)
    }

    /// Answers by the ledger for a token that it is right about, and for what was before the contract. Of any other
    /// only its contract can tell, by the node. So can of the decimals, while nobody asked for them. What the ledger cannot tell of
    /// ERC-1155 nobody can.
    fn found(
        mut self,
        snapshot: &Snapshot,
        token: &Token,
        block: u64,
        ledger: impl FnOnce() -> Result<Option<U256>, QueryError>,
        ask: impl FnOnce(Arc<dyn Upstream>) -> UpstreamFuture<'static, U256> + Send + 'static,
    ) -> Result<Answer, HttpError> {
        let reader = &snapshot.reader;
        let mut known = None;
        if token.is_exact() {
            known = ledger().map_err(query_failed)?;
        }
        if known.is_none() && token.is_whole() {
            let predates = reader.predates(token, block).map_err(query_failed)?;
            known = (predates == Some(true)).then_some(U256::ZERO);
        }
        if known.is_none() && token.is_exact() {
            return Err(match token.is_whole() {
                true => never_told(self.failure),
                false => lacks_logs(snapshot),
            });
        }
        let (failure, address, is_described) = (self.failure, token.address, self.is_described);
        if let (Some(amount), true) = (known, is_described) {
            return self.answer(amount, LEDGER);
        }
        let nobody = UpstreamError::Untold(format!(
            "the events of token {} do not explain it, and there is no node to ask",
            token.address
        ));
        let head = reader.head().number;
        let (unless, speaks_of) = match is_described {
            true => (Err(upstream_failed_with(failure, &nobody)), block),
            false => (Err(snapshot.needs_node()), head),
        };
        let question = Question::after(snapshot, speaks_of, unless, move |node| {
            Box::pin(async move {
                if !is_described {
                    self.decimals = node.token_metadata(address, head).await?.decimals;
                }
                if let Some(amount) = known {
                    return Ok(self.answer(amount, LEDGER));
                }
                let told = ask(Arc::clone(&node)).await;
                let amount = or_nothing(told, &node, address, block).await?;
                Ok(self.answer(amount, NODE))
            })
        })?;
        Ok(Answer::AskNode(if is_described {
            question.failing_with(failure)
        } else {
            // Not known yet, whoever failed.
            question.or_else_alone()
        }))
    }
}

/// An amount as a contract told it after a block, and 0 where it failed as there is none at its address: it was not made yet, or has
/// destructed itself.
async fn or_nothing(
    told: Result<U256, UpstreamError>,
    node: &Arc<dyn Upstream>,
    address: Address,
    block: u64,
) -> Result<U256, UpstreamError> {
    match told {
        Err(UpstreamError::Failed(_) | UpstreamError::Untold(_))
            if node.has_code(address, block).await == Ok(false) =>
        {
            Ok(U256::ZERO)
        }
        told => told,
    }
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
        || Ok(token.supply_told()),
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
        || snapshot.reader.supply_told_at(&token, block),
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
        || snapshot.reader.balance_told(&token, &account),
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
        || snapshot.reader.balance_told_at(&token, &account, block),
        move |node| Box::pin(async move { node.token_balance(address, account, block).await }),
    )
}

/// The text of `X-Balance-Source`.
pub(crate) const fn source(by_ledger: bool) -> &'static str {
    if by_ledger { LEDGER } else { NODE }
}

/// What is known of a token (T5).
#[derive(Clone)]
pub(crate) struct TokenInfo {
    pub(crate) token: Token,
    /// Told by the contract, else by an imported list.
    pub(crate) metadata: TokenMetadata,
    /// Whether the contract was asked.
    is_described: bool,
    pub(crate) story: TokenStory,
    /// `None` where nobody can tell.
    pub(crate) supply: Option<U256>,
    pub(crate) holders: u64,
    /// Who told the supply.
    pub(crate) source: &'static str,
    pub(crate) created: Option<ContractCreation>,
    pub(crate) project: TokenProject,
    pub(crate) price: Option<Usd>,
}

/// What is told by a contract, and by an imported list where it does not tell. An empty text tells nothing.
fn or_listed(told: TokenMetadata, listed: TokenMetadata) -> TokenMetadata {
    let text = |told: Option<String>, listed: Option<String>| match told {
        Some(told) if !told.is_empty() => Some(told),
        told => listed.or(told),
    };
    TokenMetadata {
        name: text(told.name, listed.name),
        symbol: text(told.symbol, listed.symbol),
        decimals: told.decimals.or(listed.decimals),
    }
}

impl TokenInfo {
    /// Looks up what is known of a token.
    fn known(snapshot: &Snapshot, address: &Address) -> Result<Self, HttpError> {
        let reader = &snapshot.reader;
        let token = find_whole(snapshot, address)?;
        let told = reader.token_metadata_told(address).map_err(query_failed)?;
        let mut story = reader.token_story(&token).map_err(query_failed)?;
        let (holders, _) = reader.holder_count(&token).map_err(query_failed)?;
        let (supply, by_ledger) = reader.token_supply_known(&token).map_err(query_failed)?;
        let created = match std::mem::replace(&mut story.created, Created::Unknown) {
            Created::Known(creation) => Some(creation),
            Created::Unknown | Created::NeedsTraces => None,
        };
        let mut project = reader.token_project(address).map_err(query_failed)?;
        let head = reader.head_time().map_err(query_failed)?;
        let price = prices::of_token(reader, *address, head)?;
        let listed = TokenMetadata {
            name: project.name.take(),
            symbol: project.symbol.take(),
            decimals: project.decimals,
        };
        Ok(Self {
            supply,
            is_described: told.is_some(),
            metadata: or_listed(told.unwrap_or_default(), listed),
            token,
            story,
            holders,
            source: source(by_ledger),
            created,
            project,
            price,
        })
    }

    /// The same with what the contract says after `block`, of what only it can tell. A failure where it tells nothing.
    async fn told(mut self, node: &Arc<dyn Upstream>, block: u64) -> Result<Self, UpstreamError> {
        let address = self.token.address;
        let mut failure = None;
        let mut is_told = false;
        if !self.is_described {
            match node.token_metadata(address, block).await {
                Ok(told) => {
                    self.metadata = or_listed(told, self.metadata);
                    is_told = true;
                }
                Err(error) => failure = Some(error),
            }
        }
        if !self.token.is_exact() && failure != Some(UpstreamError::TimedOut) {
            let told = node.token_supply(address, block).await;
            match or_nothing(told, node, address, block).await {
                Ok(supply) => {
                    (self.supply, self.source) = (Some(supply), NODE);
                    is_told = true;
                }
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if !is_told => Err(error),
            _ => Ok(self),
        }
    }
}

/// What is known of a token (T5): the supply is that of T1, and none where T1 refuses for good. Where the node fails it is what was
/// known before.
pub(crate) fn info(
    snapshot: &Snapshot,
    address: &Address,
    render: impl Fn(TokenInfo) -> Result<Answer, HttpError> + Send + 'static,
) -> Result<Answer, HttpError> {
    let known = TokenInfo::known(snapshot, address)?;
    if known.is_described && known.token.is_exact() {
        return render(known);
    }
    let head = snapshot.reader.head().number;
    let unless = render(known.clone());
    let question = Question::after(snapshot, head, unless, move |node| {
        Box::pin(async move {
            let told = known.told(&node, head).await?;
            Ok(render(told))
        })
    })?;
    Ok(Answer::AskNode(question.or_else_alone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_does_not_hide_that_of_a_list() {
        let texts = |name: Option<&str>, symbol: Option<&str>| TokenMetadata {
            name: name.map(str::to_owned),
            symbol: symbol.map(str::to_owned),
            decimals: None,
        };
        let listed = || texts(Some("Listed"), Some("LST"));
        let told = texts(Some(""), Some("OWN"));
        assert_eq!(or_listed(told, listed()), texts(Some("Listed"), Some("OWN")));
        let told = texts(None, Some(""));
        assert_eq!(or_listed(told.clone(), listed()), listed());
        assert_eq!(or_listed(told.clone(), TokenMetadata::default()), told);
    }
}
