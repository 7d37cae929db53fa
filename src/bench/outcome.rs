//! Whether a run found what was asked, or why not.

use super::answer::OVER_HTTP;
use super::figures::so_many;
use super::measurement::Measurement;
use super::report::{Asked, Note, Report};

impl Report {
    /// Why it does not say what was asked, where questions were not answered: all of them or some, or where others were asked, too.
    #[must_use]
    pub fn unanswered(&self) -> Option<String> {
        self.unmeasured()
            .or_else(|| self.unserved())
            .or_else(|| self.unread())
    }

    /// That the service gave answers that cannot be read, whatever else it gave.
    fn unread(&self) -> Option<String> {
        let of_question = |asked: &Asked| {
            let mut all = asked.answers.unread.clone();
            for found in &asked.measurements {
                all.add(found.unread.clone());
            }
            all
        };
        let all = self.questions.iter().map(of_question);
        let count = all.clone().map(|found| found.unread).sum();
        let mut named = self.questions.iter().zip(all);
        let (asked, why) = named.find_map(|(asked, found)| Some((asked, found.first?)))?;
        Some(format!(
            "{} of the service cannot be read, the first of them to `{}`: {why}",
            so_many(count, "answer"),
            asked.question.published.name
        ))
    }

    /// That the service gave no answer where one was to be held against another's.
    fn unserved(&self) -> Option<String> {
        let of_question = |asked: &Asked| {
            let failed = asked.comparisons.iter().filter_map(|found| {
                let why = found.failed.as_ref()?;
                Some(format!(
                    "`{}` with {}: {why}",
                    asked.question.published.name, found.with
                ))
            });
            failed.collect::<Vec<_>>()
        };
        let failed: Vec<_> = self.questions.iter().flat_map(of_question).collect();
        let first = failed.first()?;
        let count = so_many(failed.len() as u64, "comparison");
        Some(format!("{count} failed, the first of them {first}"))
    }

    fn unmeasured(&self) -> Option<String> {
        let is_measured = |asked: &Asked| asked.measurements.iter().any(|found| found.runs > 0);
        let is_last = |asked: &Asked| {
            self.questions
                .last()
                .is_some_and(|last| std::ptr::eq(last, asked))
        };
        // That it was not answered is said by then.
        let noted = |asked: &Asked| {
            Some(match asked.notes.first()? {
                Note::NotAnswered(why) => why.clone(),
                note => note.to_string(),
            })
        };
        let failed = |asked: &Asked| {
            let first = asked.measurements.iter().find_map(Measurement::failed);
            first.or_else(|| noted(asked))
        };
        let of = self.questions.len();
        let is_missing = |asked: &&Asked| !is_measured(asked) && !asked.is_withheld;
        let missing: Vec<_> = self.questions.iter().filter(is_missing).collect();
        match missing.as_slice() {
            [] if self.questions.iter().any(is_measured) => self.unreached(),
            _ if of == 0 => self.ended_early.clone().or_else(|| {
                let first = self.left_out.first()?;
                Some(format!(
                    "nothing was asked: `{}` was left out: {}",
                    first.published.name, first.reason
                ))
            }),
            // The last one may not have had its time.
            [one] if of > 1 && self.ended_early.is_some() && is_last(one) => None,
            [first, ..] if missing.len() < of => Some(format!(
                "{} of {of} questions were not answered, the first of them `{}`: {}",
                missing.len(),
                first.question.published.name,
                noted(first).unwrap_or_else(|| "no request got a whole answer".to_owned())
            )),
            _ => {
                let why = self.questions.iter().find_map(failed)?;
                Some(format!("no question was answered: {why}"))
            }
        }
    }

    /// That the service was not measured over HTTP at all, and why, where it was in process.
    fn unreached(&self) -> Option<String> {
        let measurements = self.questions.iter().flat_map(|asked| &asked.measurements);
        if measurements
            .filter(|found| found.runs > 0)
            .any(|found| found.condition.way == OVER_HTTP)
        {
            return None;
        }
        let mut notes = self.questions.iter().flat_map(|asked| &asked.notes);
        let why = notes.find(|note| matches!(note, Note::Unmeasured { way, .. } if *way == OVER_HTTP))?;
        Some(format!("nothing was measured {why}"))
    }
}
