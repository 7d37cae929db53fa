//! Etherscan's dialect over connections of our own.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::chain::{HEAD, World};
use crate::plain::{account, topic};

/// A form has room for a hundred thousand parameters; those that it may have are read, whatever they are.
#[tokio::test]
async fn forms_of_too_many_pairs_are_refused() {
    let world = World::start(HEAD + 1, None).await;
    let target = format!("/api?apikey=1{}", "&tag=1".repeat(1_300));
    let asked = format!("module=account&action=balance&address={}", account(1));
    let refused =
        r#"{"status":"0","message":"NOTOK","result":"Error! At most 1000 parameters of a form are allowed"}"#;
    for pair in ["gas=1&", "zzz=1&", "a&", "&"] {
        let most = format!("{}{asked}", pair.repeat(997));
        let reply = world.server.post(&target, &most).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert!(reply.body.contains("Duplicate parameter: tag"), "{}", reply.body);
        for count in [998, 43_000] {
            let many = format!("{}{asked}", pair.repeat(count));
            let reply = world.server.post(&target, &many).await;
            assert_eq!((reply.status, reply.body.as_str()), (200, refused), "{pair}");
        }
    }
    // What a refusal looks like is of the module that the form named.
    for (module, begins) in [("proxy", r#"{"jsonrpc""#), ("account", r#"{"status":"0""#)] {
        for action in ["eth_getTransactionCount", "balance", "none"] {
            let form = format!("module={module}&action={action}&address=1&tag=1");
            let reply = world.server.post("/api", &form).await;
            assert!(reply.body.starts_with(begins), "{form}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn the_list_of_chains_says_where_its_client_found_it() {
    let world = World::start(HEAD + 1, None).await;
    let reply = world.server.get("/v2/chainlist").await;
    let url = |body: &str| {
        let list: Value = serde_json::from_str(body).unwrap();
        list["result"][0]["apiurl"].as_str().unwrap().to_owned()
    };
    assert_eq!(url(&reply.whole_body()), "http://test/v2/api?chainid=7");
    // Over HTTP/2 there is no header that says it.
    let io = hyper_util::rt::TokioIo::new(world.server.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::get("http://explorer.example:8080/v2/chainlist");
    let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert_eq!(url(&body), "http://explorer.example:8080/v2/api?chainid=7");
}

/// A form has room for thousands of topics, and each may call for a list in each of the operators.
#[tokio::test]
async fn forms_of_too_many_topics_are_refused() {
    let world = World::start(HEAD + 1, None).await;
    let ask = async |counts: [u64; 4], operators: &str| {
        let topics = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let topics = topics.map(|(position, &count)| {
            let values: Vec<String> = (0..count).map(|n| topic(n).to_string()).collect();
            format!("&topic{position}={}", values.join(","))
        });
        let form = format!(
            "module=logs&action=getLogs{}{operators}",
            topics.collect::<String>()
        );
        world.server.post("/api", &form).await.whole_body()
    };
    let or =
        "&topic0_1_opr=or&topic1_2_opr=or&topic2_3_opr=or&topic0_2_opr=or&topic0_3_opr=or&topic1_3_opr=or";
    for (counts, operators, refused) in [
        ([1_000, 1_000, 0, 0], "", None),
        (
            [0, 0, 1_001, 0],
            "",
            Some("At most 1000 values of topic2 are allowed"),
        ),
        // Each topic is in three of the six.
        ([341; 4], or, None),
        (
            [342; 4],
            or,
            Some("At most 4096 topic values are allowed, those of a topic once for each of its operators"),
        ),
        ([342; 4], &or.replace("or&", "and&"), None),
    ] {
        let body = ask(counts, operators).await;
        match refused {
            Some(text) => assert!(body.contains(text), "{counts:?}: {body}"),
            None => assert!(!body.contains("At most"), "{counts:?}: {body}"),
        }
    }
}

#[tokio::test]
async fn numbers_are_taken_and_said_as_they_are() {
    let world = World::start(HEAD + 1, None).await;
    let balance = format!("module=account&action=balance&address={}", account(1));
    for (id, is_taken) in [
        ("7", true),
        ("007", true),
        ("+7", true),
        ("%2B7", false),
        ("0x7", false),
    ] {
        let (_, body) = world.get(&format!("/v2/api?chainid={id}&{balance}")).await;
        assert_eq!(body["status"], if is_taken { "1" } else { "0" }, "{id}: {body}");
    }
    let beyond = "9".repeat(90);
    for (given, shown, remaining) in [
        ("0061", "61", Some("2")),
        (
            "18446744073709551615",
            "18446744073709551615",
            Some("18446744073709551556"),
        ),
        (
            "99999999999999999999",
            "99999999999999999999",
            Some("99999999999999999940"),
        ),
        (&*beyond, &*beyond, None),
    ] {
        let target = format!("/api?module=block&action=getblockcountdown&blockno={given}");
        let (_, body) = world.get(&target).await;
        let result = &body["result"];
        assert_eq!(result["CountdownBlock"], shown, "{body}");
        assert_eq!(result["CurrentBlock"], HEAD.to_string());
        if let Some(remaining) = remaining {
            assert_eq!(result["RemainingBlock"], remaining, "{body}");
        }
    }
}
