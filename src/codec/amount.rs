//! Amounts: 256-bit numbers, big-endian, without their leading zero bytes. Zero is no byte at all.
//!
//! Each number has one writing, so that rows can be compared as bytes: a leading zero is malformed.

use super::Corrupt;
use super::bytes::Reader;
use crate::model::U256;

/// Appends an amount; its length must follow from elsewhere.
pub fn put_amount(out: &mut Vec<u8>, amount: &U256) {
    let bytes = amount.to_be_bytes::<32>();
    out.extend_from_slice(bytes.get(32 - amount.byte_len()..).unwrap_or(&[]));
}

/// Reads an amount written by [`put_amount`], which is all of `bytes`.
pub fn read_amount(bytes: &[u8]) -> Result<U256, Corrupt> {
    if bytes.first() == Some(&0) {
        return Err(Corrupt("amount"));
    }
    U256::try_from_be_slice(bytes).ok_or(Corrupt("amount"))
}

/// Appends an amount after a byte that says how many bytes it has.
pub fn put_sized_amount(out: &mut Vec<u8>, amount: &U256) {
    out.push(amount.byte_len() as u8);
    put_amount(out, amount);
}

/// Reads an amount written by [`put_sized_amount`].
pub fn read_sized_amount(reader: &mut Reader<'_>) -> Result<U256, Corrupt> {
    let len = usize::from(reader.byte()?);
    read_amount(reader.take(len)?)
}

/// Amounts of every length in bits.
#[cfg(test)]
pub(super) fn amounts() -> impl proptest::strategy::Strategy<Value = U256> {
    use proptest::prelude::*;
    (any::<[u8; 32]>(), 0usize..=256).prop_map(|(bytes, bits)| {
        let wide = U256::from_be_bytes(bytes);
        if bits == 256 { wide } else { wide >> (256 - bits) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn amounts_read_back_and_have_one_writing(amount in amounts(), other in amounts()) {
            let mut out = Vec::new();
            put_amount(&mut out, &amount);
            prop_assert_eq!(&out, &amount.to_be_bytes_trimmed_vec());
            prop_assert_eq!(read_amount(&out), Ok(amount));
            let padded = [&[0], out.as_slice()].concat();
            prop_assert_eq!(read_amount(&padded), Err(Corrupt("amount")));

            let mut sized = Vec::new();
            put_sized_amount(&mut sized, &amount);
            put_sized_amount(&mut sized, &other);
            let mut reader = Reader::new(&sized, "amounts");
            prop_assert_eq!(read_sized_amount(&mut reader), Ok(amount));
            prop_assert_eq!(read_sized_amount(&mut reader), Ok(other));
            reader.end().unwrap();
            prop_assert_eq!(usize::from(sized[0]), out.len());
            let padded = [&[out.len() as u8 + 1, 0], out.as_slice()].concat();
            prop_assert!(read_sized_amount(&mut Reader::new(&padded, "amounts")).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut reader = Reader::new(&bytes, "amounts");
            while read_sized_amount(&mut reader).is_ok() {}
            if let Ok(amount) = read_amount(&bytes) {
                prop_assert_eq!(amount.byte_len(), bytes.len());
            }
        }
    }

    #[test]
    fn amounts_are_these_bytes() {
        let mut out = Vec::new();
        for amount in [U256::ZERO, U256::from(1), U256::from(0x0100)] {
            put_sized_amount(&mut out, &amount);
        }
        assert_eq!(out, [0, 1, 1, 2, 1, 0]);
        assert!(read_amount(&[1; 33]).is_err());
    }
}
