//! Which contract emits what: signatures are tied to emitters, so that an address says much about its topics.

use super::draw::{self, Random, Zipf};
use quarry::model::{Address, B256};

/// How many emitters there are.
pub(crate) const EMITTERS: u32 = 200_000;
/// How many signatures beside the five common ones.
pub(crate) const SIGNATURES: u64 = 5_000;

/// What a contract is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contract {
    /// An ERC-20 token: Transfer and Approval.
    Token,
    /// An ERC-721 token: Transfer with the id as fourth topic.
    Collection,
    /// A pair of the second generation: a Sync and a Swap for each trade.
    Pair,
    /// A pool of the third generation: Swap.
    Pool,
    /// Anything else, with a few signatures of its own.
    Other,
}

/// Shares of draws by kind of contract (a pair makes two logs of one draw): with Zipf's emitters they give the
/// shares of signatures in measurements.md (Transfer 45-53 %, Approval 8.7 %, Swap v2 and Sync 4 %, Swap v3 9 %).
const SHARES: [(Contract, f64); 5] = [
    (Contract::Token, 0.560),
    (Contract::Collection, 0.045),
    (Contract::Pair, 0.042),
    (Contract::Pool, 0.094),
    (Contract::Other, 0.259),
];

/// `Transfer(address,address,uint256)`.
pub(crate) const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// `Approval(address,address,uint256)`.
pub(crate) const APPROVAL: &str = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925";
/// `Swap(address,uint256,uint256,uint256,uint256,address)`.
pub(crate) const SWAP_V2: &str = "0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822";
/// `Sync(uint112,uint112)`.
pub(crate) const SYNC: &str = "0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1";
/// `Swap(address,address,int256,int256,uint160,uint128,int24)`.
pub(crate) const SWAP_V3: &str = "0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67";

/// The five common signatures as topics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommonSignatures {
    pub(crate) transfer: B256,
    pub(crate) approval: B256,
    pub(crate) swap_v2: B256,
    pub(crate) sync: B256,
    pub(crate) swap_v3: B256,
}

impl CommonSignatures {
    pub(crate) fn new() -> Self {
        let parse = |text: &str| text.parse().expect("a topic");
        Self {
            transfer: parse(TRANSFER),
            approval: parse(APPROVAL),
            swap_v2: parse(SWAP_V2),
            sync: parse(SYNC),
            swap_v3: parse(SWAP_V3),
        }
    }
}

/// All emitters by rank.
#[derive(Debug)]
pub(crate) struct Emitters {
    zipf: Zipf,
    all: Vec<(Address, Contract)>,
}

impl Emitters {
    pub(crate) fn new(seed: u64) -> Self {
        let zipf = Zipf::new(EMITTERS, 1.1);
        // By falling weight, each to the kind that lacks most.
        let mut lacking = SHARES;
        let all = (0..EMITTERS)
            .map(|rank| {
                let most = lacking
                    .iter_mut()
                    .max_by(|a, b| a.1.total_cmp(&b.1))
                    .expect("five kinds");
                most.1 -= zipf.share(rank);
                (draw::address(seed, 1, u64::from(rank)), most.0)
            })
            .collect();
        Self { zipf, all }
    }

    /// A random emitter: rank, address and kind.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> (u32, Address, Contract) {
        let rank = self.zipf.draw(random);
        let (address, contract) = self.all[rank as usize];
        (rank, address, contract)
    }

    /// The emitter of a rank; rank 0 emits most.
    pub(crate) fn get(&self, rank: u32) -> (Address, Contract) {
        self.all[rank as usize]
    }

    /// One of the signatures of an emitter of the kind [`Contract::Other`]: it has four, the first one common.
    #[inline]
    pub(crate) fn signature(seed: u64, rank: u32, random: &mut Random) -> B256 {
        let choice = random.below(8).saturating_sub(4);
        let place = draw::scatter(u64::from(rank) * 4 + choice) % SIGNATURES;
        draw::word(seed, 2, place)
    }
}
