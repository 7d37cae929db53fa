//! Who signed an EIP-7702 authorization.

use alloy_primitives::{Signature, U256, uint};

use super::encoding::authorization_hash;
use crate::model::{Address, Authorization};

/// Half of the order of secp256k1: a greater `s` is not accepted (EIP-2).
const S_MAX: U256 = uint!(0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0_U256);

/// The account whose key signed `auth`; `None` when the signature is not one that the chain would accept.
///
/// It says nothing of whether the tuple took effect: that also depends on the chain id, the nonce and the
/// code of the account.
#[must_use]
pub fn authority(auth: &Authorization) -> Option<Address> {
    if auth.y_parity > 1 || S_MAX < auth.s {
        return None;
    }
    let signature = Signature::new(auth.r, auth.s, auth.y_parity == 1);
    signature
        .recover_address_from_prehash(&authorization_hash(auth))
        .ok()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::address;

    use super::*;

    /// Order of secp256k1.
    const N: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

    /// The tuple of transaction 0x99f7e58a...c223 of the execution-apis chain.
    fn known() -> Authorization {
        Authorization {
            chain_id: U256::from(0x000c_72dd_9d5e_883e_u64),
            address: address!("0x8c2319620d7c348bb4e2b2a0b230c81f310e9561"),
            nonce: 0,
            y_parity: 0,
            r: uint!(0xf17d59102e9ebed035d1bd77bc668b170eb1d38edef6e7d971857d85781d68fe_U256),
            s: uint!(0x193dbdc8dea2fc194da75febbd4de9689b625eecd1e4ca30e27b45339af22572_U256),
        }
    }

    #[test]
    fn the_authority_of_a_known_tuple_is_recovered() {
        let expected = address!("0xeda8645ba6948855e3b3cd596bbb07596d59c603");
        assert_eq!(authority(&known()), Some(expected));
        let other_nonce = Authorization { nonce: 1, ..known() };
        assert_ne!(authority(&other_nonce), Some(expected));
    }

    #[test]
    fn signatures_outside_the_rules_have_no_authority() {
        let high_s = Authorization {
            s: N - known().s,
            y_parity: 1,
            ..known()
        };
        assert_eq!(authority(&high_s), None);
        assert_eq!(
            authority(&Authorization {
                y_parity: 2,
                ..known()
            }),
            None
        );
        assert_eq!(
            authority(&Authorization {
                y_parity: 27,
                ..known()
            }),
            None
        );
        assert_eq!(
            authority(&Authorization {
                r: U256::ZERO,
                ..known()
            }),
            None
        );
        assert_eq!(
            authority(&Authorization {
                s: U256::ZERO,
                ..known()
            }),
            None
        );
        assert_eq!(authority(&Authorization { r: N, ..known() }), None);
    }
}
