//! What caches may do with an answer: its tag, how long it lasts, and whether the client has it already.
//!
//! Tags are strong where bytes go out as they are: the same tag, the same bytes. In a coding they are weak,
//! with the same text: a compressor may cut its output in another way the next time, so the bytes are not
//! promised, but what they say is. If-None-Match compares weakly, so a client that holds an answer in one
//! coding is told that it has it, whatever coding it would get now; a tag for each coding would deny that.

use hyper::StatusCode;
use hyper::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, VARY,
};

use twox_hash::xxhash3_128;

use super::body::Body;
use super::encoding::{Coding, Wanted, encode};
use super::error::HttpError;
use super::handler::Request;
use super::response::Response;

const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("accept-encoding");
const ACCEPT: HeaderValue = HeaderValue::from_static("accept");
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const REVALIDATE: HeaderValue = HeaderValue::from_static("public, no-cache");
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// How long an answer is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// For ever: caches need not ask again.
    Immutable,
    /// Until something changes: caches may keep it and have to ask each time, which costs a 304.
    Revalidate,
    /// No cache is to keep it, so that it needs no tag.
    NotKept,
}

impl Lifetime {
    const fn header(self) -> HeaderValue {
        match self {
            Self::Immutable => IMMUTABLE,
            Self::Revalidate => REVALIDATE,
            Self::NotKept => NO_STORE,
        }
    }
}

const TAG_BYTES: usize = 16;

/// XXH3's 128 bits of bytes that come in parts. A page of 100 rows costs a cryptographic hash as long as the rows
/// (docs/decisions/0018-http.md).
struct Digest {
    /// The first bytes: of most tags all, whose digest takes less than a hasher that could go on.
    short: [u8; Self::SHORT],
    length: usize,
    long: Option<xxhash3_128::Hasher>,
}

impl Default for Digest {
    fn default() -> Self {
        Self {
            short: [0; Self::SHORT],
            length: 0,
            long: None,
        }
    }
}

impl Digest {
    const SHORT: usize = 512;

    fn write(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.long {
            hasher.write(bytes);
        } else if let Some(room) = self.short.get_mut(self.length..self.length + bytes.len()) {
            room.copy_from_slice(bytes);
            self.length += bytes.len();
        } else {
            let mut hasher = xxhash3_128::Hasher::new();
            hasher.write(self.held());
            hasher.write(bytes);
            self.long = Some(hasher);
        }
    }

    fn held(&self) -> &[u8] {
        self.short.get(..self.length).unwrap_or_default()
    }

    fn finish(self) -> u128 {
        match &self.long {
            Some(hasher) => hasher.finish_128(),
            None => xxhash3_128::Hasher::oneshot(self.held()),
        }
    }
}

/// The name of one version of an answer: 32 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag([u8; 2 * TAG_BYTES]);

impl EntityTag {
    /// The tag of what these parts determine. Parts are told apart by their lengths.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut digest = Digest::default();
        for part in parts {
            digest.write(&(part.len() as u64).to_be_bytes());
            digest.write(part);
        }
        let mut text = [0; 2 * TAG_BYTES];
        // Both lengths are constants that agree.
        let _ = const_hex::encode_to_slice(digest.finish().to_be_bytes(), &mut text);
        Self(text)
    }

    fn header(&self, coding: Option<Coding>) -> HeaderValue {
        let mut text = [b'"'; 2 * TAG_BYTES + 4];
        text[0] = b'W';
        text[1] = b'/';
        text[3..3 + 2 * TAG_BYTES].copy_from_slice(&self.0);
        let text = if coding.is_some() { &text[..] } else { &text[2..] };
        HeaderValue::from_bytes(text).unwrap_or(HeaderValue::from_static("\"-\""))
    }

    /// Whether this tag is in a list of tags, compared weakly.
    fn is_in(&self, list: &HeaderValue) -> bool {
        // A tag may hold commas, but none of ours does, and quotes end what a comma may cut.
        list.as_bytes().split(|&byte| byte == b',').any(|item| {
            let item = item.trim_ascii();
            let opaque = item.strip_prefix(b"W/").unwrap_or(item);
            opaque
                .strip_prefix(b"\"")
                .and_then(|rest| rest.strip_suffix(b"\""))
                .is_some_and(|text| text == self.0)
        })
    }
}

/// Whether a line of `Cache-Control` of a request wants nothing that was kept.
fn refuses_kept(line: &HeaderValue) -> bool {
    let directives = line.as_bytes().split(|&byte| byte == b',');
    directives.map(<[u8]>::trim_ascii).any(|directive| {
        directive.eq_ignore_ascii_case(b"no-cache") || directive.eq_ignore_ascii_case(b"no-store")
    })
}

/// Bytes of a body that is whole.
fn length(body: &Body) -> Option<usize> {
    match body {
        Body::Stream(_) => None,
        body => Some(body.whole().map_or(0, |bytes| bytes.len())),
    }
}

/// How a client wants its answer: in which coding, and which versions it has.
#[derive(Clone, Debug, Default)]
pub struct Delivery {
    wanted: Wanted,
    head_only: bool,
    /// Nothing that was kept will do.
    anew: bool,
    /// `If-None-Match`, line by line.
    had: Vec<HeaderValue>,
}

impl Delivery {
    /// Whether the client would have a body of any length in a coding.
    #[must_use]
    pub fn is_coded(&self) -> bool {
        self.wanted.coding.is_some()
    }

    /// In which form a whole body goes out, where one that is kept will do: the client names no version that it has, wants the body, and
    /// does not ask for it to be made anew (`Cache-Control: no-cache`, RFC 9111, 5.2.1.4).
    #[must_use]
    pub fn form(&self) -> Option<&'static str> {
        let named = match (self.wanted.coding, self.wanted.always) {
            (None, _) => "",
            (Some(coding), false) => coding.name(),
            (Some(Coding::Zstd), true) => "always zstd",
            (Some(Coding::Brotli), true) => "always br",
            (Some(Coding::Gzip), true) => "always gzip",
        };
        (self.had.is_empty() && !self.head_only && !self.anew).then_some(named)
    }

    /// What the request's headers say.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        let headers = request.headers();
        Self {
            wanted: Wanted::of(headers),
            head_only: request.is_head(),
            anew: headers.get_all(CACHE_CONTROL).iter().any(refuses_kept),
            // What is asked by POST is not kept under its address.
            had: if request.is_post() {
                Vec::new()
            } else {
                headers.get_all(IF_NONE_MATCH).iter().cloned().collect()
            },
        }
    }

    /// Whether the client named any version: if not, there is no need to make tags before the answer.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        !self.had.is_empty()
    }

    /// Whether the client named this version. `*` names none: it asks whether there is an answer at all.
    #[must_use]
    pub fn has(&self, tag: &EntityTag) -> bool {
        self.had.iter().any(|list| tag.is_in(list))
    }

    /// 304: the client has it.
    #[must_use]
    pub fn unchanged(&self, tag: &EntityTag, lifetime: Lifetime) -> Response {
        let mut response = Response::new(Body::Empty);
        // Asked before the answer is made, hence of lists: their length is not known.
        unchange(&mut response, tag, lifetime, self.wanted.coding_for(None));
        // What a list's 200 would say; of another answer it says too much, which costs nothing.
        response.headers_mut().append(VARY, ACCEPT);
        response
    }

    /// Gives an answer its tag, its lifetime and its coding, or makes it a 304. Without a `tag` that of
    /// the whole body is made; a body that is a stream then has none, and neither has one that is not kept. Anything but a 200 is
    /// left alone.
    ///
    /// Compresses, hence belongs on the pool; see [`Self::deliver_plain`].
    #[must_use]
    pub fn deliver(&self, response: Response, lifetime: Lifetime, tag: Option<EntityTag>) -> Response {
        self.deliver_in(response, lifetime, tag, self.wanted)
    }

    /// The same without a coding, for small bodies made on the threads that own sockets.
    #[must_use]
    pub fn deliver_plain(&self, response: Response, lifetime: Lifetime) -> Response {
        self.deliver_in(response, lifetime, None, Wanted::default())
    }

    /// Whether [`Self::deliver`] would compress it.
    #[must_use]
    pub fn compresses(&self, response: &Response) -> bool {
        self.wanted.coding_for(length(response.body())).is_some()
    }

    fn deliver_in(
        &self,
        mut response: Response,
        lifetime: Lifetime,
        tag: Option<EntityTag>,
        wanted: Wanted,
    ) -> Response {
        if response.status() != StatusCode::OK {
            return response;
        }
        let body = response.body();
        let tag = match lifetime {
            Lifetime::NotKept => None,
            _ => tag.or_else(|| Some(EntityTag::of([body.whole()?.as_ref()]))),
        };
        let coding = wanted.coding_for(length(body));
        if let Some(tag) = &tag
            && self
                .had
                .iter()
                .any(|list| list.as_bytes().trim_ascii() == b"*" || tag.is_in(list))
        {
            unchange(&mut response, tag, lifetime, coding);
            return response;
        }
        if let Some(coding) = coding {
            if let Err(error) = self.encode(coding, response.body_mut()) {
                tracing::error!(target: "quarry::http", %error, "an answer was lost");
                return error.into();
            }
            response.headers_mut().insert(CONTENT_ENCODING, coding.header());
        }
        let headers = response.headers_mut();
        match &tag {
            Some(tag) => mark(headers, tag, lifetime, coding),
            None => {
                headers.insert(CACHE_CONTROL, lifetime.header());
                headers.append(VARY, ACCEPT_ENCODING);
            }
        }
        response
    }

    fn encode(&self, coding: Coding, body: &mut Body) -> Result<(), HttpError> {
        *body = match std::mem::replace(body, Body::Empty) {
            Body::Empty => Body::Empty,
            Body::Full(bytes) => Body::Full(encode(coding, &bytes)?),
            Body::Shared(shared) => Body::Full(encode(coding, shared.bytes())?),
            // Nobody will read it.
            Body::Stream(stream) if self.head_only => Body::Stream(stream),
            Body::Stream(stream) => Body::Stream(stream.encode(coding)?),
        };
        Ok(())
    }
}

fn mark(headers: &mut HeaderMap, tag: &EntityTag, lifetime: Lifetime, coding: Option<Coding>) {
    headers.insert(ETAG, tag.header(coding));
    headers.insert(CACHE_CONTROL, lifetime.header());
    headers.append(VARY, ACCEPT_ENCODING);
}

/// Makes a 304 of an answer, with the headers that a 200 would have.
fn unchange(response: &mut Response, tag: &EntityTag, lifetime: Lifetime, coding: Option<Coding>) {
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    *response.body_mut() = Body::Empty;
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    mark(headers, tag, lifetime, coding);
}

/// Keeps caches from guessing about answers that say nothing about it, errors first.
pub(super) fn forbid_guessing(headers: &mut HeaderMap) {
    headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_xxh3() {
        // XXH3's own test vector: the 128 bits of nothing.
        let tag = EntityTag::of([]);
        assert_eq!(tag.0, *b"99aa06d3014798d86001c324468d497f");
    }

    #[test]
    fn long_and_short_make_one_digest() {
        let bytes: Vec<u8> = (0..2000_u32).map(|at| ((at * at) >> 3) as u8).collect();
        for length in [0, 1, 16, 240, 241, 511, 512, 513, 2000] {
            for step in [1, 7, 300, 2000] {
                let mut digest = Digest::default();
                bytes[..length].chunks(step).for_each(|part| digest.write(part));
                assert_eq!(
                    digest.finish(),
                    xxhash3_128::Hasher::oneshot(&bytes[..length]),
                    "{length} by {step}"
                );
            }
        }
    }

    #[test]
    fn headers_of_tags() {
        let tag = EntityTag::of([]);
        let plain = "\"99aa06d3014798d86001c324468d497f\"";
        assert_eq!(tag.header(None), plain);
        assert_eq!(tag.header(Some(Coding::Gzip)), format!("W/{plain}"));
    }

    #[test]
    fn tags_are_found_in_lists() {
        let tag = EntityTag::of([&b"a"[..], b"bc"]);
        assert_ne!(tag, EntityTag::of([&b"ab"[..], b"c"]));
        let text = String::from_utf8(tag.0.to_vec()).unwrap();
        for list in [
            format!("\"{text}\""),
            format!("W/\"{text}\""),
            format!("\"x\", W/\"{text}\" , \"y\""),
            format!("\"a,b\",\"{text}\""),
        ] {
            assert!(tag.is_in(&list.parse().unwrap()), "{list}");
        }
        for list in [
            text.clone(),
            format!("w/\"{text}\""),
            format!("\"{text}x\""),
            format!("\"{text}"),
            "*".to_owned(),
            "\"\"".to_owned(),
            String::new(),
        ] {
            assert!(!tag.is_in(&list.parse().unwrap()), "{list}");
        }
    }
}
