//! Answers out of memory for dialects that put them together themselves.

use super::answer::{Answer, Facts, Plan};
use super::counting::{Counted, counted_from_memory};
use super::office::Desk;
use crate::http::{FrameSource, HttpError, Lane, Request};
use crate::model::ChainName;

/// What was found out of memory.
pub(crate) struct AtHand {
    /// What headers say of the snapshot, where there was one.
    pub(crate) facts: Option<Facts>,
    /// Never a question to the node.
    pub(crate) answer: Result<Answer, HttpError>,
    /// Beside what gives the frames of an answer that goes on: what gives them without waiting, as long as it can.
    pub(crate) at_once: Option<Box<dyn FrameSource>>,
}

impl Desk {
    /// What a plan of a dialect that puts answers together itself finds out of memory, for the thread that asks. The plan comes back
    /// where it is not tried; nothing does where it was, and something was missed.
    pub(crate) fn at_hand(
        &self,
        request: &Request,
        chain: ChainName,
        operation: usize,
        plan: Plan,
    ) -> Result<AtHand, Option<Plan>> {
        self.note(plan.quick);
        // What there is no room for is refused elsewhere.
        let has_room =
            || plan.lane == Lane::Point || self.pool().unsent().refuse_when_full(request.holds()).is_ok();
        if !self.is_tried(plan.quick, request) || !has_room() {
            return Err(Some(plan));
        }
        let look_up = || {
            let snapshot = self.snapshot(chain)?;
            Ok((snapshot.facts(), (plan.work)(&snapshot)))
        };
        let found = counted_from_memory(self.traffic(), operation, look_up).ok_or(None)?;
        let (facts, found) = match found {
            Ok((facts, found)) => (Some(facts), found),
            Err(error) => (None, Err(error)),
        };
        let (answer, at_once) = match found {
            // Its further frames are read out of memory alone as well; another source goes on where they cannot be.
            Ok(Answer::Begun(first, source, extra)) => {
                let source = Counted::new(source, self.traffic(), operation);
                let waiting = source.again().ok_or(None)?;
                let at_once: Box<dyn FrameSource> = Box::new(source);
                (Ok(Answer::Begun(first, waiting, extra)), Some(at_once))
            }
            // To ask takes longer than to look up again.
            Ok(Answer::AskNode(_)) => return Err(None),
            answer => (answer, None),
        };
        Ok(AtHand {
            facts,
            answer,
            at_once,
        })
    }
}
