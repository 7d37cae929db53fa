//! What a log says of tokens: transfers and wrapping, by the log alone (answers.md section 3).

use alloy_primitives::{address, b256};

use super::{Address, B256, U256};

/// `Transfer(address,address,uint256)`.
pub const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
/// `TransferSingle(address,address,address,uint256,uint256)`.
pub const TRANSFER_SINGLE: B256 = b256!("c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62");
/// `TransferBatch(address,address,address,uint256[],uint256[])`.
pub const TRANSFER_BATCH: B256 = b256!("4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb");
/// `Deposit(address,uint256)`.
pub const DEPOSIT: B256 = b256!("e1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c");
/// `Withdrawal(address,uint256)`.
pub const WITHDRAWAL: B256 = b256!("7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65");
/// Emits a log for each movement of the native coin (EIP-7708); it is no token.
pub const NATIVE_LOGS: Address = address!("fffffffffffffffffffffffffffffffffffffffe");

/// The standard that a token's transfers follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TokenKind {
    /// No transfer yet: it emitted deposits or withdrawals, and is no token for readers.
    #[default]
    Unknown = 0,
    /// ERC-20.
    Erc20 = 1,
    /// ERC-721.
    Erc721 = 2,
    /// ERC-1155.
    Erc1155 = 3,
}

impl TokenKind {
    /// All kinds; the position is the stored code.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Erc20, Self::Erc721, Self::Erc1155];

    /// The kind with a stored code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The text of `tokenType`; `None` for one that is no token for readers.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Unknown => None,
            Self::Erc20 => Some("ERC20"),
            Self::Erc721 => Some("ERC721"),
            Self::Erc1155 => Some("ERC1155"),
        }
    }
}

/// What a token's contract says of itself; each absent where it said nothing of use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenMetadata {
    /// `name()`.
    pub name: Option<String>,
    /// `symbol()`.
    pub symbol: Option<String>,
    /// `decimals()`.
    pub decimals: Option<u8>,
}

/// What a log says of the contract that emitted it, as a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenEvent<'a> {
    /// ERC-20: `value` went from one account to another.
    Fungible {
        /// From whom; the zero address mints.
        from: Address,
        /// To whom; the zero address burns.
        to: Address,
        /// Smallest units.
        value: U256,
    },
    /// ERC-721: an id changed hands.
    Unique {
        /// From whom.
        from: Address,
        /// To whom.
        to: Address,
        /// The id.
        id: U256,
    },
    /// ERC-1155: units of one or several ids.
    Multi {
        /// From whom.
        from: Address,
        /// To whom.
        to: Address,
        /// Ids and units, in order.
        items: MultiItems<'a>,
    },
    /// Coin was wrapped: the account has more.
    Deposit {
        /// Whose.
        account: Address,
        /// Smallest units.
        value: U256,
    },
    /// Coin was unwrapped: the account has less.
    Withdrawal {
        /// Whose.
        account: Address,
        /// Smallest units.
        value: U256,
    },
}

/// The ids and units of an ERC-1155 transfer, as its log holds them: words of 32 bytes, as many ids as units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiItems<'a> {
    ids: &'a [[u8; 32]],
    values: &'a [[u8; 32]],
}

impl<'a> MultiItems<'a> {
    /// Each id and its units.
    pub fn iter(&self) -> impl Iterator<Item = (U256, U256)> + use<'a> {
        let number = |word: &[u8; 32]| U256::from_be_bytes(*word);
        self.ids
            .iter()
            .zip(self.values)
            .map(move |(id, value)| (number(id), number(value)))
    }

    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The id and units at a position.
    #[must_use]
    pub fn get(&self, position: usize) -> Option<(U256, U256)> {
        let (id, value) = (self.ids.get(position)?, self.values.get(position)?);
        Some((U256::from_be_bytes(*id), U256::from_be_bytes(*value)))
    }
}

/// The address in a word; `None` where the bytes before it are not zero, as those of an address are.
fn address_in(word: &[u8; 32]) -> Option<Address> {
    let (before, address) = word.split_last_chunk::<20>()?;
    before
        .iter()
        .all(|&byte| byte == 0)
        .then(|| Address::from(*address))
}

/// The one word that data is.
fn word(data: &[u8]) -> Option<U256> {
    Some(U256::from_be_bytes::<32>(data.try_into().ok()?))
}

/// The array of words that the ABI places at `head`'s offset in `data`.
fn words<'a>(data: &'a [u8], head: &[u8; 32]) -> Option<&'a [[u8; 32]]> {
    let number = |word: &[u8; 32]| usize::try_from(U256::from_be_bytes(*word)).ok();
    let (count, rest) = data.get(number(head)?..)?.split_first_chunk::<32>()?;
    rest.as_chunks::<32>().0.get(..number(count)?)
}

impl<'a> TokenEvent<'a> {
    /// What a log says; `None` for any other log, one that is not formed as the standards say included.
    #[must_use]
    pub fn of(emitter: &Address, topics: &[B256], data: &'a [u8]) -> Option<Self> {
        let (&signature, rest) = topics.split_first()?;
        // Nearly every other log ends here.
        if ![TRANSFER, TRANSFER_SINGLE, TRANSFER_BATCH, DEPOSIT, WITHDRAWAL].contains(&signature)
            || *emitter == NATIVE_LOGS
        {
            return None;
        }
        match (signature, rest) {
            (TRANSFER, [from, to]) => Some(Self::Fungible {
                from: address_in(from)?,
                to: address_in(to)?,
                value: word(data)?,
            }),
            (TRANSFER, [from, to, id]) => Some(Self::Unique {
                from: address_in(from)?,
                to: address_in(to)?,
                id: (*id).into(),
            }),
            // Before the standard was settled nothing was indexed.
            (TRANSFER, []) => match data.as_chunks::<32>() {
                ([from, to, id], []) => Some(Self::Unique {
                    from: address_in(from)?,
                    to: address_in(to)?,
                    id: U256::from_be_bytes(*id),
                }),
                _ => None,
            },
            (TRANSFER_SINGLE, [_, from, to]) => match data.as_chunks::<32>() {
                ([id, value], []) => Some(Self::Multi {
                    from: address_in(from)?,
                    to: address_in(to)?,
                    items: MultiItems {
                        ids: std::slice::from_ref(id),
                        values: std::slice::from_ref(value),
                    },
                }),
                _ => None,
            },
            (TRANSFER_BATCH, [_, from, to]) => match data.as_chunks::<32>().0 {
                [ids, values, ..] => {
                    let (ids, values) = (words(data, ids)?, words(data, values)?);
                    (ids.len() == values.len())
                        .then_some(MultiItems { ids, values })
                        .and_then(|items| {
                            Some(Self::Multi {
                                from: address_in(from)?,
                                to: address_in(to)?,
                                items,
                            })
                        })
                }
                _ => None,
            },
            (DEPOSIT, [account]) => Some(Self::Deposit {
                account: address_in(account)?,
                value: word(data)?,
            }),
            (WITHDRAWAL, [account]) => Some(Self::Withdrawal {
                account: address_in(account)?,
                value: word(data)?,
            }),
            _ => None,
        }
    }

    /// The standard that the log follows; [`TokenKind::Unknown`] for deposits and withdrawals.
    #[must_use]
    pub const fn kind(&self) -> TokenKind {
        match self {
            Self::Fungible { .. } => TokenKind::Erc20,
            Self::Unique { .. } => TokenKind::Erc721,
            Self::Multi { .. } => TokenKind::Erc1155,
            Self::Deposit { .. } | Self::Withdrawal { .. } => TokenKind::Unknown,
        }
    }
}

#[cfg(test)]
mod tests;
