//! The endpoint list. Adding an operation is adding an entry here and its parser.

use super::endpoint::{Endpoint, Group, Kind, Parameter};
use super::logs::OPERATORS;
use super::page::OFFSET_MAX;
use super::service::{Handler, Report};
use super::{accounts, blocks, contracts, logs, proxy, rewards, transactions};

const CHAIN: Parameter =
    Parameter::query("chain", Kind::OneOf(&["mainnet", "testnet"]), "Which chain.").or("mainnet");
const ACTION: Parameter = Parameter::query("action", Kind::Opaque, "The method.").required();
const TAG: Parameter = Parameter::query("tag", Kind::Tag, "The block.").required();
const TXHASH: Parameter = Parameter::query("txhash", Kind::Hash, "The transaction.").required();
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
const ZERO_VALUE: Parameter = Parameter::query(
    "includeZeroValue",
    Kind::OneOf(&["true", "false"]),
    "Whether calls that move nothing are listed too.",
)
.or("false");
const OPERATOR: Kind = Kind::OneOf(&["and", "or"]);
const OPERATOR_DOC: &str = "How the two topics combine; clauses are and-ed, a topic in none is required.";

const fn operator(at: usize) -> Parameter {
    Parameter::query(OPERATORS[at].0, OPERATOR, OPERATOR_DOC)
}

/// Every operation that is built.
#[must_use]
pub const fn endpoints() -> &'static [Endpoint] {
    ENDPOINTS
}

const NONE: Endpoint = Endpoint {
    ids: &[],
    group: Group::Service,
    path: "",
    action: None,
    parameters: &[],
    main_only: false,
    days_max: None,
    doc: "",
    handler: Handler::Service(Report::Health),
};

const PROXY: Endpoint = Endpoint {
    group: Group::Proxy,
    path: "/api/proxy",
    ..NONE
};

const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["L1", "L2", "L3"],
        group: Group::Logs,
        path: "/api/logs/get-logs",
        parameters: &[
            CHAIN,
            Parameter::query(
                "address",
                Kind::Address,
                "Emitting contract; needed where no topic is given.",
            ),
            Parameter::query("topic0", Kind::Topics, "First topic."),
            Parameter::query("topic1", Kind::Topics, "Second topic."),
            Parameter::query("topic2", Kind::Topics, "Third topic."),
            Parameter::query("topic3", Kind::Topics, "Fourth topic."),
            operator(0),
            operator(1),
            operator(2),
            operator(3),
            operator(4),
            operator(5),
            Parameter::query("fromblock", Kind::Block, "First block.").or("first indexed block"),
            Parameter::query("toblock", Kind::Block, "Last block.").or("latest"),
            PAGE,
            OFFSET,
            SORT,
            CURSOR,
        ],
        doc: "Event logs by address (L1), by topics (L2), or by both (L3).",
        handler: Handler::Chain(logs::get_logs),
        ..NONE
    },
    Endpoint {
        ids: &["eth_blockNumber"],
        action: Some("eth_blockNumber"),
        parameters: &[CHAIN, ACTION],
        doc: "Number of the indexed head.",
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
        handler: Handler::Chain(proxy::block_by_number),
        ..PROXY
    },
    Endpoint {
        ids: &["eth_getBlockTransactionCountByNumber"],
        action: Some("eth_getBlockTransactionCountByNumber"),
        parameters: &[CHAIN, ACTION, TAG],
        doc: "Number of transactions in a block.",
        handler: Handler::Chain(proxy::block_transaction_count),
        ..PROXY
    },
    Endpoint {
        ids: &["eth_getTransactionByHash"],
        action: Some("eth_getTransactionByHash"),
        parameters: &[CHAIN, ACTION, TXHASH],
        doc: "A transaction.",
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
        handler: Handler::Chain(proxy::transaction_count),
        ..PROXY
    },
    Endpoint {
        ids: &["eth_getTransactionReceipt"],
        action: Some("eth_getTransactionReceipt"),
        parameters: &[CHAIN, ACTION, TXHASH],
        doc: "A receipt with its logs.",
        handler: Handler::Chain(proxy::transaction_receipt),
        ..PROXY
    },
    Endpoint {
        ids: &["A3"],
        group: Group::Accounts,
        path: "/api/account/{address}/tx-list",
        parameters: &[ACCOUNT, CHAIN, START, END, PAGE, OFFSET, SORT, CURSOR],
        doc: "Transactions that an account sent, received or was created by.",
        handler: Handler::Chain(accounts::transactions),
        ..NONE
    },
    Endpoint {
        ids: &["A4"],
        group: Group::Accounts,
        path: "/api/account/{address}/tx-list-internal",
        parameters: &[ACCOUNT, CHAIN, START, END, PAGE, OFFSET, SORT, CURSOR, ZERO_VALUE],
        doc: "Internal transactions of an account: calls with value, creations and self-destructs.",
        handler: Handler::Chain(accounts::internal_of_account),
        ..NONE
    },
    Endpoint {
        ids: &["A5", "A6"],
        group: Group::Accounts,
        path: "/api/account/tx-list-internal",
        parameters: &[
            CHAIN,
            Parameter::query(
                "hash",
                Kind::Hash,
                "The transaction (A6): all of its internal transactions, unless `offset` is given.",
            ),
            Parameter::query(
                "startblock",
                Kind::Block,
                "First block (A5); needed without a hash.",
            ),
            Parameter::query("endblock", Kind::Block, "Last block (A5); needed without a hash."),
            ZERO_VALUE,
            PAGE,
            OFFSET,
            SORT,
            CURSOR,
        ],
        doc: "Internal transactions of a range of blocks (A5) or of a transaction (A6).",
        handler: Handler::Chain(accounts::internal),
        ..NONE
    },
    Endpoint {
        ids: &["A9"],
        group: Group::Accounts,
        path: "/api/account/{address}/mined-blocks",
        parameters: &[ACCOUNT, CHAIN, START, END, PAGE, OFFSET, SORT, CURSOR],
        doc: "Blocks of which an account is the fee recipient.",
        handler: Handler::Chain(accounts::mined_blocks),
        ..NONE
    },
    Endpoint {
        ids: &["B1"],
        group: Group::Blocks,
        path: "/api/block/{blockNumber}/transaction-count",
        parameters: &[Parameter::path("blockNumber", Kind::Integer, "The block."), CHAIN],
        doc: "Numbers of transactions and internal transactions in a block.",
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
        handler: Handler::Chain(blocks::number_by_time),
        ..NONE
    },
    Endpoint {
        ids: &["B3"],
        group: Group::Blocks,
        path: "/api/block/{blockNumber}/rewards",
        parameters: &[Parameter::path("blockNumber", Kind::Integer, "The block."), CHAIN],
        doc: "What a block brought to its fee recipient and to those of its uncles, and what it burnt, in wei.",
        handler: Handler::Chain(rewards::block_rewards),
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
                Kind::Addresses,
                "The contracts, at most 5; one given twice counts once.",
            )
            .required(),
        ],
        doc: "Who made a contract, in which transaction, with which code; the latest time where it was made again.",
        handler: Handler::Chain(contracts::creation),
        ..NONE
    },
    Endpoint {
        ids: &["X1"],
        group: Group::Transactions,
        path: "/api/transaction/{txHash}/status",
        parameters: &[Parameter::path("txHash", Kind::Hash, "The transaction."), CHAIN],
        doc: "Whether a transaction succeeded.",
        handler: Handler::Chain(transactions::status),
        ..NONE
    },
    Endpoint {
        ids: &["X2"],
        group: Group::Transactions,
        path: "/api/transaction/{txHash}/contract-status",
        parameters: &[Parameter::path("txHash", Kind::Hash, "The transaction."), CHAIN],
        doc: "Whether the execution of a transaction failed, and why: the trace's error and the decoded revert reason.",
        handler: Handler::Chain(transactions::contract_status),
        ..NONE
    },
    Endpoint {
        ids: &["health"],
        path: "/health",
        doc: "200 while the process answers.",
        handler: Handler::Service(Report::Health),
        ..NONE
    },
    Endpoint {
        ids: &["ready"],
        path: "/ready",
        doc: "200 while every configured chain is near its node's head, else 503.",
        handler: Handler::Service(Report::Ready),
        ..NONE
    },
    Endpoint {
        ids: &["status"],
        path: "/status",
        doc: "What is known of every configured chain.",
        handler: Handler::Service(Report::Status),
        ..NONE
    },
];
