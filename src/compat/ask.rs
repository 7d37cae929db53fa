//! A request as an action sees it.

use std::str::FromStr;

use crate::desk::bounds::Bounds;
use crate::desk::days::DayRange;
use crate::desk::faults::{INVALID_ADDRESS, INVALID_CONTRACT_ADDRESS, INVALID_HASH};
use crate::desk::lists::{ListParams, OFFSET_MAX, Shape, next_page_stem, take_cursor};
use crate::http::{Decimal, HttpError, Params, Request};
use crate::model::{Address, B256, Day};
use crate::query::KeyPart;

/// The parameters that any action knows, in lower case: Etherscan's are of any.
const NAMES: &[&str] = &[
    "module",
    "action",
    "chainid",
    "chain",
    "address",
    "contractaddress",
    "contractaddresses",
    "txhash",
    "startblock",
    "endblock",
    "fromblock",
    "toblock",
    "page",
    "offset",
    "sort",
    "cursor",
    "tag",
    "blockno",
    "blocktype",
    "timestamp",
    "closest",
    "startdate",
    "enddate",
    "topic0",
    "topic1",
    "topic2",
    "topic3",
    "topic0_1_opr",
    "topic1_2_opr",
    "topic2_3_opr",
    "topic0_2_opr",
    "topic0_3_opr",
    "topic1_3_opr",
    "boolean",
    "index",
    "position",
    "from",
    "to",
    "data",
    "value",
    "gas",
    "gaslimit",
    "gasprice",
];

/// Parameters of a form, at most: hundreds more than any action takes. It is read by a thread that owns sockets, and has room for a hundred
/// times as many.
const PAIRS_MAX: usize = 1000;

/// Reads the query and, of a POST, the form in its body, whose parameters some clients repeat in the query.
pub(super) fn parameters(request: &Request) -> Result<Params, HttpError> {
    parameters_of(request, NAMES)
}

/// The module that a request names, if it names one.
pub(super) fn module(request: &Request) -> String {
    let named = parameters_of(request, &["module"]).and_then(|mut params| params.take("module"));
    named.ok().flatten().unwrap_or_default()
}

fn parameters_of(request: &Request, names: &'static [&'static str]) -> Result<Params, HttpError> {
    let known = |key: &str| names.iter().copied().find(|name| name.eq_ignore_ascii_case(key));
    let query = Params::parse(request.query(), known);
    if request.upload().is_empty() {
        return Ok(query);
    }
    let form = String::from_utf8_lossy(request.upload());
    // Those after them may be what the request is about.
    if form.split('&').nth(PAIRS_MAX).is_some() {
        let text = format!("At most {PAIRS_MAX} parameters of a form are allowed");
        return Err(HttpError::bad_request(text));
    }
    Ok(Params::parse(form.trim(), known).or(query))
}

/// What is left of a request once chain and action are known.
pub(super) struct Ask<'a> {
    pub(super) params: Params,
    pub(super) request: &'a Request,
}

impl Ask<'_> {
    /// The account.
    pub(super) fn address(&mut self) -> Result<Address, HttpError> {
        self.maybe_address()?.ok_or_else(|| HttpError::missing("address"))
    }

    /// The account, where one is given.
    pub(super) fn maybe_address(&mut self) -> Result<Option<Address>, HttpError> {
        self.params.take_address("address", INVALID_ADDRESS)
    }

    /// The contract.
    pub(super) fn contract(&mut self) -> Result<Address, HttpError> {
        self.maybe_contract()?
            .ok_or_else(|| HttpError::missing("contractaddress"))
    }

    /// The contract, where one is given.
    pub(super) fn maybe_contract(&mut self) -> Result<Option<Address>, HttpError> {
        self.params
            .take_address("contractaddress", INVALID_CONTRACT_ADDRESS)
    }

    /// The transaction.
    pub(super) fn hash(&mut self) -> Result<B256, HttpError> {
        self.maybe_hash()?.ok_or_else(|| HttpError::missing("txhash"))
    }

    /// The transaction, where one is given.
    pub(super) fn maybe_hash(&mut self) -> Result<Option<B256>, HttpError> {
        self.params.take_hash("txhash", INVALID_HASH)
    }

    /// The number of a block.
    pub(super) fn block_number(&mut self) -> Result<u64, HttpError> {
        Ok(self.block_as_given()?.number())
    }

    /// The same, to be said again.
    pub(super) fn block_as_given(&mut self) -> Result<Decimal, HttpError> {
        let number = self.params.take_decimal("blockno")?;
        number.ok_or_else(|| HttpError::missing("blockno"))
    }

    /// `startblock` and `endblock`.
    pub(super) fn bounds(&mut self) -> Result<Bounds, HttpError> {
        Bounds::take(&mut self.params, "startblock", "endblock")
    }

    /// `page`, of which 0 is the first as well, and `offset`.
    pub(super) fn pages(&mut self) -> Result<ListParams, HttpError> {
        let page = self.params.take_u64("page")?.unwrap_or(1).max(1);
        let offset = match self.params.take_u64("offset")? {
            Some(offset) if offset > OFFSET_MAX => return Err(HttpError::invalid("offset")),
            offset => offset.filter(|&offset| offset > 0),
        };
        Ok(ListParams {
            page: page.into(),
            offset,
            descending: false,
            cursor: None,
            shape: Shape::Object,
            next_page_stem: match self.request.upload().is_empty() {
                true => next_page_stem(self.request.path(), self.request.query()),
                false => String::new(),
            },
        })
    }

    /// The same of a list in the order of its keys, and which part of it is meant.
    pub(super) fn keyed_list<C: FromStr>(&mut self) -> Result<(ListParams, KeyPart<C>), HttpError> {
        let list = self.pages()?;
        let part = list.take_key_part(&mut self.params)?;
        Ok((list, part))
    }

    /// The same of a list that is sorted and may be gone on with; without `sort` it is `newest_first` or not.
    pub(super) fn list(&mut self, newest_first: bool) -> Result<ListParams, HttpError> {
        let mut list = self.pages()?;
        list.descending = self.sort()?.unwrap_or(newest_first);
        list.cursor = take_cursor(&mut self.params)?;
        Ok(list)
    }

    /// Whether the newest come first, where that is said.
    fn sort(&mut self) -> Result<Option<bool>, HttpError> {
        match self.params.take("sort")? {
            None => Ok(None),
            Some(text) if text.eq_ignore_ascii_case("asc") => Ok(Some(false)),
            Some(text) if text.eq_ignore_ascii_case("desc") => Ok(Some(true)),
            Some(_) => Err(HttpError::invalid("sort")),
        }
    }

    /// `startdate`, `enddate` and `sort`.
    pub(super) fn days(&mut self) -> Result<DayRange, HttpError> {
        let (first, last) = (self.day("startdate")?, self.day("enddate")?);
        let range = DayRange::new(first, last, None)?;
        Ok(DayRange {
            descending: self.sort()?.unwrap_or(false),
            ..range
        })
    }

    fn day(&mut self, name: &'static str) -> Result<Day, HttpError> {
        let text = self.params.require(name)?;
        text.parse().map_err(|()| HttpError::invalid(name))
    }
}
