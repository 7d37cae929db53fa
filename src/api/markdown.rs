//! `docs/API.md`, rendered from the endpoint list.

use std::fmt::Write;

use super::docs_page::form_name;
use super::endpoint::{Endpoint, Kind, Parameter, Place};
use super::examples::example;
use super::list::endpoints;
use super::shape::{Field, Form};

/// Characters of an example that are shown; `/openapi.json` has it whole.
const EXAMPLE_MAX: usize = 600;

const HEAD: &str = "\
# API

Rendered from `src/api/list.rs`; do not edit. `QUARRY_BLESS=1 cargo test --release --test http` renders it anew.

Every operation is a GET (HEAD and OPTIONS work everywhere) and answers JSON. Query keys that an operation
does not know are ignored; an empty value is an absent one; a repeated key is refused. An error is
`{\"error\": \"<text>\"}`; 503 comes with `Retry-After`. Every answer names its request (`X-Request-Id`), and an answer
of a chain names the snapshot it was computed from (`X-Indexed-Block-Number`, `X-Indexed-Block-Hash`,
`X-Finalized-Block-Number`). Lists say their length where it is known (`X-Total-Count`) and where the next page
is (`Link: <...>; rel=\"next\"`); with `Accept: application/x-ndjson` they answer one item a line and nothing around them.

Every 200 has an `ETag`; `If-None-Match` answers 304 while it holds. What can never be another answer is `immutable`: it speaks
of final blocks only, by number or hash, and counts nothing from the head. Bodies above 1 KiB come in zstd, br or
gzip where `Accept-Encoding` asks for it.

JSON-RPC clients ask by `POST /rpc`; its methods are listed in [COMPATIBILITY.md](COMPATIBILITY.md#json-rpc).
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
            render_parameter(text, parameter)?;
        }
    }
    for fields in endpoint.bodies {
        writeln!(text, "\n| Field | Form | Meaning |\n|---|---|---|")?;
        render_fields(text, fields, "")?;
    }
    if let Some(body) = example(endpoint.example) {
        let body = body.to_string();
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

fn render_parameter(text: &mut String, parameter: &Parameter) -> std::fmt::Result {
    let place = match parameter.place {
        Place::Path => "path",
        Place::Query => "query",
    };
    let default = match parameter.default {
        _ if parameter.required => "required".to_owned(),
        Some(default) => format!("`{default}`"),
        None => String::new(),
    };
    let form = render_kind(parameter.kind);
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
