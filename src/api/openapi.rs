//! `/openapi.json` (OpenAPI 3.1), rendered from the endpoint list.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::bodies;
use super::docs_page::groups;
use super::endpoint::{Endpoint, Group, Kind, NodeUse, Parameter, Place};
use super::examples::example;
use super::list::endpoints;
use super::shape::{Field, Form};
use crate::desk::faults::{INVALID_ADDRESS, INVALID_CONTRACT_ADDRESS, REVERSED_DATES};

const DESCRIPTION: &str = "Read-only explorer API over the store of an EVM chain. Every operation is a GET; HEAD and \
    OPTIONS work everywhere. Query keys that an operation does not know are ignored, an empty value is an absent one, \
    a key that is read for what is asked is refused where it is repeated. Every answer of a chain names the snapshot it \
    was computed from.";

/// The document.
#[must_use]
pub fn render_openapi() -> Value {
    let mut paths: BTreeMap<&str, Vec<&Endpoint>> = BTreeMap::new();
    for endpoint in endpoints() {
        paths.entry(endpoint.path).or_default().push(endpoint);
    }
    let tags: Vec<Value> = groups()
        .iter()
        .map(|(group, _)| json!({"name": group.title()}))
        .collect();
    let paths: Map<String, Value> = paths
        .into_iter()
        .map(|(path, endpoints)| (path.to_owned(), json!({"get": operation(&endpoints)})))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Quarry",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": {"Error": object(bodies::ERROR)},
            "headers": headers(),
            "responses": refusals(),
        },
    })
}

/// The one operation of a path: that of its endpoint, or all of those that a parameter tells apart.
fn operation(endpoints: &[&Endpoint]) -> Value {
    let ids: Vec<&str> = endpoints
        .iter()
        .flat_map(|endpoint| endpoint.ids)
        .copied()
        .collect();
    let summary: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.doc).collect();
    let mut notes = Vec::new();
    for endpoint in endpoints {
        if endpoints.len() > 1 {
            notes.push(format!("{}: {}", endpoint.ids.join(", "), endpoint.doc));
        }
        if endpoint.main_only {
            notes.push("Mainnet only.".to_owned());
        }
        if let Some(days) = endpoint.days_max {
            notes.push(format!("At most {days} days a request."));
        }
    }
    let mut operation = Map::new();
    let group = endpoints
        .first()
        .map_or(Group::Service, |endpoint| endpoint.group);
    operation.insert("operationId".to_owned(), json!(operation_id(endpoints)));
    operation.insert("tags".to_owned(), json!([group.title()]));
    if let [only] = summary.as_slice() {
        operation.insert("summary".to_owned(), json!(only));
    }
    if !notes.is_empty() {
        operation.insert("description".to_owned(), json!(notes.join("\n\n")));
    }
    operation.insert("x-operations".to_owned(), json!(ids));
    operation.insert(
        "x-main-only".to_owned(),
        json!(endpoints.iter().any(|endpoint| endpoint.main_only)),
    );
    operation.insert("parameters".to_owned(), parameters(endpoints));
    operation.insert("responses".to_owned(), responses(endpoints));
    Value::Object(operation)
}

fn operation_id(endpoints: &[&Endpoint]) -> String {
    match endpoints {
        [only] => only.ids.join("_"),
        [first, ..] => first.group.title().to_lowercase().replace(' ', "_"),
        [] => String::new(),
    }
}

/// The parameters of all of them; one is required where all require it.
fn parameters(endpoints: &[&Endpoint]) -> Value {
    let mut seen: Vec<&str> = Vec::new();
    let mut list = Vec::new();
    for parameter in endpoints.iter().flat_map(|endpoint| endpoint.parameters) {
        if seen.contains(&parameter.name) {
            continue;
        }
        seen.push(parameter.name);
        let required = endpoints.iter().all(|endpoint| {
            let mut same = endpoint.parameters.iter();
            same.any(|other| other.name == parameter.name && other.required)
        });
        let words: Vec<&str> = match parameter.name {
            "action" => endpoints.iter().filter_map(|endpoint| endpoint.action).collect(),
            "chain" if endpoints.iter().all(|endpoint| endpoint.main_only) => vec!["mainnet"],
            _ => Vec::new(),
        };
        list.push(render_parameter(parameter, required, &words));
    }
    Value::Array(list)
}

/// `words` are the values that a parameter takes, where the endpoints say it and not its kind.
fn render_parameter(parameter: &Parameter, required: bool, words: &[&str]) -> Value {
    let place = match parameter.place {
        Place::Path => "path",
        Place::Query => "query",
    };
    let mut schema = if words.is_empty() {
        kind(parameter.kind)
    } else {
        json!({"type": "string", "enum": words})
    };
    let mut description = parameter.doc.to_owned();
    match (parameter.default, schema.as_object_mut()) {
        (Some(default), Some(schema)) if valid_default(parameter.kind, default) => {
            let default = match parameter.kind {
                Kind::Between(..) => default
                    .parse::<u64>()
                    .map_or(json!(default), |number| json!(number)),
                _ => json!(default),
            };
            schema.insert("default".to_owned(), default);
        }
        (Some(default), _) => description.push_str(&format!(" Default: {default}.")),
        (None, _) => {}
    }
    let mut rendered = json!({
        "name": parameter.name,
        "in": place,
        "required": required,
        "description": description,
        "schema": schema,
    });
    // An empty value is an absent one.
    if let Some(rendered) = rendered
        .as_object_mut()
        .filter(|_| parameter.place == Place::Query && !required)
    {
        rendered.insert("allowEmptyValue".to_owned(), json!(true));
    }
    rendered
}

/// Whether a default is a value of its kind, and no description.
fn valid_default(kind: Kind, default: &str) -> bool {
    match kind {
        Kind::OneOf(words) => words.contains(&default),
        Kind::Block | Kind::Tag => default == "latest",
        _ => default.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

const ADDRESS: &str = "^0[xX][0-9a-fA-F]{40}$";

fn kind(kind: Kind) -> Value {
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    match kind {
        Kind::Address | Kind::Contract => text(ADDRESS),
        Kind::Addresses(most) | Kind::Contracts(most) => {
            let more = most.saturating_sub(1);
            text(&format!(
                "^ *0[xX][0-9a-fA-F]{{40}} *(, *0[xX][0-9a-fA-F]{{40}} *){{0,{more}}}$"
            ))
        }
        Kind::Hash => text("^0[xX][0-9a-fA-F]{64}$"),
        Kind::Topics => text("^0[xX][0-9a-fA-F]{64}(,0[xX][0-9a-fA-F]{64})*$"),
        Kind::Integer => json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}),
        Kind::Between(least, u64::MAX) => json!({"type": "integer", "minimum": least}),
        Kind::Between(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Kind::Date => json!({"type": "string", "format": "date"}),
        Kind::Block => text("^(latest|[0-9]+)$"),
        Kind::Tag => text("^(latest|earliest|safe|finalized|0[xX][0-9a-fA-F]+)$"),
        Kind::Quantity => text("^0[xX][0-9a-fA-F]+$"),
        Kind::OneOf(words) => json!({"type": "string", "enum": words}),
        Kind::Opaque => json!({"type": "string"}),
    }
}

fn responses(endpoints: &[&Endpoint]) -> Value {
    let mut responses = Map::new();
    responses.insert("200".to_owned(), success(endpoints));
    let texts = distinct(endpoints.iter().flat_map(|endpoint| bad_requests(endpoint)));
    if !texts.is_empty() {
        responses.insert(
            "400".to_owned(),
            refusal("A parameter is missing, malformed or out of bounds.", &texts),
        );
    }
    let unknown: Vec<String> = endpoints
        .iter()
        .flat_map(|endpoint| endpoint.not_found)
        .map(|text| (*text).to_owned())
        .collect();
    if !unknown.is_empty() {
        responses.insert(
            "404".to_owned(),
            refusal("What was asked for is unknown.", &unknown),
        );
    }
    let mut codes = vec!["304", "405", "414", "429", "431", "500", "503"];
    let may_fail = |endpoint: &&Endpoint| endpoint.node == NodeUse::Needed;
    if endpoints.iter().any(may_fail) {
        codes.extend(["502", "504"]);
    }
    for code in codes {
        let reference = format!("#/components/responses/{code}");
        responses.insert(code.to_owned(), json!({"$ref": reference}));
    }
    if let [
        Endpoint {
            path: "/ready",
            bodies,
            ..
        },
    ] = endpoints
    {
        // Not ready: the same body.
        let either: Vec<Value> = bodies
            .iter()
            .map(|fields| object(fields))
            .chain([json!({"$ref": "#/components/schemas/Error"})])
            .collect();
        let content = json!({"application/json": {"schema": {"anyOf": either}}});
        let response = json!({"description": "Not ready.", "content": content});
        responses.insert("503".to_owned(), response);
    }
    Value::Object(responses)
}

fn success(endpoints: &[&Endpoint]) -> Value {
    let schemas: Vec<Value> = endpoints
        .iter()
        .flat_map(|endpoint| endpoint.bodies)
        .map(|fields| object(fields))
        .collect();
    let mut distinct: Vec<Value> = Vec::new();
    for schema in schemas {
        if !distinct.contains(&schema) {
            distinct.push(schema);
        }
    }
    let schema = match distinct.len() {
        1 => distinct.swap_remove(0),
        _ => json!({"anyOf": distinct}),
    };
    let examples: Map<String, Value> = endpoints
        .iter()
        .filter_map(|endpoint| {
            let body: Value = serde_json::from_str(example(endpoint.example)?).ok()?;
            let name = endpoint.ids.first()?;
            let summary = format!("GET {}", endpoint.example);
            Some(((*name).to_owned(), json!({"summary": summary, "value": body})))
        })
        .collect();
    let mut content = Map::new();
    let mut json_content = json!({"schema": schema});
    if let Some(object) = json_content.as_object_mut().filter(|_| !examples.is_empty()) {
        object.insert("examples".to_owned(), Value::Object(examples));
    }
    let list = endpoints.iter().find_map(|endpoint| endpoint.items());
    if let Some(media) = endpoints.first().and_then(|endpoint| endpoint.media) {
        content.insert(media.to_owned(), json!({"schema": {"type": "string"}}));
    }
    if content.is_empty() || endpoints.iter().any(|endpoint| !endpoint.bodies.is_empty()) {
        content.insert("application/json".to_owned(), json_content);
    }
    if let Some(items) = list {
        content.insert(
            "application/x-ndjson".to_owned(),
            json!({"schema": object(items)}),
        );
    }
    let mut names = vec!["X-Request-Id"];
    if endpoints.iter().any(|endpoint| endpoint.group != Group::Service) {
        names.extend([
            "X-Indexed-Block-Number",
            "X-Indexed-Block-Hash",
            "X-Finalized-Block-Number",
            "ETag",
        ]);
    }
    if list.is_some() {
        names.push("X-Total-Count");
    }
    if list.is_some() && endpoints.iter().any(|endpoint| endpoint.is_paged()) {
        names.push("Link");
    }
    let headers: Map<String, Value> = names
        .iter()
        .map(|name| {
            (
                (*name).to_owned(),
                json!({"$ref": format!("#/components/headers/{name}")}),
            )
        })
        .collect();
    json!({"description": "The answer.", "headers": headers, "content": content})
}

/// The schema of an object that has exactly these fields.
fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.to_owned(), property(field)))
        .collect();
    let required: Vec<&str> = fields.iter().map(|field| field.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn property(field: &Field) -> Value {
    let mut schema = form(field.form);
    if let Some(schema) = schema.as_object_mut() {
        if field.nullable && schema.contains_key("type") {
            let bare = schema.remove("type").unwrap_or_default();
            schema.insert("type".to_owned(), json!([bare, "null"]));
        }
        schema.insert("description".to_owned(), json!(field.doc));
    }
    schema
}

fn form(form: Form) -> Value {
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    match form {
        Form::Text => json!({"type": "string"}),
        Form::Decimal => text("^[0-9]+$"),
        Form::Amount => text(r"^[0-9]+(\.[0-9]*[1-9])?$"),
        Form::Address => text("^0x[0-9a-f]{40}$"),
        Form::Hash => text("^0x[0-9a-f]{64}$"),
        Form::Hex => text("^0x([0-9a-f]{2})*$"),
        Form::Quantity => text("^0x(0|[1-9a-f][0-9a-f]*)$"),
        Form::Date => json!({"type": "string", "format": "date"}),
        Form::Integer => json!({"type": "integer"}),
        Form::Number => json!({"type": "number"}),
        Form::Boolean => json!({"type": "boolean"}),
        Form::Words(words) => json!({"type": "string", "enum": words}),
        Form::Uuid => json!({"type": "string", "format": "uuid"}),
        Form::Object(fields) => object(fields),
        Form::List(fields) | Form::Array(fields) => json!({"type": "array", "items": object(fields)}),
        Form::Chains(fields) => json!({"type": "object", "additionalProperties": object(fields)}),
        Form::Texts => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        // Whatever the method answers: an object, text or null.
        Form::JsonRpc => json!({}),
    }
}

/// Each text once, in order.
fn distinct(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// The texts of an endpoint's own refusals, each once, with their statuses.
pub(super) fn refusals_of(endpoint: &Endpoint) -> Vec<(u16, String)> {
    let unknown = endpoint.not_found.iter().map(|text| (404, (*text).to_owned()));
    let refused = distinct(bad_requests(endpoint))
        .into_iter()
        .map(|text| (400, text));
    refused.chain(unknown).collect()
}

/// The texts of 400 that follow from an endpoint's parameters (answers.md section 2).
fn bad_requests(endpoint: &Endpoint) -> Vec<String> {
    let mut texts = Vec::new();
    for parameter in endpoint.parameters {
        let name = parameter.name;
        if parameter.required && parameter.place == Place::Query {
            texts.push(format!("Missing required parameter: {name}"));
        }
        texts.push(match parameter.kind {
            _ if name == "chain" => "Invalid chain".to_owned(),
            Kind::Address | Kind::Addresses(_) => INVALID_ADDRESS.to_owned(),
            Kind::Contract | Kind::Contracts(_) => INVALID_CONTRACT_ADDRESS.to_owned(),
            Kind::Hash => "Invalid transaction hash format".to_owned(),
            Kind::Topics => "Invalid topic format".to_owned(),
            _ => format!("Invalid {name} parameter"),
        });
        if parameter.place == Place::Query {
            texts.push(format!("Duplicate parameter: {name}"));
        }
    }
    let blocks = endpoint
        .parameters
        .iter()
        .filter(|parameter| matches!(parameter.kind, Kind::Block));
    if blocks.count() > 1 {
        texts.push("Invalid block range".to_owned());
    }
    if let Some(days) = endpoint.days_max {
        texts.push(REVERSED_DATES.to_owned());
        texts.push(format!("Date range exceeds {days} days"));
    }
    texts.extend(endpoint.bad_requests.iter().map(|text| (*text).to_owned()));
    if endpoint.main_only {
        texts.push("Chain testnet is not supported for this operation".to_owned());
    }
    texts
}

fn refusal(description: &str, texts: &[String]) -> Value {
    let examples: Map<String, Value> = texts
        .iter()
        .enumerate()
        .map(|(place, text)| (format!("e{}", place + 1), json!({"value": {"error": text}})))
        .collect();
    json!({
        "description": description,
        "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Error"},
            "examples": examples,
        }},
    })
}

fn refusals() -> Value {
    let plain = |description: &str, texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        refusal(description, &texts)
    };
    let mut unavailable = plain(
        "Not now: not indexed yet, not configured, busy, or shutting down.",
        &[
            "Data for the requested range is still being indexed",
            "Chain testnet is not configured",
            "Server is busy",
        ],
    );
    let mut too_often = plain(
        "The client asks more often than `--rate-limit` lets it.",
        &["Rate limit exceeded"],
    );
    for response in [&mut unavailable, &mut too_often] {
        if let Some(response) = response.as_object_mut() {
            let header = json!({"$ref": "#/components/headers/Retry-After"});
            response.insert("headers".to_owned(), json!({"Retry-After": header}));
        }
    }
    json!({
        "304": {"description": "What the client has (`If-None-Match`) is still the answer."},
        "405": plain("Neither GET, HEAD nor OPTIONS.", &["Method not allowed"]),
        "414": plain("The request target is over 8 KiB.", &["URI too long"]),
        "429": too_often,
        "431": plain("The headers are over 16 KiB in all.", &["Request header fields too large"]),
        "500": plain("A fault of ours; the log says more.", &["Internal server error"]),
        "502": plain("The node failed.", &["Upstream node error"]),
        "503": unavailable,
        "504": plain("The node did not answer in time.", &["Upstream node error"]),
    })
}

fn headers() -> Value {
    let header = |form: Value, description: &str| json!({"description": description, "schema": form});
    let number = || json!({"type": "integer", "minimum": 0});
    json!({
        "X-Request-Id": header(json!({"type": "string"}), "The request's id: the client's own, or a new one."),
        "X-Indexed-Block-Number": header(number(), "Head of the snapshot that was read."),
        "X-Indexed-Block-Hash": header(form(Form::Hash), "Its hash."),
        "X-Finalized-Block-Number": header(number(), "Last final block of the snapshot."),
        "X-Total-Count": header(number(), "Rows of the whole list, where that is known without scanning."),
        "Link": header(json!({"type": "string"}), "`<...>; rel=\"next\"`: the next page, by a cursor."),
        "ETag": header(json!({"type": "string"}), "For `If-None-Match`."),
        "Retry-After": header(number(), "Seconds."),
    })
}
