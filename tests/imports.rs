//! Imports through the real binary, beside a running service: what is served changes, a file that is broken changes
//! nothing, and the same import again changes nothing either.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;

use std::path::{Path, PathBuf};
use std::time::Duration;

use binary::{Outcome, Server, command, demo, eventually, import_demo, quarry};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(if option_env!("QUARRY_STRICT_TIMES").is_some() {
    5
} else {
    50
});
const TOKEN: &str = "0x948b3c65b89df0b4894abe91e6d02fe579834f8f";
const PRICE: &str = "/api/stats/token-price";

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).unwrap();
        }
        std::fs::write(&path, text).unwrap();
        path
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn import(&self, what: &str, file: &Path) -> Outcome {
        self.import_with(what, file, &[])
    }

    fn import_with(&self, what: &str, file: &Path, more: &[&str]) -> Outcome {
        let (data, file) = (self.data(), file.to_str().unwrap());
        let mut args = vec!["import", what, file, "--data-dir", data.to_str().unwrap()];
        args.extend(more);
        quarry(args)
    }
}

fn info(server: &Server) -> Value {
    server.json(&format!("/api/token/info?contractaddress={TOKEN}"))
}

fn tag(server: &Server, target: &str) -> String {
    server.get(target).header("etag").unwrap().to_owned()
}

#[test]
fn a_service_follows_imports() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    // The demo's store, served without its feeds: what files tell then counts.
    Server::start(["demo", "--data-dir", place.data().to_str().unwrap()]).stop();
    let server = Server::start(["serve", "--data-dir", place.data().to_str().unwrap()]);
    let newest = server.json("/api/block/timestamp/1900000000/block-number");
    let head: u64 = binary::text(&newest["blockTimestamp"]).parse().unwrap();
    let before = server.json(PRICE);
    let list = format!("/api/token/holder-count?contractaddress={TOKEN}");
    let tags = [tag(&server, PRICE), tag(&server, &list)];

    // Broken as a whole, in the last line: nothing of it is taken.
    let broken = place.write("broken.csv", &format!("time,asset,usd\n{head},native,1\n\u{0}"));
    let mut bytes = std::fs::read(&broken).unwrap();
    bytes.extend_from_slice(b"\xff\n");
    std::fs::write(&broken, bytes).unwrap();
    place
        .import("prices", &broken)
        .refused(&["broken.csv", "line 3 is not UTF-8"]);
    let json_broken = place.write(
        "broken.json",
        &format!("[{{\"time\":{head},\"asset\":\"native\",\"usd\":1}}, {{"),
    );
    place
        .import("prices", &json_broken)
        .refused(&["broken.json", "EOF"]);
    place
        .import("tokens", &json_broken)
        .refused(&["broken.json", "EOF"]);
    let other = place.write("other.json", "{\"a\":1}");
    place
        .import("tokens", &other)
        .refused(&["neither a list of tokens nor a token"]);
    place
        .import("prices", &place.directory.path().join("none.csv"))
        .refused(&["cannot read", "none.csv"]);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(server.json(PRICE), before);

    // Good and bad lines; the last price of a time stays.
    let upper = TOKEN.to_uppercase().replace("0X", "0x");
    let good = place.write(
        "good.csv",
        &format!(
            "time,asset,usd\n{head},native,7.10\n{head},native,8.250\nx,native,1\n{},native,99\n{head},{upper},0.125\n",
            head + 1
        ),
    );
    let said = place.import("prices", &good).succeeded().stdout;
    assert!(said.contains("4 prices taken (3 new or changed)"), "{said}");
    assert!(
        said.contains("1 refused") && said.contains("refused: line 4: time `x`"),
        "{said}"
    );
    let after = eventually("the price is served", SOON, || {
        let after = server.json(PRICE);
        (after != before).then_some(after)
    });
    assert_eq!(
        (&after["priceUSD"], &after["timestamp"]),
        (&json!("8.25"), &json!(head.to_string()))
    );
    assert_eq!(info(&server)["tokenPriceUSD"], "0.125");
    assert_ne!(tag(&server, PRICE), tags[0]);
    let again = place.import("prices", &good).succeeded().stdout;
    assert!(again.contains("4 prices taken (0 new or changed)"), "{again}");
    assert_eq!(server.json(PRICE), after);

    // A list of the standard, then a directory of single tokens.
    let entry = |fields: &str| format!("{{\"chainId\": 31337, \"address\": \"{upper}\" {fields}}}");
    let standard = place.write(
        "list.json",
        &format!(
            "{{\"name\": \"x\", \"tokens\": [{}, {}, {}, 5]}}",
            entry(", \"name\": \"Renamed\", \"extensions\": {\"website\": \"https://a.example\", \"blog\": \"javascript:x\"}"),
            entry(", \"decimals\": \"18\""),
            entry("").replace("31337", "1"),
        ),
    );
    let said = place.import("tokens", &standard).succeeded().stdout;
    assert!(
        said.contains("1 tokens taken (1 new or changed)")
            && said.contains("1 of other chains skipped, 2 refused"),
        "{said}"
    );
    assert!(
        said.contains("left out: entry 1, extensions.blog: it is not a URL of http or https")
            && said.contains("2 refused, 1 fields left out")
            && said.matches("refused: ").count() == 2,
        "{said}"
    );
    let told = eventually("the website is served", SOON, || {
        let told = info(&server);
        (told["website"] == "https://a.example").then_some(told)
    });
    // The contract's own word stays.
    assert_eq!(
        (&told["tokenName"], &told["blog"]),
        (&json!("Ancient Coin"), &Value::Null)
    );
    let token = format!(
        "{{\"symbol\": \"ANC\", \"address\": \"{TOKEN}\", \"decimals\": 9, \"website\": \"\", \"social\": {{\"github\": \"https://g.example\"}}}}"
    );
    place.write("tokens/a.json", &token);
    place.write("tokens/b.json", "{\"symbol\": ");
    place.write("tokens/readme.txt", "x");
    place.write("tokens/below/a.json", &token);
    let directory = place.directory.path().join("tokens");
    let said = place.import("tokens", &directory).succeeded().stdout;
    assert!(
        said.contains("1 tokens taken (1 new or changed)")
            && said.contains("refused: b.json")
            && said.contains("1 refused, 1 subdirectories not looked into"),
        "{said}"
    );
    let told = eventually("the directory is served", SOON, || {
        let told = info(&server);
        (told["github"] == "https://g.example").then_some(told)
    });
    assert_eq!(told["website"], "https://a.example", "what is not told stays");
    let again = place.import("tokens", &directory).succeeded().stdout;
    assert!(again.contains("(0 new or changed)"), "{again}");

    // What is written is kept, and listed.
    let data = place.data();
    let inspected = quarry(["inspect", "--data-dir", data.to_str().unwrap()])
        .succeeded()
        .stdout;
    assert!(
        inspected.contains("import     prices from") && inspected.contains("good.csv, 4 taken, 1 refused"),
        "{inspected}"
    );
    assert!(inspected.contains("import     tokens from"), "{inspected}");
    server.stop();
    let served = Server::start(["serve", "--data-dir", data.to_str().unwrap()]);
    assert_eq!(served.json(PRICE), after);
    assert_eq!(info(&served)["github"], "https://g.example");
}

#[test]
fn refused_entries_and_files() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    Server::start(["demo", "--data-dir", place.data().to_str().unwrap()]).stop();
    // Without --strict a refused entry is a line; with it the exit code is 1 too, and the others are taken all the same.
    let wrong = "0xAbabababababababababababababababababABAB";
    let prices = place.write(
        "prices.csv",
        &format!("time,asset,usd\n1,native,00012\n1,{wrong},1\n1,stable,1\n"),
    );
    let said = place.import("prices", &prices).succeeded().stdout;
    for words in [
        "refused: line 2: usd `00012`: the price has leading zeros",
        "refused: line 3: asset `0xAbab",
        "wrong checksum (EIP-55): with the right one it is 0xABaBaBaB",
        "1 prices taken (1 new or changed)",
        "2 refused",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    place.write("prices.csv", "time,asset,usd\n1,native,00012\n2,stable,1\n");
    let strict = place.import_with("prices", &prices, &["--strict"]);
    assert!(
        strict.stdout.contains("1 prices taken (1 new or changed)"),
        "{strict:?}"
    );
    strict.refused(&["1 entries of", "prices.csv", "refused", "--strict"]);
    let again = place.import("prices", &prices).succeeded().stdout;
    assert!(again.contains("1 prices taken (0 new or changed)"), "{again}");
    let good = place.write("good.csv", "time,asset,usd\n2,stable,1\n");
    place.import_with("prices", &good, &["--strict"]).succeeded();

    // Reasons are in words of JSON.
    let odd = place.write(
        "odd.json",
        "[[1,\"native\",1], {\"time\":1,\"asset\":\"native\",\"usd\":[]}, {\"time\":1,\"asset\":\"native\",\"usd\":1}]",
    );
    let said = place.import("prices", &odd).succeeded().stdout;
    assert!(said.contains("refused: entry 1: it is no object"), "{said}");
    assert!(
        said.contains("refused: entry 2: usd is neither text nor a number"),
        "{said}"
    );
    for text in ["{\"tokens\": 5}", "{\"tokens\": {}}", "5"] {
        let file = place.write("odd.json", text);
        place
            .import("tokens", &file)
            .refused(&["odd.json", "stands where an array"]);
    }

    // A list is read twice: an entry that is too long, at its end, leaves all of it out; other fields may be of any length.
    let list = |description: usize, other: usize| {
        format!(
            "{{\"keywords\":\"{}\",\"tokens\":[{{\"chainId\":31337,\"address\":\"{TOKEN}\"}},{{\"chainId\":31337,\
             \"address\":\"0x{}\",\"extensions\":{{\"description\":\"{}\"}}}}],\"name\":\"x\"}}",
            "k".repeat(other),
            "12".repeat(20),
            "d".repeat(description)
        )
    };
    let long = place.write("long.json", &list(1 << 20, 0));
    let outcome = place.import("tokens", &long);
    assert!(!outcome.stdout.contains("taken"), "{outcome:?}");
    outcome.refused(&["long.json", "longer than 1048576 bytes"]);
    let fits = place.write("long.json", &list(9_000, 3 << 20));
    let said = place.import("tokens", &fits).succeeded().stdout;
    assert!(said.contains("2 tokens taken (2 new or changed)"), "{said}");
}

/// What stands in a file twice, however far apart, is put back to its first value by no later import of it.
#[test]
fn the_same_import_again_changes_nothing_whatever_stands_in_the_file_twice() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    import_demo(place.data().to_str().unwrap());
    let mut prices = "time,asset,usd\n7,native,1\n7,stable,5\n".to_owned();
    for time in 100..45_000 {
        prices += &format!("{time},native,3\n");
    }
    prices += "7,native,2\n";
    let prices = place.write("prices.csv", &prices);
    let said = place.import("prices", &prices).succeeded().stdout;
    assert!(said.contains("44903 prices taken"), "{said}");
    let again = place.import("prices", &prices).succeeded().stdout;
    assert!(again.contains("44903 prices taken (0 new or changed)"), "{again}");

    // Two lists of a directory tell otherwise of a token: the last one counts.
    let list = |name: &str, others: u64| {
        let mut entries = vec![format!("{{\"address\":\"{TOKEN}\",\"name\":\"{name}\"}}")];
        entries.extend((0..others).map(|of| format!("{{\"address\":\"0x{of:040x}\",\"symbol\":\"T{of}\"}}")));
        format!("[{}]", entries.join(","))
    };
    place.write("lists/a.json", &list("First", 4_500));
    place.write("lists/b.json", &list("Last", 0));
    let lists = place.directory.path().join("lists");
    let said = place.import("tokens", &lists).succeeded().stdout;
    assert!(said.contains("4502 tokens taken"), "{said}");
    let again = place.import("tokens", &lists).succeeded().stdout;
    assert!(again.contains("4502 tokens taken (0 new or changed)"), "{again}");
}

#[test]
fn a_carriage_return_inside_of_a_line_hides_no_price() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    import_demo(place.data().to_str().unwrap());
    let prices = place.write(
        "prices.csv",
        "time,asset,usd\n0,native,5\r86400,native,6\n172800,native,7\rrubbish\n1,native,4\r\n",
    );
    let strict = place.import_with("prices", &prices, &["--strict"]);
    for words in [
        "refused: line 2: a carriage return stands in it: lines end with LF or CRLF",
        "refused: line 3: a carriage return",
        "1 prices taken (1 new or changed)",
        "2 refused",
    ] {
        assert!(strict.stdout.contains(words), "{words}: {strict:?}");
    }
    strict.refused(&["2 entries of", "--strict"]);
    // Of a file with no other line ends the first line is all of it.
    let old = place.write("old.csv", "time,asset,usd\r0,native,5\r");
    place
        .import("prices", &old)
        .refused(&["old.csv", "line 1: a carriage return stands in it"]);
}

#[test]
fn a_file_of_a_directory_that_cannot_be_read_is_a_bad_entry() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    import_demo(place.data().to_str().unwrap());
    let token = format!("{{\"symbol\": \"ANC\", \"address\": \"{TOKEN}\"}}");
    let last = place.write("tokens/z.json", &token);
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, last.with_file_name(name)).unwrap();
    link("nowhere", "a.json");
    // It can be opened, and reading it fails, whoever does.
    link("/proc/self/mem", "b.json");
    let directory = place.directory.path().join("tokens");
    let said = place.import("tokens", &directory).succeeded().stdout;
    for words in [
        "refused: a.json: it cannot be read: No such file",
        "refused: b.json: it cannot be read: ",
        "1 tokens taken (1 new or changed)",
        "2 refused",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // Alone it is the whole import.
    place
        .import("tokens", &directory.join("b.json"))
        .refused(&["cannot read", "b.json"]);
}

/// RocksDB's words hold the path, whatever they are about.
#[test]
fn imports_below_a_directory_named_blockchain_are_not_in_use_when_they_are_damaged() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    let data = place.directory.path().join("blockchain");
    let data = data.to_str().unwrap();
    import_demo(data);
    let prices = place.write("prices.csv", "time,asset,usd\n1,stable,1\n");
    let import = || quarry(["import", "prices", prices.to_str().unwrap(), "--data-dir", data]);
    let imports = Path::new(data).join("mainnet/imports");
    std::fs::create_dir_all(&imports).unwrap();
    std::fs::write(imports.join("CURRENT"), "MANIFEST-000001\n").unwrap();
    let outcome = import();
    assert!(!outcome.stderr.contains("in use"), "{outcome:?}");
    outcome.refused(&["damaged"]);
    std::fs::remove_dir_all(&imports).unwrap();
    import().succeeded();
}

/// A table that does not read is not missing, and where nothing was read before nothing of before is answered.
#[test]
fn a_damaged_table_of_imports_is_told_as_what_it_is() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    let data = place.data();
    let data = data.to_str().unwrap();
    import_demo(data);
    place.import("prices", Path::new(&demo("prices.csv"))).succeeded();
    let imports = Path::new(data).join("mainnet/imports");
    let tables = || {
        let files = std::fs::read_dir(&imports)
            .unwrap()
            .map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|ending| ending == "sst"))
    };
    let inspect = || quarry(["inspect", "--data-dir", data]).succeeded();
    assert!(!inspect().stderr.contains("imports"), "{:?}", inspect());
    let mut told = 0;
    for table in tables() {
        let whole = std::fs::read(&table).unwrap();
        // The first row, and the parts by which a table is opened.
        for at in [
            3,
            whole.len() * 3 / 4,
            whole.len() - 300,
            whole.len() - 60,
            whole.len() - 5,
        ] {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            std::fs::write(&table, bytes).unwrap();
            let said = inspect().stderr;
            if said.contains("imports") {
                told += 1;
                assert!(
                    said.contains("imports cannot be read; answers are given without them"),
                    "{said}"
                );
                assert!(
                    said.contains("are damaged (") && said.contains("Corruption"),
                    "{said}"
                );
                assert!(!said.contains("missing") && !said.contains("before"), "{said}");
            }
        }
        std::fs::write(&table, whole).unwrap();
    }
    assert!(told >= 2, "{told}");
    // One that is gone is; and with a service that has read it before.
    let serving = Server::start(["serve", "--data-dir", data]);
    assert_eq!(serving.get(PRICE).status, 200);
    let table = tables().next().unwrap();
    std::fs::remove_file(&table).unwrap();
    // It was made long ago.
    let current = std::fs::File::options().write(true).open(imports.join("CURRENT"));
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    current.unwrap().set_modified(hour_ago).unwrap();
    let said = inspect().stderr;
    assert!(
        said.contains("imports cannot be read") && said.contains("No such file"),
        "{said}"
    );
    std::fs::remove_file(imports.join("CURRENT")).unwrap();
    assert_eq!(serving.get(PRICE).status, 200);
    eventually("word of it", SOON, || {
        serving.get(PRICE);
        serving
            .log()
            .contains("what was read before is still answered")
            .then_some(())
    });
    assert!(!serving.stop_logged().contains("imports cannot be read"));
}

/// A container may have no directory for temporary files that can be written to.
#[test]
fn a_service_follows_imports_without_a_place_for_temporary_files() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    let data = place.data();
    let data = data.to_str().unwrap();
    import_demo(data);
    let file = place.write("file", "no directory");
    let mut serving = command(["serve", "--data-dir", data]);
    serving.env("TMPDIR", file.join("below"));
    let server = Server::of(serving).unwrap_or_else(|log| panic!("{log}"));
    assert_eq!(server.get(PRICE).status, 404);
    let prices = PathBuf::from(demo("prices.csv"));
    place.import("prices", &prices).succeeded();
    eventually("the price is served", SOON, || {
        (server.get(PRICE).status == 200).then_some(())
    });
    let log = server.stop_logged();
    assert!(!log.contains("imports cannot be followed"), "{log}");
}

#[test]
fn imports_need_a_store() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    let file = place.write("a.csv", "time,asset,usd\n");
    place
        .import("prices", &file)
        .refused(&[place.data().to_str().unwrap()]);
}

#[test]
fn a_chain_is_who_its_recording_says() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    // The node that recorded the demo states the root of an empty state for block 0: no genesis file hashes to that.
    let told = import_demo(data).stderr;
    assert!(!told.contains("WARN"), "{told}");
    let chain: Value = serde_json::from_slice(&std::fs::read(demo("chain.json")).unwrap()).unwrap();
    let hash = chain["genesis"]["hash"].as_str().unwrap();
    let inspected = quarry(["inspect", "--data-dir", data]).succeeded().stdout;
    assert!(inspected.contains(hash), "{inspected}");
    // Once more: the same chain.
    import_demo(data);
}
