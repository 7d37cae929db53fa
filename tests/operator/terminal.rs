//! What a terminal shows: bars below each other, lines above them, and neither in the other.

use std::process::{Command, Stdio};

use crate::binary::{command, import_demo};

/// Columns of a terminal that does not tell how many it has.
const COLUMNS: usize = 80;

/// Rows of a terminal that never scrolls, as ECMA-48 has them moved over.
fn rows(written: &str) -> Vec<String> {
    let mut rows: Vec<Vec<char>> = vec![Vec::new()];
    let (mut row, mut column) = (0, 0);
    let mut text = written.chars();
    while let Some(sign) = text.next() {
        match sign {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                assert_eq!(text.next(), Some('['));
                let mut amount = String::new();
                let order = loop {
                    match text.next().expect("a sequence ends") {
                        sign if sign.is_ascii_alphabetic() => break sign,
                        sign => amount.push(sign),
                    }
                };
                let by = amount.parse().unwrap_or(1);
                match order {
                    'A' => row -= by,
                    'B' => row += by,
                    'K' => rows[row].clear(),
                    'm' => {}
                    other => panic!("{other}"),
                }
            }
            sign => {
                if column == COLUMNS {
                    (row, column) = (row + 1, 0);
                }
                rows.resize(rows.len().max(row + 1), Vec::new());
                let signs = &mut rows[row];
                signs.resize(signs.len().max(column + 1), ' ');
                signs[column] = sign;
                column += 1;
            }
        }
        rows.resize(rows.len().max(row + 1), Vec::new());
    }
    let joined = rows.iter().map(|row| row.iter().collect::<String>());
    joined.map(|row| row.trim_end().to_owned()).collect()
}

/// What the program shows on a terminal of this kind until it ends, by itself or after a while by a signal.
fn shown(terminal: &str, args: &[&str], seconds: u32) -> String {
    let program = command([""; 0]).get_program().to_str().unwrap().to_owned();
    let words = args.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>();
    let line = format!(
        "exec timeout --foreground -s INT {seconds} '{program}' {}",
        words.join(" ")
    );
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", terminal)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn is_bar(row: &str) -> bool {
    row.contains(['\u{2588}', '\u{2591}'])
}

#[test]
fn bars_of_two_chains_are_below_each_other_and_below_all_lines() {
    let data = tempfile::tempdir().unwrap();
    let nowhere = "http://127.0.0.1:9";
    let args = [
        "run",
        "--data-dir",
        data.path().to_str().unwrap(),
        "--mainnet-rpc",
        nowhere,
        "--testnet-rpc",
        nowhere,
        "--listen",
        "127.0.0.1:0",
    ];
    let written = shown("xterm", &args, 8);
    // As it was when two rows were cleared last.
    let before = written
        .rfind("\x1b[1A\r\x1b[2K\x1b[1B\r\x1b[2K")
        .unwrap_or_else(|| panic!("{written}"));
    let rows = rows(written.get(..before).unwrap());
    let bars: Vec<_> = rows.iter().filter(|row| is_bar(row)).collect();
    assert_eq!(bars.len(), 2, "{rows:#?}");
    for chain in ["mainnet", "testnet"] {
        assert!(
            bars.iter().any(|bar| bar.trim_start().starts_with(chain)),
            "{rows:#?}"
        );
    }
    for row in &rows {
        assert!(!(is_bar(row) && row.contains("quarry::")), "{rows:#?}");
    }
    let lines = rows.iter().filter(|row| row.contains("quarry::")).count();
    assert!(lines >= 3, "{rows:#?}");
}

fn is_bar_sign(sign: char) -> bool {
    is_bar(&sign.to_string())
}

/// What `quarry verify` shows of the demo's chain.
fn verified(terminal: &str) -> String {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    shown(terminal, &["verify", "--data-dir", store], 60)
}

#[test]
fn what_a_command_prints_is_not_drawn_over() {
    let written = verified("xterm");
    let rows = rows(&written);
    assert!(!rows.iter().any(|row| is_bar(row)), "{rows:#?}");
    assert!(
        rows.iter().any(|row| row.starts_with("rows of other tables ")),
        "{rows:#?}"
    );
}

#[test]
fn a_terminal_that_cannot_draw_gets_lines() {
    let written = verified("dumb");
    assert!(
        !written.contains('\x1b') && !written.contains(is_bar_sign),
        "{written}"
    );
    assert!(
        written.contains("checking ") && written.contains("\nrows of other tables "),
        "{written}"
    );
}
