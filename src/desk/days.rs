//! Daily series: the range of days that is asked for, what of it the index covers, and what each day is told from.

use crate::http::HttpError;
use crate::model::Day;
use crate::query::{Closest, DayRow};

use super::answer::{Answer, Plan, Snapshot};
use super::caching::Reach;
use super::faults::{REVERSED_DATES, never_indexed, query_failed, still_indexing};

/// The days that are asked for, both ends included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DayRange {
    pub(crate) first: Day,
    pub(crate) last: Day,
    pub(crate) descending: bool,
}

/// The days of a range that the chain has reached, and what the answer speaks of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    days: Option<(Day, Day)>,
    pub(crate) reach: Reach,
}

/// A day with what is needed to say something of it.
pub(crate) struct OneDay<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) day: Day,
    /// All zero for a day without blocks.
    pub(crate) row: &'a DayRow,
    /// The sums of the last day before it that has blocks; told where the operation asks for it.
    pub(crate) before: Option<&'a DayRow>,
}

impl DayRange {
    /// The range from `first` to `last`, of at most `most` days.
    pub(crate) fn new(first: Day, last: Day, most: Option<u16>) -> Result<Self, HttpError> {
        if last < first {
            return Err(HttpError::bad_request(REVERSED_DATES));
        }
        if let Some(most) = most
            && last.number() - first.number() >= i64::from(most)
        {
            let text = format!("Date range exceeds {most} days");
            return Err(HttpError::bad_request(text));
        }
        Ok(Self {
            first,
            last,
            descending: false,
        })
    }

    /// What the chain covers of the range; 503 where a part of it is not wholly indexed.
    pub(crate) fn cover(self, snapshot: &Snapshot) -> Result<Covered, HttpError> {
        let extent = snapshot.extent();
        let (first, head) = snapshot.reader.day_span().map_err(query_failed)?;
        // A store that begins later holds a part of its first day at most. While the index is behind, the day of
        // its head and those that follow may gain blocks that are there already.
        let before = extent.first > 0 && self.first <= first;
        let after = extent.is_behind() && self.last >= head;
        if before {
            return Err(never_indexed());
        }
        if after {
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

    /// What `value` says of each day that is covered, called in ascending order and given in the range's.
    pub(crate) fn each<T>(
        self,
        covered: &Covered,
        mut value: impl FnMut(Day) -> Result<T, HttpError>,
    ) -> Result<Vec<(Day, T)>, HttpError> {
        let mut data = Vec::new();
        if let Some((first, last)) = covered.days {
            let mut day = first;
            while day <= last {
                data.push((day, value(day)?));
                day = day.next();
            }
        }
        if self.descending {
            data.reverse();
        }
        Ok(data)
    }
}

/// How a series over the sums of blocks is made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Days are told the sums of the day before.
    pub(crate) looks_back: bool,
    /// The static rewards of the operator are in it, who may change them.
    pub(crate) is_stated: bool,
}

/// A series over the sums of blocks: what is told of each day, and how.
pub(crate) struct Series<T> {
    pub(crate) manner: Manner,
    pub(crate) value: fn(&OneDay<'_>) -> Result<T, HttpError>,
}

impl<T: 'static> Series<T> {
    /// Looks up the days of `range`.
    fn days(&self, snapshot: &Snapshot, range: DayRange) -> Result<(Covered, Vec<(Day, T)>), HttpError> {
        let mut covered = range.cover(snapshot)?;
        if self.manner.is_stated {
            covered.reach = Reach::Head;
        }
        let (mut rows, mut before) = (Vec::new(), None);
        if let Some((first, last)) = covered.days {
            rows = snapshot.reader.days(first, last).map_err(query_failed)?;
            if self.manner.looks_back {
                before = snapshot.reader.day_before(first).map_err(query_failed)?;
            }
        }
        let mut rows = rows.into_iter().peekable();
        let days = range.each(&covered, |day| {
            let row = rows.next_if(|(of, _)| *of == day).map(|(_, row)| row);
            let told = (self.value)(&OneDay {
                snapshot,
                day,
                row: &row.unwrap_or_default(),
                before: before.as_ref(),
            });
            if self.manner.looks_back {
                before = row.or(before);
            }
            told
        })?;
        Ok((covered, days))
    }

    /// The plan of the series over `range`, rendered by `render`.
    pub(crate) fn plan(
        self,
        range: DayRange,
        render: impl FnOnce(&Snapshot, Covered, Vec<(Day, T)>) -> Result<Answer, HttpError> + Send + 'static,
    ) -> Plan {
        let is_stated = self.manner.is_stated;
        let work = move |snapshot: &Snapshot| {
            let (covered, days) = self.days(snapshot, range)?;
            render(snapshot, covered, days)
        };
        // Where a static reward changes within a day, its blocks are looked at.
        if is_stated {
            Plan::scan(work)
        } else {
            Plan::point(work)
        }
    }
}

/// Addresses that took part for the first time, by day (S5).
pub(crate) fn new_addresses(
    snapshot: &Snapshot,
    range: DayRange,
) -> Result<(Covered, Vec<(Day, u64)>), HttpError> {
    // Who was here before is known by the whole chain alone.
    if snapshot.reader.first_block() > 0 {
        return Err(never_indexed());
    }
    let covered = range.cover(snapshot)?;
    let rows = match covered.days {
        Some((first, last)) => snapshot.reader.new_addresses(first, last).map_err(query_failed)?,
        None => Vec::new(),
    };
    let mut rows = rows.into_iter().peekable();
    let days = range.each(&covered, |day| {
        let row = rows.next_if(|(of, _)| *of == day);
        Ok(row.map_or(0, |(_, count)| count))
    })?;
    Ok((covered, days))
}
