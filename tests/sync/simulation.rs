//! Random lives of a chain, its node and its store. `QUARRY_SEEDS=N` for more of them.

use crate::brute::{check_blocks, check_logs};
use crate::faults;
use crate::rig::Rig;
use crate::support::index::until;
use fastrand::Rng;
use futures_util::StreamExt;
use std::time::Instant;

const STEPS: usize = 60;

/// Lives at a time: they wait more than they work.
const AT_A_TIME: usize = 3;

#[test]
fn random_lives() {
    let seeds = std::env::var("QUARRY_SEEDS").ok();
    let seeds: u64 = seeds.and_then(|text| text.parse().ok()).unwrap_or(3);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let lives = futures_util::stream::iter(1..=seeds)
        .map(|seed| async move {
            let began = Instant::now();
            let ended = tokio::spawn(live(seed)).await;
            println!("seed {seed}: {:?}", began.elapsed());
            assert!(ended.is_ok(), "the life of seed {seed} ended badly");
        })
        .buffer_unordered(AT_A_TIME);
    runtime.block_on(lives.collect::<Vec<()>>());
}

async fn live(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut rig = Rig::new(seed);
    rig.fake.mine(rng.u64(1..60));
    rig.fake.set_finalized(rng.u64(..=rig.fake.head()));
    rig.start().await;
    for step in 0..STEPS {
        let what = rng.u8(..20);
        let (head, finalized) = (rig.fake.head(), rig.fake.finalized());
        match what {
            0..=5 => rig.fake.mine(rng.u64(1..8)),
            6..=8 => {
                let depth = rng.u64(1..=20).min(head - finalized);
                if depth > 0 {
                    rig.fake.reorg(depth, rng.u64(depth.saturating_sub(2)..depth + 5));
                }
            }
            9..=10 => rig.fake.set_finalized(rng.u64(finalized..=head)),
            11..=13 => {
                let all = faults::all();
                rig.fake.fault(all[rng.usize(..all.len())].clone(), rng.u64(1..4));
            }
            14 => {
                rig.fake.stall(true);
                rig.fake.mine(rng.u64(..3));
                if rng.bool() {
                    until("the node is missed", || !rig.status().node_up()).await;
                }
                rig.fake.stall(false);
            }
            15 => {
                rig.stop().await.unwrap();
                rig.start().await;
            }
            16 => {
                rig.drop_engine().await;
                rig.start().await;
            }
            17..=18 => {
                rig.fake.mine(1);
                rig.synced().await;
                let chain = rig.fake.bundles();
                check_logs(&rig.reader(), &chain, 40, &mut rng);
            }
            _ => {
                rig.fake.mine(1);
                rig.check(&format!("seed {seed} step {step}")).await;
            }
        }
    }
    rig.fake.clear_faults();
    rig.fake.mine(1);
    rig.check(&format!("seed {seed} at the end")).await;
    let chain = rig.fake.bundles();
    check_blocks(&rig.reader(), &chain, 0);
    check_logs(&rig.reader(), &chain, 200, &mut rng);
    rig.stop().await.unwrap();
    rig.start().await;
    rig.check(&format!("seed {seed} reopened")).await;
    rig.stop().await.unwrap();
}
