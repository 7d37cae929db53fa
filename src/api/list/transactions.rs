//! The endpoints of the group of transactions.

use super::{CHAIN, NONE};
use crate::api::endpoint::{Endpoint, Group, Kind, Parameter};
use crate::api::service::Handler;
use crate::api::{bodies, transactions};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["X1"],
        group: Group::Transactions,
        path: "/api/transaction/{txHash}/status",
        parameters: &[Parameter::path("txHash", Kind::Hash, "The transaction."), CHAIN],
        doc: "Whether a transaction succeeded.",
        bodies: &[bodies::STATUS],
        example: "/api/transaction/0x51cb3aa31a203a4bfd8d87bfe27d9d113e31ad97f5bcc0675ab903901414913f/status",
        not_found: &["Transaction not found"],
        handler: Handler::Chain(transactions::status),
        ..NONE
    },
    Endpoint {
        ids: &["X2"],
        group: Group::Transactions,
        path: "/api/transaction/{txHash}/contract-status",
        parameters: &[Parameter::path("txHash", Kind::Hash, "The transaction."), CHAIN],
        doc: "Whether the execution of a transaction failed, and why: the trace's error and the decoded revert reason.",
        bodies: &[bodies::CONTRACT_STATUS],
        example: "/api/transaction/0x52c474c9b4d22a38d10fff735c7cd372f1d23c09633311621e4e76cabe0ef74a/contract-status",
        not_found: &["Transaction not found"],
        handler: Handler::Chain(transactions::contract_status),
        ..NONE
    },
];
