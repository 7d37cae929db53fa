//! Where things lie: blocks by number and time, first ordinals of blocks, and the blocks of ordinals.

use super::flat::{BlockEarnings, BlockFacts, BlockFrames, FlatArray};
use super::{StoreError, View};

impl View {
    /// Hash, time and first ordinals of a block that the store holds.
    #[inline]
    pub fn block(&self, number: u64) -> Result<BlockFacts, StoreError> {
        let place = number.wrapping_sub(self.first_block());
        self.record(FlatArray::Blocks, "block", place)
            .map(BlockFacts::decode)
    }

    /// First frame and internal transactions of a block; `None` where its frames are not stored.
    pub fn block_frames(&self, number: u64) -> Result<Option<BlockFrames>, StoreError> {
        if number >= self.checkpoint().next_traced {
            return Ok(None);
        }
        let place = number.wrapping_sub(self.first_block());
        self.record(FlatArray::BlockFrames, "block", place)
            .map(|bytes| Some(BlockFrames::decode(bytes)))
    }

    /// What the fee recipient's part of a block follows from.
    pub fn block_earnings(&self, number: u64) -> Result<BlockEarnings, StoreError> {
        let place = number.wrapping_sub(self.first_block());
        self.record(FlatArray::BlockEarnings, "block", place)
            .map(BlockEarnings::decode)
    }

    /// The bytes of a record, as they are stored.
    pub fn array_record(&self, array: FlatArray, number: u64) -> Result<&[u8], StoreError> {
        self.record(array, "record", number)
    }

    /// The first log ordinal at or after the start of `number`, which may be the block that comes next.
    pub fn first_log(&self, number: u64) -> Result<u64, StoreError> {
        if number >= self.checkpoint().next_block {
            return Ok(self.checkpoint().logs);
        }
        Ok(self.block(number.max(self.first_block()))?.first_log)
    }

    /// The first transaction ordinal at or after the start of `number`.
    pub fn first_transaction(&self, number: u64) -> Result<u64, StoreError> {
        if number >= self.checkpoint().next_block {
            return Ok(self.checkpoint().transactions);
        }
        Ok(self.block(number.max(self.first_block()))?.first_transaction)
    }

    /// The first frame ordinal at or after the start of `number`; the frames of blocks before it must be stored.
    pub fn first_frame(&self, number: u64) -> Result<u64, StoreError> {
        let frames = self.block_frames(number.max(self.first_block()))?;
        Ok(frames.map_or(self.checkpoint().frames, |frames| frames.first_frame))
    }

    /// The last block below `end` whose `key` is at most `target`: `key` must not fall from block to block.
    fn last_block_by(
        &self,
        end: u64,
        target: u64,
        key: impl Fn(u64) -> Result<u64, StoreError>,
    ) -> Result<Option<(u64, BlockFacts)>, StoreError> {
        let (mut low, mut high) = (self.first_block(), end);
        // Invariant: blocks below `low` have keys <= target, blocks from `high` on have keys > target.
        while low < high {
            let middle = low + (high - low) / 2;
            if key(middle)? <= target {
                low = middle + 1
            } else {
                high = middle
            }
        }
        if low == self.first_block() {
            return Ok(None);
        }
        Ok(Some((low - 1, self.block(low - 1)?)))
    }

    fn last_block_by_facts(
        &self,
        target: u64,
        key: impl Fn(&BlockFacts) -> u64,
    ) -> Result<Option<(u64, BlockFacts)>, StoreError> {
        let key = |number| self.block(number).map(|facts| key(&facts));
        self.last_block_by(self.checkpoint().next_block, target, key)
    }

    /// The greatest block with a time at or before `unix`, if any (B2).
    pub fn block_at_or_before(&self, unix: u64) -> Result<Option<(u64, BlockFacts)>, StoreError> {
        self.last_block_by_facts(unix, |block| block.timestamp)
    }

    /// The block of a transaction ordinal.
    pub fn block_of_transaction(&self, ordinal: u64) -> Result<(u64, BlockFacts), StoreError> {
        self.last_block_by_facts(ordinal, |block| block.first_transaction)?
            .ok_or_else(|| Self::missing(FlatArray::Blocks, "block of transaction", ordinal))
    }

    /// The block of a log ordinal.
    pub fn block_of_log(&self, ordinal: u64) -> Result<(u64, BlockFacts), StoreError> {
        self.last_block_by_facts(ordinal, |block| block.first_log)?
            .ok_or_else(|| Self::missing(FlatArray::Blocks, "block of log", ordinal))
    }

    /// The block of a frame ordinal.
    pub fn block_of_frame(&self, ordinal: u64) -> Result<(u64, BlockFacts), StoreError> {
        let end = self.checkpoint().next_traced;
        self.last_block_by(end, ordinal, |number| self.first_frame(number))?
            .ok_or_else(|| Self::missing(FlatArray::BlockFrames, "block of frame", ordinal))
    }
}
