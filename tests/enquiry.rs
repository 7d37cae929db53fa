//! The enquirer against the demo chain's tokens, with a stand-in for its node: verdicts, names, refreshed balances,
//! and what a node that fails, another branch and changed minds do to them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "enquiry/branches.rs"]
mod branches;
#[path = "enquiry/defaults.rs"]
mod defaults;
#[path = "enquiry/names.rs"]
mod names;
mod support;

use quarry::enquiry::{Enquirer, EnquiryOptions};
use quarry::model::{
    Address, B256, BlockId, BlockRange, Bundle, Difference, TokenKind, TokenMetadata, TokenVerdict,
    ToldMetadata, U256, ZeroAddress,
};
use quarry::node::{Node, NodeConfig};
use quarry::query::{Exactness, KeyPart, ObservedFacts, Reader, TokenFacts};
use quarry::shutdown::{Trigger, pair};
use quarry::status::ChainStatus;
use quarry::store::{Observed, OpenOptions, Store, ToldBalance};
use quarry::sync::{ChainRules, Pipeline, SyncError};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use support::index::{final_up_to, until};
use support::played::{Mood, PlayedFeed, PlayedNode, TrueToken, demo_bundles, demo_json, true_tokens};

const CHAIN_ID: u64 = 31_337;

/// The demo's store, its node and an enquirer.
struct Desk {
    node: PlayedNode,
    store: Arc<Store>,
    observed: Arc<Observed>,
    status: Arc<ChainStatus>,
    running: Option<(Trigger, tokio::task::JoinHandle<()>)>,
    _directory: tempfile::TempDir,
}

/// Brings blocks into a store, those up to `finalized` as final ones.
async fn fill(store: &Arc<Store>, bundles: Vec<Bundle>, finalized: u64) {
    let identity = store.identity();
    let first = identity.first_block;
    let pipeline = Pipeline {
        rules: ChainRules::new(CHAIN_ID, identity.genesis_hash.into(), None, first, false),
        final_blocks: final_up_to(&bundles, finalized),
        batch_bytes_max: 8 << 20,
    };
    let (_trigger, mut shutdown) = pair();
    let source = futures_util::stream::iter(bundles.into_iter().map(Ok::<_, SyncError>));
    let (_, result) = pipeline.run(store.writer().unwrap(), source, &mut shutdown).await;
    result.unwrap();
}

impl Desk {
    async fn new() -> Self {
        Self::with_tail(None).await
    }

    /// So many blocks at the end are not final.
    async fn with_tail(tail: Option<u64>) -> Self {
        Self::up_to(None, tail).await
    }

    /// The store has the blocks up to this one only, the node all of them.
    async fn up_to(last: Option<usize>, tail: Option<u64>) -> Self {
        Self::between(0, last, tail).await
    }

    /// The same where the store begins with a later block.
    async fn between(first: usize, last: Option<usize>, tail: Option<u64>) -> Self {
        let directory = support::scratch::directory();
        let mut bundles: Vec<Bundle> = demo_bundles();
        let node = PlayedNode::start(&bundles);
        bundles.truncate(last.map_or(usize::MAX, |last| last + 1));
        let genesis = bundles[0].block.hash;
        let last = bundles.len() as u64 - 1;
        bundles.drain(..first);
        let options = OpenOptions {
            cache_bytes: 8 << 20,
            memtable_bytes: 8 << 20,
            ..OpenOptions::new(directory.path())
        };
        let store = Store::open_or_create(&options, CHAIN_ID, genesis, Some(first as u64)).unwrap();
        fill(&store, bundles, tail.map_or(u64::MAX, |tail| last - tail)).await;
        let observed = Observed::open(directory.path(), &store.identity(), false);
        Self {
            node,
            store,
            observed,
            status: Arc::default(),
            running: None,
            _directory: directory,
        }
    }

    /// Lets an enquirer run that does not spare the node.
    async fn start(&mut self, options: EnquiryOptions) {
        self.start_with(options, Vec::new()).await;
    }

    /// The same where these are configured as price feeds.
    async fn start_with(&mut self, options: EnquiryOptions, feeds: Vec<Address>) {
        let config = NodeConfig {
            attempts_max: 2,
            backoff_first: Duration::from_millis(2),
            backoff_max: Duration::from_millis(10),
            ..NodeConfig::new(self.node.url())
        };
        let node = Node::connect(config).await.unwrap();
        let enquirer = Enquirer::new(
            node,
            Arc::clone(&self.store),
            Arc::clone(&self.observed),
            Arc::clone(&self.status),
            options,
        );
        let enquirer = enquirer.with_feeds(feeds);
        let (trigger, shutdown) = pair();
        self.running = Some((trigger, tokio::spawn(enquirer.run(shutdown))));
    }

    async fn stop(&mut self) {
        let (trigger, task) = self.running.take().unwrap();
        trigger.fire();
        tokio::time::timeout(Duration::from_secs(5), task)
            .await
            .expect("it ends when asked")
            .unwrap();
    }

    fn head(&self) -> u64 {
        self.store.view().head().unwrap().number
    }

    /// Replaces the last blocks by others with the same transactions.
    async fn reorganise(&self, count: usize) {
        let mut bundles = demo_bundles();
        let first = bundles.len() - count;
        let mut branch = bundles.split_off(first);
        let mut parent = bundles.last().unwrap().block.hash;
        for bundle in &mut branch {
            bundle.block.header.parent_hash = parent;
            bundle.block.hash = B256::from(U256::from(0xb) + U256::from_be_bytes(bundle.block.hash.0));
            parent = bundle.block.hash;
        }
        self.node.reorganise(&branch);
        self.store.writer().unwrap().unwind(first as u64).unwrap();
        fill(&self.store, branch, first as u64 - 1).await;
    }

    fn name(&self, token: &Address) -> Option<String> {
        let facts = ObservedFacts::new(Arc::clone(&self.observed), self.store.view(), true);
        facts.metadata(token).unwrap()?.name
    }

    fn exactness(&self, token: &Address, node: bool) -> Exactness {
        let facts = ObservedFacts::new(Arc::clone(&self.observed), self.store.view(), node);
        facts.verdict(token, false).unwrap().exactness
    }
}

fn eager() -> EnquiryOptions {
    EnquiryOptions {
        tick: Duration::from_millis(20),
        recheck_after: Duration::from_millis(50),
        round_pause: Duration::from_millis(200),
        ..EnquiryOptions::new(20_000)
    }
}

fn named<'a>(tokens: &'a [TrueToken], name: &str) -> &'a TrueToken {
    tokens.iter().find(|token| token.name == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_token_of_the_demo_is_judged_rightly() {
    let mut desk = Desk::new().await;
    let tokens = true_tokens();
    assert_eq!(desk.exactness(&tokens[0].address, true), Exactness::Unjudged);
    assert_eq!(desk.exactness(&tokens[0].address, false), Exactness::Exact);
    desk.start(eager()).await;
    let manifest = demo_json("chain.json")["tokens"].clone();
    let facts = demo_json("tokens.json");
    let manifest = manifest.as_object().unwrap();
    let whole = |desk: &Desk| {
        manifest.values().all(|token| {
            let address: Address = token["address"].as_str().unwrap().parse().unwrap();
            let told = desk.observed.metadata(&address).is_some();
            told && match desk.observed.verdict(&address) {
                None => false,
                Some(verdict) => verdict.exact || desk.observed.refreshed(&address).whole,
            }
        })
    };
    until("all tokens are judged", || whole(&desk)).await;
    desk.stop().await;
    assert_eq!(desk.status.tokens().errors.load(Ordering::Relaxed), 0);

    for (name, token) in manifest {
        let address: Address = token["address"].as_str().unwrap().parse().unwrap();
        let verdict = desk.observed.verdict(&address).unwrap();
        let exact = token["exact"].as_bool().unwrap_or(true);
        assert_eq!(verdict.exact, exact, "{name}: {}", verdict.reason);
        assert_eq!(exact, verdict.reason.is_empty(), "{name}");
        let holds = token["zeroAddressHolds"].as_bool().unwrap_or(false);
        assert_eq!(verdict.zero_address == ZeroAddress::Holds, holds, "{name}");
        // What ships for the demo is what its contracts say.
        let shipped = facts.as_array().unwrap();
        let shipped = shipped.iter().find(|fact| fact["address"] == token["address"]);
        let told = desk.observed.metadata(&address).unwrap();
        assert_eq!(told.anchor, desk.store.view().head(), "{name}");
        let metadata = told.metadata;
        match shipped {
            Some(fact) => {
                let text = |key: &str| fact[key].as_str().map(str::to_owned);
                let expected = TokenMetadata {
                    name: text("name"),
                    symbol: text("symbol"),
                    decimals: fact["decimals"].as_u64().map(|number| number as u8),
                };
                assert_eq!(metadata, expected, "{name}");
                assert_eq!(fact["zeroAddressHolds"], Value::from(holds), "{name}");
            }
            None => assert_eq!(metadata, TokenMetadata::default(), "{name}"),
        }
        if exact {
            continue;
        }
        // Holders by the contract, those that no event ever named apart.
        let truth = named(&true_tokens(), name).clone();
        let held = desk.observed.holders(&address, 0, 10_000).unwrap();
        // An account that only ever sent what it never had is in no ledger.
        let reader = Reader::new(desk.store.view());
        let token = reader.token(&address).unwrap().unwrap();
        let known = reader.ledger_holders_ever(&token, None, 10_000).unwrap();
        let mut expected: Vec<(Address, U256)> = truth
            .balances
            .iter()
            .map(|(holder, _)| (*holder, truth.balance(holder, desk.head())))
            .filter(|(holder, balance)| !balance.is_zero() && known.contains(holder))
            .collect();
        expected.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        assert!(10 <= expected.len(), "{name}");
        assert_eq!(held, expected, "{name}");
        assert_eq!(verdict.supply, truth.supply(desk.head()), "{name}");
    }
    let judged = desk.status.tokens().exact() + desk.status.tokens().inexact();
    assert_eq!(judged, manifest.len() as u64);
}

/// A node that fails puts everything off and condemns nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_fails_is_asked_again() {
    let mut desk = Desk::new().await;
    let coin = named(&true_tokens(), "coin").address;
    desk.node.set_mood(Mood {
        fails: true,
        ..Mood::default()
    });
    desk.start(eager()).await;
    let errors = |desk: &Desk| desk.status.tokens().errors.load(Ordering::Relaxed);
    until("the node has failed", || 3 <= errors(&desk)).await;
    assert_eq!(
        (desk.observed.verdict(&coin), desk.observed.metadata(&coin)),
        (None, None)
    );
    desk.node.set_mood(Mood::default());
    until("it is judged", || desk.observed.verdict(&coin).is_some()).await;
    assert!(desk.observed.verdict(&coin).unwrap().exact);
    desk.stop().await;
}

/// What does not agree on another branch says nothing about a token.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_on_another_branch_condemns_nothing() {
    let mut desk = Desk::new().await;
    let tokens = true_tokens();
    let (coin, toll) = (named(&tokens, "coin").address, named(&tokens, "toll").address);
    desk.node.set_mood(Mood {
        other_branch: true,
        lies: Some(coin),
        ..Mood::default()
    });
    desk.start(eager()).await;
    let dollar = named(&tokens, "dollar").address;
    until("others are judged", || desk.observed.verdict(&dollar).is_some()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(desk.observed.verdict(&coin), None);
    assert_eq!(desk.observed.verdict(&toll), None);
    desk.node.set_mood(Mood::default());
    until("both are judged", || {
        desk.observed.verdict(&coin).is_some() && desk.observed.verdict(&toll).is_some()
    })
    .await;
    assert!(desk.observed.verdict(&coin).unwrap().exact);
    assert!(!desk.observed.verdict(&toll).unwrap().exact);
    desk.stop().await;
}

/// An exact token is compared again; once it fails it stays so while that block says what it said. One that returns megabytes is not exact either.
#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_falls_once_and_for_all() {
    let mut desk = Desk::new().await;
    let tokens = true_tokens();
    let (coin, dollar) = (named(&tokens, "coin").address, named(&tokens, "dollar").address);
    let options = EnquiryOptions {
        recheck_blocks: 0,
        ..eager()
    };
    desk.node.set_mood(Mood {
        floods: Some(dollar),
        ..Mood::default()
    });
    desk.start(options).await;
    let verdict = |desk: &Desk, token: &Address| desk.observed.verdict(token);
    until("they are judged", || {
        verdict(&desk, &coin).is_some() && verdict(&desk, &dollar).is_some()
    })
    .await;
    assert!(verdict(&desk, &coin).unwrap().exact);
    let flooded = verdict(&desk, &dollar).unwrap();
    assert!(
        !flooded.exact && flooded.reason.contains("characters"),
        "{}",
        flooded.reason
    );
    assert_eq!(desk.exactness(&coin, true), Exactness::Exact);
    desk.stop().await;
    // As if it was compared at an earlier block: the next round finds it stale.
    let mut earlier = verdict(&desk, &coin).unwrap();
    let view = desk.store.view();
    earlier.checked = BlockId {
        number: 5,
        hash: view.block(5).unwrap().hash,
    };
    desk.observed.put_verdict(&coin, &earlier);
    desk.node.set_mood(Mood {
        lies: Some(coin),
        ..Mood::default()
    });
    desk.start(options).await;
    until("its verdict falls", || !verdict(&desk, &coin).unwrap().exact).await;
    until("its holders are refreshed", || {
        desk.observed.refreshed(&coin).whole
    })
    .await;
    let holders = desk.observed.holders(&coin, 0, 3).unwrap();
    let truth = named(&tokens, "coin");
    for (holder, balance) in holders {
        assert_eq!(balance, truth.balance(&holder, desk.head()) + U256::from(1));
    }
    assert_eq!(desk.exactness(&coin, true), Exactness::Inexact);
    // It is right now, and everywhere but where it was not.
    let differed = verdict(&desk, &coin).unwrap().differed.unwrap();
    desk.node.set_mood(Mood {
        lies: Some(coin),
        lies_at: Some(differed.at.number),
        ..Mood::default()
    });
    let trials = |desk: &Desk| verdict(desk, &coin).unwrap().differed.map(|found| found.trials);
    until("it is tried on", || trials(&desk) > Some(differed.trials + 5)).await;
    assert!(!verdict(&desk, &coin).unwrap().exact);
    desk.stop().await;
}

/// A rebase names no holder: who was called may have changed what all of them have, and the next round is an hour away.
#[tokio::test(flavor = "multi_thread")]
async fn balances_that_change_without_an_event_are_asked_for() {
    const REBASE: usize = 297;
    let mut desk = Desk::up_to(Some(REBASE - 1), Some(20)).await;
    let tokens = true_tokens();
    let tide = named(&tokens, "tide");
    desk.start(EnquiryOptions {
        round_pause: Duration::from_secs(3600),
        ..eager()
    })
    .await;
    let agree = |desk: &Desk| {
        let told = desk.observed.holders(&tide.address, 0, 100).unwrap_or_default();
        let held = |(holder, _): &&(Address, _)| !tide.balance(holder, desk.head()).is_zero();
        let right = |(holder, balance): &(Address, U256)| tide.balance(holder, desk.head()) == *balance;
        told.iter().all(right) && told.len() == tide.balances.iter().filter(held).count()
    };
    until("all holders are known", || {
        desk.observed.refreshed(&tide.address).whole && agree(&desk)
    })
    .await;
    let bundles = demo_bundles();
    // The block of the rebase alone first, and all that come after it.
    for blocks in [&bundles[REBASE..=REBASE], &bundles[REBASE + 1..]] {
        fill(&desk.store, blocks.to_vec(), REBASE as u64 - 20).await;
        until("they are known as they are now", || agree(&desk)).await;
    }
    desk.stop().await;
    // A process that ended in the middle of a round, before the rebase: the next one does not go on behind the holders that were asked for then.
    let (first, _) = tide.balances.iter().min_by_key(|(holder, _)| *holder).unwrap();
    let of_before = ToldBalance {
        holder: *first,
        balance: U256::from(1),
        block: REBASE as u64 - 1,
    };
    let half = (Some(Address::repeat_byte(0x80)), false);
    desk.observed
        .put_balances(&tide.address, &[of_before], Some(half));
    assert!(!agree(&desk));
    desk.start(EnquiryOptions {
        round_pause: Duration::from_secs(3600),
        ..eager()
    })
    .await;
    until("they are known after a restart", || agree(&desk)).await;
    desk.stop().await;
    assert!(!desk.observed.verdict(&tide.address).unwrap().exact);
}

/// A proxy tells the decimals of its present aggregator; those before it may have had others.
#[tokio::test(flavor = "multi_thread")]
async fn aggregators_behind_a_proxy_have_decimals_of_their_own() {
    let mut desk = Desk::new().await;
    let [proxy, eight, eighteen, mute, late] = [1, 2, 3, 4, 5].map(Address::repeat_byte);
    let feed = |address, decimals, aggregators: &[Address]| PlayedFeed {
        address,
        decimals,
        aggregators: aggregators.to_vec(),
    };
    desk.node.set_feeds(vec![
        feed(proxy, Some(6), &[eight, eighteen, mute]),
        feed(eight, Some(8), &[]),
        feed(eighteen, Some(18), &[]),
        feed(mute, None, &[]),
    ]);
    desk.start_with(eager(), vec![proxy]).await;
    let facts = |of: &Address| desk.observed.feed(of);
    until("the proxy is known", || facts(&proxy).is_some()).await;
    let decimals = |of: &Address| facts(of).map(|facts| (facts.decimals, facts.aggregators.len()));
    // By then all of them were asked.
    assert_eq!(decimals(&proxy), Some((Some(6), 3)));
    assert_eq!(decimals(&eight), Some((Some(8), 0)));
    assert_eq!(decimals(&eighteen), Some((Some(18), 0)));
    assert_eq!(decimals(&mute), None);
    // One that is configured itself keeps what it stands for.
    desk.node.set_feeds(vec![
        feed(proxy, Some(6), &[eighteen]),
        feed(eighteen, Some(18), &[late]),
    ]);
    desk.stop().await;
    desk.start_with(eager(), vec![eighteen, proxy]).await;
    until("it is known", || {
        desk.observed
            .feed(&eighteen)
            .is_some_and(|facts| facts.aggregators == [late])
    })
    .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let facts = desk.observed.feed(&eighteen).unwrap();
    assert_eq!((facts.decimals, facts.aggregators), (Some(18), vec![late]));
    desk.stop().await;
}

/// A verdict whose blocks are no longer of the chain is none.
#[tokio::test(flavor = "multi_thread")]
async fn verdicts_of_orphaned_blocks_are_void() {
    let mut desk = Desk::new().await;
    let coin = named(&true_tokens(), "coin").address;
    let view = desk.store.view();
    let on_chain = |number: u64| BlockId {
        number,
        hash: view.block(number).unwrap().hash,
    };
    let orphan = BlockId {
        number: 7,
        hash: B256::repeat_byte(1),
    };
    let beyond = BlockId {
        number: desk.head() + 1,
        ..orphan
    };
    let put = |exact, checked, anchor| {
        let verdict = TokenVerdict {
            exact,
            zero_address: ZeroAddress::Burns,
            checked,
            anchor,
            compared: 1,
            reason: String::new(),
            supply: Some(U256::from(5)),
            differed: None,
        };
        desk.observed.put_verdict(&coin, &verdict);
    };
    let holder = Address::repeat_byte(0x77);
    let told = ToldBalance {
        holder,
        balance: U256::from(4),
        block: 7,
    };
    desk.observed.put_balances(&coin, &[told], Some((None, true)));
    for (exact, checked, anchor, expected) in [
        (true, on_chain(7), None, Exactness::Exact),
        (false, on_chain(7), None, Exactness::Inexact),
        (true, orphan, None, Exactness::Unjudged),
        (false, orphan, None, Exactness::Unjudged),
        (true, beyond, None, Exactness::Unjudged),
        (true, orphan, Some(on_chain(3)), Exactness::Exact),
        (false, orphan, Some(on_chain(3)), Exactness::Inexact),
        (true, orphan, Some(orphan), Exactness::Unjudged),
    ] {
        put(exact, checked, anchor);
        assert_eq!(
            desk.exactness(&coin, true),
            expected,
            "{exact} {checked:?} {anchor:?}"
        );
        // What the contract told counts as long as the verdict by which it was asked does: another branch may have another contract there.
        let facts = ObservedFacts::new(Arc::clone(&desk.observed), desk.store.view(), true);
        let is_told = expected == Exactness::Inexact;
        let some = |number: u64| is_told.then_some(U256::from(number));
        let held = facts.holders(&coin, None, 0, 10, None).unwrap();
        assert_eq!(
            held,
            some(4).map(|balance| vec![(holder, balance)]),
            "{checked:?}"
        );
        assert_eq!(facts.holder_count(&coin).unwrap(), is_told.then_some(1));
        assert_eq!(facts.balance(&coin, &holder).unwrap(), some(4));
        let supply = facts.supply(&coin).unwrap();
        assert_eq!(supply.is_some(), expected != Exactness::Unjudged, "{checked:?}");
    }
    // A token that the ledger doubts is not exact, whatever was compared.
    put(true, on_chain(7), None);
    let facts = ObservedFacts::new(Arc::clone(&desk.observed), desk.store.view(), true);
    assert_eq!(facts.verdict(&coin, true).unwrap().exactness, Exactness::Inexact);
    // The enquirer judges anew what is void, also what was not exact there.
    put(false, orphan, None);
    desk.start(eager()).await;
    until("it is judged again", || {
        desk.observed.verdict(&coin).is_some_and(|verdict| verdict.exact)
    })
    .await;
    desk.stop().await;
    let reader = Reader::new(desk.store.view());
    assert!(reader.token(&coin).unwrap().is_some());
}

fn word(text: &str) -> TokenMetadata {
    TokenMetadata {
        name: Some(text.to_owned()),
        ..TokenMetadata::default()
    }
}

/// What was told on another branch is not known on this one, and asked again: when blocks are replaced, and by an enquirer
/// that starts after that. What was kept without its block is trusted.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_another_branch_are_asked_again() {
    let mut desk = Desk::with_tail(Some(20)).await;
    let tokens = true_tokens();
    let (coin, dollar) = (named(&tokens, "coin").address, named(&tokens, "dollar").address);
    desk.observed.put_metadata(&dollar, &word("Kept").into());
    desk.start(eager()).await;
    until("it is asked", || desk.name(&coin).is_some()).await;
    let first = desk.name(&coin).unwrap();
    desk.node.set_mood(Mood {
        renamed: Some(coin),
        ..Mood::default()
    });
    desk.reorganise(3).await;
    until("it is asked again", || {
        desk.name(&coin).as_deref() == Some("Other")
    })
    .await;
    assert_ne!(first, "Other");
    desk.stop().await;
    // As an enquirer finds it that was not there while blocks were replaced.
    let orphan = BlockId {
        number: 7,
        hash: B256::repeat_byte(1),
    };
    let old = ToldMetadata {
        metadata: word("Old"),
        anchor: Some(orphan),
    };
    desk.observed.put_metadata(&coin, &old);
    assert_eq!(desk.name(&coin), None);
    desk.start(eager()).await;
    until("it is asked after a restart", || {
        desk.name(&coin).as_deref() == Some("Other")
    })
    .await;
    desk.stop().await;
    assert_eq!(desk.name(&dollar).as_deref(), Some("Kept"));
}

/// For a node that lags there is no contract yet: that it tells nothing is not kept, whether or not it takes hashes.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_lags_does_not_take_names_away() {
    for no_hashes in [false, true] {
        let mut desk = Desk::new().await;
        let tokens = true_tokens();
        // Made less than 64 blocks before the head, or long ago.
        let addresses: Vec<Address> = tokens.iter().map(|token| token.address).collect();
        desk.node.set_mood(Mood {
            lags: true,
            no_hashes,
            ..Mood::default()
        });
        desk.start(eager()).await;
        let asked = desk.node.calls();
        until("names were asked for", || {
            asked + 3 * addresses.len() as u64 <= desk.node.calls()
        })
        .await;
        desk.node.set_mood(Mood {
            no_hashes,
            ..Mood::default()
        });
        let coin = named(&tokens, "coin").address;
        until("they are asked again", || desk.name(&coin).is_some()).await;
        desk.stop().await;
    }
}

/// Calls come from one branch, blocks from another. By hash nothing is learnt of the other; by number tokens are condemned,
/// and cleared when what differed is looked at again.
#[tokio::test(flavor = "multi_thread")]
async fn two_branches_behind_one_address_condemn_nothing_for_good() {
    let tokens = true_tokens();
    let coin = named(&tokens, "coin").address;
    let options = EnquiryOptions {
        recheck_blocks: 0,
        retry_blocks: 0,
        ..eager()
    };
    let verdict = |desk: &Desk| desk.observed.verdict(&coin);
    let split = Mood {
        split: true,
        ..Mood::default()
    };
    // A node that is known to take hashes.
    let mut desk = Desk::new().await;
    desk.start(options).await;
    until("it is judged", || verdict(&desk).is_some()).await;
    assert!(desk.node.calls_by_hash() > 0);
    let mut earlier = verdict(&desk).unwrap();
    earlier.checked = BlockId {
        number: 5,
        hash: desk.store.view().block(5).unwrap().hash,
    };
    desk.node.set_mood(split);
    let asked = desk.node.calls_by_hash();
    // It is found stale, and asked about in vain.
    desk.observed.put_verdict(&coin, &earlier);
    until("it is asked by hash", || asked + 5 < desk.node.calls_by_hash()).await;
    assert_eq!(verdict(&desk), Some(earlier.clone()));
    desk.node.set_mood(Mood::default());
    until("it is compared again", || {
        verdict(&desk).unwrap().checked != earlier.checked
    })
    .await;
    assert!(verdict(&desk).unwrap().exact);
    desk.stop().await;

    // One that takes numbers only.
    let desk = &mut Desk::new().await;
    let numbers = Mood {
        no_hashes: true,
        ..Mood::default()
    };
    desk.node.set_mood(Mood {
        no_hashes: true,
        ..split
    });
    let waits = EnquiryOptions {
        retry_blocks: 10_000,
        recheck_blocks: 10_000,
        ..options
    };
    desk.start(waits).await;
    until("it is condemned", || {
        verdict(desk).is_some_and(|verdict| !verdict.exact)
    })
    .await;
    let condemned = verdict(desk).unwrap();
    let differed = condemned.differed.unwrap();
    assert_eq!((differed.trials, condemned.supply.is_some()), (0, true));
    until("its holders are refreshed", || {
        desk.observed.refreshed(&coin).whole
    })
    .await;
    desk.stop().await;
    // Nobody looks again while the node is as it was; then it is cleared.
    desk.start(options).await;
    until("it is looked at again", || {
        verdict(desk)
            .unwrap()
            .differed
            .is_some_and(|again| 2 < again.trials)
    })
    .await;
    desk.node.set_mood(numbers);
    until("it is exact", || verdict(desk).unwrap().exact).await;
    let cleared = verdict(desk).unwrap();
    assert_eq!(
        (cleared.differed, cleared.reason.as_str(), cleared.supply),
        (None, "", None)
    );
    assert!(
        !desk.observed.refreshed(&coin).whole,
        "what was told of its holders is old"
    );
    desk.stop().await;
}

/// A token that once was not what its events say stays so, though it is now: by the block where it differed, and where
/// the node has that no more.
#[tokio::test(flavor = "multi_thread")]
async fn what_differs_at_its_block_again_stays_condemned() {
    let tokens = true_tokens();
    let toll = named(&tokens, "toll").address;
    let coin = named(&tokens, "coin").address;
    let mut desk = Desk::new().await;
    let options = EnquiryOptions {
        retry_blocks: 0,
        ..eager()
    };
    let head = desk.head();
    // All that was said of the coin in the past is right now; at one block it was not.
    let holder = named(&tokens, "coin").balances[0].0;
    let at = |number: u64| BlockId {
        number,
        hash: desk.store.view().block(number).unwrap().hash,
    };
    let condemned = TokenVerdict {
        exact: false,
        zero_address: ZeroAddress::Burns,
        checked: at(head),
        anchor: Some(at(head - 10)),
        compared: 1,
        reason: "something".to_owned(),
        supply: None,
        differed: Some(Difference {
            at: at(head - 10),
            holder: Some(holder),
            trials: 0,
        }),
    };
    desk.observed.put_verdict(&coin, &condemned);
    desk.node.set_mood(Mood {
        states_from: head - 9,
        ..Mood::default()
    });
    desk.start(options).await;
    let trials = |desk: &Desk, token: &Address| {
        let verdict = desk.observed.verdict(token)?;
        assert!(!verdict.exact, "{}", verdict.reason);
        Some(verdict.differed?.trials)
    };
    until("both are tried", || {
        trials(&desk, &coin) > Some(5) && trials(&desk, &toll) > Some(5)
    })
    .await;
    // The state is there again, and says what it said.
    desk.node.set_mood(Mood::default());
    let verdict = |desk: &Desk, token: &Address| desk.observed.verdict(token).unwrap();
    until("the coin is cleared", || verdict(&desk, &coin).exact).await;
    let tried = trials(&desk, &toll);
    until("the other is tried on", || tried < trials(&desk, &toll)).await;
    desk.stop().await;
}

/// A node that takes hashes and looks at its newest block is found out, and asked by number.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_look_at_hashes_is_asked_by_number() {
    let mut desk = Desk::new().await;
    let tokens = true_tokens();
    desk.node.set_mood(Mood {
        blind_to_hashes: true,
        ..Mood::default()
    });
    desk.start(eager()).await;
    for token in ["coin", "dollar"] {
        let token = named(&tokens, token).address;
        until("it is judged", || desk.observed.verdict(&token).is_some()).await;
        let verdict = desk.observed.verdict(&token).unwrap();
        assert!(verdict.exact, "{}", verdict.reason);
    }
    desk.stop().await;
}

/// What holders were said to have after blocks that are no more is asked again at once, whether or not an event of those
/// blocks names them: `balanceOf` may have said there what it never said on this branch.
#[tokio::test(flavor = "multi_thread")]
async fn holders_told_of_on_another_branch_are_asked_again() {
    let mut desk = Desk::with_tail(Some(20)).await;
    let toll = named(&true_tokens(), "toll").clone();
    // The enquirer sees the last blocks come in, so that it knows the one that the branches have in common.
    let last = desk.head();
    let newest = demo_bundles().split_off(last as usize - 4);
    desk.store.writer().unwrap().unwind(last - 4).unwrap();
    desk.status.set_node_head(last + 1_000);
    desk.node.set_mood(Mood {
        lies: Some(toll.address),
        ..Mood::default()
    });
    desk.start(EnquiryOptions {
        round_pause: Duration::from_secs(3_600),
        ..eager()
    })
    .await;
    until("it has looked", || {
        desk.observed.metadata(&toll.address).is_some()
    })
    .await;
    fill(&desk.store, newest, last - 20).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    desk.status.set_node_head(last);
    let holders = |desk: &Desk| desk.observed.holders(&toll.address, 0, 10_000).unwrap();
    let off = |desk: &Desk| {
        let held = holders(desk);
        let off = held
            .iter()
            .filter(|(holder, told)| toll.balance(holder, last) != *told);
        off.count()
    };
    until("its holders are told of", || {
        desk.observed.refreshed(&toll.address).whole
    })
    .await;
    // Another comparison begins another round: nothing may be under way that asks for all anyway.
    let mut calls = 0;
    while calls != desk.node.calls() {
        calls = desk.node.calls();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(10 <= holders(&desk).len());
    assert_eq!(off(&desk), holders(&desk).len(), "all are one too much");
    desk.node.set_mood(Mood::default());
    desk.reorganise(3).await;
    until("they are asked again", || off(&desk) == 0).await;
    desk.stop().await;
}

/// A token that is judged on one branch and found to be the same on another one: what its holders were told to have is of the first, maybe of another
/// contract, and counts for nothing until all were asked for again; and what was answered meanwhile is known to be out of date.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_branch_told_does_not_come_back_with_the_verdict() {
    let mut desk = Desk::with_tail(Some(20)).await;
    let toll = named(&true_tokens(), "toll").address;
    let (number, orphan) = (desk.head(), B256::repeat_byte(1));
    let checked = BlockId { number, hash: orphan };
    let verdict = TokenVerdict {
        exact: false,
        zero_address: ZeroAddress::Burns,
        checked,
        anchor: None,
        compared: 1,
        reason: "another contract".to_owned(),
        supply: Some(U256::from(5)),
        differed: None,
    };
    desk.observed.put_verdict(&toll, &verdict);
    let stranger = Address::repeat_byte(0x77);
    let told = ToldBalance {
        holder: stranger,
        balance: U256::from(4),
        block: number,
    };
    desk.observed.put_balances(&toll, &[told], Some((None, true)));
    let holders = |desk: &Desk| {
        let facts = ObservedFacts::new(Arc::clone(&desk.observed), desk.store.view(), true);
        facts.holders(&toll, None, 0, 10_000, None).unwrap()
    };
    assert_eq!(holders(&desk), None);
    let before = desk.observed.revision();
    desk.start(eager()).await;
    until("it is judged, and its holders are told of", || {
        let held = holders(&desk);
        // Whenever there are told holders, nobody is among them who was told of there alone.
        let is_back = |held: &Vec<(Address, U256)>| held.iter().any(|(holder, _)| *holder == stranger);
        assert!(!held.as_ref().is_some_and(is_back), "{held:?}");
        held.is_some()
    })
    .await;
    desk.stop().await;
    assert_ne!(desk.observed.revision(), before);
    assert!(!desk.observed.verdict(&toll).unwrap().exact);
}

/// An account that only orphaned blocks named is no holder: where they were orphaned between two processes, before this one had seen
/// enough of the chain, and where the contract has something to say of it all the same.
#[tokio::test(flavor = "multi_thread")]
async fn holders_that_no_block_names_any_more_are_left_out() {
    let mut desk = Desk::with_tail(Some(20)).await;
    let toll = named(&true_tokens(), "toll").clone();
    desk.status.set_node_head(desk.head());
    desk.start(eager()).await;
    until("its holders are told of", || {
        desk.observed.refreshed(&toll.address).whole
    })
    .await;
    desk.stop().await;
    let stranger = Address::repeat_byte(0x77);
    let tell = |desk: &Desk| {
        let told = ToldBalance {
            holder: stranger,
            balance: U256::from(4950),
            block: desk.head(),
        };
        desk.observed.put_balances(&toll.address, &[told], None);
    };
    let holders = |desk: &Desk| {
        let held = desk.observed.holders(&toll.address, 0, 10_000).unwrap();
        let count = desk.observed.refreshed(&toll.address).holders;
        assert_eq!(held.len() as u64, count);
        held
    };
    let is_gone = |desk: &Desk| !holders(desk).iter().any(|(holder, _)| *holder == stranger);
    let before = holders(&desk);
    tell(&desk);
    assert!(!is_gone(&desk));
    let pause = EnquiryOptions {
        round_pause: Duration::from_secs(3_600),
        ..eager()
    };
    desk.start(pause).await;
    until("the next process leaves it out", || is_gone(&desk)).await;
    assert_eq!(holders(&desk), before);
    assert_eq!(
        desk.observed.held_by(&stranger, &Address::ZERO, 10).unwrap(),
        Vec::<Address>::new()
    );
    // This process saw nothing below the head that it began with.
    tell(&desk);
    desk.node.set_mood(Mood {
        lies: Some(toll.address),
        ..Mood::default()
    });
    desk.reorganise(3).await;
    until("it is left out again", || is_gone(&desk)).await;
    desk.stop().await;
}

/// A holder of whom the contract does not tell stays in all lists with what events say; the lists agree.
#[tokio::test(flavor = "multi_thread")]
async fn holders_that_are_not_told_of_have_what_events_say() {
    let tokens = true_tokens();
    let toll = named(&tokens, "toll").clone();
    let largest = |desk: &Desk| {
        let reader = Reader::new(desk.store.view());
        let token = reader.token(&toll.address).unwrap().unwrap();
        let found = reader.ledger_largest(&token, 3).unwrap();
        (found[1].holder, found[1].balance)
    };
    for all in [false, true] {
        let mut desk = Desk::new().await;
        let (holder, by_events) = largest(&desk);
        let told = toll.balance(&holder, desk.head());
        assert_ne!(told, by_events, "events say something else");
        desk.node.set_mood(Mood {
            mute: Some((toll.address, (!all).then_some(holder))),
            ..Mood::default()
        });
        desk.start(eager()).await;
        until("its holders are asked for", || {
            desk.observed.refreshed(&toll.address).whole
        })
        .await;
        desk.stop().await;
        let page_of = |desk: &Desk| {
            let view = desk.store.view();
            let facts = ObservedFacts::new(Arc::clone(&desk.observed), Arc::clone(&view), true);
            let reader = Reader::new(view).with_token_facts(Arc::new(facts));
            let token = reader.token(&toll.address).unwrap().unwrap();
            let page = reader
                .holders(&token, &KeyPart::skipping(0, 10_000), None)
                .unwrap();
            assert!(!page.by_ledger);
            (reader, page)
        };
        let value = |desk: &Desk| {
            let (_, page) = page_of(desk);
            let of_holder = page.holders.iter().find(|(other, _)| *other == holder);
            of_holder.map(|(_, balance)| *balance)
        };
        // Nobody asks meanwhile: two lists are read one after the other.
        let listed = |desk: &Desk| {
            let (reader, page) = page_of(desk);
            assert_eq!(page.total, page.holders.len() as u64);
            for (holder, balance) in &page.holders {
                let part = KeyPart::skipping(0, 1_000);
                let held = reader.holdings(holder, TokenKind::Erc20, &part, None).unwrap();
                let held = held.tokens.into_iter().find(|held| held.token == toll.address);
                assert_eq!(held.map(|held| held.balance), Some(*balance), "{holder}");
            }
            (page.holders.len(), value(desk))
        };
        let (count, listed_with) = listed(&desk);
        assert_eq!(listed_with, Some(by_events));
        assert!(10 <= count);
        // It tells after all.
        desk.node.set_mood(Mood::default());
        desk.start(eager()).await;
        until("it is asked again", || value(&desk) == Some(told)).await;
        desk.stop().await;
        assert_eq!(listed(&desk).1, Some(told));
    }
}

/// What a node says that has not got the contract yet takes nothing away that was told: by number nobody knows who answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_lags_does_not_take_balances_away() {
    let mut desk = Desk::new().await;
    let toll = named(&true_tokens(), "toll").clone();
    let no_hashes = true;
    desk.node.set_mood(Mood {
        no_hashes,
        ..Mood::default()
    });
    desk.start(eager()).await;
    until("its holders are asked for", || {
        desk.observed.refreshed(&toll.address).whole
    })
    .await;
    let told = desk.observed.holders(&toll.address, 0, 10_000).unwrap();
    desk.node.set_mood(Mood {
        no_hashes,
        lags: true,
        ..Mood::default()
    });
    let asked = desk.node.calls();
    until("they are asked again", || asked + 400 < desk.node.calls()).await;
    desk.stop().await;
    assert_eq!(desk.observed.holders(&toll.address, 0, 10_000).unwrap(), told);
}

/// The node has an error for one holder whenever it is asked, by number and by hash: the others are asked for all the same, when they move and in
/// rounds, and that one has what events say.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_of_whom_the_node_never_tells_holds_nobody_up() {
    const LAST: usize = 340;
    let toll = named(&true_tokens(), "toll").clone();
    for no_hashes in [false, true] {
        let mut desk = Desk::up_to(Some(LAST), Some(20)).await;
        let by_ledger = |desk: &Desk| {
            let reader = Reader::new(desk.store.view());
            let token = reader.token(&toll.address).unwrap().unwrap();
            let known = reader.ledger_holders_ever(&token, None, 10_000).unwrap();
            (reader, token, known)
        };
        let (_, _, known) = by_ledger(&desk);
        let moves = |holder: &Address| {
            let steps = toll.balances.iter().find(|(other, _)| other == holder);
            let last = steps.and_then(|(_, steps)| steps.last());
            last.is_some_and(|(block, _)| (LAST as u64) < *block)
        };
        let moving: Vec<_> = known.iter().filter(|&holder| moves(holder)).copied().collect();
        assert!(3 <= moving.len(), "{moving:?}");
        let refused = moving[0];
        let checked = desk.store.view().head().unwrap();
        let known_by_then = TokenVerdict {
            exact: false,
            zero_address: ZeroAddress::Burns,
            checked,
            anchor: None,
            compared: 1,
            reason: "it takes a fee".to_owned(),
            supply: None,
            differed: None,
        };
        desk.observed.put_verdict(&toll.address, &known_by_then);
        desk.node.set_mood(Mood {
            no_hashes,
            refuses: Some((toll.address, Some(refused))),
            ..Mood::default()
        });
        desk.start(EnquiryOptions {
            round_pause: Duration::from_secs(3_600),
            ..eager()
        })
        .await;
        let told = |desk: &Desk, holder: &Address| {
            let told = desk.observed.balance(&toll.address, holder);
            told.map_or(U256::ZERO, |(balance, _)| balance)
        };
        let agree = |desk: &Desk| {
            let (_, _, known) = by_ledger(desk);
            let mut others = known.iter().filter(|&holder| *holder != refused);
            others.all(|holder| told(desk, holder) == toll.balance(holder, desk.head()))
        };
        until("all holders were asked for", || {
            desk.observed.refreshed(&toll.address).whole && agree(&desk)
        })
        .await;
        let by_events = |desk: &Desk| {
            let (reader, token, _) = by_ledger(desk);
            reader.balance_by_events(&token, &refused, desk.head()).unwrap()
        };
        assert_eq!(told(&desk, &refused), by_events(&desk));
        fill(&desk.store, demo_bundles().split_off(LAST + 1), LAST as u64 - 20).await;
        until("those that moved are asked for", || agree(&desk)).await;
        if !no_hashes {
            until("the one moved too", || told(&desk, &refused) == by_events(&desk)).await;
        }
        desk.stop().await;
    }
}

/// What moved, or was called, while no enquirer looked is compared once one does; what did nothing is not.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_moved_unseen_are_compared() {
    const REBASE: u64 = 297;
    let mut desk = Desk::up_to(Some(REBASE as usize), Some(20)).await;
    let tokens = true_tokens();
    let (coin, tide) = (named(&tokens, "coin").address, named(&tokens, "tide").address);
    let compared_at = |desk: &Desk, token: &Address, number: u64| {
        let hash = desk.store.view().block(number).unwrap().hash;
        let verdict = TokenVerdict {
            exact: true,
            zero_address: ZeroAddress::Burns,
            checked: BlockId { number, hash },
            anchor: None,
            compared: 1,
            reason: String::new(),
            supply: None,
            differed: None,
        };
        desk.observed.put_verdict(token, &verdict);
        verdict
    };
    let options = EnquiryOptions {
        round_pause: Duration::from_secs(3_600),
        ..eager()
    };
    desk.node.set_mood(Mood {
        lies: Some(coin),
        ..Mood::default()
    });
    // Its balances changed in the last block, by a call without an event.
    compared_at(&desk, &tide, REBASE - 1);
    let idle = compared_at(&desk, &coin, REBASE);
    desk.start(options).await;
    let is_exact = |desk: &Desk, token: &Address| desk.observed.verdict(token).unwrap().exact;
    until("a call is seen", || !is_exact(&desk, &tide)).await;
    until("all are judged", || {
        let mut all = tokens.iter();
        all.all(|token| desk.observed.verdict(&token.address).is_some())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    desk.stop().await;
    assert_eq!(desk.observed.verdict(&coin), Some(idle));
    // It moved since.
    compared_at(&desk, &coin, 100);
    desk.start(options).await;
    until("an event is seen", || !is_exact(&desk, &coin)).await;
    desk.stop().await;
}

/// A comparison that the node fails again and again is made in a later round, whatever the verdict says.
#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_that_was_given_up_comes_again() {
    let mut desk = Desk::new().await;
    let coin = named(&true_tokens(), "coin").address;
    let hash = desk.store.view().block(100).unwrap().hash;
    desk.observed.put_verdict(
        &coin,
        &TokenVerdict {
            exact: true,
            zero_address: ZeroAddress::Burns,
            checked: BlockId { number: 100, hash },
            anchor: None,
            compared: 1,
            reason: String::new(),
            supply: None,
            differed: None,
        },
    );
    let no_hashes = true;
    desk.node.set_mood(Mood {
        no_hashes,
        refuses: Some((coin, None)),
        ..Mood::default()
    });
    desk.start(eager()).await;
    let errors = |desk: &Desk| desk.status.tokens().errors.load(Ordering::Relaxed);
    until("it was asked about in vain", || 3 <= errors(&desk)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(desk.observed.verdict(&coin).unwrap().checked.number, 100);
    desk.node.set_mood(Mood {
        no_hashes,
        ..Mood::default()
    });
    until("it is compared", || {
        desk.observed.verdict(&coin).unwrap().checked.number == desk.head()
    })
    .await;
    desk.stop().await;
}

/// Whoever spoke or was called in blocks was active there, and nobody else.
#[tokio::test]
async fn who_spoke_or_was_called_was_active() {
    let desk = Desk::new().await;
    let bundles = demo_bundles();
    let reader = Reader::new(desk.store.view());
    for TrueToken { address, name, .. } in true_tokens() {
        // By an event or a call that changes something, and by anything at all.
        let (mut surely, mut maybe) = (vec![], vec![]);
        for bundle in &bundles {
            let number = bundle.block.number();
            let logs = bundle.receipts.iter().flat_map(|receipt| &receipt.logs);
            let spoke = logs.map(|log| log.address).any(|emitter| emitter == address);
            let called = reader.callees(BlockRange::new(number, number).unwrap()).unwrap();
            let is_sure = spoke || called.contains(&address);
            if is_sure {
                surely.push(number);
            }
            let frames = bundle.traces.iter().flatten().flat_map(|trace| &trace.frames);
            let mut named = frames.flat_map(|frame| [Some(frame.from), frame.to]);
            let mut sent = bundle.block.transactions.iter().map(|sent| sent.to);
            if is_sure || named.any(|one| one == Some(address)) || sent.any(|to| to == Some(address)) {
                maybe.push(number);
            }
        }
        assert!(3 <= surely.len(), "{name}");
        for before in 0..desk.head() {
            for until in [before + 1, before + 4, desk.head()] {
                let lies_in = |block: &u64| before < *block && *block <= until;
                let active = reader.was_active(&address, (before, until)).unwrap();
                let (sure, possible) = (surely.iter().any(lies_in), maybe.iter().any(lies_in));
                assert!(
                    active >= sure && active <= possible,
                    "{name}: {before} to {until}"
                );
            }
        }
        assert!(!reader.was_active(&address, (desk.head(), desk.head())).unwrap());
    }
}
