//! T5: what is known of a token.

use serde::Serialize;

use crate::desk::answer::Plan;
use crate::desk::balances::sourced;
use crate::desk::caching::Reach;
use crate::desk::tokens::{self, TokenInfo};
use crate::http::HttpError;
use crate::model::Address;

use super::input::Input;

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
    total_supply: Option<String>,
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
        let chain = snapshot.chain.as_str();
        tokens::info(snapshot, &address, move |info| {
            let source = info.source;
            sourced(&body(&address, chain, info), source, Reach::Head)
        })
    }))
}

fn body(address: &Address, chain: &'static str, info: TokenInfo) -> Info {
    let (metadata, told) = (info.metadata, info.project);
    Info {
        contract_address: const_hex::encode_prefixed(address),
        chain,
        token_name: metadata.name,
        symbol: metadata.symbol,
        decimals: metadata.decimals,
        token_type: info.token.kind().name(),
        total_supply: info.supply.map(|supply| supply.to_string()),
        holder_count: info.holders,
        transfer_count: info.story.transfers,
        creator: info
            .created
            .as_ref()
            .map(|creation| const_hex::encode_prefixed(creation.creator)),
        created_block: info.created.map(|creation| creation.block.to_string()),
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
            token_price_usd: info.price.map(|usd| usd.to_string()),
        },
    }
}
