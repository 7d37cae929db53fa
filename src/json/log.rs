//! The log entry of the specification (L1, L2, L3).

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use super::id_lanes;
use super::ids::LogMessage;
use super::tail::{Piece, Tail};
#[cfg(target_arch = "x86_64")]
use super::words;
use super::{UuidSpace, writer};
use crate::model::LogEntry;

/// The text up to the transaction's hash; `~` stands where the id is filled in.
const HEAD: Piece<96> =
    Piece::new(b"{\"uuid\":\"~~~~~~~~-~~~~-~~~~-~~~~-~~~~~~~~~~~~\",\"transactionHash\":\"0x");
const BLOCK_NUMBER: Piece<32> = Piece::new(b"\",\"blockNumber\":\"");
const BLOCK_HASH: Piece<32> = Piece::new(b"\",\"blockHash\":\"0x");
const TIMESTAMP: Piece<32> = Piece::new(b"\",\"timestamp\":\"");
const ADDRESS: Piece<32> = Piece::new(b"\",\"contractAddress\":\"0x");
const DATA: Piece<16> = Piece::new(b"\",\"data\":\"0x");
const TOPICS: Piece<16> = Piece::new(b"\",\"topics\":\"[");
const TOPIC: Piece<16> = Piece::new(b"\\\"0x");
const NEXT_TOPIC: Piece<16> = Piece::new(b"\\\",\\\"0x");
const LAST_TOPIC: Piece<16> = Piece::new(b"\\\"");
const LOG_INDEX: Piece<16> = Piece::new(b"]\",\"logIndex\":");
const TRANSACTION_INDEX: Piece<32> = Piece::new(b",\"transactionIndex\":");
/// Bytes of an entry without data, at most: names and punctuation, six words, an address and four numbers.
const ENTRY_MAX: usize = HEAD.len()
    + BLOCK_NUMBER.len()
    + BLOCK_HASH.len()
    + TIMESTAMP.len()
    + ADDRESS.len()
    + DATA.len()
    + TOPICS.len()
    + 4 * NEXT_TOPIC.len()
    + LAST_TOPIC.len()
    + LOG_INDEX.len()
    + TRANSACTION_INDEX.len()
    + 1
    + 6 * 64
    + 40
    + 4 * 20;

/// Entries whose ids are waiting, at most. An id is one long chain of dependent instructions; a few chains in a
/// row overlap or go side by side, and beside the text of a row they do not.
const IDS_WAITING: usize = 16;
/// So many ids are made side by side sooner than one after the other.
#[cfg(target_arch = "x86_64")]
const LANES_WORTH: usize = 8;

/// Writes log entries one after the other.
#[derive(Debug)]
pub struct LogWriter {
    /// Where the text of each entry stands that has no id yet.
    waiting: Vec<usize>,
    /// What the ids of these are made of, in their order; then what is left of earlier ones.
    messages: Box<[LogMessage; IDS_WAITING]>,
    code: Code,
}

/// What the code that writes entries was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Any,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Code {
    /// The fastest that this processor runs.
    pub(super) fn best() -> Self {
        static BEST: OnceLock<Code> = OnceLock::new();
        *BEST.get_or_init(|| Self::all().pop().unwrap_or(Self::Any))
    }

    /// Those that this processor runs, the fastest last.
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::Any];
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx2") && has!("bmi1") && has!("bmi2") {
                all.push(Self::Avx2);
                if has!("avx512f") && has!("avx512bw") {
                    all.push(Self::Avx512);
                }
            }
        }
        all
    }
}

impl LogWriter {
    /// A writer of entries with ids from `ids`.
    #[must_use]
    pub fn new(ids: UuidSpace) -> Self {
        Self {
            waiting: Vec::with_capacity(IDS_WAITING),
            messages: Box::new([ids.log_message(); IDS_WAITING]),
            code: Code::best(),
        }
    }

    /// Appends one log entry: the fields of the specification, in its order. The entry is whole after
    /// [`Self::finish`], which must come before `out` is handed on.
    ///
    /// Its room is made once, and its pieces follow each other in it: copied in known lengths and encoded without calls
    /// (`docs/decisions/0012-log-writer.md`).
    pub fn entry(&mut self, out: &mut Vec<u8>, log: &LogEntry<'_>) {
        if let Some(message) = self.messages.get_mut(self.waiting.len()) {
            message.fill(&log.block_hash, log.log_index);
            self.waiting.push(out.len());
        }
        entry_without_id(self.code, out, log);
        if self.waiting.len() == IDS_WAITING {
            self.finish(out);
        }
    }

    /// Fills in the ids that are waiting.
    pub fn finish(&mut self, out: &mut [u8]) {
        fill_ids(self.code, &self.waiting, &self.messages, out);
        self.waiting.clear();
    }
}

/// The ids of the first messages, one after the other.
fn ids_in_turn(messages: &[LogMessage; IDS_WAITING], count: usize) -> [[u8; 16]; IDS_WAITING] {
    let mut ids = [[0; 16]; IDS_WAITING];
    for (id, message) in ids.iter_mut().zip(messages).take(count) {
        *id = message.id().into_bytes();
    }
    ids
}

/// The digits of ids in the heads of their entries. A macro as [`write_entry`] is.
macro_rules! fill_ids {
    ($waiting:expr, $ids:expr, $out:expr, $word:path) => {{
        let (waiting, ids, out): (&[usize], &[[u8; 16]; IDS_WAITING], &mut [u8]) = ($waiting, &$ids, $out);
        for (waiting, ids) in waiting.chunks(2).zip(ids.as_chunks::<2>().0) {
            let mut both = [0; 32];
            both[..16].copy_from_slice(&ids[0]);
            both[16..].copy_from_slice(&ids[1]);
            let digits = $word(&both);
            for (&at, digits) in waiting.iter().zip(digits.as_chunks::<32>().0) {
                let head = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<45>);
                if let Some(text) = head {
                    text[9..17].copy_from_slice(&digits[..8]);
                    text[18..22].copy_from_slice(&digits[8..12]);
                    text[23..27].copy_from_slice(&digits[12..16]);
                    text[28..32].copy_from_slice(&digits[16..20]);
                    text[33..45].copy_from_slice(&digits[20..32]);
                }
            }
        }
    }};
}

#[expect(
    unsafe_code,
    reason = "calling code compiled for features that were found at run time"
)]
fn fill_ids(code: Code, waiting: &[usize], messages: &[LogMessage; IDS_WAITING], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2")]
    fn with_avx512(waiting: &[usize], messages: &[LogMessage; IDS_WAITING], out: &mut [u8]) {
        let ids = if waiting.len() < LANES_WORTH {
            ids_in_turn(messages, waiting.len())
        } else {
            id_lanes::ids(&messages.map(|message| message.0))
        };
        fill_ids!(waiting, ids, out, words::with_avx512);
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn with_avx2(waiting: &[usize], messages: &[LogMessage; IDS_WAITING], out: &mut [u8]) {
        let ids = ids_in_turn(messages, waiting.len());
        fill_ids!(waiting, ids, out, words::with_avx2);
    }
    match code {
        Code::Any => {
            let ids = ids_in_turn(messages, waiting.len());
            fill_ids!(waiting, ids, out, writer::hex_word);
        }
        // SAFETY: `Code::all` has it only where the processor has the features.
        #[cfg(target_arch = "x86_64")]
        Code::Avx2 => unsafe { with_avx2(waiting, messages, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Code::Avx512 => unsafe { with_avx512(waiting, messages, out) },
    }
}

/// The digits of bytes of any length, word by word.
macro_rules! put_bytes {
    ($tail:expr, $bytes:expr, $word:path) => {{
        let (words, rest) = $bytes.as_chunks::<32>();
        for word in words {
            $tail.put(&$word(word), 64);
        }
        if !rest.is_empty() {
            let mut word = [0; 32];
            word[..rest.len()].copy_from_slice(rest);
            $tail.put(&$word(&word), 2 * rest.len());
        }
    }};
}
pub(super) use put_bytes;

/// The digits of topics, with what stands before the first, between two and behind the last.
macro_rules! put_topics {
    ($tail:expr, $topics:expr, ($first:path, $next:path, $last:path), $word:path) => {{
        let mut before = &$first;
        for topic in $topics {
            $tail.piece(before);
            $tail.put(&$word(&topic.0), 64);
            before = &$next;
        }
        if !$topics.is_empty() {
            $tail.piece(&$last);
        }
    }};
}
pub(super) use put_topics;

/// A function that writes the text of a log by the macro `$write`, which is compiled for each kind of processor.
macro_rules! for_each_code {
    ($name:ident, $write:ident) => {
        #[expect(
            unsafe_code,
            reason = "calling code compiled for features that were found at run time; text into room that was made"
        )]
        fn $name(code: Code, out: &mut Vec<u8>, log: &LogEntry<'_>) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2")]
            fn with_avx512(out: &mut Vec<u8>, log: &LogEntry<'_>) -> usize {
                $write!(out, log, words::with_avx512)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2")]
            fn with_avx2(out: &mut Vec<u8>, log: &LogEntry<'_>) -> usize {
                $write!(out, log, words::with_avx2)
            }
            let written = match code {
                Code::Any => $write!(&mut *out, log, writer::hex_word),
                // SAFETY: `Code::all` has it only where the processor has the features.
                #[cfg(target_arch = "x86_64")]
                Code::Avx2 => unsafe { with_avx2(out, log) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Code::Avx512 => unsafe { with_avx512(out, log) },
            };
            // SAFETY: so many bytes behind the text were written.
            unsafe { out.set_len(out.len() + written) };
        }
    };
}
pub(super) use for_each_code;

/// The text of an entry, its id left out. A macro, for what is compiled for a processor's instructions must not call what is not: its
/// pieces are inlined, and closures would be compiled for any processor.
macro_rules! write_entry {
    ($out:expr, $log:expr, $word:path) => {{
        let (out, log): (&mut Vec<u8>, &LogEntry<'_>) = ($out, $log);
        let mut tail = Tail::new(out, ENTRY_MAX + 2 * log.data.len());
        tail.piece(&HEAD);
        tail.put(&$word(&log.transaction_hash.0), 64);
        tail.piece(&BLOCK_NUMBER);
        tail.integer(log.block_number);
        tail.piece(&BLOCK_HASH);
        tail.put(&$word(&log.block_hash.0), 64);
        tail.piece(&TIMESTAMP);
        tail.integer(log.timestamp);
        tail.piece(&ADDRESS);
        let mut address = [0; 32];
        address[..20].copy_from_slice(log.address.as_slice());
        tail.put(&$word(&address), 40);
        tail.piece(&DATA);
        put_bytes!(tail, log.data, $word);
        tail.piece(&TOPICS);
        put_topics!(tail, log.topics, (TOPIC, NEXT_TOPIC, LAST_TOPIC), $word);
        tail.piece(&LOG_INDEX);
        tail.integer(u64::from(log.log_index));
        tail.piece(&TRANSACTION_INDEX);
        tail.integer(u64::from(log.transaction_index));
        tail.put(b"}", 1);
        tail.len()
    }};
}

for_each_code!(entry_without_id, write_entry);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, B256};
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
            rows in 1_u32..40,
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
                topics: &topics,
                data: &data,
            };
            let mut expected = String::new();
            for log_index in 0..rows {
                expected.push_str(&plain(chain_id, &LogEntry { log_index, ..log }));
            }
            for code in Code::all() {
                let mut out = Vec::new();
                let mut writer = LogWriter { code, ..LogWriter::new(UuidSpace::new(chain_id)) };
                for log_index in 0..rows {
                    writer.entry(&mut out, &LogEntry { log_index, ..log });
                }
                writer.finish(&mut out);
                prop_assert_eq!(String::from_utf8(out).unwrap(), expected.as_str());
            }
        }
    }
}
