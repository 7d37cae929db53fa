//! Each hot path by itself, beside what bounds it: codec, postings, bodies, text, parsing, deriving, committing.
//!
//! A part and its bound are run in turn, medians are quoted, and the last column says how much of the bound a part
//! reaches. Bounds are of this machine: copying or reading the same bytes in memory, writing them to the disk in
//! sequence, forcing them to it. Environment: `QUARRY_BENCH_LOGS` (1,000,000; the store that is read), `QUARRY_BENCH_CACHE_MB` (1,024),
//! `QUARRY_BENCH_ROUNDS` (9), `QUARRY_BENCH_ONLY` (a part of a part's name), `QUARRY_BENCH_DIR`.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench says what it measures, or stops"
)]

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use quarry::bench::figures::Latencies;
use quarry::codec::chunk::{UnitBuilder, UnitReader};
use quarry::codec::keys::Term;
use quarry::codec::log_row::{BlockRow, RunBuilder, RunReader, RunRow, encode_block_row, encode_body};
use quarry::codec::posting;
use quarry::json::{LogWriter, UuidSpace, rpc};
use quarry::model::{B256, Bundle, LogEntry};
use quarry::node::recorded::parse_line;
use quarry::query::{LogQuery, Operator, Reader};
use quarry::store::{DENSE, Direction, OpenOptions, PostingCursor, Runs, Store, Table, Units, View};
use quarry::sync::derive::derive;
use support::draw::{Random, address};
use support::filled::{self, Memory, SEED, median, rules};
use support::generator::{Generator, GeneratorConfig};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod support;

/// What a run of a part did.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    /// Rows, postings, blocks: what the part counts.
    count: u64,
    /// Bytes that its bound moves, too.
    bytes: u64,
}

/// Rows of the table, as they come.
struct Parts {
    only: String,
    rounds: u64,
}

impl Parts {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    /// Runs a part and its bound in turn. The bound is told what the part did.
    fn row(
        &self,
        name: &str,
        unit: &str,
        mut part: impl FnMut() -> Done,
        bound_name: &str,
        mut bound: impl FnMut(Done),
    ) {
        if !self.wants(name) {
            return;
        }
        let (mut times, mut bounds) = (Vec::new(), Vec::new());
        let mut done = part();
        bound(done);
        for _ in 0..self.rounds {
            let began = Instant::now();
            done = part();
            times.push(began.elapsed().as_secs_f64());
            let began = Instant::now();
            bound(done);
            bounds.push(began.elapsed().as_secs_f64());
        }
        line(name, unit, done, median(times), bound_name, median(bounds));
    }
}

fn line(name: &str, unit: &str, done: Done, seconds: f64, bound_name: &str, bound: f64) {
    println!(
        "| {name} | {:.3} M {unit}/s | {:.1} ns | {:.2} GB/s | {bound_name} | {:.1} % |",
        done.count as f64 / seconds / 1e6,
        seconds * 1e9 / done.count.max(1) as f64,
        done.bytes as f64 / seconds / 1e9,
        100.0 * bound / seconds
    );
}

/// Copies as many bytes as a part moved, in pieces that fit a core's cache as the part's own do.
struct Copying {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Copying {
    fn new() -> Self {
        Self {
            from: vec![1; 1 << 20],
            to: vec![0; 1 << 20],
        }
    }

    fn copy(&mut self, bytes: u64) {
        let mut left = usize::try_from(bytes).expect("bytes");
        while left > 0 {
            let piece = left.min(self.from.len());
            self.to[..piece].copy_from_slice(black_box(&self.from[..piece]));
            black_box(&self.to);
            left -= piece;
        }
    }

    fn read(&self, bytes: u64) {
        let mut left = usize::try_from(bytes).expect("bytes");
        while left > 0 {
            let piece = left.min(self.from.len());
            let sum = self.from[..piece].chunks_exact(8).fold(0_u64, |sum, eight| {
                sum ^ u64::from_le_bytes(eight.try_into().expect("eight"))
            });
            black_box(sum);
            left -= piece;
        }
    }
}

fn codec(parts: &Parts, bundles: &[Bundle]) {
    let mut copying = Copying::new();
    let mut random = Random::new(7);
    let mut lists: Vec<Vec<u64>> = Vec::new();
    for list in 0..200_u64 {
        // Gaps of 1 to 2^12 on average: dense and rare terms.
        let gap = 2 << (list % 12);
        let mut ordinal = list << 32;
        let postings = (0..posting::CHUNK_POSTINGS).map(|_| {
            ordinal += 1 + random.below(gap);
            ordinal
        });
        lists.push(postings.collect());
    }
    let count = (lists.len() * posting::CHUNK_POSTINGS) as u64;
    let mut encoded = Vec::new();
    let mut ends = Vec::new();
    let mut encode = || {
        encoded.clear();
        ends.clear();
        for list in &lists {
            posting::encode(9, list, &mut encoded);
            ends.push(encoded.len());
        }
        Done {
            count,
            bytes: count * 8,
        }
    };
    parts.row(
        "encode chunks of postings",
        "postings",
        &mut encode,
        "copying the postings",
        |done| {
            copying.copy(done.bytes);
        },
    );
    encode();
    let mut decoded = Vec::new();
    parts.row(
        "decode chunks of postings",
        "postings",
        || {
            let mut start = 0;
            for &end in &ends {
                decoded.clear();
                posting::decode(&encoded[start..end], &mut decoded).expect("a chunk");
                black_box(&decoded);
                start = end;
            }
            Done {
                count,
                bytes: count * 8,
            }
        },
        "copying the postings",
        |done| copying.copy(done.bytes),
    );

    let (mut body, mut row) = (Vec::new(), Vec::new());
    let mut units = Vec::new();
    parts.row(
        "encode logs into units",
        "logs",
        || {
            units.clear();
            let mut done = Done::default();
            for bundle in bundles {
                let mut builder = UnitBuilder::new(bundle.block.number(), 4000);
                for (index, receipt) in bundle.receipts.iter().enumerate() {
                    for log in &receipt.logs {
                        body.clear();
                        encode_body(log, 77, &mut body);
                        row.clear();
                        let place = BlockRow {
                            transaction_index: index as u32,
                            emitter: 12_345,
                        };
                        encode_block_row(place, &body, &mut row);
                        done.count += 1;
                        done.bytes += row.len() as u64;
                        if let Some((_, unit)) = builder.push(&row) {
                            units.push(unit.to_vec());
                        }
                    }
                }
                if let Some((_, unit)) = builder.finish() {
                    units.push(unit.to_vec());
                }
            }
            done
        },
        "copying the rows",
        |done| copying.copy(done.bytes),
    );
    parts.row(
        "walk the rows of units",
        "logs",
        || {
            let mut done = Done::default();
            for unit in &units {
                let mut reader = UnitReader::new(unit, "a unit").expect("a unit");
                while let Some(row) = reader.next_row().expect("a row") {
                    done.count += 1;
                    done.bytes += row.len() as u64;
                }
            }
            done
        },
        "reading the rows",
        |done| copying.read(done.bytes),
    );
    let mut run = RunBuilder::new(0);
    let mut push = || {
        run = RunBuilder::new(0);
        let mut done = Done::default();
        for entry in bundles.iter().flat_map(support::log_entries) {
            body.clear();
            body.extend_from_slice(entry.data);
            let place = RunRow {
                ordinal: done.count,
                block: entry.block_number,
                transaction_index: entry.transaction_index,
                transaction_hash: entry.transaction_hash,
            };
            run.push(&place, &body);
            done.count += 1;
            done.bytes += 36 + body.len() as u64;
        }
        done
    };
    parts.row(
        "push logs onto a run",
        "logs",
        &mut push,
        "copying the rows",
        |done| {
            copying.copy(done.bytes);
        },
    );
    let pushed = push();
    let stored = run.encode();
    parts.row(
        "read a run",
        "logs",
        || {
            let mut reader = RunReader::new(&stored).expect("a run");
            while let Some(row) = reader.next_row().expect("a row") {
                black_box(row);
            }
            pushed
        },
        "reading the rows",
        |done| copying.read(done.bytes),
    );
}

/// The list of logs with a signature.
fn signed(view: &View, topic: &B256) -> Term {
    Term::topic0(view.signature(topic).expect("a table").expect("a signature"))
}

fn postings(parts: &Parts, view: &View, generator: &Generator) {
    const SEEKS: u64 = 2_000;
    let mut copying = Copying::new();
    let transfer = signed(view, &generator.named().signatures.transfer);
    let mut random = Random::new(11);
    let mut cursor = PostingCursor::open(view, transfer, Direction::Forward).expect("a cursor");
    let (count, logs) = (cursor.count(), view.checkpoint().logs);
    // A chunk is what a seek must read.
    let chunk = 8 * posting::CHUNK_POSTINGS as u64;
    let seeks = Done {
        count: SEEKS,
        bytes: SEEKS * chunk,
    };
    parts.row(
        "select: the posting of a random rank",
        "seeks",
        || {
            for _ in 0..SEEKS {
                black_box(cursor.select(random.below(count)).expect("a posting"));
            }
            seeks
        },
        "copying a chunk each",
        |done| copying.copy(done.bytes),
    );
    parts.row(
        "rank: postings before a random ordinal",
        "seeks",
        || {
            for _ in 0..SEEKS {
                black_box(cursor.rank_of(1 + random.below(logs - 1)).expect("a rank"));
            }
            seeks
        },
        "copying a chunk each",
        |done| copying.copy(done.bytes),
    );
    parts.row(
        "walk a dense list",
        "postings",
        || {
            cursor.seek(0).expect("a posting");
            let mut sum = 0;
            while let Some(posting) = cursor.current() {
                sum ^= posting;
                cursor.step().expect("a step");
            }
            black_box(sum);
            Done {
                count,
                bytes: 8 * count,
            }
        },
        "copying the postings",
        |done| copying.copy(done.bytes),
    );
}

/// How many pairs of lists are walked over in a run.
const WALKED: u64 = 8;

/// And, or: what the lists of both hold is what has to be looked at. `reader` knows nothing of walks before, and there are no lists of the pairs.
fn expressions(parts: &Parts, reader: &Reader, view: &View, generator: &Generator) {
    let mut copying = Copying::new();
    let named = *generator.named();
    let counted = |term| {
        let cursor = PostingCursor::open(view, term, Direction::Forward).expect("a cursor");
        cursor.count()
    };
    let wallet = |position, topic: &B256| Term::topic(position, topic).expect("a position");
    let topics = |topics: [Option<B256>; 4]| LogQuery {
        last_block: u64::MAX,
        topics: topics.map(|topic: Option<B256>| topic.into_iter().collect()),
        limit: 1,
        ..LogQuery::default()
    };
    let mut either = topics([None, Some(named.hot_wallet), Some(named.hot_wallet), None]);
    either.operators = vec![(1, 2, Operator::Or)];
    let asked = |query: &LogQuery, count: u64| {
        drop(black_box(reader.logs(query).expect("a page")));
        Done {
            count,
            bytes: 8 * count,
        }
    };
    // The longest ones that have no lists of pairs, walked over to their ends.
    let wallets = (0..).map(|rank| address(SEED, 4, rank).into_word());
    let sparse = |topic: &B256| {
        [1, 2]
            .iter()
            .all(|&position| counted(wallet(position, topic)) < DENSE)
    };
    let wallets = wallets.filter(|topic| sparse(topic)).take(2 * WALKED as usize);
    let both: Vec<(LogQuery, u64)> = wallets
        .collect::<Vec<_>>()
        .chunks(2)
        .map(|pair| {
            let postings = counted(wallet(1, &pair[0])) + counted(wallet(2, &pair[1]));
            let mut query = topics([None, Some(pair[0]), Some(pair[1]), None]);
            query.skip = postings;
            (query, postings)
        })
        .collect();
    parts.row(
        "and: two lists that are not dense",
        "postings",
        || {
            let mut done = Done::default();
            for (query, postings) in &both {
                let walked = asked(query, *postings);
                done.count += walked.count;
                done.bytes += walked.bytes;
            }
            done
        },
        "copying both lists",
        |done| copying.copy(done.bytes),
    );
    let all = counted(wallet(1, &named.hot_wallet)) + counted(wallet(2, &named.hot_wallet));
    either.skip = all.saturating_sub(all / 5);
    parts.row(
        "or: to a far row of two dense lists",
        "postings",
        || asked(&either, all - all / 5),
        "copying both lists",
        |done| copying.copy(done.bytes),
    );
}

fn bodies(parts: &Parts, view: &Arc<View>, generator: &Generator) {
    const ROWS: u64 = 2_000;
    let mut copying = Copying::new();
    let mut random = Random::new(13);
    let logs = view.checkpoint().logs;
    let mut units = Units::new(view, Table::LogsByBlock);
    parts.row(
        "read a body at a random place (a unit each)",
        "logs",
        || {
            for _ in 0..ROWS {
                black_box(units.row(random.below(logs)).expect("a row"));
            }
            Done {
                count: ROWS,
                bytes: ROWS * 4_000,
            }
        },
        "copying a unit each",
        |done| copying.copy(done.bytes),
    );
    let (named, shared) = (generator.named(), Arc::clone(view));
    let emitter = view.emitter(&named.hot).expect("a table").expect("an emitter");
    let mut hot =
        PostingCursor::open(view, Term::log_address(emitter), Direction::Forward).expect("a cursor");
    let mut ordinals = Vec::new();
    let mut next = hot.seek(0).expect("a posting");
    while let Some(ordinal) = next.filter(|_| ordinals.len() < 100_000) {
        ordinals.push(ordinal);
        next = hot.step().expect("a posting");
    }
    parts.row(
        "read the bodies of one emitter in order (runs)",
        "logs",
        || {
            let mut runs = Runs::owned(&shared, emitter).expect("runs");
            let mut done = Done::default();
            for &ordinal in &ordinals {
                let body = runs.row(ordinal).expect("a row").body;
                done.count += 1;
                done.bytes += 36 + body.rest().len() as u64;
            }
            done
        },
        "copying the rows",
        |done| copying.copy(done.bytes),
    );
}

fn text(parts: &Parts, bundles: &[Bundle]) {
    let mut copying = Copying::new();
    let logs: Vec<LogEntry<'_>> = bundles
        .iter()
        .flat_map(support::log_entries)
        .take(10_000)
        .collect();
    let mut writer = LogWriter::new(UuidSpace::new(1));
    let mut out = Vec::new();
    parts.row(
        "write the JSON of logs",
        "logs",
        || {
            let mut done = Done::default();
            out.clear();
            for log in &logs {
                if out.len() >= 256 << 10 {
                    writer.finish(&mut out);
                    done.bytes += out.len() as u64;
                    out.clear();
                }
                writer.entry(&mut out, log);
                done.count += 1;
            }
            writer.finish(&mut out);
            done.bytes += out.len() as u64;
            done
        },
        "copying the text",
        |done| copying.copy(done.bytes),
    );
    let mut lines = Vec::new();
    for bundle in bundles {
        let mut line = Vec::new();
        rpc::bundle(&mut line, bundle);
        lines.push(String::from_utf8(line).expect("text"));
    }
    let bytes = lines.iter().map(|line| line.len() as u64).sum();
    let count = bundles
        .iter()
        .flat_map(|bundle| &bundle.receipts)
        .map(|receipt| receipt.logs.len() as u64)
        .sum();
    let parse = || {
        for line in &lines {
            black_box(parse_line(line).expect("a block"));
        }
        Done { count, bytes }
    };
    parts.row(
        "parse blocks and receipts of a node",
        "logs",
        parse,
        "reading the text",
        |done| {
            copying.read(done.bytes);
        },
    );
    parts.row(
        "parse them",
        "logs",
        parse,
        "serde_json, which drops what it reads",
        |_| {
            for line in &lines {
                black_box(serde_json::from_str::<serde::de::IgnoredAny>(line).expect("JSON"));
            }
        },
    );
}

/// Bytes of all files under a directory whose names end so.
fn bytes_under(directory: &Path, ending: &str) -> u64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        let of_ending = path.to_string_lossy().ends_with(ending);
        bytes += match entry.metadata() {
            Ok(data) if data.is_dir() => bytes_under(&path, ending),
            Ok(data) if of_ending => data.len(),
            _ => 0,
        };
    }
    bytes
}

/// Writes so many bytes to a new file in pieces, each forced to the disk; how long each piece took.
fn forced(path: &Path, pieces: usize, bytes: u64) -> Latencies {
    let piece = vec![5; usize::try_from(bytes).expect("bytes")];
    let mut file = File::create(path).expect("a file");
    let mut times = Latencies::default();
    for _ in 0..pieces {
        let began = Instant::now();
        file.write_all(&piece).expect("space");
        file.sync_data().expect("a disk");
        times.push(began.elapsed());
    }
    std::fs::remove_file(path).expect("the file");
    times
}

/// Deriving and committing final blocks in one batch, then blocks at the tip one by one.
fn writing(parts: &Parts) {
    if !parts.wants("derive") && !parts.wants("commit") {
        return;
    }
    let directory = filled::cache_directory().join("parts");
    drop(std::fs::remove_dir_all(&directory));
    let memory = Memory::of_environment();
    let store =
        Store::open_or_create(&memory.options(directory.clone()), 1, B256::ZERO, Some(1)).expect("a store");
    let mut writer = store.writer().expect("the writer");
    let config = GeneratorConfig {
        blocks: 1_000_000,
        traces: true,
        ..GeneratorConfig::default()
    };
    let rules = rules();
    let mut blocks = filled::opened(config);
    let mut next = |count: usize| blocks.by_ref().take(count).collect::<Vec<_>>();
    let scratch = filled::cache_directory().join("parts.scratch");
    let (mut derived, mut committed, mut sequential) = (Vec::new(), Vec::new(), Vec::new());
    let (mut done, mut written) = (Done::default(), 0);
    for _ in 0..parts.rounds.min(5) {
        let bundles = next(500);
        let (logs, before) = (writer.checkpoint().logs, bytes_under(&directory, ""));
        let began = Instant::now();
        let mut batch = writer.batch();
        for bundle in &bundles {
            derive(bundle, &rules, &mut batch).expect("rows");
        }
        derived.push(began.elapsed().as_secs_f64());
        let began = Instant::now();
        writer.commit_final(batch).expect("a commit");
        writer.settle().expect("a flush");
        committed.push(began.elapsed().as_secs_f64());
        done.count = writer.checkpoint().logs - logs;
        written = bytes_under(&directory, "").saturating_sub(before);
        sequential.push(forced(&scratch, 1, written).percentiles().max / 1e3);
    }
    done.bytes = written;
    let sequential = median(sequential);
    let name = "derive final blocks with traces";
    line(
        name,
        "logs",
        done,
        median(derived),
        "writing the store's bytes",
        sequential,
    );
    let name = "commit and flush them";
    line(
        name,
        "logs",
        done,
        median(committed),
        "writing the store's bytes",
        sequential,
    );

    // At the tip a block comes every few seconds: what backfill left to compact is done by then.
    store.compact().expect("a compaction");
    let tip = next(300);
    let logs = writer.checkpoint().logs;
    let (mut times, mut on_core, mut logged) = (Latencies::default(), 0.0, Vec::new());
    for bundle in &tip {
        // A flush now and then removes files of the log: no block is told by all of them together.
        let log = bytes_under(&directory, ".log");
        let (cpu, began) = (support::memory::thread_seconds(), Instant::now());
        let mut batch = writer.batch();
        derive(bundle, &rules, &mut batch).expect("rows");
        writer.commit_unfinal(batch).expect("a commit");
        times.push(began.elapsed());
        on_core += support::memory::thread_seconds() - cpu;
        logged.push(bytes_under(&directory, ".log").saturating_sub(log) as f64);
    }
    let bytes = median(logged) as u64;
    let logs = (writer.checkpoint().logs - logs) / tip.len() as u64;
    let times = times.percentiles();
    let bound = forced(&scratch, tip.len(), bytes).percentiles();
    let on_core = 1e3 * on_core / tip.len() as f64;
    println!(
        "\nA block at the tip of {logs} logs, derived and committed with RocksDB's log forced to the disk: p50 {:.2} ms, \
         p90 {:.2}, p99 {:.2}, the writer's thread {on_core:.2} ms a block on a core; \
         writing and forcing its {bytes} bytes alone: p50 {:.2} ms, p99 {:.2}.",
        times.p50, times.p90, times.p99, bound.p50, bound.p99
    );
    drop(writer);
    drop(store);
    drop(std::fs::remove_dir_all(&directory));
}

fn main() {
    let parts = Parts {
        only: std::env::var("QUARRY_BENCH_ONLY").unwrap_or_default(),
        rounds: filled::env("QUARRY_BENCH_ROUNDS", 9),
    };
    let logs = filled::env("QUARRY_BENCH_LOGS", 1_000_000);
    let config = GeneratorConfig {
        blocks: 100,
        ..GeneratorConfig::default()
    };
    let bundles: Vec<Bundle> = Generator::new(SEED, config).collect();
    let chain = filled::chain(logs);
    let options = OpenOptions {
        cache_bytes: (filled::env("QUARRY_BENCH_CACHE_MB", 1_024) as usize) << 20,
        read_only: true,
        ..OpenOptions::new(filled::kept(chain, logs))
    };
    let store = Store::open(&options).expect("the store");
    let (view, generator) = (store.view(), Generator::new(SEED, chain));
    let reader = Reader::new(store.view()).walking_anew();
    println!(
        "## parts: {logs} logs in the store that is read, median of {} rounds\n",
        parts.rounds
    );
    println!("| part | rate | each | moved | bound | reaches |\n|---|---|---|---|---|---|");
    codec(&parts, &bundles);
    postings(&parts, &view, &generator);
    expressions(&parts, &reader, &view, &generator);
    bodies(&parts, &view, &generator);
    text(&parts, &bundles);
    writing(&parts);
}
