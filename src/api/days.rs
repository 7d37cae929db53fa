//! Daily series: the range of days that is asked for, what of it the index covers, and the envelope around the days.

use serde::Serialize;

use crate::http::{HttpError, Params};
use crate::model::Day;
use crate::query::{Closest, DayRow};

use super::answer::{Answer, Plan, Snapshot};
use super::caching::Reach;
use super::faults::{REVERSED_DATES, query_failed, still_indexing};
use super::input::Input;

/// The days that are asked for, both ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct DayRange {
    first: Day,
    last: Day,
    descending: bool,
}

/// The days of a range that the chain has reached, and what the answer speaks of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    days: Option<(Day, Day)>,
    pub(super) reach: Reach,
}

/// A day with what is needed to say something of it.
pub(super) struct OneDay<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) day: Day,
    /// All zero for a day without blocks.
    pub(super) row: &'a DayRow,
    /// The sums of the last day before it that has blocks; told where the operation asks for it.
    pub(super) before: Option<&'a DayRow>,
}

impl DayRange {
    /// Takes `startDate`, `endDate` and `sort`.
    pub(super) fn take(input: &mut Input<'_>) -> Result<Self, HttpError> {
        let days_max = input.endpoint.days_max;
        let params = &mut input.params;
        let (first, last) = (take_day(params, "startDate")?, take_day(params, "endDate")?);
        if last < first {
            return Err(HttpError::bad_request(REVERSED_DATES));
        }
        if let Some(most) = days_max
            && last.number() - first.number() >= i64::from(most)
        {
            let text = format!("Date range exceeds {most} days");
            return Err(HttpError::bad_request(text));
        }
        let sort = params.take_choice("sort", &[("asc", false), ("desc", true)])?;
        Ok(Self {
            first,
            last,
            descending: sort.unwrap_or(false),
        })
    }

    /// What the chain covers of the range; 503 where a part of it is not wholly indexed.
    pub(super) fn cover(self, snapshot: &Snapshot) -> Result<Covered, HttpError> {
        let extent = snapshot.extent();
        let (first, head) = snapshot.reader.day_span().map_err(query_failed)?;
        // A store that begins later holds a part of its first day at most. While the index is behind, the day of
        // its head and those that follow may gain blocks that are there already.
        let before = extent.first > 0 && self.first <= first;
        let after = extent.is_behind() && self.last >= head;
        if before || after {
            return Err(still_indexing());
        }
        let reach = if self.last < head {
            // The next block ends the range: it lies after it.
            let end = u64::try_from(self.last.next().start()).unwrap_or(0);
            let last = match end.checked_sub(1) {
                Some(end) => snapshot
                    .reader
                    .block_by_time(end, Closest::Before)
                    .map_err(query_failed)?,
                None => None,
            };
            Reach::UpTo(last.map_or(extent.first, |block| block.number + 1))
        } else {
            Reach::Head
        };
        let days = (self.first.max(first), self.last.min(head));
        Ok(Covered {
            days: (days.0 <= days.1).then_some(days),
            reach,
        })
    }
}

fn take_day(params: &mut Params, name: &'static str) -> Result<Day, HttpError> {
    let text = params.require(name)?;
    text.parse().map_err(|()| HttpError::invalid(name))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Series<T> {
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

impl DayRange {
    /// The series with what `values` says of each day that is covered, in ascending order.
    pub(super) fn answer<T: Serialize>(
        self,
        snapshot: &Snapshot,
        covered: Covered,
        mut values: impl FnMut(Day) -> Result<T, HttpError>,
    ) -> Result<Answer, HttpError> {
        let mut data = Vec::new();
        if let Some((first, last)) = covered.days {
            let mut day = first;
            while day <= last {
                data.push(Entry {
                    date: day.to_string(),
                    unix_time_stamp: day.start(),
                    values: values(day)?,
                });
                day = day.next();
            }
        }
        if self.descending {
            data.reverse();
        }
        let series = Series {
            start_date: self.first.to_string(),
            end_date: self.last.to_string(),
            chain: snapshot.chain.as_str(),
            sort: if self.descending { "desc" } else { "asc" },
            data,
        };
        Answer::json(&series, covered.reach)
    }
}

/// How a series over the sums of blocks is made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// Days are told the sums of the day before.
    pub(super) looks_back: bool,
    /// The static rewards of the operator are in it, who may change them.
    pub(super) is_stated: bool,
}

/// The plan of a series of what `value` says of the sums of each day.
pub(super) fn series<T: Serialize + 'static>(
    input: &mut Input<'_>,
    manner: Manner,
    value: fn(&OneDay<'_>) -> Result<T, HttpError>,
) -> Result<Plan, HttpError> {
    let range = DayRange::take(input)?;
    let work = move |snapshot: &Snapshot| {
        let mut covered = range.cover(snapshot)?;
        if manner.is_stated {
            covered.reach = Reach::Head;
        }
        let (mut rows, mut before) = (Vec::new(), None);
        if let Some((first, last)) = covered.days {
            rows = snapshot.reader.days(first, last).map_err(query_failed)?;
            if manner.looks_back {
                before = snapshot.reader.day_before(first).map_err(query_failed)?;
            }
        }
        let mut rows = rows.into_iter().peekable();
        range.answer(snapshot, covered, |day| {
            let row = rows.next_if(|(of, _)| *of == day).map(|(_, row)| row);
            let told = value(&OneDay {
                snapshot,
                day,
                row: &row.unwrap_or_default(),
                before: before.as_ref(),
            });
            if manner.looks_back {
                before = row.or(before);
            }
            told
        })
    };
    // Where a static reward changes within a day, its blocks are looked at.
    Ok(if manner.is_stated {
        Plan::scan(work)
    } else {
        Plan::point(work)
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewAddresses {
    new_address_count: u64,
}

/// S5.
pub(super) fn new_addresses(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let range = DayRange::take(input)?;
    Ok(Plan::point(move |snapshot| {
        // Who was here before is known by the whole chain alone.
        if snapshot.reader.first_block() > 0 {
            return Err(still_indexing());
        }
        let covered = range.cover(snapshot)?;
        let rows = match covered.days {
            Some((first, last)) => snapshot.reader.new_addresses(first, last).map_err(query_failed)?,
            None => Vec::new(),
        };
        let mut rows = rows.into_iter().peekable();
        range.answer(snapshot, covered, |day| {
            let row = rows.next_if(|(of, _)| *of == day);
            Ok(NewAddresses {
                new_address_count: row.map_or(0, |(_, count)| count),
            })
        })
    }))
}
