//! Answers of `eth_getLogs`.

use super::object::object;
use super::scalar::{List, Wire};
use super::{WireError, may, need, parse};
use crate::model::{Address, B256, Bytes, PlacedLog, Topics};

object! {
    /// A log as `eth_getLogs` lists it.
    ListedLog {
        address: Wire<Address> = "address",
        topics: Topics = "topics",
        data: Wire<Bytes> = "data",
        block_number: Wire<u64> = "blockNumber",
        log_index: Wire<u64> = "logIndex",
        transaction_hash: Wire<B256> = "transactionHash",
        removed: Wire<bool> = "removed",
    } skip {} extra: dropped
}

/// Reads a list of logs, in the order of the text.
///
/// # Errors
///
/// When the text is not such a list, when a log lacks a field or was removed by a reorg meanwhile.
pub fn logs(json: &str) -> Result<Vec<PlacedLog>, WireError> {
    let list: List<ListedLog> = parse("logs", json)?;
    let placed = list.0.into_iter().enumerate().map(|(index, log)| {
        if may(log.removed) == Some(true) {
            return Err(WireError::malformed(
                "logs",
                format_args!("log {index} was removed"),
            ));
        }
        Ok(PlacedLog {
            block_number: need(log.block_number, "log", "blockNumber", Some(index))?,
            log_index: need(log.log_index, "log", "logIndex", Some(index))?,
            transaction_hash: need(log.transaction_hash, "log", "transactionHash", Some(index))?,
            address: need(log.address, "log", "address", Some(index))?,
            topics: log.topics.unwrap_or_default(),
            data: need(log.data, "log", "data", Some(index))?,
        })
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(more: &str) -> String {
        format!(
            r#"[{{"address":"0x{}","topics":["0x{}"],"data":"0x0102","blockNumber":"0x10","logIndex":"0x2",
            "transactionHash":"0x{}","blockHash":null,"transactionIndex":"0x0"{more}}}]"#,
            "aa".repeat(20),
            "bb".repeat(32),
            "cc".repeat(32)
        )
    }

    #[test]
    fn a_listed_log_is_read_whole() {
        let expected = PlacedLog {
            block_number: 16,
            log_index: 2,
            transaction_hash: B256::repeat_byte(0xcc),
            address: Address::repeat_byte(0xaa),
            topics: Topics::new(&[B256::repeat_byte(0xbb)]).unwrap(),
            data: Bytes::from_static(&[1, 2]),
        };
        assert_eq!(logs(&log(r#","removed":false"#)).unwrap(), [expected]);
        assert_eq!(logs("[]").unwrap(), []);
    }

    #[test]
    fn what_is_no_list_of_logs_is_named() {
        assert!(logs("null").is_err());
        assert!(logs(&log(r#","removed":true"#)).is_err());
        let pending = log("").replace("\"0x10\"", "null");
        assert!(matches!(
            logs(&pending),
            Err(WireError::MissingField {
                field: "blockNumber",
                ..
            })
        ));
    }
}
