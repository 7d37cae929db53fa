//! Topics and their operators over HTTP, several values each, against the rule written out (answers.md section 5).

use std::path::Path;

use quarry::model::{B256, Bundle};
use quarry::node::recorded::RecordedChain;
use serde_json::Value;

use crate::plain::Rng;
use crate::verdicts::World;

const OPERATORS: [(&str, usize, usize); 6] = [
    ("topic0_1_opr", 0, 1),
    ("topic1_2_opr", 1, 2),
    ("topic2_3_opr", 2, 3),
    ("topic0_2_opr", 0, 2),
    ("topic0_3_opr", 0, 3),
    ("topic1_3_opr", 1, 3),
];

struct Log {
    block: u64,
    index: u64,
    address: String,
    topics: Vec<B256>,
}

fn logs() -> Vec<Log> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/chain.jsonl.zst");
    let mut logs = Vec::new();
    for line in RecordedChain::open(path).unwrap() {
        let bundle: Bundle = line.unwrap().parse().unwrap();
        let of_block = bundle.receipts.iter().flat_map(|receipt| &receipt.logs);
        logs.extend(of_block.enumerate().map(|(index, log)| Log {
            block: bundle.block.number(),
            index: index as u64,
            address: const_hex::encode_prefixed(log.address),
            topics: log.topics.to_vec(),
        }));
    }
    logs
}

/// One request.
#[derive(Debug, Default)]
struct Question {
    address: Option<String>,
    topics: [Vec<B256>; 4],
    operators: Vec<(usize, bool)>,
}

impl Question {
    /// Each operator is a clause, the clauses are and-ed, a topic that none names is required.
    fn wants(&self, log: &Log) -> bool {
        let is = |position: usize| {
            let found = log.topics.get(position);
            found.is_some_and(|topic| self.topics[position].contains(topic))
        };
        let clauses = self.operators.iter().all(|&(at, and)| {
            let (_, a, b) = OPERATORS[at];
            if and { is(a) && is(b) } else { is(a) || is(b) }
        });
        let alone = (0..4).filter(|&position| {
            let named = |&(at, _): &(usize, bool)| OPERATORS[at].1 == position || OPERATORS[at].2 == position;
            !self.topics[position].is_empty() && !self.operators.iter().any(named)
        });
        clauses
            && alone.into_iter().all(is)
            && self
                .address
                .as_ref()
                .is_none_or(|address| *address == log.address)
    }

    fn target(&self, rng: &mut Rng) -> String {
        let mut pairs: Vec<String> = Vec::new();
        if let Some(address) = &self.address {
            pairs.push(format!("address={address}"));
        }
        for (position, values) in self
            .topics
            .iter()
            .enumerate()
            .filter(|(_, values)| !values.is_empty())
        {
            // Commas as they come, encoded, and with blanks around them.
            let comma = [",", "%2C", ",%20", "%20,+"][rng.below(4) as usize];
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            pairs.push(format!("topic{position}={}", values.join(comma)));
        }
        for (at, and) in &self.operators {
            pairs.push(format!(
                "{}={}",
                OPERATORS[*at].0,
                if *and { "and" } else { "or" }
            ));
        }
        format!("/api/logs/get-logs?{}", pairs.join("&"))
    }
}

#[tokio::test]
async fn values_are_any_of_them_under_every_operator() {
    let world = World::start(false).await;
    let logs = logs();
    let mut rng = Rng(77);
    let (mut hits, mut several, mut used) = (0, 0, [[0; 2]; 6]);
    for round in 0..240u64 {
        // A log that is there, so that most questions find something.
        let seen = &logs[rng.below(logs.len() as u64) as usize];
        let mut question = Question::default();
        for (position, topic) in seen.topics.iter().enumerate() {
            if rng.below(4) == 0 {
                continue;
            }
            let mut values = vec![*topic];
            for _ in 0..rng.below(4) {
                let other = &logs[rng.below(logs.len() as u64) as usize];
                values.extend(other.topics.get(position).copied());
            }
            // Where it stands among them is no matter, nor is one that is given twice or occurs nowhere.
            let by = rng.below(values.len() as u64) as usize;
            values.rotate_left(by);
            match rng.below(6) {
                0 => values.push(values[0]),
                1 => values.push(B256::repeat_byte(0x5e)),
                _ => {}
            }
            question.topics[position] = values;
        }
        if question.topics.iter().all(Vec::is_empty) {
            continue;
        }
        for (at, (_, a, b)) in OPERATORS.iter().enumerate() {
            let both = !question.topics[*a].is_empty() && !question.topics[*b].is_empty();
            if both && rng.below(3) == 0 {
                let and = rng.below(2) == 0;
                used[at][usize::from(and)] += 1;
                question.operators.push((at, and));
            }
        }
        question.address = (rng.below(3) == 0).then(|| seen.address.clone());
        let target = question.target(&mut rng);
        let mut wanted: Vec<(u64, u64)> = logs
            .iter()
            .filter(|log| question.wants(log))
            .map(|log| (log.block, log.index))
            .collect();
        let descending = round % 2 == 0;
        if descending {
            wanted.reverse();
        }
        let sort = if descending { "desc" } else { "asc" };
        let reply = world.server.get(&format!("{target}&sort={sort}")).await;
        assert_eq!(reply.status, 200, "{target}");
        assert_eq!(places(&reply.json()), wanted, "{target}");
        assert_eq!(
            reply.header("x-total-count"),
            Some(wanted.len().to_string().as_str()),
            "{target}"
        );
        // A page in the middle: of several values of one topic alone its total is known too.
        let reply = world
            .server
            .get(&format!("{target}&sort={sort}&page=3&offset=4"))
            .await;
        let page: Vec<_> = wanted.iter().copied().skip(8).take(4).collect();
        assert_eq!(places(&reply.json()), page, "{target}");
        let given = question.topics.iter().filter(|values| !values.is_empty()).count();
        if given == 1 && question.address.is_none() {
            assert_eq!(
                reply.header("x-total-count"),
                Some(wanted.len().to_string().as_str()),
                "{target}"
            );
            several += usize::from(question.topics.iter().any(|values| values.len() > 1));
        }
        hits += wanted.len();
    }
    assert!(hits > 10_000 && several > 5, "{hits} {several}");
    // Each operator was tried both ways; few logs have four topics.
    assert!(used.iter().flatten().all(|count| *count > 0), "{used:?}");
}

fn places(body: &Value) -> Vec<(u64, u64)> {
    let rows = body["logs"].as_array().unwrap().iter();
    rows.map(|row| {
        let block = row["blockNumber"].as_str().unwrap().parse().unwrap();
        (block, row["logIndex"].as_u64().unwrap())
    })
    .collect()
}

#[tokio::test]
async fn lists_of_values_with_a_fault_are_refused() {
    let world = World::start(false).await;
    let good = format!("0x{}", "ab".repeat(32));
    for wrong in [
        format!("{good},"),
        format!(",{good}"),
        format!("{good},,{good}"),
        format!("{good},0x12"),
        format!("{good};{good}"),
        format!("{good}%20{good}"),
        ",".to_owned(),
    ] {
        for position in 0..4 {
            let target = format!("/api/logs/get-logs?topic{position}={wrong}");
            world
                .server
                .get(&target)
                .await
                .assert_error(400, "Invalid topic format");
        }
    }
    // An empty value is an absent one.
    let reply = world.server.get("/api/logs/get-logs?topic0=").await;
    reply.assert_error(400, "At least one topic is required");
}
