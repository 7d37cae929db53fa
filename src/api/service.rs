//! From a request to its answer: route, parse, look up on the pool, respond.

use std::sync::Arc;

use crate::desk::answer::Plan;
use crate::desk::context::{Chains, Settings};
use crate::desk::faults::{invalid_chain, unsupported};
use crate::desk::office::{Desk, Dialect};
use crate::http::{
    self, Delivery, Handled, HttpError, Lane, Lifetime, Match, Params, Pool, Request, Response, Router,
    Traffic,
};
use crate::model::ChainName;

use super::endpoint::{Endpoint, Parameter};
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
    Home,
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
    desk: Arc<Desk>,
    /// Where the endpoints begin among the operations that the desk counts.
    first_operation: usize,
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
    /// The service over these chains by itself, its look-ups done on `pool`.
    #[must_use]
    pub fn new(chains: Arc<dyn Chains>, pool: Pool, settings: Settings) -> Self {
        Self::at(Desk::new(chains, pool, settings, Self::operations()), 0)
    }

    /// The names by which its operations are counted.
    pub fn operations() -> impl Iterator<Item = String> {
        endpoints().iter().map(|endpoint| endpoint.ids.join(","))
    }

    /// The service at a desk where its operations are counted from `first_operation`.
    #[must_use]
    pub fn at(desk: Arc<Desk>, first_operation: usize) -> Self {
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
                desk,
                first_operation,
                router: Router::new(templates),
                routes,
            }),
        }
    }
}

impl http::Handler for Api {
    fn handle(&self, request: Request) -> Handled {
        match self.inner.parse(&request) {
            Err(error) => error.into(),
            // Not on the pool: it tells that the process answers, also while every thread is busy.
            Ok(Parsed::Report(Report::Health)) => Delivery::of(&request)
                .deliver_plain(reports::health(), Lifetime::Revalidate)
                .into(),
            Ok(Parsed::Report(report)) => {
                let inner = Arc::clone(&self.inner);
                Handled::later(inner.report(request, report))
            }
            Ok(Parsed::Operation(chain, plan)) => {
                let inner = Arc::clone(&self.inner);
                let desk = Arc::clone(&inner.desk);
                desk.operate(inner, request, chain, plan)
            }
        }
    }

    fn is_always_answered(&self, path: &str) -> bool {
        self.inner.is_health(path)
    }

    fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(self.inner.desk.traffic())
    }
}

impl Dialect for Inner {
    fn plan(&self, request: &Request) -> Result<Plan, HttpError> {
        match self.parse(request)? {
            Parsed::Operation(_, plan) => Ok(plan),
            Parsed::Report(_) => Err(HttpError::internal("a request was read in two ways")),
        }
    }

    fn refuse(&self, _: &Request, error: HttpError) -> Response {
        error.into()
    }
}

impl Inner {
    fn is_health(&self, path: &str) -> bool {
        let found = self.router.find(path);
        let route = found.and_then(|found| self.routes.get(found.value));
        let is_health = |(_, endpoint): &Listed| matches!(endpoint.handler, Handler::Service(Report::Health));
        route.is_some_and(|route| route.iter().all(is_health))
    }

    fn parse(&self, request: &Request) -> Result<Parsed, HttpError> {
        let no_route = || HttpError::not_found("Route not found");
        let Match { value, segments } = self.router.find(request.path()).ok_or_else(no_route)?;
        let route = self.routes.get(value).ok_or_else(no_route)?;
        let mut params = Params::parse(request.query(), |key| known_name(route, key));
        if let [(place, only)] = route.as_slice() {
            // Named at once, so that its refusals are counted as its own.
            request.name_operation(self.first_operation + *place);
            if let Handler::Service(report) = only.handler {
                return Ok(Parsed::Report(report));
            }
        }
        let chain = take_chain(&mut params)?;
        let (place, endpoint) = select(route, &mut params)?;
        request.name_operation(self.first_operation + place);
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

    async fn report(self: Arc<Self>, request: Request, report: Report) -> Response {
        let (inner, delivery) = (Arc::clone(&self), Delivery::of(&request));
        let request = Arc::new(request);
        let asked = Arc::clone(&request);
        let work = move || {
            let response = match report {
                Report::Home => Ok(reports::home(&asked)),
                Report::Health => Ok(reports::health()),
                Report::Ready => reports::ready(inner.desk.chains(), inner.desk.settings()),
                Report::Status => reports::status(inner.desk.chains(), inner.desk.traffic()),
                Report::OpenApi => Ok(reports::openapi()),
                Report::Docs => Ok(reports::docs()),
                Report::Metrics => figures::metrics(&inner.desk),
            };
            response.map(|response| delivery.deliver(response, Lifetime::Revalidate, None))
        };
        let outcome = self.desk.pool().run(Lane::Point, work).await;
        outcome
            .unwrap_or_else(|error| Err(error.into()))
            .unwrap_or_else(|error| self.desk.refuse(&*self, &request, error))
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
                invalid_chain()
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
