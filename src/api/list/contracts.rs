//! The endpoints of the group of contracts.

use super::{CHAIN, NONE};
use crate::api::endpoint::{Endpoint, Group, Kind, Parameter};
use crate::api::service::Handler;
use crate::api::{bodies, contracts};

pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
    ids: &["C3"],
    group: Group::Contracts,
    path: "/api/contract/contract-creation",
    parameters: &[
        CHAIN,
        Parameter::query(
            "contractaddresses",
            Kind::Addresses,
            "The contracts, at most 5; one given twice counts once.",
        )
        .required(),
    ],
    doc: "Who made a contract, in which transaction, with which code; the latest time where it was made again.",
    bodies: &[bodies::CREATIONS],
    example: "/api/contract/contract-creation?contractaddresses=0xe7f1725e7734ce288f8367e1bb143e90bb3f0512",
    not_found: &["Contract not found"],
    bad_requests: &["At most 5 contract addresses are allowed"],
    handler: Handler::Chain(contracts::creation),
    ..NONE
}];
