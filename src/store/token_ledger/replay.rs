//! Movements applied to what was there: pure functions.

use super::{Flow, Passage};
use crate::codec::tokens::{NEGATIVE, OVERFLOWN, STRAY};
use crate::model::{Address, U256};

/// Applies movements to a balance, in the order of their blocks; hands each balance that differs from the one before
/// to `changed`. Answers the last one, and what is to be said of the token.
pub(in crate::store) fn replay(
    before: U256,
    flows: &[Flow],
    mut changed: impl FnMut(u64, &U256),
) -> (U256, u8) {
    let (mut balance, mut flags) = (before, 0);
    for flow in flows {
        let (sum, over) = balance.overflowing_add(flow.incoming);
        let sum = if over {
            flags |= OVERFLOWN;
            U256::MAX
        } else {
            sum
        };
        let after = sum.checked_sub(flow.outgoing).unwrap_or_else(|| {
            flags |= NEGATIVE;
            U256::ZERO
        });
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

/// Movements in the order of their blocks, one a block; answers whether a sum passed what fits.
pub(super) fn settle(flows: &mut Vec<Flow>) -> bool {
    if flows.is_sorted_by(|a, b| a.block < b.block) {
        return false;
    }
    flows.sort_by_key(|flow| flow.block);
    let mut over = false;
    flows.dedup_by(|next, kept| {
        let same = next.block == kept.block;
        if same {
            over |= kept.add(next);
        }
        same
    });
    over
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(block: u64, incoming: u64, outgoing: u64) -> Flow {
        Flow {
            block,
            incoming: U256::from(incoming),
            outgoing: U256::from(outgoing),
        }
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
        let most = Flow {
            block: 9,
            incoming: U256::MAX,
            outgoing: U256::ZERO,
        };
        assert_eq!(replay(U256::from(1), &[most], |_, _| {}), (U256::MAX, OVERFLOWN));
        assert_eq!(replay(U256::ZERO, &[most], |_, _| {}), (U256::MAX, 0));
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
        assert!(!settle(&mut flows));
        assert_eq!(flows, [flow(1, 6, 0), flow(3, 1, 2)]);
    }
}
