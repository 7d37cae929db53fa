//! Reads a store back and compares it with the chain by brute force.

use crate::support::balances::after_each;
use fastrand::Rng;
use quarry::model::{Address, B256, Bundle};
use quarry::query::{Balance, LogQuery, Operator, Reader};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    block: u64,
    block_hash: B256,
    transaction: B256,
    log_index: u32,
    address: Address,
    topics: Vec<B256>,
    data: Vec<u8>,
}

fn rows(chain: &[Bundle]) -> Vec<Row> {
    let mut all = Vec::new();
    for bundle in chain {
        let logs = bundle.receipts.iter().flat_map(|receipt| {
            let of = |log| (receipt.transaction_hash, log);
            receipt.logs.iter().map(of)
        });
        for (log_index, (transaction, log)) in logs.enumerate() {
            all.push(Row {
                block: bundle.block.number(),
                block_hash: bundle.block.hash,
                transaction,
                log_index: log_index as u32,
                address: log.address,
                topics: log.topics.to_vec(),
                data: log.data.to_vec(),
            });
        }
    }
    all
}

/// The native balances of everybody.
pub(crate) fn check_balances(reader: &Reader, chain: &[Bundle], first_block: u64) {
    assert_eq!(reader.native_fault(), None);
    let all = after_each(chain);
    let opening = &all[first_block.saturating_sub(1) as usize];
    let mut exact = 0;
    // About thirty blocks, the last one among them: there are many accounts, and this is asked often.
    let stride = (chain.len() / 30 + 1) as u64;
    let last = chain.len() as u64 - 1;
    let asked = (0u64..).zip(&all).skip(first_block as usize);
    for (block, balances) in asked.filter(|(block, _)| (last - block).is_multiple_of(stride)) {
        for (account, balance) in balances {
            match reader.balance(account, block).unwrap() {
                Balance::Exact(found) => assert_eq!(found, *balance, "{account} after block {block}"),
                // Not met by any block of the store: it holds what it held.
                other => {
                    assert_eq!(other == Balance::AskNode, first_block > 0, "{other:?}");
                    assert_eq!(
                        Some(balance),
                        opening.get(account),
                        "{account} after block {block}"
                    );
                    continue;
                }
            }
            exact += 1;
        }
    }
    for (account, balance) in all.last().unwrap() {
        let found = reader.account(account).unwrap();
        match found.balance {
            Balance::Exact(found) => assert_eq!(found, *balance, "{account}"),
            // Perhaps known by a transfer of a token; what it holds no block of the store changed.
            _ => assert_eq!(Some(balance), opening.get(account), "{account}"),
        }
    }
    assert!(exact > 30, "{exact}");
}

/// All blocks, receipts and traces, as they were on the node, and the balances that follow from them.
pub(crate) fn check_blocks(reader: &Reader, chain: &[Bundle], first_block: u64) {
    if chain.iter().all(|bundle| bundle.traces.is_some()) && chain.len() > first_block as usize + 5 {
        check_balances(reader, chain, first_block);
    }
    for bundle in chain {
        check_block(reader, bundle, first_block);
    }
    let next = chain.len() as u64;
    assert!(
        reader.block(next, false).unwrap().is_none(),
        "nothing above the head"
    );
}

/// A block, its receipts and traces, as they were on the node.
pub(crate) fn check_block(reader: &Reader, bundle: &Bundle, first_block: u64) {
    let number = bundle.block.number();
    let found = reader.bundle(number).unwrap();
    if number < first_block {
        assert!(found.is_none(), "block {number} lies before the store");
        return;
    }
    assert_eq!(found.as_ref(), Some(bundle), "block {number}");
    let counts = reader.block_counts(number).unwrap().unwrap();
    let frames = bundle.traces.iter().flatten().flat_map(|trace| &trace.frames);
    let internal = frames.filter(|frame| frame.is_internal_transaction()).count() as u64;
    assert_eq!(
        counts.internal_transactions,
        bundle.traces.as_ref().map(|_| internal)
    );
    for (transaction, receipt) in bundle.block.transactions.iter().zip(&bundle.receipts) {
        let entry = reader.receipt(&transaction.hash).unwrap().unwrap();
        assert_eq!(&entry.transaction, transaction);
        assert_eq!(&entry.receipt, receipt);
        assert_eq!(entry.block.hash, bundle.block.hash);
    }
}

/// Random questions for logs.
pub(crate) fn check_logs(reader: &Reader, chain: &[Bundle], cases: usize, rng: &mut Rng) {
    let all = rows(chain);
    if all.is_empty() {
        return;
    }
    for case in 0..cases {
        let mut query = LogQuery {
            last_block: chain.len() as u64,
            limit: 1000,
            descending: rng.bool(),
            ..LogQuery::default()
        };
        let model = &all[rng.usize(..all.len())];
        if rng.bool() {
            query.address = Some(model.address);
        }
        for (position, &topic) in model.topics.iter().enumerate() {
            if rng.bool() {
                query.topics[position] = vec![topic];
            }
        }
        if query.topics[..2].iter().all(|values| !values.is_empty()) {
            query
                .operators
                .push((0, 1, if rng.bool() { Operator::And } else { Operator::Or }));
        }
        if query.address.is_none() && query.topics.iter().all(Vec::is_empty) {
            continue;
        }
        if rng.bool() {
            query.first_block = rng.u64(..chain.len() as u64);
            query.last_block = rng.u64(query.first_block..=chain.len() as u64);
        }
        let mut expected: Vec<Row> = all.iter().filter(|row| fits(row, &query)).cloned().collect();
        if query.descending {
            expected.reverse();
        }
        expected.truncate(query.limit);
        let mut page = reader.logs(&query).unwrap();
        let mut found = Vec::new();
        while page
            .visit(&mut |log| {
                found.push(Row {
                    block: log.block_number,
                    block_hash: log.block_hash,
                    transaction: log.transaction_hash,
                    log_index: log.log_index,
                    address: log.address,
                    topics: log.topics.to_vec(),
                    data: log.data.to_vec(),
                });
                true
            })
            .unwrap()
        {}
        assert_eq!(found, expected, "case {case}: {query:?}");
    }
}

fn fits(row: &Row, query: &LogQuery) -> bool {
    let topic = |position: usize| {
        let given = &query.topics[position];
        row.topics
            .get(position)
            .is_some_and(|topic| given.contains(topic))
    };
    let plain = |position: usize| query.topics[position].is_empty() || topic(position);
    let first_two = match query.operators.first() {
        Some((.., Operator::Or)) => topic(0) || topic(1),
        Some((.., Operator::And)) => topic(0) && topic(1),
        None => plain(0) && plain(1),
    };
    query.address.is_none_or(|address| address == row.address)
        && (query.first_block..=query.last_block).contains(&row.block)
        && first_two
        && plain(2)
        && plain(3)
}
