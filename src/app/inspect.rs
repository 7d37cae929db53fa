//! `quarry inspect`: what is in a store.

use super::AppError;
use super::process::say;
use super::supervisor::open_stored;
use crate::cli::InspectArgs;
use crate::codec::keys;
use crate::codec::posting;
use crate::codec::value::{Checkpoint, Identity};
use crate::store::{Imported, Table};

/// `quarry inspect`.
pub(super) fn inspect(args: &InspectArgs) -> Result<(), AppError> {
    let store = open_stored(&args.store, args.chain)?;
    let view = store.view();
    if let Some([table, key]) = args.key.as_deref() {
        return one_key(&view, table, key);
    }
    let (identity, checkpoint) = (store.identity(), view.checkpoint());
    say(&format!("store      {}", store.directory().display()));
    say(&format!("chain id   {}", identity.chain_id));
    say(&format!(
        "genesis    0x{}",
        const_hex::encode(identity.genesis_hash)
    ));
    match view.head() {
        Some(head) => say(&format!(
            "blocks     {} to {} ({})",
            identity.first_block, head.number, head.hash
        )),
        None => say("blocks     none yet"),
    }
    say(&format!(
        "final to   {}",
        view.finalized().map_or_else(|| "-".to_owned(), |n| n.to_string())
    ));
    say(&format!(
        "contents   {} transactions, {} logs, {} frames, {} emitters, {} signatures",
        checkpoint.transactions,
        checkpoint.logs,
        checkpoint.frames,
        checkpoint.emitters,
        checkpoint.signatures
    ));
    for record in Imported::follow(store.directory(), identity).records()? {
        say(&format!(
            "import     {} from {}, {} taken, {} refused, Unix time {}",
            record.kind.name(),
            record.source,
            record.taken,
            record.rejected,
            record.time
        ));
    }
    if args.full {
        say(&format!(
            "\n{:<20} {:>12} {:>14}  digest",
            "table", "rows", "bytes"
        ));
        for contents in view.contents()? {
            say(&format!(
                "{:<20} {:>12} {:>14}  {}",
                contents.name, contents.rows, contents.bytes, contents.digest
            ));
        }
        say(&format!("\ndigest     {}", view.digest()?));
    } else {
        say(&format!(
            "\n{:<20} {:>12} {:>14}",
            "table", "rows (about)", "bytes on disk"
        ));
        for (name, rows, bytes) in store.sizes() {
            say(&format!("{name:<20} {rows:>12} {bytes:>14}"));
        }
        say(&format!(
            "{:<20} {:>12} {:>14}",
            "total",
            "",
            store.bytes_on_disk()
        ));
    }
    Ok(())
}

fn one_key(view: &crate::store::View, table: &str, key: &str) -> Result<(), AppError> {
    let found = Table::ALL.into_iter().find(|candidate| candidate.name() == table);
    let table = found.ok_or_else(|| {
        let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
        AppError::Usage(format!("no table `{table}`: one of {}", names.join(", ")))
    })?;
    let key = const_hex::decode(key).map_err(|_| AppError::Usage(format!("`{key}` is not hex")))?;
    say(&format!("key        {}", table.describe().key));
    if table == Table::Postings
        && let Ok((term, last)) = keys::Term::decode(&key)
    {
        say(&format!(
            "           {term:?}, {}",
            if last == keys::OPEN {
                "open".to_owned()
            } else {
                last.to_string()
            }
        ));
    }
    let Some(value) = view.get(table, &key)? else {
        say("no such row");
        return Ok(());
    };
    say(&format!("value      {}", table.describe().value));
    say(&format!("           0x{}", const_hex::encode(&value)));
    let mut postings = Vec::new();
    match table {
        Table::Postings if posting::decode(&value, &mut postings).is_ok() => {
            let header = posting::header(&value)
                .map(|header| header.rank)
                .unwrap_or_default();
            say(&format!("           {header} before, then {postings:?}"));
        }
        Table::Meta => {
            if let Ok(checkpoint) = Checkpoint::decode(&value) {
                say(&format!("           {checkpoint:?}"));
            } else if let Ok(identity) = Identity::decode(&value) {
                say(&format!("           {identity:?}"));
            }
        }
        Table::Blocks => {
            if let Ok(block) = crate::codec::value::decode_block(&value) {
                say(&format!("           {block:?}"));
            }
        }
        _ => {}
    }
    Ok(())
}
