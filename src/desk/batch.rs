//! Batches: several look-ups on one snapshot, and what all that is done for one batch may take.

use std::sync::Arc;
use std::time::Instant;

use super::answer::{Answer, Facts, Plan};
use super::context::Settings;
use super::counting::{Counted, counted};
use super::office::Desk;
use crate::clock;
use crate::http::{ErrorStatus, Holding, HttpError, Lane};
use crate::model::ChainName;

/// What one batch may take yet, and what it holds.
pub(crate) struct Allowance {
    /// Bytes of its answers so far, about.
    bytes: usize,
    bytes_max: usize,
    until: Instant,
    holding: Holding,
}

impl Allowance {
    /// All of it: no answer yet, and its time begins now.
    pub(crate) fn begin(settings: &Settings, holding: Holding) -> Self {
        Self {
            bytes: 0,
            bytes_max: settings.batch_bytes_max,
            until: clock::now() + settings.batch_time_max,
            holding,
        }
    }

    /// An answer takes about so many bytes of it.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.holding.change(self.bytes);
    }

    /// Refuses whatever is not begun once too many bytes are held, or too much time has passed.
    fn check(&self) -> Result<(), HttpError> {
        if self.bytes > self.bytes_max || clock::now() > self.until {
            let text = "The batch is too large: ask for less at once";
            return Err(HttpError::new(ErrorStatus::ContentTooLarge, text));
        }
        Ok(())
    }

    /// What counts the answers, for who sends them.
    pub(crate) fn into_holding(self) -> Holding {
        self.holding
    }
}

impl Desk {
    /// Whether another step of a batch may begin: 413 where the batch has taken what it may, 503 where answers that are not sent
    /// yet, of others or its own, leave no room.
    pub(crate) fn goes_on(&self, lane: Lane, allowance: &Allowance) -> Result<(), HttpError> {
        allowance.check()?;
        self.admit(lane, allowance.holding.of_connection())
    }

    /// Does several plans on one snapshot, in order, each counted at its place: what each found, what headers say of the snapshot,
    /// and what is left for more. After a while, or many bytes, the rest is refused.
    pub(crate) async fn look_up_all(
        self: &Arc<Self>,
        chain: ChainName,
        lane: Lane,
        plans: Vec<(usize, Plan)>,
        holding: Holding,
    ) -> Result<(Option<Facts>, Vec<Result<Answer, HttpError>>, Allowance), HttpError> {
        self.admit(lane, holding.of_connection())?;
        let inner = Arc::clone(self);
        let work = move || {
            let mut allowance = Allowance::begin(inner.settings(), holding);
            let snapshot = match inner.snapshot(chain) {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    let refused = plans.iter().map(|_| Err(error.clone())).collect();
                    return (None, refused, allowance);
                }
            };
            let found = plans.into_iter().map(|(place, plan)| {
                // Others may have filled the room while this one waited, and does so itself.
                inner.goes_on(lane, &allowance)?;
                let found = counted(inner.traffic(), place, || (plan.work)(&snapshot));
                allowance.take(found.as_ref().map_or(0, Answer::bytes_held));
                found.map(|answer| match answer {
                    Answer::Begun(first, source, extra) => {
                        let source = Counted::new(source, inner.traffic(), place);
                        Answer::Begun(first, Box::new(source), extra)
                    }
                    other => other,
                })
            });
            let found = found.collect();
            (Some(snapshot.facts()), found, allowance)
        };
        Ok(self.pool().run(lane, work).await?)
    }
}
