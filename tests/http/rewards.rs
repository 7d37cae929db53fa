//! B3 over a seeded chain of every era, against sums over its plain values.

use std::collections::BTreeMap;

use quarry::model::{Bundle, Header, Transaction, U256};
use quarry::query::UncleReward;
use serde_json::{Value, json};

use crate::chain::{HEAD, World};
use crate::days::exact;
use crate::participants::day;
use crate::plain::{self, ChainConfig, Rng, account};

/// Static reward by era, as the operator states it.
pub(crate) const REWARDS: &str = "0:5000000000000000001,20:3000000000000000000,30:2000000000000000000";
const LONDON: u64 = 25;
const MERGE: u64 = 40;
const CANCUN: u64 = 45;
const PRAGUE: u64 = 52;

/// Proof of work with uncles up to the merge, base fees from London on, blobs from Cancun on.
pub(crate) fn eras(seed: u64) -> Vec<Bundle> {
    let mut bundles = plain::chain(seed, HEAD + 1, &ChainConfig::default());
    let mut rng = Rng(seed);
    for bundle in &mut bundles {
        let header = &mut bundle.block.header;
        let number = header.number;
        header.difficulty = U256::from(u8::from(number < MERGE));
        header.base_fee_per_gas = (number >= LONDON).then(|| rng.below(1000));
        header.excess_blob_gas = (number >= CANCUN).then(|| rng.below(60_000_000));
        header.requests_hash = (number >= PRAGUE).then(|| rng.hash());
        let base_fee = header.base_fee_per_gas.unwrap_or(0);
        if (8..MERGE).contains(&number) {
            for _ in 0..rng.below(3) {
                bundle.block.uncles.push(rng.hash());
                bundle.block.uncle_headers.push(Header {
                    number: number - 1 - rng.below(7),
                    beneficiary: account(40 + rng.below(3)),
                    ..Header::default()
                });
            }
        }
        let mut cumulative = 0;
        for (transaction, receipt) in bundle.block.transactions.iter_mut().zip(&mut bundle.receipts) {
            receipt.gas_used = 21_000 + rng.below(1_000_000);
            cumulative += receipt.gas_used;
            receipt.cumulative_gas_used = cumulative;
            receipt.effective_gas_price = Some(u128::from(base_fee + rng.below(1 << 40)));
            if number >= CANCUN && rng.below(2) == 0 {
                transaction.kind = 3;
                transaction.blob_versioned_hashes = Some((0..=rng.below(5)).map(|_| rng.hash()).collect());
                let blobs = transaction.blob_versioned_hashes.as_ref().unwrap().len() as u64;
                receipt.blob_gas_used = Some(blobs * 131_072);
                receipt.blob_gas_price = Some(u128::from(rng.below(1 << 30)));
            }
        }
    }
    bundles
}

/// Every third transaction states its prices in a token, as those of Celo do that name one.
pub(crate) fn pay_in_tokens(bundles: &mut [Bundle]) {
    let pairs = bundles.iter_mut().flat_map(|bundle| {
        let transactions = bundle.block.transactions.iter_mut();
        transactions.zip(&mut bundle.receipts)
    });
    for (transaction, receipt) in pairs.step_by(3) {
        transaction.kind = 0x7b;
        transaction.blob_versioned_hashes = None;
        transaction.extra =
            Some(r#"{"feeCurrency":"0x0e2a3e05bc9a16f5292a6170456a710cb89c6f72"}"#.to_owned());
        (receipt.blob_gas_used, receipt.blob_gas_price) = (None, None);
        receipt.extra = Some(r#"{"baseFee":"0x1f3b","l1Fee":"0x5"}"#.to_owned());
    }
}

pub(crate) fn is_paid_in_token(transaction: &Transaction) -> bool {
    transaction.kind == 0x7b
}

fn expected(bundle: &Bundle, static_reward: u128) -> Value {
    let header = &bundle.block.header;
    let static_reward = if header.number == 0 || header.difficulty.is_zero() {
        0
    } else {
        static_reward
    };
    let (mut tips, mut burnt) = (0u128, 0u128);
    for (transaction, receipt) in bundle.block.transactions.iter().zip(&bundle.receipts) {
        if is_paid_in_token(transaction) {
            continue;
        }
        let (gas, base) = (
            u128::from(receipt.gas_used),
            u128::from(header.base_fee_per_gas.unwrap_or(0)),
        );
        tips += gas * (receipt.effective_gas_price.unwrap() - base);
        burnt += gas * base;
        burnt += u128::from(receipt.blob_gas_used.unwrap_or(0)) * receipt.blob_gas_price.unwrap_or(0);
    }
    let inclusion = bundle.block.uncles.len() as u128 * (static_reward / 32);
    let total = static_reward + tips + inclusion;
    let miner = format!("{:#x}", header.beneficiary);
    let mut rewards =
        vec![json!({"address": miner, "type": "block", "position": null, "reward": total.to_string()})];
    for (position, uncle) in bundle.block.uncle_headers.iter().enumerate() {
        let reward = static_reward * u128::from(uncle.number + 8 - header.number) / 8;
        rewards.push(json!({
            "address": format!("{:#x}", uncle.beneficiary), "type": "uncle", "position": position,
            "reward": reward.to_string(),
        }));
    }
    let nobody = header.number == 0;
    json!({
        "blockNumber": header.number.to_string(),
        "timestamp": header.timestamp.to_string(),
        "chain": "mainnet",
        "blockMiner": if nobody { Value::Null } else { json!(miner) },
        "blockReward": total.to_string(),
        "staticReward": static_reward.to_string(),
        "transactionFees": tips.to_string(),
        "burntFees": burnt.to_string(),
        "uncleInclusionReward": inclusion.to_string(),
        "rewards": if nobody { json!([]) } else { json!(rewards) },
    })
}

fn target(number: u64) -> String {
    format!("/api/block/{number}/rewards")
}

#[tokio::test]
async fn rewards_equal_sums_over_the_chain() {
    for seed in [3, 4] {
        let world = World::of(eras(seed), None, Some(REWARDS)).await;
        let mut uncles = 0;
        for bundle in &world.bundles {
            let number = bundle.block.number();
            let stated = match number {
                ..20 => 5_000_000_000_000_000_001,
                20..30 => 3_000_000_000_000_000_000,
                30.. => 2_000_000_000_000_000_000,
            };
            uncles += bundle.block.uncles.len();
            assert_eq!(
                world.json(&target(number)).await,
                expected(bundle, stated),
                "{number}"
            );
        }
        assert!(uncles > 10, "{uncles}");
        check_mined(&world).await;
        let order: Vec<String> = world
            .server
            .get(&target(30))
            .await
            .body
            .split("\"rewards\"")
            .next()
            .unwrap()
            .split(',')
            .filter_map(|part| part.split('"').nth(1).map(str::to_owned))
            .collect();
        assert_eq!(
            order,
            [
                "blockNumber",
                "timestamp",
                "chain",
                "blockMiner",
                "blockReward",
                "staticReward",
                "transactionFees",
                "burntFees",
                "uncleInclusionReward"
            ]
        );
    }
    // Nobody said what this chain pays, and its genesis hash is not known: fees alone.
    let world = World::of(eras(5), None, None).await;
    for bundle in &world.bundles {
        assert_eq!(
            world.json(&target(bundle.block.number())).await,
            expected(bundle, 0)
        );
    }
}

/// The list of blocks that an account mined says the same of each as the block's rewards.
async fn check_mined(world: &World) {
    let mut listed = 0;
    for miner in 0..3 {
        let target = format!("/api/account/{:#x}/mined-blocks", account(miner));
        let mined = world.json(&target).await;
        for block in mined["blocks"].as_array().unwrap() {
            let number = block["blockNumber"].as_str().unwrap().parse().unwrap();
            let rewards = world.json(&self::target(number)).await;
            assert_eq!(block["blockReward"], rewards["blockReward"], "{number}");
            listed += 1;
        }
    }
    assert_eq!(listed, HEAD);
}

/// The schedule of ECIP-1017 with eras of 15 blocks: of a block and its uncles, and of days that lie in one era or in two.
#[tokio::test]
async fn eras_and_what_their_uncles_bring() {
    let mut bundles = eras(8);
    for bundle in &mut bundles {
        let header = &mut bundle.block.header;
        header.timestamp = 1_700_000_000 + 20_000 * header.number;
    }
    let world = World::of(bundles, None, Some("ecip1017:15")).await;
    world.status.set_node_head(HEAD);
    let mut days: BTreeMap<_, u128> = BTreeMap::new();
    let (mut late, mut flat) = (0, 0);
    for bundle in &world.bundles {
        let header = &bundle.block.header;
        let each: u128 = match header.number {
            0 | MERGE.. => 0,
            1..=15 => 5_000_000_000_000_000_000,
            16..=30 => 4_000_000_000_000_000_000,
            31.. => 3_200_000_000_000_000_000,
        };
        let found = world.json(&target(header.number)).await;
        assert_eq!(found["staticReward"], each.to_string());
        let inclusion = bundle.block.uncles.len() as u128 * (each / 32);
        assert_eq!(found["uncleInclusionReward"], inclusion.to_string());
        let given = days.entry(day(bundle)).or_default();
        *given += each + inclusion;
        for (place, uncle) in bundle.block.uncle_headers.iter().enumerate() {
            let reward = if header.number <= 15 {
                late += 1;
                each * u128::from(uncle.number + 8 - header.number) / 8
            } else {
                flat += 1;
                each / 32
            };
            assert_eq!(found["rewards"][1 + place]["reward"], reward.to_string());
            *given += reward;
        }
    }
    assert!(late > 3 && flat > 10, "{late} {flat}");
    assert!(days.len() > 10);
    for (day, given) in days {
        let target = format!("/api/block/daily-block-rewards?startDate={day}&endDate={day}");
        let found = world.json(&target).await;
        assert_eq!(found["data"][0]["blockRewards_Coin"], exact(given, 18), "{day}");
    }
}

/// Of what is paid in a token nothing is the block's, and the list of an account says 0 of it.
#[tokio::test]
async fn fees_that_are_paid_in_tokens() {
    let mut bundles = eras(9);
    pay_in_tokens(&mut bundles);
    let world = World::of(bundles, None, None).await;
    let mut listed = 0;
    for bundle in &world.bundles {
        let number = bundle.block.number();
        assert_eq!(world.json(&target(number)).await, expected(bundle, 0), "{number}");
        for (transaction, receipt) in bundle.block.transactions.iter().zip(&bundle.receipts) {
            if !is_paid_in_token(transaction) {
                continue;
            }
            let list = format!(
                "/api/account/{:#x}/tx-list?startblock={number}&endblock={number}&offset=100",
                transaction.from
            );
            let list = world.json(&list).await;
            let items = list["transactions"].as_array().unwrap();
            let hash = format!("{:#x}", transaction.hash);
            let item = items.iter().find(|item| item["hash"] == hash).unwrap();
            assert_eq!(item["fee"], "0");
            let price = receipt.effective_gas_price.unwrap();
            assert_eq!(item["gasPrice"], price.to_string());
            listed += 1;
        }
    }
    assert!(listed > 10, "{listed}");
    check_mined(&world).await;
}

/// Receipts that leave prices out: EIP-1559's rule and the header's blob price stand in.
#[tokio::test]
async fn prices_that_receipts_leave_out() {
    let mut bundles = eras(6);
    let fractions = |number| if number < PRAGUE { 3_338_477.0 } else { 5_007_716.0 };
    let mut blobs = 0;
    for bundle in bundles
        .iter_mut()
        .filter(|bundle| bundle.block.number() >= LONDON)
    {
        let header = &bundle.block.header;
        let base_fee = header.base_fee_per_gas.unwrap();
        for (place, (transaction, receipt)) in
            (0..).zip(bundle.block.transactions.iter_mut().zip(&mut bundle.receipts))
        {
            transaction.kind = transaction.kind.max(2);
            transaction.max_fee_per_gas = Some(u128::from(base_fee + 5));
            transaction.max_priority_fee_per_gas = Some(3 * place);
            receipt.effective_gas_price = None;
            receipt.blob_gas_price = None;
        }
    }
    let world = World::of(bundles.clone(), None, Some(REWARDS)).await;
    for bundle in bundles
        .iter_mut()
        .filter(|bundle| bundle.block.number() >= LONDON)
    {
        let header = &bundle.block.header;
        for (place, receipt) in (0..).zip(&mut bundle.receipts) {
            let base_fee = u128::from(header.base_fee_per_gas.unwrap());
            receipt.effective_gas_price = Some(base_fee + (3 * place).min(5));
            if let Some(excess) = header.excess_blob_gas {
                blobs += receipt.blob_gas_used.unwrap_or(0);
                let price = (excess as f64 / fractions(header.number)).exp();
                receipt.blob_gas_price = Some(price as u128);
            }
        }
        let found = world.json(&target(header.number)).await;
        let wanted = expected(bundle, 0);
        for field in ["transactionFees", "burntFees"] {
            assert_eq!(found[field], wanted[field], "{field} of {}", header.number);
        }
    }
    assert!(blobs > 0);
}

#[tokio::test]
async fn blocks_that_cannot_be_answered() {
    let mut bundles = eras(7);
    let with_uncles = bundles
        .iter_mut()
        .find(|bundle| !bundle.block.uncles.is_empty())
        .unwrap();
    with_uncles.block.uncle_headers.clear();
    let without_headers = with_uncles.block.number();
    let world = World::of(bundles, None, Some(REWARDS)).await;
    let indexing = "Data for the requested range is still being indexed";
    for (path, status, text) in [
        (target(60), 503, indexing),
        (target(80), 503, indexing),
        (target(81), 404, "Block not found"),
        (target(u64::MAX), 404, "Block not found"),
        (
            target(without_headers),
            503,
            "Data for the requested range is still being indexed",
        ),
        (
            "/api/block/18446744073709551616/rewards".to_owned(),
            404,
            "Block not found",
        ),
        (
            "/api/block/0x1/rewards".to_owned(),
            400,
            "Invalid blockNumber parameter",
        ),
        (
            "/api/block/latest/rewards".to_owned(),
            400,
            "Invalid blockNumber parameter",
        ),
        (
            "/api/block/-1/rewards".to_owned(),
            400,
            "Invalid blockNumber parameter",
        ),
        (
            "/api/block/%ff/rewards".to_owned(),
            400,
            "Invalid blockNumber parameter",
        ),
        (
            "/api/block/1/rewards?chain=goerli".to_owned(),
            400,
            "Invalid chain",
        ),
        (
            "/api/block/1/rewards?chain=mainnet&chain=mainnet".to_owned(),
            400,
            "Duplicate parameter: chain",
        ),
        (
            "/api/block/1/rewards?chain=testnet".to_owned(),
            503,
            "Chain testnet is not configured",
        ),
    ] {
        world.server.get(&path).await.assert_error(status, text);
    }
}

/// Block 2165403 of Ethereum mainnet, as an explorer tells it: two uncles, two blocks late each.
#[test]
fn a_block_of_mainnet_with_uncles() {
    use quarry::codec::value::FeeRow;
    use quarry::model::{B256, Block, StaticRewards};
    let uncle = |miner| Header {
        number: 2_165_401,
        beneficiary: account(miner),
        ..Header::default()
    };
    let block = Block {
        header: Header {
            number: 2_165_403,
            difficulty: U256::ONE,
            ..Header::default()
        },
        uncles: vec![B256::repeat_byte(1), B256::repeat_byte(2)],
        uncle_headers: vec![uncle(1), uncle(2)],
        ..Block::default()
    };
    let fee = FeeRow {
        gas_used: 84_080,
        gas_price: Some(20_000_000_000),
        ..FeeRow::default()
    };
    let genesis = "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3";
    let rewards = StaticRewards::well_known(1, genesis.parse().unwrap());
    let reward = quarry::query::BlockReward::of(&block, [fee], &rewards);
    assert_eq!(reward.total().to_string(), "5314181600000000000");
    assert_eq!(reward.uncle_inclusion_reward.to_string(), "312500000000000000");
    let paid = |uncle: &UncleReward| uncle.reward.to_string();
    let paid: Vec<String> = reward.uncles.unwrap().iter().map(paid).collect();
    assert_eq!(paid, ["3750000000000000000"; 2]);
}
