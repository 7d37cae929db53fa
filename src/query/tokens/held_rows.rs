//! The ledger's rows of what an account holds by a standard.

use crate::codec::amount::read_amount;
use crate::codec::tokens;
use crate::model::{Address, TokenKind, U256};
use crate::query::QueryError;
use crate::query::limit::Limit;
use crate::store::{Scan, Table, View};

fn corrupt(corrupt: crate::codec::Corrupt) -> QueryError {
    QueryError::Corrupt(corrupt, Table::Holdings.name())
}

/// The rows of an account under a kind, from the first token behind `after`.
fn scan_of<'v>(
    view: &'v View,
    holder: &Address,
    kind: TokenKind,
    after: Option<&Address>,
) -> Result<Scan<'v>, QueryError> {
    let from = tokens::holding(holder, kind, &Address::ZERO);
    let mut to = tokens::holding(holder, kind, &Address::repeat_byte(0xff)).to_vec();
    to.push(0);
    let mut scan = view.scan(Table::Holdings, from.to_vec(), to)?;
    match after {
        None => scan.seek(&from)?,
        Some(after) => scan.seek_behind(&tokens::holding(holder, kind, after))?,
    };
    Ok(scan)
}

/// The token of the row under a scan, and how much of it.
fn read(scan: &Scan<'_>) -> Result<Option<(Address, U256)>, QueryError> {
    let Some((key, value)) = scan.item()? else {
        return Ok(None);
    };
    let token = tokens::decode_holding(key).map_err(corrupt)?;
    Ok(Some((token, read_amount(value).map_err(corrupt)?)))
}

/// Walks over the tokens of a kind that an account holds by the ledger, by contract address.
pub(super) struct HeldRows<'v> {
    rows: Scan<'v>,
    unmoved: Option<Unmoved<'v>>,
    next_unmoved: Option<(Address, U256)>,
}

impl<'v> HeldRows<'v> {
    /// From the first token behind `after`.
    pub(super) fn begin(
        view: &'v View,
        holder: &Address,
        kind: TokenKind,
        after: Option<&Address>,
        limit: &mut Limit,
    ) -> Result<Self, QueryError> {
        let mut rows = Self {
            rows: scan_of(view, holder, kind, after)?,
            unmoved: Unmoved::begin(view, holder, kind, after)?,
            next_unmoved: None,
        };
        rows.next_unmoved = rows.step_unmoved(limit)?;
        Ok(rows)
    }

    fn step_unmoved(&mut self, limit: &mut Limit) -> Result<Option<(Address, U256)>, QueryError> {
        let unmoved = self.unmoved.as_mut();
        unmoved.map_or(Ok(None), |unmoved| unmoved.step(limit))
    }

    /// The next token and how much of it.
    pub(super) fn step(&mut self, limit: &mut Limit) -> Result<Option<(Address, U256)>, QueryError> {
        limit.spend(1)?;
        let row = read(&self.rows)?;
        if let Some((unmoved, _)) = self.next_unmoved
            && row.is_none_or(|(token, _)| unmoved < token)
        {
            let following = self.step_unmoved(limit)?;
            return Ok(std::mem::replace(&mut self.next_unmoved, following));
        }
        self.rows.step()?;
        Ok(row)
    }
}

/// Walks over those that stand under no kind for good: tokens that are listed so and that the account holds under none. Few are
/// listed, mostly none, and from one to the next all is passed over in one seek.
struct Unmoved<'v> {
    holder: Address,
    kind: TokenKind,
    listed: Scan<'v>,
    rows: Scan<'v>,
}

impl<'v> Unmoved<'v> {
    fn begin(
        view: &'v View,
        holder: &Address,
        kind: TokenKind,
        after: Option<&Address>,
    ) -> Result<Option<Self>, QueryError> {
        let none = TokenKind::Unknown;
        // The list itself stands where the zero address would hold something.
        if holder.is_zero() {
            return Ok(None);
        }
        let listed = scan_of(view, &Address::ZERO, none, after)?;
        if listed.item()?.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            holder: *holder,
            kind,
            listed,
            rows: scan_of(view, holder, none, after)?,
        }))
    }

    fn step(&mut self, limit: &mut Limit) -> Result<Option<(Address, U256)>, QueryError> {
        while let (Some((key, kind)), Some((token, balance))) = (self.listed.item()?, read(&self.rows)?) {
            limit.spend(1)?;
            let listed = tokens::decode_holding(key).map_err(corrupt)?;
            let kind = tokens::read_unmoved(kind).map_err(corrupt)?;
            if listed < token {
                self.listed.seek(&tokens::unmoved(&token))?;
            } else if token < listed {
                let none = TokenKind::Unknown;
                self.rows.seek(&tokens::holding(&self.holder, none, &listed))?;
            } else {
                self.listed.step()?;
                self.rows.step()?;
                if kind == self.kind {
                    return Ok(Some((token, balance)));
                }
            }
        }
        Ok(None)
    }
}
