//! The endpoints of the group of tokens, and the lists of an account's token transfers.

use super::{ACCOUNT, CHAIN, CURSOR, END, NONE, OFFSET, PAGE, SORT, START};
use crate::api::endpoint::{Endpoint, Group, Kind, NodeUse, Parameter};
use crate::api::service::Handler;
use crate::api::{bodies, token_info, token_lists, tokens};
use crate::desk::amounts::Unit;

const TOKEN: Parameter = Parameter::path("address", Kind::Contract, "The token's contract.");
const CONTRACT: Parameter =
    Parameter::query("contractaddress", Kind::Contract, "The token's contract.").required();
const FILTER: Parameter = Parameter::query(
    "contractaddress",
    Kind::Contract,
    "Transfers of this token alone.",
);
const FILTER_AS_ANSWERED: Parameter = Parameter::query(
    "contractAddress",
    Kind::Contract,
    "The same as `contractaddress`, as answers spell it.",
);
const HELD_FILTER: Parameter =
    Parameter::query("contractaddress", Kind::Contract, "Ids of this token alone.");
const HOLDER: Parameter = Parameter::query("address", Kind::Address, "The account.").required();
const BLOCK: Parameter = Parameter::query("block", Kind::Block, "After which block.").or("latest");
const UNIT: Parameter = Parameter::query(
    "unit",
    Kind::OneOf(Unit::NAMES),
    "`base` for the smallest unit, `coin` for whole coins with their exact fraction, where the contract tells its decimals.",
)
.or("base");
const HOLDERS_OFFSET: Parameter = Parameter::query(
    "offset",
    Kind::OneOf(&["10", "15", "30", "45"]),
    "Rows of a page.",
)
.or("10");
const TRANSFERS: &[Parameter] = &[
    ACCOUNT,
    CHAIN,
    FILTER_AS_ANSWERED,
    FILTER,
    START,
    END,
    PAGE,
    OFFSET,
    SORT,
    CURSOR,
];
const NOT_FOUND: &[&str] = &["Token not found"];

const TOKENS: Endpoint = Endpoint {
    group: Group::Tokens,
    not_found: NOT_FOUND,
    ..NONE
};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["T1"],
        path: "/api/token/{address}/total-supply",
        parameters: &[TOKEN, CHAIN, UNIT],
        doc: "The supply of a token; `X-Balance-Source` says whether its contract was asked.",
        bodies: &[bodies::TOKEN_SUPPLY],
        example: "/api/token/0x5fbdb2315678afecb367f032d93f642f64180aa3/total-supply",
        not_found: &["Failed to fetch token total supply"],
        node: NodeUse::Needed,
        handler: Handler::Chain(tokens::supply),
        ..TOKENS
    },
    Endpoint {
        ids: &["T2", "T3"],
        path: "/api/token/balance",
        parameters: &[
            CHAIN,
            CONTRACT,
            Parameter::query(
                "address",
                Kind::Address,
                "The account (T2); without it the holders are listed (T3).",
            ),
            PAGE,
            HOLDERS_OFFSET,
            CURSOR,
            UNIT,
        ],
        doc: "What an account holds of a token (T2); without an account the holders, largest first (T3).",
        bodies: &[bodies::HOLDERS, bodies::TOKEN_BALANCE],
        example: "/api/token/balance?contractaddress=0x5fbdb2315678afecb367f032d93f642f64180aa3&offset=10",
        bad_requests: &["offset must be one of 10, 15, 30, 45"],
        node: NodeUse::Needed,
        handler: Handler::Chain(tokens::balance),
        ..TOKENS
    },
    Endpoint {
        ids: &["holder-list"],
        path: "/api/token/holder-list",
        parameters: &[CHAIN, CONTRACT, PAGE, HOLDERS_OFFSET, CURSOR],
        doc: "The holders of a token, largest first (T3 under a path of its own).",
        bodies: &[bodies::HOLDERS],
        example: "/api/token/holder-list?contractaddress=0x5fbdb2315678afecb367f032d93f642f64180aa3",
        bad_requests: &["offset must be one of 10, 15, 30, 45"],
        handler: Handler::Chain(token_lists::holders),
        ..TOKENS
    },
    Endpoint {
        ids: &["T4"],
        path: "/api/token/holder-count",
        parameters: &[CHAIN, CONTRACT],
        doc: "How many accounts hold some of a token.",
        bodies: &[bodies::HOLDER_COUNT],
        example: "/api/token/holder-count?contractaddress=0x5fbdb2315678afecb367f032d93f642f64180aa3",
        handler: Handler::Chain(tokens::holder_count),
        ..TOKENS
    },
    Endpoint {
        ids: &["T5"],
        path: "/api/token/info",
        parameters: &[CHAIN, CONTRACT],
        main_only: true,
        doc: "What is known of a token; the fields of its project come from lists of tokens.",
        bodies: &[bodies::TOKEN_INFO],
        example: "/api/token/info?contractaddress=0x5fbdb2315678afecb367f032d93f642f64180aa3",
        node: NodeUse::Optional,
        handler: Handler::Chain(token_info::info),
        ..TOKENS
    },
    Endpoint {
        ids: &["T6"],
        path: "/api/token/erc20-holdings",
        parameters: &[CHAIN, HOLDER, PAGE, OFFSET, CURSOR],
        doc: "The ERC-20 tokens that an account holds.",
        bodies: &[bodies::HOLDINGS],
        example: "/api/token/erc20-holdings?address=0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
        not_found: &[],
        handler: Handler::Chain(token_lists::erc20_holdings),
        ..TOKENS
    },
    Endpoint {
        ids: &["T7"],
        path: "/api/token/erc721-holdings",
        parameters: &[CHAIN, HOLDER, PAGE, OFFSET, CURSOR],
        doc: "The ERC-721 tokens that an account holds, with the number of ids.",
        bodies: &[bodies::HOLDINGS],
        example: "/api/token/erc721-holdings?address=0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
        not_found: &[],
        handler: Handler::Chain(token_lists::erc721_holdings),
        ..TOKENS
    },
    Endpoint {
        ids: &["erc1155-holdings"],
        path: "/api/token/erc1155-holdings",
        parameters: &[
            CHAIN,
            HOLDER,
            FILTER_AS_ANSWERED,
            HELD_FILTER,
            PAGE,
            OFFSET,
            CURSOR,
        ],
        doc: "The ids of ERC-1155 tokens that an account holds, with the units of each.",
        bodies: &[bodies::HELD_IDS],
        example: "/api/token/erc1155-holdings?address=0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
        not_found: &[],
        handler: Handler::Chain(token_lists::erc1155_holdings),
        ..TOKENS
    },
    Endpoint {
        ids: &["T8"],
        path: "/api/token/{address}/total-supply-history",
        parameters: &[TOKEN, CHAIN, BLOCK, UNIT],
        doc: "The supply of a token after a block; 0 before its creation.",
        bodies: &[bodies::TOKEN_SUPPLY_AT],
        example: "/api/token/0x5fbdb2315678afecb367f032d93f642f64180aa3/total-supply-history?block=28",
        node: NodeUse::Needed,
        handler: Handler::Chain(tokens::supply_at),
        ..TOKENS
    },
    Endpoint {
        ids: &["T9"],
        path: "/api/token/{address}/total-balance-history",
        parameters: &[ACCOUNT, CHAIN, CONTRACT, BLOCK, UNIT],
        doc: "What an account held of a token after a block.",
        bodies: &[bodies::TOKEN_BALANCE_AT],
        example: "/api/token/0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266/total-balance-history?contractaddress=0x5fbdb2315678afecb367f032d93f642f64180aa3&block=28",
        node: NodeUse::Needed,
        handler: Handler::Chain(tokens::balance_at),
        ..TOKENS
    },
    Endpoint {
        ids: &["T10"],
        path: "/api/token/{address}/nft-inventory",
        parameters: &[ACCOUNT, CHAIN, CONTRACT, PAGE, OFFSET, CURSOR],
        doc: "The ids of an ERC-721 token that an account owns, ascending.",
        bodies: &[bodies::INVENTORY],
        example: "/api/token/0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc/nft-inventory?contractaddress=0x0116686e2291dbd5e317f47fadbfb43b599786ef",
        handler: Handler::Chain(token_lists::nft_inventory),
        ..TOKENS
    },
    Endpoint {
        ids: &["A7"],
        group: Group::Accounts,
        path: "/api/account/{address}/token-tx",
        parameters: TRANSFERS,
        doc: "ERC-20 transfers that an account sent or received.",
        bodies: &[bodies::ERC20_TRANSFERS],
        example: "/api/account/0x70997970c51812dc3a010c7d01b50e0d17dc79c8/token-tx?offset=2",
        handler: Handler::Chain(token_lists::erc20_transfers),
        ..NONE
    },
    Endpoint {
        ids: &["A8"],
        group: Group::Accounts,
        path: "/api/account/{address}/token-nft-tx",
        parameters: TRANSFERS,
        doc: "ERC-721 transfers that an account sent or received.",
        bodies: &[bodies::ERC721_TRANSFERS],
        example: "/api/account/0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc/token-nft-tx?offset=2",
        handler: Handler::Chain(token_lists::erc721_transfers),
        ..NONE
    },
    Endpoint {
        ids: &["token-1155-tx"],
        group: Group::Accounts,
        path: "/api/account/{address}/token-1155-tx",
        parameters: TRANSFERS,
        doc: "ERC-1155 transfers that an account sent or received; each id of a batch is an item.",
        bodies: &[bodies::ERC1155_TRANSFERS],
        example: "/api/account/0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc/token-1155-tx?offset=2",
        handler: Handler::Chain(token_lists::erc1155_transfers),
        ..NONE
    },
];
