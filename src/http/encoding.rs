//! Bodies in fewer bytes: which coding a client takes, and bodies made in it, frame by frame.
//!
//! Compression is work for a core and runs where frames are made, on the pool, at levels that are quick
//! rather than thorough. Each frame is flushed, so a client sees a list grow as it would without a coding,
//! and a body in flight holds one frame and one compressor.

use std::io::{self, Write};

use bytes::Bytes;
use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};

use super::error::HttpError;
use super::frame_source::FrameSource;

/// Bodies up to this many bytes go out as they are: they fit into a packet or two either way.
pub(super) const PLAIN_BYTES_MAX: usize = 1024;

/// The levels were measured on log entries: `docs/decisions/0018-http.md`.
const ZSTD_LEVEL: i32 = 1;
const BROTLI_QUALITY: u32 = 1;
/// 256 KB: a frame is seen whole, and the compressor stays small.
const BROTLI_WINDOW_BITS: u32 = 18;
/// Level 1 takes half as many bytes again for a third less work.
const GZIP_LEVEL: u32 = 2;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Zstd,
    Brotli,
    Gzip,
}

impl Coding {
    /// What is taken first where the client likes several as much: least work for a byte saved first.
    const BY_MERIT: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];
    /// What `*` is taken to mean: what most clients know first.
    const BY_AGE: [Self; 3] = [Self::Gzip, Self::Brotli, Self::Zstd];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    pub(super) const fn header(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    /// What a compressor takes, bytes, as measured of bodies that nobody took (`docs/decisions/0058-unsent-answers.md`).
    pub(super) const fn memory(self) -> usize {
        match self {
            Self::Zstd => 1280 << 10,
            Self::Brotli => 2304 << 10,
            Self::Gzip => 640 << 10,
        }
    }

    fn is_named(self, token: &str) -> bool {
        token.eq_ignore_ascii_case(self.name())
            || (self == Self::Gzip && token.eq_ignore_ascii_case("x-gzip"))
    }
}

/// What a client said about codings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The coding to use; `None` for bytes as they are.
    pub(super) coding: Option<Coding>,
    /// The client refuses bytes as they are, so a small body is encoded too.
    pub(super) always: bool,
}

impl Wanted {
    /// Reads `Accept-Encoding` (RFC 9110, 12.5.3). Without one, bytes go out as they are; so they do where
    /// every coding we speak is refused, `identity` included: a body that was not asked for in this form is
    /// of more use than none.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut listed = Vec::new();
        for value in headers.get_all(ACCEPT_ENCODING) {
            let items = value.to_str().unwrap_or_default().split(',');
            listed.extend(items.filter_map(parse_item));
        }
        if listed.is_empty() {
            return Self::default();
        }
        let weight = |named: &dyn Fn(&str) -> bool| {
            let mut found = listed.iter().filter(|(token, _)| named(token));
            found.next().map(|(_, weight)| *weight)
        };
        let star = weight(&|token| token == "*");
        // Unless it is refused, `identity` may be used, but what was asked for by name goes first.
        let identity = weight(&|token| token.eq_ignore_ascii_case("identity"));
        let refused = identity.or(star) == Some(0);
        let by_name = Coding::BY_MERIT
            .into_iter()
            .map(|coding| (coding, weight(&|token| coding.is_named(token))));
        let mut best: Option<(Coding, u16)> = None;
        for (coding, weight) in by_name.clone() {
            if let Some(weight) = weight.filter(|&weight| weight > best.map_or(0, |(_, best)| best)) {
                best = Some((coding, weight));
            }
        }
        for coding in Coding::BY_AGE {
            let unnamed = by_name
                .clone()
                .any(|(other, weight)| other == coding && weight.is_none());
            let weight = star.filter(|&star| unnamed && star > best.map_or(0, |(_, best)| best));
            if let Some(weight) = weight {
                best = Some((coding, weight));
            }
        }
        let preferred = best.filter(|(_, weight)| identity.is_none_or(|identity| identity <= *weight));
        Self {
            coding: preferred.map(|(coding, _)| coding),
            always: refused && preferred.is_some(),
        }
    }

    /// The coding for a body of this many bytes, or of a length that nobody knows.
    pub(super) fn coding_for(self, length: Option<usize>) -> Option<Coding> {
        self.coding
            .filter(|_| self.always || length.is_none_or(|length| length > PLAIN_BYTES_MAX))
    }
}

/// A coding and its weight in thousandths; `None` for what is malformed, which is as if it were not there.
fn parse_item(item: &str) -> Option<(&str, u16)> {
    let mut parts = item.split(';').map(str::trim);
    let token = parts.next().filter(|token| !token.is_empty())?;
    let mut weight = 1000;
    for parameter in parts {
        let (name, value) = parameter.split_once('=')?;
        if name.trim_end().eq_ignore_ascii_case("q") {
            weight = parse_weight(value.trim_start())?;
        }
    }
    Some((token, weight))
}

/// `0` to `1` with at most three decimals.
fn parse_weight(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{decimals:0<3}").parse::<u16>().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

/// A compressor that gives out what it has after each piece.
enum Encoder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
}

impl Encoder {
    fn new(coding: Coding) -> io::Result<Self> {
        Ok(match coding {
            Coding::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?),
            Coding::Brotli => {
                let writer = brotli::CompressorWriter::new(Vec::new(), 0, BROTLI_QUALITY, BROTLI_WINDOW_BITS);
                Self::Brotli(Box::new(writer))
            }
            Coding::Gzip => Self::Gzip(flate2::write::GzEncoder::new(
                Vec::new(),
                flate2::Compression::new(GZIP_LEVEL),
            )),
        })
    }

    /// Takes `bytes` and gives everything that a decoder needs to see them.
    fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let writer: &mut dyn Write = match self {
            Self::Zstd(encoder) => encoder,
            Self::Brotli(encoder) => encoder,
            Self::Gzip(encoder) => encoder,
        };
        writer.write_all(bytes)?;
        writer.flush()?;
        Ok(std::mem::take(match self {
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.get_mut(),
            Self::Gzip(encoder) => encoder.get_mut(),
        }))
    }

    /// Takes the last `bytes` and gives the rest of the body.
    fn finish(mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match &mut self {
            Self::Zstd(encoder) => encoder.write_all(bytes)?,
            Self::Brotli(encoder) => encoder.write_all(bytes)?,
            Self::Gzip(encoder) => encoder.write_all(bytes)?,
        }
        match self {
            Self::Zstd(encoder) => encoder.finish(),
            Self::Brotli(encoder) => Ok(encoder.into_inner()),
            Self::Gzip(encoder) => encoder.finish(),
        }
    }
}

fn failed(error: io::Error) -> HttpError {
    HttpError::internal(format!("compression: {error}"))
}

/// A whole body in a coding.
pub(super) fn encode(coding: Coding, body: &[u8]) -> Result<Bytes, HttpError> {
    Encoder::new(coding)
        .and_then(|encoder| encoder.finish(body))
        .map(|coded| Bytes::from(coded.into_boxed_slice()))
        .map_err(failed)
}

/// The frames of a body in a coding: one for each frame of the source, and one for its end.
pub(super) struct EncodedFrames {
    encoder: Option<Encoder>,
    source: Box<dyn FrameSource>,
}

impl EncodedFrames {
    /// The encoded first frame, and what gives the others.
    pub(super) fn begin(
        coding: Coding,
        first: &[u8],
        source: Box<dyn FrameSource>,
    ) -> Result<(Bytes, Self), HttpError> {
        let mut encoder = Encoder::new(coding).map_err(failed)?;
        let first = encoder.push(first).map_err(failed)?;
        let encoder = Some(encoder);
        Ok((Bytes::from(first), Self { encoder, source }))
    }
}

impl FrameSource for EncodedFrames {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        let Some(encoder) = &mut self.encoder else {
            return Ok(None);
        };
        if let Some(frame) = self.source.next_frame()? {
            return encoder
                .push(&frame)
                .map(|frame| Some(frame.into()))
                .map_err(failed);
        }
        let encoder = self.encoder.take();
        encoder
            .map(|encoder| encoder.finish(&[]).map(Bytes::from).map_err(failed))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(values: &[&str]) -> (Option<&'static str>, bool) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT_ENCODING, value.parse().unwrap());
        }
        let wanted = Wanted::of(&headers);
        (wanted.coding.map(Coding::name), wanted.always)
    }

    #[test]
    fn codings_are_chosen_by_weight_then_by_merit() {
        let table: [(&[&str], Option<&str>, bool); 25] = [
            (&[], None, false),
            (&[""], None, false),
            (&["gzip"], Some("gzip"), false),
            (&["x-gzip"], Some("gzip"), false),
            (&["GZip"], Some("gzip"), false),
            (&["gzip, deflate, br, zstd"], Some("zstd"), false),
            (&["gzip, deflate, br"], Some("br"), false),
            (&["gzip;q=1.0, br;q=0.9"], Some("gzip"), false),
            (&["gzip;q=0.5 , zstd ; q=0.500, br;q=0.51"], Some("br"), false),
            (&["gzip", "br"], Some("br"), false),
            (&["deflate"], None, false),
            (&["*"], Some("gzip"), false),
            (&["zstd;q=0.5, *;q=0.4"], Some("zstd"), false),
            (&["zstd;q=0.4, *;q=0.5"], Some("gzip"), false),
            (&["gzip;q=0, *"], Some("br"), false),
            (&["*;q=0"], None, false),
            (&["identity"], None, false),
            (&["identity, gzip;q=0.5"], None, false),
            (&["identity;q=0.5, gzip"], Some("gzip"), false),
            (&["identity;q=0, gzip;q=0.1"], Some("gzip"), true),
            (&["identity;q=0, *"], Some("gzip"), true),
            (&["br, *;q=0"], Some("br"), true),
            (&["identity;q=0"], None, false),
            (&["gzip;q=0"], None, false),
            (&["gzip;q=2, br;q=0.1234, zstd;q=x, ;q=1, gzip;u"], None, false),
        ];
        for (values, coding, always) in table {
            assert_eq!(wanted(values), (coding, always), "{values:?}");
        }
    }

    struct Frames(Vec<Bytes>);

    impl FrameSource for Frames {
        fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
            Ok((!self.0.is_empty()).then(|| self.0.remove(0)))
        }
    }

    fn decode(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        // A beginning without its end is an error for all three; what came out before it counts here.
        let _ = match coding {
            Coding::Zstd => io::copy(&mut zstd::stream::read::Decoder::new(bytes).unwrap(), &mut out),
            Coding::Brotli => io::copy(&mut brotli::Decompressor::new(bytes, 4096), &mut out),
            Coding::Gzip => io::copy(&mut flate2::read::GzDecoder::new(bytes), &mut out),
        };
        out
    }

    #[test]
    fn each_frame_can_be_read_as_soon_as_it_is_there() {
        let frames: Vec<Bytes> = (0_u32..5)
            .map(|at| {
                (at..at + 30_000)
                    .flat_map(|n| format!("{n},").into_bytes())
                    .collect()
            })
            .collect();
        for coding in Coding::BY_MERIT {
            let rest = Box::new(Frames(frames[1..].to_vec()));
            let (first, mut source) = EncodedFrames::begin(coding, &frames[0], rest).unwrap();
            let (mut sent, mut plain) = (first.to_vec(), frames[0].to_vec());
            assert_eq!(decode(coding, &sent), plain);
            for frame in &frames[1..] {
                sent.extend_from_slice(&source.next_frame().unwrap().unwrap());
                plain.extend_from_slice(frame);
                assert_eq!(decode(coding, &sent), plain, "{coding:?}");
            }
            sent.extend_from_slice(&source.next_frame().unwrap().unwrap());
            assert_eq!(source.next_frame(), Ok(None));
            assert_eq!(decode(coding, &sent), plain);
            assert!(
                2 * sent.len() < plain.len(),
                "{coding:?}: {} of {}",
                sent.len(),
                plain.len()
            );
            assert_eq!(decode(coding, &encode(coding, &plain).unwrap()), plain);
        }
    }
}
