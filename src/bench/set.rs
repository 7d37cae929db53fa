//! The published set, and how each question gets its parameters out of a store's statistics.

use super::filter::{Far, LogFilter};
use super::pick::{
    Asked, PAGE, Picked, TARGETS, accounts, address, apart, by_hash, deep, deep_page, either, held, hot,
    in_turn, listed, logs, medium, meeting, mixed, paths, range, series, silent, some_token, sparse, topic,
};
use super::question::Group::{Days, Lists, Logs, Points};
use super::question::{Group, LeftOut, Only, Published, Question};
use super::statistics::{Counted, Statistics, hottest, nearest, shuffled, thinned};
use crate::model::Address;

type Pick = fn(&Statistics) -> Picked;

const fn entry(
    group: Group,
    name: &'static str,
    about: &'static str,
    shows: &'static str,
    pick: Pick,
) -> (Published, Pick) {
    let published = Published {
        name,
        group,
        about,
        shows,
    };
    (published, pick)
}

/// The set, in the order in which it is asked.
static SET: &[(Published, Pick)] = &[
    entry(
        Logs,
        "address-hot",
        "the first 10,000 logs of the contract with the most logs",
        "reading one long run of neighbours",
        |s| address(hot(s)?, PAGE),
    ),
    entry(
        Logs,
        "address-hot-100",
        "the first 100 logs of the same contract",
        "what a request costs beside its rows",
        |s| address(hot(s)?, 100),
    ),
    entry(
        Logs,
        "address-hot-deep",
        "up to 100 logs of the same contract after nine tenths of them",
        "a far page at the cost of the first one",
        |s| {
            let hot = hot(s)?;
            deep(
                Far::NineTenths,
                hot,
                LogFilter::of(hot.what, 100),
                &format!("{} with {} logs", hot.what, hot.count),
            )
        },
    ),
    entry(
        Logs,
        "address-medium",
        "the first 10,000 logs of a contract with about 20,000, or a hundredth of a short chain's",
        "rows that lie spread over the chain",
        |s| address(medium(s)?, PAGE),
    ),
    entry(
        Logs,
        "address-medium-1000",
        "the first 1,000 logs of the same contract",
        "the same, a smaller page",
        |s| address(medium(s)?, 1_000),
    ),
    entry(
        Logs,
        "address-medium-100",
        "the first 100 logs of the same contract",
        "the same, a page as explorers show it",
        |s| address(medium(s)?, 100),
    ),
    entry(
        Logs,
        "address-rare",
        "all logs of a contract with about 50",
        "finding a contract that is hardly there",
        |s| {
            let others = |one: &Counted<Address>| one.count <= 500;
            let rare = nearest(&s.emitters, 50, others).ok_or("no contract has 1 to 500 logs")?;
            address(rare, PAGE)
        },
    ),
    entry(
        Logs,
        "topic-hot",
        "the first 10,000 logs with the commonest topic 0",
        "a list over all contracts",
        |s| topic(s, PAGE),
    ),
    entry(
        Logs,
        "topic-hot-100",
        "the first 100 logs with the same topic 0",
        "the same, a page as explorers show it",
        |s| topic(s, 100),
    ),
    entry(
        Logs,
        "topic-hot-deep",
        "up to 100 logs with the same topic 0 after nine tenths of them",
        "a far page of the longest list",
        |s| {
            let hot = hottest(&s.signatures).ok_or("no log has a topic 0")?;
            deep(
                Far::NineTenths,
                hot,
                LogFilter::with(0, hot.what, 100),
                &format!("topic 0 {} with {} logs", hot.what, hot.count),
            )
        },
    ),
    entry(
        Logs,
        "topic-hot-page-100",
        "the hundredth page of up to 10,000 logs with the same topic 0",
        "a long page far into the longest list",
        |s| {
            let hot = hottest(&s.signatures).ok_or("no log has a topic 0")?;
            deep(
                Far::Hundredth,
                hot,
                LogFilter::with(0, hot.what, PAGE),
                &format!("topic 0 {} with {} logs", hot.what, hot.count),
            )
        },
    ),
    entry(
        Logs,
        "topic-range-hot",
        "the first 10,000 logs with the commonest topic 0 in 200 blocks around the middle one of them, or in half of a short chain's",
        "a dense range without an address",
        |s| range(s, hottest(&s.signatures)),
    ),
    entry(
        Logs,
        "topic-range-medium",
        "the first 10,000 logs with a topic 0 of about 4 % of all logs in the same blocks",
        "a sparser range without an address",
        |s| {
            let hot = hottest(&s.signatures).map(|hot| hot.what);
            range(
                s,
                nearest(&s.signatures, s.store.logs / 25, |one| Some(one.what) != hot),
            )
        },
    ),
    entry(
        Logs,
        "wallet-sparse",
        "all logs with an account of about 300 logs as topic 1, 2 or 3",
        "scattered rows, few of them in one block",
        sparse,
    ),
    entry(
        Logs,
        "address-and-topics",
        "logs of the contract with the most logs, with a topic 0 and a topic 1 that has about 300 logs",
        "three conditions that all must hold",
        |s| {
            let found = nearest(&s.of_hot, 300, |one| one.what.1.0 == 1)
                .ok_or("no log of the hottest contract has a topic 1")?;
            let (hot, (signature, (_, wallet))) = (hot(s)?, found.what);
            let filter = LogFilter::of(hot.what, PAGE).and(0, signature).and(1, wallet);
            Ok((
                format!(
                    "{}, topic 0 {signature}, topic 1 {wallet} with {} logs anywhere",
                    hot.what, found.count
                ),
                logs(filter, None),
            ))
        },
    ),
    entry(
        Logs,
        "address-and-either",
        "logs of the same contract with a value as topic 1 or as topic 2",
        "a condition of which one half is enough",
        either,
    ),
    entry(
        Logs,
        "topics-either",
        "the first 10,000 logs with a common topic 0 and a common topic 1 or a rare topic 2",
        "a condition of which one value has a long list and another one a short one",
        mixed,
    ),
    entry(
        Logs,
        "topics-meeting",
        "the first 10,000 logs with a common topic 0 and a common topic 1",
        "two long lists that share many rows",
        meeting,
    ),
    entry(
        Logs,
        "topics-apart",
        "logs with a common topic 0 and a common topic 1 that no log has both of",
        "two long lists without a common log: what lies before both are dense is walked over for nothing",
        apart,
    ),
    entry(
        Logs,
        "address-apart",
        "logs of a contract with many, with a common topic 0 that it never emits",
        "two long lists and no row",
        silent,
    ),
    entry(
        Lists,
        "tx-list-hot",
        "the first 10,000 transactions of the account with the most",
        "the list of an exchange or a busy contract",
        |s| {
            listed(
                s,
                hottest(&s.by_transactions),
                "tx-list",
                "transactions",
                |_| PAGE,
                |_| 1,
            )
        },
    ),
    entry(
        Lists,
        "tx-list-medium",
        "the transactions of an account with about 300",
        "the list of a person",
        |s| {
            let hot = hottest(&s.by_transactions).map(|hot| hot.what);
            let fits = |one: &Counted<Address>| one.count <= PAGE && Some(one.what) != hot;
            let medium = nearest(&s.by_transactions, 300, fits);
            listed(s, medium, "tx-list", "transactions", |_| PAGE, |_| 1)
        },
    ),
    entry(
        Lists,
        "tx-list-deep",
        "up to 100 transactions of the account with the most, after nine tenths of them",
        "a far page",
        |s| {
            listed(
                s,
                hottest(&s.by_transactions),
                "tx-list",
                "transactions",
                |count| deep_page(count).0,
                |count| deep_page(count).1,
            )
        },
    ),
    entry(
        Lists,
        "internal-hot",
        "the first 10,000 internal transactions of the account with the most",
        "a list out of traces",
        |s| {
            if !s.store.traces {
                return Err("the store has no traces of every block".to_owned());
            }
            listed(
                s,
                hottest(&s.by_internal),
                "tx-list-internal",
                "internal transactions",
                |_| PAGE,
                |_| 1,
            )
        },
    ),
    entry(
        Lists,
        "erc20-hot",
        "the first 10,000 ERC-20 transfers of the account with the most",
        "a list that joins logs with transactions",
        |s| {
            listed(
                s,
                hottest(&s.by_erc20),
                "token-tx",
                "ERC-20 transfers",
                |_| PAGE,
                |_| 1,
            )
        },
    ),
    entry(
        Lists,
        "mined-hot",
        "the first 1,000 blocks of the account that sealed the most",
        "a list of blocks with their rewards",
        |s| {
            listed(
                s,
                hottest(&s.by_mined),
                "mined-blocks",
                "blocks",
                |_| 1_000,
                |_| 1,
            )
        },
    ),
    entry(
        Lists,
        "holders",
        "the 45 largest holders of the token with the most",
        "a list kept in order of amounts",
        |s| {
            let token = some_token(s)?;
            let path = format!(
                "/api/token/holder-list?contractaddress={:#x}&offset=45",
                token.what
            );
            Ok((
                format!("{} with {} holders", token.what, token.count),
                paths(s, [path]),
            ))
        },
    ),
    entry(
        Points,
        "balance",
        "the native balance of an account now",
        "one row by key",
        |s| {
            let accounts = accounts(s)?;
            let path = |account: &Address| format!("/api/account/{account:#x}/balance");
            Ok((
                in_turn(&accounts, "accounts"),
                paths(s, accounts.iter().map(path)),
            ))
        },
    ),
    entry(
        Points,
        "balance-at",
        "the native balance of an account after some block",
        "the last row before a place",
        |s| {
            let accounts = accounts(s)?;
            let path = |(account, block): (&Address, &u64)| {
                format!("/api/account/{account:#x}/balance-history?block={block}")
            };
            let blocks = shuffled(thinned(&s.blocks, accounts.len()));
            let asked = accounts.iter().zip(blocks.iter().cycle()).map(path);
            Ok((
                in_turn(&accounts, "accounts at blocks all over the chain"),
                paths(s, asked),
            ))
        },
    ),
    entry(
        Points,
        "balances-20",
        "the native balances of up to 20 accounts now",
        "many rows by key in one request",
        |s| {
            let accounts = accounts(s)?;
            let path = |some: &[Address]| {
                let names: Vec<_> = some.iter().map(|account| format!("{account:#x}")).collect();
                format!("/api/account/balance-multi?address={}", names.join(","))
            };
            Ok((
                in_turn(&accounts, "accounts, twenty at a time"),
                paths(s, accounts.chunks(20).map(path)),
            ))
        },
    ),
    entry(
        Points,
        "token-balance",
        "what an account holds of the token with the most holders",
        "one row by key of the token ledger",
        held,
    ),
    entry(
        Points,
        "transaction-status",
        "the status of a transaction by its hash",
        "a look-up by hash",
        |s| {
            by_hash(s, "transactions", |hash| {
                format!("/api/transaction/{hash}/status")
            })
        },
    ),
    entry(
        Points,
        "receipt",
        "the receipt of a transaction with its logs",
        "a look-up by hash and the logs of one transaction",
        |s| {
            by_hash(s, "transactions", |hash| {
                format!("/api/proxy?action=eth_getTransactionReceipt&txhash={hash}")
            })
        },
    ),
    entry(
        Points,
        "block-full",
        "a block with its transactions in full",
        "many rows that lie side by side",
        |s| {
            let path =
                |block: &u64| format!("/api/proxy?action=eth_getBlockByNumber&tag=0x{block:x}&boolean=true");
            let blocks = thinned(&s.blocks, TARGETS);
            if blocks.is_empty() {
                return Err("there are no blocks".to_owned());
            }
            Ok((
                in_turn(&blocks, "blocks spread over the chain"),
                paths(s, blocks.iter().map(path)),
            ))
        },
    ),
    entry(
        Days,
        "daily-transactions",
        "transactions of each of up to 90 days",
        "a row a day",
        |s| series(s, "/api/stats/daily-transaction-count", 90),
    ),
    entry(
        Days,
        "daily-gas-price",
        "the average gas price of each of up to 90 days",
        "a row a day and a division",
        |s| series(s, "/api/gas-tracker/daily-average-gas-price", 90),
    ),
    entry(
        Days,
        "daily-block-time",
        "the average time between blocks of each of up to 5 days",
        "the same of a few days",
        |s| series(s, "/api/block/daily-average-block-time", 5),
    ),
];

/// All entries.
pub fn published() -> impl Iterator<Item = Published> {
    SET.iter().map(|(published, _)| *published)
}

/// The questions that `only` chooses, with parameters out of the statistics, and those that nothing fits. Logs and lists of accounts are
/// asked for up to the head of the statistics, so that answers stay the same while the store grows.
#[must_use]
pub fn questions(statistics: &Statistics, only: &Only) -> (Vec<Question>, Vec<LeftOut>) {
    let (mut questions, mut left_out) = (Vec::new(), Vec::new());
    for &(published, pick) in SET.iter().filter(|(published, _)| only.chooses(published)) {
        match pick(statistics) {
            Ok((picked, asked)) => {
                let store = &statistics.store;
                let of_logs = |filter: Box<LogFilter>, counted| {
                    let filter = filter.up_to(store.head);
                    (vec![filter.target(store.chain)], Some(filter), counted)
                };
                let is_no_hit = matches!(asked, Asked::NoLogs(_));
                let (targets, filter, counted) = match asked {
                    Asked::Logs(filter, all) => {
                        let counted = all.map(|all| filter.rows_of(all));
                        of_logs(filter, counted)
                    }
                    Asked::NoLogs(filter) => of_logs(filter, Some(0)),
                    Asked::Paths(targets) => (targets, None, None),
                };
                questions.push(Question {
                    published,
                    picked,
                    targets,
                    filter,
                    is_no_hit,
                    counted,
                });
            }
            Err(reason) => left_out.push(LeftOut { published, reason }),
        }
    }
    (questions, left_out)
}
