//! How often one client may ask.
//!
//! A bucket for each address, kept as one number: the time at which it is full again (the generic cell rate
//! algorithm). The table has a fixed size, so that no number of clients costs memory: a place holds a few addresses,
//! and a new one takes the seat of that whose bucket is fullest. Who owns an IPv6 network owns all of its addresses,
//! hence a /64 is one client.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::HeaderMap;

use crate::clock;

use super::limits::Limits;

/// Places of the table, and seats of a place: 65,536 clients in 1.3 MiB.
const PLACES: usize = 8192;
const SEATS: usize = 8;

const SECOND: u64 = 1_000_000_000;

/// Requests that a client who was quiet may send at once, in seconds of its rate.
pub(super) const BURST_SECONDS: u64 = 2;

/// A client and when its bucket is full again, nanoseconds after the table began. Past times: full.
#[derive(Clone, Copy, Debug, Default)]
struct Seat {
    client: u64,
    full_at: u64,
}

/// The buckets of all clients.
#[derive(Debug)]
pub(super) struct Buckets {
    began: Instant,
    /// Nanoseconds that one request costs.
    cost: u64,
    /// Seeded, so that nobody can choose addresses that share a place.
    hasher: RandomState,
    places: Box<[Mutex<[Seat; SEATS]>]>,
}

impl Buckets {
    pub(super) fn new(per_second: NonZeroU32) -> Self {
        Self {
            began: clock::now(),
            cost: (SECOND / u64::from(per_second.get())).max(1),
            hasher: RandomState::new(),
            places: (0..PLACES).map(|_| Mutex::default()).collect(),
        }
    }

    /// Takes one request out of the client's bucket, if there is one in it.
    fn take(&self, client: u64, now: Instant) -> bool {
        let now = u64::try_from((now - self.began).as_nanos()).unwrap_or(u64::MAX);
        let at = self.hasher.hash_one(client) as usize % PLACES;
        let Some(place) = self.places.get(at) else {
            return true;
        };
        let mut seats = place.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seats
            .iter()
            .position(|seat| seat.client == client && seat.full_at > 0);
        let seat = match known {
            Some(at) => seats.get_mut(at),
            None => seats.iter_mut().min_by_key(|seat| seat.full_at),
        };
        let Some(seat) = seat else { return true };
        if known.is_none() {
            *seat = Seat { client, full_at: 0 };
        }
        let full_at = seat.full_at.max(now) + self.cost;
        if full_at > now + BURST_SECONDS * SECOND {
            return false;
        }
        seat.full_at = full_at;
        true
    }
}

/// The client of a connection, as far as the limit is concerned.
#[derive(Clone, Debug)]
pub(super) struct Client {
    peer: IpAddr,
    trust_proxy: bool,
    buckets: Option<Arc<Buckets>>,
}

impl Client {
    pub(super) fn new(peer: SocketAddr, limits: &Limits, buckets: Option<&Arc<Buckets>>) -> Self {
        Self {
            peer: peer.ip(),
            trust_proxy: limits.trust_proxy,
            buckets: buckets.cloned(),
        }
    }

    /// Whether it may ask once more now.
    pub(super) fn may_ask(&self, headers: &HeaderMap) -> bool {
        let Some(buckets) = &self.buckets else {
            return true;
        };
        let stated = self.trust_proxy.then(|| forwarded(headers)).flatten();
        buckets.take(key(stated.unwrap_or(self.peer)), clock::now())
    }
}

/// The last address of `X-Forwarded-For`: the one that the proxy itself has seen. What stands before it is what
/// the client says.
fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all("x-forwarded-for").iter().next_back()?;
    let text = last.to_str().ok()?.rsplit(',').next()?.trim();
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port)
}

/// One number for a client: the network of an IPv6 address, or an IPv4 address under a prefix that no sender has
/// (multicast).
fn key(address: IpAddr) -> u64 {
    let of_v4 = |address: Ipv4Addr| 0xffff_ffff_0000_0000 | u64::from(address.to_bits());
    match address.to_canonical() {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn buckets(per_second: u32) -> Buckets {
        Buckets::new(NonZeroU32::new(per_second).unwrap())
    }

    fn parsed(text: &str) -> u64 {
        key(text.parse().unwrap())
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let buckets = buckets(10);
        let at = |milliseconds: u64| buckets.began + Duration::from_millis(milliseconds);
        let taken = (0..100).filter(|_| buckets.take(1, at(0))).count();
        assert_eq!(taken, 20);
        assert!(!buckets.take(1, at(99)));
        assert!(buckets.take(1, at(101)));
        assert!(!buckets.take(1, at(102)));
        // Refused requests cost nothing: what one may is the same however much it asks.
        let taken = (0..10_000).filter(|n| buckets.take(1, at(102 + n / 10))).count();
        assert!((9..=11).contains(&taken), "{taken} in a second");
        // Another one has a bucket of its own, and a full bucket never holds more than the burst.
        assert!(buckets.take(2, at(102)));
        let taken = (0..100).filter(|_| buckets.take(1, at(3_600_000))).count();
        assert_eq!(taken, 20);
    }

    #[test]
    fn who_asks_most_keeps_its_seat_among_many() {
        let buckets = buckets(5);
        while buckets.take(0, buckets.began) {}
        // A million others, each once: none of them has an emptier bucket.
        for other in 1..1_000_000 {
            assert!(buckets.take(other, buckets.began));
        }
        assert!(!buckets.take(0, buckets.began));
        let seats: usize = buckets
            .places
            .iter()
            .map(|place| place.lock().unwrap().len())
            .sum();
        assert_eq!(seats, 65_536);
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        assert_eq!(parsed("2001:db8::1"), parsed("2001:db8::ffff:1:2:3"));
        assert_ne!(parsed("2001:db8::1"), parsed("2001:db8:0:1::1"));
        assert_eq!(parsed("::ffff:192.0.2.1"), parsed("192.0.2.1"));
        assert_ne!(parsed("192.0.2.1"), parsed("192.0.2.2"));
    }

    #[test]
    fn the_proxy_s_own_word_is_the_last_one() {
        let said = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", hyper::header::HeaderValue::from_static(line));
            }
            forwarded(&headers).map(|address| address.to_string())
        };
        let v4 = Some("192.0.2.7".to_owned());
        assert_eq!(said(&["192.0.2.7"]), v4);
        assert_eq!(said(&["10.0.0.1, 192.0.2.7"]), v4);
        assert_eq!(said(&["10.0.0.1", " 10.0.0.2 ,192.0.2.7 "]), v4);
        assert_eq!(said(&["192.0.2.7:4711"]), v4);
        for text in ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80"] {
            assert_eq!(said(&[text]).as_deref(), Some("2001:db8::1"), "{text}");
        }
        for text in ["", "unknown", "192.0.2.7,", "192.0.2.256", "\u{a0}"] {
            let mut headers = HeaderMap::new();
            if let Ok(value) = hyper::header::HeaderValue::from_bytes(text.as_bytes()) {
                headers.append("x-forwarded-for", value);
            }
            assert_eq!(forwarded(&headers), None, "{text:?}");
        }
    }
}
