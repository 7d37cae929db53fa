//! What a block moves: from its transactions, their frames, its header, uncles and withdrawals, to what flows into
//! and out of each account. A pure function of the bundle.

use std::collections::HashMap;

use alloy_primitives::map::{AddressMap, AddressSet};

use super::NativeRules;
use super::sealer::fee_recipient;
use crate::codec::value::{BlockFees, FeeRow, FundingKind, NativeFaultReason};
use crate::model::{
    Address, Bundle, Frame, FrameKind, Transaction, TransactionTrace, U256, uncle_inclusion_reward,
};

const GWEI: u64 = 1_000_000_000;

/// The first positive inflow of an account in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inflow {
    pub(super) kind: FundingKind,
    /// The ordinal of the transaction, and who sent.
    pub(super) by: Option<(u64, Address)>,
    pub(super) value: U256,
}

/// What a block does to an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) into: U256,
    pub(super) out: U256,
    /// Whether it took part, as answers.md section 6 (S5) counts it.
    pub(super) participant: bool,
    pub(super) first: Option<Inflow>,
}

/// What a block does to all accounts.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) accounts: AddressMap<Flow>,
    /// Base fees that its transactions paid and nobody got.
    pub(super) base_fees_burnt: U256,
    /// The same of blob fees.
    pub(super) blob_fees_burnt: U256,
    /// Gone with contracts that ended.
    pub(super) destroyed: U256,
    /// Why the flows are not all there is, where they are not.
    pub(super) fault: Option<NativeFaultReason>,
}

/// Contracts that ended in the transaction, with what came and went since.
type Ended = AddressMap<(U256, U256)>;

impl Flows {
    /// The flows of a block whose transactions begin at ordinal `first_transaction`.
    pub(super) fn of(
        bundle: &Bundle,
        traces: &[TransactionTrace],
        first_transaction: u64,
        rules: &NativeRules,
    ) -> Self {
        let mut flows = Self::default();
        let header = &bundle.block.header;
        if header.number == 0 {
            return flows;
        }
        let recipient = match fee_recipient(header, rules.sealing) {
            Ok(recipient) => recipient,
            Err(fault) => {
                flows.fault = Some(fault);
                header.beneficiary
            }
        };
        let mut split = BlockFees::of(header);
        let mut tips = U256::ZERO;
        let pairs = bundle.block.transactions.iter().zip(&bundle.receipts);
        for (index, (transaction, receipt)) in pairs.enumerate() {
            let fee = FeeRow::new(transaction, receipt);
            if transaction.kind > Transaction::LAST_KIND
                || fee.in_token
                || receipt.extra.as_deref().is_some_and(pays_below)
            {
                flows.fault.get_or_insert(NativeFaultReason::Foreign);
            }
            let fees = split.split(&fee);
            let tip = U256::from(fees.tip);
            flows.base_fees_burnt = flows.base_fees_burnt.saturating_add(fees.base_fee_burnt);
            flows.blob_fees_burnt = flows.blob_fees_burnt.saturating_add(fees.blob_fee_burnt);
            tips = tips.saturating_add(tip);
            let paid = tip
                .saturating_add(fees.base_fee_burnt)
                .saturating_add(fees.blob_fee_burnt);
            let mut ended = Ended::default();
            flows.of_transaction(transaction, paid);
            if let Some(trace) = traces.get(index) {
                let by = first_transaction.saturating_add(index as u64);
                // From Cancun on a contract ends only in the transaction that made it (EIP-6780).
                let cancun = header.blob_gas_used.is_some();
                flows.of_frames(&trace.frames, by, cancun, &mut ended);
            }
            // Paid before contracts end: a fee recipient that ends loses it too.
            flows.give(recipient, tip, &mut ended);
            flows.bury(&ended);
        }
        flows.of_block(bundle, recipient, tips, rules);
        flows
    }

    fn account(&mut self, account: Address) -> &mut Flow {
        self.accounts.entry(account).or_default()
    }

    fn of_transaction(&mut self, transaction: &Transaction, paid: U256) {
        let sender = self.account(transaction.from);
        sender.participant = true;
        sender.out = sender.out.saturating_add(paid);
        if let Some(to) = transaction.to {
            self.account(to).participant = true;
        }
    }

    fn of_frames(&mut self, frames: &[Frame], transaction: u64, cancun: bool, ended: &mut Ended) {
        let mut created = AddressSet::default();
        let callers = Callers::of(frames);
        for frame in frames.iter().filter(|frame| !frame.reverted) {
            let Some(to) = frame.to else { continue };
            let kind = if frame.path.is_empty() {
                FundingKind::Transaction
            } else {
                FundingKind::Internal
            };
            let by = (transaction, frame.from);
            match frame.kind {
                FrameKind::Call => self.pay(kind, by, to, frame.value, ended),
                FrameKind::Create | FrameKind::Create2 => {
                    created.insert(to);
                    self.account(to).participant = true;
                    self.pay(kind, by, to, frame.value, ended);
                }
                // Nodes on revm tell of a contract that ends in favour of itself, and lives on, as the last payment
                // before it: whose code runs says that this is none.
                FrameKind::SelfDestruct if callers.whose_code(&frame.path) != Some(frame.from) => {}
                FrameKind::SelfDestruct => {
                    let ends = !cancun || created.contains(&frame.from);
                    if to != frame.from {
                        self.pay(kind, by, to, frame.value, ended);
                    } else if ends {
                        // Left to itself, it goes with it.
                        let own = self.account(to);
                        own.out = own.out.saturating_add(frame.value);
                        own.participant |= !frame.value.is_zero();
                        self.destroyed = self.destroyed.saturating_add(frame.value);
                    }
                    if ends {
                        ended.insert(frame.from, (U256::ZERO, U256::ZERO));
                    }
                }
                FrameKind::DelegateCall | FrameKind::StaticCall | FrameKind::CallCode => {}
            }
        }
    }

    /// Moves `value` by a frame.
    fn pay(
        &mut self,
        kind: FundingKind,
        (transaction, from): (u64, Address),
        to: Address,
        value: U256,
        ended: &mut Ended,
    ) {
        if value.is_zero() {
            return;
        }
        let sender = self.account(from);
        sender.out = sender.out.saturating_add(value);
        sender.participant = true;
        if let Some((_, out)) = ended.get_mut(&from) {
            *out = out.saturating_add(value);
        }
        self.give(to, value, ended);
        let recipient = self.account(to);
        recipient.participant = true;
        if from != to {
            recipient.first.get_or_insert(Inflow {
                kind,
                by: Some((transaction, from)),
                value,
            });
        }
    }

    fn give(&mut self, to: Address, value: U256, ended: &mut Ended) {
        let recipient = self.account(to);
        recipient.into = recipient.into.saturating_add(value);
        if let Some((into, _)) = ended.get_mut(&to) {
            *into = into.saturating_add(value);
        }
    }

    /// At the end of a transaction: what contracts got after they ended is gone.
    fn bury(&mut self, ended: &Ended) {
        for (account, (into, out)) in ended {
            let left = into.saturating_sub(*out);
            let flow = self.account(*account);
            flow.out = flow.out.saturating_add(left);
            self.destroyed = self.destroyed.saturating_add(left);
        }
    }

    /// What the block itself gives: to its fee recipient, to those of its uncles, to who withdraws.
    fn of_block(&mut self, bundle: &Bundle, recipient: Address, tips: U256, rules: &NativeRules) {
        let block = &bundle.block;
        let number = block.number();
        let static_reward = rules.static_rewards.of_block(number, block.header.difficulty);
        let inclusion = uncle_inclusion_reward(static_reward, block.uncles.len());
        let reward = static_reward.saturating_add(inclusion);
        self.give(recipient, reward, &mut Ended::default());
        self.account(recipient).participant = true;
        // The tips are given already.
        self.fund(recipient, FundingKind::Reward, reward.saturating_add(tips));
        if block.uncle_headers.len() != block.uncles.len() && !static_reward.is_zero() {
            self.fault.get_or_insert(NativeFaultReason::Sealer);
        }
        for uncle in &block.uncle_headers {
            let reward = rules.static_rewards.of_uncle(static_reward, number, uncle.number);
            self.give(uncle.beneficiary, reward, &mut Ended::default());
            self.fund(uncle.beneficiary, FundingKind::Reward, reward);
        }
        for withdrawal in block.withdrawals.iter().flatten() {
            let value = U256::from(withdrawal.amount_gwei) * U256::from(GWEI);
            self.give(withdrawal.address, value, &mut Ended::default());
            self.account(withdrawal.address).participant = true;
            self.fund(withdrawal.address, FundingKind::Withdrawal, value);
        }
    }

    fn fund(&mut self, account: Address, kind: FundingKind, value: U256) {
        if !value.is_zero() {
            let inflow = Inflow {
                kind,
                by: None,
                value,
            };
            self.account(account).first.get_or_insert(inflow);
        }
    }
}

/// Who called what of a transaction, by the places in the call tree, in whatever order its frames come.
pub(in crate::sync) struct Callers<'a>(HashMap<&'a [u32], &'a Frame>);

impl<'a> Callers<'a> {
    /// Of these frames; without a self-destruct, of which alone it is asked, there is nothing to know.
    pub(in crate::sync) fn of(frames: &'a [Frame]) -> Self {
        let mut callers = HashMap::new();
        if frames.iter().any(|frame| frame.kind == FrameKind::SelfDestruct) {
            callers.reserve(frames.len());
            for frame in frames {
                callers.entry(frame.path.as_slice()).or_insert(frame);
            }
        }
        Self(callers)
    }

    /// The account whose balance the code that made the frame at `path` acts on.
    pub(in crate::sync) fn whose_code(&self, path: &[u32]) -> Option<Address> {
        let (_, caller) = path.split_last()?;
        let caller = self.0.get(caller)?;
        match caller.kind {
            FrameKind::DelegateCall | FrameKind::CallCode => Some(caller.from),
            _ => caller.to,
        }
    }
}

/// Whether a receipt names a fee for the layer below (OP Stack, Scroll, Arbitrum).
fn pays_below(extra: &str) -> bool {
    ["\"l1Fee\"", "\"gasUsedForL1\"", "\"l1BlockNumber\""]
        .iter()
        .any(|field| extra.contains(field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The caller by looking at one frame after the other.
    fn looked_for(frames: &[Frame], path: &[u32]) -> Option<Address> {
        let (_, caller) = path.split_last()?;
        let caller = frames.iter().find(|frame| frame.path == caller)?;
        match caller.kind {
            FrameKind::DelegateCall | FrameKind::CallCode => Some(caller.from),
            _ => caller.to,
        }
    }

    prop_compose! {
        fn frame()(
            kind in prop::sample::select(vec![
                FrameKind::Call,
                FrameKind::CallCode,
                FrameKind::DelegateCall,
                FrameKind::Create,
                FrameKind::SelfDestruct,
            ]),
            path in prop::collection::vec(0u32..3, 0..4),
            from in 0u8..9,
            to in prop::option::of(0u8..9),
        ) -> Frame {
            Frame {
                kind,
                path,
                from: Address::with_last_byte(from),
                to: to.map(Address::with_last_byte),
                ..Frame::default()
            }
        }
    }

    proptest! {
        #[test]
        fn callers_are_those_that_a_look_at_each_frame_finds(
            mut frames in prop::collection::vec(frame(), 0..40),
            is_sorted: bool,
        ) {
            frames.push(Frame { kind: FrameKind::SelfDestruct, path: vec![0, 1], ..Frame::default() });
            if is_sorted {
                frames.sort_by(|a, b| a.path.cmp(&b.path));
            }
            let callers = Callers::of(&frames);
            for frame in &frames {
                prop_assert_eq!(callers.whose_code(&frame.path), looked_for(&frames, &frame.path));
            }
        }
    }
}
