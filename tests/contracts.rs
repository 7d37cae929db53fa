//! `quarry import contracts` into the demo chain's store, beside a service that answers meanwhile: what is taken, what is
//! refused and why, and what C1, C2, A3 and X2 say afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;
#[path = "support/solc.rs"]
mod solc;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use binary::{Outcome, Server, eventually, import_demo, list, quarry, text};
use quarry::model::{Address, MatchKind};
use quarry::store::{ImportWriter, OpenOptions, Store};
use serde_json::Value;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/demo");
const COIN: &str = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const TOLL: &str = "0x663F3ad617193148711d28f5334eE4Ed07016602";
const SIGNALS: &str = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512";
/// A contract of the demo of which nothing is imported.
const FEED: &str = "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0";
/// A minimal proxy of the demo (EIP-1167), and an account that sends.
const CLONE: &str = "0x9da66e9691b6c6fae74bca615b70dfa1663e3ce4";
const SENDER: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const NOBODY: &str = "0x00000000000000000000000000000000000000AA";
/// What a service follows is seen this soon.
const SOON: Duration = Duration::from_secs(10);
const NOT_VERIFIED: &str = "Contract source code not verified";

fn demo(contract: &str) -> PathBuf {
    Path::new(DEMO).join("contracts/full_match/31337").join(contract)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

struct Rig {
    root: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let rig = Self {
            root: tempfile::tempdir().unwrap(),
        };
        import_demo(&rig.data());
        rig
    }

    fn data(&self) -> String {
        self.path("data").display().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn serve(&self) -> Server {
        Server::start(["serve", "--data-dir", &self.data()])
    }

    fn import(&self, path: &Path, address: Option<&str>) -> Outcome {
        self.import_with(path, address, &[])
    }

    fn import_with(&self, path: &Path, address: Option<&str>, more: &[&str]) -> Outcome {
        let (path, data) = (path.display().to_string(), self.data());
        let mut args = vec!["import", "contracts", &path, "--data-dir", &data];
        args.extend(address.iter().flat_map(|address| ["--address", address]));
        args.extend(more);
        quarry(args)
    }
}

fn abi(contract: &str) -> String {
    format!("/api/contract/{contract}/abi")
}

fn source(contract: &str) -> String {
    format!("/api/contract/{contract}/source-code")
}

#[track_caller]
fn said(outcome: &Outcome, words: &[&str]) {
    for word in words {
        assert!(outcome.stdout.contains(word), "`{word}` is not in {outcome:?}");
    }
}

#[test]
fn a_tree_is_taken_entry_by_entry_beside_a_service() {
    let rig = Rig::new();
    let server = rig.serve();
    for path in [abi(COIN), source(COIN), abi(NOBODY), source(NOBODY)] {
        server.assert_error(&path, 404, NOT_VERIFIED);
    }
    let tree = rig.path("repository/contracts");
    let at = |kind: &str, chain: u64, contract: &str| tree.join(format!("{kind}/{chain}/{contract}"));
    let contract = |digit: char| format!("0x{}", digit.to_string().repeat(40));
    copy(&demo(COIN), &at("full_match", 31337, COIN));
    copy(&demo(COIN), &at("partial_match", 31337, COIN));
    copy(&demo(TOLL), &at("partial_match", 31337, TOLL));
    copy(&demo(COIN), &at("full_match", 1, COIN));
    copy(&demo(COIN), &at("full_match", 31337, NOBODY));
    // Refused, one for each reason.
    copy(&demo(COIN), &at("full_match", 31337, SIGNALS));
    copy(&demo(COIN), &at("full_match", 31337, &contract('1')));
    fs::write(
        at("full_match", 31337, &contract('1')).join("sources/Coin.sol"),
        "contract Coin {}",
    )
    .unwrap();
    let escaping = at("full_match", 31337, &contract('2'));
    copy(&demo(COIN), &escaping);
    fs::rename(escaping.join("sources/Coin.sol"), tree.join("Coin.sol")).unwrap();
    fs::write(
        escaping.join("path-translation.json"),
        r#"{"Coin.sol":"../../../../Coin.sol"}"#,
    )
    .unwrap();
    let missing = at("full_match", 31337, &contract('3'));
    copy(&demo(TOLL), &missing);
    fs::remove_file(missing.join("sources/OddCoins.sol")).unwrap();
    fs::create_dir_all(at("full_match", 31337, &contract('4'))).unwrap();
    let broken = at("full_match", 31337, &contract('5'));
    copy(&demo(COIN), &broken);
    fs::write(broken.join("metadata.json"), "{\"compiler\":").unwrap();
    let linked = at("full_match", 31337, &contract('6'));
    copy(&demo(COIN), &linked);
    fs::remove_file(linked.join("sources/Coin.sol")).unwrap();
    std::os::unix::fs::symlink(tree.join("Coin.sol"), linked.join("sources/Coin.sol")).unwrap();

    let outcome = rig.import(&rig.path("repository"), None).succeeded();
    said(
        &outcome,
        &[
            "mainnet: 4 contracts taken (3 new or changed)",
            "1 of other chains skipped, 7 refused",
            "the contract's code names other metadata",
            "source `Coin.sol` has another hash than the metadata states",
            "source `Coin.sol` lies outside of the contract's directory",
            "source `OddCoins.sol` is not there",
            "it has no metadata.json",
            "the metadata cannot be read",
        ],
    );
    assert!(outcome.stdout.matches("lies outside").count() == 2, "{outcome:?}");

    let reply = eventually("the import is served", SOON, || {
        let reply = server.get(&source(COIN));
        (reply.status == 200).then_some(reply)
    });
    let metadata: Value =
        serde_json::from_slice(&fs::read(demo(COIN).join("metadata.json")).unwrap()).unwrap();
    let coin = reply.json();
    let main = fs::read_to_string(demo(COIN).join("sources/Coin.sol")).unwrap();
    let expected = [
        ("contractAddress", COIN.to_lowercase().into()),
        ("chain", "mainnet".into()),
        ("contractName", "Coin".into()),
        ("language", "Solidity".into()),
        ("compilerVersion", metadata["compiler"]["version"].clone()),
        ("optimizationUsed", true.into()),
        ("runs", 200.into()),
        ("evmVersion", "prague".into()),
        ("licenseType", "MIT".into()),
        ("sourceCode", main.clone().into()),
        ("sources", serde_json::json!({ "Coin.sol": main })),
        ("proxy", false.into()),
        ("implementation", Value::Null),
        ("matchType", "full".into()),
    ];
    for (field, value) in expected {
        assert_eq!(coin[field], value, "{field}");
    }
    // The ABI is the compiler's, and the same in both answers.
    let parsed: Value = serde_json::from_str(text(&coin["abi"])).unwrap();
    assert_eq!(parsed, metadata["output"]["abi"]);
    assert_eq!(server.json(&abi(COIN)), serde_json::json!({ "abi": coin["abi"] }));
    // What the creation sent behind its code, by the chain's own words.
    let creation = server.json(&format!(
        "/api/contract/contract-creation?contractaddresses={COIN}"
    ));
    let creation = text(&creation["contracts"][0]["creationBytecode"]).to_owned();
    let arguments = text(&coin["constructorArguments"]).strip_prefix("0x").unwrap();
    assert!(
        arguments.len() == 64 * 8 && creation.ends_with(arguments),
        "{arguments}"
    );
    assert!(arguments.contains(&const_hex::encode("Demo Coin")));

    let toll = server.json(&source(TOLL));
    assert_eq!(
        (&toll["matchType"], &toll["contractName"]),
        (&"partial".into(), &"FeeCoin".into())
    );
    assert_eq!(toll["sources"].as_object().unwrap().len(), 2);
    // Etherscan's dialect gives both files with all that they were compiled with.
    let told = server.json(&format!(
        "/api?module=contract&action=getsourcecode&address={TOLL}"
    ));
    let input = text(&told["result"][0]["SourceCode"]);
    let input: Value = serde_json::from_str(&input[1..input.len() - 1]).unwrap();
    let compiled: Value =
        serde_json::from_slice(&fs::read(demo(TOLL).join("metadata.json")).unwrap()).unwrap();
    let mut settings = compiled["settings"].clone();
    settings.as_object_mut().unwrap().remove("compilationTarget");
    assert!(settings.get("remappings").is_some(), "{settings}");
    assert_eq!(input["settings"], settings);
    // A contract that is not in the store is taken at its word.
    let nobody = server.json(&source(NOBODY));
    assert_eq!(
        (&nobody["matchType"], &nobody["constructorArguments"]),
        (&"full".into(), &Value::Null)
    );
    // Compressed like any other, also where a node would be asked whether it is a proxy.
    for contract in [COIN, NOBODY] {
        let packed = server.get_with(&source(contract), "accept-encoding: gzip\r\n");
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{contract}");
    }
    server.assert_error(&source(SIGNALS), 404, NOT_VERIFIED);

    // The same again changes nothing, and a tag stays good.
    let tag = server.get(&source(COIN)).header("etag").unwrap().to_owned();
    let again = rig.import(&rig.path("repository"), None).succeeded();
    said(
        &again,
        &["mainnet: 4 contracts taken (0 new or changed)", "7 refused"],
    );
    assert_eq!(server.get(&source(COIN)).header("etag"), Some(tag.as_str()));

    // A bare layout is full where the code says so, and takes the place of the partial match.
    let bare = rig.path("bare");
    copy(&demo(TOLL), &bare.join(format!("31337/{TOLL}")));
    said(
        &rig.import(&bare, None).succeeded(),
        &["1 contracts taken (1 new or changed)"],
    );
    eventually("the better match is served", SOON, || {
        (server.json(&source(TOLL))["matchType"] == "full").then_some(())
    });
    // And stays when the directory of one contract comes that says less.
    let less = at("partial_match", 31337, TOLL);
    said(
        &rig.import(&less, None).succeeded(),
        &["1 contracts taken (0 new or changed)"],
    );
    assert_eq!(server.json(&source(TOLL))["matchType"], "full");
    server.stop();
}

#[test]
fn single_files_name_their_contract() {
    let rig = Rig::new();
    let server = rig.serve();
    let standard = Path::new(DEMO).join("contracts/Signals.standard.json");
    rig.import(&standard, None).refused(&["--address"]);
    rig.import(&standard, Some("0x12"))
        .refused(&["`0x12` is not an address"]);
    let wrong = COIN.replacen("Fb", "FB", 1);
    rig.import(&standard, Some(&wrong))
        .refused(&["wrong checksum (EIP-55): with the right one it is", COIN]);
    let nowhere = rig.path("nowhere");
    rig.import(&nowhere, Some(SIGNALS))
        .refused(&["cannot read", "nowhere"]);
    let empty = rig.path("empty");
    fs::create_dir_all(&empty).unwrap();
    rig.import(&empty, None).refused(&["nothing was imported"]);

    // An ABI alone: C1 answers, C2 has no sources.
    let metadata: Value =
        serde_json::from_slice(&fs::read(demo(COIN).join("metadata.json")).unwrap()).unwrap();
    let alone = rig.file(
        "abi.json",
        &serde_json::to_string_pretty(&metadata["output"]["abi"]).unwrap(),
    );
    rig.import(&alone, Some(COIN)).succeeded();
    let found = eventually("the ABI is served", SOON, || {
        let reply = server.get(&abi(COIN));
        (reply.status == 200).then(|| reply.json())
    });
    let parsed: Value = serde_json::from_str(text(&found["abi"])).unwrap();
    assert_eq!(parsed, metadata["output"]["abi"]);
    assert!(!text(&found["abi"]).contains("\n"));
    server.assert_error(&source(COIN), 404, NOT_VERIFIED);

    // A standard-JSON input alone tells neither name nor ABI: the ABI has to be there before.
    let outcome = rig.import(&standard, Some(SIGNALS));
    said(&outcome, &["its sources come without an ABI"]);
    outcome.refused(&["nothing was imported"]);
    let own = Path::new(DEMO).join("contracts/Signals.abi.json");
    let upper = SIGNALS.to_uppercase();
    rig.import(&own, Some(&upper)).succeeded();
    rig.import(&standard, Some(SIGNALS)).succeeded();
    for (path, words) in [
        (&own, "1 contracts taken (0 new"),
        (&standard, "1 contracts taken (0 new"),
    ] {
        said(&rig.import(path, Some(SIGNALS)).succeeded(), &[words]);
    }
    let signals = eventually("the input is served", SOON, || {
        let reply = server.get(&source(SIGNALS));
        (reply.status == 200).then(|| reply.json())
    });
    for field in ["contractName", "compilerVersion", "constructorArguments"] {
        assert_eq!(signals[field], Value::Null, "{field}");
    }
    assert_eq!(
        (&signals["matchType"], &signals["licenseType"]),
        (&"partial".into(), &"MIT".into())
    );
    assert_eq!(signals["sourceCode"], signals["sources"]["Signals.sol"]);
    assert_eq!(server.json(&abi(SIGNALS))["abi"], signals["abi"]);
    assert!(text(&signals["abi"]).contains("emitMany"));

    // What is broken changes nothing, and an ABI does not take the place of sources.
    let broken = fs::read_to_string(&standard).unwrap();
    let broken = rig.file("broken.json", &broken[..broken.len() / 2]);
    rig.import(&broken, Some(SIGNALS))
        .refused(&["broken.json", "cannot be read"]);
    let other = rig.file("other.json", r#"{"hello":"world"}"#);
    rig.import(&other, Some(SIGNALS))
        .refused(&["no standard-JSON input"]);
    rig.import(&alone, Some(SIGNALS))
        .refused(&["nothing was imported"]);
    assert_eq!(server.json(&source(SIGNALS)), signals);
    // The directory of one contract, under whatever name.
    let mine = rig.path("mine");
    copy(&demo(TOLL), &mine);
    rig.import(&mine, None).refused(&["--address"]);
    rig.import(&mine, Some(TOLL)).succeeded();
    eventually("the directory is served", SOON, || {
        (server.get(&source(TOLL)).status == 200).then_some(())
    });
    assert_eq!(server.json(&source(TOLL))["matchType"], "full");
    server.stop();
}

#[test]
fn a_file_with_a_byte_order_mark_is_taken() {
    let rig = Rig::new();
    let own = fs::read_to_string(Path::new(DEMO).join("contracts/Signals.abi.json")).unwrap();
    let marked = rig.file("marked.json", &format!("\u{feff}{own}"));
    said(
        &rig.import(&marked, Some(SIGNALS)).succeeded(),
        &["1 contracts taken (1 new or changed)"],
    );
}

#[test]
fn what_lies_below_another_chain_is_not_refused() {
    let rig = Rig::new();
    let tree = rig.path("repository");
    copy(&demo(COIN), &tree.join("full_match/31337").join(COIN));
    let other = tree.join("full_match/1");
    copy(&demo(COIN), &other.join(COIN));
    fs::create_dir_all(other.join("notes")).unwrap();
    fs::create_dir_all(other.join(COIN.replacen("Fb", "FB", 1))).unwrap();
    std::os::unix::fs::symlink("notes", other.join("latest")).unwrap();
    let outcome = rig.import_with(&tree, None, &["--strict"]).succeeded();
    said(
        &outcome,
        &["1 contracts taken", "2 of other chains skipped, 0 refused"],
    );
}

/// What build information has of the contracts of the tree: no code, but the metadata.
fn output(contracts: &[(&str, &str)]) -> Value {
    let mut output = serde_json::json!({ "contracts": {} });
    for (name, contract) in contracts {
        let text = fs::read_to_string(demo(contract).join("metadata.json")).unwrap();
        let metadata: Value = serde_json::from_str(&text).unwrap();
        let abi = &metadata["output"]["abi"];
        output["contracts"][format!("{name}.sol")][*name] =
            serde_json::json!({ "abi": abi, "metadata": text });
    }
    output
}

#[test]
fn what_is_of_another_contract_is_refused() {
    let rig = Rig::new();
    let standard = Path::new(DEMO).join("contracts/Signals.standard.json");
    let standard: Value = serde_json::from_slice(&fs::read(standard).unwrap()).unwrap();
    let own = Path::new(DEMO).join("contracts/Signals.abi.json");
    let both = output(&[("Coin", COIN), ("FeeCoin", TOLL)]);
    let mut standard = standard;
    for name in ["Coin.sol", "OddCoins.sol"] {
        let text = fs::read_to_string(demo(TOLL).join("sources").join(name)).unwrap();
        standard["sources"][name] = serde_json::json!({ "content": text });
    }
    let built = |name: &str, output: &Value| {
        let built = serde_json::json!({ "input": standard, "output": output });
        rig.file(name, &built.to_string())
    };
    let (none, one) = (
        built("none.json", &both),
        built("one.json", &output(&[("Coin", COIN)])),
    );
    let empty = built("empty.json", &serde_json::json!({}));
    // An ABI and nothing that could be held against code.
    let bare = serde_json::json!({"contracts": {"Signals.sol": {"Signals": {"abi": both["contracts"]["Coin.sol"]["Coin"]["abi"]}}}});
    let bare = built("bare.json", &bare);
    let upper = SIGNALS.to_uppercase().replace("0X", "0x");
    for (file, contract, words) in [
        (
            &own,
            SENDER,
            ["has no code: it is an account that sends transactions", "an ABI"],
        ),
        (
            &bare,
            SENDER,
            [
                "has no code: it is an account that sends transactions",
                "sources of `Signals`",
            ],
        ),
        (
            &bare,
            CLONE,
            ["is a minimal proxy (EIP-1167) of", "sources of `Signals`"],
        ),
        (
            &none,
            &upper,
            [
                "none of its 2 contracts (Coin.sol:Coin, FeeCoin.sol:FeeCoin)",
                "has the code of",
            ],
        ),
        (
            &one,
            SIGNALS,
            ["names other metadata: ipfs", "that of `Coin.sol:Coin` is"],
        ),
        (
            &empty,
            SIGNALS,
            ["come without an ABI", "put the compiler's output with them"],
        ),
    ] {
        let outcome = rig.import(file, Some(contract));
        said(&outcome, &["1 refused"]);
        said(&outcome, &words);
        outcome.refused(&["nothing was imported"]);
    }
    for (text, word) in [
        ("[]", "empty"),
        ("{\"abi\": []}", "empty"),
        ("[{\"inputs\": []}]", "no name"),
    ] {
        let file = rig.file("bad.json", text);
        rig.import(&file, Some(SIGNALS)).refused(&["bad.json", word]);
    }
    let server = rig.serve();
    for contract in [SENDER, CLONE, SIGNALS] {
        for path in [abi(contract), source(contract)] {
            server.assert_error(&path, 404, NOT_VERIFIED);
        }
    }

    // Sources that are not those of the metadata are not vouched for by it.
    let mut other = serde_json::json!({ "input": standard, "output": both });
    other["input"]["sources"]["Coin.sol"]["content"] = "contract Coin {}".into();
    let other = rig.file("other.json", &other.to_string());
    rig.import(&other, Some(COIN))
        .refused(&["source `Coin.sol` has another hash than the metadata states"]);

    // Of two contracts the one whose metadata the code names; what nothing vouches for does not take its place.
    rig.import(&none, Some(COIN)).succeeded();
    let coin = eventually("the build information is served", SOON, || {
        let reply = server.get(&source(COIN));
        (reply.status == 200).then(|| reply.json())
    });
    assert_eq!(
        (&coin["matchType"], &coin["contractName"]),
        (&"full".into(), &"Coin".into())
    );
    assert!(text(&coin["constructorArguments"]).len() > 2);
    assert_eq!(coin["sources"].as_object().unwrap().len(), 1, "only its own");
    for (file, word) in [
        (&bare, "worth more"),
        (&empty, "without an ABI"),
        (&own, "worth more"),
    ] {
        let outcome = rig.import(file, Some(COIN));
        said(&outcome, &[word]);
        outcome.refused(&["nothing was imported"]);
    }
    assert_eq!(server.json(&source(COIN)), coin);
    // Where nothing can be held against each other the operator's word counts, and says nothing of arguments.
    rig.import(&bare, Some(SIGNALS)).succeeded();
    let stated = eventually("the operator's word is served", SOON, || {
        let reply = server.get(&source(SIGNALS));
        (reply.status == 200).then(|| reply.json())
    });
    assert_eq!(
        (&stated["matchType"], &stated["constructorArguments"]),
        (&"partial".into(), &Value::Null)
    );
    assert_eq!(server.json(&abi(SIGNALS))["abi"], stated["abi"]);
    server.stop();
}

/// What solc makes of the demo's factory and of the contracts in its file; nothing where it is not installed.
fn compiled_factory() -> Option<Value> {
    let source = fs::read_to_string(Path::new(DEMO).join("scenario/contracts/Factory.sol")).unwrap();
    let input = serde_json::json!({
        "language": "Solidity",
        "sources": { "Factory.sol": { "content": source } },
        "settings": {
            "optimizer": { "enabled": true, "runs": 200 },
            "evmVersion": "prague",
            "outputSelection": { "*": { "*": ["abi", "metadata", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
        },
    });
    let output = solc::compile(&input)?;
    Some(serde_json::json!({ "input": input, "output": output }))
}

/// A store of the demo chain that has no traces knows what created a contract, and not what that left.
fn without_traces() -> (Rig, String) {
    let rig = Rig {
        root: tempfile::tempdir().unwrap(),
    };
    let packed = fs::read(Path::new(DEMO).join("chain.jsonl.zst")).unwrap();
    let lines = String::from_utf8(zstd::decode_all(packed.as_slice()).unwrap()).unwrap();
    let bare: Vec<String> = lines
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("traces");
            line.to_string()
        })
        .collect();
    let bare = rig.file("bare.jsonl", &bare.join("\n"));
    let genesis = Path::new(DEMO).join("genesis.json").display().to_string();
    let data = rig.data();
    let bare = bare.display().to_string();
    quarry([
        "import",
        "chain",
        &bare,
        "--genesis",
        &genesis,
        "--data-dir",
        &data,
    ])
    .succeeded();

    let manifest: Value =
        serde_json::from_slice(&fs::read(Path::new(DEMO).join("chain.json")).unwrap()).unwrap();
    let factory = text(&manifest["contracts"]["factory"]["address"]).to_owned();
    (rig, factory)
}

/// The same build information without the code that was compiled; `named` is the contract that is meant.
fn without_code(built: &Value, named: Option<&str>) -> Value {
    let mut untold = built.clone();
    let contracts = untold["output"]["contracts"]["Factory.sol"].as_object_mut();
    for contract in contracts.unwrap().values_mut() {
        contract.as_object_mut().unwrap().remove("evm").unwrap();
    }
    if let Some(name) = named {
        untold["contractName"] = name.into();
    }
    untold
}

#[test]
fn a_factory_is_not_shown_as_its_child_in_a_store_without_traces() {
    let Some(built) = compiled_factory() else { return };
    let (rig, factory) = without_traces();
    let server = rig.serve();
    // Its child alone, as an artifact, and as metadata beside which there is no code.
    let child = &built["output"]["contracts"]["Factory.sol"]["Child"];
    let artifact = serde_json::json!({
        "contractName": "Child", "abi": child["abi"], "metadata": child["metadata"],
        "bytecode": child["evm"]["bytecode"],
    });
    let artifact = rig.file("Child.json", &artifact.to_string());
    let outcome = rig.import(&artifact, Some(&factory));
    said(
        &outcome,
        &["1 refused", "is not what the file's `Child` was compiled to"],
    );
    outcome.refused(&["nothing was imported"]);
    let untold = rig.file("untold.json", &without_code(&built, None).to_string());
    rig.import(&untold, Some(&factory)).refused(&[
        "3 contracts (Factory.sol:Child, Factory.sol:Factory, Factory.sol:Workshop)",
        "name it as `contractName`",
    ]);
    server.assert_error(&source(&factory), 404, NOT_VERIFIED);

    let build = rig.file("build.json", &built.to_string());
    rig.import(&build, Some(&factory)).succeeded();
    let shown = eventually("the factory is served", SOON, || {
        let reply = server.get(&source(&factory));
        (reply.status == 200).then(|| reply.json())
    });
    assert_eq!(
        (
            &shown["contractName"],
            &shown["matchType"],
            &shown["constructorArguments"]
        ),
        (&"Factory".into(), &"full".into(), &"0x".into())
    );
    server.stop();
}

/// Rows as an earlier version wrote them: whichever metadata the creation code names was a full match.
#[test]
fn what_an_earlier_version_took_of_a_factory_is_mended_or_stays() {
    let Some(built) = compiled_factory() else { return };
    let (rig, factory) = without_traces();
    let file = |name: &str| {
        rig.file(
            &format!("{name}.json"),
            &without_code(&built, Some(name)).to_string(),
        )
    };
    let (child, whole) = (file("Child"), file("Factory"));
    // A tree without a claim.
    let tree = format!("tree/31337/{factory}");
    let metadata = &built["output"]["contracts"]["Factory.sol"]["Factory"]["metadata"];
    rig.file(&format!("{tree}/metadata.json"), text(metadata));
    let source = text(&built["input"]["sources"]["Factory.sol"]["content"]);
    rig.file(&format!("{tree}/sources/Factory.sol"), source);
    let tree = rig.path("tree");

    let store = Store::open(&OpenOptions {
        read_only: true,
        ..OpenOptions::new(rig.path("data/mainnet"))
    })
    .unwrap();
    let address: Address = factory.parse().unwrap();
    let imports = || ImportWriter::open(store.directory(), &store.identity()).unwrap();
    let known = || {
        let facts = imports().contract(&address).unwrap().unwrap();
        (facts.name.unwrap(), facts.match_kind)
    };
    // Puts what the operator stated into the words of then.
    let age = || {
        let writer = imports();
        let mut facts = writer.contract(&address).unwrap().unwrap();
        assert!(facts.checked);
        (facts.match_kind, facts.stated) = (MatchKind::Full, false);
        let rows = ImportWriter::contract_rows(&address, &facts, None, Vec::new());
        let rows: Vec<_> = rows.into_iter().filter(|(_, value)| value.is_some()).collect();
        writer.write(&rows).unwrap();
    };
    let is = |name: &str, kind| (name.to_owned(), kind);
    for (right, given) in [(&whole, Some(factory.as_str())), (&tree, None)] {
        let import = || rig.import_with(right, given, &["--strict"]).succeeded().stdout;
        rig.import(&child, Some(&factory)).succeeded();
        age();
        assert_eq!(known(), is("Child", MatchKind::Full));
        let said = import();
        assert!(said.contains("(1 new or changed)"), "{said}");
        assert_eq!(known(), is("Factory", MatchKind::Partial));
        age();
        for _ in 0..2 {
            let said = import();
            assert!(
                said.contains("(0 new or changed)") && said.contains("0 refused"),
                "{said}"
            );
            assert_eq!(known(), is("Factory", MatchKind::Full));
        }
        // Compiled code tells for good.
        let build = rig.file("build.json", &built.to_string());
        rig.import(&build, Some(&factory)).succeeded();
        let outcome = rig.import(&child, Some(&factory));
        assert!(outcome.stdout.contains("worth more"), "{outcome:?}");
        outcome.refused(&["nothing was imported"]);
        assert_eq!(known(), is("Factory", MatchKind::Full));
        imports().write(&ImportWriter::forgotten(&address)).unwrap();
    }
}

#[test]
fn names_come_with_abis() {
    let rig = Rig::new();
    let server = rig.serve();
    let page = format!("/api/account/{COIN}/tx-list");
    let names = |rows: &Value| -> Vec<String> {
        let rows = list(&rows["transactions"]).iter();
        rows.map(|row| text(&row["functionName"]).to_owned()).collect()
    };
    let before = server.get(&page);
    let tag = before.header("etag").unwrap().to_owned();
    let before = before.json();
    assert!(names(&before).iter().all(String::is_empty));
    // Transactions that failed with an error of the contract's own.
    let custom: Vec<(String, String)> = list(&before["transactions"])
        .iter()
        .filter(|row| row["isError"] == 1)
        .map(|row| {
            let path = format!("/api/transaction/{}/contract-status", text(&row["hash"]));
            let reply = server.get(&path);
            let said = text(&reply.json()["errDescription"]).to_owned();
            // It may be named one day, so that it is not kept for ever.
            let kept = reply.header("cache-control").unwrap().contains("immutable");
            assert_eq!(kept, !said.contains("custom error"), "{said}");
            (path, said)
        })
        .filter(|(_, said)| said.contains("custom error"))
        .collect();
    assert!(!custom.is_empty(), "the demo has such transactions");
    rig.import(&demo(COIN), None).succeeded();
    let after = eventually("names are served", SOON, || {
        let reply = server.get(&page);
        (reply.header("etag") != Some(tag.as_str())).then(|| reply.json())
    });
    let transfers: Vec<&Value> = list(&after["transactions"])
        .iter()
        .filter(|row| row["methodId"] == "0xa9059cbb" && row["to"] == COIN.to_lowercase())
        .collect();
    assert!(transfers.len() > 10);
    for row in &transfers {
        assert_eq!(row["functionName"], "transfer(address to, uint256 value)");
    }
    let unnamed = list(&after["transactions"]).iter();
    let unnamed: Vec<&Value> = unnamed.filter(|row| row["functionName"] == "").collect();
    assert!(
        unnamed.iter().any(|row| row["to"].is_null()),
        "a creation calls nothing"
    );
    for (path, before) in custom {
        let said = text(&server.json(&path)["errDescription"]).to_owned();
        assert_ne!(said, before);
        assert!(
            said.starts_with("reverted: Insufficient") && said.contains("(holder: 0x") && said.ends_with(')'),
            "{before}: {said}"
        );
    }
    server.assert_error(&source(FEED), 404, NOT_VERIFIED);
    // Forms and chains are looked at before anything else.
    for path in [abi("0x12"), source("nothing")] {
        server.assert_error(&path, 400, "Invalid contract address format");
    }
    for path in [abi(COIN), source(COIN)] {
        let path = format!("{path}?chain=testnet");
        server.assert_error(&path, 400, "Chain testnet is not supported for this operation");
    }
    server.stop();
}
