//! What an operator imports beside a running store, and what must be answered of it.

use fastrand::Rng;
use quarry::import::{self, Target, Watcher};
use quarry::model::{Address, Asset, ImportKind, PriceSource, Usd};
use quarry::query::Reader;
use quarry::store::{ImportWriter, Store};
use std::collections::BTreeMap;
use std::path::Path;

/// Everything that was imported.
#[derive(Debug, Default)]
pub(crate) struct Supplied {
    /// By asset as files name it and time.
    prices: BTreeMap<(String, u64), Usd>,
    websites: BTreeMap<Address, String>,
}

struct Quiet;

impl Watcher for Quiet {
    fn progress(&self, _done: u64, _of: Option<u64>) {}

    fn rejected(&self, entry: &str, reason: &str) {
        panic!("{entry}: {reason}");
    }

    fn left_out(&self, entry: &str, field: &str, reason: &str) {
        panic!("{entry}: {field}: {reason}");
    }
}

fn asset(name: &str) -> Asset {
    match name {
        "native" => Asset::Native,
        "stable" => Asset::Stable,
        address => Asset::Token(address.parse().unwrap()),
    }
}

fn target(store: &Store) -> Target {
    Target {
        view: store.view(),
        writer: ImportWriter::open(store.directory(), &store.identity()).unwrap(),
    }
}

impl Supplied {
    /// Imports some prices, `span` being the times of the chain.
    pub(crate) fn prices(
        &mut self,
        store: &Store,
        file: &Path,
        tokens: &[Address],
        span: (u64, u64),
        rng: &mut Rng,
    ) {
        let mut text = "time,asset,usd\n".to_owned();
        for _ in 0..rng.u32(1..30) {
            let name = match rng.usize(..tokens.len() + 2) {
                0 => "native".to_owned(),
                1 => "stable".to_owned(),
                token => tokens[token - 2].to_string().to_lowercase(),
            };
            // Some lie in the future.
            let time = rng.u64(span.0..span.1 + 200_000);
            let usd = format!("{}.{:02}", rng.u32(..5000), rng.u32(..100));
            text += &format!("{time},{name},{usd}\n");
            self.prices.insert((name, time), usd.parse().unwrap());
        }
        std::fs::write(file, text).unwrap();
        let target = target(store);
        let report = import::prices(&target, file, &Quiet).unwrap();
        assert!(report.taken > 0);
        target
            .writer
            .finish(&report.record(ImportKind::Prices, file))
            .unwrap();
    }

    /// Imports facts about a token.
    pub(crate) fn token(&mut self, store: &Store, file: &Path, token: Address, rng: &mut Rng) {
        let website = format!("https://{:x}.example", rng.u32(..));
        let text = format!(
            r#"{{"symbol": "T", "address": "{token}", "decimals": 18, "extensions": {{"website": "{website}"}}}}"#
        );
        std::fs::write(file, text).unwrap();
        let target = target(store);
        let report = import::tokens(&target, file, &Quiet).unwrap();
        assert_eq!(report.taken, 1);
        target
            .writer
            .finish(&report.record(ImportKind::Tokens, file))
            .unwrap();
        self.websites.insert(token, website);
    }

    /// Whether answers are what was imported: prices at the head and at a few other times.
    pub(crate) fn check(&self, reader: &Reader, rng: &mut Rng) {
        let head = reader.head_time().unwrap();
        let names: Vec<&String> = self.prices.keys().map(|(name, _)| name).collect();
        for place in 0..names.len().min(6) {
            let name = names[rng.usize(..names.len())];
            let time = if place == 0 {
                u64::MAX
            } else {
                rng.u64(head.saturating_sub(2_000_000)..head + 9)
            };
            let upto = (name.clone(), time.min(head));
            let of_asset = self.prices.range((name.clone(), 0)..=upto);
            let expected = of_asset.last().map(|((_, time), usd)| (*time, *usd));
            let found = reader.prices(asset(name)).unwrap().at(time).unwrap();
            let known = found.map(|known| {
                assert_eq!(known.source, PriceSource::File);
                (known.time, known.usd)
            });
            assert_eq!(known, expected, "{name} at {time}");
        }
        for (token, website) in &self.websites {
            let project = reader.token_project(token).unwrap();
            assert_eq!(project.website.as_ref(), Some(website), "{token}");
        }
    }
}
