//! The ledger of native balances: one test for every cause of change, and for what it does not follow.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/ledger.rs"]
mod ledger;
#[path = "support/scratch.rs"]
mod scratch;

use std::sync::Arc;

use alloy_primitives::{B64, Bytes, Signature, uint};
use ledger::{Blocks, Deed, call, rules, sealer, who, withdrawal};
use quarry::codec::value::NativeFaultReason as Reason;
use quarry::model::{Address, B256, FrameKind, Header, U256};
use quarry::query::{Balance, FirstFunding, FundingKind, Reader};
use quarry::store::{OpenOptions, Store};
use quarry::sync::derive::native::Sealing;
use quarry::sync::derive::{NonceRules, derive};

/// A store of these blocks, each committed by itself.
struct Stored {
    store: Arc<Store>,
    _directory: tempfile::TempDir,
}

impl Stored {
    fn of(blocks: &Blocks, rules: &NonceRules) -> Self {
        Self::from(blocks, rules, 0)
    }

    fn from(blocks: &Blocks, rules: &NonceRules, first: u64) -> Self {
        let directory = scratch::directory();
        let options = OpenOptions {
            cache_bytes: 4 << 20,
            memtable_bytes: 4 << 20,
            ..OpenOptions::new(directory.path())
        };
        let store = Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(first)).unwrap();
        let mut writer = store.writer().unwrap();
        for bundle in &blocks.0[first as usize..] {
            let before = store.view().contents().unwrap();
            let last = writer.checkpoint().next_block;
            for again in [false, true] {
                let mut batch = writer.batch();
                derive(bundle, rules, &mut batch).unwrap();
                writer.commit_unfinal(batch).unwrap();
                if !again {
                    // Every block can be taken back to the last byte.
                    writer.unwind(last).unwrap();
                    assert_eq!(store.view().contents().unwrap(), before);
                }
            }
        }
        drop(writer);
        // The same bytes, whatever shares a batch.
        let other = scratch::directory();
        let options = OpenOptions {
            directory: other.path().to_owned(),
            ..options
        };
        let whole = Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(first)).unwrap();
        let mut writer = whole.writer().unwrap();
        let mut batch = writer.batch();
        for bundle in &blocks.0[first as usize..] {
            derive(bundle, rules, &mut batch).unwrap();
        }
        writer.commit_final(batch).unwrap();
        assert_eq!(whole.view().digest().unwrap(), store.view().digest().unwrap());
        Self {
            store,
            _directory: directory,
        }
    }

    fn reader(&self) -> Reader {
        Reader::new(self.store.view())
    }

    #[track_caller]
    fn at(&self, account: Address, block: u64) -> u64 {
        match self.reader().balance(&account, block).unwrap() {
            Balance::Exact(balance) => balance.to(),
            other => panic!("{account} at {block}: {other:?}"),
        }
    }

    /// The balance at the head, which is also what is known of the account now.
    #[track_caller]
    fn now(&self, account: Address) -> u64 {
        let reader = self.reader();
        assert_eq!(reader.native_fault(), None);
        let balance = self.at(account, reader.head().number);
        let known = reader.account(&account).unwrap();
        assert_eq!(known.balance, Balance::Exact(U256::from(balance)));
        balance
    }

    /// What all accounts together hold.
    #[track_caller]
    fn supply(&self) -> u64 {
        let view = self.store.view();
        let head = view.head().unwrap().number;
        view.supply(head).unwrap().unwrap().total().unwrap().to()
    }

    #[track_caller]
    fn fault(&self) -> (u64, Reason) {
        let fault = self.reader().native_fault().unwrap();
        (fault.block, fault.reason)
    }

    #[track_caller]
    fn funding(&self, account: Address) -> (FundingKind, Option<Address>, u64, u64) {
        match self.reader().funding(&account).unwrap() {
            FirstFunding::Known(found) => {
                let by = found.by.map(|(_, funder)| funder);
                (found.kind, by, found.value.to(), found.block)
            }
            other => panic!("{account}: {other:?}"),
        }
    }
}

fn one_block(deeds: Vec<Deed>) -> Blocks {
    let mut blocks = Blocks::new();
    blocks.push(deeds);
    blocks
}

const ETHER: u64 = 1_000_000_000_000_000_000;

#[test]
fn genesis_and_values() {
    let rules = rules(&[(who(1), 5000), (who(2), 7), (who(3), 0)]);
    let mut blocks = one_block(vec![call(who(1), who(4), 1000)]);
    blocks.push(vec![]);
    blocks.push(vec![call(who(4), who(1), 200)]);
    let stored = Stored::of(&blocks, &rules);
    assert_eq!(
        [0, 1, 2, 3].map(|block| stored.at(who(1), block)),
        [5000, 3900, 3900, 4100]
    );
    assert_eq!(
        [0, 1, 2, 3].map(|block| stored.at(who(4), block)),
        [0, 1000, 1000, 700]
    );
    assert_eq!(
        (stored.now(who(2)), stored.now(who(3)), stored.now(who(50))),
        (7, 0, 0)
    );
    // The price of gas before London goes to who seals.
    assert_eq!(stored.now(sealer()), 200);
    assert_eq!(stored.supply(), 5007);
    let reader = stored.reader();
    assert!(reader.account(&who(2)).unwrap().known, "a holder is somebody");
    assert!(!reader.account(&who(3)).unwrap().known, "nothing was given to it");
    assert_eq!(stored.funding(who(2)), (FundingKind::Genesis, None, 7, 0));
    assert_eq!(
        stored.funding(who(4)),
        (FundingKind::Transaction, Some(who(1)), 1000, 1)
    );
    assert_eq!(stored.funding(sealer()), (FundingKind::Reward, None, 100, 1));
    assert_eq!(reader.funding(&who(3)).unwrap(), FirstFunding::Never);
}

#[test]
fn nested_values_and_what_a_revert_takes_back() {
    let rules = rules(&[(who(1), 5000)]);
    let deed = call(who(1), who(2), 1000)
        .with(FrameKind::Call, &[0], who(2), who(3), 400)
        .with(FrameKind::Call, &[0, 0], who(3), who(4), 100)
        .with(FrameKind::Call, &[1], who(2), who(5), 300)
        .with(FrameKind::Call, &[1, 0], who(5), who(6), 50)
        .with(FrameKind::DelegateCall, &[2], who(2), who(7), 9)
        .with(FrameKind::StaticCall, &[3], who(2), who(7), 9)
        .with(FrameKind::CallCode, &[4], who(2), who(7), 9)
        .with(FrameKind::Create, &[5], who(2), who(8), 20)
        .failing(&[1]);
    let stored = Stored::of(&one_block(vec![deed]), &rules);
    let balances = [1, 2, 3, 4, 5, 6, 7, 8].map(|number| stored.now(who(number)));
    assert_eq!(balances, [3900, 580, 300, 100, 0, 0, 0, 20]);
    let reader = stored.reader();
    // Nothing under a revert, and nobody who was only called, took part.
    let known = [5, 6, 7, 8].map(|number| reader.account(&who(number)).unwrap().known);
    assert_eq!(known, [false, false, false, true]);
    assert_eq!(
        stored.funding(who(4)),
        (FundingKind::Internal, Some(who(3)), 100, 1)
    );
}

#[test]
fn a_failed_transaction_costs_its_gas() {
    let rules = rules(&[(who(1), 5000)]);
    let failed = call(who(1), who(2), 1000)
        .with(FrameKind::Call, &[0], who(2), who(3), 400)
        .failing(&[]);
    let stored = Stored::of(&one_block(vec![failed]), &rules);
    assert_eq!([1, 2, 3].map(|number| stored.now(who(number))), [4900, 0, 0]);
    assert_eq!((stored.now(sealer()), stored.supply()), (100, 5000));
    // It was the recipient of a transaction all the same.
    assert!(stored.reader().account(&who(2)).unwrap().known);
}

#[test]
fn base_and_blob_fees_are_burnt_and_tips_are_paid() {
    let rules = rules(&[(who(1), 5_000_000)]);
    let mut deed = call(who(1), who(2), 1000);
    deed.transaction.kind = 3;
    deed.receipt.blob_gas_used = Some(131_072);
    deed.receipt.blob_gas_price = Some(2);
    let mut blocks = one_block(vec![deed]);
    let header = &mut blocks.0[1].block.header;
    header.base_fee_per_gas = Some(7);
    header.blob_gas_used = Some(131_072);
    header.excess_blob_gas = Some(0);
    let stored = Stored::of(&blocks, &rules);
    assert_eq!(stored.now(who(1)), 5_000_000 - 1000 - 100 - 262_144);
    assert_eq!(stored.now(sealer()), 30);
    let supply = stored.store.view().supply(1).unwrap().unwrap();
    assert_eq!(
        (supply.base_fees_burnt, supply.blob_fees_burnt),
        (U256::from(70), U256::from(262_144))
    );
    assert_eq!(stored.supply(), 5_000_000 - 70 - 262_144);
}

#[test]
fn blocks_and_uncles_are_rewarded() {
    let mut rules = rules(&[]);
    rules.native.static_rewards = format!("0:{ETHER}").parse().unwrap();
    let mut blocks = Blocks::new();
    for _ in 0..3 {
        blocks.push(vec![]).block.header.difficulty = U256::from(1000);
    }
    let uncle = |number, beneficiary| Header {
        number,
        beneficiary,
        parent_hash: B256::repeat_byte(3),
        ..Header::default()
    };
    let third = &mut blocks.0[3].block;
    third.uncles = vec![B256::repeat_byte(4), B256::repeat_byte(5)];
    third.uncle_headers = vec![uncle(2, who(1)), uncle(1, who(2))];
    // And one without difficulty.
    blocks.push(vec![]);
    let stored = Stored::of(&blocks, &rules);
    assert_eq!(stored.now(sealer()), 3 * ETHER + ETHER / 16);
    assert_eq!(stored.now(who(1)), ETHER / 8 * 7);
    assert_eq!(stored.now(who(2)), ETHER / 8 * 6);
    assert_eq!(
        stored.funding(who(1)),
        (FundingKind::Reward, None, ETHER / 8 * 7, 3)
    );
    assert_eq!(stored.supply(), 3 * ETHER + ETHER / 16 + ETHER / 8 * 13);
    // Who sealed an uncle is not always told.
    blocks.0[3].block.uncle_headers.pop();
    assert_eq!(Stored::of(&blocks, &rules).fault(), (3, Reason::Sealer));
}

/// By ECIP-1017, with eras of two blocks.
#[test]
fn uncles_of_later_eras_bring_a_32nd() {
    const FOUR: u64 = ETHER * 4;
    let mut rules = rules(&[]);
    rules.native.static_rewards = "ecip1017:2".parse().unwrap();
    let uncle = |number, beneficiary| Header {
        number,
        beneficiary,
        ..Header::default()
    };
    let mut blocks = Blocks::new();
    for number in 1..=3 {
        let block = &mut blocks.push(vec![]).block;
        block.header.difficulty = U256::from(1000);
        block.uncle_headers = match number {
            2 => vec![uncle(1, who(1))],
            3 => vec![uncle(2, who(2)), uncle(1, who(3))],
            _ => vec![],
        };
        block.uncles = block.uncle_headers.iter().map(|_| B256::repeat_byte(9)).collect();
    }
    let stored = Stored::of(&blocks, &rules);
    let big = |account| match stored.reader().balance(&account, 3).unwrap() {
        Balance::Exact(held) => held,
        other => panic!("{account}: {other:?}"),
    };
    let first = U256::from(ETHER * 5);
    assert_eq!(
        big(sealer()),
        first * U256::from(2) + (first >> 5) + U256::from(FOUR + FOUR / 16)
    );
    assert_eq!(stored.now(who(1)), ETHER * 5 / 8 * 7);
    assert_eq!((stored.now(who(2)), stored.now(who(3))), (FOUR / 32, FOUR / 32));
    let rewards = Arc::new(rules.native.static_rewards);
    let reader = Reader::with_rewards(stored.store.view(), Arc::clone(&rewards));
    for (account, block, value) in [(1, 2, ETHER * 5 / 8 * 7), (2, 3, FOUR / 32), (3, 3, FOUR / 32)] {
        let FirstFunding::Known(found) = reader.funding(&who(account)).unwrap() else {
            panic!("{account}")
        };
        let found = (found.kind, found.value, found.block);
        assert_eq!(found, (FundingKind::Reward, U256::from(value), block));
    }
}

#[test]
fn withdrawals_are_gwei() {
    let mut blocks = one_block(vec![call(who(1), who(2), 1)]);
    blocks.0[1].block.withdrawals = Some(vec![
        withdrawal(who(2), 3),
        withdrawal(who(3), 4),
        withdrawal(who(3), 5),
    ]);
    let stored = Stored::of(&blocks, &rules(&[(who(1), 1000)]));
    assert_eq!(
        (stored.now(who(2)), stored.now(who(3))),
        (3_000_000_001, 9_000_000_000)
    );
    // Transactions come before withdrawals.
    assert_eq!(
        stored.funding(who(2)),
        (FundingKind::Transaction, Some(who(1)), 1, 1)
    );
    assert_eq!(
        stored.funding(who(3)),
        (FundingKind::Withdrawal, None, 9_000_000_000, 1),
        "both of them"
    );
}

#[test]
fn a_first_reward_is_all_that_the_block_gave() {
    let mut rules = rules(&[]);
    rules.native.static_rewards = format!("0:{ETHER}").parse().unwrap();
    let uncle = |number, beneficiary| Header {
        number,
        beneficiary,
        ..Header::default()
    };
    let mut blocks = Blocks::new();
    for number in 1..=4 {
        let block = &mut blocks.push(vec![]).block;
        block.header.difficulty = U256::from(1000);
        let uncles: &[Header] = match number {
            2 => &[uncle(1, who(1)), uncle(1, who(1))],
            3 => {
                block.header.beneficiary = who(2);
                &[uncle(2, who(2)), uncle(1, who(3))]
            }
            4 => &[uncle(3, who(3))],
            _ => &[],
        };
        block.uncle_headers = uncles.to_vec();
        block.uncles = uncles.iter().map(|_| B256::repeat_byte(9)).collect();
    }
    let stored = Stored::of(&blocks, &rules);
    let reader = Reader::with_rewards(stored.store.view(), Arc::new(rules.native.static_rewards));
    let funded = |account| match reader.funding(&account).unwrap() {
        FirstFunding::Known(found) => (found.kind, found.value.to::<u64>(), found.block),
        other => panic!("{account}: {other:?}"),
    };
    assert_eq!(funded(who(1)), (FundingKind::Reward, ETHER / 8 * 14, 2));
    // For the block, for naming two uncles, and for one of them.
    let own = ETHER + ETHER / 16 + ETHER / 8 * 7;
    assert_eq!(funded(who(2)), (FundingKind::Reward, own, 3));
    assert_eq!(funded(who(3)), (FundingKind::Reward, ETHER / 8 * 6, 3));
    assert_eq!(funded(sealer()), (FundingKind::Reward, ETHER, 1));
}

fn ending(contract: Address, heir: Address, value: u64) -> Deed {
    call(who(1), contract, 0).with(FrameKind::SelfDestruct, &[0], contract, heir, value)
}

#[test]
fn contracts_end_before_cancun() {
    let rules = rules(&[(who(1), 5000), (who(2), 600), (who(3), 700), (who(4), 800)]);
    let mut blocks = Blocks::new();
    // To somebody, to itself, and one that is sent something after it ended and spends a part of it.
    blocks.push(vec![ending(who(2), who(9), 600), ending(who(3), who(3), 700)]);
    let late = ending(who(4), who(9), 800)
        .with(FrameKind::Call, &[1], who(1), who(4), 50)
        .with(FrameKind::Call, &[2], who(4), who(9), 20);
    blocks.push(vec![late]);
    let stored = Stored::of(&blocks, &rules);
    assert_eq!([2, 3, 4].map(|number| stored.now(who(number))), [0, 0, 0]);
    assert_eq!(stored.now(who(9)), 600 + 800 + 20);
    let supply = stored.store.view().supply(2).unwrap().unwrap();
    assert_eq!(supply.destroyed, U256::from(730));
    assert_eq!(stored.supply(), 7100 - 730);
    assert_eq!(
        stored.funding(who(9)),
        (FundingKind::Internal, Some(who(2)), 600, 1)
    );
    // A fee recipient that ends loses what the transaction paid it.
    let mut blocks = Blocks::new();
    let own = ending(who(2), who(9), 600);
    blocks.push(vec![own]).block.header.beneficiary = who(2);
    let stored = Stored::of(&blocks, &rules);
    assert_eq!((stored.now(who(2)), stored.now(who(9))), (0, 600));
}

#[test]
fn contracts_end_since_cancun_only_where_they_were_made() {
    let rules = rules(&[(who(1), 5000), (who(2), 600), (who(3), 700)]);
    let mut blocks = Blocks::new();
    let after = ending(who(2), who(9), 600).with(FrameKind::Call, &[1], who(1), who(2), 50);
    let made = |contract, heir| {
        call(who(1), who(7), 100)
            .with(FrameKind::Create2, &[0], who(7), contract, 60)
            .with(FrameKind::SelfDestruct, &[0, 0], contract, heir, 60)
            .with(FrameKind::Call, &[1], who(7), contract, 5)
    };
    let deeds = vec![
        after,
        ending(who(3), who(3), 700),
        made(who(20), who(9)),
        made(who(21), who(21)),
    ];
    let bundle = blocks.push(deeds);
    bundle.block.header.blob_gas_used = Some(0);
    bundle.block.header.excess_blob_gas = Some(0);
    let stored = Stored::of(&blocks, &rules);
    // It lives on, and keeps what it is sent.
    assert_eq!((stored.now(who(2)), stored.now(who(3))), (50, 700));
    assert_eq!((stored.now(who(20)), stored.now(who(21))), (0, 0));
    assert_eq!(stored.now(who(9)), 660);
    let supply = stored.store.view().supply(1).unwrap().unwrap();
    assert_eq!(supply.destroyed, U256::from(5 + 60 + 5));
    // A node on revm tells of the end of a contract in favour of itself as of the payment before it.
    let mut blocks = Blocks::new();
    let told = call(who(1), who(3), 30).with(FrameKind::SelfDestruct, &[0], who(1), who(3), 30);
    blocks.push(vec![told]).block.header.blob_gas_used = Some(0);
    let stored = Stored::of(&blocks, &rules);
    assert_eq!((stored.now(who(1)), stored.now(who(3))), (4870, 730));
    // Under a revert nothing ends.
    let mut blocks = Blocks::new();
    blocks.push(vec![made(who(20), who(9)).failing(&[0])]);
    assert_eq!(Stored::of(&blocks, &rules).now(who(20)), 5);
}

#[test]
fn delegated_accounts_pay_as_others_do() {
    let rules = rules(&[(who(1), 5000), (who(2), 600)]);
    let mut deed = call(who(1), who(2), 10)
        .with(FrameKind::DelegateCall, &[0], who(2), who(8), 0)
        .with(FrameKind::Call, &[1], who(2), who(3), 300);
    deed.transaction.kind = 4;
    deed.transaction.authorization_list = Some(vec![Default::default()]);
    let stored = Stored::of(&one_block(vec![deed]), &rules);
    assert_eq!([1, 2, 3].map(|number| stored.now(who(number))), [4890, 310, 300]);
}

#[test]
fn the_dao_fork_moves_what_its_accounts_hold() {
    let list = include_str!("../src/sync/derive/native/dao_accounts.txt");
    let listed: Vec<Address> = list.lines().filter_map(|line| line.parse().ok()).collect();
    let (refund, first, last) = (listed[0], listed[1], listed[116]);
    let mut rules = rules(&[(first, 500), (last, 70), (refund, 3), (who(1), 5000)]);
    rules.native.dao_block = Some(2);
    let mut blocks = one_block(vec![call(who(1), first, 30)]);
    // Before any transaction of the block: what comes in it stays.
    blocks.push(vec![call(who(1), last, 8)]);
    blocks.push(vec![]);
    let stored = Stored::of(&blocks, &rules);
    assert_eq!([1, 2].map(|block| stored.at(first, block)), [530, 0]);
    assert_eq!([1, 2].map(|block| stored.at(last, block)), [70, 8]);
    assert_eq!([1, 2, 3].map(|block| stored.at(refund, block)), [3, 603, 603]);
    assert_eq!(stored.supply(), 5573);
}

/// The extra data of a sealed header, and who signed it.
fn sealed(header: &Header) -> (Bytes, Address) {
    let unsealed = alloy_consensus::Header {
        parent_hash: header.parent_hash,
        ommers_hash: header.ommers_hash,
        beneficiary: header.beneficiary,
        state_root: header.state_root,
        transactions_root: header.transactions_root,
        receipts_root: header.receipts_root,
        difficulty: header.difficulty,
        number: header.number,
        gas_used: header.gas_used,
        timestamp: header.timestamp,
        extra_data: vec![7; 32].into(),
        nonce: header.nonce,
        ..Default::default()
    };
    // The generator's abscissa is one of some point: the signature is one of somebody.
    let r = uint!(0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798_U256);
    let signature = Signature::new(r, U256::from(12345), true);
    let signer = signature
        .recover_address_from_prehash(&unsealed.hash_slow())
        .unwrap();
    let mut extra = vec![7; 32];
    extra.extend_from_slice(&r.to_be_bytes::<32>());
    extra.extend_from_slice(&U256::from(12345).to_be_bytes::<32>());
    extra.push(1);
    (extra.into(), signer)
}

#[test]
fn signers_of_clique_get_the_fees() {
    for sealing in [Sealing::Clique, Sealing::ByHeader] {
        let mut rules = rules(&[(who(1), 5000)]);
        rules.native.sealing = sealing;
        let mut blocks = one_block(vec![call(who(1), who(2), 1)]);
        let header = &mut blocks.0[1].block.header;
        header.difficulty = U256::from(2);
        header.beneficiary = Address::ZERO;
        header.nonce = B64::ZERO;
        let (extra, signer) = sealed(header);
        header.extra_data = extra;
        let stored = Stored::of(&blocks, &rules);
        assert_eq!((stored.now(signer), stored.now(Address::ZERO)), (100, 0));
    }
    // Chains that took clique further name who sealed the block, clique names whom it votes out: there the node is asked.
    let mut named = one_block(vec![call(who(1), who(2), 1)]);
    let header = &mut named.0[1].block.header;
    (header.difficulty, header.nonce) = (U256::from(2), B64::ZERO);
    let (extra, signer) = sealed(header);
    header.extra_data = extra;
    let beneficiary = header.beneficiary;
    assert!(beneficiary != Address::ZERO && beneficiary != signer);
    let stored = Stored::of(&named, &rules(&[(who(1), 5000)]));
    assert_eq!(stored.fault(), (1, Reason::Sealer));
    assert!(stored.reader().account(&beneficiary).unwrap().known);
    assert!(!stored.reader().account(&signer).unwrap().known);
    let mut rules = rules(&[(who(1), 5000)]);
    let mut blocks = one_block(vec![call(who(1), who(2), 1)]);
    blocks.0[1].block.header.difficulty = U256::from(2);
    rules.native.sealing = Sealing::Clique;
    assert_eq!(Stored::of(&blocks, &rules).fault(), (1, Reason::Sealer));
    rules.native.sealing = Sealing::Aura;
    assert_eq!(Stored::of(&blocks, &rules).fault(), (1, Reason::Aura));
}

#[test]
fn openings_are_what_the_source_tells() {
    let mut rules = rules(&[]);
    rules.native.allocation = None;
    let mut blocks = one_block(vec![]);
    blocks.push(vec![call(who(1), who(2), 1000)]);
    blocks.push(vec![call(who(2), who(3), 100)]);
    let told = [(who(1), 5000), (who(2), 40), (who(3), 0), (sealer(), 6)];
    let told: Vec<_> = told.map(|(account, wei)| (account, U256::from(wei))).into();
    for bundle in &mut blocks.0[2..] {
        bundle.openings = Some(told.clone());
    }
    // From the middle: they lie at the block before the first.
    let stored = Stored::from(&blocks, &rules, 2);
    assert_eq!(
        (stored.at(who(1), 2), stored.at(who(2), 2), stored.now(who(2))),
        (3900, 1040, 840)
    );
    assert_eq!((stored.now(who(3)), stored.now(sealer())), (100, 206));
    let view = stored.store.view();
    assert_eq!(view.ledger_balance(&who(2), 1).unwrap(), Some(U256::from(40)));
    let reader = stored.reader();
    assert_eq!(reader.balance(&who(50), 3).unwrap(), Balance::AskNode);
    assert_eq!(reader.funding(&who(2)).unwrap(), FirstFunding::Before);
    // It held nothing before; whether it never did, its nonce would tell.
    let since = match reader.funding(&who(3)).unwrap() {
        FirstFunding::Since(found) => (found.kind, found.value, found.block),
        other => panic!("{other:?}"),
    };
    assert_eq!(since, (FundingKind::Transaction, U256::from(100), 3));
    assert_eq!(reader.funding(&who(50)).unwrap(), FirstFunding::NotSince);
    assert_eq!(stored.supply(), 5046);

    // From block 0: they are the genesis allocation. The fee recipient of block 1 is met there.
    blocks.0[1].openings = Some(told);
    let stored = Stored::of(&blocks, &rules);
    assert_eq!(
        (stored.at(who(2), 0), stored.at(who(2), 1), stored.now(who(2))),
        (40, 40, 840)
    );
    assert_eq!(stored.funding(who(2)), (FundingKind::Genesis, None, 40, 0));
    let reader = stored.reader();
    assert_eq!(reader.balance(&who(50), 3).unwrap(), Balance::Unmet);
    assert_eq!(reader.funding(&who(50)).unwrap(), FirstFunding::Unmet);

    // Nobody tells: the ledger ends, who took part is kept.
    blocks.0[3].openings = Some(Vec::new());
    let stored = Stored::of(&blocks, &rules);
    assert_eq!(stored.fault(), (3, Reason::Openings));
    let reader = stored.reader();
    assert_eq!(reader.balance(&who(2), 2).unwrap(), Balance::AskNode);
    let found = reader.account(&who(3)).unwrap();
    assert_eq!((found.balance, found.known), (Balance::AskNode, true));
    assert_eq!(reader.funding(&who(3)).unwrap(), FirstFunding::Untold);
    blocks.0[2].openings = None;
    assert_eq!(Stored::of(&blocks, &rules).fault(), (2, Reason::Openings));
}

#[test]
fn what_does_not_add_up_ends_the_ledger() {
    let rules = rules(&[(who(1), 5000)]);
    let good = || call(who(1), who(2), 10);
    let after = |bad: Deed| {
        let mut blocks = one_block(vec![good()]);
        blocks.push(vec![good(), bad]);
        blocks.push(vec![call(who(1), who(30), 1)]);
        blocks
    };
    // More than it has.
    let stored = Stored::of(&after(call(who(5), who(2), 1)), &rules);
    assert_eq!(stored.fault(), (2, Reason::Negative));
    assert!(stored.reader().account(&who(30)).unwrap().known);
    // A roll-up's deposit, and a fee for the layer below.
    let mut deposit = good();
    deposit.transaction.kind = 0x7e;
    assert_eq!(Stored::of(&after(deposit), &rules).fault(), (2, Reason::Foreign));
    let mut below = good();
    below.receipt.extra = Some(r#"{"l1Fee":"0x1"}"#.to_owned());
    assert_eq!(Stored::of(&after(below), &rules).fault(), (2, Reason::Foreign));
    // A fee in a token, of a type that Ethereum has.
    let mut in_token = good();
    in_token.transaction.extra =
        Some(r#"{"feeCurrency":"0x0e2a3e05bc9a16f5292a6170456a710cb89c6f72"}"#.to_owned());
    assert_eq!(Stored::of(&after(in_token), &rules).fault(), (2, Reason::Foreign));
    // A price below the base fee burns less than the header says.
    let mut blocks = after(good());
    blocks.0[2].block.header.base_fee_per_gas = Some(11);
    assert_eq!(Stored::of(&blocks, &rules).fault(), (2, Reason::Supply));
    blocks.0[2].block.header.base_fee_per_gas = Some(3);
    assert_eq!(Stored::of(&blocks, &rules).reader().native_fault(), None);
    blocks.0[2].block.header.gas_used += 1;
    assert_eq!(Stored::of(&blocks, &rules).fault(), (2, Reason::Supply));
    // Amounts that no chain has.
    let mut most = good();
    most.frames[0].value = U256::MAX;
    assert_eq!(Stored::of(&after(most), &rules).fault(), (2, Reason::Negative));
}

#[test]
fn hot_accounts_are_combined() {
    let rules = rules(&[(who(1), 5_000_000)]);
    let deeds = (0..200).map(|_| call(who(1), who(2), 3)).collect();
    let stored = Stored::of(&one_block(deeds), &rules);
    assert_eq!((stored.now(who(2)), stored.now(sealer())), (600, 20_000));
    let contents = stored.store.view().contents().unwrap();
    let rows = |name| contents.iter().find(|table| table.name == name).unwrap().rows;
    assert_eq!(
        (
            rows("balances"),
            rows("accounts"),
            rows("funding"),
            rows("supply")
        ),
        (4, 3, 3, 2)
    );
}
