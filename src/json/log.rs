//! The log entry of the specification (L1, L2, L3).

use super::{UuidSpace, writer};
use crate::model::LogEntry;

/// Bytes of an entry without data and topics: names, punctuation, hashes and the longest numbers.
const ENTRY_BYTES_MAX: usize = 480;
/// Bytes of a topic with its escaped quotes and comma.
const TOPIC_BYTES_MAX: usize = 71;

/// What is written as hex and has a fixed width, gathered so that one call encodes it all:
///
/// ```text
///  0..16 uuid | 16..48 transaction hash | 48..80 block hash | 80..100 address | 100.. topics, 32 bytes each
/// ```
const FIXED: usize = 16 + 32 + 32 + 20;
const GATHERED_MAX: usize = FIXED + 4 * 32;

/// Appends one log entry: the fields of the specification, in its order.
pub fn log_entry(out: &mut Vec<u8>, ids: &UuidSpace, log: &LogEntry<'_>) {
    let topics = log.topics.as_slice();
    let mut gathered = [0_u8; GATHERED_MAX];
    gathered[..16].copy_from_slice(ids.log(&log.block_hash, log.log_index).as_bytes());
    gathered[16..48].copy_from_slice(log.transaction_hash.as_slice());
    gathered[48..80].copy_from_slice(log.block_hash.as_slice());
    gathered[80..FIXED].copy_from_slice(log.address.as_slice());
    for (room, topic) in gathered[FIXED..].chunks_exact_mut(32).zip(topics) {
        room.copy_from_slice(topic.as_slice());
    }
    let gathered = &gathered[..FIXED + 32 * topics.len()];
    let mut digits = [0_u8; 2 * GATHERED_MAX];
    writer::encode(gathered, &mut digits[..2 * gathered.len()]);

    out.reserve(ENTRY_BYTES_MAX + 4 * TOPIC_BYTES_MAX + 2 * log.data.len());
    out.extend_from_slice(b"{\"uuid\":\"");
    out.extend_from_slice(&hyphenated(&digits));
    out.extend_from_slice(b"\",\"transactionHash\":\"0x");
    out.extend_from_slice(&digits[32..96]);
    out.extend_from_slice(b"\",\"blockNumber\":");
    writer::decimal(out, log.block_number);
    out.extend_from_slice(b",\"blockHash\":\"0x");
    out.extend_from_slice(&digits[96..160]);
    out.extend_from_slice(b"\",\"timestamp\":");
    writer::decimal(out, log.timestamp);
    out.extend_from_slice(b",\"contractAddress\":\"0x");
    out.extend_from_slice(&digits[160..2 * FIXED]);
    out.extend_from_slice(b"\",\"data\":\"0x");
    writer::hex_digits(out, log.data);
    out.extend_from_slice(b"\",\"topics\":\"[");
    for (place, topic) in digits[2 * FIXED..]
        .chunks_exact(64)
        .take(topics.len())
        .enumerate()
    {
        out.extend_from_slice(if place == 0 {
            b"\\\"0x".as_slice()
        } else {
            b",\\\"0x"
        });
        out.extend_from_slice(topic);
        out.extend_from_slice(b"\\\"");
    }
    out.extend_from_slice(b"]\",\"logIndex\":");
    writer::integer(out, u64::from(log.log_index));
    out.extend_from_slice(b",\"transactionIndex\":");
    writer::integer(out, u64::from(log.transaction_index));
    out.push(b'}');
}

/// The first 32 of `digits` in groups of 8, 4, 4, 4 and 12.
#[inline]
fn hyphenated(digits: &[u8; 2 * GATHERED_MAX]) -> [u8; 36] {
    let mut text = [b'-'; 36];
    text[..8].copy_from_slice(&digits[..8]);
    text[9..13].copy_from_slice(&digits[8..12]);
    text[14..18].copy_from_slice(&digits[12..16]);
    text[19..23].copy_from_slice(&digits[16..20]);
    text[24..].copy_from_slice(&digits[20..32]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, B256, Topics};
    use proptest::prelude::*;
    use serde::Serialize;
    use uuid::Uuid;

    /// The entry as one would write it without haste.
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Plain {
        uuid: String,
        transaction_hash: String,
        block_number: String,
        block_hash: String,
        timestamp: String,
        contract_address: String,
        data: String,
        topics: String,
        log_index: u32,
        transaction_index: u32,
    }

    fn plain(chain_id: u64, log: &LogEntry<'_>) -> String {
        let space = Uuid::new_v5(
            &Uuid::NAMESPACE_URL,
            format!("quarry:chain:{chain_id}").as_bytes(),
        );
        let name = [log.block_hash.as_slice(), b"l", &log.log_index.to_be_bytes()].concat();
        let topics: Vec<String> = log.topics.iter().map(const_hex::encode_prefixed).collect();
        let plain = Plain {
            uuid: Uuid::new_v5(&space, &name).to_string(),
            transaction_hash: const_hex::encode_prefixed(log.transaction_hash),
            block_number: log.block_number.to_string(),
            block_hash: const_hex::encode_prefixed(log.block_hash),
            timestamp: log.timestamp.to_string(),
            contract_address: const_hex::encode_prefixed(log.address),
            data: const_hex::encode_prefixed(log.data),
            topics: serde_json::to_string(&topics).unwrap(),
            log_index: log.log_index,
            transaction_index: log.transaction_index,
        };
        serde_json::to_string(&plain).unwrap()
    }

    fn word() -> impl Strategy<Value = B256> {
        any::<[u8; 32]>().prop_map(B256::from)
    }

    proptest! {
        #[test]
        fn is_byte_for_byte_what_serde_writes(
            chain_id in any::<u64>(),
            numbers in any::<(u64, u64, u32, u32)>(),
            hashes in (word(), word()),
            address in any::<[u8; 20]>(),
            topics in proptest::collection::vec(word(), 0..=4),
            data in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let log = LogEntry {
                ordinal: 0,
                block_number: numbers.0,
                block_hash: hashes.0,
                timestamp: numbers.1,
                transaction_hash: hashes.1,
                transaction_index: numbers.2,
                log_index: numbers.3,
                address: Address::from(address),
                topics: Topics::new(&topics).unwrap(),
                data: &data,
            };
            let mut out = Vec::new();
            log_entry(&mut out, &UuidSpace::new(chain_id), &log);
            prop_assert_eq!(String::from_utf8(out).unwrap(), plain(chain_id, &log));
        }
    }
}
