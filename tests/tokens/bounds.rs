//! What a question about tokens costs at most, whatever contracts and accounts it is about.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quarry::metrics::visits;
use quarry::model::token::{TRANSFER, TRANSFER_SINGLE};
use quarry::model::{BlockId, Log, TokenMetadata, TokenVerdict, Topics};
use quarry::query::{KeyPart, ObservedFacts, QueryError, TokenFacts, Verdict};
use quarry::store::{Observed, StoreError, ToldBalance};

use super::known::verdict;
use super::*;

/// A store of some blocks, the first of which with transactions have these logs.
fn filled(logs: impl IntoIterator<Item = Log>) -> (tempfile::TempDir, Arc<Store>, BlockId) {
    let mut bundles = chain(5, 30);
    let receipts = bundles[..20].iter_mut().flat_map(|bundle| &mut bundle.receipts);
    let receipt = receipts.last().unwrap();
    receipt.logs.extend(logs);
    let directory = crate::scratch::directory();
    let store = open(directory.path());
    follow(&mut store.writer().unwrap(), &bundles);
    let last = BlockId {
        number: 28,
        hash: bundles[28].block.hash,
    };
    (directory, store, last)
}

fn coins(token: Address, from: Address, to: Address) -> Log {
    Log {
        address: token,
        topics: Topics::new(&[TRANSFER, from.into_word(), to.into_word()]).unwrap(),
        data: U256::from(1).to_be_bytes_vec().into(),
    }
}

fn id(token: Address, to: Address, id: u64) -> Log {
    let id = B256::from(U256::from(id));
    Log {
        address: token,
        topics: Topics::new(&[TRANSFER, B256::ZERO, to.into_word(), id]).unwrap(),
        data: Default::default(),
    }
}

fn units(token: Address, to: Address, id: u64) -> Log {
    Log {
        address: token,
        topics: Topics::new(&[TRANSFER_SINGLE, B256::ZERO, B256::ZERO, to.into_word()]).unwrap(),
        data: [U256::from(id), U256::from(3)]
            .map(|word| word.to_be_bytes::<32>())
            .concat()
            .into(),
    }
}

fn token(n: u64) -> Address {
    Address::from_word(B256::from(U256::from(0x00ab_0000 + n)))
}

/// However short the lists of an account's tokens are, they are many together.
#[test]
fn the_time_for_units_by_id_is_looked_at_for_each_token() {
    let who = Address::repeat_byte(0x21);
    let (_directory, store, _) = filled([units(token(1), who, 7), units(token(2), who, 8)]);
    let reader = Reader::new(store.view());
    let part = KeyPart::skipping(0, 10);
    let ask = |only: Option<&Address>, deadline| reader.multi_holdings(&who, only, &part, deadline);
    let page = ask(None, None).unwrap();
    assert_eq!((page.ids.len(), page.total), (2, Some(2)));
    for only in [None, Some(&token(1))] {
        let late = ask(only, Some(Instant::now()));
        assert!(matches!(late, Err(QueryError::TimedOut)), "{late:?}");
    }
}

/// Transfers by other standards are counted in one pass over the logs that may be some, where those are few and there is time.
#[test]
fn transfers_of_two_standards_are_read_once_or_not_at_all() {
    let who = Address::repeat_byte(0x21);
    let many = 10_001;
    let logs = (0..40).map(|n| match n {
        0..10 => units(token(1), who, n),
        10..30 => coins(token(1), Address::ZERO, who),
        _ => id(token(1), who, n),
    });
    let of_coins = (0..40).map(|n| match n {
        0..10 => coins(token(2), Address::ZERO, who),
        10..30 => units(token(2), who, n),
        _ => id(token(2), who, n),
    });
    let of_many = (0..many + 10).map(|n| match n {
        0..10 => units(token(3), who, n),
        _ => coins(token(3), Address::ZERO, who),
    });
    let odd = Log {
        data: vec![1].into(),
        ..coins(token(1), Address::ZERO, who)
    };
    let logs = logs.chain(of_coins).chain(of_many).chain([odd]);
    let (_directory, store, _) = filled(logs);
    let reader = Reader::new(store.view());
    let story = |n: u64| {
        let token = reader.token(&token(n)).unwrap().unwrap();
        assert!(token.is_mixed());
        let _ = visits::take();
        let story = reader.token_story(&token).unwrap();
        (story.transfers, visits::take().rows)
    };
    // One that begins as a transfer is none.
    assert_eq!(story(1), (40, 31));
    assert_eq!(story(2), (40, 40));
    // What its logs begin with says about how many there are.
    assert_eq!(story(3), (many + 10, 0));
}

/// Facts that count what is asked of them.
#[derive(Debug)]
struct Counted {
    facts: ObservedFacts,
    verdicts: AtomicU64,
}

impl TokenFacts for Counted {
    fn metadata(&self, token: &Address) -> Result<Option<TokenMetadata>, StoreError> {
        self.facts.metadata(token)
    }

    fn verdict(&self, token: &Address, flagged: bool) -> Result<Verdict, StoreError> {
        self.verdicts.fetch_add(1, Ordering::Relaxed);
        self.facts.verdict(token, flagged)
    }

    fn balance(&self, token: &Address, holder: &Address) -> Result<Option<U256>, StoreError> {
        self.facts.balance(token, holder)
    }

    fn held_by(
        &self,
        holder: &Address,
        after: Option<&Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        self.facts.held_by(holder, after, limit)
    }

    fn held_by_zero(&self) -> Result<Arc<[Address]>, StoreError> {
        self.facts.held_by_zero()
    }
}

/// What the zero address holds is looked at as far as the page goes, and as it is counted.
#[test]
fn a_page_of_what_the_zero_address_holds_does_not_look_at_all_verdicts() {
    const TOKENS: u64 = 3_000;
    let logs = (0..TOKENS).flat_map(|n| {
        let who = Address::repeat_byte(0x21);
        [
            coins(token(n), Address::ZERO, who),
            coins(token(n), who, Address::ZERO),
        ]
    });
    let (_directory, store, last) = filled(logs);
    let observed = Arc::new(Observed::in_memory());
    for n in 0..TOKENS {
        let zero_address = match n % 10 {
            0 => ZeroAddress::Burns,
            _ => ZeroAddress::Holds,
        };
        // One of a few is not exact, and told of: of none in the ledger's rows, as the zero address has none.
        let verdict = TokenVerdict {
            zero_address,
            ..verdict(n % 3 != 0, last)
        };
        observed.put_verdict(&token(n), &verdict);
        if !verdict.exact {
            let told = ToldBalance {
                holder: Address::ZERO,
                balance: U256::from(n + 5),
                block: 28,
            };
            observed.put_balances(&token(n), &[told], Some((None, true)));
        }
    }
    let facts = || {
        Arc::new(Counted {
            facts: ObservedFacts::new(Arc::clone(&observed), store.view(), true),
            verdicts: AtomicU64::new(0),
        })
    };
    let expected: Vec<(Address, U256)> = (0..TOKENS)
        .filter(|n| n % 3 == 0 || n % 10 != 0)
        .map(|n| (token(n), U256::from(if n % 3 == 0 { n + 5 } else { 1 })))
        .collect();
    let ask = |part: &KeyPart<_>| {
        let facts = facts();
        let reader = Reader::new(store.view()).with_token_facts(Arc::clone(&facts) as Arc<dyn TokenFacts>);
        let _ = visits::take();
        let page = reader
            .holdings(&Address::ZERO, TokenKind::Erc20, part, None)
            .unwrap();
        let rows = visits::take().rows;
        let tokens: Vec<_> = page
            .tokens
            .iter()
            .map(|held| (held.token, held.balance))
            .collect();
        (tokens, page, facts.verdicts.load(Ordering::Relaxed), rows)
    };
    // All of it, which reads the verdicts for once.
    let (found, page, ..) = ask(&KeyPart::skipping(0, 10_000));
    assert_eq!(found, expected);
    assert_eq!(page.total, Some(expected.len() as u64));
    // One of them: a thousand are counted to say whether they are few.
    let (found, page, verdicts, rows) = ask(&KeyPart::skipping(0, 1));
    assert_eq!((found, page.total), (expected[..1].to_vec(), None));
    assert!(verdicts < 1_600 && rows < 1_100, "{verdicts} {rows}");
    // By cursor from there on, and the last ones.
    let mut part = KeyPart::skipping(0, 700);
    let mut walked = Vec::new();
    loop {
        let (found, page, verdicts, _) = ask(&part);
        walked.extend(found);
        assert!(verdicts < 1_600 + 1_300, "{verdicts}");
        part.after = page.next;
        if part.after.is_none() {
            break;
        }
    }
    assert_eq!(walked, expected);
    let (found, ..) = ask(&KeyPart::skipping(expected.len() as u64, 5));
    assert_eq!(found, []);
    // Time is looked at on the way.
    let reader = Reader::new(store.view()).with_token_facts(facts());
    let late = Some(Instant::now());
    let part = KeyPart::skipping(2_000, 5);
    let page = reader.holdings(&Address::ZERO, TokenKind::Erc20, &part, late);
    assert!(matches!(page, Err(QueryError::TimedOut)), "{page:?}");
}

/// The list of what contracts told of has no ranks: a page beyond its end is known to be empty by the number of holders.
#[test]
fn a_page_beyond_the_holders_that_were_told_of_reads_none() {
    let who = Address::repeat_byte(0x21);
    let (_directory, store, last) = filled([coins(token(1), Address::ZERO, who)]);
    let observed = Arc::new(Observed::in_memory());
    observed.put_verdict(
        &token(1),
        &TokenVerdict {
            supply: Some(U256::from(77)),
            ..verdict(false, last)
        },
    );
    let told: Vec<ToldBalance> = (1..=500)
        .map(|n| ToldBalance {
            holder: token(n),
            balance: U256::from(n),
            block: 28,
        })
        .collect();
    observed.put_balances(&token(1), &told, Some((None, true)));
    let facts = ObservedFacts::new(Arc::clone(&observed), store.view(), true);
    let reader = Reader::new(store.view()).with_token_facts(Arc::new(facts));
    let token = reader.token(&token(1)).unwrap().unwrap();
    let ask = |skip: u64| {
        let _ = visits::take();
        let page = reader
            .holders(&token, &KeyPart::skipping(skip, 10), None)
            .unwrap();
        assert_eq!(
            (page.total, page.supply, page.by_ledger),
            (500, Some(U256::from(77)), false)
        );
        (page.holders.len(), visits::take().rows, page.next.is_some())
    };
    assert_eq!(ask(0), (10, 11, true));
    assert_eq!(ask(499).0, 1);
    assert_eq!(ask(500), (0, 0, false));
    assert_eq!(ask(1 << 40), (0, 0, false));
    // Time is looked at on the way to a page, and none is lost on what is near.
    let late = Some(Instant::now());
    let page = |skip: u64| reader.holders(&token, &KeyPart::skipping(skip, 10), late);
    assert_eq!(page(0).unwrap().holders.len(), 10);
    assert!(matches!(page(499), Err(QueryError::TimedOut)));
    let part = KeyPart {
        after: page(0).unwrap().next,
        ..KeyPart::skipping(499, 10)
    };
    assert_eq!(reader.holders(&token, &part, late).unwrap().holders.len(), 10);
}
