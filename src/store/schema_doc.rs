//! The rendered part of docs/SCHEMA.md: what the tables, arrays and postings say of themselves.

use std::fmt::Write as _;

use super::flat::FlatArray;
use super::schema::{Profile, SCHEMA_VERSION, Table};
use crate::codec::keys::PostingKind;

impl Profile {
    const fn sentence(self) -> &'static str {
        match self {
            Self::Small => "few rows",
            Self::Point => "looked up by whole key, inserted at random",
            Self::AppendUnits => "appended in key order, read by a seek for one unit",
            Self::AppendRows => "appended in key order, looked up by whole key",
            Self::Runs => "runs read in sequence, the small open piece rewritten",
            Self::History(_) => {
                "rows of an account or a token in the order of the chain, read by a seek for one of them, mostly the last before a block"
            }
            Self::Ordered => "inserted and deleted at random, read by short scans",
            Self::Postings => "sealed chunks never change, open ones are rewritten once in 64 postings",
            Self::OpenPostings => "looked up by whole key, rewritten by every commit that adds to the term",
        }
    }
}

/// The term of a list and what its ordinals count.
const fn list(kind: PostingKind) -> (&'static str, &'static str) {
    match kind {
        PostingKind::LogAddress => ("emitter u32", "logs"),
        PostingKind::Topic0 => ("signature u32", "logs"),
        PostingKind::Topic1 | PostingKind::Topic2 | PostingKind::Topic3 => ("topic 32 bytes", "logs"),
        PostingKind::LogAddressTopic0 => ("emitter u32, signature u32", "logs"),
        PostingKind::AccountTransactions | PostingKind::AccountSent => ("account 20 bytes", "transactions"),
        PostingKind::AccountInternal | PostingKind::AccountCalls => ("account 20 bytes", "frames"),
        PostingKind::Internal | PostingKind::Calls => ("none", "frames"),
        PostingKind::AccountMined => ("account 20 bytes", "block numbers"),
        PostingKind::AccountErc20 | PostingKind::AccountErc721 => ("account 20 bytes", "logs"),
        PostingKind::TokenAccountErc20 | PostingKind::TokenAccountErc721 => {
            ("token u32, account 20 bytes", "logs")
        }
        PostingKind::TokenTransfers => ("token u32", "logs"),
        PostingKind::AccountErc1155 => ("account 20 bytes", "transfers of several"),
        PostingKind::TokenAccountErc1155 => ("token u32, account 20 bytes", "transfers of several"),
        PostingKind::TokenMultiTransfers => ("token u32", "transfers of several"),
        PostingKind::Topic1LogAddress | PostingKind::Topic2LogAddress | PostingKind::Topic3LogAddress => {
            ("dense since u64, emitter u32", "logs")
        }
        PostingKind::Topic1Topic0 | PostingKind::Topic2Topic0 | PostingKind::Topic3Topic0 => {
            ("dense since u64, signature u32", "logs")
        }
        PostingKind::Topic1Topic2 | PostingKind::Topic1Topic3 | PostingKind::Topic2Topic3 => {
            ("dense since u64 of each", "logs")
        }
    }
}

/// Tables, arrays and lists as Markdown. It takes in whatever the schema lists, so nothing can be left out.
#[must_use]
pub fn render_schema() -> String {
    let mut out = format!("Layout version {SCHEMA_VERSION}.\n\n### Tables\n");
    for table in Table::ALL {
        let about = table.describe();
        // Writing into a string has no way to fail.
        let _ = write!(
            out,
            "\n#### {code}. `{name}`\n\n{doc}.\n\n```text\nkey    {key}\nvalue  {value}\n```\n\nAccess: {access}.\n",
            code = table as u8,
            name = about.name,
            doc = capital(about.doc),
            key = about.key,
            value = about.value,
            access = about.profile.sentence(),
        );
    }
    out.push_str("\n### Flat arrays\n\nA file is summed by pages of the largest power of two of records that 32 KiB hold: XXH3, 64 bits, seeded with the page's number times 256 and the \
array's code, and combined (xor) with its length in bytes. A page is compared with its sum (`meta`) when something of it is first read.\n\n| Code | File | Record, bytes | Layout |\n|---|---|---|---|\n");
    for array in FlatArray::ALL {
        let _ = writeln!(
            out,
            "| {} | `flat/{}.flat` | {} | `{}` |",
            array as u8,
            array.name(),
            array.width(),
            array.drawing().trim_matches(['|', ' ']).replace(" | ", "`, `")
        );
    }
    out.push_str(
        "\n### Posting kinds\n\n| Kind | List | Term | Term, bytes | Ordinals of |\n|---|---|---|---|---|\n",
    );
    for kind in PostingKind::ALL {
        let (term, of) = list(kind);
        let (code, name, width) = (kind as u8, kind.name(), kind.term_len());
        let _ = writeln!(out, "| {code} | {name} | {term} | {width} | {of} |");
    }
    out
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}
