//! The report as one page that needs nothing else: no script, no font, no picture from elsewhere.

use std::fmt::Write as _;

use super::against::{NODE, POSTGRES, POSTGRES_FLAT};
use super::figures::{count, differing, duration};
use super::measurement::Condition;
use super::report::Report;
use crate::http::Escaped;

const STYLE: &str = include_str!("report.css");
/// Bars that it has colours for.
const COLOURS: usize = 6;

/// Milliseconds of the axis.
const AXIS: (f64, f64) = (0.001, 100_000_000.0);
/// Geometry of the plots, pixels of a picture that scales.
const WIDTH: f64 = 1000.0;
const NAMES: f64 = 190.0;
const FIGURES: f64 = 150.0;
const BAR: f64 = 11.0;
const GAP: f64 = 10.0;
const TOP: f64 = 22.0;

impl Report {
    /// The report as a page.
    #[must_use]
    pub fn html(&self) -> String {
        let store = &self.store;
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<title>quarry bench: chain {}, {} logs</title>\n<style>\n{STYLE}{}</style>\n\
             </head>\n<body>\n<main>\n<h1>quarry bench</h1>\n<p class=\"lead\">{} logs of chain {} ({}), blocks {} to {}.</p>\n",
            store.chain_id,
            count(store.logs as f64),
            more_colours(self.conditions().len()),
            count(store.logs as f64),
            store.chain_id,
            store.chain,
            store.first_block,
            store.head,
        );
        if let Some(early) = &self.ended_early {
            let _ = writeln!(page, "<p class=\"alarm\">{}</p>", Escaped(early));
        }
        if self.differing() > 0 {
            let _ = writeln!(
                page,
                "<p class=\"alarm\">{} from those of another; see the remarks.</p>",
                differing(self.differing(), "answer")
            );
        }
        page.push_str(&self.latency_plot());
        page.push_str(&self.ratio_plot());
        page.push_str(&self.figures_table());
        page.push_str(&self.comparison_table());
        page.push_str(&self.parameters());
        page.push_str(&self.facts());
        page.push_str("</main>\n</body>\n</html>\n");
        page
    }

    /// The conditions that occur, in the order of their first measurement.
    fn conditions(&self) -> Vec<Condition> {
        let mut found = Vec::new();
        for measurement in self.questions.iter().flat_map(|asked| &asked.measurements) {
            if !found.contains(&measurement.condition) {
                found.push(measurement.condition);
            }
        }
        found
    }

    fn latency_plot(&self) -> String {
        let conditions = self.conditions();
        let drawn: Vec<_> = self
            .questions
            .iter()
            .filter(|asked| {
                asked
                    .measurements
                    .iter()
                    .any(|found| found.milliseconds.is_some())
            })
            .collect();
        if drawn.is_empty() {
            return String::new();
        }
        let times = drawn.iter().flat_map(|asked| &asked.measurements);
        let times = times.filter_map(|found| found.milliseconds);
        let scale = Scale::over(times.flat_map(|times| [times.p50, times.p99]));
        let height_of = |bars: usize| bars as f64 * BAR + GAP;
        let all: f64 = drawn
            .iter()
            .map(|asked| height_of(asked.measurements.len()))
            .sum();
        let mut svg = String::new();
        scale.axis(&mut svg, TOP + all, |ms| {
            duration(ms).replacen(".00", "", 1).replacen(".0 ", " ", 1)
        });
        let mut y = TOP + GAP / 2.0;
        for asked in drawn {
            let bars = asked.measurements.len() as f64 * BAR;
            let name = asked.question.published.name;
            let _ = writeln!(
                svg,
                "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                NAMES - 8.0,
                y + bars / 2.0 + 4.0,
                Escaped(name)
            );
            for found in &asked.measurements {
                if let Some(times) = found.milliseconds {
                    let class = class_of(&conditions, found.condition);
                    let (p50, p99) = (scale.x(times.p50), scale.x(times.p99));
                    let _ = writeln!(
                        svg,
                        "<g class=\"{class}\"><title>{}, {}: p50 {}, p99 {}</title><rect class=\"half\" x=\"{NAMES:.1}\" y=\"{:.1}\" \
                         width=\"{:.1}\" height=\"{:.1}\"/><rect class=\"tail\" x=\"{p50:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
                         height=\"{:.1}\"/></g>",
                        Escaped(name),
                        found.condition,
                        duration(times.p50),
                        duration(times.p99),
                        y,
                        (p50 - NAMES).max(1.0),
                        BAR - 2.0,
                        y,
                        (p99 - p50).max(0.5),
                        BAR - 2.0,
                    );
                    let _ = writeln!(
                        svg,
                        "<text class=\"figure\" x=\"{:.1}\" y=\"{:.1}\">{} | {}</text>",
                        WIDTH - FIGURES + 8.0,
                        y + BAR - 2.0,
                        duration(times.p50),
                        duration(times.p99)
                    );
                }
                y += BAR;
            }
            y += GAP;
        }
        let mut legend = String::new();
        for condition in &conditions {
            let _ = write!(
                legend,
                "<span class=\"{}\"><i></i>{condition}</span>",
                class_of(&conditions, *condition)
            );
        }
        format!(
            "<section>\n<h2>How long answers take</h2>\n<p>The solid part of a bar ends at the median (p50), the pale part at p99. The \
             scale is logarithmic.</p>\n<p class=\"legend\">{legend}</p>\n{}</section>\n",
            picture(&svg, y + 4.0, "Latencies by question")
        )
    }

    fn ratio_plot(&self) -> String {
        let compared: Vec<_> = self
            .questions
            .iter()
            .flat_map(|asked| {
                asked
                    .comparisons
                    .iter()
                    .map(move |comparison| (asked, comparison))
            })
            .filter_map(|(asked, comparison)| Some((asked, comparison, comparison.ratio?)))
            .filter(|(_, _, ratio)| *ratio > 0.0)
            .collect();
        if compared.is_empty() {
            return String::new();
        }
        let scale = Scale::over(compared.iter().map(|(_, _, ratio)| *ratio).chain([1.0]));
        let step = BAR + 8.0;
        let height = TOP + compared.len() as f64 * step;
        let mut svg = String::new();
        scale.axis(&mut svg, height, |ratio| format!("{ratio}x"));
        let one = scale.x(1.0);
        for (place, (asked, comparison, ratio)) in compared.iter().enumerate() {
            let y = TOP + place as f64 * step + 4.0;
            let x = scale.x(*ratio);
            let _ = writeln!(
                svg,
                "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text><g class=\"{}\"><title>{} against {}: {}</title><rect \
                 class=\"half\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\"/></g><text class=\"figure\" x=\"{:.1}\" \
                 y=\"{:.1}\">{}, {ratio:.2}x</text>",
                NAMES - 8.0,
                y + BAR,
                Escaped(asked.question.published.name),
                class_of_other(comparison.with),
                Escaped(asked.question.published.name),
                comparison.with,
                Escaped(&comparison.asked),
                one.min(x),
                (x - one).abs().max(1.0),
                WIDTH - FIGURES + 8.0,
                y + BAR,
                comparison.with,
            );
        }
        let mut legend = String::new();
        for with in [NODE, POSTGRES, POSTGRES_FLAT] {
            if compared.iter().any(|(_, comparison, _)| comparison.with == with) {
                let _ = write!(
                    legend,
                    "<span class=\"{}\"><i></i>{with}</span>",
                    class_of_other(with)
                );
            }
        }
        let _ = writeln!(
            svg,
            "<line class=\"one\" x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"{TOP}\" y2=\"{height:.1}\"/>"
        );
        format!(
            "<section>\n<h2>Against others</h2>\n<p>How many times as long the other took for the same logs as this service over \
             HTTP: bars to the right of 1x are answers that it gave sooner.</p>\n<p class=\"legend\">{legend}</p>\n{}</section>\n",
            picture(&svg, height + 6.0, "Ratios by question")
        )
    }
}

/// A logarithmic scale between the powers of ten that hold all figures.
struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    fn over(figures: impl Iterator<Item = f64>) -> Self {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for figure in figures {
            let figure = figure.clamp(AXIS.0, AXIS.1);
            least = least.min(figure);
            most = most.max(figure);
        }
        let from = least.log10().floor();
        Self {
            from,
            to: most.log10().ceil().max(from + 1.0),
        }
    }

    fn x(&self, figure: f64) -> f64 {
        let share = (figure.clamp(AXIS.0, AXIS.1).log10() - self.from) / (self.to - self.from);
        NAMES + share.clamp(0.0, 1.0) * (WIDTH - NAMES - FIGURES)
    }

    /// A line at each power of ten, with its figure above.
    fn axis(&self, svg: &mut String, height: f64, label: impl Fn(f64) -> String) {
        let mut power = self.from;
        while power <= self.to {
            let figure = 10f64.powf(power);
            let x = self.x(figure);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{height:.1}\"/><text class=\"tick\" x=\"{x:.1}\" \
                 y=\"{:.1}\">{}</text>",
                TOP - 7.0,
                label(figure)
            );
            power += 1.0;
        }
    }
}

fn picture(svg: &str, height: f64, label: &str) -> String {
    format!(
        "<div class=\"wide\"><svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{label}\">\n{svg}</svg></div>\n"
    )
}

fn class_of(conditions: &[Condition], condition: Condition) -> String {
    let place = conditions.iter().position(|other| *other == condition);
    format!("c{}", place.unwrap_or(0) + 1)
}

fn class_of_other(with: &str) -> &'static str {
    match with {
        NODE => "c1",
        POSTGRES => "c2",
        _ => "c3",
    }
}

/// The style of bars beyond those that the style sheet has colours for: hues as far from one another as they get.
fn more_colours(conditions: usize) -> String {
    let mut style = String::new();
    for place in COLOURS + 1..=conditions {
        let hue = (place as f64 * 137.508) % 360.0;
        let _ = writeln!(style, ".c{place} {{ --bar: hsl({hue:.0} 45% 52%); }}");
    }
    style
}
