//! A name for each request, in its answer and in the log.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::HeaderValue;

/// The id of a request: the client's own where it is sane, else one of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(Name);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Own([u8; 16]),
    Given(HeaderValue),
}

/// Longest id taken over from a client.
const LENGTH_MAX: usize = 128;

impl RequestId {
    /// The id for a request that came with `incoming` as its `X-Request-Id`.
    #[must_use]
    pub fn of(incoming: Option<&HeaderValue>) -> Self {
        match incoming {
            Some(value) if is_sane(value.as_bytes()) => Self(Name::Given(value.clone())),
            _ => Self::generate(),
        }
    }

    /// A new id: 16 hex digits that do not repeat within a process and hardly between processes.
    #[must_use]
    pub fn generate() -> Self {
        static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // The finalizer of SplitMix64 is a bijection, so distinct counts give distinct ids.
        let mut bits = SEED.wrapping_add(
            COUNT
                .fetch_add(1, Ordering::Relaxed)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let mut text = [0; 16];
        // Both lengths are constants that agree.
        let _ = const_hex::encode_to_slice(bits.to_be_bytes(), &mut text);
        Self(Name::Own(text))
    }

    /// The id as a header value.
    #[must_use]
    pub fn header(&self) -> HeaderValue {
        match &self.0 {
            Name::Own(text) => HeaderValue::from_bytes(text).unwrap_or(HeaderValue::from_static("-")),
            Name::Given(value) => value.clone(),
        }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Name::Own(text) => std::str::from_utf8(text).unwrap_or("-"),
            Name::Given(value) => value.to_str().unwrap_or("-"),
        }
    }
}

fn is_sane(id: &[u8]) -> bool {
    !id.is_empty()
        && id.len() <= LENGTH_MAX
        && id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sane_ids_are_echoed_and_others_replaced() {
        let echoed =
            |text: &'static str| RequestId::of(Some(&HeaderValue::from_static(text))).as_str() == text;
        assert!(echoed("req-1"));
        assert!(echoed("1c9a2f2e-1111-2222-3333-444455556666"));
        assert!(!echoed("a b"));
        assert!(!echoed("<script>"));
        assert!(!echoed(""));
        assert_ne!(RequestId::generate(), RequestId::generate());
        assert_eq!(RequestId::generate().as_str().len(), 16);
    }
}
