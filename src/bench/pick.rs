//! How parameters are picked: which contract, topic, account or day a question is about on a given chain.

use super::filter::{Far, LogFilter};
use super::statistics::{Counted, Placed, Statistics, hottest, nearest, strewn, thinned};
use crate::model::{Address, B256, ChainName, Day};

/// Rows of the longest page.
pub(super) const PAGE: u64 = 10_000;
/// Blocks of a short range.
const RANGE: u64 = 200;
/// Rows of a short page far into a list.
const DEEP_ROWS: u64 = 100;
/// Targets of a question about single things.
pub(super) const TARGETS: usize = 100;

/// What a question asks on this chain, or why nothing here fits it.
pub(super) type Picked = Result<(String, Asked), String>;

pub(super) enum Asked {
    /// Logs, and how many there are on all pages where that is known.
    Logs(Box<LogFilter>, Option<u64>),
    /// Logs that there are none of.
    NoLogs(Box<LogFilter>),
    Paths(Vec<String>),
}

/// Logs, and how many there are on all pages where that is known.
pub(super) fn logs(filter: LogFilter, all: impl Into<Option<u64>>) -> Asked {
    Asked::Logs(Box::new(filter), all.into())
}

/// What the shorter of two lists that are walked together has at least, and a list of scattered rows: one of a row or two
/// shows nothing.
pub(super) const ROWS_MIN: u64 = 10;

/// What may be said where no account was met in topics.
const SMALL: &str = " (a topic below 2^96 may be any number, and is not taken for one)";

pub(super) fn hot(s: &Statistics) -> Result<Counted<Address>, String> {
    hottest(&s.emitters).ok_or_else(|| "no contract has a log".to_owned())
}

pub(super) fn medium(s: &Statistics) -> Result<Counted<Address>, String> {
    let hot = hot(s)?.what;
    let target = (s.store.logs / 100).clamp(20, 20_000);
    nearest(&s.emitters, target, |one| one.what != hot).ok_or_else(|| "only one contract has logs".to_owned())
}

pub(super) fn address(contract: Counted<Address>, offset: u64) -> Picked {
    Ok((
        format!("{} with {} logs", contract.what, contract.count),
        logs(LogFilter::of(contract.what, offset), contract.count),
    ))
}

pub(super) fn topic(s: &Statistics, offset: u64) -> Picked {
    let hot = hottest(&s.signatures).ok_or("no log has a topic 0")?;
    Ok((
        format!("topic 0 {} with {} logs", hot.what, hot.count),
        logs(LogFilter::with(0, hot.what, offset), hot.count),
    ))
}

/// Rows of a page and the page that lies nine tenths into a list: 100 rows, fewer of a list of less than 2,000.
pub(super) fn deep_page(count: u64) -> (u64, u64) {
    let offset = (count / 20).clamp(1, DEEP_ROWS);
    (offset, count.saturating_mul(9) / 10 / offset + 1)
}

/// Rows of a page so far into a list, and its number, by the length of the list.
fn far_page(far: Far, count: u64) -> (u64, u64) {
    match far {
        Far::NineTenths => deep_page(count),
        Far::Hundredth => hundredth_page(count),
    }
}

/// The far page of a list of this length that stands for one of a longer list.
pub(super) fn as_far(page: &LogFilter, count: u64) -> (u64, u64) {
    far_page(page.far.unwrap_or(Far::NineTenths), count)
}

/// Rows of a page and the page that is the hundredth, of 10,000 rows where the list has so many.
fn hundredth_page(count: u64) -> (u64, u64) {
    let rows = (count / 100).clamp(1, PAGE);
    (rows, (count / rows).clamp(1, 100))
}

/// A page far into a list.
pub(super) fn deep<T>(far: Far, list: Counted<T>, filter: LogFilter, what: &str) -> Picked {
    let (offset, page) = far_page(far, list.count);
    if page < 2 {
        return Err("the longest list has one page".to_owned());
    }
    Ok((
        format!("{what}, page {page} of {offset} rows"),
        logs(
            LogFilter {
                offset,
                far: Some(far),
                ..filter
            }
            .page(page),
            list.count,
        ),
    ))
}

/// So many blocks around one, within others.
pub(super) fn around(middle: u64, blocks: u64, (first, last): (u64, u64)) -> (u64, u64) {
    let latest = (last + 1).saturating_sub(blocks).max(first);
    let from = middle.saturating_sub(blocks / 2).clamp(first, latest);
    (from, last.min(from + blocks.saturating_sub(1)))
}

pub(super) fn range(s: &Statistics, topic: Option<Counted<B256>>) -> Picked {
    let topic = topic.ok_or("there are too few topics 0")?;
    let (first, head) = (s.store.first_block, s.store.head);
    // A short chain's middle half.
    let blocks = RANGE.min((head - first).div_ceil(2)).max(1);
    // Where such logs are: a chain may have been quiet for long.
    let middle = s.middle.unwrap_or(first + (head - first) / 2);
    let (from, to) = around(middle, blocks, (first, head));
    Ok((
        format!(
            "topic 0 {} with {} logs, blocks {from} to {to}",
            topic.what, topic.count
        ),
        logs(LogFilter::with(0, topic.what, PAGE).within(from, to), None),
    ))
}

/// Scattered rows with an account as a topic.
pub(super) fn sparse(s: &Statistics) -> Picked {
    let wallet = nearest(&s.wallets, 300, |one| (ROWS_MIN..=PAGE).contains(&one.count))
        .ok_or_else(|| format!("no account was met as a topic 1, 2 or 3 of 10 to 10,000 logs{SMALL}"))?;
    let (position, topic) = wallet.what;
    Ok((
        format!("topic {position} {topic} with {} logs", wallet.count),
        logs(LogFilter::with(position, topic, PAGE), wallet.count),
    ))
}

/// Whether the account of a topic was met at positions 1 and 2.
fn is_both(s: &Statistics, one: &Counted<(B256, Placed)>) -> bool {
    let (position, topic) = one.what.1;
    let other = match position {
        1 => 2,
        2 => 1,
        _ => return false,
    };
    s.of_hot.iter().any(|met| met.what.1 == (other, topic))
}

/// One topic at two positions of which one is enough.
pub(super) fn either(s: &Statistics) -> Picked {
    let found = nearest(&s.of_hot, 350, |one| is_both(s, one))
        .or_else(|| nearest(&s.of_hot, 350, |one| one.what.1.0 < 3))
        .ok_or("no log of the hottest contract has a topic 1 or 2")?;
    let (hot, (_, (_, wallet))) = (hot(s)?, found.what);
    let filter = LogFilter {
        either: Some((1, 2)),
        ..LogFilter::of(hot.what, PAGE).and(1, wallet).and(2, wallet)
    };
    Ok((format!("{}, topic 1 or 2 {wallet}", hot.what), logs(filter, None)))
}

/// A topic 0, and with it a common topic 1 or a rare topic 2.
pub(super) fn mixed(s: &Statistics) -> Picked {
    let rare = |signature| {
        nearest(&s.of_hot, 300, |one| {
            one.what.0 == signature && one.what.1.0 == 2 && one.count <= PAGE
        })
    };
    let mut pairs = s.apart.iter().chain(&s.meeting);
    let found = pairs.find_map(|pair| Some((pair.what, rare(pair.what.0)?)));
    let ((signature, common), rare) =
        found.ok_or("no common topic 0 was met with both a common topic 1 and a rare topic 2")?;
    let (_, (_, topic)) = rare.what;
    let filter = LogFilter {
        either: Some((1, 2)),
        ..LogFilter::with(0, signature, PAGE).and(1, common).and(2, topic)
    };
    Ok((
        format!(
            "topic 0 {signature}, and topic 1 {common} or topic 2 {topic} with {} logs",
            rare.count
        ),
        logs(filter, None),
    ))
}

/// A pair of topics that share logs.
pub(super) fn meeting(s: &Statistics) -> Picked {
    let pair = s
        .meeting
        .first()
        .filter(|pair| pair.count >= ROWS_MIN)
        .ok_or_else(|| no_pair(s, "none", "shares a log"))?;
    let (picked, filter) = both(pair, "that share logs");
    Ok((picked, logs(filter, None)))
}

/// A pair of topics that share none.
pub(super) fn apart(s: &Statistics) -> Picked {
    let pair = s
        .apart
        .first()
        .filter(|pair| pair.count >= ROWS_MIN)
        .ok_or_else(|| no_pair(s, "each", "shares a log"))?;
    let (picked, filter) = both(pair, "that never meet");
    Ok((picked, Asked::NoLogs(Box::new(filter))))
}

fn no_pair(s: &Statistics, how_many: &str, what: &str) -> String {
    if s.paired == 0 {
        return format!(
            "there are not enough common topics: no topic 0 and topic 1 with {ROWS_MIN} logs each were met that could be a pair"
        );
    }
    format!(
        "{how_many} of the {} pairs of a common topic 0 and a common topic 1 that have {ROWS_MIN} logs {what}, as far as was told \
         in time",
        s.paired
    )
}

fn both(pair: &Counted<(B256, B256)>, how: &str) -> (String, LogFilter) {
    let (signature, wallet) = pair.what;
    (
        format!(
            "topic 0 {signature} and topic 1 {wallet} {how}, the rarer with {} logs",
            pair.count
        ),
        LogFilter::with(0, signature, PAGE).and(1, wallet),
    )
}

/// A contract and a topic 0 that it never emits.
pub(super) fn silent(s: &Statistics) -> Picked {
    let pair = s
        .silent
        .first()
        .filter(|pair| pair.count >= ROWS_MIN)
        .ok_or("no contract with many logs was met that lacks a common topic 0")?;
    let (contract, signature) = pair.what;
    Ok((
        format!(
            "{contract} and topic 0 {signature} that it never emits, the rarer with {} logs",
            pair.count
        ),
        Asked::NoLogs(Box::new(LogFilter::of(contract, PAGE).and(0, signature))),
    ))
}

pub(super) fn listed(
    s: &Statistics,
    account: Option<Counted<Address>>,
    list: &str,
    unit: &str,
    offset: impl Fn(u64) -> u64,
    page: impl Fn(u64) -> u64,
) -> Picked {
    // Others are met in blocks and transactions as well.
    let no_topics = if list == "token-tx" { SMALL } else { "" };
    let account = account.ok_or_else(|| format!("no account was met that has {unit}{no_topics}"))?;
    let (offset, page) = (offset(account.count), page(account.count));
    let path = format!(
        "/api/account/{:#x}/{list}?page={page}&offset={offset}&endblock={}",
        account.what, s.store.head
    );
    let deep = if page > 1 {
        format!(", page {page} of {offset} rows")
    } else {
        String::new()
    };
    Ok((
        format!("{} with {} {unit}{deep}", account.what, account.count),
        paths(s, [path]),
    ))
}

pub(super) fn some_token(s: &Statistics) -> Result<Counted<Address>, String> {
    let held = hottest(&s.tokens).filter(|token| token.count > 0);
    held.ok_or_else(|| {
        "no contract was met that is a token with holders and has all of its logs in the store".to_owned()
    })
}

/// Accounts whose native balances are known, of all sizes: evenly drawn out of those in order of their transactions.
pub(super) fn accounts(s: &Statistics) -> Result<Vec<Address>, String> {
    if !s.store.balances {
        return Err("the store has no native balances of its head".to_owned());
    }
    let all: Vec<_> = s.by_transactions.iter().map(|one| one.what).collect();
    if all.is_empty() {
        return Err("no account was met that has transactions".to_owned());
    }
    Ok(thinned(&all, TARGETS))
}

/// What holders of the token with the most hold.
pub(super) fn held(s: &Statistics) -> Picked {
    let (token, accounts) = (some_token(s)?, thinned(&s.holders, TARGETS));
    if accounts.is_empty() {
        return Err("no holder was met".to_owned());
    }
    let path = |account: &Address| {
        format!(
            "/api/token/balance?contractaddress={:#x}&address={account:#x}",
            token.what
        )
    };
    Ok((
        format!("{}, {}", token.what, in_turn(&accounts, "holders")),
        paths(s, accounts.iter().map(path)),
    ))
}

pub(super) fn by_hash(s: &Statistics, what: &str, path: impl Fn(&B256) -> String) -> Picked {
    let hashes = thinned(&s.transactions, TARGETS);
    if hashes.is_empty() {
        return Err("there are no transactions".to_owned());
    }
    Ok((
        in_turn(&hashes, &format!("{what} spread over the chain")),
        paths(s, hashes.iter().map(path)),
    ))
}

pub(super) fn in_turn<T>(all: &[T], what: &str) -> String {
    format!("{} {what}, in turn", all.len())
}

/// The last whole days of the chain, at most so many; of a chain of a day or two, what there is of them.
pub(super) fn series(s: &Statistics, path: &str, most: i64) -> Picked {
    let (first, last) = s.store.days.ok_or("there are no blocks")?;
    // A store that begins later holds a part of its first day, and the last one is not over.
    let first = if s.store.first_block > 0 {
        first.next()
    } else {
        first
    };
    let last = if first < last {
        Day::from_number(last.number() - 1)
    } else {
        last
    };
    if last < first {
        return Err("the store holds no whole day".to_owned());
    }
    let first = first.max(Day::from_number(last.number() - most + 1));
    Ok((
        format!("{first} to {last}"),
        paths(s, [format!("{path}?startDate={first}&endDate={last}")]),
    ))
}

/// Paths of a chain, in an order of which each beginning is spread over all of them: some measurements have no time for more.
pub(super) fn paths(s: &Statistics, paths: impl IntoIterator<Item = String>) -> Asked {
    let chain = s.store.chain;
    let of_chain = paths.into_iter().map(|path| {
        if chain == ChainName::Mainnet {
            return path;
        }
        let joint = if path.contains('?') { '&' } else { '?' };
        format!("{path}{joint}chain={chain}")
    });
    Asked::Paths(strewn(of_chain.collect()))
}
