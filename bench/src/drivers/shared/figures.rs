//! What is said in the end?

use std::time::Duration;

use serde::Serialize;

/// The line that a driver prints. What was not asked for is left out.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) driver: &'static str,
    pub(crate) version: &'static str,
    pub(crate) mode: String,
    pub(crate) handler: String,
    pub(crate) handlers: u32,
    #[serde(flatten)]
    pub(crate) figures: Figures,
    pub(crate) check: &'static str,
}

/// Figures of the phases that were asked for.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sync: Option<FirstList>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) relist: Option<Relist>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<Events>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reads: Option<Reads>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FirstList {
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) rss_base: u64,
    pub(crate) rss_peak: u64,
    pub(crate) rss_after: u64,
    pub(crate) objects: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Relist {
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) rss_before: u64,
    pub(crate) rss_peak: u64,
    pub(crate) rss_after: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Events {
    pub(crate) count: u64,
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) per_s: f64,
    pub(crate) cpu_us: f64,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
    pub(crate) cpu_us: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Reads {
    #[serde(flatten)]
    pub(crate) idle: ReadTimes,
    pub(crate) busy: BusyReads,
}

#[derive(Debug, Serialize)]
pub(crate) struct BusyReads {
    #[serde(flatten)]
    pub(crate) times: ReadTimes,
    pub(crate) events_per_s: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct ReadTimes {
    pub(crate) get_ns: f64,
    pub(crate) namespace_us: f64,
    pub(crate) namespace_found: f64,
    pub(crate) index_us: f64,
    pub(crate) index_found: f64,
    pub(crate) selector_us: f64,
    pub(crate) selector_found: f64,
}

impl Latency {
    /// Of how long each event took. None of none.
    pub(crate) fn of(mut times: Vec<Duration>, cpu: Duration) -> Option<Self> {
        times.sort_unstable();
        // The smallest that so many of a hundred are not above.
        let percentile = |part: usize| times.get((times.len() * part).div_ceil(100).checked_sub(1)?).copied();
        Some(Self {
            count: times.len() as u64,
            p50_us: micros(percentile(50)?),
            p99_us: micros(percentile(99)?),
            max_us: micros(percentile(100)?),
            cpu_us: micros(cpu) / times.len() as f64,
        })
    }
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times = |count: u64| (1..=count).rev().map(Duration::from_micros).collect();
        let latency = Latency::of(times(200), Duration::from_micros(1000)).expect("a latency");
        assert_eq!((latency.p50_us, latency.p99_us, latency.max_us, latency.cpu_us), (100.0, 198.0, 200.0, 5.0));
        let one = Latency::of(times(1), Duration::ZERO).expect("a latency");
        assert_eq!((one.p50_us, one.p99_us, one.max_us), (1.0, 1.0, 1.0));
        assert_eq!(Latency::of(Vec::new(), Duration::ZERO), None);
    }
}
