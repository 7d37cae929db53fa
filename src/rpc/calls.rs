//! Calls that take longer: looked up on the pool, asked of the node within what a batch may take, put together.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;

use super::answer::{Pieces, bytes_held};
use super::fault::{Fault, told};
use super::handler::{Asked, Inner, Prepared, Reply, fault};
use super::methods::Work;
use crate::desk::UpstreamError;
use crate::desk::answer::{Answer, Extra, Facts, Plan, Question};
use crate::desk::asking::Patience;
use crate::desk::batch::Allowance;
use crate::desk::faults::{not_configured, upstream_failed};
use crate::http::{HttpError, Lane, Request};
use crate::model::ChainName;

/// Questions to the node in flight for one request.
const IN_FLIGHT_MAX: usize = 8;

/// What came of a call so far.
enum Step {
    Done(Result<Answer, Fault>),
    /// A look-up left a question to the node.
    Ask(Question),
    /// The node's own answer.
    PassOn(&'static str, Box<RawValue>),
}

impl Inner {
    /// Looks up, asks the node, puts together. Nothing for a call that comes alone and is to be looked up again, for the node went
    /// to another branch.
    pub(super) async fn work(
        &self,
        request: &Request,
        Asked {
            chain,
            calls,
            is_batch,
        }: Asked,
        patience: &mut Patience,
    ) -> Result<Option<Reply>, HttpError> {
        let mut ids = Vec::with_capacity(calls.len());
        let mut steps = Vec::with_capacity(calls.len());
        let mut plans = Vec::new();
        for (at, Prepared { id, place, work }) in calls.into_iter().enumerate() {
            let is_response = matches!(
                work,
                Ok(Work::Store {
                    is_response: true,
                    ..
                })
            );
            ids.push((id, is_response));
            steps.push(match work {
                Err(fault) => Step::Done(Err(fault)),
                Ok(Work::Known(text)) => Step::Done(Ok(Answer::Whole(text, Extra::default()))),
                Ok(Work::Node { method, params }) => Step::PassOn(method, params),
                Ok(Work::Store { plan, .. }) => {
                    plans.push((at, self.first_operation + place, plan));
                    Step::Done(Err(Fault::limit("The call was not looked up")))
                }
            });
        }
        let (facts, mut allowance) = self.look_up(request, chain, plans, &mut steps).await?;
        let id = request.id().as_str();
        let results = if is_batch {
            self.finish(id, chain, steps, &mut allowance).await
        } else {
            let mut results = Vec::with_capacity(1);
            for step in steps {
                let Some(result) = self.finish_alone(id, chain, step, patience, &mut allowance).await else {
                    return Ok(None);
                };
                results.push(result);
            }
            results
        };
        let mut pieces = Pieces::new(allowance.into_holding());
        for (at, ((id, is_response), result)) in ids.iter().zip(results).enumerate() {
            if is_batch {
                pieces.mark(if at == 0 { b'[' } else { b',' });
            }
            pieces.add(id, *is_response, result);
        }
        if is_batch {
            pieces.mark(b']');
        }
        Ok(Some(Reply {
            body: pieces.end(),
            facts,
        }))
    }

    /// Does what is looked up in the store, all of it on one snapshot.
    async fn look_up(
        &self,
        request: &Request,
        chain: ChainName,
        plans: Vec<(usize, usize, Plan)>,
        steps: &mut [Step],
    ) -> Result<(Option<Facts>, Allowance), HttpError> {
        let holding = request.hold(self.desk.pool().unsent());
        if plans.is_empty() {
            return Ok((None, Allowance::begin(self.desk.settings(), holding)));
        }
        let is_point = plans.len() == 1 && plans.iter().all(|(_, _, plan)| plan.lane == Lane::Point);
        let lane = if is_point { Lane::Point } else { Lane::Scan };
        let (slots, plans): (Vec<usize>, Vec<_>) = plans
            .into_iter()
            .map(|(at, place, plan)| (at, (place, plan)))
            .unzip();
        let (facts, found, allowance) = self.desk.look_up_all(chain, lane, plans, holding).await?;
        for (at, found) in slots.into_iter().zip(found) {
            if let Some(step) = steps.get_mut(at) {
                *step = match found {
                    Ok(Answer::AskNode(question)) => Step::Ask(question),
                    found => Step::Done(found.map_err(|error| fault(request.id().as_str(), &error))),
                };
            }
        }
        Ok((facts, allowance))
    }

    /// Asks the node where the steps of a batch take it, some at a time, and refuses those that the batch has no room or time for
    /// any more: as many results, in order.
    async fn finish(
        &self,
        request: &str,
        chain: ChainName,
        steps: Vec<Step>,
        allowance: &mut Allowance,
    ) -> Vec<Result<Answer, Fault>> {
        let mut results = Vec::with_capacity(steps.len());
        let mut steps = steps.into_iter().enumerate();
        let mut asked = FuturesUnordered::new();
        loop {
            while asked.len() < IN_FLIGHT_MAX
                && let Some((at, step)) = steps.next()
            {
                if let Step::Done(result) = step {
                    results.push((at, result));
                } else if let Err(error) = self.desk.goes_on(Lane::Scan, allowance) {
                    results.push((at, Err(fault(request, &error))));
                } else {
                    asked.push(async move { (at, self.told(request, chain, step).await) });
                }
            }
            let Some((at, result)) = asked.next().await else {
                break;
            };
            allowance.take(bytes_held(&result));
            results.push((at, result));
        }
        results.sort_unstable_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// The result of a call that comes alone; nothing where it is to be looked up again.
    async fn finish_alone(
        &self,
        request: &str,
        chain: ChainName,
        step: Step,
        patience: &mut Patience,
        allowance: &mut Allowance,
    ) -> Option<Result<Answer, Fault>> {
        let result = match step {
            Step::Done(result) => return Some(result),
            Step::Ask(question) => {
                let told = self.desk.ask(chain, question, patience).await?;
                told.map_err(|error| fault(request, &error))
            }
            step => self.told(request, chain, step).await,
        };
        allowance.take(bytes_held(&result));
        Some(result)
    }

    /// What a step of a batch comes to.
    async fn told(&self, request: &str, chain: ChainName, step: Step) -> Result<Answer, Fault> {
        match step {
            Step::Done(result) => result,
            Step::Ask(question) => {
                let told = self.desk.ask_once(chain, question).await;
                told.map_err(|error| fault(request, &error))
            }
            Step::PassOn(method, params) => self.pass_on(request, chain, method, params).await,
        }
    }

    async fn pass_on(
        &self,
        request: &str,
        chain: ChainName,
        method: &'static str,
        params: Box<RawValue>,
    ) -> Result<Answer, Fault> {
        let Some(node) = self.desk.chains().upstream(chain) else {
            let error = match self.desk.chains().status(chain) {
                Some(_) => HttpError::unavailable("The node cannot be reached"),
                None => not_configured(chain),
            };
            return Err(fault(request, &error));
        };
        let timeout = self.desk.settings().upstream_timeout;
        let reply = tokio::time::timeout(timeout, node.call(method, params)).await;
        match reply.unwrap_or(Err(UpstreamError::TimedOut)) {
            Ok(reply) => {
                let text: Box<str> = told(reply)?.into();
                Ok(Answer::Whole(text.into_boxed_bytes().into(), Extra::default()))
            }
            Err(error) => Err(fault(request, &upstream_failed(&error))),
        }
    }
}
