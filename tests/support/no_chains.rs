//! No chain at all: what fails over it fails before the reader.

use std::sync::Arc;

use quarry::api::{Chains, Upstream};
use quarry::model::ChainName;
use quarry::query::Reader;
use quarry::status::ChainStatus;

pub(crate) struct NoChains;

impl Chains for NoChains {
    fn reader(&self, _: ChainName) -> Option<Reader> {
        None
    }
    fn status(&self, _: ChainName) -> Option<Arc<ChainStatus>> {
        None
    }
    fn upstream(&self, _: ChainName) -> Option<Arc<dyn Upstream>> {
        None
    }
    fn store_bytes(&self, _: ChainName) -> u64 {
        0
    }
}
