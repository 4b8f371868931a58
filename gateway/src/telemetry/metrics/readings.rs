//! Reads the counters of calls as plain numbers, for figures that are shown to people.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use prometheus::{Histogram, core::Metric as _};

use super::{GatewayMetrics, OTHER, series::ToolSeries};
use crate::codes::TABLE;

/// A tool and its `contract@version`.
pub type ToolKey = (Arc<str>, Arc<str>);

/// The counts of calls since the process started, or between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallReading {
    /// By code; `ok` for those that succeeded.
    pub codes: BTreeMap<&'static str, u64>,
    pub tools: HashMap<ToolKey, ToolReading>,
    pub agents: HashMap<Arc<str>, u64>,
    /// Total durations.
    pub durations: BucketReading,
    /// Durations without the time in the target.
    pub overhead: BucketReading,
}

/// The counts of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolReading {
    pub calls: u64,
    pub errors: u64,
}

/// The counts of a histogram: for each bound in seconds, observations up to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BucketReading {
    pub bounds: Vec<(f64, u64)>,
    pub count: u64,
}

impl GatewayMetrics {
    /// Returns the counts since the process started.
    pub fn read_calls(&self) -> CallReading {
        let mut reading = CallReading::default();
        self.tools.each(|(tool, contract), series| {
            let counted = reading.count(series);
            if counted.calls > 0 {
                let key = (tool.clone(), contract.clone());
                reading.tools.insert(key, counted);
            }
        });
        reading.count(self.tools.other());
        reading.count(&self.unknown);
        if let Some(finding) = self.finding.get() {
            reading.count(finding);
        }
        *reading.codes.entry("unknown_tool").or_default() += self.unknown_tool.get();
        reading.codes.retain(|_, count| *count > 0);
        self.agents.each(|agent, calls| {
            let agent = agent.map_or_else(|| OTHER.into(), Arc::clone);
            if calls > 0 {
                reading.agents.insert(agent, calls);
            }
        });
        reading.overhead.add(&self.overhead);
        reading
    }

    /// Returns the calls of each tool since the process started.
    pub fn count_tools(&self) -> HashMap<ToolKey, u64> {
        let mut counted = HashMap::new();
        self.tools.each(|key, series| {
            let calls: u64 = series.counts().sum();
            if calls > 0 {
                counted.insert(key.clone(), calls);
            }
        });
        counted
    }

    /// Returns the durations of the calls of these tools since the process started. All versions of a tool share one histogram.
    pub fn read_durations(&self, wanted: &HashSet<&str>) -> HashMap<Arc<str>, BucketReading> {
        let mut durations: HashMap<Arc<str>, BucketReading> = HashMap::new();
        self.tools.each(|(tool, _), series| {
            if !wanted.contains(&**tool) || durations.contains_key(tool) {
                return;
            }
            let mut reading = BucketReading::default();
            for histogram in &series.duration {
                reading.add(histogram);
            }
            durations.insert(tool.clone(), reading);
        });
        durations
    }
}

impl CallReading {
    fn count(&mut self, series: &ToolSeries) -> ToolReading {
        let mut counted = ToolReading::default();
        let codes = std::iter::once("ok").chain(TABLE.iter().map(|row| row.label));
        for (code, count) in codes.zip(series.counts()) {
            *self.codes.entry(code).or_default() += count;
            counted.calls += count;
            counted.errors += if code == "ok" { 0 } else { count };
        }
        for histogram in &series.duration {
            self.durations.add(histogram);
        }
        counted
    }

    /// Returns the number of calls, however they ended.
    pub fn calls(&self) -> u64 {
        self.codes.values().sum()
    }

    /// Returns the number of calls that ended with a code other than `ok`.
    pub fn errors(&self) -> u64 {
        self.calls() - self.codes.get("ok").copied().unwrap_or(0)
    }

    /// Returns the counts since an earlier reading. A series that was dropped meanwhile counts nothing.
    pub fn since(&self, earlier: &Self) -> Self {
        let codes = self.codes.iter().filter_map(|(code, count)| {
            let before = earlier.codes.get(code).copied().unwrap_or(0);
            let new = count.saturating_sub(before);
            (new > 0).then_some((*code, new))
        });
        let tools = self.tools.iter().filter_map(|(key, now)| {
            let before = earlier.tools.get(key).copied().unwrap_or_default();
            let new = ToolReading {
                calls: now.calls.saturating_sub(before.calls),
                errors: now.errors.saturating_sub(before.errors),
            };
            (new.calls > 0).then(|| (key.clone(), new))
        });
        let agents = self.agents.iter().filter_map(|(agent, now)| {
            let before = earlier.agents.get(agent).copied().unwrap_or(0);
            let new = now.saturating_sub(before);
            (new > 0).then(|| (agent.clone(), new))
        });
        Self {
            codes: codes.collect(),
            tools: tools.collect(),
            agents: agents.collect(),
            durations: self.durations.since(&earlier.durations),
            overhead: self.overhead.since(&earlier.overhead),
        }
    }

    /// Adds the counts of another time.
    pub fn merge(&mut self, other: &Self) {
        for (code, count) in &other.codes {
            *self.codes.entry(code).or_default() += count;
        }
        for (key, new) in &other.tools {
            let tool = self.tools.entry(key.clone()).or_default();
            tool.calls += new.calls;
            tool.errors += new.errors;
        }
        for (agent, count) in &other.agents {
            *self.agents.entry(agent.clone()).or_default() += count;
        }
        self.durations.merge(&other.durations);
        self.overhead.merge(&other.overhead);
    }
}

impl BucketReading {
    fn add(&mut self, histogram: &Histogram) {
        if histogram.get_sample_count() == 0 {
            return;
        }
        let metric = histogram.metric();
        let counted = metric.get_histogram();
        let bounds = counted.get_bucket().iter();
        self.merge(&Self {
            bounds: bounds
                .map(|bucket| (bucket.upper_bound(), bucket.cumulative_count()))
                .collect(),
            count: counted.get_sample_count(),
        });
    }

    fn since(&self, earlier: &Self) -> Self {
        let before = earlier.bounds.iter().map(|(_, count)| *count);
        let before = before.chain(std::iter::repeat(0));
        let bounds = self.bounds.iter().zip(before);
        Self {
            bounds: bounds
                .map(|((bound, now), before)| (*bound, now.saturating_sub(before)))
                .collect(),
            count: self.count.saturating_sub(earlier.count),
        }
    }

    fn merge(&mut self, other: &Self) {
        if self.bounds.is_empty() {
            self.bounds.clone_from(&other.bounds);
        } else {
            for ((_, count), (_, new)) in self.bounds.iter_mut().zip(&other.bounds) {
                *count += new;
            }
        }
        self.count += other.count;
    }

    /// Returns an estimate in seconds, computed from buckets like in Prometheus; `None` if nothing was observed.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let rank = quantile * self.count as f64;
        let mut below = (0.0, 0);
        if self.count == 0 {
            return None;
        }
        for &(bound, count) in &self.bounds {
            if count as f64 >= rank {
                let (lower, before) = below;
                let within = (count - before).max(1) as f64;
                return Some(lower + (bound - lower) * (rank - before as f64) / within);
            }
            below = (bound, count);
        }
        Some(below.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_between_the_bounds_of_its_bucket() {
        let reading = BucketReading {
            bounds: vec![(1.0, 50), (2.0, 100), (4.0, 100)],
            count: 104,
        };
        assert_eq!(reading.quantile(0.25), Some(0.52));
        assert_eq!(reading.quantile(0.75), Some(1.56));
        assert_eq!(
            reading.quantile(1.0),
            Some(4.0),
            "nothing is known beyond it"
        );
        assert_eq!(BucketReading::default().quantile(0.5), None);
    }

    #[test]
    fn what_was_counted_between_two_readings_adds_up() {
        let reading = |ok, tool| CallReading {
            codes: BTreeMap::from([("ok", ok)]),
            tools: HashMap::from([(
                ("find".into(), "desk@1.0.0".into()),
                ToolReading {
                    calls: tool,
                    errors: 1,
                },
            )]),
            ..CallReading::default()
        };
        let (first, second) = (reading(3, 3), reading(8, 5));
        let new = second.since(&first);
        assert_eq!((new.calls(), new.errors()), (5, 0));
        let mut sum = first.clone();
        sum.merge(&new);
        assert_eq!(sum.calls(), second.calls());
        assert_eq!(first.since(&second).calls(), 0, "a series was given up");
    }
}
