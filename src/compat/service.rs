//! From a request to its answer.

use std::sync::{Arc, OnceLock};

use crate::desk::Desk;
use crate::desk::answer::Plan;
use crate::desk::faults::{invalid_chain, still_indexing};
use crate::desk::office::Dialect;
use crate::http::{
    self, Delivery, ErrorStatus, Handled, HttpError, Lane, Lifetime, Request, Response, StatusCode, Traffic,
    json_response, parse_u64,
};
use crate::model::ChainName;

use super::actions::{actions, find};
use super::ask::{Ask, module, parameters};
use super::{chainlist, envelope};

/// Of the first version, for one chain each.
const API: &str = "/api";
/// Of the second, where `chainid` says which chain.
const API_V2: &str = "/v2/api";
const CHAINS: &str = "/v2/chainlist";

/// Where this dialect is spoken.
pub const PATHS: &[&str] = &[API, API_V2, CHAINS];

/// The longest form.
const UPLOAD_BYTES_MAX: usize = 256 * 1024;

const CHAIN_ID: &str = "Missing or unsupported chainid parameter (required for v2 api), please see /v2/chainlist for \
                        the list of supported chainids";

/// The service: mounted at [`PATHS`].
pub struct Compat {
    inner: Arc<Inner>,
}

struct Inner {
    desk: Arc<Desk>,
    /// Where the actions begin among the operations that the desk counts.
    first_operation: usize,
    /// Which chain each id is, where there are so many that no more can come.
    ids: OnceLock<Vec<(u64, ChainName)>>,
}

/// Which chain is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meant {
    Name(ChainName),
    Id(u64),
}

impl Compat {
    /// The service at a desk where its actions are counted from `first_operation`.
    #[must_use]
    pub fn at(desk: Arc<Desk>, first_operation: usize) -> Self {
        Self {
            inner: Arc::new(Inner {
                desk,
                first_operation,
                ids: OnceLock::new(),
            }),
        }
    }

    /// The names by which its actions are counted.
    pub fn operations() -> impl Iterator<Item = String> {
        let actions = actions().iter();
        actions.map(|action| format!("{}/{}", action.module, action.name))
    }
}

impl http::Handler for Compat {
    fn handle(&self, request: Request) -> Handled {
        let inner = Arc::clone(&self.inner);
        if request.path() == CHAINS {
            Handled::later(inner.chain_list(request))
        } else {
            inner.answer(request)
        }
    }

    fn upload_bytes_max(&self, path: &str) -> Option<usize> {
        (path != CHAINS).then_some(UPLOAD_BYTES_MAX)
    }

    fn refuse(&self, _: &str, error: HttpError) -> Response {
        // A body that is too long is the client's, as a parameter is.
        envelope::refusal(&error, error.status() != ErrorStatus::ContentTooLarge)
    }

    fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(self.inner.desk.traffic())
    }
}

impl Dialect for Inner {
    fn plan(&self, request: &Request) -> Result<Plan, HttpError> {
        self.parse(request).map(|(_, plan)| plan)
    }

    fn refuse(&self, request: &Request, error: HttpError) -> Response {
        // Clients know that they ask too often, or too early, by the envelope.
        if error.retry_after().is_none() && self.is_of_proxy(request) {
            envelope::proxy_refusal(&error)
        } else {
            envelope::refusal(&error, false)
        }
    }
}

impl Inner {
    /// Whether a request is for the module that speaks JSON-RPC: as it was read, where that came to an action.
    fn is_of_proxy(&self, request: &Request) -> bool {
        let place = request.operation().checked_sub(self.first_operation);
        match place.and_then(|place| actions().get(place)) {
            Some(action) => action.module == "proxy",
            None => module(request).eq_ignore_ascii_case("proxy"),
        }
    }

    fn answer(self: Arc<Self>, request: Request) -> Handled {
        let desk = Arc::clone(&self.desk);
        match self.parse(&request) {
            Err(error) => desk.refuse(&*self, &request, error).into(),
            Ok((Meant::Name(chain), plan)) => desk.operate(self, request, chain, plan),
            Ok((Meant::Id(id), plan)) => Handled::later(async move {
                let chain = match self.chain_of(id).await {
                    Ok(chain) => chain,
                    Err(error) => return desk.refuse(&*self, &request, error),
                };
                desk.operate(self, request, chain, plan).answer().await
            }),
        }
    }

    fn parse(&self, request: &Request) -> Result<(Meant, Plan), HttpError> {
        let mut ask = Ask {
            params: parameters(request)?,
            request,
        };
        let module = ask.params.take("module")?.unwrap_or_default();
        let action = ask.params.take("action")?.unwrap_or_default();
        let place = find(&module, &action)?;
        request.name_operation(self.first_operation + place);
        let meant = meant(&mut ask)?;
        let action = actions()
            .get(place)
            .ok_or_else(|| HttpError::internal("an action without a place"))?;
        Ok((meant, (action.parse)(&mut ask)?))
    }

    async fn chain_of(self: &Arc<Self>, id: u64) -> Result<ChainName, HttpError> {
        let named = |ids: &[(u64, ChainName)]| ids.iter().find(|(of, _)| *of == id).map(|(_, name)| *name);
        if let Some(name) = self.ids.get().and_then(|ids| named(ids)) {
            return Ok(name);
        }
        let inner = Arc::clone(self);
        let looked = self
            .desk
            .pool()
            .run(Lane::Point, move || chainlist::ids(&inner.desk));
        let ids = looked.await?;
        let Some(name) = named(&ids) else {
            // A chain whose node was not met yet may be the one.
            let chains = self.desk.chains();
            let is_coming = |&name: &ChainName| {
                let has_id = ids.iter().any(|(_, of)| *of == name);
                !has_id && chains.status(name).is_some()
            };
            return Err(match ChainName::ALL.iter().any(is_coming) {
                true => still_indexing(),
                false => HttpError::bad_request(CHAIN_ID),
            });
        };
        if ids.len() == ChainName::ALL.len() {
            // A store keeps its chain.
            let _ = self.ids.set(ids);
        }
        Ok(name)
    }

    async fn chain_list(self: Arc<Self>, request: Request) -> Response {
        let request = Arc::new(request);
        let (inner, asked) = (Arc::clone(&self), Arc::clone(&request));
        let work = move || {
            let body = chainlist::body(&inner.desk, &asked)?;
            let response = json_response(StatusCode::OK, body);
            Ok(Delivery::of(&asked).deliver(response, Lifetime::Revalidate, None))
        };
        let outcome = self.desk.pool().run(Lane::Point, work).await;
        outcome
            .unwrap_or_else(|error| Err(error.into()))
            .unwrap_or_else(|error| self.desk.refuse(&*self, &request, error))
    }
}

/// The chain that a request names: by `chainid`, which the second version needs, else by `chain`.
fn meant(ask: &mut Ask<'_>) -> Result<Meant, HttpError> {
    let id = ask.params.take("chainid")?;
    let name = ask.params.take("chain")?;
    match (id, name) {
        (Some(id), _) => {
            let id = parse_u64(id.trim()).ok_or_else(|| HttpError::bad_request(CHAIN_ID))?;
            Ok(Meant::Id(id))
        }
        (None, _) if ask.request.path() == API_V2 => Err(HttpError::bad_request(CHAIN_ID)),
        (None, None) => Ok(Meant::Name(ChainName::Mainnet)),
        (None, Some(name)) => ChainName::ALL
            .into_iter()
            .find(|chain| chain.as_str().eq_ignore_ascii_case(&name))
            .map(Meant::Name)
            .ok_or_else(invalid_chain),
    }
}
