//! Pages of lists that lie in the order of their keys. The place of a row is what its key says, so that a page goes
//! on behind a row that is no more, and new rows elsewhere move nothing.

use std::fmt;
use std::str::FromStr;

use crate::codec::Corrupt;
use crate::codec::bytes::Reader as Bytes;
use crate::model::{Address, U256};

/// The place of a row; as text its bytes in hex, always as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCursor<const N: usize>([u8; N]);

/// The place of a holder of a token (T3): amount and address.
pub type HolderCursor = KeyCursor<52>;
/// The place of a token of an account (T6, T7): its address.
pub type TokenCursor = KeyCursor<20>;
/// The place of an id of an account (T10): the id.
pub type IdCursor = KeyCursor<32>;

/// The place of an id among what an account holds of ERC-1155: the token's address and the id.
pub type HeldIdCursor = KeyCursor<52>;

/// Which part of such a list is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart<C> {
    /// Rows to leave out; counts for nothing where there is a cursor.
    pub skip: u64,
    /// Rows to give at most.
    pub limit: usize,
    /// Begin with the first row behind this place.
    pub after: Option<C>,
}

impl<C> KeyPart<C> {
    /// The part after the first `skip` rows.
    #[must_use]
    pub const fn skipping(skip: u64, limit: usize) -> Self {
        Self {
            skip,
            limit,
            after: None,
        }
    }

    /// Cuts what was read beyond the page off it; where there was some, answers where the next page begins.
    pub(super) fn cut<T>(&self, rows: &mut Vec<T>, place: impl FnOnce(&T) -> C) -> Option<C> {
        let more = rows.len() > self.limit;
        rows.truncate(self.limit);
        rows.last().filter(|_| more).map(place)
    }
}

impl<const N: usize> fmt::Display for KeyCursor<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&const_hex::encode(self.0))
    }
}

impl<const N: usize> FromStr for KeyCursor<N> {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        // The decoder would take a prefix too.
        if text.len() != 2 * N {
            return Err(());
        }
        const_hex::decode_to_array(text).map(Self).map_err(|_| ())
    }
}

impl HolderCursor {
    /// The place of a holder of this much.
    #[must_use]
    pub fn of((holder, amount): &(Address, U256)) -> Self {
        let mut bytes = [0; 52];
        let (head, tail) = bytes.split_at_mut(32);
        head.copy_from_slice(&amount.to_be_bytes::<32>());
        tail.copy_from_slice(holder.as_slice());
        Self(bytes)
    }

    /// The holder and its amount.
    pub(super) fn holder(&self) -> Result<(Address, U256), Corrupt> {
        let mut reader = Bytes::new(&self.0, "place of a holder");
        let amount = U256::from_be_bytes(reader.array::<32>()?);
        Ok((Address::from(reader.array::<20>()?), amount))
    }
}

impl HeldIdCursor {
    pub(super) fn of_id(token: &Address, id: &U256) -> Self {
        let mut bytes = [0; 52];
        let (head, tail) = bytes.split_at_mut(20);
        head.copy_from_slice(token.as_slice());
        tail.copy_from_slice(&id.to_be_bytes::<32>());
        Self(bytes)
    }

    pub(super) fn token_and_id(&self) -> (Address, U256) {
        let (token, id) = self.0.split_at(20);
        (Address::from_slice(token), U256::from_be_slice(id))
    }
}

impl TokenCursor {
    pub(super) fn of(token: &Address) -> Self {
        Self(token.0.0)
    }

    pub(super) fn token(&self) -> Address {
        Address::from(self.0)
    }
}

impl IdCursor {
    pub(super) fn of(id: &U256) -> Self {
        Self(id.to_be_bytes())
    }

    pub(super) fn id(&self) -> U256 {
        U256::from_be_bytes(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_back_and_have_one_length() {
        let holder = (Address::repeat_byte(7), U256::from(0x1234));
        let text = HolderCursor::of(&holder).to_string();
        assert_eq!(text, format!("{:064x}{}", 0x1234, "07".repeat(20)));
        assert_eq!(text.parse::<HolderCursor>().unwrap().holder().unwrap(), holder);
        assert_eq!(
            IdCursor::of(&U256::MAX)
                .to_string()
                .parse::<IdCursor>()
                .unwrap()
                .id(),
            U256::MAX
        );
        let token = TokenCursor::of(&holder.0).to_string();
        assert_eq!(token.parse::<TokenCursor>().unwrap().token(), holder.0);
        let prefixed = format!("0x{}", token.get(2..).unwrap());
        for wrong in [
            "",
            "07",
            &text,
            &prefixed,
            &token.replace("07", "0g"),
            &format!("0x{token}"),
        ] {
            assert!(wrong.parse::<TokenCursor>().is_err(), "{wrong}");
        }
    }
}
