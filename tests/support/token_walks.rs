//! Lists in the order of their keys, walked by cursor.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use quarry::model::{Address, TokenKind, U256};
use quarry::query::{HeldIdCursor, HolderCursor, IdCursor, KeyCursor, KeyPart, Reader, Token, TokenCursor};

/// Walks over the pages that `page` gives by the cursor as a client sends it. They are the list, each full but the last.
fn walk<const N: usize, T: std::fmt::Debug + PartialEq>(
    all: &[T],
    mut page: impl FnMut(&KeyPart<KeyCursor<N>>) -> (Vec<T>, Option<KeyCursor<N>>),
) {
    for limit in [1, 2, 5, 20] {
        let mut part = KeyPart::skipping(0, limit);
        let mut place = 0;
        loop {
            let (rows, next) = page(&part);
            let end = all.len().min(place + limit);
            assert_eq!(rows, all[place..end]);
            place = end;
            assert_eq!(next.is_some(), place < all.len());
            let Some(next) = next else { break };
            part.after = Some(next.to_string().parse().unwrap());
            // Beside a cursor this counts for nothing.
            part.skip = 1;
        }
    }
}

pub fn holders(reader: &Reader, token: &Token, all: &[(Address, U256)]) {
    walk(all, |part: &KeyPart<HolderCursor>| {
        let page = reader.holders(token, part, None).unwrap();
        assert_eq!(page.total, all.len() as u64);
        (page.holders, page.next)
    });
}

pub fn ids(reader: &Reader, token: &Token, owner: &Address, all: &[U256]) {
    walk(all, |part: &KeyPart<IdCursor>| {
        let page = reader.nft_ids(token, owner, part, None).unwrap();
        assert_eq!(page.total, all.len() as u64);
        (page.ids, page.next)
    });
}

pub fn holdings(reader: &Reader, who: &Address, kind: TokenKind, all: &[(Address, U256)]) {
    walk(all, |part: &KeyPart<TokenCursor>| {
        let page = reader.holdings(who, kind, part, None).unwrap();
        assert_eq!(page.total, Some(all.len() as u64));
        let rows = page.tokens.iter().map(|held| (held.token, held.balance));
        (rows.collect(), page.next)
    });
}

pub fn multi_holdings(
    reader: &Reader,
    who: &Address,
    token: Option<&Address>,
    all: &[(Address, U256, U256)],
) {
    walk(all, |part: &KeyPart<HeldIdCursor>| {
        let page = reader.multi_holdings(who, token, part, None).unwrap();
        assert_eq!(page.total, Some(all.len() as u64));
        let rows = page.ids.iter().map(|held| (held.token, held.id, held.balance));
        (rows.collect(), page.next)
    });
}

/// A place at which nobody stands is as good as one at which somebody does.
pub fn holders_behind_any_place(reader: &Reader, token: &Token, all: &[(Address, U256)]) {
    let one = U256::from(1);
    let near = all.iter().flat_map(|&(holder, amount)| {
        [amount.saturating_add(one), amount, amount.saturating_sub(one)]
            .into_iter()
            .flat_map(move |amount| {
                [Address::ZERO, holder, Address::repeat_byte(0xff)].map(|who| (who, amount))
            })
    });
    for place in near {
        let part = KeyPart {
            after: Some(HolderCursor::of(&place)),
            ..KeyPart::skipping(0, 3)
        };
        let wanted: Vec<_> = all
            .iter()
            .filter(|(who, amount)| *amount < place.1 || *amount == place.1 && *who > place.0)
            .take(3)
            .copied()
            .collect();
        let page = reader.holders(token, &part, None).unwrap();
        assert_eq!(page.holders, wanted, "behind {place:?}");
    }
}
