//! What can go wrong with a fake node's answers.

use super::render;
use quarry::model::{Address, Bundle};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What a top call says wrongly of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Another value.
    Value,
    /// Another input.
    Input,
    /// That it failed.
    Failed,
    /// That it did not fail.
    Succeeded,
}

/// What goes wrong with a request. Each waits for a request that it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `eth_getBlockByNumber` of full blocks answers `null`.
    NullBlock,
    /// `eth_getBlockReceipts` answers `null`.
    NullReceipts,
    /// The last receipt is left out.
    MissingReceipt,
    /// The data of a log (or, without logs, the gas used) of a receipt is changed.
    WrongReceipt,
    /// A block states another parent, and still its own hash.
    WrongParent,
    /// Receipts state another price than was paid.
    WrongPrice,
    /// Receipts are those of a block of the same transactions but another hash.
    OtherReceipts,
    /// The receipts come in another order.
    ReorderedReceipts,
    /// The trace of the last transaction is left out.
    MissingTrace,
    /// A call below another one is left out, which counts it all the same.
    LostFrame,
    /// `eth_blockNumber` states a head that lies this much lower.
    HeadBack(u64),
    /// `eth_blockNumber` states a head that lies this much higher.
    HeadAhead(u64),
    /// `eth_chainId` names the chain of the next number.
    OtherChain,
    /// `eth_chainId` names a chain of more than 64 bits.
    WideChain,
    /// `eth_blockNumber` answers `null`.
    NullHead,
    /// The tags `finalized` and `safe` name a block that nobody has, this much above the one they would.
    OtherFinal(u64),
    /// Any answer ends in the middle.
    Truncated,
    /// Any answer is no JSON at all.
    Garbage,
    /// HTTP 429 with this `Retry-After` in seconds.
    TooManyRequests(Option<u64>),
    /// HTTP 500.
    ServerError,
    /// A JSON-RPC error to any request.
    RpcError(i64, &'static str),
    /// Any answer takes this much longer.
    Slow(Duration),
    /// The answer to this method takes this much longer.
    SlowMethod(&'static str, Duration),
    /// The connection ends without an answer.
    Hangup,
    /// Any answer bears the id of another request.
    OtherId,
    /// Any answer bears no id.
    NoId,
    /// This method is never answered.
    Lost(&'static str),
    /// The same about this block, by number.
    LostBlock(&'static str, u64),
    /// Blocks up to this one, but for the first, are not there any more.
    Dropped {
        /// The last of them.
        to: u64,
    },
    /// The same, told by an error.
    Expired {
        /// The last of them.
        to: u64,
    },
    /// What this method answers is so many bytes longer.
    Padded(&'static str, usize),
    /// A JSON-RPC error to this method about this block, by number.
    FailsBlock(&'static str, u64),
    /// A JSON-RPC error to this method.
    Refuses(&'static str, i64, &'static str),
    /// This status of HTTP to this method, with a body that is no JSON.
    Status(&'static str, u16),
    /// This status of HTTP to what asks for a tag.
    TagStatus(u16),
    /// A block without its transactions has neither number nor hash.
    NoIdentity,
    /// Receipts and traces of blocks above this one are not there: another node behind the balancer lags.
    Lacks {
        /// The last block that is there.
        above: u64,
    },
    /// Traces asked for by number are those of a block with the same transactions on another branch.
    TwinTraces,
    /// A block without its transactions is that of another branch.
    TwinBlock,
    /// Block 1 is answered where block 0 is asked for.
    BlockOneForZero,
    /// The call tracer says of transactions that failed that the machine was never entered, as of failed deposits on the OP Stack.
    NeverEntered,
    /// The call tracer has no result of any transaction of a block that is asked for by its number.
    Untraced,
    /// Traces do not state their block.
    BareTraces,
    /// Top calls are not those of their transactions.
    WrongTop(Wrong),
    /// Typed transactions state another `v` than their parity.
    WrongV,
    /// What is asked about the number of this block is answered about this one: another node behind the balancer is on another branch.
    Elsewhere(Arc<Bundle>),
    /// Transactions that bid for their price state what they bid at most.
    WrongGasPrice,
}

impl Fault {
    /// Whether it can happen to this request.
    pub fn fits(&self, method: &str, params: &Value) -> bool {
        match self {
            Self::NullBlock | Self::WrongParent | Self::WrongV | Self::WrongGasPrice => {
                method == "eth_getBlockByNumber" && params[1] == true
            }
            Self::NullReceipts
            | Self::MissingReceipt
            | Self::WrongReceipt
            | Self::WrongPrice
            | Self::OtherReceipts
            | Self::ReorderedReceipts => method == "eth_getBlockReceipts",
            Self::MissingTrace | Self::WrongTop(_) => {
                method == "trace_block" || method.starts_with("debug_traceBlock")
            }
            Self::Lost(name)
            | Self::Refuses(name, ..)
            | Self::SlowMethod(name, _)
            | Self::Padded(name, _)
            | Self::Status(name, _) => method == *name,
            Self::FailsBlock(name, number) | Self::LostBlock(name, number) => {
                method == *name && render::number(&params[0]) == Some(*number)
            }
            Self::Dropped { to } | Self::Expired { to } => {
                let number = render::number(&params[0]);
                method == "eth_getBlockByNumber" && number.is_some_and(|number| (1..=*to).contains(&number))
            }
            Self::Lacks { above } => match method {
                "eth_getBlockReceipts" | "trace_block" | "debug_traceBlockByNumber" => {
                    render::number(&params[0]).is_some_and(|number| *above < number)
                }
                _ => false,
            },
            Self::Elsewhere(bundle) => {
                let of_whole = match method {
                    "eth_getBlockByNumber" => params[1] == true,
                    "eth_getBlockReceipts" | "trace_block" => true,
                    _ => false,
                };
                of_whole && render::number(&params[0]) == Some(bundle.block.number())
            }
            Self::LostFrame => method == "trace_block",
            Self::BlockOneForZero => {
                method == "eth_getBlockByNumber" && render::number(&params[0]) == Some(0)
            }
            Self::NeverEntered => method.starts_with("debug_traceBlock"),
            Self::Untraced => method == "debug_traceBlockByNumber",
            Self::TwinTraces => matches!(method, "trace_block" | "debug_traceBlockByNumber"),
            Self::TagStatus(_) => params[0] == "finalized" || params[0] == "safe",
            Self::TwinBlock | Self::NoIdentity => method == "eth_getBlockByNumber" && params[1] == false,
            Self::BareTraces => method == "trace_block",
            Self::HeadBack(_) | Self::HeadAhead(_) | Self::NullHead => method == "eth_blockNumber",
            Self::OtherChain | Self::WideChain => method == "eth_chainId",
            Self::OtherFinal(_) => {
                method == "eth_getBlockByNumber" && matches!(params[0].as_str(), Some("finalized" | "safe"))
            }
            _ => true,
        }
    }
}

/// Changes a result as `fault` says.
pub fn spoil(fault: &Fault, value: &mut Value) {
    match fault {
        Fault::NullBlock | Fault::NullReceipts | Fault::NullHead | Fault::Dropped { .. } => {
            *value = Value::Null;
        }
        Fault::Padded(_, bytes) => value["padding"] = json!("a".repeat(*bytes)),
        Fault::MissingReceipt => {
            value.as_array_mut().and_then(Vec::pop);
        }
        Fault::ReorderedReceipts => {
            if let Some(receipts) = value.as_array_mut() {
                receipts.reverse();
            }
        }
        Fault::WrongReceipt => {
            for receipt in value.as_array_mut().into_iter().flatten() {
                let spot = match receipt["logs"].as_array().is_some_and(|logs| !logs.is_empty()) {
                    true => &mut receipt["logs"][0]["data"],
                    false => &mut receipt["cumulativeGasUsed"],
                };
                *spot = json!("0x1234");
            }
        }
        Fault::WrongPrice => {
            for receipt in value.as_array_mut().into_iter().flatten() {
                receipt["effectiveGasPrice"] = json!("0x1");
            }
        }
        Fault::OtherReceipts => {
            for receipt in value.as_array_mut().into_iter().flatten() {
                receipt["blockHash"] = json!(format!("0x{}", "ab".repeat(32)));
            }
        }
        Fault::TwinTraces => {
            for entry in value.as_array_mut().into_iter().flatten() {
                let top = match entry.get("action") {
                    Some(_) => &mut entry["action"],
                    None => &mut entry["result"],
                };
                top["input"] = json!("0x7717");
            }
        }
        Fault::WrongTop(wrong) => {
            for entry in value.as_array_mut().into_iter().flatten() {
                spoil_top(*wrong, entry);
            }
        }
        Fault::WrongV | Fault::WrongGasPrice => {
            let transactions = value["transactions"].as_array_mut().into_iter().flatten();
            for transaction in transactions.filter(|of| of["type"] == "0x2") {
                if *fault == Fault::WrongV {
                    transaction["v"] = json!("0x1b");
                } else {
                    transaction["gasPrice"] = transaction["maxFeePerGas"].clone();
                }
            }
        }
        Fault::Elsewhere(bundle) => {
            *value = match value.as_array() {
                None => render::block(&bundle.block, true),
                Some(entries) if entries.iter().any(|entry| entry.get("action").is_some()) => {
                    render::parity(bundle).into()
                }
                Some(_) => render::receipts(bundle).into(),
            };
        }
        Fault::WideChain => *value = json!("0x10000000000000000"),
        Fault::NoIdentity => {
            value["hash"] = Value::Null;
            value["number"] = Value::Null;
        }
        Fault::BlockOneForZero => value["number"] = json!("0x1"),
        Fault::NeverEntered => {
            for entry in value.as_array_mut().into_iter().flatten() {
                if entry["result"].get("error").is_some() {
                    entry["result"] = json!({"from": Address::ZERO, "gas": "0x0", "gasUsed": "0x520c", "input": "0x",
                        "type": "STOP"});
                }
            }
        }
        Fault::Untraced => {
            for entry in value.as_array_mut().into_iter().flatten() {
                entry["result"] = Value::Null;
            }
        }
        Fault::TwinBlock => value["hash"] = json!(format!("0x{}", "ef".repeat(32))),
        Fault::BareTraces => {
            for entry in value.as_array_mut().into_iter().flatten() {
                entry["blockHash"] = Value::Null;
            }
        }
        Fault::WrongParent => value["parentHash"] = json!(format!("0x{}", "cd".repeat(32))),
        Fault::MissingTrace => {
            if let Some(entries) = value.as_array_mut() {
                let last = entries
                    .iter()
                    .filter_map(|entry| entry["transactionPosition"].as_u64())
                    .max();
                match last {
                    Some(last) => entries.retain(|entry| entry["transactionPosition"] != last),
                    None => {
                        entries.pop();
                    }
                }
            }
        }
        Fault::LostFrame => {
            if let Some(entries) = value.as_array_mut() {
                let below = |entry: &Value| {
                    entry["traceAddress"]
                        .as_array()
                        .is_some_and(|path| !path.is_empty())
                };
                if let Some(last) = entries.iter().rposition(below) {
                    entries.remove(last);
                }
            }
        }
        Fault::HeadBack(by) => *value = render::quantity(number(value).saturating_sub(*by)),
        Fault::HeadAhead(by) => *value = render::quantity(number(value).saturating_add(*by)),
        Fault::OtherChain => *value = render::quantity(number(value) + 1),
        Fault::OtherFinal(by) => {
            value["number"] = render::quantity(number(&value["number"]).saturating_add(*by));
            value["hash"] = json!(format!("0x{}", "ab".repeat(32)));
        }
        _ => {}
    }
}

/// Changes the top call in an entry of either method.
fn spoil_top(wrong: Wrong, entry: &mut Value) {
    let of_tracer = entry.get("action").is_none();
    if !of_tracer && (entry["type"] == "reward" || entry["traceAddress"] != json!([])) {
        return;
    }
    let said = if of_tracer {
        &mut entry["result"]
    } else {
        &mut *entry
    };
    match wrong {
        Wrong::Failed if of_tracer => said["error"] = json!("execution reverted"),
        Wrong::Failed => said["error"] = json!("Reverted"),
        Wrong::Succeeded => {
            said.as_object_mut().map(|said| said.remove("error"));
        }
        Wrong::Value | Wrong::Input => {
            let said = if of_tracer { said } else { &mut said["action"] };
            match wrong {
                Wrong::Value => said["value"] = json!("0x7717"),
                _ if said.get("init").is_some() => said["init"] = json!("0x7717"),
                _ => said["input"] = json!("0x7717"),
            }
        }
    }
}

fn number(value: &Value) -> u64 {
    render::number(value).unwrap_or(0)
}
