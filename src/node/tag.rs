//! Blocks that are named by a word.

/// A block that is not named by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockTag {
    /// The newest block.
    Latest,
    /// The newest block that is unlikely to be reorganised.
    Safe,
    /// The newest block that cannot be reorganised.
    Finalized,
}

impl BlockTag {
    /// The text of the tag.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Safe => "safe",
            Self::Finalized => "finalized",
        }
    }
}
