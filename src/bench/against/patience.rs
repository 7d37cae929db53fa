//! How long another is waited for, and when it is asked no more.

use std::time::{Duration, Instant};

use crate::clock;

/// Another is not asked any more after so many questions in a row of which an answer did not come in time.
const LATE_MAX: u32 = 3;

/// Why another gave no answer.
pub(super) struct Refusal {
    pub(super) why: String,
    /// Whether nothing came, in time or at all: the next question may fare alike.
    pub(super) is_late: bool,
    /// Whether the other is to be left alone for a while, by its own word: to ask it for less is no use.
    pub(super) is_rest: bool,
}

impl Refusal {
    /// An answer that is no good.
    pub(super) const fn of(why: String) -> Self {
        Self {
            why,
            is_late: false,
            is_rest: false,
        }
    }

    /// An answer that did not come.
    pub(super) const fn late(why: String) -> Self {
        Self {
            why,
            is_late: true,
            is_rest: false,
        }
    }
}

/// How long another is waited for, and how many questions in a row it was too late for.
#[derive(Clone, Debug)]
pub struct Patience {
    request: Duration,
    late: u32,
    /// Whether an answer to the present question was late; `None` where nothing was asked yet.
    is_late: Option<bool>,
    /// Since when an answer is waited for, and what [`is_late`](Self::is_late) was before.
    waiting: Option<(Instant, Option<bool>)>,
    /// Why it is not asked for more than it must, once that took too long.
    pub(super) spared: Option<String>,
}

impl Patience {
    /// For another that ends a request of its own after `request`.
    #[must_use]
    pub const fn new(request: Duration) -> Self {
        Self {
            request,
            late: 0,
            is_late: None,
            waiting: None,
            spared: None,
        }
    }

    /// The time of a whole answer: of two requests, and a moment, so that the other's own words come first.
    #[must_use]
    pub fn answer(&self) -> Duration {
        self.request * 2 + Duration::from_secs(1)
    }

    /// Whether to ask no more.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.late >= LATE_MAX
    }

    /// A question is over: whether this was the one after which no more is asked.
    pub fn ends_question(&mut self) -> bool {
        match self.is_late.take() {
            Some(true) => self.late += 1,
            Some(false) => self.late = 0,
            None => return false,
        }
        self.is_over()
    }

    /// Waits for an answer; one that is broken off while it is waited for counts as late.
    pub(super) async fn wait<T>(
        &mut self,
        answer: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, String> {
        let before = self.is_late.replace(true);
        self.waiting = Some((clock::now(), before));
        let was_late = before == Some(true);
        let answer = self.in_time(answer).await;
        self.waiting = None;
        let is_late = answer.as_ref().is_err_and(|refusal| refusal.is_late);
        self.is_late = Some(was_late || is_late);
        answer.map_err(|refusal| refusal.why)
    }

    /// Whoever asked waits no longer: an answer that had not had its time by then was not late.
    pub fn is_cut(&mut self) {
        if let Some((since, before)) = self.waiting.take()
            && clock::now() - since < self.answer()
        {
            self.is_late = before;
        }
    }

    /// Notes an answer that was not waited for by [`wait`](Self::wait).
    pub(super) fn came(&mut self) {
        self.is_late.get_or_insert(false);
    }

    /// As [`wait`](Self::wait), of what may be late.
    pub(super) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let limit = self.answer();
        tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
            Err(Refusal::late(format!(
                "no answer within {} ms",
                limit.as_millis()
            )))
        })
    }
}

/// Another who can be asked, until it was late too often.
pub struct Peer<T> {
    /// Who.
    pub who: T,
    /// How long it is waited for.
    pub patience: Patience,
}

impl<T> Peer<T> {
    /// Somebody who ends a request of its own after `request`.
    #[must_use]
    pub const fn new(who: T, request: Duration) -> Self {
        Self {
            who,
            patience: Patience::new(request),
        }
    }

    /// Whether it is still asked.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        !self.patience.is_over()
    }

    /// Asks no longer than until `end`; whether that cut it short. An answer that is waited for then is judged at once, by the time that it
    /// has had: whatever comes next takes time that is not its own.
    pub async fn asked_until(&mut self, end: Instant, ask: impl AsyncFnOnce(&mut Self)) -> bool {
        let is_cut = tokio::time::timeout_at(end.into(), ask(self)).await.is_err();
        if is_cut {
            self.patience.is_cut();
        }
        is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn patience_is_over_after_late_answers_to_three_questions_in_a_row() {
        let mut patience = Patience::new(Duration::ZERO);
        let refused = |is_late| async move {
            Err::<(), _>(Refusal {
                is_late,
                ..Refusal::of("too many results".to_owned())
            })
        };
        let why = patience
            .wait(std::future::pending::<Result<(), Refusal>>())
            .await
            .unwrap_err();
        assert_eq!(why, "no answer within 1000 ms");
        // However often the same question was asked for.
        for _ in 0..5 {
            patience.wait(refused(true)).await.unwrap_err();
        }
        assert!(!patience.ends_question());
        // A refusal is an answer.
        let why = patience.wait(refused(false)).await.unwrap_err();
        assert_eq!(why, "too many results");
        assert!(!patience.ends_question());
        for _ in 0..LATE_MAX - 1 {
            patience.wait(refused(true)).await.unwrap_err();
            patience.wait(refused(false)).await.unwrap_err();
            assert!(!patience.ends_question() && !patience.is_over());
            // A question of which nothing was asked counts for nothing.
            assert!(!patience.ends_question());
        }
        // One that is broken off is late.
        let wait = patience.wait(std::future::pending::<Result<(), Refusal>>());
        let broken_off = tokio::time::timeout(Duration::from_millis(1), wait).await;
        assert!(broken_off.is_err());
        let mut cut = patience.clone();
        assert!(patience.ends_question() && patience.is_over());
        // Unless it had not had its time.
        cut.is_cut();
        assert!(!cut.ends_question() && !cut.is_over());
    }

    #[tokio::test]
    async fn who_is_cut_short_is_not_late_by_the_time_that_others_take_afterwards() {
        let mut peer = Peer::new((), Duration::ZERO);
        let began = clock::now();
        let ask = async |peer: &mut Peer<()>| {
            let wait = peer.patience.wait(std::future::pending::<Result<(), Refusal>>());
            wait.await.unwrap_err();
        };
        assert!(peer.asked_until(began + Duration::from_millis(1), ask).await);
        // As a comparison with a database does that comes next.
        tokio::time::sleep_until((began + peer.patience.answer()).into()).await;
        peer.patience.is_cut();
        peer.patience.ends_question();
        assert_eq!(peer.patience.late, 0);
        // Who comes to its end is not cut.
        let ask = async |peer: &mut Peer<()>| {
            let wait = peer.patience.wait(std::future::ready(Ok(())));
            wait.await.unwrap();
        };
        let end = clock::now() + Duration::from_secs(60);
        assert!(!peer.asked_until(end, ask).await);
    }
}
