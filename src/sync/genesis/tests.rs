//! Genesis files of known chains give the blocks and forks that are known of them.

use alloy_consensus::constants::{
    GOERLI_GENESIS_HASH, HOLESKY_GENESIS_HASH, HOODI_GENESIS_HASH, MAINNET_GENESIS_HASH, SEPOLIA_GENESIS_HASH,
};
use alloy_primitives::b256;

use super::*;
use crate::model::StaticRewards;

const MINIMAL: &str = r#"{
    "config": {"chainId": 1337, "byzantiumBlock": 5, "londonBlock": 9},
    "gasLimit": "0x1388", "difficulty": "0x400", "nonce": "0x42", "timestamp": "0x0",
    "alloc": {"00000000000000000000000000000000000000aa": {"balance": "7", "nonce": "0x1"}}
}"#;

#[test]
fn the_accounts_and_forks_of_a_file_are_kept() {
    let genesis = parse(MINIMAL).unwrap();
    assert_eq!(genesis.forks.chain_id, 1337);
    assert_eq!(genesis.forks.byzantium, Some(5));
    assert_eq!(genesis.forks.london, Some(9));
    let [account] = genesis.accounts.as_slice() else {
        panic!("one account")
    };
    assert_eq!(account.address, Address::with_last_byte(0xaa));
    assert_eq!((account.balance, account.nonce), (U256::from(7), 1));
    assert_eq!(genesis.block.header.base_fee_per_gas, None);
    assert_eq!(genesis.block.header.gas_limit, 5000);
}

#[test]
fn a_fork_that_is_left_out_begins_with_the_next() {
    let forks = parse(MINIMAL).unwrap().forks;
    assert_eq!(forks.spurious_dragon, Some(5));
    assert_eq!(forks.homestead, Some(5));
    assert_eq!(forks.constantinople, Some(9));
    assert_eq!(forks.shanghai_time, None);
    let timed = MINIMAL.replace(
        "\"byzantiumBlock\": 5, \"londonBlock\": 9",
        "\"shanghaiTime\": 100",
    );
    let forks = parse(&timed).unwrap().forks;
    assert_eq!(
        (forks.london, forks.byzantium, forks.shanghai_time),
        (Some(0), Some(0), Some(100))
    );
}

#[test]
fn an_empty_mainnet_state_gives_the_hash_that_geth_gives() {
    // The mainnet header of block 0 with its well-known state root: the fields that do not come from alloc.
    let text = r#"{"config": {"chainId": 1}, "nonce": "0x0000000000000042", "gasLimit": "0x1388",
        "extraData": "0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa",
        "difficulty": "0x400000000", "alloc": {}}"#;
    let mut header = parse(text).unwrap().block.header;
    header.state_root = b256!("0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544");
    let hash = b256!("0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3");
    assert_eq!(header_hash(&header, &mut Vec::new()), hash);
    let forks = ForkRules::well_known(1, hash).unwrap();
    assert_eq!(
        (forks.chain_id, forks.spurious_dragon, forks.byzantium),
        (1, Some(2_675_000), Some(4_370_000))
    );
}

/// Ethereum Classic's schedule as its clients write it, and as geth would.
#[test]
fn eras_are_read_in_the_manner_of_each_client() {
    let of = |config: &str| {
        let text = MINIMAL.replace("\"byzantiumBlock\": 5, \"londonBlock\": 9", config);
        parse(&text).map(|genesis| genesis.forks)
    };
    let core_geth = r#""eip2FBlock": 1150000, "eip150Block": 2500000, "eip155Block": 3000000, "eip160Block": 3000000,
        "eip161FBlock": 8772000, "eip658FBlock": 8772000, "eip1014FBlock": 9573000, "ecip1017FBlock": 5000000,
        "ecip1017EraRounds": 5000000, "ethash": {}, "eip1559FBlock": null"#;
    let besu = r#""homesteadBlock": 1150000, "classicForkBlock": 1920000, "ecip1015Block": 2500000, "diehardBlock": 3000000,
        "gothamBlock": 5000001, "ecip1041Block": 5900000, "atlantisBlock": 8772000, "aghartaBlock": 9573000, "ethash": {}"#;
    let geth = r#""homesteadBlock": 1150000, "daoForkBlock": 1920000, "eip150Block": 2500000, "eip155Block": 3000000,
        "eip158Block": 8772000, "byzantiumBlock": 8772000, "constantinopleBlock": 9573000, "petersburgBlock": 9573000,
        "ethash": {}, "eip7FBlock": null, "ecip1017FBlock": 5000000, "ecip1017EraRounds": "0x4c4b40""#;
    for config in [core_geth, besu, geth] {
        let forks = of(config).unwrap();
        let begins = (forks.spurious_dragon, forks.byzantium, forks.dao);
        assert_eq!(begins, (Some(8_772_000), Some(8_772_000), None), "{config}");
        assert_eq!(forks.ecip1017_era, Some(5_000_000), "{config}");
        let rewards = StaticRewards::of_forks(&forks);
        let brings = [8_772_000, 9_573_000, 10_000_001].map(|block| rewards.of_block(block, U256::ONE));
        let wei = [
            4_000_000_000_000_000_000_u64,
            4_000_000_000_000_000_000,
            3_200_000_000_000_000_000,
        ];
        assert_eq!(brings, wei.map(U256::from), "{config}");
    }
    // Without eras the forks say what is paid, and signers are paid nothing.
    let era = |config: &str| of(config).unwrap().ecip1017_era;
    assert_eq!(era("\"byzantiumBlock\": 5, \"ecip1017EraRounds\": null"), None);
    assert_eq!(era("\"ecip1017EraRounds\": 0"), None);
    assert_eq!(era("\"ecip1017EraRounds\": 2000000"), Some(2_000_000));
    let kotti = of("\"ecip1017EraRounds\": 5000000, \"clique\": {\"period\": 15, \"epoch\": 30000}").unwrap();
    assert_eq!(StaticRewards::of_forks(&kotti), StaticRewards::default());
    let sentence = of("\"ecip1017EraRounds\": \"five\"").unwrap_err().to_string();
    assert!(
        sentence.starts_with("the genesis file is malformed: "),
        "{sentence}"
    );
}

/// The genesis file of Ethereum Classic's test chain, as Besu has it.
#[test]
fn mordor_begins_with_the_block_that_is_known_of_it() {
    let text = r#"{"config": {"chainId": 63, "atlantisBlock": 0, "aghartaBlock": 301243, "ecip1017EraRounds": 2000000, "ethash": {}},
        "nonce": "0x0000000000000000", "timestamp": "0x5d9676db", "gasLimit": "0x2fefd8", "difficulty": "0x20000",
        "extraData": "0x70686f656e697820636869636b656e206162737572642062616e616e61", "alloc": {}}"#;
    let genesis = parse(text).unwrap();
    let known = ForkRules::well_known(63, genesis.block.hash).unwrap();
    assert_eq!(known.chain_id, genesis.forks.chain_id);
    assert_eq!(known.byzantium, genesis.forks.byzantium);
    assert_eq!(known.spurious_dragon, genesis.forks.spurious_dragon);
    let rewards = StaticRewards::of_forks(&known);
    assert_eq!(rewards.to_string(), "ecip1017:2000000");
    assert_eq!(rewards, StaticRewards::of_forks(&genesis.forks));
}

#[test]
fn the_well_known_hashes_are_those_of_the_chains() {
    for (hash, chain_id) in [
        (MAINNET_GENESIS_HASH, 1),
        (MAINNET_GENESIS_HASH, 61),
        (GOERLI_GENESIS_HASH, 5),
        (SEPOLIA_GENESIS_HASH, 11_155_111),
        (HOLESKY_GENESIS_HASH, 17_000),
        (HOODI_GENESIS_HASH, 560_048),
    ] {
        assert_eq!(
            ForkRules::well_known(chain_id, hash).map(|forks| forks.chain_id),
            Some(chain_id)
        );
    }
}

#[test]
fn malformed_files_are_refused_with_a_sentence() {
    let sentence = |text: &str| parse(text).unwrap_err().to_string();
    assert!(sentence("{").starts_with("the genesis file is malformed: EOF"));
    assert!(sentence("[]").starts_with("the genesis file is malformed: invalid"));
    assert!(sentence("{}").starts_with("the genesis file has no `config`: "));
    let drop = |field: &str| MINIMAL.replace(field, "ignored");
    assert!(sentence(&drop("chainId")).starts_with("the genesis file has no `config.chainId`: "));
    assert!(sentence(&drop("alloc")).starts_with("the genesis file has no `alloc`: "));
    assert!(sentence(&drop("gasLimit")).starts_with("the genesis file has no `gasLimit`: "));
    assert!(sentence(&drop("difficulty")).starts_with("the genesis file has no `difficulty`: "));
    assert!(sentence(&MINIMAL.replace("\"7\"", "\"seven\"")).starts_with("the genesis file is malformed: "));
    let future = MINIMAL.replace("\"londonBlock\": 9", "\"londonBlock\": 0, \"amsterdamTime\": 0");
    assert!(sentence(&future).contains("Amsterdam"));
    let missing = load(Path::new("/nowhere/genesis.json")).unwrap_err().to_string();
    assert!(
        missing.starts_with("cannot read the genesis file /nowhere/genesis.json: "),
        "{missing}"
    );
}
