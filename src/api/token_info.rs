//! T5: what is known of a token.

use serde::Serialize;

use crate::http::HttpError;
use crate::model::Asset;
use crate::query::Created;

use super::answer::Plan;
use super::balances::sourced;
use super::caching::Reach;
use super::faults::query_failed;
use super::input::Input;
use super::tokens::{find_whole, source};

/// The fields of a project come from imported lists of tokens; without one they are `null`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    description: Option<String>,
    website: Option<String>,
    email: Option<String>,
    blog: Option<String>,
    reddit: Option<String>,
    twitter: Option<String>,
    github: Option<String>,
    telegram: Option<String>,
    discord: Option<String>,
    whitepaper: Option<String>,
    #[serde(rename = "logoURI")]
    logo_uri: Option<String>,
    #[serde(rename = "tokenPriceUSD")]
    token_price_usd: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    contract_address: String,
    chain: &'static str,
    token_name: Option<String>,
    symbol: Option<String>,
    decimals: Option<u8>,
    token_type: Option<&'static str>,
    total_supply: String,
    holder_count: u64,
    transfer_count: u64,
    creator: Option<String>,
    created_block: Option<String>,
    #[serde(flatten)]
    project: Project,
}

/// T5.
pub(super) fn info(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.require_contract()?;
    Ok(Plan::point(move |snapshot| {
        let reader = &snapshot.reader;
        let token = find_whole(snapshot, &address)?;
        let metadata = reader.token_metadata(&address).map_err(query_failed)?;
        let story = reader.token_story(&token).map_err(query_failed)?;
        let (holder_count, by_ledger) = reader.holder_count(&token).map_err(query_failed)?;
        let created = match story.created {
            Created::Known(creation) => Some(creation),
            Created::Unknown | Created::NeedsTraces => None,
        };
        let told = reader.token_project(&address).map_err(query_failed)?;
        let head = reader.head_time().map_err(query_failed)?;
        let price = reader
            .prices(Asset::Token(address))
            .and_then(|mut prices| prices.at(head))
            .map_err(query_failed)?;
        let body = Info {
            contract_address: const_hex::encode_prefixed(address),
            chain: snapshot.chain.as_str(),
            token_name: metadata.name.or(told.name),
            symbol: metadata.symbol.or(told.symbol),
            decimals: metadata.decimals.or(told.decimals),
            token_type: token.kind().name(),
            total_supply: reader
                .token_supply_known(&token)
                .map_err(query_failed)?
                .to_string(),
            holder_count,
            transfer_count: story.transfers,
            creator: created
                .as_ref()
                .map(|creation| const_hex::encode_prefixed(creation.creator)),
            created_block: created.map(|creation| creation.block.to_string()),
            project: Project {
                description: told.description,
                website: told.website,
                email: told.email,
                blog: told.blog,
                reddit: told.reddit,
                twitter: told.twitter,
                github: told.github,
                telegram: told.telegram,
                discord: told.discord,
                whitepaper: told.whitepaper,
                logo_uri: told.logo_uri,
                token_price_usd: price.map(|price| price.usd.to_string()),
            },
        };
        sourced(&body, source(by_ledger), Reach::Head)
    }))
}
