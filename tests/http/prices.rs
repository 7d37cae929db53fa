//! S2 and S3 over seeded chains with feeds and files, against prices looked for one by one.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use quarry::api::{Api, Chains, Settings, Upstream};
use quarry::http::Limits;
use quarry::import::{Target, Watcher, prices_of};
use quarry::model::{
    Address, Asset, B256, Bundle, ChainName, Day, FeedFacts, Log, PriceFeeds, TokenMetadata, Topics, U256,
    Usd,
};
use quarry::query::{Reader, TokenFacts, Verdict};
use quarry::status::ChainStatus;
use quarry::store::{ImportWriter, Imported, OpenOptions, Store, StoreError};
use quarry::sync::derive::{NonceRules, derive};
use serde_json::{Value, json};

use crate::client::{Reply, Server, pool};
use crate::plain::{self, ChainConfig, Rng, account};

const ANSWER_UPDATED: &str = "AnswerUpdated(int256,uint256,uint256)";
/// Two aggregators of the native coin (the second one behind a proxy, with other decimals), one of the stable coin.
const NATIVE: u64 = 901;
const PROXY: u64 = 902;
const BEHIND: u64 = 903;
const STABLE: u64 = 904;
const BEHIND_DECIMALS: u8 = 18;

fn answer_updated() -> B256 {
    alloy_primitives::keccak256(ANSWER_UPDATED)
}

fn aggregator(log: &Log) -> bool {
    [NATIVE, BEHIND, STABLE]
        .iter()
        .any(|&feed| log.address == account(feed))
}

/// Blocks over some weeks, with answers of the feeds from the tenth block on.
fn weeks(seed: u64, from: u64, fork: u64, bundles: &mut Vec<Bundle>, len: u64) {
    plain::extend(bundles, seed, len, fork, &ChainConfig::default());
    let mut rng = Rng(seed ^ fork.wrapping_mul(77));
    let mut time = match from.checked_sub(1) {
        Some(before) => bundles[before as usize].block.header.timestamp,
        None => 1_708_900_000,
    };
    for number in from..len {
        let bundle = &mut bundles[number as usize];
        time += match rng.below(10) {
            0 => 90_000 + rng.below(300_000),
            1 => 0,
            _ => 1 + rng.below(20_000),
        };
        bundle.block.header.timestamp = time;
        for receipt in &mut bundle.receipts {
            for log in &mut receipt.logs {
                // Like the seeded logs, but never of a feed by chance.
                if number < 10 || rng.below(6) > 0 {
                    continue;
                }
                let feed = [NATIVE, NATIVE, BEHIND, STABLE][rng.below(4) as usize];
                let answer = match rng.below(8) {
                    0 => U256::ZERO,
                    // Below zero.
                    1 => U256::MAX - U256::from(rng.below(1000)),
                    // Beyond what any price is.
                    2 => U256::from(1) << 200,
                    _ => U256::from(1 + rng.below(400_000_000_000)),
                };
                let answer = if feed == BEHIND && answer < U256::from(1) << 199 {
                    answer * U256::from(10_000_000_000u64) + U256::from(rng.below(3))
                } else {
                    answer
                };
                let topics = [
                    answer_updated(),
                    B256::from(answer),
                    B256::with_last_byte(number as u8),
                ];
                // Some are another event, by their number of topics.
                let topics = if rng.below(12) == 0 {
                    &topics[..2]
                } else {
                    &topics[..]
                };
                log.address = account(feed);
                log.topics = Topics::new(topics).unwrap();
                log.data = U256::from(time).to_be_bytes_vec().into();
            }
        }
    }
}

/// What a node told of the feeds.
#[derive(Debug)]
struct Facts;

impl TokenFacts for Facts {
    fn metadata(&self, _: &Address) -> Result<Option<TokenMetadata>, StoreError> {
        Ok(Some(TokenMetadata::default()))
    }
    fn verdict(&self, _: &Address, _: bool) -> Result<Verdict, StoreError> {
        Ok(Verdict::default())
    }
    fn feed(&self, feed: &Address) -> Result<Option<FeedFacts>, StoreError> {
        let facts = |decimals, aggregators| FeedFacts {
            decimals: Some(decimals),
            aggregators,
        };
        // The proxy tells the decimals of another aggregator than that which gave the answers.
        Ok(if *feed == account(PROXY) {
            Some(facts(BEHIND_DECIMALS + 3, vec![account(BEHIND)]))
        } else if *feed == account(BEHIND) {
            Some(facts(BEHIND_DECIMALS, Vec::new()))
        } else {
            None
        })
    }
}

struct Priced {
    store: Arc<Store>,
    imported: Arc<Imported>,
    feeds: Arc<PriceFeeds>,
    status: Option<Arc<ChainStatus>>,
}

impl Chains for Priced {
    fn reader(&self, chain: ChainName) -> Option<Reader> {
        self.imported.look();
        (chain == ChainName::Mainnet).then(|| {
            Reader::new(self.store.view())
                .with_imported(Arc::clone(&self.imported))
                .with_price_feeds(Arc::clone(&self.feeds))
                .with_token_facts(Arc::new(Facts))
        })
    }
    fn status(&self, _: ChainName) -> Option<Arc<ChainStatus>> {
        self.status.clone()
    }
    fn upstream(&self, _: ChainName) -> Option<Arc<dyn Upstream>> {
        None
    }
    fn store_bytes(&self, _: ChainName) -> u64 {
        0
    }
}

fn body(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.body);
    serde_json::from_str(&reply.whole_body()).unwrap()
}

struct Silent;

impl Watcher for Silent {
    fn progress(&self, _: u64, _: Option<u64>) {}
    fn rejected(&self, entry: &str, reason: &str) {
        panic!("{entry}: {reason}");
    }

    fn left_out(&self, entry: &str, field: &str, reason: &str) {
        panic!("{entry}: {field}: {reason}");
    }
}

/// Prices of the file: by asset, then time.
type File = BTreeMap<(&'static str, u64), Usd>;

struct World {
    store: Arc<Store>,
    bundles: Vec<Bundle>,
    file: File,
    feeds: bool,
    server: Server,
    status: Arc<ChainStatus>,
    _directory: tempfile::TempDir,
}

impl World {
    async fn start(bundles: Vec<Bundle>, file: File, feeds: bool, behind: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            cache_bytes: 8 << 20,
            memtable_bytes: 8 << 20,
            ..OpenOptions::new(directory.path())
        };
        let store = Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(0)).unwrap();
        let mut writer = store.writer().unwrap();
        let mut batch = writer.batch();
        for bundle in &bundles[..30] {
            derive(bundle, &rules(), &mut batch).unwrap();
        }
        writer.commit_final(batch).unwrap();
        for bundle in &bundles[30..] {
            let mut batch = writer.batch();
            derive(bundle, &rules(), &mut batch).unwrap();
            writer.commit_unfinal(batch).unwrap();
        }
        drop(writer);
        if !file.is_empty() {
            let mut text = "time,asset,usd\n".to_owned();
            for ((asset, time), usd) in &file {
                text += &format!("{time},{asset},{usd}\n");
            }
            let target = Target {
                view: store.view(),
                writer: ImportWriter::open(store.directory(), &store.identity()).unwrap(),
            };
            let report = prices_of(&target, Path::new("x"), &mut Cursor::new(text), &Silent).unwrap();
            assert_eq!(
                (report.taken, report.changed),
                (file.len() as u64, file.len() as u64)
            );
        }
        let status = Arc::new(ChainStatus::default());
        let chains = Priced {
            imported: Imported::follow(store.directory(), &store.identity()),
            store: Arc::clone(&store),
            feeds: Arc::new(if feeds {
                PriceFeeds {
                    symbol: "COIN".to_owned(),
                    native: vec![account(NATIVE), account(PROXY)],
                    stable: vec![account(STABLE)],
                }
            } else {
                PriceFeeds::default()
            }),
            status: behind.then(|| Arc::clone(&status)),
        };
        let api = Arc::new(Api::new(Arc::new(chains), pool(), Settings::default()));
        Self {
            store,
            bundles,
            file,
            feeds,
            server: Server::start(api, Limits::default()).await,
            status,
            _directory: directory,
        }
    }

    fn head_time(&self) -> u64 {
        self.bundles.last().unwrap().block.header.timestamp
    }

    /// The price at a time, looked for from the first block on: price, time, source.
    fn price(&self, asset: &'static str, at: u64) -> Option<(Usd, u64, &'static str)> {
        let at = at.min(self.head_time());
        let mut last = None;
        for bundle in self.bundles.iter().filter(|_| self.feeds) {
            let time = bundle.block.header.timestamp;
            if time > at {
                break;
            }
            for log in bundle
                .receipts
                .iter()
                .flat_map(|receipt| &receipt.logs)
                .filter(|log| aggregator(log))
            {
                let topics = log.topics.as_slice();
                let of = if log.address == account(STABLE) {
                    "stable"
                } else {
                    "native"
                };
                let [signature, answer, _] = topics else { continue };
                let answer = U256::from_be_bytes(answer.0);
                if of != asset || *signature != answer_updated() || answer.is_zero() || answer.bit(255) {
                    continue;
                }
                let decimals = if log.address == account(BEHIND) {
                    BEHIND_DECIMALS
                } else {
                    8
                };
                if let Some(usd) = Usd::of_answer(answer, decimals) {
                    last = Some((usd, time, "feed"));
                }
            }
        }
        let by_file = || {
            let (key, usd) = self.file.range((asset, 0)..=(asset, at)).next_back()?;
            Some((*usd, key.1, "file"))
        };
        last.or_else(by_file)
    }

    async fn check(&self, rng: &mut Rng) {
        let head = self.head_time();
        let reply = self.server.get("/api/stats/token-price").await;
        match self.price("native", head) {
            None => reply.assert_error(404, "Price data not available"),
            Some((usd, time, source)) => {
                let before = self.price("native", head - 86_400);
                let change = before.and_then(|(before, ..)| usd.change_percent_from(before));
                let expected = json!({
                    "chain": "mainnet", "symbol": if self.feeds { "COIN" } else { "ETH" },
                    "priceUSD": usd.to_string(), "change24h_Percent": change, "timestamp": time.to_string(),
                    "source": source,
                });
                assert_eq!(body(&reply), expected);
            }
        }
        let span = [self.bundles[0].block.header.timestamp, head].map(|time| Day::of(time).number());
        for round in 0..12 {
            let from = span[0] - 3 + rng.below(40) as i64;
            let last = if round == 0 {
                span[1] + 400
            } else {
                from + rng.below(60) as i64
            };
            let (from, last) = (Day::from_number(from), Day::from_number(last));
            let sort = ["asc", "desc"][round % 2];
            let target = format!("/api/stats/historical-price?startDate={from}&endDate={last}&sort={sort}");
            let reply = self.server.get(&target).await;
            if self.price("native", head).is_none() && self.price("stable", head).is_none() {
                reply.assert_error(404, "Price data not available");
                continue;
            }
            let mut data = Vec::new();
            for day in span[0].max(from.number())..=span[1].min(last.number()) {
                let day = Day::from_number(day);
                let at = |asset| {
                    let price = self.price(asset, (day.start() + 86_399) as u64);
                    price.map(|(usd, ..)| usd.to_string())
                };
                data.push(json!({
                    "date": day.to_string(), "unixTimeStamp": day.start(),
                    "nativeCoinPrice_USD": at("native"), "stableCoinPrice_USD": at("stable"),
                }));
            }
            if sort == "desc" {
                data.reverse();
            }
            let expected = json!({
                "startDate": from.to_string(), "endDate": last.to_string(), "chain": "mainnet", "sort": sort,
                "data": data,
            });
            assert_eq!(body(&reply), expected, "{target}");
        }
    }
}

fn rules() -> NonceRules {
    NonceRules {
        chain_id: 7,
        from_genesis: true,
        native: plain::native_rules(),
        ..NonceRules::default()
    }
}

/// Some prices of both coins, also from before the chain's first block and after its head.
fn some_file(rng: &mut Rng, head: u64) -> File {
    let mut file = File::new();
    for _ in 0..40 {
        let asset = ["native", "stable"][rng.below(2) as usize];
        let time = head + 200_000 - rng.below(5_000_000);
        let usd = Usd::new(u128::from(1 + rng.below(1 << 40)), rng.below(13) as u32).unwrap();
        file.insert((asset, time), usd);
    }
    file
}

#[tokio::test]
async fn prices_are_those_of_the_last_answer_or_of_the_file() {
    for seed in 1..=3 {
        let mut rng = Rng(seed);
        let mut bundles = Vec::new();
        weeks(seed, 0, 0, &mut bundles, 60);
        let answers = bundles
            .iter()
            .flat_map(|bundle| &bundle.receipts)
            .flat_map(|receipt| &receipt.logs)
            .filter(|log| aggregator(log));
        assert!(answers.count() > 40);
        let head = bundles[59].block.header.timestamp;
        for (feeds, files) in [(true, true), (true, false), (false, true), (false, false)] {
            let file = if files {
                some_file(&mut rng, head)
            } else {
                File::new()
            };
            let mut world = World::start(bundles.clone(), file, feeds, false).await;
            world.check(&mut rng).await;
            if !feeds {
                continue;
            }
            // Another branch from block 35 on: other answers, other times.
            {
                let mut writer = world.store.writer().unwrap();
                writer.unwind(35).unwrap();
                world.bundles.truncate(35);
                weeks(seed, 35, 1, &mut world.bundles, 50);
                for bundle in &world.bundles[35..] {
                    let mut batch = writer.batch();
                    derive(bundle, &rules(), &mut batch).unwrap();
                    writer.commit_unfinal(batch).unwrap();
                }
            }
            world.check(&mut rng).await;
        }
    }
}

/// A file of these prices over a chain that has no feeds.
async fn filed(prices: &[(&'static str, i64, &str)]) -> World {
    let mut bundles = Vec::new();
    weeks(3, 0, 0, &mut bundles, 40);
    let head = bundles[39].block.header.timestamp;
    let file = prices
        .iter()
        .map(|&(asset, after, usd)| ((asset, head.wrapping_add_signed(after)), usd.parse().unwrap()))
        .collect();
    World::start(bundles, file, false, false).await
}

#[tokio::test]
async fn the_change_is_against_the_last_price_a_day_before() {
    for (prices, price, change) in [
        // Exactly a day before the head counts, a second later does not.
        (
            &[
                ("native", -86_400, "100"),
                ("native", -86_399, "150"),
                ("native", 0, "200"),
            ][..],
            "200",
            json!("100.00"),
        ),
        (
            &[
                ("native", -86_401, "100"),
                ("native", -86_400, "160"),
                ("native", -5, "200"),
            ],
            "200",
            json!("25.00"),
        ),
        (&[("native", -86_399, "100")], "100", Value::Null),
        (&[("native", -86_400, "0"), ("native", -1, "3")], "3", Value::Null),
        (
            &[
                ("native", -90_000, "3"),
                ("native", -1, "2.00"),
                ("native", 1, "9"),
            ],
            "2",
            json!("-33.33"),
        ),
        (&[("native", -90_000, "0.50")], "0.5", json!("0.00")),
    ] {
        let world = filed(prices).await;
        let body = body(&world.server.get("/api/stats/token-price").await);
        assert_eq!(
            (&body["priceUSD"], &body["change24h_Percent"]),
            (&json!(price), &change),
            "{prices:?}"
        );
    }
    let world = filed(&[("stable", -5, "1")]).await;
    world
        .server
        .get("/api/stats/token-price")
        .await
        .assert_error(404, "Price data not available");
    let day = Day::of(world.head_time());
    let body = body(
        &world
            .server
            .get(&format!(
                "/api/stats/historical-price?startDate={day}&endDate={day}"
            ))
            .await,
    );
    assert_eq!(body["data"][0]["nativeCoinPrice_USD"], Value::Null);
    assert_eq!(body["data"][0]["stableCoinPrice_USD"], "1");
}

#[tokio::test]
async fn what_is_refused() {
    let world = filed(&[("native", 0, "5")]).await;
    let series = "/api/stats/historical-price";
    for (target, status, text) in [
        (
            "/api/stats/token-price?chain=testnet".to_owned(),
            400,
            "Chain testnet is not supported for this operation",
        ),
        (
            format!("{series}?chain=testnet"),
            400,
            "Chain testnet is not supported for this operation",
        ),
        ("/api/stats/token-price?chain=x".to_owned(), 400, "Invalid chain"),
        (series.to_owned(), 400, "Missing required parameter: startDate"),
        (
            format!("{series}?startDate=2024-03-01"),
            400,
            "Missing required parameter: endDate",
        ),
        (
            format!("{series}?startDate=2023-02-29&endDate=2024-03-01"),
            400,
            "Invalid startDate parameter",
        ),
        (
            format!("{series}?startDate=2024-03-01&endDate=2024-3-1"),
            400,
            "Invalid endDate parameter",
        ),
        (
            format!("{series}?startDate=2024-03-02&endDate=2024-03-01"),
            400,
            "endDate is before startDate",
        ),
        (
            format!("{series}?startDate=2024-03-01&endDate=2024-03-01&sort=up"),
            400,
            "Invalid sort parameter",
        ),
    ] {
        world.server.get(&target).await.assert_error(status, text);
    }
}

#[tokio::test]
async fn a_chain_that_is_behind_its_node_tells_no_last_day() {
    let mut bundles = Vec::new();
    weeks(4, 0, 0, &mut bundles, 40);
    let head = bundles[39].block.header.timestamp;
    let file = [(("native", head - 900_000), "5".parse().unwrap())].into();
    let world = World::start(bundles, file, false, true).await;
    world.status.set_node_head(400);
    let today = Day::of(head);
    let yesterday = Day::from_number(today.number() - 1);
    let series = |last: Day| format!("/api/stats/historical-price?startDate={yesterday}&endDate={last}");
    assert_eq!(world.server.get(&series(yesterday)).await.status, 200);
    let indexing = "Data for the requested range is still being indexed";
    world.server.get(&series(today)).await.assert_error(503, indexing);
    world.status.set_node_head(40);
    assert_eq!(world.server.get(&series(today)).await.status, 200);
}

/// A query of tokens only sees files.
#[tokio::test]
async fn tokens_have_the_prices_of_files() {
    let world = filed(&[("native", 0, "5")]).await;
    let token = Asset::Token(account(NATIVE));
    let reader = Reader::new(world.store.view())
        .with_imported(Imported::follow(world.store.directory(), &world.store.identity()));
    assert!(reader.prices(token).unwrap().at(u64::MAX).unwrap().is_none());
    assert!(
        reader
            .prices(Asset::Native)
            .unwrap()
            .at(u64::MAX)
            .unwrap()
            .is_some()
    );
}
