//! The endpoints of the group of tokens.

use crate::api::endpoint::Endpoint;

pub(super) const ENDPOINTS: &[Endpoint] = &[];
