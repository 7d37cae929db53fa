//! The endpoints of the group of blocks.

use super::{CHAIN, END_DATE, NONE, SORT, START_DATE};
use crate::api::endpoint::{Endpoint, Group, Kind, Parameter};
use crate::api::service::Handler;
use crate::api::{blocks, bodies, day_values, rewards};

const DAYS: Endpoint = Endpoint {
    group: Group::Blocks,
    parameters: &[CHAIN, START_DATE, END_DATE, SORT],
    ..NONE
};

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
    Endpoint {
        ids: &["B4"],
        path: "/api/block/daily-average-size",
        days_max: Some(15),
        doc: "The mean size of each day's blocks.",
        bodies: &[bodies::DAILY_SIZE],
        example: "/api/block/daily-average-size?startDate=2024-03-08&endDate=2024-03-10",
        handler: Handler::Chain(day_values::size),
        ..DAYS
    },
    Endpoint {
        ids: &["B5"],
        path: "/api/block/daily-count-and-rewards",
        days_max: Some(15),
        doc: "Blocks of each day, and what their fee recipients got.",
        bodies: &[bodies::DAILY_BLOCKS],
        example: "/api/block/daily-count-and-rewards?startDate=2024-03-08&endDate=2024-03-10",
        handler: Handler::Chain(day_values::blocks),
        ..DAYS
    },
    Endpoint {
        ids: &["B6"],
        path: "/api/block/daily-block-rewards",
        days_max: Some(31),
        doc: "What the protocol gave on each day to those who sealed blocks and uncles.",
        bodies: &[bodies::DAILY_REWARDS],
        example: "/api/block/daily-block-rewards?startDate=2024-03-08&endDate=2024-03-10",
        handler: Handler::Chain(day_values::rewards),
        ..DAYS
    },
    Endpoint {
        ids: &["B7"],
        path: "/api/block/daily-average-block-time",
        days_max: Some(5),
        doc: "The mean time between blocks of each day.",
        bodies: &[bodies::DAILY_BLOCK_TIME],
        example: "/api/block/daily-average-block-time?startDate=2024-03-08&endDate=2024-03-10",
        handler: Handler::Chain(day_values::block_time),
        ..DAYS
    },
];
