//! What `quarry verify` holds against a node: hashes of blocks, and samples of the ledgers. A question that fails leaves its sample
//! out and is told of; what else was found stays.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;

use super::AppError;
use super::process::say;
use super::verify::{Drawn, Line, NAMED_MAX, Terminal, Unjudged};
use crate::audit::samples::{Question, Sample};
use crate::audit::{Check, Mismatch, Observer as _};
use crate::model::{B256, BlockRange, U256};
use crate::node::{Node, NodeError, Told};
use crate::store::View;
use crate::sync::SyncError;

/// Samples that are asked of the node at a time.
const ASKED_AT_ONCE: usize = 32;
/// Each question that fails was asked again for a while. After so many of them, and more than were answered, none is asked any more.
const FAILED_MAX: u64 = ASKED_AT_ONCE as u64;

/// The check of the store's blocks against the node's, and what its items are.
const BRANCH: (&str, &str) = ("block hashes against the node", "blocks");
/// What is compared with a node, and what its items are.
pub(super) const COMPARED: [(&str, &str); 3] = [
    ("native balances against the node", "accounts"),
    ("token balances against the node", "holders"),
    ("token supplies against the node", "tokens"),
];

/// A check that has looked at nothing yet.
pub(super) fn compared(named: Option<&(&'static str, &'static str)>) -> Check {
    let (name, unit) = named.copied().unwrap_or_default();
    Check {
        name,
        unit,
        ..Check::default()
    }
}

/// Holds the stored blocks and what was drawn of them against the node.
pub(super) async fn against(
    node: &Node,
    view: &View,
    range: BlockRange,
    drawn: Drawn,
    terminal: &Terminal,
    unjudged: &mut Unjudged,
) -> Vec<Line> {
    let node_head = node
        .head()
        .await
        .map_err(|error| SyncError::from(error).to_string());
    let branch = Branch {
        node,
        view,
        node_head: node_head.as_ref().copied().unwrap_or_default(),
    };
    let silent = node_head.err();
    let mut lines = vec![branch.check(range, silent.as_deref(), terminal).await];
    lines.extend(compare(&branch, drawn, silent, terminal, unjudged).await);
    lines
}

/// How a stored block stands to the node's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The node has it.
    Same,
    /// The node has another one.
    Other { stored: B256, theirs: B256 },
    /// The node has none of this number.
    Absent,
}

/// What came of asking the node about a sample.
enum Heard {
    /// It says what the ledger does, or says nothing where it need not.
    Same,
    /// It has left our branch since, or never had its end.
    Elsewhere,
    /// What it says.
    Differs(String),
}

/// The store's chain beside the node's.
struct Branch<'a> {
    node: &'a Node,
    view: &'a View,
    node_head: u64,
}

impl Branch<'_> {
    async fn standing(&self, number: u64) -> Result<Standing, AppError> {
        if number > self.node_head {
            return Ok(Standing::Absent);
        }
        let stored = self.view.block(number)?.hash;
        let theirs = self.node.block_id(number).await.map_err(SyncError::from)?;
        Ok(match theirs {
            Some(theirs) if theirs.hash == stored => Standing::Same,
            Some(theirs) => Standing::Other {
                stored,
                theirs: theirs.hash,
            },
            None => Standing::Absent,
        })
    }

    fn is_final(&self, number: u64) -> bool {
        self.view.finalized() >= Some(number)
    }

    /// Whether the node's state after block `number` says nothing of the store's: it does not have the block, or has
    /// another one that a reorg may still make ours, or ours theirs.
    async fn is_elsewhere(&self, number: u64) -> Result<bool, AppError> {
        Ok(match self.standing(number).await? {
            Standing::Same => false,
            Standing::Other { .. } => !self.is_final(number),
            Standing::Absent => true,
        })
    }

    /// Asks the node about a sample, and where it says something else than the ledger, of which branch it spoke. Both belong where
    /// all who are in line for a place in flight are polled: a place that one of the others was given while only this was
    /// waited for came back to nobody.
    async fn hear(&self, sample: &Sample) -> Result<Heard, AppError> {
        // Verdicts do not ask for a supply either: ERC-721 need not tell one. And a contract that does not exist yet, or no
        // more, has nothing to say.
        let need_not_say = sample.stored.is_zero() || matches!(sample.question, Question::Supply { .. });
        let differs = match ask(self.node, sample).await {
            Ok(Told::Value(found)) if found == sample.stored => return Ok(Heard::Same),
            Ok(Told::Nothing(_)) if need_not_say => return Ok(Heard::Same),
            Ok(Told::Value(found)) => Ok(format!("the node says {found}")),
            Ok(Told::Nothing(why)) => Ok(format!("the contract does not say: {why}")),
            Err(error) if error.is_answer() => Err(error),
            Err(error) => return Err(SyncError::from(error).into()),
        };
        if self.is_elsewhere(sample.block).await? {
            return Ok(Heard::Elsewhere);
        }
        Ok(Heard::Differs(differs.map_err(SyncError::from)?))
    }

    /// The ends of `range`, the last final block and the last block: what is below hangs on them by parents' hashes. A node that is
    /// `silent` about its head is asked nothing.
    async fn check(&self, range: BlockRange, silent: Option<&str>, terminal: &Terminal) -> Line {
        let mut line = Line::new(compared(Some(&BRANCH)), None);
        let ends = [range.first(), range.last()].into_iter();
        let pinned = [self.view.finalized(), self.view.head().map(|head| head.number)];
        let blocks: BTreeSet<u64> = ends.chain(pinned.into_iter().flatten()).collect();
        if let Some(why) = silent {
            line.fail(blocks.len() as u64, why);
            return line;
        }
        terminal.begins(line.check.name, blocks.len() as u64);
        let mut notes = Vec::new();
        for number in blocks {
            terminal.advances(1);
            let standing = match self.standing(number).await {
                Ok(standing) => standing,
                Err(error) => {
                    line.fail(1, &error.to_string());
                    continue;
                }
            };
            line.check.items += u64::from(standing != Standing::Absent);
            match standing {
                Standing::Same => {}
                Standing::Absent => notes.push(format!("the node does not have block {number}")),
                Standing::Other { .. } if !self.is_final(number) => notes.push(format!(
                    "block {number} is of another branch than the node's, and not final: the sync takes it off"
                )),
                Standing::Other { stored, theirs } => {
                    line.check.mismatches += 1;
                    terminal.mismatch(&Mismatch {
                        check: line.check.name,
                        block: Some(number),
                        text: format!(
                            "the store has {stored}, the node {theirs}: it follows another chain, or rewrote finality"
                        ),
                    });
                }
            }
        }
        line.note = (!notes.is_empty()).then(|| notes.join("; "));
        line
    }
}

/// What ledgers say against what the node says, by kind of question.
async fn compare(
    branch: &Branch<'_>,
    drawn: Drawn,
    silent: Option<String>,
    terminal: &Terminal,
    unjudged: &mut Unjudged,
) -> Vec<Line> {
    let Drawn {
        mut samples,
        native,
        tokens,
    } = drawn;
    let mut notes = [native, tokens.clone(), tokens].into_iter();
    let mut lines = COMPARED
        .each_ref()
        .map(|named| Line::new(compared(Some(named)), notes.next().flatten()));
    if silent.is_none() {
        let known = samples.len();
        // Each such question would be asked again for a while: one node behind a balancer may have what another lacks.
        samples.retain(|sample| sample.block <= branch.node_head);
        unjudged.elsewhere += (known - samples.len()) as u64;
    }
    // Samples that nothing came of yet, by kind.
    let mut left = [0_u64; COMPARED.len()];
    for sample in &samples {
        if let Some(left) = left.get_mut(kind(sample)) {
            *left += 1;
        }
    }
    let mut given_up = silent;
    if given_up.is_none() {
        terminal.begins("ledgers against the node", samples.len() as u64);
        let (mut answered, mut failed) = (0, 0);
        let asked = futures_util::stream::iter(samples)
            .map(|sample| async move { (sample, branch.hear(&sample).await) });
        let mut asked = asked.buffer_unordered(ASKED_AT_ONCE);
        while let Some((sample, heard)) = asked.next().await {
            terminal.advances(1);
            let place = kind(&sample);
            let (Some(line), Some(left)) = (lines.get_mut(place), left.get_mut(place)) else {
                continue;
            };
            *left = left.saturating_sub(1);
            match heard {
                Ok(heard) => {
                    answered += 1;
                    weigh(&sample, heard, &mut line.check, terminal, unjudged);
                }
                Err(error) => {
                    failed += 1;
                    let why = error.to_string();
                    line.fail(1, &why);
                    if failed >= FAILED_MAX && failed > answered {
                        given_up = Some(why);
                        break;
                    }
                }
            }
        }
    }
    if let Some(why) = given_up {
        for (line, left) in lines.iter_mut().zip(left).filter(|(_, left)| *left > 0) {
            line.fail(left, &why);
        }
    }
    lines.into()
}

/// The place in [`COMPARED`] of what a sample is of.
const fn kind(sample: &Sample) -> usize {
    match sample.question {
        Question::Native { .. } => 0,
        Question::Token { .. } => 1,
        Question::Supply { .. } => 2,
    }
}

/// Counts what a node said of a sample.
fn weigh(sample: &Sample, heard: Heard, check: &mut Check, terminal: &Terminal, unjudged: &mut Unjudged) {
    let found = match heard {
        Heard::Same => None,
        Heard::Elsewhere => {
            unjudged.elsewhere += 1;
            return;
        }
        Heard::Differs(found) => Some(found),
    };
    if sample.judged {
        check.items += 1;
    } else {
        unjudged.samples += 1;
    }
    let Some(found) = found else { return };
    let (token, what) = match sample.question {
        Question::Native { account } => (None, account.to_string()),
        Question::Token { token, holder } => (Some(token), format!("{holder} of {token}")),
        Question::Supply { token } => (Some(token), format!("the supply of {token}")),
    };
    let text = format!("{what}: the ledger says {}, {found}", sample.stored);
    if let Some(token) = token.filter(|_| !sample.judged) {
        unjudged.differing += 1;
        let differing = unjudged.tokens.entry(token).or_default();
        *differing += 1;
        if *differing == 1 && unjudged.tokens.len() <= NAMED_MAX {
            say(&format!("not judged yet: block {}: {text}", sample.block));
        }
        return;
    }
    check.mismatches += 1;
    terminal.mismatch(&Mismatch {
        check: check.name,
        block: Some(sample.block),
        text,
    });
}

async fn ask(node: &Node, sample: &Sample) -> Result<Told<U256>, NodeError> {
    match sample.question {
        Question::Native { account } => node.balance(account, sample.block).await.map(Told::Value),
        Question::Token { token, holder } => node.token_balance(token, holder, sample.block).await,
        Question::Supply { token } => node.token_supply(token, sample.block).await,
    }
}
