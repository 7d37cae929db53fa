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

impl Group {
    /// Its name, for `--only` and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Lists => "lists",
            Self::Points => "points",
            Self::Days => "days",
        }
    }
}

/// Which questions are asked: those of which the name has one of some parts or the group is named; all where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Only(Vec<String>);

impl Only {
    /// By names, parts of names and groups, in whatever case.
    pub fn of<T: AsRef<str>>(parts: impl IntoIterator<Item = T>) -> Self {
        let parts = parts
            .into_iter()
            .map(|part| part.as_ref().trim().to_ascii_lowercase());
        Self(parts.filter(|part| !part.is_empty()).collect())
    }

    /// Whether it names nothing, and so chooses all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_named(part: &str, published: &Published) -> bool {
        part == published.group.name() || published.name.contains(part)
    }

    /// Whether it is asked.
    #[must_use]
    pub fn chooses(&self, published: &Published) -> bool {
        self.0.is_empty() || self.0.iter().any(|part| Self::is_named(part, published))
    }

    /// What chooses none of these.
    #[must_use]
    pub fn unknown(&self, published: &[Published]) -> Option<&str> {
        let is_unknown = |part: &&String| !published.iter().any(|one| Self::is_named(part, one));
        self.0.iter().find(is_unknown).map(String::as_str)
    }
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
