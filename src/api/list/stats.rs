//! The endpoints of the groups of stats and of the gas tracker.

use super::{CHAIN, END_DATE, NONE, SORT, START_DATE};
use crate::api::endpoint::{Endpoint, Group, NodeUse};
use crate::api::service::Handler;
use crate::api::{bodies, day_values, days, supply};

const DAYS: Endpoint = Endpoint {
    group: Group::Stats,
    parameters: &[CHAIN, START_DATE, END_DATE, SORT],
    days_max: Some(90),
    ..NONE
};

const GAS: Endpoint = Endpoint {
    group: Group::Gas,
    days_max: Some(31),
    bodies: &[bodies::DAILY_GAS],
    handler: Handler::Chain(day_values::gas),
    ..DAYS
};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["S1"],
        group: Group::Stats,
        path: "/api/stats/total-supply",
        parameters: &[CHAIN],
        main_only: true,
        doc: "How much of the native coin there is, in whole coins; it needs traces and the genesis allocation (`--genesis`).",
        bodies: &[bodies::COIN_SUPPLY],
        example: "/api/stats/total-supply",
        node: NodeUse::Needed,
        handler: Handler::Chain(supply::coin_supply),
        ..NONE
    },
    Endpoint {
        ids: &["S4"],
        path: "/api/stats/daily-transaction-count",
        doc: "Transactions of each day.",
        bodies: &[bodies::DAILY_TRANSACTIONS],
        example: "/api/stats/daily-transaction-count?startDate=2024-03-08&endDate=2024-03-10",
        handler: Handler::Chain(day_values::transactions),
        ..DAYS
    },
    Endpoint {
        ids: &["S5"],
        path: "/api/stats/daily-unique-addresses",
        doc: "Addresses that first took part in the chain on each day; it needs traces from block 0 on.",
        bodies: &[bodies::DAILY_NEW_ADDRESSES],
        example: "/api/stats/daily-unique-addresses?startDate=2024-03-08&endDate=2024-03-10",
        handler: Handler::Chain(days::new_addresses),
        ..DAYS
    },
    Endpoint {
        ids: &["S6"],
        path: "/api/stats/daily-transaction-fees",
        main_only: true,
        doc: "What senders paid on each day, and what of it was burnt.",
        bodies: &[bodies::DAILY_FEES],
        example: "/api/stats/daily-transaction-fees?startDate=2024-03-08&endDate=2024-03-10",
        handler: Handler::Chain(day_values::fees),
        ..DAYS
    },
    Endpoint {
        ids: &["S7"],
        path: "/api/stats/daily-network-utilization",
        main_only: true,
        doc: "Gas used over gas limit of each day's blocks, percent.",
        bodies: &[bodies::DAILY_UTILIZATION],
        example: "/api/stats/daily-network-utilization?startDate=2024-03-08&endDate=2024-03-10",
        handler: Handler::Chain(day_values::utilization),
        ..DAYS
    },
    Endpoint {
        ids: &["G1"],
        group: Group::Gas,
        path: "/api/gas-tracker/daily-average-gas-price",
        doc: "The plain mean of what each day's transactions paid per gas.",
        bodies: &[bodies::DAILY_GAS_PRICE],
        example: "/api/gas-tracker/daily-average-gas-price?startDate=2024-03-08&endDate=2024-03-10",
        handler: Handler::Chain(day_values::gas_price),
        ..DAYS
    },
    Endpoint {
        ids: &["G2", "G3"],
        path: "/api/gas-tracker/daily-total-gas-used",
        doc: "Gas used on each day (G2), and the mean gas limit of its blocks (G3).",
        example: "/api/gas-tracker/daily-total-gas-used?startDate=2024-03-08&endDate=2024-03-10",
        ..GAS
    },
    Endpoint {
        ids: &["average-gas-limit"],
        path: "/api/gas-tracker/daily-average-gas-limit",
        doc: "The same under a path of its own (G3).",
        example: "/api/gas-tracker/daily-average-gas-limit?startDate=2024-03-08&endDate=2024-03-10",
        ..GAS
    },
];
