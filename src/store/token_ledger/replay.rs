//! Movements applied to what was there: pure functions.

use std::cmp::Ordering;

use super::{Flow, Passage};
use crate::codec::tokens::{NEGATIVE, OVERFLOWN, STRAY};
use crate::model::{Address, U256};

/// What is to be said of a token of which there would be more than fits somewhere, or less than nothing.
pub(super) const fn doubts(side: Ordering) -> u8 {
    match side {
        Ordering::Less => NEGATIVE,
        Ordering::Equal => 0,
        Ordering::Greater => OVERFLOWN,
    }
}

/// Applies movements to a balance, in the order of their blocks; hands each balance that differs from the one before
/// to `changed`. Answers the last one, and what is to be said of the token.
pub(in crate::store) fn replay(
    before: U256,
    flows: &[Flow],
    mut changed: impl FnMut(u64, &U256),
) -> (U256, u8) {
    let (mut balance, mut flags) = (before, 0);
    for flow in flows {
        let (after, side) = flow.net.after(balance);
        flags |= doubts(side);
        if after != balance {
            changed(flow.block, &after);
        }
        balance = after;
    }
    (balance, flags)
}

/// Hands an id on; tells `moved` of each block that gave it to an account (`true`) or took it away. Answers the last
/// owner, and what is to be said of the token.
pub(in crate::store) fn pass(
    before: Option<Address>,
    passages: &[Passage],
    mut moved: impl FnMut(u64, Address, bool),
) -> (Option<Address>, u8) {
    let (mut owner, mut flags) = (before, 0);
    for passage in passages {
        if owner.unwrap_or(Address::ZERO) != passage.from {
            flags |= STRAY;
        }
        if let Some(owner) = owner {
            moved(passage.block, owner, false);
        }
        owner = Some(passage.to).filter(|to| !to.is_zero());
        if let Some(owner) = owner {
            moved(passage.block, owner, true);
        }
    }
    (owner, flags)
}

/// Movements in the order of their blocks, one a block.
pub(super) fn settle(flows: &mut Vec<Flow>) {
    if flows.is_sorted_by(|a, b| a.block < b.block) {
        return;
    }
    flows.sort_by_key(|flow| flow.block);
    flows.dedup_by(|next, kept| {
        let same = next.block == kept.block;
        if same {
            kept.net.add(&next.net);
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::super::Net;
    use super::*;

    fn moved(block: u64, incoming: U256, outgoing: U256) -> Flow {
        let mut net = Net::of(incoming);
        net.go(outgoing);
        Flow { block, net }
    }

    fn flow(block: u64, incoming: u64, outgoing: u64) -> Flow {
        moved(block, U256::from(incoming), U256::from(outgoing))
    }

    #[test]
    fn balances_change_once_a_block_and_never_below_zero() {
        let mut rows = Vec::new();
        let flows = [flow(1, 10, 4), flow(2, 5, 5), flow(3, 0, 20), flow(4, 3, 0)];
        let (last, flags) = replay(U256::from(1), &flows, |block, after| {
            rows.push((block, after.to::<u64>()));
        });
        assert_eq!(rows, [(1, 7), (3, 0), (4, 3)]);
        assert_eq!((last, flags), (U256::from(3), NEGATIVE));
        let most = moved(9, U256::MAX, U256::ZERO);
        assert_eq!(replay(U256::from(1), &[most], |_, _| {}), (U256::MAX, OVERFLOWN));
        assert_eq!(replay(U256::ZERO, &[most], |_, _| {}), (U256::MAX, 0));
    }

    #[test]
    fn what_comes_and_goes_in_one_block_need_not_fit() {
        let five = U256::from(5);
        let mut rows = Vec::new();
        // All there can be, and five of it sent to itself; once more; six of it to somebody else, who sends back five.
        let mut minted = moved(1, U256::MAX, U256::ZERO);
        minted.net.add(&moved(1, five, five).net);
        let flows = [minted, moved(2, five, five), moved(3, five, U256::from(6))];
        let told = replay(U256::ZERO, &flows, |block, after| rows.push((block, *after)));
        let last = U256::MAX - U256::ONE;
        assert_eq!(told, (last, 0));
        assert_eq!(rows, [(1, U256::MAX), (3, last)]);
        // More than fits even then.
        assert_eq!(replay(last, &[flow(4, 6, 4)], |_, _| {}), (U256::MAX, OVERFLOWN));
    }

    #[test]
    fn an_id_leaves_whoever_owned_it() {
        let account = Address::repeat_byte;
        let passage = |from: u8, to: u8| Passage {
            block: 5,
            from: account(from),
            to: account(to),
        };
        let mut moved = Vec::new();
        let passages = [passage(0, 1), passage(2, 3), passage(3, 0), passage(4, 4)];
        let (owner, flags) = pass(None, &passages, |_, who, gained| moved.push((who, gained)));
        assert_eq!(
            moved,
            [
                (account(1), true),
                (account(1), false),
                (account(3), true),
                (account(3), false),
                (account(4), true)
            ]
        );
        assert_eq!((owner, flags), (Some(account(4)), STRAY));
        assert_eq!(pass(None, &passages[..1], |_, _, _| {}), (Some(account(1)), 0));
    }

    #[test]
    fn movements_are_settled_by_block() {
        let mut flows = vec![flow(3, 1, 0), flow(1, 1, 0), flow(3, 0, 2), flow(1, 5, 0)];
        settle(&mut flows);
        assert_eq!(flows, [flow(1, 6, 0), flow(3, 1, 2)]);
    }
}
