//! What monitoring systems read: the dashboard, the alerts and their page name nothing that `/metrics` does not have.
//!
//! `QUARRY_BLESS=1 cargo test --release --test monitoring` renders the table of families anew.
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
#[path = "support/section.rs"]
mod section;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use binary::{Server, eventually, text};
use serde_json::{Value, json};
use support::fake_node::{FakeNode, Fault};

/// Labels that Prometheus adds itself.
const ADDED: [&str; 2] = ["instance", "job"];
/// Series that are not ours.
const FOREIGN: [&str; 2] = ["up", "ALERTS"];
/// Families that are there in trouble only.
const IN_TROUBLE: [&str; 1] = ["quarry_native_ledger_fault_block"];

/// A family of `/metrics`.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    /// Names of its series: with `_total`, `_bucket` and the like.
    series: BTreeSet<String>,
    /// Labels and the values that were seen.
    labels: BTreeMap<String, BTreeSet<String>>,
}

type Families = BTreeMap<String, Family>;

fn read_page(page: &str, families: &mut Families) {
    let mut current = String::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            current = name.to_owned();
            families.entry(current.clone()).or_default().help = help.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            families.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if !line.starts_with('#') {
            let (series, _) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let family = families.get_mut(&current).unwrap();
            family.series.insert(name.to_owned());
            for (label, _, value) in matchers(labels.strip_suffix('}').unwrap()) {
                family.labels.entry(label).or_default().insert(value);
            }
        }
    }
}

/// Labels, operators and values of what stands between braces.
fn matchers(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once('"') {
        let head = head.trim_start_matches(',').trim();
        let at = head
            .find(|c: char| "=!~".contains(c))
            .unwrap_or_else(|| panic!("{text}"));
        let (value, after) = tail.split_once('"').unwrap();
        found.push((
            head[..at].trim().to_owned(),
            head[at..].to_owned(),
            value.to_owned(),
        ));
        rest = after;
    }
    found
}

/// The pages of the demo and of a service that follows a node.
fn families() -> Families {
    let mut families = Families::new();
    let demo = Server::start(["demo"]);
    // Statuses are told once they were answered.
    for target in ["/health", "/nowhere", "/api/account/x/balance"] {
        demo.get(target);
    }
    read_page(&demo.get("/metrics").text(), &mut families);
    demo.stop();
    let node = FakeNode::start(3);
    node.mine(30);
    let directory = tempfile::tempdir().unwrap();
    let url = node.url();
    let server = Server::start([
        "run",
        "--mainnet-rpc",
        &url,
        "--data-dir",
        directory.path().to_str().unwrap(),
        "--cache-size",
        "32MiB",
        "--backfill-memory",
        "32MiB",
    ]);
    eventually("the node's head", Duration::from_secs(60), || {
        (server.gauge("quarry_lag_blocks")? == "0.0").then_some(())
    });
    read_page(&server.get("/metrics").text(), &mut families);
    let data = directory.path().to_str().unwrap();
    let replica = Server::start(["serve", "--secondary", "--data-dir", data]);
    // The writer gives a sign of life twice a second.
    eventually("a sign of life", Duration::from_secs(60), || {
        replica.gauge("quarry_replica_writer_seconds").map(drop)
    });
    read_page(&replica.get("/metrics").text(), &mut families);
    replica.stop();
    server.stop();
    families
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn file(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// The words of an expression that may be names, each with what follows it.
fn words(expression: &str) -> Vec<(&str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut quoted = false;
    let mut begin = None;
    for (at, sign) in expression.char_indices().chain([(expression.len(), ' ')]) {
        if sign == '"' {
            quoted = !quoted;
        }
        match begin {
            None if is_word(sign) && !quoted => begin = Some(at),
            Some(from) if !is_word(sign) => {
                found.push((&expression[from..at], &expression[at..]));
                begin = None;
            }
            _ => {}
        }
    }
    found
}

/// What is wrong with an expression: series that are not there, labels and values that they do not have.
fn faults(expression: &str, families: &Families) -> Vec<String> {
    let mut faults = Vec::new();
    let mut labels: BTreeSet<&str> = ADDED.into();
    let mut series = 0;
    for (name, rest) in words(expression) {
        if !name.starts_with("quarry_") && !name.starts_with("process_") {
            continue;
        }
        series += 1;
        let Some(family) = families.values().find(|family| family.series.contains(name)) else {
            faults.push(format!("{name} is not on the page"));
            continue;
        };
        labels.extend(family.labels.keys().map(String::as_str));
        let Some(inside) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            continue;
        };
        for (label, operator, value) in matchers(inside.0) {
            if ADDED.contains(&label.as_str()) {
                continue;
            }
            let Some(values) = family.labels.get(&label) else {
                faults.push(format!("{name} has no label {label}"));
                continue;
            };
            // A status that was not answered here is one of those that are; a pattern is not looked into.
            if operator == "=" && label != "status" && !values.contains(&value) {
                faults.push(format!("{name}: {label} is never {value}"));
            }
        }
    }
    if series == 0 && !words(expression).iter().any(|(word, _)| FOREIGN.contains(word)) {
        faults.push("names nothing of ours".to_owned());
    }
    for keyword in ["by (", "on (", "without (", "by(", "on("] {
        for part in expression.split(keyword).skip(1) {
            let names = part.split(')').next().unwrap();
            for name in names.split(',').map(str::trim) {
                if !labels.contains(name) {
                    faults.push(format!("nothing has the label {name}"));
                }
            }
        }
    }
    faults
        .into_iter()
        .map(|fault| format!("{fault}: {expression}"))
        .collect()
}

fn grafana() -> Value {
    serde_json::from_str(&file("docs/monitoring/grafana-dashboard.json")).unwrap()
}

/// Every expression of the dashboard, with the labels that its legend shows.
fn dashboard() -> Vec<(String, Vec<String>)> {
    let dashboard = grafana();
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let legend = text(&target["legendFormat"]);
            let shown = legend
                .split("{{")
                .skip(1)
                .map(|part| part.split("}}").next().unwrap().trim().to_owned());
            found.push((text(&target["expr"]).to_owned(), shown.collect()));
        }
    }
    let variables = variables(&dashboard).into_iter();
    found.extend(variables.map(|variable| (variable.metric, vec![variable.label])));
    found
}

/// What a dashboard is narrowed down by: the values of a label of a series.
struct Variable {
    metric: String,
    label: String,
    /// What "all" is in place of all that the series has.
    all: Option<String>,
}

fn variables(dashboard: &Value) -> Vec<Variable> {
    let mut found = Vec::new();
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let Some(definition) = variable["definition"].as_str() else {
            continue;
        };
        let inside = definition
            .strip_prefix("label_values(")
            .unwrap()
            .strip_suffix(')')
            .unwrap();
        let (metric, label) = inside.split_once(',').unwrap();
        found.push(Variable {
            metric: metric.to_owned(),
            label: label.trim().to_owned(),
            all: variable["allValue"].as_str().map(str::to_owned),
        });
    }
    found
}

/// An alert, as far as it is read here: its name, its expression, and the labels that its texts show.
#[derive(Debug, Default)]
struct Alert {
    name: String,
    expression: String,
    shown: Vec<String>,
}

/// The alerts; the file is read line by line, in the form in which it is written.
fn alerts() -> Vec<Alert> {
    let mut alerts: Vec<Alert> = Vec::new();
    let mut in_expression = false;
    for line in file("docs/monitoring/alerts.yml").lines() {
        let bare = line.trim();
        if let Some(name) = bare.strip_prefix("- alert: ") {
            alerts.push(Alert {
                name: name.to_owned(),
                ..Alert::default()
            });
            in_expression = false;
            continue;
        }
        let Some(alert) = alerts.last_mut() else { continue };
        if let Some(expression) = bare.strip_prefix("expr: ") {
            in_expression = expression == ">-";
            if !in_expression {
                alert.expression = expression.to_owned();
            }
        } else if ["for:", "labels:", "annotations:"]
            .iter()
            .any(|key| bare.starts_with(key))
        {
            in_expression = false;
        } else if in_expression {
            write!(alert.expression, " {bare}").unwrap();
        }
        let shown = bare.split("$labels.").skip(1);
        alert.shown.extend(shown.map(|part| {
            let end = part
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(part.len());
            part[..end].to_owned()
        }));
    }
    alerts
}

#[test]
fn what_the_dashboard_the_alerts_and_the_pages_name_is_on_the_metrics_page() {
    let families = families();
    let mut faults_found = Vec::new();
    let check = |expression: &str, shown: &[String]| {
        let mut found = faults(expression, &families);
        let labels: BTreeSet<&str> = words(expression)
            .into_iter()
            .filter_map(|(name, _)| families.values().find(|family| family.series.contains(name)))
            .flat_map(|family| family.labels.keys().map(String::as_str))
            .chain(ADDED)
            .collect();
        let unknown = shown.iter().filter(|label| !labels.contains(label.as_str()));
        found.extend(unknown.map(|label| format!("{label} is shown and not there: {expression}")));
        // What is summed up by some labels has no others.
        if let Some(kept) = expression.split("by (").nth(1) {
            let kept: Vec<&str> = kept
                .split(')')
                .next()
                .unwrap()
                .split(',')
                .map(str::trim)
                .collect();
            let lost = shown.iter().filter(|label| !kept.contains(&label.as_str()));
            found.extend(lost.map(|label| format!("{label} is shown and summed up: {expression}")));
        }
        found
    };
    let panels = dashboard();
    assert!(panels.len() > 50, "{}", panels.len());
    for (expression, shown) in &panels {
        faults_found.extend(check(expression, shown));
    }
    let alerts = alerts();
    assert!(alerts.len() > 10, "{}", alerts.len());
    for alert in &alerts {
        assert!(!alert.expression.is_empty(), "{alert:?}");
        faults_found.extend(check(&alert.expression, &alert.shown));
    }
    let page = file("docs/MONITORING.md");
    for alert in &alerts {
        if !page.contains(&format!("`{}`", alert.name)) {
            faults_found.push(format!("docs/MONITORING.md does not explain {}", alert.name));
        }
    }
    for name in page
        .split("| `Quarry")
        .skip(1)
        .map(|rest| rest.split('`').next().unwrap())
    {
        let name = format!("Quarry{name}");
        if !alerts.iter().any(|alert| alert.name == name) {
            faults_found.push(format!("docs/MONITORING.md explains {name}, which is no alert"));
        }
    }
    for name in [
        "docs/MONITORING.md",
        "docs/OPERATIONS.md",
        "docs/RELIABILITY.md",
        "README.md",
    ] {
        faults_found.extend(documented(name, &file(name), &families));
    }
    assert!(faults_found.is_empty(), "{}", faults_found.join("\n"));
    // Nothing is looked for in vain by these checks themselves.
    for wrong in [
        "rate(quarry_nothing_total[5m])",
        "quarry_head{operation=\"A1\"}",
        "sum by (lane) (quarry_head)",
        "quarry_pool_queued{lane=\"fast\"}",
    ] {
        assert_eq!(
            faults(wrong, &families).len(),
            1,
            "{wrong}: {:?}",
            faults(wrong, &families)
        );
    }
    check_table(&families);
}

/// A chain whose first block does not come is behind by all that it lacks, and is among all chains of the dashboard, as is one without
/// a store.
#[test]
fn a_chain_without_blocks_is_behind_and_is_shown() {
    let node = FakeNode::start(5);
    node.mine(30);
    node.fault(Fault::WrongParent, u64::MAX);
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let url = node.url();
    let nodes = ["--mainnet-rpc", &url, "--testnet-rpc", "http://127.0.0.1:9"];
    let server = Server::start(["run", "--data-dir", data].into_iter().chain(nodes));
    let lag = eventually("the node's head", Duration::from_secs(60), || {
        server.gauge("quarry_lag_blocks")
    });
    assert_eq!(lag, "31.0");
    let mainnet = &server.json("/status")["chains"]["mainnet"];
    assert_eq!((&mainnet["lag"], &mainnet["indexed"]), (&json!(31), &Value::Null));
    let mut page = Families::new();
    read_page(&server.get("/metrics").text(), &mut page);
    assert!(!page.contains_key("quarry_head"));
    for variable in variables(&grafana()) {
        let values = |family: &Family| family.labels.get(&variable.label).cloned().unwrap_or_default();
        let all: BTreeSet<String> = page.values().flat_map(values).collect();
        let listed = page.get(&variable.metric).map(values).unwrap_or_default();
        assert!(
            all == listed || variable.all.as_deref() == Some(".*"),
            "{}: {listed:?} of {all:?}",
            variable.label
        );
    }
    server.stop();
}

/// Names in a page that no series has. `*` stands for any part of a name, a leading `...` for its beginning.
fn documented(page: &str, text: &str, families: &Families) -> Vec<String> {
    let named = |pattern: &str| {
        let known = families
            .iter()
            .flat_map(|(name, family)| family.series.iter().chain([name]))
            .map(String::as_str)
            .chain(IN_TROUBLE);
        let parts: Vec<&str> = pattern.split('*').collect();
        known.into_iter().any(|name| match parts.as_slice() {
            [whole] => name == *whole,
            [head, .., tail] => name.starts_with(head) && name.ends_with(tail),
            [] => false,
        })
    };
    let mut faults = Vec::new();
    for code in text.split('`').skip(1).step_by(2) {
        let name = code.split(['{', ' ']).next().unwrap();
        let pattern = match name.strip_prefix("...") {
            Some(rest) if rest.starts_with('_') => format!("quarry*{rest}"),
            _ => name.to_owned(),
        };
        let is_name = ["quarry_", "process_", "quarry*"]
            .iter()
            .any(|start| pattern.starts_with(start));
        let plain = pattern
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_*".contains(c));
        if is_name && plain && !named(&pattern) {
            faults.push(format!("{page} names {code}"));
        }
    }
    faults
}

/// Every family, as `/metrics` itself describes it.
fn check_table(families: &Families) {
    let mut table = String::from("| Family | Labels | Tells |\n|---|---|---|\n");
    for (name, family) in families {
        let suffix = if family.kind == "counter" { "_total" } else { "" };
        let labels: Vec<&str> = family
            .labels
            .keys()
            .map(String::as_str)
            .filter(|label| *label != "le")
            .collect();
        let kind = if family.kind == "histogram" {
            " (histogram)"
        } else {
            ""
        };
        writeln!(
            table,
            "| `{name}{suffix}` | {} | {}{kind} |",
            labels.join(", "),
            family.help
        )
        .unwrap();
    }
    section::check("docs/MONITORING.md", "families", &table);
}

/// Runs promtool; `false` where it is not installed.
fn promtool(arguments: [&str; 3], folder: &Path) -> bool {
    let output = match Command::new("promtool")
        .args(arguments)
        .current_dir(folder)
        .output()
    {
        Ok(output) => output,
        Err(error) => {
            crate::binary::skipped::skipped(&format!("promtool: {error}"));
            return false;
        }
    };
    assert!(
        output.status.success(),
        "{arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

#[test]
fn the_alerts_are_valid_and_fire_when_they_should() {
    let folder = root().join("docs/monitoring");
    if !promtool(["check", "rules", "alerts.yml"], &folder) {
        return;
    }
    promtool(["test", "rules", "alerts.test.yml"], &folder);
    // The expressions of the dashboard, as rules; JSON is YAML too.
    let rules: Vec<Value> = dashboard()
        .into_iter()
        .enumerate()
        .map(|(place, (expression, _))| {
            let expression = expression
                .replace("$__rate_interval", "5m")
                .replace("$instance", ".*")
                .replace("$chain", ".*");
            assert!(!expression.contains('$'), "{expression}");
            json!({"record": format!("panel:{place}"), "expr": expression})
        })
        .collect();
    let file = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("rules.yml"), file.to_string()).unwrap();
    promtool(["check", "rules", "rules.yml"], directory.path());
}
