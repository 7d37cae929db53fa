//! Comparing what events say with what a contract says. Pure.

use std::collections::BTreeMap;

use crate::model::{Address, B256, BlockId, U256, ZeroAddress};
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
    /// What differed once and is looked at again.
    pub(super) suspect: Option<Suspect>,
    /// The hashes of the blocks of all these.
    pub(super) hashes: BTreeMap<u64, B256>,
}

/// What differed once: supply and zero address at its block, and the balance where it was one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspect {
    pub(super) sums: Sums,
    pub(super) balance: Option<LedgerBalance>,
}

impl Plan {
    /// The block of a number among those that are asked about.
    pub(super) fn block(&self, number: u64) -> BlockId {
        let hash = self.hashes.get(&number).copied();
        BlockId {
            number,
            hash: hash.unwrap_or_default(),
        }
    }
}

/// What was minted and what went to the zero address up to a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) block: u64,
    pub(super) minted: U256,
    pub(super) to_zero: U256,
}

/// What the contract said to a plan. What speaks of the past is `None` where the node has no such state any more.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// `totalSupply()` at the head.
    pub(super) supply: Told<U256>,
    /// `balanceOf(0x0)` at the head.
    pub(super) zero: Told<U256>,
    /// `balanceOf` of the plan's balances.
    pub(super) balances: Vec<Option<Told<U256>>>,
    /// `totalSupply()` of the plan's past block.
    pub(super) past: Option<Told<U256>>,
    /// What was said to the plan's suspect.
    pub(super) suspect: SuspectAnswers,
}

/// What the contract said of what differed once.
#[derive(Clone, Debug, Default)]
pub(super) struct SuspectAnswers {
    pub(super) supply: Option<Told<U256>>,
    pub(super) zero: Option<Told<U256>>,
    pub(super) balance: Option<Told<U256>>,
}

/// What a comparison shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conclusion {
    pub(super) zero_address: ZeroAddress,
    /// What does not agree; `None` when everything does.
    pub(super) differs: Option<Differs>,
    /// Nothing is left of what differed once: there was a suspect, it was told of, and it agrees.
    pub(super) is_cleared: bool,
    /// How many values were compared.
    pub(super) compared: u64,
}

/// What does not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Differs {
    pub(super) why: String,
    /// After which block; `None` where no comparison showed it.
    pub(super) block: Option<u64>,
    /// Whose balance; `None` for the supply and the zero address.
    pub(super) holder: Option<Address>,
}

impl Conclusion {
    /// What needs no question to be known.
    pub(super) fn unasked(why: Option<&str>) -> Self {
        Self {
            zero_address: ZeroAddress::Burns,
            differs: why.map(|why| Differs {
                why: why.to_owned(),
                block: None,
                holder: None,
            }),
            is_cleared: false,
            compared: 0,
        }
    }
}

/// A number that the contract told and the sums explain or not.
struct Claim {
    sums: Sums,
    told: U256,
    is_supply: bool,
}

impl Claim {
    /// What the sums give under a convention for the zero address.
    fn expected(&self, zero_address: ZeroAddress) -> U256 {
        if self.is_supply {
            zero_address.supply(self.sums.minted, self.sums.to_zero)
        } else {
            zero_address.zero_holds(self.sums.to_zero)
        }
    }

    fn explained(&self, zero_address: ZeroAddress) -> Result<(), Differs> {
        let (told, expected, block) = (self.told, self.expected(zero_address), self.sums.block);
        if told == expected {
            return Ok(());
        }
        Err(Differs {
            why: if self.is_supply {
                format!("totalSupply after block {block} is {told}, events give {expected}")
            } else {
                format!("the zero address has {told} after block {block}, events give {expected}")
            },
            block: Some(block),
            holder: None,
        })
    }
}

/// The value, where there is one.
const fn value(told: &Told<U256>) -> Option<U256> {
    match told {
        Told::Value(value) => Some(*value),
        Told::Nothing(_) => None,
    }
}

/// Compares. A supply or a zero address that the contract does not tell speaks neither for nor against the ledger
/// (ERC-721 has no supply and refuses the zero address); a holder's balance that it does not tell does, for then
/// nothing confirms the ledger. What differed once comes first: where it differs again, that is what is kept.
pub(super) fn conclude(plan: &Plan, answers: &Answers) -> Conclusion {
    let (supply, zero) = (value(&answers.supply), value(&answers.zero));
    let (again, past) = (&answers.suspect, answers.past.as_ref());
    let suspect = plan.suspect.as_ref();
    let at_suspect = suspect.map(|suspect| suspect.sums);
    let claims = [
        (at_suspect, again.supply.as_ref(), true),
        (at_suspect, again.zero.as_ref(), false),
        (Some(plan.present), Some(&answers.supply), true),
        (Some(plan.present), Some(&answers.zero), false),
        (plan.past, past, true),
    ];
    let claims: Vec<Claim> = claims
        .into_iter()
        .filter_map(|(sums, told, is_supply)| {
            Some(Claim {
                sums: sums?,
                told: value(told?)?,
                is_supply,
            })
        })
        .collect();
    let mut compared = claims.len() as u64;
    let explains = |zero: ZeroAddress| claims.iter().try_for_each(|claim| claim.explained(zero));
    let burns = explains(ZeroAddress::Burns);
    let holds = burns.is_err() && explains(ZeroAddress::Holds).is_ok();
    let mut differs = burns.err().filter(|_| !holds);
    let once = suspect.and_then(|suspect| suspect.balance.as_ref());
    let balances = once.map(|balance| (balance, &again.balance));
    for (sample, answer) in balances
        .into_iter()
        .chain(plan.balances.iter().zip(&answers.balances))
    {
        let why = match answer {
            None => continue,
            Some(Told::Value(balance)) if *balance == sample.balance => None,
            Some(Told::Value(balance)) => Some(format!("is {balance}, events give {}", sample.balance)),
            Some(Told::Nothing(why)) => Some(format!("is not told: {why}")),
        };
        compared += 1;
        if let (None, Some(why)) = (&differs, why) {
            let LedgerBalance { holder, block, .. } = *sample;
            differs = Some(Differs {
                why: format!("balanceOf({holder:?}) after block {block} {why}"),
                block: Some(block),
                holder: Some(holder),
            });
        }
    }
    let is_told = match suspect {
        None => false,
        // The very balance must be told, or one of the two others.
        Some(Suspect { balance: Some(_), .. }) => again.balance.is_some(),
        Some(Suspect { balance: None, .. }) => {
            let told = |told: &Option<Told<U256>>| told.as_ref().and_then(value).is_some();
            again.supply.is_some() && again.zero.is_some() && (told(&again.supply) || told(&again.zero))
        }
    };
    Conclusion {
        zero_address: if holds {
            ZeroAddress::Holds
        } else if plan.present.to_zero.is_zero() && (supply.is_some() || zero.is_some()) {
            // Either of the two will tell once something is sent there. A contract that tells neither will not.
            ZeroAddress::Untold
        } else {
            ZeroAddress::Burns
        },
        is_cleared: is_told && differs.is_none(),
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
            suspect: None,
            hashes: BTreeMap::new(),
        }
    }

    fn answers(supply: u64, zero: u64, balances: [u64; 2], past: u64) -> Answers {
        let value = |value| Told::Value(number(value));
        Answers {
            supply: value(supply),
            zero: value(zero),
            balances: balances.map(|balance| Some(value(balance))).to_vec(),
            past: Some(value(past)),
            suspect: SuspectAnswers::default(),
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
        // Nothing was sent to the zero address yet: one of the two is enough to tell once it is.
        let mut unburnt = plan();
        (unburnt.present.to_zero, unburnt.past) = (U256::ZERO, None);
        mute.past = None;
        for (supply, zero, expected) in [
            (nothing(), nothing(), ZeroAddress::Burns),
            (Told::Value(number(100)), nothing(), ZeroAddress::Untold),
            (nothing(), Told::Value(U256::ZERO), ZeroAddress::Untold),
        ] {
            (mute.supply, mute.zero) = (supply, zero);
            let conclusion = conclude(&unburnt, &mute);
            assert_eq!((conclusion.zero_address, conclusion.differs), (expected, None));
        }
        // A node without the state of the past is no fault of the token.
        let mut pruned = answers(70, 0, [70, 0], 0);
        (pruned.balances[1], pruned.past) = (None, None);
        assert_eq!(conclude(&plan(), &pruned).differs, None);
        // A holder's balance that is not told leaves the ledger unconfirmed.
        let mut silent = answers(70, 0, [70, 50], 60);
        silent.balances[0] = Some(nothing());
        let differs = conclude(&plan(), &silent).differs.unwrap();
        assert!(
            differs.why.contains("is not told: execution reverted"),
            "{differs:?}"
        );
    }

    #[test]
    fn a_wrong_balance_is_named() {
        let differs = conclude(&plan(), &answers(70, 0, [70, 51], 60)).differs.unwrap();
        assert_eq!(
            (differs.block, differs.holder),
            (Some(4), Some(Address::repeat_byte(1)))
        );
        assert_eq!(
            differs.why,
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

    /// A plan that looks again at a balance and at the sums of block 4, and everything as events say.
    fn again(holder: bool) -> (Plan, Answers) {
        let (mut plan, mut answers) = (plan(), answers(70, 0, [70, 50], 60));
        plan.suspect = Some(Suspect {
            sums: plan.past.unwrap(),
            balance: holder.then(|| plan.balances[1]),
        });
        let value = |value| Some(Told::Value(number(value)));
        answers.suspect = SuspectAnswers {
            supply: value(60),
            zero: value(0),
            balance: holder.then(|| Told::Value(number(50))),
        };
        (plan, answers)
    }

    #[test]
    fn what_differed_once_is_cleared_by_its_own_block_alone() {
        for holder in [true, false] {
            let (plan, answers) = again(holder);
            let clear = conclude(&plan, &answers);
            assert!(clear.is_cleared && clear.differs.is_none(), "{clear:?}");
            // Nobody looked again.
            let mut first = plan.clone();
            first.suspect = None;
            assert!(!conclude(&first, &answers).is_cleared);
            // The state is gone: nothing speaks against the token any more, and nothing for it.
            let mut pruned = answers.clone();
            pruned.suspect = SuspectAnswers::default();
            let pruned = conclude(&plan, &pruned);
            assert_eq!((pruned.differs, pruned.is_cleared), (None, false));
            // Something else differs.
            let mut other = answers.clone();
            other.balances[0] = Some(Told::Value(number(71)));
            assert!(!conclude(&plan, &other).is_cleared);
        }
        let (plan, mut answers) = again(true);
        answers.suspect.balance = Some(Told::Value(number(51)));
        // It is named before what differs elsewhere.
        answers.balances[0] = Some(Told::Value(number(71)));
        let differs = conclude(&plan, &answers).differs.unwrap();
        assert_eq!(differs.block, Some(4));
        let (plan, mut answers) = again(false);
        answers.suspect.supply = Some(Told::Value(number(61)));
        answers.supply = Told::Value(number(71));
        let differs = conclude(&plan, &answers).differs.unwrap();
        assert_eq!((differs.block, differs.holder), (Some(4), None));
        // A contract that tells neither any more clears nothing.
        (answers.suspect.supply, answers.suspect.zero) = (Some(nothing()), Some(nothing()));
        answers.supply = Told::Value(number(70));
        assert!(!conclude(&plan, &answers).is_cleared);
    }
}
