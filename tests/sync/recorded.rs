//! Blocks of a recording, parsed and verified ahead of whoever takes them.

use std::io::{Cursor, Read};
use std::time::Duration;

use futures_util::StreamExt as _;
use quarry::json::rpc;
use quarry::model::{B256, Bundle};
use quarry::node::recorded::RecordedChain;
use quarry::store::StoreError;
use quarry::sync::{ChainRules, SyncError, recorded};

use crate::support::chain::{Chain, ChainSpec};

fn text(bundles: &[Bundle]) -> Vec<u8> {
    let mut text = Vec::new();
    for bundle in bundles {
        rpc::bundle(&mut text, bundle);
        text.push(b'\n');
    }
    text
}

fn mined(blocks: u64) -> Vec<Bundle> {
    let mut chain = Chain::new(ChainSpec::new(5));
    chain.mine(blocks);
    chain.bundles().to_vec()
}

fn rules() -> ChainRules {
    ChainRules::new(1337, B256::ZERO, None, 0, false)
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_come_in_order_however_little_may_be_ahead() {
    let bundles = mined(700);
    for (threads, ahead) in [(1, 0), (2, 0), (3, 1 << 30)] {
        let chain = RecordedChain::from_reader(Cursor::new(text(&bundles))).unwrap();
        let found = recorded(chain, rules(), 0, |_| Ok(None), threads, ahead);
        let found: Vec<Bundle> = found.map(Result::unwrap).collect().await;
        assert_eq!(found, bundles, "{threads} threads, {ahead} bytes ahead");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_block_is_found_behind_the_whole_ones() {
    let mut bundles = mined(600);
    bundles[555].block.header.gas_limit += 1;
    let chain = RecordedChain::from_reader(Cursor::new(text(&bundles))).unwrap();
    let found: Vec<_> = recorded(chain, rules(), 0, |_| Ok(None), 2, 1 << 30)
        .collect()
        .await;
    assert!(found[..555].iter().all(Result::is_ok));
    assert!(
        matches!(found[555], Err(SyncError::Verify { block: 555, .. })),
        "{:?}",
        found[555]
    );
}

/// It may be another one than the recording's.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_block_that_cannot_be_read_is_told() {
    let bundles = mined(10);
    let hashes: Vec<_> = bundles.iter().map(|bundle| bundle.block.hash).collect();
    let stored = move |number| match number {
        7 => Err(StoreError::Missing {
            table: "blocks",
            what: "block",
            number,
        }),
        _ => Ok(Some(hashes[number as usize])),
    };
    let chain = RecordedChain::from_reader(Cursor::new(text(&bundles))).unwrap();
    let found: Vec<_> = recorded(chain, rules(), 9, stored, 2, 0).collect().await;
    assert!(
        matches!(
            found[0],
            Err(SyncError::Store(StoreError::Missing { number: 7, .. }))
        ),
        "{:?}",
        found[0]
    );
}

/// Gives the same text for ever.
struct Endless(Vec<u8>, usize);

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let rest = &self.0[self.1..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.1 = (self.1 + count) % self.0.len();
        Ok(count)
    }
}

#[test]
fn a_source_that_is_dropped_stops_reading() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let chain = RecordedChain::from_reader(Endless(text(&mined(20)), 0)).unwrap();
        let mut source = recorded(chain, rules(), 0, |_| Ok(None), 2, 4 << 20);
        assert_eq!(source.next().await.unwrap().unwrap().block.number(), 0);
        // Until all the room is taken and the reader waits for some.
        tokio::time::sleep(Duration::from_millis(100)).await;
    });
    // Ending the runtime waits for what still runs on its threads.
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(runtime);
        ended.send(()).unwrap();
    });
    end.recv_timeout(Duration::from_secs(20))
        .expect("the reader to end");
}
