//! The endpoint list against what the demo chain answers: examples are fresh, bodies have the shape that the
//! list states, and `/openapi.json` is valid by a validator that is not ours.
//!
//! `QUARRY_BLESS=1 cargo test --release --test openapi` writes the examples anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use quarry::api::{Endpoint, Field, Form, endpoints, render_openapi};
use serde_json::Value;
use serde_json::value::RawValue;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Service routes whose answers differ from run to run, or that are the list itself.
const WITHOUT_EXAMPLE: [&str; 4] = ["status", "metrics", "openapi", "docs"];

fn demo() -> binary::Server {
    binary::Server::start(["demo"])
}

#[test]
fn examples_are_what_the_demo_chain_answers_in_the_shape_that_is_stated() {
    let server = demo();
    let mut answers = BTreeMap::new();
    for endpoint in endpoints() {
        if endpoint.example.is_empty() {
            assert!(
                endpoint.ids.iter().all(|id| WITHOUT_EXAMPLE.contains(id)),
                "{:?} has no example",
                endpoint.ids
            );
            continue;
        }
        let reply = server.get(endpoint.example);
        assert_eq!(reply.status, 200, "{}: {}", endpoint.example, reply.text());
        check_shape(endpoint, &reply.json(), &reply.text());
        if let Some(items) = endpoint.items() {
            check_not_empty(endpoint, items, &reply.json());
        }
        answers.insert(endpoint.example, RawValue::from_string(reply.text()).unwrap());
    }
    let path = Path::new(ROOT).join("demo/examples.json");
    let text = serde_json::to_string_pretty(&answers).unwrap() + "\n";
    if std::env::var_os("QUARRY_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "demo/examples.json is stale: run with QUARRY_BLESS=1, twice, for it is part of the binary"
    );
    let status = server.get("/status");
    let endpoint = endpoints()
        .iter()
        .find(|endpoint| endpoint.path == "/status")
        .unwrap();
    check_shape(endpoint, &status.json(), &status.text());
}

/// Every list, and what is no list, by the endpoint list itself: so a new operation cannot be forgotten here.
#[test]
fn every_list_answers_one_item_a_line() {
    let server = demo();
    let ask = |target: &str| server.get_with(target, "accept: application/x-ndjson\r\n");
    let mut lists = 0;
    for endpoint in endpoints().iter().filter(|endpoint| !endpoint.example.is_empty()) {
        let target = endpoint.example;
        let (whole, lines) = (server.get(target), ask(target));
        assert_eq!(lines.status, 200, "{target}: {}", lines.text());
        // The member that holds the items, in the body that this example shows.
        let list = endpoint.bodies.iter().find_map(|fields| {
            let list = fields.iter().find(|field| matches!(field.form, Form::List(_)))?;
            whole.json().get(list.name)?.as_array().cloned()
        });
        let Some(items) = list else {
            assert_eq!(
                endpoint.items().is_some(),
                endpoint.ids == ["T2", "T3"],
                "{target}"
            );
            assert_ne!(
                lines.header("content-type"),
                Some("application/x-ndjson"),
                "{target}"
            );
            assert_eq!(
                lines.header("content-type"),
                whole.header("content-type"),
                "{target}"
            );
            continue;
        };
        lists += 1;
        assert_eq!(
            lines.header("content-type"),
            Some("application/x-ndjson"),
            "{target}"
        );
        let text = lines.text();
        assert!(text.is_empty() || text.ends_with('\n'), "{target}: {text}");
        let found: Vec<Value> = text
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{target}: {error}: {line}"))
            })
            .collect();
        assert_eq!(found, items, "{target}");
        // A cache must tell the two forms apart, and both say the same of the whole list.
        for reply in [&whole, &lines] {
            let vary = reply.header("vary").unwrap_or_default().to_ascii_lowercase();
            assert!(
                vary.split(',').any(|name| name.trim() == "accept"),
                "{target}: {vary}"
            );
        }
        assert_ne!(whole.header("etag"), lines.header("etag"), "{target}");
        for name in [
            "x-total-count",
            "link",
            "x-indexed-block-hash",
            "x-balance-source",
        ] {
            assert_eq!(whole.header(name), lines.header(name), "{target}: {name}");
        }
        assert!(whole.header("x-total-count").is_some(), "{target}");
        // An error stays a JSON body.
        let joint = if target.contains('?') { '&' } else { '?' };
        let refused = ask(&format!("{target}{joint}chain=nowhere"));
        assert_eq!(
            (refused.status, refused.header("content-type"), refused.json()),
            (
                400,
                Some("application/json"),
                serde_json::json!({"error": "Invalid chain"})
            ),
            "{target}"
        );
    }
    // The daily series alone are a dozen.
    assert!(lists > 25, "{lists} lists");
}

/// A long list comes frame by frame in lines too, and all of it.
#[test]
fn long_lists_of_lines_are_streamed() {
    let server = demo();
    let transfer = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
    let target = format!("/api/logs/get-logs?topic0={transfer}");
    let lines = server.get_with(&target, "accept: application/x-ndjson\r\n");
    assert_eq!(lines.header("transfer-encoding"), Some("chunked"));
    assert_eq!(lines.header("content-length"), None);
    let text = lines.text();
    let total: usize = lines.header("x-total-count").unwrap().parse().unwrap();
    assert!(text.len() > 200_000, "{} bytes are no long list", text.len());
    assert_eq!(text.lines().count(), total);
    let items = server.json(&target)["logs"].as_array().unwrap().clone();
    assert!(
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .eq(items)
    );
}

/// A body is one of those that the endpoint states: the same fields in the same order, each in its form.
fn check_shape(endpoint: &Endpoint, body: &Value, text: &str) {
    let faults: Vec<String> = endpoint
        .bodies
        .iter()
        .filter_map(|fields| {
            let fault = object_fault(fields, body)?;
            Some(fault)
        })
        .collect();
    assert!(
        faults.len() < endpoint.bodies.len(),
        "{}: {faults:?}\n{text}",
        endpoint.path
    );
    let in_order = endpoint.bodies.iter().any(|fields| {
        let places: Option<Vec<usize>> = fields
            .iter()
            .map(|field| text.find(&format!("\"{}\":", field.name)))
            .collect();
        places.is_some_and(|places| places.is_sorted())
    });
    assert!(
        in_order,
        "{}: the fields are in another order\n{text}",
        endpoint.path
    );
}

fn object_fault(fields: &[Field], value: &Value) -> Option<String> {
    let Some(object) = value.as_object() else {
        return Some(format!("{value} is no object"));
    };
    let mut stated: Vec<&str> = fields.iter().map(|field| field.name).collect();
    stated.sort_unstable();
    let mut found: Vec<&str> = object.keys().map(String::as_str).collect();
    found.sort_unstable();
    if stated != found {
        return Some(format!("stated {stated:?}, found {found:?}"));
    }
    fields.iter().find_map(|field| {
        let value = &object[field.name];
        if value.is_null() && field.nullable {
            return None;
        }
        fault(field.form, value).map(|fault| format!("{}: {fault}", field.name))
    })
}

fn fault(form: Form, value: &Value) -> Option<String> {
    let text = value.as_str();
    let hex = |len: Option<usize>| {
        text.and_then(|text| text.strip_prefix("0x"))
            .is_some_and(|digits| {
                len.is_none_or(|len| digits.len() == len)
                    && digits
                        .bytes()
                        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            })
    };
    let fits = match form {
        Form::Text => text.is_some(),
        Form::Decimal => text.is_some_and(|text| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && (text == "0" || !text.starts_with('0'))
        }),
        Form::Amount => text.is_some_and(|text| {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, "1"));
            let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            digits(whole)
                && (whole == "0" || !whole.starts_with('0'))
                && digits(fraction)
                && !fraction.ends_with('0')
        }),
        Form::Address => hex(Some(40)),
        Form::Hash => hex(Some(64)),
        Form::Hex => hex(None) && text.is_some_and(|text| text.len() % 2 == 0),
        Form::Quantity => hex(None),
        Form::Integer => value.as_u64().is_some(),
        Form::Number => value.is_number(),
        Form::Date => value
            .as_str()
            .is_some_and(|date| date.parse::<quarry::model::Day>().is_ok()),
        Form::Boolean => value.is_boolean(),
        Form::Words(words) => text.is_some_and(|text| words.contains(&text)),
        Form::Uuid => text.is_some_and(|text| text.len() == 36 && text.as_bytes()[14] == b'5'),
        Form::Object(fields) => return object_fault(fields, value),
        Form::List(fields) | Form::Array(fields) => {
            let Some(items) = value.as_array() else {
                return Some(format!("{value} is no list"));
            };
            return items.iter().find_map(|item| object_fault(fields, item));
        }
        Form::Chains(fields) => {
            let Some(chains) = value.as_object() else {
                return Some(format!("{value} is no object"));
            };
            return chains.values().find_map(|chain| object_fault(fields, chain));
        }
        Form::Texts => value
            .as_object()
            .is_some_and(|texts| texts.values().all(Value::is_string)),
        Form::JsonRpc => true,
    };
    (!fits).then(|| format!("{value} is no {form:?}"))
}

/// An example without items would show nothing, and check no item.
fn check_not_empty(endpoint: &Endpoint, items: &[Field], body: &Value) {
    assert!(!items.is_empty());
    let filled = body
        .as_object()
        .unwrap()
        .values()
        .any(|value| value.as_array().is_some_and(|items| !items.is_empty()));
    assert!(filled, "{}: the example is an empty list", endpoint.example);
}

#[test]
fn the_document_is_served_and_names_every_operation_once() {
    let server = demo();
    let document = server.json("/openapi.json");
    let printed = binary::quarry(["openapi"]).succeeded().stdout;
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), document);
    assert_eq!(document, render_openapi());
    let mut named: Vec<String> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|path| path["get"]["x-operations"].as_array().unwrap())
        .map(|id| id.as_str().unwrap().to_owned())
        .collect();
    named.sort();
    let mut listed: Vec<&str> = endpoints()
        .iter()
        .flat_map(|endpoint| endpoint.ids)
        .copied()
        .collect();
    listed.sort_unstable();
    assert_eq!(named, listed);
    let page = server.get("/docs");
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
}

#[test]
fn the_document_is_valid_by_a_public_validator() {
    let modules = Path::new(ROOT).join("tools/node_modules");
    if !modules.join("@seriousme/openapi-schema-validator").exists() {
        crate::binary::skipped::skipped("the npm packages of tools/package-lock.json are not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("openapi.json");
    std::fs::write(&path, render_openapi().to_string()).unwrap();
    let output = Command::new("node")
        .arg(Path::new(ROOT).join("tools/validate-openapi.mjs"))
        .arg(&path)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
