//! The log entry of the specification (L1, L2, L3).

use uuid::Uuid;

use super::{UuidSpace, writer};
use crate::model::{B256, LogEntry};

/// The text up to the block number; `~` stands where hex is filled in.
const HEAD: &[u8; 149] = b"{\"uuid\":\"~~~~~~~~-~~~~-~~~~-~~~~-~~~~~~~~~~~~\",\"transactionHash\":\"0x\
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\",\"blockNumber\":\"";
/// The text from the block number to the timestamp.
const BLOCK_HASH: &[u8; 96] = b"\",\"blockHash\":\"0x\
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\",\"timestamp\":\"";
/// The text from the timestamp to the data.
const ADDRESS: &[u8; 75] = b"\",\"contractAddress\":\"0x\
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\",\"data\":\"0x";
/// A topic with its escaped quotes and a comma.
const TOPIC: &[u8; 71] = b"\\\"0x~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\\\",";
/// Bytes of the rest: names, punctuation and the longest numbers.
const REST_MAX: usize = 120;
const ENTRY_MAX: usize = HEAD.len() + BLOCK_HASH.len() + ADDRESS.len() + 4 * TOPIC.len() + REST_MAX;

/// Entries whose ids are waiting, at most. An id is one long chain of dependent instructions; a few chains in a
/// row overlap, and beside the text of a row they do not.
const IDS_WAITING: usize = 16;

/// Writes log entries one after the other.
#[derive(Debug)]
pub struct LogWriter {
    ids: UuidSpace,
    waiting: Vec<Waiting>,
}

/// An entry that has no id yet: where its text stands, and what the id is made of.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: usize,
    block_hash: B256,
    log_index: u32,
}

impl LogWriter {
    /// A writer of entries with ids from `ids`.
    #[must_use]
    pub fn new(ids: UuidSpace) -> Self {
        Self {
            ids,
            waiting: Vec::with_capacity(IDS_WAITING),
        }
    }

    /// Appends one log entry: the fields of the specification, in its order. The entry is whole after
    /// [`Self::finish`], which must come before `out` is handed on.
    ///
    /// The fixed text is appended in four long pieces and the hex filled in where it stands: that is most of an
    /// entry, and pieces of known length are copied and encoded without calls or branches.
    pub fn entry(&mut self, out: &mut Vec<u8>, log: &LogEntry<'_>) {
        self.waiting.push(Waiting {
            at: out.len(),
            block_hash: log.block_hash,
            log_index: log.log_index,
        });
        entry_without_id(out, log);
        if self.waiting.len() == IDS_WAITING {
            self.finish(out);
        }
    }

    /// Fills in the ids that are waiting.
    pub fn finish(&mut self, out: &mut [u8]) {
        for waiting in self.waiting.drain(..) {
            let id = self.ids.log(&waiting.block_hash, waiting.log_index);
            let text = out.get_mut(waiting.at..).and_then(<[u8]>::first_chunk_mut);
            if let Some(text) = text {
                fill_id(text, id);
            }
        }
    }
}

/// The id's digits in the head of an entry.
#[inline(always)]
fn fill_id(text: &mut [u8; 45], id: Uuid) {
    let (high, low) = id.as_u64_pair();
    let eights = [high >> 32, high, low >> 32, low].map(|half| eight_hex_digits(half as u32));
    text[9..17].copy_from_slice(&eights[0]);
    text[18..22].copy_from_slice(&eights[1][..4]);
    text[23..27].copy_from_slice(&eights[1][4..]);
    text[28..32].copy_from_slice(&eights[2][..4]);
    text[33..37].copy_from_slice(&eights[2][4..]);
    text[37..45].copy_from_slice(&eights[3]);
}

fn entry_without_id(out: &mut Vec<u8>, log: &LogEntry<'_>) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("bmi1")
        && std::is_x86_feature_detected!("bmi2")
    {
        return with_avx2(out, log);
    }
    write_entry(out, log);
}

/// The same code compiled for AVX2: hex is most of an entry, and twice as much of it fits a register.
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "calling code compiled for a feature that was found at run time"
)]
#[inline(always)]
fn with_avx2(out: &mut Vec<u8>, log: &LogEntry<'_>) {
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn write(out: &mut Vec<u8>, log: &LogEntry<'_>) {
        write_entry(out, log);
    }
    // SAFETY: only called where the processor has all three features.
    unsafe { write(out, log) }
}

#[inline(always)]
fn write_entry(out: &mut Vec<u8>, log: &LogEntry<'_>) {
    out.reserve(ENTRY_MAX + 2 * log.data.len());
    if let Some(text) = append(out, HEAD) {
        fill(&mut text[68..132], &log.transaction_hash.0);
    }
    writer::integer(out, log.block_number);
    if let Some(text) = append(out, BLOCK_HASH) {
        fill(&mut text[17..81], &log.block_hash.0);
    }
    writer::integer(out, log.timestamp);
    if let Some(text) = append(out, ADDRESS) {
        fill(&mut text[23..63], &log.address.0.0);
    }
    let (words, rest) = log.data.as_chunks::<32>();
    for word in words {
        if let Some(text) = append(out, &[0; 64]) {
            fill(text, word);
        }
    }
    writer::hex_digits(out, rest);
    out.extend_from_slice(b"\",\"topics\":\"[");
    for topic in log.topics.as_slice() {
        if let Some(text) = append(out, TOPIC) {
            fill(&mut text[4..68], &topic.0);
        }
    }
    if !log.topics.is_empty() {
        out.pop();
    }
    out.extend_from_slice(b"]\",\"logIndex\":");
    writer::integer(out, u64::from(log.log_index));
    out.extend_from_slice(b",\"transactionIndex\":");
    writer::integer(out, u64::from(log.transaction_index));
    out.push(b'}');
}

/// Appends `text` and gives what was appended, to be filled in. No closure: it would not be compiled for the
/// caller's processor features.
#[inline(always)]
fn append<'o, const N: usize>(out: &'o mut Vec<u8>, text: &[u8; N]) -> Option<&'o mut [u8; N]> {
    out.extend_from_slice(text);
    out.last_chunk_mut()
}

/// The hex digits of `bytes` into `digits`, inlined.
#[inline(always)]
fn fill<const N: usize>(digits: &mut [u8], bytes: &[u8; N]) {
    for (pair, &byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair[0] = writer::hex_digit(byte >> 4);
        pair[1] = writer::hex_digit(byte & 15);
    }
}

/// The hex digits of `value` in one register: its bytes are spread, halved into nibbles, and 39 more is added to
/// those above nine.
#[inline(always)]
const fn eight_hex_digits(value: u32) -> [u8; 8] {
    let spread = value.swap_bytes() as u64;
    let spread = (spread | (spread << 16)) & 0x0000_ffff_0000_ffff;
    let spread = (spread | (spread << 8)) & 0x00ff_00ff_00ff_00ff;
    let nibbles = ((spread >> 4) & 0x000f_000f_000f_000f) | ((spread & 0x000f_000f_000f_000f) << 8);
    let letters = ((nibbles + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    (nibbles + 0x3030_3030_3030_3030 + 39 * letters).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, Topics};
    use proptest::prelude::*;
    use serde::Serialize;

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
                topics: Topics::new(&topics).unwrap(),
                data: &data,
            };
            let mut out = Vec::new();
            let mut writer = LogWriter::new(UuidSpace::new(chain_id));
            let mut expected = String::new();
            for log_index in 0..rows {
                let log = LogEntry { log_index, ..log };
                writer.entry(&mut out, &log);
                expected.push_str(&plain(chain_id, &log));
            }
            writer.finish(&mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
