//! Tokens whose events explain them and tokens whose do not, on a real node: every answer is the contract's, the
//! ledger gives those that it may give, also with the node dead, and a token that changes its ways is noticed.

use super::*;
use alloy_primitives::keccak256;

/// Tokens of the demo, deployed anew: what their creations sent.
fn creations() -> Vec<(&'static str, String)> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    let manifest: Value = serde_json::from_slice(&std::fs::read(demo.join("chain.json")).unwrap()).unwrap();
    let file = std::fs::File::open(demo.join("chain.jsonl.zst")).unwrap();
    let blocks = String::from_utf8(zstd::decode_all(file).unwrap()).unwrap();
    let transactions: Vec<Value> = blocks
        .lines()
        .flat_map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            list(&line["block"]["transactions"]).to_vec()
        })
        .collect();
    [
        "coin", "ancient", "wrapped", "ash", "toll", "tide", "hush", "deeds",
    ]
    .into_iter()
    .map(|name| {
        let hash = &manifest["contracts"][name]["creation"];
        let found = transactions
            .iter()
            .find(|transaction| transaction["hash"] == *hash);
        (name, text(&found.unwrap()["input"]).to_owned())
    })
    .collect()
}

/// The input of a call.
fn call(signature: &str, words: &[String]) -> String {
    let selector = const_hex::encode(&keccak256(signature)[..4]);
    format!("0x{selector}{}", words.concat())
}

fn padded(address: &str) -> String {
    format!("{:0>64}", address.trim_start_matches("0x"))
}

struct Tokens<'a> {
    anvil: &'a Anvil,
    all: Vec<(&'static str, String)>,
}

impl<'a> Tokens<'a> {
    fn deploy(anvil: &'a Anvil) -> Self {
        let from = &anvil.accounts[0];
        let creations = creations();
        anvil.block_of(
            creations
                .iter()
                .map(|(_, data)| json!({"from": from, "data": data, "gas": "0x2dc6c0"})),
        );
        let receipts = anvil.ask("eth_getBlockReceipts", json!(["latest"]));
        let deployed = |((name, _), receipt): (&(&'static str, String), &Value)| {
            assert_eq!(receipt["status"], "0x1", "{name}: {receipt}");
            (*name, text(&receipt["contractAddress"]).to_owned())
        };
        let all = creations.iter().zip(list(&receipts)).map(deployed).collect();
        Self { anvil, all }
    }

    fn at(&self, name: &str) -> &str {
        let found = self.all.iter().find(|(known, _)| *known == name);
        &found.unwrap().1
    }

    fn send(&self, from: usize, name: &str, signature: &str, words: &[String]) -> Value {
        json!({
            "from": self.anvil.accounts[from], "to": self.at(name), "gas": "0x30000",
            "data": call(signature, words),
        })
    }

    fn transfer(&self, name: &str, from: usize, to: &str, value: u64) -> Value {
        let words = [padded(to), word(value)];
        self.send(from, name, "transfer(address,uint256)", &words)
    }

    /// A block in which everything moves.
    fn block(&self, round: u64) {
        let accounts = &self.anvil.accounts;
        let to = accounts[1 + (round % 4) as usize].clone();
        let mut transactions: Vec<Value> = ["coin", "ancient", "ash", "toll", "tide", "hush"]
            .iter()
            .map(|name| self.transfer(name, 0, &to, 1_000 + round))
            .collect();
        let mut deposit = self.send(1, "wrapped", "deposit()", &[]);
        deposit["value"] = json!(format!("0x{:x}", 500 + round));
        transactions.push(deposit);
        transactions.push(self.send(1, "wrapped", "withdraw(uint256)", &[word(round)]));
        transactions.push(self.transfer("wrapped", 1, &accounts[2], 5));
        transactions.push(self.transfer("ash", 0, &format!("0x{}", "0".repeat(40)), 7));
        transactions.push(self.send(0, "coin", "burn(uint256)", &[word(3)]));
        let mint = [padded(&to), word(round)];
        transactions.push(self.send(0, "deeds", "mint(address,uint256)", &mint));
        self.anvil.block_of(transactions);
    }

    fn told(&self, token: &str, data: &str, block: &str) -> Option<String> {
        let returned = self
            .anvil
            .ask("eth_call", json!([{"to": token, "data": data}, block]));
        let bytes = const_hex::decode(text(&returned)).unwrap();
        let word: [u8; 32] = bytes.get(..32)?.try_into().ok()?;
        Some(alloy_primitives::U256::from_be_bytes(word).to_string())
    }

    /// T1, T2, T8, T9 of every token at these blocks, whoever answers.
    #[track_caller]
    fn compare(&self, server: &Server, blocks: &[u64]) {
        let head = number(&server.json("/status")["chains"]["mainnet"]["indexed"]);
        let nobody = format!("0x{}", "ab".repeat(20));
        let holders: Vec<&String> = self.anvil.accounts.iter().chain([&nobody]).collect();
        for (name, token) in &self.all {
            let supply = |block: u64| {
                let tag = format!("0x{block:x}");
                (*name != "deeds").then(|| self.told(token, &call("totalSupply()", &[]), &tag))?
            };
            let balance = |holder: &str, block: u64| {
                let data = call("balanceOf(address)", &[padded(holder)]);
                self.told(token, &data, &format!("0x{block:x}"))
                    .unwrap_or_else(|| "0".to_owned())
            };
            if let Some(expected) = supply(head) {
                let body = server.json(&format!("/api/token/{token}/total-supply"));
                assert_eq!(body["totalSupply"], expected, "{name}");
            }
            for holder in &holders {
                let target = format!("/api/token/balance?contractaddress={token}&address={holder}");
                assert_eq!(
                    server.json(&target)["balance"],
                    balance(holder, head),
                    "{name} {holder}"
                );
            }
            for &block in blocks {
                if *name != "deeds" {
                    let target = format!("/api/token/{token}/total-supply-history?block={block}");
                    let expected = supply(block).unwrap_or_else(|| "0".to_owned());
                    assert_eq!(
                        server.json(&target)["totalSupply"],
                        expected,
                        "{name} after {block}"
                    );
                }
                for holder in &holders {
                    let target = format!(
                        "/api/token/{holder}/total-balance-history?contractaddress={token}&block={block}"
                    );
                    let found = server.json(&target);
                    assert_eq!(
                        found["balance"],
                        balance(holder, block),
                        "{name} {holder} after {block}"
                    );
                }
            }
        }
    }

    /// Who answers T1 of a token.
    fn source(&self, server: &Server, name: &str) -> String {
        let reply = server.get(&format!("/api/token/{}/total-supply", self.at(name)));
        reply.header("x-balance-source").unwrap_or("nobody").to_owned()
    }

    /// T3 says what the contract says.
    fn holders_agree(&self, server: &Server, name: &str) -> bool {
        let token = self.at(name);
        let body = server.json(&format!(
            "/api/token/holder-list?contractaddress={token}&offset=45"
        ));
        let head = format!("0x{:x}", self.anvil.head());
        list(&body["holders"]).iter().all(|holder| {
            let data = call("balanceOf(address)", &[padded(text(&holder["address"]))]);
            self.told(token, &data, &head).as_deref() == holder["balance"].as_str()
        })
    }
}

#[test]
fn answers_about_tokens_are_their_contracts_words() {
    let Some(anvil) = Anvil::start(31_337) else { return };
    anvil.mine(2);
    let tokens = Tokens::deploy(&anvil);
    for round in 1..=12 {
        tokens.block(round);
        if round == 6 {
            let silent = [padded(&anvil.accounts[4]), word(5_000)];
            anvil.block_of([tokens.send(0, "hush", "mintSilently(address,uint256)", &silent)]);
        }
    }
    anvil.mine(1);
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().to_str().unwrap().to_owned();
    let url = anvil.http();
    let server = Server::start([
        "run",
        "--mainnet-rpc",
        &url,
        "--data-dir",
        &data_dir,
        "--token-checks",
        "5000",
    ]);
    ready(&server);
    caught_up(&server, &anvil, "mainnet", SOON);
    // Whatever is judged by now.
    tokens.compare(&server, &[2, 3, 4, 9, 12, 15]);
    let figures = |server: &Server| server.json("/status")["chains"]["mainnet"]["tokens"].clone();
    eventually("all tokens are judged", SOON, || {
        let figures = figures(&server);
        (figures["judged"] == 8 && figures["known"] == 8).then_some(())
    });
    let sources = |server: &Server| {
        let of = |name: &'static str| (name, tokens.source(server, name));
        ["coin", "ancient", "wrapped", "ash", "toll", "tide", "hush"].map(of)
    };
    let expected = |tide: &str| {
        [
            ("coin", "ledger"),
            ("ancient", "ledger"),
            ("wrapped", "ledger"),
            ("ash", "ledger"),
            ("toll", "node"),
            ("tide", tide),
            ("hush", "node"),
        ]
        .map(|(name, source)| (name, source.to_owned()))
    };
    assert_eq!(sources(&server), expected("ledger"));
    assert_eq!(figures(&server)["errors"], 0);
    tokens.compare(&server, &[1, 2, 3, 4, 7, 10, 13, 16]);
    let info = server.json(&format!(
        "/api/token/info?contractaddress={}",
        tokens.at("ancient")
    ));
    assert_eq!(
        (&info["tokenName"], &info["symbol"], &info["decimals"]),
        (&json!("Ancient Coin"), &json!("ANC"), &json!(9))
    );
    assert_eq!(
        (&info["tokenType"], &info["createdBlock"]),
        (&json!("ERC20"), &json!("3"))
    );

    // A rebase, of which no event tells, is noticed although the token does not move: it was called.
    anvil.block_of([tokens.send(0, "tide", "rebase(uint256)", &[word(77_000_000)])]);
    caught_up(&server, &anvil, "mainnet", TIP);
    eventually("the rebase is noticed", Duration::from_secs(40), || {
        (tokens.source(&server, "tide") == "node").then_some(())
    });
    tokens.block(13);
    caught_up(&server, &anvil, "mainnet", TIP);
    tokens.compare(&server, &[3, 8, 17, 18]);
    for name in ["toll", "tide", "hush"] {
        eventually("holders are what contracts say", SOON, || {
            tokens.holders_agree(&server, name).then_some(())
        });
    }
    // Holders of tokens that are not exact follow their transfers.
    tokens.block(14);
    caught_up(&server, &anvil, "mainnet", TIP);
    for name in ["toll", "tide", "hush"] {
        eventually("holders follow", Duration::from_secs(15), || {
            tokens.holders_agree(&server, name).then_some(())
        });
    }

    // Another branch: other balances at the same numbers.
    anvil.ask("anvil_reorg", json!([3, []]));
    tokens.block(40);
    caught_up(&server, &anvil, "mainnet", SOON);
    let head = anvil.head();
    tokens.compare(&server, &[head, head - 1, head - 2, head - 3, 5]);
    // The rebase was of the branch that was left.
    eventually("what was orphaned is judged again", SOON, || {
        (sources(&server) == expected("ledger")).then_some(())
    });
    tokens.compare(&server, &[head, head - 1, head - 2, head - 3, 5]);

    let (toll, coin) = (tokens.at("toll").to_owned(), tokens.at("coin").to_owned());
    let holder = anvil.accounts[1].clone();
    let supply = server.json(&format!("/api/token/{coin}/total-supply"));
    let tokens_all = tokens.all.clone();
    drop(tokens);
    // The audit, beside the running service: the store against itself, and thousands of samples against the node.
    let samples = std::env::var("QUARRY_SAMPLES").unwrap_or_else(|_| "6000".to_owned());
    let audit = binary::quarry([
        "verify",
        "--data-dir",
        &data_dir,
        "--mainnet-rpc",
        &url,
        "--samples",
        &samples,
        "--seed",
        "7",
    ]);
    let audit = audit.succeeded().stdout;
    for check in ["native balances", "token balances", "token supplies"] {
        let line = audit
            .lines()
            .find(|line| line.starts_with(&format!("{check} against the node")));
        let words: Vec<&str> = line.expect(&audit).split_whitespace().collect();
        let asked: u64 = words[words.len() - 3].parse().expect(&audit);
        assert!(asked > 1000 && words.ends_with(&["0"]), "{audit}");
        println!("{}", line.unwrap());
    }
    anvil.kill();
    let without_node = |server: &Server| {
        assert_eq!(server.json(&format!("/api/token/{coin}/total-supply")), supply);
        let target = format!("/api/token/balance?contractaddress={coin}&address={holder}");
        assert_eq!(server.get(&target).header("x-balance-source"), Some("ledger"));
        server.assert_error(
            &format!("/api/token/{toll}/total-supply"),
            502,
            "Failed to fetch token total supply",
        );
        for target in [
            format!("/api/token/balance?contractaddress={toll}&address={holder}"),
            format!("/api/token/{toll}/total-supply-history?block=9"),
            format!("/api/token/{holder}/total-balance-history?contractaddress={toll}&block=9"),
        ] {
            server.assert_error(&target, 502, "Upstream node error");
        }
        // Before the contract there is nothing to ask.
        let target = format!("/api/token/{toll}/total-supply-history?block=1");
        assert_eq!(server.json(&target)["totalSupply"], "0");
    };
    without_node(&server);
    server.stop();
    // What was found out lies beside the store.
    let server = Server::start(["serve", "--data-dir", &data_dir]);
    ready(&server);
    without_node(&server);
    let names: Vec<Value> = tokens_all
        .iter()
        .map(|(_, token)| {
            server.json(&format!("/api/token/info?contractaddress={token}"))["tokenName"].clone()
        })
        .collect();
    assert!(names.iter().all(Value::is_string), "{names:?}");
}
