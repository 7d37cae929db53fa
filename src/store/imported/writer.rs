//! The one writer of imports.

use std::path::Path;

use rocksdb::{DB, WriteBatch, WriteOptions};

use super::{ImportRow, Imported, NAME, are_there, check_tables, damaged, options};
use crate::codec::imported as codec;
use crate::codec::value::Identity;
use crate::model::ImportRecord;
use crate::store::{StoreError, make_directory, torn};

/// Writes what an import brings; holds the lock of the store of imports while it lives.
pub struct ImportWriter {
    db: DB,
}

impl std::fmt::Debug for ImportWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImportWriter").finish_non_exhaustive()
    }
}

impl ImportWriter {
    /// Opens the imports of the chain whose store lies in `store`; made where there are none.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while another import runs, [`StoreError::OtherImports`] where what is there is of another
    /// chain or version.
    pub fn open(store: &Path, identity: &Identity) -> Result<Self, StoreError> {
        let directory = Imported::directory_of(store);
        let mut options = options();
        options.create_if_missing(true);
        let wanted = codec::encode_identity(identity.chain_id, &identity.genesis_hash);
        if are_there(&directory)? {
            torn::mend(&directory)?;
            check_tables(&directory)?;
        } else {
            make_directory(&directory).map_err(StoreError::of_making(&directory))?;
        }
        let db = DB::open(&options, &directory)
            .map_err(|source| damaged(StoreError::of_opening(source, &directory), &directory))?;
        match db.get(codec::IDENTITY).map_err(StoreError::rocks(NAME))? {
            Some(found) if found == wanted => {}
            Some(_) => return Err(StoreError::OtherImports { path: directory }),
            None => db.put(codec::IDENTITY, wanted).map_err(StoreError::rocks(NAME))?,
        }
        Ok(Self { db })
    }

    /// The value under a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.db.get(key).map_err(StoreError::rocks(NAME))
    }

    /// Puts rows (`None` deletes), all or none; those that are there already cost no write. Answers how many changed.
    pub fn write(&self, rows: &[ImportRow]) -> Result<usize, StoreError> {
        let news = self.are_news(rows)?;
        let news = rows.iter().zip(news).filter(|(_, is_news)| *is_news);
        self.put(news.map(|(row, _)| row))
    }

    /// Of each row, whether something else lies under its key.
    pub fn are_news(&self, rows: &[ImportRow]) -> Result<Vec<bool>, StoreError> {
        let stored = self.db.multi_get(rows.iter().map(|(key, _)| key));
        let is_news = |((_, value), stored): (&ImportRow, Result<Option<Vec<u8>>, rocksdb::Error>)| {
            let stored = stored.map_err(StoreError::rocks(NAME))?;
            Ok(stored.as_deref() != value.as_deref())
        };
        rows.iter().zip(stored).map(is_news).collect()
    }

    /// Puts rows, all or none, whatever lies there. Answers how many.
    pub fn put<'a>(&self, rows: impl IntoIterator<Item = &'a ImportRow>) -> Result<usize, StoreError> {
        let mut write = WriteBatch::default();
        for (key, value) in rows {
            match value {
                Some(value) => write.put(key, value),
                None => write.delete(key),
            }
        }
        let changed = write.len();
        self.commit(write)?;
        Ok(changed)
    }

    /// Keeps the record of an import, and brings everything to disk.
    pub fn finish(&self, record: &ImportRecord) -> Result<(), StoreError> {
        let mut write = WriteBatch::default();
        write.put(
            codec::record_key(record.kind, &record.source),
            codec::encode_record(record),
        );
        self.commit(write)?;
        self.db.flush().map_err(StoreError::rocks(NAME))
    }

    fn commit(&self, write: WriteBatch) -> Result<(), StoreError> {
        if write.is_empty() {
            return Ok(());
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.db
            .write_opt(write, &options)
            .map_err(StoreError::rocks(NAME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_CHAIN: Identity = Identity {
        schema: 0,
        chain_id: 1,
        genesis_hash: [0; 32],
        first_block: 0,
        static_rewards: None,
    };

    /// Of imports that are to be made it is said as of those that are there.
    #[test]
    fn imports_that_may_not_be_made_say_the_way_out() {
        use std::io::ErrorKind;

        let making = |kind: ErrorKind| StoreError::of_making(Path::new("x/imports"))(kind.into());
        for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
            let said = making(kind).to_string();
            assert!(
                said.starts_with("the store in `x/imports` cannot be written (")
                    && said.contains("mount it for writing and own it"),
                "{said}"
            );
        }
        assert!(matches!(
            making(ErrorKind::StorageFull),
            StoreError::NoRoom { .. }
        ));
        assert!(matches!(making(ErrorKind::Other), StoreError::Io { .. }));
    }

    /// RocksDB's words hold the path, whatever they are about.
    #[test]
    fn damaged_imports_below_a_directory_named_blockchain_are_not_in_use() {
        let root = tempfile::tempdir().unwrap();
        let store = root.path().join("blockchain");
        std::fs::create_dir(&store).unwrap();
        let writer = ImportWriter::open(&store, &OF_CHAIN).unwrap();
        let busy = ImportWriter::open(&store, &OF_CHAIN).unwrap_err();
        assert!(matches!(busy, StoreError::Busy { .. }), "{busy}");
        drop(writer);
        let directory = Imported::directory_of(&store);
        std::fs::write(directory.join("CURRENT"), "MANIFEST-999999\n").unwrap();
        let said = ImportWriter::open(&store, &OF_CHAIN).unwrap_err();
        assert!(matches!(said, StoreError::DamagedImports { .. }), "{said}");
    }
}
