//! Killed in the middle: what is left is whole or is nothing.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::binary::signal::{Signal, send};
use crate::binary::{command, quarry};
use crate::{create, demo_store, inspected, names, restore, verify};

/// Kills of each command, and how many are tried until one hit its middle.
const ROUNDS: u32 = 25;
const ENOUGH: u32 = 250;

/// Runs a command and kills it after a while; whether it was killed.
fn killed(arguments: &[&Path], after: Duration) -> bool {
    let mut child = command(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    let ended = child.try_wait().unwrap().is_some();
    let _ = child.kill();
    child.wait().unwrap();
    !ended
}

#[test]
fn nothing_half_is_left() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let home = tempfile::tempdir().unwrap();
    let (data, made) = (home.path().join("data"), home.path().join("made"));
    demo_store(&data);
    let before = inspected(&data);
    // Undisturbed, so that the kills come while it works, however fast the machine is.
    let undisturbed = home.path().join("undisturbed");
    let began = Instant::now();
    create(&data, &undisturbed).succeeded();
    let took = began.elapsed();
    std::fs::remove_dir_all(&undisturbed).unwrap();
    let (mut kills, mut left) = (0, 0);
    for round in 0..ENOUGH {
        if round >= ROUNDS && left > 0 {
            break;
        }
        let target = home.path().join("killed");
        let arguments = ["checkpoint", "create", "T", "--data-dir", "D"].map(Path::new);
        let arguments = arguments.map(|word| match word.to_str() {
            Some("T") => target.as_path(),
            Some("D") => data.as_path(),
            _ => word,
        });
        kills += u32::from(killed(&arguments, took.mul_f64(rng.f64())));
        left += names(&data).len() - 1;
        if target.exists() {
            verify(&target).succeeded();
            std::fs::remove_dir_all(&target).unwrap();
        }
    }
    println!("create: {kills} killed, {left} left something");
    assert!(kills > 0 && left > 0, "no kill hit the middle");
    assert_eq!(inspected(&data), before, "the store is not as it was");
    // What the killed ones left goes with the next one.
    create(&data, &made).succeeded();
    assert_eq!(names(&data), ["mainnet"]);
    let (mut kills, mut left) = (0, 0);
    let back = home.path().join("back");
    let began = Instant::now();
    restore(&made, &back).succeeded();
    let took = began.elapsed();
    std::fs::remove_dir_all(back.join("mainnet")).unwrap();
    for round in 0..ENOUGH {
        if round >= ROUNDS && left > 0 {
            break;
        }
        let arguments = ["checkpoint", "restore", "F", "--data-dir", "D"].map(Path::new);
        let arguments = arguments.map(|word| match word.to_str() {
            Some("F") => made.as_path(),
            Some("D") => back.as_path(),
            _ => word,
        });
        kills += u32::from(killed(&arguments, took.mul_f64(rng.f64())));
        let there = if back.exists() { names(&back) } else { Vec::new() };
        if there.iter().any(|name| name == "mainnet") {
            assert_eq!(inspected(&back), before);
            std::fs::remove_dir_all(back.join("mainnet")).unwrap();
        } else {
            left += there.len();
            let text = back.to_str().unwrap();
            quarry(["inspect", "--data-dir", text]).refused(&["there is no store"]);
            quarry(["serve", "--listen", "127.0.0.1:0", "--data-dir", text]).refused(&["there is no store"]);
        }
    }
    println!("restore: {kills} killed, {left} left something");
    assert!(kills > 0 && left > 0, "no kill hit the middle");
    restore(&made, &back).succeeded();
    assert_eq!(names(&back), ["mainnet"]);
    assert_eq!(inspected(&back), before);
}

#[test]
fn a_polite_end_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (data, target) = (home.path().join("data"), home.path().join("made"));
    demo_store(&data);
    let began = Instant::now();
    create(&data, &target).succeeded();
    let took = began.elapsed();
    std::fs::remove_dir_all(&target).unwrap();
    let mut ended = 0;
    for round in 0..ENOUGH {
        if round >= 8 && ended > 0 {
            break;
        }
        let after = took.mul_f64(f64::from(round % 8 + 1) / 8.0);
        let mut child = command(["checkpoint", "create"])
            .arg(&target)
            .arg("--data-dir")
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(after);
        send(&child, Signal::TERM);
        let status = child.wait().unwrap();
        if status.code() == Some(1) {
            ended += 1;
            assert!(!target.exists());
            assert_eq!(names(&data), ["mainnet"]);
        } else if status.success() {
            verify(&target).succeeded();
            std::fs::remove_dir_all(&target).unwrap();
        }
    }
    assert!(ended > 0, "no signal came in the middle");
}
