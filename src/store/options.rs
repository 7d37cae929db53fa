//! RocksDB options by access pattern; each number says why.

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DB, DBCompactionStyle, DBCompressionType, Options,
    SliceTransform,
};

use super::schema::{Profile, Table};
use super::view::family;

/// A table takes memory for its rows in pieces; so many for each table are in what all memtables together may take.
const ARENA_BLOCKS: usize = 8;
/// More files than there will be.
const NEVER: i32 = 1 << 30;
/// Levels of a table, as RocksDB has it.
pub(super) const LEVELS: usize = 7;
/// The filter over a memtable, of the most that the memtable may take. A third of the tables have one, and none of them
/// comes near its most.
const MEMTABLE_FILTER: f64 = 0.01;

/// A file of the lowest level is rewritten for the sake of what a snapshot held back in it when it is so old, in seconds.
/// RocksDB does it at once unless told otherwise, and the snapshot of the last commit is always there: every
/// second compaction of a backfill wrote again what the one before it had just written (decision 0036).
const LOWEST_LEVEL_REST: u32 = 24 * 60 * 60;

/// Bytes of a merged file, and of one whose filter is in one piece.
pub(super) const FILE_BYTES: u64 = 64 << 20;
const WHOLE_FILE_BYTES: u64 = 16 << 20;

/// What the memtable of one table may take when a store is opened. RocksDB goes on after a disk was full once the most that one of them
/// may take then is free, so it is little; a writer that writes much at once gives them more (`Bulk::writes`, decision 0027).
pub(super) const FIRST_MEMTABLE_BYTES: usize = 16 << 20;

/// Below this a cache of blocks is RocksDB's LRU cache: where nearly each block that is read drives another one out, the clock cache goes over its
/// whole table for a place (a body at a random place out of 1 MiB: 7 us in place of 11 to 34, decision 0066). From here on both take as long, and
/// the clock cache takes no lock.
const CLOCK_CACHE_LEAST: usize = 16 << 20;

/// A cache of blocks. RocksDB ends the process where it is to make one of no bytes.
pub(super) fn cache(bytes: usize) -> Cache {
    match bytes {
        ..CLOCK_CACHE_LEAST => Cache::new_lru_cache(bytes.max(1)),
        _ => Cache::new_hyper_clock_cache(bytes, 0),
    }
}

/// Options of a table, of which only this is stated: its lowest level rests.
fn resting() -> Options {
    let rest = format!("bottommost_file_compaction_delay={LOWEST_LEVEL_REST}");
    // There is no call for it; a RocksDB that does not know the word goes without.
    Options::default()
        .get_options_from_string(rest)
        .unwrap_or_default()
}

/// Tables that are kept open where files are plenty.
pub(super) const OPEN_TABLES_MAX: i32 = 4096;

/// Every table is opened with the database and stays open (RocksDB `max_open_files`).
pub(super) const ALL_TABLES_OPEN: i32 = -1;

/// The options of the database.
pub(super) fn database(memtable_bytes: usize, open_tables_max: i32) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // Backfill writes without the log; only a flush of all tables at one point leaves whole blocks.
    options.set_atomic_flush(true);
    // The bound on all memtables together; a part of --backfill-memory.
    options.set_db_write_buffer_size(memtable_bytes);
    // One flush and two compactions keep up with one writer on two cores. The third compaction is for when two tables are merged whole
    // by size, half an hour each on a mainnet: files of the others would pile up until writes stop (decision 0055).
    options.set_max_background_jobs(4);
    options.set_max_subcompactions(2);
    // Open files are cheap, reopening them on a cold query is not. A reader beside a writer opens all of them at
    // once and keeps them: the writer's compactions remove the names under which it would look for them later.
    options.set_max_open_files(open_tables_max);
    // The log holds only the blocks that are not final; small files are recycled quickly.
    options.set_max_total_wal_size(64 << 20);
    // Smooth writes: do not hand the disk a gigabyte at once.
    options.set_bytes_per_sync(1 << 20);
    bound_log(&mut options, 4);
    options
}

/// Bounds what RocksDB writes of itself (`LOG`) to so many files of 16 MiB. It begins another file when it is opened and at no other time
/// unless told to, and writes figures of all tables every ten minutes: a service that is never restarted would
/// fill its disk with them.
pub(super) fn bound_log(options: &mut Options, files: usize) {
    options.set_keep_log_file_num(files);
    options.set_max_log_file_size(16 << 20);
    options.set_stats_dump_period_sec(0);
}

/// How the filters of a table's files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filters {
    /// In parts of a few kilobytes under a small root. In one piece they are megabytes a file, and where those of all files do
    /// not fit the cache each look-up reads one: an import of 44 million prices beside 16 MiB of cache stood still
    /// so, and pages of 100 rows without a cache took 5 to 8 times as long (decision 0030).
    InParts,
    /// In one piece where they are asked most, by the writer, and in files a quarter as long. Where all of them fit the
    /// cache a key is looked for in a fifth of the time (decision 0039).
    Whole,
}

/// A filter over the keys of a file, in parts, and the file's index in parts too.
pub(super) fn filter(block: &mut BlockBasedOptions) {
    block.set_bloom_filter(10.0, false);
    index_in_parts(block);
    block.set_partition_filters(true);
}

/// The index of a file in parts of a few kilobytes under a small root.
fn index_in_parts(block: &mut BlockBasedOptions) {
    block.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    block.set_metadata_block_size(4 << 10);
}

/// Whether a table's filters may be in one piece.
pub(super) const fn may_be_whole(profile: Profile) -> bool {
    matches!(profile, Profile::Point | Profile::OpenPostings | Profile::Runs)
}

/// Whether files of a table are merged with files of their own size and not with the next level, ten times as large. A batch has rows
/// for keys all over these tables, so that each level is written again for a tenth of it; by size a row is written again
/// when as much has come after it (decision 0055). Tables that grow at their end are hardly merged at all, and
/// those that are read in long scans are better off in few files.
pub(super) const fn is_merged_by_size(profile: Profile) -> bool {
    matches!(
        profile,
        Profile::Point | Profile::OpenPostings | Profile::Runs | Profile::History(_)
    )
}

/// Sorted runs of such a table (a flushed file, or a level of merged ones) that are left alone; where there are more, the
/// newest are merged. By levels a long chain has up to 4 in level 0 and one in each of 5 below.
pub(super) const SORTED_RUNS_MAX: i32 = 6;

fn merge_by_size(options: &mut Options) {
    options.set_compaction_style(DBCompactionStyle::Universal);
    // Nothing is written anew for its age alone: RocksDB would do it with whole tables, once a month.
    options.set_ttl(0);
    options.set_periodic_compaction_seconds(0);
    options.set_level_zero_file_num_compaction_trigger(SORTED_RUNS_MAX);
}

/// All tables by name, with their options.
pub(super) fn tables(
    cache: &Cache,
    memtable_bytes: usize,
    filters: Filters,
) -> impl Iterator<Item = (&'static str, Options)> {
    Table::ALL
        .into_iter()
        .map(move |one| (one.name(), table(one, cache, memtable_bytes, filters)))
}

/// The table that RocksDB has by itself, with nothing in it: by its own options it might take 64 MiB.
pub(super) fn unused() -> (&'static str, Options) {
    let mut options = Options::default();
    options.set_write_buffer_size(1 << 20);
    (rocksdb::DEFAULT_COLUMN_FAMILY_NAME, options)
}

/// The options of a table.
fn table(table: Table, cache: &Cache, memtable_bytes: usize, filters: Filters) -> Options {
    let mut block = BlockBasedOptions::default();
    block.set_block_cache(cache);
    block.set_format_version(6);
    // Index and filters count against --cache-size, or memory would grow with the chain.
    block.set_cache_index_and_filter_blocks(true);
    block.set_pin_l0_filter_and_index_blocks_in_cache(true);
    let mut options = resting();
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_target_file_size_base(FILE_BYTES);
    options.set_write_buffer_size(memtable_bytes);
    // What empty memtables take must be little of what all of them may take, or every commit is flushed: a block of
    // 1 MiB each was all that `--backfill-memory 256MiB` gives (decision 0035).
    let arena = 2 * memtable_bytes / (ARENA_BLOCKS * Table::ALL.len());
    options.set_arena_block_size(arena.clamp(16 << 10, 1 << 20));
    // RocksDB never stops a write, for memtables, files of level 0 or bytes to be merged: the writer itself waits (`Store::make_room`). A
    // write that is stopped keeps RocksDB's own recovery from a full disk waiting for it, for ever (decision 0027). Without a limit of
    // bytes, merges of several tables may run at a time, whatever is waiting.
    options.set_max_write_buffer_number(1000);
    options.set_level_zero_slowdown_writes_trigger(NEVER);
    options.set_level_zero_stop_writes_trigger(NEVER);
    options.set_soft_pending_compaction_bytes_limit(0);
    options.set_hard_pending_compaction_bytes_limit(0);
    // What a flush writes is merged soon, and packing it was half of the flush: a load takes a fifteenth less work on cores, and
    // what is not merged yet a seventh more bytes, for hashes and balances hardly shrink (decision 0044).
    let mut by_level = [DBCompressionType::Lz4; LEVELS];
    by_level[0] = DBCompressionType::None;
    options.set_compression_per_level(&by_level);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    // Level 1 in place of 3: a fifteenth less work on cores in a load for a hundredth more bytes (decision 0021). What is appended in order is
    // packed once only, and is packed by 3 (below).
    let lowest_level = |options: &mut Options, level| {
        options.set_bottommost_compression_options(-14, level, 0, 0, true);
    };
    lowest_level(&mut options, 1);
    // LZ4 itself: at level 1 and above it is its slow relative, LZ4HC (RocksDB's `CompressionOptions::level`).
    let lowest_level_by_lz4 = |options: &mut Options| {
        options.set_bottommost_compression_type(DBCompressionType::Lz4);
        lowest_level(options, -1);
    };
    // Backfill looks up a row before it appends to it, and mostly finds none: a filter over the memtable
    // answers that without a walk through the skip list (measured: a tenth of a load).
    let filtered = |options: &mut Options| {
        options.set_memtable_prefix_bloom_ratio(MEMTABLE_FILTER);
        options.set_memtable_whole_key_filtering(true);
    };
    match table.describe().profile {
        Profile::Small => {
            block.set_block_size(16 << 10);
            lowest_level_by_lz4(&mut options);
        }
        profile @ (Profile::Point | Profile::OpenPostings) => {
            // One row out of millions: small blocks, and a filter so that a new key costs no read. Most terms of a commit
            // are new, and their open pieces looked up and not there.
            block.set_block_size(4 << 10);
            filter(&mut block);
            filtered(&mut options);
            if profile == Profile::OpenPostings {
                // The writer unpacks a block for each piece that it adds to, and merges pack all of them again: a tenth of a
                // load of 10 M logs, for 1.8 more bytes a log (decision 0039).
                lowest_level_by_lz4(&mut options);
            }
        }
        Profile::AppendUnits | Profile::AppendRows => {
            // A scattered hit unpacks one unit: blocks of about one unit (measured: 4 KB doubles
            // scattered gets against 16 KB for a tenth more bytes).
            block.set_block_size(4 << 10);
            // In one piece it is 300 KB for each 64 MiB file, some gigabytes of a mainnet, and without a place in the cache each hit
            // reads one (decision 0045).
            index_in_parts(&mut block);
            // Most of a store lies in these tables, and each of their rows is packed for the lowest level once: 5 GB of a mainnet (decision 0065).
            lowest_level(&mut options, 3);
        }
        Profile::Runs => {
            // Read in sequence; a block is about one run. The filter is for the open piece's look-up.
            block.set_block_size(16 << 10);
            filter(&mut block);
            filtered(&mut options);
        }
        Profile::Ordered => {
            // Neighbours share most of their keys, and a page is a few of them.
            block.set_block_size(4 << 10);
            index_in_parts(&mut block);
        }
        Profile::History(prefix) => {
            // A seek for the last row of one account: the filter is over the account, so that levels without
            // rows of it cost no read.
            block.set_block_size(4 << 10);
            filter(&mut block);
            block.set_whole_key_filtering(false);
            options.set_prefix_extractor(SliceTransform::create_fixed_prefix(prefix));
            options.set_memtable_prefix_bloom_ratio(MEMTABLE_FILTER);
        }
        Profile::Postings => {
            block.set_block_size(8 << 10);
            // An open chunk is looked up when a piece is folded into it.
            filter(&mut block);
            filtered(&mut options);
        }
    }
    if is_merged_by_size(table.describe().profile) {
        merge_by_size(&mut options);
    }
    if filters == Filters::Whole && may_be_whole(table.describe().profile) {
        block.set_partition_filters(false);
        options.set_target_file_size_base(WHOLE_FILE_BYTES);
    }
    options.set_block_based_table_factory(&block);
    with_plain_indexes(options)
}

/// The same options, with the indexes of files stored as they are. They are a two-hundredth of a table, and unpacking a part of one
/// takes as long as unpacking the block that it leads to (decision 0045).
fn with_plain_indexes(mut options: Options) -> Options {
    // There is no call for it; a RocksDB that does not know the word goes without.
    options
        .get_options_from_string("block_based_table_factory={enable_index_compression=false}")
        .unwrap_or(options)
}

/// Changes options of the tables of some profiles in an open database. One that cannot be changed stays as it is, which costs
/// speed and nothing else.
pub(super) fn change(db: &DB, which: impl Fn(Profile) -> bool, changes: &[(&str, &str)]) {
    for table in Table::of(which) {
        let set = family(db, table).map(|family| db.set_options_cf(family, changes));
        if let Ok(Err(error)) = set {
            tracing::debug!(table = table.name(), %error, "options not set");
        }
    }
}

/// How many tables have a line in the newest file of options.
#[cfg(test)]
pub(super) fn written(store: &super::Store, line: &str) -> usize {
    written_in(&store.directory().join("rocksdb"), line)
}

/// The same of a database that need not be open.
#[cfg(test)]
pub(super) fn written_in(database: &std::path::Path, line: &str) -> usize {
    let files = std::fs::read_dir(database).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let newest = files
        .filter(|path| path.to_string_lossy().contains("OPTIONS-"))
        .max();
    let options = std::fs::read_to_string(newest.unwrap()).unwrap();
    options.lines().filter(|other| other.trim() == line).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::B256;
    use crate::store::{OpenOptions, Store};

    #[test]
    fn indexes_of_long_tables_are_in_parts_and_none_is_packed() {
        let home = tempfile::tempdir().unwrap();
        let options = OpenOptions::new(home.path());
        let store = Store::open_or_create(&options, 1, B256::ZERO, None).unwrap();
        let small = Table::of(|profile| profile == Profile::Small).count();
        // RocksDB's own table `default` has none.
        assert_eq!(
            written(&store, "enable_index_compression=false"),
            Table::ALL.len()
        );
        assert_eq!(
            written(&store, "index_type=kTwoLevelIndexSearch"),
            Table::ALL.len() - small
        );
    }

    #[test]
    fn no_write_is_stopped_by_rocksdb() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(&OpenOptions::new(home.path()), 1, B256::ZERO, None).unwrap();
        for line in [
            &format!("level0_slowdown_writes_trigger={NEVER}"),
            &format!("level0_stop_writes_trigger={NEVER}"),
            "soft_pending_compaction_bytes_limit=0",
            "hard_pending_compaction_bytes_limit=0",
            "max_write_buffer_number=1000",
        ] {
            assert_eq!(written(&store, line), Table::ALL.len(), "{line}");
        }
    }

    #[test]
    fn tables_of_rows_for_keys_all_over_are_merged_by_size_and_for_no_age() {
        let home = tempfile::tempdir().unwrap();
        let options = OpenOptions::new(home.path());
        let store = Store::open_or_create(&options, 1, B256::ZERO, None).unwrap();
        let by_size = Table::of(is_merged_by_size).count();
        assert!((1..Table::ALL.len()).contains(&by_size));
        for line in [
            "compaction_style=kCompactionStyleUniversal",
            "periodic_compaction_seconds=0",
            &format!("level0_file_num_compaction_trigger={SORTED_RUNS_MAX}"),
        ] {
            assert!(written(&store, line) >= by_size, "{line}");
        }
        assert_eq!(
            written(&store, "compaction_style=kCompactionStyleUniversal"),
            by_size
        );
    }
}
