//! What is measured of a queue. (The crate's own dev-dependency turns the feature `prometheus` on.)

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::time::advance;
use watchkeeper::metrics::{
    InformerIdentity, InformerMetrics, InformerState, MetricsProvider, NoMetrics, PrometheusMetrics, QueueMetrics,
    QueueSample, QueueState,
};
use watchkeeper::workqueue::limiter::Exponential;
use watchkeeper::workqueue::{AddOptions, RateLimitingQueue, WorkQueue};

use super::{SECOND, after, take, take_all};

const MICRO: Duration = Duration::from_micros(1);

/// Writes down what it is told.
#[derive(Default)]
struct Told {
    queued: Mutex<Vec<Duration>>,
    worked: Mutex<Vec<Duration>>,
    ended: Mutex<Option<QueueSample>>,
}

impl QueueMetrics for Told {
    fn queued(&self, waited: Duration) {
        self.queued.lock().unwrap().push(waited);
    }

    fn worked(&self, took: Duration) {
        self.worked.lock().unwrap().push(took);
    }

    fn ended(&self, last: &QueueSample) {
        *self.ended.lock().unwrap() = Some(*last);
    }
}

/// Knows the queues that were begun.
#[derive(Clone, Default)]
struct Provider(Arc<Mutex<Vec<Queue>>>);

#[derive(Clone)]
struct Queue {
    name: String,
    state: Weak<dyn QueueState>,
    told: Arc<Told>,
}

impl Queue {
    fn sample(&self) -> QueueSample {
        self.state.upgrade().expect("a living queue").sample()
    }
}

impl MetricsProvider for Provider {
    fn informer(&self, _: &InformerIdentity, _: Weak<dyn InformerState>) -> Arc<dyn InformerMetrics> {
        Arc::new(NoMetrics)
    }

    fn queue(&self, name: &str, state: Weak<dyn QueueState>) -> Arc<dyn QueueMetrics> {
        let told = Arc::<Told>::default();
        self.0.lock().unwrap().push(Queue { name: name.to_owned(), state, told: told.clone() });
        told
    }
}

fn measured() -> (WorkQueue<&'static str>, Queue) {
    let provider = Provider::default();
    let queue = WorkQueue::builder().name("test").metrics(provider.clone()).build();
    let measured = provider.0.lock().unwrap()[0].clone();
    (queue, measured)
}

#[tokio::test(start_paused = true)]
async fn depth_additions_and_times_are_client_gos() {
    let (queue, measured) = measured();
    assert_eq!(measured.name, "test");
    queue.add("foo");
    queue.add("foo");
    let sample = measured.sample();
    assert_eq!((sample.adds, sample.depth), (1, 1), "two additions are one");
    advance(50 * MICRO).await;

    let item = take(&queue);
    assert_eq!(*measured.told.queued.lock().unwrap(), [50 * MICRO]);
    assert_eq!(measured.sample().depth, 0);
    queue.add("foo");
    queue.add("foo");
    let sample = measured.sample();
    assert_eq!((sample.adds, sample.depth), (2, 1), "what comes again counts already");
    advance(25 * MICRO).await;
    item.done();
    assert_eq!(*measured.told.worked.lock().unwrap(), [25 * MICRO]);
    assert_eq!(measured.sample().depth, 1);

    let item = take(&queue);
    assert_eq!(*measured.told.queued.lock().unwrap(), [50 * MICRO, 25 * MICRO], "it has waited since it was added");
    advance(1000 * MICRO).await;
    let sample = measured.sample();
    assert_eq!((sample.adds, sample.depth), (2, 0));
    assert_eq!((sample.unfinished, sample.longest_running), (1000 * MICRO, 1000 * MICRO));
    queue.add("bar");
    let other = take(&queue);
    advance(500 * MICRO).await;
    let sample = measured.sample();
    assert_eq!((sample.unfinished, sample.longest_running), (2000 * MICRO, 1500 * MICRO), "the sum, and the longest");
    item.done();
    other.done();
    let sample = measured.sample();
    assert_eq!((sample.unfinished, sample.longest_running), (Duration::ZERO, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn each_addition_with_a_delay_is_a_retry_also_with_none() {
    let (queue, measured) = measured();
    let queue = RateLimitingQueue::over(queue, Exponential::new(SECOND, SECOND));
    queue.add("foo");
    queue.add_with("foo", AddOptions { priority: 3, ..AddOptions::default() });
    assert_eq!(measured.sample().retries, 0);
    queue.add_after("foo", Duration::ZERO);
    queue.add_after("foo", SECOND);
    queue.add_rate_limited("bar");
    let sample = measured.sample();
    assert_eq!((sample.retries, sample.adds, sample.depth, sample.waiting), (3, 1, 1, 2));
    advance(SECOND).await;
    assert_eq!((measured.sample().adds, measured.sample().waiting), (2, 0), "foo is there already");
    queue.shut_down();
    queue.add_after("late", SECOND);
    queue.add_after("late", Duration::ZERO);
    assert_eq!((measured.sample().retries, measured.sample().adds), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn what_was_due_while_nobody_looked_has_waited_since_then() {
    let (queue, measured) = measured();
    queue.add_with("foo", after(SECOND));
    advance(10 * SECOND).await;
    take(&queue).done();
    assert_eq!(*measured.told.queued.lock().unwrap(), [9 * SECOND]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_of_a_queue_that_is_gone_but_its_end() {
    let (queue, measured) = measured();
    queue.add("foo");
    let item = take(&queue);
    queue.shut_down();
    drop(queue);
    assert!(measured.told.ended.lock().unwrap().is_none(), "somebody works on it still");
    item.done();
    assert!(measured.state.upgrade().is_none());
    let last = measured.told.ended.lock().unwrap().expect("the last state");
    assert_eq!((last.adds, last.depth, last.unfinished), (1, 0, Duration::ZERO));
    assert_eq!(Arc::strong_count(&measured.told), 1, "nobody else can tell anything");
}

#[test]
fn a_queue_without_a_name_is_not_measured() {
    let provider = Provider::default();
    let _queue = WorkQueue::<u32>::builder().metrics(provider.clone()).build();
    assert!(provider.0.lock().unwrap().is_empty());
}

struct Scrapes(Registry, PrometheusMetrics);

impl Scrapes {
    fn new() -> Self {
        let (mut registry, metrics) = (Registry::default(), PrometheusMetrics::new());
        metrics.register(&mut registry);
        Self(registry, metrics)
    }

    fn queue(&self, name: &str) -> WorkQueue<&'static str> {
        WorkQueue::builder().name(name).metrics(self.1.clone()).build()
    }

    fn page(&self) -> String {
        let mut page = String::new();
        encode(&mut page, &self.0).expect("a page");
        page
    }

    /// The value of the series that begins so.
    fn value(&self, series: &str) -> Option<f64> {
        let page = self.page();
        let mut values = page.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        let value = values.next().map(|value| value.parse().expect("a number"));
        assert!(values.next().is_none(), "{series} comes twice:\n{page}");
        value
    }
}

#[tokio::test(start_paused = true)]
async fn a_scrape_has_client_gos_names_and_label() {
    let scrapes = Scrapes::new();
    let queue = scrapes.queue("web");
    for item in ["one", "two", "three"] {
        queue.add(item);
    }
    queue.add_with("later", after(SECOND));
    advance(Duration::from_millis(500)).await;
    take(&queue).done();
    let _item = take(&queue);
    advance(Duration::from_millis(250)).await;
    for (series, value) in [
        ("workqueue_depth{name=\"web\"}", 1.0),
        ("workqueue_adds_total{name=\"web\"}", 3.0),
        ("workqueue_retries_total{name=\"web\"}", 1.0),
        ("workqueue_unfinished_work_seconds{name=\"web\"}", 0.25),
        ("workqueue_longest_running_processor_seconds{name=\"web\"}", 0.25),
        ("workqueue_queue_duration_seconds_count{name=\"web\"}", 2.0),
        ("workqueue_queue_duration_seconds_sum{name=\"web\"}", 1.0),
        ("workqueue_queue_duration_seconds_bucket{le=\"0.1\",name=\"web\"}", 0.0),
        ("workqueue_queue_duration_seconds_bucket{le=\"1.0\",name=\"web\"}", 2.0),
        ("workqueue_work_duration_seconds_count{name=\"web\"}", 1.0),
        ("workqueue_work_duration_seconds_bucket{le=\"1e-8\",name=\"web\"}", 1.0),
    ] {
        assert_eq!(scrapes.value(series), Some(value), "{series} in\n{}", scrapes.page());
    }
    let page = scrapes.page();
    let buckets = page.lines().filter(|line| line.starts_with("workqueue_work_duration_seconds_bucket")).count();
    assert_eq!(buckets, 11, "1e-8 to 10, and infinity");
}

#[tokio::test(start_paused = true)]
async fn queues_of_one_name_share_their_series_and_its_counters_never_go_back() {
    let scrapes = Scrapes::new();
    let (one, other) = (scrapes.queue("web"), scrapes.queue("web"));
    let third = scrapes.queue("db");
    one.add("foo");
    one.add("bar");
    other.add("foo");
    take_all(&third);
    assert_eq!(scrapes.value("workqueue_depth{name=\"web\"}"), Some(3.0));
    assert_eq!(scrapes.value("workqueue_depth{name=\"db\"}"), Some(0.0));
    assert_eq!(scrapes.page().matches("# TYPE workqueue_depth").count(), 1);
    take_all(&one);
    drop(one);
    assert_eq!(scrapes.value("workqueue_adds_total{name=\"web\"}"), Some(3.0));
    assert_eq!(scrapes.value("workqueue_queue_duration_seconds_count{name=\"web\"}"), Some(2.0));
    assert_eq!(scrapes.value("workqueue_depth{name=\"web\"}"), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn the_series_of_a_queue_go_with_it_and_one_that_is_made_anew_begins_anew() {
    let scrapes = Scrapes::new();
    let queue = scrapes.queue("web");
    queue.add("foo");
    drop(queue);
    assert!(!scrapes.page().contains("workqueue"), "{}", scrapes.page());
    let queue = scrapes.queue("web");
    assert_eq!(scrapes.value("workqueue_adds_total{name=\"web\"}"), Some(0.0));
    assert!(format!("{:?}", scrapes.1).contains("queues: 1"));
    drop(queue);
}

#[test]
fn a_name_with_quotes_spoils_no_page() {
    let scrapes = Scrapes::new();
    let _queue = scrapes.queue("a \"quoted\"\nname");
    assert!(scrapes.page().contains(r#"workqueue_depth{name="a \"quoted\"\nname"} 0"#), "{}", scrapes.page());
}
