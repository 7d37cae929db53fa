//! A chain on anvil, a real node: it executes what it is sent, keeps its blocks as values and encodes each answer.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use alloy_provider::{Provider as _, RootProvider};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

/// Transactions of a block, of as many accounts.
const TRANSACTIONS: u64 = 20;
/// Logs of a transaction.
const LOGS: u64 = 10;

/// Emits as many logs as the call data's first word says, in the manner of a token's transfers: signature, caller, another account for
/// each, and an amount.
///
/// ```text
/// PUSH1 0 CALLDATALOAD
/// loop: JUMPDEST DUP1 ISZERO PUSH1 end JUMPI
///       DUP1 PUSH1 0 MSTORE
///       DUP1 NUMBER MUL CALLER PUSH32 signature PUSH1 32 PUSH1 0 LOG3
///       PUSH1 1 SWAP1 SUB PUSH1 loop JUMP
/// end:  JUMPDEST STOP
/// ```
const EMITTER: &str = "6000355b8015603e578060005280430233\
    7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef\
    60206000a3600190036003565b00";

/// The node, ended with the bench.
pub(crate) struct Anvil {
    child: Child,
    pub(crate) url: String,
    /// Its last block.
    pub(crate) head: u64,
}

impl Drop for Anvil {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `QUARRY_ANVIL`, else the one that npm installs below `tools`.
fn program() -> PathBuf {
    std::env::var_os("QUARRY_ANVIL").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/node_modules/.bin/anvil"),
        PathBuf::from,
    )
}

async fn ask(provider: &RootProvider, method: &'static str, params: Value) -> Value {
    provider
        .raw_request(method.into(), params)
        .await
        .expect("anvil's answer")
}

impl Anvil {
    /// Starts it with a chain of about so many logs, 200 a block.
    pub(crate) async fn with_logs(logs: u64) -> Self {
        let mut child = Command::new(program())
            .args([
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-mining",
                "--order",
                "fifo",
            ])
            .args(["--accounts", &TRANSACTIONS.to_string(), "--balance", "1000000"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("anvil (QUARRY_ANVIL, or tools/setup.sh npm)");
        let mut lines = BufReader::new(child.stdout.take().expect("its words"))
            .lines()
            .map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.strip_prefix("Listening on ")?.trim().to_owned()));
        // Read on, or the node would stop at a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let url = format!("http://{}", address.expect("where it listens"));
        let mut anvil = Self { child, url, head: 0 };
        anvil.mine(logs / (TRANSACTIONS * LOGS)).await;
        anvil
    }

    async fn mine(&mut self, blocks: u64) {
        let provider: RootProvider = RootProvider::new_http(self.url.parse().expect("a URL"));
        let accounts = ask(&provider, "eth_accounts", json!([])).await;
        let accounts = accounts.as_array().expect("accounts");
        // Four kinds of contracts; a node caches what it just executed for none of them alone.
        let emitters: Vec<String> = (0xe1..=0xe4).map(|last| format!("0x{last:040x}")).collect();
        for emitter in &emitters {
            ask(
                &provider,
                "anvil_setCode",
                json!([emitter, format!("0x{EMITTER}")]),
            )
            .await;
        }
        for nonce in 0..blocks {
            try_join_all(accounts.iter().zip(emitters.iter().cycle()).map(|(from, to)| {
                let transaction = json!({
                    "from": from,
                    "to": to,
                    "nonce": format!("0x{nonce:x}"),
                    "gas": "0x30d40",
                    "maxFeePerGas": "0x2540be400",
                    "maxPriorityFeePerGas": "0x1",
                    "data": format!("0x{LOGS:064x}"),
                });
                provider.raw_request::<_, Value>("eth_sendTransaction".into(), json!([transaction]))
            }))
            .await
            .expect("a transaction's hash");
            ask(&provider, "evm_mine", json!([])).await;
        }
        self.head = blocks;
    }
}
