//! Rows far from each other, out of files: several threads read them, and each question gets its own.

use std::sync::Arc;

use quarry::query::Reader;
use quarry::store::OpenOptions;

use crate::plain::{self, ChainConfig};
use crate::{Row, backfill, follow, open, open_with, options, rows, scratch};

#[test]
fn scattered_rows_are_the_chains_whoever_reads_them() {
    const FINAL: u64 = 120;
    let config = ChainConfig {
        logs_per_block: 150,
        ..ChainConfig::default()
    };
    let bundles = plain::chain(23, FINAL + 20, &config);
    let all: Arc<[Row]> = rows(&bundles).into();
    let directory = scratch::directory();
    {
        let store = open(directory.path());
        let mut writer = store.writer().unwrap();
        backfill(&mut writer, &bundles[..FINAL as usize], 50);
        follow(&mut writer, &bundles[FINAL as usize..]);
        drop(writer);
        store.compact().unwrap();
    }
    for cache_bytes in [0, 1 << 20] {
        let store = open_with(&OpenOptions {
            cache_bytes,
            ..options(directory.path())
        });
        // Several questions at once share the threads that read.
        let questions: Vec<_> = (0..4u64)
            .map(|seed| {
                let (reader, all) = (Reader::new(store.view()), Arc::clone(&all));
                std::thread::spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for round in 0..30 {
                        let step = random.usize(30..400);
                        let first = random.usize(..200);
                        let mut wanted: Vec<u64> = (first as u64..all.len() as u64)
                            .step_by(step)
                            .filter(|_| random.u8(..) < 230)
                            .collect();
                        if round % 2 == 1 {
                            wanted.reverse();
                        }
                        let mut expected = wanted.iter();
                        let mut page = reader.logs_at(wanted.clone()).unwrap();
                        // In frames of some rows each, as answers have them.
                        let mut more = true;
                        while more {
                            let mut left = random.usize(1..150);
                            more = page
                                .visit(&mut |log| {
                                    assert_eq!(Row::of(log), all[*expected.next().unwrap() as usize]);
                                    left -= 1;
                                    left > 0
                                })
                                .unwrap();
                        }
                        assert!(expected.next().is_none());
                    }
                })
            })
            .collect();
        for question in questions {
            question.join().unwrap();
        }
    }
}
