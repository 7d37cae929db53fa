//! The endpoints of the group of blocks.

use super::{CHAIN, NONE};
use crate::api::endpoint::{Endpoint, Group, Kind, Parameter};
use crate::api::service::Handler;
use crate::api::{blocks, bodies, rewards};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["B1"],
        group: Group::Blocks,
        path: "/api/block/{blockNumber}/transaction-count",
        parameters: &[Parameter::path("blockNumber", Kind::Integer, "The block."), CHAIN],
        doc: "Numbers of transactions and internal transactions in a block.",
        bodies: &[bodies::BLOCK_COUNTS],
        example: "/api/block/28/transaction-count",
        not_found: &["Block not found"],
        handler: Handler::Chain(blocks::transaction_count),
        ..NONE
    },
    Endpoint {
        ids: &["B2"],
        group: Group::Blocks,
        path: "/api/block/timestamp/{unixTimestamp}/block-number",
        parameters: &[
            Parameter::path("unixTimestamp", Kind::Integer, "Unix time in seconds."),
            CHAIN,
            Parameter::query(
                "closest",
                Kind::OneOf(&["before", "after"]),
                "The greatest block at or before the time, or the least at or after it.",
            )
            .or("before"),
        ],
        doc: "The block closest to a time.",
        bodies: &[bodies::BLOCK_BY_TIME],
        example: "/api/block/timestamp/1710000000/block-number?closest=before",
        not_found: &["Block not found"],
        handler: Handler::Chain(blocks::number_by_time),
        ..NONE
    },
    Endpoint {
        ids: &["B3"],
        group: Group::Blocks,
        path: "/api/block/{blockNumber}/rewards",
        parameters: &[Parameter::path("blockNumber", Kind::Integer, "The block."), CHAIN],
        doc: "What a block brought to its fee recipient and to those of its uncles, and what it burnt, in wei.",
        bodies: &[bodies::BLOCK_REWARDS],
        example: "/api/block/28/rewards",
        not_found: &["Block not found"],
        handler: Handler::Chain(rewards::block_rewards),
        ..NONE
    },
];
