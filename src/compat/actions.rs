//! The actions of each module, as data.

use crate::desk::answer::Plan;
use crate::http::HttpError;

use super::ask::Ask;
use super::envelope::UNKNOWN_ACTION;
use super::{account, block, contract, gas, logs, proxy, stats, token, transaction};

type Parse = fn(&mut Ask<'_>) -> Result<Plan, HttpError>;

/// One action.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// The module.
    pub module: &'static str,
    /// Its name in the module; asked for in letters of any case.
    pub name: &'static str,
    /// The operations of the specification that it is the counterpart of; empty where there is none.
    pub operations: &'static str,
    pub(super) parse: Parse,
}

impl Action {
    const fn new(module: &'static str, name: &'static str, operations: &'static str, parse: Parse) -> Self {
        Self {
            module,
            name,
            operations,
            parse,
        }
    }
}

/// Modules that some clients ask for the daily series of blocks and gas too.
const ALSO: [(&str, &str); 2] = [("block", "daily"), ("gastracker", "daily")];

/// All actions.
#[must_use]
pub const fn actions() -> &'static [Action] {
    ACTIONS
}

/// The place of an action in the list, where there is such a module and it has that action.
pub(super) fn find(module: &str, name: &str) -> Result<usize, HttpError> {
    let is_module = |action: &&Action| action.module.eq_ignore_ascii_case(module);
    if !ACTIONS.iter().any(|action| is_module(&action)) {
        return Err(HttpError::bad_request("Missing Or invalid Module name"));
    }
    let also = |action: &Action| {
        action.module == "stats"
            && ALSO
                .iter()
                .any(|(of, prefix)| of.eq_ignore_ascii_case(module) && action.name.starts_with(prefix))
    };
    ACTIONS
        .iter()
        .position(|action| action.name.eq_ignore_ascii_case(name) && (is_module(&action) || also(action)))
        .ok_or_else(|| HttpError::bad_request(UNKNOWN_ACTION))
}

const ACTIONS: &[Action] = &[
    Action::new("account", "balance", "A1", account::balance),
    Action::new("account", "balancemulti", "A2", account::balances_of),
    Action::new("account", "balancehistory", "A11", account::balance_at),
    Action::new("account", "txlist", "A3", account::transactions),
    Action::new("account", "txlistinternal", "A4, A5, A6", account::internal),
    Action::new("account", "tokentx", "A7", account::erc20_transfers),
    Action::new("account", "tokennfttx", "A8", account::erc721_transfers),
    Action::new("account", "token1155tx", "", account::erc1155_transfers),
    Action::new("account", "getminedblocks", "A9", account::mined_blocks),
    Action::new("account", "txsBeaconWithdrawal", "", account::withdrawals),
    Action::new("account", "fundedby", "A10", account::funded_by),
    Action::new("account", "tokenbalance", "T2", token::balance),
    Action::new("account", "tokenbalancehistory", "T9", token::balance_at),
    Action::new("account", "addresstokenbalance", "T6", token::erc20_holdings),
    Action::new("account", "addresstokennftbalance", "T7", token::erc721_holdings),
    Action::new("account", "addresstokennftinventory", "T10", token::inventory),
    Action::new("contract", "getabi", "C1", contract::abi),
    Action::new("contract", "getsourcecode", "C2", contract::source),
    Action::new("contract", "getcontractcreation", "C3", contract::creation),
    Action::new("transaction", "getstatus", "X2", transaction::status),
    Action::new(
        "transaction",
        "gettxreceiptstatus",
        "X1",
        transaction::receipt_status,
    ),
    Action::new("block", "getblockreward", "B3", block::reward),
    Action::new("block", "getblockcountdown", "", block::countdown),
    Action::new("block", "getblocknobytime", "B2", block::by_time),
    Action::new("block", "getblocktxnscount", "B1", block::transaction_counts),
    Action::new("logs", "getLogs", "L1, L2, L3", logs::get_logs),
    Action::new("token", "tokenholderlist", "T3", token::holders),
    Action::new("token", "tokenholdercount", "T4", token::holder_count),
    Action::new("token", "topholders", "", token::top_holders),
    Action::new("token", "tokeninfo", "T5", token::info),
    Action::new("stats", "tokensupply", "T1", stats::token_supply),
    Action::new("stats", "tokensupplyhistory", "T8", stats::token_supply_at),
    Action::new("stats", "ethsupply", "", stats::supply),
    Action::new("stats", "ethsupply2", "S1", stats::supply_parts),
    Action::new("stats", "ethprice", "S2", stats::price),
    Action::new("stats", "ethdailyprice", "S3", stats::daily_price),
    Action::new("stats", "dailytx", "S4", stats::transactions),
    Action::new("stats", "dailynewaddress", "S5", stats::new_addresses),
    Action::new("stats", "dailytxnfee", "S6", stats::fees),
    Action::new("stats", "dailynetutilization", "S7", stats::utilization),
    Action::new("stats", "dailyavgblocksize", "B4", stats::size),
    Action::new("stats", "dailyblkcount", "B5", stats::blocks),
    Action::new("stats", "dailyblockrewards", "B6", stats::rewards),
    Action::new("stats", "dailyavgblocktime", "B7", stats::block_time),
    Action::new("stats", "dailyuncleblkcount", "", stats::uncles),
    Action::new("stats", "dailyavggasprice", "G1", stats::gas_price),
    Action::new("stats", "dailygasused", "G2", stats::gas_used),
    Action::new("stats", "dailyavggaslimit", "G3", stats::gas_limit),
    Action::new("gastracker", "gasoracle", "", gas::oracle),
    Action::new("proxy", "eth_blockNumber", "eth_blockNumber", proxy::block_number),
    Action::new(
        "proxy",
        "eth_getBlockByNumber",
        "eth_getBlockByNumber",
        proxy::block_by_number,
    ),
    Action::new(
        "proxy",
        "eth_getBlockTransactionCountByNumber",
        "eth_getBlockTransactionCountByNumber",
        proxy::block_transaction_count,
    ),
    Action::new(
        "proxy",
        "eth_getTransactionByHash",
        "eth_getTransactionByHash",
        proxy::transaction_by_hash,
    ),
    Action::new(
        "proxy",
        "eth_getTransactionByBlockNumberAndIndex",
        "eth_getTransactionByBlockNumberAndIndex",
        proxy::transaction_by_position,
    ),
    Action::new(
        "proxy",
        "eth_getTransactionCount",
        "eth_getTransactionCount",
        proxy::transaction_count,
    ),
    Action::new(
        "proxy",
        "eth_getTransactionReceipt",
        "eth_getTransactionReceipt",
        proxy::transaction_receipt,
    ),
    Action::new("proxy", "eth_call", "", proxy::call),
    Action::new("proxy", "eth_getCode", "", proxy::code),
    Action::new("proxy", "eth_getStorageAt", "", proxy::storage),
    Action::new("proxy", "eth_gasPrice", "", proxy::gas_price),
    Action::new("proxy", "eth_estimateGas", "", proxy::estimate_gas),
    Action::new("proxy", "eth_getUncleByBlockNumberAndIndex", "", proxy::uncle),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_case() {
        let named = |module, name| find(module, name).map(|at| ACTIONS.get(at).unwrap().name);
        assert_eq!(named("LOGS", "getlogs"), Ok("getLogs"));
        assert_eq!(named("gastracker", "dailygasused"), Ok("dailygasused"));
        let text = |module, name| find(module, name).unwrap_err().text().to_owned();
        assert_eq!(text("logs", "txlist"), "Missing Or invalid Action name");
        assert_eq!(text("", "txlist"), "Missing Or invalid Module name");
    }

    #[test]
    fn each_action_is_listed_once() {
        for (at, action) in ACTIONS.iter().enumerate() {
            assert_eq!(find(action.module, action.name), Ok(at));
        }
    }
}
