//! The endpoints of prices, of the group of stats.

use super::{CHAIN, NONE};
use crate::api::endpoint::{Endpoint, Group};
use crate::api::service::Handler;
use crate::api::{bodies, prices};

pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
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
}];
