//! `docs/API.md`, rendered from the endpoint list.

use std::fmt::Write;

use super::docs_page::form_name;
use super::endpoint::{Endpoint, Kind, NodeUse, Parameter, Place};
use super::examples::example;
use super::list::endpoints;
use super::openapi::refusals_of;
use super::shape::{Field, Form};

/// Characters of an example that are shown; `/openapi.json` has it whole.
const EXAMPLE_MAX: usize = 600;

const HEAD: &str = "\
# API

Rendered from `src/api/list/`; do not edit. `QUARRY_BLESS=1 cargo test --release --test http` renders it anew.

Every operation is a GET (HEAD and OPTIONS work everywhere) and answers JSON, `/docs` and `/metrics` aside. Query keys that an
operation does not know are ignored; an empty value is an absent one; a key that is read for what is asked is refused where it is
repeated (A6 does not read `startblock` beside `hash`). Every answer names its request (`X-Request-Id`), and an answer
of a chain names the snapshot it was computed from (`X-Indexed-Block-Number`, `X-Indexed-Block-Hash`,
`X-Finalized-Block-Number`). Lists say their length where it is known (`X-Total-Count`) and where the next page
is (`Link: <...>; rel=\"next\"`); with `Accept: application/x-ndjson` they answer one item a line and nothing around them.

Every 200 has an `ETag`; `If-None-Match` answers 304 while it holds. What can never be another answer is `immutable`: it speaks
of final blocks only, by number or hash, and counts nothing from the head. Bodies above 1 KiB come in zstd, br or
gzip where `Accept-Encoding` asks for it.

JSON-RPC clients ask by `POST /rpc`; its methods are listed in [COMPATIBILITY.md](COMPATIBILITY.md#json-rpc).

## Blocks, dates and pages

`latest` is the indexed head. A block above it that the node has is answered 503 until it is indexed; above the node's head the end of a range means `latest`, and a single
block is unknown (404 `Block not found`, or 400 where it is a parameter `block`). A range whose start lies above an end given as a number is refused, a start above
`latest` is an empty list, so that polling works. Dates are UTC days, both ends included.

`page` counts from 1, `offset` is the rows of a page, 1 to 10,000 (10,000 unless said); page times offset is not bounded. The `cursor` of a `Link` resumes after an exact
row, also where blocks came in between. Where a reorg took that row's block away it is refused (400 `Invalid cursor parameter`): begin again at the last block that you know to be
final.

## Errors

An error is `{\"error\": \"<text>\"}`. Below each operation stand the texts of its own.

| Status | When | Text |
|---|---|---|
| 304 | what the client has (`If-None-Match`) is still the answer | no body |
| 400 | a parameter is missing, malformed or out of bounds, or given twice | `Missing required parameter: <name>`, `Invalid <name> parameter`, `Duplicate parameter: <name>`, `Invalid chain`, and the operation's |
| 404 | what was asked for is unknown, or no operation has this path | the operation's, `Route not found` |
| 405 | neither GET, HEAD nor OPTIONS (`Allow` tells) | `Method not allowed` |
| 414, 431 | the target is over 8 KiB, the headers over 16 KiB | `URI too long`, `Request header fields too large` |
| 429 | the client asks more often than `--rate-limit` lets it (`Retry-After`) | `Rate limit exceeded` |
| 500 | a fault of ours, the log says more | `Internal server error` |
| 502, 504 | the node failed or was late, for the few answers that need it | the operation's, `Upstream node error` |
| 503 | not now (`Retry-After`): not indexed yet, chain not configured, busy. What a store never gets (blocks before its `--start-block`, the supply of a chain without its genesis, sums of an ERC-1155 token whose events contradict each other or pass what fits) says so, too, for good, with `Retry-After: 3600`, and what needs traces that the node does not tell with `Retry-After: 60`: `withheld` of `/status` tells why | `Data for the requested range is still being indexed`, `Chain testnet is not configured`, `Server is busy` |
";

/// The documentation of every endpoint, as Markdown.
#[must_use]
pub fn render_markdown() -> String {
    let mut text = HEAD.to_owned();
    let mut group = None;
    for endpoint in endpoints() {
        if group != Some(endpoint.group) {
            group = Some(endpoint.group);
            text.push_str("\n## ");
            text.push_str(endpoint.group.title());
            text.push('\n');
        }
        // Writing into a string has no way to fail.
        let _ = render_endpoint(&mut text, endpoint);
    }
    text
}

fn render_endpoint(text: &mut String, endpoint: &Endpoint) -> std::fmt::Result {
    writeln!(text, "\n### {}\n", endpoint.ids.join(", "))?;
    match endpoint.action {
        Some(action) => writeln!(text, "`GET {}?action={action}`\n", endpoint.path)?,
        None => writeln!(text, "`GET {}`\n", endpoint.path)?,
    }
    writeln!(text, "{}", endpoint.doc)?;
    if endpoint.main_only {
        writeln!(text, "\nMainnet only.")?;
    }
    if let Some(days) = endpoint.days_max {
        writeln!(text, "\nAt most {days} days a request.")?;
    }
    if !endpoint.parameters.is_empty() {
        writeln!(
            text,
            "\n| Parameter | In | Form | Default | Meaning |\n|---|---|---|---|---|"
        )?;
        for parameter in endpoint.parameters {
            render_parameter(text, parameter, endpoint.main_only)?;
        }
    }
    render_refusals(text, endpoint)?;
    for fields in endpoint.bodies {
        writeln!(text, "\n| Field | Form | Meaning |\n|---|---|---|")?;
        render_fields(text, fields, "")?;
    }
    if let Some(body) = example(endpoint.example) {
        let shown: String = body.chars().take(EXAMPLE_MAX).collect();
        let rest = if shown.len() < body.len() { "..." } else { "" };
        writeln!(text, "\n```text\nGET {}\n{shown}{rest}\n```", endpoint.example)?;
    }
    Ok(())
}

fn render_fields(text: &mut String, fields: &[Field], within: &str) -> std::fmt::Result {
    for field in fields {
        let null = if field.nullable { " or null" } else { "" };
        let form = form_name(field.form);
        writeln!(
            text,
            "| `{within}{}` | {form}{null} | {} |",
            field.name, field.doc
        )?;
        if let Form::Object(inner) | Form::List(inner) | Form::Array(inner) | Form::Chains(inner) = field.form
        {
            render_fields(text, inner, &format!("{within}{}.", field.name))?;
        }
    }
    Ok(())
}

/// The texts of errors that are the operation's own, of those of the table at the top none.
fn render_refusals(text: &mut String, endpoint: &Endpoint) -> std::fmt::Result {
    let is_own = |text: &str| {
        let of_parameter = |parameter: &Parameter| text == format!("Invalid {} parameter", parameter.name);
        ![
            "Missing required parameter: ",
            "Duplicate parameter: ",
            "Invalid chain",
        ]
        .iter()
        .any(|common| text.starts_with(common))
            && !endpoint.parameters.iter().any(of_parameter)
    };
    let refusals = refusals_of(endpoint);
    let mut told = Vec::new();
    for status in [400, 404] {
        let texts: Vec<String> = refusals
            .iter()
            .filter(|(of, text)| *of == status && is_own(text))
            .map(|(_, text)| format!("`{text}`"))
            .collect();
        if !texts.is_empty() {
            told.push(format!("{status}: {}", texts.join(", ")));
        }
    }
    if endpoint.node == NodeUse::Needed {
        told.push("502, 504: where the node has to be asked".to_owned());
    }
    if !told.is_empty() {
        writeln!(text, "\nErrors: {}.", told.join("; "))?;
    }
    Ok(())
}

fn render_parameter(text: &mut String, parameter: &Parameter, main_only: bool) -> std::fmt::Result {
    let place = match parameter.place {
        Place::Path => "path",
        Place::Query => "query",
    };
    let default = match parameter.default {
        _ if parameter.required => "required".to_owned(),
        Some(default) => format!("`{default}`"),
        None => String::new(),
    };
    let form = match parameter.name {
        "chain" if main_only => "`mainnet`".to_owned(),
        _ => render_kind(parameter.kind),
    };
    writeln!(
        text,
        "| `{}` | {place} | {form} | {default} | {} |",
        parameter.name, parameter.doc
    )
}

pub(super) fn render_kind(kind: Kind) -> String {
    match kind {
        Kind::Address | Kind::Contract => "`0x` + 40 hex digits".to_owned(),
        Kind::Addresses(most) | Kind::Contracts(most) => {
            format!("`0x` + 40 hex digits, up to {most} separated by commas")
        }
        Kind::Hash => "`0x` + 64 hex digits".to_owned(),
        Kind::Topics => "`0x` + 64 hex digits, several separated by commas".to_owned(),
        Kind::Integer => "decimal".to_owned(),
        Kind::Between(least, u64::MAX) => format!("decimal, {least} or more"),
        Kind::Between(least, most) => format!("decimal, {least} to {most}"),
        Kind::Date => "`yyyy-MM-dd`".to_owned(),
        Kind::Block => "`latest` or decimal".to_owned(),
        Kind::Tag => "`0x` quantity, `latest`, `earliest`, `safe`, `finalized`".to_owned(),
        Kind::Quantity => "`0x` quantity".to_owned(),
        Kind::OneOf(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(" or "),
        Kind::Opaque => "text".to_owned(),
    }
}
