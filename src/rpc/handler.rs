//! The door: reads a body, has each call answered, gives one body back.
//!
//! A call that comes alone and is quick is answered by the thread that owns the socket, out of memory
//! (`docs/decisions/0024-reading.md`).

use std::sync::Arc;

use serde_json::value::RawValue;

use super::answer::{Made, Pieces, bytes_held};
use super::fault::Fault;
use super::message::{Body, Message};
use super::methods::{METHODS, PASSED_ON, Work, place_of, read};
use crate::desk::Desk;
use crate::desk::answer::{Answer, Extra, Facts, begun};
use crate::desk::asking::Patience;
use crate::desk::faults::{invalid_chain, log_refusal};
use crate::http::header::RETRY_AFTER;
use crate::http::{
    Delivery, ErrorStatus, FRAME_BYTES, Handled, Handler, HttpError, Lane, Lifetime, Params, Pool, Request,
    Response, StatusCode, Traffic, header_number, json_response,
};
use crate::model::ChainName;

/// The longest body of a request, bytes.
const UPLOAD_BYTES_MAX: usize = 1 << 20;

/// Longer bodies are read by the pool: the thread that owns the socket would keep others waiting, for 16 ms where a body of 1 MiB is all commas.
const READ_AT_ONCE_MAX: usize = 16 << 10;

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

pub(super) struct Inner {
    pub(super) desk: Arc<Desk>,
    pub(super) first_operation: usize,
}

/// A call that is to be answered.
pub(super) struct Prepared {
    pub(super) id: Box<RawValue>,
    /// Its place among the operations.
    pub(super) place: usize,
    pub(super) work: Result<Work, Fault>,
}

/// What a body asks for.
pub(super) struct Asked {
    pub(super) chain: ChainName,
    pub(super) calls: Vec<Prepared>,
    pub(super) is_batch: bool,
}

/// A body, and what headers say of the snapshot, where there was one.
pub(super) struct Reply {
    pub(super) body: Made,
    pub(super) facts: Option<Facts>,
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
        if request.upload().len() > READ_AT_ONCE_MAX {
            let (inner, request) = (Arc::clone(&self.inner), Arc::new(request));
            inner.desk.pool().asked_else();
            return Handled::later(async move {
                match inner.read_by_pool(&request).await {
                    Ok(asked) => inner.answer(&request, asked).await,
                    Err(response) => *response,
                }
            });
        }
        let asked = match self.inner.read(&request) {
            Ok(asked) => asked,
            Err(response) => return (*response).into(),
        };
        match self.inner.at_once(&request, asked) {
            Ok(made) => self.inner.deliver(&request, made),
            Err(asked) => {
                let inner = Arc::clone(&self.inner);
                Handled::later(async move { inner.answer(&Arc::new(request), asked).await })
            }
        }
    }

    fn is_read(&self, _: &str) -> bool {
        false
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
    match pieces.end() {
        Made::Whole(body) => body.to_vec(),
        Made::Begun(..) => Vec::new(),
    }
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
pub(super) fn fault(request: &str, error: &HttpError) -> Fault {
    log_refusal(request, "/rpc", error);
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
    /// Reads what is asked; what needs no work is the response.
    fn read(&self, request: &Request) -> Result<Asked, Box<Response>> {
        if !request.is_post() {
            let error = HttpError::new(ErrorStatus::MethodNotAllowed, "JSON-RPC is asked by POST");
            return Err(Box::new(refused(&error)));
        }
        request.name_operation(self.first_operation + OTHER);
        let chain = chain_of(request).map_err(|error| refused(&error))?;
        let (messages, is_batch) = match Body::read(request.upload()) {
            Ok(Body::One(message)) => (vec![message], false),
            Ok(Body::Batch(messages)) => (messages, true),
            Err(fault) => return Err(Box::new(json_response(StatusCode::OK, alone(fault)))),
        };
        // Nothing here has effects, so a notification, which has no answer, is not even looked up.
        let calls = messages.into_iter().filter_map(|message| self.prepare(message));
        let calls: Vec<Prepared> = calls.collect();
        let place = match calls.as_slice() {
            [] => {
                let mut nothing = Response::new(crate::http::Body::Empty);
                *nothing.status_mut() = StatusCode::NO_CONTENT;
                return Err(Box::new(nothing));
            }
            [only] if !is_batch => only.place,
            _ => BATCH,
        };
        request.name_operation(self.first_operation + place);
        Ok(Asked {
            chain,
            calls,
            is_batch,
        })
    }

    /// Reads what is asked in a body that may be long.
    async fn read_by_pool(self: &Arc<Self>, request: &Arc<Request>) -> Result<Asked, Box<Response>> {
        if request.upload().len() <= READ_AT_ONCE_MAX {
            return self.read(request);
        }
        let (inner, asked) = (Arc::clone(self), Arc::clone(request));
        let read = self.desk.pool().run(Lane::Point, move || inner.read(&asked));
        read.await.unwrap_or_else(|error| {
            let error = error.into();
            fault(request.id().as_str(), &error);
            Err(Box::new(refused(&error)))
        })
    }

    fn prepare(&self, message: Message) -> Option<Prepared> {
        let id = message.id?;
        let place = match &message.call {
            Ok(call) => place_of(&call.method).unwrap_or(OTHER),
            Err(_) => OTHER,
        };
        let passes_on = self.desk.settings().rpc_passthrough;
        let work = message.call.and_then(|call| read(&id, &call, passes_on));
        Some(Prepared { id, place, work })
    }

    /// Answers a call that comes alone, where it needs nothing or what it needs is in memory; else gives back what is asked.
    fn at_once(&self, request: &Request, mut asked: Asked) -> Result<Reply, Asked> {
        if asked.is_batch {
            self.desk.pool().asked_else();
            return Err(asked);
        }
        let Some(Prepared { id, place, work }) = asked.calls.pop() else {
            return Err(asked);
        };
        let (plan, is_response) = match work {
            Ok(Work::Store { plan, is_response }) => (plan, is_response),
            Ok(Work::Known(text)) => {
                let answer = Answer::Whole(text, Extra::default());
                return Ok(self.put_together(request, (&id, false), Ok(answer), None));
            }
            Err(fault) => return Ok(self.put_together(request, (&id, false), Err(fault), None)),
            work @ Ok(Work::Node { .. }) => {
                asked.calls.push(Prepared { id, place, work });
                return Err(asked);
            }
        };
        match self
            .desk
            .at_hand(request, asked.chain, self.first_operation + place, plan)
        {
            Ok(found) => {
                let answer = found.answer.map_err(|error| fault(request.id().as_str(), &error));
                let mut made = self.put_together(request, (&id, is_response), answer, found.facts);
                if let Made::Begun(_, _, at_once) = &mut made.body {
                    *at_once = found.at_once;
                }
                Ok(made)
            }
            Err(Some(plan)) => {
                let work = Ok(Work::Store { plan, is_response });
                asked.calls.push(Prepared { id, place, work });
                Err(asked)
            }
            // The plan went with the attempt. It was made of the request alone, and is made of it again.
            Err(None) => Err(self.read(request).unwrap_or(asked)),
        }
    }

    /// The body with one response.
    fn put_together(
        &self,
        request: &Request,
        (id, is_response): (&RawValue, bool),
        result: Result<Answer, Fault>,
        facts: Option<Facts>,
    ) -> Reply {
        let mut holding = request.hold(self.desk.pool().unsent());
        holding.change(bytes_held(&result));
        let mut pieces = Pieces::new(holding);
        pieces.add(id, is_response, result);
        Reply {
            body: pieces.end(),
            facts,
        }
    }

    async fn answer(self: &Arc<Self>, request: &Arc<Request>, mut asked: Asked) -> Response {
        let mut patience = Patience::default();
        let error = loop {
            match self.work(request, asked, &mut patience).await {
                Ok(Some(made)) => return self.deliver(request, made).answer().await,
                // The plan went with the look-up. It was made of the request alone, and is made of it again.
                Ok(None) => match self.read_by_pool(request).await {
                    Ok(again) => asked = again,
                    Err(response) => return *response,
                },
                Err(error) => break error,
            }
        };
        fault(request.id().as_str(), &error);
        refused(&error)
    }

    /// The response with a body that was made: at once, unless it is to be compressed.
    fn deliver(&self, request: &Request, made: Reply) -> Handled {
        let (delivery, pool) = (Delivery::of(request), self.desk.pool().clone());
        let is_long = |bytes: usize| !matches!(&made.body, Made::Whole(whole) if whole.len() <= bytes);
        if !delivery.is_coded() || !is_long(PLAIN_MAX) {
            return made
                .respond(&pool, |response| {
                    delivery.deliver_plain(response, Lifetime::NotKept)
                })
                .into();
        }
        // To compress a long one takes as long as a frame of a list.
        let lane = if is_long(FRAME_BYTES) {
            Lane::Scan
        } else {
            Lane::Point
        };
        let id = request.id().as_str().to_owned();
        Handled::later(async move {
            let frames = pool.clone();
            let compressed = pool.run(lane, move || {
                made.respond(&frames, |response| {
                    delivery.deliver(response, Lifetime::NotKept, None)
                })
            });
            compressed.await.unwrap_or_else(|error| {
                let error = error.into();
                fault(&id, &error);
                refused(&error)
            })
        })
    }
}

impl Reply {
    fn respond(self, pool: &Pool, deliver: impl FnOnce(Response) -> Response) -> Response {
        let response = match self.body {
            Made::Whole(whole) => json_response(StatusCode::OK, whole),
            Made::Begun(first, rest, at_once) => begun(pool, first, rest, at_once, Extra::default()),
        };
        let mut response = deliver(response);
        if let Some(facts) = self.facts {
            facts.add_to(&mut response);
        }
        response
    }
}
