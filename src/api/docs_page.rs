//! `/docs`: the endpoint list as one page that works without internet.

use std::fmt::{self, Write};

use super::endpoint::{Endpoint, Place};
use super::list::endpoints;
use super::markdown::render_kind;
use super::shape::{Field, Form};

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem;color:#1b1f24;background:#fff}\
nav a{margin-right:.7rem}h2{margin-top:2.5rem;border-bottom:1px solid #d0d7de}h3{margin:2rem 0 .3rem}\
code,pre{font:13px/1.45 ui-monospace,monospace;background:#f3f5f7;border-radius:4px}code{padding:.1rem .25rem}\
pre{padding:.6rem;overflow:auto;max-height:24rem}table{border-collapse:collapse;width:100%;margin:.5rem 0}\
th,td{text-align:left;padding:.25rem .5rem;border-bottom:1px solid #e4e8ec;vertical-align:top}\
summary{cursor:pointer}.path{font-weight:600}\
@media(prefers-color-scheme:dark){body{background:#15181c;color:#d7dce2}code,pre{background:#22272e}\
th,td,h2{border-color:#30363d}a{color:#79b8ff}}";

/// Asks for an example when its link is clicked and shows the answer below it.
const SCRIPT: &str = "\
document.querySelectorAll('a.try').forEach(a=>a.addEventListener('click',async e=>{e.preventDefault();\
const out=a.parentElement.querySelector('pre');out.hidden=false;out.textContent='...';\
try{const r=await fetch(a.getAttribute('href'));const t=await r.text();\
let s=t;try{s=JSON.stringify(JSON.parse(t),null,2)}catch(_){}\
out.textContent=r.status+' '+r.statusText+'\\n\\n'+s}catch(x){out.textContent=String(x)}}));";

/// The page.
#[must_use]
pub fn render_docs_page() -> String {
    let mut page = String::with_capacity(64 * 1024);
    // Writing into a string has no way to fail.
    let _ = write_page(&mut page);
    page
}

fn write_page(page: &mut String) -> fmt::Result {
    write!(
        page,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Quarry</title><style>{STYLE}</style></head><body><h1>Quarry {}</h1>\
         <p>Read-only explorer API. Every operation is a GET and answers JSON; an error is \
         <code>{{\"error\": \"...\"}}</code>. The same list for programs: <a href=\"/openapi.json\">/openapi.json</a>. \
         How the chains are: <a href=\"/status\">/status</a>.</p><nav>",
        env!("CARGO_PKG_VERSION")
    )?;
    let mut groups: Vec<_> = endpoints().iter().map(|endpoint| endpoint.group).collect();
    groups.dedup();
    for group in &groups {
        write!(page, "<a href=\"#{0}\">{0}</a> ", group.title())?;
    }
    page.push_str("</nav>");
    let mut group = None;
    for endpoint in endpoints() {
        if group != Some(endpoint.group) {
            group = Some(endpoint.group);
            write!(page, "<h2 id=\"{0}\">{0}</h2>", endpoint.group.title())?;
        }
        write_endpoint(page, endpoint)?;
    }
    write!(page, "<script>{SCRIPT}</script></body></html>")
}

fn write_endpoint(page: &mut String, endpoint: &Endpoint) -> fmt::Result {
    let action = endpoint
        .action
        .map_or_else(String::new, |action| format!("?action={action}"));
    write!(
        page,
        "<section><h3 id=\"{0}\">{1}</h3><p><code class=\"path\">GET {2}{action}</code></p><p>{3}</p>",
        endpoint.ids.first().copied().unwrap_or_default(),
        endpoint.ids.join(", "),
        Escaped(endpoint.path),
        Escaped(endpoint.doc)
    )?;
    if endpoint.main_only {
        page.push_str("<p>Mainnet only.</p>");
    }
    if let Some(days) = endpoint.days_max {
        write!(page, "<p>At most {days} days a request.</p>")?;
    }
    if !endpoint.parameters.is_empty() {
        page.push_str(
            "<table><tr><th>Parameter</th><th>In</th><th>Form</th><th>Default</th><th>Meaning</th></tr>",
        );
        for parameter in endpoint.parameters {
            let place = match parameter.place {
                Place::Path => "path",
                Place::Query => "query",
            };
            let default = if parameter.required {
                "required"
            } else {
                parameter.default.unwrap_or_default()
            };
            write!(
                page,
                "<tr><td><code>{}</code></td><td>{place}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                parameter.name,
                Escaped(&render_kind(parameter.kind).replace('`', "")),
                Escaped(default),
                Escaped(parameter.doc)
            )?;
        }
        page.push_str("</table>");
    }
    if !endpoint.bodies.is_empty() {
        page.push_str("<details><summary>Answer</summary>");
        for fields in endpoint.bodies {
            page.push_str("<table><tr><th>Field</th><th>Form</th><th>Meaning</th></tr>");
            write_fields(page, fields, 0)?;
            page.push_str("</table>");
        }
        page.push_str("</details>");
    }
    if !endpoint.example.is_empty() {
        write!(
            page,
            "<div><a class=\"try\" href=\"{0}\"><code>{0}</code></a><pre hidden></pre></div>",
            Escaped(endpoint.example)
        )?;
    }
    page.push_str("</section>");
    Ok(())
}

fn write_fields(page: &mut String, fields: &[Field], depth: usize) -> fmt::Result {
    for field in fields {
        write!(
            page,
            "<tr><td><code>{}{}</code></td><td>{}{}</td><td>{}</td></tr>",
            "&nbsp;&nbsp;".repeat(depth),
            field.name,
            form_name(field.form),
            if field.nullable { " or null" } else { "" },
            Escaped(field.doc)
        )?;
        if let Form::Object(inner) | Form::List(inner) | Form::Chains(inner) = field.form {
            write_fields(page, inner, depth + 1)?;
        }
    }
    Ok(())
}

/// A form in a word or two.
pub(super) fn form_name(form: Form) -> String {
    match form {
        Form::Text => "text".to_owned(),
        Form::Decimal => "decimal text".to_owned(),
        Form::Address => "address".to_owned(),
        Form::Hash => "hash".to_owned(),
        Form::Hex => "hex".to_owned(),
        Form::Quantity => "quantity".to_owned(),
        Form::Date => "date".to_owned(),
        Form::Integer => "integer".to_owned(),
        Form::Number => "number".to_owned(),
        Form::Boolean => "true or false".to_owned(),
        Form::Words(words) => words.join(" or "),
        Form::Uuid => "uuid".to_owned(),
        Form::Object(_) => "object".to_owned(),
        Form::List(_) => "list".to_owned(),
        Form::Chains(_) => "object by chain".to_owned(),
        Form::Texts => "object of texts".to_owned(),
        Form::JsonRpc => "as the method answers".to_owned(),
    }
}

/// Text between tags or in a quoted attribute.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_everything_and_loads_nothing() {
        let page = render_docs_page();
        for endpoint in endpoints() {
            assert!(
                page.contains(&Escaped(endpoint.path).to_string()),
                "{}",
                endpoint.path
            );
        }
        assert!(!page.contains("http://") && !page.contains("https://"));
    }
}
