//! Authorizations by which accounts delegate (EIP-7702).

use alloy_primitives::{keccak256, uint};
use quarry::model::{Address, Authorization, U256};

/// The tuple by which the account with key `key` delegates to an address on a chain of a small id, with a nonce below 128, signed with the
/// random number 1.
pub(crate) fn delegation(chain_id: u8, key: u64, address: Address, nonce: u8) -> Authorization {
    const ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);
    // The base point's x; its y is even.
    const R: U256 = uint!(0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798_U256);
    // 0x05, and the list of chain id, address and nonce.
    let mut text = vec![0x05, 0xd7, chain_id, 0x94];
    text.extend_from_slice(address.as_slice());
    text.push(if nonce == 0 { 0x80 } else { nonce });
    let hash = U256::from_be_bytes(keccak256(text).0);
    let s = (hash % ORDER).add_mod(R.mul_mod(U256::from(key), ORDER), ORDER);
    let low = s <= ORDER / U256::from(2);
    Authorization {
        chain_id: U256::from(chain_id),
        address,
        nonce: nonce.into(),
        y_parity: u8::from(!low),
        r: R,
        s: if low { s } else { ORDER - s },
    }
}
