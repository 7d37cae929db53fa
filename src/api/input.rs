//! A request as a handler sees it: chain, path segments and parameters.

use super::endpoint::Endpoint;
use crate::desk::faults::{INVALID_ADDRESS, INVALID_CONTRACT_ADDRESS};
use crate::http::{HttpError, Params, Request, parse_address, percent_decode};
use crate::model::{Address, ChainName};

/// What is left of a request once its chain and its endpoint are known.
pub(super) struct Input<'a> {
    pub(super) chain: ChainName,
    pub(super) endpoint: &'static Endpoint,
    pub(super) params: Params,
    pub(super) request: &'a Request,
    pub(super) segments: Vec<&'a str>,
}

impl Input<'_> {
    /// The path's placeholder number `at`, parsed; `fault` is told for anything else.
    pub(super) fn segment<T>(
        &self,
        at: usize,
        parse: impl Fn(&str) -> Option<T>,
        fault: impl FnOnce() -> HttpError,
    ) -> Result<T, HttpError> {
        let parsed = match self.segments.get(at) {
            Some(segment) if segment.contains('%') => percent_decode(segment)
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .and_then(|text| parse(&text)),
            Some(segment) => parse(segment),
            None => None,
        };
        parsed.ok_or_else(fault)
    }

    /// The account in the path.
    pub(super) fn account(&self) -> Result<Address, HttpError> {
        self.segment(0, parse_address, || HttpError::bad_request(INVALID_ADDRESS))
    }

    /// The contract in the path.
    pub(super) fn contract(&self) -> Result<Address, HttpError> {
        self.segment(0, parse_address, || {
            HttpError::bad_request(INVALID_CONTRACT_ADDRESS)
        })
    }

    fn require_address(&mut self, name: &'static str, fault: &'static str) -> Result<Address, HttpError> {
        self.params
            .take_address(name, fault)?
            .ok_or_else(|| HttpError::missing(name))
    }

    /// The parameter `address`.
    pub(super) fn require_account(&mut self) -> Result<Address, HttpError> {
        self.require_address("address", INVALID_ADDRESS)
    }

    /// The parameter `contractaddress`.
    pub(super) fn require_contract(&mut self) -> Result<Address, HttpError> {
        self.require_address("contractaddress", INVALID_CONTRACT_ADDRESS)
    }
}
