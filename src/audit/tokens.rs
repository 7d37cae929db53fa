//! The token ledger: history against the present and against transfers, holders, ids, sums.

use std::collections::HashMap;

use super::sums::{Sums, fingerprint, weighed};
use super::{Audit, Check, Tally};
use crate::codec::Corrupt;
use crate::codec::amount::read_amount;
use crate::codec::bytes::Reader;
use crate::codec::tokens::{self, DOUBTS, MIXED, TokenState, WRAPPED, read_supply};
use crate::model::{Address, Bundle, Log, TokenEvent, TokenKind, U256};
use crate::query::QueryError;
use crate::store::{StoreError, Table, View};

/// A change of what a holder has, as a number whose sum over a block does not depend on how changes are cut.
pub(super) fn change(token: u32, holder: &Address, by: U256) -> u64 {
    weighed(by, fingerprint((token, holder)))
}

/// Stand for the two sums of the supply among the holders.
const MINTED: Address = Address::repeat_byte(0xf1);
const TO_ZERO: Address = Address::repeat_byte(0xf0);

/// A holding by another standard than the token's own.
fn other_holding(holder: &Address, kind: TokenKind, amount: U256) -> u64 {
    fingerprint((holder, kind as u8, amount))
}

/// Whether the ledger of a token can be told from its transfers one by one.
fn is_plain(state: &TokenState) -> bool {
    let wraps = state.flags & WRAPPED != 0;
    state.flags & DOUBTS == 0 && (!wraps || matches!(state.kind, TokenKind::Unknown | TokenKind::Erc20))
}

/// Token ids and states that were looked up; of one thread.
pub(super) type Known = HashMap<Address, Option<(u32, TokenKind)>>;

/// Adds what the transfers of a block move to `sums`.
pub(super) fn moves(view: &View, bundle: &Bundle, known: &mut Known, sums: &Sums) -> Result<(), StoreError> {
    let block = bundle.block.number();
    for receipt in &bundle.receipts {
        let events = receipt
            .logs
            .iter()
            .filter_map(|log| TokenEvent::of(&log.address, &log.topics, &log.data).map(|event| (log, event)));
        let events: Vec<(&Log, TokenEvent<'_>)> = events.collect();
        for (log, event) in &events {
            let token = match known.get(&log.address) {
                Some(token) => *token,
                None => {
                    let token = match view.token(&log.address)? {
                        Some(id) => {
                            let state = view.token_state(id)?;
                            is_plain(&state).then_some((id, state.kind))
                        }
                        None => None,
                    };
                    known.insert(log.address, token);
                    token
                }
            };
            let Some((token, kind)) = token else { continue };
            let moved = |from: &Address, to: &Address, value: U256| {
                if from.is_zero() {
                    sums.add(block, change(token, &MINTED, value));
                } else {
                    sums.take(block, change(token, from, value));
                }
                if to.is_zero() {
                    sums.add(block, change(token, &TO_ZERO, value));
                } else {
                    sums.add(block, change(token, to, value));
                }
            };
            match event {
                TokenEvent::Fungible { from, to, value } if kind == TokenKind::Erc20 => {
                    moved(from, to, *value)
                }
                TokenEvent::Unique { from, to, .. } if kind == TokenKind::Erc721 => {
                    moved(from, to, U256::ONE)
                }
                TokenEvent::Multi { from, to, items } if kind == TokenKind::Erc1155 => {
                    items.iter().for_each(|(_, value)| moved(from, to, value));
                }
                TokenEvent::Deposit { account, value } if !told(&events, log, account, *value, true) => {
                    moved(&Address::ZERO, account, *value);
                }
                TokenEvent::Withdrawal { account, value } if !told(&events, log, account, *value, false) => {
                    // What is unwrapped was minted no more.
                    sums.take(block, change(token, &MINTED, *value));
                    if !account.is_zero() {
                        sums.take(block, change(token, account, *value));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether a transfer from or to the zero address tells of a deposit or withdrawal: the n-th of equal ones by the
/// n-th of equal transfers.
fn told(events: &[(&Log, TokenEvent<'_>)], of: &Log, account: &Address, value: U256, minted: bool) -> bool {
    let own = || events.iter().filter(|(log, _)| log.address == of.address);
    let transfers = own().filter(|(_, event)| match event {
        TokenEvent::Fungible {
            from,
            to,
            value: moved,
        } if *moved == value => {
            (minted && from.is_zero() && to == account) || (!minted && to.is_zero() && from == account)
        }
        _ => false,
    });
    let before = own().take_while(|(log, _)| !std::ptr::eq(*log, of));
    let wraps = before.filter(|(_, event)| match event {
        TokenEvent::Deposit {
            account: other,
            value: moved,
        } => minted && other == account && *moved == value,
        TokenEvent::Withdrawal {
            account: other,
            value: moved,
        } => !minted && other == account && *moved == value,
        _ => false,
    });
    wraps.count() < transfers.count()
}

/// What the history of one token says of the present.
#[derive(Clone, Default)]
struct Present {
    state: TokenState,
    address: Address,
    held: U256,
    holders: u64,
    /// Sums of fingerprints; zero where the tables agree.
    ranked: u64,
    holdings: u64,
    ids: u64,
    /// Holdings and owners by other standards than its own.
    others: u64,
    /// Ids by `nft_owners` less those by `nft_ids`.
    owned: u64,
}

/// `moves` holds what the transfers of the audited blocks move.
pub(super) fn run(audit: &Audit<'_>, moves: &Sums) -> Vec<Check> {
    let logs = audit.view.checkpoint().logs;
    let tally = audit.tally("token balances and supplies against transfers", "rows", logs);
    let mut tokens = Vec::new();
    let walked = history(&audit.view, moves, &mut tokens, &tally);
    let is_whole = walked.is_ok();
    let told = tally.ended(walked);
    let tally = audit.tally("holders, holdings, ids and sums of tokens", "rows", logs);
    // Without its history every token would look wrong.
    let walked = if is_whole {
        present(&audit.view, tokens, &tally)
    } else {
        tally.wrong(None, "not looked at, for the history of tokens cannot be read");
        Ok(())
    };
    vec![told, tally.ended(walked)]
}

/// What the history says of each token.
fn history(
    view: &View,
    moves: &Sums,
    tokens: &mut Vec<Present>,
    tally: &Tally<'_>,
) -> Result<(), QueryError> {
    for id in 0..view.checkpoint().tokens {
        let address = view.token_address(id)?;
        let state = view.token_state(id)?;
        tokens.push(Present {
            state,
            address,
            ..Present::default()
        });
    }
    each(
        view,
        Table::TokenBalances,
        &mut History::new(moves, tokens, tally),
    )?;
    supplies(view, moves, tokens, tally)?;
    for block in moves.unbalanced() {
        tally.wrong(Some(block), "token balances did not change as its transfers say");
    }
    Ok(())
}

/// The present against the history.
fn present(view: &View, mut tokens: Vec<Present>, present: &Tally<'_>) -> Result<(), QueryError> {
    let mut visit = |table, row: &mut RowOfTokens<'_>| {
        each(view, table, &mut |key: &[u8], value: &[u8]| {
            present.items(1);
            row(&mut tokens, key, value)
        })
    };
    let mut counts: HashMap<(u32, u16), u64> = HashMap::new();
    visit(Table::Holders, &mut |tokens, key, _| {
        let (amount, holder) = tokens::decode_holder(key)?;
        let token = id_of(key)?;
        *counts.entry((token, tokens::bucket(&amount))).or_default() += 1;
        with(tokens, token, |token| {
            token.holders = token.holders.wrapping_sub(1);
            token.ranked = token.ranked.wrapping_sub(fingerprint((holder, amount)));
        })
    })?;
    visit(Table::HolderCounts, &mut |_, key, value| {
        let bucket = tokens::decode_holder_count(key)?;
        let count = Reader::new(value, "holder count").varint()?;
        let place = (id_of(key)?, bucket);
        if counts.remove(&place) != Some(count) {
            counts.insert(place, u64::MAX);
        }
        Ok(())
    })?;
    let ids: HashMap<Address, u32> = tokens_by_address(view)?;
    visit(Table::Holdings, &mut |tokens, key, value| {
        let amount = read_amount(value)?;
        let (holder, kind, token) = key
            .split_first_chunk::<20>()
            .zip(key.last_chunk::<20>())
            .and_then(|((holder, rest), token)| {
                let kind = rest.first().copied().and_then(TokenKind::from_code)?;
                Some((Address::from(*holder), kind, Address::from(*token)))
            })
            .ok_or(Corrupt("holding key"))?;
        let id = *ids.get(&token).ok_or(Corrupt("holding of no token"))?;
        with(tokens, id, |token| {
            // By another standard there is no history to hold it against.
            if kind == token.state.kind || token.state.flags & MIXED == 0 {
                token.holdings = token.holdings.wrapping_sub(fingerprint((holder, amount)));
            } else {
                token.others = token.others.wrapping_sub(other_holding(&holder, kind, amount));
            }
        })
    })?;
    visit(Table::NftOwners, &mut |tokens, key, value| {
        let owner: [u8; 20] = value.try_into().map_err(|_| Corrupt("owner"))?;
        let id = *key
            .get(4..)
            .and_then(<[u8]>::first_chunk::<32>)
            .ok_or(Corrupt("id"))?;
        with(tokens, id_of(key)?, |token| {
            token.owned = token.owned.wrapping_add(fingerprint((owner, id)));
            if token.state.kind != TokenKind::Erc721 {
                token.others = token.others.wrapping_sub(fingerprint((owner, id)));
            }
        })
    })?;
    visit(Table::NftIds, &mut |tokens, key, _| {
        let (owner, id) = key
            .get(4..)
            .and_then(<[u8]>::split_first_chunk::<20>)
            .ok_or(Corrupt("id"))?;
        let id = *id.first_chunk::<32>().ok_or(Corrupt("id"))?;
        with(tokens, id_of(key)?, |token| {
            token.owned = token.owned.wrapping_sub(fingerprint((*owner, id)));
            token.ids += 1;
        })
    })?;
    for (id, token) in (0..).zip(&mut tokens) {
        if token.state.flags & MIXED == 0 {
            continue;
        }
        let told = view.other_holdings(id, token.state.kind)?;
        for ((holder, kind), amount) in told.amounts.iter().filter(|(_, amount)| !amount.is_zero()) {
            token.others = token.others.wrapping_add(other_holding(holder, *kind, *amount));
        }
        for (id, owner) in &told.owners {
            token.others = token
                .others
                .wrapping_add(fingerprint((owner.0.0, id.to_be_bytes::<32>())));
        }
    }
    for (token, bucket) in counts.into_keys() {
        let address = tokens
            .get(token as usize)
            .map(|token| token.address)
            .unwrap_or_default();
        present.wrong(
            None,
            format!("{address}: the number of holders in bucket {bucket:04x} is another"),
        );
    }
    for token in &tokens {
        let supply = token.state.minted.wrapping_sub(token.state.to_zero);
        let complaints = [
            (
                token.ranked != 0,
                "its holders by amount are not those of its history",
            ),
            (token.holdings != 0, "holdings of it are not those of its history"),
            (token.owned != 0, "owners of ids and ids of owners differ"),
            (token.holders != 0, "the number of its holders is another"),
            (
                is_plain(&token.state) && token.held != supply,
                "what is held is not what was minted less what was burnt",
            ),
            (
                is_plain(&token.state)
                    && token.state.kind == TokenKind::Erc721
                    && U256::from(token.ids) != token.held,
                "there are not as many ids as are held",
            ),
            (
                token.others != 0,
                "what is held of it by another standard than its own is not what its logs say",
            ),
        ];
        for (_, text) in complaints.iter().filter(|(wrong, _)| *wrong) {
            present.wrong(None, format!("{}: {text}", token.address));
        }
    }
    Ok(())
}

/// The history of supplies: what it adds up to goes to `moves`, and its last row is the token's state.
fn supplies(view: &View, moves: &Sums, tokens: &[Present], tally: &Tally<'_>) -> Result<(), QueryError> {
    let mut last = vec![(U256::ZERO, U256::ZERO); tokens.len()];
    each(view, Table::TokenSupply, &mut |key: &[u8], value: &[u8]| {
        let id = id_of(key)?;
        let block = key
            .get(4..)
            .and_then(<[u8]>::first_chunk::<8>)
            .ok_or(Corrupt("supply key"))?;
        let block = u64::from_be_bytes(*block);
        let mut reader = Reader::new(value, "token supply");
        let sums = read_supply(&mut reader)?;
        reader.end()?;
        let (token, before) = tokens
            .get(id as usize)
            .zip(last.get_mut(id as usize))
            .ok_or(Corrupt("row of no token"))?;
        if is_plain(&token.state) {
            for (of, after, before) in [(MINTED, sums.0, before.0), (TO_ZERO, sums.1, before.1)] {
                moves.take(block, change(id, &of, after));
                moves.add(block, change(id, &of, before));
            }
        }
        *before = sums;
        tally.items(1);
        Ok(())
    })?;
    for (token, last) in tokens.iter().zip(last) {
        if last != (token.state.minted, token.state.to_zero) {
            tally.wrong(
                None,
                format!("{}: its history of supplies ends with other sums", token.address),
            );
        }
    }
    Ok(())
}

fn tokens_by_address(view: &View) -> Result<HashMap<Address, u32>, StoreError> {
    (0..view.checkpoint().tokens)
        .map(|id| Ok((view.token_address(id)?, id)))
        .collect()
}

fn id_of(key: &[u8]) -> Result<u32, Corrupt> {
    key.first_chunk::<4>()
        .map(|id| u32::from_be_bytes(*id))
        .ok_or(Corrupt("token key"))
}

fn with(tokens: &mut [Present], id: u32, act: impl FnOnce(&mut Present)) -> Result<(), Corrupt> {
    tokens
        .get_mut(id as usize)
        .map(act)
        .ok_or(Corrupt("row of no token"))
}

/// Takes a row, its key and value, and notes what it says of its token.
type RowOfTokens<'a> = dyn FnMut(&mut [Present], &[u8], &[u8]) -> Result<(), Corrupt> + 'a;

/// Takes the rows of a table one by one.
trait Rows {
    fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), Corrupt>;
    fn end(&mut self) -> Result<(), Corrupt> {
        Ok(())
    }
}

impl<F: FnMut(&[u8], &[u8]) -> Result<(), Corrupt>> Rows for F {
    fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), Corrupt> {
        self(key, value)
    }
}

fn each(view: &View, table: Table, rows: &mut dyn Rows) -> Result<(), QueryError> {
    let corrupt = |corrupt| QueryError::Corrupt(corrupt, table.name());
    let mut scan = view.scan_all(table)?;
    while let Some((key, value)) = scan.item()? {
        rows.row(key, value).map_err(corrupt)?;
        scan.step()?;
    }
    rows.end().map_err(corrupt)
}

/// Reads the history of balances, holder by holder.
struct History<'a> {
    moves: &'a Sums,
    tokens: &'a mut [Present],
    tally: &'a Tally<'a>,
    /// Token, holder and balance of the row before.
    last: Option<(u32, Address, U256)>,
}

impl<'a> History<'a> {
    const fn new(moves: &'a Sums, tokens: &'a mut [Present], tally: &'a Tally<'a>) -> Self {
        Self {
            moves,
            tokens,
            tally,
            last: None,
        }
    }

    /// What the last row of a holder says of the present.
    fn close(&mut self) -> Result<(), Corrupt> {
        let Some((token, holder, balance)) = self.last.take() else {
            return Ok(());
        };
        if balance.is_zero() {
            return Ok(());
        }
        with(self.tokens, token, |token| {
            token.held = token.held.wrapping_add(balance);
            token.holders = token.holders.wrapping_add(1);
            token.ranked = token.ranked.wrapping_add(fingerprint((holder, balance)));
            token.holdings = token.holdings.wrapping_add(fingerprint((holder, balance)));
        })
    }
}

impl Rows for History<'_> {
    fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), Corrupt> {
        const WHAT: Corrupt = Corrupt("token balance key");
        let token = id_of(key)?;
        let (holder, block) = key
            .get(4..)
            .and_then(<[u8]>::split_first_chunk::<20>)
            .ok_or(WHAT)?;
        let holder = Address::from(*holder);
        let block = u64::from_be_bytes(*block.first_chunk::<8>().ok_or(WHAT)?);
        let balance = read_amount(value)?;
        let same = self.last.filter(|(of, who, _)| *of == token && *who == holder);
        if same.is_none() {
            self.close()?;
        }
        let before = same.map_or(U256::ZERO, |(.., balance)| balance);
        if self
            .tokens
            .get(token as usize)
            .is_some_and(|token| is_plain(&token.state))
        {
            self.moves.take(block, change(token, &holder, balance));
            self.moves.add(block, change(token, &holder, before));
        }
        self.last = Some((token, holder, balance));
        self.tally.items(1);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Corrupt> {
        self.close()
    }
}
