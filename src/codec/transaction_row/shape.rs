//! The flags of a row, and what follows from them.

use crate::model::Transaction;

// What a row has, and some of it. The status is said, and is success.
pub(super) const STATUS: u16 = 1;
pub(super) const SUCCESS: u16 = 1 << 1;
pub(super) const TO: u16 = 1 << 2;
pub(super) const GAS_PRICE: u16 = 1 << 3;
pub(super) const EFFECTIVE: u16 = 1 << 4;
/// The effective price is the gas price.
pub(super) const EFFECTIVE_SAME: u16 = 1 << 5;
pub(super) const CHAIN: u16 = 1 << 6;
/// Three bits: how `v` follows from its parity.
pub(super) const V_SHIFT: u32 = 7;
/// `yParity` is stated, and is that of `v`.
pub(super) const PARITY_SAME: u16 = 1 << 10;
pub(super) const MAX_FEE: u16 = 1 << 11;
pub(super) const MAX_PRIORITY_FEE: u16 = 1 << 12;
pub(super) const ACCESS_LIST: u16 = 1 << 13;
/// Something rare follows.
pub(super) const RARE: u16 = 1 << 14;
pub(super) const SHAPE_END: u16 = 1 << 15;

// What few rows have.
pub(super) const CREATED: u64 = 1;
pub(super) const ROOT: u64 = 1 << 1;
pub(super) const RECEIPT_KIND: u64 = 1 << 2;
pub(super) const PARITY: u64 = 1 << 3;
pub(super) const MAX_BLOB_FEE: u64 = 1 << 4;
pub(super) const BLOBS: u64 = 1 << 5;
pub(super) const AUTHORIZATIONS: u64 = 1 << 6;
pub(super) const BLOB_GAS: u64 = 1 << 7;
pub(super) const BLOB_PRICE: u64 = 1 << 8;
pub(super) const EXTRA: u64 = 1 << 9;
pub(super) const RECEIPT_EXTRA: u64 = 1 << 10;
pub(super) const RARE_END: u64 = 1 << 11;

/// How the `v` of a signature follows from its parity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum V {
    /// There is none.
    None = 0,
    /// It is the parity (EIP-2718 types).
    Parity = 1,
    /// 27 more (before EIP-155).
    Plain = 2,
    /// 35 and twice the chain id more (EIP-155).
    OfChain = 3,
    /// It stands for itself.
    Own = 4,
}

impl V {
    pub(super) const ALL: [Self; 5] = [Self::None, Self::Parity, Self::Plain, Self::OfChain, Self::Own];

    /// How it follows, and the parity.
    pub(super) fn of(transaction: &Transaction) -> (Self, bool) {
        let Some(v) = transaction.v else {
            return (Self::None, false);
        };
        for form in [Self::Parity, Self::Plain, Self::OfChain] {
            for odd in [false, true] {
                if form.value(transaction.chain_id, odd) == Some(v) {
                    return (form, odd);
                }
            }
        }
        (Self::Own, false)
    }

    pub(super) fn value(self, chain_id: Option<u64>, odd: bool) -> Option<u64> {
        let odd = u64::from(odd);
        match self {
            Self::None | Self::Own => None,
            Self::Parity => Some(odd),
            Self::Plain => Some(27 + odd),
            Self::OfChain => chain_id?.checked_mul(2)?.checked_add(35 + odd),
        }
    }
}
