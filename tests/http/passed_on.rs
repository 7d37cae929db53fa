//! What the Etherscan-compatible module `proxy` passes on to the node: in the form that every node takes.

use serde_json::{Value, json};

use crate::chain::World;

const TO: &str = "0xAB00000000000000000000000000000000000001";
const LOWER: &str = "0xab00000000000000000000000000000000000001";

#[tokio::test]
async fn questions_are_passed_on_in_the_form_that_nodes_take() {
    let world = World::start(60, Some(Ok(7))).await;
    let call = |data: &str| json!({"to": LOWER, "data": data});
    let rows: [(String, Value); 8] = [
        (
            format!("eth_call&to={TO}&data=0X12aB&tag=0x01"),
            json!([call("0x12ab"), "0x1"]),
        ),
        (
            format!("eth_call&to={TO}&data=0x12aB&tag=0X0A"),
            json!([call("0x12ab"), "0xa"]),
        ),
        (
            format!("eth_call&to={TO}&data=0x&tag=pending"),
            json!([call("0x"), "pending"]),
        ),
        (
            format!("eth_call&to={TO}&data=0X&gas=0X0Ff&gasPrice=16&value=0x00"),
            json!([{"to": LOWER, "data": "0x", "gas": "0xff", "gasPrice": "0x10", "value": "0x0"}, "latest"]),
        ),
        (
            format!("eth_estimateGas&to={TO}&data=0X12aB"),
            json!([call("0x12ab")]),
        ),
        (
            format!("eth_getCode&address={TO}&tag=0x00"),
            json!([LOWER, "0x0"]),
        ),
        (
            format!("eth_getStorageAt&address={TO}&position=0X0A&tag=safe"),
            json!([LOWER, "0x0a", "safe"]),
        ),
        (
            format!("eth_getStorageAt&address={TO}&position=10&tag=0x0010"),
            json!([LOWER, "0xa", "0x10"]),
        ),
    ];
    for (query, params) in rows {
        let reply = world
            .server
            .get(&format!("/api?module=proxy&action={query}"))
            .await;
        let body = reply.json();
        // Calls come back as errors there.
        let told = [&body["error"]["data"], &body["result"]["params"]];
        assert!(told.contains(&&params), "{query}: {body}");
    }
}
