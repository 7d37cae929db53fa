//! Asking a service: over one connection that is kept, or a handler in the same process.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::StatusCode;
use hyper::body::Body as HttpBody;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::handler::{Handler, Request};

/// How long a service may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A request that got no whole answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No connection.
    #[error("cannot connect to {authority}: {reason}")]
    Connect {
        /// Host and port.
        authority: String,
        /// Why.
        reason: String,
    },
    /// Not a request that can be sent.
    #[error("`{0}` cannot be asked for")]
    Target(String),
    /// The connection or the body broke off.
    #[error("the answer broke off: {0}")]
    Broken(String),
}

/// An answer without its body.
#[derive(Clone, Debug, Default)]
pub struct Got {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Length of the body as sent.
    pub bytes: u64,
}

/// A connection to a service, HTTP/1.1 without TLS; one request at a time.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
}

impl Connection {
    /// Connects to `authority`, a host and a port.
    ///
    /// # Errors
    ///
    /// When nobody accepts within five seconds.
    pub async fn open(authority: &str) -> Result<Self, ClientError> {
        let failed = |reason: String| ClientError::Connect {
            authority: authority.to_owned(),
            reason,
        };
        let connecting = async {
            let stream = TcpStream::connect(authority).await?;
            stream.set_nodelay(true)?;
            Ok::<_, std::io::Error>(stream)
        };
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| failed("no answer in time".to_owned()))?
            .map_err(|error| failed(error.to_string()))?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(error.to_string()))?;
        tokio::spawn(async move {
            // Whoever asks learns of it too.
            if let Err(error) = connection.await {
                tracing::debug!(target: "quarry::http", %error, "connection to a service ended");
            }
        });
        Ok(Self {
            sender,
            authority: authority.to_owned(),
        })
    }

    /// Asks for `target` (path and query) and shows the body to `visit`, frame by frame. A connection that the service has closed after its
    /// last answer, as it may, is opened anew.
    ///
    /// # Errors
    ///
    /// When the connection or the body breaks off; the connection is of no use then.
    pub async fn get(&mut self, target: &str, visit: impl FnMut(&[u8])) -> Result<Got, ClientError> {
        let request = hyper::Request::get(target).header(CACHE_CONTROL, NO_CACHE);
        self.send(request, target, Bytes::new(), visit).await
    }

    /// Sends a JSON text to `target`, as JSON-RPC is spoken; else as [`get`](Self::get).
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn post(
        &mut self,
        target: &str,
        json: Bytes,
        visit: impl FnMut(&[u8]),
    ) -> Result<Got, ClientError> {
        let request = hyper::Request::post(target).header(CONTENT_TYPE, JSON);
        self.send(request, target, json, visit).await
    }

    async fn send(
        &mut self,
        request: hyper::http::request::Builder,
        target: &str,
        body: Bytes,
        visit: impl FnMut(&[u8]),
    ) -> Result<Got, ClientError> {
        let broken = |error: hyper::Error| ClientError::Broken(error.to_string());
        let request = request
            .header(HOST, &self.authority)
            .body(Full::new(body))
            .map_err(|_| ClientError::Target(target.to_owned()))?;
        if self.sender.ready().await.is_err() {
            *self = Self::open(&self.authority).await?;
        }
        let response = self.sender.send_request(request).await.map_err(broken)?;
        read(response, visit).await
    }
}

/// Whoever measures a service asks it to do the work each time, in place of giving again what it gave before.
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Asks a handler in the same process, without a socket; else as [`Connection::get`].
///
/// # Errors
///
/// When the body breaks off.
pub async fn ask(handler: &dyn Handler, target: &str, visit: impl FnMut(&[u8])) -> Result<Got, ClientError> {
    let request = hyper::Request::get(target)
        .header(CACHE_CONTROL, NO_CACHE)
        .body(())
        .map_err(|_| ClientError::Target(target.to_owned()))?;
    let (parts, ()) = request.into_parts();
    read(handler.handle(Request::new(parts)).answer().await, visit).await
}

async fn read<B>(response: hyper::Response<B>, mut visit: impl FnMut(&[u8])) -> Result<Got, ClientError>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let (parts, mut body) = response.into_parts();
    let mut got = Got {
        status: parts.status,
        headers: parts.headers,
        bytes: 0,
    };
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ClientError::Broken(error.to_string()))?;
        if let Some(data) = frame.data_ref() {
            got.bytes += data.len() as u64;
            visit(data);
        }
    }
    Ok(got)
}

/// Host and port, and path with query, of a URL of `http://` without a password, which [`Connection`] can ask; else `None`.
#[must_use]
pub fn plain_address(url: &str) -> Option<(String, String)> {
    let uri: hyper::Uri = url.parse().ok()?;
    let authority = uri.authority()?;
    if uri.scheme_str() != Some("http") || authority.as_str().contains('@') {
        return None;
    }
    let port = authority.port_u16().unwrap_or(80);
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    Some((format!("{}:{port}", authority.host()), target.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_urls_have_an_address() {
        let address = |url: &str| plain_address(url).map(|(at, target)| format!("{at} {target}"));
        for (url, expected) in [
            ("http://127.0.0.1:8545", Some("127.0.0.1:8545 /")),
            (
                "http://node.example/v3/key?a=1",
                Some("node.example:80 /v3/key?a=1"),
            ),
            ("http://[::1]:8545/", Some("[::1]:8545 /")),
            ("http://me:secret@127.0.0.1:8545", None),
            ("https://127.0.0.1:8545", None),
            ("ws://127.0.0.1:8546", None),
            ("/tmp/node.ipc", None),
        ] {
            assert_eq!(address(url).as_deref(), expected, "{url}");
        }
    }
}
