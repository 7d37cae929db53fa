//! `quarry.toml`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ConfigError;
use crate::model::shown_url;

/// The file as a whole. Unknown keys are refused, so that a typing error is not silently a default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Directory of the stores.
    pub data_dir: Option<PathBuf>,
    /// Address to serve on.
    pub listen: Option<String>,
    /// Memory for cached blocks.
    pub cache_size: Option<String>,
    /// Memory of backfill.
    pub backfill_memory: Option<String>,
    /// Connections served at once.
    pub max_connections: Option<usize>,
    /// Patience with clients, seconds.
    pub client_timeout: Option<u64>,
    /// Requests a second of one client; 0 for no limit.
    pub rate_limit: Option<u32>,
    /// Whether `X-Forwarded-For` names the client.
    pub trust_proxy: Option<bool>,
    /// Which events are logged.
    pub log: Option<String>,
    /// How events are logged: `text` or `json`.
    pub log_format: Option<String>,
    /// Whether JSON-RPC passes methods of state on to the node.
    pub rpc_passthrough: Option<bool>,
    /// The chain `mainnet`.
    #[serde(default)]
    pub mainnet: ChainFile,
    /// The chain `testnet`.
    #[serde(default)]
    pub testnet: ChainFile,
}

/// The section of a chain.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainFile {
    /// Node.
    pub rpc: Option<String>,
    /// First block.
    pub start_block: Option<u64>,
    /// Genesis file.
    pub genesis: Option<PathBuf>,
    /// Most requests in flight.
    pub rpc_concurrency: Option<usize>,
    /// Questions a second about tokens.
    pub token_checks: Option<u32>,
    /// Depth that counts as final.
    pub finality_depth: Option<u64>,
    /// Seconds for which a node may contradict what is final.
    pub contradiction_wait: Option<u64>,
    /// Skip hashes and roots.
    pub trust_node: Option<bool>,
    /// Static reward of blocks with difficulty.
    pub static_reward: Option<String>,
    /// What is said of its supply.
    #[serde(default)]
    pub supply: SupplyFile,
    /// Symbol of the native coin.
    pub symbol: Option<String>,
    /// Price feeds.
    #[serde(default)]
    pub prices: PricesFile,
}

/// The section of a chain's supply.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SupplyFile {
    /// Accounts whose coins do not circulate.
    pub excluded: Option<Vec<String>>,
}

/// The feeds of a chain's prices; one that is absent is what is known of the chain.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PricesFile {
    /// Of the native coin.
    pub native: Option<OneOrMany>,
    /// Of the stable coin.
    pub stable: Option<OneOrMany>,
}

/// A text or a list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Some; none at all switches the feed off.
    Many(Vec<String>),
}

impl OneOrMany {
    /// All of them.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

impl ConfigFile {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let bytes = std::fs::read(path).map_err(|source| ConfigError::Read {
            path: path.to_path_buf(),
            source,
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let whole = error.as_bytes().get(..error.utf8_error().valid_up_to());
            ConfigError::Parse {
                path: path.to_path_buf(),
                line: 1 + whole.map_or(0, lines_ended),
                reason: "not UTF-8 text".to_owned(),
            }
        })?;
        let parse = |error: toml::de::Error| {
            let begin = error.span().map_or(0, |span| span.start);
            ConfigError::Parse {
                path: path.to_path_buf(),
                line: 1 + text.as_bytes().get(..begin).map_or(0, lines_ended),
                reason: without_keys(error.message()),
            }
        };
        let file = toml::from_str(&text).map_err(parse)?;
        let values: toml::Table = toml::from_str(&text).map_err(parse)?;
        match empty(&values) {
            Some(name) => Err(ConfigError::Value {
                name: name.to_owned(),
                reason: format!("empty in `{}`: leave it out, or give it a value", path.display()),
            }),
            None => Ok(file),
        }
    }
}

fn lines_ended(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count()
}

/// The first key whose value is an empty text, sections left out: an empty variable counts as none, an empty filter would log nothing, and
/// an empty path is the working directory.
fn empty(values: &toml::Table) -> Option<&str> {
    let is_empty = |value: &toml::Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    values
        .iter()
        .find_map(|(key, value)| is_empty(value).then_some(key.as_str()))
}

/// What the reader says, in one line: a URL that it repeats may hold a key.
fn without_keys(message: &str) -> String {
    let is_end = |char: char| char.is_whitespace() || "\"'`".contains(char);
    let words = message.split_inclusive(is_end).map(|word| {
        let url = word.trim_end_matches(is_end);
        if url.contains("://") {
            shown_url(url) + word.get(url.len()..).unwrap_or("")
        } else {
            word.to_owned()
        }
    });
    words.collect::<String>().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_values_are_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("quarry.toml");
        for (text, name) in [
            ("log = \"\"", "log"),
            ("listen = \"127.0.0.1:1\"\ndata_dir = \" \"", "data_dir"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = ConfigFile::load(&path).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: empty in `")), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_one_line_without_keys() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("quarry.toml");
        for (text, line, why) in [
            (
                "# one\ncachesize = 1",
                2,
                "unknown field `cachesize`, expected one of `data_dir`",
            ),
            ("[mainnet]\nrpc = https://node.example/v3/secret", 2, ""),
            (
                "\n\nmainnet = \"https://me:secret@node.example/v3/secret\"",
                3,
                "https://node.example",
            ),
            (
                "[mainnet]\nrpc = \"https://node.example/secret\nstart_block = 1",
                2,
                "",
            ),
            (
                "[mainnet]\nstart_block = \"wss://node.example/secret\"",
                2,
                "wss://node.example",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let sentence = ConfigFile::load(&path).unwrap_err().to_string();
            let begin = format!("configuration `{}`, line {line}: ", path.display());
            assert!(
                sentence.starts_with(&begin) && sentence.contains(why),
                "{text}: {sentence}"
            );
            assert!(
                !sentence.contains("secret") && sentence.lines().count() == 1,
                "{sentence}"
            );
            assert!(sentence.len() > begin.len() + 10, "{sentence}");
        }
    }
}
