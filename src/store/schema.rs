//! The table list as a value: opening, inspection and docs/SCHEMA.md all walk it.

/// Version of the layout. A store of another version is refused with a sentence.
pub const SCHEMA_VERSION: u32 = 10;

/// How a table is read and written; decides RocksDB's options (see `options.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A few rows.
    Small,
    /// Looked up by whole key, inserted at random.
    Point,
    /// Appended in key order, read by a seek for one small unit.
    AppendUnits,
    /// Appended in key order, looked up by whole key.
    AppendRows,
    /// Runs read in sequence, the small open piece rewritten.
    Runs,
    /// Posting chunks: sealed ones never change, open ones are rewritten now and then.
    Postings,
    /// Open pieces of postings: looked up by whole key and rewritten by every commit that adds to them.
    OpenPostings,
    /// Keys without values, inserted and deleted at random, read by short scans.
    Ordered,
    /// Rows of an account or a token in the order of the chain, read by a seek for one of them; the account or token is this
    /// many bytes of the key.
    History(usize),
}

/// A table (a RocksDB column family).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Table {
    /// Identity, checkpoint, finality.
    Meta = 0,
    /// Block rows.
    Blocks = 1,
    /// Transactions with receipts, in units.
    Transactions = 2,
    /// Logs in units of one block.
    LogsByBlock = 3,
    /// Logs in runs of one emitter.
    LogsByEmitter = 4,
    /// Call frames in units.
    Frames = 5,
    /// Posting chunks.
    Postings = 6,
    /// Hash prefixes.
    Hashes = 7,
    /// Emitter ids.
    Emitters = 8,
    /// Signature ids.
    Signatures = 9,
    /// Contract creations.
    Creations = 10,
    /// Nonces that transactions do not tell.
    Nonces = 11,
    /// Flat rows of blocks that are not final.
    Tail = 12,
    /// What blocks that are not final overwrote.
    Undo = 13,
    /// Accounts as they are now.
    Accounts = 14,
    /// Native balances by block.
    Balances = 15,
    /// First inflows of accounts.
    Funding = 16,
    /// Sums of what was issued and burnt, by block.
    Supply = 17,
    /// Token ids.
    Tokens = 18,
    /// Tokens as they are now.
    TokenStates = 19,
    /// Token balances after blocks.
    TokenBalances = 20,
    /// Token supplies after blocks.
    TokenSupply = 21,
    /// Holders of tokens by amount.
    Holders = 22,
    /// What accounts hold now.
    Holdings = 23,
    /// Owners of ids.
    NftOwners = 24,
    /// Ids by owner.
    NftIds = 25,
    /// Numbers of holders by size of their amounts.
    HolderCounts = 26,
    /// Sums over days.
    Days = 27,
    /// Open pieces of postings.
    OpenPostings = 28,
}

/// What docs/SCHEMA.md says of a table.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Name of the column family.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Drawing of the key.
    pub key: &'static str,
    /// Drawing of the value.
    pub value: &'static str,
    /// Access pattern.
    pub profile: Profile,
}

impl Table {
    /// The tables whose profile is one of those.
    pub(super) fn of(which: impl Fn(Profile) -> bool) -> impl Iterator<Item = Self> {
        let tables = Self::ALL.into_iter();
        tables.filter(move |table| which(table.describe().profile))
    }

    /// All tables; the position is the stored code (undo records name tables by it).
    pub const ALL: [Self; 29] = [
        Self::Meta,
        Self::Blocks,
        Self::Transactions,
        Self::LogsByBlock,
        Self::LogsByEmitter,
        Self::Frames,
        Self::Postings,
        Self::Hashes,
        Self::Emitters,
        Self::Signatures,
        Self::Creations,
        Self::Nonces,
        Self::Tail,
        Self::Undo,
        Self::Accounts,
        Self::Balances,
        Self::Funding,
        Self::Supply,
        Self::Tokens,
        Self::TokenStates,
        Self::TokenBalances,
        Self::TokenSupply,
        Self::Holders,
        Self::Holdings,
        Self::NftOwners,
        Self::NftIds,
        Self::HolderCounts,
        Self::Days,
        Self::OpenPostings,
    ];

    /// Name of the column family.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.describe().name
    }

    /// The table of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// The table with a stored code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// What there is to say of the table.
    #[must_use]
    pub const fn describe(self) -> Description {
        match self {
            Self::Meta => Description {
                name: "meta",
                doc: "which chain this is, how far it is, and what of it is final",
                key: "| name: `identity`, `checkpoint`, `final`, `unverified`; while a migration from layout 8 is under way `migrated`; `sums`, array u8, row u64 |",
                value: "| bincode: Identity, Checkpoint, Finality, Unverified; the first block whose transactions are still of layout 8 u64; records that are summed u64, sums of up to 32 pages u64 |",
                profile: Profile::Small,
            },
            Self::Blocks => Description {
                name: "blocks",
                doc: "header, uncles, withdrawals and size of a block",
                key: "| block number u64 |",
                value: "| bincode: block without transactions |",
                profile: Profile::AppendRows,
            },
            Self::Transactions => Description {
                name: "transactions",
                doc: "transactions with their receipts (without hash, signature and logs), in units of one block",
                key: "| ordinal of the unit's last transaction u64 |",
                value: "| block varint | first index varint | count varint | (length varint, row of a transaction)* |",
                profile: Profile::AppendUnits,
            },
            Self::LogsByBlock => Description {
                name: "logs_by_block",
                doc: "the canonical copy of the logs, in units of one block",
                key: "| ordinal of the unit's last log u64 |",
                value: "| block varint | first index varint | count varint | (length varint, row by block)* |",
                profile: Profile::AppendUnits,
            },
            Self::LogsByEmitter => Description {
                name: "logs_by_emitter",
                doc: "the second copy of the logs, in runs of one emitter with the transaction hash inlined",
                key: "| emitter u32 | ordinal of the run's last log u64; ff..fe: the open run, ff..ff: the open piece |",
                value: "| rank | count | first ordinal | first block | ordinals to the last | blocks to the last | last transaction index: varints | (length varint, row by emitter)* |",
                profile: Profile::Runs,
            },
            Self::Frames => Description {
                name: "frames",
                doc: "call frames, in units of one block; a top call's row leaves out what its transaction's row says",
                key: "| ordinal of the unit's last frame u64 |",
                value: "| block varint | first index varint | count varint | (length varint, bincode frame)* |",
                profile: Profile::AppendUnits,
            },
            Self::Postings => Description {
                name: "postings",
                doc: "for each term with more than 64 postings the ascending ordinals but for the last 1 to 64, in chunks of 1,024 that carry the count before them",
                key: "| kind u8 | term 0, 4, 8, 12, 16, 20, 24 or 32 bytes | last ordinal u64, ff..ff while open |",
                value: "| rank varint | count - 1 varint | first varint | form u8 | gaps, packed gaps or bitmap |",
                profile: Profile::Postings,
            },
            Self::Hashes => Description {
                name: "hashes",
                doc: "block numbers and transaction ordinals by hash; the body tells which of a colliding few is meant",
                key: "| kind u8: 0 block, 1 transaction | first 8 bytes of the hash |",
                value: "| varint* |",
                profile: Profile::Point,
            },
            Self::Emitters => Description {
                name: "emitters",
                doc: "ids of log emitters, given in order of first appearance",
                key: "| address 20 bytes |",
                value: "| emitter u32 |",
                profile: Profile::Point,
            },
            Self::Signatures => Description {
                name: "signatures",
                doc: "ids of topics at position 0, given in order of first appearance",
                key: "| topic 32 bytes |",
                value: "| signature u32 |",
                profile: Profile::Point,
            },
            Self::Creations => Description {
                name: "creations",
                doc: "how a contract came to be; several rows where an address was created again",
                key: "| contract 20 bytes | ordinal of the creating transaction u64 |",
                value: "| bincode: ordinal of the creating frame and factory, where a contract made it |",
                profile: Profile::History(20),
            },
            Self::Nonces => Description {
                name: "nonces",
                doc: "nonces that sent transactions do not tell: of every contract that was made, from then on and where it ended, of EIP-7702 authorities, and of the genesis allocation",
                key: "| account 20 bytes | block number u64 |",
                value: "| nonce after the block varint, 2^64 - 1 where only the node can tell |",
                profile: Profile::History(20),
            },
            Self::Tail => Description {
                name: "tail",
                doc: "the flat rows of a block that is not final yet",
                key: "| block number u64 |",
                value: "| bincode: bytes by array |",
                profile: Profile::Small,
            },
            Self::Undo => Description {
                name: "undo",
                doc: "what a block that is not final yet overwrote",
                key: "| block number u64 |",
                value: "| bincode: (table, key, value before)* |",
                profile: Profile::Small,
            },
            Self::Accounts => Description {
                name: "accounts",
                doc: "accounts that took part or hold something: since when, what they hold, whether they were ever funded",
                key: "| address 20 bytes |",
                value: "| flags u8: 0 never funded, 1 funded here, 2 funded before the store; 4 took part | first block varint, of one that took part | balance now, big-endian without leading zeros |",
                profile: Profile::Point,
            },
            Self::Balances => Description {
                name: "balances",
                doc: "native balances after the blocks that changed them; what an account held before the first block lies at the block before it (at block 0 where that is the first)",
                key: "| address 20 bytes | block number u64 |",
                value: "| balance after, big-endian without leading zeros |",
                profile: Profile::History(20),
            },
            Self::Funding => Description {
                name: "funding",
                doc: "the first positive native inflow of an account",
                key: "| address 20 bytes |",
                value: "| kind u8: 0 genesis, 1 transaction, 2 internal, 3 reward, 4 withdrawal | block varint | of kinds 1 and 2: transaction ordinal varint, funder 20 bytes | value, big-endian without leading zeros |",
                profile: Profile::Point,
            },
            Self::Supply => Description {
                name: "supply",
                doc: "sums over the chain up to a block, wei",
                key: "| block number u64 |",
                value: "| (length u8, big-endian without leading zeros)*: opening, issued, base fees burnt, blob fees burnt, destroyed |",
                profile: Profile::AppendRows,
            },
            Self::Tokens => Description {
                name: "tokens",
                doc: "ids of tokens, given in order of their first transfer, deposit or withdrawal",
                key: "| address 20 bytes |",
                value: "| token u32 |",
                profile: Profile::Point,
            },
            Self::TokenStates => Description {
                name: "token_states",
                doc: "tokens as they are now",
                key: "| token u32 |",
                value: "| kind u8, with 128 added where what is held of it stands under 0 for good | flags u8 | first transfer: log ordinal + 1, 0 for none varint | holders varint | minted amount | to the zero address amount |",
                profile: Profile::Point,
            },
            Self::TokenBalances => Description {
                name: "token_balances",
                doc: "what a holder had after each block that changed it; ids of ERC-721, units of all ids of ERC-1155",
                key: "| token u32 | holder 20 bytes | block u64 |",
                value: "| balance, big-endian without leading zeros |",
                profile: Profile::History(24),
            },
            Self::TokenSupply => Description {
                name: "token_supply",
                doc: "what was minted, less what was unwrapped, and what was sent to the zero address, up to each block that changed it",
                key: "| token u32 | block u64 |",
                value: "| minted amount | to the zero address amount |",
                profile: Profile::History(4),
            },
            Self::Holders => Description {
                name: "holders",
                doc: "present holders of a token, largest first, then by address",
                key: "| token u32 | 32 - length of the amount u8 | amount without leading zeros, inverted | holder 20 bytes |",
                value: "| empty |",
                profile: Profile::Ordered,
            },
            Self::Holdings => Description {
                name: "holdings",
                doc: "what an account holds now; no row for nothing; of the zero address, which of the tokens that have a kind are held under 0",
                key: "| holder 20 bytes | kind u8 | token address 20 bytes |",
                value: "| balance, big-endian without leading zeros; of the zero address: kind of the token u8 |",
                profile: Profile::Point,
            },
            Self::NftOwners => Description {
                name: "nft_owners",
                doc: "who owns an id (ERC-721) now",
                key: "| token u32 | id 32 bytes |",
                value: "| owner 20 bytes |",
                profile: Profile::Point,
            },
            Self::NftIds => Description {
                name: "nft_ids",
                doc: "the ids (ERC-721) that an account owns now",
                key: "| token u32 | owner 20 bytes | id 32 bytes |",
                value: "| empty |",
                profile: Profile::Ordered,
            },
            Self::HolderCounts => Description {
                name: "holder_counts",
                doc: "how many holders have amounts that begin alike, in the order of `holders`",
                key: "| token u32 | first two bytes of the coded amount |",
                value: "| count varint |",
                profile: Profile::Point,
            },
            Self::Days => Description {
                name: "days",
                doc: "exact sums over the blocks of each UTC day that has some, and how many addresses first took part on it",
                key: "| kind u8: 0 blocks, 1 new addresses | days since 1970-01-01 u64 |",
                value: "| of blocks: first block | last block | first time | last time | blocks | transactions | size | blocks without a size | blocks with difficulty but for block 0 | uncles: varints | where there are uncles, how many bring 0, 1 .. 8 eighths of the static reward: varints | (length u8, big-endian without leading zeros)*: gas used, gas limits, effective gas prices, tips, base fees burnt, blob fees burnt, fees of the layer below; where some were paid in a token, how many transactions: varint; of new addresses: count varint |",
                profile: Profile::Small,
            },
            Self::OpenPostings => Description {
                name: "open_postings",
                doc: "for each term the last 1 to 64 of its ordinals, with the count before them: all of most terms",
                key: "| kind u8 | term 0, 4, 8, 12, 16, 20, 24 or 32 bytes |",
                value: "| rank varint | count - 1 varint | first varint | form u8 | gaps, packed gaps or bitmap |",
                profile: Profile::OpenPostings,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_positions_and_names_are_unique() {
        let mut names = std::collections::BTreeSet::new();
        for (position, table) in Table::ALL.into_iter().enumerate() {
            assert_eq!(table as usize, position);
            assert_eq!(Table::from_code(position as u8), Some(table));
            assert!(names.insert(table.name()));
        }
    }
}
