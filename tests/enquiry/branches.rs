//! What reorganisations leave of verdicts and of what holders were told to have, with an hour between two rounds over all tokens: nothing
//! may wait for one.

use crate::support::index::until;
use crate::support::played::{Mood, TrueToken, demo_bundles, true_tokens};
use crate::{Desk, eager, fill, named};
use quarry::enquiry::EnquiryOptions;
use quarry::model::{Address, B256, BlockId, Bundle, TokenKind, TokenVerdict, U256, ZeroAddress};
use quarry::query::{KeyPart, ObservedFacts, Reader, Token};
use quarry::store::ToldBalance;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Blocks that are not final.
const TAIL: u64 = 6;
/// Blocks that an enquirer sees come in before it compares anything.
const SEEN: u64 = 5;

static BUNDLES: LazyLock<Vec<Bundle>> = LazyLock::new(demo_bundles);

fn patient() -> EnquiryOptions {
    EnquiryOptions {
        round_pause: Duration::from_secs(3_600),
        ..eager()
    }
}

fn is_named(bundle: &Bundle, address: &Address) -> bool {
    let mut logs = bundle.receipts.iter().flat_map(|receipt| &receipt.logs);
    let mut frames = bundle.traces.iter().flatten().flat_map(|trace| &trace.frames);
    let mut sent = bundle.block.transactions.iter();
    logs.any(|log| log.address == *address)
        || frames.any(|frame| frame.from == *address || frame.to == Some(*address))
        || sent.any(|sent| sent.to == Some(*address))
}

/// The last block such that neither it, nor the `before` blocks before it, nor the `after` blocks after it name a contract.
fn quiet_block(address: &Address, before: usize, after: usize) -> u64 {
    let is_quiet = |last: &usize| {
        let blocks = &BUNDLES[last - before..=last + after];
        !blocks.iter().any(|bundle| is_named(bundle, address))
    };
    let mut candidates = (100..BUNDLES.len() - after).rev();
    candidates.find(is_quiet).unwrap() as u64
}

impl Desk {
    /// Brings the blocks up to `last` in, as a branch has them: the same transactions under hashes of its own.
    async fn extend(&self, last: u64, branch: u64) {
        let head = self.store.view().head().unwrap();
        let mut blocks = BUNDLES[head.number as usize + 1..=last as usize].to_vec();
        let mut parent = head.hash;
        for bundle in &mut blocks {
            bundle.block.header.parent_hash = parent;
            let hash = U256::from_be_bytes(bundle.block.hash.0);
            bundle.block.hash = B256::from(hash.wrapping_add(U256::from(branch)));
            parent = bundle.block.hash;
        }
        self.node.reorganise(&blocks);
        fill(&self.store, blocks, last - TAIL).await;
    }

    /// Takes the last blocks off and puts others in their places, and some more.
    async fn replace(&self, depth: u64, more: u64, branch: u64) {
        let head = self.head();
        self.store.writer().unwrap().unwind(head + 1 - depth).unwrap();
        self.extend(head + more, branch).await;
    }

    /// Starts an enquirer that sees some blocks before it compares anything, so that it knows what branches have in common.
    async fn start_before(&mut self, last: u64, branch: u64) {
        self.status.set_node_head(last + 1_000);
        self.start(patient()).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        self.extend(last, branch).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        self.status.set_node_head(last);
    }

    fn reader(&self) -> Reader {
        let view = self.store.view();
        let facts = ObservedFacts::new(Arc::clone(&self.observed), Arc::clone(&view), true);
        Reader::new(view).with_token_facts(Arc::new(facts))
    }

    /// The holders of a token as they are answered, and whether the ledger says so.
    fn answered(&self, token: &Address) -> Option<(Vec<(Address, U256)>, bool)> {
        let reader = self.reader();
        let token = reader.token(token).unwrap()?;
        let page = reader
            .holders(&token, &KeyPart::skipping(0, 10_000), None)
            .unwrap();
        assert_eq!(page.total, page.holders.len() as u64);
        Some((page.holders, page.by_ledger))
    }

    /// The same as its contract has them, of whom some event named.
    fn true_holders(&self, truth: &TrueToken) -> Vec<(Address, U256)> {
        let (reader, head) = (self.reader(), self.head());
        let token = reader.token(&truth.address).unwrap().unwrap();
        let known = reader.ledger_holders_ever(&token, None, 10_000).unwrap();
        let holders = truth.balances.iter().map(|(holder, _)| *holder);
        let mut all: Vec<_> = holders
            .filter(|holder| known.contains(holder) || holder.is_zero())
            .map(|holder| (holder, truth.balance(&holder, head)))
            .filter(|(_, balance)| !balance.is_zero())
            .collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        all
    }

    /// What is not answered as it is.
    fn wrong(&self, tokens: &[TrueToken]) -> String {
        let mut wrong = String::new();
        for truth in tokens {
            let Some((answered, by_ledger)) = self.answered(&truth.address) else {
                continue;
            };
            let reader = self.reader();
            let token: Token = reader.token(&truth.address).unwrap().unwrap();
            if token.kind() == TokenKind::Erc1155 {
                continue;
            }
            let all = self.true_holders(truth);
            if answered != all || token.is_exact() != by_ledger {
                let _ = write!(wrong, "{}: {answered:?} of {all:?}, {token:?}; ", truth.name);
            }
            for (holder, balance) in all.iter().take(3) {
                let part = KeyPart::skipping(0, 100);
                let held = reader.holdings(holder, token.kind(), &part, None).unwrap();
                let mut held = held.tokens.iter();
                if !held.any(|held| held.token == truth.address && held.balance == *balance) {
                    let _ = write!(wrong, "{}: what {holder} holds; ", truth.name);
                }
            }
            if reader.token_metadata_told(&truth.address).unwrap().is_none() {
                let _ = write!(wrong, "{}: its name; ", truth.name);
            }
        }
        wrong
    }

    /// Waits until nothing is asked any more.
    async fn is_idle(&self) {
        let mut calls = 0;
        while calls != self.node.calls() {
            calls = self.node.calls();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    async fn settles(&self, what: &str, tokens: &[TrueToken]) {
        let began = Instant::now();
        loop {
            let wrong = self.wrong(tokens);
            if wrong.is_empty() {
                return;
            }
            let took = began.elapsed();
            assert!(took < Duration::from_secs(20), "{what}, in vain: {wrong}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn exact_at(block: BlockId) -> TokenVerdict {
    TokenVerdict {
        exact: true,
        zero_address: ZeroAddress::Burns,
        checked: block,
        anchor: None,
        compared: 1,
        reason: String::new(),
        supply: None,
        differed: None,
    }
}

/// A verdict that falls is of the block after which it was formed. Where that is orphaned, and no block names the token, it is formed again at
/// once: else lists would go by events until the next round over all tokens.
#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_that_fell_on_an_orphaned_block_is_formed_again() {
    let tokens = true_tokens();
    // Takes fees, rebases, mints in silence, lies; without a verdict before, and exact by one that stands.
    for (place, name) in ["toll", "tide", "hush", "liar"].into_iter().enumerate() {
        for was_exact in [false, true] {
            let truth = named(&tokens, name);
            let depth = 1 + (place as u64 + u64::from(was_exact)) % 3;
            let head = quiet_block(&truth.address, depth as usize, 1);
            let mut desk = Desk::up_to(Some((head - SEEN) as usize), Some(TAIL)).await;
            if was_exact {
                let number = head - 90;
                let hash = desk.store.view().block(number).unwrap().hash;
                let verdict = exact_at(BlockId { number, hash });
                desk.observed.put_verdict(&truth.address, &verdict);
            }
            desk.start_before(head, 0).await;
            let one = std::slice::from_ref(truth);
            let verdict = |desk: &Desk| desk.observed.verdict(&truth.address);
            until("its verdict falls", || {
                verdict(&desk).is_some_and(|verdict| !verdict.exact)
            })
            .await;
            assert_eq!(verdict(&desk).unwrap().checked.number, head);
            desk.settles(name, one).await;
            assert!(!desk.answered(&truth.address).unwrap().1, "{name}");
            desk.replace(depth, 1, 0xb).await;
            let what = format!("{name} after {depth} blocks were replaced, exact before: {was_exact}");
            desk.settles(&what, one).await;
            let counted = desk.status.tokens();
            until("all are counted", || counted.exact() + counted.inexact() >= 11).await;
            desk.stop().await;
        }
    }
}

/// However a verdict was lost, whoever moves a token has it compared on the branch that is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_verdict_is_void_is_compared_when_it_moves() {
    let tokens = true_tokens();
    let toll = named(&tokens, "toll");
    let moved = BUNDLES.iter().rposition(|bundle| is_named(bundle, &toll.address));
    let moved = moved.unwrap() as u64;
    let mut desk = Desk::up_to(Some((moved - 1 - SEEN) as usize), Some(TAIL)).await;
    desk.start_before(moved - 1, 0).await;
    desk.settles("at first", std::slice::from_ref(toll)).await;
    desk.is_idle().await;
    let orphan = BlockId {
        number: moved - 1,
        hash: B256::repeat_byte(1),
    };
    let void = TokenVerdict {
        exact: false,
        ..exact_at(orphan)
    };
    desk.observed.put_verdict(&toll.address, &void);
    assert!(!desk.wrong(std::slice::from_ref(toll)).is_empty());
    desk.extend(moved, 0).await;
    desk.settles("once it moved", std::slice::from_ref(toll)).await;
    desk.stop().await;
}

/// A token falls, is exact again as a reorganisation takes that off, and falls a second time. What its holders were said to have at first is of that
/// time: its round ends, and lists go by events until all are asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_told_before_it_was_exact_does_not_come_back() {
    let tokens = true_tokens();
    let coin = named(&tokens, "coin");
    let mut desk = Desk::with_tail(Some(TAIL)).await;
    // The four steps of a round take most of a second, however fast the machine is.
    let options = EnquiryOptions {
        per_second: 150,
        recheck_blocks: 20,
        ..patient()
    };
    let exact = |desk: &Desk, number: u64| {
        let hash = desk.store.view().block(number).unwrap().hash;
        let verdict = exact_at(BlockId { number, hash });
        desk.observed.put_verdict(&coin.address, &verdict);
    };
    let is_exact = |desk: &Desk| desk.observed.verdict(&coin.address).unwrap().exact;
    desk.node.set_mood(Mood {
        lies: Some(coin.address),
        ..Mood::default()
    });
    // Compared long ago.
    exact(&desk, 5);
    desk.start(options).await;
    until("it falls", || !is_exact(&desk)).await;
    let refreshed = |desk: &Desk| desk.observed.refreshed(&coin.address);
    until("a round is under way", || refreshed(&desk).after.is_some()).await;
    exact(&desk, desk.head());
    desk.is_idle().await;
    assert!(
        is_exact(&desk) && !refreshed(&desk).whole,
        "{:?}",
        refreshed(&desk)
    );
    desk.stop().await;

    // Where an earlier version went on with that round.
    let holders = desk.true_holders(coin);
    let (last, _) = holders.iter().max_by_key(|(holder, _)| *holder).unwrap();
    let stale = ToldBalance {
        holder: *last,
        balance: U256::from(5),
        block: 5,
    };
    desk.observed
        .put_balances(&coin.address, &[stale], Some((None, true)));
    exact(&desk, 5);
    assert!(desk.answered(&coin.address).unwrap().1);
    desk.start(options).await;
    until("it falls again", || !is_exact(&desk)).await;
    until("its holders are told of", || {
        let (told, by_ledger) = desk.answered(&coin.address).unwrap();
        let is_right = told.iter().all(|(holder, balance)| {
            let true_balance = coin.balance(holder, desk.head());
            *balance == true_balance + U256::from(u8::from(!by_ledger))
        });
        assert!(is_right, "{told:?}");
        !by_ledger
    })
    .await;
    desk.stop().await;
}

/// The life of a chain whose last blocks are replaced over and over, by its enquirer or between two of them.
async fn live(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let tokens = true_tokens();
    let end = BUNDLES.len() as u64 - 1;
    let first = random.u64(60..end - 60);
    let mut desk = Desk::up_to(Some(first as usize), Some(TAIL)).await;
    desk.start_before(first + SEEN, 0).await;
    let mut branch = 0;
    for step in 0..12 {
        let (head, ahead) = (desk.head(), random.u64(0..3));
        let last = (head + ahead).min(end);
        let mut what = format!("seed {seed}, step {step}, block {head}");
        match random.u8(0..8) {
            0..4 => {
                let depth = random.u64(1..=TAIL - 1);
                let _ = write!(what, ": {depth} blocks are replaced");
                branch += 1;
                desk.replace(depth, last - head, branch).await;
            }
            4..7 => {
                let last = (head + random.u64(1..8)).min(end);
                let _ = write!(what, ": blocks up to {last} come");
                desk.extend(last, branch).await;
            }
            _ => {
                let _ = write!(what, ": the process is another one");
                desk.stop().await;
                branch += 1;
                desk.replace(random.u64(1..TAIL), last - head, branch).await;
                desk.start_before((last + random.u64(0..SEEN)).min(end), branch)
                    .await;
            }
        }
        desk.status.set_node_head(desk.head());
        if random.bool() {
            desk.settles(&what, &tokens).await;
        } else {
            tokio::time::sleep(Duration::from_millis(random.u64(0..120))).await;
        }
    }
    desk.settles(&format!("seed {seed}, at the end"), &tokens).await;
    desk.stop().await;
}

/// `QUARRY_SEED=N` lives one of them, `QUARRY_SEEDS=N` so many.
#[tokio::test(flavor = "multi_thread")]
async fn random_branches_leave_what_contracts_say() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("QUARRY_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("QUARRY_SEEDS").unwrap_or(6),
    };
    for seed in seeds {
        live(seed).await;
    }
}
