//! The files to deploy with: what they name is there, and what they start is understood.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::{CommandFactory as _, Parser as _};
use quarry::cli::Cli;

use crate::binary::skipped::skipped;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Instructions of the Dockerfile, one a line, without comments.
fn instructions() -> Vec<(String, String)> {
    let whole = text("Dockerfile").replace("\\\n", " ");
    whole
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| {
            let (name, rest) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}`"));
            let rest: Vec<&str> = rest.split_whitespace().collect();
            (name.to_owned(), rest.join(" "))
        })
        .collect()
}

fn all_of(name: &str) -> Vec<String> {
    let found: Vec<String> = instructions()
        .into_iter()
        .filter(|(found, _)| found == name)
        .map(|(_, rest)| rest)
        .collect();
    assert!(!found.is_empty(), "no {name} in the Dockerfile");
    found
}

/// Words of a list such as `["quarry", "health"]`.
fn words(list: &str) -> Vec<String> {
    let begin = list.find('[').unwrap_or_else(|| panic!("no list in {list}"));
    serde_json::from_str(&list[begin..]).unwrap()
}

#[test]
fn variables_are_options() {
    fn collect(command: &clap::Command, known: &mut BTreeSet<String>) {
        let variables = command.get_arguments().filter_map(clap::Arg::get_env);
        known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
        command
            .get_subcommands()
            .for_each(|deeper| collect(deeper, known));
    }
    let mut known = BTreeSet::new();
    collect(&Cli::command(), &mut known);
    // Where `make` builds, which is no option of the program.
    known.insert("QUARRY_TARGET_DIR".to_owned());
    for file in [
        "Dockerfile",
        "docs/deploy/quarry.service",
        "docs/deploy/quarry.env",
        "docs/deploy/compose.yaml",
        "docs/DEPLOYMENT.md",
        "docs/UPGRADING.md",
    ] {
        for part in text(file).split("QUARRY_").skip(1) {
            let rest: String = part
                .chars()
                .take_while(|char| char.is_ascii_uppercase() || *char == '_')
                .collect();
            let name = format!("QUARRY_{rest}");
            assert!(known.contains(&name), "{file}: {name} is no option");
        }
    }
}

#[test]
fn the_image_is_made_from_what_is_there() {
    let ignored = text(".dockerignore");
    let sent: Vec<&str> = ignored
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    assert!(
        ignored.lines().any(|line| line == "*"),
        "everything else is left out"
    );
    let mut copied = Vec::new();
    for copy in all_of("COPY") {
        if copy.starts_with("--from=build ") {
            continue;
        }
        let mut names: Vec<&str> = copy.split(' ').collect();
        names.pop();
        for name in names {
            assert!(root().join(name).exists(), "COPY {name}: it is not there");
            assert!(sent.contains(&name), "COPY {name}: .dockerignore leaves it out");
            copied.push(name.to_owned());
        }
    }
    for name in &sent {
        assert!(
            copied.iter().any(|copied| copied == name),
            "{name} is sent and not copied"
        );
    }
    // What the program is compiled from lies in what is copied.
    let listed = Command::new("grep")
        .args(["-rhoE", r#"\.\./demo/[A-Za-z0-9_./-]+"#, "src"])
        .current_dir(root())
        .output()
        .unwrap();
    let included = String::from_utf8(listed.stdout).unwrap();
    assert!(included.lines().count() > 3, "{included}");
    for line in included.lines() {
        assert!(root().join(line.trim_start_matches("../")).exists(), "{line}");
    }
    // Every target that Cargo.toml names is there, or Cargo refuses the manifest.
    let manifest: toml::Value = toml::from_str(&text("Cargo.toml")).unwrap();
    assert!(
        manifest["bench"]
            .as_array()
            .is_some_and(|benches| !benches.is_empty())
    );
    assert!(copied.contains(&"benches".to_owned()));
}

#[test]
fn the_image_is_built_as_make_builds() {
    let runs = all_of("RUN");
    let make = runs.iter().find(|run| run.starts_with("make dist"));
    let make = make.unwrap_or_else(|| panic!("make dist is not run: {runs:?}"));
    let makefile = text("Makefile");
    assert!(makefile.contains("\ndist: setup-build"), "the target `dist`");
    assert!(makefile.contains("$(CARGO) build --profile dist --locked --bin quarry"));
    let manifest: toml::Value = toml::from_str(&text("Cargo.toml")).unwrap();
    assert_eq!(manifest["profile"]["dist"]["inherits"].as_str(), Some("release"));
    assert!(makefile.contains("CARGO_TARGET_DIR := $(or $(QUARRY_TARGET_DIR),"));
    assert!(
        all_of("ENV")
            .iter()
            .any(|env| env == "QUARRY_TARGET_DIR=/build/target")
    );
    assert!(all_of("WORKDIR").contains(&"/build".to_owned()) && make.contains(" target/dist/quarry"));
    // Packages to build with are those that tools/setup.sh installs.
    let installed = runs
        .iter()
        .filter_map(|run| run.split("--no-install-recommends ").nth(1));
    let packages: Vec<Vec<&str>> = installed
        .map(|rest| rest.split(" && ").next().unwrap().split(' ').collect())
        .collect();
    let [build, run] = packages.as_slice() else {
        panic!("{packages:?}");
    };
    let setup = text("tools/setup.sh");
    for package in build {
        assert!(
            setup.contains(package),
            "{package} is not what tools/setup.sh installs"
        );
    }
    assert!(setup.contains("wanted+=(clang libclang-dev)") && setup.contains("wanted+=(build-essential)"));
    for package in ["build-essential", "clang", "libclang-dev"] {
        assert!(build.contains(&package), "{package}");
    }
    // What the program loads is in the image: the C++ library, and what comes with every Debian.
    let program = std::fs::read(env!("CARGO_BIN_EXE_quarry")).unwrap();
    let loads = |library: &str| {
        program
            .windows(library.len())
            .any(|found| found == library.as_bytes())
    };
    assert!(!loads("libstdc++.so.6") || run.contains(&"libstdc++6"), "{run:?}");
    assert!(run.contains(&"ca-certificates"), "{run:?}");
}

#[test]
fn images_are_pinned_and_of_one_system() {
    let manifest: toml::Value = toml::from_str(&text("Cargo.toml")).unwrap();
    let rust = manifest["package"]["rust-version"].as_str().unwrap();
    let images = all_of("ARG");
    let image = |name: &str| {
        let found = images.iter().find_map(|arg| arg.strip_prefix(name));
        found
            .unwrap_or_else(|| panic!("no {name}: {images:?}"))
            .to_owned()
    };
    assert!(image("RUST_IMAGE=").starts_with(&format!("rust:{rust}.")));
    // The program needs a C library at least as new as the one it was linked with: Debian 12 is bookworm.
    assert!(image("RUST_IMAGE=").ends_with("-bookworm"));
    assert!(image("DEBIAN_IMAGE=").starts_with("debian:12."));
    assert_eq!(all_of("FROM"), ["${RUST_IMAGE} AS build", "${DEBIAN_IMAGE}"]);
}

#[test]
fn the_image_runs_what_the_program_knows() {
    let user = all_of("USER");
    assert!(
        user.iter()
            .all(|user| user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)))
    );
    let [entry] = all_of("ENTRYPOINT").try_into().unwrap();
    let [command] = all_of("CMD").try_into().unwrap();
    let started = [words(&entry), words(&command)].concat();
    Cli::try_parse_from(&started).unwrap_or_else(|error| panic!("{started:?}: {error}"));
    let [health] = all_of("HEALTHCHECK").try_into().unwrap();
    let asked = words(&health);
    Cli::try_parse_from(&asked).unwrap_or_else(|error| panic!("{asked:?}: {error}"));
    // The store lies in the volume, which is the user's own.
    let [volume] = all_of("VOLUME").try_into().unwrap();
    assert!(
        all_of("ENV")
            .iter()
            .any(|env| env.contains(&format!("QUARRY_DATA_DIR={volume} ")))
    );
    assert!(
        all_of("RUN")
            .iter()
            .any(|run| run.contains(&format!("install -d -o quarry -g quarry -m 0750 {volume}")))
    );
    let [port] = all_of("EXPOSE").try_into().unwrap();
    assert!(
        all_of("ENV")
            .iter()
            .any(|env| env.ends_with(&format!("QUARRY_LISTEN=0.0.0.0:{port}")))
    );
    let compose = text("docs/deploy/compose.yaml");
    assert!(compose.contains(&format!("image: quarry:{}\n", env!("CARGO_PKG_VERSION"))));
    assert!(
        compose.contains(&format!("\"127.0.0.1:{port}:{port}\""))
            && compose.contains(&format!("quarry-data:{volume}"))
    );
}

#[test]
fn what_is_said_of_compose_names_its_file() {
    let compose = text("docs/deploy/compose.yaml");
    let commands: Vec<&str> = compose.split("`docker compose ").skip(1).collect();
    assert!(commands.len() > 1, "{compose}");
    for command in commands {
        assert!(command.starts_with("-f docs/deploy/compose.yaml "), "{command}");
    }
}

/// What make says that installs and builds nothing; nothing where it is not installed.
fn made(args: &[&str]) -> Option<String> {
    let mut make = Command::new("make");
    // A test that make runs is not a part of it.
    for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "RPC", "TESTNET_RPC", "ARGS"] {
        make.env_remove(name);
    }
    if says("make", &["--version"]).is_none() {
        skipped("make is not installed");
        return None;
    }
    // What it is told of the directory to build in is nothing to the program.
    let directory = tempfile::tempdir().unwrap();
    make.env("QUARRY_TARGET_DIR", directory.path());
    let output = make
        .arg("--silent")
        .args(args)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// A node that is named is followed, whichever chain it is of.
#[test]
fn make_runs_what_it_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("quarry");
    std::fs::write(
        &program,
        "#!/bin/sh\necho \"$@\"\nenv | grep ^QUARRY_TARGET_DIR\n:\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    // The program says what it was given.
    let program = format!("BIN={}", program.display());
    let built = ["run", "SETUP=:", "CARGO=:", &program, "DATA_DIR=d"];
    let run = |nodes: &[&str]| made(&[&built[..], nodes].concat());
    for (nodes, given) in [
        (&[][..], "demo"),
        (&["RPC=http://a"], "run --mainnet-rpc http://a --data-dir d"),
        (&["TESTNET_RPC=ws://x"], "run --testnet-rpc ws://x --data-dir d"),
        (
            &["RPC=http://a", "TESTNET_RPC=ws://x"],
            "run --mainnet-rpc http://a --testnet-rpc ws://x --data-dir d",
        ),
    ] {
        let Some(ran) = run(nodes) else { return };
        assert_eq!(ran.trim(), given, "{nodes:?}");
    }
}

/// However many jobs make is given, what is missing is installed before anything needs it.
#[test]
fn make_sets_up_first() {
    let set_up = "SETUP=sleep 0.3; echo set-up; :";
    let Some(said) = made(&["--jobs=8", "lint", set_up, "CARGO=echo"]) else {
        return;
    };
    assert!(said.starts_with("set-up\n") && said.contains("clippy"), "{said}");
}

/// Whether a program is installed; a test of what it says is left out else.
fn says(program: &str, args: &[&str]) -> Option<(bool, String)> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let said = [output.stdout, output.stderr].concat();
    Some((
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

#[test]
fn the_unit_is_well_formed_and_hardened() {
    let unit = text("docs/deploy/quarry.service");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    let started: Vec<&str> = start.split(' ').collect();
    Cli::try_parse_from(&started).unwrap_or_else(|error| panic!("{started:?}: {error}"));
    for setting in [
        "Type=notify",
        "StateDirectory=%N",
        "LimitNOFILE=65536",
        "Restart=on-failure",
        "TimeoutStopSec=5min",
        "ProtectSystem=strict",
        "EnvironmentFile=-/etc/quarry/%N.env",
    ] {
        assert!(unit.lines().any(|line| line == setting), "{setting}");
    }
    // Nothing that is set twice by accident.
    let mut seen = BTreeSet::new();
    for line in unit
        .lines()
        .filter(|line| line.contains('=') && !line.starts_with('#'))
    {
        assert!(seen.insert(line), "{line} stands there twice");
    }
    // As systemd reads it, with the program where this test has it.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quarry.service");
    let program = format!("ExecStart={} run", env!("CARGO_BIN_EXE_quarry"));
    std::fs::write(&path, unit.replace(&format!("ExecStart={start}"), &program)).unwrap();
    let path = path.to_str().unwrap();
    let Some((verified, said)) = says("systemd-analyze", &["verify", "--man=no", path]) else {
        skipped("systemd is not installed");
        return;
    };
    // Units of this machine may have faults of their own, and the user is made on installing.
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("quarry.service"))
        .collect();
    assert!(verified && ours.is_empty(), "{said}");
    let security = ["security", "--offline=true", "--threshold=20", "--no-pager", path];
    let (secure, said) = says("systemd-analyze", &security).unwrap();
    // Version 250 is the first that looks at files.
    if said.contains("unrecognized option") {
        skipped("systemd is too old to rate files");
        return;
    }
    assert!(secure && said.contains("OK"), "{said}");
}
