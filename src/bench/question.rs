//! A question: what is asked for, and why it is in the set.

use serde::Serialize;

use super::filter::LogFilter;

/// What kind of answer a question has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Event logs.
    Logs,
    /// Lists of accounts and tokens.
    Lists,
    /// One thing by its key.
    Points,
    /// Days.
    Days,
}

/// An entry of the published set.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Published {
    /// Its name, for `--only`.
    pub name: &'static str,
    /// Its kind.
    pub group: Group,
    /// What it asks, one clause.
    pub about: &'static str,
    /// What it is there to show, one clause.
    pub shows: &'static str,
}

/// A question with its parameters, ready to be asked.
#[derive(Clone, Debug, Serialize)]
pub struct Question {
    /// The entry of the set.
    #[serde(flatten)]
    pub published: Published,
    /// What was picked, in words with counts.
    pub picked: String,
    /// Path and query at the service; several are asked in turn.
    pub targets: Vec<String>,
    /// The logs meant, where logs are asked for: what others are asked for too.
    #[serde(skip)]
    pub filter: Option<LogFilter>,
    /// Whether it is there to find nothing.
    #[serde(skip)]
    pub is_no_hit: bool,
    /// How many rows the page has by the store's own count, where that is known.
    #[serde(skip)]
    pub counted: Option<u64>,
}

/// A question that is not asked here.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// The entry of the set.
    #[serde(flatten)]
    pub published: Published,
    /// Why not.
    pub reason: String,
}
