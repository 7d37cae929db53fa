//! Balances of tokens that are not exact, as their contracts told them, and their order.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError};

use rocksdb::{Direction, IteratorMode, WriteBatch};

use super::super::memory;
use super::{Observed, Unread};
use crate::codec::observed as codec;
use crate::codec::observed::Refreshed;
use crate::metrics::visits;
use crate::model::{Address, U256, ZeroAddress};

/// What `balanceOf` said of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToldBalance {
    /// Whose.
    pub holder: Address,
    /// How much.
    pub balance: U256,
    /// After which block.
    pub block: u64,
}

impl Observed {
    /// What a holder has of a token, and after which block; `None` when it was not asked for.
    #[must_use]
    pub fn balance(&self, token: &Address, holder: &Address) -> Option<(U256, u64)> {
        self.row(&codec::balance_key(token, holder), codec::decode_balance)
    }

    /// How far the holders of a token are refreshed.
    #[must_use]
    pub fn refreshed(&self, token: &Address) -> Refreshed {
        self.row(&codec::refresh_key(token), Refreshed::decode)
            .unwrap_or_default()
    }

    /// The holders of a token that were told of after a block or a later one.
    #[must_use]
    pub fn told_since(&self, token: &Address, block: u64) -> Vec<Address> {
        let prefix = codec::balance_prefix(token);
        self.rows(&prefix, &prefix)
            .filter_map(|row| {
                let (key, value) = row?;
                let (_, told) = codec::decode_balance(&value).ok()?;
                let holder = codec::decode_balance_key(&key).ok()?;
                (block <= told).then_some(holder)
            })
            .collect()
    }

    /// Keeps balances of one token, each in its place in the order, together with how far the round over all
    /// holders has come (`whole` once it is over; kept as it is where `round` is `None`).
    pub fn put_balances(
        &self,
        token: &Address,
        told: &[ToldBalance],
        round: Option<(Option<Address>, bool)>,
    ) {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, is_kept) = self.refreshed_before(token);
        let mut after = before;
        let mut rows = WriteBatch::default();
        let mut changed = false;
        for (at, one) in told.iter().enumerate() {
            // Told twice: the later one counts, or the order would keep both.
            if told.iter().skip(at + 1).any(|later| later.holder == one.holder) {
                continue;
            }
            // The row that says where it stands in the order is about to be replaced: without knowing that it would stand there twice.
            let Ok(known) = self.known_balance(token, &one.holder) else {
                continue;
            };
            let known_some = known.unwrap_or_default();
            let key = codec::balance_key(token, &one.holder);
            rows.put(key, codec::encode_balance(one.balance, one.block));
            if known_some == one.balance {
                changed |= known.is_none();
                continue;
            }
            changed = true;
            let held = codec::held_key(&one.holder, token);
            if known_some.is_zero() {
                after.holders = after.holders.saturating_add(1);
                rows.put(held, []);
            } else {
                rows.delete(codec::order_key(token, known_some, &one.holder));
            }
            if one.balance.is_zero() {
                after.holders = after.holders.saturating_sub(1);
                rows.delete(held);
            } else {
                rows.put(codec::order_key(token, one.balance, &one.holder), []);
            }
        }
        if let Some((resume, whole)) = round {
            after.after = resume;
            after.whole |= whole;
        }
        if after != before || !is_kept {
            rows.put(codec::refresh_key(token), after.encode());
        }
        self.write(rows);
        if changed || after.whole != before.whole {
            self.changed();
        }
    }

    /// How far the holders of a token are refreshed, and whether that is kept: where it cannot be read they are counted.
    fn refreshed_before(&self, token: &Address) -> (Refreshed, bool) {
        let told = self.try_row(&codec::refresh_key(token), Refreshed::decode);
        told.map(|told| (told.unwrap_or_default(), true))
            .unwrap_or_else(|Unread| {
                let prefix = codec::order_prefix(token);
                let counted = Refreshed {
                    holders: self.keys(&prefix, &prefix).count() as u64,
                    ..Refreshed::default()
                };
                (counted, false)
            })
    }

    /// What is kept of a holder's balance; where its own row cannot be read, by its place in the order.
    fn known_balance(&self, token: &Address, holder: &Address) -> Result<Option<U256>, Unread> {
        let told = self.try_row(&codec::balance_key(token, holder), codec::decode_balance);
        told.map(|told| told.map(|(balance, _)| balance))
            .or_else(|Unread| {
                let prefix = codec::order_prefix(token);
                for place in self.keys(&prefix, &prefix).map(in_order) {
                    let (other, balance) = place.ok_or(Unread)?;
                    if other == *holder {
                        return Ok(Some(balance));
                    }
                }
                Ok(None)
            })
    }

    /// Asks for all holders of a token from the first on: until that is over the ledger has the better list.
    pub fn begin_round(&self, token: &Address) {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, is_kept) = self.refreshed_before(token);
        let anew = Refreshed {
            holders: before.holders,
            ..Refreshed::default()
        };
        if anew != before || !is_kept {
            self.put(&codec::refresh_key(token), &anew.encode());
            self.changed();
        }
    }

    /// The holders of a token from the largest on, then by address; `skip` of them left out. `None` when the
    /// rows cannot be read.
    #[must_use]
    pub fn holders(&self, token: &Address, skip: u64, limit: usize) -> Option<Vec<(Address, U256)>> {
        let Ok(holders) = self.holders_past(token, skip, limit, || Ok::<_, Infallible>(()));
        holders
    }

    /// The same; `step` is told of each one that is left out, and its error ends it.
    pub fn holders_past<E>(
        &self,
        token: &Address,
        mut skip: u64,
        limit: usize,
        mut step: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Vec<(Address, U256)>>, E> {
        let mut holders = Vec::new();
        let Some(db) = self.db.as_ref().filter(|_| !memory::forbids()) else {
            return Ok(Some(holders));
        };
        let prefix = codec::order_prefix(token);
        let mut rows = db.raw_iterator();
        rows.seek(prefix);
        while holders.len() < limit
            && let Some(key) = rows.key().filter(|key| key.starts_with(&prefix))
        {
            visits::row();
            if skip > 0 {
                skip -= 1;
                step()?;
            } else if let Ok((balance, holder)) = codec::decode_order_key(key) {
                holders.push((holder, balance));
            } else {
                return Ok(None);
            }
            rows.next();
        }
        let read = rows.status().map_err(|error| self.damaged(&error));
        Ok(read.is_ok().then_some(holders))
    }

    /// The same, from the first holder behind the place of `after`, who need not be there any more.
    #[must_use]
    pub fn holders_after(
        &self,
        token: &Address,
        (holder, balance): &(Address, U256),
        limit: usize,
    ) -> Option<Vec<(Address, U256)>> {
        let place = codec::order_key(token, *balance, holder);
        self.keys(&codec::order_prefix(token), &place)
            .skip_while(|key| key.as_deref() == Some(place.as_slice()))
            .take(limit)
            .map(in_order)
            .collect()
    }

    /// Tokens that a holder has some of, by address, from `from` on. `None` when the rows cannot be read.
    #[must_use]
    pub fn held_by(&self, holder: &Address, from: &Address, limit: usize) -> Option<Vec<Address>> {
        self.keys(&codec::held_prefix(holder), &codec::held_key(holder, from))
            .take(limit)
            .map(|key| codec::decode_held_key(&key?).ok())
            .collect()
    }

    /// Tokens whose verdict lets the zero address hold what it was sent, by address. `None` when the rows cannot be read. All verdicts
    /// are read for it once, and again when one says something else of that.
    #[must_use]
    pub fn held_by_zero(&self) -> Option<Arc<[Address]>> {
        let known = self.verdicts.read().unwrap_or_else(PoisonError::into_inner);
        let writes = known.writes;
        if let Some(held) = &known.held_by_zero {
            return Some(Arc::clone(held));
        }
        drop(known);
        let held = |row: Option<(Vec<u8>, Box<[u8]>)>| {
            let (key, value) = row?;
            let holds = codec::decode_verdict(&value).ok()?.zero_address == ZeroAddress::Holds;
            Some((codec::decode_verdict_key(&key).ok()?, holds))
        };
        let rows = self.rows(&codec::VERDICTS, &codec::VERDICTS).map(held);
        let tokens = rows.filter_map(|row| match row {
            Some((token, holds)) => holds.then_some(Some(token)),
            None => Some(None),
        });
        let held: Arc<[Address]> = tokens.collect::<Option<_>>()?;
        let mut known = self.verdicts.write().unwrap_or_else(PoisonError::into_inner);
        // An attempt out of memory reads none of the rows.
        if known.writes == writes && !memory::has_missed() {
            known.held_by_zero = Some(Arc::clone(&held));
        }
        Some(held)
    }

    /// The keys that begin with `prefix`, from `from` on; `None` where one cannot be read.
    fn keys(&self, prefix: &[u8], from: &[u8]) -> impl Iterator<Item = Option<Vec<u8>>> + '_ {
        self.rows(prefix, from).map(|row| row.map(|(key, _)| key))
    }

    /// The same with what is kept under them.
    fn rows(&self, prefix: &[u8], from: &[u8]) -> impl Iterator<Item = Option<(Vec<u8>, Box<[u8]>)>> + '_ {
        let prefix = prefix.to_vec();
        let mut failed = false;
        self.db
            .as_ref()
            .filter(|_| !memory::forbids())
            .map(|db| db.iterator(IteratorMode::From(from, Direction::Forward)))
            .into_iter()
            .flatten()
            .inspect(|_| visits::row())
            .map_while(move |item| match item {
                _ if failed => None,
                Ok((key, value)) => key.starts_with(&prefix).then(|| Some((key.into_vec(), value))),
                Err(error) => {
                    failed = true;
                    self.damaged(&error);
                    Some(None)
                }
            })
    }
}

/// The holder and balance of a key of a token's order.
fn in_order(key: Option<Vec<u8>>) -> Option<(Address, U256)> {
    let (balance, holder) = codec::decode_order_key(&key?).ok()?;
    Some((holder, balance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::value::Identity;

    /// What a holder had is not known by its own row any more, and it must not count twice.
    #[test]
    fn a_balance_that_cannot_be_read_is_replaced_and_not_added_to() {
        let home = tempfile::tempdir().unwrap();
        let identity = Identity {
            schema: 1,
            chain_id: 1,
            genesis_hash: [7; 32],
            first_block: 0,
            static_rewards: None,
        };
        let observed = Observed::open(home.path(), &identity, false);
        let [token, one, other] = [1, 2, 3].map(Address::repeat_byte);
        let put = |holder: Address, balance: u64| {
            let told = ToldBalance {
                holder,
                balance: U256::from(balance),
                block: 5,
            };
            observed.put_balances(&token, &[told], None);
        };
        let held = |holder: &Address| observed.held_by(holder, &Address::ZERO, 9).unwrap();
        put(one, 40);
        put(other, 30);
        for (now, holders) in [(20, 2), (0, 1), (50, 2)] {
            observed.put(&codec::balance_key(&token, &one), b"");
            observed.put(&codec::refresh_key(&token), b"");
            put(one, now);
            assert_eq!(observed.refreshed(&token).holders, holders, "{now}");
            let mut wanted = vec![(one, U256::from(now)), (other, U256::from(30))];
            wanted.retain(|(_, balance)| !balance.is_zero());
            wanted.sort_by_key(|(_, balance)| std::cmp::Reverse(*balance));
            assert_eq!(observed.holders(&token, 0, 9).unwrap(), wanted, "{now}");
            assert_eq!(held(&one).len(), usize::from(now > 0), "{now}");
            assert_eq!(observed.balance(&token, &one), Some((U256::from(now), 5)));
        }
    }

    /// Who is left out is counted one by one, so that whoever asks may give up, and nobody else is.
    #[test]
    fn holders_are_left_out_step_by_step() {
        let observed = Observed::in_memory();
        let [before, token, behind] = [1, 2, 3].map(Address::repeat_byte);
        let told: Vec<_> = (1..=9)
            .map(|n| ToldBalance {
                holder: Address::repeat_byte(n),
                balance: U256::from(100 - n),
                block: 5,
            })
            .collect();
        for token in [before, token, behind] {
            observed.put_balances(&token, &told, None);
        }
        let all: Vec<_> = told.iter().map(|one| (one.holder, one.balance)).collect();
        let ask = |skip: u64, limit: usize, steps_max: u64| {
            let mut steps = 0;
            let held = observed.holders_past(&token, skip, limit, || {
                steps += 1;
                if steps > steps_max { Err(steps) } else { Ok(()) }
            });
            (held, steps)
        };
        for skip in [0, 4, 9, 12] {
            let left_out = skip.min(9);
            let rest: Vec<_> = all.iter().skip(skip).take(3).copied().collect();
            let steps = left_out as u64;
            assert_eq!(ask(skip as u64, 3, steps), (Ok(Some(rest)), steps), "{skip}");
        }
        assert_eq!(ask(4, 3, 3), (Err(4), 4));
    }
}
