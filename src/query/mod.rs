//! The read side: typed questions about one snapshot of a store, typed answers.
//!
//! Everything here may read the disk and therefore belongs on threads that may block. This room knows
//! nothing of HTTP, of text and of how the store is filled.

mod accounts;
mod balances;
mod blocks;
mod bodies;
mod contracts;
mod counts;
mod creations;
mod days;
mod expression;
mod gas;
mod hashes;
mod internal;
mod involved;
mod limit;
mod log_page;
mod logs;
mod merge;
mod names;
mod nonces;
mod page;
mod pairs;
mod prices;
mod ranks;
mod rewards;
mod supply;
mod tokens;
mod transactions;
mod walk;
mod withdrawals;

use std::sync::{Arc, LazyLock};

pub use accounts::{MinedPage, TransactionPage};
pub use balances::{Account, Balance, FirstFunding, Funding, FundingKind, NativeFault};
pub use blocks::{BlockCounts, BlockTime, Closest};
pub use bodies::{TracedTransaction, Uncle};
pub use contracts::{ContractCode, ContractSources, Proxy};
pub use counts::{Contents, Listed};
pub use creations::{ContractCreation, Created};
pub use days::{DayReward, DayRow};
pub use gas::{GasPaid, GasTeller};
pub use internal::InternalPage;
pub use log_page::LogPage;
pub use logs::{LogQuery, Operator};
pub use names::CallNames;
pub use nonces::Nonce;
pub use page::{ListQuery, Page, Paged, RowCursor};
pub use prices::{KnownPrice, Prices};
pub use rewards::{BlockReward, UncleReward};
pub use supply::{CoinSupply, SupplyGap};
pub use tokens::{
    Exactness, Held, HeldId, HeldIdCursor, HeldIdPage, HolderCursor, HolderPage, HoldingPage, IdCursor,
    KeyCursor, KeyPart, LedgerBalance, NativeDiffers, NftPage, NoTokenFacts, ObservedFacts, Standard, Token,
    TokenCursor, TokenFacts, TokenStory, Touch, TransferPage, Verdict, ZeroAddress, is_on, is_told_on,
    stands,
};
pub use transactions::{Execution, TransactionOutcome, TransactionStatus};
pub use withdrawals::{AccountWithdrawal, WithdrawalPage};

use crate::codec::Corrupt;
use crate::model::{Address, BlockId, PriceFeeds, StaticRewards};
use crate::store::{Imported, Provenance, StoreError, View};
pub use crate::store::{from_memory, give_up, is_from_memory};

/// A question that could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The store failed; the client learns no more than that.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row could not be decoded.
    #[error("{0} in `{1}`")]
    Corrupt(Corrupt, &'static str),
    /// The store has no frames of what was asked for, and the answer lies in them.
    #[error("frames are not stored")]
    NeedsTraces,
    /// A cursor into a block that was replaced.
    #[error("the cursor's block was replaced by a reorg")]
    CursorOrphaned,
    /// The answer took longer than it may.
    #[error("the query ran into its time limit")]
    TimedOut,
}

/// One snapshot of a chain. Cheap to clone; every answer comes from one of them.
#[derive(Clone, Debug)]
pub struct Reader {
    view: Arc<View>,
    static_rewards: Arc<StaticRewards>,
    not_circulating: Arc<[Address]>,
    token_facts: Arc<dyn TokenFacts>,
    /// What the operator imported, and its revision before anything was read from it.
    imported: Option<(Arc<Imported>, u64)>,
    price_feeds: Arc<PriceFeeds>,
    /// Whether walks over several lists use nothing of what those before have found.
    walks_anew: bool,
}

/// What chains have of which nothing is stated.
static NO_FEEDS: LazyLock<Arc<PriceFeeds>> = LazyLock::new(Arc::default);

impl Reader {
    /// Reads `view`. The chain's rewards are those that the store remembers, by which its ledger is kept; else those
    /// known of its id and genesis hash.
    #[must_use]
    pub fn new(view: Arc<View>) -> Self {
        let rewards = view.identity().rewards();
        Self::with_rewards(view, Arc::new(rewards))
    }

    /// Reads `view` of a chain whose static rewards the operator states.
    #[must_use]
    pub fn with_rewards(view: Arc<View>, static_rewards: Arc<StaticRewards>) -> Self {
        Self {
            view,
            static_rewards,
            not_circulating: Arc::default(),
            token_facts: Arc::new(NoTokenFacts),
            imported: None,
            price_feeds: Arc::clone(&NO_FEEDS),
            walks_anew: false,
        }
    }

    /// The same, which walks over several lists as whoever asks first does: for who measures that.
    #[must_use]
    pub fn walking_anew(self) -> Self {
        Self {
            walks_anew: true,
            ..self
        }
    }

    /// The same, where the operator says that what these accounts hold does not circulate.
    #[must_use]
    pub fn with_not_circulating(mut self, accounts: Arc<[Address]>) -> Self {
        self.not_circulating = accounts;
        self
    }

    /// The same, with what is known of tokens from elsewhere than the blocks.
    #[must_use]
    pub fn with_token_facts(mut self, facts: Arc<dyn TokenFacts>) -> Self {
        self.token_facts = facts;
        self
    }

    /// The same, with what the operator imported.
    #[must_use]
    pub fn with_imported(mut self, imported: Arc<Imported>) -> Self {
        let revision = imported.revision();
        self.imported = Some((imported, revision));
        self
    }

    /// The same, with the feeds of the chain's coins.
    #[must_use]
    pub fn with_price_feeds(mut self, feeds: Arc<PriceFeeds>) -> Self {
        self.price_feeds = feeds;
        self
    }

    /// What the operator imported; `None` where no imports can be beside the store.
    #[must_use]
    pub fn imported(&self) -> Option<&Imported> {
        self.imported.as_ref().map(|(imported, _)| &**imported)
    }

    /// A number that changes whenever something else than the snapshot may change an answer: what is known of
    /// tokens, and imports.
    #[must_use]
    pub fn facts_revision(&self) -> u64 {
        let imported = self.imported.as_ref().map_or(0, |(_, revision)| *revision);
        // Both only grow.
        self.token_facts.revision().wrapping_add(imported)
    }

    /// What is known of tokens from elsewhere than the blocks.
    #[must_use]
    pub fn token_facts(&self) -> &dyn TokenFacts {
        &*self.token_facts
    }

    /// The snapshot.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether nothing is indexed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.view.head().is_none()
    }

    /// The indexed head; number 0 and hash zero while nothing is indexed.
    #[must_use]
    pub fn head(&self) -> BlockId {
        self.view.head().unwrap_or_default()
    }

    /// The first block that is or will be indexed.
    #[must_use]
    pub fn first_block(&self) -> u64 {
        self.view.first_block()
    }

    /// The last final block.
    #[must_use]
    pub fn finalized(&self) -> Option<u64> {
        self.view.finalized()
    }

    /// The chain id.
    #[must_use]
    pub fn chain_id(&self) -> u64 {
        self.view.identity().chain_id
    }

    /// Whether call frames are stored for every block.
    #[must_use]
    pub fn has_traces(&self) -> bool {
        self.view.has_traces()
    }

    /// Which of the stored blocks were verified before they were stored, and which were taken at the word of their node.
    pub fn provenance(&self) -> Result<Provenance, QueryError> {
        Ok(self.view.provenance()?)
    }

    /// The first block whose frames are not stored, all before it having theirs.
    #[must_use]
    pub fn next_traced(&self) -> u64 {
        self.view.checkpoint().next_traced
    }

    /// A number that every write to the store raises, also those that leave the head where it is.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.view.revision()
    }

    fn holds(&self, number: u64) -> bool {
        number >= self.first_block() && number < self.view.checkpoint().next_block
    }
}
