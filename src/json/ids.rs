//! Ids of list items: UUID version 5 in a namespace for each chain (answers.md section 1.8).
//!
//! The id of a log is computed for every row of a page, 10,000 times an answer. Its message is 16 + 37 = 53
//! bytes, which with padding is exactly one SHA-1 block, so that one call of the compression function does it.

use crate::model::B256;
use sha1::digest::core_api::Block;
use sha1::{Digest as _, Sha1, Sha1Core};
use uuid::{Builder, Uuid};

/// Bytes of a SHA-1 block.
pub(super) const BLOCK: usize = 64;
/// Bytes of a log's message: namespace, block hash, `l`, log index.
const LOG_MESSAGE: usize = 16 + 32 + 1 + 4;
/// SHA-1's initial state (FIPS 180-4 section 5.3.1).
pub(super) const INITIAL_STATE: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// The namespace of one chain's ids.
#[derive(Clone, Debug)]
pub struct UuidSpace {
    namespace: [u8; 16],
    /// The padded block of a log's message, without block hash and log index:
    ///
    /// ```text
    ///  0..16 namespace | 16..48 block hash | 48 'l' | 49..53 log index | 53 0x80 | zeros | 56..64 length in bits
    /// ```
    log_block: [u8; BLOCK],
}

impl UuidSpace {
    /// The namespace `v5(NAMESPACE_URL, "quarry:chain:<chain_id>")`.
    #[must_use]
    pub fn new(chain_id: u64) -> Self {
        let name = format!("quarry:chain:{chain_id}");
        let namespace = v5(Uuid::NAMESPACE_URL.as_bytes(), &[name.as_bytes()]).into_bytes();
        let mut log_block = [0; BLOCK];
        log_block[..16].copy_from_slice(&namespace);
        log_block[48] = b'l';
        log_block[LOG_MESSAGE] = 0x80;
        log_block[BLOCK - 8..].copy_from_slice(&(8 * LOG_MESSAGE as u64).to_be_bytes());
        Self { namespace, log_block }
    }

    /// The id of a log.
    #[inline]
    #[must_use]
    pub fn log(&self, block_hash: &B256, log_index: u32) -> Uuid {
        let mut message = self.log_message();
        message.fill(block_hash, log_index);
        message.id()
    }

    /// What the id of a log is made of, to be filled in.
    #[inline]
    pub(super) fn log_message(&self) -> LogMessage {
        LogMessage(self.log_block)
    }

    /// The id of a token transfer; `position` is its place in a `TransferBatch`, else 0.
    #[must_use]
    pub fn transfer(&self, block_hash: &B256, log_index: u32, position: u32) -> Uuid {
        let parts: [&[u8]; 4] = [
            block_hash.as_slice(),
            b"t",
            &log_index.to_be_bytes(),
            &position.to_be_bytes(),
        ];
        v5(&self.namespace, &parts)
    }

    /// The id of an internal transaction; `trace_id` is its `traceId` text (`0_1`).
    #[must_use]
    pub fn internal_transaction(&self, block_hash: &B256, transaction_hash: &B256, trace_id: &str) -> Uuid {
        let parts: [&[u8]; 4] = [
            block_hash.as_slice(),
            b"i",
            transaction_hash.as_slice(),
            trace_id.as_bytes(),
        ];
        v5(&self.namespace, &parts)
    }
}

/// The padded block of a log's message, filled in where it lies and read some time later: who reads at once, or copies, waits for the narrow
/// writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogMessage(pub(super) [u8; BLOCK]);

impl LogMessage {
    #[inline]
    pub(super) fn fill(&mut self, block_hash: &B256, log_index: u32) {
        self.0[16..48].copy_from_slice(block_hash.as_slice());
        self.0[49..LOG_MESSAGE].copy_from_slice(&log_index.to_be_bytes());
    }

    #[inline]
    pub(super) fn id(&self) -> Uuid {
        let mut state = INITIAL_STATE;
        let block: &Block<Sha1Core> = (&self.0).into();
        sha1::compress(&mut state, std::slice::from_ref(block));
        let mut bytes = [0; 16];
        for (four, word) in bytes.chunks_exact_mut(4).zip(state) {
            four.copy_from_slice(&word.to_be_bytes());
        }
        Builder::from_sha1_bytes(bytes).into_uuid()
    }
}

fn v5(namespace: &[u8; 16], parts: &[&[u8]]) -> Uuid {
    let mut hasher = Sha1::new_with_prefix(namespace);
    for part in parts {
        hasher.update(part);
    }
    let digest: [u8; 20] = hasher.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Builder::from_sha1_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference(chain_id: u64, name: &[u8]) -> Uuid {
        let space = Uuid::new_v5(
            &Uuid::NAMESPACE_URL,
            format!("quarry:chain:{chain_id}").as_bytes(),
        );
        Uuid::new_v5(&space, name)
    }

    proptest! {
        #[test]
        fn ids_are_those_of_the_uuid_crate(
            chain_id in any::<u64>(),
            block in any::<[u8; 32]>(),
            transaction in any::<[u8; 32]>(),
            log_index in any::<u32>(),
            position in any::<u32>(),
            trace_id in "[0-9]{1,2}(_[0-9]{1,3}){0,20}",
        ) {
            let ids = UuidSpace::new(chain_id);
            let (block, transaction) = (B256::from(block), B256::from(transaction));

            let log = [block.as_slice(), b"l", &log_index.to_be_bytes()].concat();
            prop_assert_eq!(ids.log(&block, log_index), reference(chain_id, &log));

            let transfer =
                [block.as_slice(), b"t", &log_index.to_be_bytes(), &position.to_be_bytes()].concat();
            prop_assert_eq!(ids.transfer(&block, log_index, position), reference(chain_id, &transfer));

            let internal = [block.as_slice(), b"i", transaction.as_slice(), trace_id.as_bytes()].concat();
            prop_assert_eq!(
                ids.internal_transaction(&block, &transaction, &trace_id),
                reference(chain_id, &internal)
            );
        }
    }

    #[test]
    fn ids_do_not_change_between_releases() {
        let ids = UuidSpace::new(1);
        assert_eq!(ids.log(&B256::ZERO, 0).to_string(), PINNED_LOG);
    }

    /// Computed with Python's `uuid.uuid5`.
    const PINNED_LOG: &str = "b9b4c18a-4ff0-53b9-8e9f-011107845278";
}
