//! Tokens: transfers by account, and what they move.

use alloy_primitives::map::HashMap;

use super::narrow;
use crate::codec::keys::{PostingKind, Term};
use crate::model::{Address, Bundle, Log, TokenEvent, TokenKind, U256};
use crate::store::{Batch, BatchToken, StoreError};

/// Pushes the transfers of a block whose logs begin at ordinal `first_log`.
pub(super) fn derive(bundle: &Bundle, first_log: u64, batch: &mut Batch) -> Result<(), StoreError> {
    let mut ordinal = first_log;
    // The events of one transaction.
    let mut events: Vec<(u64, &Log, TokenEvent<'_>)> = Vec::new();
    for receipt in &bundle.receipts {
        events.clear();
        let mut wraps = false;
        for log in &receipt.logs {
            if let Some(event) = TokenEvent::of(&log.address, &log.topics, &log.data) {
                wraps |= event.kind() == TokenKind::Unknown;
                events.push((ordinal, log, event));
            }
            ordinal += 1;
        }
        let mut told = if wraps { Told::of(&events) } else { Told::default() };
        for (ordinal, log, event) in &events {
            let token = batch.token(&log.address)?;
            push(*ordinal, log, event, token, &mut told, batch)?;
        }
    }
    Ok(())
}

/// Transfers from and to the zero address of a transaction that also wraps: they tell of the same movement.
#[derive(Default)]
struct Told<'a>(HashMap<(&'a Address, Address, U256, bool), u32>);

impl<'a> Told<'a> {
    fn of(events: &[(u64, &'a Log, TokenEvent<'_>)]) -> Self {
        let mut told = Self::default();
        for (_, log, event) in events {
            let TokenEvent::Fungible { from, to, value } = *event else {
                continue;
            };
            if from.is_zero() {
                *told.0.entry((&log.address, to, value, true)).or_default() += 1;
            }
            if to.is_zero() {
                *told.0.entry((&log.address, from, value, false)).or_default() += 1;
            }
        }
        told
    }

    /// Whether a transfer tells of this deposit (`minted`) or withdrawal; each tells of one.
    fn take(&mut self, token: &'a Address, account: Address, value: U256, minted: bool) -> bool {
        match self.0.get_mut(&(token, account, value, minted)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

fn push<'a>(
    ordinal: u64,
    log: &'a Log,
    event: &TokenEvent<'_>,
    token: BatchToken,
    told: &mut Told<'a>,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let id = token.id;
    match *event {
        TokenEvent::Fungible { from, to, value } => {
            let token = batch.token_emits(token, TokenKind::Erc20, ordinal);
            if token.is_own() {
                batch.posting(Term::token(PostingKind::TokenTransfers, id), ordinal);
            }
            batch.move_token(token, &from, &to, value);
            for account in [from, to] {
                batch.posting(Term::account(PostingKind::AccountErc20, &account), ordinal);
                let both = Term::token_account(PostingKind::TokenAccountErc20, id, &account);
                batch.posting(both, ordinal);
            }
        }
        TokenEvent::Unique { from, to, id: nft } => {
            let token = batch.token_emits(token, TokenKind::Erc721, ordinal);
            if token.is_own() {
                batch.posting(Term::token(PostingKind::TokenTransfers, id), ordinal);
            }
            batch.move_id(token, nft, &from, &to);
            for account in [from, to] {
                batch.posting(Term::account(PostingKind::AccountErc721, &account), ordinal);
                let both = Term::token_account(PostingKind::TokenAccountErc721, id, &account);
                batch.posting(both, ordinal);
            }
        }
        TokenEvent::Multi { from, to, items } => {
            let token = batch.token_emits(token, TokenKind::Erc1155, ordinal);
            for (position, (_, value)) in items.iter().enumerate() {
                let position = narrow(position, "position in a batch")?;
                let ordinal = batch.multi_transfer(ordinal, position);
                if token.is_own() {
                    batch.posting(Term::token(PostingKind::TokenMultiTransfers, id), ordinal);
                }
                batch.move_token(token, &from, &to, value);
                for account in [from, to] {
                    batch.posting(Term::account(PostingKind::AccountErc1155, &account), ordinal);
                    let both = Term::token_account(PostingKind::TokenAccountErc1155, id, &account);
                    batch.posting(both, ordinal);
                }
            }
        }
        TokenEvent::Deposit { account, value } => wrap(token, log, account, value, true, told, batch),
        TokenEvent::Withdrawal { account, value } => wrap(token, log, account, value, false, told, batch),
    }
    Ok(())
}

/// Moves what a deposit (`minted`) or withdrawal says, where no transfer says it too.
fn wrap<'a>(
    token: BatchToken,
    log: &'a Log,
    account: Address,
    value: U256,
    minted: bool,
    told: &mut Told<'a>,
    batch: &mut Batch,
) {
    // Other standards count ids and not units; there such a log speaks of something else.
    if !batch.token_wraps(token) || told.take(&log.address, account, value, minted) {
        return;
    }
    if minted {
        batch.move_token(token, &Address::ZERO, &account, value);
    } else {
        batch.unwrap_token(token, &account, value);
    }
}
