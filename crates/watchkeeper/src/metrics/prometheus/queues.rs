//! Work queues, under client-go's names.
//!
//! Queues of one name share their series, as in client-go: a series that comes twice would spoil the scrape, and a queue that is
//! made anew before the old one is gone would not be seen. What is counted is added up, and what a queue has counted stays
//! while there is another one of its name, since a counter must not go back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric as _, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;

use crate::defaults::QUEUE_DURATION_BUCKETS;
use crate::metrics::{QueueMetrics, QueueSample, QueueState};

/// All queues, by name. A name lives as long as one of its queues.
#[derive(Default)]
pub(super) struct Queues(Mutex<BTreeMap<Box<str>, Weak<Series>>>);

/// The queues of one name.
struct Series {
    states: Mutex<Vec<Weak<dyn QueueState>>>,
    /// What queues have counted that are gone.
    adds: AtomicU64,
    retries: AtomicU64,
    queue_duration: Histogram,
    work_duration: Histogram,
}

/// The queues of one name at one scrape.
struct Scraped {
    name: Box<str>,
    series: Arc<Series>,
    sample: QueueSample,
}

impl Queues {
    pub(super) fn begin(&self, name: &str, state: Weak<dyn QueueState>) -> Arc<dyn QueueMetrics> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Here, and not at a scrape: what nobody scrapes does not grow either.
        names.retain(|_, series| series.strong_count() > 0);
        let known = names.get(name).and_then(Weak::upgrade);
        let series = known.unwrap_or_else(|| {
            let series = Arc::new(Series::new());
            names.insert(name.into(), Arc::downgrade(&series));
            series
        });
        series.add(state);
        series
    }

    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.living().len()
    }

    fn living(&self) -> Vec<(Box<str>, Arc<Series>)> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().filter_map(|(name, series)| Some((name.clone(), series.upgrade()?))).collect()
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let queues: Vec<Scraped> = self
            .living()
            .into_iter()
            .filter_map(|(name, series)| {
                let sample = series.sample()?;
                Some(Scraped { name, series, sample })
            })
            .collect();
        if queues.is_empty() {
            return Ok(());
        }
        Page { encoder, queues: &queues }.encode()
    }
}

impl Series {
    fn new() -> Self {
        Self {
            states: Mutex::default(),
            adds: AtomicU64::default(),
            retries: AtomicU64::default(),
            queue_duration: Histogram::new(QUEUE_DURATION_BUCKETS),
            work_duration: Histogram::new(QUEUE_DURATION_BUCKETS),
        }
    }

    fn add(&self, state: Weak<dyn QueueState>) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.retain(|state| state.strong_count() > 0);
        states.push(state);
    }

    /// All of them together; none if all are gone.
    fn sample(&self) -> Option<QueueSample> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let gone = QueueSample {
            adds: self.adds.load(Relaxed),
            retries: self.retries.load(Relaxed),
            ..QueueSample::default()
        };
        let samples = states.iter().filter_map(|state| Some(state.upgrade()?.sample()));
        samples.map(Some).reduce(|a, b| Some(together(a?, b?))).flatten().map(|living| together(gone, living))
    }
}

fn together(a: QueueSample, b: QueueSample) -> QueueSample {
    QueueSample {
        depth: a.depth + b.depth,
        waiting: a.waiting + b.waiting,
        adds: a.adds + b.adds,
        retries: a.retries + b.retries,
        unfinished: a.unfinished.saturating_add(b.unfinished),
        longest_running: a.longest_running.max(b.longest_running),
    }
}

impl QueueMetrics for Series {
    fn queued(&self, waited: Duration) {
        self.queue_duration.observe(waited.as_secs_f64());
    }

    fn worked(&self, took: Duration) {
        self.work_duration.observe(took.as_secs_f64());
    }

    fn ended(&self, last: &QueueSample) {
        self.adds.fetch_add(last.adds, Relaxed);
        self.retries.fetch_add(last.retries, Relaxed);
    }
}

struct Page<'p, 'e> {
    encoder: &'p mut DescriptorEncoder<'e>,
    queues: &'p [Scraped],
}

impl Page<'_, '_> {
    /// All families. Counters get their `_total` from the encoder.
    fn encode(mut self) -> fmt::Result {
        self.gauge("workqueue_depth", "Items that are to be worked on", |sample| sample.depth)?;
        self.counter("workqueue_adds", "Items that were added", |sample| sample.adds)?;
        self.counter("workqueue_retries", "Items that were added with a delay", |sample| sample.retries)?;
        self.gauge("workqueue_unfinished_work_seconds", "Time that the work that is being done has taken", |sample| {
            sample.unfinished.as_secs_f64()
        })?;
        self.gauge(
            "workqueue_longest_running_processor_seconds",
            "Time that the longest work that is being done has taken",
            |sample| sample.longest_running.as_secs_f64(),
        )?;
        self.histogram("workqueue_queue_duration_seconds", "Time of an item in the queue", |series| {
            &series.queue_duration
        })?;
        self.histogram("workqueue_work_duration_seconds", "Time of the work on an item", |series| &series.work_duration)
    }

    fn family(&mut self, name: &'static str, help: &str, kind: MetricType) -> Result<MetricEncoder<'_>, fmt::Error> {
        self.encoder.encode_descriptor(name, help, None, kind)
    }

    fn gauge<V: EncodeGaugeValue>(
        &mut self,
        name: &'static str,
        help: &str,
        value: impl Fn(&QueueSample) -> V,
    ) -> fmt::Result {
        let queues = self.queues;
        let mut family = self.family(name, help, MetricType::Gauge)?;
        queues.iter().try_for_each(|queue| family.encode_family(&queue.labels())?.encode_gauge(&value(&queue.sample)))
    }

    fn counter(&mut self, name: &'static str, help: &str, value: impl Fn(&QueueSample) -> u64) -> fmt::Result {
        let queues = self.queues;
        let mut family = self.family(name, help, MetricType::Counter)?;
        queues.iter().try_for_each(|queue| {
            let labels = queue.labels();
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value(&queue.sample), None)
        })
    }

    fn histogram(&mut self, name: &'static str, help: &str, of: impl Fn(&Series) -> &Histogram) -> fmt::Result {
        let queues = self.queues;
        let mut family = self.family(name, help, MetricType::Histogram)?;
        queues.iter().try_for_each(|queue| of(&queue.series).encode(family.encode_family(&queue.labels())?))
    }
}

impl Scraped {
    fn labels(&self) -> [(&'static str, &str); 1] {
        [("name", &self.name)]
    }
}
