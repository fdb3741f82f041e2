//! Metrics for Prometheus, under the names that client-go's dashboards know. `docs/metrics.md` lists them.
//!
//! Nothing is counted twice: at a scrape each living informer and work queue is asked for its state, and what it says becomes
//! series. Only the histograms, and the lists by their outcome, are kept here.

mod encode;
mod queues;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::{
    InformerIdentity, InformerMetrics, InformerNames, InformerSample, InformerState, ListOutcome, MetricsProvider,
    NoMetrics, QueueMetrics, QueueState,
};
use crate::defaults;

/// Publishes informers and work queues in a registry of the crate `prometheus-client`. Clones are the same.
///
/// ```
/// use prometheus_client::encoding::text::encode;
/// use prometheus_client::registry::Registry;
/// use watchkeeper::metrics::PrometheusMetrics;
///
/// let mut registry = Registry::default();
/// let metrics = PrometheusMetrics::new();
/// metrics.register(&mut registry);
/// // Give it to informers, with a name for those who share one:
/// let name = metrics.names().reserve("web")?;
/// // For each scrape:
/// let mut page = String::new();
/// encode(&mut page, &registry)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct PrometheusMetrics(Arc<Inner>);

#[derive(Default)]
struct Inner {
    names: InformerNames,
    informers: Mutex<Vec<Weak<Published>>>,
    queues: queues::Queues,
}

/// One informer: how to ask it, and what it tells.
struct Published {
    identity: InformerIdentity,
    state: Weak<dyn InformerState>,
    begun: Instant,
    processing_latency: Histogram,
    lists: [AtomicU64; ListOutcome::ALL.len()],
    list_duration: Histogram,
    items_per_list: Histogram,
    short_watches: AtomicU64,
    watches: AtomicU64,
    watch_duration: Histogram,
    items_per_watch: Histogram,
}

/// One informer at one scrape.
struct Scraped {
    published: Arc<Published>,
    sample: InformerSample,
}

// client-go's adapters had summaries for these, whose `_sum` and `_count` histograms have too.
const LIST_SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
/// Watches ask for five to ten minutes.
const WATCH_SECONDS: [f64; 8] = [1.0, 5.0, 15.0, 60.0, 150.0, 300.0, 450.0, 600.0];
const ITEMS: [f64; 7] = [1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0];

impl PrometheusMetrics {
    /// Publishes nothing before it is [registered](Self::register).
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on the registry shows the informers that this is given to. Once, and in one registry, is enough.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    /// The names that are in use here. An informer without one is not published.
    pub fn names(&self) -> &InformerNames {
        &self.0.names
    }

    /// Asks all who are there and may be published, in the order of their labels.
    fn scrape(&self) -> Vec<Scraped> {
        let mut living: Vec<Arc<Published>> = self.informers().iter().filter_map(Weak::upgrade).collect();
        living.retain(|informer| informer.identity.is_reserved());
        let mut scraped: Vec<Scraped> = living
            .into_iter()
            .filter_map(|published| {
                let sample = published.state.upgrade()?.sample();
                Some(Scraped { published, sample })
            })
            .collect();
        scraped.sort_by(|a, b| a.published.labels().cmp(&b.published.labels()));
        // Clones of an identity are the same, so that several informers can have one. Of these the first is shown.
        scraped.dedup_by(|next, first| next.published.labels() == first.published.labels());
        scraped
    }

    fn informers(&self) -> MutexGuard<'_, Vec<Weak<Published>>> {
        self.0.informers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MetricsProvider for PrometheusMetrics {
    fn informer(&self, identity: &InformerIdentity, state: Weak<dyn InformerState>) -> Arc<dyn InformerMetrics> {
        if !identity.is_reserved() {
            return Arc::new(NoMetrics);
        }
        let published = Arc::new(Published::new(identity.clone(), state));
        let mut informers = self.informers();
        // Here, and not at a scrape: what nobody scrapes does not grow either.
        informers.retain(|informer| informer.strong_count() > 0);
        informers.push(Arc::downgrade(&published));
        published
    }

    fn queue(&self, name: &str, state: Weak<dyn QueueState>) -> Arc<dyn QueueMetrics> {
        self.0.queues.begin(name, state)
    }
}

impl Collector for PrometheusMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encode::encode(&mut encoder, &self.scrape())?;
        self.0.queues.encode(&mut encoder)
    }
}

impl Published {
    fn new(identity: InformerIdentity, state: Weak<dyn InformerState>) -> Self {
        Self {
            identity,
            state,
            begun: Instant::now(),
            processing_latency: Histogram::new(defaults::PROCESSING_LATENCY_BUCKETS),
            lists: Default::default(),
            list_duration: Histogram::new(LIST_SECONDS),
            items_per_list: Histogram::new(ITEMS),
            short_watches: AtomicU64::default(),
            watches: AtomicU64::default(),
            watch_duration: Histogram::new(WATCH_SECONDS),
            items_per_watch: Histogram::new(ITEMS),
        }
    }

    fn labels(&self) -> [(&'static str, &str); 4] {
        let identity = &self.identity;
        [
            ("name", identity.name()),
            ("group", identity.group()),
            ("version", identity.version()),
            ("resource", identity.resource()),
        ]
    }
}

impl InformerMetrics for Published {
    fn processed(&self, latency: Duration) {
        self.processing_latency.observe(latency.as_secs_f64());
    }

    fn listed(&self, took: Duration, items: u64, outcome: ListOutcome) {
        self.lists[outcome as usize].fetch_add(1, Relaxed);
        self.list_duration.observe(took.as_secs_f64());
        self.items_per_list.observe(items as f64);
    }

    fn watched(&self, took: Duration, events: u64, short: bool) {
        self.watches.fetch_add(1, Relaxed);
        self.short_watches.fetch_add(u64::from(short), Relaxed);
        self.watch_duration.observe(took.as_secs_f64());
        self.items_per_watch.observe(events as f64);
    }
}

impl fmt::Debug for PrometheusMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let living = self.informers().iter().filter(|informer| informer.strong_count() > 0).count();
        f.debug_struct("PrometheusMetrics").field("informers", &living).field("queues", &self.0.queues.len()).finish()
    }
}
