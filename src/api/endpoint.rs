//! The shape of the endpoint list: operations as data.

use super::service::Handler;
use super::shape::{Field, Form};

/// The nine groups of the specification, and the service's own routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Tokens.
    Tokens,
    /// Accounts.
    Accounts,
    /// Logs.
    Logs,
    /// Stats.
    Stats,
    /// Proxy.
    Proxy,
    /// Blocks.
    Blocks,
    /// Gas tracker.
    Gas,
    /// Contracts.
    Contracts,
    /// Transactions.
    Transactions,
    /// Health, readiness, status and metrics.
    Service,
}

impl Group {
    /// The heading in the documentation.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Tokens => "Tokens",
            Self::Accounts => "Accounts",
            Self::Logs => "Logs",
            Self::Stats => "Stats",
            Self::Proxy => "Proxy",
            Self::Blocks => "Blocks",
            Self::Gas => "Gas tracker",
            Self::Contracts => "Contracts",
            Self::Transactions => "Transactions",
            Self::Service => "Service",
        }
    }
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A segment of the path.
    Path,
    /// The query string.
    Query,
}

/// The form of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `0x` and 40 hex digits.
    Address,
    /// The same, of a contract.
    Contract,
    /// Addresses, comma-separated, at most so many.
    Addresses(usize),
    /// The same, of contracts.
    Contracts(usize),
    /// `0x` and 64 hex digits.
    Hash,
    /// 32-byte words in hex, comma-separated: any of them.
    Topics,
    /// Decimal, 0 to 2^64 - 1.
    Integer,
    /// Decimal within bounds.
    Between(u64, u64),
    /// `yyyy-MM-dd`, a date that exists.
    Date,
    /// `latest` or decimal.
    Block,
    /// `0x` quantity, `latest`, `earliest`, `safe` or `finalized`.
    Tag,
    /// `0x` quantity.
    Quantity,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Text made by an earlier answer.
    Opaque,
}

/// One parameter of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name, as the client spells it.
    pub name: &'static str,
    /// Where it stands.
    pub place: Place,
    /// The form of its value.
    pub kind: Kind,
    /// Whether it must be given.
    pub required: bool,
    /// What an absent one means.
    pub default: Option<&'static str>,
    /// One sentence.
    pub doc: &'static str,
}

impl Parameter {
    /// An optional query parameter.
    #[must_use]
    pub const fn query(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            name,
            place: Place::Query,
            kind,
            required: false,
            default: None,
            doc,
        }
    }

    /// A segment of the path.
    #[must_use]
    pub const fn path(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            name,
            place: Place::Path,
            kind,
            required: true,
            default: None,
            doc,
        }
    }

    /// The same, required.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The same with a default.
    #[must_use]
    pub const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }
}

/// What an operation has to do with the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeUse {
    /// It asks nothing.
    None,
    /// It may ask, and is answered without the node where that fails.
    Optional,
    /// It may have to ask, and fails as the node does: 502, 504.
    Needed,
}

/// One operation, or several that share a path and a parser.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// Operation ids of the specification; proxy actions and service routes go by their own names.
    pub ids: &'static [&'static str],
    /// The group.
    pub group: Group,
    /// Path template.
    pub path: &'static str,
    /// The value of `action` that selects this one among those of the same path.
    pub action: Option<&'static str>,
    /// Its parameters, in the order in which they are told of. Which of two faults is said is not promised.
    pub parameters: &'static [Parameter],
    /// Whether it refuses `chain=testnet`.
    pub main_only: bool,
    /// Longest range of days, where it takes one.
    pub days_max: Option<u16>,
    /// One sentence.
    pub doc: &'static str,
    /// The bodies it may answer: one, or one for each way of asking.
    pub bodies: &'static [&'static [Field]],
    /// Its media type where that is not JSON; with bodies, one that it answers beside JSON.
    pub media: Option<&'static str>,
    /// A request that shows it on the demo chain; empty for answers that differ from run to run.
    pub example: &'static str,
    /// Texts of its 404.
    pub not_found: &'static [&'static str],
    /// Texts of its 400 that do not follow from its parameters.
    pub bad_requests: &'static [&'static str],
    /// Whether it may have to ask the node, and what comes of one that fails.
    pub node: NodeUse,
    pub(super) handler: Handler,
}

impl Endpoint {
    /// The fields of the items, where it answers a list: with `Accept: application/x-ndjson`, one item a line.
    #[must_use]
    pub fn items(&self) -> Option<&'static [Field]> {
        let mut fields = self.bodies.iter().copied().flatten();
        fields.find_map(|field| match field.form {
            Form::List(items) => Some(items),
            _ => None,
        })
    }

    /// Whether its list has pages.
    #[must_use]
    pub fn is_paged(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.name == "page")
    }
}
