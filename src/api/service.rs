//! From a request to its answer: route, parse, look up on the pool, respond.

use std::sync::Arc;

use crate::http::{self, FrameBuffers, HttpError, Lane, Match, Params, Pool, Request, Response, Router};
use crate::model::ChainName;

use super::answer::{Answer, Facts, Plan, Snapshot, begun, whole};
use super::context::{Chains, Settings, UpstreamError};
use super::endpoint::{Endpoint, Parameter};
use super::faults::{not_configured, still_indexing, unsupported, upstream_failed};
use super::input::Input;
use super::list::endpoints;
use super::{proxy, reports};

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
}

/// The service: give it to [`crate::http::serve`].
pub struct Api {
    inner: Arc<Inner>,
}

struct Inner {
    chains: Arc<dyn Chains>,
    pool: Pool,
    buffers: FrameBuffers,
    settings: Settings,
    router: Router,
    /// The endpoints of each distinct path; the router's numbers are places in it.
    routes: Vec<Vec<&'static Endpoint>>,
}

/// A request whose parameters are all parsed.
enum Parsed {
    Operation(ChainName, Plan),
    Report(Report),
}

impl Api {
    /// The service over these chains, its look-ups done on `pool`.
    #[must_use]
    pub fn new(chains: Arc<dyn Chains>, pool: Pool, settings: Settings) -> Self {
        let mut routes: Vec<Vec<&'static Endpoint>> = Vec::new();
        for endpoint in endpoints() {
            let same_path = |route: &&mut Vec<&'static Endpoint>| {
                route.first().is_some_and(|first| first.path == endpoint.path)
            };
            match routes.iter_mut().find(same_path) {
                Some(route) => route.push(endpoint),
                None => routes.push(vec![endpoint]),
            }
        }
        let templates = routes
            .iter()
            .enumerate()
            .filter_map(|(at, route)| route.first().map(|first| (first.path, at)));
        Self {
            inner: Arc::new(Inner {
                chains,
                pool,
                buffers: FrameBuffers::default(),
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
            Ok(Parsed::Report(Report::Health)) => Box::pin(async { reports::health() }),
            Ok(Parsed::Report(report)) => {
                let inner = Arc::clone(&self.inner);
                Box::pin(async move { inner.report(report).await })
            }
            Ok(Parsed::Operation(chain, plan)) => {
                let inner = Arc::clone(&self.inner);
                Box::pin(async move { inner.operate(request, chain, plan).await })
            }
        }
    }
}

impl Inner {
    fn parse(&self, request: &Request) -> Result<Parsed, HttpError> {
        let no_route = || HttpError::not_found("Route not found");
        let Match { value, segments } = self.router.find(request.path()).ok_or_else(no_route)?;
        let route = self.routes.get(value).ok_or_else(no_route)?;
        let mut params = Params::parse(request.query(), |key| known_name(route, key));
        if let [
            Endpoint {
                handler: Handler::Service(report),
                ..
            },
        ] = route.as_slice()
        {
            return Ok(Parsed::Report(*report));
        }
        let chain = take_chain(&mut params)?;
        let endpoint = select(route, &mut params)?;
        if endpoint.main_only && chain != ChainName::Mainnet {
            return Err(unsupported(chain));
        }
        match endpoint.handler {
            Handler::Service(report) => Ok(Parsed::Report(report)),
            Handler::Chain(parse) => {
                let mut input = Input {
                    chain,
                    params,
                    request,
                    segments,
                };
                let plan = parse(&mut input)?;
                Ok(Parsed::Operation(input.chain, plan))
            }
        }
    }

    async fn operate(&self, request: Request, chain: ChainName, plan: Plan) -> Response {
        let (chains, buffers) = (Arc::clone(&self.chains), self.buffers.clone());
        let looked_up = self
            .pool
            .run(plan.lane, move || look_up(&*chains, buffers, chain, plan))
            .await;
        let (facts, outcome) = looked_up.unwrap_or_else(|error| (None, Err(error.into())));
        let outcome = match outcome {
            Ok(Answer::AskNonce {
                address,
                block,
                unless,
            }) => self.ask_nonce(chain, address, block, unless).await,
            outcome => outcome,
        };
        let mut response = match outcome {
            Ok(Answer::Whole(body, extra)) => whole(body, extra),
            Ok(Answer::Begun(first, source, extra)) => begun(&self.pool, first, source, extra),
            Ok(Answer::AskNonce { .. }) => {
                refuse(&request, HttpError::internal("the node's answer was a question"))
            }
            Err(error) => refuse(&request, error),
        };
        if let Some(facts) = facts {
            facts.add_to(&mut response);
        }
        response
    }

    async fn ask_nonce(
        &self,
        chain: ChainName,
        address: crate::model::Address,
        block: u64,
        unless: Option<u64>,
    ) -> Result<Answer, HttpError> {
        let asked = match self.chains.upstream(chain) {
            None if let Some(count) = unless => return Ok(proxy::nonce(count, "ledger")),
            None => Err(UpstreamError::Failed("no node is configured".to_owned())),
            Some(node) => {
                let question = node.transaction_count(address, block);
                tokio::time::timeout(self.settings.upstream_timeout, question)
                    .await
                    .unwrap_or(Err(UpstreamError::TimedOut))
            }
        };
        asked
            .map(|count| proxy::nonce(count, "node"))
            .map_err(|error| upstream_failed(&error))
    }

    async fn report(&self, report: Report) -> Response {
        let (chains, settings) = (Arc::clone(&self.chains), self.settings.clone());
        let work = move || match report {
            Report::Health => Ok(reports::health()),
            Report::Ready => reports::ready(&*chains, &settings),
            Report::Status => reports::status(&*chains),
            Report::OpenApi => Ok(reports::openapi()),
            Report::Docs => Ok(reports::docs()),
        };
        let outcome = self.pool.run(Lane::Point, work).await;
        outcome
            .unwrap_or_else(|error| Err(error.into()))
            .unwrap_or_else(Into::into)
    }
}

/// Takes a snapshot and does the work on it. Blocks.
fn look_up(
    chains: &dyn Chains,
    buffers: FrameBuffers,
    chain: ChainName,
    plan: Plan,
) -> (Option<Facts>, Result<Answer, HttpError>) {
    let Some(reader) = chains.reader(chain) else {
        // A chain that is synced has a store as soon as its node has said which chain it is.
        let error = match chains.status(chain) {
            Some(_) => still_indexing(),
            None => not_configured(chain),
        };
        return (None, Err(error));
    };
    if reader.is_empty() {
        return (None, Err(still_indexing()));
    }
    let snapshot = Snapshot {
        chain,
        reader,
        status: chains.status(chain),
        buffers,
    };
    (Some(snapshot.facts()), (plan.work)(&snapshot))
}

fn known_name(route: &[&'static Endpoint], key: &str) -> Option<&'static str> {
    let named = |parameter: &&Parameter| parameter.name == key;
    let mut parameters = route.iter().flat_map(|endpoint| endpoint.parameters);
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
fn select(route: &[&'static Endpoint], params: &mut Params) -> Result<&'static Endpoint, HttpError> {
    match route {
        [Endpoint { action: Some(_), .. }, ..] => {
            let action = params.require("action")?;
            let meant = route
                .iter()
                .find(|endpoint| endpoint.action == Some(action.as_str()));
            meant.copied().ok_or_else(|| HttpError::invalid("action"))
        }
        [endpoint, ..] => Ok(endpoint),
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
