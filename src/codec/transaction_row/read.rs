//! Reading a row, once for whole transactions and for lists.

use std::ops::Range;

use super::super::Corrupt;
use super::super::bytes::{Reader, read_word};
use super::shape::{
    ACCESS_LIST, AUTHORIZATIONS, BLOB_GAS, BLOB_PRICE, BLOBS, CHAIN, CREATED, EFFECTIVE, EFFECTIVE_SAME,
    EXTRA, GAS_PRICE, MAX_BLOB_FEE, MAX_FEE, MAX_PRIORITY_FEE, PARITY, PARITY_SAME, RARE, RARE_END,
    RECEIPT_EXTRA, RECEIPT_KIND, ROOT, SHAPE_END, STATUS, SUCCESS, TO, V, V_SHIFT,
};
use super::{CallData, ROW};
use crate::model::{Address, Authorization, B256, U256};

/// A row, its lists where they stand.
pub(super) struct Stored<'a> {
    pub(super) kind: u8,
    pub(super) status: Option<bool>,
    pub(super) nonce: u64,
    pub(super) from: Address,
    pub(super) to: Option<Address>,
    pub(super) value: U256,
    pub(super) gas: u64,
    pub(super) gas_price: Option<u128>,
    pub(super) chain_id: Option<u64>,
    pub(super) v: Option<u64>,
    pub(super) y_parity: Option<u8>,
    pub(super) cumulative_gas_used: u64,
    pub(super) gas_used: u64,
    pub(super) effective_gas_price: Option<u128>,
    pub(super) contract_address: Option<Address>,
    pub(super) root: Option<B256>,
    pub(super) receipt_kind: u8,
    pub(super) logs: Range<u32>,
    pub(super) max_fee_per_gas: Option<u128>,
    pub(super) max_priority_fee_per_gas: Option<u128>,
    pub(super) max_fee_per_blob_gas: Option<u128>,
    pub(super) access_list: Option<Reader<'a>>,
    pub(super) blobs: Option<&'a [[u8; 32]]>,
    pub(super) authorizations: Option<Reader<'a>>,
    pub(super) blob_gas_used: Option<u64>,
    pub(super) blob_gas_price: Option<u128>,
    pub(super) extra: Option<&'a str>,
    pub(super) receipt_extra: Option<&'a str>,
    pub(super) input: CallData<'a>,
}

/// Reads what is there.
#[inline(always)]
fn some<T>(is: bool, read: impl FnOnce() -> Result<T, Corrupt>) -> Result<Option<T>, Corrupt> {
    if is { read().map(Some) } else { Ok(None) }
}

impl<'a> Stored<'a> {
    /// Reads a row. Inlined, so that who wants little of it does not pay for the rest.
    #[inline(always)]
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        let mut row = Reader::new(bytes, ROW);
        let row = &mut row;
        let nonce = row.varint()?;
        let from = address(row)?;
        let gas_and_parity = row.varint_u128()?;
        let odd = gas_and_parity & 1 != 0;
        let cumulative_gas_used = u64::try_from(gas_and_parity >> 1).map_err(|_| row.corrupt())?;
        let first_log = row.varint_u32()?;
        let gas_used = row.varint()?;
        let logs_end = first_log.checked_add(row.varint_u32()?).ok_or(row.corrupt())?;
        let gas = row.varint()?;

        let shape = u16::from_le_bytes(row.array()?);
        let rare = if shape & RARE == 0 { 0 } else { row.varint()? };
        let has = |bit: u16| shape & bit != 0;
        let has_rare = |bit: u64| rare & bit != 0;
        let v = V::ALL.get(usize::from(shape >> V_SHIFT & 7)).copied();
        let contradicts = (has(EFFECTIVE) && has(EFFECTIVE_SAME))
            || (has(EFFECTIVE_SAME) && !has(GAS_PRICE))
            || (has(PARITY_SAME) && (has_rare(PARITY) || v != Some(V::Parity)))
            || shape >= SHAPE_END
            || rare >= RARE_END;
        let v = v.filter(|_| !contradicts).ok_or(row.corrupt())?;
        let kind = row.byte()?;
        let chain_id = some(has(CHAIN), || row.varint())?;
        let v = match v {
            V::Own => Some(row.varint()?),
            V::None => None,
            form => Some(form.value(chain_id, odd).ok_or(row.corrupt())?),
        };
        let own_parity = some(has_rare(PARITY), || row.byte())?;
        let gas_price = some(has(GAS_PRICE), || row.varint_u128())?;
        let own_price = some(has(EFFECTIVE), || row.varint_u128())?;
        let max_fee_per_gas = some(has(MAX_FEE), || row.varint_u128())?;
        let max_priority_fee_per_gas = some(has(MAX_PRIORITY_FEE), || row.varint_u128())?;
        let max_fee_per_blob_gas = some(has_rare(MAX_BLOB_FEE), || row.varint_u128())?;
        let contract_address = some(has_rare(CREATED), || address(row))?;
        let root = some(has_rare(ROOT), || row.array().map(B256::new))?;
        let receipt_kind = some(has_rare(RECEIPT_KIND), || row.byte())?;
        let blobs = some(has_rare(BLOBS), || words(row))?;
        let authorizations = some(has_rare(AUTHORIZATIONS), || pass(row, authorization))?;
        let blob_gas_used = some(has_rare(BLOB_GAS), || row.varint())?;
        let blob_gas_price = some(has_rare(BLOB_PRICE), || row.varint_u128())?;
        let extra = some(has_rare(EXTRA), || text(row))?;
        let receipt_extra = some(has_rare(RECEIPT_EXTRA), || text(row))?;

        let value = number(row)?;
        let access_list = some(has(ACCESS_LIST), || pass(row, access))?;
        let to = some(has(TO), || address(row))?;
        Ok(Self {
            kind,
            status: has(STATUS).then(|| has(SUCCESS)),
            nonce,
            from,
            to,
            value,
            gas,
            gas_price,
            chain_id,
            v,
            y_parity: own_parity.or_else(|| has(PARITY_SAME).then(|| u8::from(odd))),
            cumulative_gas_used,
            gas_used,
            effective_gas_price: if has(EFFECTIVE_SAME) { gas_price } else { own_price },
            contract_address,
            root,
            receipt_kind: receipt_kind.unwrap_or(kind),
            logs: first_log..logs_end,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            max_fee_per_blob_gas,
            access_list,
            blobs,
            authorizations,
            blob_gas_used,
            blob_gas_price,
            extra,
            receipt_extra,
            input: CallData::read(*row)?,
        })
    }
}

#[inline]
fn address(row: &mut Reader<'_>) -> Result<Address, Corrupt> {
    row.array().map(Address::new)
}

#[inline]
fn number(row: &mut Reader<'_>) -> Result<U256, Corrupt> {
    let mut word = [0; 32];
    read_word(row, &mut word)?;
    Ok(U256::from_be_bytes(word))
}

fn text<'a>(row: &mut Reader<'a>) -> Result<&'a str, Corrupt> {
    let len = row.varint_usize()?;
    std::str::from_utf8(row.take(len)?).map_err(|_| row.corrupt())
}

/// So many words as they are.
fn words<'a>(row: &mut Reader<'a>) -> Result<&'a [[u8; 32]], Corrupt> {
    let len = row.varint_usize()?.checked_mul(32).ok_or(row.corrupt())?;
    Ok(row.take(len)?.as_chunks().0)
}

/// Passes over a list; answers a reader that stands before it.
fn pass<'a, T>(
    row: &mut Reader<'a>,
    item: impl Fn(&mut Reader<'a>) -> Result<T, Corrupt>,
) -> Result<Reader<'a>, Corrupt> {
    let list = *row;
    for _ in 0..row.varint()? {
        item(row)?;
    }
    Ok(list)
}

/// The items of a list that was passed over.
pub(super) fn listed<'a, T>(
    mut list: Reader<'a>,
    item: impl Fn(&mut Reader<'a>) -> Result<T, Corrupt>,
) -> Result<Vec<T>, Corrupt> {
    (0..list.varint()?).map(|_| item(&mut list)).collect()
}

pub(super) fn access<'a>(row: &mut Reader<'a>) -> Result<(Address, &'a [[u8; 32]]), Corrupt> {
    Ok((address(row)?, words(row)?))
}

pub(super) fn authorization(row: &mut Reader<'_>) -> Result<Authorization, Corrupt> {
    Ok(Authorization {
        y_parity: row.byte()?,
        address: address(row)?,
        nonce: row.varint()?,
        chain_id: number(row)?,
        r: number(row)?,
        s: number(row)?,
    })
}
