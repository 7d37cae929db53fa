//! What was asked lately after blocks that may yet be orphaned: a contract may have said there what it never said on the
//! branch that stays.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::{Address, B256, BlockId};
use crate::query::is_on;
use crate::store::View;

/// Questions remembered that were asked at blocks that are not final; what the others said is found by the rounds over all
/// tokens.
const ASKED_MAX: usize = 1 << 16;

/// So many looks at one head before blocks above it count as orphaned: the index may be between two branches, and what is asked
/// there is not of the one that stays.
const LOOKS: u32 = 8;

/// Tokens that were asked lately, and after which blocks.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Asked>);

#[derive(Debug, Default)]
struct Asked {
    tokens: VecDeque<(BlockId, Address)>,
    /// The head when orphans were looked for last, and how often it was that.
    head: B256,
    looks: u32,
}

impl Recent {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note that a token is asked after a block.
    pub(super) fn note(&self, view: &View, block: BlockId, token: Address) {
        let last_final = view.finalized();
        let is_over = |block: BlockId| last_final.is_some_and(|last| block.number <= last);
        let tokens = &mut self.asked().tokens;
        while tokens.front().is_some_and(|&(first, _)| is_over(first)) || ASKED_MAX <= tokens.len() {
            tokens.pop_front();
        }
        let mut of_block = tokens.iter().rev().take_while(|(other, _)| *other == block);
        if !is_over(block) && !of_block.any(|(_, other)| *other == token) {
            tokens.push_back((block, token));
        }
    }

    /// The tokens that were asked after blocks that are no longer of the chain, and after which; they are forgotten.
    pub(super) fn orphaned(&self, view: &View) -> Vec<(BlockId, Address)> {
        let mut orphaned = Vec::new();
        let head = view.head().unwrap_or_default();
        let asked = &mut *self.asked();
        if asked.head == head.hash {
            asked.looks = asked.looks.saturating_add(1);
        } else {
            (asked.head, asked.looks) = (head.hash, 0);
        }
        // In between nothing can have changed.
        if !matches!(asked.looks, 0 | LOOKS) {
            return orphaned;
        }
        let may_come = |block: BlockId| asked.looks < LOOKS && head.number < block.number;
        // Those of one block follow each other.
        let mut last: Option<(BlockId, bool)> = None;
        asked.tokens.retain(|&(block, token)| {
            let is_kept = match last {
                Some((known, is_kept)) if known == block => is_kept,
                _ => is_on(view, block) || may_come(block),
            };
            last = Some((block, is_kept));
            if !is_kept {
                orphaned.push((block, token));
            }
            is_kept
        });
        orphaned
    }
}
