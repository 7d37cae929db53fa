//! The endpoints of the group of accounts.

use super::{ACCOUNT, CHAIN, CURSOR, END, NONE, OFFSET, PAGE, SORT, START};
use crate::api::endpoint::{Endpoint, Group, Kind, NodeUse, Parameter};
use crate::api::service::Handler;
use crate::api::{accounts, balances, bodies};
use crate::desk::amounts::Unit;

const ZERO_VALUE: Parameter = Parameter::query(
    "includeZeroValue",
    Kind::OneOf(&["true", "false"]),
    "Whether calls that move nothing are listed too.",
)
.or("false");

const UNIT: Parameter = Parameter::query(
    "unit",
    Kind::OneOf(Unit::NAMES),
    "`base` for wei, `coin` for whole coins with their exact fraction.",
)
.or("base");

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["A1"],
        group: Group::Accounts,
        path: "/api/account/{address}/balance",
        parameters: &[ACCOUNT, CHAIN, UNIT],
        doc: "What an account holds in the native coin; `X-Balance-Source` says whether the node was asked. One whose only part in the chain is \
              its genesis allocation is known, too.",
        bodies: &[bodies::BALANCE],
        example: "/api/account/0x70997970c51812dc3a010c7d01b50e0d17dc79c8/balance",
        not_found: &["Address not found"],
        node: NodeUse::Needed,
        handler: Handler::Chain(balances::of_account),
        ..NONE
    },
    Endpoint {
        ids: &["A2"],
        group: Group::Accounts,
        path: "/api/account/balance-multi",
        parameters: &[
            CHAIN,
            Parameter::query(
                "address",
                Kind::Addresses(100),
                "The accounts, at most 100; one given twice is answered once.",
            )
            .required(),
            UNIT,
        ],
        doc: "What several accounts hold in the native coin; an unknown one holds 0. Where the store cannot tell that of one of them (what genesis \
              allocated was not imported), the node is asked for all, and where that fails so does the answer.",
        bodies: &[bodies::BALANCES],
        example: "/api/account/balance-multi?unit=coin&address=0x70997970c51812dc3a010c7d01b50e0d17dc79c8,0xe7f1725e7734ce288f8367e1bb143e90bb3f0512",
        bad_requests: &["At most 100 addresses are allowed"],
        node: NodeUse::Needed,
        handler: Handler::Chain(balances::of_accounts),
        ..NONE
    },
    Endpoint {
        ids: &["A10"],
        group: Group::Accounts,
        path: "/api/account/{address}/funded-by",
        parameters: &[ACCOUNT, CHAIN],
        doc: "The first inflow of the native coin to an account: from whom, how and how long ago.",
        bodies: &[bodies::FUNDED_BY],
        example: "/api/account/0x02484cb50aac86eae85610d6f4bf026f30f6627d/funded-by",
        not_found: &["Address not found"],
        node: NodeUse::Needed,
        handler: Handler::Chain(balances::funded_by),
        ..NONE
    },
    Endpoint {
        ids: &["A11"],
        group: Group::Accounts,
        path: "/api/account/{address}/balance-history",
        parameters: &[
            ACCOUNT,
            CHAIN,
            Parameter::query("block", Kind::Block, "After which block.").or("latest"),
            UNIT,
        ],
        doc: "What an account held in the native coin after a block; 0 for an unknown one.",
        bodies: &[bodies::PAST_BALANCE],
        example: "/api/account/0x70997970c51812dc3a010c7d01b50e0d17dc79c8/balance-history?block=28",
        node: NodeUse::Needed,
        handler: Handler::Chain(balances::of_account_at),
        ..NONE
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
];
