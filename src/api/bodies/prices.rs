//! The bodies of operations on prices.

use super::{CHAIN, field};
use crate::api::shape::{Field, Form};

/// S2.
pub(in crate::api) const TOKEN_PRICE: &[Field] = &[
    CHAIN,
    field("symbol", Form::Text, "What the native coin is called."),
    field("priceUSD", Form::Text, "US dollars, exact."),
    field(
        "change24h_Percent",
        Form::Text,
        "Against the last price known 24 hours before the indexed head, two decimals.",
    )
    .or_null(),
    field(
        "timestamp",
        Form::Decimal,
        "Unix time in seconds of the price: of the feed's block, or the date in the file.",
    ),
    field(
        "source",
        Form::Words(&["feed", "file"]),
        "An aggregator's event on the chain, or an imported file.",
    ),
];
