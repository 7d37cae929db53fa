//! Comparing what events say with what a contract says. Pure.

use crate::model::{Address, BlockId, U256, ZeroAddress};
use crate::node::Told;
use crate::query::LedgerBalance;

/// What is compared of a token, all by the ledger of one snapshot.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) token: Address,
    /// The block after which supply and present balances are compared.
    pub(super) head: BlockId,
    /// The sums at that block.
    pub(super) present: Sums,
    /// Balances, present and past.
    pub(super) balances: Vec<LedgerBalance>,
    /// Sums of the past, of which the supply is compared.
    pub(super) past: Option<Sums>,
}

/// What was minted and what went to the zero address up to a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) block: u64,
    pub(super) minted: U256,
    pub(super) to_zero: U256,
}

/// What the contract said to a plan.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// `totalSupply()` at the head.
    pub(super) supply: Told<U256>,
    /// `balanceOf(0x0)` at the head.
    pub(super) zero: Told<U256>,
    /// `balanceOf` of the plan's balances; `None` where the node has no such state any more.
    pub(super) balances: Vec<Option<Told<U256>>>,
    /// `totalSupply()` of the plan's past block, likewise.
    pub(super) past: Option<Told<U256>>,
}

/// What a comparison shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conclusion {
    pub(super) zero_address: ZeroAddress,
    /// What does not agree; `None` when everything does.
    pub(super) differs: Option<String>,
    /// How many values were compared.
    pub(super) compared: u64,
}

impl Conclusion {
    /// What needs no question to be known.
    pub(super) const fn unasked(differs: Option<String>) -> Self {
        Self {
            zero_address: ZeroAddress::Burns,
            differs,
            compared: 0,
        }
    }
}

/// Compares. A supply or a zero address that the contract does not tell speaks neither for nor against the ledger
/// (ERC-721 has no supply and refuses the zero address); a holder's balance that it does not tell does, for then
/// nothing confirms the ledger.
pub(super) fn conclude(plan: &Plan, answers: &Answers) -> Conclusion {
    let mut compared = 0;
    let told = |told: &Told<U256>| match told {
        Told::Value(value) => Some(*value),
        Told::Nothing(_) => None,
    };
    let (supply, zero) = (told(&answers.supply), told(&answers.zero));
    let past = plan
        .past
        .and_then(|past| Some((past, answers.past.as_ref().and_then(told)?)));
    compared += [supply.is_some(), zero.is_some(), past.is_some()]
        .iter()
        .map(|&is| u64::from(is))
        .sum::<u64>();
    let explains = |zero_address: ZeroAddress| {
        let supply_is = |sums: &Sums| zero_address.supply(sums.minted, sums.to_zero);
        let (expected, zero_has) = (
            supply_is(&plan.present),
            zero_address.zero_holds(plan.present.to_zero),
        );
        let block = plan.present.block;
        if let Some(supply) = supply.filter(|supply| *supply != expected) {
            return Err(format!(
                "totalSupply after block {block} is {supply}, events give {expected}"
            ));
        }
        if let Some(zero) = zero.filter(|zero| *zero != zero_has) {
            return Err(format!(
                "the zero address has {zero} after block {block}, events give {zero_has}"
            ));
        }
        if let Some((past, supply)) = past {
            let (block, expected) = (past.block, supply_is(&past));
            if supply != expected {
                return Err(format!(
                    "totalSupply after block {block} was {supply}, events give {expected}"
                ));
            }
        }
        Ok(())
    };
    let burns = explains(ZeroAddress::Burns);
    let holds = burns.is_err() && explains(ZeroAddress::Holds).is_ok();
    let mut differs = burns.err().filter(|_| !holds);
    for (sample, answer) in plan.balances.iter().zip(&answers.balances) {
        let why = match answer {
            None => continue,
            Some(Told::Value(balance)) if *balance == sample.balance => None,
            Some(Told::Value(balance)) => Some(format!("is {balance}, events give {}", sample.balance)),
            Some(Told::Nothing(why)) => Some(format!("is not told: {why}")),
        };
        compared += 1;
        if let (None, Some(why)) = (&differs, why) {
            let LedgerBalance { holder, block, .. } = sample;
            differs = Some(format!("balanceOf({holder:?}) after block {block} {why}"));
        }
    }
    Conclusion {
        zero_address: if holds {
            ZeroAddress::Holds
        } else if plan.present.to_zero.is_zero() && supply.is_some() && zero.is_some() {
            // A contract that tells no more will tell no more of the first burn either.
            ZeroAddress::Untold
        } else {
            ZeroAddress::Burns
        },
        differs,
        compared,
    }
}

/// The balances of accounts with every (account, block) once, and without the zero address, which is compared apart.
pub(super) fn once_each(balances: Vec<LedgerBalance>) -> Vec<LedgerBalance> {
    let mut kept: Vec<LedgerBalance> = Vec::with_capacity(balances.len());
    for balance in balances {
        let same = |other: &LedgerBalance| other.holder == balance.holder && other.block == balance.block;
        if balance.holder != Address::ZERO && !kept.iter().any(same) {
            kept.push(balance);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::B256;

    fn number(value: u64) -> U256 {
        U256::from(value)
    }

    /// 100 minted, 30 sent to the zero address; one account with 70, 50 of them before block 5.
    fn plan() -> Plan {
        let holder = Address::repeat_byte(1);
        let balance = |block, balance| LedgerBalance {
            holder,
            block,
            balance: number(balance),
        };
        Plan {
            token: Address::repeat_byte(9),
            head: BlockId {
                number: 9,
                hash: B256::ZERO,
            },
            present: Sums {
                block: 9,
                minted: number(100),
                to_zero: number(30),
            },
            balances: vec![balance(9, 70), balance(4, 50)],
            past: Some(Sums {
                block: 4,
                minted: number(90),
                to_zero: number(30),
            }),
        }
    }

    fn answers(supply: u64, zero: u64, balances: [u64; 2], past: u64) -> Answers {
        let value = |value| Told::Value(number(value));
        Answers {
            supply: value(supply),
            zero: value(zero),
            balances: balances.map(|balance| Some(value(balance))).to_vec(),
            past: Some(value(past)),
        }
    }

    fn nothing() -> Told<U256> {
        Told::Nothing("execution reverted".to_owned())
    }

    #[test]
    fn both_conventions_are_told_apart() {
        let burns = conclude(&plan(), &answers(70, 0, [70, 50], 60));
        assert_eq!(
            (burns.zero_address, &burns.differs, burns.compared),
            (ZeroAddress::Burns, &None, 5)
        );
        let holds = conclude(&plan(), &answers(100, 30, [70, 50], 90));
        assert_eq!((holds.zero_address, &holds.differs), (ZeroAddress::Holds, &None));
        // Neither: the supply falls and the zero address holds, or the other way around.
        for odd in [
            answers(70, 30, [70, 50], 60),
            answers(100, 0, [70, 50], 90),
            answers(71, 0, [70, 50], 60),
            answers(70, 0, [70, 50], 61),
        ] {
            assert!(conclude(&plan(), &odd).differs.is_some(), "{odd:?}");
        }
    }

    #[test]
    fn what_is_not_told() {
        // ERC-721: no supply, no balance of the zero address.
        let mut mute = answers(0, 0, [70, 50], 0);
        (mute.supply, mute.zero, mute.past) = (nothing(), nothing(), Some(nothing()));
        let conclusion = conclude(&plan(), &mute);
        assert_eq!((conclusion.differs, conclusion.compared), (None, 2));
        // A node without the state of the past is no fault of the token.
        let mut pruned = answers(70, 0, [70, 0], 0);
        (pruned.balances[1], pruned.past) = (None, None);
        assert_eq!(conclude(&plan(), &pruned).differs, None);
        // A holder's balance that is not told leaves the ledger unconfirmed.
        let mut silent = answers(70, 0, [70, 50], 60);
        silent.balances[0] = Some(nothing());
        let differs = conclude(&plan(), &silent).differs.unwrap();
        assert!(differs.contains("is not told: execution reverted"), "{differs}");
    }

    #[test]
    fn a_wrong_balance_is_named() {
        let differs = conclude(&plan(), &answers(70, 0, [70, 51], 60)).differs.unwrap();
        assert_eq!(
            differs,
            format!(
                "balanceOf({:?}) after block 4 is 51, events give 50",
                Address::repeat_byte(1)
            )
        );
    }

    #[test]
    fn sums_beyond_their_bounds_do_not_overflow() {
        let mut plan = plan();
        (plan.present.minted, plan.present.to_zero) = (number(1), U256::MAX);
        assert_eq!(conclude(&plan, &answers(0, 0, [70, 50], 60)).differs, None);
    }
}
