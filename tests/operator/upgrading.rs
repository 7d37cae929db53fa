//! A store of another layout: what docs/UPGRADING.md says of it is what the program says.

use std::path::Path;

use quarry::store::schema::SCHEMA_VERSION;

use crate::binary::{import_demo, quarry};

/// Makes a store one of another layout: the version is the first byte of its identity.
fn set_layout(store: &Path, version: u8) {
    let path = store.join("rocksdb");
    let options = rocksdb::Options::default();
    let families = rocksdb::DB::list_cf(&options, &path).unwrap();
    let db = rocksdb::DB::open_cf(&options, &path, families).unwrap();
    let meta = db.cf_handle("meta").unwrap();
    let mut identity = db.get_cf(meta, b"identity").unwrap().unwrap();
    identity[0] = version;
    db.put_cf(meta, b"identity", identity).unwrap();
    db.flush_cf(meta).unwrap();
}

#[test]
fn another_layout_is_refused_in_the_words_of_the_page() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().join("mainnet");
    import_demo(data.path().to_str().unwrap());
    let args = |command: &str| {
        let data = data.path().to_str().unwrap().to_owned();
        [command.to_owned(), "--data-dir".to_owned(), data]
    };
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/UPGRADING.md")).unwrap();
    let ours = u8::try_from(SCHEMA_VERSION).unwrap();
    let others = [(4, "fill a new --data-dir"), (ours - 1, "run `quarry migrate`")];
    let commands = ["serve", "inspect", "verify"];
    for ((version, way_out), command) in others
        .into_iter()
        .flat_map(|other| commands.map(|command| (other, command)))
    {
        set_layout(&store, version);
        let found = format!("has layout version {version}");
        let refused = quarry(args(command)).refused(&[found.as_str(), way_out]);
        let shown = refused
            .sentence()
            .replace(store.to_str().unwrap(), "/var/lib/quarry/mainnet");
        assert!(
            page.contains(&format!("\n{shown}\n")),
            "not in docs/UPGRADING.md: {shown}"
        );
    }
    set_layout(&store, 200);
    quarry(args("serve")).refused(&["has layout version 200", "use the newer quarry that wrote it"]);
    // Nothing was touched: of its own layout again, it is what it was.
    set_layout(&store, ours);
    quarry(args("verify")).succeeded();
}
