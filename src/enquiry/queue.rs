//! What is to be asked next.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

use super::job::{ATTEMPTS_MAX, Ended, Job, METADATA, MOVED, Work};
use super::look::{News, Room};
use super::moved::Moved;
use super::{EnquiryOptions, Tools};
use crate::clock;
use crate::model::{Address, TokenVerdict};
use crate::query::stands;

/// As many names may wait, and as many jobs of the other kinds, before more are looked for.
const WAITING_MAX: usize = 2_000;
/// A job for which the node lacks the block is put off by so many looks, then by twice as many, and so on.
const LATER_TICKS: u32 = 4;
const LATER_MAX: Duration = Duration::from_secs(30);
/// So often; then it is left to the next round over all tokens.
const LATER_ATTEMPTS_MAX: u32 = 10;

/// Accounts of a token that are asked for in one job.
const REFRESH_STEP: usize = 256;

/// A round that begins because balances changed in silence comes at least this many times as long after the last one of the token as
/// that took.
const SILENT_PAUSE_FACTOR: u32 = 4;

/// A round that balances that changed in silence began.
#[derive(Clone, Copy, Debug)]
struct SilentRound {
    /// Whether it has begun.
    is_begun: bool,
    /// How long it was worked on.
    worked: Duration,
    /// Where it is over: another may begin from then on.
    over_until: Option<Instant>,
    /// Balances changed again since it began.
    again: bool,
}

/// Jobs that wait, by kind.
#[derive(Debug)]
pub(super) struct Queue {
    options: EnquiryOptions,
    /// Tokens with a job in progress and since when; another of theirs waits.
    busy: HashMap<Address, Instant>,
    /// Tokens that are not exact, and their accounts that moved. These go first.
    refresh: BTreeMap<Address, BTreeSet<Address>>,
    /// The same of accounts that were asked for in vain, and how often they were.
    again: VecDeque<Job>,
    /// The last of the tokens whose turn it was, and how many accounts are being asked for.
    refreshed: Address,
    refreshing: HashMap<Address, usize>,
    /// Metadata, first verdicts, rounds, samples: see the constants.
    queues: [VecDeque<Job>; MOVED],
    /// Tokens that moved: the accounts where a token is exact, and when they may be looked at.
    moved: HashMap<Address, Moved>,
    moved_at: VecDeque<(Instant, Address)>,
    /// When moving tokens were compared last.
    judged: HashMap<Address, Instant>,
    /// Kinds other than the first take turns.
    turn: usize,
    /// Jobs that are put off, by token and kind, and until when.
    later: HashMap<(Address, Option<usize>), (Instant, Job)>,
    /// Tokens that are not exact, by the block after which what differed is looked at again.
    trials: BTreeSet<(u64, Address)>,
    /// Tokens in one of the queues.
    waiting: HashSet<(Address, usize)>,
    /// Rounds that balances that changed in silence began.
    silent: HashMap<Address, SilentRound>,
    near: bool,
}

impl Queue {
    pub(super) fn new(options: EnquiryOptions) -> Self {
        Self {
            options,
            busy: HashMap::new(),
            refresh: BTreeMap::new(),
            again: VecDeque::new(),
            refreshed: Address::ZERO,
            refreshing: HashMap::new(),
            queues: Default::default(),
            moved: HashMap::new(),
            moved_at: VecDeque::new(),
            judged: HashMap::new(),
            turn: 0,
            later: HashMap::new(),
            trials: BTreeSet::new(),
            waiting: HashSet::new(),
            silent: HashMap::new(),
            near: false,
        }
    }

    /// What more may be looked for. Names do not wait for verdicts, which themselves wait while the index is far behind.
    pub(super) fn room(&self) -> Room {
        let [names, ..] = &self.queues;
        let others = self.waiting.len().saturating_sub(names.len());
        Room {
            names: names.len() < WAITING_MAX,
            verdicts: others < WAITING_MAX,
        }
    }

    fn add(&mut self, token: Address, work: Work, attempts: u32) {
        let Some(kind) = work.kind() else {
            match work {
                Work::Refresh(accounts) if attempts == 0 => {
                    self.refresh.entry(token).or_default().extend(accounts);
                }
                work => self.again.push_back(Job {
                    token,
                    work,
                    attempts,
                }),
            }
            return;
        };
        let begins_anew = work == Work::Anew;
        if let Some((_, job)) = self.later.get_mut(&(token, Some(kind))) {
            if begins_anew {
                job.work = work;
            }
            return;
        }
        let Some(queue) = self.queues.get_mut(kind) else {
            return;
        };
        if self.waiting.insert((token, kind)) {
            queue.push_back(Job {
                token,
                work,
                attempts,
            });
        } else if begins_anew && let Some(job) = queue.iter_mut().find(|job| job.token == token) {
            job.work = work;
        }
    }

    /// Puts a job before all others of its kind, one that waits or is put off where there is one.
    fn add_first(&mut self, token: Address, work: Work) {
        let Some((kind, queue)) = work
            .kind()
            .and_then(|kind| Some((kind, self.queues.get_mut(kind)?)))
        else {
            return;
        };
        let place = queue.iter().position(|job| job.token == token);
        let waits = place.and_then(|place| queue.remove(place));
        let put_off = self.later.remove(&(token, Some(kind))).map(|(_, job)| job);
        let job = waits.or(put_off).unwrap_or(Job {
            token,
            work,
            attempts: 0,
        });
        self.waiting.insert((token, kind));
        queue.push_front(job);
    }

    /// Takes in what was found.
    pub(super) fn take(&mut self, news: News, tools: &Tools) {
        self.near = news.near;
        for token in news.nameless {
            self.add(token, Work::Metadata, 0);
        }
        for token in news.unjudged.into_iter().chain(news.stale) {
            self.add(token, Work::Judge(Vec::new()), 0);
        }
        for token in news.voided {
            self.add_first(token, Work::Judge(Vec::new()));
        }
        for token in news.inexact {
            self.try_later(token, tools);
            self.add(token, Work::Round, 0);
        }
        for (token, accounts) in news.orphaned {
            self.add(token, Work::Refresh(accounts), 0);
        }
        let view = tools.store.view();
        let head = view.head().map_or(0, |head| head.number);
        while let Some(&(due, token)) = self.trials.first()
            && due <= head
        {
            self.trials.pop_first();
            self.add(token, Work::Judge(Vec::new()), 0);
        }
        let now = clock::now();
        let due: Vec<_> = self
            .later
            .extract_if(|_, (until, _)| *until <= now)
            .map(|(_, (_, job))| job)
            .collect();
        for job in due {
            self.add(job.token, job.work, job.attempts);
        }
        let mut touched: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
        for touch in news.touches {
            touched.entry(touch.token).or_default().extend(touch.accounts);
        }
        // A token may change what accounts hold without an event: whoever was called may have.
        for token in news.called {
            touched.entry(token).or_default();
        }
        self.judged.retain(|_, at| now < *at + self.options.recheck_after);
        let is_past = |round: &SilentRound| round.over_until.is_some_and(|until| until <= now);
        let past: Vec<_> = self.silent.extract_if(|_, round| is_past(round)).collect();
        for (token, _) in past.into_iter().filter(|(_, round)| round.again) {
            self.begin_silent_round(token, now);
        }
        for (token, accounts) in touched {
            if !tools.is_described(&view, &token) {
                self.add(token, Work::Metadata, 0);
            }
            let verdict = tools.observed.verdict(&token);
            let is_exact = verdict.as_ref().is_none_or(|verdict| verdict.exact);
            // One that was not exact on another branch is compared first of all on this one.
            let is_judged = verdict.is_some_and(|verdict| !verdict.exact && stands(&view, &verdict));
            if !is_exact && !accounts.is_empty() {
                self.add(token, Work::Refresh(accounts.iter().copied().collect()), 0);
            }
            let due = self
                .judged
                .get(&token)
                .map_or(now, |at| *at + self.options.recheck_after);
            let before = self.moved.remove(&token);
            if before.is_none() {
                self.moved_at.push_back((due, token));
            }
            let moved = match is_judged {
                true => Moved::Sample,
                false => Moved::compare(before, accounts),
            };
            self.moved.insert(token, moved);
        }
        self.show(tools);
    }

    /// Looks at a token again some time, where what showed it not to be exact can be looked at.
    fn try_later(&mut self, token: Address, tools: &Tools) {
        let due = tools.observed.verdict(&token);
        if let Some(due) = due.and_then(|verdict| trial_due(&verdict, &self.options)) {
            self.trials.insert((due, token));
        }
    }

    /// Puts a job off; one that was put off too often is left to the next round over all tokens.
    fn put_off(&mut self, mut job: Job, tools: &Tools) {
        let wait = self.options.tick * LATER_TICKS * (1 << job.attempts.min(16));
        job.attempts += 1;
        if LATER_ATTEMPTS_MAX <= job.attempts {
            self.give_up(&job, tools);
            return;
        }
        let key = (job.token, job.work.kind());
        // Another one that waits asks for other accounts.
        if let Some((_, before)) = self.later.remove(&key)
            && let (Work::Refresh(accounts), Work::Refresh(more)) = (&mut job.work, before.work)
        {
            accounts.extend(more);
            accounts.sort_unstable();
            accounts.dedup();
            job.attempts = job.attempts.max(before.attempts);
        }
        self.later.insert(key, (clock::now() + wait.min(LATER_MAX), job));
    }

    fn show(&self, tools: &Tools) {
        let touched = self.refresh.len() + self.again.len();
        let waiting = self.waiting.len() + self.later.len() + touched + self.moved.len();
        tools.status.tokens().set_waiting(waiting as u64);
        let accounts = self.refresh.values().map(BTreeSet::len).sum::<usize>();
        let again = self.again.iter().map(|job| job.work.accounts()).sum::<usize>();
        let refreshing = self.refreshing.values().sum::<usize>();
        tools.rate.set_urgent(refreshing + accounts + again);
    }

    /// The next job about accounts that were touched: tokens take turns, and one with many accounts takes several.
    fn next_refresh(&mut self) -> Option<Job> {
        let job = match self.next_again() {
            Some(job) => job,
            None => self.next_touched()?,
        };
        self.refreshing.insert(job.token, job.work.accounts());
        Some(job)
    }

    /// Of those that were asked for in vain.
    fn next_again(&mut self) -> Option<Job> {
        let is_free = |job: &Job| !self.busy.contains_key(&job.token);
        let place = self.again.iter().position(is_free)?;
        let mut job = self.again.remove(place)?;
        if let Work::Refresh(accounts) = &mut job.work
            && REFRESH_STEP < accounts.len()
        {
            let rest = accounts.split_off(REFRESH_STEP);
            self.again.push_back(Job {
                token: job.token,
                work: Work::Refresh(rest),
                attempts: job.attempts,
            });
        }
        Some(job)
    }

    fn next_touched(&mut self) -> Option<Job> {
        let behind = (Bound::Excluded(self.refreshed), Bound::Unbounded);
        let tokens = self
            .refresh
            .range(behind)
            .chain(self.refresh.range(..=self.refreshed));
        let mut tokens = tokens.map(|(token, _)| *token);
        let token = tokens.find(|token| !self.busy.contains_key(token))?;
        let mut accounts = self.refresh.remove(&token).unwrap_or_default();
        if let Some(&rest) = accounts.iter().nth(REFRESH_STEP) {
            self.refresh.insert(token, accounts.split_off(&rest));
        }
        self.refreshed = token;
        Some(Job {
            token,
            work: Work::Refresh(accounts.into_iter().collect()),
            attempts: 0,
        })
    }

    /// The next job whose token has none in progress.
    pub(super) fn next(&mut self) -> Option<Job> {
        if self.near
            && let Some(job) = self.next_refresh()
        {
            self.busy.insert(job.token, clock::now());
            return Some(job);
        }
        for _ in 0..=MOVED {
            self.turn = (self.turn + 1) % (MOVED + 1);
            let found = match self.turn {
                METADATA => self.first(METADATA),
                _ if !self.near => None,
                MOVED => self.next_moved(),
                kind => self.first(kind),
            };
            if let Some(job) = found {
                self.busy.insert(job.token, clock::now());
                return Some(job);
            }
        }
        None
    }

    /// Takes the first job of a kind whose token has none in progress.
    fn first(&mut self, kind: usize) -> Option<Job> {
        let queue = self.queues.get_mut(kind)?;
        let place = queue
            .iter()
            .take(16)
            .position(|job| !self.busy.contains_key(&job.token))?;
        let job = queue.remove(place)?;
        self.waiting.remove(&(job.token, kind));
        Some(job)
    }

    fn next_moved(&mut self) -> Option<Job> {
        let now = clock::now();
        let place = self
            .moved_at
            .iter()
            .take(16)
            .position(|(due, token)| *due <= now && !self.busy.contains_key(token))?;
        let (_, token) = self.moved_at.remove(place)?;
        let work = match self.moved.remove(&token)? {
            Moved::Compare(accounts) => Work::Judge(accounts),
            Moved::Sample => Work::Sample,
        };
        Some(Job {
            token,
            work,
            attempts: 0,
        })
    }

    /// Takes note of how a job ended.
    pub(super) fn ended(&mut self, ended: Ended, tools: &Tools) {
        let (Ended::Done(job)
        | Ended::Fell(job)
        | Ended::Goes(job)
        | Ended::Void(job)
        | Ended::Later(job)
        | Ended::NodeFailed { job, .. }) = &ended;
        let now = clock::now();
        let began = self.busy.remove(&job.token).unwrap_or(now);
        self.refreshing.remove(&job.token);
        match &job.work {
            Work::Judge(_) => {
                self.judged.insert(job.token, now);
                self.try_later(job.token, tools);
            }
            Work::Sample => {
                self.judged.insert(job.token, now);
            }
            Work::Round | Work::Anew => match &ended {
                Ended::Goes(_) => self.went_on(job, false, began, now),
                Ended::Done(_) | Ended::Fell(_) => self.went_on(job, true, began, now),
                _ => {}
            },
            Work::Metadata | Work::Refresh(_) => {}
        }
        match ended {
            Ended::Later(job) => self.put_off(job, tools),
            Ended::Done(_) => {}
            // Until that is over its holders have what events say.
            Ended::Fell(job) if matches!(job.work, Work::Judge(_)) => self.add_first(job.token, Work::Round),
            Ended::Fell(job) => self.begin_silent_round(job.token, now),
            Ended::Goes(job) => self.add(job.token, Work::Round, 0),
            Ended::Void(job) => self.add(job.token, job.work, 0),
            Ended::NodeFailed { job, answered } => {
                let attempts = job.attempts + u32::from(answered);
                match attempts < ATTEMPTS_MAX {
                    true => self.add(job.token, job.work, attempts),
                    false => self.give_up(&job, tools),
                }
            }
        }
        self.show(tools);
    }
}

impl Queue {
    /// Begins a round over all holders of a token whose balances changed in silence; where one is under way, or was lately, another
    /// one later: a token that does so in every block would have the node to itself.
    fn begin_silent_round(&mut self, token: Address, now: Instant) {
        if let Some(round) = self.silent.get_mut(&token) {
            round.again = true;
            return;
        }
        tracing::debug!(token = ?token, "balances changed without an event, all holders are asked for");
        // Where there is none, looking for others comes first.
        let has_room = self.room().verdicts;
        let round = SilentRound {
            is_begun: false,
            worked: Duration::ZERO,
            over_until: (!has_room).then(|| now + self.options.recheck_after),
            again: !has_room,
        };
        self.silent.insert(token, round);
        if has_room {
            self.add(token, Work::Anew, 0);
        }
    }

    /// Takes note of a step of a round over all holders.
    fn went_on(&mut self, job: &Job, is_over: bool, began: Instant, now: Instant) {
        let Some(round) = self.silent.get_mut(&job.token) else {
            return;
        };
        // The last steps of another round may come before it.
        round.is_begun |= job.work == Work::Anew;
        if round.is_begun && round.over_until.is_none() {
            round.worked += now.saturating_duration_since(began);
            if is_over {
                let pause = round.worked * SILENT_PAUSE_FACTOR;
                round.over_until = Some(now + pause.max(self.options.recheck_after));
            }
        }
    }

    /// A job is not done, and comes no more by itself: the next round over all tokens brings it back.
    fn give_up(&mut self, job: &Job, tools: &Tools) {
        match job.work {
            Work::Round | Work::Anew => {
                self.silent.remove(&job.token);
            }
            // The round over all tokens would pass one by whose verdict says exact.
            Work::Judge(_) => tools.left_over.add(job.token),
            Work::Metadata | Work::Refresh(_) | Work::Sample => {}
        }
    }
}

/// The block after which what showed a token not to be exact is looked at again; `None` where that cannot be done. The
/// first time is soon, while nodes that are no archives have the state.
fn trial_due(verdict: &TokenVerdict, options: &EnquiryOptions) -> Option<u64> {
    let differed = verdict.differed.filter(|_| !verdict.exact)?;
    let times = 4_u64.saturating_pow(differed.trials);
    let wait = options.retry_blocks.saturating_mul(times);
    Some(
        verdict
            .checked
            .number
            .saturating_add(wait.min(options.recheck_blocks)),
    )
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
