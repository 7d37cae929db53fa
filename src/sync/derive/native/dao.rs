//! The DAO fork (EIP-779): at its first block, before any transaction, the balances of these accounts are moved.

use crate::model::Address;

const LIST: &str = include_str!("dao_accounts.txt");

fn listed() -> impl Iterator<Item = Address> {
    LIST.lines().filter_map(|line| line.parse().ok())
}

/// Where the balances go.
pub(super) fn refund_contract() -> Address {
    listed().next().unwrap_or_default()
}

/// The accounts that are drained.
pub(super) fn drained() -> impl Iterator<Item = Address> {
    listed().skip(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use alloy_primitives::address;

    use super::*;

    #[test]
    fn the_list_is_the_one_of_the_fork() {
        assert_eq!(
            refund_contract(),
            address!("0xbf4ed7b27f1d666546e30d74d50d173d20bca754")
        );
        let drained: BTreeSet<_> = drained().collect();
        assert_eq!(drained.len(), 116);
        // The DAO and its extra balance account.
        assert!(drained.contains(&address!("0xbb9bc244d798123fde783fcc1c72d3bb8c189413")));
        assert!(drained.contains(&address!("0x807640a13483f8ac783c557fcdf27be11ea4ac7a")));
        assert_eq!(LIST.lines().filter(|line| !line.starts_with('#')).count(), 117);
    }
}
