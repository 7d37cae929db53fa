//! Rows of one or more blocks on their way into the store.
//!
//! Derivations push rows, postings, logs of runs and flat records; nothing is written before
//! [`super::Writer`] commits the whole. What it yields does not depend on how many blocks share a
//! batch: lists are cut at fixed places and ids are given in chain order.

use std::sync::Arc;

use alloy_primitives::map::{AddressMap, B256Map, HashMap};
use rocksdb::WriteBatch;

use super::StoreError;
use super::days::Days;
use super::flat::{ARRAYS, BlockEarnings, BlockFacts, BlockFrames, FlatArray};
use super::ledger::{ChangedAccount, LedgerRows};
use super::open::Store;
use super::posted::{Posted, Room};
use super::schema::Table;
use super::token_ledger::{TokenId, TokenMoves};
use super::view::family;
use crate::codec::keys::{self, HashKind, Term};
use crate::codec::log_row::{RunBuilder, RunRow};
use crate::codec::transaction_row::SIGNATURE_BYTES;
use crate::codec::value::Checkpoint;
use crate::codec::{Corrupt, bytes};
use crate::model::{Address, B256};

/// Ids that are remembered between batches; beyond this many they are looked up again.
const REMEMBERED_MAX: usize = 1 << 20;

/// Ids given so far and accounts of the ledger, as far as they are remembered.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    emitters: AddressMap<u32>,
    signatures: B256Map<u32>,
    pub(super) ledger: LedgerRows,
    pub(super) tokens: AddressMap<TokenId>,
}

impl Dictionary {
    pub(super) fn clear(&mut self) {
        self.ledger = LedgerRows::default();
        self.emitters.clear();
        self.signatures.clear();
        self.tokens.clear();
    }

    /// Whether more ids are remembered than should be.
    pub(super) fn is_full(&self) -> bool {
        self.emitters
            .len()
            .max(self.signatures.len())
            .max(self.tokens.len())
            > REMEMBERED_MAX
    }

    /// Forgets ids when too many are remembered; all of them must be stored.
    pub(super) fn trim(&mut self) {
        if self.is_full() {
            self.clear();
        }
    }
}

/// Nonces that a batch tells, before a view does.
#[derive(Debug, Default)]
pub(super) struct Nonces {
    /// By the table `nonces`; `None` where it is known to have none.
    ledger: AddressMap<Option<u64>>,
    /// By the last transaction sent.
    sent: AddressMap<u64>,
}

pub(super) fn with_room<K, V, S: Default>(room: usize) -> HashMap<K, V, S> {
    HashMap::with_capacity_and_hasher(room, Default::default())
}

/// The status of a transaction whose receipt states none (before Byzantium).
pub(super) const STATUS_NOT_SAID: u8 = 2;
/// What a receipt says became of its transaction, as the array has it.
#[must_use]
pub fn status_byte(status: Option<bool>) -> u8 {
    status.map_or(STATUS_NOT_SAID, u8::from)
}
/// The signature of a log without topics.
pub(super) const NO_SIGNATURE: u32 = u32::MAX;

/// Plain rows as the write that will carry them: a row is in memory once, and the other rows follow it there.
#[derive(Default)]
pub(super) struct Plain {
    pub(super) write: WriteBatch,
    /// Tables and keys, for the undo record; kept while the batch may be a block that is not final.
    pub(super) keys: Vec<(Table, Vec<u8>)>,
}

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plain")
            .field("rows", &self.write.len())
            .field("bytes", &self.write.size_in_bytes())
            .finish_non_exhaustive()
    }
}

/// How large a batch became, so that the next one has room from the start and does not grow by copying.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    /// Bytes of the whole write.
    pub(super) write: usize,
    pub(super) hashes: usize,
    pub(super) postings: Room,
    pub(super) logs: usize,
    pub(super) sent: usize,
    /// Balances and ids of tokens.
    pub(super) moves: (usize, usize),
}

/// Rows of one or more blocks; see the module.
#[derive(Debug)]
pub struct Batch {
    pub(super) store: Arc<Store>,
    pub(super) dictionary: Dictionary,
    /// How far the store is before the batch.
    pub(super) base: Checkpoint,
    pub(super) checkpoint: Checkpoint,
    pub(super) blocks: u64,
    /// Rows under keys that no earlier block wrote.
    pub(super) plain: Plain,
    pub(super) hashes: Vec<([u8; 9], u64)>,
    pub(super) postings: Posted,
    /// New logs by emitter, to be appended to its list.
    pub(super) logs: HashMap<u32, RunBuilder>,
    pub(super) flats: [Vec<u8>; ARRAYS],
    /// What moved of tokens.
    pub(super) moves: TokenMoves,
    /// What days gain.
    pub(super) days: Days,
    /// Rows of accounts that the batch changes.
    pub(super) accounts: Vec<ChangedAccount>,
    nonces: Nonces,
    /// Those of the batch before, whose commit may be under way.
    earlier: Arc<Nonces>,
    /// The block whose frames are filled in and its first transaction: what the store has of later ones is not looked at.
    filled: Option<(u64, u64)>,
    pub(super) bytes: usize,
}

impl Batch {
    /// A batch that expects to become about as large as `room`.
    pub(super) fn new(
        store: Arc<Store>,
        dictionary: Dictionary,
        earlier: Arc<Nonces>,
        base: Checkpoint,
        room: &Sizes,
    ) -> Self {
        Self {
            store,
            dictionary,
            base,
            checkpoint: base,
            blocks: 0,
            plain: Plain {
                // Room that is not used is never touched, and so takes no memory.
                write: WriteBatch::with_capacity_bytes(room.write + room.write / 4),
                keys: Vec::new(),
            },
            hashes: Vec::with_capacity(room.hashes),
            postings: Posted::with_room(room.postings),
            logs: with_room(room.logs),
            flats: Default::default(),
            moves: TokenMoves::with_room(room.moves),
            days: Days::default(),
            accounts: Vec::new(),
            nonces: Nonces {
                ledger: AddressMap::default(),
                sent: with_room(room.sent),
            },
            earlier,
            filled: None,
            bytes: 0,
        }
    }

    /// How much the batch holds; the write is filled when it is committed.
    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            write: 0,
            hashes: self.hashes.len(),
            postings: self.postings.room(),
            logs: self.logs.len(),
            sent: self.nonces.sent.len(),
            moves: self.moves.sizes(),
        }
    }

    /// Blocks in the batch.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// About how many bytes of memory the batch holds.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The store as it is: as it was before the batch, or before the batch before that, whose commit is under way.
    #[must_use]
    pub fn base(&self) -> Arc<super::View> {
        self.store.view()
    }

    /// The first block that the store holds.
    #[must_use]
    pub fn first_block(&self) -> u64 {
        self.store.identity().first_block
    }

    /// How far the store will be after this batch.
    #[must_use]
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Begins the next block; its rows follow.
    pub fn begin_block(
        &mut self,
        number: u64,
        hash: B256,
        timestamp: u64,
        earnings: &BlockEarnings,
    ) -> Result<(), StoreError> {
        if number != self.checkpoint.next_block {
            return Err(StoreError::OutOfOrder {
                found: number,
                wanted: self.checkpoint.next_block,
            });
        }
        let facts = BlockFacts {
            hash,
            timestamp,
            first_transaction: self.checkpoint.transactions,
            first_log: self.checkpoint.logs,
        };
        if let Some(blocks) = self.flats.get_mut(FlatArray::Blocks as usize) {
            facts.encode(blocks);
        }
        if let Some(array) = self.flats.get_mut(FlatArray::BlockEarnings as usize) {
            earnings.encode(array);
        }
        self.hash(HashKind::Block, &hash, number);
        self.checkpoint.next_block = number
            .checked_add(1)
            .ok_or(StoreError::Overflow("block number"))?;
        self.checkpoint.hash = hash.0;
        self.blocks += 1;
        if self.blocks > 1 {
            // More than one block: all of them are final, and nothing is undone.
            self.plain.keys = Vec::new();
        }
        self.bytes += 128;
        Ok(())
    }

    /// States that the frames of the next untraced block are in the batch: where they begin and how many
    /// of them are internal transactions.
    pub fn traced(&mut self, first_frame: u64, internal_transactions: u32) {
        if let Some(frames) = self.flats.get_mut(FlatArray::BlockFrames as usize) {
            BlockFrames {
                first_frame,
                internal_transactions,
            }
            .encode(frames);
        }
        self.checkpoint.next_traced += 1;
    }

    /// Adds a row under a key that no earlier block wrote.
    pub fn row(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.bytes += key.len() + value.len() + 16;
        self.plain
            .write
            .put_cf(family(&self.store.db, table)?, key, value);
        // Without a block there is no undo record: what is filled in is of blocks that stay.
        if self.blocks == 1 {
            self.bytes += key.len() + 56;
            self.plain.keys.push((table, key.to_vec()));
        }
        Ok(())
    }

    /// Adds a posting; the ordinals of a term ascend, a repeated one is left out.
    #[inline]
    pub fn posting(&mut self, term: Term, ordinal: u64) {
        self.bytes += self.postings.push(term, ordinal);
    }

    /// Names a block number or a transaction ordinal by its hash.
    pub fn hash(&mut self, kind: HashKind, hash: &B256, number: u64) {
        self.hashes.push((keys::hash(kind, hash), number));
        self.bytes += 64;
    }

    /// Gives the next transaction ordinal to a hash, and keeps its signature and what its receipt says became of it.
    pub fn transaction(
        &mut self,
        hash: &B256,
        signature: &[u8; SIGNATURE_BYTES],
        status: Option<bool>,
    ) -> u64 {
        let ordinal = self.checkpoint.transactions;
        self.checkpoint.transactions += 1;
        if let Some(hashes) = self.flats.get_mut(FlatArray::TransactionHashes as usize) {
            hashes.extend_from_slice(hash.as_slice());
        }
        if let Some(signatures) = self.flats.get_mut(FlatArray::TransactionSignatures as usize) {
            signatures.extend_from_slice(signature);
        }
        if let Some(statuses) = self.flats.get_mut(FlatArray::TransactionStatuses as usize) {
            statuses.push(status_byte(status));
        }
        self.hash(HashKind::Transaction, hash, ordinal);
        self.bytes += 32 + SIGNATURE_BYTES;
        ordinal
    }

    /// Gives the next frame ordinals to `count` frames; answers the first.
    pub const fn frames(&mut self, count: u64) -> u64 {
        let first = self.checkpoint.frames;
        self.checkpoint.frames += count;
        first
    }

    /// Gives the next log ordinal to a log of `emitter` and adds it to the emitter's list; `signature` is the id of
    /// its topic 0, `None` where it has no topic.
    pub fn log(&mut self, emitter: u32, signature: Option<u32>, row: &RunRow, body: &[u8]) {
        self.checkpoint.logs += 1;
        if let Some(emitters) = self.flats.get_mut(FlatArray::LogEmitters as usize) {
            emitters.extend_from_slice(&emitter.to_be_bytes());
        }
        if let Some(signatures) = self.flats.get_mut(FlatArray::LogSignatures as usize) {
            signatures.extend_from_slice(&signature.unwrap_or(NO_SIGNATURE).to_be_bytes());
        }
        self.bytes += body.len() + 48;
        let logs = self.logs.entry(emitter).or_insert_with(|| {
            self.bytes += 128;
            RunBuilder::default()
        });
        logs.push(row, body);
    }

    /// The id of an emitter, given now if it is new.
    pub fn emitter(&mut self, address: &Address) -> Result<u32, StoreError> {
        if let Some(&id) = self.dictionary.emitters.get(address) {
            return Ok(id);
        }
        let id = match self.stored_id(Table::Emitters, address.as_slice())? {
            Some(id) => id,
            None => {
                let id = self.checkpoint.emitters;
                self.checkpoint.emitters = id.checked_add(1).ok_or(StoreError::Overflow("emitter id"))?;
                self.new_id(Table::Emitters, FlatArray::Emitters, address.as_slice(), id)?;
                id
            }
        };
        self.dictionary.emitters.insert(*address, id);
        Ok(id)
    }

    /// The id of a topic at position 0, given now if it is new.
    pub fn signature(&mut self, topic: &B256) -> Result<u32, StoreError> {
        if let Some(&id) = self.dictionary.signatures.get(topic) {
            return Ok(id);
        }
        let id = match self.stored_id(Table::Signatures, topic.as_slice())? {
            Some(id) => id,
            None => {
                let id = self.checkpoint.signatures;
                self.checkpoint.signatures = id.checked_add(1).ok_or(StoreError::Overflow("signature id"))?;
                self.new_id(Table::Signatures, FlatArray::Signatures, topic.as_slice(), id)?;
                id
            }
        };
        self.dictionary.signatures.insert(*topic, id);
        Ok(id)
    }

    /// Ends the batch: gives up what the next one goes on from, and keeps what its rows are made of.
    pub(super) fn hand_over(&mut self) -> (Dictionary, Arc<Nonces>) {
        for (address, learnt) in self.moves.learnt() {
            if let Some(token) = self.dictionary.tokens.get_mut(address) {
                *token = learnt;
            }
        }
        self.accounts = self.dictionary.ledger.settle();
        let nonces = Arc::new(std::mem::take(&mut self.nonces));
        (std::mem::take(&mut self.dictionary), nonces)
    }

    pub(super) fn new_id(
        &mut self,
        table: Table,
        array: FlatArray,
        key: &[u8],
        id: u32,
    ) -> Result<(), StoreError> {
        if let Some(array) = self.flats.get_mut(array as usize) {
            array.extend_from_slice(key);
        }
        self.row(table, key, &id.to_be_bytes())
    }

    /// The account's nonce by the `nonces` table after the batch so far.
    pub fn nonce(&self, account: &Address) -> Result<Option<u64>, StoreError> {
        let told = self.nonces.ledger.get(account);
        match told.or_else(|| self.earlier.ledger.get(account)) {
            Some(&nonce) => Ok(nonce),
            None => match self.filled {
                None => self.base().ledger_nonce(account, u64::MAX),
                Some((0, _)) => Ok(None),
                Some((block, _)) => self.base().ledger_nonce(account, block - 1),
            },
        }
    }

    /// The nonce after the last transaction that an account sent, in the store or in earlier blocks of the
    /// batch.
    pub fn sent_nonce(&self, account: &Address, base: &super::View) -> Result<Option<u64>, StoreError> {
        let told = self.nonces.sent.get(account);
        match told.or_else(|| self.earlier.sent.get(account)) {
            Some(&nonce) => Ok(Some(nonce)),
            None => {
                let end = self.filled.map(|(_, first_transaction)| first_transaction);
                base.sent_nonce(account, end.unwrap_or(base.checkpoint().transactions))
            }
        }
    }

    /// Goes on to a block that is stored without its frames, of which `first_transaction` is the first: nonces are those before it from now
    /// on. Blocks come in order.
    pub const fn fill(&mut self, block: u64, first_transaction: u64) {
        self.filled = Some((block, first_transaction));
    }

    /// Takes back what was recorded of the account's nonce after a block, for it is derived again.
    pub fn take_back_nonce(&mut self, account: &Address, block: u64) -> Result<(), StoreError> {
        let (table, key) = (Table::Nonces, keys::account_at(account, block));
        if self.stored(table, &key)?.is_some() {
            // The view shows the row up to the commit, so later blocks of the batch must not look for the nonce there.
            let before = self.nonce(account)?;
            self.nonces.ledger.insert(*account, before);
            self.plain.write.delete_cf(family(&self.store.db, table)?, key);
        }
        Ok(())
    }

    /// Remembers the nonce after a transaction that an account sent.
    pub fn remember_sent(&mut self, account: &Address, nonce: u64) {
        self.nonces.sent.insert(*account, nonce);
        self.bytes += 40;
    }

    /// Records the account's nonce after a block.
    pub fn set_nonce(&mut self, account: &Address, block: u64, nonce: u64) -> Result<(), StoreError> {
        let mut value = Vec::with_capacity(4);
        bytes::put_varint(&mut value, nonce);
        self.nonces.ledger.insert(*account, Some(nonce));
        self.row(Table::Nonces, &keys::account_at(account, block), &value)
    }

    pub(super) fn stored(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store
            .db
            .get_cf(family(&self.store.db, table)?, key)
            .map_err(StoreError::rocks_at(table.name(), key))
    }

    pub(super) fn stored_id(&self, table: Table, key: &[u8]) -> Result<Option<u32>, StoreError> {
        self.stored(table, key)?
            .map(|value| {
                let id = value.as_slice().try_into().map_err(|_| Corrupt("id"));
                id.map(u32::from_be_bytes)
                    .map_err(StoreError::corrupt(table.name(), key))
            })
            .transpose()
    }
}
