//! The token ledger: history against the present and against transfers, holders, ids, sums.

use std::collections::HashMap;

use super::sums::{Sums, fingerprint};
use super::token_moves::{MINTED, Moves, TO_ZERO, change, is_plain, owned};
use super::{Audit, Check, Tally};
use crate::codec::Corrupt;
use crate::codec::amount::read_amount;
use crate::codec::bytes::Reader;
use crate::codec::tokens::{self, MIXED, STRAY, TokenState, WRAPPED, read_supply};
use crate::model::{Address, TokenKind, U256};
use crate::query::QueryError;
use crate::store::{StoreError, Table, View};

/// A holding by another standard than the token's own.
fn other_holding(holder: &Address, kind: TokenKind, amount: U256) -> u64 {
    fingerprint((holder, kind as u8, amount))
}

/// So many ids of an account; sums wrap.
fn ids_of(owner: &Address, count: U256) -> u64 {
    let [count, ..] = *count.as_limbs();
    (fingerprint(owner) | 1).wrapping_mul(count)
}

/// What the history of one token says of the present.
#[derive(Clone, Default)]
struct Present {
    state: TokenState,
    address: Address,
    held: U256,
    /// Who holds some by the history, less who does by `holders`; those are counted in `listed`.
    holders: u64,
    listed: u64,
    /// Sums of fingerprints; zero where the tables agree.
    ranked: u64,
    holdings: u64,
    ids: u64,
    /// Holdings and owners by other standards than its own.
    others: u64,
    /// The kind by which it is listed among those whose holdings stand under none.
    unmoved: Option<TokenKind>,
    /// Ids by `nft_owners` less those by `nft_ids`.
    owned: u64,
    /// Ids that holders have by the history, less those that they own.
    counted: u64,
    /// Owners of ids by the table; by the logs, where nobody gave away what was another's.
    owners: u64,
}

/// `moves` holds what the transfers of the audited blocks move.
pub(super) fn run(audit: &Audit<'_>, moves: &Moves) -> Vec<Check> {
    let logs = audit.view.checkpoint().logs;
    let tally = audit.tally("token balances and supplies against transfers", "rows", logs);
    let mut tokens = Vec::new();
    let walked = history(&audit.view, &moves.sums, &mut tokens, &tally);
    let is_whole = walked.is_ok();
    let told = tally.ended(walked);
    let tally = audit.tally("holders, holdings, ids and sums of tokens", "rows", logs);
    // Without its history every token would look wrong.
    let walked = if is_whole {
        present(&audit.view, tokens, moves, &tally)
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
fn present(
    view: &View,
    mut tokens: Vec<Present>,
    moves: &Moves,
    present: &Tally<'_>,
) -> Result<(), QueryError> {
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
            token.listed += 1;
            token.ranked = token.ranked.wrapping_sub(fingerprint((holder, amount)));
        })
    })?;
    visit(Table::HolderCounts, &mut |_, key, value| {
        let bucket = tokens::decode_holder_count(key)?;
        let mut reader = Reader::new(value, "holder count");
        let count = reader.varint()?;
        reader.end()?;
        let place = (id_of(key)?, bucket);
        if counts.remove(&place) != Some(count) {
            counts.insert(place, u64::MAX);
        }
        Ok(())
    })?;
    visit(Table::TokenStates, &mut |tokens, key, _| {
        with(tokens, id_of(key)?, |_| {})
    })?;
    let ids: HashMap<Address, u32> = tokens_by_address(view)?;
    visit(Table::Holdings, &mut |tokens, key, value| {
        let (holder, kind, token) = key
            .split_first_chunk::<20>()
            .zip(key.last_chunk::<20>())
            .and_then(|((holder, rest), token)| {
                let kind = rest.first().copied().and_then(TokenKind::from_code)?;
                Some((Address::from(*holder), kind, Address::from(*token)))
            })
            .ok_or(Corrupt("holding key"))?;
        let id = *ids.get(&token).ok_or(Corrupt("holding of no token"))?;
        if key == tokens::unmoved(&token) {
            let kind = tokens::read_unmoved(value)?;
            return with(tokens, id, |token| token.unmoved = Some(kind));
        }
        let amount = read_amount(value)?;
        with(tokens, id, |token| {
            // By another standard there is no history to hold it against.
            if kind == token.state.held_under() {
                token.holdings = token.holdings.wrapping_sub(fingerprint((holder, amount)));
            } else {
                token.others = token.others.wrapping_sub(other_holding(&holder, kind, amount));
            }
        })
    })?;
    visit(Table::NftOwners, &mut |tokens, key, value| {
        let owner: [u8; 20] = value.try_into().map_err(|_| Corrupt("owner"))?;
        let owner = Address::from(owner);
        let id = key.get(4..).and_then(|id| <[u8; 32]>::try_from(id).ok());
        let id = id.ok_or(Corrupt("id"))?;
        with(tokens, id_of(key)?, |token| {
            let print = owned(&owner, &id);
            token.owned = token.owned.wrapping_add(print);
            if token.state.kind == TokenKind::Erc721 {
                token.owners = token.owners.wrapping_add(print);
                token.counted = token.counted.wrapping_sub(ids_of(&owner, U256::ONE));
            } else {
                token.others = token.others.wrapping_sub(print);
            }
        })
    })?;
    visit(Table::NftIds, &mut |tokens, key, _| {
        let (owner, id) = key
            .get(4..)
            .and_then(<[u8]>::split_first_chunk::<20>)
            .ok_or(Corrupt("id"))?;
        let id = <[u8; 32]>::try_from(id).map_err(|_| Corrupt("id"))?;
        with(tokens, id_of(key)?, |token| {
            token.owned = token.owned.wrapping_sub(owned(&Address::from(*owner), &id));
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
            let print = owned(owner, &id.to_be_bytes::<32>());
            token.others = token.others.wrapping_add(print);
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
    for (id, token) in (0..).zip(&tokens) {
        let seen = moves.seen(id);
        let has_ids = token.state.kind == TokenKind::Erc721;
        let supply = token.state.minted.wrapping_sub(token.state.to_zero);
        let complaints = [
            (
                token.ranked != 0,
                "its holders by amount are not those of its history",
            ),
            (token.holdings != 0, "holdings of it are not those of its history"),
            (
                token.unmoved != token.state.unmoved.then_some(token.state.kind),
                "whether its holdings stand under no kind is told otherwise by the list of such tokens",
            ),
            (token.owned != 0, "owners of ids and ids of owners differ"),
            (
                token.holders != 0 || token.state.holders != token.listed,
                "the number of its holders is another",
            ),
            (
                is_plain(&token.state) && token.held != supply,
                "what is held is not what was minted less what was burnt",
            ),
            (
                is_plain(&token.state) && has_ids && U256::from(token.ids) != token.held,
                "there are not as many ids as are held",
            ),
            (
                has_ids && token.state.flags & WRAPPED == 0 && token.counted != 0,
                "its holders own other numbers of ids than they hold",
            ),
            (
                has_ids
                    && token.state.flags & STRAY == 0
                    && seen.is_some_and(|seen| seen.owners() != token.owners),
                "owners of its ids are not those that its logs say",
            ),
            (
                seen.is_some_and(|seen| !seen.is_as_in(&token.state)),
                "its standard, its first transfer or what else moved is not what its logs say",
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
            token.counted = token.counted.wrapping_add(ids_of(&holder, balance));
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
        if before == balance {
            let text = format!("token {token}: a row of {holder} says again what the one before says");
            self.tally.wrong(Some(block), text);
        }
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
