//! `quarry export chain`: a file that is whole or not there, and standard output.

use std::time::{Duration, Instant};

use crate::binary::{command, import_demo, interrupt, names, quarry};

/// A run that ends in the middle, however it ends, leaves nothing that could be taken for a recording.
#[test]
fn a_recording_has_its_name_when_it_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (store, wanted) = (at("store"), at("wanted.zst"));
    import_demo(&store);
    quarry(["export", "chain", &wanted, "--data-dir", &store]).succeeded();
    let whole = std::fs::read(&wanted).unwrap();
    let nowhere = at("nowhere/chain.zst");
    for (file, sentence) in [
        (
            &wanted,
            format!("`{wanted}` exists already: name a file that does not"),
        ),
        (&nowhere, format!("there is no directory `{}`", at("nowhere"))),
        (&at("wanted.zst/x"), format!("`{wanted}` is not a directory")),
        (&at("wanted.zst/x/y"), "Not a directory (os error 20)".to_owned()),
        (&at(".."), format!("`{}` is no name of a file", at(".."))),
    ] {
        let outcome = quarry(["export", "chain", file, "--data-dir", &store]).refused(&[&sentence]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
    }
    let place = home.path().join("out");
    std::fs::create_dir(&place).unwrap();
    let target = place.join("chain.zst");
    let export = ["export", "chain", target.to_str().unwrap(), "--data-dir", &store];
    for kills in [false, true] {
        // The work is short: an export may be done before it is ended.
        let ended = (0..40).any(|_| {
            let mut child = command(export).spawn().unwrap();
            let began = Instant::now();
            while names(&place).is_empty() && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(1));
            }
            if kills {
                child.kill().unwrap();
            } else {
                interrupt(&child);
            }
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                assert_eq!(std::fs::read(&target).unwrap(), whole);
                std::fs::remove_file(&target).unwrap();
                return false;
            }
            assert!(!target.exists());
            if !kills {
                let said = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(1), "{said}");
                assert!(said.contains("quarry: interrupted before block "), "{said}");
                assert_eq!(names(&place), [""; 0]);
            }
            true
        });
        assert!(ended, "every export was faster than its end");
    }
    // The next one removes what the killed one left.
    quarry(export).succeeded();
    assert_eq!(names(&place), ["chain.zst"]);
    assert_eq!(std::fs::read(&target).unwrap(), whole);
}

#[test]
fn a_dash_is_standard_output() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store").to_str().unwrap().to_owned();
    import_demo(&store);
    let file = home.path().join("chain.zst");
    quarry(["export", "chain", file.to_str().unwrap(), "--data-dir", &store]).succeeded();
    let mut streaming = command(["export", "chain", "-", "--data-dir", &store]);
    let output = streaming.current_dir(home.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout == std::fs::read(&file).unwrap());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("written to standard output"), "{said}");
    assert!(!home.path().join("-").exists());
}
