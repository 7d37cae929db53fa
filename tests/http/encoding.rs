//! Codings: what a client gets back is what it would have got without one.

use std::io::Read as _;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use quarry::http::Limits;

use crate::mined::{Mined, header};

fn decode(coding: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        "gzip" => flate2::read::GzDecoder::new(body).read_to_end(&mut out).unwrap(),
        "br" => brotli::Decompressor::new(body, 4096)
            .read_to_end(&mut out)
            .unwrap(),
        "zstd" => zstd::stream::read::Decoder::new(body)
            .unwrap()
            .read_to_end(&mut out)
            .unwrap(),
        other => panic!("{other}"),
    };
    out
}

fn varies_by_coding(response: &hyper::Response<Bytes>) -> bool {
    let mut values = response.headers().get_all("vary").iter();
    values.any(|value| value == "accept-encoding")
}

/// A body in frames, a whole one, and one that fits into a packet.
fn targets(world: &Mined) -> [String; 3] {
    let list = format!("/api/logs/get-logs?address={}", world.busiest());
    [
        list.clone(),
        format!("{list}&offset=20"),
        "/api/proxy?action=eth_blockNumber".to_owned(),
    ]
}

#[tokio::test]
async fn every_coding_gives_the_bytes_of_none() {
    let world = Mined::start(40, Limits::default()).await;
    let [long, whole, small] = targets(&world);
    for coding in ["gzip", "br", "zstd"] {
        for target in [&long, &whole] {
            let plain = world.get(target, &[]).await;
            assert!(varies_by_coding(&plain));
            assert_eq!(header(&plain, "content-encoding"), None);
            let encoded = world.get(target, &[("accept-encoding", coding)]).await;
            assert_eq!(header(&encoded, "content-encoding"), Some(coding));
            assert!(varies_by_coding(&encoded));
            assert_eq!(
                header(&encoded, "content-length").is_some(),
                target == &whole,
                "a length only where it is known"
            );
            assert!(3 * encoded.body().len() < plain.body().len(), "{coding}");
            assert_eq!(decode(coding, encoded.body()), *plain.body(), "{coding} {target}");
            // One tag for all codings: strong for the bytes as they are, weak for those made of them.
            let (strong, weak) = (header(&plain, "etag").unwrap(), header(&encoded, "etag").unwrap());
            assert_eq!(weak, format!("W/{strong}"));
            for tag in [strong, weak] {
                let again = world
                    .get(target, &[("accept-encoding", coding), ("if-none-match", tag)])
                    .await;
                assert_eq!(
                    (again.status().as_u16(), header(&again, "etag")),
                    (304, Some(weak))
                );
                assert_eq!(header(&again, "content-encoding"), None);
            }
        }
        let tiny = world.get(&small, &[("accept-encoding", coding)]).await;
        assert_eq!(header(&tiny, "content-encoding"), None);
        assert!(varies_by_coding(&tiny));
    }
}

#[tokio::test]
async fn weights_and_refusals_are_heeded() {
    let world = Mined::start(40, Limits::default()).await;
    let [_, whole, small] = targets(&world);
    for (accepted, large, tiny) in [
        ("gzip, deflate, br, zstd", Some("zstd"), None),
        ("gzip;q=0.9, br;q=0.8", Some("gzip"), None),
        ("identity, gzip;q=0.5", None, None),
        ("deflate", None, None),
        ("*", Some("gzip"), None),
        ("gzip, identity;q=0", Some("gzip"), Some("gzip")),
        ("br, *;q=0", Some("br"), Some("br")),
        ("*;q=0", None, None),
    ] {
        for (target, coding) in [(&whole, large), (&small, tiny)] {
            let response = world.get(target, &[("accept-encoding", accepted)]).await;
            assert_eq!(
                header(&response, "content-encoding"),
                coding,
                "{accepted} {target}"
            );
            let plain = world.get(target, &[]).await;
            let body = coding.map_or(response.body().to_vec(), |coding| decode(coding, response.body()));
            assert_eq!(body, *plain.body());
        }
    }
    // Errors stay as they are.
    let error = world
        .get("/nowhere", &[("accept-encoding", "gzip, identity;q=0")])
        .await;
    assert_eq!(
        (error.status().as_u16(), header(&error, "content-encoding")),
        (404, None)
    );
}

#[tokio::test]
async fn head_tells_what_get_would() {
    let world = Mined::start(40, Limits::default()).await;
    let mut targets = targets(&world).to_vec();
    targets.extend(["/health", "/status", "/metrics", "/nowhere"].map(str::to_owned));
    for target in &targets {
        for headers in [
            &[][..],
            &[("accept-encoding", "gzip")],
            &[("accept-encoding", "zstd")],
        ] {
            let get = world.get(target, headers).await;
            let head = world.ask("HEAD", target, headers).await;
            assert_eq!((head.status(), head.body().len()), (get.status(), 0), "{target}");
            for name in get.headers().keys() {
                // What differs from request to request; pages of figures count themselves.
                let own = ["date", "x-request-id", "transfer-encoding"].contains(&name.as_str());
                if !own && !["/metrics", "/status"].contains(&target.as_str()) {
                    let values =
                        [&head, &get].map(|it| it.headers().get_all(name).iter().collect::<Vec<_>>());
                    assert_eq!(values[0], values[1], "{target} {name}");
                }
            }
            for name in head.headers().keys() {
                assert!(get.headers().contains_key(name), "{target} {name}");
            }
        }
    }
    let list = &targets[0];
    let tag = header(&world.get(list, &[]).await, "etag").unwrap().to_owned();
    let head = world.ask("HEAD", list, &[("if-none-match", &tag)]).await;
    assert_eq!(
        (head.status().as_u16(), header(&head, "content-length")),
        (304, None)
    );
}

#[tokio::test]
async fn codings_over_http2() {
    let world = Mined::start(40, Limits::default()).await;
    let [long, ..] = targets(&world);
    let plain = world.get(&long, &[]).await;
    let io = hyper_util::rt::TokioIo::new(world.server.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let asked = ["gzip", "br", "zstd", "identity"].map(|coding| {
        let mut sender = sender.clone();
        let request = hyper::Request::builder()
            .uri(format!("http://test{long}"))
            .header("accept-encoding", coding)
            .body(http_body_util::Empty::<Bytes>::new())
            .unwrap();
        // All on one connection at once.
        tokio::spawn(async move {
            let response = sender.send_request(request).await.unwrap();
            (coding, response.into_body().collect().await.unwrap().to_bytes())
        })
    });
    for task in asked {
        let (coding, body) = task.await.unwrap();
        let body = if coding == "identity" {
            body.to_vec()
        } else {
            decode(coding, &body)
        };
        assert_eq!(body, *plain.body(), "{coding}");
    }
}
