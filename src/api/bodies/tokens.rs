//! The bodies of operations on tokens.

use super::{
    BLOCK_HASH, BLOCK_NUMBER, CHAIN, OFFSET, PAGE, SORT, TIMESTAMP, TRANSACTION_HASH, TRANSACTION_INDEX,
    UUID, field,
};
use crate::api::shape::{Field, Form};

const HOLDER: Field = field("address", Form::Address, "The holder.");
const CONTRACT: Field = field("contractAddress", Form::Address, "The token's contract.");
const BALANCE: Field = field(
    "balance",
    Form::Decimal,
    "What it holds, smallest units; of ERC-721 the number of ids.",
);
const SUPPLY: Field = field(
    "totalSupply",
    Form::Decimal,
    "The supply, smallest units; `null` where nobody can tell it, and T1 refuses for good.",
)
.or_null();
const BALANCE_ASKED: Field = field(
    "balance",
    Form::Amount,
    "What it holds, in the unit asked for; of ERC-721 the number of ids.",
);
const SUPPLY_ASKED: Field = field("totalSupply", Form::Amount, "The supply, in the unit asked for.");
const BLOCK: Field = field("block", Form::Integer, "After which block.");
const NAME: Field = field("tokenName", Form::Text, "The contract's word.").or_null();
const SYMBOL: Field = field("tokenSymbol", Form::Text, "The contract's word.").or_null();
const DECIMALS: Field = field("tokenDecimal", Form::Integer, "The contract's word.").or_null();

/// T1.
pub(in crate::api) const TOKEN_SUPPLY: &[Field] = &[
    field("address", Form::Address, "The token's contract."),
    CHAIN,
    SUPPLY_ASKED,
];
/// T8.
pub(in crate::api) const TOKEN_SUPPLY_AT: &[Field] = &[
    field("address", Form::Address, "The token's contract."),
    CHAIN,
    BLOCK,
    SUPPLY_ASKED,
];
/// T2.
pub(in crate::api) const TOKEN_BALANCE: &[Field] = &[HOLDER, CONTRACT, CHAIN, BALANCE_ASKED];
/// T9.
pub(in crate::api) const TOKEN_BALANCE_AT: &[Field] = &[HOLDER, CONTRACT, CHAIN, BLOCK, BALANCE_ASKED];
/// T4.
pub(in crate::api) const HOLDER_COUNT: &[Field] = &[
    CONTRACT,
    CHAIN,
    field("holderCount", Form::Integer, "Accounts that hold some of it."),
];

/// T3.
pub(in crate::api) const HOLDERS: &[Field] = &[
    CONTRACT,
    CHAIN,
    PAGE,
    OFFSET,
    field(
        "holders",
        Form::List(&[
            HOLDER,
            BALANCE,
            field(
                "share",
                Form::Text,
                "Percent of the supply, four decimals; `null` where that is 0, or nobody can tell it (T1). Then what is held is what the events come to, which T2 may refuse.",
            )
            .or_null(),
        ]),
        "The holders, largest first, then by address.",
    ),
];

/// T6, T7.
pub(in crate::api) const HOLDINGS: &[Field] = &[
    HOLDER,
    CHAIN,
    field(
        "tokens",
        Form::List(&[CONTRACT, NAME, SYMBOL, DECIMALS, BALANCE]),
        "The tokens, by contract address.",
    ),
];

/// Ids of ERC-1155 tokens.
pub(in crate::api) const HELD_IDS: &[Field] = &[
    HOLDER,
    CHAIN,
    PAGE,
    OFFSET,
    field(
        "tokens",
        Form::List(&[
            CONTRACT,
            field("tokenId", Form::Decimal, "The id."),
            field("balance", Form::Decimal, "Units of it, more than none."),
            NAME,
            SYMBOL,
        ]),
        "The ids, by contract address and then as numbers.",
    ),
];

/// T10.
pub(in crate::api) const INVENTORY: &[Field] = &[
    HOLDER,
    CONTRACT,
    CHAIN,
    PAGE,
    OFFSET,
    field(
        "tokens",
        Form::List(&[CONTRACT, field("tokenId", Form::Decimal, "The id.")]),
        "The ids, ascending as numbers.",
    ),
];

const FILTER: Field = field(
    "contractAddress",
    Form::Address,
    "The token that was asked for; `null` for all.",
)
.or_null();

/// A7.
pub(in crate::api) const ERC20_TRANSFERS: &[Field] = &[
    field("address", Form::Address, "The account."),
    CHAIN,
    FILTER,
    PAGE,
    OFFSET,
    SORT,
    field(
        "transfers",
        Form::List(&transfer(field("value", Form::Decimal, "Smallest units."))),
        "The transfers.",
    ),
];

/// A8.
pub(in crate::api) const ERC721_TRANSFERS: &[Field] = &[
    field("address", Form::Address, "The account."),
    CHAIN,
    FILTER,
    PAGE,
    OFFSET,
    SORT,
    field(
        "transfers",
        Form::List(&transfer(field("tokenId", Form::Decimal, "The id."))),
        "The transfers.",
    ),
];

/// A7's like of ERC-1155.
pub(in crate::api) const ERC1155_TRANSFERS: &[Field] = &[
    field("address", Form::Address, "The account."),
    CHAIN,
    FILTER,
    PAGE,
    OFFSET,
    SORT,
    field(
        "transfers",
        Form::List(MULTI_TRANSFER),
        "The transfers, each id of a batch by itself.",
    ),
];
const MULTI_TRANSFER: &[Field] = &{
    let fields = transfer(field("tokenId", Form::Decimal, "The id."));
    let mut all = [TOKEN_VALUE; 21];
    let mut at = 0;
    // The value stands behind the id.
    while at < fields.len() {
        all[if at < 11 { at } else { at + 1 }] = fields[at];
        at += 1;
    }
    all
};
const TOKEN_VALUE: Field = field("tokenValue", Form::Decimal, "Units of the id.");

/// A transfer, of which `moved` says what it moved.
const fn transfer(moved: Field) -> [Field; 20] {
    [
        UUID,
        TRANSACTION_HASH,
        field("logIndex", Form::Integer, "Place of its log in the block."),
        BLOCK_NUMBER,
        BLOCK_HASH,
        TIMESTAMP,
        TRANSACTION_INDEX,
        field("from", Form::Address, "From whom; the zero address for a mint."),
        field("to", Form::Address, "To whom; the zero address for a burn."),
        CONTRACT,
        moved,
        NAME,
        SYMBOL,
        DECIMALS,
        field("nonce", Form::Decimal, "The transaction's nonce."),
        field("gas", Form::Decimal, "The transaction's gas limit."),
        field("gasPrice", Form::Decimal, "Effective gas price, wei."),
        field("gasUsed", Form::Decimal, "Gas that the transaction used."),
        field(
            "cumulativeGasUsed",
            Form::Decimal,
            "Gas used in the block up to and with it.",
        ),
        field("confirmations", Form::Integer, "Indexed head - block + 1."),
    ]
}

/// T5.
pub(in crate::api) const TOKEN_INFO: &[Field] = &[
    CONTRACT,
    CHAIN,
    field("tokenName", Form::Text, OF_CONTRACT).or_null(),
    field("symbol", Form::Text, OF_CONTRACT).or_null(),
    field("decimals", Form::Integer, OF_CONTRACT).or_null(),
    field(
        "tokenType",
        Form::Words(&["ERC20", "ERC721", "ERC1155"]),
        "By its first transfer.",
    ),
    SUPPLY,
    field("holderCount", Form::Integer, "Accounts that hold some of it."),
    field("transferCount", Form::Integer, "Its transfers."),
    field(
        "creator",
        Form::Address,
        "Who sent the creating transaction, where the store knows it.",
    )
    .or_null(),
    field("createdBlock", Form::Decimal, "Block of its creation.").or_null(),
    project("description"),
    project("website"),
    project("email"),
    project("blog"),
    project("reddit"),
    project("twitter"),
    project("github"),
    project("telegram"),
    project("discord"),
    project("whitepaper"),
    project("logoURI"),
    field(
        "tokenPriceUSD",
        Form::Text,
        "US dollars, exact: the last imported price dated at or before the indexed head.",
    )
    .or_null(),
];

/// Who tells names.
const OF_CONTRACT: &str = "The contract's word; where it has none, that of an imported list of tokens.";

/// A field that a list of tokens tells.
const fn project(name: &'static str) -> Field {
    field(name, Form::Text, "By imported lists of tokens.").or_null()
}
