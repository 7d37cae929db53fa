//! One snapshot of all tables and arrays.

use std::sync::Arc;

use rocksdb::{DB, DBPinnableSlice, ReadOptions, ReadTier, SnapshotWithThreadMode};
use self_cell::self_cell;

use super::batch::{NO_SIGNATURE, STATUS_NOT_SAID};
use super::caches::Caches;
use super::dense::DenseSince;
use super::flat::{FlatArray, FlatView, Former, address, hash};
use super::kept_rows::KeptRows;
use super::known::Known;
use super::scan::RawIterator;
use super::schema::Table;
use super::walked::{Walked, Walks};
use super::{Direction, PostingCursor, StoreError, Units, flat, memory};
use crate::codec::transaction_row::{TransactionSlice, signature_of};
use crate::codec::value::{Checkpoint, Finality, Identity};
use crate::codec::{Corrupt, bytes, keys};
use crate::metrics::visits;
use crate::model::{Address, B256, BlockId, Transaction};

/// What reads of a view go to.
enum Moment<'a> {
    /// One moment of a database that goes on.
    Snapshot(SnapshotWithThreadMode<'a, DB>, Point),
    /// A secondary instance, which knows no snapshots; it does not catch up while somebody has it.
    Still(&'a DB, Point),
}

/// The options of reads of single rows. They are the same for all of a view: to make them anew and throw them away is a
/// twentieth of a look-up.
#[derive(Default)]
struct Point {
    disk: ReadOptions,
    memory: ReadOptions,
}

impl Point {
    fn new(prepare: impl Fn(&mut ReadOptions)) -> Self {
        let mut point = Self::default();
        point.memory.set_read_tier(ReadTier::BlockCache);
        prepare(&mut point.disk);
        prepare(&mut point.memory);
        point
    }

    fn options(&self) -> &ReadOptions {
        if memory::only() { &self.memory } else { &self.disk }
    }
}

self_cell!(
    struct SnapshotCell {
        owner: Arc<DB>,
        #[covariant]
        dependent: Moment,
    }
);

/// The store as it was after one commit. Cheap to share; what it sees never changes.
pub struct View {
    cell: SnapshotCell,
    flats: Vec<FlatView>,
    checkpoint: Checkpoint,
    finality: Finality,
    identity: Arc<Identity>,
    revision: u64,
    pub(super) known: Known,
    /// Rows of final blocks, also from views before this one.
    pub(super) kept: Option<Arc<KeptRows>>,
    /// Since when terms are dense, also from views before this one.
    pub(super) dense: Arc<DenseSince>,
}

/// What the last transaction of an account says of its nonce.
#[derive(Clone, Copy, Debug)]
pub struct LastSent {
    /// The transaction's, and one more.
    pub nonce_after: u64,
    /// Whether its nonce need not be the account's ([`Transaction::is_made_by_chain`](crate::model::Transaction::is_made_by_chain)).
    pub is_made_by_chain: bool,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View")
            .field("checkpoint", &self.checkpoint)
            .finish_non_exhaustive()
    }
}

impl View {
    pub(super) fn new(
        db: &Arc<DB>,
        flats: Vec<FlatView>,
        checkpoint: Checkpoint,
        finality: Finality,
        identity: Arc<Identity>,
    ) -> Self {
        // Taken before the snapshot: a write in between is told by the next view's.
        let revision = db.latest_sequence_number();
        let cell = SnapshotCell::new(Arc::clone(db), |db| {
            let snapshot = db.snapshot();
            let point = Point::new(|options| options.set_snapshot(&snapshot));
            Moment::Snapshot(snapshot, point)
        });
        Self::over(cell, revision, flats, checkpoint, finality, identity)
    }

    /// A view over a secondary instance that stands still as long as anybody but its replica holds it.
    pub(super) fn still(
        db: &Arc<DB>,
        flats: Vec<FlatView>,
        checkpoint: Checkpoint,
        finality: Finality,
        identity: Arc<Identity>,
    ) -> Self {
        let revision = db.latest_sequence_number();
        let cell = SnapshotCell::new(Arc::clone(db), |db| Moment::Still(db, Point::new(|_| {})));
        Self::over(cell, revision, flats, checkpoint, finality, identity)
    }

    fn over(
        cell: SnapshotCell,
        revision: u64,
        flats: Vec<FlatView>,
        checkpoint: Checkpoint,
        finality: Finality,
        identity: Arc<Identity>,
    ) -> Self {
        Self {
            cell,
            flats,
            checkpoint,
            finality,
            identity,
            revision,
            known: Known::default(),
            kept: None,
            dense: Arc::default(),
        }
    }

    /// The same, with what is kept of its store.
    pub(super) fn keeping(self, caches: &Caches) -> Self {
        Self {
            kept: caches.rows.clone(),
            dense: Arc::clone(&caches.dense),
            ..self
        }
    }

    /// Which chain this is.
    #[must_use]
    pub const fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// A number that every write to the tables raises; it outlives the process.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// How far it is.
    #[must_use]
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The last block; `None` in an empty store.
    #[must_use]
    pub fn head(&self) -> Option<BlockId> {
        let number = self.checkpoint.next_block.checked_sub(1)?;
        (number >= self.identity.first_block).then(|| BlockId {
            number,
            hash: B256::from(self.checkpoint.hash),
        })
    }

    /// The first block that the store holds or will hold.
    #[must_use]
    pub fn first_block(&self) -> u64 {
        self.identity.first_block
    }

    /// The last final block; `None` while there is none.
    #[must_use]
    pub fn finalized(&self) -> Option<u64> {
        self.finality
            .next_unfinal
            .checked_sub(1)
            .filter(|&number| number >= self.identity.first_block)
    }

    /// Whether the frames of every block are stored.
    #[must_use]
    pub const fn has_traces(&self) -> bool {
        self.checkpoint.next_traced == self.checkpoint.next_block
    }

    fn flat(&self, array: FlatArray) -> Option<&FlatView> {
        self.flats.get(array as usize)
    }

    pub(super) fn missing(array: FlatArray, what: &'static str, number: u64) -> StoreError {
        StoreError::Missing {
            table: array.name(),
            what,
            number,
        }
    }

    #[inline]
    pub(super) fn record(
        &self,
        array: FlatArray,
        what: &'static str,
        number: u64,
    ) -> Result<&[u8], StoreError> {
        let flat = self
            .flat(array)
            .filter(|flat| !memory::only() || flat.is_in_memory(number) || !memory::forbids())
            .ok_or_else(|| Self::missing(array, what, number))?;
        if !flat.is_compared(number) {
            self.compare_page(array, flat, number)?;
        }
        flat.get(number).ok_or_else(|| Self::missing(array, what, number))
    }

    /// The hash of a transaction by ordinal.
    #[inline]
    pub fn transaction_hash(&self, ordinal: u64) -> Result<B256, StoreError> {
        self.record(FlatArray::TransactionHashes, "transaction", ordinal)
            .map(hash)
    }

    /// Puts into a transaction what its row does not say: hash and signature.
    pub fn complete(&self, transaction: &mut Transaction, ordinal: u64) -> Result<(), StoreError> {
        transaction.hash = self.transaction_hash(ordinal)?;
        let record = self.record(FlatArray::TransactionSignatures, "transaction", ordinal)?;
        if let Some(record) = record.first_chunk() {
            (transaction.r, transaction.s) = signature_of(record);
        }
        Ok(())
    }

    /// Whether the block of a transaction is final: files hold final blocks, tails the others.
    #[inline]
    #[must_use]
    pub fn is_final_transaction(&self, ordinal: u64) -> bool {
        ordinal < self.final_records(FlatArray::TransactionHashes)
    }

    /// What of each array was compared with its sums.
    pub(super) fn compared(&self) -> Vec<Former> {
        self.flats.iter().map(FlatView::compared).collect()
    }

    /// How many records of an array are of final blocks.
    #[inline]
    pub(super) fn final_records(&self, array: FlatArray) -> u64 {
        self.flat(array).map_or(0, FlatView::file_len)
    }

    /// What a transaction's receipt says became of it; `None` where it does not say.
    #[inline]
    pub fn transaction_status(&self, ordinal: u64) -> Result<Option<bool>, StoreError> {
        let bytes = self.record(FlatArray::TransactionStatuses, "transaction", ordinal)?;
        Ok(bytes
            .first()
            .copied()
            .filter(|&status| status != STATUS_NOT_SAID)
            .map(|status| status == 1))
    }

    /// The emitter of a log by ordinal.
    #[inline]
    pub fn log_emitter(&self, ordinal: u64) -> Result<u32, StoreError> {
        let bytes = self.record(FlatArray::LogEmitters, "log", ordinal)?;
        Ok(bytes
            .first_chunk::<4>()
            .map_or(0, |chunk| u32::from_be_bytes(*chunk)))
    }

    /// The signature of a log by ordinal: the id of its topic 0; `None` where it has no topic.
    #[inline]
    pub fn log_signature(&self, ordinal: u64) -> Result<Option<u32>, StoreError> {
        let bytes = self.record(FlatArray::LogSignatures, "log", ordinal)?;
        Ok(bytes
            .first_chunk::<4>()
            .map(|chunk| u32::from_be_bytes(*chunk))
            .filter(|&signature| signature != NO_SIGNATURE))
    }

    /// The address of an emitter id.
    #[inline]
    pub fn emitter_address(&self, emitter: u32) -> Result<Address, StoreError> {
        self.record(FlatArray::Emitters, "emitter", u64::from(emitter))
            .map(address)
    }

    /// The topic of a signature id.
    #[inline]
    pub fn signature_topic(&self, signature: u32) -> Result<B256, StoreError> {
        self.record(FlatArray::Signatures, "signature", u64::from(signature))
            .map(hash)
    }

    pub(super) fn id(&self, table: Table, key: &[u8]) -> Result<Option<u32>, StoreError> {
        self.get(table, key)?
            .map(|value| {
                let id = value.as_ref().try_into().map_err(|_| Corrupt("id"));
                id.map(u32::from_be_bytes)
                    .map_err(StoreError::corrupt(table.name(), key))
            })
            .transpose()
    }

    /// The first of the numbers that are stored for a hash, or for others that begin as it does, which is its own.
    fn of_hash(
        &self,
        kind: keys::HashKind,
        hash: &B256,
        is_own: impl Fn(u64) -> Result<bool, StoreError>,
    ) -> Result<Option<u64>, StoreError> {
        let key = keys::hash(kind, hash);
        let Some(value) = self.get(Table::Hashes, &key)? else {
            return Ok(None);
        };
        let mut reader = bytes::Reader::new(&value, "hash row");
        while !reader.is_empty() {
            let number = reader.varint();
            let number = number.map_err(StoreError::corrupt(Table::Hashes.name(), &key))?;
            if is_own(number)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The ordinal of a transaction hash.
    pub fn transaction_ordinal(&self, hash: &B256) -> Result<Option<u64>, StoreError> {
        let kept = self.kept.as_ref().map(|kept| &kept.ordinals);
        for hint in kept.into_iter().flat_map(|kept| kept.hints(hash)) {
            if hint < self.checkpoint.transactions && self.transaction_hash(hint)? == *hash {
                return Ok(Some(hint));
            }
        }
        let found = self.stored_transaction_ordinal(hash)?;
        if let Some((kept, ordinal)) = kept.zip(found) {
            kept.keep(hash, ordinal);
        }
        Ok(found)
    }

    /// What walks over an expression found, by a name that says what it is; it tells of final blocks, which need not all be so in this
    /// view.
    #[must_use]
    pub fn walked(&self, name: &[u8]) -> Option<Arc<Walks>> {
        self.kept.as_ref()?.walks.get(name)
    }

    /// Keeps what walks over an expression found; nothing of it may lie in a block that is not final in this view.
    pub fn keep_walked(&self, name: &[u8], walked: Walked) {
        if let Some(kept) = &self.kept {
            kept.walks.keep(name, walked);
        }
    }

    /// The same as the tables say it, whatever is kept beside them.
    pub fn stored_transaction_ordinal(&self, hash: &B256) -> Result<Option<u64>, StoreError> {
        let is_own = |ordinal| Ok(self.transaction_hash(ordinal)? == *hash);
        self.of_hash(keys::HashKind::Transaction, hash, is_own)
    }

    /// The number of a block hash.
    pub fn block_number(&self, hash: &B256) -> Result<Option<u64>, StoreError> {
        let is_own = |number| Ok(self.block(number)?.hash == *hash);
        self.of_hash(keys::HashKind::Block, hash, is_own)
    }

    /// The nonce of an account after a block, where the `nonces` table says one.
    pub fn ledger_nonce(&self, account: &Address, block: u64) -> Result<Option<u64>, StoreError> {
        let (from, to) = (keys::account_at(account, 0), keys::account_at(account, block));
        self.last_row(Table::Nonces, &from, &to, |value| {
            bytes::Reader::new(value, "nonce").varint()
        })
    }

    /// The nonce after the last transaction that an account sent among those before `end`.
    pub fn sent_nonce(&self, account: &Address, end: u64) -> Result<Option<u64>, StoreError> {
        Ok(self.last_sent(account, end)?.map(|sent| sent.nonce_after))
    }

    /// What the last transaction that an account sent among those before `end` says of its nonce.
    pub fn last_sent(&self, account: &Address, end: u64) -> Result<Option<LastSent>, StoreError> {
        let Some(last) = end.checked_sub(1) else {
            return Ok(None);
        };
        let sent = self.sent_from(account, last, Direction::Backward)?;
        Ok(sent.map(|(nonce, is_made_by_chain)| LastSent {
            nonce_after: nonce.saturating_add(1),
            is_made_by_chain,
        }))
    }

    /// The nonce of the first stored transaction that an account sent; `None` where there is none, or where the chain made
    /// it, which numbers those in its own way.
    pub fn first_nonce(&self, account: &Address) -> Result<Option<u64>, StoreError> {
        let sent = self.sent_from(account, 0, Direction::Forward)?;
        Ok(sent.and_then(|(nonce, is_made_by_chain)| (!is_made_by_chain).then_some(nonce)))
    }

    /// The nonce of the transaction of an account that comes next from ordinal `from` on, and whether the chain made it.
    fn sent_from(
        &self,
        account: &Address,
        from: u64,
        direction: Direction,
    ) -> Result<Option<(u64, bool)>, StoreError> {
        let term = keys::Term::account(keys::PostingKind::AccountSent, account);
        let mut sent = PostingCursor::open(self, term, direction)?;
        let Some(ordinal) = sent.seek(from)? else {
            return Ok(None);
        };
        let mut units = Units::new(self, Table::Transactions);
        let row = units.row(ordinal)?;
        let sent = TransactionSlice::decode(row.bytes()).map_err(StoreError::corrupt(
            Table::Transactions.name(),
            &keys::number(ordinal),
        ))?;
        Ok(Some((sent.nonce, Transaction::is_of_chain(sent.kind, sent.gas))))
    }

    /// A row by key.
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<DBPinnableSlice<'_>>, StoreError> {
        let db = self.cell.borrow_owner();
        let family = family(db, table)?;
        visits::get();
        let (Moment::Snapshot(_, point) | Moment::Still(_, point)) = self.cell.borrow_dependent();
        let found = db.get_pinned_cf_opt(family, key, point.options());
        found.map_err(StoreError::rocks_at(table.name(), key))
    }

    /// An iterator over a table as this snapshot has it.
    pub(super) fn iterator(&self, table: Table, options: ReadOptions) -> Result<RawIterator<'_>, StoreError> {
        let family = family(self.cell.borrow_owner(), table)?;
        let options = in_tier(options);
        Ok(match self.cell.borrow_dependent() {
            Moment::Snapshot(snapshot, _) => snapshot.raw_iterator_cf_opt(family, options),
            Moment::Still(db, _) => db.raw_iterator_cf_opt(family, options),
        })
    }

    /// The bytes of an array, in parts.
    pub fn array_bytes(&self, array: FlatArray) -> impl Iterator<Item = &[u8]> {
        self.flat(array).into_iter().flat_map(FlatView::parts)
    }

    /// Records of an array.
    #[must_use]
    pub fn array_len(&self, array: FlatArray) -> u64 {
        self.flat(array).map_or(0, flat::FlatView::len)
    }
}

/// The same, kept from the disk where reads must not wait.
pub(super) fn in_tier(mut options: ReadOptions) -> ReadOptions {
    if memory::only() {
        options.set_read_tier(ReadTier::BlockCache);
    }
    options
}

pub(super) fn family(db: &DB, table: Table) -> Result<&rocksdb::ColumnFamily, StoreError> {
    db.cf_handle(table.name()).ok_or(StoreError::Missing {
        table: table.name(),
        what: "column family",
        number: table as u64,
    })
}
