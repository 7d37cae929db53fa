//! What operators import beside a chain.

/// What an import brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ImportKind {
    /// Dated prices.
    Prices = 1,
    /// Facts about tokens.
    Tokens = 2,
    /// Sources and ABIs of contracts.
    Contracts = 3,
}

impl ImportKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Prices, Self::Tokens, Self::Contracts];

    /// The kind with a code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }

    /// What its entries are called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prices => "prices",
            Self::Tokens => "tokens",
            Self::Contracts => "contracts",
        }
    }
}

/// One import: where from, when, and how many entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRecord {
    /// What was imported.
    pub kind: ImportKind,
    /// The path as it was given.
    pub source: String,
    /// Unix time of its end, seconds.
    pub time: u64,
    /// Entries that were taken, also those that were there already.
    pub taken: u64,
    /// Entries that were refused.
    pub rejected: u64,
}
