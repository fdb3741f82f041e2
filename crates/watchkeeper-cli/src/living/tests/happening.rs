//! What happens by itself.

use std::time::Duration;

use tokio::time::sleep;
use watchkeeper_apiserver::ApiServer;

use super::support::{Bench, quiet};
use crate::living::LivingOptions;

fn count(server: &ApiServer) -> usize {
    let kinds = [
        ("", "pods"),
        ("", "nodes"),
        ("", "namespaces"),
        ("", "configmaps"),
        ("", "secrets"),
        ("", "services"),
        ("", "serviceaccounts"),
        ("", "events"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("batch", "jobs"),
        ("discovery.k8s.io", "endpointslices"),
        ("coordination.k8s.io", "leases"),
    ];
    let kinds = kinds.iter().filter_map(|(group, plural)| server.kind(group, plural));
    kinds.map(|kind| server.storage().count(&kind)).sum()
}

#[tokio::test(start_paused = true)]
async fn it_is_as_busy_as_it_was_told_to_be_and_stays_as_large() {
    let bench = Bench::start(LivingOptions { rate: 30.0, ..quiet(500) }).await;
    bench.living.ready().await.expect("informers");
    sleep(Duration::from_secs(60)).await;
    let before = bench.server.storage().revision();
    let minutes = 3;
    for minute in 0..minutes {
        sleep(Duration::from_secs(60)).await;
        let objects = count(&bench.server);
        assert!((420..620).contains(&objects), "{objects} objects after {minute} minutes");
    }
    let rate = (bench.server.storage().revision() - before) as f64 / (minutes * 60) as f64;
    assert!((15.0..50.0).contains(&rate), "{rate} writes a second");
    let story = bench.living.happening(200);
    for what in ["rollout of ", " is scaled from ", " crashes", " is deleted", "job ", " is complete: "] {
        assert!(story.iter().any(|line| line.text.contains(what)), "no {what:?}");
    }
    let events = bench.all("", "events");
    assert!((20..=50).contains(&events.len()), "{} events", events.len());
    let queues = bench.living.queues();
    assert!(queues.iter().all(|queue| queue.depth < 100), "{queues:?}");
    // Each waits for its own writes before it acts again.
    let (done, again) = queues.iter().fold((0, 0), |(p, r), queue| (p + queue.processed, r + queue.retries));
    assert!(again * 100 < done, "{again} of {done} had to be tried again: {queues:?}");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_it_stops_it() {
    let server = ApiServer::new();
    let bench = Bench::start_on(server.clone(), LivingOptions { rate: 30.0, ..quiet(300) }).await;
    bench.living.ready().await.expect("informers");
    drop(bench);
    sleep(Duration::from_secs(5)).await;
    let revision = server.storage().revision();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.storage().revision(), revision);
    assert_eq!(server.storage().watches(), 0);
}

/// `cargo test --release -p watchkeeper-cli costs_little -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute, and says how much of a core it took"]
async fn a_living_cluster_costs_little() {
    let processor_time = || -> f64 {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        ticks / 100.0
    };
    let objects = std::env::var("OBJECTS").ok().and_then(|text| text.parse().ok()).unwrap_or(3000);
    let start = std::time::Instant::now();
    let bench = Bench::start_on(ApiServer::new(), LivingOptions { objects, ..LivingOptions::default() }).await;
    let filled = start.elapsed();
    bench.living.ready().await.expect("informers");
    println!("{objects} objects: filled in {filled:?}, seen in {:?}", start.elapsed());
    sleep(Duration::from_secs(10)).await;
    let (time, before, revision) = (std::time::Instant::now(), processor_time(), bench.server.storage().revision());
    sleep(Duration::from_secs(50)).await;
    let passed = time.elapsed().as_secs_f64();
    let (used, writes) = (processor_time() - before, bench.server.storage().revision() - revision);
    println!("{:.1} % of a core at {:.1} writes a second", 100.0 * used / passed, writes as f64 / passed);
    for queue in bench.living.queues() {
        println!("{queue:?}");
    }
    for line in bench.living.happening(30) {
        println!("{} {}", line.at, line.text);
    }
    assert!(used / passed < 0.15);
    bench.stop().await;
}
