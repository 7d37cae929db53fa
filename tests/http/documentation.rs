//! The endpoint list against the specification, and docs/API.md against the list.

use std::collections::BTreeSet;

use quarry::api::{NodeUse, Place, endpoints, render_markdown};

/// Operations that refuse `testnet` (specification, common rule 2).
const MAIN_ONLY: [&str; 8] = ["T5", "S1", "S2", "S3", "S6", "S7", "C1", "C2"];
/// Longest ranges of days (specification, limits).
const DAY_LIMITS: [(u16, &[&str]); 4] = [
    (90, &["S4", "S5", "S6", "S7", "G1"]),
    (31, &["B6", "G2", "G3", "average-gas-limit"]),
    (15, &["B4", "B5"]),
    (5, &["B7"]),
];
/// Operations that fail as the node does, and those that ask and are answered without it.
const NEEDS_NODE: [&str; 10] = [
    "T1",
    "T2",
    "T8",
    "T9",
    "S1",
    "A1",
    "A2",
    "A10",
    "A11",
    "eth_getTransactionCount",
];
const MAY_ASK_NODE: [&str; 2] = ["T5", "C2"];
const ACTIONS: [&str; 7] = [
    "eth_blockNumber",
    "eth_getBlockByNumber",
    "eth_getBlockTransactionCountByNumber",
    "eth_getTransactionByHash",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
];

fn specified() -> BTreeSet<String> {
    let groups = [
        ("T", 10),
        ("A", 11),
        ("L", 3),
        ("S", 7),
        ("B", 7),
        ("G", 3),
        ("C", 3),
        ("X", 2),
    ];
    let ids = groups
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |at| format!("{letter}{at}")));
    ids.chain(ACTIONS.map(str::to_owned))
        .chain(
            [
                "holder-list",
                "erc1155-holdings",
                "token-1155-tx",
                "average-gas-limit",
                "home",
                "health",
                "ready",
                "status",
                "openapi",
                "docs",
                "metrics",
            ]
            .map(str::to_owned),
        )
        .collect()
}

#[test]
fn every_operation_is_listed_once() {
    let built: Vec<&str> = endpoints()
        .iter()
        .flat_map(|endpoint| endpoint.ids)
        .copied()
        .collect();
    let distinct: BTreeSet<&str> = built.iter().copied().collect();
    assert_eq!(built.len(), distinct.len(), "an id is listed twice");
    let all: BTreeSet<String> = distinct.into_iter().map(str::to_owned).collect();
    assert_eq!(all, specified());
}

#[test]
fn entries_are_well_formed() {
    for endpoint in endpoints() {
        let placeholders: Vec<&str> = endpoint
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        let in_path: Vec<&str> = endpoint
            .parameters
            .iter()
            .filter(|parameter| parameter.place == Place::Path)
            .map(|parameter| parameter.name)
            .collect();
        assert_eq!(placeholders, in_path, "{}", endpoint.path);
        let names: BTreeSet<&str> = endpoint
            .parameters
            .iter()
            .map(|parameter| parameter.name)
            .collect();
        assert_eq!(
            names.len(),
            endpoint.parameters.len(),
            "{}: a parameter is listed twice",
            endpoint.path
        );
        if endpoint.path.starts_with("/api/") {
            assert!(names.contains("chain"), "{}", endpoint.path);
        }
        assert!(endpoint.doc.ends_with('.'), "{}", endpoint.path);
        assert_eq!(endpoint.action.is_some(), endpoint.path == "/api/proxy");
        let main_only = endpoint.ids.iter().any(|id| MAIN_ONLY.contains(id));
        assert_eq!(endpoint.main_only, main_only, "{:?}", endpoint.ids);
        let node = match endpoint.ids.first().unwrap() {
            id if NEEDS_NODE.contains(id) => NodeUse::Needed,
            id if MAY_ASK_NODE.contains(id) => NodeUse::Optional,
            _ => NodeUse::None,
        };
        assert_eq!(endpoint.node, node, "{:?}", endpoint.ids);
        let days = DAY_LIMITS
            .iter()
            .find(|(_, ids)| endpoint.ids.iter().any(|id| ids.contains(id)))
            .map(|(days, _)| *days);
        assert_eq!(endpoint.days_max, days, "{:?}", endpoint.ids);
        let alone = endpoints()
            .iter()
            .filter(|other| other.path == endpoint.path)
            .count()
            == 1;
        assert!(
            alone || endpoint.action.is_some(),
            "{}: nothing tells these apart",
            endpoint.path
        );
    }
}

#[test]
fn the_documentation_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/API.md");
    if std::env::var_os("QUARRY_BLESS").is_some() {
        std::fs::write(path, render_markdown()).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == render_markdown(),
        "docs/API.md is stale: run with QUARRY_BLESS=1"
    );
}
