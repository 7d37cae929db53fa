//! What `/openapi.json` says of each operation, and whether an answer is one that it lists.

use serde_json::Value;

use crate::wire::Answer;

/// The document.
pub(crate) struct Document {
    pub(crate) operations: Vec<Operation>,
    /// Addresses and hashes of the demo chain, out of the examples.
    pub(crate) addresses: Vec<String>,
    pub(crate) hashes: Vec<String>,
    whole: Value,
}

/// One path.
pub(crate) struct Operation {
    pub(crate) path: String,
    pub(crate) parameters: Vec<Parameter>,
    responses: Value,
}

/// One parameter.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) in_path: bool,
    pub(crate) required: bool,
    pub(crate) schema: Value,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Hex texts of one length in the document, each once.
fn hex_texts(document: &str, digits: usize) -> Vec<String> {
    let mut found: Vec<String> = document
        .split('"')
        .filter(|text| text.len() == digits + 2 && text.starts_with("0x"))
        .filter(|text| text[2..].bytes().all(|byte| byte.is_ascii_hexdigit()))
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

impl Document {
    pub(crate) fn new(whole: Value) -> Self {
        let operations = whole["paths"].as_object().unwrap().iter().map(|(path, methods)| {
            let get = &methods["get"];
            let parameters = get["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|parameter| Parameter {
                    name: text(&parameter["name"]),
                    in_path: parameter["in"] == "path",
                    required: parameter["required"] == true,
                    schema: parameter["schema"].clone(),
                });
            Operation {
                path: path.clone(),
                parameters: parameters.collect(),
                responses: get["responses"].clone(),
            }
        });
        let operations: Vec<Operation> = operations.collect();
        let shown = whole.to_string();
        Self {
            operations,
            addresses: hex_texts(&shown, 40),
            hashes: hex_texts(&shown, 64),
            whole,
        }
    }

    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.whole.pointer(&reference[1..]).expect("what is referred to"),
            None => value,
        }
    }

    /// What is wrong with an answer to this operation; `None` where it is one that the document lists.
    pub(crate) fn fault(&self, operation: &Operation, answer: &Answer, head_only: bool) -> Option<String> {
        let response = self.resolve(&operation.responses[answer.status.to_string()]);
        if response.is_null() {
            return Some(format!("the status {} is not listed", answer.status));
        }
        let Some(kinds) = response["content"].as_object() else {
            return (!answer.body.is_empty()).then(|| "a body where none is listed".to_owned());
        };
        let kind = answer.header("content-type").unwrap_or_default();
        let bare = kind.split(';').next().unwrap_or_default();
        let listed = kinds
            .iter()
            .find(|(listed, _)| listed.split(';').next() == Some(bare));
        let Some((_, content)) = listed else {
            return Some(format!("the content type {kind} is not listed"));
        };
        if head_only {
            return (!answer.body.is_empty()).then(|| "HEAD has a body".to_owned());
        }
        if operation.path == "/openapi.json" {
            // The document is OpenAPI's, and its own fields are not listed.
            return serde_json::from_slice::<Value>(&answer.decoded())
                .err()
                .map(|error| error.to_string());
        }
        let schema = self.resolve(&content["schema"]);
        match bare {
            "application/json" => match serde_json::from_slice(&answer.decoded()) {
                Ok(body) => self.misfit(schema, &body),
                Err(error) => Some(format!("no JSON: {error}")),
            },
            "application/x-ndjson" => {
                answer
                    .text()
                    .lines()
                    .find_map(|line| match serde_json::from_str(line) {
                        Ok(item) => self.misfit(schema, &item),
                        Err(error) => Some(format!("a line is no JSON: {error}")),
                    })
            }
            _ => None,
        }
    }

    /// Whether a value has the type and the fields that a schema asks for, all the way down.
    fn misfit(&self, schema: &Value, value: &Value) -> Option<String> {
        let schema = self.resolve(schema);
        if let Some(options) = schema["anyOf"].as_array() {
            let faults: Vec<String> = options
                .iter()
                .filter_map(|option| self.misfit(option, value))
                .collect();
            return (faults.len() == options.len()).then(|| faults.join("; "));
        }
        let kinds = match &schema["type"] {
            Value::String(kind) => vec![kind.as_str()],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            // What no 64 bits hold is read as a float: the page that was asked for, said again.
            Value::Number(number) if number.as_f64().is_some_and(|float| float >= u64::MAX as f64) => {
                "integer"
            }
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let fits = kinds.contains(&kind) || (kind == "integer" && kinds.contains(&"number"));
        if !fits {
            return Some(format!("{kind} where {kinds:?} is stated: {value}"));
        }
        if let (Some(words), Some(_)) = (schema["enum"].as_array(), value.as_str())
            && !words.contains(value)
        {
            return Some(format!("{value} is none of {words:?}"));
        }
        if let Some(items) = value.as_array() {
            return items.iter().find_map(|item| self.misfit(&schema["items"], item));
        }
        let fields = value.as_object()?;
        let required = schema["required"].as_array();
        let absent = required.and_then(|names| {
            let mut names = names.iter().filter_map(Value::as_str);
            names.find(|name| !fields.contains_key(*name))
        });
        if let Some(absent) = absent {
            return Some(format!("the field {absent} is missing"));
        }
        let stated = schema["properties"].as_object()?;
        fields.iter().find_map(|(name, value)| match stated.get(name) {
            Some(schema) => self.misfit(schema, value),
            None => Some(format!("the field {name} is not stated")),
        })
    }
}
