//! Contracts and proxies of a real compiler on a real node: what is imported of them, what stands behind proxies with
//! the node and without, and the names of what was called and of what failed.

use super::*;

const SOURCE: &str = r#"// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

contract Target {
    error Poor(address who, uint256 need);
    uint256 public x;
    constructor(uint256 first) { x = first; }
    function set(uint256 value) external { x = value; }
    function spend(uint256 need) external { x = 0; revert Poor(msg.sender, need); }
}

contract Renamed {
    error Poor(address payer, uint256 lacks);
    uint256 public x;
    function set(uint256 changed) external { x = changed; }
    function spend(uint256 lacks) external { x = 0; revert Poor(msg.sender, lacks); }
}

contract Router {
    Target target;
    constructor(address to) { target = Target(to); }
    function route(uint256 need) external { target.spend(need); }
}

abstract contract Delegating {
    function target() internal view virtual returns (address);
    fallback() external payable {
        address to = target();
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), to, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(ok) { revert(0, returndatasize()) }
            return(0, returndatasize())
        }
    }
}

contract Proxy is Delegating {
    event Upgraded(address indexed implementation);
    bytes32 constant SLOT = 0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc;
    constructor(address to, bool tell) payable { assembly { sstore(SLOT, to) } if (tell) emit Upgraded(to); }
    function upgrade(address to) external { assembly { sstore(SLOT, to) } emit Upgraded(to); }
    function target() internal view override returns (address to) { assembly { to := sload(SLOT) } }
}

contract Beacon {
    event Upgraded(address indexed implementation);
    address public implementation;
    constructor(address to) { implementation = to; emit Upgraded(to); }
}

contract BeaconProxy is Delegating {
    event BeaconUpgraded(address indexed beacon);
    bytes32 constant SLOT = 0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50;
    constructor(address beacon) { assembly { sstore(SLOT, beacon) } emit BeaconUpgraded(beacon); }
    function target() internal view override returns (address) {
        address beacon;
        assembly { beacon := sload(SLOT) }
        return Beacon(beacon).implementation();
    }
}
"#;

/// What solc makes of the contracts.
fn compiled() -> Option<Value> {
    let built = compile(json!({"All.sol": {"content": SOURCE}}))?;
    assert!(
        built["output"]["contracts"]["All.sol"]["Proxy"].is_object(),
        "{built}"
    );
    Some(built)
}

/// What solc makes of sources: its input and output in one file, as build information has them.
pub(crate) fn compile(sources: Value) -> Option<Value> {
    let input = json!({
        "language": "Solidity",
        "sources": sources,
        "settings": {"optimizer": {"enabled": true, "runs": 7}, "evmVersion": "cancun", "outputSelection":
            {"*": {"*": ["abi", "metadata", "evm.bytecode.object"]}}},
    });
    let output = crate::solc::compile(&input)?;
    Some(json!({"input": input, "output": output, "id": "all"}))
}

/// Contracts on a node.
pub(crate) struct Deployed<'a> {
    pub(crate) anvil: &'a Anvil,
    pub(crate) built: &'a Value,
}

impl Deployed<'_> {
    pub(crate) fn send(&self, transaction: Value) -> Value {
        let mut transaction = transaction;
        transaction["from"] = self.anvil.accounts[0].clone().into();
        transaction["gas"] = "0x100000".into();
        let hash = self.anvil.ask("eth_sendTransaction", json!([transaction]));
        eventually("it is mined", SOON, || {
            let receipt = self.anvil.ask("eth_getTransactionReceipt", json!([hash]));
            (!receipt.is_null()).then_some(receipt)
        })
    }

    pub(crate) fn create(&self, name: &str, arguments: &[String]) -> String {
        let code = text(&self.built["output"]["contracts"]["All.sol"][name]["evm"]["bytecode"]["object"]);
        let receipt = self.send(json!({"data": format!("0x{code}{}", arguments.concat())}));
        assert_eq!(receipt["status"], "0x1", "{name}");
        text(&receipt["contractAddress"]).to_owned()
    }

    pub(crate) fn call(&self, to: &str, signature: &str, word: String) -> String {
        let selector = const_hex::encode(&alloy_primitives::keccak256(signature)[..4]);
        let receipt = self.send(json!({"to": to, "data": format!("0x{selector}{word}")}));
        text(&receipt["transactionHash"]).to_owned()
    }
}

pub(crate) fn padded(address: &str) -> String {
    format!("{:0>64}", address.trim_start_matches("0x"))
}

#[test]
fn sources_proxies_and_names_are_those_of_the_chain() {
    let Some(built) = compiled() else { return };
    let Some(anvil) = Anvil::start(31_349) else { return };
    let chain = Deployed {
        anvil: &anvil,
        built: &built,
    };
    let first = chain.create("Target", &[word(41)]);
    let second = chain.create("Target", &[word(42)]);
    let silent = chain.create("Proxy", &[padded(&first), word(0)]);
    let telling = chain.create("Proxy", &[padded(&first), word(1)]);
    let beacon = chain.create("Beacon", &[padded(&first)]);
    let behind = chain.create("BeaconProxy", &[padded(&beacon)]);
    let renamed = chain.create("Renamed", &[]);
    let router = chain.create("Router", &[padded(&telling)]);
    let minimal = format!(
        "0x3d602d80600a3d3981f3363d3d373d3d3d363d73{}5af43d82803e903d91602b57fd5bf3",
        first.trim_start_matches("0x")
    );
    let minimal = text(&chain.send(json!({"data": minimal}))["contractAddress"]).to_owned();
    let calls: Vec<(&String, String)> = [&telling, &behind, &minimal, &silent, &first]
        .into_iter()
        .map(|to| (to, chain.call(to, "set(uint256)", word(5))))
        .collect();
    let failures: Vec<(&String, String)> = [&telling, &behind, &minimal, &silent, &first]
        .into_iter()
        .map(|to| (to, chain.call(to, "spend(uint256)", word(9))))
        .collect();
    let routed = chain.call(&router, "route(uint256)", word(9));
    anvil.mine(1);

    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data").display().to_string();
    let file = directory.path().join("built.json").display().to_string();
    std::fs::write(&file, built.to_string()).unwrap();
    let url = anvil.http();
    let run = ["run", "--mainnet-rpc", &url, "--data-dir", &data];
    let server = Server::start(run);
    ready(&server);
    caught_up(&server, &anvil, "mainnet", SOON);
    let import = |contract: &str| {
        binary::quarry([
            "import",
            "contracts",
            &file,
            "--address",
            contract,
            "--data-dir",
            &data,
        ])
        .succeeded();
    };
    for contract in [&first, &second, &renamed, &silent, &telling, &beacon, &behind] {
        import(contract);
    }
    // The clone's code is another's: nothing but what compiles to it is taken.
    let sources_of_clone = |runtime: &str| {
        let built = json!({
            "language": "Yul",
            "sources": {"Clone.yul": {"content": "object \"Clone\" { code {} }"}},
            "output": {"contracts": {"Clone.yul": {"Clone": {"abi": [], "evm": {"deployedBytecode": {"object": runtime}}}}}},
        });
        let file = directory.path().join("clone.json").display().to_string();
        std::fs::write(&file, built.to_string()).unwrap();
        binary::quarry([
            "import",
            "contracts",
            &file,
            "--address",
            &minimal,
            "--data-dir",
            &data,
        ])
    };
    let refused = sources_of_clone("600160");
    assert!(
        refused
            .stdout
            .contains("is not what `Clone.yul:Clone` was compiled to"),
        "{refused:?}"
    );
    let code = anvil.ask("eth_getCode", json!([minimal, "latest"]));
    sources_of_clone(text(&code)).succeeded();

    let source = |server: &Server, contract: &str| -> Value {
        eventually("the import is served", SOON, || {
            let reply = server.get(&format!("/api/contract/{contract}/source-code"));
            (reply.status == 200).then(|| reply.json())
        })
    };
    let found = source(&server, &minimal);
    assert_eq!(found["matchType"], "partial");
    for (contract, name, arguments) in [
        (&first, "Target", vec![word(41)]),
        (&second, "Target", vec![word(42)]),
        (&telling, "Proxy", vec![padded(&first), word(1)]),
        (&beacon, "Beacon", vec![padded(&first)]),
        (&behind, "BeaconProxy", vec![padded(&beacon)]),
    ] {
        let found = source(&server, contract);
        assert_eq!(found["contractName"], name);
        assert_eq!(found["matchType"], "full", "{name}");
        assert_eq!(
            found["constructorArguments"],
            format!("0x{}", arguments.concat()),
            "{name}"
        );
        assert_eq!(
            (&found["runs"], &found["evmVersion"]),
            (&json!(7), &json!("cancun"))
        );
        assert_eq!(found["sourceCode"], SOURCE);
        let abi = &built["output"]["contracts"]["All.sol"][name]["abi"];
        let served: Value = serde_json::from_str(text(&found["abi"])).unwrap();
        assert_eq!(served, *abi);
        assert_eq!(
            server.json(&format!("/api/contract/{contract}/abi"))["abi"],
            found["abi"]
        );
    }
    let behind_it = |server: &Server, contract: &str| {
        let found = source(server, contract);
        (found["proxy"].clone(), found["implementation"].clone())
    };
    let of = |contract: &String| (json!(true), json!(contract.to_lowercase()));
    let none = (json!(false), Value::Null);
    for contract in [&telling, &silent, &behind, &minimal] {
        assert_eq!(behind_it(&server, contract), of(&first), "{contract}");
    }
    for contract in [&first, &second, &beacon] {
        assert_eq!(behind_it(&server, contract), none, "{contract}");
    }

    // What was called is named by the callee's ABI and by that of the code that ran in its name, which frames tell.
    let called = |server: &Server, hash: &str| {
        let page = server.json(&format!("/api/account/{}/tx-list", anvil.accounts[0]));
        let rows = list(&page["transactions"]).iter();
        let mut row = rows
            .filter(|row| row["hash"] == hash)
            .map(|row| row["functionName"].clone());
        row.next().unwrap()
    };
    for (to, hash) in &calls {
        assert_eq!(called(&server, hash), "set(uint256 value)", "{to}");
    }
    let failed = |server: &Server, hash: &str| -> String {
        let said = server.json(&format!("/api/transaction/{hash}/contract-status"));
        text(&said["errDescription"]).to_owned()
    };
    let poor = |who: &str, need: &str, by: &str| -> String {
        format!("reverted: Poor({who}: {}, {need}: 9)", by.to_lowercase())
    };
    for (to, hash) in &failures {
        assert_eq!(called(&server, hash), "spend(uint256 need)", "{to}");
        assert_eq!(
            failed(&server, hash),
            poor("who", "need", &anvil.accounts[0]),
            "{to}"
        );
    }
    // What a contract hands on is named by the one whose code said it.
    assert_eq!(failed(&server, &routed), poor("who", "need", &router));

    // An upgrade is seen with its block.
    chain.call(&telling, "upgrade(address)", padded(&second));
    caught_up(&server, &anvil, "mainnet", SOON);
    assert_eq!(behind_it(&server, &telling), of(&second));

    // Names are those of the code that ran then, whatever stands there now.
    chain.call(&telling, "upgrade(address)", padded(&renamed));
    let later = chain.call(&telling, "set(uint256)", word(6));
    let failed_later = chain.call(&telling, "spend(uint256)", word(9));
    chain.call(&telling, "upgrade(address)", padded(&second));
    caught_up(&server, &anvil, "mainnet", SOON);
    assert_eq!(called(&server, &later), "set(uint256 changed)");
    assert_eq!(
        failed(&server, &failed_later),
        poor("payer", "lacks", &anvil.accounts[0])
    );
    for (to, hash) in &calls {
        assert_eq!(called(&server, hash), "set(uint256 value)", "{to}");
    }

    // Without its node the store's word is answered: what logs and code tell.
    anvil.kill();
    for (contract, expected) in [
        (&telling, of(&second)),
        (&behind, of(&first)),
        (&minimal, of(&first)),
        (&silent, none.clone()),
        (&beacon, none),
    ] {
        assert_eq!(behind_it(&server, contract), expected, "{contract}");
    }
    server.stop();
}
