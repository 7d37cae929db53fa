//! The postings that a block calls for: what the lists are for, said again apart from the derivation.

use std::collections::HashMap;

use super::Audit;
use crate::codec::keys::{PostingKind, Term};
use crate::model::{
    Address, B256, Bundle, FrameKind, Log, TokenEvent, TokenKind, TransactionTrace, created_contract,
};
use crate::query::QueryError;
use crate::store::{Direction, PostingCursor, View};

/// Since when terms are dense, of those that are.
pub(super) type Dense = HashMap<Term, u64>;

/// What is known of terms; of one thread.
pub(super) struct Known<'d> {
    signatures: HashMap<B256, u32>,
    dense: &'d Dense,
}

/// Signatures that a thread remembers at a time.
const KNOWN_MAX: usize = 1 << 16;

impl<'d> Known<'d> {
    pub(super) fn new(dense: &'d Dense) -> Self {
        Self {
            signatures: HashMap::new(),
            dense,
        }
    }

    fn signature(&mut self, view: &View, topic: &B256) -> Result<u32, QueryError> {
        if let Some(&id) = self.signatures.get(topic) {
            return Ok(id);
        }
        // An id that is missing is a posting that is missing.
        let id = view.signature(topic)?.unwrap_or(u32::MAX);
        if self.signatures.len() >= KNOWN_MAX {
            self.signatures.clear();
        }
        self.signatures.insert(*topic, id);
        Ok(id)
    }

    /// Since when a term is dense, if it is so at a log.
    fn dense(&self, term: Term, log: u64) -> Option<u64> {
        self.dense.get(&term).copied().filter(|&since| since <= log)
    }

    /// Hands the lists of pairs that a log belongs into to `item`; `dense` are its dense topics at positions 1 to 3.
    fn pairs(
        &self,
        (emitter, signature): (u32, Option<u32>),
        dense: &[(usize, u64)],
        log: u64,
        item: &mut dyn FnMut(Term, u64),
    ) {
        if dense.is_empty() {
            return;
        }
        let emitter = Some(emitter).filter(|&id| self.dense(Term::log_address(id), log).is_some());
        let signature = signature.filter(|&id| self.dense(Term::topic0(id), log).is_some());
        for (place, &topic) in dense.iter().enumerate() {
            let emitter = emitter.map(|id| Term::dense_topic_with_emitter(topic, id));
            let signature = signature.map(|id| Term::dense_topic_with_signature(topic, id));
            let others = dense.iter().skip(place + 1);
            let others = others.map(|&other| Term::dense_topics(topic, other));
            for term in emitter.into_iter().chain(signature).chain(others).flatten() {
                item(term, log);
            }
        }
    }
}

/// Hands every (term, ordinal) that the lists must hold for a block to `item`.
pub(super) fn postings(
    audit: &Audit<'_>,
    bundle: &Bundle,
    known: &mut Known<'_>,
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
    let mut multi = view.first_multi_transfer(log)?;
    let transactions = bundle.block.transactions.iter().zip(&bundle.receipts);
    for (index, ((transaction, receipt), ordinal)) in transactions.zip(first..).enumerate() {
        item(
            Term::account(PostingKind::AccountSent, &transaction.from),
            ordinal,
        );
        let named = created_contract(transaction.to, receipt.contract_address);
        let is_created = match receipt.status {
            Some(success) => success,
            // Before Byzantium only the trace tells. Where it came later than the block its word came too late for the list.
            None => {
                let trace = bundle.traces.as_deref().and_then(|traces| traces.get(index));
                let failed = trace
                    .and_then(TransactionTrace::top)
                    .is_some_and(|top| top.error.is_some());
                !failed || listed(view, named, ordinal)?
            }
        };
        let created = named.filter(|_| is_created);
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
            transfers(view, entry, log, &mut multi, item)?;
            let emitter = view.log_emitter(log)?;
            item(Term::log_address(emitter), log);
            let (mut signature, mut dense) = (None, Vec::new());
            for (position, topic) in entry.topics.iter().enumerate() {
                if let Some(term) = Term::topic(position, topic) {
                    item(term, log);
                    dense.extend(known.dense(term, log).map(|since| (position, since)));
                } else {
                    let id = known.signature(view, topic)?;
                    signature = Some(id);
                    item(Term::topic0(id), log);
                    item(Term::log_address_topic0(emitter, id), log);
                }
            }
            known.pairs((emitter, signature), &dense, log, item);
            log += 1;
        }
    }
    if let Some(traces) = bundle.traces.as_deref() {
        frames(traces, view.first_frame(number)?, item);
    }
    Ok(())
}

/// Whether a transaction is in the list of an account.
fn listed(view: &View, account: Option<Address>, ordinal: u64) -> Result<bool, QueryError> {
    let Some(account) = account else { return Ok(false) };
    let term = Term::account(PostingKind::AccountTransactions, &account);
    let mut list = PostingCursor::open(view, term, Direction::Forward)?;
    Ok(list.seek(ordinal)? == Some(ordinal))
}

/// The lists of the transfers that a log is; `multi` is the ordinal of the next ERC-1155 transfer.
fn transfers(
    view: &View,
    log: &Log,
    ordinal: u64,
    multi: &mut u64,
    item: &mut dyn FnMut(Term, u64),
) -> Result<(), QueryError> {
    let Some(event) = TokenEvent::of(&log.address, &log.topics, &log.data) else {
        return Ok(());
    };
    // An id that is missing is a posting that is missing.
    let token = view.token(&log.address)?.unwrap_or(u32::MAX);
    let mut list = |from: Address, to: Address, ordinal, [own, both, all]: [PostingKind; 3], standard| {
        for account in [Some(from), Some(to).filter(|to| *to != from)]
            .into_iter()
            .flatten()
        {
            item(Term::account(own, &account), ordinal);
            item(Term::token_account(both, token, &account), ordinal);
        }
        if view.token_state(token).is_ok_and(|state| state.kind == standard) {
            item(Term::token(all, token), ordinal);
        }
    };
    match event {
        TokenEvent::Fungible { from, to, .. } => {
            let kinds = [
                PostingKind::AccountErc20,
                PostingKind::TokenAccountErc20,
                PostingKind::TokenTransfers,
            ];
            list(from, to, ordinal, kinds, TokenKind::Erc20);
        }
        TokenEvent::Unique { from, to, .. } => {
            let kinds = [
                PostingKind::AccountErc721,
                PostingKind::TokenAccountErc721,
                PostingKind::TokenTransfers,
            ];
            list(from, to, ordinal, kinds, TokenKind::Erc721);
        }
        TokenEvent::Multi { from, to, items } => {
            let all = PostingKind::TokenMultiTransfers;
            let kinds = [PostingKind::AccountErc1155, PostingKind::TokenAccountErc1155, all];
            for _ in 0..items.len() {
                list(from, to, *multi, kinds, TokenKind::Erc1155);
                *multi += 1;
            }
        }
        TokenEvent::Deposit { .. } | TokenEvent::Withdrawal { .. } => {}
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
