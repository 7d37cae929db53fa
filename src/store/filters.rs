//! Filters are written in one piece while those of all tables fit the cache, and in parts from then on (decision 0039).

use std::path::Path;

use super::beside::files_of;
use super::open::Store;
use super::options::{self, FILE_BYTES, Filters};

/// Tables of so many times the cache have filters of about a fifth of it: 10 bits a row, of 80 bytes or so.
const TABLES_BY_CACHE: u64 = 16;

/// Rows are written for so many bytes before the tables are looked at again.
const LOOK_EVERY: usize = 64 << 20;

/// For tables that are about to be opened.
pub(super) fn of_database(path: &Path, cache_bytes: usize) -> Filters {
    for_tables(files_of(path, "sst").map(|(_, bytes)| bytes).sum(), cache_bytes)
}

/// Looks, while rows are written, whether the tables have outgrown the cache.
#[derive(Debug)]
pub(super) struct Watch {
    filters: Filters,
    cache_bytes: usize,
    /// Bytes of rows since the tables were looked at.
    written: usize,
}

impl Watch {
    /// Over tables that were opened with such filters.
    pub(super) const fn new(filters: Filters, cache_bytes: usize) -> Self {
        Self {
            filters,
            cache_bytes,
            written: 0,
        }
    }

    /// Takes notice of a write.
    pub(super) fn wrote(&mut self, store: &Store, bytes: usize) {
        self.written = self.written.saturating_add(bytes);
        if self.filters == Filters::Whole && self.written >= LOOK_EVERY {
            self.written = 0;
            self.look(store, store.sum("rocksdb.total-sst-files-size"));
        }
    }

    fn look(&mut self, store: &Store, table_bytes: u64) {
        self.filters = for_tables(table_bytes, self.cache_bytes);
        if self.filters == Filters::Whole {
            return;
        }
        let bytes = FILE_BYTES.to_string();
        let changes = [
            ("block_based_table_factory", "{partition_filters=true;}"),
            ("target_file_size_base", bytes.as_str()),
        ];
        // Where they can't be changed, the next opening knows it from the size of the tables.
        options::change(&store.db, options::may_be_whole, &changes);
        tracing::debug!(table_bytes, "filters are written in parts");
    }
}

const fn for_tables(bytes: u64, cache_bytes: usize) -> Filters {
    if bytes <= TABLES_BY_CACHE * cache_bytes as u64 && cache_bytes > 0 {
        Filters::Whole
    } else {
        Filters::InParts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::B256;
    use crate::store::options::written;
    use crate::store::{OpenOptions, Table};

    #[test]
    fn tables_that_outgrow_the_cache_get_filters_in_parts() {
        let home = tempfile::tempdir().unwrap();
        let mut options = OpenOptions::new(home.path());
        options.cache_bytes = 1 << 20;
        let store = Store::open_or_create(&options, 1, B256::ZERO, None).unwrap();
        let whole = Table::of(options::may_be_whole).count();
        let in_parts = |store: &Store| written(store, "partition_filters=true");
        let begun = in_parts(&store);
        let mut watch = Watch::new(Filters::Whole, options.cache_bytes);
        watch.wrote(&store, LOOK_EVERY);
        assert_eq!((watch.filters, in_parts(&store)), (Filters::Whole, begun));
        watch.look(&store, (16 << 20) + 1);
        assert_eq!(
            (watch.filters, in_parts(&store)),
            (Filters::InParts, begun + whole)
        );
        drop(store);
        // A store that is not small beside its cache is opened so.
        options.cache_bytes = 0;
        let store = Store::open(&options).unwrap();
        assert_eq!(in_parts(&store), begun + whole);
        drop(store);
        options.cache_bytes = 1 << 20;
        let store = Store::open(&options).unwrap();
        assert_eq!(in_parts(&store), begun);
    }
}
