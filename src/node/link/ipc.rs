//! A Unix socket in the place of alloy's: that one reads an answer without end into memory for as long as it
//! comes.

use super::front::Front;
use super::life::Life;
use alloy_provider::transport::{TransportErrorKind, TransportResult};
use alloy_pubsub::{ConnectionHandle, PubSubConnect};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Room that is made for what is read next.
const READ_BYTES: usize = 64 << 10;

/// Room that is kept once what was long is handed on.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// How to reach a node at a path.
pub(super) struct Ipc {
    pub(super) path: String,
    /// The longest message taken; a longer one ends the connection.
    pub(super) bytes_max: usize,
    pub(super) life: Arc<Life>,
}

impl PubSubConnect for Ipc {
    fn is_local(&self) -> bool {
        true
    }

    async fn connect(&self) -> TransportResult<ConnectionHandle> {
        let stream = UnixStream::connect(&self.path).await;
        // The system does not say which file it speaks of.
        let told = |error| TransportErrorKind::custom_str(&format!("`{}`: {error}", self.path));
        let stream = stream.map_err(told)?;
        let (handle, interface) = ConnectionHandle::new();
        let front = Front::new(interface, Arc::clone(&self.life));
        tokio::spawn(converse(stream, front, Arc::clone(&self.life), self.bytes_max));
        Ok(handle)
    }
}

/// Carries requests and messages until either side has gone.
async fn converse(stream: UnixStream, mut front: Front, life: Arc<Life>, bytes_max: usize) {
    let (mut reader, mut writer) = stream.into_split();
    let mut buffer = Vec::new();
    let mut scan = Scan::default();
    let is_lost = loop {
        buffer.reserve(READ_BYTES);
        tokio::select! {
            request = front.request() => match request {
                Some(request) => {
                    if writer.write_all(request.get().as_bytes()).await.is_err() {
                        break true;
                    }
                }
                None => break false,
            },
            read = reader.read_buf(&mut buffer) => {
                let is_open = read.is_ok_and(|bytes| 0 < bytes);
                if !is_open || !deliver(&mut buffer, &mut scan, &mut front) || bytes_max < buffer.len() {
                    break true;
                }
                if scan.is_within() {
                    life.bytes();
                }
            }
        }
    };
    if is_lost {
        front.lost();
    }
}

/// Hands on the messages that are whole; `false` where one is none.
fn deliver(buffer: &mut Vec<u8>, scan: &mut Scan, front: &mut Front) -> bool {
    let mut start = 0;
    while let Some(end) = scan.end(buffer) {
        let message = buffer.get(start..end).unwrap_or_default();
        if !str::from_utf8(message).is_ok_and(|message| front.deliver(message)) {
            return false;
        }
        start = end;
    }
    if start > 0 {
        buffer.drain(..start);
        buffer.shrink_to(KEPT_BYTES_MAX);
        scan.at -= start;
    }
    !scan.is_broken
}

/// Where in a stream of JSON objects the next one ends. Each byte is looked at once, in whatever pieces it comes. One that is broken off is noticed
/// by what no JSON has, soon after the next one begins in the middle of it: its end never comes.
#[derive(Debug, Default)]
struct Scan {
    at: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last byte outside strings that is no blank; of a string its quote.
    last: u8,
    is_broken: bool,
}

impl Scan {
    fn end(&mut self, text: &[u8]) -> Option<usize> {
        while let Some(byte) = text.get(self.at) {
            self.at += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' if self.in_string => self.in_string = false,
                _ if self.in_string || byte.is_ascii_whitespace() => {}
                &byte => {
                    self.is_broken |= !self.may_come(byte);
                    self.last = byte;
                    match byte {
                        b'"' => self.in_string = true,
                        b'{' | b'[' => self.depth += 1,
                        b'}' | b']' => {
                            self.depth = self.depth.saturating_sub(1);
                            if self.depth == 0 {
                                return Some(self.at);
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        None
    }

    /// Whether an object began that has not ended.
    const fn is_within(&self) -> bool {
        0 < self.depth
    }

    /// Whether JSON may go on with this byte.
    const fn may_come(&self, byte: u8) -> bool {
        match (self.last, byte) {
            _ if !self.is_within() => true,
            (b'"', _) => matches!(byte, b':' | b',' | b'}' | b']'),
            (_, b'{' | b'[') => matches!(self.last, b':' | b',' | b'['),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Node, NodeConfig};

    #[tokio::test]
    async fn a_socket_that_is_not_there_is_named() {
        let error = Node::connect(NodeConfig::new("/nowhere/node.ipc"))
            .await
            .unwrap_err();
        let said = error.to_string();
        assert!(said.contains("`/nowhere/node.ipc`: No such file"), "{said}");
    }

    #[test]
    fn a_long_answer_does_not_keep_its_room() {
        let (_handle, interface) = ConnectionHandle::new();
        let mut front = Front::new(interface, Arc::new(Life::new()));
        let (mut buffer, mut scan) = (Vec::new(), Scan::default());
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#,
            "a".repeat(4 * KEPT_BYTES_MAX)
        );
        buffer.extend_from_slice(long.as_bytes());
        // The next one begins behind it.
        buffer.extend_from_slice(b"{\"jsonrpc\"");
        assert!(deliver(&mut buffer, &mut scan, &mut front));
        assert_eq!(buffer, b"{\"jsonrpc\"");
        assert!(buffer.capacity() <= KEPT_BYTES_MAX, "{}", buffer.capacity());
    }

    #[test]
    fn messages_end_where_they_end_in_whatever_pieces_they_come() {
        let messages = [
            r#"{"id":1,"result":{"a":[1,{"b":"}]"}]}}"#,
            "\n{\"id\":2,\"result\":\"\\\"{[\\\\\"}",
            r#"[{"id":3}]"#,
        ];
        let text = messages.concat();
        for piece in 1..text.len() {
            let (mut scan, mut found, mut start) = (Scan::default(), Vec::new(), 0);
            let ends = (0..text.len()).step_by(piece).chain([text.len()]);
            for read in ends {
                while let Some(end) = scan.end(&text.as_bytes()[..read]) {
                    found.push(&text[start..end]);
                    start = end;
                }
            }
            assert_eq!(found, messages, "in pieces of {piece}");
            assert!(!scan.is_broken && !scan.is_within());
        }
    }

    #[test]
    fn a_message_that_is_broken_off_is_noticed_by_the_next_ones() {
        let broken = r#"{"id":1, "result":[{"a\\\"":"0x{", "b":true}, [null, 0.5], {}]}"#;
        for next in [
            r#"{"jsonrpc":"2.0","id":2,"result":"0x7"}"#,
            r#"{"id":2, "result":[{}]}"#,
        ] {
            for end in 1..broken.len() {
                let text = [&broken[..end], next, next].concat();
                let mut scan = Scan::default();
                while scan.end(text.as_bytes()).is_some() {}
                assert!(scan.is_broken, "{text}");
            }
        }
    }
}
