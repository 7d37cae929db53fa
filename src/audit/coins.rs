//! What a block does to holders of the native coin, said again apart from the derivation: by its transactions and their
//! frames, its header, uncles and withdrawals.

use std::collections::HashMap;

use alloy_primitives::Signature;
use alloy_primitives::map::{AddressMap, AddressSet};

use crate::codec::value::{BlockFees, FeeRow, FundingKind, FundingRow};
use crate::model::{
    Address, Block, Bundle, Bytes, Frame, FrameKind, Header, StaticRewards, TransactionTrace, U256,
    uncle_inclusion_reward,
};
use crate::sync::header_hash;

/// What a block does to an account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    pub(super) into: U256,
    pub(super) out: U256,
    /// Whether it takes part: sends, is called or created, moves something in a frame, withdraws, or gets the fees.
    pub(super) takes_part: bool,
    /// Its first inflow in the block.
    pub(super) funded: Option<FundingRow>,
}

/// What a block does to all accounts; sums wrap.
#[derive(Debug, Default)]
pub(super) struct Coins {
    number: u64,
    pub(super) accounts: AddressMap<Flow>,
    /// Two of which one gets the fees, where that does not follow from the header.
    pub(super) either: Vec<Address>,
    pub(super) issued: U256,
    /// Base fees and blob fees.
    pub(super) burnt: U256,
    /// Gone with contracts that ended.
    pub(super) destroyed: U256,
    /// Contracts that ended in the transaction under way, and what came and went since.
    ended: AddressMap<(U256, U256)>,
}

impl Coins {
    /// Those of a block whose transactions begin at ordinal `first`. `each` is the static reward, by the schedule
    /// `rewards`; `is_kept` says whether the ledger follows the block.
    pub(super) fn of(
        bundle: &Bundle,
        traces: &[TransactionTrace],
        first: u64,
        is_kept: bool,
        (each, rewards): (U256, &StaticRewards),
    ) -> Self {
        let (block, header) = (&bundle.block, &bundle.block.header);
        let mut coins = Self {
            number: header.number,
            ..Self::default()
        };
        // Nobody mined block 0, and what it allocates is no flow.
        if header.number == 0 {
            return coins;
        }
        let (recipient, other) = fee_recipient(header);
        // A ledger that goes on past such a block knows that it is signed.
        if let Some(other) = other.filter(|_| !is_kept) {
            coins.either = vec![recipient, other];
        } else {
            coins.account(recipient).takes_part = true;
        }
        let mut fees = BlockFees::of(header);
        let mut tips = U256::ZERO;
        let pairs = block.transactions.iter().zip(&bundle.receipts);
        for ((index, (transaction, receipt)), ordinal) in pairs.enumerate().zip(first..) {
            let paid = fees.split(&FeeRow::new(transaction, receipt));
            let tip = U256::from(paid.tip);
            let burnt = paid.base_fee_burnt.wrapping_add(paid.blob_fee_burnt);
            tips = tips.wrapping_add(tip);
            coins.burnt = coins.burnt.wrapping_add(burnt);
            let sender = coins.account(transaction.from);
            sender.takes_part = true;
            sender.out = sender.out.wrapping_add(tip.wrapping_add(burnt));
            if let Some(to) = transaction.to {
                coins.account(to).takes_part = true;
            }
            if let Some(trace) = traces.get(index) {
                // From Cancun on a contract ends only in the transaction that made it (EIP-6780).
                coins.frames(&trace.frames, ordinal, header.blob_gas_used.is_some());
            }
            // Before contracts end: one that gets the fees loses them, too.
            coins.give(recipient, tip);
            coins.bury();
        }
        coins.protocol(block, recipient, tips, (each, rewards));
        coins
    }

    fn account(&mut self, account: Address) -> &mut Flow {
        self.accounts.entry(account).or_default()
    }

    fn frames(&mut self, frames: &[Frame], ordinal: u64, cancun: bool) {
        let mut created = AddressSet::default();
        let callers = callers(frames);
        for frame in frames.iter().filter(|frame| !frame.reverted) {
            let Some(to) = frame.to else { continue };
            match frame.kind {
                FrameKind::Call => self.pay(frame, to, ordinal),
                FrameKind::Create | FrameKind::Create2 => {
                    created.insert(to);
                    self.account(to).takes_part = true;
                    self.pay(frame, to, ordinal);
                }
                // Of a contract that lives on some nodes tell another one's payment: whose code runs gives that away.
                FrameKind::SelfDestruct if acting(&callers, frame) == Some(frame.from) => {
                    let ends = !cancun || created.contains(&frame.from);
                    if to != frame.from {
                        self.pay(frame, to, ordinal);
                    } else if ends {
                        let own = self.account(to);
                        own.out = own.out.wrapping_add(frame.value);
                        own.takes_part |= !frame.value.is_zero();
                        self.destroyed = self.destroyed.wrapping_add(frame.value);
                    }
                    if ends {
                        self.ended.insert(frame.from, (U256::ZERO, U256::ZERO));
                    }
                }
                _ => {}
            }
        }
    }

    /// Moves what a frame moves.
    fn pay(&mut self, frame: &Frame, to: Address, ordinal: u64) {
        let (from, value) = (frame.from, frame.value);
        if value.is_zero() {
            return;
        }
        let sender = self.account(from);
        sender.takes_part = true;
        sender.out = sender.out.wrapping_add(value);
        if let Some((_, out)) = self.ended.get_mut(&from) {
            *out = out.wrapping_add(value);
        }
        self.give(to, value);
        self.account(to).takes_part = true;
        if from != to {
            let kind = if frame.path.is_empty() {
                FundingKind::Transaction
            } else {
                FundingKind::Internal
            };
            self.fund(to, kind, Some((ordinal, from)), value);
        }
    }

    fn give(&mut self, to: Address, value: U256) {
        let recipient = self.account(to);
        recipient.into = recipient.into.wrapping_add(value);
        if let Some((into, _)) = self.ended.get_mut(&to) {
            *into = into.wrapping_add(value);
        }
    }

    /// At the end of a transaction: what contracts have left of what came after they ended is gone.
    fn bury(&mut self) {
        for (account, (into, out)) in std::mem::take(&mut self.ended) {
            let left = into.saturating_sub(out);
            let own = self.account(account);
            own.out = own.out.wrapping_add(left);
            self.destroyed = self.destroyed.wrapping_add(left);
        }
    }

    /// What the block itself gives. The tips are given already.
    fn protocol(
        &mut self,
        block: &Block,
        recipient: Address,
        tips: U256,
        (each, rewards): (U256, &StaticRewards),
    ) {
        self.issued = issued(block, each, rewards);
        let reward = each.wrapping_add(uncle_inclusion_reward(each, block.uncles.len()));
        self.give(recipient, reward);
        self.fund(recipient, FundingKind::Reward, None, reward.wrapping_add(tips));
        for uncle in &block.uncle_headers {
            let reward = rewards.of_uncle(each, self.number, uncle.number);
            self.give(uncle.beneficiary, reward);
            self.fund(uncle.beneficiary, FundingKind::Reward, None, reward);
        }
        for withdrawal in block.withdrawals.iter().flatten() {
            let value = wei(withdrawal.amount_gwei);
            self.give(withdrawal.address, value);
            self.account(withdrawal.address).takes_part = true;
            self.fund(withdrawal.address, FundingKind::Withdrawal, None, value);
        }
    }

    fn fund(&mut self, account: Address, kind: FundingKind, by: Option<(u64, Address)>, value: U256) {
        let block = self.number;
        if !value.is_zero() {
            self.account(account).funded.get_or_insert(FundingRow {
                kind,
                block,
                by,
                value,
            });
        }
    }
}

fn wei(gwei: u64) -> U256 {
    U256::from(gwei) * U256::from(1_000_000_000_u64)
}

/// What the protocol gives in a block with this static reward, its uncles by the schedule.
fn issued(block: &Block, each: U256, rewards: &StaticRewards) -> U256 {
    let uncles = block.uncle_headers.iter();
    let uncles = uncles.map(|uncle| rewards.of_uncle(each, block.number(), uncle.number));
    let withdrawn = block.withdrawals.iter().flatten();
    let withdrawn = withdrawn.map(|withdrawal| wei(withdrawal.amount_gwei));
    let own = each.wrapping_add(uncle_inclusion_reward(each, block.uncles.len()));
    uncles.chain(withdrawn).fold(own, U256::wrapping_add)
}

/// The static reward of a block that issued `told`: the one by the schedule that is known of the chain, or else the one that explains it. A
/// sync may have had its rewards from a genesis file or an option that the store, being made before, does not remember.
pub(super) fn static_reward(block: &Block, rewards: &StaticRewards, told: U256) -> U256 {
    let known = rewards.of_block(block.number(), block.header.difficulty);
    if block.header.difficulty.is_zero() || issued(block, known, rewards) == told {
        return known;
    }
    // A larger reward issues more, so one at most explains it.
    let (mut low, mut high) = (U256::ZERO, told);
    while low < high {
        let middle = low + ((high - low) >> 1);
        if issued(block, middle, rewards) < told {
            low = middle + U256::ONE;
        } else {
            high = middle;
        }
    }
    low
}

/// The frames of a transaction by their paths, where a contract ends; of two with one path the first.
fn callers(frames: &[Frame]) -> HashMap<&[u32], &Frame> {
    if frames.iter().all(|frame| frame.kind != FrameKind::SelfDestruct) {
        return HashMap::new();
    }
    let backwards = frames.iter().rev();
    backwards.map(|frame| (frame.path.as_slice(), frame)).collect()
}

/// The account for which the code runs that made a frame.
fn acting(callers: &HashMap<&[u32], &Frame>, of: &Frame) -> Option<Address> {
    let (_, path) = of.path.split_last()?;
    let caller = callers.get(path)?;
    match caller.kind {
        FrameKind::DelegateCall | FrameKind::CallCode => Some(caller.from),
        _ => caller.to,
    }
}

/// Who gets the fees of a block, and, where a chain may have taken clique further, who else may be meant.
fn fee_recipient(header: &Header) -> (Address, Option<Address>) {
    let named = header.beneficiary;
    match signer(header) {
        // Clique names whom a signer votes on; where none votes, another name is that of such a chain's sealer.
        Some(signer) if header.nonce.is_zero() && !named.is_zero() && signer != named => {
            (signer, Some(named))
        }
        Some(signer) => (signer, None),
        None => (named, None),
    }
}

/// Bytes of the signature at the end of the extra data, and of what stands before signers.
const SEAL: usize = 65;
const VANITY: usize = 32;

/// Who signed a block that looks like one of clique (EIP-225).
fn signer(header: &Header) -> Option<Address> {
    let vote = header.nonce.0;
    let is_signed = !header.difficulty.is_zero()
        && header.difficulty <= U256::from(2)
        && header.mix_hash.is_zero()
        && (vote == [0; 8] || vote == [0xff; 8])
        && header.extra_data.len() >= VANITY + SEAL;
    let (signed, seal) = header
        .extra_data
        .split_last_chunk::<SEAL>()
        .filter(|_| is_signed)?;
    let bare = Header {
        extra_data: Bytes::copy_from_slice(signed),
        ..header.clone()
    };
    let (r, rest) = seal.split_first_chunk::<32>()?;
    let (s, parity) = rest.split_first_chunk::<32>()?;
    let signature = Signature::new(U256::from_be_bytes(*r), U256::from_be_bytes(*s), parity == [1]);
    signature.recover_address_from_prehash(&header_hash(&bare)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reward_that_the_store_does_not_remember_is_told_by_what_was_issued() {
        let mut block = Block::default();
        block.header.number = 9;
        block.header.difficulty = U256::from(7);
        block.withdrawals = Some(vec![crate::model::Withdrawal {
            amount_gwei: 3,
            ..Default::default()
        }]);
        block.uncles = vec![Default::default()];
        block.uncle_headers = vec![Header {
            number: 8,
            ..Header::default()
        }];
        let five = U256::from(5_000_000_000_000_000_001_u64);
        let (known, unknown) = (
            StaticRewards::of_steps(vec![(0, five.to())]),
            StaticRewards::default(),
        );
        let told = issued(&block, five, &known);
        assert_eq!(static_reward(&block, &known, told), five);
        assert_eq!(static_reward(&block, &unknown, told), five);
        // What no reward explains stays unexplained.
        let other = static_reward(&block, &known, U256::ONE);
        assert_ne!(issued(&block, other, &known), U256::ONE);
        // Without difficulty there is none.
        block.header.difficulty = U256::ZERO;
        assert_eq!(static_reward(&block, &unknown, told), U256::ZERO);
    }
}
