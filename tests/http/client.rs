//! A client that sees every byte, and servers on port 0.

#[path = "../support/no_chains.rs"]
mod no_chains;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use no_chains::NoChains;
use quarry::api::{Api, Settings};
use quarry::app::front::front;
use quarry::http::{Handler, Limits, Mounts, Pool, PoolLimits, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) fn pool() -> Pool {
    Pool::new(PoolLimits::default()).unwrap()
}

pub(crate) fn api() -> Arc<Api> {
    Arc::new(Api::new(Arc::new(NoChains), pool(), Settings::default()))
}

/// All dialects.
pub(crate) fn dialects() -> Arc<Mounts> {
    dialects_on(pool())
}

/// The same, what may block being done on this pool.
pub(crate) fn dialects_on(pool: Pool) -> Arc<Mounts> {
    Arc::new(front(Arc::new(NoChains), pool, Settings::default()))
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<usize>,
}

impl Server {
    pub(crate) async fn start<H: Handler>(handler: Arc<H>, limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(listener, handler, limits, async {
            drop(ended.await);
        }));
        Self {
            address,
            end: Some(end),
            task,
        }
    }

    pub(crate) fn signal(&mut self) {
        drop(self.end.take());
    }

    /// Connections cut off.
    pub(crate) async fn ended(self) -> usize {
        tokio::time::timeout(Duration::from_secs(10), self.task)
            .await
            .unwrap()
            .unwrap()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends `text` and reads until the server closes.
    pub(crate) async fn exchange(&self, text: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        stream.write_all(text.as_ref()).await.unwrap();
        read_to_end(&mut stream).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn request(&self, method: &str, target: &str) -> Reply {
        let text = format!("{method} {target} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        Reply::parse(&self.exchange(text).await)
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.request("GET", target).await
    }

    /// A POST of this body on a connection of its own.
    pub(crate) async fn post(&self, target: &str, body: &str) -> Reply {
        let length = body.len();
        let head =
            format!("POST {target} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}");
        Reply::parse(&self.exchange(format!("{head}\r\n\r\n{body}")).await)
    }

    /// A GET of who has what the tag is of.
    pub(crate) async fn get_unless(&self, target: &str, tag: &str) -> Reply {
        self.get_with(target, &format!("if-none-match: {tag}")).await
    }

    /// A GET with `accept: ...`.
    pub(crate) async fn get_as(&self, target: &str, accept: &str) -> Reply {
        self.get_with(target, &format!("accept: {accept}")).await
    }

    async fn get_with(&self, target: &str, line: &str) -> Reply {
        let head = format!("GET {target} HTTP/1.1\r\nhost: test\r\n{line}");
        Reply::parse(
            &self
                .exchange(format!("{head}\r\nconnection: close\r\n\r\n"))
                .await,
        )
    }
}

pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes)).await;
    // A reset after the answer is the server's right; what came before it is what is looked at.
    drop(read.expect("the server should close the connection"));
    String::from_utf8(bytes).unwrap()
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    /// The target of `Link: <...>; rel="next"`.
    pub(crate) next: Option<String>,
    pub(crate) body: String,
}

impl Reply {
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Self {
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no head in {text:?}"));
        let link = head
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with("link: "));
        Self {
            next: link.map(|link| {
                let target = link.get(6..).unwrap().strip_prefix('<').unwrap();
                target.strip_suffix(">; rel=\"next\"").unwrap().to_owned()
            }),
            status: head.get(9..12).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The body without its chunk sizes, where it has them.
    pub(crate) fn whole_body(&self) -> String {
        if self.header("transfer-encoding").is_none() {
            return self.body.clone();
        }
        let (mut rest, mut whole) = (self.body.as_str(), String::new());
        while let Some((size, tail)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap();
            whole.push_str(&tail[..size]);
            rest = tail[size..].strip_prefix("\r\n").unwrap();
        }
        whole
    }

    #[track_caller]
    pub(crate) fn assert_error(&self, status: u16, text: &str) {
        assert_eq!(
            (self.status, self.body.as_str()),
            (status, format!("{{\"error\":\"{text}\"}}").as_str())
        );
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert_eq!(self.header("access-control-allow-origin"), Some("*"));
        assert!(self.header("x-request-id").is_some());
        assert_eq!(
            self.header("retry-after").is_some(),
            status == 503 || status == 429
        );
    }
}
