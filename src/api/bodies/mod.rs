//! The bodies of all operations, field by field, in their order (answers.md sections 3 to 10).

mod accounts;
mod days;
mod prices;
mod tokens;

pub(super) use accounts::{
    ACCOUNT_INTERNAL, BALANCE, BALANCES, FUNDED_BY, MINED_BLOCKS, PAST_BALANCE, RANGE_INTERNAL,
    TRANSACTION_INTERNAL, TRANSACTIONS,
};
pub(super) use days::{
    COIN_SUPPLY, DAILY_BLOCK_TIME, DAILY_BLOCKS, DAILY_FEES, DAILY_GAS, DAILY_GAS_PRICE, DAILY_NEW_ADDRESSES,
    DAILY_PRICES, DAILY_REWARDS, DAILY_SIZE, DAILY_TRANSACTIONS, DAILY_UTILIZATION,
};
pub(super) use prices::TOKEN_PRICE;
pub(super) use tokens::{
    ERC20_TRANSFERS, ERC721_TRANSFERS, ERC1155_TRANSFERS, HELD_IDS, HOLDER_COUNT, HOLDERS, HOLDINGS,
    INVENTORY, TOKEN_BALANCE, TOKEN_BALANCE_AT, TOKEN_INFO, TOKEN_SUPPLY, TOKEN_SUPPLY_AT,
};

use super::shape::{Field, Form};

const fn field(name: &'static str, form: Form, doc: &'static str) -> Field {
    Field::new(name, form, doc)
}

const CHAIN: Field = field("chain", Form::Words(&["mainnet", "testnet"]), "The chain.");
const PAGE: Field = field("page", Form::Integer, "The page.");
const OFFSET: Field = field("offset", Form::Integer, "Rows of a page.");
const SORT: Field = field("sort", Form::Words(&["asc", "desc"]), "The order.");
const UUID: Field = field(
    "uuid",
    Form::Uuid,
    "The same after a re-sync, another after a reorg.",
);
const TRANSACTION_HASH: Field = field("transactionHash", Form::Hash, "The transaction.");
const BLOCK_NUMBER: Field = field("blockNumber", Form::Decimal, "The block.");
const BLOCK_HASH: Field = field("blockHash", Form::Hash, "The block's hash.");
const TIMESTAMP: Field = field("timestamp", Form::Decimal, "The block's time, Unix seconds.");
const TRANSACTION_INDEX: Field = field("transactionIndex", Form::Integer, "Place in the block.");
const IS_ERROR: Field = field("isError", Form::Integer, "1 for a failure, else 0.");

/// The error body.
pub(super) const ERROR: &[Field] = &[field("error", Form::Text, "What is wrong.")];

/// L1, L2, L3.
pub(super) const LOGS: &[Field] = &[field("logs", Form::List(LOG), "The logs.")];
const LOG: &[Field] = &[
    UUID,
    TRANSACTION_HASH,
    BLOCK_NUMBER,
    BLOCK_HASH,
    TIMESTAMP,
    field("contractAddress", Form::Address, "The emitter."),
    field("data", Form::Hex, "The data."),
    field("topics", Form::Text, "A JSON array of the topics, as text."),
    field("logIndex", Form::Integer, "Place in the block."),
    TRANSACTION_INDEX,
];

/// `eth_blockNumber` and the other counts.
pub(super) const RPC_QUANTITY: &[Field] = &[
    JSONRPC,
    RPC_ID,
    field("result", Form::Quantity, "The number.").or_null(),
];
/// The other methods.
pub(super) const RPC_OBJECT: &[Field] = &[
    JSONRPC,
    RPC_ID,
    field(
        "result",
        Form::JsonRpc,
        "The node's own object; `null` where there is none.",
    )
    .or_null(),
];
const JSONRPC: Field = field("jsonrpc", Form::Words(&["2.0"]), "The version of JSON-RPC.");
const RPC_ID: Field = field("id", Form::Integer, "1.");

/// B1.
pub(super) const BLOCK_COUNTS: &[Field] = &[
    field("txsCount", Form::Integer, "Transactions."),
    field(
        "internalTxsCount",
        Form::Integer,
        "Internal transactions, as A4 lists them.",
    ),
];

/// B2.
pub(super) const BLOCK_BY_TIME: &[Field] = &[
    field("timestamp", Form::Decimal, "The time that was asked for."),
    field("closest", Form::Words(&["before", "after"]), "The side."),
    CHAIN,
    BLOCK_NUMBER,
    field("blockTimestamp", Form::Decimal, "Its time."),
];

/// B3.
pub(super) const BLOCK_REWARDS: &[Field] = &[
    BLOCK_NUMBER,
    TIMESTAMP,
    CHAIN,
    field(
        "blockMiner",
        Form::Address,
        "The fee recipient; `null` for block 0.",
    )
    .or_null(),
    field(
        "blockReward",
        Form::Decimal,
        "Static reward, tips and uncle inclusion, wei.",
    ),
    field("staticReward", Form::Decimal, "By fork rules, wei."),
    field("transactionFees", Form::Decimal, "Tips, wei."),
    field("burntFees", Form::Decimal, "Base and blob fees, wei."),
    field("uncleInclusionReward", Form::Decimal, "For naming uncles, wei."),
    field("rewards", Form::Array(REWARD), "Who got what."),
];
const REWARD: &[Field] = &[
    field("address", Form::Address, "The recipient."),
    field("type", Form::Words(&["block", "uncle"]), "For what."),
    field("position", Form::Integer, "Place among the uncles.").or_null(),
    field("reward", Form::Decimal, "Wei."),
];

/// C1.
pub(super) const ABI: &[Field] = &[field("abi", Form::Text, "A JSON array, as text.")];

/// C2.
pub(super) const SOURCE_CODE: &[Field] = &[
    field("contractAddress", Form::Address, "The contract."),
    CHAIN,
    field("contractName", Form::Text, "Its name.").or_null(),
    field("language", Form::Text, "The language of its sources.").or_null(),
    field("compilerVersion", Form::Text, "The compiler's version.").or_null(),
    field("optimizationUsed", Form::Boolean, "Whether the optimizer was on.").or_null(),
    field("runs", Form::Integer, "The optimizer's runs.").or_null(),
    field("evmVersion", Form::Text, "The machine that was compiled for.").or_null(),
    field(
        "constructorArguments",
        Form::Hex,
        "What follows the code in the creating input.",
    )
    .or_null(),
    field("licenseType", Form::Text, "The license of the main file.").or_null(),
    field("sourceCode", Form::Text, "The main file.").or_null(),
    field("sources", Form::Texts, "All files, by path."),
    field("abi", Form::Text, "A JSON array, as text."),
    field("proxy", Form::Boolean, "Whether it runs another contract's code."),
    field(
        "implementation",
        Form::Address,
        "That contract, at the indexed head, where it is known.",
    )
    .or_null(),
    field(
        "matchType",
        Form::Words(&["full", "partial"]),
        "Whether the hash of the metadata behind the code vouches for every byte.",
    ),
];

/// C3.
pub(super) const CREATIONS: &[Field] = &[
    CHAIN,
    field("contracts", Form::List(CREATION), "In request order."),
];
const CREATION: &[Field] = &[
    field("contractAddress", Form::Address, "The contract."),
    field(
        "contractCreator",
        Form::Address,
        "The account that sent the transaction.",
    ),
    field("contractFactory", Form::Address, "The contract that made it.").or_null(),
    field("txHash", Form::Hash, "The transaction."),
    BLOCK_NUMBER,
    TIMESTAMP,
    field("creationBytecode", Form::Hex, "The init code."),
];

/// X1.
pub(super) const STATUS: &[Field] = &[
    field("status", Form::Integer, "1 for a success, 0 for a failure."),
    field("hash", Form::Hash, "The transaction."),
];

/// X2.
pub(super) const CONTRACT_STATUS: &[Field] = &[
    field("hash", Form::Hash, "The transaction."),
    CHAIN,
    IS_ERROR,
    field(
        "errDescription",
        Form::Text,
        "Empty, or the failure with its decoded reason.",
    ),
];

/// `/`, where no page is asked for.
pub(super) const HOME: &[Field] = &[
    field("name", Form::Words(&["quarry"]), "The program."),
    field("docs", Form::Text, "Every operation, to be tried."),
    field("openapi", Form::Text, "The same for programs."),
    field("status", Form::Text, "How the chains and the service are."),
    field("health", Form::Text, "Whether the process answers."),
    field("ready", Form::Text, "Whether the chains are near their heads."),
    field("metrics", Form::Text, "Figures for Prometheus."),
];

/// `/health`.
pub(super) const HEALTH: &[Field] = &[field("status", Form::Words(&["ok"]), "Always.")];

/// `/ready`.
pub(super) const READY: &[Field] = &[
    field("status", Form::Words(&["ready", "not ready"]), "In a word."),
    field("chains", Form::Chains(READY_CHAIN), "Each configured chain."),
];
const READY_CHAIN: &[Field] = &[
    field(
        "ready",
        Form::Boolean,
        "Whether it is near its node's head, or served as stored.",
    ),
    field("indexed", Form::Integer, "Last indexed block.").or_null(),
    field(
        "nodeHead",
        Form::Integer,
        "The node's head; `null` without a node.",
    )
    .or_null(),
    field(
        "lag",
        Form::Integer,
        "Blocks between the two; `null` before the first block.",
    )
    .or_null(),
];

/// `/openapi.json`; what else it has is said by OpenAPI.
pub(super) const OPENAPI: &[Field] = &[field("openapi", Form::Text, "The version of OpenAPI.")];

/// `/status`.
pub(super) const SERVICE_STATUS: &[Field] = &[
    field("status", Form::Words(&["ok"]), "Always."),
    field("chains", Form::Chains(STATUS_CHAIN), "Each configured chain."),
    field("version", Form::Text, "Of the program."),
    field("uptimeSeconds", Form::Integer, "Since the service started."),
    field(
        "memoryBytes",
        Form::Integer,
        "Resident memory, mapped arrays included.",
    )
    .or_null(),
    field(
        "requests",
        Form::Object(STATUS_REQUESTS),
        "What was asked of the service.",
    ),
    field("slow", Form::Object(STATUS_SLOW), "Requests that took long."),
];
const STATUS_REQUESTS: &[Field] = &[
    field(
        "answered",
        Form::Integer,
        "Since the start, whatever the status, and those whose client left before an answer.",
    ),
    field(
        "failed",
        Form::Integer,
        "Of those, with a status of 500 or above.",
    ),
    field(
        "perSecond1m",
        Form::Number,
        "Answered a second over the last minute.",
    ),
    field(
        "perSecond5m",
        Form::Number,
        "Answered a second over the last five minutes.",
    ),
    field(
        "failedPerSecond1m",
        Form::Number,
        "Failed a second over the last minute.",
    ),
    field(
        "failedPerSecond5m",
        Form::Number,
        "Failed a second over the last five minutes.",
    ),
    field("underway", Form::Integer, "Being answered now."),
    field("connections", Form::Integer, "Open now."),
    field(
        "byOperation",
        Form::List(STATUS_OPERATION),
        "The operations that took most time in all.",
    ),
];
const STATUS_OPERATION: &[Field] = &[
    field("operation", Form::Text, "Its ids."),
    field("answered", Form::Integer, "Since the start."),
    field(
        "failed",
        Form::Integer,
        "Of those, with a status of 500 or above.",
    ),
    field(
        "meanMs",
        Form::Number,
        "Mean time to the last byte, milliseconds.",
    ),
    field("medianMs", Form::Number, "Median, estimated."),
    field("p99Ms", Form::Number, "99th percentile, estimated."),
];
const STATUS_SLOW: &[Field] = &[
    field("overMs", Form::Integer, "What counts as slow, milliseconds."),
    field("count", Form::Integer, "Slow requests since the start."),
    field(
        "latest",
        Form::List(STATUS_SLOW_LINE),
        "The last 20, newest first.",
    ),
    field(
        "longest",
        Form::List(STATUS_SLOW_LINE),
        "The 20 that took longest.",
    ),
];
const STATUS_SLOW_LINE: &[Field] = &[
    field("operation", Form::Text, "Its ids."),
    field(
        "request",
        Form::Text,
        "Path and query; values of parameters whose names end in `key`, `token`, `secret`, `password` or the like are left out.",
    ),
    field("status", Form::Integer, "Of the answer."),
    field(
        "ms",
        Form::Number,
        "What the service took, without the time in which the client read.",
    ),
    field("wholeMs", Form::Number, "To the last byte."),
    field("bytes", Form::Integer, "Of the body, as sent."),
    field("at", Form::Integer, "When it ended, Unix seconds."),
];
const STATUS_CHAIN: &[Field] = &[
    field("chainId", Form::Integer, "Chain id (EIP-155).").or_null(),
    field("nodeHead", Form::Integer, "The node's head.").or_null(),
    field("indexed", Form::Integer, "Last indexed block.").or_null(),
    field("indexedHash", Form::Hash, "Its hash.").or_null(),
    field("finalized", Form::Integer, "Last final block.").or_null(),
    field(
        "lag",
        Form::Integer,
        "Blocks to the node's head; before the first block all that are to be stored.",
    )
    .or_null(),
    field(
        "rate",
        Form::Number,
        "Blocks a second; while call frames are filled in, blocks that got theirs.",
    ),
    field(
        "etaSeconds",
        Form::Integer,
        "Until the head is reached, and call frames that are being filled in are there.",
    )
    .or_null(),
    field(
        "verified",
        Form::List(STORED_RANGE),
        "Stored blocks, each of them verified before it was stored.",
    ),
    field(
        "trusted",
        Form::List(STORED_RANGE),
        "Stored blocks that were taken at the word of the node (`--trust-node`).",
    ),
    field("storeBytes", Form::Integer, "Bytes on disk."),
    field(
        "traces",
        Form::Boolean,
        "Whether traces of every block are stored.",
    ),
    field(
        "nodeUp",
        Form::Boolean,
        "Whether the node tells its head, or refuses to in its own words; of a replica, whether its writer says so.",
    ),
    field("following", Form::Boolean, "Whether it follows the head."),
    field(
        "message",
        Form::Text,
        "What it is doing, or what hinders it; and where a part of this report could not be read, that.",
    ),
    field(
        "diskFull",
        Form::Boolean,
        "Whether it waits for room on the disk.",
    ),
    field(
        "stopped",
        Form::Boolean,
        "Whether it ended for a reason that waiting cannot mend.",
    ),
    field("reorgs", Form::Integer, "Reorgs since the start."),
    field(
        "verificationFailures",
        Form::Integer,
        "Blocks refused since the start.",
    ),
    field(
        "tokens",
        Form::Object(STATUS_TOKENS),
        "What is found out about tokens; `null` without a node.",
    )
    .or_null(),
    field(
        "replica",
        Form::Object(STATUS_REPLICA),
        "How far this replica is behind the process that writes; `null` where it is no replica.",
    )
    .or_null(),
    field(
        "nativeLedger",
        Form::Text,
        "Whether native balances are kept; else since which block they are not, and why.",
    ),
    field(
        "withheld",
        Form::List(WITHHELD),
        "What this store does not answer, however long one waits (without traces, until the node tells them); those answers are 503.",
    ),
];
const WITHHELD: &[Field] = &[
    field("operations", Form::Text, "Ids of operations."),
    field("because", Form::Text, "Of what, and why."),
];
const STATUS_REPLICA: &[Field] = &[
    field(
        "writerIndexed",
        Form::Integer,
        "The last block that the writer showed when it gave its last sign of life.",
    )
    .or_null(),
    field("behind", Form::Integer, "Blocks to that one.").or_null(),
    field(
        "seenSecondsAgo",
        Form::Number,
        "Since everything that the writer had on disk was last seen.",
    ),
    field(
        "writerSecondsAgo",
        Form::Number,
        "Since the writer's last sign of life.",
    )
    .or_null(),
];
const STATUS_TOKENS: &[Field] = &[
    field("known", Form::Integer, "Contracts that emitted a token event."),
    field("judged", Form::Integer, "Tokens compared with their contracts."),
    field("exact", Form::Integer, "Of those, what events explain."),
    field("notExact", Form::Integer, "Of those, what the node answers for."),
    field("waiting", Form::Integer, "Tokens that wait to be asked about."),
    field("questions", Form::Integer, "Questions asked since the start."),
    field(
        "errors",
        Form::Integer,
        "Of those, what the node failed to answer.",
    ),
];
const STORED_RANGE: &[Field] = &[
    field("from", Form::Integer, "First block."),
    field("to", Form::Integer, "Last block."),
];
