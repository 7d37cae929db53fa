//! The postings that a block calls for: what the lists are for, said again apart from the derivation.

use std::collections::HashMap;

use super::Audit;
use crate::codec::keys::{PostingKind, Term};
use crate::model::{B256, Bundle, FrameKind, TransactionTrace};
use crate::query::QueryError;

/// Ids of signatures that were looked up; of one thread.
pub(super) type Signatures = HashMap<B256, u32>;

/// Hands every (term, ordinal) that the lists must hold for a block to `item`.
pub(super) fn postings(
    audit: &Audit<'_>,
    bundle: &Bundle,
    signatures: &mut Signatures,
    item: &mut dyn FnMut(Term, u64),
) -> Result<(), QueryError> {
    let view = &audit.view;
    let number = bundle.block.number();
    if number > 0 {
        item(
            Term::account(PostingKind::AccountMined, &bundle.block.header.beneficiary),
            number,
        );
    }
    let first = view.first_transaction(number)?;
    let mut log = view.first_log(number)?;
    for ((transaction, receipt), ordinal) in bundle
        .block
        .transactions
        .iter()
        .zip(&bundle.receipts)
        .zip(first..)
    {
        item(
            Term::account(PostingKind::AccountSent, &transaction.from),
            ordinal,
        );
        let created = receipt.contract_address.filter(|_| receipt.status != Some(false));
        let mut parties = vec![transaction.from];
        for party in [transaction.to, created].into_iter().flatten() {
            if !parties.contains(&party) {
                parties.push(party);
            }
        }
        for party in &parties {
            item(Term::account(PostingKind::AccountTransactions, party), ordinal);
        }
        for entry in &receipt.logs {
            let emitter = view.log_emitter(log)?;
            item(Term::log_address(emitter), log);
            for (position, topic) in entry.topics.iter().enumerate() {
                if let Some(term) = Term::topic(position, topic) {
                    item(term, log);
                } else {
                    let id = match signatures.get(topic) {
                        Some(&id) => id,
                        // An id that is missing is a posting that is missing.
                        None => view.signature(topic)?.unwrap_or(u32::MAX),
                    };
                    signatures.insert(*topic, id);
                    item(Term::topic0(id), log);
                    item(Term::log_address_topic0(emitter, id), log);
                }
            }
            log += 1;
        }
    }
    if let Some(traces) = bundle.traces.as_deref() {
        frames(traces, view.first_frame(number)?, item);
    }
    Ok(())
}

fn frames(traces: &[TransactionTrace], first: u64, item: &mut dyn FnMut(Term, u64)) {
    let frames = traces.iter().flat_map(|trace| &trace.frames);
    for (frame, ordinal) in frames.zip(first..).filter(|(frame, _)| !frame.path.is_empty()) {
        // answers.md section 4: calls with value, creations, self-destructs.
        let moves = match frame.kind {
            FrameKind::Call => !frame.value.is_zero(),
            FrameKind::Create | FrameKind::Create2 | FrameKind::SelfDestruct => true,
            _ => false,
        };
        let (all, own) = if moves {
            (PostingKind::Internal, PostingKind::AccountInternal)
        } else {
            (PostingKind::Calls, PostingKind::AccountCalls)
        };
        item(Term::whole(all), ordinal);
        item(Term::account(own, &frame.from), ordinal);
        let undone = frame.reverted && matches!(frame.kind, FrameKind::Create | FrameKind::Create2);
        if let Some(to) = frame.to.filter(|to| !undone && *to != frame.from) {
            item(Term::account(own, &to), ordinal);
        }
    }
}
