//! What a scrape shows. (The crate's own dev-dependency turns the feature on.)

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use watchkeeper::metrics::{HandlerSample, InformerMetrics, InformerName, ListOutcome, PrometheusMetrics};
use watchkeeper::workqueue::WorkQueue;
use watchkeeper::{
    InformerIdentity, InformerSample, InformerState, MetricsProvider as _, Reason, ScriptedList, ScriptedWatch,
};

use crate::support::*;

/// An informer of which only the state is there.
#[derive(Default)]
struct Fake(Mutex<InformerSample>);

impl Fake {
    fn new(change: impl FnOnce(&mut InformerSample)) -> Arc<Self> {
        let fake = Self::default();
        change(&mut fake.0.lock().expect("not poisoned"));
        Arc::new(fake)
    }
}

impl InformerState for Fake {
    fn sample(&self) -> InformerSample {
        self.0.lock().expect("not poisoned").clone()
    }
}

/// What an informer keeps: its state, and whom it tells.
struct Informer {
    state: Option<Arc<Fake>>,
    metrics: Arc<dyn InformerMetrics>,
}

struct Scrapes {
    registry: Registry,
    metrics: PrometheusMetrics,
    name: InformerName,
}

impl Scrapes {
    fn new() -> Self {
        let (mut registry, metrics) = (Registry::default(), PrometheusMetrics::new());
        metrics.register(&mut registry);
        let name = metrics.names().reserve("web").expect("a free name");
        Self { registry, metrics, name }
    }

    fn begin(&self, identity: &InformerIdentity, state: Arc<Fake>) -> Informer {
        let weak: Weak<Fake> = Arc::downgrade(&state);
        Informer { metrics: self.metrics.informer(identity, weak), state: Some(state) }
    }

    fn pods(&self, change: impl FnOnce(&mut InformerSample)) -> Informer {
        self.begin(&self.name.with_resource("", "v1", "pods"), Fake::new(change))
    }

    fn page(&self) -> String {
        let mut page = String::new();
        encode(&mut page, &self.registry).expect("a page");
        page
    }

    /// The values of a metric, with its labels but those of every informer: `{reason="ended"} 3`.
    fn values(&self, metric: &str) -> Vec<String> {
        let labels = r#"name="web",group="",version="v1",resource="pods""#;
        let page = self.page();
        let lines = page.lines().filter_map(|line| line.strip_prefix(metric)?.strip_prefix('{'));
        lines.map(|line| format!("{{{}", line.replacen(labels, "", 1).trim_start_matches(','))).collect()
    }
}

fn handler(name: &str, pending: usize, delivered: u64, panics: u64) -> HandlerSample {
    let mut handler = HandlerSample::new(name);
    (handler.pending, handler.delivered, handler.panics) = (pending, delivered, panics);
    handler
}

#[test]
fn the_state_of_an_informer_is_asked_for_at_each_scrape() {
    let scrapes = Scrapes::new();
    let informer = scrapes.pods(|sample| {
        sample.queued_items = 7;
        sample.store_objects = 1000;
        sample.store_bytes = 512_000;
        sample.store_resource_version = "123".into();
    });
    for (metric, value) in [
        ("informer_synced", "{} 0"),
        ("informer_queued_items", "{} 7"),
        ("informer_store_objects", "{} 1000"),
        ("informer_store_bytes_estimate", "{} 512000"),
        ("informer_store_resource_version", "{} 123"),
        ("informer_stale_objects", "{} 0"),
    ] {
        assert_eq!(scrapes.values(metric), [value], "{metric}");
    }
    let state = informer.state.as_ref().expect("a state");
    {
        let mut sample = state.0.lock().expect("not poisoned");
        (sample.synced, sample.queued_items) = (true, 0);
    }
    assert_eq!(
        (scrapes.values("informer_synced"), scrapes.values("informer_queued_items")),
        (vec!["{} 1".into()], vec!["{} 0".into()])
    );
}

#[test]
fn a_version_shows_its_15_least_significant_digits_and_none_if_it_is_no_number() {
    let scrapes = Scrapes::new();
    let informer = scrapes.pods(|_| {});
    let state = informer.state.as_ref().expect("a state");
    for (version, shown) in [
        ("7", Some("7")),
        ("999999999999999", Some("999999999999999")),
        ("1000000000000005", Some("5")),
        ("340282366920938463463374607431768211455", Some("607431768211455")),
        ("", None),
        ("v7", None),
        ("überlange-Version", None),
        ("-7", None),
    ] {
        state.0.lock().expect("not poisoned").store_resource_version = version.into();
        let shown: Vec<String> = shown.iter().map(|shown| format!("{{}} {shown}")).collect();
        assert_eq!(scrapes.values("informer_store_resource_version"), shown, "{version:?}");
    }
}

#[test]
fn the_latency_of_processing_is_a_histogram_with_client_gos_buckets() {
    let scrapes = Scrapes::new();
    let informer = scrapes.pods(|_| {});
    informer.metrics.processed(Duration::from_micros(500));
    informer.metrics.processed(Duration::from_millis(30));
    informer.metrics.processed(Duration::from_secs(11));
    let bounds = ["0.001", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "+Inf"];
    let counts = [1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3];
    let expected: Vec<String> =
        bounds.iter().zip(counts).map(|(bound, count)| format!("{{le=\"{bound}\",}} {count}")).collect();
    assert_eq!(scrapes.values("informer_processing_latency_seconds_bucket"), expected);
    assert_eq!(scrapes.values("informer_processing_latency_seconds_count"), ["{} 3"]);
    assert_eq!(scrapes.values("informer_processing_latency_seconds_sum"), ["{} 11.0305"]);
}

#[test]
fn lists_are_counted_by_their_outcome_and_in_all() {
    let scrapes = Scrapes::new();
    let informer = scrapes.pods(|_| {});
    assert_eq!(scrapes.values("reflector_lists_total"), ["{} 0"]);
    informer.metrics.listed(Duration::from_secs(2), 1000, ListOutcome::Success);
    informer.metrics.listed(Duration::ZERO, 0, ListOutcome::Forbidden);
    informer.metrics.listed(Duration::ZERO, 0, ListOutcome::Forbidden);
    assert_eq!(scrapes.values("informer_lists_total"), [r#"{result="forbidden"} 2"#, r#"{result="success"} 1"#]);
    assert_eq!(scrapes.values("reflector_lists_total"), ["{} 3"]);
    assert_eq!(scrapes.values("reflector_list_duration_seconds_sum"), ["{} 2.0"]);
    assert_eq!(scrapes.values("reflector_list_duration_seconds_count"), ["{} 3"]);
    assert_eq!(scrapes.values("reflector_items_per_list_sum"), ["{} 1000.0"]);
}

#[test]
fn watches_are_counted_and_so_are_the_short_ones() {
    let scrapes = Scrapes::new();
    let informer = scrapes.pods(|_| {});
    informer.metrics.watched(Duration::from_secs(400), 50, false);
    informer.metrics.watched(Duration::ZERO, 0, true);
    assert_eq!(scrapes.values("reflector_watches_total"), ["{} 2"]);
    assert_eq!(scrapes.values("reflector_short_watches_total"), ["{} 1"]);
    assert_eq!(scrapes.values("reflector_watch_duration_seconds_sum"), ["{} 400.0"]);
    assert_eq!(scrapes.values("reflector_items_per_watch_sum"), ["{} 50.0"]);
    assert_eq!(scrapes.values("reflector_items_per_watch_count"), ["{} 2"]);
}

#[test]
fn handlers_are_told_apart_by_their_names_and_those_of_one_name_are_added_up() {
    let scrapes = Scrapes::new();
    let _informer = scrapes.pods(|sample| {
        sample.handlers = vec![handler("queue", 3, 10, 0), handler("log \"all\"", 0, 5, 1), handler("queue", 4, 20, 2)];
    });
    let all = |log: u64, queue: u64| {
        [format!(r#"{{handler="log \"all\""}} {log}"#), format!(r#"{{handler="queue"}} {queue}"#)]
    };
    assert_eq!(scrapes.values("informer_pending_notifications"), all(0, 7));
    assert_eq!(scrapes.values("informer_delivered_notifications_total"), all(5, 30));
    assert_eq!(scrapes.values("informer_handler_panics_total"), all(1, 2));
}

#[tokio::test(start_paused = true)]
async fn what_the_reflectors_say_is_added_up_over_partitions() {
    let source = || {
        listed()
            .answer_watch(ScriptedWatch::new().wait(seconds(5)))
            .answer_watch(ScriptedWatch::new().wait(seconds(5)).error_event(expired()))
            .answer_list(ScriptedList::new("20", []).bad(bad("c", "12")))
            .answer_watch(ScriptedWatch::new().hang())
    };
    let (one, other) = (reflect(&source()), reflect(&source()));
    pass(seconds(20)).await;
    let status = one.status();
    assert_eq!(
        (&status.watch_restarts, &status.relists),
        (&[(Reason::Ended, 1)].into(), &[(Reason::Expired, 1)].into())
    );

    let scrapes = Scrapes::new();
    let _informer = scrapes.pods(|sample| {
        sample.reflectors = vec![(Some("shop".into()), one.status()), (Some("bank".into()), other.status())];
    });
    assert_eq!(scrapes.values("informer_watch_restarts_total"), [r#"{reason="ended"} 2"#]);
    assert_eq!(scrapes.values("informer_relists_total"), [r#"{reason="expired"} 2"#]);
    assert_eq!(scrapes.values("informer_stale_objects"), ["{} 2"]);
    let versions = [r#"{partition="shop"} 20"#, r#"{partition="bank"} 20"#];
    assert_eq!(scrapes.values("reflector_last_resource_version"), versions);
    one.stop().await;
    other.stop().await;
}

fn value(values: &[String]) -> f64 {
    let [value] = values else { panic!("one series, and not {values:?}") };
    value.trim_start_matches("{} ").parse().expect("a number")
}

#[tokio::test(start_paused = true)]
async fn the_last_contact_is_a_unix_time_and_that_of_the_partition_which_heard_longest_ago() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    let silent = reflect(&listed().answer_watch(ScriptedWatch::new().bookmark("11").hang()));
    let events = ScriptedWatch::new().wait(seconds(60)).added(pod("b", "12")).hang();
    let lively = reflect(&listed().answer_watch(events));
    pass(seconds(100)).await;
    let scrapes = Scrapes::new();
    let informer = scrapes.pods(|sample| sample.reflectors = vec![(None, lively.status())]);
    let near = |metric: &str, expected: f64| {
        let shown = value(&scrapes.values(metric));
        assert!((shown - expected).abs() < 5.0, "{metric}: {shown}, and not about {expected}");
    };
    near("informer_last_contact_timestamp_seconds", now() - 40.0);
    near("informer_last_event_age_seconds", 40.0);

    let state = informer.state.as_ref().expect("a state");
    let both = vec![(Some("a".into()), silent.status()), (Some("b".into()), lively.status())];
    state.0.lock().expect("not poisoned").reflectors = both;
    near("informer_last_contact_timestamp_seconds", now() - 100.0);
    near("informer_last_event_age_seconds", 40.0);
    silent.stop().await;
    lively.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_never_heard_anything_has_had_no_contact_since_it_began() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    let mute = reflect(&watchkeeper::Scripted::new());
    let scrapes = Scrapes::new();
    let _informer = scrapes.pods(|sample| sample.reflectors = vec![(None, mute.status())]);
    pass(seconds(20)).await;
    let contact = value(&scrapes.values("informer_last_contact_timestamp_seconds"));
    assert!((contact - (now() - 20.0)).abs() < 5.0, "an alert must see that it is blind");
    assert!(scrapes.values("informer_last_event_age_seconds").is_empty());
    mute.stop().await;
}

#[test]
fn informers_come_in_order_and_go_when_they_are_gone() {
    let scrapes = Scrapes::new();
    assert_eq!(scrapes.page(), "# EOF\n", "nobody is there");
    let pods = scrapes.pods(|sample| sample.queued_items = 1);
    let identity = scrapes.name.with_resource("apps", "v1", "deployments");
    let mut deployments = scrapes.begin(&identity, Fake::new(|sample| sample.queued_items = 2));
    let queued = |page: String| -> Vec<String> {
        page.lines().filter(|line| line.contains("informer_queued_items")).map(str::to_owned).collect()
    };
    assert_eq!(
        queued(scrapes.page()),
        [
            "# HELP informer_queued_items Changes that wait to be applied to the store",
            "# TYPE informer_queued_items gauge",
            r#"informer_queued_items{name="web",group="",version="v1",resource="pods"} 1"#,
            r#"informer_queued_items{name="web",group="apps",version="v1",resource="deployments"} 2"#,
        ]
    );
    drop(pods);
    assert_eq!(queued(scrapes.page()).len(), 3);
    deployments.state = None;
    assert_eq!(scrapes.page(), "# EOF\n", "there is nobody to ask");
}

#[test]
fn only_reserved_identities_are_published_and_only_while_they_are() {
    let scrapes = Scrapes::new();
    let first = scrapes.pods(|sample| sample.queued_items = 1);
    let _duplicate = scrapes.pods(|sample| sample.queued_items = 2);
    let unnamed = InformerIdentity::unnamed("", "v1", "nodes");
    let _unnamed = scrapes.begin(&unnamed, Fake::new(|sample| sample.queued_items = 3));
    assert_eq!(scrapes.values("informer_queued_items"), ["{} 1"]);
    assert!(!scrapes.page().contains("nodes"));

    drop(first);
    assert_eq!(scrapes.page(), "# EOF\n");
    let _next = scrapes.pods(|sample| sample.queued_items = 4);
    assert_eq!(scrapes.values("informer_queued_items"), ["{} 4"], "one that begins anew is published");

    let Scrapes { registry, metrics, name } = scrapes;
    let name_again = metrics.names().clone();
    drop(name);
    let name = name_again.reserve("web").expect("the name was released");
    let scrapes = Scrapes { registry, metrics, name };
    assert_eq!(scrapes.page(), "# EOF\n", "releasing a name ends what was published under it");
}

#[test]
fn no_series_comes_twice_and_each_family_has_one_head() {
    let scrapes = Scrapes::new();
    let fill = |sample: &mut InformerSample| {
        sample.store_resource_version = "5".into();
        sample.handlers = vec![handler("a", 1, 1, 1), handler("a", 1, 1, 1), handler("b", 1, 1, 1)];
    };
    let _pods = scrapes.pods(fill);
    let _same = scrapes.pods(fill);
    let _nodes = scrapes.begin(&scrapes.name.with_resource("", "v1", "nodes"), Fake::new(fill));
    let page = scrapes.page();
    let mut seen = std::collections::BTreeSet::new();
    for line in page.lines() {
        let series = if line.starts_with('#') { line } else { line.rsplit_once(' ').expect("a value").0 };
        assert!(seen.insert(series), "{series} comes twice");
    }
    assert!(page.ends_with("# EOF\n"));
}

/// `docs/metrics.md` names all metrics, and no others.
#[tokio::test(start_paused = true)]
async fn the_documentation_lists_exactly_what_a_scrape_shows() {
    let table = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = std::fs::read_to_string(table).expect("docs/metrics.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let documented: Vec<&str> = rows
        .filter(|name| ["informer_", "reflector_", "workqueue_"].iter().any(|part| name.starts_with(part)))
        .collect();
    let scrapes = Scrapes::new();
    let _informer = scrapes.pods(|_| {});
    let _queue = WorkQueue::<u32>::builder().name("web").metrics(scrapes.metrics.clone()).build();
    let page = scrapes.page();
    let mut shown: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| match line.rsplit_once(' ') {
            Some((name, "counter")) => format!("{name}_total"),
            Some((name, _)) => name.to_owned(),
            None => panic!("{line}"),
        })
        .collect();
    let mut documented: Vec<String> = documented.into_iter().map(str::to_owned).collect();
    shown.sort();
    documented.sort();
    assert_eq!(documented, shown);
}

/// Two threads ask a factory for one informer, and make it twice; or somebody gives two informers one identity.
#[test]
fn of_several_informers_with_one_identity_the_first_that_lives_is_published() {
    let scrapes = Scrapes::new();
    let identity = scrapes.name.with_resource("", "v1", "pods");
    let first = scrapes.begin(&identity, Fake::new(|sample| sample.queued_items = 1));
    let _second = scrapes.begin(&identity, Fake::new(|sample| sample.queued_items = 2));
    assert_eq!(scrapes.values("informer_queued_items"), ["{} 1"]);
    drop(first);
    assert_eq!(scrapes.values("informer_queued_items"), ["{} 2"]);
}
