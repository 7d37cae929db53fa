//! Figures by name and label, and their text.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::Histogram;

/// A label and its value; values come from fixed lists, never from a request.
pub type Label<'a> = (&'static str, &'a str);

/// One reading of everything: filled by whoever has figures, then rendered.
#[derive(Debug, Default)]
pub struct Page {
    families: BTreeMap<&'static str, Family>,
}

#[derive(Debug)]
struct Family {
    help: &'static str,
    samples: Vec<(Vec<(&'static str, String)>, Value)>,
}

#[derive(Debug)]
enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram { sum: f64, buckets: Vec<(f64, u64)> },
}

impl Value {
    fn encode(&self, metric: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match self {
            Self::Counter(value) => metric.encode_counter::<NoLabelSet, _, u64>(value, None),
            Self::Gauge(value) => metric.encode_gauge(value),
            Self::Histogram { sum, buckets } => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                metric.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
        }
    }
}

impl Page {
    /// What the text is, as `content-type` states it.
    pub const CONTENT_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// A count since the start; the text adds `_total` to its name.
    pub fn counter(&mut self, name: &'static str, help: &'static str, labels: &[Label<'_>], value: u64) {
        self.add(name, help, labels, Value::Counter(value));
    }

    /// A value that goes up and down.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, labels: &[Label<'_>], value: f64) {
        self.add(name, help, labels, Value::Gauge(value));
    }

    /// Durations, seconds.
    pub fn histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[Label<'_>],
        value: &Histogram,
    ) {
        let (sum, buckets) = (value.sum(), value.buckets());
        self.add(name, help, labels, Value::Histogram { sum, buckets });
    }

    fn add(&mut self, name: &'static str, help: &'static str, labels: &[Label<'_>], value: Value) {
        let samples = Vec::new();
        let family = self.families.entry(name).or_insert(Family { help, samples });
        let labels = labels.iter().map(|(name, value)| (*name, escaped(value)));
        family.samples.push((labels.collect(), value));
    }

    /// The text (OpenMetrics, which Prometheus reads).
    pub fn render(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut out = String::with_capacity(16 << 10);
        text::encode(&mut out, &registry)?;
        Ok(out)
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, family) in &self.families {
            let kind = match family.samples.first() {
                None => continue,
                Some((_, Value::Counter(_))) => MetricType::Counter,
                Some((_, Value::Gauge(_))) => MetricType::Gauge,
                Some((_, Value::Histogram { .. })) => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(name, family.help, None, kind)?;
            for (labels, value) in &family.samples {
                if labels.is_empty() {
                    value.encode(&mut metric)?;
                } else {
                    value.encode(&mut metric.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

/// A label's value as it stands between quotes; the encoder takes values as they are.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn families_are_grouped_and_buckets_add_up() {
        let durations = Histogram::default();
        durations.observe(Duration::from_millis(1));
        durations.observe(Duration::from_secs(100));
        let mut page = Page::default();
        page.gauge("quarry_head", "Head.", &[("chain", "mainnet")], 7.0);
        page.counter("quarry_a", "Things.", &[("kind", "x\"y")], 3);
        page.gauge("quarry_head", "Head.", &[("chain", "testnet")], 0.5);
        page.histogram("quarry_b_seconds", "Times.", &[], &durations);
        let text = page.render().unwrap();
        let expected = [
            "# TYPE quarry_a counter",
            "quarry_b_seconds_sum 100.001",
            "quarry_a_total{kind=\"x\\\"y\"} 3",
            "quarry_b_seconds_bucket{le=\"0.0005\"} 0",
            "quarry_b_seconds_bucket{le=\"0.001\"} 1",
            "quarry_b_seconds_bucket{le=\"60.0\"} 1",
            "quarry_b_seconds_bucket{le=\"+Inf\"} 2",
            "quarry_b_seconds_count 2",
            "quarry_head{chain=\"mainnet\"} 7.0\nquarry_head{chain=\"testnet\"} 0.5",
        ];
        for line in expected {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert_eq!(text.matches("# TYPE quarry_head gauge").count(), 1);
        assert!(text.ends_with("# EOF\n"));
    }
}
