//! ABIs: their text, the names in them, and what a constructor takes.

use alloy_dyn_abi::DynSolType;
use alloy_json_abi::{AbiItem, Param};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::words::json_fault;
use super::encoding;
use crate::model::{ContractNames, CustomError};

/// The longest ABI that is taken, bytes.
pub(super) const ABI_MAX: usize = 8 << 20;
/// Names of one kind that are kept.
const NAMES_MAX: usize = 4096;
/// The longest text of a name with its inputs.
const TEXT_MAX: usize = 1024;
/// Tuples and arrays inside of one another.
const DEPTH_MAX: usize = 16;

/// An ABI as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Abi {
    /// A JSON array without blanks.
    pub(super) text: String,
    /// Its functions and errors.
    pub(super) names: ContractNames,
    /// The types of the constructor's inputs; `None` where they cannot be told.
    pub(super) constructor: Option<Vec<String>>,
}

impl Abi {
    /// Reads a JSON array of objects. Entries that are no ABI's stay in the text and have no names.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > ABI_MAX {
            return Err(format!("the ABI has {} bytes, more than {ABI_MAX}", text.len()));
        }
        let entries: Vec<&RawValue> = serde_json::from_str(text)
            .map_err(|error| format!("the ABI is no JSON array: {}", json_fault(&error)))?;
        let mut abi = Self {
            text: compact(text),
            constructor: Some(Vec::new()),
            ..Self::default()
        };
        for entry in entries {
            if !entry.get().starts_with('{') {
                return Err("an entry of the ABI is no object".to_owned());
            }
            let Some(item) = item(entry.get()) else {
                if entry.get().contains("\"constructor\"") {
                    abi.constructor = None;
                }
                continue;
            };
            abi.add(&item);
        }
        abi.names.sort();
        Ok(abi)
    }

    fn add(&mut self, item: &AbiItem<'_>) {
        match item {
            AbiItem::Function(function) if self.names.functions.len() < NAMES_MAX => {
                if let Some(inputs) = inputs(&function.inputs) {
                    let text = signature(&function.name, &inputs);
                    if text.len() <= TEXT_MAX {
                        self.names.functions.push((function.selector().0, text));
                    }
                }
            }
            AbiItem::Error(error) if self.names.errors.len() < NAMES_MAX => {
                if let Some(inputs) = inputs(&error.inputs)
                    && signature(&error.name, &inputs).len() <= TEXT_MAX
                {
                    self.names.errors.push(CustomError {
                        selector: error.selector().0,
                        name: error.name.clone(),
                        inputs,
                    });
                }
            }
            AbiItem::Constructor(constructor) => {
                self.constructor = inputs(&constructor.inputs)
                    .map(|inputs| inputs.into_iter().map(|(kind, _)| kind).collect());
            }
            _ => {}
        }
    }

    /// Whether these bytes are what the constructor takes, from the first one to the last.
    pub(super) fn takes(&self, arguments: &[u8]) -> bool {
        let Some(types) = &self.constructor else {
            return false;
        };
        let kinds: Result<Vec<_>, _> = types.iter().map(|kind| DynSolType::parse(kind)).collect();
        kinds.is_ok_and(|kinds| encoding::is_of(&kinds, arguments))
    }
}

/// An entry. One without a type is a function, as the standard says; some tools leave out what it returns, too.
fn item(entry: &str) -> Option<AbiItem<'static>> {
    if let Ok(item) = serde_json::from_str(entry) {
        return Some(item);
    }
    let mut fields: Map<String, Value> = serde_json::from_str(entry).ok()?;
    let kind = fields.entry("type").or_insert_with(|| json!("function"));
    if *kind != "function" {
        return None;
    }
    fields.entry("outputs").or_insert_with(|| json!([]));
    serde_json::from_value(Value::Object(fields)).ok()
}

/// Types and names of inputs; `None` where one has a type that is nested beyond reason.
fn inputs(params: &[Param]) -> Option<Vec<(String, String)>> {
    let one = |param: &Param| {
        let kind = param.selector_type().into_owned();
        is_plain(&kind).then(|| (kind, param.name.clone()))
    };
    params.iter().map(one).collect()
}

fn is_plain(kind: &str) -> bool {
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in kind.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    let arrays = kind.bytes().filter(|&byte| byte == b'[').count();
    kind.len() <= TEXT_MAX && deepest + arrays <= DEPTH_MAX
}

/// `name(type name, type name)`.
fn signature(name: &str, inputs: &[(String, String)]) -> String {
    let inputs = inputs.iter().map(|(kind, name)| match name.as_str() {
        "" => kind.clone(),
        name => format!("{kind} {name}"),
    });
    format!("{name}({})", inputs.collect::<Vec<_>>().join(", "))
}

/// Valid JSON without the blanks between its tokens.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut inside, mut escaped) = (false, false);
    for letter in json.chars() {
        if inside {
            if escaped {
                escaped = false;
            } else if letter == '\\' {
                escaped = true;
            } else if letter == '"' {
                inside = false;
            }
        } else if letter.is_ascii_whitespace() {
            continue;
        } else if letter == '"' {
            inside = true;
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_those_of_the_abi() {
        let abi = Abi::parse(
            r#"[ {"type":"function","name":"transfer","stateMutability":"nonpayable",
                 "inputs":[{"name":"to","type":"address"},{"name":"","type":"uint256"}],"outputs":[]},
                {"type":"function","name":"old","constant":true,"payable":false,"inputs":[],"outputs":[]},
                {"type":"function","name":"pay","stateMutability":"payable","outputs":[],
                 "inputs":[{"name":"orders","type":"tuple[]","components":[{"name":"a","type":"uint8"},{"name":"b","type":"bytes"}]}]},
                {"type":"error","name":"Bad","inputs":[{"name":"why","type":"string"}]},
                {"type":"constructor","stateMutability":"nonpayable","inputs":[{"name":"x","type":"uint256"},{"name":"s","type":"string"}]},
                {"type":"never heard of", "name": "a \" b"} ]"#,
        )
        .unwrap();
        let transfer = "transfer(address to, uint256)";
        assert_eq!(abi.names.function([0xa9, 0x05, 0x9c, 0xbb]), Some(transfer));
        assert!(
            abi.names
                .functions
                .iter()
                .any(|(_, text)| text == "pay((uint8,bytes)[] orders)")
        );
        assert!(abi.names.functions.iter().any(|(_, text)| text == "old()"));
        assert_eq!(
            abi.names.errors[0].inputs,
            [("string".to_owned(), "why".to_owned())]
        );
        assert!(abi.text.starts_with(r#"[{"type":"function","name":"transfer","#));
        assert!(
            abi.text
                .ends_with(r#"{"type":"never heard of","name":"a \" b"}]"#)
        );
        let mut arguments = [[7; 32], [0; 32], [0; 32], [b'x'; 32]];
        (arguments[1][31], arguments[2][31]) = (64, 32);
        let arguments = arguments.concat();
        assert!(abi.takes(&arguments));
        for other in [&arguments[..96], &[0; 96], &[0; 128], &[0; 64], &[0; 97]] {
            assert!(!abi.takes(other), "{other:?}");
        }
        let none = Abi::parse("[]").unwrap();
        assert!(none.takes(&[]) && !none.takes(&[0; 32]));
        for bad in ["{}", "[1]", "[", "null", "[{]"] {
            assert!(Abi::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_function_may_leave_out_its_type_and_what_it_returns() {
        let of = |text: &str| Abi::parse(text).unwrap();
        let full =
            of(r#"[{"type":"function","name":"f","inputs":[],"outputs":[],"stateMutability":"view"}]"#);
        assert_eq!(full.names.functions.len(), 1);
        for entry in [
            r#"{"name":"f","inputs":[]}"#,
            r#"{"name":"f","inputs":[],"outputs":[]}"#,
            r#"{"type":"function","name":"f","inputs":[]}"#,
        ] {
            let text = format!("[{entry}]");
            let abi = of(&text);
            assert_eq!(abi.names, full.names, "{entry}");
            assert_eq!(abi.text, text);
        }
        assert_eq!(
            of(r#"[{"type":"event","name":"f","inputs":[]}]"#).names,
            ContractNames::default()
        );
    }

    #[test]
    fn hostile_abis_are_bounded() {
        let nested = |depth: usize| {
            let open = r#"{"name":"a","type":"tuple","components":["#.repeat(depth);
            let leaf = r#"{"name":"b","type":"uint8"}"#;
            format!(
                r#"[{{"type":"function","name":"f","stateMutability":"view","outputs":[],"inputs":[{open}{leaf}{}]}}]"#,
                "]}".repeat(depth)
            )
        };
        assert_eq!(Abi::parse(&nested(8)).unwrap().names.functions.len(), 1);
        assert_eq!(Abi::parse(&nested(40)).unwrap().names.functions.len(), 0);
        assert!(Abi::parse(&nested(100_000)).is_ok_and(|abi| abi.names.functions.is_empty()));
        let arrays = format!(
            r#"[{{"type":"constructor","stateMutability":"payable","inputs":[{{"name":"a","type":"uint8{}"}}]}}]"#,
            "[4294967295]".repeat(8)
        );
        assert!(!Abi::parse(&arrays).unwrap().takes(&[0; 1024]));
        let many = r#"{"type":"error","name":"E","inputs":[]},"#.repeat(100_000);
        let many = format!("[{}]", many.trim_end_matches(','));
        assert_eq!(Abi::parse(&many).unwrap().names.errors.len(), 1);
        assert!(
            Abi::parse(&" ".repeat(ABI_MAX + 1))
                .unwrap_err()
                .contains("more than")
        );
    }

    proptest! {
        #[test]
        fn compact_text_is_the_same_value(text in "[ \\t\\n\"a\\\\\\[\\]{}:,0-9]{0,60}") {
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
                let compact = compact(&text);
                prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&compact).unwrap(), value);
            }
        }
    }
}
