//! Who gets what a block pays.

use alloy_primitives::{Bytes, Signature, U256};

use crate::codec::value::NativeFaultReason;
use crate::model::{Address, Header};
use crate::sync::encoding::header_hash;

/// Who seals the blocks that have difficulty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sealing {
    /// As the blocks look: miners, or the signers of clique.
    #[default]
    ByHeader,
    /// Signers (clique, EIP-225).
    Clique,
    /// Validators whose rewards a contract pays.
    Aura,
}

/// Bytes of a signature at the end of the extra data.
const SIGNATURE: usize = 65;
/// Bytes before signers and signature.
const VANITY: usize = 32;

/// The account that gets the fees of a block.
pub(super) fn fee_recipient(header: &Header, sealing: Sealing) -> Result<Address, NativeFaultReason> {
    match sealing {
        Sealing::Aura => Err(NativeFaultReason::Aura),
        _ if header.difficulty.is_zero() => Ok(header.beneficiary),
        Sealing::Clique => clique_signer(header).ok_or(NativeFaultReason::Sealer),
        Sealing::ByHeader if looks_like_clique(header) => {
            let signer = clique_signer(header).ok_or(NativeFaultReason::Sealer)?;
            // Chains that took clique further (BSC) sign something else, and name who sealed the block where clique names
            // whom it votes out: which of them it is only a genesis file tells.
            let is_unclear = header.nonce.is_zero() && !header.beneficiary.is_zero();
            match is_unclear && signer != header.beneficiary {
                true => Err(NativeFaultReason::Sealer),
                false => Ok(signer),
            }
        }
        Sealing::ByHeader => Ok(header.beneficiary),
    }
}

/// Difficulty 1 or 2, a nonce of all zeros or ones, no mix hash, and room for a signature: no miner finds that.
fn looks_like_clique(header: &Header) -> bool {
    let vote = header.nonce.0;
    header.difficulty <= U256::from(2)
        && header.mix_hash.is_zero()
        && (vote == [0; 8] || vote == [0xff; 8])
        && header.extra_data.len() >= VANITY + SIGNATURE
}

/// Who signed the header: the signature is over the header without it.
fn clique_signer(header: &Header) -> Option<Address> {
    let (signed, seal) = header.extra_data.split_last_chunk::<SIGNATURE>()?;
    let bare = Header {
        extra_data: Bytes::copy_from_slice(signed),
        ..header.clone()
    };
    let hash = header_hash(&bare, &mut Vec::with_capacity(640));
    let (words, parity) = seal.split_at(64);
    let (r, s) = words.split_at(32);
    let number = |bytes| U256::try_from_be_slice(bytes);
    let signature = Signature::new(number(r)?, number(s)?, parity == [1]);
    signature.recover_address_from_prehash(&hash).ok()
}
