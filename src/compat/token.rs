//! The modules `token` and, of tokens, `account`.

use serde::Serialize;

use crate::desk::amounts::Unit;
use crate::desk::answer::Plan;
use crate::desk::bounds::{AskedBlock, Bound};
use crate::desk::caching::Reach;
use crate::desk::faults::query_failed;
use crate::desk::lists::{Found, ListParams};
use crate::desk::prices;
use crate::desk::tokens::{self, TokenInfo, find_whole, nft_ids, source};
use crate::http::HttpError;
use crate::model::{Address, TokenKind};
use crate::query::{Created, HolderCursor, KeyPart};

use super::ask::Ask;
use super::envelope::{items_of, sourced};

/// `tokenbalance`.
pub(super) fn balance(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let account = ask.address()?;
    let token = ask.contract()?;
    Ok(Plan::quick(move |snapshot| {
        tokens::balance(snapshot, account, token, Unit::Base, |balance, source| {
            sourced(&balance, source, Reach::Head)
        })
    }))
}

/// `tokenbalancehistory`.
pub(super) fn balance_at(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let account = ask.address()?;
    let token = ask.contract()?;
    let asked = AskedBlock::new("blockno", Bound::Number(ask.block_number()?));
    Ok(Plan::quick(move |snapshot| {
        tokens::balance_at(
            snapshot,
            account,
            token,
            asked,
            Unit::Base,
            |_, balance, source| sourced(&balance, source, Reach::Head),
        )
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Holder {
    token_holder_address: String,
    token_holder_quantity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_holder_address_type: Option<&'static str>,
}

/// `tokenholderlist`.
pub(super) fn holders(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let token = ask.contract()?;
    let (list, part) = ask.keyed_list()?;
    holder_list(token, list, part, false)
}

/// Most holders that `topholders` gives.
const TOP_MAX: u64 = 1000;

/// `topholders`: with whether each is a contract (`C`) or not (`E`).
pub(super) fn top_holders(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let token = ask.contract()?;
    let list = ask.pages()?;
    let limit = list.offset.unwrap_or(TOP_MAX);
    if limit > TOP_MAX {
        return Err(HttpError::invalid("offset"));
    }
    let part = KeyPart {
        skip: 0,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        after: None,
    };
    holder_list(token, list, part, true)
}

fn holder_list(
    token: Address,
    list: ListParams,
    part: KeyPart<HolderCursor>,
    with_types: bool,
) -> Result<Plan, HttpError> {
    Ok(Plan::scan(move |snapshot| {
        let reader = &snapshot.reader;
        let token = find_whole(snapshot, &token)?;
        let page = tokens::holders(snapshot, &token, &part)?;
        let mut holders = Vec::with_capacity(page.holders.len());
        for (holder, balance) in &page.holders {
            let kind = if with_types {
                let created = reader.contract_creation(holder).map_err(query_failed)?;
                Some(match created {
                    Created::Known(_) => "C",
                    Created::Unknown | Created::NeedsTraces => "E",
                })
            } else {
                None
            };
            holders.push(Holder {
                token_holder_address: const_hex::encode_prefixed(holder),
                token_holder_quantity: balance.to_string(),
                token_holder_address_type: kind,
            });
        }
        // The largest are no page of a list.
        let next = page.next.filter(|_| !with_types);
        let found = Found::keyed(Some(page.total), next, Some(source(page.by_ledger)));
        items_of(&list, found, &holders)
    }))
}

/// `tokenholdercount`.
pub(super) fn holder_count(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let token = ask.contract()?;
    Ok(Plan::point(move |snapshot| {
        let token = find_whole(snapshot, &token)?;
        let (count, by_ledger) = snapshot.reader.holder_count(&token).map_err(query_failed)?;
        sourced(&count.to_string(), source(by_ledger), Reach::Head)
    }))
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Info {
    contract_address: String,
    token_name: String,
    symbol: String,
    divisor: String,
    token_type: &'static str,
    total_supply: String,
    blue_checkmark: &'static str,
    description: String,
    website: String,
    email: String,
    blog: String,
    reddit: String,
    slack: &'static str,
    facebook: &'static str,
    twitter: String,
    bitcointalk: &'static str,
    github: String,
    telegram: String,
    wechat: &'static str,
    linkedin: &'static str,
    discord: String,
    whitepaper: String,
    #[serde(rename = "tokenPriceUSD")]
    token_price_usd: String,
    image: String,
}

/// `tokeninfo`.
pub(super) fn info(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let address = ask.contract()?;
    Ok(Plan::point(move |snapshot| {
        tokens::info(snapshot, &address, move |info| {
            let source = info.source;
            sourced(&[info_of(&address, info)], source, Reach::Head)
        })
    }))
}

fn info_of(address: &Address, info: TokenInfo) -> Info {
    let (metadata, told) = (info.metadata, info.project);
    let divisor = metadata.decimals.map(|decimals| decimals.to_string());
    Info {
        contract_address: const_hex::encode_prefixed(address),
        token_name: metadata.name.unwrap_or_default(),
        symbol: metadata.symbol.unwrap_or_default(),
        divisor: divisor.unwrap_or_default(),
        token_type: info.token.kind().name().unwrap_or_default(),
        total_supply: info.supply.map(|supply| supply.to_string()).unwrap_or_default(),
        description: told.description.unwrap_or_default(),
        website: told.website.unwrap_or_default(),
        email: told.email.unwrap_or_default(),
        blog: told.blog.unwrap_or_default(),
        reddit: told.reddit.unwrap_or_default(),
        twitter: told.twitter.unwrap_or_default(),
        github: told.github.unwrap_or_default(),
        telegram: told.telegram.unwrap_or_default(),
        discord: told.discord.unwrap_or_default(),
        whitepaper: told.whitepaper.unwrap_or_default(),
        token_price_usd: info.price.map(|usd| usd.to_string()).unwrap_or_default(),
        image: told.logo_uri.unwrap_or_default(),
        ..Info::default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Holding {
    token_address: String,
    token_name: String,
    token_symbol: String,
    token_quantity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_divisor: Option<String>,
    #[serde(rename = "TokenPriceUSD", skip_serializing_if = "Option::is_none")]
    token_price_usd: Option<String>,
}

/// `addresstokenbalance`.
pub(super) fn erc20_holdings(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    holdings(ask, TokenKind::Erc20)
}

/// `addresstokennftbalance`.
pub(super) fn erc721_holdings(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    holdings(ask, TokenKind::Erc721)
}

fn holdings(ask: &mut Ask<'_>, kind: TokenKind) -> Result<Plan, HttpError> {
    let account = ask.address()?;
    let (list, part) = ask.keyed_list()?;
    Ok(Plan::scan(move |snapshot| {
        let reader = &snapshot.reader;
        let page = tokens::holdings(snapshot, &account, kind, &part)?;
        let head = reader.head_time().map_err(query_failed)?;
        let fungible = kind == TokenKind::Erc20;
        let mut holdings = Vec::with_capacity(page.tokens.len());
        for held in page.tokens {
            let price = if fungible {
                let price = prices::of_token(reader, held.token, head)?;
                Some(price.map(|usd| usd.to_string()).unwrap_or_default())
            } else {
                None
            };
            let decimals = held.metadata.decimals.map(|decimals| decimals.to_string());
            holdings.push(Holding {
                token_address: const_hex::encode_prefixed(held.token),
                token_name: held.metadata.name.unwrap_or_default(),
                token_symbol: held.metadata.symbol.unwrap_or_default(),
                token_quantity: held.balance.to_string(),
                token_divisor: fungible.then(|| decimals.unwrap_or_default()),
                token_price_usd: price,
            });
        }
        items_of(&list, Found::keyed(page.total, page.next, None), &holdings)
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Owned {
    token_address: String,
    token_id: String,
}

/// `addresstokennftinventory`.
pub(super) fn inventory(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let account = ask.address()?;
    let address = ask.contract()?;
    let (list, part) = ask.keyed_list()?;
    Ok(Plan::scan(move |snapshot| {
        let token = find_whole(snapshot, &address)?;
        let page = nft_ids(snapshot, &token, &account, &part)?;
        let owned: Vec<_> = page
            .ids
            .iter()
            .map(|id| Owned {
                token_address: const_hex::encode_prefixed(address),
                token_id: id.to_string(),
            })
            .collect();
        items_of(&list, Found::keyed(Some(page.total), page.next, None), &owned)
    }))
}
