//! Daily series: their parameters, and the envelope around the days.

use serde::Serialize;

use crate::desk::answer::{Answer, Extra, Plan, Snapshot};
use crate::desk::days::{self, Covered, DayRange, Series};
use crate::desk::lists::{Shape, whole_list};
use crate::http::{HttpError, Params};
use crate::model::Day;

use super::input::Input;

/// The days that are asked for, and in which form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) range: DayRange,
    shape: Shape,
}

/// Takes `startDate`, `endDate` and `sort`.
pub(super) fn take_days(input: &mut Input<'_>) -> Result<Asked, HttpError> {
    let days_max = input.endpoint.days_max;
    let params = &mut input.params;
    let (first, last) = (take_day(params, "startDate")?, take_day(params, "endDate")?);
    let range = DayRange::new(first, last, days_max)?;
    let sort = params.take_choice("sort", &[("asc", false), ("desc", true)])?;
    Ok(Asked {
        range: DayRange {
            descending: sort.unwrap_or(false),
            ..range
        },
        shape: Shape::wanted(input.request),
    })
}

fn take_day(params: &mut Params, name: &'static str) -> Result<Day, HttpError> {
    let text = params.require(name)?;
    text.parse().map_err(|()| HttpError::invalid(name))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<T> {
    start_date: String,
    end_date: String,
    chain: &'static str,
    sort: &'static str,
    data: Vec<Entry<T>>,
}

#[derive(Serialize)]
struct Entry<T> {
    date: String,
    #[serde(rename = "unixTimeStamp")]
    unix_time_stamp: i64,
    #[serde(flatten)]
    values: T,
}

/// The days in the envelope of the range, each with the fields that `fields` makes of what is known of it.
pub(super) fn series_answer<T, F: Serialize>(
    snapshot: &Snapshot,
    Asked { range, shape }: Asked,
    covered: Covered,
    days: Vec<(Day, T)>,
    fields: impl Fn(T) -> F,
) -> Result<Answer, HttpError> {
    let entry = |(day, value): (Day, T)| Entry {
        date: day.to_string(),
        unix_time_stamp: day.start(),
        values: fields(value),
    };
    let body = Body {
        start_date: range.first.to_string(),
        end_date: range.last.to_string(),
        chain: snapshot.chain.as_str(),
        sort: if range.descending { "desc" } else { "asc" },
        data: days.into_iter().map(entry).collect(),
    };
    let extra = Extra {
        reach: covered.reach,
        ..Extra::default()
    };
    whole_list(shape, &body, &body.data, extra)
}

/// The plan of a series, its days with the fields that `fields` makes of what is known of them.
pub(super) fn series<T: 'static, F: Serialize + 'static>(
    input: &mut Input<'_>,
    series: Series<T>,
    fields: fn(T) -> F,
) -> Result<Plan, HttpError> {
    let asked = take_days(input)?;
    Ok(series.plan(asked.range, move |snapshot, covered, days| {
        series_answer(snapshot, asked, covered, days, fields)
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewAddresses {
    new_address_count: u64,
}

/// S5.
pub(super) fn new_addresses(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let asked = take_days(input)?;
    Ok(Plan::point(move |snapshot| {
        let (covered, days) = days::new_addresses(snapshot, asked.range)?;
        series_answer(snapshot, asked, covered, days, |count| NewAddresses {
            new_address_count: count,
        })
    }))
}
