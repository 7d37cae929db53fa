//! Requests: targets, queries and headers. Lines of the input are the target and then headers; any of them gets an
//! answer of the contract out of the whole service over no chain at all.

#[path = "../../tests/support/no_chains.rs"]
mod no_chains;

use std::sync::{Arc, OnceLock};

use http::{HeaderName, HeaderValue, Request};
use no_chains::NoChains;
use quarry::api::{Api, Settings, endpoints};
use quarry::http::{
    Handler as _, Params, Pool, PoolLimits, Router, parse_address, parse_hash, parse_quantity, parse_u64,
    percent_decode, prefers,
};

struct Service {
    api: Arc<Api>,
    runtime: tokio::runtime::Runtime,
    router: Router,
}

fn service() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let limits = PoolLimits {
            threads: 2,
            ..PoolLimits::default()
        };
        let pool = Pool::new(limits).expect("threads");
        let paths = endpoints()
            .iter()
            .enumerate()
            .map(|(place, endpoint)| (endpoint.path, place));
        Service {
            api: Arc::new(Api::new(Arc::new(NoChains), pool, Settings::default())),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            router: Router::new(paths),
        }
    })
}

const NAMES: [&str; 6] = ["address", "topic0", "page", "hash", "sort", "contractaddresses"];

fn parameters(query: &str) {
    let mut params = Params::parse(query, |key| NAMES.into_iter().find(|name| *name == key));
    let _ = params.take_address("address", "no address");
    let _ = params.take_hashes("topic0", "no topic");
    let _ = params.take_u64("page");
    let _ = params.take_hash("hash", "no hash");
    let _ = params.take_choice("sort", &[("asc", true), ("desc", false)]);
    let _ = params.take_addresses("contractaddresses", "no address");
    for name in NAMES {
        let there = params.contains(name);
        assert_eq!(there, !matches!(params.take(name), Ok(None)));
    }
}

/// Asks what `data` says.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let target = lines.next().unwrap_or_default();
    let _ = (parse_address(target), parse_hash(target), parse_quantity(target));
    let _ = (parse_u64(target), percent_decode(target));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    parameters(query);
    let service = service();
    if let Some(found) = service.router.find(path) {
        assert!(found.value < endpoints().len());
    }
    let mut request = Request::builder().uri(target);
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value.trim()),
        ) {
            request = request.header(name, value);
        }
    }
    // What is no request at all is told by the transport.
    let Ok(request) = request.body(()) else { return };
    let (parts, ()) = request.into_parts();
    std::hint::black_box(prefers(
        &parts.headers,
        "application/x-ndjson",
        "application/json",
    ));
    let answer = service.api.handle(quarry::http::Request::new(parts));
    let status = service.runtime.block_on(answer.answer()).status().as_u16();
    assert!(
        [200, 304, 400, 404, 503].contains(&status),
        "{status} for {text:?}"
    );
}
