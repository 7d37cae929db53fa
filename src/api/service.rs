//! From a request to its answer: route, parse, look up on the pool, respond.

use std::sync::Arc;

use crate::http::{
    self, Delivery, FrameBuffers, HttpError, Lane, Lifetime, Match, Params, Pool, Request, Response, Router,
    Traffic,
};
use crate::model::ChainName;

use super::answer::{Answer, Facts, Plan, Question, Snapshot, begun, whole};
use super::caching::Determinants;
use super::context::{Chains, Settings, UpstreamError};
use super::counting::{Counted, counted, counted_from_memory};
use super::endpoint::{Endpoint, Parameter};
use super::faults::{not_configured, still_indexing, unsupported, upstream_failed_with};
use super::input::Input;
use super::list::endpoints;
use super::{figures, reports};

/// What answers an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handler {
    /// An operation on one chain: parses everything, then says what to look up.
    Chain(fn(&mut Input<'_>) -> Result<Plan, HttpError>),
    /// A route about the service itself.
    Service(Report),
}

/// The routes about the service itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Report {
    Health,
    Ready,
    Status,
    OpenApi,
    Docs,
    Metrics,
}

/// The service: give it to [`crate::http::serve`].
pub struct Api {
    inner: Arc<Inner>,
}

struct Inner {
    chains: Arc<dyn Chains>,
    pool: Pool,
    buffers: FrameBuffers,
    traffic: Arc<Traffic>,
    settings: Settings,
    router: Router,
    /// The endpoints of each distinct path; the router's numbers are places in it.
    routes: Vec<Vec<Listed>>,
}

/// An endpoint and its place in the list.
type Listed = (usize, &'static Endpoint);

/// A request whose parameters are all parsed.
enum Parsed {
    Operation(ChainName, Plan),
    Report(Report),
}

impl Api {
    /// The service over these chains, its look-ups done on `pool`.
    #[must_use]
    pub fn new(chains: Arc<dyn Chains>, pool: Pool, settings: Settings) -> Self {
        let mut routes: Vec<Vec<Listed>> = Vec::new();
        for listed @ (_, endpoint) in endpoints().iter().enumerate() {
            let same_path = |route: &&mut Vec<Listed>| {
                route
                    .first()
                    .is_some_and(|(_, first)| first.path == endpoint.path)
            };
            match routes.iter_mut().find(same_path) {
                Some(route) => route.push(listed),
                None => routes.push(vec![listed]),
            }
        }
        let templates = routes
            .iter()
            .enumerate()
            .filter_map(|(at, route)| route.first().map(|(_, first)| (first.path, at)));
        Self {
            inner: Arc::new(Inner {
                chains,
                pool,
                buffers: FrameBuffers::default(),
                traffic: Arc::new(Traffic::new(
                    endpoints().iter().map(|endpoint| endpoint.ids.join(",")),
                )),
                settings,
                router: Router::new(templates),
                routes,
            }),
        }
    }
}

impl http::Handler for Api {
    fn handle(&self, request: Request) -> http::HandlerFuture {
        match self.inner.parse(&request) {
            Err(error) => {
                let response = error.into();
                Box::pin(async move { response })
            }
            Ok(Parsed::Report(Report::Health)) => {
                // Not on the pool: it tells that the process answers, also while every thread is busy.
                let response = Delivery::of(&request).deliver_plain(reports::health(), Lifetime::Revalidate);
                Box::pin(async move { response })
            }
            Ok(Parsed::Report(report)) => {
                let inner = Arc::clone(&self.inner);
                Box::pin(async move { inner.report(request, report).await })
            }
            Ok(Parsed::Operation(chain, plan)) => {
                let inner = Arc::clone(&self.inner);
                Box::pin(async move { inner.operate(request, chain, plan).await })
            }
        }
    }

    fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.inner.traffic)
    }
}

/// What came of a look-up.
enum Found {
    Answer(Response),
    /// A refusal, and the snapshot that it speaks of where there was one.
    Refused(Option<Facts>, HttpError),
    /// What [`Answer::AskNode`] asks.
    Question(Facts, Question),
}

impl Inner {
    fn parse(&self, request: &Request) -> Result<Parsed, HttpError> {
        let no_route = || HttpError::not_found("Route not found");
        let Match { value, segments } = self.router.find(request.path()).ok_or_else(no_route)?;
        let route = self.routes.get(value).ok_or_else(no_route)?;
        let mut params = Params::parse(request.query(), |key| known_name(route, key));
        if let [(place, only)] = route.as_slice() {
            // Named at once, so that its refusals are counted as its own.
            request.name_operation(*place);
            if let Handler::Service(report) = only.handler {
                return Ok(Parsed::Report(report));
            }
        }
        let chain = take_chain(&mut params)?;
        let (place, endpoint) = select(route, &mut params)?;
        request.name_operation(place);
        if endpoint.main_only && chain != ChainName::Mainnet {
            return Err(unsupported(chain));
        }
        match endpoint.handler {
            Handler::Service(report) => Ok(Parsed::Report(report)),
            Handler::Chain(parse) => {
                let mut input = Input {
                    chain,
                    endpoint,
                    params,
                    request,
                    segments,
                };
                let plan = parse(&mut input)?;
                Ok(Parsed::Operation(input.chain, plan))
            }
        }
    }

    async fn operate(self: Arc<Self>, request: Request, chain: ChainName, plan: Plan) -> Response {
        let request = Arc::new(request);
        match self.find(&request, chain, plan).await {
            Ok(Found::Answer(response)) => response,
            Ok(Found::Refused(facts, error)) => {
                let mut response = refuse(&request, error);
                if let Some(facts) = facts {
                    facts.add_to(&mut response);
                }
                response
            }
            Ok(Found::Question(facts, question)) => {
                let delivery = Delivery::of(&request);
                let mut response = match self.ask(chain, question).await {
                    Ok(Answer::Whole(body, extra)) => {
                        delivery.deliver_plain(whole(body, extra), Lifetime::Revalidate)
                    }
                    Ok(_) => refuse(&request, HttpError::internal("the node's answer was a question")),
                    Err(error) => refuse(&request, error),
                };
                facts.add_to(&mut response);
                response
            }
            Err(error) => refuse(&request, error),
        }
    }

    /// Looks up on the pool; what is quick, here first.
    async fn find(
        self: &Arc<Self>,
        request: &Arc<Request>,
        chain: ChainName,
        mut plan: Plan,
    ) -> Result<Found, HttpError> {
        if plan.is_quick {
            let look_up = || self.look_up(request, chain, plan);
            if let Some(found) = counted_from_memory(&self.traffic, request.operation(), look_up) {
                return Ok(found);
            }
            // The plan went with the attempt. It was made of the request alone, and is made of it again.
            plan = match self.parse(request)? {
                Parsed::Operation(_, plan) => plan,
                Parsed::Report(_) => return Err(HttpError::internal("a request was read in two ways")),
            };
        }
        let (inner, asked) = (Arc::clone(self), Arc::clone(request));
        let looked_up = self.pool.run(plan.lane, move || {
            counted(&inner.traffic, asked.operation(), || {
                inner.look_up(&asked, chain, plan)
            })
        });
        Ok(looked_up.await?)
    }

    /// Takes a snapshot, does the work on it, and makes the answer that the client wants of it. Blocks.
    fn look_up(&self, request: &Request, chain: ChainName, plan: Plan) -> Found {
        let snapshot = match self.snapshot(chain) {
            Ok(snapshot) => snapshot,
            Err(error) => return Found::Refused(None, error),
        };
        let facts = snapshot.facts();
        let (delivery, determinants) = (Delivery::of(request), Determinants::new(request, &snapshot));
        let mut response = match determinants.unchanged(&delivery) {
            Some(response) => response,
            None => match (plan.work)(&snapshot) {
                Ok(Answer::Whole(body, extra)) => {
                    let (lifetime, tag) = determinants.judge(extra.reach, &snapshot);
                    delivery.deliver(whole(body, extra), lifetime, tag)
                }
                Ok(Answer::Begun(first, source, extra)) => {
                    let (lifetime, tag) = determinants.judge(extra.reach, &snapshot);
                    let tag = tag.unwrap_or_else(|| determinants.tag());
                    let source = Counted::new(source, &self.traffic, request.operation());
                    let response = begun(&self.pool, first, Box::new(source), extra);
                    delivery.deliver(response, lifetime, Some(tag))
                }
                Ok(Answer::AskNode(question)) => return Found::Question(facts, question),
                Err(error) => return Found::Refused(Some(facts), error),
            },
        };
        facts.add_to(&mut response);
        Found::Answer(response)
    }

    fn snapshot(&self, chain: ChainName) -> Result<Snapshot, HttpError> {
        let status = self.chains.status(chain);
        let Some(reader) = self.chains.reader(chain) else {
            // A chain that is synced has a store as soon as its node has said which chain it is.
            return Err(match status {
                Some(_) => still_indexing(),
                None => not_configured(chain),
            });
        };
        if reader.is_empty() {
            return Err(still_indexing());
        }
        Ok(Snapshot {
            chain,
            reader,
            status,
            buffers: self.buffers.clone(),
        })
    }

    async fn ask(&self, chain: ChainName, question: Question) -> Result<Answer, HttpError> {
        let Some(node) = self.chains.upstream(chain) else {
            return question.unless.map(|answer| *answer);
        };
        let failure = question.failure;
        let asked = tokio::time::timeout(self.settings.upstream_timeout, (question.ask)(node)).await;
        match asked.unwrap_or(Err(UpstreamError::TimedOut)) {
            Ok(answer) => answer,
            Err(_) if question.or_else_alone => question.unless.map(|answer| *answer),
            Err(error) => Err(upstream_failed_with(failure, &error)),
        }
    }

    async fn report(self: Arc<Self>, request: Request, report: Report) -> Response {
        let (inner, delivery) = (Arc::clone(&self), Delivery::of(&request));
        let work = move || {
            let response = match report {
                Report::Health => Ok(reports::health()),
                Report::Ready => reports::ready(&*inner.chains, &inner.settings),
                Report::Status => reports::status(&*inner.chains),
                Report::OpenApi => Ok(reports::openapi()),
                Report::Docs => Ok(reports::docs()),
                Report::Metrics => figures::metrics(&*inner.chains, &inner.traffic, &inner.pool),
            };
            response.map(|response| delivery.deliver(response, Lifetime::Revalidate, None))
        };
        let outcome = self.pool.run(Lane::Point, work).await;
        outcome
            .unwrap_or_else(|error| Err(error.into()))
            .unwrap_or_else(|error| refuse(&request, error))
    }
}

fn known_name(route: &[Listed], key: &str) -> Option<&'static str> {
    let named = |parameter: &&Parameter| parameter.name == key;
    let mut parameters = route.iter().flat_map(|(_, endpoint)| endpoint.parameters);
    parameters.find(named).map(|parameter| parameter.name)
}

fn take_chain(params: &mut Params) -> Result<ChainName, HttpError> {
    let choices = ChainName::ALL.map(|chain| (chain.as_str(), chain));
    params
        .take_choice("chain", &choices)
        .map(|chain| chain.unwrap_or(ChainName::Mainnet))
        .map_err(|error| {
            if error == HttpError::invalid("chain") {
                HttpError::bad_request("Invalid chain")
            } else {
                error
            }
        })
}

/// The endpoint meant, where several share a path and `action` tells them apart.
fn select(route: &[Listed], params: &mut Params) -> Result<Listed, HttpError> {
    match route {
        [(_, Endpoint { action: Some(_), .. }), ..] => {
            let action = params.require("action")?;
            let meant = route
                .iter()
                .find(|(_, endpoint)| endpoint.action == Some(action.as_str()));
            meant.copied().ok_or_else(|| HttpError::invalid("action"))
        }
        [listed, ..] => Ok(*listed),
        [] => Err(HttpError::internal("a route without an endpoint")),
    }
}

/// The refusal as a response; what only the log may know goes there.
fn refuse(request: &Request, error: HttpError) -> Response {
    if error.detail().is_some() {
        let id = request.id().as_str();
        if error.status() == http::ErrorStatus::Internal {
            tracing::error!(target: "quarry::api", request_id = id, path = request.path(), %error, "refused");
        } else {
            tracing::warn!(target: "quarry::api", request_id = id, path = request.path(), %error, "refused");
        }
    }
    error.into()
}
