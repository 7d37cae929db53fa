//! Which logs a question is about, in the three languages in which it is asked: of the service, of a node, of SQL.

use std::fmt::Write as _;

use crate::model::{Address, B256, ChainName};

/// How far into its list a page lies that is there to be far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// After nine tenths of it.
    NineTenths,
    /// At its hundredth page.
    Hundredth,
}

/// Logs by contract and topics, in a range of blocks, and which part of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// The emitting contract.
    pub address: Option<Address>,
    /// The topic at each position; `None` for any.
    pub topics: [Option<B256>; 4],
    /// Two positions of which one is enough; all others that are given must match.
    pub either: Option<(usize, usize)>,
    /// First block, inclusive; the whole chain where it is not given.
    pub from: Option<u64>,
    /// Last block, inclusive.
    pub to: Option<u64>,
    /// The page, from 1.
    pub page: u64,
    /// Rows of a page.
    pub offset: u64,
    /// Where in the list the page was picked, if that is what is asked for.
    pub far: Option<Far>,
}

/// A value of an SQL condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlValue {
    /// `bytea`.
    Bytes(Vec<u8>),
    /// `bigint`.
    Number(i64),
}

impl LogFilter {
    /// The first rows of the logs of a contract.
    #[must_use]
    pub fn of(address: Address, offset: u64) -> Self {
        Self {
            address: Some(address),
            ..Self::all(offset)
        }
    }

    /// The first rows of the logs with a topic at a position.
    #[must_use]
    pub fn with(position: usize, topic: B256, offset: u64) -> Self {
        Self::all(offset).and(position, topic)
    }

    /// Page 1 of any logs; the service wants an address or a topic added.
    #[must_use]
    pub fn all(offset: u64) -> Self {
        Self {
            page: 1,
            offset,
            ..Self::default()
        }
    }

    /// The same, with a topic that must match.
    #[must_use]
    pub fn and(mut self, position: usize, topic: B256) -> Self {
        if let Some(place) = self.topics.get_mut(position) {
            *place = Some(topic);
        }
        self
    }

    /// The same, in a range of blocks.
    #[must_use]
    pub const fn within(mut self, from: u64, to: u64) -> Self {
        self.from = Some(from);
        self.to = Some(to);
        self
    }

    /// The same, not beyond a block.
    #[must_use]
    pub fn up_to(mut self, block: u64) -> Self {
        self.to = Some(self.to.map_or(block, |to| to.min(block)));
        self
    }

    /// The same, another page.
    #[must_use]
    pub const fn page(mut self, page: u64) -> Self {
        self.page = page;
        self
    }

    /// Rows of the pages before.
    #[must_use]
    pub const fn skip(&self) -> u64 {
        self.page.saturating_sub(1).saturating_mul(self.offset)
    }

    /// How many rows the page has of so many on all pages.
    #[must_use]
    pub const fn rows_of(&self, all: u64) -> u64 {
        let left = all.saturating_sub(self.skip());
        if left < self.offset { left } else { self.offset }
    }

    /// The page's path and query at the service.
    #[must_use]
    pub fn target(&self, chain: ChainName) -> String {
        let mut parts = Vec::new();
        parts.extend(self.address.map(|address| format!("address={address:#x}")));
        for (position, topic) in self.topics.iter().enumerate() {
            parts.extend(topic.map(|topic| format!("topic{position}={topic}")));
        }
        parts.extend(
            self.either
                .map(|(one, other)| format!("topic{}_{}_opr=or", one.min(other), one.max(other))),
        );
        parts.extend(self.from.map(|block| format!("fromblock={block}")));
        parts.extend(self.to.map(|block| format!("toblock={block}")));
        if self.page != 1 {
            parts.push(format!("page={}", self.page));
        }
        parts.push(format!("offset={}", self.offset));
        if chain != ChainName::Mainnet {
            parts.push(format!("chain={chain}"));
        }
        format!("/api/logs/get-logs?{}", parts.join("&"))
    }

    /// The parameters of `eth_getLogs` that together give the logs of blocks `from` to `to`: one filter, or two whose
    /// answers are merged where one of two positions is enough, which a node's filter cannot say.
    #[must_use]
    pub fn node_params(&self, from: u64, to: u64) -> Vec<String> {
        let alternatives = match self.either {
            Some((one, other)) => vec![Some(other), Some(one)],
            None => vec![None],
        };
        let params = alternatives.into_iter().map(|left_out| {
            let topics: Vec<Option<String>> = self
                .topics
                .iter()
                .enumerate()
                .map(|(position, topic)| {
                    topic
                        .filter(|_| left_out != Some(position))
                        .map(|topic| topic.to_string())
                })
                .collect();
            let given = topics
                .iter()
                .rposition(Option::is_some)
                .map_or(0, |last| last + 1);
            let mut filter = serde_json::Map::new();
            filter.insert("fromBlock".to_owned(), format!("0x{from:x}").into());
            filter.insert("toBlock".to_owned(), format!("0x{to:x}").into());
            if let Some(address) = self.address {
                filter.insert("address".to_owned(), format!("{address:#x}").into());
            }
            if given > 0 {
                let topics: Vec<serde_json::Value> = topics
                    .into_iter()
                    .take(given)
                    .map(serde_json::Value::from)
                    .collect();
                filter.insert("topics".to_owned(), topics.into());
            }
            serde_json::Value::from(vec![serde_json::Value::from(filter)]).to_string()
        });
        params.collect()
    }

    /// What follows `FROM logs` in SQL, and its values in the order of their numbers.
    #[must_use]
    pub fn sql(&self) -> (String, Vec<SqlValue>) {
        let mut values = Vec::new();
        let mut bind = |value| {
            values.push(value);
            format!("${}", values.len())
        };
        let mut clauses = Vec::new();
        if let Some(address) = self.address {
            clauses.push(format!("address = {}", bind(SqlValue::Bytes(address.to_vec()))));
        }
        let mut alternatives = Vec::new();
        for (position, topic) in self.topics.iter().enumerate() {
            let Some(topic) = topic else { continue };
            let clause = format!("topic{position} = {}", bind(SqlValue::Bytes(topic.to_vec())));
            match self.either {
                Some((one, other)) if position == one || position == other => alternatives.push(clause),
                _ => clauses.push(clause),
            }
        }
        if !alternatives.is_empty() {
            clauses.push(format!("({})", alternatives.join(" OR ")));
        }
        for (block, operator) in [(self.from, ">="), (self.to, "<=")] {
            if let Some(block) = block {
                let number = i64::try_from(block).unwrap_or(i64::MAX);
                clauses.push(format!(
                    "block_number {operator} {}",
                    bind(SqlValue::Number(number))
                ));
            }
        }
        let mut sql = String::new();
        if !clauses.is_empty() {
            let _ = write!(sql, "WHERE {} ", clauses.join(" AND "));
        }
        let _ = write!(
            sql,
            "ORDER BY block_number, log_index LIMIT {} OFFSET {}",
            i64::try_from(self.offset).unwrap_or(i64::MAX),
            i64::try_from(self.skip()).unwrap_or(i64::MAX)
        );
        (sql, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: B256 = B256::repeat_byte(1);
    const TWO: B256 = B256::repeat_byte(2);

    fn either() -> LogFilter {
        LogFilter {
            either: Some((1, 2)),
            ..LogFilter::of(Address::repeat_byte(0xaa), 100)
                .and(1, ONE)
                .and(2, TWO)
                .within(5, 9)
                .page(3)
        }
    }

    #[test]
    fn the_service_is_asked_in_its_own_words() {
        let target = either().target(ChainName::Testnet);
        let expected = format!(
            "/api/logs/get-logs?address=0x{}&topic1={ONE}&topic2={TWO}&topic1_2_opr=or&fromblock=5&toblock=9&page=3\
             &offset=100&chain=testnet",
            "aa".repeat(20)
        );
        assert_eq!(target, expected);
        let target = LogFilter::with(0, ONE, 10).target(ChainName::Mainnet);
        assert_eq!(target, format!("/api/logs/get-logs?topic0={ONE}&offset=10"));
    }

    #[test]
    fn a_node_is_asked_twice_where_one_of_two_is_enough() {
        let asked: Vec<serde_json::Value> = either()
            .node_params(5, 9)
            .iter()
            .map(|params| serde_json::from_str(params).unwrap())
            .collect();
        let [first, second] = asked.as_slice() else {
            panic!("{asked:?}")
        };
        assert_eq!(first[0]["topics"], serde_json::json!([null, ONE.to_string()]));
        assert_eq!(
            second[0]["topics"],
            serde_json::json!([null, null, TWO.to_string()])
        );
        assert_eq!(
            (&first[0]["fromBlock"], &second[0]["toBlock"]),
            (&"0x5".into(), &"0x9".into())
        );
        let plain = LogFilter::of(Address::ZERO, 10).node_params(0, 255);
        let [plain] = plain.as_slice() else { panic!() };
        let plain: serde_json::Value = serde_json::from_str(plain).unwrap();
        assert_eq!(plain[0].get("topics"), None);
        assert_eq!(plain[0]["toBlock"], "0xff");
    }

    #[test]
    fn sql_binds_every_value() {
        let (sql, values) = either().sql();
        assert_eq!(
            sql,
            "WHERE address = $1 AND (topic1 = $2 OR topic2 = $3) AND block_number >= $4 AND block_number <= $5 \
             ORDER BY block_number, log_index LIMIT 100 OFFSET 200"
        );
        assert_eq!(values.len(), 5);
        assert_eq!(values.last(), Some(&SqlValue::Number(9)));
    }
}
