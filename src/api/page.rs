//! The parameters that lists take.

use crate::desk::lists::{ListParams, OFFSET_MAX, Shape, next_page_stem, take_cursor};
use crate::http::{Decimal, HttpError, Params};

use super::input::Input;

/// Takes `page`, `offset`, `sort` and `cursor`.
pub(super) fn take_list(input: &mut Input<'_>) -> Result<ListParams, HttpError> {
    let mut list = take_pages(input, None)?;
    let sort = input
        .params
        .take_choice("sort", &[("asc", false), ("desc", true)])?;
    list.descending = sort.unwrap_or(false);
    list.cursor = take_cursor(&mut input.params)?;
    Ok(list)
}

/// Takes `page` and `offset` of a list that has one order, that of its keys; `offset` is what was made of the
/// parameter already, where it is not any number. Its cursor is taken by [`take_cursor`].
pub(super) fn take_pages(input: &mut Input<'_>, offset: Option<u64>) -> Result<ListParams, HttpError> {
    let page = match input.params.take_decimal("page")? {
        Some(page) if page.number() == 0 => return Err(HttpError::invalid("page")),
        page => page.unwrap_or(Decimal::from(1)),
    };
    let offset = match offset {
        Some(offset) => Some(offset),
        None => take_between(&mut input.params, "offset", OFFSET_MAX)?,
    };
    Ok(ListParams {
        page,
        offset,
        descending: false,
        cursor: None,
        shape: Shape::wanted(input.request),
        next_page_stem: next_page_stem(input.request.path(), input.request.query()),
    })
}

fn take_between(params: &mut Params, name: &str, most: u64) -> Result<Option<u64>, HttpError> {
    match params.take_u64(name)? {
        Some(value) if value == 0 || value > most => Err(HttpError::invalid(name)),
        value => Ok(value),
    }
}
