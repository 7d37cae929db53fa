//! The sockets of a fake node: HTTP, and a Unix socket that announces heads.

use super::fake_node::State;
use super::fault::{Fault, spoil};
use super::render;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::broadcast::error::RecvError;

/// Serves HTTP connections.
pub async fn accept(listener: tokio::net::TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| serve(request, &state));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// An answer of the transport: status, `Retry-After` and body.
struct Reply {
    status: u16,
    retry_after: Option<u64>,
    body: String,
}

#[derive(Debug)]
struct HungUp;

impl std::fmt::Display for HungUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hung up")
    }
}

impl std::error::Error for HungUp {}

async fn serve(request: Request<Incoming>, state: &Mutex<State>) -> Result<Response<Full<Bytes>>, HungUp> {
    let body = request
        .into_body()
        .collect()
        .await
        .map_err(|_| HungUp)?
        .to_bytes();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let busy = Busy::enter(state);
    let reply = match &request {
        Value::Array(requests) => {
            let mut bodies = Vec::new();
            for request in requests {
                bodies.push(answer(request, state, &busy).await?.body);
            }
            Reply {
                status: 200,
                retry_after: None,
                body: format!("[{}]", bodies.join(",")),
            }
        }
        request => answer(request, state, &busy).await?,
    };
    let mut response = Response::builder()
        .status(reply.status)
        .header("content-type", "application/json");
    if let Some(seconds) = reply.retry_after {
        response = response.header("retry-after", seconds);
    }
    Ok(response.body(Full::new(Bytes::from(reply.body))).unwrap())
}

/// Counts a request for as long as it is answered.
struct Busy<'a> {
    state: &'a Mutex<State>,
    too_many: bool,
}

impl<'a> Busy<'a> {
    fn enter(shared: &'a Mutex<State>) -> Self {
        let mut state = shared.lock().unwrap();
        state.in_flight += 1;
        state.in_flight_max = state.in_flight_max.max(state.in_flight);
        let too_many = state.in_flight_allowed < state.in_flight;
        Self {
            state: shared,
            too_many,
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.state.lock().unwrap().in_flight -= 1;
    }
}

async fn answer(request: &Value, state: &Mutex<State>, busy: &Busy<'_>) -> Result<Reply, HungUp> {
    while state.lock().unwrap().stalled {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let machine = state.lock().unwrap().machine.clone();
    if let Some(machine) = machine {
        machine
            .answer(request["method"].as_str().unwrap_or_default())
            .await;
    }
    let latency = state.lock().unwrap().latency;
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    if busy.too_many {
        return Ok(Reply {
            status: 429,
            retry_after: None,
            body: "too many requests".to_owned(),
        });
    }
    let (method, params) = (request["method"].as_str().unwrap_or_default(), &request["params"]);
    let (fault, result) = {
        let mut state = state.lock().unwrap();
        *state.asked.entry(method.to_owned()).or_default() += 1;
        let told = (state.next_fault(method, params), state.result(method, params));
        state.leave_after(method, params);
        told
    };
    let mut result = result;
    let mut reply = Reply {
        status: 200,
        retry_after: None,
        body: String::new(),
    };
    match &fault {
        Some(Fault::TooManyRequests(retry_after)) => {
            reply = Reply {
                status: 429,
                retry_after: *retry_after,
                body: "slow down".to_owned(),
            };
            return Ok(reply);
        }
        Some(Fault::ServerError) => {
            reply = Reply {
                status: 500,
                retry_after: None,
                body: "internal".to_owned(),
            };
            return Ok(reply);
        }
        Some(Fault::Status(_, status) | Fault::TagStatus(status)) => {
            reply = Reply {
                status: *status,
                retry_after: None,
                body: "<html>forbidden</html>".to_owned(),
            };
            return Ok(reply);
        }
        Some(Fault::Hangup) => return Err(HungUp),
        Some(Fault::Slow(more) | Fault::SlowMethod(_, more)) => tokio::time::sleep(*more).await,
        Some(Fault::Lost(_) | Fault::LostBlock(..)) => std::future::pending().await,
        Some(Fault::Lacks { .. }) => result = Err((-32001, "Resource not found".to_owned())),
        Some(Fault::Expired { .. }) => result = Err((4444, "pruned history unavailable".to_owned())),
        Some(Fault::FailsBlock(..)) => result = Err((-32603, "internal error".to_owned())),
        Some(Fault::Refuses(_, code, message) | Fault::RpcError(code, message)) => {
            result = Err((*code, (*message).to_owned()))
        }
        Some(fault) => {
            if let Ok(value) = &mut result {
                spoil(fault, value);
            }
        }
        None => {}
    }
    let mut object = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
        Err((code, message)) => {
            json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})
        }
    };
    match fault {
        Some(Fault::OtherId) => object["id"] = json!(request["id"].as_u64().unwrap_or(0) + 1_000),
        Some(Fault::NoId) => {
            object.as_object_mut().map(|fields| fields.remove("id"));
        }
        _ => {}
    }
    reply.body = object.to_string();
    match fault {
        Some(Fault::Truncated) => reply.body.truncate(reply.body.len() * 2 / 3),
        Some(Fault::Garbage) => reply.body = "<html>\u{0} bad gateway".to_owned(),
        _ => {}
    }
    Ok(reply)
}

/// A header as a subscriber gets it.
fn announcement(header: &Value) -> String {
    json!({
        "jsonrpc": "2.0", "method": "eth_subscription",
        "params": {"subscription": "0x1", "result": header},
    })
    .to_string()
}

/// Takes the whole requests off the beginning of what was read.
pub fn take_requests(buffer: &mut Vec<u8>) -> Vec<Value> {
    let mut requests = serde_json::Deserializer::from_slice(buffer).into_iter::<Value>();
    let mut found = Vec::new();
    while let Some(Ok(request)) = requests.next() {
        found.push(request);
    }
    let end = requests.byte_offset();
    buffer.drain(..end);
    found
}

/// Answers requests that come over a socket, one after the other, and announces new heads.
pub async fn converse(
    mut stream: tokio::net::UnixStream,
    state: Arc<Mutex<State>>,
    mut heads: tokio::sync::broadcast::Receiver<Value>,
) -> Result<(), Infallible> {
    let mut buffer = Vec::new();
    let mut subscribed = false;
    loop {
        let mut texts = Vec::new();
        tokio::select! {
            read = stream.read_buf(&mut buffer) => {
                if read.unwrap_or(0) == 0 {
                    return Ok(());
                }
                for request in take_requests(&mut buffer) {
                    if request["method"] == "eth_subscribe" {
                        subscribed = true;
                        texts.push(json!({"jsonrpc": "2.0", "id": request["id"], "result": "0x1"}).to_string());
                        let state = state.lock().unwrap();
                        let newest = state.chain.bundle(state.chain.head());
                        texts.extend(newest.map(|bundle| announcement(&render::block(&bundle.block, false))));
                        continue;
                    }
                    let busy = Busy::enter(&state);
                    if let Ok(reply) = answer(&request, &state, &busy).await {
                        texts.push(reply.body);
                    }
                }
            }
            header = heads.recv() => {
                match header {
                    Ok(header) if subscribed => texts.push(announcement(&header)),
                    // Nobody asked, or some were missed: a subscription may lose some.
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Ok(()),
                }
            }
        }
        for text in texts {
            if stream.write_all(text.as_bytes()).await.is_err() {
                return Ok(());
            }
        }
    }
}
