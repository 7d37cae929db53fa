//! A store passes that is as it should be, however it came to be: with frames and without, filled in later, begun in the
//! middle, with blocks that are not final, with a ledger that ended.

use std::sync::Arc;

use alloy_primitives::{B64, keccak256};
use quarry::audit::{Audit, Check, Mismatch};
use quarry::codec::keys::{PostingKind, Term};
use quarry::model::{
    Address, Authorization, B256, BlockRange, Bundle, FrameKind, Header, Log, StaticRewards, Topics, U256,
};
use quarry::query::{Nonce, Reader};
use quarry::store::{Direction, OpenOptions, PostingCursor, Store, Writer};
use quarry::sync::authority::authority;
use quarry::sync::derive::native::touched;
use quarry::sync::derive::{NonceRules, derive, derive_traces};
use quarry::sync::verify::Rules;

use crate::heard::Heard;
use crate::ledger::{self, Blocks, Deed, call, sealer, who, withdrawal};
use crate::options;

const CHAIN_ID: u64 = 7;

fn delegation(key: u64, nonce: u8) -> Authorization {
    crate::delegation::delegation(CHAIN_ID as u8, key, who(9), nonce)
}

/// A transaction that creates a contract.
fn create(from: Address, contract: Address, value: u64) -> Deed {
    let mut deed = call(from, contract, value);
    deed.transaction.to = None;
    deed.receipt.contract_address = Some(contract);
    deed.frames[0].kind = FrameKind::Create;
    deed
}

fn delegating(mut deed: Deed, tuples: Vec<Authorization>) -> Deed {
    deed.transaction.kind = 4;
    deed.transaction.authorization_list = Some(tuples);
    deed
}

/// A log of `Transfer` and the like: its words, and its data.
fn log(token: Address, event: &str, words: &[B256], data: U256) -> Log {
    let topics: Vec<B256> = [keccak256(event)].iter().chain(words).copied().collect();
    Log {
        address: token,
        topics: Topics::new(&topics).unwrap(),
        data: data.to_be_bytes_vec().into(),
    }
}

fn id_moves(token: Address, from: Address, to: Address, id: u64) -> Log {
    let words = [from.into_word(), to.into_word(), B256::from(U256::from(id))];
    Log {
        data: Default::default(),
        ..log(token, "Transfer(address,address,uint256)", &words, U256::ZERO)
    }
}

fn logging(mut deed: Deed, logs: Vec<Log>) -> Deed {
    deed.receipt.logs = logs;
    deed
}

/// Some of all that moves coins, raises nonces, makes contracts and hands ids on.
fn chain() -> Blocks {
    let contract = who(50);
    let mut blocks = Blocks::new();
    blocks.push(vec![call(who(1), who(2), 100), create(who(1), contract, 30)]);
    let mut poor = call(who(1), contract, 40)
        .with(FrameKind::Create2, &[0], contract, who(51), 20)
        .with(FrameKind::Create, &[0, 0], who(51), who(52), 0)
        .with(FrameKind::Create, &[1], contract, who(53), 0)
        .with(FrameKind::Create, &[2], contract, who(54), 0)
        .failing(&[1])
        .failing(&[2]);
    poor.frames.last_mut().unwrap().error = Some("insufficient balance for transfer".to_owned());
    blocks.push(vec![
        poor,
        create(who(1), who(55), 0).failing(&[]),
        call(who(1), who(4), 0),
    ]);
    // Before Cancun: one ends, and gets something after that.
    let ended = call(who(1), who(51), 0)
        .with(FrameKind::SelfDestruct, &[0], who(51), who(3), 20)
        .with(FrameKind::Call, &[1], who(1), who(51), 5);
    blocks.push(vec![ended]);
    // And comes again, in the block in which something else makes one of its address once more.
    let again = call(who(1), contract, 0).with(FrameKind::Create2, &[0], contract, who(51), 1);
    blocks.push(vec![
        again,
        call(who(1), who(52), 0).with(FrameKind::SelfDestruct, &[0], who(52), who(52), 0),
    ]);
    let made = |made, heir| {
        call(who(1), contract, 100)
            .with(FrameKind::Create2, &[0], contract, made, 60)
            .with(FrameKind::SelfDestruct, &[0, 0], made, heir, 60)
            .with(FrameKind::Call, &[1], contract, made, 5)
    };
    let bundle = blocks.push(vec![made(who(56), who(5)), made(who(57), who(57))]);
    bundle.block.header.blob_gas_used = Some(0);
    bundle.block.header.excess_blob_gas = Some(0);
    // Authorized, in vain; creates; authorized after that.
    let delegated = authority(&delegation(77, 0)).unwrap();
    let tuples = vec![delegation(77, 0), delegation(77, 0), delegation(78, 1)];
    let creates = call(who(1), delegated, 9).with(FrameKind::Create, &[0], delegated, who(58), 1);
    blocks.push(vec![delegating(creates, tuples)]);
    blocks.push(vec![delegating(call(who(1), who(6), 1), vec![delegation(77, 2)])]);
    blocks.push(vec![call(delegated, who(6), 0)]);
    // The delegated account pays for its transaction.
    blocks.0.last_mut().unwrap().receipts[0].effective_gas_price = Some(0);
    let block = &mut blocks.push(vec![call(who(1), who(7), 8)]).block;
    block.header.difficulty = U256::from(1000);
    block.uncle_headers = vec![Header {
        number: 8,
        beneficiary: who(8),
        ..Header::default()
    }];
    block.uncles = vec![B256::repeat_byte(9)];
    // Of clique: a vote, and a signature that is somebody's.
    let header = &mut blocks.push(vec![call(who(1), who(7), 8)]).block.header;
    header.difficulty = U256::from(2);
    header.nonce = B64::repeat_byte(0xff);
    let seal = [
        vec![7; 32],
        delegation(77, 0).r.to_be_bytes_vec(),
        vec![1; 32],
        vec![0],
    ];
    header.extra_data = seal.concat().into();
    blocks.push(vec![]).block.withdrawals = Some(vec![withdrawal(who(20), 3), withdrawal(who(1), 2)]);
    // Ids, and such a log of the same contract that moves coin elsewhere.
    let token = who(60);
    let wrapped = log(
        token,
        "Deposit(address,uint256)",
        &[who(1).into_word()],
        U256::from(5),
    );
    let logs = vec![
        id_moves(token, Address::ZERO, who(1), 1),
        id_moves(token, Address::ZERO, who(1), 2),
        wrapped.clone(),
        id_moves(token, who(1), who(2), 1),
    ];
    // And coins by one that is no token until it moves ids.
    let other = who(61);
    let wraps = Log {
        address: other,
        ..wrapped
    };
    blocks.push(vec![
        logging(call(who(1), token, 0), logs),
        logging(call(who(1), other, 0), vec![wraps]),
    ]);
    let logs = vec![
        id_moves(token, who(2), Address::ZERO, 1),
        // Nobody knows it, and whose it was is another.
        id_moves(other, Address::ZERO, who(1), 7),
        id_moves(other, who(3), who(2), 7),
    ];
    blocks.push(vec![logging(call(who(1), token, 0), logs)]);
    blocks.push(vec![]);
    blocks
}

fn rules() -> NonceRules {
    let mut rules = ledger::rules(&[(who(1), 5_000_000), (who(9), 3)]);
    rules.native.static_rewards = StaticRewards::of_steps(vec![(0, 640)]);
    rules.genesis_nonces = vec![(who(9), 4)];
    rules
}

/// A new store.
pub(crate) struct Made {
    pub(crate) store: Arc<Store>,
    pub(crate) home: tempfile::TempDir,
}

/// A store of which some blocks are not final.
pub(crate) fn unfinal(finals: usize) -> Made {
    let made = made(0, None);
    commit(&mut made.store.writer().unwrap(), &chain().0, &rules(), finals);
    made
}

fn made(first: u64, rewards: Option<&StaticRewards>) -> Made {
    let home = tempfile::tempdir().unwrap();
    let options = OpenOptions {
        static_rewards: rewards.cloned(),
        ..options(home.path())
    };
    let store = Store::open_or_create(&options, CHAIN_ID, B256::repeat_byte(1), Some(first)).unwrap();
    Made { store, home }
}

/// Commits the blocks up to `finals` as final ones, the others one by one.
fn commit(writer: &mut Writer, bundles: &[Bundle], rules: &NonceRules, finals: usize) {
    let (first, others) = bundles.split_at(finals);
    for some in first.chunks(4) {
        let mut batch = writer.batch();
        for bundle in some {
            derive(bundle, rules, &mut batch).unwrap();
        }
        writer.commit_final(batch).unwrap();
    }
    for bundle in others {
        let mut batch = writer.batch();
        derive(bundle, rules, &mut batch).unwrap();
        writer.commit_unfinal(batch).unwrap();
    }
}

/// Fills in the frames of blocks that are stored without.
fn fill(store: &Store, writer: &mut Writer, bundles: &[Bundle], rules: &NonceRules) {
    for some in bundles.chunks(3) {
        let (view, mut batch) = (store.view(), writer.batch());
        for bundle in some {
            let traces = bundle.traces.as_deref().unwrap();
            let first = view.block(bundle.block.number()).unwrap().first_transaction;
            derive_traces(bundle, traces, (&view, first), rules, &mut batch).unwrap();
        }
        writer.commit_final(batch).unwrap();
    }
}

fn untraced(bundles: &[Bundle]) -> Vec<Bundle> {
    let without = |bundle: &Bundle| Bundle {
        traces: None,
        ..bundle.clone()
    };
    bundles.iter().map(without).collect()
}

/// What an audit says of some blocks, which are sealed by nobody.
pub(crate) fn audited(store: &Store, first: u64, last: u64) -> (Vec<Check>, Vec<Mismatch>) {
    let heard = Heard::default();
    let range = BlockRange::new(first, last).unwrap();
    let rules = Rules::default().trusting_node(true);
    let checks = Audit::new(store.view(), range, rules, &heard).run();
    (checks, heard.0.into_inner().unwrap())
}

/// Nothing is wrong with the whole store, and with parts of it.
#[track_caller]
fn passes(store: &Store) -> Vec<Check> {
    let view = store.view();
    let (first, last) = (view.first_block(), view.head().unwrap().number);
    let parts = [(first + 2, last), (first, last - 2), (last, last), (first, last)];
    let parts = parts.map(|(first, last)| {
        let (checks, mismatches) = audited(store, first, last);
        assert_eq!(mismatches, [], "blocks {first} to {last}");
        checks
    });
    parts.into_iter().last().unwrap()
}

fn items(checks: &[Check], name: &str) -> u64 {
    let named = checks.iter().find(|check| check.name.starts_with(name));
    named.expect("the check").items
}

const FACTS: &str = "creations, nonces";
const NATIVE: &str = "native balances, supply";

#[test]
fn with_frames_and_blocks_that_are_not_final() {
    let (bundles, rules) = (chain().0, rules());
    // Rewards that the store remembers, and such that came with a file that was given later.
    for rewards in [Some(&rules.native.static_rewards), None] {
        for finals in [bundles.len(), 5, 0] {
            let made = made(0, rewards);
            let mut writer = made.store.writer().unwrap();
            commit(&mut writer, &bundles, &rules, finals);
            let view = made.store.view();
            assert_eq!(view.checkpoint().native.fault, None);
            let checks = passes(&made.store);
            assert!(
                items(&checks, FACTS) > 40 && items(&checks, NATIVE) > 40,
                "{checks:?}"
            );
            // Off and on again.
            let last = bundles.len() as u64 - 3;
            if finals == 5 {
                writer.unwind(last).unwrap();
                passes(&made.store);
                commit(&mut writer, &bundles[last as usize..], &rules, 0);
                writer.finalize(8).unwrap();
                passes(&made.store);
            }
        }
    }
}

#[test]
fn by_eras_whose_uncles_bring_a_32nd() {
    let (bundles, mut rules) = (chain().0, rules());
    rules.native.static_rewards = "ecip1017:2".parse().unwrap();
    // The store has to say so: what was issued does not tell how it was shared.
    let made = made(0, Some(&rules.native.static_rewards));
    commit(&mut made.store.writer().unwrap(), &bundles, &rules, 5);
    assert_eq!(made.store.view().checkpoint().native.fault, None);
    assert_eq!(made.store.static_rewards(), Some(rules.native.static_rewards));
    passes(&made.store);
}

#[test]
fn without_frames_and_with_some_that_were_filled_in() {
    let (bundles, rules) = (chain().0, rules());
    let made = made(0, None);
    let mut writer = made.store.writer().unwrap();
    let without = untraced(&bundles);
    commit(&mut writer, &without, &rules, without.len() - 2);
    let checks = passes(&made.store);
    assert_eq!(items(&checks, NATIVE), 0);
    writer.unwind(bundles.len() as u64 - 2).unwrap();
    for some in bundles[..bundles.len() - 2].chunks(3) {
        fill(&made.store, &mut writer, some, &rules);
        passes(&made.store);
    }
    commit(&mut writer, &bundles[bundles.len() - 2..], &rules, 0);
    let checks = passes(&made.store);
    assert!(items(&checks, NATIVE) > 40, "{checks:?}");
    // A node that tells no frames any more.
    let none = untraced(&[Bundle::clone(Blocks(bundles).push(vec![call(who(1), who(2), 3)]))]);
    commit(&mut writer, &none, &rules, 0);
    passes(&made.store);
}

/// From before receipts had a status: a creation that fails, and one that does not and creates in turn; and one of later.
fn old_chain() -> Vec<Bundle> {
    let mut blocks = Blocks::new();
    blocks.push(vec![
        create(who(1), who(70), 0).failing(&[]),
        create(who(1), who(71), 3),
    ]);
    blocks.push(vec![
        call(who(1), who(71), 0).with(FrameKind::Create, &[0], who(71), who(72), 0),
        // Some name whom a call went to.
        call(who(1), who(70), 2),
    ]);
    for receipt in blocks.0.iter_mut().flat_map(|bundle| &mut bundle.receipts) {
        receipt.status = None;
        receipt.root = Some(B256::repeat_byte(3));
    }
    blocks.push(vec![
        create(who(1), who(73), 0),
        create(who(1), who(74), 0).failing(&[]),
    ]);
    blocks.0
}

#[test]
fn before_byzantium_traces_tell_what_was_created_and_blocks_no_nonces() {
    let bundles = old_chain();
    let mut rules = rules();
    let lists = |store: &Store| {
        let view = store.view();
        [70, 71, 73, 74].map(|number| {
            let term = Term::account(PostingKind::AccountTransactions, &who(number));
            PostingCursor::open(&view, term, Direction::Forward)
                .unwrap()
                .count()
        })
    };
    let nonces = |store: &Store| {
        let reader = Reader::new(store.view());
        [71, 72, 73].map(|number| reader.nonce(who(number), 3).unwrap())
    };
    // A receipt of later says by its status that EIP-161 came before it.
    let unknown = [Nonce::AskNode, Nonce::AskNode, Nonce::Exact(1)];
    for (spurious_dragon, told) in [
        (None, unknown),
        (Some(3), [1, 0, 1].map(Nonce::Exact)),
        (Some(0), [2, 1, 1].map(Nonce::Exact)),
    ] {
        rules.spurious_dragon_block = spurious_dragon;
        let made = made(0, None);
        commit(&mut made.store.writer().unwrap(), &bundles, &rules, 2);
        assert_eq!(lists(&made.store), [1, 2, 1, 0], "{spurious_dragon:?}");
        assert_eq!(nonces(&made.store), told, "{spurious_dragon:?}");
        passes(&made.store);
    }
    // Where traces come later the lists are made already: the failed creation stays in that of the address that it named.
    rules.spurious_dragon_block = None;
    let made = made(0, None);
    let mut writer = made.store.writer().unwrap();
    commit(&mut writer, &untraced(&bundles), &rules, bundles.len());
    fill(&made.store, &mut writer, &bundles, &rules);
    assert_eq!(lists(&made.store), [2, 2, 1, 0]);
    assert_eq!(nonces(&made.store), unknown);
    passes(&made.store);
}

/// Since EIP-6780, which chains may take without blobs, contracts end in the transaction that makes them alone.
#[test]
fn only_the_node_tells_the_nonce_of_a_contract_that_may_live_on() {
    let (ending, passing) = (who(80), who(81));
    let mut blocks = Blocks::new();
    blocks.push(vec![create(who(1), ending, 0)]);
    blocks.push(vec![
        call(who(1), ending, 0).with(FrameKind::SelfDestruct, &[0], ending, who(3), 0),
        call(who(1), ending, 0)
            .with(FrameKind::Create2, &[0], ending, passing, 0)
            .with(FrameKind::SelfDestruct, &[0, 0], passing, who(3), 0),
    ]);
    blocks.push(vec![]);
    blocks.push(vec![call(who(1), ending, 0).with(
        FrameKind::Create,
        &[0],
        ending,
        who(82),
        0,
    )]);
    let exact = |nonces: [u64; 3]| nonces.map(Nonce::Exact);
    let (ended, lives) = (exact([1, 1, 2]), exact([1, 2, 3]));
    let unknown = [Nonce::Exact(1), Nonce::AskNode, Nonce::AskNode];
    for (base_fee, blobs, cancun_time, told) in [
        (None, None, None, ended),
        (Some(3), None, None, unknown),
        // As earlier versions had it, too.
        (Some(3), None, Some(u64::MAX), ended),
        (Some(3), None, Some(0), unknown),
        (Some(3), Some(0), None, lives),
    ] {
        for bundle in &mut blocks.0[1..] {
            let header = &mut bundle.block.header;
            header.base_fee_per_gas = base_fee;
            (header.blob_gas_used, header.excess_blob_gas) = (blobs, blobs);
        }
        let rules = NonceRules {
            cancun_time,
            ..rules()
        };
        for finals in [blocks.0.len(), 2] {
            let made = made(0, None);
            commit(&mut made.store.writer().unwrap(), &blocks.0, &rules, finals);
            let reader = Reader::new(made.store.view());
            let nonces = [1, 2, 4].map(|block| reader.nonce(ending, block).unwrap());
            assert_eq!(nonces, told, "{base_fee:?} {blobs:?} {cancun_time:?}");
            assert_eq!(reader.nonce(passing, 4).unwrap(), Nonce::Exact(0));
            passes(&made.store);
        }
    }
}

#[test]
fn from_the_middle_of_the_chain() {
    let mut rules = rules();
    rules.native.allocation = None;
    rules.from_genesis = false;
    for first in [1usize, 4, 7] {
        let mut bundles = chain().0;
        for bundle in &mut bundles {
            let met = touched(bundle, &rules.native).into_iter();
            let poor = [3, 5, 6, 7, 8, 20].map(who);
            let held = |account| U256::from(u64::from(!poor.contains(&account)) * 9_000_000);
            bundle.openings = Some(met.map(|account| (account, held(account))).collect());
        }
        let made = made(first as u64, None);
        let mut writer = made.store.writer().unwrap();
        commit(&mut writer, &bundles[first..], &rules, 3);
        let fault = made.store.view().checkpoint().native.fault;
        assert_eq!(fault, None, "from {first}");
        passes(&made.store);
    }
}

#[test]
fn with_a_ledger_that_ended() {
    let mut rules = rules();
    for allocated in [true, false] {
        let mut blocks = chain();
        if !allocated {
            // Nobody tells what accounts held.
            rules.native.allocation = None;
        }
        // Its fees are not Ethereum's.
        blocks.push(vec![call(who(1), who(30), 4)]).block.transactions[0].kind = 0x6a;
        blocks.push(vec![call(who(30), who(31), 0)]).block.withdrawals = Some(vec![withdrawal(who(32), 1)]);
        // Who sealed it is not known: the one that is named, or the one that signed.
        let header = &mut blocks.push(vec![call(who(1), who(33), 4)]).block.header;
        header.difficulty = U256::from(2);
        header.beneficiary = who(34);
        let seal = [
            vec![7; 32],
            delegation(77, 0).r.to_be_bytes_vec(),
            vec![2; 32],
            vec![0],
        ];
        header.extra_data = seal.concat().into();
        let made = made(0, None);
        commit(&mut made.store.writer().unwrap(), &blocks.0, &rules, 4);
        let fault = made.store.view().checkpoint().native.fault.unwrap();
        assert_eq!(fault.block == 15, allocated, "{fault:?}");
        let checks = passes(&made.store);
        assert_eq!(items(&checks, NATIVE), 0);
    }
    assert_ne!(who(34), sealer());
}

#[test]
fn at_the_fork_of_the_dao() {
    let list = include_str!("../../src/sync/derive/native/dao_accounts.txt");
    let listed: Vec<Address> = list.lines().filter_map(|line| line.parse().ok()).collect();
    let mut rules = rules();
    rules.native.dao_block = Some(3);
    let (refund, drained) = (listed[0], listed[7]);
    for is_there in [true, false] {
        let mut blocks = Blocks::new();
        let first = if is_there { refund } else { who(8) };
        blocks.push(vec![call(who(1), drained, 700), call(who(1), first, 3)]);
        blocks.push(vec![]);
        // Before any transaction of the block: what comes in it stays.
        blocks.push(vec![call(who(1), listed[9], 8)]);
        blocks.push(vec![call(who(1), who(2), 1)]);
        blocks.push(vec![]);
        blocks.push(vec![]);
        for bundle in &mut blocks.0[3..6] {
            bundle.block.header.extra_data = b"dao-hard-fork".as_slice().into();
        }
        let made = made(0, Some(&rules.native.static_rewards));
        commit(&mut made.store.writer().unwrap(), &blocks.0, &rules, 2);
        assert_eq!(made.store.view().checkpoint().native.fault, None);
        passes(&made.store);

        // A store that begins among the blocks with its mark.
        let mut rules = rules.clone();
        (rules.from_genesis, rules.native.allocation) = (false, None);
        for bundle in &mut blocks.0 {
            let met = touched(bundle, &rules.native).into_iter();
            bundle.openings = Some(met.map(|account| (account, U256::from(9_000_000))).collect());
        }
        let made = self::made(4, None);
        commit(&mut made.store.writer().unwrap(), &blocks.0[4..], &rules, 1);
        assert_eq!(made.store.view().checkpoint().native.fault, None);
        passes(&made.store);
    }
}
