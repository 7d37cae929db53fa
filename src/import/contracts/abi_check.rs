//! Whether an operator's ABI is one. What compilers wrote and hashes vouch for is taken as it is; a file may be anything.

use serde_json::{Map, Value};

use super::super::words::{json_fault_within, short};

/// Says what is wrong with a JSON array that should be an ABI, and with which of its entries.
pub(super) fn check(text: &str) -> Result<(), String> {
    let entries: Vec<Value> =
        serde_json::from_str(text).map_err(|error| format!("the ABI: {}", json_fault_within(&error)))?;
    for (number, item) in (1..).zip(&entries) {
        entry(item).map_err(|why| format!("entry {number} of the ABI: {why}"))?;
    }
    Ok(())
}

fn entry(item: &Value) -> Result<(), String> {
    let Value::Object(item) = item else {
        return Err("it is no object".to_owned());
    };
    let kind = match item.get("type") {
        // What the standard says of a type that is left out.
        None => "function",
        Some(Value::String(kind)) => kind,
        Some(_) => return Err("its type is not text".to_owned()),
    };
    match kind {
        "function" | "event" | "error" => name(item)?,
        "constructor" => {}
        "fallback" | "receive" => return Ok(()),
        other => return Err(format!("`{}` is no type of an entry", short(other))),
    }
    match item.get("inputs") {
        None => return Err("it has no inputs".to_owned()),
        Some(inputs) => parameters("inputs", inputs)?,
    }
    item.get("outputs")
        .map_or(Ok(()), |outputs| parameters("outputs", outputs))
}

fn name(item: &Map<String, Value>) -> Result<(), String> {
    let is_name = |text: &str| {
        let mut bytes = text.bytes();
        let begins = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$');
        bytes.next().is_some_and(begins) && bytes.all(|byte| begins(byte) || byte.is_ascii_digit())
    };
    match item.get("name") {
        None => Err("it has no name".to_owned()),
        Some(Value::String(text)) if is_name(text) => Ok(()),
        Some(Value::String(text)) => Err(format!("`{}` is no name", short(text))),
        Some(_) => Err("its name is not text".to_owned()),
    }
}

fn parameters(what: &str, list: &Value) -> Result<(), String> {
    let Value::Array(list) = list else {
        return Err(format!("its {what} are no array"));
    };
    for (number, one) in (1..).zip(list) {
        parameter(one).map_err(|why| format!("number {number} of its {what}: {why}"))?;
    }
    Ok(())
}

fn parameter(one: &Value) -> Result<(), String> {
    let Value::Object(one) = one else {
        return Err("it is no object".to_owned());
    };
    if one
        .get("name")
        .is_some_and(|name| !name.is_string() && !name.is_null())
    {
        return Err("its name is not text".to_owned());
    }
    let kind = match one.get("type") {
        None => return Err("it has no type".to_owned()),
        Some(Value::String(kind)) => kind.as_str(),
        Some(_) => return Err("its type is not text".to_owned()),
    };
    let base = without_arrays(kind);
    match (base, one.get("components")) {
        (Some("tuple"), Some(components)) => parameters("components", components),
        (Some("tuple"), None) => Err("it is a tuple without components".to_owned()),
        (Some(base), _) if is_type(base) => Ok(()),
        _ => Err(format!("`{}` is no type", short(kind))),
    }
}

/// A type without the brackets behind it.
fn without_arrays(mut kind: &str) -> Option<&str> {
    while let Some(rest) = kind.strip_suffix(']') {
        let (base, len) = rest.rsplit_once('[')?;
        if !len.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        kind = base;
    }
    Some(kind)
}

fn is_type(kind: &str) -> bool {
    let size = |digits: &str, least: u32, most: u32, step: u32| {
        let size = digits.parse::<u32>().ok();
        size.is_some_and(|size| (least..=most).contains(&size) && size.is_multiple_of(step))
            && !digits.starts_with(['0', '+'])
    };
    let integer = |digits: &str| digits.is_empty() || size(digits, 8, 256, 8);
    let fixed = |sizes: &str| {
        let sizes = sizes.split_once('x');
        sizes.is_some_and(|(bits, places)| size(bits, 8, 256, 8) && (places == "0" || size(places, 1, 80, 1)))
    };
    if matches!(
        kind,
        "address" | "address payable" | "bool" | "string" | "bytes" | "function" | "fixed" | "ufixed"
    ) {
        return true;
    }
    let behind = |prefix: &str| kind.strip_prefix(prefix);
    behind("uint").or_else(|| behind("int")).is_some_and(integer)
        || behind("bytes").is_some_and(|digits| size(digits, 1, 32, 1))
        || behind("ufixed").or_else(|| behind("fixed")).is_some_and(fixed)
        || is_of_library(kind)
}

/// Functions of libraries have types of their sources in their ABIs: `Set storage`, `Library.Kind`.
fn is_of_library(kind: &str) -> bool {
    let name = kind.strip_suffix(" storage").unwrap_or(kind);
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"_$. ()=>,[]".contains(&byte);
    let is_named = name.contains('.')
        || name.starts_with(|first: char| first.is_ascii_uppercase() || "_$".contains(first));
    !name.is_empty() && name.bytes().all(letters) && (is_named || name.len() < kind.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abis_of_compilers_pass() {
        for text in [
            "[]",
            r#"[{"name":"f","inputs":[]}]"#,
            r#"[{"type":"fallback"},{"type":"receive","stateMutability":"payable"},{"type":"constructor","inputs":[]}]"#,
            r#"[{"type":"event","name":"E","anonymous":true,"inputs":[{"indexed":true,"name":"","type":"bytes32[2][]"}]}]"#,
            r#"[{"type":"error","name":"$E_1","inputs":[{"name":"a","type":"tuple[]","components":[{"name":"b","type":"fixed168x10"}]}]}]"#,
            // Of a library, of an old compiler, of Vyper.
            r#"[{"type":"function","name":"f","inputs":[{"name":"s","type":"Sets.Set storage"},{"name":"k","type":"Kind"},
                {"name":"m","type":"mapping(address => uint256) storage"}],"outputs":[]}]"#,
            r#"[{"constant":true,"inputs":[],"name":"f","outputs":[{"name":"","type":"uint256"}],"payable":false,"type":"function"}]"#,
            r#"[{"name":"__init__","outputs":[],"inputs":[{"type":"address","name":"a"}],"type":"constructor","gas":5}]"#,
            r#"[{"type":"function","name":"f","inputs":[{"type":"uint","name":"a"},{"type":"function","name":null}]}]"#,
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_no_abi_is_named() {
        for (text, why) in [
            ("{}", "an object stands where an array belongs"),
            ("[5]", "entry 1 of the ABI: it is no object"),
            (
                r#"[{"type":"function","inputs":[]}]"#,
                "entry 1 of the ABI: it has no name",
            ),
            (
                r#"[{"type":"receive"},{"type":"event","inputs":[]}]"#,
                "entry 2 of the ABI: it has no name",
            ),
            (r#"[{"type":"error","name":"","inputs":[]}]"#, "`` is no name"),
            (r#"[{"name":"f()","inputs":[]}]"#, "`f()` is no name"),
            (r#"[{"name":5,"inputs":[]}]"#, "its name is not text"),
            (r#"[{"type":5,"name":"f","inputs":[]}]"#, "its type is not text"),
            (
                r#"[{"type":"fun","name":"f","inputs":[]}]"#,
                "`fun` is no type of an entry",
            ),
            (r#"[{"name":"f"}]"#, "it has no inputs"),
            (r#"[{"name":"f","inputs":{}}]"#, "its inputs are no array"),
            (
                r#"[{"name":"f","inputs":[],"outputs":1}]"#,
                "its outputs are no array",
            ),
            (
                r#"[{"name":"f","inputs":["uint256"]}]"#,
                "number 1 of its inputs: it is no object",
            ),
            (r#"[{"name":"f","inputs":[{"name":"a"}]}]"#, "it has no type"),
            (
                r#"[{"name":"f","inputs":[{"name":1,"type":"bool"}]}]"#,
                "its name is not text",
            ),
            (
                r#"[{"name":"f","inputs":[{"type":256}]}]"#,
                "its type is not text",
            ),
            (
                r#"[{"name":"f","inputs":[{"type":"tuple"}]}]"#,
                "a tuple without components",
            ),
            (
                r#"[{"name":"f","inputs":[{"type":"tuple","components":[{"type":"x"}]}]}]"#,
                "`x` is no type",
            ),
        ] {
            let said = check(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        for kind in [
            "uint7", "uint264", "int0", "uint08", "bytes0", "bytes33", "adress", "bool[", "bool[x]", "",
            " storage", "fixed8", "uint256 ",
        ] {
            let text = format!(r#"[{{"name":"f","inputs":[{{"type":"{kind}"}}]}}]"#);
            assert!(check(&text).unwrap_err().contains("is no type"), "{kind}");
        }
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert!(check(&deep).is_err());
    }
}
