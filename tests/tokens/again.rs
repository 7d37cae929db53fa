//! A store that begins later, and contracts that were there before and are made again.

use quarry::model::token::TRANSFER;
use quarry::model::{Frame, FrameKind, Log, Topics, Transaction};
use quarry::store::Table;
use quarry::sync::derive::native::{NativeRules, touched};

use super::*;

/// The first block of the store.
const FIRST: u64 = 5;

const FACTORY: Address = Address::repeat_byte(0xfa);
const TOKEN: Address = Address::repeat_byte(0x70);

/// What happens in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The token ends, by a call of its factory.
    Ends,
    /// Somebody calls it.
    IsCalled,
    /// A transaction goes to it.
    IsSentTo,
    /// It emits a transfer.
    Emits,
    /// The factory makes it, and it emits a transfer.
    IsMade,
    /// The same, and an earlier transaction of the block ended it.
    EndsAndIsMade,
    /// It is made, and before that it is called in the same transaction.
    IsCalledAndMade,
    /// A transaction makes it by itself, and it emits a transfer.
    IsMadeBySender,
}

fn transfer() -> Log {
    let to = Address::repeat_byte(0x21).into_word();
    Log {
        address: TOKEN,
        topics: Topics::new(&[TRANSFER, B256::ZERO, to]).unwrap(),
        data: U256::from(5).to_be_bytes_vec().into(),
    }
}

/// The token ends, by a call of its factory.
fn ending() -> Vec<Frame> {
    let frame = |kind, from, to: Address, path: &[u32]| Frame {
        kind,
        path: path.to_vec(),
        from,
        to: Some(to),
        ..Frame::default()
    };
    vec![
        frame(FrameKind::Call, FACTORY, TOKEN, &[7]),
        frame(FrameKind::SelfDestruct, TOKEN, FACTORY, &[7, 0]),
    ]
}

/// Lets it happen in the last transaction of a block.
fn add(bundle: &mut Bundle, event: Event) {
    if event == Event::EndsAndIsMade {
        let traces = bundle.traces.as_mut().unwrap();
        traces.first_mut().unwrap().frames.extend(ending());
        return add(bundle, Event::IsMade);
    }
    let transaction: &mut Transaction = bundle.block.transactions.last_mut().unwrap();
    let receipt = bundle.receipts.last_mut().unwrap();
    let frames = &mut bundle.traces.as_mut().unwrap().last_mut().unwrap().frames;
    receipt.status = Some(true);
    let frame = |kind, from, to: Address, place| Frame {
        kind,
        path: vec![place],
        from,
        to: Some(to),
        ..Frame::default()
    };
    let nested = match event {
        Event::Ends => ending(),
        Event::IsCalled => vec![frame(FrameKind::StaticCall, FACTORY, TOKEN, 7)],
        Event::IsMade => vec![frame(FrameKind::Create2, FACTORY, TOKEN, 7)],
        Event::IsCalledAndMade => vec![
            frame(FrameKind::StaticCall, FACTORY, TOKEN, 7),
            frame(FrameKind::Create2, FACTORY, TOKEN, 8),
        ],
        Event::IsSentTo | Event::Emits | Event::IsMadeBySender | Event::EndsAndIsMade => vec![],
    };
    frames.extend(nested);
    match event {
        Event::IsSentTo => {
            transaction.to = Some(TOKEN);
            frames[0].to = Some(TOKEN);
            receipt.contract_address = None;
        }
        Event::IsMadeBySender => {
            transaction.to = None;
            receipt.contract_address = Some(TOKEN);
            frames.truncate(1);
            (frames[0].kind, frames[0].to) = (FrameKind::Create, Some(TOKEN));
        }
        _ => {}
    }
    if !matches!(event, Event::Ends | Event::IsCalled | Event::IsSentTo) {
        receipt.logs.push(transfer());
    }
}

/// Whether a store from block [`FIRST`] on takes the token for whole after these blocks, in which what stands there happens, the token
/// having held so much before the first.
fn is_whole(events: &[Option<Event>], held: u64) -> bool {
    // Two transactions a block, so that one thing can come after another.
    let blocks = plain::chain(11, 60, &ChainConfig::default());
    let mut bundles: Vec<Bundle> = blocks
        .into_iter()
        .filter(|bundle| bundle.block.transactions.len() > 1)
        .collect();
    let mut parent = B256::ZERO;
    for (place, bundle) in bundles.iter_mut().enumerate() {
        let header = &mut bundle.block.header;
        (header.number, header.parent_hash) = (FIRST + place as u64, parent);
        parent = bundle.block.hash;
    }
    for (bundle, event) in bundles.iter_mut().zip(events) {
        if let Some(event) = event {
            add(bundle, *event);
        }
    }
    let rich = U256::from(10).pow(U256::from(24));
    for bundle in &mut bundles {
        let opening = |account: Address| match account == TOKEN {
            true => (account, U256::from(held)),
            false => (account, rich),
        };
        let accounts = touched(bundle, &NativeRules::default()).into_iter();
        bundle.openings = Some(accounts.map(opening).collect());
    }
    let directory = scratch::directory();
    let options = OpenOptions {
        cache_bytes: 8 << 20,
        memtable_bytes: 8 << 20,
        ..OpenOptions::new(directory.path())
    };
    let store = Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(FIRST)).unwrap();
    let rules = NonceRules {
        chain_id: 7,
        ..NonceRules::default()
    };
    let mut writer = store.writer().unwrap();
    for bundle in &bundles[..events.len() + 2] {
        let mut batch = writer.batch();
        derive(bundle, &rules, &mut batch).unwrap();
        writer.commit_unfinal(batch).unwrap();
    }
    let view = store.view();
    assert_eq!(view.checkpoint().native.fault, None);
    if held > 0 {
        let mut scan = view.scan_all(Table::Balances).unwrap();
        let opened = scan.seek(TOKEN.as_slice()).unwrap().unwrap();
        assert!(opened.0.starts_with(TOKEN.as_slice()));
    }
    let reader = Reader::new(view);
    let token = reader.token(&TOKEN).unwrap().unwrap();
    assert_eq!(token.is_doubted(), !token.is_whole());
    token.is_whole()
}

/// What a factory made it can make again, after an end that the store may have: then earlier logs are missing.
#[test]
fn a_contract_that_is_made_again_is_not_whole() {
    use Event::{Emits, Ends, EndsAndIsMade, IsCalled, IsCalledAndMade, IsMade, IsMadeBySender, IsSentTo};
    // The store begins, the token ends, and is made again.
    assert!(!is_whole(&[None, Some(Ends), Some(IsMade)], 0));
    assert!(!is_whole(&[Some(Ends), Some(IsMade)], 0));
    assert!(!is_whole(&[None, Some(EndsAndIsMade)], 0), "in one block");
    // Its logs tell that it was there.
    assert!(!is_whole(&[Some(Emits), None, Some(IsMade)], 0));
    // Anybody can call it, or send something to where nothing is yet.
    for before in [IsCalled, IsSentTo] {
        assert!(is_whole(&[Some(before), None, Some(IsMade)], 0), "{before:?}");
    }
    assert!(is_whole(&[None, Some(IsMade)], 3), "it held something");
    // What was not there before is taken to be made for the first time.
    assert!(is_whole(&[None, Some(IsMade)], 0));
    assert!(is_whole(&[Some(IsCalledAndMade)], 0));
    // It ends and is made again where the store has all of it.
    assert!(is_whole(&[Some(IsMade), Some(Ends), Some(IsMade)], 0));
    // What a transaction makes was not there before: its sender's nonce never comes again.
    assert!(is_whole(&[Some(IsSentTo), Some(IsMadeBySender)], 0));
    assert!(is_whole(&[None, Some(IsMadeBySender)], 3));
    // Nothing made it.
    assert!(!is_whole(&[None, Some(Emits)], 0));
}
