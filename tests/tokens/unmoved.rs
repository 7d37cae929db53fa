//! Tokens of which much is held when their kind becomes known: one first transfer makes no commit long, and answers are those of
//! any token.

use quarry::codec::tokens::{self, MIXED};
use quarry::codec::value::Undo;
use quarry::model::token::{DEPOSIT, TRANSFER, TRANSFER_SINGLE, WITHDRAWAL};
use quarry::model::{Log, Topics};
use quarry::query::KeyPart;

use super::*;
use crate::heard::complaints;
use crate::migrated::{PRESENT, Raw, Row};

/// Holdings that the first transfers of a block move at most.
const MOST: u64 = 65_536;

/// By address, so that lists have them among each other.
const ONE: Address = Address::repeat_byte(0x10);
const BIG: Address = Address::repeat_byte(0x20);
const FULL: Address = Address::repeat_byte(0x30);
const LEFT: Address = Address::repeat_byte(0x38);
const LATE: Address = Address::repeat_byte(0x40);
const TWO: Address = Address::repeat_byte(0x50);
const UNITS: Address = Address::repeat_byte(0x60);
const IDS: Address = Address::repeat_byte(0x70);

fn account(n: u64) -> Address {
    Address::from_word(B256::from(U256::from(0xab_0000_0000 + n)))
}

fn log<const N: usize>(address: Address, topics: [B256; N], words: &[u64]) -> Log {
    let words = words
        .iter()
        .flat_map(|word| U256::from(*word).to_be_bytes::<32>());
    Log {
        address,
        topics: Topics::new(&topics).unwrap(),
        data: words.collect::<Vec<u8>>().into(),
    }
}

fn deposit(token: Address, to: u64, amount: u64) -> Log {
    log(token, [DEPOSIT, account(to).into_word()], &[amount])
}

fn coins(token: Address, from: u64, to: u64, amount: u64) -> Log {
    let [from, to] = [from, to].map(|n| account(n).into_word());
    log(token, [TRANSFER, from, to], &[amount])
}

fn id(token: Address, from: u64, to: u64) -> Log {
    let [from, to] = [from, to].map(|n| account(n).into_word());
    log(token, [TRANSFER, from, to, B256::with_last_byte(9)], &[])
}

/// What is held before any first transfer: the account `n` has `n + 1`.
fn deposits() -> impl Iterator<Item = Log> {
    let tokens = [
        (BIG, MOST + 1),
        (FULL, MOST),
        (LEFT, MOST + 1),
        (LATE, 1),
        (UNITS, 1),
        (IDS, 1),
    ];
    let all = |(token, holders)| (0..holders).map(move |n| deposit(token, n, n + 1));
    tokens.into_iter().flat_map(all)
}

/// What follows, block by block.
fn steps() -> Vec<Vec<Log>> {
    let [from, to] = [0, 1].map(|n| account(n).into_word());
    vec![
        // One less holds some of this.
        vec![log(LEFT, [WITHDRAWAL, account(MOST).into_word()], &[MOST + 1])],
        // Too many by one. What comes in the same block does not count.
        vec![coins(BIG, 0, 1, 1), deposit(BIG, 80_000, 5)],
        // As many as there is room for, and then there is none.
        vec![
            coins(FULL, 0, 1, 1),
            coins(LATE, 0, 1, 1),
            log(UNITS, [TRANSFER_SINGLE, B256::ZERO, from, to], &[7, 1]),
            id(IDS, 0, 1),
        ],
        vec![coins(LEFT, 0, 1, 1), deposit(LEFT, 80_000, 5)],
        vec![
            coins(ONE, 2, 1, 7),
            coins(TWO, 2, 1, 7),
            coins(BIG, 5, 70_000, 6),
            id(BIG, 2, 1),
        ],
        vec![coins(BIG, 70_000, 5, 4), deposit(BIG, 9, 1)],
    ]
}

/// Blocks of which the first hold the deposits.
const LEN: usize = 120;
const DEPOSITED: usize = 60;

/// Blocks with these logs, and which of them are those that follow the deposits.
fn blocks() -> (Vec<Bundle>, Vec<usize>) {
    let mut bundles = chain(5, LEN as u64);
    let receipts = bundles.iter_mut().flat_map(|bundle| &mut bundle.receipts);
    receipts.for_each(|receipt| receipt.logs.clear());
    let (first, rest) = bundles.split_at_mut(DEPOSITED);
    let receipts: Vec<_> = first.iter_mut().flat_map(|bundle| &mut bundle.receipts).collect();
    let each = (3 * MOST as usize + 8).div_ceil(receipts.len());
    let mut logs = deposits();
    for receipt in receipts {
        receipt.logs.extend(logs.by_ref().take(each));
    }
    assert!(logs.next().is_none());
    let with_receipts = (DEPOSITED..)
        .zip(rest)
        .filter(|(_, bundle)| !bundle.receipts.is_empty());
    let mut places = Vec::new();
    for ((at, bundle), logs) in with_receipts.zip(steps()) {
        bundle.receipts[0].logs = logs;
        places.push(at);
    }
    assert_eq!(places.len(), 6);
    (bundles, places)
}

/// The tokens of a kind that an account holds, page by page.
fn held(reader: &Reader, n: u64, kind: TokenKind, limit: usize) -> Vec<(Address, u64)> {
    let mut part = KeyPart::skipping(0, limit);
    let mut found = Vec::new();
    let mut totals = BTreeSet::new();
    loop {
        let page = reader.holdings(&account(n), kind, &part, None).unwrap();
        assert!(page.tokens.len() <= limit);
        totals.insert(page.total);
        let tokens = page.tokens.iter();
        found.extend(tokens.map(|held| (held.token, held.balance.to::<u64>())));
        part.after = page.next;
        if page.next.is_none() {
            assert_eq!(totals, [Some(found.len() as u64)].into());
            return found;
        }
    }
}

fn check_answers(store: &Store) {
    let view = store.view();
    let state = |token: &Address| view.token_state(view.token(token).unwrap().unwrap()).unwrap();
    let kept = [BIG, LATE, UNITS, IDS];
    for token in [ONE, BIG, FULL, LEFT, LATE, TWO, UNITS, IDS] {
        assert_eq!(state(&token).unmoved, kept.contains(&token), "{token}");
    }
    assert_eq!(
        (state(&BIG).kind, state(&BIG).holders),
        (TokenKind::Erc20, MOST + 2)
    );
    assert_eq!(
        (state(&FULL).kind, state(&FULL).holders),
        (TokenKind::Erc20, MOST - 1)
    );
    assert_eq!(
        (state(&LEFT).kind, state(&LEFT).holders),
        (TokenKind::Erc20, MOST)
    );
    assert_ne!(state(&BIG).flags & MIXED, 0);
    let reader = Reader::new(store.view());
    for limit in [1, 2, 3, 10] {
        let coins = [(ONE, 7), (BIG, 3), (FULL, 3), (LEFT, 3), (LATE, 1), (TWO, 7)];
        assert_eq!(held(&reader, 1, TokenKind::Erc20, limit), coins);
        assert_eq!(held(&reader, 1, TokenKind::Erc721, limit), [(BIG, 1), (IDS, 1)]);
        assert_eq!(held(&reader, 1, TokenKind::Erc1155, limit), [(UNITS, 1)]);
        assert_eq!(held(&reader, 0, TokenKind::Erc20, limit), []);
        // What was deposited, and no transfer told of.
        assert_eq!(held(&reader, 0, TokenKind::Erc721, limit), [(IDS, 1)]);
        let five = [(BIG, 4), (FULL, 6), (LEFT, 6)];
        assert_eq!(held(&reader, 5, TokenKind::Erc20, limit), five);
        assert_eq!(held(&reader, 70_000, TokenKind::Erc20, limit), [(BIG, 2)]);
        assert_eq!(
            held(&reader, 80_000, TokenKind::Erc20, limit),
            [(BIG, 5), (LEFT, 5)]
        );
    }
    let part = KeyPart::skipping(2, 2);
    let page = reader.holdings(&account(1), TokenKind::Erc20, &part, None);
    let page = page.unwrap();
    let tokens: Vec<_> = page.tokens.iter().map(|held| held.token).collect();
    assert_eq!((tokens, page.total), (vec![FULL, LEFT], Some(6)));
    let page = reader.multi_holdings(&account(1), None, &KeyPart::skipping(0, 10), None);
    let ids: Vec<_> = page.unwrap().ids.iter().map(|id| (id.token, id.id)).collect();
    assert_eq!(ids, [(UNITS, U256::from(7))]);
    let nothing = reader.holdings(&Address::ZERO, TokenKind::Erc20, &KeyPart::skipping(0, 9), None);
    assert_eq!(nothing.unwrap().tokens, []);
    let balance = |token: &Address, n: u64| {
        let token = reader.token(token).unwrap().unwrap();
        let now = reader.token_balance(&token, &account(n)).unwrap();
        let then = reader
            .token_balance_at(&token, &account(n), LEN as u64 - 1)
            .unwrap();
        assert_eq!(now, then);
        now.to::<u64>()
    };
    assert_eq!([0, 1, 5, 9, 80_000].map(|n| balance(&BIG, n)), [0, 3, 4, 11, 5]);
    assert_eq!([0, 1, 5, MOST].map(|n| balance(&LEFT, n)), [0, 3, 6, 0]);
    assert_eq!([1, MOST].map(|n| balance(&LATE, n)), [1, 0]);
}

#[test]
fn first_transfers_of_a_block_move_so_much_however_it_is_cut() {
    let (bundles, at) = blocks();
    let mut expected = None;
    for case in 0..6 {
        let directory = scratch::directory();
        let store = open(directory.path());
        let mut writer = store.writer().unwrap();
        match case {
            0 => backfill(&mut writer, &bundles, LEN),
            1 => backfill(&mut writer, &bundles, 1),
            // Before a first transfer, and behind it.
            2 => {
                backfill(&mut writer, &bundles[..at[1]], LEN);
                backfill(&mut writer, &bundles[at[1]..at[3]], LEN);
                backfill(&mut writer, &bundles[at[3]..], LEN);
            }
            3 => {
                backfill(&mut writer, &bundles[..DEPOSITED / 2], LEN);
                backfill(&mut writer, &bundles[DEPOSITED / 2..=at[2]], LEN);
                backfill(&mut writer, &bundles[at[2] + 1..], LEN);
            }
            4 => {
                // One under way while the next is derived.
                let mut rest = bundles.as_slice();
                for blocks in [DEPOSITED / 2, at[1] - DEPOSITED / 2, LEN] {
                    let (now, later) = rest.split_at(blocks.min(rest.len()));
                    let mut batch = writer.batch();
                    for bundle in now {
                        derive(bundle, &rules(), &mut batch).unwrap();
                    }
                    writer.begin_commit(batch).unwrap();
                    rest = later;
                }
                writer.wait().unwrap();
            }
            _ => {
                backfill(&mut writer, &bundles[..at[0]], LEN);
                follow(&mut writer, &bundles[at[0]..at[1]]);
                let before = digests(&store);
                follow(&mut writer, &bundles[at[1]..]);
                writer.unwind(at[1] as u64).unwrap();
                assert_eq!(digests(&store), before);
                follow(&mut writer, &bundles[at[1]..]);
                writer.unwind(at[2] as u64).unwrap();
                follow(&mut writer, &bundles[at[2]..]);
            }
        }
        drop(writer);
        check_answers(&store);
        let found = digests(&store);
        assert_eq!(&found, expected.get_or_insert(found.clone()), "case {case}");
        if case == 5 {
            assert_eq!(complaints(&store, PRESENT), [""; 0]);
            drop(store);
            check_undo(&Raw::open(directory.path()), &at);
            check_audit(directory.path());
        }
    }
}

/// What a commit wrote, row by row.
fn check_undo(raw: &Raw, at: &[usize]) {
    let rows = |block: usize| {
        let undo = raw.rows("undo").into_iter();
        let mut undo = undo.filter(|(key, _)| key.ends_with(&(block as u64).to_be_bytes()));
        Undo::decode(&undo.next().unwrap().1).unwrap().rows.len() as u64
    };
    let [big, full, left] = [1, 2, 3].map(|step| rows(at[step]));
    assert!(big < 500, "{big}");
    for moved in [full, left] {
        assert!((2 * MOST..2 * MOST + 500).contains(&moved), "{moved}");
    }
}

/// An audit misses a token in the list of those whose holdings were not moved, and minds one that is there too much.
fn check_audit(directory: &std::path::Path) {
    let said = || complaints(&open(directory), PRESENT).join("\n");
    let key = tokens::unmoved(&BIG);
    let raw = Raw::open(directory);
    raw.0
        .delete_cf(raw.0.cf_handle("holdings").unwrap(), key)
        .unwrap();
    drop(raw);
    assert!(said().contains(&BIG.to_string()));
    let row = |token: &Address| -> Row {
        let key = tokens::unmoved(token);
        ("holdings", Box::from(key), Box::from([TokenKind::Erc20 as u8]))
    };
    Raw::open(directory).put(&row(&BIG));
    assert_eq!(said(), "");
    Raw::open(directory).put(&row(&FULL));
    assert!(said().contains(&FULL.to_string()));
}

#[test]
fn what_first_transfers_move_is_counted_with_the_batch() {
    let (bundles, at) = blocks();
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &bundles[..at[2]], LEN);
    let bytes = |writer: &mut Writer, blocks: &[Bundle]| {
        let mut batch = writer.batch();
        for bundle in blocks {
            derive(bundle, &rules(), &mut batch).unwrap();
        }
        let bytes = batch.bytes();
        writer.commit_final(batch).unwrap();
        bytes
    };
    let moving = bytes(&mut writer, &bundles[at[2]..=at[2]]);
    assert!((65_000_000..85_000_000).contains(&moving), "{moving}");
    backfill(&mut writer, &bundles[at[2] + 1..=at[3]], LEN);
    let rest = bytes(&mut writer, &bundles[at[3] + 1..]);
    assert!(rest < 5_000_000, "{rest}");
}
