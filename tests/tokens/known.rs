//! What a view remembers of tokens, and a side store of verdicts: never anything that is not so any more.

use std::sync::atomic::{AtomicU64, Ordering};

use quarry::codec::tokens::TokenState;
use quarry::model::token::TRANSFER;
use quarry::model::{BlockId, Log, TokenMetadata, TokenVerdict, Topics};
use quarry::query::{KeyPart, ObservedFacts, TokenFacts, Verdict, from_memory};
use quarry::store::{Observed, StoreError, ToldBalance, View};

use super::*;

/// A token by the rows of a view, past all that is remembered.
fn stored(view: &View, address: &Address) -> Option<TokenState> {
    let id = view.token(address).unwrap()?;
    Some(view.token_state(id).unwrap()).filter(|state| state.kind != TokenKind::Unknown)
}

fn known(view: &Arc<View>, address: &Address) -> Option<(TokenKind, U256)> {
    let token = Reader::new(Arc::clone(view)).token(address).unwrap()?;
    Some((token.kind(), token.supply()))
}

/// Asks twice, so that the second answer is what was remembered of the first.
fn assert_as_stored(view: &Arc<View>, addresses: &BTreeSet<Address>) -> usize {
    let mut found = 0;
    for address in addresses {
        let expected =
            stored(view, address).map(|state| (state.kind, state.minted.saturating_sub(state.to_zero)));
        for _ in 0..2 {
            assert_eq!(known(view, address), expected, "{address}");
        }
        found += usize::from(expected.is_some());
    }
    found
}

#[test]
fn first_transfers_new_blocks_and_reorgs_are_seen_at_once() {
    let bundles = chain(5, 60);
    let receipts = bundles.iter().flat_map(|bundle| &bundle.receipts);
    let addresses: BTreeSet<Address> = receipts
        .flat_map(|receipt| receipt.logs.iter().map(|log| log.address))
        .collect();
    let directory = crate::scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    let (mut appeared, mut went, mut before) = (0, 0, 0);
    let mut views = Vec::new();
    let mut see = |view: Arc<View>| {
        let now = assert_as_stored(&view, &addresses);
        appeared += usize::from(now > before);
        went += usize::from(now < before);
        before = now;
        views.push((view, now));
    };
    for at in 0..30 {
        follow(&mut writer, &bundles[at..=at]);
        see(store.view());
        // Blocks come and go.
        if at % 3 == 2 {
            writer.unwind(at as u64 - 1).unwrap();
            see(store.view());
            follow(&mut writer, &bundles[at - 1..=at]);
            see(store.view());
        }
    }
    follow(&mut writer, &bundles[30..]);
    see(store.view());
    assert!(appeared > 3 && went > 0, "{appeared} {went}");
    // A view that somebody still holds says what it said.
    for (view, count) in &views {
        assert_eq!(assert_as_stored(view, &addresses), *count);
    }
}

pub(super) fn verdict(exact: bool, checked: BlockId) -> TokenVerdict {
    TokenVerdict {
        exact,
        zero_address: ZeroAddress::Holds,
        checked,
        anchor: None,
        compared: 1,
        reason: String::new(),
        supply: None,
        differed: None,
    }
}

/// A chain in which a token mints 5 to itself.
fn minting(token: Address) -> Vec<Bundle> {
    let mut bundles = chain(5, 30);
    let minted = bundles[..20]
        .iter_mut()
        .flat_map(|bundle| &mut bundle.receipts)
        .next();
    minted.unwrap().logs.push(Log {
        address: token,
        topics: Topics::new(&[TRANSFER, B256::ZERO, token.into_word()]).unwrap(),
        data: U256::from(5).to_be_bytes_vec().into(),
    });
    bundles
}

#[test]
fn a_later_verdict_and_the_loss_of_its_block_are_seen_at_once() {
    let token = Address::repeat_byte(0xab);
    let bundles = minting(token);
    let directory = crate::scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    follow(&mut writer, &bundles);
    let observed = Arc::new(Observed::in_memory());
    let said = |view: &Arc<View>| {
        let facts = ObservedFacts::new(Arc::clone(&observed), Arc::clone(view), true);
        let reader = Reader::new(Arc::clone(view)).with_token_facts(Arc::new(facts));
        let verdicts = [(); 2].map(|()| reader.token(&token).unwrap().unwrap().verdict);
        assert_eq!(verdicts[0], verdicts[1]);
        (verdicts[0].exactness, verdicts[0].zero)
    };
    let block = |number: u64| BlockId {
        number,
        hash: bundles[number as usize].block.hash,
    };
    let old = store.view();
    assert_eq!(said(&old), (Exactness::Unjudged, ZeroAddress::Burns));
    observed.put_verdict(&token, &verdict(true, block(28)));
    assert_eq!(said(&old), (Exactness::Exact, ZeroAddress::Holds));
    observed.put_verdict(&token, &verdict(false, block(28)));
    assert_eq!(said(&old).0, Exactness::Inexact);
    // The block of the comparison goes; what the old view says stays true of it.
    writer.unwind(25).unwrap();
    let shorter = store.view();
    assert_eq!(said(&shorter).0, Exactness::Unjudged);
    assert_eq!(said(&old).0, Exactness::Inexact);
    // The same words again, on a block that stands.
    observed.put_verdict(&token, &verdict(false, block(24)));
    assert_eq!(said(&shorter).0, Exactness::Inexact);
}

/// What the zero address was sent it holds where the verdict says so, and then it is in its list of tokens, too.
#[test]
fn the_zero_address_lists_what_it_holds() {
    let [holds, burns, other] = [0xab, 0xac, 0xad].map(Address::repeat_byte);
    let mut bundles = chain(5, 30);
    let receipts = bundles[..20].iter_mut().flat_map(|bundle| &mut bundle.receipts);
    let moved = [
        (holds, Address::ZERO, other, 9),
        (burns, Address::ZERO, other, 9),
        (holds, other, Address::ZERO, 4),
        (burns, other, Address::ZERO, 4),
    ];
    for (receipt, (token, from, to, amount)) in receipts.zip(moved) {
        receipt.logs.push(Log {
            address: token,
            topics: Topics::new(&[TRANSFER, from.into_word(), to.into_word()]).unwrap(),
            data: U256::from(amount).to_be_bytes_vec().into(),
        });
    }
    let directory = crate::scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    follow(&mut writer, &bundles);
    let observed = Arc::new(Observed::in_memory());
    let held = |skip: u64| {
        let facts = ObservedFacts::new(Arc::clone(&observed), store.view(), true);
        let reader = Reader::new(store.view()).with_token_facts(Arc::new(facts));
        let part = KeyPart::skipping(skip, 10);
        let page = reader
            .holdings(&Address::ZERO, TokenKind::Erc20, &part, None)
            .unwrap();
        for held in &page.tokens {
            let token = reader.token(&held.token).unwrap().unwrap();
            assert_eq!(
                reader.token_balance(&token, &Address::ZERO).unwrap(),
                held.balance
            );
        }
        let tokens: Vec<_> = page
            .tokens
            .iter()
            .map(|held| (held.token, held.balance))
            .collect();
        (tokens, page.total)
    };
    assert_eq!(held(0), (vec![], Some(0)));
    let block = BlockId {
        number: 28,
        hash: bundles[28].block.hash,
    };
    observed.put_verdict(&holds, &verdict(true, block));
    let zero_address = ZeroAddress::Burns;
    observed.put_verdict(
        &burns,
        &TokenVerdict {
            zero_address,
            ..verdict(true, block)
        },
    );
    assert_eq!(held(0), (vec![(holds, U256::from(4))], Some(1)));
    assert_eq!(held(1), (vec![], Some(1)));
    // A token that is not exact goes by what its contract said.
    observed.put_verdict(&holds, &verdict(false, block));
    assert_eq!(held(0), (vec![], Some(0)));
}

/// Whoever reads after a verdict was written reads that one, whatever others read meanwhile.
#[test]
fn a_verdict_that_was_read_before_is_not_remembered_after_a_write() {
    let observed = Observed::in_memory();
    let token = Address::repeat_byte(9);
    let at = |compared| TokenVerdict {
        compared,
        ..verdict(true, BlockId::default())
    };
    observed.put_verdict(&token, &at(0));
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while written.load(Ordering::Acquire) < 20_000 {
                    let least = written.load(Ordering::Acquire);
                    let found = observed.verdict(&token).unwrap().compared;
                    assert!(found >= least, "{found} {least}");
                }
            });
        }
        for compared in 1..=20_000 {
            observed.put_verdict(&token, &at(compared));
            written.store(compared, Ordering::Release);
        }
    });
}

#[test]
fn what_is_not_in_memory_is_left_to_who_may_wait() {
    let bundles = chain(5, 30);
    let directory = crate::scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &bundles, 30);
    writer.settle().unwrap();
    drop(writer);
    drop(store);
    let store = open(directory.path());
    let view = store.view();
    let address = view.token_address(0).unwrap();
    let reader = Reader::new(Arc::clone(&view));
    let find = || reader.token(&address).is_ok_and(|token| token.is_some());
    assert_eq!(from_memory(find), None, "its rows are on disk");
    assert!(find());
    assert_eq!(from_memory(find), Some(true));
    // The rows are in the cache by now, also for a view that remembers nothing.
    let holder = Address::repeat_byte(1);
    let balance = |view: &View| view.holding(&holder, TokenKind::Erc20, &address).unwrap();
    let there = balance(&view);
    assert_eq!(from_memory(|| balance(&view)), Some(there));
    // A page of a mapped file may be on disk, however often it was read.
    let hash = view.block(3).unwrap().hash;
    assert_eq!(from_memory(|| view.block(3).is_ok()), None);
    assert_eq!(from_memory(|| view.known_hash(3).is_ok()), None);
    assert_eq!(view.known_hash(3).unwrap(), hash);
    assert_eq!(from_memory(|| view.known_hash(3).unwrap()), Some(hash));
}

/// Facts that stop to count once the number of holders was asked for.
#[derive(Debug)]
struct Voided(ObservedFacts);

impl TokenFacts for Voided {
    fn metadata(&self, token: &Address) -> Result<Option<TokenMetadata>, StoreError> {
        self.0.metadata(token)
    }

    fn verdict(&self, token: &Address, flagged: bool) -> Result<Verdict, StoreError> {
        self.0.verdict(token, flagged)
    }

    fn holder_count(&self, token: &Address) -> Result<Option<u64>, StoreError> {
        self.0.holder_count(token)
    }
}

/// A list of holders is the contract's or the ledger's as a whole, also where the verdict is voided while it is made.
#[test]
fn a_list_of_holders_is_of_one_word() {
    let token = Address::repeat_byte(0xab);
    let bundles = minting(token);
    let directory = crate::scratch::directory();
    let store = open(directory.path());
    follow(&mut store.writer().unwrap(), &bundles);
    let observed = Arc::new(Observed::in_memory());
    let head = store.view().head().unwrap();
    let supply = Some(U256::from(77));
    observed.put_verdict(
        &token,
        &TokenVerdict {
            supply,
            ..verdict(false, head)
        },
    );
    let told = [1, 2, 3].map(|n| ToldBalance {
        holder: Address::repeat_byte(n),
        balance: U256::from(n),
        block: head.number,
    });
    observed.put_balances(&token, &told, Some((None, true)));
    let facts = || ObservedFacts::new(Arc::clone(&observed), store.view(), true);
    let page = |facts: Arc<dyn TokenFacts>| {
        let reader = Reader::new(store.view()).with_token_facts(facts);
        let token = reader.token(&token).unwrap().unwrap();
        let page = reader.holders(&token, &KeyPart::skipping(0, 10), None).unwrap();
        (page.holders.len(), page.total, page.supply, page.by_ledger)
    };
    assert_eq!(page(Arc::new(facts())), (3, 3, Some(U256::from(77)), false));
    assert_eq!(page(Arc::new(Voided(facts()))), (1, 1, Some(U256::from(5)), true));
}
