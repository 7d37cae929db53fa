//! Native balances of a seeded chain by brute force, and what a node would tell of those before the first block.

use super::chain::{BASE_FEE, ChainSpec};
use quarry::model::{Address, Bundle, U256};
use quarry::sync::derive::native::{NativeRules, touched};
use std::collections::BTreeMap;

/// The balances after each block of a chain that begins with block 0.
pub fn after_each(chain: &[Bundle]) -> Vec<BTreeMap<Address, U256>> {
    let text = std::str::from_utf8(&chain[0].block.header.extra_data).unwrap();
    let spec = ChainSpec::new(text.strip_prefix("seed ").unwrap().parse().unwrap());
    let mut balances: BTreeMap<Address, U256> = (0..spec.accounts)
        .map(|index| (spec.account(index), U256::from(10).pow(U256::from(24))))
        .collect();
    chain
        .iter()
        .map(|bundle| {
            apply(bundle, &mut balances);
            balances.clone()
        })
        .collect()
}

fn apply(bundle: &Bundle, balances: &mut BTreeMap<Address, U256>) {
    let mut give = |to: Address, value: U256| *balances.entry(to).or_default() += value;
    let mut taken: Vec<(Address, U256)> = Vec::new();
    for (transaction, receipt) in bundle.block.transactions.iter().zip(&bundle.receipts) {
        let gas = U256::from(receipt.gas_used);
        let price = U256::from(receipt.effective_gas_price.unwrap());
        taken.push((transaction.from, gas * price));
        give(
            bundle.block.header.beneficiary,
            gas * (price - U256::from(BASE_FEE)),
        );
    }
    for frame in bundle.traces.iter().flatten().flat_map(|trace| &trace.frames) {
        if !frame.reverted && !frame.value.is_zero() {
            taken.push((frame.from, frame.value));
            give(frame.to.unwrap(), frame.value);
        }
    }
    for withdrawal in bundle.block.withdrawals.iter().flatten() {
        give(
            withdrawal.address,
            U256::from(withdrawal.amount_gwei) * U256::from(1_000_000_000),
        );
    }
    for (from, value) in taken {
        *balances.get_mut(&from).unwrap() -= value;
    }
}

/// The blocks of a chain (block 0 first) with what a node tells of balances before `first_block`.
pub fn told(chain: &[Bundle], first_block: u64) -> Vec<Bundle> {
    let before = &after_each(&chain[..=first_block.saturating_sub(1) as usize]);
    let opening = before.last().unwrap();
    let told = |bundle: &Bundle| {
        let accounts = touched(bundle, &NativeRules::default()).into_iter();
        let openings = accounts.map(|account| (account, opening.get(&account).copied().unwrap_or_default()));
        Bundle {
            openings: bundle.traces.is_some().then(|| openings.collect()),
            ..bundle.clone()
        }
    };
    chain.iter().map(told).collect()
}
