//! What is wrong with JSON, in JSON's words: the parser's are those of a programming language.

use crate::model::shown_text;

/// As much of a value as a message shows.
const SHOWN_CHARS_MAX: usize = 60;

/// As much of a value as a message shows.
pub(super) fn short(text: &str) -> String {
    shown_text(text.as_bytes(), SHOWN_CHARS_MAX)
}

/// What is wrong, and at which line and column.
pub(super) fn json_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let (said, place) = split_place(&text);
    format!("{}{place}", reworded(said))
}

/// What is wrong, without its place: that of something within a file that is named otherwise.
pub(super) fn json_fault_within(error: &serde_json::Error) -> String {
    reworded(split_place(&error.to_string()).0)
}

fn split_place(text: &str) -> (&str, &str) {
    text.rfind(" at line ").map_or((text, ""), |at| text.split_at(at))
}

fn reworded(said: &str) -> String {
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let found = kinds.iter().find_map(|kind| said.strip_prefix(kind));
    // A text that is quoted may hold these words too.
    let Some((found, expected)) = found.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return said.to_owned();
    };
    format!(
        "{} stands where {} belongs",
        found_word(found),
        expected_word(expected)
    )
}

fn found_word(found: &str) -> String {
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    let value = value.trim_start_matches("point ");
    match kind {
        "map" => "an object".to_owned(),
        "sequence" => "an array".to_owned(),
        "integer" | "floating" | "number" => format!("the number {}", short(value.trim_matches('`'))),
        "string" => format!("the text {}", short(value)),
        "boolean" => format!("the word {}", short(value.trim_matches('`'))),
        "null" | "unit" => "null".to_owned(),
        _ if kind.bytes().all(|byte| byte.is_ascii_digit()) => "an array of another length".to_owned(),
        _ => short(found),
    }
}

fn expected_word(expected: &str) -> String {
    let word = match expected {
        "a map" => "an object",
        "a sequence" => "an array",
        "a string" | "a borrowed string" | "string" => "a text",
        "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        other if other.starts_with("struct ") => "an object",
        other if other.starts_with("tuple ") => "an array",
        other => other,
    };
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only what is wrong is looked at")]
    struct Thing {
        #[serde(default)]
        number: u64,
        #[serde(default)]
        text: String,
        #[serde(default)]
        is: bool,
        #[serde(default)]
        list: Vec<u8>,
        #[serde(default)]
        map: BTreeMap<String, u8>,
        inner: Option<Box<Thing>>,
    }

    #[test]
    fn no_word_of_a_programming_language() {
        for (text, said) in [
            ("5", "the number 5 stands where an object belongs"),
            ("null", "null stands where an object belongs"),
            (
                r#"{"inner":true}"#,
                "the word true stands where an object belongs",
            ),
            (
                r#"{"number":"x, expected u64"}"#,
                "the text \"x, expected u64\" stands where a whole number belongs",
            ),
            (
                r#"{"number":-1}"#,
                "the number -1 stands where a whole number belongs",
            ),
            (
                r#"{"number":1.5}"#,
                "the number 1.5 stands where a whole number belongs",
            ),
            (r#"{"text":[]}"#, "an array stands where a text belongs"),
            (r#"{"is":{}}"#, "an object stands where true or false belongs"),
            (r#"{"list":"x"}"#, "the text \"x\" stands where an array belongs"),
            (
                r#"{"list":[256]}"#,
                "the number 256 stands where a whole number belongs",
            ),
            (r#"{"map":[]}"#, "an array stands where an object belongs"),
            (r#"{"number":1e999}"#, "number out of range"),
            (r#"{"a""#, "EOF while parsing an object"),
            (r#"{"number":1,"number":1}"#, "duplicate field `number`"),
        ] {
            let error = serde_json::from_str::<Thing>(text).unwrap_err();
            let (line, within) = (json_fault(&error), json_fault_within(&error));
            assert_eq!(within, said, "{error}");
            assert!(line.starts_with(&format!("{said} at line 1 column ")), "{line}");
        }
        let long = format!(r#"{{"number":"{}"}}"#, "x".repeat(1000));
        let error = serde_json::from_str::<Thing>(&long).unwrap_err();
        assert!(json_fault(&error).len() < 200);
    }
}
