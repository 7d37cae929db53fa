//! `quarry config`: every value in force and where it came from.

use std::fmt::Write as _;

use toml::Value;

use super::merge::{Origin, Setting};
use crate::model::{ChainName, shown_url};

/// The column at which origins stand, where the values leave room.
const ORIGIN_COLUMN: usize = 40;

/// Every value in force and where it came from.
#[derive(Clone, Debug)]
pub struct Report {
    settings: Vec<Setting>,
    unknown: Vec<String>,
}

impl Report {
    /// Of all settings those that matter: sections of chains without a node and of which nothing was said are left out.
    pub(super) fn new(settings: Vec<Setting>, unknown: &[String]) -> Self {
        let said = ChainName::ALL.map(|chain| {
            let mut of_chain = settings
                .iter()
                .filter(|setting| chain_of(&setting.key) == Some(chain));
            (chain, of_chain.any(is_of_this_chain))
        });
        let kept = settings
            .into_iter()
            .filter(|setting| chain_of(&setting.key).is_none_or(|chain| said.contains(&(chain, true))))
            .collect();
        Self {
            settings: kept,
            unknown: unknown.to_vec(),
        }
    }

    /// The values, section by section.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// As a configuration file. What may hold a key is commented out, without the key, unless secrets are wanted.
    #[must_use]
    pub fn to_toml(&self, show_secrets: bool) -> String {
        let mut out = String::new();
        let mut current = "";
        for setting in &self.settings {
            let (section, name) = setting.key.rsplit_once('.').unwrap_or(("", &setting.key));
            if section != current {
                let _ = writeln!(out, "\n[{section}]");
                current = section;
            }
            let origin = &setting.origin;
            let (line, more) = match hidden(setting).filter(|_| !show_secrets) {
                Some(shown) => (
                    format!("#{name} = \"{}\"", shown.escape_debug()),
                    "; not whole, it may hold a key: --show-secrets",
                ),
                None => (format!("{name} = {}", setting.value), ""),
            };
            let _ = writeln!(out, "{line:ORIGIN_COLUMN$}  # {origin}{more}");
        }
        for sentence in &self.unknown {
            let _ = writeln!(out, "\n# {sentence}");
        }
        out
    }

    /// As one object: by the name of each option its value and its origin.
    #[must_use]
    pub fn to_json(&self, show_secrets: bool) -> String {
        let settings = self.settings.iter().map(|setting| {
            let secret = hidden(setting).filter(|_| !show_secrets);
            let mut object = serde_json::json!({
                "value": secret.as_ref().map_or_else(|| json(&setting.value), |shown| shown.as_str().into()),
                "origin": setting.origin.kind(),
            });
            if setting.origin != Origin::Default {
                object["from"] = setting.origin.to_string().into();
            }
            if secret.is_some() {
                object["hidden"] = true.into();
            }
            (setting.key.clone(), object)
        });
        format!("{:#}", serde_json::Value::Object(settings.collect()))
    }
}

/// Whether something was said of its chain, and not of all chains together.
fn is_of_this_chain(setting: &Setting) -> bool {
    let own = [".rpc", ".start_block", ".genesis", ".static_reward"];
    matches!(setting.origin, Origin::File(_)) || own.iter().any(|name| setting.key.ends_with(name))
}

/// The chain that a key speaks of.
fn chain_of(key: &str) -> Option<ChainName> {
    key.split_once('.')?.0.parse().ok()
}

/// What may be shown of a node's URL, where that is not all of it.
fn hidden(setting: &Setting) -> Option<String> {
    let url = setting.value.as_str().filter(|_| setting.key.ends_with(".rpc"))?;
    let shown = shown_url(url);
    (shown != url.trim().trim_end_matches('/')).then_some(shown)
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Boolean(truth) => (*truth).into(),
        Value::Array(items) => items.iter().map(json).collect(),
        other => other.to_string().into(),
    }
}
