//! The ledger of native balances against the node, while the tip is followed.
//!
//! A block that does not add up ends the ledger when it is derived. What adds up and is wrong all the same (a chain that
//! gives its base fees to somebody or pays withdrawals in another coin, a development node whose balances are set by hand) only the node shows: a few accounts
//! of each new block are asked for, some that the ledger has anywhere, and at first those that some chains give their fees to. What differs twice makes a verdict under
//! [`NATIVE_COIN`], and the node answers for native balances from then on. A node may have been wrong itself for a moment, so
//! the account that differed is asked for again some blocks later, also at the block where it differed, with more others than usual:
//! where nothing differs any more, the ledger answers again.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::address;

use super::Tools;
use super::asking::By;
use super::perform::Failure;
use crate::model::{Address, BlockId, NATIVE_COIN, TokenVerdict, U256, ZeroAddress};
use crate::query::{Balance, QueryError, Reader, is_on};
use crate::shutdown::Shutdown;

/// How often new blocks are looked for.
const TICK: Duration = Duration::from_secs(1);
/// Accounts drawn from the whole ledger: at first, and with each block after.
const DRAWN_FIRST: usize = 16;
const DRAWN: usize = 1;
/// Who gets fees that are burnt elsewhere, on chains that are known for it: no frame shows it, and nothing else of a block
/// names them. Elsewhere they hold what the ledger says of them.
const FEE_TAKERS: [Address; 8] = [
    // Base fees, fees of the layer below and of the operator: OP Stack.
    address!("4200000000000000000000000000000000000019"),
    address!("420000000000000000000000000000000000001a"),
    address!("420000000000000000000000000000000000001b"),
    // Gnosis and its test network.
    address!("6bbe78ee9e474842dbd4ab4987b3cefe88426a92"),
    address!("1559000000000000000000000000000000000000"),
    // Polygon, until and since its block 50,523,000.
    address!("70bca57f4579f58670ab2d18ef16e02c17553c38"),
    address!("7a8ed27f4c30512326878652d20fc85727401854"),
    // Celo.
    address!("cd437749e43a154c07f3553504c68fbfd56b8778"),
];
/// Balances are compared while the index is at most so far behind its node: states of the past may be pruned there.
const LAG_MAX: u64 = 64;
/// What differed is compared again after so many blocks.
const AGAIN_AFTER: u64 = 50;
/// So often is the same head compared where nothing comes of it: each time takes questions from others.
const TRIES_MAX: u32 = 5;

/// What the ledger says of an account after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    account: Address,
    balance: U256,
}

/// Compares until the end is asked for.
pub(super) async fn run(tools: Arc<Tools>, mut shutdown: Shutdown) {
    let mut last: Option<BlockId> = None;
    let mut drawn = DRAWN_FIRST;
    // What is known to differ is compared again from this block on.
    let mut again_from = 0;
    let (mut tried, mut tries) = (None, 0);
    while shutdown.unless(tokio::time::sleep(TICK)).await.is_some() {
        let Some(head) = due(&tools, last, again_from) else {
            continue;
        };
        if tried != Some(head) {
            (tried, tries) = (Some(head), 0);
        }
        if tries == TRIES_MAX {
            continue;
        }
        tries += 1;
        let compared = shutdown.unless(Box::pin(compare(&tools, head, drawn))).await;
        let is_told = match compared {
            None => return,
            Some(Ok(())) => {
                (last, drawn) = (Some(head), DRAWN);
                true
            }
            Some(Err(Failure::Store(error))) => {
                tracing::warn!(%error, "native balances cannot be compared");
                true
            }
            // What the node does not tell now it may tell of the next block.
            Some(Err(Failure::Node(error))) => {
                tracing::debug!(%error, "native balances are not compared");
                error.is_answer()
            }
            // Nothing was told of the head: it is compared at a later tick.
            Some(Err(Failure::Moved | Failure::Behind)) => false,
        };
        // A node that has lost an old state is not asked for it with each block.
        if is_told {
            again_from = head.number.saturating_add(AGAIN_AFTER);
        }
    }
}

/// The head, where it is new, near the node's, and what the ledger says of it not known to be wrong.
fn due(tools: &Tools, last: Option<BlockId>, again_from: u64) -> Option<BlockId> {
    let view = tools.store.view();
    let head = view.head().filter(|&head| last != Some(head))?;
    let far = tools.status.node_head()?.saturating_sub(head.number);
    let known = tools.observed.native_verdict();
    let wrong = known.is_some_and(|known| {
        let from = known.checked.number.saturating_add(AGAIN_AFTER).max(again_from);
        !known.exact && head.number < from && is_on(&view, known.checked)
    });
    let kept = view.checkpoint().native.fault.is_none() && view.has_traces();
    (far <= LAG_MAX && kept && !wrong).then_some(head)
}

async fn compare(tools: &Arc<Tools>, head: BlockId, drawn: usize) -> Result<(), Failure> {
    // Whose balance differed long ago, or at a block that is no more, is asked for again, and more than usual beside it.
    let known = tools.observed.native_verdict().filter(|known| !known.exact);
    let (suspect, drawn) = match &known {
        Some(known) => (suspect(&known.reason), DRAWN_FIRST),
        None => (None, drawn),
    };
    let samples = tools
        .read(move |reader, _| samples(reader, head, suspect, drawn))
        .await?;
    if samples.is_empty() {
        // The head is no more.
        return Err(Failure::Moved);
    }
    for &sample in &samples {
        let told = tools.native_balance(sample.account, head, By::Hash).await;
        let told = tools.of_head(told, By::Hash)?;
        if told == sample.balance {
            continue;
        }
        let by_hash = tools.hashes.are_taken();
        // A node on another branch, or one that came back in between, would condemn any ledger.
        if !tools.still(head).await? {
            return Err(Failure::Moved);
        }
        let again = tools.native_balance(sample.account, head, By::Number).await?;
        if !tools.still(head).await? {
            return Err(Failure::Moved);
        }
        if again != told {
            if by_hash && again == sample.balance {
                tools.hashes.doubt();
            }
            return Err(Failure::Moved);
        }
        let reason = format!(
            "{:?} holds {told} after block {} by the node, {} by the ledger",
            sample.account, head.number, sample.balance
        );
        if known.is_none() {
            tracing::warn!(reason, "native balances are asked of the node from now on");
        }
        keep(tools, head, samples.len(), Some(reason));
        return Ok(());
    }
    if let Some(known) = &known {
        if !differed_no_more(tools, known).await? {
            return Ok(());
        }
        tracing::info!(block = head.number, "native balances are the ledger's again");
    }
    keep(tools, head, samples.len(), None);
    Ok(())
}

/// Whether the node now says of the block at which a balance differed what the ledger says, or that block is no more.
async fn differed_no_more(tools: &Arc<Tools>, known: &TokenVerdict) -> Result<bool, Failure> {
    let (at, account) = (known.checked, suspect(&known.reason));
    let Some(account) = account.filter(|_| is_on(&tools.store.view(), at)) else {
        return Ok(true);
    };
    let ours = tools
        .read(move |reader, _| reader.balance(&account, at.number))
        .await?;
    match ours {
        // Either way of asking for it will do: some nodes do not look at hashes.
        Balance::Exact(ours) => Ok(tools.native_balance(account, at, By::Hash).await? == ours
            || tools.native_balance(account, at, By::Number).await? == ours),
        _ => Ok(true),
    }
}

/// The account of a reason, which begins with it.
fn suspect(reason: &str) -> Option<Address> {
    reason.split(' ').next()?.parse().ok()
}

/// Who has most to do with the head: its fee recipient, the sides of a transaction, whom a withdrawal or an uncle brought
/// something; and some of anywhere.
fn samples(
    reader: &Reader,
    head: BlockId,
    suspect: Option<Address>,
    drawn: usize,
) -> Result<Vec<Sample>, QueryError> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut add = |account: Address, balance: U256| {
        let sample = Sample { account, balance };
        if !samples.contains(&sample) {
            samples.push(sample);
        }
    };
    let Some(bundle) = reader.block(head.number, true)? else {
        return Ok(samples);
    };
    if !is_on(reader.view(), head) {
        return Ok(samples);
    }
    let mut near = vec![bundle.block.header.beneficiary];
    near.extend(suspect);
    if drawn == DRAWN_FIRST {
        near.extend(FEE_TAKERS);
    }
    let block = &bundle.block;
    if let Some(transaction) = fastrand::choice(&block.transactions) {
        near.push(transaction.from);
        near.extend(transaction.to);
    }
    let withdrawals = block.withdrawals.as_deref().unwrap_or_default().iter();
    near.extend(fastrand::choice(withdrawals.map(|withdrawal| withdrawal.address)));
    near.extend(fastrand::choice(
        block.uncle_headers.iter().map(|uncle| uncle.beneficiary),
    ));
    for account in near {
        if let Balance::Exact(balance) = reader.balance(&account, head.number)? {
            add(account, balance);
        }
    }
    for _ in 0..drawn {
        let at = Address::from(std::array::from_fn(|_| fastrand::u8(..)));
        if let Some((account, balance)) = reader.some_native_balance(&at, head.number)? {
            add(account, balance);
        }
    }
    Ok(samples)
}

/// Keeps what came of a comparison. That nothing differed is kept once: it changes no answer.
fn keep(tools: &Tools, head: BlockId, compared: usize, differs: Option<String>) {
    let known = tools.observed.native_verdict();
    let exact = differs.is_none();
    if exact && known.as_ref().is_some_and(|known| known.exact) {
        return;
    }
    let verdict = TokenVerdict {
        exact,
        zero_address: ZeroAddress::default(),
        checked: head,
        anchor: None,
        compared: compared as u64 + known.map_or(0, |known| known.compared),
        reason: differs.unwrap_or_default(),
        supply: None,
        differed: None,
    };
    tools.observed.put_verdict(&NATIVE_COIN, &verdict);
}
