//! Pods as clients see them.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::pods::Pods;
use crate::state::{Next, State};
use crate::templates::Format;
use crate::values::{FRESH, version};

fn json(pods: &Pods, number: u32, revision: u64) -> Vec<u8> {
    let mut bytes = b"{".to_vec();
    pods.body(number, Format::Json).fill(number, revision, &mut bytes);
    bytes
}

fn contains(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

#[test]
fn a_pod_parses_and_differs_from_the_next_and_from_its_next_revision() {
    let pods = Pods::new(1000).unwrap();
    for number in [0, 1, 399, 400, 999] {
        let bytes = json(&pods, number, 0);
        let pod: Pod = serde_json::from_slice(&bytes).unwrap();
        let key = format!("{}/{}", pod.metadata.namespace.unwrap(), pod.metadata.name.unwrap());
        assert_eq!(key, pods.key(number));
        assert_eq!(pod.metadata.resource_version.unwrap(), version(number, 0).to_string());
        assert!(version(number, 0) < FRESH);

        let other: Pod = serde_json::from_slice(&json(&pods, (number + 400) % 1000, 0)).unwrap();
        assert_ne!(pod.metadata.uid, other.metadata.uid);
        assert_ne!(pod.metadata.creation_timestamp, other.metadata.creation_timestamp);

        let changed: Pod = serde_json::from_slice(&json(&pods, number, FRESH + 5)).unwrap();
        assert_eq!(changed.metadata.resource_version.unwrap(), (FRESH + 5).to_string());
        assert_eq!(changed.metadata.uid, pod.metadata.uid);
        assert_eq!(changed.metadata.creation_timestamp, pod.metadata.creation_timestamp);
        let (before, after) = (pod.status.unwrap(), changed.status.unwrap());
        assert_ne!(before.pod_ip, after.pod_ip);
        assert_ne!(before.start_time, after.start_time);
    }
}

#[test]
fn no_placeholder_is_left() {
    let pods = Pods::new(400).unwrap();
    for number in (0..400).step_by(13) {
        for format in [Format::Json, Format::Protobuf] {
            let mut bytes = Vec::new();
            pods.body(number, format).fill(number, 0, &mut bytes);
            for part in ["xxxxx", "zzzzzzzzzz", "vvvvv", "1111111111", ".211.211.", ".122.122.", "0000000000"] {
                assert!(!contains(&bytes, part), "{part} in pod {number}");
            }
        }
    }
}

#[test]
fn keys_are_unique_and_sorted() {
    let pods = Pods::new(20_000).unwrap();
    let keys: Vec<String> = pods.order().iter().map(|number| pods.key(*number)).collect();
    let pairs = || keys.iter().filter_map(|key| key.split_once('/'));
    assert!(pairs().is_sorted());
    assert_eq!(pairs().collect::<BTreeSet<_>>().len(), 20_000);
}

#[test]
fn names_and_versions_are_the_same_in_protobuf() {
    let pods = Pods::new(800).unwrap();
    for (number, revision) in [(0, 0), (1, 0), (799, 0), (5, FRESH + 1)] {
        let mut bytes = Vec::new();
        pods.body(number, Format::Protobuf).fill(number, revision, &mut bytes);
        let pod: Pod = serde_json::from_slice(&json(&pods, number, revision)).unwrap();
        let status = pod.status.unwrap();
        let values =
            [pod.metadata.name, pod.metadata.uid, pod.metadata.resource_version, status.pod_ip, status.host_ip];
        for value in values {
            let value = value.unwrap();
            assert!(contains(&bytes, &value), "{value} in pod {number}");
        }
    }
}

#[test]
fn events_are_spread_evenly_and_watches_see_them_in_order() {
    let state = Arc::new(State::new(Pods::new(100).unwrap(), vec![Format::Json], 100));
    let (mut watch, _) = state.watch(Format::Json);
    assert_eq!(state.events(40, 20, 0), (FRESH + 1, FRESH + 40));
    let mut numbers = Vec::new();
    while numbers.len() < 40 {
        if let Next::Events { first, numbers: more, ready } = state.next(&mut watch) {
            assert_eq!(first, FRESH + 1 + numbers.len() as u64);
            assert!(contains(ready.unwrap().chunk(first).unwrap(), &format!("\"resourceVersion\":\"{first}\"")));
            numbers.extend(more);
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).flat_map(|number| [number; 2]).collect::<Vec<u32>>());
    assert_eq!(state.sent(FRESH + 1, FRESH + 40).unwrap().len(), 40);
}

#[test]
fn an_expired_watch_ends_and_the_next_live_one_gets_the_marker() {
    let state = State::new(Pods::new(10).unwrap(), vec![Format::Json], 10);
    let (mut watch, _) = state.watch(Format::Json);
    let marker = state.expire();
    assert!(matches!(state.next(&mut watch), Next::Expired));
    let (mut watch, snapshot) = state.watch(Format::Json);
    assert_eq!(snapshot.version, marker - 1);
    state.is_live(&watch);
    assert!(matches!(state.next(&mut watch), Next::Events { first, .. } if first == marker));
    assert!(state.resume(Format::Json, marker - 2).is_none(), "older versions are forgotten");
    state.reset();
    assert!(matches!(state.next(&mut watch), Next::Closed));
}
