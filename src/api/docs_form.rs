//! The forms of `/docs`: a field for each parameter, filled in with the operation's example.

use std::fmt::{self, Write};

use crate::http::{Escaped, percent_decode};

use super::docs_page::prose;
use super::endpoint::{Endpoint, Kind, Parameter, Place};
use super::markdown::render_kind;

/// The form that asks for it, filled in with its example.
pub(super) fn write_form(page: &mut String, endpoint: &Endpoint) -> fmt::Result {
    write!(
        page,
        "<form class=\"try\" data-path=\"{}\" novalidate autocomplete=\"off\">",
        Escaped(endpoint.path)
    )?;
    for parameter in endpoint.parameters {
        write_parameter(page, endpoint, parameter)?;
    }
    if endpoint.items().is_some() {
        let id = format!("{}-accept", endpoint.ids.first().copied().unwrap_or_default());
        write!(
            page,
            "<div class=\"row\"><label for=\"{id}\"><code>Accept</code><span class=\"place\">header</span></label>\
             <select id=\"{id}\" data-name=\"Accept\" data-place=\"accept\"><option value=\"\">application/json (default)</option>\
             <option>application/x-ndjson</option></select>\
             <p class=\"doc\">JSON, or one item a line.</p></div>"
        )?;
    }
    page.push_str("</form>");
    Ok(())
}

fn write_parameter(page: &mut String, endpoint: &Endpoint, parameter: &Parameter) -> fmt::Result {
    let id = format!(
        "{}-{}",
        endpoint.ids.first().copied().unwrap_or_default(),
        parameter.name
    );
    let place = match parameter.place {
        Place::Path => "path",
        Place::Query => "query",
    };
    let required = if parameter.required {
        " <span class=\"req\" title=\"required\">*</span>"
    } else {
        ""
    };
    write!(
        page,
        "<div class=\"row\"><label for=\"{id}\"><code>{}</code>{required}<span class=\"place\">{place}</span></label>",
        parameter.name
    )?;
    let value = example_value(endpoint, parameter);
    // Not `name`: the browser would make that a property of the form, and hide what the form has by this name.
    let common = format!(
        "id=\"{id}\" data-name=\"{}\" data-place=\"{place}\"{}",
        parameter.name,
        if parameter.required { " required" } else { "" }
    );
    match parameter.kind {
        _ if parameter.name == "action" && endpoint.action.is_some() => {
            let action = endpoint.action.unwrap_or_default();
            write!(page, "<input {common} value=\"{}\" readonly>", Escaped(action))?;
        }
        Kind::OneOf(words) => {
            let words = words
                .iter()
                .filter(|word| !(endpoint.main_only && parameter.name == "chain" && **word != "mainnet"));
            write!(page, "<select {common}>")?;
            if !parameter.required {
                let default = parameter.default.map(|word| format!("{word} (default)"));
                write!(
                    page,
                    "<option value=\"\">{}</option>",
                    default.unwrap_or_default()
                )?;
            }
            for word in words.filter(|word| parameter.default != Some(**word)) {
                let chosen = if value.as_deref() == Some(*word) {
                    " selected"
                } else {
                    ""
                };
                write!(page, "<option{chosen}>{word}</option>")?;
            }
            page.push_str("</select>");
        }
        kind => {
            let (attributes, words) = input_of(kind);
            let shown = parameter.default.unwrap_or_default();
            write!(
                page,
                "<input {common} {attributes} placeholder=\"{}\" value=\"{}\" spellcheck=\"false\" autocapitalize=\"off\"",
                Escaped(shown),
                Escaped(value.as_deref().unwrap_or_default())
            )?;
            if words.is_empty() {
                page.push('>');
            } else {
                write!(page, " list=\"{id}-words\"><datalist id=\"{id}-words\">")?;
                for word in words {
                    write!(page, "<option>{word}</option>")?;
                }
                page.push_str("</datalist>");
            }
        }
    }
    // A list of choices says both already.
    let is_choice = matches!(parameter.kind, Kind::OneOf(_));
    let form = if is_choice {
        String::new()
    } else {
        render_kind(parameter.kind).replace('`', "")
    };
    let default = match parameter.default {
        Some(default) if !parameter.required && !is_choice => format!("; default {default}"),
        _ => String::new(),
    };
    write!(
        page,
        "<p class=\"doc\">{} <span class=\"form\">{}{}</span></p></div>",
        prose(parameter.doc),
        Escaped(&form),
        Escaped(&default)
    )
}

/// Attributes of the input for a kind, and words that it offers. Patterns mark what would be refused; it can be sent
/// all the same, to see what the service says.
fn input_of(kind: Kind) -> (&'static str, &'static [&'static str]) {
    match kind {
        Kind::Address | Kind::Contract => ("type=\"text\" pattern=\"0[xX][0-9a-fA-F]{40}\"", &[]),
        Kind::Addresses(_) | Kind::Contracts(_) => (
            "type=\"text\" pattern=\" *0[xX][0-9a-fA-F]{40} *(, *0[xX][0-9a-fA-F]{40} *)*\"",
            &[],
        ),
        Kind::Hash => ("type=\"text\" pattern=\"0[xX][0-9a-fA-F]{64}\"", &[]),
        Kind::Topics => (
            "type=\"text\" pattern=\"0[xX][0-9a-fA-F]{64}(,0[xX][0-9a-fA-F]{64})*\"",
            &[],
        ),
        Kind::Integer | Kind::Between(..) => ("type=\"text\" inputmode=\"numeric\" pattern=\"[0-9]+\"", &[]),
        Kind::Date => ("type=\"date\"", &[]),
        Kind::Block => ("type=\"text\" pattern=\"latest|[0-9]+\"", &["latest"]),
        Kind::Tag => (
            "type=\"text\" pattern=\"latest|earliest|safe|finalized|0[xX][0-9a-fA-F]+\"",
            &["latest", "earliest", "safe", "finalized"],
        ),
        Kind::Quantity => ("type=\"text\" pattern=\"0[xX][0-9a-fA-F]+\"", &[]),
        Kind::OneOf(_) | Kind::Opaque => ("type=\"text\"", &[]),
    }
}

/// The value of a parameter in the endpoint's example.
pub(super) fn example_value(endpoint: &Endpoint, parameter: &Parameter) -> Option<String> {
    let (path, query) = endpoint.example.split_once('?').unwrap_or((endpoint.example, ""));
    let raw = match parameter.place {
        Place::Path => {
            let placeholder = format!("{{{}}}", parameter.name);
            let mut segments = endpoint.path.split('/').zip(path.split('/'));
            segments.find(|(template, _)| *template == placeholder)?.1
        }
        Place::Query => {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == parameter.name)?.1
        }
    };
    String::from_utf8(percent_decode(raw)?).ok()
}
