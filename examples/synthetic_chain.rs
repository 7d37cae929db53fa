//! Writes the synthetic chain of the benches as a recorded-chain file, and prints its shares.
//!
//! `cargo run --release --example synthetic_chain -- BLOCKS FILE`
#![allow(clippy::print_stdout, reason = "it is run by hand")]

#[path = "../benches/support/mod.rs"]
mod support;

use std::path::Path;
use support::generator::{Generator, GeneratorConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(blocks), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("usage: synthetic_chain BLOCKS FILE".into());
    };
    let config = GeneratorConfig {
        blocks: blocks.parse()?,
        traces: true,
        ..GeneratorConfig::default()
    };
    let bytes = support::recorded::write_chain(Path::new(&file), Generator::new(1, config))?;
    println!("{file}: {bytes} bytes before compression");
    println!("{}", support::shares::Shares::of(Generator::new(1, config)));
    Ok(())
}
