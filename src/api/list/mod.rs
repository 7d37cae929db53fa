//! The endpoint list, one file a group. Adding an operation is adding an entry there and its parser.

mod accounts;
mod blocks;
mod contracts;
mod logs;
mod prices;
mod proxy;
mod service;
mod stats;
mod tokens;
mod transactions;

use super::endpoint::{Endpoint, Group, Kind, NodeUse, Parameter};
use super::service::{Handler, Report};
use crate::desk::lists::OFFSET_MAX;

const CHAIN: Parameter =
    Parameter::query("chain", Kind::OneOf(&["mainnet", "testnet"]), "Which chain.").or("mainnet");
const PAGE: Parameter = Parameter::query("page", Kind::Between(1, u64::MAX), "Page, counted from 1.").or("1");
const OFFSET: Parameter =
    Parameter::query("offset", Kind::Between(1, OFFSET_MAX), "Rows of a page.").or("10000");
const SORT: Parameter = Parameter::query(
    "sort",
    Kind::OneOf(&["asc", "desc"]),
    "Oldest first or newest first.",
)
.or("asc");
const CURSOR: Parameter = Parameter::query(
    "cursor",
    Kind::Opaque,
    "Goes on after an exact row; from the `Link` header.",
);
const ACCOUNT: Parameter = Parameter::path("address", Kind::Address, "The account.");
const START: Parameter =
    Parameter::query("startblock", Kind::Block, "First block.").or("first indexed block");
const END: Parameter = Parameter::query("endblock", Kind::Block, "Last block.").or("latest");

const START_DATE: Parameter =
    Parameter::query("startDate", Kind::Date, "First day (UTC), included.").required();
const END_DATE: Parameter = Parameter::query("endDate", Kind::Date, "Last day (UTC), included.").required();

const NONE: Endpoint = Endpoint {
    ids: &[],
    group: Group::Service,
    path: "",
    action: None,
    parameters: &[],
    main_only: false,
    days_max: None,
    doc: "",
    bodies: &[],
    media: None,
    example: "",
    not_found: &[],
    bad_requests: &[],
    node: NodeUse::None,
    handler: Handler::Service(Report::Health),
};

const GROUPS: &[&[Endpoint]] = &[
    tokens::ENDPOINTS,
    logs::ENDPOINTS,
    proxy::ENDPOINTS,
    accounts::ENDPOINTS,
    blocks::ENDPOINTS,
    stats::ENDPOINTS,
    contracts::ENDPOINTS,
    prices::ENDPOINTS,
    transactions::ENDPOINTS,
    service::ENDPOINTS,
];

const COUNT: usize = {
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        count += GROUPS[group].len();
        group += 1;
    }
    count
};

/// All groups in one list: routing and counting know an operation by its place in it.
static ENDPOINTS: [Endpoint; COUNT] = {
    let mut all = [NONE; COUNT];
    let (mut at, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut place = 0;
        while place < GROUPS[group].len() {
            all[at] = GROUPS[group][place];
            at += 1;
            place += 1;
        }
        group += 1;
    }
    all
};

/// Every operation that is built.
#[must_use]
pub fn endpoints() -> &'static [Endpoint] {
    &ENDPOINTS
}
