//! The door: reads a body, has each call answered, gives one body back.

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::value::RawValue;

use super::answer::Pieces;
use super::fault::{Fault, told};
use super::message::{Body, Message};
use super::methods::{METHODS, PASSED_ON, Work, place_of, read};
use crate::desk::answer::{Answer, Extra, Facts, Plan, begun};
use crate::desk::faults::{invalid_chain, not_configured, upstream_failed};
use crate::desk::office::Unanswered;
use crate::desk::{Desk, UpstreamError};
use crate::http::header::{ALLOW, CACHE_CONTROL, ETAG, HeaderValue, RETRY_AFTER};
use crate::http::{
    Delivery, ErrorStatus, FRAME_BYTES, Handled, Handler, Holding, HttpError, Lane, Lifetime, Params,
    Request, Response, StatusCode, Traffic, header_number, json_response,
};
use crate::model::ChainName;

/// The longest body of a request, bytes.
const UPLOAD_BYTES_MAX: usize = 1 << 20;

/// Questions to the node in flight for one request.
const IN_FLIGHT_MAX: usize = 8;

/// Bodies up to this length are not worth a compressor's thread.
const PLAIN_MAX: usize = 1024;

/// Batches, and calls of methods that are none, among the operations.
const OTHERS: [&str; 2] = ["batch", "other"];
const BATCH: usize = METHODS.len() + PASSED_ON.len();
const OTHER: usize = BATCH + 1;

/// The dialect of JSON-RPC clients.
pub struct Rpc {
    inner: Arc<Inner>,
}

struct Inner {
    desk: Arc<Desk>,
    first_operation: usize,
}

/// A call that is to be answered.
struct Prepared {
    id: Box<RawValue>,
    /// Its place among the operations.
    place: usize,
    work: Result<Work, Fault>,
}

/// What came of a call so far.
enum Step {
    Done(Result<Answer, Fault>),
    /// A look-up left a question to the node.
    Found(Result<Answer, HttpError>),
    /// The node's own answer.
    Node(&'static str, Box<RawValue>),
}

impl Rpc {
    /// Where it is mounted.
    pub const PATHS: &'static [&'static str] = &["/rpc", "/rpc/mainnet", "/rpc/testnet"];

    /// The names by which its operations are counted.
    pub fn operations() -> impl Iterator<Item = String> {
        let stored = METHODS.iter().map(|method| method.name);
        let all = stored.chain(PASSED_ON.iter().copied()).chain(OTHERS);
        all.map(|name| format!("rpc:{name}"))
    }

    /// The dialect at a desk where its operations are counted from `first_operation`.
    #[must_use]
    pub fn at(desk: Arc<Desk>, first_operation: usize) -> Self {
        Self {
            inner: Arc::new(Inner {
                desk,
                first_operation,
            }),
        }
    }
}

impl Handler for Rpc {
    fn handle(&self, request: Request) -> Handled {
        let inner = Arc::clone(&self.inner);
        Handled::later(inner.answer(request))
    }

    fn upload_bytes_max(&self, _: &str) -> Option<usize> {
        Some(UPLOAD_BYTES_MAX)
    }

    fn refuse(&self, _: &str, error: HttpError) -> Response {
        refused(&error)
    }

    fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(self.inner.desk.traffic())
    }
}

/// A body with one error that belongs to no request in particular.
fn alone(fault: Fault) -> Vec<u8> {
    let mut pieces = Pieces::default();
    pieces.response(RawValue::NULL, Err(fault));
    pieces.end().map_or_else(|_| Vec::new(), |body| body.to_vec())
}

/// A refusal with its HTTP status.
fn refused(error: &HttpError) -> Response {
    let mut response = json_response(error.status().code(), alone(Fault::of(error)));
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, header_number(seconds));
    }
    response
}

/// What an error says to the client; what it says to the log goes there.
fn fault(request: &str, error: &HttpError) -> Fault {
    if error.detail().is_some() {
        if error.status() == ErrorStatus::Internal {
            tracing::error!(target: "quarry::rpc", request_id = request, %error, "refused");
        } else {
            tracing::warn!(target: "quarry::rpc", request_id = request, %error, "refused");
        }
    }
    Fault::of(error)
}

fn chain_of(request: &Request) -> Result<ChainName, HttpError> {
    if let Some(named) = request.path().strip_prefix("/rpc/") {
        let chain = ChainName::ALL.into_iter().find(|chain| chain.as_str() == named);
        return chain.ok_or_else(|| HttpError::not_found("Route not found"));
    }
    let mut params = Params::parse(request.query(), |key| (key == "chain").then_some("chain"));
    let choices = ChainName::ALL.map(|chain| (chain.as_str(), chain));
    let chain = params
        .take_choice("chain", &choices)
        .map_err(|_| invalid_chain())?;
    Ok(chain.unwrap_or(ChainName::Mainnet))
}

impl Inner {
    async fn answer(self: Arc<Self>, request: Request) -> Response {
        if !request.is_post() {
            let error = HttpError::new(ErrorStatus::MethodNotAllowed, "JSON-RPC is asked by POST");
            let mut response = refused(&error);
            let allowed = HeaderValue::from_static("POST, OPTIONS");
            response.headers_mut().insert(ALLOW, allowed);
            return response;
        }
        request.name_operation(self.first_operation + OTHER);
        let chain = match chain_of(&request) {
            Ok(chain) => chain,
            Err(error) => return refused(&error),
        };
        let (messages, is_batch) = match Body::read(request.upload()) {
            Ok(Body::One(message)) => (vec![message], false),
            Ok(Body::Batch(messages)) => (messages, true),
            Err(fault) => return json_response(StatusCode::OK, alone(fault)),
        };
        // Nothing here has effects, so a notification, which has no answer, is not even looked up.
        let prepared = messages.into_iter().filter_map(|message| self.prepare(message));
        let prepared: Vec<Prepared> = prepared.collect();
        let place = match prepared.as_slice() {
            [] => {
                let mut nothing = Response::new(crate::http::Body::Empty);
                *nothing.status_mut() = StatusCode::NO_CONTENT;
                return nothing;
            }
            [only] if !is_batch => only.place,
            _ => BATCH,
        };
        request.name_operation(self.first_operation + place);
        match self.work(&request, chain, prepared, is_batch).await {
            Ok(response) => response,
            Err(error) => {
                fault(request.id().as_str(), &error);
                refused(&error)
            }
        }
    }

    fn prepare(&self, message: Message) -> Option<Prepared> {
        let id = message.id?;
        let place = match &message.call {
            Ok(call) => place_of(&call.method).unwrap_or(OTHER),
            Err(_) => OTHER,
        };
        let passes_on = self.desk.settings().rpc_passthrough;
        let work = message.call.and_then(|call| read(&call, passes_on));
        Some(Prepared { id, place, work })
    }

    /// Looks up, asks the node, puts together.
    async fn work(
        self: &Arc<Self>,
        request: &Request,
        chain: ChainName,
        prepared: Vec<Prepared>,
        is_batch: bool,
    ) -> Result<Response, HttpError> {
        let mut ids = Vec::with_capacity(prepared.len());
        let mut steps = Vec::with_capacity(prepared.len());
        let mut plans = Vec::new();
        for (at, Prepared { id, place, work }) in prepared.into_iter().enumerate() {
            ids.push(id);
            steps.push(match work {
                Err(fault) => Step::Done(Err(fault)),
                Ok(Work::Known(text)) => Step::Done(Ok(Answer::Whole(text, Extra::default()))),
                Ok(Work::Node { method, params }) => Step::Node(method, params),
                Ok(Work::Store(plan)) => {
                    plans.push((at, self.first_operation + place, plan));
                    Step::Done(Err(Fault::limit("The call was not looked up")))
                }
            });
        }
        let holding = request.hold(self.desk.pool().unsent());
        let (facts, mut holding) = self.look_up(chain, plans, holding, &mut steps).await?;
        let id = request.id().as_str();
        let asked = steps.into_iter().map(|step| self.finish(id, chain, step));
        let results: Vec<_> = futures_util::stream::iter(asked)
            .buffered(IN_FLIGHT_MAX)
            .collect()
            .await;
        let held = results.iter().filter_map(|result| result.as_ref().ok());
        holding.change(held.map(Answer::bytes_held).sum());
        let mut pieces = Pieces::new(holding);
        for (at, (id, result)) in ids.iter().zip(results).enumerate() {
            if is_batch {
                pieces.mark(if at == 0 { b'[' } else { b',' });
            }
            pieces.response(id, result);
        }
        if is_batch {
            pieces.mark(b']');
        }
        self.deliver(request, pieces, facts).await
    }

    /// Does what is looked up in the store, all of it on one snapshot.
    async fn look_up(
        &self,
        chain: ChainName,
        plans: Vec<(usize, usize, Plan)>,
        holding: Holding,
        steps: &mut [Step],
    ) -> Result<(Option<Facts>, Holding), HttpError> {
        if plans.is_empty() {
            return Ok((None, holding));
        }
        let is_point = plans.len() == 1 && plans.iter().all(|(_, _, plan)| plan.lane == Lane::Point);
        let lane = if is_point { Lane::Point } else { Lane::Scan };
        let (slots, plans): (Vec<usize>, Vec<_>) = plans
            .into_iter()
            .map(|(at, place, plan)| (at, (place, plan)))
            .unzip();
        let (facts, found, holding) = self.desk.look_up_all(chain, lane, plans, holding).await?;
        for (at, found) in slots.into_iter().zip(found) {
            if let Some(step) = steps.get_mut(at) {
                *step = Step::Found(found);
            }
        }
        Ok((facts, holding))
    }

    /// Asks the node where it takes it.
    async fn finish(&self, request: &str, chain: ChainName, step: Step) -> Result<Answer, Fault> {
        let found = match step {
            Step::Done(result) => return result,
            Step::Node(method, params) => return self.pass_on(request, chain, method, params).await,
            Step::Found(Ok(Answer::AskNode(question))) => {
                let told = self.desk.ask(chain, question).await;
                told.or_else(Unanswered::settled)
            }
            Step::Found(found) => found,
        };
        found.map_err(|error| fault(request, &error))
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
                let text = told(reply)?;
                let text = text.get().as_bytes().to_vec();
                Ok(Answer::Whole(text.into(), Extra::default()))
            }
            Err(error) => Err(fault(request, &upstream_failed(&error))),
        }
    }

    async fn deliver(
        &self,
        request: &Request,
        pieces: Pieces,
        facts: Option<Facts>,
    ) -> Result<Response, HttpError> {
        let delivery = Delivery::of(request);
        let mut response = match pieces.end() {
            Ok(whole) if whole.len() <= PLAIN_MAX => {
                delivery.deliver_plain(json_response(StatusCode::OK, whole), Lifetime::Revalidate)
            }
            ended => {
                let pool = self.desk.pool().clone();
                // To compress a long one takes as long as a frame of a list.
                let is_long = ended.as_ref().map_or(true, |whole| whole.len() > FRAME_BYTES);
                let lane = if is_long { Lane::Scan } else { Lane::Point };
                let deliver = move || {
                    let response = match ended {
                        Ok(whole) => json_response(StatusCode::OK, whole),
                        Err((first, rest)) => begun(&pool, first, Box::new(rest), None, Extra::default()),
                    };
                    delivery.deliver(response, Lifetime::Revalidate, None)
                };
                self.desk.pool().run(lane, deliver).await?
            }
        };
        let headers = response.headers_mut();
        // What is asked by POST is not kept.
        headers.remove(ETAG);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(facts) = facts {
            facts.add_to(&mut response);
        }
        Ok(response)
    }
}
