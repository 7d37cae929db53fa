//! The JSON-RPC subset: the parameters of each action.

use crate::desk::answer::Plan;
use crate::desk::faults::INVALID_HASH;
use crate::desk::proxy::{self, Tag};
use crate::http::{HttpError, parse_quantity};
use crate::model::B256;

use super::input::Input;

fn require_tag(input: &mut Input<'_>) -> Result<Tag, HttpError> {
    Tag::parse(&input.params.require("tag")?)
}

fn require_hash(input: &mut Input<'_>) -> Result<B256, HttpError> {
    input
        .params
        .take_hash("txhash", INVALID_HASH)?
        .ok_or_else(|| HttpError::missing("txhash"))
}

pub(super) fn block_number(_: &mut Input<'_>) -> Result<Plan, HttpError> {
    Ok(proxy::block_number())
}

pub(super) fn block_by_number(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let tag = require_tag(input)?;
    let full = input.params.take_bool("boolean")?.unwrap_or(false);
    Ok(proxy::block_by_number(tag, full))
}

pub(super) fn block_transaction_count(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    Ok(proxy::block_transaction_count(require_tag(input)?))
}

pub(super) fn transaction_by_hash(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    Ok(proxy::transaction_by_hash(require_hash(input)?))
}

pub(super) fn transaction_by_position(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let tag = require_tag(input)?;
    let index = input.params.require("index")?;
    let index = parse_quantity(&index).ok_or_else(|| HttpError::invalid("index"))?;
    Ok(proxy::transaction_by_position(tag, index))
}

pub(super) fn transaction_receipt(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    Ok(proxy::transaction_receipt(require_hash(input)?))
}

pub(super) fn transaction_count(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.require_account()?;
    let tag = input.params.take("tag")?;
    let tag = tag.map_or(Ok(Tag::Latest), |tag| Tag::parse(&tag))?;
    Ok(proxy::transaction_count(address, tag))
}
