//! What is known of a contract's sources.

use super::{B256, Bytes};

/// How sure it is that sources are those of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum MatchKind {
    /// They give its code, but for comments, names and the like; or nobody knows.
    Partial = 1,
    /// Every byte of them is vouched for by the hash of the metadata behind its code.
    Full = 2,
}

impl MatchKind {
    /// The kind with a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Partial),
            2 => Some(Self::Full),
            _ => None,
        }
    }

    /// The text of `matchType`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

/// What was imported of a contract, but for the texts of its sources and its ABI. What is not known is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractFacts {
    /// How sure it is.
    pub match_kind: MatchKind,
    /// Whether code of the contract was there to be compared with.
    pub checked: bool,
    /// Nothing but the operator's word says that the sources are the contract's: no hash, no code, no repository. Of a full match, which no
    /// word alone makes: code or a repository told it where the chain's code names several hashes.
    pub stated: bool,
    /// The contract's name.
    pub name: Option<String>,
    /// The language of its sources.
    pub language: Option<String>,
    /// The compiler's version.
    pub compiler_version: Option<String>,
    /// Whether the optimizer was on.
    pub optimizer: Option<bool>,
    /// How often code is expected to run, for the optimizer.
    pub runs: Option<u64>,
    /// The machine that was compiled for.
    pub evm_version: Option<String>,
    /// The license of the main file.
    pub license: Option<String>,
    /// The path of the main file.
    pub main: Option<String>,
    /// The compiler's settings, a JSON object as the settings of a standard-JSON input.
    pub settings: Option<String>,
    /// What the constructor was given, ABI-encoded.
    pub constructor_arguments: Option<Bytes>,
    /// Paths, and the Keccak-256 of the texts.
    pub sources: Vec<(String, B256)>,
}

impl Default for ContractFacts {
    fn default() -> Self {
        Self {
            match_kind: MatchKind::Partial,
            checked: false,
            stated: false,
            name: None,
            language: None,
            compiler_version: None,
            optimizer: None,
            runs: None,
            evm_version: None,
            license: None,
            main: None,
            settings: None,
            constructor_arguments: None,
            sources: Vec::new(),
        }
    }
}

/// The names in a contract's ABI by what calls and revert data begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractNames {
    /// Selectors and texts such as `transfer(address to, uint256 value)`, by selector.
    pub functions: Vec<([u8; 4], String)>,
    /// Custom errors, by selector.
    pub errors: Vec<CustomError>,
}

/// A custom error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomError {
    /// What its revert data begins with.
    pub selector: [u8; 4],
    /// Its name.
    pub name: String,
    /// Types as in signatures, and names, which may be empty.
    pub inputs: Vec<(String, String)>,
}

impl ContractNames {
    /// Puts them into their order; of two with one selector the first stays.
    pub fn sort(&mut self) {
        self.functions.sort_by_key(|(selector, _)| *selector);
        self.functions.dedup_by_key(|(selector, _)| *selector);
        self.errors.sort_by_key(|error| error.selector);
        self.errors.dedup_by_key(|error| error.selector);
    }

    /// The text of a function.
    #[must_use]
    pub fn function(&self, selector: [u8; 4]) -> Option<&str> {
        let at = self
            .functions
            .binary_search_by_key(&selector, |(known, _)| *known);
        at.ok()
            .and_then(|at| self.functions.get(at))
            .map(|(_, text)| text.as_str())
    }

    /// A custom error.
    #[must_use]
    pub fn error(&self, selector: [u8; 4]) -> Option<&CustomError> {
        let at = self
            .errors
            .binary_search_by_key(&selector, |error| error.selector);
        at.ok().and_then(|at| self.errors.get(at))
    }
}
