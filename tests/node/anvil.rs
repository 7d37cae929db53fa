//! A real development node, over every transport, where one is installed.

use quarry::model::{Address, TransactionTrace};
use quarry::node::{Capabilities, Node, NodeConfig, TraceMethod};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The program: `QUARRY_ANVIL`, else the one that npm installs below the project.
fn program() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("QUARRY_ANVIL") {
        return Some(path.into());
    }
    let scope = Path::new(env!("CARGO_MANIFEST_DIR")).join("node_modules/@foundry-rs");
    let packages = std::fs::read_dir(scope).into_iter().flatten().flatten();
    packages
        .map(|package| package.path().join("bin/anvil"))
        .find(|path| path.is_file())
}

struct Anvil {
    child: Child,
    port: u16,
}

impl Drop for Anvil {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(ipc: &Path) -> Option<Anvil> {
    let Some(program) = program() else {
        crate::skipped::skipped("no anvil (set QUARRY_ANVIL or run `npm install @foundry-rs/anvil`)");
        return None;
    };
    let mut child = Command::new(program)
        .args(["--port", "0", "--host", "127.0.0.1", "--ipc"])
        .arg(ipc)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines.find_map(|line| {
        line.unwrap()
            .strip_prefix("Listening on 127.0.0.1:")?
            .trim()
            .parse()
            .ok()
    });
    // Read on, or the node would stop at a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Some(Anvil {
        child,
        port: port.expect("anvil says where it listens"),
    })
}

const FROM: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// Init code that logs, calls the identity precompile, and pays 1 wei to address 0xdead.
const INIT: &str = "0x60006000a0600060006000600060045afa506000600060006000600161dead5af100";

async fn send(node: &Node, to: &str, value: &str, data: &str) {
    let data = data.replace(' ', "");
    let params = format!(
        "[{{\"from\":\"{FROM}\",{to}\"value\":\"{value}\",\"data\":\"{data}\",\"gas\":\"0x100000\"}}]"
    );
    node.raw("eth_sendTransaction", &params).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_node_is_read_over_http_websocket_and_ipc() {
    let directory = tempfile::tempdir().unwrap();
    let ipc = directory.path().join("anvil.ipc");
    let Some(anvil) = start(&ipc) else { return };
    let urls = [
        format!("http://127.0.0.1:{}", anvil.port),
        format!("ws://127.0.0.1:{}", anvil.port),
        ipc.to_str().unwrap().to_owned(),
    ];
    let mut all = Vec::new();
    for url in urls {
        let config = NodeConfig {
            poll_interval: Duration::from_millis(500),
            ..NodeConfig::new(url.clone())
        };
        let node = Node::connect(config).await.unwrap();
        let capabilities = node.probe().await.unwrap();
        println!("{url}: {capabilities:?}; {:?}", capabilities.sentence());
        assert_eq!(capabilities.chain_id, 31337);
        let first = capabilities.head;
        let mut heads = node.heads();
        assert_eq!(heads.next().await.unwrap().number, first);
        send(
            &node,
            "\"to\":\"0x00000000000000000000000000000000000000aa\",",
            "0x5",
            "0x",
        )
        .await;
        send(&node, "", "0x10", INIT).await;
        let wait = async { while heads.next().await.unwrap().number < first + 2 {} };
        tokio::time::timeout(Duration::from_secs(20), wait)
            .await
            .expect("news of the head");
        for number in 0..=first + 2 {
            let bundle = node.bundle(number, &capabilities).await.unwrap().bundle;
            assert_eq!(super::data::header_hash(&bundle.block.header), bundle.block.hash);
            assert_eq!(bundle.receipts.len(), bundle.block.transactions.len());
            for other in [
                TraceMethod::TraceBlock,
                TraceMethod::DebugByHash,
                TraceMethod::DebugByNumber,
            ] {
                compare(&node, &capabilities, other, &bundle).await;
            }
            all.push(bundle);
        }
        let created = all.last().unwrap();
        assert_eq!(created.receipts[0].logs.len(), 1);
        if let Some(traces) = &created.traces {
            println!("{:#?}", traces[0].frames);
        }
        assert_eq!(node.stats().errors(quarry::node::ErrorClass::Malformed), 0);
    }
}

/// Fetches the block by another trace method, where the node has it, and compares.
async fn compare(
    node: &Node,
    capabilities: &Capabilities,
    method: TraceMethod,
    bundle: &quarry::model::Bundle,
) {
    let capabilities = Capabilities {
        traces: method,
        ..capabilities.clone()
    };
    match node.bundle(bundle.block.number(), &capabilities).await {
        Ok(fetched) => {
            for (a, b) in fetched
                .bundle
                .traces
                .iter()
                .flatten()
                .zip(bundle.traces.iter().flatten())
            {
                // This node's `trace_block` tells calls of precompiles too, which are left out of `callTracer`.
                let facts = |trace: &TransactionTrace| -> Vec<_> {
                    let frames = trace.frames.iter();
                    let frames = frames.filter(|frame| frame.to != Some(Address::with_last_byte(4)));
                    frames
                        .map(|frame| (frame.kind, frame.from, frame.to, frame.value, frame.error.clone()))
                        .collect()
                };
                assert_eq!(facts(a), facts(b), "{a:#?} {b:#?}");
            }
        }
        Err(error) => println!("{}: {error}", method.as_str()),
    }
}
