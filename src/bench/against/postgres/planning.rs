//! How PostgreSQL comes to the plan of a prepared statement, and in which way it answers a question sooner.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::{Asked, Postgres};
use crate::bench::against::{Other as _, Refusal};
use crate::bench::filter::LogFilter;
use crate::clock;

/// How the server comes to the plan of a statement that it has prepared (`plan_cache_mode`, since PostgreSQL 12). One that is kept knows
/// nothing of the values: of a contract with half of all logs it may sort all of them for a page of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planning {
    Anew,
    Kept,
}

impl Planning {
    const fn mode(self) -> &'static str {
        match self {
            Self::Anew => "force_custom_plan",
            Self::Kept => "force_generic_plan",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Anew => "planned anew each time, which is the faster way here",
            Self::Kept => "by a plan that is kept, which is the faster way here",
        }
    }
}

/// How often each way is tried, unless an answer takes longer than the time given.
const TRIES: usize = 3;
const TRIES_WITHIN: Duration = Duration::from_millis(500);

impl Postgres {
    /// Has statements planned for their values, where the server knows the choice.
    pub(super) async fn plan_by_values(&self) -> Result<(), Refusal> {
        self.plan(Planning::Anew).await.map(drop)
    }

    /// Has statements planned so from here on; `false` where the server knows no such choice.
    async fn plan(&self, planning: Planning) -> Result<bool, Refusal> {
        let sql = format!("SET plan_cache_mode = {}", planning.mode());
        match self.database.batch_execute(&sql).await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_OBJECT) => Ok(false),
            Err(error) => Err(self.refused(&error)),
        }
    }
}

impl Asked<'_> {
    /// How long the fastest of some answers took.
    async fn fastest(&mut self, filter: &LogFilter) -> Result<Duration, Refusal> {
        let mut fastest = Duration::MAX;
        // The first one under a kept plan makes it.
        for _ in 0..=TRIES {
            let began = clock::now();
            self.answer(filter).await?;
            let took = clock::now() - began;
            fastest = fastest.min(took);
            if took > TRIES_WITHIN {
                break;
            }
        }
        Ok(fastest)
    }

    /// Has the filter planned in the way by which it is answered sooner; in words, where there is a choice.
    pub(super) async fn plan_fastest(&mut self, filter: &LogFilter) -> Result<Option<&'static str>, Refusal> {
        if !self.postgres.plan(Planning::Anew).await? {
            return Ok(None);
        }
        let anew = self.fastest(filter).await?;
        self.postgres.plan(Planning::Kept).await?;
        let kept = match self.fastest(filter).await {
            Ok(kept) => kept,
            Err(refusal) if refusal.is_late => Duration::MAX,
            Err(refusal) => return Err(refusal),
        };
        let planning = if kept < anew {
            Planning::Kept
        } else {
            Planning::Anew
        };
        self.postgres.plan(planning).await?;
        Ok(Some(planning.words()))
    }
}
