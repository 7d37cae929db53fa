//! The files of the arrays as the writer holds them, and what is not in them yet.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use super::StoreError;
use super::directories::sync_names;
use super::flat::{ARRAYS, FlatArray, FlatView, Former};
use super::map::map;
use super::sums::{self, Compared, SumsRow};
use super::tail::TailPages;

/// A file is extended by this much at a time, so that it is mapped anew only now and then.
const GROWTH_BYTES: u64 = 4 << 20;

/// Pages of a file of so many bytes.
fn pages(array: FlatArray, bytes: u64) -> u64 {
    ((bytes / array.width() as u64) >> array.page_shift()) + 1
}

/// Arrays are part of a store: one that lacks some is damaged as one that lacks tables is.
fn damaged(directory: &Path, words: String) -> StoreError {
    let path = directory.parent().unwrap_or(directory).to_path_buf();
    StoreError::Damaged { path, words }
}

/// One array's file, as the writer holds it.
#[derive(Debug)]
struct FlatFile {
    array: FlatArray,
    path: PathBuf,
    file: Arc<File>,
    bytes: u64,
    capacity: u64,
    map: Arc<Mmap>,
    compared: Arc<Compared>,
    /// The last row of its sums.
    sums: SumsRow,
}

impl FlatFile {
    fn open(directory: &Path, array: FlatArray, records: u64, read_only: bool) -> Result<Self, StoreError> {
        let path = array.path(directory);
        let io = |doing| StoreError::io(doing, &path);
        let file = OpenOptions::new()
            .read(true)
            .write(!read_only)
            .create(!read_only && records == 0)
            .truncate(false)
            .open(&path);
        let file = match file {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && records > 0 => {
                return Err(damaged(
                    directory,
                    format!("`{}.flat` is not there", array.name()),
                ));
            }
            file => file.map_err(io("open"))?,
        };
        let bytes = records * array.width() as u64;
        let found = file.metadata().map_err(io("read"))?.len();
        if found < bytes {
            let there = found / array.width() as u64;
            let words = format!("`{}.flat` has {there} of {records} records", array.name());
            return Err(damaged(directory, words));
        }
        let capacity = if read_only {
            found
        } else {
            // What lies beyond the checkpoint belongs to a commit that did not happen.
            file.set_len(bytes).map_err(io("cut"))?;
            let capacity = (bytes + 1).next_multiple_of(GROWTH_BYTES);
            file.set_len(capacity).map_err(io("extend"))?;
            capacity
        };
        let map = if capacity == 0 {
            memmap2::MmapMut::map_anon(1).and_then(memmap2::MmapMut::make_read_only)
        } else {
            map(&file)
        };
        let map = Arc::new(map.map_err(io("map"))?);
        Ok(Self {
            array,
            path,
            file: Arc::new(file),
            bytes,
            capacity,
            map,
            compared: Arc::new(Compared::default().grown(pages(array, capacity))),
            sums: SumsRow::default(),
        })
    }

    fn records(&self) -> u64 {
        self.bytes / self.array.width() as u64
    }

    fn append(&mut self, records: &[u8]) -> Result<(), StoreError> {
        let io = |doing| StoreError::io(doing, &self.path);
        let end = self.bytes + records.len() as u64;
        if end > self.capacity {
            let capacity = (end + 1 + end / 16).next_multiple_of(GROWTH_BYTES);
            self.file.set_len(capacity).map_err(io("extend"))?;
            self.map = Arc::new(map(&self.file).map_err(io("map"))?);
            self.capacity = capacity;
            self.compared = Arc::new(self.compared.grown(pages(self.array, capacity)));
        }
        self.file.write_all_at(records, self.bytes).map_err(io("write"))?;
        self.bytes = end;
        Ok(())
    }

    /// Sums what was not summed yet. Rows that are new, or say more than before, are handed to `write`.
    fn sum(&mut self, write: impl FnMut(&SumsRow) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let (array, records) = (self.array, self.records());
        let Self {
            map, compared, sums, ..
        } = self;
        let pages = |page, end| {
            compared.add(page);
            // The map is as long as the file.
            sums::of_map(array, map, page, end).unwrap_or_default()
        };
        sums.go_on(array, records, pages, write)
    }

    /// Goes on from the last row of sums that is stored. What is not summed yet, by a quarry that knew no sums, is taken for right.
    fn take_up(&mut self, directory: &Path, last: Option<SumsRow>) -> Result<(), StoreError> {
        let records = self.records();
        self.sums = last.unwrap_or_default();
        if self.sums.records > records {
            let (name, more) = (self.array.name(), self.sums.records);
            return Err(damaged(
                directory,
                format!("`{name}.flat` has {records} records, and sums of {more}"),
            ));
        }
        // What is appended to the last page is summed with what is there.
        let Some(page) = self
            .sums
            .records
            .checked_sub(1)
            .map(|last| last >> self.array.page_shift())
        else {
            return Ok(());
        };
        match self.sums.of_page(self.array, page) {
            Some((sum, end)) if sums::of_map(self.array, &self.map, page, end) != Some(sum) => {
                Err(damaged(directory, sums::words(self.array, page, end)))
            }
            _ => Ok(()),
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(StoreError::io("sync", &self.path))
    }
}

/// Forces the names in a directory to disk.
pub(super) fn sync_directory(directory: &Path) -> Result<(), StoreError> {
    sync_names(directory).map_err(StoreError::io("sync", directory))
}

/// Where arrays end: the bytes of each file with what is summed of it, and the tails.
#[derive(Debug)]
pub(super) struct Position {
    files: Vec<(u64, SumsRow)>,
    tails: [TailPages; ARRAYS],
}

/// All arrays, as the writer holds them.
#[derive(Debug)]
pub(super) struct Flats {
    files: Vec<FlatFile>,
    tails: [TailPages; ARRAYS],
}

impl Flats {
    /// Opens the arrays with `records` in each file and no tail.
    pub(super) fn open(
        directory: &Path,
        records: &[u64; ARRAYS],
        read_only: bool,
    ) -> Result<Self, StoreError> {
        let files = FlatArray::ALL
            .iter()
            .zip(records)
            .map(|(&array, &records)| FlatFile::open(directory, array, records, read_only))
            .collect::<Result<Vec<_>, _>>()?;
        if !read_only {
            // So that files that were just made outlive a power cut, as the checkpoint does.
            sync_directory(directory)?;
        }
        Ok(Self {
            files,
            tails: FlatArray::ALL.map(|array| TailPages::new(array.width())),
        })
    }

    /// Makes the files of arrays that a store of an older layout lacks, which has `had` of them.
    pub(super) fn add_new(directory: &Path, had: usize) -> Result<(), StoreError> {
        for array in FlatArray::ALL.into_iter().skip(had) {
            let path = array.path(directory);
            let made = OpenOptions::new().create(true).append(true).open(&path);
            made.map_err(StoreError::io("make", &path))?;
        }
        Ok(())
    }

    /// Records in each file.
    pub(super) fn file_records(&self) -> [u64; ARRAYS] {
        let mut records = [0; ARRAYS];
        for (count, file) in records.iter_mut().zip(&self.files) {
            *count = file.records();
        }
        records
    }

    /// Appends to the tail.
    pub(super) fn push_tail(&mut self, arrays: &[Vec<u8>]) {
        for (tail, bytes) in self.tails.iter_mut().zip(arrays) {
            tail.push(bytes);
        }
    }

    /// Cuts the end of the tail that a block pushed.
    pub(super) fn pop_tail(&mut self, arrays: &[Vec<u8>]) {
        for (tail, bytes) in self.tails.iter_mut().zip(arrays) {
            tail.pop(bytes.len());
        }
    }

    /// Appends to the files; the tail must be empty or begin with these bytes (`from_tail`).
    pub(super) fn append(&mut self, arrays: &[Vec<u8>], from_tail: bool) -> Result<(), StoreError> {
        for ((file, tail), bytes) in self.files.iter_mut().zip(&mut self.tails).zip(arrays) {
            if bytes.is_empty() {
                continue;
            }
            file.append(bytes)?;
            if from_tail {
                tail.forget(bytes.len());
            }
        }
        Ok(())
    }

    /// Takes over what a former view of the same files has compared: of pages that were whole then, since the others have grown.
    pub(super) fn take_over(&mut self, former: &[Former]) {
        for (file, former) in self.files.iter_mut().zip(former) {
            let room = pages(file.array, file.capacity);
            file.compared = Arc::new(former.compared.first(former.whole_pages).grown(room));
        }
    }

    /// Takes up the sums of all files where `last` says they are stored to.
    pub(super) fn take_up_sums(
        &mut self,
        directory: &Path,
        last: impl Fn(FlatArray) -> Result<Option<SumsRow>, StoreError>,
    ) -> Result<(), StoreError> {
        let mut files = self.files.iter_mut();
        files.try_for_each(|file| file.take_up(directory, last(file.array)?))
    }

    /// Bytes that are not summed yet.
    pub(super) fn unsummed_bytes(&self) -> u64 {
        let of = |file: &FlatFile| file.bytes - file.sums.records * file.array.width() as u64;
        self.files.iter().map(of).sum()
    }

    /// Sums what was not summed yet, and hands rows for `meta` to `write`, each with its key.
    pub(super) fn sum(
        &mut self,
        mut write: impl FnMut(Vec<u8>, Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.files.iter_mut().try_for_each(|file| {
            let array = file.array;
            file.sum(|row| write(row.key(array), row.encode()))
        })
    }

    /// Where the arrays end now, to go back to when a commit fails.
    pub(super) fn position(&self) -> Position {
        Position {
            files: self
                .files
                .iter()
                .map(|file| (file.bytes, file.sums.clone()))
                .collect(),
            tails: self.tails.clone(),
        }
    }

    /// Goes back: what was appended since was never handed to a reader.
    pub(super) fn restore(&mut self, position: Position) {
        for (file, before) in self.files.iter_mut().zip(position.files) {
            (file.bytes, file.sums) = before;
        }
        self.tails = position.tails;
    }

    /// Forces the files to disk, before a checkpoint that counts on them.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.files.iter().try_for_each(FlatFile::sync)
    }

    /// The arrays as readers see them from now on.
    pub(super) fn view(&self) -> Vec<FlatView> {
        self.files
            .iter()
            .zip(&self.tails)
            .map(|(file, tail)| FlatView {
                array: file.array,
                compared: Arc::clone(&file.compared),
                file: Arc::clone(&file.file),
                map: Arc::clone(&file.map),
                file_bytes: file.bytes as usize,
                tail: tail.clone(),
                width: file.array.width(),
            })
            .collect()
    }
}
