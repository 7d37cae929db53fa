//! The log of JSON-RPC, written as the specification's is: its room is made once, and its pieces follow each other in it
//! (`docs/decisions/0012-log-writer.md`).

use crate::json::log::{Code, for_each_code, put_bytes, put_topics};
use crate::json::tail::{Piece, Tail};
#[cfg(target_arch = "x86_64")]
use crate::json::words;
use crate::json::writer;
use crate::model::LogEntry;

const HEAD: Piece<16> = Piece::new(b"{\"address\":\"0x");
const TOPICS: Piece<16> = Piece::new(b"\",\"topics\":[");
const TOPIC: Piece<16> = Piece::new(b"\"0x");
const NEXT_TOPIC: Piece<16> = Piece::new(b"\",\"0x");
const LAST_TOPIC: Piece<16> = Piece::new(b"\"");
const DATA: Piece<16> = Piece::new(b"],\"data\":\"0x");
const BLOCK_HASH: Piece<32> = Piece::new(b"\",\"blockHash\":\"0x");
const BLOCK_NUMBER: Piece<32> = Piece::new(b"\",\"blockNumber\":\"0x");
const TRANSACTION_INDEX: Piece<32> = Piece::new(b"\",\"transactionIndex\":\"0x");
const TIMESTAMP: Piece<32> = Piece::new(b"\",\"blockTimestamp\":\"0x");
const TRANSACTION_HASH: Piece<32> = Piece::new(b"\",\"transactionHash\":\"0x");
const LOG_INDEX: Piece<16> = Piece::new(b"\",\"logIndex\":\"0x");
const END: Piece<32> = Piece::new(b"\",\"removed\":false}");
/// Bytes of a log without data, at most: names and punctuation, six words, an address and four numbers.
const LOG_MAX: usize = HEAD.len()
    + TOPICS.len()
    + TOPIC.len()
    + 4 * NEXT_TOPIC.len()
    + LAST_TOPIC.len()
    + DATA.len()
    + BLOCK_HASH.len()
    + BLOCK_NUMBER.len()
    + TRANSACTION_INDEX.len()
    + TIMESTAMP.len()
    + TRANSACTION_HASH.len()
    + LOG_INDEX.len()
    + END.len()
    + 6 * 64
    + 40
    + 4 * 16;

/// The text of a log. The four numbers are one word of digits, in which each begins with its first.
macro_rules! write_log {
    ($out:expr, $log:expr, $word:path) => {{
        let (out, log): (&mut Vec<u8>, &LogEntry<'_>) = ($out, $log);
        let mut tail = Tail::new(out, LOG_MAX + 2 * log.data.len());
        tail.piece(&HEAD);
        let mut address = [0; 32];
        address[..20].copy_from_slice(log.address.as_slice());
        tail.put(&$word(&address), 40);
        tail.piece(&TOPICS);
        put_topics!(tail, log.topics, (TOPIC, NEXT_TOPIC, LAST_TOPIC), $word);
        tail.piece(&DATA);
        put_bytes!(tail, log.data, $word);
        tail.piece(&BLOCK_HASH);
        tail.put(&$word(&log.block_hash.0), 64);
        let numbers = [
            log.block_number,
            u64::from(log.transaction_index),
            log.timestamp,
            u64::from(log.log_index),
        ];
        let (mut word, mut kept) = ([0; 32], [0; 4]);
        for ((place, kept), number) in word.chunks_exact_mut(8).zip(&mut kept).zip(numbers) {
            let zeros = (number | 1).leading_zeros() / 4;
            *kept = 16 - zeros as usize;
            place.copy_from_slice(&(number << (4 * zeros)).to_be_bytes());
        }
        let mut digits = [[0; 16]; 4];
        digits.as_flattened_mut().copy_from_slice(&$word(&word));
        tail.piece(&BLOCK_NUMBER);
        tail.put(&digits[0], kept[0]);
        tail.piece(&TRANSACTION_INDEX);
        tail.put(&digits[1], kept[1]);
        tail.piece(&TIMESTAMP);
        tail.put(&digits[2], kept[2]);
        tail.piece(&TRANSACTION_HASH);
        tail.put(&$word(&log.transaction_hash.0), 64);
        tail.piece(&LOG_INDEX);
        tail.put(&digits[3], kept[3]);
        tail.piece(&END);
        tail.len()
    }};
}

for_each_code!(write, write_log);

/// Appends a log as `eth_getLogs` states it.
pub fn log_entry(out: &mut Vec<u8>, log: &LogEntry<'_>) {
    write(Code::best(), out, log);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::object::{Object, array};
    use crate::model::{Address, B256};
    use proptest::prelude::*;

    /// As any other object is written.
    fn plain(out: &mut Vec<u8>, log: &LogEntry<'_>) {
        let mut object = Object::begin(out);
        object.hex("address", log.address);
        array(object.key("topics"), log.topics.iter(), |out, topic| {
            writer::hex(out, topic.as_slice());
        });
        object.hex("data", log.data);
        object.hex("blockHash", log.block_hash);
        object.quantity("blockNumber", log.block_number);
        object.quantity("transactionIndex", log.transaction_index);
        object.quantity("blockTimestamp", log.timestamp);
        object.hex("transactionHash", log.transaction_hash);
        object.quantity("logIndex", log.log_index);
        object.boolean("removed", false);
        object.end();
    }

    proptest! {
        #[test]
        fn is_byte_for_byte_what_any_object_is(
            numbers in any::<(u64, u64, u32, u32)>(),
            shifts in (0_u32..64, 0_u32..64, 0_u32..32, 0_u32..32),
            hashes in any::<[[u8; 32]; 2]>(),
            address in any::<[u8; 20]>(),
            topics in proptest::collection::vec(any::<[u8; 32]>(), 0..=4),
            data in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let topics: Vec<B256> = topics.into_iter().map(B256::from).collect();
            let log = LogEntry {
                ordinal: 0,
                block_number: numbers.0 >> shifts.0,
                block_hash: hashes[0].into(),
                timestamp: numbers.1 >> shifts.1,
                transaction_hash: hashes[1].into(),
                transaction_index: numbers.2 >> shifts.2,
                log_index: numbers.3 >> shifts.3,
                address: Address::from(address),
                topics: &topics,
                data: &data,
            };
            let mut expected = b"[".to_vec();
            plain(&mut expected, &log);
            for code in Code::all() {
                let mut out = b"[".to_vec();
                write(code, &mut out, &log);
                prop_assert_eq!(&out, &expected, "{:?}", code);
            }
        }
    }

    #[test]
    fn numbers_have_no_leading_zeros() {
        for number in [0, 1, 15, 16, 255, 1 << 60, u64::MAX] {
            let mut out = Vec::new();
            let log = LogEntry {
                ordinal: 0,
                block_number: number,
                block_hash: B256::ZERO,
                timestamp: number,
                transaction_hash: B256::ZERO,
                transaction_index: 0,
                log_index: u32::MAX,
                address: Address::ZERO,
                topics: &[],
                data: &[],
            };
            log_entry(&mut out, &log);
            let text = String::from_utf8(out).unwrap();
            assert!(
                text.contains(&format!(
                    "\"blockNumber\":\"0x{number:x}\",\"transactionIndex\":\"0x0\""
                )),
                "{text}"
            );
            assert!(
                text.contains(&format!("\"blockTimestamp\":\"0x{number:x}\"")),
                "{text}"
            );
            assert!(
                text.ends_with("\"logIndex\":\"0xffffffff\",\"removed\":false}"),
                "{text}"
            );
        }
    }
}
