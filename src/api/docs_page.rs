//! `/docs`: the endpoint list as one page that works without internet, with a form for each operation.

use std::fmt::{self, Write};
use std::sync::LazyLock;

use super::docs_form::write_form;
use super::endpoint::{Endpoint, Group, NodeUse};
use super::list::endpoints;
use super::openapi::refusals_of;
use super::shape::{Field, Form};
use super::web_page::{WebPage, top};
use crate::http::Escaped;

/// The page.
pub(super) fn docs_page() -> &'static WebPage {
    static PAGE: LazyLock<WebPage> = LazyLock::new(|| {
        let mut body = String::with_capacity(512 * 1024);
        // Writing into a string has no way to fail.
        let _ = write_body(&mut body);
        WebPage::new(
            "Quarry API",
            include_str!("page/docs.css"),
            &body,
            include_str!("page/docs.js"),
        )
    });
    &PAGE
}

/// The endpoints, group by group, in the order in which the list begins with each.
pub(super) fn groups() -> Vec<(Group, Vec<&'static Endpoint>)> {
    let mut groups: Vec<(Group, Vec<&Endpoint>)> = Vec::new();
    for endpoint in endpoints() {
        match groups.iter_mut().find(|(group, _)| *group == endpoint.group) {
            Some((_, members)) => members.push(endpoint),
            None => groups.push((endpoint.group, vec![endpoint])),
        }
    }
    groups
}

fn write_body(body: &mut String) -> fmt::Result {
    body.push_str("<a class=\"skip\" href=\"#operations\">Skip to the operations</a>");
    let menu = "<button type=\"button\" id=\"menu\" aria-controls=\"side\" aria-expanded=\"false\">Operations</button>";
    body.push_str(&top("/docs", menu));
    body.push_str("<div class=\"columns\">");
    write_side(body)?;
    body.push_str(
        "<main id=\"operations\"><h1>API</h1>\
         <p>A read-only explorer API. Every operation is a GET and answers JSON; an error is \
         <code>{\"error\": \"...\"}</code>. Lists say how long they are (<code>X-Total-Count</code>), where the next page is \
         (<code>Link</code>), and come one item a line where that is asked for. Press <kbd>/</kbd> to search.</p>\
         <p>Chains: <span id=\"chains\" class=\"soft\">asking</span></p>\
         <p id=\"not-demo\" class=\"note\" hidden>The forms are filled in with examples of the demo chain, which this \
         service does not serve: they will mostly find nothing here. Put in values of your chain.</p>\
         <noscript><p class=\"note\">Trying an operation needs JavaScript; the list does not.</p></noscript>",
    );
    for (group, members) in groups() {
        let title = group.title();
        write!(body, "<section><h2 id=\"group-{}\">{title}</h2>", slug(title))?;
        for endpoint in members {
            write_endpoint(body, endpoint)?;
        }
        body.push_str("</section>");
    }
    body.push_str("</main></div>");
    body.push_str(include_str!("page/tools.html"));
    Ok(())
}

fn write_side(body: &mut String) -> fmt::Result {
    body.push_str(
        "<aside id=\"side\"><input id=\"search\" type=\"search\" placeholder=\"Search (press /)\" \
         aria-label=\"Search the operations\" autocomplete=\"off\"><p id=\"found\" class=\"soft\" role=\"status\"></p>\
         <nav aria-label=\"Operations\">",
    );
    for (group, members) in groups() {
        write!(body, "<section><h2>{}</h2><ul>", group.title())?;
        for endpoint in members {
            let name = endpoint.ids.first().copied().unwrap_or_default();
            let last = endpoint.path.rsplit('/').next().unwrap_or_default();
            let short = match endpoint.group {
                Group::Proxy | Group::Service => String::new(),
                _ => format!("<span>{}</span>", Escaped(last)),
            };
            write!(
                body,
                "<li><a href=\"#{0}\" title=\"{1}\"><span class=\"id\">{2}</span>{short}</a></li>",
                Escaped(name),
                Escaped(endpoint.doc),
                // A word that the path says too is said once.
                if name == last {
                    String::new()
                } else {
                    Escaped(&endpoint.ids.join(", ")).to_string()
                },
            )?;
        }
        body.push_str("</ul></section>");
    }
    body.push_str("</nav></aside>");
    Ok(())
}

fn slug(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}

fn write_endpoint(page: &mut String, endpoint: &Endpoint) -> fmt::Result {
    let action = endpoint
        .action
        .map_or_else(String::new, |action| format!("?action={action}"));
    let (first, others) = endpoint.ids.split_first().unwrap_or((&"", &[]));
    write!(page, "<details class=\"op\" id=\"{}\"><summary>", Escaped(first))?;
    let others: String = others
        .iter()
        .map(|other| format!("<span id=\"{}\"></span>", Escaped(other)))
        .collect();
    write!(
        page,
        "<span class=\"verb\">{others}GET</span><code class=\"path\">{}{}</code><span class=\"ids\">{}</span>\
         <span class=\"about\">{}</span></summary><div class=\"inside\">",
        marked(endpoint.path),
        Escaped(&action),
        Escaped(&endpoint.ids.join(", ")),
        prose(endpoint.doc)
    )?;
    let mut facts = Vec::new();
    if endpoint.main_only {
        facts.push("mainnet only".to_owned());
    }
    if let Some(days) = endpoint.days_max {
        facts.push(format!("at most {days} days a request"));
    }
    if endpoint.node != NodeUse::None {
        facts.push("may ask the node".to_owned());
    }
    if !facts.is_empty() {
        write!(
            page,
            "<ul class=\"facts\"><li>{}</li></ul>",
            facts.join("</li><li>")
        )?;
    }
    write_form(page, endpoint)?;
    write_answers(page, endpoint)?;
    page.push_str("</div></details>");
    Ok(())
}

/// A path whose placeholders are set apart.
fn marked(path: &str) -> String {
    path.replace('{', "<i>{").replace('}', "}</i>")
}

/// What it answers: the fields of its bodies, and the texts of its refusals.
fn write_answers(page: &mut String, endpoint: &Endpoint) -> fmt::Result {
    if !endpoint.bodies.is_empty() {
        page.push_str("<details class=\"more\"><summary>Fields of the answer</summary>");
        for fields in endpoint.bodies {
            page.push_str("<div class=\"wide\"><table><tr><th>Field</th><th>Form</th><th>Meaning</th></tr>");
            write_fields(page, fields, "")?;
            page.push_str("</table></div>");
        }
        page.push_str("</details>");
    }
    let refusals = refusals_of(endpoint);
    if !refusals.is_empty() {
        page.push_str("<details class=\"more\"><summary>Refusals</summary><ul>");
        for (status, text) in refusals {
            write!(page, "<li>{status} <code>{}</code></li>", Escaped(&text))?;
        }
        page.push_str("</ul></details>");
    }
    Ok(())
}

fn write_fields(page: &mut String, fields: &[Field], within: &str) -> fmt::Result {
    for field in fields {
        write!(
            page,
            "<tr><td><code><span class=\"soft\">{within}</span>{}</code></td><td>{}{}</td><td>{}</td></tr>",
            field.name,
            prose(&form_name(field.form)),
            if field.nullable { " or null" } else { "" },
            prose(field.doc)
        )?;
        if let Form::Object(inner) | Form::List(inner) | Form::Array(inner) | Form::Chains(inner) = field.form
        {
            write_fields(page, inner, &format!("{within}{}.", field.name))?;
        }
    }
    Ok(())
}

/// A form in a word or two.
pub(super) fn form_name(form: Form) -> String {
    match form {
        Form::Text => "text".to_owned(),
        Form::Decimal => "decimal text".to_owned(),
        Form::Amount => "decimal text, with a fraction for `unit=coin`".to_owned(),
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
        Form::List(_) | Form::Array(_) => "list".to_owned(),
        Form::Chains(_) => "object by chain".to_owned(),
        Form::Texts => "object of texts".to_owned(),
        Form::JsonRpc => "as the method answers".to_owned(),
    }
}

/// A sentence, with what stands between backticks as code.
pub(super) fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(place, part)| {
        let part = Escaped(part).to_string();
        if place % 2 == 1 {
            format!("<code>{part}</code>")
        } else {
            part
        }
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::docs_form::example_value;
    use crate::api::endpoint::Kind;
    use crate::api::web_page::tests::check;

    fn text() -> String {
        String::from_utf8(docs_page().text().to_vec()).unwrap()
    }

    #[test]
    fn the_page_loads_nothing_and_is_no_burden() {
        check(docs_page());
        let bytes = text().len();
        assert!(bytes < 500_000, "{bytes} bytes");
    }

    #[test]
    fn every_operation_has_a_form_with_every_parameter_filled_in_as_its_example() {
        let text = text();
        for endpoint in endpoints() {
            let id = endpoint.ids[0];
            let begin = text.find(&format!("<details class=\"op\" id=\"{id}\">")).unwrap();
            let part = &text[begin..];
            let form = &part[part.find("<form").unwrap()..part.find("</form>").unwrap()];
            assert!(form.contains(&format!("data-path=\"{}\"", endpoint.path)), "{id}");
            for id in endpoint.ids {
                assert_eq!(text.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
            }
            for parameter in endpoint.parameters {
                let name = parameter.name;
                let mut rows = form.split("<div class=\"row\">");
                let field = rows.find(|row| row.contains(&format!(" data-name=\"{name}\"")));
                let field = field.unwrap_or_else(|| panic!("{id}: {name} has no field"));
                assert_eq!(
                    field.contains("class=\"req\""),
                    parameter.required,
                    "{id}: {name}"
                );
                if let Some(value) = example_value(endpoint, parameter) {
                    let given = [
                        format!("value=\"{}\"", Escaped(&value)),
                        format!("<option selected>{value}<"),
                        format!("<option value=\"\">{value} (default)<"),
                    ];
                    assert!(
                        given.iter().any(|given| field.contains(given)),
                        "{id}: {name}={value}\n{field}"
                    );
                }
                if let Kind::OneOf(words) = parameter.kind {
                    let choices = words
                        .iter()
                        .filter(|word| field.contains(&format!(">{word}")))
                        .count();
                    let expected = if endpoint.main_only && name == "chain" {
                        1
                    } else {
                        words.len()
                    };
                    assert_eq!(choices, expected, "{id}: {name}");
                }
            }
            // Every part of the example is in the form.
            let given = endpoint
                .parameters
                .iter()
                .filter_map(|parameter| example_value(endpoint, parameter));
            let pairs = endpoint
                .example
                .split_once('?')
                .map_or(0, |(_, query)| query.split('&').count());
            let segments = endpoint.path.matches('{').count();
            assert_eq!(given.count(), pairs + segments, "{id}: {}", endpoint.example);
        }
    }

    #[test]
    fn what_is_shown_is_escaped() {
        assert_eq!(
            Escaped("<a b=\"c\">&").to_string(),
            "&lt;a b=&quot;c&quot;&gt;&amp;"
        );
        assert_eq!(marked("/a/{b}"), "/a/<i>{b}</i>");
        assert_eq!(prose("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
    }
}
