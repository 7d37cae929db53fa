//! The endpoint list. Adding an operation is adding an entry here and its parser.

use crate::metrics::Page;

use super::endpoint::{Endpoint, Group, Kind, Parameter};
use super::logs::OPERATORS;
use super::page::OFFSET_MAX;
use super::reports::HTML;
use super::service::{Handler, Report};
use super::{accounts, blocks, bodies, contracts, logs, proxy, rewards, transactions};

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
    bodies: &[],
    media: None,
    example: "",
    not_found: &[],
    bad_requests: &[],
    asks_node: false,
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
        bodies: &[bodies::LOGS],
        example: "/api/logs/get-logs?address=0xe7f1725e7734ce288f8367e1bb143e90bb3f0512&topic0=0x6dfc21ac0c8c2db036305d8bc6f887630d35e156f37d5a7e2275bc05bc004846&offset=2",
        bad_requests: &[
            "At least one topic is required",
            "Operator topic0_1_opr names a topic that is not given",
        ],
        handler: Handler::Chain(logs::get_logs),
        ..NONE
    },
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
        asks_node: true,
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
    Endpoint {
        ids: &["A3"],
        group: Group::Accounts,
        path: "/api/account/{address}/tx-list",
        parameters: &[ACCOUNT, CHAIN, START, END, PAGE, OFFSET, SORT, CURSOR],
        doc: "Transactions that an account sent, received or was created by.",
        bodies: &[bodies::TRANSACTIONS],
        example: "/api/account/0x70997970c51812dc3a010c7d01b50e0d17dc79c8/tx-list?offset=2",
        handler: Handler::Chain(accounts::transactions),
        ..NONE
    },
    Endpoint {
        ids: &["A4"],
        group: Group::Accounts,
        path: "/api/account/{address}/tx-list-internal",
        parameters: &[ACCOUNT, CHAIN, START, END, PAGE, OFFSET, SORT, CURSOR, ZERO_VALUE],
        doc: "Internal transactions of an account: calls with value, creations and self-destructs.",
        bodies: &[bodies::ACCOUNT_INTERNAL],
        example: "/api/account/0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266/tx-list-internal?offset=2",
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
        bodies: &[bodies::RANGE_INTERNAL, bodies::TRANSACTION_INTERNAL],
        example: "/api/account/tx-list-internal?hash=0xe317e22d0d58aeafff0d43a1c99dde3be757834f1265571554c3b93e331a1a64",
        not_found: &["Transaction not found"],
        bad_requests: &[
            "Missing required parameter: startblock",
            "Missing required parameter: endblock",
        ],
        handler: Handler::Chain(accounts::internal),
        ..NONE
    },
    Endpoint {
        ids: &["A9"],
        group: Group::Accounts,
        path: "/api/account/{address}/mined-blocks",
        parameters: &[ACCOUNT, CHAIN, START, END, PAGE, OFFSET, SORT, CURSOR],
        doc: "Blocks of which an account is the fee recipient.",
        bodies: &[bodies::MINED_BLOCKS],
        example: "/api/account/0x31df6c4bbcda9543fc4df24dc5cb894aefde7772/mined-blocks?offset=2",
        handler: Handler::Chain(accounts::mined_blocks),
        ..NONE
    },
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
    },
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
    Endpoint {
        ids: &["health"],
        path: "/health",
        doc: "200 while the process answers.",
        bodies: &[bodies::HEALTH],
        example: "/health",
        handler: Handler::Service(Report::Health),
        ..NONE
    },
    Endpoint {
        ids: &["ready"],
        path: "/ready",
        doc: "200 while every configured chain is near its node's head, else 503.",
        bodies: &[bodies::READY],
        example: "/ready",
        handler: Handler::Service(Report::Ready),
        ..NONE
    },
    Endpoint {
        ids: &["status"],
        path: "/status",
        doc: "What is known of every configured chain.",
        bodies: &[bodies::SERVICE_STATUS],
        handler: Handler::Service(Report::Status),
        ..NONE
    },
    Endpoint {
        ids: &["openapi"],
        path: "/openapi.json",
        doc: "This list for programs (OpenAPI 3.1).",
        bodies: &[bodies::OPENAPI],
        handler: Handler::Service(Report::OpenApi),
        ..NONE
    },
    Endpoint {
        ids: &["docs"],
        path: "/docs",
        doc: "This list for people, as a page that loads nothing from elsewhere.",
        media: Some(HTML),
        handler: Handler::Service(Report::Docs),
        ..NONE
    },
    Endpoint {
        ids: &["metrics"],
        path: "/metrics",
        doc: "Counters and gauges for Prometheus.",
        media: Some(Page::CONTENT_TYPE),
        handler: Handler::Service(Report::Metrics),
        ..NONE
    },
];
