//! The tables of the page, and its remarks.

use std::fmt::Write as _;

use super::figures::{Percentiles, count, duration, or_none, ratio};
use super::report::Report;
use crate::http::Escaped;
use crate::model::Day;

impl Report {
    pub(super) fn figures_table(&self) -> String {
        let mut rows = String::new();
        for asked in &self.questions {
            for (place, found) in asked.measurements.iter().enumerate() {
                let times = |of: fn(Percentiles) -> f64| or_none(found.milliseconds.map(of), duration);
                rows.push_str("<tr>");
                if place == 0 {
                    let _ = write!(
                        rows,
                        "<th rowspan=\"{}\" scope=\"rowgroup\">{}</th>",
                        asked.measurements.len(),
                        Escaped(asked.question.published.name)
                    );
                }
                let disk = or_none(found.disk_bytes_per_answer.map(|bytes| bytes as f64), count);
                let failures = if found.failures > 0 {
                    format!(" ({} failed)", found.failures)
                } else {
                    String::new()
                };
                let _ = write!(rows, "<td class=\"word\">{}{failures}</td>", found.condition);
                for cell in [
                    asked.answers.shown(),
                    count(found.runs as f64),
                    times(|times| times.p50),
                    times(|times| times.p90),
                    times(|times| times.p99),
                    times(|times| times.max),
                    or_none(found.rows_per_second, count),
                    or_none(found.bytes_per_second, count),
                    disk,
                ] {
                    let _ = write!(rows, "<td>{cell}</td>");
                }
                rows.push_str("</tr>\n");
            }
        }
        if rows.is_empty() {
            return String::new();
        }
        format!(
            "<section>\n<h2>Figures</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>question</th><th class=\"word\">how</th>\
             <th>rows</th><th>answers</th><th>p50</th><th>p90</th><th>p99</th><th>max</th><th>rows/s</th><th>bytes/s</th>\
             <th>from disk</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
        )
    }

    pub(super) fn comparison_table(&self) -> String {
        let mut rows = String::new();
        for asked in &self.questions {
            for found in &asked.comparisons {
                let _ = write!(
                    rows,
                    "<tr><th>{}</th><td class=\"word\">{}</td><td>{}</td><td class=\"word\">{}</td>",
                    Escaped(asked.question.published.name),
                    found.with,
                    found.rows,
                    found.verdict.word(),
                );
                for cell in [
                    or_none(found.ours_ms, duration),
                    or_none(found.ours_in_process_ms, duration),
                    or_none(found.theirs_ms, duration),
                    found.timed_in_words(),
                    or_none(found.ratio, ratio),
                    or_none(found.ratio_in_process, ratio),
                ] {
                    let _ = write!(rows, "<td>{cell}</td>");
                }
                let _ = writeln!(rows, "<td class=\"word\">{}</td></tr>", Escaped(&found.asked));
            }
        }
        let mut text = String::new();
        if !rows.is_empty() {
            let _ = write!(
                text,
                "<section>\n<h2>Answers compared</h2>\n<p>{}</p>\n<div class=\"wide\"><table>\n<thead><tr><th>question</th>\
                 <th class=\"word\">with</th><th>rows</th><th class=\"word\">answers</th><th>over HTTP</th><th>in process</th>\
                 <th>other</th><th>timed</th><th>ratio</th><th>in process</th><th class=\"word\">asked</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
                Escaped(&self.others.join(" "))
            );
            text.push_str("<ul>\n");
            for tally in &self.compared {
                let _ = writeln!(text, "<li>{}</li>", Escaped(&tally.to_string()));
            }
            text.push_str("</ul>\n</section>\n");
        }
        let remarks = self.remarks();
        if !remarks.is_empty() {
            text.push_str("<section>\n<h2>Remarks</h2>\n<ul>\n");
            for remark in remarks {
                let _ = writeln!(text, "<li>{}</li>", Escaped(&remark));
            }
            text.push_str("</ul>\n</section>\n");
        }
        text
    }

    pub(super) fn parameters(&self) -> String {
        let mut rows = String::new();
        for asked in &self.questions {
            let published = asked.question.published;
            let target = asked.question.targets.first().map_or("", String::as_str);
            let _ = writeln!(
                rows,
                "<tr><th>{}</th><td class=\"word\">{}; {}</td><td class=\"word\">{}<br><code>{}</code></td></tr>",
                Escaped(published.name),
                Escaped(published.about),
                Escaped(published.shows),
                Escaped(&asked.question.picked),
                Escaped(target)
            );
        }
        format!(
            "<section>\n<h2>What was asked</h2>\n<div class=\"wide\"><table class=\"text\">\n<thead><tr><th>question</th>\
             <th class=\"word\">what for</th><th class=\"word\">picked for this chain</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n\
             </section>\n"
        )
    }

    /// How many measurements had less than their time, where any had.
    fn ended(&self) -> String {
        let measurements = self.questions.iter().flat_map(|asked| &asked.measurements);
        match measurements.filter(|found| found.full).count() {
            0 => String::new(),
            ended => {
                format!(", but for {ended} that ended with as many answers as one keeps (see the remarks)")
            }
        }
    }

    pub(super) fn facts(&self) -> String {
        let (store, machine, settings) = (&self.store, &self.machine, &self.settings);
        let clients: Vec<_> = settings.clients.iter().map(ToString::to_string).collect();
        let (year, month, day) = Day::of(self.began).civil();
        let (hour, minute) = (self.began / 3600 % 24, self.began / 60 % 60);
        let (first_head, last_head) = self.heads();
        let facts = [
            ("command", self.command.clone()),
            (
                "began",
                format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC"),
            ),
            ("took", format!("{:.0} s", self.seconds)),
            ("version", self.version.to_owned()),
            ("chain", format!("{} (id {})", store.chain, store.chain_id)),
            ("blocks", format!("{} to {}", store.first_block, store.head)),
            ("head at the beginning", first_head),
            ("head at the end", last_head),
            (
                "contents",
                format!(
                    "{} logs, {} transactions, {} contracts with logs, {} topics 0, {}, {}",
                    store.logs,
                    store.transactions,
                    store.emitters,
                    store.signatures,
                    if store.traces { "traces" } else { "no traces" },
                    if store.balances {
                        "native balances"
                    } else {
                        "no native balances of the head"
                    }
                ),
            ),
            ("store on disk", format!("{}B", count(store.bytes as f64))),
            (
                "cache",
                settings.cache_bytes.map_or_else(
                    || "not known".to_owned(),
                    |bytes| format!("{}B for blocks and rows that are kept", count(bytes as f64)),
                ),
            ),
            ("machine", machine.in_words()),
            (
                "load average",
                format!(
                    "{} at the beginning, {} at the end",
                    machine.load[0], machine.load[1]
                ),
            ),
            (
                "measured",
                format!(
                    "{} for each question and way, as planned in the beginning{}; clients at a time: {}; at most {:.0} s in all",
                    duration(1e3 * settings.seconds),
                    self.ended(),
                    clients.join(", "),
                    settings.limit
                ),
            ),
            ("service", settings.service.clone()),
            ("warm", settings.warm.clone()),
            ("cold", settings.cold.clone()),
            ("seed", settings.seed.to_string()),
        ];
        let mut rows = String::new();
        for (name, fact) in facts {
            let _ = writeln!(
                rows,
                "<tr><th>{name}</th><td class=\"word\">{}</td></tr>",
                Escaped(&fact)
            );
        }
        format!(
            "<section>\n<h2>Where and how</h2>\n<div class=\"wide\"><table class=\"text\"><tbody>\n{rows}</tbody></table></div>\n</section>\n"
        )
    }
}
