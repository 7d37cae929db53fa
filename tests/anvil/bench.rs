//! `quarry bench --against-node` against a real node: every row of every question about logs is the same.

use super::{Anvil, BTreeSet, Scenario, Value, binary, list, number, text};

#[test]
fn a_real_node_gives_the_same_logs() {
    let Some(anvil) = Anvil::start(31_337) else { return };
    let mut scenario = Scenario::new(&anvil, 4);
    scenario.blocks(40);
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data").display().to_string();
    let url = anvil.http();
    binary::quarry([
        "sync",
        "--to",
        "latest",
        "--mainnet-rpc",
        &url,
        "--data-dir",
        &data,
    ])
    .succeeded();
    let json = directory.path().join("r.json").display().to_string();
    let args = [
        "bench",
        "--data-dir",
        &data,
        "--against-node",
        &url,
        "--seconds",
        "0.02",
        "--no-cold",
        "--json",
        &json,
    ];
    let outcome = binary::quarry(args).succeeded();
    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let mut compared = BTreeSet::new();
    for asked in list(&report["questions"]) {
        for comparison in list(&asked["comparisons"]) {
            assert_eq!(comparison["verdict"], "equal", "{asked}");
            assert!(number(&comparison["rounds"]) > 0, "{asked}");
            if number(&comparison["rows"]) > 0 {
                compared.insert(text(&asked["name"]).to_owned());
            }
        }
    }
    for name in [
        "address-hot",
        "address-rare",
        "topic-hot",
        "topic-hot-deep",
        "topic-range-hot",
    ] {
        assert!(
            compared.contains(name),
            "{name} is not among {compared:?}\n{}",
            outcome.stdout
        );
    }

    // Another node's chain is refused before anything is asked.
    let other = Anvil::start(31_338).unwrap();
    let refused = binary::quarry(["bench", "--data-dir", &data, "--against-node", &other.http()]);
    refused.refused(&["chain id", "31338"]);
}
