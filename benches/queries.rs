//! How fast lists of logs are answered, text included, over a store that backfill filled.
//!
//! Budgets: a page of the medium emitter (20,000 logs over the whole chain, 10,000 rows) at most 3 times the
//! writing of the same text from memory; page 100 x 10,000 and page 10,000 x 100 within twice page 1; ten times
//! the chain at most 1.5 times the time; no question slower than the prototype (measurements.md section 2).
//! Environment: `QUARRY_BENCH_LOGS` (`2,000,000` and `20,000,000`, one after the other), `QUARRY_BENCH_DIR`,
//! `QUARRY_BENCH_ONLY` (a part of a question's name); a store that is not kept yet is filled with the memory of `load`.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use quarry::json::{LogWriter, UuidSpace};
use quarry::model::LogEntry;
use quarry::query::{LogQuery, Reader};
use quarry::store::{OpenOptions, Store};
use support::asked::{Asked, made_anew, questions};
use support::filled::{self, SEED, median};
use support::generator::Generator;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod support;

/// What is handed on at a time, as the service does.
const FRAME_BYTES: usize = 256 * 1024;

/// Rows and bytes of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answer {
    rows: u64,
    bytes: u64,
}

struct Bench {
    reader: Reader,
    text: LogWriter,
    out: Vec<u8>,
}

impl Bench {
    fn open(logs: u64, cache_bytes: usize) -> Self {
        let options = OpenOptions {
            cache_bytes,
            read_only: true,
            ..OpenOptions::new(filled::kept(filled::chain(logs), logs))
        };
        let store = Store::open(&options).expect("the store");
        Self {
            reader: Reader::new(store.view()),
            text: LogWriter::new(UuidSpace::new(1)),
            out: Vec::with_capacity(FRAME_BYTES + 4096),
        }
    }

    /// Answers with text.
    fn answer(&mut self, query: &LogQuery) -> Answer {
        let mut page = self.reader.logs(query).expect("a page");
        let (text, out) = (&mut self.text, &mut self.out);
        let mut answer = Answer::default();
        out.clear();
        page.visit(&mut |log| {
            answer.rows += 1;
            if out.len() >= FRAME_BYTES {
                text.finish(out);
                answer.bytes += out.len() as u64;
                out.clear();
            }
            text.entry(out, log);
            true
        })
        .expect("rows");
        text.finish(out);
        answer.bytes += out.len() as u64;
        black_box(&out);
        answer
    }

    /// The same rows in memory, and the time to write their text only.
    fn text_only(&mut self, query: &LogQuery) -> f64 {
        let mut rows = Vec::new();
        let mut page = self.reader.logs(query).expect("a page");
        page.visit(&mut |log| {
            let bare = LogEntry {
                topics: &[],
                data: &[],
                ..*log
            };
            rows.push((bare, log.topics.to_vec(), log.data.to_vec()));
            true
        })
        .expect("rows");
        let whole = rows
            .iter()
            .map(|(log, topics, data)| LogEntry { topics, data, ..*log });
        let rows: Vec<LogEntry<'_>> = whole.collect();
        let (text, out) = (&mut self.text, &mut self.out);
        repeat(|| {
            out.clear();
            for log in &rows {
                if out.len() >= FRAME_BYTES {
                    text.finish(out);
                    out.clear();
                }
                text.entry(out, log);
            }
            text.finish(out);
            black_box(&out);
        })
    }

    fn milliseconds(&mut self, query: &LogQuery, is_asked_anew: bool) -> f64 {
        repeat(|| {
            match is_asked_anew {
                true => self.answer(&made_anew(query)),
                false => self.answer(query),
            };
        })
    }
}

/// The median time of a run in milliseconds: at least 9 runs, for at least a third of a second, at most 2,000.
fn repeat(mut run: impl FnMut()) -> f64 {
    run();
    let began = Instant::now();
    let mut times = Vec::new();
    while times.len() < 9 || (began.elapsed() < Duration::from_millis(300) && times.len() < 2_000) {
        let start = Instant::now();
        run();
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    median(times)
}

fn asked(logs: u64) -> Vec<Asked> {
    let config = filled::chain(logs);
    let only = std::env::var("QUARRY_BENCH_ONLY").unwrap_or_default();
    let mut asked = questions(Generator::new(SEED, config).named(), &config);
    asked.retain(|asked| asked.name.contains(&only));
    asked
}

/// All questions over one chain, by size of the block cache.
fn table(logs: u64) -> Vec<(String, f64)> {
    const CACHES: [(&str, usize); 3] = [("1 GiB", 1 << 30), ("32 MiB", 32 << 20), ("none", 1 << 10)];
    println!(
        "\n## {logs} logs: milliseconds with text, by size of the block cache (median; of `asc 1 GiB` the lesser of two, before and after all others)\n"
    );
    println!(
        "| question | rows | kB | asc 1 GiB | desc | asc 32 MiB | desc | asc none | desc | text only | asc/text |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut benches = CACHES.map(|(_, cache)| Bench::open(logs, cache));
    let mut hot = Vec::new();
    for question in asked(logs) {
        let is_asked_anew = question.is_asked_anew();
        let Asked { name, query } = question;
        let back = LogQuery {
            descending: true,
            ..query.clone()
        };
        let answer = benches[0].answer(&query);
        let mut times = Vec::new();
        for bench in &mut benches {
            // Ascending and descending in turn.
            let forth = bench.milliseconds(&query, is_asked_anew);
            times.push(forth);
            times.push(bench.milliseconds(&back, is_asked_anew));
        }
        let text = benches[0].text_only(&query);
        let again = benches[0].milliseconds(&query, is_asked_anew);
        times[0] = times[0].min(again);
        print!("| {name} | {} | {} |", answer.rows, answer.bytes / 1000);
        times.iter().for_each(|time| print!(" {time:.3} |"));
        println!(" {text:.3} | {:.2} |", times[0] / text);
        hot.push((name, times[0]));
    }
    hot
}

fn main() {
    let chains = match filled::env("QUARRY_BENCH_LOGS", 0) {
        0 => vec![2_000_000, 20_000_000],
        logs => vec![logs],
    };
    let tables: Vec<_> = chains.iter().map(|&logs| table(logs)).collect();
    for (logs, table) in chains.iter().zip(&tables) {
        println!("\n## {logs} logs: far pages against the first\n\n| page | first | ratio |\n|---|---|---|");
        let time = |name: &str| {
            table
                .iter()
                .find(|(found, _)| found == name)
                .map(|(_, time)| *time)
        };
        for list in ["Q2 Transfer", "Q2 hot"] {
            for (far, near) in [
                ("page 100 x 10,000", "page 1 x 10,000"),
                ("page 10,000 x 100", "page 1 x 100"),
            ] {
                let (far_name, near) = (format!("{list}, {far}"), format!("{list}, {near}"));
                if let (Some(far), Some(near)) = (time(&far_name), time(&near)) {
                    println!("| {far_name}: {far:.3} | {near:.3} | {:.2} |", far / near);
                }
            }
        }
    }
    if let [short, long] = tables.as_slice() {
        // Interleaved, so that the machine's mood does not enter the ratio.
        println!(
            "\n## {} against {} logs, in turn\n\n| question | short | long | ratio |\n|---|---|---|---|",
            chains[1], chains[0]
        );
        let mut benches = [chains[0], chains[1]].map(|logs| Bench::open(logs, 1 << 30));
        let (of_short, of_long) = (asked(chains[0]), asked(chains[1]));
        for question in of_short {
            let Some(other) = of_long.iter().find(|other| other.name == question.name) else {
                continue;
            };
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..5 {
                times[0].push(benches[0].milliseconds(&question.query, question.is_asked_anew()));
                times[1].push(benches[1].milliseconds(&other.query, other.is_asked_anew()));
            }
            let [a, b] = times.map(median);
            println!("| {} | {a:.3} | {b:.3} | {:.2} |", question.name, b / a);
        }
        let _ = (short, long);
    }
}
