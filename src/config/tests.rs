//! What is merged, and what is printed of it.

use super::*;
use crate::cli::{ListenArgs, NodeArgs, RewardArgs};

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quarry.toml");
    std::fs::write(
        &path,
        "cache_size = \"2GiB\"\nlisten = \"127.0.0.1:9\"\n[mainnet]\nrpc = \"http://a\"\nstart_block = 7\n[testnet]\nrpc = \"http://b\"\nstart_block = 9\nfinality_depth = 4097\ntrust_node = true\nstatic_reward = \"2\"\n[testnet.supply]\nexcluded = [\"0X00000000000000000000000000000000000000AA\", \"0x00000000000000000000000000000000000000aa\"]\n",
    )
    .unwrap();
    let args = RunArgs {
        store: StoreArgs {
            config: Some(path),
            ..StoreArgs::default()
        },
        node: NodeArgs {
            start_block: Some(3),
            ..NodeArgs::default()
        },
        reward: RewardArgs {
            static_reward: Some("7:3".to_owned()),
        },
        listen: ListenArgs {
            listen: Some("127.0.0.1:1".to_owned()),
            ..ListenArgs::default()
        },
    };
    let config = Config::run(&args).unwrap();
    assert_eq!(config.listen.port(), 1);
    assert_eq!(config.cache_size.0, 2 << 30);
    assert_eq!(config.chains.len(), 2);
    assert_eq!(config.chains[0].start_block, Some(3));
    assert_eq!(config.chains[1].start_block, Some(9));
    assert!(config.chains[1].trust_node && !config.chains[0].trust_node);
    // More than are ever kept unwindable is said as it counts.
    assert_eq!(config.chains[0].finality_depth, 64);
    assert_eq!(config.chains[1].finality_depth, 4096);
    let rewards = ChainName::ALL.map(|chain| config.static_rewards_of(chain).unwrap().to_string());
    assert_eq!(rewards, ["7:3", "0:2"]);
    assert_eq!(config.excluded_of(ChainName::Testnet).len(), 1);
    assert_eq!(config.excluded_of(ChainName::Mainnet), [] as [Address; 0]);
}

#[test]
fn nonsense_is_named() {
    let args = |listen: &str, size: &str| RunArgs {
        store: StoreArgs {
            cache_size: Some(size.to_owned()),
            ..StoreArgs::default()
        },
        listen: ListenArgs {
            listen: Some(listen.to_owned()),
            ..ListenArgs::default()
        },
        ..RunArgs::default()
    };
    let error = |args| Config::run(&args).unwrap_err().to_string();
    assert!(error(args("nowhere", "1GiB")).starts_with("listen: `nowhere`"));
    assert!(error(args("127.0.0.1:1", "much")).starts_with("cache-size: `much`"));
    for size in ["64TiB", "16PiB", "99999999999999999999"] {
        let said = error(args("127.0.0.1:1", size));
        assert!(
            said.starts_with("cache-size: ") && said.contains("is above the most, 4TiB"),
            "{said}"
        );
    }
    let mut far = args("127.0.0.1:1", "1GiB");
    far.node.start_block = Some(u64::MAX);
    assert_eq!(
        error(far),
        "start-block: `18446744073709551615` is above the most, 281474976710656"
    );
    let mut patient = args("127.0.0.1:1", "1GiB");
    patient.node.contradiction_wait = Some(86_400);
    assert!(Config::run(&patient).is_ok());
    patient.node.contradiction_wait = Some(86_401);
    assert_eq!(
        error(patient),
        "contradiction-wait: `86401` is not between 0 and 86400"
    );
    assert!(error(args("127.0.0.1:1", "512")).starts_with("cache-size: 512 is below the least, 1MiB"));
    let mut reward = args("127.0.0.1:1", "1GiB");
    reward.reward.static_reward = Some("5 ether".to_owned());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quarry.toml");
    for account in ["", "00000000000000000000000000000000000000aa", "0x00aa", "0x0x00"] {
        std::fs::write(&path, format!("[mainnet.supply]\nexcluded = [\"{account}\"]\n")).unwrap();
        let mut args = args("127.0.0.1:1", "1GiB");
        args.store.config = Some(path.clone());
        assert!(error(args).starts_with(&format!("mainnet.supply.excluded: `{account}` is not an address")));
    }
    assert!(error(reward).starts_with("static-reward: `5 ether` is not WEI or BLOCK:WEI"));
}

/// A file that says everything, and a flag and a variable that win over it.
const WHOLE: &str = r#"
data_dir = "/var/lib/quarry \" # \\"
listen = "[::1]:9"
log = "debug"
log_format = "json"
cache_size = "2048MiB"
backfill_memory = "3GiB"
max_connections = 7
client_timeout = 5
rate_limit = 9
trust_proxy = true
[mainnet]
rpc = "https://me:pw@node.example/v3/key"
start_block = 7
genesis = "a/genesis.json"
rpc_concurrency = 3
token_checks = 0
finality_depth = 5
contradiction_wait = 6
trust_node = true
static_reward = "0:5,7:3"
symbol = "XDAI"
[mainnet.supply]
excluded = ["0x00000000000000000000000000000000000000aa"]
[mainnet.prices]
native = "0x5f4ec3df9cbd43714fe2740f5e3616155c5b8419"
stable = []
[testnet]
symbol = "SEP"
[testnet.supply]
excluded = []
"#;

fn with_file(directory: &tempfile::TempDir, text: &str) -> RunArgs {
    let path = directory.path().join("quarry.toml");
    std::fs::write(&path, text).unwrap();
    RunArgs {
        store: StoreArgs {
            config: Some(path),
            ..StoreArgs::default()
        },
        ..RunArgs::default()
    }
}

#[test]
fn what_is_printed_is_a_file_that_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let args = with_file(&directory, WHOLE);
    let report = Config::report(&args, &LogArgs::default()).unwrap();
    let printed = report.to_toml(true);
    let again_dir = tempfile::tempdir().unwrap();
    let again = with_file(&again_dir, &printed);
    assert_eq!(
        Config::run(&again).unwrap(),
        Config::run(&args).unwrap(),
        "{printed}"
    );
    let log = |args: &RunArgs| {
        LogConfig::merge(
            &LogArgs::default(),
            args.store.config.as_deref(),
            &args.store.given,
        )
        .unwrap()
    };
    assert_eq!(log(&again), log(&args));
    assert_eq!(log(&again).filter, "debug");
    // Nothing that was said is left out: every value of the first file is of a file.
    let said: Vec<_> = report
        .settings()
        .iter()
        .filter(|setting| setting.origin != Origin::Default)
        .collect();
    assert_eq!(
        said.len(),
        WHOLE.lines().filter(|line| line.contains(" = ")).count(),
        "{said:?}"
    );
}

#[test]
fn secrets_are_left_out_and_the_rest_is_still_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let args = with_file(&directory, WHOLE);
    let report = Config::report(&args, &LogArgs::default()).unwrap();
    let (toml_text, json_text) = (report.to_toml(false), report.to_json(false));
    for secret in ["me:", "pw@", "v3", "key\""] {
        assert!(!toml_text.contains(secret), "{toml_text}");
        assert!(!json_text.contains(secret), "{json_text}");
    }
    assert!(
        toml_text.contains("#rpc = \"https://node.example\""),
        "{toml_text}"
    );
    let file: ConfigFile = toml::from_str(&toml_text).unwrap();
    assert_eq!((file.mainnet.rpc, file.mainnet.start_block), (None, Some(7)));
    let json: serde_json::Value = serde_json::from_str(&json_text).unwrap();
    assert_eq!(json["mainnet.rpc"]["hidden"], true);
    assert_eq!(json["mainnet.rpc"]["value"], "https://node.example");
    let json: serde_json::Value = serde_json::from_str(&report.to_json(true)).unwrap();
    assert_eq!(json["mainnet.rpc"]["value"], "https://me:pw@node.example/v3/key");
    assert_eq!(json["mainnet.rpc"]["hidden"], serde_json::Value::Null);
}

#[test]
fn a_url_that_ends_lines_stays_in_its_comment() {
    let args = RunArgs {
        node: NodeArgs {
            mainnet_rpc: Some("http://a\nb = 1/x".to_owned()),
            ..NodeArgs::default()
        },
        ..RunArgs::default()
    };
    let report = Config::report(&args, &LogArgs::default()).unwrap();
    for show in [true, false] {
        let text = report.to_toml(show);
        let _: ConfigFile = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
}

#[test]
fn origins_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let mut args = with_file(&directory, WHOLE);
    args.node.trust_node = Some(false);
    args.node.testnet_rpc = Some("http://127.0.0.1:1".to_owned());
    let report = Config::report(&args, &LogArgs::default()).unwrap();
    let of = |key: &str| {
        let setting = report.settings().iter().find(|setting| setting.key == key);
        setting.map(|setting| (setting.value.to_string(), setting.origin.to_string()))
    };
    let some = |value: &str, origin: &str| Some((value.to_owned(), origin.to_owned()));
    // A flag that says no wins over a file that says yes.
    assert_eq!(of("mainnet.trust_node"), some("false", "--trust-node"));
    assert_eq!(of("testnet.rpc"), some("\"http://127.0.0.1:1\"", "--testnet-rpc"));
    assert_eq!(of("testnet.rpc_concurrency"), some("32", "default"));
    let path = args.store.config.as_ref().unwrap().to_str().unwrap();
    assert_eq!(of("cache_size"), some("\"2GiB\"", path));
    assert_eq!(of("testnet.genesis"), None);
    // What is wrong in a file is named with the file.
    args.listen.max_connections = None;
    let wrong = with_file(&directory, "max_connections = 0");
    let error = Config::run(&wrong).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("max_connections: `0` is not between 1 and 16777216 (from {path})")
    );
    let wrong = with_file(&directory, "log_format = \"xml\"");
    let error = LogConfig::merge(
        &LogArgs::default(),
        wrong.store.config.as_deref(),
        &wrong.store.given,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("log_format: `xml` is neither `text` nor `json`"),
        "{error}"
    );
}

#[test]
fn flags_of_one_chain_speak_of_the_only_one_with_a_node() {
    let directory = tempfile::tempdir().unwrap();
    for (file, meant) in [
        ("", ChainName::Mainnet),
        ("[testnet]\nrpc = \"http://b\"", ChainName::Testnet),
        (
            "[mainnet]\nrpc = \"http://a\"\n[testnet]\nrpc = \"http://b\"",
            ChainName::Mainnet,
        ),
        (
            "[mainnet]\nrpc = \" \"\n[testnet]\nrpc = \"http://b\"",
            ChainName::Testnet,
        ),
    ] {
        let mut args = with_file(&directory, file);
        args.reward.static_reward = Some("5".to_owned());
        args.node.start_block = Some(4);
        let config = Config::run(&args).unwrap();
        let rewards: Vec<_> = config.static_rewards.iter().map(|(chain, _)| *chain).collect();
        assert_eq!(rewards, [meant], "{file}");
        for chain in &config.chains {
            assert_eq!(chain.start_block.is_some(), chain.name == meant, "{file}");
        }
    }
}

/// What is said of a chain is said of its blocks, wherever they come from.
#[test]
fn settings_of_a_chain_need_no_node() {
    let directory = tempfile::tempdir().unwrap();
    let args = with_file(
        &directory,
        "[mainnet]\ntrust_node = true\nrpc_concurrency = 3\n[testnet]\nrpc = \"http://b\"\n",
    );
    let config = Config::run(&args).unwrap();
    assert!(config.trusts_node(ChainName::Mainnet) && !config.trusts_node(ChainName::Testnet));
    let mainnet = config.chain(ChainName::Mainnet).unwrap();
    assert_eq!((mainnet.rpc.as_deref(), mainnet.rpc_concurrency), (None, 3));
    let synced: Vec<_> = config.synced().map(|chain| chain.name).collect();
    assert_eq!(synced, [ChainName::Testnet]);
}

#[test]
fn flags_beside_the_name_of_a_chain_speak_of_that_one() {
    let directory = tempfile::tempdir().unwrap();
    let file =
        "[mainnet]\nrpc = \"http://a\"\ngenesis = \"m\"\n[testnet]\ngenesis = \"t\"\nstatic_reward = \"3\"\n";
    let mut args = with_file(&directory, file);
    args.node.genesis = Some("flag".into());
    args.reward.static_reward = Some("5".to_owned());
    for named in ChainName::ALL {
        let config = Config::of_chain(named, &args).unwrap();
        assert_eq!(config.genesis_of(named), Some(Path::new("flag")));
        assert_eq!(config.static_rewards_of(named).unwrap().to_string(), "0:5");
    }
    let config = Config::of_chain(ChainName::Testnet, &args).unwrap();
    assert_eq!(config.genesis_of(ChainName::Mainnet), Some(Path::new("m")));
}

/// An empty filter would log nothing at all; so would one that is forgotten between commas.
#[test]
fn an_empty_filter_is_refused() {
    let log = |text: &str| {
        let args = LogArgs {
            log: Some(text.to_owned()),
            ..LogArgs::default()
        };
        LogConfig::merge(&args, None, &Given::default())
    };
    for text in ["", " ", ",", " , "] {
        let error = log(text).unwrap_err().to_string();
        assert!(error.starts_with("log: empty: leave it out"), "{text}: {error}");
    }
    for text in ["off", "info,"] {
        assert_eq!(log(text).unwrap().filter, text);
    }
}

#[test]
fn chains_of_which_nothing_was_said_are_left_out() {
    let args = RunArgs {
        node: NodeArgs {
            rpc_concurrency: Some(4),
            ..NodeArgs::default()
        },
        ..RunArgs::default()
    };
    let report = Config::report(&args, &LogArgs::default()).unwrap();
    assert!(!report.to_toml(false).contains('['), "{}", report.to_toml(false));
}

#[test]
fn the_machine_decides_on_memory_of_backfill_alone() {
    let of = |cache: Option<&str>, backfill: Option<&str>| {
        let store = StoreArgs {
            cache_size: cache.map(str::to_owned),
            backfill_memory: backfill.map(str::to_owned),
            ..StoreArgs::default()
        };
        Config::of_store(&store)
    };
    let unsaid = of(None, None).unwrap().backfill_memory;
    assert_eq!(of(None, Some(" auto ")).unwrap().backfill_memory, unsaid);
    assert!((256 << 20..=4 << 30).contains(&unsaid.0), "{unsaid}");
    assert!(of(Some("auto"), None).is_err());
    assert!(of(None, Some("automatic")).is_err());
}
