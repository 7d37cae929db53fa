//! `quarry inspect`: what is in a store. `quarry migrate`: its layout.

use std::path::Path;

use super::inspect_key::one_key;
use super::process::say;
use super::supervisor::{open_options, open_stored};
use super::{AppError, files};
use crate::cli::{InspectArgs, MigrateArgs};
use crate::config::Config;
use crate::store::{FlatArray, Imported, Observed, Store, View};

/// `quarry inspect`.
pub(super) fn inspect(args: &InspectArgs) -> Result<(), AppError> {
    let store = open_stored(&args.store, args.chain)?;
    let view = store.view();
    if let Some([table, key]) = args.key.as_deref() {
        return one_key(&view, table, key);
    }
    summary(&store, &view)?;
    if args.full {
        whole(&view)
    } else {
        sizes(&store, &view)
    }
}

/// What chain it is, how far it is, and what stands in the way of answers.
fn summary(store: &Store, view: &View) -> Result<(), AppError> {
    let (identity, checkpoint) = (store.identity(), view.checkpoint());
    let line = |name: &str, text: &str| say(&format!("{name:<10} {text}"));
    line("store", &store.directory().display().to_string());
    line("layout", &format!("version {}", identity.schema));
    line("chain id", &identity.chain_id.to_string());
    line(
        "genesis",
        &format!("0x{}", const_hex::encode(identity.genesis_hash)),
    );
    if let Some(rewards) = store.static_rewards() {
        line(
            "rewards",
            &format!("{rewards} (stated by the operator or a genesis file)"),
        );
    }
    match view.head() {
        Some(head) => line(
            "blocks",
            &format!("{} to {} ({})", identity.first_block, head.number, head.hash),
        ),
        None => line("blocks", "none yet"),
    }
    let finalized = view.finalized();
    line(
        "final to",
        &finalized.map_or_else(|| "-".to_owned(), |block| block.to_string()),
    );
    let traced = match checkpoint.next_traced {
        next if next == checkpoint.next_block => "all blocks".to_owned(),
        next if next <= identity.first_block => "none".to_owned(),
        next => format!("to block {}", next.saturating_sub(1)),
    };
    line("traces", &traced);
    let ledger = checkpoint.native.fault.map_or_else(
        || "native balances of all blocks with traces".to_owned(),
        |fault| {
            format!(
                "native balances end before block {}: {}",
                fault.block,
                fault.reason.sentence()
            )
        },
    );
    line("ledger", &ledger);
    line(
        "contents",
        &format!(
            "{} transactions, {} logs, {} frames, {} emitters, {} signatures, {} tokens",
            checkpoint.transactions,
            checkpoint.logs,
            checkpoint.frames,
            checkpoint.emitters,
            checkpoint.signatures,
            checkpoint.tokens
        ),
    );
    for record in Imported::follow(store.directory(), &identity).records()? {
        line(
            "import",
            &format!(
                "{} from {}, {} taken, {} refused, Unix time {}",
                record.kind.name(),
                record.source,
                record.taken,
                record.rejected,
                record.time
            ),
        );
    }
    Ok(())
}

/// `quarry migrate`.
pub(super) fn migrate(args: &MigrateArgs) -> Result<(), AppError> {
    let open = open_options(&Config::of_store(&args.store)?, args.chain, 1);
    files::check_writing()?;
    let (found, done) = crate::store::migrate(&open)?;
    if done.is_empty() {
        say(&format!(
            "{}: layout version {found} is the one of this quarry, there is nothing to do",
            args.chain
        ));
        return Ok(());
    }
    for (step, about) in done.iter().enumerate() {
        say(&format!(
            "{}: version {} to {}: {about}",
            args.chain,
            found as usize + step,
            found as usize + step + 1
        ));
    }
    Ok(())
}

/// Every row, read: exact.
fn whole(view: &View) -> Result<(), AppError> {
    let arrays = FlatArray::ALL.len();
    for (place, contents) in view.contents()?.into_iter().enumerate() {
        for (first, title) in [(0, "array"), (arrays, "table")] {
            if place == first {
                say(&format!("\n{title:<22} {:>14} {:>16}  digest", "rows", "bytes"));
            }
        }
        say(&format!(
            "{:<22} {:>14} {:>16}  {}",
            contents.name, contents.rows, contents.bytes, contents.digest
        ));
    }
    say(&format!("\ndigest     {}", view.digest()?));
    Ok(())
}

/// What the system and RocksDB tell without reading.
fn sizes(store: &Store, view: &View) -> Result<(), AppError> {
    let total = store.bytes_on_disk().max(1);
    let row = |name: &str, rows: u64, bytes: u64| {
        let share = 100.0 * bytes as f64 / total as f64;
        say(&format!(
            "{name:<22} {rows:>14} {:>10} {share:>6.1} %",
            in_units(bytes)
        ));
    };
    let title = |name: &str, rows: &str| {
        say(&format!(
            "\n{name:<22} {rows:>14} {:>10} {:>8}",
            "on disk", "share"
        ))
    };
    title("array", "rows");
    for array in FlatArray::ALL {
        let rows = view.array_len(array);
        row(array.name(), rows, rows * array.width() as u64);
    }
    title("table", "rows (about)");
    for (name, rows, bytes) in store.sizes() {
        row(name, rows, bytes);
    }
    say(&format!(
        "\n{:<37} {:>10} {:>8}",
        "postings by kind", "about", "share"
    ));
    for (name, bytes) in store.posting_bytes()? {
        let share = 100.0 * bytes as f64 / total as f64;
        say(&format!("{name:<37} {:>10} {share:>6.1} %", in_units(bytes)));
    }
    say(&format!(
        "\n{:<10} {}",
        "on disk",
        in_units(store.bytes_on_disk())
    ));
    for (name, directory) in [
        ("observed", Observed::directory_of(store.directory())),
        ("imports", Imported::directory_of(store.directory())),
    ] {
        if directory.exists() {
            say(&format!("{name:<10} {}", in_units(bytes_below(&directory))));
        }
    }
    if let Some(free) = store.free_bytes() {
        say(&format!("{:<10} {}", "disk free", in_units(free)));
    }
    Ok(())
}

/// Bytes of the files in a directory, which has none below it; what vanishes meanwhile counts nothing.
fn bytes_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| entry.metadata().ok());
    sizes
        .filter(std::fs::Metadata::is_file)
        .map(|data| data.len())
        .sum()
}

/// Bytes in the largest unit that leaves a whole part.
fn in_units(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_units() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536 << 10, "1.5 MiB"),
            (3 << 50, "3072.0 TiB"),
        ] {
            assert_eq!(in_units(bytes), shown);
        }
    }
}
