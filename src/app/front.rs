//! The dialects behind one door.

use std::sync::Arc;

use crate::api::{Api, Chains, Settings};
use crate::compat::{self, Compat};
use crate::desk::Desk;
use crate::http::{Handler, Mounts, Pool};
use crate::rpc::Rpc;

/// All that is served of these chains, look-ups done on `pool`: give it to [`crate::http::serve`].
#[must_use]
pub fn front(chains: Arc<dyn Chains>, pool: Pool, settings: Settings) -> Mounts {
    let first_action = Api::operations().count();
    let first_method = first_action + Compat::operations().count();
    let operations = Api::operations()
        .chain(Compat::operations())
        .chain(Rpc::operations());
    let desk = Desk::new(chains, pool, settings, operations);
    let api: Arc<dyn Handler> = Arc::new(Api::at(Arc::clone(&desk), 0));
    let compat: Arc<dyn Handler> = Arc::new(Compat::at(Arc::clone(&desk), first_action));
    let rpc: Arc<dyn Handler> = Arc::new(Rpc::at(desk, first_method));
    Mounts::new(api).at(compat::PATHS, &compat).at(Rpc::PATHS, &rpc)
}
