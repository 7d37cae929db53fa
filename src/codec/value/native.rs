//! Rows of the ledger of native balances. Written by hand: there is one for every change of a balance.

use super::super::Corrupt;
use super::super::amount::{put_amount, put_sized_amount, read_amount, read_sized_amount};
use super::super::bytes::{Reader, put_varint};
use crate::model::{Address, U256};

/// Whether an account was ever funded, as far as the store can know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Funded {
    /// Not yet.
    #[default]
    Never,
    /// Its row of `funding` tells how.
    Here,
    /// Before the first stored block.
    Before,
}

impl Funded {
    const ALL: [Self; 3] = [Self::Never, Self::Here, Self::Before];
}

const FUNDED_MASK: u8 = 3;
const PARTICIPANT: u8 = 4;

/// What is known of an account now.
///
/// ```text
/// | flags u8: 0 never funded, 1 funded here, 2 funded before; 4 participant | first block varint, of a participant | balance |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountRow {
    /// The first block in which it took part: as sender, recipient, created contract, value-carrying participant of
    /// a trace, recipient of a withdrawal, or fee recipient; `None` for one that only holds something.
    pub first_block: Option<u64>,
    /// Balance, wei.
    pub balance: U256,
    /// Whether it was ever funded.
    pub funded: Funded,
}

impl AccountRow {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        let participant = if self.first_block.is_some() {
            PARTICIPANT
        } else {
            0
        };
        out.push(self.funded as u8 | participant);
        if let Some(block) = self.first_block {
            put_varint(&mut out, block);
        }
        put_amount(&mut out, &self.balance);
        out
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        const WHAT: Corrupt = Corrupt("account");
        let mut reader = Reader::new(bytes, "account");
        let flags = reader.byte()?;
        let funded = *Funded::ALL.get(usize::from(flags & FUNDED_MASK)).ok_or(WHAT)?;
        if flags & !(FUNDED_MASK | PARTICIPANT) != 0 {
            return Err(WHAT);
        }
        let first_block = match flags & PARTICIPANT {
            0 => None,
            _ => Some(reader.varint()?),
        };
        Ok(Self {
            first_block,
            balance: read_amount(reader.rest())?,
            funded,
        })
    }
}

/// How an account was funded first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FundingKind {
    /// By the genesis allocation.
    Genesis,
    /// By the value of a transaction.
    Transaction,
    /// By the value of a nested call, a creation or a self-destruct.
    Internal,
    /// As fee recipient of a block, or of an uncle.
    Reward,
    /// By a withdrawal.
    Withdrawal,
}

impl FundingKind {
    /// All kinds; the position is the stored code.
    pub const ALL: [Self; 5] = [
        Self::Genesis,
        Self::Transaction,
        Self::Internal,
        Self::Reward,
        Self::Withdrawal,
    ];

    /// The text of `kind` (A10).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Genesis => "genesis",
            Self::Transaction => "transaction",
            Self::Internal => "internal",
            Self::Reward => "reward",
            Self::Withdrawal => "withdrawal",
        }
    }
}

/// The first positive inflow of an account.
///
/// ```text
/// | kind u8 | block varint | of a transaction or internal: transaction ordinal varint, funder 20 bytes | value |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FundingRow {
    /// How.
    pub kind: FundingKind,
    /// In which block.
    pub block: u64,
    /// In which transaction (its ordinal) and by whom, where there is one.
    pub by: Option<(u64, Address)>,
    /// Wei.
    pub value: U256,
}

impl FundingRow {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(48);
        out.push(self.kind as u8);
        put_varint(&mut out, self.block);
        if let Some((transaction, funder)) = self.by {
            put_varint(&mut out, transaction);
            out.extend_from_slice(funder.as_slice());
        }
        put_amount(&mut out, &self.value);
        out
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes, "funding");
        let kind = *FundingKind::ALL
            .get(usize::from(reader.byte()?))
            .ok_or(reader.corrupt())?;
        let block = reader.varint()?;
        let by = match kind {
            FundingKind::Transaction | FundingKind::Internal => {
                Some((reader.varint()?, Address::from(reader.array::<20>()?)))
            }
            FundingKind::Genesis | FundingKind::Reward | FundingKind::Withdrawal => None,
        };
        Ok(Self {
            kind,
            block,
            by,
            value: read_amount(reader.rest())?,
        })
    }
}

/// Sums over the chain up to a block, wei.
///
/// ```text
/// | (length u8, amount) * 5: opening, issued, base fees burnt, blob fees burnt, destroyed |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SupplyRow {
    /// What accounts held before: the genesis allocation, and openings as far as they were met.
    pub opening: U256,
    /// Given by the protocol: rewards of blocks and uncles, withdrawals.
    pub issued: U256,
    /// Base fees burnt (EIP-1559).
    pub base_fees_burnt: U256,
    /// Blob fees burnt (EIP-4844).
    pub blob_fees_burnt: U256,
    /// Gone with contracts that ended.
    pub destroyed: U256,
}

impl SupplyRow {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        for amount in [
            self.opening,
            self.issued,
            self.base_fees_burnt,
            self.blob_fees_burnt,
            self.destroyed,
        ] {
            put_sized_amount(&mut out, &amount);
        }
        out
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes, "supply");
        let mut amount = || read_sized_amount(&mut reader);
        let row = Self {
            opening: amount()?,
            issued: amount()?,
            base_fees_burnt: amount()?,
            blob_fees_burnt: amount()?,
            destroyed: amount()?,
        };
        reader.end()?;
        Ok(row)
    }

    /// What all accounts together hold; `None` where the sums contradict each other.
    #[must_use]
    pub fn total(&self) -> Option<U256> {
        self.total_from(self.opening)
    }

    /// The same, where the accounts held `opening` before.
    #[must_use]
    pub fn total_from(&self, opening: U256) -> Option<U256> {
        let lost = self
            .base_fees_burnt
            .checked_add(self.blob_fees_burnt)?
            .checked_add(self.destroyed)?;
        opening.checked_add(self.issued)?.checked_sub(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::amount::amounts;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_round_trip(
            amount in amounts(), other in amounts(), block in proptest::option::of(any::<u64>()),
            funded in 0usize..3, kind in 0usize..5, by in any::<(u64, [u8; 20])>(),
        ) {
            let account = AccountRow { first_block: block, balance: amount, funded: Funded::ALL[funded] };
            prop_assert_eq!(AccountRow::decode(&account.encode()).unwrap(), account);
            let kind = FundingKind::ALL[kind];
            let by = (by.0, Address::from(by.1));
            let by = matches!(kind, FundingKind::Transaction | FundingKind::Internal).then_some(by);
            let funding = FundingRow { kind, block: block.unwrap_or(0), by, value: amount };
            prop_assert_eq!(FundingRow::decode(&funding.encode()).unwrap(), funding);
            let supply = SupplyRow { opening: amount, destroyed: other, ..SupplyRow::default() };
            prop_assert_eq!(SupplyRow::decode(&supply.encode()).unwrap(), supply);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (AccountRow::decode(&bytes), FundingRow::decode(&bytes), SupplyRow::decode(&bytes));
        }
    }

    #[test]
    fn golden_bytes() {
        let row = AccountRow {
            first_block: Some(300),
            balance: U256::from(0x1_0000),
            funded: Funded::Here,
        };
        assert_eq!(row.encode(), [5, 0xac, 0x02, 1, 0, 0]);
        assert_eq!(AccountRow::default().encode(), [0]);
        let supply = SupplyRow {
            issued: U256::from(258),
            ..SupplyRow::default()
        };
        assert_eq!(supply.encode(), [0, 2, 1, 2, 0, 0, 0]);
        assert_eq!(supply.total(), Some(U256::from(258)));
    }
}
