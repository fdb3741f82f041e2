//! How a cluster begins.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::support::{Bench, quiet};
use crate::living::LivingOptions;

const KINDS: [(&str, &str); 11] = [
    ("", "configmaps"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "pods"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("batch", "jobs"),
    ("discovery.k8s.io", "endpointslices"),
];

fn count(bench: &Bench) -> usize {
    let leases = bench.all("coordination.k8s.io", "leases").len();
    leases + KINDS.iter().map(|(group, plural)| bench.all(group, plural).len()).sum::<usize>()
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_makes_the_same_cluster() {
    let (one, same) = (Bench::start(quiet(800)).await, Bench::start(quiet(800)).await);
    let other = Bench::start(LivingOptions { seed: 2, ..quiet(800) }).await;
    for (group, plural) in KINDS.into_iter().filter(|(_, plural)| *plural != "namespaces") {
        assert_eq!(one.all(group, plural), same.all(group, plural), "{plural}");
        assert_ne!(one.all(group, plural), other.all(group, plural), "{plural}");
    }
    for bench in [one, same, other] {
        bench.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_settled_cluster_is_left_alone() {
    let bench = Bench::start(quiet(1500)).await;
    assert_eq!(count(&bench), 1500);
    let before = bench.server.storage().revision();
    bench.living.ready().await.expect("informers");
    sleep(Duration::from_secs(30)).await;
    let written = bench.server.storage().journal_since(before);
    let others = written.iter().filter(|entry| entry.kind.plural != "leases");
    let others: Vec<String> = others.map(|entry| format!("{} {}", entry.kind.plural, entry.key)).collect();
    assert_eq!(others, Vec::<String>::new());
    let nodes = bench.all("", "nodes").len();
    assert!((2 * nodes..=3 * nodes + 1).contains(&written.len()), "{} heartbeats of {nodes} nodes", written.len());
    let queues = bench.living.queues();
    assert!(queues.iter().all(|queue| queue.depth == 0 && queue.retries == 0), "{queues:?}");
    assert!(queues.iter().filter(|queue| queue.processed > 0).count() >= 6, "{queues:?}");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_pod_is_on_a_node_that_takes_pods_and_says_so() {
    let bench = Bench::start(quiet(1500)).await;
    let nodes = bench.all("", "nodes");
    let reserved =
        |name: &str| nodes.iter().any(|node| node["metadata"]["name"] == name && !node["spec"]["taints"].is_null());
    for pod in bench.all("", "pods") {
        let node = pod["spec"]["nodeName"].as_str().expect("a node");
        assert!(!reserved(node), "{node}");
        assert!(pod["status"]["podIP"].as_str().is_some_and(|ip| ip.starts_with("10.")));
        assert!(pod["status"]["hostIP"].as_str().is_some_and(|ip| ip.starts_with("10.0.")));
        assert!(["Running", "Succeeded"].contains(&pod["status"]["phase"].as_str().expect("a phase")));
    }
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn ten_objects_are_a_cluster_too_and_it_lives() {
    let bench = Bench::start(LivingOptions { rate: 30.0, ..quiet(10) }).await;
    bench.living.ready().await.expect("informers");
    assert_eq!(bench.all("", "nodes").len(), 1);
    assert!(!bench.all("", "pods").is_empty());
    let before = bench.server.storage().revision();
    sleep(Duration::from_secs(60)).await;
    assert!(bench.server.storage().revision() > before + 100);
    assert!(count(&bench) < 60, "{} objects", count(&bench));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_objects_are_there_soon() {
    let start = Instant::now();
    let bench = Bench::start(quiet(6000)).await;
    assert_eq!(count(&bench), 6000);
    bench.living.ready().await.expect("informers");
    let took = start.elapsed();
    println!("6,000 objects: {took:?}");
    assert!(took < Duration::from_secs(120), "{took:?}");
    bench.stop().await;
}
