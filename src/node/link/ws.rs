//! A WebSocket in the place of alloy's: that one takes a connection for lost whose pong does not come in ten seconds, though no
//! pong can come between the bytes of a long answer, and it knows no certificates but those that it was compiled with.

use super::front::Front;
use super::life::Life;
use super::parsed;
use crate::node::error::head;
use alloy_provider::transport::utils::guess_local_url;
use alloy_provider::transport::{Authorization, TransportErrorKind, TransportResult};
use alloy_pubsub::{ConnectionHandle, PubSubConnect};
use futures_util::{SinkExt, StreamExt};
use percent_encoding::percent_decode_str;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Result};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async_tls_with_config};

/// Pings in the time after which a silent connection is lost.
const PINGS: u32 = 6;

/// How to reach a node behind a WebSocket.
pub(super) struct Ws {
    pub(super) url: String,
    /// The longest message taken; a longer one ends the connection.
    pub(super) bytes_max: usize,
    /// Over which not a byte comes for so long is lost, though pings ask for some.
    pub(super) silence_max: Duration,
    pub(super) life: Arc<Life>,
}

impl PubSubConnect for Ws {
    fn is_local(&self) -> bool {
        guess_local_url(&self.url)
    }

    async fn connect(&self) -> TransportResult<ConnectionHandle> {
        let url = parsed(&self.url).map_err(TransportErrorKind::custom)?;
        let request = self.request(&url).map_err(TransportErrorKind::custom)?;
        // In a URL an address of version 6 stands in brackets.
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default().unwrap_or_default();
        let stream = TcpStream::connect((host, port)).await;
        let stream = stream.map_err(TransportErrorKind::custom)?;
        // A small question does not wait until the node has acknowledged the one before.
        drop(stream.set_nodelay(true));
        let stream = Heard {
            stream,
            life: Arc::clone(&self.life),
        };
        let limits = WebSocketConfig::default()
            .max_message_size(Some(self.bytes_max))
            .max_frame_size(Some(self.bytes_max));
        let made = client_async_tls_with_config(request, stream, Some(limits), None).await;
        let (socket, _) = made.map_err(TransportErrorKind::custom)?;
        self.life.message();
        let (handle, interface) = ConnectionHandle::new();
        let front = Front::new(interface, Arc::clone(&self.life));
        tokio::spawn(converse(socket, front, Arc::clone(&self.life), self.silence_max));
        Ok(handle)
    }
}

impl Ws {
    fn request(&self, url: &reqwest::Url) -> Result<Request> {
        let mut request = self.url.as_str().into_client_request()?;
        let meant = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (user, password) = (meant(url.username()), url.password().map(meant));
        if !user.is_empty() || password.is_some() {
            let user = Authorization::basic(user, password.unwrap_or_default());
            let mut user = HeaderValue::from_str(&user.to_string())?;
            user.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, user);
        }
        Ok(request)
    }
}

/// Carries requests and messages until either side has gone.
async fn converse(
    mut socket: WebSocketStream<MaybeTlsStream<Heard>>,
    mut front: Front,
    life: Arc<Life>,
    silence_max: Duration,
) {
    let mut pings = tokio::time::interval((silence_max / PINGS).max(Duration::from_millis(1)));
    pings.reset();
    let is_lost = loop {
        let goes_on = tokio::select! {
            request = front.request() => match request {
                Some(request) => socket.send(Message::text(request.get())).await.is_ok(),
                None => break false,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => front.deliver(&text),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {
                    life.control();
                    true
                }
                Some(Ok(Message::Binary(_))) => {
                    life.give_up("a message in a binary frame, where text is wanted".to_owned());
                    false
                }
                Some(Ok(Message::Close(frame))) => {
                    if let Some(frame) = frame {
                        let (code, reason) = (u16::from(frame.code), head(&frame.reason));
                        life.give_up(format!("the node closed the connection: {code} {reason}"));
                    }
                    false
                }
                Some(Err(error)) => {
                    life.give_up(error.to_string());
                    false
                }
                None => false,
            },
            _ = pings.tick() => {
                life.silent_for() < silence_max && socket.send(Message::Ping(Vec::new().into())).await.is_ok()
            }
        };
        if !goes_on {
            break true;
        }
    };
    if is_lost {
        front.lost();
    }
}

/// A stream whose bytes are noticed before they are a message.
struct Heard {
    stream: TcpStream,
    life: Arc<Life>,
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if before < buffer.filled().len() {
            self.life.bytes();
        }
        read
    }
}

impl AsyncWrite for Heard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_sent_as_they_are_meant() {
        for (url, sent) in [
            ("ws://us%40er:p%3Aw@127.0.0.1:1/", Some("Basic dXNAZXI6cDp3")),
            ("ws://:key@127.0.0.1:1/", Some("Basic OmtleQ==")),
            ("ws://127.0.0.1:1/", None),
        ] {
            let ws = Ws {
                url: url.to_owned(),
                bytes_max: 1,
                silence_max: Duration::ZERO,
                life: Arc::new(Life::new()),
            };
            let request = ws.request(&parsed(url).unwrap()).unwrap();
            let found = request.headers().get(AUTHORIZATION);
            assert_eq!(found.map(HeaderValue::as_bytes), sent.map(str::as_bytes), "{url}");
        }
    }
}
