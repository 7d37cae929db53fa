//! Random lives of a chain, its node and its store: one seed each.
//!
//! `QUARRY_SEED=N` lives one of them, `QUARRY_SEEDS=N` so many from `QUARRY_FIRST_SEED` (1) on. A life's choices follow
//! from its seed; when its threads and sockets meet does not, so a failure of timing may want the seed more than once.

use crate::life::{Life, Tally};
use futures_util::StreamExt;
use std::time::{Duration, Instant};

/// Lives of a plain run.
const LIVES: u64 = 4;
/// Lives at a time: they wait more than they work.
const AT_A_TIME: usize = 6;
/// No life takes as long, however busy the machine.
const LIFE_MAX: Duration = Duration::from_secs(1200);

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}: `{text}` is no number")),
    )
}

#[test]
fn random_lives() {
    let first = number("QUARRY_FIRST_SEED").unwrap_or(1);
    let seeds = match number("QUARRY_SEED") {
        Some(seed) => seed..=seed,
        None => first..=first + number("QUARRY_SEEDS").unwrap_or(LIVES).max(1) - 1,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let lives = futures_util::stream::iter(seeds).map(|seed| async move {
        let began = Instant::now();
        let lived = tokio::spawn(async move { tokio::time::timeout(LIFE_MAX, Life::live(seed)).await }).await;
        match lived {
            Ok(Ok(tally)) => {
                println!("seed {seed}: {tally} in {:.1} s", began.elapsed().as_secs_f64());
                Ok(tally)
            }
            ended => {
                let how = ended.map_or_else(|error| error.to_string(), |_| "does not end".to_owned());
                println!("seed {seed} failed ({how}); again with: make simulate SEED={seed}");
                Err(seed)
            }
        }
    });
    let lived: Vec<Result<Tally, u64>> = runtime.block_on(lives.buffer_unordered(AT_A_TIME).collect());
    let failed: Vec<u64> = lived
        .iter()
        .filter_map(|life| life.as_ref().err().copied())
        .collect();
    let all = lived.iter().flatten().fold(Tally::default(), Tally::with);
    println!("{} lives, {} failed: {all}", lived.len(), failed.len());
    println!("{}", all.cuts_by_stage());
    assert!(
        failed.is_empty(),
        "failed: make simulate SEED=N for each N of {failed:?}"
    );
    assert!(
        lived.len() < 4 || all.cuts() >= lived.len() as u64,
        "hardly any life was cut"
    );
}
