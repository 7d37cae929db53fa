//! Accepting, serving and ending connections: a function of a listener and an ending.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::SockRef;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::connection::Socket;
use super::error::HttpError;
use super::handler::{Handled, Handler, Request};
use super::limits::Limits;
use super::rate::{Buckets, Client};
use super::rejection::closing_answer;
use super::sockets::Sockets;
use super::traffic::Traffic;
use super::transport::{Service, respond};
use super::underway::Underway;
use super::upload::Upload;
use super::vitals::{Verdict, Vitals};

/// hyper's own bound on a request head. Well above ours, so that what lies between is parsed and
/// refused by us with a proper answer. Over HTTP/2 what lies above is h2's to refuse, by a bare 431: `max_header_list_size` bounds what
/// it unpacks of each of the streams that come in one read before we see any of them, and to unpack is to make much of a few bytes.
const HEAD_BYTES_MAX: usize = 128 * 1024;

/// More header lines than fit into our bound on their bytes.
const HEADER_LINES_MAX: usize = 4096;

/// Bytes of answers that the kernel takes of us and has not sent yet. Without a bound it takes four megabytes of each connection, and says
/// that there is room again when a third of them is gone: a client that reads 40 KB/s looks like one that takes nothing until then
/// (decision 0058).
const NOT_SENT_MAX: u32 = 512 << 10;

/// Longest pause after failed accepts (no file descriptors left, mostly).
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Failed accepts have a line this often at most: where there are no descriptors each connection that ends makes room for one that fails.
const ACCEPT_LINE_EVERY: Duration = Duration::from_secs(10);

/// How long whoever there is no place for may take to ask and to be told so.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);

/// How long the threads of sockets are waited for at the end. They have nothing left but to drop what requests left behind.
const THREADS_END_MAX: Duration = Duration::from_secs(1);

/// Serves HTTP/1.1 and HTTP/2 without TLS on `listener` until `shutdown` resolves, then lets open
/// requests finish for at most `limits.drain_timeout`; whoever comes meanwhile is told 503. Answers how many connections had to be cut off.
///
/// Over `limits.connections_max` a connection is accepted, told 503 and closed.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    handler: Arc<H>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> usize {
    let limits = Arc::new(limits);
    let buckets = limits.rate.map(|rate| Arc::new(Buckets::new(rate)));
    let traffic = handler.traffic();
    let builder = Arc::new(builder(&limits));
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    let refusals = Arc::new(Semaphore::new(limits.refusals_max));
    let sockets = Sockets::start(limits.socket_threads).unwrap_or_else(|error| {
        tracing::warn!(target: "quarry::http", %error, "no threads of their own for sockets");
        Sockets::default()
    });
    let (end, ended) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut pause = Duration::from_millis(1);
    let (mut failed, mut told) = (0u64, None);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // A peer that gave up is no reason to wait; a lack of descriptors is.
                failed += 1;
                let now = crate::clock::now();
                if told.is_none_or(|told| now - told >= ACCEPT_LINE_EVERY) {
                    tracing::warn!(target: "quarry::http", %error, times = failed, "accept failed");
                    (failed, told) = (0, Some(now));
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
                continue;
            }
        };
        pause = Duration::from_millis(1);
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            traffic.connection_refused();
            if let Ok(refusal) = Arc::clone(&refusals).try_acquire_owned() {
                let told = refuse(stream, peer, "Too many connections", &builder, &limits, &traffic);
                tokio::spawn(async move {
                    told.await;
                    drop(refusal);
                });
            }
            continue;
        };
        // Answers are written whole; waiting to fill a packet only delays them.
        drop(stream.set_nodelay(true));
        drop(SockRef::from(&stream).set_tcp_notsent_lowat(NOT_SENT_MAX));
        let connection = Connection {
            builder: Arc::clone(&builder),
            handler: Arc::clone(&handler),
            limits: Arc::clone(&limits),
            traffic: Arc::clone(&traffic),
            client: Client::new(peer, &limits, buckets.as_ref()),
            ended: ended.clone(),
            end: None,
        };
        let served = async move |stream| {
            connection.run(stream).await;
            drop(permit);
        };
        sockets.deal(&mut connections, stream, served);
    }
    drop(end);
    let mut drained = pin!(drain(connections, limits.drain_timeout));
    let mut late = JoinSet::new();
    let cut = loop {
        tokio::select! {
            // Who waited to be accepted when the end came is not reset without a word.
            biased;
            Ok((stream, peer)) = listener.accept() => if late.len() < limits.refusals_max {
                late.spawn(refuse(stream, peer, "Shutting down", &builder, &limits, &traffic));
            },
            cut = &mut drained => break cut,
        }
        while late.try_join_next().is_some() {}
    };
    drop(listener);
    // Each ends by itself.
    while late.join_next().await.is_some() {}
    sockets.end(THREADS_END_MAX).await;
    cut
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read_timeout)
        // Our bound is on bytes; hyper's own on lines would refuse small heads.
        .max_headers(HEADER_LINES_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .max_concurrent_streams(limits.streams_max)
        .keep_alive_interval(limits.write_timeout)
        .keep_alive_timeout(limits.write_timeout);
    builder
}

struct Connection<H> {
    builder: Arc<auto::Builder<TokioExecutor>>,
    handler: Arc<H>,
    limits: Arc<Limits>,
    traffic: Arc<Traffic>,
    client: Client,
    ended: watch::Receiver<()>,
    /// Fired by what is asked, of one that ends with its first answer.
    end: Option<watch::Sender<()>>,
}

impl<H: Handler> Connection<H> {
    async fn run(self, stream: TcpStream) {
        let Self {
            builder,
            handler,
            limits,
            traffic,
            client,
            mut ended,
            end,
        } = self;
        let _open = Underway::connection(&traffic);
        let vitals = Vitals::new();
        let io = TokioIo::new(Socket::new(stream, Arc::clone(&vitals)));
        // Of this connection, since what all connections count by is written by all cores.
        let answers = Arc::new(Service {
            handler,
            limits: Arc::clone(&limits),
            traffic: Arc::clone(&traffic),
        });
        let service = service_fn(|request: hyper::Request<Incoming>| {
            if let Some(end) = &end {
                end.send_replace(());
            }
            let may_ask = client.may_ask(request.headers());
            match respond(&answers, &vitals, may_ask, request.map(Upload::Coming)) {
                Handled::Now(response) => Either::Left(ready(Ok::<_, Infallible>(response))),
                Handled::Later(response) => Either::Right(response.map(Ok)),
            }
        });
        let mut connection = pin!(builder.serve_connection(io, service));
        let period = (limits.write_timeout.min(limits.header_read_timeout) / 8).max(Duration::from_millis(5));
        let mut watchdog = tokio::time::interval(period);
        let mut leaving = false;
        let mut idle = false;
        loop {
            tokio::select! {
                outcome = connection.as_mut() => {
                    if let Err(error) = outcome {
                        tracing::debug!(target: "quarry::http", %error, "connection ended");
                    }
                    return;
                }
                _ = ended.changed(), if !leaving => {
                    leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
                _ = watchdog.tick() => match vitals.verdict(&limits, traffic.is_cramped_by(vitals.held())) {
                    Verdict::Alive => idle = false,
                    Verdict::Stalled => {
                        traffic.connection_cut_off();
                        vitals.cut_off();
                        tracing::debug!(target: "quarry::http", "client does not take its answer: connection cut off");
                        return;
                    }
                    Verdict::Idle if idle => return,
                    Verdict::Idle => {
                        idle = true;
                        connection.as_mut().graceful_shutdown();
                    }
                },
            }
        }
    }
}

/// What is said to all requests of a connection that there is no place for.
struct Refusing(&'static str);

impl Handler for Refusing {
    fn handle(&self, _: Request) -> Handled {
        Handled::Now(HttpError::unavailable(self.0).into())
    }
}

/// Says 503, in the protocol that the client speaks, and closes. Who does not speak is told so over HTTP/1.1.
fn refuse(
    mut stream: TcpStream,
    peer: SocketAddr,
    because: &'static str,
    builder: &Arc<auto::Builder<TokioExecutor>>,
    limits: &Arc<Limits>,
    traffic: &Arc<Traffic>,
) -> impl Future<Output = ()> + use<> {
    let (end, ended) = watch::channel(());
    let connection = Connection {
        builder: Arc::clone(builder),
        handler: Arc::new(Refusing(because)),
        limits: Arc::clone(limits),
        traffic: Arc::clone(traffic),
        client: Client::new(peer, limits, None),
        ended,
        end: Some(end),
    };
    let answer = closing_answer(&HttpError::unavailable(because));
    let told = async move {
        let mut first = [0];
        let speaks = tokio::time::timeout(REFUSAL_TIME_MAX / 2, stream.peek(&mut first)).await;
        if speaks.is_ok() {
            connection.run(stream).await;
        } else if stream.write_all(&answer).await.is_ok() {
            drop(stream.shutdown().await);
        }
    };
    async move { drop(tokio::time::timeout(REFUSAL_TIME_MAX, told).await) }
}

async fn drain(mut connections: JoinSet<()>, patience: Duration) -> usize {
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(patience, all).await.is_ok() {
        return 0;
    }
    let cut = connections.len();
    tracing::warn!(target: "quarry::http", connections = cut, "drain deadline passed: cutting off");
    connections.shutdown().await;
    cut
}
