//! The endpoints of prices, of the group of stats.

use super::{CHAIN, END_DATE, NONE, SORT, START_DATE};
use crate::api::endpoint::{Endpoint, Group};
use crate::api::service::Handler;
use crate::api::{bodies, prices};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["S2"],
        group: Group::Stats,
        path: "/api/stats/token-price",
        parameters: &[CHAIN],
        main_only: true,
        doc: "The price of the native coin in US dollars, and its change in 24 hours.",
        bodies: &[bodies::TOKEN_PRICE],
        example: "/api/stats/token-price",
        not_found: &["Price data not available"],
        handler: Handler::Chain(prices::token_price),
        ..NONE
    },
    Endpoint {
        ids: &["S3"],
        group: Group::Stats,
        path: "/api/stats/historical-price",
        parameters: &[CHAIN, START_DATE, END_DATE, SORT],
        main_only: true,
        doc: "Prices of the native and the stable coin at the end of each day, in US dollars.",
        bodies: &[bodies::DAILY_PRICES],
        example: "/api/stats/historical-price?startDate=2024-03-08&endDate=2024-03-10",
        not_found: &["Price data not available"],
        bad_requests: &["endDate is before startDate"],
        handler: Handler::Chain(prices::historical),
        ..NONE
    },
];
