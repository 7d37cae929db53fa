//! A client that sends any bytes and reads what comes back.

use std::io::{BufRead as _, BufReader, Error, ErrorKind, Read as _, Result, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// An answer, its body as it was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn closes(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.contains("close"))
    }

    /// The body without its encoding.
    pub(crate) fn decoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self.header("content-encoding") {
            None => out.clone_from(&self.body),
            Some("gzip") => {
                flate2::read::GzDecoder::new(self.body.as_slice())
                    .read_to_end(&mut out)
                    .unwrap();
            }
            Some("br") => {
                brotli::Decompressor::new(self.body.as_slice(), 4096)
                    .read_to_end(&mut out)
                    .unwrap();
            }
            Some("zstd") => out = zstd::decode_all(self.body.as_slice()).unwrap(),
            Some(other) => panic!("encoded as {other}"),
        }
        out
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.decoded()).into_owned()
    }
}

/// A connection.
pub(crate) struct Wire(BufReader<TcpStream>);

impl Wire {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the server should accept");
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        self.0.get_mut()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    fn line(&mut self) -> Result<String> {
        let mut text = String::new();
        if self.0.read_line(&mut text)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// The next answer, to a HEAD where `head_only`.
    pub(crate) fn answer(&mut self, head_only: bool) -> Result<Answer> {
        let malformed = || Error::from(ErrorKind::InvalidData);
        let mut answer = Answer::default();
        // Beside the answer itself there may be a 100.
        while answer.status < 200 {
            let first = self.line()?;
            let code = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
            answer.status = code.and_then(|code| code.parse().ok()).ok_or_else(malformed)?;
            answer.headers.clear();
            loop {
                let line = self.line()?;
                if line.is_empty() {
                    break;
                }
                let (name, value) = line.split_once(": ").ok_or_else(malformed)?;
                answer.headers.push((name.to_ascii_lowercase(), value.to_owned()));
            }
        }
        if head_only || matches!(answer.status, 204 | 304) {
            return Ok(answer);
        }
        if let Some(length) = answer.header("content-length") {
            answer.body = vec![0; length.parse().map_err(|_| malformed())?];
            self.0.read_exact(&mut answer.body)?;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16).map_err(|_| malformed())?;
                let from = answer.body.len();
                answer.body.resize(from + size + 2, 0);
                self.0.read_exact(&mut answer.body[from..])?;
                answer.body.truncate(from + size);
                if size == 0 {
                    break;
                }
            }
        } else {
            self.0.read_to_end(&mut answer.body)?;
        }
        Ok(answer)
    }

    /// All that comes until the server closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        // A reset after the answer is the server's right.
        drop(self.0.read_to_end(&mut out));
        out
    }
}

/// One request on a connection of its own.
pub(crate) fn ask(address: &str, target: &str) -> Answer {
    let mut wire = Wire::connect(address);
    wire.send(format!("GET {target} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").as_bytes())
        .unwrap();
    wire.answer(false).unwrap()
}

/// Insists that the server is there.
#[track_caller]
pub(crate) fn alive(address: &str) {
    assert_eq!(ask(address, "/health").status, 200);
}
