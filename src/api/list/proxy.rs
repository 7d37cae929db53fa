//! The endpoints of the JSON-RPC subset.

use super::{CHAIN, NONE};
use crate::api::endpoint::{Endpoint, Group, Kind, NodeUse, Parameter};
use crate::api::service::Handler;
use crate::api::{bodies, proxy};

const ACTION: Parameter = Parameter::query("action", Kind::Opaque, "The method.").required();
const TAG: Parameter = Parameter::query("tag", Kind::Tag, "The block.").required();
const TXHASH: Parameter = Parameter::query("txhash", Kind::Hash, "The transaction.").required();

const PROXY: Endpoint = Endpoint {
    group: Group::Proxy,
    path: "/api/proxy",
    ..NONE
};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["eth_blockNumber"],
        action: Some("eth_blockNumber"),
        parameters: &[CHAIN, ACTION],
        doc: "Number of the indexed head.",
        bodies: &[bodies::RPC_QUANTITY],
        example: "/api/proxy?action=eth_blockNumber",
        handler: Handler::Chain(proxy::block_number),
        ..PROXY
    },
    Endpoint {
        ids: &["eth_getBlockByNumber"],
        action: Some("eth_getBlockByNumber"),
        parameters: &[
            CHAIN,
            ACTION,
            TAG,
            Parameter::query(
                "boolean",
                Kind::OneOf(&["true", "false"]),
                "Whether transactions are whole objects.",
            )
            .or("false"),
        ],
        doc: "A block.",
        bodies: &[bodies::RPC_OBJECT],
        example: "/api/proxy?action=eth_getBlockByNumber&tag=0x4",
        handler: Handler::Chain(proxy::block_by_number),
        ..PROXY
    },
    Endpoint {
        ids: &["eth_getBlockTransactionCountByNumber"],
        action: Some("eth_getBlockTransactionCountByNumber"),
        parameters: &[CHAIN, ACTION, TAG],
        doc: "Number of transactions in a block.",
        bodies: &[bodies::RPC_QUANTITY],
        example: "/api/proxy?action=eth_getBlockTransactionCountByNumber&tag=0x4",
        handler: Handler::Chain(proxy::block_transaction_count),
        ..PROXY
    },
    Endpoint {
        ids: &["eth_getTransactionByHash"],
        action: Some("eth_getTransactionByHash"),
        parameters: &[CHAIN, ACTION, TXHASH],
        doc: "A transaction.",
        bodies: &[bodies::RPC_OBJECT],
        example: "/api/proxy?action=eth_getTransactionByHash&txhash=0x51cb3aa31a203a4bfd8d87bfe27d9d113e31ad97f5bcc0675ab903901414913f",
        handler: Handler::Chain(proxy::transaction_by_hash),
        ..PROXY
    },
    Endpoint {
        ids: &["eth_getTransactionByBlockNumberAndIndex"],
        action: Some("eth_getTransactionByBlockNumberAndIndex"),
        parameters: &[
            CHAIN,
            ACTION,
            TAG,
            Parameter::query("index", Kind::Quantity, "Position in the block.").required(),
        ],
        doc: "A transaction by its place.",
        bodies: &[bodies::RPC_OBJECT],
        example: "/api/proxy?action=eth_getTransactionByBlockNumberAndIndex&tag=0x4&index=0x0",
        handler: Handler::Chain(proxy::transaction_by_position),
        ..PROXY
    },
    Endpoint {
        ids: &["eth_getTransactionCount"],
        action: Some("eth_getTransactionCount"),
        parameters: &[
            CHAIN,
            ACTION,
            Parameter::query("address", Kind::Address, "The account.").required(),
            Parameter::query("tag", Kind::Tag, "The block.").or("latest"),
        ],
        doc: "Number of transactions sent by an account; `X-Nonce-Source` says whether the node was asked.",
        bodies: &[bodies::RPC_QUANTITY],
        example: "/api/proxy?action=eth_getTransactionCount&address=0x70997970c51812dc3a010c7d01b50e0d17dc79c8&tag=0x40",
        node: NodeUse::Needed,
        handler: Handler::Chain(proxy::transaction_count),
        ..PROXY
    },
    Endpoint {
        ids: &["eth_getTransactionReceipt"],
        action: Some("eth_getTransactionReceipt"),
        parameters: &[CHAIN, ACTION, TXHASH],
        doc: "A receipt with its logs.",
        bodies: &[bodies::RPC_OBJECT],
        example: "/api/proxy?action=eth_getTransactionReceipt&txhash=0x51cb3aa31a203a4bfd8d87bfe27d9d113e31ad97f5bcc0675ab903901414913f",
        handler: Handler::Chain(proxy::transaction_receipt),
        ..PROXY
    },
];
