//! Measures what the transport and the hop to the blocking pool cost against a static hyper answer.
//!
//! `http_hop static|inline|pool ADDRESS`, then for example `wrk -t1 -c64 -d5s http://ADDRESS/`. With `pool`,
//! `/stream` gives 256 MiB frame by frame. `api` is the whole service without chains: any operation is routed,
//! parsed, taken through the pool and refused there.
//! Figures: `docs/decisions/0001-runtime.md`.

#[path = "../tests/support/no_chains.rs"]
mod no_chains;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use no_chains::NoChains;
use quarry::api::{Api, Settings};
use quarry::http::{
    FrameSource, Handled, Handler, HttpError, Lane, Limits, Pool, PoolLimits, Request, json_response, serve,
    stream_frames,
};
use tokio::net::TcpListener;

const BODY: &[u8] =
    br#"{"status":1,"hash":"0x0000000000000000000000000000000000000000000000000000000000000000"}"#;

struct Hop {
    pool: Option<Pool>,
}

/// Rounds of Keccak in a look-up, a quarter of a microsecond each: `ROUNDS`, default none.
fn rounds() -> usize {
    static ROUNDS: std::sync::LazyLock<usize> = std::sync::LazyLock::new(|| {
        std::env::var("ROUNDS")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    });
    *ROUNDS
}

/// Stands for a warm point look-up.
fn work() -> Vec<u8> {
    let mut hash = alloy_primitives::B256::ZERO;
    for _ in 0..rounds() {
        hash = alloy_primitives::keccak256(hash);
    }
    let mut body = BODY.to_vec();
    body.push(if hash[0] == 1 { b'\t' } else { b' ' });
    body
}

struct Frames(usize);

impl FrameSource for Frames {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        let Some(left) = self.0.checked_sub(1) else {
            return Ok(None);
        };
        self.0 = left;
        Ok(Some(Bytes::from(vec![b'x'; 256 * 1024])))
    }
}

impl Handler for Hop {
    fn handle(&self, request: Request) -> Handled {
        let pool = self.pool.clone();
        if let (Some(pool), "/stream") = (&pool, request.path()) {
            let body = stream_frames(pool, Bytes::new(), Box::new(Frames(1024)), None);
            return json_response(hyper::StatusCode::OK, body).into();
        }
        Handled::later(async move {
            let body = match pool {
                Some(pool) => pool.run(Lane::Point, work).await.unwrap_or_default(),
                None => work(),
            };
            json_response(hyper::StatusCode::OK, body)
        })
    }
}

async fn plain(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let service = service_fn(|_| async {
                let mut response = hyper::Response::new(Full::new(Bytes::from_static(BODY)));
                response.headers_mut().insert(
                    "content-type",
                    hyper::header::HeaderValue::from_static("application/json"),
                );
                Ok::<_, Infallible>(response)
            });
            let served = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            drop(served.await);
        });
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let listener = TcpListener::bind(arguments.next().as_deref().unwrap_or("127.0.0.1:18080")).await?;
    let pool = match mode.as_str() {
        "static" => return plain(listener).await,
        "api" => {
            let api = Api::new(
                Arc::new(NoChains),
                Pool::new(PoolLimits::default())?,
                Settings::default(),
            );
            serve(listener, Arc::new(api), Limits::default(), std::future::pending()).await;
            return Ok(());
        }
        "pool" => Some(Pool::new(PoolLimits::default())?),
        _ => None,
    };
    serve(
        listener,
        Arc::new(Hop { pool }),
        Limits::default(),
        std::future::pending(),
    )
    .await;
    Ok(())
}
