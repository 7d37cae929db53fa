//! Rows of transactions as lists need them, read past what lists do not show.
//!
//! It reads what [`super::transaction`] writes through bincode, field by field and without making anything: a page has
//! ten thousand of them. Integers of more than a byte are bincode's varints; a test holds it against bincode.

use super::super::Corrupt;
use super::super::bytes::Reader;
use super::fees::{FeeRow, blob_gas_used, l1_fee};
use crate::model::{Address, U256};

/// A transaction's row as lists need it: what is long is borrowed, signatures and access lists are passed over.
#[derive(Clone, Copy, Debug)]
pub struct TransactionSlice<'a> {
    /// EIP-2718 type.
    pub kind: u8,
    /// What the receipt says became of it; `None` before Byzantium.
    pub status: Option<bool>,
    /// Sender's nonce.
    pub nonce: u64,
    /// Sender.
    pub from: Address,
    /// Recipient.
    pub to: Option<Address>,
    /// Value in wei.
    pub value: U256,
    /// Gas limit.
    pub gas: u64,
    /// Gas used by the block up to and with this transaction.
    pub cumulative_gas_used: u64,
    /// Gas used and what it cost.
    pub fees: FeeRow,
    /// The contract that the receipt names.
    pub contract_address: Option<Address>,
    /// Call data or init code.
    pub input: &'a [u8],
}

impl<'a> TransactionSlice<'a> {
    /// Reads a transaction's row.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        let mut row = Fields(Reader::new(bytes, "transaction"));
        let kind = row.0.byte()?;
        let status = row.optional(Fields::flag)?;
        let nonce = row.u64()?;
        let from = row.address()?;
        let to = row.optional(Fields::address)?;
        let value = row.amount()?;
        let gas = row.u64()?;
        let gas_price = row.optional(Fields::u128)?;
        row.optional(Fields::u64)?; // chain id
        row.optional(Fields::u64)?; // v
        row.bytes()?; // r
        row.bytes()?; // s
        let cumulative_gas_used = row.u64()?;
        let mut fees = FeeRow {
            gas_used: row.u64()?,
            effective_gas_price: row.optional(Fields::u128)?,
            gas_price,
            ..FeeRow::default()
        };
        let contract_address = row.optional(Fields::address)?;
        row.optional(|row| row.0.array::<32>())?; // root
        row.0.byte()?; // kind of the receipt
        row.u64()?; // index of the first log
        row.u64()?; // logs
        row.optional(|row| row.typed(&mut fees))?;
        let input = row.bytes()?;
        row.0.end()?;
        Ok(Self {
            kind,
            status,
            nonce,
            from,
            to,
            value,
            gas,
            cumulative_gas_used,
            fees,
            contract_address,
            input,
        })
    }
}

/// Fields as bincode writes them.
struct Fields<'a>(Reader<'a>);

impl<'a> Fields<'a> {
    #[inline]
    fn flag(&mut self) -> Result<bool, Corrupt> {
        match self.0.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.0.corrupt()),
        }
    }

    #[inline]
    fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Corrupt>,
    ) -> Result<Option<T>, Corrupt> {
        if self.flag()? {
            read(self).map(Some)
        } else {
            Ok(None)
        }
    }

    #[inline]
    fn u64(&mut self) -> Result<u64, Corrupt> {
        match self.0.byte()? {
            small @ ..=250 => Ok(u64::from(small)),
            251 => self.0.array().map(|bytes| u64::from(u16::from_le_bytes(bytes))),
            252 => self.0.array().map(|bytes| u64::from(u32::from_le_bytes(bytes))),
            253 => self.0.array().map(u64::from_le_bytes),
            _ => Err(self.0.corrupt()),
        }
    }

    #[inline]
    fn u128(&mut self) -> Result<u128, Corrupt> {
        if let Some((254, _)) = self.0.rest().split_first() {
            self.0.byte()?;
            return self.0.array().map(u128::from_le_bytes);
        }
        self.u64().map(u128::from)
    }

    #[inline]
    fn len(&mut self) -> Result<usize, Corrupt> {
        usize::try_from(self.u64()?).map_err(|_| self.0.corrupt())
    }

    #[inline]
    fn bytes(&mut self) -> Result<&'a [u8], Corrupt> {
        let len = self.len()?;
        self.0.take(len)
    }

    #[inline]
    fn address(&mut self) -> Result<Address, Corrupt> {
        self.0.array().map(Address::new)
    }

    /// A number without its leading zero bytes.
    #[inline]
    fn amount(&mut self) -> Result<U256, Corrupt> {
        let bytes = self.bytes()?;
        let mut word = [0; 32];
        let start = word.len().checked_sub(bytes.len()).ok_or(self.0.corrupt())?;
        word.get_mut(start..).unwrap_or(&mut []).copy_from_slice(bytes);
        Ok(U256::from_be_bytes(word))
    }

    /// Passes over `count` items of `size` bytes.
    fn pass(&mut self, count: usize, size: usize) -> Result<(), Corrupt> {
        let len = count.checked_mul(size).ok_or(self.0.corrupt())?;
        self.0.take(len).map(|_| ())
    }

    /// What only some types of transactions have: fees, some of them in fields of the receipt that we do not know.
    fn typed(&mut self, fees: &mut FeeRow) -> Result<(), Corrupt> {
        fees.max_fee_per_gas = self.optional(Self::u128)?;
        fees.max_priority_fee_per_gas = self.optional(Self::u128)?;
        self.optional(Self::u128)?; // most per blob gas
        if self.flag()? {
            for _ in 0..self.len()? {
                self.address()?;
                let keys = self.len()?;
                self.pass(keys, 32)?;
            }
        }
        let blobs = self.optional(|row| {
            let blobs = row.len()?;
            row.pass(blobs, 32)?;
            Ok(blobs)
        })?;
        if self.flag()? {
            for _ in 0..self.len()? {
                self.bytes()?; // chain id
                self.address()?;
                self.u64()?; // nonce
                self.0.byte()?; // parity
                self.bytes()?; // r
                self.bytes()?; // s
            }
        }
        self.optional(|row| row.0.byte())?; // parity
        fees.blob_gas_used = blob_gas_used(self.optional(Self::u64)?, blobs.unwrap_or(0));
        fees.blob_gas_price = self.optional(Self::u128)?;
        self.optional(Self::bytes)?; // what we do not know of the transaction
        if let Some(extra) = self.optional(Self::bytes)? {
            let extra = std::str::from_utf8(extra).map_err(|_| self.0.corrupt())?;
            fees.below = l1_fee(extra).unwrap_or_default();
        }
        Ok(())
    }
}

/// Reads what a transaction's row says of its fee; copies nothing of the rest.
pub fn decode_fees(bytes: &[u8]) -> Result<FeeRow, Corrupt> {
    TransactionSlice::decode(bytes).map(|row| row.fees)
}

#[cfg(test)]
mod tests {
    use super::super::{decode_transaction, encode_transaction};
    use super::*;
    use crate::model::{AccessListItem, Authorization, B256, Log, Receipt, Transaction};

    /// An integer of any length.
    fn number(random: &mut fastrand::Rng) -> u64 {
        random.u64(..) >> random.u32(..64)
    }

    fn wide(random: &mut fastrand::Rng) -> u128 {
        random.u128(..) >> random.u32(..128)
    }

    fn amount(random: &mut fastrand::Rng) -> U256 {
        U256::from_limbs([(); 4].map(|()| random.u64(..))) >> random.usize(..256)
    }

    fn some<T>(random: &mut fastrand::Rng, make: impl FnOnce(&mut fastrand::Rng) -> T) -> Option<T> {
        random.bool().then(|| make(random))
    }

    fn address(random: &mut fastrand::Rng) -> Address {
        Address::repeat_byte(random.u8(..))
    }

    fn words(random: &mut fastrand::Rng) -> Vec<B256> {
        vec![B256::repeat_byte(7); random.usize(..4)]
    }

    fn access(random: &mut fastrand::Rng) -> Vec<AccessListItem> {
        let item = |random: &mut fastrand::Rng| AccessListItem {
            address: address(random),
            storage_keys: words(random),
        };
        (0..random.usize(..3)).map(|_| item(random)).collect()
    }

    fn authorizations(random: &mut fastrand::Rng) -> Vec<Authorization> {
        let item = |random: &mut fastrand::Rng| Authorization {
            chain_id: amount(random),
            address: address(random),
            nonce: number(random),
            y_parity: random.u8(..),
            r: amount(random),
            s: amount(random),
        };
        (0..random.usize(..3)).map(|_| item(random)).collect()
    }

    fn transaction(random: &mut fastrand::Rng) -> Transaction {
        let plain = Transaction {
            kind: 0,
            nonce: number(random),
            from: address(random),
            to: some(random, address),
            value: amount(random),
            gas: number(random),
            gas_price: some(random, wide),
            chain_id: some(random, number),
            v: some(random, number),
            r: amount(random),
            s: amount(random),
            input: vec![5; random.usize(..600)].into(),
            ..Transaction::default()
        };
        if random.u8(..) < 80 {
            return plain;
        }
        Transaction {
            kind: random.u8(..),
            max_fee_per_gas: some(random, wide),
            max_priority_fee_per_gas: some(random, wide),
            max_fee_per_blob_gas: some(random, wide),
            access_list: some(random, access),
            blob_versioned_hashes: some(random, words),
            authorization_list: some(random, authorizations),
            y_parity: some(random, |random| random.u8(..)),
            extra: some(random, |_| "{\"a\":1}".to_owned()),
            ..plain
        }
    }

    fn receipt(random: &mut fastrand::Rng) -> Receipt {
        Receipt {
            kind: random.u8(..),
            status: some(random, |random| random.bool()),
            root: some(random, |_| B256::repeat_byte(3)),
            cumulative_gas_used: number(random),
            gas_used: number(random),
            effective_gas_price: some(random, wide),
            contract_address: some(random, address),
            blob_gas_used: some(random, number),
            blob_gas_price: some(random, wide),
            extra: some(random, |_| "{\"l1Fee\":\"0x1f\"}".to_owned()),
            logs: vec![Log::default(); random.usize(..300)],
            ..Receipt::default()
        }
    }

    #[test]
    fn it_reads_what_bincode_reads() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2_000 {
            let (sent, got) = (transaction(&mut random), receipt(&mut random));
            let mut bytes = Vec::new();
            encode_transaction(&sent, &got, random.u32(..), &mut bytes);
            let row = decode_transaction(&bytes).unwrap();
            let slice = TransactionSlice::decode(&bytes).unwrap();
            assert_eq!(slice.fees, FeeRow::new(&row.transaction, &row.receipt));
            assert_eq!(decode_fees(&bytes), Ok(slice.fees));
            let (transaction, receipt) = (row.transaction, row.receipt);
            assert_eq!(
                (
                    slice.kind,
                    slice.nonce,
                    slice.from,
                    slice.to,
                    slice.value,
                    slice.gas
                ),
                (
                    transaction.kind,
                    transaction.nonce,
                    transaction.from,
                    transaction.to,
                    transaction.value,
                    transaction.gas
                )
            );
            assert_eq!(slice.input, &transaction.input[..]);
            assert_eq!(
                (slice.status, slice.cumulative_gas_used, slice.contract_address),
                (
                    receipt.status,
                    receipt.cumulative_gas_used,
                    receipt.contract_address
                )
            );
            // What ends early or goes on is no row.
            let cut = random.usize(..bytes.len());
            assert!(TransactionSlice::decode(&bytes[..cut]).is_err());
            bytes.push(0);
            assert!(TransactionSlice::decode(&bytes).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.usize(..200))
                .map(|_| {
                    if random.bool() {
                        random.u8(..3)
                    } else {
                        random.u8(..)
                    }
                })
                .collect();
            let _ = TransactionSlice::decode(&bytes);
        }
    }
}
