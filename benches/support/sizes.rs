//! What a store takes on the disk, by what it is kept for.

use quarry::store::{FlatArray, Store};

/// What a row of the table of sizes counts towards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    Logs,
    Chain,
    Tokens,
    Native,
}

/// Bytes of every table and array, postings by kind, and what they count towards.
pub(crate) fn sizes(store: &Store) -> Vec<(String, u64, Share)> {
    let mut sizes = Vec::new();
    for (name, _, bytes) in store.sizes() {
        let share = match name {
            "logs_by_block" | "logs_by_emitter" | "emitters" | "signatures" => Share::Logs,
            "postings" | "open_postings" => continue,
            "tokens" | "token_states" | "token_balances" | "token_supply" | "holders" | "holdings"
            | "nft_owners" | "nft_ids" | "holder_counts" => Share::Tokens,
            "accounts" | "balances" | "funding" | "supply" => Share::Native,
            _ => Share::Chain,
        };
        sizes.push((name.to_owned(), bytes, share));
    }
    for (name, bytes) in store.posting_bytes().expect("sizes") {
        let of_chain = ["account", "internal", "other nested"];
        let share = if name.starts_with("token") || name.contains("ERC-") {
            Share::Tokens
        } else if of_chain.iter().any(|start| name.starts_with(start)) {
            Share::Chain
        } else {
            Share::Logs
        };
        sizes.push((format!("postings: {name}"), bytes, share));
    }
    let view = store.view();
    for array in FlatArray::ALL {
        let bytes = view.array_len(array) * array.width() as u64;
        let share = match array {
            FlatArray::Tokens | FlatArray::MultiTransfers => Share::Tokens,
            FlatArray::TransactionHashes
            | FlatArray::TransactionStatuses
            | FlatArray::TransactionSignatures
            | FlatArray::BlockFrames
            | FlatArray::BlockEarnings => Share::Chain,
            FlatArray::Blocks
            | FlatArray::LogEmitters
            | FlatArray::LogSignatures
            | FlatArray::Emitters
            | FlatArray::Signatures => Share::Logs,
        };
        sizes.push((format!("array {}", array.name()), bytes, share));
    }
    sizes
}
