//! The endpoints of the group of contracts.

use super::{CHAIN, NONE};
use crate::api::endpoint::{Endpoint, Group, Kind, NodeUse, Parameter};
use crate::api::service::Handler;
use crate::api::{bodies, contracts, sources};

const CONTRACT: Parameter = Parameter::path("contractAddress", Kind::Contract, "The contract.");

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["C1"],
        group: Group::Contracts,
        path: "/api/contract/{contractAddress}/abi",
        parameters: &[CONTRACT, CHAIN],
        main_only: true,
        doc: "The ABI of a contract, where one was imported.",
        bodies: &[bodies::ABI],
        example: "/api/contract/0x5fbdb2315678afecb367f032d93f642f64180aa3/abi",
        not_found: &["Contract source code not verified"],
        handler: Handler::Chain(sources::abi),
        ..NONE
    },
    Endpoint {
        ids: &["C2"],
        group: Group::Contracts,
        path: "/api/contract/{contractAddress}/source-code",
        parameters: &[CONTRACT, CHAIN],
        main_only: true,
        doc: "The sources of a contract, where they were imported, and what it is a proxy of.",
        bodies: &[bodies::SOURCE_CODE],
        example: "/api/contract/0x5fbdb2315678afecb367f032d93f642f64180aa3/source-code",
        not_found: &["Contract source code not verified"],
        node: NodeUse::Optional,
        handler: Handler::Chain(sources::source_code),
        ..NONE
    },
    Endpoint {
        ids: &["C3"],
        group: Group::Contracts,
        path: "/api/contract/contract-creation",
        parameters: &[
            CHAIN,
            Parameter::query(
                "contractaddresses",
                Kind::Contracts(5),
                "The contracts, at most 5; one given twice is answered once.",
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
    },
];
