//! From layout 8 to 9: rows of transactions in a form of their own, and signatures in an array.
//!
//! Layout 8 kept rows as bincode wrote them, with the signature, prices twice and call data with all of its zeros. Units hold more
//! rows without that, so those of a block are cut anew, as a store that is filled now has them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocksdb::{DB, WriteBatch};

use super::flat::FlatArray;
use super::flats::sync_directory;
use super::open::{FINALITY, OpenOptions};
use super::recut::recut;
use super::schema::Table;
use super::second_standards::settled_store;
use super::view::family;
use super::{StoreError, Units};
use crate::codec::keys;
use crate::codec::transaction_row::{
    SIGNATURE_BYTES, TRANSACTION_UNIT_BYTES_MAX, encode_transaction, signature,
};
use crate::codec::value::{Finality, decode_bincode_transaction};

/// Rows are written when so many bytes of them are together, their signatures having been forced to disk.
const WRITE_BYTES: usize = 32 << 20;
/// How many blocks are done between two lines in the log.
const BLOCKS_A_LINE: u64 = 1 << 18;
/// In the table `meta` while it runs: the first block whose rows are of layout 8. A row does not say of which it is.
const NEXT: &[u8] = b"migrated";

/// Does it. What an interrupted run did stays done: it says how far it came in the write that did it.
pub(super) fn apply(db: &Arc<DB>, options: &OpenOptions) -> Result<WriteBatch, StoreError> {
    apply_below(db, options, u64::MAX)
}

/// Does it in the blocks below `limit`.
fn apply_below(db: &Arc<DB>, options: &OpenOptions, limit: u64) -> Result<WriteBatch, StoreError> {
    let store = settled_store(db, options)?;
    let view = store.view();
    let failed = || StoreError::rocks(Table::Transactions.name());
    let (meta, transactions) = (family(db, Table::Meta)?, family(db, Table::Transactions)?);
    let (first, end) = (
        view.identity().first_block,
        view.checkpoint().next_block.min(limit),
    );
    let next = match db.get_cf(meta, NEXT).map_err(failed())? {
        Some(bytes) => keys::decode_number(&bytes).map_err(StoreError::corrupt(Table::Meta.name(), NEXT))?,
        None => first,
    };
    let mut signatures = Signatures::open(&options.directory.join("flat"))?;
    let mut write = WriteBatch::default();
    let mut units = Units::new(&view, Table::Transactions);
    for number in next..end {
        let rows = view.first_transaction(number)?..view.first_transaction(number + 1)?;
        recut(
            &mut units,
            (number, rows),
            TRANSACTION_UNIT_BYTES_MAX,
            (&mut write, transactions),
            |ordinal, bytes, row| {
                let told = decode_bincode_transaction(bytes).map_err(StoreError::corrupt(
                    Table::Transactions.name(),
                    &keys::number(ordinal),
                ))?;
                encode_transaction(&told.transaction, &told.receipt, &told.logs, row);
                signatures.put(ordinal, &signature(&told.transaction))
            },
        )?;
        if write.size_in_bytes() >= WRITE_BYTES {
            signatures.force()?;
            write.put_cf(meta, NEXT, keys::number(number + 1));
            store.write_unlogged(&mut write, 0)?;
        }
        if (number + 1).is_multiple_of(BLOCKS_A_LINE) {
            tracing::info!(block = number, to = end, "transactions written anew");
        }
    }
    signatures.force()?;
    write.put_cf(meta, NEXT, keys::number(end));
    store.write_unlogged(&mut write, 0)?;

    let mut last = WriteBatch::default();
    last.delete_cf(meta, NEXT);
    let finality = db.get_cf(meta, FINALITY).map_err(failed())?;
    if let Some(bytes) = finality {
        let corrupt = StoreError::corrupt(Table::Meta.name(), FINALITY);
        let mut finality = Finality::decode(&bytes).map_err(corrupt)?;
        finality
            .flat_records
            .truncate(FlatArray::TransactionSignatures as usize);
        finality.flat_records.push(view.checkpoint().transactions);
        last.put_cf(meta, FINALITY, finality.encode());
    }
    Ok(last)
}

/// The file of the new array, being filled.
struct Signatures {
    path: PathBuf,
    file: File,
    /// Ordinal of the first that is not in the file.
    first: u64,
    waiting: Vec<u8>,
}

impl Signatures {
    fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = FlatArray::TransactionSignatures.path(directory);
        let file = fs::OpenOptions::new().write(true).open(&path);
        let file = file.map_err(StoreError::io("open", &path))?;
        sync_directory(directory)?;
        Ok(Self {
            path,
            file,
            first: 0,
            waiting: Vec::new(),
        })
    }

    /// Those of transactions that follow each other.
    fn put(&mut self, ordinal: u64, record: &[u8; SIGNATURE_BYTES]) -> Result<(), StoreError> {
        if self.waiting.is_empty() {
            self.first = ordinal;
        }
        self.waiting.extend_from_slice(record);
        if self.waiting.len() >= WRITE_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let at = self.first * SIGNATURE_BYTES as u64;
        let written = self.file.write_all_at(&self.waiting, at);
        written.map_err(StoreError::io("write", &self.path))?;
        self.waiting.clear();
        Ok(())
    }

    /// Writes what waits, and forces all to disk: once rows are written anew nothing else has their signatures.
    fn force(&mut self) -> Result<(), StoreError> {
        self.write()?;
        self.file.sync_data().map_err(StoreError::io("sync", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::migrate::{Step, migrate, run};
    use super::*;
    use crate::model::B256;
    use crate::store::Store;

    /// Lays the store of layout 8 that is kept beside the tests into a directory.
    fn thaw(home: &Path) -> PathBuf {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v8.tar.zst");
        let mut archive = tar::Archive::new(zstd::Decoder::new(File::open(path).unwrap()).unwrap());
        archive.unpack(home).unwrap();
        home.join("quarry-checkpoint-1")
    }

    fn digest(directory: &Path) -> B256 {
        let options = OpenOptions {
            read_only: true,
            ..OpenOptions::new(directory)
        };
        Store::open(&options).unwrap().view().digest().unwrap()
    }

    type Apply = fn(&Arc<DB>, &OpenOptions) -> Result<WriteBatch, StoreError>;

    fn stopped_below<const BLOCK: u64>(
        db: &Arc<DB>,
        options: &OpenOptions,
    ) -> Result<WriteBatch, StoreError> {
        apply_below(db, options, BLOCK)?;
        Err(StoreError::Stopped)
    }

    #[test]
    fn an_interrupted_migration_goes_on_and_ends_in_the_same_bytes() {
        let home = tempfile::tempdir().unwrap();
        let whole = thaw(home.path());
        migrate(&OpenOptions::new(&whole)).unwrap();
        let wanted = digest(&whole);
        // After nothing, in the middle, twice, and after everything but the new version.
        let stops: [&[Apply]; 4] = [
            &[stopped_below::<0>],
            &[stopped_below::<9>],
            &[stopped_below::<5>, stopped_below::<17>],
            &[stopped_below::<{ u64::MAX }>],
        ];
        for stops in stops {
            let home = tempfile::tempdir().unwrap();
            let directory = thaw(home.path());
            for &apply in stops {
                let step = Step {
                    from: 8,
                    about: "stopped",
                    apply,
                };
                let error = run(&OpenOptions::new(&directory), &[step], 9).unwrap_err();
                assert!(matches!(error, StoreError::Stopped), "{error}");
            }
            assert_eq!(migrate(&OpenOptions::new(&directory)).unwrap().0, 8);
            assert_eq!(digest(&directory), wanted);
        }
    }

    #[test]
    fn signatures_that_were_not_all_forced_are_written_again() {
        let home = tempfile::tempdir().unwrap();
        let directory = thaw(home.path());
        let step = Step {
            from: 8,
            about: "stopped",
            apply: stopped_below::<9>,
        };
        run(&OpenOptions::new(&directory), &[step], 9).unwrap_err();
        // What a run that was killed wrote beyond its last write of rows.
        let path = FlatArray::TransactionSignatures.path(&directory.join("flat"));
        let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let end = file.metadata().unwrap().len();
        assert!(end > 0 && end.is_multiple_of(SIGNATURE_BYTES as u64));
        file.write_all_at(&[0xee; 3 * SIGNATURE_BYTES], end).unwrap();
        let mut bytes = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
        assert!(bytes.ends_with(&[0xee; SIGNATURE_BYTES]));
        migrate(&OpenOptions::new(&directory)).unwrap();
        let whole = tempfile::tempdir().unwrap();
        let whole = thaw(whole.path());
        migrate(&OpenOptions::new(&whole)).unwrap();
        assert_eq!(digest(&directory), digest(&whole));
    }
}
