//! `quarry config`.

use std::process::Command;

use serde_json::Value;

use crate::binary::{Outcome, Server, command, demo, import_demo, quarry};

/// Runs a command with variables in its environment.
fn run(mut command: Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn it_says_where_each_value_comes_from_and_is_a_file_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quarry.toml");
    std::fs::write(
        &path,
        "cache_size = \"2GiB\"\nrate_limit = 7\ntrust_proxy = true\n[mainnet]\ntoken_checks = 3\n",
    )
    .unwrap();
    let file = path.to_str().unwrap();
    let mut asked = command([
        "config",
        "--config",
        file,
        "--rpc-concurrency",
        "5",
        "--log",
        "warn",
        "--trust-node=yes",
    ]);
    asked
        .env("QUARRY_MAINNET_RPC", "http://127.0.0.1:8545")
        .env("QUARRY_RPC_CONCURRENCY", "6")
        .env("QUARRY_RATE_LIMIT", "8")
        .env("QUARRY_TRUST_PROXY", "0")
        .env("QUARRY_CACHESIZE", "1GiB");
    let printed = run(asked).succeeded().stdout;
    let has = |line: &str, origin: &str| {
        let found = printed.lines().find(|found| found.starts_with(line));
        let found = found.unwrap_or_else(|| panic!("no line `{line}`: {printed}"));
        assert_eq!(
            found.split_once("  # ").map(|(_, origin)| origin),
            Some(origin),
            "{found}"
        );
    };
    has("cache_size = \"2GiB\" ", file);
    has("rate_limit = 8 ", "QUARRY_RATE_LIMIT");
    // The environment can say no where the file says yes.
    has("trust_proxy = false ", "QUARRY_TRUST_PROXY");
    has("log = \"warn\" ", "--log");
    has("rpc = \"http://127.0.0.1:8545\" ", "QUARRY_MAINNET_RPC");
    // A flag wins over the environment.
    has("rpc_concurrency = 5 ", "--rpc-concurrency");
    has("trust_node = true ", "--trust-node");
    has("token_checks = 3 ", file);
    has("finality_depth = 64 ", "default");
    assert!(
        printed.contains("# QUARRY_CACHESIZE is in the environment and names no option"),
        "{printed}"
    );

    // What was printed says the same by itself.
    let again = directory.path().join("again.toml");
    std::fs::write(&again, &printed).unwrap();
    let again = quarry(["config", "--config", again.to_str().unwrap()])
        .succeeded()
        .stdout;
    let values = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        lines
            .map(|line| line.split("  # ").next().unwrap().trim().to_owned())
            .collect()
    };
    assert_eq!(values(&printed), values(&again));
}

#[test]
fn keys_in_urls_are_printed_on_demand_only() {
    let url = "https://me:pw@node.example/v3/key?x=1";
    let args = ["config", "--mainnet-rpc", url];
    let hidden = quarry(args).succeeded();
    assert!(
        hidden.stdout.contains("#rpc = \"https://node.example\""),
        "{hidden:?}"
    );
    for secret in ["me:pw", "v3", "x=1"] {
        assert!(
            !hidden.stdout.contains(secret) && !hidden.stderr.contains(secret),
            "{hidden:?}"
        );
    }
    let shown = quarry(args.into_iter().chain(["--show-secrets"]))
        .succeeded()
        .stdout;
    assert!(shown.contains(&format!("rpc = \"{url}\"")), "{shown}");
    let json = quarry(args.into_iter().chain(["--format", "json"]))
        .succeeded()
        .stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["mainnet.rpc"]["value"], "https://node.example");
    assert_eq!(json["mainnet.rpc"]["hidden"], true);
    assert_eq!(json["mainnet.rpc"]["origin"], "flag");
    assert_eq!(json["mainnet.rpc"]["from"], "--mainnet-rpc");
    assert_eq!(json["cache_size"]["origin"], "default");
}

#[test]
fn it_takes_what_run_takes() {
    let help = |name: &str| quarry(["help", name]).succeeded().stdout;
    let options = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter_map(|line| line.trim().split([' ', '[']).next());
        lines
            .filter(|word| word.starts_with("--"))
            .map(str::to_owned)
            .collect()
    };
    let (run, config) = (options(&help("run")), options(&help("config")));
    assert!(run.len() > 18, "{run:?}");
    for option in run {
        assert!(config.contains(&option), "quarry config does not know {option}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quarry.toml");
    std::fs::write(&path, "cache_size = \"much\"\n").unwrap();
    let file = path.to_str().unwrap();
    quarry(["config", "--config", file])
        .refused(&["cache_size: `much` is not a size", &format!("(from {file})")]);
    std::fs::write(&path, "cachesize = \"1GiB\"\n").unwrap();
    quarry(["config", "--config", file]).refused(&[&format!(
        "configuration `{file}`, line 1: unknown field `cachesize`, expected one of `data_dir`"
    )]);
    // What is neither a URL nor a path is told now, and not waited for by the service.
    for (url, words) in [
        ("htp://127.0.0.1:8545", "unknown scheme `htp`"),
        (
            "127.0.0.1:8545/key",
            "`127.0.0.1:8545` is neither a URL nor the path of a socket: it lacks http://",
        ),
    ] {
        let refused = quarry(["config", "--mainnet-rpc", url]).refused(&[words]);
        assert!(!format!("{refused:?}").contains("key"), "{refused:?}");
    }
    let mut environment = command(["config"]);
    environment.env("QUARRY_LISTEN", "nowhere");
    run(environment).refused(&["listen: `nowhere` is not an address", "(from QUARRY_LISTEN)"]);
}

/// Compose files and unit files set variables to nothing where a value is not wanted.
#[test]
fn an_empty_variable_says_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quarry.toml");
    let url = "http://127.0.0.1:8545";
    std::fs::write(&path, format!("rate_limit = 7\n[mainnet]\nrpc = \"{url}\"\n")).unwrap();
    let config = |flags: &[&str], variables: &[&str]| {
        let file = ["config", "--config", path.to_str().unwrap()];
        let mut asked = command(file.iter().chain(flags));
        asked.envs(variables.iter().map(|name| (name, "")));
        run(asked).succeeded().stdout
    };
    let wanted = config(&[], &[]);
    assert!(
        wanted.contains("rate_limit = 7") && wanted.contains(url),
        "{wanted}"
    );
    let variables = [
        "QUARRY_RATE_LIMIT",
        "QUARRY_CACHE_SIZE",
        "QUARRY_DATA_DIR",
        "QUARRY_LISTEN",
        "QUARRY_MAINNET_RPC",
        "QUARRY_START_BLOCK",
        "QUARRY_TRUST_NODE",
        "QUARRY_STATIC_REWARD",
        "QUARRY_LOG",
        "QUARRY_LOG_FORMAT",
    ];
    assert_eq!(config(&[], &variables), wanted);
    let off = config(&["--mainnet-rpc", ""], &variables);
    assert!(!off.contains(url), "{off}");
    // One that names no option is told all the same.
    assert!(config(&[], &["QUARRY_RATELIMIT"]).contains("QUARRY_RATELIMIT"));
}

/// A misspelt variable is a setting that is not heard.
#[test]
fn a_service_tells_of_variables_that_are_none() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    let mut serve = command(["serve", "--data-dir", store]);
    serve
        .env("QUARRY_CACHESIZE", "s3cret")
        .env("QUARRY_XYZ", "s3cret");
    let log = Server::of(serve).unwrap().stop_logged();
    for sentence in [
        "QUARRY_CACHESIZE is in the environment and names no option; QUARRY_CACHE_SIZE does, and is the nearest",
        "QUARRY_XYZ is in the environment and names no option\n",
    ] {
        let lines: Vec<&str> = log
            .split_inclusive('\n')
            .filter(|line| line.contains(sentence))
            .collect();
        assert!(matches!(lines[..], [line] if line.contains(" WARN ")), "{log}");
    }
    assert!(!log.contains("s3cret"), "{log}");
    // Others do before they answer, whether or not they can; what they print is the same.
    let printed = |variable: bool| {
        ["openapi", "config", "health"].map(|name| {
            let mut asking = command([name]);
            if name == "config" {
                asking.args(["--format", "json"]);
            }
            if variable {
                asking.env("QUARRY_CACHESIZE", "s3cret");
            }
            let outcome = run(asking);
            let told = outcome
                .stderr
                .matches("QUARRY_CACHESIZE is in the environment")
                .count();
            assert_eq!(told, usize::from(variable), "{name}: {}", outcome.stderr);
            outcome.stdout
        })
    };
    assert_eq!(printed(true), printed(false));
    // What only prints something does not.
    let mut printing = command(["completions", "bash"]);
    printing.env("QUARRY_CACHESIZE", "1GiB");
    assert_eq!(run(printing).succeeded().stderr, "");
}

/// What clap reads it blames on the flag, which nobody typed where the value is a variable's.
#[test]
fn a_wrong_value_of_a_variable_names_the_variable() {
    for (name, value, words) in [
        (
            "QUARRY_MAX_CONNECTIONS",
            "abc",
            "'--max-connections <N> (from QUARRY_MAX_CONNECTIONS)'",
        ),
        (
            "QUARRY_LOG_FORMAT",
            "xml",
            "'--log-format <FORMAT> (from QUARRY_LOG_FORMAT)'",
        ),
        (
            "QUARRY_TRUST_PROXY",
            "maybe",
            "'--trust-proxy[=<BOOL>] (from QUARRY_TRUST_PROXY)'",
        ),
        (
            "QUARRY_SECONDARY",
            "maybe",
            "'--secondary[=<BOOL>] (from QUARRY_SECONDARY)'",
        ),
    ] {
        let asked = |flags: &[&str]| {
            let mut asked = command(["serve"].iter().chain(flags));
            asked.env(name, value);
            let outcome = run(asked);
            assert_eq!(outcome.code, Some(2), "{outcome:?}");
            outcome.stderr
        };
        let said = asked(&[]);
        assert!(said.contains(words), "{said}");
        // A flag is read in its place, and is what was typed.
        let flag = words.trim_start_matches('\'').split([' ', '[']).next().unwrap();
        let said = asked(&[&format!("{flag}=nonsense")]);
        assert!(said.contains("'nonsense'") && !said.contains("from"), "{said}");
    }
}

/// So does what the program reads itself, with every command that heeds it.
#[test]
fn a_value_that_makes_no_sense_names_its_variable() {
    let node = ["--mainnet-rpc", "http://127.0.0.1:9"];
    for (asked, name, value, said) in [
        (&["run"][..], "QUARRY_CACHE_SIZE", "1", "cache_size: "),
        (&["sync", "--to", "1"], "QUARRY_CACHE_SIZE", "1", "cache_size: "),
        (&["serve"], "QUARRY_CACHE_SIZE", "1", "cache_size: "),
        (&["inspect"], "QUARRY_CACHE_SIZE", "1", "cache_size: "),
        (&["demo"], "QUARRY_LISTEN", "here", "listen: "),
        (&["health"], "QUARRY_LISTEN", "here", "listen: "),
        (&["serve"], "QUARRY_LOG", ",", "log: "),
    ] {
        let mut command = command(asked);
        if matches!(asked[0], "run" | "sync") {
            command.args(node);
        }
        command.env(name, value);
        run(command).refused(&[said, &format!("(from {name})")]);
    }
}

#[test]
fn what_is_beyond_all_bounds_is_refused() {
    for (flag, value, words) in [
        (
            "--cache-size",
            "64TiB",
            "cache-size: 64TiB is above the most, 4TiB",
        ),
        (
            "--cache-size",
            "16PiB",
            "cache-size: 16PiB is above the most, 4TiB",
        ),
        (
            "--backfill-memory",
            "5TiB",
            "backfill-memory: 5TiB is above the most",
        ),
        (
            "--start-block",
            "18446744073709551615",
            "start-block: `18446744073709551615` is above the most",
        ),
    ] {
        quarry(["config", flag, value]).refused(&[words]);
    }
}

#[test]
fn options_that_are_not_understood_have_an_exit_code_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quarry.toml");
    std::fs::write(&path, "cache_size = \"0\"\n").unwrap();
    let (home, file) = (directory.path().to_str().unwrap(), path.to_str().unwrap());
    let node = ["--mainnet-rpc", "http://127.0.0.1:1"];
    let run = |more: &[&str]| {
        let args = ["run", "--data-dir", home].into_iter().chain(node);
        quarry(args.chain(more.iter().copied()))
    };
    // No restart mends these: the unit of systemd names the code.
    for wrong in [
        ["--cache-size", "0"],
        ["--max-connections", "0"],
        ["--listen", "21000"],
        ["--log-format", "xml"],
        ["--config", file],
        ["--rate-limit", "1.5"],
    ] {
        assert_eq!(run(&wrong).code, Some(2), "{wrong:?}");
    }
    // Nor these, which clap does not read, whatever else is wrong; by flags and by the environment.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let wrong: [(&[&str], &str, &str); 15] = [
        (&["run"], "", "no node is configured"),
        (&["sync", "--to", "latest"], "", "no node is configured"),
        (&["run", "--listen", &taken], "", "no node is configured"),
        (&["run", "--mainnet-rpc", "htp://x"], "", "unknown scheme `htp`"),
        (
            &["run"],
            "QUARRY_MAINNET_RPC=htp://x",
            "mainnet: node url: unknown scheme",
        ),
        (
            &["run", "--mainnet-rpc", node[1]],
            "QUARRY_TESTNET_RPC=x",
            "testnet: node url: `x` is neither a URL",
        ),
        (
            &["sync", "--to", "1", "--mainnet-rpc", "htp://x"],
            "",
            "unknown scheme",
        ),
        (&["verify", "--mainnet-rpc", "htp://x"], "", "unknown scheme"),
        (&["run"], "QUARRY_LOG=inf", "log: `inf` is not a filter"),
        (&["run", "--log", ""], "", "log: empty: leave it out"),
        (&["run", "--mainnet-rpc=~/x.ipc"], "", "`~/x.ipc` begins with ~"),
        (&["run"], "QUARRY_MAINNET_RPC=~/x.ipc", "`~/x.ipc` begins with ~"),
        (
            &["run", "--contradiction-wait", "86401"],
            "QUARRY_MAINNET_RPC=http://127.0.0.1:1",
            "contradiction-wait: `86401` is not between 0 and 86400",
        ),
        (
            &["serve", "--log", "quarry=lots"],
            "",
            "log: `quarry=lots` is not a filter",
        ),
        (
            &["import", "contracts", file, "--address", "0x12"],
            "",
            "--address: `0x12`",
        ),
    ];
    for (args, variable, words) in wrong {
        let mut asked = command(args.iter().chain(&["--data-dir", home]));
        asked.envs(variable.split_once('='));
        let output = asked.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?} {variable}: {said}");
        assert!(
            said.starts_with("quarry: ") && said.contains(words),
            "{args:?} {variable}: {said}"
        );
    }
    // These may be mended while it waits.
    assert_eq!(run(&["--listen", &taken]).code, Some(1));
    assert_eq!(run(&["--config", "/no such file"]).code, Some(1));
    let args = ["run", "--data-dir", file].into_iter().chain(node);
    assert_eq!(quarry(args).code, Some(1));
}

/// Which chain a genesis file is of nobody says: a flag is meant for the chain that is named beside it, a variable for that of `run`.
#[test]
fn a_genesis_file_of_the_environment_is_of_mainnet_where_another_chain_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().to_str().unwrap();
    let (chain, genesis) = (demo("chain.jsonl.zst"), demo("genesis.json"));
    let import = ["import", "chain", &chain, "--chain", "testnet"];
    quarry(
        import
            .into_iter()
            .chain(["--genesis", &genesis, "--data-dir", home]),
    )
    .succeeded();
    let verify = |more: &[&str], variables: &[(&str, &str)]| {
        let args = ["verify", "--chain", "testnet", "--data-dir", home];
        let mut asked = command(args.iter().chain(more));
        asked.envs(variables.iter().copied());
        run(asked)
    };
    let elsewhere = ("QUARRY_GENESIS", "/no such file");
    verify(&[], &[elsewhere]).succeeded();
    verify(&["--genesis", &genesis], &[elsewhere]).succeeded();
    verify(&["--genesis", "/no such file"], &[]).refused(&["/no such file"]);
    // It is of `testnet` where that is the only one with a node.
    let node = ("QUARRY_TESTNET_RPC", "http://127.0.0.1:1");
    verify(&[], &[elsewhere, node]).refused(&["/no such file"]);
}

/// So it is where a recording is imported: what is meant for `mainnet` does not win over what the file says of `testnet`.
#[test]
fn variables_of_mainnet_are_not_of_another_chain_that_is_imported() {
    let directory = tempfile::tempdir().unwrap();
    let (chain, genesis) = (demo("chain.jsonl.zst"), demo("genesis.json"));
    let path = directory.path().join("quarry.toml");
    std::fs::write(
        &path,
        format!("[testnet]\ngenesis = \"{genesis}\"\nstatic_reward = \"3\"\n"),
    )
    .unwrap();
    let home = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let import = |name: &str, more: &[&str], variables: &[(&str, &str)]| {
        let (data, file) = (home(name), path.to_str().unwrap());
        let args = ["import", "chain", &chain, "--data-dir", &data, "--config", file];
        let mut asked = command(args.iter().chain(more));
        asked.envs(variables.iter().copied());
        run(asked)
    };
    let said = |name: &str, chain: &str| {
        let data = home(name);
        quarry(["inspect", "--chain", chain, "--data-dir", &data])
            .succeeded()
            .stdout
    };
    let elsewhere = [("QUARRY_GENESIS", "/no such file"), ("QUARRY_STATIC_REWARD", "7")];
    let testnet = ["--chain", "testnet"];
    import("file", &testnet, &elsewhere).succeeded();
    let told = said("file", "testnet");
    for line in ["rewards    0:3 ", "ledger     native balances of all blocks"] {
        assert!(told.contains(&format!("\n{line}")), "{line}: {told}");
    }
    let flags = ["--genesis", &genesis, "--static-reward", "5"];
    import("flags", &[&testnet[..], &flags].concat(), &elsewhere).succeeded();
    assert!(said("flags", "testnet").contains("\nrewards    0:5 "));
    import("own", &["--genesis", &genesis], &elsewhere[1..]).succeeded();
    assert!(said("own", "mainnet").contains("\nrewards    0:7 "));
    // They are of `testnet` where that is the only one with a node.
    let node = ("QUARRY_TESTNET_RPC", "http://127.0.0.1:1");
    import("only", &testnet, &[elsewhere[0], node]).refused(&["/no such file"]);
    import("only", &testnet, &[elsewhere[1], node]).succeeded();
    assert!(said("only", "testnet").contains("\nrewards    0:7 "));
}

/// A chain whose encoding is its own is so without a node, too.
#[test]
fn a_file_that_trusts_what_is_told_is_heard_by_imports_and_audits() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let packed = std::fs::read(demo("chain.jsonl.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(&*packed).unwrap()).unwrap();
    let mut lines: Vec<String> = text.lines().take(20).map(str::to_owned).collect();
    let mut block: Value = serde_json::from_str(&lines[7]).unwrap();
    block["block"]["extraData"] = "0x11".into();
    lines[7] = block.to_string();
    let (recording, file) = (at("chain.jsonl"), at("quarry.toml"));
    std::fs::write(&recording, lines.join("\n") + "\n").unwrap();
    std::fs::write(&file, "[mainnet]\ntrust_node = true\n").unwrap();
    let import = |name: &str, more: &[&str]| {
        let data = at(name);
        let args = ["import", "chain", &recording, "--data-dir", &data];
        quarry(args.iter().chain(more))
    };
    let trusting = ["--config", file.as_str()];
    import("strict", &[]).refused(&["block 7"]);
    import("no", &["--config", &file, "--trust-node=false"]).refused(&["block 7"]);
    import("flag", &["--trust-node"]).succeeded();
    import("file", &trusting).succeeded();
    let verify = |more: &[&str]| {
        let data = at("file");
        let args = ["verify", "--data-dir", &data];
        quarry(args.iter().chain(more))
    };
    verify(&[]).refused(&["mismatches"]);
    verify(&["--config", &file, "--trust-node=false"]).refused(&["mismatches"]);
    verify(&trusting).succeeded();
}
