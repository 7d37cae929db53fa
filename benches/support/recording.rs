//! A recording of the synthetic chain, sealed: its hashes, roots and blooms are valid.
#![allow(
    clippy::print_stderr,
    reason = "a recording that is made takes a while: say so"
)]

#[path = "../../tests/support/build.rs"]
#[allow(dead_code, unreachable_pub, reason = "one part of it is used")]
mod build;
#[path = "../../tests/support/chain.rs"]
#[allow(dead_code, unreachable_pub, reason = "one part of it is used")]
mod chain;
#[path = "sealed.rs"]
mod sealed;

use std::path::PathBuf;

use crate::support::filled::{self, SEED};
use crate::support::generator::Generator;
use crate::support::part::Part;
use crate::support::recorded;
use sealed::Sealed;

/// The recording, made when it is not kept from an earlier run.
pub(crate) fn kept(logs: u64, part: Part) -> PathBuf {
    let directory = filled::cache_directory();
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join(format!("chain-seed{SEED}-logs{logs}{}.jsonl.zst", part.suffix()));
    if !path.exists() {
        eprintln!("recording {} ...", path.display());
        let unfinished = path.with_extension("part");
        let blocks = Generator::new(SEED, filled::chain(logs)).map(|bundle| part.cut(bundle));
        let blocks = Sealed::new(blocks);
        recorded::write_chain(&unfinished, blocks).expect("a recording");
        std::fs::rename(&unfinished, &path).expect("a recording");
    }
    path
}
