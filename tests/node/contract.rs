//! Contracts that lie, revert, return nothing, megabytes or something else, told from a node that fails.

use crate::client::config;
use crate::support::fake_node::{FakeNode, Fault};
use quarry::model::{Address, TokenMetadata, U256};
use quarry::node::{ErrorClass, Node, NodeConfig, NodeError, Told};
use std::sync::atomic::Ordering;
use std::time::Duration;

const TOKEN: Address = Address::repeat_byte(0x11);

fn word(number: u64) -> Vec<u8> {
    U256::from(number).to_be_bytes::<32>().to_vec()
}

fn string(text: &str) -> Vec<u8> {
    [word(32), word(text.len() as u64), text.as_bytes().to_vec()].concat()
}

async fn node_with(
    script: impl Fn(Address, &[u8], u64) -> Result<Vec<u8>, (i64, String)> + Send + 'static,
) -> (FakeNode, Node) {
    let fake = FakeNode::start(1);
    fake.mine(5);
    fake.set_contracts(script);
    let node = Node::connect(config(fake.url())).await.unwrap();
    (fake, node)
}

#[tokio::test]
async fn a_token_is_asked_at_a_block() {
    let (fake, node) = node_with(|token, input, block| {
        assert_eq!(token, TOKEN);
        Ok(match input.first_chunk::<4>().unwrap() {
            [0x06, 0xfd, 0xde, 0x03] => string("Coin of\0 caf\u{e9}"),
            [0x95, 0xd8, 0x9b, 0x41] => [b"OLD".to_vec(), vec![0; 29]].concat(),
            [0x31, 0x3c, 0xe5, 0x67] => word(18),
            [0x18, 0x16, 0x0d, 0xdd] => word(1_000 + block),
            [0x70, 0xa0, 0x82, 0x31] => {
                let holder = input.get(16..36).unwrap();
                assert_eq!(
                    (input.len(), input.get(4..16).unwrap()),
                    (36, [0_u8; 12].as_slice())
                );
                word(u64::from(holder[0]) + block)
            }
            other => panic!("unknown selector {other:?}"),
        })
    })
    .await;
    let metadata = TokenMetadata {
        name: Some("Coin of caf\u{e9}".to_owned()),
        symbol: Some("OLD".to_owned()),
        decimals: Some(18),
    };
    assert_eq!(node.token_metadata(TOKEN, 1).await.unwrap().metadata, metadata);
    assert_eq!(
        node.token_supply(TOKEN, 3).await.unwrap(),
        Told::Value(U256::from(1_003))
    );
    let holder = Address::repeat_byte(0x22);
    let balance = node.token_balance(TOKEN, holder, 2).await.unwrap();
    assert_eq!(balance, Told::Value(U256::from(0x24)));
    // A block that the node lacks is the node's failure, not the contract's.
    let error = node.token_supply(TOKEN, 9).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Rpc, "{error}");
    assert!(fake.asked("eth_call") >= 6);
}

/// Every client has words of its own; none of them is repeated, and none counts as the node's failure.
#[tokio::test]
async fn what_a_contract_does_wrong_is_its_answer() {
    for (code, message) in [
        (3, "execution reverted"),
        (3, "execution reverted: rate limit exceeded"),
        (-32000, "execution reverted"),
        (-32000, "out of gas"),
        (-32000, "invalid opcode: INVALID"),
        (-32000, "stack underflow (0 <=> 2)"),
        (-32000, "invalid jump destination"),
        (-32015, "VM execution error."),
        (-32603, "EVM error InvalidFEOpcode"),
        (-32603, "EVM error OutOfGas"),
        (-32603, "EVM error MemoryOOG"),
        (-32000, "Execution reverted"),
    ] {
        let (fake, node) = node_with(move |_, _, _| Err((code, message.to_owned()))).await;
        let told = node.token_supply(TOKEN, 1).await.unwrap();
        assert_eq!(told, Told::Nothing(message.to_owned()));
        assert_eq!(fake.asked("eth_call"), 1, "{message}");
        assert_eq!(
            node.token_metadata(TOKEN, 1).await.unwrap().metadata,
            TokenMetadata::default()
        );
        for class in ErrorClass::ALL {
            assert_eq!(node.stats().errors(class), 0, "{message}: {class:?}");
        }
        assert_eq!(node.stats().retries.load(Ordering::Relaxed), 0);
    }
    for returned in [
        Vec::new(),
        vec![1; 31],
        // A megabyte, and a text that says it is one.
        vec![0xff; 1 << 20],
        [word(32), word(1 << 20), vec![b'x'; 1 << 20]].concat(),
    ] {
        let bytes = returned.len();
        let (_fake, node) = node_with(move |_, _, _| Ok(returned.clone())).await;
        let told = node.token_balance(TOKEN, TOKEN, 1).await.unwrap();
        assert!(matches!(told, Told::Nothing(_)), "{bytes} bytes: {told:?}");
        assert_eq!(
            node.token_metadata(TOKEN, 1).await.unwrap().metadata,
            TokenMetadata::default(),
            "{bytes} bytes"
        );
    }
    // Something else than was asked for: decimals of 1,000, a number for a text, a text for a number.
    let (_fake, node) = node_with(|_, input, _| {
        Ok(match input.first_chunk::<4>().unwrap() {
            [0x31, 0x3c, 0xe5, 0x67] => word(1_000),
            _ => word(7),
        })
    })
    .await;
    let metadata = node.token_metadata(TOKEN, 1).await.unwrap().metadata;
    assert_eq!((metadata.name.as_deref(), metadata.decimals), (Some(""), None));
}

#[tokio::test]
async fn what_the_node_does_wrong_is_an_error() {
    let (fake, node) = node_with(|_, _, _| Ok(word(1))).await;
    // What can pass is repeated.
    fake.fault(Fault::ServerError, 2);
    assert_eq!(
        node.token_supply(TOKEN, 1).await.unwrap(),
        Told::Value(U256::from(1))
    );
    for (fault, class) in [
        (Fault::ServerError, ErrorClass::HttpStatus),
        (Fault::Hangup, ErrorClass::Transport),
        (Fault::Garbage, ErrorClass::Malformed),
        (Fault::RpcError(-32000, "header not found"), ErrorClass::Rpc),
        (Fault::RpcError(-32000, "missing trie node"), ErrorClass::Rpc),
        (
            Fault::RpcError(-32601, "the method eth_call does not exist"),
            ErrorClass::MethodNotFound,
        ),
        (Fault::TooManyRequests(None), ErrorClass::RateLimited),
    ] {
        fake.fault(fault.clone(), 1_000);
        let error = node.token_supply(TOKEN, 1).await.unwrap_err();
        assert_eq!(error.class(), class, "{fault:?}: {error}");
        assert!(node.token_metadata(TOKEN, 1).await.is_err());
        fake.clear_faults();
    }
    let hasty = NodeConfig {
        light_timeout: Duration::from_millis(50),
        ..config(fake.url())
    };
    let hasty = Node::connect(hasty).await.unwrap();
    fake.fault(Fault::SlowMethod("eth_call", Duration::from_secs(5)), 1_000);
    let error = hasty.token_supply(TOKEN, 1).await.unwrap_err();
    assert!(matches!(error, NodeError::Timeout { .. }), "{error}");
}
