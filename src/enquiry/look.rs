//! Looking at the store for what is to be asked: new tokens, tokens that moved, tokens not compared for long.
//! Reads the disk, so it runs where that may be done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::{EnquiryOptions, Tools};
use crate::clock;
use crate::model::{Address, BlockId, BlockRange, TokenVerdict};
use crate::query::{QueryError, Reader, Token, Touch, is_on, stands};

/// Blocks whose touched accounts are remembered, for the case that they are orphaned.
const REMEMBERED: usize = 128;
/// More new blocks at once than these are not looked at one by one.
const BLOCKS_MAX: u64 = 512;
/// Tokens looked at in one go.
const TOKENS_MAX: u32 = 500;
/// How long a look may look up who did something since: jobs under way wait for it.
const MADE_UP_TIME: Duration = Duration::from_millis(50);
/// Verdicts are given while the index is at most so far behind its node: what is compared while it rushes on would
/// be moved again at once, and a node that is no archive has the newest states only.
pub(super) const LAG_MAX: u64 = 64;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Token events of new blocks, and of blocks that are no longer of the chain.
    pub(super) touches: Vec<Touch>,
    /// Tokens with a verdict that were called in new blocks, whether or not an event told of it.
    pub(super) called: Vec<Address>,
    /// Tokens without metadata, or with that of another branch.
    pub(super) nameless: Vec<Address>,
    /// Tokens without a verdict that stands.
    pub(super) unjudged: Vec<Address>,
    /// The same of those that were not exact by a verdict whose block was orphaned: their holders have what events say meanwhile.
    pub(super) voided: Vec<Address>,
    /// Exact tokens not compared for long.
    pub(super) stale: Vec<Address>,
    /// Tokens that are not exact, all of whose holders are to be asked for.
    pub(super) inexact: Vec<Address>,
    /// Tokens that are not exact, and holders that were told of after blocks that are no longer of the chain.
    pub(super) orphaned: Vec<(Address, Vec<Address>)>,
    /// Whether the index is near the node's head.
    pub(super) near: bool,
}

/// What there is room for among the jobs that wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) names: bool,
    /// Comparisons, and what follows from them.
    pub(super) verdicts: bool,
}

/// A block that was looked at.
#[derive(Debug)]
struct Seen {
    block: BlockId,
    /// Token ids given up to it.
    tokens: u32,
    touches: Vec<Touch>,
}

/// What was looked at so far.
#[derive(Debug)]
pub(super) struct Looker {
    options: EnquiryOptions,
    seen: VecDeque<Seen>,
    /// The first token id that was not looked at.
    next_new: u32,
    /// The next id of the round over all tokens, and when the round goes on.
    next_old: u32,
    round_from: Instant,
    /// It began while the index was far from its node's head, and looks for names only: it begins anew once that is near.
    is_of_names: bool,
    /// Exact and other tokens met on that round.
    tally: [u64; 2],
    /// Those of them whose ids a reorg may take away, ascending, and whether they are exact.
    counted: Vec<(u32, bool)>,
    /// Blocks up to this one were not looked at one by one: the round that begins once the index is near its node makes up for that.
    skipped: Option<u64>,
    /// It is under way: tokens that were called, or spoke, up to this block after they were compared are compared again.
    made_up_to: Option<u64>,
}

impl Looker {
    pub(super) fn new(options: EnquiryOptions) -> Self {
        Self {
            options,
            seen: VecDeque::new(),
            next_new: 0,
            next_old: 0,
            round_from: clock::now() + options.round_pause,
            is_of_names: false,
            tally: [0; 2],
            counted: Vec::new(),
            skipped: None,
            made_up_to: None,
        }
    }

    /// Looks at tokens again from an id on: ids may be given anew, and fewer than before, beyond which no round would come to its end.
    fn look_again_from(&mut self, id: u32) {
        self.next_new = self.next_new.min(id);
        self.next_old = self.next_old.min(self.next_new);
        // Whoever has the ids next is counted for them.
        let gone = self.counted.partition_point(|&(id, _)| id < self.next_old);
        for (_, exact) in self.counted.split_off(gone) {
            *self.tally_of(exact) -= 1;
        }
    }

    const fn tally_of(&mut self, exact: bool) -> &mut u64 {
        let [those, others] = &mut self.tally;
        if exact { those } else { others }
    }

    fn begin_round(&mut self) {
        self.round_from = clock::now();
        self.next_old = 0;
        self.take_tally();
    }

    /// Counts a token that was met on the round.
    fn count(&mut self, id: u32, exact: bool) {
        *self.tally_of(exact) += 1;
        if self.seen.front().is_none_or(|first| first.tokens <= id) {
            self.counted.push((id, exact));
        }
    }

    fn take_tally(&mut self) -> [u64; 2] {
        self.counted.clear();
        std::mem::take(&mut self.tally)
    }

    /// Looks at what is new, and on at what is old while there is `room` for more to be asked.
    pub(super) fn look(&mut self, tools: &Tools, room: Room) -> Result<News, QueryError> {
        let reader = Reader::new(tools.store.view());
        let mut news = News::default();
        if reader.is_empty() {
            return Ok(news);
        }
        let head = reader.head();
        let node_head = tools.status.node_head().unwrap_or(head.number);
        news.near = node_head.saturating_sub(head.number) <= LAG_MAX;
        self.blocks(&reader, tools, head, &mut news)?;
        if news.near {
            let skipped = self.skipped.take();
            if skipped.is_some() || self.is_of_names {
                self.made_up_to = skipped.or(self.made_up_to);
                self.is_of_names = false;
                self.begin_round();
            }
        }
        tools.status.tokens().set_known(u64::from(tokens_of(&reader)));
        self.tokens(&reader, tools, room, &mut news)?;
        Ok(news)
    }

    fn blocks(
        &mut self,
        reader: &Reader,
        tools: &Tools,
        head: BlockId,
        news: &mut News,
    ) -> Result<(), QueryError> {
        while let Some(last) = self.seen.back()
            && !is_on(reader.view(), last.block)
        {
            if let Some(orphan) = self.seen.pop_back() {
                self.look_again_from(orphan.tokens);
                news.touches.extend(orphan.touches);
            }
            if let Some(before) = self.seen.back() {
                self.look_again_from(before.tokens);
            }
        }
        let nameless = tools.described.orphaned(reader.view()).into_iter();
        news.nameless.extend(nameless.map(|(_, token)| token));
        news.orphaned = orphaned_values(reader, tools);
        orphaned_verdicts(reader, tools, news);
        let tokens = tokens_of(reader);
        let next = self.seen.back().map(|last| last.block.number + 1);
        let next = next.unwrap_or(head.number + 1);
        if next.saturating_add(BLOCKS_MAX) <= head.number || self.seen.is_empty() {
            // Too many to look at, or a start: whatever moved meanwhile is found by the round over all tokens.
            self.seen.clear();
            tools.swept.forget();
            self.skipped = Some(head.number);
            self.begin_round();
            self.seen.push_back(Seen {
                block: head,
                tokens,
                touches: Vec::new(),
            });
            return Ok(());
        }
        for number in next..=head.number {
            let block = BlockId {
                number,
                hash: reader.view().block(number)?.hash,
            };
            let mut touches = Vec::new();
            if let Some(range) = BlockRange::new(number, number) {
                touches = reader.token_touches(range)?;
                for callee in reader.callees(range)? {
                    if tools.observed.verdict(&callee).is_some() && reader.token(&callee)?.is_some() {
                        news.called.push(callee);
                    }
                }
            }
            news.touches.extend_from_slice(&touches);
            self.seen.push_back(Seen {
                block,
                tokens,
                touches,
            });
            if REMEMBERED < self.seen.len() {
                self.seen.pop_front();
            }
        }
        Ok(())
    }

    /// Asks for names of new tokens: each is among those that moved, and compared as one of these, or blocks were not looked at one by one,
    /// and a round begins. Then goes on with the round.
    fn tokens(
        &mut self,
        reader: &Reader,
        tools: &Tools,
        room: Room,
        news: &mut News,
    ) -> Result<(), QueryError> {
        let count = tokens_of(reader);
        if room.names {
            let end = count.min(self.next_new.saturating_add(TOKENS_MAX));
            for id in self.next_new..end {
                named(reader, tools, id, room, news)?;
            }
            self.next_new = end;
        }
        if self.round_from <= clock::now() && self.goes_on(room, news.near) {
            let end = self.next_new.min(self.next_old.saturating_add(TOKENS_MAX));
            let until = clock::now() + MADE_UP_TIME;
            while self.next_old < end {
                if let Some(token) = named(reader, tools, self.next_old, room, news)?
                    && let Some(exact) = self.verdict(reader, tools, &token, news)?
                {
                    self.count(self.next_old, exact);
                }
                self.next_old += 1;
                if self.made_up_to.is_some() && until <= clock::now() {
                    break;
                }
            }
            if self.next_old == self.next_new && self.next_old == count {
                self.made_up_to = None;
                let [exact, inexact] = self.take_tally();
                tools.status.tokens().set_verdicts(exact, inexact);
                self.next_old = 0;
                self.round_from = clock::now() + self.options.round_pause;
            }
        }
        Ok(())
    }

    /// Whether the round over all tokens goes on: far from the head one of names alone, while one that began near it waits.
    fn goes_on(&mut self, room: Room, near: bool) -> bool {
        if self.next_old == 0 {
            self.is_of_names = !near;
        }
        match self.is_of_names {
            true => room.names,
            false => near && room.verdicts,
        }
    }

    /// Whether an exact token was not compared for long.
    fn is_stale(&self, reader: &Reader, verdict: &TokenVerdict) -> bool {
        let checked = verdict.checked.number;
        checked.saturating_add(self.options.recheck_blocks) < reader.head().number
    }

    /// Looks at the verdict on a token; says whether it is exact by it, also by one that is void: a comparison counts on from there. Who did
    /// something that is to be made up for and was not compared since is to be.
    fn verdict(
        &self,
        reader: &Reader,
        tools: &Tools,
        token: &Token,
        news: &mut News,
    ) -> Result<Option<bool>, QueryError> {
        // What its holders have is in no answer where it is older than the store.
        if !token.is_whole() {
            return Ok(None);
        }
        let address = token.address;
        let verdict = tools.observed.verdict(&address);
        let exact = verdict.as_ref().map(|verdict| verdict.exact);
        if !news.near {
            return Ok(exact);
        }
        match verdict {
            Some(verdict) if stands(reader.view(), &verdict) => {
                let is_left = tools.left_over.take(&address);
                if !verdict.exact {
                    news.inexact.push(address);
                } else if is_left
                    || self.is_stale(reader, &verdict)
                    || did_something(reader, &address, &verdict, self.made_up_to)?
                {
                    news.stale.push(address);
                }
            }
            _ => news.unjudged.push(address),
        }
        Ok(exact)
    }
}

/// Looks at one token and at whether its name is known.
fn named(
    reader: &Reader,
    tools: &Tools,
    id: u32,
    room: Room,
    news: &mut News,
) -> Result<Option<Token>, QueryError> {
    let address = reader.view().token_address(id)?;
    // Until its first transfer it is no token for readers; then it is among those that moved.
    let token = reader.token(&address)?;
    if token.is_some() && room.names && !tools.is_described(reader.view(), &address) {
        news.nameless.push(address);
    }
    Ok(token)
}

/// Whether a token was called, or spoke, after it was compared and up to a block.
fn did_something(
    reader: &Reader,
    token: &Address,
    verdict: &TokenVerdict,
    until: Option<u64>,
) -> Result<bool, QueryError> {
    let Some(until) = until else { return Ok(false) };
    // Of an orphaned block nothing is left but the one that it rests on.
    let compared = Some(verdict.checked).filter(|&block| is_on(reader.view(), block));
    let compared = compared.or(verdict.anchor).unwrap_or(verdict.checked).number;
    Ok(compared < until && reader.was_active(token, (compared, until))?)
}

/// The tokens whose balances and supply were told after blocks that are no longer of the chain, with all the holders that were
/// told of after the first of those.
fn orphaned_values(reader: &Reader, tools: &Tools) -> Vec<(Address, Vec<Address>)> {
    let mut first: BTreeMap<Address, u64> = BTreeMap::new();
    for (block, token) in tools.valued.orphaned(reader.view()) {
        let first = first.entry(token).or_insert(block.number);
        *first = block.number.min(*first);
    }
    // An exact token's are not looked at.
    first.retain(|token, _| {
        tools
            .observed
            .verdict(token)
            .is_some_and(|verdict| !verdict.exact)
    });
    let tokens = first.into_iter();
    tokens
        .map(|(token, block)| (token, tools.observed.told_since(&token, block)))
        .collect()
}

/// Finds the tokens whose verdict does not stand any more, as the block after which they were compared is orphaned: no event need name them
/// again, and what was told of their holders counts for nothing until they are compared on the branch that stays.
fn orphaned_verdicts(reader: &Reader, tools: &Tools, news: &mut News) {
    let orphaned = tools.judged.orphaned(reader.view()).into_iter();
    let tokens: BTreeSet<_> = orphaned.map(|(_, token)| token).collect();
    for token in tokens {
        match tools.observed.verdict(&token) {
            Some(verdict) if stands(reader.view(), &verdict) => {}
            Some(verdict) if !verdict.exact => news.voided.push(token),
            _ => news.unjudged.push(token),
        }
    }
}

/// How many ids of tokens are given; some of them are of contracts without a transfer so far.
fn tokens_of(reader: &Reader) -> u32 {
    reader.view().checkpoint().tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_does_not_stay_beyond_the_ids_that_are_left() {
        let mut looker = Looker::new(EnquiryOptions::new(1));
        (looker.next_new, looker.next_old) = (900, 600);
        looker.look_again_from(700);
        assert_eq!((looker.next_new, looker.next_old), (700, 600));
        looker.look_again_from(500);
        assert_eq!((looker.next_new, looker.next_old), (500, 500));
        looker.look_again_from(800);
        assert_eq!((looker.next_new, looker.next_old), (500, 500));
    }

    #[test]
    fn a_round_waits_where_it_cannot_do_what_it_began_for() {
        let mut looker = Looker::new(EnquiryOptions::new(1));
        let room = |names, verdicts| Room { names, verdicts };
        for near in [false, true] {
            looker.next_old = 0;
            let mut goes_on = |names, verdicts, near| looker.goes_on(room(names, verdicts), near);
            assert_eq!(goes_on(true, false, near), !near);
            assert_eq!(goes_on(false, true, near), near);
            looker.next_old = 500;
            assert!(looker.goes_on(room(true, true), near));
            assert_eq!(
                looker.goes_on(room(true, true), !near),
                !near,
                "begun near: {near}"
            );
        }
    }

    #[test]
    fn a_token_whose_id_is_given_anew_is_counted_once() {
        let mut looker = Looker::new(EnquiryOptions::new(1));
        (looker.next_new, looker.next_old) = (900, 600);
        for (id, exact) in [(499, true), (500, true), (550, false), (599, true)] {
            looker.count(id, exact);
        }
        looker.look_again_from(700);
        assert_eq!(looker.tally, [3, 1]);
        looker.look_again_from(551);
        assert_eq!(looker.tally, [2, 1]);
        looker.look_again_from(500);
        assert_eq!(looker.tally, [1, 0]);
        looker.count(500, false);
        assert_eq!(looker.take_tally(), [1, 1]);
        // The next round begins without any.
        looker.look_again_from(0);
        assert_eq!(looker.tally, [0, 0]);
    }
}
