//! Malformed requests of every operation, with the status and the text they are told.

use quarry::http::Limits;

use crate::client::{Server, api};

const A: &str = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2";
const H: &str = "0x00000000000000000000000000000000000000000000000000000000000000Aa";
const UNCONFIGURED: (u16, &str) = (503, "Chain mainnet is not configured");

/// Targets may use `$A` for a good address and `$H` for a good hash or topic.
const LOGS: &[(&str, (u16, &str))] = &[
    ("", (400, "At least one topic is required")),
    ("address=&topic0=", (400, "At least one topic is required")),
    ("address=$A", UNCONFIGURED),
    ("address=$A&chain=mainnet", UNCONFIGURED),
    (
        "address=$A&chain=testnet",
        (503, "Chain testnet is not configured"),
    ),
    ("topic0=$H", UNCONFIGURED),
    ("topic3=$H,$H", UNCONFIGURED),
    ("topic0=$H+,+$H", UNCONFIGURED),
    ("chain=ropsten", (400, "Invalid chain")),
    ("chain=Mainnet&address=1", (400, "Invalid chain")),
    ("chain=%ff&address=1", (400, "Invalid chain")),
    ("chain=mainnet&chain=mainnet", (400, "Duplicate parameter: chain")),
    ("address=0x12", (400, "Invalid address format")),
    ("address=$H", (400, "Invalid address format")),
    ("address=%ff", (400, "Invalid address format")),
    ("address=$A+", (400, "Invalid address format")),
    ("address=$A,$A", (400, "Invalid address format")),
    ("address=$A&address=$A", (400, "Duplicate parameter: address")),
    ("address=$A&%61ddress=$A", (400, "Duplicate parameter: address")),
    ("topic0=0x12", (400, "Invalid topic format")),
    ("topic0=$A", (400, "Invalid topic format")),
    ("topic0=$H,", (400, "Invalid topic format")),
    ("address=$A&topic2=zz", (400, "Invalid topic format")),
    (
        "topic0=$H&topic0_1_opr=and",
        (400, "Operator topic0_1_opr names a topic that is not given"),
    ),
    (
        "address=$A&topic1_3_opr=or",
        (400, "Operator topic1_3_opr names a topic that is not given"),
    ),
    (
        "topic0=$H&topic1=$H&topic0_1_opr=xor",
        (400, "Invalid topic0_1_opr parameter"),
    ),
    (
        "topic0=$H&topic1=$H&topic0_1_opr=AND",
        (400, "Invalid topic0_1_opr parameter"),
    ),
    ("topic0=$H&topic1=$H&topic0_1_opr=or", UNCONFIGURED),
    (
        "topic1=$H&topic2=$H&topic1_2_opr=and&topic1_2_opr=and",
        (400, "Duplicate parameter: topic1_2_opr"),
    ),
    ("address=$A&fromblock=x", (400, "Invalid fromblock parameter")),
    ("address=$A&fromblock=0x10", (400, "Invalid fromblock parameter")),
    ("address=$A&fromblock=-1", (400, "Invalid fromblock parameter")),
    ("address=$A&fromblock=%2B1", (400, "Invalid fromblock parameter")),
    ("address=$A&fromblock=1.5", (400, "Invalid fromblock parameter")),
    ("address=$A&toblock=99999999999999999999", UNCONFIGURED),
    ("address=$A&toblock=99999999", UNCONFIGURED),
    ("address=$A&toblock=Latest", (400, "Invalid toblock parameter")),
    ("address=$A&fromblock=latest&toblock=latest", UNCONFIGURED),
    ("address=$A&fromblock=2&toblock=1", (400, "Invalid block range")),
    ("address=$A&page=0", (400, "Invalid page parameter")),
    ("address=$A&page=18446744073709551615", UNCONFIGURED),
    ("address=$A&page=18446744073709551616", UNCONFIGURED),
    ("address=$A&fromblock=18446744073709551616", UNCONFIGURED),
    ("address=$A&toblock=100000000000000000000", UNCONFIGURED),
    ("address=$A&offset=0", (400, "Invalid offset parameter")),
    ("address=$A&offset=10001", (400, "Invalid offset parameter")),
    ("address=$A&offset=10000", UNCONFIGURED),
    ("address=$A&offset=ten", (400, "Invalid offset parameter")),
    ("address=$A&sort=ASC", (400, "Invalid sort parameter")),
    ("address=$A&sort=desc", UNCONFIGURED),
    (
        "address=$A&sort=asc&sort=desc",
        (400, "Duplicate parameter: sort"),
    ),
    ("address=$A&cursor=%20nonsense", (400, "Invalid cursor parameter")),
    ("address=$A&unknown=1&unknown=2&x=%ff&%zz=1", UNCONFIGURED),
];

const PROXY: &[(&str, (u16, &str))] = &[
    ("", (400, "Missing required parameter: action")),
    ("action=", (400, "Missing required parameter: action")),
    ("chain=x", (400, "Invalid chain")),
    ("action=eth_call", (400, "Invalid action parameter")),
    ("action=ETH_BLOCKNUMBER", (400, "Invalid action parameter")),
    (
        "action=eth_blockNumber&action=eth_blockNumber",
        (400, "Duplicate parameter: action"),
    ),
    ("action=eth_blockNumber", UNCONFIGURED),
    ("action=eth_blockNumber&tag=1&tag=2", UNCONFIGURED),
    (
        "action=eth_getBlockByNumber",
        (400, "Missing required parameter: tag"),
    ),
    (
        "action=eth_getBlockByNumber&tag=16",
        (400, "Invalid tag parameter"),
    ),
    (
        "action=eth_getBlockByNumber&tag=0x",
        (400, "Invalid tag parameter"),
    ),
    (
        "action=eth_getBlockByNumber&tag=0xzz",
        (400, "Invalid tag parameter"),
    ),
    (
        "action=eth_getBlockByNumber&tag=0x10000000000000000",
        UNCONFIGURED,
    ),
    (
        "action=eth_getBlockByNumber&tag=pending",
        (400, "Invalid tag parameter"),
    ),
    (
        "action=eth_getBlockByNumber&tag=%ff",
        (400, "Invalid tag parameter"),
    ),
    (
        "action=eth_getBlockByNumber&tag=0x1&tag=0x1",
        (400, "Duplicate parameter: tag"),
    ),
    (
        "action=eth_getBlockByNumber&tag=0x1&boolean=1",
        (400, "Invalid boolean parameter"),
    ),
    ("action=eth_getBlockByNumber&tag=0x1&boolean=true", UNCONFIGURED),
    (
        "action=eth_getBlockByNumber&tag=earliest&boolean=false",
        UNCONFIGURED,
    ),
    (
        "action=eth_getBlockTransactionCountByNumber",
        (400, "Missing required parameter: tag"),
    ),
    (
        "action=eth_getBlockTransactionCountByNumber&tag=1",
        (400, "Invalid tag parameter"),
    ),
    (
        "action=eth_getBlockTransactionCountByNumber&tag=safe",
        UNCONFIGURED,
    ),
    (
        "action=eth_getTransactionByHash",
        (400, "Missing required parameter: txhash"),
    ),
    (
        "action=eth_getTransactionByHash&txhash=0x1",
        (400, "Invalid transaction hash format"),
    ),
    (
        "action=eth_getTransactionByHash&txhash=%ff",
        (400, "Invalid transaction hash format"),
    ),
    ("action=eth_getTransactionByHash&txhash=$H", UNCONFIGURED),
    (
        "action=eth_getTransactionByBlockNumberAndIndex&index=0x0",
        (400, "Missing required parameter: tag"),
    ),
    (
        "action=eth_getTransactionByBlockNumberAndIndex&tag=0x0",
        (400, "Missing required parameter: index"),
    ),
    (
        "action=eth_getTransactionByBlockNumberAndIndex&tag=0x0&index=1",
        (400, "Invalid index parameter"),
    ),
    (
        "action=eth_getTransactionByBlockNumberAndIndex&tag=5&index=0x1",
        (400, "Invalid tag parameter"),
    ),
    (
        "action=eth_getTransactionByBlockNumberAndIndex&tag=0x0&index=0x1",
        UNCONFIGURED,
    ),
    (
        "action=eth_getTransactionCount",
        (400, "Missing required parameter: address"),
    ),
    (
        "action=eth_getTransactionCount&address=0x1",
        (400, "Invalid address format"),
    ),
    (
        "action=eth_getTransactionCount&address=$A&tag=7",
        (400, "Invalid tag parameter"),
    ),
    ("action=eth_getTransactionCount&address=$A", UNCONFIGURED),
    (
        "action=eth_getTransactionReceipt",
        (400, "Missing required parameter: txhash"),
    ),
    (
        "action=eth_getTransactionReceipt&txhash=$A",
        (400, "Invalid transaction hash format"),
    ),
    (
        "action=eth_getTransactionReceipt&txhash=$H&chain=testnet",
        (503, "Chain testnet is not configured"),
    ),
];

const PATHS: &[(&str, (u16, &str))] = &[
    ("//", (404, "Route not found")),
    ("/api", (404, "Route not found")),
    ("/api/logs/get-logs/", (404, "Route not found")),
    ("/api/logs/getLogs", (404, "Route not found")),
    ("/api/stats/no-such-figure?chain=x", (404, "Route not found")),
    ("/api/block/12/transaction-count", UNCONFIGURED),
    ("/api/block/%31%32/transaction-count", UNCONFIGURED),
    ("/api/block//transaction-count", (404, "Route not found")),
    (
        "/api/block/latest/transaction-count",
        (400, "Invalid blockNumber parameter"),
    ),
    (
        "/api/block/0x1/transaction-count",
        (400, "Invalid blockNumber parameter"),
    ),
    (
        "/api/block/+1/transaction-count",
        (400, "Invalid blockNumber parameter"),
    ),
    (
        "/api/block/%ff/transaction-count",
        (400, "Invalid blockNumber parameter"),
    ),
    ("/api/block/18446744073709551616/transaction-count", UNCONFIGURED),
    ("/api/block/x/transaction-count?chain=y", (400, "Invalid chain")),
    ("/api/block/timestamp/1700000000/block-number", UNCONFIGURED),
    (
        "/api/block/timestamp/1700000000/block-number?closest=after",
        UNCONFIGURED,
    ),
    (
        "/api/block/timestamp/yesterday/block-number",
        (400, "Invalid unixTimestamp parameter"),
    ),
    (
        "/api/block/timestamp/99999999999999999999/block-number",
        UNCONFIGURED,
    ),
    (
        "/api/block/timestamp/x/block-number?closest=y",
        (400, "Invalid unixTimestamp parameter"),
    ),
    (
        "/api/block/timestamp/1/block-number?closest=y",
        (400, "Invalid closest parameter"),
    ),
    (
        "/api/block/timestamp/1/block-number?closest=after&closest=after",
        (400, "Duplicate parameter: closest"),
    ),
    ("/api/transaction/$H/status", UNCONFIGURED),
    (
        "/api/transaction/0x12/status",
        (400, "Invalid transaction hash format"),
    ),
    (
        "/api/transaction/$A/status",
        (400, "Invalid transaction hash format"),
    ),
    (
        "/api/transaction/$H0/status",
        (400, "Invalid transaction hash format"),
    ),
    (
        "/api/transaction/$H/status?chain=testnet",
        (503, "Chain testnet is not configured"),
    ),
];

/// What the lists of an account refuse, after `/api/account/$A/<list>?`.
const OF_ACCOUNT: &[(&str, (u16, &str))] = &[
    ("", UNCONFIGURED),
    ("chain=testnet", (503, "Chain testnet is not configured")),
    ("chain=x", (400, "Invalid chain")),
    ("startblock=x", (400, "Invalid startblock parameter")),
    ("startblock=0x10", (400, "Invalid startblock parameter")),
    ("endblock=-1", (400, "Invalid endblock parameter")),
    ("endblock=Latest", (400, "Invalid endblock parameter")),
    ("startblock=latest&endblock=99999999", UNCONFIGURED),
    ("startblock=5&endblock=4", (400, "Invalid block range")),
    (
        "startblock=5&startblock=5",
        (400, "Duplicate parameter: startblock"),
    ),
    ("page=0", (400, "Invalid page parameter")),
    ("page=1.5", (400, "Invalid page parameter")),
    ("page=18446744073709551615&offset=10000", UNCONFIGURED),
    ("offset=0", (400, "Invalid offset parameter")),
    ("offset=10001", (400, "Invalid offset parameter")),
    ("sort=up", (400, "Invalid sort parameter")),
    ("sort=desc&page=&offset=", UNCONFIGURED),
    ("cursor=zz", (400, "Invalid cursor parameter")),
    ("fromblock=x&address=1&hash=1", UNCONFIGURED),
];

/// What A4, A5 and A6 refuse besides.
const ZERO_VALUE: &[(&str, (u16, &str))] = &[
    ("includeZeroValue=1", (400, "Invalid includeZeroValue parameter")),
    (
        "includeZeroValue=TRUE",
        (400, "Invalid includeZeroValue parameter"),
    ),
    ("includeZeroValue=false", UNCONFIGURED),
];

/// A5 and A6 share a path.
const INTERNAL: &[(&str, (u16, &str))] = &[
    ("", (400, "Missing required parameter: startblock")),
    ("hash=", (400, "Missing required parameter: startblock")),
    ("endblock=5", (400, "Missing required parameter: startblock")),
    ("startblock=5", (400, "Missing required parameter: endblock")),
    ("startblock=x", (400, "Missing required parameter: endblock")),
    ("startblock=x&endblock=5", (400, "Invalid startblock parameter")),
    ("startblock=5&endblock=x", (400, "Invalid endblock parameter")),
    ("startblock=5&endblock=4", (400, "Invalid block range")),
    ("startblock=5&endblock=latest", UNCONFIGURED),
    (
        "startblock=5&endblock=5&offset=0",
        (400, "Invalid offset parameter"),
    ),
    ("hash=$H", UNCONFIGURED),
    ("hash=$H&startblock=5&endblock=4", UNCONFIGURED),
    ("hash=$A", (400, "Invalid transaction hash format")),
    ("hash=%ff", (400, "Invalid transaction hash format")),
    ("hash=$H&hash=$H", (400, "Duplicate parameter: hash")),
    (
        "hash=1&startblock=5&endblock=4",
        (400, "Invalid transaction hash format"),
    ),
    ("hash=$H&page=0", (400, "Invalid page parameter")),
    ("hash=$H&sort=up", (400, "Invalid sort parameter")),
    ("hash=$H&chain=testnet", (503, "Chain testnet is not configured")),
];

async fn check(prefix: &str, table: &[(&str, (u16, &str))]) {
    let server = Server::start(api(), Limits::default()).await;
    for (target, (status, text)) in table {
        let target = format!("{prefix}{target}").replace("$A", A).replace("$H", H);
        let reply = server.get(&target).await;
        assert_eq!(reply.status, *status, "{target}: {}", reply.body);
        reply.assert_error(*status, text);
    }
}

#[tokio::test]
async fn logs() {
    check("/api/logs/get-logs?", LOGS).await;
}

#[tokio::test]
async fn proxy() {
    check("/api/proxy?", PROXY).await;
}

#[tokio::test]
async fn lists_of_accounts() {
    for list in ["tx-list", "tx-list-internal", "mined-blocks"] {
        check(&format!("/api/account/$A/{list}?"), OF_ACCOUNT).await;
        for bad in [
            "0x12",
            "$H",
            "%ff",
            "vitalik.eth",
            "C02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2",
        ] {
            let refusal = (400, "Invalid address format");
            check(
                &format!("/api/account/{bad}/{list}?"),
                &[("", refusal), ("page=0", refusal)],
            )
            .await;
        }
        check(
            &format!("/api/account//{list}"),
            &[("", (404, "Route not found"))],
        )
        .await;
    }
    check("/api/account/$A/tx-list-internal?", ZERO_VALUE).await;
    check(
        "/api/account/tx-list-internal?startblock=1&endblock=2&",
        ZERO_VALUE,
    )
    .await;
    check("/api/account/tx-list-internal?hash=$H&", ZERO_VALUE).await;
    check("/api/account/tx-list-internal?", INTERNAL).await;
    check("/api/account/tx-list", &[("", (404, "Route not found"))]).await;
}

#[tokio::test]
async fn paths() {
    check("", PATHS).await;
}

#[tokio::test]
async fn service_routes() {
    let server = Server::start(api(), Limits::default()).await;
    let health = server.get("/health?anything=1").await;
    assert_eq!((health.status, health.body.as_str()), (200, r#"{"status":"ok"}"#));
    let ready = server.get("/ready").await;
    assert_eq!(
        (ready.status, ready.body.as_str()),
        (503, r#"{"status":"not ready","chains":{}}"#)
    );
    assert!(ready.header("retry-after").is_some());
    let status = server.get("/status").await;
    assert_eq!(status.status, 200);
    assert!(
        status.body.starts_with(r#"{"status":"ok","chains":{},"#),
        "{}",
        status.body
    );
}
