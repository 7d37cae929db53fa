//! Rust sources as the tidy test reads them: text, and code without comments and literals.

use std::collections::BTreeSet;
use std::path::Path;

/// One source file.
pub(crate) struct Source {
    /// Path from the root of the repository, with slashes.
    pub(crate) path: String,
    /// The room it belongs to: the folder or file right under `src`.
    pub(crate) room: String,
    /// As it is.
    pub(crate) text: String,
    /// The same lines; comments, strings and characters are blanks.
    pub(crate) code: String,
    /// Whether the whole file is compiled for tests only.
    all_test: bool,
}

/// All `.rs` files under `folders`, in order.
pub(crate) fn load(root: &Path, folders: &[&str]) -> Vec<Source> {
    let mut sources: Vec<Source> = walk(root)
        .into_iter()
        .filter(|path| {
            path.ends_with(".rs")
                && folders
                    .iter()
                    .any(|folder| path.starts_with(&format!("{folder}/")))
        })
        .filter_map(|path| {
            Some(Source::new(
                path.clone(),
                std::fs::read_to_string(root.join(path)).ok()?,
            ))
        })
        .collect();
    let modules: BTreeSet<String> = sources.iter().flat_map(Source::test_modules).collect();
    for source in &mut sources {
        source.all_test = !source.path.starts_with("src/") || modules.contains(&source.path);
    }
    sources
}

/// Every file under `root` that is neither built, installed nor hidden.
pub(crate) fn walk(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || ["target", "node_modules", "quarry-data"].contains(&name.as_str()) {
                continue;
            }
            let path = if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            };
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

impl Source {
    fn new(path: String, text: String) -> Self {
        let room = path
            .split('/')
            .nth(1)
            .unwrap_or_default()
            .trim_end_matches(".rs")
            .to_owned();
        let code = blank(&text);
        Self {
            path,
            room,
            text,
            code,
            all_test: false,
        }
    }

    /// Code by line, counted from 1.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(line, text)| (line + 1, text))
    }

    /// The same without what is compiled for tests only.
    pub(crate) fn code_lines_outside_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.lines_of_tests();
        self.code_lines().filter(move |(line, _)| !tests.contains(line))
    }

    /// Lines that are compiled for tests only.
    pub(crate) fn lines_of_tests(&self) -> BTreeSet<usize> {
        let mut lines = BTreeSet::new();
        let mut inside = None;
        let mut depth = 0_usize;
        for (line, text) in self.code_lines() {
            if inside.is_none() && text.contains("#[cfg(test)]") {
                inside = Some(depth);
                lines.insert(line);
                continue;
            }
            let before = depth;
            depth = depth + text.matches('{').count() - text.matches('}').count();
            if let Some(outer) = inside {
                lines.insert(line);
                let ends = (before > outer || text.contains('{') || text.contains(';')) && depth == outer;
                if ends {
                    inside = None;
                }
            } else if self.all_test {
                lines.insert(line);
            }
        }
        lines
    }

    /// Files of modules that are declared here for tests only.
    fn test_modules(&self) -> Vec<String> {
        let folder = match self.path.rsplit_once('/') {
            Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder.to_owned(),
            _ => self.path.trim_end_matches(".rs").to_owned(),
        };
        // A path is told from the folder that the file lies in; of strings only the text has it.
        let beside = self.path.rsplit_once('/').map_or("", |(beside, _)| beside);
        let lines: Vec<&str> = self.code.lines().map(str::trim).collect();
        let texts: Vec<&str> = self.text.lines().map(str::trim).collect();
        let named = |place: usize| lines.get(place)?.split("mod ").nth(1)?.strip_suffix(';');
        let told = |place: usize| texts.get(place)?.strip_prefix("#[path = \"")?.strip_suffix("\"]");
        let marked = (0..lines.len()).filter(|&place| lines[place] == "#[cfg(test)]");
        marked
            .filter_map(|place| match told(place + 1) {
                Some(path) => named(place + 2).map(|_| format!("{beside}/{path}")),
                None => named(place + 1).map(|name| format!("{folder}/{name}.rs")),
            })
            .collect()
    }

    /// Our rooms that are named here: by `crate::`, by `quarry::`, or by climbing out with `super::`.
    pub(crate) fn rooms_named(&self) -> Vec<(usize, String)> {
        let mut named = Vec::new();
        for start in ["crate", "quarry"] {
            for (line, path) in tokens_before_path(&self.code, start) {
                named.extend(path.split("::").nth(1).map(|room| (line, room.to_owned())));
            }
            for (line, list) in groups(&self.code, start) {
                named.extend(list.into_iter().map(|room| (line, room)));
            }
        }
        // `src/room.rs` and `src/room/mod.rs` are one step below the crate, `src/room/x.rs` is two.
        let steps = self.path.split('/').count() - 1 - usize::from(self.path.ends_with("/mod.rs"));
        let tests = self.lines_of_tests();
        for (line, text) in self.code_lines() {
            let inline = usize::from(tests.contains(&line) && !self.all_test);
            let climbed = text
                .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
                .map(|path| path.split("::").take_while(|part| *part == "super").count());
            if climbed.max().unwrap_or(0) >= steps + inline {
                named.push((line, "super:: out of the room".to_owned()));
            }
        }
        named
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where a path begins with `start` (a name, or a path of names), with the whole path up to what is no name.
pub(crate) fn tokens_before_path(code: &str, start: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in code.lines().enumerate() {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            let outer = text[..at].trim_end_matches(':').chars().next_back();
            let qualified = before == Some(':') && outer.is_some_and(is_word);
            let rest = &text[at + start.len()..];
            let named = rest.starts_with("::")
                || ((rest.starts_with(';') || rest.starts_with(" as ")) && text.contains("use "));
            if before.is_some_and(is_word) || before == Some('.') || qualified || !named {
                continue;
            }
            let length = text[at..]
                .find(|c: char| !is_word(c) && c != ':')
                .unwrap_or(text.len() - at);
            found.push((line + 1, text[at..at + length].trim_end_matches(':').to_owned()));
        }
    }
    found
}

/// The first names in `start::{a::b, c}`, also over several lines.
fn groups(code: &str, start: &str) -> Vec<(usize, Vec<String>)> {
    let opening = format!("{start}::{{");
    let mut found = Vec::new();
    for (at, _) in code.match_indices(&opening) {
        let line = code[..at].matches('\n').count() + 1;
        let (mut depth, mut names, mut name) = (0, Vec::new(), String::new());
        let mut first = true;
        for c in code[at + opening.len()..].chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names.push(std::mem::take(&mut name));
                    first = true;
                }
                ':' => first = false,
                c if depth == 0 && first && is_word(c) => name.push(c),
                _ => {}
            }
        }
        names.push(name);
        names.retain(|name| !name.is_empty());
        found.push((line, names));
    }
    found
}

/// Whether `path` is `prefix` or goes on after it.
pub(crate) fn is_prefix(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether `word` stands in `text` by itself.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_word)
            && !text[at + word.len()..].chars().next().is_some_and(is_word)
    })
}

/// Whether a path in `text` begins with `folder`, such as `/usr`.
pub(crate) fn has_folder(text: &str, folder: &str) -> bool {
    text.match_indices(folder).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + folder.len()..].chars().next();
        let begins = before.is_none_or(|c| !is_word(c) && !"./}>*-)".contains(c));
        begins && after.is_none_or(|c| !is_word(c) && c != '-' && c != '.')
    })
}

/// The hosts of the http(s) addresses in `text`.
pub(crate) fn hosts(text: &str) -> Vec<&str> {
    let mut hosts = Vec::new();
    for scheme in ["http://", "https://"] {
        for (at, _) in text.match_indices(scheme) {
            let rest = &text[at + scheme.len()..];
            let authority = rest
                .split(|c: char| !(is_word(c) || ".-:@".contains(c)))
                .next()
                .unwrap_or("");
            let host = authority
                .rsplit('@')
                .next()
                .unwrap_or("")
                .split(':')
                .next()
                .unwrap_or("");
            let host = host.trim_end_matches('.');
            if !host.is_empty() {
                hosts.push(host);
            }
        }
    }
    hosts
}

/// Comments, strings and characters as blanks; line ends stay.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let keep = |c: char| if c == '\n' { '\n' } else { ' ' };
    while at < chars.len() {
        let rest = &chars[at..];
        let length = match rest {
            ['/', '/', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => block_comment(rest),
            ['"', ..] => string(rest),
            ['r', '"' | '#', ..] if at == 0 || !is_word(chars[at - 1]) || chars[at - 1] == 'b' => {
                raw_string(rest)
            }
            ['\'', '\\', ..] => {
                2 + rest
                    .iter()
                    .skip(3)
                    .position(|&c| c == '\'')
                    .map_or(0, |end| end + 2)
            }
            ['\'', _, '\'', ..] => 3,
            _ => 0,
        };
        if length == 0 {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(rest[..length].iter().map(|&c| keep(c)));
            at += length;
        }
    }
    out
}

fn block_comment(rest: &[char]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => (at, depth) = (at + 2, depth + 1),
            ['*', '/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn raw_string(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let end: Vec<char> = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    let body = &rest[2 + hashes..];
    let found = body.windows(end.len()).position(|window| window == end);
    2 + hashes + found.map_or(body.len(), |found| found + end.len())
}

#[test]
fn literals_and_comments_are_blanks() {
    let text = "a(\"x\\\"y\", r#\"z\"q\"#, 'c', '\\n', b\"w\"); // d\n/* e /* f */ g */ let x: &'static str;";
    let blanked = blank(text);
    assert_eq!(blanked.lines().count(), 2);
    assert_eq!(blanked.chars().count(), text.chars().count());
    for gone in ["x\\", "z", "q", "'c'", "w", "d", "e /", "f", "g"] {
        assert!(
            !blanked.replace("&'static", "").contains(gone),
            "{gone} is left in {blanked}"
        );
    }
    assert!(blanked.contains("&'static str"));
}

#[test]
fn paths_and_groups_are_found() {
    let code =
        "use crate::store::Table;\nuse crate::{\n  model::{A, B},\n  node,\n};\nlet a = my_crate::x;\n";
    let source = Source::new("src/query/x.rs".to_owned(), code.to_owned());
    let rooms: Vec<String> = source.rooms_named().into_iter().map(|(_, room)| room).collect();
    assert_eq!(rooms, ["store", "model", "node"]);
    let climbing = Source::new(
        "src/query/x.rs".to_owned(),
        "use super::super::http::Body;\n".to_owned(),
    );
    assert_eq!(climbing.rooms_named().len(), 1);
    assert!(hosts("see https://me@node.example:80/x and http://b").len() == 2);
    assert!(has_folder("cd /srv/x", "/srv") && !has_folder("a/srv", "/srv") && !has_folder("/srvx", "/srv"));
}
