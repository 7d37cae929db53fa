//! What can be wrong with a block.

use crate::model::{Address, B256, Bloom, FrameKind, U256};

/// The first thing that is wrong with a block: `expected` is what the block or its hash commits to, `found`
/// is what its contents give. Transactions, receipts and traces are named by their place in the block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The block does not follow the one before it.
    #[error("the parent hash is {found}, but the block before has the hash {expected}")]
    ParentHash {
        /// Hash of the block before.
        expected: B256,
        /// Parent hash of the header.
        found: B256,
    },
    /// The header does not hash to the block hash.
    #[error("the header hashes to {found}, but the block hash is {expected}{}", unknown_fields_hint(*unknown_fields))]
    BlockHash {
        /// Hash of the block as stated.
        expected: B256,
        /// Hash of the header.
        found: B256,
        /// Whether the header has fields that this version does not know, which may be why.
        unknown_fields: bool,
    },
    /// The header lacks a field that came with an earlier fork than one that it has.
    #[error("the header states {with} and no {field}")]
    MissingHeaderField {
        /// What is missing, as in JSON-RPC.
        field: &'static str,
        /// What is there.
        with: &'static str,
    },
    /// A receipt names another contract than its transaction creates, none, or one where nothing is created.
    #[error(
        "receipt {transaction} names {} as created, but its transaction creates {}",
        address_or_none(found),
        address_or_none(expected)
    )]
    CreatedContract {
        /// Place of the transaction.
        transaction: usize,
        /// The contract that follows from sender and nonce; `None` for a call.
        expected: Option<Address>,
        /// The contract as stated.
        found: Option<Address>,
    },
    /// A transaction has a type other than 0 to 4.
    #[error(
        "transaction {transaction} has type {kind:#04x}, which cannot be verified: use --trust-node for a chain with transaction types of its own"
    )]
    UnsupportedTransactionType {
        /// Place of the transaction.
        transaction: usize,
        /// Its EIP-2718 type.
        kind: u8,
    },
    /// A transaction lacks a field that its type needs.
    #[error("transaction {transaction} of type {kind} states no {field}")]
    MissingTransactionField {
        /// Place of the transaction.
        transaction: usize,
        /// Its EIP-2718 type.
        kind: u8,
        /// The field, as in JSON-RPC.
        field: &'static str,
    },
    /// A transaction does not hash to its hash.
    #[error(
        "transaction {transaction} hashes to {found}, but its hash is given as {expected}: use --trust-node if the chain encodes transactions in a way of its own"
    )]
    TransactionHash {
        /// Place of the transaction.
        transaction: usize,
        /// Hash as stated.
        expected: B256,
        /// Hash of its encoding.
        found: B256,
    },
    /// The `v` of a typed transaction is not its parity.
    #[error("transaction {transaction} states the v {found}, but its parity is {expected}")]
    TransactionParity {
        /// Place of the transaction.
        transaction: usize,
        /// Parity as stated, which its hash covers.
        expected: u64,
        /// `v` as stated.
        found: u64,
    },
    /// The transactions are not those of the header.
    #[error("the transactions have the root {found}, but the header states {expected}")]
    TransactionsRoot {
        /// Root in the header.
        expected: B256,
        /// Root of the transactions.
        found: B256,
    },
    /// There are more uncle headers than uncles or fewer.
    #[error("there are {found} uncle headers for {expected} uncles")]
    OmmerCount {
        /// Number of uncles.
        expected: usize,
        /// Number of uncle headers.
        found: usize,
    },
    /// An uncle's header does not hash to the uncle's hash.
    #[error("the header of uncle {uncle} hashes to {found}, but its hash is given as {expected}")]
    OmmerHash {
        /// Place of the uncle.
        uncle: usize,
        /// Hash as stated.
        expected: B256,
        /// Hash of the header.
        found: B256,
    },
    /// The uncles are not those of the header.
    #[error("the uncles have the hash {found}, but the header states {expected}")]
    OmmersHash {
        /// `sha3Uncles` of the header.
        expected: B256,
        /// Hash of the uncle headers.
        found: B256,
    },
    /// The header says that there are uncles and none is listed, or the other way round.
    #[error("the block lists {found} uncles, which cannot have the hash {expected} that the header states")]
    OmmersPresence {
        /// `sha3Uncles` of the header.
        expected: B256,
        /// Number of uncles listed.
        found: usize,
    },
    /// The withdrawals are not those of the header.
    #[error(
        "the withdrawals have {}, but the header states {}",
        root_or_none(found),
        root_or_none(expected)
    )]
    WithdrawalsRoot {
        /// Root in the header; `None` before Shanghai.
        expected: Option<B256>,
        /// Root of the withdrawals; `None` when the block has no list of them.
        found: Option<B256>,
    },
    /// There are more receipts than transactions or fewer.
    #[error("there are {found} receipts for {expected} transactions")]
    ReceiptCount {
        /// Number of transactions.
        expected: usize,
        /// Number of receipts.
        found: usize,
    },
    /// A receipt belongs to another transaction than the one in its place.
    #[error("receipt {transaction} is of transaction {found}, but {expected} is in that place")]
    ReceiptOrder {
        /// Place of the receipt.
        transaction: usize,
        /// Hash of the transaction in that place.
        expected: B256,
        /// Transaction hash of the receipt.
        found: B256,
    },
    /// A receipt from Byzantium on has no status.
    #[error(
        "receipt {transaction} states no status: use --genesis for a chain that reaches Byzantium after block 0"
    )]
    MissingStatus {
        /// Place of the receipt.
        transaction: usize,
    },
    /// The gas used by a transaction is not the step of the cumulative gas.
    #[error(
        "the gas used up to receipt {transaction} is given as {found}, but that of the receipts adds up to {expected}"
    )]
    CumulativeGas {
        /// Place of the receipt.
        transaction: usize,
        /// Cumulative gas before it and gas used by it.
        expected: u64,
        /// Cumulative gas as stated.
        found: u64,
    },
    /// The gas used by all transactions is not that of the header.
    #[error("the transactions used {found} gas, but the header states {expected}")]
    GasUsed {
        /// Gas used in the header.
        expected: u64,
        /// Cumulative gas of the last receipt, 0 without receipts.
        found: u64,
    },
    /// The bloom filter of a receipt is not that of its logs.
    #[error("the logs bloom of receipt {transaction} is not that of its logs")]
    ReceiptBloom {
        /// Place of the receipt.
        transaction: usize,
        /// Bloom as stated.
        expected: Box<Bloom>,
        /// Bloom of the logs.
        found: Box<Bloom>,
    },
    /// The bloom filter of the block is not that of its logs.
    #[error("the logs bloom of the header is not that of the logs of the block")]
    LogsBloom {
        /// Bloom in the header.
        expected: Box<Bloom>,
        /// Bloom of the logs.
        found: Box<Bloom>,
    },
    /// The receipts are not those of the header.
    #[error("the receipts have the root {found}, but the header states {expected}{}", early_forks_hint(*early_forks))]
    ReceiptsRoot {
        /// Root in the header.
        expected: B256,
        /// Root of the receipts.
        found: B256,
        /// Whether the block may be of before Byzantium for all that is known of the chain: its receipts were taken to commit to
        /// their status (EIP-658), where earlier ones commit to a state root.
        early_forks: bool,
    },
    /// There are more traces than transactions or fewer.
    #[error("there are traces of {found} transactions for {expected} transactions")]
    TraceCount {
        /// Number of transactions.
        expected: usize,
        /// Number of traces.
        found: usize,
    },
    /// The trace of a transaction does not begin with its top call.
    #[error("trace {transaction} does not begin with the top call of its transaction")]
    TraceTop {
        /// Place of the trace.
        transaction: usize,
    },
    /// The top call of a trace is not of the kind that its transaction is.
    #[error(
        "trace {transaction} is of a {}, but its transaction is a {}",
        found.as_str(),
        expected.as_str()
    )]
    TraceKind {
        /// Place of the trace.
        transaction: usize,
        /// What the transaction does: a call or a creation.
        expected: FrameKind,
        /// What the top call does.
        found: FrameKind,
    },
    /// The top call of a trace comes from another account than the transaction.
    #[error("trace {transaction} is of a call from {found}, but its transaction is from {expected}")]
    TraceSender {
        /// Place of the trace.
        transaction: usize,
        /// Sender of the transaction.
        expected: Address,
        /// Caller of the top call.
        found: Address,
    },
    /// The top call of a trace has another value than the transaction.
    #[error("trace {transaction} is of a call with the value {found}, but its transaction has {expected}")]
    TraceValue {
        /// Place of the trace.
        transaction: usize,
        /// Value of the transaction, wei.
        expected: U256,
        /// Value of the top call, wei.
        found: U256,
    },
    /// The top call of a trace has another input than the transaction.
    #[error("trace {transaction} is of a call with another input than that of its transaction")]
    TraceInput {
        /// Place of the trace.
        transaction: usize,
    },
    /// The top call of a trace failed and the receipt says that the transaction did not, or the other way round.
    #[error("trace {transaction} is of a call that {}, but its receipt has the status {}", outcome(error.as_deref()), u8::from(*status))]
    TraceOutcome {
        /// Place of the trace.
        transaction: usize,
        /// Status of the receipt.
        status: bool,
        /// Error of the top call.
        error: Option<String>,
    },
    /// The top call of a trace goes to another account than the transaction, or creates another contract
    /// than the receipt states.
    #[error(
        "trace {transaction} is of a call to {}, but its transaction is to {}",
        address_or_none(found),
        address_or_none(expected)
    )]
    TraceRecipient {
        /// Place of the trace.
        transaction: usize,
        /// Recipient of the transaction, or the contract that the receipt says it created.
        expected: Option<Address>,
        /// Callee of the top call.
        found: Option<Address>,
    },
}

const fn unknown_fields_hint(unknown_fields: bool) -> &'static str {
    if unknown_fields {
        ": the header has fields that this version does not know, use --trust-node if the chain adds fields of its own"
    } else {
        ""
    }
}

const fn early_forks_hint(early_forks: bool) -> &'static str {
    if early_forks {
        ": use --genesis for a chain that reaches Byzantium after block 0"
    } else {
        ""
    }
}

fn outcome(error: Option<&str>) -> String {
    error.map_or_else(|| "succeeded".to_owned(), |error| format!("failed ({error})"))
}

fn root_or_none(root: &Option<B256>) -> String {
    root.map_or_else(|| "no root".to_owned(), |root| format!("the root {root}"))
}

impl VerifyError {
    /// Whether it is the traces that are wrong.
    pub(in crate::sync) const fn is_of_traces(&self) -> bool {
        matches!(
            self,
            Self::TraceCount { .. }
                | Self::TraceTop { .. }
                | Self::TraceKind { .. }
                | Self::TraceSender { .. }
                | Self::TraceValue { .. }
                | Self::TraceInput { .. }
                | Self::TraceOutcome { .. }
                | Self::TraceRecipient { .. }
        )
    }
}

fn address_or_none(address: &Option<Address>) -> String {
    address.map_or_else(|| "no account".to_owned(), |address| address.to_string())
}
