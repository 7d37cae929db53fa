//! The bodies of the lists of accounts.

use super::{
    BLOCK_HASH, BLOCK_NUMBER, CHAIN, IS_ERROR, OFFSET, PAGE, SORT, TIMESTAMP, TRANSACTION_HASH,
    TRANSACTION_INDEX, UUID, field,
};
use crate::api::shape::{Field, Form};

/// A1.
pub(in crate::api) const BALANCE: &[Field] = &[HOLDER, BALANCE_NOW];
/// A2.
pub(in crate::api) const BALANCES: &[Field] = &[
    CHAIN,
    field("balances", Form::List(BALANCE), "In the order of the request."),
];
/// A11.
pub(in crate::api) const PAST_BALANCE: &[Field] = &[
    HOLDER,
    CHAIN,
    field("block", Form::Integer, "The block."),
    field(
        "balance",
        Form::Amount,
        "What it held after the block, in the unit asked for.",
    ),
];
const HOLDER: Field = field("account", Form::Address, "The account.");
const BALANCE_NOW: Field = field("balance", Form::Amount, "What it holds, in the unit asked for.");

/// A10.
pub(in crate::api) const FUNDED_BY: &[Field] = &[
    field("address", Form::Address, "The account."),
    CHAIN,
    field(
        "fundingAddress",
        Form::Address,
        "Who sent; `null` for a reward, a withdrawal, the genesis allocation.",
    )
    .or_null(),
    field("fundingTxn", Form::Hash, "In which transaction; `null` as above.").or_null(),
    field(
        "kind",
        Form::Words(&["transaction", "internal", "withdrawal", "reward", "genesis"]),
        "How.",
    ),
    field("value", Form::Decimal, "Wei."),
    field("block", Form::Integer, "The block."),
    TIMESTAMP,
    field(
        "ageSeconds",
        Form::Integer,
        "Seconds until the indexed head's time.",
    ),
    field("age", Form::Text, "The same as text: \"1230 days 4 hrs\"."),
];

/// A3.
pub(in crate::api) const TRANSACTIONS: &[Field] = &[
    field("address", Form::Address, "The account."),
    CHAIN,
    PAGE,
    OFFSET,
    SORT,
    field("transactions", Form::List(TRANSACTION), "The transactions."),
];
const TRANSACTION: &[Field] = &[
    field("hash", Form::Hash, "The transaction."),
    BLOCK_NUMBER,
    TIMESTAMP,
    BLOCK_HASH,
    TRANSACTION_INDEX,
    field("from", Form::Address, "The sender."),
    field("to", Form::Address, "The recipient; `null` for a creation.").or_null(),
    field("contractAddress", Form::Address, "The created contract.").or_null(),
    field("value", Form::Decimal, "Value, wei."),
    field("nonce", Form::Decimal, "The sender's nonce."),
    field("type", Form::Integer, "Transaction type (EIP-2718)."),
    field("gas", Form::Decimal, "Gas limit."),
    field("gasUsed", Form::Decimal, "Gas used."),
    field(
        "cumulativeGasUsed",
        Form::Decimal,
        "Gas used in the block up to and with it.",
    ),
    field("gasPrice", Form::Decimal, "Effective gas price, wei."),
    field("maxFeePerGas", Form::Decimal, "Wei (EIP-1559).").or_null(),
    field("maxPriorityFeePerGas", Form::Decimal, "Wei (EIP-1559).").or_null(),
    field(
        "fee",
        Form::Decimal,
        "What the sender paid: gas, blobs and any L1 part, wei; 0 where it was paid in a token (Celo's `feeCurrency`).",
    ),
    field("status", Form::Integer, "1 for a success, 0 for a failure."),
    IS_ERROR,
    field("input", Form::Hex, "Call data, or the init code of a creation."),
    field("methodId", Form::Hex, "The first four bytes of the input."),
    field("functionName", Form::Text, "Empty without an ABI."),
    field("confirmations", Form::Integer, "Indexed head - block + 1."),
];

/// A4.
pub(in crate::api) const ACCOUNT_INTERNAL: &[Field] = &[
    field("address", Form::Address, "The account."),
    CHAIN,
    PAGE,
    OFFSET,
    SORT,
    INTERNALS,
];
/// A5; with `hash` (A6) only `hash`, `chain` and the list.
pub(in crate::api) const RANGE_INTERNAL: &[Field] = &[
    field("startblock", Form::Integer, "First block."),
    field("endblock", Form::Integer, "Last block."),
    CHAIN,
    PAGE,
    OFFSET,
    SORT,
    INTERNALS,
];
/// A6.
pub(in crate::api) const TRANSACTION_INTERNAL: &[Field] =
    &[field("hash", Form::Hash, "The transaction."), CHAIN, INTERNALS];
const INTERNALS: Field = field(
    "internalTransactions",
    Form::List(INTERNAL),
    "The internal transactions.",
);
const INTERNAL: &[Field] = &[
    UUID,
    TRANSACTION_HASH,
    BLOCK_NUMBER,
    BLOCK_HASH,
    TIMESTAMP,
    TRANSACTION_INDEX,
    field("from", Form::Address, "The caller."),
    field("to", Form::Address, "Who was called; `null` for a creation.").or_null(),
    field(
        "contractAddress",
        Form::Address,
        "The created contract; `null` if it failed.",
    )
    .or_null(),
    field("value", Form::Decimal, "Value, wei."),
    field(
        "type",
        Form::Words(&[
            "call",
            "delegatecall",
            "staticcall",
            "callcode",
            "create",
            "create2",
            "selfdestruct",
        ]),
        "What it does.",
    ),
    field(
        "traceId",
        Form::Text,
        "Place in the call tree, unique in the transaction.",
    ),
    field("depth", Form::Integer, "1 for a call of the top call."),
    field("gas", Form::Decimal, "Gas given."),
    field("gasUsed", Form::Decimal, "Gas used."),
    field("input", Form::Hex, "Call data, or init code."),
    field("output", Form::Hex, "Return data, or code."),
    field("isError", Form::Integer, "1 if it or any ancestor failed."),
    field("errCode", Form::Text, "Its own failure; empty without one."),
];

/// A9.
pub(in crate::api) const MINED_BLOCKS: &[Field] = &[
    field("address", Form::Address, "The fee recipient."),
    CHAIN,
    PAGE,
    OFFSET,
    SORT,
    field("blocks", Form::List(MINED_BLOCK), "The blocks."),
];
const MINED_BLOCK: &[Field] = &[
    BLOCK_NUMBER,
    TIMESTAMP,
    BLOCK_HASH,
    field(
        "blockReward",
        Form::Decimal,
        "Static reward, tips and uncle inclusion, wei.",
    ),
    field("txsCount", Form::Integer, "Transactions."),
];
