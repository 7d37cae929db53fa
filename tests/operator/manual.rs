//! `quarry completions` and `quarry man`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use clap::CommandFactory as _;
use quarry::cli::Cli;

use crate::binary::skipped::skipped;
use crate::binary::{command, quarry};

/// Every command, by all words of its name; `help` is clap's own.
fn commands() -> Vec<Vec<String>> {
    fn collect(command: &clap::Command, before: &[String], out: &mut Vec<Vec<String>>) {
        for deeper in command.get_subcommands() {
            let mut words = before.to_vec();
            words.push(deeper.get_name().to_owned());
            collect(deeper, &words, out);
            out.push(words);
        }
    }
    let mut out = Vec::new();
    collect(&Cli::command(), &[], &mut out);
    assert!(out.len() > 15, "{out:?}");
    out
}

fn is_installed(program: &str) -> bool {
    let looked = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status();
    looked.is_ok_and(|status| status.success())
}

#[test]
fn completions_name_every_command_and_option() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = quarry(["completions", shell]).succeeded().stdout;
        for words in commands() {
            let last = words.last().unwrap();
            assert!(text.contains(last.as_str()), "{shell}: no `{last}`");
        }
        for option in ["mainnet-rpc", "show-secrets", "log-format", "against-postgres"] {
            assert!(text.contains(option), "{shell}: no `{option}`");
        }
        // Those shells that are here read it.
        if !["bash", "zsh", "fish"].contains(&shell) {
            continue;
        }
        if is_installed(shell) {
            let mut reading = Command::new(shell)
                .arg("-n")
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            reading.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let read = reading.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&read.stderr);
            assert!(read.status.success() && said.is_empty(), "{shell}: {said}");
        } else {
            skipped(&format!("{shell} is not installed"));
        }
    }
    let wrong = quarry(["completions", "cmd"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("possible values: bash"), "{wrong:?}");
}

#[test]
fn bash_completes() {
    if !is_installed("bash") {
        skipped("bash is not installed");
        return;
    }
    let completions = quarry(["completions", "bash"]).succeeded().stdout;
    let ask = |words: &str, line: &str| {
        let script = format!(
            "{completions}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _quarry quarry \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &script])
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask("quarry ins", "a command").trim(), "inspect");
    assert_eq!(
        ask("quarry import con", "a command below another").trim(),
        "contracts"
    );
    assert_eq!(ask("quarry run --mainnet", "an option").trim(), "--mainnet-rpc");
    assert_eq!(ask("quarry run --log-format j", "a value").trim(), "json");
}

#[test]
fn pages_of_the_manual() {
    let page = quarry(["man"]).succeeded().stdout;
    assert!(
        page.starts_with(".ie \\n(.g") && page.contains(".TH quarry 1"),
        "{page}"
    );
    for words in commands().iter().filter(|words| words.len() == 1) {
        assert!(page.contains(&format!("quarry\\-{}(1)", words[0])), "{words:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    let said = quarry(["man", pages.to_str().unwrap()]).succeeded().stdout;
    let mut files: Vec<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut wanted: Vec<String> = commands()
        .iter()
        .map(|words| format!("quarry-{}.1", words.join("-")))
        .chain(["quarry.1".to_owned()])
        .collect();
    wanted.sort();
    assert_eq!(files, wanted);
    assert!(said.starts_with(&format!("{} pages in ", wanted.len())), "{said}");
    let run = std::fs::read_to_string(pages.join("quarry-run.1")).unwrap();
    for word in [
        "mainnet\\-rpc",
        "QUARRY_MAINNET_RPC",
        "EXIT STATUS",
        "CONFIGURATION",
    ] {
        assert!(run.contains(word), "{word}: {run}");
    }
    // The foot of each page.
    let version = format!("\"quarry {}\"", env!("CARGO_PKG_VERSION"));
    for file in &files {
        let page = std::fs::read_to_string(pages.join(file)).unwrap();
        let title = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
        assert!(title.contains(&version), "{file}: {title}");
    }
    // What sets pages has nothing to say against them.
    let has_groff = is_installed("groff");
    if !has_groff {
        skipped("groff is not installed");
    }
    for file in files.iter().filter(|_| has_groff) {
        let set = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww"])
            .arg(pages.join(file))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&set.stderr);
        assert!(set.status.success() && said.is_empty(), "{file}: {said}");
        assert!(set.stdout.len() > 1000, "{file}: {set:?}");
    }
    // A directory that cannot be made is a sentence.
    let file = pages.join("quarry.1");
    quarry(["man", file.to_str().unwrap()]).refused(&["cannot make `"]);
}

/// What is in a node's URL may be a key, and help is pasted into tickets.
#[test]
fn no_help_shows_what_variables_hold() {
    let shown = |words: &[&str]| {
        let mut asked = command(words);
        for name in [
            "QUARRY_MAINNET_RPC",
            "QUARRY_TESTNET_RPC",
            "QUARRY_LISTEN",
            "QUARRY_DATA_DIR",
        ] {
            asked.env(name, "https://me:9c1f7e@node.example/v3/9c1f7e");
        }
        let output = asked.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(!text.contains("9c1f7e"), "{words:?}: {text}");
        text
    };
    for words in commands() {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for text in [
            shown(&[&["help"][..], &words].concat()),
            shown(&[&words[..], &["--help"]].concat()),
            shown(&[&words[..], &["-h"]].concat()),
        ] {
            assert!(text.contains("Usage: quarry"), "{words:?}: {text}");
        }
    }
    assert!(shown(&["help", "run"]).contains("[env: QUARRY_MAINNET_RPC]"));
    for words in [
        &["man"][..],
        &["completions", "zsh"],
        &["run", "--no-such-option"],
        &[],
    ] {
        shown(words);
    }
}
